"""What autoscalers decided, in words."""

from __future__ import annotations

from collections.abc import Sequence

from podqos.agent.reasons import (
    AutoscalerDecision,
    NodeGroupScaled,
    NodeNeeded,
    NodeOfGroup,
    NodeRemovedFrom,
    NodeUnneeded,
    NoNodeGroup,
    ResourceChange,
    VerticalUpdate,
)
from podqos.model.resources import CPU, MEMORY
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


# ---- the cluster autoscaler ------------------------------------------------------------------------------------------


NodeReasons = NodeGroupScaled | NoNodeGroup | NodeUnneeded | NodeNeeded | NodeOfGroup | NodeRemovedFrom


def of_nodes(because: NodeReasons) -> str:
    """Return what the cluster autoscaler decided."""
    match because:
        case NodeGroupScaled():
            return _enlarged(because)
        case NoNodeGroup(pods=pods, refused=refused):
            groups = [f"{name} {_NO_HELP.get(why, why)}" for name, why in refused.items()]
            return f"no node group helps {_pods(pods)}: {', '.join(groups)}"
        case NodeUnneeded():
            moved = f", {_pods(because.moved)} moved" if because.moved else ", empty"
            size = f"group {because.group} from {because.before} to {because.after} nodes"
            used = f"{because.used_percent} % of {because.resource} requested"
            return f"{because.node} is being removed: {used}, unneeded for {because.seconds:g} s{moved}; {size}"
        case NodeOfGroup(node=node, group=group):
            return f"{node} of group {group}"
        case NodeNeeded(node=node, pod=pod, why=why, used_percent=percent, resource=resource):
            little = f" though {percent} % of {resource} is requested" if resource else ""
            who = f"{pod} " if pod else ""
            return f"{node} is kept{little}: {who}{_KEPT.get(why, why)}"
        case NodeRemovedFrom(node=node):
            return f"{node} is being removed"


def _enlarged(scaled: NodeGroupScaled) -> str:
    others = [f"{name} {waste} %" for name, waste in scaled.compared.items() if name != scaled.group]
    compared = f"; {scaled.expander}: {scaled.compared[scaled.group]} % unused, {', '.join(others)}" if others else ""
    after = f"{scaled.provision_seconds:g} s"
    return (
        f"node group {scaled.group} enlarged from {scaled.before} to {scaled.after} nodes for {_pods(scaled.pods)}, "
        f"which join in {after}{compared}"
    )


def _pods(keys: Sequence[str]) -> str:
    first = keys[0].partition("/")[2]
    return first if len(keys) == 1 else f"{first} and {len(keys) - 1} more pod{'s' if len(keys) > _TWO else ''}"


_TWO = 2
_NO_HELP = {"MaxSizeReached": "has its maximum size", "DoesNotFit": "has nodes that do not take them"}
_KEPT = {
    "NoPlaceToMovePods": "its pods fit nowhere else",
    "EvictionTimedOut": "its pods could not be evicted within 2 min",
    "NotReplicated": "has no controller",
    "LocalStorageRequested": "has local storage",
    "NotSafeToEvictAnnotation": "is annotated as not safe to evict",
    "UnmovableKubeSystemPod": "is a young pod of kube-system without a PodDisruptionBudget",
    "NotEnoughPdb": "may not be disrupted (PodDisruptionBudget)",
}


# ---- the VerticalPodAutoscaler ---------------------------------------------------------------------------------------


def vertical(update: VerticalUpdate) -> str:
    """Return what a VerticalPodAutoscaler changes about a pod."""
    why = f" ({_UPDATED.get(update.why, update.why)})" if update.why else ""
    changes = [_change(change, alone=len({one.container for one in update.changes}) == 1) for change in update.changes]
    return f"VerticalPodAutoscaler recommends {', '.join(changes)}{why}"


_UPDATED = {
    "OutsideRecommendedRange": "the request is outside the recommended range",
    "QuickOOM": "OOM-killed within 10 min of its start",
    "LongLived": "12 h old, 10 % or more to change",
}


def _change(change: ResourceChange, *, alone: bool) -> str:
    of = "" if alone else f" of {change.container}"
    resource = change.resource
    before, after = (_amount(value, resource) for value in (change.request_before, change.request_after))
    limit = ""
    if change.limit_before != change.limit_after:
        limit = f" (limit {_amount(change.limit_before, resource)} → {_amount(change.limit_after, resource)})"
    return f"{resource}{of} {before} → {after}{limit}"


def _amount(value: int | None, resource: str) -> str:
    if value is None:
        return "none"
    return f"{value}m" if resource == CPU else amount(value, MEMORY)
