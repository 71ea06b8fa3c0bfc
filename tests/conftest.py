# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the tests share: a small scenario and a way to run the command."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
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
