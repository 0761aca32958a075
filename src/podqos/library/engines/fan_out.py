"""One task over many inputs, on all cores, results in the order of the inputs.

This process takes a share itself and forks one child for every other core. A child answers once, through a pipe, when
its share is done; it inherits the task by being forked and holds nothing that would have to be cleaned up.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from podqos.errors import HostError
from podqos.library.inputs.objects import Progress

T = TypeVar("T")
R = TypeVar("R")


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fan_out(task: Callable[[T], R], inputs: Sequence[T], workers: int, progress: Progress | None = None) -> Iterator[R]:
    """Yield ``task(input)`` for every input, in order, computed by so many processes.

    ``progress`` is told how many are done, of how many: all processes work off their shares at the same pace.
    """
    workers = max(1, min(workers, len(inputs)))
    if workers == 1:
        yield from map(task, _telling(inputs, progress, len(inputs)))
        return
    shares = [inputs[first::workers] for first in range(workers)]
    sys.stdout.flush()
    children = [_Child(task, share) for share in shares[1:]]
    try:
        own = [task(item) for item in _telling(shares[0], progress, len(inputs))]
        results = [own, *(child.results() for child in children)]
    finally:
        for child in children:
            child.end()
    for index in range(len(inputs)):
        yield results[index % workers][index // workers]


def _telling(share: Sequence[T], progress: Progress | None, total: int) -> Iterator[T]:
    """Yield a share, and tell after each how many of all inputs are done."""
    for number, item in enumerate(share, 1):
        yield item
        if progress is not None:
            progress(number * total // len(share), total)


def in_copy(function: Callable[[], R]) -> R:
    """Return what a function returns in a copy of this process, without anything else it does.

    One past, many futures: getting here is paid for once, and what is tried out from here is gone with the copy.
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
