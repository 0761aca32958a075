"""Work on the cores of this machine, by processes that are forked, so that what they work on is there already.

Where a process cannot be forked (Windows) or should not be (macOS, whose own libraries do not survive it), this process
does the work of ``fan_out`` and ``in_copy`` alone, and that of ``in_processes`` is done by processes started afresh.

- ``fan_out``: the inputs are known, and inherited. This process works itself, with one worker for every other core.
  Whoever is done with a turn takes the next one from a queue; a worker answers once, when nothing is left.
- ``in_processes``: tasks are made while others are worked on. A worker gets a task and answers, one after the other.
- ``in_copy``: one function, and nothing of what else it does.

In all three Ctrl-C is for this process, which ends the workers; they also end with it, however it ends. An error is
raised here, and a worker that is killed is an error, not a wait.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Generic, NoReturn, TypeVar

from podqos.errors import HostError
from podqos.library.engines.carrying import carried
from podqos.objects.spreading import Progress

Task = TypeVar("Task")
Result = TypeVar("Result")

# The numbers of all turns fit into the smallest pipe there is, a page.
_MOST_TURNS = 2048
_NUMBER_BYTES = 2
_BUFFER_BYTES = 1 << 16
_ORPHAN_CHECK_SECONDS = 1.0
# How a worker ends whose answer cannot be pickled.
_NOT_SENT = 1


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def forks() -> bool:
    """Whether processes are forked here."""
    return hasattr(os, "fork") and sys.platform != "darwin"


def fan_out(
    task: Callable[[Task], Result], inputs: Sequence[Task], workers: int, progress: Progress | None = None
) -> Iterator[Result]:
    """Yield ``task(input)`` for every input, in order, computed by so many processes."""
    workers = max(1, min(workers, len(inputs), _MOST_TURNS)) if forks() else 1
    total = len(inputs)
    if workers == 1:
        for index, item in enumerate(inputs):
            if progress is not None:
                progress(index, total)
            yield task(item)
        if progress is not None:
            progress(total, total)
        return
    shares = [inputs[turn::_MOST_TURNS] for turn in range(min(total, _MOST_TURNS))]

    def told(turn: int) -> None:
        if progress is not None:
            progress(turn * total // len(shares), total)

    queue = _queue(range(workers, len(shares)))
    try:
        with _pool() as pool:
            for turn in range(1, workers):
                _Worker(partial(_work_off, task, shares, queue), pool).give_last(turn)
            results = _work_off(task, shares, queue, 0, told)
            for worker in pool:
                results |= worker.answer()
    finally:
        os.close(queue)
    told(len(shares))
    for index in range(total):
        yield results[index % len(shares)][index // len(shares)]


def _queue(numbers: Iterable[int]) -> int:
    """Return the end of a pipe that gives these numbers, each to one of the processes that read it."""
    queue, filling = os.pipe()
    os.write(filling, b"".join(number.to_bytes(_NUMBER_BYTES, "big") for number in numbers))
    os.close(filling)
    return queue


def _work_off(
    task: Callable[[Task], Result],
    shares: Sequence[Sequence[Task]],
    queue: int,
    turn: int,
    told: Callable[[int], None] = lambda _: None,
) -> dict[int, list[Result]]:
    """Return what this process' turns give: its first one, and those that it takes from the queue."""
    results = {}
    while True:
        told(turn)
        results[turn] = [task(item) for item in shares[turn]]
        following = os.read(queue, _NUMBER_BYTES)
        if not following:
            return results
        turn = int.from_bytes(following, "big")


def in_copy(function: Callable[[], Result]) -> Result:
    """Return what a function returns in a copy of this process, without anything else it does.

    The state so far is computed once, and what is tried out from it is gone with the copy.
    """
    if not forks():
        return function()
    with _pool() as pool:
        worker: _Worker[None, Result] = _Worker(lambda _: function(), pool)
        worker.give_last(None)
        return worker.answer()


@contextmanager
def in_processes(function: Callable[[Task], Result], tasks: Iterable[Task], workers: int) -> Iterator[Iterator[Result]]:
    """Give an iterator over the results of all tasks, as they come. One worker is this process itself."""
    if workers == 1:
        yield map(function, tasks)
        return
    if not forks():
        from podqos.library.engines.spawned import in_spawned_processes

        with in_spawned_processes(function, tasks, workers) as results:
            yield results
        return
    with _pool() as pool:
        yield _results(pool, function, iter(tasks), workers)


def _results(
    pool: list[_Worker[Task, Result]], function: Callable[[Task], Result], tasks: Iterator[Task], workers: int
) -> Iterator[Result]:
    from selectors import EVENT_READ, DefaultSelector

    with DefaultSelector() as ready:
        # Only as many are forked as there are tasks.
        for task in tasks:
            worker = _Worker(function, pool)
            worker.give(task)
            ready.register(worker, EVENT_READ, worker)
            if len(pool) == workers:
                break
        while ready.get_map():
            for key, _ in ready.select():
                worker = key.data
                answer = worker.received()
                for task in tasks:
                    # It goes on while its answer is used.
                    worker.give(task)
                    break
                else:
                    ready.unregister(worker)
                    worker.give_no_more()
                yield _opened(answer)


@contextmanager
def _pool() -> Iterator[list[_Worker[Any, Any]]]:
    """Give a list of workers to join; when it is left, all of them are gone, whatever they do."""
    # Workers share this memory: collecting garbage, here or in one of them, would copy it.
    is_frozen = gc.get_freeze_count() > 0
    if not is_frozen:
        gc.freeze()
    pool: list[_Worker[Any, Any]] = []
    try:
        yield pool
    finally:
        for worker in pool:
            worker.kill()
        for worker in pool:
            worker.bury()
        if not is_frozen:
            gc.unfreeze()


class _Worker(Generic[Task, Result]):
    """A forked process that calls a function for one task after the other."""

    def __init__(self, function: Callable[[Task], Result], pool: list[_Worker[Any, Any]]) -> None:
        """Join a pool. Ctrl-C waits until the parent knows the worker, and the worker ignores it."""
        import signal

        self._pid = 0
        read_tasks, self.tasks = os.pipe()  # the latter is -1 once no more are given
        read_answers, write_answers = os.pipe()
        self._answers = open(read_answers, "rb", _BUFFER_BYTES)  # noqa: SIM115 - closed when it is buried
        sys.stdout.flush()
        sys.stderr.flush()
        pool.append(self)
        parent = os.getpid()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._pid = os.fork()
            if self._pid == 0:
                _serve(function, read_tasks, write_answers, [worker.tasks for worker in pool], parent)
        except OSError as error:
            raise HostError(f"cannot start a worker process: {error.strerror}") from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(read_tasks)
            os.close(write_answers)

    def fileno(self) -> int:
        """Return what is readable when an answer is there."""
        return self._answers.fileno()

    def give(self, task: Task) -> None:
        """Send a task."""
        with suppress(BrokenPipeError):  # noticed when the answer is read
            _send(self.tasks, task)

    def give_no_more(self) -> None:
        """Let the worker end once it has answered."""
        if self.tasks >= 0:
            os.close(self.tasks)
            self.tasks = -1

    def give_last(self, task: Task) -> None:
        """Send the only task that is left for it."""
        self.give(task)
        self.give_no_more()

    def received(self) -> tuple[bool, Any]:
        """Wait for an answer: whether it went well, and the result or the error."""
        import pickle

        try:
            answer: tuple[bool, Any] = pickle.load(self._answers)  # noqa: S301 - written by our own child
        except (EOFError, pickle.UnpicklingError):
            self.kill()
            if self._exit_code() == _NOT_SENT:
                raise TypeError("cannot pickle the result of a worker process") from None
            raise HostError("a worker process died before finishing (out of memory?)") from None
        return answer

    def answer(self) -> Result:
        """Wait for what the function returns, or raise what it raised."""
        result: Result = _opened(self.received())
        return result

    def kill(self) -> None:
        """End the worker, whatever it does."""
        if self._pid:
            from signal import SIGKILL

            os.kill(self._pid, SIGKILL)

    def bury(self) -> None:
        """Wait until it is gone, and leave nothing of it."""
        self.give_no_more()
        self._answers.close()
        if self._pid:
            self._exit_code()

    def _exit_code(self) -> int:
        """Wait until it is gone; return how it ended."""
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        return os.waitstatus_to_exitcode(status)


def _opened(answer: tuple[bool, Any]) -> Any:  # noqa: ANN401
    has_succeeded, outcome = answer
    if not has_succeeded:
        raise outcome
    return outcome


def _serve(
    function: Callable[[Task], Result], tasks: int, answers: int, of_parent: Iterable[int], parent: int
) -> NoReturn:
    """Be a worker until there are no more tasks, and end without running anything of the parent's."""
    import pickle
    import signal

    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _end_with(parent)
        for descriptor in of_parent:
            if descriptor >= 0:
                os.close(descriptor)
        with open(tasks, "rb", _BUFFER_BYTES) as given, suppress(EOFError):
            while True:
                task = pickle.load(given)  # noqa: S301 - written by our own parent
                answer: tuple[bool, Any]
                try:
                    answer = True, function(task)
                except Exception as error:  # noqa: BLE001 - the parent raises it
                    answer = False, carried(error)
                try:
                    with open(answers, "wb", _BUFFER_BYTES, closefd=False) as answering:
                        pickle.dump(answer, answering, pickle.HIGHEST_PROTOCOL)  # part by part: it may be large
                except Exception:  # noqa: BLE001 - what cannot be pickled says so in many ways
                    os._exit(_NOT_SENT)
    finally:
        os._exit(0)


def _end_with(parent: int) -> None:
    """End with the parent, however that ends: whether it is there is looked at again and again."""
    import signal

    def check(*_: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    signal.signal(signal.SIGALRM, check)
    signal.setitimer(signal.ITIMER_REAL, _ORPHAN_CHECK_SECONDS, _ORPHAN_CHECK_SECONDS)


def _send(descriptor: int, value: object) -> None:
    import pickle

    _write(descriptor, pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
