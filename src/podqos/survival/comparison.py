"""Compares two journals of one scenario: whether the same pods die, in the same order, killed by the same actor.

This checks a prediction against a real machine. Victims are matched by pod, in order; a difference gets an explanation
if the journals contain one, and is flagged otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import OOMKill, cause_of
from podqos.model.assumption import Assumption
from podqos.model.time_units import SECOND_US


class Victim(Struct, frozen=True, gc=False, rename="camel"):
    """A pod that was evicted, or a container that was killed."""

    at_seconds: float
    by: By
    pod: str
    container: str | None = None
    """The container that the kernel killed; an eviction ends the whole pod."""
    cause: str | None = None
    """The level that ran out of memory, the signal, or the limit of the pod's own."""
    margin_bytes: int | None = None
    """By how much the kernel's choice was clear."""
    oom_score_adj: int | None = None


class Verdict(StrEnum):
    """How a victim of one journal compares with the other."""

    SAME = "same"
    OTHER_HAND = "other hand"
    """The same pod at the same place, but killed by the other of kernel and kubelet."""
    MOVED = "moved"
    """It is in both, but not at the same place of the order."""
    ONLY_EXPECTED = "only expected"
    ONLY_HAPPENED = "only happened"


class Explanation(StrEnum):
    """Why the two differ, if the journals say."""

    CLOSE_CALL = "the kernel's choice hung on less memory than figures are exact to"
    CLOSE_IN_TIME = "two fell so close together that either can be first"
    OTHER_SCORE = "the machine did not allow the planned oom_score_adj"


class ComparedVictim(Struct, frozen=True, gc=False, rename="camel"):
    """One victim, predicted, real, or both."""

    predicted: Victim | None
    real: Victim | None
    verdict: Verdict
    explanation: Explanation | None = None
    """Why they differ; null where they do not, or nothing says why."""

    @property
    def is_flagged(self) -> bool:
        """Whether they differ and nothing says why."""
        return self.verdict is not Verdict.SAME and self.explanation is None


class Tolerance(Struct, frozen=True, gc=False):
    """The precision of the figures."""

    margin_bytes: int = 8 << 20
    seconds: float = 0.5


class Comparison(Struct, frozen=True, gc=False):
    """The whole comparison."""

    victims: tuple[ComparedVictim, ...]
    """In the order of what was predicted; what was not stands where it happened."""

    @property
    def same_victims(self) -> bool:
        """Whether the same pods died, however often and in whatever order."""
        return not any(victim.predicted is None or victim.real is None for victim in self.victims)

    @property
    def same_order(self) -> bool:
        """Whether they died in the predicted order."""
        return all(victim.verdict in {Verdict.SAME, Verdict.OTHER_HAND} for victim in self.victims)

    @property
    def flagged(self) -> tuple[ComparedVictim, ...]:
        """The differences without an explanation."""
        return tuple(victim for victim in self.victims if victim.is_flagged)


class Rehearsal(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos rehearse -o json``. Fields are added, never renamed or removed."""

    scenario: str
    scale: str
    same_victims: bool
    same_order: bool
    flagged: int
    """Differences that nothing explains."""
    victims: tuple[ComparedVictim, ...]
    left_out: tuple[str, ...]
    """Parts of the scenario without a real counterpart."""
    notes: tuple[str, ...]
    """What the machine did not allow."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Rehearsal"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated, and that the rules of a version are approximate."""


def compare(predicted: Iterable[Entry], real: Iterable[Entry], tolerance: Tolerance | None = None) -> Comparison:
    """Match the victims of two journals."""
    tolerance = tolerance or Tolerance()
    first, second = victims(predicted), victims(real)
    rows = matched(first, second)
    return Comparison(tuple(replace(row, explanation=_explanation(row, first, second, tolerance)) for row in rows))


def victims(entries: Iterable[Entry]) -> tuple[Victim, ...]:
    """Return the evicted and killed, in the order of the journal."""
    return tuple(filter(None, map(_victim, entries)))


def is_kill(entry: Entry) -> bool:
    """Whether a pod was evicted or a container killed."""
    return entry.kind in {Kind.EVICTED, Kind.OOM_KILLED}


def _victim(entry: Entry) -> Victim | None:
    if not is_kill(entry) or entry.pod is None:
        return None
    because = entry.because
    by = By.KERNEL if entry.kind is Kind.OOM_KILLED else By.KUBELET
    victim = Victim(entry.time_us / SECOND_US, by, entry.pod, entry.container, cause_of(because))
    if isinstance(because, OOMKill):
        return replace(victim, margin_bytes=because.margin_bytes, oom_score_adj=because.oom_score_adj)
    return victim


def matched(first: Sequence[Victim], second: Sequence[Victim]) -> Iterator[ComparedVictim]:
    """Pair victims: in order where that is possible, the rest by pod."""
    matcher = SequenceMatcher(None, [victim.pod for victim in first], [each.pod for each in second], autojunk=False)
    left: list[Victim] = []
    right: list[Victim] = []
    rows: list[tuple[float, ComparedVictim]] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            for one, other in zip(first[i1:i2], second[j1:j2], strict=True):
                verdict = Verdict.SAME if one.by is other.by else Verdict.OTHER_HAND
                rows.append((one.at_seconds, ComparedVictim(one, other, verdict)))
        else:
            left += first[i1:i2]
            right += second[j1:j2]
    for one in left:
        found = next((victim for victim in right if victim.pod == one.pod), None)
        if found is not None:
            right.remove(found)
        verdict = Verdict.ONLY_EXPECTED if found is None else Verdict.MOVED
        rows.append((one.at_seconds, ComparedVictim(one, found, verdict)))
    rows += [(rest.at_seconds, ComparedVictim(None, rest, Verdict.ONLY_HAPPENED)) for rest in right]
    return (row for _, row in sorted(rows, key=lambda row: row[0]))


def _explanation(
    row: ComparedVictim, first: Sequence[Victim], second: Sequence[Victim], tolerance: Tolerance
) -> Explanation | None:
    one, other = row.predicted, row.real
    if row.verdict is Verdict.SAME:
        return None
    scores = {victim.oom_score_adj for victim in (one, other) if victim is not None} - {None}
    if len(scores) > 1:
        return Explanation.OTHER_SCORE
    if any(_is_close(victim, tolerance) for victim in (one, other)):
        return Explanation.CLOSE_CALL
    if row.verdict is Verdict.MOVED and (
        _has_neighbour(one, first, tolerance) or _has_neighbour(other, second, tolerance)
    ):
        return Explanation.CLOSE_IN_TIME
    return None


def _is_close(victim: Victim | None, tolerance: Tolerance) -> bool:
    return victim is not None and victim.margin_bytes is not None and victim.margin_bytes <= tolerance.margin_bytes


def _has_neighbour(victim: Victim | None, journal: Sequence[Victim], tolerance: Tolerance) -> bool:
    return victim is not None and any(
        other is not victim
        and other.pod != victim.pod
        and abs(other.at_seconds - victim.at_seconds) <= tolerance.seconds
        for other in journal
    )
