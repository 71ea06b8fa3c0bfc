# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The installed package alone has examples, completion and a dashboard."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import Command, command_line

import flowstamp as fs
from flowstamp import examples, trials
from flowstamp.errors import OutputError

ROOT = Path(__file__).resolve().parents[1]


def test_examples_are_written_and_run(flowstamp: Command, tmp_path: Path) -> None:
    done = flowstamp("examples", "mine")
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith(f"wrote {len(examples.files())} files to mine; in that folder, for example:")
    folder = tmp_path / "mine"
    # Every suggested command names a file that exists.
    for line in done.stdout.splitlines():
        if line.startswith("  "):
            name = next(word for word in line.split() if word.endswith((".toml", ".py")))
            assert (folder / name).is_file(), line
    kept = {path.relative_to(ROOT / "examples") for path in (ROOT / "examples").rglob("*") if path.is_file()}
    assert set(examples.files()) == {path for path in kept if "__pycache__" not in path.parts}
    scenarios = sorted(folder.glob("*.toml"))
    assert len(scenarios) > 5
    for path in scenarios:
        # Whole runs of them are in test_examples.py: here it is what they read that must have come along.
        assert fs.load(path).resolved()["name"], path
    done = flowstamp("run", "mine/five.toml", "--json")
    assert json.loads(done.stdout)["links"]["bottleneck"]["utilization"] > 0.9
    assert all(trials.is_lab(path) for path in (folder / "labs").glob("*.toml"))


def test_the_first_example_is_that_of_the_documentation() -> None:
    written = (ROOT / "examples/five.toml").read_text(encoding="utf-8")
    for page in ("README.md", "docs/getting-started.md"):
        assert f"\n{written}```" in (ROOT / page).read_text(encoding="utf-8")


def test_examples_leave_what_is_there(flowstamp: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes").write_text("mine")
    for where, wanted in (("full", "full: is not empty"), ("full/notes", "is not a folder"), ("", "it is empty")):
        done = flowstamp("examples", where)
        assert done.returncode == 2
        assert done.stdout == ""
        assert wanted in done.stderr
        assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["full", "notes"]

    copied: list[Path] = []

    def fails(source: Path, target: Path) -> None:
        if len(copied) == 3:
            raise OSError(28, "No space left on device")
        copied.append(target)
        target.write_bytes(source.read_bytes())

    monkeypatch.setattr(shutil, "copyfile", fails)
    (tmp_path / "empty").mkdir()
    for where in ("new/inner", "empty"):
        copied.clear()
        with pytest.raises(OutputError, match="No space left"):
            examples.write(tmp_path / where)
        assert len(copied) == 3
    assert not (tmp_path / "new/inner").exists()
    assert list((tmp_path / "empty").iterdir()) == []


def offered(shell: str, line: str) -> list[str]:
    """Returns the completions for the end of a line, as the scripts of --show-completion request them."""
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    typer = {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    environment = {**os.environ, **(asked if shell == "bash" else typer), "_FLOWSTAMP_COMPLETE": f"complete_{shell}"}
    done = subprocess.run(command_line(), env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    if shell == "zsh":
        return re.findall(r'^(?:_arguments .*\(\()?"([^":\\]+)"', done.stdout, re.MULTILINE)
    return [line.partition("\t")[0] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete(shell: str) -> None:
    assert offered(shell, "flowstamp fi") == ["figure"]
    assert {"R6.7", "R6.T"} <= set(offered(shell, "flowstamp figure R6"))


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("flowstamp figure X10 X1", {"X10", "X11"}),
        ("flowstamp compare a.toml --protocols xcp,ren", {"xcp,reno"}),
        ("flowstamp compare a.toml --protocols reno+re", {"reno+red", "reno+rem"}),
        ("flowstamp run --progress pl", {"plain"}),
        ("flowstamp run --proto", set()),
    ],
)
def test_values_are_completed(line: str, wanted: set[str]) -> None:
    found = set(offered("bash", line))
    assert wanted <= found if wanted else not found


def test_completion_of_a_real_shell(tmp_path: Path) -> None:
    if not shutil.which("bash"):
        pytest.skip("needs bash")
    program = tmp_path / "flowstamp"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m flowstamp "$@"\n')
    program.chmod(0o755)
    script = """
    source <(_FLOWSTAMP_COMPLETE=source_bash flowstamp)
    COMP_WORDS=(flowstamp figure R6.1) COMP_CWORD=2
    _flowstamp_completion flowstamp
    echo "${COMPREPLY[@]}"
    """
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    told = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert "R6.11" in told.stdout.split()
    assert "R6.7" not in told.stdout


def test_the_dashboard_is_one() -> None:
    """Its metrics are held against the router's by crates/flowstamp-linux/src/router/metrics.rs."""
    dashboard = json.loads((ROOT / "grafana/flowstamp-router.json").read_text(encoding="utf-8"))
    assert dashboard["schemaVersion"] >= 36
    panels: list[dict[str, Any]] = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    variables = {variable["name"] for variable in dashboard["templating"]["list"]} | {"__rate_interval"}
    covered: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & covered, panel["title"]
        covered |= cells
        if panel["type"] == "row":
            continue
        assert panel["title"]
        assert panel["targets"]
        for target in panel["targets"]:
            assert set(re.findall(r"\$\{?(\w+)", target["expr"] + target["datasource"]["uid"])) <= variables
            assert target["expr"].count("(") == target["expr"].count(")")


def test_units_say_what_they_need() -> None:
    """Each command of a unit is one that the program has, and of root it keeps what is named and no more."""
    reference = (ROOT / "docs/reference/linux.md").read_text(encoding="utf-8")
    units = sorted((ROOT / "crates/flowstamp-linux/debian").glob("*.service"))
    assert {unit.name for unit in units} >= {"flowstamp-router@.service", "flowstamp-host.service"}
    for unit in units:
        text = unit.read_text(encoding="utf-8")
        for command in re.findall(r"^Exec\w+=/usr/bin/flowstamp-linux (\w+) (\w+)", text, re.MULTILINE):
            section = reference.partition(f"## `flowstamp {command[0]}`")[2].partition("\n## ")[0]
            assert re.search(rf"^  {command[1]}\b", section, re.MULTILINE), f"{unit.name}: {command}"
        for wanted in ("CapabilityBoundingSet=CAP_BPF", "NoNewPrivileges=yes", "ProtectSystem=strict"):
            assert wanted in text, unit.name


def test_the_wheel_has_what_the_package_looks_for() -> None:
    """The targets of links must be named in pyproject.toml, or the wheel would lack them."""
    included = [
        entry["path"] for entry in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["maturin"]["include"]
    ]
    reached = {path.relative_to(ROOT) for pattern in included for path in ROOT.glob(pattern)}
    missing = [name for name in examples.files() if Path("python/flowstamp/examples/data") / name not in reached]
    assert not missing


@pytest.mark.parametrize("rustup", ["exit 1", "touch installed"])
def test_a_release_without_rust_for_the_browser_gets_it_or_stops_at_once(tmp_path: Path, rustup: str) -> None:
    for name, does in (
        ("rustc", f"[ -e installed ] && echo {tmp_path} || echo /nowhere"),
        ("rustup", f'echo "$@" > asked; {rustup}'),
        ("node", "exit 1"),  # so that nothing is built
    ):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\ncd {tmp_path} && {does}\n")
        program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    make = ["make", "--no-print-directory", "release", f"VENV={tmp_path}/venv"]
    done = subprocess.run(make, cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0].startswith("release: make web needs node")
    assert not (tmp_path / "venv").exists()
    assert (tmp_path / "asked").read_text() == "target add wasm32-unknown-unknown\n"
