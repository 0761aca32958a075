"""What a change of manifests does to classes, oom scores and both kill orders.

Both versions are evaluated on the same node with the same memory usage, so that every difference comes from the
manifests. A place alone says little, since any new workload shifts it; what counts is a pair of workloads whose order
is reversed. A pod's key in either order depends on the pod alone, so that one of the two was changed, and the result
says which. Pods that compare equal are not ordered.

Nothing is decided here: ``orders`` ranks, ``qos`` classifies. The caller reads the versions and injects sidecars.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.resize import BelowUsage
from podqos.eviction.ranking import RankedPod, Ranking, Spared, evicted_by, eviction_key
from podqos.eviction.signals import RankKey
from podqos.model.pod import Pod, QOSClass
from podqos.model.snapshot import PodUsage, Snapshot
from podqos.orders.memory import outlook
from podqos.orders.orders import KilledContainer, KillKey, Orders, both_orders, killed_by
from podqos.orders.versions import PodChange, ResizeCost, differences, lowered_below_usage, resizing
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.classes import qos_class_of
from podqos.qos.oom import oom_scores

_PROTECTION = {QOSClass.BEST_EFFORT: 0, QOSClass.BURSTABLE: 1, QOSClass.GUARANTEED: 2}


class Identity(Struct, frozen=True, order=True):
    """What identifies a workload in both versions."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        """``Deployment production/web``."""
        return f"{self.kind} {self.namespace}/{self.name}"


class VersionWorkload(Struct, frozen=True):
    """A workload of one version."""

    identity: Identity
    pod: Pod
    """As the API server stores it, with injected containers."""
    uids: tuple[str, ...] = ()
    """Of its pods in the snapshot; none where it runs none."""
    injected: Mapping[str, str] = {}
    """Injectors by the names of the containers they added."""
    source: str = ""
    unit: str = ""
    """The directory it was found in, whose workloads it is compared with; empty: it is compared with all."""


class ManifestVersion(Struct, frozen=True):
    """One version of the manifests, on a node."""

    workloads: tuple[VersionWorkload, ...]
    snapshot: Snapshot
    measured: Mapping[str, PodUsage] = {}
    """What of it was measured, by uid: the rest is assumed."""


class Order(StrEnum):
    """The two kill orders."""

    EVICTION = "eviction"
    """The kubelet's."""
    KERNEL = "kernel"
    """The OOM killer's."""


class ContainerScore(Struct, frozen=True, rename="camel"):
    """The oom_score_adj of a container that runs."""

    container: str
    oom_score_adj: int


class Standing(Struct, frozen=True, rename="camel"):
    """How a workload stands in one version."""

    qos_class: QOSClass
    priority: int
    scores: tuple[ContainerScore, ...]
    eviction_place: int | None
    """Among the workloads of its version, 1 goes first, by its first pod; null where it runs no pods."""
    kernel_place: int | None

    def place(self, order: Order) -> int | None:
        """Return its place in one of the orders."""
        return self.eviction_place if order is Order.EVICTION else self.kernel_place

    @property
    def worst(self) -> ContainerScore:
        """The container that the kernel kills first."""
        return max(self.scores, key=lambda score: score.oom_score_adj)


class ReversedPair(Struct, frozen=True, rename="camel"):
    """A pair of workloads that are killed in the other order than before the change."""

    order: Order
    goes_first: str
    outlives: str
    key: str
    """What puts the one before the other now: a ``RankKey`` of the kubelet or a ``KillKey`` of the kernel."""
    spared: Spared | None
    """Why the kubelet never evicts the other."""
    first_changed: bool
    """Whether the one that goes first now was changed itself."""
    other_changed: bool
    text: str = ""
    """The same in words, from the perspective of its workload."""


class DriftStatus(StrEnum):
    """What happened to a workload, by its most important change."""

    ADDED = "added"
    REMOVED = "removed"
    BELOW_USAGE = "below usage"
    """A memory limit was lowered below what is in use: OOM-killed after the next restart."""
    DOWNGRADED = "downgraded"
    """Its class is a lower one."""
    AHEAD = "ahead"
    """It goes earlier in a kill order, and later in none."""
    MIXED = "mixed"
    """Better in one respect (class, either order), worse in another; its class is not lower."""
    UPGRADED = "upgraded"
    BACK = "back"
    """It goes later in a kill order, and earlier in none."""
    CHANGED = "changed"
    """Amounts or priority changed, without effect on class or order."""
    UNCHANGED = "unchanged"


class WorkloadDrift(Struct, frozen=True, rename="camel"):
    """What the change did to one workload."""

    workload: str
    kind: str
    namespace: str
    name: str
    source: str
    status: DriftStatus
    fails: bool
    """Whether it is worse in a way that is not allowed."""
    before: Standing | None
    after: Standing | None
    differences: tuple[PodChange, ...]
    moved_ahead: tuple[ReversedPair, ...]
    """Where it goes first now."""
    moved_back: tuple[ReversedPair, ...]
    """Where others go first now."""
    resize: ResizeCost | None = None
    """What it takes to give running pods the new resources; null where none changed."""
    below_usage: tuple[BelowUsage, ...] = ()
    """Memory limits that were lowered below measured usage."""
    eviction_shift: float = 0
    """By how many places it moved forward in the eviction order among the workloads that run in both versions; below
    zero it goes later. To become level with another is half a place."""
    kernel_shift: float = 0
    """The same in the kernel's order."""

    @property
    def identity(self) -> Identity:
        """Which workload it is."""
        return Identity(self.namespace, self.kind, self.name)

    @property
    def protection(self) -> int:
        """How its class changed: below zero it protects less, above zero more."""
        if self.before is None or self.after is None:
            return 0
        return _PROTECTION[self.after.qos_class] - _PROTECTION[self.before.qos_class]

    def shift(self, order: Order) -> float:
        """Return by how many places the change moved it forward in an order."""
        return self.eviction_shift if order is Order.EVICTION else self.kernel_shift

    @property
    def worse_orders(self) -> tuple[Order, ...]:
        """The orders in which it goes earlier; if it did not change itself, its place has to say so, too."""
        return tuple(order for order in Order if self._turned(order, self.moved_ahead, self.shift(order)))

    @property
    def better_orders(self) -> tuple[Order, ...]:
        """The orders in which it goes later."""
        return tuple(order for order in Order if self._turned(order, self.moved_back, -self.shift(order)))

    def _turned(self, order: Order, moves: tuple[ReversedPair, ...], shift: float) -> bool:
        if not any(move.order is order for move in moves):
            return False
        # Moves of its own that cancel out are both: better and worse.
        return shift >= 0 if self.differences else shift > 0 and self._forward(order) * self.shift(order) > 0

    def _contradicts(self, order: Order) -> bool:
        """Whether its place turned the other way than its moves, as new and removed workloads can do."""
        return self._forward(order) * self.shift(order) < 0

    def _forward(self, order: Order) -> int:
        """Return by how many places it moved forward in an order, among all workloads of each version."""
        places = [standing and standing.place(order) for standing in (self.before, self.after)]
        return 0 if None in places else (places[0] or 0) - (places[1] or 0)

    @property
    def is_mixed(self) -> bool:
        """Whether it is better in one respect and worse in another."""
        worse, better = self.worse_orders, self.better_orders
        return bool(worse and (better or self.protection > 0)) or any(map(self._contradicts, (*worse, *better)))

    @property
    def is_shifted(self) -> bool:
        """Whether it goes earlier without any change of its own."""
        return bool(self.worse_orders) and not self.differences


def drift(
    old: ManifestVersion,
    new: ManifestVersion,
    ranking: Ranking,
    settings: CgroupSettings,
    allowed: frozenset[str] = frozenset(),
) -> tuple[WorkloadDrift, ...]:
    """Compare two versions, workload by workload, in the order of their names.

    ``allowed`` are workloads that may be worse off, as ``name`` or ``namespace/name``.
    """
    before, after = _Judged(old, ranking, settings), _Judged(new, ranking, settings)
    changed = {
        identity: differences(before.pods[identity].pod, workload.pod, workload.injected)
        for identity, workload in after.pods.items()
        if identity in before.pods
    }
    too_low = {
        identity: lowered_below_usage(
            before.pods[identity].pod,
            after.pods[identity].pod,
            [old.measured[uid] for uid in before.pods[identity].uids if uid in old.measured],
            ranking.profile,
        )
        for identity, differing in changed.items()
        if differing
    }
    ahead: dict[Identity, list[ReversedPair]] = {}
    back: dict[Identity, list[ReversedPair]] = {}
    shifts: dict[tuple[Identity, Order], float] = {}
    for order, one, other, is_first in _turns(before, after, changed):
        for identity, way in ((one, 0.5), (other, -0.5)):
            shifts[identity, order] = shifts.get((identity, order), 0) + (way if is_first else -way)
        if is_first:
            move = _reversed(after, changed, order, (one, other))
            ahead.setdefault(one, []).append(move)
            back.setdefault(other, []).append(move)
    found = (
        WorkloadDrift(
            workload=str(identity),
            kind=identity.kind,
            namespace=identity.namespace,
            name=identity.name,
            source=(after.pods.get(identity) or before.pods[identity]).source,
            status=DriftStatus.UNCHANGED,
            fails=False,
            before=before.standing(identity),
            after=after.standing(identity),
            differences=changed.get(identity, ()),
            moved_ahead=tuple(ahead.get(identity, ())),
            moved_back=tuple(back.get(identity, ())),
            resize=resizing(before.pods[identity].pod, after.pods[identity].pod, ranking.profile, too_low[identity])
            if changed.get(identity)
            else None,
            below_usage=too_low.get(identity, ()),
            eviction_shift=shifts.get((identity, Order.EVICTION), 0),
            kernel_shift=shifts.get((identity, Order.KERNEL), 0),
        )
        for identity in sorted({*before.pods, *after.pods})
    )
    return tuple(replace(change, status=_status(change), fails=_fails(change, allowed)) for change in found)


def _status(drift: WorkloadDrift) -> DriftStatus:
    """Return the status of a workload."""
    if drift.before is None:
        return DriftStatus.ADDED
    if drift.after is None:
        return DriftStatus.REMOVED
    if drift.below_usage:
        return DriftStatus.BELOW_USAGE
    if drift.protection < 0:
        return DriftStatus.DOWNGRADED
    if drift.is_mixed:
        return DriftStatus.MIXED
    if drift.worse_orders:
        return DriftStatus.AHEAD
    if drift.protection > 0:
        return DriftStatus.UPGRADED
    if drift.better_orders:
        return DriftStatus.BACK
    return DriftStatus.CHANGED if drift.differences else DriftStatus.UNCHANGED


def _fails(drift: WorkloadDrift, allowed: frozenset[str]) -> bool:
    if {drift.name, f"{drift.namespace}/{drift.name}"} & allowed:
        return False
    return bool(drift.below_usage) or drift.protection < 0 or bool(drift.worse_orders)


class _Judged:
    """A version as kubelet and kernel rank it."""

    def __init__(self, version: ManifestVersion, ranking: Ranking, settings: CgroupSettings) -> None:
        self.ranking = ranking
        self.pods = {workload.identity: workload for workload in version.workloads}
        self._memory_bytes = version.snapshot.node.memory_bytes
        owners = {uid: workload.identity for workload in version.workloads for uid in workload.uids}
        # Where pods are limited together, that limit can be what runs out.
        domain = outlook(version.snapshot, settings, ranking.profile).domain if settings.node_allocatable else None
        orders = both_orders(version.snapshot, ranking, settings, domain)
        self.evicted = _first_evicted(orders, owners)
        self.killed: dict[Identity, KilledContainer] = {}
        for killed in orders.kernel:
            self.killed.setdefault(owners[killed.pod.metadata.uid], killed)
        self._keys = {identity: _key(ranked, ranking) for identity, ranked in self.evicted.items()}
        self._places = {
            Order.EVICTION: {identity: place for place, identity in enumerate(self.evicted, start=1)},
            Order.KERNEL: {identity: place for place, identity in enumerate(self.killed, start=1)},
        }

    def standing(self, identity: Identity) -> Standing | None:
        """Return how a workload stands; None where this version does not have it."""
        workload = self.pods.get(identity)
        if workload is None:
            return None
        pod, profile = workload.pod, self.ranking.profile
        qos_class = qos_class_of(pod, profile)
        running = {container.name for container in pod.running_containers}
        scores = oom_scores(pod, qos_class, self._memory_bytes, profile)
        return Standing(
            qos_class=qos_class,
            priority=pod.spec.priority or 0,
            scores=tuple(
                ContainerScore(score.container, score.value) for score in scores if score.container in running
            ),
            eviction_place=self._places[Order.EVICTION].get(identity),
            kernel_place=self._places[Order.KERNEL].get(identity),
        )

    def goes_first(self, order: Order, one: Identity, other: Identity) -> bool:
        """Whether the one is killed before the other, and not only by a tie-break."""
        if order is Order.KERNEL:
            return self.killed[one].worst.points > self.killed[other].worst.points
        return self._keys[one] < self._keys[other]

    def why(self, order: Order, one: Identity, other: Identity) -> RankKey | KillKey:
        """Return what puts the one before the other."""
        if order is Order.KERNEL:
            return killed_by(self.killed[one].worst, self.killed[other].worst)
        return evicted_by(self.evicted[one], self.evicted[other], self.ranking)


def _key(ranked: RankedPod, ranking: Ranking) -> tuple[object, ...]:
    """Return what the kubelet compares; pods it never evicts come last and compare equal."""
    return (True,) if ranked.spared is not None else (False, *eviction_key(ranked, ranking))


def _first_evicted(orders: Orders, owners: Mapping[str, Identity]) -> dict[Identity, RankedPod]:
    """Return the first pod of each workload in the kubelet's order, those it never evicts at the end."""
    found: dict[Identity, RankedPod] = {}
    for ranked in sorted(orders.eviction, key=lambda ranked: ranked.spared is not None):
        found.setdefault(owners[ranked.pod.metadata.uid], ranked)
    return found


def _turns(
    before: _Judged, after: _Judged, changed: Mapping[Identity, tuple[PodChange, ...]]
) -> Iterator[tuple[Order, Identity, Identity, bool]]:
    """Yield every two of which one goes before the other in one version only, and whether that is the new one.

    Only workloads count that run in both versions.
    """
    common = [identity for identity in sorted(after.killed) if identity in before.killed]
    moved = [identity for identity in common if changed[identity]]
    for order in Order:
        for one, other in _pairs(moved, common, changed):
            if len({after.pods[one].unit, after.pods[other].unit} - {""}) > 1:
                continue
            is_first = after.goes_first(order, one, other)
            if is_first != before.goes_first(order, one, other):
                yield order, one, other, is_first


def _reversed(
    after: _Judged, changed: Mapping[Identity, tuple[PodChange, ...]], order: Order, pair: tuple[Identity, Identity]
) -> ReversedPair:
    """Return a pair of which the first is killed before the other now."""
    one, other = pair
    return ReversedPair(
        order=order,
        goes_first=str(one),
        outlives=str(other),
        key=after.why(order, one, other),
        spared=after.evicted[other].spared if order is Order.EVICTION else None,
        first_changed=bool(changed[one]),
        other_changed=bool(changed[other]),
    )


def _pairs(
    moved: Iterable[Identity], common: Iterable[Identity], changed: Mapping[Identity, tuple[PodChange, ...]]
) -> Iterator[tuple[Identity, Identity]]:
    """Yield the pairs of which one was changed, in both orders, each once."""
    for one in moved:
        for other in common:
            if other != one:
                yield one, other
                if not changed[other]:
                    yield other, one
