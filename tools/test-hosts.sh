#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Runs tests that watch real flows: tools/test-hosts.sh HARNESS_OPTION cargo test ... --test host. HARNESS_OPTION goes to the
# test harness and may be empty. Whatever else the machine does disturbs these tests, so those that fail run once more, one
# by one.
set -uo pipefail
option=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086
"$@" -- $option 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
[ "$status" = 0 ] && exit 0
mapfile -t failed < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log")
[ ${#failed[@]} = 0 ] && exit "$status"
echo "once more, one by one: ${failed[*]}"
# shellcheck disable=SC2086
"$@" -- $option --exact "${failed[@]}" --test-threads 1
