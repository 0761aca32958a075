"""What the controllers of Deployments, StatefulSets and DaemonSets do next: pure steps, one function each.

A *Deployment* moves from one ReplicaSet to another. A step scales the new one up if there is room below replicas +
maxSurge, else old ones down as far as replicas − maxUnavailable allows, those without available pods first. With
``Recreate`` all old pods end before the first new one is created. Terminating pods count for neither.

Pods of a *StatefulSet* have ordinals, and a replacement has the same name: nothing is created while an object of that
name is there, terminating or not. A pod that is not available holds up everything after it, updates included, so a
rollout to a template that never becomes ready stays stuck even when it is rolled back.

Old pods of a *DaemonSet* are deleted as long as fewer than maxUnavailable nodes lack an available pod; a node whose old
pod is not available is updated at once. Upstream goes through the nodes in random order; here in that of the scenario.

Left out: scaling in proportion, the progress deadline, partitions, ordinals.start, the surge of DaemonSets,
the cost of deletion.

Source: Kubernetes v1.36.4 pkg/controller/deployment/rolling.go, recreate.go, sync.go (scale), util/deployment_util.go
(ResolveFenceposts, NewRSNewReplicas); pkg/controller/replicaset/replica_set.go (manageReplicas, getPodsToDelete,
getPodsRankedByRelatedPodsOnSameNode); pkg/controller/controller_utils.go (ActivePodsWithRanks, IsPodActive,
FindMinNextPodAvailabilityCheck); pkg/controller/statefulset/stateful_set_control.go (updateStatefulSet, processReplica,
processCondemned, updateStatefulSetAfterInvariantEstablished), stateful_set_utils.go (newVersionedStatefulSetPod,
completeRollingUpdate); pkg/controller/daemon/update.go (rollingUpdate), daemon_controller.go (podsShouldBeOnNode);
apimachinery/pkg/util/intstr/intstr.go (GetScaledValueFromIntOrPercent); pkg/api/v1/pod/util.go (IsPodAvailable).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cmp_to_key
from math import log2

from msgspec import Struct
from msgspec.structs import replace

from podqos.model.time_units import SECOND_US

_NANOSECONDS = 1000

IntOrPercent = int | str
"""``2``, or ``"25%"``."""


def scaled(value: IntOrPercent, total: int, *, round_up: bool) -> int:
    """Return a number, or a percentage of a total."""
    if isinstance(value, int):
        return value
    hundredths = int(value.removesuffix("%")) * total
    return -(-hundredths // 100) if round_up else hundredths // 100


class SetPod(Struct, frozen=True, gc=False, kw_only=True):
    """A pod as its controller sees it in the API server."""

    name: str
    number: int = 0
    """Its ordinal in a StatefulSet; its place among the pods of a ReplicaSet."""
    revision: int = 1
    """Which template it was made from."""
    is_pending: bool = False
    has_ended: bool = False
    """Whether it has failed or succeeded by itself."""
    ready_since_us: int | None = None
    """None if it is not ready."""
    is_terminating: bool = False
    """Whether it has been deleted and is still there."""
    node: str = ""
    created_us: int = 0
    restarts: tuple[int, int] = (0, 0)
    """The most of any container, and of any sidecar."""

    @property
    def is_ready(self) -> bool:
        """Whether it is ready."""
        return self.ready_since_us is not None

    @property
    def is_active(self) -> bool:
        """Whether it counts as a replica: it has not ended and has not been deleted."""
        return not self.has_ended and not self.is_terminating

    def is_available(self, min_ready_seconds: int, now_us: int) -> bool:
        """Whether it has been ready for long enough."""
        return self.ready_since_us is not None and self.ready_since_us + min_ready_seconds * SECOND_US <= now_us


def next_available_us(pods: Iterable[SetPod], min_ready_seconds: int, now_us: int) -> int | None:
    """Return when the next ready pod will have been ready for long enough; None if none is on the way."""
    due = (pod.ready_since_us + min_ready_seconds * SECOND_US for pod in pods if pod.ready_since_us is not None)
    return min((time_us for time_us in due if time_us > now_us), default=None)


# ---- Deployments -----------------------------------------------------------------------------------------------------


class DeploymentSpec(Struct, frozen=True, gc=False, kw_only=True):
    """What a Deployment wants."""

    replicas: int = 1
    recreate: bool = False
    """``strategy.type: Recreate``: all old pods end before the first new one is created."""
    max_surge: IntOrPercent = "25%"
    max_unavailable: IntOrPercent = "25%"
    min_ready_seconds: int = 0

    @property
    def surge(self) -> int:
        """How many pods there may be beyond the wanted number."""
        return 0 if self.recreate else scaled(self.max_surge, self.replicas, round_up=True)

    @property
    def unavailable(self) -> int:
        """How many of the wanted pods may be unavailable; one, if there may be no surge either."""
        if self.recreate or not self.replicas:
            return 0
        stated = scaled(self.max_unavailable, self.replicas, round_up=False)
        return min(self.replicas, stated or (0 if self.surge else 1))


class ReplicaSet(Struct, frozen=True, gc=False):
    """One of the ReplicaSets of a Deployment."""

    number: int
    """In the order of creation, from 1."""
    replicas: int = 0
    """How many pods it is to have."""
    available: int = 0
    """How many it has that are available."""
    desired: int | None = None
    """What the Deployment wanted when it last scaled this one (annotation ``desired-replicas``)."""


def next_deployment_step(
    spec: DeploymentSpec, new: ReplicaSet | None, old: Sequence[ReplicaSet], *, old_pods_run: bool
) -> tuple[ReplicaSet, ...]:
    """Return the ReplicaSets that are scaled now, or created, with their new size; none if there is nothing to do.

    ``new`` has the template that is the Deployment's; None before it is created. ``old_pods_run`` is whether a pod of
    an old one is still there, even if it is terminating.
    """
    active = [each for each in (*old, new) if each is not None and each.replicas]
    if len(active) == 1 and active[0].desired not in {None, spec.replicas} and active[0].replicas != spec.replicas:
        return (replace(active[0], replicas=spec.replicas),)
    created = new or ReplicaSet(max((each.number for each in old), default=0) + 1)
    if spec.recreate:
        down = tuple(replace(each, replicas=0) for each in old if each.replicas)
        if down or old_pods_run:
            return down
        is_wanted = new is None or new.replicas != spec.replicas
        return (replace(created, replicas=spec.replicas),) if is_wanted else ()
    room = spec.replicas + spec.surge - sum(each.replicas for each in (*old, created))
    size = created.replicas + max(0, min(room, spec.replicas - created.replicas))
    size = min(size, spec.replicas)
    if new is None or size != new.replicas:
        return (replace(created, replicas=size),)
    return _scale_down(spec, new, old)


def _scale_down(spec: DeploymentSpec, new: ReplicaSet, old: Sequence[ReplicaSet]) -> tuple[ReplicaSet, ...]:
    """Scale down old ReplicaSets (``reconcileOldReplicaSets``): first by what is unavailable, then by what is spare."""
    least = spec.replicas - spec.unavailable
    most_down = sum(each.replicas for each in (*old, new)) - least - (new.replicas - new.available)
    if most_down <= 0:
        return ()
    sizes = {each.number: each.replicas for each in old if each.replicas}
    available = {each.number: each.available for each in old}
    cleaned = 0
    for number, size in sizes.items():
        count = max(0, min(most_down - cleaned, size - available[number]))
        sizes[number] = size - count
        cleaned += count
    spare = sum(each.available for each in (*old, new)) - least
    for number, size in sizes.items():
        count = min(size, max(0, spare))
        sizes[number] = size - count
        spare -= count
    changed = (each for each in old if sizes.get(each.number, 0) != each.replicas)
    return tuple(replace(each, replicas=sizes[each.number]) for each in changed)


def pods_to_delete(active: Sequence[SetPod], related: Iterable[SetPod], count: int, now_us: int) -> tuple[SetPod, ...]:
    """Return the pods that a ReplicaSet deletes when it has too many, first one first.

    ``related`` are all pods of ReplicaSets of the same Deployment. Upstream breaks ties by random uids; here the pod
    with the higher number is deleted first.
    """
    on_node = Counter(pod.node for pod in related if pod.is_active)

    def compared(one: SetPod, other: SetPod) -> int:
        return _first_difference(one, other, on_node, now_us) or other.number - one.number

    return tuple(sorted(active, key=cmp_to_key(compared))[:count])


def _first_difference(one: SetPod, other: SetPod, on_node: Counter[str], now_us: int) -> int:
    """Return a negative number if the first is deleted before the other, 0 if nothing tells them apart."""
    if bool(one.node) != bool(other.node):
        return -1 if not one.node else 1
    if one.is_pending is not other.is_pending:
        return -1 if one.is_pending else 1
    if one.is_ready != other.is_ready:
        return -1 if not one.is_ready else 1
    if on_node[one.node] != on_node[other.node]:
        return on_node[other.node] - on_node[one.node]
    since, others = one.ready_since_us, other.ready_since_us
    if since is not None and others is not None and since != others:
        return _age_rank(since, now_us) - _age_rank(others, now_us)
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    return _age_rank(one.created_us, now_us) - _age_rank(other.created_us, now_us)


def _age_rank(since_us: int, now_us: int) -> int:
    """Return the power of two below an age: ages of the same order count as equal (``logarithmicRankDiff``)."""
    age = (now_us - since_us) * _NANOSECONDS
    return int(log2(age)) if age > 0 else -1


# ---- StatefulSets ----------------------------------------------------------------------------------------------------


class StatefulSetSpec(Struct, frozen=True, gc=False, kw_only=True):
    """What a StatefulSet wants."""

    replicas: int = 1
    parallel: bool = False
    """``podManagementPolicy: Parallel`` instead of OrderedReady: no pod waits for another, except to be updated."""
    min_ready_seconds: int = 0
    on_delete: bool = False
    """``updateStrategy.type: OnDelete``: a pod is updated when somebody deletes it."""


class Deletion(StrEnum):
    """Why the controller deletes a pod."""

    ENDED = "Ended"
    """It failed or succeeded, and is created again under the same name."""
    SCALED_DOWN = "ScaledDown"
    UPDATED = "Updated"


class CreatePod(Struct, frozen=True, gc=False):
    """Create the pod of an ordinal, of the newest revision."""

    ordinal: int


class DeletePod(Struct, frozen=True, gc=False):
    """Delete a pod."""

    pod: SetPod
    why: Deletion


def next_stateful_set_step(
    spec: StatefulSetSpec, revision: int, pods: Sequence[SetPod], now_us: int
) -> list[CreatePod | DeletePod]:
    """Return what the controller does now (``updateStatefulSet``)."""

    def is_unavailable(pod: SetPod) -> bool:
        is_healthy = not pod.is_pending and not pod.has_ended and pod.is_available(spec.min_ready_seconds, now_us)
        return pod.is_terminating or not is_healthy

    in_order = sorted(pods, key=lambda pod: pod.number)
    replicas = {pod.number: pod for pod in in_order if pod.number < spec.replicas}
    actions: list[CreatePod | DeletePod] = []
    for ordinal in range(spec.replicas):
        pod = replicas.get(ordinal)
        if pod is None:
            actions.append(CreatePod(ordinal))
        elif pod.has_ended and not pod.is_terminating:
            actions.append(DeletePod(pod, Deletion.ENDED))
        elif not is_unavailable(pod):
            continue
        if not spec.parallel:
            return actions
    condemned = [pod for pod in reversed(in_order) if pod.number >= spec.replicas]
    for pod in condemned if spec.parallel else condemned[:1]:
        holds_up = next((each for each in in_order if is_unavailable(each)), pod)
        if not pod.is_terminating and (spec.parallel or not is_unavailable(pod) or pod is holds_up):
            actions.append(DeletePod(pod, Deletion.SCALED_DOWN))
    if spec.on_delete or (condemned and not spec.parallel):
        return actions
    # The highest of an earlier revision, unless one above it is not available.
    for ordinal in reversed(range(spec.replicas)):
        pod = replicas.get(ordinal)
        if pod is not None and pod.revision != revision and not pod.is_terminating:
            return [*actions, DeletePod(pod, Deletion.UPDATED)]
        if pod is None or is_unavailable(pod):
            break
    return actions


# ---- DaemonSets ------------------------------------------------------------------------------------------------------


class DaemonSetSpec(Struct, frozen=True, gc=False, kw_only=True):
    """What a DaemonSet wants."""

    on_delete: bool = False
    """``updateStrategy.type: OnDelete``: a pod is updated when somebody deletes it."""
    max_unavailable: IntOrPercent = 1
    min_ready_seconds: int = 0


class DaemonSetStep(Struct, frozen=True, gc=False):
    """The result of one look."""

    delete: tuple[SetPod, ...] = ()
    create: tuple[str, ...] = ()
    """The nodes that get a pod of the new revision."""


def next_daemon_set_step(
    spec: DaemonSetSpec, revision: int, pods: Mapping[str, Sequence[SetPod]], now_us: int
) -> DaemonSetStep:
    """Return what the controller does now: first every node gets its pod, then nodes are updated.

    ``pods`` are those of every node that is to run one, in order; terminating ones included. A node is empty when even
    the terminating pod is gone. Failed pods are removed elsewhere, after a back-off.
    """
    empty = tuple(node for node, there in pods.items() if not there)
    if empty or spec.on_delete:
        return DaemonSetStep(create=empty)
    unavailable, allowed, candidates = 0, [], []
    for there in pods.values():
        staying = [pod for pod in there if not pod.is_terminating]
        new = next((pod for pod in staying if pod.revision == revision), None)
        old = next((pod for pod in staying if pod.revision != revision), None)
        if new is None and old is not None and old.is_available(spec.min_ready_seconds, now_us):
            candidates.append(old)
            continue
        if new is None and old is not None:
            allowed.append(old)
        if new is None or old is not None or not new.is_available(spec.min_ready_seconds, now_us):
            unavailable += 1
    most = scaled(spec.max_unavailable, len(pods), round_up=True) or 1
    return DaemonSetStep((*allowed, *candidates[: max(0, most - unavailable)]))
