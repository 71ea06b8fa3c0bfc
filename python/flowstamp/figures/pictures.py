# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Draws a figure from the results of its runs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from flowstamp import plot
from flowstamp.figures import datacentre, fct
from flowstamp.figures.analytic import Computed
from flowstamp.figures.measures import MANY, Floats, RunSet, kept
from flowstamp.figures.spec import Axis, Draw, FigureSpec, PanelSpec, ends
from flowstamp.figures.tables import FigureError
from flowstamp.figures.verdicts import Given, Verdict
from flowstamp.style import COLOURS

MARKED = 100
"""Maximum points of a computed curve that is drawn with markers."""

ALSO = {
    "drops": "all_drops",
    "drop_rate": "all_drop_rate|all_drops|drops",
    "queue_packets": "max_queue_packets|mean_queue_packets|mean_queue_ms|buffer_share",
    "mean_queue_packets": "mean_queue_ms|buffer_share",
    "buffer_share": "mean_queue_packets|mean_queue_ms",
    "flow_mbps": "jain",
}
"""For the measure of a panel, further measures in claims that the panel shows as well."""


def draw(given: Given) -> Any:
    """Draws the picture of a figure."""
    spec, verdicts = given.figure, given.verdicts()
    panels = [
        plot.Panel(
            panel.ylabel,
            curves(given, panel),
            title=panel.title,
            yscale=panel.yscale,
            ylim=ends(panel.ylim),
            linthresh=panel.linthresh,
            legend=has_legend(spec.draw, n),
            axis=_axis(given, spec.draw.of(panel)),
            bounds=bounds(claims),
            corner=corner(claims, of_a_run=bool(spec.simulated)),
        )
        for n, (panel, claims) in enumerate((panel, claims_of(spec, panel, verdicts)) for panel in spec.draw.panels)
    ]
    per_figure = spec.draw.x == "figure"
    ticks = [(float(n), reuse.figure) for n, reuse in enumerate(spec.reuse)] if per_figure else []
    title = f"{spec.id}: {spec.title}"
    return plot.stack(plot.Stack(spec.draw.xlabel, panels, xticks=ticks, lines=not per_figure, title=title))


def claims_of(spec: FigureSpec, panel: PanelSpec, verdicts: Sequence[Verdict]) -> dict[Verdict, bool]:
    """Returns the verdicts on claims about the measure and the runs of a panel.

    The value says whether the claim bounds the measure itself, so that its bound can be drawn.
    """
    if not panel.runs or panel.link or spec.draw.of(panel).x == "figure":
        return {}
    runs, y, measured = "|".join(map(re.escape, panel.runs)), re.escape(panel.y), panel.group or spec.measure.group
    function = {"group_mbps": "group", "flow_mbps": "throughput"}.get(panel.y, y)
    # The panel's own group or flow, as in `normalized(ns, "tcp")`.
    about = rf"\b{function}\((?:{runs}), *['\"]{re.escape(panel.flow or measured)}['\"]"
    if measured == spec.measure.group:  # as in `rcp.afct`, `samples(rcp, "afct", ...)` and `afct(rcp, 1, 500)`
        about += rf"|\b(?:{runs})(?:\.{y}\b|, *['\"]{y}['\"])|\b{y}\((?:{runs}), *\d"
        if panel.y in ALSO and not panel.flow:  # as in `xcp.all_drops`
            about += rf"|\b(?:{runs})\.(?:{ALSO[panel.y]})\b"
        if panel.y == "flow_mbps" and not panel.flow:  # as in `throughputs(xcp, 0, 10)`
            about += rf"|\b(?:throughputs?|group|normalized)\((?:{runs})\b"
    point, time = rf"(?:{runs})\.{y}(?:\[[^][]*\])?", rf"samples\((?:{runs}), *['\"]{y}['\"], *[\d.]+, *[\d.]+\)"
    itself = re.compile(rf"(?:min|max|mean|median|first|last)\((?:{point}|{time})\)")
    return {one: bool(itself.fullmatch(one.claim.expr)) for one in verdicts if re.search(about, one.claim.expr)}


def bounds(claims: Mapping[Verdict, bool]) -> list[tuple[float, float]]:
    """Returns the bounds of a panel's claims on its measure: lines, or bands for equality within a tolerance."""
    of = [verdict.claim.bound for verdict, itself in claims.items() if itself]
    slack = {bound: bound.slack if bound.relation == "==" else 0.0 for bound in of}
    return list(dict.fromkeys((bound.value - slack[bound], bound.value + slack[bound]) for bound in of))


def corner(claims: Iterable[Verdict], *, of_a_run: bool) -> tuple[str, bool] | None:
    """Returns a summary of the verdicts on a panel's claims, and whether all hold; None without claims.

    `of_a_run` adds that they are of one run, where the mean over seeds may say something else.
    """
    held = [bool(verdict.held) for verdict in claims]
    if not held:
        return None
    text = f"{sum(held)} of {len(held)} hold"
    if len(set(held)) == 1:
        text = "holds" if held[0] else "differs"
    return f"{text} in this run" if of_a_run else text, all(held)


def _axis(given: Given, axis: Axis) -> plot.Axis:
    """Returns the x axis. A time axis ends with the longest run."""
    low, high = axis.limits
    if axis.x == "time" and high is not None:
        runs = [run for curve in given.runs.values() for run in curve.runs]
        high = min(high, max((run.summary["duration_s"] for run in runs), default=high))
    markers = axis.x not in ("time", "size", "value")
    if axis.x == "curve":
        computed = given.computed.values()
        markers = all(one.values[axis.along].size <= MARKED for one in computed if axis.along in one.values)
    return plot.Axis(axis.xlabel, axis.xscale, (low, high), markers, axis.xticks)


def curves(given: Given, panel: PanelSpec) -> list[plot.Curve]:
    """Returns a panel's curves: its runs, formulas, and published values."""
    spec = given.figure
    if spec.draw.of(panel).x == "figure":
        means = [_per_figure(given, panel.y, n, name) for n, name in enumerate(panel.runs)]
        return means + _published(spec, panel, means)
    found: list[plot.Curve] = []
    for name, style in styles(spec, panel).items():
        label = next(run.label for run in spec.runs if run.name == name)
        if name in given.computed:
            found.append(_computed(spec, panel, given.computed[name], label, style))
        else:
            found += _simulated(spec, panel, given.runs[name], label, style)
    found += _references(given, panel, len(spec.runs))
    return found + _published(spec, panel, found)


def _computed(spec: FigureSpec, panel: PanelSpec, computed: Computed, label: str, style: int) -> plot.Curve:
    against = spec.draw.of(panel)
    along = {"curve": against.along, "time": "time_s"}.get(against.x or "")
    x = computed.measure(along) if along else np.array(spec.x())
    return plot.Curve(label, x, computed.measure(panel.y), style)


def _simulated(spec: FigureSpec, panel: PanelSpec, runs: RunSet, label: str, style: int) -> Iterator[plot.Curve]:
    runs = _seen(spec, panel, runs)
    match spec.draw.of(panel).x:
        case "time" if panel.y in MANY:
            yield from _of_flows(spec, panel, runs, label, style)
        case "time":
            yield plot.Curve(label, *_averaged(panel, *runs.over_time(panel.y)), style)
        case "rtt":
            yield plot.Curve(label, *runs.by_rtt(panel.y, panel.group, panel.point), style)
        case "value":
            yield plot.Curve(label, *density(spec, runs, panel), style)
        case "size" if panel.y in datacentre.MEASURES:
            one = runs.runs[panel.point]
            yield plot.Curve(label, *datacentre.slowdown_by_size(one, runs.group, panel.y.partition("_")[0]), style)
        case "size":
            found = fct.bins(runs.runs[panel.point], runs.group, references=())
            sizes = np.array([b.mean_packets for b in found])
            longest = panel.y == "max_fct"
            times = np.array([b.max_s if longest else b.mean_s for b in found])
            widths = None if longest else np.array([b.half_width_s for b in found])
            yield plot.Curve(label, sizes, times, style, widths)
        case "flow":
            y = runs.measure(panel.y)
            # Panels with different runs number their styles separately.
            number = panel.runs.index(runs.name)
            yield plot.Curve(label, np.arange(1.0, y.size + 1), y, number, _half(spec, panel, runs, y.size))
        case against:
            y, x = runs.measure(panel.y), np.array(spec.x())
            if against == "vary":  # points with the same x, which differ by their seed, are averaged
                x, which = np.unique(x, return_inverse=True)
                y = np.bincount(which, y) / np.bincount(which)
                y = y / x if panel.per_x else y
            half = _half(spec, panel, runs, x.size)
            if half is not None and against == "vary":
                half = half[np.argsort(spec.x())]
                half = half / x if panel.per_x else half
            yield plot.Curve(label, x, y, style, half)


def _half(spec: FigureSpec, panel: PanelSpec, runs: RunSet, points: int) -> Floats | None:
    """Returns the half width of each point's interval; None with one seed, or if seeds are separate points."""
    if spec.seeds == 1:
        return None
    half = runs.half_widths(panel.y)
    return None if spec.draw.of(panel).x == "vary" and points < half.size else half


def _of_flows(spec: FigureSpec, panel: PanelSpec, runs: RunSet, label: str, style: int) -> Iterator[plot.Curve]:
    """Yields a curve over time for each flow or group."""
    flows = runs.many_over_time(panel.y)
    if panel.flow and panel.flow not in flows:
        known = ", ".join(flows) or "none: set probes.flows"
        raise FigureError(f'{spec.path}: draw.panels: flow "{panel.flow}" was not probed; there are {known}')
    several = len(panel.runs) > 1
    kinds = list(dict.fromkeys(map(_flow_label, flows)))
    for flow, (t, v) in flows.items():
        if panel.flow in ("", flow):
            kind = _flow_label(flow)
            named = kind if not several else label if panel.flow else f"{label}: {kind}"
            yield plot.Curve(named, *_averaged(panel, t, v), style if several else kinds.index(kind))


def _averaged(panel: PanelSpec, t: Floats, v: Floats) -> tuple[Floats, Floats]:
    return plot.averaged(t, v, panel.average_s) if panel.average_s else (t, v)


def _seen(spec: FigureSpec, panel: PanelSpec, runs: RunSet) -> RunSet:
    """Returns the runs that a panel shows, with its group, link and point."""
    if panel.group and spec.draw.of(panel).x != "rtt":
        runs = runs.of(panel.group)
    if panel.link:
        runs = runs.on(panel.link)
    return runs.at(panel.point) if spec.draw.of(panel).x in ("time", "value") else runs


def density(spec: FigureSpec, runs: RunSet, panel: PanelSpec) -> tuple[Floats, Floats]:
    """Returns the density of all flows' samples after warm-up: centres of 80 bins on the x axis, and share per unit."""
    summary = runs.runs[0].summary
    values = runs.flow_samples_of_all(panel.y, summary["warmup_s"], summary["duration_s"])
    if not values.size:
        raise FigureError(f"{spec.path}: draw.panels: {runs.name} has no samples of {panel.y} after warm-up")
    low, high = spec.draw.of(panel).limits
    within = (np.min(values) if low is None else low, np.max(values) if high is None else high)
    density, edges = np.histogram(values, 80, within)
    return (edges[1:] + edges[:-1]) / 2, density / (values.size * (edges[1] - edges[0]))


def _references(given: Given, panel: PanelSpec, style: int) -> list[plot.Curve]:
    """Returns curves of the panel's formulas, for the first run that it shows."""
    found: list[plot.Curve] = []
    if not panel.references:
        return found
    spec = given.figure
    runs = _seen(spec, panel, given.runs[panel.runs[0]])
    for number, name in enumerate(panel.references):
        ideal = runs.runs[panel.point if len(runs.runs) > panel.point else 0].ideal(runs.group)
        if ideal is None:
            continue
        against = spec.draw.of(panel)
        if against.x == "size":
            bins = fct.bins(runs.runs[panel.point], runs.group, references=(name,))
            x = np.array([b.mean_packets for b in bins])
            y = np.array([b.ideal_s[name] for b in bins])
        elif against.x == "rtt":
            x, y = runs.by_rtt(f"afct_{name}", panel.group, panel.point)
        elif against.x == "time":  # Little's law
            x, _ = runs.over_time("utilization")
            mean = np.array([ideal.mean_packets])
            arrivals = ideal.load * ideal.capacity / ideal.mean_packets
            y = np.full(x.size, arrivals * float(ideal.curve(name, mean)[0]))
        else:
            part = panel.y.removeprefix("afct")
            x = np.array(spec.x())
            y = runs.measure(f"{name}{part}" if part else f"afct_{name}")
        found.append(plot.Curve(fct.REFERENCES[name], x, y, style + number))
    return found


def _per_figure(given: Given, y: str, style: int, name: str) -> plot.Curve:
    means: dict[str, list[float]] = {}
    parts = given.parts[name]
    for part in parts:
        means.setdefault(part.figure.id, []).extend(kept(part.runs.measure(y), part.points))
    # A figure without such a run gives NaN, which is not drawn.
    values = np.array([float(np.mean(means.get(reuse.figure, [math.nan]))) for reuse in given.figure.reuse])
    return plot.Curve(parts[0].run.label, np.arange(float(values.size)), values, style)


def styles(spec: FigureSpec, panel: PanelSpec) -> dict[str, int]:
    """Returns the style number of each run in a panel, which selects its colour, line and marker.

    A run has the same style in all panels, unless two runs of a panel with few runs would share a colour.
    """
    names = [run.name for run in spec.runs]
    like = {run.name: run.like or run.name for run in spec.runs}
    styles = {name: names.index(like.get(name, name)) for name in panel.runs}
    colours = len(COLOURS)
    if len(styles) > colours:
        return styles
    free = [colour for colour in range(colours) if all(style % colours != colour for style in styles.values())]
    taken: set[int] = set()
    for name, style in styles.items():
        if style % colours in taken:
            styles[name] = colours + free.pop(0)
        taken.add(style % colours)
    return styles


def _published(spec: FigureSpec, panel: PanelSpec, curves: Sequence[plot.Curve]) -> list[plot.Curve]:
    """Returns published values as curves, in the colour of the curve that they are about, else in black.

    Values given as multiples of a curve are multiplied by it, with logarithmic interpolation; NaN beyond its ends.
    """
    names = {run.name: run.label for run in spec.runs} | fct.REFERENCES
    shown = {curve.label: curve for curve in curves}
    marks: list[plot.Curve] = []
    others = 0  # marks of no curve
    for p in panel.published:
        x, y = np.array(p.x), np.array(p.y)
        if p.times:
            if names.get(p.times) not in shown:
                continue  # the short version omits this run
            of = shown[names[p.times]]
            y = y * np.exp(np.interp(np.log(x), np.log(of.x), np.log(of.y), left=np.nan, right=np.nan))
        # "paper, VCP: below 20%" has the colour of the curve "VCP", and "paper: XCP" that of "XCP".
        about = shown.get(re.sub(r"^(?:paper|thesis)[,:] ", "", p.label).partition(":")[0])
        style = others if about is None else about.style + 1
        others += about is None
        marks.append(plot.Curve(p.label, x, y, style, published=not p.computed, computed=p.computed))
    return marks


def has_legend(draw: Draw, number: int) -> bool:
    """Whether a panel has a legend: over time if it has several curves, else if they differ from those above.

    Formulas count as curves, because their colours follow their order.
    """
    panel, above = draw.panels[number], draw.panels[number - 1]
    marks, marks_above = ([mark.label for mark in one.published] for one in (panel, above))
    if marks and not (number > 0 and panel.runs == above.runs and marks == marks_above[: len(marks)]):
        return True
    if draw.of(panel).x == "time":
        return panel.y in MANY or len(panel.runs) + len(panel.references) > 1
    told = number > 0 and panel.runs == above.runs
    return not told or panel.references != above.references[: len(panel.references)]


def _flow_label(name: str) -> str:
    """Returns the label of a flow, `group.index`, or of a group."""
    group, _, index = name.partition(".")
    if index and group in ("flows", "forward"):
        return f"flow {int(index) + 1}"
    words = group.replace("_", " ").replace("rtt", "RTT")
    return re.sub(r"\b(?:tcp|udp|[prvx]cp)\b", lambda law: law[0].upper(), words)
