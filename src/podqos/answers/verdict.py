"""What is worst among findings, and the one sentence that says so. It reads the consequences, and decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from podqos.advice.checks.finding import Consequence, Effect, FindingSeverity, PodStanding
from podqos.answers.findings import CheckVerdict, Fate, FindingReport
from podqos.model.pod import CLASS_RANK, QOSClass
from podqos.wording import counted
from podqos.words.consequences import AT_THE_LIMITS, when_evicted


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
    outcome = _outcome(worst)
    others = {
        (item.subject, item.source): item.subject
        for item in open_items
        if _is_worth_telling(item, worst) and _is_alike(_outcome(item), outcome)
    }
    others.pop((worst.subject, worst.source), None)
    return CheckVerdict(
        text=_sentence(worst, outcome, list(others.values())),
        fate=outcome.fate,
        severity=worst.severity,
        check=worst.check,
        kind=worst.kind,
        namespace=worst.namespace,
        name=worst.name,
        reason=worst.reason,
        is_cause=outcome.is_cause,
        others=len(others),
        fingerprint=worst.fingerprint,
    )


class _Outcome(Struct, frozen=True, gc=False):
    """What becomes of the subject of a finding."""

    fate: Fate
    words: str = ""
    """Empty where no pod of it is worse off."""
    is_cause: bool = False
    """Whether the finding leads to it."""


def _is_alike(one: _Outcome, other: _Outcome) -> bool:
    return (one.fate, one.words) == (other.fate, other.words)


def _is_worth_telling(item: FindingReport, worst: FindingReport) -> bool:
    """Whether a finding counts beside the worst: an info only where there is nothing else."""
    return FindingSeverity.INFO not in {item.severity, worst.severity} or item.severity is worst.severity


def _sentence(item: FindingReport, outcome: _Outcome, others: Sequence[str]) -> str:
    """Return the headline: what becomes of the subject, and because of what, if that is so.

    What exactly was found is said below, as the reason; here is only what kind of finding it is.
    """
    finding = item.facts.summary() or _as_clause(item.title)
    if outcome.fate is Fate.NOT_CREATED:
        subject = item.subject if item.kind == "Pod" else f"no pod of {item.subject}"
        return f"{subject} is {outcome.words}: {finding}"
    if not outcome.words:
        return f"{item.subject}: {finding}"
    text = f"{item.subject} is {outcome.words}"
    if others:
        is_named = len(others) == 1 and others[0] != item.subject
        who = others[0] if is_named else counted(len(others), "other")
        text = f"{text} (so {'is' if len(others) == 1 else 'are'} {who})"
    return f"{text}, because {item.facts.cause()}" if outcome.is_cause else f"{text}. Worst finding: {finding}"


def _as_clause(title: str) -> str:
    """Return a title as a part of a sentence: names keep their capitals."""
    first, _, rest = title.partition(" ")
    return f"{first.lower()} {rest}" if first[1:] == first[1:].lower() else title


def _harm(item: FindingReport) -> int:
    found = item.effects
    if found.effect in {Effect.NOT_CREATED, Effect.FEWER}:
        return 0
    if _is_safer(found):
        return 4
    if found.evicted_before or found.killed_before:
        return 1
    if found.effect is Effect.NODE:
        return 2
    return 3 if found.now is not None and found.now.qos_class is QOSClass.BEST_EFFORT else 4


def _is_safer(found: Consequence) -> bool:
    """Whether the pods would be worse off without the finding."""
    now, repaired = found.now, found.repaired
    return now is not None and repaired is not None and CLASS_RANK[now.qos_class] > CLASS_RANK[repaired.qos_class]


def _outcome(item: FindingReport) -> _Outcome:
    """Return what becomes of the subject, and whether because of the finding: only where that was compared."""
    found, has_cause = item.effects, bool(item.facts.cause())
    if found.effect is Effect.NOT_CREATED:
        return _Outcome(Fate.NOT_CREATED, f"{'not ' * (item.kind == 'Pod')}created or scheduled", is_cause=True)
    if found.effect is Effect.FEWER:
        return _Outcome(Fate.FEWER)
    if _is_safer(found) and has_cause:
        return _Outcome(Fate.SAFER, "safer than its manifest suggests", is_cause=True)
    if found.effect is Effect.DISK and not (found.now is not None and found.now.is_spared):
        return _Outcome(Fate.DISK, "among the first to be evicted when the disk fills up")
    earlier = _earlier(found)
    if earlier:
        return _Outcome(Fate.EARLIER, f"{earlier} {AT_THE_LIMITS}", is_cause=has_cause and found.is_compared)
    now = found.now
    if now is None or now.is_spared or now.qos_class is QOSClass.GUARANTEED or found.effect is Effect.NONE:
        return _Outcome(Fate.NONE)
    return _Outcome(Fate.BY_CLASS, when_evicted(now), is_cause=has_cause and _is_by_class(now, found.repaired))


def _is_by_class(now: PodStanding, repaired: PodStanding | None) -> bool:
    """Whether the finding decides the class that says when pods are evicted."""
    if repaired is None:
        return now.qos_class is QOSClass.BEST_EFFORT
    return CLASS_RANK[now.qos_class] < CLASS_RANK[repaired.qos_class]


def _earlier(found: Consequence) -> str:
    evicted, killed = found.evicted_before, found.killed_before
    if evicted is not None and evicted == killed:
        return f"evicted and OOM-killed before {evicted}"
    ways = (("evicted", evicted), ("OOM-killed", killed))
    return " and ".join(f"{way} before {other}" for way, other in ways if other is not None)
