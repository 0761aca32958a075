"""Times and durations as monitoring, scenarios and people write them, in whole microseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from podqos.errors import InputError
from podqos.manifest.plain import Plain
from podqos.manifest.samples import read_number
from podqos.model.go_text import parse_duration_ns
from podqos.model.time_units import DAY_US, MICROSECOND_NS, SECOND_US

TIME_COLUMNS = ("time", "timestamp", "t")
_DURATIONS = "for example 1.5s, 10m or 24h"
_WORDS = {"second": "1s", "minute": "1m", "hour": "1h", "day": "24h", "s": "1s", "m": "1m", "h": "1h"}
_DAYS = re.compile(r"(\d+)d(.*)")
# No run is longer, and 2⁶³ nanoseconds are not far away.
_LONGEST_US = 100 * 366 * DAY_US
# Seconds beyond this are a date, not a place in a scenario.
_DATES_FROM_SECONDS = 10**8
# Numbers beyond this are milliseconds since 1970: in seconds it is the year 5138.
_MILLISECONDS_FROM = 10**11
_LAST_SECOND = 253_402_300_799
"""The end of the year 9999."""
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9](?:\.[0-9]{1,9})?)", re.ASCII)
_OTHER_DATE = re.compile(r"[0-9]{1,4}[/.][0-9]{1,2}[/.][0-9]{1,4}|[A-Za-z]{3,} +[0-9]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def read_time(value: Plain) -> tuple[int, bool]:
    """Return microseconds, and whether they count from 1970; dates without a time zone are UTC."""
    if isinstance(value, float) and value.is_integer() and _DATES_FROM_SECONDS <= value < _MILLISECONDS_FROM:
        return int(value) * SECOND_US, True  # as Prometheus writes it, and there are many
    seconds = read_number(value)
    if seconds is not None:
        if seconds >= _MILLISECONDS_FROM:
            seconds /= 1000
        if abs(seconds) > _LAST_SECOND:
            raise InputError(f"{value} is not a time", fix="write a date, or seconds or milliseconds since 1970")
        return int(seconds * SECOND_US), seconds >= _DATES_FROM_SECONDS
    if isinstance(value, str):
        value = " ".join(value.split())  # what is quoted in a message is one line
    clock = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if clock is not None:
        hours, minutes, rest = clock.groups()
        return int((int(hours) * 3600 + int(minutes) * 60 + Fraction(rest)) * SECOND_US), False
    if isinstance(value, str) and "-" in value:
        try:
            date = datetime.fromisoformat(value)
        except ValueError:
            raise InputError(f'"{value}" is not a date', fix="for example 2026-11-15T04:00:00Z") from None
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return (date - _EPOCH) // _MICROSECOND, True
    try:
        return parse_duration_us(value), False
    except InputError:
        if not isinstance(value, str) or not _OTHER_DATE.search(value):
            raise
        # 11/01/2026 is in January for some.
        raise InputError(
            f'"{value}" is not a time', fix="such as 2026-11-15T04:00:00Z, or seconds since 1970"
        ) from None


def date_text(time_us: int) -> str:
    """Return a time since 1970 as ``2026-11-15T04:00:00Z``, to the second."""
    return f"{_EPOCH + timedelta(seconds=time_us // SECOND_US):%Y-%m-%dT%H:%M:%SZ}"


def parse_duration_us(text: object) -> int:
    """Read a duration in microseconds: ``1.5s``, ``10m``, ``36h``, ``7d``, ``minute``."""
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise InputError("must be a duration", fix=_DURATIONS)
    written = str(getattr(text, "text", text)).strip()
    days, rest = 0, _WORDS.get(written, written)
    matched = _DAYS.fullmatch(rest)
    if matched is not None:
        days, rest = int(matched[1]), matched[2] or "0"
    try:
        duration_us = days * DAY_US + parse_duration_ns(rest) // MICROSECOND_NS
    except ValueError:
        fix = f"write the unit: {written}s" if written.isdecimal() else _DURATIONS
        raise InputError(f'"{written}" is not a duration', fix=fix) from None
    if duration_us < 0:
        raise InputError(f"{written} is below zero", fix="times count from the start")
    if duration_us > _LONGEST_US:
        raise InputError(f"{written} is more than a hundred years", fix=_DURATIONS)
    return duration_us
