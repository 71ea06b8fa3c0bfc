# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Draws the figures that the gallery shows: python docs/draw_figures.py [--cheap | --full] DIR.

Short versions into DIR/fast, with --full whole ones into DIR/full. What stands there is not run again, as with
`flowstamp figure`. What a kernel makes is left out: a build of the documentation loads no programs into it.
What claims gave is no matter of this program: `flowstamp figure` judges.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from flowstamp.figures import available, read
from flowstamp.figures.kept import Kept
from flowstamp.figures.memory import Form
from flowstamp.figures.runner import Runner
from flowstamp.progress import Meter

DEAR = {
    *("B11", "R1.5", "R2.2", "R4.1", "R4.2", "R4.4", "R4.5", "R4.9", "R4.10", "R4.12", "R4.13", "R4.14", "R4.17"),
    *("R4.22", "R5.7", "R5.14", "R5.15", "R6.19", "R6.22", "R6.23", "V3", "V4", "V5", "V6", "V7", "V8", "V9", "X-drop"),
    *("X4", "X5", "X6", "X7", "X9"),
}
"""Their short versions take more than ten seconds of a processor each, and together four fifths of all."""


def main() -> int:
    """Runs what is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path, metavar="DIR")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--cheap", action="store_true", help="none that takes more than ten seconds of a processor")
    which.add_argument("--full", action="store_true", help="whole versions: an hour of a processor")
    options = parser.parse_args()
    form: Form = "full" if options.full else "fast"
    out: Path = options.out / form
    runner = Runner(fast=form == "fast")
    kept = Kept(out, runner.files, form)
    wanted = [name for name, file in available().items() if not read(file).measured]
    figures = [runner.figure(name) for name in wanted if not (options.cheap and name in DEAR)]
    missing = [spec for spec in figures if kept.outcome(spec, spec.seed) is None]
    if missing:
        print(f"{out}: {len(missing)} of {len(figures)} figures are to be drawn", file=sys.stderr)
    with runner:
        for number, spec in enumerate(missing, 1):
            left = missing[number:]
            with Meter(f"figure {spec.id}, {number} of {len(missing)}") as report:
                kept.put_outcome(runner.run(spec, out, report, left), spec.seed)
            runner.forget(left)
    return 0


if __name__ == "__main__":
    sys.exit(main())
