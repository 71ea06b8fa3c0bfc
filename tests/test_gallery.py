# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The gallery's pages follow from the figures' files, the accepted values and the stored pictures."""

from __future__ import annotations

import importlib
import json
import lzma
import math
import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

from flowstamp.figures import available, read
from flowstamp.figures.kept import Kept
from flowstamp.figures.memory import Memory
from flowstamp.figures.runner import Runner
from flowstamp.figures.scores import PAPERS, scores
from flowstamp.figures.verdicts import HOLDING

ROOT = Path(__file__).resolve().parents[1]
QUICK = "X12"
"""A figure that takes a moment, in either version."""
SPECS = {name: read(file) for name, file in available().items()}


@pytest.fixture
def gallery(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "docs/_extensions"))
    return importlib.import_module("gallery")


def test_a_page_has_picture_version_command_and_verdicts(gallery: Any) -> None:
    text = "\n\n".join(gallery.Gallery().page(QUICK))
    assert f'<img class="figure" src="../pictures/{QUICK}.svg" alt="' in text
    assert "The picture shows the whole version with seed 1." in text
    assert f"flowstamp figure {QUICK} " in text
    for verdict in Memory.beside(available()).verdicts(SPECS[QUICK]).values():
        [row] = [line for line in text.splitlines() if line.startswith(f"| {gallery.cell(verdict.claim.paper)}")]
        assert f"`{verdict.claim.expected}" in row
        assert f"[{verdict.status}]" in row


def test_the_index_has_a_card_with_badge_and_laws_for_each_figure(gallery: Any) -> None:
    made = gallery.Gallery()
    text = "\n\n".join(made.index())
    assert re.findall(r"^## (\S+): ", text, re.MULTILINE) == list(gallery.PAPERS.values())
    assert sorted(re.findall(r'<a class="card" href="(\S+)\.html"', text)) == sorted(SPECS)
    assert text.count('<span class="badge ') == len(SPECS)
    for name in made.pictures.index:
        assert made.pictures.file(name).exists(), name
    assert {"xcp", "reno", "sack"} <= made.laws(SPECS["X13"]) | made.laws(SPECS["X4"]) | made.laws(SPECS["R4.10"])


def test_a_badge_counts_claims(gallery: Any, tmp_path: Path) -> None:
    made, path = gallery.Gallery(), tmp_path / "expected.json"
    known = json.loads(made.memory.path.read_text(encoding="utf-8"))[QUICK]["full"]
    first = next(iter(known))

    def badge(**changed: object) -> str:
        path.write_text(json.dumps({QUICK: {"full": known | changed}}), encoding="utf-8")
        made.memory = Memory(path)
        return re.sub("<.*?>", "", made.badge(SPECS[QUICK])[1])

    assert badge() == f"all {len(known)} claims hold"
    assert "ours: " not in badge()
    chance = badge(**{"share-5": [1.6667, 1.6667, 1.6667, 1.6667, 1.9]})
    assert chance == f"all {len(known)} claims hold, 1 of them on average"
    assert badge(**{first: [1e9]}) == f"{len(known) - 1} claims hold, 1 differs"
    assert badge(**{first: {"seed 1": known[first][0]}}) == f"all {len(known)} claims hold, provisional"
    assert badge(**{first: "invalid"}) == f"{len(known) - 1} claims hold, 1 no verdict"


def test_a_badge_tells_the_papers_claims_from_ours(gallery: Any) -> None:
    made = gallery.Gallery()
    verdicts = made.memory.all_verdicts(SPECS["X6"]).values()
    papers = [verdict for verdict in verdicts if verdict.claim.whose == "paper"]
    assert 0 < len(papers) < len(verdicts)
    held = [sum(v.status in HOLDING for v in group) for group in (papers, [v for v in verdicts if v not in papers])]
    told = f"paper: {held[0]} of {len(papers)} hold, ours: {held[1]} of {len(verdicts) - len(papers)} hold"
    assert f">{told}<" in made.badge(SPECS["X6"])[1]


def test_a_page_explains_the_marks_that_its_picture_has(gallery: Any) -> None:
    made = gallery.Gallery()
    marks = ("Stars are", "dotted lines are", "Grey bands are", "Grey curves share")
    has = {"X10": (False, True, False, False), "X12": (True, False, False, False), "V3": (True, True, False, True)}
    has["P12"] = (True, True, True, False)
    for name, expected in has.items():
        text = " ".join(made._legend(SPECS[name]))
        assert tuple(mark in text for mark in marks) == expected, name


def test_pictures_are_stored_with_their_version_and_become_outdated(
    gallery: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = importlib.import_module("pictures")
    runner = Runner()
    spec = runner.figure(QUICK)
    Kept(tmp_path, runner.files, "full").put(runner.run(spec, tmp_path), spec.seed)
    store = runpy.run_path(str(ROOT / "docs/store_pictures.py"))
    memory = Memory.beside(available())
    [row] = store["rows"](tmp_path)
    assert store["drawn"](tmp_path, row)
    assert store["form_of"](row, memory) == "full"
    row["claims"] = {claim: [-1.0, ""] for claim in row["claims"]}
    assert store["form_of"](row, memory) is None
    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    stored = pictures.Pictures(tmp_path)
    stored.index = {QUICK: {"form": "full", "values": pictures.digest(memory, QUICK, "full")}}
    assert not stored.outdated(QUICK, memory)
    stored.index[QUICK]["values"] = "of another time"
    assert stored.outdated(QUICK, memory)
    assert "The picture is older than the values below." in "\n".join(gallery.Gallery(stored).page(QUICK))


def test_markers_and_words_of_stored_pictures_are_where_the_lines_are(gallery: Any) -> None:
    """Lines are scaled by a matrix, markers and words are placed: a matrix with few digits moves them apart.

    pdftocairo fits the page into whole points and centres it there.
    """
    pictures = gallery.Gallery().pictures
    for name in pictures.index:
        text = lzma.decompress(pictures.file(name).read_bytes()).decode()
        size = re.search(r'viewBox="0 0 (\S+) (\S+)"', text)
        assert size is not None, name
        width, height = float(size[1]), float(size[2])
        whole = math.ceil(round(width, 6)), math.ceil(round(height, 6))
        scale = min(width / whole[0], height / whole[1])
        for matrix in set(re.findall(r"matrix\(([^)]*)\)", text)):
            across, _, _, up, *_ = map(float, matrix.split(","))
            assert (across, -up) == pytest.approx((scale, scale), abs=1e-5), f"{name}: {matrix}"


def test_digits_of_matrices_are_kept() -> None:
    shortened = runpy.run_path(str(ROOT / "docs/store_pictures.py"))["shortened"]
    picture = b'<path d="M 1.2345 -6.789 L 10 0.5" transform="matrix(0.997895,0,0,-0.997895,0.0505,340.5615)"/>'
    assert shortened(picture) == picture.replace(b"1.2345", b"1.23").replace(b"6.789", b"6.78")


def test_printed_numbers_and_explanations_are_shown(gallery: Any) -> None:
    printed = {name: [p for panel in spec.draw.panels for p in panel.published] for name, spec in SPECS.items()}
    with_numbers = [name for name, marks in printed.items() if not all(mark.computed for mark in marks)]
    made = gallery.Gallery()
    explained = {
        name: [made.memory.verdicts(spec).get(claim.id) for claim in spec.claims if claim.explanation]
        for name, spec in SPECS.items()
    }
    assert with_numbers
    for name in SPECS:
        text = "\n\n".join(made.page(name))
        assert ("## Published numbers" in text) == (name in with_numbers), name
        holds = [verdict is not None and verdict.status in HOLDING for verdict in explained[name]]
        assert ("### Why it differs" in text) == (False in holds), name
        assert ("### Notes on claims that hold" in text) == (True in holds), name
        assert text.count(f"\nflowstamp figure {name} ") == 2


def test_the_index_page_has_the_scores(gallery: Any) -> None:
    text = gallery.Gallery().scores()
    for score in scores(SPECS.values(), Memory.beside(available())):
        if score.law not in PAPERS.values():
            continue  # It has no page.
        assert f"<b>{score.law}</b>" in text
        assert f"{score.held} of {len(score.results)}</span>" in text
    assert gallery.SCORES in (ROOT / "docs/index.md").read_text(encoding="utf-8").splitlines()


def test_the_citation_has_the_version() -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("a_b * <c> [d] | $e$", r"a\_b \* \<c\> \[d\] \| \$e\$"),
        ("`a_b * c` and\nd_e", r"`a_b * c` and d\_e"),
    ],
)
def test_words_of_a_file_are_shown_as_they_are(words: str, shown: str, gallery: Any) -> None:
    assert gallery.plain(words) == shown
