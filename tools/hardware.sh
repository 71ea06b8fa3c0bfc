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

# Proves RCP's work per packet, and the delay line with four words of 32 bits, by induction.
prove() {
  has yosys yosys-smtbmc z3 || return 0
  local formal="read_verilog -formal -sv -I$rtl -Ihardware/formal" part
  local write="proc; flatten; opt; memory -nordff; opt; async2sync; dffunmap; opt_clean; write_smt2 -wires $scratch"
  yosys -q -p "$formal $rtl/fs_rcp_packet.sv hardware/formal/fs_rcp_packet.sv; hierarchy -top prove_rcp; $write/rcp.smt2"
  solve "$scratch/rcp.smt2" -t 2
  solve "$scratch/rcp.smt2" -i -t 2
  # The first run proves that all parts hold after reset, the others that each part follows from all.
  for part in "" {0..9}; do
    yosys -q -p "$formal ${part:+-DPART=$part} $rtl/fs_delay.sv; chparam -set DATA_WIDTH 32 -set DEPTH 4 fs_delay; \
      hierarchy -top fs_delay; $write/delay.smt2"
    if [ "$part" ]; then solve "$scratch/delay.smt2" -i -t 2; else solve "$scratch/delay.smt2" -t 3; fi
  done
}
solve() {
  yosys-smtbmc --noprogress --unroll -s z3 "${@:2}" "$1" | tail -1
}

synthesise() {
  has yosys || return 0
  python3 tools/hardware.py check
}

for step in ${*:-lint simulate prove synthesise}; do
  printf '== %s\n' "$step"
  "$step"
done
