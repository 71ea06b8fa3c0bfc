#!/usr/bin/env bash
# Fuzzes every input that comes from strangers: for so many seconds each (default 60) of the targets named, or all of them.
#
# Builds with stable Rust: what libFuzzer needs of the compiler are code generation options, and sanitizers, which would need a nightly one,
# find little in Rust without unsafe code; the C code reads up to a fence instead. What is new is kept in fuzz/target/corpus
# for the next time; fuzz/corpus has what is worth keeping for good. What fails is in fuzz/artifacts, and is given back by
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
# Named, so that what runs while building is not instrumented.
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
