#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Counts where packets go, in short runs of a program that is compiled for it: what `make release` tells the compiler.
# tools/profile.sh FILE writes the counts to FILE. They belong to this source and this compiler, which needs llvm-profdata
# beside it (rustup component add llvm-tools).
set -euo pipefail
cd "$(dirname "$0")/.."
file=${1:?usage: tools/profile.sh FILE}
merge=$(rustc --print target-libdir)/../bin/llvm-profdata

counts=$(mktemp -d)
trap 'rm -rf "$counts"' EXIT
# A target that is named keeps the flags from build scripts and macros.
host=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS=-Cprofile-generate=$counts cargo build --locked --profile dist --package flowstamp-sim --example run --target "$host" \
  --target-dir "$PWD/target/profile"

# One run for each way that packets take: laws with a router and without, queues, web flows and long ones, acks that go first.
run() { "target/profile/$host/dist/examples/run" "$@" > /dev/null; }
bench() { run "benches/scenarios/$1.toml" "${@:2}"; }
long() { bench xcp-622 duration=8s warmup=2s "flows.long.law=$1" "flows.back.law=$1" "dumbbell.router=$2" "${@:3}"; }
bench xcp-622 duration=8s warmup=2s
long vcp vcp dumbbell.priority=acks
for law in reno sack cubic; do
  long $law none dumbbell.queue=red
done
run examples/parking-lot.toml duration=12s warmup=2s flows.long.law=vcp flows.cross.law=vcp parking_lot.router=vcp \
  'parking_lot.rates=["300Mbps", "200Mbps", "400Mbps"]'
bench rcp-web duration=10s warmup=2s
bench web-150 duration=20s warmup=4s
bench web-150 duration=20s warmup=4s flows.web.law=sack dumbbell.queue=droptail

"$merge" merge --output "$file" "$counts"
