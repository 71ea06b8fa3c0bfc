# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes the table of docs/validation.md: `python -m flowstamp.figures.report RESULTS.json docs/validation.md`.

Figures that are in the results get their rows anew; the others' stay.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from flowstamp.figures.command import shown_number
from flowstamp.figures.spec import available
from flowstamp.files import write_whole

BEGIN, END = "<!-- figures: begin, written by flowstamp.figures.report -->", "<!-- figures: end -->"
HEAD = ["| figure | claim | expected | measured | result |", "|---|---|---|---|---|"]


def rows(figure: dict[str, Any]) -> list[str]:
    """Every claim of one figure of a results.json."""
    lines = []
    for claim in figure["claims"]:
        result = claim["status"] if claim["status"] != "fails" else "**fails**"
        slack = "" if claim["tolerance"] == "0" else f" ± {claim['tolerance']}"
        measured = shown_number(claim["measured"])
        lines.append(f"| {figure['id']} | {claim['paper']} | `{claim['expected']}{slack}` | {measured} | {result} |")
    return lines


def table(document: dict[str, Any], old: str = "") -> str:
    """The claims of a results.json as a Markdown table, beside an old table's figures that are not among them."""
    found: dict[str, list[str]] = {}
    for line in old.splitlines():
        cells = line.split("|")
        if len(cells) > 1 and line not in HEAD:
            found.setdefault(cells[1].strip(), []).append(line)
    found |= {figure["id"]: rows(figure) for figure in document["figures"]}
    known = list(available())
    return "\n".join([*HEAD, *(line for of in known for line in found.get(of, []))])


def main(results: Path, page: Path) -> None:
    """Replaces rows of the table between the marks of a page."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    old, after = rest.split(END)
    new = table(json.loads(results.read_text(encoding="utf-8")), old)
    write_whole(page, f"{before}{BEGIN}\n{new}\n{END}{after}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
