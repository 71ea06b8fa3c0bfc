# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Proves with CBMC the statements of crates/flowstamp-linux/proofs about the kernel's arithmetic.

It also checks that the proofs find each of a list of wrong changes to that arithmetic.

    tools/prove.py [--cbmc COMMAND] [--timeout SECONDS] [--no-mutants] [PROOF ...]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINUX = ROOT / "crates" / "flowstamp-linux"

# The functions of proofs/laws.c.
PROOFS = ("bits", "excess", "ratio", "amplify", "departure", "mul_div")
CHECKS = (
    "--unsigned-overflow-check",
    "--signed-overflow-check",
    "--conversion-check",
    "--undefined-shift-check",
    "--div-by-zero-check",
    "--bounds-check",
    "--pointer-check",
)
# The sum of bytes by one product loses all but the highest byte on purpose.
MEANT = "overflow on unsigned * in v * 0x101010101010101"

# File, its text, a wrong change of that text, and the proof that must find it.
MUTANTS = (
    ("fixed.h", "v -= v >> 1 & 0x5555555555555555ULL", "v -= v >> 2 & 0x5555555555555555ULL", "bits"),
    ("fixed.h", "(__s32)fs_bits(v) - (__s32)bits;", "(__s32)fs_bits(v) - (__s32)bits + 1;", "excess"),
    ("laws.h", "gain.shift = (__s64)(a_lift + b_shift) - excess;", "gain.shift = (__s64)a_lift * 2 - excess;", "ratio"),
    ("laws.h", "product >> (gain->shift & 63)", "product >> (gain->shift & 31)", "amplify"),
    ("laws.h", "if (fs_bits(product) - gain->shift > 64)", "if (fs_bits(product) - gain->shift > 65)", "amplify"),
    ("fixed.h", "c_shift = fs_excess(c, 32)", "c_shift = fs_excess(c, 31)", "mul_div"),
    ("fixed.h", "(c_shift + lift);", "(c_shift + lift + 1);", "mul_div"),
    ("fixed.h", "if (fs_bits(quotient) + exponent > 64)", "if (exponent > 64)", "mul_div"),
    ("laws.h", "FS_QUOTIENT((__u64)-feedback + unit - 1, unit)", "FS_QUOTIENT((__u64)-feedback, unit)", "departure"),
    ("laws.h", "s->residue_pos_q16 -= give;", "s->residue_pos_q16 -= give / 2;", "departure"),
    ("laws.h", "if (wish >= feedback) {", "if (wish >= 0) {", "departure"),
)


def bound() -> None:
    """The bound in the comment of `mul_div` of proofs/laws.c: the error of all four roundings together."""
    u = Fraction(1, 2**31)
    least, most = (1 - u) ** 3, 1 / (1 - u)
    assert 1 - Fraction(1, 2**29) < least < most < 1 + Fraction(1, 2**29)


def check(cbmc: str, folder: Path, proof: str, timeout: float) -> list[str]:
    """The assertions that do not hold; a proof that does not end in time counts as not holding."""
    command = [cbmc, "--function", proof, *CHECKS, "--json-ui", str(folder / "proofs" / "laws.c")]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return [f"not proven in {timeout:.0f} s"]
    results = [result for part in json.loads(done.stdout) for result in part.get("result", [])]
    if not any(result["property"].startswith(f"{proof}.assertion") for result in results):
        return ["nothing was shown: " + done.stdout.decode()[-500:]]
    failed = [result for result in results if result["status"] != "SUCCESS"]
    return [f"{result['property']}: {result['description']}" for result in failed if MEANT not in result["description"]]


def main() -> int:
    """Runs the proofs that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cbmc", default=shutil.which("cbmc") or "cbmc")
    parser.add_argument("--timeout", type=float, default=1200.0)
    parser.add_argument("--no-mutants", action="store_true")
    parser.add_argument("proofs", nargs="*", metavar="PROOF", default=[])
    arguments = parser.parse_args()
    bound()
    wanted = arguments.proofs or PROOFS
    failures = 0
    for proof in wanted:
        wrong = check(arguments.cbmc, LINUX, proof, arguments.timeout)
        failures += bool(wrong)
        print(f"{proof:12} " + ("proven" if not wrong else "NOT PROVEN\n  " + "\n  ".join(wrong)), flush=True)
    for file, right, mistake, proof in MUTANTS:
        if arguments.no_mutants or proof not in wanted:
            continue
        with tempfile.TemporaryDirectory() as copy:
            for part in ("bpf", "proofs"):
                shutil.copytree(LINUX / part, Path(copy) / part)
            path = Path(copy) / "bpf" / file
            text = path.read_text()
            if text.count(right) != 1:
                print(f"{file} has not one `{right}`", file=sys.stderr)
                return 2
            path.write_text(text.replace(right, mistake))
            found = check(arguments.cbmc, Path(copy), proof, arguments.timeout)
        failures += not found
        print(
            f"{proof:12} {'found' if found else 'DID NOT FIND'} `{mistake}`" + (f": {found[0]}" if found else ""),
            flush=True,
        )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
