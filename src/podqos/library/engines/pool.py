"""Worker processes on this machine, forked, so that what they work on is there already.

A worker gets a task and answers, one after the other, over a socket. Ctrl-C is for the parent, which ends them; they
also end with it, however it ends. A worker that is killed is an error, not a wait.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from selectors import EVENT_READ, DefaultSelector
from socket import MSG_WAITALL, socket, socketpair
from typing import Any, Generic, TypeVar

from podqos.errors import HostError

Task = TypeVar("Task")
Result = TypeVar("Result")

_LENGTH_BYTES = 8
_PR_SET_PDEATHSIG = 1


@contextmanager
def in_processes(function: Callable[[Task], Result], tasks: Iterable[Task], workers: int) -> Iterator[Iterator[Result]]:
    """Give an iterator over the results of all tasks, as they come. One worker is this process itself."""
    if workers == 1:
        yield map(function, tasks)
        return
    pool: list[_Worker[Task, Result]] = []
    try:
        yield _results(pool, function, iter(tasks), workers)
    finally:
        for worker in pool:
            worker.end()


def _results(
    pool: list[_Worker[Task, Result]], function: Callable[[Task], Result], tasks: Iterator[Task], workers: int
) -> Iterator[Result]:
    with DefaultSelector() as ready:
        # Only as many are forked as there are tasks.
        for task in tasks:
            worker = _Worker(function, pool)
            worker.give(task)
            ready.register(worker.socket, EVENT_READ, worker)
            if len(pool) == workers:
                break
        while ready.get_map():
            for key, _ in ready.select():
                worker = key.data
                is_done, outcome = worker.answer()
                for task in tasks:
                    # It goes on while its answer is used.
                    worker.give(task)
                    break
                else:
                    ready.unregister(worker.socket)
                if not is_done:
                    raise outcome
                yield outcome


class _Worker(Generic[Task, Result]):
    """A forked process that calls a function for one task after the other."""

    def __init__(self, function: Callable[[Task], Result], pool: list[_Worker[Task, Result]]) -> None:
        """Join a pool. Ctrl-C waits until the parent knows the worker, and the worker ignores it."""
        self._pid: int | None = None
        self.socket, theirs = socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        pool.append(self)
        parent = os.getpid()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._pid = os.fork()
            if self._pid == 0:
                _work(function, theirs, [worker.socket for worker in pool], parent)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()

    def give(self, task: Task) -> None:
        """Send a task."""
        with suppress(BrokenPipeError, ConnectionResetError):  # told when the answer is read
            _send(self.socket, task)

    def answer(self) -> Any:  # noqa: ANN401
        """Receive whether it went well, and the result or the error."""
        found = _receive(self.socket)
        if found is None:
            raise HostError("a worker process was ended before its work was done (out of memory?)")
        return found

    def end(self) -> None:
        """End the worker, whatever it does."""
        self.socket.close()
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


def _work(function: Callable[[Task], Result], own: socket, others: Iterable[socket], parent: int) -> None:
    """Be a worker until there are no more tasks, and end without running anything of the parent's."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for other in others:
            other.close()
        _end_with(parent)
        while True:
            task = _receive(own)
            if task is None:
                break
            try:
                answer: tuple[bool, Result | Exception] = True, function(task)
            except Exception as error:  # noqa: BLE001 - the parent raises it
                answer = False, error
            _send(own, answer)
    finally:
        os._exit(0)


def _end_with(parent: int) -> None:
    """Be killed when the parent ends; where this is no Linux, the closed socket ends the worker after its task."""
    if sys.platform == "linux":
        from ctypes import CDLL

        CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(0)


def _send(own: socket, value: object) -> None:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    own.sendall(len(data).to_bytes(_LENGTH_BYTES, "big"))
    own.sendall(data)


def _receive(own: socket) -> Any:  # noqa: ANN401
    """Return what was sent; None at the end."""
    try:
        length = own.recv(_LENGTH_BYTES, MSG_WAITALL)
        if len(length) < _LENGTH_BYTES:
            return None
        with own.makefile("rb") as file:
            data = file.read(int.from_bytes(length, "big"))
        return pickle.loads(data)  # noqa: S301 - written by our own process
    except (ConnectionResetError, EOFError, pickle.UnpicklingError):
        return None
