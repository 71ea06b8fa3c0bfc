#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Installs the Debian packages that crates/flowstamp-linux needs: to build it, and to run its tests and labs. It needs root
# and apt. If nothing is missing it does nothing. `make test` runs it; FLOWSTAMP_INSTALL=no keeps it from installing.
set -eu
missing=""
lacks() { missing="$missing $1"; }
pkg-config --version >/dev/null 2>&1 || lacks pkg-config
pkg-config --exists libelf 2>/dev/null || lacks libelf-dev
pkg-config --exists zlib 2>/dev/null || lacks zlib1g-dev
for command in ip:iproute2 iperf3:iperf3 nginx:nginx-light curl:curl ethtool:ethtool; do
    command -v "${command%:*}" >/dev/null 2>&1 || lacks "${command#*:}"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || [ "${FLOWSTAMP_INSTALL:-yes}" = no ]; then
    echo "install-linux.sh: missing Debian packages:$missing; install them, or run tools/install-linux.sh as root" >&2
    exit 1
fi
echo "install-linux.sh: installing Debian packages:$missing" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# RUNLEVEL=1 keeps apt from starting the services of these packages.
# shellcheck disable=SC2086
RUNLEVEL=1 apt-get install -qq --no-install-recommends -y $missing >/dev/null
