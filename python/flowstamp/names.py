# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Names as users write them: both spellings of utilisation, and a hint at the nearest known name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


def spelled(name: str) -> str:
    """Returns a metric's name as results spell it: "utilisation" becomes "utilization"."""
    return name.replace("utilisation", "utilization")


def nearest(word: str, known: Iterable[str], why: str = "is not there") -> str:
    """Returns a message about an unknown name that has the nearest known one, or all of them if none is near."""
    names = list(known)
    near = next((name for name in names if word and name.startswith(word)), None)
    near = near or next(iter(get_close_matches(word, names, 1)), None)
    return f'"{word}" {why}; ' + (f'did you mean "{near}"?' if near else f"there are {', '.join(names) or 'none'}")


class Named(dict[str, Any]):
    """A dictionary that accepts both spellings of utilisation. The error for an unknown key names the nearest one."""

    def __missing__(self, key: str) -> Any:
        if spelled(key) in self:
            return self[spelled(key)]
        raise KeyError(nearest(key, self))
