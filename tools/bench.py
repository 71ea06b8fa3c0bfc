#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures whole runs: CPU per packet-hop beside ns-2, flows per second, instructions, memory; writes
docs/performance.md.

    python3 tools/bench.py                          # about four minutes
    python3 tools/bench.py --instructions           # and instructions per packet-hop: the same on every run
    python3 tools/bench.py --repetitions 1 --no-write
    python3 tools/bench.py --against                # only the comparison with an earlier commit, built and run in turn

CPU time, not wall time, so that other work on the machine disturbs little; repetitions of both simulators alternate.
Nothing here fails because a time is long: targets are shown beside what was measured.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import engine
import ns2  # tools/ns2, on the path since `engine` was imported

DOCUMENT = engine.ROOT / "docs" / "performance.md"
SCENARIOS = engine.ROOT / "benches" / "scenarios"

LONG_FLOWS = {"protocol": "xcp", "flows": 50, "reverse": 50, "duration_s": 40, "warmup_s": 10, "rtt_ms": 80}
# The same experiments for tools/ns2/dumbbell.tcl.
NS2_TWINS: dict[str, dict[str, Any]] = {
    "xcp-150": LONG_FLOWS | {"rate_mbps": 150},
    "xcp-622": LONG_FLOWS | {"rate_mbps": 622},
    "web-150": {
        "protocol": "reno-red",
        "rate_mbps": 150,
        "rtt_ms": 80,
        "duration_s": 40,
        "warmup_s": 10,
        "flows": 0,
        "web_rate": 750,
        "web_hosts": 50,
        "web_mean_packets": 30,
        "web_shape": 1.35,
        "red_mark_p": 1,
    },
}

FLOW_SCENARIOS = ("rcp-web", "rcp-million")  # many flows that come and go

# The commit that speed is compared with, and the share of its CPU per packet-hop that each scenario is to reach.
BASE = "e2a6845"
TARGET_RATIOS = {"rcp-million": 0.45, "xcp-622": 0.65, "xcp-150": 0.65, "web-150": 0.70}
TARGET_IDLE_AGAINST_BYTES = 900
# A run of half a second says little on a machine that others use: a repetition has as many as fill so many seconds.
REPETITION_S = 8

TARGET_NS_PER_HOP = 60
TARGET_SHARE_OF_NS2 = 0.25
TARGET_WEB_S = 1.5
TARGET_IN_FLIGHT_BYTES = 250
TARGET_IDLE_FLOW_BYTES = 2_000
TARGET_SMALL_BYTES = 30_000_000
TARGET_MILLION_S = 60
TARGET_MILLION_BYTES = 1_000_000_000


@dataclass
class Times:
    """One scenario's repetitions."""

    hops: int = 0
    run_s: list[float] = field(default_factory=list)  # scenario parsed to results ready
    process_s: list[float] = field(default_factory=list)
    ns2_hops: int = 0
    ns2_s: list[float] = field(default_factory=list)
    ns2_setup_s: list[float] = field(default_factory=list)


def measure_times(program: Path, repetitions: int, with_ns2: bool) -> dict[str, Times]:
    times = {name: Times() for name in NS2_TWINS}
    for repetition in range(repetitions):
        for name, t in times.items():
            print(f"repetition {repetition + 1}/{repetitions}: {name}", file=sys.stderr)
            run = engine.run(program, SCENARIOS / f"{name}.toml")
            t.hops = run.summary["packet_hops"]
            t.run_s.append(run.summary["cpu_s"])
            t.process_s.append(run.cpu_s)
            if with_ns2:
                result = ns2.run(timeout_s=1800, **NS2_TWINS[name])
                t.ns2_hops = result["packet_hops"]
                t.ns2_s.append(result["cpu_s"])
                t.ns2_setup_s.append(result["setup_cpu_s"] or result["startup_cpu_s"])
    return times


# ------------------------------------------------------------------------------------------------------- memory


def dumbbell(rate_mbps: int, rtt: str, flows: int, duration: str, more: str = "") -> str:
    """A scenario of long XCP flows."""
    return f"""
duration = "{duration}"
[dumbbell]
rate = "{rate_mbps}Mbps"
rtt = "{rtt}"
router = "xcp"
[[flows]]
name = "long"
law = "xcp"
count = {flows}
{more}
"""


def peak_memory(program: Path, scenario: str) -> tuple[int, dict[str, Any]]:
    """The process's largest resident set in bytes (Linux), and its summary.

    A child's rusage begins with the memory of the Python that forked it. So `VmHWM` is read, at a moment when all is
    done and the process still lives: it cannot leave before its summary, longer than the pipe, has been read.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(scenario)
        file.flush()
        with subprocess.Popen([program, file.name], stdout=subprocess.PIPE, pipesize=4096) as child:
            assert child.stdout is not None
            start = child.stdout.read1(1)
            status = Path(f"/proc/{child.pid}/status").read_text()
            text = start + child.stdout.read()
    if child.returncode != 0:
        raise engine.EngineError(f"{program.name} left with code {child.returncode}")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    if not found:
        raise engine.EngineError("the process ended before its memory could be read")
    return int(found[1]) * 1024, json.loads(text)


@dataclass(frozen=True)
class Memory:
    small_bytes: int
    per_packet_in_flight: float
    per_idle_flow: float


def measure_memory(program: Path) -> Memory:
    print("memory", file=sys.stderr)
    small, _ = peak_memory(program, (SCENARIOS / "xcp-150.toml").read_text().replace("count = 50", "count = 10"))

    # The same path with ten times the round trip: ten times the packets and acks on their way.
    peaks, packets = [], []
    for rtt_ms in (100, 1000):
        peak, summary = peak_memory(program, dumbbell(1000, f"{rtt_ms}ms", 10, "60s"))
        peaks.append(peak)
        # Packets on the wire, data or ack, while the link is as busy as on average. What waits in the queue at the
        # worst moment is left out, so that the quotient is rather too large.
        packets.append(summary["links"]["bottleneck"]["utilization"] * 1e9 * rtt_ms / 1e3 / 8 / 1000)
    in_flight = (peaks[1] - peaks[0]) / (packets[1] - packets[0])

    return Memory(small, in_flight, idle_flow_bytes(program))


def idle_flow_bytes(program: Path) -> float:
    """Memory of a flow that starts a millisecond before the end."""
    idle = [peak_memory(program, dumbbell(1000, "100ms", n, "2s", 'start = "1.999s"'))[0] for n in (10, 10_010)]
    return (idle[1] - idle[0]) / 10_000


# --------------------------------------------------------------------------------------------------------- flows


@dataclass
class Flows:
    """One scenario of many flows: its repetitions."""

    flows: int = 0
    hops: int = 0
    run_s: list[float] = field(default_factory=list)
    peak_bytes: list[int] = field(default_factory=list)


def measure_flows(program: Path, repetitions: int) -> dict[str, Flows]:
    found = {name: Flows() for name in FLOW_SCENARIOS}
    for repetition in range(repetitions):
        for name, f in found.items():
            print(f"repetition {repetition + 1}/{repetitions}: {name}", file=sys.stderr)
            peak, summary = peak_memory(program, (SCENARIOS / f"{name}.toml").read_text())
            f.flows = sum(group["flows"] for group in summary["groups"].values())
            f.hops = summary["packet_hops"]
            f.run_s.append(summary["cpu_s"])
            f.peak_bytes.append(peak)
    return found


# ----------------------------------------------------------------------------------------- against another commit


def build_commit(commit: str) -> tuple[Path, Path]:
    """Builds the engine of `commit` in a worktree of its own; returns the program and its folder of scenarios."""
    root = engine.ROOT / "target" / "against" / commit
    if not root.exists():
        command = ["git", "worktree", "add", "--force", "--detach", str(root), commit]
        if subprocess.run(command, cwd=engine.ROOT, check=False).returncode != 0:
            raise engine.EngineError(f"{commit} could not be laid out; is it a commit of this repository?")
    return engine.build(root=root, target=root / "target"), root / "benches" / "scenarios"


def against(commit: str, repetitions: int, command: str) -> str:
    """The table of this tree beside `commit`, each scenario run by both in turn."""
    theirs, their_scenarios = build_commit(commit)
    ours = engine.build()
    lines = [
        f"| scenario | packet-hops | {commit}: ns per packet-hop | now | ratio: median (least to most) | to reach | |",
        "|---|---|---|---|---|---|---|",
    ]

    def row(name: str, hops: str, before: str, now: str, ratios: list[float], reach: str, met: bool) -> None:
        spread = f"**{statistics.median(ratios):.3f}** ({min(ratios):.3f} to {max(ratios):.3f})"
        lines.append(f"| {name} | {hops} | {before} | {now} | {spread} | {reach} | {'met' if met else '**missed**'} |")

    for name, target in TARGET_RATIOS.items():
        # An old engine knows no header: all bytes are payload to it. Both are to send the same packets.
        header = "header=0B"
        sides = [(theirs, their_scenarios / f"{name}.toml", header), (ours, SCENARIOS / f"{name}.toml", header)]
        try:
            engine.run(theirs, sides[0][1], header, "duration=1ms", "warmup=0s")
        except engine.EngineError:
            sides[0] = (*sides[0][:2], "warmup=" + tomllib.loads(sides[0][1].read_text())["warmup"])
        times: list[list[float]] = [[], []]
        hops = [0, 0]
        for repetition in range(repetitions):
            print(f"repetition {repetition + 1}/{repetitions}: {name}", file=sys.stderr)
            spent = [0.0, 0.0]
            runs = 0
            while sum(spent) < REPETITION_S:
                for side in (0, 1) if (repetition + runs) % 2 == 0 else (1, 0):
                    summary = engine.run(*sides[side]).summary
                    hops[side] = summary["packet_hops"]
                    spent[side] += summary["cpu_s"]
                runs += 1
            for side in (0, 1):
                times[side].append(spent[side] / runs / hops[side] * 1e9)
        # How losses are repaired has changed since: of a TCP's traffic a few packets in a hundred thousand.
        if abs(hops[0] - hops[1]) > hops[0] / 1000:
            raise engine.EngineError(f"{name}: {hops[0]} packet-hops at {commit}, {hops[1]} now: not the same traffic")
        ratios = [now / before for before, now in zip(*times, strict=True)]
        met = statistics.median(ratios) <= target
        row(f"`{name}`", f"{hops[0]:,}", both(times[0], ".1f"), both(times[1], ".1f"), ratios, f"≤ {target:.2f}", met)
    if sys.platform == "linux":
        # What is resident comes in pages, and where blocks lie is drawn anew in each process.
        pairs = [(idle_flow_bytes(theirs), idle_flow_bytes(ours)) for _ in range(repetitions)]
        before, now = zip(*pairs, strict=True)
        reach = f"≤ {TARGET_IDLE_AGAINST_BYTES} bytes"
        met = statistics.median(now) <= TARGET_IDLE_AGAINST_BYTES
        ratios = [b / a for a, b in pairs]
        row("bytes per idle long flow", "", both([*before], ",.0f"), both([*now], ",.0f"), ratios, reach, met)
    return "\n\n".join(
        [
            f"## Beside {commit}",
            f"Made by `{command}` at commit {engine.commit()} on {time.strftime('%Y-%m-%d')}: {engine.machine()}.",
            "\n".join(lines),
            f"CPU time of the run per packet-hop, median (least) of {repetitions} repetitions, in which both programs, "
            f"each built with its commit's profile, run in turn, for {REPETITION_S} s at least; the ratio is taken "
            "within a repetition. Both have the "
            'same packet-hops: all bytes of a packet are payload (`header = "0B"`), as they were in old commits. '
            "ns-2 and the bare loop stand in the tables above and below.",
        ]
    )


# -------------------------------------------------------------------------------------------------- instructions


def perf_counts(program: Path, scenario: Path) -> int | None:
    """Instructions in user mode, or None where `perf` is not there or the machine hides the counter."""
    if shutil.which("perf") is None:
        return None
    command = ["perf", "stat", "-e", "instructions:u", "-x", ",", "--", str(program), str(scenario)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    count = done.stderr.strip().splitlines()[-1].split(",")[0] if done.stderr.strip() else ""
    return int(count) if done.returncode == 0 and count.isdigit() else None


def callgrind_counts(program: Path, scenario: Path, duration: str) -> tuple[int, int] | None:
    """Instructions and packet-hops of a shortened run under valgrind."""
    if shutil.which("valgrind") is None:
        return None
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program), str(scenario)]
    done = subprocess.run([*command, f"duration={duration}", "warmup=0s"], capture_output=True, text=True, check=False)
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if done.returncode != 0 or not found:
        return None
    return int(found[1]), json.loads(done.stdout)["packet_hops"]


def measure_instructions(program: Path, times: dict[str, Times]) -> dict[str, str]:
    """Instructions per packet-hop by scenario, with how they were counted."""
    found = {}
    for name, t in times.items():
        print(f"instructions: {name}", file=sys.stderr)
        scenario = SCENARIOS / f"{name}.toml"
        count = perf_counts(program, scenario)
        if count is not None:
            found[name] = f"{count / t.hops:.0f} (perf, the whole run)"
            continue
        # The difference of two lengths leaves out start-up, set-up and results.
        short, long = (callgrind_counts(program, scenario, d) for d in ("2s", "4s"))
        if short and long:
            found[name] = f"{(long[0] - short[0]) / (long[1] - short[1]):.0f} (callgrind, from 2 s to 4 s)"
        else:
            found[name] = "neither perf nor valgrind counts here"
    return found


# ----------------------------------------------------------------------------------------------------- reporting


def both(values: list[float], form: str = ".3f") -> str:
    """Median and least."""
    return f"{statistics.median(values):{form}} ({min(values):{form}})"


def times_table(times: dict[str, Times]) -> str:
    lines = [
        "| scenario | packet-hops | run, CPU s | process, CPU s | ns per packet-hop | ns-2, packet-hops "
        "| CPU s | without set-up "
        "| share of ns-2 | without set-up |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, t in times.items():
        per_hop = both([s / t.hops * 1e9 for s in t.run_s], ".1f")
        cells = [f"`{name}`", f"{t.hops:,}", both(t.run_s), both(t.process_s), per_hop]
        if t.ns2_s:
            bare = [a - b for a, b in zip(t.ns2_s, t.ns2_setup_s, strict=True)]
            process = statistics.median(t.process_s)
            cells += [f"{t.ns2_hops:,}", both(t.ns2_s), both(bare)]
            cells += [f"{process / statistics.median(t.ns2_s):.3f}", f"**{process / statistics.median(bare):.3f}**"]
        else:
            cells += ["not installed", "", "", "", ""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def targets_table(times: dict[str, Times], memory: Memory | None) -> str:
    """Each target, what was measured, and whether it is met."""
    rows: list[tuple[str, str, str, bool]] = []
    for name, t in times.items():
        value = statistics.median(t.run_s) / t.hops * 1e9
        rows.append(
            (f"ns per packet-hop, `{name}`", f"≤ {TARGET_NS_PER_HOP}", f"{value:.1f}", value <= TARGET_NS_PER_HOP)
        )
    for name, t in times.items():
        if t.ns2_s:
            bare = statistics.median([a - b for a, b in zip(t.ns2_s, t.ns2_setup_s, strict=True)])
            value = statistics.median(t.process_s) / bare
            rows.append(
                (
                    f"share of ns-2's CPU, `{name}`",
                    f"≤ {TARGET_SHARE_OF_NS2}",
                    f"{value:.3f}",
                    value <= TARGET_SHARE_OF_NS2,
                )
            )
    value = statistics.median(times["web-150"].process_s)
    rows.append(("`web-150`, CPU s", f"< {TARGET_WEB_S}", f"{value:.2f}", value < TARGET_WEB_S))
    if memory:
        m = memory
        rows += [
            (
                "bytes per packet in flight",
                f"< {TARGET_IN_FLIGHT_BYTES}",
                f"{m.per_packet_in_flight:.0f}",
                m.per_packet_in_flight < TARGET_IN_FLIGHT_BYTES,
            ),
            (
                "bytes per idle long flow",
                f"< {TARGET_IDLE_FLOW_BYTES:,}",
                f"{m.per_idle_flow:,.0f}",
                m.per_idle_flow < TARGET_IDLE_FLOW_BYTES,
            ),
            (
                "whole process, 10 flows each way, MB",
                f"< {TARGET_SMALL_BYTES / 1e6:.0f}",
                f"{m.small_bytes / 1e6:.1f}",
                m.small_bytes < TARGET_SMALL_BYTES,
            ),
        ]
    lines = ["| what | target | measured | |", "|---|---|---|---|"]
    lines += [
        f"| {what} | {target} | {measured} | {'met' if met else '**missed**'} |" for what, target, measured, met in rows
    ]
    return "\n".join(lines)


def report(
    times: dict[str, Times], memory: Memory | None, instructions: dict[str, str], repetitions: int, command: str
) -> str:
    parts = [
        "## Whole runs",
        f"Made by `{command}` at commit {engine.commit()} on {time.strftime('%Y-%m-%d')}: {engine.machine()}.",
        times_table(times),
        f"Median (least) of {repetitions} repetitions, which alternate with ns-2's. A packet-hop is a "
        "packet or an ack that "
        "reaches a link, access links included. *Run*: from the scenario parsed to the results ready, as "
        "`cpu_s` in what `examples/run.rs` prints; ns per packet-hop is this over the packet-hops. *Process*: user "
        "and system time of the whole process, from "
        "its own rusage. ns-2's set-up is its start and the building of the network in Tcl; web flows' "
        "agents are built "
        "as its run goes. **The claim is the bold column**: our whole process, start and output included, over ns-2 "
        "without its set-up, both for the same scenario and simulated time.",
        targets_table(times, memory),
    ]
    if memory:
        parts.append(
            "Memory is the process's largest resident set. Per packet in flight: 1 Gb/s, 10 flows, a round "
            "trip of 1 s less "
            "one of 100 ms, over the difference in packets and acks on the wire. Per idle flow: 10,010 "
            "flows that start "
            "1 ms before the end, less 10 such flows; this includes each flow's two hosts with their four links, its "
            "row of results and its text in the summary."
        )
    if instructions:
        parts.append(
            "Instructions per packet-hop:\n\n" + "\n".join(f"- `{name}`: {v}" for name, v in instructions.items())
        )
    return "\n\n".join(parts)


def flows_report(flows: dict[str, Flows], repetitions: int, command: str) -> str:
    lines = [
        "| scenario | flows | packet-hops | run, CPU s | flows per CPU s | ns per packet-hop | memory, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, f in flows.items():
        rate = f"{f.flows / statistics.median(f.run_s):,.0f}"
        per_hop = both([s / f.hops * 1e9 for s in f.run_s], ".1f")
        peak = f"{statistics.median(f.peak_bytes) / 1e6:.0f}"
        lines.append(f"| `{name}` | {f.flows:,} | {f.hops:,} | {both(f.run_s)} | {rate} | {per_hop} | {peak} |")
    million = flows["rcp-million"]
    met = statistics.median(million.run_s) < TARGET_MILLION_S, max(million.peak_bytes) < TARGET_MILLION_BYTES
    return "\n\n".join(
        [
            "## Many flows that come and go",
            f"Made by `{command}` at commit {engine.commit()} on {time.strftime('%Y-%m-%d')}: {engine.machine()}.",
            "\n".join(lines),
            f"Median (least) of {repetitions} repetitions, each on one core. *Run* is as in whole runs; memory is the "
            "process's largest resident set, a row of results for each flow included.",
            f"Targets for `rcp-million`: less than {TARGET_MILLION_S} s, {'met' if met[0] else '**missed**'}; "
            f"less than {TARGET_MILLION_BYTES / 1e9:.0f} GB, {'met' if met[1] else '**missed**'}.",
        ]
    )


def write(section: str, text: str, arguments: argparse.Namespace) -> None:
    print(text)
    if not arguments.no_write:
        engine.write_section(DOCUMENT, section, text, "Performance")
        print(f"written: {DOCUMENT.relative_to(engine.ROOT)}", file=sys.stderr)


def whole_runs(program: Path, arguments: argparse.Namespace) -> None:
    with_ns2 = ns2.available()
    if not with_ns2:
        print("ns-2's part is skipped: ns2 is not installed (Debian and Ubuntu: apt install ns2)", file=sys.stderr)
    times = measure_times(program, arguments.repetitions, with_ns2)
    memory = measure_memory(program) if sys.platform == "linux" else None
    instructions = measure_instructions(program, times) if arguments.instructions else {}
    command = "python3 tools/bench.py" + (" --instructions" if arguments.instructions else "")
    write("bench", report(times, memory, instructions, arguments.repetitions, command), arguments)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=5, help="runs of each scenario (default: 5)")
    parser.add_argument(
        "--instructions", action="store_true", help="count instructions, by perf or else valgrind (slow)"
    )
    parser.add_argument("--only-flows", action="store_true", help="only the scenarios of many flows, without ns-2")
    parser.add_argument(
        "--against", nargs="?", const=BASE, metavar="COMMIT", help=f"only the comparison with COMMIT (default: {BASE})"
    )
    parser.add_argument("--no-write", action="store_true", help=f"leave {DOCUMENT.relative_to(engine.ROOT)} as it is")
    arguments = parser.parse_args()
    if arguments.repetitions < 1:
        parser.error("--repetitions is at least 1")

    if arguments.against:
        commit = arguments.against
        command = f"python3 tools/bench.py --against {commit} --repetitions {arguments.repetitions}"
        write("against", against(commit, arguments.repetitions, command), arguments)
        return 0
    program = engine.build()
    if not arguments.only_flows:
        whole_runs(program, arguments)
    if sys.platform == "linux":
        flows = measure_flows(program, arguments.repetitions)
        command = f"python3 tools/bench.py --only-flows --repetitions {arguments.repetitions}"
        write("flows", flows_report(flows, arguments.repetitions, command), arguments)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (engine.EngineError, ns2.Ns2Error) as error:
        sys.exit(f"bench.py: {error}")
