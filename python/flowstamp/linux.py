# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The program `flowstamp-linux`, which does what touches the kernel: `flowstamp host`, `router`, `lab`."""

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
# What the program does that `flowstamp` offers as its own.
COMMANDS = ("host", "router", "lab")


class NotHereError(FlowstampError):
    """The machine, or what is built on it, cannot do what was asked."""


def program() -> str | None:
    """Where the program is: named by FLOWSTAMP_LINUX, beside this Python, or on the path."""
    beside = Path(sys.executable).with_name(PROGRAM)
    named = os.environ.get("FLOWSTAMP_LINUX")
    if named:
        return named
    return str(beside) if beside.exists() else shutil.which(PROGRAM)


def missing() -> str:
    """Why there is no program, in one line."""
    if sys.platform != "linux":
        return f"this is {sys.platform}, and the program {PROGRAM} is for Linux"
    return f"the program {PROGRAM} is not here; install its Debian package, or in a checkout say make linux"


def required(command: str) -> str:
    """Where the program is that a command needs."""
    path = program()
    if path is None:
        raise NotHereError(f"{command}: {missing()}")
    return path


def call(command: str, arguments: Sequence[str]) -> NoReturn:
    """Becomes a command of the program: terminal, signals and exit code are its own."""
    path = required(command)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(path, [path, command, *arguments])
    except OSError as error:
        raise NotHereError(f"{command}: {path}: {error.strerror}") from None


def features() -> list[dict[str, Any]] | None:
    """What the kernel has of what the commands need; `None` where the program is not there or does not answer."""
    path = program()
    if path is None:
        return None
    try:
        told = subprocess.run([path, "doctor", "--json"], capture_output=True, text=True, timeout=30, check=False)
        found: list[dict[str, Any]] = json.loads(told.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return found
