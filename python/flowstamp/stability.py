# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Whether a law is stable with its gains, by how much, and how soon it settles.

    import flowstamp as fs

    s = fs.stability.of("rcp", alpha=0.5, beta=0.5, rtt="80ms")
    s.stable, s.phase_margin_deg, s.settles_after_rtts
    s.plot()

XCP's and RCP's loops have one linear form near their equilibrium (Katabi 2002, appendix B; Dukkipati 2007, equations
5.5 to 5.7), in which neither capacity nor number of flows occurs, and the RTT only as the unit of time. The equilibrium
lies where the queue is empty and cannot be emptier, which the linear form leaves out: what is stable in fact is told by
the switched system (equation 5.14), in time. The mathematics is the crate `flowstamp-fluid`; nothing is computed here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flowstamp import _flowstamp
from flowstamp.errors import TheoryError, translated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flowstamp.scenario import Scenario

Floats = NDArray[np.float64]

Model = Literal["rcp", "switched", "linear"]
"""RCP's equations 5.1 to 5.4, the switched system 5.14, or the linear one 5.15, which is XCP's equations 15 and 16."""

START = {"xcp": (-0.5, 0.0), "rcp": (1.0, 0.0)}
"""What the disturbance is: half the link is free; the flows have doubled (Dukkipati 2007, section 5.4)."""

MODELS: dict[str, Model] = {"xcp": "switched", "rcp": "rcp"}
"""What tells how soon a law settles."""

PATIENCE_RTTS = 2000.0
"""How long settling is waited for."""

ALPHAS = (0.05, 2.0)
BETAS = (0.05, 1.2)


def _buffer(values: ArrayLike) -> bytes:
    return np.ascontiguousarray(values, np.float64).tobytes()


def _array(buffer: bytes) -> Floats:
    return np.frombuffer(buffer, np.float64)


MOST_GAIN = 100.0
"""Far beyond all that is stable; a loop's roots grow in number with it."""


def _gain(name: str, value: float) -> float:
    if not 0.0 < value <= MOST_GAIN:
        raise TheoryError(f"{name} is {value}; it must be a number above 0, and at most {MOST_GAIN:g}")
    return float(value)


def _finite(**values: ArrayLike) -> None:
    for name, value in values.items():
        if not np.isfinite(np.asarray(value, np.float64)).all():
            raise TheoryError(f"{name} is {value!r}; it must be finite numbers")


def _checked(alphas: ArrayLike, betas: ArrayLike, start: tuple[float, float], flows: float, most: float) -> None:
    _finite(alphas=alphas, betas=betas, start=start, flows=flows, most=most)
    if (np.asarray(alphas) < 0).any() or (np.asarray(betas) < 0).any():
        raise TheoryError("alphas and betas must be numbers from 0")
    if np.shape(start) != (2,) or start[0] < -1.0 or start[1] < 0.0:
        raise TheoryError(f"start is {start}; it must be a rate from -1 and a queue from 0")
    if flows < 1.0 or most <= 0.0:
        raise TheoryError(f"flows is {flows} and most is {most}; they must be from 1, and above 0")


def settling_time(
    alphas: ArrayLike,
    betas: ArrayLike,
    *,
    model: Model = "rcp",
    start: tuple[float, float] = (1.0, 0.0),
    flows: float = 100.0,
    most: float = PATIENCE_RTTS,
) -> Floats:
    """Round trips until the rate is within 2% and the queue within 1% for good (Dukkipati 2007, section 5.4).

    Args:
        alphas: Gains on spare capacity, of any shape that goes with that of betas.
        betas: Gains on the queue.
        model: Which equations.
        start: Where it starts: the rate over the equilibrium's less one, the queue in bandwidth-delay products.
        flows: Highest rate over the equilibrium's: R is at most C. For `rcp`.
        most: Round trips that it is waited for.

    Returns:
        Round trips, NaN where it does not settle.
    """
    _checked(alphas, betas, start, flows, most)
    a, b = np.broadcast_arrays(np.asarray(alphas, np.float64), np.asarray(betas, np.float64))
    with translated():
        found = _flowstamp.settling(model, _buffer(a.ravel()), _buffer(b.ravel()), start, flows, most)
    return _array(found).reshape(a.shape)


def stable_map(
    alphas: ArrayLike,
    betas: ArrayLike,
    *,
    model: Model = "switched",
    start: tuple[float, float] = (0.5, 0.0),
    flows: float = 100.0,
    most: float = 1000.0,
) -> NDArray[np.bool_]:
    """Where a model settles, by rows of one beta each; tried near the border, and taken to be alike elsewhere."""
    _checked(alphas, betas, start, flows, most)
    a, b = (np.asarray(values, np.float64).ravel() for values in (alphas, betas))
    with translated():
        cells, _ = _flowstamp.settling_map(model, _buffer(a), _buffer(b), start, flows, most)
    return np.frombuffer(cells, np.bool_).reshape(len(b), len(a))


def trajectory(
    alpha: float,
    beta: float,
    rtts: ArrayLike,
    *,
    model: Model = "rcp",
    start: tuple[float, float] = (1.0, 0.0),
    flows: float = 100.0,
    error: float = 0.0,
) -> tuple[Floats, Floats]:
    """Rate over the equilibrium's less one, and queue in bandwidth-delay products, at times in round trips.

    `error` is by what share a router takes the capacity for more than it is (Abrantes 2006, equation 3), for
    `switched` and `linear`.
    """
    _checked(alpha, beta, start, flows, 1.0)
    _finite(error=error)
    if model == "rcp" and error != 0.0:
        raise TheoryError(f"error is {error}; the models that have it are switched and linear")
    with translated():
        found = _flowstamp.trajectory(model, alpha, beta, start, flows, error, _buffer(rtts))
    states = _array(found).reshape(-1, 2)
    return states[:, 0], states[:, 1]


def response(alpha: float, beta: float, rtt: str, omega: ArrayLike) -> tuple[NDArray[np.complex128], Floats]:
    """Of the open loop at angular frequencies in rad/s: the response, and its phase in radians without jumps."""
    with translated():
        seconds = _flowstamp.quantity("time", rtt)
        re, im, phase = _flowstamp.loop_response(alpha, beta, seconds, _buffer(omega))
    return _array(re) + 1j * _array(im), _array(phase)


@dataclass(frozen=True)
class Stability:
    """What is known of a law with its gains."""

    law: str
    alpha: float
    beta: float
    rtt_s: float

    @cached_property
    def _margins(self) -> tuple[float | None, float | None, float | None, float | None, float | None]:
        with translated():
            return _flowstamp.loop_margins(self.alpha, self.beta, self.rtt_s)

    @cached_property
    def settles_after_rtts(self) -> float | None:
        """Round trips until rate and queue are within 2% and 1% for good; None where not stable, or not after 2000."""
        if not self.stable:
            return None
        time = float(
            settling_time(
                self.alpha, self.beta, model=MODELS[self.law], start=START[self.law], most=PATIENCE_RTTS + 20.0
            )
        )
        return None if math.isnan(time) else time

    @cached_property
    def stable(self) -> bool:
        """The switched system settles: what the law is near its equilibrium, where the queue is not below zero.

        It has no scale: what grows from a small disturbance does so from any, and may yet stay within 2%.
        """
        time = settling_time(self.alpha, self.beta, model="switched", start=(0.5, 0.0))
        if not math.isnan(float(time)):
            return True
        # What dies more slowly than that has lower peaks later on.
        rate, queue = trajectory(
            self.alpha, self.beta, np.linspace(0.0, 2 * PATIENCE_RTTS, 40001), model="switched", start=(0.5, 0.0)
        )
        size = np.maximum(np.abs(rate), queue)
        return bool(size[-10000:].max() < size[10000:20000].max())

    @property
    def linear_stable(self) -> bool:
        """Near the equilibrium, the queue taken as linear: phase is left at its one gain crossover."""
        phase = self._margins[2]
        return phase is not None and phase > 0.0

    @property
    def phase_margin_deg(self) -> float | None:
        """Phase margin of the linear loop, degrees."""
        phase = self._margins[2]
        return None if phase is None else math.degrees(phase)

    @property
    def gain_margin(self) -> float | None:
        """What the linear loop's gain may grow by, a factor."""
        return self._margins[0]

    @property
    def delay_margin_s(self) -> float | None:
        """Delay that the linear loop bears on top, seconds."""
        return self._margins[4]

    @property
    def crossover_rad_s(self) -> float | None:
        """Where the linear loop's gain is 1, rad/s."""
        return self._margins[3]

    @cached_property
    def roots(self) -> list[complex]:
        """The linear loop's closed-loop roots with real parts above -1/RTT, the rightmost first, 1/s."""
        with translated():
            found = _flowstamp.loop_roots(self.alpha, self.beta, self.rtt_s, -1.0 / self.rtt_s)
        return [complex(re, im) for re, im in found]

    def as_dict(self) -> dict[str, Any]:
        """All of it, as `flowstamp stability --json` prints it."""
        return {
            "law": self.law,
            "alpha": self.alpha,
            "beta": self.beta,
            "rtt_s": self.rtt_s,
            "stable": self.stable,
            "settles_after_rtts": self.settles_after_rtts,
            "linear": {
                "stable": self.linear_stable,
                "phase_margin_deg": self.phase_margin_deg,
                "gain_margin": self.gain_margin,
                "delay_margin_s": self.delay_margin_s,
                "crossover_rad_s": self.crossover_rad_s,
                "roots_per_s": [[root.real, root.imag] for root in self.roots],
            },
        }

    def lines(self) -> list[str]:
        """What a person reads."""
        from flowstamp import text

        settled = self.settles_after_rtts
        first = f"{self.law}, alpha {self.alpha:g}, beta {self.beta:g}, RTT {text.seconds(self.rtt_s)}: "
        if not self.stable:
            first += "unstable: a disturbance does not die"
        elif settled is None:
            first += f"stable; takes more than {PATIENCE_RTTS:g} round trips to settle"
        else:
            first += f"stable; settles in {settled:.1f} round trips, {text.seconds(settled * self.rtt_s)}"
        delay = "-" if self.delay_margin_s is None else text.seconds(self.delay_margin_s)
        phase = "-" if self.phase_margin_deg is None else f"{self.phase_margin_deg:.1f} degrees"
        linear = "stable" if self.linear_stable else "unstable"
        return [
            first,
            f"linear loop: {linear}; phase margin {phase}, "
            f"gain margin {text.maybe(self.gain_margin, 3)}, delay margin {delay}",
        ]

    def plot(self, cells: int = 100) -> Figure:
        """The gains on their region: the linear loop's border, and where the switched system settles."""
        from flowstamp import plot

        alphas, betas = (np.linspace(low, high, cells) for low, high in (ALPHAS, BETAS))
        along = np.linspace(0.0, ALPHAS[1], 800)
        with translated():
            border = (along, _array(_flowstamp.loop_border(_buffer(along))))
        return plot.region(
            alphas,
            betas,
            stable_map(alphas, betas),
            border,
            (self.alpha, self.beta, f"{self.law.upper()}, {'stable' if self.stable else 'unstable'}"),
        )


def of(law: str, *, alpha: float | None = None, beta: float | None = None, rtt: str = "100ms") -> Stability:
    """Of XCP or RCP, with its own gains unless others are given."""
    if law not in MODELS:
        raise TheoryError(f'law "{law}" has no model here; it must be one of {", ".join(MODELS)}')
    own_alpha, own_beta = _flowstamp.own_gains()[law]
    try:
        with translated():
            seconds = _flowstamp.quantity("time", rtt)
    except TheoryError as error:
        raise TheoryError(f"rtt: {error}") from error
    if seconds <= 0.0:
        raise TheoryError(f'rtt is "{rtt}"; it must be above 0')
    return Stability(
        law,
        _gain("alpha", own_alpha if alpha is None else alpha),
        _gain("beta", own_beta if beta is None else beta),
        seconds,
    )


def of_scenario(scenario: Scenario, rtt: str | None = None) -> list[Stability]:
    """Of each router law of a scenario that has a model here, with the mean RTT of its flows unless `rtt` is given."""
    tree = scenario.resolved()
    routers: dict[str, dict[str, Any]] = {}
    for place in ("dumbbell", "parking_lot", "graph", "fat_tree", "leaf_spine"):
        table = tree.get(place) or {}
        for link in [table, *table.get("links", [])]:
            router = link.get("router")
            if isinstance(router, dict) and router.get("law") in MODELS:
                routers.setdefault(f"{router['law']} {router['alpha']} {router['beta']}", router)
    if not routers:
        raise TheoryError(
            f"{scenario.source}: no link has a router whose law has a model here; those are {', '.join(MODELS)}"
        )
    text = rtt or _mean_rtt(tree, {router["law"] for router in routers.values()})
    if text is None:
        raise TheoryError(f"{scenario.source}: its topology gives no single RTT; say --rtt, such as --rtt 80ms")
    return [of(router["law"], alpha=router["alpha"], beta=router["beta"], rtt=text) for router in routers.values()]


def _mean_rtt(tree: dict[str, Any], laws: set[str]) -> str | None:
    """Over the flows with these laws of a dumbbell or parking lot: as many as a group counts, each with its RTT."""
    own = next((tree[place].get("rtt") for place in ("dumbbell", "parking_lot") if tree.get(place)), None)
    seconds: list[float] = []
    for group in tree.get("flows", []):
        law = group.get("law")
        if (law.get("law") if isinstance(law, dict) else law) not in laws:
            continue
        told = group.get("rtt") or own
        told = told if isinstance(told, list) else [told]
        if None in told:
            return None
        with translated():
            rtts = [_flowstamp.quantity("time", rtt) for rtt in told]
        seconds += rtts if len(rtts) > 1 else rtts * int(group.get("count") or 1)
    return f"{1e6 * sum(seconds) / len(seconds):.6f}us" if seconds else None
