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

from flowstamp import _flowstamp, stability
from flowstamp.figures import FigureError, analytic, available, read
from flowstamp.figures.control import MEASURES
from flowstamp.figures.measures import Finished, RunSet
from flowstamp.figures.tables import TheoryTableError


def curve(**table: Any) -> Mapping[str, Any]:
    return analytic.curve(table).at([])


def refusal(**table: Any) -> str:
    with pytest.raises(TheoryTableError) as told:
        analytic.curve(table)
    return f"{told.value.key}: {told.value}"


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"control": "bode"}, "control: one of response, margins, border, trajectory, settling, windows"),
        ({"control": "margins", "alpha": 0.4, "beta": 0.2, "gamma": 1}, "gamma: no such key here, but one of alpha, "),
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
        ({"control": "trajectory", "alpha": 0.4, "beta": 0.2, "rtts": 9, "error": "8kbps"}, "error: no such key"),
    ],
)
def test_a_table_that_names_no_curve_is_refused_by_its_key(table: dict[str, Any], told: str) -> None:
    assert told in refusal(**table)


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        ("[[draw.panels]]", "[[draw.panels]]\nxlabel = 3", "draw.panels[0].xlabel = 3: expected no such key here"),
        (
            "beta = 0.6\n",
            "beta = 0.6\ngamma = 1\n",
            "runs[none].theory.gamma = 1: expected no such key here, but one of beta",
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
        {"control": "settling", "alpha": 0.4, "beta": 0.2, "capacity": "1Gbps", "rtt": "1s", "flows": 9},
        {"control": "windows", "kappa": 0.25, "start": [1, 2, 3, 4], "rtts": 9}
        | {"links": [{"carries": 9, "flows": [0, 1, 2, 3]}]},
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
    """Abrantes 2006, equation 5, and the loop's gain at rest."""
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


def test_how_soon_a_link_is_full_and_flows_are_even_is_counted_in_path_rtts() -> None:
    scenario = {
        "duration": "20s",
        "dumbbell": {"rate": "10Mbps", "rtt": "100ms", "buffer": "1MB", "router": "xcp"},
        "flows": [{"name": "forward", "law": "xcp"}, {"name": "second", "law": "xcp", "start": "5s"}],
        "probes": {"every": "100ms", "flows": True, "groups": False},
    }
    run = _flowstamp.run(json.dumps(scenario), format="json")
    one = RunSet(
        "xcp", [Finished.of(run, flow_series=True, packet_bytes=1000.0, scenario=scenario)], ["bottleneck"], "forward"
    )
    times, used = one.over_time("utilization")
    first = times[np.flatnonzero(used >= 0.9)[0]]
    assert one.measure("reached_90_rtts") == pytest.approx([first / 0.1])
    assert one.measure("reached_75_rtts")[0] <= one.measure("reached_90_rtts")[0]
    times, even = one.over_time("fairness_index")
    fair = times[(even >= 0.99) & (times > 5.15)][0]
    assert one.measure("fair_99_rtts") == pytest.approx([(fair - 5.0) / 0.1])
    assert 5 < one.measure("fair_99_rtts")[0] < 60
    alone = {**scenario, "flows": [{"name": "forward", "law": "xcp", "size": "1kB"}]}
    run = _flowstamp.run(json.dumps(alone), format="json")
    idle = RunSet(
        "idle", [Finished.of(run, flow_series=True, packet_bytes=1000.0, scenario=alone)], ["bottleneck"], "forward"
    )
    assert np.isnan(idle.measure("reached_90_rtts")).all()
