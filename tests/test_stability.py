# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp.stability` and `flowstamp stability`: what Python and a user see, beside closed forms and scipy."""

from __future__ import annotations

import json
import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command

import flowstamp as fs
from flowstamp import stability, stability_check
from flowstamp.errors import TheoryError
from flowstamp.stability_network import Route, network


def test_the_response_is_its_formula() -> None:
    """Equations 5.8: |G| and the phase, at 80 ms."""
    alpha, beta, d = 0.4, 0.226, 0.08
    omega = np.geomspace(0.01, 100.0, 500)
    response, phase = stability.response(alpha, beta, "80ms", omega)
    assert np.abs(response) == pytest.approx(np.hypot(beta, omega * d * alpha) / (omega * d) ** 2, rel=1e-12)
    assert phase == pytest.approx(-omega * d + np.arctan(omega * alpha * d / beta) - math.pi, abs=1e-9)


def test_margins_and_roots() -> None:
    """Theorem 1's curve: a phase margin of pi/4 - alpha sqrt 2, whatever the RTT."""
    for rtt in ("30us", "80ms", "1s"):
        s = stability.of("xcp", alpha=0.4, beta=0.16 * math.sqrt(2), rtt=rtt)
        assert s.phase_margin_deg == pytest.approx(math.degrees(math.pi / 4 - 0.4 * math.sqrt(2)))
        assert s.stable
        assert s.linear_stable
        assert s.gain_margin is not None
        assert s.gain_margin > 1
        assert s.roots
        for root in s.roots:
            z = root * s.rtt_s
            assert abs(z**2 + (0.4 * z + s.beta) * np.exp(-z)) < 1e-9
            assert root.real < 0


def test_the_thesis() -> None:
    """Section 5.2: some gains are stable of which the linear loop says that they are not, and the other way round."""
    wild = stability.of("rcp", alpha=1.44, beta=0.246)
    assert wild.linear_stable
    assert not wild.stable
    assert wild.settles_after_rtts is None
    here = stability.of("rcp", alpha=0.8, beta=0.6)
    assert here.stable
    assert not here.linear_stable
    map_ = stability.stable_map([0.8, 1.5], [0.3, 0.55])
    assert map_.tolist() == [[True, False], [True, False]]
    linear = stability.stable_map([0.8, 1.3], [0.3, 0.55], model="linear")
    assert linear.tolist() == [[True, True], [False, False]]


def test_a_map_is_what_each_point_says() -> None:
    """Only points near the border are tried; all of a coarse grid, here."""
    alphas, betas = np.linspace(0.1, 1.9, 19), np.linspace(0.1, 1.0, 10)
    a, b = np.meshgrid(alphas, betas)
    each = np.isfinite(stability.settling_time(a, b, model="switched", start=(0.5, 0.0), most=1000.0))
    assert (stability.stable_map(alphas, betas) == each).all()


def test_a_trajectory_settles_where_theory_has_it() -> None:
    """A router that takes the capacity for 5% more keeps a queue of alpha/beta of that (Abrantes 2006, equation 5)."""
    rate, queue = stability.trajectory(0.4, 0.226, [0.0, 300.0], model="linear", start=(0.0, 0.0), error=0.05)
    assert rate == pytest.approx([0, 0], abs=1e-9)
    assert queue == pytest.approx([0, 0.05 * 0.4 / 0.226], abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"law": "bic"}, 'law "bic" has no stability model; it must be one of xcp, rcp'),
        ({"law": "vcp"}, "one of xcp, rcp; VCP's model is in Python: flowstamp.stability_network.network"),
        ({"law": "vcp-exact"}, "one of xcp, rcp; VCP's model is in Python: flowstamp.stability_network.network"),
        ({"law": "xcp-b"}, "one of xcp, rcp; the loop of xcp-b equals that of xcp near equilibrium"),
        ({"law": "rcp", "alpha": -0.1}, "alpha is -0.1; it must be a number above 0, and at most 10"),
        ({"law": "rcp", "alpha": 0.0}, "alpha is 0; it must be a number above 0, and at most 10"),
        ({"law": "rcp", "beta": 10.1}, "beta is 10.1; it must be a number above 0, and at most 10"),
        ({"law": "rcp", "beta": math.nan}, "beta is nan; it must be a number above 0, and at most 10"),
        ({"law": "rcp", "rtt": "0s"}, 'rtt is "0s"; it must be above 0'),
        ({"law": "rcp", "rtt": "-3ms"}, 'rtt is "-3ms"; it must be above 0'),
        ({"law": "rcp", "rtt": ""}, 'rtt: "" is not a number with a unit; write for example "40ms"'),
    ],
)
def test_nonsense_is_refused(arguments: dict[str, object], told: str) -> None:
    with pytest.raises(TheoryError) as raised:
        stability.of(**arguments)  # type: ignore[arg-type]
    assert str(raised.value).endswith(told)


def test_wild_gains_have_no_margins() -> None:
    """More than a turn of phase lost is not phase left."""
    for alpha, beta in ((5.0, 0.3), (10.0, 0.5), (0.1, 9.0)):
        s = stability.of("xcp", alpha=alpha, beta=beta)
        assert not s.linear_stable
        assert s.phase_margin_deg is not None
        assert s.phase_margin_deg < 0
        assert (s.gain_margin, s.delay_margin_s) == (None, None)
        assert s.roots[0].real > 0


def test_slow_gains_are_stable() -> None:
    """They have not settled after 2000 round trips, and die all the same."""
    assert stability.of("xcp", alpha=0.4, beta=1e-4).stable
    s = stability.of("xcp", alpha=0.001, beta=0.1)
    assert s.stable
    assert s.settles_after_rtts is None
    assert "more than 2000 round trips" in s.lines()[0]


def test_a_trajectory_may_be_dense() -> None:
    times = np.linspace(0.0, 20.0, 10_001)
    rate, queue = stability.trajectory(0.5, 0.5, times)
    coarse = stability.trajectory(0.5, 0.5, times[::100])
    assert rate[::100] == pytest.approx(coarse[0], abs=1e-12)
    assert queue[::100] == pytest.approx(coarse[1], abs=1e-12)
    with pytest.raises(TheoryError, match=r"^error is 0.1; the models that have it"):
        stability.trajectory(0.5, 0.5, times, error=0.1)


def test_a_buffer_bounds_the_queue() -> None:
    """From twice as many flows as before: what the queue would be above it is lost, and it settles sooner (R5.10)."""
    times = np.linspace(0.0, 40.0, 4001)
    _, free = stability.trajectory(0.5, 0.5, times)
    _, queue = stability.trajectory(0.5, 0.5, times, buffer=0.5)
    assert free.max() > 1.5
    assert queue.max() == pytest.approx(0.5, abs=1e-6)  # at its border within the error of a step
    # The queue grows by the excess of one capacity until it is full, and stays so while more arrives.
    assert queue[times <= 0.5] == pytest.approx(times[times <= 0.5])
    both = stability.settling_time([0.5, 0.5], 0.5, buffer=[0.5, math.inf])
    assert both[0] < both[1] == stability.settling_time(0.5, 0.5)
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"buffer": 0.0}, "buffer is 0.0; it must be above 0, and hold the queue of the start, 0"),
        ({"buffer": 0.5, "start": (0.0, 1.0)}, "buffer is 0.5; it must be above 0, and hold the queue of the start, 1"),
        ({"buffer": math.nan}, "buffer is nan; it must be above 0"),
        ({"buffer": 0.5, "model": "switched"}, "buffer is 0.5; the model that has it is rcp"),
    )
    for arguments, told in cases:
        with pytest.raises(TheoryError, match=f"^{re.escape(told)}"):
            stability.settling_time(0.5, 0.5, **arguments)
        with pytest.raises(TheoryError, match=f"^{re.escape(told)}"):
            stability.trajectory(0.5, 0.5, times, **arguments)


def test_rates_far_from_rest_are_not_below_zero() -> None:
    """From eight times the fair rates, and where flows of three RTTs swing: XCP takes no more than there is."""
    lot = network("xcp", {"link": "100Mbps"}, [Route(["link"], "90ms"), Route(["link"], "30ms")])
    rates = lot.trajectory(np.linspace(0.0, 5.0, 1001), start=8.0).rates_bps
    assert min(rate.min() for rate in rates) == 0.0
    several = stability.of("xcp", alpha=1.8, beta=1.2, rtt=["40ms", "80ms", "320ms"], flows=[3, 2, 5])
    path = several.trajectory(np.linspace(0.0, 400.0, 8001))
    assert min(rate.min() for rate in path.rates.values()) == 0.0


def test_a_bare_rtt_is_refused_by_name() -> None:
    with pytest.raises(TheoryError, match=r"^rtt: .*80"):
        stability.of("rcp", rtt="80")


@pytest.mark.long
def test_the_command(flowstamp: Command, tmp_path: Path) -> None:
    """Its verdict, its exit code, its picture."""
    found = json.loads(
        flowstamp("stability", "rcp", "--alpha", "0.5", "--beta", "0.5", "--rtt", "80ms", "--json").stdout
    )
    assert found["stable"] is True
    # Equation 5.10 has no margin there: it is stable as the queue is not below zero.
    assert found["linear"]["phase_margin_deg"] < 0
    assert (tmp_path / "out/stability/rcp.png").stat().st_size > 1000
    wild = flowstamp("stability", "xcp", "--alpha", "1.8", "--beta", "0.3")
    assert wild.returncode == 1
    assert "unstable" in wild.stdout
    # If two verdicts differ, the output says which counts.
    for gains, differ in ((("0.5", "0.5"), True), (("1.44", "0.246"), True), (("0.4", "0.226"), False)):
        lines = stability.of("rcp", alpha=float(gains[0]), beta=float(gains[1])).lines()
        assert ("the first line counts" in lines[1]) == differ
    assert "phase margin 0.0 degrees" in stability.of("rcp", alpha=0.4, beta=0.3414).lines()[1]
    empty = flowstamp("stability", "rcp", "--rtt", "")
    assert (empty.returncode, empty.stdout) == (2, "")


def test_what_is_proved() -> None:
    """One RTT. RCP's gains and the thesis's are proved, although the linear loop is unstable."""
    assert stability.proved([[0.1, 0.4, 1.2]], [[1.0], [0.6]]).tolist() == [[True, True, False], [True, True, False]]
    s = stability.of("rcp")
    assert s.proved
    assert not s.linear_stable
    assert s.as_dict()["proved"] is True
    assert s.lines()[2].startswith("proved: stable near equilibrium, with any RTT")
    wild = stability.of("rcp", alpha=1.44, beta=0.246)
    assert wild.proved is False
    assert len(wild.lines()) == 2
    assert stability.of("rcp", rtt=["40ms", "80ms"]).proved is None
    # All of it lies below the border, which is where what settles ends.
    betas, alphas = np.linspace(0.1, 1.2, 12)[:, None], np.linspace(0.05, 1.55, 31)
    border = stability.switched_border(betas)
    proofs = stability.proved(alphas, betas)
    assert not (proofs & (alphas >= border)).any()
    assert proofs.sum() > 0.8 * (alphas < border).sum()
    after = [stability.settling_time(border + off, betas, model="switched", most=3000.0) for off in (-0.01, 0.01)]
    assert np.isfinite(after[0]).all()
    assert np.isnan(after[1]).all()


def test_what_comes_near_rest_and_swings_anew_has_not_settled() -> None:
    """Beyond pi/2 no loop is stable: RCP's equations are near equilibrium after 74 RTTs, and then swing by 7%."""
    rate, _ = stability.trajectory(1.6, 0.1, np.linspace(0.0, 1000.0, 40001), model="rcp", start=(1.0, 0.0))
    assert np.abs(rate[3000:3400]).max() < 0.02
    assert np.abs(rate[-2000:]).max() > 0.05
    assert np.isnan(stability.settling_time(1.6, 0.1, model="rcp", start=(1.0, 0.0)))
    assert stability.settling_time(0.5, 0.5, model="rcp", start=(1.0, 0.0)) == pytest.approx(17.3, abs=0.1)


def test_encirclements_are_unstable_roots() -> None:
    """One RTT, and several, whose loop has unstable poles only where shuffling grows by itself."""
    several: dict[str, Any] = {"rtt": ["40ms", "80ms", "320ms"], "flows": [3, 2, 5]}
    for more in ({}, several):
        for law in ("xcp", "rcp"):
            for alpha in (0.4, 1.3, 3.0, 6.0):
                s = stability.of(law, alpha=alpha, beta=0.3, **more)
                assert s.encirclements == sum(root.real > 0.0 for root in s.roots)
                assert s.as_dict()["linear"]["encirclements"] == s.encirclements


def test_responses_and_plots_of_several_rtts() -> None:
    """Margins are where the response has them, and the plots draw it."""
    for rtt in ("80ms", ["40ms", "80ms", "320ms"]):
        s = stability.of("xcp", rtt=rtt)
        assert s.crossover_rad_s is not None
        assert s.phase_margin_deg is not None
        g, phase = s.response([s.crossover_rad_s])
        assert abs(g[0]) == pytest.approx(1.0)
        assert math.degrees(phase[0]) + 180.0 == pytest.approx(s.phase_margin_deg)
        gain, angle = s.plot_bode().axes
        omega, drawn = (np.asarray(of) for of in gain.lines[0].get_data())
        assert drawn == pytest.approx(np.abs(s.response(omega)[0]))
        assert np.asarray(angle.lines[0].get_ydata()) == pytest.approx(np.degrees(s.response(omega)[1]))
        assert "rad/s" in angle.get_xlabel()
        labels = s.plot_nyquist().axes[0].get_legend_handles_labels()[1]
        assert labels[0] == "0 times around -1"


def test_a_limit_cycle_does_not_die() -> None:
    """RCP's swing far from the border stays, as R is at most C: its peaks differ by what falls between samples."""
    cycle = stability.of("rcp", alpha=1.9, beta=0.9, rtt=["79ms", "80ms"])
    rate = np.abs(cycle.trajectory(np.linspace(0.0, 4000.0, 64001)).rate)
    assert rate[16000:32000].max() == pytest.approx(rate[48000:].max(), rel=0.01)
    assert rate[48000:].max() > 0.02
    assert not cycle.stable


def test_runs_hints_and_verdicts_agree(flowstamp: Command, tmp_path: Path) -> None:
    """If a run warns, the command says unstable. It reports other warnings itself."""
    for law, alpha, beta, rtts, warns in (
        ("rcp", 1.3, 1.0, ["40ms"], True),
        ("xcp", 0.4, 0.5, ["40ms"], False),
        ("xcp", 1.46, 0.246, ["40ms"], True),
        ("rcp", 0.4, 0.5, ["40ms", "41ms"], False),
        ("rcp", 1.9, 0.9, ["40ms", "41ms"], True),
        ("xcp", 1.9, 0.5, ["40ms", "41ms"], True),
        ("xcp", 1.9, 0.5, ["40ms", "320ms"], False),
    ):
        router = {"law": law, "alpha": alpha, "beta": beta}
        made = fs.dumbbell("20Mbps", rtt="40ms", router=router).flows(law, len(rtts), rtt=rtts)
        made = made.configure(duration="1s")
        assert any(line.endswith("see flowstamp stability") for line in made.warnings()) == warns
        assert stability.of_scenario(made)[0].stable != warns
    (tmp_path / "s.toml").write_text(
        'duration = "1s"\n[dumbbell]\nrate = "10Mbps"\nrtt = "40ms"\nrouter = "xcp"\n'
        '[[flows]]\nname = "a"\nlaw = "xcp"\n[[flows]]\nname = "b"\nlaw = "xcp"\nrtt = "800ms"\n'
    )
    told = flowstamp("stability", "s.toml").stderr
    assert told.startswith("flowstamp: warning: s.toml: router of bottleneck: its flows' RTTs are 40ms to 800ms")


@pytest.mark.long
def test_scenarios_that_have_no_loop_are_refused(flowstamp: Command, tmp_path: Path) -> None:
    for router, rtt, told in (
        ('"xcp"', "0ms", "s.toml: no flow that obeys its routers has an RTT above 0; set one, such as --rtt"),
        ('{ law = "rcp", beta = 0 }', "40ms", "s.toml: router of bottleneck: beta is 0; it must be a number above 0"),
        ('"xcp-b"', "40ms", "those are xcp, rcp; the loop of xcp-b equals that of xcp near equilibrium"),
    ):
        law = "rcp" if "rcp" in router else "xcp"
        (tmp_path / "s.toml").write_text(
            f'duration = "1s"\n[dumbbell]\nrate = "10Mbps"\nrtt = "{rtt}"\nrouter = {router}\n'
            f'[[flows]]\nname = "a"\nlaw = "{law}"\n'
        )
        refused = flowstamp("stability", "s.toml")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert told in refused.stderr
        assert refused.stderr.count("\n") == 1


@pytest.mark.long
def test_a_scenario_gives_law_gains_and_rtt(flowstamp: Command, tmp_path: Path) -> None:
    """The mean RTT of its flows, and the gains that its router has."""
    (tmp_path / "s.toml").write_text(
        'duration = "1s"\n[dumbbell]\nrate = "10Mbps"\nrtt = "40ms"\nrouter = { law = "rcp", alpha = 0.6 }\n'
        '[[flows]]\nname = "a"\nlaw = "rcp"\ncount = 3\n[[flows]]\nname = "b"\nlaw = "rcp"\nrtt = "80ms"\n'
    )
    found = json.loads(flowstamp("stability", "s.toml", "--json").stdout)
    assert (found["law"], found["alpha"], found["beta"]) == ("rcp", 0.6, 0.5)
    assert found["rtt_s"] == pytest.approx(0.05)
    refused = flowstamp("stability", "s.toml", "--alpha", "0.5")
    assert refused.returncode == 2
    assert "--set dumbbell.router.alpha" in refused.stderr
    plain = flowstamp("stability", "s.toml", "--set", "dumbbell.router=none")
    assert plain.returncode == 2
    assert plain.stderr.count("\n") == 1


def test_one_rtt_is_the_same_said_twice() -> None:
    assert stability.of("xcp", rtt=["80ms", "80ms"], flows=[2, 3]) == stability.of("xcp", rtt="80ms")


def test_several_rtts() -> None:
    """XCP's flows share evenly in the end, whatever their RTTs; those of shorter ones hear first."""
    s = stability.of("xcp", rtt=["40ms", "80ms", "320ms"], flows=[3, 2, 5])
    assert s.rtt_s == pytest.approx((3 * 40 + 2 * 80 + 5 * 320) / 10 / 1000)
    assert s.groups == ((0.04, 3), (0.08, 2), (0.32, 5))
    assert s.stable
    path = s.trajectory([0.0, 0.3, 400.0])
    assert path.rate == pytest.approx([-0.5, path.rate[1], 0.0], abs=1e-9)
    assert list(path.rates) == [0.04, 0.08, 0.32]
    assert [rates[0] for rates in path.rates.values()] == [0.5] * 3
    assert [rates[2] for rates in path.rates.values()] == pytest.approx([1.0] * 3)
    # Half the link is free, as all hear: F = 0.4 / 2. After 0.3 mean RTTs, 56 ms, one group knows that it is less.
    assert [path.rates[0.08][1], path.rates[0.32][1]] == pytest.approx([0.5 + 0.3 * 0.2] * 2)
    assert 0.55 < path.rates[0.04][1] < 0.559999
    # They swing by as much as the capacity and no more: XCP's rates are not below zero, RCP's not above it.
    for law in ("xcp", "rcp"):
        for alpha, beta in ((1.9, 1.2), (1.6, 0.8), (1.2, 1.0)):
            assert not stability.of(law, alpha=alpha, beta=beta, rtt=["79ms", "80ms"]).stable
    assert not stability.of("xcp", alpha=1.9, beta=1.2, rtt=["40ms", "80ms", "320ms"], flows=[3, 2, 5]).stable


def test_rtts_that_hardly_differ_settle_as_one() -> None:
    """The model of several RTTs has another right-hand side than that of one, and the same solution as they meet."""
    for law in ("xcp", "rcp"):
        one = stability.of(law, rtt="80ms").settles_after_rtts
        nearly = stability.of(law, rtt=["79.99ms", "80.01ms"], flows=[50, 50]).settles_after_rtts
        # Both are whole steps of an RTT's thirty-second.
        assert nearly == pytest.approx(one, abs=1.1 / 32)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"rtt": ["40ms", "80ms"], "flows": [1]}, "flows has 1 numbers; it must have 2, one for each rtt"),
        ({"rtt": ["40ms", "80ms"], "flows": [1, 0]}, "flows has 0; each must be 1 or more"),
        ({"rtt": []}, "rtt is empty; give at least one time"),
        ({"rtt": [f"{n}ms" for n in range(1, 40)]}, "rtt has 39 values; it must have 1 to 32"),
        (
            {"rtt": ["1ms", "5s"]},
            "rtt is from 0.001 s to 5 s; the longest must be at most 1000 times the shortest",
        ),
    ],
)
def test_rtts_that_make_no_sense_are_refused(arguments: dict[str, object], told: str) -> None:
    with pytest.raises(TheoryError) as raised:
        stability.of("xcp", **arguments)  # type: ignore[arg-type]
    assert str(raised.value) == told


@pytest.mark.long
def test_the_command_with_several_rtts(flowstamp: Command) -> None:
    done = flowstamp("stability", "rcp", "--rtt", "40ms,80ms", "--flows", "3,1", "--json")
    found = json.loads(done.stdout)
    assert found["groups"] == [{"rtt_s": 0.04, "flows": 3}, {"rtt_s": 0.08, "flows": 1}]
    assert found["files"] == ["out/stability/rcp.pdf", "out/stability/rcp.png"]
    for options, told in (
        (("rcp", "--rtt", "40ms,80ms", "--flows", "3,x"), "--flows: is 3,x; it must be whole numbers"),
        (("rcp", "--rtt", "40ms,80"), 'rtt: "80" has no unit'),
    ):
        refused = flowstamp("stability", *options)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert told in refused.stderr
        assert refused.stderr.count("\n") == 1


@pytest.mark.long
def test_a_graph_names_its_links(flowstamp: Command, tmp_path: Path) -> None:
    """Each with the RTTs of the flows over it, without --rtt: 2 (10 + 20) ms and 2 (10 + 5) ms."""
    (tmp_path / "g.toml").write_text(
        'duration = "1s"\n'
        + "".join(
            f'[[graph.links]]\nname = "{name}"\nfrom = "{ends[0]}"\nto = "{ends[1]}"\nrate = "50Mbps"\n'
            f'delay = "{delay}"\nrouter = "rcp"\n'
            for name, ends, delay in (("trunk", "ab", "10ms"), ("far", "bc", "20ms"), ("near", "bd", "5ms"))
        )
        + "".join(
            f'[[flows]]\nname = "{name}"\nlaw = "rcp"\ncount = {count}\nfrom = "a"\nto = "{to}"\n'
            for name, count, to in (("x", 3, "c"), ("y", 2, "d"))
        )
    )
    whole = json.loads(flowstamp("stability", "g.toml", "--json").stdout)
    assert whole["stable"] is True
    assert whole["together"]["links"] == ["trunk", "far", "near"]
    found = {one["links"][0]: one for one in whole["loops"]}
    trunk = [{"rtt_s": 0.03, "flows": 2}, {"rtt_s": 0.06, "flows": 3}]
    assert {name: one["groups"] for name, one in found.items()} == {"trunk": trunk, "far": [], "near": []}
    assert {name: one["rtt_s"] for name, one in found.items()} == pytest.approx(
        {"trunk": 0.048, "far": 0.06, "near": 0.03}
    )
    assert "links trunk, trunk.reverse: rcp" in flowstamp("stability", "g.toml").stdout


def test_many_links_are_taken_together() -> None:
    """A fat tree has hundreds of links, with flows of their own each."""
    path = Path(__file__).parents[1] / "examples/fat_tree.toml"
    found = stability.of_scenario(fs.load(path))
    assert len(found) == 1
    assert len(found[0].links) > 100
    assert " and " in found[0].lines()[0]


def test_maps_and_portraits_are_drawn() -> None:
    """Maps of settling times, and portraits of trajectories."""
    figure = stability.settling_map([0.2, 0.5, 1.9], [0.2, 0.5, 1.1])
    mesh = figure.axes[0].collections[0]
    shown: np.ndarray = np.ma.filled(np.ma.asarray(mesh.get_array()), np.nan).reshape(3, 3)
    times = stability.settling_time([[0.2, 0.5, 1.9]], [[0.2], [0.5], [1.1]], most=200.0)
    assert np.isnan(times[2, 2])
    assert np.allclose(shown, times, equal_nan=True)
    portrait = stability.phase_portrait(0.5, 0.5, rtts=200.0)
    paths = [path for line in portrait.axes[0].lines if len(path := np.asarray(line.get_xydata())) > 1]
    assert len(paths) == 6
    for path in paths:
        assert path[-1] == pytest.approx([1.0, 0.0], abs=0.01)
    with pytest.raises(TheoryError, match=r"^starts is empty; give"):
        stability.phase_portrait(0.5, 0.5, starts=[])


def test_wild_gains_are_unstable() -> None:
    """Beyond all numbers within 4000 round trips."""
    s = stability.of("xcp", alpha=1.9, beta=0.3)
    assert not s.stable
    assert "unstable" in s.lines()[0]


def test_packets_are_asked_too() -> None:
    """The slowest gains of the grid rest and the fastest oscillate, of packets as of the model."""
    found = stability.of("xcp", rtt="50ms").check_by_simulation(points=3)
    assert (found.alphas[0], found.betas[0]) == (0.05, 0.05)
    assert (found.alphas[-1], found.betas[-1]) == (2.0, 1.2)
    assert not found.oscillates[0]
    assert not found.model[0] > 0.04
    assert found.oscillates[-1]
    assert found.model[-1] > 0.04
    counts = found.counts
    assert (counts["points"], counts["runs"]) == (9, 9)
    assert sum(counts[name] for name in counts if name not in ("points", "runs")) == 9
    with pytest.raises(TheoryError, match=r"^points is 1 and seeds 1; they must be at least 2 and 1"):
        stability.of("xcp").check_by_simulation(points=1)


def test_why_packets_rest_where_models_do_not() -> None:
    """Docs' experiments: XCP's router sees the least queue of an RTT, and RCP's hosts keep to a window."""
    rests = stability_check._scenario(stability.of("xcp"), 1.1, 1.2, 1)
    seen = rests.set("dumbbell.router.queue_window", 0.1)
    windowed = stability_check._scenario(stability.of("rcp"), 1.3, 1.0, 1)
    paced = windowed
    for group in ("first0", "second0"):
        paced = paced.set(f"flows.{group}.law.window", False)
    with warnings.catch_warnings(action="ignore", category=fs.ScenarioWarning):
        runs = fs.run_many([rests, seen, windowed, paced])
    swings = [stability_check._of_packets(run, 0.1) for run in runs]
    assert swings[0] < 0.05
    assert swings[1] > 0.4
    assert swings[2] < 0.1
    model = stability_check._of_model(stability.of("rcp", alpha=1.3, beta=1.0))
    assert swings[3] == pytest.approx(model, rel=0.2)


@pytest.mark.long
def test_the_command_checks_by_simulation(flowstamp: Command) -> None:
    done = flowstamp("stability", "rcp", "--rtt", "20ms,40ms", "--check-by-simulation", "--points", "2", "--json")
    found = json.loads(done.stdout)["simulation"]
    assert (found["points"], found["runs"], len(found["at"])) == (4, 4, 4)
    assert set(found["at"][0]) == {"alpha", "beta", "packets_swing", "model_swing"}
    for option in ("--points=4", "--seeds=2", "--threads=1", "--memory=1GB", "--executor=processes"):
        refused = flowstamp("stability", "rcp", option)
        name = option.partition("=")[0]
        assert (refused.returncode, refused.stderr) == (2, f"flowstamp: {name} is for --check-by-simulation\n")


def test_xcps_packets_leave_what_shuffling_holds_back() -> None:
    """The equilibrium of two links (`control_network.rs`): `gamma y^2 / 2 = (y - a) (gamma y - alpha (1 - y))`."""
    alpha, held = 0.4, 0.25
    for gamma in (0.1, 0.01):
        router = f'{{ law = "xcp", gamma = {gamma} }}'
        links = "".join(
            f'[[graph.links]]\nname = "{ends}"\nfrom = "{ends[0]}"\nto = "{ends[1]}"\nrate = "{rate}"\n'
            f'delay = "10ms"\nbuffer = "500kB"\nrouter = {router}\n'
            for ends, rate in (("ab", "100Mbps"), ("bc", "50Mbps"))
        )
        flows = "".join(
            f'[[flows]]\nname = "{ends}"\nlaw = "xcp"\nfrom = "{ends[0]}"\nto = "{ends[1]}"\nrtt = "100ms"\n'
            'access = { rate = "1Gbps", delay = "1ms" }\n'
            for ends in ("ac", "ab", "bc")
        )
        summary = fs.loads(f'duration = "60s"\nwarmup = "30s"\n{links}{flows}').run().summary
        a, b, c = gamma / 2 + alpha, -(alpha + held * (gamma + alpha)), held * alpha
        # Windows of packets make steps of 0.1% of the capacity.
        expected = (-b + math.sqrt(b * b - 4 * a * c)) / (2 * a)
        assert summary["links"]["ab"]["utilization"] == pytest.approx(expected, abs=0.001)
        assert summary["links"]["bc"]["utilization"] == pytest.approx(1.0, abs=0.001)


@pytest.mark.long
def test_shuffling_bears_no_rtt_far_above_the_mean() -> None:
    """Alone, `x' = -gamma/d x(t - d_i)` grows where `gamma d_i / d` is above pi/2. The loop and packets do, too."""
    for gamma, flows in ((0.1, 20), (0.1, 30), (0.05, 30)):
        beyond = gamma * 0.4 * (flows + 1) / (0.01 * flows + 0.4) > math.pi / 2
        router, paced = {"law": "xcp", "gamma": gamma}, {"law": "xcp", "pacing": True}
        made = fs.dumbbell("1Gbps", rtt="10ms", router=router).flows(paced, flows, name="short")
        made = made.flows(paced, 1, name="long", rtt="400ms").probe(every="400ms").configure(duration="120s")
        [loop] = stability.of_scenario(made)
        assert any(root.real > 0.0 for root in loop.roots) == beyond
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            times, rate = made.run().series("group", "long", "goodput_bps")
        assert any("linear model is unstable with the flows' RTTs" in str(one.message) for one in said) == beyond
        late = rate[times > 80.0]
        # Whole packets make 0.1%; what grows is bounded by a rate of zero.
        assert (late.std() > 0.2 * late.mean()) == beyond
        assert (late.std() < 0.01 * late.mean()) != beyond


def test_xcpbs_queue_stays_below_its_bound() -> None:
    """Abrantes 2006, figure 4: what an under-used link hands out fills at most `(5 - alpha - beta) chi Qmax`."""
    peaks = {}
    for chi in (1 / (5 - 0.4 - 0.2263), 0.5, 1.0):
        router = {"law": "xcp-b", "q_max": "64kB", "chi": chi}
        scenario = fs.dumbbell("50Mbps", rtt="80ms", buffer="20MB", router=router).flows("xcp", 6)
        link = scenario.configure(duration="12s").run().summary["links"]["bottleneck"]
        peaks[chi] = link["max_queue_bytes"] / 64e3
        assert 0.3 * chi < peaks[chi] < (5 - 0.4 - 0.2263) * chi
    # The bound is why chi has to be as small as that.
    assert peaks[1.0] > 1.5


def test_too_many_rtts_are_their_mean() -> None:
    """32 are told apart, and 33 are not."""
    for count, groups in ((32, 32), (33, 0)):
        rtts = [f"{40 + n}ms" for n in range(count)]
        made = fs.dumbbell("100Mbps", rtt="40ms", router="xcp").flows("xcp", count, rtt=rtts)
        found = stability.of_scenario(made.configure(duration="1s"))
        assert len(found[0].groups) == groups
        assert found[0].rtt_s == pytest.approx((40 + (count - 1) / 2) / 1000)
