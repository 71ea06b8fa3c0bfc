# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Shared by `crosscheck.py`, `bench.py` and others: builds and runs the engine without Python, and writes a part of a
document between its markers.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

sys.path.insert(0, str(ROOT / "tools" / "ns2"))


class EngineError(RuntimeError):
    """The engine could not be built, or refused a scenario."""


@dataclass(frozen=True)
class Run:
    """A finished process of the engine."""

    summary: dict[str, Any]
    cpu_s: float  # of the process, user and system


def build(example: str = "run", root: Path = ROOT, target: Path | None = None) -> Path:
    """Builds `crates/flowstamp-sim/examples/<example>.rs` of the tree `root` with cargo, into `target`; returns the
    program. The release profile is that of `root`.
    """
    command = ["cargo", "build", "--release", "-p", "flowstamp-sim", "--example", example]
    environment = dict(os.environ)
    if target is not None:
        environment["CARGO_TARGET_DIR"] = str(target)
    try:
        done = subprocess.run(
            [*command, "--message-format=json-render-diagnostics"],
            cwd=root,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise EngineError("cargo was not found: install Rust (https://rustup.rs)") from error
    if done.returncode != 0:
        raise EngineError(f"`{' '.join(command)}` failed; its messages are above")
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("target", {}).get("name") == example and message.get("executable"):
            return Path(message["executable"])
    raise EngineError(f"cargo named no program for `{' '.join(command)}`")


def run(program: Path, scenario: Path | str, *sets: str) -> Run:
    """Runs a scenario: a file, or its text. `sets` are `key=value`."""
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(scenario, str):
            path = Path(folder) / "scenario.toml"
            path.write_text(scenario)
        else:
            path = scenario
        out, err = Path(folder) / "out", Path(folder) / "err"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            child = subprocess.Popen([program, path, *sets], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
            try:
                _, status, usage = os.wait4(child.pid, 0)
            except BaseException:
                child.kill()
                raise
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise EngineError(f"{program.name} left with code {child.returncode}: {err.read_text().strip()}")
        return Run(json.loads(out.read_text()), usage.ru_utime + usage.ru_stime)


def commit() -> str:
    """The commit that was built, with `+` if files of the engine differ from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    name = git("rev-parse", "--short", "HEAD")
    changed = git("status", "--porcelain", "--", "crates", "Cargo.toml", "Cargo.lock")
    return f"{name or 'unknown'}{'+' if changed else ''}"


def machine() -> str:
    """Processor, cores, memory, system and compiler, in one line."""

    def first(path: str, key: str) -> str:
        try:
            lines = Path(path).read_text().splitlines()
        except OSError:
            return ""
        return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), "")

    cpu = first("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()
    virtual = "hypervisor" in first("/proc/cpuinfo", "flags").split()
    memory = first("/proc/meminfo", "MemTotal").split()
    parts = [f"{cpu}{' (virtual machine)' if virtual else ''}", f"{os.cpu_count()} cores"]
    if memory:
        parts.append(f"{int(memory[0]) / 2**20:.0f} GiB")
    parts.append(f"{platform.system()} {platform.release()}")
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=False)
    parts.append(rustc.stdout.strip() or "rustc unknown")
    return ", ".join(parts)


def write_section(document: Path, name: str, body: str, title: str) -> None:
    """Puts `body` between `<!-- name:begin -->` and `<!-- name:end -->`; the rest of the document stays."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    text = document.read_text() if document.exists() else f"# {title}\n"
    section = f"{begin}\n{body.strip()}\n{end}"
    head, found, rest = text.partition(begin)
    if found:
        _, closed, tail = rest.partition(end)
        if not closed:
            raise EngineError(f"{document}: {begin} has no {end}")
        text = head + section + tail
    else:
        text = f"{text.rstrip()}\n\n{section}\n"
    document.parent.mkdir(parents=True, exist_ok=True)
    document.write_text(text)
