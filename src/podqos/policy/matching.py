"""Which rules, budgets and exemptions apply to an object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from fnmatch import fnmatchcase

from podqos.policy.model import Exemption, Globs, Match
from podqos.policy.subject import Subject


def matches(match: Match, subject: Subject) -> bool:
    """Whether an object matches. For a workload, it is enough that its pods match."""
    if match.namespaces and not named(match.namespaces, (subject.namespace,)):
        return False
    if match.kinds and not named(match.kinds, (subject.workload.kind,)):
        return False
    if match.names and not named(match.names, (subject.name,)):
        return False
    if match.namespace_selector is not None and not match.namespace_selector.matches(subject.labels_of_namespace):
        return False
    if match.object_selector is not None and not any(map(match.object_selector.matches, subject.labels)):
        return False
    return not match.annotations or any(_annotated(match.annotations, annotation) for annotation in subject.annotations)


def exempts(exemption: Exemption, rule: str, subject: Subject, today: date | None) -> bool:
    """Whether an exemption from a rule applies to an object; ``containers`` may limit it to some of its containers.

    Without a date, none has expired.
    """
    return (
        _named(exemption.rules, (rule,))
        and _named(exemption.namespaces, (subject.namespace,))
        and (exemption.namespace_selector is None or exemption.namespace_selector.matches(subject.labels_of_namespace))
        and _named(exemption.objects, subject.identities)
        and _named(exemption.users, (subject.user,) if subject.user else ())
        and _named(exemption.groups, subject.groups)
        and (today is None or not has_expired(exemption, today))
    )


def has_expired(exemption: Exemption, today: date) -> bool:
    """Whether an exemption has expired."""
    return exemption.until is not None and date.fromisoformat(exemption.until) < today


def named(globs: Globs, names: Iterable[str]) -> bool:
    """Whether one of the names matches one of the patterns."""
    return any(fnmatchcase(name, glob) for name in names for glob in globs)


def _named(globs: Globs, names: Iterable[str]) -> bool:
    """Whether names match an optional field."""
    return not globs or named(globs, names)


def _annotated(wanted: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
    return all(key in annotations and fnmatchcase(annotations[key], glob) for key, glob in wanted.items())
