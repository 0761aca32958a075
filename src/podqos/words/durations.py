"""Durations and shares as text."""

from __future__ import annotations

from fractions import Fraction

from podqos.model.time_units import SECOND_US

_TEN_DAYS = 10 * 86_400


def duration(seconds: float) -> str:
    """Return a time in seconds, in minutes and seconds from one minute on, in days from ten days on."""
    if seconds < 60:
        return f"{seconds:g} s"
    if seconds >= _TEN_DAYS:
        return f"{seconds / 86_400:,.0f} days"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:g} min" + (f" {rest:g} s" if rest else "")


def short_duration(seconds: float) -> str:
    """Return a time as the kubelet's settings write it: ``1m30s``."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{number:g}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if number]
    return "".join(parts) or "0s"


def rounded(seconds: float | Fraction) -> str:
    """Return a time with three digits below 100 seconds, and to the second from there on."""
    return f"{float(seconds):.3g} s" if seconds < 100 else duration(round(seconds))


def percent(share: float | Fraction) -> str:
    """Return a share with three digits: ``12.5 %``."""
    return f"{float(share * 100):.3g} %"


def two_units(time_us: int) -> str:
    """Return a time in its two largest units."""
    seconds = max(0, time_us // 1_000_000)
    for unit, size, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if seconds >= size:
            return f"{seconds // size} {unit} {seconds % size // part} {smaller}"
    return f"{seconds} s"


def span(time_us: int) -> str:
    """Return a duration, as exact as it matters."""
    if time_us < 10_000:
        return f"{time_us / 1000:.1f} ms"
    if time_us < SECOND_US:
        return f"{time_us / 1000:.0f} ms"
    return f"{time_us / SECOND_US:.1f} s" if time_us < 100 * SECOND_US else f"{time_us // SECOND_US} s"
