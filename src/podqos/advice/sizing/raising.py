"""Raise sizes that did not pass their trial, to what recorded usage needs, and no further.

An OOM kill at its own limit: the limit covers the most that was used, with a margin. An eviction: memory is requested
up to the limit, or the most that was used, so that the pod is never above its request. Throttled for longer than
before: the CPU limit is the one before, or covers the most that was used.

Where that is not enough, what ran short is no longer lowered at all: the node has no more to give.
"""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.sizing.applying import ContainerAdvice
from podqos.advice.sizing.sizing import UsageHistory, risk_of
from podqos.model.pod import QOSClass
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceList, ResourceRequirements

_MIB = 1 << 20
_CPU_STEP_MILLI = 10
_MARGIN = Fraction(6, 5)


class Shortage(Struct, frozen=True):
    """What ran short in a trial."""

    killed: bool = False
    evicted: bool = False
    throttled: bool = False


def raised(
    advice: ContainerAdvice, usage: UsageHistory | None, short: Shortage, qos_class: QOSClass
) -> ContainerAdvice:
    """Return the advice about a container with what ran short raised, as far as it is known to what."""
    if usage is None:
        return advice
    requests, limits = dict(advice.requests), dict(advice.limits)
    most_bytes, most_milli = max(usage.memory_bytes, default=0), max(usage.cpu_milli, default=0)
    if short.killed and most_bytes and MEMORY in limits:
        limits[MEMORY] = max(limits[MEMORY], _memory(most_bytes * _MARGIN))
    if (short.killed or short.evicted) and most_bytes:
        wanted = limits.get(MEMORY, _memory(most_bytes * _MARGIN))
        requests[MEMORY] = max(requests.get(MEMORY, wanted), wanted)
    if short.throttled and most_milli and CPU in limits:
        wanted = _cpu(most_milli)
        before = advice.limits_before.get(CPU)
        limits[CPU] = max(limits[CPU], wanted if before is None else min(before, wanted))
    if qos_class is QOSClass.GUARANTEED:
        for name in (CPU, MEMORY):
            if name in limits and name in requests:
                requests[name] = limits[name]
    if (requests, limits) == (advice.requests, advice.limits):
        return advice
    return with_amounts(advice, usage, requests, limits)


def not_lowered(advice: ContainerAdvice, usage: UsageHistory | None, short: Shortage) -> ContainerAdvice:
    """Return the advice about a container without lowering what ran short."""
    requests, limits = dict(advice.requests), dict(advice.limits)
    names = [CPU] * short.throttled + [MEMORY] * (short.killed or short.evicted)
    for name in names:
        for amounts, before in ((requests, advice.requests_before), (limits, advice.limits_before)):
            if name in before and name in amounts:
                amounts[name] = max(amounts[name], before[name])
        if name in limits and name in requests:
            limits[name] = max(limits[name], requests[name])
    return with_amounts(advice, usage, requests, limits)


def with_amounts(
    advice: ContainerAdvice, usage: UsageHistory | None, requests: ResourceList, limits: ResourceList
) -> ContainerAdvice:
    """Return the advice about a container with other amounts."""
    risk = advice.risk if usage is None else risk_of(usage, ResourceRequirements(requests=requests, limits=limits))
    return replace(advice, requests=requests, limits=limits, risk=risk)


def _memory(amount: Fraction) -> Quantity:
    return Quantity.of_units(-(-amount // _MIB) * _MIB, "BinarySI")


def _cpu(milli: int) -> Quantity:
    return Quantity.of_milli(-(-milli // _CPU_STEP_MILLI) * _CPU_STEP_MILLI)
