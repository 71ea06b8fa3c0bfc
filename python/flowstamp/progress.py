# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Progress of work that takes longer than a second: a bar in a terminal or a notebook's cell, or lines of text."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from flowstamp import streams
from flowstamp.errors import UsageError

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from flowstamp.scenario import Progress

QUIET_S = 1.0  # shorter work shows no progress
PLAIN_S = 10.0
"""Seconds between two lines of plain progress."""
WAYS = ("auto", "plain", "none")
_how = [WAYS[0]]


def show(how: str) -> None:
    """Sets how the command shows progress: "auto" (a bar if standard error is a terminal), "plain" (lines), "none".

    Raises `UsageError` for another value.
    """
    if how not in WAYS:
        raise UsageError(f'--progress: "{how}" is not a way to show progress; use one of {", ".join(WAYS)}')
    _how[0] = how


def note(line: str) -> None:
    """Prints a line about work whose steps take many seconds, if progress is shown."""
    if _how[0] == "plain" or (_how[0] == "auto" and sys.stderr.isatty()):
        streams.tell(line)


class Meter:
    """Shows the engine's progress: events, simulated time and remaining time.

    with Meter("xcp") as meter:
        scenario.run(progress=meter)
    """

    def __init__(self, title: str = "") -> None:
        self._title = title
        self._began = time.monotonic()
        self._plain = _how[0] == "plain"
        self._on = self._plain or (_how[0] == "auto" and sys.stderr.isatty())
        self._last = self._began
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._runs: dict[int, tuple[float, float, int]] = {}

    def __enter__(self) -> Self:
        self._began = self._last = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __call__(self, run: int, runs: int, simulated_s: float, duration_s: float, events: int) -> None:
        """Handles a progress report; the engine sends about ten per second."""
        if not self._on:
            return
        self._runs[run] = (simulated_s, duration_s, events)
        now = time.monotonic()
        if now - (self._last if self._plain else self._began) < (PLAIN_S if self._plain else QUIET_S):
            return
        done = sum(simulated / max(duration, 1e-12) for simulated, duration, _ in self._runs.values())
        total = f"{sum(entry[2] for entry in self._runs.values()) / 1e6:.1f}M events"
        simulated = f"{simulated_s:.2f} of {duration_s:g} s" if runs == 1 else f"{done:.1f} of {runs} runs"
        if self._plain:
            self._last = now
            streams.tell(f"{self._title}: {simulated}, {total}, {now - self._began:.0f} s")
            return
        if self._bar is None:
            self._start()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=float(runs), simulated=simulated, events=total)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[simulated]}"),
            TextColumn("{task.fields[events]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task(self._title, total=1.0, simulated="", events="")


def in_notebook() -> bool:
    """Whether this process is a notebook's kernel."""
    # Such a process has loaded IPython.
    shell = sys.modules.get("IPython.core.getipython")
    found = shell.get_ipython() if shell is not None else None
    return found is not None and hasattr(found, "kernel")


class Cell:
    """Shows progress in the output of a notebook's cell until the work is done."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._began = time.monotonic()
        self._runs: dict[int, float] = {}
        self._handle: Any = None

    def __call__(self, run: int, runs: int, simulated_s: float, duration_s: float, events: int) -> None:
        """Handles a progress report; the engine sends about ten per second."""
        del events
        self._runs[run] = simulated_s / max(duration_s, 1e-12)
        if time.monotonic() - self._began < QUIET_S:
            return
        done = sum(self._runs.values())
        told = f"{simulated_s:.2f} of {duration_s:g} s" if runs == 1 else f"{done:.1f} of {runs} runs"
        self._show(f'{escape(self._title)} <progress value="{done:.3f}" max="{runs}"></progress> {told}')

    def _show(self, html: str) -> None:
        from IPython.display import HTML, display

        if self._handle is None:
            self._handle = display(HTML(html), display_id=True)
        else:
            self._handle.update(HTML(html))

    def close(self) -> None:
        """Clears the output."""
        if self._handle is not None:
            self._show("")


@contextmanager
def watching(progress: Progress | None, title: str) -> Iterator[Progress | None]:
    """Yields the given callback or, in a notebook without one, a progress bar."""
    if progress is not None or not in_notebook():
        yield progress
        return
    cell = Cell(title)
    try:
        yield cell
    finally:
        cell.close()
