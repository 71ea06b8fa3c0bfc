# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A run as an environment of gymnasium: what may change in mid-run is the action.

    from flowstamp.gym import Network

    env = Network(scenario, {"dumbbell.router.alpha": (0.05, 1.0)}, step="100ms")

A sender's window or rate is an action where its law is `told`: `{"flows.NAME.law.window": (1.0, 200.0)}`. It is
made of `Simulation`, and a run is as long as its scenario: then the episode is truncated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from flowstamp import _flowstamp
from flowstamp.errors import MissingPackageError, ScenarioError, translated
from flowstamp.scenario import Scenario
from flowstamp.simulation import Simulation

try:
    import gymnasium
    import numpy as np
    from numpy.typing import NDArray
except ImportError:
    raise MissingPackageError("flowstamp.gym needs the package gymnasium; install flowstamp[gym]") from None

Bounds: TypeAlias = tuple[float, float] | tuple[str, str]
"""The least and the largest value of an action: numbers, or quantities of one kind such as ("1Mbps", "10Mbps")."""

OBSERVED = ("utilization", "queue", "drops", "goodput")
"""Of the step that has just ended: the share of the link's capacity that was used; its mean queue as a share of its
buffer; drops, as a share of the packets that it could carry; payload that arrived, as a share of the capacity that the
link begins with."""
MOST = 10.0
"""More than this is not told apart: learners want bounds, and drops have none."""
LOG_FROM = 20.0
"""Of a range whose ends differ by more than this, actions are spread by factors, not by differences."""
UNITS = {"rate": "bps", "time": "s", "size": "B"}

Reward: TypeAlias = Callable[[Mapping[str, float]], float]


def power(seen: Mapping[str, float]) -> float:
    """The default reward: what is used of the link, less what waits and what is lost."""
    return seen["utilization"] - seen["queue"] - seen["drops"]


class Action:
    """One key, and what a number between -1 and 1 stands for."""

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
        """What an action sets."""
        share = (min(1.0, max(-1.0, action)) + 1) / 2
        if self.by_factors:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + (self.high - self.low) * share

    def text(self, action: float) -> object:
        """The same as a scenario has it."""
        value = self.value(action)
        return f"{value:.9g}{self.unit}" if self.unit else value


class Network(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):  # type: ignore[misc] # it may be missing
    """A scenario whose routers, links or senders are governed from outside.

    Args:
        scenario: what runs; its duration is the longest episode.
        actions: the keys that are set at each step, with their bounds; what can change in mid-run (`Simulation.set`).
        step: simulated time between actions.
        link: whose use and queue are observed; default the first.
        reward: what a step is worth, from what is observed by the names of `OBSERVED`.
        memory: what a run may need, as in `Scenario.run`.

    An action has a number between -1 and 1 for each key, an observation the numbers of `OBSERVED` and the last action.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(
        self,
        scenario: Scenario,
        actions: Mapping[str, Bounds],
        *,
        step: str = "100ms",
        link: str | None = None,
        reward: Reward = power,
        memory: str | None = None,
    ) -> None:
        if not actions:
            raise ScenarioError("actions: are none; give a key and its bounds, such as dumbbell.router.alpha")
        self.actions = [Action(key, bounds) for key, bounds in actions.items()]
        with translated():
            self.step_s = _flowstamp.quantity("time", step)
            resolved = scenario.resolved(memory=memory)
            self.duration_s = _flowstamp.quantity("time", resolved["duration"])
        if not 0 < self.step_s <= self.duration_s:
            raise ScenarioError(f"step: {step} must be above zero and at most the duration, {resolved['duration']}")
        self.scenario = scenario.set("probes.every", step).set("probes.links", True).set("probes.groups", True)
        self.reward, self.memory = reward, memory
        self.last = len(OBSERVED)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (len(self.actions),), np.float32)
        low = np.array([0.0] * self.last + [-1.0] * len(self.actions), np.float32)
        high = np.array([MOST] * self.last + [1.0] * len(self.actions), np.float32)
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        # A first step tells what the link has; what cannot be set is said now, and not in the first episode.
        first = self.scenario.set("warmup", "0s").start(memory=memory)
        first.run_until(_time(self.step_s))
        links = first.results().links
        self._set(first, [0.0] * len(self.actions))
        if not links:
            raise ScenarioError("scenario: has no router link, and nothing can be observed")
        self.link = next(iter(links)) if link is None else link
        if self.link not in links:
            raise ScenarioError(f'link: "{link}" is none; there are {", ".join(links)}')
        self._rate, self._buffer = links[self.link]["rate_bps"], max(links[self.link]["buffer_bytes"], 1.0)
        self._packets = self._rate * self.step_s / (8 * _flowstamp.quantity("size", resolved["packet"]))
        self._simulation: Simulation | None = None
        self._steps = 0

    def _set(self, simulation: Simulation, values: Sequence[float] | NDArray[np.float32]) -> None:
        for action, value in zip(self.actions, values, strict=True):
            simulation.set(action.key, action.text(float(value)))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins a run, whose seed is drawn from the environment's; nothing has been observed yet."""
        super().reset(seed=seed, options=options)
        self._simulation = self.scenario.start(seed=int(self.np_random.integers(2**31)), memory=self.memory)
        self._steps = 0
        return np.zeros(self.last + len(self.actions), np.float32), {"time_s": 0.0}

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Sets what the action says and runs on by one step."""
        simulation = self._simulation
        if simulation is None:
            raise gymnasium.error.ResetNeeded("reset begins a run; call it before step")
        self._set(simulation, action)
        self._steps += 1
        until = min(self._steps * self.step_s, self.duration_s)
        simulation.run_until(_time(until))
        seen = self._observed(simulation)
        observation = np.array([*seen.values(), *np.clip(action, -1.0, 1.0)], np.float32)
        ended = until + self.step_s > self.duration_s * (1 + 1e-12)  # there is no whole step left
        values = {of.key: of.text(float(value)) for of, value in zip(self.actions, action, strict=True)}
        return observation, float(self.reward(seen)), False, ended, {"time_s": simulation.now, "values": values}

    def _observed(self, simulation: Simulation) -> dict[str, float]:
        since = _time(max(0.0, simulation.now - self.step_s / 2))
        table = simulation.series_table(since)
        names = zip(*(table.column(name) for name in ("kind", "name", "metric")), strict=True)
        sampled = dict(zip(names, table.column("value"), strict=True))
        use, queue, drops = (sampled["link", self.link, of] for of in ("utilization", "mean_queue_bytes", "drops"))
        goodput = sum(value for (kind, _, of), value in sampled.items() if (kind, of) == ("group", "goodput_bps"))
        values = (use, queue / self._buffer, drops / self._packets, goodput / self._rate)
        return {name: min(MOST, value) for name, value in zip(OBSERVED, values, strict=True)}


def _time(seconds: float) -> str:
    """With all digits of a time in picoseconds."""
    return f"{seconds:.12f}s"


def _quantities(key: str, low: str, high: str) -> tuple[float, float, str]:
    """Two quantities of one kind, and the unit that they are in."""
    for kind, unit in UNITS.items():
        try:
            return _flowstamp.quantity(kind, low), _flowstamp.quantity(kind, high), unit
        except _flowstamp.TheoryError:
            continue
    raise ScenarioError(f'actions: {key}: "{low}" and "{high}" must be numbers, or quantities such as "10Mbps"')


# By name too: gymnasium.make("flowstamp/Network-v0", scenario=..., actions=...).
gymnasium.register("flowstamp/Network-v0", "flowstamp.gym:Network")
