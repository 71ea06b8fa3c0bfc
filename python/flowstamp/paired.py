# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Which of two protocols is quicker, flow by flow: the same arrivals under both, and an interval for the difference."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from flowstamp import theory
from flowstamp.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

    from flowstamp.results import Results

    Floats = NDArray[np.float64]

BATCHES = 10


def percentile(times: ArrayLike, share: float) -> float:
    """The time within which this share of them were done; not a number of none."""
    found = np.asarray(times, np.float64)
    return float(np.percentile(found, 100 * share, method="inverted_cdf")) if found.size else math.nan


def _percentile(share: float) -> Callable[[Floats], float]:
    return partial(percentile, share=share)


METRICS: dict[str, tuple[str, int, Callable[[Floats], float]]] = {
    # What it is; how many flows a batch has at least, so that ten lie beyond a percentile; how it is computed.
    "mean_fct": ("mean completion time", 20, lambda times: float(times.mean())),
    "p50_fct": ("median completion time", 20, _percentile(0.5)),
    "p95_fct": ("95th percentile of completion times", 200, _percentile(0.95)),
    "p99_fct": ("99th percentile of completion times", 1000, _percentile(0.99)),
}


def check(metric: str) -> None:
    """Refuses a metric that there is not."""
    if metric not in METRICS:
        raise UsageError(f'--metric: "{metric}" is no metric; there are {", ".join(METRICS)}')


def differences(results: Mapping[str, Results], metric: str) -> list[dict[str, Any]]:
    """How many times as long one protocol takes as another, for each two and each group of random or listed flows.

    Flows that started after warm-up and completed under both are put in ten batches by when they started. Of each
    batch the metric's ratio is taken, of the same flows under both; `low` and `high` bound the ratio's 95% interval
    (Student's, of the ratios' logarithms), null where there are too few flows. `left_out` flows completed under one of
    the two only.
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
    """Completion times by the flows' numbers; not a number of those that began in warm-up or did not complete."""
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
    """The distribution of completion times under each protocol, a panel for each group."""
    from flowstamp import plot

    some = next(iter(results.values()))
    panels = []
    for group in some.groups:
        curves = []
        for style, (name, result) in enumerate(results.items()):
            times = _times(result, group)
            times = np.sort(times[np.isfinite(times)])
            share = np.arange(1, times.size + 1) / max(times.size, 1)
            # As many points as can be seen.
            kept = np.unique(np.linspace(0, times.size - 1, min(times.size, 1000)).astype(int))
            curves.append(plot.Curve(name, times[kept], share[kept], style))
        if any(curve.x.size for curve in curves):
            title = group if len(some.groups) > 1 else ""
            panels.append(plot.Panel("Share of flows", curves, title=title, legend=True))
    return plot.stack(plot.Stack("Flow completion time (s)", panels, xscale="log", markers=False))


def text_of(row: Mapping[str, Any]) -> str:
    """A line that says which is quicker, by how much, and how that is known."""
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
