# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The pages of docs/results: what they say of each claim, and how short explanations are."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from flowstamp.figures import available, kinds, load, read, report
from flowstamp.figures.memory import Memory
from flowstamp.figures.scores import PAPERS, paper_of
from flowstamp.figures.verdicts import Untold, Verdict


def test_the_pages_of_results_are_what_is_known() -> None:
    pages = report.pages()
    assert {f"{law.lower()}{part}.md" for law in report.TITLES for part in ("", "-claims")} <= set(pages)
    assert set(pages) == {file.name for file in report.FOLDER.glob("*.md")}
    for name, text in pages.items():
        written = (report.FOLDER / name).read_text(encoding="utf-8")
        assert written == text, f"{name}: python -m flowstamp.figures.report"
        assert "-claims" in name or text.count("\n") <= report.MOST_LINES, f"{name} is too long for one page"


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("min(xcp.utilization[x <= 800])", "least"),
        ("sum(xcp.all_drops)", "total"),
        ("max(full.max_queue_packets) * 1300 / 64000", "largest"),
        ("first(pcp.jain) - first(red.jain)", "difference"),
        ("(last(rcp.afct_small) - first(rcp.afct_small)) / 1.59", ""),
        ("mean(sack.afct_small / rcp.afct_small)", "mean ratio"),
        ("max(abs(rcp.afct_large / rcp.ps_large - 1))", "largest relative distance"),
        ("first(a.p99_slowdown) / first(b.p99_slowdown) - 1", "relative difference"),
        ("max(abs(reno.utilization[x <= 10] - 0.55))", "largest distance"),
        ("max(abs(bin_ratios(rcp, 'ps', 1, 1e9) - 1))", "largest relative distance"),
        ("count(vcp.utilization > 0.9) / count(x)", "share of points"),
        ("std(samples(a, 'rate_share', 1, 2)) / mean(samples(a, 'rate_share', 1, 2))", "relative deviation"),
        ("log10(max(bin_ratios(sack, 'ps', 1, 1e9)))", "logarithm"),
        ("throughput(rcp, 'B.0', 80, 98)", ""),
    ],
)
def test_a_word_says_what_a_claims_number_is(expr: str, expected: str) -> None:
    assert kinds.kind(expr) == expected


def test_the_words_are_explained() -> None:
    assert kinds.NOTES in (report.FOLDER.parent / "how-claims-are-judged.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("sum(xcp.all_drops[x <= 800])", "packets"),
        ("max(abs(a.mean_queue_packets - 4))", "packets"),
        ("max(median(all_samples(a, 'flow_rtt_ms', 50, 300)), median(all_samples(b, 'flow_rtt_ms', 5, 9)))", "ms"),
        ("above_after(pcp, 'utilization', 0.9, 0, 2)", "s"),
        ("throughput(rcp, 'B.0', 80, 98)", "Mb/s"),
        ("first(c55.after_rtts)", "RTTs"),
        ("max(full.max_queue_packets) * 1300 / 64000", ""),
        ("max(rcp.mean_queue_packets / red.mean_queue_packets)", ""),
        ("min(xcp.utilization)", ""),
        ("mean(samples(rcp, 'flows_estimate', 90, 100))", ""),
        ("min(a.all_drops - b.mean_queue_ms)", ""),
    ],
)
def test_a_number_has_its_unit(expr: str, expected: str) -> None:
    assert kinds.unit(expr) == expected


def test_a_claim_can_state_its_unit() -> None:
    """A quotient that is a time has a unit, and is not called a ratio."""
    spec = load("X-7")
    shown = {name: report.ours(one) for name, one in Memory.beside(available()).verdicts(spec).items()}
    assert shown["found-in-one-rtt"].startswith("largest ")
    assert "ratio" not in shown["found-in-one-rtt"]
    assert " RTTs" in shown["found-in-one-rtt"]
    assert shown["one-rtt-would-do"].startswith("ratio ")


def test_a_long_command_has_lines_of_its_own() -> None:
    long = "tools/ns2/two_way.py V3 xcp --set dumbbell.rate=10Mbps --seeds 5"
    assert (
        report.with_command(f"ns-2 loses 485 at 10 Mb/s: `{long}`.")
        == f"ns-2 loses 485 at 10 Mb/s:\n\n  ```sh\n  {long}\n  ```"
    )
    assert report.with_command(f"ns-2 loses as much (`{long}`).") == f"ns-2 loses as much.\n\n  ```sh\n  {long}\n  ```"
    for kept in (f"ns-2 loses 485 (`{long}`). Ours loses none.", "It differs (`flowstamp figure V3`)."):
        assert report.with_command(kept) == kept


MOST_WORDS = 60


def test_a_cause_is_short_and_names_claims_and_the_command_that_shows_it() -> None:
    laws = {spec.id: PAPERS.get(paper_of(spec)) for spec in map(read, available().values())}
    ids = {(spec.id, claim.id) for spec in map(read, available().values()) for claim in spec.claims}
    known = report.causes()
    assert known.keys() == report.TITLES.keys()
    for law, several in known.items():
        claims = [claim for cause in several for claim in cause.claims]
        assert ids.issuperset(claims)
        assert len(set(claims)) == len(claims), f"{law}: a claim has two causes"
        assert {laws[figure] for figure, _ in claims} == {law}
        for cause in several:
            assert len(cause.text.split()) <= MOST_WORDS, cause.title
            assert re.search("flowstamp figure|tools/", cause.run), cause.title


def test_a_page_has_each_difference_once_by_cause_or_with_its_explanation() -> None:
    pages = report.pages()
    for law in map(str.lower, report.TITLES):
        causes, _, text = pages[f"{law}.md"].partition("## Headlines")
        inline = text.partition("## What differs")[2].partition("## Pictures")[0]
        apart = [pages.get(f"{law}{part}.md", "") for part in ("-differences", "-other-differences")]
        told = "\n".join([inline, *apart])
        counts = re.findall(r"^\| \[[^|]*\| (\d+) \|", causes, flags=re.MULTILINE)
        listed = len(re.findall(r"^\| \[|\*[^*]+\* \(`[\w-]+`\): ", told, flags=re.MULTILINE))
        assert listed == sum(map(int, counts)) > 0, law


def test_explanations_are_short_and_name_what_shows_them() -> None:
    """Cause, one number, and a command or the claim that is the experiment; the evidence is in the figure's notes."""
    for name, file in available().items():
        claims = read(file).claims
        for claim in claims:
            ids = {other.id for other in claims if other is not claim}
            words = (claim.explanation or "").split()
            assert len(words) <= MOST_WORDS, f"{name} {claim.id}: {len(words)} words; move the evidence to notes"
            named = re.findall(r"`([^`]+)`", " ".join(words))
            shows = any("flowstamp figure" in n or "tools/" in n or n in ids for n in named)
            assert not words or shows, f"{name} {claim.id}: name the command or the claim that shows it"


def test_a_page_has_the_verdicts_own_status() -> None:
    figure = load("X16")
    claim = replace(figure.claims[0], expected=">= 1", tolerance="0", explanation="a test")
    rows: list[tuple[tuple[float | None, ...], Untold | None, str]] = [
        ((2.0, 1.5), None, "| ratio 1.75 (1.5 to 2) | **holds** | 2 of 2 |"),
        ((0.5, 0.25), None, "| ratio 0.375 (0.25 to 0.5) | **differs** | 0 of 2 |"),
        ((2.0, 2.0, 2.0, 2.0, 0.5), None, "| ratio 1.7 (0.5 to 2) | **holds on average** | 4 of 5 |"),
        ((0.5, None), None, "| not measured | **fails** | 0 of 2 |"),
        ((1.0,), None, "| ratio 1 | **holds** |  |"),
        ((), "invalid", "| not measured | invalid |  |"),
    ]
    for values, untold, shown in rows:
        assert report.row(figure, Verdict(claim, values, untold=untold)).endswith(shown)
    assert report.row(figure, Verdict(claim, (2.0,), provisional=True)).endswith(
        "| ratio 2 | **holds** | provisional |"
    )


@pytest.mark.parametrize(
    ("value", "percent", "shown"),
    [
        (0.7797, True, "78%"),
        (0.9993, False, "0.9993"),
        (0.9964, True, "99.64%"),
        (1.4389, False, "1.44"),
        (40.51, False, "40.5"),
    ],
)
def test_prose_has_the_digits_that_a_reader_needs(value: float, percent: bool, shown: str) -> None:
    assert report.in_prose(value, percent=percent) == shown
