#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Tests mutated labs and packets: FLOWSTAMP_FUZZ_SECONDS=N FLOWSTAMP_FUZZ_FROM=SEED tools/fuzz-linux.sh.
set -euo pipefail
. tools/can.sh
if can_linux; then
  tools/cargo-all.sh test --bins --test packets_fuzz -- --nocapture mutated
else
  echo "skipped: labs and packets need $needs_linux"
fi
