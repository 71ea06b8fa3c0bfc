# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A run as an environment of PettingZoo's parallel API."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstamp as fs

pytest.importorskip("pettingzoo", reason="needs pettingzoo; install flowstamp[gym]")

from gymnasium.error import ResetNeeded
from pettingzoo.test import parallel_api_test, parallel_seed_test

from flowstamp.gym import OBSERVED, SENDER, Network
from flowstamp.zoo import ParallelNetwork

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture
def scenario() -> fs.Scenario:
    """Two senders on one link that loses and marks, and one who is governed by nobody."""
    dumbbell = fs.dumbbell("20Mbps", rtt="40ms", queue={"kind": "red", "step": 20}).flows("sack", name="other")
    both = dumbbell.flows("told", name="left").flows("told", 2, name="right", transport={"ecn": True})
    return both.set("dumbbell.impairments", {"loss": 0.01}).configure(duration="1s")


AGENTS: dict[str, Any] = {
    "left": {"flows.left.law.window": (1.0, 200.0)},
    "right": {"flows.right.law.window": (1.0, 200.0), "flows.right.law.rate": ("100kbps", "20Mbps")},
    "queue": {"dumbbell.buffer": ("10kB", "200kB")},
}


def test_pettingzoo_finds_nothing_wrong(scenario: fs.Scenario) -> None:
    parallel_api_test(ParallelNetwork(scenario, AGENTS), num_cycles=30)  # what it warns of is an error
    parallel_seed_test(lambda: ParallelNetwork(scenario, AGENTS), num_cycles=5)


def test_each_agent_observes_what_it_governs(scenario: fs.Scenario) -> None:
    env = ParallelNetwork(scenario, AGENTS)
    assert env.observed("left") == tuple(f"left.0.{of}" for of in SENDER)
    assert env.observed("right") == tuple(f"right.{number}.{of}" for number in (0, 1) for of in SENDER)
    assert env.observed("queue") == OBSERVED
    env.reset(seed=1)
    for agent in env.possible_agents:
        env.action_space(agent).seed(1)
    for step in range(1, 11):
        assert env.agents == ["left", "right", "queue"]
        actions = {agent: env.action_space(agent).sample() for agent in env.agents}
        observations, rewards, terminations, truncations, infos = env.step(actions)
        for agent, observation in observations.items():
            assert env.observation_space(agent).contains(observation), agent
            assert observation[-len(actions[agent]) :] == pytest.approx(actions[agent])
        assert all(np.isfinite(reward) for reward in rewards.values())
        assert not any(terminations.values())
        assert set(truncations.values()) == {step == 10}
        assert infos["left"]["senders"].keys() == {"left.0"}
    assert env.agents == []
    assert env.step({}) == ({}, {}, {}, {}, {})


def test_agents_see_what_one_agent_with_all_keys_does(scenario: fs.Scenario) -> None:
    """The number of agents does not change the network: with the same seed, values equal those of one agent."""
    together = ParallelNetwork(scenario, AGENTS)
    alone = Network(scenario, {key: bounds for keys in AGENTS.values() for key, bounds in keys.items()})
    together.reset(seed=5)
    alone.reset(seed=5)
    random = np.random.default_rng(2)
    for _ in range(5):
        action = random.uniform(-1, 1, 4).astype(np.float32)
        each = dict(zip(AGENTS, np.split(action, [1, 3]), strict=True))
        observations, *_, infos = together.step(each)
        observation, *_, info = alone.step(action)
        seen = dict(zip(alone.observed, observation, strict=False))
        for agent in AGENTS:
            wanted = [seen[name] for name in together.observed(agent)]
            assert observations[agent][: len(wanted)].tolist() == wanted
            assert infos[agent]["values"].items() <= info["values"].items()


def test_the_same_seed_gives_the_same_observations(scenario: fs.Scenario) -> None:
    def observations(seed: int) -> list[list[float]]:
        env = ParallelNetwork(scenario, AGENTS)
        env.reset(seed=seed)
        still = {agent: np.zeros(env.action_space(agent).shape, np.float32) for agent in AGENTS}
        return [value.tolist() for _ in range(5) for value in env.step(still)[0].values()]

    assert observations(1) == observations(1) != observations(2)


@pytest.mark.parametrize(
    ("agents", "said"),
    [
        ({}, "agents: each needs a name and a key"),
        ({"a": {}}, "agents: each needs a name and a key"),
        ({"a": AGENTS["left"], "b": AGENTS["left"]}, r"agents: b: flows.left.law.window is another agent's"),
        ({"a": {"flows.web.law.window": (1.0, 9.0)}}, r"agents: a: the flows of flows.web.law.window come and go"),
        ({"a": {"flows.other.law.window": (1.0, 9.0)}}, "sack sets its window itself"),
    ],
)
def test_what_cannot_be_is_told_of(scenario: fs.Scenario, agents: Any, said: str) -> None:
    web = {"load": 0.1, "sizes": {"distribution": "pareto", "mean": "30kB", "shape": 1.5}}
    with pytest.raises(fs.ScenarioError, match=said):
        ParallelNetwork(scenario.flows("told", name="web", web=web), agents)


def test_a_step_needs_a_run_and_every_agents_action(scenario: fs.Scenario) -> None:
    env = ParallelNetwork(scenario, AGENTS)
    with pytest.raises(ResetNeeded):
        env.step({})
    env.reset(seed=1)
    with pytest.raises(fs.ScenarioError, match="actions: none of right, queue; all agents act at each step"):
        env.step({"left": np.zeros(1, np.float32)})


def test_the_example_shares_the_link(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "two_agents.py"))
    said = dict(line.rsplit(": ", 1) for line in capsys.readouterr().out.splitlines())
    # Both hold the same few packets in one queue: the same rate, and together the link's payload, 960 of 1000 bytes.
    assert float(said["Jain's index"]) > 0.95
    assert float(said["share of the link"]) > 0.85
    assert float(said["round-trip time, of the path's"]) < 1.5
