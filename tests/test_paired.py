# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`compare --metric`: the same flows under two protocols."""

from __future__ import annotations

from pathlib import Path

import pytest

import flowstamp as fs
from flowstamp import paired
from flowstamp.cli import run_command

SCENARIO = """
duration = "40s"
warmup = "5s"
[dumbbell]
rate = "45Mbps"
rtt = "60ms"
[[flows]]
name = "web"
law = "sack"
count = 4
[flows.web]
load = 0.6
sizes = { distribution = "exponential", mean = "30kB" }
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "web.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def test_the_same_protocol_twice_takes_as_long(scenario: Path) -> None:
    one = fs.load(scenario).run()
    [row] = paired.differences({"a": one, "b": one}, "p95_fct")
    assert (row["ratio"], row["low"], row["high"], row["left_out"]) == (1.0, 1.0, 1.0, 0)
    assert "no difference is shown" in paired.text_of(row)


def test_a_path_that_is_twice_as_long_takes_longer_by_what_it_adds(scenario: Path) -> None:
    """Flows of a bottleneck with room take round trips and little else."""
    roomy = (
        fs.load(scenario)
        .set("dumbbell.rate", "10Gbps")
        .set("flows.web.web", {"flows_per_s": 100.0, "sizes": {"distribution": "exponential", "mean": "30kB"}})
    )
    near, far = roomy.run(), roomy.set("dumbbell.rtt", "120ms").run()
    [row] = paired.differences({"far": far, "near": near}, "mean_fct")
    # All but the transmission doubles: of 30 kB at 10 Gb/s, 24 us of 60 ms and more.
    assert 1.99 < row["low"] <= row["high"] <= 2.0
    assert "near beats far by 50% to 50%" in paired.text_of(row)
    [row] = paired.differences({"near": near, "far": far}, "mean_fct")
    assert "near beats far by 50% to 50%" in paired.text_of(row)


def test_few_flows_have_no_interval(scenario: Path) -> None:
    short = fs.load(scenario).set("duration", "8s").run()
    [row] = paired.differences({"a": short, "b": short}, "p99_fct")
    assert (row["low"], row["needs_flows"]) == (None, 10_000)
    assert "too few flows to tell, 10000 are needed" in paired.text_of(row)


def test_the_command_says_who_is_quicker(scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    words = ["compare", str(scenario), "--protocols", "xcp,sack", "--metric", "p95_fct", "--out", str(out)]
    assert run_command(words) == 0
    told = capsys.readouterr().out
    assert "sack beats xcp by" in told
    assert "queueing delay" in told
    assert "p50 time" not in told
    assert (out / "cdf.png").read_bytes().startswith(b"\x89PNG")
    assert run_command([*words[:4], "--metric", "fct"]) == 2
    assert "there are mean_fct, p50_fct, p95_fct, p99_fct" in capsys.readouterr().err
