# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures of data-centre networks: slowdowns, incasts and collective operations, the worst queue, and max-min shares.

A flow's *slowdown* is its completion time over its ideal time, which is that of its idle path (`ideal_fct_s`).
"""

from __future__ import annotations

import copy
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowstamp import _flowstamp, paired
from flowstamp.figures import fct

Floats = NDArray[np.float64]

PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9, "max": 100.0}
BINS = 10
"""Bins of flow sizes in panels; each has equally many flows."""


# ---------------------------------------------------------------------------------------------------- slowdowns


def _slowdowns(run: Any, group: str) -> tuple[Floats, Floats]:
    """Returns sizes in packets and slowdowns of a group's completed flows after warm-up, sorted by size."""
    which = fct.chosen(run, group)
    sizes, values = run.times.packets[which], run.times.fct_s[which] / run.times.ideal_s[which]
    order = np.argsort(sizes, kind="stable")
    return sizes[order], values[order]


def percentile(values: Floats, statistic: str) -> float:
    """Returns a percentile by nearest rank, or the mean; NaN without values."""
    if statistic == "mean":
        return fct.mean(values)
    if statistic not in PERCENTILES:
        raise ValueError(f'"{statistic}" is none of mean, {", ".join(PERCENTILES)}')
    return paired.percentile(values, PERCENTILES[statistic] / 100)


def slowdown_by_size(run: Any, group: str, statistic: str) -> tuple[Floats, Floats]:
    """Returns the median size in packets and a statistic of the slowdown for each of `BINS` bins of as many flows."""
    sizes, values = _slowdowns(run, group)
    parts = [part for part in np.array_split(np.arange(sizes.size), BINS) if part.size]
    return (
        np.array([float(np.median(sizes[part])) for part in parts]),
        np.array([percentile(values[part], statistic) for part in parts]),
    )


def _slowdown(runs: fct.RunSetLike, statistic: str, low: float, high: float) -> Floats:
    """Returns a statistic of the slowdown of flows with low <= L < high packets, for each point."""
    return _slowdown_of(runs, runs.group, statistic, low, high)


def _slowdown_of(runs: fct.RunSetLike, group: str, statistic: str, low: float, high: float) -> Floats:
    """Does the same as `_slowdown` for a given group."""

    def of(run: Any) -> float:
        sizes, values = _slowdowns(run, group)
        return percentile(values[(sizes >= low) & (sizes < high)], statistic)

    return np.array([of(run) for run in runs.runs])


def _slowdown_measure(statistic: str) -> Callable[[Any, str], float]:
    return lambda run, group: percentile(_slowdowns(run, group)[1], statistic)


# ---------------------------------------------------------------------------------------------------- operations


def _operations(run: Any, group: str) -> Mapping[str, Any]:
    found = run.summary["groups"][group].get("operations")
    if found is None:
        raise ValueError(f'"{group}" has no incasts of a given total and no collective operations')
    return found  # type: ignore[no-any-return]


def _operation_ms(statistic: str) -> Callable[[Any, str], float]:
    def of(run: Any, group: str) -> float:
        times = _operations(run, group)["time_s"]
        return math.nan if times is None else 1e3 * float(times[statistic])

    return of


def _operation_slowdown(run: Any, group: str) -> float:
    found = _operations(run, group)["slowdown"]
    return math.nan if found is None else float(found["mean"])


def _completed_operations(run: Any, group: str) -> float:
    found = _operations(run, group)
    return float(found["completed"]) / float(found["started"]) if found["started"] else math.nan


# ---------------------------------------------------------------------------------------------------- links


def _longest_us(run: Any, queue: str) -> float:
    links: Mapping[str, Mapping[str, float]] = run.summary["links"]
    return max(8e6 * link[queue] / link["rate_bps"] for link in links.values())


def _largest_queue_us(run: Any, _group: str) -> float:
    """Returns the longest queue that any router link had, as the time that the link needs to send it."""
    return _longest_us(run, "max_queue_bytes")


def _largest_p99_queue_us(run: Any, _group: str) -> float:
    """Returns the largest 99th percentile over time of a router link's queue, as the time to send it."""
    return _longest_us(run, "p99_queue_bytes")


def _largest_utilization(run: Any, _group: str) -> float:
    """Returns the share of its capacity that the busiest router link carries."""
    return max(float(link["utilization"]) for link in run.summary["links"].values())


# ---------------------------------------------------------------------------------------------------- shares


def max_min(routes: Sequence[Sequence[str]], capacity: float) -> Floats:
    """Returns the max-min shares of flows, one for each route, on links of equal capacity: progressive filling."""
    share = np.full(len(routes), np.nan)
    left = {link: capacity for route in routes for link in route}
    while np.isnan(share).any():
        open_ = [n for n in range(len(routes)) if math.isnan(share[n])]
        flows = Counter(link for n in open_ for link in routes[n])
        full = min(flows, key=lambda link: left[link] / flows[link])
        each = left[full] / flows[full]
        for n in open_:
            if full in routes[n]:
                share[n] = each
                for link in routes[n]:
                    left[link] -= each
    return share


def routes_of(scenario: Mapping[str, Any]) -> list[list[str]]:
    """Returns the links of each long-lived flow's path.

    A path depends on the group's name, the flow's number and the seed, but not on the law. The layout of loops names
    the paths, and only laws with routers have loops. RCP stands in.
    """
    tree = copy.deepcopy(dict(scenario))
    for name in ("fat_tree", "leaf_spine"):
        if tree.get(name) is not None:
            tree[name] |= {"router": "rcp", "queue": "droptail"}
    tree["flows"] = [{**group, "law": "rcp"} for group in tree["flows"]]
    _, routes, _ = _flowstamp.Source(json.dumps(tree), format="json").router_loops()
    return [[link for link, _ in route] for route, _, flows in routes for _ in range(flows)]


def max_min_ratios(run: Any, group: str) -> Floats:
    """Returns each flow's goodput over its max-min share, both sorted, because routes are not in the order of flows.

    A share is that of the links' capacity without headers and without the acks of other flows.
    """
    rows = [row for row in run.summary["flows"] if row["group"] == group]
    routes = routes_of(run.scenario)
    if len(rows) != len(routes):
        raise ValueError(f"{len(rows)} flows of {group} have {len(routes)} routes; flows must be endless, in one group")
    rates = {link["rate_bps"] for link in run.summary["links"].values()}
    if len(rates) != 1:
        raise ValueError("links have several rates; max-min shares are for links of one rate")
    payload = fct.payload(run.scenario, run.packet_bytes) / run.packet_bytes
    shares = np.sort(max_min(routes, rates.pop() * payload))
    found: Floats = np.sort([float(row["goodput_bps"]) for row in rows]) / shares
    return found


MEASURES: dict[str, Callable[[Any, str], float]] = {
    **{f"{statistic}_slowdown": _slowdown_measure(statistic) for statistic in ("mean", "p50", "p99", "p999")},
    **{f"{statistic}_operation_ms": _operation_ms(statistic) for statistic in ("mean", "p50", "p99", "max")},
    "operation_slowdown": _operation_slowdown,
    "completed_operations": _completed_operations,
    "largest_queue_us": _largest_queue_us,
    "largest_p99_queue_us": _largest_p99_queue_us,
    "largest_utilization": _largest_utilization,
}
OF_FLOWS: dict[str, Callable[[Any, str], Floats]] = {"max_min_ratio": max_min_ratios}
"""Measures with one value for each flow."""

FUNCTIONS: dict[str, tuple[int | None, Callable[..., Any]]] = {
    "slowdown": (4, _slowdown),
    "group_slowdown": (5, _slowdown_of),
}
