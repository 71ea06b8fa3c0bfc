# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Ideal flow completion times: formulas, exact ideal servers, and statistics for the comparison with them.

    from flowstamp import theory

    link = theory.Link("45Mbps", theory.pareto("25kB", 1.2), load=0.9)
    link.mean_fct("srpt", rtt="100ms"), link.mean_fct("ps", rtt="100ms")

Arguments are strings with units as in scenarios; results are in seconds and bytes. Equations and sections are those of
Dukkipati 2007. The crate `flowstamp-fluid` does the mathematics. All functions raise `TheoryError` for arguments
outside their range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flowstamp import _flowstamp
from flowstamp.errors import TheoryError, translated

Floats = NDArray[np.float64]

Discipline = Literal["fcfs", "ps", "srpt", "fb"]
"""First come first served, processor sharing, shortest remaining processing time, least attained service first."""
Formula = Literal["ps", "bound", "slow_start"]
Equation = Literal["2.1", "4.1", "6.1"]
Reading = Literal["last_packet", "as_printed"]
"""The queue that a flow's last packet finds: the mean plus what its own flow added, or the mean alone."""
Blocking = Literal["two_point", "two_point_smooth", "erlang_c"]
"""Probability that all servers are busy: equation A.8, A.8 without its steps, or Erlang's C formula."""


def _buffer(values: ArrayLike) -> bytes:
    return np.ascontiguousarray(values, np.float64).tobytes()


def _array(buffer: bytes) -> Floats:
    return np.frombuffer(buffer, np.float64)


def _quantity(kind: str, text: str) -> float:
    with translated():
        return _flowstamp.quantity(kind, text)


# ---------------------------------------------------------------------------------------------------- sizes


@dataclass(frozen=True)
class Sizes:
    """A distribution of flow sizes, returned by `fixed`, `uniform`, `exponential`, `pareto` and `empirical`."""

    _native: _flowstamp.Sizes

    @property
    def mean_bytes(self) -> float:
        """Mean size in bytes."""
        return self._native.mean

    @property
    def second_moment(self) -> float:
        """Mean of the squared size in bytes squared; infinite for Pareto sizes of shape <= 2 without an upper limit."""
        return self._native.second_moment

    def cdf(self, size: str) -> float:
        """Returns the share of flows of at most this size, 0 to 1."""
        return self._native.cdf(_quantity("size", size))


def fixed(size: str) -> Sizes:
    """Returns a distribution with a single size."""
    with translated():
        return Sizes(_flowstamp.Sizes.fixed(_quantity("size", size)))


def uniform(low: str, high: str) -> Sizes:
    """Returns the uniform distribution between two sizes."""
    with translated():
        return Sizes(_flowstamp.Sizes.uniform(_quantity("size", low), _quantity("size", high)))


def exponential(mean: str) -> Sizes:
    """Returns the exponential distribution with this mean size."""
    with translated():
        return Sizes(_flowstamp.Sizes.exponential(_quantity("size", mean)))


def pareto(mean: str, shape: float, largest: str | None = None) -> Sizes:
    """Returns the Pareto distribution with a shape above 1. `largest` truncates it and keeps the mean."""
    with translated():
        top = None if largest is None else _quantity("size", largest)
        return Sizes(_flowstamp.Sizes.pareto(_quantity("size", mean), shape, top))


def empirical(points: Sequence[tuple[str, float]]) -> Sizes:
    """Returns the distribution through points (size, share of flows of at most this size), linear between them."""
    with translated():
        return Sizes(_flowstamp.Sizes.empirical([(_quantity("size", size), share) for size, share in points]))


# ---------------------------------------------------------------------------------------------------- formulas


class Link:
    """A link at which flows arrive as a Poisson process: an M/G/1 queue."""

    def __init__(
        self, capacity: str, sizes: Sizes, *, load: float | None = None, flows_per_s: float | None = None
    ) -> None:
        """Takes exactly one of `load`, a share of the capacity, and `flows_per_s`; otherwise raises `TypeError`."""
        bps = _quantity("rate", capacity)
        if (load is None) == (flows_per_s is None):
            raise TypeError("a link takes either load or flows_per_s")
        if load is None:
            load = (flows_per_s or 0.0) * sizes.mean_bytes * 8 / bps if bps > 0 else math.inf
        with translated():
            self._native = _flowstamp.Link(sizes._native, bps, load)

    @property
    def load(self) -> float:
        """Offered load, as a share of the capacity."""
        return self._native.load

    @property
    def flows_per_s(self) -> float:
        """Arriving flows per second."""
        return self._native.flows_per_s

    def mean_time(self, discipline: Discipline, size: str | None = None) -> float:
        """Returns the mean time in queue and service in seconds, of all flows or those of one size; may be infinite."""
        with translated():
            return self._native.mean_time(discipline, None if size is None else _quantity("size", size))

    def mean_fct(
        self, discipline: Discipline, rtt: str, size: str | None = None, *, equation: Equation = "2.1"
    ) -> float:
        """Returns `mean_time` plus the round trips of an equation: 1 in 2.1, 1.5 in 4.1, 2 in 6.1."""
        with translated():
            trips = _flowstamp.round_trips(equation, _quantity("time", rtt))
        return self.mean_time(discipline, size) + trips

    def mean_duration(
        self, rate_share: float, *, reading: Reading = "last_packet", blocking: Blocking = "two_point_smooth"
    ) -> float:
        """Returns the mean flow duration in seconds, without propagation, if all flows send at the same rate.

        `rate_share` is this rate as a share of the capacity (appendix A).
        """
        with translated():
            return self._native.mean_duration(rate_share, reading, blocking)

    def mean_queue_bytes(self, rate_share: float, *, blocking: Blocking = "two_point_smooth") -> float:
        """Returns the mean queue if every flow sends at `rate_share` of the capacity (appendix A)."""
        with translated():
            return self._native.mean_queue_bytes(rate_share, blocking)

    def best_rate(
        self,
        low: float = 1e-3,
        high: float = 10.0,
        *,
        reading: Reading = "last_packet",
        blocking: Blocking = "two_point_smooth",
    ) -> tuple[float, float]:
        """Returns the share of the capacity with the least mean duration, from `low` to `high`, and that duration."""
        with translated():
            return self._native.best_rate(reading, blocking, (low, high))


def completion_times(
    formula: Formula, packets: ArrayLike, *, rtt: str, capacity: str, load: float = 0.0, packet: str = "1000B"
) -> Floats:
    """Returns the completion time in seconds for each size in packets; the result is one-dimensional.

    `formula` is equation 4.1 ("ps"), the lower bound of section 4.1 ("bound") or TCP in slow start ("slow_start",
    section 4.2.1).
    """
    packet_bytes = _quantity("size", packet)
    sizes = np.asarray(packets, np.float64) * packet_bytes
    return by_formula(formula, sizes, _quantity("time", rtt), _quantity("rate", capacity), load, packet_bytes)


def by_formula(
    formula: str, sizes_bytes: ArrayLike, rtt_s: float, capacity_bps: float, load: float, packet_bytes: float
) -> Floats:
    """Is `completion_times` with numbers in seconds, bytes and bits per second."""
    with translated():
        return _array(
            _flowstamp.completion_times(formula, _buffer(sizes_bytes), rtt_s, capacity_bps, load, packet_bytes)
        )


# ---------------------------------------------------------------------------------------------------- servers


def serve(discipline: Discipline, arrivals_s: ArrayLike, sizes_bytes: ArrayLike, capacity: str) -> Floats:
    """Returns the time in seconds that each flow spends at an exact server, in the given order, without round trips.

    Arrivals and sizes must have the same length.
    """
    return served(discipline, arrivals_s, sizes_bytes, _quantity("rate", capacity))


def served(discipline: Discipline, arrivals_s: ArrayLike, sizes_bytes: ArrayLike, capacity_bps: float) -> Floats:
    """Is `serve` with a capacity in bits per second."""
    start, size = np.asarray(arrivals_s, np.float64), np.asarray(sizes_bytes, np.float64)
    if start.size != size.size:
        raise TheoryError(f"{start.size} arrivals and {size.size} sizes; each flow has one of both")
    order = np.argsort(start, kind="stable")
    times = np.empty(start.size)
    with translated():
        times[order] = _array(_flowstamp.serve(discipline, _buffer(start[order]), _buffer(size[order]), capacity_bps))
    return times


@dataclass(frozen=True)
class RateLimited:
    """Result of `rate_limited`."""

    durations_s: Floats
    """Time from the arrival of a flow's first byte to the departure of its last byte, one per flow."""
    mean_queue_bytes: float
    utilization: float

    @property
    def utilisation(self) -> float:
        """The same as `utilization`."""
        return self.utilization


def rate_limited(arrivals_s: ArrayLike, sizes_bytes: ArrayLike, flow_rate: str, capacity: str) -> RateLimited:
    """Simulates flows that each send at `flow_rate` into a fluid FIFO queue (section 3.3). Arrivals must be sorted."""
    rate, bps = _quantity("rate", flow_rate), _quantity("rate", capacity)
    with translated():
        durations, queue, used = _flowstamp.rate_limited(_buffer(arrivals_s), _buffer(sizes_bytes), rate, bps)
    return RateLimited(_array(durations), queue, used)


# ---------------------------------------------------------------------------------------------------- statistics


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence interval, `mean - half_width` to `mean + half_width`."""

    mean: float
    half_width: float
    lag1: float
    """Correlation of successive batches. Above about 2 / sqrt(batches), the batches are too short."""


def batch_means(values: ArrayLike, batches: int = 10, level: float = 0.95) -> Interval:
    """Estimates the mean of a time series with batches of equal length. Surplus values at its start are left out."""
    with translated():
        return Interval(*_flowstamp.batch_means(_buffer(values), batches, level))


def mser5(values: ArrayLike) -> int:
    """Returns the length of the warm-up in values by the MSER-5 rule. Half of all values means too short a series."""
    return _flowstamp.mser5(_buffer(values))
