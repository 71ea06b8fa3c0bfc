# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The tables that `linux_bench.py` writes, and the rows that it keeps."""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import engine
import linux_cpu

from flowstamp import router_cost


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
        "run on a machine too busy to keep the path's times is *invalid* and says nothing. Flows that left their law "
        "for the kernel's CUBIC are counted in the last column but one. RTT and *sent again* are of the whole run, "
        "the start with it.",
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
        remark(row),
        when,
    ]
    return f"{head} " + " | ".join(cells) + " |"


def remark(row: dict[str, Any]) -> str:
    """What the row's numbers are not of."""
    left = f"{row['left']} of {row['flows']} left {row['law']}" if row["left"] else ""
    return ", ".join(text for text in ("" if row["valid"] else "*invalid*", left) if text)


def number(value: float | None) -> str:
    return "not measurable" if value is None else f"{value:.2f}"


def median_and_spread(values: list[float], form: str = ",.0f") -> str:
    low, _, high = statistics.quantiles(values, n=4)
    return f"{statistics.median(values):{form}} ({low:{form}} to {high:{form}})"


def router_report(measured: dict[str, Any]) -> str:
    thread, machine, own = measured["thread"], measured["machine"], measured["own"]
    forwarding = [off - sender for off, sender in zip(thread["forwarding"], thread["straight"], strict=True)]
    base = statistics.median(forwarding)
    busy = statistics.median(measured["baselines"])
    lines = [
        "| | thread's CPU, ns per packet | more than forwarding alone | share of forwarding | machine's CPU, ns |",
        "|---|---|---|---|---|",
    ]
    names = {"straight": "straight to the sink", "forwarding": "forwarding, no router"}
    names |= {law: f"with {law.upper()}" for law in own}
    for kind, name in names.items():
        row = f"| {name} | {median_and_spread(thread[kind])} | "
        if kind in own:
            more = [on - off for on, off in zip(thread[kind], thread["forwarding"], strict=True)]
            row += f"{median_and_spread(more)} | **{100 * statistics.median(more) / base:.1f}%** | "
        else:
            row += " | | "
        of_machine = median_and_spread(machine[kind]) if busy <= router_cost.BUSY_MAX else "not measurable"
        lines.append(f"{row}{of_machine} |")
    counted = "; ".join(
        f"{law.upper()} {statistics.median(own[law]):.0f} ({min(own[law]):.0f} to {max(own[law]):.0f})" for law in own
    )
    bench = "; ".join(f"{row['name']} {row['median_ns']:.0f}" for row in measured["bench"]["programs"])
    return "\n".join(
        [
            *lines,
            "",
            f"Median (quartiles) of {measured['rounds']} rounds of {measured['packets']:,} segments of "
            f"{measured['frame_bytes']} bytes, each round all four in turn. Differences are taken within a "
            f"round. Forwarding is what a packet costs beyond sending it straight to the sink: {base:,.0f} ns, the "
            "second veth hop included. *Machine*: `/proc/stat`, less what it was busy for just before each round, the "
            f"sender's start included; {busy:.2f} of {os.cpu_count()} processors were busy before (median), and above "
            f"{router_cost.BUSY_MAX} this says nothing and is left out.",
            "",
            "The thesis (section 6) has 2.6% for RCP: 9.9998 jiffies against 9.7368 through the forwarding path of a "
            "kernel of 2006, and at most 3 additions, 2 comparisons and 1 write. That share is **not** reproduced "
            "here. What the law itself does is little (`router bench`: an option whose rate stays, over an empty "
            "program); the rest is to enter a program, to find the option, to write to a packet and to mend its "
            "checksum, beside a forwarding path of veth that is cheap.",
            "",
            f"By the kernel's own statistics (`BPF_ENABLE_STATS`, ns per run, median and extremes of three, the two "
            f"readings of the clock partly included): {counted}. In `router bench` (`BPF_PROG_RUN`, ns): {bench}.",
        ]
    )
