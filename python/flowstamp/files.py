# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Atomic file writing: a file appears under its name only when it is complete."""

from __future__ import annotations

import contextlib
import os
from glob import escape
from pathlib import Path
from typing import BinaryIO

from flowstamp.errors import OutputError


def write_whole(path: Path, content: str | bytes) -> Path:
    """Writes a file under a temporary name, syncs it, and renames it. Creates the folders above it.

    Raises `OutputError` if that fails.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(path)
        try:
            with temporary.open("wb") as file:
                _lock(file)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None
    return path


def _lock(file: BinaryIO) -> bool:
    """Locks an open file until it is closed. Returns False if another process holds the lock."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _remove_abandoned(path: Path) -> None:
    """Removes temporary files that killed processes left. A running process holds a lock on its own."""
    for other in path.parent.glob(f".{escape(path.name)}.*.tmp"):
        if not other.name[len(path.name) + 2 : -4].isdecimal() or not other.is_file():
            continue
        with contextlib.suppress(OSError), other.open("rb") as file:
            if _lock(file):
                other.unlink(missing_ok=True)


def check_folder(folder: Path) -> None:
    """Raises `OutputError`, before any work is done, if a folder cannot be created or written."""
    existing = folder
    while not os.path.lexists(existing) and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise OutputError(f"{existing}: exists and is not a folder; give the path of a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise OutputError(f"{existing}: cannot be written: Permission denied")
