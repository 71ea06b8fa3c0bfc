# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp figure`: reproduces published figures and checks the papers' claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flowstamp.cli.common import check_out, show_progress
from flowstamp.cli.options import Executor, Fresh, Json, Memory, OutHere, Seed, ShownAs


def _figure_ids(incomplete: str) -> list[str]:
    from flowstamp.figures.catalogue import available

    return [word for word in ("list", "scores", "all", *available()) if word.startswith(incomplete)]


def figure(
    ids: Annotated[
        list[str],
        typer.Argument(
            metavar="[list|scores|ID...|all]",
            help="Figures by their ids, such as X10 or 'R4.*'; list alone names all; scores says how many published "
            "results hold.",
            autocompletion=_figure_ids,
        ),
    ],
    fast: Annotated[bool, typer.Option("--fast", help="The shorter version of each scenario.")] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Run seeds 1 to 5 and write what came out to figures/expected.json.")
    ] = False,
    seed: Seed = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", min=1, max=20, help="Run seeds 1 to N: means, bands, and how many seeds hold."),
    ] = None,
    executor: Executor = "threads",
    out: OutHere = Path("out/figures"),
    fresh: Fresh = False,
    as_json: Json = False,
    progress: ShownAs = "auto",
    memory: Memory = None,
) -> int:
    """Reproduce published figures and check what the papers claim of them.

    A figure that this program has run, and of which the folder has all that it wrote, is not run again.

    Exit code 1 if a claim fails, or if its status or a differing value is no longer as figures/expected.json has it.
    With --accept each figure's part of that file is written anew as it ends; called again, it goes on where it was.
    """
    show_progress(progress)
    from flowstamp.figures import cli_figure

    if ids[:1] not in (["list"], ["scores"]):
        check_out(out)
    return int(
        cli_figure(
            ids,
            fast,
            as_json,
            out,
            seed,
            accept=accept,
            memory=memory,
            executor=executor,
            fresh=fresh,
            seeds=seeds,
        )
    )
