# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp.theory`: the crate's mathematics as Python sees it, held against sums and closed forms done here."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flowstamp as fs
from flowstamp import theory


def test_processor_sharing_by_hand() -> None:
    """Two flows share from 0 on; a third comes at 1 when the first two have had half a byte each."""
    # Three share until the first is done at 2.5; the third has half a byte left, the second one: done at 3.5 and 4.
    assert theory.serve("ps", [0, 0, 1], [1, 2, 1], "8bps") == pytest.approx([2.5, 4.0, 2.5])
    # The order of the flows is the caller's.
    assert theory.serve("ps", [1, 0, 0], [1, 1, 2], "8bps") == pytest.approx([2.5, 2.5, 4.0])


def test_servers_order_flows_as_their_names_say() -> None:
    """A flow of 4 bytes at 0, one of 1 byte at 1, one byte a second."""
    times = {name: list(theory.serve(name, [0, 1], [4, 1], "8bps")) for name in ("fcfs", "ps", "srpt", "fb")}
    assert times == {"fcfs": [4, 4], "ps": [5, 2], "srpt": [5, 1], "fb": [5, 1]}


def test_formulas() -> None:
    """Section 4.1 and equation 4.1 at 2.4 Gb/s, 100 ms, load 0.9; 3000 packets last 10 ms alone."""
    at = {
        name: float(theory.completion_times(name, [3000], rtt="100ms", capacity="2.4Gbps", load=0.9)[0])
        for name in ("ps", "bound", "slow_start")
    }
    expected = {"ps": 0.25, "bound": 0.16, "slow_start": (math.log2(3001) + 0.5) * 0.1 + 0.01}
    assert at == pytest.approx(expected)


def test_an_exponential_queue() -> None:
    """M/M/1 at load 0.8 with a service time of 1 ms: 5 ms under FCFS and PS, less under SRPT; trips 1, 1.5 and 2."""
    link = theory.Link("8Mbps", theory.exponential("1kB"), load=0.8)
    assert link.flows_per_s == pytest.approx(800)
    assert link.mean_time("fcfs") == pytest.approx(5e-3)
    assert link.mean_time("ps") == pytest.approx(5e-3)
    assert link.mean_time("ps", "2kB") == pytest.approx(10e-3)
    assert link.mean_time("srpt") < 4e-3
    trips = [link.mean_fct("ps", "10ms", equation=equation) - 5e-3 for equation in ("2.1", "4.1", "6.1")]
    assert trips == pytest.approx([0.01, 0.015, 0.02])
    assert theory.Link("8Mbps", theory.exponential("1kB"), flows_per_s=800).load == pytest.approx(0.8)
    # From R = C on a flow's duration is the delay of the single server (section 3.3).
    assert link.mean_duration(1.0, blocking="erlang_c") == pytest.approx(5e-3)


def test_sizes() -> None:
    assert theory.pareto("25kB", 1.2).second_moment == math.inf
    cut = theory.pareto("25kB", 1.2, largest="100MB")
    assert cut.mean_bytes == pytest.approx(25_000)
    assert cut.cdf("100MB") == 1
    assert theory.uniform("1kB", "3kB").mean_bytes == theory.fixed("2kB").mean_bytes == 2000
    assert theory.empirical([("1kB", 0.5), ("3kB", 1.0)]).mean_bytes == pytest.approx(1500)


def test_the_queue_of_section_3_3() -> None:
    """Two flows of 2 bytes at once, each at the link's byte per second: a queue of 2 bytes is left when they end."""
    came = theory.rate_limited([0, 0], [2, 2], "8bps", "8bps")
    assert came.durations_s == pytest.approx([4, 4])
    assert came.mean_queue_bytes == pytest.approx(1)
    assert came.utilization == pytest.approx(1)


def test_batch_means_are_students() -> None:
    """Ten batches of equal length, t(9) = 2.262; what fills none is left out in front."""
    values = np.random.default_rng(3).exponential(1.0, 1007)
    means = values[7:].reshape(10, 100).mean(axis=1)
    found = theory.batch_means(values)
    assert found.mean == pytest.approx(float(means.mean()))
    assert found.half_width == pytest.approx(2.262157 * float(means.std(ddof=1)) / math.sqrt(10), rel=1e-6)


def test_warm_up_is_found() -> None:
    ramp = np.minimum(np.arange(1000) / 100, 1.0) + 0.05 * (-1.0) ** np.arange(1000)
    assert 80 <= theory.mser5(ramp) <= 110


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: theory.Link("45mbps", theory.fixed("1kB"), load=0.5), "45mbps"),
        (lambda: theory.Link("45Mbps", theory.fixed("1kB"), load=1.0), "load is 1"),
        (lambda: theory.pareto("25kB", 1.0), "shape is 1"),
        (lambda: theory.serve("lifo", [0.0], [1.0], "8bps"), "fcfs, ps, srpt, fb"),  # type: ignore[arg-type]
        (lambda: theory.serve("ps", [0, 1], [1], "8bps"), "2 arrivals and 1 sizes"),
        (lambda: theory.serve("ps", [0.0], [-1.0], "8bps"), "flow 0"),
        (lambda: theory.batch_means([1.0]), "1 values do not fill 10 batches"),
    ],
)
def test_what_has_no_answer_is_refused_in_one_line(ask: object, said: str) -> None:
    assert callable(ask)
    with pytest.raises(fs.TheoryError) as error:
        ask()
    assert said in str(error.value)
    assert "\n" not in str(error.value)
