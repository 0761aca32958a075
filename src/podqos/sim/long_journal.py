"""The journal of a run with many nodes on which nothing happened: made while it is read, instead of kept.

A million pods that start and run make two million entries which say nothing new. Small journals are plain lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import overload

from podqos.agent.journal import Entry
from podqos.sim.cold import ColdNode
from podqos.sim.scenario import Scenario

_MOST_KEPT = 100_000


def journal(scenario: Scenario, written: list[Entry], cold: Mapping[str, ColdNode]) -> Sequence[Entry]:
    """Return the whole journal; ``written`` is that of the simulated nodes, in order."""
    made = LongJournal(scenario, written, cold)
    return list(made) if len(made) <= _MOST_KEPT else made


class LongJournal(Sequence[Entry]):
    """A journal that can be read as often as one likes, from its beginning."""

    def __init__(self, scenario: Scenario, written: list[Entry], cold: Mapping[str, ColdNode]) -> None:
        self._scenario = scenario
        self._written = written
        self._cold = [cold[name] for name in sorted(cold)]
        self._length = len(written) + sum(len(node.beginning.lines) for node in self._cold)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Entry]:
        # Cold nodes have entries at the beginning only: sorted by name they are in the order of the journal.
        quiet = (entry for node in self._cold for entry in node.entries(self._scenario))
        return merge(self._written, quiet, key=lambda entry: (entry.time_us, entry.node)) if self._written else quiet

    @overload
    def __getitem__(self, index: int) -> Entry: ...

    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...

    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            if step < 0:
                return list(self)[index]
            return list(islice(self, start, stop, step))
        place = index + self._length if index < 0 else index
        if not 0 <= place < self._length:
            raise IndexError("the journal is not that long")
        return next(islice(self, place, None))
