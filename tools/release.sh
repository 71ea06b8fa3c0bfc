#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Builds the release artifacts into a folder, and tests each in an empty environment: tools/release.sh FOLDER [MATURIN_OPTION...].
#
# The wheel is compiled with profile-guided optimisation (tools/profile.sh) and has the browser lab's page, which must be
# built. The Debian package of flowstamp-linux is for this machine's release.
set -euo pipefail
. tools/can.sh
dist=$1
shift
profile=target/flowstamp.profdata
if ! [ -e python/flowstamp/page/index.html ]; then
  echo "release: the browser lab's page is not built; a wheel needs it" >&2
  exit 1
fi
set -x
rm -rf "$dist" $profile
if [ -x "$(rustc --print target-libdir)/../bin/llvm-profdata" ]; then
  tools/profile.sh $profile
else
  echo "skipped: counts for the compiler need llvm-profdata, which rustup component add llvm-tools installs"
fi
RUSTFLAGS="$(! [ -e $profile ] || echo "-Cprofile-use=$PWD/$profile")" PATH="$PWD/$bin:$PATH" \
  maturin build --locked --profile dist "$@" --out "$dist"
# A build from the source distribution is not --locked: its workspace has fewer members than Cargo.lock, which cargo then
# prunes. The versions stay those of Cargo.lock.
$bin/maturin sdist --out "$dist"
if can_linux && command -v dpkg-shlibdeps >/dev/null; then
  "${MAKE:-make}" --no-print-directory linux
  tools/make-deb.sh $bin/flowstamp-linux "$dist"
else
  echo "skipped: the Debian package needs dpkg-dev, $needs_linux"
fi
tools/check-release.sh "$dist"
