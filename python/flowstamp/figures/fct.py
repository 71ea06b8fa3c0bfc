# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Flow completion times: means by size, and the formulas for comparison.

`C` is the capacity in packets per second, `RTT` is without queueing, `L` is the size in packets, and `rho` is the
offered load (Dukkipati 2007):

    PS          1.5 RTT + L / (C (1 - rho))               eq. 4.1
    bound       1.5 RTT + L / C                           section 4.1
    slow start  (log2(L + 1) + 1/2) RTT + L / C           section 4.2.1

    server      time in an exact processor-sharing server with the flows of the run, plus 1.5 RTT
    fb, srpt    the same in a server with foreground-background, or with the shortest remaining time first

Formulas and servers are those of `flowstamp.theory`. The servers use the actual arrivals. This matters for heavy-tailed
sizes, where a few of the largest flows dominate the mean of a hundred.

Means are over the flows that started after warm-up and completed before the end of the run, as in the thesis. A
formula's value for a bin is its mean over the same flows, so that the bin's width does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from flowstamp import _flowstamp, theory

Floats = NDArray[np.float64]

LEAST_FLOWS = 100
"""Minimum number of flows of a bin that claims compare."""
BINS_PER_DECADE = 8
BATCHES = 10
LEVEL = 0.95


# ---------------------------------------------------------------------------------------------------- reading


@dataclass(frozen=True)
class FlowTimes:
    """Start times, completion times (NaN if incomplete) and sizes in packets of the flows that have a size.

    `brought` is the load of a flow on a link in units of full packets, fractional if the last packet is short.
    """

    start_s: Floats
    fct_s: Floats
    packets: Floats
    brought: Floats
    group: NDArray[np.int16]
    groups: Mapping[str, int]
    retransmitted: float
    ideal_s: Floats = field(default_factory=lambda: np.empty(0))
    """Completion times on the idle path, as the engine computes them; NaN if the results lack them."""

    @classmethod
    def of(cls, flows: Any, payload_bytes: float, packet_bytes: float) -> FlowTimes:
        """Reads the table of flows of a run, whose full packets have these payload and total sizes."""
        codes, names = flows.words("group")
        group = np.frombuffer(codes, np.int32).astype(np.int16)
        numbered = {name: number for number, name in enumerate(names)}
        size, start, fct, again = (
            np.frombuffer(flows.numbers(name), np.float64)
            for name in ("size_bytes", "start_s", "fct_s", "retransmissions")
        )
        sized = ~np.isnan(size) if size.size else np.zeros(0, bool)
        # A transfer is a whole number of packets; the last may be short.
        packets = np.ceil(size[sized] / payload_bytes)
        brought = (size[sized] + (packet_bytes - payload_bytes) * packets) / packet_bytes
        known = "ideal_fct_s" in getattr(flows, "column_names", ())
        ideal = np.frombuffer(flows.numbers("ideal_fct_s"), np.float64) if known else np.full(size.size, np.nan)
        return cls(
            start[sized], fct[sized], packets, brought, group[sized], numbered, float(np.sum(again)), ideal[sized]
        )

    @classmethod
    def together(cls, runs: Sequence[FlowTimes]) -> FlowTimes:
        """Joins the flows of several runs of one network."""
        arrays = {
            name: np.concatenate([getattr(run, name) for run in runs])
            for name in ("start_s", "fct_s", "packets", "brought", "ideal_s")
        }
        # The numbers of groups differ between runs, because each run numbers them in the order of their flows.
        groups = {name: code for code, name in enumerate(sorted({name for run in runs for name in run.groups}))}
        codes = [np.array([groups[name] for name in run.groups], np.int16) for run in runs]
        group = np.concatenate([of[run.group] for of, run in zip(codes, runs, strict=True)])
        return cls(**arrays, group=group, groups=groups, retransmitted=sum(run.retransmitted for run in runs))

    def select(self, group: str, since_s: float) -> FlowTimes:
        """Returns the flows of a group that started at or after `since_s`."""
        keep = (self.group == self.groups.get(group, -1)) & (self.start_s >= since_s)
        return FlowTimes(
            self.start_s[keep],
            self.fct_s[keep],
            self.packets[keep],
            self.brought[keep],
            self.group[keep],
            self.groups,
            self.retransmitted,
            self.ideal_s[keep] if self.ideal_s.size else self.ideal_s,
        )


def payload(scenario: Mapping[str, Any], packet_bytes: float) -> float:
    """Returns the payload of a full packet in bytes. Flow sizes count payload; capacities and queues whole packets."""
    return packet_bytes - _flowstamp.quantity("size", scenario.get("header", "0B"))


@dataclass(frozen=True)
class Ideal:
    """Inputs of the formulas from a run."""

    capacity: float
    """Packets per second."""
    rtt_s: float
    load: float
    mean_packets: float
    """Mean of the size distribution."""
    packet_bytes: float

    @classmethod
    def of(cls, summary: Mapping[str, Any], group: str, packet_bytes: float, payload_bytes: float) -> Ideal | None:
        """Reads a run's summary. Returns None for an unknown group."""
        of = summary["groups"].get(group)
        if of is None:
            return None
        size = of["mean_size_bytes"]
        return cls(
            of["capacity_bps"] / 8 / packet_bytes,
            of["path_rtt_s"],
            of["offered_load"],
            float("nan") if size is None else size / payload_bytes,
            packet_bytes,
        )

    def curve(self, name: str, packets: Floats) -> Floats:
        """Evaluates a formula in seconds for each size; NaN if the offered load is 1 or more."""
        if self.load >= 1:
            return np.full(packets.size, np.nan)
        size = packets * self.packet_bytes
        capacity_bps = 8 * self.capacity * self.packet_bytes
        return theory.by_formula(name, size, self.rtt_s, capacity_bps, self.load, self.packet_bytes)


CURVES = {"ps": "PS", "bound": "lower bound", "slow_start": "slow start"}
SERVERS: Mapping[str, tuple[theory.Discipline, str]] = {
    "server": ("ps", "PS, simulated"),
    "fb": ("fb", "FB, simulated"),
    "srpt": ("srpt", "SRPT, simulated"),
}
REFERENCES = CURVES | {name: label for name, (_, label) in SERVERS.items()}
USUAL = (*CURVES, "server")
"""References of every bin in `ID.fct.json`."""


# ---------------------------------------------------------------------------------------------------- measuring


@dataclass(frozen=True)
class Bin:
    """Flows of similar size: `low` to `high` packets, `high` excluded. Times are in seconds."""

    low: float
    high: float
    flows: int
    mean_packets: float
    mean_s: float
    max_s: float
    half_width_s: float
    """Half width of the mean's 95% confidence interval, from batch means in order of start; NaN for few flows."""
    ideal_s: Mapping[str, float]


class Measured(Protocol):
    """A finished run (`measures.Finished`)."""

    @property
    def times(self) -> FlowTimes:
        """The flows of the run."""

    @property
    def summary(self) -> Mapping[str, Any]:
        """The summary of the run."""

    def ideal(self, group: str) -> Ideal | None:
        """Returns the inputs of the formulas."""

    @property
    def members(self) -> Sequence[Measured]:
        """The runs with the individual seeds, if this one pools several."""

    def server(self, group: str, discipline: theory.Discipline) -> Floats:
        """Returns the flows' times in an exact server; NaN for flows on another path."""


class RunSetLike(Protocol):
    """The runs of one curve (`measures.RunSet`)."""

    @property
    def name(self) -> str:
        """Name in claims."""

    @property
    def runs(self) -> Sequence[Measured]:
        """The runs, one for each point."""

    @property
    def where(self) -> NDArray[np.bool_] | None:
        """Points of the figure that have a run; None means all."""

    @property
    def group(self) -> str:
        """The measured group."""

    @property
    def split(self) -> float:
        """Size in packets from which flows count as large."""

    def measure(self, name: str) -> Floats:
        """Returns one value for each point."""


def mean(values: Floats | Sequence[float]) -> float:
    """Returns the mean; NaN if there are no values."""
    return float(np.mean(values)) if np.size(values) else float("nan")


def half_width(values: Floats) -> float:
    """Returns the half width of the mean's 95% confidence interval from ten batches; NaN below 20 values."""
    if values.size < 2 * BATCHES:
        return float("nan")
    return theory.batch_means(values, BATCHES, LEVEL).half_width


def chosen(run: Measured, group: str) -> NDArray[np.bool_]:
    """Returns which flows belong to the group, started after warm-up, and completed."""
    flows = run.times
    which: NDArray[np.bool_] = (
        (flows.group == flows.groups.get(group, -1))
        & (flows.start_s >= float(run.summary["warmup_s"]))
        & ~np.isnan(flows.fct_s)
    )
    return which


@dataclass
class Flows:
    """A group of a run; caches values that several measures use."""

    run: Measured
    group: str
    _references: dict[str, Floats] = field(default_factory=dict)

    @cached_property
    def chosen(self) -> NDArray[np.bool_]:
        """See `chosen`."""
        return chosen(self.run, self.group)

    @cached_property
    def packets(self) -> Floats:
        """Sizes of the chosen flows in packets."""
        return self.run.times.packets[self.chosen]

    @cached_property
    def times(self) -> Floats:
        """Completion times of the chosen flows in seconds."""
        return self.run.times.fct_s[self.chosen]

    @cached_property
    def since_warmup(self) -> FlowTimes:
        """Flows that started after warm-up, completed or not."""
        return self.run.times.select(self.group, float(self.run.summary["warmup_s"]))

    def sized(self, values: Floats, low: float, high: float) -> Floats:
        """Selects, from values per chosen flow, those with `low <= L < high` packets."""
        return values if low <= 0 and high == np.inf else values[(self.packets >= low) & (self.packets < high)]

    def reference(self, name: str) -> Floats:
        """Returns the time of each chosen flow by a formula or the server, in seconds."""
        if name not in REFERENCES:
            raise ValueError(f'"{name}" is not a reference; there are {", ".join(REFERENCES)}')
        if name not in self._references:
            self._references[name] = self._worked_out(name)
        return self._references[name]

    def _worked_out(self, name: str) -> Floats:
        ideal = self.run.ideal(self.group)
        if ideal is None:
            return np.full(self.packets.size, np.nan)
        if name in SERVERS:
            return 1.5 * ideal.rtt_s + self.run.server(self.group, SERVERS[name][0])[self.chosen]
        return ideal.curve(name, self.packets)


def completed(run: Measured, group: str, low: float = 0, high: float = np.inf) -> tuple[Floats, Floats]:
    """Returns sizes and times of a group's completed flows after warm-up with `low <= L < high`, in order of start."""
    flows = Flows(run, group)
    return flows.sized(flows.packets, low, high), flows.sized(flows.times, low, high)


def reference(run: Measured, group: str, name: str, low: float = 0, high: float = np.inf) -> Floats:
    """Returns the time by a formula or the server for each flow of `completed`."""
    flows = Flows(run, group)
    return flows.sized(flows.reference(name), low, high)


def bins(run: Measured, group: str, least: int = 1, references: Collection[str] = USUAL) -> list[Bin]:
    """Returns eight bins per decade of size with these references, without bins of fewer than `least` flows."""
    return _bins(Flows(run, group), least, references)


def _bins(flows: Flows, least: int, references: Collection[str]) -> list[Bin]:
    packets, times = flows.packets, flows.times
    if not packets.size:
        return []
    top = int(np.ceil(np.log10(packets.max()) * BINS_PER_DECADE)) + 1
    edges = np.unique(np.ceil(10 ** (np.arange(top + 1) / BINS_PER_DECADE)))
    which = np.digitize(packets, edges).astype(np.int16)  # NumPy sorts 16-bit integers by radix
    order = np.argsort(which, kind="stable")
    begins = np.searchsorted(which[order], np.arange(edges.size + 1))
    found: list[Bin] = []
    for n in range(1, edges.size):
        here = order[begins[n] : begins[n + 1]]
        if here.size < max(least, 1):
            continue
        size, time = packets[here], times[here]
        found.append(
            Bin(
                float(edges[n - 1]),
                float(edges[n]),
                int(here.size),
                float(size.mean()),
                float(time.mean()),
                float(time.max()),
                half_width(time),
                {name: float(np.mean(flows.reference(name)[here])) for name in references},
            )
        )
    return found


def active_over_time(run: Measured, group: str, t: Floats) -> Floats:
    """Returns the number of active flows at each time."""
    flows = run.times.select(group, -1.0)
    ends = np.sort((flows.start_s + flows.fct_s)[~np.isnan(flows.fct_s)])
    starts = np.sort(flows.start_s)
    active = np.searchsorted(starts, t, "right") - np.searchsorted(ends, t, "right")
    return active.astype(np.float64)


def mean_active(run: Measured, group: str, start_s: float, end_s: float) -> float:
    """Returns the mean number of active flows between two times; NaN if the group has no flows."""
    flows = run.times.select(group, -1.0)
    if not flows.start_s.size:
        return float("nan")
    end = np.where(np.isnan(flows.fct_s), np.inf, flows.start_s + flows.fct_s)
    there = np.minimum(end, end_s) - np.maximum(flows.start_s, start_s)
    return float(np.sum(there[there > 0])) / (end_s - start_s)


def _of_part(flows: Flows, which: str, low: float, high: float) -> float:
    times = flows.sized(flows.times, low, high)
    if not times.size:
        return float("nan")
    if which == "afct":
        return float(times.mean())
    if which == "count":
        return float(times.size)
    return float(np.mean(flows.sized(flows.reference(which), low, high)))


def _one(of: Flows, name: str, split: float) -> float:
    which, _, part = name.partition("_")
    if part in ("small", "large"):
        return _of_part(of, which, *((0.0, split) if part == "small" else (split, np.inf)))
    run, group = of.run, of.group
    start, end = float(run.summary["warmup_s"]), float(run.summary["duration_s"])
    match name:
        case "afct":
            return mean(of.times)
        case "max_fct":
            return float(np.nanmax(of.times)) if of.times.size else float("nan")
        case "afct_half_width":
            return half_width(of.times)
        case "afct_ps" | "afct_server" | "afct_fb" | "afct_srpt":
            return mean(of.reference(name.removeprefix("afct_")))
        case "completed_share":
            flows = of.since_warmup
            return float(np.mean(~np.isnan(flows.fct_s))) if flows.fct_s.size else float("nan")
        case "offered_load":
            ideal, flows = run.ideal(group), of.since_warmup
            if ideal is None or not flows.packets.size:
                return float("nan")
            return float(np.sum(flows.brought)) / (end - start) / ideal.capacity
        case "active":
            return mean_active(run, group, start, end)
        case "retransmitted_share":
            sent = float(np.sum(run.times.packets))
            return run.times.retransmitted / sent if sent else float("nan")
    raise ValueError(f'"{name}" is not a measure of flow completion times')


MEASURES = (
    *(
        "max_fct",
        "afct",
        "afct_half_width",
        "afct_ps",
        "afct_server",
        "afct_fb",
        "afct_srpt",
        "completed_share",
        "offered_load",
        "active",
        "retransmitted_share",
    ),
    *(f"{which}_{part}" for which in ("afct", "ps", "server", "bound", "count") for part in ("small", "large")),
)


def measure(runs: RunSetLike, name: str) -> Floats:
    """Returns one value for each run of a curve."""
    return np.array([_one(Flows(run, runs.group), name, runs.split) for run in runs.runs])


# ---------------------------------------------------------------------------------------------------- functions


def _only(runs: RunSetLike) -> Measured:
    if len(runs.runs) != 1:
        raise ValueError(f"{runs.name} has {len(runs.runs)} runs; bins of sizes need just one")
    return runs.runs[0]


def _afct(runs: RunSetLike, low: float, high: float) -> Floats:
    """Returns the mean completion time of flows with low <= L < high packets, for each point."""
    return np.array([mean(completed(run, runs.group, low, high)[1]) for run in runs.runs])


def _afct_of(runs: RunSetLike, group: str, low: float, high: float) -> Floats:
    """Does the same as `_afct` for a given group."""
    return np.array([mean(completed(run, group, low, high)[1]) for run in runs.runs])


def _ideal(runs: RunSetLike, curve: str, low: float, high: float) -> Floats:
    """Returns the mean of a formula over the same flows as `_afct`."""
    return _ideal_of(runs, runs.group, curve, low, high)


def _ideal_of(runs: RunSetLike, group: str, curve: str, low: float, high: float) -> Floats:
    """Does the same as `_ideal` for a given group."""
    return np.array([mean(reference(run, group, curve, low, high)) for run in runs.runs])


def _slowdown_of(runs: RunSetLike, group: str, curve: str, low: float, high: float) -> Floats:
    """Returns the mean ratio of a flow's time to its time by a formula, for each point."""
    pairs = [(completed(run, group, low, high)[1], reference(run, group, curve, low, high)) for run in runs.runs]
    return np.array([mean(times / ideal) for times, ideal in pairs])


def _bin_ratios(runs: RunSetLike, curve: str, low: float, high: float) -> Floats:
    """Returns mean time / formula for each bin between these sizes with at least `LEAST_FLOWS` flows."""
    found = bins(_only(runs), runs.group, LEAST_FLOWS, (curve,))
    return np.array([b.mean_s / b.ideal_s[curve] for b in found if b.low >= low and b.high <= high])


def _bin_over(runs: RunSetLike, other: RunSetLike, low: float, high: float) -> Floats:
    """Returns mean time / mean time of another run for each bin with at least `LEAST_FLOWS` flows in both."""
    theirs = {b.low: b for b in bins(_only(other), other.group, LEAST_FLOWS, ())}
    found = bins(_only(runs), runs.group, LEAST_FLOWS, ())
    return np.array(
        [b.mean_s / theirs[b.low].mean_s for b in found if b.low >= low and b.high <= high and b.low in theirs]
    )


def _max_ratios(runs: RunSetLike, curve: str, low: float, high: float) -> Floats:
    """Returns longest time / formula for each bin with enough flows."""
    found = bins(_only(runs), runs.group, LEAST_FLOWS, (curve,))
    return np.array([b.max_s / b.ideal_s[curve] for b in found if b.low >= low and b.high <= high])


def _max_over_mean(runs: RunSetLike, low: float, high: float) -> Floats:
    """Returns longest time / mean time for each bin with enough flows."""
    found = bins(_only(runs), runs.group, LEAST_FLOWS, ())
    return np.array([b.max_s / b.mean_s for b in found if b.low >= low and b.high <= high])


def _active(runs: RunSetLike, start_s: float, end_s: float) -> Floats:
    """Returns the mean number of active flows between two times, for each point."""

    def active(run: Measured) -> float:
        return mean([mean_active(one, runs.group, start_s, end_s) for one in run.members or (run,)])

    return np.array([active(run) for run in runs.runs])


FUNCTIONS: dict[str, tuple[int | None, Callable[..., Any]]] = {
    "afct": (3, _afct),
    "afct_of": (4, _afct_of),
    "ideal": (4, _ideal),
    "ideal_of": (5, _ideal_of),
    "slowdown_of": (5, _slowdown_of),
    "bin_ratios": (4, _bin_ratios),
    "bin_over": (4, _bin_over),
    "max_ratios": (4, _max_ratios),
    "max_over_mean": (3, _max_over_mean),
    "active": (3, _active),
}


# ---------------------------------------------------------------------------------------------------- reporting


def document(runs: Mapping[str, RunSetLike]) -> dict[str, Any]:
    """Returns every bin of every run with count, mean and confidence, for `ID.fct.json`."""
    rows: list[dict[str, Any]] = []
    for name, runset in runs.items():
        points = range(len(runset.runs)) if runset.where is None else np.flatnonzero(runset.where).tolist()
        for point, run in zip(points, runset.runs, strict=True):
            flows = Flows(run, runset.group)
            found = _bins(flows, 1, REFERENCES)
            if not found:
                continue
            ideal = run.ideal(runset.group)
            rows.append(
                {
                    "run": name,
                    "point": point,
                    "simulated_s": run.summary["duration_s"],
                    "warmup_s": run.summary["warmup_s"],
                    "load": None if ideal is None else ideal.load,
                    **{m: _number(value) for m, value in _all(flows, runset.split).items()},
                    "bins": [
                        {
                            "packets": [b.low, b.high],
                            "flows": b.flows,
                            "mean_s": b.mean_s,
                            "half_width_95_s": _number(b.half_width_s),
                            "max_s": b.max_s,
                            **{f"{c}_s": _number(v) for c, v in b.ideal_s.items()},
                        }
                        for b in found
                    ],
                }
            )
    return {"runs": rows}


def _all(flows: Flows, split: float) -> dict[str, float]:
    """Returns every measure of a run, averaged over its seeds."""
    each = [Flows(member, flows.group) for member in flows.run.members] or [flows]
    return {name: float(np.mean([_one(of, name, split) for of in each])) for name in MEASURES}


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None
