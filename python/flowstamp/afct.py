# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Average flow completion times (AFCT) by flow size for several protocols, processor sharing and the lower bound."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flowstamp import _flowstamp
from flowstamp.figures import fct
from flowstamp.figures.measures import Finished

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flowstamp.results import Results

IDEALS = {"ps": "PS", "bound": "lower bound"}


def by_size(results: Mapping[str, Results]) -> dict[str, list[dict[str, Any]]]:
    """Returns the size bins of each group of random or listed flows, with mean completion times and ideals.

    A bin exists if at least one protocol completed a flow in it. `afct_s` and `half_width_s` are dictionaries by
    protocol. The half width is that of a 95% confidence interval by batch means; None below 20 flows. `ideal_s` is the
    mean of each formula over the flows of the protocol that completed most of them. It is None if the network has no
    single bottleneck.
    """
    runs = {name: _finished(result) for name, result in results.items()}
    some = next(iter(runs.values()))
    webs = [flows["name"] for flows in some.scenario.get("flows", ()) if flows.get("web") or flows.get("list")]
    table: dict[str, list[dict[str, Any]]] = {}
    for group in webs:
        rows: dict[float, dict[str, Any]] = {}
        for name, run in runs.items():
            for found in fct.bins(run, group):
                row = rows.setdefault(
                    found.low,
                    {
                        "min_packets": found.low,
                        "max_packets": found.high,
                        "flows": {},
                        "afct_s": {},
                        "half_width_s": {},
                        "ideal_s": {},
                        "mean_packets": found.mean_packets,
                    },
                )
                if found.flows > max(row["flows"].values(), default=0):
                    row["mean_packets"] = found.mean_packets
                    row["ideal_s"] = {key: _number(found.ideal_s[key]) for key in IDEALS}
                row["flows"][name] = found.flows
                row["afct_s"][name] = found.mean_s
                row["half_width_s"][name] = _number(found.half_width_s)
        table[group] = [rows[low] for low in sorted(rows)]
    return {group: rows for group, rows in table.items() if rows}


def confidence(results: Mapping[str, Results], within: float) -> dict[str, dict[str, dict[str, Any]]]:
    """Tells for each group and protocol whether mean completion times are known to the relative precision `within`.

    The 95% confidence interval comes from ten batch means over the flows that started after warm-up. `reached` is true
    if its half width is at most `within` times the mean, over all sizes and in each bin with at least 100 flows.
    `judged_bins` counts these bins, `wider_bins` those that miss the precision. With too few flows the half width is
    None and `reached` is false.
    """
    runs = {name: _finished(result) for name, result in results.items()}
    some = next(iter(runs.values()))
    webs = [flows["name"] for flows in some.scenario.get("flows", ()) if flows.get("web") or flows.get("list")]
    told: dict[str, dict[str, dict[str, Any]]] = {}
    for group in webs:
        told[group] = {}
        for name, run in runs.items():
            _, times = fct.completed(run, group)
            width = fct.half_width(times)
            mean = float(times.mean()) if times.size else math.nan
            judged = fct.bins(run, group, fct.LEAST_FLOWS)
            wider = sum(1 for found in judged if not found.half_width_s <= within * found.mean_s)
            told[group][name] = {
                "flows": int(times.size),
                "afct_s": _number(mean),
                "half_width_s": _number(width),
                "within": within,
                "judged_bins": len(judged),
                "wider_bins": wider,
                "reached": bool(width <= within * mean and not wider),
            }
    return told


def confidence_text(group: str, told: Mapping[str, Mapping[str, Any]]) -> str:
    """Formats one line per protocol: the mean, and whether it reached the requested precision."""
    lines = []
    for name, row in told.items():
        known = f"{_cell(row['afct_s'], row['half_width_s'])} over {row['flows']} flows"
        wanted = f"95% confidence to {100 * row['within']:g}%"
        if row["reached"]:
            lines.append(f"{group}, {name}: {known}; {wanted} in all {row['judged_bins']} bins with 100 flows or more")
        elif row["half_width_s"] is None or not row["judged_bins"]:
            lines.append(f"{group}, {name}: {known}; {wanted} NOT reached: too few flows, run longer")
        else:
            mean = "" if row["half_width_s"] <= row["within"] * row["afct_s"] else "the mean and "
            wider = f"{mean}{row['wider_bins']} of {row['judged_bins']} bins are wider"
            lines.append(f"{group}, {name}: {known}; {wanted} NOT reached: {wider}, run longer")
    return "\n".join(lines)


def _cell(value: float | None, half_width: float | None) -> str:
    if value is None:
        return "-"
    scale, unit = (1e3, "ms") if value >= 1e-3 else (1e6, "us")
    return f"{scale * value:.1f}" + ("" if half_width is None else f" ± {scale * half_width:.1f}") + f" {unit}"


def packets(row: Mapping[str, Any]) -> str:
    """Formats a bin's range of sizes, and the largest number of flows that a protocol has in it."""
    least, most = row["min_packets"], row["max_packets"] - 1
    return f"{least:.0f}{f' to {most:.0f}' if most > least else ''} packets ({max(row['flows'].values())})"


def cells(row: Mapping[str, Any], names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Formats a bin's mean times for the terminal: per protocol with the 95% half width, then per ideal."""
    times = [_cell(row["afct_s"].get(name), row["half_width_s"].get(name)) for name in names]
    return times, [_cell(row["ideal_s"].get(key), None) for key in IDEALS]


def draw(table: Mapping[str, list[dict[str, Any]]], names: list[str], title: str = "") -> Figure:
    """Draws completion time against flow size with one panel per group, on the axes of the RCP thesis."""
    import numpy as np

    from flowstamp import plot

    panels = []
    for group, rows in table.items():
        curves = []
        for style, name in enumerate(names):
            points = [(row["mean_packets"], row["afct_s"][name]) for row in rows if name in row["afct_s"]]
            x, y = (
                (np.array(v, np.float64) for v in zip(*points, strict=True)) if points else (np.zeros(0), np.zeros(0))
            )
            curves.append(plot.Curve(name, x, y, style))
        for number, (key, label) in enumerate(IDEALS.items()):
            known = [row for row in rows if row["ideal_s"].get(key) is not None]
            x = np.array([row["mean_packets"] for row in known], np.float64)
            y = np.array([row["ideal_s"][key] for row in known], np.float64)
            curves.append(plot.Curve(label, x, y, len(names) + number))
        what = f"Mean completion time of {group}, by flow size"
        panels.append(plot.Panel("Mean time (s)", curves, title=what, yscale="log", legend=True))
    return plot.stack(plot.Stack("Flow size (packets)", panels, xscale="log", title=title))


def _finished(result: Results) -> Finished:
    scenario = result.manifest["scenario"]
    packet_bytes = _flowstamp.quantity("size", scenario.get("packet", "1000B"))
    return Finished.of(result, flow_series=False, packet_bytes=packet_bytes, scenario=scenario)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
