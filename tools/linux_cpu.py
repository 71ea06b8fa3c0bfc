# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures the CPU time of a lab's hosts by exclusion. It needs a machine that does little else.

The kernel does much of a host's work in interrupts, and accounts it to no process or to the one that was interrupted.
Therefore this computes it by exclusion, between two moments of a run in its steady state:

    hosts = busy time of all processors - the lab's own process, which is the path - all processes outside the lab

Busy time is all time but idle, which the kernel counts by the clock and not by ticks. It therefore includes interrupt
work for the hosts' packets on any processor, the veth ends and the kernel's own threads. The time of processes
outside the lab is known and subtracted, but it includes interrupts for the lab. If they take more than
`STRANGERS_MAX`, there is no result.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

STRANGERS_MAX = 0.1  # processors
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
KTHREADD = 2


@dataclass(frozen=True)
class Sample:
    """CPU seconds until a moment."""

    at_s: float
    busy_s: float  # of all processors, up to a constant
    path_s: float
    strangers_s: float


@dataclass(frozen=True)
class Spent:
    """Processors' worth of work between two samples."""

    window_s: float
    hosts: float
    path: float
    strangers: float

    def hosts_s_per_gigabit(self, rate_bps: float) -> float | None:
        """CPU seconds of the hosts per gigabit; None if processes outside the lab took too much."""
        return self.hosts / (rate_bps / 1e9) if rate_bps > 0 and self.strangers <= STRANGERS_MAX else None


def _processes() -> dict[int, tuple[int, float, float]]:
    """By process id: the parent, the process's own seconds, and those of its children that have ended."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        user, system, children_user, children_system = (int(field) / TICKS_PER_S for field in fields[11:15])
        found[int(folder.name)] = (int(fields[1]), user + system, children_user + children_system)
    return found


def _line_of(pid: int, processes: dict[int, tuple[int, float, float]]) -> set[int]:
    """The process and its ancestors."""
    line: set[int] = set()
    while pid in processes and pid not in line:
        line.add(pid)
        pid = processes[pid][0]
    return line


def sample(lab: int) -> Sample:
    """Takes a sample now; `lab` is the process id of the lab."""
    processes = _processes()
    strangers = 0.0
    for pid, (_, own, children) in processes.items():
        if not {lab, KTHREADD} & _line_of(pid, processes):
            strangers += own + children
    # cpu user nice system idle iowait irq softirq steal ...
    fields = Path("/proc/stat").read_text().split()
    at = time.monotonic()
    not_busy = (int(fields[4]) + int(fields[5]) + int(fields[8])) / TICKS_PER_S
    return Sample(
        at_s=at,
        busy_s=(os.cpu_count() or 1) * at - not_busy,
        path_s=processes[lab][1] if lab in processes else 0.0,
        strangers_s=strangers,
    )


def between(first: Sample, last: Sample) -> Spent:
    window = last.at_s - first.at_s
    path, strangers = last.path_s - first.path_s, max(last.strangers_s - first.strangers_s, 0.0)
    busy = last.busy_s - first.busy_s
    return Spent(
        window_s=window,
        hosts=(busy - path - strangers) / window,
        path=path / window,
        strangers=strangers / window,
    )
