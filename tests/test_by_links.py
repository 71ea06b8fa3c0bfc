# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs by links in threads, in processes and on a Dask cluster, and the memory that they may need."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from test_memory import FACTOR, PROGRAM

import flowstamp as fs
from flowstamp.errors import UsageError

pytestmark = pytest.mark.filterwarnings("ignore:.*equal-cost paths")


def tree(tmp_path: Path) -> fs.Scenario:
    """A fat tree with random flows, with flows of a file, and with planned ones."""
    flows = tmp_path / "flows.csv"
    flows.write_text("start,size,from,to\n10us,20kB,h0,h9\n20us,90kB,h3,h0\n25us,90kB,h5,h0\n")
    web = {"load": 0.3, "sizes": {"distribution": "hadoop"}}
    return (
        fs.fat_tree(4, rate="10Gbps", delay="1us", router="rcp", buffer="100kB")
        .flows("rcp", name="web", pattern="random", web=web)
        .flows("rcp", name="listed", list_=flows)
        .flows("rcp", name="planned", from_="h1", to="h12", size="50kB", count=3)
        .configure(duration="500us", warmup="50us")
    )


def files(results: fs.Results, folder: Path) -> Mapping[str, bytes]:
    results.write(folder)
    return {name: (folder / name).read_bytes() for name in ("summary.json", "flows.parquet", "delays.parquet")}


def same_as_threads(scenario: fs.Scenario, executor: str, tmp_path: Path) -> None:
    own = scenario.run(by_links=True, threads=1, seed=7)
    shown: list[tuple[float, float]] = []

    def progress(_run: int, _runs: int, simulated_s: float, duration_s: float, _events: int) -> None:
        shown.append((simulated_s, duration_s))

    came = scenario.run(by_links=True, executor=executor, threads=2, seed=7, progress=progress)
    assert files(own, tmp_path / "own") == files(came, tmp_path / "came")
    assert came.manifest["by_links"] is True
    assert came.manifest["scenario"] == own.manifest["scenario"]
    assert shown[-1] == pytest.approx((500e-6, 500e-6))


def test_processes_give_the_bits_of_threads(tmp_path: Path) -> None:
    same_as_threads(tree(tmp_path), "processes", tmp_path)


@pytest.mark.long
def test_a_cluster_gives_the_bits_of_threads(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="needs distributed; install flowstamp[dask]")

    def networks() -> int:
        """Returns the number of networks that a worker keeps for jobs."""
        from flowstamp import apart

        return len(apart._laid_out)

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        same_as_threads(tree(tmp_path), f"dask={cluster.scheduler_address}", tmp_path)
        with distributed.Client(cluster, set_as_default=False) as client:
            assert set(client.run(networks).values()) == {0}


def test_the_command_runs_links_in_processes(flowstamp: Command, tmp_path: Path) -> None:
    scenario = tmp_path / "tree.toml"
    scenario.write_text(tree(tmp_path).to_toml())
    out = [flowstamp("run", scenario, "--by-links", *more, "--json").stdout for more in ([], ["--executor=processes"])]
    assert out[0] == out[1]
    # Packets are counted at links only, so that the counts of hosts are left out.
    summary: dict[str, Any] = json.loads(out[0])
    assert "packets" not in summary
    assert "arrivals" not in summary["access"]
    assert summary["total"]["whole_run"]["arrivals"] > 0


def test_only_links_run_elsewhere(flowstamp: Command, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="executor: processes runs links; give by_links"):
        tree(tmp_path).run(executor="processes")
    with pytest.raises(UsageError, match='executor: "process" is not an executor'):
        tree(tmp_path).run(by_links=True, executor="process")
    scenario = tmp_path / "tree.toml"
    scenario.write_text(tree(tmp_path).to_toml())
    done = flowstamp("run", scenario, "--executor", "processes")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--executor processes works only with --by-links; add --by-links" in done.stderr


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_links_that_cannot_run_are_refused_alike(tmp_path: Path, executor: str) -> None:
    endless = tree(tmp_path).flows("rcp", name="endless", from_="h0", to="h1")
    with pytest.raises(fs.ScenarioError, match=r"flows\.endless\.size: is missing"):
        endless.run(by_links=True, executor=executor)


@pytest.mark.parametrize("executor", ["threads", "processes"])
@pytest.mark.parametrize(
    ("memory", "says"),
    [
        ("1kB", r"flows: the run by links may need .* for \d+ flows or more; it may have 1\.0 kB"),
        ("90MB", r"the run by links may need \d+ MB of memory, 96 MB of it for the program itself; it may have 90 MB"),
    ],
)
def test_links_that_need_too_much_are_refused(tmp_path: Path, executor: str, memory: str, says: str) -> None:
    with pytest.raises(fs.ScenarioError, match=says):
        tree(tmp_path).run(by_links=True, executor=executor, memory=memory)


PEAK = """
import sys
import flowstamp as fs
fs.load(sys.argv[1]).run(by_links=True, threads=2)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(peak.split()[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize(("k", "load", "duration"), [(4, 0.5, "2ms"), (8, 0.2, "300us")])
def test_the_estimate_is_a_bound(tmp_path: Path, k: int, load: float, duration: str) -> None:
    """The estimate is above the peak of two threads, and not far above, by the rule for whole runs."""
    web = {"load": load, "sizes": {"distribution": "hadoop"}}
    scenario = fs.fat_tree(k, rate="10Gbps", delay="1us", buffer="100kB").flows(
        "dctcp", name="web", pattern="random", web=web
    )
    path = tmp_path / "tree.toml"
    path.write_text(scenario.configure(duration=duration).to_toml())
    with pytest.raises(fs.ScenarioError) as refused:
        fs.load(path).run(by_links=True, threads=2, memory="50MB")
    said = re.search(r"may need ([\d.]+) (\w+) of memory", str(refused.value))
    assert said
    needs = float(said[1]) * {"MB": 1e6, "GB": 1e9}[said[2]]
    done = subprocess.run([sys.executable, "-c", PEAK, path], capture_output=True, text=True, check=True)
    peak = float(done.stdout) * 1024
    assert peak <= needs <= PROGRAM + FACTOR * peak
