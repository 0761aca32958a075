"""Work that may be shared among processes: an edge decides how many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from podqos.objects.spreading import Progress

T = TypeVar("T")
R = TypeVar("R")


class FanOut(Protocol):
    """One task over many inputs, with so many processes; results in the order of the inputs."""

    def __call__(
        self, task: Callable[[T], R], inputs: Sequence[T], workers: int, progress: Progress | None = None
    ) -> Iterator[R]:
        """Yield ``task(input)`` for every input."""


class Workers(Struct, frozen=True):
    """Who does the work, and who hears of it."""

    fan_out: FanOut
    cores: int
    progress: Progress | None = None

    def each(self, task: Callable[[T], R], inputs: Sequence[T], progress: Progress | None = None) -> Iterator[R]:
        """Yield ``task(input)`` for every input, computed on all cores."""
        return self.fan_out(task, inputs, self.cores, progress)
