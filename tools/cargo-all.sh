#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# cargo with all crates that this machine can build: tools/cargo-all.sh COMMAND [ARGUMENT...]. The workspace is compiled
# once for all of them. flowstamp-linux belongs to it where it can be built.
set -euo pipefail
. tools/can.sh
command=$1
shift
if can_linux; then set -- --workspace "$@"; fi
set -x
exec "$cargo" "$command" --locked --all-features "$@"
