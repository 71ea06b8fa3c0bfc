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
    """Returns a scenario in which each host sends to one other host, and receives from one."""
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


# Names and scenarios of the runs on several threads. The last is divided among many.
THREADED: list[tuple[str, Path | str]] = [
    ("k = 8, permutation, DCTCP, 2 ms", permutation(8, DCTCP, "2ms")),
    ("k = 8, permutation, RCP, 2 ms", permutation(8, RCP, "2ms")),
    ("k = 8, web flows, 5 ms", EXAMPLE),
    ("k = 16, permutation, DCTCP, 300 us", permutation(16, DCTCP, "300us")),
    ("k = 16, permutation, RCP, 300 us", permutation(16, RCP, "300us")),
]
PARTS = (2, 4, 8, 16, 32, 64)
# Windows of one event or none, so that threads do little but synchronise.
SLOW = """
duration = "2s"
[dumbbell]
rate = "10Mbps"
rtt = "20us"
buffer = "100pkt"
[[flows]]
name = "one"
law = "reno"
[probes]
links = false
groups = false
"""


THREADS = """\
### On several threads

`flowstamp run --threads N` divides one network among N threads. The results are the same bytes as with one thread.
Each thread has several parts of the network, and runs them in turn as one thread does
([How the engine is fast](explanation/engine.md)).

{times}

The threads run in *windows* of simulated time, and synchronise after each one. A window is as long as the least
delay of a link between two parts, here 1 us. One synchronisation of two threads takes {pause} us. This is little in a
large network: with k = 16, each of the {windows} windows has {events} events.

In each window, all threads wait for the part with the most events. This limits the gain from more threads, here for
RCP with k = 16:

{most}

This limit is computed from numbers of events, because our machine has only two cores. It assumes that every event
costs the same. It leaves out synchronisation, and the memory that cores share. For comparison, the paper on Unison
(EuroSys 2024), a parallel kernel for ns-3, reports 40 times the speed of one thread on 24 cores.
"""


def threads(program: Path, repetitions: int) -> str:
    """Measures runs on one and on two threads, and how evenly more threads would share the work. Returns a section.

    The times are wall times: nothing else may run.
    """
    lines = ["| fat tree | 1 thread, s | 2 threads, s | times as fast |", "|---|---|---|---|"]
    for name, scenario in THREADED:
        print(f"threads: {name}", file=sys.stderr)
        walls: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(repetitions):
            for count, wall in walls.items():
                wall.append(engine.run(program, scenario, f"threads={count}").summary["wall_s"])
        one, two = (statistics.median(walls[count]) for count in walls)
        lines.append(f"| {name} | {one:.2f} | {two:.2f} | **{one / two:.2f}** |")
    most = ["| threads | times as fast as one thread, at most |", "|---|---|"]
    for count in PARTS:
        summary = engine.run(program, THREADED[-1][1], f"threads={count}").summary
        _, longest = summary["windows_and_longest"]
        most.append(f"| {count} | {summary['events'] / longest:.1f} |")
    windows, _ = summary["windows_and_longest"]
    slow = [engine.run(program, SLOW, "threads=2").summary for _ in range(repetitions)]
    pauses = [s["wall_s"] / s["windows_and_longest"][0] for s in slow]
    return THREADS.rstrip("\n").format(
        times="\n".join(lines),
        most="\n".join(most),
        pause=f"{statistics.median(pauses) * 1e6:.1f}",
        windows=windows,
        events=f"{round(summary['events'] / windows / 1000):,},000",
    )


def table(times: list[Times]) -> str:
    """Returns the table of docs/performance.md: median and minimum."""

    def both(values: list[float], form: str) -> str:
        return f"{statistics.median(values):{form}} ({min(values):{form}})"

    lines = ["| fat tree | hosts | packet-hops | ns per packet-hop | set-up and results, s |", "|---|---|---|---|---|"]
    for (name, hosts, _), t in zip(SCENARIOS, times, strict=True):
        per_hop = both([s / t.hops * 1e9 for s in t.run_s], ".0f")
        lines.append(f"| {name} | {hosts:,} | {t.hops:,} | {per_hop} | {both(t.setup_s, '.2f')} |")
    return "\n".join(lines)
