# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Calls the program `flowstamp-quic`, which implements the command `quic`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from flowstamp.errors import FlowstampError

PROGRAM = "flowstamp-quic"
MISSING = f"the program {PROGRAM} is not here; run make quic in a checkout"

HELP = f"""Send files by HTTP/3 under the simulator's laws, without root

Usage: flowstamp quic <COMMAND>

The commands are serve, get, video, path and laws. They need the program {PROGRAM}, which is not installed.
To build it, run make quic in a checkout.
"""
"""The help without the program."""


class NotHereError(FlowstampError):
    """The machine lacks the program."""


def program() -> str | None:
    """Returns the program's path: FLOWSTAMP_QUIC, else beside this Python, else from PATH. None if not found."""
    named = os.environ.get("FLOWSTAMP_QUIC")
    beside = Path(sys.executable).with_name(PROGRAM)
    if named:
        return named
    return str(beside) if beside.exists() else shutil.which(PROGRAM)


def call(arguments: Sequence[str]) -> None:
    """Replaces this process with the program, which then owns terminal, signals and exit code.

    Without the program, prints a short help if that is all that is asked.
    """
    path = program()
    if path is None and {"-h", "--help"}.intersection(arguments[:1]):
        sys.stdout.write(HELP)
        return
    if path is None:
        raise NotHereError(f"quic: {MISSING}")
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(path, [path, "quic", *arguments])
    except OSError as error:
        raise NotHereError(f"quic: {path}: {error.strerror}") from None
