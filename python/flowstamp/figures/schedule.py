# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The queue of figures' runs, which start in the order of the requests.

In threads of this process, a run starts as soon as a core is free, whether anyone waits for it or not. Runs of later
figures thus start while the current figure's last run continues or its picture is drawn. A run that waits for memory
lets smaller ones pass. Equal scenarios run once.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial

from flowstamp import _flowstamp, apart, executors, machine
from flowstamp.errors import translated
from flowstamp.figures.measures import Finished
from flowstamp.figures.spec import Sets
from flowstamp.results import Results

Progress = Callable[[int, int, float, float, int], None]
Job = tuple[str, str, Sets, str]
"""A scenario for the native module: text, name, overrides and the folder of its files."""


class StoppedError(Exception):
    """The run was stopped because its result is no longer needed."""


class Run:
    """A run in the queue."""

    def __init__(self, job: Job, needs_bytes: int, *, by_links: bool = False) -> None:
        self.job, self.needs_bytes, self.by_links = job, needs_bytes, by_links
        self.ended: Future[Finished] = Future()
        self.seen = (0.0, 0.0, 0)
        """Simulated seconds, duration in seconds and events so far."""
        self.stopped = False

    def watch(self, _run: int, _runs: int, simulated_s: float, duration_s: float, events: int) -> None:
        """Takes a progress report of the engine. Raises `StoppedError` if the run was stopped."""
        if self.stopped:
            raise StoppedError
        self.seen = simulated_s, duration_s, events

    def end(self, _number: int, result: _flowstamp.Run | Results) -> None:
        """Keeps only what claims and pictures need, because the whole result takes much more memory."""
        ran = json.loads(result.manifest_json())["scenario"]
        packet = _flowstamp.quantity("size", ran["packet"])
        self.ended.set_result(
            Finished.of(result, flow_series=ran["probes"]["flows"], packet_bytes=packet, scenario=ran)
        )

    def fail(self, error: BaseException) -> None:
        """Passes an error to whoever waits for the run."""
        with suppress(InvalidStateError):  # the future was cancelled
            self.ended.set_exception(error)

    def stop(self) -> None:
        """Stops the run early."""
        self.stopped = True
        self.ended.cancel()


class Queue:
    """Queue of runs in threads of this process, or in another executor of `flowstamp.executors`."""

    def __init__(self, executor: str, memory: str | None) -> None:
        self._executor, self._memory = executor, memory
        self._limit = executors.memory_here(executor, memory)
        self._room = _Room(self._limit)
        # One thread more than cores: while one processes results, the others keep all cores busy.
        self._pool = ThreadPoolExecutor(machine.cores() + 1)
        self.runs: dict[str, Run] = {}
        """Requested runs, by resolved scenario."""
        self._wanted: dict[object, set[Run]] = {}
        """Runs that are still needed, by the owner that asked for them."""

    def ask(self, job: Job, owner: object = None, *, by_links: bool = False) -> Run:
        """Checks a scenario and appends its run to the queue, unless it is already there."""
        text, source, sets, base_dir = job
        with translated():
            scenario, _, needs_bytes = _flowstamp.Source(
                text,
                source=source,
                sets=(*sets, ("name", '"any"')),  # scenarios that differ only by name are equal
                base_dir=base_dir,
                memory=self._limit,
            ).resolve()
        if by_links:
            scenario = f"by links: {scenario}"
        if scenario not in self.runs:
            self.runs[scenario] = run = Run(job, needs_bytes, by_links=by_links)
            if self.looks_ahead:
                self._pool.submit(self._execute, run)
        self._wanted.setdefault(owner, set()).add(self.runs[scenario])
        return self.runs[scenario]

    @property
    def looks_ahead(self) -> bool:
        """Whether runs start before anyone waits for them. Elsewhere they would delay runs that are due."""
        return self._executor == executors.THREADS

    def wait(self, wanted: Iterable[Run], progress: Progress | None) -> None:
        """Waits until these runs have ended. An error or Ctrl-C meanwhile stops the whole queue."""
        runs = list(dict.fromkeys(wanted))
        left = {run.ended: number for number, run in enumerate(runs) if not run.ended.done()}
        try:
            if left and not self.looks_ahead:
                self._elsewhere([runs[number] for number in left.values()], progress)
            while left:
                ended, _ = wait(left, executors.LOOK_UP_S, FIRST_COMPLETED)
                if progress is not None:
                    for number in left.values():
                        progress(number, len(runs), *runs[number].seen)
                for one in ended:
                    one.result()
                    del left[one]
        except BaseException:
            self.stop()
            raise

    def keep(self, wanted: Collection[Run], owner: object = None) -> None:
        """Stops and drops the other runs of an owner, except those that another owner needs."""
        self._wanted[owner] = set(wanted)
        needed = set[Run]().union(*self._wanted.values())
        for scenario, run in list(self.runs.items()):
            if run not in needed:
                self.runs.pop(scenario).stop()

    def stop(self) -> None:
        """Stops all runs and empties the queue."""
        self._wanted.clear()
        self.keep(())

    def close(self) -> None:
        """Stops all runs and waits until they have ended."""
        self.stop()
        self._pool.shutdown()

    def _execute(self, run: Run) -> None:
        try:
            with self._room.of(run.needs_bytes), translated():
                if run.by_links and not run.stopped:
                    text, source, sets, base_dir = run.job
                    apart = _flowstamp.Source(text, source=source, sets=sets, base_dir=base_dir)
                    run.end(0, apart.run_by_links(threads=1, progress=run.watch))
                elif not run.stopped:
                    _flowstamp.run_each([run.job], run.end, threads=1, memory=self._limit, progress=run.watch)
        except BaseException as error:
            run.fail(error)

    def _elsewhere(self, runs: Sequence[Run], progress: Progress | None) -> None:
        for run in (run for run in runs if run.by_links):
            job = executors.Job.read(*run.job, memory=None)
            ended = apart.run(job, executor=self._executor, memory=self._memory, progress=run.watch)
            run.end(0, ended)
        runs = [run for run in runs if not run.by_links]
        jobs = [executors.Job.read(*run.job, memory=self._limit) for run in runs]
        executors.run(
            jobs,
            lambda number, results: runs[number].end(number, results),
            executor=self._executor,
            memory=self._memory,
            progress=progress,
        )


class _Room:
    """The memory that runs share. A run waits until it fits beside the others, or until no other runs."""

    def __init__(self, total: int | None) -> None:
        self._total, self._taken = total, list[int]()
        self._changed = threading.Condition()

    @contextmanager
    def of(self, needs: int) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(partial(self._fits, needs))
            self._taken.append(needs)
        try:
            yield
        finally:
            with self._changed:
                self._taken.remove(needs)
                self._changed.notify_all()

    def _fits(self, needs: int) -> bool:
        return self._total is None or not self._taken or sum(self._taken) + needs <= self._total
