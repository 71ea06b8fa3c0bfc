#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Builds the simulator as a WebAssembly module: tools/web.sh golden|page|test.
#
# golden  Builds it with all features and runs the golden scenarios, which must have the same digests as elsewhere.
# page    Builds the browser lab: one self-contained page, which `flowstamp web` serves and a browser also opens from a
#         folder. Its module has only what the page offers (no feature `full`). It must be small enough to download, and
#         must give the known digests after it has been shrunk.
# test    Tests the page in a real browser: every scenario and control; screenshots go to web/build/shots.
set -euo pipefail
. tools/can.sh
module=target/$wasm/web/flowstamp_wasm.wasm
most_gzip_bytes=420000
shrink=(--strip-debug --strip-producers -Oz --enable-bulk-memory --enable-multivalue --enable-mutable-globals
  --enable-nontrapping-float-to-int --enable-reference-types --enable-sign-ext)
build() { "$cargo" build --locked --profile web --package flowstamp-wasm --target $wasm --target-dir "$PWD/target" "$@"; }

skip() {
  # A release without the page would be incomplete (`make release` sets this).
  [ "${FLOWSTAMP_PAGE:-}" != needed ] || { echo "release: $*" >&2 && exit 1; }
  echo "skipped: $*"
  exit 0
}

case ${1:-} in
golden)
  can_wasm || skip "make wasm needs $needs_wasm"
  set -x
  build
  node tools/wasm.mjs $module
  ;;
page)
  [ "${FLOWSTAMP_PAGE:-}" != needed ] || has_wasm || ! command -v rustup >/dev/null || rustup target add $wasm || true
  can_web || skip "make web needs $needs_web"
  set -x
  build --no-default-features
  (cd web && npm ci --no-audit --no-fund)
  mkdir -p web/build
  web/node_modules/.bin/wasm-opt "${shrink[@]}" $module --output web/build/flowstamp.wasm
  node tools/wasm.mjs web/build/flowstamp.wasm --lab $most_gzip_bytes
  (cd web && npm run build)
  ;;
test)
  can_web && command -v chromium >/dev/null || skip "make web-test needs what make web needs, and chromium"
  set -x
  node web/test.mjs
  ;;
*)
  echo "usage: tools/web.sh golden|page|test" >&2
  exit 2
  ;;
esac
