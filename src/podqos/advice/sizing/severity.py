"""How far what a workload asks for is from what it should ask for, in the four steps of robusta-dev/krr.

The distance counts, not its direction: too much is paid for, too little fails. An amount that is missing, or should not
be there, is a warning.

Source: robusta-dev/krr robusta_krr/core/models/severity.py: 0.5, 0.25 and 0.1 cores; 500, 250 and 100 MiB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

from msgspec import Struct

from podqos.advice.sizing.applying import ContainerAdvice
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY

_MIB = 1 << 20


class Severity(StrEnum):
    """How urgent advice is, the worst first."""

    CRITICAL = "critical"
    WARNING = "warning"
    OK = "ok"
    GOOD = "good"


# From this difference on: thousandths of a core, bytes.
_STEPS = {
    CPU: ((Severity.CRITICAL, 500), (Severity.WARNING, 250), (Severity.OK, 100)),
    MEMORY: ((Severity.CRITICAL, 500 * _MIB), (Severity.WARNING, 250 * _MIB), (Severity.OK, 100 * _MIB)),
}
_ORDER = list(Severity)


class Distance(Struct, frozen=True, rename="camel"):
    """The amount that is furthest from what is advised."""

    severity: Severity
    container: str = ""
    field: str = ""
    """``requests.memory`` and the like; empty where nothing differs."""
    before: Quantity | None = None
    advised: Quantity | None = None


def distance(containers: Iterable[ContainerAdvice]) -> Distance:
    """Return the worst difference of a workload."""
    return min(_distances(containers), key=lambda each: _ORDER.index(each.severity), default=Distance(Severity.GOOD))


def _distances(containers: Iterable[ContainerAdvice]) -> Iterator[Distance]:
    for container in containers:
        sides = (
            ("requests", container.requests_before, container.requests),
            ("limits", container.limits_before, container.limits),
        )
        for side, before, after in sides:
            for resource in (MEMORY, CPU):
                old, new = before.get(resource), after.get(resource)
                if old != new:
                    severity = _severity(resource, old, new)
                    yield Distance(severity, container.container, f"{side}.{resource}", old, new)


def _severity(resource: str, old: Quantity | None, new: Quantity | None) -> Severity:
    if old is None or new is None:
        return Severity.WARNING
    difference = abs(_count(resource, new) - _count(resource, old))
    return next((severity for severity, least in _STEPS[resource] if difference >= least), Severity.GOOD)


def _count(resource: str, amount: Quantity) -> int:
    return amount.milli_value if resource == CPU else amount.value
