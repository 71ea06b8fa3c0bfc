# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Draws a scenario's network: nodes, links, and an arrow for each group of flows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flowstamp.errors import ScenarioError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flowstamp.scenario import Scenario

MOST_NODES = 150  # larger networks are unreadable at this size
MOST_NAMED = 24
MOST_GROUPS = 7  # number of colours


@dataclass
class Network:
    """Positions of nodes, and the links between them."""

    at: dict[str, tuple[float, float]] = field(default_factory=dict)
    links: dict[tuple[str, str], str] = field(default_factory=dict)
    """Labels of links by their two ends."""
    ends: tuple[str, str] | None = None
    """First and last node of a chain of links: the default ends of flows."""

    def row(self, names: Sequence[str], y: float, width: float) -> None:
        """Places nodes side by side at height `y`."""
        for n, name in enumerate(names):
            self.at[name] = (width * (n + 0.5) / len(names), y)

    def circle(self, names: Sequence[str]) -> None:
        """Places nodes clockwise around an ellipse, the first one at the left."""
        for n, name in enumerate(names):
            turn = math.pi - 2 * math.pi * n / len(names)
            self.at[name] = (2.2 * math.cos(turn), 1.2 * math.sin(turn))


def scenario(shown: Scenario) -> Figure:
    """Draws a scenario's network and its groups of flows. Raises `ScenarioError` above `MOST_NODES` nodes."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from flowstamp.style import COLUMN_WIDTH_IN, STYLE

    # The duration may be given only to `run`; the drawing does not depend on it.
    resolved = (shown if "duration" in shown.tree else shown.configure(duration="1s")).resolved()
    network = _network(resolved)
    if not 0 < len(network.at) <= MOST_NODES:
        raise ScenarioError(f"{shown.source}: has {len(network.at)} nodes; {MOST_NODES} can be drawn")
    with rc_context(STYLE):
        chain = network.ends is not None
        rows = -(-min(len(resolved["flows"]), MOST_GROUPS + 1) // 2)
        height, below = 1.3 if chain else 2.2, 0.1 + 0.16 * rows
        figure = Figure(figsize=(COLUMN_WIDTH_IN, height + below))
        FigureCanvasAgg(figure)
        ax: Axes = figure.add_axes((0.0, below / (height + below), 1.0, height / (height + below)))
        ax.set_axis_off()
        named = len(network.at) <= MOST_NAMED
        for (one, other), label in network.links.items():
            (x0, y0), (x1, y1) = network.at[one], network.at[other]
            ax.plot([x0, x1], [y0, y1], color="0.6", linewidth=1.5 if named else 0.4, zorder=1, marker="")
            if label and named:
                white = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
                ax.text((x0 + x1) / 2, (y0 + y1) / 2, label, fontsize=6, ha="center", va="center", bbox=white, zorder=2)
        for name, (x, y) in network.at.items():
            box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": "black", "linewidth": 0.8}
            if named:
                ax.text(x, y, name, fontsize=7, ha="center", va="center", bbox=box, zorder=4)
            else:
                ax.plot([x], [y], color="black", marker="o", markersize=2, zorder=4)
        _flows(ax, network, resolved["flows"])
        ax.margins(0.12, 0.15)
        return figure


def _flows(ax: Axes, network: Network, groups: Sequence[Mapping[str, Any]]) -> None:
    """Draws an arrow for each group between two nodes; the legend below names all groups."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import FancyArrowPatch

    from flowstamp.style import COLOURS

    handles = []
    for number, group in enumerate(groups[:MOST_GROUPS]):
        colour = COLOURS[number]
        handles.append(Line2D([], [], color=colour, marker="", label=_label(group)))
        names = list(network.at)
        ways = [(group.get("from"), group.get("to"))]
        if network.ends is not None:
            first = group.get("from") or network.ends[0]
            ways = [(first, group.get("to") or network.ends[1])]
            if group.get("each_hop"):
                ways = [(names[n], names[n + 1]) for n in range(len(names) - 1)]
        for start, end in ways:
            if start not in network.at or end not in network.at:
                continue  # a pattern or a list names the hosts
            path = (
                (network.at[end], network.at[start]) if group.get("reverse") else (network.at[start], network.at[end])
            )
            bend = -0.12 - 0.05 * number - (0.2 if len(ways) > 1 else 0.0)  # reverse arrows bend to the other side
            ax.add_patch(
                FancyArrowPatch(
                    *path,
                    arrowstyle="-|>",
                    connectionstyle=f"arc3,rad={bend}",
                    mutation_scale=8.0,
                    color=colour,
                    linewidth=1.2,
                    shrinkA=9,
                    shrinkB=9,
                    clip_on=False,
                )
            )
    if len(groups) > MOST_GROUPS:
        handles.append(Line2D([], [], linestyle="", marker="", label=f"and {len(groups) - MOST_GROUPS} groups more"))
    ax.figure.legend(handles=handles, loc="lower center", ncols=2, fontsize=6, borderaxespad=0.3)


def _label(group: Mapping[str, Any]) -> str:
    law = group["law"]["law"] if isinstance(group["law"], Mapping) else group["law"]
    if group.get("web"):
        return f"{group['name']}: {law}, at random"
    if group.get("list"):
        return f"{group['name']}: {law}, of a list"
    count = group.get("count") or 1
    return f"{group['name']}: {law}" if count == 1 else f"{group['name']}: {count} {law}"


def _rate(link: Mapping[str, Any]) -> str:
    rate = link.get("rate")
    return rate if isinstance(rate, str) else "varies"


def _network(resolved: Mapping[str, Any]) -> Network:
    network = Network()
    if "dumbbell" in resolved:
        link = resolved["dumbbell"]
        _chain(network, ["n0", "n1"], [f"{_rate(link)}, RTT {link['rtt']}" if "rtt" in link else _rate(link)])
    elif "parking_lot" in resolved:
        rates = [rate if isinstance(rate, str) else "varies" for rate in resolved["parking_lot"]["rates"]]
        _chain(network, [f"n{n}" for n in range(len(rates) + 1)], rates)
    elif "leaf_spine" in resolved:
        _leaf_spine(network, resolved["leaf_spine"])
    elif "fat_tree" in resolved:
        _fat_tree(network, resolved["fat_tree"])
    else:
        _graph(network, resolved)
    return network


def _chain(network: Network, names: Sequence[str], labels: Sequence[str]) -> None:
    for n, name in enumerate(names):
        network.at[name] = (2.0 * n, 0.0)
    for n, label in enumerate(labels):
        network.links[names[n], names[n + 1]] = label
    network.ends = (names[0], names[-1])


def _leaf_spine(network: Network, of: Mapping[str, Any]) -> None:
    leaves, spines, hosts = (of[key] for key in ("leaves", "spines", "hosts"))
    if leaves * (hosts + 1) + spines > MOST_NODES:
        hosts = 0
    network.row([f"spine{n}" for n in range(spines)], 2.0, 4.0)
    network.row([f"leaf{n}" for n in range(leaves)], 1.0, 4.0)
    network.row([f"h{n}" for n in range(leaves * hosts)], 0.0, 4.0)
    for leaf in range(leaves):
        network.links |= {(f"leaf{leaf}", f"spine{n}"): "" for n in range(spines)}
        network.links |= {(f"h{n}", f"leaf{leaf}"): "" for n in range(leaf * hosts, (leaf + 1) * hosts)}


def _fat_tree(network: Network, of: Mapping[str, Any]) -> None:
    k = of["k"]
    half = k // 2
    at_edge = round((of.get("oversubscription") or 1) * half)
    hosts = k * half * at_edge
    network.row([f"core{n}" for n in range(half * half)], 3.0, 4.0)
    for stage, y in (("agg", 2.0), ("edge", 1.0)):
        network.row([f"pod{pod}-{stage}{n}" for pod in range(k) for n in range(half)], y, 4.0)
    for pod in range(k):
        for n in range(half):
            upper, lower = f"pod{pod}-agg{n}", f"pod{pod}-edge{n}"
            network.links |= {(upper, f"core{n * half + m}"): "" for m in range(half)}
            network.links |= {(lower, f"pod{pod}-agg{m}"): "" for m in range(half)}
    if len(network.at) + hosts <= MOST_NODES:
        network.row([f"h{n}" for n in range(hosts)], 0.0, 4.0)
        edges = [f"pod{pod}-edge{n}" for pod in range(k) for n in range(half)]
        network.links |= {(f"h{n}", edges[n // at_edge]): "" for n in range(hosts)}


def _graph(network: Network, resolved: Mapping[str, Any]) -> None:
    links = resolved.get("graph", {}).get("links", [])
    names = dict.fromkeys(link[end] for link in links for end in ("from", "to"))
    radio: dict[tuple[str, str], str] = {}
    for cell in resolved.get("wireless", []):
        stations = [station["name"] for station in cell["stations"]]
        centre = cell.get("access_point") or f"({cell['name']})"
        names |= dict.fromkeys([centre, *stations])
        radio |= {(centre, station): cell["name"] for station in stations}
    network.circle(list(names))
    for link in links:
        ends = (link["from"], link["to"])
        if ends[::-1] in network.links:
            network.links[ends[::-1]] += f" / {_rate(link)}"
        else:
            network.links[ends] = _rate(link)
    network.links |= radio
