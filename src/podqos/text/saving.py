"""What would save a pod, in words: the change, what follows from it, what it costs, and what that rests on.

The changes are tried elsewhere (``orders.counterfactual``, the autopsy); whoever has tried one words it here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from podqos.agent.journal import By
from podqos.amounts import amount, duration, listed, mebibytes, ordinal, scheduled, signed, verb
from podqos.eviction.pods import LocalStorageLimit
from podqos.eviction.signals import INODES, PIDS
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from podqos.model.time_units import SECOND_US
from podqos.orders.counterfactual import HEADROOM_PERCENT, SOME_CPU, Counterfactual, PodChange
from podqos.text.qos import edits

if TYPE_CHECKING:
    from podqos.sim.hindsight import KubeletInTime

FATES = {By.KUBELET: "evicted", By.KERNEL: "OOM-killed"}
_ORDERS = {By.KUBELET: "eviction", By.KERNEL: "OOM kill"}
_MOST_NAMED = 3
_LESS = {EPHEMERAL_STORAGE: "{} less disk", INODES: "{} fewer inodes", PIDS: "{} fewer processes"}
_STORAGE_LIMITS = {
    LocalStorageLimit.EMPTY_DIR: "a sizeLimit of {} for the emptyDir {}",
    LocalStorageLimit.POD: "an ephemeral-storage limit of {} for {}",
    LocalStorageLimit.CONTAINER: "an ephemeral-storage limit of {} for {}",
}


class Saving(Struct, frozen=True, rename="camel"):
    """A change to a pod or its node, verified by deciding again."""

    change: str
    """What to change."""
    effect: str
    """What would have followed."""
    saves: bool
    """Whether the pod is spared with it."""
    edits: tuple[str, ...] = ()
    """Lines of the manifest to write."""
    kind: str = ""
    """What is changed: a ``PodChange``, or ``threshold``."""
    instead: tuple[str, ...] = ()
    """The pods that are killed or evicted instead; empty where none is, or the change does not help."""
    costs: tuple[str, ...] = ()
    """What it takes: requests on the node, throttling, preemption."""
    rests_on: tuple[str, ...] = ()
    """How it was tried, and what of that is assumed."""
    assumed: tuple[str, ...] = ()
    """The pods it depends on whose usage is assumed."""


def change_words(change: PodChange, number: int | None, resource: str = MEMORY, container: str | None = None) -> str:
    """Return a change as an order to the owner of a pod."""
    whose = f" for {container}" if container else ""
    told = amount(number or 0, resource)
    match change:
        case PodChange.LESS:
            return f"use {_LESS.get(resource, '{} less').format(told)}"
        case PodChange.REQUEST:
            return f"request {told} of {resource}{whose}"
        case PodChange.GUARANTEED:
            return "make it Guaranteed"
        case PodChange.PRIORITY:
            return f"a priority of {number}"
        case PodChange.LIMIT if resource == MEMORY:
            return f"a memory limit of {told}{whose}"
        case PodChange.LIMIT:
            return _STORAGE_LIMITS[LocalStorageLimit(resource)].format(mebibytes(number or 0), container)


def saving(tried: Counterfactual, by: By, *, would_have: bool = True, assumed: tuple[str, ...] = ()) -> Saving:
    """Word a change and its effect.

    ``by`` is whose decision was repeated. ``would_have``: it is about what has happened, and not about what will.
    ``assumed`` are the pods whose usage is assumed.
    """
    second, decided = tried.second_run, tried.decision.instead
    instead = second.instead if second is not None else () if decided is None else (decided,)
    change = change_words(tried.change, tried.amount, tried.resource, tried.container)
    return Saving(
        change=f"{change[:1].upper()}{change[1:]}",
        effect=_effect(tried, by, would_have=would_have),
        saves=tried.saves,
        edits=tuple(edits(tried.edits)),
        kind=tried.change.value,
        instead=instead if tried.saves else (),
        costs=tuple(_costs(tried)),
        rests_on=tuple(_rests_on(tried, by, assumed)),
        assumed=assumed,
    )


def saving_words(saving: Saving) -> str:
    """Return a change, its effect and what it costs, in a line that goes on from another."""
    cost = f"; costs {'; '.join(saving.costs)}" if saving.saves and saving.costs else ""
    uses = verb(saving.assumed, "uses", "use")
    assumed = f"; if {listed(saving.assumed)} {uses} as much as assumed" if saving.assumed else ""
    return f"{saving.change[:1].lower()}{saving.change[1:]} → {saving.effect}{cost}{assumed}"


def _costs(tried: Counterfactual) -> Iterator[str]:
    """Yield what a change takes beside what it gives."""
    for is_known in (True, False):
        more = [
            f"{scheduled(number, name)} more {name}"
            for name, number in tried.added.items()
            if (name in tried.rooms_known) is is_known
        ]
        room = "" if tried.lacks is not None else ", which has room" if is_known else ", if it has room"
        if more:
            yield f"{listed(more)} requested on the node{room}"
    if tried.change is PodChange.GUARANTEED:
        limits = sum(edit.replaces is None and edit.path.endswith(f".limits.{CPU}") for edit in tried.edits)
        if limits:
            what = "a new CPU limit" if limits == 1 else "new CPU limits"
            yield f"{what}, above which it is throttled"
    if tried.change is PodChange.PRIORITY:
        yield f"a PriorityClass with value {tried.amount}, whose pods may preempt others"


def _rests_on(tried: Counterfactual, by: By, assumed: Sequence[str]) -> Iterator[str]:
    """Yield how a change was tried, and what of it is assumed."""
    whose = "kernel" if by is By.KERNEL else "kubelet"
    if tried.second_run is not None:
        yield "replayed the whole run with this change"
    else:
        yield f"replayed the {whose}'s decision with this change and the same usage"
    if assumed:
        yield f"the usage of {listed(assumed)} is assumed"
    if tried.change is PodChange.GUARANTEED:
        yield f"memory limits at least {HEADROOM_PERCENT} % above what is in use"
        if any(edit.value is None for edit in tried.edits):
            yield f"a CPU limit of {SOME_CPU} where none is set: choose what it needs"


def _effect(tried: Counterfactual, by: By, *, would_have: bool) -> str:
    decision, second = tried.decision, tried.second_run
    parts = []
    if tried.oom_score_adj is not None:
        parts.append(f"oom_score_adj {signed(tried.oom_score_adj)}")
    if decision.instead is not None or not decision.spared:
        order = _ORDERS.get(by, "eviction")
        parts.append(f"{ordinal(decision.place)} of {decision.others + 1} in the {order} order")
    fate = FATES.get(by, "evicted")
    would = f"would have been {fate}" if would_have else f"is {fate}"
    told = ", ".join(parts)
    but = f"{told}, but " if parts else "but "
    if not decision.spared and decision.instead is not None:
        return f"{but}{decision.instead}, which changes with it, {would}"
    if not decision.spared:
        return f"{told}: still {fate}{' first' if decision.place == 1 else ''}"
    if tried.refused:
        return f"{but}the API server rejects it: {tried.refused}"
    if tried.lacks is not None:
        lacks = tried.lacks
        wanted, there = (scheduled(n, lacks.resource) for n in (lacks.used + lacks.requested, lacks.capacity))
        return f"{but}it does not fit: pods on the node would request {wanted} of {there} {lacks.resource}"
    if second is not None and second.died_us is not None:
        return f"{but}it still dies, {duration(round(second.died_us / SECOND_US, 1))} into the run"
    if second is not None and second.is_pending:
        return f"{but}then no node has room for it"
    if second is not None:
        if second.pending:
            parts.append(f"then no node has room for {_named(second.pending)}")
        dies = (
            f"{_named(second.instead)} {verb(second.instead, 'dies', 'die')}" if second.instead else "no other pod dies"
        )
        return "; ".join(filter(None, (", ".join(parts), f"replayed, {dies} instead")))
    if decision.instead is None:
        is_own_limit = by is By.KERNEL and tried.change is PodChange.LIMIT
        return ", ".join([*parts, "its allocation fits" if is_own_limit else f"nothing {would}"])
    if tried.change is PodChange.LESS:
        return f"{told}; {decision.instead} {'would have been' if would_have else 'is'} first"
    return f"{told}; {decision.instead} {would} instead"


def tried_effect(by: By, place: tuple[int | None, int], instead: str | None, score: int | None, *, spared: str) -> str:
    """Return what follows from an edit that was tried: the place among so many pods, and who has the old one."""
    at, pods = place
    parts = [] if score is None else [f"oom_score_adj {signed(score)}"]
    if by is By.KUBELET and spared:
        parts.append("the kubelet no longer evicts it")
    elif at is not None:
        parts.append(f"{ordinal(at)} of {pods} in the {_ORDERS[by]} order")
    told = ", ".join(parts)
    return told if instead is None else f"{told}; {instead} is {FATES[by]} instead"


def _named(pods: Sequence[str]) -> str:
    more = [f"{len(pods) - _MOST_NAMED} more"] if len(pods) > _MOST_NAMED else []
    return listed([*pods[:_MOST_NAMED], *more])


def kubelet_in_time(found: KubeletInTime, pod: str) -> Saving:
    """Word the threshold with which the kubelet would have acted before the kernel."""
    rate = found.growth_bytes_per_second
    fell = f"memory fell by {mebibytes(rate)}/s; " if rate > 0 else ""
    who = " or ".join("the same pod" if each == pod else each for each in found.evicted)
    return Saving(
        change=f"evictionHard memory.available {mebibytes(found.threshold_bytes)}",
        effect=f"{fell}with this threshold the kubelet always acts in time and evicts {who}",
        saves=pod not in found.evicted,
        kind="threshold",
        instead=tuple(each for each in found.evicted if each != pod),
        costs=("the same amount of allocatable memory",),
        rests_on=("how fast memory fell in this run",),
    )
