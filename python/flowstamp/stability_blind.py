# SPDX-License-Identifier: Apache-2.0 OR MIT
"""XCP-b's router on a link of which it is not told the capacity, with a fluid for packets.

For example::

    from flowstamp.stability_blind import fill

    found = fill("5Mbps", "100ms", q_max="64kB", kappa="3900B", start="2600B")
    found.peak_bytes, found.reached_rtts(0.9)

The router is the law itself (Abrantes 2006, equations 6 to 12), called every so often. What it hands out while the link
is under-used shows in its queue later, by how senders obey: `windows` of hosts, `rates` an RTT later, or as in the
paper's figure 4 `at_once`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from flowstamp import _flowstamp
from flowstamp.errors import TheoryError, translated
from flowstamp.stability_models import Floats, _array, _finite, _quantity

Senders = Literal["windows", "rates", "at_once"]
SENDERS = ("windows", "rates", "at_once")
DETECTIONS = ("average", "counter")
PARTS = 64
"""Steps of an RTT; those who change at once have one."""
FIRST = 1e-6
"""A queue shows from this part of a bandwidth-delay product on."""


@dataclass(frozen=True)
class Filling:
    """How a link fills."""

    rtts: Floats
    """Ends of steps, in RTTs without a queue."""
    used: Floats
    """What left in each, of what the link carries."""
    queue_bytes: Floats
    bdp_bytes: float

    @property
    def peak_bytes(self) -> float:
        """The largest queue."""
        return float(self.queue_bytes.max())

    @property
    def peak_after_rtts(self) -> float:
        """How long after there was a queue it was at its peak; NaN where there was none."""
        first = np.flatnonzero(self.queue_bytes > FIRST * self.bdp_bytes)
        return float(self.rtts[self.queue_bytes.argmax()] - self.rtts[first[0]]) if first.size else math.nan

    def reached_rtts(self, share: float) -> float:
        """The end of the first whole RTT in which so much of the capacity is used; NaN where there is none."""
        whole = self.used.reshape(round(self.rtts[-1]), -1).mean(axis=1)
        enough = np.flatnonzero(whole >= share)
        return float(enough[0] + 1) if enough.size else math.nan


def filled(
    *,
    capacity_bps: float,
    rtt_s: float,
    chi: float | None,
    gains: tuple[float, float],
    sizes: tuple[float, float, float],
    senders: str,
    detection: str,
    rtts: int,
) -> Filling:
    """As `fill`, of numbers; `sizes` are `q_max`, `kappa` and `start` in bytes."""
    bdp = capacity_bps / 8.0 * rtt_s
    parts = 1 if senders == "at_once" else PARTS
    q_max, kappa, start = (size / bdp for size in sizes)
    with translated():
        found = _flowstamp.blind_steps(senders, detection, gains, chi, q_max, kappa, start, parts, rtts)
    rows = _array(found).reshape(-1, 3)
    return Filling(np.arange(1, len(rows) + 1) / parts, rows[:, 1], rows[:, 2] * bdp, bdp)


def fill(
    capacity: str,
    rtt: str,
    *,
    q_max: str,
    kappa: str,
    start: str,
    chi: float | None = None,
    alpha: float = 0.4,
    beta: float = 0.2263,
    senders: Senders = "windows",
    detection: Literal["average", "counter"] = "average",
    rtts: int = 100,
) -> Filling:
    """How a link fills from an empty queue.

    Args:
        capacity: Which the router is not told.
        rtt: Of all flows, without a queue.
        q_max: `Qmax`, of which an interval hands out `chi`.
        kappa: The queue at rest, above 0.
        start: What all flows send in the first RTT.
        chi: By default the law's own, 1 / (5 - alpha - beta).
        alpha: Gain on the queue's speed.
        beta: Gain on its distance from `kappa`.
        senders: How they obey.
        detection: How under-use is found.
        rtts: For how long, 1 to 100000.
    """
    _finite(alpha=alpha, beta=beta, chi=1.0 if chi is None else chi)
    if not 1 <= rtts <= 100_000:
        raise TheoryError(f"rtts is {rtts}; it must be 1 to 100000")
    return filled(
        capacity_bps=_quantity("capacity", "rate", capacity),
        rtt_s=_quantity("rtt", "time", rtt),
        chi=chi,
        gains=(alpha, beta),
        sizes=cast(
            "tuple[float, float, float]",
            tuple(_quantity(n, "size", v) for n, v in (("q_max", q_max), ("kappa", kappa), ("start", start))),
        ),
        senders=senders,
        detection=detection,
        rtts=rtts,
    )
