#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Makes figures/cellular-model.txt: a minute of an invented cellular link, in Mahimahi's format.

Recordings of cellular links are not part of the project. The link follows the model that Sprout's receivers assume
(Winstein, Sivaraman and Balakrishnan, NSDI 2013, section 3.1), with the constants of that section:

- packets of 1500 bytes are delivered as a Poisson process of rate lambda;
- lambda is a Brownian motion with a noise power of 200 packets/s per sqrt(s), between 0 and 1000 packets/s;
- once lambda is 0, the outage ends after an exponentially distributed time with a mean of 1 s.

Lambda changes every 20 ms, as Sprout's estimate does. It starts in the middle of its range.

    tools/cellular_model.py
"""

from __future__ import annotations

import math
import random
from pathlib import Path

SECONDS = 60
TICK_S = 0.02
NOISE = 200.0
MOST = 1000.0
OUTAGE_S = 1.0
SEED = 1
PATH = Path(__file__).parents[1] / "figures" / "cellular-model.txt"


def deliveries() -> list[int]:
    """Milliseconds at which packets are delivered, rising."""
    draw = random.Random(SEED)
    found = []
    rate = MOST / 2
    for tick in range(round(SECONDS / TICK_S)):
        ends = rate > 0 or draw.random() < 1 - math.exp(-TICK_S / OUTAGE_S)
        step = draw.gauss(0, NOISE * math.sqrt(TICK_S))
        rate = min(rate + (step if rate > 0 else abs(step)), MOST) if ends else 0.0
        rate = max(rate, 0.0)
        at = 0.0
        while rate > 0 and (at := at + draw.expovariate(rate)) < TICK_S:
            found.append(math.ceil(1000 * (tick * TICK_S + at)))
    return found


if __name__ == "__main__":
    PATH.write_text("".join(f"{ms}\n" for ms in [*deliveries(), 1000 * SECONDS]), encoding="utf-8")
