#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs TCP Reno over REM, AVQ and RED in ns-2 and in Flowstamp, and writes docs/notes/queues-beside-ns2.md.

    python3 tools/aqm.py                  # some minutes
    python3 tools/aqm.py --only rem --no-write

Settings and runs are those of tools/crosscheck.py: each has several seeds, and ns-2 gets the start times that Flowstamp
drew. A difference beyond the limits below must have its explanation in EXPLANATIONS, or the exit code is 1.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import crosscheck
import engine
import ns2  # tools/ns2, on the path since `engine` was imported
from crosscheck import Comparison, Sample, Setting

DOCUMENT = engine.ROOT / "docs" / "notes" / "queues-beside-ns2.md"

# A difference of the means beyond this, and beyond the variation between seeds, needs an explanation.
LIMIT = 0.05
COUNT_FLOOR = 0.001  # smaller differences of counts, as a share of the packets that reached the link, do not count

COMMON: dict[str, Any] = {"rate_mbps": 20, "rtt_ms": 80, "flows": 20, "duration_s": 160, "warmup_s": 60}


def setting(name: str, queue: str, **ns2_parameters: Any) -> Setting:
    return Setting(name, "reno", queue=queue, ns2=ns2_parameters, **COMMON)


SETTINGS = [
    setting("rem", '{ kind = "rem" }', protocol="reno-rem"),
    setting("avq", '{ kind = "avq", alpha = 0.15 }', protocol="reno-avq"),
    setting("red", '{ kind = "red" }'),
    setting("red-mark-p", '{ kind = "red", mark_p = 0.02 }', red_mark_p=0.02),
]


@dataclass(frozen=True)
class Experiment:
    """A change of a setting on both sides, and what it shows."""

    base: str
    change: str
    finding: str
    flows: int | None = None
    queue: str | None = None
    flowstamp: tuple[str, ...] = ()
    ns2: dict[str, Any] = field(default_factory=dict)

    def setting(self) -> Setting:
        base = next(s for s in SETTINGS if s.name == self.base)
        return replace(
            base,
            flows=self.flows or base.flows,
            queue=self.queue or base.queue,
            flowstamp=self.flowstamp,
            ns2=base.ns2 | self.ns2,
        )


EXPERIMENTS = [
    Experiment(
        "avq",
        "AVQ with 10 flows, whose windows are twice as large",
        "Queue and marks are closer than the limit.",
        flows=10,
    ),
    Experiment(
        "avq",
        "AVQ with 40 flows, whose windows are half as large",
        "They are twice as far apart: what differs is a part of a packet in each window.",
        flows=40,
    ),
    Experiment(
        "rem",
        "REM that drops, both sides on arrival",
        "Utilisation, queue and drops are alike: so is the price. With marks ours come on arrival and ns-2's as "
        "packets leave, a queue's time later, which moves their number by less than the limit.",
        flowstamp=(f"{crosscheck.EVERY_GROUP}.ecn=false",),
        ns2={"aqm_mark": 0},
    ),
    Experiment(
        "red-mark-p",
        "RED with `mark_p` 0.1, ns-2's default, under 50 flows, whose windows are 5 packets",
        "Here they differ: our queue moves more, as under AVQ with small windows, so that its average is beyond the "
        "upper threshold more often. Tried one at a time, with seeds 1 and 2: with half of the window at a loss or a "
        "mark, as in ns-2, instead of half of what is in flight (RFC 5681), whose part of a packet is a tenth of such"
        " a window, drops are 2267 and the queue is 96 kB; ECN-capable retransmissions, ns-2's, save a quarter of the"
        " timeouts (RFC 3168 section 6.1.5 forbids them); a window that a mark may cut below two packets, limited "
        "transmit and the least timeout change nothing. The rest was not traced. With windows of 13 packets the "
        "drops are alike.",
        flows=50,
        queue='{ kind = "red", mark_p = 0.1 }',
        ns2={"red_mark_p": 0.1},
    ),
]

SMALL_WINDOWS = (
    "AVQ holds the rate and leaves the queue to the windows, which are 13 packets here. The difference goes with their "
    "size (below): it is below the limit with windows of 26 packets, and twice as large with 6. Where a window is "
    "halved, ours halves what is in flight, which is whole packets, and ns-2 the window with its fraction."
)
EXPLANATIONS = {
    ("avq", "queue"): SMALL_WINDOWS,
}

QUANTITIES: dict[str, Callable[[Sample], float]] = {
    "utilisation": lambda s: s.utilisation,
    "queue": lambda s: s.queue_bytes,
    "drops": lambda s: s.drops,
    "marks": lambda s: s.marks,
    "timeouts": lambda s: s.timeouts,
}
COUNTS = ("drops", "marks", "timeouts")


def differences(c: Comparison) -> dict[str, str]:
    """Differences beyond the limit and beyond the variation between seeds, with their sizes."""
    found = {}
    for name, what in QUANTITIES.items():
        ours, theirs = [what(s) for s in c.flowstamp], [what(s) for s in c.ns2]
        a, b = statistics.fmean(ours), statistics.fmean(theirs)
        touch = min(ours) <= max(theirs) and min(theirs) <= max(ours)
        floor = COUNT_FLOOR * statistics.fmean(s.packets for s in c.ns2) if name in COUNTS else 0.0
        if abs(a - b) > LIMIT * b and abs(a - b) > floor and not touch:
            found[name] = f"{a:.4g} against {b:.4g}"
    return found


def experiment_table(done: list[tuple[Experiment, Comparison]]) -> str:
    return "\n\n".join(f"**{e.change}.** {e.finding}\n\n{crosscheck.table([c])}" for e, c in done)


def report(comparisons: list[Comparison], done: list[tuple[Experiment, Comparison]], seeds: int) -> str:
    c = COMMON
    parts = [
        "## REM, AVQ and RED beside ns-2",
        f"Made by `python3 tools/aqm.py` at commit {engine.commit()} with {seeds} seeds for each setting: {c['flows']} "
        f"TCP Reno flows with ECN over {c['rate_mbps']} Mb/s and {c['rtt_ms']} ms, a buffer of one bandwidth-delay "
        f"product, {c['duration_s']} s of which {c['warmup_s']} s are warm-up. REM and AVQ are their authors' own ns-2 "
        "models with the parameters of the XCP paper, counted in bytes; AVQ's virtual capacity starts at 0.98 of the "
        "link on both sides. `red-mark-p` has `mark_p` 0.02, so that drops occur. Other common settings are "
        "under [Beside ns-2](beside-ns2.md#beside-ns-2), with the columns.",
        crosscheck.table(comparisons),
        f"Differences of the means of more than {LIMIT:.0%} where the ranges over the seeds do not touch (counts less "
        f"than {COUNT_FLOOR:.1%} of the packets apart do not count):",
        crosscheck.judge(comparisons, differences, EXPLANATIONS)[0],
    ]
    if done:
        parts += ["One thing changed at a time:", experiment_table(done)]
    return "\n\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", metavar="SETTING", help="run this setting; may be repeated")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each setting (default: 3)")
    parser.add_argument("--no-experiments", action="store_true", help="leave out the experiments behind explanations")
    parser.add_argument("--no-write", action="store_true", help="leave docs/notes/queues-beside-ns2.md as it is")
    arguments = parser.parse_args()
    names = [s.name for s in SETTINGS]
    if unknown := sorted(set(arguments.only or []) - set(names)):
        parser.error(f"no setting {', '.join(unknown)}; there are {', '.join(names)}")
    if not ns2.available():
        print("skipped: ns2 is not installed (Debian and Ubuntu: apt install ns2; or set NS2 to its ns program)")
        return 0

    program = engine.build()
    settings = [s for s in SETTINGS if not arguments.only or s.name in arguments.only]
    experiments = [] if arguments.no_experiments else [e for e in EXPERIMENTS if e.base in [s.name for s in settings]]

    def compare(s: Setting) -> Comparison:
        pairs = [crosscheck.compare(program, s, seed) for seed in range(1, arguments.seeds + 1)]
        print(s.name, file=sys.stderr)
        return Comparison(s, [x for ours, _ in pairs for x in ours], [x for _, theirs in pairs for x in theirs])

    comparisons = [compare(s) for s in settings]
    done = [(e, compare(e.setting())) for e in experiments]
    text = report(comparisons, done, arguments.seeds)
    print(text)
    if not arguments.no_write and not arguments.only and not arguments.no_experiments:
        engine.write_section(DOCUMENT, "aqm", text, "Notes")
    return 1 if crosscheck.judge(comparisons, differences, EXPLANATIONS)[1] else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (engine.EngineError, ns2.Ns2Error) as error:
        sys.exit(f"aqm.py: {error}")
