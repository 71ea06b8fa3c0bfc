# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Formats numbers and tables as text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Sized
from typing import Any

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def rate(bps: float) -> str:
    """Formats bits per second: "44.9 Mbps"."""
    return _scaled(bps, "bps")


def size(count: float) -> str:
    """Formats bytes: "12.3 kB"."""
    return _scaled(count, "B")


def _scaled(value: float, unit: str) -> str:
    factor, prefix = next(((f, p) for f, p in _PREFIXES if abs(value) >= f), (1.0, ""))
    return f"{value / factor:.4g} {prefix}{unit}"


def size_bin(least: float, next_least: float) -> str:
    """Formats a range of sizes in bytes: "3 kB to 10 kB", "below 3 kB", "10 kB on"."""
    if next_least >= 2**63:
        return f"{size(least)} on"
    return f"{size(least)} to {size(next_least)}" if least else f"below {size(next_least)}"


def seconds(value: float) -> str:
    """Formats seconds: "80 ms"."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(value) >= factor:
            return f"{value / factor:.4g} {unit}"
    return f"{value / 1e-9:.4g} ns" if value else "0 s"


def percent(share: float) -> str:
    """Formats a share: "98.31%". Values that would round to 0% or 100%, but are not, get more digits."""
    value = 100 * share
    digits = 2
    while digits < 6 and (0 < abs(value) < 10.0**-digits or 0 < abs(100 - value) < 10.0**-digits):
        digits += 1
    return f"{value:.{digits}f}%"


def maybe(value: float | None, digits: int = 4) -> str:
    """Formats a number, or a dash for None and NaN."""
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def counted(number: int, thing: str) -> str:
    """Formats a count: "1 figure", "2 figures"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


MOST_LINKS = 24
"""Maximum number of links that tables list in full."""
SHOWN_LINKS = 6


def are_many(links: Sized) -> bool:
    """Whether there are too many links to list in full."""
    return len(links) > MOST_LINKS


def most_used(links: Sequence[Mapping[str, Mapping[str, Any]]]) -> list[str]:
    """Returns the links to show for runs of one network: all, or the most used in any run if there are many."""
    names = list(links[0])
    if not are_many(links[0]):
        return names
    highest = {name: max(run[name]["utilization"] for run in links) for name in names}
    return sorted(names, key=lambda name: -highest[name])[:SHOWN_LINKS]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Formats a table; the first column is aligned left, the others right."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        first = cells[0].ljust(widths[0])
        rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
        return "  ".join([first, *rest]).rstrip()

    return "\n".join(line(cells) for cells in lines)
