# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The figures' files, the language of claims, and the short version of every figure."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from flowstamp import plot, style
from flowstamp.errors import FlowstampError, ScenarioError
from flowstamp.figures import FigureError, available, cli_figure, fct, load, pictures, read
from flowstamp.figures import runner as runner_module
from flowstamp.figures.analytic import Computed
from flowstamp.figures.claims import Bound, Expression, ExpressionError
from flowstamp.figures.fct import FlowTimes
from flowstamp.figures.measures import MANY, Finished, RunSet
from flowstamp.figures.memory import Memory
from flowstamp.figures.pictures import has_legend, styles
from flowstamp.figures.runner import Runner, _after
from flowstamp.figures.schedule import Job, Queue, Run, _Room
from flowstamp.figures.spec import FigureSpec, RunSpec
from flowstamp.figures.verdicts import Given, Verdict, computed


class Fixed:
    """A run whose only measure is given."""

    def __init__(self, values: Mapping[str, list[float]]) -> None:
        self.values = values

    def measure(self, name: str) -> NDArray[np.float64]:
        """The given values."""
        return np.array(self.values[name])


def value(text: str, x: list[float] | None = None, **drops: list[float]) -> float:
    runs = {name: Fixed({"drops": v}) for name, v in drops.items()}
    return float(Expression(text, runs, ["drops"]).evaluate(runs, np.array(x or [])))  # type: ignore[arg-type]


def test_every_file_loads_and_is_listed() -> None:
    for name, path in available().items():
        figure = read(path)
        assert figure.id == name
        assert figure.claims
        assert figure.fast.reason.strip()
        figure.fast_version().x()


def test_expressions_measure() -> None:
    assert value("sum(a.drops[x <= 2])", [1, 2, 3], a=[1, 10, 100]) == 11
    assert value("max(a.drops) / min(b.drops)", a=[1, 8], b=[4, 2]) == 4
    assert value("trend(x, a.drops)", [1, 10, 100], a=[2, 20, 200]) == pytest.approx(1)
    assert value("jain(a.drops)", a=[1, 1, 0, 0]) == 0.5
    assert value("minima(a.drops)", a=[3, 1, 2, 0, 5]) == 2
    assert value("minima(a.drops)", a=[3, 2, 1]) == value("minima(a.drops)", a=[1, 1, 2]) == 1
    assert value("where_least(a.drops, b.drops)", a=[3, 1, 2], b=[7, 8, 9]) == 8


@pytest.mark.parametrize(
    "text",
    [
        "sum(a.drops[x > 9])",
        "count(a.drops[x > 9])",
        "minima(a.drops[x > 9])",
        "max(a.drops[x > 9] - 1)",
        "jain(a.drops[x > 9])",
        "sum(changes(a.drops[x == 1]))",
        "sum(none.drops)",
        "sum(a.drops[unknown.drops > 0])",
    ],
)
def test_what_selects_nothing_has_no_value(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"selects nothing|compares a value that is not a number"):
        value(text, [1, 2, 3], a=[0, 0, 0], none=[], unknown=[1, float("nan"), 1])


@pytest.mark.parametrize(
    "text", ["count(a.drops)", "minima(a.drops)", "where_least(a.drops, x)", "max(0, min(a.drops))"]
)
def test_no_function_passes_over_what_is_not_a_number(text: str) -> None:
    assert np.isnan(value(text, [1, 2, 3], a=[1, float("nan"), 3]))


def test_nothing_was_above_a_value_all_the_time() -> None:
    run: Any = Samples(np.array([1.0, 1.0]))
    expression = Expression("above_after(a, 'utilization', 0.9, 0, 2)", ["a"], [])
    assert expression.evaluate({"a": run}, np.array([])) == 0
    for samples in ([], [1.0, float("nan")]):
        run.values = np.array(samples)
        assert np.isnan(expression.evaluate({"a": run}, np.array([])))


class Samples:
    """A run whose samples are given."""

    def __init__(self, values: NDArray[np.float64]) -> None:
        self.values = values

    def samples(self, *_: object) -> NDArray[np.float64]:
        """The given values."""
        return self.values

    def sample_s(self) -> float:
        """The sampling interval."""
        return 1.0


def finished(arrivals: int, drops: list[float], flows: int = 1) -> RunSet:
    """A run of one link."""
    link = {"arrivals": arrivals, "drop_rate": 0.0, "utilization": 0.0, "mean_queue_bytes": 0.0}
    summary = {
        "links": {"bottleneck": link},
        "access": {"drops": 0},
        "total": {"drop_rate": 0.0, "drops": 5},
        "groups": {"a": {"flows": flows}},
    }
    series = np.array(drops)
    times = FlowTimes(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0, np.int16), {}, 0.0)
    run = Finished(summary, {"bottleneck": {"drops": (series, series)}}, {}, {}, 1000.0, times)
    return RunSet("a", [run], ["bottleneck"], "a")


def test_a_link_that_nothing_reached_drops_nothing_and_says_nothing() -> None:
    names = ("drops", "all_drops", "drop_rate", "all_drop_rate", "mean_queue_packets", "utilization")
    for name in names:
        assert finished(10, [0.0, 0.0]).measure(name) == [0]
        with pytest.raises(ValueError, match="no packet reached"):
            finished(0, [0.0, 0.0]).measure(name)
    for name in ("drops", "all_drops"):
        with pytest.raises(ValueError, match="were not sampled"):
            finished(10, []).measure(name)
    for name in ("drops_data", "drops_acks"):
        with pytest.raises(ValueError, match="only the simulator tells"):
            finished(10, [0.0]).measure(name)
    assert finished(10, []).switches() == 0
    with pytest.raises(ValueError, match="no flows"):
        finished(10, [], flows=0).switches()


def test_flow_times_of_no_flow_are_not_a_number() -> None:
    runs: Any = finished(10, [])
    runs.runs[0].summary.update({"warmup_s": 0.0, "duration_s": 1.0})
    assert all(np.isnan(runs.measure(name)) for name in fct.MEASURES)


def test_a_figure_is_known_by_all_its_names() -> None:
    assert load("R4.19").id == "R4.17"
    names = [name for path in available().values() for spec in [read(path)] for name in (spec.id, *spec.also)]
    assert len(set(names)) == len(names)
    with pytest.raises(FigureError, match=r"R4\.99"):
        load("R4.99")


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "a.__class__",
        "a.drops.real",
        "open('x')",
        "(lambda: 1)()",
        "[d for d in a.drops]",
        "b.drops",
        "a.nothing",
        "max(a.drops, key=1)",
        "x.drops",
        "True",
        "2 ** a.drops",
        "1 +",
        "1 if x else 2",
        "trend(x)",
        "9" * 600,
    ],
)
def test_expressions_refuse(text: str) -> None:
    with pytest.raises(ExpressionError):
        Expression(text, ["a"], ["drops"])


def test_packets_are_the_sum_of_a_flows_throughput() -> None:
    t = np.array([1.0, 2.0, 3.0])
    times = FlowTimes(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0, np.int16), {}, 0.0)
    links = {"bottleneck": {"utilization": (t, t)}}
    many = {
        "flow_packets": {"a.0": (t, np.array([0.0, 8e6, 16e6]))}
    }  # 1000 packets of 1000 bytes in the second interval, then 2000
    runs = RunSet("a", [Finished({}, links, many, {}, 1000.0, times)], ["bottleneck"], "a")
    assert [runs.packets("a.0", at) for at in (0.5, 1.0, 2.0, 2.9, 9.0)] == [0, 0, 1000, 1000, 3000]
    with pytest.raises(ValueError, match="not probed"):
        runs.packets("a.1", 1.0)


def test_a_panel_of_a_flow_that_is_not_there_is_refused(tmp_path: Path) -> None:
    folder = changed(tmp_path, ('y = "flow_mbps"', 'y = "flow_mbps"\nflow = "nobody.0"'))
    with pytest.raises(FigureError, match="nobody"):
        Runner(directory=folder, fast=True).run(read(folder / "X16.toml"), tmp_path / "out")


def test_a_claim_measures_one_number() -> None:
    with pytest.raises(ExpressionError, match="2 numbers"):
        value("a.drops", a=[1, 2])


@pytest.mark.parametrize(
    ("expected", "tolerance", "measured", "holds"),
    [
        (">= 0.95", "0", 0.95, True),
        (">= 0.95", "0", 0.9499, False),
        ("== 5", "5%", 5.25, True),
        ("== 5", "5%", 5.26, False),
        ("> 0", "0", 0.0, False),
        ("<= 0.4", "0.2", 0.6, True),
        ("== 0", "0", None, False),
        (">= 1", "0", float("nan"), False),
        (">= 10", "0", float("inf"), False),
        ("<= 0.3", "0", float("-inf"), False),
    ],
)
def test_bounds(expected: str, tolerance: str, measured: float | None, holds: bool) -> None:
    assert Bound.parse(expected, tolerance).holds(measured) is holds


SMALL = Path(__file__).parent / "data" / "X16.toml"


def changed(tmp_path: Path, *changes: tuple[str, str]) -> Path:
    """The folder of a copy of a small figure with some text replaced."""
    text = SMALL.read_text()
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    (tmp_path / "X16.toml").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('id = "X16"', 'id = "X17"', 'id = "X17": expected the name of the file'),
        ('tolerance = "10%"', 'tolerance = "some"', 'tolerance = "some"'),
        ('expected = "== 1"', 'expected = "about 1"', 'expected = "about 1"'),
        ('y = "flow_mbps"', 'y = "flow_kbps"', 'y = "flow_kbps": expected one of'),
        ("[draw]", "[draw]\ncolour = 1", "draw.colour = 1: expected one of the keys"),
        ("[draw]", "[draw]\nxlim = [1, 2, 3]", "draw.xlim = [1, 2, 3]: expected the least"),
    ],
)
def test_bad_files_name_file_key_and_value(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(FigureError) as error:
        read(changed(tmp_path, (old, new)) / "X16.toml")
    assert message in str(error.value)
    assert "X16.toml" in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_figure(tmp_path: Path) -> None:
    with pytest.raises(
        FigureError, match=r'"X99" does not exist; did you mean X9, X9-long or X8\? flowstamp figure list'
    ):
        cli_figure(["X99"], out=tmp_path)
    with pytest.raises(FigureError, match=r'no figure is named like "Q\*"; flowstamp figure list'):
        cli_figure(["Q*"], out=tmp_path)


def test_patterns_and_letters_of_either_case_name_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli_figure(["list", "x1?", "r4.18"], json=True) == 0
    listed = [figure["id"] for figure in json.loads(capsys.readouterr().out)["figures"]]
    assert listed == ["X10", "X11", "X12", "X13", "X14", "X16", "R4.17"]


def test_each_figure_is_listed_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli_figure(["list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(available())


def run_json(
    capsys: pytest.CaptureFixture[str], ids: list[str], out: Path, directory: Path | None = None
) -> tuple[int, dict[str, Any]]:
    code = cli_figure(ids, fast=True, json=True, out=out, directory=directory)
    return code, json.loads(capsys.readouterr().out)


def test_a_claim_can_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = changed(tmp_path, ('expected = "== 1"', 'expected = "== 3"'))
    code, document = run_json(capsys, ["X16"], tmp_path / "out", folder)
    assert code == 1
    assert document["figures"][0]["claims"][0]["holds"] is False


def test_an_explained_claim_differs_and_still_does_not_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = changed(tmp_path, ('expected = "== 1"', 'expected = "== 3"\nexplanation = "a test"'))
    code, document = run_json(capsys, ["X16"], tmp_path / "out", folder)
    claim = document["figures"][0]["claims"][0]
    assert (code, claim["status"], claim["holds"], claim["explanation"]) == (0, "differs", False, "a test")


@pytest.mark.parametrize(
    "measured", ["0 * throughput(xcp, 'rtt_20_ms.0', 90, 99)", "1 / (x[0] - 1)", "sum(xcp.drops[x > 9])"]
)
def test_no_explanation_covers_what_is_no_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], measured: str
) -> None:
    """Not a number, infinity, and the sum of nothing: all that might hold or be explained."""
    begin = """throughput(xcp, "rtt_20_ms.0", first_end(xcp) - 1, first_end(xcp)) /"""
    text = SMALL.read_text()
    [expression] = [line for line in text.splitlines() if line.startswith("expr =") and begin in line]
    bound = 'expected = ">= 1"\nexplanation = "a test"'
    folder = changed(tmp_path, (expression, f'expr = "{measured}"'), ('expected = "== 1"', bound))
    code, document = run_json(capsys, ["X16"], tmp_path / "out", folder)
    [claim] = document["figures"][0]["claims"]
    assert (code, claim["status"], claim["measured"], claim["holds"]) == (1, "fails", None, False)
    assert claim["problem"]


def test_runs_beyond_the_paper_are_not_reused() -> None:
    runner = Runner()
    spec = runner.figure("X-drop")
    others = [runner.figure(reuse.figure) for reuse in spec.reuse]
    runner.given = {one.id: Given(one, dict.fromkeys(one.names, finished(1, [])), {}, {}) for one in others}
    joined = [(part.figure.id, part.run.name) for part in runner._parts(spec, "xcp")]
    assert ("X6", "xcp") in joined
    assert ("X6", "one_way") not in joined
    # TCP runs up to 1 Gb/s alone, which is six of X4's eight points.
    [tcp] = [part.points for part in runner._parts(spec, "red") if part.figure.id == "X4"]
    assert tcp is not None
    assert tcp.tolist() == [True] * 6 + [False] * 2
    with pytest.raises(FigureError, match=r'no run of X4 or X5 or X6 or X7 or X8 or X9 is reused_as "rcp"'):
        runner._parts(spec, "rcp")


def test_progress_counts_the_runs_of_reused_figures() -> None:
    seen: list[tuple[float, ...]] = []
    progress = _after(lambda *told: seen.append(told), 4)
    assert progress is not None
    progress(1, 5, 0.5, 1.0, 7)
    assert seen == [(5, 9, 0.5, 1.0, 7)]


def test_a_run_has_values_of_its_own_at_each_point_and_keeps_them_in_the_short_version() -> None:
    figure = load("X4")
    [curve] = [run for run in figure.runs if run.name == "xcp_fast"]
    sets = dict(figure.job(curve, 3)[2])
    assert (sets["dumbbell.rate"], sets["dumbbell.access_rate"], sets["dumbbell.buffer"]) == (
        '"200Mbps"',
        '"2Gbps"',
        '"1BDP"',
    )
    with_it = replace(figure, fast=replace(figure.fast, without=()))
    [curve] = [run for run in with_it.fast_version().runs if run.name == "xcp_fast"]
    assert curve.vary["dumbbell.access_rate"] == ("200Mbps", "2Gbps", "10Gbps")
    short = figure.fast_version()
    left = {run.name for run in short.runs}
    assert "xcp_fast" not in left
    assert all(set(panel.runs) <= left for panel in short.draw.panels)


def test_what_the_short_version_sets_is_not_varied_by_a_run() -> None:
    figure = load("V8")
    [reno] = [run for run in figure.runs if run.name == "reno"]
    assert dict(figure.job(reno, 6)[2])["duration"] == '"36s"'
    assert dict(figure.job(reno, 2)[2])["duration"] == '"120s"'
    short = figure.fast_version()
    assert {dict(short.job(run, point)[2])["duration"] for run in short.runs for point in range(3)} == {'"60s"'}


def test_published_values_have_the_colour_of_their_curve() -> None:
    spec = load("V3")
    curves = [plot.Curve(name, np.ones(1), np.ones(1), style) for style, name in enumerate(("VCP", "XCP"))]
    marks = [mark for panel in spec.draw.panels for mark in pictures._published(spec, panel, curves)]
    colours = {mark.label: style.PUBLISHED_COLOURS[mark.style] for mark in marks}
    assert colours == {
        "paper, VCP: below 20%": style.COLOURS[0],
        "paper, XCP: 10% to 47%": style.COLOURS[1],
        "paper, other schemes: mostly 70% to 80%": "#000000",
        "paper, other schemes: above 4%": "#000000",
    }


def test_no_two_runs_of_a_panel_have_one_colour_where_there_are_enough() -> None:
    seen = 0
    for figure in map(load, available()):
        known = {run.name for run in figure.runs}
        for panel in figure.draw.panels:
            own = tuple(name for name in panel.runs if name in known)
            if len(own) > len(style.COLOURS):
                continue
            numbers = styles(figure, replace(panel, runs=own)).values()
            assert len({number % len(style.COLOURS) for number in numbers}) == len(own), (figure.id, panel.ylabel)
            seen += len(own)
    assert seen > 100


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"20000pkt", "40000pkt"]', '"20000pkt"]', "vary"),
        ('"200Mbps", "1Gbps"]\n', '"200Mbps", "3Gbps"]\n', 'points of vary alone, not "3Gbps"'),
        ('without = ["xcp_text", ', 'without = ["nobody", ', "without"),
        ("xcp-no-drops-text = ", "xcp-no-drops = ", "fast.skip to have xcp-no-drops-text, which is about xcp_text"),
    ],
)
def test_runs_of_their_own_values_or_left_out_are_checked(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = available()["X4"].read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "X4.toml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(FigureError, match=r"X4\.toml") as refused:
        load("X4", tmp_path)
    assert message in str(refused.value)


def test_drops_of_the_start_up_and_later_ones_are_all() -> None:
    runs = finished(10, [3.0, 4.0])
    later, early = runs.measure("later_drops"), runs.measure("startup_drops")
    assert (later.tolist(), (later + early).tolist()) == ([5.0], runs.measure("all_drops").tolist())


def test_a_groups_goodput_is_told_as_a_share_of_the_fair_one() -> None:
    """10 Mb/s and five flows are 2 Mb/s each: three flows with 6.6 Mb/s have 1.1 of that, two with 3 Mb/s 0.75."""
    bps = {"few": (2, 3e6), "many": (3, 6.6e6)}
    groups = {name: {"flows": n, "goodput_bps": rate, "capacity_bps": 10e6} for name, (n, rate) in bps.items()}
    run = Finished({"groups": groups}, {}, {}, {}, 1000.0, None)  # type: ignore[arg-type]
    runs = {"a": RunSet("a", [run, run], ["bottleneck"], "few")}
    assert runs["a"].measure("normalized") == pytest.approx([0.75, 0.75])
    expression = Expression('max(normalized(a, "many"))', runs, ["normalized"])
    assert expression.evaluate(runs, np.zeros(2)) == pytest.approx(1.1)
    with pytest.raises(ExpressionError, match='no group "none"; there are few, many'):
        Expression('max(normalized(a, "none"))', runs, ["normalized"]).evaluate(runs, np.zeros(2))


def test_packet_delays_are_those_of_the_bin_that_a_size_is_in() -> None:
    bins = [{"min_bytes": 0, "max_bytes": 3000, "p95": 0.02}, {"min_bytes": 3000, "max_bytes": 10_000, "p95": 0.03}]
    groups = {"web": {"packet_delay_s": {"bins": bins}}}
    run = Finished({"groups": groups}, {}, {}, {}, 1000.0, None)  # type: ignore[arg-type]
    runs = {"a": RunSet("a", [run, run], ["bottleneck"], "web")}

    def of(what: str) -> object:
        return Expression(f'max(packet_delay(a, "web", {what}))', runs, ["utilization"]).evaluate(runs, np.zeros(2))

    assert of('2, "p95"') == pytest.approx(20)
    assert of('5, "p95"') == pytest.approx(30)
    with pytest.raises(ExpressionError, match="no packet of a flow of 10 packets arrived of web"):
        of('10, "p95"')
    with pytest.raises(ExpressionError, match='"p96" is none of mean, p50'):
        of('5, "p96"')


def three_flows() -> RunSet:
    """Samples of each second: `a` sends all the time, `b` from 1 s to 3 s, and `c` is complete after 2.5 s."""
    t = np.array([1.0, 2.0, 3.0])
    rows = [
        {"group": "a", "index": 0, "start_s": 0.0, "end_s": None, "stop_s": None, "delivered_bytes": 1500000},
        {"group": "b-1", "index": 0, "start_s": 1.0, "end_s": None, "stop_s": 3.0, "delivered_bytes": 500000},
        {"group": "b-2", "index": 0, "start_s": 1.5, "end_s": 2.5, "stop_s": None, "delivered_bytes": 250000},
    ]
    rates = {"a.0": [4e6, 4e6, 4e6], "b-1.0": [0.0, 2e6, 2e6], "b-2.0": [0.0, 1e6, 1e6]}
    rtts = {"a.0": [0.0, 0.08, 0.1], "b-1.0": [0.0, 0.09, 0.12], "b-2.0": [0.0, 0.5, 0.5]}
    many = {
        "flow_mbps": {flow: (t, np.array(v)) for flow, v in rates.items()},
        "flow_rtt_ms": {flow: (t, np.array(v)) for flow, v in rtts.items()},
        "group_mbps": {},
    }
    summary = {"flows": rows, "groups": {"a": {}, "b-1": {}, "b-2": {}}, "warmup_s": 1.0, "duration_s": 3.0}
    run = Finished(summary, {"bottleneck": {"utilization": (t, t)}}, many, {}, 1000.0, None)  # type: ignore[arg-type]
    return RunSet("runs", [run], ["bottleneck"], "b-*")


def test_fairness_is_of_flows_that_are_active_all_the_second() -> None:
    runs = three_flows()
    # By hand: 4 alone; then 4 and 2: 6^2 / (2 (16 + 4)). The third begins or ends within each of its seconds.
    assert runs.samples("fairness_index", 0.0, 3.0) == pytest.approx([1.0, 0.9, 0.9])
    assert runs.samples("total_mbps", 0.0, 3.0) == pytest.approx([4.0, 7.0, 7.0])
    assert runs.measure("flow_index") == pytest.approx([0.0, 1.0])


def test_samples_of_all_flows_are_those_while_they_are_active() -> None:
    runs: Any = {"r": three_flows()}

    def found(text: str) -> Any:
        return Expression(text, runs, ["flow_rtt_ms"]).evaluate(runs, np.zeros(0))

    assert found('max(all_samples(r, "flow_rtt_ms", 0, 3))') == pytest.approx(120.0)
    assert found('min(all_samples(r, "flow_rtt_ms", 0, 3))') == pytest.approx(80.0)
    assert found('mean(all_samples(r, "flow_rtt_ms", 2, 3))') == pytest.approx((80 + 90 + 100 + 120) / 4)
    assert found('megabytes(r, "b-*") / megabytes(r, "a")') == pytest.approx(0.5)
    with pytest.raises(ExpressionError, match=r'no group is named "c\*"; there are a, b-1, b-2'):
        found('megabytes(r, "c*")')
    with pytest.raises(ExpressionError, match="is not sampled of flows"):
        found('mean(all_samples(r, "group_mbps", 0, 3))')


def test_a_density_is_a_share_of_all_samples() -> None:
    x, density = pictures.density(load("B13"), three_flows(), load("B13").draw.panels[0])
    # The four samples after warm-up lie between 75 and 400 ms.
    assert np.sum(density) * (x[1] - x[0]) == pytest.approx(1.0)
    assert x[np.flatnonzero(density)] == pytest.approx([80, 90, 100, 120], abs=(x[1] - x[0]) / 2)


WEB = """
id = "W"
title = "Flows that come and go"
paper = "none"
[scenario]
duration = "4s"
warmup = "1s"
[scenario.dumbbell]
rate = "10Mbps"
rtt = "20ms"
[[scenario.flows]]
name = "back"
law = "reno"
reverse = true
web = { load = 0.3, sizes = { distribution = "exponential", mean = "90kB" } }
[[scenario.flows]]
name = "forward"
law = "reno"
web = { load = 0.5, sizes = { distribution = "exponential", mean = "5kB" } }
[measure]
seeds = 3
[vary]
"dumbbell.rtt" = ["20ms", "40ms"]
[[runs]]
name = "tcp"
label = "TCP"
[draw]
x = "vary"
xlabel = "RTT (ms)"
[[draw.panels]]
y = "afct"
ylabel = "AFCT (s)"
published = [
  { label = "their table", x = [20], y = [0.1] },
  { label = "their words", times = "tcp", x = [20, 40, 80], y = [2, 3, 4] },
]
[[draw.panels]]
y = "afct"
ylabel = "AFCT (s)"
x = "size"
xlabel = "Size (packets)"
point = 1
[[claims]]
id = "a"
paper = "something"
expr = "max(tcp.afct)"
expected = "> 0"
tolerance = "0"
source = "none"
[[claims]]
id = "each"
paper = "the same of each seed"
expr = "max(tcp.afct)"
each_seed = true
expected = "> 0"
tolerance = "0"
source = "none"
[fast]
reason = "one seed"
seeds = 1
"""


def test_several_seeds_are_one_point(tmp_path: Path) -> None:
    """Means of each seed's values, an interval over them, all flows in bins, and the paper's numbers over ours."""
    (tmp_path / "W.toml").write_text(WEB)
    spec, runner = read(tmp_path / "W.toml"), Runner(directory=tmp_path)
    assert [dict(spec.job(spec.runs[0], 0, None, n)[2]).get("seed") for n in range(3)] == [None, "1001", "2001"]
    outcome = runner.run(spec, tmp_path / "out")
    together = runner.given["W"].runs["tcp"]
    alone = []
    for seed in (1, 1001, 2001):
        one = Runner(directory=tmp_path, fast=True, seed=seed)
        one.run(one.figure("W"), None)
        alone.append(one.given["W"].runs["tcp"])
    for name in ("afct", "utilization", "offered_load", "active"):
        each = np.array([run.measure(name) for run in alone])
        assert together.measure(name) == pytest.approx(each.mean(axis=0), rel=1e-12)
        # Student's t at 97.5% with two degrees of freedom.
        half = 4.302652729911275 * each.std(axis=0, ddof=1) / np.sqrt(3)
        assert together.half_widths(name) == pytest.approx(half, rel=1e-9)
    # Whichever group's flow came first, each has its own.
    for group, least, most in (("forward", 2, 40), ("back", 40, 400)):
        packets = together.runs[0].times.select(group, 0.0).packets
        assert packets.size == sum(run.runs[0].times.select(group, 0.0).packets.size for run in alone)
        assert least < packets.mean() < most
    largest = [float(run.measure("afct").max()) for run in alone]
    assert outcome.verdicts[1].measured == pytest.approx(np.mean(largest), rel=1e-12)
    assert together.runs[1].times.start_s.size == sum(run.runs[1].times.start_s.size for run in alone)
    x, y = together.by_rtt("afct", "for*", 1)
    assert x == pytest.approx([40.0])
    assert y == pytest.approx(together.measure("afct")[1:], rel=1e-12)
    with pytest.raises(ValueError, match='no group is named "nobody"; there are back, forward'):
        together.by_rtt("afct", "nobody", 0)
    mean_active = Expression("mean(active(r, 1, 4))", ["r"], [])
    alone_active = np.mean([run.measure("active") for run in alone])
    assert mean_active.evaluate({"r": together}, np.array([])) == pytest.approx(alone_active)
    *ours, theirs, multiples = pictures.curves(runner.given["W"], spec.draw.panels[0])
    assert [curve.label for curve in ours] == ["TCP"]
    assert (multiples.label, multiples.published) == ("their words", True)
    assert multiples.y == pytest.approx([2 * ours[0].y[0], 3 * ours[0].y[1], np.nan], nan_ok=True)
    assert (theirs.style, multiples.style) == (0, 1)
    assert ours[0].half is not None
    assert (theirs.label, theirs.published, list(theirs.y)) == ("their table", True, [0.1])
    document = json.loads((tmp_path / "out" / "W.fct.json").read_text())
    assert 0.4 < document["runs"][0]["offered_load"] < 0.6
    [by_size] = pictures.curves(runner.given["W"], spec.draw.panels[1])
    assert by_size.half is not None
    assert [None if np.isnan(half) else half for half in by_size.half] == [
        row["half_width_95_s"] for row in document["runs"][1]["bins"]
    ]
    assert np.isfinite(by_size.half).any()


@pytest.mark.parametrize(
    ("expr", "expected", "bounds"),
    [
        ("min(tcp.afct)", ">= 0.9", [(0.9, 0.9)]),
        ("last(tcp.afct[x <= 30])", "== 2", [(1.5, 2.5)]),
        ("max(abs(tcp.afct - 1))", "<= 0.1", []),
        ("mean(tcp.afct) / mean(tcp.utilization)", ">= 1", []),
        ("min(other.afct)", ">= 0.9", None),
        ("min(tcp.afct_small)", ">= 0.9", None),
        ("mean(afct(tcp, 1, 500))", ">= 0.9", []),
        ('mean(afct(tcp, "back"))', ">= 0.9", None),
    ],
)
def test_a_panel_shows_what_claims_expect_of_its_measure(
    expr: str, expected: str, bounds: list[tuple[float, float]] | None, tmp_path: Path
) -> None:
    (tmp_path / "W.toml").write_text(WEB)
    spec = read(tmp_path / "W.toml")
    claim = replace(spec.claims[0], expr=expr, expected=expected, tolerance="0.5" if "==" in expected else "0")
    found = pictures.claims_of(spec, spec.draw.panels[0], [Verdict(claim, (2.0,))])
    assert (pictures.bounds(found) if found else None) == bounds
    held = {"holds": True, "differs": False}
    assert pictures.corner(found, of_a_run=False) in ([None] if bounds is None else list(held.items()))
    both = [Verdict(claim, (claim.bound.value,)), Verdict(replace(claim, expected="> 1e9"), (2.0,))]
    assert pictures.corner(both, of_a_run=False) == ("1 of 2 hold", False)
    assert pictures.corner(both, of_a_run=True) == ("1 of 2 hold in this run", False)


@pytest.mark.parametrize(
    ("y", "expr", "about"),
    [
        ("drops", "sum(tcp.all_drops)", True),
        ("drops", "sum(tcp.later_drops)", False),
        ("drop_rate", "sum(tcp.all_drops)", True),
        ("drop_rate", "sum(other.all_drops)", False),
        ("mean_queue_packets", "max(tcp.buffer_share)", True),
        ("mean_queue_packets", "max(tcp.p90_buffer_share)", False),
        ("flow_mbps", "min(tcp.jain)", True),
        ("flow_mbps", "min(throughputs(tcp, 1, 2))", True),
        ("flow_mbps", "min(throughputs(other, 1, 2))", False),
    ],
)
def test_a_panel_shows_claims_that_name_its_measure_otherwise(y: str, expr: str, about: bool, tmp_path: Path) -> None:
    (tmp_path / "W.toml").write_text(WEB)
    spec = read(tmp_path / "W.toml")
    claim = replace(spec.claims[0], expr=expr, expected=">= 1", tolerance="0")
    panel = replace(spec.draw.panels[0], y=y)
    assert bool(pictures.claims_of(spec, panel, [Verdict(claim, (2.0,))])) is about


def test_no_panel_of_drops_is_silent_about_a_claim_on_drops() -> None:
    """X4's panel of drops said that all held, although XCP's drops differ from the paper."""
    memory = Memory.beside(available())
    spec = read(available()["X4"])
    verdicts = list(memory.all_verdicts(spec).values())
    [drops] = [panel for panel in spec.draw.panels if panel.y == "drops"]
    assert "xcp-no-drops" in {verdict.claim.id for verdict in pictures.claims_of(spec, drops, verdicts)}


def test_every_curve_is_named() -> None:
    """By its panel's legend or that of the panel above, whose styles it has; one alone over time needs no name."""
    for path in available().values():
        draw = read(path).draw
        for number, panel in enumerate(draw.panels):
            if has_legend(draw, number):
                continue
            marks = [mark.label for mark in panel.published]
            assert number > 0 or not marks, path.stem
            assert marks == [mark.label for mark in draw.panels[number - 1].published][: len(marks)], path.stem
            if draw.of(panel).x == "time":
                assert len(panel.runs) == 1, path.stem
                assert panel.y not in MANY, path.stem
                assert not panel.references, path.stem
            else:
                above = draw.panels[number - 1]
                assert number > 0, path.stem
                assert panel.runs == above.runs, path.stem
                assert panel.references == above.references[: len(panel.references)], path.stem


def test_no_two_panels_of_a_figure_show_the_same() -> None:
    for path in available().values():
        spec = read(path)
        shown = [
            replace(panel, title="", ylabel="", published=(), yscale="linear", ylim=(), references=())
            for panel in spec.draw.panels
        ]
        twice = [panel.y for number, panel in enumerate(shown) if panel in shown[:number]]
        assert not twice, f"{path.stem}: two panels of {', '.join(twice)}"


def test_a_seed_moves_all_seeds_that_vary() -> None:
    figure, other = load("B11"), load("X16")

    def seeds(seed: int | None) -> list[str]:
        return [dict(figure.job(figure.runs[0], point, seed)[2])["seed"] for point in range(4)]

    assert seeds(None) == ["1", "2", "3", "1"]
    assert seeds(5) == ["5", "6", "7", "5"]
    assert dict(other.job(other.runs[0], 0, 5)[2])["seed"] == "5"
    assert "seed" not in dict(other.job(other.runs[0], 0)[2])


def test_panels_of_points_that_a_short_version_leaves_out_go_with_them() -> None:
    whole = load("R4.22")
    short = whole.fast_version()
    lengths = [len(rates) for rates in whole.vary["parking_lot.rates"]]
    kept = [len(rates) for rates in short.vary["parking_lot.rates"]]
    shown = [(panel.title, kept[panel.point]) for panel in short.draw.panels if panel.title]
    expected = [(p.title, lengths[p.point]) for p in whole.draw.panels if p.title and lengths[p.point] in kept]
    assert shown == expected
    assert 0 < len(shown) < len(lengths)


def test_the_next_figures_runs_go_on_meanwhile_and_stop_with_the_runner(tmp_path: Path) -> None:
    """A run started ahead gives the same, fails at its own turn, and does not outlive the runner."""
    for name, old, new in (
        ("W", "", ""),
        ("Y", "10Mbps", "9Mbps"),
        ("Q", "10Mbps", "quick"),
        ("Z", 'duration = "4s"', 'duration = "2h"'),
    ):
        (tmp_path / f"{name}.toml").write_text(WEB.replace('id = "W"', f'id = "{name}"').replace(old, new))
    with Runner(directory=tmp_path, fast=True) as runner:
        first, second, wrong, long = map(runner.figure, "WYQZ")
        runner.run(first, None, following=[second])
        assert set(runner._asked) == {"W", "Y"}
        ahead = runner.run(second, None, following=[wrong])
        with pytest.raises(ScenarioError, match=r'Q\.toml .* dumbbell\.rate: "quick" is'):
            runner.run(wrong, None)
        runner.run(first, None, following=[long])
        began = list(runner._asked["Z"].values())
    assert all(run.ended.cancelled() for run in began)
    alone = Runner(directory=tmp_path, fast=True).run(second, None)
    assert [v.measured for v in ahead.verdicts] == [v.measured for v in alone.verdicts]


SOME = WEB.replace('label = "TCP"', 'label = "TCP"\n[[runs]]\nname = "b"\nlabel = "B"\nwhere = "x > 20"').replace(
    'x = "size"', 'x = "size"\nruns = ["tcp"]'
)
CLAIM = """
[[claims]]
id = "{0}"
paper = "something"
expr = "{1}"
expected = "> 0"
tolerance = "0"
source = "none"
"""


def test_a_run_may_be_at_some_of_the_points_alone(tmp_path: Path) -> None:
    """Elsewhere its measures are no numbers, which no claim passes, and no curve shows."""
    asked = ("min(b.utilization)", "min(b.utilization[x > 20])", "max(b.afct)")
    wanted = "".join(CLAIM.format(n, expr) for n, expr in enumerate(asked))
    (tmp_path / "W.toml").write_text(SOME.replace("[fast]", wanted + "[fast]"))
    with Runner(directory=tmp_path) as runner:
        figure = runner.figure("W")
        every, there, times = runner.run(figure, tmp_path / "out").verdicts[2:]
        assert (every.status, there.status, times.status) == ("fails", "holds", "fails")
        assert "no finite number" in every.problem
        runs = runner.given["W"].runs
        for measure in ("utilization", "afct"):
            assert np.isnan(runs["b"].measure(measure)).tolist() == [True, False]
            assert runs["b"].measure(measure)[1] == runs["tcp"].measure(measure)[1]
        curves = pictures.curves(runner.given["W"], figure.draw.panels[0])
        assert [np.isnan(c.y).tolist() for c in curves[:2]] == [[False, False], [True, False]]
        assert curves[1].half is not None
        assert np.isnan(curves[1].half).tolist() == [True, False]
        points = [(row["run"], row["point"]) for row in fct.document(runs)["runs"]]
        assert points == [("tcp", 0), ("tcp", 1), ("b", 1)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("x > 20", "x > 40", "true at some point: 20, 40"),
        ("x > 20", "x > y", "y"),
        ("x > 20", "2 * x", "true or false at each point"),
        ('runs = ["tcp"]', 'runs = ["b"]', "in panels against what varies alone"),
        ("seeds = 1", 'seeds = 1\nvary = { "dumbbell.rtt" = ["20ms"] }', "true at some point of the short version: 20"),
    ],
)
def test_where_a_run_is_is_checked(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SOME
    (tmp_path / "W.toml").write_text(SOME.replace(old, new))
    with pytest.raises(FigureError, match=r"W\.toml.*runs\[b\]") as refused:
        load("W", tmp_path)
    assert message in str(refused.value)


@pytest.mark.parametrize("memory", [None, "4GB"])
def test_the_next_figures_runs_are_in_the_queue_behind_this_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: str | None
) -> None:
    """Before this one is through."""
    (tmp_path / "W.toml").write_text(WEB)
    (tmp_path / "Y.toml").write_text(WEB.replace('id = "W"', 'id = "Y"').replace("10Mbps", "9Mbps"))
    rates: list[str] = []
    ask, wait = Queue.ask, Queue.wait

    def asked(self: Queue, job: Job, owner: object, **_: bool) -> Run:
        rates.append("9Mbps" if "9Mbps" in job[0] else "10Mbps")
        return ask(self, job, owner)

    def waited(self: Queue, *rest: Any) -> None:
        rates.append("waited")
        wait(self, *rest)

    monkeypatch.setattr(Queue, "ask", asked)
    monkeypatch.setattr(Queue, "wait", waited)
    with Runner(directory=tmp_path, fast=True, memory=memory) as runner:
        runner.run(runner.figure("W"), None, following=[runner.figure("Y")])
    assert rates == ["10Mbps", "10Mbps", "9Mbps", "9Mbps", "waited"]


def test_runs_share_memory() -> None:
    """One that has no room waits for the others; one that needs more than there is waits until it is alone."""
    room = _Room(10)
    began: list[int] = []

    def enter(needs: int, end: threading.Event) -> None:
        with room.of(needs):
            began.append(needs)
            end.wait(10)

    ends = {needs: threading.Event() for needs in (4, 5, 6, 20)}
    threads = [threading.Thread(target=enter, args=one) for one in ends.items()]
    for thread, there in zip(threads, ([4], [4, 5], [4, 5], [4, 5]), strict=True):
        thread.start()
        until(lambda there=there: began == there)  # type: ignore[misc]
    ends[5].set()
    until(lambda: began == [4, 5, 6])
    ends[4].set()
    ends[6].set()
    until(lambda: began == [4, 5, 6, 20])
    ends[20].set()
    for thread in threads:
        thread.join()


def until(holds: Callable[[], bool]) -> None:
    """Waits for what other threads do."""
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """The runs that the simulator made."""
    runs: list[Run] = []
    end = Run.end

    def counted(self: Run, *result: Any) -> None:
        runs.append(self)
        end(self, *result)

    monkeypatch.setattr(Run, "end", counted)
    return runs


def test_runs_of_several_figures_begin_ahead_and_none_is_run_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: list[Run]
) -> None:
    """As many as may wait in memory, in their order; what two are drawn from is run once, whenever they begin."""
    monkeypatch.setattr(runner_module, "AHEAD", 3)
    rates = {"W": "10Mbps", "A": "9Mbps", "S": "9Mbps", "B": "8Mbps", "C": "7Mbps", "D": "6Mbps"}
    for name, rate in rates.items():
        text = WEB.replace('id = "W"', f'id = "{name}"').replace("10Mbps", rate)
        (tmp_path / f"{name}.toml").write_text(text)
    with Runner(directory=tmp_path, fast=True) as runner:
        figures = [runner.figure(name) for name in rates]
        found = []
        for number, figure in enumerate(figures, 1):
            found.append(runner.run(figure, None, following=figures[number:]))
            assert list(runner._asked) == list(rates)[number - 1 : number + 3]
    assert len(ran) == 2 * (len(rates) - 1)
    alone = [Runner(directory=tmp_path, fast=True).run(figure, None) for figure in figures]
    assert [[v.measured for v in o.verdicts] for o in found] == [[v.measured for v in o.verdicts] for o in alone]


def test_runs_that_a_figure_to_come_needs_are_kept_until_its_turn(tmp_path: Path, ran: list[Run]) -> None:
    """However many figures are run in between."""
    rates = {"W": "10Mbps", "A": "9Mbps", "B": "8Mbps", "S": "10Mbps"}
    for name, rate in rates.items():
        (tmp_path / f"{name}.toml").write_text(WEB.replace('id = "W"', f'id = "{name}"').replace("10Mbps", rate))
    with Runner(directory=tmp_path, fast=True) as runner:
        figures = [runner.figure(name) for name in rates]
        for number, figure in enumerate(figures, 1):
            runner.run(figure, None, following=figures[number:])
        assert set(runner._asked) == {"S"}
    assert len(ran) == 2 * (len(rates) - 1)


def test_curves_are_computed_while_runs_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next figure's if it has none of its own; they stop if a curve cannot be."""
    meanwhile: list[set[str]] = []

    def seen(spec: FigureSpec, run: RunSpec) -> Computed:
        meanwhile.append(set(runner._asked))
        return computed(spec, run)

    def fails(spec: FigureSpec, run: RunSpec) -> Computed:
        assert runner.queue.runs
        raise FigureError(f"{run.name} of {spec.id} cannot be")

    with Runner(fast=True) as runner:
        alone, mixed = runner.figure("B2"), runner.figure("B4")
        assert (bool(alone.simulated), bool(mixed.simulated)) == (False, True)
        monkeypatch.setattr("flowstamp.figures.runner.computed", seen)
        assert {v.status for v in runner.run(alone, None, following=[mixed]).verdicts} == {"holds"}
        assert meanwhile == [{"B2", "B4"}] * len(alone.runs)
        monkeypatch.setattr("flowstamp.figures.runner.computed", fails)
        with pytest.raises(FigureError, match="cannot be"):
            runner.run(mixed, None)
        assert not runner.queue.runs


@pytest.mark.parametrize("restarts", [False, True])
def test_ctrl_c_stops_runs_that_were_begun_ahead(tmp_path: Path, restarts: bool) -> None:
    """Also where system calls go on after a signal, as after a Dask client."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.siginterrupt(signal.SIGINT, not restarts)
    try:
        stop_ahead(tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)


def stop_ahead(tmp_path: Path) -> None:
    (tmp_path / "W.toml").write_text(WEB)
    (tmp_path / "Z.toml").write_text(WEB.replace('id = "W"', 'id = "Z"').replace('duration = "4s"', 'duration = "8h"'))
    with Runner(directory=tmp_path, fast=True) as runner:
        long = runner.figure("Z")
        runner.run(runner.figure("W"), None, following=[long])
        began = list(runner._asked["Z"].values())
        main = threading.get_ident()
        threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            runner.run(long, None)
        assert all(run.stopped and run.ended.cancelled() for run in began)


def test_a_figure_drawn_from_the_runs_of_the_one_before_does_not_run_them_again(tmp_path: Path, ran: list[Run]) -> None:
    """Only what differs: not the scenario's name."""
    (tmp_path / "W.toml").write_text(WEB)
    (tmp_path / "Y.toml").write_text(
        WEB.replace('id = "W"', 'id = "Y"')
        .replace('["20ms", "40ms"]', '["40ms", "60ms"]')
        .replace("[vary]", '[vary]\nname = ["1", "2"]')
    )
    runner = Runner(directory=tmp_path)
    runner.run(runner.figure("W"), None)
    assert len(ran) == 6
    found = runner.run(runner.figure("Y"), None)
    assert len(ran) == 9
    alone = Runner(directory=tmp_path).run(runner.figure("Y"), None)
    assert [v.measured for v in found.verdicts] == [v.measured for v in alone.verdicts]


def test_an_experiment_changes_its_runs_and_is_not_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--set` changes a key in all runs or in one; the results are neither cached, nor compared, nor accepted."""
    (tmp_path / "W.toml").write_text(WEB)
    (tmp_path / "expected.json").write_text(json.dumps({"W": {"fast": {"a": [-1.0], "each": [-1.0]}}}))

    def measured(*sets: tuple[str, str]) -> tuple[int, Any]:
        code = cli_figure(["W"], fast=True, json=True, out=tmp_path / "out", directory=tmp_path, sets=sets)
        return code, json.loads(capsys.readouterr().out)["figures"][0]

    assert measured()[0] == 1  # unlike expected.json
    for key in ("dumbbell.rate", "tcp.dumbbell.rate"):
        code, document = measured((key, "1Gbps"))
        assert (code, "changes" in document) == (0, False)
        assert document["claims"][0]["measured"] < measured()[1]["claims"][0]["measured"]
        assert [entry.name for entry in sorted((tmp_path / "out/experiment").iterdir())][:2] == ["W.fct.json", "W.pdf"]
    assert not (tmp_path / "out/experiment/kept.jsonl").exists()
    for sets, message in [
        ([("dumbbell.rtt", "1s")], "--set: dumbbell.rtt is on the x axis of W"),
        ([("udp.dumbbell.rate", "1Gbps")], "unknown key `udp`"),
    ]:
        with pytest.raises(FlowstampError, match=re.escape(message)):
            measured(*sets)
    with pytest.raises(FigureError, match="--set makes an experiment, which --accept does not record"):
        cli_figure(["W"], out=tmp_path, directory=tmp_path, accept=True, sets=(("dumbbell.rate", "1Gbps"),))
