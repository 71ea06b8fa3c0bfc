# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Finds and reads the figures' files, and checks that their tables are consistent."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from flowstamp.figures.claims import ExpressionError
from flowstamp.figures.spec import A_NAME, FigureSpec, PanelSpec, RunSpec
from flowstamp.figures.tables import FigureError, TableError, convert, refused, shown


def directories() -> list[Path]:
    """Returns the folders to search for figure files: beside this module (installed wheel), then in the checkout."""
    here = Path(__file__).resolve()
    return [here.parent / "data", here.parents[3] / "figures"]


def available(directory: Path | None = None) -> dict[str, Path]:
    """Returns every figure file by its id, in the order of the papers. Raises `FigureError` if there are none."""
    for folder in [directory] if directory is not None else directories():
        files = sorted(folder.glob("*.toml"), key=lambda f: _paper_order(f.stem))
        if files:
            return {f.stem: f for f in files}
    looked = " and ".join(map(str, [directory] if directory is not None else directories()))
    raise FigureError(f"no figure files found; looked in {looked}")


def _paper_order(figure_id: str) -> tuple[str, float, float, str]:
    match = re.match(r"([A-Z]+)(\d+)?(?:\.(\d+))?(.*)", figure_id)
    if match is None:
        return figure_id, 0.0, 0.0, ""
    letters, number, part, rest = match.groups()
    return letters, float(number) if number else float("inf"), float(part or 0), rest


def load(figure_id: str, directory: Path | None = None) -> FigureSpec:
    """Returns a figure by its id or by the id of a figure that it also covers; upper and lower case are equal.

    Raises `FigureError` if there is none.
    """
    files = available(directory)
    wanted = figure_id.upper()
    for known, file in files.items():
        if known.upper() == wanted:
            return read(file)
    covering = next((spec for spec in map(read, files.values()) if wanted in map(str.upper, spec.also)), None)
    if covering is None:
        raise FigureError(f'figure "{figure_id}" does not exist; {_nearest(figure_id, files)}')
    return covering


def _nearest(figure_id: str, files: Collection[str]) -> str:
    """Returns a hint for an unknown id: up to three similar ids, and the command that lists all."""
    by_upper = {known.upper(): known for known in files}
    near = [by_upper[found] for found in difflib.get_close_matches(figure_id.upper(), by_upper, n=3, cutoff=0.3)]
    hint = f"did you mean {' or '.join(filter(None, (', '.join(near[:-1]), near[-1])))}? " if near else ""
    return f"{hint}flowstamp figure list names all {len(files)}"


def matching(pattern: str, directory: Path | None = None) -> list[str]:
    """Returns the ids of figures that match a pattern such as `R4.*`, directly or through a figure they also cover.

    Raises `FigureError` if none matches.
    """
    files = available(directory)
    if pattern == "all":
        return list(files)
    if not any(sign in pattern for sign in "*?["):
        return [pattern]
    found = [
        known
        for known, file in files.items()
        if any(fnmatchcase(name.upper(), pattern.upper()) for name in (known, *read(file).also))
    ]
    if not found:
        raise FigureError(f'no figure is named like "{pattern}"; flowstamp figure list names all {len(files)}')
    return found


def read(path: Path) -> FigureSpec:
    """Reads a figure file. Raises `FigureError` if it is unreadable or invalid."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FigureError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FigureError(f"{path}: not TOML: {error}") from error
    return _read(data, path)


# ---------------------------------------------------------------------------------------------------- checking


def _read(data: Mapping[str, Any], path: Path) -> FigureSpec:
    figure = convert({**data, "$path": path}, FigureSpec, str(path))
    panels = tuple(panel if panel.runs else replace(panel, runs=figure.names) for panel in figure.draw.panels)
    figure = replace(figure, draw=replace(figure.draw, panels=panels))
    for wrong in _contradictions(figure):
        raise refused(data, str(path), wrong)
    figure.x()
    return figure


def _contradictions(figure: FigureSpec) -> Iterator[TableError]:
    """Yields inconsistencies between the tables. Each check may rely on the earlier ones."""
    if figure.id != figure.path.stem:
        yield TableError("id", f'the name of the file, "{figure.path.stem}"')
    if figure.axis is not None and figure.axis not in figure.vary:
        yield TableError(("measure", "axis"), "a key of vary")
    if bool(figure.runs) == bool(figure.reuse):
        yield TableError("runs", "[[runs]] with a [scenario], or [[reuse]] of other figures' runs")
    yield from _of_places(figure)
    for name in figure.constants:
        if not name.isidentifier():
            yield TableError(("constants", name), A_NAME)
        if name in (*figure.names, "x"):
            yield TableError("constants", f'names that nothing else has, not "{name}"')
    yield from _of_claims(figure)
    for number, panel in enumerate(figure.draw.panels):
        yield from (wrong.within("draw", "panels", number) for wrong in _of_panel(figure, panel))
    yield from (wrong.within("fast") for wrong in _of_short_version(figure))
    for number, run in enumerate(figure.runs):
        yield from (wrong.within("runs", number) for wrong in _of_run(figure, run))


def _of_places(figure: FigureSpec) -> Iterator[TableError]:
    """Yields what is missing or superfluous for the places where the figure's runs execute."""
    places = {run.on for run in figure.runs if run.theory is None}
    for key, given, place, expected in (
        ("lab", figure.lab, "linux", "a lab, for runs on linux"),
        ("packets", figure.packets, "forwarding", "packets of each round"),
    ):
        if given is None and place in places:
            yield TableError(key, expected)
        if given is not None and place not in places:
            yield TableError(key, f'runs with on = "{place}" beside it')
    if places == {"simulator"} and figure.scenario is None:
        yield TableError("scenario", "a scenario")
    if figure.joined and not figure.reuse:
        yield TableError("joined", "[[reuse]] of other figures' runs beside it")
    if figure.reuse and not figure.joined:
        yield TableError("joined", "a list of names")
    if figure.seeds > 1 and places != {"simulator"}:
        yield TableError(("measure", "seeds"), "1, where not all is simulated and of this figure")


def _of_claims(figure: FigureSpec) -> Iterator[TableError]:
    ids = {claim.id for claim in figure.claims}
    if not ids or len(ids) < len(figure.claims):
        yield TableError("claims", "[[claims]], each with an id of its own")
    for number, claim in enumerate(figure.claims):
        try:
            figure.expression(claim)
        except ExpressionError as error:
            yield TableError(("claims", number, "expr"), reason=str(error))
        if claim.each_seed and figure.seeds == 1:
            yield TableError("claims", "each_seed where measure.seeds is more than 1")


def _of_panel(figure: FigureSpec, panel: PanelSpec) -> Iterator[TableError]:
    if not set(panel.runs) <= set(figure.names):
        yield TableError("runs", f"names of runs: {', '.join(figure.names)}")
    shown_here = ("", *panel.runs, *panel.references)
    for number, published in enumerate(panel.published):
        if published.times not in shown_here:
            yield TableError(("published", number, "times"), f"one of {', '.join(shown_here[1:])}")
    computed = {run.name for run in figure.runs if run.theory is not None}
    if figure.draw.of(panel).x == "curve" and not set(panel.runs) <= computed:
        yield TableError("runs", f"of a panel against a curve, runs with theory: {', '.join(sorted(computed))}")


def _of_short_version(figure: FigureSpec) -> Iterator[TableError]:
    fast, names = figure.fast, figure.names
    if not set(fast.without) <= set(names) or (names and set(fast.without) == set(names)):
        yield TableError("without", f"some of the runs: {', '.join(names)}")
    for key, own, whole in (("constants", fast.constants, figure.constants), ("vary", fast.vary, figure.vary)):
        if not own.keys() <= whole.keys():
            of = "names of [constants]" if key == "constants" else "keys of [vary]"
            yield TableError(key, f"{of}: {', '.join(whole) or 'there are none'}")
    if fast.vary and fast.vary.keys() != figure.vary.keys():
        yield TableError("vary", f"all keys of [vary]: {', '.join(figure.vary)}")
    ids = [claim.id for claim in figure.claims]
    if not fast.skip.keys() <= set(ids):
        yield TableError("skip", f"claim = reason, of the claims {', '.join(ids)}")
    for claim in figure.claims:
        gone = [name for name in fast.without if re.search(rf"\b{name}\b", claim.expr)]
        if gone and claim.id not in fast.skip:
            yield TableError("without", f"fast.skip to have {claim.id}, which is about {gone[0]}")


def _of_run(figure: FigureSpec, run: RunSpec) -> Iterator[TableError]:
    """Yields errors in a run's own `vary` and `where`."""
    if run.vary and {len(values) for values in run.vary.values()} != {figure.points}:
        yield TableError("vary", f"lists of {figure.points} values, as the figure's own")
    if run.vary and figure.fast.vary and figure.axis is not None:
        missing = [value for value in figure.fast.vary[figure.axis] if value not in figure.vary[figure.axis]]
        if missing:
            yield TableError("vary", f"fast.vary to have points of vary alone, not {shown(missing[0])}")
    if run.where is None:
        return
    against = {figure.draw.of(panel).x for panel in figure.draw.panels if run.name in panel.runs}
    if run.on != "simulator" or run.theory is not None or not figure.vary or against - {"vary"}:
        yield TableError("where", "of a run in the simulator that varies, in panels against what varies alone")
    shorter = figure.fast_version()
    for form in (figure, *(shorter for left in shorter.runs if left.name == run.name)):
        there = form.where(run)
        if there.dtype != np.bool_ or there.shape != (form.points,):
            yield TableError("where", "a condition on x, true or false at each point")
        if not np.any(there):
            version = "" if form is figure else " of the short version"
            yield TableError("where", f"true at some point{version}: {', '.join(f'{x:g}' for x in form.x())}")
