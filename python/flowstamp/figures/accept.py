# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Rewrites `expected.json`: runs figures with seeds 1 to 5 and records the value of each claim.

A figure's part of the file is written when its last seed has run. Each seed's values are also kept in the output folder
(`flowstamp.figures.kept`), so that an interrupted call can continue.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from flowstamp import executors
from flowstamp.figures.catalogue import available
from flowstamp.figures.kept import Kept, Values
from flowstamp.figures.memory import SEEDS, Form, Known, Memory
from flowstamp.figures.runner import Runner
from flowstamp.figures.schedule import Progress
from flowstamp.figures.spec import FigureSpec
from flowstamp.figures.verdicts import Outcome, Verdict

Report = Callable[[str], AbstractContextManager[Progress]]
"""Opens a progress display with a title."""


class Fill:
    """One call of `flowstamp figure --accept`."""

    def __init__(
        self,
        figures: Sequence[FigureSpec],
        progress: Report,
        *,
        fast: bool,
        directory: Path | None,
        out: Path,
        memory: str | None = None,
        executor: str = executors.THREADS,
        fresh: bool = False,
    ) -> None:
        self.fast, self.directory, self.progress, self.memory = fast, directory, progress, memory
        self.executor, self.fresh = executor, fresh
        self.form: Form = "fast" if fast else "full"
        self.files = available(directory)
        self.kept = Kept(out, self.files, self.form)
        self.left = list(figures)
        self._runners: dict[int | None, Runner] = {}

    def figure(self, spec: FigureSpec) -> tuple[Outcome, list[str]]:
        """Runs one figure and writes its part of the file. Returns the outcome and its differences to the old file."""
        memory = Memory.beside(self.files)
        # Kernel measurements do not depend on the seed: one run, and no band of values.
        outcome, values = (self._run(spec, None), {}) if spec.measured else self._simulated(spec)
        news = memory.differences(outcome, self.form)
        if not (outcome.untold and memory.claims(spec.id, self.form)):
            known = {v.claim.id: Known.of(v, values.get(v.claim.id, ())) for v in outcome.verdicts}
            memory.accept(spec.id, self.form, known, list(self.files))
        self.left.remove(spec)
        for runner in self._runners.values():
            runner.forget(self.left)
        return outcome, news

    def _run(self, spec: FigureSpec, seed: int | None) -> Outcome:
        if seed not in self._runners:
            self._runners[seed] = Runner(
                fast=self.fast, seed=seed, directory=self.directory, memory=self.memory, executor=self.executor
            )
        with self.progress(spec.id if seed is None else f"{spec.id}, seed {seed}") as report:
            return self._runners[seed].run(spec, None, report)

    def _simulated(self, spec: FigureSpec) -> tuple[Outcome, dict[str, list[float | None]]]:
        began = time.perf_counter()
        found = dict[int, Values]()
        for seed in dict.fromkeys((spec.seed, *SEEDS)):
            values = None if self.fresh else self.kept.values(spec, seed)
            if values is None:
                values = {v.claim.id: (v.measured, v.problem) for v in self._run(spec, seed).verdicts}
                self.kept.put(spec, seed, values)
            found[seed] = values
        verdicts = [Verdict(claim, *found[spec.seed][claim.id]) for claim in spec.claims]
        by_claim = {claim.id: [found[seed][claim.id][0] for seed in SEEDS] for claim in spec.claims}
        return Outcome(spec, time.perf_counter() - began, verdicts, []), by_claim
