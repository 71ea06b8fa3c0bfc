# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures of finished runs, for pictures and claims."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowstamp import _flowstamp, theory
from flowstamp.figures import analytic, datacentre, fct, fixed_rate, videos, wifi
from flowstamp.plot import RunLike, series

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Finished:
    """The part of a finished run that claims and pictures need: the summary, and the sampled series."""

    summary: Mapping[str, Any]
    links: Mapping[str, Mapping[str, tuple[Floats, Floats]]]
    many: Mapping[str, Mapping[str, tuple[Floats, Floats]]]
    """By measure: one series over time for each flow or group."""
    switched: Mapping[str, float]
    """Times at which flows fell back to TCP, in seconds, by flow."""
    packet_bytes: float
    times: fct.FlowTimes
    scenario: Mapping[str, Any] = field(default_factory=dict)
    served: dict[tuple[bool, theory.Discipline], Floats] = field(default_factory=dict)  # cache of `server`
    members: tuple[Finished, ...] = ()
    """The runs with the individual seeds, if this one pools several."""

    @classmethod
    def of(
        cls, run: RunLike, *, flow_series: bool, packet_bytes: float, scenario: Mapping[str, Any] | None = None
    ) -> Finished:
        """Copies what figures need. `flow_series` says that the run sampled its flows over time."""
        summary: dict[str, Any] = json.loads(run.summary_json())
        links = {
            name: {metric: series(run, "link", name, metric) for metric in ("utilization", "queue_bytes", "drops")}
            | {metric: series(run, "law", name, metric) for metric in (*law_variables(), wifi.VARIABLE)}
            for name in summary["links"]
        }
        flows = [f"{row['group']}.{row['index']}" for row in summary["flows"]] if flow_series else []
        groups = list(summary["groups"]) if summary["groups"] and _sampled(run, next(iter(summary["groups"]))) else []
        many = {
            name: {of: series(run, kind, of, metric) for of in (flows if kind == "flow" else groups)}
            for name, (kind, metric, _) in MANY.items()
        }
        table = run.flows
        codes, names = table.words("group")
        at, index = (np.frombuffer(table.numbers(name), np.float64) for name in ("switched_s", "index"))
        group = np.frombuffer(codes, np.int32)
        switched = {f"{names[group[n]]}.{int(index[n])}": float(at[n]) for n in np.flatnonzero(~np.isnan(at))}
        times = fct.FlowTimes.of(table, fct.payload(scenario or {}, packet_bytes), packet_bytes)
        return cls(summary, links, many, switched, packet_bytes, times, scenario or {})

    def ideal(self, group: str) -> fct.Ideal | None:
        """Returns the inputs of the formulas for flow completion times; None if they do not apply to this network."""
        network = self.scenario.get("dumbbell") or self.scenario.get("parking_lot")
        if network is None or any(isinstance(network.get(key), Mapping) for key in ("rate", "reverse_rate")):
            return None  # another topology, or a capacity that varies
        carried = fct.payload(self.scenario, self.packet_bytes)
        return fct.Ideal.of(self.summary, group, self.packet_bytes, carried)

    def server(self, group: str, discipline: theory.Discipline) -> Floats:
        """Returns the flows' times in an exact server; NaN for flows opposite in direction to `group`."""
        if self.members:
            return np.concatenate([run.server(group, discipline) for run in self.members])
        times, ideal = self.times, self.ideal(group)
        reverse = {f["name"]: bool(f.get("reverse")) for f in self.scenario.get("flows", ())}
        if ideal is None or not self.scenario.get("dumbbell"):
            return np.full(times.start_s.size, np.nan)
        key = (reverse[group], discipline)
        if key not in self.served:
            codes = [code for name, code in times.groups.items() if reverse.get(name) == reverse[group]]
            here = np.isin(times.group, codes)
            taken = np.full(times.start_s.size, np.nan)
            taken[here] = theory.served(discipline, times.start_s[here], times.packets[here], 8 * ideal.capacity)
            self.served[key] = taken
        return self.served[key]

    def normalized(self, group: str) -> float:
        """Returns a group's mean goodput per flow / the fair share, which is its path's capacity / number of flows."""
        groups = self.summary["groups"]
        flows = sum(float(one["flows"]) for one in groups.values())
        fair_bps = float(groups[group]["capacity_bps"]) / flows
        return float(groups[group]["goodput_bps"]) / float(groups[group]["flows"]) / fair_bps

    def drops(self, link: str) -> float:
        """Returns packets dropped on a link in the whole run, warm-up included."""
        self.used(link)
        return self._lost(link)

    def drops_of(self, link: str, what: str) -> float:
        """Returns `drops_data` or `drops_acks` of a link in the whole run, warm-up included."""
        found = self.used(link)
        if "whole_run" not in found:
            raise ValueError(f"{what} of {link} were not counted: only the simulator tells data from acks")
        return float(found["whole_run"][what])

    def all_drops(self) -> float:
        """Returns packets dropped on all links, access links and warm-up included."""
        self.everywhere()
        return sum(map(self._lost, self.links)) + float(self.summary["access"]["drops"])

    def later_drops(self) -> float:
        """Returns packets dropped on all links after warm-up."""
        return float(self.everywhere()["drops"])

    def _lost(self, link: str) -> float:
        samples = self.links[link]["drops"][1]
        if not samples.size:
            raise ValueError(f"drops of {link} were not sampled: probes.links")
        return float(np.sum(samples))

    def used(self, link: str) -> Mapping[str, Any]:
        """Returns the summary of a link. Raises `ValueError` if no packet reached it: its zeros would prove nothing."""
        found: Mapping[str, Any] = self.summary["links"][link]
        if not found["arrivals"]:
            raise ValueError(f"no packet reached {link} after warm-up")
        return found

    def everywhere(self) -> Mapping[str, Any]:
        """Returns the totals over all links. Raises `ValueError` if no packet reached any."""
        if not any(link["arrivals"] for link in self.summary["links"].values()):
            raise ValueError("no packet reached any link after warm-up")
        total: Mapping[str, Any] = self.summary["total"]
        return total


def pooled(runs: Sequence[Finished]) -> Finished:
    """Pools runs of one network with several seeds: flows are joined, everything else is that of the first run."""
    if len(runs) == 1:
        return runs[0]
    times = fct.FlowTimes.together([run.times for run in runs])
    return dataclasses.replace(runs[0], times=times, served={}, members=tuple(runs))


def _sampled(run: RunLike, group: str) -> bool:
    return bool(series(run, "group", group, "goodput_bps")[0].size)


DELAYS = ("mean", "p50", "p95", "p99", "max")


def _ms(delays: Mapping[str, Any] | None, statistic: str) -> float:
    """Returns a statistic of delays in ms; NaN if no packet passed."""
    return math.nan if delays is None else float(delays[statistic]) * 1e3


def _queueing_delay(statistic: str) -> Callable[[Finished, str], float]:
    return lambda run, link: _ms(run.used(link)["queueing_delay_s"], statistic)


def _packet_delay(statistic: str) -> Callable[[Finished, str], float]:
    return lambda run, group: _ms(run.summary["groups"][group]["packet_delay_s"], statistic)


# Measures of one link of a run, after warm-up except `drops`, `drops_data` and `drops_acks`.
_LINK: dict[str, Callable[[Finished, str], float]] = {
    "utilization": lambda r, n: float(r.used(n)["utilization"]),
    "mean_queue_packets": lambda r, n: r.used(n)["mean_queue_bytes"] / r.packet_bytes,
    "p90_buffer_share": lambda r, n: r.used(n)["p90_queue_bytes"] / r.used(n)["buffer_bytes"],
    "p95_queue_packets": lambda r, n: r.used(n)["p95_queue_bytes"] / r.packet_bytes,
    "max_queue_packets": lambda r, n: r.used(n)["max_queue_bytes"] / r.packet_bytes,
    "mean_queue_ms": lambda r, n: r.used(n)["mean_queue_bytes"] * 8e3 / r.used(n)["rate_bps"],
    **{f"{statistic}_queueing_delay_ms": _queueing_delay(statistic) for statistic in DELAYS},
    "buffer_share": lambda r, n: r.used(n)["mean_queue_bytes"] / r.used(n)["buffer_bytes"],
    "buffer_packets": lambda r, n: r.summary["links"][n]["buffer_bytes"] / r.packet_bytes,
    "drops": lambda r, n: r.drops(n),
    "drops_data": lambda r, n: r.drops_of(n, "drops_data"),
    "drops_acks": lambda r, n: r.drops_of(n, "drops_acks"),
    "drop_rate": lambda r, n: float(r.used(n)["drop_rate"]),
    "marks": lambda r, n: float(r.used(n)["marks"]),
    **videos.LINK,
    **wifi.LINK,
}
# Measures of a run.
_RUN: dict[str, Callable[[Finished, str], float]] = {
    **{f"{statistic}_packet_delay_ms": _packet_delay(statistic) for statistic in DELAYS},
    "all_drops": lambda r, _: r.all_drops(),
    "later_drops": lambda r, _: r.later_drops(),
    "startup_drops": lambda r, _: r.all_drops() - r.later_drops(),
    "all_drop_rate": lambda r, _: float(r.everywhere()["drop_rate"]),
    "jain": lambda r, group: float(r.summary["groups"][group]["jain_index"]),
    "goodput_mbps": lambda r, group: r.summary["groups"][group]["goodput_bps"] / 1e6,
    "all_mbps": lambda r, _: r.everywhere()["goodput_bps"] / 1e6,
    "normalized": lambda r, group: r.normalized(group),
    **fixed_rate.MEASURES,
    **datacentre.MEASURES,
    **videos.MEASURES,
}
# Further measures for panels: per flow of a run, and over time.
_FLOW, _INDEX = "flow_mbps", "flow_index"
_SEQUENCE = "flow_packets"  # packets of each flow that have arrived so far
_WINDOW = "flow_cwnd_packets"
OVER_TIME = {"utilization": "utilization", "queue_packets": "queue_bytes", "drops": "drops"}
# Measures of all flows or groups over time: kind, sampled metric, and factor to the measure's unit.
MANY = {
    _FLOW: ("flow", "goodput_bps", 1e-6),
    "flow_rtt_ms": ("flow", "rtt_s", 1e3),
    _WINDOW: ("flow", "cwnd_packets", 1.0),
    _SEQUENCE: ("flow", "goodput_bps", 1.0),
    "group_mbps": ("group", "goodput_bps", 1e-6),
}


@cache
def law_variables() -> tuple[str, ...]:
    """Returns the metrics that `probes.laws` samples for router laws and schedulers, found by a 2 ms run of each."""

    def run(router: str, share: str) -> Iterator[str]:
        link = {"rate": "1Mbps", "rtt": "1ms", "router": router, "share": share}
        flows = [{"name": "any", "law": "reno"}]
        probes = {"every": "1ms", "laws": True}
        scenario = {"duration": "2ms", "dumbbell": link, "flows": flows, "probes": probes}
        table = _flowstamp.Source(json.dumps(scenario), format="json").run().series
        kinds = zip(table.column("kind"), table.column("metric"), strict=True)
        return (metric for kind, metric in kinds if kind == "law")

    routers = [name for name in _flowstamp.laws()["routers"] if name != "none"]
    schema = json.loads(_flowstamp.scenario_schema())
    [shares] = (form["enum"] for form in schema["$defs"]["ShareSpec"]["anyOf"] if "enum" in form)
    return tuple(dict.fromkeys(name for router in routers for share in shares for name in run(router, share)))


# Measures whose unit is a share of the capacity, or packets.
_SHARES = {"rate_share": "rate_bps", "own_share": "own_capacity_bps", "input_share": "input_rate_bps"}
_PACKETS = {
    "avg_cwnd_packets": "avg_cwnd_bytes",
    "own_queue_packets": "own_queue_bytes",
    "other_queue_packets": "other_queue_bytes",
    "persistent_queue_packets": "persistent_queue_bytes",
}
_ACTIVE, _FAIRNESS, _TOTAL = "active_flows", "fairness_index", "total_mbps"
# Round trips until a link's utilisation first reaches this share.
_REACHED = {"reached_75_rtts": 0.75, "reached_90_rtts": 0.9}
# Round trips from the last flow's start until Jain's index of the windows is this high in two successive samples. A
# single sample between the window cuts of two flows may look even by chance.
_FAIR, _EVEN = "even_999_rtts", 0.999
# Round trips from a VCP link's first load factor of 1 or more until one is below 1, in path RTTs and in flows' RTTs.
_RELEASED, _RELEASED_OWN = "released_rtts", "released_own_rtts"
_IN_RTTS = (*_REACHED, _FAIR, _RELEASED, _RELEASED_OWN)


@cache
def _law_measures() -> Mapping[str, str]:
    """Returns the law variable that each measure is computed from."""
    plain = {name: name for name in law_variables() if not name.endswith(("_bps", "_bytes"))}
    return {**_SHARES, **_PACKETS, **plain}


@cache
def measures() -> tuple[str, ...]:
    """Returns the names of all measures."""
    of_link = ("queue_packets", *_law_measures(), _ACTIVE, _FAIRNESS, _TOTAL)
    of_flows = (_INDEX, *datacentre.OF_FLOWS)
    return (*_LINK, *_RUN, *_IN_RTTS, *MANY, *of_flows, *of_link, *fct.MEASURES, *analytic.MEASURES)


@dataclass(frozen=True, eq=False)
class RunSet:
    """The runs of one curve, as claims see them. Methods raise `ValueError` for unknown names and missing samples."""

    name: str
    runs: Sequence[Finished]
    links: Sequence[str]
    group: str
    split: float = 500.0  # size in packets that separates `_small` from `_large`
    where: NDArray[np.bool_] | None = None
    """Points of the figure that have a run; None means all."""

    def of(self, group: str) -> RunSet:
        """Returns the same runs with another group as the measured one."""
        known = self.runs[0].summary["groups"]
        if group not in known:
            raise ValueError(f'there is no group "{group}"; there are {", ".join(known)}')
        return dataclasses.replace(self, group=group)

    def on(self, link: str) -> RunSet:
        """Returns the same runs with another link as the measured one."""
        if link not in self.runs[0].links:
            raise ValueError(f'there is no link "{link}"; there are {", ".join(self.runs[0].links)}')
        return dataclasses.replace(self, links=[link])

    def seed(self, number: int) -> RunSet:
        """Returns the runs with one of several seeds."""
        return dataclasses.replace(self, runs=[(run.members or (run,))[number] for run in self.runs])

    def at(self, point: int) -> RunSet:
        """Returns the run of a single point."""
        return dataclasses.replace(self, runs=[self.runs[point]], where=None)

    def by_rtt(self, name: str, pattern: str, point: int) -> tuple[Floats, Floats]:
        """Returns the propagation RTTs in ms of the groups that match `pattern`, sorted, and a measure of each."""
        groups = self.runs[point].summary["groups"]
        chosen = sorted((float(of["path_rtt_s"]), group) for group, of in groups.items() if fnmatchcase(group, pattern))
        if not chosen:
            raise ValueError(f'no group is named "{pattern}"; there are {", ".join(groups)}')
        values = [self.of(group).measure(name)[point] for _, group in chosen]
        return np.array([rtt_s * 1e3 for rtt_s, _ in chosen]), np.array(values)

    def measure(self, name: str) -> Floats:
        """Returns one value per point (averaged over links), or with a single run per link or per flow.

        Values are averaged over seeds, and NaN at points without a run.
        """
        return self._everywhere(self._values(name))

    def _everywhere(self, values: Floats) -> Floats:
        if self.where is None:
            return values
        every = np.full(self.where.size, np.nan)
        every[self.where] = values
        return every

    def _values(self, name: str) -> Floats:
        if any(run.members for run in self.runs):
            mean: Floats = np.mean(self._by_seed(name), axis=0)
            return mean
        if name in _LINK:
            values: Floats = np.array([[_LINK[name](run, link) for link in self.links] for run in self.runs])
            return np.mean(values, axis=1) if len(self.runs) > 1 or self.where is not None else np.ravel(values)
        if name in _RUN:
            return np.array([_RUN[name](run, self.group) for run in self.runs])
        if name in _IN_RTTS:
            return np.array([self.at(point)._rtts_until(name) for point in range(len(self.runs))])
        if name in fct.MEASURES:
            return fct.measure(self, name)
        if name in datacentre.OF_FLOWS:
            return datacentre.OF_FLOWS[name](self._only(), self.group)
        if name in (_FLOW, _INDEX):
            rows = [row for row in self._only().summary["flows"] if fnmatchcase(row["group"], self.group)]
            return np.array([float(n) if name == _INDEX else row["goodput_bps"] / 1e6 for n, row in enumerate(rows)])
        raise ValueError(f'"{name}" is over time only: samples({self.name}, "{name}", from, to)')

    def _rtts_until(self, name: str) -> float:
        """Returns the time of a measure of `_IN_RTTS` in the group's path RTTs; NaN if the run never gets there."""
        if name in (_RELEASED, _RELEASED_OWN):
            return self._released(own=name == _RELEASED_OWN)
        run, began = self._only(), 0.0
        if name in _REACHED:
            times, values = run.links[self.links[0]]["utilization"]
            there = values >= _REACHED[name]
        else:
            times, values = self._fairness(_WINDOW)
            began = max(float(row["start_s"]) for row in run.summary["flows"])
            there = (values >= _EVEN) & (times > began + self.sample_s())
            there = there & np.append(there[1:], False)
        if not times.size:
            raise ValueError(f'"{name}" needs samples over time: probes.links, or probes.flows')
        first = np.flatnonzero(there)
        return (float(times[first[0]]) - began) / self._path_rtt_s() if first.size else math.nan

    def _path_rtt_s(self) -> float:
        return float(self._only().summary["groups"][self.group]["path_rtt_s"])

    def _released(self, *, own: bool) -> float:
        """Returns the duration of over-use in path RTTs, or with `own` in the flows' mean RTTs during it."""
        times, load = self.over_time("load_factor")
        over = np.flatnonzero(load >= 1.0)
        under = np.flatnonzero(load < 1.0)
        ends = under[under > over[0]] if over.size else over
        if not ends.size:
            return math.nan
        began, ended = over[0], ends[0]
        if not own:
            return float(times[ended] - times[began]) / self._path_rtt_s()
        found = self.many_over_time("flow_rtt_ms").values()
        rtts_ms = np.array([values[began + 1 : ended + 1] for _, values in found])
        if not rtts_ms.size:
            raise ValueError("no flow was probed: set probes.flows")
        mean_ms = np.sum(rtts_ms, axis=0) / np.count_nonzero(rtts_ms, axis=0)  # 0 means no RTT sample yet
        return float(np.sum(1e3 * self.sample_s() / mean_ms))

    def _by_seed(self, name: str) -> Floats:
        """Returns the values with each seed, of shape (seeds, values)."""
        seeds = zip(*(run.members or (run,) for run in self.runs), strict=True)
        return np.array([dataclasses.replace(self, runs=s)._values(name) for s in seeds])

    def half_widths(self, name: str) -> Floats:
        """Returns the half width of each value's 95% confidence interval over the seeds."""
        values = self._by_seed(name)
        return self._everywhere(np.array([theory.batch_means(v, v.size, fct.LEVEL).half_width for v in values.T]))

    def over_time(self, name: str) -> tuple[Floats, Floats]:
        """Returns times in seconds and values of a link's measure."""
        if name == _ACTIVE:
            t, _ = self._only().links[self.links[0]]["utilization"]
            run = self._only()
            return t, fct.active_over_time(run.members[0] if run.members else run, self.group, t)
        if name == _FAIRNESS:
            return self._fairness()
        if name == _TOTAL:
            t, shares, _ = self._while_active(_FLOW)
            return t, np.sum(shares, axis=0)
        variable = _law_measures().get(name)
        if variable is not None:
            t, v = self._only().links[self.links[0]][variable]
            if not t.size:
                raise ValueError(f'"{name}" was not sampled: the link needs such a router, and the run probes.laws')
            if name in _SHARES:
                return t, v / self._only().summary["links"][self.links[0]]["rate_bps"]
            return t, v / self._only().packet_bytes if name in _PACKETS else v
        if name not in OVER_TIME:
            raise ValueError(f'"{name}" has no samples of a link; there are utilization, queue_packets and drops')
        t, v = self._only().links[self.links[0]][OVER_TIME[name]]
        return t, v / self._only().packet_bytes if name == "queue_packets" else v

    def many_over_time(self, name: str) -> dict[str, tuple[Floats, Floats]]:
        """Returns times in seconds and values of a measure of each flow or group."""
        found = self._only().many[name]
        if name == _SEQUENCE:
            bits = 8 * fct.payload(self._only().scenario, self._only().packet_bytes)
            return {of: (t, np.cumsum(v) * self.sample_s() / bits) for of, (t, v) in found.items()}
        return {of: (t, v * MANY[name][2]) for of, (t, v) in found.items()}

    def _while_active(self, name: str) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Returns times, and per flow (rows) a measure and whether it was active during the whole sampling interval."""
        found = self.many_over_time(name)
        if not found:
            raise ValueError("no flow was probed: set probes.flows")
        rows = {f"{row['group']}.{row['index']}": row for row in self._only().summary["flows"]}
        starts = np.array([rows[flow]["start_s"] for flow in found])
        last = [[rows[flow][key] for key in ("end_s", "stop_s")] for flow in found]
        ends = np.array([min((e for e in both if e is not None), default=np.inf) for both in last])
        times = next(iter(found.values()))[0]
        active = (starts[:, None] <= times - self.sample_s() * 0.999) & (ends[:, None] >= times)
        return times, np.array([values for _, values in found.values()]), active

    def _fairness(self, name: str = _FLOW) -> tuple[Floats, Floats]:
        """Returns times and Jain's index of the active flows' throughputs, or of their windows."""
        times, shares, active = self._while_active(name)
        squares = np.sum(active, axis=0) * np.sum(shares**2 * active, axis=0)
        known = squares > 0
        return times[known], np.sum(shares * active, axis=0)[known] ** 2 / squares[known]

    def flow_samples_of_all(self, name: str, start_s: float, end_s: float) -> Floats:
        """Returns all flows' samples of a measure between two times while active, without RTTs of 0 (no sample yet)."""
        if MANY.get(name, ("",))[0] != "flow":
            flows = ", ".join(known for known, (kind, _, _) in MANY.items() if kind == "flow")
            raise ValueError(f'"{name}" is not sampled of flows; there are {flows}')
        times, values, active = self._while_active(name)
        taken = values[active & (times >= start_s) & (times <= end_s)]
        return taken[taken > 0] if name == "flow_rtt_ms" else taken

    def packet_delay_ms(self, packets: float, statistic: str) -> Floats:
        """Returns a statistic of packet delays in ms at each point, for the size bin that contains `packets`."""
        values = []
        for run in self.runs:
            size = packets * fct.payload(run.scenario, run.packet_bytes)
            of_group = run.summary["groups"][self.group]["packet_delay_s"] or {"bins": []}
            found = next((b for b in of_group["bins"] if b["min_bytes"] <= size < b["max_bytes"]), None)
            if found is None:
                raise ValueError(f"no packet of a flow of {packets:g} packets arrived of {self.group}")
            if statistic not in found:
                raise ValueError(f'"{statistic}" is none of mean, p50, p95, p99 and max')
            values.append(1e3 * found[statistic])
        return np.array(values)

    def megabytes(self, pattern: str) -> float:
        """Returns the payload of groups matching a pattern such as `up*` in the whole run, in 10^6 bytes per run."""
        found = [row for run in self.runs for row in run.summary["flows"] if fnmatchcase(row["group"], pattern)]
        if not found:
            known = ", ".join(self.runs[0].summary["groups"])
            raise ValueError(f'no group is named "{pattern}"; there are {known}')
        return sum(float(row["delivered_bytes"]) for row in found) / 1e6 / len(self.runs)

    def packets(self, flow: str, at_s: float) -> float:
        """Returns the packets of a flow that have arrived by the last sample up to `at_s`."""
        t, v = self._of_many(_SEQUENCE, flow)
        until = np.searchsorted(t, at_s + self.sample_s() / 1e3, "right")
        return float(v[until - 1]) if until else 0.0

    def samples(self, metric: str, start_s: float, end_s: float) -> Floats:
        """Returns a link's samples whose intervals lie between two times."""
        return self._cut(*self.over_time(metric), start_s, end_s)

    def flow_samples(self, flow: str, start_s: float, end_s: float) -> Floats:
        """Returns throughput samples of a flow between two times, in Mb/s."""
        return self._cut(*self._of_many(_FLOW, flow), start_s, end_s)

    def window_samples(self, flow: str, start_s: float, end_s: float) -> Floats:
        """Returns congestion window samples of a flow between two times, in packets."""
        return self._cut(*self._of_many(_WINDOW, flow), start_s, end_s)

    def group_samples(self, group: str, start_s: float, end_s: float) -> Floats:
        """Returns throughput samples of a group between two times, in Mb/s."""
        return self._cut(*self._of_many("group_mbps", group), start_s, end_s)

    def _of_many(self, name: str, of: str) -> tuple[Floats, Floats]:
        found = self.many_over_time(name)
        if of not in found:
            kind = MANY[name][0]
            raise ValueError(
                f'{kind} "{of}" was not probed; there are {", ".join(found) or f"none: set probes.{kind}s"}'
            )
        return found[of]

    def switched_s(self, flow: str) -> float:
        """Returns the time at which a flow fell back to TCP, in seconds; infinite if it never did."""
        return self._only().switched.get(flow, float("inf"))

    def switches(self) -> float:
        """Returns the number of flows that fell back to TCP."""
        if not any(group["flows"] for group in self._only().summary["groups"].values()):
            raise ValueError(f"{self.name} had no flows")
        return float(len(self._only().switched))

    def policed(self, group: str, what: str) -> Floats:
        """Returns a value of the police's record for each tested flow of a group; NaN if it is not set yet."""
        found = [link["police"] for link in self._only().summary["links"].values() if link.get("police") is not None]
        if not found:
            raise ValueError(f"{self.name} has no link with a police")
        if group not in self._only().summary["groups"]:
            raise ValueError(f'there is no group "{group}"')
        tested = [flow for link in found for flow in link if flow["group"] == group]
        for flow in tested[:1]:
            if what not in flow:
                raise ValueError(f'the police knows no "{what}" of a flow; it knows {", ".join(sorted(flow))}')
        return np.array([float("nan") if flow[what] is None else float(flow[what]) for flow in tested])

    def isolated(self, group: str) -> float:
        """Returns the number of flows of a group that were ever isolated."""
        return float(np.count_nonzero(self.policed(group, "isolations")))

    def _cut(self, t: Floats, v: Floats, start_s: float, end_s: float) -> Floats:
        # A sample's time is the end of its interval. Sample times accumulate rounding, hence the tolerance of 1/1000.
        step = self.sample_s()
        return v[(t - step >= start_s - step / 1e3) & (t <= end_s + step / 1e3)]

    def active_flows(self, start_s: float, end_s: float) -> list[str]:
        """Returns the flows that started by `start_s` and had not ended before `end_s`."""
        return [
            f"{row['group']}.{row['index']}"
            for row in self._only().summary["flows"]
            if row["start_s"] <= start_s and (row["end_s"] is None or row["end_s"] >= end_s)
        ]

    def end_s(self, flow: str) -> float:
        """Returns the arrival time of a flow's last byte in seconds; NaN if it did not arrive."""
        for row in self._only().summary["flows"]:
            if f"{row['group']}.{row['index']}" == flow:
                return float("nan") if row["end_s"] is None else float(row["end_s"])
        raise ValueError(f'there is no flow "{flow}"')

    def first_end_s(self) -> float:
        """Returns the time at which the first flow completed, in seconds; NaN if none did."""
        ends = [row["end_s"] for row in self._only().summary["flows"] if row["end_s"] is not None]
        return float(min(ends, default=float("nan")))

    def sample_s(self) -> float:
        """Returns the sampling interval in seconds."""
        t, _ = self._only().links[self.links[0]]["utilization"]
        return float(t[1] - t[0]) if t.size > 1 else float(t[0])

    def _only(self) -> Finished:
        if len(self.runs) != 1:
            raise ValueError(f"{self.name} has {len(self.runs)} runs; flows and samples over time need just one")
        return self.runs[0]


def kept(values: Floats, keep: NDArray[np.bool_] | None) -> Floats:
    """Returns the values at the points `keep`, or all for None. Raises `ValueError` if no value is left."""
    found = values if keep is None else values[keep]
    if not found.size:
        raise ValueError("no point of a figure is left")
    return found


class Joined:
    """Joins runs of several figures, for a claim about all of them."""

    def __init__(self, name: str, parts: Sequence[tuple[RunSet, NDArray[np.bool_] | None]]) -> None:
        self.name, self.parts = name, parts

    def measure(self, name: str) -> Floats:
        """Returns the concatenated values of all figures' points."""
        return np.concatenate([kept(runs.measure(name), keep) for runs, keep in self.parts])

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Returns a function that raises `ValueError`: only a single run has flows and samples."""

        def refuse(*_: object) -> Any:
            raise ValueError(f"{self.name} stands for several figures' runs, which have no flows or samples over time")

        return refuse
