# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Makes `cellular.down`, the trace that `cellular.toml` uses until a recorded one is given.

It is invented: ten seconds in Mahimahi's format (one line for each 1500 bytes that could be carried, in milliseconds)
of a rate that swings between 1 and 11 Mb/s and is cut off for 300 ms. A recording takes its place by
`--set dumbbell.rate.trace=PATH`.
"""

import math
from pathlib import Path

MS = 10_000
OUTAGE = range(7_000, 7_300)


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


if __name__ == "__main__":
    Path(__file__).with_name("cellular.down").write_text(trace(), encoding="utf-8")
