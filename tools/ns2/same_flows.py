#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Gives ns-2 the very flows of one run of a figure, and shows completion times by size side by side.

    .venv/bin/python tools/ns2/same_flows.py R2.6 sack --set duration=60s --set dumbbell.rate=240Mbps
    .venv/bin/python tools/ns2/same_flows.py R2.8 red --ns2 red_min_fraction=0.025 --ns2 red_max_fraction=0.075
    NS2=~/ns-2.35/ns .venv/bin/python tools/ns2/same_flows.py R4.14 rcp --set dumbbell.rtt=10ms --split 500

RCP needs an ns-2 that NS2 names and that has the authors' model, which is not ours to ship: ns-2.35 with R.
Zhang-Shen and N. Dukkipati's rcp.cc, rcp-host.cc and rcp-host.h, their objects in Makefile.in, PT_RCP in
common/packet.h and trace/trace.cc, "RCP" among the headers of tcl/lib/ns-packet.tcl and the defaults of Agent/RCP and
Queue/DropTail/RCP in tcl/lib/ns-default.tcl. Public repositories that reproduced the thesis have that as a patch of
ns-2.35. With today's tools: g++ -std=gnu++98 -fpermissive -DUSE_INTERP_RESULT, and Debian's libtcl8.6, libotcl1,
libtclcl1. The model as it is patched in has alpha_, beta_, gamma_ as parameters (here: the router's alpha, beta,
eta), begins with 0.05 of the link and decides every min(RTT, 10 ms).

Dumbbells, and parking lots with flows one way only; of the latter utilisation, queue and drops are the first link's,
and the hosts of flows over all links are as far off as those of the others. A flow without a size is one of a thousand
million packets in ns-2. ns-2 counts a flow to the last ack at its
sender, Flowstamp to the last packet at its receiver: half a round trip is taken off. ns-2's flows are whole packets, so
that it has half a packet for each more to carry. Flows that were not complete by the end count in neither. The buffer,
bytes in most figures, is as many packets in ns-2, where an ack or a SYN takes a packet's place.
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
from flowstamp.figures.measures import Finished
from flowstamp.figures.spec import load

# What a law is called in dumbbell.tcl.
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


# What dumbbell.tcl calls delays of a parking lot.
DELAYS = {"hop_delay": "delay", "access_delay": "access_delay"}


# Packets of a flow without a size.
ENDLESS = 10**9


def buffer_and_hosts(run: Finished, network: dict[str, Any], first: str) -> dict[str, str]:
    """The bottlenecks' buffer, which link `first` has, and what the network says of its hosts' links."""
    packets = max(1, round(run.summary["links"][first]["buffer_bytes"] / run.packet_bytes))
    # What ns-2's drop-tail holds, XCP's and RCP's too, is a packet fewer than its limit.
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
    if any(g.get("reverse") or "rtt" in g for g in groups):
        raise FlowstampError("ns-2 is given a parking lot's flows one way only, with hosts as far off as the lot says")
    if isinstance(delay, list) or len(set(rates)) > 1:
        raise FlowstampError("dumbbell.tcl has links of one rate and one delay")
    over = {g["name"]: "0" for g in groups if not g.get("each_hop")}
    over |= {f"{g['name']}.{k}": str(k) for g in groups if g.get("each_hop") for k in range(1, len(rates) + 1)}
    delays = {f"{key}_ms": str(milliseconds(network[value])) for key, value in DELAYS.items()}
    return {"rate_mbps": rates[0], "hops": str(len(rates))} | delays, network, over


def milliseconds(text: str) -> float:
    """A time of the scenario."""
    return round(_flowstamp.quantity("time", text) * 1e3, 9)


def file_of(run: Finished, ways: dict[str, str]) -> tuple[list[str], NDArray[np.intp]]:
    """Lines for dumbbell.tcl in the order of starts, and which of the run's flows with a size each is, or -1."""
    flows = run.times
    names = sorted(flows.groups, key=flows.groups.__getitem__)
    rows = [
        (start, int(packets), ways[names[group]], number)
        for number, (start, packets, group) in enumerate(
            zip(flows.start_s.tolist(), flows.packets.tolist(), flows.group.tolist(), strict=True)
        )
    ]
    known = any("web" not in g for g in run.scenario["flows"])
    endless = [flow for flow in run.summary["flows"] if flow["size_bytes"] is None] if known else []
    rows += [(flow["start_s"], ENDLESS, ways[flow["group"]], -1) for flow in endless]
    rows.sort(key=lambda row: row[0])
    return [f"{start!r} {packets} {way}\n" for start, packets, way, _ in rows], np.array([row[3] for row in rows])


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
    router = network.get("router", "none")
    if name == "rcp" and isinstance(router, dict):
        names = {"alpha": "rcp_alpha", "beta": "rcp_beta", "eta": "rcp_gamma"}
        more = {names[key]: str(router[key]) for key in names if key in router} | more
    rtt_s = _flowstamp.quantity("time", network["rtt"])
    with tempfile.TemporaryDirectory() as folder:
        given, log = Path(folder) / "flows", Path(folder) / "log"
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
            }
            | more,
        )
        ended = np.loadtxt(log, ndmin=2)
    ended = ended[numbers[ended[:, 3].astype(int) - 1] >= 0]
    order = numbers[ended[:, 3].astype(int) - 1]
    # Of flows over one link the round trip is shorter, but they are not what is asked for.
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
    arguments = parser.parse_args()
    for text in (*arguments.set, *arguments.ns2):
        if "=" not in text:
            parser.error(f'"{text}" is not key=value')
    sets = [(key, value) for key, _, value in (text.partition("=") for text in arguments.set)]
    ours = finished(arguments.figure, arguments.run, sets, arguments.seed)
    spec = load(arguments.figure)
    group, name = arguments.group or spec.group, spec.links[0]
    if group not in ours.times.groups:
        raise FlowstampError(f"no flow of the run has the group {group}; there are {', '.join(ours.times.groups)}")
    theirs, summary = ns2_times(ours, {k: v for k, _, v in (text.partition("=") for text in arguments.ns2)})
    twin = dataclasses.replace(ours, times=theirs)

    link = ours.summary["links"][name]
    print(f"utilisation   {link['utilization']:9.3f} {summary['utilization']:9.3f}   Flowstamp, ns-2")
    print(f"mean queue kB {link['mean_queue_bytes'] / 1e3:9.1f} {summary['mean_queue_bytes'] / 1e3:9.1f}")
    print(f"drops         {ours.drops(name):9.0f} {summary['drops']:9d}")
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
