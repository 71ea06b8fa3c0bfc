#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Builds the package into .venv, as a link to python/: tools/build.sh [first]. With `first`, pip installs Python's
# dependencies while Rust compiles, because the end of the compilation leaves a core idle. Later builds only compile and
# link.
set -euo pipefail
bin=.venv/bin
if [ "${1:-}" = first ]; then
  $bin/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' > .venv/needed.txt
  $bin/pip install --requirement .venv/needed.txt &
  needed=$!
  trap 'kill $needed 2>/dev/null' EXIT
  $bin/maturin develop --locked --release --skip-install
  wait $needed
  trap - EXIT
fi
$bin/maturin develop --locked --release
