# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How long packets took: distributions of their delays, by group and by the size of their flows."""

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

MOST_CURVES = 7  # as many as there are colours


def curves(results: Results) -> dict[tuple[str, str, Sizes], tuple[Floats, Floats]]:
    """Delays in seconds and the share of packets that took at most as long, of each link and each group.

    The key has `link` or `group`, the name, and the least and the next bin's least size of flows in bytes; `None` for
    all of them. Where no packet passed, there is no curve.
    """
    table = results.delays
    found: dict[tuple[str, str, Sizes], list[tuple[float, float]]] = {}
    columns = (table.column(name) for name in ("kind", "name", "min_bytes", "max_bytes", "delay_s", "share"))
    for kind, name, least, most, delay_s, share in zip(*columns, strict=True):
        found.setdefault((kind, name, None if least is None else (least, most)), []).append((delay_s, share))
    return {key: (np.array([d for d, _ in points]), np.array([s for _, s in points])) for key, points in found.items()}


def delay_figure(runs: Results | Mapping[str, Results]) -> Figure:
    """Distributions of packet delays, a panel for each group: of one run by the sizes of flows, of several by name."""
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
            title = group if len(groups) > 1 else ""
            legend = any(line.label for line in lines)
            panels.append(plot.Panel("Share of packets", lines, title=title, ylim=(0, 1.02), legend=legend))
    if not panels:
        raise ResultsError("no data packet arrived after the warm-up; run longer")
    return plot.stack(plot.Stack("Packet delay (ms)", panels, xscale="log", markers=False))


def _steps(delays: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """From no packet up, in ms; what took no time is at the left end of an axis that has no zero."""
    least = delays[delays > 0].min() if (delays > 0).any() else 1e-9
    x = np.repeat(np.maximum(delays, least) * 1e3, 2)
    return x, np.repeat(np.concatenate([[0.0], shares]), 2)[1:-1]


def _spread(keys: list[tuple[str, str, Sizes]]) -> list[tuple[str, str, Sizes]]:
    """As many of them as there are colours, from the first to the last."""
    if len(keys) <= MOST_CURVES:
        return keys
    return [keys[round(n * (len(keys) - 1) / (MOST_CURVES - 1))] for n in range(MOST_CURVES)]
