# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The pictures of the gallery, stored in `docs/pictures` as compressed SVG, so that no build of the site runs a figure.

`docs/store_pictures.py` writes them. `index.json` says from which version of the figure each one comes, and has a hash
of the accepted values that the picture shows: it is outdated when those values change.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Mapping
from pathlib import Path

from flowstamp.figures.memory import Form, Memory

FOLDER = Path(__file__).resolve().parents[1] / "pictures"
INDEX = "index.json"


def digest(memory: Memory, figure: str, form: Form) -> str:
    """Returns a hash of a figure's accepted values with seed 1, the seed of its picture."""
    values = {claim: known.values[:1] for claim, known in sorted(memory.claims(figure, form).items())}
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]


class Pictures:
    """A folder of stored pictures."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder, self.path = folder, folder / INDEX
        self.index: dict[str, dict[str, str]] = {}
        if self.path.exists():
            self.index = json.loads(self.path.read_text(encoding="utf-8"))

    def file(self, figure: str) -> Path:
        """Returns where a figure's picture is stored."""
        return self.folder / f"{figure}.svg.xz"

    def form(self, figure: str) -> Form | None:
        """Returns which version of a figure its picture shows; None if there is no picture."""
        forms: Mapping[str, Form] = {"full": "full", "fast": "fast"}
        return forms[self.index[figure]["form"]] if figure in self.index else None

    def outdated(self, figure: str, memory: Memory) -> bool:
        """Whether a figure's accepted values have changed since its picture was stored."""
        form = self.form(figure)
        return form is not None and self.index[figure]["values"] not in ("", digest(memory, figure, form))

    def unpack(self, into: Path) -> None:
        """Writes all pictures as SVG files into a folder, except those that are there already."""
        into.mkdir(parents=True, exist_ok=True)
        for figure in self.index:
            target, packed = into / f"{figure}.svg", self.file(figure)
            if not target.exists() or target.stat().st_mtime < packed.stat().st_mtime:
                target.write_bytes(lzma.decompress(packed.read_bytes()))
