# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Overview tables of runs for the terminal and for notebooks. Each function returns a header and rows of cells."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from flowstamp import text

if TYPE_CHECKING:
    from flowstamp.results import Results
    from flowstamp.sweeps import Sweep

Cells = tuple[list[str], list[list[str]]]
# Rows of the table of paused links.
MOST_PAUSED = 12


def links(results: Results) -> Cells:
    """Returns a row for each link; if there are many, for the most used ones."""
    shown = text.most_used([results.links])
    header = ["link", "capacity", "utilisation", "mean queue", "max queue", "drops", "marks"]
    rows = [
        [
            name,
            text.rate(link["rate_bps"]),
            text.percent(link["utilization"]),
            text.size(link["mean_queue_bytes"]),
            text.size(link["max_queue_bytes"]),
            str(link["drops"]),
            str(link["marks"]),
        ]
        for name, link in ((name, results.links[name]) for name in shown)
    ]
    if len(shown) < len(results.links):
        rows.append([f"({len(results.links) - len(shown)} that are used less)", *[""] * 6])
    return header, rows


def pauses(results: Results) -> Cells:
    """Returns a row for each link that flow control has paused; if there are many, for those paused longest."""
    found = [(name, link["pfc"]) for name, link in results.links.items() if "pfc" in link]
    paused = sorted(
        ((name, pfc) for name, pfc in found if pfc["pauses"] or pfc["paused_s"] or pfc["drops"]),
        key=lambda row: -row[1]["paused_s"],
    )
    header = ["paused link", "pauses", "paused", "most waiting", "xoff", "headroom", "lost"]
    rows = [
        [
            name,
            str(pfc["pauses"]),
            text.seconds(pfc["paused_s"]),
            *(text.size(pfc[key]) for key in ("max_ingress_bytes", "xoff_bytes", "headroom_bytes")),
            str(pfc["drops"]),
        ]
        for name, pfc in paused[:MOST_PAUSED]
    ]
    if len(paused) > MOST_PAUSED:
        rows.append([f"({len(paused) - MOST_PAUSED} that are paused less)", *[""] * 6])
    if found and not rows:
        rows.append(["none", *[""] * 6])
    return header, rows


def groups(results: Results) -> Cells:
    """Returns a row for each group of flows."""
    header = ["flows", "law", "count", "goodput", "Jain", "completed", "mean time", "retransmitted"]
    rows = []
    for name, group in results.groups.items():
        times = group["fct_s"]
        rows.append(
            [
                name,
                group["law"],
                str(group["flows"]),
                text.rate(group["goodput_bps"]),
                text.maybe(group["jain_index"]),
                str(group["completed"]),
                text.seconds(times["all"]["mean"]) if times else "-",
                str(group["retransmissions"]),
            ]
        )
    return header, rows


def slowdowns(results: Results) -> Cells:
    """Returns a row for each size bin of each group whose flows complete: completion time over the ideal one."""
    rows = []
    for name, group in results.groups.items():
        slowdown = group.get("fct_slowdown")
        if not slowdown:
            continue
        bins = slowdown["bins"] if len(slowdown["bins"]) > 1 else []
        for label, values in [
            ("all", slowdown["all"]),
            *((text.size_bin(b["min_bytes"], b["max_bytes"]), b) for b in bins),
        ]:
            numbers = [f"{values[key]:.2f}" for key in ("mean", "p50", "p99", "p999")]
            rows.append([name, label, str(values["count"]), *numbers])
    return ["slowdown", "flow size", "count", "mean", "median", "99%", "99.9%"], rows


def operations(results: Results) -> Cells:
    """Returns a row for each group that carries out collective operations or incasts."""
    rows = []
    for name, group in results.groups.items():
        if not (operations := group.get("operations")):
            continue
        times, slowdown = operations["time_s"], operations["slowdown"]
        rows.append(
            [
                name,
                f"{operations['completed']} of {operations['started']}",
                *(text.seconds(times[key]) if times else "-" for key in ("mean", "p50", "p99", "max")),
                f"{slowdown['mean']:.2f}" if slowdown else "-",
            ]
        )
    return ["operations", "completed", "mean time", "median", "99%", "longest", "mean over ideal"], rows


def videos(results: Results) -> Cells:
    """Returns a row for each group of viewers, for the whole run."""
    rows = []
    for name, group in results.groups.items():
        if not (video := group.get("video")):
            continue
        seen = video["whole_run"]
        rows.append(
            [
                name,
                text.rate(seen["bitrate_bps"]) if seen["bitrate_bps"] is not None else "-",
                str(seen["switches"]),
                str(seen["stalls"]),
                text.seconds(seen["stalled_s"]),
                text.percent(seen["stalled_share"]) if seen["stalled_share"] is not None else "-",
                text.seconds(seen["startup_s"] / max(group["flows"], 1)),
            ]
        )
    return ["videos", "mean bitrate", "switches", "stalls", "stalled", "share", "start-up"], rows


def advice(results: Results) -> Cells:
    """Returns a row for each link that advises videos of a throughput."""
    rows = []
    for name, link in results.links.items():
        if (scone := link.get("scone")) and scone["packets"]:
            mean = scone["mean_advice_bps"]
            rows.append([name, str(scone["packets"]), str(scone["lowered"]), "-" if mean is None else text.rate(mean)])
    return ["advising link", "SCONE packets", "lowered", "mean advice"], rows


def points(sweep: Sweep) -> Cells:
    """Returns a row for each run of a sweep, with the numbers of its most used link."""
    rows = []
    for point, result in zip(sweep.points, sweep.results, strict=True):
        # The most used link is usually the subject of the sweep.
        link = max(result.links.values(), key=lambda link: link["utilization"], default=None)
        total = result.summary["total"]
        rows.append(
            [
                *(value(point[key]) for key in sweep.keys),
                text.percent(link["utilization"]) if link else "-",
                text.size(link["mean_queue_bytes"]) if link else "-",
                str(total["drops"]),
                text.rate(total["goodput_bps"]),
                text.maybe(total["jain_index"]),
            ]
        )
    return [*sweep.keys, "utilisation", "mean queue", "drops", "goodput", "Jain"], rows


def value(of: object) -> str:
    """Formats a value of a scenario as text: strings as they are, others as JSON."""
    return of if isinstance(of, str) else json.dumps(of)
