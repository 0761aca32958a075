"""A StatefulSet: pods with ordinals, created, updated and deleted in order (``controllers.stateful_sets``).

A pod's replacement has its name and is created when the pod is gone. On a lost node it is deleted, but nobody confirms
that: it stays Terminating until the node is back.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import By, Kind
from podqos.agent.reasons import ReplacementFor
from podqos.agent.state import Phase
from podqos.controllers.set_pods import PodPhase, SetPod, next_available_us
from podqos.controllers.stateful_sets import (
    CreatePod,
    DeletePod,
    Deletion,
    StatefulSetSpec,
    StatefulSetStatus,
    sync,
)
from podqos.model.pod import Pod
from podqos.sim.cluster.controllers.controller import (
    DELETED,
    DRAINED,
    NODE_LOST,
    PREEMPTED,
    ControlledCluster,
    PodEnd,
    is_over,
)
from podqos.sim.cluster.controllers.sets import SetController
from podqos.sim.scenario.replicas import Replica, again, is_bound, pod_of
from podqos.sim.scenario.scenario import ScenarioWorkload, WorkloadRollout

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

    def __init__(self, cluster: ControlledCluster, index: int, workload: ScenarioWorkload) -> None:
        super().__init__(cluster, index, workload)
        self.use(workload)
        self._status_now = StatefulSetStatus(current_replicas=workload.replicas)
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
        self._status_now = replace(self._status_now, update_revision=change.number)
        self._is_rolling = not self._spec.on_delete

    def use(self, template: ScenarioWorkload) -> None:
        """Take over what a template says of how it is rolled out."""
        spec = template.rollout
        self._spec = spec if isinstance(spec, StatefulSetSpec) else StatefulSetSpec()

    # ---- one sync ------------------------------------------------------------------------------------------------

    def sync(self, now_us: int) -> None:
        """Create and delete pods until there is nothing to do."""
        self.manage()
        # Places are counted from 0 here; ``ordinals.start`` only shifts the names.
        spec = replace(self._spec, replicas=self.replicas, start=0)
        while True:
            own = self.own_pods(now_us)
            pods = {mine.status.name: mine.pod for mine in own}
            statuses = [*(mine.status for mine in own), *self._failed()]
            step = sync(spec, self._status_now, statuses, now_us)
            self._status_now = status = step.status
            if self._is_rolling and status.updated_replicas == status.ready_replicas == len(statuses) == self.replicas:
                self._is_rolling = False
                self.note_complete()
            acted = [self._act(action, pods, now_us) for action in step.actions]
            if not any(acted):
                break
        due_us = next_available_us(tuple(statuses), spec.min_ready_seconds, now_us)
        if due_us is not None:
            self.plan_sync(due_us)

    def _failed(self) -> list[SetPod]:
        """Return the pods that have failed or succeeded and are still there."""
        return [
            SetPod(
                name=vacant.end.pod.metadata.name,
                number=place,
                revision=self.number_of(vacant.end.replica),
                phase=PodPhase.SUCCEEDED if vacant.end.why == Phase.SUCCEEDED else PodPhase.FAILED,
            )
            for place, vacant in self._vacant.items()
            if vacant.is_failed
        ]

    def _act(self, action: CreatePod | DeletePod, pods: dict[str, Pod], now_us: int) -> bool:
        """Create or delete a pod; return whether that changed anything."""
        if isinstance(action, CreatePod):
            return self._create(action, now_us)
        place = action.pod.number
        if action.why is Deletion.ENDED:
            self._vacant[place] = replace(self._vacant[place], is_failed=False)
            return True
        if action.pod.is_terminal:
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
        template = self._templates[action.revision]
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
