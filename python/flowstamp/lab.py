# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Labs: real applications on this machine's kernel over an emulated path, beside the simulator's run of the same.

`flowstamp-linux lab run` does the work and leaves a run's folder in the simulator's form; here it is started, read,
drawn beside a simulation, and held against the claims of the lab's file.
"""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flowstamp import linux
from flowstamp import results as stored
from flowstamp.errors import FlowstampError, ResultsError, ScenarioError, UsageError, one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flowstamp.results import Results

EXIT_REFUSED, EXIT_INVALID = 2, 3
BOTTLENECK = "bottleneck"


@dataclass(frozen=True)
class Measured:
    """A lab's run. `invalid` says why it tells nothing: the machine was too busy to keep the path's times."""

    results: Results
    folder: Path
    invalid: str | None


@dataclass(frozen=True)
class Verdict:
    """A claim of a lab's file, and what came out."""

    id: str
    paper: str
    expected: str
    tolerance: str
    source: str
    measured: float | None
    holds: bool | None
    """None: the run is invalid, or it could not be measured, as `problem` says."""
    problem: str = ""

    @property
    def status(self) -> str:
        """`holds`, `fails` or `invalid`."""
        return "invalid" if self.holds is None else "holds" if self.holds else "fails"

    def as_json(self) -> dict[str, Any]:
        """The claim as `--json` prints it."""
        document: dict[str, Any] = {
            "id": self.id,
            "paper": self.paper,
            "expected": self.expected,
            "measured": self.measured,
            "tolerance": self.tolerance,
            "source": self.source,
            "holds": self.holds,
        }
        if self.problem:
            document["problem"] = self.problem
        return document


@dataclass(frozen=True)
class Comparison:
    """A lab's run, the simulator's run of the same scenario, and the claims."""

    lab: Measured
    simulated: Results
    verdicts: Sequence[Verdict] = field(default=())


def run(lab: str | Path, out: str | Path, *, seed: int | None = None, lab_id: str = "lab") -> Measured:
    """Runs a lab; its folder gets what a simulation's folder has. What the machine lacks is said in one line."""
    command = [linux.required("lab"), "lab", "run", str(lab), "--out", str(out), "--json", "--id", lab_id]
    if seed is not None:
        command += ["--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, EXIT_INVALID):
        said = [line for line in done.stderr.splitlines() if line.startswith("flowstamp: ")]
        message = (
            one_line(said[-1].removeprefix("flowstamp: ")) if said else f"{linux.PROGRAM} ended with {done.returncode}"
        )
        raise (ScenarioError if done.returncode == EXIT_REFUSED else FlowstampError)(message)
    return load(out)


def load(folder: str | Path) -> Measured:
    """A lab's run from its folder."""
    results = stored.load(folder)
    return Measured(results, Path(folder), results.summary.get("invalid"))


def simulate(measured: Measured) -> Results:
    """The simulator's run of the same network and flows."""
    from flowstamp import scenario

    manifest = measured.results.manifest
    if manifest.get("scenario") is None:
        raise UsageError(f"--against sim: {manifest.get('no_scenario', 'this run has no scenario')}")
    return scenario.loads(_toml(manifest["scenario"]), source="the lab's scenario").run()


def _toml(tree: Mapping[str, Any]) -> str:
    """A scenario's JSON as TOML: inline tables and strings read the same in both, but for the colon."""

    def value(item: Any) -> str:
        if isinstance(item, Mapping):
            return "{" + ", ".join(f"{json.dumps(k)} = {value(v)}" for k, v in item.items()) + "}"
        if isinstance(item, list):
            return "[" + ", ".join(map(value, item)) + "]"
        return json.dumps(item)

    return "".join(f"{json.dumps(key)} = {value(item)}\n" for key, item in tree.items())


def against_simulator(lab: str | Path, out: str | Path, *, seed: int | None = None, lab_id: str = "lab") -> Comparison:
    """Runs a lab and its simulation; folders `lab` and `sim` in `out`, and compare.pdf and compare.png."""
    from flowstamp import plot

    folder = Path(out)
    measured = run(lab, folder / "lab", seed=seed, lab_id=lab_id)
    simulated = simulate(measured)
    simulated.write(folder / "sim")
    plot.save(draw(measured, simulated), folder / "compare")
    return Comparison(measured, simulated, verdicts(lab, measured, simulated))


def draw(measured: Measured, simulated: Results) -> Figure:
    """Throughputs of each, and on one axis utilisation, queue and, where a router's law was sampled, its rate."""
    from flowstamp import plot

    both = {"lab": measured.results, "simulator": simulated}
    average_s = 5 * _rtt_s(measured)
    panels = []
    for name, one in both.items():
        flows = [entry for entry in one.series_names if entry[0] == "flow" and entry[2] == "goodput_bps"]
        kind = "flow" if 0 < len(flows) <= plot.MOST_CURVES else "group"
        curves: list[plot.Curve] = []
        for _, of, metric in [entry for entry in one.series_names if entry[0] == kind and entry[2] == "goodput_bps"]:
            t, v = plot.averaged(*one.series(kind, of, metric), average_s)
            curves.append(plot.Curve(of, t, v / 1e6, len(curves)))
        panels.append(plot.Panel("Throughput (Mb/s)", curves, title=name, ylim=(0, None), legend=True))

    def together(ylabel: str, kind: str, metric: str, factor: float, legend: bool = False) -> None:
        curves = [
            plot.Curve(name, t, v * factor, number)
            for number, (name, one) in enumerate(both.items())
            if (kind, BOTTLENECK, metric) in one.series_names
            for t, v in [one.series(kind, BOTTLENECK, metric)]
        ]
        if curves:
            panels.append(plot.Panel(ylabel, curves, ylim=(0, None), legend=legend))

    together("Utilisation", "link", "utilization", 1.0, legend=True)
    together("Queue (ms)", "link", "mean_queue_bytes", 8e3 / measured.results.links[BOTTLENECK]["rate_bps"])
    together("Rate (Mb/s)", "law", "rate_bps", 1e-6)
    return plot.stack(plot.Stack("Time (s)", panels, markers=False))


def _rtt_s(measured: Measured) -> float:
    from flowstamp import _flowstamp

    return _flowstamp.quantity("time", measured.results.manifest["lab"]["path"]["rtt"])


def verdicts(lab: str | Path, measured: Measured, simulated: Results | None = None) -> list[Verdict]:
    """What the claims of a lab's file come to: expressions as in `figures/`, over `lab` and, if it ran, `sim`.

    Of an invalid run no claim holds and none fails.
    """
    from flowstamp.figures.claims import Bound, Expression, ExpressionError
    from flowstamp.figures.measures import MEASURES

    try:
        tables = tomllib.loads(Path(lab).read_text(encoding="utf-8")).get("claims", [])
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ScenarioError(f"{lab}: {one_line(error)}") from None
    if not tables:
        return []
    runs = {"lab": _run_set("lab", measured.results)}
    if simulated is not None:
        runs["sim"] = _run_set("sim", simulated)
    found = []
    for table in tables:
        try:
            bound = Bound.parse(table["expected"], table.get("tolerance", "0"))
            expression = Expression(table["expr"], ("lab", "sim"), MEASURES)
        except (KeyError, ValueError) as error:
            raise ScenarioError(f"{lab}: claims.{table.get('id', '?')}: {one_line(error)}") from None
        value, problem = None, ""
        try:
            import numpy as np

            value = expression.evaluate(runs, np.array([]))
        except ExpressionError as error:
            problem = one_line(error)
        if measured.invalid:
            problem = measured.invalid
        holds = None if problem else bound.holds(value)
        found.append(
            Verdict(
                table["id"], table["paper"], bound.expected, bound.tolerance, table["source"], value, holds, problem
            )
        )
    return found


def _run_set(name: str, results: Results) -> Any:
    from flowstamp.figures.measures import Finished, RunSet

    scenario = results.manifest["scenario"] or {}
    packet_bytes = 1514.0
    finished = Finished.of(results, flow_series=True, packet_bytes=packet_bytes, scenario=scenario)
    return RunSet(name, [finished], [BOTTLENECK], next(iter(results.groups)))


def text_of(comparison: Comparison) -> str:
    """The two runs side by side, then the claims, for a reader."""
    from flowstamp import text

    both = [comparison.lab.results, comparison.simulated]
    links = [one.links[BOTTLENECK] for one in both]
    rows = [
        ["utilisation", *(text.percent(link["utilization"]) for link in links)],
        ["mean queue", *(text.size(link["mean_queue_bytes"]) for link in links)],
        ["p95 queue", *(text.size(link["p95_queue_bytes"]) for link in links)],
        ["drops", *(str(link["drops"]) for link in links)],
    ]
    totals = [one.summary["total"] for one in both]
    rows.append(["goodput", *(text.rate(total["goodput_bps"]) for total in totals)])
    rows.append(["Jain index", *(text.maybe(total["jain_index"]) for total in totals)])
    lines = [text.table(["", "lab", "simulator"], rows)]
    if comparison.lab.invalid:
        lines.append(f"INVALID: {comparison.lab.invalid}")
    for verdict in comparison.verdicts:
        measured = "-" if verdict.measured is None else f"{verdict.measured:.4g}"
        lines.append(f"{verdict.status:8}{verdict.id}: {measured} ({verdict.expected} +- {verdict.tolerance})")
    return "\n".join(lines)


def exit_code(comparison: Comparison) -> int:
    """0 if all claims hold, 1 if one fails, 3 if the run is invalid."""
    if comparison.lab.invalid:
        return EXIT_INVALID
    if any(verdict.problem for verdict in comparison.verdicts):
        raise ResultsError("; ".join(f"{v.id}: {v.problem}" for v in comparison.verdicts if v.problem))
    return int(not all(verdict.holds for verdict in comparison.verdicts))
