# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Text of docs/performance.md, from the measurements of `bench.py --all`."""

from __future__ import annotations

import statistics
import time
from typing import Any

import engine

DOCUMENT = engine.ROOT / "docs" / "performance.md"
WHAT = {
    "xcp-150": "50 XCP flows each way, 150 Mb/s, 80 ms, 40 s",
    "xcp-622": "the same at 622 Mb/s",
    "web-150": "750 short TCP flows a second over RED, 150 Mb/s, 80 ms, 40 s",
    "rcp-web": "RCP, 960 Mb/s, 100 ms, 24 s",
    "rcp-million": "RCP, 9.6 Gb/s, 100 ms, 24 s",
}


def both(values: list[float], form: str = ".3f") -> str:
    """Median and minimum."""
    return f"{statistics.median(values):{form}} ({min(values):{form}})"


def engine_table(times: dict[str, Any], instructions: dict[str, float | None]) -> str:
    lines = [
        "| scenario | | packet-hops | CPU, s | ns per packet-hop | instructions per packet-hop |",
        "|---|---|---|---|---|---|",
    ]
    for name, t in times.items():
        per_hop = both([s / t.hops * 1e9 for s in t.run_s], ".1f")
        counted = instructions[name]
        count = "not counted" if counted is None else f"{counted:.0f}"
        lines.append(f"| `{name}` | {WHAT[name]} | {t.hops:,} | {both(t.run_s)} | {per_hop} | {count} |")
    return "\n".join(lines)


def ns2_table(times: dict[str, Any]) -> str:
    lines = [
        "| scenario | Flowstamp, CPU s | ns-2, CPU s | ns-2 without set-up, CPU s | times as fast |",
        "|---|---|---|---|---|",
    ]
    for name, t in times.items():
        bare = [a - b for a, b in zip(t.ns2_s, t.ns2_setup_s, strict=True)]
        factor = statistics.median(bare) / statistics.median(t.process_s)
        cells = [f"`{name}`", both(t.process_s), both(t.ns2_s), both(bare), f"**{factor:.1f}**"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def flows_table(flows: dict[str, Any]) -> str:
    lines = [
        "| scenario | | flows | packet-hops | CPU, s | flows per CPU second | ns per packet-hop | memory, MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, f in flows.items():
        rate = f"{f.flows / statistics.median(f.run_s):,.0f}"
        per_hop = both([s / f.hops * 1e9 for s in f.run_s], ".1f")
        peak = f"{statistics.median(f.peak_bytes) / 1e6:.0f}"
        cells = [f"`{name}`", WHAT[name], f"{f.flows:,}", f"{f.hops:,}", both(f.run_s), rate, per_hop, peak]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell_table(cell: dict[str, Any]) -> str:
    count = len(cell["points"])
    xcp, reno = cell["cpu_s"][:count], cell["cpu_s"][count:]
    scales = [1, 5, 20]  # figure B11's axis at these points
    rows = [f"| {s} | {a:.2f} | {b:.2f} |" for s, a, b in zip(scales, xcp, reno, strict=True)]
    return "\n".join(["| rates, times 802.11b's | XCP-b, CPU s | NewReno, CPU s |", "|---|---|---|", *rows])


def linux_part(kernel: dict[str, Any] | str) -> str:
    if isinstance(kernel, str):
        return f"## In the Linux kernel\n\nNot measured: {kernel}."
    return f"""## A packet's cost in the kernel's router

The eBPF router adds this to forwarding a small packet.

{kernel["router"]}

The RCP thesis reports a share of 2.6% on a kernel of 2006 (section 6). Flowstamp does not reproduce it: entering a
program, finding the option, writing the packet and updating its checksum cost more than the law itself.

## Flows over a real kernel

RCP and XCP keep RTTs short and lose few packets or none, at a slightly smaller total.

{kernel["paths"]}"""


def page(
    commit: str,
    times: dict[str, Any],
    instructions: dict[str, float | None],
    flows: dict[str, Any],
    trees: str,
    memory: Any,
    cell: dict[str, Any],
    loop: str,
    start: dict[str, float],
    kernel: dict[str, Any] | str,
) -> str:
    """The whole page."""
    return f"""# Performance

One packet over one link costs 30 to 80 ns of CPU time. This page helps you to estimate how long your simulation takes
and how much memory it needs. It also has the cost of the kernel's router.
[How the engine is fast](explanation/engine.md) explains the numbers.

Unless a section says otherwise, all numbers come from one run of `tools/bench.py --all`
at commit {commit} on {time.strftime("%Y-%m-%d")}. The machine: {engine.machine()}.
Times are CPU time: the median, and the minimum in parentheses.

## How long a simulation takes

Count the packet-hops of your scenario, and multiply by the time of one. A *packet-hop* is a packet or an
acknowledgement that reaches a link, access links included. A flow that fills 100 Mb/s with packets of 1000 bytes over
three links makes 75,000 of them in a second. A minute of it therefore takes about 0.14 s of CPU time.

{engine_table(times, instructions)}

## Compared with ns-2

Flowstamp is 8 to 24 times as fast as ns-2 on the same flows and links. The comparison favours ns-2: it counts
Flowstamp's whole process, but leaves out ns-2's set-up in Tcl.

{ns2_table(times)}

## Many flows that come and go

A new flow reuses the memory of a flow that has ended. Only the results of ended flows take memory.

{flows_table(flows)}

## Data centres

A packet-hop costs more in a large network, because the state of its links does not fit in the processor's cache.
All links of these fat trees have 100 Gb/s and 1 us.

{trees}

## Memory

| what | bytes |
|---|---|
| a packet in flight | {memory.per_packet_in_flight:.0f} |
| a long flow that has sent nothing yet, with two hosts, four links and its results | {memory.per_idle_flow:,.0f} |
| the whole process, ten XCP flows each way | {memory.small_bytes:,} |

## A Wi-Fi cell

Ten stations and 120 flows that come and go for 300 s (figure B11). Every exchange of frames on the air is simulated.

{cell_table(cell)}

## The command

`flowstamp run examples/five.toml` takes {start["wall_s"]:.2f} s of wall time, {start["cpu_s"]:.2f} s of CPU time and
{start["peak_bytes"] / 1e6:.0f} MB, Python's interpreter included.

## What the engine adds to a bare loop

Each of these programs does more than the one in the row above, on the dumbbell of `xcp-150`. The bare loop has no laws,
losses or statistics. It is the lower bound for any simulator with this event queue.

{loop}

{linux_part(kernel)}
"""
