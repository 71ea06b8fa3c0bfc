#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Gives ns-2 the very flows of one run of a figure, and shows completion times by size side by side.

    .venv/bin/python tools/ns2/same_flows.py R2.6 sack --set duration=60s --set dumbbell.rate=240Mbps
    .venv/bin/python tools/ns2/same_flows.py R2.8 red --ns2 red_min_fraction=0.025 --ns2 red_max_fraction=0.075
    NS2=~/ns-2.35/ns .venv/bin/python tools/ns2/same_flows.py R4.14 rcp --set dumbbell.rtt=10ms --split 500

RCP needs an ns-2 that NS2 names and that has the authors' model, which is not ours to ship: ns-2.35 with R.
Zhang-Shen and N. Dukkipati's rcp.cc, rcp-host.cc and rcp-host.h; their objects in Makefile.in; PT_RCP in
common/packet.h and trace/trace.cc; "RCP" among the headers of tcl/lib/ns-packet.tcl and the defaults of Agent/RCP and
Queue/DropTail/RCP in tcl/lib/ns-default.tcl. Public repositories that reproduced the thesis have that as a patch of
ns-2.35. With today's tools: g++ -std=gnu++98 -fpermissive -DUSE_INTERP_RESULT, and Debian's libtcl8.6, libotcl1,
libtclcl1. The model as it is patched in has alpha_, beta_, gamma_ as parameters (here: the router's alpha, beta,
eta), begins with 0.05 of the link and decides every min(RTT, 10 ms).

Dumbbells and parking lots; of the latter utilisation, drops and loss are the first link's, the queue is that of each,
and the hosts of flows over all links are as far off as those of the others. A flow without a size is one of a thousand
million packets in ns-2, which only RCP's model can stop. A flow ends in ns-2 with the last ack at its sender, and in
Flowstamp with the last packet at its receiver. The comparison subtracts half a round trip. Flows in ns-2 are whole
packets, so each has half a packet more to carry. Flows that were not complete by the end count in neither. The buffer,
bytes in most figures, is as many packets in ns-2, where an ack or a SYN takes a packet's place.

    --active 15:30,45:60      mean and deviation of the number of active flows from 15 s to 30 s, and from 45 s to 60 s
    --estimate 45:100         mean, deviation, least and most of C/R, what RCP's router takes for that number
    --above 0.95 --after 200s seconds after 200 s from which on the link is used to 0.95 in every interval

They count at the instants at which the figure takes samples; for C/R it must have `probes.laws`.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import ns2
import numpy as np
from numpy.typing import NDArray

from flowstamp import _flowstamp
from flowstamp.errors import FlowstampError
from flowstamp.figures import fct
from flowstamp.figures.catalogue import load
from flowstamp.figures.measures import Finished

# Names of laws in dumbbell.tcl.
PROTOCOLS: dict[str, dict[str, str]] = {
    "xcp": {"protocol": "xcp"},
    "xcp-draft": {"protocol": "xcp"},
    "reno": {"protocol": "reno", "web_tcp": "Reno"},
    "newreno": {"protocol": "reno", "web_tcp": "Newreno"},
    "sack": {"protocol": "reno", "web_tcp": "Sack1"},
    # windowOption_ 8 is HighSpeed TCP; its windows and loss rates are RFC 3649's by default, as ours are.
    "rcp": {"protocol": "rcp"},
    "highspeed": {"protocol": "reno", "web_tcp": "Sack1", "tcp_set": "windowOption_:8"},
}


# Names of a parking lot's delays in dumbbell.tcl.
DELAYS = {"hop_delay": "delay", "access_delay": "access_delay"}


# Packets of a flow without a size.
ENDLESS = 10**9


def every_s(run: Finished) -> float:
    """The figure's sampling interval."""
    instants, _ = next(iter(run.links.values()))["utilization"]
    return float(instants[1] - instants[0])


def settled(run: Finished, theirs: dict[str, Any], share: float, after_s: float) -> list[float]:
    """Seconds after `after_s` from which on the forward link's samples stay at `share` or above, here and in ns-2."""
    first = round(after_s / every_s(run))
    _, samples = next(iter(run.links.values()))["utilization"]
    below = [np.flatnonzero(np.array(of[first:]) < share) for of in (samples, theirs["utilization_samples"])]
    return [float(of[-1] + 1) * every_s(run) if of.size else 0.0 for of in below]


def buffer_and_hosts(run: Finished, network: dict[str, Any], first: str) -> dict[str, str]:
    """The bottlenecks' buffer, which link `first` has, and what the network says of its hosts' links."""
    packets = max(1, round(run.summary["links"][first]["buffer_bytes"] / run.packet_bytes))
    # The drop-tail queues of ns-2, also those of XCP and RCP, hold one packet less than their limit.
    more = {"buffer_packets": str(packets + (network["queue"]["kind"] == "droptail"))}
    if "access_rate" in network:
        more["access_rate_mbps"] = str(_flowstamp.quantity("rate", network["access_rate"]) / 1e6)
    return more


def finished(figure_id: str, run: str, sets: list[tuple[str, str]], seed: int | None) -> Finished:
    """One run of a figure, its first point if there are several."""
    spec = load(figure_id)
    chosen = [r for r in spec.runs if r.name == run]
    if not chosen:
        raise FlowstampError(f"{figure_id} has no run {run}; there are {', '.join(r.name for r in spec.runs)}")
    text, source, own, folder = spec.job(chosen[0], 0)
    result = _flowstamp.run_many([(text, source, (*own, *sets), folder)], seed=seed, progress=None)[0]
    scenario: dict[str, Any] = tomllib.loads(result.scenario_toml())
    packet = _flowstamp.quantity("size", scenario["packet"])
    return Finished.of(result, flow_series=False, packet_bytes=packet, scenario=scenario)


def place(run: Finished) -> tuple[dict[str, str], dict[str, Any], dict[str, str]]:
    """The network for dumbbell.tcl, its table in the scenario, and each group's way as web_flows has it."""
    groups = run.scenario["flows"]
    if "dumbbell" in run.scenario:
        network = run.scenario["dumbbell"]
        rtt_ms = milliseconds(network["rtt"])
        placed = {"rate_mbps": network["rate"]}
        if "delay" in network:
            delay_ms = milliseconds(network["delay"])
            placed |= {"hop_delay_ms": str(delay_ms), "access_delay_ms": str((rtt_ms / 2 - delay_ms) / 2)}
        more_ms = {g["name"]: milliseconds(g["rtt"]) - rtt_ms if "rtt" in g else 0.0 for g in groups}
        return placed, network, {g["name"]: f"0 {more_ms[g['name']]!r} {int(g.get('reverse', False))}" for g in groups}
    if "parking_lot" not in run.scenario:
        raise FlowstampError("ns-2 is given dumbbells and parking lots only")
    network = run.scenario["parking_lot"]
    rates, delay = network["rates"], network["delay"]
    if any("rtt" in g for g in groups):
        raise FlowstampError("ns-2 is given a parking lot's flows with hosts as far off as the lot says")
    if isinstance(delay, list):
        raise FlowstampError("dumbbell.tcl has links of one delay")
    back = {g["name"]: f"0 {int(g.get('reverse', False))}" for g in groups}
    over = {g["name"]: f"0 {back[g['name']]}" for g in groups if not g.get("each_hop")}
    hops = range(1, len(rates) + 1)
    over |= {f"{g['name']}.{k}": f"{k} {back[g['name']]}" for g in groups if g.get("each_hop") for k in hops}
    placed = {f"{key}_ms": str(milliseconds(network[value])) for key, value in DELAYS.items()}
    placed |= {"rate_mbps": rates[0], "hops": str(len(rates))}
    if len(set(rates)) > 1:
        placed["hop_rates_mbps"] = ",".join(str(_flowstamp.quantity("rate", rate) / 1e6) for rate in rates)
        buffers = [buffer_and_hosts(run, network, f"link{k}")["buffer_packets"] for k in hops]
        placed["hop_buffers"] = ",".join(buffers)
    return placed, network, over


def milliseconds(text: str) -> float:
    """A time of the scenario."""
    return round(_flowstamp.quantity("time", text) * 1e3, 9)


def file_of(run: Finished, ways: dict[str, str]) -> tuple[list[str], NDArray[np.intp]]:
    """Lines for dumbbell.tcl in the order of starts, and which of the run's flows with a size each is, or -1."""
    flows = run.times
    names = sorted(flows.groups, key=flows.groups.__getitem__)
    rows = [
        (start, f"{int(packets)} {ways[names[group]]}", number)
        for number, (start, packets, group) in enumerate(
            zip(flows.start_s.tolist(), flows.packets.tolist(), flows.group.tolist(), strict=True)
        )
    ]
    known = any("web" not in g for g in run.scenario["flows"])
    endless = [flow for flow in run.summary["flows"] if flow["size_bytes"] is None] if known else []
    for flow in endless:
        stop = "" if flow["stop_s"] is None else f" {flow['stop_s']!r}"
        rows.append((flow["start_s"], f"{ENDLESS} {ways[flow['group']]}{stop}", -1))
    rows.sort(key=lambda row: row[0])
    return [f"{start!r} {rest}\n" for start, rest, _ in rows], np.array([row[2] for row in rows])


def ns2_times(run: Finished, more: dict[str, str]) -> tuple[fct.FlowTimes, dict[str, Any]]:
    """The same flows in ns-2: their times in the same order, and ns-2's summary."""
    flows = run.times
    placed, network, ways = place(run)
    laws = {f["law"] if isinstance(f["law"], str) else f["law"]["law"] for f in run.scenario["flows"]}
    if len(laws) > 1:
        raise FlowstampError(f"dumbbell.tcl has one law for all flows; there are {', '.join(sorted(laws))}")
    name = laws.pop()
    if name not in PROTOCOLS:
        raise FlowstampError(f"dumbbell.tcl has no {name}; it has {', '.join(PROTOCOLS)}")
    if name != "rcp" and any("web" not in g and "stop" in g for g in run.scenario["flows"]):
        raise FlowstampError("of the flows that same_flows.py gives to ns-2 only RCP's stop; two_way.py's do")
    router = network.get("router", "none")
    if name == "rcp" and isinstance(router, dict):
        names = {"alpha": "rcp_alpha", "beta": "rcp_beta", "eta": "rcp_gamma"}
        more = {names[key]: str(router[key]) for key in names if key in router} | more
    longest_s = max(float(of["path_rtt_s"]) for of in run.summary["groups"].values())
    rtt_s = _flowstamp.quantity("time", network["rtt"]) if "rtt" in network else longest_s
    with tempfile.TemporaryDirectory() as folder:
        given, log, rates = (Path(folder) / text for text in ("flows", "log", "rates"))
        lines, numbers = file_of(run, ways)
        given.write_text("".join(lines))
        summary = ns2.run(
            timeout_s=7200,
            **PROTOCOLS[name]
            | placed
            | buffer_and_hosts(run, network, "bottleneck" if "dumbbell" in run.scenario else "link1")
            | {
                "rate_mbps": str(_flowstamp.quantity("rate", placed["rate_mbps"]) / 1e6),
                "rtt_ms": str(rtt_s * 1e3),
                "flows": "0",
                "duration_s": str(run.summary["duration_s"]),
                "warmup_s": str(run.summary["warmup_s"]),
                "web_flows": str(given),
                "web_log": str(log),
                "sample_s": every_s(run),
            }
            | ({"rcp_log": str(rates)} if name == "rcp" else {})
            | more,
        )
        if name == "rcp":
            summary["rcp_rates"] = np.loadtxt(rates, usecols=(1, 4), ndmin=2)
        ended = np.array(log.read_text().split(), dtype=np.float64).reshape(-1, 4)
    ended = ended[numbers[ended[:, 3].astype(int) - 1] >= 0]
    order = numbers[ended[:, 3].astype(int) - 1]
    # Flows over one link have a shorter round trip, but are not the measured ones.
    rtts_s = {g["name"]: _flowstamp.quantity("time", g["rtt"]) for g in run.scenario["flows"] if "rtt" in g}
    way_back_s = np.array([rtts_s.get(name, rtt_s) / 2 for name in sorted(flows.groups, key=flows.groups.__getitem__)])
    times = np.full(flows.start_s.size, np.nan)
    times[order] = ended[:, 2] - way_back_s[flows.group[order]]
    theirs = fct.FlowTimes(flows.start_s, times, flows.packets, flows.packets, flows.group, flows.groups, float("nan"))
    return theirs, summary


def tell_split(ours: Finished, theirs: fct.FlowTimes, group: str, packets: int) -> None:
    """Means over a group's flows that began after the warm-up and were complete in both."""
    times = [ours.times.fct_s, theirs.fct_s]
    counted = (
        (ours.times.group == ours.times.groups[group])
        & (ours.times.start_s >= ours.summary["warmup_s"])
        & np.isfinite(times[0])
        & np.isfinite(times[1])
    )
    for name, chosen in (("below", ours.times.packets < packets), ("from", ours.times.packets >= packets)):
        count = np.count_nonzero(counted & chosen)
        means = [float(np.mean(t[counted & chosen])) if count else float("nan") for t in times]
        print(f"{name:5} {packets} packets: {count} flows, {means[0]:.3f} s and {means[1]:.3f} s")


def spans(text: str) -> list[tuple[float, float]]:
    """Pairs of instants, "15:30,45:60"."""
    try:
        pairs = [(float(start), float(end)) for start, end in (pair.split(":") for pair in text.split(","))]
    except ValueError:
        pairs = []
    if not pairs or any(start >= end for start, end in pairs):
        raise argparse.ArgumentTypeError(f'"{text}" must be pairs of seconds, the lower first, such as 15:30,45:60')
    return pairs


def spread(values: NDArray[np.float64]) -> str:
    """Mean, deviation, least and most."""
    return f"{values.mean():.4g} ± {values.std():.4g} ({values.min():.4g} to {values.max():.4g})"


def tell_active(ours: Finished, twin: Finished, group: str, instants: list[tuple[float, float]]) -> None:
    """How many flows are active at the figure's sampling instants."""
    for start_s, end_s in instants:
        at = np.arange(start_s, end_s, every_s(ours))
        here, there = (spread(fct.active_over_time(run, group, at)) for run in (ours, twin))
        print(f"active flows {start_s:g} to {end_s:g} s: {here} and {there}")


def tell_estimate(ours: Finished, summary: dict[str, Any], instants: list[tuple[float, float]]) -> None:
    """C/R of both routers at the figure's sampling instants, of which the first is not counted."""
    sampled = next(iter(ours.links.values())).get("flows_estimate")
    if "rcp_rates" not in summary or sampled is None or not sampled[0].size:
        raise FlowstampError("C/R is RCP's, and needs probes.laws")
    for start_s, end_s in instants:
        at = sampled[0][(sampled[0] > start_s + 1e-9) & (sampled[0] <= end_s + 1e-9)]
        decided_s, share = summary["rcp_rates"].T
        here = sampled[1][np.searchsorted(sampled[0], at)]
        there = 1 / share[np.searchsorted(decided_s, at, "right") - 1]
        print(f"C/R {start_s:g} to {end_s:g} s: {spread(here)} and {spread(there)}")


def main() -> int:
    """Runs both and prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("figure")
    parser.add_argument("run")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of the scenario")
    parser.add_argument("--ns2", action="append", default=[], metavar="KEY=VALUE", help="a parameter of dumbbell.tcl")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--group", help="whose flows are shown; default: the figure's")
    parser.add_argument("--split", type=int, metavar="PACKETS", help="means of flows below it, and of the others")
    parser.add_argument("--active", type=spans, metavar="FROM:TO,...", help="active flows between instants, seconds")
    parser.add_argument("--estimate", type=spans, metavar="FROM:TO,...", help="RCP's C/R between instants, seconds")
    parser.add_argument("--above", type=float, metavar="SHARE", help="when the link is used to it for good")
    parser.add_argument("--after", default="0s", metavar="TIME", help="what --above counts from")
    arguments = parser.parse_args()
    for text in (*arguments.set, *arguments.ns2):
        if "=" not in text:
            parser.error(f'"{text}" is not key=value')
    sets = [(key, value) for key, _, value in (text.partition("=") for text in arguments.set)]
    ours = finished(arguments.figure, arguments.run, sets, arguments.seed)
    spec = load(arguments.figure)
    group, name = arguments.group or spec.measure.group, spec.measure.links[0]
    if group not in ours.times.groups:
        raise FlowstampError(f"no flow of the run has the group {group}; there are {', '.join(ours.times.groups)}")
    theirs, summary = ns2_times(ours, {k: v for k, _, v in (text.partition("=") for text in arguments.ns2)})
    twin = dataclasses.replace(ours, times=theirs)

    link = ours.summary["links"][name]
    print(f"utilisation   {link['utilization']:9.3f} {summary['utilization']:9.3f}   Flowstamp, ns-2")
    for of, theirs_bytes in zip(spec.measure.links, summary["hop_queue_bytes"], strict=False):
        ours_bytes = ours.summary["links"][of]["mean_queue_bytes"]
        print(f"mean queue kB {ours_bytes / 1e3:9.1f} {theirs_bytes / 1e3:9.1f}" + (f"   {of}" * (of != name)))
    print(f"drops         {ours.drops(name):9.0f} {summary['drops']:9d}")
    lost = summary["drops_after_warmup"] / max(1, summary["arrivals_after_warmup"])
    print(f"loss          {link['drop_rate']:9.4f} {lost:9.4f}   after the warm-up")
    if arguments.active:
        tell_active(ours, twin, group, arguments.active)
    if arguments.estimate:
        tell_estimate(ours, summary, arguments.estimate)
    if arguments.above is not None:
        here, there = settled(ours, summary, arguments.above, _flowstamp.quantity("time", arguments.after))
        print(f"above {arguments.above}: {here:.2f} s and {there:.2f} s")
    if arguments.split:
        tell_split(ours, theirs, group, arguments.split)
        return 0
    print("packets           flows   Flowstamp        ns-2   over PS:  Flowstamp  ns-2")
    other = {b.low: b for b in fct.bins(twin, group)}
    for b in fct.bins(ours, group):
        if b.low in other:
            o = other[b.low]
            means = f"{b.mean_s:8.3f} ± {b.half_width_s:5.3f} {o.mean_s:8.3f} ± {o.half_width_s:5.3f}"
            ratios = f"{b.mean_s / b.ideal_s['ps']:10.2f} {o.mean_s / o.ideal_s['ps']:6.2f}"
            print(f"{b.low:8.0f}-{b.high:<8.0f} {b.flows:6d} {means} {ratios}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (FlowstampError, ns2.Ns2Error) as error:
        sys.exit(f"same_flows.py: {error}")
