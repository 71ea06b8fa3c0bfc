# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The document that leads from equations to a running law is followed step by step in a copy of the workspace."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs/adding-a-law.md"
WORKSPACE = (
    *("Cargo.toml", "Cargo.lock", ".cargo", "crates", "python", "figures", "docs", "tests", "pyproject.toml"),
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSES", "examples", "tools", "fuzz"),
)
# The tests that may have something to say of a law or a figure that was added.
TESTS = (
    "tests/test_docs.py",
    "tests/test_figures.py",
    "tests/test_expected.py",
    "tests/test_gallery.py",
    "tests/test_api.py",
)
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


def python(workspace: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=workspace,
        env={**os.environ, "PYTHONPATH": str(workspace / "python"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
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
            left_out = shutil.ignore_patterns("*.so", "_build", "target")
            shutil.copytree(source, workspace / name, symlinks=True, ignore=left_out)
        else:
            shutil.copy2(source, workspace / name)
    for block in blocks():
        apply(workspace, block)

    tests = ("even", "golden", "engine", "defaults")
    cargo(workspace, "test", "--package", "flowstamp-sim", *(word for test in tests for word in ("--test", test)))
    # Rates that the law's own numbers give, from the command, with what it captures.
    cargo(workspace, "build", "--package", "flowstamp-py")
    built = next(path for path in (TARGET / "debug").glob("*_flowstamp.*") if path.suffix in (".so", ".dylib"))
    shutil.copy2(built, workspace / "python/flowstamp/_flowstamp.abi3.so")
    scenario = tomllib.loads((workspace / "even.toml").read_text(encoding="utf-8"))
    # Statistics of the last 4 s, in which nobody joins.
    printed = python(
        *(workspace, "-m", "flowstamp", "run", "even.toml", "--json", "--out", "out"),
        *("--set", "warmup=16s", "--set", "capture.packets=1000"),
    )
    summary = json.loads(printed)
    flows = summary["groups"]["even"]
    assert flows["flows"] == scenario["flows"][0]["count"] == 5
    assert flows["jain_index"] > 0.999
    assert summary["links"]["bottleneck"]["utilization"] == pytest.approx(0.95, abs=0.01)  # eta
    numbers = {frame[14 + 9] for frame in captured((workspace / "out/trace.pcapng").read_bytes())}
    assert numbers == {252}, "the header's number of IP"

    for form in ((), ("--fast",)):
        figure = ("-m", "flowstamp", "figure", "even", "--accept", *form, "--out", "out/figures")
        document = json.loads(python(workspace, *figure, "--json"))
        [claim] = document["figures"][0]["claims"]
        assert claim["status"] == "holds", claim

    python(workspace, "docs/make_reference.py")
    python(workspace, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "-m", "not long", *TESTS)
    python(workspace, "tools/check_structure.py")


def captured(pcapng: bytes) -> Iterator[bytes]:
    """The frames of a capture: the enhanced packet blocks, type 6."""
    at = 0
    while at < len(pcapng):
        kind, length = struct.unpack_from("<II", pcapng, at)
        if kind == 6:
            yield pcapng[at + 28 : at + 28 + struct.unpack_from("<I", pcapng, at + 20)[0]]
        at += length


def test_a_law_is_a_file_and_a_line_in_each_list() -> None:
    """What the document asks for: a law, its registration, a codec, a test, a page; nothing else is touched."""
    code = {block.path: block for block in blocks() if block.path.startswith("crates/")}
    assert {path: block.language for path, block in code.items()} == {
        "crates/flowstamp-laws/src/even.rs": "rust",
        "crates/flowstamp-laws/src/lib.rs": "diff",
        "crates/flowstamp-laws/src/registry/headers.rs": "diff",
        "crates/flowstamp-laws/src/registry/senders.rs": "diff",
        "crates/flowstamp-laws/src/registry/routers.rs": "diff",
        "crates/flowstamp-wire/src/even.rs": "rust",
        "crates/flowstamp-wire/src/lib.rs": "diff",
        "crates/flowstamp-wire/src/codec.rs": "diff",
        "crates/flowstamp-sim/tests/even.rs": "rust",
    }
    for path, block in code.items():
        if block.language == "diff":
            added = [line for line in block.text.splitlines() if line.startswith("+") and "///" not in line]
            assert len(added) == 1, path
