# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Makes the data of the examples: `cellular.down`, `leo.down`, `leo-delay.txt` and `flows.csv`.

`cellular.down` is the trace that `cellular.toml` uses until a recorded one is given. It is invented: ten seconds in
Mahimahi's format (one line for each 1500 bytes that could be carried, in milliseconds) of a rate that swings between
1 and 11 Mb/s and is cut off for 300 ms. A recording takes its place by `--set dumbbell.rate.trace=PATH`.

`leo.toml` uses `leo.down` and `leo-delay.txt`: one pass of a satellite of 15 s. The rate rises from 2 to 5 Mb/s and
falls again; the one-way delay falls from 32 ms to 22 ms and rises again.

`flow-list.toml` uses `flows.csv`: 1000 flows in 80 ms between four hosts, sizes from 1 kB to 1 MB evenly on a
logarithmic scale; every tenth is by CUBIC.
"""

import math
import random
from pathlib import Path

MS = 10_000
OUTAGE = range(7_000, 7_300)
PASS_MS = 15_000


def trace() -> str:
    """The lines of the trace."""
    lines = []
    credit = 0.0
    for ms in range(1, MS + 1):
        mbps = 6 + 4 * math.sin(2 * math.pi * ms / 4_000) + math.sin(2 * math.pi * ms / 700)
        credit += 0.0 if ms in OUTAGE else mbps * 1e3 / 8 / 1500
        while credit >= 1:
            lines.append(ms)
            credit -= 1
    return "".join(f"{ms}\n" for ms in [*lines, MS])


def height(ms: int) -> float:
    """How high the satellite stands, 0 to 1."""
    return math.sin(math.pi * ms / PASS_MS)


def leo_trace() -> str:
    """The lines of the satellite's rate."""
    lines = []
    credit = 0.0
    for ms in range(1, PASS_MS + 1):
        credit += (2 + 3 * height(ms)) * 1e3 / 8 / 1500
        while credit >= 1:
            lines.append(ms)
            credit -= 1
    return "".join(f"{ms}\n" for ms in [*lines, PASS_MS])


def leo_delay() -> str:
    """The lines of its delay: a time and a one-way delay, in milliseconds."""
    return "".join(f"{ms} {32 - 10 * height(ms):.2f}\n" for ms in range(0, PASS_MS + 1, 250))


def flows() -> str:
    """The rows of the list."""
    draw = random.Random(1)
    starts = sorted(draw.uniform(0, 0.08) for _ in range(1000))
    lines = ["start,size,from,to,law"]
    for number, start in enumerate(starts):
        source, target = draw.sample(["h1", "h2", "h3", "h4"], 2)
        size = round(1000 ** draw.uniform(1, 2))
        lines.append(f"{start:.9f},{size},{source},{target},{'' if number % 10 else 'cubic'}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    made = {"cellular.down": trace, "leo.down": leo_trace, "leo-delay.txt": leo_delay, "flows.csv": flows}
    for name, make in made.items():
        Path(__file__).with_name(name).write_text(make(), encoding="utf-8")
