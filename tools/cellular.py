#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Compares the laws of figure ABC on recordings of cellular links, and prints a table.

    .venv/bin/python tools/cellular.py FOLDER-OR-FILE...

A recording has Mahimahi's format. Recordings are not part of the project: Mahimahi's `traces` folder has those of the
ABC paper. Each law runs for 140 s with an RTT of 100 ms, as in the authors' scripts. A delay is that of a packet from
sender to receiver. The last column is the mean over the recordings.
"""

from __future__ import annotations

import math
import sys
import tomllib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import flowstamp as fs

FIGURE = Path(__file__).parents[1] / "figures" / "ABC.toml"
DURATION = "140s"
SUFFIXES = (".up", ".down", ".txt")


def recordings(paths: Sequence[str]) -> list[Path]:
    """The files among `paths`, and the recordings in its folders."""
    found = []
    for path in map(Path, paths):
        inside = sorted(p for p in path.iterdir() if p.suffix in SUFFIXES) if path.is_dir() else [path]
        found += [file for file in inside if file.stat().st_size]
    return found


def measured(run: dict[str, Any], trace: Path, duration: str) -> tuple[float, float, float]:
    """Utilisation, mean and 95th percentile of the packet delay in ms."""
    scenario = fs.load(FIGURE).set("dumbbell.rate.trace", str(trace.resolve())).set("duration", duration)
    for key, value in run.get("set", {}).items():
        scenario = scenario.set(key, value)
    summary = scenario.run().summary
    delays = summary["groups"]["flow"]["packet_delay_s"]
    mean, tail = (math.nan if delays[key] is None else 1e3 * delays[key] for key in ("mean", "p95"))
    return summary["links"]["bottleneck"]["utilization"], mean, tail


def cell(values: tuple[float, ...]) -> str:
    """A cell of the table: utilisation, mean and 95th percentile."""
    used, middle, tail = values
    return f"{100 * used:.1f}%, {middle:.0f}, {tail:.0f}"


def main(paths: Sequence[str], duration: str = DURATION) -> int:
    """Prints the table of these recordings."""
    traces = recordings(paths)
    if not traces:
        print("no recordings: give files in Mahimahi's format, or a folder of *.up and *.down; nothing is judged")
        return 0
    figure = tomllib.loads(FIGURE.read_text(encoding="utf-8"))
    print("Each cell: utilisation, mean and 95th percentile of the packet delay in ms.\n")
    print(f"| law | {' | '.join(trace.name for trace in traces)} | mean |")
    print(f"|---|{'---|' * (len(traces) + 1)}")
    means = {}
    for run in figure["runs"]:
        rows = [measured(run, trace, duration) for trace in traces]
        mean = tuple(sum(column) / len(rows) for column in zip(*rows, strict=True))
        means[run["name"]] = mean
        print(f"| {run['label']} | {' | '.join(map(cell, [*rows, mean]))} |")
    abc, codel = means["abc"], means["codel"]
    print(
        f"\nABC's mean utilisation over that of CUBIC with CoDel: {abc[0] / codel[0]:.2f} (the paper's abstract: 1.5)"
    )
    for name, law in (("XCP", means["xcp"]), ("XCPw", means["xcpw"])):
        print(f"{name}'s mean utilisation and 95th percentile over ABC's: {law[0] / abc[0]:.2f}, {law[2] / abc[2]:.2f}")
    return 0


if __name__ == "__main__":
    warnings.simplefilter("ignore", fs.ScenarioWarning)
    sys.exit(main(sys.argv[1:]))
