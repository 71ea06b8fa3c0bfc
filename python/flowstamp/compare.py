# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Compares protocols on the same network and flows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from flowstamp import _flowstamp, afct, text
from flowstamp.errors import FlowstampError, ScenarioError, translated
from flowstamp.scenario import Scenario, laws, router_of

if TYPE_CHECKING:
    from flowstamp.results import Results

PERCENTILES = ("p50", "p95", "p99")
FIRST = ("mean", "p95", "p99")
"""Statistics of completion times in the short table."""


def variant(scenario: Scenario, protocol: str, *, memory: str | None = None) -> Scenario:
    """Returns the scenario with the law of all its flows replaced.

    `protocol` is a sender's law, or a law and a queue for all links, such as "reno+red"; without a queue, queues stay.
    Links get the router law that the protocol needs, or none. A radio cell without a known capacity gets a router law
    that does not need it, if the protocol has one. Parameters stay where the old law or queue is the new one. Raises
    `ScenarioError` for an unknown protocol or an invalid scenario.
    """
    law, plus, queue = protocol.partition("+")
    known = laws()
    if "/" in protocol:
        raise ScenarioError(f'--protocols: "{protocol}" has a slash; write "{protocol.replace("/", "+", 1)}"')
    if law not in known["senders"]:
        raise ScenarioError(f'--protocols: "{law}" is not a protocol; there are {", ".join(known["senders"])}')
    if plus and queue not in known["queues"]:
        raise ScenarioError(f'--protocols: "{queue}" is not a queue; there are {", ".join(known["queues"])}')
    router = router_of(law)
    # The overrides are applied first; otherwise they would undo the replacement.
    tree = scenario.resolved(memory=memory)
    tree["flows"] = [{**group, "law": _keep(group["law"], "law", law)} for group in tree["flows"]]
    for kind in ("dumbbell", "parking_lot", "leaf_spine", "fat_tree"):
        if kind in tree:
            tree[kind] = _link(tree[kind], router, queue)
    if "graph" in tree:
        tree["graph"]["links"] = [_link(link, router, queue) for link in tree["graph"]["links"]]
    if "wireless" in tree:
        tree["wireless"] = [_cell(cell, law, queue) for cell in tree["wireless"]]
    # Messages about the new scenario then name the protocol.
    return replace(scenario, tree=tree, overrides=(), source=f"{scenario.source} with {protocol}")


def variants(scenario: Scenario, protocols: Sequence[str], *, memory: str | None = None) -> dict[str, Scenario]:
    """Returns the scenario under each protocol, by name. Raises `ScenarioError` for an empty list or duplicates."""
    if not protocols:
        raise ScenarioError("--protocols: is empty; write for example xcp,reno+red")
    repeated = next((name for index, name in enumerate(protocols) if name in protocols[:index]), None)
    if repeated is not None:
        raise ScenarioError(f'--protocols: "{repeated}" appears twice')
    return {name: variant(scenario, name, memory=memory) for name in protocols}


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
    for label, cells in _links(results, everything):
        add(label, cells)
    for cell in some.summary.get("cells", {}):
        shares = [result.summary["cells"][cell] for result in results.values()]
        add(f"{cell} busy", [text.percent(value["busy"]) for value in shares])
    for group in some.groups:
        flows = [result.groups[group] for result in results.values()]
        add(f"{group} goodput", [text.rate(value["goodput_bps"]) for value in flows])
        if everything or any(value["jain_index"] is not None for value in flows):
            add(f"{group} Jain index", [text.maybe(value["jain_index"]) for value in flows])
        if any(value["completed"] for value in flows):
            add(f"{group} completed", [str(value["completed"]) for value in flows])
            of_all = [value["fct_s"]["all"] if value["fct_s"] else None for value in flows]
            for statistic in ("mean", *PERCENTILES) if everything else FIRST:
                add(f"{group} {statistic} time", [text.seconds(one[statistic]) if one else "-" for one in of_all])
        for label, cells in _delays(group, [value.get("packet_delay_s") for value in flows], everything):
            add(label, cells)
        slowed = [value.get("fct_slowdown") for value in flows]
        if any(slowed) and text.are_many(some.links):
            for statistic in PERCENTILES:
                cells = [f"{one['all'][statistic]:.2f}" if one else "-" for one in slowed]
                add(f"{group} {statistic} slowdown", cells)
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


def _link(link: Mapping[str, Any], router: str, queue: str) -> dict[str, Any]:
    changed = {**link, "router": _keep(link.get("router", "none"), "law", router)}
    if router == "none":
        changed.pop("share", None)  # `share` needs a router law
    if queue:
        changed["queue"] = _keep(link.get("queue", "droptail"), "kind", queue)
    return changed


def _cell(cell: Mapping[str, Any], law: str, queue: str) -> dict[str, Any]:
    """Does the same for all interfaces of a cell, including stations with a router or queue of their own."""
    router = router_of(law, blind="told" not in cell)

    def station(own: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in _link(own, router, queue).items() if key in own}

    return {**_link(cell, router, queue), "stations": [station(own) for own in cell["stations"]]}


def _keep(old: str | Mapping[str, Any], tag: str, name: str) -> str | Mapping[str, Any]:
    """Returns the old table with its parameters if it already has this name, else the name alone."""
    return old if isinstance(old, Mapping) and old.get(tag) == name else name
