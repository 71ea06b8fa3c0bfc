# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Names as users write them: both spellings of utilisation, and a hint at the nearest known name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


def spelled(name: str) -> str:
    """Returns a metric's name as results spell it: "utilisation" becomes "utilization"."""
    return name.replace("utilisation", "utilization")


MOST_NAMED = 8
"""How many names a message lists beside the nearest one."""


def nearest(word: str, known: Iterable[str], why: str = "is not there") -> str:
    """Returns a message about an unknown name. It has the nearest known name, and all names unless they are many."""
    names = list(known)
    near = next((name for name in names if word and name.startswith(word)), None)
    near = near or next(iter(get_close_matches(word, names, 1)), None)
    hint = [f'did you mean "{near}"?'] if near else []
    if not near or len(names) <= MOST_NAMED:
        hint.append(f"there are {', '.join(names) or 'none'}")
    return f'"{word}" {why}; {" ".join(hint)}'


class Named(dict[str, Any]):
    """A dictionary that accepts both spellings of utilisation. The error for an unknown key names the nearest one."""

    def __missing__(self, key: str) -> Any:
        if spelled(key) in self:
            return self[spelled(key)]
        raise KeyError(nearest(key, self))
