"""What autoscalers decided, in words."""

from __future__ import annotations

from podqos.agent.reasons import (
    AutoscalerDecision,
)
from podqos.model.resources import MEMORY
from podqos.words.ranking import amount


def horizontal(decision: AutoscalerDecision) -> str:
    """Return what a HorizontalPodAutoscaler decided, with the figures it is based on."""
    name = decision.workload.partition("/")[2]
    if decision.desired != decision.current:
        head = f"{name} scaled from {decision.current} to {decision.desired} replicas"
    else:
        head = f"{name} stays at {decision.current} replica{'s' if decision.current != 1 else ''}"
    details = [*_figures(decision), *_held(decision), *_uncounted(decision)]
    return f"{head}: {', '.join(details)}" if details else head


def _figures(decision: AutoscalerDecision) -> list[str]:
    if decision.failed:
        return [f"no usable metric {decision.metric} ({_FAILED.get(decision.failed, decision.failed)})"]
    if decision.usage is None or decision.target is None:
        return []
    usage, target = (_value(decision, value) for value in (decision.usage, decision.target))
    of = " of requests" if decision.percent else " per pod"
    return [f"{decision.metric} {usage}{of}, target {target}"]


def _value(decision: AutoscalerDecision, value: int) -> str:
    if decision.percent:
        return f"{value} %"
    match decision.metric.partition(" ")[0]:
        case "cpu":
            return f"{value}m"
        case "memory":
            return amount(value, MEMORY)
        case _:
            return str(value)


_FAILED = {
    "NoMetrics": "no pod has one yet",
    "NoPods": "there are no pods",
    "NotReady": "no pod with one is ready",
    "NoRequest": "a container has no request for it",
    "NoContainer": "there is no such container",
}
_LIMITS = {
    "TooManyReplicas": "maxReplicas is {}",
    "TooFewReplicas": "minReplicas is {}",
    "ScaleUpLimit": "at most {} at this sync",
    "ScaleDownLimit": "at least {} at this sync",
}
_STABILIZED = {
    "ScaleDownStabilized": "a higher recent recommendation counts",
    "ScaleUpStabilized": "a lower recent recommendation counts",
}


def _held(decision: AutoscalerDecision) -> list[str]:
    """Return what keeps replicas from what the metric asks for."""
    held = []
    asked = decision.proposed
    if asked is not None and asked != decision.desired:
        held.append(f"asks for {asked}")
    if decision.stabilized:
        held.append(_STABILIZED.get(decision.stabilized, decision.stabilized))
    if decision.limited_by:
        held.append(_LIMITS.get(decision.limited_by, decision.limited_by).format(decision.desired))
    return held


def _uncounted(decision: AutoscalerDecision) -> list[str]:
    return [
        f"{count} pod{'s' if count != 1 else ''} {what}"
        for count, what in ((decision.missing, "without a metric"), (decision.unready, "not ready yet"))
        if count
    ]
