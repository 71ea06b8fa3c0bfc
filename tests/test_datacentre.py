# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Networks with several equal paths, graphs of files, and completion times over the ideal ones."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import flowstamp as fs
from flowstamp.fct import slowdown_figure

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
LAWS = "rcp+droptail,xcp+droptail,vcp+droptail,dctcp+red"

GRAPHML = """<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d2" for="edge" attr.name="delay" attr.type="string"><default>2ms</default></key>
  <key id="d1" for="edge" attr.name="weight" attr.type="long" />
  <key id="d0" for="edge" attr.name="capacity" attr.type="string" />
  <graph edgedefault="undirected">
    <node id="a" /><node id="b &amp; c" />
    <node id="d"/>
    <edge source="a" target="b &amp; c"><data key="d0">20Mbps</data><data key="d1">7</data></edge>
    <edge source="b &amp; c" target="d"><data key="d0">10Mbps</data><data key="d2">5ms</data></edge>
    <edge source="a" target="d" directed="true"><data key="d0">1Mbps</data></edge>
  </graph>
</graphml>
"""


def flowstamp(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flowstamp", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


def small(**given: Any) -> fs.Scenario:
    """A leaf-spine of eight hosts with random transfers."""
    network: dict[str, Any] = {"rate": "10Gbps", "delay": "1us"} | given
    sizes = {"distribution": "pareto", "mean": "20kB", "shape": 1.5}
    web = {"load": 0.4, "sizes": sizes}
    return fs.leaf_spine(2, 2, 4, **network).flows("rcp", name="web", pattern="random", web=web)


@pytest.mark.long
def test_the_example_works_under_each_law(tmp_path: Path) -> None:
    """Laws that are told nothing work at RTTs of microseconds: most of what came is over, no law stands."""
    done = flowstamp(
        *("compare", str(EXAMPLES / "fat_tree.toml"), "--protocols", LAWS, "--out", str(tmp_path), "--json"),
        *("--set", "duration=1500us", "--set", "warmup=300us"),
    )
    protocols = json.loads(done.stdout)["protocols"]
    web = {law: summary["groups"]["web"] for law, summary in protocols.items()}
    for law, group in web.items():
        assert group["completed"] > 0.7 * group["flows"], law
        # No flow is faster than alone.
        assert group["fct_slowdown"]["all"]["count"] > 1000
        assert min(row["p50"] for row in group["fct_slowdown"]["bins"]) >= 1, law
    assert protocols["xcp+droptail"]["total"]["drops"] == 0
    # Values of the page: RCP spends a round trip on its SYN, and is the quickest for what takes others several.
    short, longer = ({law: group["fct_slowdown"]["bins"][at]["p50"] for law, group in web.items()} for at in (0, 3))
    assert short["rcp+droptail"] > 2.5
    assert max(value for law, value in short.items() if law != "rcp+droptail") < 1.5
    assert min(longer, key=lambda law: longer[law]) == "rcp+droptail"
    assert max(longer, key=lambda law: longer[law]) == "vcp+droptail"
    assert (tmp_path / "slowdown.png").stat().st_size > 10_000


def test_a_step_that_drops_acks_stalls_flows() -> None:
    """The page on DCTCP: acks lost at the step leave flows waiting for their first timeout."""
    made = runpy.run_path(str(EXAMPLES / "fat_tree.py"))["scenario"]
    scenario = made("dctcp", EXAMPLES / "data/datacentre-sizes.txt", 4, 0.4, "4ms")
    spared, dropped = (scenario.set("fat_tree.queue.step_drops", drops).run() for drops in (False, True))
    stalled = [run.groups["web"]["flows"] - run.groups["web"]["completed"] for run in (spared, dropped)]
    assert spared.summary["total"]["whole_run"]["drops_acks"] == 0
    assert dropped.summary["total"]["whole_run"]["drops_acks"] > 0
    assert stalled[1] > 1.5 * stalled[0]


@pytest.mark.long
def test_the_script_has_the_same_runs(tmp_path: Path) -> None:
    made = runpy.run_path(str(EXAMPLES / "fat_tree.py"))["scenario"]
    ours = made("rcp", EXAMPLES / "data/datacentre-sizes.txt").set("duration", "600us").run().summary
    written = fs.load(EXAMPLES / "fat_tree.toml").set("duration", "600us").set("fat_tree.queue", "droptail")
    theirs = written.run().summary
    assert ours["groups"] == theirs["groups"]
    script = [sys.executable, str(EXAMPLES / "fat_tree.py"), "--k", "4", "--duration", "1ms", "--out", str(tmp_path)]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(f"{law}: " in done.stdout for law in ("RCP", "XCP", "VCP", "DCTCP"))
    assert {path.suffix for path in tmp_path.iterdir()} == {".pdf", ".png"}


def test_slowdowns_by_size() -> None:
    result = small().run("4ms", warmup="500us")
    (whole,) = fs.fct_slowdown(result, bins=1)
    told = result.groups["web"]["fct_slowdown"]
    assert told is not None
    for statistic in ("count", "mean", "p50", "p95", "p99", "max"):
        assert whole[statistic] == pytest.approx(told["all"][statistic], rel=1e-12)
    rows = fs.fct_slowdown(result, bins=6)
    assert sum(row["count"] for row in rows) == whole["count"]
    assert max(row["count"] for row in rows) < 1.2 * whole["count"] / 6
    assert all(1 <= row["p50"] <= row["p95"] <= row["p99"] <= row["max"] for row in rows)
    assert all(low["max_bytes"] <= high["min_bytes"] for low, high in pairwise(rows))
    given = fs.fct_slowdown(result, bins=[0, 10_000, 100_000, 1e12])
    assert [row["max_bytes"] for row in given] == [10_000, 100_000, 1e12]
    assert sum(row["count"] for row in given) == whole["count"]
    assert fs.fct_slowdown(result, bins=1, group="web") == [whole]
    # Alone on its path a flow of RCP takes a round trip more than the ideal: its SYN.
    alone = fs.leaf_spine(2, 1, 4, rate="10Gbps", delay="1us").flows("rcp", 1, from_="h0", to="h7", size="960B")
    (row,) = fs.fct_slowdown(alone.run("1ms"), bins=5)
    one_way_s = 4e-6 + 4 * 8e3 / 10e9
    assert row["max"] == pytest.approx(1 + (8e-6 + 8 * 40 * 8 / 10e9) / one_way_s, rel=1e-3)


@pytest.mark.parametrize(
    ("bins", "group", "words"),
    [
        (0, None, "bins: is 0; it must be at least 1"),
        ([5], None, "must rise, and be two at least"),
        ([5, 5], None, "must rise"),
        (3, "wob", 'group: "wob" is not a group; did you mean "web"'),
    ],
)
def test_bins_and_groups_that_are_none(bins: Any, group: str | None, words: str) -> None:
    result = small().run("200us")
    with pytest.raises(fs.ResultsError, match=words):
        fs.fct_slowdown(result, bins, group=group)


def test_nothing_to_draw_is_said() -> None:
    endless = fs.leaf_spine(2, 1, 2, rate="10Gbps", delay="1us").flows("rcp", 2, pattern="random").run("100us")
    assert fs.fct_slowdown(endless) == []
    with pytest.raises(fs.ResultsError, match="run longer"):
        slowdown_figure(endless)


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ({"fat_tree.k": 3}, "fat_tree.k: is 3; it must be even, and 2 to 32"),
        ({"fat_tree.k": 34}, "fat_tree.k: is 34"),
        ({"fat_tree.rate": "0bps"}, "fat_tree.rate: is "),
        ({"flows.web.pattern": "all"}, "flows.*pattern.*`random`, `permutation`, `incast`"),
        ({"flows.web.from": "h1"}, "flows.web.from: is not for a pattern"),
        ({"flows.web.to": "h1"}, "flows.web.to: is not for a pattern"),
        (
            {"flows.web.pattern": "incast", "flows.web.to": "core0"},
            'flows.web.to: "core0" is not a host; there are h0, h1',
        ),
        ({"flows.web.count": 0}, "flows.web.count: is 0; it must be at least 1"),
        ({"leaf_spine.leaves": 2}, "leaf_spine: `spines` is missing"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(sets: dict[str, Any], words: str) -> None:
    scenario = fs.load(EXAMPLES / "fat_tree.toml").set("duration", "1ms")
    for key, value in sets.items():
        scenario = scenario.set(key, value)
    with pytest.raises(fs.ScenarioError, match=words) as refused:
        scenario.to_toml()
    assert "\n" not in str(refused.value)


def test_patterns_need_hosts() -> None:
    with pytest.raises(fs.ScenarioError, match=r"flows.rcp.pattern: goes between hosts, and there are 0"):
        fs.dumbbell("1Mbps", rtt="10ms").flows("rcp", pattern="random").configure(duration="1s").to_toml()


def test_idle_paths_warn() -> None:
    scenario = small().configure(duration="100us").set("flows.web.count", 2)
    with pytest.warns(fs.ScenarioWarning, match="links on equal-cost paths carry no data"):
        scenario.run()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small().run("100us")


def names(scenario: fs.Scenario) -> dict[str, tuple[str, str]]:
    links = scenario.resolved()["graph"]["links"]
    return {link.get("name", f"{link['from']}->{link['to']}"): (link["rate"], link["delay"]) for link in links}


def test_graphs_of_files(tmp_path: Path) -> None:
    (tmp_path / "net.graphml").write_text(GRAPHML, encoding="utf-8")
    (tmp_path / "net.csv").write_text(
        'delay,source,target,capacity,duplex,weight\n,a,b & c,20Mbps,,7\n5ms,b & c,d,10Mbps,,\n,a,d,"1Mbps",false,\n',
        encoding="utf-8",
    )
    expected = {
        "a->b & c": ("20Mbps", "2ms"),
        "b & c->d": ("10Mbps", "5ms"),
        "a->d": ("1Mbps", "2ms"),
    }
    of = [
        fs.graph(file=tmp_path / file, delay="2ms", ignore_columns=["weight"])
        .flows("xcp", from_="a", to="d")
        .configure(duration="1s")
        for file in ("net.graphml", "net.csv")
    ]
    assert [names(scenario) for scenario in of] == [expected, expected]
    first, second = (scenario.run().summary for scenario in of)
    assert first == second
    assert sorted(first["links"]) == ["a->b & c", "a->d", "b & c->a", "b & c->d", "d->b & c"]
    changed = of[0].set('graph.links."a->b & c".rate', "5Mbps").set("graph.links.1.delay", "1ms")
    assert names(changed) == {**expected, "a->b & c": ("5Mbps", "2ms"), "b & c->d": ("10Mbps", "1ms")}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GRAPHML.replace("10Mbps", "10"), r'line 10 \(b & c to d\): capacity is "10": "10" has no unit'),
        (GRAPHML.replace("5ms", "soon"), r'line 10 \(b & c to d\): delay is "soon"'),
        (GRAPHML.replace('target="d"', 'target="e"'), r'line 10: the edge names "e", which is not a node'),
        (GRAPHML.replace("</edge>", "", 1), "is not GraphML"),
        (GRAPHML.replace(' source="a"', "", 1), "<edge> has no source"),
        ("<html/>", "is XML of <html>, which is not read; write GraphML"),
        ("source,target\na,d\n", r"line 2 \(a to d\): has no rate; give the edge one, such as 10Gbps, or graph.rate"),
        ("from,rate\na,1Mbps\n", 'line 1: has no column "target"'),
        ("source,target,rate\na,,1Mbps\n", "line 2: names no two nodes"),
        ("source,target,rate\na,d\n", "line 2: has 2 values for 3 columns"),
        ("source,target,rate,duplex\na,d,1Mbps,yes\n", 'duplex is "yes": write true or false'),
        ("source,target,rate\n", "has no edges"),
        ("source,target,rate,weight\na,d,1Mbps,1\nd,e,1Mbps,\n", r"line 3 \(d to e\): weight is missing, but other"),
        ("source,target,rate\na,d,1Mbps\nd,e,0bps\n", r"line 3 \(d to e\): rate is 0bps; a rate is 1bps to"),
        ("source,target,rate,queue\na,d,1Mbps,blue\n", r"line 2 \(a to d\): queue .*`blue`"),
        ("source,target,rate,name\na,d,1Mbps,x\nd,e,1Mbps,x\n", r'line 3 \(d to e\): name "x" appears twice'),
    ],
)
def test_bad_graphs_of_files_are_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "net").write_text(text, encoding="utf-8")
    scenario = fs.graph(file=tmp_path / "net", delay="1ms").flows("sack", from_="a", to="d")
    with pytest.raises(fs.ScenarioError, match=words) as refused:
        scenario.configure(duration="1s").run()
    assert str(refused.value).startswith(f'scenario: graph.file: "{tmp_path / "net"}": ')
    assert "\n" not in str(refused.value)


@pytest.mark.filterwarnings("ignore:.*equal-cost paths carry no data")
@pytest.mark.parametrize("directed", [False, True])
def test_weights_are_those_of_networkx(tmp_path: Path, directed: bool) -> None:
    """Flows take a path of least weight, as networkx finds it, and their acks one back."""
    networkx = pytest.importorskip("networkx")
    graph = networkx.gnp_random_graph(20, 0.25, seed=5, directed=directed)
    for a, b in graph.edges:
        graph.edges[a, b].update(weight=1 + (7 * a + 3 * b) % 11 / 4, rate="1Gbps", delay="1ms")
    networkx.write_graphml(graph, tmp_path / "net.graphml")
    paths = dict(networkx.all_pairs_dijkstra_path_length(graph))
    both_ways = [(a, b) for a in graph for b in graph if a != b and b in paths[a] and a in paths[b]][::9]
    network = fs.graph(file=tmp_path / "net.graphml")
    for a, b in both_ways:
        network = network.flows("reno", name=f"{a} {b}", from_=str(a), to=str(b), size="960B")
    result = network.configure(duration="500ms").run()
    # All delays are alike, so that the RTT tells the number of hops: that of one of the paths of least weight.
    for a, b in both_ways:
        hops = {
            (len(there) + len(back) - 2) * 1e-3
            for there in networkx.all_shortest_paths(graph, a, b, weight="weight")
            for back in networkx.all_shortest_paths(graph, b, a, weight="weight")
        }
        rtt_s = result.groups[f"{a} {b}"]["path_rtt_s"]
        assert any(rtt_s == pytest.approx(one) for one in hops), (a, b)


def test_a_zoo_of_bare_numbers(tmp_path: Path) -> None:
    """The Topology Zoo has bit/s in `LinkSpeedRaw`; a byte-order mark and parallel edges do no harm."""
    text = GRAPHML.replace('"capacity" attr.type="string"', '"LinkSpeedRaw" attr.type="double"')
    text = text.replace("20Mbps", "20000000.0").replace("10Mbps", "1e7").replace("1Mbps", "1000000")
    text = text.replace("  </graph>", '    <edge source="d" target="a"><data key="d0">5e6</data></edge>\n  </graph>')
    (tmp_path / "net.graphml").write_text("\ufeff" + text, encoding="utf-8")
    network = fs.graph(
        file=tmp_path / "net.graphml", rate_key="LinkSpeedRaw", rate_unit="bps", ignore_columns=["weight"]
    )
    links = names(network.flows("sack", from_="a", to="d").configure(duration="1s"))
    assert {name: rate for name, (rate, _) in links.items()} == {
        "a->b & c": "20Mbps",
        "b & c->d": "10Mbps",
        "a->d": "1Mbps",
        "d->a#2": "5Mbps",
    }


def test_a_file_and_links_are_not_together(tmp_path: Path) -> None:
    (tmp_path / "net.csv").write_text("source,target,rate,delay\na,d,1Mbps,1ms\n", encoding="utf-8")
    both = fs.graph(file=tmp_path / "net.csv").link("a", "b", rate="1Mbps", delay="1ms").flows("sack")
    with pytest.raises(fs.ScenarioError, match=r"is together with graph\.links"):
        both.to_toml()
    without = fs.graph(rate="1Mbps").link("a", "d", rate="1Mbps", delay="1ms").flows("sack")
    with pytest.raises(fs.ScenarioError, match=r"graph\.rate: is for the links of a file"):
        without.to_toml()


def test_links_go_by_their_ends() -> None:
    line = fs.graph().link("a", "b.c", rate="5Mbps", delay="1ms").flows("sack", from_="a", to="b.c")
    line = line.configure(duration="1s")
    assert names(line.set('graph.links."a->b.c".rate', "9Mbps")) == {"a->b.c": ("9Mbps", "1ms")}
    sim = line.start()
    sim.run_until("500ms")
    sim.set('graph.links."a->b.c".rate', "1Mbps")
    sim.run_until("1s")
    assert sim.results().links["a->b.c"]["rate_bps"] == pytest.approx(3e6)
    for key, words in [
        ('graph.links."b.c->a".rate', 'is the way back of "a->b.c"'),
        ('graph.links."a->b.c.rate', "has a quote that does not end a part"),
        ("graph.links.a->c.rate", 'there is no "a->c"; did you mean "a->b.c"?'),
    ]:
        with pytest.raises(fs.ScenarioError, match=words):
            line.set(key, "9Mbps").to_toml()


def test_rates_of_data_centres_change_in_mid_run() -> None:
    sim = small().start("400us")
    sim.run_until("200us")
    sim.set("leaf_spine.spine_rate", "20Gbps")
    sim.run_until("400us")
    rates = {name: link["rate_bps"] for name, link in sim.results().links.items()}
    assert rates["leaf0->spine1"] == pytest.approx(15e9)
    assert rates["h0->leaf0"] == pytest.approx(10e9)


def test_links_of_a_file_have_the_flow_control_of_the_graph(tmp_path: Path) -> None:
    (tmp_path / "net.csv").write_text("source,target,rate,delay\na,b,10Gbps,1us\nb,c,1Gbps,1us\n")
    network = fs.graph(file=str(tmp_path / "net.csv"), pfc=True, buffer="20kB")
    run = network.flows("sack", name="f", from_="a", to="c").run("1ms")
    assert all("pfc" in link for link in run.links.values())
    assert run.links["a->b"]["pfc"]["pauses"] > 0
    assert run.links["a->b"]["pfc"]["drops"] == 0
    other = fs.graph(file=str(tmp_path / "net.csv"), pfc=True, queue="codel")
    refused = other.flows("sack", name="f", from_="a", to="c")
    with pytest.raises(fs.FlowstampError, match=r"graph\.pfc: cannot"):
        refused.run("1ms")


def test_victims_of_pauses_wait(tmp_path: Path) -> None:
    """The numbers of docs/how-to/lossless-fabric.md: what pauses cost flows whose own receivers are idle."""
    told = '{ law = "told", window = 120 }'
    laws = [part for flow in ("incast", "rack", "elsewhere") for part in ("--set", f"flows.{flow}.law={told}")]
    blind = [*laws, "--set", "leaf_spine.queue=droptail"]
    off = ["--set", "leaf_spine.pfc=false"]
    example = str(EXAMPLES / "datacentre" / "pfc.toml")
    page = (ROOT / "docs/how-to/lossless-fabric.md").read_text()
    rows = [
        ("no congestion control, no PFC", [*blind, *off]),
        ("no congestion control, PFC", blind),
        ("DCTCP, no PFC", off),
        ("DCTCP, PFC", []),
    ]
    ran = {}
    for name, arguments in rows:
        done = flowstamp("run", example, *arguments, "--out", str(tmp_path), "--json")
        summary = json.loads(done.stdout)
        ran[name] = summary = summary.get("summary", summary)
        times = {group: summary["groups"][group]["fct_s"]["all"] for group in ("incast", "rack", "elsewhere")}
        means = [f"{times[group]['mean'] * 1e3:.2f} ms" for group in times]
        last = f"{times['incast']['max'] * 1e3:.2f} ms"
        pfc = [link["pfc"] for link in summary["links"].values() if "pfc" in link]
        paused = str(sum(link["pauses"] > 0 for link in pfc)) if pfc else "-"
        lost = f"{summary['packets']['lost']:,}"
        assert " | ".join([f"| {name}", means[0], last, *means[1:], lost, paused]) + " |" in page
    lossy, lossless = ran["no congestion control, no PFC"], ran["no congestion control, PFC"]
    assert f"{lossy['groups']['incast']['timeouts']} timeouts" in page
    slower = [
        f"{lossless['groups'][victim]['fct_s']['all']['mean'] / lossy['groups'][victim]['fct_s']['all']['mean']:.1f}"
        for victim in ("rack", "elsewhere")
    ]
    assert "{} and {} times as long".format(*slower) in page
    longest = max(link["pfc"]["paused_s"] for name, link in lossless["links"].items() if name.startswith("leaf"))
    assert f"paused for up to {longest * 1e3:.2f} ms" in page
    headroom = lossless["links"]["h0->leaf0"]["pfc"]["headroom_bytes"]
    assert headroom == 2 * 1000 + (1000 + 64) + 25_000
    assert f"{headroom / 1e3:.1f} kB at 100 Gb/s and 1 us" in page
    shown = flowstamp("run", example, *blind, "--out", str(tmp_path)).stdout
    assert "paused link" in shown
