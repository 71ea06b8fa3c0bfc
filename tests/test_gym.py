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


@pytest.mark.parametrize(
    "actions", [{"dumbbell.router.alpha": (0.2, 0.6)}, {"dumbbell.rate": ("1Mbps", "40Mbps")}], ids=str
)
def test_gymnasium_finds_nothing_wrong(network: fs.Scenario, actions: Any) -> None:
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
    published, random = (float(line.split()[-4]) for line in capsys.readouterr().out.splitlines() if "reward" in line)
    assert 0.5 < random <= 1
    assert 0.5 < published <= 1
