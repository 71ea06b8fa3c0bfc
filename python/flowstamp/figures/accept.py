# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs figures with several seeds, and records the values in `expected.json`.

Each seed's values are kept in the output folder (`flowstamp.figures.kept`), so that an interrupted call can continue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from flowstamp import executors
from flowstamp.figures.catalogue import available
from flowstamp.figures.kept import Kept
from flowstamp.figures.memory import Form, Known, Memory
from flowstamp.figures.runner import Runner
from flowstamp.figures.schedule import Progress, Queue
from flowstamp.figures.spec import FigureSpec
from flowstamp.figures.verdicts import Outcome

Report = Callable[[str], AbstractContextManager[Progress]]
"""Opens a progress display with a title."""


class Seeds:
    """Runs of figures with seeds from 1 to a given number."""

    def __init__(
        self,
        figures: Sequence[FigureSpec],
        number: int,
        progress: Report,
        *,
        fast: bool,
        directory: Path | None,
        out: Path,
        memory: str | None = None,
        executor: str = executors.THREADS,
        fresh: bool = False,
    ) -> None:
        self.number, self.progress = number, progress
        self.fast, self.directory, self.fresh = fast, directory, fresh
        self.queue = Queue(executor, memory)
        self.form: Form = "fast" if fast else "full"
        self.files = available(directory)
        self.kept = Kept(out, self.files, self.form)
        self.left = list(figures)
        self._runners: dict[int | None, Runner] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.queue.close()

    def figure(self, spec: FigureSpec) -> Outcome:
        """Runs one figure with each seed and draws it with the first."""
        # Kernel measurements do not depend on the seed.
        outcome = self._run(spec, None, self.kept.out) if spec.measured else self._simulated(spec)
        self.left.remove(spec)
        for runner in self._runners.values():
            runner.forget(self.left)
        return outcome

    def accept(self, spec: FigureSpec) -> tuple[Outcome, list[str]]:
        """Runs one figure and writes its part of the file. Returns the outcome and its differences to the old file."""
        outcome = self.figure(spec)
        memory = Memory.beside(self.files)
        news = memory.differences(outcome, self.form)
        if not (outcome.untold and memory.claims(spec.id, self.form)):
            known = {verdict.claim.id: Known.of(verdict) for verdict in outcome.verdicts}
            memory.accept(spec.id, self.form, known, list(self.files))
        return outcome, news

    def _run(self, spec: FigureSpec, seed: int | None, out: Path | None) -> Outcome:
        with self.progress(spec.id if seed is None else f"{spec.id}, seed {seed}") as report:
            return self._runner(seed).run(spec, out, report)

    def _runner(self, seed: int | None) -> Runner:
        if seed not in self._runners:
            self._runners[seed] = Runner(fast=self.fast, seed=seed, directory=self.directory, queue=self.queue)
        return self._runners[seed]

    def _next(self, spec: FigureSpec, seed: int) -> None:
        """Queues the runs that follow a figure's runs with a seed, so that no core idles at their end."""
        later = self.left[self.left.index(spec) + 1 :]
        if seed == self.number and not later:
            return
        spec, seed = (spec, seed + 1) if seed < self.number else (later[0], 1)
        if self.fresh or self.kept.outcome(spec, seed, drawn=seed == 1) is None:
            self._runner(seed).ask_ahead([spec])

    def _simulated(self, spec: FigureSpec) -> Outcome:
        first = self._seed(spec, 1)
        found = [first]
        # A figure that only computes has no seed. Any other figure has no randomness if two seeds give the same runs.
        for seed in range(2, self.number + 1) if spec.simulated or spec.reuse else ():
            found.append(self._seed(spec, seed))
            if seed == 2 and found[1].digest == first.digest:
                del found[1]
                break
        several = zip(*(outcome.verdicts for outcome in found), strict=True)
        verdicts = [
            replace(
                one[0],
                values=tuple(value for verdict in one for value in verdict.values),
                problem=next((verdict.problem for verdict in one if verdict.problem), ""),
            )
            for one in several
        ]
        return replace(first, wall_s=sum(outcome.wall_s for outcome in found), verdicts=verdicts)

    def _seed(self, spec: FigureSpec, seed: int) -> Outcome:
        drawn = seed == 1
        outcome = None if self.fresh else self.kept.outcome(spec, seed, drawn=drawn)
        if outcome is None:
            self._runner(seed).ask_ahead([spec])
            self._next(spec, seed)
            outcome = self._run(spec, seed, self.kept.out if drawn else None)
            self.kept.put(outcome, seed)
        return outcome
