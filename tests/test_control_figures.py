# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Computed curves of control theory in figures: what their tables may say, and numbers held against closed forms."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flowstamp import _flowstamp, stability, stability_blind
from flowstamp.errors import TheoryError
from flowstamp.figures import FigureError, analytic, available, read
from flowstamp.figures.control import MEASURES
from flowstamp.figures.measures import Finished, RunSet
from flowstamp.figures.tables import TableError

BLIND: dict[str, Any] = {"control": "blind", "rtt": "100ms", "q_max": "64kB", "kappa": "3900B", "start": "2600B"}
BLIND |= {"packet": "1300B", "rtts": 30}


def curve(**table: Any) -> Mapping[str, Any]:
    return analytic.curve(table).at([])


def refusal(**table: Any) -> str:
    with pytest.raises(TableError) as told:
        analytic.curve(table)
    return f"{told.value.way[0]}: {str(told.value).removeprefix('expected ')}"


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"control": "bode"}, "control: one of response, margins, border, trajectory, settling, windows, blind"),
        ({"control": "margins", "alpha": 0.4, "beta": 0.2, "gamma": 1}, "gamma: one of the keys alpha, "),
        ({"control": "margins", "alpha": "0.4", "beta": 0.2}, "alpha: numbers from 1e-09, a list"),
        ({"control": "margins", "alpha": True, "beta": 0.2}, "alpha: numbers"),
        ({"control": "margins", "alpha": [], "beta": 0.2}, "alpha: numbers"),
        ({"control": "margins", "alpha": 0.4, "beta": "theorem"}, "beta: numbers"),
        ({"control": "margins", "alpha": 0.4, "beta": math.nan}, "beta: numbers"),
        ({"control": "margins", "alpha": 0.4}, "beta: numbers"),
        ({"control": "margins", "alpha": 0.4, "beta": 0.2, "rtt": "80"}, "rtt: "),
        ({"control": "margins", "alpha": 0.4, "beta": 0.2, "rtt": 80}, "rtt: a time above 0"),
        ({"control": "margins", "alpha": {"from": 1, "to": 0, "steps": 3}, "beta": 0.2}, "alpha: { from = 0.1"),
        ({"control": "margins", "alpha": {"from": 0, "to": 1, "steps": 1}, "beta": 0.2}, "alpha: { from = 0.1"),
        ({"control": "margins", "alpha": {"from": 0.1, "to": 1, "step": 3}, "beta": 0.2}, "alpha: { from = 0.1"),
        ({"control": "border", "by": "root locus", "beta": 0.3}, "by: one of bode, nyquist, pade"),
        ({"control": "trajectory", "alpha": 0.4, "beta": 0.2, "start": 1, "rtts": 9}, "start: two numbers"),
        ({"control": "trajectory", "alpha": [0.4], "beta": 0.2, "rtts": 9}, "alpha: a number from 0"),
        ({"control": "settling", "alpha": 0.4, "beta": 0.2, "capacity": ["1Gbps", 3]}, "capacity: a rate above 0"),
        ({"control": "settling", "alpha": 0.4, "beta": 0.2, "buffer_bdp": 0}, "buffer_bdp: numbers from 0.001"),
        (
            {"control": "settling", "model": "linear", "alpha": 1, "beta": 1, "buffer_bdp": 1},
            "buffer_bdp: one of the keys",
        ),
        ({"control": "windows", "kappa": 0.25, "start": [1], "links": [{"carries": 9}], "rtts": 9}, "links: tables"),
        ({"control": "windows", "kappa": 0.25, "start": ["1"], "rtts": 9}, "start: one to four windows"),
        (
            {"control": "windows", "kappa": 0.25, "start": [1], "links": [{"carries": 9, "flows": [1]}]},
            "numbered from 0",
        ),
        ({"control": "windows", "kappa": 0.25, "start": [1, 2], "links": [{"carries": 9, "flows": [1]}]}, "2 flows"),
        (
            {"control": "trajectory", "alpha": 0.4, "beta": 0.2, "rtts": 9, "steps": 1e9},
            "steps: a whole number from 10",
        ),
        ({"control": "trajectory", "alpha": 0.4, "beta": 0.2, "rtts": 9, "error": "8kbps"}, "error: one of the keys"),
    ],
)
def test_a_table_that_names_no_curve_is_refused_by_its_key(table: dict[str, Any], told: str) -> None:
    assert told in refusal(**table)


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        (
            "[[draw.panels]]",
            '[[draw.panels]]\nxlabel = "Time"',
            'draw.panels[0].xlabel = "Time": expected no such key here',
        ),
        (
            "beta = 0.6\n",
            "beta = 0.6\ngamma = 1\n",
            "runs[none].theory.gamma = 1: expected one of the keys beta",
        ),
        ('along = "edge_alpha"', 'along = "alphas"', 'draw.along = "alphas": expected one of alpha'),
        ('along = "edge_alpha"\n', "", "draw.along is missing; expected one of alpha"),
    ],
)
def test_a_figure_that_names_no_curve_is_refused_by_file_and_key(tmp_path: Path, was: str, now: str, told: str) -> None:
    text = available()["R5.2"].read_text(encoding="utf-8")
    assert was in text
    path = tmp_path / "R5.2.toml"
    path.write_text(text.replace(was, now, 1), encoding="utf-8")
    with pytest.raises(FigureError) as refused:
        read(path)
    assert f"{path}: {told}" in str(refused.value)


def test_what_is_simulated_does_not_stand_against_a_curve(tmp_path: Path) -> None:
    text = available()["R2.3"].read_text(encoding="utf-8").replace('x = "time"', 'x = "curve"\nalong = "omega"')
    path = tmp_path / "R2.3.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FigureError, match=r"R2.3.toml: draw.panels\[0\].runs .*expected of a panel against a curve"):
        read(path)


def test_all_measures_of_all_kinds_can_be_named() -> None:
    tables: list[dict[str, Any]] = [
        {"control": "response", "alpha": 0.4, "beta": 0.2, "omega": [1.0, 2.0]},
        {"control": "margins", "alpha": 0.4, "beta": [0.1, 0.2]},
        {"control": "border", "by": "bode", "beta": 0.3},
        {"control": "border", "by": "rcp", "beta": 0.3, "capacity": "1Gbps", "rtt": "1s", "flows": 9, "within": 0.5},
        {"control": "trajectory", "model": "linear", "alpha": 0.4, "beta": 0.2, "rtts": 9, "error": "8kbps"},
        {"control": "settling", "alpha": 0.4, "beta": 0.2, "capacity": "1Gbps", "rtt": "1s", "flows": 9}
        | {"buffer_bdp": 0.5},
        {"control": "windows", "kappa": 0.25, "start": [1, 2, 3, 4], "rtts": 9}
        | {"links": [{"carries": 9, "flows": [0, 1, 2, 3]}], "adjusts": {"step": 0.01, "every": 1}},
        BLIND | {"capacity": "2Mbps"},
    ]
    found = set().union(*(curve(**table) for table in tables))
    assert found == set(MEASURES)


def test_borders_are_the_closed_form_by_every_method() -> None:
    theta = np.array([0.9, 1.2, 1.4])
    for by, within in (("bode", 1e-7), ("nyquist", 1e-7)):
        found = curve(control="border", by=by, beta=(theta**2 * np.cos(theta)).tolist(), within=within)
        edges = np.where(theta < 1.0769, found["alpha_least"], found["alpha_most"])
        assert edges == pytest.approx(theta * np.sin(theta), abs=1e-6)


def test_borders_by_proof_are_where_proofs_end() -> None:
    found = curve(control="border", by="proof", beta=[0.3, 1.0], within=1e-3)
    assert list(found["beta"]) == [0.3, 1.0]
    for beta, most in zip(found["beta"], found["alpha_most"], strict=True):
        assert stability.proved([0.02, most, most + 2e-3], beta).tolist() == [True, True, False]


def test_borders_leave_out_what_is_nowhere_stable() -> None:
    found = curve(control="border", by="bode", beta=[0.3, 0.6])
    assert list(found["beta"]) == [0.3]
    assert found["edge_alpha"].size == 2


def test_margins_are_of_every_combination() -> None:
    found = curve(control="margins", alpha=[0.2, 0.4], beta=[0.1, 0.2, 0.3], rtt=["1ms", "1s"])
    assert found["alpha"].size == 12
    assert found["phase_margin_deg"][::2] == pytest.approx(found["phase_margin_deg"][1::2])
    on_the_curve = curve(control="margins", alpha=[0.2, 0.4], beta="sqrt(2) alpha^2")
    assert on_the_curve["beta"] == pytest.approx([0.04 * math.sqrt(2), 0.16 * math.sqrt(2)])
    assert on_the_curve["gain_crossing"] == pytest.approx(on_the_curve["beta"] / on_the_curve["alpha"])


def test_a_constant_capacity_error_makes_a_queue() -> None:
    """Abrantes 2006, equation 5, and the loop's gain at equilibrium."""
    found = curve(
        control="trajectory",
        model="linear",
        alpha=0.4,
        beta=0.2263,
        rtt="250ms",
        rtts=200,
        start=[1.0, 0.0],
        error="8kbps",
    )
    assert found["queue_bytes"][-1] == pytest.approx(0.4 / 0.2263 * 0.25 * 1000, rel=1e-6)
    gain = curve(control="response", loop="queue", alpha=0.4, beta=0.2263, rtt="250ms", omega=[1e-4])["gain"]
    assert gain[0] == pytest.approx(0.4 / 0.2263 * 0.25, rel=1e-4)


def test_vcps_windows_rest_above_the_target_by_what_flows_add() -> None:
    """Xia 2008, theorem 1: w* = gamma C T + N alpha / kappa."""
    links = [{"carries": 200, "flows": [0, 1]}]
    found = curve(control="windows", kappa=[0.25, 0.5], start=[1, 90], links=links, carries=[100, 400], rtts=3000)
    assert found["rest"] == pytest.approx([108, 408, 104, 404])
    assert found["swing"] == pytest.approx(0.0, abs=1e-9)


def test_of_many_equal_flows_each_has_the_window_of_one_on_its_part_of_the_links() -> None:
    links: list[dict[str, Any]] = [{"carries": 100, "flows": [0, 1]}, {"carries": 300, "flows": [0, 2]}]
    three: dict[str, Any] = {"control": "windows", "kappa": 0.25, "start": [1, 50, 200], "rtts": 3000}
    many = curve(**three, links=links, flows=[1, 5])
    one = curve(**three, links=[{**link, "carries": link["carries"] / 5} for link in links])
    alone = curve(**three, links=links)
    assert many["rest"] == pytest.approx([alone["rest"][0], 5 * one["rest"][0]])
    assert many["window_3"] == pytest.approx(alone["window_3"])
    assert list(many["flows"]) == [1, 5]
    # Theorem 1: N flows rest at gamma C T + N alpha / kappa.
    shared = curve(
        control="windows", kappa=0.5, start=[9], flows=[1, 7], links=[{"carries": 70, "flows": [0]}], rtts=900
    )
    assert shared["rest"] == pytest.approx([72, 84])


def test_a_spare_capacity_is_claimed_and_an_over_used_one_released_as_equation_9_says() -> None:
    """Xia 2008, theorem 3: of the model. In its first RTT it knows the load of the start alone."""
    kappa, alpha, links = 0.25, 1.0, [{"carries": 1, "flows": [0]}]
    spare = curve(
        control="windows", kappa=kappa, start=[2], links=links, carries=[25, 100], rtts=2, steps=20001, alpha=alpha
    )
    for carries, after in zip(spare["carries"], spare["claimed_after_rtts"], strict=True):
        rate = kappa * (carries / 2 - 1)
        assert after == pytest.approx(math.log((0.9 * carries + alpha / rate) / (2 + alpha / rate)) / rate, abs=2e-4)
    assert list(spare["released_after_rtts"]) == [0, 0]  # which is not over-used
    for kappa in (0.1, 0.5):
        over = curve(
            control="windows", kappa=kappa, start=[1e8], links=links, carries=[1e5, 5e4], rtts=120, steps=60001
        )
        halving = float(np.diff(over["released_after_rtts"])[0])
        assert halving == pytest.approx(math.log(2) / kappa, rel=3e-3)
    few = curve(control="windows", kappa=0.25, start=[90], links=links, carries=[9], rtts=100)
    assert np.isnan(few["released_after_rtts"]).all()  # it rests at 13, which is more than a tenth above


VCP = {"law": "vcp", "t_rho": "100ms"}


def probed(scenario: dict[str, Any]) -> RunSet:
    run = _flowstamp.Source(json.dumps(scenario), format="json").run()
    finished = Finished.of(run, flow_series=True, packet_bytes=1000.0, scenario=scenario)
    return RunSet("run", [finished], ["bottleneck"], "forward")


def test_over_use_lasts_until_the_load_is_below_one() -> None:
    """Four times the window that the router aims at, on a link that carries all of it: the RTT is the path's."""
    scenario: dict[str, Any] = {
        "duration": "10s",
        "header": "0B",
        "dumbbell": {"rate": "32Mbps", "access_rate": "32Mbps", "rtt": "100ms", "router": {**VCP, "gamma": 0.25}},
        "flows": [{"name": "forward", "law": VCP, "transport": {"initial_window": 400}}],
        "probes": {"every": "100ms", "flows": True, "groups": False, "laws": True},
    }
    run = probed(scenario)
    [after] = run.measure("released_rtts")
    times, load = run.over_time("load_factor")
    over = (times > 0.05) & (times < 0.1 * after + 0.05)
    assert load[over].min() >= 1.0 > load[over.sum()]
    half = [{"name": "forward", "law": VCP, "transport": {"initial_window": 200}}]
    [sooner] = probed({**scenario, "flows": half}).measure("released_rtts")
    assert after - sooner == pytest.approx(2 * math.log(2) / math.log(8 / 7), abs=2)  # a cut, t_rho, an RTT of AI
    assert run.measure("released_own_rtts") == pytest.approx([after], rel=0.1)
    # Where a link falls to a quarter, RTTs are up to four times as long.
    fallen = {"rate": {"steps": [["0s", "32Mbps"], ["2s", "8Mbps"]]}, "access_rate": "32Mbps", "buffer": "1MB"}
    link = {**fallen, "rtt": "100ms", "router": VCP}
    flow = {"name": "forward", "law": VCP, "transport": {"initial_window": 300}}
    falls = probed({**scenario, "dumbbell": link, "flows": [flow]})
    [after], [own] = falls.measure("released_rtts"), falls.measure("released_own_rtts")
    assert after / 4 < own < 0.7 * after
    with pytest.raises(ValueError, match=r"probes\.laws"):
        probed({**scenario, "probes": {"every": "100ms", "flows": True}}).measure("released_rtts")
    with pytest.raises(ValueError, match=r"probes\.flows"):
        probed({**scenario, "probes": {"every": "100ms", "laws": True}}).measure("released_own_rtts")
    spare = {**scenario, "flows": [{"name": "forward", "law": VCP, "size": "1kB"}]}
    assert np.isnan(probed(spare).measure("released_rtts")).all()


def test_vcps_adjusted_target_brings_the_use_to_it() -> None:
    """Xia 2008, equation 14: to within a step of U*, 1 here, by `gamma = 1 - N alpha / (kappa C T)`."""
    table = {"control": "windows", "kappa": [0.25, 0.5], "start": [1, 90], "carries": [50, 200], "rtts": 2000}
    table |= {"links": [{"carries": 100, "flows": [0, 1]}], "adjusts": {"step": 0.01, "every": 40}}
    found = curve(**table)
    assert found["rest_used"] == pytest.approx(1.0, abs=0.01)
    assert found["rest_target"] == pytest.approx([0.84, 0.96, 0.92, 0.98], abs=0.01)
    assert (found["target_moves"] < 0.021).all()
    assert (found["target_moves"] > 0.009).all()
    assert found["target"][0] == 1.0
    assert found["used"][-1] == pytest.approx(1.0, abs=0.015)
    for wrong in ({"step": 0.01}, {"step": 0.0, "every": 9}, {"step": 0.01, "every": 9, "to": 1}, 3):
        assert refusal(**table | {"adjusts": wrong}) == "adjusts: a table with step and every, numbers above 0"


def test_a_blind_routers_link_fills_at_the_figures_points() -> None:
    """Figure 4's peak, and equation 7's time, at capacities and chis that the figure varies."""
    capacities = [5.0, 5.5, 6.0]
    found = analytic.curve(BLIND | {"over": "capacity", "chi": 0.1}).at(capacities)
    for n, mbps in enumerate(capacities):
        one = stability_blind.fill(f"{mbps}Mbps", "100ms", q_max="64kB", kappa="3900B", start="2600B", chi=0.1, rtts=30)
        assert found["peak_bytes"][n] == one.peak_bytes == 1300 * found["max_queue_packets"][n]
        assert found["reached_90_rtts"][n] == one.reached_rtts(0.9)
    over_chi = analytic.curve(BLIND | {"over": "chi", "capacity": "5Mbps"}).at([0.1, 0.2])
    assert over_chi["peak_bytes"][0] == found["peak_bytes"][0]
    # 0.9 BDP less what is sent at first, by 6.4 and 12.8 kB in an RTT, and two RTTs before the first of it is back.
    assert over_chi["reached_90_rtts"] == pytest.approx([2 + 53.65 / 6.4, 2 + 53.65 / 12.8], abs=1.0)
    at_once = analytic.curve(BLIND | {"capacity": "5.12Mbps", "chi": 0.1, "senders": "at_once", "kappa": "1B"})
    figure_4 = analytic.curve(
        BLIND | {"capacity": "5.12Mbps", "chi": 0.1, "senders": "at_once", "kappa": "1B", "start": "12799B"}
    ).at([])
    # 64 kB are what the link carries in an RTT: it is as good as full after four intervals.
    assert figure_4["peak_share"] == pytest.approx([0.1 * (5 - 0.4 - 0.2263)], rel=1e-3)
    assert figure_4["peak_after_rtts"] == [2.0]
    assert at_once.at([])["peak_share"] < figure_4["peak_share"]
    assert refusal(**BLIND | {"capacity": "5Mbps", "senders": "slow"}) == "senders: one of windows, rates, at_once"
    assert refusal(**BLIND | {"capacity": "5Mbps", "over": "rtt"}) == "over: one of capacity, chi, nothing"
    with pytest.raises(TheoryError, match=r"q_max is .* of the bandwidth-delay product; it must be above 0"):
        stability_blind.fill("1kbps", "1ms", q_max="64kB", kappa="3900B", start="2600B")
    with pytest.raises(TheoryError, match="rtts is 0; it must be 1 to 100000"):
        stability_blind.fill("1Mbps", "1ms", q_max="64kB", kappa="3900B", start="2600B", rtts=0)


def test_how_soon_a_link_is_full_and_flows_are_even_is_counted_in_path_rtts() -> None:
    scenario = {
        "duration": "20s",
        "dumbbell": {"rate": "10Mbps", "rtt": "100ms", "buffer": "1MB", "router": "xcp"},
        "flows": [{"name": "forward", "law": "xcp"}, {"name": "second", "law": "xcp", "start": "5s"}],
        "probes": {"every": "100ms", "flows": True, "groups": False},
    }
    one = probed(scenario)
    times, used = one.over_time("utilization")
    first = times[np.flatnonzero(used >= 0.9)[0]]
    assert one.measure("reached_90_rtts") == pytest.approx([first / 0.1])
    assert one.measure("reached_75_rtts")[0] <= one.measure("reached_90_rtts")[0]
    [after] = one.measure("even_999_rtts")
    windows = [
        one.window_samples(flow, 5.0 + 0.1 * (after - 2), 5.0 + 0.1 * (after + 1)) for flow in ("forward.0", "second.0")
    ]
    apart = np.abs(np.subtract(*windows)) / np.add(*windows)
    even = math.sqrt(1 / 0.999 - 1)  # Jain's index of two
    assert apart[0] > even > apart[1:].max()
    assert 5 < after < 60
    alone = {**scenario, "flows": [{"name": "forward", "law": "xcp", "size": "1kB"}]}
    assert np.isnan(probed(alone).measure("reached_90_rtts")).all()


def test_flows_that_look_even_between_their_cuts_are_not() -> None:
    """VCP: one has cut and the other has not yet, so that for a sample the larger window is no larger."""
    scenario = {
        "duration": "60s",
        "header": "0B",
        "dumbbell": {"rate": "8Mbps", "rtt": "200ms", "buffer": "2BDP", "router": {"law": "vcp", "t_rho": "200ms"}},
        "flows": [
            {"name": name, "law": {"law": "vcp", "t_rho": "200ms"}, "transport": {"initial_window": window}}
            for name, window in (("forward", 95), ("second", 72))
        ],
        "probes": {"every": "200ms", "flows": True, "groups": False},
    }
    run = probed(scenario)
    times, first = run.many_over_time("flow_cwnd_packets")["forward.0"]
    _, second = run.many_over_time("flow_cwnd_packets")["second.0"]
    apart = np.abs(first - second) / (first + second)
    even = apart <= math.sqrt(1 / 0.999 - 1)
    [after] = run.measure("even_999_rtts")
    assert times[np.flatnonzero(even & (times > 0.3))[0]] < 0.2 * after - 0.1
    later = even[times > 0.2 * after - 0.1]
    assert later[:2].all()
    assert later.mean() > 0.8
