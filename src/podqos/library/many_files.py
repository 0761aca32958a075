"""Many files on all cores, where that pays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from podqos.objects.spreading import Progress, Spread, one_by_one
from podqos.reading.files import are_larger

Input = TypeVar("Input")
Result = TypeVar("Result")

# Below this a second process costs more than it saves.
WORTH_FORKING_BYTES = 1 << 20


def are_worth_forking(paths: Iterable[str]) -> bool:
    """Whether files together are so large that a second process pays."""
    return are_larger(paths, WORTH_FORKING_BYTES)


def over_cores(progress: Progress | None = None) -> Spread:
    """Return how to do a task for many inputs: all cores work where there is enough of it, and no other thread runs.

    The processes of a task are forked from this one, so that only results travel.
    """
    return partial(_spread, progress=progress)


def _spread(
    task: Callable[[Input], Result], inputs: Sequence[Input], size_bytes: int, progress: Progress | None
) -> Sequence[Result]:
    from threading import active_count

    if size_bytes < WORTH_FORKING_BYTES or active_count() > 1:
        return one_by_one(task, inputs, size_bytes, progress)
    from podqos.library.engines.fan_out import fan_out, usable_cores

    return list(fan_out(task, inputs, usable_cores(), progress))
