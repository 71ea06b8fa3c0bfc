#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Runs cargo on all crates that this machine can build: tools/cargo-all.sh COMMAND [ARGUMENT...]. The workspace is compiled
# once for all of them. It includes flowstamp-linux if that can be built.
set -euo pipefail
. tools/can.sh
command=$1
shift
if can_linux; then set -- --workspace "$@"; else set -- --workspace --exclude flowstamp-linux "$@"; fi
set -x
exec "$cargo" "$command" --locked --all-features "$@"
