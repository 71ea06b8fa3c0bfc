# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The gallery and the scores on the index page, generated from `figures/` while the site is built.

Sphinx needs a file for each page, so `docs/gallery/` gets files that have only a title. Their contents are generated
when Sphinx reads them. Pictures come from `docs/pictures` (`pictures.py`), so that a build runs no figure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from pictures import Pictures
from sphinx.application import Sphinx

import flowstamp
from flowstamp.figures import available, fct, read
from flowstamp.figures.memory import Form, Memory
from flowstamp.figures.pictures import bounds, claims_of
from flowstamp.figures.report import cell, expected, ours, plain, seeds
from flowstamp.figures.scores import PAPERS, paper_of, scores
from flowstamp.figures.spec import Claim, FigureSpec
from flowstamp.figures.verdicts import HOLDING, Verdict
from flowstamp.style import MOST_ENTRIES

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "gallery"
DRAWN = "pictures"
"""Folder of the unpacked pictures in the built site."""
FORMS: Mapping[Form, str] = {"full": "whole version", "fast": "short version"}
ILLUSTRATED = ("explanation/explicit-feedback-in-a-data-centre", "explanation/advice-for-video")
"""Pages beside those of results that show pictures."""
SCORES = "% scores"
"""The line of the index page that the scores replace."""
NAMES = {
    "abc": "ABC",
    "bbr": "BBR",
    "bbr3": "BBRv3",
    "bic": "BIC",
    "cubic": "CUBIC",
    "dctcp": "DCTCP",
    "fast": "FAST",
    "highspeed": "HighSpeed TCP",
    "hpcc": "HPCC",
    "htcp": "H-TCP",
    "newreno": "NewReno",
    "reno": "Reno",
    "sack": "SACK",
    "scalable": "Scalable TCP",
    "swift": "Swift",
    **{law.lower(): law for law in PAPERS.values()},
}
"""How the filter writes the names of laws; other laws keep the name that scenarios use."""


def grouped(specs: Mapping[str, FigureSpec]) -> dict[str, list[FigureSpec]]:
    """Groups figures by paper; figures of other papers come last."""
    found: dict[str, list[FigureSpec]] = {paper: [] for paper in PAPERS}
    for spec in specs.values():
        found.setdefault(paper_of(spec), []).append(spec)
    return {paper: group for paper, group in found.items() if group}


def laws_in(tree: object) -> Iterator[str]:
    """Yields the laws that a scenario, or the changes that a run makes to it, names."""
    match tree:
        case Mapping():
            for key, value in tree.items():
                if key == "law" or key.endswith(".law"):
                    if isinstance(value, str):
                        yield value
                    elif isinstance(value, Mapping) and "law" in value:
                        yield value["law"]
                elif key != "router" and not key.endswith(".router"):
                    yield from laws_in(value)
        case list() | tuple():
            for value in tree:
                yield from laws_in(value)


class Gallery:
    """Generates the pages."""

    def __init__(self, pictures: Pictures | None = None) -> None:
        self.files = available(ROOT / "figures")
        self.specs = {name: read(file) for name, file in self.files.items()}
        self.memory = Memory.beside(self.files)
        self.pictures = pictures or Pictures()

    def laws(self, spec: FigureSpec) -> set[str]:
        """Returns the sender laws in a figure, and the law of its paper."""
        named = set(laws_in([spec.scenario, spec.lab, *(run.set for run in spec.runs)]))
        for reuse in spec.reuse:
            named |= self.laws(self.specs[reuse.figure])
        return named | {PAPERS[paper].lower() for paper in PAPERS if paper == paper_of(spec)}

    # ------------------------------------------------------------------------------------------------ pages

    def scores(self) -> str:
        """The scores of the papers on the index page."""
        rows = []
        with_pages = (score for score in scores(self.specs.values(), self.memory) if score.law in PAPERS.values())
        for score in with_pages:
            name, total = escape(score.law), len(score.results)
            but = f"<small>{escape(score.but)}</small>" if score.but else ""
            rows.append(
                f'<a href="results/{name.lower()}.html"><b>{name}</b>'
                f'<meter min="0" max="{total}" value="{score.held}"></meter>'
                f"<span>{score.held} of {total}</span>{but}</a>"
            )
        return "\n".join(['<div class="scores">', *rows, "</div>"])

    def index(self) -> Iterator[str]:
        """The page with all figures."""
        claims = sum(len(spec.claims) for spec in self.specs.values())
        yield "---\nhide-toc: true\n---\n\n# Gallery"
        yield (
            f"Flowstamp reproduces {len(self.specs)} figures of {len(grouped(self.specs))} papers and checks "
            f"{claims} claims about them. "
            "Each figure has a page with its claims, the measured values, why the two differ, and the command that "
            "runs it. [How claims are judged](../how-claims-are-judged.md) explains the verdicts."
        )
        yield self._filters()
        for paper, group in grouped(self.specs).items():
            law = PAPERS.get(paper)
            yield f"## {law}: {paper}" if law else f"## {paper}"
            yield "\n".join(['<div class="gallery">', *map(self._card, group), "</div>"])
            yield "\n".join(["```{toctree}", ":hidden:", "", *(spec.id for spec in group), "```"])

    def _filters(self) -> str:
        """The menus, which a script shows and handles."""
        counts = Counter(law for spec in self.specs.values() for law in self.laws(spec))
        papers = [law.lower() for law in PAPERS.values()]
        order = [*papers, *sorted(counts.keys() - set(papers), key=lambda law: NAMES.get(law, law).lower())]
        options = "".join(
            f'<option value="{escape(law)}">{escape(NAMES.get(law, law))} ({counts[law]})</option>' for law in order
        )
        return (
            '<form class="filters" hidden>\n'
            f'<label>Law <select name="law"><option value="">all</option>{options}</select></label>\n'
            '<label>Claims <select name="verdict"><option value="">all</option>'
            '<option value="holds">all hold</option><option value="differs">some differ</option></select></label>\n'
            "<output></output>\n</form>"
        )

    def _card(self, spec: FigureSpec) -> str:
        laws = " ".join(sorted(self.laws(spec)))
        image = f'<img class="figure" loading="lazy" src="../{DRAWN}/{spec.id}.svg" alt="Picture of {spec.id}">'
        word, badge = self.badge(spec)
        return (
            f'<a class="card" href="{spec.id}.html" data-laws="{escape(laws)}" data-verdict="{word}">'
            f"{image if self.pictures.form(spec.id) else ''}"
            f"<strong>{spec.id}</strong> {escape(' '.join(spec.title.split()))}{badge}</a>"
        )

    def badge(self, spec: FigureSpec) -> tuple[str, str]:
        """Says in a word and in a badge how many claims of a figure hold."""
        verdicts = self.memory.all_verdicts(spec).values()
        counts = Counter("no verdict" if v.untold else "hold" if v.status in HOLDING else "differ" for v in verdicts)
        papers, others = ([v for v in verdicts if (v.claim.whose == "paper") == own] for own in (True, False))
        told = []
        if papers and others and counts["differ"]:
            # The paper's results and our variants of them stand apart.
            for whose, group in (("paper", papers), ("ours", others)):
                told.append(f"{whose}: {sum(v.status in HOLDING for v in group)} of {len(group)} hold")
        else:
            for verb in ("hold", "differ"):
                if count := counts[verb]:
                    noun = "" if told else " claim" if count == 1 else " claims"
                    told.append(f"{count}{noun} {verb}{'s' if count == 1 else ''}")
        if counts["hold"] == counts.total() > 1:
            told = [f"all {told[0]}"]
            if average := sum(verdict.status == "holds on average" for verdict in verdicts):
                told.append(f"{average} of them on average")
        if counts["no verdict"]:
            told.append(f"{counts['no verdict']} no verdict")
        if any(verdict.provisional for verdict in verdicts):
            told.append("provisional")
        word = "differs" if counts["differ"] else "holds" if counts["hold"] else "skipped"
        return word, f'<span class="badge {word}">{", ".join(told)}</span>'

    def illustrated(self, text: str) -> str:
        """Replaces a page's links to pictures by the pictures, and colours verdicts."""

        def picture(link: re.Match[str]) -> str:
            name = link[1]
            if self.pictures.form(name) is None:
                return link[0]
            return f'<a href="../{FOLDER}/{name}.html">{self._image(self.specs[name])}</a>'

        text = re.sub(r"^\[Picture of (\S+)\]\(\S+\)$", picture, text, flags=re.MULTILINE)
        return re.sub(r"\*\*((?:holds|differs|fails)(?: on average)?)\*\*", lambda found: status(found[1]), text)

    def _image(self, spec: FigureSpec) -> str:
        return f'<img class="figure" src="../{DRAWN}/{spec.id}.svg" alt="{escape(self._alt(spec))}">'

    def page(self, name: str) -> Iterator[str]:
        """The page of one figure."""
        spec = self.specs[name]
        yield f"# {spec.id}: {plain(spec.title)}"
        also = f" The file covers {', '.join(spec.also)} too." if spec.also else ""
        yield f"{plain(spec.paper)}.{also} {self.badge(spec)[1]}"
        yield from self._picture(spec)
        paragraphs = re.split(r"\n\s*\n", spec.notes.strip())
        if paragraphs[0]:
            yield "## Set-up"
            yield plain(paragraphs[0])
            if paragraphs[1:]:
                yield "[Notes](#notes) has the details."
        yield from self._run_it(spec)
        yield "## Claims"
        yield (
            "*Expected* is the claim's bound. *Mean and band* are the mean over the seeds, with the least and largest "
            "value of a seed. [How claims are judged](../how-claims-are-judged.md) explains the results."
        )
        yield from self._claims(spec)
        yield from self._published(spec)
        if paragraphs[1:]:
            yield "## Notes"
            yield from self._notes(spec, paragraphs[1:])
        yield "## The figure's file"
        yield "Scenario, runs, picture and claims; [what each key means](../figures.md#what-a-file-says)."
        include = f"```{{literalinclude}} ../../figures/{name}.toml\n:language: toml\n```"
        yield f"::::{{dropdown}} figures/{name}.toml\n{include}\n::::"

    @staticmethod
    def _notes(spec: FigureSpec, paragraphs: Sequence[str]) -> Iterator[str]:
        """Yields the general paragraphs, then those about single claims, from the first with a claim's id."""
        ids = {claim.id for claim in spec.claims}
        about = [match is not None and match[1] in ids for match in (re.match(r"`([^`]+)`", p) for p in paragraphs)]
        first = about.index(True) if True in about else len(paragraphs)
        yield from map(plain, paragraphs[:first])
        if first < len(paragraphs):
            yield "### About single claims"
            for paragraph, begins in zip(paragraphs[first:], about[first:], strict=True):
                yield f"- {plain(paragraph)}" if begins else f"  {plain(paragraph)}"

    def _picture(self, spec: FigureSpec) -> Iterator[str]:
        form = self.pictures.form(spec.id)
        if form is None:
            why = "is measured on a Linux kernel and needs root" if spec.measured else "has no stored picture yet"
            yield f"```{{note}}\nThis figure {why}. `flowstamp figure {spec.id}` draws it.\n```"
            return
        yield self._image(spec)
        said = (
            "The picture was measured on one machine."
            if spec.measured
            else f"The picture shows the {FORMS[form]} with seed {spec.seed}."
        )
        if form == "fast":
            said += f" {plain(spec.fast.reason)}"
        if self.pictures.outdated(spec.id, self.memory):
            said += " The picture is older than the values below."
        yield " ".join([said, *self._legend(spec)])

    def _legend(self, spec: FigureSpec) -> Iterator[str]:
        """Says what stars, lines, bands and words in a picture are, if it has them."""
        if any(not numbers.computed for panel in spec.draw.panels for numbers in panel.published):
            yield "Stars are the paper's numbers."
        verdicts = list(self.memory.all_verdicts(spec).values())
        claims = [claims_of(spec, panel, verdicts) for panel in spec.draw.panels]
        ends = [end for found in claims for end in bounds(found)]
        if any(low == high for low, high in ends):
            yield "Thin dotted lines are bounds of claims."
        if any(low < high for low, high in ends):
            yield "Grey bands are bounds of claims."
        if any(claims):
            yield "The words at the right of a panel say how many of its claims hold in this run."
            yield "The table is over all seeds."
        if any(len(panel.runs or spec.runs) + len(panel.published) > MOST_ENTRIES for panel in spec.draw.panels):
            yield 'Grey curves share the legend\'s entry "others".'

    @staticmethod
    def _alt(spec: FigureSpec) -> str:
        """Describes a picture; the claims on the page say what it shows."""
        panels = (f"{panel.ylabel} against {spec.draw.of(panel).xlabel}" for panel in spec.draw.panels)
        return " ".join(f"{spec.title}: {'; '.join(dict.fromkeys(panels))}.".split())

    @staticmethod
    def _run_it(spec: FigureSpec) -> Iterator[str]:
        yield "## Run it"
        yield (
            f"```sh\nflowstamp figure {spec.id}          # the whole version, into out/figures\n"
            f"flowstamp figure {spec.id} --fast   # the short one\n```"
        )

    def _claims(self, spec: FigureSpec) -> Iterator[str]:
        whole = self.memory.verdicts(spec)
        head = ["claim", "expected", "mean and band", "result", "seeds"]
        always = "one measurement" if spec.measured else "no randomness"
        rows = [self._row(claim, whole.get(claim.id), always) for claim in spec.claims]
        yield "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows])
        explained = [claim for claim in spec.claims if claim.explanation]
        for title, hold in (("Why it differs", False), ("Notes on claims that hold", True)):
            shown = [c for c in explained if (c.id in whole and whole[c.id].status in HOLDING) == hold]
            if shown:
                yield f"### {title}"
                yield "\n".join(self._explained(claim, whole.get(claim.id)) for claim in shown)
        measured = "\n".join(map(self._measured, spec.claims))
        yield "### How they are measured"
        yield "The [glossary](../glossary.md) explains terms."
        yield f"::::{{dropdown}} Expressions and sources\n{measured}\n::::"

    @staticmethod
    def _explained(claim: Claim, known: Verdict | None) -> str:
        """Quotes a claim, which may be false, before its verdict and its explanation."""
        verdict = "has no verdict yet" if known is None or known.untold else f"**{known.status}**"
        return f"- *{plain(claim.paper)}* (`{claim.id}`) {verdict}.<br>{plain(claim.explanation or '')}"

    @staticmethod
    def _measured(claim: Claim) -> str:
        source = plain(claim.source.strip().rstrip("."))
        return f"- {plain(claim.paper)} (`{claim.id}`): `{' '.join(claim.expr.split())}`. Source: {source}."

    @staticmethod
    def _row(claim: Claim, known: Verdict | None, always: str) -> str:
        """Formats a claim. `always` is said of a claim that has no seeds."""
        whose = "" if claim.whose == "paper" else f" *({claim.whose})*"
        told: list[str] = ["not yet run", "", ""]
        if known is not None:
            told = [ours(known), status(known.status), seeds(known) or always]
        return f"| {' | '.join([cell(claim.paper) + whose, expected(claim), *told])} |"

    @staticmethod
    def _published(spec: FigureSpec) -> Iterator[str]:
        names = {run.name: run.label for run in spec.runs} | fct.REFERENCES
        rows = [
            f"| {cell(panel.ylabel)} | {cell(numbers.label)} | {cell(spec.draw.of(panel).xlabel)} {x:g} "
            f"| {y:g}{f' times {cell(names[numbers.times])}' if numbers.times else ''} |"
            for panel in spec.draw.panels
            for numbers in panel.published
            if not numbers.computed
            for x, y in zip(numbers.x, numbers.y, strict=True)
        ]
        if rows:
            yield "## Published numbers"
            yield "Numbers as the paper prints them. The picture shows them over ours."
            yield "\n".join(["| what | | where | published |", "|---|---|---|---|", *rows])


def status(word: str) -> str:
    """Formats a verdict in its colour."""
    return f"[{word}]{{.{word.partition(' ')[0]}}}"


# ---------------------------------------------------------------------------------------------------- Sphinx


def begin(app: Sphinx) -> None:
    """Writes the files that Sphinx looks for, deletes those of removed figures, and unpacks the pictures."""
    gallery = Gallery()
    app.gallery = gallery  # type: ignore[attr-defined]
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    titles = {"index": "Gallery"} | {name: spec.title for name, spec in gallery.specs.items()}
    for old in folder.glob("*.md"):
        if old.stem not in titles:
            old.unlink()
    for name, title in titles.items():
        file, text = folder / f"{name}.md", f"# {title}\n"
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
    gallery.pictures.unpack(Path(app.outdir) / DRAWN)


def reading(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replaces a page's title by the page, and fills in pictures and scores."""
    folder, _, name = docname.rpartition("/")
    gallery: Gallery = app.gallery  # type: ignore[attr-defined]
    illustrated = folder == "results" or docname in ILLUSTRATED
    if docname != "index" and folder != FOLDER and not illustrated:
        return
    depends = [gallery.memory.path, gallery.pictures.path, Path(__file__)]
    if docname == "index":
        source[0] = source[0].replace(SCORES, gallery.scores())
    elif illustrated:
        source[0] = gallery.illustrated(source[0])
    else:
        depends += gallery.files.values() if name == "index" else [gallery.files[name]]
        parts: Iterable[str] = gallery.index() if name == "index" else gallery.page(name)
        source[0] = "\n\n".join(parts) + "\n"
    for file in depends:
        app.env.note_dependency(str(file))


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers what Sphinx calls."""
    app.connect("builder-inited", begin)
    app.connect("source-read", reading)
    return {"version": flowstamp.__version__, "parallel_read_safe": True, "parallel_write_safe": True}
