# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Labs: what follows the run; and where root, iperf3 and the program are there, a run."""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import SCENARIO

import flowstamp as fs
from flowstamp import lab, linux, quic, results, trials
from flowstamp.cli import run_command
from flowstamp.errors import ScenarioError, UsageError

LABS = Path(__file__).parent.parent / "examples/labs"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as a lab leaves it, here by the simulator."""
    scenario = fs.dumbbell("10Mbps", rtt="20ms").flows("rcp", 2).probe(every="100ms", flows=True, laws=True)
    run = scenario.run("4s")
    run.write(tmp_path / "run")
    for name, more in {
        "manifest": {"lab": {"path": {"rtt": "20ms"}}},
        "summary": {"valid": True, "invalid": None},
    }.items():
        path = tmp_path / "run" / f"{name}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | more))
    return tmp_path / "run"


def test_a_lab_and_its_simulation_are_compared(folder: Path) -> None:
    measured = lab.load(folder)
    simulated = lab.simulate(measured)
    comparison = lab.Comparison(measured, simulated)
    assert lab.exit_code(comparison) == 0
    assert "utilisation" in lab.text_of(comparison)
    assert lab.draw(measured, simulated).axes
    rate = lab.draw_rate(measured, simulated)
    assert rate is not None
    assert [line.get_label() for line in rate.axes[0].get_lines()] == ["Linux kernel", "simulator"]


def test_an_invalid_run_has_an_exit_code_of_its_own(folder: Path) -> None:
    measured = lab.Measured(results.load(folder), folder, "the machine was busy")
    comparison = lab.Comparison(measured, measured.results)
    assert lab.exit_code(comparison) == lab.EXIT_INVALID
    assert "INVALID: the machine was busy" in lab.text_of(comparison)


def test_a_run_without_a_scenario_is_not_simulated(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text()) | {"scenario": None, "no_scenario": "no cubic there"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UsageError, match="no cubic there"):
        lab.simulate(lab.load(folder))


def test_compare_against_the_simulator_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "lab.toml")
    for arguments, wanted in (
        (("--against", "ns3"), "must be sim"),
        (("--against", "sim", "--protocols", "rcp"), "leave out --protocols"),
        ((), "--protocols is missing"),
    ):
        assert run_command(["compare", file, *arguments]) == 2
        assert wanted in capsys.readouterr().err
    monkeypatch.setattr(linux, "program", lambda: None)
    assert run_command(["compare", file, "--against", "sim", "--out", str(tmp_path / "out")]) == 2
    assert "lab: " in capsys.readouterr().err


H3 = """
duration = "4s"
warmup = "1s"
path = {rate = "10Mbps", rtt = "40ms", buffer = "1BDP"}
router = {law = "rcp", where = "WHERE"}
host = {law = "rcp"}
[[flows]]
name = "long"
app = "h3"
count = 2
[[flows]]
name = "pages"
app = "h3"
size = "100kB"
start = "2s"
every = "300ms"
count = 3
"""


def _why_not() -> str:
    if linux.program() is None:
        return linux.missing()
    if os.geteuid() != 0:
        return "labs need root"
    return next(
        (f"{name} is missing" for name in ("ip", "iperf3", "nginx", "curl", "ethtool") if not shutil.which(name)), ""
    )


def _valid(file: Path, out: Path, lab_id: str) -> lab.Measured:
    """Runs a lab until the machine is not too busy. Skips the test if it always is."""
    for number in range(1, trials.TRIES + 1):
        measured = lab.run(file, out / str(number), lab_id=lab_id)
        if not measured.invalid:
            return measured
    pytest.skip(f"invalid {trials.TRIES} times: {measured.invalid}")


@pytest.mark.parametrize("busy", range(trials.TRIES + 1))
def test_an_invalid_run_is_repeated(busy: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []

    def run(_: Path, out: Path, *, lab_id: str) -> lab.Measured:
        given.append(f"{lab_id}{out.name}")
        why = "the machine was busy" if len(given) <= busy else None
        return lab.Measured(results.load(folder), out, why)

    monkeypatch.setattr(lab, "run", run)
    if busy == trials.TRIES:
        with pytest.raises(pytest.skip.Exception, match=f"invalid {busy} times: the machine was busy"):
            _valid(folder, folder, "a")
    else:
        assert not _valid(folder, folder, "a").invalid
    assert given == [f"a{number}" for number in range(1, min(busy + 1, trials.TRIES) + 1)]


@pytest.mark.kernel
@pytest.mark.skipif(bool(_why_not()), reason=_why_not())
def test_a_lab_of_the_kernels_own_law_runs(tmp_path: Path) -> None:
    short = (LABS / "cubic.toml").read_text().replace('"10s"', '"5s"').replace("count = 20", "count = 5")
    file = tmp_path / "lab.toml"
    file.write_text(short)
    measured = lab.run(file, tmp_path / "out", lab_id="test")
    assert measured.results.groups["pages"]["completed"] == 5
    assert measured.results.links["bottleneck"]["utilization"] > 0.8
    # The lab writes its tables itself, and the simulator's reader reads them.
    assert measured.results.flows.column("group").count("pages") == 5
    assert measured.results.flows["delivered_bytes"].min() > 0
    assert not Path("/run/netns/fs-test-path").exists()
    file.write_text(short.replace('"100Mbps"', '"100mbps"'))
    with pytest.raises(ScenarioError, match="did you mean"):
        lab.run(file, tmp_path / "out", lab_id="test")


def _why_no_quic() -> str:
    if why := _why_not():
        return why
    if quic.program() is None:
        return quic.MISSING
    return "" if Path("/sys/kernel/btf/vmlinux").exists() else "the kernel has no BTF"


@pytest.mark.long
@pytest.mark.kernel
@pytest.mark.skipif(bool(_why_no_quic()), reason=_why_no_quic())
@pytest.mark.parametrize("where", ["path", "bpf"])
def test_flows_over_quic_get_rcps_rate_from_a_router(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWSTAMP_QUIC", str(quic.program()))
    file = tmp_path / "lab.toml"
    file.write_text(H3.replace("WHERE", where))
    measured = _valid(file, tmp_path / "out", f"h3{where[:1]}")
    summary = measured.results.summary
    assert summary["groups"]["pages"]["completed"] == 3
    told = [one["server"] for one in summary["applications"]]
    assert not [one for one in told if one["fell_back"] or one["law"] != "rcp"]
    assert all(one["stamps"] > 0 for one in summary["applications"])
    # Each server obeys the router's rate. Where nothing lowers the stamps, a flow becomes a TCP without a rate.
    assert all(0 < one["rate_bps"] < 10e6 for one in told)
    assert 0 < summary["groups"]["long"]["goodput_bps"] < 10e6
    # The client's bytes are in the tables, in the simulator's format.
    assert measured.results.flows["delivered_bytes"].min() >= 100_000
    series = measured.results.series("group", "long", "goodput_bps")[1]
    assert series.max() > 1e6


@pytest.mark.long
@pytest.mark.kernel
@pytest.mark.skipif(bool(_why_no_quic()), reason=_why_no_quic())
def test_a_video_follows_the_advice_of_a_bpf_router(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWSTAMP_QUIC", str(quic.program()))
    file = tmp_path / "scone.toml"
    file.write_text((LABS / "scone.toml").read_text().replace('"200s"', '"8s"'))
    summary = _valid(file, tmp_path / "out", "scone").results.summary
    follows, ignores = summary["applications"]
    # 3 Mb/s is between two signals, and the lower one is this.
    assert follows["advice_bps"] == ignores["advice_bps"] == summary["scone"]["advice_bps"] == 2_818_382
    assert summary["scone"]["lowered_packets"] >= 2
    # All bitrates up to 2.35 Mb/s are below the advice, and the link carries the highest one, 5 Mb/s, too.
    assert 0.235e6 < follows["mean_bitrate_bps"] <= 2.35e6
    assert ignores["mean_bitrate_bps"] > 2_818_382
    assert follows["segments"] >= 3


def row(page_s: list[float], **more: object) -> dict[str, object]:
    """The results of one run of a lab with pages."""
    groups = {name: {"flows": 3, "goodput_bps": 5e7} for name in ("long", "pages")}
    given = {"invalid": None, "utilization": 0.9, "mean_queue_bytes": 4e3, "drops": 2, "left": 0}
    return given | {"page_s": {"pages": page_s}, "groups": groups} | more


def test_a_lab_is_told_from_a_scenario(tmp_path: Path) -> None:
    assert all(trials.is_lab(path) for path in LABS.glob("*.toml"))
    assert not any(trials.is_lab(path) for path in LABS.parent.glob("*.toml"))
    assert not trials.is_lab(tmp_path / "none.toml")


def test_a_lab_under_another_protocol() -> None:
    tree = tomllib.loads((LABS / "rcp.toml").read_text())
    same, other, kernels = (trials.variant(tree, name, LABS) for name in ("rcp", "xcp", "cubic"))
    assert same["router"] == {"law": "rcp", "where": "bpf", "eta": 0.9}
    # RCP's eta is none of XCP's parameters.
    assert other["router"] == {"law": "xcp", "where": "bpf"}
    assert other["host"] == {"law": "xcp"}
    assert kernels["router"] == {"law": "none", "where": "bpf"}
    assert kernels["host"] == {"law": "cubic"}
    assert kernels["path"] == tree["path"]
    pages = tomllib.loads((LABS / "pages.toml").read_text())
    quic = trials.variant(pages, "quic-rcp", LABS)
    assert (quic["router"]["law"], quic["host"]) == ("rcp", {"law": "rcp"})
    assert [(flows["app"], flows.get("size")) for flows in quic["flows"]] == [("h3", None), ("h3", "100kB")]
    xcp = trials.variant(pages, "quic-xcp", LABS)
    assert (xcp["router"], xcp["host"]) == ({"law": "xcp", "where": "bpf"}, {"law": "xcp"})
    assert trials.variant(pages, "quic-bbr3", LABS)["router"] == {"law": "none", "where": "bpf"}
    blind = tomllib.loads((LABS / "xcp-b-trace.toml").read_text())
    assert trials.variant(blind, "xcp-b", LABS)["host"] == {"law": "xcp", "any_rtt": True}
    assert trials.variant(blind, "bbr", LABS)["host"] == {"law": "bbr"}
    assert Path(trials.variant(blind, "bbr", LABS)["path"]["rate"]["trace"]).is_file()
    mixed = tomllib.loads((LABS / "coexistence.toml").read_text())
    assert not [flows for flows in trials.variant(mixed, "xcp", LABS)["flows"] if "law" in flows]


def test_a_lab_over_quic_keeps_what_only_quic_has() -> None:
    videos = tomllib.loads((LABS / "scone.toml").read_text())
    of_rcp = trials.variant(videos, "quic-rcp", LABS)
    assert of_rcp["router"] == {"law": "rcp", "where": "bpf", "scone": {"rate": "3Mbps", "enforce": True}}
    assert [(flows["app"], flows.get("video")) for flows in of_rcp["flows"]] == [
        ("video", None),
        ("video", {"advice": "ignore"}),
    ]
    # A flow over QUIC would be reported as one of TCP.
    for app in ("h3", "video"):
        videos["flows"][0]["app"] = app
        with pytest.raises(
            UsageError, match=rf'"cubic" is TCP, and app = "{app}" of flows.follows is QUIC; use "quic-'
        ):
            trials.variant(videos, "cubic", LABS)
    for key, value in (("pace", "1Mbps"), ("hears", "none")):
        tree = {"path": {}, "flows": [{"name": "a", key: value}]}
        with pytest.raises(UsageError, match=rf'flows.a: "quic-rcp" is QUIC, which has no {key}'):
            trials.variant(tree, "quic-rcp", LABS)
        assert trials.variant(tree, "rcp", LABS)["flows"] == tree["flows"]


def told(rows: dict[str, list[dict[str, Any]]]) -> list[str]:
    return trials.table(rows).splitlines()[1:]


def test_trials_are_told_by_their_medians() -> None:
    pages = [[0.1, 0.2, 0.9], [0.1, 0.3, 0.8], [0.1, 0.4, 0.7]]
    rows = {"rcp": [row(one) for one in pages], "bbr": [row([0.5, 1.5]), row([9.0], invalid="the machine was busy")]}
    cells = {line.split("  ")[0]: [c.strip() for c in line.split("  ")[1:] if c] for line in told(rows)}
    assert cells["pages: half of them within, s"] == ["0.30 (0.20 to 0.40)", "0.50"]
    assert cells["pages: 95% of them within, s"] == ["0.80 (0.70 to 0.90)", "1.50"]
    assert cells["long: goodput, Mb/s"] == ["50.0", "50.0"]
    assert cells["valid trials"] == ["3 of 3", "1 of 2"]
    assert trials.exit_code(rows) == 0
    picture = trials.draw(rows)
    assert picture is not None
    assert [len(line.get_xdata()) for line in picture.axes[0].get_lines()] == [9, 2]  # type: ignore[arg-type]
    busy = {"rcp": [row([0.1], invalid="the machine was busy")]}
    assert trials.exit_code(busy) == lab.EXIT_INVALID
    assert trials.draw(busy) is None
    assert trials.table(busy).splitlines()[-1].split() == ["valid", "trials", "0", "of", "1"]


def test_compare_of_a_lab_refuses_in_a_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(SCENARIO)
    for file, arguments, wanted in (
        (
            LABS / "pages.toml",
            ("--protocols", "rcp,cubik"),
            '"cubik" is not a protocol; did you mean "cubic"?',
        ),
        (
            LABS / "pages.toml",
            ("--protocols", "quic-cubik"),
            '"quic-cubik" is not a protocol; did you mean "quic-cubic"?',
        ),
        (LABS / "pages.toml", ("--protocols", "rcp,rcp"), '"rcp" appears twice'),
        (LABS / "pages.toml", ("--protocols", "rcp", "--set", "duration=5s"), "--set: is not for a lab"),
        (tmp_path / "three.toml", ("--protocols", "xcp", "--trials", "2"), "--trials: is for a lab's file"),
    ):
        assert run_command(["compare", str(file), *arguments, "--out", str(tmp_path / "out")]) == 2
        said = capsys.readouterr().err
        assert wanted in said
        assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_lab_given_to_the_simulator_is_refused_with_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", str(LABS / "pages.toml")]) == 2
    assert "is a lab's file, with a table [path]; use flowstamp lab run" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.kernel
@pytest.mark.skipif(bool(_why_not()), reason=_why_not())
def test_a_lab_under_the_kernels_protocols_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pages.toml"
    short = (LABS / "pages.toml").read_text().replace('"20s"', '"6s"').replace("count = 30", "count = 3")
    file.write_text(short)
    out = tmp_path / "out"
    code = run_command(["compare", str(file), "--protocols", "cubic", "--trials", "1", "--json", "--out", str(out)])
    assert code in (0, lab.EXIT_INVALID)
    document = json.loads(capsys.readouterr().out)
    assert len(document["protocols"]["cubic"][0]["page_s"]["pages"]) == 3
    assert json.loads((out / "trials.json").read_text()) == {key: document[key] for key in ("lab", "protocols")}
    assert (out / "cubic/1/summary.json").is_file()


@pytest.mark.skipif(linux.program() is None, reason=linux.missing())
def test_compare_takes_labs_that_the_simulator_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "run", lambda *_, **__: pytest.fail("a protocol was not refused"))
    with pytest.raises(UsageError, match=r'app = "video" of flows.follows is QUIC; use "quic-cubic"'):
        trials.run(LABS / "scone.toml", ["cubic"], tmp_path, trials=1)
    with pytest.raises(ScenarioError, match=r"scone.toml with quic-vcp: .*QUIC does not carry vcp"):
        trials.run(LABS / "scone.toml", ["quic-cubic", "quic-vcp"], tmp_path, trials=1)


@pytest.mark.skipif(bool(_why_not()), reason=_why_not())
def test_compare_says_in_which_lab_a_mistake_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pages.toml"
    file.write_text((LABS / "pages.toml").read_text().replace('"60Mbps"', '"60mbps"'))
    out = tmp_path / "out"
    assert run_command(["compare", str(file), "--protocols", "cubic", "--out", str(out)]) == 2
    assert capsys.readouterr().err.startswith(f"flowstamp: {file}: path.rate: ")
    # A law that the kernel has not is refused before the others run.
    pages = LABS / "pages.toml"
    for law in ("newreno", "pcp"):
        assert run_command(["compare", str(pages), "--protocols", f"rcp,{law}", "--out", str(out)]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"flowstamp: {pages} with {law}: ")
        assert f'no law "{law}"' in said
        assert said.count("\n") == 1
    assert not out.exists()
