# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Computed curves of a figure, without simulation: `[runs.theory]` in its file.

discipline   mean flow completion time of equation 2.1; `x` is the load; measure fct_s
blocking     appendix A's model; `x` is the flows' rate in Mb/s; measures duration_s, duration_fluid_s,
             mean_queue_packets
control      control theory, with its own x values: `flowstamp.figures.control`
stored       numbers that a tool has counted: `flowstamp.figures.stored`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from flowstamp import _flowstamp, theory
from flowstamp.errors import FlowstampError
from flowstamp.figures import control, stored
from flowstamp.figures.tables import TableError

Floats = NDArray[np.float64]

MEASURES = ("fct_s", "thread_ns", "bpf_ns", *stored.MEASURES, *control.MEASURES)
"""Measures without simulation: of equation 2.1, of forwarding on this machine, counted, and of control theory."""
PACKET_BYTES = 1000.0


class Theory(Protocol):
    """A computed curve."""

    def at(self, x: Sequence[float]) -> Mapping[str, Floats]:
        """Returns the curve's measures, at the figure's points `x` or at the curve's own."""


def curve(table: Mapping[str, Any]) -> Theory:
    """Reads a `[runs.theory]` table. Raises `TableError` if it is invalid."""
    if "stored" in table:
        return stored.Stored.read(table)
    return control.Curve.of(table) if "control" in table else Curve.of(table)


@dataclass(frozen=True)
class Curve:
    """A `[runs.theory]` table with `discipline` or `blocking`."""

    capacity: str
    rtt: str
    sizes: theory.Sizes
    discipline: theory.Discipline | None
    flows_per_s: float | None
    blocking: theory.Blocking | None

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Curve:
        """Reads the table. Raises `TableError` if it is invalid."""
        known = ("capacity", "rtt", "sizes", "discipline", "flows_per_s", "blocking")
        for key in table:
            if key not in known:
                raise TableError(key, f"one of the keys {', '.join(known)}")
        for key in ("capacity", "rtt"):
            if not isinstance(table.get(key), str):
                raise TableError(key, "a text with its unit")
        if ("discipline" in table) == ("blocking" in table):
            raise TableError("discipline", "either a discipline or a blocking with flows_per_s")
        rate = table.get("flows_per_s")
        if ("blocking" in table) != isinstance(rate, int | float):
            raise TableError("flows_per_s", "a number beside blocking")
        return cls(
            table["capacity"],
            table["rtt"],
            _sizes(table.get("sizes")),
            table.get("discipline"),
            None if rate is None else float(cast("float", rate)),
            table.get("blocking"),
        )

    def at(self, x: Sequence[float]) -> Mapping[str, Floats]:
        """Returns the curve's measures at these points."""
        if self.discipline is not None:
            links = [theory.Link(self.capacity, self.sizes, load=load) for load in x]
            return {"fct_s": np.array([link.mean_fct(self.discipline, self.rtt) for link in links])}
        link = theory.Link(self.capacity, self.sizes, flows_per_s=self.flows_per_s)
        blocking = self.blocking or "two_point_smooth"
        shares = [1e6 * mbps / _flowstamp.quantity("rate", self.capacity) for mbps in x]
        # The duration runs from the first packet's departure to the last packet's arrival: half an RTT of propagation.
        there = _flowstamp.quantity("time", self.rtt) / 2
        durations = np.array([link.mean_duration(share, blocking=blocking) + there for share in shares])
        return {
            "duration_s": durations,
            "duration_fluid_s": durations,  # the model has no handshake, like the fluid queue
            "mean_queue_packets": np.array(
                [link.mean_queue_bytes(share, blocking=blocking) / PACKET_BYTES for share in shares]
            ),
        }


def _sizes(table: object) -> theory.Sizes:
    expected = 'a table such as { distribution = "pareto", mean = "25kB", shape = 1.2, largest = "1GB" }'
    try:
        match table:
            case {"distribution": "exponential", "mean": str() as mean, **rest} if not rest:
                return theory.exponential(mean)
            case {"distribution": "pareto", "mean": str() as mean, "shape": int() | float() as shape, **rest}:
                largest = rest.pop("largest", None)
                if not rest and (largest is None or isinstance(largest, str)):
                    return theory.pareto(mean, shape, largest)
    except FlowstampError as error:
        raise TableError("sizes", str(error)) from error
    raise TableError("sizes", expected)


class Computed:
    """A curve of numbers without a simulated run, as claims see it: computed, or measured in rounds."""

    runs: Sequence[Any] = ()

    def __init__(self, name: str, values: Mapping[str, Floats]) -> None:
        self.name, self.values = name, values

    def measure(self, name: str) -> Floats:
        """Returns one value for each point. Raises `ValueError` for an unknown measure."""
        if name not in self.values:
            raise ValueError(f'{self.name} is not a simulation and has no "{name}", but {", ".join(self.values)}')
        return self.values[name]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Returns a function that raises `ValueError`: only a simulated run has flows and samples."""

        def refuse(*_: object) -> Any:
            raise ValueError(f"{self.name} is not a simulation; it has no flows or samples over time")

        return refuse
