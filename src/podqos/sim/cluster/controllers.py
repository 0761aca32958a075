"""Controllers that keep a number of pods running, and what those with templates share.

A pod that is evicted, rejected, preempted or lost is replaced after a delay, by one with another name and the same
demand. Controllers of StatefulSets, Deployments and DaemonSets look at the moment something happens to one of their
pods, without delay; only a pod that has ended is created again after ``timing.recreate``. Pods that are there from the
start have been ready for long.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import By, Kind
from podqos.agent.reasons import ReplacementFor, RolloutOf, SupersededIn
from podqos.agent.state import Phase, PodRecord, Role
from podqos.controllers.sets import SetPod
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US
from podqos.sim.cluster.control_plane import DELETED, Controller, ControlPlane, PodEnd, is_over
from podqos.sim.scenario.replicas import Replica, is_bound, pod_of, replacement
from podqos.sim.scenario.scenario import ScenarioWorkload, WorkloadRollout


class KeptReplicas(Controller):
    """The pods of one workload, as a ReplicaSet keeps them."""

    def begin(self, now_us: int) -> None:
        """Create the first pods."""
        cluster, workload = self._cluster, self.workload

        def replica(number: int) -> Replica:
            return self.replica(number, first=not now_us)

        if is_bound(workload):
            for number, name in cluster.fleet.places(workload):
                cluster.create(pod_of(workload, number), replica(number), name)
        else:
            for number, pod in enumerate(self.first_pods()):
                cluster.create(pod, replica(number))

    def replica(self, number: int, generation: int = 0, *, first: bool = False) -> Replica:
        """Return where a pod comes from; ``first`` is one of those present at the start."""
        order = (self._index, number) if first else self._cluster.next_order()
        return Replica(self.workload, number, order, generation)

    def first_pods(self) -> Iterator[Pod]:
        """Yield the first pods of a workload that the scheduler places."""
        return (pod_of(self.workload, number) for number in range(self.workload.replicas))

    def ended(self, end: PodEnd, now_us: int) -> None:
        """Replace a pod, unless it has succeeded or is no longer wanted."""
        if not self.workload.recreate or is_over(self.workload, now_us) or end.why in {DELETED, Phase.SUCCEEDED}:
            return
        wait_us = self.wait_us(end, now_us)
        cluster = self._cluster
        cluster.await_pod(end.pod)

        def make(now_us: int) -> None:
            cluster.replaced(end.pod)
            if is_over(self.workload, now_us) or not self.wants(end, now_us):
                return
            replica = self.replica(end.replica.number, end.replica.generation + 1)
            replica = replace(replica, revision=end.replica.revision)
            made = replacement(end.pod, replica)
            # A template that names its node needs no scheduler: the replacement is bound where the pod was.
            place = end.node if end.pod.spec.node_name else None
            because = ReplacementFor(end.pod.key, end.why, wait_us // SECOND_US)
            cluster.note(Kind.REPLACED, made, place, By.CONTROLLER, because)
            cluster.create(made, replica, place)
            self.made(made)

        cluster.plan(now_us + wait_us + cluster.scenario.options.recreate_us, make)

    def wants(self, end: PodEnd, now_us: int) -> bool:
        """Whether a pod that has ended is still to be replaced."""
        del end, now_us
        return True

    def made(self, pod: Pod) -> None:
        """Take note of a pod that replaces another."""

    def wait_us(self, end: PodEnd, now_us: int) -> int:
        """Return how long the controller waits before it replaces a pod."""
        del end, now_us
        return 0


LONG_AGO_US = -(1 << 50)
"""Since when pods that are there from the start have been ready."""
UPDATED, SCALED_DOWN = "Updated", "ScaledDown"


class OwnPod(Struct, frozen=True, gc=False):
    """A pod of a workload."""

    pod: Pod
    replica: Replica
    status: SetPod


class SetController(KeptReplicas):
    """The pods of one workload, which can be scaled and rolled out."""

    def __init__(self, cluster: ControlPlane, index: int, workload: ScenarioWorkload) -> None:
        super().__init__(cluster, index, workload)
        self.replicas = workload.replicas
        """How many pods are wanted now."""
        self.is_managed = False
        """Whether more is to be done than to replace pods that have ended."""
        self._templates: dict[int, ScenarioWorkload | None] = {1: None}
        """By number, in the order of their first rollout; the first is as the workload arrived."""
        self._numbers: dict[int, int] = {}
        """By template: its number."""
        self._newest = 1
        """The number of the template that all pods are to have."""
        self._revision = 1
        """Its number in the history: a rollback counts, too."""
        self._rolls_back = False
        self._own: dict[str, None] = {}
        """The uids of its pods, in the order of creation."""
        self._statuses: dict[str, OwnPod] = {}
        """By uid: the status of pods that have not changed since."""
        self._pending: list[str] = []
        """The uids of those that had no node then."""
        self._ready_us: dict[str, int] = {}
        self._running: set[str] = set()
        self._created_us: dict[str, int] = {}
        self._planned_us: set[int] = set()

    # ---- what can be done to it ----------------------------------------------------------------------------------

    def scale(self, replicas: int, now_us: int) -> None:
        """Want another number of pods."""
        self.manage()
        self.replicas = replicas
        self.plan_sync(now_us)

    def roll_out(self, change: WorkloadRollout, now_us: int) -> None:
        """Change the template."""
        self.manage()
        template = self._templates[change.number] = change.template
        if template is not None:
            self._numbers[id(template)] = change.number
        self._newest, self._revision, self._rolls_back = change.number, change.revision, change.rolled_back
        if change.replicas is not None:
            self.replicas = change.replicas
        self.use(template or self.workload)
        because = RolloutOf(self.name, change.revision, change.rolled_back)
        self._cluster.announce(Kind.ROLLOUT_STARTED, By.USER, because)
        self.plan_sync(now_us)

    def use(self, template: ScenarioWorkload) -> None:
        """Take over what a template says of how it is rolled out."""
        raise NotImplementedError

    def sync(self, now_us: int) -> None:
        """Create and delete pods."""
        raise NotImplementedError

    def manage(self) -> None:
        """Take over the pods that are there; from now on every change of their status counts."""
        if self.is_managed:
            return
        self.is_managed = True
        cluster, now_us = self._cluster, self._cluster.queue.now_us
        cluster.watch(self.workload)
        for pod, node in cluster.pods_of(self.workload):
            self._own[pod.metadata.uid] = None
            self._created_us[pod.metadata.uid] = LONG_AGO_US
            if node in cluster.unreachable_us:
                # It ran, as far as anybody knows until that is noticed.
                self._ready_us[pod.metadata.uid] = LONG_AGO_US
                self._running.add(pod.metadata.uid)
        self.own_pods(now_us)
        # Those that are ready have been so for long.
        self._ready_us = dict.fromkeys(self._ready_us, LONG_AGO_US)
        self._statuses.clear()

    # ---- when it syncs -------------------------------------------------------------------------------------------

    def plan_sync(self, time_us: int) -> None:
        """Sync at a time, once."""
        if time_us not in self._planned_us:
            self._planned_us.add(time_us)
            self._cluster.plan(time_us, self._sync)

    def _sync(self, now_us: int) -> None:
        self._planned_us.discard(now_us)
        if not is_over(self.workload, now_us):
            self.sync(now_us)

    def changed(self, pod: Pod, now_us: int) -> None:
        """Sync when the status of a pod changes."""
        self._statuses.pop(pod.metadata.uid, None)
        if self.is_managed:
            self.plan_sync(now_us)

    def node_joined(self, name: str, now_us: int) -> None:
        """Look at all pods anew: those of a node that is back start again."""
        super().node_joined(name, now_us)
        self._statuses.clear()

    def node_removed(self, name: str, now_us: int) -> None:
        """Take note that nothing is left of the pods of a lost node."""
        del name
        if self.is_managed:
            self.plan_sync(now_us)

    # ---- its pods ------------------------------------------------------------------------------------------------

    def number_of(self, replica: Replica) -> int:
        """Return which template a pod was made from."""
        return 1 if replica.revision is None else self._numbers[id(replica.revision)]

    def note_complete(self) -> None:
        """Write that all pods have the newest template and are available."""
        because = RolloutOf(self.name, self._revision, self._rolls_back, is_complete=True)
        self._cluster.announce(Kind.ROLLED_OUT, By.CONTROLLER, because)

    def delete(self, pod: Pod, why: str) -> None:
        """Delete a pod that is to be updated, or is one too many."""
        cluster = self._cluster
        because = SupersededIn(self.name, why, self._revision if why == UPDATED else 0)
        cluster.note(Kind.DELETED, pod, cluster.pods[pod.metadata.uid][1], By.CONTROLLER, because)
        cluster.remove(pod.metadata.uid, DELETED)
        self._statuses.pop(pod.metadata.uid, None)

    def own(self, pod: Pod) -> None:
        """Take note of a pod that was created."""
        uid, now_us = pod.metadata.uid, self._cluster.queue.now_us
        self._own[uid] = None
        self._created_us[uid] = now_us or LONG_AGO_US

    def made(self, pod: Pod) -> None:
        """Take note of a pod that replaces another."""
        if self.is_managed:
            self.own(pod)
            self.plan_sync(self._cluster.queue.now_us)

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._own.pop(uid, None)
        self._statuses.pop(uid, None)
        self._ready_us.pop(uid, None)
        self._created_us.pop(uid, None)
        self._running.discard(uid)

    def own_pods(self, now_us: int) -> list[OwnPod]:
        """Return its pods with their status, in the order of creation."""
        cluster, statuses = self._cluster, self._statuses
        for uid in self._pending:
            statuses.pop(uid, None)
        unknown = [uid for uid in self._own if uid not in statuses] if len(statuses) < len(self._own) else []
        self._pending = []
        for uid in unknown:
            if uid not in cluster.pods:
                self.forget(uid)
                continue
            pod, node = cluster.pods[uid]
            replica = cluster.replica_of(uid)
            statuses[uid] = OwnPod(pod, replica, self._status(pod, node, replica, now_us))
            if node is None:
                self._pending.append(uid)  # nobody tells when it is placed
        return [statuses[uid] for uid in self._own]

    def _status(self, pod: Pod, node: str | None, replica: Replica, now_us: int) -> SetPod:
        cluster, uid = self._cluster, pod.metadata.uid
        record = cluster.record_of(uid)
        noticed_us = None if node is None else cluster.unreachable_us.get(node)
        if noticed_us is None:
            is_ready = record is not None and record.is_ready
            if record is not None and not record.is_pending:
                self._running.add(uid)
        else:
            # Nobody knows yet that its node is lost.
            is_ready = uid in self._ready_us and now_us < noticed_us
        if is_ready:
            self._ready_us.setdefault(uid, now_us or LONG_AGO_US)
        else:
            self._ready_us.pop(uid, None)
        return SetPod(
            name=pod.metadata.name,
            number=replica.number,
            revision=self.number_of(replica),
            is_pending=uid not in self._running,
            ready_since_us=self._ready_us.get(uid),
            is_terminating=cluster.is_deleted(pod),
            node=node or "",
            created_us=self._created_us.get(uid, LONG_AGO_US),
            restarts=(0, 0) if record is None else _restarts(record),
        )

    def free_us(self, now_us: int, *, is_failed: bool = False) -> int:
        """Return when a pod may have the name, or the place, of one that has ended.

        A deleted pod is there until its kubelet has removed everything of it; a failed one is deleted at once.
        """
        options = self._cluster.scenario.options
        return now_us + options.recreate_us + (0 if is_failed else options.clean_up_us)


def _restarts(record: PodRecord) -> tuple[int, int]:
    def most(role: Role) -> int:
        return max((container.restarts for container in record.containers if container.role is role), default=0)

    return most(Role.REGULAR), most(Role.SIDECAR)
