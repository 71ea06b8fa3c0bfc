# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One run on several threads."""

from __future__ import annotations

from pathlib import Path

import pytest

import flowstamp as fs

TREE = """
duration = "500us"
warmup = "100us"
[leaf_spine]
leaves = 4
spines = 1
hosts = 4
rate = "10Gbps"
delay = "1us"
router = "rcp"
[[flows]]
name = "permutation"
law = "rcp"
pattern = "permutation"
[probes]
every = "20us"
flows = true
laws = true
"""


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_results_are_those_of_one_thread(threads: int, tmp_path: Path) -> None:
    """The summary, all samples and all flows are the same bytes."""
    scenario = fs.loads(TREE)
    scenario.run().write(tmp_path / "one")
    scenario.run(threads=threads).write(tmp_path / "several")
    for name in ("summary.json", "series.parquet", "flows.parquet", "delays.parquet"):
        assert (tmp_path / "several" / name).read_bytes() == (tmp_path / "one" / name).read_bytes(), name


def test_flows_may_arrive_in_a_large_network(tmp_path: Path) -> None:
    scenario = (
        fs.load("examples/fat_tree.toml").set("duration", "60us").set("warmup", "20us").set("probes.every", "20us")
    )
    scenario.run().write(tmp_path / "one")
    scenario.run(threads=2).write(tmp_path / "several")
    for name in ("summary.json", "series.parquet", "flows.parquet", "delays.parquet"):
        assert (tmp_path / "several" / name).read_bytes() == (tmp_path / "one" / name).read_bytes(), name


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {
                "flows.permutation.pattern": "random",
                "flows.permutation.web": {"load": 0.2, "sizes": {"distribution": "fixed", "size": "30kB"}},
            },
            'the flows of "permutation" arrive during the run. With fewer than 256 router links .* this network has 40',
        ),
        ({"flows.permutation.pattern": "ring-all-reduce", "flows.permutation.size": "1MB"}, "wait for each other"),
    ],
)
def test_a_network_that_needs_one_thread_is_refused(change: dict[str, object], words: str) -> None:
    scenario = fs.loads(TREE)
    for key, value in change.items():
        scenario = scenario.set(key, value)
    with pytest.raises(fs.ScenarioError, match=words):
        scenario.run(threads=2)


def test_more_threads_than_nodes() -> None:
    with pytest.raises(fs.ScenarioError, match=r"threads: is 200; this network has \d+ parts"):
        fs.loads(TREE).run(threads=200, memory="1000GB")


def test_no_thread() -> None:
    with pytest.raises(fs.ScenarioError, match="threads: is 0; it must be at least 1"):
        fs.loads(TREE).run(threads=0)
