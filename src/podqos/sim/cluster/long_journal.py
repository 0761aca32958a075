"""The journal of a run with many idle nodes, generated while it is read instead of stored.

A million pods that start and run make two million entries without news. Small journals are plain lists.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import overload

from podqos.agent.journal import Entry, in_order
from podqos.sim.cluster.fleet import Fleet

_MOST_KEPT = 100_000


def whole_journal(written: list[Entry], fleet: Fleet) -> Sequence[Entry]:
    """Return the journal of all nodes; ``written`` is that of the simulated ones, in order."""
    return LongJournal(written, fleet).unless_long()


class GeneratedJournal(Sequence[Entry]):
    """A journal that is generated while it is read, as often as wanted, from its start."""

    @abstractmethod
    def __iter__(self) -> Iterator[Entry]: ...

    @overload
    def __getitem__(self, index: int) -> Entry: ...

    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...

    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return list(self)[index] if step < 0 else list(islice(self, start, stop, step))
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError("the journal is not that long")
        return next(islice(self, place, None))

    def unless_long(self) -> Sequence[Entry]:
        """Return a plain list of it, or itself if that would be long."""
        return list(self) if len(self) <= _MOST_KEPT else self


class LongJournal(GeneratedJournal):
    """The journal of simulated nodes and of idle ones, which is not stored."""

    def __init__(self, written: list[Entry], fleet: Fleet) -> None:
        self._written = written
        self._fleet = fleet
        self._idle = sorted(fleet.idle.values(), key=lambda node: node.name)
        self._length = len(written) + sum(len(node.initial.written) for node in self._idle)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Entry]:
        # Idle nodes have entries at the beginning only: by name they are in the order of the journal.
        idle = (entry for node in self._idle for entry in self._fleet.journal_of(node))
        return merge(self._written, idle, key=in_order) if self._written else idle
