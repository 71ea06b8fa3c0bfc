# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`docs/adding-a-law.md` is followed step by step in a copy of the workspace."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs/adding-a-law.md"
WORKSPACE = (
    *("Cargo.toml", "Cargo.lock", ".cargo", "crates", "python", "figures", "docs", "tests", "pyproject.toml"),
    *(
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSES",
        "examples",
        "tools",
        "fuzz",
    ),
)
# The tests that a new law can break, and those that a new figure can break.
RUST_TESTS = ("golden", "engine", "defaults", "batches")
PYTHON_TESTS = ("docs", "api", "figures", "expected", "gallery", "bad_input", "lab")
FIGURE_TESTS = ("figures", "expected", "gallery")
# A test of the kernel would wait until this test ends (`turn` in conftest.py).
NEITHER_LONG_NOR_ALONE = "not long and not kernel"
# Dependencies are built once and kept; later runs build laws and simulator only. The copy of the workspace stays at one
# path, because cargo builds a crate at another path anew.
TARGET = ROOT / "target/adding-a-law"
GOLDEN = "crates/flowstamp-sim/tests/golden"

STEP = re.compile(
    r"^```\{literalinclude\} (?P<source>\S+)\n:caption: (?P<copy>\S+)\n"
    r"|^```\{code-block\} (?P<language>\w+)\n:caption: (?P<path>\S+)\n\n(?P<text>.*?)^```$"
    r"|^```console\n(?P<commands>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Change:
    """A file that the document adds, or lines that it adds to one."""

    path: str
    text: str
    is_diff: bool


@dataclass(frozen=True)
class Command:
    """A line of a console."""

    line: str


def steps() -> Iterator[Change | Command]:
    """The document's steps, in its order."""
    for step in STEP.finditer(DOCUMENT.read_text(encoding="utf-8")):
        if step["source"]:
            yield Change(step["copy"], (DOCUMENT.parent / step["source"]).read_text(encoding="utf-8"), is_diff=False)
        elif step["path"]:
            yield Change(step["path"], step["text"], is_diff=step["language"] == "diff")
        else:
            yield from (Command(line.removeprefix("$ ")) for line in step["commands"].splitlines())


def apply(workspace: Path, change: Change) -> None:
    """Writes a whole file, or puts the lines of a diff where its context is."""
    target = workspace / change.path
    if not change.is_diff:
        assert not target.exists(), f"{change.path} is there already"
        target.write_text(change.text, encoding="utf-8")
        return
    lines = change.text.splitlines()
    before = "".join(f"{line[1:]}\n" for line in lines if line.startswith(" "))
    after = "".join(f"{line[1:]}\n" for line in lines)
    text = "\n" + target.read_text(encoding="utf-8")
    assert text.count("\n" + before) == 1, f"the context is not once in {change.path}: {before}"
    target.write_text(text.replace("\n" + before, "\n" + after)[1:], encoding="utf-8")


def apply_below(workspace: Path) -> None:
    """Registers both laws again, under other names at the end of their lists: a law's place there must not matter."""
    for law, line in (
        ("ramp", 'RampBelow "ramp-below" Rcp ramp::Sender => Rcp;'),
        ("even", 'EvenBelow "even-below" Rcp even::Router;'),
    ):
        registry = {"ramp": "senders", "even": "routers"}[law]
        file = workspace / f"crates/flowstamp-laws/src/registry/{registry}.rs"
        before, start, lists = file.read_text(encoding="utf-8").partition(f"in_this_build! {{ {registry}\n")
        lists = lists.replace("    }\n}\n", f"        /// The same law.\n        {line}\n    }}\n}}\n", 1)
        file.write_text(before + start + lists, encoding="utf-8")
        page = workspace / f"docs/models/{law}.md"
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(f"% laws: {law}\n", f"% laws: {law} {law}-below\n"), encoding="utf-8")


def run(workspace: Path, *command: str, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=workspace, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def cargo(workspace: Path, command: str, *arguments: str, **environment: str) -> None:
    settings = {"OPT_LEVEL": "1", "DEBUG": "0"}
    profiles = {f"CARGO_PROFILE_{p}_{key}": value for p in ("DEV", "TEST") for key, value in settings.items()}
    flags = {"RUSTFLAGS": "-D warnings", "RUSTDOCFLAGS": "-D warnings", "CARGO_TARGET_DIR": str(TARGET)}
    run(workspace, "cargo", command, "--locked", "--quiet", *arguments, **profiles, **flags, **environment)


def python(workspace: Path, *arguments: str) -> str:
    environment = {"PYTHONPATH": str(workspace / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    return run(workspace, sys.executable, *arguments, **environment)


def pytest_of(workspace: Path, *arguments: str) -> None:
    python(workspace, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", *arguments)


def files_of(tests: Iterable[str]) -> list[str]:
    return [f"tests/test_{name}.py" for name in tests]


def build(workspace: Path) -> None:
    cargo(workspace, "build", "--package", "flowstamp-py")
    built = next(path for path in (TARGET / "debug").glob("*_flowstamp.*") if path.suffix in (".so", ".dylib"))
    shutil.copy2(built, workspace / "python/flowstamp/_flowstamp.abi3.so")


def run_tests(workspace: Path) -> None:
    cargo(workspace, "test", "--package", "flowstamp-laws", "--all-features", "--lib")
    cargo(workspace, "test", "--package", "flowstamp-sim", *(word for name in RUST_TESTS for word in ("--test", name)))
    pytest_of(workspace, "-m", NEITHER_LONG_NOR_ALONE, *files_of(PYTHON_TESTS))


def lint(workspace: Path) -> None:
    for law in ("ramp", "even"):
        run(workspace, "rustfmt", "--check", "--edition", "2024", f"crates/flowstamp-laws/src/{law}.rs")
    for command in (("clippy",), ("doc", "--no-deps")):
        cargo(workspace, *command, "--package", "flowstamp-laws", "--all-features")
    run(workspace, str(Path(sys.executable).with_name("typos")), "crates/flowstamp-laws/src", "docs")
    python(workspace, "tools/check_structure.py")


def docs(workspace: Path) -> None:
    """The site, with warnings as errors and its links followed; without pictures and notebooks."""
    pytest_of(workspace, "-m", "long", "-k", "the_site", "tests/test_docs.py")


def bless(workspace: Path) -> None:
    """Records the results of the new laws, and changes no other recorded result."""
    cargo(workspace, "test", "--package", "flowstamp-sim", "--test", "golden", FLOWSTAMP_ACCEPT="1")
    for name in ("digests.txt", "laws.txt", "table.txt"):
        before, after = (set((root / GOLDEN / name).read_text().splitlines()) for root in (ROOT, workspace))
        laws = {line.split()[0] for line in after ^ before}
        assert all("ramp" in law or "even" in law for law in laws), f"{name}: {laws}"
    cargo(workspace, "test", "--package", "flowstamp-sim", "--test", "golden", "--", "--include-ignored")


MAKE = {"build": build, "test": run_tests, "lint": lint, "docs": docs, "bless": bless}
"""Runs in place of each target of `make` the part of it that a law can break."""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_the_document_leads_to_running_laws() -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    with (TARGET / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        follow(TARGET / "workspace")


def copy_to(workspace: Path) -> None:
    shutil.rmtree(workspace, ignore_errors=True)
    workspace.mkdir()
    for name in WORKSPACE:
        source = ROOT / name
        if source.is_dir():
            left_out = shutil.ignore_patterns("*.so", "_build", "target")
            shutil.copytree(source, workspace / name, symlinks=True, ignore=left_out)
        else:
            shutil.copy2(source, workspace / name)


def follow(workspace: Path) -> None:
    copy_to(workspace)
    begun = False
    for step in steps():
        if isinstance(step, Change):
            apply(workspace, step)
            continue
        if not begun:
            apply_below(workspace)
            begun = True
        program, *arguments = step.line.split()
        if program == "make":
            for target in arguments:
                MAKE[target](workspace)
        elif arguments[0] == "run":
            check(json.loads(python(workspace, "-m", "flowstamp", *arguments, "--json", "--out", "out")))
        else:
            figure = json.loads(python(workspace, "-m", "flowstamp", *arguments, "--json", "--out", "out/figures"))
            assert [claim["status"] for claim in figure["figures"][0]["claims"]] == ["holds"]
    pytest_of(workspace, "-m", NEITHER_LONG_NOR_ALONE, *files_of(FIGURE_TESTS))


def check(summary: dict[str, Any]) -> None:
    """The statistics are those of the last 4 s, in which no flow joins."""
    flows = summary["groups"]["ramp"]
    assert flows["flows"] == 5
    assert flows["jain_index"] > 0.999
    assert summary["links"]["bottleneck"]["utilization"] == pytest.approx(0.95, abs=0.01)  # eta


def test_each_law_is_three_files() -> None:
    """Up to the first command, the document adds each law, its line and its page, and a scenario to try them."""
    before = takewhile(lambda step: isinstance(step, Change), steps())
    changes = [step for step in before if isinstance(step, Change)]
    assert {change.path: change.is_diff for change in changes} == {
        "crates/flowstamp-laws/src/ramp.rs": False,
        "crates/flowstamp-laws/src/even.rs": False,
        "crates/flowstamp-laws/src/registry/senders.rs": True,
        "crates/flowstamp-laws/src/registry/routers.rs": True,
        "docs/models/ramp.md": False,
        "docs/models/even.md": False,
        "joining.toml": False,
    }
    for change in changes:
        if change.is_diff:
            added = [line for line in change.text.splitlines() if line.startswith("+") and "///" not in line]
            assert len(added) == 1, change.path


def test_the_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = [step.line.split() for step in steps() if isinstance(step, Command)]
    targets = {target for program, *arguments in commands if program == "make" for target in arguments}
    assert targets == MAKE.keys()
    assert all(re.search(f"^{target}:", makefile, re.MULTILINE) for target in targets)
