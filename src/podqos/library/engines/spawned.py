"""Work on the cores of this machine by processes that are started afresh, where none can be forked.

Each worker is a Python of its own. It reads the function once and then one task at a time, pickled, from its standard
input, and answers on its standard output; a thread here waits for each. It ends when this process does.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from podqos.errors import HostError

Task = TypeVar("Task")
Result = TypeVar("Result")


@contextmanager
def in_spawned_processes(
    function: Callable[[Task], Result], tasks: Iterable[Task], workers: int
) -> Iterator[Iterator[Result]]:
    """Give an iterator over the results of all tasks, as they come; the workers are gone when it is left."""
    given = pickle.dumps(function, pickle.HIGHEST_PROTOCOL)
    started: list[_Worker] = []
    idle: SimpleQueue[_Worker] = SimpleQueue()

    def done(task: Task) -> Any:  # noqa: ANN401
        worker = idle.get()
        try:
            return worker.answer(task)
        finally:
            idle.put(worker)

    def results() -> Iterator[Result]:
        waiting = iter(tasks)
        under_way: set[Future[Result]] = set()
        while True:
            for task in waiting:
                if len(started) < workers:  # no more than there are tasks
                    started.append(_Worker(given))
                    idle.put(started[-1])
                under_way.add(pool.submit(done, task))
                if len(under_way) == workers:
                    break
            if not under_way:
                return
            finished, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in finished:
                yield future.result()

    with ThreadPoolExecutor(workers) as pool:
        try:
            yield results()
        finally:
            for worker in started:
                worker.end()


class _Worker:
    """A process that calls the function for one task after the other."""

    def __init__(self, function: bytes) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this very program
                [sys.executable, "-P", "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        except OSError as error:
            raise HostError(f"cannot start a worker process: {error.strerror}") from error
        self._send(function)

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # noticed when the answer is read
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def answer(self, task: object) -> Any:  # noqa: ANN401
        """Return what the function returns for a task, or raise what it raises."""
        assert self._process.stdout is not None
        self._send(pickle.dumps(task, pickle.HIGHEST_PROTOCOL))
        try:
            has_succeeded, outcome = pickle.load(self._process.stdout)  # noqa: S301 - written by our own worker
        except (EOFError, pickle.UnpicklingError):
            raise HostError("a worker process died before finishing (out of memory?)") from None
        if not has_succeeded:
            raise outcome
        return outcome

    def end(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in filter(None, (self._process.stdin, self._process.stdout)):
            with suppress(OSError):
                pipe.close()


def main() -> None:
    """Be a worker until there are no more tasks."""
    import os
    import signal

    from podqos.library.engines.carrying import carried

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started it
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints does not break the answers
    given = sys.stdin.buffer
    with suppress(EOFError):
        function = pickle.load(given)  # noqa: S301 - written by our own parent
        while True:
            task = pickle.load(given)  # noqa: S301 - likewise
            try:
                answer = pickle.dumps((True, function(task)), pickle.HIGHEST_PROTOCOL)
            except Exception as error:  # noqa: BLE001 - the parent raises it
                answer = pickle.dumps((False, carried(error)), pickle.HIGHEST_PROTOCOL)
            answers.write(answer)
            answers.flush()


if __name__ == "__main__":
    main()
