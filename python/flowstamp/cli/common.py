# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What commands do before and after their work: load the scenario, check the folder, print."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flowstamp.errors import UsageError

if TYPE_CHECKING:
    from flowstamp.scenario import Scenario


def say(text: str) -> None:
    """A line on standard output."""
    sys.stdout.write(f"{text}\n")


def say_written(written: Iterable[Path]) -> None:
    """A line for each file."""
    for path in written:
        say(f"wrote {path}")


def as_text(document: object) -> str:
    """A JSON document as it is printed."""
    import json

    # As a whole: in the parts that `json.dump` writes it takes three times as long.
    return json.dumps(document, indent=2)


def document(document: object) -> None:
    """The one JSON document on standard output."""
    say(as_text(document))


def show_progress(how: str) -> None:
    """Chooses how progress is shown, before any work."""
    from flowstamp import progress

    progress.show(how)


def load(path: Path, sets: Sequence[str] | None) -> Scenario:
    """A scenario file with the values of `--set`."""
    from dataclasses import replace

    from flowstamp import scenario

    pairs = []
    for text in sets or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f'--set: "{text}" is not KEY=VALUE; write for example dumbbell.rate=90Mbps')
        pairs.append((key.strip(), value.strip()))
    return replace(scenario.load(path), overrides=tuple(pairs))


def check_out(out: Path | None) -> None:
    """Says before any work, not after it, that results could not be written."""
    if out is not None:
        from flowstamp.files import check_folder

        check_folder(out)
