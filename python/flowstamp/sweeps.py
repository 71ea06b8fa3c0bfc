# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Parallel runs on all cores or many machines: a list of scenarios, or a grid over keys of one scenario."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flowstamp import _flowstamp, executors, machine, text
from flowstamp.errors import MissingPackageError, ResultsError, ResultsWarning, ScenarioError, translated
from flowstamp.executors import Job
from flowstamp.files import check_folder
from flowstamp.names import nearest, spelled
from flowstamp.overview import value as value_of
from flowstamp.points import Column, Points, key
from flowstamp.progress import watching
from flowstamp.results import Results
from flowstamp.scenario import Progress, Scenario, load, plain

if TYPE_CHECKING:
    import numpy as np
    import pandas
    import polars
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from flowstamp._flowstamp import Table

SEED = "seed"
KINDS = ("link", "group", "total")
UNITS = {"rate": "bps", "time": "s", "size": "bytes"}


def run_many(
    scenarios: Sequence[Scenario],
    *,
    seed: int | None = None,
    threads: int | None = None,
    memory: str | None = None,
    executor: str = executors.THREADS,
    progress: Progress | None = None,
) -> list[Results]:
    """Runs scenarios in parallel and returns their results in the same order.

    Raises `ScenarioError` before the first run starts if a scenario is invalid or does not fit into `memory`.

    Args:
        scenarios: scenarios to run.
        seed: replaces the seed of every scenario.
        threads: number of parallel runs; default one per core.
        memory: limit for all runs and their results together, as in `Scenario.run`. A run waits until it fits.
        executor: "threads" of this process, "processes", or "dask=ADDRESS" with the address of a scheduler.
        progress: callback for about ten calls per second. An exception that it raises stops the runs.
    """
    executors.check(executor)
    if executor == executors.THREADS:
        checked = [(one.to_toml(memory=memory), one.source, (), one.base_dir) for one in scenarios]
        with watching(progress, "runs") as told, translated():
            runs = _flowstamp.run_many(
                checked, seed=seed, threads=threads, memory=machine.memory(memory), progress=told
            )
        results = [Results(run) for run in runs]
    else:
        seeded = [one if seed is None else one.set(SEED, seed) for one in scenarios]
        limit = executors.memory_here(executor, memory)
        jobs = [Job.of(one, memory=limit) for one in seeded]
        found: dict[int, Results] = {}
        with watching(progress, "runs") as told:
            executors.run(jobs, found.__setitem__, executor=executor, threads=threads, memory=memory, progress=told)
        results = [found[number] for number in range(len(jobs))]
    for scenario, result in zip(scenarios, results, strict=True):
        scenario._warn(result)
    return results


@dataclass(frozen=True)
class Sweep:
    """Results over a grid. `to_pandas()` and `to_polars()` give frames."""

    keys: tuple[str, ...]
    """Varied keys: those of the grid, and `seed` if seeds were given."""
    points: tuple[dict[str, Any], ...]
    """Values of `keys`, one dictionary per run."""
    results: tuple[Results, ...]
    """Results, one per run, in the order of `points`."""
    kept: int = 0
    """Number of runs whose results came from the `keep` folder."""

    def rows(self) -> list[dict[str, Any]]:
        """Returns the summaries as a tidy table: one column per key, then kind, name, metric and value."""
        return list(self._rows())

    def _rows(self) -> Iterator[dict[str, Any]]:
        for point, results in zip(self.points, self.results, strict=True):
            for kind, name, metric, value in _metrics(results):
                yield {**point, "kind": kind, "name": name, "metric": metric, "value": value}

    def csv(self) -> str:
        """Returns `rows` as CSV text with a header."""
        text = io.StringIO()
        writer = csv.DictWriter(text, [*self.keys, "kind", "name", "metric", "value"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(self._rows())
        return text.getvalue()

    # ----------------------------------------------------------------------------------------------- as a table

    @cached_property
    def table(self) -> Table:
        """`rows` as a table in which keys with quantities are numbers; the column name ends with the unit.

        `dumbbell.rate` becomes `dumbbell.rate_bps`, `dumbbell.rtt` becomes `dumbbell.rtt_s`. Other values stay text.
        """
        return _flowstamp.Table(_columns(_axes(self.keys, self.points), self.results))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as an Arrow stream (PyCapsule interface)."""
        return self.table.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Returns `table` as a pandas frame. Needs flowstamp[pandas]."""
        return self.table.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Returns `table` as a polars frame. Needs flowstamp[polars]."""
        return self.table.to_polars()

    def to_xarray(self) -> Any:
        """Returns an `xarray.Dataset` with one dimension per key, named as in `table`, and one variable per metric.

        Variables have names such as `link.bottleneck.utilization` and `total.drops`. Missing values are NaN. Raises
        `MissingPackageError` without xarray.
        """
        try:
            import xarray
        except ImportError:
            raise MissingPackageError("to_xarray needs the package xarray; install it") from None
        import numpy as np

        axes = _axes(self.keys, self.points)
        coordinates = {name: list(dict.fromkeys(values)) for name, values in axes}
        places = [
            tuple(coordinates[name].index(values[run]) for name, values in axes) for run in range(len(self.points))
        ]
        shape = tuple(map(len, coordinates.values()))
        fields: dict[str, NDArray[np.float64]] = {}
        for place, results in zip(places, self.results, strict=True):
            for kind, name, metric, value in _metrics(results):
                field = ".".join(part for part in (kind, name, metric) if part)
                fields.setdefault(field, np.full(shape, np.nan))[place] = value
        return xarray.Dataset({name: (tuple(coordinates), field) for name, field in fields.items()}, coordinates)

    def values(self, metric: str, *, kind: str | None = None, name: str | None = None) -> NDArray[np.float64]:
        """Returns one metric as an array of shape (runs,), in the order of `points`. Missing values are NaN.

        Without `kind`, the metric is that of links, else of groups, else of the total. Without `name`, it is that of
        the link with the highest utilisation, or of the only group. Raises `ResultsError` if the metric does not exist
        or belongs to several groups.
        """
        import numpy as np

        kind, name = self._of(metric, kind, name)
        wanted = (kind, name, spelled(metric))
        found = ({row[:3]: row[3] for row in _metrics(results)} for results in self.results)
        return np.array([row.get(wanted, np.nan) for row in found])

    def _of(self, metric: str, kind: str | None, name: str | None) -> tuple[str, str]:
        if kind is not None and kind not in KINDS:
            raise ResultsError(f'kind: "{kind}" is not a kind; it must be link, group or total')
        known = dict.fromkeys(row[:3] for results in self.results for row in _metrics(results))
        fits = [row for row in known if (kind is None or row[0] == kind) and (name is None or row[1] == name)]
        of = [(k, n) for k, n, m in fits if m == spelled(metric)]
        if not of and fits:
            of_what = " ".join(part for part in (kind, name) if part)
            why = f"is not a metric of {of_what}" if of_what else "is not a metric"
            raise ResultsError(nearest(metric, dict.fromkeys(row[2] for row in fits), why))
        if not of:
            names = dict.fromkeys(row[1] for row in known if kind in (None, row[0]) and row[1])
            raise ResultsError(nearest(name or "", names, f"is not a {kind or 'name'}"))
        of = [one for one in of if one[0] == of[0][0]]
        if len(of) > 1 and of[0][0] == "link":
            use = {link: sum(results.links[link]["utilization"] for results in self.results) for _, link in of}
            return "link", max(use, key=lambda link: use[link])
        if len(of) > 1:
            raise ResultsError(f'"{metric}" has several values; give a name: {", ".join(one[1] for one in of)}')
        return of[0]

    # ----------------------------------------------------------------------------------------------- as a picture

    def heatmap(
        self,
        metric: str = "utilization",
        *,
        kind: str | None = None,
        name: str | None = None,
        x: str | None = None,
        y: str | None = None,
    ) -> Figure:
        """Draws a metric over two keys, by default the first two that vary, as the mean over seeds.

        `kind` and `name` are as in `values`. If more keys vary, select runs with `where` first; otherwise this raises
        `ResultsError`.
        """
        import numpy as np

        from flowstamp import plot

        x, y = self._two(x, y)
        kind, name = self._of(metric, kind, name)
        columns, rows = ([*dict.fromkeys(value_of(point[at]) for point in self.points)] for at in (x, y))
        total, runs = np.zeros((2, len(rows), len(columns)))
        for point, value in zip(self.points, self.values(metric, kind=kind, name=name), strict=True):
            place = rows.index(value_of(point[y])), columns.index(value_of(point[x]))
            total[place] += value
            runs[place] += 1
        with np.errstate(invalid="ignore"):
            mean = total / runs
        label = text.metric(metric)
        return plot.heatmap(mean, (x, columns), (y, rows), label, f"{label} of {name}" if name else label)

    def _two(self, x: str | None, y: str | None) -> tuple[str, str]:
        """Chooses the two keys of a heatmap."""
        varied = self._varied()
        free = [at for at in varied if at not in (x, y)]
        x = self._known(x) if x is not None else free.pop(0) if free else None
        y = self._known(y) if y is not None else free.pop(0) if free else None
        if x is None or y is None or x == y:
            raise ResultsError(
                f"a heatmap needs two keys that vary; {', '.join(varied) or 'none'} does here; use lines() instead"
            )
        if free:
            raise ResultsError(f"{', '.join(free)} varies too; choose by where({free[0]!r}, ...), or draw lines")
        return x, y

    def lines(
        self,
        metric: str = "utilization",
        *,
        kind: str | None = None,
        name: str | None = None,
        x: str | None = None,
    ) -> Figure:
        """Draws a metric over one key, by default the first that varies, with one line per value of the other keys.

        `kind` and `name` are as in `values`. Several seeds give their mean with its 95% confidence interval. Raises
        `ResultsError` if no key varies.
        """
        import numpy as np

        from flowstamp import plot, theory

        varied = self._varied()
        x = self._known(x) if x is not None else next(iter(varied), None)
        if x is None:
            raise ResultsError("no key varies: there is nothing to draw a line over")
        kind, name = self._of(metric, kind, name)
        others = [at for at in varied if at != x]
        shown = list(dict.fromkeys(value_of(point[x]) for point in self.points))
        column, at_x = _axis(x, [point[x] for point in self.points])
        numbers = not isinstance(at_x[0], str)
        curves: dict[str, dict[float, list[float]]] = {}
        ticks: dict[float, str] = {}
        for run, value in enumerate(self.values(metric, kind=kind, name=name)):
            point = self.points[run]
            label = ", ".join(f"{other.rsplit('.', 1)[-1]} {value_of(point[other])}" for other in others)
            where = float(at_x[run]) if numbers else float(shown.index(value_of(point[x])))
            ticks[where] = value_of(point[x])
            curves.setdefault(label, {}).setdefault(where, []).append(float(value))
        several = any(len(found) > 1 for line in curves.values() for found in line.values())

        def half(found: Sequence[float]) -> float:
            return theory.batch_means(found, len(found), 0.95).half_width if len(found) > 1 else 0.0

        drawn = []
        for style, (label, line) in enumerate(curves.items()):
            at = sorted(line)
            error = np.array([half(line[one]) for one in at]) if several else None
            drawn.append(
                plot.Curve(label, np.array(at), np.array([np.mean(line[one]) for one in at]), style, half=error)
            )
        low, high = min(ticks), max(ticks)
        scale: plot.Scale = "log" if numbers and low > 0 and high >= 20 * low else "linear"
        # Up to eight values, the ticks show the values as the user wrote them.
        written = sorted(ticks.items()) if len(ticks) <= 8 else []
        label = text.metric(metric)
        panel = plot.Panel(label, drawn, title=f"{label} of {name}" if name else label, legend=len(drawn) > 1)
        return plot.stack(plot.Stack(x if written else column, [panel], xscale=scale, xticks=written))

    def where(self, key: str, *values: object) -> Sweep:
        """Returns the runs whose `key` has one of these values. Raises `ResultsError` if there is none."""
        self._known(key)
        there = [number for number, point in enumerate(self.points) if point[key] in values]
        if not there:
            known = ", ".join(dict.fromkeys(repr(point[key]) for point in self.points))
            raise ResultsError(f"{key}: no run has {', '.join(map(repr, values))}; there are {known}")
        return Sweep(self.keys, tuple(self.points[n] for n in there), tuple(self.results[n] for n in there))

    def _known(self, key: str) -> str:
        if key not in self.keys:
            raise ResultsError(nearest(key, self.keys, "is not a key"))
        return key

    def _varied(self) -> list[str]:
        """Returns the keys with several values, except the seed."""
        return [key for key in self.keys if key != SEED and len({value_of(point[key]) for point in self.points}) > 1]

    def _repr_html_(self) -> str:
        from flowstamp import notebook

        return notebook.sweep(self)

    def _repr_png_(self) -> bytes | None:
        from flowstamp import notebook

        return notebook.sweep_png(self)

    def __repr__(self) -> str:
        return f"<Sweep of {len(self.points)} runs over {', '.join(self.keys)}>"


def sweep(
    scenario: Scenario | str | Path,
    grid: Mapping[str, Sequence[Any]],
    *,
    seeds: Sequence[int] = (),
    threads: int | None = None,
    memory: str | None = None,
    executor: str = executors.THREADS,
    keep: str | Path | None = None,
    tables: bool = False,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """Runs a scenario at every point of a grid. Raises `ScenarioError` before the first run if an argument is invalid.

    Args:
        scenario: the scenario to run, or the path of its file.
        grid: values for each dotted key: `{"dumbbell.rate": ["20Mbps", "80Mbps"], "flows.xcp.count": [1, 10]}`.
        seeds: runs every point once per seed; default once, with the scenario's seed.
        threads: number of parallel runs; default one per core. Dask ignores it.
        memory: limit for all runs together, as in `run_many`; on a Dask cluster, limit for each run.
        executor: "threads" of this process, "processes", or "dask=ADDRESS" with the address of a scheduler.
        keep: folder for one Parquet file per point with summary and manifest. A point with a file is not run again.
        tables: also writes each run's series and flows into the `keep` folder.
        fresh: runs every point again, even if its file exists.
        progress: callback for about ten calls per second. An exception that it raises stops the runs; kept points stay.
    """
    executors.check(executor)
    if tables and keep is None:
        raise ScenarioError("tables: are for points that are kept; give a folder as keep")
    axes: dict[str, Sequence[Any]] = dict(grid)
    if seeds:
        if SEED in axes:
            raise ScenarioError("grid: seed: is varied twice; give it in the grid or as seeds, not both")
        axes[SEED] = seeds
    for axis, values in axes.items():
        if isinstance(values, str) or not len(values):
            raise ScenarioError(f"grid: {axis}: {values!r} must be a list of at least one value")
        axes[axis] = [plain(value) for value in values]
    points = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    loaded = scenario if isinstance(scenario, Scenario) else load(scenario)
    scenarios = []
    for point in points:
        varied = loaded
        for axis, value in point.items():
            varied = varied.set(axis, value)
        scenarios.append(varied)
    if keep is None:
        results = run_many(scenarios, threads=threads, memory=memory, executor=executor, progress=progress)
        swept = Sweep(tuple(axes), tuple(points), tuple(results))
    else:
        check_folder(Path(keep))
        limit = executors.memory_here(executor, memory)
        jobs = [Job.of(one, memory=limit) for one in scenarios]
        there = Points(Path(keep), tables=tables)
        swept = _kept(points, jobs, there, executor, threads, memory, fresh=fresh, progress=progress)
        for one, result in zip(scenarios, swept.results, strict=True):
            one._warn(result)
    _warn_of_seeds(swept, loaded.source)
    return swept


def _kept(
    points: Sequence[dict[str, Any]],
    jobs: Sequence[Job],
    there: Points,
    executor: str,
    threads: int | None,
    memory: str | None,
    *,
    fresh: bool,
    progress: Progress | None,
) -> Sweep:
    """Runs the points that are not in the cache."""
    keys = tuple(points[0])
    axes = _axes(keys, points)
    names = [key(job) for job in jobs]
    results = {} if fresh else {name: found for name in dict.fromkeys(names) if (found := there.get(name))}
    kept = sum(name in results for name in names)
    first: dict[str, int] = {}  # equal points, such as from a value given twice in the grid, run once
    for number, name in enumerate(names):
        if name not in results:
            first.setdefault(name, number)
    missing = list(first.values())

    def done(number: int, result: Results) -> None:
        point = missing[number]
        here = [(name, values[point : point + 1]) for name, values in axes]
        results[names[point]] = there.put(names[point], _columns(here, [result]), result)

    if missing:
        with watching(progress, "sweep") as told:
            executors.run(
                [jobs[number] for number in missing],
                done,
                executor=executor,
                threads=threads,
                memory=memory,
                tables=there.tables,
                progress=told,
            )
    return Sweep(keys, tuple(points), tuple(results[name] for name in names), kept)


def _warn_of_seeds(swept: Sweep, source: str) -> None:
    """Warns if several seeds gave the same results."""
    if SEED not in swept.keys:
        return
    found: dict[str, set[str]] = {}
    seeds = set()
    for point, result in zip(swept.points, swept.results, strict=True):
        seeds.add(point[SEED])
        rest = repr([value for at, value in point.items() if at != SEED])
        summary = {part: value for part, value in result.summary.items() if part != SEED}
        found.setdefault(rest, set()).add(hashlib.sha256(json.dumps(summary).encode()).hexdigest())
    if len(seeds) > 1 and all(len(digests) == 1 for digests in found.values()):
        message = f"{source}: {len(seeds)} seeds gave the same results: nothing in it is random, and one is enough"
        warnings.warn(message, ResultsWarning, stacklevel=3)


# ----------------------------------------------------------------------------------------------------- the table

Row = tuple[str, str, str, float]


def _metrics(results: Results) -> Iterator[Row]:
    """Yields kind, name, metric and value of all numbers of a summary, except those of flows and cells."""
    tables: list[tuple[str, str, Mapping[str, Any]]] = [
        *(("link", name, values) for name, values in results.links.items()),
        *(("group", name, values) for name, values in results.groups.items()),
        ("total", "", results.summary["total"]),
    ]
    for kind, name, values in tables:
        for metric, value in _numbers(values):
            yield kind, name, metric, value


def _numbers(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    """Yields the numbers of a table and of its nested tables, the latter with dotted names: `fct_s.all.mean`."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{above}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{above}{name}", value


def _axes(keys: Sequence[str], points: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Returns one column per key, with the value of each point."""
    return [_axis(key, [point[key] for point in points]) for key in keys]


def _axis(key: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    """Returns a key's column: integers, floats, or text. Quantities become floats, and the name gets the unit."""
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return key, list(values)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return key, [float(value) for value in values]
    if all(isinstance(value, str) for value in values):
        for kind, unit in UNITS.items():
            try:
                return f"{key}_{unit}", [_flowstamp.quantity(kind, value) for value in values]
            except _flowstamp.TheoryError:
                continue
    return key, [value_of(value) for value in values]


def _columns(axes: Iterable[tuple[str, list[Any]]], results: Sequence[Results]) -> list[Column]:
    """Returns the columns of the tidy table; each row repeats its run's values of the axes."""
    found = [list(_metrics(result)) for result in results]
    columns: list[Column] = [
        (name, [value for value, rows in zip(values, found, strict=True) for _ in rows]) for name, values in axes
    ]
    rows = [row for of_run in found for row in of_run]
    columns += [(name, [str(row[at]) for row in rows]) for at, name in enumerate(("kind", "name", "metric"))]
    columns.append(("value", [float(row[3]) for row in rows]))
    return columns
