# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes the table of docs/validation.md from `figures/expected.json`: `python -m flowstamp.figures.report PAGE`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from flowstamp.figures.catalogue import available, read
from flowstamp.figures.command import shown_number
from flowstamp.figures.memory import Memory
from flowstamp.figures.spec import FigureSpec
from flowstamp.figures.verdicts import Verdict
from flowstamp.files import write_whole

BEGIN, END = "<!-- figures: begin, written by flowstamp.figures.report -->", "<!-- figures: end -->"
HEAD = ["| figure | claim | expected | measured | seeds 1 to 5 | result |", "|---|---|---|---|---|---|"]


OURS = "Claims of ours, which no paper makes:"


def rows(figure: FigureSpec, known: Mapping[str, Verdict], *, ours: bool) -> list[str]:
    """Returns table rows of a figure's accepted claims, those of the paper or our own (`ours`)."""
    lines = []
    for claim in figure.claims:
        if claim.id not in known or (claim.whose == "ours") != ours:
            continue
        was, bound = known[claim.id], claim.bound
        slack = "" if bound.tolerance == "0" else f" ± {bound.tolerance}"
        band = " to ".join(dict.fromkeys(map(shown_number, was.band or ())))
        result = was.status if was.status != "fails" else "**fails**"
        cells = [figure.id, claim.paper, f"`{bound.expected}{slack}`", shown_number(was.measured), band, result]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def table() -> str:
    """Returns the claims and full-version results of all figures as Markdown tables: the papers' claims, then ours."""
    files = available()
    memory = Memory.beside(files)

    def lines(*, ours: bool) -> list[str]:
        return [row for spec in map(read, files.values()) for row in rows(spec, memory.verdicts(spec), ours=ours)]

    return "\n".join([*HEAD, *lines(ours=False), "", OURS, "", *HEAD, *lines(ours=True)])


def parts(page: str) -> tuple[str, str, str]:
    """Splits a page into the parts before, in and after the table."""
    before, rest = page.split(f"{BEGIN}\n")
    old, after = rest.split(f"\n{END}")
    return before, old, after


def main(page: Path) -> None:
    """Replaces the table between the markers of a page."""
    before, _, after = parts(page.read_text(encoding="utf-8"))
    write_whole(page, f"{before}{BEGIN}\n{table()}\n{END}{after}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
