"""Reports that are logged twice: syslog daemons write to kern.log and to syslog what journald has, too."""

from __future__ import annotations

import re
from collections.abc import Hashable

from podqos.kernel.oom_report import OOMReport
from podqos.survival.autopsy.log_times import seconds_apart

_MOST_ALIKE = 8
_SAME_MOMENT_SECONDS = 2.0
"""By how much two clocks differ, of which one may have whole seconds."""
_ZONE_STEP_SECONDS, _MOST_ZONE_SECONDS = 900, 26 * 3600
_SINCE_BOOT = re.compile(r"\d{1,8}(?:\.\d{1,9})?", re.ASCII)
_WORDS = re.compile(r"[^\W\d_]+")
_NUMBERS = re.compile(r"\d+")


class SeenReports:
    """The reports of all logs so far."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._logs: dict[Hashable, int] = {}
        self._moments: dict[Hashable, list[tuple[str, str]]] = {}

    def has(self, report: OOMReport, log: int) -> bool:
        """Whether a report was there before, in its log or in another; else it is known from now on.

        In another log it begins at the same time, on the same host; anywhere, it has the same figures, and neither time
        nor host says that it is another one.
        """
        if max(len(self._logs), len(self._moments)) >= self._most:
            return False
        key = report.chosen, *report.victims
        if report.at and self._logs.setdefault((report.at, report.host, report.trigger_pid, key), log) != log:
            return True
        figures = _figures(report)
        if figures is None:
            return False
        moments = self._moments.setdefault((key, figures), [])
        if any(
            (host == report.host or not (host and report.host)) and _is_one_moment(at, report.at)
            for at, host in moments
        ):
            return True
        if len(moments) < _MOST_ALIKE:
            moments.append((report.at, report.host))
        return False


def _figures(report: OOMReport) -> Hashable | None:
    """Return what two kills do not have in common; None for a report that has no more than a line of it."""
    if not report.victims or not (report.tasks or report.counters):
        return None
    sizes = [(victim.name, victim.total_vm_kb, victim.rss_kb) for victim in report.victims.values()]
    free = report.memory_pages.get("free")
    return tuple(sizes), tuple(report.tasks), tuple(report.counters.items()), report.ram_pages, free


def _is_one_moment(one: str, other: str) -> bool:
    """Whether two times may be of one moment: by one clock they are, by two they may be in other time zones."""
    if not (one and other):
        return True
    form = _form(one)
    apart = _seconds_apart(one, other)
    if form == _form(other):
        return one == other if apart is None else apart < 1
    if apart is None:
        return True
    rest = apart % _ZONE_STEP_SECONDS
    return apart <= _MOST_ZONE_SECONDS and min(rest, _ZONE_STEP_SECONDS - rest) <= _SAME_MOMENT_SECONDS


def _form(at: str) -> str:
    """Return how a time is written."""
    if _SINCE_BOOT.fullmatch(at):
        return "since boot"
    return " ".join(_NUMBERS.sub("0", _WORDS.sub("a", at)).split())


def _seconds_apart(one: str, other: str) -> float | None:
    """Return how far apart two times are; None where that cannot be told."""
    if _SINCE_BOOT.fullmatch(one) and _SINCE_BOOT.fullmatch(other):
        return abs(float(one) - float(other))
    # A time without a year is given that of the other.
    known = [apart for apart in (seconds_apart(one, other), seconds_apart(other, one)) if apart is not None]
    return min(map(abs, known), default=None)
