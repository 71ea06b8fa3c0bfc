# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The page about advice for video quotes what its figures' claims have recorded, and nothing else."""

from __future__ import annotations

from quotes import Page

PAGE = Page("explanation/advice-for-video.md", "SC-", "ms|s|Mb/s|times")


def test_every_number_in_bold_is_the_mean_that_its_claim_has_recorded() -> None:
    PAGE.check_bold_numbers(10)


def test_a_claim_that_does_not_hold_with_every_seed_is_quoted_with_its_seeds() -> None:
    PAGE.check_exceptions()


def test_every_other_number_is_of_the_set_up() -> None:
    PAGE.check_other_numbers()


def test_the_page_shows_every_figure_and_is_short() -> None:
    assert {name for name, _ in PAGE.sections() if name} == set(PAGE.figures)
    assert PAGE.text.count("\n") <= 150
