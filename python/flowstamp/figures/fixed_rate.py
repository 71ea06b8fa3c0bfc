# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures of flows that all send at the same rate into one queue (Dukkipati 2007, section 3.3 and appendix A).

A flow's duration `tau` (eq. 3.4) lasts from its first packet's departure to its last packet's arrival. A completion
time also includes the handshake: a round trip, and the queueing delay of the SYN. Flows arrive as a Poisson process, so
that their SYNs find the mean queue:

    E[tau] = E[FCT] - RTT - E[Q]/C

The ideal for comparison is an exact fluid queue with the run's own arrivals and without a handshake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowstamp import theory
from flowstamp.figures import fct

Floats = NDArray[np.float64]

LINK = "bottleneck"


def _group(run: Any, group: str) -> Mapping[str, Any]:
    flows: Mapping[str, Any] = next(f for f in run.scenario["flows"] if f["name"] == group)
    return flows


def _rtt_s(run: Any, group: str) -> float:
    return float(run.summary["groups"][group]["path_rtt_s"])


def _duration(run: Any, group: str) -> float:
    _, times = fct.completed(run, group)
    link = run.summary["links"][LINK]
    return fct.mean(times) - _rtt_s(run, group) - 8 * float(link["mean_queue_bytes"]) / float(link["rate_bps"])


def _flows(run: Any, group: str) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Returns start times and sizes in bytes of all flows in order of arrival, and which of them are `chosen`."""
    times = run.times
    order = np.argsort(times.start_s, kind="stable")
    packets, _ = times.packets, None
    chosen = fct.chosen(run, group)[order]
    return times.start_s[order], packets[order] * run.packet_bytes, chosen


def _fluid(run: Any, group: str) -> float:
    law = _group(run, group)["law"]
    start, size, chosen = _flows(run, group)
    came = theory.rate_limited(start, size, law["desired_rate"], f"{run.summary['links'][LINK]['rate_bps']:.0f}bps")
    return fct.mean(came.durations_s[chosen]) + _rtt_s(run, group) / 2


def _fcfs(run: Any, group: str) -> float:
    start, size, chosen = _flows(run, group)
    times = theory.served("fcfs", start, size, float(run.summary["links"][LINK]["rate_bps"]))
    return fct.mean(times[chosen]) + _rtt_s(run, group) / 2


def _offered(run: Any, group: str) -> float:
    start, size, _ = _flows(run, group)
    begin, end = float(run.summary["warmup_s"]), float(run.summary["duration_s"])
    inside = (start >= begin) & (start < end)
    return 8 * float(np.sum(size[inside])) / (end - begin) / float(run.summary["links"][LINK]["rate_bps"])


MEASURES: dict[str, Callable[[Any, str], float]] = {
    "duration_s": _duration,
    "duration_fluid_s": _fluid,
    "duration_fcfs_s": _fcfs,
    "offered_share": _offered,
}
