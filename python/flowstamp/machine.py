# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Memory and cores of the machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from flowstamp import _flowstamp
from flowstamp.errors import ScenarioError

SHARE = 0.75
"""Default memory limit of all runs together, as a share of the available memory."""


def memory(given: str | None = None) -> int | None:
    """Returns the memory limit of all runs together in bytes: `given`, such as "4GB", or three quarters of what exists.

    The available memory is the minimum of the machine's memory, the limits of the process's cgroups, and its own limits
    (`ulimit -v`, `-d`). It ignores the momentary use, so that the decision about a scenario is repeatable. None if
    nothing is known. Raises `ScenarioError` if `given` is not a size.
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
    """Yields the memory limits in bytes of this process's control groups (versions 1 and 2) and of their parents."""
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
        # In a container the group may be mounted as the root, or under its name outside the container.
        for group in dict.fromkeys([path, *path.parents]):
            try:
                text = (folder / group / file).read_text(encoding="ascii").strip()
            except OSError:
                continue
            # "No limit" is the largest number of pages in version 1, and "max" in version 2.
            if text.isdecimal() and int(text) < 2**62:
                yield int(text)


def cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
