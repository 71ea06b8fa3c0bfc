#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures speed and memory. All numbers of docs/performance.md come from one run of `tools/bench.py --all`.

        tools/bench.py                    the engine, beside ns-2 if that is installed; prints tables
        tools/bench.py --all              everything, including the kernel's part (as root); writes docs/performance.md
        tools/bench.py --datacentre       fat trees of 128 to 8192 hosts; prints a table. Where HTSIM= names htsim's
                                          folder sim/datacenter, htsim is beside them
        tools/bench.py --threads          fat trees on one and on two threads; prints tables
        tools/bench.py --against COMMIT   CPU time beside that of an earlier commit; builds both and runs them in turn

It measures CPU time, which other work on the machine disturbs less than wall time. Repetitions of both sides alternate.
No measured time is a failure, however long.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bench_datacentre
import bench_htsim
import bench_page
import engine
import ns2  # tools/ns2, on the path since `engine` was imported

SCENARIOS = engine.ROOT / "benches" / "scenarios"
PYTHON = engine.ROOT / ".venv" / "bin" / "python"

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

FLOW_SCENARIOS = ("rcp-web", "rcp-million")  # many flows that arrive during the run
AGAINST = ("rcp-million", "xcp-622", "xcp-150", "web-150")
# A run of half a second is too noisy on a shared machine. A repetition has as many runs as fill this time.
REPETITION_S = 8


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


def perf_counts(program: Path, scenario: Path) -> int | None:
    """Instructions in user mode; None without `perf`, or if the machine hides the counter."""
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


def instructions_per_hop(program: Path, name: str, hops: int) -> float | None:
    """Counted by perf over the whole run, or else by callgrind; None if neither can count."""
    scenario = SCENARIOS / f"{name}.toml"
    count = perf_counts(program, scenario)
    if count is not None:
        return count / hops
    # The difference of two lengths leaves out start-up, set-up and results.
    short, long = (callgrind_counts(program, scenario, d) for d in ("2s", "4s"))
    return (long[0] - short[0]) / (long[1] - short[1]) if short and long else None


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

    A child's rusage starts with the memory of the Python that forked it, so this reads `VmHWM` instead. At that moment
    the work is done, but the process cannot have exited: its summary, longer than the pipe, has not been read yet.
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

    # The same path with ten times the round-trip time: ten times the packets and acks in flight.
    peaks, packets = [], []
    for rtt_ms in (100, 1000):
        peak, summary = peak_memory(program, dumbbell(1000, f"{rtt_ms}ms", 10, "60s"))
        peaks.append(peak)
        # Packets in flight, data or ack, while the link is as busy as on average. The largest queue is left out, so the
        # quotient is rather too large.
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
    """Repetitions of one scenario with many flows."""

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


# ----------------------------------------------------------------------------------------- beside the bare loop, cells


def bare_loop() -> str:
    """The table of `cargo bench --bench profile`."""
    command = ["cargo", "bench", "--locked", "-p", "flowstamp-sim", "--bench", "profile"]
    done = subprocess.run(command, cwd=engine.ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise engine.EngineError(f"`{' '.join(command)}` failed; its messages are above")
    return done.stdout.strip()


CELL = """
import json
from flowstamp import _flowstamp
from flowstamp.figures import load

figure = load("B11")
points = (0, 6, 12)
rows = []
for run in (figure.runs[0], figure.runs[2]):
    for point in points:
        jobs = [figure.job(run, point)] * 3
        took = [json.loads(run.manifest_json())["took"] for run in _flowstamp.run_many(jobs, threads=1)]
        rows.append(min(t["cpu_s"] for t in took))
print(json.dumps({"points": points, "cpu_s": rows}))
"""


def cell() -> dict[str, Any]:
    """CPU seconds of figure B11's runs at three scales: XCP-b, then NewReno."""
    done = subprocess.run([PYTHON, "-c", CELL], cwd=engine.ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def command() -> dict[str, float]:
    """Least wall and CPU seconds of `flowstamp run examples/five.toml` in five calls, and its peak memory in bytes."""
    program = engine.ROOT / ".venv" / "bin" / "flowstamp"
    timed = "import json,resource,subprocess,sys,time\n" + (
        "t=time.perf_counter();subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,check=True)\n"
        "w=time.perf_counter()-t;u=resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps([w,u.ru_utime+u.ru_stime,u.ru_maxrss*1024]))"
    )
    call = [PYTHON, "-c", timed, program, "run", engine.ROOT / "examples" / "five.toml"]
    rows = [json.loads(subprocess.run(call, capture_output=True, text=True, check=True).stdout) for _ in range(5)]
    return {"wall_s": min(r[0] for r in rows), "cpu_s": min(r[1] for r in rows), "peak_bytes": max(r[2] for r in rows)}


# ----------------------------------------------------------------------------------------- against another commit


def build_commit(commit: str) -> tuple[Path, Path]:
    """Builds the engine of `commit` in a worktree of its own; returns the program and its folder of scenarios."""
    root = engine.ROOT / "target" / "against" / commit
    if not root.exists():
        command = ["git", "worktree", "add", "--force", "--detach", str(root), commit]
        if subprocess.run(command, cwd=engine.ROOT, check=False).returncode != 0:
            raise engine.EngineError(f"{commit} could not be laid out; is it a commit of this repository?")
    return engine.build(root=root, target=root / "target"), root / "benches" / "scenarios"


def pair(name: str, sides: list[tuple[Any, ...]], repetitions: int) -> tuple[list[list[float]], list[int]]:
    """Nanoseconds per packet-hop of both sides in each repetition, and their packet-hops."""
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
    return times, hops


def against(commit: str, repetitions: int) -> str:
    """The table of this tree beside `commit`, each scenario run by both in turn."""
    theirs, their_scenarios = build_commit(commit)
    ours = engine.build()
    lines = [
        f"| scenario | packet-hops | {commit}: ns per packet-hop | now | ratio: median (least to most) |",
        "|---|---|---|---|---|",
    ]

    def row(name: str, hops: str, before: str, now: str, ratios: list[float]) -> None:
        spread = f"**{statistics.median(ratios):.3f}** ({min(ratios):.3f} to {max(ratios):.3f})"
        lines.append(f"| {name} | {hops} | {before} | {now} | {spread} |")

    for name in AGAINST:
        # An old engine knows no header: it counts all bytes as payload. Both sides are to send the same packets.
        header = "header=0B"
        sides = [(theirs, their_scenarios / f"{name}.toml", header), (ours, SCENARIOS / f"{name}.toml", header)]
        try:
            engine.run(theirs, sides[0][1], header, "duration=1ms", "warmup=0s")
        except engine.EngineError:
            sides[0] = (*sides[0][:2], "warmup=" + tomllib.loads(sides[0][1].read_text())["warmup"])
        times, hops = pair(name, sides, repetitions)
        # Loss recovery has changed since: a few packets in a hundred thousand of a TCP's traffic differ.
        if abs(hops[0] - hops[1]) > hops[0] / 1000:
            raise engine.EngineError(f"{name}: {hops[0]} packet-hops at {commit}, {hops[1]} now: not the same traffic")
        ratios = [now / before for before, now in zip(*times, strict=True)]
        row(f"`{name}`", f"{hops[0]:,}", bench_page.both(times[0], ".1f"), bench_page.both(times[1], ".1f"), ratios)
    if sys.platform == "linux":
        # Resident memory is counted in pages, and the addresses of blocks are random in each process.
        pairs = [(idle_flow_bytes(theirs), idle_flow_bytes(ours)) for _ in range(repetitions)]
        before, now = ([*side] for side in zip(*pairs, strict=True))
        ratios = [b / a for a, b in pairs]
        row("bytes per idle long flow", "", bench_page.both(before, ",.0f"), bench_page.both(now, ",.0f"), ratios)
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------------------------- main


def kernel(program: str | None) -> dict[str, Any] | str:
    """Measures the kernel's part: the router's cost, and RCP and XCP beside the kernel's laws; or says why not."""
    if program is None:
        return "the program flowstamp-linux is not built (`make linux`)"
    if os.geteuid() != 0:
        return "it needs root"
    import linux_bench
    import linux_table

    words = ["--program", program, "--rates", "100Mbps,1Gbps", "--flows", "4", "--laws", "rcp,xcp,cubic,bbr"]
    arguments = linux_bench.options().parse_args(words)
    router = linux_table.router_report(linux_bench.measure_router(arguments))
    return {"router": router, "paths": linux_table.report(*linux_bench.measure_paths(arguments))}


def everything(arguments: argparse.Namespace) -> None:
    """Measures everything, and writes the page at the end."""
    if Path(sys.prefix).resolve() != (engine.ROOT / ".venv").resolve():
        if not PYTHON.exists():
            raise engine.EngineError("--all runs the command and figures too; say make build first")
        os.execv(PYTHON, [str(PYTHON), __file__, *sys.argv[1:]])
    if not ns2.available():
        raise engine.EngineError("--all needs ns-2 (Debian and Ubuntu: apt install ns2)")
    name = engine.commit()
    if name.endswith("+"):
        raise engine.EngineError("the engine's files differ from the last commit; commit them, or leave out --all")
    program = engine.build()
    linux = engine.ROOT / ".venv" / "bin" / "flowstamp-linux"
    times = measure_times(program, arguments.repetitions, with_ns2=True)
    counts = {n: instructions_per_hop(program, n, t.hops) for n, t in times.items()}
    flows, memory = measure_flows(program, arguments.repetitions), measure_memory(program)
    wifi, loop, start = cell(), bare_loop(), command()
    trees = bench_datacentre.table(bench_datacentre.measure(program, arguments.repetitions))
    trees += "\n\n" + bench_datacentre.threads(program, arguments.repetitions)
    text = bench_page.page(
        name, times, counts, flows, trees, memory, wifi, loop, start, kernel(str(linux) if linux.exists() else None)
    )
    bench_page.DOCUMENT.write_text(text)
    print(f"written: {bench_page.DOCUMENT.relative_to(engine.ROOT)}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=3, help="runs of each scenario (default: 3)")
    parser.add_argument("--all", action="store_true", help="measure everything and write docs/performance.md")
    parser.add_argument("--datacentre", action="store_true", help="measure only fat trees")
    parser.add_argument("--threads", action="store_true", help="measure only runs on several threads")
    parser.add_argument("--against", metavar="COMMIT", help="only the comparison with COMMIT")
    arguments = parser.parse_args()
    if arguments.repetitions < 1:
        parser.error("--repetitions is at least 1")
    if sum(map(bool, (arguments.all, arguments.datacentre, arguments.threads, arguments.against))) > 1:
        parser.error("--all, --datacentre, --threads and --against exclude each other")
    if arguments.all:
        everything(arguments)
    elif arguments.threads:
        print(bench_datacentre.threads(engine.build(), arguments.repetitions))
    elif arguments.datacentre:
        program, htsim = engine.build(), bench_htsim.program()
        print(bench_datacentre.table(bench_datacentre.measure(program, arguments.repetitions)))
        if htsim is not None:
            print("\n" + bench_htsim.compare(program, htsim, arguments.repetitions))
    elif arguments.against:
        print(against(arguments.against, arguments.repetitions))
    else:
        program = engine.build()
        with_ns2 = ns2.available()
        if not with_ns2:
            print("ns-2 is not installed (Debian and Ubuntu: apt install ns2): left out", file=sys.stderr)
        times = measure_times(program, arguments.repetitions, with_ns2)
        print(bench_page.engine_table(times, dict.fromkeys(times)))
        if with_ns2:
            print("\n" + bench_page.ns2_table(times))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (engine.EngineError, ns2.Ns2Error) as error:
        sys.exit(f"bench.py: {error}")
