# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes the pages of docs/results from the figures' files and `expected.json`: `python -m flowstamp.figures.report`.

One page per paper, in the paper's order: its headlines (claims with `headline = true`), what differs and why, and all
claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

from flowstamp.figures.catalogue import available, read
from flowstamp.figures.command import shown_values
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
READING = (
    "A value is the mean over the seeds, followed by the least and the largest value of a seed. Names such as "
    "`xcp-no-drops` are other claims of the same figure, or of the figure named before them; the tables at the end of "
    "the page have all names. The [glossary](../glossary.md) explains terms. *Start-up* is the warm-up, "
    "which is left out of means. *Ack compression* is the bunching of acks that wait behind data in a queue, so that "
    "senders answer with bursts. *The same flows* in ns-2 have the same starts and sizes as ours. "
)
"""The terms that every page uses."""
WORDS = {
    "XCP": "*Fast hosts* have links of ten times the bottleneck's capacity, where those of the main set-up have the "
    "bottleneck's own, as in the authors' script. *The bound on increases* is a rule of the authors' code that the "
    "paper does not state: in an interval, a router gives out at most what 0.6 of the buffer can hold. Where a buffer "
    "counts packets, an ack takes a packet's place.",
    "RCP": "*R* is the rate that a router offers, *C* the capacity, *u* the utilisation and *q* the queue. *AFCT* is "
    "the average flow completion time, and *PS* is processor sharing, the thesis's ideal. *Sack* is the thesis's TCP. "
    "*Other gains* are other values of alpha and beta. A *held* load is one where the arrivals of a run add up to the "
    "load that the thesis states.",
    "VCP": "*The equations alone* and the curve `paper` are equations 6 and 8 without the two limiters, whose numbers "
    "are missing from the text. The other curves of VCP have the constants of *the authors' code* in ns-2.",
    "XCP-b": "A *cell* is a network of Wi-Fi stations around one access point. *Up* is from the stations, *down* is to "
    "them.",
    "PCP": "*T_c* is the control interval of the router.",
}
"""Terms of the set-ups of a paper's figures."""
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
    claim = f"{cell(verdict.claim.paper)} (`{verdict.claim.id}`)"
    cells = [link, claim, expected(verdict.claim), shown_values(verdict), status, seeds(verdict)]
    return line(cells)


def line(cells: Iterable[str]) -> str:
    """Formats the cells of a table's row."""
    return f"| {' | '.join(cells)} |"


ROMAN = {"I": 1, "II": 2, "III": 3, "IV": 4, "V": 5, "VI": 6, "VII": 7}


def place(spec: FigureSpec) -> tuple[bool, list[tuple[float, str]], float]:
    """Returns a key that sorts figures as their paper has them: by section, appendices last, then by figure."""
    where = spec.paper.removeprefix(paper_of(spec))
    sections = re.findall(r"(?:sections?|chapter|and) (\d[\d.]*|[IV]+(?:-[A-Z](?:\.\d+)?)?)", where)
    appendices = re.findall(r"appendix ([A-Z])", where)
    part = (sections or appendices or [""])[-1]
    steps = [
        (float(step), "") if step.isdigit() else (float(ROMAN.get(step, 0)), step) for step in re.split(r"[.-]", part)
    ]
    figure = re.search(r"figures? (?:\d+\.)?(\d+)", where)
    return not sections, steps, float(figure[1]) if figure else float("inf")


class Page:
    """The page of one paper."""

    def __init__(self, score: Score, figures: Iterable[FigureSpec], memory: Memory) -> None:
        self.score = score
        ordered = sorted(figures, key=place)
        self.verdicts = [(spec, one) for spec in ordered for one in memory.all_verdicts(spec).values()]

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
        yield READING + WORDS.get(law, "")
        yield "## Headlines"
        for spec, several in self._by_figure(one for one in self.verdicts if one[1].claim.headline):
            yield from self._headlines(spec, several)
        yield "## What differs, and why"
        yield from self._different()
        yield "## All claims"
        for whose, head in HEADS.items():
            rows = [row(spec, one) for spec, one in self.verdicts if one.claim.whose == whose]
            if rows:
                yield f"### {head}"
                yield "\n".join([TABLE, *rows])

    @staticmethod
    def _by_figure(found: Iterable[tuple[FigureSpec, Verdict]]) -> Iterator[tuple[FigureSpec, list[Verdict]]]:
        for _, several in groupby(found, key=lambda one: one[0].id):
            pairs = list(several)
            yield pairs[0][0], [verdict for _, verdict in pairs]

    @staticmethod
    def _headlines(spec: FigureSpec, several: Iterable[Verdict]) -> Iterator[str]:
        yield f"### {spec.id}: {plain(spec.title)}"
        # The site puts the figure's picture in the place of this link.
        yield f"[Picture of {spec.id}](../gallery/{spec.id}.md)"
        rows = []
        for one in several:
            count = {"": "", PROVISIONAL: f" ({PROVISIONAL})"}.get(seeds(one), f" ({seeds(one)} seeds)")
            rows.append([cell(one.claim.paper), f"**{one.status}**{count}", shown_values(one), expected(one.claim)])
        yield "\n".join(["| the paper says | verdict | ours | holds if |\n|---|---|---|---|", *map(line, rows)])
        where = plain(spec.paper.removeprefix(paper_of(spec)).strip(", "))
        yield f"{where[0].upper()}{where[1:]}. Run `flowstamp figure {spec.id} --seeds 5`."

    def _different(self) -> Iterator[str]:
        different = [
            (spec, one)
            for spec, one in self.verdicts
            if one.claim.whose == "paper" and not one.untold and one.status not in HOLDING
        ]
        if not different:
            yield "Nothing."
        for spec, several in self._by_figure(different):
            yield f"### {spec.id} differs: {plain(spec.title)}"
            shared: dict[str, list[str]] = {}
            for one in several:
                claim = f"*{plain(one.claim.paper)}* (`{one.claim.id}`)"
                told = f"{claim}: {shown_values(one)}, expected {expected(one.claim)}"
                shared.setdefault(plain(one.claim.explanation or "No explanation yet."), []).append(told)
            yield "\n".join(f"- {'; '.join(told)}.<br>{why}" for why, told in shared.items())


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
