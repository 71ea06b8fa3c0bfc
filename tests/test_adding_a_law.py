# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The document that leads from equations to a running law is followed step by step in a copy of the workspace."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs/adding-a-law.md"
WORKSPACE = ("Cargo.toml", "Cargo.lock", ".cargo", "crates")
# Dependencies are built once and kept; later runs build laws and simulator only. The copy of the workspace stays at one
# path, because cargo builds a crate at another path anew.
TARGET = ROOT / "target/adding-a-law"

BLOCK = re.compile(r"^(`{3,})\{code-block\} (\w+)\n:caption: (\S+)\n\n(.*?)^\1$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A code block with the path of the file that it belongs to."""

    language: str
    path: str
    text: str


def blocks() -> list[Block]:
    text = DOCUMENT.read_text(encoding="utf-8")
    return [Block(language, path, body) for _, language, path, body in BLOCK.findall(text)]


def apply(workspace: Path, block: Block) -> None:
    """Writes a whole file, or puts the lines of a diff where its context is."""
    target = workspace / block.path
    if block.language != "diff":
        assert not target.exists(), f"{block.path} is there already"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.text, encoding="utf-8")
        return
    lines = block.text.splitlines()
    before = "".join(f"{line[1:]}\n" for line in lines if line.startswith(" "))
    after = "".join(f"{line[1:]}\n" for line in lines)
    text = "\n" + target.read_text(encoding="utf-8")
    assert text.count("\n" + before) == 1, f"the context is not once in {block.path}: {before}"
    target.write_text(text.replace("\n" + before, "\n" + after)[1:], encoding="utf-8")


def cargo(workspace: Path, *arguments: str) -> None:
    settings = {"OPT_LEVEL": "1", "DEBUG": "0"}
    profiles = {f"CARGO_PROFILE_{p}_{key}": value for p in ("DEV", "TEST") for key, value in settings.items()}
    done = subprocess.run(
        ["cargo", *arguments, "--locked", "--quiet"],
        cwd=workspace,
        env={**os.environ, **profiles, "CARGO_TARGET_DIR": str(TARGET), "RUSTFLAGS": "-D warnings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_the_document_leads_to_a_running_law() -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    with (TARGET / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        follow(TARGET / "workspace")


def follow(workspace: Path) -> None:
    shutil.rmtree(workspace, ignore_errors=True)
    workspace.mkdir()
    for name in WORKSPACE:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, workspace / name)
        else:
            shutil.copy2(source, workspace / name)
    for block in blocks():
        apply(workspace, block)

    cargo(workspace, "test", "--package", "flowstamp-sim", "--test", "even")
    cargo(workspace, "build", "--package", "flowstamp-sim", "--example", "run")
    scenario = tomllib.loads((workspace / "even.toml").read_text(encoding="utf-8"))
    printed = subprocess.run(
        # Statistics of the last 4 s, in which nobody joins.
        [TARGET / "debug/examples/run", "even.toml", "warmup=16s"],
        cwd=workspace,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    summary = json.loads(printed)
    flows = summary["groups"]["even"]
    assert flows["flows"] == scenario["flows"][0]["count"] == 5
    assert flows["jain_index"] > 0.999
    assert summary["links"]["bottleneck"]["utilization"] == pytest.approx(0.95, abs=0.01)  # eta


def test_a_law_is_one_file_and_one_line() -> None:
    """What the document asks for: a law, its registration, a test, a page; nothing else is touched."""
    code = {block.path: block for block in blocks() if block.path.startswith("crates/")}
    assert {path: block.language for path, block in code.items()} == {
        "crates/flowstamp-laws/src/even.rs": "rust",
        "crates/flowstamp-laws/src/lib.rs": "diff",
        "crates/flowstamp-laws/src/registry.rs": "diff",
        "crates/flowstamp-sim/tests/even.rs": "rust",
    }

    def added(name: str) -> list[str]:
        lines = code[f"crates/flowstamp-laws/src/{name}"].text.splitlines()
        return [line for line in lines if line.startswith("+") and "///" not in line]

    assert len(added("lib.rs")) == 1
    assert len(added("registry.rs")) == 1
