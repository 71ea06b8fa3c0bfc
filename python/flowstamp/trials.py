# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Repeated runs of a lab under several protocols, for `flowstamp compare` with a lab's file.

Protocols alternate, so that other load on the machine affects all of them equally. A run that is invalid because the
machine was busy is repeated at most twice. If it is still invalid, the statistics exclude it.

A protocol is a law of TCP, or `quic-` and a law of QUIC: the flows then use HTTP/3 by `flowstamp quic`. Videos always
use QUIC.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flowstamp import lab
from flowstamp.errors import FlowstampError, ScenarioError, UsageError
from flowstamp.names import nearest
from flowstamp.paired import percentile
from flowstamp.scenario import laws, router_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRIES = 3
MOST_BYTES = 1 << 20
"""Maximum size of a lab's file in bytes; larger files are scenarios."""

OVER_QUIC = "quic-"
"""Prefix of protocols whose flows use QUIC."""
QUIC_APPS = ("h3", "video")
"""Applications that use QUIC."""

Say = Callable[[str], None]
Tree = dict[str, Any]


def is_lab(file: Path) -> bool:
    """Whether this is a lab's file, which has a table `path`; scenarios have none."""
    try:
        if not file.is_file() or file.stat().st_size > MOST_BYTES:
            return False
        return isinstance(tomllib.loads(file.read_text(encoding="utf-8-sig")).get("path"), dict)
    except (OSError, ValueError, RecursionError):
        return False  # the scenario loader reports the error


def check(protocols: Sequence[str]) -> None:
    """Raises `UsageError` for an unknown or repeated protocol. The lab rejects laws that the kernel lacks."""
    for name in protocols:
        if not _hosts_law(name):
            known = laws()
            there = dict.fromkeys([*known["senders"], *filter(_hosts_law, known["routers"])])
            prefix = OVER_QUIC if name.startswith(OVER_QUIC) else ""
            there = dict.fromkeys(prefix + law for law in there)
            raise UsageError(f"--protocols: {nearest(name, there, 'is not a protocol')}")
    twice = next((name for name in protocols if protocols.count(name) > 1), None)
    if twice:
        raise UsageError(f'--protocols: "{twice}" appears twice')


def _hosts_law(protocol: str) -> str:
    """Returns the hosts' law for a protocol: the protocol itself if it is a sender's law.

    For a router law, it is the first sender law whose default router this is when the capacity is unknown. Empty for
    "none" and for unknown protocols.
    """
    protocol = protocol.removeprefix(OVER_QUIC)
    senders = laws()["senders"]
    if protocol in senders or protocol == "none":
        return protocol.removeprefix("none")
    return next((sender for sender in senders if router_of(sender, blind=True) == protocol), "")


def variant(tree: Tree, protocol: str, folder: Path) -> Tree:
    """Returns the lab with all hosts and flows under the protocol's law, and the router under its router law or none.

    The router keeps its parameters if its law stays, and its throughput advice always. Under a protocol over QUIC, all
    flows use HTTP/3, and videos stay videos. Relative paths in the lab refer to `folder`.

    Raises:
        UsageError: The flows use QUIC and the protocol does not, or they have a key that QUIC does not support.
    """
    router = dict(tree.get("router", {}))
    place = {"where": router.get("where", "bpf")} | {key: router[key] for key in ("scone",) if key in router}
    law = protocol.removeprefix(OVER_QUIC)
    law = law if law in laws()["routers"] else "none"
    new: Tree = json.loads(json.dumps(tree))
    new["router"] = router if router.get("law") == law else {"law": law} | place
    new["host"] = dict(tree.get("host", {})) | {"law": _hosts_law(protocol)}
    if law == "none":
        new["host"].pop("any_rtt", None)
    for flows in new.get("flows", ()):
        _set_application(flows, protocol)
    for key in ("rate", "reverse_rate"):
        rate = new["path"].get(key)
        if isinstance(rate, dict) and isinstance(rate.get("trace"), str):
            rate["trace"] = str((folder / rate["trace"]).resolve())
    return new


def _set_application(flows: Tree, protocol: str) -> None:
    """Moves a group of flows to the protocol's transport, or raises `UsageError` if it cannot go there."""
    flows.pop("law", None)
    app = flows.get("app", "iperf3")
    group = f"flows.{flows.get('name')}"
    if not protocol.startswith(OVER_QUIC):
        if app in QUIC_APPS:
            instead = f'use "{OVER_QUIC}{protocol}"'
            raise UsageError(f'--protocols: "{protocol}" is TCP, and app = "{app}" of {group} is QUIC; {instead}')
        return
    if "pace" in flows or flows.get("hears", "all") != "all":
        key = "pace" if "pace" in flows else "hears"
        raise UsageError(f'{group}: "{protocol}" is QUIC, which has no {key}; leave out {key}, or compare TCP')
    if app not in QUIC_APPS:
        flows["app"] = "h3"


def _variant_file(tree: Tree, protocol: str, file: Path, folder: Path) -> Path:
    """Writes the lab under a protocol into `folder`. Raises `ScenarioError` now if the kernel lacks the law."""
    one = folder / f"{protocol}.toml"
    one.write_text(lab.toml_of(variant(tree, protocol, file.parent)), encoding="utf-8")
    try:
        lab.check(one)
    except ScenarioError as error:
        said = re.sub(r": line \d+", "", str(error).replace(str(one), f"{file} with {protocol}"))
        raise ScenarioError(said) from None
    return one


def run(
    file: Path,
    protocols: Sequence[str],
    out: Path,
    *,
    trials: int,
    seed: int | None = None,
    lab_id: str = "lab",
    say: Say = lambda _: None,
) -> dict[str, list[Tree]]:
    """Runs the lab `trials` times under each protocol and returns a row per trial, by protocol.

    The runs' folders are PROTOCOL/1, ... in `out`. Each further trial adds 1 to the seed, whose default is the file's.
    """
    check(protocols)
    lab.check(file)  # raises an error if the file itself is invalid
    tree = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    first = seed if seed is not None else tree.get("seed", 1)
    rows: dict[str, list[Tree]] = {name: [] for name in protocols}
    with tempfile.TemporaryDirectory() as temporary:
        variants = {name: _variant_file(tree, name, file, Path(temporary)) for name in protocols}
        for trial in range(trials):
            for name, one in variants.items():
                for again in range(TRIES):
                    say(f"{name}, trial {trial + 1} of {trials}" + (", again" if again else ""))
                    try:
                        measured = lab.run(one, out / name / str(trial + 1), seed=first + trial, lab_id=lab_id)
                    except FlowstampError as error:
                        raise type(error)(f"{file}: {name}: {error}") from None
                    if not measured.invalid:
                        break
                    say(f"{name}: invalid: {measured.invalid}")
                rows[name].append(row(measured.results.summary))
    return rows


def row(summary: Mapping[str, Any]) -> Tree:
    """Returns the results of one run.

    Download times are those of curl and of `flowstamp quic`: from before the connection to the last byte.
    """
    link = summary["links"][lab.BOTTLENECK]
    pages: dict[str, list[float]] = {}
    for application in summary["applications"]:
        done = application["app"] in {"http", "h3"} and application["response_code"] == 200
        # An endless flow over QUIC is a download that never ends.
        if done and application["time_total_s"] is not None:
            pages.setdefault(application["flow"].rpartition(".")[0], []).append(application["time_total_s"])
    hosts = summary["hosts"]["groups"] or {}
    return {
        "invalid": summary["invalid"],
        "utilization": link["utilization"],
        "mean_queue_bytes": link["mean_queue_bytes"],
        "drops": link["drops"],
        "left": sum(len(group["left"]) for group in hosts.values()),
        "page_s": {name: sorted(times) for name, times in pages.items()},
        "groups": {
            name: {key: group[key] for key in ("flows", "goodput_bps", "jain_index", "retransmissions")}
            for name, group in summary["groups"].items()
        },
    }


def _within(group: str, share: float, one: Tree) -> float:
    return percentile(one["page_s"].get(group, ()), share)


def _done(group: str, one: Tree) -> float:
    return len(one["page_s"].get(group, ()))


def _goodput(group: str, one: Tree) -> float:
    return float(one["groups"][group]["goodput_bps"]) / 1e6


def table(rows: Mapping[str, Sequence[Tree]]) -> str:
    """Formats the median over each protocol's valid trials, with the lowest and the highest in brackets."""
    from flowstamp import text

    valid = {name: [one for one in trials if not one["invalid"]] for name, trials in rows.items()}
    some = next(iter(rows.values()))[0]
    lines: list[list[str]] = []

    def add(title: str, value: Callable[[Tree], float], digits: int = 0) -> None:
        cells = []
        for trials in valid.values():
            found = [number for number in map(value, trials) if not math.isnan(number)]
            if not found:
                cells.append("-")
                continue
            low, middle, high = (f"{of(found):.{digits}f}" for of in (min, statistics.median, max))
            cells.append(middle if low == high else f"{middle} ({low} to {high})")
        lines.append([title, *cells])

    for group in some["groups"]:
        if any(group in one["page_s"] for trials in rows.values() for one in trials):
            for title, share in (("half of them within, s", 0.5), ("95% of them within, s", 0.95)):
                add(f"{group}: {title}", partial(_within, group, share), 2)
            add(f"{group}: done", partial(_done, group))
        else:
            add(f"{group}: goodput, Mb/s", partial(_goodput, group), 1)
    add("utilisation, %", lambda one: 100 * one["utilization"], 1)
    add("mean queue, kB", lambda one: one["mean_queue_bytes"] / 1e3, 1)
    add("drops", lambda one: one["drops"])
    lines.append(["left their law", *(str(sum(one["left"] for one in trials)) for trials in valid.values())])
    lines.append(["valid trials", *(f"{len(valid[name])} of {len(rows[name])}" for name in rows)])
    return text.table(["", *rows], lines)


def draw(rows: Mapping[str, Sequence[Tree]]) -> Figure | None:
    """Draws the distribution of download times over all valid trials. Returns None if there are no downloads."""
    from flowstamp import plot

    some = next(iter(rows.values()))[0]
    panels = []
    for group in some["groups"]:
        curves = []
        for style, (name, trials) in enumerate(rows.items()):
            times = np.sort([t for one in trials if not one["invalid"] for t in one["page_s"].get(group, ())])
            if times.size:
                share = np.arange(1, times.size + 1) / times.size
                curves.append(plot.Curve(name, times, share, style))
        if curves:
            title = f"Download times of {group}"
            panels.append(plot.Panel("Share", curves, title=title, ylim=(0, 1.02), legend=True))
    return plot.stack(plot.Stack("Time of a download (s)", panels, xlim=(0, None), markers=False)) if panels else None


def exit_code(rows: Mapping[str, Sequence[Tree]]) -> int:
    """Returns 3 if a protocol has no valid trial, else 0."""
    busy = any(all(one["invalid"] for one in trials) for trials in rows.values())
    return lab.EXIT_INVALID if busy else 0
