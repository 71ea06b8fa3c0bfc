# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the machine has, as far as runs ask for it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from flowstamp import _flowstamp
from flowstamp.errors import ScenarioError

SHARE = 0.75
"""Of the machine's memory, what runs may need together unless they are given more or less."""


def memory(given: str | None = None) -> int | None:
    """Bytes that runs may need together: what is given, such as "4GB", or three quarters of what this process can have.

    That is the least of the machine's memory, the limits of its cgroups, and its own (`ulimit -v`, `-d`): not what
    happens to be free, so that a scenario which is refused is so again. None where nothing is known.
    """
    if given is not None:
        try:
            return int(_flowstamp.quantity("size", given))
        except _flowstamp.TheoryError as error:
            raise ScenarioError(f"memory: {error}") from None
    most = _most()
    return None if most is None else int(SHARE * most)


@cache
def _most() -> int | None:
    return min(_limits(), default=None)


def _limits() -> Iterator[int]:
    with contextlib.suppress(AttributeError, OSError, ValueError):
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        import resource

        own = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
        yield from (limit for limit in own if limit != resource.RLIM_INFINITY)
    except ImportError:
        pass
    yield from cgroup_limits(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))


def cgroup_limits(groups: Path, root: Path) -> Iterator[int]:
    """Limits of this process's control groups, of both versions, and of those above them."""
    try:
        lines = groups.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, name = (*line.split(":", 2), "", "")[:3]
        if controllers == "":
            folder, file = root, "memory.max"
        elif "memory" in controllers.split(","):
            folder, file = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        path = Path(name.lstrip("/"))
        # A container may see itself as the root, or under the name that it has outside.
        for group in dict.fromkeys([path, *path.parents]):
            try:
                text = (folder / group / file).read_text(encoding="ascii").strip()
            except OSError:
                continue
            # Version 1 says "none" as the largest number of pages, version 2 as "max".
            if text.isdecimal() and int(text) < 2**62:
                yield int(text)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
