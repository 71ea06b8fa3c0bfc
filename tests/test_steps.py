# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs in steps: the same results, and what may be set on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import flowstamp as fs


def scenario() -> fs.Scenario:
    base = fs.dumbbell("10Mbps", rtt="40ms").flows("xcp", 3, name="long", spread="500ms")
    return base.configure(duration="4s", warmup="1s").probe(every="20ms", laws=True)


def test_steps_give_the_results_of_one_run() -> None:
    whole = scenario().run()
    sim = scenario().start()
    pieces = []
    since = "0s"
    for until in ("0.7s", "1.5s", "1.5s", "4s"):
        sim.run_until(until)
        assert sim.now == float(until[:-1])
        pieces.append(sim.series("link", "bottleneck", "queue_bytes", since=since)[1])
        since = until
    assert sim.results().summary == whole.summary
    assert np.array_equal(np.concatenate(pieces), whole.series("link", "bottleneck", "queue_bytes")[1])
    assert sim.series_table().num_rows == whole.series_table.num_rows


def test_a_seed_and_a_duration_are_those_of_run() -> None:
    sim = scenario().start("2s", seed=7)
    sim.run_until("2s")
    assert sim.results().summary == scenario().run("2s", seed=7).summary
    with pytest.raises(fs.ScenarioError, match="seed"):
        scenario().start(seed=-1)


def test_a_rate_is_set_and_told(tmp_path: Path) -> None:
    sim = scenario().start()
    sim.run_until("2s")
    sim.set("dumbbell.rate", "5Mbps")
    sim.set("dumbbell.router.alpha", 0.3)
    sim.run_until("4s")
    results = sim.results()
    assert results.links["bottleneck"]["rate_bps"] == pytest.approx((10e6 + 2 * 5e6) / 3)
    _, utilization = results.series("link", "bottleneck", "utilization")
    assert utilization[-10:].mean() == pytest.approx(1.0, abs=0.05)
    results.write(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["changes"] == [
        {"time_s": 2.0, "key": "dumbbell.rate", "value": '"5Mbps"'},
        {"time_s": 2.0, "key": "dumbbell.router.alpha", "value": "0.3"},
    ]


def test_what_cannot_be_is_refused_in_one_line() -> None:
    sim = scenario().start()
    sim.run_until("500ms")
    acts: list[tuple[Callable[[], object], str]] = [
        (sim.results, "warmup, 1s"),
        (lambda: sim.run_until("100ms"), "already"),
        (lambda: sim.run_until("5s"), "duration, 4s"),
        (lambda: sim.run_until("2"), "unit"),
        (lambda: sim.set("dumbbell.queue", "red"), "mid-run"),
        (lambda: sim.set("dumbbell.rate", "5mbps"), "Mbps"),
    ]
    for act, why in acts:
        with pytest.raises(fs.ScenarioError, match=why) as error:
            act()
        assert "\n" not in str(error.value)
    with pytest.raises(fs.ResultsError, match="no series link/nothing/queue_bytes"):
        sim.series("link", "nothing", "queue_bytes")


def test_what_progress_raises_stops_a_step_that_can_go_on() -> None:
    class EnoughError(Exception):
        pass

    def enough(*_: object) -> None:
        raise EnoughError

    long = scenario().configure(duration="4000s").probe(every="1s")
    sim = long.start()
    with pytest.raises(EnoughError):
        sim.run_until("4000s", progress=enough)
    assert sim.now < 4000
    at = f"{sim.now + 1:.3f}s"
    sim.run_until(at)
    assert sim.now == pytest.approx(float(at[:-1]))
