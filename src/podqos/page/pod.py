"""The view of a pod, and where pods stand in both orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from podqos.agent.journal import By
from podqos.model.assumption import Assumption
from podqos.model.pod import QOSClass
from podqos.orders.counterfactual import PodChange
from podqos.orders.orders import EvictionPlace, KillPlace
from podqos.page.history import UsageHistory
from podqos.qos.edits import Edit
from podqos.questions.admit import AdmissionReport
from podqos.questions.autopsy_death import Death
from podqos.questions.explain import Explanation
from podqos.questions.rank import IdleContainer, RankReport
from podqos.text.saving import Saving


class PodEdit(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is written into the manifest of a pod; all pods of its workload change with it, on all nodes."""

    pod: str
    """``namespace/name``."""
    container: str = ""
    """Whose amounts; empty: the pod's own."""
    requests: dict[str, str | None] = {}
    """By resource; null removes it."""
    limits: dict[str, str | None] = {}
    priority: int | None = None
    """That of the class to give it."""
    alone: bool = False
    """Whether only this pod changes: one that runs, resized or made anew by itself."""


class PlaceNeighbour(Struct, frozen=True, gc=False, rename="camel"):
    """The pod just before or just after another in a kill order."""

    by: By
    """Whose order: the kubelet's or the kernel's."""
    is_earlier: bool
    """Whether this neighbour is evicted or killed before the pod."""
    pod: str
    container: str
    """In the kernel's order; empty in the kubelet's."""
    text: str
    """Why the first of the two comes first, as ``podqos rank`` says."""


def neighbours_of(pod: str, report: RankReport) -> Iterator[PlaceNeighbour]:
    """Yield whom a pod comes after and before: in the kubelet's order, and its first container in the kernel's."""
    orders: dict[By, Sequence[EvictionPlace | KillPlace]] = {
        By.KUBELET: [place for place in report.eviction_order if place.spared is None],
        By.KERNEL: report.kill_order,
    }
    for by, order in orders.items():
        own = next((number for number, place in enumerate(order) if place.pod == pod), None)
        if own is None:
            continue
        for first, other, is_earlier in ((own - 1, own - 1, True), (own, own + 1, False)):
            if 0 <= other < len(order):
                near = order[other]
                container = near.container if isinstance(near, KillPlace) else ""
                yield PlaceNeighbour(by, is_earlier, near.pod, container, order[first].reason)


class PodStanding(Struct, frozen=True, rename="camel"):
    """Where a pod stands on its node."""

    qos_class: QOSClass
    oom_score_adj: int | None
    """Of the container that is killed first."""
    eviction_place: int | None
    kill_place: int | None
    """Among pods."""
    pods: int
    """How many there are in either order."""
    spared: str | None
    """Why the kubelet does not evict it."""


class PatchText(Struct, frozen=True):
    """A patch, to be copied."""

    kubectl: str | None
    """A command; null where an API server would refuse it, and the object has to be made anew."""
    kustomize: str
    """The contents of a patch file."""
    json: str
    """As RFC 6902; empty where the object is not known here, and so not where its containers stand."""


class SaferEdit(Struct, frozen=True, rename="camel"):
    """A way to save a pod: an edit with which it goes later, or how much less it has to use."""

    change: PodChange
    edits: tuple[Edit, ...]
    """The lines to write, from the object's root; none for a priority, and where it has to use less."""
    patch: PatchText | None
    """Null where a line has no value yet, or the object has no kind."""
    after: PodStanding
    by: By = By.KUBELET
    """Whom it was tried against."""
    remedy: Saving | None = None
    """In words: what to change, what follows, who goes instead, what it costs and rests on."""
    target: str = ""
    """The object to edit, as ``Deployment shop/web``: what made the pod; empty where it has to use less."""
    lines: str = ""
    """The edit as YAML of that object, also where it is not known here and there is no patch."""
    tries: tuple[PodEdit, ...] = ()
    """The same as a what-if, which was computed: the pod is safer with it."""
    then: str = ""
    """Who is first in both orders with it."""
    first_in_both: str = ""
    """The pod that is then evicted and OOM-killed first; empty where these are two."""
    still_first: tuple[By, ...] = ()
    """In whose orders the pod itself is first all the same."""


class WithheldChange(Struct, frozen=True, rename="camel"):
    """A change that is not offered as a fix, and why."""

    text: str
    tries: tuple[PodEdit, ...] = ()
    """The same as a what-if, for who wants it anyway; empty where it cannot be had."""


class PodPage(Struct, frozen=True, rename="camel"):
    """Everything that the view of a pod shows."""

    namespace: str
    name: str
    node: str
    workload: str
    """``Deployment shop/web`` for a replica; empty for a pod of its own."""
    kubernetes_version: str
    explanation: Explanation
    """Class and why, container by container, as stored; scores; cgroups with what is written there."""
    admission: AdmissionReport | None
    """How it got there, step by step; null for a pod that is stored already."""
    standing: PodStanding | None
    """Null where its node's pods are in no order."""
    eviction: EvictionPlace | None
    kills: tuple[KillPlace, ...]
    """Its containers."""
    problem: str
    """Why it is in no order; empty where it is."""
    safer: tuple[SaferEdit, ...]
    """Lines to write first, then what it could use less. Each was tried."""
    deaths: tuple[Death, ...]
    """Of the past."""
    endings: tuple[str, ...]
    """How its containers ended that nobody killed, by its status."""
    idle: tuple[IdleContainer, ...] = ()
    """Its containers without a process, and why: they are in no order of the kernel's."""
    neighbours: tuple[PlaceNeighbour, ...] = ()
    """Whom it comes just after and just before in both orders, with the reason."""
    usage: UsageHistory = UsageHistory()
    """What its containers used over time, with the moments at which they were killed or evicted."""
    assumptions: tuple[Assumption, ...] = ()
    unknown: str = ""
    """Why no amount can be computed for it: what it uses is not known; empty where it is."""
    withheld: tuple[WithheldChange, ...] = ()
    """What would save it, and is not among ``safer``."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "PodPage"


class Places(Struct):
    """Where the pods of a node stand, by ``namespace/name``."""

    evicted: Mapping[str, EvictionPlace]
    kills: Mapping[str, list[KillPlace]]
    """The containers of each pod; pods in the order in which the kernel takes them."""
    killed: Mapping[str, int]

    @staticmethod
    def of(report: RankReport) -> Places:
        """Return the places of a report by pod."""
        kills: dict[str, list[KillPlace]] = {}
        for kill_place in report.kill_order:
            kills.setdefault(kill_place.pod, []).append(kill_place)
        killed = {pod: place for place, pod in enumerate(kills, 1)}
        return Places({place.pod: place for place in report.eviction_order}, kills, killed)

    def standing(self, pod: str) -> PodStanding | None:
        """Return where a pod stands."""
        evicted = self.evicted.get(pod)
        if evicted is None:
            return None
        first = next(iter(self.kills.get(pod, ())), None)
        return PodStanding(
            qos_class=evicted.qos_class,
            oom_score_adj=None if first is None else first.oom_score_adj,
            eviction_place=evicted.place,
            kill_place=self.killed.get(pod),
            pods=len(self.evicted),
            spared=evicted.spared,
        )


def turn(now: PodStanding, after: PodStanding) -> tuple[int, int]:
    """Return by how much a pod goes later than now, in the kubelet's order and in the kernel's; below zero: sooner."""
    if now.spared or after.spared:
        evicted = bool(after.spared) - bool(now.spared)
    else:
        evicted = _later(now.eviction_place, after.eviction_place)
    return evicted, _later(now.kill_place, after.kill_place)


def is_safer(now: PodStanding, after: PodStanding) -> bool:
    """Whether a pod goes later in one order, and sooner in none."""
    turned = turn(now, after)
    return min(turned) >= 0 and max(turned) > 0


def _later(now: int | None, after: int | None) -> int:
    return 0 if now is None or after is None else after - now
