# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The page about data centres quotes what its figures' claims have recorded, and nothing else."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowstamp.figures import available, load
from flowstamp.figures.memory import Memory
from flowstamp.figures.verdicts import HOLDING, Verdict

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = (DOCS / "explanation/explicit-feedback-in-a-data-centre.md").read_text(encoding="utf-8")
HOW_TO = (DOCS / "how-to/run-a-very-large-network.md").read_text(encoding="utf-8")
FIGURES = [name for name in available() if name.startswith("DC-")]
QUOTED = re.compile(r"\*\*([\d.]+)\*\*(?:\s+(?:ms|us|packets))?\s+\(`([\w-]+)`(?:\s+of\s+([\w-]+))?\)")
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")


def sections() -> Iterator[tuple[str, str]]:
    """Each section with the figure whose picture it shows; empty if it has none."""
    for text in re.split(r"(?m)^(?=## )", PAGE):
        shown = re.search(r"\[Picture of (\S+)\]", text)
        yield shown[1] if shown else "", text


def recorded(figure: str) -> dict[str, Verdict]:
    return Memory.beside(available()).verdicts(load(figure))


def quotes() -> list[tuple[str, str, str, str]]:
    """Figure, claim, number as the page writes it, and the text from there to the next one in its paragraph."""
    found = []
    for own, text in sections():
        for block in re.split(r"\n\n|\n(?=- )", text):
            matches = list(QUOTED.finditer(block))
            ends = [*(match.start() for match in matches[1:]), len(block)]
            for match, end in zip(matches, ends, strict=False):
                number, claim, of = match.groups()
                found.append((of or own, claim, number, block[match.end() : end]))
    return found


def test_every_number_in_bold_is_the_mean_that_its_claim_has_recorded() -> None:
    found = quotes()
    assert len(found) > 25
    assert len(found) == len(re.findall(r"\*\*[\d.]+\*\*", PAGE))
    for figure, claim, number, _ in found:
        verdict = recorded(figure)[claim]
        assert verdict.measured is not None
        decimals = len(number.partition(".")[2])
        assert f"{abs(verdict.measured):.{decimals}f}" == number, f"{figure} {claim}"


def test_a_claim_that_does_not_hold_with_every_seed_is_quoted_with_its_seeds() -> None:
    for figure, claim, _, text in quotes():
        verdict = recorded(figure)[claim]
        if verdict.status != "holds":
            assert verdict.status in HOLDING or verdict.claim.explanation
            assert "seed" in text, f"{figure} {claim}"


def test_every_other_number_is_of_the_set_up() -> None:
    files = {name: available()[name].read_text(encoding="utf-8") for name in FIGURES}
    for own, text in sections():
        known = set(NUMBER.findall(files[own] if own else " ".join(files.values())))
        prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", " ", QUOTED.sub(" ", text), flags=re.DOTALL)
        for number in NUMBER.findall(prose):
            assert number in known, f"{own or 'the page'}: {number}"


def test_the_page_shows_every_figure_of_loads_and_is_short() -> None:
    assert {name for name, _ in sections() if name} == set(FIGURES) - {"DC-links"}
    assert PAGE.count("\n") <= 150


@pytest.mark.parametrize("law", ["XCP", "DCTCP", "RCP"])
def test_the_errors_by_links_are_those_recorded(law: str) -> None:
    verdicts = recorded("DC-links")
    [row] = re.findall(rf"^\| {law} \| (.*) \|$", HOW_TO, flags=re.MULTILINE)
    for cell, claim in zip(row.split(" | "), ("p50", "p99", "p50-low", "p99-low"), strict=True):
        verdict = verdicts[f"{law.lower()}-{claim}"]
        values = [verdict.measured, *(verdict.band or ())]
        assert all(value is not None and math.isfinite(value) for value in values)
        mean, low, high = (f"{100 * value:+.0f}%" for value in values if value is not None)
        assert cell == f"{mean} ({low} to {high})"
