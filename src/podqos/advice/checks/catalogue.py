"""Every check by its id.

Ids are for ever: PQ1xx classes and sizes of workloads, PQ2xx policies, PQ3xx priority and order, PQ4xx the kubelet,
PQ5xx what nodes can hold. A check that is given up keeps its number.
"""

from __future__ import annotations

from typing import TypeAlias

from podqos.advice.checks import (
    amounts,
    capacity,
    classes,
    kubelet,
    policies,
    priority,
    resize,
    sizes,
    toleration,
)
from podqos.advice.checks.check import Check

_MODULES = (amounts, capacity, classes, kubelet, policies, priority, resize, sizes, toleration)

CHECKS: dict[str, Check] = {
    check.id: check
    for check in sorted(
        (each for module in _MODULES for each in vars(module).values() if isinstance(each, Check)),
        key=lambda check: check.id,
    )
}
"""All checks by id, in the order of their ids."""

Facts: TypeAlias = (
    classes.NearlyGuaranteed
    | classes.NothingSet
    | sizes.LimitFarAboveRequest
    | sizes.RequestFollowsLimit
    | sizes.NoMemoryLimit
    | sizes.NoDiskLimit
    | sizes.UnboundedVolume
    | amounts.RequestAboveLimit
    | amounts.RefusedByServer
    | resize.ClassChange
    | sizes.SmallSidecar
    | sizes.FractionalCPU
    | toleration.ComesBack
    | amounts.ZeroAmount
    | amounts.ImplausibleAmount
    | policies.HiddenLimit
    | policies.TwoDefaults
    | policies.Unstated
    | policies.OverQuota
    | priority.NoPriority
    | priority.PriorityContradictsClass
    | priority.SystemPriority
    | priority.UnknownPriorityClass
    | priority.BudgetIsNoShield
    | kubelet.MemoryUnwatched
    | kubelet.SoftAfterHard
    | kubelet.SoftWithoutGrace
    | kubelet.KernelFirst
    | kubelet.SoftNotCovered
    | kubelet.NothingReserved
    | kubelet.SwapHidesPressure
    | kubelet.PodsNotEnforced
    | kubelet.ReclaimsTooMuch
    | kubelet.NoEffect
    | kubelet.GraceCut
    | kubelet.KubeletRefuses
    | kubelet.OverReserved
    | kubelet.QOSCgroupsOff
    | capacity.Overcommitted
    | capacity.Overfull
    | capacity.LargerThanAnyNode
)
"""What a finding can be about, in the order of the checks' ids."""
