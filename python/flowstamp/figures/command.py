# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp figure`: lists figures, runs them, and prints each claim with its measured value."""

from __future__ import annotations

import json as json_module
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flowstamp import executors
from flowstamp.figures.accept import Seeds
from flowstamp.figures.catalogue import available, load, matching, read
from flowstamp.figures.kept import Kept
from flowstamp.figures.memory import SEEDS, Form, Memory
from flowstamp.figures.runner import Runner
from flowstamp.figures.scores import scores
from flowstamp.figures.spec import FigureSpec, Sets
from flowstamp.figures.tables import FigureError
from flowstamp.figures.verdicts import Outcome, Status, Verdict
from flowstamp.files import write_whole
from flowstamp.progress import Meter
from flowstamp.text import counted

COLOURS: dict[Status, str] = {
    "holds": "green",
    "holds on average": "green",
    "differs on average": "yellow",
    "differs": "yellow",
    "fails": "red",
    "no verdict": "cyan",
    "skipped": "cyan",
    "invalid": "magenta",
}


def cli_figure(
    ids: Sequence[str],
    fast: bool = False,
    json: bool = False,
    out: Path = Path("out/figures"),
    seed: int | None = None,
    directory: Path | None = None,
    accept: bool = False,
    memory: str | None = None,
    executor: str = executors.THREADS,
    fresh: bool = False,
    seeds: int | None = None,
    sets: Sets = (),
) -> int:
    """Runs the figures with these ids or patterns such as `R4.*`; "all" means all.

    A first word "list" lists them; "scores" prints how many published results of each paper hold, without a run.

    `seeds` runs seeds 1 to that number; `accept` runs 1 to 5 and writes the values to `expected.json` beside the
    figures' files. A given `seed` disables the comparison with that file. `memory` limits the runs of a figure
    together; `executor` is where they execute (`flowstamp.executors`). A figure whose outcome is in `out` is not run
    again, unless `fresh`. `sets` overrides keys of scenarios: such an experiment is neither cached nor compared with
    `expected.json`, and writes into the folder `experiment` of `out`.

    Returns the exit code: 1 if a claim fails or, without `accept`, differs from `expected.json`. Skipped figures, which
    this machine cannot measure, and invalid ones, for which it was too busy, do not count as failures.
    """
    if list(ids[:1]) == ["list"]:
        _list(json, directory, ids[1:] or ["all"])
        return 0
    if list(ids[:1]) == ["scores"]:
        _scores(json, directory)
        return 0
    _check(seed, seeds, sets, accept=accept)
    executors.check(executor)
    runner = Runner(fast=fast, seed=seed, directory=directory, memory=memory, executor=executor)
    wanted = [known for pattern in ids for known in matching(pattern, directory)]
    if not wanted:
        raise FigureError("no figure is named; give ids such as X10, patterns such as 'R4.*', or all")
    # All files are checked before the first run. A figure that covers several ids runs once.
    figures = list({spec.id: spec for spec in map(runner.figure, wanted)}.values())
    if sets:
        figures, out = [spec.changed(sets) for spec in figures], out / "experiment"
    form: Form = "fast" if fast else "full"
    known = Memory.beside(runner.files)
    console, messages = Console(), Console(stderr=True)
    outcomes: list[Outcome] = []
    several = Seeds(
        figures,
        len(SEEDS) if accept else seeds or 1,
        Meter,
        fast=fast,
        directory=directory,
        out=out,
        memory=memory,
        executor=executor,
        fresh=fresh,
    )
    if accept:
        each = ((*several.accept(figure), list[str]()) for figure in figures)
    else:
        one_seed = _each(figures, runner, Kept(out, runner.files, form), messages, fresh=fresh)
        found = one_seed if seeds is None else map(several.figure, figures)
        each = ((one, *(known.compared(one, form) if seed is None else ([], []))) for one in found)
    with runner, several:
        for raw, changes, notes in each:
            outcome = replace(known.judged(raw, form), changes=changes, notes=[*raw.notes, *notes])
            outcomes.append(outcome)
            if not json:
                _print(console, outcome)
            _warn(messages, outcome, known)
    _write(console, outcomes, out, json=json)
    if not json and len(figures) == len(runner.files):
        _scores(json, directory)
    failed = any(v.status == "fails" for o in outcomes for v in o.verdicts)
    return 1 if failed or (any(o.changes for o in outcomes) and not accept) else 0


def _write(console: Console, outcomes: list[Outcome], out: Path, *, json: bool) -> None:
    """Writes all outcomes to `results.json`, and prints them or their counts."""
    text = json_module.dumps({"figures": [o.as_json() for o in outcomes]}, indent=2, ensure_ascii=False) + "\n"
    write_whole(out / "results.json", text)
    if json:
        sys.stdout.write(text)
    else:
        _print_total(console, outcomes, out)


def _check(seed: int | None, seeds: int | None, sets: Sets, *, accept: bool) -> None:
    """Raises `FigureError` for options that contradict one another."""
    if seed is not None and (accept or seeds is not None):
        raise FigureError(
            f"{'--accept runs seeds 1 to 5' if accept else '--seeds runs seeds from 1'}; leave out --seed"
        )
    if sets and accept:
        raise FigureError("--set makes an experiment, which --accept does not record; leave out one of them")


def _scores(json: bool, directory: Path | None) -> None:
    files = available(directory)
    found = scores(map(read, files.values()), Memory.beside(files))
    if json:
        rows = [
            {
                "law": score.law,
                "held": score.held,
                "provisional": score.provisional,
                "unmeasured": score.unmeasured,
                "results": len(score.results),
            }
            for score in found
        ]
        sys.stdout.write(json_module.dumps({"scores": rows}, indent=2) + "\n")
    else:
        told = ", ".join(map(str, found))
        Console().print(f"Published results that hold: {told}", soft_wrap=True)


def _each(
    figures: Sequence[FigureSpec], runner: Runner, kept: Kept, messages: Console, *, fresh: bool
) -> Iterator[Outcome]:
    """Yields the outcome of each figure, from the cache in the output folder or from a run."""
    seeds = {spec.id: spec.seed if runner.seed is None else runner.seed for spec in figures}
    before = {} if fresh else {spec.id: kept.outcome(spec, seeds[spec.id]) for spec in figures}
    missing = [spec for spec in figures if before.get(spec.id) is None]
    for figure in figures:
        found = before.get(figure.id)
        if found is not None:
            messages.print(f"{figure.id}: is in {kept.out}/ from before; --fresh runs it again", soft_wrap=True)
            yield found
            continue
        missing.remove(figure)
        with Meter(figure.id) as report:
            outcome = runner.run(figure, kept.out, report, missing)
        runner.forget(missing)
        kept.put(outcome, seeds[figure.id])
        yield outcome


def _list(json: bool, directory: Path | None, patterns: Sequence[str]) -> None:
    wanted = [known for pattern in patterns for known in matching(pattern, directory)]
    figures = list({spec.id: spec for spec in (load(known, directory) for known in wanted)}.values())
    if json:
        rows = [
            {"id": f.id, "also": f.also, "title": f.title, "paper": f.paper, "claims": [c.id for c in f.claims]}
            for f in figures
        ]
        sys.stdout.write(json_module.dumps({"figures": rows}, indent=2, ensure_ascii=False) + "\n")
        return
    width = max(len(figure.id) for figure in figures)
    console = Console()
    for f in figures:
        also = f"; also {', '.join(f.also)}" if f.also else ""
        line = f"{f.id:<{width}} {counted(len(f.claims), 'claim'):>9}  {f.title}; {f.paper}{also}"
        # One line each; at a terminal, cut to its width.
        if console.is_terminal:
            console.print(line, markup=False, highlight=False, no_wrap=True, overflow="ellipsis")
        else:
            sys.stdout.write(f"{line}\n")


def _print(console: Console, outcome: Outcome) -> None:
    figure = outcome.figure
    if outcome.untold:
        status = outcome.untold.status
        head = f"[bold]{figure.id}  {escape(figure.title)}[/]  [{COLOURS[status]}]{status}[/]"
        console.print(f"{head}: {escape(str(outcome.untold))}\n", soft_wrap=True)
        return
    table = Table(
        "claim",
        "paper",
        "expected",
        "measured",
        "",
        title=f"{figure.id}  {escape(figure.title)}  ({outcome.wall_s:.1f} s)",
        title_justify="left",
        title_style="bold",
        show_edge=False,
        pad_edge=False,
    )
    for verdict in outcome.verdicts:
        expected = verdict.claim.bound
        bound = expected.expected + (f" ± {expected.tolerance}" if expected.slack else "")
        colour = COLOURS[verdict.status]
        seeds = f" ({verdict.seeds} seeds)" if verdict.seeds else ""
        shown = f"[{colour}]{verdict.status}[/]{seeds}" + (" (experiment)" if figure.experiment else "")
        table.add_row(verdict.claim.id, escape(verdict.claim.paper), bound, shown_values(verdict), shown)
    console.print(table)
    for verdict in () if figure.experiment else outcome.verdicts:
        if verdict.status == "no verdict":
            told = "the short version says otherwise than the whole one"
            console.print(f"  {verdict.claim.id} has no verdict: {told}", style="cyan")
        elif verdict.status in ("differs", "differs on average"):
            told = verdict.claim.explanation or "by chance: it holds on average over seeds 1 to 5"
            # The file's own line breaks would come on top of the terminal's.
            console.print(f"  {verdict.claim.id} differs: {escape(' '.join(told.split()))}", style="yellow")
    for picture in outcome.pictures:
        if picture.suffix == ".png":
            console.print(f"  {picture}", style="dim", soft_wrap=True)
    console.print()


def _print_total(console: Console, outcomes: Sequence[Outcome], out: Path) -> None:
    counts = Counter(v.status for o in outcomes for v in o.verdicts)
    told = ", ".join(f"{counts[s]} {s}" for s in COLOURS if counts[s] or s in ("holds", "differs", "fails"))
    wall_s = sum(o.wall_s for o in outcomes)
    console.print(
        f"{counted(len(outcomes), 'figure')} in {wall_s:.0f} s: {told}. Pictures and results.json are in {out}/",
        soft_wrap=True,
    )


def _warn(messages: Console, outcome: Outcome, known: Memory) -> None:
    for note in outcome.notes:
        messages.print(escape(note), soft_wrap=True)
    for change in outcome.changes:
        messages.print(f"{outcome.figure.id} {escape(change)}", style="bold red", soft_wrap=True)
    for verdict in outcome.verdicts:
        where = f"{outcome.figure.id} {verdict.claim.id}"
        if verdict.problem:
            messages.print(f"{where}: {escape(verdict.problem)}", style="red", soft_wrap=True)
        explained = verdict.status == "holds" and verdict.claim.explanation and not outcome.figure.experiment
        if explained and not known.differs(outcome.figure.id, verdict.claim):
            messages.print(
                f"{where} holds, though its file explains why it differs: is that out of date?", soft_wrap=True
            )


def shown_values(verdict: Verdict) -> str:
    """Formats the mean over the seeds and, if they differ, the least and the largest value."""
    low, high = map(shown_number, verdict.band or (None, None))
    return shown_number(verdict.measured) + (f" ({low} to {high})" if low != high else "")


def shown_number(value: float | None) -> str:
    """Formats a measured value with four significant digits, or as a whole number from 10,000 on."""
    if value is None or math.isnan(value):
        return "not measured"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
