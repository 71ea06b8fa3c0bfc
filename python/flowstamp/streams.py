# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Standard streams as a command may find them: closed, full, or with nobody at the other end."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

CLOSED = "standard output is closed; send it to a file or a pipe, or to /dev/null"


def prepare() -> bool:
    """Opens what the caller has closed, or the next file that is opened would be taken for it.

    False if standard output was closed.
    """
    closed = [number for number in range(3) if not _is_open(number)]
    for number in closed:
        # The lowest number that is free is given out: this one.
        os.open(os.devnull, os.O_RDWR)
        if number == 2:
            sys.stderr = _stream(2)
    if 1 in closed:
        sys.stdout = _stream(1)
    return 1 not in closed


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _stream(number: int) -> TextIO:
    return open(number, "w", encoding="utf-8", closefd=False)


def tell(line: str) -> None:
    """Says something on standard error. If that cannot be, the exit code says it alone."""
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except OSError:
        _forget(2)


def output_failed(error: OSError) -> None:
    """Says that standard output, or the file that the error names, could not be written."""
    _forget(1)
    tell(f"flowstamp: {error.filename or 'standard output'}: {error.strerror or error}")


def _forget(number: int) -> None:
    """What a stream still holds goes nowhere: Python would complain of it once more when it flushes at exit."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
