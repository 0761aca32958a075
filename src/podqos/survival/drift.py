"""What a change of manifests does to who outlives whom: classes, oom scores and both kill orders.

Both versions are judged on the same node and with the same use of memory, so that every difference comes from the
manifests. A place by itself says little, since any new workload moves it; what counts is a pair of workloads of which
the one used to outlive the other and now does not. What a pod is in both orders depends on itself alone, so such a
pair has a change in one of the two, and it is said in which. Pods that are equal for a judge are ahead of nobody.

Nothing is decided here: ``orders`` ranks, ``qos`` classifies. How versions are read and what was injected into their
pods is the caller's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.ranking import RankedPod, Ranking, Spared, evicted_by, eviction_key
from podqos.eviction.signals import RankKey
from podqos.model.pod import Pod, QOSClass
from podqos.model.snapshot import Snapshot
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.classes import classify
from podqos.qos.oom import oom_scores, pod_qos_class
from podqos.survival.differences import Difference, differences
from podqos.survival.orders import KilledContainer, KillKey, Orders, both_orders, killed_by
from podqos.survival.outlook import outlook

_PROTECTION = {QOSClass.BEST_EFFORT: 0, QOSClass.BURSTABLE: 1, QOSClass.GUARANTEED: 2}


class Identity(Struct, frozen=True, order=True):
    """What makes two versions of a workload the same one."""

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
    """As the API server stores it, with what was injected."""
    uids: tuple[str, ...] = ()
    """Of its pods in the snapshot; none where it runs none."""
    injected: Mapping[str, str] = {}
    """Injectors by the names of the containers they added."""
    source: str = ""
    unit: str = ""
    """The directory it was found in, whose workloads it is compared with; empty: it is compared with all."""


class Version(Struct, frozen=True):
    """One version of the manifests, on a node."""

    workloads: tuple[VersionWorkload, ...]
    snapshot: Snapshot


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

    @property
    def worst(self) -> ContainerScore:
        """The container that the kernel likes least."""
        return max(self.scores, key=lambda score: score.oom_score_adj)


class Overtaking(Struct, frozen=True, rename="camel"):
    """Two workloads that turned round in an order: the one goes before the other, and did not before the change."""

    order: Order
    goes_first: str
    outlives: str
    key: str
    """What puts the one before the other now: a ``RankKey`` of the kubelet's, or a ``KillKey`` of the kernel's."""
    spared: Spared | None
    """Why the kubelet never evicts the other."""
    first_changed: bool
    """Whether the one that goes first now was changed itself."""
    other_changed: bool
    text: str
    """The same in words, from the side of the workload it is told of, which ``report`` adds."""


class DriftStatus(StrEnum):
    """What became of a workload, by what weighs most."""

    ADDED = "added"
    REMOVED = "removed"
    DOWNGRADED = "downgraded"
    """Its class is a lower one."""
    AHEAD = "ahead"
    """It moved ahead of another in a kill order."""
    UPGRADED = "upgraded"
    BACK = "back"
    """Others moved ahead of it, and it ahead of nobody."""
    CHANGED = "changed"
    """Amounts or priority changed, and nothing followed from it."""
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
    """Whether it is worse off in a way that was not allowed."""
    before: Standing | None
    after: Standing | None
    differences: tuple[Difference, ...]
    moved_ahead: tuple[Overtaking, ...]
    """Where it goes first now."""
    moved_back: tuple[Overtaking, ...]
    """Where others go first now."""

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

    @property
    def is_shifted(self) -> bool:
        """Whether it moved ahead without any change of its own."""
        return bool(self.moved_ahead) and not self.differences


class Allowed(Struct, frozen=True):
    """What does not count as worse."""

    workloads: frozenset[str] = frozenset()
    """``namespace/name`` or names."""
    shifted: bool = False
    """Moves of workloads that were not changed themselves."""


NOTHING_ALLOWED = Allowed()


def drift(
    old: Version, new: Version, ranking: Ranking, settings: CgroupSettings, allowed: Allowed = NOTHING_ALLOWED
) -> tuple[WorkloadDrift, ...]:
    """Compare two versions, workload by workload, in the order of their names."""
    before, after = _Judged(old, ranking, settings), _Judged(new, ranking, settings)
    changed = {
        identity: differences(before.pods[identity].pod, workload.pod, workload.injected)
        for identity, workload in after.pods.items()
        if identity in before.pods
    }
    ahead: dict[Identity, list[Overtaking]] = {}
    back: dict[Identity, list[Overtaking]] = {}
    for one, other, move in _overtakings(before, after, changed):
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
        )
        for identity in sorted({*before.pods, *after.pods})
    )
    return tuple(replace(each, status=_status(each), fails=_fails(each, allowed)) for each in found)


def _status(drift: WorkloadDrift) -> DriftStatus:
    """Return what there is to say about a workload, in a word."""
    if drift.before is None:
        return DriftStatus.ADDED
    if drift.after is None:
        return DriftStatus.REMOVED
    if drift.protection < 0:
        return DriftStatus.DOWNGRADED
    if drift.moved_ahead:
        return DriftStatus.AHEAD
    if drift.protection > 0:
        return DriftStatus.UPGRADED
    if drift.moved_back:
        return DriftStatus.BACK
    return DriftStatus.CHANGED if drift.differences else DriftStatus.UNCHANGED


def _fails(drift: WorkloadDrift, allowed: Allowed) -> bool:
    if {drift.name, f"{drift.namespace}/{drift.name}"} & allowed.workloads or (allowed.shifted and drift.is_shifted):
        return False
    return drift.protection < 0 or bool(drift.moved_ahead)


class _Judged:
    """A version as both judges see it."""

    def __init__(self, version: Version, ranking: Ranking, settings: CgroupSettings) -> None:
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
        qos_class = pod_qos_class(pod, classify(pod, profile).qos_class)
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
        """Whether a judge takes the one before the other, for a reason."""
        if order is Order.KERNEL:
            return self.killed[one].worst.points > self.killed[other].worst.points
        return self._keys[one] < self._keys[other]

    def why(self, order: Order, one: Identity, other: Identity) -> RankKey | KillKey:
        """Return what puts the one before the other."""
        if order is Order.KERNEL:
            return killed_by(self.killed[one].worst, self.killed[other].worst)
        return evicted_by(self.evicted[one], self.evicted[other], self.ranking)


def _key(ranked: RankedPod, ranking: Ranking) -> tuple[object, ...]:
    """Return what the kubelet compares; whom it never evicts comes last, and is equal to all like it."""
    return (True,) if ranked.spared is not None else (False, *eviction_key(ranked, ranking))


def _first_evicted(orders: Orders, owners: Mapping[str, Identity]) -> dict[Identity, RankedPod]:
    """Return the first pod of each workload in the kubelet's order, those it never evicts at the end."""
    found: dict[Identity, RankedPod] = {}
    for ranked in sorted(orders.eviction, key=lambda ranked: ranked.spared is not None):
        found.setdefault(owners[ranked.pod.metadata.uid], ranked)
    return found


def _overtakings(
    before: _Judged, after: _Judged, changed: Mapping[Identity, tuple[Difference, ...]]
) -> Iterator[tuple[Identity, Identity, Overtaking]]:
    """Yield every pair that turned round, the one that goes first now before the other.

    Only workloads count that run in both versions.
    """
    common = [each for each in sorted(after.killed) if each in before.killed]
    moved = [identity for identity in common if changed[identity]]
    for order in Order:
        for one, other in _pairs(moved, common, changed):
            units = {after.pods[one].unit, after.pods[other].unit} - {""}
            if len(units) > 1 or not after.goes_first(order, one, other) or before.goes_first(order, one, other):
                continue
            move = Overtaking(
                order=order,
                goes_first=str(one),
                outlives=str(other),
                key=after.why(order, one, other),
                spared=after.evicted[other].spared if order is Order.EVICTION else None,
                first_changed=bool(changed[one]),
                other_changed=bool(changed[other]),
                text="",
            )
            yield one, other, move


def _pairs(
    moved: Iterable[Identity], common: Iterable[Identity], changed: Mapping[Identity, tuple[Difference, ...]]
) -> Iterator[tuple[Identity, Identity]]:
    """Yield the pairs of which one was changed, both ways round and each once."""
    for one in moved:
        for other in common:
            if other != one:
                yield one, other
                if not changed[other]:
                    yield other, one
