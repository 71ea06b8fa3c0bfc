# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Cache of figures' results in the output folder, so that a later call continues an earlier one.

Each line of `kept.jsonl` has the values of one figure's claims with one seed, and the files written for it. A line is
valid as long as neither the program nor the figure changes, because the same program gives the same numbers.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from flowstamp.executors import engine
from flowstamp.figures.memory import NAME, Form
from flowstamp.figures.spec import FigureSpec
from flowstamp.figures.verdicts import Outcome, Verdict

KEPT = "kept.jsonl"
WORDS = ("title", "paper", "notes", "draw")


def numbers(file: Path) -> bytes:
    """Returns the part of a figure's file that determines its numbers."""
    table = {key: value for key, value in tomllib.loads(file.read_text(encoding="utf-8")).items() if key not in WORDS}
    table["claims"] = [(claim["id"], claim["expr"], claim.get("each_seed", False)) for claim in table.get("claims", ())]
    return json.dumps(table, default=str).encode()


class Kept:
    """The file `kept.jsonl`: one line for each figure and seed; lines are only appended."""

    def __init__(self, out: Path, files: Mapping[str, Path], form: Form) -> None:
        self.out, self.files, self.form = out, files, form
        self.path = out / KEPT
        self._found: dict[tuple[str, int], dict[str, Any]] = {}
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    row = json.loads(line)
                    row["claims"] = {claim: (value, str(why)) for claim, (value, why) in row["claims"].items()}
                    self._found.setdefault((row["key"], row["seed"]), {}).update(row)
                except (AttributeError, KeyError, TypeError, ValueError):
                    continue  # an incomplete line, left when the machine stopped

    def outcome(self, spec: FigureSpec, seed: int, *, drawn: bool = True) -> Outcome | None:
        """Returns a cached outcome with a seed, or None.

        If `drawn`, the files that were written with its picture must be unchanged.
        """
        row = self._found.get((self._key(spec), seed))
        if spec.measured or spec.experiment or row is None:
            return None
        written: Mapping[str, str] = row["files"] if drawn and row.get("drawn") == self._drawn(spec) else {}
        if drawn and not (written and all(_digest(self.out / name) == digest for name, digest in written.items())):
            return None
        verdicts = [Verdict(claim, (value,), why) for claim in spec.claims for value, why in [row["claims"][claim.id]]]
        pictures = [self.out / name for name in written]
        return Outcome(spec, row["wall_s"], verdicts, pictures, digest=row["digest"], kept=True)

    def put(self, outcome: Outcome, seed: int) -> None:
        """Appends a figure's outcome with a seed. Skips experiments and measurements, which are not reproducible."""
        spec = outcome.figure
        if spec.measured or spec.experiment or outcome.untold:
            return
        row = {
            "key": self._key(spec),
            "figure": spec.id,
            "seed": seed,
            "claims": {v.claim.id: (v.values[0], v.problem) for v in outcome.verdicts},
            "digest": outcome.digest,
            "wall_s": outcome.wall_s,
        }
        if outcome.pictures:
            files = {path.relative_to(self.out).as_posix(): _digest(path) for path in outcome.pictures}
            row |= {"drawn": self._drawn(spec), "files": files}
        self._append(row)

    def _append(self, row: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            # Starts a new line after an incomplete one, which a stopped machine may have left.
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(json.dumps(row).encode() + b"\n")
        self._found.setdefault((row["key"], row["seed"]), {}).update(row)

    def _key(self, spec: FigureSpec) -> str:
        """Returns a hash of everything that determines numbers: program, form, figure files and their input files."""
        digest = hashlib.sha256(f"{self._program} {self.form}".encode())
        beside = (file for file in sorted(spec.path.parent.iterdir()) if file.suffix != ".toml" and file.name != NAME)
        for file in filter(Path.is_file, beside):
            digest.update(file.read_bytes())
        for file in self._read(spec):
            digest.update(numbers(file))
        return digest.hexdigest()

    def _drawn(self, spec: FigureSpec) -> str:
        """Returns a hash of the complete figure files, which also determine the picture."""
        return hashlib.sha256(b"\0".join(file.read_bytes() for file in self._read(spec))).hexdigest()

    def _read(self, spec: FigureSpec) -> list[Path]:
        return [spec.path, *(self.files[reuse.figure] for reuse in spec.reuse)]

    @cached_property
    def _program(self) -> str:
        package = Path(__file__).parents[1]
        digest = hashlib.sha256(engine().encode())
        for file in (*sorted(package.glob("*.py")), *sorted(package.glob("figures/*.py"))):
            digest.update(file.read_bytes())
        return digest.hexdigest()


def _digest(file: Path) -> str | None:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None
