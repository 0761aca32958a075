"""Durations as Go writes them: ``1m30s``, ``100ms``, ``1.5h``; whole microseconds inside.

Source: Go's time.ParseDuration, which reads every duration in a Kubernetes configuration.
"""

from __future__ import annotations

import re
from fractions import Fraction

from podqos.errors import InputError

_UNIT_USEC = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "µs": Fraction(1),  # U+00B5, micro sign
    "μs": Fraction(1),  # U+03BC, Greek mu
    "ms": Fraction(1000),
    "s": Fraction(10**6),
    "m": Fraction(60 * 10**6),
    "h": Fraction(3600 * 10**6),
}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WHOLE = re.compile(rf"[-+]?(?:{_PART.pattern})+", re.ASCII)


class InvalidDuration(InputError, ValueError):
    """A duration that Go would not parse."""


def parse_duration(text: str) -> int:
    """Return the duration ``text`` in microseconds; what is finer is dropped."""
    if text.lstrip("+-") == "0" and len(text) <= 2:
        return 0
    if _WHOLE.fullmatch(text) is None:
        raise InvalidDuration(f"{text!r} is not a duration", fix="write a number with its unit, such as 30s or 1m30s")
    total = sum((Fraction(number) * _UNIT_USEC[unit] for number, unit in _PART.findall(text)), Fraction(0))
    return -int(total) if text.startswith("-") else int(total)
