# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Examples in the package. `flowstamp examples DIR` copies them into a folder for editing."""

from __future__ import annotations

import contextlib
import shutil
import sys
from pathlib import Path

from flowstamp.errors import OutputError
from flowstamp.files import check_folder

SHIPPED = Path(__file__).parent / "data"
"""Folder of the examples; in a checkout, a link to `examples/`."""
KINDS = (".csv", ".down", ".py", ".toml", ".txt")


def files() -> list[Path]:
    """Returns the examples and their input files, as sorted paths relative to `SHIPPED`."""
    return sorted(path.relative_to(SHIPPED) for path in SHIPPED.rglob("*") if path.suffix in KINDS and path.is_file())


def next_commands() -> str:
    """Returns a text that shows commands for the examples."""
    # With pipx, `python3` is not the interpreter that has the package; show the full path then.
    named = shutil.which("python3")
    python = "python3" if named and Path(named).parent == Path(sys.executable).parent else sys.executable
    return f"""\
in that folder, for example:
  flowstamp run five.toml
  flowstamp compare cellular.toml --protocols xcp,sack,sack+red
  {python} graph.py
and on Linux, as root and with the program flowstamp-linux:
  flowstamp compare labs/pages.toml --protocols rcp,xcp,cubic,bbr"""


def write(folder: Path) -> list[Path]:
    """Copies all examples into a new or empty folder and returns their paths.

    Raises `OutputError` if the folder is not empty or cannot be written; then no example stays there.
    """
    check_folder(folder)
    existed = folder.is_dir()
    if existed and any(folder.iterdir()):
        raise OutputError(f"{folder}: is not empty; give a folder that is new or empty")
    written: list[Path] = []
    try:
        for name in files():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            written.append(target)
            shutil.copyfile(SHIPPED / name, target)
    except BaseException as error:
        _take_back(folder, written, existed)
        if isinstance(error, OSError):
            raise OutputError(f"{folder}: cannot be written: {error.strerror or error}") from None
        raise
    return written


def _take_back(folder: Path, written: list[Path], existed: bool) -> None:
    """Removes the written files and the folders that this leaves empty."""
    for path in written:
        with contextlib.suppress(OSError):
            path.unlink()
    inner = sorted({path.parent for path in written}, key=lambda path: -len(path.parts))
    for one in [*inner, folder]:
        if one != folder or not existed:
            with contextlib.suppress(OSError):
                one.rmdir()
