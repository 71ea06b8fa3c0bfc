# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Options that several commands share, and their shell completion."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

SEED_END = 2**63  # TOML's integers are smaller


def seed_of(text: str) -> int:
    """Parses `--seed`. Raises `typer.BadParameter` unless it is a whole number from 0 to 2**63 - 1."""
    if not text.isascii() or not text.isdecimal() or int(text) >= SEED_END:
        raise typer.BadParameter(f'"{text}" is not a whole number from 0 to 2^63 - 1')
    return int(text)


def folder_of(text: str | Path) -> Path:
    """Parses `--out`. Raises `typer.BadParameter` if it is empty."""
    if not str(text):
        raise typer.BadParameter("it is empty; give the path of a folder, . for this one")
    return Path(text)


def among(*words: str) -> Callable[[str], list[str]]:
    """Returns a completion function for an option that takes one of these words."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


ScenarioFile = Annotated[
    Path, typer.Argument(metavar="SCENARIO.toml", help="The scenario: a TOML file, or the manifest.json of a run.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a value: dumbbell.rate=90Mbps, flows.xcp.count=3."),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", parser=seed_of, help="Seed of every random choice. Default: the scenario's."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", parser=folder_of, help="Folder for the results.")]
OutHere = Annotated[Path, typer.Option("--out", metavar="DIR", parser=folder_of, help="Folder for the results.")]

ShownAs = Annotated[
    str,
    typer.Option(
        "--progress",
        metavar="HOW",
        help="How to show progress. auto: a bar, at a terminal; plain: a line every 10 s; none.",
        autocompletion=among("auto", "plain", "none"),
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Refuse runs that may need more memory than this, such as 4GB. Default: three quarters of RAM.",
    ),
]
Executor = Annotated[
    str,
    typer.Option(
        "--executor",
        metavar="WHERE",
        help="Where to run: threads of this process, processes of this machine, or dask=ADDRESS for a cluster.",
        autocompletion=among("threads", "processes", "dask="),
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Run everything, even what the folder already has.")]
Threads = Annotated[
    int | None, typer.Option("--threads", metavar="N", min=1, help="Number of threads. Default: one for each core.")
]
