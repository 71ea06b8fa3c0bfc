# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes the pages of docs/results from the figures' files and `expected.json`: `python -m flowstamp.figures.report`.

One page per paper: its headlines (claims with `headline = true`), what differs and why, and all claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from flowstamp.figures.catalogue import available, read
from flowstamp.figures.command import shown_number, shown_values
from flowstamp.figures.memory import Memory
from flowstamp.figures.scores import PAPERS, Score, paper_of, scores
from flowstamp.figures.spec import Claim, FigureSpec, Of
from flowstamp.figures.verdicts import HOLDING, Verdict
from flowstamp.files import write_whole

FOLDER = Path(__file__).resolve().parents[3] / "docs/results"
TITLES = {
    "XCP": "*Congestion Control for High Bandwidth-Delay Product Networks*, SIGCOMM 2002",
    "RCP": "*Rate Control Protocol (RCP): Congestion Control to Make Flows Complete Quickly*, thesis, Stanford 2007",
    "VCP": "*One more bit is enough*, IEEE/ACM Transactions on Networking 16(6), 2008",
    "XCP-b": "*XCP for Shared-Access Multi-Rate Media*, ACM Computer Communication Review 36(3), 2006",
    "PCP": "*Using Precise Feedback for Controlling Congestion in the Internet*, MIT/LCS/TR-820, 2001",
}
HEADS: Mapping[Of, str] = {
    "paper": "The paper's",
    "ours": "Ours: variants of the set-up, and what the paper does not say",
    "identity": "Identities: what arithmetic alone gives",
}
PROVISIONAL = "provisional"
TABLE = "| figure | claim | expected | mean and band | verdict | seeds |\n|---|---|---|---|---|---|"


def plain(text: str) -> str:
    """Formats words of a figure's file as Markdown that shows them as they are, except text in backticks."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_{}\[\]<>#|$~^])", r"\\\1", part) for part in parts)


def cell(text: str) -> str:
    """Formats words for a table, where a bar ends a cell even in backticks."""
    return re.sub(r"(?<!\\)\|", r"\|", plain(text))


def expected(claim: Claim) -> str:
    """Formats a claim's bound."""
    slack = f" ± {claim.bound.tolerance}" if claim.bound.slack else ""
    return f"`{claim.bound.expected}{slack}`"


def seeds(verdict: Verdict) -> str:
    """Formats with how many seeds a claim holds; `PROVISIONAL` if only seed 1 has run, empty if nothing is random."""
    return PROVISIONAL if verdict.provisional else verdict.seeds


def row(figure: FigureSpec, verdict: Verdict) -> str:
    """Formats a claim as a row of `TABLE`."""
    status = verdict.status if verdict.status != "fails" else "**fails**"
    link = f"[{figure.id}](../gallery/{figure.id}.md)"
    cells = [link, cell(verdict.claim.paper), expected(verdict.claim), shown_values(verdict), status, seeds(verdict)]
    return f"| {' | '.join(cells)} |"


class Page:
    """The page of one paper."""

    def __init__(self, score: Score, figures: Iterable[FigureSpec], memory: Memory) -> None:
        self.score = score
        self.verdicts = [(spec, one) for spec in figures for one in memory.all_verdicts(spec).values()]

    def text(self) -> str:
        """Returns the page as Markdown."""
        return "\n\n".join(self._parts()) + "\n"

    def _parts(self) -> Iterator[str]:
        law = self.score.law
        authors = next(paper for paper, name in PAPERS.items() if name == law)
        yield f"# {law}"
        yield (
            f"{authors}: {TITLES[law]}. **{self.score.held} of its {len(self.score.results)} published results hold**"
            f"{f' ({self.score.but})' if self.score.but else ''}. [How claims are judged](../how-claims-are-judged.md) "
            f"says how results are counted, [the model's page](../models/{law.lower()}.md) describes the law."
        )
        yield "## Headlines"
        seen = set[str]()
        for spec, one in self.verdicts:
            if one.claim.headline:
                yield from self._headline(spec, one, picture=spec.id not in seen)
                seen.add(spec.id)
        yield "## What differs, and why"
        yield "\n".join(self._different()) or "Nothing."
        yield "## All claims"
        for whose, head in HEADS.items():
            rows = [row(spec, one) for spec, one in self.verdicts if one.claim.whose == whose]
            if rows:
                yield f"### {head}"
                yield "\n".join([TABLE, *rows])

    @staticmethod
    def _headline(spec: FigureSpec, one: Verdict, *, picture: bool) -> Iterator[str]:
        yield f"### {plain(one.claim.paper)}"
        if picture:  # The site puts the figure's picture in the place of this link.
            yield f"[Picture of {spec.id}](../gallery/{spec.id}.md)"
        count = {"": "", PROVISIONAL: f" ({PROVISIONAL})"}.get(seeds(one), f" ({seeds(one)} seeds)")
        where = cell(spec.paper.removeprefix(paper_of(spec)).strip(", "))
        cells = [f"**{one.status}**{count}", shown_values(one), expected(one.claim), where]
        command = f"`flowstamp figure {spec.id} --seeds 5`"
        yield f"| verdict | ours | paper | where | run it |\n|---|---|---|---|---|\n| {' | '.join([*cells, command])} |"
        yield f"Bound: {plain(one.claim.source).rstrip('.')}."

    def _different(self) -> Iterator[str]:
        shared: dict[tuple[str, str], list[str]] = {}
        for spec, one in self.verdicts:
            if one.claim.whose == "paper" and not one.untold and one.status not in HOLDING:
                told = f"*{plain(one.claim.paper)}*: {shown_number(one.measured)} for {expected(one.claim)}"
                why = one.claim.explanation or "No explanation yet."
                shared.setdefault((spec.id, plain(why)), []).append(told)
        for (figure, why), several in shared.items():
            yield f"- [{figure}](../gallery/{figure}.md): {'; '.join(several)}. {why}"


def pages() -> dict[str, str]:
    """Returns the text of each page by file name."""
    files = available()
    specs, memory = [read(file) for file in files.values()], Memory.beside(files)
    return {
        f"{score.law.lower()}.md": Page(
            score, [spec for spec in specs if PAPERS.get(paper_of(spec)) == score.law], memory
        ).text()
        for score in scores(specs, memory)
        if score.law in TITLES
    }


def main() -> None:
    """Writes the pages."""
    for name, text in pages().items():
        write_whole(FOLDER / name, text)


if __name__ == "__main__":
    main()
