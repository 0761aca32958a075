"""A CronJob: Jobs by the clock. The rules are in ``controllers.cron_jobs``.

Second 0 of a run is ``Scenario.start_us``. A CronJob counts as created when it arrives: it starts no Job for an earlier
time, nor for that very moment.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from podqos.agent.journal import By, Kind
from podqos.agent.reasons import CronJobDue, CronJobSkipped
from podqos.controllers.cron_jobs import CronStatus, CronStep, job_name, sync, to_remove
from podqos.controllers.jobs import JobReason
from podqos.manifest.times import date_text
from podqos.model.jobs import CronJobSpec
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US
from podqos.sim.cluster.controllers.controller import ControlledCluster, PodEnd, is_over
from podqos.sim.cluster.controllers.job import JobController
from podqos.sim.cluster.controllers.replicas import KeptReplicas
from podqos.sim.scenario.due import clock_of
from podqos.sim.scenario.scenario import ScenarioWorkload


class CronJobController(KeptReplicas):
    """The Jobs of one CronJob, and their pods."""

    watches_status = True

    def __init__(self, cluster: ControlledCluster, index: int, workload: ScenarioWorkload) -> None:
        super().__init__(cluster, index, workload)
        self.spec = workload.cron or CronJobSpec()
        self._clock = clock_of(self.spec)
        self._jobs: dict[str, JobController] = {}
        """By name, in the order of creation: those that have not been deleted, but for a moment."""
        self._status = CronStatus(0)
        self._due_us: int | None = None

    @property
    def key(self) -> str:
        """Its ``namespace/name``."""
        return f"{self.workload.namespace}/{self.workload.name}"

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

    def suspend(self, now_us: int, *, suspended: bool) -> None:
        """Start no more Jobs, or go on; the last run that was missed meanwhile is made up for."""
        self.spec = replace(self.spec, suspend=suspended)
        self._look_at(now_us)

    # ---- what the controller does ----------------------------------------------------------------------------------

    def _since_1970_us(self, now_us: int) -> int:
        return self._cluster.scenario.start_us + now_us

    def _look_at(self, time_us: int) -> None:
        if self._due_us is None or time_us < self._due_us:
            self._due_us = time_us
            self._cluster.plan(time_us, self._look)

    def _look(self, now_us: int) -> None:
        if self._due_us != now_us:
            return
        self._due_us = None
        if is_over(self.workload, now_us):
            return
        self._clean_up(now_us)
        active = [name for name, job in self._jobs.items() if not job.status.is_finished and not job.is_gone]
        self._apply(sync(self.spec, self._clock, self._status, active, self._since_1970_us(now_us)), active, now_us)

    def _apply(self, step: CronStep, active: list[str], now_us: int) -> None:
        self._status = step.status
        if step.skipped is not None:
            skipped = step.skipped
            keys = tuple(f"{self.workload.namespace}/{name}" for name in active)
            deadline = self.spec.starting_deadline_seconds
            because = CronJobSkipped(self.key, skipped.reason.value, _date(skipped.scheduled), keys, deadline)
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
        job = f"{self.workload.namespace}/{name}"
        because = CronJobDue(self.key, job, _date(scheduled), late_seconds, many_missed=is_behind)
        self._cluster.announce(Kind.JOB_CREATED, By.CONTROLLER, because)
        self._begin(name, now_us)

    def _begin(self, name: str, now_us: int) -> None:
        workload = replace(self.workload, kind="Job", name=name, cron=None, arrives_us=now_us)
        job = JobController(self._cluster, self._index, workload, cron_job=self.workload, finished=self._look_at)
        self._jobs[name] = job
        job.begin(now_us)

    def _clean_up(self, now_us: int) -> None:
        """Delete the oldest Jobs that have ended, beyond what the history limits keep (``cleanupFinishedJobs``)."""
        self._jobs = {name: job for name, job in self._jobs.items() if not job.is_gone}
        ended: dict[bool, list[tuple[int, str]]] = {True: [], False: []}
        for name, job in self._jobs.items():
            if job.status.is_finished and not job.is_gone and job.status.ending is not None:
                reason: JobReason = job.status.ending.reason
                ended[reason.is_success].append((job.status.started_us or 0, name))
        limits = {True: self.spec.successful_jobs_history_limit, False: self.spec.failed_jobs_history_limit}
        for is_success, jobs in ended.items():
            for name in to_remove(jobs, limits[is_success]):
                self._jobs[name].delete("HistoryLimit", now_us)


def _date(seconds: int) -> str:
    return date_text(seconds * SECOND_US)
