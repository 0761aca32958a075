"""A CronJob: Jobs by the clock. The rules are in ``controllers.cron_jobs``.

Second 0 of a run is ``Scenario.start_us``. A CronJob counts as created when it arrives: it starts no Job for an earlier
time, nor for that very moment.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import Because, CronJobDue, CronJobSkipped
from podqos.controllers.cron_jobs import Clock, CronStatus, CronStep, job_name, sync, to_remove
from podqos.controllers.cron_schedule import parse_schedule, utc
from podqos.controllers.jobs import JobReason
from podqos.manifest.times import date_text
from podqos.model.jobs import CronJobSpec
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US
from podqos.sim.cluster.controllers.controller import ControlledCluster, PodEnd, is_over
from podqos.sim.cluster.controllers.job import JobController
from podqos.sim.cluster.controllers.replicas import KeptReplicas
from podqos.sim.cluster.controllers.time_zones import zone_named
from podqos.sim.scenario.scenario import ScenarioWorkload


class CronJobController(KeptReplicas):
    """The Jobs of one CronJob, and their pods."""

    watches_status = True

    def __init__(self, cluster: ControlledCluster, index: int, workload: ScenarioWorkload) -> None:
        super().__init__(cluster, index, workload)
        self.spec = workload.cron or CronJobSpec()
        zone = zone_named(self.spec.time_zone)
        self._clock = Clock(parse_schedule(self.spec.schedule), utc if zone is None else zone)
        self._jobs: dict[str, JobController] = {}
        """By name, in the order of creation: those that have not been deleted, but for a moment."""
        self._status = CronStatus(0)
        self._due_us: int | None = None

    @property
    def key(self) -> str:
        """Its ``namespace/name``."""
        return f"{self.workload.namespace}/{self.workload.name}"

    def begin(self, now_us: int) -> None:
        """Wait for the first time of the schedule."""
        self._status = CronStatus(self._since_1970_us(now_us) // SECOND_US)
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
            self._write(Kind.JOB_SKIPPED, because, now_us)
        for name in step.delete:
            self._jobs[name].delete("Replaced", now_us)
        if step.create is not None:
            self._create(step.create, now_us, is_behind=step.is_behind)
        if step.again_us is not None:
            self._look_at(max(now_us, step.again_us - self._cluster.scenario.start_us))

    def _create(self, scheduled: int, now_us: int, *, is_behind: bool) -> None:
        cluster, name = self._cluster, job_name(self.workload.name, scheduled)
        existing = self._jobs.get(name)
        if existing is not None and not existing.is_gone:
            return
        workload = replace(self.workload, kind="Job", name=name, cron=None, arrives_us=now_us)
        job = JobController(cluster, self._index, workload, cron_job=self.workload, finished=self._look_at)
        late_seconds = self._since_1970_us(now_us) // SECOND_US - scheduled
        because = CronJobDue(self.key, job.key, _date(scheduled), late_seconds, many_missed=is_behind)
        self._write(Kind.JOB_CREATED, because, now_us)
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

    def _write(self, kind: Kind, because: Because, now_us: int) -> None:
        self._cluster.write(Entry(now_us, "", kind, by=By.CONTROLLER, because=because))


def _date(seconds: int) -> str:
    return date_text(seconds * SECOND_US)
