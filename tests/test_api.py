# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The Python interface."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import SCENARIO

import flowstamp as fs


@pytest.fixture(scope="module")
def dumbbell() -> fs.Scenario:
    return fs.dumbbell("20Mbps", rtt="40ms").flows("xcp", 3, every="200ms").configure(name="three", duration="2s")


@pytest.fixture(scope="module")
def results(dumbbell: fs.Scenario) -> fs.Results:
    return dumbbell.probe(flows=True, laws=True).capture(packets=100).run()


def test_importing_loads_next_to_nothing() -> None:
    program = (
        "import sys, flowstamp; "
        "print({'numpy', 'matplotlib', 'typer', 'rich', 'flowstamp._flowstamp'} & set(sys.modules)); dir(flowstamp)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
    for name in fs.__all__:
        assert getattr(fs, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = fs.nonsense


def test_a_scenario_is_the_file(tmp_path: Path) -> None:
    path = tmp_path / "three.toml"
    path.write_text(SCENARIO)
    built = fs.dumbbell("20Mbps", rtt="40ms", router="xcp").flows("xcp", 3, name="long")
    built = built.configure(name="three", duration="2s")
    assert fs.load(path).to_toml() == built.to_toml()
    # The spelled-out form is the same scenario again.
    assert fs.loads(built.to_toml()).to_toml() == built.to_toml()


def test_methods_leave_the_old_scenario_as_it_was(dumbbell: fs.Scenario) -> None:
    before = dumbbell.to_toml()
    dumbbell.flows("reno").set("dumbbell.rate", "1Mbps").probe(flows=True).capture().configure(seed=9)
    assert dumbbell.to_toml() == before


def test_a_law_that_needs_routers_gets_them() -> None:
    def routers(scenario: fs.Scenario) -> list[str]:
        tree = scenario.configure(duration="1s").resolved()
        links = tree["graph"]["links"] if "graph" in tree else [tree.get("dumbbell") or tree["parking_lot"]]
        return [link["router"]["law"] for link in links]

    lot = fs.parking_lot(["10Mbps", "5Mbps"], delay="5ms")
    pair = fs.graph().link("a", "b", rate="1Mbps", delay="1ms").link("b", "c", rate="1Mbps", delay="1ms", router="none")
    assert routers(fs.dumbbell("1Mbps", rtt="10ms").flows("reno").flows("xcp-draft")) == ["xcp-draft"]
    assert routers(fs.dumbbell("1Mbps", rtt="10ms").flows("reno")) == ["none"]
    assert routers(lot.flows("xcp")) == ["xcp"]
    assert routers(pair.flows("xcp", from_="a", to="b")) == ["xcp", "none"]


def test_groups_get_names_of_their_own() -> None:
    scenario = fs.dumbbell("1Mbps", rtt="10ms").flows("reno").flows("reno").flows({"law": "reno"})
    assert [group["name"] for group in scenario.tree["flows"]] == ["reno", "reno-2", "reno-3"]


def test_values_of_any_kind_can_be_set(dumbbell: fs.Scenario) -> None:
    tree = (
        dumbbell.set("name", 'a "quoted" \\ name')
        .set("flows.xcp.count", 2)
        .set("flows.xcp.rtt", ["40ms", "80ms"])
        .set("probes.flows", True)
        .set("flows.xcp.law", {"law": "xcp", "price": 2.5})
        .resolved()
    )
    assert tree["name"] == 'a "quoted" \\ name'
    assert tree["flows"][0]["count"] == 2
    assert tree["flows"][0]["rtt"] == ["40ms", "80ms"]
    assert tree["flows"][0]["law"]["price"] == 2.5
    assert tree["probes"]["flows"] is True
    with pytest.raises(fs.ScenarioError, match=r"dumbbell\.rate"):
        dumbbell.set("dumbbell.rate", object())


def test_errors_are_of_one_family(dumbbell: fs.Scenario) -> None:
    with pytest.raises(fs.ScenarioError, match=r"dumbbell\.rate") as caught:
        dumbbell.set("dumbbell.rate", "45mbps").run()
    assert isinstance(caught.value, fs.FlowstampError)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)
    with pytest.raises(fs.ScenarioError, match="not TOML"):
        fs.loads("duration =")
    with pytest.raises(fs.ScenarioError, match="graph"):
        dumbbell.link("a", "b", rate="1Mbps", delay="1ms")


def test_a_file_names_its_routers() -> None:
    text = """
        duration = "1s"
        [dumbbell]
        rate = "1Mbps"
        rtt = "10ms"
        [[flows]]
        name = "long"
        law = "xcp"
        """
    with pytest.raises(fs.ScenarioError, match='"xcp" obeys routers, but no link on the path has router = "xcp"'):
        fs.loads(text).run()


def test_a_time_far_off_warns() -> None:
    network = fs.dumbbell("10Gbps", rtt="30us", router={"law": "rcp", "initial_rtt": "200ms"}).flows("rcp")
    with pytest.warns(fs.ScenarioWarning, match="initial_rtt: is 200ms, but the flows' RTT is 30us") as told:
        network.run("1ms")
    assert told[0].filename == __file__
    with pytest.warns(fs.ScenarioWarning):
        fs.run_many([network.configure(duration="1ms")])


def test_what_is_assumed_is_in_the_summary() -> None:
    summary = fs.dumbbell("1Mbps", rtt="1s").flows("rcp").run("2s").summary
    assert summary["assumed"] == {
        "bottleneck.reverse.router.initial_rtt": "1s",
        "bottleneck.router.initial_rtt": "1s",
        "flows.rcp.transport.initial_rto": "3s",
    }


def test_the_summary_has_the_published_names(results: fs.Results) -> None:
    link = results.links["bottleneck"]
    assert 0.5 < link["utilization"] <= 1
    assert {
        "mean_queue_bytes",
        "p50_queue_bytes",
        "p90_queue_bytes",
        "p95_queue_bytes",
        "p99_queue_bytes",
        "max_queue_bytes",
        "drops",
        "marks",
        "drop_rate",
    } <= link.keys()
    group = results.groups["xcp"]
    assert group["law"] == "xcp"
    assert group["flows"] == 3
    assert group["goodput_bps"] < 20e6
    assert "packet_hops" in results.summary
    assert set(results.took) == {"wall_s", "cpu_s", "packet_hops_per_s"}
    # A folder's summary is the same whenever it is made.
    assert not set(results.took) & set(results.summary)
    assert results.manifest["seed"] == 1
    assert repr(results).startswith("<Results of three: 2 s")


def test_links_can_be_impaired() -> None:
    all_kinds = {
        "loss": "2%",
        "duplicate": 0.01,
        "reorder": "1%",
        "reorder_delay": "5ms",
        "detours": [{"from": "1s", "until": "2s", "delay": "10ms"}],
    }
    row = fs.parking_lot(["10Mbps", "20Mbps"], delay="5ms", impairments=all_kinds)
    net = fs.graph().link("a", "b", rate="10Mbps", delay="5ms", impairments=all_kinds)
    both = fs.dumbbell("10Mbps", rtt="40ms", impairments=all_kinds, reverse_impairments={})
    row, net, both = row.flows("sack", 2), net.flows("sack", 2, from_="a", to="b"), both.flows("sack", 2)
    for scenario, link in ((row, "link2.reverse"), (net, "a->b"), (both, "bottleneck")):
        found = scenario.run("3s").links[link]
        assert min(found["lost"], found["duplicated"], found["reordered"], found["detoured"]) > 0
        assert found["drops"] <= found["arrivals"]
    assert both.run("3s").links["bottleneck.reverse"]["lost"] == 0
    assert "lost" not in fs.dumbbell("10Mbps", rtt="40ms").flows("sack").run("1s").links["bottleneck"]


def test_links_can_fail() -> None:
    net = fs.graph()
    for middle, delay in (("north", "5ms"), ("south", "10ms")):
        net = net.link("west", middle, rate="10Mbps", delay=delay).link(middle, "east", rate="10Mbps", delay=delay)
    net = net.flows("sack", 2, from_="west", to="east").outage("north->east", "1s", "2s")
    late = net.routing(convergence="50ms").run("3s")
    assert late.links["north->east"]["lost"] > 0
    assert late.links["west->south"]["arrivals"] > 0
    assert net.routing(reroute=False).run("3s").links["west->south"]["arrivals"] == 0
    held = net.outage("west->north", "1s", "2s", both_ways=False, on_failure="hold").run("3s")
    assert "lost" not in held.links["west->north"]


def test_series_are_arrays(results: fs.Results) -> None:
    times, values = results.series("link", "bottleneck", "utilization")
    assert times.dtype == values.dtype == np.float64
    assert len(times) == len(values) == 100
    assert np.all(np.diff(times) > 0)
    assert np.all((values >= 0) & (values <= 1))
    assert ("group", "xcp", "goodput_bps") in results.series_names
    assert {kind for kind, _, _ in results.series_names} == {"link", "group", "flow", "law"}


def test_a_series_that_is_not_there_names_those_that_are(results: fs.Results) -> None:
    for wanted, hint in [
        (("link", "bottleneck", "load"), "queue_bytes"),
        (("link", "bottlneck", "utilization"), "bottleneck.reverse"),
        (("links", "bottleneck", "utilization"), "link, group"),
    ]:
        with pytest.raises(fs.ResultsError, match=hint):
            results.series(*wanted)


def test_every_arrow_reader_reads_the_tables(results: fs.Results) -> None:
    flows = results.flows
    assert flows.num_rows == 3
    assert flows.column("group") == ["xcp"] * 3
    assert flows.column("fct_s") == [None] * 3
    with pytest.raises(KeyError, match="goodput_bps"):
        flows.column("speed")
    for frame in (pa.table(flows).to_pandas(), pd.DataFrame(pl.DataFrame(flows).to_dict(as_series=False))):
        assert list(frame.columns) == flows.column_names
        assert frame["delivered_bytes"].sum() * 8 / 2 == pytest.approx(results.groups["xcp"]["goodput_bps"])
    series = pl.DataFrame(results.series_table)
    wanted = series.filter((pl.col("name") == "bottleneck") & (pl.col("metric") == "queue_bytes"))
    assert wanted["value"].to_list() == results.series("link", "bottleneck", "queue_bytes")[1].tolist()


def test_a_table_is_read_by_columns_rows_and_frames(results: fs.Results, tmp_path: Path) -> None:
    results.write(tmp_path)
    for flows in (results.flows, fs.load_results(tmp_path).flows):
        assert flows["group"] == ["xcp"] * 3
        assert flows["delivered_bytes"].sum() == sum(flows.column("delivered_bytes")) > 0
        assert np.isnan(flows["fct_s"]).all()
        assert [row["flow"] for row in flows] == flows.column("flow") == [0, 1, 2]
        assert [row["fct_s"] for row in flows] == [None] * 3
        for frame in (flows.to_pandas(), pd.DataFrame(flows)):
            assert list(frame.columns) == flows.column_names
            assert frame["goodput_bps"].to_list() == flows.column("goodput_bps")
            assert frame["fct_s"].isna().all()
        assert flows.to_polars().equals(pl.DataFrame(results.flows))
        assert repr(flows).splitlines()[0].startswith("flow  group  index  law")
        assert repr(flows).splitlines()[1].split()[:4] == ["0", "xcp", "0", "xcp"]
        assert repr(flows).endswith(f"3 rows, {len(flows.column_names)} columns")


def test_results_are_read_without_any_extra(results: fs.Results, tmp_path: Path) -> None:
    """The tutorials' scripts need only the wheel: its own reader reads the Parquet files."""
    results.write(tmp_path)
    program = (
        "import sys; sys.modules.update(dict.fromkeys(('pyarrow', 'pandas', 'polars')))\n"
        "import flowstamp as fs; r = fs.load_results(sys.argv[1])\n"
        "print(r.flows['group'], len(r.series('link', 'bottleneck', 'utilisation')[0]), len(r.delays) > 0)\n"
        "print(r.flows)"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True)
    first, *table = done.stdout.splitlines()
    assert first == "['xcp', 'xcp', 'xcp'] 100 True"
    assert table[-1].startswith("3 rows")


def test_a_file_that_is_no_table_is_named(results: fs.Results, tmp_path: Path) -> None:
    results.write(tmp_path)
    pl.DataFrame({"at": [True]}).write_parquet(tmp_path / "delays.parquet")
    (tmp_path / "flows.parquet").write_bytes((tmp_path / "flows.parquet").read_bytes()[:-9])
    loaded = fs.load_results(tmp_path)
    with pytest.raises(fs.ResultsError, match=r"flows\.parquet: is not a table of a run"):
        _ = loaded.flows
    with pytest.raises(fs.ResultsError, match='column "at" is of type BOOLEAN'):
        _ = loaded.delays


def test_a_folder_holds_the_same_results(results: fs.Results, tmp_path: Path) -> None:
    paths = results.write(tmp_path / "run")
    assert all(path.is_file() for path in paths)
    assert {path.name for path in paths} >= {"trace.pcapng", "flowstamp.lua"}
    loaded = fs.load_results(tmp_path / "run")
    assert loaded.summary == results.summary
    assert loaded.manifest == results.manifest
    assert loaded.series_names == results.series_names
    for ours, theirs in zip(
        loaded.series("flow", "xcp.1", "rtt_s"), results.series("flow", "xcp.1", "rtt_s"), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert loaded.flows.column_names == results.flows.column_names
    for name in loaded.flows.column_names:
        assert loaded.flows.column(name) == results.flows.column(name)
    with pytest.raises(fs.ResultsError, match=r"summary\.json"):
        fs.load_results(tmp_path)


def test_write_says_what_is_in_the_way(results: fs.Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(fs.OutputError, match="file: exists and is not a folder") as caught:
        results.write(tmp_path / "file")
    assert isinstance(caught.value, OSError)


def test_a_plot_is_drawn(results: fs.Results, tmp_path: Path) -> None:
    figure = results.plot()
    figure.savefig(tmp_path / "overview.png")
    assert (tmp_path / "overview.png").stat().st_size > 10_000


def test_the_seed_decides(dumbbell: fs.Scenario) -> None:
    random = dumbbell.set("flows.xcp.spread", "100ms")

    def starts(seed: int) -> list[float]:
        return random.run(seed=seed).flows.column("start_s")

    assert starts(1) == starts(1)
    assert starts(1) != starts(2)


def test_many_runs_come_back_in_order_whatever_the_threads(dumbbell: fs.Scenario) -> None:
    scenarios = [dumbbell.set("flows.xcp.count", count).set("flows.xcp.spread", "50ms") for count in (1, 2, 3, 4)]
    alone = [scenario.run().flows.column("delivered_bytes") for scenario in scenarios]
    assert [len(delivered) for delivered in alone] == [1, 2, 3, 4]
    for threads in (1, 2, 3):
        together = fs.run_many(scenarios, threads=threads)
        assert [result.flows.column("delivered_bytes") for result in together] == alone
    # All are checked before the first starts.
    with pytest.raises(fs.ScenarioError, match=r"dumbbell\.rate"):
        fs.run_many([dumbbell.set("duration", "1000h"), dumbbell.set("dumbbell.rate", "fast")])


def slow() -> fs.Scenario:
    """Hours of work."""
    return fs.dumbbell("1Gbps", rtt="40ms").flows("xcp").configure(duration="1000h")


def test_progress_is_told_and_may_stop_the_run() -> None:
    told: list[tuple[int, int, float, float, int]] = []

    def watch(run: int, runs: int, simulated_s: float, duration_s: float, events: int) -> None:
        told.append((run, runs, simulated_s, duration_s, events))
        if len(told) == 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        slow().run(progress=watch)
    assert len(told) == 3
    assert all(entry[:2] == (0, 1) and entry[3] == 3.6e6 for entry in told)
    assert told[0][2] < told[1][2] < told[2][2]
    assert told[0][4] < told[1][4] < told[2][4]


def test_an_interrupt_stops_many_runs() -> None:
    def watch(*_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fs.run_many([slow(), slow(), slow()], progress=watch)


def test_the_interpreter_is_free_while_a_run_goes_on() -> None:
    import threading
    import time

    ticks = 0
    done = threading.Event()

    def count() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.01)

    def stop_soon(*_: float) -> None:
        if ticks > 20:
            raise RuntimeError

    counter = threading.Thread(target=count)
    counter.start()
    try:
        with pytest.raises(RuntimeError):
            slow().run(progress=stop_soon)
    finally:
        done.set()
        counter.join()
    assert ticks > 20


def test_the_stub_is_what_the_module_has() -> None:
    import ast

    from flowstamp import _flowstamp

    stub = ast.parse((Path(fs.__file__).parent / "_flowstamp.pyi").read_text())
    defined = {node.name for node in stub.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    public = {name for name in dir(_flowstamp) if not name.startswith("_")}
    assert public == defined
    for node in stub.body:
        if isinstance(node, ast.ClassDef) and node.name in ("Run", "Table"):
            methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            assert methods <= set(dir(getattr(_flowstamp, node.name)))


def test_the_manifest_is_a_scenario_again(results: fs.Results) -> None:
    import json

    from flowstamp import _flowstamp

    again = _flowstamp.Source(json.dumps(results.manifest["scenario"]), format="json").check()
    assert tomllib.loads(again)["dumbbell"]["rate"] == "20Mbps"


def test_a_file_can_be_set_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link.trace").write_text("1\n2\n3\n")
    monkeypatch.chdir(tmp_path)
    base = fs.dumbbell("10Mbps", rtt="40ms").flows("sack")
    absolute = base.set("dumbbell.rate.trace", str(tmp_path / "link.trace")).run("1s")
    relative = base.set("dumbbell.rate.trace", "link.trace").run("1s")
    table = base.set("dumbbell.rate", {"trace": "link.trace"}).run("1s")
    for result in (absolute, relative, table):
        assert result.links["bottleneck"]["rate_bps"] == pytest.approx(12e6, rel=0.01)


def test_seeds_are_refused_that_no_file_can_hold() -> None:
    for seed in (-1, 2**63, 2**64):
        with pytest.raises(fs.ScenarioError, match="seed"):
            fs.dumbbell("10Mbps", rtt="40ms").flows("sack").run("1s", seed=seed)
    with pytest.raises(fs.ScenarioError, match="twice"):
        fs.sweep(fs.dumbbell("10Mbps", rtt="40ms").flows("sack").configure(duration="1s"), {"seed": [1, 2]}, seeds=[3])


def test_counters_are_of_the_whole_run_and_after_warm_up() -> None:
    network = fs.dumbbell("8Mbps", reverse_rate="1Mbps", rtt="20ms", buffer="6pkt").flows("reno", 2, name="there")
    network = network.flows("reno", 2, name="back", reverse=True).flows(
        "reno", 4, name="short", size="20kB", every="500ms"
    )
    results = network.run("4s", warmup="1s")
    link, group = results.summary["links"]["bottleneck.reverse"], results.summary["groups"]["short"]
    assert link["after_warmup"].keys() == link["whole_run"].keys()
    assert all(link[name] == count for name, count in link["after_warmup"].items())
    for counts in (link["after_warmup"], link["whole_run"]):
        assert counts["drops"] == counts["drops_data"] + counts["drops_acks"]
        assert min(counts["drops_data"], counts["drops_acks"]) > 0
    assert link["whole_run"]["drops"] > link["drops"]
    assert group["after_warmup"].keys() == group["whole_run"].keys()
    assert (group["whole_run"]["flows"], group["after_warmup"]["flows"]) == (4, 2)
    flows = results.flows
    assert {"delivered_bytes_after_warmup", "retransmissions_after_warmup", "timeouts_after_warmup"} <= set(
        flows.column_names
    )
    pairs = zip(flows.column("fct_s"), flows.column("fct_sender_s"), strict=True)
    ended = [(receiver, sender) for receiver, sender in pairs if sender is not None]
    assert len(ended) == 4
    assert all(sender > receiver + 0.01 for receiver, sender in ended)
    assert group["fct_sender_s"]["all"]["count"] == group["fct_s"]["all"]["count"] == 2


def test_lost_data_and_acks_are_measures_of_figures() -> None:
    from flowstamp.figures.measures import Finished, RunSet

    network = fs.dumbbell("8Mbps", reverse_rate="1Mbps", rtt="20ms", buffer="6pkt").flows("reno", 2, name="there")
    results = network.flows("reno", reverse=True).run("2s", warmup="1s")
    run = RunSet("a", [Finished.of(results, flow_series=False, packet_bytes=1000.0)], ["bottleneck.reverse"], "there")
    data, acks, both = (run.measure(name)[0] for name in ("drops_data", "drops_acks", "drops"))
    assert min(data, acks) > 0
    assert data + acks == both
