# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Tables of the measurements of `linux_bench.py`."""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass
from typing import Any

import linux_cpu

from flowstamp import router_cost


@dataclass(frozen=True)
class How:
    """Settings that all rows share."""

    router: str
    seconds: int
    warmup_s: int
    eta: float


COLUMNS = (
    "path",
    "flows",
    "law",
    "total, Mb/s",
    "Jain",
    "RTT median / p95, ms",
    "retransmitted",
    "drops",
    "hosts, CPU s per Gb",
    "",
)


def report(rows: list[dict[str, Any]], how: How) -> str:
    """A table of all rows, and how to read it."""
    place = {
        "path": "in the emulated path",
        "bpf": "an eBPF program on a machine between the hosts, whose work counts as the hosts'",
    }[how.router]
    lines = [
        "| " + " | ".join(COLUMNS) + " |",
        "|---" * len(COLUMNS) + "|",
        *map(table_row, rows),
        "",
        f"Each row is {how.seconds} s of iperf3 after {how.warmup_s} s of warm-up. The buffer is 1 BDP, the router is "
        f"{place}, and RCP has eta = {how.eta}. *CPU* is the CPU time of both hosts: that of all processors, without "
        "the emulated path and processes outside the lab. It is left out if these processes took more than "
        f"{linux_cpu.STRANGERS_MAX} processors. In *invalid* rows the emulated path fell behind its schedule; do not "
        "use them.",
    ]
    return "\n".join(lines)


def table_row(row: dict[str, Any]) -> str:
    head = f"| {row['rate']}, {row['rtt']} | {row['flows']} | {row['law']} |"
    if "problem" in row:
        return f"{head} {row['problem'].replace('|', '/')} |" + " |" * (len(COLUMNS) - 4)
    cells = [
        f"{row['sum_mbps']:.1f}",
        f"{row['jain']:.4f}",
        f"{row['rtt_p50_ms']:.1f} / {row['rtt_p95_ms']:.1f}",
        f"{row['retransmits']:,}",
        f"{row['drops']:,}",
        number(row["hosts_cpu_s_per_gigabit"]),
        remark(row),
    ]
    return f"{head} " + " | ".join(cells) + " |"


def remark(row: dict[str, Any]) -> str:
    """Remarks on a row: whether it is invalid, and how many flows fell back from its law."""
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
    bench = [f"| {row['name']} | {row['median_ns']:.0f} |" for row in measured["bench"]["programs"]]
    return "\n".join(
        [
            *lines,
            "",
            f"Median (quartiles) of {measured['rounds']} rounds of {measured['packets']:,} segments of "
            f"{measured['frame_bytes']} bytes. Each round measures all rows in turn. *Forwarding* is the cost of a "
            f"packet beyond sending it straight to the sink: {base:,.0f} ns on veth, which is little. *Machine* is "
            "the busy time in `/proc/stat`, less the load before the round, which was "
            f"{busy:.2f} of {os.cpu_count()} processors.",
            "",
            "The time of the program alone (`flowstamp-linux router bench`, `BPF_PROG_RUN`):",
            "",
            "| program, packet | ns per packet |",
            "|---|---:|",
            *bench,
        ]
    )
