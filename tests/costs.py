# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Estimates what a figure's short version costs, so that tests can choose the cheap ones."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from flowstamp import _flowstamp
from flowstamp.figures import FigureSpec, available, read
from flowstamp.figures.spec import RunSpec


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


def bits_of(file: Path) -> float:
    """How many bits the links of a figure's short version could carry. Its CPU time is about proportional to that.

    A figure that only computes has none.
    """
    spec = short(file)
    own = sum(
        sum(rates(tree)) * _flowstamp.quantity("time", tree["duration"]) * int(sum(spec.where(run))) * spec.seeds
        for run, tree in scenarios(file)
    )
    return own + sum(bits_of(available(file.parent)[reuse.figure]) for reuse in spec.reuse)


def rates(tree: dict[str, Any]) -> Iterator[float]:
    """The rates of a scenario's links in bits/s, the highest of those that change, without access links and traces."""
    yield from tree_rates(tree)
    lot = [{"rate": rate} for rate in tree.get("parking_lot", {}).get("rates", ())]
    for link in [*([tree["dumbbell"]] if "dumbbell" in tree else ()), *lot, *tree.get("graph", {}).get("links", ())]:
        rate = link["rate"]
        steps = [rate] if isinstance(rate, str) else [step for _, step in rate.get("steps", ())]
        yield max((_flowstamp.quantity("rate", step) for step in steps), default=0.0)


def tree_rates(tree: dict[str, Any]) -> list[float]:
    """The rates of a fat tree's links in bits/s: three layers of as many links as hosts, in both directions."""
    if "fat_tree" not in tree:
        return []
    of = tree["fat_tree"]
    return [_flowstamp.quantity("rate", of["rate"])] * (6 * of["k"] ** 3 // 4)
