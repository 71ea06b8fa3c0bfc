#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Tests the release artifacts that `make release` has put into a folder. Each test is in a place where nothing else is
# installed. The wheel has an empty virtual environment and folder, the source distribution a clean folder, and the
# Debian package a bare system.
#
#     tools/check-release.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$(realpath "${1:-dist}")
python=${PYTHON:-python3}
most_bytes=5000000

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset PYTHONPATH VIRTUAL_ENV CARGO_TARGET_DIR FLOWSTAMP_LINUX
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '\n== %s\n' "$*"; }
fail() { echo "check-release: $*" >&2; exit 1; }
skip() { echo "skipped: $*"; }

wheel=$(ls "$dist"/flowstamp-*.whl) sdist=$(ls "$dist"/flowstamp-*.tar.gz)

say "the wheel: $(basename "$wheel"), $(stat -c %s "$wheel") bytes"
[ "$(stat -c %s "$wheel")" -lt "$most_bytes" ] || fail "the wheel has more than $most_bytes bytes"
case $(uname -s) in Linux) [[ $wheel == *manylinux_2_17* ]] || fail "the wheel is not for manylinux_2_17" ;; esac
"$python" -m zipfile -l "$wheel" > "$scratch/listed"
for file in page/index.html figures/data/X10.toml figures/data/expected.json examples/data/five.toml \
  examples/data/data/flows.csv examples/data/labs/pages.toml _flowstamp.abi3.so; do
  grep -q "^flowstamp/$file " "$scratch/listed" || fail "the wheel lacks $file"
done

say "the wheel in an empty environment and an empty folder"
"$python" -m venv "$scratch/venv"
"$scratch/venv/bin/pip" install --quiet "$wheel"
mkdir "$scratch/empty"
(
  cd "$scratch/empty"
  export PATH=$scratch/venv/bin:$PATH
  flowstamp --version
  flowstamp demo
  flowstamp examples mine
  cd mine
  flowstamp run five.toml --out out
  flowstamp compare five.toml --protocols xcp,reno+red
  flowstamp sweep five.toml --grid dumbbell.rate=10Mbps,100Mbps
  flowstamp figure X10 --fast > figure.txt || { cat figure.txt; exit 1; }
  python graph.py > graph.txt || { cat graph.txt; exit 1; }
  flowstamp web --out site
  _FLOWSTAMP_COMPLETE=source_bash flowstamp | grep -q 'complete -o default' || fail "no completion for bash"
  flowstamp doctor > doctor.txt || { cat doctor.txt; exit 1; }
  if flowstamp examples . 2> told; then fail "flowstamp examples writes over a folder that is not empty"; fi
  [ "$(wc -l < told)" = 1 ] || fail "flowstamp examples says more than a line: $(cat told)"
)

say "the tutorials, with the wheel alone"
"$scratch/venv/bin/pip" install --quiet "$wheel[dask,polars]" pytest
mkdir -p "$scratch/tutorials/tests" "$scratch/tutorials/docs"
cp tests/test_tutorials.py tests/cable.py tests/conftest.py "$scratch/tutorials/tests"
cp -r docs/tutorials "$scratch/tutorials/docs"
(
  linux=$PWD/.venv/bin/flowstamp-linux
  if [ -x "$linux" ]; then export FLOWSTAMP_LINUX=$linux; fi
  cd "$scratch/tutorials"
  "$scratch/venv/bin/python" -m pytest -q -rs -p no:cacheprovider tests
)

if [ "${SDIST:-yes}" = no ]; then
  skip "a wheel from the source distribution (SDIST=no)"
else
  say "a wheel from the source distribution, in a clean folder: minutes of compiling"
  mkdir "$scratch/clean"
  (
    cd "$scratch/clean"
    "$scratch/venv/bin/pip" wheel --quiet --no-deps "$sdist"
    "$scratch/venv/bin/pip" install --quiet --no-deps --force-reinstall flowstamp-*.whl
    "$scratch/venv/bin/flowstamp" examples mine > /dev/null
    "$scratch/venv/bin/flowstamp" run mine/five.toml
    "$scratch/venv/bin/flowstamp" figure list > /dev/null
    same() { "$python" -m json.tool --sort-keys "$@"; }
    [ "$("$scratch/venv/bin/flowstamp" run mine/five.toml --json | same)" = "$(same "$scratch/empty/mine/out/summary.json")" ] ||
      fail "the wheel built from the source distribution gives another summary"
  )
fi

if ! deb=$(ls "$dist"/flowstamp-linux_*.deb 2> /dev/null); then
  skip "the Debian package, which was not built"
elif [ "$(id -u)" != 0 ] || ! command -v mmdebstrap > /dev/null; then
  skip "the Debian package in a bare system, which needs root and mmdebstrap"
else
  say "the Debian package in a bare system"
  # shellcheck disable=SC1091
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  # shellcheck disable=SC2016
  mmdebstrap --quiet --variant=minbase --include=systemd \
    --customize-hook="copy-in $deb /root" \
    --customize-hook='chroot "$1" sh -c "apt-get install -qq -y --no-install-recommends /root/flowstamp-linux_*.deb > /dev/null"' \
    --customize-hook='chroot "$1" flowstamp-linux --version' \
    --customize-hook='chroot "$1" flowstamp-linux router laws' \
    --customize-hook='chroot "$1" sh -c "flowstamp-linux lab scenario /usr/share/doc/flowstamp-linux/labs/rcp.toml > /dev/null"' \
    --customize-hook='chroot "$1" systemd-analyze verify flowstamp-host.service flowstamp-metrics.service flowstamp-router@eth0.service flowstamp-share@eth0.service' \
    --customize-hook='chroot "$1" sh -c "apt-get remove -qq -y flowstamp-linux > /dev/null"' \
    "$suite" /dev/null || fail "the Debian package does not work in a bare system"
fi

say "all that could be tried works"
