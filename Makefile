# Short names for the usual work: `make help` lists them. `make build` makes the command .venv/bin/flowstamp; everything else
# builds on that. A recipe of more than three lines is a script in tools/.

PYTHON ?= python3
CARGO ?= cargo
VENV := .venv
BIN := $(VENV)/bin
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1

RUST_SOURCES := $(shell find crates -path '*/src/*.rs' -o -name '*.lua' -o -name Cargo.toml) Cargo.toml Cargo.lock .cargo/config.toml

.DEFAULT_GOAL := build
.PHONY: build help linux quic release demo system test test-long test-all test-rust test-python test-linux bless compile-tests wasm web web-test hardware lint deny fuzz fuzz-inputs prove determinism bench figures lab docs clean

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1 \2/p' Makefile | while read -r make target what; do printf '%s %-12s # %s\n' "$$make" "$$target" "$$what"; done

# The package is installed as a link to python/: a change there is in effect at once, one in crates/ by a new build.
build: $(VENV)/.built ## the command .venv/bin/flowstamp

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; say make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install 'maturin>=1.9.4,<2' && touch $@

$(VENV)/.built: $(VENV)/.created pyproject.toml $(RUST_SOURCES)
	tools/build.sh $(if $(wildcard $@),,first)
	@touch $@

# Tests and checks need the package's extra `dev`. It is installed after the package, because two pips would get into
# each other's way.
$(VENV)/.dev: $(VENV)/.created pyproject.toml | $(VENV)/.built
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["dev"], sep="\n")' > $(VENV)/dev.txt
	$(BIN)/pip install --requirement $(VENV)/dev.txt
	@touch $@

# The program for the kernel, flowstamp-linux. It needs Linux, libelf (tools/install-linux.sh) and a compiler for BPF: clang
# where that is installed, else the C compiler of the Python package ziglang (tools/bpf-cc).
ZIGLANG := ziglang==0.17.1
BPF_COMPILER = $(if $(shell command -v clang),,$(VENV)/.zig)
$(VENV)/.zig: $(VENV)/.created
	$(BIN)/pip install '$(ZIGLANG)'
	@touch $@

linux: $(VENV)/.created $(BPF_COMPILER) ## the program .venv/bin/flowstamp-linux
	$(CARGO) build --locked --release --package flowstamp-linux --target-dir $(CURDIR)/target
	install -m 755 target/release/flowstamp-linux $(BIN)/flowstamp-linux

# QUIC hosts, flowstamp-quic. ring needs a C compiler. Everything else is Rust.
quic: $(VENV)/.created ## the program .venv/bin/flowstamp-quic
	$(CARGO) build --locked --release --package flowstamp-quic --target-dir $(CURDIR)/target
	install -m 755 target/release/flowstamp-quic $(BIN)/flowstamp-quic

# Into dist/: a wheel for any Linux with glibc 2.17 (zig links it), what it is built from, and a Debian package.
# ZIG= builds the wheel for this machine's glibc, as on systems without zig.
DIST := dist
ZIG ?= --zig --compatibility manylinux_2_17
release: export FLOWSTAMP_PAGE := needed
release: web $(VENV)/.created $(if $(ZIG),$(VENV)/.zig) ## the release artifacts in dist/, each tried in a clean place
	tools/release.sh $(DIST) $(ZIG)

demo: build ## five flows join a link, in seconds
	$(BIN)/flowstamp demo

# The tests come in three sizes (CONTRIBUTING.md says which goes where). Each compiles the Python extension beside the tests
# in Rust, because the extension alone keeps one core busy.
SIZE := short
IGNORED_short :=
IGNORED_long := --ignored
IGNORED_all := --include-ignored
MARKED_short := not long
MARKED_long := long
MARKED_all := long or not long
test: system $(VENV)/.created $(BPF_COMPILER) ## the short tests, for people: 10 minutes on two cores, compiling included
	@$(MAKE) --no-print-directory -j2 $(VENV)/.dev compile-tests
	@MAKE='$(MAKE)' tools/test.sh $(SIZE)
test-long: ## the tests that make test leaves out
	$(MAKE) --no-print-directory test SIZE=long
test-all: ## both, with a million cases of each law in C and all figures
	FLOWSTAMP_NIGHTLY=1 $(MAKE) --no-print-directory test SIZE=all

# Debian packages that the kernel's tests need, installed where this runs as root. The tests go on without them.
system:
	@[ "$$(uname)" != Linux ] || tools/install-linux.sh || true

compile-tests:
	tools/cargo-all.sh test --no-run --quiet
	@. tools/can.sh; ! can_linux || tools/cargo-all.sh test --no-run --quiet --test host --test lab

test-rust: ## of the tests in Rust those that need no kernel of their own; SIZE=long or all for others
	tools/cargo-all.sh test -- $(IGNORED_$(SIZE))

bless: ## record the results of golden runs, for a new law or a change that is meant
	FLOWSTAMP_ACCEPT=1 $(CARGO) test --locked --package flowstamp-sim --test golden

test-linux: ## the tests that watch flows on this machine's kernel: beside nothing else
	tools/test-hosts.sh $(IGNORED_$(SIZE))

test-python: build $(VENV)/.dev ## the tests in Python
	$(BIN)/python -m pytest -n auto --durations=10 --durations-min=5 -m '$(MARKED_$(SIZE))'

wasm: ## the golden scenarios in WebAssembly; needs node and Rust for wasm32-unknown-unknown
	tools/web.sh golden

web: ## the browser lab's page; needs npm too
	tools/web.sh page

web-test: web ## the page in Chromium
	tools/web.sh test

hardware: ## the router in hardware/: lint, simulate, prove, synthesise; needs verilator, iverilog, yosys and z3
	tools/hardware.sh

lint: build $(VENV)/.dev $(BPF_COMPILER) ## format, lints, rustdoc, types, stubs, spelling, sizes; warnings are errors
	tools/lint.sh

# DENY=advisories looks for known weaknesses, whose list is fetched.
DENY ?= licenses bans sources
deny: $(VENV)/.created ## licences and sources of dependencies
	tools/deny.sh $(DENY)

# Random networks that were not tried before, for so many seconds: with debug assertions, and as a release has it.
FUZZ_SECONDS ?= 3600
FUZZ_FROM ?= $(shell date +%s)000
FUZZ = FLOWSTAMP_FUZZ_SECONDS=$$(($(FUZZ_SECONDS) / 2)) FLOWSTAMP_FUZZ_FROM=$(FUZZ_FROM) $(CARGO) test --locked \
  --package flowstamp-sim --test random_networks
fuzz: ## random networks for FUZZ_SECONDS=3600
	$(FUZZ) -- --nocapture
	$(FUZZ) --profile fuzz -- --nocapture

INPUT_SECONDS ?= 60
fuzz-inputs: ## every untrusted input for INPUT_SECONDS=60
	tools/fuzz-inputs.sh $(INPUT_SECONDS)
	FLOWSTAMP_FUZZ_SECONDS=$(INPUT_SECONDS) FLOWSTAMP_FUZZ_FROM=$(FUZZ_FROM) tools/fuzz-linux.sh

prove: ## the kernel's arithmetic, by CBMC
	cbmc=$$(tools/install-cbmc.sh target/cbmc) && $(PYTHON) tools/prove.py --cbmc "$$cbmc"

determinism: build ## that results depend on neither threads, build nor folders
	$(PYTHON) tools/determinism.py

bench: ## benchmarks
	$(CARGO) bench --locked

figures: build ## all figures in full
	$(BIN)/flowstamp figure all

lab: build linux ## the papers' figures on real hosts, short; as root
	$(BIN)/flowstamp figure R6.7 R6.T X10-lab X-7-lab --fast

docs: build $(VENV)/.dev web ## the site, docs/_build; LINKS=1 follows links
	LINKS='$(LINKS)' tools/docs.sh

clean: ## remove what was built
	$(CARGO) clean
	rm -rf $(VENV)
