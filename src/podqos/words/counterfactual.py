"""What would have saved a pod, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from podqos.agent.journal import By
from podqos.eviction.local_storage import LocalStorageLimit
from podqos.eviction.signals import INODES, PIDS
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from podqos.model.time_units import SECOND_US
from podqos.placement.reasons import Insufficient
from podqos.survival.counterfactual.counterfactual import Counterfactual, PodChange
from podqos.survival.counterfactual.pod_changes import HEADROOM_PERCENT, SOME_CPU
from podqos.wording import listed, mebibytes, ordinal, verb
from podqos.words.durations import duration
from podqos.words.journal import signed
from podqos.words.qos import edits
from podqos.words.ranking import amount, scheduled

if TYPE_CHECKING:
    from podqos.sim.hindsight import KubeletInTime


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


class Telling(Struct, frozen=True, gc=False):
    """How a change is told."""

    by: By
    """Whose decision was repeated."""
    would_have: bool = True
    """Whether it is about what has happened, and not about what will."""
    assumed: tuple[str, ...] = ()
    """The pods whose usage is assumed."""


def saving(counterfactual: Counterfactual, telling: Telling) -> Saving:
    """Word a change and its effect."""
    second = counterfactual.second_run
    instead: tuple[str, ...] = ()
    if counterfactual.saves:
        decided = counterfactual.decision.instead
        instead = second.instead if second is not None else () if decided is None else (decided,)
    return Saving(
        _change(counterfactual),
        _effect(counterfactual, telling),
        counterfactual.saves,
        tuple(edits(counterfactual.edits)),
        kind=counterfactual.change.value,
        instead=instead,
        costs=tuple(_costs(counterfactual)),
        rests_on=tuple(_rests_on(counterfactual, telling)),
        assumed=telling.assumed,
    )


def saving_words(saving: Saving) -> str:
    """Return a change, its effect and what it costs, in a line that goes on from another."""
    cost = f"; costs {'; '.join(saving.costs)}" if saving.saves and saving.costs else ""
    assumed = (
        f"; if {listed(saving.assumed)} {verb(saving.assumed, 'uses', 'use')} as much as assumed"
        if saving.assumed
        else ""
    )
    return f"{saving.change[:1].lower()}{saving.change[1:]} → {saving.effect}{cost}{assumed}"


def _costs(counterfactual: Counterfactual) -> Iterator[str]:
    """Yield what a change takes beside what it gives."""
    for is_known in (True, False):
        more = [
            f"{scheduled(number, name)} more {name}"
            for name, number in counterfactual.added.items()
            if (name in counterfactual.rooms_known) is is_known
        ]
        room = "" if counterfactual.lacks is not None else ", which has room" if is_known else ", if it has room"
        if more:
            yield f"{listed(more)} requested on the node{room}"
    if counterfactual.change is PodChange.GUARANTEED:
        added = [
            edit for edit in counterfactual.edits if edit.replaces is None and edit.path.endswith(f".limits.{CPU}")
        ]
        if len(added) == 1:
            yield "a new CPU limit, above which it is throttled"
        elif added:
            yield "new CPU limits, above which it is throttled"
    if counterfactual.change is PodChange.PRIORITY:
        yield f"a PriorityClass with value {counterfactual.amount}, whose pods may preempt others"


def _rests_on(counterfactual: Counterfactual, telling: Telling) -> Iterator[str]:
    """Yield how a change was tried, and what of it is assumed."""
    whose = "kernel" if telling.by is By.KERNEL else "kubelet"
    if counterfactual.second_run is not None:
        yield "replayed the whole run with this change"
    else:
        yield f"replayed the {whose}'s decision with this change and the same usage"
    if telling.assumed:
        yield f"the usage of {listed(telling.assumed)} is assumed"
    if counterfactual.change is PodChange.GUARANTEED:
        yield f"memory limits at least {HEADROOM_PERCENT} % above what is in use"
        if any(edit.value is None for edit in counterfactual.edits):
            yield f"a CPU limit of {SOME_CPU} where none is set: choose what it needs"


FATES = {By.KUBELET: "evicted", By.KERNEL: "OOM-killed"}
_MOST_NAMED = 3
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
        case PodChange.LIMIT if resource == MEMORY:
            whose = "" if counterfactual.container is None else f" for {counterfactual.container}"
            return f"A memory limit of {mebibytes(number)}{whose}"
        case PodChange.LIMIT:
            return _LIMITS[LocalStorageLimit(resource)].format(mebibytes(number), counterfactual.container)


def _effect(counterfactual: Counterfactual, telling: Telling) -> str:
    decision, by = counterfactual.decision, telling.by
    parts = []
    if counterfactual.oom_score_adj is not None:
        parts.append(f"oom_score_adj {signed(counterfactual.oom_score_adj)}")
    if decision.instead is not None or not decision.spared:
        order = "OOM kill" if by is By.KERNEL else "eviction"
        parts.append(f"{ordinal(decision.place)} of {decision.others + 1} in the {order} order")
    fate = FATES.get(by, "evicted")
    would = f"would have been {fate}" if telling.would_have else f"is {fate}"
    told = ", ".join(parts)
    but = f"{told}, but " if parts else "but "
    second = counterfactual.second_run
    if not decision.spared and decision.instead is not None:
        return f"{but}{decision.instead}, which changes with it, {would}"
    if not decision.spared:
        still = f"still {fate} first" if decision.place == 1 else f"still {fate}"
        return f"{told}: {still}"
    if counterfactual.refused:
        return f"{but}the API server rejects it: {counterfactual.refused}"
    if counterfactual.lacks is not None:
        return f"{but}{_no_room(counterfactual.lacks)}"
    if second is not None and second.died_us is not None:
        return f"{but}it still dies, {duration(round(second.died_us / SECOND_US, 1))} into the run"
    if second is not None and second.is_pending:
        return f"{but}then no node has room for it"
    if second is not None and second.pending:
        parts.append(f"then no node has room for {_named(second.pending)}")
        told = ", ".join(parts)
    if second is not None and not second.instead:
        return "; ".join([*([told] if told else []), "replayed, no other pod dies instead"])
    if second is not None:
        return "; ".join(
            [
                *([told] if told else []),
                f"replayed, {_named(second.instead)} {verb(second.instead, 'dies', 'die')} instead",
            ]
        )
    if decision.instead is None:
        nothing = f"nothing {would}" if by is not By.KERNEL or counterfactual.change is not PodChange.LIMIT else ""
        return ", ".join(filter(None, [*parts, nothing or "its allocation fits"]))
    if counterfactual.change is PodChange.LESS:
        first = "would have been first" if telling.would_have else "is first"
        return f"{told}; {decision.instead} {first}"
    return f"{told}; {decision.instead} {would} instead"


def tried_effect(by: By, place: tuple[int | None, int], instead: str | None, score: int | None, *, spared: str) -> str:
    """Return what follows from an edit that was tried: the place among so many pods, and who has the old one."""
    at, pods = place
    order, fate = ("OOM kill", "OOM-killed") if by is By.KERNEL else ("eviction", "evicted")
    parts = [] if score is None else [f"oom_score_adj {signed(score)}"]
    if by is By.KUBELET and spared:
        parts.append("the kubelet no longer evicts it")
    elif at is not None:
        parts.append(f"{ordinal(at)} of {pods} in the {order} order")
    told = ", ".join(parts)
    return told if instead is None else f"{told}; {instead} is {fate} instead"


def _named(pods: Sequence[str]) -> str:
    more = [f"{len(pods) - _MOST_NAMED} more"] if len(pods) > _MOST_NAMED else []
    return listed([*pods[:_MOST_NAMED], *more])


def _no_room(lacks: Insufficient) -> str:
    wanted, there = (scheduled(n, lacks.resource) for n in (lacks.used + lacks.requested, lacks.capacity))
    return f"it does not fit: pods on the node would request {wanted} of {there} {lacks.resource}"


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
