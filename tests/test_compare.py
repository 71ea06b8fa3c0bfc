# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Comparisons of protocols: what each law needs, and fairness while all flows are active."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import Command

import flowstamp as fs
from flowstamp import comparison, fairness

STAGGERED = """
name = "Three flows join"
duration = "3s"
[dumbbell]
rate = "20Mbps"
rtt = "40ms"
router = "xcp"
[[flows]]
name = "three"
law = "xcp"
count = 3
every = "500ms"
"""
ALONE = {"told", "xcp-edge", "vcp-edge", "udp", "rcp-stream"}
"""Laws that cannot take another law's place."""


@pytest.fixture
def staggered(tmp_path: Path) -> Path:
    path = tmp_path / "three.toml"
    path.write_text(STAGGERED)
    return path


@pytest.fixture(scope="module")
def compared() -> fs.Comparison:
    return fs.compare(fs.loads(STAGGERED), "xcp,dctcp,reno+red")


# ------------------------------------------------------------------------------------------------- fairness


def test_fairness_is_measured_while_all_flows_are_active(compared: fs.Comparison) -> None:
    whole = compared["xcp"].groups["three"]["jain_index"]
    fair = compared.fairness()["xcp"]["three"]
    assert (fair.from_s, fair.until_s) == (1.0, 3.0)
    assert fair.index is not None
    assert whole is not None
    # Over the whole run the first flow had the link alone for half a second.
    assert whole + 0.04 < fair.index
    assert fair.index > 0.97
    rows = [line.split() for line in repr(compared).splitlines()]
    assert [f"{fair.index:.4f}"] == [row[3] for row in rows if row[:3] == ["three", "Jain", "index"]]
    assert "Jain index of three: while all its flows are active, 1 s to 3 s" in repr(compared).splitlines()


def test_fairness_over_time_counts_active_flows_only(compared: fs.Comparison) -> None:
    times, index = fairness.over_time(compared["xcp"], 0.2)
    # The first flow is alone for half a second. One that has just begun has less than its share.
    assert np.isnan(index[times < 0.5]).all()
    assert np.nanmin(index) < 0.9 < index[-5:].min()


def test_fairness_of_flows_that_start_together_is_that_of_the_summary() -> None:
    result = fs.loads(STAGGERED).set("flows.three.every", "0s").set("duration", "1s").run()
    assert fairness.while_all_active(result)["three"].index == result.groups["three"]["jain_index"]
    assert fairness.over_time(result)[0].size == 0  # its flows are not sampled


def test_the_command_says_what_it_measured(flowstamp: Command, staggered: Path) -> None:
    done = flowstamp("compare", staggered, "--protocols", "xcp", "--set", "flows.three.count=2", "--out", "out")
    assert "Jain index of three: while all its flows are active, 0.5 s to 3 s" in done.stdout
    alone = flowstamp("run", staggered)
    assert alone.stdout.splitlines()[-1].startswith("Jain: over each flow's own time")


# --------------------------------------------------------------------------------------- what each law needs


@pytest.mark.parametrize("law", sorted(set(fs.laws()["senders"]) - ALONE))
def test_each_law_gets_what_it_needs(law: str) -> None:
    scenario = fs.loads(STAGGERED).set("duration", "600ms").set("flows.three.every", "0s")
    one = comparison.variant(scenario, law)
    tree = one.resolved()["dumbbell"]
    assert (tree["router"]["law"] == "none") == (law in fs.laws()["senders"][fs.laws()["senders"].index("reno") :])
    assert tree["queue"]["kind"] == ("red" if law == "dctcp" else "droptail")
    assert one.run().links["bottleneck"]["utilization"] > 0


def test_dctcp_gets_a_queue_that_marks(compared: fs.Comparison) -> None:
    link = compared["dctcp"].links["bottleneck"]
    assert link["drops"] == 0
    assert link["marks"] > 100
    # A BDP is 100 packets of 1000 bytes. A seventh is 15, and the least is 20 or a fifth of the buffer: 20.
    queue = compared["dctcp"].manifest["scenario"]["dumbbell"]["queue"]
    assert (queue["kind"], queue["step"], queue["step_drops"]) == ("red", 20, False)
    assert "dctcp: queues mark above 20 packets (red, step)" in repr(compared).splitlines()


def test_dctcp_over_a_queue_for_l4s_is_l4s() -> None:
    tree = comparison.variant(fs.loads(STAGGERED), "dctcp+dualpi2").resolved()
    assert (tree["dumbbell"]["queue"]["kind"], tree["flows"][0]["law"]["l4s"]) == ("dualpi2", True)
    tree = comparison.variant(fs.loads(STAGGERED), "dctcp+codel").resolved()
    assert (tree["dumbbell"]["queue"]["kind"], tree["flows"][0]["law"]["l4s"]) == ("codel", False)


def test_each_link_of_a_graph_marks_by_its_own_rate() -> None:
    links = [("a", "b", "1Gbps"), ("b", "c", "100Mbps")]
    scenario = fs.graph([{"from": a, "to": b, "rate": rate, "delay": "10ms"} for a, b, rate in links], rtt="40ms")
    scenario = scenario.flows("reno", from_="a", to="c").configure(duration="100ms")
    tree = comparison.variant(scenario, "dctcp").resolved()
    # A seventh of 5000 and of 500 packets.
    assert [link["queue"]["step"] for link in tree["graph"]["links"]] == [715, 72]


def test_without_a_mark_dctcp_is_warned_of() -> None:
    scenario = fs.loads(STAGGERED).set("dumbbell.queue", {"kind": "red", "ecn": False})
    notes = comparison.notes(fs.compare(scenario, ["dctcp"]))
    assert any("WARNING: no packet was marked" in line for line in notes)


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        ("told", "use flowstamp.gym"),
        ("xcp-edge", "write xcp"),
        ("vcp-edge", "write vcp"),
        ("udp", 'sends at the application\'s rate, such as "2Mbps"'),
        ("dctcp+droptail", "a drop-tail queue marks nothing; write dctcp"),
        ("cubik", 'did you mean "cubic"?'),
        ("reno+rad", 'did you mean "red"?'),
    ],
)
def test_what_cannot_be_compared_is_refused(flowstamp: Command, staggered: Path, protocol: str, said: str) -> None:
    done = flowstamp("compare", staggered, "--protocols", f"xcp,{protocol}", "--out", "out")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


# --------------------------------------------------------------------------------------------------- Python


def test_python_compares_as_the_command_does(flowstamp: Command, staggered: Path, tmp_path: Path) -> None:
    found = fs.compare(staggered, ["xcp", "reno+red"])
    assert list(found) == ["xcp", "reno+red"]
    shown = flowstamp("compare", staggered, "--protocols", "xcp,reno+red", "--out", tmp_path / "out").stdout
    assert [line for line in repr(found).splitlines() if line] == [
        line for line in shown.splitlines() if line and not line.startswith("wrote")
    ]
    with pytest.raises(KeyError, match=r'did you mean "reno\+red"'):
        found["reno"]


def test_the_picture_shows_flows_and_fairness(compared: fs.Comparison) -> None:
    figure = compared.plot()
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == [
        "xcp: throughput of each flow",
        "dctcp: throughput of each flow",
        "reno+red: throughput of each flow",
        "Utilisation of bottleneck",
        "Queue at bottleneck",
        "Fairness of the active flows (Jain)",
    ]
    assert [len(ax.lines) for ax in figure.axes] == [3, 3, 3, 3, 3, 3]
    assert figure.get_suptitle() == "Three flows join"
    assert figure.axes[0].get_xlim() == (0.0, 3.0)
    width, height = figure.get_size_inches() * figure.dpi
    assert (width, height < 1400) == (660.0, True)
