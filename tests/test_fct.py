# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Flow completion times in figures: formulas, the processor-sharing server, bins and batch means."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import flowstamp as fs
from flowstamp import theory
from flowstamp.figures import fct
from flowstamp.figures.measures import Finished, RunSet
from flowstamp.scenario import toml_text


def summary() -> dict[str, object]:
    """The summary of a run with 2.4 Gb/s and 100 ms at a load of 0.9."""
    group = {"capacity_bps": 2.4e9, "path_rtt_s": 0.1, "offered_load": 0.9, "mean_size_bytes": 25e3}
    return {"groups": {"forward": group, "long": {**group, "mean_size_bytes": None}}}


def test_formulas() -> None:
    """Equation 4.1 and the slow-start curve of section 4.2.1 for C = 2.4 Gb/s, RTT 0.1 s, load 0.9."""
    ideal = fct.Ideal.of(summary(), "forward", 1000, 1000)
    assert ideal is not None
    assert (ideal.capacity, ideal.rtt_s, ideal.load, ideal.mean_packets) == (3e5, 0.1, 0.9, 25)
    size = np.array([3.0, 3000.0])
    assert ideal.curve("ps", size) == pytest.approx([0.1501, 0.25])
    assert ideal.curve("bound", size) == pytest.approx([0.15001, 0.16])
    assert ideal.curve("slow_start", size)[0] == pytest.approx(0.25001)
    long = fct.Ideal.of(summary(), "long", 1000, 960)
    assert long is not None
    assert np.isnan(long.mean_packets)
    assert fct.Ideal.of(summary(), "nobody", 1000, 960) is None


def described(scenario: str) -> dict[str, tuple[float, float, float, float | None]]:
    """The summary's values of each group's path and flows."""
    groups = fs.loads(scenario).run().groups
    return {
        name: (group["capacity_bps"], group["path_rtt_s"], group["offered_load"], group["mean_size_bytes"])
        for name, group in groups.items()
    }


def test_a_runs_own_numbers_are_in_its_summary() -> None:
    """Capacity, round trip, load and mean size: of each direction of a dumbbell, and of each link of a parking lot."""
    web = {"sizes": {"distribution": "pareto", "mean": "25kB", "shape": 1.2}}
    dumbbell = toml_text(
        {
            "duration": "10ms",
            "header": "0B",
            "dumbbell": {"rate": "20Mbps", "reverse_rate": "5Mbps", "rtt": "100ms"},
            "flows": [
                {"name": "forward", "law": "sack", "web": {**web, "load": 0.5}},
                {"name": "more", "law": "sack", "web": {**web, "flows_per_s": 10}},
                {"name": "back", "law": "sack", "reverse": True, "web": {**web, "load": 0.2}, "rtt": "140ms"},
                {"name": "long", "law": "sack", "count": 2, "rtt": ["120ms", "160ms"]},
                {"name": "short", "law": "sack", "size": "70kB"},
            ],
        }
    )
    of = described(dumbbell)
    load = 0.5 + 10 * 25e3 * 8 / 20e6
    assert of["forward"] == pytest.approx((20e6, 0.1, load, 25e3))
    assert of["more"] == pytest.approx((20e6, 0.1, load, 25e3))
    assert of["back"] == pytest.approx((5e6, 0.14, 0.2, 25e3))
    assert of["long"][:3] == pytest.approx((20e6, 0.14, load))
    assert of["long"][3] is None
    assert of["short"] == pytest.approx((20e6, 0.1, load, 70e3))
    lot = toml_text(
        {
            "duration": "10ms",
            "header": "0B",
            "parking_lot": {"rates": ["8Mbps", "4Mbps", "4Mbps"], "delay": "10ms", "access_delay": "1ms"},
            "flows": [
                {"name": "all", "law": "sack", "web": {**web, "load": 0.5}},
                {"name": "hop", "law": "sack", "each_hop": True, "web": {**web, "load": 0.25}},
            ],
        }
    )
    of = described(lot)
    assert of["all"] == pytest.approx((4e6, 0.064, 0.75, 25e3))
    assert of["hop.1"] == pytest.approx((8e6, 0.024, 0.5, 25e3))
    assert of["hop.3"] == pytest.approx((4e6, 0.024, 0.75, 25e3))


def test_half_width_covers_the_mean() -> None:
    """Between 90% and 99% of the 95% intervals of independent series hold the mean (400 series: error 1.1%)."""
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(400):
        values = rng.exponential(1.0, 1000)
        held += abs(float(values.mean()) - 1) <= fct.half_width(values)
    assert 0.90 < held / 400 < 0.99
    assert np.isnan(fct.half_width(np.ones(5)))


class Made:
    """A run made by hand: three flows, one of them incomplete, one before the end of warm-up."""

    def __init__(self) -> None:
        self.times = fct.FlowTimes(
            np.array([0.5, 2.0, 3.0, 4.0]),
            np.array([1.0, 2.0, np.nan, 4.0]),
            np.array([10.0, 10.0, 20.0, 1000.0]),
            np.array([9.5, 10.0, 20.0, 999.5]),
            np.zeros(4, np.int16),
            {"forward": 0},
            3.0,
        )
        self.summary = {"warmup_s": 1.0, "duration_s": 11.0, **summary()}

    members: tuple[fct.Measured, ...] = ()

    def ideal(self, group: str) -> fct.Ideal | None:
        """The ideal for the summary above."""
        return fct.Ideal.of(self.summary, group, 1000, 1000)

    def server(self, group: str, discipline: theory.Discipline) -> fct.Floats:
        """All four flows."""
        assert group == "forward"
        return theory.served(discipline, self.times.start_s, self.times.packets, 8 * 3e5)


class Runs:
    """A curve of one run."""

    name, group, split, where = "made", "forward", 500.0, None

    def __init__(self, run: fct.Measured | None = None) -> None:
        self.runs = [run or Made()]

    def measure(self, name: str) -> fct.Floats:
        """One value."""
        return fct.measure(self, name)


def test_measures() -> None:
    runs = Runs()
    of = {name: float(fct.measure(runs, name)[0]) for name in fct.MEASURES}
    assert of["afct"] == 3
    assert of["max_fct"] == 4
    assert (of["afct_small"], of["afct_large"]) == (2, 4)
    assert (of["count_small"], of["count_large"]) == (1, 1)
    assert of["completed_share"] == pytest.approx(2 / 3)
    assert of["offered_load"] == pytest.approx(1029.5 / 10 / 3e5)
    assert of["retransmitted_share"] == pytest.approx(3 / 1040)
    assert of["server_large"] == pytest.approx(0.15 + 1000 / 3e5)
    # From 1 to 11 s: half a second of the first, 2 of the second, 8 of the third, 4 of the fourth.
    assert of["active"] == pytest.approx(14.5 / 10)


def test_active_flows_follow_littles_law() -> None:
    """Mean active flows over the whole run are arrivals times mean time, when all are complete."""
    made = Made()
    flows = made.times
    start, took = flows.start_s[[0, 1, 3]], flows.fct_s[[0, 1, 3]]
    packets = flows.packets[[0, 1, 3]]
    made.times = fct.FlowTimes(start, took, packets, packets, flows.group[:3], flows.groups, 0.0)
    assert fct.mean_active(made, "forward", 0.0, 10.0) == pytest.approx(3 / 10 * float(took.mean()))
    assert list(fct.active_over_time(made, "forward", np.array([0.0, 1.0, 3.0, 4.5, 9.0]))) == [0, 1, 1, 1, 0]


def test_bins() -> None:
    found = fct.bins(Made(), "forward")
    assert [(b.flows, b.mean_packets, b.mean_s, b.max_s) for b in found] == [(1, 10, 2, 2), (1, 1000, 4, 4)]
    assert all(b.low <= b.mean_packets < b.high for b in found)
    assert fct.bins(Made(), "forward", least=2) == []


def test_of_several_seeds_measures_are_means_and_bins_have_all_flows() -> None:
    one, other, both = Made(), Made(), Made()
    took = np.array([1.0, 4.0, np.nan, np.nan])
    other.times = replace(one.times, fct_s=took)
    both.times = fct.FlowTimes.together([one.times, other.times])
    both.members = (one, other)
    (row,) = fct.document({"made": Runs(both)})["runs"]
    # 2 and 4 s, and 4 s: the mean of 3 and 4, not of the three flows.
    assert (row["afct"], row["count_small"], row["completed_share"]) == (3.5, 1, pytest.approx(1 / 2))
    assert [(b["packets"][0] <= 10, b["flows"], b["mean_s"]) for b in row["bins"]] == [(True, 2, 3), (False, 1, 4)]


def shared_by_hand(start: fct.Floats, packets: fct.Floats, capacity: float) -> fct.Floats:
    """Processor sharing in the plainest way: between any two events every flow gets its share."""
    left: dict[int, float] = {}
    ends = np.zeros(start.size)
    now, coming = 0.0, list(np.argsort(start, kind="stable"))
    while left or coming:
        arrival = start[coming[0]] if coming else np.inf
        step = min(arrival - now, min(left.values(), default=np.inf) * len(left) / capacity)
        left = {flow: rest - step * capacity / len(left) for flow, rest in left.items()}
        now += step
        for flow in [flow for flow, rest in left.items() if rest <= 1e-9 * packets[flow]]:
            ends[flow] = now
            del left[flow]
        if coming and now >= arrival:
            flow = int(coming.pop(0))
            left[flow] = float(packets[flow])
    return ends - start


def test_the_document_says_what_sums_done_by_hand_say() -> None:
    """`ID.fct.json` of a run at figure 4.1's load and sizes: formulas, server, means, half widths, to rounding."""
    runs = fs.loads(
        """
        duration = "12s"
        warmup = "2s"
        header = "0B"
        [dumbbell]
        rate = "48Mbps"
        rtt = "100ms"
        router = { law = "rcp", alpha = 0.1, beta = 1.0 }
        [[flows]]
        name = "forward"
        law = "rcp"
        [flows.web]
        load = 0.9
        sizes = { distribution = "pareto", mean = "25kB", shape = 1.2 }
        """
    ).run()
    run = Finished.of(runs, flow_series=False, packet_bytes=1000, scenario=runs.manifest["scenario"])
    (document,) = fct.document({"rcp": RunSet("rcp", [run], ["bottleneck"], "forward")})["runs"]
    capacity, rtt, load = 6000.0, 0.1, 0.9
    times = run.times
    counts = (times.start_s >= 2) & ~np.isnan(times.fct_s)
    server = 1.5 * rtt + shared_by_hand(times.start_s, times.packets, capacity)
    assert document["afct"] == pytest.approx(float(times.fct_s[counts].mean()))
    assert document["afct_server"] == pytest.approx(float(server[counts].mean()), rel=1e-9)
    assert sum(row["flows"] for row in document["bins"]) == int(counts.sum()) > 1000
    for row in document["bins"]:
        here = counts & (times.packets >= row["packets"][0]) & (times.packets < row["packets"][1])
        size, took = times.packets[here], times.fct_s[here]
        assert row["flows"] == took.size
        assert row["mean_s"] == pytest.approx(float(took.mean()))
        assert row["ps_s"] == pytest.approx(float((1.5 * rtt + size / (capacity * (1 - load))).mean()))
        assert row["bound_s"] == pytest.approx(float((1.5 * rtt + size / capacity).mean()))
        slow = (np.log2(size + 1) + 0.5) * rtt + size / capacity
        assert row["slow_start_s"] == pytest.approx(float(slow.mean()))
        assert row["server_s"] == pytest.approx(float(server[here].mean()), rel=1e-9)
        if took.size >= 20:
            batches = took[took.size % 10 :].reshape(10, -1).mean(axis=1)
            assert row["half_width_95_s"] == pytest.approx(2.2621572 * float(batches.std(ddof=1)) / 10**0.5)
        else:
            assert row["half_width_95_s"] is None
