# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a file in `figures/` says: scenario, runs, picture and claims. Reading and checking; nothing runs here."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from flowstamp import _flowstamp
from flowstamp.errors import FlowstampError
from flowstamp.figures import analytic, control, fct
from flowstamp.figures.claims import Bound, Expression, ExpressionError
from flowstamp.figures.measures import measures
from flowstamp.figures.tables import TheoryTableError
from flowstamp.plot import Scale

XAxis = Literal["vary", "link", "flow", "time", "figure", "size", "value", "rtt", "curve"]
Where = Literal["simulator", "linux", "forwarding"]
Sets = tuple[tuple[str, str], ...]
"""Overrides as the native module takes them: dotted key and TOML value."""


class FigureError(FlowstampError):
    """A figure file that cannot be used, or a figure that does not exist."""


@dataclass(frozen=True)
class RunSpec:
    """One curve: the scenario with some keys changed, at every value of `vary`."""

    name: str
    label: str
    sets: Sets
    reused_as: str = ""  # its name in figures that reuse these runs; empty: not there
    theory: analytic.Theory | None = None  # a curve that is computed, not run
    on: Where = "simulator"
    vary: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # its own values at the points of the figure
    where: Expression | None = None  # at which points of the figure it is run; at all if None


@dataclass(frozen=True)
class Reuse:
    """Runs of another figure, some of its points left out."""

    figure: str
    where: Expression | None


SEEDS_APART = 1000


@dataclass(frozen=True)
class Published:
    """Numbers that the paper prints."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    times: str = ""  # a run or formula of the panel, of which `y` are multiples


@dataclass(frozen=True)
class Axis:
    """What a panel's curves stand against."""

    x: XAxis
    label: str
    scale: Scale
    limits: tuple[float | None, float | None]
    along: str = ""  # of computed curves: the measure that stands on it


@dataclass(frozen=True)
class PanelSpec:
    """One panel of the picture: a measure and the runs that show it."""

    y: str
    ylabel: str
    title: str
    runs: tuple[str, ...]
    yscale: Scale
    ylim: tuple[float | None, float | None]
    linthresh: float
    average_s: float  # 0: samples as they are
    references: tuple[str, ...]  # formulas of flow completion times
    point: int  # of panels against size or time: which point of the runs
    per_x: bool  # of what varies: each value over its x
    flow: str  # of panels that show flows over time: the only one to be shown; empty: all
    group: str  # whose measure it is; empty: `measure.group`
    link: str  # whose measure it is; empty: `measure.links`
    published: tuple[Published, ...]  # drawn over ours
    axis: Axis | None  # its own, where it does not stand against what the others do


@dataclass(frozen=True)
class Draw:
    """The picture: panels above one another that share the x axis."""

    axis: Axis
    panels: tuple[PanelSpec, ...]

    def of(self, panel: PanelSpec) -> Axis:
        """What a panel stands against."""
        return panel.axis or self.axis


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, and how it is measured."""

    id: str
    paper: str
    expr: Expression
    expected: Bound
    source: str
    explanation: str | None
    each_seed: bool  # its value is the mean of what the runs of each seed give

    @property
    def ours(self) -> bool:
        """Whether it is our own and no paper's, as its source says."""
        return self.source.strip().startswith("ours")


@dataclass(frozen=True)
class Fast:
    """The shorter version for CI."""

    reason: str
    sets: Sets
    constants: Mapping[str, float]
    vary: Mapping[str, tuple[Any, ...]]
    seeds: int  # 0: as many as the whole version
    skip: Mapping[str, str]
    without: tuple[str, ...] = ()  # runs


@dataclass(frozen=True)
class FigureSpec:
    """One published figure."""

    id: str
    also: tuple[str, ...]  # further figures of the paper that this one covers
    title: str
    paper: str
    notes: str
    scenario: Mapping[str, Any]
    lab: Mapping[str, Any] | None  # what runs on Linux
    packets: int  # in each round of forwarding
    constants: Mapping[str, float]  # names that claims may use
    runs: tuple[RunSpec, ...]
    vary: Mapping[str, tuple[Any, ...]]
    axis: str | None
    links: tuple[str, ...]
    group: str
    split: float
    seeds: int  # how often each point is run
    reuse: tuple[Reuse, ...]
    joined: tuple[str, ...]  # names of the reused runs in claims
    draw: Draw
    claims: tuple[Claim, ...]
    fast: Fast
    path: Path
    sets: Sets = field(default=())

    @property
    def points(self) -> int:
        """How many runs there are of each curve."""
        return len(next(iter(self.vary.values()), (None,)))

    @property
    def measured(self) -> bool:
        """Whether this machine's kernel makes some of it: then no seed fixes what comes out."""
        return any(run.on != "simulator" for run in self.runs)

    @property
    def seed(self) -> int:
        """The seed of its runs, unless another is asked for."""
        return int(self.scenario.get("seed", 1))

    def x(self) -> list[float]:
        """Where on the x axis each point of a curve stands."""
        if self.axis is not None:
            return [axis_value(v, str(self.path), f"vary.{self.axis}") for v in self.vary[self.axis]]
        return [float(n + 1) for n in range(len(self.links))]

    def where(self, run: RunSpec) -> NDArray[np.bool_]:
        """At which points a run is made."""
        if run.where is None:
            return np.ones(self.points, np.bool_)
        there: NDArray[np.bool_] = run.where.evaluate({}, np.array(self.x()))
        return there

    def job(self, run: RunSpec, point: int, seed: int | None = None, again: int = 0) -> tuple[str, str, Sets, str]:
        """A scenario for `_flowstamp.run_many`. Where seeds vary, all are as much later as `seed` is than the first.

        `again` is which of a point's runs it is: their seeds are a thousand apart.
        """
        vary = {**self.vary, **run.vary}
        if seed is not None or again:
            seeds = vary.get("seed", (self.seed,) * self.points)
            later = SEEDS_APART * again + (0 if seed is None else seed - seeds[0])
            vary["seed"] = tuple(own + later for own in seeds)
        varied = tuple((key, toml_value(values[point])) for key, values in vary.items())
        source = f"{self.path.name} [scenario] run {run.name}"
        return toml_text(self.scenario), source, (*self.sets, *run.sets, *varied), str(self.path.parent)

    def fast_version(self) -> FigureSpec:
        """The same figure, shortened. What the short version sets, runs do not vary."""
        shorter = {key for key, _ in self.fast.sets}
        kept = tuple(
            replace(
                run,
                vary={
                    key: tuple(values[point] for point in self._fast_points())
                    for key, values in run.vary.items()
                    if key not in shorter
                },
            )
            for run in self.runs
            if run.name not in self.fast.without
        )
        left = [name for name in (*(run.name for run in self.runs), *self.joined) if name not in self.fast.without]
        points = self._fast_points() if any(panel.point for panel in self.draw.panels) else [0]
        panels = tuple(
            replace(p, runs=tuple(name for name in p.runs if name in left), point=points.index(p.point))
            for p in self.draw.panels
            if p.point in points
        )
        return replace(
            self,
            sets=(*self.sets, *self.fast.sets),
            constants={**self.constants, **self.fast.constants},
            vary={**self.vary, **self.fast.vary},
            seeds=self.fast.seeds or self.seeds,
            runs=kept,
            joined=tuple(name for name in self.joined if name in left),
            draw=replace(self.draw, panels=tuple(p for p in panels if p.runs)),
            claims=tuple(c for c in self.claims if c.id not in self.fast.skip),
        )

    def _fast_points(self) -> list[int]:
        """Which of the points the short version has, by what stands on the axis."""
        if not self.fast.vary or self.axis is None:
            return list(range(self.points))
        return [self.vary[self.axis].index(value) for value in self.fast.vary[self.axis]]


# ---------------------------------------------------------------------------------------------------- finding


def directories() -> list[Path]:
    """Where figure files are looked for: beside this module (an installed wheel), else in the checkout."""
    here = Path(__file__).resolve()
    return [here.parent / "data", here.parents[3] / "figures"]


def available(directory: Path | None = None) -> dict[str, Path]:
    """Every figure file by its id, in the order of the papers."""
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
    """One figure by its id, or by that of a figure that it covers too, in letters of either case."""
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
    """The three ids that are most like one that there is none of, and how to see them all."""
    by_upper = {known.upper(): known for known in files}
    near = [by_upper[found] for found in difflib.get_close_matches(figure_id.upper(), by_upper, n=3, cutoff=0.3)]
    hint = f"did you mean {' or '.join(filter(None, (', '.join(near[:-1]), near[-1])))}? " if near else ""
    return f"{hint}flowstamp figure list names all {len(files)}"


def matching(pattern: str, directory: Path | None = None) -> list[str]:
    """The ids that a pattern such as `R4.*` stands for: of figures, and of those that they cover too."""
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
    """One figure file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FigureError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FigureError(f"{path}: not TOML: {error}") from error
    return _figure(_Table(data, str(path)), path)


# ---------------------------------------------------------------------------------------------------- checking


class _Table:
    """A TOML table that is taken apart key by key: wrong types and keys that nobody asked for are errors."""

    def __init__(self, data: Mapping[str, Any], file: str, at: str = "") -> None:
        self.data, self.file, self.at = data, file, at
        self.taken: set[str] = set()

    def wrong(self, key: str, expected: str) -> FigureError:
        where = f"{self.at}.{key}" if self.at else key
        if key not in self.data:
            return FigureError(f"{self.file}: {where} is missing; expected {expected}")
        return FigureError(f"{self.file}: {where} = {_shown(self.data[key])}: expected {expected}")

    def take(self, key: str, kind: type | tuple[type, ...], expected: str, default: Any = ...) -> Any:
        self.taken.add(key)
        if key not in self.data and default is not ...:
            return default
        value = self.data.get(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.wrong(key, expected)
        return value

    def text(self, key: str, expected: str = "a text", default: Any = ...) -> str:
        value: str = self.take(key, str, expected, default)
        if key in self.data and not value.strip():
            raise self.wrong(key, f"{expected} that is not empty")
        return value

    def choice(self, key: str, choices: Iterable[str], default: Any = ...) -> str:
        expected = "one of " + ", ".join(choices)
        value = self.text(key, expected, default)
        if value not in choices:
            raise self.wrong(key, expected)
        return value

    def number(self, key: str, default: float) -> float:
        return float(self.take(key, (int, float), "a number", default))

    def limits(self, key: str, default: tuple[float | None, float | None]) -> tuple[float | None, float | None]:
        value = self.take(key, list, "two numbers", None)
        if value is None:
            return default
        if len(value) not in (1, 2) or not all(isinstance(v, int | float) for v in value):
            raise self.wrong(key, "the least and, if wanted, the largest value")
        return float(value[0]), float(value[1]) if len(value) > 1 else None

    def names(self, key: str, default: Any = ...) -> tuple[str, ...]:
        value = self.take(key, list, "a list of names", default if default is ... else list(default))
        if not all(isinstance(v, str) for v in value):
            raise self.wrong(key, "a list of names")
        return tuple(value)

    def table(self, key: str, default: Any = ...) -> _Table:
        return _Table(self.take(key, dict, "a table", default), self.file, f"{self.at}.{key}" if self.at else key)

    def tables(self, key: str) -> list[_Table]:
        value = self.take(key, list, f"[[{key}]] tables", [])
        if not all(isinstance(v, dict) for v in value):
            raise self.wrong(key, f"[[{key}]] tables")
        at = f"{self.at}.{key}" if self.at else key
        return [_Table(v, self.file, f"{at}[{v.get('id', v.get('name', n))}]") for n, v in enumerate(value)]

    def sets(self, key: str) -> Sets:
        return tuple((k, toml_value(v)) for k, v in self.take(key, dict, "a table of scenario keys", {}).items())

    def vary(self, key: str) -> dict[str, tuple[Any, ...]]:
        table = self.table(key, {})
        for k, values in table.data.items():
            if not isinstance(values, list) or not values:
                raise table.wrong(k, "a list of values, one for each run")
        lengths = {len(v) for v in table.data.values()}
        if len(lengths) > 1:
            raise self.wrong(key, f"lists of one length, not of {sorted(lengths)}")
        return {k: tuple(v) for k, v in table.data.items()}

    def constants(self) -> dict[str, float]:
        table = self.table("constants", {})
        for name in table.data:
            if not name.isidentifier():
                raise table.wrong(name, "a name of letters, digits and _, which claims can use")
        return {name: table.number(name, 0.0) for name in table.data}

    def done(self) -> None:
        for key in self.data:
            if key not in self.taken:
                raise self.wrong(key, f"no such key here, but one of {', '.join(sorted(self.taken))}")


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _figure(t: _Table, path: Path) -> FigureSpec:
    figure_id = t.text("id", "the figure's id")
    if figure_id != path.stem:
        raise t.wrong("id", f'the name of the file, "{path.stem}"')
    vary = t.vary("vary")
    reuse = tuple(_reuse(r) for r in t.tables("reuse"))
    measure = t.table("measure", {})
    links = measure.names("links", ["bottleneck"])
    axis = measure.text("axis", "a key of vary", default="") or next(iter(vary), None)
    if axis is not None and axis not in vary:
        raise measure.wrong("axis", "a key of vary")
    group = measure.text("group", "the name of a flow group", default="forward")
    split = measure.number("split_packets", 500.0)
    seeds = _seeds(measure, 1, 1)
    measure.done()
    runs = tuple(_run(r) for r in t.tables("runs"))
    if bool(runs) == bool(reuse):
        raise t.wrong("runs", "[[runs]] with a [scenario], or [[reuse]] of other figures' runs")
    places = {r.on for r in runs if r.theory is None}
    lab = t.take("lab", dict, "a lab, for runs on linux", ...) if "linux" in places else None
    packets = int(t.take("packets", int, "packets of each round", ...)) if "forwarding" in places else 0
    scenario = t.take("scenario", dict, "a scenario", ... if places == {"simulator"} else {})
    joined = t.names("joined") if reuse else ()
    if seeds > 1 and places != {"simulator"}:
        raise measure.wrong("seeds", "1, where not all is simulated and of this figure")
    names = [r.name for r in runs] or list(joined)
    constants = t.constants()
    for name in constants:
        if name in (*names, "x"):
            raise t.wrong("constants", f'names that nothing else has, not "{name}"')
    claims = tuple(_claim(c, names, constants) for c in t.tables("claims"))
    ids = [c.id for c in claims]
    if seeds == 1 and any(c.each_seed for c in claims):
        raise t.wrong("claims", "each_seed where measure.seeds is more than 1")
    if not ids or len(set(ids)) < len(ids):
        raise t.wrong("claims", "[[claims]], each with an id of its own")
    figure = FigureSpec(
        id=figure_id,
        also=tuple(t.names("also", [])),
        title=t.text("title"),
        paper=t.text("paper", "author, year, figure and section"),
        notes=t.text("notes", default=""),
        scenario=scenario,
        lab=lab,
        packets=packets,
        constants=constants,
        runs=runs,
        vary=vary,
        axis=axis,
        links=links,
        group=group,
        split=split,
        seeds=seeds,
        reuse=reuse,
        joined=joined,
        draw=_draw(t.table("draw"), names),
        claims=claims,
        fast=_fast(t.table("fast"), vary, ids, constants, names),
        path=path,
    )
    t.done()
    _check_runs(t, figure)
    figure.x()
    return figure


def _check_runs(t: _Table, figure: FigureSpec) -> None:
    """What runs vary of their own, what stands against a curve, and what the short version still has."""
    computed = {run.name for run in figure.runs if run.theory is not None}
    for panel, table in zip(figure.draw.panels, t.table("draw").tables("panels"), strict=True):
        if figure.draw.of(panel).x == "curve" and not set(panel.runs) <= computed:
            raise table.wrong("runs", f"of a panel against a curve, runs with theory: {', '.join(sorted(computed))}")
    for table, run in zip(t.tables("runs"), figure.runs, strict=True):
        if run.vary and {len(values) for values in run.vary.values()} != {figure.points}:
            raise table.wrong("vary", f"lists of {figure.points} values, as the figure's own")
        if run.vary and figure.fast.vary and figure.axis is not None:
            missing = [value for value in figure.fast.vary[figure.axis] if value not in figure.vary[figure.axis]]
            if missing:
                raise table.wrong("vary", f"fast.vary to have points of vary alone, not {_shown(missing[0])}")
        if run.where is not None:
            _check_where(table, figure, run)
    for claim in figure.claims:
        gone = [name for name in figure.fast.without if re.search(rf"\b{name}\b", claim.expr.text)]
        if gone and claim.id not in figure.fast.skip:
            raise t.table("fast").wrong("without", f"fast.skip to have {claim.id}, which is about {gone[0]}")


def _check_where(table: _Table, figure: FigureSpec, run: RunSpec) -> None:
    """That a run is at some of the points in both versions that have it, and nothing shows it against anything else."""
    against = {figure.draw.of(panel).x for panel in figure.draw.panels if run.name in panel.runs}
    if run.on != "simulator" or run.theory is not None or not figure.vary or against - {"vary"}:
        raise table.wrong("where", "of a run in the simulator that varies, in panels against what varies alone")
    shorter = figure.fast_version()
    for form in (figure, *(shorter for left in shorter.runs if left.name == run.name)):
        there = form.where(run)
        if there.dtype != np.bool_ or there.shape != (form.points,):
            raise table.wrong("where", "a condition on x, true or false at each point")
        if not np.any(there):
            version = "" if form is figure else " of the short version"
            raise table.wrong("where", f"true at some point{version}: {', '.join(f'{x:g}' for x in form.x())}")


def _run(t: _Table) -> RunSpec:
    name = t.text("name")
    if not name.isidentifier():
        raise t.wrong("name", "a name of letters, digits and _, which claims can use")
    run = RunSpec(
        name,
        t.text("label"),
        t.sets("set"),
        t.text("reused_as", "a name that claims of figures that reuse this run can use", default=""),
        _theory(t),
        cast("Where", t.choice("on", get_args(Where), "simulator")),
        t.vary("vary"),
        _where(t),
    )
    t.done()
    return run


def _theory(t: _Table) -> analytic.Theory | None:
    table = t.take("theory", dict, "a table", {})
    if not table:
        return None
    try:
        return analytic.curve(table)
    except TheoryTableError as error:
        raise _Table(table, t.file, f"{t.at}.theory").wrong(error.key, str(error)) from error


def _reuse(t: _Table) -> Reuse:
    reuse = Reuse(t.text("figure", "a figure's id"), _where(t))
    t.done()
    return reuse


def _where(t: _Table) -> Expression | None:
    where = t.text("where", "a condition on x", default="")
    return _expression(t, "where", (), vector=True) if where else None


def _expression(
    t: _Table, key: str, runs: Sequence[str], constants: Collection[str] = (), *, vector: bool = False
) -> Expression:
    try:
        return Expression(t.text(key, "an expression"), runs, measures(), constants=constants, vector=vector)
    except ExpressionError as error:
        raise FigureError(f"{t.file}: {t.at}.{key} = {_shown(t.data[key])}: {error}") from error


def _claim(t: _Table, runs: Sequence[str], constants: Collection[str]) -> Claim:
    expected = t.text("expected", 'a bound such as ">= 0.95"')
    tolerance = t.text("tolerance", 'a tolerance such as "0.02" or "5%"')
    try:
        bound = Bound.parse(expected, tolerance)
    except ValueError as error:
        key = "tolerance" if "tolerance" in str(error) else "expected"
        raise t.wrong(key, str(error)) from error
    claim = Claim(
        id=t.text("id"),
        paper=t.text("paper", "the paper's claim in our words"),
        expr=_expression(t, "expr", runs, constants),
        expected=bound,
        source=t.text("source", "where bound and tolerance come from"),
        explanation=t.text("explanation", "why our measurement differs", default="") or None,
        each_seed=t.take("each_seed", bool, "true or false", False),
    )
    t.done()
    return claim


def _seeds(t: _Table, default: int, least: int) -> int:
    seeds = int(t.take("seeds", int, "how often each point is run", default))
    if "seeds" in t.data and not least <= seeds <= 20:
        raise t.wrong("seeds", "1 to 20 runs of each point")
    return seeds


def _draw(t: _Table, runs: Sequence[str]) -> Draw:
    axis = _axis(t)
    panels = tuple(_panel(p, runs) for p in t.tables("panels"))
    if not panels:
        raise t.wrong("panels", "[[draw.panels]] tables")
    t.done()
    return Draw(axis, panels)


def _axis(t: _Table) -> Axis:
    x = cast("XAxis", t.choice("x", get_args(XAxis)))
    return Axis(
        x,
        t.text("xlabel", "a label with its unit"),
        cast("Scale", t.choice("xscale", get_args(Scale), "linear")),
        t.limits("xlim", (None, None)),
        t.choice("along", control.MEASURES) if x == "curve" else "",
    )


def _panel(t: _Table, runs: Sequence[str]) -> PanelSpec:
    shown = t.names("runs", runs)
    for name in shown:
        if name not in runs:
            raise t.wrong("runs", f"names of runs: {', '.join(runs)}")
    references = t.names("references", ())
    for name in references:
        if name not in fct.REFERENCES:
            raise t.wrong("references", f"names of formulas: {', '.join(fct.REFERENCES)}")
    published = tuple(_published(p, (*shown, *references)) for p in t.tables("published"))
    panel = PanelSpec(
        y=t.choice("y", measures()),
        ylabel=t.text("ylabel", "a label with its unit"),
        title=t.text("title", default=""),
        runs=shown,
        yscale=cast("Scale", t.choice("yscale", get_args(Scale), "linear")),
        ylim=t.limits("ylim", (0.0, None)),
        linthresh=t.number("linthresh", 1.0),
        average_s=t.number("average_s", 0.0),
        references=references,
        point=int(t.take("point", int, "the number of a point", 0)),
        per_x=t.take("per_x", bool, "true or false", False),
        flow=t.text("flow", "a flow's name, group.index", default=""),
        group=t.text("group", "a group's name", default=""),
        link=t.text("link", "a router link's name", default=""),
        published=published,
        axis=_axis(t) if "x" in t.data else None,
    )
    t.done()
    return panel


def _published(t: _Table, curves: Sequence[str]) -> Published:
    x, y = (tuple(map(float, t.take(axis, list, "a list of numbers", ...))) for axis in ("x", "y"))
    if len(x) != len(y) or not x:
        raise t.wrong("y", f"a number for each of the {len(x)} of x")
    times = t.choice("times", curves) if "times" in t.data else ""
    published = Published(t.text("label", default="paper"), x, y, times)
    t.done()
    return published


def _fast(
    t: _Table,
    vary: Mapping[str, Sequence[Any]],
    claims: Sequence[str],
    constants: Mapping[str, float],
    runs: Sequence[str],
) -> Fast:
    fast = Fast(
        t.text("reason", "why the short version still shows the same"),
        t.sets("set"),
        t.constants(),
        t.vary("vary"),
        _seeds(t, 0, 1),
        t.take("skip", dict, "claim = reason", {}),
        t.names("without", ()),
    )
    if any(name not in runs for name in fast.without) or (runs and set(fast.without) == set(runs)):
        raise t.wrong("without", f"some of the runs: {', '.join(runs)}")
    for key in fast.constants:
        if key not in constants:
            raise t.wrong("constants", f"names of [constants]: {', '.join(constants) or 'there are none'}")
    for key in fast.vary:
        if key not in vary:
            raise t.wrong("vary", f"keys of [vary]: {', '.join(vary) or 'there are none'}")
    if fast.vary and set(fast.vary) != set(vary):
        raise t.wrong("vary", f"all keys of [vary]: {', '.join(vary)}")
    reasons: Mapping[str, object] = fast.skip
    for claim, reason in reasons.items():
        if claim not in claims or not isinstance(reason, str) or not reason.strip():
            raise t.wrong("skip", f"claim = reason, of the claims {', '.join(claims)}")
    t.done()
    return fast


# ---------------------------------------------------------------------------------------------------- values


def axis_value(value: object, file: str, key: str) -> float:
    """A varied quantity as a number on the x axis: rates in Mb/s, times in ms, numbers as they are."""
    if isinstance(value, list) and value and all(item == value[0] for item in value):
        return axis_value(value[0], file, key)  # all links of a row
    if re.fullmatch(r"[0-9.]+(?:[eE][+-]?\d+)?", str(value)):
        return float(str(value))
    # Rounded to the engine's picosecond, so that 70 ms stand at 70.
    for kind, scale, digits in (("rate", 1e-6, 12), ("time", 1e3, 9)):
        try:
            return round(_flowstamp.quantity(kind, str(value)) * scale, digits)
        except _flowstamp.TheoryError:
            continue
    raise FigureError(f"{file}: {key}: {_shown(value)} cannot stand on an axis; expected a number, a rate or a time")


def toml_value(value: Any) -> str:
    """A value as TOML, tables and lists inline."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(k)} = {toml_value(v)}" for k, v in value.items()) + " }"
    raise TypeError(f"{value!r} has no place in a scenario")


def toml_text(table: Mapping[str, Any]) -> str:
    """A table as a TOML document."""
    return "".join(f"{json.dumps(key)} = {toml_value(value)}\n" for key, value in table.items())
