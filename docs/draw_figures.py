# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Draws the figures that the gallery shows: python docs/draw_figures.py [--cheap | --full] DIR.

Short versions into DIR/fast, with --full whole ones into DIR/full. What stands there is not run again, as with
`flowstamp figure`. What a kernel makes is left out: a build of the documentation loads no programs into it.
What claims gave is no matter of this program: `flowstamp figure` judges.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from flowstamp import _flowstamp
from flowstamp.figures import FigureSpec, available, read
from flowstamp.figures.kept import Kept
from flowstamp.figures.memory import Form
from flowstamp.figures.runner import Runner
from flowstamp.figures.spec import RunSpec
from flowstamp.progress import Meter

CHEAP_BITS = 1e11
"""What the links of a cheap figure may carry at most: about ten seconds of a processor."""


@cache
def short(file: Path) -> FigureSpec:
    """A figure's short version."""
    return read(file).fast_version()


@cache
def scenarios(file: Path) -> list[tuple[RunSpec, dict[str, Any]]]:
    """The simulated curves of a figure's short version, each with the scenario of its last point and all defaults."""
    spec, found = short(file), []
    for run in spec.simulated:
        point = max(point for point, there in enumerate(spec.where(run)) if there)
        text, source, sets, folder = spec.job(run, point)
        found.append((run, tomllib.loads(_flowstamp.Source(text, source=source, sets=sets, base_dir=folder).check())))
    return found


def bits(file: Path) -> float:
    """How many bits the links of a figure's short version could carry. Its CPU time is about proportional to that.

    A figure that only computes has none.
    """
    spec = short(file)
    own = sum(
        sum(rates(tree)) * _flowstamp.quantity("time", tree["duration"]) * int(sum(spec.where(run))) * spec.seeds
        for run, tree in scenarios(file)
    )
    return own + sum(bits(available(file.parent)[reuse.figure]) for reuse in spec.reuse)


def rates(tree: dict[str, Any]) -> Iterator[float]:
    """The rates of a scenario's links in bits/s, the highest of those that change, but for access links and traces."""
    lot = [{"rate": rate} for rate in tree.get("parking_lot", {}).get("rates", ())]
    for link in [*([tree["dumbbell"]] if "dumbbell" in tree else ()), *lot, *tree.get("graph", {}).get("links", ())]:
        rate = link["rate"]
        steps = [rate] if isinstance(rate, str) else [step for _, step in rate.get("steps", ())]
        yield max((_flowstamp.quantity("rate", step) for step in steps), default=0.0)


def main() -> int:
    """Runs what is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path, metavar="DIR")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--cheap", action="store_true", help="none that takes more than about ten seconds of a processor"
    )
    which.add_argument("--full", action="store_true", help="whole versions: an hour of a processor")
    options = parser.parse_args()
    form: Form = "full" if options.full else "fast"
    out: Path = options.out / form
    runner = Runner(fast=form == "fast")
    kept = Kept(out, runner.files, form)
    wanted = [name for name, file in available().items() if not read(file).measured]
    figures = [runner.figure(name) for name in wanted if not (options.cheap and bits(runner.files[name]) > CHEAP_BITS)]
    missing = [spec for spec in figures if kept.outcome(spec, spec.seed) is None]
    if missing:
        print(f"{out}: {len(missing)} of {len(figures)} figures are to be drawn", file=sys.stderr)
    with runner:
        for number, spec in enumerate(missing, 1):
            left = missing[number:]
            with Meter(f"figure {spec.id}, {number} of {len(missing)}") as report:
                kept.put(runner.run(spec, out, report, left), spec.seed)
            runner.forget(left)
    return 0


if __name__ == "__main__":
    sys.exit(main())
