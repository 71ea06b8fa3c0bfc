# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How long packets took, by the size of their flows and as distributions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import Command

import flowstamp as fs
from flowstamp.delays import curves, delay_figure

WEB = {"load": 0.6, "sizes": {"distribution": "pareto", "mean": "20kB", "shape": 1.3}}


@pytest.fixture(scope="module")
def scenario() -> fs.Scenario:
    network = fs.dumbbell("10Mbps", rtt="20ms").flows("reno", name="endless").flows("reno", name="web", web=WEB)
    return network.flows("reno", 2, name="fixed", size="50kB", start="1s").configure(duration="4s", warmup="500ms")


@pytest.fixture(scope="module")
def results(scenario: fs.Scenario) -> fs.Results:
    return scenario.run(seed=3)


def test_bins_are_those_of_completion_times_and_make_a_whole(results: fs.Results) -> None:
    web = results.groups["web"]
    delays, fct_s = web["packet_delay_s"], web["fct_s"]
    assert delays is not None
    assert fct_s is not None
    bounds = [(one["min_bytes"], one["max_bytes"]) for one in delays["bins"]]
    assert len(bounds) >= 3
    assert {(one["min_bytes"], one["max_bytes"]) for one in fct_s["bins"]} <= set(bounds)
    assert sum(one["count"] for one in delays["bins"]) == delays["count"]
    assert sum(one["count"] * one["mean"] for one in delays["bins"]) == pytest.approx(delays["count"] * delays["mean"])
    assert max(one["max"] for one in delays["bins"]) == delays["max"]


def test_flows_of_one_size_are_one_bin_and_endless_ones_none(results: fs.Results) -> None:
    fixed, endless = (results.groups[name]["packet_delay_s"] for name in ("fixed", "endless"))
    assert fixed is not None
    assert endless is not None
    [one] = fixed["bins"]
    assert one["min_bytes"] <= 50e3 < one["max_bytes"]
    assert one["count"] == fixed["count"] > 0
    assert endless["bins"] == []


def test_curves_are_the_percentiles_of_the_summary(results: fs.Results) -> None:
    found = curves(results)
    web = results.groups["web"]["packet_delay_s"]
    waits = results.links["bottleneck"]["queueing_delay_s"]
    assert web is not None
    assert waits is not None
    wanted: dict[tuple[str, str, tuple[int, int] | None], dict[str, float]]
    wanted = {("group", "web", (one["min_bytes"], one["max_bytes"])): one for one in web["bins"]}
    wanted |= {("group", "web", None): web, ("link", "bottleneck", None): waits}
    assert len(wanted) > 4
    for key, of in wanted.items():
        delays, shares = found[key]
        assert shares[-1] == 1
        assert (np.diff(delays) > 0).all()
        assert (np.diff(shares) > 0).all()
        for share, name in ((0.5, "p50"), (0.95, "p95")):
            at = int(np.searchsorted(shares, share))
            assert of[name] <= delays[at]
            assert at == 0 or of[name] > delays[at - 1]


def test_a_folder_has_them(results: fs.Results, tmp_path: Path) -> None:
    results.write(tmp_path)
    read = fs.load_results(tmp_path).delays
    assert read.column_names == results.delays.column_names
    for name in read.column_names:
        assert read.column(name) == results.delays.column(name)


@pytest.mark.long
def test_compare_shows_and_draws_them(scenario: fs.Scenario, tmp_path: Path, flowstamp: Command) -> None:
    (tmp_path / "a.toml").write_text(scenario.to_toml())
    done = flowstamp("compare", tmp_path / "a.toml", "--protocols", "reno,cubic", "--all", "--out", tmp_path / "out")
    rows = [line for line in done.stdout.splitlines() if line.startswith("web p95 packet delay, ")]
    assert len(rows) >= 3
    assert not any(line.startswith("fixed p95 packet delay, ") for line in done.stdout.splitlines())  # all in one bin
    assert (tmp_path / "out" / "delays.png").read_bytes().startswith(b"\x89PNG")


def test_one_run_is_drawn_by_size(results: fs.Results) -> None:
    *_, web = delay_figure(results).axes
    legend = web.get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.get_texts()]
    assert len(labels) >= 3
    assert all(label.endswith(("kB", "MB", "on")) for label in labels)
