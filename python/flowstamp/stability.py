# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Whether a law is stable with its gains, by how much, and how soon it settles.

    import flowstamp as fs

    s = fs.stability.of("rcp", alpha=0.5, beta=0.5, rtt="80ms")
    s.stable, s.proved, s.phase_margin_deg, s.settles_after_rtts
    s.plot()

XCP's and RCP's loops have one linear form near their equilibrium (Katabi 2002, appendix B; Dukkipati 2007, equations
5.5 to 5.7), in which neither capacity nor number of flows occurs, and the RTT only as the unit of time; where RTTs
differ, their ratios and shares of the flows do. The equilibrium lies where the queue is empty and cannot be emptier,
which the linear form leaves out: what is stable in fact is told in time, by the switched system (equation 5.14), and
where RTTs differ by the model of the law on one link (Katabi 2002, equations 15 to 17; Dukkipati 2007, equations 5.1
to 5.4). Of most of what is stable with one RTT there is a proof. The mathematics is the crate `flowstamp-fluid`
(`control::proof` has the proofs); nothing is computed here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flowstamp import _flowstamp
from flowstamp.errors import TheoryError, translated
from flowstamp.stability_models import (
    MOST_GAIN,
    PATIENCE_RTTS,
    SETTLING_RTTS,
    Floats,
    Model,
    _array,
    _border,
    _buffer,
    _finite,
    _gain,
    _quantity,
    phase_portrait,
    proved,
    response,
    settling_map,
    settling_time,
    stable_map,
    switched_border,
    trajectory,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flowstamp.scenario import Scenario
    from flowstamp.stability_check import Check

__all__ = [
    "Model",
    "Stability",
    "Trajectory",
    "of",
    "of_scenario",
    "phase_portrait",
    "proved",
    "response",
    "settling_map",
    "settling_time",
    "stable_map",
    "switched_border",
    "trajectory",
]

START = {"xcp": (-0.5, 0.0), "rcp": (1.0, 0.0)}
"""What the disturbance is: half the link is free; the flows have doubled (Dukkipati 2007, section 5.4)."""

MODELS: dict[str, Model] = {"xcp": "switched", "rcp": "rcp"}
"""What tells how soon a law settles."""

LIMIT_CYCLE = 0.98
"""What is left of a swing that does not die, at least: where laws have bounds it comes to a size, and stays so."""

ALPHAS = (0.05, 2.0)
BETAS = (0.05, 1.2)


@dataclass(frozen=True)
class Stability:
    """What is known of a law with its gains."""

    law: str
    alpha: float
    beta: float
    rtt_s: float
    """Of all flows, or their mean."""
    groups: tuple[tuple[float, int], ...] = ()
    """RTTs of flows in seconds, each with the number that have it, where they differ."""
    gamma: float = 0.1
    """What XCP shuffles, which is of matter where RTTs differ."""
    links: tuple[str, ...] = ()
    """In a scenario: those of which it is true."""

    @property
    def _loop(self) -> tuple[float, list[tuple[float, float]]]:
        """What is shuffled, and numbers of flows with their RTTs, of the linear loop."""
        flows = [(float(count), rtt) for rtt, count in self.groups] or [(1.0, self.rtt_s)]
        return self.gamma if self.law == "xcp" else 0.0, flows

    @cached_property
    def _margins(self) -> tuple[float | None, float | None, float | None, float | None, float | None]:
        with translated():
            return _flowstamp.loop_margins(self.alpha, self.beta, *self._loop)

    def _shared(self) -> tuple[bytes, bytes, tuple[float, float]]:
        """RTTs, flows and start of the model of flows that differ."""
        rtts, flows = zip(*self.groups, strict=True)
        return _buffer(rtts), _buffer(flows), START[self.law]

    def trajectory(self, rtts: ArrayLike) -> Trajectory:
        """Of the law's model from its disturbance, at times in (mean) RTTs."""
        if not self.groups:
            model, start = MODELS[self.law], START[self.law]
            return Trajectory(*trajectory(self.alpha, self.beta, rtts, model=model, start=start), {})
        times, (own, flows, start) = _buffer(rtts), self._shared()
        with translated():
            found = _flowstamp.shared_trajectory(self.law, self.gamma, self.alpha, self.beta, own, flows, start, times)
        rows = _array(found).reshape(-1, 2 + len(self.groups))
        each = {rtt: rows[:, 2 + number] for number, (rtt, _) in enumerate(self.groups)}
        return Trajectory(rows[:, 0], rows[:, 1], each)

    def _settles_together(self, alphas: Floats, betas: Floats, most: float) -> Floats:
        """Of flows that differ: NaN where they do not settle in time."""
        rtts, flows, start = self._shared()
        with translated():
            found = _flowstamp.shared_settling(
                self.law, self.gamma, _buffer(alphas), _buffer(betas), rtts, flows, start, most
            )
        return _array(found).reshape(alphas.shape)

    @cached_property
    def _own_time(self) -> float:
        gains = np.array([self.alpha]), np.array([self.beta])
        return float(self._settles_together(*gains, PATIENCE_RTTS + 20.0)[0])

    @cached_property
    def settles_after_rtts(self) -> float | None:
        """(Mean) RTTs until rate and queue are within 2% and 1% for good; None where not stable, or not after 2000."""
        if not self.stable:
            return None
        if self.groups:
            return None if math.isnan(self._own_time) else self._own_time
        time = float(
            settling_time(
                self.alpha, self.beta, model=MODELS[self.law], start=START[self.law], most=PATIENCE_RTTS + 20.0
            )
        )
        return None if math.isnan(time) else time

    @cached_property
    def stable(self) -> bool:
        """The switched system settles: what the law is near its equilibrium, where the queue is not below zero.

        It has no scale: what grows from a small disturbance does so from any, and may yet stay within 2%. Flows that
        differ have the model of their law in its place, whose swings end at its bounds: of one that dies slowly 2% have
        to be gone between 2000 and 4000 RTTs.
        """
        if self.proved:
            return True
        gains = self.alpha, self.beta
        time = self._own_time if self.groups else float(settling_time(*gains, model="switched", start=(0.5, 0.0)))
        if not math.isnan(time):
            return True
        late = np.linspace(0.0, 2 * PATIENCE_RTTS, 32 * round(2 * PATIENCE_RTTS) + 1)
        try:
            if self.groups:
                return _dies(*self.trajectory(late)[:2], left=LIMIT_CYCLE)
            return _dies(*trajectory(*gains, late, model="switched", start=(0.5, 0.0)))
        except TheoryError:
            return False  # it has grown beyond all numbers

    @cached_property
    def proved(self) -> bool | None:
        """Whether it is proved that the switched system is stable: for any RTT, capacity and number of flows.

        None where RTTs differ: no proof is known there. False says that none was found, and nothing else.
        """
        return None if self.groups else bool(proved(self.alpha, self.beta))

    @property
    def linear_stable(self) -> bool:
        """Near the equilibrium, the queue taken as linear: no root lies right of the imaginary axis."""
        return all(root.real < 0.0 for root in self.roots)

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
    def encirclements(self) -> int | None:
        """How often Nyquist's plot goes around -1, clockwise, counted along the imaginary axis; None on the border.

        With one RTT the loop has no unstable poles, so that it is how many closed-loop roots lie right of the axis.
        """
        with translated():
            return _flowstamp.loop_encirclements(self.alpha, self.beta, *self._loop)

    def response(self, omega: ArrayLike) -> tuple[NDArray[np.complex128], Floats]:
        """Of the open loop at angular frequencies in rad/s: the response, and its phase in radians without jumps."""
        _finite(omega=omega)
        with translated():
            re, im, phase = _flowstamp.loop_response(self.alpha, self.beta, *self._loop, _buffer(omega))
        return _array(re) + 1j * _array(im), _array(phase)

    @cached_property
    def roots(self) -> list[complex]:
        """The linear loop's closed-loop roots right of -1 over the longest RTT, the rightmost first, 1/s."""
        longest = max((rtt for rtt, _ in self.groups), default=self.rtt_s)
        with translated():
            found = _flowstamp.loop_roots(self.alpha, self.beta, *self._loop, -1.0 / longest)
        return [complex(re, im) for re, im in found]

    def as_dict(self) -> dict[str, Any]:
        """All of it, as `flowstamp stability --json` prints it."""
        return {
            "law": self.law,
            "alpha": self.alpha,
            "beta": self.beta,
            "rtt_s": self.rtt_s,
            "groups": [{"rtt_s": rtt, "flows": flows} for rtt, flows in self.groups],
            "links": list(self.links),
            "stable": self.stable,
            "proved": self.proved,
            "settles_after_rtts": self.settles_after_rtts,
            "linear": {
                "stable": self.linear_stable,
                "phase_margin_deg": self.phase_margin_deg,
                "gain_margin": self.gain_margin,
                "delay_margin_s": self.delay_margin_s,
                "crossover_rad_s": self.crossover_rad_s,
                "encirclements": self.encirclements,
                "roots_per_s": [[root.real, root.imag] for root in self.roots],
            },
        }

    def lines(self) -> list[str]:
        """What a person reads."""
        from flowstamp import text

        settled = self.settles_after_rtts
        first = f"{self.law}, alpha {self.alpha:g}, beta {self.beta:g}, "
        if self.groups:
            each = ", ".join(
                f"{flows} {'flow' if flows == 1 else 'flows'} of {text.seconds(rtt)}" for rtt, flows in self.groups
            )
            first += f"mean RTT {text.seconds(self.rtt_s)} ({each}): "
        else:
            first += f"RTT {text.seconds(self.rtt_s)}: "
        if self.links:
            more = f" and {len(self.links) - 3} more" if len(self.links) > 4 else ""
            names = ", ".join(self.links[:3] if more else self.links)
            first = f"{'link' if len(self.links) == 1 else 'links'} {names}{more}: {first}"
        if not self.stable:
            first += "unstable: a disturbance does not die"
        elif settled is None:
            first += f"stable; takes more than {PATIENCE_RTTS:g} round trips to settle"
        else:
            first += f"stable; settles in {settled:.1f} round trips, {text.seconds(settled * self.rtt_s)}"
        delay = "-" if self.delay_margin_s is None else text.seconds(self.delay_margin_s)
        # Rounded first: -0.04 degrees are 0.0.
        phase = "-" if self.phase_margin_deg is None else f"{round(self.phase_margin_deg, 1) + 0.0:.1f} degrees"
        linear = "stable" if self.linear_stable else "unstable"
        second = (
            f"linear loop: {linear}; phase margin {phase}, "
            f"gain margin {text.maybe(self.gain_margin, 3)}, delay margin {delay}"
        )
        if self.linear_stable != self.stable:
            second += "; the first line counts: it knows that a queue is never below zero"
        proof = "proved: stable with any RTT, capacity and number of flows, near rest from any start"
        return [first, second, *([proof] if self.proved else [])]

    def with_gains(self, alpha: float, beta: float) -> Stability:
        """The same law and flows with other gains."""
        return replace(self, alpha=_gain("alpha", alpha), beta=_gain("beta", beta))

    def check_by_simulation(self, points: int = 12, **options: Any) -> Check:
        """Where packets oscillate: runs at `points` times `points` pairs of gains (`flowstamp.stability_check`)."""
        from flowstamp.stability_check import check

        return check(self, points=points, **options)

    def plot(
        self, cells: int | None = None, *, tried: tuple[Floats, Floats, NDArray[np.bool_]] | None = None
    ) -> Figure:
        """The gains on their region: the linear loop's border, and where the switched system settles.

        Of flows that differ, where their law's model does; of fewer cells by default, for it takes longer. `tried` are
        alphas, betas and whether packets rested there.
        """
        from flowstamp import plot

        if self.groups:
            alphas, betas, inside = self._region(cells or 40, wide=tried is None)
        else:
            alphas, betas = np.linspace(0.0, ALPHAS[1], 50), np.linspace(0.0, BETAS[1], cells or 100)
            inside = switched_border(betas)[:, None] - alphas
        return plot.region(
            alphas,
            betas,
            inside,
            _border(*self._loop, alphas, betas),
            self._point,
            name="several RTTs" if self.groups else "switched system",
            tried=tried,
        )

    @property
    def _point(self) -> tuple[float, float, str]:
        return self.alpha, self.beta, f"{self.law.upper()}, {'stable' if self.stable else 'unstable'}"

    def _region(self, cells: int, *, wide: bool) -> tuple[Floats, Floats, Floats]:
        """Gains, and how far inside the region each pair is along its row, at most a cell: zero is the border.

        `wide` if the axes are to go beyond where the linear loop bears no more gain.
        """
        bears = (self.gain_margin or 1.0) if wide else 1.0
        alphas, betas = (
            np.linspace(low, min(max(high, 1.2 * bears * own), MOST_GAIN), cells)
            for (low, high), own in ((ALPHAS, self.alpha), (BETAS, self.beta))
        )
        rtts, flows, start = self._shared()
        with translated():
            found, _ = _flowstamp.shared_map(
                self.law, self.gamma, _buffer(alphas), _buffer(betas), rtts, flows, start, 1000.0
            )
        where = np.frombuffer(found, np.bool_).reshape(cells, cells)
        # Where a row changes, by halving.
        rows, columns = np.nonzero(where[:, 1:] != where[:, :-1])
        low, high, left = alphas[columns], alphas[columns + 1], where[rows, columns]
        for _ in range(6 if len(rows) else 0):
            middle = (low + high) / 2
            alike = np.isfinite(self._settles_together(middle, betas[rows], 1000.0)) == left
            low, high = np.where(alike, middle, low), np.where(alike, high, middle)
        away = np.full(where.shape, alphas[1] - alphas[0])
        for row, cut in zip(rows, (low + high) / 2, strict=True):
            away[row] = np.minimum(away[row], np.abs(alphas - cut))
        # Down to the axes it is as where it was last asked.
        inside = np.pad(np.where(where, away, -away), ((1, 0), (1, 0)), mode="edge")
        return np.insert(alphas, 0, 0.0), np.insert(betas, 0, 0.0), inside

    def plot_settling(self, cells: int = 60) -> Figure:
        """How soon the law settles from its disturbance, over its gains."""
        alphas, betas = (np.linspace(low, high, cells) for low, high in (ALPHAS, BETAS))
        if not self.groups:
            return settling_map(alphas, betas, model=MODELS[self.law], start=START[self.law], point=self._point)
        from flowstamp import plot

        times = self._settles_together(*np.meshgrid(alphas, betas), SETTLING_RTTS)
        return plot.settling(alphas, betas, times, _border(*self._loop, alphas, betas), self._point)

    def plot_portrait(self) -> Figure:
        """Queue against rate from appendix E's starts; of flows that differ as if all had their mean RTT."""
        return phase_portrait(self.alpha, self.beta, model=MODELS[self.law])

    def _frequencies(self) -> Floats:
        """Two decades below what counts, and to where all has gone by."""
        middle = self.crossover_rad_s or 1.0 / self.rtt_s
        return np.geomspace(0.03 * middle, 30.0 * max(middle, 1.0 / self.rtt_s), 3000)

    def plot_bode(self) -> Figure:
        """Bode's plot of the linear loop: gain and phase over the angular frequency, with its margins."""
        from flowstamp import plot

        omega = self._frequencies()
        g, phase = self.response(omega)
        gain_at, phase_at = self.crossover_rad_s, self._margins[1]
        margins = []
        if gain_at is not None and self.phase_margin_deg is not None:
            margins.append((gain_at, f"phase margin {round(self.phase_margin_deg, 1) + 0.0:.1f} degrees"))
        if phase_at is not None and self.gain_margin is not None:
            margins.append((phase_at, f"gain margin {self.gain_margin:.3g}"))
        return plot.bode(omega, np.abs(g), np.degrees(phase), margins)

    def plot_nyquist(self) -> Figure:
        """Nyquist's plot of the linear loop around -1, which it goes around as often as `encirclements` says."""
        from flowstamp import plot

        g, _ = self.response(self._frequencies())
        around = self.encirclements
        told = "on the border" if around is None else f"{around} times around -1"
        return plot.nyquist(g, told)


class Trajectory(NamedTuple):
    """What a model does from its disturbance on."""

    rate: Floats
    """Traffic over the capacity, less one."""
    queue: Floats
    """In capacity times (mean) RTT."""
    rates: dict[float, Floats]
    """Of a flow of each RTT, over its even part; empty where there is one."""


def _dies(rate: Floats, queue: Floats, left: float = 0.99) -> bool:
    """What dies has less of it later on: the last quarter's peaks are below that part of those of the second.

    Those of a limit cycle differ by what falls between samples, a tenth of that. What only creeps swings no more: there
    all of the last quarter is below all of the second.
    """
    size = np.maximum(np.abs(rate), queue)
    quarter = len(size) // 4
    early, late = size[quarter : 2 * quarter], size[-quarter:]
    return bool(late.max() < left * early.max() or late.max() < early.min())


def _groups(rtts: Sequence[float], flows: Sequence[int]) -> tuple[float, tuple[tuple[float, int], ...]]:
    """The mean RTT of flows, and each with its flows if they differ."""
    each: dict[float, int] = {}
    for rtt, count in zip(rtts, flows, strict=True):
        each[rtt] = each.get(rtt, 0) + count
    mean = sum(rtt * count for rtt, count in each.items()) / sum(each.values())
    return mean, tuple(sorted(each.items())) if len(each) > 1 else ()


def _elsewhere(law: str) -> str:
    """Where a law that there is has a model."""
    first = law.partition("-")[0]
    if first == "vcp":
        return "; VCP's model is in Python: flowstamp.stability_network.network"
    return f"; the loop of {law} is that of {first} near rest" if law != first and law in _flowstamp.own_gains() else ""


def of(
    law: str,
    *,
    alpha: float | None = None,
    beta: float | None = None,
    rtt: str | Sequence[str] = "100ms",
    flows: Sequence[int] | None = None,
) -> Stability:
    """Of XCP or RCP, with its own gains unless others are given.

    Args:
        law: `xcp` or `rcp`.
        alpha: Gain on spare capacity.
        beta: Gain on the queue.
        rtt: Of all flows, or several.
        flows: How many have each RTT; one, if nothing is said.
    """
    if law not in MODELS:
        raise TheoryError(f'law "{law}" has no model here; it must be one of {", ".join(MODELS)}{_elsewhere(law)}')
    own_alpha, own_beta = _flowstamp.own_gains()[law]
    rtts = [_quantity("rtt", "time", each) for each in ([rtt] if isinstance(rtt, str) else rtt)]
    if not rtts:
        raise TheoryError("rtt is empty; it must have one time at least")
    counts = [1] * len(rtts) if flows is None else list(flows)
    if len(counts) != len(rtts):
        raise TheoryError(f"flows has {len(counts)} numbers; it must have {len(rtts)}, one for each rtt")
    for count in counts:
        if count < 1:
            raise TheoryError(f"flows has {count}; each must be 1 or more")
    mean, groups = _groups(rtts, counts)
    found = Stability(
        law,
        _gain("alpha", own_alpha if alpha is None else alpha),
        _gain("beta", own_beta if beta is None else beta),
        mean,
        groups,
    )
    _ = groups and found.trajectory([0.0])  # refuses what the model has no room for
    return found


MOST_APART = 8
"""As many loops of a scenario are told apart."""


def _of_flows(
    law: str, alpha: float, beta: float, gamma: float | None, pairs: Sequence[tuple[float, int]]
) -> Stability:
    mean, groups = _groups([rtt for rtt, _ in pairs], [count for _, count in pairs])
    return Stability(law, _gain("alpha", alpha), _gain("beta", beta), mean, groups, 0.1 if gamma is None else gamma)


def of_scenario(scenario: Scenario, rtt: str | Sequence[str] | None = None) -> list[Stability]:
    """Of each router law of a scenario that has a model here, with the RTTs of the flows that obey it.

    Links of the same law, gains and RTTs are one. Where that leaves more than eight, as in a fat tree, those of one law
    and gains are taken together, with the RTTs of all their flows. `rtt` is in place of the scenario's, one or several.
    """
    given = None
    if rtt is not None:
        rtts = [_quantity("rtt", "time", each) for each in ([rtt] if isinstance(rtt, str) else rtt)]
        given = [(seconds, 1) for seconds in rtts]
    all_loops = scenario.router_loops()
    loops = [loop for loop in all_loops if loop[1] in MODELS]
    obeyed = [(*loop[:5], given or loop[5]) for loop in loops if given or loop[5]]
    found: dict[Stability, list[str]] = {}
    for link, law, alpha, beta, gamma, pairs in obeyed:
        try:
            one = _of_flows(law, alpha, beta, gamma, pairs)
        except TheoryError as error:
            raise TheoryError(f"{scenario.source}: router of {link}: {error}") from None
        found.setdefault(one, []).append(link)
    if len(found) > MOST_APART:
        together: dict[tuple[str, float, float, float | None], list[tuple[str, list[tuple[float, int]]]]] = {}
        for link, law, alpha, beta, gamma, pairs in obeyed:
            together.setdefault((law, alpha, beta, gamma), []).append((link, pairs))
        found = {
            _of_flows(*law, [pair for _, pairs in those for pair in pairs]): [link for link, _ in those]
            for law, those in together.items()
        }
    if not loops:
        others = "".join(dict.fromkeys(_elsewhere(law) for _, law, *_ in all_loops))
        raise TheoryError(
            f"{scenario.source}: no link has a router whose law has a model here; those are {', '.join(MODELS)}{others}"
        )
    if not found:
        raise TheoryError(
            f"{scenario.source}: no flow that obeys its routers has an RTT above 0; say --rtt, such as --rtt 80ms"
        )
    return [replace(one, links=tuple(links)) for one, links in found.items()]
