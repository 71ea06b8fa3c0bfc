# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Pictures of runs and of the papers' figures.

All pictures share one style: the width of a paper's column, fonts that stay legible there, and the Okabe-Ito colours,
which colour-blind readers can distinguish. Each curve has its own marker and line style, for grey prints. Drawing needs
no TeX and no window system. Files contain no dates: the same numbers give the same bytes.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from flowstamp.errors import FlowstampError

Floats = NDArray[np.float64]
Scale = Literal["linear", "log", "symlog"]

COLUMN_WIDTH_IN = 3.3  # one column of the ACM and IEEE two-column formats
PANEL_HEIGHT_IN = 1.35

# Okabe and Ito, Color Universal Design, without yellow, which is too pale for a line on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# Twice as many markers as colours: when colours repeat, markers and line styles differ.
MARKERS = ("o", "s", "^", "D", "v", "x", "+", "d", "<", ">", "p", "h", "P", "X")
PUBLISHED = "*"
"""The marker of published values, which nothing else has."""
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (7, 2)), (0, (1, 1)))

STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": 7.0,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7.0,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.2,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "text.usetex": False,
    "pdf.fonttype": 42,  # embeds TrueType fonts, so that text in the PDF can be searched
    "figure.dpi": 200,
    "savefig.dpi": 200,
}


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


@dataclass(frozen=True)
class Axis:
    """The x axis of a panel."""

    label: str
    scale: Scale = "linear"
    limits: tuple[float | None, float | None] = (None, None)
    markers: bool = True  # False: lines only, for many samples over time


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


def powers(low: float, high: float) -> LogLocator:
    """Places the numbers of a logarithmic axis at powers of ten; below two decades, also at 2 and 5 times these."""
    return LogLocator(subs=(1.0,) if high > 100 * low else (1.0, 2.0, 5.0))


def stack(spec: Stack) -> Figure:
    """Draws panels in a column."""
    with mpl.rc_context(STYLE):
        shared = Axis(spec.xlabel, spec.xscale, spec.xlim, spec.markers)
        # Adjacent panels with the same x axis are labelled once, below the last of them.
        against = [panel.axis or shared for panel in spec.panels]
        ends = [n for n, axis in enumerate(against) if axis not in against[n + 1 : n + 2]]
        height = PANEL_HEIGHT_IN * len(spec.panels) + 0.45 + 0.1 * len(ends)
        figure = Figure(figsize=(COLUMN_WIDTH_IN, height), layout="constrained")
        FigureCanvasAgg(figure)
        axes: list[Axes] = list(np.atleast_1d(figure.subplots(len(spec.panels), 1)))
        for number, (panel, ax) in enumerate(zip(spec.panels, axes, strict=True)):
            _panel(ax, panel, spec, against[number], legend=number == 0 if panel.legend is None else panel.legend)
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
            if spec.xticks:
                last.set_xticks([x for x, _ in spec.xticks], [label for _, label in spec.xticks])
        return figure


def _panel(ax: Axes, panel: Panel, spec: Stack, axis: Axis, *, legend: bool) -> None:
    for instant in spec.vertical:
        ax.axvline(instant, color="#999999", linewidth=0.5, zorder=0.5)
    _bounds(ax, panel)
    named = _named(panel.curves)
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
        # The title is above the rows of the legend.
        ax.set_title(panel.title, loc="left", pad=4.0 + (LEGEND_ROW_PT * -(-len(labels) // columns) if legend else 0.0))
    _y_axis(ax, panel)
    if legend:
        # The legend is above the axes, so that it never covers a curve.
        spacing = {"columnspacing": 0.8, "handletextpad": 0.4, "borderaxespad": 0.1}
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=columns, **spacing)


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
        color=COLOURS[curve.style % len(COLOURS) - 1],  # black first
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
    )


def _y_axis(ax: Axes, panel: Panel) -> None:
    ax.set_ylabel(panel.ylabel)
    if panel.yscale == "symlog":
        ax.set_yscale("symlog", linthresh=panel.linthresh)
    elif panel.yscale != "linear":
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
        height = min(8.0, max(1.2, 0.28 * rows) + 0.75)
        figure = Figure(figsize=(COLUMN_WIDTH_IN, height), layout="constrained")
        FigureCanvasAgg(figure)
        ax: Axes = figure.subplots()
        # Cividis also runs from dark to light in grey prints and for colour-blind readers.
        image = ax.imshow(values, origin="lower", aspect="auto", cmap="cividis")
        if title:
            ax.set_title(title, loc="left")
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
                    ax.text(column, row, f"{value:.3g}", ha="center", va="center", fontsize=6.0, color=colour)
        figure.colorbar(image, ax=ax, label=label)
        return figure


MOST_ENTRIES = 8  # maximum entries of a legend; further curves are grey
LEGEND_ROW_PT = 10.5
LEGEND_CHARACTERS = 62  # characters per legend row within the figure's width; a handle counts as five


def legend_columns(labels: Sequence[str]) -> int:
    """Returns how many legend columns fit side by side. Matplotlib fills a legend column by column."""
    rows = 1
    while rows < len(labels):
        columns = [labels[first : first + rows] for first in range(0, len(labels), rows)]
        if sum(5 + max(map(len, column)) for column in columns) <= LEGEND_CHARACTERS:
            return len(columns)
        rows += 1
    return 1


def plain(value: float, _: object = None) -> str:
    """Formats a number of an axis."""
    return f"{value:g}".replace("e+0", "e").replace("e-0", "e-")


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


MOST_CURVES = 7  # maximum throughputs per panel: the number of colours


def overview(runs: RunLike | Mapping[str, RunLike], link: str | None = None, *, average_s: float = 0.0) -> Figure:
    """Draws throughputs, utilisation and queue over time, for one run or several runs by name.

    A run with up to seven sampled flows (`probes.flows`) shows each flow, any other run shows its groups. `link` is by
    default the most used link of each run. `average_s` averages throughputs over so many seconds; several round trips
    hide single bursts. Raises `PlotError` if the run has no router link.
    """
    named: Mapping[str, RunLike] = runs if isinstance(runs, Mapping) else {"": runs}
    rates: list[tuple[str, list[Curve]]] = []
    utilisation: list[Curve] = []
    queues: list[Curve] = []
    for number, (name, run) in enumerate(named.items()):
        summary = json.loads(run.summary_json())
        rates.append((name, _throughputs(run, summary, average_s)))
        where = link if link is not None else _busiest(summary)
        label = name or where
        t, u = series(run, "link", where, "utilization")
        utilisation.append(Curve(label, t, u, number))
        t, q = series(run, "link", where, "queue_bytes")
        queues.append(Curve(label, t, q * 8e3 / summary["links"][where]["rate_bps"], number))
    several = len(named) > 1
    # All throughput panels share one scale, so that heights are comparable.
    highest = max((float(curve.y.max()) for _, curves in rates for curve in curves if curve.y.size), default=0.0)
    ylim = (0.0, 1.05 * highest or None)
    panels = [Panel("Throughput (Mb/s)", curves, title=name, ylim=ylim, legend=True) for name, curves in rates]
    panels.append(Panel("Utilisation", utilisation, ylim=(0, 1.05), legend=several))
    panels.append(Panel("Queue (ms)", queues, ylim=(0, None), legend=False))
    return stack(Stack("Time (s)", panels, markers=False))


def _throughputs(run: RunLike, summary: Mapping[str, Any], average_s: float) -> list[Curve]:
    flows = [f"{row['group']}.{row['index']}" for row in summary["flows"]]
    if 0 < len(flows) <= MOST_CURVES:
        curves = [_rate(run, "flow", name, n, average_s) for n, name in enumerate(flows)]
        if all(curve.x.size for curve in curves):  # all flows were sampled
            return curves
    return [_rate(run, "group", name, n, average_s) for n, name in enumerate(summary["groups"])]


def _rate(run: RunLike, kind: str, name: str, style: int, average_s: float) -> Curve:
    t, v = series(run, kind, name, "goodput_bps")
    if average_s and t.size:
        t, v = averaged(t, v, average_s)
    return Curve(name, t, v / 1e6, style)


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
