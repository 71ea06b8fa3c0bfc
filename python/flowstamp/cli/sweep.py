# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp sweep`: runs a scenario over a grid of values."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flowstamp import streams
from flowstamp.cli.common import check_out, document, load, say, say_written, show_progress
from flowstamp.cli.options import Executor, Fresh, Json, Memory, Out, ScenarioFile, Seed, Sets, ShownAs, Threads
from flowstamp.errors import UsageError

if TYPE_CHECKING:
    from flowstamp.sweeps import Sweep


def sweep(
    scenario: ScenarioFile,
    *,
    grid: Annotated[
        list[str], typer.Option("--grid", metavar="KEY=V1,V2,...", help="Values of a key. Every combination is run.")
    ],
    sets: Sets = None,
    seed: Seed = None,
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", min=1, help="Number of seeds for each point.")] = 1,
    threads: Threads = None,
    executor: Executor = "threads",
    out: Out = None,
    tables: Annotated[bool, typer.Option("--tables", help="Also keep each run's series and flows.")] = False,
    fresh: Fresh = False,
    as_json: Json = False,
    progress: ShownAs = "auto",
    memory: Memory = None,
) -> int:
    """Run a scenario over a grid of values, and print a table.

    Runs use all cores of this machine, unless --executor names a cluster.

    With --out, the folder gets sweep.csv, with a row for each run and metric. Each run leaves a file in its folder
    points, so that a repeated sweep runs only what is missing. A file counts only for the same scenario, input files,
    seed, and build of this program.

    With --executor dask=ADDRESS the workers of that Dask scheduler do the runs. They need the same build. If a worker
    is killed, the others do its runs.
    """
    show_progress(progress)
    from flowstamp.files import write_whole
    from flowstamp.progress import Meter
    from flowstamp.sweeps import sweep as run_sweep

    loaded = load(scenario, sets)
    axes = dict(_axis(text) for text in grid)
    if len(axes) < len(grid):
        raise UsageError("--grid: a key appears twice; give all its values in one: dumbbell.rate=20Mbps,80Mbps")
    _check(executor, threads, out, tables=tables, fresh=fresh)
    if seed is not None and seeds == 1:
        loaded = loaded.set("seed", seed)
    first = seed if seed is not None else 1
    several = range(first, first + seeds) if seeds > 1 else ()
    with Meter(scenario.name) as meter:
        swept = run_sweep(
            loaded,
            axes,
            seeds=several,
            threads=threads,
            memory=memory,
            executor=executor,
            keep=out / "points" if out is not None else None,
            tables=tables,
            fresh=fresh,
            progress=meter,
        )
    _tell_kept(swept, out)
    written = [write_whole(out / "sweep.csv", swept.csv())] if out is not None else []
    if as_json:
        document(_as_json(swept) | {"files": [str(path) for path in written]})
    else:
        _tell(swept, written)
    return 0


def _tell_kept(swept: Sweep, out: Path | None) -> None:
    if swept.kept:
        again = "--fresh runs all of them again"
        streams.tell(f"{swept.kept} of {len(swept.points)} points are in {out}/points from before; {again}")


def _tell(swept: Sweep, written: Iterable[Path]) -> None:
    from flowstamp import overview, text

    say(text.table(*overview.points(swept)))
    say_written(written)


def _as_json(swept: Sweep) -> dict[str, Any]:
    pairs = zip(swept.points, swept.results, strict=True)
    runs = [{"point": point, "summary": result.summary} for point, result in pairs]
    return {"keys": swept.keys, "runs": runs, "kept": swept.kept}


def _check(executor: str, threads: int | None, out: Path | None, *, tables: bool, fresh: bool) -> None:
    from flowstamp.executors import check

    check(executor)
    check_out(out)
    if (tables or fresh) and out is None:
        raise UsageError(f"{'--tables' if tables else '--fresh'} needs --out DIR: the folder that points are kept in")
    if threads is not None and executor.startswith("dask"):
        raise UsageError(
            "--threads: is not for --executor dask; --nthreads of dask worker sets how many runs it does at a time"
        )


def _axis(text: str) -> tuple[str, list[Any]]:
    """Parses `KEY=V1,V2` of --grid. A value is TOML, or else a string; commas in brackets or quotes belong to it.

    Raises `UsageError` for any other form.
    """
    import tomllib

    key, equals, values = text.partition("=")
    if not equals or not key.strip() or not values.strip():
        raise UsageError(f'--grid: "{text}" is not KEY=V1,V2,...; write for example dumbbell.rate=20Mbps,80Mbps')
    parts, depth, quote = [""], 0, ""
    for char in values:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        else:
            depth += (char in "[{") - (char in "]}")
        if char == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += char
    parsed: list[Any] = []
    for part in (part.strip() for part in parts):
        if not part:
            raise UsageError(f'--grid: "{text}" has an empty value')
        try:
            table = tomllib.loads(f"v = {part}")
            parsed.append(table["v"] if len(table) == 1 else part)
        except (tomllib.TOMLDecodeError, RecursionError):
            parsed.append(part)
    return key.strip(), parsed
