"""A Job: pods until enough of them have succeeded, or too many have failed. The rules are in ``controllers.jobs``.

Pods are named as those of other workloads: ``name-0``, and what replaces a failed one ``name-0-r1``, with the same
demand. A pod that follows one that has succeeded has the next number. The number is the index of an Indexed Job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from podqos.agent.journal import By, Kind
from podqos.agent.reasons import DeletedWithJob, ExitedWith, JobEnded, LocalStorageExceeded, ReplacementFor
from podqos.agent.shutdown import grace_seconds_of, stop_seconds
from podqos.agent.state import ContainerStage, Phase, PodRecord, Role
from podqos.controllers.job_indexes import as_text
from podqos.controllers.jobs import JobPod, JobStatus, JobStep, NewPod, PodPhase, sync
from podqos.controllers.pod_failure_policy import DISRUPTION_TARGET, ContainerExit
from podqos.model.jobs import MOST_FAILURES, JobSpec
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US
from podqos.sim.cluster.controllers.controller import DELETED, NODE_LOST, ControlledCluster, PodEnd, is_over
from podqos.sim.cluster.controllers.replicas import KeptReplicas
from podqos.sim.scenario.replicas import Replica, is_bound, pod_of, replacement
from podqos.sim.scenario.scenario import ScenarioWorkload

_EVICTED = "Evicted"
_RUNNING = ContainerStage.RUNNING
_SUSPENDED, _SURPLUS = "Suspended", "Surplus"
_RESUMED = (_SUSPENDED, _SURPLUS)
"""Reasons for which pods are deleted whose work is still to be done."""
_NOT_DISRUPTED = frozenset({Phase.FAILED, Phase.SUCCEEDED, "Rejected", DELETED})
"""Ends of pods that no one else brought about, and that have no DisruptionTarget condition."""
# A model: what a container exits with that runs when its pod is stopped, by SIGTERM and by SIGKILL.
_TERMINATED, _KILLED = 143, 137


class JobController(KeptReplicas):
    """The pods of one Job."""

    watches_status = True

    def __init__(
        self,
        cluster: ControlledCluster,
        index: int,
        workload: ScenarioWorkload,
        *,
        cron_job: ScenarioWorkload | None = None,
        finished: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Set up a Job; ``cron_job`` is what it belongs to, and ``finished`` is called when it has ended."""
        super().__init__(cluster, index, workload)
        self._cron_job = cron_job
        self._finished = finished
        self.spec = workload.job or JobSpec()
        self.status = JobStatus()
        self.is_gone = False
        """Whether the Job has been deleted."""
        self._pods: dict[str, JobPod] = {}
        """By uid, in the order of creation: those that are there, or whose end is not counted yet."""
        self._lost: dict[str, PodEnd] = {}
        """By uid: failed pods that wait for a replacement."""
        self._unreachable: dict[str, str | None] = {}
        """By uid: the lost nodes of pods that have been deleted."""
        self._made = 0
        self._due_us: int | None = None

    @property
    def key(self) -> str:
        """The Job's ``namespace/name``."""
        return f"{self.workload.namespace}/{self.workload.name}"

    # ---- what the controller is told -------------------------------------------------------------------------------

    def begin(self, now_us: int) -> None:
        """Create the first pods."""
        if not self.spec.suspend:
            self.status = JobStatus(started_us=now_us)
        numbers = range(self.workload.replicas)
        for number in numbers:
            self._know(pod_of(self.workload, number), number)
        self._made = len(numbers)
        if self.spec.active_deadline_seconds is not None or not numbers:
            self._look_at(now_us)
        if self._cron_job is None:
            super().begin(now_us)
            return
        for number in numbers:
            replica = self.replica(number, first=not now_us)
            self._cluster.create(pod_of(self.workload, number), replica, self._place(number))

    @property
    def replicas(self) -> int:
        """How many pods may run at a time."""
        return self.spec.parallelism or 0

    def has(self, uid: str) -> bool:
        """Whether a pod is one of its own."""
        return uid in self._pods

    def changed(self, pod: Pod, now_us: int) -> None:
        """Take note of restarts, and of pods that someone else deletes."""
        known = self._pods.get(pod.metadata.uid)
        if known is None or known.is_deleted:
            return
        record = self._cluster.record_of(known.uid)
        if self._cluster.is_deleted(pod):
            self._cluster.need_all_nodes(pod)
            deleted = replace(known, is_deleted=True, finished_us=now_us, conditions=(DISRUPTION_TARGET,))
            self._pods[known.uid] = deleted
            _, node = self._cluster.pods[known.uid]
            why = self._cluster.why_removed(known.uid)
            self._lost[known.uid] = PodEnd(pod, self._cluster.replica_of(known.uid), node, why, record)
            self._look_soon(now_us)
            return
        restarts = known.restarts if record is None else sum(container.restarts for container in record.containers)
        if restarts != known.restarts:
            self._cluster.need_all_nodes(pod)
            self._pods[known.uid] = replace(known, restarts=restarts)
            self._look_soon(now_us)

    def ended(self, end: PodEnd, now_us: int) -> None:
        """Take note that a pod has ended."""
        known = self._pods.get(end.pod.metadata.uid)
        if known is None or self.is_gone or is_over(self.workload, now_us):
            return
        self._cluster.need_all_nodes(end.pod)
        if end.why == NODE_LOST:
            # It has been deleted, but no kubelet stops it.
            self._unreachable[known.uid] = end.node
            self._lost[known.uid] = end
            deleted = replace(known, is_deleted=True, finished_us=now_us, conditions=(DISRUPTION_TARGET,))
            self._pods[known.uid] = deleted
        elif known.is_counted:
            del self._pods[known.uid]
        else:
            self._pods[known.uid] = self._over(known, end, now_us)
            if end.why != Phase.SUCCEEDED:
                self._lost[known.uid] = end
        self._look_soon(now_us)

    def node_joined(self, name: str, now_us: int) -> None:
        """Take note that the kubelet of a lost node stops what was deleted there."""
        for uid in [uid for uid, node in self._unreachable.items() if node == name]:
            del self._unreachable[uid]
            known = self._pods.pop(uid, None)
            if known is not None and not known.is_counted:
                self._pods[uid] = replace(known, phase=PodPhase.FAILED, finished_us=now_us)
            if not self.is_gone:
                self._look_soon(now_us)

    def suspend(self, now_us: int, *, suspended: bool) -> None:
        """Suspend the Job, or resume it."""
        self.spec = replace(self.spec, suspend=suspended)
        self._look_at(now_us)

    def scale(self, parallelism: int, now_us: int) -> None:
        """Let another number of pods run at a time."""
        self.spec = replace(self.spec, parallelism=parallelism)
        self._look_at(now_us)

    # ---- what a pod that has ended looks like ----------------------------------------------------------------------

    def _over(self, known: JobPod, end: PodEnd, now_us: int) -> JobPod:
        phase = PodPhase.SUCCEEDED if end.why == Phase.SUCCEEDED else PodPhase.FAILED
        return replace(
            known,
            phase=phase,
            finished_us=self._finished_us(end, now_us),
            exits=tuple(self._exits(end.pod, end.record)),
            conditions=(DISRUPTION_TARGET,) if self._is_disrupted(end) else (),
        )

    def _finished_us(self, end: PodEnd, now_us: int) -> int:
        """Return when its last container ended: the kubelet notices that up to a second later, and stops sidecars."""
        containers = () if end.record is None else end.record.containers
        if any(container.role is Role.SIDECAR and container.stage is _RUNNING for container in containers):
            return now_us
        times = []
        for entry in reversed(self._cluster.entries):
            if entry.time_us < now_us:
                break
            if entry.pod == end.pod.key and isinstance(entry.because, ExitedWith):
                times.append(now_us if entry.because.finished_us is None else entry.because.finished_us)
        return max(times, default=now_us)

    def _exits(self, pod: Pod, record: PodRecord | None) -> Iterator[ContainerExit]:
        """Yield how its containers ended, regular ones first."""
        grace_us = stop_seconds(grace_seconds_of(pod)) * SECOND_US
        stopped = _TERMINATED if self._cluster.scenario.options.container_stop_us <= grace_us else _KILLED
        containers = () if record is None else record.containers
        for container in sorted(containers, key=lambda container: container.role is not Role.REGULAR):
            if container.stage in {ContainerStage.ENDED, ContainerStage.BACKING_OFF}:
                yield ContainerExit(container.plan.name, container.exit_code)
            elif container.stage is _RUNNING:
                yield ContainerExit(container.plan.name, stopped)

    def _is_disrupted(self, end: PodEnd) -> bool:
        """Whether it has a DisruptionTarget condition: not if it exceeded its own limits of local storage."""
        if end.why in _NOT_DISRUPTED:
            return False
        if end.why != _EVICTED:
            return True
        evictions = (
            entry
            for entry in reversed(self._cluster.entries)
            if entry.kind is Kind.EVICTED and entry.pod == end.pod.key
        )
        evicted = next(evictions, None)
        return evicted is None or not isinstance(evicted.because, LocalStorageExceeded)

    # ---- what the controller does ----------------------------------------------------------------------------------

    def _look_soon(self, now_us: int) -> None:
        self._look_at(now_us + self._cluster.scenario.options.recreate_us)

    def _look_at(self, time_us: int) -> None:
        """Look at the Job at a time, unless an earlier look is planned: that one plans the next."""
        if self._due_us is None or time_us < self._due_us:
            self._due_us = time_us
            self._cluster.plan(time_us, self._look)

    def _look(self, now_us: int) -> None:
        if self._due_us != now_us:
            return
        self._due_us = None
        if self.is_gone or is_over(self.workload, now_us) or self.status.is_finished:
            return
        restarts_containers = self.workload.pod.spec.restart_policy == "OnFailure"
        step = sync(self.spec, restarts_containers, self.status, tuple(self._pods.values()), now_us)
        self._apply(step, now_us)

    def _apply(self, step: JobStep, now_us: int) -> None:
        self.status = step.status
        for uid in step.counted:
            known = self._pods[uid]
            if known.is_over:
                del self._pods[uid]
            else:
                self._pods[uid] = replace(known, is_counted=True)
        if step.delete:
            ending = step.status.ending
            reason = ending.reason.value if ending is not None else _SUSPENDED if self.spec.suspend else _SURPLUS
            self._delete(step.delete, reason, now_us)
        for new in step.create:
            self._create(new)
        if step.status.is_finished:
            self._finish(now_us)
        elif step.again_us is not None:
            self._look_at(step.again_us)

    def _delete(self, uids: Iterable[str], reason: str, now_us: int) -> None:
        cluster = self._cluster
        if self._cron_job is None:
            cluster.fleet.wake_all_with(self.workload)
        for uid in uids:
            pod, node = cluster.pods[uid]
            if reason in _RESUMED:
                self._lost[uid] = PodEnd(pod, cluster.replica_of(uid), node, reason)
            # Whatever ends by order of the controller is not counted again.
            self._pods[uid] = replace(self._pods[uid], is_deleted=True, is_counted=True)
            cluster.note(Kind.DELETED, pod, node, By.CONTROLLER, DeletedWithJob(self.key, reason))
            cluster.remove(uid, DELETED)
            if uid not in cluster.pods:
                self._pods.pop(uid, None)
                self._look_soon(now_us)

    def _create(self, new: NewPod) -> None:
        cluster = self._cluster
        lost = self._next_lost(new.index)
        if lost is None:
            number = self._made if new.index is None else new.index
            self._made += 1
            pod, replica, place = pod_of(self.workload, number), self.replica(number), self._place(number)
        else:
            replica = self.replica(lost.replica.number, lost.replica.generation + 1)
            pod = replacement(lost.pod, replica)
            # A template that names its node needs no scheduler: the replacement is bound where the pod was.
            place = lost.node if pod.spec.node_name else None
            because = ReplacementFor(lost.pod.key, lost.why, new.backoff_us // SECOND_US)
            cluster.note(Kind.REPLACED, pod, place, By.CONTROLLER, because)
        self._know(pod, replica.number, new)
        cluster.create(pod, replica, place)

    def _next_lost(self, index: int | None) -> PodEnd | None:
        """Return the failed pod that the next one is made for: of an index, or the one that failed first."""
        for uid, end in self._lost.items():
            if index is None or end.replica.number == index:
                del self._lost[uid]
                return end
        return None

    def _know(self, pod: Pod, number: int, new: NewPod | None = None) -> None:
        new = new or NewPod()
        self._pods[pod.metadata.uid] = JobPod(
            uid=pod.metadata.uid,
            index=number if self.spec.is_indexed else None,
            failures=new.failures,
            ignored_failures=new.ignored_failures,
            rank=(-len(self._pods) - self._made,),
        )

    def replica(self, number: int, generation: int = 0, *, first: bool = False) -> Replica:
        """Return where a pod comes from: for the cluster, pods of a CronJob's Job are pods of the CronJob."""
        made = super().replica(number, generation, first=first)
        return made if self._cron_job is None else replace(made, workload=self._cron_job, revision=self.workload)

    def _place(self, number: int) -> str | None:
        """Return the node that a pod is bound to without asking the scheduler."""
        workload, names = self.workload, self._cluster.fleet.names
        if not is_bound(workload):
            return None
        return workload.nodes[number % len(workload.nodes)] if workload.nodes else names[number % len(names)]

    # ---- how it ends -----------------------------------------------------------------------------------------------

    def _finish(self, now_us: int) -> None:
        ending, status, spec = self.status.ending, self.status, self.spec
        assert ending is not None
        matched = ending.matched
        exited = None if matched is None else matched.exit
        because = JobEnded(
            self.key,
            ending.reason.value,
            status.succeeded,
            status.failed,
            spec.completions,
            None if spec.backoff_limit == MOST_FAILURES else spec.backoff_limit,
            restarts=ending.restarts,
            active_deadline_seconds=spec.active_deadline_seconds,
            succeeded_indexes=as_text(status.succeeded_indexes),
            failed_indexes=as_text(status.failed_indexes),
            rule=ending.rule,
            pod=ending.pod.replace("_", "/", 1),
            container="" if exited is None else exited.container,
            exit_code=None if exited is None else exited.exit_code,
            condition="" if matched is None else matched.condition,
        )
        kind = Kind.JOB_COMPLETE if ending.reason.is_success else Kind.JOB_FAILED
        self._cluster.announce(kind, By.CONTROLLER, because)
        if spec.ttl_seconds_after_finished is not None:
            expires_us = now_us + spec.ttl_seconds_after_finished * SECOND_US
            self._cluster.plan(expires_us, lambda time_us: self.delete("TTLExpired", time_us))
        self._finished(now_us)

    def delete(self, reason: str, now_us: int) -> None:
        """Delete the Job, with the pods that it has."""
        if self.is_gone or is_over(self.workload, now_us):
            return
        self.is_gone = True
        running = [uid for uid, known in self._pods.items() if not known.is_deleted and uid in self._cluster.pods]
        self._delete(running, reason, now_us)
        self._cluster.announce(Kind.JOB_DELETED, By.CONTROLLER, DeletedWithJob(self.key, reason))
        self._finished(now_us)
