#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Puts the program flowstamp-linux and its systemd units into a Debian package: tools/make-deb.sh PROGRAM FOLDER.
# The package depends on the libraries that the program was linked with, by the names and versions of the build machine.
set -eu
[ $# = 2 ] || { echo "usage: $0 PROGRAM FOLDER" >&2; exit 2; }
program=$1 out=$2
here=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
linux=$here/crates/flowstamp-linux
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$linux/Cargo.toml" | head -n 1)
architecture=$(dpkg --print-architecture)
name=flowstamp-linux_${version}_$architecture
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
root=$scratch/$name
install -D -m 755 "$program" "$root/usr/bin/flowstamp-linux"
strip --strip-all "$root/usr/bin/flowstamp-linux"
for unit in "$linux"/debian/*.service; do
    install -D -m 644 "$unit" "$root/usr/lib/systemd/system/$(basename "$unit")"
done
doc=$root/usr/share/doc/flowstamp-linux
install -D -m 644 "$linux/debian/README" "$doc/README"
install -m 644 "$linux/debian/copyright" "$doc/copyright"
install -D -m 644 "$here"/grafana/flowstamp-router.json "$doc/flowstamp-router.json"
install -d "$doc/labs" "$doc/data"
install -m 644 "$here"/examples/labs/*.toml "$doc/labs"
install -m 644 "$here"/examples/data/cellular.down "$doc/data"
install -d -m 755 "$root/etc/flowstamp" "$root/DEBIAN"
for script in postinst prerm postrm; do
    install -m 755 "$linux/debian/$script" "$root/DEBIAN/$script"
done
# dpkg-shlibdeps needs a source package as its folder.
mkdir "$scratch/debian"
: > "$scratch/debian/control"
needs=$(cd "$scratch" && dpkg-shlibdeps -O "$root/usr/bin/flowstamp-linux" 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
[ -n "$needs" ] || { echo "$0: dpkg-shlibdeps does not tell what the program needs" >&2; exit 1; }
cat > "$root/DEBIAN/control" <<CONTROL
Package: flowstamp-linux
Version: $version
Architecture: $architecture
Maintainer: The Flowstamp authors <flowstamp@localhost>
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: $needs
Recommends: iproute2
Suggests: iperf3, nginx-light, curl, ethtool
Section: net
Priority: optional
Description: explicit-feedback congestion control for unmodified kernels
 Routers write into packets how fast their senders may go, and TCP obeys. The
 package has eBPF programs for hosts and routers (XCP, RCP, VCP, XCP-b, and
 ABC's router), throughput advice for QUIC (SCONE), and labs with real
 applications. It needs Linux 6.6 or later with BTF.
CONTROL
mkdir -p "$out"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$here" log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
dpkg-deb --root-owner-group -Zxz --build "$root" "$out/$name.deb" >/dev/null
echo "$out/$name.deb"
