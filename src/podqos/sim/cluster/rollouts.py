"""Deployments, StatefulSets and DaemonSets: their pods, created, updated and deleted (``controllers.sets`` decides).

A *Deployment* only replaces pods that have ended until it is scaled or rolled out. Pods of later revisions have the
revision in their names: ``web-0``, then ``web-rev2-0``.

A *StatefulSet's* replacement has the name of the pod before and is created when that is gone. On a lost node it is
deleted, but nobody confirms that: it stays Terminating until the node is back.

A *DaemonSet* has one pod on every node that suits it. A kubelet that evicts or rejects its pods and a controller that
puts them back at once would do nothing else: since Kubernetes 1.12 the controller waits longer each time one fails on
the same node.

Source: Kubernetes v1.36 pkg/controller/daemon/daemon_controller.go (podsShouldBeOnNode, failedPodsBackoff),
cmd/kube-controller-manager/app/apps.go (1 s to 15 min), client-go/util/flowcontrol/backoff.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, islice

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import By, Kind
from podqos.agent.reasons import ReplacementFor, ScaledFromTo
from podqos.agent.state import Phase
from podqos.controllers.sets import (
    CreatePod,
    DaemonSetSpec,
    DeletePod,
    DeploymentSpec,
    ReplicaSet,
    SetPod,
    StatefulSetSpec,
    next_available_us,
    next_daemon_set_step,
    next_deployment_step,
    next_stateful_set_step,
    pods_to_delete,
)
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US
from podqos.sim.cluster.control_plane import DELETED, DRAINED, NODE_LOST, PREEMPTED, ControlPlane, PodEnd, is_over
from podqos.sim.cluster.controllers import SCALED_DOWN, UPDATED, OwnPod, SetController
from podqos.sim.scenario.replicas import Replica, again, daemons, is_bound, named, pod_of
from podqos.sim.scenario.scenario import ScenarioWorkload, WorkloadRollout


class DeploymentController(SetController):
    """The pods of one Deployment."""

    def __init__(self, cluster: ControlPlane, index: int, workload: ScenarioWorkload) -> None:
        super().__init__(cluster, index, workload)
        self.use(workload)
        self._sizes: dict[int, int] = {}
        """By number of their template: how many pods the ReplicaSets are to have."""
        self._desired: dict[int, int] = {}
        """What the Deployment wanted when it last scaled each (annotation ``desired-replicas``)."""
        self._is_rolling = False
        self._awaited: dict[str, PodEnd] = {}
        """By uid: pods that have ended and are about to be replaced."""
        self._deleted: set[str] = set()
        """The uids of pods that the controller has deleted."""
        self._unconfirmed: dict[str, PodEnd] = {}
        """By uid: pods that were given up on a lost node, of which the objects stay."""
        self._used: dict[tuple[int, int], int] = {}
        """By template and number: how many pods have had that number."""

    def use(self, template: ScenarioWorkload) -> None:
        """Take over what a template says of how it is rolled out."""
        spec = template.rollout
        self._spec = spec if isinstance(spec, DeploymentSpec) else DeploymentSpec()

    def manage(self) -> None:
        """Take over the pods that are there, as those of the first ReplicaSet."""
        if self.is_managed:
            return
        super().manage()
        now_us = self._cluster.queue.now_us
        self._used = {(1, own.replica.number): own.replica.generation + 1 for own in self.own_pods(now_us)}
        for end in self._awaited.values():
            self._used[1, end.replica.number] = end.replica.generation + 1
        self._sizes[1] = self._desired[1] = self.replicas

    def roll_out(self, change: WorkloadRollout, now_us: int) -> None:
        """Change the template: pods move to the ReplicaSet that has it."""
        super().roll_out(change, now_us)
        self._is_rolling = True

    # ---- pods that end -------------------------------------------------------------------------------------------

    def ended(self, end: PodEnd, now_us: int) -> None:
        """Replace a pod, and go on with a rollout that waited for its end."""
        uid = end.pod.metadata.uid
        is_unwanted = uid in self._deleted or end.why in {DELETED, Phase.SUCCEEDED}
        self._deleted.discard(uid)
        if end.why == NODE_LOST and end.node in self._cluster.unreachable_us:
            self._unconfirmed[uid] = end
        if self.is_managed:
            self.forget(uid)
            self.plan_sync(now_us)
        if not is_unwanted:
            self._awaited[uid] = end
            super().ended(end, now_us)

    def deleted(self, end: PodEnd, now_us: int) -> None:
        """Replace a pod that others delete: it does not count any more, although it may take long to stop."""
        uid = end.pod.metadata.uid
        self._awaited[uid] = end
        super().ended(end, now_us)
        self._deleted.add(uid)
        self._statuses.pop(uid, None)

    def wants(self, end: PodEnd, now_us: int) -> bool:
        """Whether the ReplicaSet of a pod that has ended has too few."""
        self._awaited.pop(end.pod.metadata.uid, None)
        if not self.is_managed:
            return True
        number = self.number_of(end.replica)
        active = sum(own.status.is_active for own in self.own_pods(now_us) if own.status.revision == number)
        is_short = active + len(self._awaited_of(number)) < self._sizes[number]
        if is_short:
            self._used[number, end.replica.number] = end.replica.generation + 2
        return is_short

    def _awaited_of(self, number: int) -> list[PodEnd]:
        return [end for end in self._awaited.values() if self.number_of(end.replica) == number]

    def node_joined(self, name: str, now_us: int) -> None:
        """Take note that a node is back, and finds that pods were deleted."""
        super().node_joined(name, now_us)
        self.node_removed(name, now_us)

    def node_removed(self, name: str, now_us: int) -> None:
        """Take note that nothing is left of the pods that were given up on a lost node."""
        there = [uid for uid, end in self._unconfirmed.items() if end.node == name]
        for uid in there:
            del self._unconfirmed[uid]
        if there and self.is_managed:
            self.plan_sync(now_us)

    # ---- one sync ------------------------------------------------------------------------------------------------

    def sync(self, now_us: int) -> None:
        """Scale the ReplicaSets until there is nothing to do."""
        spec = replace(self._spec, replicas=self.replicas)
        while True:
            own = self.own_pods(now_us)
            sets = {number: self._counted(number, own, now_us) for number in self._sizes}
            new = sets.pop(self._newest, None)
            there = [*(mine.replica for mine in own), *(end.replica for end in self._unconfirmed.values())]
            old_pods_run = any(self.number_of(replica) != self._newest for replica in there)
            step = next_deployment_step(spec, new, tuple(sets.values()), old_pods_run=old_pods_run)
            if not step:
                break
            self._scale_sets(step, own, now_us)
        active = [mine.status for mine in own if mine.status.is_active]
        is_available = all(
            status.revision == self._newest and status.is_available(spec.min_ready_seconds, now_us) for status in active
        )
        if self._is_rolling and is_available and len(active) == self.replicas:
            self._is_rolling = False
            self.note_complete()
        due_us = next_available_us((mine.status for mine in own), spec.min_ready_seconds, now_us)
        if due_us is not None:
            self.plan_sync(due_us)

    def _counted(self, number: int, own: Sequence[OwnPod], now_us: int) -> ReplicaSet:
        available = sum(
            mine.status.is_active and mine.status.is_available(self._spec.min_ready_seconds, now_us)
            for mine in own
            if mine.status.revision == number
        )
        return ReplicaSet(
            number=number, replicas=self._sizes[number], available=available, desired=self._desired[number]
        )

    def _scale_sets(self, step: Sequence[ReplicaSet], own: Sequence[OwnPod], now_us: int) -> None:
        """Scale ReplicaSets; a new one is that of the newest template."""
        is_rollout = sum(bool(size) for size in self._sizes.values()) > 1
        for after in step:
            number = after.number if after.number in self._sizes else self._newest
            is_new = number not in self._sizes
            size = self._sizes.get(number, 0)
            is_own_doing = is_rollout or number != self._newest or is_new or self._desired[number] == self.replicas
            self._desired[number] = self.replicas
            self._sizes[number] = after.replicas
            self._sizes = dict(sorted(self._sizes.items()))
            if size == after.replicas:
                continue
            if is_own_doing:
                name = (self._templates[number] or self.workload).name
                because = ScaledFromTo(self.name, size, after.replicas, name, is_new=number == self._newest)
                self._cluster.announce(Kind.SCALED, By.CONTROLLER, because)
            self._fill(number, [mine for mine in own if mine.status.revision == number], own, now_us)

    def _fill(self, number: int, own: Sequence[OwnPod], related: Sequence[OwnPod], now_us: int) -> None:
        """Create or delete pods of a ReplicaSet until it has as many as it should."""
        active = [mine for mine in own if mine.status.is_active]
        awaited = self._awaited_of(number)
        surplus = len(active) + len(awaited) - self._sizes[number]
        if surplus < 0:
            taken = {mine.replica.number for mine in own} | {end.replica.number for end in awaited}
            for place in islice((place for place in count() if place not in taken), -surplus):
                self._create(number, place)
        if surplus <= 0:
            return
        for end in awaited[:surplus]:
            del self._awaited[end.pod.metadata.uid]
        by_name = {mine.status.name: mine.pod for mine in active}
        statuses = [mine.status for mine in active]
        several = max(0, surplus - len(awaited))
        for status in pods_to_delete(statuses, [mine.status for mine in related], several, now_us):
            pod = by_name[status.name]
            self._deleted.add(pod.metadata.uid)
            self.delete(pod, SCALED_DOWN if number == self._newest else UPDATED)

    def _create(self, number: int, place: int) -> None:
        cluster, template = self._cluster, self._templates[number]
        used = self._used.get((number, place), 0)
        self._used[number, place] = used + 1
        pod = pod_of(template or self.workload, place)
        if used:
            pod = named(pod, f"{pod.metadata.name}-r{used}")
        cluster.create(pod, Replica(self.workload, place, cluster.next_order(), used, template))
        self.own(pod)


# Ends after which the pod object is gone; others leave a failed pod, which the controller deletes.
_GONE = frozenset({DELETED, NODE_LOST, PREEMPTED, DRAINED})


class _Vacant(Struct, frozen=True, gc=False):
    """An ordinal whose pod has ended."""

    end: PodEnd
    free_us: int
    """When its pod can be created."""
    why: str
    is_failed: bool
    """Whether the failed pod is still there: the controller has not deleted it."""
    is_awaited: bool
    """Whether it is to be created again."""


class StatefulSetController(SetController):
    """The pods of one StatefulSet."""

    waits_for_objects = True

    def __init__(self, cluster: ControlPlane, index: int, workload: ScenarioWorkload) -> None:
        super().__init__(cluster, index, workload)
        self.use(workload)
        self._vacant: dict[int, _Vacant] = {}
        """By place: the pods that have ended and are not created again yet."""
        self._places: dict[int, str] = {}
        """By place: the nodes that the first pods are bound to."""
        self._is_rolling = False
        self._superseded: dict[str, str] = {}
        """By uid: why the controller has deleted a pod."""

    def begin(self, now_us: int) -> None:
        """Create the first pods: those that are there from the start at once, others in order."""
        if not now_us:
            super().begin(now_us)
            return
        if is_bound(self.workload):
            self._places = dict(self._cluster.fleet.places(self.workload))
        self.manage()
        self._sync(now_us)

    def ended(self, end: PodEnd, now_us: int) -> None:
        """Create a pod again under its name."""
        uid = end.pod.metadata.uid
        why = self._superseded.pop(uid, end.why)
        self.forget(uid)
        if is_over(self.workload, now_us):
            return
        place = end.replica.number
        is_failed = end.why not in _GONE
        free_us = self.free_us(now_us, is_failed=is_failed)
        vacant = _Vacant(end, free_us, why, is_failed, is_awaited=place < self.replicas)
        self._vacant[place] = vacant
        if vacant.is_awaited:
            self._cluster.await_pod(end.pod)
        self.plan_sync(now_us)

    def scale(self, replicas: int, now_us: int) -> None:
        """Want another number of pods."""
        super().scale(replicas, now_us)
        for place in [place for place in self._vacant if place >= replicas]:
            self._no_longer_await(place)

    def roll_out(self, change: WorkloadRollout, now_us: int) -> None:
        """Change the template: pods are updated from the highest ordinal down."""
        super().roll_out(change, now_us)
        self._is_rolling = not self._spec.on_delete

    def use(self, template: ScenarioWorkload) -> None:
        """Take over what a template says of how it is rolled out."""
        spec = template.rollout
        self._spec = spec if isinstance(spec, StatefulSetSpec) else StatefulSetSpec()

    # ---- one sync ------------------------------------------------------------------------------------------------

    def sync(self, now_us: int) -> None:
        """Create and delete pods until there is nothing to do."""
        self.manage()
        spec = replace(self._spec, replicas=self.replicas)
        while True:
            own = self.own_pods(now_us)
            pods = {mine.status.name: mine.pod for mine in own}
            statuses = [*(mine.status for mine in own), *self._failed()]
            if self._is_rolling and len(statuses) == self.replicas and all(map(self._is_updated, statuses)):
                self._is_rolling = False
                self.note_complete()
            actions = next_stateful_set_step(spec, self._newest, statuses, now_us)
            acted = [self._act(action, pods, now_us) for action in actions]
            if not any(acted):
                break
        due_us = next_available_us(statuses, spec.min_ready_seconds, now_us)
        if due_us is not None:
            self.plan_sync(due_us)

    def _is_updated(self, pod: SetPod) -> bool:
        return pod.revision == self._newest and pod.is_active and not pod.is_pending and pod.is_ready

    def _failed(self) -> list[SetPod]:
        """Return the pods that have failed or succeeded and are still there."""
        return [
            SetPod(
                name=vacant.end.pod.metadata.name,
                number=place,
                revision=self.number_of(vacant.end.replica),
                has_ended=True,
            )
            for place, vacant in self._vacant.items()
            if vacant.is_failed
        ]

    def _act(self, action: CreatePod | DeletePod, pods: dict[str, Pod], now_us: int) -> bool:
        """Create or delete a pod; return whether that changed anything."""
        if isinstance(action, CreatePod):
            return self._create(action, now_us)
        place = action.pod.number
        if action.pod.has_ended:
            self._vacant[place] = replace(self._vacant[place], is_failed=False)
            return True
        self._delete(pods[action.pod.name], action.why.value, now_us)
        return True

    def _delete(self, pod: Pod, why: str, now_us: int) -> None:
        uid = pod.metadata.uid
        node, replica = self._cluster.pods[uid][1], self._cluster.replica_of(uid)
        self._superseded[uid] = why
        self.delete(pod, why)
        if node is None:  # a pending one is gone at once
            self.ended(PodEnd(pod, replica, None, DELETED), now_us)

    def _create(self, action: CreatePod, now_us: int) -> bool:
        place, cluster = action.ordinal, self._cluster
        vacant = self._vacant.get(place)
        if vacant is not None and vacant.free_us > now_us:
            self.plan_sync(vacant.free_us)
            return False
        template = self._templates[self._newest]
        pod = pod_of(template or self.workload, place)
        order = cluster.next_order()
        if vacant is None:
            cluster.create(pod, Replica(self.workload, place, order, 0, template), self._places.pop(place, None))
        else:
            self._no_longer_await(place)
            del self._vacant[place]
            generation = vacant.end.replica.generation + 1
            pod, replica = again(pod, generation), Replica(self.workload, place, order, generation, template)
            # A template that names its node needs no scheduler.
            node = vacant.end.node if pod.spec.node_name else None
            cluster.note(Kind.REPLACED, pod, node, By.CONTROLLER, ReplacementFor(pod.key, vacant.why))
            cluster.create(pod, replica, node)
        self.own(pod)
        return True

    def _no_longer_await(self, place: int) -> None:
        vacant = self._vacant[place]
        if vacant.is_awaited:
            self._cluster.replaced(vacant.end.pod)
            self._vacant[place] = replace(vacant, is_awaited=False)


_FIRST_US = 1 * SECOND_US
_LONGEST_US = 15 * 60 * SECOND_US
# A pod that ran this long counts as stable: the back-off starts over.
_FORGOTTEN_US = 2 * _LONGEST_US


class _Last(Struct, frozen=True, gc=False):
    backoff_us: int
    removed_us: int


class DaemonBackoff:
    """The failed pods of all DaemonSets, by workload and node."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], _Last] = {}

    def wait_us(self, workload: str, node: str, failed_us: int) -> int:
        """Return how long a failed pod stays before it is removed, and count it.

        The first failures are removed as they are seen. One that comes within the back-off of the last removal is
        looked at again when a whole back-off more has passed.
        """
        last = self._last.get((workload, node))
        if last is not None and failed_us - last.removed_us > _FORGOTTEN_US:
            last = None
        wait_us = last.backoff_us if last is not None and failed_us - last.removed_us < last.backoff_us else 0
        backoff_us = _FIRST_US if last is None else min(2 * last.backoff_us, _LONGEST_US)
        self._last[workload, node] = _Last(backoff_us, failed_us + wait_us)
        return wait_us


# Reasons for which the pod object is gone; otherwise a failed pod stays until its controller removes it.
_LOST = (NODE_LOST, PREEMPTED)


class DaemonSetController(SetController):
    """The pods of one DaemonSet."""

    def __init__(self, cluster: ControlPlane, index: int, workload: ScenarioWorkload) -> None:
        super().__init__(cluster, index, workload)
        self._backoff = DaemonBackoff()
        self._first: set[str] = set()
        """The uids of its first pods on all nodes."""
        self.use(workload)
        self._free_us: dict[str, int] = {}
        """By node: when its next pod can be created."""
        self._failed: dict[str, SetPod] = {}
        """By node: a failed pod that is still there, because of the back-off."""
        self._used: dict[tuple[int, str], int] = {}
        """By template and node: how many pods it has had there."""
        self._places: dict[str, int] = {}
        """By node: which demand its pod has."""
        self._known: tuple[int, tuple[str, ...]] = 0, ()
        self._pods: Mapping[str, Pod] = {}
        """For the newest template and the nodes that are known: its pods."""
        self._is_complete = True

    def use(self, template: ScenarioWorkload) -> None:
        """Take over what a template says of how it is rolled out."""
        spec = template.rollout
        self._spec = spec if isinstance(spec, DaemonSetSpec) else DaemonSetSpec()

    def first_pods(self) -> Iterator[Pod]:
        """Yield its pods for the nodes that are there."""
        return self._new(name for name in self._cluster.fleet.names if name in self._cluster.fleet.present)

    def _new(self, nodes: Iterable[str]) -> Iterator[Pod]:
        """Yield its pods for nodes on which it had none; what becomes of those is another matter."""
        cluster = self._cluster
        for pod in daemons(self.workload, map(cluster.api_node, nodes), cluster.scenario.profile):
            if pod.metadata.uid not in self._first:
                self._first.add(pod.metadata.uid)
                yield pod

    def node_joined(self, name: str, now_us: int) -> None:
        """Create its pod on a new node."""
        super().node_joined(name, now_us)
        if self.is_managed:
            self.plan_sync(now_us)
        elif self.workload.arrives_us < now_us and not is_over(self.workload, now_us):
            cluster = self._cluster
            for pod in self._new((name,)):
                cluster.create(pod, Replica(self.workload, cluster.fleet.names.index(name), cluster.next_order()))

    def node_removed(self, name: str, now_us: int) -> None:
        """Forget that there was a pod on a node that is gone."""
        self._first.discard(f"{self.workload.namespace}_{self.workload.pod.metadata.name}-{name}")
        super().node_removed(name, now_us)

    def wait_us(self, end: PodEnd, now_us: int) -> int:
        """Return how long a failed pod stays before it is replaced."""
        if end.node is None or end.why in _LOST or not self._cluster.scenario.profile.daemon_set_backoff:
            return 0
        return self._backoff.wait_us(self.workload.name, end.node, now_us)

    # ---- rollouts ------------------------------------------------------------------------------------------------

    def manage(self) -> None:
        """Take over the pods that are there."""
        if self.is_managed:
            return
        super().manage()
        for own in self.own_pods(self._cluster.queue.now_us):
            self._used[1, _pinned_to(own.pod)] = own.replica.generation + 1
            self._places[_pinned_to(own.pod)] = own.replica.number

    def roll_out(self, change: WorkloadRollout, now_us: int) -> None:
        """Change the template: its pods are updated node by node."""
        super().roll_out(change, now_us)
        self._is_complete = False

    def ended(self, end: PodEnd, now_us: int) -> None:
        """Replace a pod; after a rollout with one of the newest template."""
        if end.why == NODE_LOST and end.node not in self._cluster.unreachable_us:
            # Its node is no longer there: it gets a pod again when it joins.
            self._first.discard(end.pod.metadata.uid)
            self.forget(end.pod.metadata.uid)
            return
        if not self.is_managed:
            super().ended(end, now_us)
            return
        self.forget(end.pod.metadata.uid)
        node = _pinned_to(end.pod)
        wait_us = 0 if end.why == DELETED else self.wait_us(end, now_us)
        self._free_us[node] = self.free_us(now_us) + wait_us
        if wait_us:
            name, number = end.pod.metadata.name, self.number_of(end.replica)
            self._failed[node] = SetPod(name=name, revision=number, has_ended=True, node=node)
            self._cluster.plan(now_us + wait_us, partial(self._remove_failed, node))
        self.plan_sync(now_us)

    def _remove_failed(self, node: str, now_us: int) -> None:
        if self._failed.pop(node, None) is not None:
            self.plan_sync(now_us)

    def wants(self, end: PodEnd, now_us: int) -> bool:
        """Whether a pod is replaced as it was; after a rollout that is decided anew."""
        if self.is_managed:
            self._free_us[_pinned_to(end.pod)] = now_us
            self.plan_sync(now_us)
        return not self.is_managed

    def sync(self, now_us: int) -> None:
        """Create and delete pods until there is nothing to do."""
        while True:
            wanted = self._wanted()
            own = {mine.status.name: mine.pod for mine in self.own_pods(now_us)}
            pods, surplus = self._by_node(wanted, now_us)
            step = next_daemon_set_step(self._spec, self._newest, pods, now_us)
            for why, several in ((UPDATED, step.delete), (SCALED_DOWN, surplus)):
                for status in several:
                    self._delete(status, own, why, now_us)
            created = [self._create(node, wanted[node], now_us) for node in step.create]
            if not (step.delete or surplus or any(created)):
                break
        least = self._spec.min_ready_seconds
        due_us = next_available_us((status for on_node in pods.values() for status in on_node), least, now_us)
        if due_us is not None:
            self.plan_sync(due_us)
        is_complete = all(
            len(on_node) == 1 and on_node[0].revision == self._newest and on_node[0].is_available(least, now_us)
            for on_node in pods.values()
        )
        if is_complete and not self._is_complete:
            self.note_complete()
        self._is_complete = self._is_complete or is_complete

    def _wanted(self) -> Mapping[str, Pod]:
        """Return the nodes that are to run a pod of the newest template, and the pods."""
        cluster = self._cluster
        fleet, away = cluster.fleet, cluster.unreachable_us
        known = self._newest, tuple(name for name in fleet.names if name in fleet.present or name in away)
        if known != self._known:
            template = self._templates[self._newest] or self.workload
            nodes = map(cluster.api_node, known[1])
            self._pods = {_pinned_to(pod): pod for pod in daemons(template, nodes, cluster.scenario.profile)}
            self._known = known
        return self._pods

    def _by_node(self, wanted: Mapping[str, Pod], now_us: int) -> tuple[dict[str, list[SetPod]], list[SetPod]]:
        """Return the pods by node, and those on nodes that are not to run one."""
        pods: dict[str, list[SetPod]] = {node: [] for node in wanted}
        surplus = []
        for mine in self.own_pods(now_us):
            node = _pinned_to(mine.pod)
            if node in pods:
                pods[node].append(mine.status)
            elif not mine.status.is_terminating:
                surplus.append(mine.status)
        for node, failed in self._failed.items():
            if node in pods:
                pods[node].append(failed)
        return pods, surplus

    def _delete(self, status: SetPod, own: Mapping[str, Pod], why: str, now_us: int) -> None:
        if status.has_ended:
            del self._failed[status.node]
            self._free_us[status.node] = self.free_us(now_us)
            return
        pod = own[status.name]
        is_pending = self._cluster.pods[pod.metadata.uid][1] is None
        self.delete(pod, why)
        if is_pending:  # it is gone at once
            self._free_us[_pinned_to(pod)] = self.free_us(now_us)

    def _create(self, node: str, pod: Pod, now_us: int) -> bool:
        cluster = self._cluster
        if self._free_us.get(node, now_us) > now_us:
            self.plan_sync(self._free_us[node])
            return False
        number = self._places.setdefault(node, cluster.fleet.names.index(node))
        used = self._used.get((self._newest, node), 0)
        self._used[self._newest, node] = used + 1
        made = named(pod, f"{pod.metadata.name}-r{used}") if used else pod
        template = self._templates[self._newest]
        cluster.create(made, Replica(self.workload, number, cluster.next_order(), used, template))
        self.own(made)
        return True


def _pinned_to(pod: Pod) -> str:
    """Return the node that a pod of a DaemonSet is for."""
    affinity = pod.spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    required = affinity.node_affinity.required
    assert required is not None
    return required.node_selector_terms[0].match_fields[0].values[0]
