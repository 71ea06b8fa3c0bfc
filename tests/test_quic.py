# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How the command hands over to the program for QUIC. The program's own tests are in crates/flowstamp-quic/tests."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from conftest import Command

from flowstamp import quic
from flowstamp.cli import run_command


def test_arguments_and_exit_code_are_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flowstamp: Command
) -> None:
    path = tmp_path / quic.PROGRAM
    path.write_text('#!/bin/sh\necho "$@"; exit 3\n', encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("FLOWSTAMP_QUIC", str(path))
    done = flowstamp("quic", "get", "https://127.0.0.1/", "--law", "bbr3", "--help")
    assert (done.returncode, done.stdout) == (3, "quic get https://127.0.0.1/ --law bbr3 --help\n")


def test_without_the_program_help_names_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(quic, "program", lambda: None)
    assert run_command(["quic", "--help"]) == 0
    assert "make quic" in capsys.readouterr().out


@pytest.mark.parametrize("named", [None, "/nowhere/flowstamp-quic"])
def test_without_the_program_one_line_says_so(
    named: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(quic, "program", lambda: named)
    assert run_command(["quic", "get"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert (named or "make quic") in said
