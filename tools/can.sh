# SPDX-License-Identifier: Apache-2.0 OR MIT
# Tells what this machine can build. The scripts that `make` calls source this file, in the project's folder.

cargo=${CARGO:-cargo}
bin=.venv/bin
wasm=wasm32-unknown-unknown
needs_linux='Linux and libelf, which tools/install-linux.sh installs on Debian'
needs_wasm="node and Rust for $wasm, which rustup target add $wasm installs"
needs_web="node 20.19 or later, npm and Rust for $wasm, which rustup target add $wasm installs"

can_linux() { [ "$(uname)" = Linux ] && pkg-config --exists libelf 2>/dev/null; }
has_wasm() { [ -d "$(rustc --print target-libdir --target $wasm)" ]; }
can_wasm() { has_wasm && command -v node >/dev/null; }
can_web() {
  can_wasm && command -v npm >/dev/null &&
    node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null
}
