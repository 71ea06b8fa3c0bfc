# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Curves of one point whose numbers a tool has counted: `[runs.theory]` with `stored`.

hardware     resources of the router in hardware/, by `tools/hardware.py synthesis`
operations   RCP's operations in the compiled BPF program, checked by a test of crates/flowstamp-linux
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowstamp.figures.tables import TableError
from flowstamp.router_cost import OPERATIONS

FILES = {"hardware": ("rcp", "xcp", "vcp"), "operations": ("packet", "interval")}
"""The files beside the figures, and the tables in them."""
RESOURCES = ("gates", "luts", "flip_flops", "carries", "block_rams", "multipliers", "clock_mhz")
COUNTS = ("registers_32", "registers_16", "lines_rtl", "lines_control", "products")
MEASURES = tuple(dict.fromkeys((*RESOURCES, *COUNTS, *OPERATIONS)))


def path(file: str) -> Path:
    """Returns where a file is: beside the figures, in a wheel and in a checkout."""
    return Path(__file__).parent / "data" / f"{file}.json"


@dataclass(frozen=True)
class Stored:
    """A `[runs.theory]` table: `stored` names the file, and `of` the table in it."""

    stored: str
    of: str

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Stored:
        """Reads the table. Raises `TableError` if it is invalid."""
        for key in table:
            if key not in ("stored", "of"):
                raise TableError(key, "one of the keys stored, of")
        if table["stored"] not in FILES:
            raise TableError("stored", f"one of {', '.join(FILES)}")
        if table.get("of") not in FILES[table["stored"]]:
            raise TableError("of", f"one of {', '.join(FILES[table['stored']])}")
        return cls(table["stored"], table["of"])

    def at(self, _: Sequence[float]) -> Mapping[str, NDArray[np.float64]]:
        """Returns each number as a curve of one point."""
        record = json.loads(path(self.stored).read_text(encoding="utf-8"))
        # The file has tables of a law's own beside those that all laws have.
        own = [table for name, table in record.items() if name.startswith(f"{self.of}_")]
        values: dict[str, float] = {}
        for table in (record.get("laws", record)[self.of], *own):
            values |= table
        return {name: np.array([float(value)]) for name, value in values.items()}
