# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Appendix F restated: numbers by hand, and that a router which deviates is seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

import flowstamp as fs
from flowstamp.figures.appendix_f import FUNCTIONS, Constants, lines_1_to_13
from flowstamp.figures.measures import Finished, RunSet

# 8 Mb/s are 1000 bytes per millisecond.
K = Constants(ALPHA=0.4, BETA=0.5, ETA=1.0, MTU=1000, MAX_RATE_ESTIMATION_INTERVAL=10, link_rate=1000)


@pytest.mark.parametrize(
    ("rate", "sample", "input_rate", "queue", "expected"),
    [
        # d = 0.1 x 200 + 0.9 x 100 = 110; R = 500 (1 + 10/110 (0.4 (1000 - 800) - 0.5 x 2200/110) / 1000)
        (500, 200, 800, 2200, (500 * (1 + 10 / 110 * 0.07), 110, 10)),
        # A shorter sample counts by R/C and its share: weight 0.5 x 0.5 x 0.1 = 0.025, d = 98.75.
        (500, 50, 1000, 0, (500, 98.75, 10)),
        # The queue asks for less than nothing: MIN_RATE = 0.01 x 1000 / 100.
        (1, 100, 1000, 1e9, (0.1, 100, 10)),
        # An idle link: the target.
        (999, 100, 0, 0, (1000, 100, 10)),
    ],
)
def test_lines_by_hand(
    rate: float, sample: float, input_rate: float, queue: float, expected: tuple[float, float, float]
) -> None:
    after = lines_1_to_13(
        Tr=10,
        avg_rtt=100,
        rcp_rate=rate,
        input_traffic_rate=input_rate,
        num_pkts_with_rtt=1,
        avg_rtt_Tr=sample,
        Q_Bytes=queue,
        k=K,
    )
    assert after == pytest.approx(expected)


def runset(**router: float) -> RunSet:
    scenario = fs.dumbbell("10Mbps", rtt="40ms", router={"law": "rcp", **router}).flows("rcp", 5, every="100ms")
    results = scenario.probe(every="1ms", laws=True).run("2s")
    ran = results.manifest["scenario"]
    return RunSet("run", [Finished.of(results, flow_series=False, packet_bytes=1000, scenario=ran)], ["bottleneck"], "")


def largest(runs: RunSet, what: str) -> float:
    return float(FUNCTIONS["appendix_f"][1](runs, what).max())


def test_a_router_that_deviates_is_seen() -> None:
    runs = runset()
    assert FUNCTIONS["intervals_seen"][1](runs) == 1
    assert max(largest(runs, what) for what in ("rate", "rtt", "interval")) < 1e-12
    # The same record, held against other constants.
    run = runs.runs[0]
    router = run.scenario["dumbbell"]["router"]
    for change, what in (({"alpha": 0.41}, "rate"), ({"beta": 0.45}, "rate"), ({"max_interval": "9ms"}, "interval")):
        scenario = {**run.scenario, "dumbbell": {**run.scenario["dumbbell"], "router": {**router, **change}}}
        other = RunSet("run", [replace(run, scenario=scenario)], ["bottleneck"], "")
        assert largest(other, what) > 1e-6, change


def test_without_probes_it_says_so() -> None:
    results = fs.dumbbell("10Mbps", rtt="40ms", router="rcp").flows("rcp", 2).run("1s")
    run = Finished.of(results, flow_series=False, packet_bytes=1000, scenario=results.manifest["scenario"])
    with pytest.raises(ValueError, match=r"probes\.laws"):
        largest(RunSet("run", [run], ["bottleneck"], ""), "rate")
