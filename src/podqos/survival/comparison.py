"""Two journals of one scenario side by side: whether the same fall, in the same order, by the same hand.

It is how a prediction is checked against a machine. Victims are matched by pod, in order; what does not match gets an
explanation as far as the journals hold one, and is flagged where they do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from enum import StrEnum

from msgspec import Struct

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import LocalStorageExceeded, OOMKill, OOMLevel, UnderPressure
from podqos.eviction.local_storage import LocalStorageLimit
from podqos.eviction.signals import Signal
from podqos.model.time_units import SECOND_US


class Victim(Struct, frozen=True, gc=False):
    """Somebody who was evicted or killed."""

    time_us: int
    by: By
    pod: str
    container: str | None = None
    """Whom the kernel took; an eviction takes the whole pod."""
    cause: Signal | LocalStorageLimit | OOMLevel | None = None
    margin_bytes: int | None = None
    """By how much the kernel's choice was clear."""
    oom_score_adj: int | None = None


class Verdict(StrEnum):
    """How a victim of the one journal stands in the other."""

    SAME = "same"
    OTHER_HAND = "other hand"
    """The same pod at the same place, but kernel and kubelet have changed roles."""
    MOVED = "moved"
    """It is in both, but not at the same place of the order."""
    ONLY_EXPECTED = "only expected"
    ONLY_HAPPENED = "only happened"


class Explanation(StrEnum):
    """Why the two differ, as far as they tell."""

    CLOSE_CALL = "close call"
    """The kernel's choice hung on less memory than figures are exact to."""
    CLOSE_IN_TIME = "close in time"
    """Two victims fell so close together that either can be first."""
    OTHER_SCORE = "other score"
    """The machine did not allow the planned oom_score_adj."""


class Row(Struct, frozen=True, gc=False):
    """One victim, in one journal or in both."""

    expected: Victim | None
    happened: Victim | None
    verdict: Verdict
    explanation: Explanation | None = None

    @property
    def is_flagged(self) -> bool:
        """Whether they differ and nothing says why."""
        return self.verdict is not Verdict.SAME and self.explanation is None


class Tolerance(Struct, frozen=True, gc=False):
    """How exact the figures are."""

    margin_bytes: int = 8 << 20
    time_us: int = SECOND_US // 2


class Comparison(Struct, frozen=True, gc=False):
    """The whole of it."""

    rows: tuple[Row, ...]
    """In the order of what was expected; what only happened stands where it happened."""

    @property
    def same_victims(self) -> bool:
        """Whether the same pods went, however often and in whatever order."""
        return not any(row.expected is None or row.happened is None for row in self.rows)

    @property
    def same_order(self) -> bool:
        """Whether they went one after the other as expected."""
        return all(row.verdict in {Verdict.SAME, Verdict.OTHER_HAND} for row in self.rows)

    @property
    def flagged(self) -> tuple[Row, ...]:
        """Differences without an explanation."""
        return tuple(row for row in self.rows if row.is_flagged)


def compare(expected: Iterable[Entry], happened: Iterable[Entry], tolerance: Tolerance | None = None) -> Comparison:
    """Match the victims of two journals."""
    tolerance = tolerance or Tolerance()
    first, second = victims(expected), victims(happened)
    rows = list(_matched(first, second))
    return Comparison(tuple(_explained(row, first, second, tolerance) for row in rows))


def victims(entries: Iterable[Entry]) -> tuple[Victim, ...]:
    """Return who was evicted or killed, in the order of the journal."""
    return tuple(filter(None, map(_victim, entries)))


def _victim(entry: Entry) -> Victim | None:
    if entry.kind not in {Kind.EVICTED, Kind.OOM_KILLED} or entry.pod is None:
        return None
    because = entry.because
    if isinstance(because, OOMKill):
        margin, adj = because.margin_bytes, because.oom_score_adj
        return Victim(entry.time_us, By.KERNEL, entry.pod, entry.container, because.level, margin, adj)
    by = By.KERNEL if entry.kind is Kind.OOM_KILLED else By.KUBELET
    cause: Signal | LocalStorageLimit | None = None
    if isinstance(because, UnderPressure):
        cause = because.signal
    elif isinstance(because, LocalStorageExceeded):
        cause = because.limit_kind
    return Victim(entry.time_us, by, entry.pod, entry.container, cause)


def _matched(first: Sequence[Victim], second: Sequence[Victim]) -> Iterator[Row]:
    """Pair victims: in order where that is possible, the rest by pod."""
    matcher = SequenceMatcher(None, [each.pod for each in first], [each.pod for each in second], autojunk=False)
    left: list[Victim] = []
    right: list[Victim] = []
    rows: list[tuple[int, Row]] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            for one, other in zip(first[i1:i2], second[j1:j2], strict=True):
                verdict = Verdict.SAME if one.by is other.by else Verdict.OTHER_HAND
                rows.append((one.time_us, Row(one, other, verdict)))
        else:
            left += first[i1:i2]
            right += second[j1:j2]
    for one in left:
        found = next((each for each in right if each.pod == one.pod), None)
        if found is not None:
            right.remove(found)
        verdict = Verdict.ONLY_EXPECTED if found is None else Verdict.MOVED
        rows.append((one.time_us, Row(one, found, verdict)))
    rows += [(rest.time_us, Row(None, rest, Verdict.ONLY_HAPPENED)) for rest in right]
    return (row for _, row in sorted(rows, key=lambda each: each[0]))


def _explained(row: Row, first: Sequence[Victim], second: Sequence[Victim], tolerance: Tolerance) -> Row:
    if row.verdict is Verdict.SAME:
        return row
    return Row(row.expected, row.happened, row.verdict, _explanation(row, first, second, tolerance))


def _explanation(
    row: Row, first: Sequence[Victim], second: Sequence[Victim], tolerance: Tolerance
) -> Explanation | None:
    one, other = row.expected, row.happened
    if one is not None and other is not None and _differ(one.oom_score_adj, other.oom_score_adj):
        return Explanation.OTHER_SCORE
    if any(_is_close(each, tolerance) for each in (one, other)):
        return Explanation.CLOSE_CALL
    if row.verdict is Verdict.MOVED and (
        _has_neighbour(one, first, tolerance) or _has_neighbour(other, second, tolerance)
    ):
        return Explanation.CLOSE_IN_TIME
    return None


def _differ(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one != other


def _is_close(victim: Victim | None, tolerance: Tolerance) -> bool:
    return victim is not None and victim.margin_bytes is not None and victim.margin_bytes <= tolerance.margin_bytes


def _has_neighbour(victim: Victim | None, journal: Sequence[Victim], tolerance: Tolerance) -> bool:
    return victim is not None and any(
        other is not victim and other.pod != victim.pod and abs(other.time_us - victim.time_us) <= tolerance.time_us
        for other in journal
    )
