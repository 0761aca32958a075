"""What the CronJob controller does when it looks at a CronJob: create a Job, skip one, delete old ones.

``sync`` is one look, at a time in microseconds since 1970. The caller looks when the CronJob is created, when one of
its Jobs has ended, and when ``again_us`` says so: 100 ms after the next time of the schedule. A run that was skipped
because another Job was active is made up for when that Job has ended, unless the starting deadline has passed: only
the most recent one.

Source: Kubernetes v1.36.4 pkg/controller/cronjob/cronjob_controllerv2.go (syncCronJob, cleanupFinishedJobs,
removeOldestJobs, getJobName), utils.go (mostRecentScheduleTime, nextScheduleTimeDuration, nextScheduleTime).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.model.cron_schedule import Schedule, Zone, utc
from podqos.model.jobs import ConcurrencyPolicy, CronJobSpec
from podqos.model.time_units import SECOND_US

NEXT_SCHEDULE_DELTA_US = SECOND_US // 10
"""By how much the controller looks later than the schedule says (nextScheduleDelta)."""
_MANY_MISSED = 100


class SkipReason(StrEnum):
    """Why a CronJob does not start a Job."""

    FORBID = "JobAlreadyActive"
    """Another is active, and ``concurrencyPolicy`` is Forbid."""
    TOO_LATE = "MissSchedule"
    """The starting deadline has passed."""


class Skipped(Struct, frozen=True, gc=False):
    """A run that is not started."""

    reason: SkipReason
    scheduled: int


class CronStatus(Struct, frozen=True, gc=False):
    """What the controller remembers of a CronJob; times are seconds since 1970."""

    created: int
    last_scheduled: int | None = None
    skipped: Skipped | None = None
    """The last one: it is found again whenever the controller looks."""


class CronStep(Struct, frozen=True):
    """What one look at a CronJob leads to."""

    status: CronStatus
    create: int | None = None
    """The scheduled time of the Job to create, in seconds since 1970."""
    delete: tuple[str, ...] = ()
    """The names of active Jobs to delete first (``concurrencyPolicy: Replace``)."""
    skipped: Skipped | None = None
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


def sync(spec: CronJobSpec, clock: Clock, status: CronStatus, active: Sequence[str], now_us: int) -> CronStep:
    """Look at a CronJob. ``active`` are the names of its Jobs that have not ended."""
    if spec.suspend:
        return CronStep(status)
    now = now_us // SECOND_US
    again_us = _again_us(clock, status, now_us)
    earliest = _earliest(status)
    if spec.starting_deadline_seconds is not None:
        # In whole microseconds: a deadline of 0 excludes the run of this very second.
        deadline_us = now_us - spec.starting_deadline_seconds * SECOND_US
        earliest = max(earliest, deadline_us // SECOND_US)
    scheduled, missed = _most_recent(clock, earliest, now)
    if scheduled is None:
        return CronStep(status, again_us=again_us)
    is_behind = missed > _MANY_MISSED
    deadline = spec.starting_deadline_seconds
    if deadline is not None and (scheduled + deadline) * SECOND_US < now_us:
        return _skip(status, Skipped(SkipReason.TOO_LATE, scheduled), again_us)
    if scheduled == status.last_scheduled:
        return CronStep(status, again_us=again_us)
    if spec.concurrency_policy is ConcurrencyPolicy.FORBID and active:
        return _skip(status, Skipped(SkipReason.FORBID, scheduled), again_us)
    delete = tuple(active) if spec.concurrency_policy is ConcurrencyPolicy.REPLACE else ()
    status = replace(status, last_scheduled=scheduled, skipped=None)
    return CronStep(status, scheduled, delete, is_behind=is_behind, again_us=_again_us(clock, status, now_us))


def to_remove(finished: Sequence[tuple[int, str]], limit: int) -> tuple[str, ...]:
    """Return the Jobs beyond a history limit: those that started first (``removeOldestJobs``)."""
    return tuple(name for _, name in sorted(finished)[: max(0, len(finished) - limit)])


def _skip(status: CronStatus, skipped: Skipped, again_us: int | None) -> CronStep:
    is_new = skipped != status.skipped
    return CronStep(replace(status, skipped=skipped), skipped=skipped if is_new else None, again_us=again_us)


def _earliest(status: CronStatus) -> int:
    return status.created if status.last_scheduled is None else status.last_scheduled


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
    earliest, now = _earliest(status), now_us // SECOND_US
    recent, missed = _most_recent(clock, earliest, now)
    if recent is None:
        recent = now if missed else earliest
    following = clock.next_after(recent)
    return None if following is None else following * SECOND_US + NEXT_SCHEDULE_DELTA_US
