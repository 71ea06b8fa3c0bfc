# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The table that `linux_bench.py` writes, and the rows that it keeps."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import engine
import linux_cpu


@dataclass(frozen=True)
class How:
    """What all rows have in common."""

    router: str
    seconds: int
    warmup_s: int
    eta: float
    paths: list[tuple[str, str, int]]
    laws: tuple[str, ...]


COLUMNS = (
    "path",
    "flows",
    "law",
    "sum, Mb/s",
    "Jain",
    "RTT median / p95, ms",
    "sent again",
    "drops",
    "hosts, CPU s per Gb",
    "processors: hosts",
    "path",
    "others",
    "late p98, ms",
    "",
    "measured",
)


def key(rate: str, rtt: str, flows: int, law: str) -> str:
    return f"| {rate}, {rtt} | {flows} | {law} |"


def earlier(document: Path, section: str) -> dict[str, str]:
    """The rows that the document has, by their first cells."""
    text = document.read_text() if document.exists() else ""
    text = text.partition(f"<!-- {section}:begin -->")[2].partition(f"<!-- {section}:end -->")[0]
    rows = [row for row in text.splitlines() if row.startswith("|") and row.count("|") == len(COLUMNS) + 1]
    return {"|".join(row.split("|")[:4]) + "|": row for row in rows}


def report(rows: list[dict[str, Any]], kept: dict[str, str], made: str, how: How) -> str:
    """The section of a document. `kept` are the rows that it had; those that were not measured now stay."""
    measured = {key(row["rate"], row["rtt"], row["flows"], row["law"]): table_row(row, how.seconds) for row in rows}
    there = {**kept, **measured}
    order = [key(*path, law) for path in how.paths for law in how.laws]
    still = sum(name in kept and name not in measured for name in order)
    place, whose = {
        "path": ("the path", "in the path"),
        "bpf": ("BPF", "in BPF on a machine between the hosts, whose work is in theirs"),
    }[how.router]
    lines = [
        f"## Linux: RCP and XCP beside the kernel's CUBIC and BBR, router in {place}",
        "",
        made,
        *([f"Of the rows {still} are of earlier runs, as their last column says."] if still else []),
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|---" * len(COLUMNS) + "|",
        *(there[name] for name in order if name in there),
        "",
        f"As many seconds as the last column says after {how.warmup_s} s of warm-up, buffer of one bandwidth-delay "
        "product, iperf3, router "
        f"{whose}; RCP's eta is {how.eta}. *Hosts*: by exclusion, in the steady state: what all processors did, less "
        "the process that is the path, less all processes outside the lab (*others*). It is what both hosts do, in "
        "interrupts too, with the veth ends and the kernel's own threads; good to about 0.02 processors, and left out "
        f"with more than {linux_cpu.STRANGERS_MAX} processors of others, who take the blame for interrupts of ours. A "
        "run on a machine too busy to keep the path's times is *invalid* and says nothing.",
    ]
    return "\n".join(lines)


def table_row(row: dict[str, Any], seconds: int) -> str:
    head = key(row["rate"], row["rtt"], row["flows"], row["law"])
    when = f"{seconds} s, {engine.commit()}, {time.strftime('%Y-%m-%d')}"
    if "problem" in row:
        return f"{head} {row['problem'].replace('|', '/')} |" + " |" * (len(COLUMNS) - 5) + f" {when} |"
    cells = [
        f"{row['sum_mbps']:.1f}",
        f"{row['jain']:.4f}",
        f"{row['rtt_p50_ms']:.1f} / {row['rtt_p95_ms']:.1f}",
        f"{row['retransmits']:,}",
        f"{row['drops']:,}",
        number(row["hosts_cpu_s_per_gigabit"]),
        number(row["hosts_processors"]),
        number(row["path_processors"]),
        number(row["other_processors"]),
        f"{row['lateness_p98_ms']:.3f}",
        "" if row["valid"] else "*invalid*",
        when,
    ]
    return f"{head} " + " | ".join(cells) + " |"


def number(value: float | None) -> str:
    return "not measurable" if value is None else f"{value:.2f}"
