"""Run independent tasks on the cores of this machine, or on a Dask cluster.

What a task needs is sent along; the workers of a cluster only need podqos installed, in the same version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TypedDict, TypeVar

from podqos.errors import InvalidArgument
from podqos.library.engines.fan_out import in_processes, usable_cores
from podqos.naming import naming

Task = TypeVar("Task")
Result = TypeVar("Result")

PER_CORE = -1
"""As many jobs as there are cores."""
_MOST_JOBS = 1024


class EngineKeywords(TypedDict, total=False):
    """Where work is done, as keyword arguments."""

    engine: str
    """``processes`` of this machine, or ``dask=HOST:PORT``."""
    jobs: int
    """How many run at a time on this machine."""


def carried_out(
    function: Callable[[Task], Result], tasks: Iterable[Task], *, engine: str = "processes", jobs: int = PER_CORE
) -> AbstractContextManager[Iterator[Result]]:
    """Give an iterator over the results of all tasks as they come, in any order; the workers are gone when it is left.

    Tasks are taken when there is room for them. ``jobs`` is how many run at a time on this machine.
    """
    address = dask_address(engine)
    if address is not None:
        from podqos.library.engines.dask_cluster import on_dask

        return on_dask(function, tasks, address)
    return in_processes(function, tasks, job_count(jobs))


def dask_address(engine: str) -> str | None:
    """Return the address of the Dask scheduler; None where this machine does the work."""
    name, _, address = engine.partition("=")
    if name == "dask" and address:
        return address
    if engine != "processes":
        raise InvalidArgument(f"unknown engine {engine!r}", where=naming("engine"), fix="processes or dask=HOST:PORT")
    return None


def job_count(jobs: int) -> int:
    """Return how many jobs run at a time on this machine."""
    if jobs == PER_CORE:
        return usable_cores()
    if not 0 < jobs <= _MOST_JOBS:
        raise InvalidArgument(f"'{jobs}' is not a number of jobs", where=naming("jobs"), fix=f"1 to {_MOST_JOBS:,}")
    return jobs
