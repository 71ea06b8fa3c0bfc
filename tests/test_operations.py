# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Incasts, collective operations and sizes of data centres, as users see them, and the examples that have them."""

from __future__ import annotations

from pathlib import Path

import pytest

import flowstamp as fs

EXAMPLES = Path(__file__).resolve().parents[1] / "examples/datacentre"


def ring(**collective: object) -> fs.Scenario:
    return fs.leaf_spine(2, 1, 4, rate="100Gbps", delay="1us").flows(
        "dctcp", name="ring", pattern="ring-all-reduce", size="800kB", collective=collective
    )


def test_operations_are_rows() -> None:
    result = ring(operations=3, gap="50us").run("2ms")
    rows = result.operations
    assert [(row["group"], row["number"]) for row in rows] == [("ring", 0), ("ring", 1), ("ring", 2)]
    assert rows[1]["start_s"] == pytest.approx(rows[0]["end_s"] + 50e-6)
    times = result.groups["ring"]["operations"]["time_s"]
    assert times is not None
    assert times["max"] == max(row["time_s"] for row in rows)
    assert times["p999"] == times["max"]
    cut_short = ring(operations=3).run("40us").operations
    assert (cut_short[0]["end_s"], cut_short[0]["time_s"]) == (None, None)


def test_slowdowns_have_the_last_percentile() -> None:
    web = {"load": 0.3, "sizes": {"distribution": "hadoop"}}
    result = fs.leaf_spine(2, 1, 4, rate="10Gbps", delay="1us").flows("dctcp", name="web", pattern="random", web=web)
    done = result.run("20ms")
    (row,) = fs.fct_slowdown(done, bins=1)
    slowdown = done.groups["web"]["fct_slowdown"]
    assert slowdown is not None
    assert row["p99"] <= row["p999"] == slowdown["all"]["p999"] <= row["max"]


@pytest.mark.filterwarnings("ignore:.*equal-cost paths")
@pytest.mark.parametrize("law", ["dctcp", "rcp", "hpcc", "swift"])
def test_examples_complete(law: str) -> None:
    def run(name: str, duration: str) -> fs.Results:
        scenario = fs.load(EXAMPLES / f"{name}.toml")
        for group in scenario.resolved()["flows"]:
            scenario = scenario.set(f"flows.{group['name']}.law", law)
        scenario = scenario.set("warmup", "0s")
        if law in ("rcp", "hpcc"):
            scenario = scenario.set("fat_tree.router", law)
        return scenario.run(duration)

    incasts = run("incast", "6ms").groups["query"]["operations"]
    assert (incasts["started"], incasts["completed"]) == (2, 2)
    web = run("web-search", "2ms").groups["web"]
    assert web["completed"] > 0.5 * web["flows"]
    ring = run("all-reduce", "5ms").groups["even"]["operations"]
    assert ring["completed"] >= 1
    assert ring["slowdown"] is not None
    assert ring["slowdown"]["mean"] > 1
    # 16 hosts at 100 Gb/s. Several flows share a link by the hash, and 1460 of 1500 bytes are payload.
    assert run("permutation", "1ms").groups["pairs"]["goodput_bps"] > 0.25 * 16 * 97e9
