"""One task over many files, on all cores where that pays, results in the order of the files.

Processes are forked, so that a task may close over its settings; they inherit no work of their own to clean up and end
with their parent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import TypeVar, cast

from podqos.cli.inputs import STDIN, with_progress

# Below this many bytes a second process costs more than it saves.
_WORTH_FORKING_BYTES = 1 << 20

T = TypeVar("T")

_task: Callable[[str], object]


def fan_out(task: Callable[[str], T], files: list[str]) -> Iterator[T]:
    """Yield ``task(file)`` for every file, in order."""
    workers = min(len(files), _usable_cores())
    if workers < 2 or STDIN in files or _total_bytes(files) < _WORTH_FORKING_BYTES:
        yield from map(task, with_progress(files, "reading file"))
    else:
        yield from _forked(task, files, workers)


def _forked(task: Callable[[str], T], files: list[str], workers: int) -> Iterator[T]:
    import multiprocessing

    global _task  # noqa: PLW0603 - how a forked worker inherits its task without pickling it
    _task = task
    sys.stdout.flush()
    with multiprocessing.get_context("fork").Pool(workers, initializer=_ignore_interrupts) as pool:
        # Leaving the block, also by Ctrl-C, terminates the workers.
        results: Iterator[object] = pool.imap(_run, files, chunksize=max(1, min(32, len(files) // (workers * 4))))
        for _ in with_progress(files, "reading file"):
            yield cast("T", next(results))


def _run(file: str) -> object:
    return _task(file)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent, which ends the workers; otherwise each would print a traceback."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _total_bytes(files: list[str]) -> int:
    total = 0
    for file in files:
        try:
            total += os.stat(file).st_size
        except OSError:
            continue  # the task will say why
        if total >= _WORTH_FORKING_BYTES:
            break
    return total
