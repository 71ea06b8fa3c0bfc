# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Calls the program `flowstamp-linux`, which implements the commands that need the kernel: `host`, `router`, `lab`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from flowstamp.errors import FlowstampError

PROGRAM = "flowstamp-linux"
# Commands of the program that `flowstamp` also offers.
COMMANDS = ("host", "router", "lab")


class NotHereError(FlowstampError):
    """The machine lacks the program or a kernel feature."""


def program() -> str | None:
    """Returns the program's path: FLOWSTAMP_LINUX, else beside this Python, else from PATH. None if not found."""
    beside = Path(sys.executable).with_name(PROGRAM)
    named = os.environ.get("FLOWSTAMP_LINUX")
    if named:
        return named
    return str(beside) if beside.exists() else shutil.which(PROGRAM)


def missing() -> str:
    """Returns one line that says why the program is missing."""
    if sys.platform != "linux":
        return f"this is {sys.platform}, and the program {PROGRAM} is for Linux"
    return f"the program {PROGRAM} is not here; install its Debian package, or in a checkout say make linux"


def required(command: str) -> str:
    """Returns the program's path for a command. Raises `NotHereError` if it is missing."""
    path = program()
    if path is None:
        raise NotHereError(f"{command}: {missing()}")
    return path


def call(command: str, arguments: Sequence[str]) -> NoReturn:
    """Replaces this process with a command of the program, which then owns terminal, signals and exit code."""
    path = required(command)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(path, [path, command, *arguments])
    except OSError as error:
        raise NotHereError(f"{command}: {path}: {error.strerror}") from None


def features() -> list[dict[str, Any]] | None:
    """Returns the kernel features that the commands need. None if the program is missing or does not answer."""
    path = program()
    if path is None:
        return None
    try:
        told = subprocess.run([path, "doctor", "--json"], capture_output=True, text=True, timeout=30, check=False)
        found: list[dict[str, Any]] = json.loads(told.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return found
