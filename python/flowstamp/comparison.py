# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Compares protocols on the same network and flows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from flowstamp import _flowstamp, afct, executors, fairness, text
from flowstamp.errors import FlowstampError, ScenarioError, translated
from flowstamp.names import Named, nearest
from flowstamp.scenario import Progress, Scenario, laws, load, router_of
from flowstamp.sweeps import run_many

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flowstamp.fairness import Fairness
    from flowstamp.results import Results

Table: TypeAlias = Mapping[str, Any]

PERCENTILES = ("p50", "p95", "p99")
FIRST = ("mean", "p95", "p99")
"""Statistics of completion times in the short table."""

MOST_SAMPLED = 100
"""Maximum number of long flows that a comparison samples, for their fairness and their throughputs over time."""

REFUSED = {
    "told": "is controlled from outside during the run; use flowstamp.gym",
    "xcp-edge": "governs a link and has no data of its own; write xcp",
    "vcp-edge": "governs a link and has no data of its own; write vcp",
}
"""Laws that cannot take the place of another law, and what to do instead."""
L4S_QUEUES = ("pi2", "dualpi2")


class Comparison(Mapping[str, "Results"]):
    """The results of each protocol, by name. Printing it shows the table of `flowstamp compare`."""

    def __init__(self, results: dict[str, Results], within: float = 0.05) -> None:
        self._results = Named(results)
        self.confidence = afct.confidence(results, within)
        """By group and protocol, the confidence of mean completion times; empty without random flows."""

    def __getitem__(self, protocol: str) -> Results:
        result: Results = self._results[protocol]
        return result

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def __repr__(self) -> str:
        return self.table()

    def fairness(self) -> dict[str, dict[str, Fairness]]:
        """Returns Jain's index by protocol and group, while all flows of the group are active."""
        return {name: fairness.while_all_active(result) for name, result in self._results.items()}

    def table(self, *, everything: bool = False) -> str:
        """Returns the main results, or `everything`, as text with one column per protocol, and notes below it."""
        shown = table(self._results, afct.by_size(self._results) if everything else {}, everything=everything)
        return "\n".join([shown, *notes(self._results)])

    def plot(self, link: str | None = None) -> Figure:
        """Draws throughputs, fairness, utilisation and queue over time for `link`, by default the busiest one.

        Throughputs and fairness are averaged over five round trips.
        """
        from flowstamp import plot

        groups = [group for result in self.values() for group in result.groups.values()]
        return plot.overview(self._results, link, average_s=5 * max(group["path_rtt_s"] for group in groups))


def compare(
    scenario: Scenario | str | Path,
    protocols: str | Sequence[str],
    *,
    seed: int | None = None,
    confidence: float = 5.0,
    max_duration: str = "",
    threads: int | None = None,
    memory: str | None = None,
    executor: str = executors.THREADS,
    progress: Progress | None = None,
) -> Comparison:
    """Runs a scenario under several protocols, as `flowstamp compare` does.

    All flows get the protocol's sender law, and all links its router law or none. Long flows are sampled
    (`probes.flows`) if there are at most 100. Raises `ScenarioError` for an unknown protocol or an invalid scenario.

    Args:
        scenario: a scenario, or the path of its file.
        protocols: sender laws, such as ["xcp", "reno+red"] or "xcp,reno+red"; +QUEUE also changes the queue.
        seed: replaces the scenario's seed.
        confidence: required half width of the 95% intervals of completion times, in percent.
        max_duration: the duration is doubled until `confidence` is reached, but at most to this; default: not at all.
        threads: number of parallel runs; default one per core.
        memory: limit for all runs and their results together, as in `Scenario.run`.
        executor: where to run, as in `run_many`.
        progress: callback for about ten calls per second. An exception that it raises stops the runs.
    """
    loaded = scenario if isinstance(scenario, Scenario) else load(scenario)
    named = protocols.split(",") if isinstance(protocols, str) else protocols
    scenarios = variants(loaded, [name.strip() for name in named if name.strip()], memory=memory)
    longest_s = longest(loaded, max_duration)
    while True:
        runs = run_many(
            list(scenarios.values()), seed=seed, threads=threads, memory=memory, executor=executor, progress=progress
        )
        found = Comparison(dict(zip(scenarios, runs, strict=True)), confidence / 100)
        duration_s = runs[0].summary["duration_s"]
        reached = all(row["reached"] for group in found.confidence.values() for row in group.values())
        if reached or duration_s >= longest_s:
            return found
        duration = f"{min(2 * duration_s, longest_s)!r}s"
        scenarios = {name: one.set("duration", duration) for name, one in scenarios.items()}


def variant(scenario: Scenario, protocol: str, *, memory: str | None = None) -> Scenario:
    """Returns the scenario with the law of all its flows replaced.

    `protocol` is a sender's law, or a law and a queue for all links, such as "reno+red"; without a queue, queues stay.
    Links get the router law that the protocol needs, or none. A radio cell without a known capacity gets a router law
    that does not need it, if the protocol has one. DCTCP gets queues that mark. Parameters stay where the old law or
    queue is the new one. Raises `ScenarioError` for an unknown protocol or an invalid scenario.
    """
    law, plus, queue = protocol.partition("+")
    _check(protocol, law, plus, queue)
    router = router_of(law)
    # The overrides are applied first; otherwise they would undo the replacement.
    tree = scenario.resolved(memory=memory)
    tree["flows"] = [{**group, "law": _keep(group["law"], "law", law)} for group in tree["flows"]]
    tree = _on_links(
        tree,
        lambda link: _link(link, router, queue),
        lambda cell: _link(cell, router_of(law, blind="told" not in cell), queue),
    )
    # Messages about the new scenario then name the protocol.
    changed = replace(scenario, tree=tree, overrides=(), source=f"{scenario.source} with {protocol}")
    return _marking(changed, memory) if law == "dctcp" else changed


def _check(protocol: str, law: str, plus: str, queue: str) -> None:
    known = laws()
    if "/" in protocol:
        raise ScenarioError(f'--protocols: "{protocol}" has a slash; write "{protocol.replace("/", "+", 1)}"')
    if law not in known["senders"]:
        raise ScenarioError(f"--protocols: {nearest(law, known['senders'], 'is not a protocol')}")
    if plus and queue not in known["queues"]:
        raise ScenarioError(f"--protocols: {nearest(queue, known['queues'], 'is not a queue')}")
    if law in REFUSED:
        raise ScenarioError(f'--protocols: "{law}" {REFUSED[law]}')
    if protocol == "dctcp+droptail":
        raise ScenarioError(f'--protocols: "{protocol}": a drop-tail queue marks nothing; write dctcp, which gets red')


def variants(scenario: Scenario, protocols: Sequence[str], *, memory: str | None = None) -> dict[str, Scenario]:
    """Returns the scenario under each protocol, by name. Raises `ScenarioError` for an empty list or duplicates."""
    if not protocols:
        raise ScenarioError("--protocols: is empty; write for example xcp,reno+red")
    repeated = next((name for index, name in enumerate(protocols) if name in protocols[:index]), None)
    if repeated is not None:
        raise ScenarioError(f'--protocols: "{repeated}" appears twice')
    scenario = fairness.sampled(scenario, MOST_SAMPLED, memory=memory)
    return {name: variant(scenario, name, memory=memory) for name in protocols}


def notes(results: Mapping[str, Results]) -> list[str]:
    """Returns lines that say over which time Jain's index is, and which queues protocols got because they need them."""
    lines = []
    some = next(iter(results.values()))
    for group, found in fairness.while_all_active(some).items():
        lines.append(
            f"Jain index of {group}: while all its flows are active, {found.from_s:g} s to {found.until_s:g} s"
        )
    for name, result in results.items():
        scenario = result.manifest["scenario"]
        if not name.startswith("dctcp"):
            continue
        steps = {link["queue"].get("step") for link in _links_of(scenario) if isinstance(link.get("queue"), Mapping)}
        least, most = min(steps - {None}, default=0), max(steps - {None}, default=0)
        if most:
            lines.append(
                f"{name}: queues mark above {least if least == most else f'{least} to {most}'} packets (red, step)"
            )
        if any(isinstance(flows["law"], Mapping) and flows["law"].get("l4s") for flows in scenario["flows"]):
            lines.append(f"{name}: packets are L4S (l4s = true)")
        total = result.summary["links"].values()
        if not any(link["marks"] for link in total) and any(link["drops"] for link in total):
            lines.append(f"{name}: WARNING: no packet was marked, so that it ran like TCP; its queues must mark")
    return lines


def longest(scenario: Scenario, max_duration: str) -> float:
    """Parses `max_duration`, the longest duration to which runs may be extended. Returns seconds; 0 if it is empty.

    Raises `ScenarioError` for an invalid time, and for a scenario without web or listed flows.
    """
    if not max_duration:
        return 0.0
    try:
        with translated():
            seconds = _flowstamp.quantity("time", max_duration)
    except FlowstampError as error:
        raise ScenarioError(f"--max-duration: {error}") from None
    if not any(group.get("web") or group.get("list") for group in scenario.tree.get("flows", ())):
        raise ScenarioError("--max-duration: is for scenarios with random flows (web), whose times have a confidence")
    return seconds


def table(
    results: Mapping[str, Results], times: Mapping[str, list[dict[str, Any]]], *, everything: bool = False
) -> str:
    """Formats the main results, or `everything`, as a table with one column per protocol.

    With `everything` and mean `times` by size, the ideals have columns too.
    """
    ideals = tuple(afct.IDEALS.values()) if times and everything else ()
    rows: list[list[str]] = []

    def add(label: str, cells: Sequence[str], of_ideals: Sequence[str] = ("",) * len(afct.IDEALS)) -> None:
        rows.append([label, *cells, *of_ideals[: len(ideals)]])

    some = next(iter(results.values()))
    fair = {name: fairness.while_all_active(result) for name, result in results.items()}
    for label, cells in _links(results, everything):
        add(label, cells)
    for cell in some.summary.get("cells", {}):
        shares = [result.summary["cells"][cell] for result in results.values()]
        add(f"{cell} busy", [text.percent(value["busy"]) for value in shares])
    for group in some.groups:
        flows = [result.groups[group] for result in results.values()]
        add(f"{group} goodput", [text.rate(value["goodput_bps"]) for value in flows])
        if everything or any(value["jain_index"] is not None for value in flows):
            add(f"{group} Jain index", fairness.cells(group, results, fair))
        if any(value["completed"] for value in flows):
            add(f"{group} completed", [str(value["completed"]) for value in flows])
            of_all = [value["fct_s"]["all"] if value["fct_s"] else None for value in flows]
            for statistic in ("mean", *PERCENTILES) if everything else FIRST:
                add(f"{group} {statistic} time", [text.seconds(one[statistic]) if one else "-" for one in of_all])
        for label, cells in _delays(group, [value.get("packet_delay_s") for value in flows], everything):
            add(label, cells)
        for label, cells in _over_ideals(group, flows, text.are_many(some.links)):
            add(label, cells)
        for row in times.get(group, ()) if everything else ():
            cells, of_ideals = afct.cells(row, list(results))
            add(f"{group} mean time, {afct.packets(row)}", cells, of_ideals)
        laws = [value["littles_law"] for value in flows]
        if any(laws) and everything:
            add(f"{group} active flows", [f"{law['mean_active']:.4g}" if law else "-" for law in laws])
            off = [(law["relative_difference"], law["edge_bound"]) if law else None for law in laws]
            add(f"{group} Little's law off by", [text.percent(o[0]) if o else "-" for o in off])
            add("  of at most, by its ends", [text.percent(o[1]) if o else "-" for o in off])
    return text.table(["", *results, *ideals], rows)


def _over_ideals(group: str, flows: Sequence[Any], are_many: bool) -> Iterator[tuple[str, list[str]]]:
    """Yields rows of slowdowns, in networks of many links, and of collective operations and incasts."""
    slowed = [value.get("fct_slowdown") for value in flows]
    if any(slowed) and are_many:
        for statistic in (*PERCENTILES, "p999"):
            cells = [f"{one['all'][statistic]:.2f}" if one else "-" for one in slowed]
            yield f"{group} {statistic} slowdown", cells
    operations = [value.get("operations") for value in flows]
    if any(operations):
        yield f"{group} operations", [f"{one['completed']} of {one['started']}" if one else "-" for one in operations]
        for statistic in ("mean", "p99", "max"):
            yield (
                f"{group} {statistic} operation time",
                _seconds([one and one["time_s"] for one in operations], statistic),
            )


def _seconds(of_runs: Sequence[Any], statistic: str) -> list[str]:
    return [text.seconds(one[statistic]) if one else "-" for one in of_runs]


def _delays(group: str, delays: Sequence[Any], everything: bool) -> Iterator[tuple[str, list[str]]]:
    """Yields rows of packet delays; with `everything`, also by flow size."""
    if any(delays):
        for statistic in ("mean", *PERCENTILES) if everything else ("p95",):
            yield f"{group} {statistic} packet delay", _seconds(delays, statistic)
    for label, of_runs in _by_size(delays) if everything else ():
        for statistic in PERCENTILES:
            yield f"{group} {statistic} packet delay, {label}", _seconds(of_runs, statistic)


def _by_size(delays: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yields the label of each size bin and the runs' packet delays in it. Yields nothing if there is only one bin."""
    of_runs = [{(row["min_bytes"], row["max_bytes"]): row for row in one["bins"]} if one else {} for one in delays]
    sizes = sorted({size for one in of_runs for size in one})
    for size in sizes if len(sizes) > 1 else ():
        yield text.size_bin(*size), [one.get(size) for one in of_runs]


def _links(results: Mapping[str, Results], everything: bool) -> Iterator[tuple[str, list[str]]]:
    """Yields rows of links with traffic; if there are many links, of the most used ones."""
    links = [result.summary["links"] for result in results.values()]
    shown = text.most_used(links)
    for link in shown:
        values = [of_run[link] for of_run in links]
        if not any(value["arrivals"] for value in values):
            continue
        yield f"{link} utilisation", [text.percent(value["utilization"]) for value in values]
        if "lost" in values[0]:
            yield f"{link} lost beside drops", [str(value["lost"]) for value in values]
        if not any(value["p99_queue_bytes"] or value["drops"] or value["marks"] for value in values):
            continue  # no queue, as on most reverse links: seven rows of zeros would hide the rest
        for statistic in ("mean", *PERCENTILES) if everything else ("mean",):
            yield f"{link} {statistic} queue", [text.size(value[f"{statistic}_queue_bytes"]) for value in values]
        waits = [value.get("queueing_delay_s") for value in values]
        for statistic in ("mean", *PERCENTILES) if everything else ("p95",):
            yield f"{link} {statistic} queueing delay", _seconds(waits, statistic)
        yield f"{link} drops", [str(value["drops"]) for value in values]
        if everything or any(value["marks"] for value in values):
            yield f"{link} marks", [str(value["marks"]) for value in values]
    if len(shown) < len(links[0]):
        yield f"({len(links[0]) - len(shown)} links that are used less)", [""] * len(results)


def _on_links(tree: Table, wire: Callable[[Table], Table], air: Callable[[Table], Table]) -> dict[str, Any]:
    """Returns the tables with all links changed by `wire`, and all interfaces of cells by `air`."""
    changed = dict(tree)
    for kind in ("dumbbell", "parking_lot", "leaf_spine", "fat_tree"):
        if kind in tree:
            changed[kind] = wire(tree[kind])
    if "graph" in tree:
        changed["graph"] = {**tree["graph"], "links": [wire(link) for link in tree["graph"]["links"]]}

    def cell(old: Table) -> Table:
        new = air(old)
        told = {key: old[key] for key in ("told",) if key in old}
        # Stations may have a router or a queue of their own.
        own = [{key: value for key, value in air({**told, **one}).items() if key in one} for one in old["stations"]]
        return {**new, "stations": own}

    if "wireless" in tree:
        changed["wireless"] = [cell(one) for one in tree["wireless"]]
    return changed


def _links_of(tree: Table) -> list[Table]:
    """Returns the tables of all links and cells."""
    kinds = [tree[kind] for kind in ("dumbbell", "parking_lot", "leaf_spine", "fat_tree") if kind in tree]
    return [*kinds, *tree.get("graph", {}).get("links", ()), *tree.get("wireless", ())]


def _link(link: Table, router: str, queue: str) -> Table:
    changed = {**link, "router": _keep(link.get("router", "none"), "law", router)}
    if router == "none":
        changed.pop("share", None)  # `share` needs a router law
    if queue:
        changed["queue"] = _keep(link.get("queue", "droptail"), "kind", queue)
    return changed


def _marking(changed: Scenario, memory: str | None) -> Scenario:
    """Gives DCTCP what it needs: drop-tail queues become step queues, and with a queue for L4S its packets are L4S.

    A step queue marks from a seventh of the bandwidth-delay product on (Alizadeh 2010, eq. 13), but at 20 packets (its
    value at 1 Gb/s) or a fifth of the buffer at least, so that short bursts are not marked. It drops no acks.
    """
    tree = dict(changed.tree)
    if any(_name(link.get("queue", "droptail"), "kind") in L4S_QUEUES for link in _links_of(tree)):
        tree["flows"] = [
            {**group, "law": {"l4s": True, **(law if isinstance(law := group["law"], Mapping) else {"law": law})}}
            for group in tree["flows"]
        ]
    if any(_name(link.get("queue", "droptail"), "kind") == "droptail" for link in _links_of(tree)):
        simulation = changed.set("warmup", "0s").start(memory=memory)
        simulation.run_until("1ns")
        built = simulation.results()
        rtt_s = max(group["path_rtt_s"] for group in built.groups.values())
        packet = _flowstamp.quantity("size", tree["packet"])
        steps = {
            name: math.ceil(
                max(
                    _flowstamp.dctcp_threshold(link["rate_bps"], rtt_s),
                    min(20 * packet, link["buffer_bytes"] / 5),
                )
                / packet
            )
            for name, link in built.links.items()
        }
        least = min(steps.values(), default=20)

        def step(link: Table) -> Table:
            if _name(link.get("queue", "droptail"), "kind") != "droptail":
                return link
            packets = steps.get(link.get("name", f"{link.get('from')}->{link.get('to')}"), least)
            return {**link, "queue": {"kind": "red", "step": packets, "step_drops": False}}

        tree = _on_links(tree, step, step)
    return replace(changed, tree=tree)


def _keep(old: str | Table, tag: str, name: str) -> str | Table:
    """Returns the old table with its parameters if it already has this name, else the name alone."""
    return old if isinstance(old, Mapping) and old.get(tag) == name else name


def _name(spec: str | Table, tag: str) -> str:
    return str(spec[tag]) if isinstance(spec, Mapping) else spec
