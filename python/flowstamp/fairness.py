# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Jain's fairness index of a group's flows: while all of them are active, and over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from flowstamp import text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from flowstamp.results import Results
    from flowstamp.scenario import Scenario

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Fairness:
    """Jain's index of a group, and the part of the run that it covers."""

    index: float | None
    """The index, 0 to 1; None if no samples of all flows lie in this part."""
    from_s: float
    until_s: float


def sampled(scenario: Scenario, most: int, *, memory: str | None = None) -> Scenario:
    """Adds samples of the long flows if there are at most `most` and the scenario does not set `probes.flows`."""
    if "flows" in scenario.tree.get("probes", {}) or any(key == "probes.flows" for key, _ in scenario.overrides):
        return scenario
    groups = scenario.resolved(memory=memory)["flows"]
    long = sum(group.get("count", 1) for group in groups if not (group.get("web") or group.get("list")))
    return scenario.probe(flows=True) if 0 < long <= most else scenario


def jain(shares: Floats) -> float | None:
    """Returns Jain's index of the shares; None if they are all zero."""
    squares = float(np.sum(shares * shares))
    return float(np.sum(shares)) ** 2 / (shares.size * squares) if squares else None


def while_all_active(results: Results) -> dict[str, Fairness]:
    """Returns Jain's index of each group of long flows, over the time in which all of them are active.

    That time starts after warm-up, when the last flow starts, and ends when the first one ends. If it is shorter than
    the measured time, the index follows from samples of the flows (`probes.flows`), and a group without such samples
    has no entry. Nor does a group whose flows are never active together.
    """
    found = {}
    measured_s = (results.summary["warmup_s"], results.summary["duration_s"])
    for group, spans in _active(results).items():
        whole = results.groups[group]["jain_index"]
        from_s = max(measured_s[0], *(start for start, _ in spans.values()))
        until_s = min(measured_s[1], *(end for _, end in spans.values()))
        if whole is None or from_s >= until_s:
            continue
        if (from_s, until_s) == measured_s:
            found[group] = Fairness(whole, from_s, until_s)
            continue
        times, rates = _sampled(results, list(spans))
        if times.size < 2:
            continue
        # A sample covers the interval that ends with it.
        inside = (times - (times[1] - times[0]) >= from_s - 1e-9) & (times <= until_s + 1e-9)
        found[group] = Fairness(jain(rates[:, inside].mean(axis=1)) if inside.any() else None, from_s, until_s)
    return found


def cells(group: str, results: Mapping[str, Results], fair: Mapping[str, Mapping[str, Fairness]]) -> list[str]:
    """Formats Jain's index while all flows are active; without samples of that time, over each flow's own time."""
    if not any(group in of_run for of_run in fair.values()):
        return [text.maybe(result.groups[group]["jain_index"]) for result in results.values()]
    return [text.maybe(fair[name][group].index if group in fair[name] else None) for name in results]


def over_time(results: Results, average_s: float = 0.0) -> tuple[Floats, Floats]:
    """Returns times and Jain's index of the flows that are active then; both are empty without samples.

    The index is NaN while fewer than two flows are active. Flows of all groups count. `average_s` averages their
    throughputs first.
    """
    from flowstamp.plot import averaged

    spans = {flow: span for of in _active(results).values() for flow, span in of.items()}
    times, rates = _sampled(results, list(spans))
    if times.size < 2:
        return np.empty(0), np.empty(0)
    if average_s:
        rates = np.array([averaged(times, of_flow, average_s)[1] for of_flow in rates])
        times, _ = averaged(times, times, average_s)
    if times.size < 2:
        return np.empty(0), np.empty(0)
    starts, ends = np.array(list(spans.values())).T
    began = times - (times[1] - times[0])
    active = (starts[:, None] <= began + 1e-9) & (times <= ends[:, None] + 1e-9)
    shares = np.where(active, rates, 0.0)
    count, squares = active.sum(axis=0), (shares * shares).sum(axis=0)
    known = (count > 1) & (squares > 0)
    index = np.full(times.size, np.nan)
    index[known] = shares.sum(axis=0)[known] ** 2 / (count * squares)[known]
    return times, index


def _active(results: Results) -> dict[str, dict[str, tuple[float, float]]]:
    """Returns the start and the end in seconds of each long flow, by group and by the flow's name in the samples."""
    table, groups = results.flows, results.groups
    columns = (table.column(name) for name in ("group", "index", "start_s", "end_s", "stop_s"))
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for group, index, start_s, *ends in zip(*columns, strict=True):
        if groups[group]["jain_index"] is not None:
            end_s = min((end for end in ends if end is not None), default=np.inf)
            found.setdefault(group, {})[f"{group}.{index}"] = (start_s, end_s)
    return found


def _sampled(results: Results, flows: Sequence[str]) -> tuple[Floats, Floats]:
    """Returns times and the flows' goodputs of shape (flows, times); both are empty if a flow was not sampled."""
    from flowstamp.plot import series

    curves = [series(results, "flow", name, "goodput_bps") for name in flows]
    if not curves or any(times.size != curves[0][0].size for times, _ in curves):
        return np.empty(0), np.empty((0, 0))
    return curves[0][0], np.array([rates for _, rates in curves])
