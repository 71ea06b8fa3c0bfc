# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Live output of a run: a view in a terminal, and samples as lines of JSON.

Both divide the run into steps of about 0.1 s of wall time. The results are the same as without steps.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flowstamp import text
from flowstamp.results import Results

if TYPE_CHECKING:
    from rich.console import RenderableType

    from flowstamp._flowstamp import Table
    from flowstamp.scenario import Scenario
    from flowstamp.simulation import Simulation

STEP_S = 0.1
BLOCKS = " ▁▂▃▄▅▆▇█"
WIDTH = 40
"""Characters per history. A link has two histories of `LINK_WIDTH`, so that a row fits into 80 columns."""
LINK_WIDTH = 14
MOST_LINKS = 8
"""Maximum number of links that the view shows: those with the highest recent utilisation."""
MOST_FLOWS = 16
"""Maximum number of flows, and of groups, that the view shows."""

Sample = dict[str, Any]
"""All samples of one instant: `time_s`, and values nested by kind, name and metric."""


class _Enough(Exception):  # noqa: N818 - it is no error
    """Stops a step after `STEP_S`."""


def samples(simulation: Simulation, duration: str) -> Iterator[list[Sample]]:
    """Runs to the end and yields, after each step, its samples: one entry per instant."""
    # Time of the last sample seen. Picosecond resolution ensures that no sample is repeated or missed.
    seen, ended = "0s", False
    while not ended:
        began = time.monotonic()

        def tick(*_: object, began: float = began) -> None:
            if time.monotonic() - began >= STEP_S:
                raise _Enough

        try:
            simulation.run_until(duration, progress=tick)
            ended = True
        except _Enough:
            pass
        found = _by_instant(simulation.series_table(seen))
        if found:
            seen = f"{found[-1]['time_s']:.12f}s"
        yield found


def _by_instant(table: Table) -> list[Sample]:
    instants: list[Sample] = []
    columns = (table.column(name) for name in ("time_s", "kind", "name", "metric", "value"))
    for time_s, kind, name, metric, value in zip(*columns, strict=True):
        if not instants or instants[-1]["time_s"] != time_s:
            instants.append({"time_s": time_s})
        # JSON has no infinity and no NaN.
        instants[-1].setdefault(kind, {}).setdefault(name, {})[metric] = value if math.isfinite(value) else None
    return instants


def lines(scenario: Scenario, *, seed: int | None, memory: str | None) -> Iterator[str | Results]:
    """Runs a scenario and yields one line of JSON per sampled instant, and finally the results."""
    simulation = scenario.start(seed=seed, memory=memory)
    for found in samples(simulation, scenario.resolved(memory=memory)["duration"]):
        for sample in found:
            yield json.dumps(sample)
    results = simulation.results()
    scenario._warn(results)
    yield results


def watched(scenario: Scenario, *, title: str, seed: int | None, memory: str | None) -> Results:
    """Runs a scenario with a live view in the terminal."""
    from rich.console import Console
    from rich.live import Live

    from flowstamp.fairness import sampled

    duration = scenario.resolved(memory=memory)["duration"]
    simulation = sampled(scenario, MOST_FLOWS, memory=memory).start(seed=seed, memory=memory)
    view = View(title, duration)
    # Explicit updates: Rich's refresh thread would also redraw an unchanged view.
    with Live(view.drawn(0.0), console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        for found in samples(simulation, duration):
            for sample in found:
                view.take(sample)
            live.update(view.drawn(simulation.now), refresh=True)
    results = simulation.results()
    scenario._warn(results)
    return results


class View:
    """The live view: links with utilisation and queue, groups and flows with goodput, each with its recent history."""

    def __init__(self, title: str, duration: str) -> None:
        self.title, self.duration = title, duration
        self._last: dict[tuple[str, str], Mapping[str, float]] = {}
        self._history: dict[tuple[str, str, str], deque[float]] = {}

    def take(self, sample: Sample) -> None:
        """Adds a sample."""
        for kind in ("link", "group", "flow"):
            for name, values in sample.get(kind, {}).items():
                self._last[kind, name] = values
                for metric in ("utilization", "queue_bytes", "goodput_bps"):
                    if metric in values:
                        history = self._history.setdefault((kind, name, metric), deque(maxlen=WIDTH))
                        history.append(values[metric])

    def drawn(self, now_s: float) -> RenderableType:
        """Renders the view at simulated time `now_s`."""
        from rich.console import Group
        from rich.text import Text

        parts: list[RenderableType] = [Text(f"{self.title}: {now_s:.3f} of {self.duration}", style="bold")]
        used = {name: self._mean(name) for kind, name in self._last if kind == "link"}
        shown = sorted(used, key=lambda name: -used[name])[:MOST_LINKS] if len(used) > MOST_LINKS else list(used)
        links = [
            [
                name,
                text.percent(values.get("utilization", 0.0)),
                self._line("link", name, "utilization", 1.0, LINK_WIDTH),
                text.size(values.get("queue_bytes", 0.0)),
                self._line("link", name, "queue_bytes", 0.0, LINK_WIDTH),
            ]
            for name, values in ((name, self._last["link", name]) for name in shown)
        ]
        parts.append(_plain(["link", "utilisation", "", "queue", ""], links))
        if len(used) > len(shown):
            parts.append(Text(f"and {len(used) - len(shown)} links that are used less"))
        for kind, header in (("group", "flows"), ("flow", "flow")):
            names = [name for of, name in self._last if of == kind]
            # All groups, and all flows, share one scale, so that heights are comparable.
            top = max((max(self._history.get((kind, name, "goodput_bps"), [0.0])) for name in names), default=0.0)
            rates = [
                [
                    name,
                    text.rate(self._last[kind, name].get("goodput_bps", 0.0)),
                    self._line(kind, name, "goodput_bps", top, WIDTH),
                ]
                for name in names[:MOST_FLOWS]
            ]
            if rates:
                parts.append(_plain([header, "goodput", ""], rates))
            if len(names) > MOST_FLOWS:
                parts.append(Text(f"and {len(names) - MOST_FLOWS} more"))
        return Group(*parts)

    def _mean(self, link: str) -> float:
        """Returns the link's mean utilisation over its history, so that the order of links changes slowly."""
        history = self._history.get(("link", link, "utilization"), (0.0,))
        return sum(history) / len(history)

    def _line(self, kind: str, name: str, metric: str, top: float, width: int) -> str:
        return sparkline(list(self._history.get((kind, name, metric), ()))[-width:], top, width)


def _plain(header: list[str], rows: list[list[str]]) -> RenderableType:
    from rich.text import Text

    # Long lines are truncated, not wrapped: wrapping would move the rows below up and down.
    return Text(text.table(header, rows), no_wrap=True, overflow="ellipsis")


def sparkline(values: Sequence[float], top: float = 0.0, width: int = WIDTH) -> str:
    """Draws values as block characters between 0 and `top` (0: the largest value), padded to `width`."""
    top = top or max(values, default=0.0) or 1.0
    steps = len(BLOCKS) - 1
    return "".join(BLOCKS[min(steps, max(0, round(steps * value / top)))] for value in values).ljust(width)
