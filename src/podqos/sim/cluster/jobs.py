"""Jobs and CronJobs: pods until enough of them have succeeded, or too many have failed. ``controllers.jobs`` decides.

Pods are named as those of other workloads: ``name-0``, and what replaces a failed one ``name-0-r1``, with the same
demand. A pod that follows one that has succeeded has the next number.

Second 0 of a run is ``Scenario.start_us``. A CronJob counts as created when it arrives: it starts no Job for an earlier
time, nor for that very moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from podqos.agent.journal import By, Kind
from podqos.agent.reasons import CronJobDue, CronJobSkipped, DeletedWithJob, ExitedWith, JobEnded, ReplacementFor
from podqos.agent.state import ContainerStage, Phase, Role
from podqos.controllers.jobs import CronStatus, CronStep, JobPod, JobStatus, JobStep, job_name, next_run, next_step
from podqos.manifest.times import date_text
from podqos.model.jobs import CronJobSpec, JobSpec
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US
from podqos.sim.cluster.control_plane import DELETED, NODE_LOST, ControlPlane, PodEnd, is_over
from podqos.sim.cluster.controllers import KeptReplicas
from podqos.sim.scenario.due import clock_of
from podqos.sim.scenario.replicas import Replica, is_bound, pod_of, replacement
from podqos.sim.scenario.scenario import ScenarioWorkload

_SURPLUS = "Surplus"
"""The reason for which pods are deleted whose work is still to be done."""


class JobController(KeptReplicas):
    """The pods of one Job."""

    watches_status = True

    def __init__(
        self,
        cluster: ControlPlane,
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

    # ---- what the controller is told -------------------------------------------------------------------------------

    def begin(self, now_us: int) -> None:
        """Create the first pods; a suspended Job has none."""
        if self.spec.suspend:
            return
        self.status = JobStatus(started_us=now_us)
        numbers = range(self.workload.replicas)
        for number in numbers:
            self._know(pod_of(self.workload, number))
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
            self._pods[known.uid] = replace(known, is_deleted=True, finished_us=now_us)
            _, node = self._cluster.pods[known.uid]
            why = self._cluster.why_removed(known.uid)
            self._lost[known.uid] = PodEnd(pod, self._cluster.replica_of(known.uid), node, why, record)
            self._look_soon(now_us)
            return
        restarts = known.restarts if record is None else sum(container.restarts for container in record.containers)
        if restarts != known.restarts:
            self._pods[known.uid] = replace(known, restarts=restarts)
            self._look_soon(now_us)

    def ended(self, end: PodEnd, now_us: int) -> None:
        """Take note that a pod has ended."""
        known = self._pods.get(end.pod.metadata.uid)
        if known is None or self.is_gone or is_over(self.workload, now_us):
            return
        has_succeeded = end.why == Phase.SUCCEEDED
        if end.why == NODE_LOST:
            # It has been deleted, but no kubelet stops it.
            self._unreachable[known.uid] = end.node
            self._lost[known.uid] = end
            self._pods[known.uid] = replace(known, is_deleted=True, finished_us=now_us)
        elif known.is_counted:
            del self._pods[known.uid]
        else:
            finished_us = self._finished_us(end, now_us)
            self._pods[known.uid] = replace(
                known, has_succeeded=has_succeeded, has_failed=not has_succeeded, finished_us=finished_us
            )
            if not has_succeeded:
                self._lost[known.uid] = end
        self._look_soon(now_us)

    def node_joined(self, name: str, now_us: int) -> None:
        """Take note that the kubelet of a lost node stops what was deleted there."""
        for uid in [uid for uid, node in self._unreachable.items() if node == name]:
            del self._unreachable[uid]
            known = self._pods.pop(uid, None)
            if known is not None and not known.is_counted:
                self._pods[uid] = replace(known, has_failed=True, finished_us=now_us)
            if not self.is_gone:
                self._look_soon(now_us)

    def scale(self, parallelism: int, now_us: int) -> None:
        """Let another number of pods run at a time."""
        self.spec = replace(self.spec, parallelism=parallelism)
        self._look_at(now_us)

    def _finished_us(self, end: PodEnd, now_us: int) -> int:
        """Return when its last container ended: the kubelet notices that up to a second later, and stops sidecars."""
        containers = () if end.record is None else end.record.containers
        if any(each.role is Role.SIDECAR and each.stage is ContainerStage.RUNNING for each in containers):
            return now_us
        times = []
        for entry in reversed(self._cluster.entries):
            if entry.time_us < now_us:
                break
            if entry.pod == end.pod.key and isinstance(entry.because, ExitedWith):
                times.append(now_us if entry.because.finished_us is None else entry.because.finished_us)
        return max(times, default=now_us)

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
        on_failure = self.workload.pod.spec.restart_policy == "OnFailure"
        pods = tuple(self._pods.values())
        self._apply(next_step(self.spec, self.status, pods, now_us, restarts_containers=on_failure), now_us)

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
            self._delete(step.delete, _SURPLUS if ending is None else ending.value, now_us)
        for _ in range(step.create):
            self._create()
        if step.status.is_finished:
            self._finish(now_us)
        elif step.again_us is not None:
            self._look_at(step.again_us)

    def _delete(self, uids: Iterable[str], reason: str, now_us: int) -> None:
        cluster = self._cluster
        for uid in uids:
            pod, node = cluster.pods[uid]
            if reason == _SURPLUS:
                self._lost[uid] = PodEnd(pod, cluster.replica_of(uid), node, reason)
            # Whatever ends by order of the controller is not counted again.
            self._pods[uid] = replace(self._pods[uid], is_deleted=True, is_counted=True)
            cluster.note(Kind.DELETED, pod, node, By.CONTROLLER, DeletedWithJob(self.name, reason))
            cluster.remove(uid, DELETED)
            if uid not in cluster.pods:
                self._pods.pop(uid, None)
                self._look_soon(now_us)

    def _create(self) -> None:
        """Create a pod: in place of the one that failed first, if any has."""
        cluster = self._cluster
        lost = self._lost.pop(next(iter(self._lost)), None) if self._lost else None
        if lost is None:
            number = self._made
            self._made += 1
            pod, replica, place = pod_of(self.workload, number), self.replica(number), self._place(number)
        else:
            replica = self.replica(lost.replica.number, lost.replica.generation + 1)
            pod = replacement(lost.pod, replica)
            # A template that names its node needs no scheduler: the replacement is bound where the pod was.
            place = lost.node if pod.spec.node_name else None
            because = ReplacementFor(lost.pod.key, lost.why, self.status.backoff_us // SECOND_US)
            cluster.note(Kind.REPLACED, pod, place, By.CONTROLLER, because)
        self._know(pod)
        cluster.create(pod, replica, place)

    def _know(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        self._pods[uid] = JobPod(uid=uid, rank=-len(self._pods) - self._made)

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
        because = JobEnded(
            self.name,
            ending.value,
            status.succeeded,
            status.failed,
            spec.completions,
            spec.backoff_limit,
            restarts=status.restarts,
            active_deadline_seconds=spec.active_deadline_seconds,
        )
        kind = Kind.JOB_COMPLETE if ending.is_success else Kind.JOB_FAILED
        self._cluster.announce(kind, By.CONTROLLER, because)
        self._finished(now_us)

    def delete(self, reason: str, now_us: int) -> None:
        """Delete the Job, with the pods that it has."""
        self.is_gone = True
        running = [uid for uid, known in self._pods.items() if not known.is_deleted and uid in self._cluster.pods]
        self._delete(running, reason, now_us)
        self._cluster.announce(Kind.JOB_DELETED, By.CONTROLLER, DeletedWithJob(self.name, reason))
        self._finished(now_us)


class CronJobController(KeptReplicas):
    """The Jobs of one CronJob, and their pods."""

    watches_status = True

    def __init__(self, cluster: ControlPlane, index: int, workload: ScenarioWorkload) -> None:
        super().__init__(cluster, index, workload)
        self.spec = workload.cron or CronJobSpec()
        self._clock = clock_of(self.spec)
        self._jobs: dict[str, JobController] = {}
        """By name, in the order of creation."""
        self._status = CronStatus(0)
        self._due_us: int | None = None

    def begin(self, now_us: int) -> None:
        """Begin with the Job that is active already, if any, and wait for the first time of the schedule."""
        self._status = CronStatus(self._since_1970_us(now_us) // SECOND_US)
        if self.workload.active:
            self._begin(self.workload.name, now_us)
        self._look_at(now_us)

    def first_pods(self) -> Iterator[Pod]:
        """Yield none: its Jobs have them."""
        return iter(())

    def changed(self, pod: Pod, now_us: int) -> None:
        """Tell the Job of a pod."""
        for job in self._jobs.values():
            if job.has(pod.metadata.uid):
                job.changed(pod, now_us)

    def ended(self, end: PodEnd, now_us: int) -> None:
        """Tell the Job of a pod."""
        for job in tuple(self._jobs.values()):
            if job.workload is end.replica.revision:
                job.ended(end, now_us)

    def node_joined(self, name: str, now_us: int) -> None:
        """Tell all Jobs."""
        for job in self._jobs.values():
            job.node_joined(name, now_us)

    def _since_1970_us(self, now_us: int) -> int:
        return self._cluster.scenario.start_us + now_us

    def _look_at(self, time_us: int) -> None:
        if not self.spec.suspend and (self._due_us is None or time_us < self._due_us):
            self._due_us = time_us
            self._cluster.plan(time_us, self._look)

    def _look(self, now_us: int) -> None:
        if self._due_us != now_us:
            return
        self._due_us = None
        if is_over(self.workload, now_us):
            return
        self._jobs = {name: job for name, job in self._jobs.items() if not job.is_gone}
        active = [name for name, job in self._jobs.items() if not job.status.is_finished]
        self._apply(next_run(self.spec, self._clock, self._status, active, self._since_1970_us(now_us)), active, now_us)

    def _apply(self, step: CronStep, active: list[str], now_us: int) -> None:
        self._status = step.status
        if step.skipped is not None:
            keys = tuple(f"{self.workload.namespace}/{name}" for name in active)
            because = CronJobSkipped(self.name, "JobAlreadyActive", date_text(step.skipped * SECOND_US), keys)
            self._cluster.announce(Kind.JOB_SKIPPED, By.CONTROLLER, because)
        for name in step.delete:
            self._jobs[name].delete("Replaced", now_us)
        if step.create is not None:
            self._create(step.create, now_us, is_behind=step.is_behind)
        if step.again_us is not None:
            self._look_at(max(now_us, step.again_us - self._cluster.scenario.start_us))

    def _create(self, scheduled: int, now_us: int, *, is_behind: bool) -> None:
        name = job_name(self.workload.name, scheduled)
        existing = self._jobs.get(name)
        if existing is not None and not existing.is_gone:
            return
        late_seconds = self._since_1970_us(now_us) // SECOND_US - scheduled
        job, date = f"{self.workload.namespace}/{name}", date_text(scheduled * SECOND_US)
        because = CronJobDue(self.name, job, date, late_seconds, many_missed=is_behind)
        self._cluster.announce(Kind.JOB_CREATED, By.CONTROLLER, because)
        self._begin(name, now_us)

    def _begin(self, name: str, now_us: int) -> None:
        workload = replace(self.workload, kind="Job", name=name, cron=None, arrives_us=now_us)
        job = JobController(self._cluster, self._index, workload, cron_job=self.workload, finished=self._look_at)
        self._jobs[name] = job
        job.begin(now_us)
