# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs by links in other processes: each job runs some of the links, in this machine's processes or on a Dask cluster.

Every process lays out the same network and draws the same flows. Jobs carry numbers of links, and in the second pass
what the first one found out about their flows. Results do not depend on how the links are divided.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from flowstamp import _flowstamp, executors, machine
from flowstamp.errors import translated

if TYPE_CHECKING:
    from flowstamp.scenario import Progress

JOBS_PER_PROCESS = 4
"""Jobs of each pass for one process, so that none has long to wait for the others at the end."""
JOBS_OF_CLUSTER = 128
"""Jobs of each pass on a cluster, whose workers may come and go."""

_laid_out: list[tuple[object, _flowstamp.Links]] = []
"""The network of this process's last job, until its run has ended."""
_lock = threading.Lock()


@dataclass(frozen=True)
class Part:
    """A job: some links of a scenario in one pass."""

    job: executors.Job
    seed: int | None
    links: tuple[int, ...]
    before: bytes | None
    """The state of their flows after the first pass."""
    needs_bytes: int

    @property
    def source(self) -> str:
        """Name of the scenario in messages."""
        return self.job.source

    def carry(self, memory: int | None, tables: bool, wanted: Callable[[], bool]) -> executors.Came:  # noqa: ARG002
        """Runs the links in another process. Stops early once `wanted` returns False."""
        with translated():
            links = self._links(memory)
            part = links.part(self.links, self.before, progress=executors.while_wanted(wanted))
        return executors.Came({"links": part}, executors.engine())

    def _links(self, memory: int | None) -> _flowstamp.Links:
        key = _key(self.job, self.seed)
        with _lock:
            if not _laid_out or _laid_out[0][0] != key:
                _laid_out.clear()
                links = _flowstamp.Links(_scenario(self.job), seed=self.seed, memory=memory)
                links.needs(1, results=False, memory=memory)
                _laid_out.append((key, links))
            return _laid_out[0][1]


def _key(job: executors.Job, seed: int | None) -> object:
    return job.text, tuple(job.files.items()), seed


def _forget(key: object, last: bool, failed: bool) -> None:
    """Frees this process's network if it is that of `key`, whose run has failed or had its `last` pass."""
    with _lock:
        if (last or failed) and _laid_out and _laid_out[0][0] == key:
            _laid_out.clear()


def _scenario(job: executors.Job) -> _flowstamp.Job:
    return job.text, job.source, (), job.files


def run(
    job: executors.Job,
    *,
    executor: str,
    seed: int | None = None,
    threads: int | None = None,
    memory: str | None = None,
    progress: Progress | None = None,
) -> _flowstamp.Run:
    """Runs a scenario by links, with jobs in `threads` processes (default: one for each core) or on a Dask cluster.

    Raises `ScenarioError` if the scenario needs a run of the whole network, or more than `memory`.
    """
    began = time.perf_counter()
    executors.check(executor)
    limit = machine.memory(memory)
    with translated():
        links = _flowstamp.Links(_scenario(job), seed=seed, memory=limit)
        each = links.needs(1, results=False)
        here = executor == "processes"
        # Processes of this machine share the memory with this one, which has the results.
        with_results = links.needs(int(here), results=True, memory=limit)
        processes = threads or machine.cores()
        if here and limit is not None:
            processes = min(processes, 1 + (limit - with_results) // each)
        works = links.works()
        duration_s, passes = links.duration_s, links.passes
    all_work, done, events = passes * sum(work for _, work in works), 0, 0
    jobs = min(len(works), JOBS_PER_PROCESS * processes if here else JOBS_OF_CLUSTER)
    shares = [works[first::jobs] for first in range(jobs)]
    for number in range(passes if works else 0):
        if number:
            links.next_pass()
        parts = [Part(job, seed, names, links.before(names), each) for names in map(_names, shares)]

        def take(part: int, came: executors.Came) -> None:
            nonlocal done, events
            with translated():
                events = links.take(came.files["links"])
            done += sum(work for _, work in shares[part])
            if progress is not None:
                progress(0, 1, duration_s * done / all_work, duration_s, events)

        after = partial(_forget, _key(job, seed), number + 1 == passes)
        executors.elsewhere(
            parts, take, executor=executor, threads=processes, limit=limit if memory else None, after=after
        )
    with translated():
        links.next_pass()
        return links.end(time.perf_counter() - began)


def _names(share: list[tuple[int, int]]) -> tuple[int, ...]:
    return tuple(link for link, _ in share)
