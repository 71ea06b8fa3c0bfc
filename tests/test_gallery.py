# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The gallery's pages: what stands on one follows from the figure's file, what is known of it, and what was run."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from flowstamp.figures import available, read
from flowstamp.figures.command import shown_number
from flowstamp.figures.kept import Kept
from flowstamp.figures.memory import Form, Memory
from flowstamp.figures.runner import Runner

ROOT = Path(__file__).resolve().parents[1]
QUICK = "X12"
"""A figure that takes a moment, in either version."""


@pytest.fixture
def gallery(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "docs/_extensions"))
    return importlib.import_module("gallery")


def draw(form: Form, folder: Path) -> Any:
    runner = Runner(fast=form == "fast")
    spec = runner.figure(QUICK)
    outcome = runner.run(spec, folder / form)
    Kept(folder / form, runner.files, form).put(outcome, spec.seed)
    return outcome


def page(gallery: Any, folder: Path) -> str:
    return "\n\n".join(gallery.Gallery(folder).page(QUICK))


def test_a_page_has_picture_version_seed_and_what_came_of_each_claim(gallery: Any, tmp_path: Path) -> None:
    outcome = draw("fast", tmp_path)
    text = page(gallery, tmp_path)
    assert re.search(rf"```\{{image\}} \S*fast/{QUICK}\.png\n:alt: \S", text)
    assert "Drawn by this build: the short version, seed 1, flowstamp " in text
    assert f"flowstamp figure {QUICK} " in text
    known = Memory.beside(available()).verdicts(read(available()[QUICK]))
    for verdict in outcome.verdicts:
        [row] = [line for line in text.splitlines() if line.startswith(f"| {gallery.cell(verdict.claim.paper)}")]
        assert f"`{verdict.claim.expected}" in row
        assert f"| {shown_number(verdict.measured)}, [{verdict.status}]" in row
        assert f"[{known[verdict.claim.id].status}]" in row.rsplit("|", 3)[1]
    made = gallery.Gallery(tmp_path)
    with Image.open(made.thumbnail(made.drawn(QUICK), QUICK)) as small:
        assert small.width <= gallery.THUMBNAIL_PX


def test_whole_versions_come_before_short_ones_and_other_programs_pictures_are_none(
    gallery: Any, tmp_path: Path
) -> None:
    draw("fast", tmp_path)
    draw("full", tmp_path)
    assert "Drawn by this build: the whole version, seed 1" in page(gallery, tmp_path)
    (tmp_path / "full" / f"{QUICK}.png").write_bytes(b"another")
    assert "Drawn by this build: the short version, seed 1" in page(gallery, tmp_path)
    kept = tmp_path / "fast/kept.jsonl"
    row = json.loads(kept.read_text(encoding="utf-8"))
    kept.write_text(json.dumps(row | {"key": "another program"}) + "\n", encoding="utf-8")
    text = page(gallery, tmp_path)
    assert "{image}" not in text
    assert "`make docs` without `FIGURES=cheap` draws this figure too" in text


def test_what_the_paper_prints_and_why_it_differs_is_told(gallery: Any) -> None:
    figures = {name: read(file) for name, file in available().items()}
    printed = {name: [p for panel in spec.draw.panels for p in panel.published] for name, spec in figures.items()}
    with_numbers = [name for name, marks in printed.items() if not all(mark.computed for mark in marks)]
    explained = [name for name, spec in figures.items() if any(claim.explanation for claim in spec.claims)]
    assert with_numbers
    assert explained
    made = gallery.Gallery(None)
    for name, spec in figures.items():
        text = "\n\n".join(made.page(name))
        assert ("## Published numbers" in text) == (name in with_numbers), name
        assert ("### Why it differs" in text) == (name in explained), name
        assert ("is measured on a Linux kernel" in text) == spec.measured, name
        assert text.count(f"\nflowstamp figure {name} ") == 2


def test_every_figure_stands_under_its_paper(gallery: Any) -> None:
    text = "\n\n".join(gallery.Gallery(None).index())
    assert re.findall(r"^## (\S+): ", text, re.MULTILINE) == list(gallery.PAPERS.values())
    assert sorted(re.findall(r"^:link: (\S+)$", text, re.MULTILINE)) == sorted(available())


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("a_b * <c> [d] | $e$", r"a\_b \* \<c\> \[d\] \| \$e\$"),
        ("`a_b * c` and\nd_e", r"`a_b * c` and d\_e"),
    ],
)
def test_words_of_a_file_are_shown_as_they_are(words: str, shown: str, gallery: Any) -> None:
    assert gallery.plain(words) == shown
