# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Stability of a law with its gains: whether it is stable, with which margins, and how fast it settles.

    import flowstamp as fs

    s = fs.stability.of("rcp", alpha=0.5, beta=0.5, rtt="80ms")
    s.stable, s.proved, s.phase_margin_deg, s.settles_after_rtts
    s.plot()

Near equilibrium, the loops of XCP and RCP have the same linear form (Katabi 2002, appendix B; Dukkipati 2007, equations
5.5 to 5.7). Capacity and number of flows do not occur in it, and the RTT is only the unit of time. With different RTTs,
their ratios and the flows' shares matter.

At equilibrium the queue is empty. The linear form ignores that a queue cannot be negative, so it does not decide about
stability. The switched system (equation 5.14), solved in time, decides. With different RTTs, the model of the law on
one link decides (Katabi 2002, equations 15 to 17; Dukkipati 2007, equations 5.1 to 5.4). For most stable gains with one
RTT there is a proof. The crate `flowstamp-fluid` does the mathematics; its proofs are in `control::proof`.
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
"""Initial disturbance, as relative rate less one and queue in BDP. XCP: half the link is free. RCP: the number of flows
has doubled (Dukkipati 2007, section 5.4)."""

MODELS: dict[str, Model] = {"xcp": "switched", "rcp": "rcp"}
"""Model of each law for settling times."""

LIMIT_CYCLE = 0.98
"""Ratio of late to early peaks from which a swing counts as a limit cycle. The bounds of a law limit its swings."""

ALPHAS = (0.05, 2.0)
BETAS = (0.05, 1.2)


@dataclass(frozen=True)
class Stability:
    """Stability of a law with given gains, returned by `of` and `of_scenario`."""

    law: str
    alpha: float
    beta: float
    rtt_s: float
    """RTT of all flows in seconds; the mean over flows if RTTs differ."""
    groups: tuple[tuple[float, int], ...] = ()
    """RTTs in seconds with their numbers of flows; empty if all RTTs are equal."""
    gamma: float = 0.1
    """XCP's shuffled share of traffic; it has an effect only if RTTs differ."""
    links: tuple[str, ...] = ()
    """Links of the scenario that have this loop."""

    @property
    def _loop(self) -> tuple[float, list[tuple[float, float]]]:
        """Shuffled share, and numbers of flows with their RTTs, for the linear loop."""
        flows = [(float(count), rtt) for rtt, count in self.groups] or [(1.0, self.rtt_s)]
        return self.gamma if self.law == "xcp" else 0.0, flows

    @cached_property
    def _margins(self) -> tuple[float | None, float | None, float | None, float | None, float | None]:
        with translated():
            return _flowstamp.loop_margins(self.alpha, self.beta, *self._loop)

    def _shared(self) -> tuple[bytes, bytes, tuple[float, float]]:
        """Returns RTTs, numbers of flows and start for the model with different RTTs."""
        rtts, flows = zip(*self.groups, strict=True)
        return _buffer(rtts), _buffer(flows), START[self.law]

    def trajectory(self, rtts: ArrayLike) -> Trajectory:
        """Returns the response of the law's model to its disturbance, at times in (mean) RTTs."""
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
        """Returns settling times in mean RTTs for flows with different RTTs; NaN if longer than `most`."""
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
        """(Mean) RTTs until the rate stays within 2% and the queue within 1%; None if unstable or above 2000."""
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
        """Whether the switched system settles, which describes the law near equilibrium with a queue of at least 0.

        The system has no scale: a disturbance that grows does so from any size. With different RTTs, the model of the
        law replaces it. Its bounds limit growing swings. A slow decay therefore counts as stable only if the peaks in
        the last quarter of 4000 RTTs are at least 2% below those in the second quarter.
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
            return False  # the solution overflowed

    @cached_property
    def proved(self) -> bool | None:
        """Whether the switched system is proved stable, for any RTT, capacity and number of flows.

        None if RTTs differ, for which no proof is known. False means only that no proof was found.
        """
        return None if self.groups else bool(proved(self.alpha, self.beta))

    @property
    def linear_stable(self) -> bool:
        """Whether the linear loop is stable: all roots lie left of the imaginary axis. Ignores that queues are >= 0."""
        return all(root.real < 0.0 for root in self.roots)

    @property
    def phase_margin_deg(self) -> float | None:
        """Phase margin of the linear loop in degrees; None if it has none."""
        phase = self._margins[2]
        return None if phase is None else math.degrees(phase)

    @property
    def gain_margin(self) -> float | None:
        """Gain margin of the linear loop, a factor; None if it has none."""
        return self._margins[0]

    @property
    def delay_margin_s(self) -> float | None:
        """Delay margin of the linear loop in seconds; None if it has none."""
        return self._margins[4]

    @property
    def crossover_rad_s(self) -> float | None:
        """Angular frequency in rad/s at which the linear loop's gain is 1; None if there is none."""
        return self._margins[3]

    @cached_property
    def encirclements(self) -> int | None:
        """Number of clockwise turns of the Nyquist plot around -1; None on the border of stability.

        With one RTT the loop has no unstable poles. The number is then that of closed-loop roots right of the imaginary
        axis.
        """
        with translated():
            return _flowstamp.loop_encirclements(self.alpha, self.beta, *self._loop)

    def response(self, omega: ArrayLike) -> tuple[NDArray[np.complex128], Floats]:
        """Returns the open loop's response at angular frequencies in rad/s, and its unwrapped phase in radians."""
        _finite(omega=omega)
        with translated():
            re, im, phase = _flowstamp.loop_response(self.alpha, self.beta, *self._loop, _buffer(omega))
        return _array(re) + 1j * _array(im), _array(phase)

    @cached_property
    def roots(self) -> list[complex]:
        """Closed-loop roots of the linear loop in 1/s with a real part above -1 / longest RTT, rightmost first."""
        longest = max((rtt for rtt, _ in self.groups), default=self.rtt_s)
        with translated():
            found = _flowstamp.loop_roots(self.alpha, self.beta, *self._loop, -1.0 / longest)
        return [complex(re, im) for re, im in found]

    def as_dict(self) -> dict[str, Any]:
        """Returns all results, as `flowstamp stability --json` prints them."""
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
        """Returns the results as lines of text."""
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
        # Adding 0.0 after rounding turns -0.0 into 0.0.
        phase = "-" if self.phase_margin_deg is None else f"{round(self.phase_margin_deg, 1) + 0.0:.1f} degrees"
        linear = "stable" if self.linear_stable else "unstable"
        second = (
            f"linear loop: {linear}; phase margin {phase}, "
            f"gain margin {text.maybe(self.gain_margin, 3)}, delay margin {delay}"
        )
        if self.linear_stable != self.stable:
            second += "; the first line counts, because it includes that a queue is never below zero"
        proof = "proved: stable near equilibrium, with any RTT, capacity and number of flows"
        return [first, second, *([proof] if self.proved else [])]

    def with_gains(self, alpha: float, beta: float) -> Stability:
        """Returns the same law and flows with other gains."""
        return replace(self, alpha=_gain("alpha", alpha), beta=_gain("beta", beta))

    def check_by_simulation(self, points: int = 12, **options: Any) -> Check:
        """Simulates packets at `points` x `points` pairs of gains; see `flowstamp.stability_check.check`."""
        from flowstamp.stability_check import check

        return check(self, points=points, **options)

    def plot(
        self, cells: int | None = None, *, tried: tuple[Floats, Floats, NDArray[np.bool_]] | None = None
    ) -> Figure:
        """Draws the gains, the border of the linear loop, and the region where the switched system settles.

        With different RTTs, the region is that of the law's model, with fewer cells by default because it takes longer.
        `tried` has alphas, betas, and whether packets settled there.
        """
        from flowstamp import stability_plots

        if self.groups:
            alphas, betas, inside = self._region(cells or 40, wide=tried is None)
        else:
            alphas, betas = np.linspace(0.0, ALPHAS[1], 50), np.linspace(0.0, BETAS[1], cells or 100)
            inside = switched_border(betas)[:, None] - alphas
        return stability_plots.region(
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
        """Returns alphas, betas, and each pair's distance to the border along its row, positive inside the region.

        Distances are capped at one cell. With `wide`, the axes extend beyond the linear loop's gain margin.
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
        # Bisection refines each position where a row changes.
        rows, columns = np.nonzero(where[:, 1:] != where[:, :-1])
        low, high, left = alphas[columns], alphas[columns + 1], where[rows, columns]
        for _ in range(6 if len(rows) else 0):
            middle = (low + high) / 2
            alike = np.isfinite(self._settles_together(middle, betas[rows], 1000.0)) == left
            low, high = np.where(alike, middle, low), np.where(alike, high, middle)
        away = np.full(where.shape, alphas[1] - alphas[0])
        for row, cut in zip(rows, (low + high) / 2, strict=True):
            away[row] = np.minimum(away[row], np.abs(alphas - cut))
        # The region extends unchanged from the smallest gains down to the axes.
        inside = np.pad(np.where(where, away, -away), ((1, 0), (1, 0)), mode="edge")
        return np.insert(alphas, 0, 0.0), np.insert(betas, 0, 0.0), inside

    def plot_settling(self, cells: int = 60) -> Figure:
        """Draws the settling time after the law's disturbance, over its gains."""
        alphas, betas = (np.linspace(low, high, cells) for low, high in (ALPHAS, BETAS))
        if not self.groups:
            return settling_map(alphas, betas, model=MODELS[self.law], start=START[self.law], point=self._point)
        from flowstamp import stability_plots

        times = self._settles_together(*np.meshgrid(alphas, betas), SETTLING_RTTS)
        return stability_plots.settling(alphas, betas, times, _border(*self._loop, alphas, betas), self._point)

    def plot_portrait(self) -> Figure:
        """Draws queue against rate from the starts of appendix E. Different RTTs are replaced by their mean."""
        return phase_portrait(self.alpha, self.beta, model=MODELS[self.law])

    def _frequencies(self) -> Floats:
        """Returns frequencies in rad/s from 0.03 to 30 times the crossover (upper end: at least 30 / RTT)."""
        middle = self.crossover_rad_s or 1.0 / self.rtt_s
        return np.geomspace(0.03 * middle, 30.0 * max(middle, 1.0 / self.rtt_s), 3000)

    def plot_bode(self) -> Figure:
        """Draws the Bode plot of the linear loop: gain and phase over the angular frequency, with its margins."""
        from flowstamp import stability_plots

        omega = self._frequencies()
        g, phase = self.response(omega)
        gain_at, phase_at = self.crossover_rad_s, self._margins[1]
        margins = []
        if gain_at is not None and self.phase_margin_deg is not None:
            margins.append((gain_at, f"phase margin {round(self.phase_margin_deg, 1) + 0.0:.1f} degrees"))
        if phase_at is not None and self.gain_margin is not None:
            margins.append((phase_at, f"gain margin {self.gain_margin:.3g}"))
        return stability_plots.bode(omega, np.abs(g), np.degrees(phase), margins)

    def plot_nyquist(self) -> Figure:
        """Draws the Nyquist plot of the linear loop near -1; `encirclements` counts its turns."""
        from flowstamp import stability_plots

        g, _ = self.response(self._frequencies())
        around = self.encirclements
        told = "on the border" if around is None else f"{around} times around -1"
        return stability_plots.nyquist(g, told)


class Trajectory(NamedTuple):
    """Response of a model to its disturbance, with one value per requested time."""

    rate: Floats
    """Traffic divided by capacity, less one."""
    queue: Floats
    """Queue divided by capacity x (mean) RTT."""
    rates: dict[float, Floats]
    """By RTT in seconds, the rate of a flow divided by its equal share; empty with a single RTT."""


def _dies(rate: Floats, queue: Floats, left: float = 0.99) -> bool:
    """Whether a disturbance decays: its peak in the last quarter is below `left` times that in the second quarter.

    In a limit cycle these peaks differ only by sampling, about a tenth of 1 - `left`. A slow monotonic decay also
    counts: then the whole last quarter is below the whole second one.
    """
    size = np.maximum(np.abs(rate), queue)
    quarter = len(size) // 4
    early, late = size[quarter : 2 * quarter], size[-quarter:]
    return bool(late.max() < left * early.max() or late.max() < early.min())


def _groups(rtts: Sequence[float], flows: Sequence[int]) -> tuple[float, tuple[tuple[float, int], ...]]:
    """Returns the mean RTT over flows, and the RTTs with their numbers of flows if they differ."""
    each: dict[float, int] = {}
    for rtt, count in zip(rtts, flows, strict=True):
        each[rtt] = each.get(rtt, 0) + count
    mean = sum(rtt * count for rtt, count in each.items()) / sum(each.values())
    return mean, tuple(sorted(each.items())) if len(each) > 1 else ()


def _elsewhere(law: str) -> str:
    """Returns a hint for the error message: where a law without a model here has one."""
    first = law.partition("-")[0]
    if first == "vcp":
        return "; VCP's model is in Python: flowstamp.stability_network.network"
    if law != first and law in _flowstamp.own_gains():
        return f"; the loop of {law} equals that of {first} near equilibrium"
    return ""


def of(
    law: str,
    *,
    alpha: float | None = None,
    beta: float | None = None,
    rtt: str | Sequence[str] = "100ms",
    flows: Sequence[int] | None = None,
) -> Stability:
    """Returns the stability of XCP or RCP. Raises `TheoryError` for another law or arguments out of range.

    Args:
        law: "xcp" or "rcp".
        alpha: gain on spare capacity, above 0 and at most 10; default the law's own.
        beta: gain on the queue, above 0 and at most 10; default the law's own.
        rtt: RTT of all flows, or several RTTs.
        flows: number of flows with each RTT; default 1.
    """
    if law not in MODELS:
        raise TheoryError(f'law "{law}" has no stability model; it must be one of {", ".join(MODELS)}{_elsewhere(law)}')
    own_alpha, own_beta = _flowstamp.own_gains()[law]
    rtts = [_quantity("rtt", "time", each) for each in ([rtt] if isinstance(rtt, str) else rtt)]
    if not rtts:
        raise TheoryError("rtt is empty; give at least one time")
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
    _ = groups and found.trajectory([0.0])  # raises TheoryError now if the groups exceed the model's limits
    return found


MOST_APART = 8
"""Maximum number of a scenario's loops that are reported separately."""


def _of_flows(
    law: str, alpha: float, beta: float, gamma: float | None, pairs: Sequence[tuple[float, int]]
) -> Stability:
    mean, groups = _groups([rtt for rtt, _ in pairs], [count for _, count in pairs])
    return Stability(law, _gain("alpha", alpha), _gain("beta", beta), mean, groups, 0.1 if gamma is None else gamma)


def of_scenario(scenario: Scenario, rtt: str | Sequence[str] | None = None) -> list[Stability]:
    """Returns the stability of each router law in a scenario that has a model here, with its compliant flows' RTTs.

    Links with the same law, gains and RTTs share one entry. If that leaves more than eight, as in a fat tree, links
    with the same law and gains share one, with the RTTs of all their flows. `rtt`, one or several, replaces the
    scenario's RTTs. Raises `TheoryError` if no router law has a model or no flow an RTT above 0.
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
            f"{scenario.source}: no flow that obeys its routers has an RTT above 0; set one, such as --rtt 80ms"
        )
    return [replace(one, links=tuple(links)) for one, links in found.items()]
