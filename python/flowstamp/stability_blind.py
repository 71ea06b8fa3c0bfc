# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Fluid model of XCP-b's router on a link with unknown capacity.

For example::

    from flowstamp.stability_blind import fill

    found = fill("5Mbps", "100ms", q_max="64kB", kappa="3900B", start="2600B")
    found.peak_bytes, found.reached_rtts(0.9)

The router is the law itself (Abrantes 2006, equations 6 to 12), called periodically. The feedback that it gives on an
under-used link reaches its queue later. The delay depends on the senders: hosts with `windows`, `rates` that change an
RTT later, or a change `at_once`, as in the paper's figure 4.
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
"""Steps per RTT; senders that change at once have one."""
FIRST = 1e-6
"""Smallest queue that counts as one, in bandwidth-delay products."""


@dataclass(frozen=True)
class Filling:
    """Result of `fill`: utilisation and queue of a link over time, as arrays with one value per step."""

    rtts: Floats
    """Ends of the steps, in RTTs without queueing."""
    used: Floats
    """Share of the capacity used in each step, 0 to 1."""
    queue_bytes: Floats
    """Queue at the end of each step."""
    bdp_bytes: float
    """Bandwidth-delay product of the link."""

    @property
    def peak_bytes(self) -> float:
        """Largest queue in bytes."""
        return float(self.queue_bytes.max())

    @property
    def peak_after_rtts(self) -> float:
        """Time from the first queue to its peak, in RTTs; NaN if there was no queue."""
        first = np.flatnonzero(self.queue_bytes > FIRST * self.bdp_bytes)
        return float(self.rtts[self.queue_bytes.argmax()] - self.rtts[first[0]]) if first.size else math.nan

    def reached_rtts(self, share: float) -> float:
        """Returns the end of the first RTT whose utilisation is at least `share`, in RTTs; NaN if there is none."""
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
    """Is `fill` with numbers; `sizes` are `q_max`, `kappa` and `start` in bytes."""
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
    """Computes how flows fill a link from an empty queue. Raises `TheoryError` for arguments out of range.

    Args:
        capacity: capacity of the link, which the router does not know.
        rtt: RTT of all flows without queueing.
        q_max: `Qmax`; an interval with an under-used link gives out the share `chi` of it.
        kappa: queue at equilibrium, above 0.
        start: bytes that all flows together send in the first RTT.
        chi: default 1 / (5 - alpha - beta), as in the law.
        alpha: gain on the change of the queue.
        beta: gain on the queue's distance from `kappa`.
        senders: how senders apply the feedback.
        detection: how the router detects under-use.
        rtts: duration in RTTs, 1 to 100000.
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
