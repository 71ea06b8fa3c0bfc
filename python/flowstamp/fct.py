# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Flow completion time (FCT) slowdown by flow size, the usual measure for data centre networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from flowstamp.errors import ResultsError
from flowstamp.names import nearest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flowstamp.results import Results

PERCENTILES = {50: "p50", 95: "p95", 99: "p99", 99.9: "p999"}
"""Names of percentiles in rows."""


def fct_slowdown(
    results: Results, bins: int | Sequence[float] = 10, *, group: str | None = None
) -> list[dict[str, float]]:
    """Returns the slowdown by flow size: one row for each size bin with flows. Slowdown is FCT divided by ideal FCT.

    The ideal FCT is the time on an idle path: packets back to back at the slowest link, without a handshake
    (`ideal_fct_s` in the table of flows). The rows cover flows that started after the warm-up and completed.

    A row has `min_bytes` and `max_bytes` (the given bounds, or those of its flows), `median_bytes`, `count`, and the
    slowdown's `mean`, `p50`, `p95`, `p99`, `p999` (the 99.9th percentile) and `max`. Percentiles use the nearest rank.

    Raises `ResultsError` for invalid bins, an unknown group, or results without `ideal_fct_s`.

    Args:
        results: results of a run.
        bins: number of bins with equally many flows each, or increasing bounds in bytes (upper bounds exclusive).
        group: restricts the rows to the flows of this group.
    """
    sizes, slowdowns = _of_flows(results, group)
    if isinstance(bins, int):
        if bins < 1:
            raise ResultsError(f"bins: is {bins}; it must be at least 1")
        # Flows of equal size stay in one bin.
        ranks = np.minimum((np.arange(1, bins) * sizes.size) // bins, max(sizes.size - 1, 0))
        inner = sizes[np.unique(ranks)] if sizes.size else sizes
        bounds = np.unique(np.concatenate([sizes[:1], inner, sizes[-1:] + 1]))
        given = False
    else:
        bounds = np.asarray(bins, np.float64)
        if bounds.size < 2 or (np.diff(bounds) <= 0).any():
            raise ResultsError(f"bins: is {list(bins)}; bounds in bytes must rise, and be two at least")
        given = True
    rows = []
    for low, high in pairwise(bounds):
        inside = (sizes >= low) & (sizes < high)
        if not inside.any():
            continue
        values, own = np.sort(slowdowns[inside]), sizes[inside]
        rank = [max(int(np.ceil(p / 100 * values.size)), 1) - 1 for p in PERCENTILES]
        rows.append(
            {
                "min_bytes": float(low if given else own[0]),
                "max_bytes": float(high if given else own[-1]),
                "median_bytes": float(np.median(own)),
                "count": int(values.size),
                "mean": float(values.mean()),
                **{name: float(values[at]) for name, at in zip(PERCENTILES.values(), rank, strict=True)},
                "max": float(values[-1]),
            }
        )
    return rows


def slowdown_figure(
    runs: Results | Mapping[str, Results],
    bins: int | Sequence[float] = 10,
    *,
    group: str | None = None,
    percentiles: Sequence[float] = (50, 99),
) -> Figure:
    """Draws slowdown against flow size, on logarithmic axes, for one run or several runs by name.

    Each percentile (50, 95, 99 or 99.9) has a panel. `bins` and `group` are as in `fct_slowdown`. Raises `ResultsError`
    for another percentile, or if no flow counts.
    """
    from flowstamp import plot

    named: Mapping[str, Results] = runs if isinstance(runs, Mapping) else {"": runs}
    unknown = [p for p in percentiles if p not in PERCENTILES]
    if unknown or not percentiles:
        raise ResultsError(f"percentiles: is {list(percentiles)}; there are {', '.join(map(str, PERCENTILES))}")
    rows = {name: fct_slowdown(run, bins, group=group) for name, run in named.items()}
    if not any(rows.values()):
        raise ResultsError("no flow with a size started after the warm-up and completed; run longer")
    panels: list[plot.Panel] = []
    for percentile in percentiles:
        curves = [
            plot.Curve(
                name,
                np.array([row["median_bytes"] for row in of_run]),
                np.array([row[PERCENTILES[percentile]] for row in of_run]),
                style,
            )
            for style, (name, of_run) in enumerate(rows.items())
        ]
        label = "median" if percentile == 50 else f"{percentile}th percentile"
        legend = not panels and len(named) > 1
        title = f"Completion time over the ideal: {label}"
        panels.append(plot.Panel("Slowdown", curves, title=title, yscale="log", legend=legend))
    name = next(iter(named.values())).summary["name"]
    return plot.stack(plot.Stack("Flow size (bytes)", panels, xscale="log", title=name))


def _of_flows(results: Results, group: str | None) -> tuple[Any, Any]:
    """Returns sizes in bytes and slowdowns as arrays, sorted by size."""
    flows = results.flows
    if "ideal_fct_s" not in flows.column_names:
        raise ResultsError("the results have no ideal_fct_s; they are of an earlier version, run the scenario again")
    if group is not None and group not in results.groups:
        raise ResultsError(f"group: {nearest(group, results.groups, 'is not a group')}")
    warmup_s = results.summary["warmup_s"]
    names = ("group", "size_bytes", "start_s", "fct_s", "ideal_fct_s")
    found = [
        (size, fct_s / ideal_s)
        for of, size, start_s, fct_s, ideal_s in zip(*(flows.column(name) for name in names), strict=True)
        if fct_s is not None and ideal_s is not None and start_s >= warmup_s and group in (None, of)
    ]
    found.sort()
    table = np.array(found, np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1]
