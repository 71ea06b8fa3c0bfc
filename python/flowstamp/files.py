# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Files that appear under their name only when they are whole."""

from __future__ import annotations

import contextlib
import os
from glob import escape
from pathlib import Path
from typing import BinaryIO

from flowstamp.errors import OutputError


def write_whole(path: Path, content: str | bytes) -> Path:
    """Writes a file, and the folders above it: under a temporary name first, synced, then renamed."""
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
    """Locks a file as long as it is open; false if another process has."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _remove_abandoned(path: Path) -> None:
    """Removes what killed processes left of this file: one that is still at work holds a lock on its own."""
    for other in path.parent.glob(f".{escape(path.name)}.*.tmp"):
        if not other.name[len(path.name) + 2 : -4].isdecimal() or not other.is_file():
            continue
        with contextlib.suppress(OSError), other.open("rb") as file:
            if _lock(file):
                other.unlink(missing_ok=True)


def check_folder(folder: Path) -> None:
    """Refuses, before any work is done, a folder that could not be made or written."""
    existing = folder
    while not os.path.lexists(existing) and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise OutputError(f"{existing}: exists and is not a folder; give the path of a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise OutputError(f"{existing}: cannot be written: Permission denied")
