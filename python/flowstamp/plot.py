# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Pictures of runs and of the papers' figures, in the style of `flowstamp.style`.

Drawing needs no TeX and no window system. Files contain no dates: the same numbers give the same bytes.
"""

from __future__ import annotations

import json
import os
import tempfile
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from numpy.typing import NDArray

from flowstamp.errors import FlowstampError
from flowstamp.style import (
    COLOURS,
    COLUMN_WIDTH_IN,
    LEGEND_ROW_PT,
    LEGEND_SPACING,
    LINES,
    MARKERS,
    MOST_ENTRIES,
    PANEL_HEIGHT_IN,
    PUBLISHED,
    PUBLISHED_COLOURS,
    ROW_CHARACTERS,
    STYLE,
    TITLE_CHARACTERS,
    in_lines,
    legend_columns,
    plain,
    powers,
    short,
)

Floats = NDArray[np.float64]
Scale = Literal["linear", "log", "symlog"]


class PlotError(FlowstampError):
    """A picture could not be drawn or written."""


@dataclass(frozen=True)
class Curve:
    """One line of a panel. `style` selects colour, marker and line; the same item has the same style in all panels."""

    label: str
    x: Floats
    y: Floats
    style: int = 0
    half: Floats | None = None  # half width of each value's confidence interval
    published: bool = False  # published values: open stars above all curves
    computed: bool = False  # values that follow from a formula: short grey lines
    thin: bool = False  # one of many: a thin line


@dataclass(frozen=True)
class Axis:
    """The x axis of a panel."""

    label: str
    scale: Scale = "linear"
    limits: tuple[float | None, float | None] = (None, None)
    markers: bool = True  # False: lines only, for many samples over time
    names: Sequence[str] = ()  # labels of the ticks at 1, 2, ...


@dataclass(frozen=True)
class Panel:
    """One pair of axes of a stack."""

    ylabel: str
    curves: Sequence[Curve]
    title: str = ""
    yscale: Scale = "linear"
    ylim: tuple[float | None, float | None] = (None, None)
    linthresh: float = 1.0  # for symlog: the scale is linear within plus or minus this value, so that it includes zero
    legend: bool | None = None  # default: only in the first panel
    axis: Axis | None = None  # the panel's own x axis, if it does not share the stack's
    bounds: Sequence[tuple[float, float]] = ()  # bounds of claims: lines, or bands between two values
    corner: tuple[str, bool] | None = None  # the verdicts on the panel's claims, and whether all hold


@dataclass(frozen=True)
class Stack:
    """Panels in a column with a shared x axis, as in the papers."""

    xlabel: str
    panels: Sequence[Panel]
    xscale: Scale = "linear"
    xlim: tuple[float | None, float | None] = (None, None)
    xticks: Sequence[tuple[float, str]] = ()
    lines: bool = True  # False: markers only, for unordered items
    markers: bool = True  # False: lines only, for many samples over time
    vertical: Sequence[float] = field(default=())  # x values of thin vertical lines
    title: str = ""
    panel_height_in: float = PANEL_HEIGHT_IN


SHORT_WORD = 9
"""Most characters of a word that may not be alone in the last line of a title."""


def title_lines(title: str) -> list[str]:
    """Divides a title into as few lines as possible, the last of which is not a single short word."""
    lines = textwrap.wrap(title, TITLE_CHARACTERS)
    for width in range(TITLE_CHARACTERS, TITLE_CHARACTERS // 2, -1):
        narrower = textwrap.wrap(title, width)
        if len(narrower) == len(lines) and all(len(line) > SHORT_WORD for line in narrower[-1:]):
            return narrower
    return lines


def blank(height_in: float, title: str = "") -> Figure:
    """Returns an empty picture of a column's width, with a bold title above its `height_in`."""
    lines = title_lines(title)
    figure = Figure(figsize=(COLUMN_WIDTH_IN, height_in + 0.14 * len(lines)), layout="constrained")
    FigureCanvasAgg(figure)
    if lines:
        figure.suptitle("\n".join(lines), x=0.01, ha="left")
    return figure


def stack(spec: Stack) -> Figure:
    """Draws panels in a column."""
    with mpl.rc_context(STYLE):
        shared = Axis(spec.xlabel, spec.xscale, spec.xlim, spec.markers)
        # Adjacent panels with the same x axis are labelled once, below the last of them.
        against = [panel.axis or shared for panel in spec.panels]
        ends = [n for n, axis in enumerate(against) if axis not in against[n + 1 : n + 2]]
        legends = [number == 0 if panel.legend is None else panel.legend for number, panel in enumerate(spec.panels)]
        # A panel has room for one row above it. More rows make the picture higher and not the axes lower.
        rows = sum(max(0, _rows(panel) - 1) for panel, has in zip(spec.panels, legends, strict=True) if has)
        height = spec.panel_height_in * len(spec.panels) + rows * LEGEND_ROW_PT / 72.0
        figure = blank(height + 0.45 + 0.1 * len(ends), spec.title)
        axes: list[Axes] = list(np.atleast_1d(figure.subplots(len(spec.panels), 1)))
        named: set[str] = set()
        for panel, ax, axis, legend in zip(spec.panels, axes, against, legends, strict=True):
            own = _named(panel.curves)
            # Without a legend, many curves have the colours that the legend above names.
            several = len({curve.label for curve in panel.curves}) > MOST_ENTRIES
            named = own if legend or not several else own & named
            _panel(ax, panel, spec, axis, named, legend=legend)
        for number, (axis, last) in enumerate(zip(against, axes, strict=True)):
            if number not in ends:
                last.sharex(axes[next(end for end in ends if end > number)])
                last.tick_params(labelbottom=False)
                continue
            last.set_xlabel(axis.label)
            if axis.scale != "linear":
                last.set_xscale(axis.scale)
                last.xaxis.set_major_locator(powers(*last.get_xlim()))
                last.xaxis.set_major_formatter(FuncFormatter(plain))
                last.xaxis.set_minor_formatter(NullFormatter())
            last.set_xlim(*axis.limits)
            ticks = spec.xticks or list(enumerate(axis.names, 1))
            if ticks:
                last.set_xticks([x for x, _ in ticks], [label for _, label in ticks])
        return figure


def _panel(ax: Axes, panel: Panel, spec: Stack, axis: Axis, named: Collection[str], *, legend: bool) -> None:
    for instant in spec.vertical:
        ax.axvline(instant, color="#999999", linewidth=0.5, zorder=0.5)
    _bounds(ax, panel)
    labels: dict[str, None] = {}
    clipped = panel.yscale == "linear" and panel.ylim != (None, None) and not axis.markers
    for curve in panel.curves:
        # Curves with the same label share a legend entry. All curves without room in the legend share one, too.
        entry = curve.label if curve.label in named else "others"
        label = None if entry in labels else entry
        labels[entry] = None
        if curve.published:
            _published(ax, curve, axis, label)
        elif curve.computed:
            ax.plot(curve.x, curve.y, "_", label=label, color="#777777", markersize=7.0, zorder=4, clip_on=False)
        else:
            colour = COLOURS[curve.style % len(COLOURS)] if curve.label in named else "#bbbbbb"
            _curve(ax, curve, label, colour, line=spec.lines, markers=axis.markers, clipped=clipped)
    columns = legend_columns(list(labels))
    if panel.title:
        beside = not legend or _beside(panel, list(labels))
        ax.set_title(panel.title, loc="left", pad=4.0 + (0.0 if beside else LEGEND_ROW_PT * -(-len(labels) // columns)))
    _y_axis(ax, panel, spec.panel_height_in * 72.0 - LEGEND_ROW_PT)
    if legend:
        # The legend is above the axes, so that it never covers a curve.
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=columns, **LEGEND_SPACING)


def _beside(panel: Panel, labels: Sequence[str]) -> bool:
    """Whether a panel's title is beside its legend, because both fit into a row. Otherwise it is above."""
    fits = len(panel.title) + sum(5 + len(label) for label in labels) <= ROW_CHARACTERS
    return fits and legend_columns(labels) == len(labels)


def _rows(panel: Panel) -> int:
    """Returns the rows of a panel's legend and title."""
    named = _named(panel.curves)
    labels = list(dict.fromkeys(curve.label if curve.label in named else "others" for curve in panel.curves))
    title = bool(panel.title) and not _beside(panel, labels)
    return -(-len(labels) // legend_columns(labels)) + title


def _named(curves: Sequence[Curve]) -> set[str]:
    """Returns the labels that have a legend entry of their own: published values, and the first of the others."""
    labels = dict.fromkeys(curve.label for curve in curves if curve.published or curve.computed)
    ours = [label for label in dict.fromkeys(curve.label for curve in curves) if label not in labels]
    room = MOST_ENTRIES - len(labels)
    return {*labels, *(ours if len(ours) <= room else ours[: room - 1])}


def _bounds(ax: Axes, panel: Panel) -> None:
    """Draws the bounds of the panel's claims, and their verdicts in a corner."""
    for low, high in panel.bounds:
        if panel.yscale == "log" and low <= 0:
            continue
        if low == high:
            ax.axhline(low, color="#333333", linewidth=0.7, linestyle=(0, (2, 2)), zorder=0.6)
        else:
            ax.axhspan(low, high, color="#e8e8e8", linewidth=0.0, zorder=0.4)
    if panel.corner is not None:
        text, holds = panel.corner
        # Beside the axes, so that it never covers a curve.
        place: Any = {"transform": ax.transAxes, "ha": "left", "va": "top", "rotation": 90.0, "fontsize": 6.0}
        ax.text(1.008, 1.0, text, color="#1a7f37" if holds else "#8a5a00", **place)


def _published(ax: Axes, curve: Curve, axis: Axis, label: str | None) -> None:
    """Draws published values as markers without a line."""
    low, high = axis.limits
    within = (curve.x >= (-np.inf if low is None else low)) & (curve.x <= (np.inf if high is None else high))
    ax.plot(
        curve.x[within],
        curve.y[within],
        PUBLISHED,
        label=label,
        color=PUBLISHED_COLOURS[curve.style % len(PUBLISHED_COLOURS)],
        fillstyle="none",
        markersize=6.5,
        zorder=5,
        clip_on=False,  # markers on the edge stay complete
    )


def _curve(ax: Axes, curve: Curve, label: str | None, colour: str, *, line: bool, markers: bool, clipped: bool) -> None:
    n = curve.style
    if curve.half is not None:
        ax.errorbar(curve.x, curve.y, curve.half, fmt="none", ecolor=colour, elinewidth=0.8, capsize=1.5)
    ax.plot(
        curve.x,
        curve.y,
        label=label,
        color=colour,
        # A single point would be invisible without a marker.
        marker=MARKERS[n % len(MARKERS)] if markers or curve.x.size == 1 else None,
        linestyle=LINES[(n + 3 * (n // len(COLOURS))) % len(LINES)] if line else "none",
        clip_on=clipped,
        linewidth=0.5 if curve.thin else None,
    )


def _y_axis(ax: Axes, panel: Panel, height_pt: float) -> None:
    ax.set_ylabel(in_lines(panel.ylabel, height_pt))
    if panel.yscale == "symlog":
        ax.set_yscale("symlog", linthresh=panel.linthresh)
    elif panel.yscale == "linear":
        if max(map(abs, ax.get_ylim())) >= 1e4:
            ax.yaxis.set_major_formatter(FuncFormatter(short))
    else:
        ax.set_yscale(panel.yscale)
        ax.yaxis.set_major_locator(powers(*ax.get_ylim()))
        ax.yaxis.set_major_formatter(FuncFormatter(plain))
        ax.yaxis.set_minor_formatter(NullFormatter())
    low, high = panel.ylim
    if low is not None and (panel.yscale != "log" or low > 0):  # a logarithmic axis cannot start at zero
        ax.set_ylim(bottom=low)
    if high is not None:
        ax.set_ylim(top=high)


def heatmap(
    values: Floats, x: tuple[str, Sequence[str]], y: tuple[str, Sequence[str]], label: str, title: str = ""
) -> Figure:
    """Draws a matrix as coloured cells, first row at the bottom. `x` and `y` are axis labels with names of cells."""
    rows, columns = values.shape
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        figure = blank(min(8.0, max(1.2, 0.28 * rows) + 0.75), title)
        ax: Axes = figure.subplots()
        # Cividis also runs from dark to light in grey prints and for colour-blind readers.
        image = ax.imshow(values, origin="lower", aspect="auto", cmap="cividis")
        for axis, (name, ticks) in ((ax.xaxis, x), (ax.yaxis, y)):
            axis.set_label_text(name)
            step = -(-len(ticks) // 12)
            axis.set_ticks(range(0, len(ticks), step), list(ticks)[::step])
        if columns <= 8 and rows <= 24 and np.isfinite(values).any():  # room for numbers
            low, high = float(np.nanmin(values)), float(np.nanmax(values))
            for row, column in np.ndindex(rows, columns):
                value = values[row, column]
                if np.isfinite(value):
                    dark = value < (low + high) / 2
                    colour = "white" if dark else "black"
                    ax.text(column, row, short(float(value)), ha="center", va="center", fontsize=6.0, color=colour)
        bar = figure.colorbar(image, ax=ax, label=label)
        if np.nanmax(np.abs(values), initial=0.0) >= 1e4:
            bar.formatter = FuncFormatter(short)
        return figure


class RunLike(Protocol):
    """The part of a run that drawing needs. `_flowstamp.Run` and `Results` implement it."""

    @property
    def flows(self) -> Any:
        """The table of flows."""

    def summary_json(self) -> str:
        """The summary as JSON."""

    def series_points(self, kind: str, name: str, metric: str) -> tuple[bytes, bytes]:
        """Returns times and values as float64 buffers."""


def averaged(t: Floats, v: Floats, over_s: float) -> tuple[Floats, Floats]:
    """Averages samples over intervals of `over_s` seconds. The returned times are the ends of the intervals."""
    step = float(t[1] - t[0]) if t.size > 1 else over_s
    n = max(1, round(over_s / step))
    whole = t.size // n * n
    return t[n - 1 : whole : n], v[:whole].reshape(-1, n).mean(axis=1)


def series(run: RunLike, kind: str, name: str, metric: str) -> tuple[Floats, Floats]:
    """Returns the times in seconds and the values of one series; both are empty if it was not sampled."""
    times, values = run.series_points(kind, name, metric)
    return np.frombuffer(times, np.float64), np.frombuffer(values, np.float64)


MOST_CURVES = MOST_ENTRIES
"""Maximum number of flows with a legend entry each. More flows share one entry for their group."""
OVERVIEW_IN = 5.4
"""Height of all panels of an overview, so that it can be read at once, and the least height of a panel."""
LEAST_PANEL_IN = 0.62


def overview(runs: RunLike | Mapping[str, RunLike], link: str | None = None, *, average_s: float = 0.0) -> Figure:
    """Draws throughputs, fairness, utilisation and queue over time, for one run or several runs by name.

    A run with sampled flows (`probes.flows`) shows each flow, any other run shows its groups. `link` is by default the
    most used link of each run. `average_s` averages throughputs and fairness over so many seconds; several round trips
    hide single bursts. Raises `PlotError` if the run has no router link.
    """
    from flowstamp import fairness
    from flowstamp.results import Results

    named: Mapping[str, RunLike] = runs if isinstance(runs, Mapping) else {"": runs}
    rates: list[tuple[str, list[Curve]]] = []
    fair, utilisation, queues = [], [], []
    links: dict[str, None] = {}
    for number, (name, run) in enumerate(named.items()):
        summary = json.loads(run.summary_json())
        what, curves = _throughputs(run, summary, average_s)
        rates.append((f"{name}: {what}" if name else what.capitalize(), curves))
        where = link if link is not None else _busiest(summary)
        label = name or where
        links[where] = None
        t, jain = fairness.over_time(run if isinstance(run, Results) else Results(cast("Any", run)), average_s)
        if np.isfinite(jain).any():
            fair.append(Curve(label, t, jain, number))
        t, u = series(run, "link", where, "utilization")
        utilisation.append(Curve(label, t, u, number))
        t, q = series(run, "link", where, "queue_bytes")
        queues.append(Curve(label, t, q * 8e3 / summary["links"][where]["rate_bps"], number))
    several = len(named) > 1
    # All throughput panels share one scale, so that heights are comparable, and one legend if it names the same.
    highest = max((float(curve.y.max()) for _, curves in rates for curve in curves if curve.y.size), default=0.0)
    ylim = (0.0, 1.05 * highest or None)
    legends = [[curve.label for curve in curves] for _, curves in rates]
    panels = [
        Panel("Mb/s", curves, title=title, ylim=ylim, legend=number == 0 or legends[number] != legends[number - 1])
        for number, (title, curves) in enumerate(rates)
    ]
    where = next(iter(links)) if len(links) == 1 else "the busiest link"
    panels.append(Panel("Share", utilisation, title=f"Utilisation of {where}", ylim=(0, 1.05), legend=several))
    panels.append(Panel("ms", queues, title=f"Queue at {where}", ylim=(0, None), legend=False))
    if fair:
        panels.append(Panel("Index", fair, title="Fairness of the active flows (Jain)", ylim=(0, 1.05), legend=False))
    height = min(PANEL_HEIGHT_IN, max(LEAST_PANEL_IN, OVERVIEW_IN / len(panels)))
    xlim, title = (0.0, summary["duration_s"]), summary["name"]
    title = title[:1].upper() + title[1:]
    return stack(Stack("Time (s)", panels, xlim=xlim, markers=False, title=title, panel_height_in=height))


def _throughputs(run: RunLike, summary: Mapping[str, Any], average_s: float) -> tuple[str, list[Curve]]:
    """Returns what the curves are, and a curve for each flow if all are sampled, else for each group."""
    groups = list(summary["groups"])
    flows = [(row["group"], row["index"]) for row in summary["flows"]]
    one = len(groups) == 1
    curves = []
    for number, (group, index) in enumerate(flows):
        if len(flows) <= MOST_CURVES:
            label, style = (f"flow {index + 1}" if one else f"{group} {index + 1}"), number
        else:
            label, style = group, groups.index(group)
        t, v = _rate(run, "flow", f"{group}.{index}", average_s)
        curves.append(Curve(label, t, v, style, thin=len(flows) > MOST_CURVES))
    if curves and all(curve.x.size for curve in curves):
        return "throughput of each flow", curves
    curves = [Curve(name, *_rate(run, "group", name, average_s), n) for n, name in enumerate(groups)]
    return "throughput of each group of flows", curves


def _rate(run: RunLike, kind: str, name: str, average_s: float) -> tuple[Floats, Floats]:
    t, v = series(run, kind, name, "goodput_bps")
    if average_s and t.size:
        t, v = averaged(t, v, average_s)
    return t, v / 1e6


def _busiest(summary: Mapping[str, Any]) -> str:
    links = summary["links"]
    if not links:
        raise PlotError("the run has no router link to draw; its scenario needs a topology of wires")
    return str(max(links, key=lambda name: float(links[name]["utilization"])))


def save(figure: Figure, stem: str | Path, formats: Sequence[str] = ("pdf", "png")) -> list[Path]:
    """Writes `stem.pdf` and `stem.png` atomically and returns their paths. Raises `PlotError` if that fails."""
    stem = Path(stem)
    targets = [stem.with_name(f"{stem.name}.{form}") for form in formats]
    engine = figure.get_layout_engine()
    try:
        for target, form in zip(targets, formats, strict=True):
            _save_as(figure, target, form)
            # Keep the first layout: with an engine, matplotlib draws each format twice and may lay it out differently.
            figure.set_layout_engine(None)
    finally:
        figure.set_layout_engine(engine)
    return targets


def _save_as(figure: Figure, target: Path, form: str) -> None:
    # Without dates and versions, the same picture gives the same file.
    metadata: dict[str, dict[str, Any]] = {
        "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
        "png": {"Software": None},
    }
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise PlotError(f"{target}: cannot write the picture: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "wb") as file, mpl.rc_context(STYLE):
            figure.savefig(file, format=form, metadata=metadata.get(form))
            os.fchmod(file.fileno(), 0o644)
        Path(temporary).replace(target)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise PlotError(f"{target}: cannot write the picture: {error.strerror}") from error
        raise
