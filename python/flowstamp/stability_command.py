# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Implementation of `flowstamp stability`: reads the request, computes the results, writes text and pictures."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flowstamp import executors, plot, stability_network
from flowstamp.errors import ScenarioWarning, UsageError
from flowstamp.progress import Meter, note
from flowstamp.stability import MODELS, Stability, of, of_scenario

if TYPE_CHECKING:
    from flowstamp.scenario import Scenario


@dataclass(frozen=True)
class Packets:
    """Options of the packet simulations of `--check-by-simulation`."""

    points: int
    seeds: int
    seed: int
    threads: int | None
    memory: str | None
    executor: str

    def __post_init__(self) -> None:
        executors.check(self.executor)


def asked(
    what: str,
    alpha: float | None,
    beta: float | None,
    rtt: str | None,
    flows: str | None,
    load: Callable[[Path, list[str]], Scenario],
    sets: list[str],
) -> tuple[list[Stability], stability_network.Network | None]:
    """Returns the loops that the user asked for: of a law, or of a scenario's routers.

    For a scenario whose flows pass several such routers, also returns their network model. Raises `UsageError` for
    options that do not fit.
    """
    if what in MODELS or not (what.endswith((".toml", ".json")) or Path(what).exists()):
        if sets:
            raise UsageError("--set is for a scenario; give a law its gains by --alpha and --beta")
        counts = None if flows is None else _whole_numbers("--flows", flows)
        return [of(what, alpha=alpha, beta=beta, rtt=_several("100ms" if rtt is None else rtt), flows=counts)], None
    if alpha is not None or beta is not None:
        raise UsageError("a scenario has gains of its own; override them by --set dumbbell.router.alpha=0.5")
    if flows is not None:
        raise UsageError("--flows is for a law; a scenario has flows of its own")
    scenario = load(Path(what), sets)
    for line in scenario.warnings():
        # This command itself reports on stability, so that such a warning is redundant.
        if not line.endswith("see flowstamp stability"):
            warnings.warn(f"{scenario.source}: {line}", ScenarioWarning, stacklevel=2)
    if rtt is not None:
        return of_scenario(scenario, _several(rtt)), None
    return of_scenario(scenario), stability_network.of_scenario(scenario)


def tell(
    found: list[Stability],
    together: stability_network.Network | None,
    out: Path,
    pictures: bool,
    packets: Packets | None,
) -> tuple[dict[str, Any], list[str]]:
    """Draws each loop into `out`, after its packet simulations if requested. Returns the JSON document and text lines.

    For a single loop, the document is that of the loop. For several, it lists their documents and says under `stable`
    whether all are stable.
    """
    documents, told, written = [], [], []
    for number, one in enumerate(found):
        stem = out / (one.law if len(found) == 1 else f"{one.law}-{number + 1}")
        simulated = None
        if packets is not None:
            with Meter(stem.name) as meter:
                simulated = one.check_by_simulation(**asdict(packets), progress=meter)
        if pictures or len(found) > 1:
            note(f"{stem.name}: drawing, {number + 1} of {len(found)}")
        files = plot.save(one.plot() if simulated is None else simulated.plot(), stem)
        if pictures:
            files += plot.save(one.plot_settling(), stem.with_name(f"{stem.name}-settling"))
            files += plot.save(one.plot_portrait(), stem.with_name(f"{stem.name}-portrait"))
        document, lines = {**one.as_dict(), "files": [str(path) for path in files]}, one.lines()
        if simulated is not None:
            document["simulation"] = simulated.as_dict()
            lines.append(simulated.line())
        documents.append(document)
        told.append("\n".join(lines))
        written += files
    if len(found) == 1 and together is None:
        return documents[0], [told[0], *(f"wrote {path}" for path in written)]
    whole: dict[str, Any] = {"stable": all(one.stable for one in found), "loops": documents, "together": None}
    if together is not None:
        files = plot.save(together.plot(), out / f"{together.law}-together")
        whole["stable"] = whole["stable"] and together.stable
        whole["together"] = {**together.as_dict(), "files": [str(path) for path in files]}
        told.append("\n".join(together.lines()))
        written += files
    return whole, ["\n\n".join(told), *(f"wrote {path}" for path in written)]


def _several(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _whole_numbers(option: str, text: str) -> list[int]:
    try:
        return [int(part) for part in _several(text)]
    except ValueError:
        raise UsageError(
            f"{option}: is {text}; it must be whole numbers with commas between them, such as 3,2"
        ) from None
