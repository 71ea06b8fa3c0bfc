# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp examples`: copies the shipped scenarios, scripts and labs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flowstamp.cli.common import document, say
from flowstamp.cli.options import Json, folder_of


def examples(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", parser=folder_of, help="The folder, which must be new or empty.")
    ],
    as_json: Json = False,
) -> int:
    """Write the example scenarios, scripts and labs into a folder."""
    from flowstamp import examples as shipped

    written = shipped.write(folder)
    if as_json:
        document({"files": [str(path) for path in written]})
    else:
        say(f"wrote {len(written)} files to {folder}; {shipped.next_commands()}")
    return 0
