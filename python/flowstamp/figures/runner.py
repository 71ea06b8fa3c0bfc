# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs a figure's scenarios, measures its claims and draws it."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np

from flowstamp import _flowstamp, executors, machine, plot
from flowstamp.errors import FlowstampError, translated
from flowstamp.figures import fct
from flowstamp.figures.analytic import Computed
from flowstamp.figures.claims import ExpressionError, RunValues
from flowstamp.figures.measured import MeasurementError, NotMeasuredError, Say, forwarding, labs
from flowstamp.figures.measures import MANY, Finished, Floats, Joined, RunSet, kept, pooled
from flowstamp.figures.spec import Axis, Claim, Draw, FigureError, FigureSpec, PanelSpec, RunSpec, Sets, available, load
from flowstamp.files import write_whole
from flowstamp.results import Results

Status = Literal["holds", "differs", "fails", "skipped", "invalid"]
Progress = Callable[[int, int, float, float, int], None]
_At = tuple[str, int, int]
"""A run of a figure: its curve, its point and how often that was run before."""


MARKED = 100
"""More points of a computed curve than these are a line."""

AHEAD = 16
"""Runs of so many figures at most are begun before their turn, as what they give waits in memory."""


@dataclass(frozen=True)
class Verdict:
    """A claim and what came out."""

    claim: Claim
    measured: float | None
    problem: str = ""
    untold: Literal["skipped", "invalid"] | None = None
    """Of a figure that could not be measured."""

    @property
    def status(self) -> Status:
        """`holds`; `differs` if it does not and the file explains why; else `fails`. Or nothing could be said.

        No explanation covers what is no finite number: it would explain whatever comes.
        """
        if self.untold:
            return self.untold
        if self.problem or self.measured is None or not math.isfinite(self.measured):
            return "fails"
        if self.claim.expected.holds(self.measured):
            return "holds"
        return "differs" if self.claim.explanation else "fails"

    def as_json(self) -> dict[str, Any]:
        """The claim as `--json` prints it."""
        claim = self.claim
        finite = self.measured is not None and math.isfinite(self.measured)
        document = {
            "id": claim.id,
            "paper": claim.paper,
            "expected": claim.expected.expected,
            "measured": self.measured if finite else None,
            "tolerance": claim.expected.tolerance,
            "source": claim.source,
            "status": self.status,
            "holds": None if self.untold else self.status == "holds",
        }
        if self.problem:
            document["problem"] = self.problem
        if claim.explanation:
            document["explanation"] = claim.explanation
        return document


@dataclass(frozen=True)
class Outcome:
    """A figure that was run."""

    figure: FigureSpec
    wall_s: float
    verdicts: Sequence[Verdict]
    pictures: Sequence[Path]
    """What was written of it: pictures, and completion times by size."""
    untold: NotMeasuredError | None = None
    notes: Sequence[str] = ()
    changes: Sequence[str] = ()
    """What is not as `expected.json` has it."""
    kept: bool = False
    """It was run before, and what came then stands in the folder."""

    def as_json(self) -> dict[str, Any]:
        """The figure as `--json` prints it."""
        document: dict[str, Any] = {"id": self.figure.id, "wall_s": round(self.wall_s, 3)}
        if self.kept:
            document["kept"] = True
        if self.untold:
            document |= {"status": self.untold.status, "reason": str(self.untold)}
        if self.notes:
            document["notes"] = list(self.notes)
        if self.changes:
            document["changes"] = list(self.changes)
        return document | {"claims": [v.as_json() for v in self.verdicts]}


def _simulated_of(spec: FigureSpec) -> list[RunSpec]:
    return [run for run in spec.runs if run.theory is None and run.on == "simulator"]


class StoppedError(Exception):
    """Nobody waits for these runs any more."""


class _Begun:
    """Runs of a figure in a thread of their own, begun before anyone waits for them."""

    def __init__(self, pool: ThreadPoolExecutor, execute: Callable[[Progress], dict[str, RunSet]]) -> None:
        self._progress: Progress | None = None
        self._stopped = False
        self._runs: Future[dict[str, RunSet]] = pool.submit(execute, self._tell)

    def _tell(self, run: int, runs: int, simulated_s: float, duration_s: float, events: int) -> None:
        if self._stopped:
            raise StoppedError
        if self._progress is not None:
            self._progress(run, runs, simulated_s, duration_s, events)

    def wait(self, progress: Progress | None) -> dict[str, RunSet]:
        self._progress = progress
        try:
            while not self._runs.done():
                wait([self._runs], timeout=executors.LOOK_UP_S)
            return self._runs.result()
        except BaseException:
            self.stop()  # Ctrl-C too: nobody else would tell the thread
            raise

    def stop(self) -> None:
        self._stopped = True
        self._runs.cancel()


class Runner:
    """Runs figures; what one figure ran, another that reuses it finds here.

    Leaving its `with` stops what was begun ahead.
    """

    def __init__(
        self,
        *,
        fast: bool = False,
        seed: int | None = None,
        directory: Path | None = None,
        memory: str | None = None,
        executor: str = executors.THREADS,
    ) -> None:
        self.fast, self.seed, self.memory, self.executor = fast, seed, memory, executor
        self._limit = executors.memory_here(executor, memory)
        self.files = available(directory)
        self.directory = directory
        self._finished: dict[str, dict[str, RunSet]] = {}
        self._computed: dict[str, dict[str, Computed]] = {}
        self._ran: dict[str, dict[str, Finished]] = {}
        """What has ended of this figure, the one before, those begun and those of which one to come needs a run: by
        figure and scenario."""
        self._before = ""
        self._begun: dict[str, _Begun] = {}
        self._following: list[FigureSpec] = []
        """Of the figures to come those that may begin ahead."""
        self._to_come: dict[str, frozenset[str]] = {}
        """Scenarios of figures that have not begun, as far as one looked."""
        self._left: dict[str, set[str]] = {}
        """The scenarios of figures under way that have not ended."""
        self._uncounted: set[str] = set()
        """Figures begun of which it is not known yet how many there are."""
        self._lock = threading.RLock()
        """For what is begun and left: runs end in several threads."""
        self._pool = ThreadPoolExecutor(max_workers=AHEAD)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._may_begin(())
        for begun in self._begun.values():
            begun.stop()
        self._pool.shutdown()

    def figure(self, figure_id: str) -> FigureSpec:
        """A figure's file, in the version that runs."""
        spec = load(figure_id, self.directory)
        return spec.fast_version() if self.fast else spec

    def run(
        self,
        spec: FigureSpec,
        out: Path | None,
        progress: Progress | None = None,
        following: Sequence[FigureSpec] = (),
    ) -> Outcome:
        """Runs, draws into `out` and holds every claim against its bound.

        The runs of the figures `following`, in their order, begin as soon as a core has no more of this one's.
        """
        began = time.perf_counter()
        with self._lock:
            wanted = set[str]().union(*self._to_come.values())
            self._ran = {
                one: ran
                for one, ran in self._ran.items()
                if one == self._before or one in self._begun or not wanted.isdisjoint(ran)
            }
        self._before = spec.id
        self._may_begin(following)
        notes: list[str] = []
        try:
            self._finish(spec, out, progress, notes.append)
        except NotMeasuredError as why:
            verdicts = [Verdict(claim, None, untold=why.status) for claim in spec.claims]
            return Outcome(spec, time.perf_counter() - began, verdicts, [], why, notes)
        except MeasurementError as error:
            verdicts = [Verdict(claim, None, str(error)) for claim in spec.claims]
            return Outcome(spec, time.perf_counter() - began, verdicts, [], notes=notes)
        if following:
            self._begin(following[0])
            self._may_begin(following)
            self._look_ahead()
        values: dict[str, RunValues] = dict(
            self._joined(spec) if spec.reuse else self._finished[spec.id] | self._computed[spec.id]
        )
        verdicts = [_measure(claim, values, spec) for claim in spec.claims]
        pictures = plot.save(self._drawn(spec), out / spec.id) if out is not None else []
        if out is not None and spec.runs:
            bins = fct.document(self._finished[spec.id])
            if bins["runs"]:
                pictures.append(write_whole(out / f"{spec.id}.fct.json", json.dumps(bins, indent=1) + "\n"))
        return Outcome(spec, time.perf_counter() - began, verdicts, pictures, notes=notes)

    def forget(self, left: Collection[FigureSpec]) -> None:
        """Drops what was run, but for what figures that are left reuse."""
        needed = {reuse.figure for spec in left for reuse in spec.reuse}
        self._finished = {figure: runs for figure, runs in self._finished.items() if figure in needed}
        self._computed = {figure: runs for figure, runs in self._computed.items() if figure in needed}

    def _begin(self, spec: FigureSpec) -> None:
        """Begins a figure's runs, or those that it reuses, unless they measure this machine or go on elsewhere."""
        if self.executor != executors.THREADS or spec.measured:
            return
        with self._lock:
            for one in (*(self.figure(reuse.figure) for reuse in spec.reuse), spec):
                if one.runs and one.id not in self._finished and one.id not in self._begun:
                    self._uncounted.add(one.id)
                    self._begun[one.id] = _Begun(self._pool, partial(self._execute, one))

    def _may_begin(self, following: Sequence[FigureSpec]) -> None:
        """Figures to come, of which those that are not begun may be."""
        with self._lock:
            # Where runs may only need so much together, none: those of several figures would go on for a while.
            may = self.memory is None and self.executor == executors.THREADS
            self._following = [one for one in following if may and one.id not in self._begun]

    def _look_ahead(self) -> None:
        """Begins runs of figures to come while a core has none: none beyond one that takes over runs or is measured."""
        with self._lock:
            while self._following and len(self._begun) < AHEAD and not self._uncounted:
                left = set[str]().union(*self._left.values())
                next_one = self._next_of(left) if len(left) < machine.cores() else None
                if next_one is None:
                    return
                self._following = [one for one in self._following if one is not next_one]
                self._begin(next_one)

    def _next_of(self, left: Collection[str]) -> FigureSpec | None:
        """Of the next few the first that needs none of these scenarios, nor one of a figure that waits before it."""
        needed = set(left)
        for one in self._following[:AHEAD]:
            if one.reuse or one.measured:
                return None
            try:
                own = self._keys_of(one)
            except FlowstampError:
                return None  # it is told when it is its turn
            if needed.isdisjoint(own):
                return one
            needed |= own
        return None

    def _keys_of(self, spec: FigureSpec) -> frozenset[str]:
        """The scenarios of a figure to come, worked out once."""
        if spec.id not in self._to_come:
            self._to_come[spec.id] = frozenset(self._keys(self._jobs(spec)).values())
        return self._to_come[spec.id]

    def _jobs(self, spec: FigureSpec) -> dict[_At, tuple[str, str, Sets, str]]:
        """A figure's runs in the simulator."""
        # The last point of a sweep is mostly its longest run: first, so that no core waits for it at the end.
        return {
            (run.name, point, again): spec.job(run, point, self.seed, again)
            for again in range(spec.seeds)
            for point in reversed(range(spec.points))
            for run in _simulated_of(spec)
            if spec.where(run)[point]
        }

    def _finish(self, spec: FigureSpec, out: Path | None, progress: Progress | None, say: Say) -> None:
        for reuse in spec.reuse:
            if reuse.figure not in self._finished:
                other = self.figure(reuse.figure)
                self._finished[other.id] = self._simulated(other, progress)
        if not spec.runs:
            return
        finished: dict[str, RunSet] = {}
        computed = self._curves_of(spec)
        simulated = spec
        if spec.lab is not None:
            finished, scenario = labs(spec, out, self.seed, say)
            # What the lab's keys were set to is in the scenario that it gives.
            simulated = replace(spec, scenario=scenario, sets=())
        if spec.packets:
            computed |= forwarding(spec)
        self._finished[spec.id] = finished | self._simulated(simulated, progress)
        self._computed[spec.id] = computed

    def _curves_of(self, spec: FigureSpec) -> dict[str, Computed]:
        """What is computed of a figure, while its runs go on, or those of the next."""
        theory = [run for run in spec.runs if run.theory is not None]
        if theory and not spec.measured:
            if _simulated_of(spec):
                self._begin(spec)
            else:
                self._look_ahead()
        try:
            return {run.name: _computed(spec, run) for run in theory}
        except BaseException:
            if spec.id in self._begun:
                self._begun.pop(spec.id).stop()  # Ctrl-C too: nobody waits for them any more
            raise

    def _simulated(self, spec: FigureSpec, progress: Progress | None) -> dict[str, RunSet]:
        begun = self._begun.get(spec.id)
        if begun is None:
            return self._execute(spec, progress)
        try:
            return begun.wait(progress)
        finally:
            del self._begun[spec.id]  # not before: Ctrl-C in between would leave nobody to stop it

    def _execute(self, spec: FigureSpec, progress: Progress | None) -> dict[str, RunSet]:
        try:
            keys, finished = self._ended(spec, progress)
        finally:
            with self._lock:
                self._uncounted.discard(spec.id)
                self._left.pop(spec.id, None)
        return {
            run.name: RunSet(
                run.name,
                [
                    pooled([finished[keys[run.name, point, again]] for again in range(spec.seeds)])
                    for point in np.flatnonzero(spec.where(run)).tolist()
                ],
                spec.links,
                spec.group,
                spec.split,
                None if run.where is None else spec.where(run),
            )
            for run in _simulated_of(spec)
        }

    def _keys(self, jobs: Mapping[_At, tuple[str, str, Sets, str]]) -> dict[_At, str]:
        """The scenarios of a figure's runs."""
        return {at: self._scenario(job) for at, job in jobs.items()}

    def _ended(self, spec: FigureSpec, progress: Progress | None) -> tuple[dict[_At, str], dict[str, Finished]]:
        """Waits for a figure's runs; their scenarios, and what came of each."""
        jobs = self._jobs(spec)
        keys = self._keys(jobs)
        with self._lock:
            self._to_come.pop(spec.id, None)
            before = {key: run for ran in self._ran.values() for key, run in ran.items()}
            finished = {key: before[key] for key in keys.values() if key in before}
            missing = {keys[at]: job for at, job in jobs.items() if keys[at] not in finished}
            self._ran[spec.id] = finished
            self._left[spec.id] = set(missing)
            self._uncounted.discard(spec.id)
        self._look_ahead()
        names = list(missing)

        def done(number: int, result: _flowstamp.Run | Results) -> None:
            # As it ends, while others go on: so only one needs memory for all that it left.
            ran = json.loads(result.manifest_json())["scenario"]
            ended = Finished.of(
                result,
                flow_series=ran["probes"]["flows"],
                packet_bytes=_flowstamp.quantity("size", ran["packet"]),
                scenario=ran,
            )
            with self._lock:
                finished[names[number]] = ended
                self._left[spec.id].remove(names[number])
            self._look_ahead()

        if missing:
            self._run_all(list(missing.values()), done, progress)
        return keys, finished

    def _scenario(self, job: tuple[str, str, Sets, str]) -> str:
        """A run's scenario with every default spelled out, whatever its name."""
        text, source, sets, base_dir = job
        with translated():
            return _flowstamp.check(
                text, source=source, sets=(*sets, ("name", '"any"')), base_dir=base_dir, memory=self._limit
            )

    def _run_all(
        self,
        runs: Sequence[tuple[str, str, Sets, str]],
        done: Callable[[int, _flowstamp.Run | Results], None],
        progress: Progress | None,
    ) -> None:
        if self.executor == executors.THREADS:
            with translated():
                _flowstamp.run_each(runs, done, memory=self._limit, progress=progress)
            return
        jobs = [executors.Job.read(*run, memory=self._limit) for run in runs]
        executors.run(jobs, done, executor=self.executor, memory=self.memory, progress=progress)

    def _parts(self, spec: FigureSpec, name: str) -> list[tuple[FigureSpec, RunSpec, Any]]:
        """What stands under a name in a figure that reuses others' runs: figure, run, and the points to keep."""
        parts: list[tuple[FigureSpec, RunSpec, Any]] = []
        for reuse in spec.reuse:
            other = self.figure(reuse.figure)
            keep = None if reuse.where is None else reuse.where.evaluate({}, np.array(other.x()))
            runs = [run for run in other.runs if run.reused_as == name]
            parts += [(other, run, keep) for run in runs]
        if not parts:
            others = " or ".join(reuse.figure for reuse in spec.reuse)
            raise FigureError(f'{spec.path}: joined: no run of {others} is reused_as "{name}"')
        return parts

    def _joined(self, spec: FigureSpec) -> dict[str, Joined]:
        def part(other: FigureSpec, run: RunSpec, keep: Any) -> tuple[RunSet, Any]:
            return self._finished[other.id][run.name], keep

        return {name: Joined(name, [part(*one) for one in self._parts(spec, name)]) for name in spec.joined}

    # ------------------------------------------------------------------------------------------------ drawing

    def _drawn(self, spec: FigureSpec) -> Any:
        try:
            return self.draw(spec)
        except ValueError as error:
            raise FigureError(f"{spec.path}: draw: {error}") from error

    def draw(self, spec: FigureSpec) -> Any:
        """The picture of a figure whose runs are finished."""
        draw = spec.draw
        panels = [
            plot.Panel(
                panel.ylabel,
                self._curves(spec, panel),
                title=panel.title,
                yscale=panel.yscale,
                ylim=panel.ylim,
                linthresh=panel.linthresh,
                legend=_has_legend(draw, n),
                axis=self._axis(spec, draw.of(panel)),
            )
            for n, panel in enumerate(draw.panels)
        ]
        ticks: list[tuple[float, str]] = []
        if draw.axis.x == "figure":
            ticks = [(float(n), reuse.figure) for n, reuse in enumerate(spec.reuse)]
        return plot.stack(plot.Stack(draw.axis.label, panels, xticks=ticks, lines=draw.axis.x != "figure"))

    def _axis(self, spec: FigureSpec, axis: Axis) -> plot.Axis:
        """The x axis; of time it ends with the longest run."""
        low, high = axis.limits
        if axis.x == "time" and high is not None:
            runs = [run for curve in self._finished[spec.id].values() for run in curve.runs]
            high = min(high, max((run.summary["duration_s"] for run in runs), default=high))
        markers = axis.x not in ("time", "size", "value")
        if axis.x == "curve":
            curves = self._computed[spec.id].values()
            markers = all(one.values[axis.along].size <= MARKED for one in curves if axis.along in one.values)
        return plot.Axis(axis.label, axis.scale, (low, high), markers=markers)

    def _curves(self, spec: FigureSpec, panel: PanelSpec) -> list[plot.Curve]:
        against = spec.draw.of(panel)
        if against.x == "figure":
            return [self._per_figure(spec, panel.y, n, name) for n, name in enumerate(panel.runs)]
        finished = self._finished[spec.id]
        curves: list[plot.Curve] = []
        styles = _styles(spec, panel)
        for name in panel.runs:
            style = styles[name]
            label = next(r.label for r in spec.runs if r.name == name)
            if name in self._computed[spec.id]:
                one = self._computed[spec.id][name]
                along = {"curve": against.along, "time": "time_s"}.get(against.x)
                x = one.measure(along) if along else np.array(spec.x())
                curves.append(plot.Curve(label, x, one.measure(panel.y), style))
                continue
            runs = self._seen(spec, panel, finished[name])
            if against.x == "time" and panel.y in MANY:
                flows = runs.many_over_time(panel.y)
                several = len(panel.runs) > 1
                kinds = list(dict.fromkeys(map(_flow_label, flows)))
                if panel.flow and panel.flow not in flows:
                    known = ", ".join(flows) or "none: set probes.flows"
                    raise FigureError(
                        f'{spec.path}: draw.panels: flow "{panel.flow}" was not probed; there are {known}'
                    )
                curves += [
                    plot.Curve(
                        (label if panel.flow else f"{label}: {_flow_label(flow)}") if several else _flow_label(flow),
                        *(plot.averaged(t, v, panel.average_s) if panel.average_s else (t, v)),
                        style if several else kinds.index(_flow_label(flow)),
                    )
                    for flow, (t, v) in flows.items()
                    if panel.flow in ("", flow)
                ]
            elif against.x == "time":
                t, v = runs.over_time(panel.y)
                curves.append(
                    plot.Curve(label, *(plot.averaged(t, v, panel.average_s) if panel.average_s else (t, v)), style)
                )
            elif against.x == "rtt":
                curves.append(plot.Curve(label, *runs.by_rtt(panel.y, panel.group, panel.point), style))
            elif against.x == "value":
                curves.append(plot.Curve(label, *self._density(spec, runs, panel), style))
            elif against.x == "size":
                found = fct.bins(runs.runs[panel.point], runs.group, references=())
                sizes = np.array([b.mean_packets for b in found])
                longest = panel.y == "max_fct"
                times = np.array([b.max_s if longest else b.mean_s for b in found])
                widths = None if longest else np.array([b.half_width_s for b in found])
                curves.append(plot.Curve(label, sizes, times, style, widths))
            else:
                y = runs.measure(panel.y)
                x = np.arange(1.0, y.size + 1) if against.x == "flow" else np.array(spec.x())
                if against.x == "vary":  # points that differ by their seed are one
                    x, which = np.unique(x, return_inverse=True)
                    y = np.bincount(which, y) / np.bincount(which)
                    y = y / x if panel.per_x else y
                half = self._half(spec, panel, runs, x)
                # Panels beside one another have runs of their own: theirs are told apart within each.
                number = panel.runs.index(name) if against.x == "flow" else style
                curves.append(plot.Curve(label, x, y, number, half))
        curves += self._references(spec, panel, len(spec.runs))
        return curves + _published(spec, panel, curves)

    @staticmethod
    def _half(spec: FigureSpec, panel: PanelSpec, runs: RunSet, x: Floats) -> Floats | None:
        """Half of each point's interval, in the order of `x`, where there are several seeds."""
        if spec.seeds == 1:
            return None
        half = runs.half_widths(panel.y)
        if spec.draw.of(panel).x != "vary":
            return half
        if x.size < half.size:
            return None  # points that are one already have none of their own
        order = np.argsort(spec.x())
        return half[order] / x if panel.per_x else half[order]

    def _seen(self, spec: FigureSpec, panel: PanelSpec, runs: RunSet) -> RunSet:
        """The runs as a panel shows them: of its group, on its link, at its point."""
        if panel.group and spec.draw.of(panel).x != "rtt":
            runs = runs.of(panel.group)
        if panel.link:
            runs = runs.on(panel.link)
        return runs.at(panel.point) if spec.draw.of(panel).x in ("time", "value") else runs

    def _density(self, spec: FigureSpec, runs: RunSet, panel: PanelSpec) -> tuple[Floats, Floats]:
        """Samples of all flows after warm-up: centres of 80 bins over the x axis, and the share of samples per unit."""
        summary = runs.runs[0].summary
        values = runs.flow_samples_of_all(panel.y, summary["warmup_s"], summary["duration_s"])
        if not values.size:
            raise FigureError(f"{spec.path}: draw.panels: {runs.name} has no samples of {panel.y} after warm-up")
        low, high = spec.draw.of(panel).limits
        within = (np.min(values) if low is None else low, np.max(values) if high is None else high)
        density, edges = np.histogram(values, 80, within)
        return (edges[1:] + edges[:-1]) / 2, density / (values.size * (edges[1] - edges[0]))

    def _references(self, spec: FigureSpec, panel: PanelSpec, style: int) -> list[plot.Curve]:
        """Formulas beside the measured curves, of the first run that the panel shows."""
        curves: list[plot.Curve] = []
        if not panel.references:
            return curves
        runs = self._seen(spec, panel, self._finished[spec.id][panel.runs[0]])
        for number, name in enumerate(panel.references):
            ideal = runs.runs[panel.point if len(runs.runs) > panel.point else 0].ideal(runs.group)
            if ideal is None:
                continue
            against = spec.draw.of(panel)
            if against.x == "size":
                found = fct.bins(runs.runs[panel.point], runs.group, references=(name,))
                x = np.array([b.mean_packets for b in found])
                y = np.array([b.ideal_s[name] for b in found])
            elif against.x == "rtt":
                x, y = runs.by_rtt(f"afct_{name}", panel.group, panel.point)
            elif against.x == "time":  # Little's law
                x, _ = runs.over_time("utilization")
                mean = np.array([ideal.mean_packets])
                arrivals = ideal.load * ideal.capacity / ideal.mean_packets
                y = np.full(x.size, arrivals * float(ideal.curve(name, mean)[0]))
            else:
                part = panel.y.removeprefix("afct")
                x = np.array(spec.x())
                y = runs.measure(f"{name}{part}" if part else f"afct_{name}")
            curves.append(plot.Curve(fct.REFERENCES[name], x, y, style + number))
        return curves

    def _per_figure(self, spec: FigureSpec, y: str, style: int, name: str) -> plot.Curve:
        means: dict[str, list[float]] = {}
        parts = self._parts(spec, name)
        for other, run, keep in parts:
            means.setdefault(other.id, []).extend(kept(self._finished[other.id][run.name].measure(y), keep))
        # A figure without such a run has no point here.
        values = np.array([float(np.mean(means.get(reuse.figure, [math.nan]))) for reuse in spec.reuse])
        return plot.Curve(parts[0][1].label, np.arange(float(values.size)), values, style)


def _computed(spec: FigureSpec, run: RunSpec) -> Computed:
    """The measures of a run with `theory`."""
    try:
        return Computed(run.name, run.theory.at(spec.x()) if run.theory else {})
    except FlowstampError as error:
        raise FigureError(f"{spec.path}: runs[{run.name}].theory: {error}") from error


def _styles(spec: FigureSpec, panel: PanelSpec) -> dict[str, int]:
    """The number by which each run of a panel has its colour, line and marker.

    It is the same in all panels, but where two runs of a few would have one colour.
    """
    names = [run.name for run in spec.runs]
    styles = {name: names.index(name) for name in panel.runs}
    colours = len(plot.COLOURS)
    if len(styles) > colours:
        return styles
    free = [colour for colour in range(colours) if all(style % colours != colour for style in styles.values())]
    taken: set[int] = set()
    for name, style in styles.items():
        if style % colours in taken:
            styles[name] = colours + free.pop(0)
        taken.add(style % colours)
    return styles


def _published(spec: FigureSpec, panel: PanelSpec, curves: Sequence[plot.Curve]) -> list[plot.Curve]:
    """What the paper prints; multiples of a curve by its values on logarithmic axes, not a number beyond its ends."""
    names = {run.name: run.label for run in spec.runs} | fct.REFERENCES
    shown = {curve.label: curve for curve in curves}
    marks: list[plot.Curve] = []
    for number, p in enumerate(panel.published):
        x, y = np.array(p.x), np.array(p.y)
        if p.times:
            if names.get(p.times) not in shown:
                continue  # a run that the short version leaves out
            of = shown[names[p.times]]
            y = y * np.exp(np.interp(np.log(x), np.log(of.x), np.log(of.y), left=np.nan, right=np.nan))
        marks.append(plot.Curve(p.label, x, y, number, published=True))
    return marks


def _has_legend(draw: Draw, number: int) -> bool:
    """Whether a panel names its curves: over time where it has several, else where the panel above has others.

    References count: their colours go by their order.
    """
    panel, above = draw.panels[number], draw.panels[number - 1]
    marks, marks_above = ([mark.label for mark in one.published] for one in (panel, above))
    if marks and not (number > 0 and panel.runs == above.runs and marks == marks_above[: len(marks)]):
        return True
    if draw.of(panel).x == "time":
        return panel.y in MANY or len(panel.runs) + len(panel.references) > 1
    told = number > 0 and panel.runs == above.runs
    return not told or panel.references != above.references[: len(panel.references)]


def _flow_label(name: str) -> str:
    """Of a flow, `group.index`, or of a group."""
    group, _, index = name.partition(".")
    if index and group in ("flows", "forward"):
        return f"flow {int(index) + 1}"
    return group.replace("_", " ").replace("rtt", "RTT")


def _measure(claim: Claim, values: dict[str, RunValues], spec: FigureSpec) -> Verdict:
    x = np.array(spec.x()) if spec.runs else np.array([])
    several: list[dict[str, RunValues]] = [values]
    if claim.each_seed:
        several = [
            {name: run.seed(n) if isinstance(run, RunSet) else run for name, run in values.items()}
            for n in range(spec.seeds)
        ]
    try:
        measured = float(np.mean([claim.expr.evaluate(one, x, spec.constants) for one in several]))
    except ExpressionError as error:
        return Verdict(claim, None, str(error))
    problem = "" if math.isfinite(measured) else f'"{claim.expr.text}" is {measured}, and no finite number'
    return Verdict(claim, measured, problem)
