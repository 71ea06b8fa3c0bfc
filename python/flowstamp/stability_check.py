# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Compares packet simulations with a law's model: short runs over a grid of gains show where packets oscillate.

The test is the same for each run and for the model's trajectory. It takes the arriving traffic over the last fifth,
averaged over an RTT. Its 5th and 95th percentiles must not be more than 4% of the capacity apart, that is, 2% to either
side (Dukkipati 2007, section 5.4, has this band for the rate). Half of the flows start after a fifth of the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from flowstamp import executors
from flowstamp.errors import FlowstampError, TheoryError
from flowstamp.executors import Job
from flowstamp.plot import averaged
from flowstamp.progress import watching
from flowstamp.results import Results
from flowstamp.scenario import Progress, Scenario, dumbbell
from flowstamp.stability import ALPHAS, BETAS, Stability

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

BAND = 0.04
"""Allowed range of the traffic as a share of the capacity: 2% to either side."""
RTTS = 200.0
"""Duration of a run in RTTs. A disturbance that grows by a factor e^0.1 per RTT grows by e^20."""
DISTURBED = 0.2
"""Share of the run after which the second half of the flows starts."""
LAST = 0.2
"""Share of the run, at its end, that the test covers."""
PACKETS = 2000
"""Packets in a bandwidth-delay product; enough that one packet per RTT is far below the band."""
PACKET_BYTES = 1000
FLOWS = 4
"""Flows that start at the beginning, and again later, with a single RTT. Different RTTs use their own numbers."""
SAMPLES = 8
"""Samples per RTT."""


@dataclass(frozen=True)
class Check:
    """Results of the packet simulations and of the model; each array has one value per pair of gains."""

    of: Stability
    alphas: Floats
    betas: Floats
    packets: Floats
    """Distance of the traffic's 5th and 95th percentiles as a share of the capacity, median over the seeds."""
    model: Floats
    """The same distance for the model; infinite if the model diverges."""
    seeds: int

    @property
    def oscillates(self) -> Bools:
        """Pairs of gains at which packets oscillate."""
        return self.packets > BAND

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of points, of runs, and of points by verdict of packets and model."""
        packets, model = self.oscillates, self.model > BAND
        return {
            "points": len(self.alphas),
            "runs": len(self.alphas) * self.seeds,
            "both_settle": int((~packets & ~model).sum()),
            "both_oscillate": int((packets & model).sum()),
            "packets_alone_oscillate": int((packets & ~model).sum()),
            "model_alone_oscillates": int((~packets & model).sum()),
        }

    def as_dict(self) -> dict[str, Any]:
        """Returns the results as `flowstamp stability --check-by-simulation --json` prints them."""
        names = ("alpha", "beta", "packets_swing", "model_swing")
        values = (self.alphas, self.betas, self.packets, self.model)
        points = [
            {name: value if math.isfinite(value) else None for name, value in zip(names, row, strict=True)}
            for row in np.column_stack(values).tolist()
        ]
        return {**self.counts, "band": BAND, "at": points}

    def line(self) -> str:
        """Returns the results as a line of text."""
        n = self.counts
        agree = n["both_settle"] + n["both_oscillate"]
        return (
            f"packets and model agree at {agree} of {n['points']} points ({n['both_settle']} settle, "
            f"{n['both_oscillate']} oscillate); packets alone oscillate at {n['packets_alone_oscillate']}, "
            f"the model alone at {n['model_alone_oscillates']}"
        )

    def plot(self) -> Figure:
        """Draws the model's stable region and the simulated points."""
        return self.of.plot(tried=(self.alphas, self.betas, ~self.oscillates))


def _scenario(of: Stability, alpha: float, beta: float, seed: int) -> Scenario:
    rtt = of.rtt_s
    rate_bps = PACKETS * PACKET_BYTES * 8 / rtt
    router: dict[str, Any] = {"law": of.law, "alpha": alpha, "beta": beta}
    if of.law == "xcp":
        router["gamma"] = of.gamma
    # The buffer is larger than any oscillation, because the model has no drops.
    buffer = f"{100 * PACKETS * PACKET_BYTES}B"
    groups = of.groups or ((rtt, FLOWS),)
    shortest = min(own for own, _ in groups)
    made = dumbbell(f"{rate_bps / 1e6:.9f}Mbps", rtt=_time(shortest), router=router, buffer=buffer)
    for number, (own, flows) in enumerate(groups):
        for start in (0.0, DISTURBED * RTTS * rtt):
            name = f"{'first' if start == 0.0 else 'second'}{number}"
            made = made.flows(of.law, flows, name=name, rtt=_time(own), start=_time(start), spread=_time(rtt))
    made = made.probe(every=_time(rtt / SAMPLES), links=False, groups=False, laws=True)
    return made.configure(duration=_time(RTTS * rtt), packet=f"{PACKET_BYTES}B").set("seed", seed)


def _time(seconds: float) -> str:
    return f"{seconds * 1e9:.3f}ns"


def _swing(rates: Floats) -> float:
    low, high = np.quantile(rates, (0.05, 0.95))
    return float(high - low)


def _of_packets(results: Results, rtt: float) -> float:
    times, rates = results.series("law", "bottleneck", "input_rate_bps")
    times, means = averaged(times, rates, rtt)
    capacity = results.summary["links"]["bottleneck"]["rate_bps"]
    return _swing(means[times > (1.0 - LAST) * RTTS * rtt] / capacity)


def _of_model(of: Stability) -> float:
    times = np.linspace(0.0, RTTS, int(RTTS) * 32 + 1)
    try:
        rates = of.trajectory(times).rate
    except TheoryError:
        return math.inf  # the solution overflowed
    _, means = averaged(times, rates, 1.0)
    return _swing(means[-int(LAST * RTTS) :])


def _grid(points: int) -> Iterator[tuple[float, float]]:
    for beta in np.linspace(*BETAS, points):
        for alpha in np.linspace(*ALPHAS, points):
            yield float(alpha), float(beta)


def check(
    of: Stability,
    *,
    points: int = 12,
    seeds: int = 1,
    seed: int = 1,
    threads: int | None = None,
    memory: str | None = None,
    executor: str = executors.THREADS,
    progress: Progress | None = None,
) -> Check:
    """Simulates packets at `points` x `points` pairs of gains with the RTTs of `of`, each with `seeds` seeds.

    The seeds are consecutive numbers from `seed`. `threads`, `memory` and `executor` are as in `run_many`. Raises
    `TheoryError` if `points` is below 2 or `seeds` below 1.
    """
    if points < 2 or seeds < 1:
        raise TheoryError(f"points is {points} and seeds {seeds}; they must be at least 2 and 1")
    gains = list(_grid(points))
    limit = executors.memory_here(executor, memory)
    jobs = [
        Job.of(_scenario(of, alpha, beta, seed + more), memory=limit) for alpha, beta in gains for more in range(seeds)
    ]
    swings = np.full(len(jobs), np.nan)

    def done(number: int, results: Results) -> None:
        swings[number] = _of_packets(results, of.rtt_s)

    with watching(progress, "runs") as told:
        executors.run(jobs, done, executor=executor, threads=threads, memory=memory, progress=told)
    if np.isnan(swings).any():
        raise FlowstampError("a run has no samples of what arrives at its link")
    alphas, betas = np.array(gains).T
    return Check(
        of,
        alphas,
        betas,
        np.median(swings.reshape(len(gains), seeds), axis=1),
        np.array([_of_model(of.with_gains(alpha, beta)) for alpha, beta in gains]),
        seeds,
    )
