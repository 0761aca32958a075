"""Settings that would help, in words."""

from __future__ import annotations

from podqos.placement.overcommit import Overcommit
from podqos.wording import counted, mebibytes


def reserved_words(percent: int, worst: Overcommit, nodes: int, *, has_gate: bool) -> str:
    """Return why ``qosReserved`` would help, and what it does."""
    where = f"on {worst.node}" + (f" and {counted(nodes - 1, 'other node')}" if nodes > 1 else "")
    rest = mebibytes(worst.remaining)
    if (worst.others_to_rest or 0) > 1:
        why = f"limits of pods that are not Guaranteed add up to {mebibytes(worst.other_limits)} {where}"
        why = f"{why}, and Guaranteed ones leave {rest}"
    else:
        why = f"{counted(len(worst.unlimited), 'pod')} {where} may use all memory, and Guaranteed ones leave {rest}"
    gate = " (with the feature gate QOSReserved)" if has_gate else ""
    does = f"qosReserved memory={percent}%{gate} keeps {percent} % of what Guaranteed pods request from all others"
    return f"{why}: {does}; above that the kernel kills among those others"


def override_words(percent: int, namespace: str, workloads: int) -> str:
    """Return what a ClusterResourceOverride would do instead of editing requests."""
    does = f"memoryRequestToLimitPercent: {percent} gives every container at least the request that is advised"
    scope = f"on OpenShift, one setting does for {counted(workloads, 'workload')} of {namespace}"
    return f"{scope}: {does}, now and in whatever is created there later"
