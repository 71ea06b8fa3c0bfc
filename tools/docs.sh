#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Builds the site, docs/_build/index.html: LINKS= tools/docs.sh.
#
# No figure runs: pictures are stored in docs/pictures (docs/store_pictures.py). Pages are measured at the width of a
# phone if Chromium is installed. LINKS=1 also follows links that leave the site, if there is a network.
set -euo pipefail
. tools/can.sh
page=python/flowstamp/page/index.html
lab=()
if [ -e $page ]; then lab=(-t lab); fi
set -x
RUSTDOCFLAGS='-D warnings' "$cargo" doc --locked --all-features --no-deps
rm -rf docs/_build
$bin/python -m sphinx -W --keep-going -q ${lab[@]+"${lab[@]}"} -t rust -d target/doctrees docs docs/_build
cp -r target/doc docs/_build/rust
if [ -e $page ]; then
  mkdir docs/_build/lab
  cp $page docs/_build/lab/
fi
$bin/python tools/check_site.py docs/_build
$bin/python -m pytest -q tests/test_site.py
if [ -n "${LINKS:-}" ]; then
  $bin/python -m sphinx -b linkcheck -q -D nb_execution_mode=off docs target/linkcheck
fi
