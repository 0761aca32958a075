"""Whether the schedule of a CronJob comes up during a run, in its time zone."""

from __future__ import annotations

from datetime import UTC, datetime

from podqos.controllers.jobs import NEXT_SCHEDULE_DELTA_US, Clock
from podqos.errors import InputError
from podqos.model.cron_schedule import Zone, parse_schedule, utc
from podqos.model.jobs import CronJobSpec
from podqos.model.time_units import SECOND_US
from podqos.sim.scenario.scenario import ScenarioWorkload


def zone_named(name: str | None) -> Zone | None:
    """Return the offsets of a time zone: UTC without a name, None if there is no such zone."""
    if not name:
        return utc
    from zoneinfo import ZoneInfo

    try:
        zone = ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None

    def offset(time: int) -> int:
        there = datetime.fromtimestamp(time, UTC).astimezone(zone).utcoffset()
        assert there is not None
        return int(there.total_seconds())

    return offset


def clock_of(spec: CronJobSpec) -> Clock:
    """Return the schedule of a CronJob in its time zone; raises ``InputError`` if it has none."""
    zone = zone_named(spec.time_zone)
    return Clock(parse_schedule(spec.schedule), utc if zone is None else zone)


def is_due(workload: ScenarioWorkload, start_us: int, duration_us: int) -> bool:
    """Whether a CronJob creates a Job before the end of a run."""
    spec = workload.cron
    if spec is None or spec.suspend:
        return False
    try:
        clock = clock_of(spec)
    except InputError:
        return True  # reported where the manifest is read
    first = clock.next_after((start_us + workload.arrives_us) // SECOND_US)
    end_us = duration_us if workload.deleted_us is None else min(duration_us, workload.deleted_us)
    return first is not None and first * SECOND_US + NEXT_SCHEDULE_DELTA_US <= start_us + end_us
