"""What ``podqos drift`` says, as a value: the documented JSON shape, from which all other outputs follow.

The comparison itself comes from ``survival.drift``; here it is gathered and worded. The shape is stable: fields are
added, never renamed or removed, and ``docs/schema/drift.json`` is made from these classes.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from podqos.model.pod import QOSClass
from podqos.survival.differences import Difference, DifferenceKind
from podqos.survival.drift import DriftStatus, Identity, Order, Overtaking, Standing, WorkloadDrift


class ScoreReport(Struct, frozen=True, rename="camel"):
    """The oom_score_adj of a container that runs."""

    container: str
    oom_score_adj: int


class StandingReport(Struct, frozen=True, rename="camel"):
    """How a workload stands in one version."""

    qos_class: QOSClass
    priority: int
    scores: tuple[ScoreReport, ...]
    eviction_place: int | None
    """Among the workloads of its version, 1 goes first; null where it runs no pods."""
    kernel_place: int | None

    @property
    def worst(self) -> ScoreReport:
        """The container that the kernel likes least."""
        return max(self.scores, key=lambda score: score.oom_score_adj)


class DifferenceReport(Struct, frozen=True, rename="camel"):
    """One thing that changed in the pods of a workload, as the API server stores them."""

    kind: DifferenceKind
    container: str
    """Empty for the pod as a whole."""
    field: str
    before: str | None
    after: str | None
    injected_by: str
    text: str


class OvertakingReport(Struct, frozen=True, rename="camel"):
    """Two workloads that turned round in an order."""

    order: Order
    goes_first: str
    outlives: str
    key: str
    """What puts the one before the other now."""
    spared: str | None
    """Why the kubelet never evicts the other."""
    first_changed: bool
    """Whether the one that goes first now was changed itself."""
    other_changed: bool
    text: str


class WorkloadDriftReport(Struct, frozen=True, rename="camel"):
    """What the change did to one workload."""

    workload: str
    kind: str
    namespace: str
    name: str
    source: str
    status: DriftStatus
    fails: bool
    """Whether it is worse off in a way that was not allowed."""
    before: StandingReport | None
    after: StandingReport | None
    differences: tuple[DifferenceReport, ...]
    moved_ahead: tuple[OvertakingReport, ...]
    moved_back: tuple[OvertakingReport, ...]


class DriftReport(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos drift -o json``."""

    old: str
    new: str
    kubernetes_version: str
    node_memory_bytes: int
    usage: str | None
    """The file with what pods use; null where their requests stand in."""
    injectors: tuple[str, ...]
    workloads: tuple[WorkloadDriftReport, ...]
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Drift"

    @property
    def fails(self) -> bool:
        """Whether somebody is worse off."""
        return any(workload.fails for workload in self.workloads)

    @property
    def changed(self) -> tuple[WorkloadDriftReport, ...]:
        """Those there is something to say about, the worst first."""
        shown = [each for each in self.workloads if each.status is not DriftStatus.UNCHANGED]
        order = {status: place for place, status in enumerate(_WORST_FIRST)}
        return tuple(sorted(shown, key=lambda each: (not each.fails, order[each.status], each.workload)))


_WORST_FIRST = (
    DriftStatus.DOWNGRADED,
    DriftStatus.AHEAD,
    DriftStatus.ADDED,
    DriftStatus.REMOVED,
    DriftStatus.UPGRADED,
    DriftStatus.BACK,
    DriftStatus.CHANGED,
    DriftStatus.UNCHANGED,
)


class Allowed(Struct, frozen=True):
    """What does not count as worse."""

    workloads: frozenset[str] = frozenset()
    """``namespace/name`` or names."""
    shifted: bool = False
    """Moves of workloads that were not changed themselves."""


def workload_reports(drifts: Iterable[WorkloadDrift], allowed: Allowed) -> tuple[WorkloadDriftReport, ...]:
    """Render a comparison into the documented shape."""
    return tuple(_workload(each, allowed) for each in drifts)


def _workload(drift: WorkloadDrift, allowed: Allowed) -> WorkloadDriftReport:
    identity = drift.identity
    return WorkloadDriftReport(
        workload=str(identity),
        kind=identity.kind,
        namespace=identity.namespace,
        name=identity.name,
        source=drift.source,
        status=drift.status,
        fails=_fails(drift, allowed),
        before=_standing(drift.before),
        after=_standing(drift.after),
        differences=tuple(map(_difference, drift.differences)),
        moved_ahead=tuple(_overtaking(move, identity) for move in drift.moved_ahead),
        moved_back=tuple(_overtaking(move, identity) for move in drift.moved_back),
    )


def _fails(drift: WorkloadDrift, allowed: Allowed) -> bool:
    identity = drift.identity
    if {identity.name, f"{identity.namespace}/{identity.name}"} & allowed.workloads:
        return False
    if allowed.shifted and drift.is_shifted:
        return False
    return drift.is_downgraded or bool(drift.moved_ahead)


def _standing(standing: Standing | None) -> StandingReport | None:
    if standing is None:
        return None
    return StandingReport(
        qos_class=standing.qos_class,
        priority=standing.priority,
        scores=tuple(ScoreReport(score.container, score.value) for score in standing.scores),
        eviction_place=standing.places.get(Order.EVICTION),
        kernel_place=standing.places.get(Order.KERNEL),
    )


def _difference(difference: Difference) -> DifferenceReport:
    return DifferenceReport(
        kind=difference.kind,
        container=difference.container,
        field=difference.field,
        before=difference.before,
        after=difference.after,
        injected_by=difference.injected_by,
        text=difference_words(difference),
    )


def difference_words(difference: Difference) -> str:
    """Return what changed, in words."""
    by = f" by {difference.injected_by}" if difference.injected_by else ""
    where = difference.container or "the pod"
    match difference.kind:
        case DifferenceKind.CONTAINER_ADDED:
            return f"container {where} was {'injected' if by else 'added'}{by}"
        case DifferenceKind.CONTAINER_REMOVED:
            return f"container {where} was removed"
        case DifferenceKind.POD_RESOURCES:
            return "resources of the pod as a whole were " + ("added" if difference.after else "removed")
        case DifferenceKind.PRIORITY:
            return f"priority {difference.before} → {difference.after}"
        case _:
            return f"{where}: {difference.field} {difference.before or 'none'} → {difference.after or 'none'}"


def _overtaking(move: Overtaking, identity: Identity) -> OvertakingReport:
    return OvertakingReport(
        order=move.order,
        goes_first=str(move.goes_first),
        outlives=str(move.outlives),
        key=move.key,
        spared=move.spared,
        first_changed=move.first_changed,
        other_changed=move.other_changed,
        text=overtaking_words(move, identity),
    )


_VERBS = {Order.EVICTION: "evicted", Order.KERNEL: "killed"}


def overtaking_words(move: Overtaking, identity: Identity) -> str:
    """Return a turn in words, from the side of one of the two, and whose change it comes from."""
    reason = f"never evicted: {move.spared}" if move.spared is not None else str(move.key)
    if identity == move.goes_first:
        said = f"now {_VERBS[move.order]} before {move.outlives} ({reason})"
        own, other, who = move.first_changed, move.other_changed, move.outlives
    else:
        said = f"{move.goes_first} is now {_VERBS[move.order]} before it ({reason})"
        own, other, who = move.other_changed, move.first_changed, move.goes_first
    if own:
        return f"{said}; both were changed" if other else said
    return f"{said}; only {who} was changed"
