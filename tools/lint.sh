#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Checks format, lints, the documentation's links, types, spelling, sizes and banned phrases, for `make lint`. Warnings are errors.
set -euo pipefail
. tools/can.sh
set -x
"$cargo" fmt --all --check
# Modules that a line of the registry declares are invisible to cargo.
rustfmt --check --edition 2024 crates/flowstamp-laws/src/*.rs docs/adding-a-law/*.rs
tools/cargo-all.sh clippy --all-targets -- -D warnings
if can_linux; then tools/cargo-all.sh clippy --test host --test lab -- -D warnings; fi
"$cargo" clippy --locked --package flowstamp-sim --package flowstamp-wasm --no-default-features -- -D warnings
RUSTDOCFLAGS='-D warnings' "$cargo" doc --locked --quiet --all-features --no-deps
$bin/ruff check
$bin/ruff format --check
$bin/typos
$bin/python tools/check_structure.py
$bin/python tools/check_words.py
$bin/mypy
$bin/python -m mypy.stubtest flowstamp._flowstamp --allowlist tests/stubtest.allow
