"""The tools that run ns-2 beside a figure; skipped where there is no ns-2."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parent.parent / "tools" / "ns2"
WEB = '{ flows_per_s = 675, sizes = { distribution = "pareto", mean = "25000B", shape = 1.2 } }'
SETS = ["dumbbell.rtt=10ms", "duration=6s", "warmup=1s", f"flows.forward.web={WEB}"]
SMALL = [argument for key in SETS for argument in ("--set", key)]


def tool(*arguments: str, name: str = "same_flows.py") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOLS / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def ns2_is_there() -> bool:
    spec = importlib.util.spec_from_file_location("ns2", TOOLS / "ns2.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return bool(module.available())


def means(said: str) -> list[list[float]]:
    """Flows, ours, theirs: of the small, and of the large."""
    rows = re.findall(r"^(?:below|from).*: (\d+) flows, ([0-9.]+) s and ([0-9.]+) s$", said, re.MULTILINE)
    return [[float(value) for value in row] for row in rows]


@pytest.fixture
def ns2() -> None:
    if not ns2_is_there():
        pytest.skip("ns-2 (Debian's ns2) is missing")


@pytest.mark.long
@pytest.mark.usefixtures("ns2")
@pytest.mark.parametrize("law", ["sack", "xcp"])
def test_the_same_flows(law: str) -> None:
    done = tool("R4.14", law, *SMALL, "--split", "500")
    assert done.returncode == 0, done.stderr
    small, _ = means(done.stdout)
    # 675 flows a second for five seconds. Within a factor of two: that they are the same flows is what is tested.
    assert small[0] == pytest.approx(3375, rel=0.1)
    assert 0.5 < small[1] / small[2] < 2
    # Without --split by size, over what a server would take.
    done = tool("R4.14", law, *SMALL)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^ +\d+-\d+ ", done.stdout, re.MULTILINE)) > 5


# R4.17's loads of 0.75 at a fortieth of its rate.
SLOWER = ("flows.forward.web.flows_per_s=122.3", "flows.back.web.flows_per_s=122.3")


@pytest.mark.long
@pytest.mark.usefixtures("ns2")
def test_the_same_flows_over_several_links() -> None:
    sets = ["duration=8s", "warmup=2s", 'parking_lot.rates=["64Mbps","64Mbps","64Mbps"]', "parking_lot.delay=16ms"]
    sets += [f"flows.{name}.web.flows_per_s=144" for name in ("all", "cross")]
    done = tool("R4.22", "xcp", *(argument for key in sets for argument in ("--set", key)), "--split", "500")
    assert done.returncode == 0, done.stderr
    small = means(done.stdout)[0]
    # Those over all links: 144 a second for the four seconds in which they could end. A flow over one link, whose
    # round trip is a third, would take half as long; the rest is what the two models differ by with few flows.
    assert small[0] > 500
    assert small[1] / small[2] == pytest.approx(1, abs=0.2)


@pytest.mark.long
@pytest.mark.usefixtures("ns2")
def test_links_that_differ_and_flows_back() -> None:
    # 40 Mb/s but the fifth link, which has 20; thirty flows instead of 550, that fill them.
    rates = "parking_lot.rates=[" + ",".join(['"40Mbps"'] * 4 + ['"20Mbps"'] + ['"40Mbps"'] * 4) + "]"
    sets = [rates, "duration=12s", "warmup=6s", "flows.long.count=10", "flows.cross.count=10", "flows.back.count=10"]
    done = tool("X9", "xcp", *(word for text in sets for word in ("--set", text)))
    assert done.returncode == 0, done.stderr
    queues = re.findall(r"^mean queue kB +([0-9.]+) +([0-9.]+)(?:   link(\d))?$", done.stdout, re.MULTILINE)
    assert [link for _, _, link in queues] == ["", *"23456789"]
    # The link with half the rate has the longest queue, except the last, which flows back meet first.
    ours, theirs = ([float(row[n]) for row in queues[:8]] for n in (0, 1))
    assert max(ours) == ours[4]
    assert max(theirs) == theirs[4]
    (used,) = re.findall(r"^utilisation +([0-9.]+) +([0-9.]+) ", done.stdout, re.MULTILINE)
    # 0.93 and 0.88 here.
    assert float(used[0]) == pytest.approx(float(used[1]), abs=0.1)


@pytest.mark.long
@pytest.mark.usefixtures("ns2")
def test_active_flows_and_utilisation_over_time() -> None:
    sets = ["dumbbell.rate=60Mbps", "duration=5s", "warmup=1s", *SLOWER]
    arguments = [*(word for text in sets for word in ("--set", text)), "--split", "500"]
    done = tool("R4.17", "sack", *arguments, "--active", "2:3,3:5", "--above", "0.05", "--after", "2s")
    assert done.returncode == 0, done.stderr
    number = r"([0-9.]+) ± [0-9.]+ \(\d+ to \d+\)"
    rows = re.findall(rf"^active flows 2 to 3 s: {number} and {number}$", done.stdout, re.MULTILINE)
    rows += re.findall(rf"^active flows 3 to 5 s: {number} and {number}$", done.stdout, re.MULTILINE)
    assert len(rows) == 2
    # The flows are the same and lose nothing.
    assert all(float(ours) == pytest.approx(float(theirs), rel=0.02) for ours, theirs in rows)
    assert re.search(r"^above 0.05: 0.00 s and 0.00 s$", done.stdout, re.MULTILINE)
    done = tool("R4.17", "sack", *arguments, "--estimate", "2:3")
    assert (done.returncode, done.stderr) == (1, "same_flows.py: C/R is RCP's, and needs probes.laws\n")


@pytest.mark.long
@pytest.mark.usefixtures("ns2")
def test_rcp_with_flows_that_stop() -> None:
    sets = ["duration=30s", "flows.second.start=10s", "flows.second.stop=20s"]
    done = tool("R3.2", "rcp", *(word for text in sets for word in ("--set", text)), "--estimate", "8:10,28:30")
    if done.stderr.endswith("this ns-2 has no RCP: name a patched one by NS2\n"):
        pytest.skip("ns-2 has no RCP")
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^C/R .* s: ([0-9.]+) ± .* and ([0-9.]+) ± ", done.stdout, re.MULTILINE)
    assert len(rows) == 2
    # Twenty flows, within what figure R3.2 calls back: 20.7 and 20.7, 20.4 and 20.2.
    assert all(float(value) == pytest.approx(20, rel=0.1) for row in rows for value in row)


@pytest.mark.long
@pytest.mark.usefixtures("ns2")
def test_rcp_needs_a_patched_ns2() -> None:
    done = tool("R4.14", "rcp", *SMALL, "--split", "500")
    if done.returncode == 0:
        small, _ = means(done.stdout)
        assert 0.5 < small[1] / small[2] < 2
    else:
        assert done.stderr.endswith("this ns-2 has no RCP: name a patched one by NS2\n"), done.stderr


@pytest.mark.long
@pytest.mark.usefixtures("ns2")
def test_both_ways() -> None:
    sets = ["dumbbell.rate=20Mbps", "dumbbell.access_rate=200Mbps", "dumbbell.buffer=200pkt"]
    sets += ["duration=20s", "warmup=5s"]
    arguments = ["X4", "red_fast", "--seeds", "1", *(word for text in sets for word in ("--set", text))]
    done = tool(*arguments, name="two_way.py")
    assert done.returncode == 0, done.stderr
    (ours, theirs) = re.findall(r"^mean +(?:Flowstamp|ns-2) +(.*)$", done.stdout, re.MULTILINE)
    ours, theirs = ([float(value) for value in row.split()] for row in (ours, theirs))
    assert (len(ours), len(theirs)) == (4, 5)
    # Within a factor of two: that the network is the same one is what is tested.
    assert all(0.5 < a / b < 2 for a, b in zip(ours, theirs, strict=False))
    # ns-2's own counter leaves out the timeouts that follow an ECN echo.
    assert 0 < theirs[4] < 0.9 * theirs[3]


def told(tmp_path: Path, *arguments: str, name: str) -> dict[str, str]:
    """Returns the parameters that a tool gives dumbbell.tcl, from a program that stands in for ns-2."""
    seen, stand_in = tmp_path / "seen", tmp_path / "ns"
    # It answers the question whether it has XCP, notes the rest, and prints nothing.
    stand_in.write_text(
        f"#!{sys.executable}\nimport json, sys\nwords = sys.argv[2:]\n"
        f"print('Class Class') if not words else open({str(seen)!r}, 'w').write(json.dumps(words))\n"
    )
    stand_in.chmod(0o755)
    command = [sys.executable, str(TOOLS / name), *arguments]
    environment = os.environ | {"NS2": str(stand_in)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert "ns-2 printed no JSON" in done.stderr
    return dict(word.split("=", 1) for word in json.loads(seen.read_text()))


SHORT = ["--set", "duration=1s", "--set", "warmup=0s"]


@pytest.mark.long
def test_ns2_has_the_figures_buffer_and_hosts_links(tmp_path: Path) -> None:
    # Hosts' links are as fast as the bottleneck in X5 and twice as fast in V4. `--set` changes the buffer.
    # ns-2's drop-tail holds one fewer than it is told, its RED as many.
    given = told(tmp_path, "X5", "xcp", *SHORT, name="two_way.py")
    assert (given["rate_mbps"], given["access_rate_mbps"], given["buffer_packets"]) == ("150.0", "150.0", "189")
    given = told(tmp_path, "V4", "xcp", *SHORT, "--set", "dumbbell.buffer=130pkt", name="two_way.py")
    assert (given["access_rate_mbps"], given["buffer_packets"]) == ("300.0", "131")
    assert told(tmp_path, "X4", "red", *SHORT, name="two_way.py")["buffer_packets"] == "200"
    # X8 leaves it to the script, whose default is Flowstamp's: ten times the bottleneck's.
    assert "access_rate_mbps" not in told(tmp_path, "X8", "xcp_equal", *SHORT, name="two_way.py")
    # A fiftieth of the BDP, and of a parking lot the first link's.
    given = told(tmp_path, "R6.21", "b2", *SHORT, "--set", "dumbbell.access_rate=20Mbps", name="same_flows.py")
    assert (given["access_rate_mbps"], given["buffer_packets"]) == ("20.0", "3")
    given = told(tmp_path, "R4.22", "xcp", *SHORT, name="same_flows.py")
    assert given["buffer_packets"] == "8001"
    given = told(tmp_path, "X9", "xcp", *SHORT, name="same_flows.py")
    assert given["hop_rates_mbps"] == ",".join(["100.0"] * 4 + ["50.0"] + ["100.0"] * 4)
    assert given["hop_buffers"] == ",".join(["4501"] * 4 + ["2251"] + ["4501"] * 4)


def test_ns2_is_told_when_flows_stop(tmp_path: Path) -> None:
    given = told(tmp_path, "X11", "red", "--set", "duration=9s", name="two_way.py")
    stops = given["stops"].split(",")
    assert (len(stops), set(stops[:10]), set(stops[10:])) == (110, {""}, {"8.000000000"})
    assert given["reverse_stops"] == ""


@pytest.mark.long
@pytest.mark.usefixtures("ns2")
def test_flows_that_stop() -> None:
    # Five of six flows stop at 6 s. The one that stays has less than the link carries, and grows.
    sets = ["dumbbell.rate=12Mbps", "flows.burst.count=5", "flows.lasting.count=1", "flows.burst.start=0s"]
    sets += ["flows.burst.stop=6s", "duration=12s"]
    arguments = [word for text in sets for word in ("--set", text)]
    done = tool("X11", "red", *arguments, "--seeds", "1", "--above", "0.9", "--after", "6s", name="two_way.py")
    assert done.returncode == 0, done.stderr
    (here, there) = re.findall(r"^1 +above 0.9: ([0-9.]+) s and ([0-9.]+) s$", done.stdout, re.MULTILINE)[0]
    assert float(there) > 0.3
    assert 0.5 < float(here) / float(there) < 2


@pytest.mark.long
@pytest.mark.usefixtures("ns2")
def test_flows_of_other_round_trips() -> None:
    # Flows of ten packets, alone on the link: their time is that of their own round trip.
    sets = ["dumbbell.rate=64Mbps", "duration=8s", "warmup=1s"]
    web = '{ flows_per_s = 20, sizes = { distribution = "fixed", size = "10kB" } }'
    sets += [f"flows.rtt{rtt}.web={web}" for rtt in range(20, 201, 20)]
    done = tool("R4.15", "sack", *(word for text in sets for word in ("--set", text)), "--split", "500")
    assert done.returncode == 0, done.stderr
    small = means(done.stdout)[0]
    assert small[0] > 100
    # Three and a half round trips of 200 ms.
    assert small[1:] == pytest.approx([0.7, 0.7], abs=0.005)
    arguments = [*(word for text in sets for word in ("--set", text)), "--split", "500", "--group"]
    assert means(tool("R4.15", "sack", *arguments, "rtt20").stdout)[0][1:] == pytest.approx([0.07, 0.07], abs=0.005)
    done = tool("R4.15", "sack", *arguments, "rtt30")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("same_flows.py: no flow of the run has the group rtt30; there are rtt")


@pytest.mark.long
@pytest.mark.usefixtures("ns2")
def test_flows_back() -> None:
    sets = ["dumbbell.rate=60Mbps", "duration=5s", "warmup=1s", *SLOWER]
    done = tool("R4.17", "sack", *(word for text in sets for word in ("--set", text)), "--split", "500")
    assert done.returncode == 0, done.stderr
    small = means(done.stdout)[0]
    assert small[0] > 300
    assert small[1] / small[2] == pytest.approx(1, abs=0.2)


def test_what_two_way_cannot_do_is_one_line() -> None:
    done = tool("X4", "csfq", "--seeds", "1", "--set", "duration=1s", "--set", "warmup=0s", name="two_way.py")
    assert done.returncode == 1
    assert done.stderr.startswith("two_way.py: dumbbell.tcl has no reno over csfq; it has xcp over droptail, ")


def test_what_it_cannot_do_is_one_line() -> None:
    done = tool("R4.ex2", "sack", "--set", "flows.others.stop=1s", "--set", "duration=2s", "--set", "warmup=0s")
    assert (done.returncode, done.stderr) == (
        1,
        "same_flows.py: of the flows that same_flows.py gives to ns-2 only RCP's stop; two_way.py's do\n",
    )
    done = tool("R4.14", "vegas")
    assert done.returncode == 1
    assert done.stderr == "same_flows.py: R4.14 has no run vegas; there are rcp, xcp, sack, rcp_held\n"


def test_without_ns2() -> None:
    environment = os.environ | {"NS2": "/nowhere/ns"}
    command = [sys.executable, str(TOOLS / "same_flows.py"), "R4.14", "sack", *SMALL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 1
    assert done.stderr.startswith("same_flows.py: ns-2 with Queue/XCP not found")
