# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Paired comparison of protocols: completion times of the same flows under both, with a confidence interval."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from flowstamp import theory
from flowstamp.errors import UsageError
from flowstamp.names import nearest

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

    from flowstamp.results import Results

    Floats = NDArray[np.float64]

BATCHES = 10


def percentile(times: ArrayLike, share: float) -> float:
    """Returns the percentile (nearest rank) of the times at `share`, 0 to 1; NaN if there are no times."""
    found = np.asarray(times, np.float64)
    return float(np.percentile(found, 100 * share, method="inverted_cdf")) if found.size else math.nan


def _percentile(share: float) -> Callable[[Floats], float]:
    return partial(percentile, share=share)


METRICS: dict[str, tuple[str, int, Callable[[Floats], float]]] = {
    # Name; minimum flows per batch, so that ten lie beyond the percentile; function.
    "mean_fct": ("mean completion time", 20, lambda times: float(times.mean())),
    "p50_fct": ("median completion time", 20, _percentile(0.5)),
    "p95_fct": ("95th percentile of completion times", 200, _percentile(0.95)),
    "p99_fct": ("99th percentile of completion times", 1000, _percentile(0.99)),
}


def check(metric: str) -> None:
    """Raises `UsageError` for an unknown metric."""
    if metric not in METRICS:
        raise UsageError(f"--metric: {nearest(metric, METRICS, 'is not a metric')}")


def differences(results: Mapping[str, Results], metric: str) -> list[dict[str, Any]]:
    """Returns the ratio of completion times for each pair of protocols and each group of random or listed flows.

    Flows that started after warm-up and completed under both protocols are divided into ten batches by start. Each
    batch gives one ratio of the metric. `low` and `high` bound the ratio's 95% confidence interval: Student's t on the
    logarithms of the batch ratios. They are None with too few flows. `left_out` counts flows that completed under only
    one of the two.
    """
    check(metric)
    some = next(iter(results.values()))
    webs = [flows["name"] for flows in some.manifest["scenario"]["flows"] if flows.get("web") or flows.get("list")]
    rows = []
    for group in webs:
        times = {name: _times(result, group) for name, result in results.items()}
        for one, other in itertools.combinations(results, 2):
            rows.append({"group": group, "metric": metric, **_pair(metric, one, other, times[one], times[other])})
    return rows


def _times(result: Results, group: str) -> Floats:
    """Returns completion times by flow number; NaN for flows that started in warm-up or did not complete."""
    table, warmup_s = result.flows, result.summary["warmup_s"]
    columns = (table.column(name) for name in ("group", "index", "start_s", "fct_s"))
    found = [(n, start, fct) for of, n, start, fct in zip(*columns, strict=True) if of == group]
    times = np.full(max((n for n, _, _ in found), default=-1) + 1, np.nan)
    for n, start_s, fct_s in found:
        if start_s >= warmup_s and fct_s is not None:
            times[n] = fct_s
    return times


def _pair(metric: str, one: str, other: str, first: Floats, second: Floats) -> dict[str, Any]:
    _, least, statistic = METRICS[metric]
    length = min(first.size, second.size)
    first, second = first[:length], second[:length]
    both = np.isfinite(first) & np.isfinite(second)
    left_out = int(np.sum(np.isfinite(first) != np.isfinite(second)))
    first, second = first[both], second[both]
    row: dict[str, Any] = {"protocol": one, "against": other, "flows": int(first.size), "left_out": left_out}
    needed = BATCHES * least
    row |= {"needs_flows": needed, "ratio": None, "low": None, "high": None}
    if first.size:
        row["ratio"] = statistic(first) / statistic(second)
    if first.size >= needed:
        batches = zip(np.array_split(first, BATCHES), np.array_split(second, BATCHES), strict=True)
        logs = np.array([math.log(statistic(a) / statistic(b)) for a, b in batches])
        interval = theory.batch_means(logs, BATCHES)
        row["low"] = math.exp(interval.mean - interval.half_width)
        row["high"] = math.exp(interval.mean + interval.half_width)
    return row


def distributions(results: Mapping[str, Results]) -> Figure:
    """Draws the distribution of completion times under each protocol, with one panel per group."""
    from flowstamp import plot

    some = next(iter(results.values()))
    panels = []
    for group in some.groups:
        curves = []
        for style, (name, result) in enumerate(results.items()):
            times = _times(result, group)
            times = np.sort(times[np.isfinite(times)])
            share = np.arange(1, times.size + 1) / max(times.size, 1)
            # More than 1000 points would not be visible.
            kept = np.unique(np.linspace(0, times.size - 1, min(times.size, 1000)).astype(int))
            curves.append(plot.Curve(name, times[kept], share[kept], style))
        if any(curve.x.size for curve in curves):
            title = f"Completion times of {group}"
            panels.append(plot.Panel("Share of flows", curves, title=title, ylim=(0, 1.02), legend=True))
    return plot.stack(
        plot.Stack("Flow completion time (s)", panels, xscale="log", markers=False, title=some.summary["name"])
    )


def text_of(row: Mapping[str, Any]) -> str:
    """Formats one line: which protocol is faster, by how much, and on how many flows that rests."""
    what = METRICS[row["metric"]][0]
    one, other, low, high = row["protocol"], row["against"], row["low"], row["high"]
    counted = f"{row['flows']} flows that completed under both"
    if row["left_out"]:
        counted += f", {row['left_out']} under one only"
    if low is None:
        few = f"too few flows to tell, {row['needs_flows']} are needed"
        return f"{row['group']}, {what}, {one} and {other}: {few} ({counted})"
    if high < 1:
        verdict = f"{one} beats {other} by {_percents(1 - high, 1 - low)}"
    elif low > 1:
        verdict = f"{other} beats {one} by {_percents(1 - 1 / low, 1 - 1 / high)}"
    else:
        verdict = f"no difference is shown: {one} takes {low:.3g} to {high:.3g} times as long as {other}"
    return f"{row['group']}, {what}: {verdict} (95% interval; {counted})"


def _percents(low: float, high: float) -> str:
    def percent(share: float) -> str:
        return f"{100 * share:.0f}%" if share >= 0.02 else f"{100 * share:.2g}%"

    return f"{percent(low)} to {percent(high)}"
