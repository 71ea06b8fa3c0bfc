# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Recomputes appendix F of Dukkipati 2007 for every control interval of a run, and compares it with the router.

The router's inputs at the end of an interval come from its probes (`probes.laws`, with a sampling interval shorter than
the control interval): `input_rate_bps`, `sampled_packets`, `sample_rtt_s`, `update_queue_bytes`. Its state before and
after the update comes from the samples on both sides. Lines, names and units (bytes, milliseconds) are the appendix's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from flowstamp import _flowstamp

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Constants:
    """Section F.1's constants; rates in bytes per millisecond."""

    ALPHA: float
    BETA: float
    ETA: float
    MTU: float
    MAX_RATE_ESTIMATION_INTERVAL: float
    link_rate: float


def lines_1_to_13(
    *,
    Tr: float,  # noqa: N803 - the appendix's names
    avg_rtt: float,
    rcp_rate: float,
    input_traffic_rate: float,
    num_pkts_with_rtt: float,
    avg_rtt_Tr: float,  # noqa: N803
    Q_Bytes: float,  # noqa: N803
    k: Constants,
) -> tuple[float, float, float]:
    """Returns the new rate in bytes/ms, the average round-trip time in ms, and the next interval in ms."""
    if num_pkts_with_rtt > 0:
        if avg_rtt_Tr >= avg_rtt:  # line 3
            rtt_sample_weight = Tr / avg_rtt  # line 4
        else:
            rtt_sample_weight = (rcp_rate / k.link_rate) * (avg_rtt_Tr / avg_rtt) * (Tr / avg_rtt)  # line 6
        avg_rtt = rtt_sample_weight * avg_rtt_Tr + (1 - rtt_sample_weight) * avg_rtt  # line 7
    spare = k.ALPHA * (k.ETA * k.link_rate - input_traffic_rate) - k.BETA * Q_Bytes / avg_rtt
    rcp_rate = rcp_rate * (1 + ((Tr / avg_rtt) * spare) / (k.ETA * k.link_rate))  # line 8
    min_rate = 0.01 * k.MTU / avg_rtt
    if rcp_rate < min_rate:  # line 9
        rcp_rate = min_rate  # line 10
    elif rcp_rate > k.ETA * k.link_rate:  # line 11
        rcp_rate = k.ETA * k.link_rate  # line 12
    return rcp_rate, avg_rtt, min(avg_rtt, k.MAX_RATE_ESTIMATION_INTERVAL)  # line 13


class OneRun(Protocol):
    """A curve with a single run."""

    @property
    def runs(self) -> Any:
        """The runs; exactly one."""

    @property
    def links(self) -> Any:
        """Names of links; the first is used."""


def _law(runs: OneRun) -> tuple[Mapping[str, Floats], Constants, Any]:
    if len(runs.runs) != 1:
        raise ValueError("control intervals are those of just one run")
    run, link = runs.runs[0], runs.links[0]
    series: dict[str, Floats] = {name: points[1] for name, points in run.links[link].items()}
    if not series["updates"].size:
        raise ValueError("no control interval was sampled: the link needs an RCP router, and the run probes.laws")
    router = run.scenario["dumbbell"]["router"]
    constants = Constants(
        router["alpha"],
        router["beta"],
        router["eta"],
        _flowstamp.quantity("size", router["mtu"]),
        1e3 * _flowstamp.quantity("time", router["max_interval"]),
        run.summary["links"][link]["rate_bps"] / 8e3,
    )
    return series, constants, run


def _updates(series: Mapping[str, Floats]) -> NDArray[np.intp]:
    """Returns the indices of samples with exactly one update since the previous sample."""
    return np.flatnonzero(np.diff(series["updates"]) == 1) + 1


def _differences(runs: OneRun, what: str) -> Floats:
    """Returns the relative difference of router and appendix for each observed interval, of rate, rtt or interval."""
    which = ("rate", "rtt", "interval").index(what)
    series, constants, _ = _law(runs)
    found = []
    for i in _updates(series):
        after = lines_1_to_13(
            Tr=1e3 * series["interval_s"][i - 1],
            avg_rtt=1e3 * series["avg_rtt_s"][i - 1],
            rcp_rate=series["rate_bps"][i - 1] / 8e3,
            input_traffic_rate=series["input_rate_bps"][i] / 8e3,
            num_pkts_with_rtt=series["sampled_packets"][i],
            avg_rtt_Tr=1e3 * series["sample_rtt_s"][i],
            Q_Bytes=series["update_queue_bytes"][i],
            k=constants,
        )
        did = (series["rate_bps"][i] / 8e3, 1e3 * series["avg_rtt_s"][i], 1e3 * series["interval_s"][i])
        found.append(abs(did[which] / after[which] - 1))
    return np.array(found)


def _seen(runs: OneRun) -> float:
    """Returns the share of all intervals that were observed."""
    series, _, _ = _law(runs)
    return _updates(series).size / float(series["updates"][-1] - series["updates"][0])


def _over_min_rate(runs: OneRun) -> Floats:
    """Returns the rate divided by `MIN_RATE = 0.01 MTU / avg_rtt`, for each sample."""
    series, constants, _ = _law(runs)
    return series["rate_bps"] / 8 * series["avg_rtt_s"] / (0.01 * constants.MTU)


def _counted_input(runs: OneRun) -> float:
    """Returns the input that the router counted, divided by the sum of bytes sent, dropped and left in the queue.

    Assumes that dropped packets have full size. Raises `ValueError` for a run with warm-up.
    """
    series, constants, run = _law(runs)
    link = run.summary["links"][runs.links[0]]
    length = float(run.summary["duration_s"]) - float(run.summary["warmup_s"])
    if run.summary["warmup_s"] > 0:
        raise ValueError("what a router counted is compared over a run without warm-up")
    at = _updates(series)
    counted = float(np.sum(series["input_rate_bps"][at] / 8 * series["interval_s"][at - 1]))
    sent = float(link["utilization"]) * constants.link_rate * 1e3 * length
    lost = float(link["drops"]) * float(run.packet_bytes)
    return counted / (sent + lost + float(series["queue_bytes"][-1]))


FUNCTIONS: dict[str, tuple[int | None, Callable[..., Any]]] = {
    "appendix_f": (2, _differences),
    "intervals_seen": (1, _seen),
    "over_min_rate": (1, _over_min_rate),
    "counted_input": (1, _counted_input),
}
