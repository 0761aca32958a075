"""A number that a manifest states as such, or as a percentage of the pods.

Source: Kubernetes v1.36.4 apimachinery/pkg/util/intstr/intstr.go (GetScaledValueFromIntOrPercent).
"""

from __future__ import annotations

IntOrPercent = int | str
"""``2``, or ``"25%"``."""


def scaled(value: IntOrPercent, total: int, *, round_up: bool) -> int:
    """Return a number, or a percentage of a total."""
    if isinstance(value, int):
        return value
    hundredths = int(value.removesuffix("%")) * total
    return -(-hundredths // 100) if round_up else hundredths // 100


def is_int_or_percent(value: object) -> bool:
    """Whether a field holds a number that is not negative, or such a percentage."""
    if isinstance(value, str):
        return value.endswith("%") and value[:-1].isascii() and value[:-1].isdigit()
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
