"""What a node has, what is taken of it and what is left: the same figures for ``podqos overview`` and the page."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from podqos.agent.journal import By
from podqos.answers.node_state import NodeState, used_bytes
from podqos.answers.places import EvictionPlace, KillPlace, RankReport
from podqos.answers.watched_memory import WatchedMemory
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.node import PODS, Node
from podqos.model.pod import Pod, QOSClass
from podqos.model.resources import CPU, MEMORY, ResourceList, sum_of
from podqos.survival.orders.headroom import Headroom
from podqos.words.first_deaths import FirstEvicted, FirstKilled, why_first_evicted, why_first_killed


class Share(Struct, frozen=True, rename="camel"):
    """One resource of a node: memory in bytes, cpu in thousandths of a core."""

    allocatable: int
    requests: int
    limits: int
    used: int | None = None
    """By pods and system together, where it was measured."""
    used_by_pods: int | None = None
    """By pods alone, which is what allocatable bounds."""


class NextVictim(Struct, frozen=True, rename="camel"):
    """The pod that dies next."""

    pod: str
    qos_class: QOSClass
    reason: str
    """Why it and not the next."""
    explanation: str = ""
    """The same in plain words: a clause that follows "is evicted first:" or "is OOM-killed first:"."""
    is_assumed: bool = False
    """Whether what it uses is assumed."""


class NodeOverview(Struct, frozen=True, rename="camel"):
    """A node: how near it is to running out, and which pods die first."""

    name: str
    pods: int
    most_pods: int | None
    memory: Share
    cpu: Share
    conditions: tuple[str, ...] = ()
    """What is not as it should be: NotReady, MemoryPressure, Unschedulable …"""
    headroom_bytes: int | None = None
    """Memory until the kubelet evicts, by memory.available or allocatableMemory.available, whichever has less; negative
    where it does already; null without figures."""
    is_measured: bool = False
    """Whether usage was measured, or pods are taken to use what they request."""
    next_evicted: NextVictim | None = None
    next_killed: NextVictim | None = None
    headroom: Headroom | None = None
    """The threshold that ``headroomBytes`` is about; null without figures, and where the kubelet has none."""
    problem: str = ""
    """What keeps its pods from being ranked, or contradicts itself; empty where nothing does."""
    kernel_left_bytes: int | None = None
    """What the kernel can still allocate before it kills; null where pods were not ranked. Not more than
    ``headroomBytes``: the kernel kills before the kubelet evicts."""
    first_by: By | None = None
    """Which of the two acts first however slowly memory grows; null where pods were not ranked. A faster growth can
    turn that around: ``podqos forecast``."""


def node_overview(
    node: Node,
    pods: Sequence[Pod],
    state: NodeState | None,
    watched: WatchedMemory | None,
    report: RankReport | None,
) -> NodeOverview:
    """Return a node with its pods; ``watched`` is the memory of ``state``, and ``report`` ranks its pods."""
    evicted = [] if report is None else [place for place in report.eviction_order if place.spared is None]
    killed = () if report is None else report.kill_order
    unmeasured = frozenset() if state is None else state.unmeasured
    return NodeOverview(
        name=node.name,
        pods=len(pods),
        most_pods=node.status.allocatable[PODS].value if PODS in node.status.allocatable else None,
        memory=_share(node, pods, MEMORY, state),
        cpu=_share(node, pods, CPU, None),
        conditions=tuple(_conditions(node)),
        headroom_bytes=None if watched is None else watched.headroom_bytes,
        headroom=None if watched is None else watched.headroom,
        kernel_left_bytes=None if report is None else report.node.kernel_left_bytes,
        is_measured=state is not None and state.is_kubelets,
        next_evicted=_evicted(evicted[:2], unmeasured),
        next_killed=_killed(killed, unmeasured),
        first_by=None if report is None else first_by(report),
        problem="" if report is None else report.problem,
    )


def first_by(report: RankReport) -> By:
    """Return who acts first on a node while memory grows slowly."""
    return By.KERNEL if report.node.kernel_first else By.KUBELET


def _evicted(places: Sequence[EvictionPlace], unmeasured: Collection[str]) -> NextVictim | None:
    """Return the pod that is evicted first; the one after it says why."""
    if not places:
        return None
    first, *rest = places
    following = next(iter(rest), None)
    is_assumed = first.pod in unmeasured
    explanation = why_first_evicted(
        FirstEvicted(
            priority=first.priority,
            usage=first.usage,
            request=first.request,
            before_next_by=None if following is None else first.before_next_by,
            next_priority=None if following is None else following.priority,
            is_assumed=is_assumed,
        )
    )
    return NextVictim(first.pod, first.qos_class, first.reason, explanation, is_assumed)


def _killed(places: Sequence[KillPlace], unmeasured: Collection[str]) -> NextVictim | None:
    """Return the pod of the container that is OOM-killed first; the one after it says why."""
    if not places:
        return None
    first, following = places[0], places[1] if len(places) > 1 else None
    is_assumed = first.pod in unmeasured
    explanation = why_first_killed(
        FirstKilled(
            container=first.container if any(place.pod == first.pod for place in places[1:]) else "",
            qos_class=first.qos_class,
            used_bytes=first.used_bytes,
            oom_score_adj=first.oom_score_adj,
            before_next_by=first.before_next_by,
            next_used_bytes=None if following is None else following.used_bytes,
            next_oom_score_adj=None if following is None else following.oom_score_adj,
            is_assumed=is_assumed,
        )
    )
    return NextVictim(first.pod, first.qos_class, first.reason, explanation, is_assumed)


def _share(node: Node, pods: Iterable[Pod], resource: str, state: NodeState | None) -> Share:
    def amount(of: ResourceList) -> int:
        found = of.get(resource)
        return 0 if found is None else found.milli_value if resource == CPU else found.value

    own = list(pods)
    return Share(
        allocatable=amount(node.status.allocatable),
        requests=amount(sum_of(map(pod_requests, own))),
        limits=amount(sum_of(map(pod_limits, own))),
        used=None if state is None or not state.is_kubelets else used_bytes(state),
        used_by_pods=None if state is None or not state.is_kubelets else state.snapshot.pods_working_set_bytes,
    )


def _conditions(node: Node) -> Iterator[str]:
    """Yield what is not as it should be."""
    for condition in node.status.conditions:
        if condition.type == "Ready":
            if condition.status != "True":
                yield "NotReady"
        elif condition.status == "True":
            yield condition.type
    if node.spec.unschedulable:
        yield "Unschedulable"
