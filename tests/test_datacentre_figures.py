# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures of data-centre figures."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import flowstamp as fs
from flowstamp import executors
from flowstamp.figures import datacentre, load, pictures
from flowstamp.figures.measures import Finished, RunSet
from flowstamp.figures.schedule import Queue
from flowstamp.scenario import toml_text

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.filterwarnings("ignore:.*equal-cost paths")


def finished(scenario: fs.Scenario) -> Finished:
    run = scenario.run()
    return Finished.of(run._source, flow_series=False, packet_bytes=1000, scenario=run.manifest["scenario"])


def tree(**flows: object) -> fs.Scenario:
    return fs.fat_tree(4, rate="10Gbps", delay="1us", router="rcp").flows("rcp", **flows)  # type: ignore[arg-type]


def test_max_min_fills_the_tightest_link_first() -> None:
    """Three flows share `a`; what one of them leaves on `b` goes to the fourth."""
    shares = datacentre.max_min([["a"], ["a"], ["a", "b"], ["b"]], 90.0)
    assert shares.tolist() == pytest.approx([30.0, 30.0, 30.0, 60.0])


def test_rcp_is_near_max_min_on_the_paths_that_flows_take() -> None:
    """Near equilibrium RCP leaves beta q / (alpha C d) of a link idle, and the RTT d is 4 us or more.

    Acks of 1 byte take a thousandth of a link. Two packets of each flow may or may not count in 500 us.
    """
    scenario = fs.fat_tree(4, rate="100Gbps", delay="1us", router="rcp").flows(
        "rcp", name="pairs", pattern="permutation"
    )
    run = finished(scenario.configure(duration="1ms", warmup="500us", ack="1B"))
    ratios = datacentre.max_min_ratios(run, "pairs")
    assert ratios.size == 16
    shares = np.sort(datacentre.max_min(datacentre.routes_of(run.scenario), 1.0))
    queue = max(link["mean_queue_bytes"] for link in run.summary["links"].values())
    idle = 0.5 / 0.4 * queue / (12.5e9 * 4e-6)
    assert idle < 0.02
    assert np.abs((1 - ratios) * shares).max() < idle + 0.001 + 2 * 1000 / (12.5e9 * 500e-6)
    with pytest.raises(ValueError, match="0 flows of other"):
        datacentre.max_min_ratios(run, "other")


def test_slowdowns_are_those_of_the_summary() -> None:
    web = {"load": 0.3, "sizes": {"distribution": "hadoop"}}
    run = finished(tree(name="web", pattern="random", web=web).configure(duration="5ms", warmup="1ms"))
    known = run.summary["groups"]["web"]["fct_slowdown"]["all"]
    runs = RunSet("web", [run], (), "web")
    for statistic in ("p50", "p99", "p999", "max"):
        [measured] = datacentre.FUNCTIONS["slowdown"][1](runs, statistic, 0, math.inf)
        assert measured == pytest.approx(known[statistic])
    assert runs.measure("p99_slowdown").tolist() == pytest.approx([known["p99"]])
    sizes, _ = datacentre.slowdown_by_size(run, "web", "p50")
    assert (np.diff(sizes) >= 0).all()
    assert sizes.size == datacentre.BINS
    with pytest.raises(ValueError, match='"p98" is none of'):
        datacentre.percentile(sizes, "p98")


def test_operations_and_queues_are_those_of_the_summary() -> None:
    incast = {"total": "100kB", "senders": 4, "every": "500us"}
    run = finished(
        tree(name="query", pattern="incast", incast=incast, transport={"min_rto": "500us"}).configure(duration="2ms")
    )
    runs = RunSet("query", [run], (), "query")
    operations = run.summary["groups"]["query"]["operations"]
    assert runs.measure("mean_operation_ms") == pytest.approx([1e3 * operations["time_s"]["mean"]])
    assert runs.measure("completed_operations") == pytest.approx([operations["completed"] / operations["started"]])
    longest = max(link["max_queue_bytes"] for link in run.summary["links"].values())
    assert runs.measure("largest_queue_us") == pytest.approx([8e6 * longest / 10e9])
    assert math.isnan(runs.measure("operation_slowdown")[0])  # incasts have no ideal time


def test_the_sizes_of_the_figure_by_links_are_those_of_the_example() -> None:
    name = "datacentre-sizes.txt"
    assert (ROOT / "figures" / name).read_text() == (ROOT / "examples/data" / name).read_text()


@pytest.mark.parametrize("executor", [executors.THREADS, "processes"])
def test_a_run_by_links_is_that_of_the_command_and_not_the_whole_run(executor: str) -> None:
    web = {"load": 0.3, "sizes": {"distribution": "storage"}}
    scenario = tree(name="web", pattern="random", web=web).configure(duration="300us")
    job = (toml_text(scenario.resolved()), "test", (), ".")
    queue = Queue(executor, None)
    whole, apart = queue.ask(job), queue.ask(job, by_links=True)
    queue.wait([whole, apart], None)
    queue.close()
    known = [scenario.run(by_links=by_links).groups["web"]["fct_slowdown"] for by_links in (False, True)]
    found = [run.ended.result().summary["groups"]["web"]["fct_slowdown"] for run in (whole, apart)]
    assert json.loads(json.dumps(known)) == found
    assert found[0] != found[1]


def test_runs_of_one_law_have_one_colour() -> None:
    figure = load("DC-incast")
    first, second = (pictures.styles(figure, panel) for panel in figure.draw.panels[:2])
    assert {name.removesuffix("100"): style for name, style in first.items()} == {
        name.removesuffix("400"): style for name, style in second.items()
    }
