"""Whether kubelet or kernel acts first while a container grows, and from which growth on, in one sentence."""

from __future__ import annotations

from podqos.agent.reasons import OOMLevel
from podqos.model.resources import MEMORY
from podqos.survival.forecast.forecast import GrowthCourse
from podqos.survival.forecast.turning import TurningRates
from podqos.words.durations import rounded
from podqos.words.ranking import amount

_UNITS = ((1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))
_FEW = 10
"""From so many of a unit on, whole ones are precise enough."""

_OWN_LIMITS = {
    OOMLevel.CONTAINER: "The container's own memory limit",
    OOMLevel.POD: "The pod's own memory limit",
}
_RUNS_OUT = {
    OOMLevel.CONTAINER: "the container reaches its own memory limit",
    OOMLevel.POD: "the pod reaches its own memory limit",
    OOMLevel.CLASS: "the pods of its class reach their memory limit",
    OOMLevel.KUBEPODS: "all pods together reach their memory limit",
    OOMLevel.NODE: "the machine runs out of memory",
}


def first_actor_text(turning: TurningRates, growth: GrowthCourse, interval_seconds: float) -> str:
    """Return up to which growth the kubelet acts first, and from which on the kernel does."""
    up_to, kernel_from = turning.kubelet_up_to, turning.kernel_from
    if turning.is_always_kubelet:
        return "The kubelet acts first at every growth rate."
    if kernel_from == 1:
        own = _OWN_LIMITS.get(growth.out_of_memory)
        if own is not None and growth.thresholds:
            return f"{own} ends the growth at every rate: the kubelet has no reason to act."
        return f"The kernel acts first at every growth rate: {_too_late(growth)}."
    chance = f"it depends on when the kubelet checks, every {rounded(interval_seconds)}"
    lost = kernel_from or turning.kernel_likely_from
    likely = "is first" if kernel_from is not None else "is more likely to be first"
    if up_to is None:
        return f"At any growth {chance}." if lost is None else f"Above {rate_text(lost, up=True)} the kernel {likely}."
    sure = f"Up to {rate_text(up_to)} the kubelet evicts before the kernel kills"
    if lost is None:
        return f"{sure}; above that {chance}."
    if rate_text(up_to) == rate_text(lost, up=True) or lost <= up_to + 1:
        return f"{sure}; above that the kernel {likely}."
    return f"{sure}; above {rate_text(lost, up=True)} the kernel {likely}."


def _too_late(growth: GrowthCourse) -> str:
    """Return why the kubelet never is first."""
    if not growth.thresholds:
        return "no eviction threshold of memory is set"
    first = min(growth.thresholds, key=lambda crossing: crossing.crossed_after_seconds)
    if first.crossed_after_seconds < growth.out_of_memory_after_seconds:
        return "the kubelet may evict none of these pods"
    above = f"{first.signal} is still above the eviction threshold of {amount(first.amount, MEMORY)}"
    return f"{_RUNS_OUT[growth.out_of_memory]} while {above}"


def rate_text(bytes_per_second: int, *, up: bool = False) -> str:
    """Return a growth in two or three digits, rounded to the side on which what is said of it stays true."""
    for unit, name in _UNITS:
        if bytes_per_second >= unit:
            tenths = -(-bytes_per_second * 10 // unit) if up else bytes_per_second * 10 // unit
            if tenths >= _FEW * 10:
                tenths = (-(-tenths // 10) if up else tenths // 10) * 10
            return f"{tenths / 10:g}{name}/s"
    return f"{bytes_per_second} B/s"
