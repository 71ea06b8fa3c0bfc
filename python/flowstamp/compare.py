# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The same network and flows under several protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flowstamp import _flowstamp
from flowstamp.errors import FlowstampError, ScenarioError, translated
from flowstamp.scenario import Scenario, laws, router_of


def variant(scenario: Scenario, protocol: str) -> Scenario:
    """The scenario with the law of all its flows replaced.

    Routers follow: those of the protocol where it needs them, else none. `protocol` is a sender's law, or a law and
    a queue for the links as in "reno/red"; without one, queues stay. A law keeps its parameters where it was before.
    """
    law, _, queue = protocol.partition("/")
    known = laws()
    if law not in known["senders"]:
        raise ScenarioError(f'--protocols: "{law}" is no law; there are {", ".join(known["senders"])}')
    if queue and queue not in known["queues"]:
        raise ScenarioError(f'--protocols: "{queue}" is no queue; there are {", ".join(known["queues"])}')
    router = router_of(law)
    # With the overrides applied, so that what they set is replaced too.
    tree = scenario.resolved()
    tree["flows"] = [{**group, "law": _keep(group["law"], "law", law)} for group in tree["flows"]]
    for kind in ("dumbbell", "parking_lot"):
        if kind in tree:
            tree[kind] = _link(tree[kind], router, queue)
    if "graph" in tree:
        tree["graph"]["links"] = [_link(link, router, queue) for link in tree["graph"]["links"]]
    return replace(scenario, tree=tree, overrides=())


def variants(scenario: Scenario, protocols: Sequence[str]) -> dict[str, Scenario]:
    """The scenario under each of the protocols, by name."""
    if not protocols:
        raise ScenarioError("--protocols: is empty; write for example xcp,reno/red")
    repeated = next((name for index, name in enumerate(protocols) if name in protocols[:index]), None)
    if repeated is not None:
        raise ScenarioError(f'--protocols: "{repeated}" is there twice')
    return {name: variant(scenario, name) for name in protocols}


def longest(scenario: Scenario, max_duration: str) -> float:
    """Seconds that a run may be made to last: `max_duration`, a time with its unit; empty: as the scenario says."""
    if not max_duration:
        return 0.0
    try:
        with translated():
            seconds = _flowstamp.quantity("time", max_duration)
    except FlowstampError as error:
        raise ScenarioError(f"--max-duration: {error}") from None
    if not any(group.get("web") for group in scenario.tree.get("flows", ())):
        raise ScenarioError("--max-duration: is for scenarios with random flows (web), whose times have a confidence")
    return seconds


def _link(link: Mapping[str, Any], router: str, queue: str) -> dict[str, Any]:
    changed = {**link, "router": _keep(link.get("router", "none"), "law", router)}
    if router == "none":
        changed.pop("share", None)  # there is nobody left to share with
    if queue:
        changed["queue"] = _keep(link.get("queue", "droptail"), "kind", queue)
    return changed


def _keep(old: str | Mapping[str, Any], tag: str, name: str) -> str | Mapping[str, Any]:
    """The old table if it already is of that name, with its parameters; else the name alone."""
    return old if isinstance(old, Mapping) and old.get(tag) == name else name
