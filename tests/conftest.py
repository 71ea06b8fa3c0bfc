# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Shared parts of the tests: a small scenario, a way to run the command, two markers, and the list of skipped tests."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

SCENARIO = """\
name = "three"
duration = "2s"

[dumbbell]
rate = "20Mbps"
rtt = "40ms"
router = "xcp"

[[flows]]
name = "long"
law = "xcp"
count = 3
"""

Command = Callable[..., subprocess.CompletedProcess[str]]

MARKERS = (
    "long: takes more than two seconds of CPU time; `make test` leaves it out, `make test-long` runs it",
    "kernel: watches flows on this machine's kernel; no other test runs beside it",
)
RUNNING = Path(tempfile.gettempdir()) / f"flowstamp-tests-{os.getuid()}.lock"


def pytest_configure(config: pytest.Config) -> None:
    """Registers the markers here and not in pyproject.toml, because tools/check-release.sh copies only this file."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts tests of the kernel last, so that no worker waits for its turn while there is other work."""
    items.sort(key=lambda item: item.get_closest_marker("kernel") is not None)


@pytest.fixture(autouse=True)
def turn(request: pytest.FixtureRequest) -> Iterator[None]:
    """Lets tests run beside one another, except those of the kernel, which run alone."""
    alone = request.node.get_closest_marker("kernel") is not None
    with RUNNING.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def command_line(*arguments: object) -> list[str]:
    """The command with these arguments, as this interpreter runs it."""
    return [sys.executable, "-m", "flowstamp", *map(str, arguments)]


def heed_interrupts() -> None:
    """Run in the child: a shell's background jobs ignore SIGINT, and so would theirs."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A file with a small XCP scenario."""
    path = tmp_path / "three.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def flowstamp(tmp_path: Path) -> Command:
    """Runs the command in a folder of its own and returns what it said."""

    def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command_line(*arguments), capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False, **options
        )

    return run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says what was skipped, once per reason: by these tests, and under `make test` by those in Rust before them."""
    reports = terminalreporter.stats.get("skipped", ())
    python = (("tests", report.longrepr[2].removeprefix("Skipped: ")) for report in reports)
    listed = os.environ.get("FLOWSTAMP_SKIPPED")
    beside = Path(f"{listed}.rust")  # empty for as long as tests in Rust run beside these
    while listed and beside.exists() and not beside.read_text(encoding="utf-8"):
        time.sleep(0.2)
    rust = _listed(Path(listed)) if listed and Path(listed).exists() else ()
    lines = skipped_lines([*python, *rust])
    if lines:
        terminalreporter.section("skipped")
        for line in lines:
            terminalreporter.write_line(line)


def _listed(path: Path) -> Iterator[tuple[str, str]]:
    """Where and why, for each test in Rust that was skipped: a property says it for each of its cases."""
    for line in dict.fromkeys(path.read_text(encoding="utf-8").splitlines()):
        where, test, reason = line.split("\t")
        yield (f"all of {where}" if test == "*" else where), reason


def skipped_lines(skipped: Iterable[tuple[str, str]]) -> list[str]:
    """One line for each reason, with how many tests of which parts it kept from running."""
    parts: dict[str, Counter[str]] = {}
    for where, reason in skipped:
        parts.setdefault(reason, Counter())[where] += 1
    return [
        f"{reason}: {', '.join(w if w.startswith('all of') else f'{n} in {w}' for w, n in sorted(found.items()))}"
        for reason, found in sorted(parts.items())
    ]
