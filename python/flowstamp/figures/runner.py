# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs figures: schedules their runs (`schedule`), checks their claims (`verdicts`), and draws them (`pictures`)."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from msgspec.structs import replace

from flowstamp import executors, plot
from flowstamp.errors import FlowstampError
from flowstamp.figures import fct, pictures
from flowstamp.figures.catalogue import available, load
from flowstamp.figures.measured import MeasurementError, NotMeasuredError, Say, forwarding, labs
from flowstamp.figures.measures import RunSet
from flowstamp.figures.schedule import Progress, Queue, Run
from flowstamp.figures.spec import FigureSpec, condition
from flowstamp.figures.tables import FigureError
from flowstamp.figures.verdicts import At, Given, Outcome, Part, Verdict, computed, run_sets
from flowstamp.files import write_whole

AHEAD = 16
"""Maximum number of figures whose runs start ahead of their turn; their results wait in memory."""


class Runner:
    """Runs figures, and keeps the runs that later figures reuse. Leaving its context stops runs started ahead."""

    def __init__(
        self,
        *,
        fast: bool = False,
        seed: int | None = None,
        directory: Path | None = None,
        memory: str | None = None,
        executor: str = executors.THREADS,
        queue: Queue | None = None,
    ) -> None:
        """A given `queue`, which runners with other seeds share, replaces `memory` and `executor`."""
        self.fast, self.seed, self.directory = fast, seed, directory
        self.files = available(directory)
        self.queue = queue or Queue(executor, memory)
        self.given: dict[str, Given] = {}
        """Results of figures, by id."""
        self._asked: dict[str, dict[At, Run]] = {}
        """Queued runs of the current figure and of coming figures, by figure id."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.queue.close()

    def figure(self, figure_id: str) -> FigureSpec:
        """Reads a figure, in the fast or the full version."""
        spec = load(figure_id, self.directory)
        return spec.fast_version() if self.fast else spec

    def run(
        self,
        spec: FigureSpec,
        out: Path | None,
        progress: Progress | None = None,
        following: Sequence[FigureSpec] = (),
    ) -> Outcome:
        """Runs a figure, draws it into `out` (None: no picture), and checks every claim.

        Cores without a run of this figure start runs of the figures `following`, in their order.
        """
        began = time.perf_counter()
        notes: list[str] = []
        try:
            to_come = [*self._reused(spec), spec, *following]
            waited = 0
            for number in range(len(to_come) - len(following)):
                later = to_come[number + 1 :]
                waited += self._finish(to_come[number], out, _after(progress, waited), notes.append, later)
        except (NotMeasuredError, MeasurementError) as why:
            untold = why if isinstance(why, NotMeasuredError) else None
            problem, status = ("", untold.status) if untold else (str(why), None)
            verdicts = [Verdict(claim, (None,), problem, status) for claim in spec.claims]
            return Outcome(spec, time.perf_counter() - began, verdicts, [], untold, notes)
        except BaseException:
            self.queue.stop()
            raise
        self.ask_ahead(following)
        given = self.given[spec.id]
        verdicts = given.verdicts()
        written = plot.save(self.draw(spec), out / spec.id) if out is not None else []
        if out is not None and spec.runs:
            bins = fct.document(given.runs)
            if bins["runs"]:
                written.append(write_whole(out / f"{spec.id}.fct.json", json.dumps(bins, indent=1) + "\n"))
        return Outcome(spec, time.perf_counter() - began, verdicts, written, notes=notes, digest=given.digest())

    def forget(self, left: Collection[FigureSpec]) -> None:
        """Drops all results except those that the remaining figures reuse."""
        needed = {reuse.figure for spec in left for reuse in spec.reuse}
        self.given = {figure: given for figure, given in self.given.items() if figure in needed}

    def draw(self, spec: FigureSpec) -> Any:
        """Draws a figure whose runs have ended."""
        try:
            return pictures.draw(self.given[spec.id])
        except ValueError as error:
            raise FigureError(f"{spec.path}: draw: {error}") from error

    def _reused(self, spec: FigureSpec) -> list[FigureSpec]:
        """Returns the figures that this one reuses and whose results are missing."""
        return [self.figure(reuse.figure) for reuse in spec.reuse if reuse.figure not in self.given]

    def _ask(self, spec: FigureSpec) -> dict[At, Run]:
        """Adds a figure's runs to the queue."""
        if spec.id not in self._asked:
            # The last point of a sweep is usually its longest run. It starts first, so that no core idles at the end.
            self._asked[spec.id] = {
                (run.name, point, again): self.queue.ask(
                    spec.job(run, point, self.seed, again), self, by_links=run.by_links
                )
                for again in range(spec.seeds)
                for point in reversed(range(spec.points))
                for run in spec.simulated
                if spec.where(run)[point]
            }
        return self._asked[spec.id]

    def ask_ahead(self, following: Sequence[FigureSpec]) -> None:
        """Queues the runs of the next figures, up to one with kernel measurements, which must run alone."""
        for spec in following[:AHEAD] if self.queue.looks_ahead else ():
            if spec.measured:
                return
            if spec.id in self._asked:
                continue
            try:
                for one in (*self._reused(spec), spec):
                    self._ask(one)
            except FlowstampError:
                return  # the error is reported when this figure's turn comes

    def _finish(
        self, spec: FigureSpec, out: Path | None, progress: Progress | None, say: Say, following: Sequence[FigureSpec]
    ) -> int:
        """Simulates, computes and measures a figure's curves. Returns how many runs it has waited for."""
        runs: dict[str, RunSet] = {}
        simulated = spec
        if not spec.measured:
            asked = self._ask(spec)
            self.ask_ahead(following)
        curves = {run.name: computed(spec, run) for run in spec.runs if run.theory is not None}
        if spec.lab is not None:
            runs, scenario = labs(spec, out, self.seed, say)
            # The lab's scenario already includes the overrides.
            simulated = replace(spec, scenario=scenario, sets=())
        if spec.packets is not None:
            curves |= forwarding(spec)
        if spec.measured:
            asked = self._ask(simulated)
        self._keep(spec, following)
        self.queue.wait(asked.values(), progress)
        runs |= run_sets(simulated, {at: run.ended.result() for at, run in asked.items()})
        parts = {name: self._parts(spec, name) for name in spec.joined}
        self.given[spec.id] = Given(spec, runs, curves, parts)
        return len(asked)

    def _keep(self, spec: FigureSpec, following: Sequence[FigureSpec]) -> None:
        """Drops runs that neither this figure nor the following ones need."""
        to_come = [spec, *following]
        wanted = {spec.id for spec in to_come} | {reuse.figure for spec in to_come for reuse in spec.reuse}
        self._asked = {figure: runs for figure, runs in self._asked.items() if figure in wanted}
        self.queue.keep({run for runs in self._asked.values() for run in runs.values()}, self)

    def _parts(self, spec: FigureSpec, name: str) -> list[Part]:
        """Returns the reused runs of other figures that `name` stands for. Raises `FigureError` if there are none."""
        parts: list[Part] = []
        for reuse in spec.reuse:
            other = self.given[reuse.figure]
            for run in other.figure.runs:
                if run.reused_as == name:
                    points = other.figure.where(run)
                    if reuse.where is not None:
                        points &= condition(reuse.where).evaluate({}, np.array(other.figure.x()))
                    parts.append(Part(other.figure, run, other.runs[run.name], None if points.all() else points))
        if not parts:
            others = " or ".join(reuse.figure for reuse in spec.reuse)
            raise FigureError(f'{spec.path}: joined: no run of {others} is reused_as "{name}"')
        return parts


def _after(progress: Progress | None, waited: int) -> Progress | None:
    """Returns the progress of a figure's runs after those of the figures that it reuses."""
    if progress is None:
        return None
    return lambda run, runs, *seen: progress(waited + run, waited + runs, *seen)
