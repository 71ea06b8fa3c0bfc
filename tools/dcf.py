#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs saturated cells of IEEE 802.11 in Flowstamp beside ns-2's Mac/802_11, ns-3's Wi-Fi and the models of DCF.

    python3 tools/dcf.py                                   # some minutes; a table on stdout
    python3 tools/dcf.py --seconds 20 --seeds 1 --only 802.11b-ns2
        python3 tools/dcf.py --ns3 VENV/bin/python             # also ns-3, where `pip install ns3` is possible
    python3 tools/dcf.py --models                          # the models alone

Stations that always have a packet of 1300 bytes send to one that only receives. A difference of the means beyond the
limits below, and beyond the variation between seeds, must have its explanation in EXPLANATIONS, or the exit code is 1.

The models are those of `flowstamp_fluid::bianchi`, computed here from their equations a second time: its tests contain
the numbers that `--models` prints.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import engine
import ns2  # tools/ns2, on the path since `engine` was imported

PACKET = 1300
STATIONS = (1, 2, 5, 10)
RETRY_LIMIT = 7

# A difference of the means beyond this share, and beyond three standard errors, needs an explanation.
LIMITS = {"throughput_bps": 0.01, "collisions": 0.03}


@dataclass(frozen=True)
class Cell:
    """A kind of cell: its settings in Flowstamp, ns-2 and ns-3, and its durations for the models, in seconds."""

    name: str
    toml: str
    rate: str
    slot: float
    success: float
    collision: float
    cw_min: int
    ns2: dict[str, str] | None = None
    ns3: str | None = None
    exclusive: bool = False  # backoffs from 0 to CW-1


US = 1e-6
DATA_B = (192 + math.ceil(8 * 1336 / 11)) * US
DATA_B_NS2 = (192 + 8 * 1334 / 11) * US
DATA_G = (20 + 4 * math.ceil((22 + 8 * 1336) / 216) + 6) * US
CELLS = [
    Cell(
        "802.11b-ns2",
        'standard = "802.11b-ns2"',
        "11Mbps",
        20 * US,
        DATA_B_NS2 + (10 + 304 + 50) * US,
        DATA_B_NS2 + (10 + 304 + 50 + 50) * US,
        31,
        ns2={"rate": "11Mb", "basic_rate": "1Mb"},
        exclusive=True,
    ),
    Cell(
        "802.11g-ns2",
        'standard = "802.11g-ns2"',
        "54Mbps",
        9 * US,
        (20 + 8 * 1334 / 54 + 16 + 20 + 112 / 6 + 34) * US,
        (20 + 8 * 1334 / 54 + 89 + 34) * US,
        15,
        ns2={
            "rate": "54Mb",
            "basic_rate": "6Mb",
            "slot": "0.000009",
            "sifs": "0.000016",
            "cw_min": "15",
            "preamble_bits": "96",
            "plcp_bits": "24",
            "plcp_rate": "6e6",
        },
        exclusive=True,
    ),
    # An RTS lasts 192 + 160 us, a CTS 304 us.
    Cell(
        "802.11b-ns2, RTS",
        'standard = "802.11b-ns2"\nrts_threshold = "0B"',
        "11Mbps",
        20 * US,
        DATA_B_NS2 + (352 + 10 + 304 + 10 + 10 + 304 + 50) * US,
        (352 + 10 + 304 + 50 + 50) * US,
        31,
        ns2={"rate": "11Mb", "basic_rate": "1Mb", "rts_threshold": "0"},
        exclusive=True,
    ),
    # Table 1 of Abrantes and Ricardo 2006 to the letter, factor 20: preamble and header keep their durations.
    Cell(
        "802.11b-ns2, factor 20",
        'standard = "802.11b-ns2"\nscale = 20',
        "11Mbps",
        1 * US,
        (192 + 8 * 1334 / 220 + 0.5 + 192 + 5.6 + 2.5) * US,
        (192 + 8 * 1334 / 220 + 307 + 2.5) * US,
        31,
        ns2={"rate": "220Mb", "basic_rate": "20Mb", "slot": "0.000001", "sifs": "0.0000005", "offered": "120e6"},
        exclusive=True,
    ),
    Cell(
        "802.11b",
        'standard = "802.11b"',
        "11Mbps",
        20 * US,
        DATA_B + (10 + 248 + 50) * US,
        DATA_B + (10 + 304 + 50) * US,
        31,
    ),
    Cell(
        "802.11g",
        'standard = "802.11g"',
        "54Mbps",
        9 * US,
        DATA_G + (10 + 34 + 28) * US,
        DATA_G + (10 + 50 + 28) * US,
        15,
    ),
    # Stations of ns-3's ad-hoc network take all four rates of 802.11b for basic rates, and 1 Mb/s for the lowest of
    # 802.11g too, so EIFS is 342 us. They have the standard's ACKTimeout, which the models do not have.
    Cell(
        "802.11b, ns-3's",
        'standard = "802.11b"\nbasic_rates = ["1Mbps", "2Mbps", "5.5Mbps", "11Mbps"]\nack_timeout = "222us"',
        "11Mbps",
        20 * US,
        DATA_B + (10 + 192 + 11 + 50) * US,
        DATA_B + (10 + 304 + 50) * US,
        31,
        ns3="b",
    ),
    Cell(
        "802.11g, ns-3's",
        'standard = "802.11g"\nack_timeout = "39us"\neifs = "342us"',
        "54Mbps",
        9 * US,
        DATA_G + (10 + 34 + 28) * US,
        DATA_G + 342 * US,
        15,
        ns3="g",
    ),
]

# By cell and simulator. One explanation is missing: ten stations of ns-3's 802.11b carry 1.2% more than Flowstamp's and
# collide in 3% fewer of their attempts. The cause is unknown.
EXPLANATIONS: dict[tuple[str, str], str] = {}


@dataclass
class Sample:
    throughput_bps: list[float] = field(default_factory=list)
    collisions: list[float] = field(default_factory=list)

    def add(self, throughput_bps: float, collisions: float) -> None:
        self.throughput_bps.append(throughput_bps)
        self.collisions.append(collisions)

    def mean(self, measure: str) -> float:
        return statistics.fmean(getattr(self, measure))

    def error(self, measure: str) -> float:
        values = getattr(self, measure)
        return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def flowstamp(program: str, cell: Cell, stations: int, seconds: float, seeds: range) -> Sample:
    sample = Sample()
    for seed in seeds:
        command = [program, "-", f"stations={stations}", f"rate={cell.rate}", f"packet={PACKET}B"]
        command += [f"duration={seconds}s", f"seed={seed}"]
        done = subprocess.run(command, input=cell.toml, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise engine.EngineError(f"`{' '.join(command)}` failed; its message is above")
        result = json.loads(done.stdout)
        sample.add(result["throughput_bps"], result["collisions"])
    return sample


def in_ns2(cell: Cell, stations: int, seconds: float, seeds: range) -> Sample:
    """Counts the transmissions that the MACs begin, and the packets that the receiver's MAC delivers, from 1 s on."""
    sample = Sample()
    for seed in seeds:
        script = ns2.SCRIPT.with_name("cell.tcl")
        given = {**(cell.ns2 or {}), "stations": stations, "seconds": seconds, "packet": PACKET, "seed": seed}
        command = [str(ns2.binary()), str(script), *(f"{k}={v}" for k, v in given.items())]
        opening = " RTS " if "rts_threshold" in given else " cbr "
        attempts = sent = 0
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            for line in process.stdout or ():
                begins = line.startswith("s ") and opening in line
                arrives = line.startswith("r ") and " cbr " in line and " _0_ " in line
                if (begins or arrives) and float(line.split(maxsplit=2)[1]) >= 1.0:
                    attempts += begins
                    sent += arrives
        if process.returncode != 0 or attempts == 0:
            raise ns2.Ns2Error(f"`{' '.join(command)}` sent nothing")
        sample.add(sent * PACKET * 8 / seconds, max(1 - sent / attempts, 0.0))  # the first may have begun before
    return sample


def in_ns3(python: str, cell: Cell, stations: int, seconds: float, seeds: range) -> Sample:
    sample = Sample()
    script = engine.ROOT / "tools" / "ns3" / "cell.py"
    for seed in seeds:
        command = [python, str(script), f"standard={cell.ns3}", f"stations={stations}"]
        command += [f"seconds={seconds}", f"packet={PACKET}", f"seed={seed}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0 or not lines:
            raise engine.EngineError(f"`{' '.join(command)}` failed: {done.stderr.strip().splitlines()[-1:]}")
        result = json.loads(lines[-1])
        sample.add(result["throughput_bps"], result["collisions"])
    return sample


# The models.


def windows(cell: Cell) -> list[int]:
    """Number of values that each attempt draws its backoff from."""
    cw, values = cell.cw_min, []
    for _ in range(RETRY_LIMIT):
        values.append(cw if cell.exclusive else cw + 1)
        cw = min(2 * cw + 1, 1023)
    return values


def crossing(f: Callable[[float], float]) -> float:
    """The fixed point of a falling function on 0 to 1."""
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if middle < f(middle) else (low, middle)
    return (low + high) / 2


def bianchi(cell: Cell, n: int) -> tuple[float, float]:
    """Throughput and collisions: Bianchi 2000, with a retry limit."""
    values = windows(cell)

    def collides(tau: float) -> float:
        return 1.0 - (1 - tau) ** (n - 1)

    def of(tau: float) -> float:
        p = collides(tau)
        return sum(p**i for i in range(RETRY_LIMIT)) / sum(p**i * (w + 1) / 2 for i, w in enumerate(values))

    tau = crossing(of)
    idle, one = (1 - tau) ** n, n * tau * (1 - tau) ** (n - 1)
    time = idle * cell.slot + one * cell.success + (1 - idle - one) * cell.collision
    return one * PACKET * 8 / time, collides(tau)


def freezing(cell: Cell, n: int) -> tuple[float, float]:
    """The same, with the slot after a busy period left to the stations that have just sent: Tinnirello et al. 2010."""
    values = windows(cell)

    def frame(tau: float) -> tuple[float, float, float, float]:
        p = 1 - (1 - tau) ** (n - 1)
        reach, alone, common, slots = 1.0, 0.0, 0.0, 0.0
        for w in values:
            alone += reach / w
            common += reach * (w - 1) / w
            slots += reach * sum(range(1, w)) / w
            reach *= (w - 1) / w * p
        return p, alone, common, slots

    tau = crossing(lambda tau: frame(tau)[2] / frame(tau)[3])
    p, alone, common, slots = frame(tau)
    idle, one, extra = (1 - tau) ** n, n * tau * (1 - tau) ** (n - 1), n * alone / slots
    time = idle * cell.slot + one * (cell.success + cell.slot) + extra * cell.success
    time += (1 - idle - one) * (cell.collision + cell.slot)
    return (one + extra) * PACKET * 8 / time, p * common / (common + alone)


def meet(one: list[float], other: list[float]) -> tuple[list[float], list[float], float, float]:
    """Counts down two backoffs, given as distributions. Returns the slots left of each, the probability that both end
    at once, and the slots until one ends."""
    left, other_left, both, slots = [0.0] * len(one), [0.0] * len(other), 0.0, 0.0
    above, above_slots = sum(other), sum(b * share for b, share in enumerate(other))
    for a, share in enumerate(one):
        of = other[a] if a < len(other) else 0.0
        above, above_slots = above - of, above_slots - a * of
        both += share * of
        slots += share * a * (of + max(above, 0.0))
        if share > 0:
            for b in range(a + 1, len(other)):
                other_left[b - a] += share * other[b]
            for b in range(min(a, len(other))):
                left[a - b] += share * other[b]
                slots += share * other[b] * b
    return left, other_left, both, slots


def pair(cell: Cell) -> tuple[float, float]:
    """Two stations, exact. `beside[j]`: probabilities of slots left at attempt j beside a station that begins anew."""
    values = windows(cell)
    drawn = [[1 / w] * w for w in values]
    meetings = {(i, j): meet(drawn[i], drawn[j]) for i in range(RETRY_LIMIT) for j in range(RETRY_LIMIT)}
    beside = [[0.0] * w for w in values]
    fresh = {(i, j): 0.0 for i in range(RETRY_LIMIT) for j in range(RETRY_LIMIT)}
    fresh[0, 0] = 1.0
    while True:
        next_beside = [[0.0] * w for w in values]
        next_fresh = dict.fromkeys(fresh, 0.0)
        both = slots = 0.0
        states = [(1.0, 0, j, meet(drawn[0], beside[j])) for j in range(RETRY_LIMIT) if sum(beside[j]) > 1e-15]
        states += [(share, i, j, meetings[i, j]) for (i, j), share in fresh.items() if share > 0]
        for share, i, j, (left, other_left, at_once, until) in states:
            for k, x in enumerate(left):
                next_beside[i][k] += share * x
            for k, x in enumerate(other_left):
                next_beside[j][k] += share * x
            next_fresh[(i + 1) % RETRY_LIMIT, (j + 1) % RETRY_LIMIT] += share * at_once
            both += share * at_once
            slots += share * until
        moved = sum(abs(a - b) for x, y in zip(beside, next_beside, strict=True) for a, b in zip(x, y, strict=True))
        beside, fresh = next_beside, next_fresh
        if moved < 1e-11:
            time = slots * cell.slot + (1 - both) * cell.success + both * cell.collision
            return (1 - both) * PACKET * 8 / time, 2 * both / (1 + both)


def models(cell: Cell, n: int) -> dict[str, tuple[float, float]]:
    found = {"Bianchi": bianchi(cell, n), "freezing": freezing(cell, n)}
    if n == 2:
        found["exact"] = pair(cell)
    return found


def row(cell: Cell, n: int, who: str, throughput: str, collisions: str, note: str = "") -> str:
    return f"| {cell.name} | {n} | {who} | {throughput} | {collisions} | {note} |"


def compare(cell: Cell, who: str, ours: Sample, theirs: Sample) -> tuple[str, bool]:
    """The differences as text, and whether one of them lacks its explanation."""
    notes, bad = [], False
    for measure, limit in LIMITS.items():
        mean, other = ours.mean(measure), theirs.mean(measure)
        if other < 1e-4 and mean < 1e-4:
            continue
        off = mean / other - 1 if other else math.inf
        error = 3 * math.hypot(ours.error(measure), theirs.error(measure))
        unlike = abs(off) > limit and abs(mean - other) > error
        notes.append(f"{off:+.2%}")
        if unlike and (cell.name, who) in EXPLANATIONS:
            notes.append(EXPLANATIONS[cell.name, who])
        bad |= unlike and (cell.name, who) not in EXPLANATIONS
    return "Flowstamp: " + ", ".join(dict.fromkeys(notes)), bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=200.0, help="simulated, per run; ns-3 takes a quarter")
    parser.add_argument("--seeds", type=int, default=4, help="runs of each")
    parser.add_argument("--only", default="", help="one kind of cell, by name")
    parser.add_argument("--ns3", default="", metavar="PYTHON", help="a Python that has the package ns3")
    parser.add_argument("--models", action="store_true", help="print the models' numbers and simulate nothing")
    given = parser.parse_args()
    cells = [c for c in CELLS if given.only in ("", c.name)]
    print("| cell | stations | | Mb/s | collisions of attempts | difference |")
    print("|---|---|---|---|---|---|")
    try:
        program = "" if given.models else str(engine.build("cell"))
        bad = False
        for cell in cells:
            for n in STATIONS:
                for who, (throughput, collisions) in models(cell, n).items():
                    digits = (9, 9) if given.models else (4, 4)
                    print(row(cell, n, who, f"{throughput / 1e6:.{digits[0]}f}", f"{collisions:.{digits[1]}f}"))
                if given.models:
                    continue
                seeds = range(1, given.seeds + 1)
                runs = {"Flowstamp": flowstamp(program, cell, n, given.seconds, seeds)}
                if cell.ns2 is not None and ns2.available():
                    runs["ns-2"] = in_ns2(cell, n, given.seconds, seeds)
                if cell.ns3 is not None and given.ns3:
                    runs["ns-3"] = in_ns3(given.ns3, cell, n, given.seconds / 4, seeds)
                for who, sample in runs.items():
                    note, unlike = ("", False) if who == "Flowstamp" else compare(cell, who, runs["Flowstamp"], sample)
                    bad |= unlike
                    texts = [
                        f"{sample.mean(m) * scale:.4f} ± {sample.error(m) * scale:.4f}"
                        for m, scale in (("throughput_bps", 1e-6), ("collisions", 1))
                    ]
                    print(
                        row(cell, n, who, texts[0], texts[1], note + (" **not explained**" if unlike else "")),
                        flush=True,
                    )
    except (engine.EngineError, ns2.Ns2Error) as error:
        print(error, file=sys.stderr)
        return 1
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
