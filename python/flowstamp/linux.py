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
from typing import Any

from flowstamp.errors import FlowstampError

PROGRAM = "flowstamp-linux"
# Commands of the program that `flowstamp` also offers.
COMMANDS = ("host", "router", "lab")
HELP = {
    "host": (
        "Make TCP of this host, namespace or cgroup obey the feedback that routers stamp into packets",
        {
            "enable": "Register the congestion controls and attach the TCP option. Repeating it changes nothing",
            "disable": "Remove links, pins and defaults. Connections continue with the kernel's own TCP",
            "status": "Show the enabled laws, and counts of events that flows have met",
        },
    ),
    "router": (
        "Stamp feedback into the packets that an interface sends",
        {
            "attach": "Stamp the packets that an interface sends, or write SCONE's advice into them, until `detach`. "
            "The program stays when the command ends",
            "detach": "Stop stamping and remove everything that `attach` made",
            "status": "Show the routers' interfaces and their laws' variables. "
            "--metrics serves Prometheus until stopped",
            "police": "Test whether heavy flows obey, and isolate those that do not",
            "share": "Adapt the weights of an interface's classes, and the law's share of the link, until stopped",
            "bench": "Measure the cost of a packet in ns, with BPF_PROG_RUN",
            "laws": "List the laws that the kernel supports",
        },
    ),
    "lab": (
        "Run real applications over an emulated path between network namespaces",
        {
            "run": "Run a lab. Exit code 3: the machine was too busy, and the results are invalid",
            "scenario": "Print the simulator's scenario of the same network and flows",
            "clean": "Remove the remains of a killed lab",
        },
    ),
}
"""The commands' help, for machines without the program. A test compares it with docs/reference/linux.md."""


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
    return f"the program {PROGRAM} is not here; install its Debian package, or run make linux in a checkout"


def required(command: str) -> str:
    """Returns the program's path for a command. Raises `NotHereError` if it is missing."""
    path = program()
    if path is None:
        raise NotHereError(f"{command}: {missing()}")
    return path


def help_of(command: str) -> str:
    """Returns the program's help for a command, without its options."""
    about, subcommands = HELP[command]
    width = max(map(len, subcommands))
    lines = "".join(f"  {name:{width}}  {what}\n" for name, what in subcommands.items())
    return f"{about}\n\nUsage: flowstamp {command} <COMMAND>\n\nCommands:\n{lines}"


def call(command: str, arguments: Sequence[str]) -> None:
    """Replaces this process with a command of the program, which then owns terminal, signals and exit code.

    Without the program, prints the command's help if that is all that is asked.
    """
    if program() is None and {"-h", "--help"}.intersection(arguments[:1]):
        sys.stdout.write(f"{help_of(command)}\nNone of these can run: {missing()}.\n")
        return
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
