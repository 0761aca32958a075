"""A Deployment and its ReplicaSets (``controllers.deployments``), or a ReplicaSet alone.

Until it is scaled or rolled out, it only replaces pods that have ended. Pods of later revisions have the revision in
their names: ``web-0``, then ``web-rev2-0``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, islice

from msgspec.structs import replace

from podqos.agent.journal import By, Kind
from podqos.agent.reasons import ProgressDeadlineExceeded, ScaledFromTo
from podqos.agent.state import Phase
from podqos.controllers.deployments import (
    DeploymentProgress,
    DeploymentSpec,
    DeploymentView,
    ProgressReason,
    ReplicaSet,
    begun,
    check_us,
    progressed,
    sync,
)
from podqos.controllers.replica_sets import pods_to_delete
from podqos.controllers.set_pods import next_available_us
from podqos.sim.cluster.controllers.controller import DELETED, NODE_LOST, ControlledCluster, PodEnd
from podqos.sim.cluster.controllers.sets import SCALED_DOWN, UPDATED, OwnPod, SetController
from podqos.sim.scenario.replicas import Replica, is_bound, named, pod_of
from podqos.sim.scenario.scenario import ScenarioWorkload


class DeploymentController(SetController):
    """The pods of one Deployment."""

    def __init__(self, cluster: ControlledCluster, index: int, workload: ScenarioWorkload) -> None:
        super().__init__(cluster, index, workload)
        self.use(workload)
        self._sets: dict[int, ReplicaSet] = {}
        """By number of their template."""
        self._progress = DeploymentProgress()
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

    def begin(self, now_us: int) -> None:
        """Create the first pods; a Deployment that states its progress deadline is watched from the beginning.

        Pods that are bound without the scheduler are no rollout.
        """
        super().begin(now_us)
        if self._spec.states_deadline and not is_bound(self.workload):
            self.manage()
            self._progress = begun(DeploymentProgress(), now_us)
            self.plan_sync(now_us)

    def manage(self) -> None:
        """Take over the pods that are there, as those of the first ReplicaSet."""
        if self.is_managed:
            return
        super().manage()
        now_us = self._cluster.queue.now_us
        self._used = {(1, own.replica.number): own.replica.generation + 1 for own in self.own_pods(now_us)}
        for end in self._awaited.values():
            self._used[1, end.replica.number] = end.replica.generation + 1
        self._sets[1] = ReplicaSet(number=1, replicas=self.replicas, desired=self.replicas, most=self._wanted.most)
        view, _ = self._view(now_us)
        self._progress = progressed(view, DeploymentProgress(), now_us)

    @property
    def _wanted(self) -> DeploymentSpec:
        return replace(self._spec, replicas=self.replicas)

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
        is_short = active + len(self._awaited_of(number)) < self._sets[number].replicas
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
        while True:
            view, own = self._view(now_us)
            step = sync(view)
            if not step:
                break
            self._scale_sets(step, own, now_us)
        self._check_progress(view, now_us)
        statuses = tuple(mine.status for mine in own)
        due_us = next_available_us(statuses, self._spec.min_ready_seconds, now_us)
        if due_us is not None:
            self.plan_sync(due_us)

    def _view(self, now_us: int) -> tuple[DeploymentView, list[OwnPod]]:
        """Return the ReplicaSets with the status of their pods."""
        own = self.own_pods(now_us)
        sets = {number: self._counted(known, own, now_us) for number, known in self._sets.items()}
        new = sets.pop(self._newest, None)
        there = [*(mine.replica for mine in own), *(end.replica for end in self._unconfirmed.values())]
        old_pods_run = any(self.number_of(replica) != self._newest for replica in there)
        return DeploymentView(self._wanted, new, tuple(sets.values()), old_pods_run), own

    def _counted(self, known: ReplicaSet, own: Sequence[OwnPod], now_us: int) -> ReplicaSet:
        active = [mine.status for mine in own if mine.status.revision == known.number and mine.status.is_active]
        return replace(
            known,
            pods=len(active),
            ready=sum(pod.is_ready for pod in active),
            available=sum(pod.is_available(self._spec.min_ready_seconds, now_us) for pod in active),
        )

    def _scale_sets(self, step: Sequence[ReplicaSet], own: Sequence[OwnPod], now_us: int) -> None:
        """Scale ReplicaSets; a new one is that of the newest template."""
        is_rollout = sum(bool(known.replicas) for known in self._sets.values()) > 1
        for after in step:
            number = after.number if after.number in self._sets else self._newest
            before = self._sets.get(number)
            if before is None:
                self._progress = begun(self._progress, now_us)
            self._sets[number] = replace(after, number=number)
            self._sets = dict(sorted(self._sets.items()))
            size = 0 if before is None else before.replicas
            if size == after.replicas:
                continue
            is_new = number == self._newest
            if is_rollout or not is_new or before is None or before.desired == self.replicas:
                name = (self._templates[number] or self.workload).name
                because = ScaledFromTo(self.name, size, after.replicas, name, is_new=is_new)
                self._cluster.announce(Kind.SCALED, By.CONTROLLER, because)
            self._fill(number, [mine for mine in own if mine.status.revision == number], own, now_us)

    def _fill(self, number: int, own: Sequence[OwnPod], related: Sequence[OwnPod], now_us: int) -> None:
        """Create or delete pods of a ReplicaSet until it has as many as it should."""
        active = [mine for mine in own if mine.status.is_active]
        awaited = self._awaited_of(number)
        surplus = len(active) + len(awaited) - self._sets[number].replicas
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

    # ---- progress ------------------------------------------------------------------------------------------------

    def _check_progress(self, view: DeploymentView, now_us: int) -> None:
        before = self._progress
        after = self._progress = progressed(view, before, now_us)
        if after.reason is not before.reason:
            if after.reason is ProgressReason.TIMED_OUT:
                seconds = self._spec.progress_deadline_seconds
                counts = after.updated, after.available, self.replicas
                late = ProgressDeadlineExceeded(self.name, self._revision, seconds, *counts)
                self._cluster.announce(Kind.ROLLOUT_STALLED, By.CONTROLLER, late)
            elif after.reason is ProgressReason.COMPLETE and len(self._sets) > 1:
                self.note_complete()
        due_us = check_us(self._wanted, after)
        if due_us is not None and due_us > now_us:
            self.plan_sync(due_us)
