"""What is worst among findings, and the one sentence that says so. It reads the consequences, and decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podqos.advice.checks.finding import Consequence, Effect, FindingSeverity
from podqos.answers.findings import CheckVerdict, Fate, FindingReport
from podqos.model.pod import QOSClass
from podqos.wording import counted
from podqos.words.consequences import when_evicted

_SHORT = "when all pods use what they may"


def badness(item: FindingReport) -> tuple[bool, int, int, int, str, int, int, str]:
    """Return what findings are sorted by, worst first: severity, what follows, priority of the pods, place."""
    found = item.effects
    priority = 0 if found.now is None else found.now.priority
    place = (item.source, item.line, item.column, item.check)
    return (item.suppression is not None, item.severity.rank, _harm(item), -priority, *place)


def verdict(items: Iterable[FindingReport]) -> CheckVerdict | None:
    """Return the worst of the findings that are not suppressed, as data and in one sentence."""
    open_items = [item for item in items if item.suppression is None]
    if not open_items:
        return None
    worst = min(open_items, key=badness)
    found = worst.effects
    fate, words = _fate(worst)
    others = {
        (item.subject, item.source): item.subject
        for item in open_items
        if _is_worth_telling(item, worst) and _fate(item) == (fate, words)
    }
    others.pop((worst.subject, worst.source), None)
    is_cause = found.repaired is not None or (found.now is not None and found.now.qos_class is QOSClass.BEST_EFFORT)
    return CheckVerdict(
        text=_sentence(worst, fate, words, list(others.values()), is_cause=is_cause),
        fate=fate,
        severity=worst.severity,
        check=worst.check,
        kind=worst.kind,
        namespace=worst.namespace,
        name=worst.name,
        reason=worst.reason,
        is_cause=is_cause,
        others=len(others),
        fingerprint=worst.fingerprint,
    )


def _is_worth_telling(item: FindingReport, worst: FindingReport) -> bool:
    """Whether a finding counts beside the worst: an info only where there is nothing else."""
    return FindingSeverity.INFO not in {item.severity, worst.severity} or item.severity is worst.severity


def _sentence(item: FindingReport, fate: Fate, words: str, others: Sequence[str], *, is_cause: bool) -> str:
    if fate is Fate.NOT_CREATED:
        subject = item.subject if item.kind == "Pod" else f"no pod of {item.subject}"
        return f"{subject} is {words}: {item.reason}"
    if fate is Fate.NONE:
        return f"{item.subject}: {item.reason}"
    named = len(others) == 1 and others[0] != item.subject
    like = others[0] if named else counted(len(others), "other")
    alike = f", like {like}," if others else ""
    return f"{item.subject}{alike} is {words}, {'because' if is_cause else 'and'} {item.reason}"


def _harm(item: FindingReport) -> int:
    found = item.effects
    if found.effect is Effect.NOT_CREATED:
        return 0
    if _ways_first(item):
        return 1
    if found.evicted_before or found.killed_before:
        return 2
    if found.effect is Effect.NODE:
        return 3
    return 4 if found.now is not None and found.now.qos_class is QOSClass.BEST_EFFORT else 5


def _ways_first(item: FindingReport) -> list[str]:
    """Return in which orders the subject is first."""
    found = item.effects
    if found.effect is not Effect.ORDER:
        return []
    key = item.subject.partition(" ")[2]
    return [way for way, first in (("evicted", found.first_evicted), ("killed", found.first_killed)) if first == key]


def _fate(item: FindingReport) -> tuple[Fate, str]:
    """Return what becomes of the subject, in a word and in words; no words where no pod of it is worse off."""
    found = item.effects
    if found.effect is Effect.NOT_CREATED:
        return Fate.NOT_CREATED, f"{'not ' * (item.kind == 'Pod')}created or scheduled"
    ways = _ways_first(item)
    if ways:
        return Fate.FIRST, f"{' and '.join(ways)} first {_SHORT}"
    if found.effect is Effect.DISK:
        return Fate.DISK, "among the first to be evicted when the disk fills up"
    earlier = _earlier(found)
    if earlier:
        return Fate.EARLIER, f"{earlier} {_SHORT}"
    if found.now is None or found.now.is_spared or found.now.qos_class is QOSClass.GUARANTEED:
        return Fate.NONE, ""
    return Fate.BY_CLASS, when_evicted(found.now)


def _earlier(found: Consequence) -> str:
    evicted, killed = found.evicted_before, found.killed_before
    if evicted is not None and evicted == killed:
        return f"evicted and killed before {evicted}"
    ways = (("evicted", evicted), ("killed", killed))
    return " and ".join(f"{way} before {other}" for way, other in ways if other is not None)
