# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Scenarios as Python objects: the same tree of tables as a TOML file, checked by the same code.

Quantities are strings with units ("45Mbps", "40ms", "1BDP", "10MB"), as in a file. Every method returns a new scenario
and leaves the old one as it was.
"""

from __future__ import annotations

import json
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from flowstamp import _flowstamp, machine
from flowstamp.errors import ScenarioError, ScenarioWarning, one_line, translated

if TYPE_CHECKING:
    from flowstamp.results import Results
    from flowstamp.simulation import Simulation

Spec: TypeAlias = str | Mapping[str, Any]
"""A law or queue: its name, or a table of its name (`law`, of a queue `kind`) and parameters."""

LinkRate: TypeAlias = str | Mapping[str, Any]
"""A capacity such as "45Mbps", or a table with `steps` or `trace`."""

Progress: TypeAlias = Callable[[int, int, float, float, int], None]
"""Called about ten times a second with run, runs, simulated seconds, duration in seconds, events."""

_TOPOLOGIES = ("dumbbell", "parking_lot", "leaf_spine", "fat_tree", "graph")

MOST_BYTES = 1 << 26
"""The largest file that is read as a scenario."""

MOST_NESTED = 64
"""How deep tables and lists of a scenario may be nested: several times as deep as any key is."""
_TOO_DEEP = (
    f"is nested too deep; tables and lists in each other go to {MOST_NESTED}, and no key of a scenario is near that"
)


def laws() -> dict[str, list[str]]:
    """Names that a scenario may use: `senders`, `routers`, `queues`."""
    return _flowstamp.laws()


def schema() -> dict[str, Any]:
    """The JSON Schema of a scenario."""
    document: dict[str, Any] = json.loads(_flowstamp.scenario_schema())
    return document


@dataclass(frozen=True)
class Scenario:
    """A network, the flows on it and what to record.

    Made by `dumbbell`, `parking_lot`, `leaf_spine`, `fat_tree`, `graph`, `load` and `loads`; run by `run`.
    """

    tree: Mapping[str, Any]
    """The scenario's tables, by the names of the file format; not to be changed in place."""
    overrides: tuple[tuple[str, str], ...] = ()
    """What `set` was given, applied in order after everything else: dotted key, TOML value."""
    source: str = "scenario"
    """What messages call it: the file it came from."""
    base_dir: str = "."
    """What the paths in it are relative to."""
    routers: bool = False
    """Links whose router is not named get the law that the flows need; a file names them."""

    def flows(
        self,
        law: Spec,
        count: int | None = None,
        *,
        name: str | None = None,
        from_: str | None = None,
        to: str | None = None,
        pattern: str | None = None,
        reverse: bool | None = None,
        each_hop: bool | None = None,
        rtt: str | Sequence[str] | None = None,
        start: str | Sequence[str] | None = None,
        every: str | None = None,
        spread: str | None = None,
        stop: str | None = None,
        size: str | None = None,
        rate: str | None = None,
        application: Mapping[str, Any] | None = None,
        packet: str | Sequence[Mapping[str, Any]] | None = None,
        jitter: str | None = None,
        send_buffer: str | None = None,
        web: Mapping[str, Any] | None = None,
        list_: str | Path | None = None,
        ignore_columns: Sequence[str] = (),
        receiver: str | None = None,
        governs: str | None = None,
        label: int | None = None,
        transport: Mapping[str, Any] | None = None,
        access: Mapping[str, Any] | None = None,
    ) -> Self:
        """Adds a group of flows.

        Args:
            law: the sender's law, such as "xcp" or {"law": "xcp", "price": 5.0}.
            count: how many flows; default 1, of web flows and of a list 10 pairs of hosts.
            name: name in results; default the law's name.
            from_: where data comes from: a node; default the first.
            to: where data goes: a node; default the last.
            pattern: between which hosts, in place of `from_` and `to`: "random", "permutation" or "incast".
            reverse: data goes the other way.
            each_hop: in a parking lot, one such group over each single link.
            rtt: round-trip propagation time: one for all, or a list with one for each.
            start: when the first flow starts, or a list with one for each; of `list_` what is added to each row's.
            every: how much later than the one before each flow starts.
            spread: each flow starts up to so much later, drawn uniformly.
            stop: when the flows stop sending new data; default never.
            size: how much payload each flow transfers; default without end.
            rate: how fast the application produces payload; default faster than the network.
            application: what each flow's application produces, such as
                {"kind": "frames", "fps": 30, "sizes": "20kB"}; kinds are "constant", "poisson", "onoff", "frames" and
                "requests".
            packet: size of datagrams on the wire, "imix", or a list such as [{"size": "64B", "weight": 3}].
            jitter: how far datagrams leave behind their clock, or "none" for the bare clock; default eight packet
                times of the slowest link.
            send_buffer: the most datagrams, in bytes, that wait for the host's own link; default without bound.
            web: flows that arrive at random, each with a size of its own.
            list_: flows of a file, CSV or Parquet, a row for each: columns `start` and `size`, and where rows differ
                `from`, `to` and `law`.
            ignore_columns: other columns of the list, which are left alone; "*" stands for all.
            receiver: "tcp" for receiving hosts that know TCP alone and echo no stamps; default "any".
            governs: of an XCP macro-flow, "xcp-edge": the link whose rate it sets.
            label: 0 (default) to 7; links with priority="labels" send packets of a greater label first.
            transport: window, acks and recovery.
            access: access link of the flows' hosts: `rate` and `delay`.

        A law that needs routers, such as XCP, gets them in a scenario made by `dumbbell` and its like:
        where that names none, its links get the law. A scenario from a file names its routers.
        """
        groups = list(self.tree.get("flows", ()))
        taken = {group.get("name") for group in groups}
        if name is None:
            base = _name_of(law, "law")
            numbered = (base if n == 1 else f"{base}-{n}" for n in range(1, len(groups) + 2))
            name = next(candidate for candidate in numbered if candidate not in taken)
        group = {
            "name": name,
            "law": law,
            "count": count,
            "from": from_,
            "to": to,
            "pattern": pattern,
            "reverse": reverse,
            "each_hop": each_hop,
            "rtt": rtt,
            "start": start,
            "every": every,
            "spread": spread,
            "stop": stop,
            "size": size,
            "rate": rate,
            "application": application,
            "packet": packet,
            "jitter": jitter,
            "send_buffer": send_buffer,
            "web": web,
            "list": None if list_ is None else str(list_),
            "ignore_columns": list(ignore_columns) or None,
            "receiver": receiver,
            "governs": governs,
            "label": label,
            "transport": transport,
            "access": access,
        }
        return self._with(flows=[*groups, _given(group)])

    def link(
        self,
        from_: str,
        to: str,
        *,
        rate: LinkRate,
        delay: str,
        name: str | None = None,
        buffer: str | None = None,
        queue: Spec | None = None,
        router: Spec | None = None,
        share: Spec | None = None,
        priority: str | None = None,
        medium: str | None = None,
        impairments: Mapping[str, Any] | None = None,
        weight: float | None = None,
        duplex: bool | None = None,
    ) -> Self:
        """Adds a link to a graph, both ways unless `duplex` is false.

        `delay` is the one-way propagation delay. Links that name the same `medium` send one at a time, in turn.
        `impairments` are of packets that have crossed it: `loss`, `jitter` and others (docs/impairments.md).
        If links have a `weight`, packets take the path of least weight rather than of least delay.
        """
        if "graph" not in self.tree:
            raise ScenarioError(f"{self.source}: only a graph has links of its own; start with flowstamp.graph()")
        new = {
            "from": from_,
            "to": to,
            "rate": rate,
            "delay": delay,
            "name": name,
            "buffer": buffer,
            "queue": queue,
            "router": router,
            "share": share,
            "priority": priority,
            "medium": medium,
            "impairments": impairments,
            "weight": weight,
            "duplex": duplex,
        }
        old = self.tree["graph"]
        return self._with(graph={**old, "links": [*old.get("links", ()), _given(new)]})

    def outage(
        self,
        link: str,
        from_: str,
        until: str | None = None,
        *,
        both_ways: bool | None = None,
        on_failure: str | None = None,
    ) -> Self:
        """Adds a time during which a link carries nothing, and its way back neither unless `both_ways` is false.

        Without `until` it does not return. `on_failure` is "lose" (default) or "hold": what becomes of its packets.
        """
        new = {"link": link, "from": from_, "until": until, "both_ways": both_ways, "on_failure": on_failure}
        return self._with(outages=[*self.tree.get("outages", ()), _given(new)])

    def routing(self, *, reroute: bool | None = None, convergence: str | None = None) -> Self:
        """Says whether routes follow outages (default: they do), and how long after each; what is not named stays."""
        new = {"reroute": reroute, "convergence": convergence}
        return self._with(routing={**self.tree.get("routing", {}), **_given(new)})

    def probe(
        self,
        *,
        every: str | None = None,
        links: bool | None = None,
        groups: bool | None = None,
        flows: bool | None = None,
        laws: bool | None = None,
    ) -> Self:
        """Says what is sampled over time, and how often; what is not named stays."""
        new = {"every": every, "links": links, "groups": groups, "flows": flows, "laws": laws}
        return self._with(probes={**self.tree.get("probes", {}), **_given(new)})

    def capture(self, links: Sequence[str] | None = None, *, packets: int | None = None) -> Self:
        """Records what leaves `links`, and the frames of the cells among them (default: all), at most `packets`."""
        return self._with(capture=_given({"links": links, "packets": packets}))

    def configure(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        duration: str | None = None,
        warmup: str | None = None,
        seed: int | None = None,
        packet: str | None = None,
        header: str | None = None,
        ack: str | None = None,
    ) -> Self:
        """Sets what concerns the whole run: name, times, seed, the sizes of packets and of their headers."""
        new = {
            "name": name,
            "description": description,
            "duration": duration,
            "warmup": warmup,
            "seed": seed,
            "packet": packet,
            "header": header,
            "ack": ack,
        }
        return self._with(**_given(new))

    def set(self, key: str, value: object) -> Self:
        """Overrides one value: `set("dumbbell.rate", "90Mbps")`, `set("flows.xcp.count", 3)`.

        Overrides are applied in order after everything else. A group of flows goes by its name or number, several by a
        pattern: `set("flows.up*.law", "cubic")`.
        """
        if _is_deep(value):
            raise ScenarioError(f"{key}: {_TOO_DEEP}")
        return replace(self, overrides=(*self.overrides, (key, toml(value, key))))

    def run(
        self,
        duration: str | None = None,
        *,
        warmup: str | None = None,
        seed: int | None = None,
        memory: str | None = None,
        progress: Progress | None = None,
    ) -> Results:
        """Runs the scenario.

        Args:
            duration: simulated time; default what the scenario says.
            warmup: statistics start here; default what the scenario says.
            seed: every random choice follows from this; default what the scenario says.
            memory: what the run may need, such as "4GB": if it may need more, it is refused before it takes any;
                default three quarters of what this process can have (`flowstamp.machine`).
            progress: called about ten times a second; what it raises stops the run.
        """
        from flowstamp.progress import watching
        from flowstamp.results import Results

        timed = self._timed(duration, warmup, seed)
        text, written_in = timed._text()
        with watching(progress, self.source) as told, translated():
            run = _flowstamp.run(
                text,
                source=self.source,
                format=written_in,
                sets=self.overrides,
                base_dir=self.base_dir,
                seed=seed,
                memory=machine.memory(memory),
                progress=told,
            )
        results = Results(run)
        self._warn(results)
        return results

    def start(
        self,
        duration: str | None = None,
        *,
        warmup: str | None = None,
        seed: int | None = None,
        memory: str | None = None,
    ) -> Simulation:
        """Lays out the network, to be run in steps: see `Simulation`. The arguments are those of `run`."""
        from flowstamp.simulation import Simulation

        timed = self._timed(duration, warmup, seed)
        text, written_in = timed._text()
        with translated():
            simulation = _flowstamp.start(
                text,
                source=self.source,
                format=written_in,
                sets=self.overrides,
                base_dir=self.base_dir,
                seed=seed,
                memory=machine.memory(memory),
            )
        return Simulation(simulation)

    def to_toml(self, *, memory: str | None = None) -> str:
        """The scenario as a file would have it, checked, with every default spelled out; `memory` as in `run`."""
        text, written_in = self._text()
        with translated():
            return _flowstamp.check(
                text,
                source=self.source,
                format=written_in,
                sets=self.overrides,
                base_dir=self.base_dir,
                memory=machine.memory(memory),
            )

    def resolved(self, *, memory: str | None = None) -> dict[str, Any]:
        """The scenario's tables, checked, with every default spelled out; `memory` as in `run`."""
        return tomllib.loads(self.to_toml(memory=memory))

    def router_loops(
        self, *, memory: str | None = None
    ) -> list[tuple[str, str, float, float, float | None, list[tuple[float, int]]]]:
        """Links whose router law has gains: name, law, alpha, beta, gamma, RTTs of flows that obey, with their number.

        RTTs are those of propagation, in seconds; `memory` as in `run`.
        """
        return [loop[:6] for loop in self._closed(memory)[0]]

    def warnings(self, *, memory: str | None = None) -> list[str]:
        """What a run of it would warn of before it begins: what it probably does not mean; `memory` as in `run`."""
        return self._closed(memory)[2]

    def _closed(
        self, memory: str | None = None
    ) -> tuple[
        list[tuple[str, str, float, float, float | None, list[tuple[float, int]], float]],
        list[tuple[list[tuple[str, float]], float, int]],
        list[str],
    ]:
        """Those with capacities, bit/s; ways of lasting flows: links with times to them, RTT, number; warnings."""
        text, written_in = self._text()
        with translated():
            return _flowstamp.router_loops(
                text,
                source=self.source,
                format=written_in,
                sets=self.overrides,
                base_dir=self.base_dir,
                memory=machine.memory(memory),
            )

    def _repr_html_(self) -> str:
        from flowstamp import notebook

        return notebook.scenario(self)

    def _repr_png_(self) -> bytes | None:
        from flowstamp import notebook

        return notebook.scenario_png(self)

    def _timed(self, duration: str | None, warmup: str | None, seed: int | None) -> Self:
        if seed is not None and not 0 <= seed < 2**63:
            raise ScenarioError(f"seed: is {seed}; it must be at least 0 and below 2^63")
        return self.configure(duration=duration, warmup=warmup)

    def _with(self, **tables: object) -> Self:
        return replace(self, tree={**self.tree, **tables})

    def _warn(self, results: Results) -> None:
        """Passes on what the scenario probably does not mean, to whoever asked for the run."""
        for line in results.summary.get("warnings", ()):
            warnings.warn(f"{self.source}: {line}", ScenarioWarning, stacklevel=3)

    def _text(self) -> tuple[str, str]:
        """The tables as text, and what it is written in: JSON, or TOML where JSON has no word for a number."""
        tree = _with_routers(self.tree) if self.routers else self.tree
        if _is_deep(tree):
            raise ScenarioError(f"{self.source}: {_TOO_DEEP}")
        try:
            return json.dumps(tree, allow_nan=False), "json"
        except (TypeError, ValueError):
            pass
        try:
            return toml_text(tree), "toml"
        except ScenarioError as error:
            raise ScenarioError(f"{self.source}: {error}") from None


def dumbbell(
    rate: LinkRate,
    *,
    rtt: str,
    delay: str | None = None,
    buffer: str | None = None,
    queue: Spec | None = None,
    router: Spec | None = None,
    share: Spec | None = None,
    priority: str | None = None,
    access_rate: str | None = None,
    reverse_rate: LinkRate | None = None,
    impairments: Mapping[str, Any] | None = None,
    reverse_impairments: Mapping[str, Any] | None = None,
) -> Scenario:
    """One bottleneck, `bottleneck` from left to right and `bottleneck.reverse` back.

    Args:
        rate: capacity of the bottleneck, both ways.
        rtt: round-trip propagation time of flows that do not name their own.
        delay: one-way propagation delay of the bottleneck; default 0.4 rtt.
        buffer: room for waiting packets: "1BDP" (default), "100pkt", "64kB" or "50ms".
        queue: the bottleneck's queue; default "droptail".
        router: the bottleneck's router law; default the law of the first flows that need one.
        share: how the router law shares the bottleneck with other traffic: "none" (default), "fifo", "wfq" or "drr".
        priority: packets that go before all others: "none" (default), "acks" or "labels"; not with share.
        access_rate: capacity of each access link; default ten times the bottleneck's.
        reverse_rate: capacity from right to left, where it differs.
        impairments: of packets that crossed the bottleneck: `loss`, `jitter` and others (docs/impairments.md).
        reverse_impairments: the same from right to left, where it differs.
    """
    table = {
        "rate": rate,
        "rtt": rtt,
        "delay": delay,
        "buffer": buffer,
        "queue": queue,
        "router": router,
        "share": share,
        "priority": priority,
        "access_rate": access_rate,
        "reverse_rate": reverse_rate,
        "impairments": impairments,
        "reverse_impairments": reverse_impairments,
    }
    return Scenario({"dumbbell": _given(table)}, routers=True)


def parking_lot(
    rates: Sequence[str],
    *,
    delay: str,
    rtt: str | None = None,
    buffer: str | None = None,
    queue: Spec | None = None,
    router: Spec | None = None,
    share: Spec | None = None,
    priority: str | None = None,
    access_rate: str | None = None,
    access_delay: str | None = None,
    impairments: Mapping[str, Any] | None = None,
) -> Scenario:
    """Several bottlenecks in a row: `link1` leads from `n0` to `n1`, `link1.reverse` back, and so on.

    Args:
        rates: capacity of each link in turn, both ways.
        delay: one-way propagation delay of each link.
        rtt: the round-trip time that a buffer in BDP refers to; default that of a flow over all links.
        buffer: room for waiting packets on each link.
        queue: the queue of each link; default "droptail".
        router: the router law of each link; default the law of the first flows that need one.
        share: how the router laws share the links with other traffic: "none" (default), "fifo", "wfq" or "drr".
        priority: packets that go before all others: "none" (default), "acks" or "labels"; not with share.
        access_rate: capacity of each access link; default ten times the fastest link's.
        access_delay: one-way propagation delay of each access link.
        impairments: of packets that have crossed a link: `loss`, `jitter` and others (docs/impairments.md).
    """
    table = {
        "rates": list(rates),
        "delay": delay,
        "rtt": rtt,
        "buffer": buffer,
        "queue": queue,
        "router": router,
        "share": share,
        "priority": priority,
        "access_rate": access_rate,
        "access_delay": access_delay,
        "impairments": impairments,
    }
    return Scenario({"parking_lot": _given(table)}, routers=True)


def leaf_spine(
    leaves: int,
    spines: int,
    hosts: int,
    *,
    rate: str,
    delay: str,
    spine_rate: str | None = None,
    spine_delay: str | None = None,
    buffer: str | None = None,
    host_buffer: str | None = None,
    rtt: str | None = None,
    queue: Spec | None = None,
    router: Spec | None = None,
    share: Spec | None = None,
    priority: str | None = None,
) -> Scenario:
    """A network of a data centre in two stages: hosts `h0`, ..., switches `leaf0`, ... and `spine0`, ....

    Args:
        leaves: leaf switches, each joined with every spine switch.
        spines: spine switches.
        hosts: hosts of each leaf.
        rate: capacity of each host's link.
        delay: one-way propagation delay of each host's link.
        spine_rate: capacity of each link between leaf and spine; default the hosts'.
        spine_delay: its delay; default the hosts'.
        buffer: room for waiting packets in front of each link, but hosts' own: "1BDP" (default), "100pkt", "64kB".
        host_buffer: room in front of a host's own link, its memory; default "2MB".
        rtt: the round-trip time that a buffer in BDP refers to; default the longest of any flow.
        queue: the queue of each link; default "droptail".
        router: the router law of each link; default the law of the first flows that need one.
        share: how the router laws share the links with other traffic: "none" (default), "fifo", "wfq" or "drr".
        priority: packets that go before all others: "none" (default), "acks" or "labels"; not with share.
    """
    table = {
        "leaves": leaves,
        "spines": spines,
        "hosts": hosts,
        "rate": rate,
        "delay": delay,
        "spine_rate": spine_rate,
        "spine_delay": spine_delay,
        "buffer": buffer,
        "host_buffer": host_buffer,
        "rtt": rtt,
        "queue": queue,
        "router": router,
        "share": share,
        "priority": priority,
    }
    return Scenario({"leaf_spine": _given(table)}, routers=True)


def fat_tree(
    k: int,
    *,
    rate: str,
    delay: str,
    buffer: str | None = None,
    host_buffer: str | None = None,
    rtt: str | None = None,
    queue: Spec | None = None,
    router: Spec | None = None,
    share: Spec | None = None,
    priority: str | None = None,
) -> Scenario:
    """A fat tree of switches with `k` ports and `k**3 / 4` hosts, `h0`, ..., all links alike.

    Args:
        k: ports of each switch: even.
        rate: capacity of each link.
        delay: one-way propagation delay of each link.
        buffer: room for waiting packets in front of each link, but hosts' own: "1BDP" (default), "100pkt", "64kB".
        host_buffer: room in front of a host's own link, its memory; default "2MB".
        rtt: the round-trip time that a buffer in BDP refers to; default the longest of any flow.
        queue: the queue of each link; default "droptail".
        router: the router law of each link; default the law of the first flows that need one.
        share: how the router laws share the links with other traffic: "none" (default), "fifo", "wfq" or "drr".
        priority: packets that go before all others: "none" (default), "acks" or "labels"; not with share.
    """
    table = {
        "k": k,
        "rate": rate,
        "delay": delay,
        "buffer": buffer,
        "host_buffer": host_buffer,
        "rtt": rtt,
        "queue": queue,
        "router": router,
        "share": share,
        "priority": priority,
    }
    return Scenario({"fat_tree": _given(table)}, routers=True)


def graph(
    links: Sequence[Mapping[str, Any]] = (),
    *,
    rtt: str | None = None,
    file: str | Path | None = None,
    rate: LinkRate | None = None,
    delay: str | None = None,
    buffer: str | None = None,
    queue: Spec | None = None,
    router: Spec | None = None,
    share: Spec | None = None,
    priority: str | None = None,
    weight: float | None = None,
    directed: bool | None = None,
    rate_key: str | None = None,
    rate_unit: str | None = None,
    delay_key: str | None = None,
    delay_unit: str | None = None,
    weight_key: str | None = None,
    ignore_columns: Sequence[str] = (),
) -> Scenario:
    """Any network of named nodes; `Scenario.link` adds links. `rtt` is what a buffer in BDP refers to.

    `file` names GraphML (`networkx.write_graphml`) or CSV (`source,target,rate,delay`) in place of links; `rate`,
    `delay`, `weight` and the others are those of its links that name none.

    In a `directed` graph links that do not say `duplex` lead one way; default as GraphML says, otherwise false.
    `rate_key`, `delay_key` and `weight_key` name the file's columns or attributes; `rate_unit` and `delay_unit` are the
    units of numbers without one, such as "bps". `ignore_columns` are left alone; "*" stands for all unknown ones.
    """
    table = {
        "links": [dict(link) for link in links] if file is None or links else None,
        "rtt": rtt,
        "file": None if file is None else str(file),
        "rate": rate,
        "delay": delay,
        "buffer": buffer,
        "queue": queue,
        "router": router,
        "share": share,
        "priority": priority,
        "weight": weight,
        "directed": directed,
        "rate_key": rate_key,
        "rate_unit": rate_unit,
        "delay_key": delay_key,
        "delay_unit": delay_unit,
        "weight_key": weight_key,
        "ignore_columns": list(ignore_columns) or None,
    }
    return Scenario({"graph": _given(table)}, routers=True)


def loads(text: str, *, source: str = "scenario", base_dir: str | Path = ".") -> Scenario:
    """A scenario from TOML text; `source` names it in messages, paths in it are relative to `base_dir`."""
    tree = parse(text, source)
    if {"scenario", "claims"} <= tree.keys():
        tree = tree["scenario"]  # a figure's file
    return Scenario(tree, source=source, base_dir=str(base_dir))


def parse(text: str, source: str) -> dict[str, Any]:
    """The tables of TOML text; `source` names it in messages."""
    try:
        tree = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{source}: not TOML: {one_line(error)}") from None
    except RecursionError:
        raise ScenarioError(f"{source}: {_TOO_DEEP}") from None
    if _is_deep(tree):
        raise ScenarioError(f"{source}: {_TOO_DEEP}")
    return tree


def _is_deep(tree: object) -> bool:
    """Whether tables and lists are nested deeper than they may be: without recursion, which it is to prevent."""
    level: list[object] = [tree]
    for _ in range(MOST_NESTED):
        nested = (item for item in level if isinstance(item, Mapping | list | tuple))
        level = [inner for item in nested for inner in (item.values() if isinstance(item, Mapping) else item)]
        if not level:
            return False
    return True


def load(path: str | Path) -> Scenario:
    """A scenario from a TOML file, the `[scenario]` of a figure's, or the `manifest.json` of a run.

    Paths in it are relative to the file's folder.
    """
    text = read_text(path)
    if Path(path).suffix == ".json":
        return Scenario(_of_manifest(text, str(path)), source=str(path), base_dir=str(Path(path).parent))
    return loads(text, source=str(path), base_dir=Path(path).parent)


def _of_manifest(text: str, source: str) -> dict[str, Any]:
    """The scenario of a run, by which it can be run again."""
    try:
        manifest = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ScenarioError(f"{source}: not JSON: {one_line(error)}") from None
    tree = manifest.get("scenario") if isinstance(manifest, dict) else None
    if not isinstance(tree, dict):
        raise ScenarioError(f'{source}: has no "scenario"; name a TOML file or the manifest.json of a run')
    if _is_deep(tree):
        raise ScenarioError(f"{source}: {_TOO_DEEP}")
    if manifest.get("changes"):
        raise ScenarioError(f"{source}: changes: its run was changed on the way, which a scenario cannot say")
    if manifest.get("version") != _flowstamp.__version__:
        warnings.warn(
            f"{source}: version: is {manifest.get('version')}, this is {_flowstamp.__version__}: results may differ",
            ScenarioWarning,
            stacklevel=3,
        )
    return {**tree, "seed": manifest.get("seed", tree.get("seed", 1))}


def read_text(path: str | Path) -> str:
    """The text of a scenario file, or of a pipe."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ScenarioError(f"{path}: has more than {MOST_BYTES} bytes, which no scenario has; name a TOML file")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: is not UTF-8 text; a scenario is a TOML file") from None


def router_of(law: str, *, blind: bool = False) -> str:
    """The router law that flows of this law have by themselves; "none" if they rely on none or there is no such law.

    If `blind`, one that needs no capacity, where there is one.
    """
    return _flowstamp.router_of(blind=blind).get(law, "none")


def _with_routers(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """Puts the law of the first flows that need routers on links whose router is not named."""
    used = (_name_of(group.get("law", ""), "law") for group in tree.get("flows", ()) if isinstance(group, Mapping))
    law = next((router for router in map(router_of, used) if router != "none"), None)
    kind = next((kind for kind in _TOPOLOGIES if isinstance(tree.get(kind), Mapping)), None)
    if law is None or kind is None:
        return tree
    table: Mapping[str, Any] = tree[kind]
    if kind == "graph" and "file" not in table:
        links = [{"router": law, **link} for link in table.get("links", ())]
        return {**tree, kind: {**table, "links": links}}
    return {**tree, kind: {"router": law, **table}}


def _name_of(spec: Spec, tag: str) -> str:
    """The name in `"xcp"` or `{law = "xcp"}`."""
    return str(spec.get(tag, "")) if isinstance(spec, Mapping) else str(spec)


def _given(table: Mapping[str, Any]) -> dict[str, Any]:
    """Without what was not given."""
    return {key: value for key, value in table.items() if value is not None}


def plain(value: Any) -> Any:
    """A number of numpy as Python's own; all else as it is."""
    return value.item() if hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0 else value


def toml(value: object, key: str) -> str:
    """A value as TOML on one line."""
    value = plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # TOML's basic strings have the escapes of JSON, which also escapes what TOML forbids, except DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(str(name))} = {toml(item, f'{key}.{name}')}" for name, item in _given(value).items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(toml(item, f"{key}[{at}]") for at, item in enumerate(value)) + "]"
    raise ScenarioError(f"{key}: {value!r} is no value of a scenario; write text, a number, a list or a table")


def toml_text(tree: Mapping[str, Any]) -> str:
    """Tables as a TOML document, a line for each key."""
    return "".join(f"{json.dumps(str(key))} = {toml(value, str(key))}\n" for key, value in _given(tree).items())
