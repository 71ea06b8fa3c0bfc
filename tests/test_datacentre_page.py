# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The page about data centres quotes what its figures' claims have recorded, and nothing else."""

from __future__ import annotations

import math
import re

import pytest
from quotes import DOCS, Page, recorded

PAGE = Page("explanation/explicit-feedback-in-a-data-centre.md", "DC-", "ms|us|packets")
HOW_TO = (DOCS / "how-to/run-a-very-large-network.md").read_text(encoding="utf-8")


def test_every_number_in_bold_is_the_mean_that_its_claim_has_recorded() -> None:
    PAGE.check_bold_numbers(26)


def test_a_claim_that_does_not_hold_with_every_seed_is_quoted_with_its_seeds() -> None:
    PAGE.check_exceptions()


def test_every_other_number_is_of_the_set_up() -> None:
    PAGE.check_other_numbers()


def test_the_page_shows_every_figure_of_loads_and_is_short() -> None:
    assert {name for name, _ in PAGE.sections() if name} == set(PAGE.figures) - {"DC-links"}
    assert PAGE.text.count("\n") <= 150


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
