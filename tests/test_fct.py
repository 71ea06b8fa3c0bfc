# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Flow completion times in figures: formulas, the processor-sharing server, bins and batch means."""

from __future__ import annotations

import numpy as np
import pytest

from flowstamp.figures import fct


def test_quantities() -> None:
    assert fct.quantity("2.4Gbps") == 2.4e9
    assert fct.quantity("100ms") == pytest.approx(0.1)
    assert fct.quantity("25kB") == 25_000
    assert fct.quantity("90%") == pytest.approx(0.9)
    assert fct.quantity(0.9) == 0.9
    with pytest.raises(ValueError, match="no quantity"):
        fct.quantity("fast")


def scenario(**network: object) -> dict[str, object]:
    web = {"load": 0.9, "sizes": {"distribution": "pareto", "mean": "25kB", "shape": 1.2}}
    return {
        "dumbbell": {"rate": "2.4Gbps", "rtt": "100ms", **network},
        "flows": [{"name": "forward", "web": web}, {"name": "back", "reverse": True, "web": {**web, "load": 0.2}}],
    }


def test_formulas() -> None:
    """Equation 4.1 and the slow-start curve of section 4.2.1 for C = 2.4 Gb/s, RTT 0.1 s, load 0.9."""
    ideal = fct.Ideal.of(scenario(), "forward", 1000)
    assert ideal is not None
    assert (ideal.capacity, ideal.load, ideal.mean_packets) == (3e5, 0.9, 25)
    size = np.array([3.0, 3000.0])
    assert ideal.ps(size) == pytest.approx([0.1501, 0.25])
    assert ideal.bound(size) == pytest.approx([0.15001, 0.16])
    assert ideal.slow_start(size)[0] == pytest.approx(0.25001)
    back = fct.Ideal.of(scenario(), "back", 1000)
    assert back is not None
    assert back.load == 0.2


def test_processor_sharing_by_hand() -> None:
    """Two flows share from 0 on; a third comes at 1 when the first two have had half a packet each."""
    taken = fct.processor_sharing(np.array([0.0, 0.0, 1.0]), np.array([1.0, 2.0, 1.0]), 1.0)
    # Three share until the first is done at 2.5; the third has half a packet left, the second one: done at 3.5 and 4.
    assert taken == pytest.approx([2.5, 4.0, 2.5])


@pytest.mark.parametrize("sizes", ["exponential", "fixed"])
def test_processor_sharing_does_not_mind_the_distribution(sizes: str) -> None:
    """M/G/1-PS: mean E[L] / (C (1 - rho)), whatever the sizes. 400 000 flows at a load of 0.7; 3% is five errors."""
    rng = np.random.default_rng(1)
    n = 400_000
    start = np.cumsum(rng.exponential(1 / 0.7, n))
    size = rng.exponential(1.0, n) if sizes == "exponential" else np.ones(n)
    taken = fct.processor_sharing(start, size, 1.0)
    assert float(taken.mean()) == pytest.approx(1 / 0.3, rel=0.03)
    # Alone in proportion to size: E[T | L] = L / (1 - rho).
    if sizes == "exponential":
        large = size > 2
        assert float(taken[large].mean() / size[large].mean()) == pytest.approx(1 / 0.3, rel=0.06)


def test_half_width_covers_the_mean() -> None:
    """Of 95% intervals of independent series between 90% and 99% hold the mean (400 series: error 1.1%)."""
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
            np.zeros(4, np.int16),
            {"forward": 0},
            3.0,
        )
        self.summary = {"warmup_s": 1.0, "duration_s": 11.0}

    def ideal(self, group: str) -> fct.Ideal | None:
        """Of the scenario above."""
        return fct.Ideal.of(scenario(), group, 1000)

    def server(self, group: str) -> fct.Floats:
        """All four flows."""
        assert group == "forward"
        return fct.processor_sharing(self.times.start_s, self.times.packets, 3e5)


class Runs:
    """A curve of the one run."""

    name, group, split = "made", "forward", 500.0

    def __init__(self) -> None:
        self.runs = [Made()]


def test_measures() -> None:
    runs = Runs()
    of = {name: float(fct.measure(runs, name)[0]) for name in fct.MEASURES}
    assert of["afct"] == 3
    assert of["max_fct"] == 4
    assert (of["afct_small"], of["afct_large"]) == (2, 4)
    assert (of["count_small"], of["count_large"]) == (1, 1)
    assert of["completed_share"] == pytest.approx(2 / 3)
    assert of["offered_load"] == pytest.approx(1030 / 10 / 3e5)
    assert of["retransmitted_share"] == pytest.approx(3 / 1040)
    assert of["server_large"] == pytest.approx(0.15 + 1000 / 3e5)
    # From 1 to 11 s: half a second of the first, 2 of the second, 8 of the third, 4 of the fourth.
    assert of["active"] == pytest.approx(14.5 / 10)


def test_active_flows_follow_littles_law() -> None:
    """Mean active flows over the whole run are arrivals times mean time, when all are complete."""
    made = Made()
    flows = made.times
    start, took = flows.start_s[[0, 1, 3]], flows.fct_s[[0, 1, 3]]
    made.times = fct.FlowTimes(start, took, flows.packets[[0, 1, 3]], flows.group[:3], flows.groups, 0.0)
    assert fct.mean_active(made, "forward", 0.0, 10.0) == pytest.approx(3 / 10 * float(took.mean()))
    assert list(fct.active_over_time(made, "forward", np.array([0.0, 1.0, 3.0, 4.5, 9.0]))) == [0, 1, 1, 1, 0]


def test_bins() -> None:
    found = fct.bins(Made(), "forward")
    assert [(b.flows, b.mean_packets, b.mean_s, b.max_s) for b in found] == [(1, 10, 2, 2), (1, 1000, 4, 4)]
    assert all(b.low <= b.mean_packets < b.high for b in found)
    assert fct.bins(Made(), "forward", least=2) == []
