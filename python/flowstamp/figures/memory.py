# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Accepted results of all claims: `expected.json` beside the figures' files.

    {"X10": {"fast": {"fair-share": {"status": "holds", "value": 8.9, "band": [8.7, 8.96]}, ...}, "full": ...}, ...}

`status` and `value` are those with the figure's own seed. `band` has the smallest and the largest value with seeds 1 to
5; it is null if one of them has no value. Numbers have six digits, because further digits depend on the machine.

New results are compared with the file. A claim has changed if its status is different, in either direction, or if it
still differs from the paper but its value is outside the band. Kernel measurements depend on the machine. The file then
has the values of one machine, and differences on another are only notes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from flowstamp.figures.spec import Claim
from flowstamp.figures.tables import FigureError
from flowstamp.files import write_whole

if TYPE_CHECKING:
    from flowstamp.figures.verdicts import Outcome, Verdict

NAME = "expected.json"
SEEDS = (1, 2, 3, 4, 5)
DIGITS = 6
Form = Literal["fast", "full"]


def rounded(value: float | None) -> float | None:
    """Rounds a value as in the file; None if it is not finite."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.{DIGITS}g}")


@dataclass(frozen=True)
class Known:
    """The file's entry for one claim."""

    status: str
    value: float | None
    band: tuple[float, float] | None

    @classmethod
    def of(cls, verdict: Verdict, values: Sequence[float | None]) -> Known:
        """Makes an entry from a verdict and the values with all seeds."""
        numbers = [number for number in map(rounded, values) if number is not None]
        whole = numbers and len(numbers) == len(values)
        return cls(verdict.status, rounded(verdict.measured), (min(numbers), max(numbers)) if whole else None)

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Known:
        """Reads an entry of the file."""
        band = found["band"] and (float(found["band"][0]), float(found["band"][1]))
        return cls(str(found["status"]), found["value"], band)

    def as_json(self) -> dict[str, Any]:
        """Returns the entry for the file."""
        return {"status": self.status, "value": self.value, "band": self.band and list(self.band)}

    def change(self, verdict: Verdict) -> str:
        """Returns how a verdict differs from this entry; empty if it does not."""
        value = rounded(verdict.measured)
        shown = "not a finite number" if value is None else f"{value:g}"
        if verdict.status != self.status:
            return f"{self.status} in {NAME}, {verdict.status} now ({shown})"
        if verdict.status != "differs":
            return ""
        if self.band is None:
            return f"{shown}, and {NAME} has no band for it"
        low, high = self.band
        if value is None or not low <= value <= high:
            return f"{shown} is out of the band that seeds 1 to 5 gave, {low:g} to {high:g}"
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
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise FigureError(f"{path}: not what `flowstamp figure --accept` writes: {error}") from error

    def claims(self, figure: str, form: Form) -> Mapping[str, Known]:
        """Returns a figure's entries by claim; empty if it was never accepted."""
        return self._known.get(figure, {}).get(form, {})

    def differs(self, figure: str, claim: Claim) -> bool:
        """Whether a claim does not hold with some seed, in the fast or the full version."""
        bands = [known[claim.id].band for form in get_args(Form) if claim.id in (known := self.claims(figure, form))]
        return any(band is not None and not all(map(claim.bound.holds, band)) for band in bands)

    @classmethod
    def beside(cls, files: Mapping[str, Path]) -> Memory:
        """Opens the file in the folder of these figures."""
        return cls(next(iter(files.values())).parent / NAME)

    def compared(self, outcome: Outcome, form: Form) -> tuple[list[str], list[str]]:
        """Returns changes, and notes: differences of kernel measurements, and figures without an entry."""
        figure = outcome.figure
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


def _object(members: Mapping[str, str], depth: int) -> str:
    """Formats a JSON object from values that are already JSON, one per line."""
    inner = ",\n".join(f"{'  ' * (depth + 1)}{json.dumps(key)}: {value}" for key, value in members.items())
    return f"{{\n{inner}\n{'  ' * depth}}}"
