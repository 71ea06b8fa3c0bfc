# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Stores the pictures that the gallery shows: python docs/store_pictures.py OUT...

Each OUT is an output folder of `flowstamp figure`. A picture is stored if its run gave the accepted values of the
figure (`figures/expected.json`). The whole version comes before the short one. Pictures of kernel measurements are
stored as they are. Run this before a release:

    flowstamp figure all --out out/figures
    python docs/store_pictures.py out/figures

It needs pdftocairo, of the Debian package poppler-utils.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import math
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))
from pictures import Pictures, digest

from flowstamp.figures import available, read
from flowstamp.figures.kept import KEPT
from flowstamp.figures.memory import Form, Memory

TOLERANCE = 1e-3
"""How far a run's value may be from the accepted one. Some accepted values have four digits only."""
DECIMALS = 2
"""Decimals of a coordinate in points: a hundredth is less than a pixel on any screen."""


def rows(out: Path) -> Iterator[dict[str, Any]]:
    """Yields the complete lines of an output folder's cache, the newest first."""
    path = out / KEPT
    for line in reversed(path.read_text(encoding="utf-8").splitlines() if path.exists() else []):
        try:
            yield json.loads(line)
        except ValueError:
            continue


def drawn(out: Path, row: Mapping[str, Any]) -> bool:
    """Whether a row's files are the ones in the folder."""
    files = {out / name: digest for name, digest in row.get("files", {}).items()}
    return bool(files) and all(
        file.exists() and hashlib.sha256(file.read_bytes()).hexdigest() == known for file, known in files.items()
    )


def form_of(row: Mapping[str, Any], memory: Memory) -> Form | None:
    """Returns the version whose accepted values a run gave; None if there is none."""
    for form in reversed(get_args(Form)):
        known = memory.claims(row["figure"], form)
        common = known.keys() & row.get("claims", {}).keys()
        if common and all(same(known[claim].values, row["claims"][claim][0]) for claim in common):
            return form
    return None


def same(accepted: Sequence[float | None], value: float | None) -> bool:
    """Whether a run gave the value that is accepted of the first seed."""
    if not accepted or accepted[0] is None or value is None:
        return bool(accepted) and accepted[0] == value
    return math.isclose(accepted[0], value, rel_tol=TOLERANCE, abs_tol=TOLERANCE * TOLERANCE)


def svg(pdf: Path) -> bytes:
    """Converts a picture, with as many digits as a screen can show."""
    try:
        made = subprocess.run(["pdftocairo", "-svg", str(pdf), "-"], capture_output=True, check=True).stdout
    except FileNotFoundError:
        sys.exit("store_pictures: pdftocairo is not installed; apt-get install poppler-utils")
    return shortened(made)


def shortened(picture: bytes) -> bytes:
    """Cuts the digits of coordinates. A matrix keeps its digits, because its error grows with the distance."""
    pattern = rb"matrix\([^)]*\)|(\d\.\d{%d})\d+" % DECIMALS
    return re.sub(pattern, lambda found: found[1] or found[0], picture)


def main(folders: list[Path]) -> int:
    """Stores what is better or newer than the stored pictures, and lists the figures without a current picture."""
    files = available()
    specs = {name: read(file) for name, file in files.items()}
    memory, pictures = Memory.beside(files), Pictures()
    found: dict[str, tuple[Path, Form]] = {}
    for out in folders:
        for row in rows(out):
            name = row.get("figure")
            if name not in specs or row.get("seed") != specs[name].seed or found.get(name, ("", ""))[1] == "full":
                continue
            form = form_of(row, memory)
            if form is not None and form != found.get(name, ("", ""))[1] and drawn(out, row):
                found[name] = out / f"{name}.pdf", form
        measured = {name: out / f"{name}.pdf" for name, spec in specs.items() if spec.measured}
        found |= {name: (pdf, "full") for name, pdf in measured.items() if pdf.exists()}
    pictures.folder.mkdir(exist_ok=True)
    for name, (pdf, form) in found.items():
        if form == "fast" and pictures.form(name) == "full" and not pictures.outdated(name, memory):
            continue
        packed = lzma.compress(svg(pdf), preset=9)
        if not pictures.file(name).exists() or pictures.file(name).read_bytes() != packed:
            pictures.file(name).write_bytes(packed)
        values = "" if specs[name].measured else digest(memory, name, form)
        pictures.index[name] = {"form": form, "values": values}
    pictures.index = {name: pictures.index[name] for name in specs if name in pictures.index}
    pictures.path.write_text(json.dumps(pictures.index, indent=1) + "\n", encoding="utf-8")
    lists = {
        "without a picture": [name for name in specs if name not in pictures.index],
        "with a picture of the short version": [name for name in pictures.index if pictures.form(name) == "fast"],
        "with a picture of values that have changed": [n for n in pictures.index if pictures.outdated(n, memory)],
    }
    for what, names in lists.items():
        if names:
            print(f"{len(names)} {what}: {' '.join(names)}")
    return 0


if __name__ == "__main__":
    sys.exit(main([Path(argument) for argument in sys.argv[1:]]))
