# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Curves of a figure that are measured on this machine's kernel, selected by a run's key `on`.

linux        real applications over an emulated path, `[lab]`; the figure's simulated runs use the same network
forwarding   cost of a packet in the router; each round measures all kinds in turn
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from flowstamp import lab, linux, router_cost
from flowstamp.errors import FlowstampError, ScenarioError
from flowstamp.figures.analytic import Computed
from flowstamp.figures.measures import Finished, RunSet
from flowstamp.figures.spec import FigureSpec, Sets, overrides
from flowstamp.figures.tables import FigureError
from flowstamp.scenario import toml_text

if TYPE_CHECKING:
    from flowstamp.results import Results

PACKET_BYTES = 1514.0
TRIES = 2
"""Attempts per run; a run is repeated if it is invalid because the machine was busy."""
Say = Callable[[str], None]


class NotMeasuredError(FlowstampError):
    """A figure could not be measured: the machine lacks something (skipped) or was too busy (invalid)."""

    def __init__(self, status: Literal["skipped", "invalid"], why: str) -> None:
        super().__init__(why)
        self.status: Literal["skipped", "invalid"] = status


class MeasurementError(FlowstampError):
    """A measurement failed after it started, for example because an application failed."""


def prefix() -> str:
    """Returns the name prefix of figures' namespaces and pins, without `fs-`. Raises `FigureError` if it is invalid."""
    name = os.environ.get("FLOWSTAMP_LAB_ID", "figure")
    if not re.fullmatch("[a-z0-9]{1,8}", name):
        raise FigureError(f'FLOWSTAMP_LAB_ID: "{name}" must be 1 to 8 lower-case letters and digits, such as "figure"')
    return name


# ---------------------------------------------------------------------------------------------------- labs


def labs(spec: FigureSpec, out: Path | None, seed: int | None, say: Say) -> tuple[dict[str, RunSet], dict[str, Any]]:
    """Runs all labs of a figure. Returns their results, and the simulator's scenario of the first lab.

    The runs' folders stay in `out`. Raises `NotMeasuredError`, `MeasurementError`, or `FigureError` for a bad lab.
    """
    prefix()  # raises an error for an invalid prefix before anything runs
    finished: dict[str, RunSet] = {}
    scenario: dict[str, Any] = {}
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for run in (run for run in spec.runs if run.on == "linux"):
            file = temporary / f"{spec.id}-{run.name}.toml"
            tree = changed(dict(spec.lab or {}), (*spec.sets, *overrides(run.set)), str(spec.path))
            file.write_text(toml_text({"name": spec.title, **tree}), encoding="utf-8")
            folder = (out or temporary) / spec.id / run.name
            try:
                scenario = scenario or lab.scenario_of(file)
            except linux.NotHereError as error:
                raise NotMeasuredError("skipped", str(error)) from None
            except ScenarioError as error:
                raise FigureError(f"{spec.path}: lab, run {run.name}: {error}") from None
            results = _valid(file, folder, seed, f"{spec.id} {run.name}", say)
            finished[run.name] = run_set(run.name, results, spec.measure.group)
    return finished, scenario


def _valid(file: Path, folder: Path, seed: int | None, name: str, say: Say) -> Results:
    for number in range(1, TRIES + 1):
        try:
            measured = lab.run(file, folder, seed=seed, lab_id=prefix())
        except (linux.NotHereError, ScenarioError) as error:
            raise NotMeasuredError("skipped", str(error)) from None
        except FlowstampError as error:
            raise MeasurementError(f"{name}: {error}") from None
        if not measured.invalid:
            return measured.results
        if number < TRIES:
            say(f"{name}: invalid: {measured.invalid}; once more")
    raise NotMeasuredError("invalid", f"{name}: {measured.invalid}; tried {TRIES} times")


def run_set(name: str, results: Results, group: str) -> RunSet:
    """Converts a lab's run for use in claims."""
    scenario = results.manifest["scenario"] or {}
    finished = Finished.of(results, flow_series=True, packet_bytes=PACKET_BYTES, scenario=scenario)
    return RunSet(name, [finished], ["bottleneck"], group)


def changed(tree: Mapping[str, Any], sets: Sets, source: str) -> dict[str, Any]:
    """Returns a lab with overridden keys, as in scenarios: `flows.NAME.key` is a key of the group NAME.

    Raises `FigureError` if the lab has no such table.
    """
    new: dict[str, Any] = json.loads(json.dumps(tree))
    for dotted, value in sets:
        at: Any = new
        *way, last = dotted.split(".")
        for key in way:
            if isinstance(at, list):
                at = next((group for group in at if group.get("name") == key), None)
            else:
                at = at.get(key) if isinstance(at, dict) else None
        if not isinstance(at, dict):
            raise FigureError(f"{source}: set {dotted}: the lab has no such table")
        at[last] = tomllib.loads(f"value = {value}")["value"]
    return new


# ---------------------------------------------------------------------------------------------------- forwarding


def forwarding(spec: FigureSpec) -> dict[str, Computed]:
    """Measures the cost of a packet in ns, by kind, for every round. Errors are those of `labs`."""
    wanted: Sequence[str] = [run.name for run in spec.runs if run.on == "forwarding"]
    try:
        program = linux.required("router")
        measured = router_cost.measure(program, f"fs-{prefix()}", spec.points, spec.packets or 0, lambda _: None)
    except linux.NotHereError as error:
        raise NotMeasuredError("skipped", str(error)) from None
    except FlowstampError as error:
        raise MeasurementError(str(error)) from None
    found: dict[str, Computed] = {}
    for name in wanted:
        if name not in measured["thread"]:
            raise FigureError(f"{spec.path}: runs.{name}: on forwarding there are {', '.join(measured['thread'])}")
        values: dict[str, Any] = {"thread_ns": np.array(measured["thread"][name])}
        if name in measured["own"]:
            values["bpf_ns"] = np.array(measured["own"][name])
        counted = measured["bench"].get(name, {})
        values |= {key: np.array([float(counted[key])]) for key in router_cost.OPERATIONS if key in counted}
        found[name] = Computed(name, values)
    return found
