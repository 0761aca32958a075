"""Independent work on the cores of this machine, or on a Dask cluster.

Processes are forked where no other thread runs, so that a function and what it works on are there already. Elsewhere
(macOS, Windows, servers) they are started afresh: ``carried_out`` sends everything along, ``fan_out`` works alone.

Ctrl-C is for this process, which ends the workers; they also end with it, however it ends. What a worker had under way
when it died is done once more; a second death is an error.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from podqos.errors import HostError, InvalidArgument
from podqos.objects.spreading import Progress, Spread, one_by_one
from podqos.reading.files import are_larger

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.context import BaseContext

Task = TypeVar("Task")
Result = TypeVar("Result")

PER_CORE = -1
"""As many jobs as there are cores."""
WORTH_FORKING_BYTES = 1 << 20
"""Below this a second process costs more than it saves."""
_MOST_JOBS = 1024
_MOST_ON_WINDOWS = 61
# Enough that whoever is done early finds something to do.
_TURNS_PER_WORKER = 64
_UNDER_WAY_PER_WORKER = 4
_ANSWER_SECONDS = 10.0
NO_WORKERS_SECONDS = 30.0
"""How long a cluster may be without workers: new ones may be on their way. Dask itself waits for ever."""


class EngineKeywords(TypedDict, total=False):
    """Where work is done, as keyword arguments."""

    engine: str
    """``processes`` of this machine, or ``dask=HOST:PORT``."""
    jobs: int
    """How many run at a time on this machine."""


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def forks() -> bool:
    """Whether processes are forked: nowhere beside other threads, nor on a Mac, whose libraries do not survive it."""
    from threading import active_count

    # Without shared memory there are no semaphores for a pool.
    is_alone = hasattr(os, "fork") and sys.platform == "linux" and active_count() == 1
    return is_alone and os.access("/dev/shm", os.W_OK)  # noqa: S108


def over_cores(progress: Progress | None = None) -> Spread:
    """Return how to do a task for many inputs: all cores work where there is enough of it."""
    return partial(_spread, progress=progress)


def _spread(
    task: Callable[[Task], Result], inputs: Sequence[Task], size_bytes: int, progress: Progress | None
) -> Sequence[Result]:
    if size_bytes < WORTH_FORKING_BYTES:
        return one_by_one(task, inputs, size_bytes, progress)
    return list(fan_out(task, inputs, usable_cores(), progress))


def are_worth_forking(paths: Iterable[str]) -> bool:
    """Whether files together are so large that a second process pays."""
    return are_larger(paths, WORTH_FORKING_BYTES)


def fan_out(
    task: Callable[[Task], Result], inputs: Sequence[Task], workers: int, progress: Progress | None = None
) -> Iterator[Result]:
    """Yield ``task(input)`` for every input, in order, computed by so many processes, which inherit both."""
    total = len(inputs)
    workers = min(workers, total)
    if workers <= 1 or not forks():
        yield from one_by_one(task, inputs, progress=progress)
        return
    size = -(-total // (workers * _TURNS_PER_WORKER))

    def turn(start: int) -> tuple[int, list[Result]]:
        return start, [task(each) for each in inputs[start : start + size]]

    found: dict[int, list[Result]] = {}
    with carried_out(turn, range(0, total, size), jobs=workers) as turns:
        for start, results in turns:
            found[start] = results
            if progress is not None:
                progress(min(len(found) * size, total), total)
    for start in range(0, total, size):
        yield from found.pop(start)


@contextmanager
def carried_out(
    function: Callable[[Task], Result], tasks: Iterable[Task], *, engine: str = "processes", jobs: int = PER_CORE
) -> Iterator[Iterator[Result]]:
    """Give an iterator over the results of all tasks as they come, in any order; the workers are gone when it is left.

    Tasks are taken when there is room for them. ``jobs`` is how many run at a time on this machine.
    """
    address = dask_address(engine)
    workers = job_count(jobs)
    if address is not None:
        with _dask(function, address) as (submit, threads):
            yield _results(submit, iter(tasks), threads, patience=NO_WORKERS_SECONDS)
    elif workers == 1:
        yield map(function, tasks)
    else:
        pool = _Pool(function, workers)
        try:
            yield _results(pool.submit, iter(tasks), lambda: workers, renew=pool.renew)
        finally:
            pool.end()


def dask_address(engine: str) -> str | None:
    """Return the address of the Dask scheduler; None where this machine does the work."""
    name, _, address = engine.partition("=")
    if name == "dask" and address:
        return address
    if engine != "processes":
        raise InvalidArgument(f"unknown engine {engine!r}", where="engine", fix="processes or dask=HOST:PORT")
    return None


def job_count(jobs: int) -> int:
    """Return how many jobs run at a time on this machine."""
    if jobs == PER_CORE:
        return usable_cores()
    if not 0 < jobs <= _MOST_JOBS:
        raise InvalidArgument(f"'{jobs}' is not a number of jobs", where="jobs", fix=f"1 to {_MOST_JOBS:,}")
    return jobs


class _NoWorkersError(Exception):
    """A cluster has had no workers for long."""


def _results(
    submit: Callable[[Any], Future[Any]],
    tasks: Iterator[Any],
    workers: Callable[[], int],
    patience: float | None = None,
    renew: Callable[[], None] = lambda: None,
) -> Iterator[Any]:
    """Yield the results. So many tasks are under way as keep all workers busy; they may be large."""
    from concurrent.futures import FIRST_COMPLETED, wait
    from concurrent.futures.process import BrokenProcessPool

    taken: deque[Any] = deque()  # and not given to a worker
    pending: dict[Future[Any], Any] = {}
    while True:
        room = _UNDER_WAY_PER_WORKER * max(1, workers()) - len(pending) - len(taken)
        taken.extend(islice(tasks, max(0, room)))
        try:
            while taken:
                pending[submit(taken[0])] = taken[0]
                taken.popleft()
            if not pending:
                return
            done = wait(pending, patience, FIRST_COMPLETED).done
            if not done and not workers():
                raise _NoWorkersError
            for future in done:
                result = future.result()
                del pending[future]
                yield result
        except BrokenProcessPool:
            taken.extendleft(pending.values())
            pending.clear()
            renew()


class _Pool:
    """Processes of this machine, which know the function."""

    def __init__(self, function: Callable[[Any], Any], workers: int) -> None:
        from multiprocessing import get_context

        self._context: BaseContext = get_context("fork" if forks() else "spawn")
        self._function = function
        self._workers = min(workers, _MOST_ON_WINDOWS) if sys.platform == "win32" else workers
        self._is_second = False
        self._executor = self._started()

    def _started(self) -> ProcessPoolExecutor:
        from concurrent.futures import ProcessPoolExecutor

        try:
            return ProcessPoolExecutor(self._workers, self._context, _begin, (self._function,))
        except (OSError, NotImplementedError) as error:
            raise HostError(f"cannot start worker processes: {error}") from error

    def submit(self, task: object) -> Future[Any]:
        """Give a task to whichever process is free."""
        with _without_interrupts():  # processes are started here: Ctrl-C is not for them, from the beginning on
            try:
                return self._executor.submit(_work, task)
            except OSError as error:
                raise HostError(f"cannot start a worker process: {error.strerror}") from error

    def renew(self) -> None:
        """Start other processes in place of those of which one has died, once."""
        self._kill()
        if self._is_second:
            raise HostError("a worker process died before finishing (out of memory?)")
        self._is_second = True
        self._executor = self._started()

    def end(self) -> None:
        """End the processes: idle ones by themselves, others whatever they do."""
        if not self._executor._pending_work_items:  # noqa: SLF001 - nothing public tells
            self._executor.shutdown()
        else:
            self._kill()

    def _kill(self) -> None:
        processes = [*(self._executor._processes or {}).values()]  # noqa: SLF001
        self._executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        for process in processes:
            process.join()


_function: Callable[[Any], Any]


def _begin(function: Callable[[Any], Any]) -> None:
    """Be a worker, until the parent ends."""
    import gc
    import signal
    from multiprocessing import parent_process
    from threading import Thread

    global _function  # noqa: PLW0603 - a worker serves one function
    _function = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # the memory is shared with the parent: collecting garbage would copy it

    def end_with_parent() -> None:
        parent = parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    Thread(target=end_with_parent, daemon=True).start()


def _work(task: object) -> object:
    return _function(task)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    import signal

    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _dask(
    function: Callable[[Any], Any], address: str
) -> Iterator[tuple[Callable[[Any], Future[Any]], Callable[[], int]]]:
    """Give what submits a task to a cluster, and what counts its threads; that it is lost is an error."""
    import logging
    from concurrent.futures import CancelledError

    try:
        from distributed import Client, KilledWorker
    except ImportError as error:
        raise HostError("a Dask cluster needs distributed: in a clone of podqos, pip install '.[dask]'") from error
    # What goes wrong is told once, as an error, and not in Dask's log as well.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    make: Any = Client
    try:
        client = make(address, timeout=_ANSWER_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise HostError(f"no Dask scheduler answers at {address}: {error}") from error
    lost = f"the Dask cluster at {address}: "
    try:
        executor: Any = client.get_executor(pure=False)
        # Sent once, and kept by the workers; what it takes along may be large.
        shared = client.submit(_same, function, pure=False)
        yield partial(executor.submit, _call, shared), lambda: sum(client.nthreads().values())
    except _NoWorkersError as error:
        raise HostError(f"{lost}it has no workers left") from error
    except KilledWorker as error:
        raise HostError(f"{lost}a task crashed several workers in a row (out of memory?)") from error
    except ImportError as error:
        raise HostError(f"{lost}its workers lack podqos or have another version ({error})") from error
    except (OSError, TimeoutError, CancelledError) as error:
        raise HostError(f"{lost}the scheduler no longer answers") from error
    finally:
        client.close(timeout=2)


def _same(function: object) -> object:
    return function


def _call(function: Any, task: Any) -> Any:  # noqa: ANN401 - Dask replaces what stands for the function
    return function(task)
