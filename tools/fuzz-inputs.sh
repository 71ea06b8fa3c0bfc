#!/usr/bin/env bash
# Fuzzes untrusted input: tools/fuzz-inputs.sh [SECONDS [TARGET...]]. SECONDS are per target (default 60); without TARGET it
# runs all.
#
# It builds with stable Rust, because libFuzzer needs only code generation options of the compiler. Sanitizers would need a
# nightly compiler, and find little in Rust without unsafe code. The C code reads packets that end at a guard page instead. New
# inputs stay in fuzz/target/corpus for the next run; fuzz/corpus holds those worth keeping for good. Failing inputs are in
# fuzz/artifacts. This reproduces one:
#   fuzz/target/TRIPLE/release/TARGET fuzz/artifacts/TARGET/FILE
set -euo pipefail
cd "$(dirname "$0")/../fuzz"

seconds=${1:-60}
shift || true
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  for file in fuzz_targets/*.rs; do targets+=("$(basename "$file" .rs)"); done
fi

triple=$(rustc -vV | sed -n 's/^host: //p')
coverage='-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4'
for part in inline-8bit-counters pc-table trace-compares; do coverage+=" -Cllvm-args=-sanitizer-coverage-$part"; done
# Naming the target keeps build scripts and macros free of instrumentation.
RUSTFLAGS="$coverage --cfg fuzzing -Ccodegen-units=1" \
  cargo build --locked --release --target "$triple" --target-dir target

failed=
for target in "${targets[@]}"; do
  found=target/corpus/$target artifacts=artifacts/$target/
  mkdir -p "$found" "$artifacts"
  echo "== $target"
  "target/$triple/release/$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3000 -print_final_stats=1 \
    -max_len=4096 -verbosity=0 -artifact_prefix="$artifacts" "$found" "corpus/$target" 2>&1 | grep -v '^WARNING: Failed to find function' || failed+=" $target"
done
if [ -n "$failed" ]; then
  echo "$0: failed:$failed" >&2
  exit 1
fi
