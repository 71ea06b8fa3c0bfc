# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Results of a figure's runs for claims and pictures, and the verdict on each claim."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from flowstamp.errors import FlowstampError
from flowstamp.figures.analytic import Computed, curve
from flowstamp.figures.claims import Bound, ExpressionError, RunValues
from flowstamp.figures.measured import NotMeasuredError
from flowstamp.figures.measures import Finished, Joined, RunSet, pooled
from flowstamp.figures.spec import Claim, FigureSpec, RunSpec
from flowstamp.figures.tables import FigureError

Untold = Literal["skipped", "invalid", "no verdict"]
"""Why a claim has no verdict: not measurable here, the machine was too busy, or the version is too short."""
Judged = Literal["holds", "holds on average", "differs on average", "differs"]
Status = Literal[Judged, "fails", Untold]
HOLDING: frozenset[Status] = frozenset(("holds", "holds on average"))
At = tuple[str, int, int]
"""Key of a run in a figure: its curve, its point, and its number among the runs of that point."""


def judged(bound: Bound, values: Sequence[float]) -> Judged:
    """Judges finite values, one for each seed, by a bound.

    If all seeds agree, they decide. Otherwise the mean does.
    """
    held = sum(map(bound.holds, values))
    if held == len(values):
        return "holds"
    if held == 0:
        return "differs"
    return "holds on average" if bound.holds(math.fsum(values) / len(values)) else "differs on average"


@dataclass(frozen=True)
class Verdict:
    """A claim and its measured values."""

    claim: Claim
    values: tuple[float | None, ...]
    """One for each seed; None if there is none. A figure without randomness has one value for all seeds."""
    problem: str = ""
    untold: Untold | None = None
    """Set if the claim has no verdict."""
    by_chance: bool = False
    """Whether the claim is known to hold on average, so that a seed that differs needs no explanation."""
    provisional: bool = False
    """Whether only seed 1 has run, where other seeds may give other values."""

    @property
    def finite(self) -> tuple[float, ...]:
        """The values; empty if one of them is missing or not finite."""
        found = tuple(value for value in self.values if value is not None and math.isfinite(value))
        return found if len(found) == len(self.values) else ()

    @property
    def measured(self) -> float | None:
        """The mean over the seeds; None if a seed has no finite value."""
        return math.fsum(self.finite) / len(self.finite) if self.finite else None

    @property
    def band(self) -> tuple[float, float] | None:
        """The least and the largest value; None if a seed has no finite value."""
        return (min(self.finite), max(self.finite)) if self.finite else None

    @property
    def held(self) -> int:
        """The number of seeds with which the claim holds."""
        return sum(map(self.claim.bound.holds, self.values))

    @property
    def seeds(self) -> str:
        """With how many seeds the claim holds, such as "3 of 5"; empty if there is one value."""
        return f"{self.held} of {len(self.values)}" if len(self.values) > 1 else ""

    @property
    def status(self) -> Status:
        """The verdict of the seeds (`judged`), `fails`, or the reason for no verdict.

        A claim that differs fails if its file has no explanation. A missing or non-finite value always fails, even with
        an explanation: such an explanation would fit any value.
        """
        if self.untold:
            return self.untold
        if self.problem or not self.finite:
            return "fails"
        found = judged(self.claim.bound, self.finite)
        explained = bool(self.claim.explanation) or self.by_chance
        return found if found in HOLDING or explained else "fails"

    def as_json(self) -> dict[str, Any]:
        """Returns the claim as `--json` prints it."""
        claim = self.claim
        document: dict[str, Any] = {
            "id": claim.id,
            "paper": claim.paper,
            "of": claim.whose,
            "expected": claim.expected,
            "measured": self.measured,
            "tolerance": claim.tolerance,
            "source": claim.source,
            "status": self.status,
            "holds": None if self.untold else self.status in HOLDING,
        }
        if len(self.values) > 1:
            document |= {"values": list(self.values), "held": self.held}
        if self.problem:
            document["problem"] = self.problem
        if claim.explanation:
            document["explanation"] = claim.explanation
        return document


@dataclass(frozen=True)
class Outcome:
    """The result of running a figure."""

    figure: FigureSpec
    wall_s: float
    verdicts: Sequence[Verdict]
    pictures: Sequence[Path]
    """Files written: pictures, and completion times by size."""
    untold: NotMeasuredError | None = None
    notes: Sequence[str] = ()
    changes: Sequence[str] = ()
    """Differences from `expected.json`."""
    digest: str = ""
    """Hash of what ran (`Given.digest`)."""
    kept: bool = False
    """Whether the outcome comes from an earlier run (`flowstamp.figures.kept`)."""

    def as_json(self) -> dict[str, Any]:
        """Returns the figure as `--json` prints it."""
        document: dict[str, Any] = {"id": self.figure.id, "wall_s": round(self.wall_s, 3)}
        if self.kept:
            document["kept"] = True
        if self.figure.experiment:
            document["experiment"] = self.figure.experiment
        if self.untold:
            document |= {"status": self.untold.status, "reason": str(self.untold)}
        if self.notes:
            document["notes"] = list(self.notes)
        if self.changes:
            document["changes"] = list(self.changes)
        return document | {"claims": [v.as_json() for v in self.verdicts]}


@dataclass(frozen=True)
class Part:
    """Reused runs of another figure, and which of their points count (None: all)."""

    figure: FigureSpec
    run: RunSpec
    runs: RunSet
    points: NDArray[np.bool_] | None


@dataclass(frozen=True)
class Given:
    """Simulated, computed and measured results of a figure."""

    figure: FigureSpec
    runs: Mapping[str, RunSet]
    computed: Mapping[str, Computed]
    parts: Mapping[str, Sequence[Part]]
    """Reused runs of other figures, by name in this one."""

    @property
    def values(self) -> dict[str, RunValues]:
        """Values by name for the claims."""
        joined = {name: Joined(name, [(p.runs, p.points) for p in parts]) for name, parts in self.parts.items()}
        return {**self.runs, **self.computed, **joined}

    def verdicts(self) -> list[Verdict]:
        """Evaluates each claim."""
        return [_verdict(claim, self.values, self.figure) for claim in self.figure.claims]

    def digest(self) -> str:
        """Returns a hash of the runs' summaries without the seed: equal for two seeds if nothing is random."""
        parts = (part.runs for several in self.parts.values() for part in several)
        runs = [
            run.summary
            for curve in (*self.runs.values(), *parts)
            for one in curve.runs
            for run in one.members or (one,)
        ]
        text = json.dumps([{key: value for key, value in summary.items() if key != "seed"} for summary in runs])
        return hashlib.sha256(text.encode()).hexdigest()


def run_sets(spec: FigureSpec, ended: Mapping[At, Finished]) -> dict[str, RunSet]:
    """Groups the simulated runs by curve."""
    return {
        run.name: RunSet(
            run.name,
            [
                pooled([ended[run.name, point, again] for again in range(spec.seeds)])
                for point in np.flatnonzero(spec.where(run)).tolist()
            ],
            spec.measure.links,
            spec.measure.group,
            spec.measure.split_packets,
            None if run.where is None else spec.where(run),
        )
        for run in spec.simulated
    }


def computed(spec: FigureSpec, run: RunSpec) -> Computed:
    """Computes the measures of a run with `theory`. Raises `FigureError` if that fails."""
    try:
        return Computed(run.name, curve(run.theory or {}).at(spec.x()))
    except FlowstampError as error:
        raise FigureError(f"{spec.path}: runs[{run.name}].theory: {error}") from error


def _verdict(claim: Claim, values: dict[str, RunValues], spec: FigureSpec) -> Verdict:
    x = np.array(spec.x()) if spec.runs else np.array([])
    several = [values]
    if claim.each_seed:
        several = [
            {name: run.seed(n) if isinstance(run, RunSet) else run for name, run in values.items()}
            for n in range(spec.seeds)
        ]
    try:
        expression = spec.expression(claim)
        measured = float(np.mean([expression.evaluate(one, x, spec.constants) for one in several]))
    except ExpressionError as error:
        return Verdict(claim, (None,), str(error))
    problem = "" if math.isfinite(measured) else f'"{expression.text}" is {measured}, and no finite number'
    return Verdict(claim, (measured,), problem)
