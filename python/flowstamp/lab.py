# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Labs: real applications on this machine's kernel over an emulated path, compared with the simulator.

`flowstamp-linux lab run` runs the lab and writes a folder in the simulator's format. This module starts it, reads the
folder and draws it beside a simulation. Claims about labs are in `figures/`.
"""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flowstamp import linux
from flowstamp import results as stored
from flowstamp.errors import FlowstampError, ScenarioError, UsageError, one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flowstamp.plot import Panel
    from flowstamp.results import Results

EXIT_REFUSED, EXIT_INVALID, EXIT_INTERRUPTED = 2, 3, 130
PR_SET_PDEATHSIG = 1  # linux/prctl.h
BOTTLENECK = "bottleneck"


@dataclass(frozen=True)
class Measured:
    """A lab's run. `invalid` is None, or says why the run is void: the machine was too busy to time the path."""

    results: Results
    folder: Path
    invalid: str | None


@dataclass(frozen=True)
class Comparison:
    """A lab's run and the simulator's run of the same scenario."""

    lab: Measured
    simulated: Results


def run(lab: str | Path, out: str | Path, *, seed: int | None = None, lab_id: str = "lab") -> Measured:
    """Runs a lab and writes its results to the folder `out`.

    Raises `ScenarioError` if the lab file or the machine does not allow the run, and `FlowstampError` if it fails.
    """
    arguments = ["run", str(lab), "--out", str(out), "--json", "--id", lab_id]
    if seed is not None:
        arguments += ["--seed", str(seed)]
    _call(arguments)
    return load(out)


def scenario_of(lab: str | Path) -> dict[str, Any]:
    """Returns the simulator's scenario for a lab's network and flows. Raises `ScenarioError` if the lab is invalid."""
    return tomllib.loads(_call(["scenario", str(lab)]))


def check(lab: str | Path) -> None:
    """Raises `ScenarioError` if the lab is invalid. The simulator need not be able to run it."""
    _call(["scenario", "--check", str(lab)])


def _call(arguments: Sequence[str]) -> str:
    program = linux.required("lab")
    try:
        process = subprocess.Popen(
            [program, "lab", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 one system call, which takes no lock
        )
    except OSError as error:
        raise linux.NotHereError(f"lab: {program}: {error.strerror}") from None
    with process:
        try:
            out, complaints = process.communicate()
        except KeyboardInterrupt:
            process.communicate()  # the program got the signal too; wait for its clean-up
            raise
    if process.returncode == EXIT_INTERRUPTED:
        raise KeyboardInterrupt  # only the program got the signal, as for a job in a shell's background
    if process.returncode not in (0, EXIT_INVALID):
        said = [line for line in complaints.splitlines() if line.startswith("flowstamp: ")]
        ended = f"{linux.PROGRAM} ended with {process.returncode}"
        message = one_line(said[-1].removeprefix("flowstamp: ")) if said else ended
        raise (ScenarioError if process.returncode == EXIT_REFUSED else FlowstampError)(message)
    return out


def _end_with_parent() -> None:
    """Makes the kernel terminate this child when its parent dies, so that the lab cleans up as on Ctrl-C."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def load(folder: str | Path) -> Measured:
    """Loads a lab's run from its folder."""
    results = stored.load(folder)
    return Measured(results, Path(folder), results.summary.get("invalid"))


def simulate(measured: Measured) -> Results:
    """Simulates the lab's network and flows. Raises `UsageError` if the lab has no such scenario."""
    from flowstamp import scenario

    manifest = measured.results.manifest
    if manifest.get("scenario") is None:
        raise UsageError(f"--against sim: {manifest.get('no_scenario', 'this run has no scenario')}")
    return scenario.loads(toml_of(manifest["scenario"]), source="the lab's scenario").run()


def toml_of(tree: Mapping[str, Any]) -> str:
    """Converts a scenario or a lab from JSON to TOML. Inline tables differ from JSON only in `=` for the colon."""

    def value(item: Any) -> str:
        if isinstance(item, Mapping):
            return "{" + ", ".join(f"{json.dumps(k)} = {value(v)}" for k, v in item.items()) + "}"
        if isinstance(item, list):
            return "[" + ", ".join(map(value, item)) + "]"
        return json.dumps(item)

    return "".join(f"{json.dumps(key)} = {value(item)}\n" for key, item in tree.items())


def against_simulator(lab: str | Path, out: str | Path, *, seed: int | None = None, lab_id: str = "lab") -> Comparison:
    """Runs a lab and its simulation and writes both into `out`.

    `out` gets the folders `lab` and `sim`, the picture `compare`, and the picture `rate` if the router law assigns one.
    """
    from flowstamp import plot

    folder = Path(out)
    measured = run(lab, folder / "lab", seed=seed, lab_id=lab_id)
    simulated = simulate(measured)
    simulated.write(folder / "sim")
    plot.save(draw(measured, simulated), folder / "compare")
    rate = draw_rate(measured, simulated)
    if rate is not None:
        plot.save(rate, folder / "rate")
    else:
        for left_by_another in ("rate.pdf", "rate.png"):
            (folder / left_by_another).unlink(missing_ok=True)
    return Comparison(measured, simulated)


def draw(measured: Measured, simulated: Results) -> Figure:
    """Draws throughputs in a panel per run, and utilisation, queue and the router law's rate in panels with both."""
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
        what = "each flow" if kind == "flow" else "each group of flows"
        panels.append(plot.Panel("Mb/s", curves, title=f"{name}: throughput of {what}", ylim=(0, None), legend=True))

    panels += _together("Utilisation", both, "link", "utilization", 1.0, legend=True)
    panels += _queue(both)
    panels += _together("Rate (Mb/s)", both, "law", "rate_bps", 1e-6)
    return plot.stack(plot.Stack("Time (s)", panels, markers=False))


def draw_rate(measured: Measured, simulated: Results) -> Figure | None:
    """Draws the rate that the router assigns to each flow, and the queue. Returns None if no run sampled that rate."""
    from flowstamp import plot

    both = {"Linux kernel": measured.results, "simulator": simulated}
    rates = _together("Rate given (Mb/s)", both, "law", "rate_bps", 1e-6, legend=True)
    return plot.stack(plot.Stack("Time (s)", [*rates, *_queue(both)], markers=False)) if rates else None


def _queue(both: Mapping[str, Results]) -> list[Panel]:
    rate_bps = next(iter(both.values())).links[BOTTLENECK]["rate_bps"]
    return _together("Queue (ms)", both, "link", "mean_queue_bytes", 8e3 / rate_bps)


def _together(
    ylabel: str, both: Mapping[str, Results], kind: str, metric: str, factor: float, *, legend: bool = False
) -> list[Panel]:
    """Returns a panel with a curve for each run that sampled the metric, or no panel if none did."""
    from flowstamp import plot

    curves = [
        plot.Curve(name, t, v * factor, number)
        for number, (name, one) in enumerate(both.items())
        if (kind, BOTTLENECK, metric) in one.series_names
        for t, v in [one.series(kind, BOTTLENECK, metric)]
    ]
    return [plot.Panel(ylabel, curves, ylim=(0, None), legend=legend)] if curves else []


def _rtt_s(measured: Measured) -> float:
    from flowstamp import _flowstamp

    return _flowstamp.quantity("time", measured.results.manifest["lab"]["path"]["rtt"])


def text_of(comparison: Comparison) -> str:
    """Formats the two runs as a table, side by side."""
    from flowstamp import fairness, text

    both = {"lab": comparison.lab.results, "simulator": comparison.simulated}
    links = [one.links[BOTTLENECK] for one in both.values()]
    rows = [
        ["utilisation", *(text.percent(link["utilization"]) for link in links)],
        ["mean queue", *(text.size(link["mean_queue_bytes"]) for link in links)],
        ["p95 queue", *(text.size(link["p95_queue_bytes"]) for link in links)],
        ["drops", *(str(link["drops"]) for link in links)],
    ]
    totals = [one.summary["total"] for one in both.values()]
    rows.append(["goodput", *(text.rate(total["goodput_bps"]) for total in totals)])
    fair = {name: fairness.while_all_active(one) for name, one in both.items()}
    rows += [[f"{group} Jain index", *fairness.cells(group, both, fair)] for group in fair["lab"]]
    lines = [text.table(["", *both], rows)]
    lines += [
        f"Jain index of {group}: while all its flows are active, {found.from_s:.1f} s to {found.until_s:.1f} s"
        for group, found in fair["lab"].items()
    ]
    if comparison.lab.invalid:
        lines.append(f"INVALID: {comparison.lab.invalid}")
    return "\n".join(lines)


def exit_code(comparison: Comparison) -> int:
    """Returns 3 if the lab's run is invalid, else 0."""
    return EXIT_INVALID if comparison.lab.invalid else 0
