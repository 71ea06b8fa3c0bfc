# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp figure`: reproduces published figures and checks the papers' claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flowstamp.cli.common import check_out, overrides, show_progress
from flowstamp.cli.options import Executor, Fresh, Json, Memory, OutHere, Seed, ShownAs


def _figure_ids(incomplete: str) -> list[str]:
    from flowstamp.figures.catalogue import available

    return [word for word in ("list", "scores", "all", *available()) if word.startswith(incomplete)]


Seeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        metavar="N",
        min=1,
        max=20,
        help="Run seeds 1 to N, and report means, bands, and for how many seeds a claim holds.",
    ),
]
ExperimentSets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="[RUN.]KEY=VALUE",
        help="Experiment: override a key in all runs, or in the run that is named first. Results go to experiment/ "
        "in the folder.",
    ),
]


def figure(
    ids: Annotated[
        list[str],
        typer.Argument(
            metavar="[list|scores|ID...|all]",
            help="Ids of figures, such as X10 or 'R4.*'. list: name all ids. scores: count the published results that "
            "hold. all: every figure.",
            autocompletion=_figure_ids,
        ),
    ],
    fast: Annotated[bool, typer.Option("--fast", help="Run the shorter version of each scenario.")] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Run seeds 1 to 5 and write the results to figures/expected.json.")
    ] = False,
    seed: Seed = None,
    seeds: Seeds = None,
    sets: ExperimentSets = None,
    executor: Executor = "threads",
    out: OutHere = Path("out/figures"),
    fresh: Fresh = False,
    as_json: Json = False,
    progress: ShownAs = "auto",
    memory: Memory = None,
) -> int:
    """Reproduce published figures and check the papers' claims.

    A figure is not run again if the folder has all its files from this build of the program.

    Exit code 1 if a claim fails, or if its status or a differing value no longer matches figures/expected.json. With
    --accept each figure updates its part of that file when it ends, and a repeated command continues where it stopped.
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
            sets=overrides(sets),
        )
    )
