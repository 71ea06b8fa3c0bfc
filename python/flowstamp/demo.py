# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp demo`: five flows join a bottleneck, under XCP and under TCP Reno over RED.

The scenario is that of figure X10 and is defined only there.
"""

from __future__ import annotations

import json as json_module
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from flowstamp import _flowstamp, machine, plot, text
from flowstamp.errors import translated
from flowstamp.figures.catalogue import load
from flowstamp.figures.claims import FUNCTIONS
from flowstamp.files import check_folder
from flowstamp.progress import Meter

FIGURE = "X10"
CAPTURE = '{ links = ["bottleneck"], packets = 5000 }'  # enough for Wireshark, and quick to write
FAIR = 0.95  # shares count as fair from this value of Jain's index
AVERAGE_S = 0.2


def run(out: Path = Path("out/demo"), json: bool = False, seed: int | None = None) -> int:
    """Runs both protocols, writes pictures, tables and packets into `out`, and prints a comparison.

    Returns the exit code.
    """
    began = time.perf_counter()
    check_folder(out)
    figure = load(FIGURE)
    jobs = []
    for spec in figure.runs:
        scenario, source, sets, base = figure.job(spec, 0)
        jobs.append((scenario, source, (*sets, ("capture", CAPTURE)), base))
    with translated(), Meter("demo") as meter:
        runs = _flowstamp.run_many(jobs, seed=seed, memory=machine.memory(), progress=meter)
        named = {spec.label: result for spec, result in zip(figure.runs, runs, strict=True)}
        files: list[str] = []
        for spec, result in zip(figure.runs, runs, strict=True):
            files += result.write(str(out / spec.name))
    files += map(str, plot.save(plot.overview(named, average_s=AVERAGE_S), out / "demo"))
    measured = {label: measure(result) for label, result in named.items()}
    if json:
        document = {"protocols": measured, "files": files, "wall_s": round(time.perf_counter() - began, 3)}
        sys.stdout.write(json_module.dumps(document, indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(_report(measured, out, time.perf_counter() - began))
    return 0


def measure(result: plot.RunLike) -> dict[str, Any]:
    """Returns the numbers of one run that the demo compares. Queues are in ms at the bottleneck's rate."""
    summary = json_module.loads(result.summary_json())
    link = summary["links"]["bottleneck"]
    to_ms = 8e3 / link["rate_bps"]
    return {
        "utilization": link["utilization"],
        "mean_queue_ms": link["mean_queue_bytes"] * to_ms,
        "p95_queue_ms": link["p95_queue_bytes"] * to_ms,
        "drops": link["drops"],
        "marks": link["marks"],
        **_fairness(result, summary),
    }


def _fairness(result: plot.RunLike, summary: Mapping[str, Any]) -> dict[str, float | None]:
    """Returns Jain's index over the last second, and the time to fairness in seconds.

    That time runs from the last flow's start until the index over 200 ms stays at 0.95 or more; None if it does not.
    """
    rows = summary["flows"]
    rates = []
    times: plot.Floats = np.empty(0)
    for row in rows:
        t, v = plot.series(result, "flow", f"{row['group']}.{row['index']}", "goodput_bps")
        times, mean = plot.averaged(t, v, AVERAGE_S)
        rates.append(mean)
    shares = np.array(rates).T
    jain = FUNCTIONS["jain"][1]
    last_start = max(row["start_s"] for row in rows)
    after = times > last_start
    unfair = np.flatnonzero(~(np.array([jain(moment) for moment in shares[after]]) >= FAIR))
    settled: float | None = 0.0
    if unfair.size:
        first = int(unfair[-1]) + 1
        settled = float(times[after][first] - last_start) if first < np.count_nonzero(after) else None
    final = shares[times > summary["duration_s"] - 1.0].mean(axis=0)
    return {"final_jain_index": jain(final), "time_to_fair_s": settled}


def _report(measured: Mapping[str, Mapping[str, Any]], out: Path, wall_s: float) -> str:
    def row(name: str, value: Any) -> list[str]:
        return [name, *(value(m) for m in measured.values())]

    def ms(key: str) -> Any:
        return lambda m: f"{m[key]:.2f} ms"

    def fair(m: Mapping[str, Any]) -> str:
        seconds = m["time_to_fair_s"]
        return "not in this run" if seconds is None else f"{seconds:.1f} s"

    rows = [
        row("utilisation", lambda m: text.percent(m["utilization"])),
        row("mean queueing delay", ms("mean_queue_ms")),
        row("95th percentile of it", ms("p95_queue_ms")),
        row("drops", lambda m: str(m["drops"])),
        row("ECN marks", lambda m: str(m["marks"])),
        row("Jain's index, last second", lambda m: text.maybe(m["final_jain_index"], 3)),
        row("fair after the last start", fair),
    ]
    return (
        "Five flows join a 45 Mb/s bottleneck, RTT 40 ms, two seconds apart (figure X10 of the XCP paper).\n\n"
        f"{text.table(['', *measured], rows)}\n\n"
        f"picture       {out}/demo.png and demo.pdf\n"
        f"tables        {out}/xcp and {out}/red: summary.json, series.parquet, flows.parquet\n"
        f"packets       trace.pcapng there; Wireshark shows XCP's header with: -X lua_script:{out}/xcp/flowstamp.lua\n"
        f"took          {wall_s:.1f} s\n"
    )
