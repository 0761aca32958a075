"""One task over many inputs, on all cores, results in the order of the inputs.

This process takes a share itself and forks one child for every other core. A child answers once, through a pipe, when
its share is done; it inherits the task by being forked and leaves nothing to clean up.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from podqos.errors import HostError

T = TypeVar("T")
R = TypeVar("R")
Progress = Callable[[int, int], None]
"""Called with done and total."""


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fan_out(task: Callable[[T], R], inputs: Sequence[T], workers: int, progress: Progress | None = None) -> Iterator[R]:
    """Yield ``task(input)`` for every input, in order, computed by so many processes."""
    workers = max(1, min(workers, len(inputs)))
    if workers == 1:
        yield from map(task, _told(inputs, len(inputs), progress))
        return
    shares = [inputs[first::workers] for first in range(workers)]
    sys.stdout.flush()
    children = [_Child(task, share) for share in shares[1:]]
    try:
        own = [task(item) for item in _told(shares[0], len(inputs), progress)]
        results = [own, *(child.results() for child in children)]
    finally:
        for child in children:
            child.end()
    for index in range(len(inputs)):
        yield results[index % workers][index // workers]


def _told(share: Sequence[T], total: int, progress: Progress | None) -> Iterator[T]:
    """Yield a share and report progress; the other shares advance at the same pace."""
    for index, item in enumerate(share):
        if progress is not None:
            progress(index * total // len(share), total)
        yield item
    if progress is not None:
        progress(total, total)


def in_copy(function: Callable[[], R]) -> R:
    """Return what a function returns in a copy of this process, without anything else it does.

    The state so far is computed once, and what is tried out from it is gone with the copy.
    """
    child: _Child[None, R] = _Child(lambda _: function(), (None,))
    try:
        return child.results()[0]
    finally:
        child.end()


class _Child(Generic[T, R]):
    """A forked process that works off a share."""

    def __init__(self, task: Callable[[T], R], share: Sequence[T]) -> None:
        self._pipe, answer = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._pipe)
            _work_off(task, share, answer)
        os.close(answer)

    def results(self) -> list[R]:
        """Wait for the answer."""
        import pickle

        with open(self._pipe, "rb", closefd=False) as pipe:
            answer = pipe.read()
        if not answer:
            raise HostError("a worker process was ended before its work was done (out of memory?)")
        outcome: list[R] | Exception = pickle.loads(answer)  # noqa: S301 - written by our own child
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def end(self) -> None:
        """Make sure that the child is gone; one that has answered is gone already."""
        import signal

        os.close(self._pipe)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _work_off(task: Callable[[T], R], share: Sequence[T], answer: int) -> None:
    """Be the child: answer and end, whatever happens, without running anything of the parent's."""
    import pickle

    try:
        try:
            outcome: list[R] | Exception = [task(item) for item in share]
        except Exception as error:  # noqa: BLE001 - the parent raises it
            outcome = error
        with open(answer, "wb") as pipe:
            pipe.write(pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL))
    finally:
        os._exit(0)
