# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Structures of a figure's file: scenario, runs, picture and claims. Each table checks its own values."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from msgspec import field
from msgspec.structs import replace
from numpy.typing import NDArray

from flowstamp import _flowstamp
from flowstamp.figures import analytic, control, fct, stored
from flowstamp.figures.claims import Bound, Expression, ExpressionError
from flowstamp.figures.measures import measures
from flowstamp.figures.tables import FigureError, Table, TableError, said, shown
from flowstamp.plot import Scale
from flowstamp.scenario import toml, toml_text

XAxis = Literal["vary", "link", "flow", "time", "figure", "size", "value", "rtt", "curve"]
Of = Literal["paper", "ours", "identity"]
"""The origin of a claim: the paper; the project, for a variant or a goal; or arithmetic."""
Where = Literal["simulator", "linux", "forwarding"]
Sets = tuple[tuple[str, str], ...]
"""Overrides for the native module: dotted keys and TOML values."""

FILLED = r"\S"
Text: TypeAlias = Annotated[str, said("a text", pattern=FILLED)]
Label: TypeAlias = Annotated[str, said("a label with its unit", pattern=FILLED)]
Condition: TypeAlias = Annotated[str, said("a condition on x", pattern=FILLED)]
Names: TypeAlias = tuple[str, ...]
Numbers: TypeAlias = Annotated[tuple[float, ...], said("a list of numbers")]
Limits: TypeAlias = Annotated[
    tuple[float, ...], said("the least and, if wanted, the largest value", min_length=1, max_length=2)
]
Values: TypeAlias = Annotated[tuple[Any, ...], said("a list of values, one for each run", min_length=1)]
Varied: TypeAlias = dict[str, Values]
Settings: TypeAlias = Annotated[dict[str, Any], said("a table of scenario keys")]
Constants: TypeAlias = dict[str, float]
Seeds: TypeAlias = Annotated[int, said("1 to 20 runs of each point", ge=1, le=20)]

SEEDS_APART = 1000
A_NAME = "a name of letters, digits and _, which claims can use"


def overrides(settings: Mapping[str, Any]) -> Sets:
    """Converts a table of scenario keys to overrides."""
    return tuple((key, toml(value, key)) for key, value in settings.items())


def condition(text: str) -> Expression:
    """Parses an expression that selects points."""
    return Expression(text, (), measures(), vector=True)


def _check_expression(where: str | None) -> None:
    try:
        condition(where or "x")
    except ExpressionError as error:
        raise TableError("where", reason=str(error)) from error


def _check_lengths(vary: Varied) -> None:
    lengths = sorted({len(values) for values in vary.values()})
    if len(lengths) > 1:
        raise TableError("vary", f"lists of one length, not of {lengths}")


def _check_choice(key: str, chosen: str, choices: Collection[str]) -> None:
    if chosen not in choices:
        raise TableError(key, f"one of {', '.join(choices)}")


class RunSpec(Table, frozen=True):
    """One curve: the scenario with some keys changed, at every value of `vary`."""

    name: Text
    label: Text
    set: Settings = field(default_factory=dict)
    reused_as: Annotated[str, said("a name that claims of figures that reuse this run can use", pattern=FILLED)] = ""
    """Name of the run in figures that reuse it; empty if they cannot."""
    theory: dict[str, Any] | None = None
    """Parameters of a computed curve; None for a run."""
    on: Where = "simulator"
    by_links: bool = False
    """Whether each link runs alone, as `flowstamp run --by-links` does."""
    like: str = ""
    """Name of the run whose colour this one has; empty for a colour of its own."""
    vary: Varied = field(default_factory=dict)
    """The run's own values at the points of the figure."""
    where: Condition | None = None
    """Points of the figure at which it runs; None means all."""

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise TableError("name", A_NAME)
        _check_lengths(self.vary)
        _check_expression(self.where)
        if self.theory is not None:
            try:
                analytic.curve(self.theory)
            except TableError as error:
                raise error.within("theory") from error


class Reuse(Table, frozen=True):
    """Runs of another figure, at all its points or those that `where` selects."""

    figure: Annotated[str, said("a figure's id", pattern=FILLED)]
    where: Condition | None = None

    def __post_init__(self) -> None:
        _check_expression(self.where)


class Measure(Table, frozen=True):
    """Links and group that are measured, and number of runs per point."""

    links: Names = ("bottleneck",)
    axis: Annotated[str, said("a key of vary", pattern=FILLED)] | None = None
    group: Annotated[str, said("the name of a flow group", pattern=FILLED)] = "forward"
    split_packets: float = 500.0
    seeds: Seeds = 1


class Published(Table, frozen=True):
    """Published values."""

    x: Numbers
    y: Numbers
    label: Text = "paper"
    times: str = ""
    """A run or formula of the panel; the values `y` are multiples of it."""
    computed: bool = False
    """Whether the values follow from a formula instead of being printed in the paper."""

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or not self.x:
            raise TableError("y", f"a number for each of the {len(self.x)} of x")


class Axis(Table, frozen=True):
    """The x axis of curves."""

    x: XAxis | None = None
    xlabel: Label = ""
    xscale: Scale = "linear"
    xlim: Limits = ()
    xticks: Names = ()
    """Labels of the ticks at 1, 2, ..., for points that are numbered."""
    along: str = ""
    """For computed curves, the measure on the x axis."""

    def __post_init__(self) -> None:
        if self.x is not None and not self.xlabel:
            raise TableError("xlabel", "a label with its unit")
        if self.x == "curve":
            _check_choice("along", self.along, (*control.MEASURES, *stored.MEASURES))
        for key in ("along",) if self.x else ("along", "xlabel", "xlim", "xticks"):
            if getattr(self, key) and self.x != "curve":
                raise TableError(key, f"no such key here, where x is {'missing' if self.x is None else self.x}")

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """Start and end of the axis; None where not given."""
        return ends(self.xlim)


def ends(limits: Sequence[float]) -> tuple[float | None, float | None]:
    """Returns the smallest and the largest value; None where not given."""
    return limits[0] if limits else None, limits[1] if len(limits) > 1 else None


class PanelSpec(Axis, frozen=True, kw_only=True):
    """One panel of the picture: a measure and the runs that show it.

    The keys of `Axis` are only for a panel with its own x axis.
    """

    y: str
    ylabel: Label
    title: str = ""
    runs: Names = ()
    """Runs to show; empty in a file means all."""
    yscale: Scale = "linear"
    ylim: Limits = (0.0,)
    linthresh: float = 1.0
    average_s: float = 0.0
    """Averaging interval in seconds; 0 shows the samples themselves."""
    references: Names = ()
    """Formulas of flow completion times to draw."""
    point: int = 0
    """Point of the runs, for panels against size or time."""
    per_x: bool = False
    """Whether each value is divided by its x, in panels against `vary`."""
    flow: Annotated[str, said("a flow's name, group.index", pattern=FILLED)] = ""
    """The only flow to show, in panels of flows over time; empty means all."""
    group: Annotated[str, said("a group's name", pattern=FILLED)] = ""
    """The measured group; empty means `measure.group`."""
    link: Annotated[str, said("a router link's name", pattern=FILLED)] = ""
    """The measured link; empty means `measure.links`."""
    published: tuple[Published, ...] = ()
    """Published values, drawn above the curves."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice("y", self.y, measures())
        if not set(self.references) <= set(fct.REFERENCES):
            raise TableError("references", f"names of formulas: {', '.join(fct.REFERENCES)}")


class Draw(Axis, frozen=True, kw_only=True):
    """The picture: panels in a column with a shared x axis."""

    panels: Annotated[tuple[PanelSpec, ...], said("[[draw.panels]] tables", min_length=1)]

    def __post_init__(self) -> None:
        if self.x is None:
            raise TableError("x", f"one of {', '.join(XAxis.__args__)}")  # type: ignore[attr-defined]
        super().__post_init__()

    def of(self, panel: PanelSpec) -> Axis:
        """Returns the x axis of a panel."""
        return panel if panel.x else self


class Claim(Table, frozen=True):
    """A claim of the paper, and how it is measured."""

    id: Text
    paper: Annotated[str, said("the paper's claim in our words", pattern=FILLED)]
    expr: Annotated[str, said("an expression", pattern=FILLED)]
    expected: Annotated[str, said('a bound such as ">= 0.95"', pattern=FILLED)]
    tolerance: Annotated[str, said('a tolerance such as "0.02" or "5%"', pattern=FILLED)]
    source: Annotated[str, said("where bound and tolerance come from", pattern=FILLED)]
    explanation: Annotated[str, said("why our measurement differs", pattern=FILLED)] | None = None
    each_seed: bool = False
    """Whether the expression is evaluated per seed and then averaged."""
    of: Of | None = None
    """The origin of the claim, if `source` does not say so."""
    headline: bool = False
    """Whether the claim is one of the paper's main results, which open its page."""
    unit: str = ""
    """The unit of the value, if the expression does not show it."""
    result: str = ""
    """Name of the published result, if several claims of the figure share it and their words differ."""

    def __post_init__(self) -> None:
        try:
            _ = self.bound
        except ValueError as error:
            raise TableError("tolerance" if "tolerance" in str(error) else "expected", str(error)) from error

    @property
    def bound(self) -> Bound:
        """The bound on the measured value."""
        return Bound.parse(self.expected, self.tolerance)

    @property
    def whose(self) -> Of:
        """The origin of the claim: `of`; or else ours, if the source starts with that word; or else the paper."""
        return self.of or ("ours" if self.source.strip().startswith("ours") else "paper")


class Fast(Table, frozen=True):
    """The shorter version for CI."""

    reason: Annotated[str, said("why the short version still shows the same", pattern=FILLED)]
    set: Settings = field(default_factory=dict)
    constants: Constants = field(default_factory=dict)
    vary: Varied = field(default_factory=dict)
    seeds: Seeds | None = None
    """Runs per point; None means as in the full version."""
    skip: dict[str, Annotated[str, said("a reason", pattern=FILLED)]] = field(default_factory=dict)
    """Claims to omit, each with the reason."""
    without: Names = ()
    """Runs to omit."""

    def __post_init__(self) -> None:
        _check_lengths(self.vary)


class FigureSpec(Table, frozen=True, kw_only=True):
    """The file of one published figure."""

    id: Annotated[str, said("the figure's id", pattern=FILLED)]
    title: Text
    paper: Annotated[str, said("author, year, figure and section", pattern=FILLED)]
    draw: Draw
    claims: tuple[Claim, ...]
    fast: Fast
    also: Names = ()
    """Ids of other figures of the paper that this one covers."""
    notes: Text = ""
    scenario: Annotated[dict[str, Any], said("a scenario")] | None = None
    lab: Annotated[dict[str, Any], said("a lab, for runs on linux")] | None = None
    """Lab for the runs on Linux."""
    packets: Annotated[int, said("packets of each round")] | None = None
    """Packets per round, for runs that measure forwarding."""
    constants: Constants = field(default_factory=dict)
    """Named numbers for claims."""
    runs: tuple[RunSpec, ...] = ()
    vary: Varied = field(default_factory=dict)
    measure: Measure = Measure()
    reuse: tuple[Reuse, ...] = ()
    joined: Names = ()
    """Names in claims for reused runs (`RunSpec.reused_as`)."""
    path: Path = field(name="$path")
    sets: Sets = field(name="$sets", default=())
    """Overrides of the short version."""
    experiment: tuple[tuple[str, str, str], ...] = field(name="$experiment", default=())
    """Overrides of `flowstamp figure --set`: a run's name (empty: all runs), key and value."""

    def __post_init__(self) -> None:
        _check_lengths(self.vary)

    def changed(self, sets: Sets) -> FigureSpec:
        """Returns an experiment: the figure with overridden keys. A key that starts with a run's name changes that run.

        Raises `FigureError` if no run would change, or if the key is on the x axis.
        """
        if self.measured or not self.simulated:
            raise FigureError(f"--set: {self.id} has no simulated runs of its own")
        names, changes = [run.name for run in self.simulated], []
        for key, value in sets:
            run, _, rest = key.partition(".")
            run, rest = (run, rest) if run in names else ("", key)
            if rest == self.axis:
                raise FigureError(
                    f"--set: {rest} is on the x axis of {self.id}; change it in a copy of the figure's file"
                )
            changes.append((run, rest, value))
        what = ", ".join(f"{key}={value}" for key, value in sets)
        return replace(self, title=f"{self.title} (experiment: {what})", experiment=tuple(changes))

    @property
    def axis(self) -> str | None:
        """The key of `vary` on the x axis."""
        return self.measure.axis or next(iter(self.vary), None)

    @property
    def seeds(self) -> int:
        """Number of runs per point, each with its own seed."""
        return self.measure.seeds

    @property
    def simulated(self) -> list[RunSpec]:
        """The simulated runs."""
        return [run for run in self.runs if run.theory is None and run.on == "simulator"]

    @property
    def points(self) -> int:
        """Number of points of each curve."""
        return len(next(iter(self.vary.values()), (None,)))

    @property
    def measured(self) -> bool:
        """Whether some runs are measured on this machine's kernel; such results are not reproducible from the seed."""
        return any(run.on != "simulator" for run in self.runs)

    @property
    def seed(self) -> int:
        """The default seed of the runs."""
        return int((self.scenario or {}).get("seed", 1))

    @property
    def names(self) -> Names:
        """Names of the runs in claims and panels."""
        return tuple(run.name for run in self.runs) or self.joined

    def expression(self, claim: Claim) -> Expression:
        """Parses the expression of a claim. Raises `ExpressionError` if it is invalid."""
        return Expression(claim.expr, self.names, measures(), constants=self.constants)

    def x(self) -> list[float]:
        """Returns the x value of each point. Raises `FigureError` if a varied value is not a number, rate or time."""
        if self.axis is not None:
            return [axis_value(v, str(self.path), f"vary.{self.axis}") for v in self.vary[self.axis]]
        return [float(n + 1) for n in range(len(self.measure.links))]

    def where(self, run: RunSpec) -> NDArray[np.bool_]:
        """Returns at which points a run takes place."""
        if run.where is None:
            return np.ones(self.points, np.bool_)
        there: NDArray[np.bool_] = condition(run.where).evaluate({}, np.array(self.x()))
        return there

    def job(self, run: RunSpec, point: int, seed: int | None = None, again: int = 0) -> tuple[str, str, Sets, str]:
        """Returns the scenario of a run at a point, as `_flowstamp.run_many` takes it.

        A given `seed` replaces the first seed; if seeds vary, the others shift by the same amount. `again` numbers the
        runs of a point, whose seeds are `SEEDS_APART` apart.
        """
        vary = {**self.vary, **run.vary}
        if seed is not None or again:
            seeds = vary.get("seed", (self.seed,) * self.points)
            later = SEEDS_APART * again + (0 if seed is None else seed - seeds[0])
            vary["seed"] = tuple(own + later for own in seeds)
        varied = overrides({key: values[point] for key, values in vary.items()})
        source = f"{self.path.name} [scenario] run {run.name}"
        tried = ((key, value) for name, key, value in self.experiment if name in ("", run.name))
        sets = (*self.sets, *overrides(run.set), *varied, *tried)
        return toml_text(self.scenario or {}), source, sets, str(self.path.parent)

    def fast_version(self) -> FigureSpec:
        """Returns the short version of the figure. Its overrides replace keys that runs vary."""
        fast = self.fast
        runs = tuple(
            replace(
                run,
                vary={
                    key: tuple(values[point] for point in self._fast_points())
                    for key, values in run.vary.items()
                    if key not in fast.set
                },
            )
            for run in self.runs
            if run.name not in fast.without
        )
        left = [name for name in (*(run.name for run in self.runs), *self.joined) if name not in fast.without]
        points = self._fast_points() if any(panel.point for panel in self.draw.panels) else [0]
        panels = tuple(
            replace(p, runs=tuple(name for name in p.runs if name in left), point=points.index(p.point))
            for p in self.draw.panels
            if p.point in points
        )
        return replace(
            self,
            sets=(*self.sets, *overrides(fast.set)),
            constants={**self.constants, **fast.constants},
            vary={**self.vary, **fast.vary},
            measure=replace(self.measure, seeds=fast.seeds or self.seeds),
            runs=runs,
            joined=tuple(name for name in self.joined if name in left),
            draw=replace(self.draw, panels=tuple(p for p in panels if p.runs)),
            claims=tuple(c for c in self.claims if c.id not in fast.skip),
        )

    def _fast_points(self) -> list[int]:
        """Returns the indices of the points in the short version, found by their values on the x axis."""
        if not self.fast.vary or self.axis is None:
            return list(range(self.points))
        return [self.vary[self.axis].index(value) for value in self.fast.vary[self.axis]]


def axis_value(value: object, file: str, key: str) -> float:
    """Converts a varied quantity to a number on the x axis: rates in Mb/s, times in ms, sizes in kB, else unchanged.

    Raises `FigureError` for any other value.
    """
    if isinstance(value, list) and value and all(item == value[0] for item in value):
        return axis_value(value[0], file, key)  # equal values for all links of a parking lot
    if re.fullmatch(r"[0-9.]+(?:[eE][+-]?\d+)?", str(value)):
        return float(str(value))
    # Rounding to the engine's picosecond puts 70 ms exactly at 70.
    for kind, scale, digits in (("rate", 1e-6, 12), ("time", 1e3, 9), ("size", 1e-3, 9)):
        try:
            return round(_flowstamp.quantity(kind, str(value)) * scale, digits)
        except _flowstamp.TheoryError:
            continue
    raise FigureError(
        f"{file}: {key}: {shown(value)} cannot stand on an axis; expected a number, a rate, a time or a size"
    )
