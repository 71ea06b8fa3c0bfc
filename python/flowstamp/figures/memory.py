# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Accepted results of all claims: `expected.json` beside the figures' files.

    {"X10": {"fast": {"fair-share": [8.9], ...}, "full": {"jain": [0.99, 0.98, 0.99, 0.99, 0.97], ...}}, ...}

A claim has its values with seeds 1 to 5; a figure without randomness has one value for all seeds. null stands for a
seed without a value. {"seed 1": 8.9} is provisional: the other seeds have not run yet. Instead of values a claim of a
kernel measurement may have the reason why there are none, such as "invalid". Mean, band and status follow from the
values and from the bound in the figure's file. Numbers have six digits, because further digits depend on the machine.

New results are compared with the file. A claim has changed if its status is different, in either direction, or if it
still differs from the paper but its value is outside the band of the values. Kernel measurements depend on the machine.
The file then has the values of one machine, and differences on another are only notes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from flowstamp.figures.spec import Claim, FigureSpec
from flowstamp.figures.tables import FigureError
from flowstamp.figures.verdicts import HOLDING, Outcome, Untold, Verdict
from flowstamp.files import write_whole

NAME = "expected.json"
SEEDS = (1, 2, 3, 4, 5)
DIGITS = 6
ONE_SEED = "seed 1"
Form = Literal["fast", "full"]


def rounded(value: float | None) -> float | None:
    """Rounds a value as in the file; None if it is not finite."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.{DIGITS}g}")


@dataclass(frozen=True)
class Known:
    """The file's entry for one claim."""

    values: tuple[float | None, ...] = ()
    untold: Untold | None = None
    provisional: bool = False
    """Whether the values are only those of seed 1, where other seeds may give others."""

    @classmethod
    def of(cls, verdict: Verdict) -> Known:
        """Makes an entry from a verdict."""
        return cls(untold=verdict.untold) if verdict.untold else cls(tuple(map(rounded, verdict.values)))

    @classmethod
    def read(cls, found: Sequence[float | None] | Mapping[str, float] | str) -> Known:
        """Reads an entry of the file. Raises `KeyError`, `StopIteration` or `ValueError` if it is not one."""
        if isinstance(found, str):
            return cls(untold=next(word for word in get_args(Untold) if word == found))
        if isinstance(found, Mapping):
            return cls((float(found[ONE_SEED]),), provisional=True)
        if not found:
            raise ValueError("a claim without values")
        return cls(tuple(None if value is None else float(value) for value in found))

    def as_json(self) -> Sequence[float | None] | Mapping[str, float | None] | str:
        """Returns the entry for the file."""
        return {ONE_SEED: self.values[0]} if self.provisional else self.untold or self.values

    def verdict(self, claim: Claim, seeds: int | None = None) -> Verdict:
        """Judges the values of the first seeds (None: of all) by the claim's bound."""
        return Verdict(claim, self.values[:seeds], untold=self.untold, provisional=self.provisional)

    def change(self, verdict: Verdict) -> str:
        """Returns how a verdict differs from this entry; empty if it does not."""
        if self.provisional:  # The other seeds have nothing to be compared with.
            verdict = replace(verdict, values=verdict.values[:1])
        was = replace(self.verdict(verdict.claim, len(verdict.values)), by_chance=verdict.by_chance)
        value = rounded(verdict.measured)
        shown = "not a finite number" if value is None else f"{value:g}"
        if verdict.status != was.status:
            return f"{was.status} in {NAME}, {verdict.status} now ({shown})"
        if value is None or verdict.status in HOLDING or verdict.untold:
            return ""
        low, high = self.verdict(verdict.claim).band or (math.nan, math.nan)
        if not low <= value <= high:
            band = f"{low:g} with seed 1" if self.provisional else f"in the band of seeds 1 to 5, {low:g} to {high:g}"
            return f"{shown} now; in {NAME} it is {band}"
        return ""


class Memory:
    """The file `expected.json` of one folder of figures."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, dict[str, dict[str, Known]]] = {}
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            for figure, forms in found.items():
                self._known[figure] = {
                    form: {claim: Known.read(known) for claim, known in claims.items()}
                    for form, claims in forms.items()
                }
        except FileNotFoundError:
            pass
        except OSError as error:
            raise FigureError(f"{path}: cannot be read: {error.strerror}") from error
        except (AttributeError, KeyError, StopIteration, TypeError, ValueError) as error:
            raise FigureError(f"{path}: not what `flowstamp figure --accept` writes: {error}") from error

    def claims(self, figure: str, form: Form) -> Mapping[str, Known]:
        """Returns a figure's entries by claim; empty if it was never accepted."""
        return self._known.get(figure, {}).get(form, {})

    def verdicts(self, spec: FigureSpec, form: Form = "full") -> dict[str, Verdict]:
        """Returns the verdicts that the file gives on a figure's claims, by claim; none for claims without an entry."""
        known = self.claims(spec.id, form)
        return {claim.id: known[claim.id].verdict(claim) for claim in spec.claims if claim.id in known}

    def all_verdicts(self, spec: FigureSpec) -> dict[str, Verdict]:
        """Returns the verdicts of the full version by claim; those without an entry have no verdict."""
        return {c.id: Verdict(c, (), untold="no verdict") for c in spec.claims} | self.verdicts(spec)

    def untold(self, spec: FigureSpec) -> set[str]:
        """Returns the claims of which the short version says otherwise than the full one, so that it is no verdict."""
        full = {claim: verdict.status in HOLDING for claim, verdict in self.verdicts(spec).items() if verdict.finite}
        short = self.verdicts(spec, "fast")
        return {claim for claim, holds in full.items() if claim in short and (short[claim].status in HOLDING) != holds}

    def judged(self, outcome: Outcome, form: Form) -> Outcome:
        """Returns the outcome with what the file knows of its claims: which hold on average, which have no verdict."""
        tried = bool(outcome.figure.experiment)
        known = self.verdicts(outcome.figure)
        untold = self.untold(outcome.figure) if form == "fast" and not tried else set()
        verdicts = [
            replace(
                one,
                by_chance=tried or (one.claim.id in known and known[one.claim.id].status == "holds on average"),
                untold="no verdict" if one.claim.id in untold and one.finite else one.untold,
            )
            for one in outcome.verdicts
        ]
        return replace(outcome, verdicts=verdicts)

    def differs(self, figure: str, claim: Claim) -> bool:
        """Whether a claim does not hold with some seed, in the fast or the full version."""
        found = [known[claim.id].values for form in get_args(Form) if claim.id in (known := self.claims(figure, form))]
        return any(not claim.bound.holds(value) for values in found for value in values)

    @classmethod
    def beside(cls, files: Mapping[str, Path]) -> Memory:
        """Opens the file in the folder of these figures."""
        return cls(next(iter(files.values())).parent / NAME)

    def compared(self, outcome: Outcome, form: Form) -> tuple[list[str], list[str]]:
        """Returns changes, and notes: differences of kernel measurements, and figures without an entry."""
        figure = outcome.figure
        if figure.experiment:
            return [], []
        if not self.claims(figure.id, form):
            note = f"{figure.id}: {NAME} has nothing of it ({form}); --accept writes it"
            return [], [note] if self.path.exists() else []
        found = self.differences(outcome, form)
        return ([], [f"{figure.id} {one}; measured here" for one in found]) if figure.measured else (found, [])

    def differences(self, outcome: Outcome, form: Form) -> list[str]:
        """Returns one line per difference; none if the figure has no entry or could not be measured."""
        known = self.claims(outcome.figure.id, form)
        if not known or outcome.untold:
            return []
        gone = known.keys() - {verdict.claim.id for verdict in outcome.verdicts}
        return [*self._of(outcome, known), *(f"{claim}: in {NAME}, but not in the figure" for claim in sorted(gone))]

    @staticmethod
    def _of(outcome: Outcome, known: Mapping[str, Known]) -> Iterator[str]:
        for verdict in outcome.verdicts:
            claim = verdict.claim.id
            change = known[claim].change(verdict) if claim in known else f"not in {NAME}"
            if change:
                yield f"{claim}: {change}"

    def accept(self, figure: str, form: Form, claims: Mapping[str, Known], order: Sequence[str]) -> None:
        """Replaces a figure's entries and writes the file. Figures that are not in `order` are removed."""
        self._known = Memory(self.path)._known  # reads again, because another call may have accepted other figures
        self._known.setdefault(figure, {})[form] = dict(claims)
        self._known = {name: self._known[name] for name in order if name in self._known}
        write_whole(self.path, self.text())

    def text(self) -> str:
        """Formats the file with one line per claim, so that a diff shows which claims changed."""
        figures = {}
        for figure, forms in self._known.items():
            lines = {
                form: _object({claim: json.dumps(known.as_json()) for claim, known in sorted(claims.items())}, 2)
                for form, claims in sorted(forms.items())
            }
            figures[figure] = _object(lines, 1)
        return _object(figures, 0) + "\n"


def _object(members: Mapping[str, Any], depth: int) -> str:
    """Formats a JSON object from values that are already JSON, one per line."""
    inner = ",\n".join(f"{'  ' * (depth + 1)}{json.dumps(key)}: {value}" for key, value in members.items())
    return f"{{\n{inner}\n{'  ' * depth}}}"
