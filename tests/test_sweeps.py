# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Sweeps: what they keep, where they run, and as tables and pictures."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow
import pytest
from conftest import Command, command_line, heed_interrupts
from matplotlib.collections import LineCollection

import flowstamp as fs
from flowstamp import executors, points
from flowstamp.errors import ExecutorError, UsageError
from flowstamp.executors import Job

GRID: dict[str, list[Any]] = {"dumbbell.rate": ["10Mbps", "40Mbps"], "flows.xcp.count": [1, 2]}


@pytest.fixture
def random() -> fs.Scenario:
    """Flows that start at random instants."""
    return fs.dumbbell("10Mbps", rtt="20ms").flows("xcp", 2, name="xcp", spread="200ms").configure(duration="500ms")


def files(folder: Path) -> dict[str, int]:
    """The points in a folder, and when each was written."""
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.parquet")}


# ---------------------------------------------------------------------------------------------------- what is kept


def test_a_second_call_runs_what_is_missing(random: fs.Scenario, tmp_path: Path) -> None:
    first = fs.sweep(random, GRID, keep=tmp_path)
    there = files(tmp_path)
    assert (first.kept, len(there)) == (0, 4)
    more = {**GRID, "flows.xcp.count": [1, 2, 3]}
    second = fs.sweep(random, more, keep=tmp_path)
    assert (second.kept, len(files(tmp_path))) == (4, 6)
    assert there.items() <= files(tmp_path).items()
    # It is what was run without being kept, to the bit.
    alone = fs.sweep(random, more)
    assert second.rows() == alone.rows()
    assert [kept.summary for kept in second.results] == [run.summary for run in alone.results]
    assert second.results[0].manifest["scenario"] == alone.results[0].manifest["scenario"]
    assert fs.sweep(random, GRID, keep=tmp_path, fresh=True).kept == 0
    assert all(written > there[name] for name, written in files(tmp_path).items() if name in there)


def test_axes_may_be_of_numpy(random: fs.Scenario) -> None:
    grid = {"dumbbell.router.alpha": np.linspace(0.3, 0.4, 2), "flows.xcp.count": np.arange(1, 3)}
    swept = fs.sweep(random, grid, seeds=list(np.arange(1, 3)))  # type: ignore[arg-type]
    assert swept.points[-1] == {"dumbbell.router.alpha": 0.4, "flows.xcp.count": 2, "seed": 2}
    with pytest.raises(fs.ScenarioError, match="at least one value"):
        fs.sweep(random, {"flows.xcp.count": np.arange(0)})  # type: ignore[dict-item]


def test_a_value_that_is_there_twice_is_run_once(random: fs.Scenario, tmp_path: Path) -> None:
    swept = fs.sweep(random, {"flows.xcp.count": [1, 1, 2]}, keep=tmp_path)
    assert len(files(tmp_path)) == 2
    assert swept.results[0].summary == swept.results[1].summary


def test_the_files_are_the_table(random: fs.Scenario, tmp_path: Path) -> None:
    swept = fs.sweep(random, GRID, keep=tmp_path)
    order = ["dumbbell.rate_bps", "flows.xcp.count", "kind", "name", "metric"]
    there = pl.read_parquet(tmp_path / "*.parquet").sort(order)
    assert there.equals(pl.DataFrame(swept).cast(dict.fromkeys(order[2:], pl.String)).sort(order))


def test_what_numbers_come_from_is_in_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flows = tmp_path / "flows.csv"
    scenario = fs.dumbbell("10Mbps", rtt="20ms").flows("xcp", list_=flows).configure(duration="500ms")

    def key(scenario: fs.Scenario = scenario) -> str:
        return points.key(Job.of(scenario, memory=None))

    flows.write_text("start,size\n10ms,20kB\n")
    first = key()
    assert key(scenario.configure(header="40B")) == first  # the default
    assert key(scenario.configure(seed=2)) != first
    assert key(scenario.set("dumbbell.rtt", "21ms")) != first
    flows.write_text("start,size\n10ms,30kB\n")
    assert key() != first
    flows.write_text("start,size\n10ms,20kB\n")
    assert key() == first
    monkeypatch.setattr(points, "engine", lambda: "built anew")
    assert key() != first


@pytest.mark.parametrize("damage", ["cut", "foreign", "empty", "another's"])
def test_what_is_no_point_is_told_of_and_run_again(random: fs.Scenario, tmp_path: Path, damage: str) -> None:
    fs.sweep(random, GRID, keep=tmp_path)
    name = min(files(tmp_path))
    path, other = tmp_path / name, tmp_path / max(files(tmp_path))
    whole = path.read_bytes()
    table = io.BytesIO()
    pl.DataFrame({"a": [1]}).write_parquet(table)
    damaged = {"cut": whole[:-10], "foreign": table.getvalue(), "empty": b"", "another's": other.read_bytes()}
    path.write_bytes(damaged[damage])
    with pytest.warns(fs.ResultsWarning, match=f"{name}: is not a whole point of a sweep, and is run again") as told:
        assert fs.sweep(random, GRID, keep=tmp_path).kept == 3
    assert len(told) == 1
    assert fs.sweep(random, GRID, keep=tmp_path).kept == 4


def test_a_folder_that_cannot_be_is_told_of_before_any_work(random: fs.Scenario, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(fs.OutputError, match="file: exists and is not a folder"):
        fs.sweep(random.set("duration", "1000h"), GRID, keep=tmp_path / "file" / "points")
    with pytest.raises(fs.ScenarioError, match="tables: are for points that are kept; give a folder as keep"):
        fs.sweep(random, GRID, tables=True)


def test_series_and_flows_are_kept_where_they_are_asked_for(random: fs.Scenario, tmp_path: Path) -> None:
    grid = {"flows.xcp.count": [1, 2]}
    without = fs.sweep(random, grid, keep=tmp_path)
    with pytest.raises(fs.ResultsError, match="kept without series and flows"):
        without.results[0].series("link", "bottleneck", "utilization")
    swept = fs.sweep(random, grid, keep=tmp_path, tables=True)
    assert swept.kept == 0
    swept = fs.sweep(random, grid, keep=tmp_path, tables=True)
    assert swept.kept == 2
    run = random.set("flows.xcp.count", 2).run()
    assert swept.results[1].flows.column("goodput_bps") == run.flows.column("goodput_bps")
    for kept, own in zip(
        *(one.series("link", "bottleneck", "utilization") for one in (swept.results[1], run)), strict=True
    ):
        assert np.array_equal(kept, own)


def test_what_stops_a_sweep_loses_nothing_that_ended(random: fs.Scenario, tmp_path: Path) -> None:
    # The second point would take hours.
    grid = {"duration": ["500ms", "1000h"]}

    def stop(*_: object) -> None:
        if files(tmp_path):
            raise KeyboardInterrupt

    for executor in ("threads", "processes"):
        with pytest.raises(KeyboardInterrupt):
            fs.sweep(random, grid, keep=tmp_path, executor=executor, progress=stop, fresh=True)
        assert len(files(tmp_path)) == 1
        assert fs.sweep(random, {"duration": ["500ms"]}, keep=tmp_path).kept == 1
        next(tmp_path.glob("*.parquet")).unlink()


@pytest.mark.parametrize("executor", ["threads", "processes"])
@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_sweep_goes_on_where_it_was(
    flowstamp: Command, scenario: Path, executor: str, kill: signal.Signals
) -> None:
    options = [scenario, "--out", "out", "--executor", executor]
    kept = scenario.parent / "out" / "points"
    with subprocess.Popen(
        command_line("sweep", *options, "--grid", "duration=1s,1000h"),
        cwd=scenario.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
        start_new_session=True,
    ) as process:
        until = time.monotonic() + 60
        while not files(kept) and time.monotonic() < until:
            time.sleep(0.05)
        # As a terminal does it: all processes hear of it.
        (os.killpg if kill == signal.SIGINT else os.kill)(process.pid, kill)
        # Its own processes end with it, or they would hold its output open.
        out, said = process.communicate(timeout=60)
    assert (process.returncode, out) == ((130, "") if kill == signal.SIGINT else (-kill, ""))
    if kill == signal.SIGINT:
        assert said == "interrupted\n"
    done = flowstamp("sweep", *options, "--grid", "duration=1s,2s")
    assert (done.returncode, done.stderr) == (
        0,
        "1 of 2 points are in out/points from before; --fresh runs all of them again\n",
    )
    assert len(files(kept)) == 2


# ---------------------------------------------------------------------------------------------------- where they run


@contextmanager
def cluster() -> Iterator[Any]:
    """Two worker processes and their scheduler."""
    distributed = pytest.importorskip("distributed", reason="needs distributed; install flowstamp[dask]")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster


def test_runs_are_the_same_in_processes(random: fs.Scenario, tmp_path: Path) -> None:
    flows = tmp_path / "flows.csv"
    flows.write_text("start,size\n10ms,20kB\n20ms,90kB\n")
    scenario = random.flows("xcp", name="listed", list_=flows)
    own = fs.run_many([scenario, random])
    came = fs.run_many([scenario, random], executor="processes", threads=1)
    for one, other in zip(own, came, strict=True):
        assert other.summary == one.summary
        for column in one.flows.column_names:
            assert other.flows.column(column) == one.flows.column(column)
        for name in one.series_names:
            assert all(np.array_equal(*pair) for pair in zip(one.series(*name), other.series(*name), strict=True))
    own[0].write(tmp_path / "own")
    came[0].write(tmp_path / "came")
    for file in ("summary.json", "series.parquet", "flows.parquet"):
        assert (tmp_path / "own" / file).read_bytes() == (tmp_path / "came" / file).read_bytes()


def test_a_killed_process_is_no_lost_run(random: fs.Scenario, tmp_path: Path) -> None:
    killed: list[int] = []

    def kill(*_: object) -> None:
        if not killed:
            children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
            workers = [pid for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
            killed.append(int(workers[0]))
            os.kill(killed[0], signal.SIGKILL)

    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        pytest.skip("needs /proc")
    grid = {"flows.xcp.count": list(range(1, 13))}
    swept = fs.sweep(random, grid, keep=tmp_path, executor="processes", threads=2, progress=kill)
    assert killed
    assert [results.summary["groups"]["xcp"]["flows"] for results in swept.results] == grid["flows.xcp.count"]


def test_a_killed_worker_is_no_lost_run(random: fs.Scenario, tmp_path: Path) -> None:
    with cluster() as started:
        address = f"dask={started.scheduler_address}"
        pids = [worker.process.pid for worker in started.workers.values()]
        killed: list[int] = []

        def kill(*_: object) -> None:
            if not killed:
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

        grid: dict[str, list[Any]] = {"flows.xcp.count": list(range(1, 9)), "duration": ["500ms", "4s"]}
        swept = fs.sweep(random, grid, executor=address, keep=tmp_path, progress=kill)
        assert killed
        assert len(files(tmp_path)) == 16
        assert swept.rows() == fs.sweep(random, grid).rows()
        # Whole results come back as they are here, as comparisons and figures need them.
        [own], [came] = fs.run_many([random]), fs.run_many([random], executor=address)
        assert came.summary == own.summary
        assert came.flows.column("goodput_bps") == own.flows.column("goodput_bps")
        wanted = ("link", "bottleneck", "queue_bytes")
        assert np.array_equal(own.series(*wanted), came.series(*wanted))
        # A run that is wrong is told of as at home.
        with pytest.raises(ExecutorError, match=r"may need .* of memory"):
            executors.run([Job.of(random, memory=None)], lambda *_: None, executor=address, memory="1MB")


def test_what_is_no_executor_is_refused(random: fs.Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("cluster", "dask", "dask=", "processes=2"):
        with pytest.raises(
            UsageError, match=f'executor: "{wrong}" is not an executor; it must be threads, processes or dask='
        ):
            fs.sweep(random, GRID, executor=wrong)
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(fs.FlowstampError, match=r"install flowstamp\[dask\]"):
        fs.sweep(random, GRID, executor="dask=tcp://127.0.0.1:1")


def test_a_scheduler_that_is_not_there_is_told_of(random: fs.Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="needs distributed; install flowstamp[dask]")
    monkeypatch.setattr(executors, "CONNECT_S", 0.5)
    with pytest.raises(ExecutorError, match=r"executor: dask=tcp://127\.0\.0\.1:1: no scheduler answers there"):
        fs.sweep(random, GRID, executor="dask=tcp://127.0.0.1:1")
    for wrong in ("nonsense", "tcp://127.0.0.1", "foo://127.0.0.1:1"):
        with pytest.raises(ExecutorError, match=f"executor: dask={wrong}: no scheduler answers there"):
            fs.sweep(random, GRID, executor=f"dask={wrong}")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--executor", "cluster"], 'executor: "cluster" is not an executor'),
        (["--tables"], "--tables needs --out DIR"),
        (["--fresh"], "--fresh needs --out DIR"),
        (["--executor", "dask=tcp://127.0.0.1:1", "--threads", "2"], "--threads: is not for --executor dask"),
    ],
)
def test_options_that_do_not_fit_are_refused(flowstamp: Command, scenario: Path, options: list[str], said: str) -> None:
    done = flowstamp("sweep", scenario, "--grid", "flows.long.count=1", *options)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr


# ---------------------------------------------------------------------------------------------------- what they say


def test_seeds_that_change_nothing_are_told_of(random: fs.Scenario, tmp_path: Path) -> None:
    fs.sweep(random, {"flows.xcp.count": [1, 2]}, seeds=[1, 2])  # a warning would be an error
    steady = random.set("flows.xcp.spread", "0s")
    for keep in (None, tmp_path):
        with pytest.warns(fs.ResultsWarning, match="2 seeds gave the same results: nothing in it is random"):
            fs.sweep(steady, {"flows.xcp.count": [1, 2]}, seeds=[1, 2], keep=keep)


def test_a_sweep_is_a_tidy_table(random: fs.Scenario) -> None:
    swept = fs.sweep(random, {"flows.xcp.count": [1, 2]}, seeds=[1, 2])
    assert swept.keys == ("flows.xcp.count", "seed")
    assert len(swept.results) == 4
    frame = pl.DataFrame(swept.rows())
    flows = frame.filter((pl.col("kind") == "group") & (pl.col("metric") == "flows"))
    assert flows["value"].to_list() == [1, 1, 2, 2]
    with pytest.raises(fs.ScenarioError, match="list"):
        fs.sweep(random, {"dumbbell.rate": "20Mbps"})


def test_axes_are_numbers_with_units(random: fs.Scenario) -> None:
    grid: dict[str, list[Any]] = {
        "dumbbell.rate": ["10Mbps", "1Gbps"],
        "dumbbell.rtt": ["20ms"],
        "dumbbell.buffer": ["1BDP", "30kB"],
        "packet": ["1000B"],
        "flows.xcp.count": [1],
    }
    swept = fs.sweep(random, grid)
    table = pyarrow.table(swept)
    assert table.column_names == [
        "dumbbell.rate_bps",
        "dumbbell.rtt_s",
        "dumbbell.buffer",
        "packet_bytes",
        "flows.xcp.count",
        *("kind", "name", "metric", "value"),
    ]
    frame = pl.DataFrame(swept)
    assert frame["dumbbell.rate_bps"].unique().sort().to_list() == [1e7, 1e9]
    assert frame["dumbbell.rtt_s"].unique().to_list() == [0.02]
    assert frame["packet_bytes"].unique().to_list() == [1000.0]
    assert frame.schema["flows.xcp.count"] == pl.Int64
    assert frame["dumbbell.buffer"].cast(pl.String).unique().sort().to_list() == ["1BDP", "30kB"]
    assert swept.to_pandas().shape == swept.to_polars().shape == frame.shape
    rows = swept.rows()
    assert frame["value"].to_list() == [row["value"] for row in rows]
    assert frame["metric"].cast(pl.String).to_list() == [row["metric"] for row in rows]


def test_a_sweep_is_an_xarray(random: fs.Scenario) -> None:
    pytest.importorskip("xarray", reason="needs xarray")
    swept = fs.sweep(random, GRID, seeds=[1, 2])
    data = swept.to_xarray()
    assert dict(data.sizes) == {"dumbbell.rate_bps": 2, "flows.xcp.count": 2, "seed": 2}
    found = data["link.bottleneck.utilization"].sel({"dumbbell.rate_bps": 40e6, "flows.xcp.count": 1, "seed": 2})
    wanted = {"dumbbell.rate": "40Mbps", "flows.xcp.count": 1, "seed": 2}
    [own] = [r for p, r in zip(swept.points, swept.results, strict=True) if p == wanted]
    assert float(found) == own.links["bottleneck"]["utilization"]


def test_metrics_have_names_and_those_that_are_none_are_told_of(random: fs.Scenario) -> None:
    swept = fs.sweep(random.flows("xcp", name="other"), {"flows.xcp.count": [1, 2]})
    used = [results.links["bottleneck"]["utilization"] for results in swept.results]
    assert swept.values("utilization").tolist() == used  # of the link that is used the most
    assert swept.values("whole_run.delivered_bytes", name="other").tolist() == [
        results.groups["other"]["whole_run"]["delivered_bytes"] for results in swept.results
    ]
    with pytest.raises(fs.ResultsError, match='"jain_index" has several values; give a name: other, xcp'):
        swept.values("jain_index", kind="group")
    with pytest.raises(fs.ResultsError, match='"speed" is not a metric; there are rate_bps'):
        swept.values("speed")
    with pytest.raises(fs.ResultsError, match='"uplink" is not a link; there are bottleneck'):
        swept.values("utilization", kind="link", name="uplink")
    with pytest.raises(fs.ResultsError, match="is not a key"):
        swept.where("flows.count", 1)
    assert len(swept.where("flows.xcp.count", 2).results) == 1


def test_lines_are_means_over_seeds_with_intervals(random: fs.Scenario) -> None:
    swept = fs.sweep(random, GRID, seeds=[1, 2, 3])
    axes = swept.lines("goodput_bps", kind="group").axes[0]
    lines = [line for line in axes.lines if str(line.get_label()).startswith("count")]
    assert [line.get_label() for line in lines] == ["count 1", "count 2"]
    values = swept.where("dumbbell.rate", "40Mbps").where("flows.xcp.count", 2).values("goodput_bps", kind="group")
    assert np.asarray(lines[1].get_xydata())[1].tolist() == [40e6, pytest.approx(values.mean())]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["10Mbps", "40Mbps"]
    # Student's t with two degrees of freedom: 4.303 standard errors.
    bars = axes.collections[1]
    assert isinstance(bars, LineCollection)
    low, high = bars.get_segments()[1][:, 1]
    assert (high - low) / 2 == pytest.approx(4.303 * values.std(ddof=1) / 3**0.5, rel=1e-3)


def test_a_heatmap_has_a_field_for_each_point(random: fs.Scenario) -> None:
    swept = fs.sweep(random, GRID, seeds=[1, 2])
    axes = swept.heatmap("utilization").axes[0]
    field = np.asarray(axes.images[0].get_array())
    means = swept.values("utilization").reshape(2, 2, 2).mean(axis=2)
    assert field == pytest.approx(means.T)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("dumbbell.rate", "flows.xcp.count")
    with pytest.raises(fs.ResultsError, match="needs two keys"):
        swept.where("flows.xcp.count", 1).heatmap()
    assert np.asarray(swept.heatmap(x="flows.xcp.count").axes[0].images[0].get_array()) == pytest.approx(means)
