# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes the pages of docs/results from the figures' files and `expected.json`: `python -m flowstamp.figures.report`.

A page per paper has its score, an overview (`overviews.toml`), the main causes of what differs (`causes.toml`), its
headlines (claims with `headline = true`) and each differing claim by cause. A second page has all claims in the paper's
order. If the first page would be too long, the differing claims have pages of their own.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from flowstamp.figures.catalogue import available, read
from flowstamp.figures.command import shown_number, shown_values
from flowstamp.figures.kinds import kind, origin, unit
from flowstamp.figures.memory import Memory
from flowstamp.figures.scores import PAPERS, Score, paper_of, scores
from flowstamp.figures.spec import Claim, FigureSpec, Of
from flowstamp.figures.verdicts import HOLDING, Verdict
from flowstamp.files import write_whole

FOLDER = Path(__file__).resolve().parents[3] / "docs/results"
CAUSES = FOLDER / "causes.toml"
OVERVIEWS = FOLDER / "overviews.toml"
TITLES = {
    "XCP": "*Congestion Control for High Bandwidth-Delay Product Networks*, SIGCOMM 2002",
    "RCP": "*Rate Control Protocol (RCP): Congestion Control to Make Flows Complete Quickly*, thesis, Stanford 2007",
    "VCP": "*One more bit is enough*, IEEE/ACM Transactions on Networking 16(6), 2008",
    "XCP-b": "*XCP for Shared-Access Multi-Rate Media*, ACM Computer Communication Review 36(3), 2006",
    "PCP": "*Using Precise Feedback for Controlling Congestion in the Internet*, MIT/LCS/TR-820, 2001",
}
HEADS: Mapping[Of, str] = {
    "paper": "The paper's claims",
    "ours": "Our own claims: variants of the set-up, and what the paper does not say",
    "identity": "Identities: what arithmetic alone gives",
}
TERMS = (
    "Names in code, such as `xcp-no-drops`, are claims of the same figure, or of the figure named before them.",
    "*Jain's index* of fairness is 1 if all flows get the same rate. The *bandwidth-delay product* is the capacity "
    "times the round-trip time (RTT).",
    "*Start-up* is the warm-up, which is left out of means.",
    "*Ack compression* is the bunching of acks that wait behind data in a queue, so that senders answer with bursts.",
    "*The same flows* in ns-2 have the same starts and sizes as ours.",
)
"""Terms of every paper. A page has those whose words it uses."""
WORDS = {
    "XCP": (
        "*Fast hosts* have links of ten times the bottleneck's capacity. Those of the main set-up have the "
        "bottleneck's own, as in the authors' script.",
        "*The bound on increases* is a rule of the authors' code that the paper does not state: in an interval, a "
        "router gives out at most what 0.6 of the buffer can hold.",
        "Where a buffer counts packets, an ack takes a packet's place.",
    ),
    "RCP": (
        "*R* is the rate that a router offers, *C* the capacity, *u* the utilisation and *q* the queue.",
        "*AFCT* is the average flow completion time, and *PS* is processor sharing, the thesis's ideal.",
        "*Sack* is the thesis's TCP.",
        "*Other gains* are other values of alpha and beta.",
        "A *held* load is one where the arrivals of a run add up to the load that the thesis states.",
    ),
    "VCP": (
        "*The equations alone* and the curve `paper` are equations 6 and 8 without the two limiters, whose numbers our "
        "copy of the paper lacks. The other curves of VCP have the constants of *the authors' code* in ns-2.",
        "*t_rho* is the interval over which a router measures its load: 200 ms in the paper, and 500 ms for RTTs above "
        "800 ms.",
    ),
    "XCP-b": (
        "*802.11b* is Wi-Fi with data rates up to 11 Mb/s. At *scale* 20 they are 20 times as high.",
        "*blind* in a claim's name is XCP-b, whose router does not know the rate of its cell.",
        "A *cell* is a network of Wi-Fi stations around one access point.",
        "*Up* is from the stations, *down* is to them.",
    ),
    "PCP": ("*T_c* is the control interval of the router.",),
}
"""Terms of the set-ups of a paper's figures."""
MOST_LINES = 250
"""The length from which a page is two."""
PROVISIONAL = "provisional"
OTHER = "Other causes"
OURS = (
    "*Ours* is the mean over the seeds, with the least and the largest value of a seed in brackets. [The "
    "word](../how-claims-are-judged.md#words-before-a-number) before a number, such as *least*, says what the number "
    "is. The figure's page has the exact expression, and `flowstamp figure NAME --seeds 5` repeats a row."
)
HEADLINES = (
    "| figure | the paper says | verdict | ours | holds if | where the bound comes from |\n|---|---|---|---|---|---|"
)
DIFFERENCES = "| figure | the paper says | ours | holds if |\n|---|---|---|---|"
TABLE = "| figure | claim | holds if | ours | verdict | seeds |\n|---|---|---|---|---|---|"


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
    status = verdict.status if verdict.untold else f"**{verdict.status}**"
    claim = f"{cell(verdict.claim.paper)} (`{verdict.claim.id}`)"
    cells = [link(figure), claim, expected(verdict.claim), ours(verdict), status, seeds(verdict)]
    return line(cells)


def ours(verdict: Verdict) -> str:
    """Formats a claim's value, after a word that says what it is."""
    number, bracket, band = shown_values(verdict).partition(" (")
    if verdict.measured is None:
        return number
    number = apart(verdict, number)
    claim = verdict.claim
    # A quotient or a difference with a unit of its own is no ratio.
    what = re.sub(r" ?(ratio|difference)$", "", kind(claim.expr)) if claim.unit else kind(claim.expr)
    words = (what, number, claim.unit or unit(claim.expr), origin(claim.expr))
    return " ".join(filter(None, words)) + bracket + band


def in_prose(value: float | None, *, percent: bool) -> str:
    """Formats a value with fewer digits than tables have, such as 78% or 1.44. A share close to 1 keeps four."""
    if value is None:
        return shown_number(value)
    close = 0.99 < value < 1
    return f"{100 * value:.{4 if close else 2}g}%" if percent else f"{value:.{4 if close else 3}g}"


def apart(verdict: Verdict, number: str) -> str:
    """Formats a mean that misses a bound by less than its digits show with as many digits as tell them apart."""
    bound = re.search(r"-?[\d.]+(?:e-?\d+)?", verdict.claim.bound.expected)
    if bound is None or verdict.measured is None or verdict.status in HOLDING:
        return number
    edges = (float(bound[0]) - verdict.claim.bound.slack, float(bound[0]) + verdict.claim.bound.slack)
    for digits in range(5, 10):
        if all(f"{verdict.measured:.{digits - 1}g}" != f"{edge:.{digits - 1}g}" for edge in edges):
            break
        number = f"{verdict.measured:.{digits}g}"
    return number


def link(figure: FigureSpec) -> str:
    """Formats a link to a figure's page in the gallery."""
    return f"[{figure.id}](../gallery/{figure.id}.md)"


def anchor(title: str) -> str:
    """Returns the anchor of a heading, as GitHub and the site make it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


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


@dataclass(frozen=True)
class Cause:
    """Why several claims of a paper differ."""

    title: str
    text: str
    run: str
    """The command that shows it."""
    claims: frozenset[tuple[str, str]]
    """Figures and claims."""


def causes() -> dict[str, list[Cause]]:
    """Reads the causes of each paper, in the order of the page."""
    tables = tomllib.loads(CAUSES.read_text(encoding="utf-8"))
    return {law: [_cause(**table) for table in several] for law, several in tables.items()}


def _cause(title: str, text: str, run: str, claims: Mapping[str, list[str]]) -> Cause:
    return Cause(title, text, run, frozenset((figure, claim) for figure, ids in claims.items() for claim in ids))


def overviews() -> dict[str, dict[str, str]]:
    """Reads the paragraphs that open each paper's page, by their first words."""
    return tomllib.loads(OVERVIEWS.read_text(encoding="utf-8"))


Found = tuple[FigureSpec, Verdict]


class Page:
    """The page of one paper."""

    def __init__(self, score: Score, figures: Iterable[FigureSpec], memory: Memory, known: Iterable[Cause]) -> None:
        self.score = score
        ordered = sorted(figures, key=place)
        self.verdicts = [(spec, one) for spec in ordered for one in memory.all_verdicts(spec).values()]
        self.headlines = [found for found in self.verdicts if found[1].claim.headline]
        self.others = [found for found in self.verdicts if differs(found[1])]
        self.caused: list[tuple[Cause, list[Found]]] = []
        for cause in known:
            several = [(spec, one) for spec, one in self.others if (spec.id, one.claim.id) in cause.claims]
            if several:
                self.caused.append((cause, several))
                self.others = [found for found in self.others if found not in several]

    def texts(self) -> dict[str, str]:
        """Returns the pages of the paper as Markdown, by file name."""
        name = self.score.law.lower()
        found = {f"{name}.md": self._whole(self._summary("", ""))}
        if found[f"{name}.md"].count("\n") > MOST_LINES:
            caused, others = f"{name}-differences.md", f"{name}-other-differences.md"
            found[f"{name}.md"] = self._whole(self._summary(caused, others))
            found[caused] = self._whole(self._beside("what differs, by cause", self._caused("##")))
            found[others] = self._whole(self._beside("what else differs", self._explained("##")))
        return found | {f"{name}-claims.md": self._whole(self._beside("all claims", self._claims()))}

    def _summary(self, caused: str, others: str) -> Iterator[str]:
        law = self.score.law
        authors = next(paper for paper, name in PAPERS.items() if name == law)
        always = sum(all(one.status == "holds" for one in result.verdicts) for result in self.score.results)
        yield f"# {law}'s published results"
        yield (
            f"**{self.score.held} of {len(self.score.results)} published results hold**"
            f"{f' ({self.score.but})' if self.score.but else ''} in Flowstamp, {always} of them with every seed. "
            f"The paper is {authors}: {TITLES[law]}. "
            f"[How claims are judged](../how-claims-are-judged.md) explains verdicts and the count. "
            f"[The model's page](../models/{law.lower()}.md) describes the law. "
            f"[All claims]({law.lower()}-claims.md) have a page of their own. [Terms](#terms) are explained at the end."
        )
        yield from self._overview()
        yield "## Main causes of differences"
        yield from self._main_causes(caused, others or f"#{anchor(OTHER)}")
        yield "## Headlines"
        yield from self._headlines()
        if not caused:
            yield from self._different()
        yield "## Pictures of the headlines"
        for spec in {spec.id: spec for spec, _ in self.headlines}.values():
            yield f"**{spec.id}: {plain(spec.title)}.** {self._where(spec)}"
            # The site puts the figure's picture in the place of this link.
            yield f"[Picture of {spec.id}](../gallery/{spec.id}.md)"

    def _beside(self, what: str, parts: Iterable[str]) -> Iterator[str]:
        """Returns a page that [the summary](self._summary) links to."""
        law = self.score.law
        yield f"# {law}: {what}"
        yield (
            f"This page belongs to [{law}'s published results]({law.lower()}.md), which has the main causes of "
            f"differences and the headlines. {OURS}"
        )
        yield from parts

    def _overview(self) -> Iterator[str]:
        """Yields what the results mean, for researchers and for operators, with numbers of claims in place of names."""
        measured = {f"{spec.id}:{one.claim.id}": one for spec, one in self.verdicts}

        def number(found: re.Match[str]) -> str:
            return in_prose(measured[found[1]].measured, percent=bool(found[2]))

        for head, text in overviews()[self.score.law].items():
            told = re.sub(r"\{([^}%]+)(%?)\}", number, text)
            yield f"**{head}.** {plain(told)}"

    def _whole(self, parts: Iterable[str]) -> str:
        """Joins a page's parts and adds the terms that they use."""
        written = list(parts)
        return joined([*written, *self._terms("\n".join(written).replace("\\", ""))])

    def _terms(self, text: str) -> Iterator[str]:
        yield "## Terms"
        yield "\n".join(f"- {term}" for term in (*TERMS, *WORDS.get(self.score.law, ())) if used(term, text))
        yield "The [glossary](../glossary.md) has more."

    def _claims(self) -> Iterator[str]:
        for whose, head in HEADS.items():
            rows = [row(spec, one) for spec, one in self.verdicts if one.claim.whose == whose]
            if rows:
                yield f"## {head}"
                yield "\n".join([TABLE, *rows])

    @staticmethod
    def _where(spec: FigureSpec) -> str:
        where = plain(spec.paper.removeprefix(paper_of(spec)).strip(", "))
        return f"{where[0].upper()}{where[1:]}."

    def _main_causes(self, page: str, others: str) -> Iterator[str]:
        groups = [(cause.title, f"{page}#{anchor(cause.title)}", several) for cause, several in self.caused]
        if self.others:
            groups.append((OTHER, others, self.others))
        if not groups:
            yield "Nothing differs."
            return
        rows = []
        for title, where, several in groups:
            figures = dict.fromkeys(spec.id for spec, _ in several)
            rows.append(line([f"[{title}]({where})", str(len(several)), ", ".join(figures)]))
        yield "\n".join(["| cause | claims | figures |\n|---|---|---|", *rows])
        yield (
            "The table counts claims. Several claims can state one result, so the counts can exceed the number of "
            "results that differ."
        )

    def _headlines(self) -> Iterator[str]:
        yield OURS
        rows = []
        for spec, one in self.headlines:
            count = {"": "", PROVISIONAL: f" ({PROVISIONAL})"}.get(seeds(one), f" ({seeds(one)} seeds)")
            told = [link(spec), cell(one.claim.paper), f"**{one.status}**{count}", ours(one)]
            rows.append(line([*told, expected(one.claim), cell(one.claim.source.strip())]))
        yield "\n".join([HEADLINES, *rows])

    def _different(self) -> Iterator[str]:
        if self.caused or self.others:
            yield "## What differs"
        if self.caused:
            yield from self._caused("###")
        if self.others:
            yield f"### {OTHER}"
            yield from self._explained("####")

    def _caused(self, head: str) -> Iterator[str]:
        yield (
            "The command below each cause repeats runs behind it. The figure's page explains each claim, and has the "
            "commands for other numbers, such as those of ns-2."
        )
        for cause, several in self.caused:
            yield f"{head} {cause.title}"
            yield plain(cause.text)
            yield f"```sh\n{cause.run.strip()}\n```"
            yield "\n".join([DIFFERENCES, *map(difference, several)])

    def _explained(self, head: str) -> Iterator[str]:
        for _, found in groupby(self.others, key=lambda one: one[0].id):
            several = list(found)
            yield f"{head} {several[0][0].id}: {plain(several[0][0].title)}"
            shared: dict[str, list[str]] = {}
            for _, one in several:
                claim = f"*{plain(one.claim.paper)}* (`{one.claim.id}`)"
                told = f"{claim}: {ours(one)}, expected {expected(one.claim)}"
                shared.setdefault(plain(one.claim.explanation or "No explanation yet."), []).append(told)
            yield "\n\n".join(f"- {'; '.join(told)}.<br>{with_command(why)}" for why, told in shared.items())


def used(term: str, text: str) -> bool:
    """Whether a page has one of the words that a term explains, which are in italics. Others are on all pages."""
    words = re.findall(r"\*([^*]+)\*", term)
    if not words:
        return True
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, 0 if len(word) < 3 else re.I) for word in words)


def differs(verdict: Verdict) -> bool:
    """Whether a claim of the paper has a verdict and does not hold."""
    return verdict.claim.whose == "paper" and not verdict.untold and verdict.status not in HOLDING


def difference(found: Found) -> str:
    """Formats a differing claim as a row of `DIFFERENCES`."""
    spec, one = found
    return line([link(spec), f"{cell(one.claim.paper)} (`{one.claim.id}`)", ours(one), expected(one.claim)])


LONG = 45
"""The length from which a command at the end of an explanation gets lines of its own."""


def with_command(why: str) -> str:
    """Moves a long command at the end of an explanation into a block of its own, below a list's item."""
    found = re.fullmatch(r"(.*?)(:?)[ (]*`((?:tools/|python3? |flowstamp |cargo )[^`]+)`\)?\.?", why)
    if found is None or len(found[3]) < LONG:
        return why
    return f"{found[1].rstrip('.')}{found[2] or '.'}\n\n  ```sh\n  {found[3]}\n  ```"


def joined(parts: Iterable[str]) -> str:
    """Joins the paragraphs of a page."""
    return "\n\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """Returns the text of each page by file name."""
    files = available()
    specs, memory, known = [read(file) for file in files.values()], Memory.beside(files), causes()
    return {
        name: text
        for score in scores(specs, memory)
        if score.law in TITLES
        for name, text in Page(
            score,
            [spec for spec in specs if PAPERS.get(paper_of(spec)) == score.law],
            memory,
            known.get(score.law, []),
        )
        .texts()
        .items()
    }


def main() -> None:
    """Writes the pages."""
    for name, text in pages().items():
        write_whole(FOLDER / name, text)


if __name__ == "__main__":
    main()
