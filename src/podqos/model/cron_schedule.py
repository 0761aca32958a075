"""Cron schedules as CronJobs write them: ``*/5 * * * *``, ``0 9-17 * * MON-FRI``, ``@hourly``, ``@every 90m``.

Five fields: minute, hour, day of the month, month, day of the week (0 or SUN to 6 or SAT). If both days are
restricted, either is enough. Around a change of the clocks an hour that does not exist has no run, and one that exists
twice has two.

Times are seconds since 1970. ``Zone`` gives the offset from UTC at such a time, so that no time zone is read here.

Source: github.com/robfig/cron/v3 v3.0.1 parser.go (ParseStandard, getField, getRange, parseDescriptor), spec.go (Next,
dayMatches), constantdelay.go, as vendored by Kubernetes v1.36; Go's time.Date for local times that do not exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct

from podqos.errors import InputError
from podqos.model.go_text import GO_SPACES, parse_duration_ns, parse_int
from podqos.model.time_units import SECOND_NS
from podqos.model.time_zone_names import zone_complaint

Zone = Callable[[int], int]
"""The offset of local time from UTC, in seconds, at a time in seconds since 1970."""

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local times of any zone are computed with it
_MOST_YEARS = 5
_2000 = 946_684_800
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_ZONES = ("TZ=", "CRON_TZ=")
_NO_ZONE = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
_FIELDS = 5


def utc(_: int) -> int:
    """Return the offset of UTC: none."""
    return 0


class _Bounds(Struct, frozen=True, gc=False):
    lowest: int
    highest: int
    names: tuple[str, ...] = ()
    first_name: int = 0


_MINUTES, _HOURS, _DAYS_OF_MONTH = _Bounds(0, 59), _Bounds(0, 23), _Bounds(1, 31)
_MONTHS_OF_YEAR, _DAYS_OF_WEEK = _Bounds(1, 12, _MONTHS, 1), _Bounds(0, 6, _DAYS)


class _Field(Struct, frozen=True, gc=False):
    values: frozenset[int]
    is_star: bool
    """Whether a part of it is ``*``, without a step."""


class FixedDelay(Struct, frozen=True, gc=False):
    """``@every``: so many seconds after the last time."""

    seconds: int

    def next_after(self, time: int, zone: Zone = utc) -> int:
        """Return the next time."""
        del zone
        return time + self.seconds


class CronSchedule(Struct, frozen=True, gc=False):
    """A schedule by minute, hour and day."""

    minutes: _Field
    hours: _Field
    days: _Field
    months: _Field
    weekdays: _Field

    def next_after(self, time: int, zone: Zone = utc) -> int | None:
        """Return the first time after another; None if there is none within five years."""
        time += 1
        is_reset = False
        last_year = _local(time, zone).year + _MOST_YEARS
        while True:
            local = _local(time, zone)
            if local.year > last_year:
                return None
            if local.month not in self.months.values:
                local = local.replace(day=1, hour=0, minute=0, second=0)
                time, is_reset = _instant(_next_month(local), zone), True
                continue
            if not self._day_matches(local):
                if not is_reset:
                    local, is_reset = local.replace(hour=0, minute=0, second=0), True
                    # Midnight may not exist; where the day begins is found again below.
                    local = _local(_instant(local, zone), zone)
                time = _at_midnight(_instant(local + timedelta(days=1), zone), zone)
                continue
            if local.hour not in self.hours.values:
                if not is_reset:
                    time, is_reset = _instant(local.replace(minute=0, second=0), zone), True
                time += 3600
                continue
            if local.minute not in self.minutes.values:
                time, is_reset = time - time % 60 + 60, True
                continue
            if local.second:
                time, is_reset = time + 60 - local.second, True
                continue
            return time

    def _day_matches(self, local: datetime) -> bool:
        by_month = local.day in self.days.values
        by_week = (local.weekday() + 1) % 7 in self.weekdays.values
        if self.days.is_star or self.weekdays.is_star:
            return by_month and by_week
        return by_month or by_week


Schedule = CronSchedule | FixedDelay


def schedule_complaints(text: str) -> Iterator[str]:
    """Yield what the API server says about a schedule that it rejects."""
    try:
        _parse(_without_zone(text))
    except InputError as error:
        yield error.what
    if "TZ" in text:
        yield _NO_ZONE


def has_times(text: str) -> bool:
    """Whether a schedule has any time at all: the 30th of February has none."""
    schedule = parse_schedule(text)
    return isinstance(schedule, FixedDelay) or schedule.next_after(_2000) is not None


def parse_schedule(text: str) -> Schedule:
    """Read a schedule; raises ``InputError`` with the words of the API server."""
    if not text:
        raise InputError("empty spec string")
    if text.startswith(_ZONES):
        raise InputError(_NO_ZONE)
    return _parse(text)


def _without_zone(text: str) -> str:
    """Return a schedule without its time zone, which is read all the same."""
    if not text.startswith(_ZONES):
        return text
    setting, space, rest = text.partition(" ")
    if not space:
        raise InputError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
    name = setting.partition("=")[2]
    complaint = zone_complaint(name)
    if complaint:
        raise InputError(f"provided bad location {name}: {complaint}")
    return rest.strip(GO_SPACES)


def _parse(text: str) -> Schedule:
    if text.startswith(_EVERY):
        try:
            duration_ns = parse_duration_ns(text.removeprefix(_EVERY))
        except ValueError as error:
            raise InputError(f"failed to parse duration {text}: {error}") from None
        return FixedDelay(max(duration_ns // SECOND_NS, 1))
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise InputError(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    fields = [field for field in re.split(f"[{GO_SPACES}]+", text) if field]
    if len(fields) != _FIELDS:
        raise InputError(f"expected exactly {_FIELDS} fields, found {len(fields)}: [{' '.join(fields)}]")
    bounds = _MINUTES, _HOURS, _DAYS_OF_MONTH, _MONTHS_OF_YEAR, _DAYS_OF_WEEK
    return CronSchedule(*(_field(field, of) for field, of in zip(fields, bounds, strict=True)))


# ---- one field -------------------------------------------------------------------------------------------------------


def _field(text: str, bounds: _Bounds) -> _Field:
    values: set[int] = set()
    is_star = False
    for part in filter(None, text.split(",")):
        some, is_all = _range(part, bounds)
        values.update(some)
        is_star = is_star or is_all
    return _Field(frozenset(values), is_star)


def _range(text: str, bounds: _Bounds) -> tuple[range, bool]:
    """Return the values of ``*``, ``5``, ``1-5``, ``*/2``, ``5/10`` or ``1-5/2``, and whether it is all of them."""
    whole, *steps = text.split("/")
    first, *lasts = whole.split("-")
    is_all = first in {"*", "?"}
    if is_all:
        start, end = bounds.lowest, bounds.highest
    else:
        start = end = _number(first, bounds)
        if len(lasts) > 1:
            raise InputError(f"too many hyphens: {text}")
        if lasts:
            end = _number(lasts[0], bounds)
    step = 1
    if len(steps) > 1:
        raise InputError(f"too many slashes: {text}")
    if steps:
        step = _number(steps[0])
        if not lasts:
            end = bounds.highest
        if step > 1:
            is_all = False
    if start < bounds.lowest:
        raise InputError(f"beginning of range ({start}) below minimum ({bounds.lowest}): {text}")
    if end > bounds.highest:
        raise InputError(f"end of range ({end}) above maximum ({bounds.highest}): {text}")
    if start > end:
        raise InputError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise InputError(f"step of range should be a positive number: {text}")
    return range(start, end + 1, step), is_all


def _number(text: str, bounds: _Bounds | None = None) -> int:
    if bounds is not None and text.lower() in bounds.names:
        return bounds.names.index(text.lower()) + bounds.first_name
    try:
        number = parse_int(text)
    except ValueError as error:
        raise InputError(f"failed to parse int from {text}: {error}") from None
    if number < 0:
        raise InputError(f"negative number ({number}) not allowed: {text}")
    return number


# ---- local times -----------------------------------------------------------------------------------------------------


def _local(time: int, zone: Zone) -> datetime:
    return _EPOCH + timedelta(seconds=time + zone(time))


def _instant(local: datetime, zone: Zone) -> int:
    """Return when it is this local time; one that does not exist, or exists twice, is taken as Go's time.Date does."""
    wall = (local - _EPOCH) // timedelta(seconds=1)
    guess = wall - zone(wall)
    return wall - zone(guess)


def _next_month(first: datetime) -> datetime:
    return first.replace(year=first.year + 1, month=1) if first.month == 12 else first.replace(month=first.month + 1)


def _at_midnight(time: int, zone: Zone) -> int:
    """Return the beginning of a day whose midnight does not exist, as near as the hours come."""
    hour = _local(time, zone).hour
    if hour == 0:
        return time
    return time + (24 - hour) * 3600 if hour > 12 else time - hour * 3600
