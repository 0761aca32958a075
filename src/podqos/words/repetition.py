"""Repeated evictions of one pod as a single event.

A pod that tolerates the pressure of its node comes back to it under a new name and is evicted again. Shown one by one,
the rounds bury everything else. The journal has them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from podqos.agent.journal import Kind

# What the node reports meanwhile.
_BESIDE = (Kind.OBSERVED, Kind.CONDITION_CHANGED)
_FEWEST = 2


class _Event(Protocol):
    """What an event has to have."""

    @property
    def time_us(self) -> int: ...
    @property
    def kind(self) -> Kind: ...


E = TypeVar("E", bound=_Event)


class Again(Struct, frozen=True):
    """Evictions of a pod after the first one shown, with no events of other pods between them."""

    pod: str
    """Its first name."""
    times: int
    since_us: int
    """When the first one happened."""
    until_us: int
    first_away_us: int
    """From the first eviction until the pod ran again."""
    last_away_us: int
    """The same for its last return."""


def condensed(events: Sequence[E], first: Callable[[E], str | None]) -> Iterator[Sequence[E] | Again]:
    """Yield runs of events; a run in which one pod is evicted repeatedly becomes one ``Again``.

    ``first`` returns the first name of an event's pod.
    """
    start = at = 0
    while at < len(events):
        event, at = events[at], at + 1
        if event.kind is not Kind.EVICTED:
            continue
        pod = first(event)
        end = after = at
        while after < len(events) and (events[after].kind in _BESIDE or first(events[after]) == pod):
            after += 1
            if events[after - 1].kind is Kind.EVICTED:
                end = after
        rounds = events[at:end]
        if pod is not None and sum(event.kind is Kind.EVICTED for event in rounds) >= _FEWEST:
            yield events[start:at]
            yield _again(pod, event, rounds)
            start = at = end
    yield events[start:]


def _again(pod: str, told: E, rounds: Sequence[E]) -> Again:
    ended_us, away_us, times = told.time_us, [], 0
    for event in rounds:
        if event.kind is Kind.STARTED:
            away_us.append(event.time_us - ended_us)
        elif event.kind is Kind.EVICTED:
            ended_us, times = event.time_us, times + 1
    return Again(pod, times, told.time_us, ended_us, away_us[0] if away_us else 0, away_us[-1] if away_us else 0)
