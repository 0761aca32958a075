"""One task over many inputs, on all cores, results in the order of the inputs.

This process works itself and forks one child for every other core. Whoever is done with a turn takes the next one from
a queue, so that all are done at the same time. A child answers once, through a pipe, when nothing is left; it inherits
the task by being forked and leaves nothing to clean up.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Generic, TypeVar

from podqos.answers.workers import Progress
from podqos.errors import HostError

T = TypeVar("T")
R = TypeVar("R")

# The numbers of all turns fit into the smallest pipe there is, a page.
_MOST_TURNS = 2048
_NUMBER_BYTES = 2


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fan_out(task: Callable[[T], R], inputs: Sequence[T], workers: int, progress: Progress | None = None) -> Iterator[R]:
    """Yield ``task(input)`` for every input, in order, computed by so many processes."""
    workers = max(1, min(workers, len(inputs), _MOST_TURNS))
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
    sys.stdout.flush()
    children: list[_Child[dict[int, list[R]]]] = []
    try:
        alone = partial(_end_without, os.getpid())
        children += (_Child(partial(_work_off, task, shares, turn, queue, alone)) for turn in range(1, workers))
        results = _work_off(task, shares, 0, queue, told)
        for child in children:
            results |= child.result()
    finally:
        os.close(queue)
        for child in children:
            child.end()
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
    task: Callable[[T], R],
    shares: Sequence[Sequence[T]],
    turn: int,
    queue: int,
    told: Callable[[int], None],
) -> dict[int, list[R]]:
    """Return what this process' turns give: its first one, and those that it takes from the queue."""
    results = {}
    while True:
        told(turn)
        results[turn] = [task(item) for item in shares[turn]]
        following = os.read(queue, _NUMBER_BYTES)
        if not following:
            return results
        turn = int.from_bytes(following, "big")


def _end_without(parent: int, _: int) -> None:
    """End this child if its parent is gone, however that ended."""
    if os.getppid() != parent:
        os._exit(1)


def in_copy(function: Callable[[], R]) -> R:
    """Return what a function returns in a copy of this process, without anything else it does.

    The state so far is computed once, and what is tried out from it is gone with the copy.
    """
    child = _Child(function)
    try:
        return child.result()
    finally:
        child.end()


class _Child(Generic[R]):
    """A forked process that calls a function and answers what it returns."""

    def __init__(self, function: Callable[[], R]) -> None:
        self._has_answered = False
        self._pipe, answer = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._pipe)
            _answer(function, answer)
        os.close(answer)

    def result(self) -> R:
        """Wait for the answer."""
        import pickle

        with open(self._pipe, "rb", closefd=False) as pipe:
            answer = pipe.read()
        if not answer:
            raise HostError("a worker process was ended before its work was done (out of memory?)")
        self._has_answered = True
        outcome, error = pickle.loads(answer)  # noqa: S301 - written by our own child
        if error is not None:
            raise error
        result: R = outcome
        return result

    def end(self) -> None:
        """Make sure that the child is gone; one that has answered goes by itself."""
        os.close(self._pipe)
        if not self._has_answered:
            import signal

            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _answer(function: Callable[[], R], answer: int) -> None:
    """Be the child: answer and end, whatever happens, without running anything of the parent's."""
    import pickle

    try:
        outcome: tuple[R | None, Exception | None]
        try:
            outcome = function(), None
        except Exception as error:  # noqa: BLE001 - the parent raises it
            import traceback

            error.add_note("".join(traceback.format_tb(error.__traceback__)))  # which is not pickled
            outcome = None, error
        with open(answer, "wb") as pipe:
            pipe.write(pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL))
    finally:
        os._exit(0)
