"""Durations and shares as text."""

from __future__ import annotations

from fractions import Fraction


def duration(seconds: float) -> str:
    """Return a time in seconds, or in minutes and seconds from one minute on."""
    if seconds < 60:
        return f"{seconds:g} s"
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
