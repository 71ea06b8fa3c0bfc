# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Distributions of queueing delays of links and packet delays of groups, also by flow size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from flowstamp import text
from flowstamp.errors import ResultsError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from flowstamp.results import Results

    Floats: TypeAlias = NDArray[np.float64]
    Sizes: TypeAlias = tuple[int, int] | None

MOST_CURVES = 7  # number of colours


def curves(results: Results) -> dict[tuple[str, str, Sizes], tuple[Floats, Floats]]:
    """Returns the delay distribution of each link and each group: delays in seconds, and the share up to each delay.

    A key has "link" or "group", the name, and the bin of flow sizes in bytes (upper bound exclusive; None for all
    sizes). A link or group without packets has no entry.
    """
    table = results.delays
    found: dict[tuple[str, str, Sizes], list[tuple[float, float]]] = {}
    columns = (table.column(name) for name in ("kind", "name", "min_bytes", "max_bytes", "delay_s", "share"))
    for kind, name, least, most, delay_s, share in zip(*columns, strict=True):
        found.setdefault((kind, name, None if least is None else (least, most)), []).append((delay_s, share))
    return {key: (np.array([d for d, _ in points]), np.array([s for _, s in points])) for key, points in found.items()}


def delay_figure(runs: Results | Mapping[str, Results]) -> Figure:
    """Draws distributions of packet delays with one panel per group: one run by flow size, or several runs by name.

    Raises `ResultsError` if no data packet arrived after the warm-up.
    """
    from flowstamp import plot

    named: Mapping[str, Results] = runs if isinstance(runs, Mapping) else {"": runs}
    of_runs = {name: curves(run) for name, run in named.items()}
    groups = list(next(iter(named.values())).groups)
    panels = []
    for group in groups:
        shown: list[tuple[str, tuple[Floats, Floats]]] = []
        for name, of_run in of_runs.items():
            sizes = [key for key in of_run if key[:2] == ("group", group)]
            sized = [key for key in sizes if key[2] is not None] if len(named) == 1 else []
            if len(sized) > 1:
                shown += [(text.size_bin(*key[2]), of_run[key]) for key in _spread(sized) if key[2]]
            else:
                shown += [(name, of_run[key]) for key in sizes if key[2] is None]
        lines = [plot.Curve(label, *_steps(*points), style) for style, (label, points) in enumerate(shown)]
        if lines:
            title = f"Packet delay of {group}"
            legend = any(line.label for line in lines)
            panels.append(plot.Panel("Share of packets", lines, title=title, ylim=(0, 1.02), legend=legend))
    if not panels:
        raise ResultsError("no data packet arrived after the warm-up; run longer")
    title = next(iter(named.values())).summary["name"]
    return plot.stack(plot.Stack("Packet delay (ms)", panels, xscale="log", markers=False, title=title))


def _steps(delays: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Returns the steps of a distribution from share 0, with delays in ms.

    Zero delays become the smallest positive one, because the axis is logarithmic.
    """
    least = delays[delays > 0].min() if (delays > 0).any() else 1e-9
    x = np.repeat(np.maximum(delays, least) * 1e3, 2)
    return x, np.repeat(np.concatenate([[0.0], shares]), 2)[1:-1]


def _spread(keys: list[tuple[str, str, Sizes]]) -> list[tuple[str, str, Sizes]]:
    """Picks at most `MOST_CURVES` keys, evenly spaced from the first to the last."""
    if len(keys) <= MOST_CURVES:
        return keys
    return [keys[round(n * (len(keys) - 1) / (MOST_CURVES - 1))] for n in range(MOST_CURVES)]
