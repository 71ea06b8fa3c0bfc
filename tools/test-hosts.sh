#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The tests of hosts, by the command given (`cargo test ... --test host`). They watch real flows on whatever else the
# machine does: those that fail run once more, one by one.
set -uo pipefail
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$@" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
[ "$status" = 0 ] && exit 0
mapfile -t failed < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log")
[ ${#failed[@]} = 0 ] && exit "$status"
echo "once more, one by one: ${failed[*]}"
"$@" -- --exact "${failed[@]}" --test-threads 1
