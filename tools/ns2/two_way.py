#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs a figure's long flows both ways in Flowstamp and in ns-2, with the same starts, and shows both.

    .venv/bin/python tools/ns2/two_way.py X4 red_fast --set dumbbell.rate=20Mbps --set dumbbell.buffer=200pkt
    .venv/bin/python tools/ns2/two_way.py X5 xcp_fast --set dumbbell.rtt=1280ms --set dumbbell.rate=30Mbps \\
        --set duration=400s --set warmup=80s --tcp T_SRTT_BITS:8,T_RTTVAR_BITS:8

One line for each seed: utilisation, mean queue and drops are of both directions after the warm-up, timeouts of the
whole run; `nrexmit` is how many of these ns-2's own counter has (dumbbell.tcl). The least timeout, the buffer and the
hosts' links are the figure's; --ns2 access_rate_mbps=1500 gives ns-2 others. --above 0.9 --after 8s adds the seconds
after 8 s from which on the forward link is used to 0.9 in every interval in which the figure takes samples.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import ns2
from same_flows import buffer_and_hosts, every_s, finished, settled

from flowstamp import _flowstamp
from flowstamp.errors import FlowstampError
from flowstamp.figures.measures import Finished

# The law and the queue of a run, and what dumbbell.tcl calls them.
PROTOCOLS = {
    ("xcp", "droptail"): "xcp",
    ("xcp-draft", "droptail"): "xcp",
    ("reno", "droptail"): "reno",
    ("reno", "red"): "reno-red",
}


def named(value: Any, key: str) -> str:
    """The name of a law or queue, with or without parameters."""
    return value if isinstance(value, str) else value[key]


def ns2_run(run: Finished, seed: int, tcp: str, more: dict[str, str]) -> dict[str, Any]:
    """The same flows in ns-2."""
    network, groups = run.scenario["dumbbell"], run.scenario["flows"]
    law, queue = named(groups[0]["law"], "law"), named(network.get("queue", "droptail"), "kind")
    if (law, queue) not in PROTOCOLS:
        raise FlowstampError(
            f"dumbbell.tcl has no {law} over {queue}; it has {', '.join(map(' over '.join, PROTOCOLS))}"
        )
    starts: dict[bool, list[str]] = {False: [], True: []}
    stops: dict[bool, list[str]] = {False: [], True: []}
    back = {g["name"]: bool(g.get("reverse", False)) for g in groups}
    for flow in run.summary["flows"]:
        starts[back[flow["group"]]].append(f"{flow['start_s']:.9f}")
        stops[back[flow["group"]]].append("" if flow["stop_s"] is None else f"{flow['stop_s']:.9f}")
    least_s = _flowstamp.quantity("time", groups[0]["transport"]["min_rto"])
    return ns2.run(
        timeout_s=7200,
        **{
            "protocol": PROTOCOLS[law, queue],
            "rate_mbps": _flowstamp.quantity("rate", network["rate"]) / 1e6,
            "rtt_ms": _flowstamp.quantity("time", network["rtt"]) * 1e3,
            **buffer_and_hosts(run, network, "bottleneck"),
            "flows": len(starts[False]),
            "reverse": len(starts[True]),
            "starts": starts[False],
            "reverse_starts": starts[True],
            "stops": stops[False],
            "reverse_stops": stops[True],
            "sample_s": every_s(run),
            "duration_s": run.summary["duration_s"],
            "warmup_s": run.summary["warmup_s"],
            "seed": seed,
            "red_mark_p": 1,
            "tcp_set": ",".join(filter(None, [f"minrto_:{least_s}", tcp])),
        }
        | more,
    )


def rows(run: Finished, theirs: dict[str, Any]) -> tuple[list[float], list[float]]:
    """Utilisation, queue in kB, drops and timeouts, and of ns-2 its own counter of them."""
    links, groups = run.summary["links"].values(), run.summary["groups"].values()
    ours = [
        sum(link["utilization"] for link in links) / 2,
        sum(link["mean_queue_bytes"] for link in links) / 2e3,
        sum(link["drops"] for link in links),
        sum(group["timeouts"] for group in groups),
    ]

    def both(key: str) -> float:
        return float(theirs[key] + theirs[key + "_reverse"])

    return ours, [
        both("utilization") / 2,
        both("mean_queue_bytes") / 2e3,
        both("drops_after_warmup"),
        both("timeouts"),
        both("nrexmit"),
    ]


def main() -> int:
    """Runs both and prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("figure")
    parser.add_argument("run")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of the scenario")
    parser.add_argument("--ns2", action="append", default=[], metavar="KEY=VALUE", help="a parameter of dumbbell.tcl")
    parser.add_argument("--tcp", default="", metavar="NAME:VALUE,...", help="variables of ns-2's TCP agent")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--above", type=float, metavar="SHARE", help="when the forward link is used to it for good")
    parser.add_argument("--after", default="0s", metavar="TIME", help="what --above counts from")
    arguments = parser.parse_args()
    for text in (*arguments.set, *arguments.ns2):
        if "=" not in text:
            parser.error(f'"{text}" is not key=value')
    sets = [(key, value) for key, _, value in (text.partition("=") for text in arguments.set)]
    more = {key: value for key, _, value in (text.partition("=") for text in arguments.ns2)}

    after_s = _flowstamp.quantity("time", arguments.after)
    print("seed            utilisation  queue kB    drops  timeouts  nrexmit")
    table: dict[str, list[list[float]]] = {"Flowstamp": [], "ns-2": []}
    for seed in range(1, arguments.seeds + 1):
        run = finished(arguments.figure, arguments.run, sets, seed)
        theirs = ns2_run(run, seed, arguments.tcp, more)
        pair = rows(run, theirs)
        for (name, kept), row in zip(table.items(), pair, strict=True):
            kept.append(row)
            tell(str(seed), name, row)
        if arguments.above is not None:
            here, there = settled(run, theirs, arguments.above, after_s)
            print(f"{seed:<5} above {arguments.above}: {here:.1f} s and {there:.1f} s", flush=True)
    for name, kept in table.items():
        tell("mean", name, [sum(column) / len(kept) for column in zip(*kept, strict=True)])
    return 0


def tell(seed: str, name: str, row: list[float]) -> None:
    """A line of the table."""
    utilisation, queue, *counts = row
    print(
        f"{seed:5} {name:9} {utilisation:11.3f} {queue:9.1f}" + "".join(f" {count:8.0f}" for count in counts),
        flush=True,
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (FlowstampError, ns2.Ns2Error) as error:
        sys.exit(f"two_way.py: {error}")
