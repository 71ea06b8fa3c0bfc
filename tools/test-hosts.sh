#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Runs the tests that watch flows on this machine's kernel: tools/test-hosts.sh [HARNESS_OPTION]. Other work on the machine
# disturbs these tests, so failed tests run once more, one at a time.
set -uo pipefail
. tools/can.sh
if ! can_linux; then
  echo "skipped: the tests of crates/flowstamp-linux need $needs_linux"
  if [ -n "${FLOWSTAMP_SKIPPED:-}" ]; then
    printf '%s\t*\t%s\n' crates/flowstamp-linux "it needs $needs_linux" >> "$FLOWSTAMP_SKIPPED"
  fi
  exit 0
fi
run() { tools/cargo-all.sh test --test host --test lab -- "$@"; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run ${1:+"$1"} 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
[ "$status" = 0 ] && exit 0
mapfile -t failed < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log")
[ ${#failed[@]} = 0 ] && exit "$status"
echo "once more, one by one: ${failed[*]}"
run ${1:+"$1"} --exact "${failed[@]}" --test-threads 1
