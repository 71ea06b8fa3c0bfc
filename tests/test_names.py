# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Names and numbers as users write and read them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import flowstamp as fs
from flowstamp import style, text
from flowstamp.figures.claims import Expression
from flowstamp.names import Named, nearest


@pytest.fixture(scope="module")
def results() -> fs.Results:
    return fs.dumbbell("20 Mb/s", rtt="40ms").flows("xcp", 2).probe(flows=True).run("500ms")


def test_both_spellings_of_utilisation_are_understood(results: fs.Results) -> None:
    link = results.links["bottleneck"]
    assert link["utilisation"] == link["utilization"]  # type: ignore[typeddict-item]
    for metric in ("utilisation", "utilization"):
        assert results.series("link", "bottleneck", metric)[1].max() > 0.9
    swept = fs.sweep(
        fs.dumbbell("20Mbps", rtt="40ms").flows("xcp").configure(duration="100ms"), {"flows.xcp.count": [1, 2]}
    )
    assert list(swept.values("utilisation")) == list(swept.values("utilization"))
    assert Expression("min(xcp.utilisation)", ["xcp"], ["utilization"]).text == "min(xcp.utilization)"
    assert Named({"utilization": 1.0})["utilisation"] == 1.0


def test_rates_may_be_written_as_people_do(results: fs.Results) -> None:
    assert results.manifest["scenario"]["dumbbell"]["rate"] == "20Mbps"
    with pytest.raises(fs.ScenarioError, match=r'did you mean "Mb/s"'):
        fs.dumbbell("20MB/s", rtt="40ms").flows("xcp").run("1s")


@pytest.mark.parametrize(
    ("use", "near"),
    [
        (lambda r: r.links["botleneck"], "bottleneck"),
        (lambda r: r.links["bottleneck"]["drop"], "drops"),
        (lambda r: r.groups["xcp"]["jain"], "jain_index"),
        (lambda r: r.summary["link"], "links"),
        (lambda r: r.flows["goodput"], "goodput_bps"),
        (lambda r: r.series("link", "bottleneck", "queue"), "queue_bytes"),
        (lambda r: r.series("link", "botleneck", "drops"), "bottleneck"),
        (lambda r: r.series("lnk", "bottleneck", "drops"), "link"),
        (lambda _: fs.dumbbell("1Mbps", rt="40ms"), "rtt"),  # type: ignore[call-arg]
        (lambda _: fs.dumbbell("1Mbps", rtt="4ms").flows("xcp", counts=2), "count"),  # type: ignore[call-arg]
        (lambda _: fs.dumbbell("1Mbps", rtt="4ms").flows("xcp").set("dumbell.rate", "2Mbps").run("1s"), "dumbbell"),
    ],
)
def test_an_unknown_name_is_told_the_nearest(
    results: fs.Results, use: Callable[[fs.Results], object], near: str
) -> None:
    with pytest.raises((LookupError, TypeError, fs.FlowstampError)) as caught:
        use(results)
    assert f"did you mean {near}?" in str(caught.value).replace('"', "").replace("`", "")


def test_without_anything_near_all_names_are_told() -> None:
    assert nearest("x", ["one", "two"], "is not a number") == '"x" is not a number; there are one, two'


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (text.percent(0.99999999999), "100.00%"),
        (text.percent(1e-9), "<0.01%"),
        (text.percent(0.0), "0.00%"),
        (text.size(8.921e-05), "0 B"),
        (text.size(0.4), "0.4 B"),
        (text.size(999.99), "1 kB"),
        (text.rate(0.99999e9), "1 Gbps"),
        (text.seconds(0.00099999999), "1 ms"),
        (text.rounded("the flows' RTT is 23333333333ps"), "the flows' RTT is 23.33ms"),
        (text.rounded('set retest = "1400ms"'), 'set retest = "1400ms"'),
        (text.metric("mean_queue_bytes"), "Mean queue (bytes)"),
        (text.metric("utilization"), "Utilisation"),
        (style.short(16300.0), "16.3k"),
        (style.short(0.98412), "0.984"),
        (style.short(9999.0), "10k"),
        (style.short(1234567.0), "1.23M"),
    ],
)
def test_numbers_are_rounded_as_a_person_would(shown: str, expected: str) -> None:
    assert shown == expected


def test_what_was_assumed_is_one_short_line() -> None:
    from flowstamp.cli.run import _assumed

    assumed = {f"link{n}.router.initial_interval": f"{20 + n // 3}000000001ps" for n in range(4)} | {
        "vcp.t_rho": "100ms"
    }
    assert (
        _assumed(assumed) == "router initial_interval = 20ms on most of 4 links, vcp.t_rho = 100ms (the paper: 200ms)"
    )
    many = {f"{key}.value": "1s" for key in "abcde"}
    assert _assumed(many) == "a.value = 1s, b.value = 1s, c.value = 1s and 2 more"


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (lambda: fs.Scenario("x.toml"), 'write flowstamp.load("x.toml") to read a file'),  # type: ignore[arg-type]
        (lambda: fs.Scenario("duration = 1\n"), "flowstamp.load reads a file"),  # type: ignore[arg-type]
        (lambda: fs.load({"duration": "1s"}), "for tables write flowstamp.Scenario"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_way_to_a_scenario_is_told_the_right_one(use: Callable[[], object], told: str) -> None:
    with pytest.raises(fs.ScenarioError, match=re.escape(told)):
        use()


def test_a_misspelled_file_is_told_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "five.toml").write_text("")
    with pytest.raises(fs.ScenarioError, match=r"fiv\.toml: does not exist; did you mean .*five\.toml\?"):
        fs.load(tmp_path / "fiv.toml")
