#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Compares RCP's completion times with processor sharing, and every run with Little's law and conservation of work.

    .venv/bin/python tools/ideals.py                  # figures 4.1 and 4.2 in full: some minutes
    .venv/bin/python tools/ideals.py --fast

Prints its tables. The exit code is 1 if Little's law or conservation of work is violated, or if
a size bin with at least 100 flows is further from PS than the limit without a reason in REASONS.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import engine
import numpy as np

from flowstamp import _flowstamp
from flowstamp.figures import fct
from flowstamp.figures.measures import Finished
from flowstamp.figures.runner import Runner
from flowstamp.figures.spec import FigureSpec, RunSpec

FIGURES = ("R4.1", "R4.2")
GROUP = "forward"
LIMIT = 0.15  # relative, of a bin's mean from processor sharing
WORK_LIMIT = 1e-9  # relative: sums of a hundred thousand numbers of 16 digits

# Why a bin of a figure may be further from an ideal than the limit, by (figure, ideal).
REASONS: dict[tuple[str, str], str] = {
    (
        figure,
        ideal,
    ): "with alpha = 0.1 and beta = 1 the law rests where the mean queue is a tenth of the idle share, "
    f"which holds R below a server's share (the figure's file, claim `rcp-{ideal}`); a larger "
    "`dumbbell.router.alpha` brings it nearer, at the price of a longer queue"
    for figure in FIGURES
    for ideal in ("ps", "server")
}


@dataclass(frozen=True)
class Law:
    """Laws that every run must obey, whatever the protocol."""

    figure: str
    run: str
    mean_active: float
    product: float
    difference: float
    edge_bound: float
    unaccounted: float
    work: float

    @property
    def holds(self) -> bool:
        return self.unaccounted == 0 and self.difference <= self.edge_bound * (1 + 1e-12) and self.work <= WORK_LIMIT


def simulate(spec: FigureSpec, run: RunSpec) -> tuple[Finished, float]:
    """A finished run, and the bytes delivered after warm-up by its flows' counts."""
    text, source, sets, folder = spec.job(run, 0)
    result = _flowstamp.Source(text, source=source, sets=sets, base_dir=folder).run()
    scenario = tomllib.loads(result.scenario_toml())
    kept = Finished.of(
        result, flow_series=False, packet_bytes=_flowstamp.quantity("size", scenario["packet"]), scenario=scenario
    )
    begin, end = float(kept.summary["warmup_s"]), float(kept.summary["duration_s"])
    flows = result.flows
    column = {name: np.array(flows.column(name), np.float64) for name in ("start_s", "end_s", "goodput_bps")}
    until = np.where(np.isnan(column["end_s"]), end, column["end_s"])
    there = np.maximum(until - np.maximum(column["start_s"], begin), 0)
    return kept, float(np.sum(column["goodput_bps"] * there)) / 8


def law(figure: str, name: str, run: Finished, delivered: float) -> Law:
    """Little's law from the summary; work that the group counted on arrival against the sum over its flows."""
    group = run.summary["groups"][GROUP]
    found = group["littles_law"]
    arrived = group["goodput_bps"] * (run.summary["duration_s"] - run.summary["warmup_s"]) / 8
    return Law(
        figure,
        name,
        found["mean_active"],
        found["completed_per_s"] * found["mean_fct_s"],
        found["relative_difference"],
        found["edge_bound"],
        found["unaccounted"],
        abs(delivered / arrived - 1),
    )


def laws_table(laws: list[Law]) -> str:
    rows = [
        f"| {x.figure} | {x.run} | {x.mean_active:.5g} | {x.product:.5g} | {x.difference:.2%} | {x.edge_bound:.2%} | "
        f"{x.unaccounted:.1g} | {x.work:.1g} | {'yes' if x.holds else '**no**'} |"
        for x in laws
    ]
    header = (
        "| figure | run | mean active flows | completed/s x mean time | apart | most, by the window's ends | "
        "unaccounted | work unaccounted | holds |\n|---|---|---|---|---|---|---|---|---|"
    )
    return "\n".join([header, *rows])


def bins_table(figure: str, run: Finished) -> tuple[str, set[str], list[str]]:
    """Each bin with at least 100 flows beside formula and server; the reasons used; the bins without a reason."""
    rows, unexplained = [], []
    reasons: set[str] = set()
    for found in fct.bins(run, GROUP, fct.LEAST_FLOWS):
        cells = []
        for ideal in ("ps", "server"):
            ratio = found.mean_s / found.ideal_s[ideal]
            beyond = abs(ratio - 1) > LIMIT
            reason = REASONS.get((figure, ideal))
            if beyond and reason is not None:
                reasons.add(f"Beyond {LIMIT:.0%} of {'equation 4.1' if ideal == 'ps' else 'the server'}: {reason}.")
            elif beyond:
                unexplained.append(f"{figure}, {found.low:.0f} to {found.high - 1:.0f} packets: {ratio:.3f} x {ideal}")
            cells += [f"{found.ideal_s[ideal]:.4f}", f"**{ratio:.3f}**" if beyond else f"{ratio:.3f}"]
        half = 1e3 * found.half_width_s
        rows.append(
            f"| {found.low:.0f} to {found.high - 1:.0f} | {found.flows} | {found.mean_s:.4f} ± {half:.2g} ms | "
            + " | ".join(cells)
            + " |"
        )
    header = (
        "| packets | flows | RCP's AFCT, s | PS, eq. 4.1, s | ratio | PS, same arrivals, s | ratio |\n"
        "|---|---|---|---|---|---|---|"
    )
    return "\n".join([header, *rows]), reasons, unexplained


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fast", action="store_true", help="the short versions of the figures")
    parser.add_argument("--only", action="append", metavar="RUN", help="of a figure's runs only this; may be repeated")
    arguments = parser.parse_args()
    runner = Runner(fast=arguments.fast, directory=Path(engine.ROOT / "figures"))
    parts: list[str] = []
    laws: list[Law] = []
    unexplained: list[str] = []
    for figure in FIGURES:
        spec = runner.figure(figure)
        wanted = tuple(r for r in spec.runs if not arguments.only or r.name in arguments.only)
        if "rcp" not in [r.name for r in wanted]:
            parser.error(
                f"rcp is what is held against processor sharing; {figure} has {', '.join(r.name for r in spec.runs)}"
            )
        for run in wanted:
            finished, delivered = simulate(spec, run)
            laws.append(law(figure, run.name, finished, delivered))
            print(f"{figure} {run.name}", file=sys.stderr)
            if run.name == "rcp":
                table, why, beyond = bins_table(figure, finished)
                unexplained += beyond
                parts.append("\n\n".join([f"### {spec.title} ({figure})", table, *sorted(why)]))
    broken = [x for x in laws if not x.holds]
    told = "None." if not unexplained else "\n".join(f"- {line}" for line in unexplained)
    text = "\n\n".join(
        [
            "## RCP against processor sharing, and laws that hold in every run",
            f"`.venv/bin/python tools/ideals.py`: every size bin with at least {fct.LEAST_FLOWS} flows, full versions, "
            "seed 1. PS by equation 4.1 is at the load named, PS of the same arrivals is an exact server. "
            f"Bold: more than {LIMIT:.0%} apart. Half widths are those of 95% intervals by ten batch means.",
            *parts,
            f"Bins beyond {LIMIT:.0%} without a reason: {told}",
            "### Little's law and work",
            "Mean active flows are counted during the run, the product comes from the flows that completed after "
            "warm-up. *Unaccounted*: what is left when the flows that straddle the window's ends are counted in, in "
            "whole picoseconds. *Work*: bytes delivered, counted on arrival, against the sum over the flows, relative.",
            laws_table(laws),
        ]
    )
    print(text)
    return 1 if broken or unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
