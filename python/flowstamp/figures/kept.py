# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What figures gave, kept in the output folder: whoever is called again goes on where it was.

A line of `kept.jsonl` has what one figure's claims gave with one seed, and which files were written of it. It stands
for that as long as neither program nor figure has changed: the same program gives the same numbers.
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
from flowstamp.figures.memory import Form
from flowstamp.figures.spec import FigureSpec
from flowstamp.figures.verdicts import Outcome, Verdict

KEPT = "kept.jsonl"
Values = Mapping[str, tuple[float | None, str]]
"""By claim: what was measured, or why nothing was."""

WORDS = ("title", "paper", "notes", "draw")


def numbers(file: Path) -> bytes:
    """What of a figure's file the numbers come from."""
    table = {key: value for key, value in tomllib.loads(file.read_text(encoding="utf-8")).items() if key not in WORDS}
    table["claims"] = [(claim["id"], claim["expr"], claim.get("each_seed", False)) for claim in table.get("claims", ())]
    return json.dumps(table, default=str).encode()


class Kept:
    """The file: one line for each figure and seed that has run, only ever appended to."""

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
                    continue  # what was being written when the machine stopped

    def values(self, spec: FigureSpec, seed: int) -> Values | None:
        """What the claims gave with a seed."""
        row = self._found.get((self._key(spec), seed))
        return row and row["claims"]

    def outcome(self, spec: FigureSpec, seed: int) -> Outcome | None:
        """A figure that was run, if all that was written of it stands in the folder as it was."""
        row = self._found.get((self._key(spec), seed), {})
        if spec.measured or row.get("drawn") != self._drawn(spec):
            return None
        written: Mapping[str, str] = row["files"]
        if any(_digest(self.out / name) != digest for name, digest in written.items()):
            return None
        verdicts = [Verdict(claim, *row["claims"][claim.id]) for claim in spec.claims]
        return Outcome(spec, row["wall_s"], verdicts, [self.out / name for name in written], kept=True)

    def put(self, spec: FigureSpec, seed: int, values: Values) -> None:
        """Keeps what claims gave."""
        self._append({"key": self._key(spec), "figure": spec.id, "seed": seed, "claims": values})

    def put_outcome(self, outcome: Outcome, seed: int) -> None:
        """Keeps a figure that was run. Not what a kernel measured: with the same seed it is another experiment."""
        spec = outcome.figure
        if spec.measured or outcome.untold:
            return
        row = {
            "key": self._key(spec),
            "figure": spec.id,
            "seed": seed,
            "claims": {v.claim.id: (v.measured, v.problem) for v in outcome.verdicts},
            "wall_s": outcome.wall_s,
            "drawn": self._drawn(spec),
            "files": {path.relative_to(self.out).as_posix(): _digest(path) for path in outcome.pictures},
        }
        self._append(row)

    def _append(self, row: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            # What a machine that stopped has left of a line must not spoil this one.
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(json.dumps(row).encode() + b"\n")
        self._found.setdefault((row["key"], row["seed"]), {}).update(row)

    def _key(self, spec: FigureSpec) -> str:
        """Stands for all that numbers come from: program, form, figures' files but for words, and what they read."""
        digest = hashlib.sha256(f"{self._program} {self.form}".encode())
        beside = (file for file in sorted(spec.path.parent.iterdir()) if file.suffix not in (".toml", ".json"))
        for file in filter(Path.is_file, beside):
            digest.update(file.read_bytes())
        for file in self._read(spec):
            digest.update(numbers(file))
        return digest.hexdigest()

    def _drawn(self, spec: FigureSpec) -> str:
        """Stands for what a picture has beside numbers."""
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
