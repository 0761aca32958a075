"""``podqos rank``: both kill orders of a node's pods, evicted by the kubelet and killed by the kernel.

Each place has the numbers that decide it and the reason in words. ``orders`` decides; what saves the first of each
order is tried (``questions.saving``). The shapes are stable: fields are added, never renamed or removed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import groupby, islice, pairwise
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from podqos.amounts import amount, counted, listed, mebibytes
from podqos.errors import InvalidArgument
from podqos.eviction.ranking import Policy, Ranking, can_rank
from podqos.eviction.signals import SIGNALS, Layout, Signal
from podqos.kernel.build import PAGE_BYTES
from podqos.model.assumption import Assumption
from podqos.model.owners import controllers
from podqos.model.pod import Pod, QOSClass
from podqos.model.quantity import NANOS
from podqos.model.resources import MEMORY
from podqos.model.snapshot import NodeUsage, Snapshot
from podqos.naming import naming, stated_with
from podqos.objects.objects import Objects
from podqos.orders.memory import Headroom, Outlook, outlook
from podqos.orders.orders import Disagreement, EvictionPlace, KillPlace, Orders, both_orders
from podqos.orders.pods import without_process
from podqos.placement.workloads import POD
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.qos.classes import qos_class_of
from podqos.qos.oom import KUBELET_OOM_SCORE_ADJ
from podqos.questions.node import NodeState, headroom_sentence, node_state, watched_memory
from podqos.questions.saving import NodeNow, PodRemedies
from podqos.text.components import ComponentReport, component_table, components
from podqos.text.qos import oom_rule
from podqos.text.saving import FATES, saving_words
from podqos.text.style import Style, columns, wrapped
from podqos.text.tables import Table
from podqos.text.tables import csv_table as csv_of
from podqos.text.why import why_evicted, why_killed

Place = TypeVar("Place", EvictionPlace, KillPlace)
SHOWN = 10
"""Rows of each order that a table has."""
_SHOWN_PAIRS = 5


class NodeSummary(Struct, frozen=True, rename="camel"):
    """The node, and how much memory is left for kubelet and kernel."""

    name: str
    memory_bytes: int
    swap_bytes: int
    available_bytes: int
    """``memory.available``, as the kubelet counts."""
    kernel_left_bytes: int
    """What the kernel can still allocate before it kills, with page cache reclaimed; negative where it is past that."""
    oom_cgroup: str
    """Where memory runs out first: ``/`` for the whole machine."""
    oom_total_bytes: int
    """What thousandths of oom_score_adj are of there."""
    headroom: Headroom | None = None
    """What is left until the kubelet evicts, by the signal with least; null where it has no threshold of memory."""
    kernel_first: bool = False
    """Whether the kernel kills before any threshold is met, however slowly memory grows."""
    pods_memory_bytes: int | None = None
    """What all pods may use together, the capacity of ``allocatableMemory.available``; null where not enforced."""
    pods_available_bytes: int | None = None
    """``allocatableMemory.available``, as the kubelet counts."""


class IdleContainer(Struct, frozen=True, rename="camel"):
    """A container without a process: the kernel's order does not have it, the kubelet's counts what its pod uses."""

    pod: str
    container: str
    reason: str
    """What its node says, such as CrashLoopBackOff; empty where it has not started yet."""


class RankedWorkload(Struct, frozen=True, rename="camel"):
    """A workload in both orders. Places count pods, as in ``evictionOrder``."""

    kind: str
    """Pod for a pod that no controller has made."""
    name: str
    """``namespace/name``."""
    pods: int
    """How many of them the node runs."""
    qos_classes: tuple[QOSClass, ...]
    """One, unless its pods differ."""
    first_evicted: int | None
    """The place of the first pod to be evicted; null where the kubelet spares all of them."""
    last_evicted: int | None
    first_killed: int | None
    """The place of the first pod to be OOM-killed; null where none has a process."""
    last_killed: int | None
    spared: str | None
    """Why the kubelet evicts none of them."""


class RankReport(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos rank -o json``."""

    kubernetes_version: str
    signal: str
    resource: str
    """What ``usage`` and ``request`` are of: memory, ephemeral-storage, inodes or pids."""
    policy: Policy
    hard: bool
    node: NodeSummary
    eviction_order: tuple[EvictionPlace, ...]
    kill_order: tuple[KillPlace, ...]
    disagreements: tuple[Disagreement, ...]
    reversed_pairs: int
    """How many pairs of pods the two orders rank differently, neighbours or not; 0 if they agree."""
    components: tuple[ComponentReport, ...]
    """The processes of the node itself, which are in neither order."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "SurvivalOrders"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""
    without_process: tuple[IdleContainer, ...] = ()
    """What the kernel could not kill: it has not started, waits to be started again, or has ended."""
    problem: str = ""
    """What contradicts itself: pods of a cluster that are assumed to use more than their node has."""
    remedies: tuple[PodRemedies, ...] = ()
    """What saves the pod that is first in each order."""
    workloads: tuple[RankedWorkload, ...] = ()
    """The workloads in the order in which they lose a pod to the kubelet."""

    def first(self, top: int | None) -> RankReport:
        """Return the report with the first of each order."""
        return replace(
            self,
            eviction_order=self.eviction_order[:top],
            kill_order=self.kill_order[:top],
            workloads=self.workloads[:top],
        )


def rank(
    source: Objects | NodeState,
    *,
    signal: Signal = Signal.MEMORY,
    policy: Policy | None = None,
    hard: bool = True,
    layout: Layout = Layout.SINGLE,
    cgroup_version: CgroupVersion = CgroupVersion.V2,
    remedies: bool = True,
) -> RankReport:
    """Rank the pods of a node twice: ``source`` is its state (``node_state``), or objects that are all on one node.

    ``signal`` is what runs short, ``hard`` whether a hard threshold was met. ``policy`` None is that of the Kubernetes
    version. ``remedies``: whether to try what saves the first pod of each order.
    """
    state = node_state(source)
    profile = state.profile
    ranking = Ranking(signal, layout, policy, hard, profile)
    if not can_rank(ranking):
        what = f"Kubernetes {profile.version_text} evicts no pods for {signal}"
        raise InvalidArgument(what, where=naming("signal"), fix="use 1.14 or newer, or another policy")
    watched = watched_memory(state, cgroup_version)
    seen = outlook(state.snapshot, watched.settings, profile, watched.exhaustion.thresholds)
    if not state.is_of_cluster:
        state.check_fits()
    orders = both_orders(state.snapshot, ranking, watched.settings, seen.domain)
    found = NodeNow(state, orders, watched.settings).first() if remedies else ()
    others = state.neighbours
    report = rank_report(state.snapshot, orders, seen, state.kubelet.config.oom_score_adj, state.owners)
    report = replace(
        report,
        assumptions=state.resting_on,
        problem=state.problem,
        # What is said is about the pods that were asked about; places stay those among all pods.
        eviction_order=tuple(place for place in report.eviction_order if place.pod not in others),
        kill_order=tuple(place for place in report.kill_order if place.pod not in others),
        without_process=tuple(container for container in report.without_process if container.pod not in others),
        remedies=tuple(remedy for remedy in found if remedy.pod not in others),
        disagreements=tuple(
            pair for pair in report.disagreements if not {pair.evicted_first, pair.killed_first} <= others
        ),
    )
    return replace(report, workloads=_workloads(report.eviction_order))


def rank_report(
    snapshot: Snapshot,
    orders: Orders,
    seen: Outlook,
    kubelet_oom_score_adj: int = KUBELET_OOM_SCORE_ADJ,
    owners: Mapping[str, tuple[str, str]] | None = None,
) -> RankReport:
    """Return both orders of all pods of a node; ``owners`` are their workloads, by uid, where that is known."""
    ranking, node = orders.ranking, snapshot.node
    first_oom_bytes = seen.first_oom.until_oom_bytes
    return RankReport(
        kubernetes_version=ranking.profile.version_text,
        signal=ranking.signal,
        resource=SIGNALS[ranking.signal].resource,
        policy=ranking.policy or Policy(ranking.profile.eviction_ranking),
        hard=ranking.hard,
        node=NodeSummary(
            name=node.name,
            memory_bytes=node.memory_bytes,
            swap_bytes=node.swap_bytes,
            available_bytes=seen.available_bytes,
            kernel_left_bytes=first_oom_bytes,
            oom_cgroup=seen.domain.path,
            oom_total_bytes=seen.domain.total_bytes,
            headroom=seen.headroom,
            kernel_first=seen.headroom is None or first_oom_bytes <= seen.headroom.headroom_bytes,
            pods_memory_bytes=seen.pods_limit_bytes,
            pods_available_bytes=seen.available.get(Signal.ALLOCATABLE_MEMORY),
        ),
        eviction_order=eviction_places(orders, owners),
        kill_order=kill_places(orders, node),
        disagreements=orders.disagreements,
        reversed_pairs=orders.reversed_pairs,
        components=components(kubelet_oom_score_adj, node.memory_bytes + node.swap_bytes),
        without_process=tuple(
            IdleContainer(entry.pod.key, usage.name, without_process(entry.pod).get(usage.name, ""))
            for entry in snapshot.pods
            for usage in entry.containers
            if not usage.processes
        ),
    )


def eviction_places(orders: Orders, owners: Mapping[str, tuple[str, str]] | None = None) -> tuple[EvictionPlace, ...]:
    """Return the kubelet's order; ``owners`` are the workloads of pods, by uid, where that is known."""
    kernel_places = {pod.metadata.uid: place for place, pod in enumerate(orders.kernel_pods, start=1)}
    places = [
        EvictionPlace(
            place=place,
            pod=ranked.pod.key,
            qos_class=ranked.qos_class or qos_class_of(ranked.pod, orders.ranking.profile),
            priority=ranked.priority,
            usage=ranked.usage if ranked.has_statistics else None,
            request=ranked.request.value,
            excess=ranked.excess_nanos // NANOS if ranked.has_statistics else None,
            over_request=ranked.over_request,
            spared=ranked.spared,
            kernel_place=kernel_places.get(ranked.pod.metadata.uid),
            before_next_by=ranked.before_next_by,
            reason="",
            workload=_workload_of(ranked.pod, owners or {}),
        )
        for place, ranked in enumerate(orders.eviction, start=1)
    ]
    resource = SIGNALS[orders.ranking.signal].resource
    return _with_reasons(places, lambda one, other: why_evicted(one, other, resource))


def kill_places(orders: Orders, node: NodeUsage) -> tuple[KillPlace, ...]:
    """Return the kernel's order on a node."""
    eviction_places = {ranked.pod.metadata.uid: place for place, ranked in enumerate(orders.eviction, start=1)}
    # The kernel's own thousandth, a whole number of pages: only so does the sum order as the badness does.
    point_pages = max(1, orders.domain.total_bytes // PAGE_BYTES // 1000)

    def points(pages: int) -> float:
        """Return pages as points to a tenth; whole points more are exactly ten tenths more."""
        return (20 * pages + point_pages) // (2 * point_pages) / 10

    places = [
        KillPlace(
            place=place,
            pod=killed.pod.key,
            container=killed.usage.name,
            qos_class=killed.qos_class,
            is_measured=killed.usage.is_measured,
            processes=killed.usage.processes,
            used_bytes=killed.worst.used_pages * PAGE_BYTES,
            oom_score_adj=killed.score.value,
            oom_reason=oom_rule(killed.score, node.memory_bytes),
            badness_bytes=killed.worst.points * PAGE_BYTES,
            oom_score=killed.shown_score(node.memory_bytes + node.swap_bytes),
            eviction_place=eviction_places[killed.pod.metadata.uid],
            before_next_by=killed.before_next_by,
            margin_bytes=killed.margin_bytes,
            reason="",
            share_points=points(killed.worst.used_pages),
            points=points(killed.worst.points),
        )
        for place, killed in enumerate(orders.kernel, start=1)
    ]
    return _with_reasons(places, why_killed)


def _with_reasons(places: list[Place], why: Callable[[Place, Place], str]) -> tuple[Place, ...]:
    """Return the places, each but the last with the reason why it stands before the next."""
    reasoned = [replace(one, reason=why(one, other)) for one, other in pairwise(places)]
    return tuple(reasoned + places[-1:])


def _workload_of(pod: Pod, owners: Mapping[str, tuple[str, str]]) -> str:
    """Return kind and ``namespace/name`` of a pod's workload, as far as it is known; empty for a pod of its own."""
    kind, name = owners.get(pod.metadata.uid, (POD, pod.key))
    if kind == POD:
        for kind, maker in controllers(pod.metadata):  # noqa: B007 - the last is what made the others
            name = f"{pod.metadata.namespace}/{maker}"
    return "" if kind == POD else f"{kind} {name}"


def _workloads(places: Iterable[EvictionPlace]) -> tuple[RankedWorkload, ...]:
    """Return the workloads in the order in which they lose a pod; those that are spared come last."""
    by_workload: dict[str, list[EvictionPlace]] = {}
    for place in places:
        by_workload.setdefault(place.workload or f"{POD} {place.pod}", []).append(place)
    ranked = []
    for workload, own in by_workload.items():
        kind, _, name = workload.partition(" ")
        evicted = [place.place for place in own if place.spared is None]
        killed = [place.kernel_place for place in own if place.kernel_place is not None]
        ranked.append(
            RankedWorkload(
                kind=kind,
                name=name,
                pods=len(own),
                qos_classes=tuple(dict.fromkeys(place.qos_class for place in own)),
                first_evicted=min(evicted, default=None),
                last_evicted=max(evicted, default=None),
                first_killed=min(killed, default=None),
                last_killed=max(killed, default=None),
                spared=None if evicted else own[0].spared,
            )
        )
    return tuple(sorted(ranked, key=lambda workload: (workload.first_evicted is None, workload.first_evicted or 0)))


# ---- as text ---------------------------------------------------------------------------------------------------------


def table(
    report: RankReport, style: Style, *, by: str = "pod", top: int | None = None, verbose: bool = False
) -> list[str]:
    """Return the answer, the first places of both orders, what saves the first, and where the orders disagree.

    ``verbose``: all places, one pod a row, with what was tried in vain and the processes of the node itself.
    """
    if by == "workload":
        return _workload_table(report, style, top)
    most = top if top is not None or verbose or style.is_wide else SHOWN
    where = "the machine" if report.node.oom_cgroup == "/" else report.node.oom_cgroup
    return [
        *wrapped(headline(report), style, ""),
        "",
        style.strong(f"Eviction order (kubelet), first to last: {_ranked_by(report)}"),
        *_evictions(report, style, most, verbose=verbose),
        "",
        style.strong(f"OOM kill order (kernel), first to last, when {where} runs out of memory"),
        *_kills(report, style, most, verbose=verbose),
        *(line for text in _without_process(report) for line in wrapped(text, style, "")),
        "",
        *_remedies(report, style, verbose=verbose),
        *((*component_table(report.components, style), "") if verbose else ()),
        *(line for text in _remarks(report, verbose=verbose) for line in wrapped(text, style, "")),
    ]


def headline(report: RankReport) -> str:
    """Return which pod is first in each order, among the pods that are shown."""
    evicted = next((place for place in report.eviction_order if not place.spared), None)
    killed = next(iter(report.kill_order), None) if report.resource == MEMORY else None
    # Others that are not shown may come before them.
    shown_before = 0 if evicted is None else report.eviction_order.index(evicted)
    is_first = (evicted is None or evicted.place == shown_before + 1) and (killed is None or killed.place == 1)
    among = "" if is_first else "Of the pods shown, "
    if killed is None:
        return f"{among}{evicted.pod} is evicted first." if evicted is not None else "No pod can be evicted."
    if evicted is None:
        return f"No pod can be evicted; {killed.pod} ({killed.container}) is OOM-killed first."
    if evicted.pod == killed.pod:
        return f"{among}{evicted.pod} is evicted first and OOM-killed first."
    return f"{among}{evicted.pod} is evicted first, {killed.pod} ({killed.container}) is OOM-killed first."


def _ranked_by(report: RankReport) -> str:
    return f"{report.signal}, {'hard' if report.hard else 'soft'}, policy {report.policy}"


def _alike(
    places: Iterable[Place], same: Callable[[Place], Hashable], *, verbose: bool
) -> Iterator[tuple[str, list[Place]]]:
    """Yield neighbours that nothing tells apart as one row, with what it is called: pods of one workload, ``×3``."""
    for _, found in groupby(places, lambda place: place.place if verbose else same(place)):
        group = list(found)
        yield group[0].pod, group


def _evictions(report: RankReport, style: Style, most: int | None, *, verbose: bool) -> list[str]:
    def cells(place: EvictionPlace) -> tuple[str, ...]:
        request = amount(place.request, report.resource) if place.request else "–"
        return style.qos_class(place.qos_class), str(place.priority), _uses(place, report.resource), request

    def same(place: EvictionPlace) -> Hashable:
        return place.workload or place.pod, place.spared, place.kernel_place is None, *cells(place)

    rows = []
    shown = 0
    for pod, group in islice(_alike(report.eviction_order, same, verbose=verbose), most):
        shown += len(group)
        killed = [place.kernel_place for place in group if place.kernel_place]
        name = pod if len(group) == 1 else f"{group[0].workload.partition(' ')[2]} ×{len(group)}"
        why = f"spared: {group[0].spared}" if group[0].spared else group[-1].reason
        places = _places(group[0].place, group[-1].place), _places(min(killed, default=None), max(killed, default=None))
        rows.append((places[0], name, *cells(group[0]), places[1], why))
    headers = ("#", "POD", "CLASS", "PRIORITY", "USES", "REQUESTS", "KILLED #", "REASON")
    return columns(headers, rows, style) + _rest(len(report.eviction_order) - shown, "pod")


def _kills(report: RankReport, style: Style, most: int | None, *, verbose: bool) -> list[str]:
    workloads = {place.pod: place.workload or place.pod for place in report.eviction_order}

    def cells(kill: KillPlace) -> tuple[str, ...]:
        used = mebibytes(kill.used_bytes) if kill.is_measured else "?"
        return (
            kill.container,
            style.qos_class(kill.qos_class),
            ("" if kill.processes == 1 else f"{kill.processes} × ") + used,
            _points(kill),
            _signed(kill.badness_bytes),
            str(kill.oom_score),
        )

    def same(kill: KillPlace) -> Hashable:
        return workloads[kill.pod], *cells(kill)

    rows = []
    shown = 0
    for pod, group in islice(_alike(report.kill_order, same, verbose=verbose), most):
        shown += len(group)
        evicted = [kill.eviction_place for kill in group]
        name = pod if len(group) == 1 else f"{workloads[pod].partition(' ')[2]} ×{len(group)}"
        places = _places(group[0].place, group[-1].place), _places(min(evicted), max(evicted))
        rows.append((places[0], name, *cells(group[0]), places[1], group[-1].reason))
    headers = ("#", "POD", "CONTAINER", "CLASS", "USES", "SHARE + ADJ = POINTS", "BADNESS", "SCORE", "EVICTED #")
    return columns((*headers, "REASON"), rows, style) + _rest(len(report.kill_order) - shown, "container")


def _places(first: int | None, last: int | None) -> str:
    if first is None:
        return "–"
    return str(first) if first == last else f"{first} … {last}"


def _rest(count: int, noun: str) -> list[str]:
    """Return how many are not shown."""
    return [f"… and {counted(count, f'more {noun}')}"] if count > 0 else []


def _uses(place: EvictionPlace, resource: str) -> str:
    if place.usage is not None:
        return amount(place.usage, resource)
    return "?" if place.kernel_place else "not running"


def _points(kill: KillPlace) -> str:
    """Return the reckoning of the badness in thousandths of the memory that ran out."""
    adjustment = f"{'−' if kill.oom_score_adj < 0 else '+'} {abs(kill.oom_score_adj)}"
    if not kill.is_measured:
        return f"? {adjustment}"
    return f"{kill.share_points:.1f} {adjustment} = {kill.points:.1f}".replace("-", "−")


def _signed(size_bytes: int) -> str:
    return mebibytes(size_bytes) if size_bytes >= 0 else f"−{mebibytes(-size_bytes)}"


def _remedies(report: RankReport, style: Style, *, verbose: bool) -> Iterator[str]:
    """Yield what saves the first of each order, lines of YAML below what they change."""
    for remedies in report.remedies:
        who = remedies.pod if remedies.container is None else f"{remedies.pod} ({remedies.container})"
        yield style.strong(f"What saves {who}, the first to be {FATES[remedies.by]}")
        saving = [remedy for remedy in remedies.remedies if remedy.saves]
        for remedy in saving:
            yield from wrapped(saving_words(remedy), style, "    ", "  ")
            yield from (f"      {line}" for line in remedy.edits)
        if remedies.unknown:
            yield from wrapped(remedies.unknown, style, "    ", "  ")
        elif not saving:
            yield "  No tested change to its manifest, nor lower usage."
        for remedy in remedies.remedies if verbose and not remedies.unknown else ():
            if not remedy.saves:
                yield from wrapped(f"not: {saving_words(remedy)}", style, "    ", "  ")
        yield ""


def _without_process(report: RankReport) -> Iterator[str]:
    """Yield which pods are in no order of the kernel's, and which containers of the others."""
    nothing_runs = {place.pod for place in report.eviction_order if place.kernel_place is None}
    reasons: dict[str, list[str]] = {}
    for container in report.without_process:
        name = container.pod if container.pod in nothing_runs else f"{container.container} of {container.pod}"
        reasons.setdefault(container.reason, []).append(name)
    for reason, names in reasons.items():
        because = f"the node reports {reason}" if reason else "no container has started"
        yield f"No process to kill{'' if reason else ' yet'}, because {because}: {listed([*dict.fromkeys(names)])}."


def _remarks(report: RankReport, *, verbose: bool) -> Iterator[str]:
    node = report.node
    if report.problem:
        what = f"{report.problem[0].upper()}{report.problem[1:]}"
        yield f"{what}: usage is assumed or stale. Both orders use it anyway."
    # In whole MiB, as headroom is: the two amounts are compared.
    kernel_left = node.kernel_left_bytes >> 20 << 20
    left = mebibytes(kernel_left) if kernel_left > 0 else "nothing"
    is_kernel_first = node.kernel_first and node.headroom is not None
    first = "As memory fills up, the kernel kills before the kubelet evicts. " if is_kernel_first else ""
    yield f"{first}{headroom_sentence(node.headroom)} Headroom before an OOM kill: {left}. {_available(node)}"
    if not report.reversed_pairs:
        kernel = [place.kernel_place for place in report.eviction_order if place.kernel_place]
        is_same = kernel == sorted(kernel)
        yield f"Both orders agree{'.' if is_same else '; places differ only between pods that tie in one of them.'}"
        return
    yield from _disagreements(report, verbose=verbose)


def _disagreements(report: RankReport, *, verbose: bool) -> Iterator[str]:
    """Yield which pods the two kill in opposite orders: of the same two workloads one pair, none of replicas."""
    if not report.disagreements:
        yield "The orders disagree only about other pods."
        return
    pairs = f"{counted(report.reversed_pairs, 'pair')} of pods"
    shown = {str(number): pair for number, pair in enumerate(report.disagreements)}
    if not verbose:
        workloads = {place.pod: place.workload or place.pod for place in report.eviction_order}
        shown = {}
        for pair in report.disagreements:
            two = [workloads.get(pod, pod) for pod in (pair.evicted_first, pair.killed_first)]
            if two[0] != two[1]:
                shown.setdefault(" ".join(two), pair)
    told = list(shown.values()) if verbose else list(shown.values())[:_SHOWN_PAIRS]
    if not told:
        yield f"The orders disagree about {pairs}, all of them replicas of one workload ({stated_with('verbose')})."
        return
    only = "" if len(told) == report.reversed_pairs else f"; {len(told)} of them"
    more = f" ({stated_with('verbose')})" if only and not verbose else ""
    yield f"The orders disagree about {pairs}{only}{more}:"
    for pair in told:
        kubelet = f"the kubelet evicts {pair.evicted_first} before {pair.killed_first} ({pair.evicted_by})"
        if pair.spared is not None:
            kubelet = f"the kubelet evicts {pair.evicted_first} and never {pair.killed_first} ({pair.spared})"
        yield f"  {kubelet}, the kernel kills {pair.killed_first} first ({pair.killed_by})"


def _available(node: NodeSummary) -> str:
    """Return what the kubelet sees, for pods first where that decides."""
    of_machine = f"{_signed(node.available_bytes)} of {mebibytes(node.memory_bytes)}"
    of_pods, limit_bytes = node.pods_available_bytes, node.pods_memory_bytes
    is_of_pods = node.headroom is not None and node.headroom.signal is Signal.ALLOCATABLE_MEMORY
    if not is_of_pods or of_pods is None or limit_bytes is None:
        return f"The kubelet sees {of_machine} available."
    return (
        f"The kubelet sees {_signed(of_pods)} of {mebibytes(limit_bytes)} available to pods, "
        f"{of_machine} on the machine."
    )


_CSV: Mapping[str, Callable[[EvictionPlace, KillPlace | None], object]] = {
    "pod": lambda place, _: place.pod,
    "class": lambda place, _: place.qos_class,
    "priority": lambda place, _: place.priority,
    "eviction_place": lambda place, _: place.place,
    "kernel_place": lambda place, _: place.kernel_place,
    "usage": lambda place, _: place.usage,
    "request": lambda place, _: place.request,
    "evicted_before_next_by": lambda place, _: place.before_next_by,
    "spared": lambda place, _: place.spared,
    "oom_score_adj": lambda _, kill: kill and kill.oom_score_adj,
    "badness_bytes": lambda _, kill: kill and kill.badness_bytes,
    "killed_before_next_by": lambda _, kill: kill and kill.before_next_by,
    "share_points": lambda _, kill: kill and kill.share_points,
    "points": lambda _, kill: kill and kill.points,
}


def csv_table(report: RankReport, *, by: str = "pod", top: int | None = None) -> Table:
    """Return headings and a row per workload, or per pod, whose kernel's figures are those of its first container."""
    if by == "workload":
        columns = ("kind", "name", "pods", "first_evicted", "last_evicted", "first_killed", "last_killed", "spared")
        return csv_of(report.workloads[:top], *columns)
    first = {kill.pod: kill for kill in reversed(report.kill_order)}
    shown = report.eviction_order[:top]
    return _CSV, ([column(place, first.get(place.pod)) for column in _CSV.values()] for place in shown)


def _workload_table(report: RankReport, style: Style, top: int | None) -> list[str]:
    """Return a line per workload, in the order in which they lose a pod."""
    shown = report.workloads[:top]
    rows = [
        (
            str(number),
            f"{workload.kind} {workload.name}",
            ", ".join(map(style.qos_class, workload.qos_classes)),
            str(workload.pods),
            f"spared: {workload.spared}" if workload.spared else _places(workload.first_evicted, workload.last_evicted),
            _places(workload.first_killed, workload.last_killed),
        )
        for number, workload in enumerate(shown, 1)
    ]
    pods = sum(workload.pods for workload in report.workloads)
    return [
        *wrapped(headline(report), style, ""),
        "",
        style.strong(f"Workloads by the first pod to be evicted: {_ranked_by(report)}"),
        *columns(("#", "WORKLOAD", "CLASS", "PODS", "EVICTED", "OOM-KILLED"), rows, style),
        *_rest(len(report.workloads) - len(shown), "workload"),
        "",
        *wrapped(f"Places of the first and last pod among {counted(pods, 'pod')}, in both kill orders.", style, ""),
    ]


def names(report: RankReport, *, by: str = "pod", top: int | None = None) -> Iterator[str]:
    """Yield what is ranked as kubectl names it, in the order of eviction."""
    if by == "workload":
        return (f"{each.kind.lower()}/{each.name.rpartition('/')[2]}" for each in report.workloads[:top])
    return (f"pod/{place.pod.rpartition('/')[2]}" for place in report.eviction_order[:top])
