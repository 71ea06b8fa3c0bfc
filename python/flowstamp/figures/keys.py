# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reads the table of a control theory curve, whose valid keys depend on one another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from flowstamp import _flowstamp
from flowstamp.errors import FlowstampError
from flowstamp.figures.tables import TableError

Floats = NDArray[np.float64]
MOST_STEPS = 100_000


class Keys:
    """Reads a table key by key. All methods raise `TableError` if a value is invalid or missing without a default."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.table, self.taken = table, {"control"}

    def has(self, key: str) -> bool:
        """Whether the table has the key."""
        return key in self.table

    def _get(self, key: str, default: Any) -> Any:
        self.taken.add(key)
        return self.table.get(key, default)

    def choice(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        """Reads one of the given words."""
        value = self._get(key, default)
        if value not in choices:
            raise TableError(key, f"one of {', '.join(choices)}")
        return cast("str", value)

    def numbers(self, key: str, default: float | None = None, *, least: float = 0.0, varies: bool = True) -> Floats:
        """Reads one number, a list or a range, each value at least `least`. Without `varies`, only one number."""
        what = f"numbers from {least:g}" if varies else f"a number from {least:g}"
        expected = what + (", a list, or { from, to, steps, scale }" if varies else "")
        match self._get(key, default):
            case bool():
                found: list[float] = []
            case int() | float() as number:
                found = [float(number)]
            case list() as several if varies and all(type(v) in (int, float) for v in several):
                found = [float(v) for v in several]
            case dict() as table if varies:
                return self._range(key, table, least)
            case _:
                found = []
        if not found or not all(math.isfinite(v) and v >= least for v in found):
            raise TableError(key, expected)
        return np.array(found)

    @staticmethod
    def _range(key: str, table: Mapping[str, Any], least: float) -> Floats:
        expected = '{ from = 0.1, to = 2.0, steps = 20 }, with scale = "log" if wanted, and at most 5000 steps'
        low, high, steps, scale = (table.get(k) for k in ("from", "to", "steps", "scale"))
        if not set(table) <= {"from", "to", "steps", "scale"} or scale not in (None, "linear", "log"):
            raise TableError(key, expected)
        if type(low) not in (int, float) or type(high) not in (int, float) or type(steps) is not int:
            raise TableError(key, expected)
        low, high, steps = cast("tuple[float, float, int]", (low, high, steps))
        if not (math.isfinite(high) and max(least, 1e-12 if scale == "log" else least) <= low < high):
            raise TableError(key, expected)
        if not 2 <= steps <= 5000:
            raise TableError(key, expected)
        values = np.geomspace(low, high, steps) if scale == "log" else np.linspace(low, high, steps)
        return values.astype(np.float64)

    def number(self, key: str, default: float | None = None, *, least: float = 0.0) -> float:
        """Reads one number, at least `least`."""
        return float(self.numbers(key, default, least=least, varies=False)[0])

    def steps(self) -> int:
        """Reads the number of points in time, 10 to `MOST_STEPS`; default 1000."""
        value = self._get("steps", 1000)
        if type(value) is not int or not 10 <= value <= MOST_STEPS:
            raise TableError("steps", f"a whole number from 10 to {MOST_STEPS}")
        return value

    def quantities(self, key: str, kind: str, default: str | None = None) -> Floats:
        """Reads one quantity with its unit, or a list of them, above 0."""
        value = self._get(key, default)
        texts = value if isinstance(value, list) else [value]
        example = {"time": "80ms", "rate": "45Mbps", "size": "64kB"}[kind]
        try:
            found = [_flowstamp.quantity(kind, text) for text in texts if isinstance(text, str)]
        except (FlowstampError, _flowstamp.TheoryError) as error:
            raise TableError(key, str(error)) from error
        if not found or len(found) < len(texts) or min(found) <= 0.0:
            raise TableError(key, f'a {kind} above 0 such as "{example}", or a list of them')
        return np.array(found)

    def quantity(self, key: str, kind: str, default: str | None = None) -> float:
        """Reads one quantity with its unit, above 0."""
        found = self.quantities(key, kind, default)
        if found.size > 1:
            raise TableError(key, f"one {kind}")
        return float(found[0])

    def pair(self, key: str, default: tuple[float, float]) -> tuple[float, float]:
        """Reads two numbers."""
        value = self._get(key, list(default))
        if not (isinstance(value, list) and len(value) == 2 and all(type(v) in (int, float) for v in value)):
            raise TableError(key, "two numbers")
        return float(value[0]), float(value[1])

    def table_of(self, key: str, names: tuple[str, str]) -> tuple[float, float]:
        """Reads a table of two numbers above 0."""
        value = self._get(key, None)
        values = list(value.values()) if isinstance(value, dict) and set(value) == set(names) else []
        if not values or not all(type(v) in (int, float) and 0 < v < math.inf for v in values):
            raise TableError(key, f"a table with {names[0]} and {names[1]}, numbers above 0")
        return float(value[names[0]]), float(value[names[1]])

    def lists(self, key: str, expected: str) -> list[Any]:
        """Reads a list that is not empty."""
        value = self._get(key, None)
        if not isinstance(value, list) or not value:
            raise TableError(key, expected)
        return value

    def done(self) -> None:
        """Raises `TableError` for a key that was not read."""
        for key in self.table:
            if key not in self.taken:
                raise TableError(key, f"one of the keys {', '.join(sorted(self.taken))}")
