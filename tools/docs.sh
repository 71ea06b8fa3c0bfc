#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Builds the site, docs/_build/index.html: FIGURES=all|cheap FULL= LINKS= tools/docs.sh.
#
# The gallery shows the figures' short versions, which take a quarter of an hour of CPU time the first time. FIGURES=cheap
# leaves out the slow ones, FULL=1 draws full versions. Figures in target/figures are not run again. LINKS=1 also follows
# links that leave the site, if there is a network.
set -euo pipefail
. tools/can.sh
page=python/flowstamp/page/index.html
which=()
if [ -n "${FULL:-}" ]; then which=(--full); elif [ "${FIGURES:-all}" = cheap ]; then which=(--cheap); fi
lab=()
if [ -e $page ]; then lab=(-t lab); fi
set -x
RUSTDOCFLAGS='-D warnings' "$cargo" doc --locked --all-features --no-deps
$bin/python docs/draw_figures.py ${which[@]+"${which[@]}"} target/figures
rm -rf docs/_build
$bin/python -m sphinx -W --keep-going -q ${lab[@]+"${lab[@]}"} -t rust -D gallery_pictures=target/figures -d target/doctrees docs docs/_build
cp -r target/doc docs/_build/rust
if [ -e $page ]; then
  mkdir docs/_build/lab
  cp $page docs/_build/lab/
fi
$bin/python tools/check_site.py docs/_build
if [ -n "${LINKS:-}" ]; then
  $bin/python -m sphinx -b linkcheck -q -D nb_execution_mode=off docs target/linkcheck
fi
