"""How a guard is, in words."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.agent.guard_status import GuardStatus
from podqos.eviction.signals import SIGNALS
from podqos.report.text.style import Style, columns, wrapped
from podqos.words.durations import two_units
from podqos.words.guard_status import API, is_away, status_facts
from podqos.words.ranking import amount


def status_lines(status: GuardStatus, now_us: int, style: Style) -> list[str]:
    """Return the status of a guard."""
    lines = [
        f"{style.strong(name.ljust(12))}{style.alarm(text) if name == API and is_away(status) else text}"
        for name, text in status_facts(status, now_us)
    ]
    if status.is_stale(now_us):
        gone = f"This guard has stopped or is stuck: its last update was {two_units(now_us - status.updated_us)} ago."
        lines = [style.alarm(gone), *lines]
    if status.signals:
        lines += ["", *_thresholds(status, style)]
    for each in (note for note in status.notes if note not in status.unprotected):
        lines += wrapped(each, style, "  ", "! ")
    return lines


def _thresholds(status: GuardStatus, style: Style) -> Iterator[str]:
    rows = []
    for signal in status.signals:
        resource = SIGNALS[signal.signal].resource
        left = signal.available - signal.threshold
        room = amount(left, resource) if left >= 0 else style.alarm(f"−{amount(-left, resource)}")
        shown = [amount(number, resource) for number in (signal.threshold, signal.available)]
        rows.append(
            (signal.signal.value, "hard" if signal.hard else "soft", *shown, room, amount(signal.capacity, resource))
        )
    return iter(columns(("SIGNAL", "KIND", "THRESHOLD", "AVAILABLE", "HEADROOM", "CAPACITY"), rows, style))
