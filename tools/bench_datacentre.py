# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Speed of the engine on fat trees: the part of `bench.py` for data centres."""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path

import engine

EXAMPLE = engine.ROOT / "examples" / "fat_tree.toml"
DCTCP, RCP = ("dctcp", 'queue = { kind = "red", step = 40, step_drops = false }'), ("rcp", 'router = "rcp"')


def permutation(k: int, law: tuple[str, str], duration: str) -> str:
    """A scenario in which each host sends to one other host, and receives from one."""
    return f"""
duration = "{duration}"
[fat_tree]
k = {k}
rate = "100Gbps"
delay = "1us"
buffer = "200kB"
{law[1]}
[[flows]]
name = "permutation"
law = "{law[0]}"
pattern = "permutation"
[probes]
every = "50us"
links = false
"""


# Names, numbers of hosts, and scenarios.
SCENARIOS: list[tuple[str, int, Path | str]] = [
    ("k = 8, permutation, DCTCP, 2 ms", 128, permutation(8, DCTCP, "2ms")),
    ("k = 8, permutation, RCP, 2 ms", 128, permutation(8, RCP, "2ms")),
    ("k = 8, web flows (`examples/fat_tree.toml`), 5 ms", 128, EXAMPLE),
    ("k = 16, permutation, DCTCP, 300 us", 1024, permutation(16, DCTCP, "300us")),
    ("k = 16, permutation, RCP, 300 us", 1024, permutation(16, RCP, "300us")),
    ("k = 24, permutation, DCTCP, 100 us", 3456, permutation(24, DCTCP, "100us")),
    ("k = 32, permutation, DCTCP, 100 us", 8192, permutation(32, DCTCP, "100us")),
]


@dataclass
class Times:
    """One scenario's repetitions."""

    hops: int = 0
    run_s: list[float] = field(default_factory=list)
    setup_s: list[float] = field(default_factory=list)


def measure(program: Path, repetitions: int) -> list[Times]:
    """Runs each scenario once in each repetition."""
    times = [Times() for _ in SCENARIOS]
    for repetition in range(repetitions):
        for (name, _, scenario), t in zip(SCENARIOS, times, strict=True):
            print(f"repetition {repetition + 1}/{repetitions}: {name}", file=sys.stderr)
            run = engine.run(program, scenario)
            t.hops = run.summary["packet_hops"]
            t.run_s.append(run.summary["cpu_s"])
            t.setup_s.append(run.cpu_s - run.summary["cpu_s"])
    return times


def table(times: list[Times]) -> str:
    """The table of docs/performance.md: median and minimum."""

    def both(values: list[float], form: str) -> str:
        return f"{statistics.median(values):{form}} ({min(values):{form}})"

    lines = ["| fat tree | hosts | packet-hops | ns per packet-hop | set-up and results, s |", "|---|---|---|---|---|"]
    for (name, hosts, _), t in zip(SCENARIOS, times, strict=True):
        per_hop = both([s / t.hops * 1e9 for s in t.run_s], ".0f")
        lines.append(f"| {name} | {hosts:,} | {t.hops:,} | {per_hop} | {both(t.setup_s, '.2f')} |")
    return "\n".join(lines)
