# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`tools/check_words.py` finds banned phrases and long sentences, and passes plain text."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
check = runpy.run_path(str(ROOT / "tools/check_words.py"))["main"]

LONG = "The sender " + "adds a word and " * 11 + "stops."
BAD = {
    "a.md": "# What is unique\n\nWhat is given away is built by `make release`.\n",
    "b.md": "- It works. Of an end\n  that loses packets none has the option.\n",
    "c.md": f"Short. {LONG}\n",
    "a.rs": "//! Packets.\n\n/// Whoever does\n/// not obey.\nfn f() {}\n",
    "b.rs": 'fn f() -> &\'static str {\n    "there may be 3 flows"\n}\n',
    "a.py": 'def f():\n    """Returns a number.\n\n    So it is said.\n    """\n',
    "a.toml": 'title = "Queue near rest"\n',
    "a.sh": "echo What is this # What\n# If one has a shell.\n",
}
FOUND = [
    "a.md:3: 'What' ",
    "a.py:4: 'So' ",
    "a.py:4: 'it is said' ",
    "a.rs:3: 'Whoever' ",
    "a.sh:2: 'If one has' ",
    "a.toml:1: 'near rest' ",
    "b.md:1: 'Of ' ",
    "b.rs:2: 'there may be' ",
    "c.md:1: 47 words ",
]
FINE = {
    "a.md": "# What is unique\n\nWhat is it? So far, it is fast.\n\n```text\nWhat a command prints\n```\n",
    "a.rs": "/// See `What it does`: the queue is empty.\nfn f() { println!(\"{}\", 'W'); }\n",
    "a.py": 'WHAT = """\n[flows]\n' + "count = 1\n" * 50 + '"""\n',
}


def lines(folder: Path, files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """Returns the exit code and the findings for a project with these files."""
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return check(folder), capsys.readouterr().out.splitlines()


def test_banned_phrases_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = lines(tmp_path, BAD, capsys)
    assert code == 1
    assert len(found) == len(FOUND)
    for line, expected in zip(sorted(found), FOUND, strict=True):
        assert line.startswith(expected)


def test_plain_text_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(tmp_path, FINE, capsys) == (0, [])
