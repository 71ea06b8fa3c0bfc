#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Runs the tests of one size, which must be compiled: MAKE=make tools/test.sh short|long|all.
#
# The tests that watch this machine's kernel come first and run alone. The other Rust tests wait more than they compute, so
# the short ones run beside the Python tests; the long ones come before them. pytest ends with a list of the skipped tests
# and why (tests/conftest.py).
#
# The properties in Rust are tried on the same draws each time, so that a failure belongs to the change. `all`, which runs each
# night, draws anew; so does `cargo test`.
set -uo pipefail
. tools/can.sh
log=target/test-rust.log
part() { "$MAKE" --no-print-directory "$@"; }

FLOWSTAMP_SKIPPED=$(mktemp)
export FLOWSTAMP_SKIPPED
trap 'rm -f "$FLOWSTAMP_SKIPPED" "$FLOWSTAMP_SKIPPED".rust' EXIT
if [ "$1" != all ]; then export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-1}; fi
part test-linux || exit
if can_linux; then export FLOWSTAMP_LINUX=$PWD/target/debug/flowstamp-linux; fi
if [ -x target/debug/flowstamp-quic ]; then export FLOWSTAMP_QUIC=$PWD/target/debug/flowstamp-quic; fi
if [ "$1" != short ]; then
  part test-rust && part test-python
  exit
fi
echo "The tests in Rust run beside those in Python; $log has their output."
: > "$FLOWSTAMP_SKIPPED".rust
{ part test-rust; echo $? > "$FLOWSTAMP_SKIPPED".rust; } > $log 2>&1 &
part test-python
python=$?
wait
grep '^test result: ' $log
if [ "$(cat "$FLOWSTAMP_SKIPPED".rust)" != 0 ]; then
  sed -n '/^failures:/,$p; /^error/,$p' $log
  exit 1
fi
exit $python
