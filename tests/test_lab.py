# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Labs: what follows the run; and where root, iperf3 and the program are there, a run."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

import flowstamp as fs
from flowstamp import lab, linux, results
from flowstamp.cli import run_command
from flowstamp.errors import ScenarioError, UsageError

LABS = Path(__file__).parent.parent / "crates/flowstamp-linux/labs"


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
    pytest.importorskip("pyarrow")
    measured = lab.load(folder)
    simulated = lab.simulate(measured)
    comparison = lab.Comparison(measured, simulated)
    assert lab.exit_code(comparison) == 0
    assert "utilisation" in lab.text_of(comparison)
    assert lab.draw(measured, simulated).axes


def test_an_invalid_run_has_an_exit_code_of_its_own(folder: Path) -> None:
    pytest.importorskip("pyarrow")
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


def _why_not() -> str:
    if linux.program() is None:
        return linux.missing()
    if os.geteuid() != 0:
        return "labs need root"
    return next(
        (f"{name} is missing" for name in ("ip", "iperf3", "nginx", "curl", "ethtool") if not shutil.which(name)), ""
    )


@pytest.mark.skipif(bool(_why_not()), reason=_why_not())
def test_a_lab_of_the_kernels_own_law_runs(tmp_path: Path) -> None:
    short = (LABS / "cubic.toml").read_text().replace('"10s"', '"5s"').replace("count = 20", "count = 5")
    file = tmp_path / "lab.toml"
    file.write_text(short)
    measured = lab.run(file, tmp_path / "out", lab_id="test")
    assert measured.results.groups["pages"]["completed"] == 5
    assert measured.results.links["bottleneck"]["utilization"] > 0.8
    assert not Path("/run/netns/fs-test-path").exists()
    file.write_text(short.replace('"100Mbps"', '"100mbps"'))
    with pytest.raises(ScenarioError, match="did you mean"):
        lab.run(file, tmp_path / "out", lab_id="test")
