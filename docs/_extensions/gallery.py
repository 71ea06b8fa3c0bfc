# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The gallery: a page for each figure and one with all of them, made of `figures/` as the site is built.

Sphinx needs a file for each page, so that `docs/gallery/` gets one with no more than a title; what stands on it is made
as Sphinx reads it. `gallery_pictures` is the folder where `docs/draw_figures.py` has drawn, relative to the project's
root: whole versions in `full`, short ones in `fast`, of which a page takes the first there is. Without it pages have no
pictures; a picture that another program has drawn is as none.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image
from sphinx.application import Sphinx

import flowstamp
from flowstamp.figures import available, fct, read
from flowstamp.figures.command import shown_number, shown_values
from flowstamp.figures.kept import Kept
from flowstamp.figures.memory import Form, Memory
from flowstamp.figures.report import cell, expected, plain, seeds
from flowstamp.figures.scores import PAPERS, paper_of
from flowstamp.figures.spec import Claim, FigureSpec
from flowstamp.figures.verdicts import Outcome, Verdict

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "gallery"
THUMBNAIL_PX = 420
FORMS: Mapping[Form, str] = {"full": "whole version", "fast": "short version"}
"""The better one first."""


def grouped(specs: Mapping[str, FigureSpec]) -> dict[str, list[FigureSpec]]:
    """The figures by paper; what is of none of the known ones comes last."""
    found: dict[str, list[FigureSpec]] = {paper: [] for paper in PAPERS}
    for spec in specs.values():
        found.setdefault(paper_of(spec), []).append(spec)
    return {paper: group for paper, group in found.items() if group}


@cache
def commit() -> str:
    """Of this checkout, and whether it has been changed since; nothing where there is none."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--exclude=*", "--dirty", "--abbrev=10"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    name, _, changed = done.stdout.strip().partition("-")
    return name + (" with changes" if changed else "")


@dataclass(frozen=True)
class Drawn:
    """A figure that has a picture."""

    form: Form
    folder: Path
    outcome: Outcome


class Gallery:
    """What the pages are made of."""

    def __init__(self, pictures: Path | None) -> None:
        self.files = available(ROOT / "figures")
        self.specs = {name: read(file) for name, file in self.files.items()}
        self.memory = Memory.beside(self.files)
        self.kept = {form: Kept(pictures / form, self.files, form) for form in FORMS} if pictures is not None else {}
        self._drawn: dict[str, Drawn | None] = {}

    def drawn(self, name: str) -> Drawn | None:
        """What this build has of a figure."""
        if name not in self._drawn:
            self._drawn[name] = next(self._found(self.specs[name]), None)
        return self._drawn[name]

    def _found(self, spec: FigureSpec) -> Iterator[Drawn]:
        for form, kept in self.kept.items():
            outcome = kept.outcome(spec if form == "full" else spec.fast_version(), spec.seed)
            # A short version that says otherwise than the whole one shows nothing of the paper.
            if outcome is not None and (form == "full" or not self.memory.untold(spec)):
                yield Drawn(form, kept.out, outcome)

    @staticmethod
    def thumbnail(drawn: Drawn, name: str) -> Path:
        """A small picture beside the large one, made again if that is newer."""
        large, small = drawn.folder / f"{name}.png", drawn.folder / "small" / f"{name}-small.png"
        if not small.exists() or small.stat().st_mtime < large.stat().st_mtime:
            small.parent.mkdir(exist_ok=True)
            with Image.open(large) as image:
                # Of a tall picture the upper part, so that rows of cards are even.
                upper = image.convert("RGB").crop((0, 0, image.width, min(image.height, image.width * 3 // 4)))
                upper.thumbnail((THUMBNAIL_PX, THUMBNAIL_PX), Image.Resampling.LANCZOS)
                upper.quantize(64).save(small, optimize=True)
        return small

    # ------------------------------------------------------------------------------------------------ pages

    def index(self) -> Iterator[str]:
        """The page with all figures."""
        claims = sum(len(spec.claims) for spec in self.specs.values())
        yield "# Gallery"
        yield (
            f"{len(self.specs)} figures of the papers, made by the program that this site is of, and {claims} claims "
            "of what they show. A page each has what is claimed, what came out, where the two differ and why, and "
            "how it is run. The papers' [results](../results/xcp.md) are on a page each, "
            "[Figures as specifications](../figures.md) says how a figure is written."
        )
        versions = Counter(drawn.form for drawn in map(self.drawn, self.specs) if drawn)
        measured = sum(spec.measured for spec in self.specs.values())
        if versions:
            counts = " and ".join(f"{number} of a {FORMS[form]}" for form, number in versions.items())
            rest = len(self.specs) - versions.total() - measured
            yield (
                f"Pictures: {counts}. {measured} figures are measured on a Linux kernel, of which no build draws any"
                + (f"; {rest} others take longer, and this build has left them out." if rest else ".")
            )
        for paper, group in grouped(self.specs).items():
            law = PAPERS.get(paper)
            yield f"## {law}: {paper}" if law else f"## {paper}"
            yield "::::{grid} 2 2 3 4\n:gutter: 2"
            for spec in group:
                yield "\n".join(
                    [f":::{{grid-item-card}} {spec.id}", f":link: {spec.id}", ":link-type: doc", *self._top(spec)]
                )
                yield f"{plain(spec.title)}\n:::"
            yield "::::"
            yield "\n".join(["```{toctree}", ":hidden:", "", *(spec.id for spec in group), "```"])

    def _top(self, spec: FigureSpec) -> list[str]:
        drawn = self.drawn(spec.id)
        if drawn is None:
            return []
        # The title below says what it is: read out, a second text would only repeat it.
        return [f":img-top: {self._path(self.thumbnail(drawn, spec.id))}", f":img-alt: Picture of {spec.id}"]

    @staticmethod
    def _path(file: Path) -> str:
        """A file as Sphinx wants it from a page of the gallery: relative to it."""
        return os.path.relpath(file, ROOT / "docs" / FOLDER)

    def illustrated(self, text: str) -> str:
        """A page of results with pictures in the place of the links to them, as far as this build has drawn them."""

        def picture(link: re.Match[str]) -> str:
            drawn = self.drawn(link[1])
            if drawn is None:
                return link[0]
            file = self._path(drawn.folder / f"{link[1]}.png")
            target = f":target: ../{FOLDER}/{link[1]}.html"
            return f"```{{image}} {file}\n:alt: {self._alt(drawn.outcome.figure)}\n:class: figure\n{target}\n```"

        return re.sub(r"^\[Picture of (\S+)\]\(\S+\)$", picture, text, flags=re.MULTILINE)

    def page(self, name: str) -> Iterator[str]:
        """The page of one figure."""
        spec, drawn = self.specs[name], self.drawn(name)
        yield f"# {spec.id}: {plain(spec.title)}"
        also = f" The file covers {', '.join(spec.also)} too." if spec.also else ""
        yield f"{plain(spec.paper)}.{also}"
        yield from self._picture(spec, drawn)
        yield from self._run_it(spec)
        if spec.notes.strip():
            yield "## Notes"
            yield plain(spec.notes)
        yield "## Claims"
        yield from self._claims(spec, drawn)
        yield from self._published(spec)
        yield "## The figure's file"
        yield "Scenario, runs, picture and claims; [what each key means](../figures.md#what-a-file-says)."
        include = f"```{{literalinclude}} ../../figures/{name}.toml\n:language: toml\n```"
        yield f"::::{{dropdown}} figures/{name}.toml\n{include}\n::::"

    def _picture(self, spec: FigureSpec, drawn: Drawn | None) -> Iterator[str]:
        if drawn is None:
            why = "This build drew what takes little; `make docs` without `FIGURES=cheap` draws this figure too."
            if spec.measured:
                why = (
                    "This figure is measured on a Linux kernel, with programs that need root, so that a build of this "
                    "site draws none. Below is what one machine gave."
                )
            yield f"```{{note}}\n{why}\n```"
            return
        version = drawn.outcome.figure
        picture = self._path(drawn.folder / f"{spec.id}.png")
        yield f"```{{image}} {picture}\n:alt: {self._alt(version)}\n:class: figure\n```"
        by = f"flowstamp {flowstamp.__version__}" + (f", commit {commit()}" if commit() else "")
        said = f"Drawn by this build: the {FORMS[drawn.form]}, seed {spec.seed}, {by}."
        if drawn.form == "fast":
            said += f" *Short*: {plain(spec.fast.reason)}"
        yield f"{said} {{download}}`PDF <{self._path(drawn.folder / f'{spec.id}.pdf')}>`"

    @staticmethod
    def _alt(spec: FigureSpec) -> str:
        """What a picture shows, for who cannot see it: the claims below say what is in it."""
        panels = (f"{panel.ylabel} against {spec.draw.of(panel).xlabel}" for panel in spec.draw.panels)
        return plain(f"{spec.title}: {'; '.join(dict.fromkeys(panels))}.")

    @staticmethod
    def _run_it(spec: FigureSpec) -> Iterator[str]:
        yield "## Run it"
        yield (
            f"```sh\nflowstamp figure {spec.id}          # the whole version, into out/figures\n"
            f"flowstamp figure {spec.id} --fast   # the short one\n```"
        )

    def _claims(self, spec: FigureSpec, drawn: Drawn | None) -> Iterator[str]:
        here = {verdict.claim.id: verdict for verdict in drawn.outcome.verdicts} if drawn is not None else {}
        whole = self.memory.verdicts(spec)
        head = ["claim", "expected", *(["this picture"] if here else []), "mean and band", "result", "seeds"]
        yield "\n".join(
            [
                f"| {' | '.join(head)} |",
                "|---" * len(head) + "|",
                *(self._row(spec, c, here, whole, bool(here)) for c in spec.claims),
            ]
        )
        yield "### Where they come from"
        yield "\n".join(f"- {cell(claim.paper)}: {plain(claim.source)}" for claim in spec.claims)
        explained = [claim for claim in spec.claims if claim.explanation]
        if explained:
            yield "### Why it differs"
            yield "\n".join(f"- {cell(claim.paper)}: {plain(claim.explanation or '')}" for claim in explained)

    def _row(
        self, spec: FigureSpec, claim: Claim, here: Mapping[str, Any], whole: Mapping[str, Verdict], drawn: bool
    ) -> str:
        known = whole.get(claim.id)
        whose = "" if claim.whose == "paper" else f" *({claim.whose})*"
        cells = [cell(claim.paper) + whose, expected(claim)]
        if drawn:
            verdict = here.get(claim.id)
            skipped = spec.fast.skip.get(claim.id, "its runs are not in it")
            cells.append(
                f"{shown_number(verdict.measured)}, {status(verdict.status)}"
                if verdict
                else f"not in it: {cell(skipped)}"
            )
        if known is None:
            return f"| {' | '.join([*cells, 'not yet run', '', ''])} |"
        return f"| {' | '.join([*cells, shown_values(known), status(known.status), seeds(known)])} |"

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
            yield "As the paper prints them; the picture has them over ours."
            yield "\n".join(["| what | | where | published |", "|---|---|---|---|", *rows])


def status(word: str) -> str:
    """A verdict in its colour."""
    return f"[{word}]{{.{word.partition(' ')[0]}}}"


# ---------------------------------------------------------------------------------------------------- Sphinx


def begin(app: Sphinx) -> None:
    """Makes the files that Sphinx looks for, and takes away those of figures that are gone."""
    given = app.config.gallery_pictures
    gallery = Gallery(ROOT / given if given else None)
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


def reading(app: Sphinx, docname: str, source: list[str]) -> None:
    """Puts a page in the place of its title."""
    folder, _, name = docname.rpartition("/")
    gallery: Gallery = app.gallery  # type: ignore[attr-defined]
    if folder == "results":
        for kept in gallery.kept.values():
            app.env.note_dependency(str(kept.path))
        source[0] = gallery.illustrated(source[0])
    if folder != FOLDER:
        return
    files = [gallery.memory.path, *(gallery.files.values() if name == "index" else [gallery.files[name]])]
    files += [kept.path for kept in gallery.kept.values()]
    for file in (*files, Path(__file__)):
        app.env.note_dependency(str(file))
    parts = gallery.index() if name == "index" else gallery.page(name)
    source[0] = "\n\n".join(parts) + "\n"


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers what Sphinx calls."""
    app.add_config_value("gallery_pictures", "", "env", str)
    app.connect("builder-inited", begin)
    app.connect("source-read", reading)
    return {"version": flowstamp.__version__, "parallel_read_safe": True, "parallel_write_safe": True}
