"""Settings that would help, in words."""

from __future__ import annotations

from podqos.placement.overcommit import Overcommit
from podqos.wording import counted, mebibytes


def reserved_words(percent: int, worst: Overcommit, nodes: int, *, has_gate: bool) -> str:
    """Return why ``qosReserved`` would help, and what it does."""
    where = f"on {worst.node}" + (f" and {counted(nodes - 1, 'other node')}" if nodes > 1 else "")
    gate = " (feature gate QOSReserved)" if has_gate else ""
    if (worst.others_to_rest or 0) > 1:
        why = f"the limits of other pods add up to {mebibytes(worst.other_limits)}"
    else:
        why = f"{counted(len(worst.unlimited), 'pod')} without a limit may use all memory"
    why = f"{where} {why}, but Guaranteed pods leave only {mebibytes(worst.remaining)}"
    does = (
        f"this keeps {percent} % of what Guaranteed pods request away from the others, so a burst is OOM-killed among "
        "those others"
    )
    return f"qosReserved memory={percent}%{gate}: {why}; {does}"


def override_words(percent: int, namespace: str, workloads: int) -> str:
    """Return what a ClusterResourceOverride would do instead of editing requests."""
    scope = f"{counted(workloads, 'workload')} of {namespace}"
    does = f"gives {scope} at least the advised memory requests, and new workloads the same ratio"
    return f"ClusterResourceOverride memoryRequestToLimitPercent: {percent} (OpenShift): {does}"
