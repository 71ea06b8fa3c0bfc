# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes the table of docs/validation.md: `python -m flowstamp.figures.report RESULTS.json docs/validation.md`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from flowstamp.figures.command import shown_number
from flowstamp.files import write_whole

BEGIN, END = "<!-- figures: begin, written by flowstamp.figures.report -->", "<!-- figures: end -->"


def table(document: dict[str, Any]) -> str:
    """Every claim of a results.json as a Markdown table."""
    lines = ["| figure | claim | expected | measured | result |", "|---|---|---|---|---|"]
    for figure in document["figures"]:
        for claim in figure["claims"]:
            result = "holds" if claim["holds"] else "differs" if "explanation" in claim else "**fails**"
            result = figure.get("status", result)
            slack = "" if claim["tolerance"] == "0" else f" ± {claim['tolerance']}"
            measured = shown_number(claim["measured"])
            lines.append(
                f"| {figure['id']} | {claim['paper']} | `{claim['expected']}{slack}` | {measured} | {result} |"
            )
    return "\n".join(lines)


def main(results: Path, page: Path) -> None:
    """Replaces the table between the marks of a page."""
    old = page.read_text(encoding="utf-8")
    before, rest = old.split(BEGIN)
    _, after = rest.split(END)
    new = table(json.loads(results.read_text(encoding="utf-8")))
    write_whole(page, f"{before}{BEGIN}\n{new}\n{END}{after}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
