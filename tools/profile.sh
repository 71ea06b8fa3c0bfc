#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Collects the profile for the profile-guided optimisation of `make release`, from short runs of an instrumented program:
# tools/profile.sh FILE writes it to FILE. The profile is valid only for this source and this compiler. It needs
# llvm-profdata beside the compiler (rustup component add llvm-tools).
set -euo pipefail
cd "$(dirname "$0")/.."
file=${1:?usage: tools/profile.sh FILE}
merge=$(rustc --print target-libdir)/../bin/llvm-profdata

counts=$(mktemp -d)
trap 'rm -rf "$counts"' EXIT
# Naming the target keeps these flags off build scripts and macros.
host=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS=-Cprofile-generate=$counts cargo build --locked --profile dist --package flowstamp-sim --example run --target "$host" \
  --target-dir "$PWD/target/profile"

# One run for each way that packets take: laws with a router and without, queues, web flows and long-lived ones, priority for acks.
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
# Networks of many links have an event queue of their own.
run examples/datacentre/permutation.toml fat_tree.k=8 duration=300us warmup=100us
run examples/fat_tree.toml duration=2ms warmup=500us

"$merge" merge --output "$file" "$counts"
