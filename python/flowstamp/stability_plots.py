# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Pictures of control loops: regions of gains, settling times, phase portraits, and Bode's and Nyquist's plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MultipleLocator, NullFormatter
from numpy.typing import NDArray

from flowstamp.plot import Floats, blank
from flowstamp.style import (
    COLOURS,
    LINES,
    MARKERS,
    PANEL_HEIGHT_IN,
    STYLE,
    legend_columns,
    plain,
    powers,
)


def _legend_above(ax: Axes) -> None:
    """Places the legend above the axes, so that it never covers a curve, in as many columns as fit."""
    _, labels = ax.get_legend_handles_labels()
    ax.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 0.98),
        ncols=legend_columns(labels),
        columnspacing=0.8,
        handletextpad=0.4,
        borderaxespad=0.1,
    )


def _gains(ax: Axes, point: tuple[float, float, str] | None) -> None:
    """Labels the axes alpha and beta, and marks a pair of gains."""
    if point is not None:
        alpha, beta, name = point
        ax.plot([alpha], [beta], "o", color="black", linestyle="none", label=name, clip_on=False, zorder=5)
    ax.set_xlabel("alpha")
    ax.set_ylabel("beta")


def region(
    alphas: Floats,
    betas: Floats,
    inside: Floats,
    border: tuple[Floats, Floats],
    point: tuple[float, float, str],
    *,
    name: str = "switched system",
    tried: tuple[Floats, Floats, NDArray[np.bool_]] | None = None,
) -> Figure:
    """Draws the stable region of gains, the border of the linear loop, and a labelled point.

    `inside` has shape (betas, alphas): positive for stable gains, and continuous through zero at the border. `tried`
    has alphas, betas, and whether packets settled with these gains.
    """
    with mpl.rc_context(STYLE):
        figure = blank(2.4, "Stable gains")
        ax: Axes = figure.subplots()
        if inside.max() > 0.0:
            ax.contourf(alphas, betas, inside, levels=[0.0, np.inf], colors=["#cfe6f5"])
        if inside.min() < 0.0 < inside.max():
            ax.contour(alphas, betas, inside, levels=[0.0], colors=[COLOURS[0]], linewidths=1.1)
        ax.plot([], [], color=COLOURS[0], label=name)
        ax.plot(*border, color=COLOURS[1], linestyle="--", label="linear loop")
        if tried is not None:
            tried_alphas, tried_betas, settle = tried
            for which, marker, label in ((settle, ".", "packets settle"), (~settle, "x", "packets oscillate")):
                ax.plot(
                    tried_alphas[which],
                    tried_betas[which],
                    marker,
                    color=COLOURS[2] if marker == "." else COLOURS[1],
                    markersize=3.0,
                    linestyle="none",
                    label=label,
                    clip_on=False,
                )
        _gains(ax, point)
        ax.set_xlim(0.0, max(float(alphas[-1]), 1.05 * point[0]))
        ax.set_ylim(0.0, max(float(betas[-1]), 1.05 * point[1]))
        _legend_above(ax)
        return figure


def settling(
    alphas: Floats,
    betas: Floats,
    times: Floats,
    border: tuple[Floats, Floats],
    point: tuple[float, float, str] | None = None,
) -> Figure:
    """Draws settling times in RTTs, of shape (betas, alphas; NaN is white), and the border of the linear loop."""
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        figure = blank(2.4, "Settling time by gains")
        ax: Axes = figure.subplots()
        there = times[np.isfinite(times) & (times > 0)]
        low, high = (float(there.min()), float(there.max())) if there.size else (1.0, 10.0)
        # Dark is fast. The colour scale is logarithmic.
        norm = mpl.colors.LogNorm(low, max(high, 1.01 * low))
        image = ax.pcolormesh(alphas, betas, np.maximum(times, low), norm=norm, cmap="cividis", rasterized=True)
        ax.plot(*border, color=COLOURS[1], linestyle="--", label="linear loop")
        ends = [[float(of[0]), float(of[-1])] for of in (alphas, betas)]
        if point is not None:
            ends = [[min(a, own), max(b, own)] for (a, b), own in zip(ends, point[:2], strict=True)]
        _gains(ax, point)
        ax.set_xlim(*ends[0])
        ax.set_ylim(*ends[1])
        bar = figure.colorbar(image, ax=ax, label="Settles after (RTTs)")
        bar.ax.yaxis.set_major_locator(powers(low, high))
        bar.ax.yaxis.set_major_formatter(FuncFormatter(plain))
        bar.ax.yaxis.set_minor_formatter(NullFormatter())
        _legend_above(ax)
        return figure


NEAR_REST = 0.15
"""Deviation of the relative rate, and queue in BDP, that the lower panel of a phase portrait shows."""


def phase_portrait(paths: Sequence[tuple[Floats, Floats]], labels: Sequence[str]) -> Figure:
    """Draws queue against rate for each path, with a marker at its start. A second panel enlarges small swings."""
    top = 0.0
    for rate, queue in paths:
        away = np.flatnonzero(np.maximum(np.abs(rate - 1.0), queue) > NEAR_REST)
        top = max(top, 1.1 * float(queue[away[-1] + 1 if away.size else 0 :].max(initial=0.0)))
    swings = top > 0.005
    with mpl.rc_context(STYLE):
        figure = blank(4.2 if swings else 2.4, "From each start to equilibrium")
        panels: list[Axes] = list(np.atleast_1d(figure.subplots(1 + swings, 1)))
        for ax in panels:
            for number, ((rate, queue), label) in enumerate(zip(paths, labels, strict=True)):
                style: Any = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
                ax.plot(rate, queue, linewidth=0.9, markevery=[0], label=label, **style)
            ax.plot([1.0], [0.0], "+", color="black", markersize=8.0, zorder=5, clip_on=False)
            ax.set_ylabel("Queue (BDP)")
        panels[0].set_xlim(left=0.0)
        panels[0].set_ylim(bottom=0.0)
        if swings:
            panels[1].set_xlim(1.0 - NEAR_REST, 1.0 + NEAR_REST)
            panels[1].set_ylim(0.0, top)
            panels[1].set_title("near equilibrium", loc="left")
        panels[-1].set_xlabel("Rate over its equilibrium (N R / C)")
        _legend_above(panels[0])
        return figure


def bode(omega: Floats, gain: Floats, phase_deg: Floats, margins: Sequence[tuple[float, str]]) -> Figure:
    """Draws gain and phase over the angular frequency in rad/s, with a labelled line at each margin."""
    with mpl.rc_context(STYLE):
        figure = blank(2 * PANEL_HEIGHT_IN + 0.6, "Gain and phase of the open loop")
        upper, lower = figure.subplots(2, 1, sharex=True)
        upper.plot(omega, gain, color=COLOURS[0])
        upper.axhline(1.0, color="#999999", linewidth=0.5)
        lower.plot(omega, phase_deg, color=COLOURS[0])
        lower.axhline(-180.0, color="#999999", linewidth=0.5)
        for number, (at, name) in enumerate(margins):
            for ax in (upper, lower):
                colour, style = COLOURS[number + 1], LINES[number + 1]
                ax.axvline(at, color=colour, linestyle=style, linewidth=0.9, label=name)
        upper.set_xscale("log")
        upper.set_yscale("log")
        upper.set_ylabel("Gain |G|")
        lower.set_ylabel("Phase (degrees)")
        lower.yaxis.set_major_locator(MultipleLocator(180.0))
        # Phases below -720 degrees carry no further information.
        lower.set_ylim(bottom=max(float(phase_deg.min()), -720.0))
        lower.set_xlabel("Angular frequency (rad/s)")
        lower.set_xlim(float(omega[0]), float(omega[-1]))
        if margins:
            _legend_above(upper)
        return figure


def nyquist(response: NDArray[np.complex128], name: str) -> Figure:
    """Draws a response in the complex plane near -1; the branch of negative frequencies is dashed."""
    with mpl.rc_context(STYLE):
        figure = blank(2.6, "The open loop in the complex plane")
        ax: Axes = figure.subplots()
        turn = np.exp(1j * np.linspace(0.0, 2.0 * np.pi, 200))
        ax.plot(turn.real, turn.imag, color="#999999", linewidth=0.5)
        ax.plot(response.real, response.imag, color=COLOURS[0], label=name)
        ax.plot(response.real, -response.imag, color=COLOURS[0], linestyle="--", linewidth=0.8, label="w below 0")
        ax.plot([-1.0], [0.0], "+", color=COLOURS[1], markersize=8.0, zorder=5)
        ax.set_xlabel("Re G(jw)")
        ax.set_ylabel("Im G(jw)")
        ax.set_aspect("equal")
        ax.set_xlim(-2.5, 1.5)
        ax.set_ylim(-1.5, 1.5)
        _legend_above(ax)
        return figure


def network(seconds: Floats, rates: Mapping[str, Floats], queues: Mapping[str, Floats]) -> Figure:
    """Draws the rates of flows by route in Mb/s, and below the queueing delays by link in ms."""
    with mpl.rc_context(STYLE):
        figure = blank(3.6, "Rates of flows and queues of links")
        upper, lower = figure.subplots(2, 1, sharex=True)
        for ax, curves, label in ((upper, rates, "Rate of a flow (Mb/s)"), (lower, queues, "Queue (ms)")):
            for number, (name, values) in enumerate(curves.items()):
                style = LINES[number // len(COLOURS) % len(LINES)]
                colour = COLOURS[number % len(COLOURS)]
                ax.plot(seconds, values, linestyle=style, color=colour, linewidth=0.9, label=name)
            ax.set_ylabel(label)
            ax.set_ylim(bottom=0.0)
            _legend_above(ax)
        lower.set_xlabel("Time (s)")
        lower.set_xlim(0.0, float(seconds[-1]))
        return figure
