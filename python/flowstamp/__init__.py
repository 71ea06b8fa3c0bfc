# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Flowstamp: explicit-feedback congestion control.

Routers write feedback into each packet, the receiver echoes it, and the sender adjusts its rate to it.

    import flowstamp as fs

    r = fs.dumbbell("45Mbps", rtt="40ms").flows("xcp", 5, every="2s").run("10s")
    r.links["bottleneck"]["utilization"]
    r.plot()

Importing the package is cheap: each name loads its module at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flowstamp import stability, theory
    from flowstamp._flowstamp import Table
    from flowstamp.comparison import Comparison, compare
    from flowstamp.errors import (
        FlowstampError,
        OutputError,
        ResultsError,
        ResultsWarning,
        ScenarioError,
        ScenarioWarning,
        TheoryError,
    )
    from flowstamp.fct import fct_slowdown
    from flowstamp.results import Results
    from flowstamp.results import load as load_results
    from flowstamp.scenario import (
        Scenario,
        dumbbell,
        fat_tree,
        graph,
        laws,
        leaf_spine,
        load,
        loads,
        parking_lot,
        schema,
    )
    from flowstamp.simulation import Simulation
    from flowstamp.sweeps import Sweep, run_many, sweep

    __version__: str

__all__ = [
    "Comparison",
    "FlowstampError",
    "OutputError",
    "Results",
    "ResultsError",
    "ResultsWarning",
    "Scenario",
    "ScenarioError",
    "ScenarioWarning",
    "Simulation",
    "Sweep",
    "Table",
    "TheoryError",
    "__version__",
    "compare",
    "dumbbell",
    "fat_tree",
    "fct_slowdown",
    "graph",
    "laws",
    "leaf_spine",
    "load",
    "load_results",
    "loads",
    "parking_lot",
    "run_many",
    "schema",
    "stability",
    "sweep",
    "theory",
]

_HOME = {
    "FlowstampError": "errors",
    "OutputError": "errors",
    "ResultsError": "errors",
    "ResultsWarning": "errors",
    "ScenarioError": "errors",
    "ScenarioWarning": "errors",
    "TheoryError": "errors",
    "Results": "results",
    "Table": "_flowstamp",
    "Comparison": "comparison",
    "compare": "comparison",
    "load_results": "results",
    "Scenario": "scenario",
    "dumbbell": "scenario",
    "fat_tree": "scenario",
    "fct_slowdown": "fct",
    "graph": "scenario",
    "laws": "scenario",
    "leaf_spine": "scenario",
    "load": "scenario",
    "loads": "scenario",
    "parking_lot": "scenario",
    "schema": "scenario",
    "Simulation": "simulation",
    "Sweep": "sweeps",
    "run_many": "sweeps",
    "sweep": "sweeps",
    "__version__": "_flowstamp",
    "stability": "stability",
    "theory": "theory",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'flowstamp' has no attribute {name!r}")
    module = import_module(f"flowstamp.{home}")
    value: object = module if name == home else getattr(module, "load" if name == "load_results" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
