#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Compares TCPs with ns-2's `Agent/TCP/Linux`, which runs Linux's own modules: docs/notes/tcp-beside-linux.md.

    .venv/bin/python tools/tcp_linux.py                              # some minutes
    .venv/bin/python tools/tcp_linux.py --only cubic --no-write

Each law has the module's parameters. A difference beyond the limits below must have its explanation in EXPLANATIONS, or
the exit code is 1.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import engine
import ns2  # tools/ns2, on the path since `engine` was imported

import flowstamp as fs

DOCUMENT = engine.ROOT / "docs" / "notes" / "tcp-beside-linux.md"

UTILISATION_LIMIT = 0.03  # relative
WINDOW_LIMIT = 0.05  # relative
PERIOD_LIMIT = 0.15  # relative: half a cycle more or less at either end of a run is 5% of ten cycles
APART_MS = (20, 30, 50)  # between the flows' starts: one run for each
SAMPLE_S = 0.01
WARMUP_S, DURATION_S = 60, 300
RTT_MS = 80


@dataclass(frozen=True)
class Law:
    """A law of Flowstamp and the module of Linux."""

    name: str
    law: str  # with the module's parameters
    module: str
    sets: str = ""  # parameters of the module: module:name:value


LAWS = [
    Law("reno", '{ law = "sack" }', "reno"),
    Law("highspeed", '{ law = "highspeed" }', "highspeed"),
    Law("scalable", '{ law = "scalable", increase = 0.02, legacy_window = 50.0 }', "scalable"),
    Law("htcp", '{ law = "htcp" }', "htcp"),
    Law("bic", '{ law = "bic", max_step = 16.0, decrease = 0.2 }', "bic", "bic:beta:819"),
    Law("cubic", '{ law = "cubic", variant = "paper" }', "cubic", "cubic:beta:819"),
    Law("cubic-0.7", '{ law = "cubic", beta = 0.7 }', "cubic", "cubic:beta:717"),
]


@dataclass(frozen=True)
class Dumbbell:
    """One dumbbell of 80 ms with a buffer of one bandwidth-delay product."""

    rate_mbps: int
    flows: int
    queue: str  # droptail or red

    @property
    def buffer_packets(self) -> int:
        return round(self.rate_mbps * RTT_MS / 8)

    @property
    def apart_ms(self) -> tuple[int, ...]:
        """Gaps between the flows' starts. A single flow behaves the same wherever it starts, so it has one."""
        return APART_MS if self.flows > 1 else APART_MS[:1]

    def __str__(self) -> str:
        return f"{self.rate_mbps} Mb/s, {self.flows}, {self.queue}"


PATHS = [Dumbbell(rate, flows, queue) for queue in ("droptail", "red") for rate in (10, 50) for flows in (1, 4)]


@dataclass
class Measured:
    """Measurements of one side, over its runs."""

    utilisation: list[float] = field(default_factory=list)
    queue_packets: list[float] = field(default_factory=list)
    window: list[float] = field(default_factory=list)
    period_s: list[float] = field(default_factory=list)
    least: list[float] = field(default_factory=list)
    left: list[float] = field(default_factory=list)

    def add(self, utilisation: float, queue_bytes: float, windows: list[tuple[list[float], list[float]]]) -> None:
        self.utilisation.append(utilisation)
        self.queue_packets.append(queue_bytes / 1000)
        self.window.append(statistics.fmean(statistics.fmean(w) for _, w in windows))
        cuts = [cut for times, w in windows for cut in reductions(times, w)]
        self.period_s.append((DURATION_S - WARMUP_S) * len(windows) / max(len(cuts), 1))
        self.least.append(statistics.fmean([cut.least for cut in cuts] or [1.0]))
        self.left.append(statistics.fmean([cut.left for cut in cuts] or [1.0]))

    def mean(self, name: str) -> float:
        return statistics.fmean(getattr(self, name))


@dataclass
class Cut:
    """A window after a reduction: its minimum, and its value at the end of the time that Linux may take."""

    least: float
    left: float


def reductions(times: list[float], windows: list[float]) -> list[Cut]:
    """Every reduction of a window by more than 4%, and the 0.4 s after it: Linux's reductions take a round trip."""
    cuts: list[Cut] = []
    last, high, before = float("-inf"), 0.0, 1.0
    for time, window in zip(times, windows, strict=True):
        if time - last < 0.4:
            cuts[-1] = Cut(min(cuts[-1].least, window / before), window / before)
            high = window
        high = max(high, window)
        if window < 0.96 * high:
            cuts.append(Cut(window / high, window / high))
            last, before, high = time, high, window
    return cuts


def ours(law: Law, path: Dumbbell, red: str = "") -> Measured:
    queue = f'{{ kind = "red", wait = true{red} }}' if path.queue == "red" else '"droptail"'
    measured = Measured()
    for apart in path.apart_ms:
        result = fs.loads(
            f"""
            duration = "{DURATION_S}s"
            warmup = "{WARMUP_S}s"
            header = "0B"
            [dumbbell]
            rate = "{path.rate_mbps}Mbps"
            rtt = "{RTT_MS}ms"
            buffer = "{path.buffer_packets}pkt"
            queue = {queue}
            [[flows]]
            name = "long"
            law = {law.law}
            count = {path.flows}
            every = "{apart}ms"
            [probes]
            every = "{SAMPLE_S * 1000:.0f}ms"
            flows = true
            """
        ).run()
        windows = []
        for kind, name, metric in result.series_names:
            if kind == "flow" and metric == "cwnd_packets":
                times, values = result.series(kind, name, metric)
                after = times >= WARMUP_S
                windows.append((times[after].tolist(), values[after].tolist()))
        link = result.links["bottleneck"]
        measured.add(link["utilization"], link["mean_queue_bytes"], windows)
    return measured


def theirs(law: Law, path: Dumbbell, **more: Any) -> Measured:
    measured = Measured()
    for apart in path.apart_ms:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "windows"
            given: dict[str, Any] = {"linux_ca": law.module, "linux_set": law.sets} | more
            summary = ns2.run(
                protocol="reno-red" if path.queue == "red" else "reno",
                rate_mbps=path.rate_mbps,
                rtt_ms=RTT_MS,
                flows=path.flows,
                buffer_packets=path.buffer_packets,
                duration_s=DURATION_S,
                warmup_s=WARMUP_S,
                red_mark_p=1,
                starts=[n * apart / 1000 for n in range(path.flows)],
                cwnd_log=str(log),
                cwnd_poll_s=SAMPLE_S,
                **given,
            )
            rows = [[float(word) for word in line.split()] for line in log.read_text().splitlines()]
        times = [row[0] for row in rows]
        windows = [(times, [row[1 + n] for row in rows]) for n in range(path.flows)]
        measured.add(summary["utilization"], summary["mean_queue_bytes"], windows)
    return measured


@dataclass(frozen=True)
class Experiment:
    """One rule changed on one side or on both, and what it showed."""

    says: str
    law: Law
    paths: tuple[Dumbbell, ...]
    red: str = ""  # more parameters of Flowstamp's RED
    ns2: dict[str, Any] = field(default_factory=dict)


ALONE, ALONE_RED = Dumbbell(10, 1, "droptail"), Dumbbell(10, 1, "red")
FOUR, FOUR_RED = Dumbbell(10, 4, "droptail"), Dumbbell(10, 4, "red")
SACK1 = {"linux_ca": "", "linux_set": "", "long_tcp": "Sack1"}
BY_NAME = {law.name: law for law in LAWS}

EXPERIMENTS = [
    Experiment("ns-2's own SACK agent instead of its copy of Linux.", BY_NAME["reno"], (ALONE_RED,), ns2=SACK1),
    Experiment(
        "ns-2's own HighSpeed TCP (`windowOption_ 8`) instead of Linux's.",
        BY_NAME["highspeed"],
        (ALONE, FOUR, ALONE_RED),
        ns2=SACK1 | {"tcp_set": "windowOption_:8"},
    ),
    *(
        Experiment(
            "RED's average ten times as fast on both sides (`weight = 0.02`), so that it follows a reduction.",
            BY_NAME[name],
            (ALONE_RED,),
            red=", weight = 0.02",
            ns2={"red_weight": 0.02},
        )
        for name in ("reno", "cubic", "cubic-0.7", "htcp", "scalable", "bic")
    ),
    *(
        Experiment(
            f"Linux's `smooth_part` {part} instead of 20: its end of the search.",
            Law("bic", BY_NAME["bic"].law, "bic", f"bic:beta:819,bic:smooth_part:{part}"),
            (ALONE,),
        )
        for part in (4, 1)
    ),
    *(
        Experiment(
            f"Without {what} on both sides.",
            Law(
                "cubic",
                f'{{ law = "cubic", variant = "paper", {key} = false }}',
                "cubic",
                f"cubic:beta:819,cubic:{name}:0",
            ),
            (FOUR,),
        )
        for what, key, name in (
            ("fast convergence", "fast_convergence", "fast_convergence"),
            ("the TCP-friendly region", "tcp_friendly", "tcp_friendliness"),
        )
    ),
    Experiment(
        "Ours without a legacy window: a loss takes an eighth of any window, as in Linux.",
        Law("scalable", '{ law = "scalable", increase = 0.02, legacy_window = 1.0 }', "scalable"),
        (FOUR_RED,),
    ),
]

# Why a law's values are beyond the limits; without its line here the exit code is 1.
REDUCTION = (
    "`scalable`, `htcp`: Linux's windows close by one with every second ack until the round trip of a reduction "
    "is over, to half of what the law leaves, unless the module says no less than that, as `bic` and `cubic` do; "
    "slow start then opens them to the threshold. Therefore *least* is far below ours. `scalable` has a reduction each "
    "eight round trips, and `htcp` loses more where it should give up less than half. Up to 50 packets ours "
    "halves as TCP does, the module takes an eighth, which makes four flows at 10 Mb/s differ; without the legacy "
    "window ours has the module's mean, though not its growth of 1/W an ack there."
)
AGAIN = (
    "`reno`, `cubic`, `cubic-0.7` over RED: RED's average follows the queue slowly, and Linux's window takes a "
    "round trip to close. A mark that comes then closes it further, where our window, closed at once, is not "
    "marked again. With ns-2's own agent, or with a faster average, the two sides are alike."
)
WHOLE = (
    "`cubic`, `cubic-0.7`, four flows at 10 Mb/s: the same mean windows, of 33 to 48 packets, and periods 16% to "
    "24% apart. Just after a reduction Linux's window grows faster. Neither fast convergence nor the TCP-friendly "
    "region makes the difference, and at 50 Mb/s there is less of it: Linux computes with whole packets and whole "
    "acks for each, which may be the cause and is not shown to be."
)
EXPLANATIONS: dict[str, str] = {
    "reno": AGAIN,
    "cubic": AGAIN,
    "cubic-0.7": WHOLE,
    "scalable": REDUCTION,
    "htcp": REDUCTION,
    "highspeed": (
        "`highspeed`: Linux adds the next row of RFC 3649's table, 3.0 packets a round trip from 118 to 221 "
        "packets (measured; the table has 2 to 3) and 2 from 38 on, and closes its window below what the law "
        "leaves as for `scalable`. ns-2's own HighSpeed TCP is as ours."
    ),
    "bic": (
        "`bic`: Linux goes a quarter of the way to the maximum where the paper goes half, and within four packets "
        "on either side of it 0.2 packets a round trip (`smooth_part`), so that its period is longer at the same "
        "mean window; the shorter that part is made, the shorter the period. The paper has none."
    ),
}

HEAD = """| path | law | | utilisation | queue, packets | mean window | period, s | least, left |
|---|---|---|---|---|---|---|---|"""
LIMITS = {"utilisation": UTILISATION_LIMIT, "window": WINDOW_LIMIT, "period_s": PERIOD_LIMIT}


def beyond(a: Measured, b: Measured) -> list[str]:
    """Quantities that differ by more than their limit, and by more than the runs of one side among themselves."""
    found = []
    for name, limit in LIMITS.items():
        ratio = a.mean(name) / b.mean(name) - 1
        one, other = getattr(a, name), getattr(b, name)
        touch = len(one) > 1 and min(one) <= max(other) and min(other) <= max(one)
        if abs(ratio) > limit and not touch:
            found.append(f"{name.removesuffix('_s')} {ratio:+.0%}")
    return found


def compare(law: Law, path: Dumbbell, red: str = "", **more: Any) -> tuple[list[str], list[str]]:
    """The two lines of the table, and the differences beyond the limits."""
    sides = {"Flowstamp": ours(law, path, red), "ns-2": theirs(law, path, **more)}
    apart = beyond(*sides.values())
    lines = []
    for side, m in sides.items():
        first = (str(path), f"`{law.name}`") if side == "Flowstamp" else ("", ", ".join(apart))
        period = f"{m.mean('period_s'):.2f}"
        if len(m.period_s) > 1:
            period += f" ({min(m.period_s):.2f} to {max(m.period_s):.2f})"
        lines.append(
            f"| {first[0]} | {first[1]} | {side} | {m.mean('utilisation'):.3f} | {m.mean('queue_packets'):.0f} "
            f"| {m.mean('window'):.1f} | {period} | {m.mean('least'):.2f}, {m.mean('left'):.2f} |"
        )
    return lines, apart


TEXT = """## TCPs beside Linux's modules in ns-2

Made by `.venv/bin/python tools/tcp_linux.py` at commit {commit}: laws of congestion avoidance beside
`Agent/TCP/Linux` of the Debian package `ns2`, which has the modules of Linux 2.6 as they were written. Dumbbells of
{rtt} ms, {duration} s of which the first {warmup} s do not count, packets of 1000 bytes, a buffer of one
bandwidth-delay product, drop-tail or RED with ECN (`wait = true`, as in ns-2); selective acks, none delayed. Each
law has its module's parameters: Scalable adds 0.02 an ack from 50 packets on, BIC has S_max 16 and takes 0.2, CUBIC
is the paper's, which leaves 0.8, and RFC 9438's, which leaves 0.7. FAST and BBR have no module there.

Windows are read each {sample:.0f} ms. The period is between a flow's reductions; *least, left* is what one leaves
of the window, at its least within 0.4 s and at their end: Linux's reductions take a round trip. Four flows: the
mean of {runs} runs whose flows start {apart} ms apart. Under a law's name is what is apart by more than 3%
(utilisation), 5% (window) or 15% (period) and by more than the runs of a side are.

{head}
{rows}

### Why they are apart

{explanations}

| path | law | | utilisation | queue, packets | mean window | period, s | least, left |
|---|---|---|---|---|---|---|---|
{experiments}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="a law's name")
    parser.add_argument("--path", action="append", help='as in the table, such as "10 Mb/s, 1, droptail"')
    parser.add_argument("--no-write", action="store_true", help="leave docs/notes/tcp-beside-linux.md as it is")
    arguments = parser.parse_args()

    def wanted(law: Law, path: Dumbbell) -> bool:
        return (not arguments.only or law.name in arguments.only) and (
            not arguments.path or str(path) in arguments.path
        )

    table: list[str] = []
    experiments: list[str] = []
    unexplained: list[str] = []
    for path in PATHS:
        for law in (law for law in LAWS if wanted(law, path)):
            lines, apart = compare(law, path)
            print("\n".join(lines), flush=True)
            table += lines
            if apart and law.name not in EXPLANATIONS:
                unexplained.append(f"{law.name}, {path}: {', '.join(apart)}")
    for experiment in EXPERIMENTS:
        for path in (path for path in experiment.paths if wanted(experiment.law, path)):
            lines, _ = compare(experiment.law, path, experiment.red, **experiment.ns2)
            lines.insert(0, f"| *{experiment.says}* | | | | | | | |")
            print("\n".join(lines), flush=True)
            experiments += lines
    if not (arguments.no_write or arguments.only or arguments.path):
        text = TEXT.format(
            commit=engine.commit(),
            rtt=RTT_MS,
            duration=DURATION_S,
            warmup=WARMUP_S,
            sample=SAMPLE_S * 1000,
            runs=len(APART_MS),
            apart=", ".join(map(str, APART_MS)),
            head=HEAD,
            rows="\n".join(table),
            explanations="\n".join(f"- {text}" for text in dict.fromkeys(EXPLANATIONS.values())),
            experiments="\n".join(experiments),
        )
        engine.write_section(DOCUMENT, "tcp-linux", text, "Notes")
    for text in unexplained:
        print(f"tcp_linux.py: beyond the limits and not explained: {text}", file=sys.stderr)
    return 1 if unexplained else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ns2.Ns2Error as error:
        sys.exit(f"tcp_linux.py: {error}")
