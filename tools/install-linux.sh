#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What building and trying crates/flowstamp-linux needs beyond Rust, from Debian's packages: as root, where there is apt.
set -eu
packages="clang llvm libelf-dev zlib1g-dev pkg-config iproute2 iperf3 nginx-light curl ethtool"
missing=""
for package in $packages; do
    dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "install-linux.sh: missing:$missing; install them, or run this as root on Debian" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# No service is to start because a package came.
# shellcheck disable=SC2086
RUNLEVEL=1 apt-get install -qq --no-install-recommends -y $missing >/dev/null
