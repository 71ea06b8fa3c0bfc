#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Checks the router in hardware/: tools/hardware.sh [lint] [simulate] [prove] [synthesise], by default all four. A step whose
# tools are missing is skipped by name.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/can.sh
rtl=hardware/rtl
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Whether all these commands exist; says which does not.
has() {
  local command
  for command in "$@"; do
    if ! command -v "$command" >/dev/null; then
      echo "skipped: $step needs $command, from the Debian package $(package "$command")"
      return 1
    fi
  done
}
package() {
  case $1 in
    yosys-smtbmc) echo yosys ;;
    *) echo "$1" ;;
  esac
}

lint() {
  local law width
  if has verilator; then
    for law in 1 2 3; do
      for width in 64 256 512; do
        verilator --lint-only -Wall -I$rtl -GLAW=$law -GDATA_WIDTH=$width $rtl/lint.vlt $rtl/flowstamp_router.sv
      done
    done
  fi
  # Icarus calls it a warning that it takes a vector as a whole into a sensitivity list.
  if has iverilog; then
    iverilog -g2012 -Wall -t null -I $rtl -s flowstamp_router $rtl/*.sv 2>&1 | { grep -v ' sorry: constant selects in always_' || true; }
    [ "${PIPESTATUS[0]}" = 0 ]
  fi
  if has yosys; then
    yosys -q -p "read_verilog -sv -I$rtl $rtl/*.sv; hierarchy -check -top flowstamp_router"
  fi
}

simulate() {
  has verilator || return 0
  FLOWSTAMP_HARDWARE=1 "$cargo" test --locked --package flowstamp-hw -- --nocapture
}

# Every schedule of ten cycles for the delay line, with four words of 16 bits; RCP's work per packet by induction, for all time.
prove() {
  has yosys yosys-smtbmc z3 || return 0
  local formal="read_verilog -formal -sv -I$rtl -Ihardware/formal"
  local write="proc; flatten; opt; memory -nordff; opt; async2sync; dffunmap; write_smt2 -wires $scratch"
  yosys -q -p "$formal $rtl/fs_rcp_packet.sv hardware/formal/fs_rcp_packet.sv; hierarchy -top prove_rcp; $write/rcp.smt2"
  yosys -q -p "$formal $rtl/fs_delay.sv; chparam -set DATA_WIDTH 16 -set DEPTH 4 -set EDIT_BITS 2 fs_delay; \
    hierarchy -top fs_delay; $write/delay.smt2"
  yosys-smtbmc --noprogress -s z3 -t 2 "$scratch/rcp.smt2" | tail -1
  yosys-smtbmc --noprogress -s z3 -i -t 2 "$scratch/rcp.smt2" | tail -1
  yosys-smtbmc --noprogress -s z3 -t 10 "$scratch/delay.smt2" | tail -1
}

synthesise() {
  has yosys || return 0
  python3 tools/hardware.py check
}

for step in ${*:-lint simulate prove synthesise}; do
  printf '== %s\n' "$step"
  "$step"
done
