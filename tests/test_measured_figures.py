# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Figures that this machine's kernel measures, with a stand-in for the program that does it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import flowstamp as fs
from flowstamp import lab, linux, router_cost
from flowstamp.figures import FigureError, cli_figure
from flowstamp.figures.measured import changed

FIGURE = """
id = "L1"
title = "two flows"
paper = "none"
notes = "a test"
[constants]
until = 4
[lab]
duration = "4s"
[lab.path]
rate = "10Mbps"
[[lab.flows]]
name = "long"
count = 2
[[runs]]
name = "lab"
label = "Linux"
on = "linux"
[runs.set]
"path.rate" = "20Mbps"
[[runs]]
name = "sim"
label = "simulator"
[measure]
group = "long"
[draw]
x = "time"
xlabel = "Time (s)"
[[draw.panels]]
y = "utilization"
ylabel = "Utilisation"
[[claims]]
id = "full"
paper = "The link is full"
expr = "mean(samples(lab, 'utilization', until - 1, until))"
expected = ">= 0.9"
tolerance = "0"
source = "test"
[[claims]]
id = "kept"
paper = "Every flow stays"
expr = "switches(lab) + switches(sim)"
expected = "== 0"
tolerance = "0"
source = "test"
[fast]
reason = "shorter"
[fast.constants]
until = 3
[fast.set]
"flows.long.count" = 3
"""
SCRIPT = """#!/bin/sh
here={here}
case "$2" in
scenario)
  cp "$3" $here/lab.toml
  {check}
  cat $here/scenario.toml;;
run)
  echo run >> $here/runs
  {run}
esac
"""


class Stand:
    """A folder with a figure, what a valid and an invalid lab leave, and the stand-in."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch
        (folder / "figures").mkdir()
        (folder / "figures" / "L1.toml").write_text(FIGURE)
        scenario = fs.dumbbell("10Mbps", rtt="20ms").flows("rcp", 2, name="long").probe(every="100ms", flows=True)
        run = scenario.run("4s")
        (folder / "scenario.toml").write_text(lab.toml_of(run.manifest["scenario"]))
        for name, invalid in (("valid", None), ("late", "packets left late")):
            run.write(folder / name)
            path = folder / name / "summary.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"invalid": invalid}))

    def program(self, run: str, check: str = "") -> None:
        """Makes it do `run` for a lab's run, `check` for its scenario."""
        path = self.folder / "flowstamp-linux"
        path.write_text(SCRIPT.format(here=self.folder, run=run, check=check))
        path.chmod(0o755)
        self.monkeypatch.setenv("FLOWSTAMP_LINUX", str(path))

    @property
    def runs(self) -> int:
        """How often a lab was run."""
        return len((self.folder / "runs").read_text().split())

    def figure(self, capsys: pytest.CaptureFixture[str], *, fast: bool = False) -> tuple[int, dict[str, Any]]:
        """Exit code and document of the one figure."""
        out = self.folder / "out"
        code = cli_figure(["L1"], fast=fast, json=True, out=out, directory=self.folder / "figures")
        figures: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["figures"]
        return code, figures[0]


LEAVE = 'mkdir -p "$5"; cp $here/{}/* "$5"'


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stand:
    return Stand(tmp_path, monkeypatch)


def test_a_lab_is_measured_beside_the_simulator(stand: Stand, capsys: pytest.CaptureFixture[str]) -> None:
    stand.program(LEAVE.format("valid"))
    code, figure = stand.figure(capsys, fast=True)
    assert (code, [claim["holds"] for claim in figure["claims"]]) == (0, [True, True])
    assert "status" not in figure
    assert "notes" not in figure
    assert (stand.folder / "out" / "L1.png").exists()
    assert (stand.folder / "out" / "L1" / "lab" / "summary.json").exists()
    given = tomllib.loads((stand.folder / "lab.toml").read_text())
    assert given["path"]["rate"] == "20Mbps"
    assert given["flows"][0]["count"] == 3


def test_flows_that_left_fail_the_claim(stand: Stand, capsys: pytest.CaptureFixture[str]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = stand.folder / "valid" / "flows.parquet"
    flows = parquet.read_table(path)
    at = flows.column_names.index("switched_s")
    kind = flows.schema.field("switched_s").type
    pyarrow = pytest.importorskip("pyarrow")
    parquet.write_table(flows.set_column(at, "switched_s", pyarrow.array([1.5, None], kind)), path)
    stand.program(LEAVE.format("valid"))
    code, figure = stand.figure(capsys)
    assert (code, figure["claims"][1]["measured"], figure["claims"][1]["holds"]) == (1, 1.0, False)


def test_a_run_that_stays_invalid_neither_passes_nor_fails(stand: Stand, capsys: pytest.CaptureFixture[str]) -> None:
    stand.program(LEAVE.format("late") + "; exit 3")
    code, figure = stand.figure(capsys)
    assert (code, figure["status"], stand.runs) == (0, "invalid", 2)
    assert "packets left late" in figure["reason"]
    assert [claim["holds"] for claim in figure["claims"]] == [None, None]
    assert len(figure["notes"]) == 1


def test_an_invalid_run_is_done_once_more(stand: Stand, capsys: pytest.CaptureFixture[str]) -> None:
    again = f"if [ $(wc -l < $here/runs) = 1 ]; then {LEAVE.format('late')}; exit 3; fi; {LEAVE.format('valid')}"
    stand.program(again)
    code, figure = stand.figure(capsys)
    assert (code, [claim["holds"] for claim in figure["claims"]], stand.runs) == (0, [True, True], 2)
    assert figure["notes"] == ["L1 lab: invalid: packets left late; once more"]


def test_what_the_machine_lacks_is_skipped(stand: Stand, capsys: pytest.CaptureFixture[str]) -> None:
    stand.program('echo "flowstamp: this kernel has no BTF" >&2; exit 2')
    code, figure = stand.figure(capsys)
    assert (code, figure["status"], figure["reason"]) == (0, "skipped", "this kernel has no BTF")
    assert cli_figure(["L1"], out=stand.folder / "out", directory=stand.folder / "figures") == 0
    said = capsys.readouterr().out
    assert "skipped: this kernel has no BTF" in said
    assert "2 skipped" in said


@pytest.mark.parametrize("named", ["/nowhere/flowstamp-linux", None])
def test_without_the_program_it_is_skipped(
    stand: Stand, named: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(linux, "program", lambda: named)
    code, figure = stand.figure(capsys)
    assert (code, figure["status"]) == (0, "skipped")
    assert (named or "flowstamp-linux is not here") in figure["reason"]


def test_an_application_that_fails_fails_the_figure(stand: Stand, capsys: pytest.CaptureFixture[str]) -> None:
    stand.program('echo "flowstamp: long.0: its program failed" >&2; exit 1')
    code, figure = stand.figure(capsys)
    assert (code, [claim["holds"] for claim in figure["claims"]]) == (1, [False, False])


def test_a_lab_that_is_none_is_bad_input(stand: Stand) -> None:
    stand.program("exit 0", check='echo "flowstamp: path.rate is 20; it must be a rate with its unit" >&2; exit 2')
    with pytest.raises(FigureError, match=r"L1\.toml: lab, run lab: path\.rate is 20"):
        cli_figure(["L1"], out=stand.folder / "out", directory=stand.folder / "figures")
    with pytest.raises(FigureError, match=r"flows\.short\.count: the lab has no such table"):
        changed({"flows": [{"name": "long"}]}, (("flows.short.count", "1"),), "L1.toml")


def test_forwarding_needs_the_program_and_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    for program, reason in ((lambda: None, "is not here"), (lambda: "/bin/true", "need root")):
        monkeypatch.setattr(linux, "program", program)
        assert cli_figure(["R6.T"], fast=True, json=True, out=tmp_path) == 0
        [figure] = json.loads(capsys.readouterr().out)["figures"]
        assert figure["status"] == "skipped"
        assert reason in figure["reason"]


def test_the_routers_share_is_of_forwarding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = {"additions": 3, "comparisons": 2, "writes": 1, "other_arithmetic": 0}
    thread = {"straight": 1000.0, "forwarding": 2000.0, "rcp": 2040.0, "xcp": 2100.0}
    found = {
        "thread": {name: [ns, ns + 100, ns + 200] for name, ns in thread.items()},
        "own": {"rcp": [100.0, 90.0, 80.0], "xcp": [200.0, 200.0, 200.0]},
        "bench": {"rcp": counted},
    }
    monkeypatch.setattr(linux, "program", lambda: "/bin/true")
    monkeypatch.setattr(router_cost, "measure", lambda *_: found)
    assert cli_figure(["R6.T"], fast=True, json=True, out=tmp_path) == 0
    [figure] = json.loads(capsys.readouterr().out)["figures"]
    measured = {claim["id"]: (claim["measured"], claim["holds"]) for claim in figure["claims"]}
    assert measured["share"] == (pytest.approx(0.04), True)
    assert measured["bpf-share"] == (pytest.approx(0.09), False)
    assert [measured[name] for name in ("additions", "comparisons", "writes")] == [(3, True), (2, True), (1, True)]
    assert measured["multiplications"] == (0, True)


def test_a_router_that_is_refused_is_not_here(tmp_path: Path) -> None:
    path = tmp_path / "refuse"
    path.write_text('#!/bin/sh\necho "flowstamp: this kernel has no tcx" >&2\nexit 2\n')
    path.chmod(0o755)
    with pytest.raises(linux.NotHereError, match="no tcx"):
        router_cost.run(str(path))
    with pytest.raises(linux.NotHereError, match="No such file"):
        router_cost.run(str(tmp_path / "nothing"))
