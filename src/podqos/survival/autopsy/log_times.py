"""When and where lines were written that other programs than the kernel wrote."""

from __future__ import annotations

import re

from podqos.kernel.message import Message
from podqos.survival.autopsy.eviction_traces import seconds_of
from podqos.survival.autopsy.lazy_pattern import LazyPattern

_SYSLOG = r"[^\W\d_]{3,10}\.? {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,9})?"  # months in any language
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_HEADER = LazyPattern(
    rf"(?:<\d{{1,3}}>)?({_SYSLOG}|{_ISO})(?: ([A-Za-z0-9][A-Za-z0-9._-]{{0,252}}))? "
    r"[A-Za-z][\w.@/()-]{0,63}(?:\[\d{1,10}\])?: "
)
_HOST = LazyPattern(r"([A-Za-z0-9][A-Za-z0-9._-]{0,252}) [A-Za-z][\w.@/-]{0,63}\[\d{1,10}\]: ")
_LOGCAT = r"(?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}(?= {1,8}\d)"
_FIRST = LazyPattern(rf"(?:\[|\(|time=\"?|\"time\":\")?({_ISO}|{_LOGCAT})")
_TIME_FIELD = LazyPattern(rf"\btime=\"?({_ISO})")
_MOST_PREFIX = 600
_MOST_UNIT = 256


def carried(before: str, message: Message) -> tuple[str, str]:
    """Return when and where a message was written: what carried it says so, or what precedes it in its line."""
    text = message.text if not before else before + "\n"
    header = _HEADER.match(text, 0, _MOST_PREFIX)
    if header is not None:
        return message.at or header[1], message.host or header[2] or ""
    if message.at and not message.host and (host := _HOST.match(text, 0, _MOST_PREFIX)):
        return message.at, host[1]
    if not message.at:
        first = _TIME_FIELD.search(text, 0, _MOST_PREFIX) or _FIRST.match(text, 0, _MOST_PREFIX)
        return ("" if first is None else first[1]), message.host
    return message.at, message.host


def unit_before(text: str, match: re.Match[str]) -> str:
    """Return the unit that systemd's words are about: they begin with its name."""
    words = text[max(0, match.start() - _MOST_UNIT) : match.start()].split()
    return words[-1] if words else ""


def seconds_apart(one: str, other: str) -> float | None:
    """Return how much later the second of two moments is; None where that is not known."""
    second = seconds_of(other)
    if second is None:
        second = seconds_of(other, 0.0)  # without a year: that of the other one, which has none either
    if second is None:
        return None
    first = seconds_of(one, second)
    return None if first is None else second - first
