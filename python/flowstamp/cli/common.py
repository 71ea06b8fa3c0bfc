# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Functions that several commands share: load the scenario, check the output folder, print."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flowstamp.errors import UsageError

if TYPE_CHECKING:
    from flowstamp.scenario import Scenario


def say(text: str) -> None:
    """Prints a line on standard output."""
    sys.stdout.write(f"{text}\n")


def say_written(written: Iterable[Path]) -> None:
    """Prints a line for each written file."""
    for path in written:
        say(f"wrote {path}")


def as_text(document: object) -> str:
    """Formats a JSON document for printing."""
    import json

    # `json.dumps` uses the C encoder. `json.dump` writes many small parts and takes three times as long.
    return json.dumps(document, indent=2)


def document(document: object) -> None:
    """Prints the JSON document on standard output."""
    say(as_text(document))


def show_progress(how: str) -> None:
    """Sets how progress is shown. Raises `UsageError` for an unknown way."""
    from flowstamp import progress

    progress.show(how)


def load(path: Path, sets: Sequence[str] | None) -> Scenario:
    """Loads a scenario file with the overrides of `--set`. Raises `UsageError` for a wrong one, or a lab."""
    from dataclasses import replace

    from flowstamp import scenario

    pairs = overrides(sets)
    loaded = scenario.load(path)
    if "path" in loaded.tree:
        raise UsageError(f"{path}: is a lab's file, with a table [path]; use flowstamp lab run, or flowstamp compare")
    return replace(loaded, overrides=pairs)


def overrides(sets: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    """Parses the words of `--set` to keys and values. Raises `UsageError` for a wrong one."""
    pairs = []
    for text in sets or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f'--set: "{text}" is not KEY=VALUE; write for example dumbbell.rate=90Mbps')
        pairs.append((key.strip(), value.strip()))
    return tuple(pairs)


def check_out(out: Path | None) -> None:
    """Raises `OutputError` before any work if results could not be written."""
    if out is not None:
        from flowstamp.files import check_folder

        check_folder(out)
