# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Many runs on all cores: a list of scenarios, or a grid over keys of one."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flowstamp import _flowstamp, machine
from flowstamp.errors import ScenarioError, translated
from flowstamp.results import Results
from flowstamp.scenario import Progress, Scenario


def run_many(
    scenarios: Sequence[Scenario],
    *,
    seed: int | None = None,
    threads: int | None = None,
    memory: str | None = None,
    progress: Progress | None = None,
) -> list[Results]:
    """Runs scenarios on all cores, or on `threads` of them; results in the order given.

    All are checked before the first starts. `seed` replaces every scenario's own. Of `memory`, as in `Scenario.run`,
    all have their part: a run waits until there is room beside the others and the results of those before.
    """
    checked = [(scenario.to_toml(memory=memory), scenario.source, (), scenario.base_dir) for scenario in scenarios]
    with translated():
        runs = _flowstamp.run_many(
            checked, seed=seed, threads=threads, memory=machine.memory(memory), progress=progress
        )
    results = [Results(run) for run in runs]
    for scenario, result in zip(scenarios, results, strict=True):
        scenario._warn(result)
    return results


@dataclass(frozen=True)
class Sweep:
    """Results over a grid."""

    keys: tuple[str, ...]
    """What was varied: dotted keys, and `seed` if there were several."""
    points: tuple[dict[str, Any], ...]
    """The values of `keys`, for each run."""
    results: tuple[Results, ...]
    """The results, for each run."""

    def rows(self) -> list[dict[str, Any]]:
        """The summaries as a tidy table: a column for each key, then kind, name, metric and value."""
        return list(self._rows())

    def _rows(self) -> Iterator[dict[str, Any]]:
        for point, results in zip(self.points, self.results, strict=True):
            tables: list[tuple[str, str, Mapping[str, Any]]] = [
                *(("link", name, values) for name, values in results.links.items()),
                *(("group", name, values) for name, values in results.groups.items()),
                ("total", "", results.summary["total"]),
            ]
            for kind, name, values in tables:
                for metric, value in values.items():
                    if isinstance(value, int | float):
                        yield {**point, "kind": kind, "name": name, "metric": metric, "value": value}

    def csv(self) -> str:
        """`rows` as CSV."""
        text = io.StringIO()
        writer = csv.DictWriter(text, [*self.keys, "kind", "name", "metric", "value"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(self._rows())
        return text.getvalue()


def sweep(
    scenario: Scenario,
    grid: Mapping[str, Sequence[Any]],
    *,
    seeds: Sequence[int] = (),
    threads: int | None = None,
    memory: str | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Runs a scenario at every point of a grid, on all cores.

    Args:
        scenario: what to run.
        grid: values for each dotted key: `{"dumbbell.rate": ["20Mbps", "80Mbps"], "flows.xcp.count": [1, 10]}`.
        seeds: runs every point once for each; default once, with the scenario's seed.
        threads: default all cores.
        memory: what all runs may need together, as in `run_many`.
        progress: called about ten times a second; what it raises stops the runs.
    """
    axes: dict[str, Sequence[Any]] = dict(grid)
    if seeds:
        if "seed" in axes:
            raise ScenarioError("grid: seed: is varied twice; give it in the grid or as seeds, not both")
        axes["seed"] = seeds
    for key, values in axes.items():
        if isinstance(values, str) or not values:
            raise ScenarioError(f"grid: {key}: {values!r} must be a list of at least one value")
    points = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    scenarios = []
    for point in points:
        varied = scenario
        for key, value in point.items():
            varied = varied.set(key, value)
        scenarios.append(varied)
    results = run_many(scenarios, threads=threads, memory=memory, progress=progress)
    return Sweep(tuple(axes), tuple(points), tuple(results))
