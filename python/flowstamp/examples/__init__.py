# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The examples that come with the package: `flowstamp examples DIR` writes them where they can be changed."""

from __future__ import annotations

import contextlib
import shutil
import sys
from pathlib import Path

from flowstamp.errors import OutputError
from flowstamp.files import check_folder

SHIPPED = Path(__file__).parent / "data"
"""In a checkout a link to its `examples/`."""
KINDS = (".csv", ".down", ".py", ".toml", ".txt")


def files() -> list[Path]:
    """The examples and what they read, by their names in the folder."""
    return sorted(path.relative_to(SHIPPED) for path in SHIPPED.rglob("*") if path.suffix in KINDS and path.is_file())


def next_commands() -> str:
    """What to do with them."""
    # Under pipx and the like the package is known to a Python that nobody calls by its name.
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
    """Copies them all into a folder that is new or empty; it gets all of them or none."""
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
    """Removes what was made of files, and the folders that are empty then."""
    for path in written:
        with contextlib.suppress(OSError):
            path.unlink()
    inner = sorted({path.parent for path in written}, key=lambda path: -len(path.parts))
    for one in [*inner, folder]:
        if one != folder or not existed:
            with contextlib.suppress(OSError):
                one.rmdir()
