# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The examples run as their headers say, from the command line and in Python, and both are the same scenarios."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import flowstamp as fs

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
RECORDED = ROOT.parent / "shared/data"
TRACE = RECORDED / "cellular/Verizon-LTE-short.down"
SIZES = RECORDED / "flow-sizes/WebSearch_distribution.txt"


def run(*arguments: str, cwd: Path = ROOT) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def flowstamp(*arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run("-m", "flowstamp", *arguments, "--json"))
    return document


def delay_s(link: dict[str, float]) -> float:
    """Mean time in the queue."""
    return link["mean_queue_bytes"] * 8 / link["rate_bps"]


def check_cellular(protocols: dict[str, Any]) -> None:
    xcp, tcp = (protocols[law]["links"]["bottleneck"] for law in ("xcp", "sack"))
    # The example shows nearly the same utilisation at a small part of the delay.
    assert xcp["utilization"] > 0.85
    assert tcp["utilization"] > 0.95
    assert delay_s(xcp) < 0.25 * delay_s(tcp)
    assert xcp["drops"] == 0
    assert tcp["drops"] > 0
    # Two TCPs at a drop-tail queue promise no such thing: where losses hit decides.
    assert protocols["xcp"]["groups"]["download"]["jain_index"] > 0.98
    for summary in protocols.values():
        assert summary["groups"]["web"]["completed"] > 10


@pytest.mark.long
def test_cellular(tmp_path: Path) -> None:
    document = flowstamp(
        "compare", str(EXAMPLES / "cellular.toml"), "--protocols", "xcp,sack,sack+red", "--out", str(tmp_path)
    )
    check_cellular(document["protocols"])
    assert (tmp_path / "compare.png").stat().st_size > 10_000


@pytest.mark.long
def test_cellular_with_other_files(tmp_path: Path) -> None:
    """Files by path: the recorded ones where they are at hand, else a trace and sizes made here."""
    if TRACE.exists() and SIZES.exists():
        trace, sizes, load = TRACE, SIZES, 0.5
    else:
        trace, sizes, load = tmp_path / "trace.down", tmp_path / "sizes.txt", 0.3
        # Two seconds at 12 Mb/s and two at 3 Mb/s.
        lines = [*range(1, 2001), *range(2004, 4001, 4)]
        trace.write_text("".join(f"{ms}\n" for ms in lines), encoding="utf-8")
        sizes.write_text("0 0\n10000 50\n200000 90\n1000000 100\n", encoding="utf-8")
    document = flowstamp(
        *("compare", str(EXAMPLES / "cellular.toml"), "--protocols", "xcp,sack", "--out", str(tmp_path / "out")),
        *("--set", f"dumbbell.rate.trace={trace}"),
        *("--set", f"flows.web.web.sizes.file={sizes}", "--set", f"flows.web.web.load={load}"),
    )
    check_cellular(document["protocols"])


def test_parking_lot() -> None:
    summary = flowstamp("run", str(EXAMPLES / "parking-lot.toml"))
    links = {name: link for name, link in summary["links"].items() if not name.endswith(".reverse")}
    assert all(link["drops"] == 0 for link in links.values())
    assert links["link2"]["utilization"] > 0.99
    # Beside the bottleneck XCP's equilibrium leaves some of a link unused (Low, Andrew, Wydrowski 2005: at least 80%).
    assert all(link["utilization"] > 0.9 for link in links.values())
    for name in ("long", "cross.2"):
        group = summary["groups"][name]
        # 960 of 1000 bytes are payload.
        assert group["goodput_bps"] / group["flows"] == pytest.approx(0.96 * 5e6, rel=0.05)
        assert group["jain_index"] > 0.999


def test_graph() -> None:
    result = fs.load(EXAMPLES / "graph.toml").run()
    assert result.links["ring-west"]["utilization"] > 0.95
    assert sum(link["drops"] for link in result.links.values()) == 0
    assert result.groups["backup"]["completed"] == 2
    assert result.groups["camera"]["goodput_bps"] == pytest.approx(5e6, rel=0.03)
    # All packets from the internet to the office took the east side, the towns' the west side.
    assert result.links["ring-east"]["utilization"] > 0.3
    # Twelve flows share the west side: fairly, while it alone limits them.
    for name, flows in (("old-town", 8), ("new-town", 4)):
        t, goodput = result.series("group", name, "goodput_bps")
        assert goodput[(t > 12) & (t < 20)].mean() == pytest.approx(0.96 * 50e6 * flows / 12, rel=0.03)


def test_backbone() -> None:
    summary = flowstamp("run", str(EXAMPLES / "backbone.toml"))
    backup = summary["groups"]["backup"]
    # Data over a fibre and F3, acks over the satellite.
    assert backup["path_rtt_s"] == pytest.approx(0.009 + 0.004 + 0.020)
    # Both fibres are full; 960 of 1000 bytes are payload.
    assert [summary["links"][name]["utilization"] > 0.9 for name in ("porto->lyon", "porto->lyon#2")] == [True, True]
    assert backup["goodput_bps"] == pytest.approx(0.96 * 200e6, rel=0.08)
    assert summary["links"]["porto->milan"]["utilization"] == 0


@pytest.mark.parametrize(("script", "scenario"), [("parking_lot.py", "parking-lot.toml"), ("graph.py", "graph.toml")])
def test_scripts_are_the_same_scenarios(script: str, scenario: str) -> None:
    made = runpy.run_path(str(EXAMPLES / script))["scenario"]().resolved()
    written = fs.load(EXAMPLES / scenario).resolved()
    written.pop("description")
    assert made == written


@pytest.mark.long
def test_cellular_script_is_the_same_scenario() -> None:
    data = EXAMPLES / "data"
    made = runpy.run_path(str(EXAMPLES / "cellular.py"))["downlink"]("xcp", data / "cellular.down", data / "sizes.txt")
    written = fs.load(EXAMPLES / "cellular.toml")
    ours, theirs = made.run().summary, written.run().summary
    for key in ("links", "groups", "total", "flows"):
        assert ours[key] == theirs[key]


@pytest.mark.long
def test_wifi(tmp_path: Path) -> None:
    """Values of the page: CUBIC in a plain queue starves who downloads; XCP-b and FQ-CoDel do not."""
    laws = "xcp,cubic,cubic+fq_codel,bbr+fq_codel"
    document = flowstamp("compare", str(EXAMPLES / "wifi.toml"), "--protocols", laws, "--out", str(tmp_path))
    blind, cubic, fq, bbr = (document["protocols"][law] for law in laws.split(","))
    queues = [summary["links"]["home.ap"] for summary in (blind, cubic, fq, bbr)]
    assert blind["total"]["jain_index"] > 0.99
    assert blind["links"]["home.ap"]["drops"] == 0
    assert queues[0]["p95_queue_bytes"] < min(queue["p95_queue_bytes"] for queue in queues[1:])
    assert cubic["total"]["jain_index"] < 0.6
    assert cubic["groups"]["tv"]["goodput_bps"] < 0.1 * blind["groups"]["tv"]["goodput_bps"]
    for summary in (fq, bbr):
        # Pages pass the queue, downloads stay behind uploads: that is a matter of whose turn it is on the air.
        pages, behind = (run["groups"]["pages"]["fct_s"]["all"]["p50"] for run in (summary, cubic))
        assert pages < 0.1 * behind
        assert summary["groups"]["tv"]["goodput_bps"] < 0.3 * blind["groups"]["tv"]["goodput_bps"]
    # The air is as full with all of them.
    assert blind["total"]["goodput_bps"] > 0.9 * max(s["total"]["goodput_bps"] for s in (cubic, fq, bbr))


def test_wifi_script_has_the_same_runs() -> None:
    made = runpy.run_path(str(EXAMPLES / "wifi.py"))["setups"]()
    assert list(made) == ["XCP-b", "CUBIC", "CUBIC, FQ-CoDel", "BBR", "BBR, FQ-CoDel"]
    assert made["XCP-b"].resolved() == fs.load(EXAMPLES / "wifi.toml").resolved()


@pytest.mark.long
def test_cellular_script_without_the_rate(tmp_path: Path) -> None:
    """XCP-b is told nothing, and keeps a shorter queue than XCP that is told the mean, at no less use of the link."""
    printed = run(str(EXAMPLES / "cellular.py"), "--out", str(tmp_path / "out"), cwd=tmp_path)
    used, wait = zip(*re.findall(r": (\d+)% used, mean wait (\d+) ms, \d+ lost", printed), strict=True)
    told, mean, untold, tcp = (int(ms) for ms in wait)
    assert told < untold < mean < tcp
    assert int(used[2]) >= int(used[1])


@pytest.mark.parametrize(
    "script",
    [
        "parking_lot.py",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("cellular.py", "graph.py", "wifi.py")),
    ],
)
def test_scripts_run(script: str, tmp_path: Path) -> None:
    printed = run(str(EXAMPLES / script), "--out", str(tmp_path / "out"), cwd=tmp_path)
    pictures = [Path(line.removeprefix("wrote ")) for line in printed.splitlines() if line.startswith("wrote ")]
    assert {path.suffix for path in pictures} == {".pdf", ".png"}
    assert all(path.stat().st_size > 5_000 for path in pictures)


def test_applications() -> None:
    """Frames wait for the window and the path, responses for a round trip, and a call's packets for nobody."""
    groups = flowstamp("run", str(EXAMPLES / "applications.toml"))["groups"]
    # 18 s of a call with a packet each 20 ms.
    call = groups["voice"]["application"]["after_warmup"]
    assert call["offered"] == pytest.approx(900, abs=1)
    assert groups["voice"]["packet_delay_s"]["p99"] < 0.03
    # The largest frame takes 32 ms at 10 Mb/s, behind a way of 20 ms; a response of any size a round trip.
    assert groups["video"]["application"]["time_s"]["max"] > 0.052
    assert groups["pages"]["application"]["time_s"]["p50"] > 0.04


def test_video() -> None:
    """Followers take the highest bitrate below the advice, those who ignore it take more, and none stalls."""
    summary = flowstamp("run", str(EXAMPLES / "video.toml"))
    followers, others = (summary["groups"][name]["video"]["whole_run"] for name in ("followers", "others"))
    assert followers["stalls"] == others["stalls"] == 0
    # 2.35 Mb/s is the highest bitrate at or below 2.82 Mb/s less headers; the first segment has the lowest.
    assert 2e6 < followers["bitrate_bps"] <= 2.35e6 < others["bitrate_bps"]
    advice = summary["links"]["bottleneck"]["scone"]
    assert advice["mean_advice_bps"] == 2_818_382
    # A packet at the start and each 20 to 30 s, if the policer and the queue lose none.
    assert 50 <= advice["packets"] <= 80


def test_queues() -> None:
    """The shaper and the policer keep to their rates and bursts, and the call waits for one packet at most."""
    first = flowstamp("run", str(EXAMPLES / "queues.toml"))
    measured_s = first["duration_s"] - first["warmup_s"]
    modem = first["links"]["modem"]
    assert modem["utilization"] * modem["rate_bps"] == pytest.approx(20e6, rel=0.03)
    assert modem["buffer_bytes"] == 32e3 + 20e6 / 8 * 0.020
    assert first["groups"]["guest"]["goodput_bps"] < 1e6 + 8e3 * 8 / measured_s
    assert first["links"]["guests"]["drops"] > 0
    assert first["groups"]["call"]["goodput_bps"] == pytest.approx(100e3, rel=0.02)
    # After the shaper a call's packet takes 1 ms and its transmission of 1.6 ms, and waits for the rest of another.
    delay_s = {group: first["groups"][group]["packet_delay_s"]["mean"] for group in ("call", "tv")}
    assert 0.0016 < delay_s["call"] - delay_s["tv"] < 0.0052
    # Without priority it waits with the downloads, about PIE's target of 15 ms.
    without = flowstamp("run", str(EXAMPLES / "queues.toml"), "--set", "graph.links.wifi.priority=none")
    assert without["groups"]["call"]["packet_delay_s"]["mean"] - delay_s["call"] == pytest.approx(0.015, abs=0.007)


def test_flow_list(tmp_path: Path) -> None:
    summary = flowstamp("run", str(EXAMPLES / "flow-list.toml"))
    listed = summary["groups"]["listed"]
    assert listed["law"] == "dctcp, cubic"
    assert listed["flows"] == listed["completed"] == 1000
    printed = run(str(EXAMPLES / "flow_list.py"), "--out", str(tmp_path))
    assert re.search(r"^cubic: \d+ of 100 flows ended", printed, re.MULTILINE)
    made = runpy.run_path(str(EXAMPLES / "flow_list.py"))["scenario"]().run().summary
    assert made["groups"] == summary["groups"]
    rows = (tmp_path / "flows.csv").read_text(encoding="utf-8").splitlines()
    given = (EXAMPLES / "data/flows.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0] == given[0] + ",fct_s"
    assert [row.rpartition(",")[0] for row in rows] == given
    ended = [float(row.rpartition(",")[2]) for row in rows[1:] if not row.endswith(",")]
    assert len(ended) == listed["completed"]
    # Two links of 2 us each are the shortest way.
    assert min(ended) > 4e-6


def test_invented_data_are_what_their_script_makes() -> None:
    made = runpy.run_path(str(EXAMPLES / "data/make.py"))
    assert (EXAMPLES / "data/cellular.down").read_text(encoding="utf-8") == made["trace"]()
    assert (EXAMPLES / "data/flows.csv").read_text(encoding="utf-8") == made["flows"]()
    assert (EXAMPLES / "data/leo.down").read_text(encoding="utf-8") == made["leo_trace"]()
    assert (EXAMPLES / "data/leo-delay.txt").read_text(encoding="utf-8") == made["leo_delay"]()


def test_leo() -> None:
    """The ping's least RTT is that of the satellite at its highest: 22 ms each way, and four hosts' links of 2 ms."""
    result = fs.load(EXAMPLES / "leo.toml").run()
    link = result.links["bottleneck"]
    assert link["lost"] > 0
    assert link["utilization"] > 0.5
    rtts = dict(zip(result.flows.column("group"), result.flows.column("min_rtt_s"), strict=True))
    # Two packets wait for the next chance to be sent, 2.4 ms apart at 5 Mb/s.
    assert 0.052 <= rtts["ping"] <= 0.058


def test_outage() -> None:
    """While the north side is down all goes by the south; the link carries nothing and loses what ran into it."""
    result = fs.load(EXAMPLES / "outage.toml").run()
    t, north = result.series("link", "north->east", "utilization")
    _, south = result.series("link", "south->east", "utilization")
    assert north[(t > 4.5) & (t < 8)].max() == 0.0
    assert south[(t > 6) & (t < 8)].mean() > 0.8
    assert south[(t < 3.9) | (t > 8.5)].max() == 0.0
    assert north[(t > 1) & (t < 3.9)].mean() > 0.8
    assert north[t > 10].mean() > 0.8
    assert 0 < result.links["north->east"]["lost"] < 1000


def test_the_scone_example_writes_what_the_codec_does() -> None:
    """The bytes of crates/flowstamp-wire/src/scone/tests.rs::known_bytes, and every signal."""
    module = runpy.run_path(str(EXAMPLES / "scone.py"))
    packet, signal_of = module["scone_packet"], module["signal_of"]
    assert packet(33, b"\1\2\3").hex() == "d0ef7dc0fd" + "03010203" + "00"
    assert [signal_of(packet(signal, b"12345678")) for signal in range(128)] == list(range(128))
    assert signal_of(b"\x40" + packet(33, b"")[1:]) is None
    assert signal_of(packet(33, b"")[:6]) is None
