# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Handling of standard streams that are closed, full, or a pipe without a reader."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

CLOSED = "standard output is closed; send it to a file or a pipe, or to /dev/null"


def prepare() -> bool:
    """Reopens closed standard streams on the null device, because the next opened file would take their descriptors.

    Returns False if standard output was closed.
    """
    closed = [number for number in range(3) if not _is_open(number)]
    for number in closed:
        # The system gives the lowest free descriptor, which is this one.
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
    """Writes a line to standard error. If that fails, the exit code alone reports the problem."""
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except OSError:
        _forget(2)


def output_failed(error: OSError) -> None:
    """Reports that standard output, or the file that the error names, could not be written."""
    _forget(1)
    tell(f"flowstamp: {error.filename or 'standard output'}: {error.strerror or error}")


def _forget(number: int) -> None:
    """Discards what a stream still buffers; otherwise Python's flush at exit would report the error again."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
