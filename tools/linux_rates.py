# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Compares XCP under XCP-b's router with the kernel's CUBIC and BBR, over FIFO and FQ-CoDel, on links of unknown rate.

    python3 tools/linux_rates.py LAB.toml [--trace FILE] [--only xcp,cubic,...] [--tries 3] [--json]

LAB.toml is a lab of XCP-b in the kernel (examples/labs/xcp-b-*.toml). Each row is the same lab with another law of the
hosts and another queue. `--trace` takes the rate from another recording. FIFOs are the kernel's, behind the same shaper
as XCP-b's queue. FQ-CoDel is the emulated path's own, because a kernel may lack it (docs/notes/linux-measurements.md).

RTTs are the kernel's smoothed ones, which iperf3 samples ten times a second: the mean over the long flows of each
flow's percentile. Pages are downloads on new connections, one after another.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from statistics import fmean
from typing import Any

INVALID = 3
VARIANTS = {
    "xcp": ("xcp", "XCP-b"),
    "cubic": ("cubic", "FIFO"),
    "bbr": ("bbr", "FIFO"),
    "cubic+fq_codel": ("cubic", "FQ-CoDel"),
    "bbr+fq_codel": ("bbr", "FQ-CoDel"),
}
HEAD = (
    "| hosts | queue | utilisation | RTT p50 / p95, ms | page p50 / p95, s | queue mean / largest, kB | lost |"
    " left their law | |"
)


def variant(lab: dict[str, Any], law: str, queue: str, trace: Path | None) -> dict[str, Any]:
    path = dict(lab["path"]) | ({"rate": {"trace": str(trace)}} if trace else {})
    router = dict(lab["router"])
    if queue != "XCP-b":
        router = {"law": "none", "where": "bpf" if queue == "FIFO" else "path"}
    if queue == "FQ-CoDel":
        path["queue"] = "fq_codel"
    host = lab["host"] if queue == "XCP-b" else {"law": law}
    return lab | {"path": path, "router": router, "host": host}


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    return f"[{', '.join(map(toml, value))}]" if isinstance(value, list) else json.dumps(value)


def measure(program: str, lab: dict[str, Any], tries: int, lab_id: str) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write("".join(f"{key} = {toml(value)}\n" for key, value in lab.items()))
        file.flush()
        for _ in range(tries):
            command = [program, "lab", "run", file.name, "--json", "--id", lab_id]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode not in (0, INVALID):
                raise SystemExit(f"linux_rates: {done.stderr.strip().splitlines()[-1]}")
            summary: dict[str, Any] = json.loads(done.stdout)
            if summary["valid"]:
                break
            print(f"linux_rates: invalid: {summary['invalid']}", file=sys.stderr)
    return summary


def row(name: str, summary: dict[str, Any]) -> dict[str, Any]:
    link = summary["links"]["bottleneck"]
    rtts = [a for a in summary["applications"] if a["app"] == "iperf3"]
    pages = summary["groups"]["pages"]
    hosts = summary["hosts"]["groups"] or {}
    return {
        "name": name,
        "utilization": link["utilization"],
        "mean_rate_mbps": link["rate_bps"] / 1e6,
        "rtt_ms": [1e3 * fmean(a[key] for a in rtts) for key in ("rtt_p50_s", "rtt_p95_s")],
        "page_s": [pages["fct_s"]["all"][key] for key in ("p50", "p95")],
        "pages": [pages["completed"], pages["flows"]],
        "queue_kb": [link[key] / 1e3 for key in ("mean_queue_bytes", "max_queue_bytes")],
        "lost": link["drops"],
        "left": sum(len(group["left"]) for group in hosts.values()),
        "valid": summary["valid"],
    }


def line(found: dict[str, Any]) -> str:
    law, queue = VARIANTS[found["name"]]
    numbers = ((found["rtt_ms"], 0), (found["page_s"], 2), (found["queue_kb"], 0))
    rtt, page, kb = (f"{low:.{digits}f} / {high:.{digits}f}" for (low, high), digits in numbers)
    done, asked = found["pages"]
    remark = "" if done == asked else f"{done} of {asked} pages"
    return (
        f"| {law} | {queue} | {100 * found['utilization']:.1f}% | {rtt} | {page} | {kb} | {found['lost']:,} | "
        f"{found['left'] or ''} | {remark if found['valid'] else '*invalid*'} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lab", type=Path)
    parser.add_argument("--program", default=os.environ.get("FLOWSTAMP_LINUX", "flowstamp-linux"))
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--only", default=",".join(VARIANTS))
    parser.add_argument("--tries", type=int, default=3, help="for a run that is invalid")
    parser.add_argument("--id", default="rates")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    lab = tomllib.loads(given.lab.read_text())
    rate = lab["path"]["rate"]
    if isinstance(rate, dict) and "trace" in rate:
        rate["trace"] = str((given.lab.parent / rate["trace"]).resolve())
    names = given.only.split(",")
    if unknown := [name for name in names if name not in VARIANTS]:
        raise SystemExit(f"linux_rates: --only {unknown[0]}: it must be of {', '.join(VARIANTS)}")
    trace = given.trace.resolve() if given.trace else None
    if not given.json:
        print(f"{HEAD}\n{'|---' * 9}|")
    for name in names:
        found = row(name, measure(given.program, variant(lab, *VARIANTS[name], trace), given.tries, given.id))
        print(json.dumps(found) if given.json else line(found), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
