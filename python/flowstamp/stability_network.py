# SPDX-License-Identifier: Apache-2.0 OR MIT
"""XCP, RCP and VCP on several links, by the models of their papers.

For example::

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

import numpy as np
from numpy.typing import ArrayLike

from flowstamp import _flowstamp
from flowstamp.errors import TheoryError, translated
from flowstamp.stability import Floats, _array, _buffer, _finite, _gain, _quantity

PARAMETERS: dict[str, dict[str, float | str]] = {
    "xcp": {**dict(zip(("alpha", "beta"), _flowstamp.own_gains()["xcp"], strict=True)), "gamma": 0.1},
    "rcp": dict(zip(("alpha", "beta"), _flowstamp.own_gains()["rcp"], strict=True)),
    "vcp": {"kappa": 0.25, "alpha": 1.0, "target": 0.98, "t_rho": "200ms", "packet": "1000B"},
}
"""What laws have by themselves. VCP's alpha is packets, added in `t_rho`; the target is a share of the capacity."""


LIMITS = {"gamma": (0.0, 1.0), "kappa": (0.01, 0.99), "target": (0.01, 1.0)}


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
        rows = _array(found).reshape(-1, links + len(self.routes))
        queues = {name: rows[:, n] / capacities[n] for n, name in enumerate(self.capacities_bps) if links}
        return NetworkTrajectory(queues, [rows[:, links + n] for n in range(len(self.routes))])


def _number(name: str, value: float | str) -> float:
    if isinstance(value, str):
        raise TheoryError(f'{name} is "{value}"; it must be a number')
    if name not in LIMITS:
        return _gain(name, value)
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
        with translated():
            passes = [_flowstamp.quantity("time", time) for time in route.passes]
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
        links: By name the capacity, such as `"100Mbps"`; at most 8.
        routes: Who goes where; at most 16.
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
        kappa, alpha, target = (_number(name, used[name]) for name in ("kappa", "alpha", "target"))
        gains: tuple[float, ...] = (kappa, alpha * packet, target, _quantity("t_rho", "time", str(used["t_rho"])))
    else:
        gains = tuple(_number(name, value) for name, value in used.items())
    made = Network(law, gains, capacities, tuple(_route(n, route, list(capacities)) for n, route in enumerate(routes)))
    _ = made.fair_bps  # refuses what is no network
    return made
