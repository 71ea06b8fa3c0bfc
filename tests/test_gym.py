# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A run as an environment of gymnasium."""

from __future__ import annotations

import math
import os
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstamp as fs

gymnasium = pytest.importorskip("gymnasium", reason="needs gymnasium; install flowstamp[gym]")

from gymnasium.error import ResetNeeded  # noqa: E402 - after the skip
from gymnasium.utils.env_checker import check_env  # noqa: E402 - after the skip

from flowstamp.gym import OBSERVED, SENDER, Action, Network  # noqa: E402 - after the skip

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
TRACES = sorted([*EXAMPLES.glob("data/*.down"), *ROOT.glob("crates/*/tests/**/*.down")])
NIGHTLY = os.environ.get("FLOWSTAMP_NIGHTLY") == "1"
RANDOM_STEPS = 1000 if NIGHTLY else 60


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


def stays_within_bounds(env: Network, steps: int) -> None:
    """A random agent, for so many steps."""
    env.action_space.seed(1)
    env.reset(seed=1)
    for _ in range(steps):
        observation, reward, _, ended, _ = env.step(env.action_space.sample())
        assert env.observation_space.contains(observation), dict(zip(env.observed, observation, strict=False))
        assert math.isfinite(reward)
        if ended:
            env.reset()


RATES = {
    **{str(trace.relative_to(ROOT)): {"trace": str(trace), "capacity_window": "100ms"} for trace in TRACES},
    "steps from zero": {"steps": [["0s", "0bps"], ["1s", "10Mbps"], ["2s", "0bps"], ["2500ms", "1kbps"]]},
}


@pytest.mark.parametrize("name", RATES)
def test_observations_stay_within_their_bounds(name: str) -> None:
    scenario = (
        fs.dumbbell("1Mbps", rtt="40ms", buffer="100kB").flows("told", 2, name="agent").flows("udp", rate="50kbps")
    )
    scenario = scenario.set("dumbbell.rate", RATES[name]).configure(duration="5s")
    actions: dict[str, Any] = {"flows.agent.law.window": (1.0, 500.0), "flows.agent.law.rate": ("100kbps", "100Mbps")}
    check_env(gymnasium.make("flowstamp/Network-v0", scenario=scenario, actions=actions).unwrapped)
    stays_within_bounds(Network(scenario, actions, step="100ms"), RANDOM_STEPS)


def test_a_trace_is_scaled_by_its_mean_whatever_comes_in_the_first_step(tmp_path: Path) -> None:
    # Two packets of 1500 B each second, which is its period: 24 kb/s. In the first step it carries nothing.
    (tmp_path / "late.down").write_text("500\n1000\n")
    rate = {"trace": str(tmp_path / "late.down"), "capacity_window": "1s"}
    scenario = fs.dumbbell("1Mbps", rtt="40ms", buffer="10kB").flows("told", name="agent").set("dumbbell.rate", rate)
    for duration in ("10s", "600ms"):  # the second is no whole period
        env = Network(scenario.configure(duration=duration), {"flows.agent.law.window": (1.0, 4.0)})
        assert env.governed.rate == pytest.approx(24e3)
        stays_within_bounds(env, 20)


def test_steps_are_scaled_by_their_mean_over_the_run() -> None:
    steps = {"steps": [["0s", "0bps"], ["1s", "10Mbps"], ["2s", "2Mbps"]]}
    scenario = fs.dumbbell("1Mbps", rtt="10ms", buffer="50kB").flows("told", name="agent").set("dumbbell.rate", steps)
    env = Network(scenario.configure(duration="4s"), {"flows.agent.law.window": (40.0, 41.0)}, step="200ms")
    assert env.governed.rate == pytest.approx((0 + 10e6 + 2 * 2e6) / 4)
    env.reset(seed=1)
    seen = [env.step(np.zeros(1, np.float32))[0] for _ in range(10)]
    assert list(seen[0][:4]) == [0.0, pytest.approx(0.8, abs=0.05), 0.0, 0.0]  # 40 packets of 1 kB wait in 50 kB
    payload = 960 / 1000  # of each packet
    assert seen[8][env.observed.index("goodput")] == pytest.approx(10e6 / 3.5e6 * payload, rel=0.01)
    still = scenario.set("dumbbell.access_rate", "10Mbps").configure(duration="1s")
    with pytest.raises(fs.ScenarioError, match=r"link: bottleneck: its rate is 0bps in all of the duration, 1s"):
        Network(still, {"flows.agent.law.window": (1.0, 2.0)})


def last_info(env: Network, steps: int) -> dict[str, Any]:
    """The last step's, of an agent that does the same always."""
    env.reset(seed=3)
    for _ in range(steps):
        *_, info = env.step(np.full(env.action_space.shape, -1.0, np.float32))
    return info


def test_an_idle_paths_rtt_is_its_delays_and_its_transmissions() -> None:
    scenario = fs.dumbbell("20Mbps", rtt="40ms").flows("told", name="agent").configure(duration="2s")
    env = Network(scenario, {"flows.agent.law.window": (1.0, 2.0)}, step="500ms")
    seen = last_info(env, 3)["senders"]["agent.0"]
    # One packet of 1000 B and its ack of 40 B cross the bottleneck and two access links of ten times its rate.
    exact = 0.040 + (1000 + 40) * 8 / 20e6 * (1 + 2 / 10)
    assert seen["rtt_s"] == pytest.approx(exact, abs=1e-11)
    assert seen["min_rtt_s"] == pytest.approx(exact, abs=1e-11)
    # One packet of 960 B of payload each round trip, as often as it ends in a step.
    assert seen["delivery_rate_bps"] == pytest.approx(math.floor(0.5 / exact) * 960 * 8 / 0.5, rel=0.1)
    assert (seen["loss"], seen["marks"]) == (0.0, 0.0)


def test_loss_is_that_of_the_path() -> None:
    loss = 0.02
    scenario = fs.dumbbell("20Mbps", rtt="20ms", buffer="1MB").flows("told", name="agent")
    scenario = scenario.set("dumbbell.impairments", {"loss": loss}).set("dumbbell.reverse_impairments", {})
    scenario = scenario.set("flows.agent.size", "9.6MB").configure(duration="20s")
    env = Network(scenario, {"flows.agent.law.window": (30.0, 31.0)}, step="2s")
    env.reset(seed=3)
    simulation = env._episode.simulation  # type: ignore[union-attr] # a run is there
    sent, seen = 0, 0.0
    for _ in range(10):
        share = env.step(np.zeros(1, np.float32))[4]["senders"]["agent.0"]["loss"]
        counts = simulation.senders()["agent.0"]
        seen += share * (counts["sent"] - sent)
        sent = counts["sent"]
    # Packet by packet, though a timeout has sent others again in vain: D-SACK (RFC 2883) tells of those.
    lost = simulation.results().links["bottleneck"]["lost"]
    assert counts["delivered"] == 10_000
    assert counts["lost"] == lost == pytest.approx(seen)
    assert counts["sent"] > counts["delivered"] + lost
    # A binomial share, within four standard deviations.
    crossed = counts["delivered"] + lost
    assert lost / crossed == pytest.approx(loss, abs=4 * math.sqrt(loss * (1 - loss) / crossed))


def test_the_delivery_rate_is_the_goodput() -> None:
    scenario = fs.dumbbell("20Mbps", rtt="40ms").flows("told", name="agent").configure(duration="3s")
    env = Network(scenario, {"flows.agent.law.window": (150.0, 151.0)}, step="500ms")
    env.reset(seed=1)
    still = np.full(1, -1.0, np.float32)
    steps = [env.step(still) for _ in range(6)]
    for observation, *_, info in steps[2:]:
        # The bottleneck is full: its rate, less headers of 40 B in 1000.
        assert info["senders"]["agent.0"]["delivery_rate_bps"] == pytest.approx(20e6 * 0.96, rel=0.01)
        seen = dict(zip(env.observed, observation, strict=False))
        assert seen["agent.0.delivery_rate"] == pytest.approx(seen["goodput"], rel=0.01)
        # Little's law: 150 packets of 1000 B at 20 Mb/s.
        assert info["senders"]["agent.0"]["rtt_s"] == pytest.approx(150 * 8e3 / 20e6, rel=0.01)


@pytest.mark.parametrize("delayed_acks", [False, True])
def test_marks_are_those_of_the_queue(delayed_acks: bool) -> None:
    scenario = fs.dumbbell("20Mbps", rtt="40ms", buffer="1MB", queue={"kind": "red", "step": 20})
    scenario = scenario.flows("told", name="agent", size="1920kB").configure(duration="3s")
    scenario = scenario.set("flows.agent.transport", {"ecn": True, "delayed_acks": delayed_acks})
    env = Network(scenario, {"flows.agent.law.window": (130.0, 131.0)}, step="100ms")
    env.reset(seed=1)
    shares = [env.step(np.full(1, -1.0, np.float32))[4]["senders"]["agent.0"]["marks"] for _ in range(30)]
    simulation = env._episode.simulation  # type: ignore[union-attr] # a run is there
    counts = simulation.senders()["agent.0"]
    assert counts["delivered"] == 2000
    assert counts["marked"] == simulation.results().links["bottleneck"]["marks"] > 500
    assert all(0 <= share <= 1 for share in shares)
    assert max(shares) > 0.9  # 130 packets are 30 more than the path holds, and marks begin at 20


def test_the_same_seed_gives_the_same_observations() -> None:
    scenario = fs.dumbbell("10Mbps", rtt="20ms").flows("told", name="agent").configure(duration="2s")
    scenario = scenario.set("dumbbell.impairments", {"loss": 0.01})

    def observations(seed: int) -> list[list[float]]:
        env = Network(scenario, {"flows.agent.law.window": (1.0, 100.0)})
        env.action_space.seed(7)
        env.reset(seed=seed)
        return [env.step(env.action_space.sample())[0].tolist() for _ in range(20)]

    assert observations(1) == observations(1) != observations(2)


def test_groups_that_come_and_go_are_governed_and_not_observed(network: fs.Scenario) -> None:
    web = {"load": 0.3, "sizes": {"distribution": "pareto", "mean": "30kB", "shape": 1.5}}
    scenario = network.flows("told", name="short", web=web).flows("told", 2, name="agent")
    env = Network(scenario, {"flows.short.law.window": (1.0, 50.0), "flows.2.law.window": (1.0, 9.0)})
    assert env.observed == (*OBSERVED, *(f"agent.{number}.{of}" for number in (0, 1) for of in SENDER))
    stays_within_bounds(env, 10)


def test_a_wide_range_is_spread_by_factors() -> None:
    wide, narrow = Action("a", ("1Mbps", "100Mbps")), Action("b", (1.0, 3.0))
    assert [wide.text(value) for value in (-1, 0, 1, 9)] == [
        "1000000bps",
        "10000000bps",
        "100000000bps",
        "100000000bps",
    ]
    assert [narrow.text(value) for value in (-1, 0, 1)] == [1.0, 2.0, 3.0]
    # A size is in whole bytes, however large, and a time or a rate in as many digits as tell it apart.
    assert [Action("c", ("1kB", "12GB")).text(value) for value in (-1, 0, 1)] == ["1000B", "3464102B", "12000000000B"]
    assert Action("d", ("1ms", "2ms")).text(-0.999) == "0.0010005s"


@pytest.mark.parametrize(
    ("actions", "options", "said"),
    [
        ({}, {}, "actions: there are none"),
        ({"packet": ("1kB", "2kB")}, {}, "packet: cannot change in mid-run"),
        ({"dumbbell.router.alpha": (2, 1)}, {}, r"must be the least and the largest"),
        ({"dumbbell.rate": ("a", "b")}, {}, "must be numbers, or quantities"),
        ({"dumbbell.rate": ("0bps", "10Mbps")}, {}, "dumbbell.rate: is 0bps"),
        ({"flows.xcp.law.window": (1, 10)}, {}, "law.window: cannot change in mid-run: xcp sets its window itself"),
        (
            {"dumbbell.router.alpha": (0.1, 1)},
            {"step": "2s"},
            "step: 2s must be above zero and at most the duration, 1s",
        ),
        ({"dumbbell.router.alpha": (0.1, 1)}, {"link": "x"}, 'link: "x" is not a link; there are bottleneck'),
    ],
)
def test_what_cannot_be_is_told_of(network: fs.Scenario, actions: Any, options: Any, said: str) -> None:
    with pytest.raises(fs.ScenarioError, match=said):
        Network(network, actions, **options)


def test_a_step_needs_a_run(network: fs.Scenario) -> None:
    with pytest.raises(ResetNeeded):
        Network(network, {"dumbbell.router.alpha": (0.2, 0.6)}).step(np.zeros(1, np.float32))


@pytest.mark.long
def test_the_baseline_says_what_to_beat(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "gym_baseline.py"))
    said = [line for line in capsys.readouterr().out.splitlines() if "reward" in line]
    published, random, bdp, anything = (float(line.split()[-4]) for line in said)
    assert 0.5 < random <= 1
    assert 0.5 < published <= 1
    assert -10 < anything < bdp <= 1
