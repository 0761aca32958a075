"""What admission wrote into a pod, as a value and in words, for reports that show a pod as stored beside it as written.

Kept apart from the rest of admission's report because every explanation may need it, and it needs little itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

from podqos.admission.changes import Change, FieldChange, Why
from podqos.amounts import listed
from podqos.model.quantity import Quantity

# Why something was written into a pod; {source} is the name of the policy.
_REASONS = {
    Why.REQUEST_FROM_LIMIT: "copied from the limit",
    Why.POD_REQUEST_FROM_CONTAINERS: "the sum over its containers",
    Why.POD_REQUEST_FROM_LIMIT: "copied from the limit",
    Why.POD_HUGEPAGES_LIMIT_FROM_CONTAINERS: "the sum over its containers",
    Why.POD_LIMIT_FROM_CONTAINERS: "the sum over its containers, but at least the request",
    Why.POD_LEVEL_RESOURCES_UNKNOWN: "this version drops pod-level resources",
    Why.ROUNDED_UP_TO_MILLI: "rounded up to a thousandth",
    Why.LIMIT_RANGE_DEFAULT: "default of LimitRange {source}",
    Why.LIMIT_RANGE_DEFAULT_REQUEST: "defaultRequest of LimitRange {source}",
    Why.RUNTIME_CLASS_OVERHEAD: "overhead of RuntimeClass {source}",
    Why.PRIORITY_FROM_CLASS: "PriorityClass {source}",
    Why.PRIORITY_FROM_GLOBAL_DEFAULT: "PriorityClass {source}, the global default",
    Why.PRIORITY_WITHOUT_CLASS: "no PriorityClass named, no global default",
    Why.DAEMON_SET_TOLERATION: "DaemonSet pods stay on lost nodes and run on nodes under pressure",
    Why.TOLERATION_OF_LOST_NODES: "it stays on a lost node for five minutes, then it is deleted",
    Why.MEMORY_PRESSURE_TOLERATION: "added by PodTolerationRestriction to every pod that is not BestEffort",
    Why.RUNTIME_CLASS_SCHEDULING: "nodes that support RuntimeClass {source}",
    Why.MEMORY_REQUEST_FROM_LIMIT: "the override's percentage of the memory limit",
    Why.CPU_LIMIT_FROM_MEMORY: "the override's cores for the memory limit",
    Why.CPU_REQUEST_FROM_LIMIT: "the override's percentage of the cpu limit",
    Why.RESIZED: "requested",
    Why.KEPT_GUARANTEED: "keeps the pod Guaranteed, as {source} requires",
}


class ChangeReport(Struct, frozen=True):
    """One thing that a step wrote into the pod; ``before`` is null where there was nothing."""

    path: str
    """In the pod, not in the object that holds its template."""
    container: str
    """Empty where it is about the pod as a whole."""
    resource: str | None
    before: str | int | None
    after: str | int | None
    why: str
    source: str
    """The policy that asked for it, where there is one."""
    reason: str


def change_report(change: Change | FieldChange, names: dict[str, str]) -> ChangeReport:
    """Render one change; ``names`` are those of the containers, by path."""
    return ChangeReport(
        path=change.path,
        container=names.get(change.path.partition(".resources.")[0], ""),
        resource=change.resource if isinstance(change, Change) else None,
        before=_shown(change.before),
        after=_shown(change.after),
        why=change.why,
        source=change.source,
        reason=reason(change),
    )


def _shown(value: Quantity | str | int | None) -> str | int | None:
    return str(value) if isinstance(value, Quantity) else value


def reason(change: Change | FieldChange) -> str:
    """Return why a step wrote something into a pod."""
    return _REASONS[change.why].format(source=change.source)


def change_lines(changes: Sequence[ChangeReport]) -> list[str]:
    """Return a line for each place in the pod and each reason."""
    return [_change_line(list(group)) for _, group in groupby(changes, key=_same_line)]


def _same_line(change: ChangeReport) -> tuple[str, str]:
    return change.path if change.resource is not None else "", change.reason


def _change_line(changes: Sequence[ChangeReport]) -> str:
    """Say in one line what was written into one place, or into the pod, for one reason."""
    first = changes[0]
    if first.resource is not None:
        whose = f"{first.container} " if first.container else "pod "
        place = whose + first.path.rpartition(".")[2]
        what = ", ".join(f"{change.resource} {_became(change)}" for change in changes)
        return f"{place}: {what} ({first.reason})"
    tolerated = [
        str(change.after).removeprefix("node.kubernetes.io/")
        for change in changes
        if change.path.startswith("spec.tolerations")
    ]
    others = [
        f"{change.path.removeprefix('spec.')} {_became(change)}"
        for change in changes
        if not change.path.startswith("spec.tolerations")
    ]
    tolerates = [f"tolerates {listed(tolerated)}"] if tolerated else []
    return f"{', '.join(others + tolerates)} ({first.reason})"


def _became(change: ChangeReport) -> str:
    after = "dropped" if change.after is None else str(change.after)
    return after if change.before is None or change.after is None else f"{change.before} → {after}"
