# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Gymnasium environment: each run is an episode, and actions set scenario keys during the run.

    from flowstamp.gym import Network

    env = Network(scenario, {"dumbbell.router.alpha": (0.05, 1.0)}, step="100ms")

An action can set a sender's window or rate if its law is `told`: `{"flows.NAME.law.window": (1.0, 200.0)}`. An episode
is truncated at the scenario's duration. `flowstamp.zoo` is the version for several agents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from flowstamp.errors import MissingPackageError
from flowstamp.governed import MOST, OBSERVED, SENDER, Action, Bounds, Episode, Governed, Reward, power
from flowstamp.scenario import Scenario

try:
    import gymnasium
    import numpy as np
    from numpy.typing import NDArray
except ImportError:
    raise MissingPackageError("flowstamp.gym needs the package gymnasium; install flowstamp[gym]") from None

__all__ = ["MOST", "OBSERVED", "SENDER", "Action", "Bounds", "Network", "Reward", "power"]


class Network(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):  # type: ignore[misc] # it may be missing
    """Environment in which actions control routers, links or senders of a scenario.

    Args:
        scenario: the scenario; its duration is the length of an episode.
        actions: keys to set at each step with their bounds; `Simulation.set` lists the possible keys.
        step: simulated time between actions, such as "100ms".
        link: the observed router link; default the first.
        reward: function from the observations by name (see `observed`) to the reward.
        memory: memory limit of a run, as in `Scenario.run`.

    The action is a float32 vector with one number from -1 to 1 per key. The observation is a float32 vector: the
    numbers that `observed` names, each from 0 to 10, then the last action. The names are those of `OBSERVED`, and those
    of `SENDER` for each controlled sender, such as "agent.0.rtt". `info["senders"]` has the senders' numbers in
    physical units. Raises `ScenarioError` if a key, a bound, the step or the link is invalid.
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
        self.governed = Governed(scenario, actions, step=step, link=link, memory=memory)
        self.reward = reward
        self.observed = (*OBSERVED, *self.governed.names(list(self.governed.path_rtt_s)))
        self.action_space, self.observation_space = spaces(len(actions), len(self.observed))
        self._episode: Episode | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Starts an episode with a seed from the environment's random generator. The first observation is zero."""
        super().reset(seed=seed, options=options)
        self._episode = self.governed.begin(int(self.np_random.integers(2**31)))
        return np.zeros(self.observation_space.shape, np.float32), {"time_s": 0.0}

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Applies the action and runs one step.

        Returns observation, reward, False (never terminated), whether the episode is truncated, and info. The keys of
        info are `time_s`, `values` (the value set for each key) and `senders`. Raises `ResetNeeded` before `reset`.
        """
        episode = self._episode
        if episode is None:
            raise gymnasium.error.ResetNeeded("reset begins a run; call it before step")
        seen, ended = episode.step(action)
        observation = np.array([*(seen[name] for name in self.observed), *np.clip(action, -1.0, 1.0)], np.float32)
        values = {of.key: of.text(float(value)) for of, value in zip(self.governed.actions, action, strict=True)}
        info = {"time_s": episode.simulation.now, "values": values, "senders": dict(episode.senders)}
        return observation, float(self.reward(seen)), False, ended, info


def spaces(actions: int, observed: int) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Box]:
    """Returns the action and observation spaces. An observation has `observed` numbers, then the last action."""
    low = np.array([0.0] * observed + [-1.0] * actions, np.float32)
    high = np.array([MOST] * observed + [1.0] * actions, np.float32)
    return gymnasium.spaces.Box(-1.0, 1.0, (actions,), np.float32), gymnasium.spaces.Box(low, high, dtype=np.float32)


# Allows gymnasium.make("flowstamp/Network-v0", scenario=..., actions=...).
gymnasium.register("flowstamp/Network-v0", "flowstamp.gym:Network")
