"""Which pass of the kubelet's loop acts first, by the phase of the loop: exact, for every phase at once.

Passes come at regular intervals, and where in its interval the loop is when something begins is its *phase*. Given
when a pass would act, as spans of time, the phases are divided into pieces: those of a piece have their first acting
pass in the same turn of the loop, by the same threshold. The length of a piece is its probability.

Times are whole numbers in any unit, spans are half open, sorted, and do not overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

Span = tuple[int, int]
_NEVER = 1 << 200


class Alarm(Struct, frozen=True, gc=False):
    """A look between two passes: the passes from ``begin`` until ``end``, unless they act, lead to one at ``at``."""

    begin: int
    end: int
    at: int
    """Before the next pass."""
    place: int
    """Of the threshold that acts then."""


class ActingPiece(Struct, frozen=True, gc=False):
    """Phases with the same outcome."""

    place: int
    """Of the threshold among those given."""
    begin: int
    end: int
    first: int
    """When the first of these phases acts."""
    is_at_once: bool = False
    """Whether all of them act then, by an alarm; otherwise each as much later as the phase is."""


def first_acts(
    thresholds: Sequence[Sequence[Span]], interval: int, alarms: Iterable[Alarm] = ()
) -> Iterator[ActingPiece]:
    """Yield the pieces, by turn of the loop; phases that are in none have no pass that acts.

    ``thresholds`` are the spans of each. Where several act in one pass the first counts.
    """
    waiting: Sequence[Span] = [(0, interval)]
    ahead = [[*reversed(spans)] for spans in thresholds]
    looks: dict[int, list[Alarm]] = {}
    for alarm in sorted(alarms, key=lambda alarm: alarm.at):
        for turn in range(alarm.begin // interval, -(-alarm.end // interval)):
            looks.setdefault(turn, []).append(alarm)
    while waiting and (looks or any(ahead)):
        turn = min(*looks, *(spans[-1][0] // interval for spans in ahead if spans), _NEVER)
        begin, end = turn * interval, (turn + 1) * interval
        for place, spans in enumerate(ahead):
            found = _found(_cut(spans, end), begin, end, waiting)
            waiting = without(waiting, found)
            yield from (ActingPiece(place, *piece, begin + piece[0]) for piece in found)
        for alarm in looks.pop(turn, ()):
            found = _found([(alarm.begin, alarm.end)], begin, end, waiting)
            waiting = without(waiting, found)
            yield from (ActingPiece(alarm.place, *piece, alarm.at, is_at_once=True) for piece in found)


def _found(spans: Iterable[Span], begin: int, end: int, waiting: Sequence[Span]) -> list[Span]:
    """Return the waiting phases whose pass in the turn from ``begin`` until ``end`` is in a span."""
    return overlap([(max(one, begin) - begin, min(other, end) - begin) for one, other in spans], waiting)


def lasting(spans: Sequence[Span], interval: int, passes: int) -> Sequence[Span]:
    """Return when a pass is in a span, and so many passes before it were, too."""
    done = 0
    while spans and done < passes:
        more = min(done + 1, passes - done)
        spans = overlap(spans, [(begin + more * interval, end + more * interval) for begin, end in spans])
        done += more
    return spans


def overlap(one: Sequence[Span], other: Sequence[Span]) -> list[Span]:
    """Return what is in both."""
    found: list[Span] = []
    i = j = 0
    while i < len(one) and j < len(other):
        begin, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if begin < end:
            found.append((begin, end))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return found


def union(one: Sequence[Span], other: Sequence[Span]) -> list[Span]:
    """Return what is in either."""
    found: list[Span] = []
    for begin, end in sorted((*one, *other)):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


def without(spans: Sequence[Span], taken: Sequence[Span]) -> Sequence[Span]:
    """Return what is in the first and not in the second."""
    if not spans or not taken:
        return spans
    ends = (min(spans[0][0], taken[0][0]), *(end for _, end in taken))
    begins = (*(begin for begin, _ in taken), max(spans[-1][1], taken[-1][1]))
    return overlap(spans, [*zip(ends, begins, strict=True)])


def _cut(spans: list[Span], end: int) -> Iterator[Span]:
    """Take what is before ``end`` off a list whose first span is its last."""
    while spans and spans[-1][0] < end:
        begin, until = spans.pop()
        yield begin, until
        if until > end:
            spans.append((end, until))
            return
