# SPDX-License-Identifier: Apache-2.0 OR MIT
"""XCP, RCP and VCP on several links, by the models of their papers.

`of_scenario` has them from a scenario. For example::

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

The equations are those of Katabi 2002 (15 to 17, section 3.5.2 for what is shuffled), Dukkipati 2007 (5.1 to 5.4) and
Xia 2008 (9 to 15). Data pass a route's links at given times, and what a full link lets pass goes on as it came in. XCP
leaves of a link what its shuffling holds back (Low, Andrew and Wydrowski 2005); RCP's and VCP's rates are max-min fair.
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
"""How long a model is looked at, in the longest RTT."""
LATE = 0.75
"""From this part of it on it is late: what rates are then is their rest, and what settles must have done so before."""
MOST_LINKS, MOST_ROUTES = 8, 16
"""The model's most."""

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
"""What laws have by themselves. VCP's alpha is packets, added in `t_rho`; the target is a share of the capacity, to
which routers bring the use by adjusting what they take for it, by `step` after each `every`, where `step` is not 0
(equation 14)."""


VCP_FIXED = 4
"""How many gains VCP has whose routers leave their target."""
LIMITS = {"gamma": (0.0, 1.0), "kappa": (0.01, 0.99), "target": (0.01, 1.0), "step": (0.0, 0.1)}


@dataclass(frozen=True)
class Route:
    """Flows that take one way."""

    links: Sequence[str]
    """In the order in which data pass them."""
    rtt: str
    """Without queues."""
    flows: int = 1
    passes: Sequence[str] | None = None
    """How long after they were sent data pass each link; by default at once, and then evenly in half an RTT."""


@dataclass(frozen=True)
class NetworkTrajectory:
    """What a model of several links does."""

    queues_s: dict[str, Floats]
    """By link, what it takes to send the queue, seconds. VCP's model has none."""
    rates_bps: list[Floats]
    """Of a flow of each route, bit/s."""
    targets: dict[str, Floats]
    """By link, the share of the capacity that routers of VCP take for their target, where these adjust it."""


@dataclass(frozen=True)
class Network:
    """A law on links. `network` makes it."""

    law: str
    gains: tuple[float, ...]
    capacities_bps: dict[str, float]
    routes: tuple[tuple[tuple[tuple[int, float], ...], float, float], ...]
    """Of each, numbers of its links and when data pass them in seconds, the RTT, and how many flows."""

    @cached_property
    def fair_bps(self) -> list[float]:
        """The max-min fair rate of a flow of each route, bit/s."""
        with translated():
            return _flowstamp.max_min(list(self.capacities_bps.values()), self.routes)

    def trajectory(self, seconds: ArrayLike, *, start: float | Sequence[float] = 0.5) -> NetworkTrajectory:
        """From rates of `start` times the fair ones, one number or one for each route, and empty queues.

        Args:
            seconds: Times from 0 on that only grow.
            start: Above 0. Routers of RCP start with the highest rate over their link.
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
        """From half the fair rates for as long as is waited."""
        longest = max(rtt for _, rtt, _ in self.routes)
        seconds = np.linspace(0.0, SEEN_RTTS * longest, round(SEEN_RTTS * 32) + 1)
        return seconds, self.trajectory(seconds)

    @cached_property
    def _distance(self) -> Floats:
        """The most that rates are off their last ones, in 2%, and that queues take to drain, in 1% of a mean RTT."""
        seconds, path = self._path
        late = slice(round(LATE * len(seconds)), None)
        rest = [float(rates[late].mean()) for rates in path.rates_bps]
        away = [np.abs(rates / at - 1.0) / 0.02 for rates, at in zip(path.rates_bps, rest, strict=True)]
        for number, queue in enumerate(path.queues_s.values()):
            over = [(rtt, flows) for way, rtt, flows in self.routes if number in [link for link, _ in way]]
            if over:
                mean = sum(rtt * flows for rtt, flows in over) / sum(flows for _, flows in over)
                away.append(queue / (0.01 * mean))
        most: Floats = np.max(np.stack(away), axis=0)
        return most

    @cached_property
    def stable(self) -> bool:
        """What is away from rest dies, from half the fair rates on: late there is 2% less of it than early, or more."""
        quarter = len(self._distance) // 4
        late = float(self._distance[-quarter:].max())
        # Peaks of a limit cycle are met within a 64th of an RTT, and so differ between quarters by a few tenths of 1%.
        return late <= 1.0 or late < 0.98 * float(self._distance[quarter : 2 * quarter].max())

    @cached_property
    def settles_after_s(self) -> float | None:
        """When that is below 1 for good: rates within 2%, queues within 1% of an RTT. None if not in time."""
        away = np.flatnonzero(self._distance > 1.0)
        last = int(away[-1]) + 1 if len(away) else 0
        # What has come so late may yet leave again.
        return float(self._path[0][last]) if self.stable and last < round(LATE * len(self._distance)) else None

    def as_dict(self) -> dict[str, Any]:
        """As `flowstamp stability --json` prints it."""
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
        """What a person reads."""
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
        """Rates of a flow of each route, and what queues take to drain, from half the fair rates on."""
        from flowstamp import plot

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
        return plot.network(seconds[seen], rates, queues)


MOST_PACKETS = 100.0
"""VCP's alpha."""


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
    """A law on links with these capacities.

    Args:
        law: `xcp`, `rcp` or `vcp`.
        links: By name the capacity, such as `"100Mbps"`; at most 8 (`MOST_LINKS`).
        routes: Who goes where; at most 16 (`MOST_ROUTES`).
        parameters: In place of the law's own (`PARAMETERS`).
    """
    if law not in PARAMETERS:
        raise TheoryError(f'law "{law}" has no model here; it must be one of {", ".join(PARAMETERS)}')
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
    _ = made.fair_bps  # refuses what is no network
    return made


def of_scenario(scenario: Scenario) -> Network | None:
    """Links of XCP or RCP that flows of a scenario pass one after the other.

    None where no flow passes two, where routers that flows obey differ in law or gains, where flows come and go, or
    where there are more than 8 links or 16 routes. Flows that obey no router, and links without one, are left out.
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
