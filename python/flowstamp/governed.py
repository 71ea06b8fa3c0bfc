# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Common part of the reinforcement learning environments: keys as actions, runs in steps, bounded observations.

`flowstamp.gym` and `flowstamp.zoo` add the interfaces of gymnasium and PettingZoo.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from flowstamp import _flowstamp
from flowstamp.errors import ScenarioError, translated
from flowstamp.names import Named
from flowstamp.scenario import Scenario
from flowstamp.simulation import Simulation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Bounds: TypeAlias = tuple[float, float] | tuple[str, str]
"""Smallest and largest value of an action: numbers, or quantities of one kind such as ("1Mbps", "10Mbps")."""

OBSERVED = ("utilization", "queue", "drops", "goodput")
"""Observations of the link in the last step, 0 to `MOST`.

- utilization: used share of the capacity
- queue: mean queue divided by the buffer
- drops: dropped packets divided by the packets that the link carries in one step at its mean rate
- goodput: payload delivered to all groups divided by the link's mean rate
"""
SENDER = ("rtt", "min_rtt", "loss", "delivery_rate", "marks")
"""Observations of a sender in the last step, 0 to `MOST`.

- rtt: mean round-trip time divided by the path's round-trip propagation delay
- min_rtt: smallest round-trip time since the flow began, divided by the same
- loss: lost packets divided by packets sent
- delivery_rate: acknowledged payload divided by the link's mean rate
- marks: marked packets divided by acknowledged packets
"""
MOST = 10.0
"""Upper bound of every observation; larger values are clipped."""
LOG_FROM = 20.0
"""Ratio of an action's largest to its smallest value above which the action scale is logarithmic."""
UNITS = {"rate": "bps", "time": "s", "size": "B"}
WRAP = 2**64
"""Modulus of the counter for the sum of round-trip times in picoseconds."""

Reward: TypeAlias = Callable[[Mapping[str, float]], float]
"""Computes the reward of a step from its observations by name: those of `OBSERVED`, and "GROUP.NUMBER.rtt" etc."""


def power(seen: Mapping[str, float]) -> float:
    """The default reward: utilization - queue - drops of the link."""
    return seen["utilization"] - seen["queue"] - seen["drops"]


def own_power(seen: Mapping[str, float]) -> float:
    """An agent's default reward: sum of its senders' delivery rates - mean of (loss + rtt - min_rtt) over them.

    An agent without senders gets `power`.
    """
    names = [name.removesuffix(".rtt") for name in seen if name.endswith(".rtt")]
    if not names:
        return power(seen)
    lost = sum(seen[f"{name}.loss"] + seen[f"{name}.rtt"] - seen[f"{name}.min_rtt"] for name in names)
    return sum(seen[f"{name}.delivery_rate"] for name in names) - lost / len(names)


class Action:
    """Maps a number between -1 and 1 to the value of one scenario key, linearly or logarithmically (`LOG_FROM`)."""

    def __init__(self, key: str, bounds: Bounds) -> None:
        self.key = key
        self.unit = ""
        low, high = bounds
        if isinstance(low, str) or isinstance(high, str):
            low, high, self.unit = _quantities(key, str(low), str(high))
        if not low < high:
            raise ScenarioError(f"actions: {key}: {bounds} must be the least and the largest value")
        self.low, self.high = float(low), float(high)
        self.by_factors = self.low > 0 and self.high > LOG_FROM * self.low

    def value(self, action: float) -> float:
        """Returns the key's value for an action, which is clipped to -1 to 1."""
        share = (min(1.0, max(-1.0, action)) + 1) / 2
        if self.by_factors:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + (self.high - self.low) * share

    def text(self, action: float) -> object:
        """Returns the value as a scenario writes it, with its unit; sizes are whole bytes."""
        value = self.value(action)
        if self.unit == UNITS["size"]:
            return f"{value:.0f}B"
        return f"{value:.9g}{self.unit}" if self.unit else value

    def group(self, names: Sequence[str]) -> str | None:
        """Returns the flow group whose sender law the key sets, or None. The key has a group's name or its number."""
        first, _, rest = self.key.partition(".")
        name, _, governs = rest.partition(".law.")
        if first != "flows" or not governs:
            return None
        return names[int(name)] if name not in names and name.isdigit() else name


@dataclass(frozen=True)
class Counts:
    """Counters of one sender since its flow began; `Simulation.senders` defines them."""

    sent: int
    lost: int
    delivered: int
    marked: int
    acks: int
    rtt_sum_ps: int


class Governed:
    """A scenario, the keys set at each step, and the scales of the observations."""

    def __init__(
        self, scenario: Scenario, keys: Mapping[str, Bounds], *, step: str, link: str | None, memory: str | None
    ) -> None:
        if not keys:
            raise ScenarioError("actions: there are none; give a key and its bounds, such as dumbbell.router.alpha")
        self.actions = [Action(key, bounds) for key, bounds in keys.items()]
        with translated():
            self.step_s = _flowstamp.quantity("time", step)
            resolved = scenario.resolved(memory=memory)
            self.duration_s = _flowstamp.quantity("time", resolved["duration"])
            packet = _flowstamp.quantity("size", resolved["packet"])
        if not 0 < self.step_s <= self.duration_s:
            raise ScenarioError(f"step: {step} must be above zero and at most the duration, {resolved['duration']}")
        self.scenario = scenario.set("probes.every", step).set("probes.links", True).set("probes.groups", True)
        self.memory = memory
        first = self.scenario.start(memory=memory)
        links = first.links()
        if not links:
            raise ScenarioError("scenario: has no router link, so that there is nothing to observe")
        self.link = next(iter(links)) if link is None else link
        if self.link not in links:
            raise ScenarioError(f'link: "{link}" is not a link; there are {", ".join(links)}')
        self.rate, self.buffer = links[self.link]["mean_rate_bps"], links[self.link]["buffer_bytes"]
        if not self.rate > 0:
            text = (
                f"its rate is 0bps in all of the duration, {resolved['duration']}; observations are shares of its mean"
            )
            raise ScenarioError(f"link: {self.link}: {text}")
        self.packets = self.rate * self.step_s / (8 * packet)
        # Setting both ends of each range reports a bad key or bound now, not in the middle of an episode.
        for end in (-1.0, 1.0):
            self.set(first, [end] * len(self.actions))
        names = [flow["name"] for flow in resolved["flows"]]
        self.groups = {action.key: action.group(names) for action in self.actions}
        senders = first.senders()
        self.senders = {name: of["group"] for name, of in senders.items() if of["group"] in self.groups.values()}
        self.path_rtt_s = {name: senders[name]["path_rtt_s"] for name in self.senders}

    def set(self, simulation: Simulation, values: Sequence[float] | NDArray[np.float32]) -> None:
        """Sets each key to the value of its action."""
        for action, value in zip(self.actions, values, strict=True):
            simulation.set(action.key, action.text(float(value)))

    def names(self, senders: Sequence[str]) -> list[str]:
        """Returns the names of these senders' observations, such as "agent.0.rtt"."""
        return [f"{sender}.{of}" for sender in senders for of in SENDER]

    def begin(self, seed: int) -> Episode:
        """Starts a run with this seed, before its first step."""
        return Episode(self, self.scenario.start(seed=seed, memory=self.memory))


class Episode:
    """One run in steps."""

    def __init__(self, governed: Governed, simulation: Simulation) -> None:
        self.of, self.simulation = governed, simulation
        self.steps = 0
        self.senders: dict[str, dict[str, float]] = {}
        """Last step of each governed sender in physical units: rtt_s, min_rtt_s, loss, delivery_rate_bps, marks."""
        self._counts = {name: Counts(0, 0, 0, 0, 0, 0) for name in governed.path_rtt_s}
        self._rtt_s = dict.fromkeys(governed.path_rtt_s, 0.0)

    def step(self, action: Sequence[float] | NDArray[np.float32]) -> tuple[dict[str, float], bool]:
        """Applies the action and runs one step.

        Returns the observations by name, and whether less than a whole step remains.
        """
        of = self.of
        of.set(self.simulation, action)
        self.steps += 1
        until = min(self.steps * of.step_s, of.duration_s)
        self.simulation.run_until(_time(until))
        ended = until + of.step_s > of.duration_s * (1 + 1e-12)
        return Named({**self._link(), **self._senders()}), ended

    def _link(self) -> dict[str, float]:
        of = self.of
        since = _time(max(0.0, self.simulation.now - of.step_s / 2))
        table = self.simulation.series_table(since)
        names = zip(*(table.column(name) for name in ("kind", "name", "metric")), strict=True)
        sampled = dict(zip(names, table.column("value"), strict=True))
        use, queue, drops = (sampled["link", of.link, name] for name in ("utilization", "mean_queue_bytes", "drops"))
        goodput = sum(value for (kind, _, name), value in sampled.items() if (kind, name) == ("group", "goodput_bps"))
        shares = (share(use, 1.0), share(queue, of.buffer), share(drops, of.packets), share(goodput, of.rate))
        return dict(zip(OBSERVED, shares, strict=True))

    def _senders(self) -> dict[str, float]:
        seen: dict[str, float] = {}
        counted = self.simulation.senders() if self._counts else {}
        for name, before in self._counts.items():
            row = counted[name]
            now = Counts(*(int(row[of]) for of in Counts.__dataclass_fields__))
            # D-SACK can lower the loss count, when a retransmission proves unnecessary. Keep it monotonic: later
            # losses make up the difference.
            now = replace(now, lost=max(now.lost, before.lost))
            self._counts[name] = now
            if acks := now.acks - before.acks:
                self._rtt_s[name] = (now.rtt_sum_ps - before.rtt_sum_ps) % WRAP / acks * 1e-12
            delivered = now.delivered - before.delivered
            units = {
                "rtt_s": self._rtt_s[name],
                "min_rtt_s": float(row["min_rtt_s"]),
                "loss": min(1.0, (now.lost - before.lost) / max(now.sent - before.sent, 1)),
                "delivery_rate_bps": 8 * float(row["payload_bytes"]) * delivered / self.of.step_s,
                "marks": min(1.0, (now.marked - before.marked) / max(delivered, 1)),
            }
            self.senders[name] = units
            scales = (self.of.path_rtt_s[name], self.of.path_rtt_s[name], 1.0, self.of.rate, 1.0)
            shares = (share(value, scale) for value, scale in zip(units.values(), scales, strict=True))
            seen.update(zip(self.of.names([name]), shares, strict=True))
        return seen


def share(value: float, whole: float) -> float:
    """Returns value / whole, at most `MOST`. If `whole` is 0, a positive value gives `MOST` and 0 gives 0."""
    if whole > 0:
        return min(MOST, value / whole)
    return MOST if value > 0 else 0.0


def _time(seconds: float) -> str:
    """Formats a time with picosecond resolution."""
    return f"{seconds:.12f}s"


def _quantities(key: str, low: str, high: str) -> tuple[float, float, str]:
    """Parses two quantities of one kind; returns both in the unit that is named third."""
    for kind, unit in UNITS.items():
        try:
            return _flowstamp.quantity(kind, low), _flowstamp.quantity(kind, high), unit
        except _flowstamp.TheoryError:
            continue
    raise ScenarioError(f'actions: {key}: "{low}" and "{high}" must be numbers, or quantities such as "10Mbps"')
