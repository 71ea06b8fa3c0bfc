# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp stability`: reports stability, margins and settling times of laws with their gains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flowstamp.cli.common import check_out, document, load, say, show_progress
from flowstamp.cli.options import Executor, Json, Memory, OutHere, Sets, ShownAs, Threads, seed_of
from flowstamp.errors import UsageError

Alpha = Annotated[
    float | None,
    typer.Option("--alpha", metavar="NUMBER", help="Gain on spare capacity, above 0. Default: the law's."),
]
Beta = Annotated[
    float | None, typer.Option("--beta", metavar="NUMBER", help="Gain on the queue, above 0. Default: the law's.")
]
Rtts = Annotated[
    str | None,
    typer.Option(
        "--rtt", metavar="TIME,...", help="RTT of all flows, or of several groups. Default: the scenario's, or 100ms."
    ),
]
Counts = Annotated[
    str | None, typer.Option("--flows", metavar="N,...", help="Number of flows with each RTT. Default: one each.")
]
Pictures = Annotated[
    bool, typer.Option("--pictures", help="Also draw settling times over both gains, and a phase portrait.")
]
BySimulation = Annotated[
    bool,
    typer.Option("--check-by-simulation", help="Simulate packets over a grid of gains; report where they oscillate."),
]
Points = Annotated[
    int | None, typer.Option("--points", metavar="N", min=2, help="Points along each axis of that grid. Default: 12.")
]
Seeds = Annotated[
    int | None, typer.Option("--seeds", metavar="N", min=1, help="Runs at each point of that grid. Default: 1.")
]
FirstSeed = Annotated[
    int | None, typer.Option("--seed", metavar="N", parser=seed_of, help="Seed of the first of these runs. Default: 1.")
]


def stability(
    what: Annotated[
        str, typer.Argument(metavar="LAW|SCENARIO.toml", help="xcp, rcp, or a scenario with routers of these laws.")
    ],
    *,
    alpha: Alpha = None,
    beta: Beta = None,
    rtt: Rtts = None,
    flows: Counts = None,
    pictures: Pictures = False,
    by_simulation: BySimulation = False,
    points: Points = None,
    seeds: Seeds = None,
    sets: Sets = None,
    seed: FirstSeed = None,
    threads: Threads = None,
    executor: Executor = "threads",
    out: OutHere = Path("out/stability"),
    as_json: Json = False,
    progress: ShownAs = "auto",
    memory: Memory = None,
) -> int:
    """Report a law's stability, margins and settling time.

    The folder gets a picture of the gains in their stability region. Exit code 0 if the law is stable, 1 if not.

    --check-by-simulation simulates packets at each pair of a grid of gains, on a dumbbell with the given RTTs. The
    picture then shows where they oscillate, and a line says at how many points the model agrees.

    If flows pass several links of a scenario one after the other, the last line says whether all of them settle
    together, and when.
    """
    show_progress(progress)
    from flowstamp import stability_command as command

    check: command.Packets | None = None
    if by_simulation:
        check = command.Packets(points or 12, seeds or 1, 1 if seed is None else seed, threads, memory, executor)
    else:
        unused = {"--points": points, "--seeds": seeds, "--threads": threads, "--memory": memory}
        unused["--executor"] = None if executor == "threads" else executor
        for name, given in unused.items():
            if given is not None:
                raise UsageError(f"{name} is for --check-by-simulation")
    found, together = command.asked(what, alpha, beta, rtt, flows, load, sets or [])
    check_out(out)
    told, lines = command.tell(found, together, out, pictures, check)
    if as_json:
        document(told)
    else:
        for line in lines:
            say(line)
    return 0 if told["stable"] else 1
