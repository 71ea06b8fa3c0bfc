# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Formats numbers and tables as text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Sized
from typing import Any

from flowstamp.names import spelled

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def rate(bps: float) -> str:
    """Formats bits per second: "44.9 Mbps"."""
    return _scaled(bps, "bps")


def size(count: float) -> str:
    """Formats bytes: "12.3 kB"."""
    return _scaled(count, "B")


def _scaled(value: float, unit: str) -> str:
    factor, prefix = next(((f, p) for f, p in _PREFIXES if abs(value) >= 0.99995 * f), (1.0, ""))
    # A person rounds less than a twentieth of a byte, or of a bit per second, to zero.
    return f"{value / factor if abs(value) >= 0.05 else 0:.4g} {prefix}{unit}"


def size_bin(least: float, next_least: float) -> str:
    """Formats a range of sizes in bytes: "3 kB to 10 kB", "below 3 kB", "10 kB on"."""
    if next_least >= 2**63:
        return f"{size(least)} on"
    return f"{size(least)} to {size(next_least)}" if least else f"below {size(next_least)}"


def seconds(value: float) -> str:
    """Formats seconds: "80 ms"."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(value) >= 0.99995 * factor:
            return f"{value / factor:.4g} {unit}"
    return f"{value / 1e-9:.4g} ns" if value else "0 s"


_EXACT = re.compile(r"\b(\d{5,})(ps|ns|us|ms)\b")
_SECONDS = {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3}


def rounded(line: str) -> str:
    """Rounds the exact times in the engine's messages: "23333333333ps" becomes "23.33ms"."""
    return _EXACT.sub(lambda time: seconds(int(time[1]) * _SECONDS[time[2]]).replace(" ", ""), line)


def percent(share: float) -> str:
    """Formats a share: "98.31%". A share that is not zero, but would round to it, is "<0.01%"."""
    value = 100 * share
    return "<0.01%" if 0 < value < 0.005 else f"{value:.2f}%"


UNITS = {"_bytes": "bytes", "_bps": "bit/s", "_s": "s"}
WORDS = {"utilization": "utilisation", "jain_index": "Jain's index"}
"""Metrics whose names in words are not their own."""


def metric(name: str) -> str:
    """Returns a metric's name in words: "mean_queue_bytes" becomes "Mean queue (bytes)"."""
    name = spelled(name)
    unit = next((unit for unit in UNITS if name.endswith(unit)), "")
    words = WORDS.get(name, name.removesuffix(unit).replace("_", " ").replace(".", " "))
    return f"{words[:1].upper()}{words[1:]}" + (f" ({UNITS[unit]})" if unit else "")


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
