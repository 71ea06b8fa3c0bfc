#!/usr/bin/env bash
# Installs CBMC, which checks the proofs in crates/flowstamp-linux/proofs, on Debian: tools/install-cbmc.sh FOLDER. It takes
# CBMC from the machine's own release if that has it. If not, it puts trixie's CBMC and the libraries that this needs into
# FOLDER, where nothing else uses them. It prints the command's path.
set -euo pipefail

if command -v cbmc >/dev/null; then
  command -v cbmc
  exit
fi
if [ "$(id -u)" = 0 ] && [ -n "$(apt-cache --quiet=0 policy cbmc 2>/dev/null | grep Candidate || true)" ]; then
  DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends cbmc >&2
  command -v cbmc
  exit
fi

folder=$(mkdir -p "${1:?a folder for what is installed}" && cd "$1" && pwd)
if [ ! -x "$folder/cbmc" ]; then
  packages='cbmc minisat libc6 libgcc-s1 libstdc++6 zlib1g'
  mkdir -p "$folder"/apt/lists/partial "$folder"/apt/cache/archives/partial "$folder"/debs
  echo 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main' > "$folder/apt/sources.list"
  cat > "$folder/apt/apt.conf" <<END
Dir::State::Lists "$folder/apt/lists";
Dir::Cache "$folder/apt/cache";
Dir::Etc::SourceList "$folder/apt/sources.list";
Dir::Etc::SourceParts "-";
APT::Sandbox::User "root";
END
  export APT_CONFIG=$folder/apt/apt.conf
  apt-get -qq update >&2
  # shellcheck disable=SC2086
  (cd "$folder/debs" && apt-get -qq download $packages >&2)
  for package in "$folder"/debs/*.deb; do dpkg-deb --extract "$package" "$folder/root"; done
  loader=$(find "$folder/root" -name 'ld-linux*' -path '*lib*' | head -1)
  libraries=$(dirname "$(find "$folder/root" -name 'libc.so.6' | head -1)"):$folder/root/usr/lib
  printf '#!/bin/sh\nexec %s --library-path %s %s "$@"\n' "$loader" "$libraries" "$folder/root/usr/bin/cbmc" > "$folder/cbmc.new"
  chmod +x "$folder/cbmc.new"
  "$folder/cbmc.new" --version >/dev/null
  mv "$folder/cbmc.new" "$folder/cbmc"
  rm -rf "$folder/debs" "$folder/apt"
fi
echo "$folder/cbmc"
