# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Executors for many runs: threads of this process, processes of this machine, or a Dask cluster.

A run in another process gets its scenario and the contents of all input files. It returns the files of its folder, with
the same bytes as a local run would write. Runs by links have tasks of their own (`flowstamp.apart`).
"""

from __future__ import annotations

import hashlib
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from flowstamp import _flowstamp, machine
from flowstamp.errors import ExecutorError, MissingPackageError, UsageError, one_line, translated
from flowstamp.results import Results, carried

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

    from flowstamp.scenario import Progress, Scenario

THREADS = "threads"
KINDS = "threads, processes or dask=ADDRESS, such as dask=tcp://127.0.0.1:8786"
CONNECT_S = 10
"""Timeout in seconds for an answer from a Dask scheduler."""
LOOK_UP_S = 0.1
"""Interval in seconds at which a waiting thread handles signals. They do not interrupt its wait if system calls
restart, which a Dask client causes."""
TRIES = 3
"""Number of successive times that the pool of processes may break without a run completing."""

Done = Callable[[int, Results], None]
"""Callback that gets the number of a run and its results when the run ends."""


@dataclass(frozen=True)
class Job:
    """A self-contained description of a run."""

    text: str
    """The scenario as TOML with every default."""
    source: str
    files: Mapping[str, str]
    """Contents of the files that the scenario names, by path."""
    needs_bytes: int = 0
    """Estimated memory of the run in bytes."""

    @classmethod
    def of(cls, scenario: Scenario, *, memory: int | None) -> Job:
        """Resolves a scenario. Raises `ScenarioError` if it is invalid or may need more than `memory` bytes."""
        text, written_in = scenario._text()
        return cls.read(text, scenario.source, scenario.overrides, scenario.base_dir, written_in, memory=memory)

    @classmethod
    def read(
        cls,
        text: str,
        source: str,
        sets: Sequence[tuple[str, str]],
        base_dir: str,
        written_in: str = "toml",
        *,
        memory: int | None,
    ) -> Job:
        """Resolves the text of a scenario. Errors are those of `of`."""
        with translated():
            resolved, files, needs = _flowstamp.Source(
                text, source=source, format=written_in, sets=sets, base_dir=base_dir, memory=memory
            ).resolve()
        return cls(resolved, source, files, needs)

    def carry(self, memory: int | None, tables: bool, wanted: Callable[[], bool]) -> Came:
        """Runs the job in another process. Stops early once `wanted` returns False."""
        with translated():
            [run] = _flowstamp.run_many(
                [(self.text, self.source, (), self.files)], threads=1, memory=memory, progress=while_wanted(wanted)
            )
            if not tables:
                texts = {"summary.json": run.summary_json(), "manifest.json": run.manifest_json()}
                return Came({name: text.encode() for name, text in texts.items()}, engine())
            with tempfile.TemporaryDirectory(prefix="flowstamp-") as folder:
                return Came({Path(path).name: Path(path).read_bytes() for path in run.write(folder)}, engine())


class Task(Protocol):
    """Work for another process."""

    @property
    def source(self) -> str:
        """Name in messages."""

    @property
    def needs_bytes(self) -> int:
        """Estimated memory in bytes."""

    def carry(self, memory: int | None, tables: bool, wanted: Callable[[], bool]) -> Came:
        """Does the work there. Stops early once `wanted` returns False."""


@dataclass(frozen=True)
class Came:
    """Files that a task returned, and the digest of the module that made them."""

    files: Mapping[str, bytes]
    engine: str


Take = Callable[[int, Came], None]
"""Callback that gets the number of a task and what it returned."""
After = Callable[[bool], None]
"""Callback on each worker of a cluster once the tasks have ended. It gets whether one of them failed."""


def while_wanted(wanted: Callable[[], bool]) -> Progress:
    """Returns a progress callback that stops a run once `wanted` returns False."""

    def progress(*_: object) -> None:
        if not wanted():
            raise ExecutorError("the run is no longer wanted")

    return progress


@cache
def engine() -> str:
    """Returns the SHA-256 digest of the compiled module: builds of the same version can give different results."""
    with Path(_flowstamp.__file__).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check(executor: str) -> None:
    """Raises `UsageError` for an invalid executor."""
    kind, equals, address = executor.partition("=")
    if executor in (THREADS, "processes") or (kind == "dask" and equals and address):
        return
    raise UsageError(f'executor: "{executor}" is not an executor; it must be {KINDS}')


def memory_here(executor: str, given: str | None) -> int | None:
    """Returns the memory limit of runs in bytes. None on a cluster without a given limit: its memory is not known."""
    return machine.memory(given) if given is not None or not executor.startswith("dask") else None


def run(
    jobs: Sequence[Job],
    done: Done,
    *,
    executor: str = THREADS,
    threads: int | None = None,
    memory: str | None = None,
    tables: bool = True,
    progress: Progress | None = None,
) -> None:
    """Runs all jobs and calls `done` for each as it ends, in any order.

    Without `tables`, results may lack series and flows. If an error or Ctrl-C stops the runs, `done` has been called
    for every run that had ended before.
    """
    check(executor)
    limit = memory_here(executor, memory)
    if executor == THREADS:
        texts = [(job.text, job.source, (), job.files) for job in jobs]
        with translated():
            _flowstamp.run_each(
                texts, lambda i, run: done(i, Results(run)), threads=threads, memory=limit, progress=progress
            )
        return
    elsewhere(jobs, _Took(len(jobs), done, progress), executor=executor, threads=threads, limit=limit, tables=tables)


def elsewhere(
    tasks: Sequence[Task],
    take: Take,
    *,
    executor: str,
    threads: int | None = None,
    limit: int | None = None,
    tables: bool = True,
    after: After | None = None,
) -> None:
    """Does all tasks in processes or on a Dask cluster, and calls `take` for each as it ends, in any order.

    Each worker of a cluster then calls `after`. Processes end.
    """
    if executor == "processes":
        _processes(tasks, take, threads, limit, tables)
    else:
        _dask(executor.partition("=")[2], tasks, take, limit, tables, after)


class _Took:
    """Passes results on to `done` and reports progress, whose unit here is a completed run."""

    def __init__(self, runs: int, done: Done, progress: Progress | None) -> None:
        self.runs, self.done, self.progress = runs, done, progress

    def __call__(self, number: int, came: Came) -> None:
        results = Results(carried(came.files))
        self.done(number, results)
        if self.progress is not None:
            duration_s = float(results.summary["duration_s"])
            self.progress(number, self.runs, duration_s, duration_s, int(results.summary["packet_hops"]))


# --------------------------------------------------------------------------------------- processes of this machine

_stop: list[Event] = []


def _begin(stop: Event) -> None:
    """Initializes a worker process: a thread ends it as soon as its parent ends, even if the parent is killed."""
    from multiprocessing import connection, parent_process

    _stop[:] = [stop]
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _in_process(task: Task, memory: int | None, tables: bool) -> Came:
    return task.carry(memory, tables, lambda: not _stop[0].is_set())


def _processes(jobs: Sequence[Task], took: Take, processes: int | None, memory: int | None, tables: bool) -> None:
    most = processes or machine.cores()
    if memory is not None:  # enough for as many runs of the largest size as there are processes
        most = min(most, max(1, memory // max(1, *(job.needs_bytes for job in jobs))))
    left = dict(enumerate(jobs))
    tries = TRIES
    while left:
        before = len(left)
        try:
            _pool(left, took, min(most, len(left)), memory, tables)
        except BrokenProcessPool:
            # A process was killed, for example because memory ran out. Its unfinished runs start again.
            tries = TRIES if len(left) < before else tries - 1
            if not tries:
                raise ExecutorError(
                    "executor: the processes end before their runs. If memory is short, use fewer threads."
                    ' A script must start processes under if __name__ == "__main__":'
                ) from None


def _pool(left: dict[int, Task], took: Take, processes: int, memory: int | None, tables: bool) -> None:
    """Runs the jobs in `left` and removes each one that has ended."""
    from multiprocessing import get_context

    context = get_context("spawn")  # a fork would copy locks that other threads hold
    stop = context.Event()
    with ProcessPoolExecutor(processes, context, _begin, (stop,)) as pool:
        with _uninterrupted():
            futures = {pool.submit(_in_process, job, memory, tables): number for number, job in left.items()}

        def take(future: Future[Came]) -> None:
            took(futures[future], future.result())
            del left[futures.pop(future)]

        try:
            left_to_end = set(futures)
            while left_to_end:
                ended, left_to_end = wait(left_to_end, LOOK_UP_S, FIRST_COMPLETED)
                for future in ended:
                    take(future)
        except BaseException as error:
            stop.set()
            pool.shutdown(cancel_futures=True)
            if isinstance(error, KeyboardInterrupt):
                for future in list(futures):
                    if not future.cancelled() and future.exception() is None:
                        take(future)
            raise


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Blocks SIGINT for processes started inside: the parent handles Ctrl-C and stops them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ------------------------------------------------------------------------------------------------ a Dask cluster


def _on_worker(task: Task, memory: int | None, tables: bool) -> Came:
    from distributed.worker import get_worker, thread_state

    worker, key = get_worker(), thread_state.key

    def wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state in ("executing", "long-running")

    return task.carry(memory if memory is not None else machine.memory(), tables, wanted)


def _dask(
    address: str, jobs: Sequence[Task], took: Take, memory: int | None, tables: bool, after: After | None
) -> None:
    try:
        import distributed
    except ImportError:
        raise MissingPackageError("executor: dask needs the package distributed; install flowstamp[dask]") from None
    where = f"executor: dask={address}"
    try:
        # With an invalid address, distributed.Client would fail again, noisily, when it is closed.
        distributed.comm.get_address_host_port(address, strict=True)
        client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ExecutorError(
            f"{where}: no scheduler answers there ({one_line(error) or type(error).__name__});"
            " dask scheduler starts one and prints its address"
        ) from None
    with client:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise ExecutorError(f"{where}: the scheduler has no workers; dask worker {address} starts one")
        _check_builds(client, where)
        failed = True
        try:
            _submit(client, where, jobs, took, memory, tables)
            failed = False
        finally:
            if after is not None:
                # A worker that has left has nothing to free, and an error of a task matters more.
                with suppress(Exception):
                    client.run(after, failed)


def _check_builds(client: Any, where: str) -> None:
    try:
        builds: Mapping[str, str] = client.run(engine)
    except Exception as error:  # client.run raises the worker's exception, of any type
        raise ExecutorError(
            f"{where}: a worker lacks this flowstamp; install {_flowstamp.__version__} there: {one_line(error)}"
        ) from None
    others = sorted(worker for worker, build in builds.items() if build != engine())
    if others:
        raise ExecutorError(f"{where}: another build of flowstamp is on {', '.join(others)}; install the same there")


def _submit(client: Any, where: str, jobs: Sequence[Task], took: Take, memory: int | None, tables: bool) -> None:
    from distributed import as_completed as completed

    names = f"flowstamp-{os.urandom(6).hex()}"  # unique keys, so that Dask does not return results of an earlier call
    futures = {
        client.submit(_on_worker, job, memory, tables, key=f"{names}-{number}", pure=False, priority=-number): number
        for number, job in enumerate(jobs)
    }

    def take(future: Any) -> None:
        if future.status == "error":
            error = future.exception()
            raise ExecutorError(f"{where}: {jobs[futures[future]].source}: {one_line(error)}") from None
        came: Came = future.result()
        if came.engine != engine():
            raise ExecutorError(f"{where}: a worker that came later has another build of flowstamp; install the same")
        took(futures.pop(future), came)

    try:
        for future in completed(list(futures), loop=client.loop):
            take(future)
            future.release()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            for future in [future for future in futures if future.status == "finished"]:
                take(future)
        client.cancel(list(futures))
        raise
