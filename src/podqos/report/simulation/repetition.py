"""The same pod evicted again and again, told once.

A pod that tolerates the pressure of its node comes back to it, under a new name, and is evicted again. Told one by one,
the rounds bury everything else. What is left out here is in the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from podqos.agent.journal import Kind

# What a node says of itself meanwhile.
_BESIDE = (Kind.OBSERVED, Kind.CONDITION_CHANGED)
_FEWEST = 2


class _Event(Protocol):
    """What is asked of an event, whatever else it carries."""

    @property
    def time_us(self) -> int: ...
    @property
    def kind(self) -> Kind: ...


E = TypeVar("E", bound=_Event)


class Again(Struct, frozen=True):
    """Evictions that follow one that was told, with nothing between them that concerns another pod."""

    pod: str
    """As it was called first."""
    times: int
    since_us: int
    """When the one that was told happened."""
    until_us: int
    first_away_us: int
    """From that one until the pod ran again."""
    last_away_us: int
    """The same for the last time it came back."""


def condensed(events: Sequence[E], first: Callable[[E], str | None]) -> Iterator[Sequence[E] | Again]:
    """Yield events in stretches, and in place of a stretch in which a pod is evicted again and again that it was.

    ``first`` names the pod of an event as it was called first.
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
        if pod is not None and sum(each.kind is Kind.EVICTED for each in rounds) >= _FEWEST:
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
