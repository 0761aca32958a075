"""What would have saved a pod, in words."""

from __future__ import annotations

from msgspec import Struct

from podqos.agent.journal import By
from podqos.eviction.local_storage import LocalStorageLimit
from podqos.eviction.signals import INODES, PIDS
from podqos.model.resources import EPHEMERAL_STORAGE
from podqos.placement.reasons import Insufficient
from podqos.sim.hindsight import KubeletInTime
from podqos.survival.counterfactual.counterfactual import Counterfactual, PodChange
from podqos.wording import mebibytes
from podqos.words.journal import signed
from podqos.words.qos import edits
from podqos.words.ranking import amount, scheduled


class Saving(Struct, frozen=True):
    """A change to a pod or its node, verified by deciding again."""

    change: str
    """What to change."""
    effect: str
    """What would have followed."""
    saves: bool
    """Whether the pod is spared at that moment with it."""
    edits: tuple[str, ...] = ()
    """Lines of the manifest to write."""


def saving(counterfactual: Counterfactual, by: By) -> Saving:
    """Word a change and its effect."""
    return Saving(
        _change(counterfactual), _effect(counterfactual, by), counterfactual.saves, tuple(edits(counterfactual.edits))
    )


_LESS = {EPHEMERAL_STORAGE: "{} less disk", INODES: "{} fewer inodes", PIDS: "{} fewer processes"}
_LIMITS = {
    LocalStorageLimit.EMPTY_DIR: "A sizeLimit of {} for the emptyDir {}",
    LocalStorageLimit.POD: "An ephemeral-storage limit of {} for {}",
    LocalStorageLimit.CONTAINER: "An ephemeral-storage limit of {} for {}",
}


def _change(counterfactual: Counterfactual) -> str:
    number, resource = counterfactual.amount or 0, counterfactual.resource
    match counterfactual.change:
        case PodChange.LESS:
            return f"Use {_LESS.get(resource, '{} less').format(amount(number, resource))}"
        case PodChange.REQUEST:
            whose = "" if counterfactual.container is None else f" for {counterfactual.container}"
            return f"Request {amount(number, resource)} of {resource}{whose}"
        case PodChange.GUARANTEED:
            return "Make it Guaranteed"
        case PodChange.PRIORITY:
            return f"A priority of {number}"
        case PodChange.LIMIT:
            return _LIMITS[LocalStorageLimit(resource)].format(mebibytes(number), counterfactual.container)


def _effect(counterfactual: Counterfactual, by: By) -> str:
    decision = counterfactual.decision
    parts = []
    if counterfactual.oom_score_adj is not None:
        parts.append(f"oom_score_adj {signed(counterfactual.oom_score_adj)}")
    if decision.instead is not None or not decision.spared:
        whose = "kernel's" if by is By.KERNEL else "kubelet's"
        parts.append(f"place {decision.place} of {decision.others + 1} in the {whose} order")
    verb = "killed" if by is By.KERNEL else "evicted"
    if not decision.spared and decision.instead is not None:
        return f"{', '.join(parts)}, but {decision.instead}, which changes with it, would have been {verb}"
    if not decision.spared:
        still = "still the first" if decision.place == 1 else f"still {verb}"
        return f"{', '.join(parts)}: {still}"
    if counterfactual.over_limit_bytes is not None:
        return f"{', '.join(parts)}, but {mebibytes(counterfactual.over_limit_bytes)} over the limit that comes with it"
    if counterfactual.lacks is not None:
        return f"{', '.join(parts)}, but {_no_room(counterfactual.lacks)}"
    if decision.instead is None:
        return ", ".join([*parts, f"nothing would have been {verb}"])
    if counterfactual.change is PodChange.LESS:
        return f"{', '.join(parts)}; {decision.instead} would have been first"
    return f"{', '.join(parts)}; {decision.instead} would have been {verb} instead"


def _no_room(lacks: Insufficient) -> str:
    wanted, there = (scheduled(n, lacks.resource) for n in (lacks.used + lacks.requested, lacks.capacity))
    return f"it does not fit: the node's pods would request {wanted} of {there} {lacks.resource}"


def kubelet_in_time(found: KubeletInTime, pod: str) -> Saving:
    """Word the threshold with which the kubelet would have acted before the kernel."""
    rate = found.growth_bytes_per_second
    fell = f"memory fell by {mebibytes(rate)}/s; " if rate > 0 else ""
    who = " or ".join("the same pod" if each == pod else each for each in found.evicted)
    return Saving(
        change=f"evictionHard memory.available {mebibytes(found.threshold_bytes)}",
        effect=f"{fell}with this threshold the kubelet always acts in time and evicts {who}",
        saves=pod not in found.evicted,
    )
