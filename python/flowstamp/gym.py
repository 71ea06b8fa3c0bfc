# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A run as an environment of gymnasium: what may change in mid-run is the action.

    from flowstamp.gym import Network

    env = Network(scenario, {"dumbbell.router.alpha": (0.05, 1.0)}, step="100ms")

A sender's window or rate is an action where its law is `told`: `{"flows.NAME.law.window": (1.0, 200.0)}`. It is
made of `Simulation`, and a run is as long as its scenario: then the episode is truncated. `flowstamp.zoo` has the same
for several agents.
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
    """A scenario whose routers, links or senders are governed from outside.

    Args:
        scenario: what runs; its duration is the longest episode.
        actions: the keys that are set at each step, with their bounds; what can change in mid-run (`Simulation.set`).
        step: simulated time between actions.
        link: whose use and queue are observed; default the first.
        reward: what a step is worth, from what is observed by the names in `observed`.
        memory: what a run may need, as in `Scenario.run`.

    An action has a number between -1 and 1 for each key. An observation has the numbers that `observed` names, from 0
    to 10, and the last action. The names are those of `OBSERVED`, and those of `SENDER` for each sender that an action
    governs, such as "agent.0.rtt". `step` returns the senders' numbers in units, too, in `info["senders"]`.
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
        """Begins a run, whose seed is drawn from the environment's; nothing has been observed yet."""
        super().reset(seed=seed, options=options)
        self._episode = self.governed.begin(int(self.np_random.integers(2**31)))
        return np.zeros(self.observation_space.shape, np.float32), {"time_s": 0.0}

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Sets what the action says and runs on by one step."""
        episode = self._episode
        if episode is None:
            raise gymnasium.error.ResetNeeded("reset begins a run; call it before step")
        seen, ended = episode.step(action)
        observation = np.array([*(seen[name] for name in self.observed), *np.clip(action, -1.0, 1.0)], np.float32)
        values = {of.key: of.text(float(value)) for of, value in zip(self.governed.actions, action, strict=True)}
        info = {"time_s": episode.simulation.now, "values": values, "senders": dict(episode.senders)}
        return observation, float(self.reward(seen)), False, ended, info


def spaces(actions: int, observed: int) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Box]:
    """The spaces of actions and of observations: so many numbers observed, then the last action."""
    low = np.array([0.0] * observed + [-1.0] * actions, np.float32)
    high = np.array([MOST] * observed + [1.0] * actions, np.float32)
    return gymnasium.spaces.Box(-1.0, 1.0, (actions,), np.float32), gymnasium.spaces.Box(low, high, dtype=np.float32)


# By name too: gymnasium.make("flowstamp/Network-v0", scenario=..., actions=...).
gymnasium.register("flowstamp/Network-v0", "flowstamp.gym:Network")
