# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How the command hands over to the program for Linux."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import pytest
from conftest import Command, command_line

from flowstamp import doctor, linux
from flowstamp.cli import run_command


def program(folder: Path, script: str) -> str:
    path = folder / "flowstamp-linux"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize("command", linux.COMMANDS)
def test_arguments_and_exit_code_are_passed_on(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flowstamp: Command
) -> None:
    monkeypatch.setenv("FLOWSTAMP_LINUX", program(tmp_path, 'echo "$@"; exit 3'))
    done = flowstamp(command, "attach", "eth0", "--rate", "100Mbps", "--help")
    assert (done.returncode, done.stdout) == (3, f"{command} attach eth0 --rate 100Mbps --help\n")


def test_a_signal_reaches_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "trap 'echo tidied; exit 5' TERM\necho begun; sleep 20 & wait"
    monkeypatch.setenv("FLOWSTAMP_LINUX", program(tmp_path, script))
    with subprocess.Popen(command_line("lab", "run"), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.terminate()
        assert process.stdout.readline() == "tidied\n"
        assert process.wait() == 5


@pytest.mark.parametrize("command", linux.COMMANDS)
def test_without_the_program_one_line_says_so(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(linux, "program", lambda: None)
    assert run_command([command, "status"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert command in said
    assert "make linux" in said or "for Linux" in said


@pytest.mark.parametrize("command", ["host", "router", "lab"])
def test_help_needs_no_program(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FLOWSTAMP_LINUX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    for option in ("--help", "-h"):
        assert run_command([command, option]) == 0
        said = capsys.readouterr()
        assert said.err == ""
        assert f"Usage: flowstamp {command} <COMMAND>" in said.out
        assert "make linux" in said.out or "for Linux" in said.out
    # The program's own help says the same.
    reference = (Path(__file__).parents[1] / "docs/reference/linux.md").read_text()
    own = reference.split(f"## `flowstamp {command}`\n\n```text\n")[1].split("\nOptions:")[0]
    assert linux.help_of(command) == own.replace("flowstamp-linux", "flowstamp")


def test_a_program_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLOWSTAMP_LINUX", "/nowhere/flowstamp-linux")
    assert run_command(["lab", "run"]) == 2
    assert "/nowhere/flowstamp-linux" in capsys.readouterr().err


def test_doctor_tells_what_the_kernel_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [{"feature": "btf", "name": "kernel types", "present": False, "needed_by": ["host"], "without": "get one"}]
    monkeypatch.setenv("FLOWSTAMP_LINUX", program(tmp_path, f"echo '{json.dumps(found)}'"))
    lines = doctor.lines(doctor.report())
    assert any("kernel types: get one (for host)" in line for line in lines)
    assert any(line.endswith("host: lacks kernel types") for line in lines)
    assert any(line.endswith("router: ready") for line in lines)
    monkeypatch.setenv("FLOWSTAMP_LINUX", program(tmp_path, "echo nonsense"))
    assert doctor.report()["linux"] is None
