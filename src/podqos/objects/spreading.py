"""The same task for many inputs: one after the other, or on several cores where an edge brings them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

Input = TypeVar("Input")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]
"""Called with how many are done, and the total."""


class Spread(Protocol):
    """A way to do a task for every input; ``size_bytes`` is how much all of them are together."""

    def __call__(
        self, task: Callable[[Input], Result], inputs: Sequence[Input], size_bytes: int, /
    ) -> Sequence[Result]:
        """Return ``task(input)`` for every input, in order."""


def one_by_one(
    task: Callable[[Input], Result], inputs: Sequence[Input], _size_bytes: int = 0, progress: Progress | None = None
) -> list[Result]:
    """Return ``task(input)`` for every input, in order."""
    if progress is None:
        return [task(each) for each in inputs]
    results = []
    for number, each in enumerate(inputs, 1):
        results.append(task(each))
        progress(number, len(inputs))
    return results
