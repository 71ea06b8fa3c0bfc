# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Fluid models of XCP, RCP and VCP on several links, from their papers.

`of_scenario` builds a model from a scenario. For example::

    import numpy as np
    from flowstamp.stability_network import Route, network

    lot = network(
        "rcp",
        {"first": "100Mbps", "second": "50Mbps"},
        [Route(["first", "second"], "90ms"), Route(["first"], "30ms"), Route(["second"], "60ms")],
    )
    lot.fair_bps
    found = lot.trajectory(np.linspace(0.0, 5.0, 501))
    found.queues_s["second"], found.rates_bps[0]

The equations are those of Katabi 2002 (15 to 17; section 3.5.2 for shuffling), Dukkipati 2007 (5.1 to 5.4) and Xia 2008
(9 to 15). Data reach a route's links after given delays. A full link passes traffic on in the proportions of its input.
XCP's shuffling leaves part of a link unused (Low, Andrew and Wydrowski 2005). The rates of RCP and VCP are max-min
fair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from flowstamp import _flowstamp
from flowstamp.errors import TheoryError, translated
from flowstamp.stability_models import MOST_GAIN, Floats, _array, _buffer, _finite, _gain, _quantity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flowstamp.scenario import Scenario

SEEN_RTTS = 400.0
"""Duration of a model's run in multiples of the longest RTT."""
LATE = 0.75
"""Share of the run after which its late part begins. Its mean rates are the steady state; settling must end before."""
MOST_LINKS, MOST_ROUTES = 8, 16
"""Maximum number of links and of routes in a model."""

PARAMETERS: dict[str, dict[str, float | str]] = {
    "xcp": {**dict(zip(("alpha", "beta"), _flowstamp.own_gains()["xcp"], strict=True)), "gamma": 0.1},
    "rcp": dict(zip(("alpha", "beta"), _flowstamp.own_gains()["rcp"], strict=True)),
    "vcp": {
        "kappa": 0.25,
        "alpha": 1.0,
        "target": 0.98,
        "t_rho": "200ms",
        "packet": "1000B",
        "step": 0.0,
        "every": "2s",
    },
}
"""Default parameters of the laws. VCP adds `alpha` packets per `t_rho`. Its `target` is a utilisation. If `step` is not
0, routers approach that target by adjusting their estimate of the capacity by `step` after each `every`
(equation 14)."""


VCP_FIXED = 4
"""Number of VCP's gains without adjustment of the target."""
LIMITS = {"gamma": (0.0, 1.0), "kappa": (0.01, 0.99), "target": (0.01, 1.0), "step": (0.0, 0.1)}


@dataclass(frozen=True)
class Route:
    """Flows on the same path."""

    links: Sequence[str]
    """Names of the links, in the order of the data."""
    rtt: str
    """Round-trip time without queueing."""
    flows: int = 1
    """Number of flows."""
    passes: Sequence[str] | None = None
    """Delay from the sender to each link. Default: 0 for the first link, then evenly spaced over half an RTT."""


@dataclass(frozen=True)
class NetworkTrajectory:
    """Solution of a model of several links, with one value per requested time."""

    queues_s: dict[str, Floats]
    """Queueing delay of each link in seconds. Empty for VCP, whose model has no queue."""
    rates_bps: list[Floats]
    """For each route, the rate of one flow in bit/s."""
    targets: dict[str, Floats]
    """Target of each VCP router as a share of the capacity. Empty unless routers adjust it."""


@dataclass(frozen=True)
class Network:
    """A law on several links, returned by `network` and `of_scenario`."""

    law: str
    gains: tuple[float, ...]
    capacities_bps: dict[str, float]
    routes: tuple[tuple[tuple[tuple[int, float], ...], float, float], ...]
    """For each route: its links' numbers with the delays to them in seconds, the RTT in seconds, number of flows."""

    @cached_property
    def fair_bps(self) -> list[float]:
        """Max-min fair rate of one flow of each route, in bit/s."""
        with translated():
            return _flowstamp.max_min(list(self.capacities_bps.values()), self.routes)

    def trajectory(self, seconds: ArrayLike, *, start: float | Sequence[float] = 0.5) -> NetworkTrajectory:
        """Solves the model from empty queues. Raises `TheoryError` for arguments out of range.

        Args:
            seconds: increasing times from 0 on.
            start: initial rates as multiples of the fair ones, above 0: one number, or one per route. RCP's routers
                start with the highest rate on their link.
        """
        _finite(start=start)
        starts = np.full(len(self.routes), start) if np.ndim(start) == 0 else np.asarray(start, np.float64)
        if starts.shape != (len(self.routes),) or (starts <= 0.0).any():
            raise TheoryError(
                f"start is {start}; it must be a number above 0, or one for each of {len(self.routes)} routes"
            )
        capacities = np.array(list(self.capacities_bps.values()))
        with translated():
            found = _flowstamp.network_trajectory(
                self.law,
                self.gains,
                capacities.tolist(),
                self.routes,
                (starts * self.fair_bps).tolist(),
                _buffer(seconds),
            )
        links = 0 if self.law == "vcp" else len(capacities)
        adjusted = len(capacities) if self.law == "vcp" and len(self.gains) > VCP_FIXED else 0
        rows = _array(found).reshape(-1, links + len(self.routes) + adjusted)
        queues = {name: rows[:, n] / capacities[n] for n, name in enumerate(self.capacities_bps) if links}
        first = links + len(self.routes)
        targets = {name: rows[:, first + n] for n, name in enumerate(self.capacities_bps) if adjusted}
        return NetworkTrajectory(queues, [rows[:, links + n] for n in range(len(self.routes))], targets)

    @cached_property
    def _path(self) -> tuple[Floats, NetworkTrajectory]:
        """Times and solution over `SEEN_RTTS`, from half the fair rates."""
        longest = max(rtt for _, rtt, _ in self.routes)
        seconds = np.linspace(0.0, SEEN_RTTS * longest, round(SEEN_RTTS * 32) + 1)
        return seconds, self.trajectory(seconds)

    @cached_property
    def _distance(self) -> Floats:
        """Largest distance from the steady state over time; at most 1 counts as settled.

        A rate's distance is its deviation from the steady state in units of 2%. A queue's distance is its queueing
        delay in units of 1% of the link's mean RTT.
        """
        seconds, path = self._path
        late = slice(round(LATE * len(seconds)), None)
        steady = [float(rates[late].mean()) for rates in path.rates_bps]
        away = [np.abs(rates / at - 1.0) / 0.02 for rates, at in zip(path.rates_bps, steady, strict=True)]
        for number, queue in enumerate(path.queues_s.values()):
            over = [(rtt, flows) for way, rtt, flows in self.routes if number in [link for link, _ in way]]
            if over:
                mean = sum(rtt * flows for rtt, flows in over) / sum(flows for _, flows in over)
                away.append(queue / (0.01 * mean))
        most: Floats = np.max(np.stack(away), axis=0)
        return most

    @cached_property
    def stable(self) -> bool:
        """Whether the model settles from half the fair rates: settled late, or at least 2% closer than early."""
        quarter = len(self._distance) // 4
        late = float(self._distance[-quarter:].max())
        # Samples miss the peaks of a limit cycle by up to 1/64 RTT, so these differ between quarters by less than 1%.
        return late <= 1.0 or late < 0.98 * float(self._distance[quarter : 2 * quarter].max())

    @cached_property
    def settles_after_s(self) -> float | None:
        """Time in seconds until rates stay within 2% and queueing delays within 1% of an RTT; None if too late."""
        away = np.flatnonzero(self._distance > 1.0)
        last = int(away[-1]) + 1 if len(away) else 0
        # Settling in the late part does not count: the remaining time is too short to confirm it.
        return float(self._path[0][last]) if self.stable and last < round(LATE * len(self._distance)) else None

    def as_dict(self) -> dict[str, Any]:
        """Returns the results as `flowstamp stability --json` prints them."""
        names = list(self.capacities_bps)
        return {
            "law": self.law,
            "gains": list(self.gains),
            "links": names,
            "routes": [
                {"links": [names[link] for link, _ in way], "rtt_s": rtt, "flows": flows, "fair_bps": fair}
                for (way, rtt, flows), fair in zip(self.routes, self.fair_bps, strict=True)
            ],
            "stable": self.stable,
            "settles_after_s": self.settles_after_s,
        }

    def lines(self) -> list[str]:
        """Returns the results as lines of text."""
        from flowstamp import text

        settled = self.settles_after_s
        if not self.stable:
            verdict = "unstable: a disturbance does not die"
        elif settled is None:
            verdict = f"stable; takes more than {LATE * SEEN_RTTS:g} of the longest RTT to settle"
        else:
            verdict = f"stable; settles in {text.seconds(settled)}"
        links, routes = ", ".join(self.capacities_bps), text.counted(len(self.routes), "route")
        return [f"links {links} together, {routes}: {self.law}: {verdict}"]

    def plot(self) -> Figure:
        """Draws the rate of one flow of each route and the queueing delays, from half the fair rates on."""
        from flowstamp import stability_plots

        seconds, path = self._path
        longest = max(rtt for _, rtt, _ in self.routes)
        until = max(20.0 * longest, 1.5 * (self.settles_after_s or 60.0 * longest))
        seen = seconds <= until
        names = list(self.capacities_bps)
        rates = {
            f"{' '.join(names[link] for link, _ in way)}, {1e3 * rtt:.3g} ms": rate[seen] / 1e6
            for (way, rtt, _), rate in zip(self.routes, path.rates_bps, strict=True)
        }
        queues = {name: 1e3 * queue[seen] for name, queue in path.queues_s.items()}
        return stability_plots.network(seconds[seen], rates, queues)


MOST_PACKETS = 100.0
"""Largest value of VCP's alpha, in packets."""


def _number(name: str, value: float | str, most: float = MOST_GAIN) -> float:
    if isinstance(value, str):
        raise TheoryError(f'{name} is "{value}"; it must be a number')
    if name not in LIMITS:
        return _gain(name, value, most)
    low, high = LIMITS[name]
    if not low <= value <= high:
        raise TheoryError(f"{name} is {value}; it must be from {low:g} to {high:g}")
    return float(value)


def _route(number: int, route: Route, links: Sequence[str]) -> tuple[tuple[tuple[int, float], ...], float, float]:
    where = f"routes[{number}]"
    rtt = _quantity(f"{where}.rtt", "time", route.rtt)
    if not route.links or len(set(route.links)) < len(route.links):
        raise TheoryError(f"{where}.links is {list(route.links)}; it must have links, each once")
    for link in route.links:
        if link not in links:
            raise TheoryError(f'{where}.links: "{link}" is not a link; there are {", ".join(links)}')
    if route.flows < 1:
        raise TheoryError(f"{where}.flows is {route.flows}; it must be 1 or more")
    if route.passes is None:
        passes = [rtt / 2 * hop / len(route.links) for hop in range(len(route.links))]
    else:
        passes = [_quantity(f"{where}.passes", "time", time, zero=True) for time in route.passes]
        if len(passes) != len(route.links) or passes != sorted(passes) or not 0.0 <= passes[-1] < rtt:
            raise TheoryError(
                f"{where}.passes is {list(route.passes)}; it must have a time for each link, which grow up to the RTT"
            )
    over = tuple((links.index(link), after) for link, after in zip(route.links, passes, strict=True))
    return over, rtt, float(route.flows)


def network(law: str, links: Mapping[str, str], routes: Sequence[Route], **parameters: float | str) -> Network:
    """Returns the model of a law on several links. Raises `TheoryError` for arguments out of range.

    Args:
        law: "xcp", "rcp" or "vcp".
        links: capacity of each link by name, such as "100Mbps"; at most 8 links (`MOST_LINKS`).
        routes: routes of the flows; at most 16 (`MOST_ROUTES`).
        parameters: replace the law's defaults (`PARAMETERS`).
    """
    if law not in PARAMETERS:
        raise TheoryError(f'law "{law}" has no stability model; it must be one of {", ".join(PARAMETERS)}')
    own = PARAMETERS[law]
    for name in parameters:
        if name not in own:
            raise TheoryError(f"{law} has no parameter {name}; it has {', '.join(own)}")
    used = {**own, **parameters}
    capacities = {name: _quantity(f"links.{name}", "rate", rate) for name, rate in links.items()}
    if law == "vcp":
        packet = 8.0 * _quantity("packet", "size", str(used["packet"]))
        kappa, alpha, target = (_number(name, used[name], MOST_PACKETS) for name in ("kappa", "alpha", "target"))
        gains: tuple[float, ...] = (kappa, alpha * packet, target, _quantity("t_rho", "time", str(used["t_rho"])))
        step, every = _number("step", used["step"]), _quantity("every", "time", str(used["every"]))
        gains += (step, every) if step else ()
    else:
        gains = tuple(_number(name, value) for name, value in used.items())
    made = Network(law, gains, capacities, tuple(_route(n, route, list(capacities)) for n, route in enumerate(routes)))
    _ = made.fair_bps  # raises TheoryError for an invalid network
    return made


def of_scenario(scenario: Scenario) -> Network | None:
    """Returns the model of a scenario whose flows pass several links of XCP or RCP, or None if it has no such model.

    It has none if no flow passes two such links, if routers differ in law or gains, if flows come and go, or with more
    than 8 links or 16 routes. The model omits flows that obey no router, and links without one.
    """
    loops, ways, _ = scenario._closed()
    passed = {name for way, _, _ in ways for name, _ in way}
    over = [loop for loop in loops if loop[0] in passed]
    laws = {(law, alpha, beta, gamma) for _, law, alpha, beta, gamma, _, _ in over}
    if len(laws) != 1 or len(over) < len(passed):
        return None
    [(law, alpha, beta, gamma)] = laws
    if law not in ("xcp", "rcp"):
        return None
    numbers = {name: number for number, (name, *_) in enumerate(over)}
    routes = [(tuple((numbers[name], after) for name, after in way), rtt, float(flows)) for way, rtt, flows in ways]
    if max(len(way) for way, _, _ in routes) < 2 or len(over) > MOST_LINKS or len(routes) > MOST_ROUTES:
        return None
    gains = (alpha, beta) if gamma is None else (alpha, beta, gamma)
    return Network(law, gains, {name: bps for name, *_, bps in over}, tuple(routes))
