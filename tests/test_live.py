# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs that are watched: lines of JSON, a terminal, a notebook."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Command, command_line

import flowstamp as fs
from flowstamp import drawing, live, progress
from flowstamp.cli import run_command

GOLDEN = Path(__file__).resolve().parents[1] / "crates" / "flowstamp-sim" / "tests" / "golden"


def test_a_stream_has_every_sample_once(flowstamp: Command, scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del flowstamp
    monkeypatch.setattr(live, "STEP_S", 0.0)  # as many steps as there can be
    loaded = fs.load(scenario).probe(every="1ms", flows=True)
    *lines, results = live.lines(loaded, seed=2, memory=None)
    assert isinstance(results, fs.Results)
    own = loaded.run(seed=2)
    assert results.summary == own.summary
    found = [
        (sample["time_s"], kind, name, metric, value)
        for sample in map(json.loads, map(str, lines))
        for kind, names in sample.items()
        if kind != "time_s"
        for name, metrics in names.items()
        for metric, value in metrics.items()
    ]
    table = own.series_table
    columns = [table.column(name) for name in ("time_s", "kind", "name", "metric", "value")]
    assert sorted(found) == sorted(zip(*columns, strict=True))


def test_a_stream_on_standard_output(flowstamp: Command, scenario: Path) -> None:
    done = flowstamp("run", scenario, "--json-stream", "--out", "out")
    assert (done.returncode, done.stderr) == (0, "")
    *samples, last = map(json.loads, done.stdout.splitlines())
    assert last["summary"] == json.loads((scenario.parent / "out" / "summary.json").read_text())
    assert [sample["time_s"] for sample in samples] == sorted({sample["time_s"] for sample in samples})
    assert samples[-1]["link"]["bottleneck"]["utilization"] > 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--live"], "--live: standard error is not a terminal"),
        (["--live", "--json"], "give one of them"),
        (["--json-stream", "--json"], "give one of them"),
    ],
)
def test_ways_to_show_a_run_that_do_not_fit(flowstamp: Command, scenario: Path, options: list[str], said: str) -> None:
    done = flowstamp("run", scenario, *options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
def test_a_view_in_a_terminal(scenario: Path) -> None:
    ours, theirs = os.openpty()
    done = subprocess.Popen(
        command_line("run", scenario, "--live"),
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        cwd=scenario.parent,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # nobody has the other end any more
            break
    os.close(ours)
    out, _ = done.communicate(timeout=60)
    assert done.returncode == 0
    assert out.startswith("three: 2 s simulated")
    text = shown.decode()
    for part in ("three.toml: 2.000 of 2s", "bottleneck", "long.2", "█"):
        assert part in text


def test_what_a_view_shows() -> None:
    assert live.sparkline([0.0, 0.5, 1.0], 1.0, 5) == " ▄█  "
    assert live.sparkline([3.0, 1e9], 1.0, 2) == "██"
    view = live.View("x", "1s")
    for number in range(20):
        view.take({"time_s": number / 10, "flow": {f"a.{flow}": {"goodput_bps": 1e6} for flow in range(20)}})
    from rich.console import Console

    console = Console(width=80, file=io.StringIO(), record=True)
    console.print(view.drawn(1.0))
    text = console.export_text()
    assert "links" not in text
    assert "a.15" in text
    assert "a.16" not in text
    assert "and 4 more" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_view_of_many_links_shows_the_most_used() -> None:
    """A fat tree has hundreds of links, and a terminal some 24 lines."""
    from rich.console import Console

    view = live.View("x", "1ms")
    scenario = fs.fat_tree(4, rate="1Gbps", delay="1us").flows("sack", 40, pattern="random", size="1MB")
    for sample in live.samples(scenario.probe(every="100us").start("1ms"), "1ms"):
        for one in sample:
            view.take(one)
    console = Console(width=80, height=24, file=io.StringIO(), record=True)
    console.print(view.drawn(0.001))
    lines = console.export_text().splitlines()
    assert len(lines) <= 24
    used = [line.split() for line in lines if "->" in line]
    assert len(used) == live.MOST_LINKS
    assert all(float(row[1].rstrip("%")) > 0 for row in used)
    assert any(line.endswith("links that are used less") for line in lines)


# ---------------------------------------------------------------------------------------------------- notebooks


def test_objects_show_themselves(scenario: Path) -> None:
    loaded = fs.load(scenario).configure(name="<three>")
    html = loaded._repr_html_()
    assert "&lt;three&gt;" in html
    assert "<three>" not in html
    assert "<td>20Mbps</td>" in html
    assert "is not a number with a unit" in loaded.set("dumbbell.rate", "fast")._repr_html_()
    assert (loaded._repr_png_() or b"").startswith(b"\x89PNG")
    assert "data:image/png;base64," in html
    assert loaded.set("dumbbell.rate", "fast")._repr_png_() is None
    results = loaded.run()
    html, png = results._repr_html_(), results._repr_png_()
    assert f"<td>{fs.run_many([loaded])[0].links['bottleneck']['drops']}</td>" in html
    assert png is not None
    assert png.startswith(b"\x89PNG")
    assert "data:image/png;base64," in html
    table: Any = results.flows
    assert f"3 rows, {len(table.column_names)} columns" in table._repr_html_()
    table = results.series_table
    assert table._repr_html_().count("<tr>") == 12  # header, first and last five, dots
    swept = fs.sweep(loaded, {"flows.long.count": [1, 2]})
    assert "flows.long.count" in swept._repr_html_()
    assert (swept._repr_png_() or b"").startswith(b"\x89PNG")


NETWORKS = {
    "dumbbell": fs.dumbbell("45Mbps", rtt="40ms").flows("xcp", 5).flows("reno", name="back", reverse=True),
    "parking lot": fs.parking_lot(["20Mbps", "10Mbps"], delay="5ms").flows("xcp", each_hop=True),
    "leaf-spine": fs.leaf_spine(4, 2, 6, rate="10Gbps", delay="1us").flows("dctcp", 4, pattern="random"),
    "fat tree": fs.fat_tree(4, rate="10Gbps", delay="1us").flows("dctcp", 4, pattern="random"),
}


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_network_is_drawn(kind: str) -> None:
    [ax] = drawing.scenario(NETWORKS[kind]).axes
    network = drawing._network(NETWORKS[kind].configure(duration="1s").resolved())
    # 30 and 36 nodes are marks, few are named; each link is a line.
    names = [text.get_text() for text in ax.texts]
    assert names == {
        "dumbbell": ["45Mbps, RTT 40ms", "n0", "n1"],
        "parking lot": ["20Mbps", "10Mbps", "n0", "n1", "n2"],
    }.get(kind, [])
    links = {"dumbbell": 1, "parking lot": 2, "leaf-spine": 4 * 2 + 24, "fat tree": 3 * 16}[kind]
    assert len(network.links) == links
    assert len(ax.lines) == links + (0 if names else len(network.at))
    assert len(ax.patches) == {"dumbbell": 2, "parking lot": 2}.get(kind, 0)


@pytest.mark.filterwarnings("ignore:.*equal-cost paths")
@pytest.mark.parametrize("kind", ["leaf-spine", "fat tree"])
def test_a_drawing_has_the_links_that_the_simulator_makes(kind: str) -> None:
    network = drawing._network(NETWORKS[kind].configure(duration="1s").resolved())
    drawn = {f"{one}->{other}" for ends in network.links for one, other in (ends, ends[::-1])}
    assert drawn == set(NETWORKS[kind].run("10us").summary["links"])


def test_graphs_and_cells_are_drawn_and_what_is_too_large_is_not() -> None:
    for name in ("graph", "wireless"):
        [ax] = drawing.scenario(fs.load(GOLDEN / f"{name}.toml")).axes
        assert {"graph": "8Mbps / 4Mbps", "wireless": "ap"}[name] in [text.get_text() for text in ax.texts]
        assert ax.patches
    large = fs.fat_tree(16, rate="10Gbps", delay="1us").flows("dctcp", 4, pattern="random")
    with pytest.raises(fs.ScenarioError, match="has 320 nodes; 150 can be drawn"):
        drawing.scenario(large)
    assert large._repr_png_() is None


def test_progress_in_a_notebook(monkeypatch: pytest.MonkeyPatch, scenario: Path) -> None:
    assert not progress.in_notebook()
    shown: list[str] = []
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    monkeypatch.setattr(progress, "QUIET_S", 0.0)
    monkeypatch.setattr(progress.Cell, "_show", lambda _cell, html: shown.append(html))
    loaded = fs.load(scenario).configure(duration="400s")
    loaded.run()
    assert any("<progress" in html and "of 400 s" in html for html in shown)


def test_plain_progress_is_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], scenario: Path
) -> None:
    monkeypatch.setattr(progress, "PLAIN_S", 0.0)
    monkeypatch.setattr(progress, "_how", ["plain"])
    with progress.Meter("three") as meter:
        meter(0, 2, 1.0, 4.0, 1_000_000)
        meter(1, 2, 4.0, 4.0, 3_000_000)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(", ")[:2] for line in lines] == [
        ["three: 0.2 of 2 runs", "1.0M events"],
        ["three: 1.2 of 2 runs", "4.0M events"],
    ]
    assert run_command(["run", str(scenario), "--progress", "none"]) == 0
    assert capsys.readouterr().err == ""
    assert run_command(["run", str(scenario), "--progress", "loud"]) == 2
    assert "use one of auto, plain, none" in capsys.readouterr().err
