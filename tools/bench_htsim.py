# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Speed beside htsim (github.com/Broadcom/csg-htsim) on one fat tree: a part of `bench.py` for data centres.

The environment variable `HTSIM` names the folder with htsim's program `htsim_swift`: `sim/datacenter`, after `make`.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import engine

K = 8
HOSTS = K**3 // 4
PACKETS = 4000
PAYLOAD, PACKET = 1440, 1500
# Host links and buffers as htsim_swift has them by its own defaults: 1 us for each link, buffers in packets.
BUFFER = 133

SCENARIO = """
duration = "4ms"
packet = "1500B"
[fat_tree]
k = {k}
rate = "100Gbps"
delay = "1us"
buffer = "{buffer}pkt"
[[flows]]
name = "permutation"
law = "swift"
list = "{flows}"
[probes]
every = "50us"
links = false
"""


def program() -> Path | None:
    """Returns htsim's program if `HTSIM` names one.

    Raises:
        EngineError: `HTSIM` names a folder without it.
    """
    folder = os.environ.get("HTSIM")
    if not folder:
        return None
    found = Path(folder) / "htsim_swift"
    if not found.is_file():
        raise engine.EngineError(
            f"HTSIM={folder} has no program htsim_swift; name htsim's sim/datacenter, after make there"
        )
    return found


def links_between(a: int, b: int) -> int:
    """Returns the number of links between two hosts."""
    if a // (K // 2) == b // (K // 2):
        return 2
    return 4 if a // (K * K // 4) == b // (K * K // 4) else 6


def pairs() -> list[tuple[int, int]]:
    """Returns a permutation without a host that sends to itself."""
    draw, to = random.Random(1), list(range(HOSTS))
    while any(a == b for a, b in enumerate(to)):
        draw.shuffle(to)
    return list(enumerate(to))


def run_htsim(found: Path, matrix: Path, packets: int) -> tuple[float, int]:
    """Runs htsim with flows of this many packets. Returns the CPU time in seconds, and how many flows ended."""
    command = [
        str(found), "-nodes", str(HOSTS), "-linkspeed", "100000", "-mtu", str(PACKET), "-flowsize", str(packets),
        "-end", "4000", "-q", str(BUFFER), "-tm", str(matrix), "-o", str(matrix.with_suffix(".log")),
    ]  # fmt: skip
    with matrix.with_suffix(".out").open("w") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise engine.EngineError(f"{found} left with code {child.returncode}")
    ended = matrix.with_suffix(".out").read_text().count(" finished at ")
    return usage.ru_utime + usage.ru_stime, ended


def compare(ours: Path, found: Path, repetitions: int) -> str:
    """Runs the same flows in both simulators, in turn. Returns a paragraph with the costs of a packet-hop."""
    flows = pairs()
    # Each data packet has an ack, which crosses as many links. htsim sends one packet more than its size says. A run
    # with flows of one packet is taken off as the set-up. Retransmissions are not counted.
    hops = 2 * (PACKETS - 1) * sum(links_between(a, b) for a, b in flows)
    theirs_s, ours_s, our_hops = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        matrix, rows = Path(folder) / "permutation.cm", Path(folder) / "flows.csv"
        size = PACKETS * PAYLOAD
        lines = [f"{a}->{b} start 0 size {size}" for a, b in flows]
        matrix.write_text("\n".join([f"Nodes {HOSTS}", f"Connections {HOSTS}", *lines]) + "\n")
        rows.write_text("start,size,from,to\n" + "".join(f"0,{size},h{a},h{b}\n" for a, b in flows))
        scenario = Path(folder) / "scenario.toml"
        scenario.write_text(SCENARIO.format(k=K, buffer=BUFFER, flows=rows))
        for repetition in range(repetitions):
            print(f"repetition {repetition + 1}/{repetitions}: beside htsim", file=sys.stderr)
            setup_s, _ = run_htsim(found, matrix, 1)
            cpu_s, ended = run_htsim(found, matrix, PACKETS)
            if ended != HOSTS:
                raise engine.EngineError(f"htsim ended {ended} of {HOSTS} flows")
            theirs_s.append(cpu_s - setup_s)
            run = engine.run(ours, scenario)
            completed = run.summary["groups"]["permutation"]["completed"]
            if completed != HOSTS:
                raise engine.EngineError(f"Flowstamp ended {completed} of {HOSTS} flows")
            ours_s.append(run.summary["cpu_s"])
            our_hops = run.summary["packet_hops"]
    their_ns = statistics.median(theirs_s) / hops * 1e9
    our_ns = statistics.median(ours_s) / our_hops * 1e9
    return (
        f"Beside htsim, {HOSTS} flows of {PACKETS:,} packets under Swift, each host to one other, k = {K}: "
        f"a packet-hop takes Flowstamp {our_ns:.0f} ns and htsim {their_ns:.0f} ns, "
        f"{their_ns / our_ns:.1f} times as long ({our_hops:,} and {hops:,} packet-hops)."
    )
