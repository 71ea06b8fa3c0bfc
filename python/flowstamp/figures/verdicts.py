# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Results of a figure's runs for claims and pictures, and the verdict on each claim."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from flowstamp.errors import FlowstampError
from flowstamp.figures.analytic import Computed, curve
from flowstamp.figures.claims import ExpressionError, RunValues
from flowstamp.figures.measured import NotMeasuredError
from flowstamp.figures.measures import Finished, Joined, RunSet, pooled
from flowstamp.figures.spec import Claim, FigureSpec, RunSpec
from flowstamp.figures.tables import FigureError

Status = Literal["holds", "differs", "fails", "skipped", "invalid"]
At = tuple[str, int, int]
"""Key of a run in a figure: its curve, its point, and its number among the runs of that point."""


@dataclass(frozen=True)
class Verdict:
    """A claim and its measured value."""

    claim: Claim
    measured: float | None
    problem: str = ""
    untold: Literal["skipped", "invalid"] | None = None
    """Set if the figure could not be measured."""

    @property
    def status(self) -> Status:
        """`holds`, `differs` (does not hold, and the file explains why), `fails`, or the reason for no measurement.

        A missing or non-finite value always fails, even with an explanation: such an explanation would fit any value.
        """
        if self.untold:
            return self.untold
        if self.problem or self.measured is None or not math.isfinite(self.measured):
            return "fails"
        if self.claim.bound.holds(self.measured):
            return "holds"
        return "differs" if self.claim.explanation else "fails"

    def as_json(self) -> dict[str, Any]:
        """Returns the claim as `--json` prints it."""
        claim = self.claim
        finite = self.measured is not None and math.isfinite(self.measured)
        document = {
            "id": claim.id,
            "paper": claim.paper,
            "expected": claim.expected,
            "measured": self.measured if finite else None,
            "tolerance": claim.tolerance,
            "source": claim.source,
            "status": self.status,
            "holds": None if self.untold else self.status == "holds",
        }
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
    kept: bool = False
    """Whether the outcome comes from an earlier run (`flowstamp.figures.kept`)."""

    def as_json(self) -> dict[str, Any]:
        """Returns the figure as `--json` prints it."""
        document: dict[str, Any] = {"id": self.figure.id, "wall_s": round(self.wall_s, 3)}
        if self.kept:
            document["kept"] = True
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
        return Verdict(claim, None, str(error))
    problem = "" if math.isfinite(measured) else f'"{expression.text}" is {measured}, and no finite number'
    return Verdict(claim, measured, problem)
