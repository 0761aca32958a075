"""What the Job and CronJob controllers do when they look: count, end, create, delete; start a Job, or skip one.

``next_step`` is one look at a Job. It takes the Job's spec with defaults, what the controller remembers (``JobStatus``)
and the pods that it sees, and returns what to do and when to look again. The caller looks when a pod changes, a second
later, and when ``again_us`` says so; the earlier one counts. After failures the controller waits before it creates a
pod: 10 s after the first since the last success, then twice as long each time, up to ten minutes. (The documentation
says six minutes, the code ten.)

``next_run`` is one look at a CronJob, at a time in microseconds since 1970. The caller looks when the CronJob is
created, when one of its Jobs has ended, and when ``again_us`` says so: 100 ms after the next time of the schedule. A
run skipped because another Job was active is made up for when that Job has ended: only the most recent one.

Left out: indexed Jobs, policies of pod failure, success and replacement, deadlines to start, history, time to live.

Source: Kubernetes v1.36.4 pkg/controller/job/job_controller.go (syncJob, manageJob, trackJobStatusAndRemoveFinalizers,
pastBackoffLimitOnFailure, pastActiveDeadline, isPodFailed, DefaultJobPodFailureBackOff, MaxJobPodFailureBackOff),
backoff_utils.go (newBackoffRecord, getRemainingTimeForFailuresCount); pkg/controller/cronjob/
cronjob_controllerv2.go (syncCronJob, getJobName), utils.go (mostRecentScheduleTime, nextScheduleTimeDuration).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.model.cron_schedule import Schedule, Zone, utc
from podqos.model.jobs import ConcurrencyPolicy, CronJobSpec, JobSpec
from podqos.model.time_units import SECOND_US

SYNC_BATCH_US = 1 * SECOND_US
"""How long the controller collects changes of pods before it looks (SyncJobBatchPeriod)."""
MOST_AT_ONCE = 500
"""How many pods one look creates or deletes (MaxPodCreateDeletePerSync)."""
FIRST_BACKOFF_US = 10 * SECOND_US
LONGEST_BACKOFF_US = 600 * SECOND_US
NEXT_SCHEDULE_DELTA_US = SECOND_US // 10
"""By how much the controller looks later than the schedule says (nextScheduleDelta)."""
_MANY_MISSED = 100


class JobReason(StrEnum):
    """Why a Job has ended."""

    COMPLETIONS_REACHED = "CompletionsReached"
    BACKOFF_LIMIT_EXCEEDED = "BackoffLimitExceeded"
    DEADLINE_EXCEEDED = "DeadlineExceeded"

    @property
    def is_success(self) -> bool:
        """Whether the Job is Complete rather than Failed."""
        return self is JobReason.COMPLETIONS_REACHED


class JobPod(Struct, frozen=True, gc=False, kw_only=True):
    """A pod as the Job controller sees it."""

    uid: str
    has_succeeded: bool = False
    has_failed: bool = False
    is_deleted: bool = False
    """Whether it has been deleted, and may still be stopping."""
    is_counted: bool = False
    """Whether an earlier look has counted its end."""
    finished_us: int = 0
    """When the last of its containers ended; if it was deleted before that, when."""
    restarts: int = 0
    """Of all its containers."""
    rank: int = 0
    """Which is deleted first if there are too many: the smallest."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.has_succeeded or self.has_failed

    @property
    def counts_as_failed(self) -> bool:
        """Whether it has failed, or was deleted before it could succeed (``isPodFailed``)."""
        return self.has_failed or (self.is_deleted and not self.has_succeeded)


class JobStatus(Struct, frozen=True, gc=False):
    """What the controller remembers of a Job."""

    started_us: int = 0
    succeeded: int = 0
    failed: int = 0
    failures_in_a_row: int = 0
    """Since its last success."""
    last_failure_us: int = 0
    ending: JobReason | None = None
    """Why it ends: its FailureTarget or SuccessCriteriaMet condition."""
    restarts: int = 0
    """The container restarts that exceeded the back-off limit, with ``restartPolicy: OnFailure``."""
    is_finished: bool = False
    """Whether it is Complete or Failed: all its pods have ended."""

    @property
    def backoff_us(self) -> int:
        """How long it waits after its last failure."""
        if not self.failures_in_a_row:
            return 0
        # Beyond the seventh it no longer grows; a shift by a million would.
        return min(FIRST_BACKOFF_US << min(self.failures_in_a_row - 1, 16), LONGEST_BACKOFF_US)


class JobStep(Struct, frozen=True):
    """What one look at a Job leads to."""

    status: JobStatus
    counted: tuple[str, ...] = ()
    """The uids of the pods whose ends are counted now."""
    delete: tuple[str, ...] = ()
    """The uids of the pods to delete."""
    create: int = 0
    """How many pods to create."""
    again_us: int | None = None
    """When to look again without being asked."""


def next_step(
    spec: JobSpec, status: JobStatus, pods: Sequence[JobPod], now_us: int, *, restarts_containers: bool
) -> JobStep:
    """Look at a Job. ``restarts_containers`` is whether its pods have ``restartPolicy: OnFailure``."""
    if status.is_finished:
        return JobStep(status)
    succeeded = [pod for pod in pods if pod.has_succeeded and not pod.is_counted]
    failed = [pod for pod in pods if pod.counts_as_failed and not pod.is_counted]
    active = [pod for pod in pods if not pod.is_over and not pod.is_deleted]
    status = _counted(status, succeeded, failed)
    counted = tuple(pod.uid for pod in (*succeeded, *failed))
    due_us = None
    if spec.active_deadline_seconds is not None:
        due_us = status.started_us + spec.active_deadline_seconds * SECOND_US
    if status.ending is None:
        status = _judged(spec, status, pods, due_us, now_us, restarts_containers=restarts_containers)
    if status.ending is not None:
        return _end(status, pods, active)
    delete, create, again_us = _manage(spec, status, active, now_us)
    has_enough = status.succeeded > 0 if spec.completions is None else status.succeeded >= spec.completions
    if not create and not delete and not active and has_enough:
        return _end(replace(status, ending=JobReason.COMPLETIONS_REACHED), pods, ())
    times = [time_us for time_us in (again_us, due_us) if time_us is not None]
    return JobStep(status, counted, delete, create, min(times, default=None))


def _counted(status: JobStatus, succeeded: Sequence[JobPod], failed: Sequence[JobPod]) -> JobStatus:
    """Count the pods that have ended since the last look (``newBackoffRecord``).

    A success forgets all failures before it, and those at the same moment.
    """
    in_a_row, last_us = status.failures_in_a_row, status.last_failure_us
    later = [pod.finished_us for pod in failed]
    if succeeded:
        in_a_row, forgotten_us = 0, max(pod.finished_us for pod in succeeded)
        later = [time_us for time_us in later if time_us > forgotten_us]
    return replace(
        status,
        succeeded=status.succeeded + len(succeeded),
        failed=status.failed + len(failed),
        failures_in_a_row=in_a_row + len(later),
        last_failure_us=max(later, default=last_us),
    )


def _judged(
    spec: JobSpec,
    status: JobStatus,
    pods: Sequence[JobPod],
    due_us: int | None,
    now_us: int,
    *,
    restarts_containers: bool,
) -> JobStatus:
    """Return the status with the reason for which the Job fails, if it does."""
    assert spec.backoff_limit is not None
    if status.failed > spec.backoff_limit:
        return replace(status, ending=JobReason.BACKOFF_LIMIT_EXCEEDED)
    restarts = sum(pod.restarts for pod in pods if not pod.is_over) if restarts_containers else 0
    if restarts and restarts >= spec.backoff_limit:
        return replace(status, ending=JobReason.BACKOFF_LIMIT_EXCEEDED, restarts=restarts)
    if due_us is not None and now_us >= due_us:
        return replace(status, ending=JobReason.DEADLINE_EXCEEDED)
    return status


def _end(status: JobStatus, pods: Sequence[JobPod], delete: Sequence[JobPod]) -> JobStep:
    """End the Job: delete what runs; it is Complete or Failed when nothing terminates any more."""
    assert status.ending is not None
    is_waiting = bool(delete) or any(pod.is_deleted and not pod.is_over for pod in pods)
    uncounted = [pod for pod in pods if not pod.is_counted]
    # Pods that have to stop because the Job fails count as failed.
    stopped = 0 if status.ending.is_success else sum(not (pod.is_over or pod.is_deleted) for pod in uncounted)
    status = replace(status, failed=status.failed + stopped, is_finished=not is_waiting)
    return JobStep(status, tuple(pod.uid for pod in uncounted), tuple(pod.uid for pod in delete))


def _manage(
    spec: JobSpec, status: JobStatus, active: Sequence[JobPod], now_us: int
) -> tuple[tuple[str, ...], int, int | None]:
    """Return the pods to delete, how many to create, and when to try again (``manageJob``)."""
    assert spec.parallelism is not None
    if spec.completions is None:
        wanted = len(active) if status.succeeded > 0 else spec.parallelism
    else:
        wanted = max(0, min(spec.completions - status.succeeded, spec.parallelism))
    if len(active) > wanted:
        extra = sorted(active, key=lambda pod: pod.rank)[: min(len(active) - wanted, MOST_AT_ONCE)]
        return tuple(pod.uid for pod in extra), 0, None
    missing = wanted - len(active)
    left_us = max(0, status.last_failure_us + status.backoff_us - now_us) if status.failures_in_a_row else 0
    if missing > 0 and left_us > 0:
        return (), 0, now_us + max(left_us, SYNC_BATCH_US)
    return (), min(missing, MOST_AT_ONCE), None


# ---- CronJobs --------------------------------------------------------------------------------------------------------


class CronStatus(Struct, frozen=True, gc=False):
    """What the controller remembers of a CronJob; times are seconds since 1970."""

    created: int
    last_scheduled: int | None = None
    skipped: int | None = None
    """The time of the last run that was skipped: it is found again whenever the controller looks."""

    @property
    def earliest(self) -> int:
        """The time after which runs count."""
        return self.created if self.last_scheduled is None else self.last_scheduled


class CronStep(Struct, frozen=True):
    """What one look at a CronJob leads to."""

    status: CronStatus
    create: int | None = None
    """The scheduled time of the Job to create, in seconds since 1970."""
    delete: tuple[str, ...] = ()
    """The names of active Jobs to delete first (``concurrencyPolicy: Replace``)."""
    skipped: int | None = None
    """A run that is not started because another Job is active (``concurrencyPolicy: Forbid``)."""
    is_behind: bool = False
    """Whether more than a hundred runs were missed."""
    again_us: int | None = None
    """When to look again without being asked, in microseconds since 1970."""


class Clock(Struct, frozen=True):
    """A CronJob's schedule in its time zone."""

    schedule: Schedule
    zone: Zone = utc

    def next_after(self, time: int) -> int | None:
        """Return the next time of the schedule."""
        return self.schedule.next_after(time, self.zone)


def job_name(cron_job: str, scheduled: int) -> str:
    """Return the name of the Job for a time (``getJobName``)."""
    return f"{cron_job}-{scheduled // 60}"


def next_run(spec: CronJobSpec, clock: Clock, status: CronStatus, active: Sequence[str], now_us: int) -> CronStep:
    """Look at a CronJob. ``active`` are the names of its Jobs that have not ended."""
    again_us = _again_us(clock, status, now_us)
    scheduled, missed = _most_recent(clock, status.earliest, now_us // SECOND_US)
    if scheduled is None or scheduled == status.last_scheduled:
        return CronStep(status, again_us=again_us)
    if spec.concurrency_policy is ConcurrencyPolicy.FORBID and active:
        is_new = scheduled != status.skipped
        return CronStep(replace(status, skipped=scheduled), skipped=scheduled if is_new else None, again_us=again_us)
    delete = tuple(active) if spec.concurrency_policy is ConcurrencyPolicy.REPLACE else ()
    status = replace(status, last_scheduled=scheduled, skipped=None)
    is_behind = missed > _MANY_MISSED
    return CronStep(status, scheduled, delete, is_behind=is_behind, again_us=_again_us(clock, status, now_us))


def _most_recent(clock: Clock, earliest: int, now: int) -> tuple[int | None, int]:
    """Return the last time of the schedule up to now, and about how many there were (``mostRecentScheduleTime``)."""
    first = clock.next_after(earliest)
    if first is None or now < first:
        return None, 0
    second = clock.next_after(first)
    if second is None or now < second:
        return first, 0
    between = second - first
    missed = (now - first) // between + 1
    # One step further back, so that an uneven schedule is not overshot.
    recent, time = None, clock.next_after(first + (missed - 2) * between)
    while time is not None and time <= now:
        recent, time = time, clock.next_after(time)
    return recent, missed


def _again_us(clock: Clock, status: CronStatus, now_us: int) -> int | None:
    """Return when to look again (``nextScheduleTimeDuration``)."""
    now = now_us // SECOND_US
    recent, missed = _most_recent(clock, status.earliest, now)
    if recent is None:
        recent = now if missed else status.earliest
    following = clock.next_after(recent)
    return None if following is None else following * SECOND_US + NEXT_SCHEDULE_DELTA_US
