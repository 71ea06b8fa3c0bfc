# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A run as an environment of gymnasium."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstamp as fs

gymnasium = pytest.importorskip("gymnasium", reason="needs gymnasium; install flowstamp[gym]")

from gymnasium.error import ResetNeeded  # noqa: E402 - after the skip
from gymnasium.utils.env_checker import check_env  # noqa: E402 - after the skip

from flowstamp.gym import OBSERVED, Action, Network  # noqa: E402 - after the skip

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture
def network() -> fs.Scenario:
    return fs.dumbbell("20Mbps", rtt="40ms").flows("xcp", 3, spread="1s").configure(duration="1s")


ACTIONS = [
    {"dumbbell.router.alpha": (0.2, 0.6)},
    {"dumbbell.rate": ("1Mbps", "40Mbps")},
    {"flows.told.law.window": (1.0, 200.0), "flows.told.law.rate": ("1Mbps", "20Mbps")},
]


@pytest.mark.parametrize("actions", ACTIONS, ids=str)
def test_gymnasium_finds_nothing_wrong(network: fs.Scenario, actions: Any) -> None:
    network = network.flows("told", name="told")
    env = gymnasium.make("flowstamp/Network-v0", scenario=network, actions=actions)
    check_env(env.unwrapped)  # what it warns of is an error


def test_an_episode_is_the_run(network: fs.Scenario) -> None:
    env = Network(network, {"dumbbell.router.alpha": (0.2, 0.6)}, step="300ms")
    env.reset(seed=1)
    still = np.zeros(1, np.float32)
    steps = [env.step(still) for _ in range(3)]
    assert [info["time_s"] for *_, info in steps] == pytest.approx([0.3, 0.6, 0.9])
    assert [truncated for *_, truncated, _ in steps] == [False, False, True]
    assert steps[0][4]["values"] == {"dumbbell.router.alpha": pytest.approx(0.4)}
    # An action of 0 is the gain that the router has by itself: the same as a run that nobody governs.
    seed = int(np.random.Generator(np.random.PCG64(np.random.SeedSequence(1))).integers(2**31))
    own = network.probe(every="300ms").run(seed=seed)
    for number, wanted in ((0, "utilization"), (3, "goodput_bps")):
        kind, name = ("link", "bottleneck") if wanted == "utilization" else ("group", "xcp")
        values = own.series(kind, name, wanted)[1] / (1 if wanted == "utilization" else 20e6)
        assert [seen[number] for seen, *_ in steps] == pytest.approx(values, rel=1e-6)


def test_actions_count(network: fs.Scenario) -> None:
    env = Network(network, {"dumbbell.rate": ("2Mbps", "20Mbps")}, step="500ms", reward=lambda seen: seen["goodput"])
    rewards = []
    for action in (-1.0, 1.0):
        env.reset(seed=1)
        env.step(np.full(1, action, np.float32))
        rewards.append(env.step(np.full(1, action, np.float32))[1])
    assert 0 < rewards[0] <= 0.1  # of the capacity that it begins with
    assert rewards[1] > 0.5
    assert len(OBSERVED) == env.observation_space.shape[0] - 1


def test_a_senders_window_is_an_action() -> None:
    network = fs.dumbbell("20Mbps", rtt="40ms").flows("told", name="agent").configure(duration="2s")
    env = Network(network, {"flows.agent.law.window": (10.0, 150.0)}, step="500ms")
    env.reset(seed=1)
    steps = [env.step(np.full(1, action, np.float32)) for action in (-1.0, -1.0, 1.0, 1.0)]
    assert [info["values"]["flows.agent.law.window"] for *_, info in steps] == [10.0, 10.0, 150.0, 150.0]
    (slow, empty), (full, queue) = (steps[n][0][:2] for n in (1, 3))
    # 10 packets of 1000 B in 40.9 ms; 150 are more than the 100 of the path, and the rest waits.
    assert slow == pytest.approx(10 * 8e3 / 0.0409 / 20e6, rel=0.03)
    assert empty < 0.01
    assert full > 0.99
    assert queue > 0.3


def test_a_wide_range_is_spread_by_factors() -> None:
    wide, narrow = Action("a", ("1Mbps", "100Mbps")), Action("b", (1.0, 3.0))
    assert [wide.text(value) for value in (-1, 0, 1, 9)] == [
        "1000000bps",
        "10000000bps",
        "100000000bps",
        "100000000bps",
    ]
    assert [narrow.text(value) for value in (-1, 0, 1)] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("actions", "options", "said"),
    [
        ({}, {}, "actions: are none"),
        ({"packet": ("1kB", "2kB")}, {}, "packet: cannot change in mid-run"),
        ({"dumbbell.router.alpha": (2, 1)}, {}, r"must be the least and the largest"),
        ({"dumbbell.rate": ("a", "b")}, {}, "must be numbers, or quantities"),
        ({"flows.xcp.law.window": (1, 10)}, {}, "law.window: cannot change in mid-run: xcp sets its window itself"),
        (
            {"dumbbell.router.alpha": (0.1, 1)},
            {"step": "2s"},
            "step: 2s must be above zero and at most the duration, 1s",
        ),
        ({"dumbbell.router.alpha": (0.1, 1)}, {"link": "x"}, 'link: "x" is none; there are bottleneck'),
    ],
)
def test_what_cannot_be_is_told_of(network: fs.Scenario, actions: Any, options: Any, said: str) -> None:
    with pytest.raises(fs.ScenarioError, match=said):
        Network(network, actions, **options)


def test_a_step_needs_a_run(network: fs.Scenario) -> None:
    with pytest.raises(ResetNeeded):
        Network(network, {"dumbbell.router.alpha": (0.2, 0.6)}).step(np.zeros(1, np.float32))


def test_the_baseline_says_what_to_beat(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "gym_baseline.py"))
    said = [line for line in capsys.readouterr().out.splitlines() if "reward" in line]
    published, random, bdp, anything = (float(line.split()[-4]) for line in said)
    assert 0.5 < random <= 1
    assert 0.5 < published <= 1
    assert -10 < anything < bdp <= 1
