# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes `expected.json` anew: runs figures with seeds 1 to 5 and puts in what each claim gave.

A figure's part of the file is written as soon as its last seed has run, and each seed's values are kept in
`accepted.jsonl` in the output folder. So a fill that was interrupted goes on where it was, as long as neither program
nor figure has changed: the same program gives the same numbers.
"""

from __future__ import annotations

import hashlib
import json
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path

from flowstamp import _flowstamp
from flowstamp.figures.memory import SEEDS, Form, Known, Memory
from flowstamp.figures.runner import Outcome, Progress, Runner, Verdict
from flowstamp.figures.spec import FigureSpec, available

KEPT = "accepted.jsonl"
Values = Mapping[str, tuple[float | None, str]]
"""By claim: what was measured, or why nothing was."""
Report = Callable[[str], AbstractContextManager[Progress]]
"""Shows the progress of what has this name."""


class Kept:
    """What figures gave with each seed, one line for each: only ever appended to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._found: dict[tuple[str, int], Values] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    row = json.loads(line)
                    values = {claim: (value, str(problem)) for claim, (value, problem) in row["claims"].items()}
                    self._found[row["key"], row["seed"]] = values
                except (ValueError, KeyError, TypeError):
                    continue  # what was being written when the fill was interrupted

    def get(self, key: str, seed: int) -> Values | None:
        """What is there already."""
        return self._found.get((key, seed))

    def put(self, key: str, seed: int, figure: str, values: Values) -> None:
        """Appends a line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "figure": figure, "seed": seed, "claims": values}) + "\n")
        self._found[key, seed] = values


WORDS = ("title", "paper", "notes", "draw")


def numbers(file: Path) -> bytes:
    """What of a figure's file the numbers come from."""
    table = {key: value for key, value in tomllib.loads(file.read_text(encoding="utf-8")).items() if key not in WORDS}
    table["claims"] = [(claim["id"], claim["expr"], claim.get("each_seed", False)) for claim in table.get("claims", ())]
    return json.dumps(table, default=str).encode()


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
    ) -> None:
        self.fast, self.directory, self.progress, self.memory = fast, directory, progress, memory
        self.form: Form = "fast" if fast else "full"
        self.files = available(directory)
        self.kept = Kept(out / KEPT)
        self.left = list(figures)
        self._runners: dict[int | None, Runner] = {}

    def figure(self, spec: FigureSpec) -> tuple[Outcome, list[str]]:
        """Runs one figure and writes its part of the file; what came out, and what of it is news."""
        memory = Memory.beside(self.files)
        # On a kernel a seed fixes nothing: one run, and no band.
        outcome, values = (self._run(spec, None), {}) if spec.measured else self._simulated(spec)
        news = memory.differences(outcome, self.form)
        if not (outcome.untold and memory.claims(spec.id, self.form)):
            known = {v.claim.id: Known.of(v, values.get(v.claim.id, ())) for v in outcome.verdicts}
            memory.accept(spec.id, self.form, known, list(self.files))
        self.left.remove(spec)
        reused = {reuse.figure for other in self.left for reuse in other.reuse}
        for runner in self._runners.values():
            runner.forget(reused)
        return outcome, news

    def _run(self, spec: FigureSpec, seed: int | None) -> Outcome:
        if seed not in self._runners:
            self._runners[seed] = Runner(fast=self.fast, seed=seed, directory=self.directory, memory=self.memory)
        with self.progress(spec.id if seed is None else f"{spec.id}, seed {seed}") as report:
            return self._runners[seed].run(spec, None, report)

    def _simulated(self, spec: FigureSpec) -> tuple[Outcome, dict[str, list[float | None]]]:
        began = time.perf_counter()
        key, found = self._key(spec), dict[int, Values]()
        for seed in dict.fromkeys((spec.seed, *SEEDS)):
            values = self.kept.get(key, seed)
            if values is None:
                values = {v.claim.id: (v.measured, v.problem) for v in self._run(spec, seed).verdicts}
                self.kept.put(key, seed, spec.id, values)
            found[seed] = values
        verdicts = [Verdict(claim, *found[spec.seed][claim.id]) for claim in spec.claims]
        by_claim = {claim.id: [found[seed][claim.id][0] for seed in SEEDS] for claim in spec.claims}
        return Outcome(spec, time.perf_counter() - began, verdicts, []), by_claim

    def _key(self, spec: FigureSpec) -> str:
        """Stands for all that numbers come from: program, form, figures' files but for words, and what they read."""
        digest = hashlib.sha256(f"{self._program} {self.form}".encode())
        beside = (file for file in sorted(spec.path.parent.iterdir()) if file.suffix not in (".toml", ".json"))
        for file in filter(Path.is_file, beside):
            digest.update(file.read_bytes())
        for file in (spec.path, *(self.files[reuse.figure] for reuse in spec.reuse)):
            digest.update(numbers(file))
        return digest.hexdigest()

    @cached_property
    def _program(self) -> str:
        package = Path(__file__).parents[1]
        digest = hashlib.sha256()
        for file in (Path(_flowstamp.__file__), *sorted(package.glob("*.py")), *sorted(package.glob("figures/*.py"))):
            digest.update(file.read_bytes())
        return digest.hexdigest()
