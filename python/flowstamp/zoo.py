# SPDX-License-Identifier: Apache-2.0 OR MIT
"""PettingZoo parallel environment: several agents act at the same instants in one network.

from flowstamp.zoo import ParallelNetwork

env = ParallelNetwork(scenario, {"a": {"flows.a.law.window": (1.0, 200.0)}, "b": {"flows.b.law.window": (1.0, 200.0)}})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from flowstamp.errors import MissingPackageError, ScenarioError
from flowstamp.governed import OBSERVED, Bounds, Episode, Governed, Reward, own_power
from flowstamp.scenario import Scenario

try:
    import gymnasium
    import numpy as np
    from numpy.typing import NDArray
    from pettingzoo import ParallelEnv
except ImportError:
    raise MissingPackageError("flowstamp.zoo needs the package pettingzoo; install flowstamp[gym]") from None

from flowstamp.gym import spaces

__all__ = ["ParallelNetwork", "own_power"]


class Agent:
    """The keys that one agent sets, its observations and its spaces."""

    def __init__(self, name: str, keys: Mapping[str, Bounds], governed: Governed, first: int) -> None:
        self.actions = governed.actions[first : first + len(keys)]
        groups = {governed.groups[key] for key in keys}
        self.senders = [sender for sender, group in governed.senders.items() if group in groups]
        of_link = OBSERVED if None in groups else ()
        self.observed = (*of_link, *governed.names(self.senders))
        if not self.observed:
            raise ScenarioError(
                f"agents: {name}: the flows of {', '.join(keys)} come and go; an agent needs flows that last"
            )
        self.rewarded = (*OBSERVED, *governed.names(self.senders))
        self.action_space, self.observation_space = spaces(len(keys), len(self.observed))


class ParallelNetwork(ParallelEnv[str, NDArray[np.float32], NDArray[np.float32]]):  # type: ignore[misc] # it may be missing
    """Environment in which several agents control a scenario, each through its own keys.

    Args:
        scenario: the scenario; its duration is the length of an episode.
        agents: for each agent's name, its keys with their bounds, as for `gym.Network`. Each key has one agent.
        step: simulated time between actions, such as "100ms". All agents act at the same instants.
        link: the observed router link, whose mean rate scales the delivery rates; default the first.
        reward: function from the numbers of `OBSERVED` and of the agent's own senders to the agent's reward.
        memory: memory limit of a run, as in `Scenario.run`.

    An agent's action is a float32 vector with one number from -1 to 1 per key. Its observation is a float32 vector. If
    the agent sets a key that does not belong to a sender, the numbers of `OBSERVED` come first. The numbers of `SENDER`
    follow for each sender that it controls, then its last action. Raises `ScenarioError` if a key, a bound, the step or
    the link is invalid.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "flowstamp_network_v0", "render_modes": []}

    def __init__(
        self,
        scenario: Scenario,
        agents: Mapping[str, Mapping[str, Bounds]],
        *,
        step: str = "100ms",
        link: str | None = None,
        reward: Reward = own_power,
        memory: str | None = None,
    ) -> None:
        if not agents or not all(agents.values()):
            raise ScenarioError("agents: each needs a name and a key with its bounds, such as flows.a.law.window")
        keys: dict[str, Bounds] = {}
        for name, own in agents.items():
            if twice := keys.keys() & own.keys():
                raise ScenarioError(
                    f"agents: {name}: {', '.join(sorted(twice))} is another agent's; each key has one agent"
                )
            keys.update(own)
        self.governed = Governed(scenario, keys, step=step, link=link, memory=memory)
        self.reward = reward
        first, self._agents = 0, {}
        for name, own in agents.items():
            self._agents[name] = Agent(name, own, self.governed, first)
            first += len(own)
        self.possible_agents = list(agents)
        self.agents: list[str] = []
        self.action_spaces = {name: agent.action_space for name, agent in self._agents.items()}
        self.observation_spaces = {name: agent.observation_space for name, agent in self._agents.items()}
        self.render_mode = None
        self._random, _ = gymnasium.utils.seeding.np_random(None)
        self._episode: Episode | None = None

    def observed(self, agent: str) -> tuple[str, ...]:
        """Returns the names of an agent's observations, without the last action that follows them."""
        return self._agents[agent].observed

    def observation_space(self, agent: str) -> gymnasium.spaces.Box:
        """Returns an agent's observation space."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.spaces.Box:
        """Returns an agent's action space: one number from -1 to 1 per key."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[np.float32]], dict[str, dict[str, Any]]]:
        """Starts an episode with a seed from the environment's random generator. The first observations are zero."""
        del options  # unused
        if seed is not None:
            self._random, _ = gymnasium.utils.seeding.np_random(seed)
        self._episode = self.governed.begin(int(self._random.integers(2**31)))
        self.agents = list(self.possible_agents)
        nothing = {name: np.zeros(self.observation_space(name).shape, np.float32) for name in self.agents}
        return nothing, {name: {"time_s": 0.0} for name in self.agents}

    def step(
        self, actions: Mapping[str, NDArray[np.float32]]
    ) -> tuple[
        dict[str, NDArray[np.float32]], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
    ]:
        """Applies all actions and runs one step.

        Returns observations, rewards, terminations (all False), truncations and infos by agent. The keys of an info are
        those of `gym.Network.step`. Raises `ResetNeeded` before `reset`, and `ScenarioError` if an agent has no action.
        """
        episode = self._episode
        if episode is None:
            raise gymnasium.error.ResetNeeded("reset begins a run; call it before step")
        if not self.agents:
            return {}, {}, {}, {}, {}
        if missing := [name for name in self.agents if name not in actions]:
            raise ScenarioError(f"actions: none of {', '.join(missing)}; all agents act at each step")
        seen, ended = episode.step(np.concatenate([actions[name] for name in self.agents]))
        names, agents = self.agents, self._agents
        clipped = {name: np.clip(actions[name], -1.0, 1.0) for name in names}
        observations = {
            name: np.array([*(seen[of] for of in agents[name].observed), *clipped[name]], np.float32) for name in names
        }
        rewards = {name: float(self.reward({of: seen[of] for of in agents[name].rewarded})) for name in names}
        infos = {
            name: {
                "time_s": episode.simulation.now,
                "values": {
                    of.key: of.text(float(value)) for of, value in zip(agents[name].actions, actions[name], strict=True)
                },
                "senders": {sender: episode.senders[sender] for sender in agents[name].senders},
            }
            for name in names
        }
        if ended:
            self.agents = []
        return observations, rewards, dict.fromkeys(names, False), dict.fromkeys(names, ended), infos
