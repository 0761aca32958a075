"""What is worst among findings, and the one sentence that says so. It reads the consequences, and decides nothing."""

from __future__ import annotations

from collections.abc import Iterable

from podqos.advice.checks.finding import Consequence, Effect
from podqos.model.pod import QOSClass
from podqos.report.check.consequences import when_evicted
from podqos.report.check.value import FindingReport

_SHORT = "when memory runs short"


def badness(item: FindingReport) -> tuple[bool, int, int, int, str, int, int, str]:
    """Return what findings are sorted by, worst first: severity, what follows, priority of the pods, place."""
    found = item.effects
    priority = 0 if found.now is None else found.now.priority
    place = (item.source, item.line, item.column, item.check)
    return (item.suppression is not None, item.severity.rank, _harm(item), -priority, *place)


def verdict(items: Iterable[FindingReport]) -> str:
    """Return the worst of the findings in one sentence."""
    worst = min(items, key=badness)
    found = worst.effects
    if found.effect is Effect.NOT_CREATED:
        subject = worst.subject if worst.kind == "Pod" else f"no pod of {worst.subject}"
        return f"{subject} is {'not ' * (worst.kind == 'Pod')}created or scheduled: {worst.reason}"
    fate = _fate(worst)
    if not fate:
        return f"{worst.subject}: {worst.reason}"
    is_cause = found.repaired is not None or (found.now is not None and found.now.qos_class is QOSClass.BEST_EFFORT)
    return f"{worst.subject} is {fate}{', because ' if is_cause else ': '}{worst.reason}"


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


def _fate(item: FindingReport) -> str:
    """Return what becomes of the subject; nothing where no pod of it is worse off."""
    found = item.effects
    ways = _ways_first(item)
    if ways:
        return f"{' and '.join(ways)} first {_SHORT}"
    if found.effect is Effect.DISK:
        return "among the first to be evicted when the disk fills up"
    earlier = _earlier(found)
    if earlier:
        return f"{earlier} {_SHORT}"
    if found.now is None or found.now.is_spared or found.now.qos_class is QOSClass.GUARANTEED:
        return ""
    return when_evicted(found.now)


def _earlier(found: Consequence) -> str:
    evicted, killed = found.evicted_before, found.killed_before
    if evicted is not None and evicted == killed:
        return f"evicted and killed before {evicted}"
    ways = (("evicted", evicted), ("killed", killed))
    return " and ".join(f"{way} before {other}" for way, other in ways if other is not None)
