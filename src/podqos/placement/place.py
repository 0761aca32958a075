"""Places a set of pods on a set of nodes: which node each gets, which are preempted, which are pending, and why.

Pods are taken from a queue as the scheduler takes them: the higher priority first, then the earlier. A pod that fits
nowhere may displace others; those whose controller replaces them join the queue again. A pod without a place is tried
again as soon as something has changed that could help. There is no time here: a preempted pod leaves at once, and the
preempting one takes its place.

To the scheduler, pods that wait for each other are merely pending, each with the same message on every node.
``affinity_waits`` finds what they wait for, whether such a pod exists at all, and where the waiting is circular.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from enum import StrEnum
from itertools import chain, count

from msgspec import Struct

from podqos.errors import InvalidManifest
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.node import Node
from podqos.model.pod import TERMINAL_PHASES, Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.service import Service
from podqos.placement.filters import Filters, Namespaces, Nominations, SchedulerCluster, counts, meets_all
from podqos.placement.pods import Likeness, PodView, SchedulerNode, Views
from podqos.placement.reasons import Reasons
from podqos.placement.schedule import Budgets, Candidate, Chooser, NodeScore, Preemption, PreemptionFailure


class Status(StrEnum):
    """The outcome for a pod."""

    BOUND = "Bound"
    """It already had a node."""
    PLACED = "Placed"
    PENDING = "Pending"
    GATED = "Gated"
    """It has scheduling gates; the scheduler ignores it."""
    DISPLACED = "Displaced"
    """A pod of higher priority took its place, and no controller replaces it."""
    FINISHED = "Finished"
    """It has terminated and takes no resources."""
    ELSEWHERE = "Elsewhere"
    """It is bound to a node that is not among those given."""


class Outcome(Struct, frozen=True, gc=False):
    """The outcome for one pod."""

    pod: str
    status: Status
    node: str | None = None


class Displacement(Struct, frozen=True, gc=False):
    """One pod that was preempted for another."""

    pod: str
    node: str
    by: str


class NodeRefusal(Struct, frozen=True, gc=False):
    """Why one node does not take a pod."""

    node: str
    first: Reasons
    """What the first filter that rejects says; the scheduler stops there."""
    reasons: Reasons
    """All reasons."""


class WaitReason(Struct, frozen=True):
    """Why a pod is pending."""

    pod: str
    nodes: tuple[NodeRefusal, ...]
    preemption: PreemptionFailure


class Placement:
    """The nodes with their pods, and the result for every pod."""

    def __init__(
        self,
        cluster: SchedulerCluster,
        budgets: Budgets,
        outcomes: Iterable[Outcome],
        displacements: Iterable[Displacement],
        pending: Iterable[PodView],
        *,
        scores: Mapping[str, tuple[NodeScore, ...]],
    ) -> None:
        self.cluster = cluster
        self.outcomes = tuple(outcomes)
        """In the order in which the pods were given."""
        self.displacements = tuple(displacements)
        """In the order in which they happened."""
        self.pending = tuple(pending)
        """Those that found no place, in the order in which they were given."""
        self.scores = scores
        """Of all nodes that would have done when a pod was placed, by its key; empty for large clusters."""
        self._budgets = budgets

    def refusal(self, view: PodView) -> WaitReason:
        """Return why a pending pod does not fit among the placed pods."""
        failure = Preemption(self.cluster, self._budgets).candidate(view)
        assert isinstance(failure, PreemptionFailure), f"{view.key} could still preempt a pod"
        return refusal(view, self.cluster, failure)

    def alike(self) -> list[list[PodView]]:
        """Return the pending pods in groups with identical reasons: pods of one workload."""
        groups: dict[Likeness, list[PodView]] = {}
        for view in self.pending:
            groups.setdefault(view.likeness, []).append(view)
        return list(groups.values())


def refusal(view: PodView, cluster: SchedulerCluster, failure: PreemptionFailure) -> WaitReason:
    """Return why a pod that fits nowhere, and for which preemption fails, waits."""
    filters = Filters(view, cluster)
    nodes = []
    for state in cluster.states:
        answers = tuple(filter(None, filters.answers(state)))
        nodes.append(NodeRefusal(state.name, answers[0], tuple(chain.from_iterable(answers))))
    return WaitReason(view.key, tuple(nodes), failure)


_PROGRESS_EVERY = 256
# From this many questions (pods × nodes) on, scores are too many to read.
_MANY = 20_000

Progress = Callable[[int], None]


class QueueOrder(StrEnum):
    """The order in which pending pods are placed."""

    PRIORITY = "priority"
    """All pods queue up: the higher priority first, then as given."""
    ARRIVAL = "arrival"
    """Each pod is placed as it arrives; a later one may preempt it."""


class PlacementSurroundings(Struct, frozen=True):
    """The cluster before the pods are placed."""

    nodes: tuple[Node, ...]
    namespaces: Mapping[str, Mapping[str, str]] = {}
    """Labels of namespaces by name, for terms that select by them."""
    budgets: tuple[PodDisruptionBudget, ...] = ()
    profile: Profile = LATEST
    services: tuple[Service, ...] = ()
    """Those whose pods are spread by default."""

    @property
    def views(self) -> Views:
        """What makes views of pods."""
        return Views(self.profile, self.services)

    def cluster(self, states: Iterable[SchedulerNode], nominations: Nominations | None = None) -> SchedulerCluster:
        """Return nodes with their pods as the filters see them."""
        namespaces = Namespaces(self.namespaces, selectors_leak=self.profile.namespace_selectors_leak)
        return SchedulerCluster(states, namespaces, self.profile, nominations)

    def counted_budgets(self, expected: Iterable[PodView]) -> Budgets:
        """Return the budgets; ``expected`` are all pods that should run, of which none is counted as running yet."""
        return Budgets(self.budgets, expected, self.profile)


def place(
    pods: Iterable[Pod],
    surroundings: PlacementSurroundings,
    *,
    order: QueueOrder = QueueOrder.PRIORITY,
    bare: Container[str] = frozenset(),
    progress: Progress | None = None,
) -> Placement:
    """Place ``pods``, which are used as given: defaulted, with their priorities (see ``admission``).

    ``bare`` are the keys of pods without a controller that replaces them. ``progress`` is called now and then with how
    many pods have had their turn.
    """
    views = map(surroundings.views.of, pods)
    return place_views(views, surroundings, order=order, bare=bare, progress=progress)


def place_views(
    views: Iterable[PodView],
    surroundings: PlacementSurroundings,
    *,
    order: QueueOrder = QueueOrder.PRIORITY,
    bare: Container[str] = frozenset(),
    progress: Progress | None = None,
) -> Placement:
    """Place pods like ``place``: for those who place nearly the same pods often, and keep their views."""
    cluster = surroundings.cluster(SchedulerNode(node, surroundings.profile) for node in surroundings.nodes)
    every = [*views]
    _check_names(cluster, every)
    run = _Run(cluster, surroundings.counted_budgets(every), bare)
    waiting = [view for view in every if run.receive(view)]
    run.chooser = Chooser(cluster, explains=len(waiting) * len(cluster.states) < _MANY)
    run.place_all(_Queue(waiting, order), progress)
    return run.result(every)


def _check_names(cluster: SchedulerCluster, views: list[PodView]) -> None:
    for what, names in (("nodes", (state.name for state in cluster.states)), ("pods", (view.key for view in views))):
        name, number = next(iter(Counter(names).most_common(1)), ("", 0))
        if number > 1:
            raise InvalidManifest(f"{number} {what} have the same name, {name}", fix="give each a unique name")


class _Run:
    """One placing from beginning to end."""

    chooser: Chooser

    def __init__(self, cluster: SchedulerCluster, budgets: Budgets, bare: Container[str]) -> None:
        self._cluster = cluster
        self._budgets = budgets
        self._preemption = Preemption(cluster, budgets)
        self._bare = bare
        self._states = {state.name: state for state in cluster.states}
        self._status: dict[str, Status] = {}
        self._where: dict[str, SchedulerNode] = {}
        self._priorities: Counter[int] = Counter()
        self._displacements: list[Displacement] = []
        self._arrivals = 0
        self._departures = 0
        self._scores: dict[str, tuple[NodeScore, ...]] = {}
        self._refused: dict[Likeness, dict[str, _Try]] = {}
        """Those that found no place, by workload: where the first does not fit, the others do not either."""
        self._dependent: dict[Likeness, None] = {}
        """The workloads among them that may fit once a pod comes."""
        self._hopeless: dict[Likeness, int] = {}

    def receive(self, view: PodView) -> bool:
        """Settle what needs no decision; return whether the pod waits for a node."""
        spec = view.pod.spec
        status = Status.PENDING
        if view.pod.status.phase in TERMINAL_PHASES:
            status = Status.FINISHED
        elif spec.node_name:
            state = self._states.get(spec.node_name)
            status = Status.ELSEWHERE if state is None else Status.BOUND
            if state is not None:
                self._enter(view, state)
        elif spec.scheduling_gates:
            status = Status.GATED
        self._status[view.key] = status
        return status is Status.PENDING

    def place_all(self, queue: _Queue, progress: Progress | None) -> None:
        """Try to place every pod, and retry those for which something has changed."""
        done = 0
        while queue:
            queue.extend(self._take_turn(queue.pop()), again=True)
            done += 1
            if progress is not None and done % _PROGRESS_EVERY == 0:
                progress(done)
            if not queue:
                queue.extend(self._all_that_may_fit(), again=True)

    def result(self, every: list[PodView]) -> Placement:
        """Return the result for every pod."""
        outcomes = (
            Outcome(view.key, self._status[view.key], self._where[view.key].name if view.key in self._where else None)
            for view in every
        )
        pending = (view for view in every if self._status[view.key] is Status.PENDING)
        return Placement(self._cluster, self._budgets, outcomes, self._displacements, pending, scores=self._scores)

    def _take_turn(self, view: PodView) -> list[PodView]:
        """Find a node for the pod, if necessary by preempting others; return the pods to retry."""
        if self._hopeless.get(view.likeness) != self._departures:
            choice = self.chooser.choose(view)
            if choice is not None:
                self._bind(view, choice.state)
                if choice.scores:
                    self._scores[view.key] = choice.scores
                return self._awakened(view, others=False)
            candidate = self._candidate(view)
            if candidate is not None:
                returning = self._displace(candidate, view)
                self._bind(view, candidate.state)
                return [*returning, *self._awakened(view, others=True)]
        if not view.likeness.depends_on_pods:
            # More pods never make room: until one leaves, pods like this one need not be tried again.
            self._hopeless[view.likeness] = self._departures
        tried = _Try(view, self._arrivals, self._departures)
        self._refused.setdefault(view.likeness, {})[view.key] = tried
        if view.likeness.depends_on_pods:
            self._dependent[view.likeness] = None
        return []

    def _awakened(self, arrived: PodView, *, others: bool) -> list[PodView]:
        """Return the first pending pod of each workload that may fit now: a pod came, perhaps ``others`` left."""
        if not self._refused:
            return []
        likenesses = tuple(self._refused) if others else dict.fromkeys((arrived.likeness, *self._dependent))
        awakened = []
        for likeness in likenesses:
            tried = next(iter(self._refused.get(likeness, {}).values()), None)
            if tried is None or not self._may_help(tried):
                continue
            if others or likeness == arrived.likeness or self._is_awaited(arrived, tried.view):
                self._take_back(tried.view)
                awakened.append(tried.view)
        return awakened

    def _all_that_may_fit(self) -> list[PodView]:
        tried = [each for group in self._refused.values() for each in group.values() if self._may_help(each)]
        for each in tried:
            self._take_back(each.view)
        return [each.view for each in tried]

    def _take_back(self, view: PodView) -> None:
        """Retry a rejected pod."""
        group = self._refused[view.likeness]
        del group[view.key]
        if not group:
            del self._refused[view.likeness]
            self._dependent.pop(view.likeness, None)

    def _is_awaited(self, arrived: PodView, by: PodView) -> bool:
        """Whether a pod is one that another must be near to or that changes how evenly its like lie."""
        waiting, came = by.likeness, arrived.likeness
        return meets_all(waiting, came, self._cluster.namespaces) or any(
            counts(constraint.label_selector, waiting.namespace, came) for constraint in waiting.spread
        )

    def _candidate(self, view: PodView) -> Candidate | None:
        if not any(priority < view.priority for priority in self._priorities):
            return None
        found = self._preemption.candidate(view)
        return found if isinstance(found, Candidate) else None

    def _displace(self, candidate: Candidate, by: PodView) -> list[PodView]:
        returning = []
        for victim in candidate.victims:
            self._leave(victim, candidate.state)
            self._displacements.append(Displacement(victim.key, candidate.state.name, by.key))
            comes_back = victim.key not in self._bare
            self._status[victim.key] = Status.PENDING if comes_back else Status.DISPLACED
            if comes_back:
                returning.append(victim)
        return returning

    def _bind(self, view: PodView, state: SchedulerNode) -> None:
        self._enter(view, state)
        self._status[view.key] = Status.PLACED

    def _enter(self, view: PodView, state: SchedulerNode) -> None:
        state.add(view)
        self._where[view.key] = state
        self._budgets.count(view, 1)
        self._priorities[view.priority] += 1
        self._arrivals += 1

    def _leave(self, view: PodView, state: SchedulerNode) -> None:
        state.remove(view)
        del self._where[view.key]
        self._scores.pop(view.key, None)
        self._budgets.count(view, -1)
        self._priorities[view.priority] -= 1
        if not self._priorities[view.priority]:
            del self._priorities[view.priority]
        self._departures += 1

    def _may_help(self, tried: _Try) -> bool:
        """Whether something has changed since that could make the pod fit."""
        return tried.departures != self._departures or (
            tried.view.likeness.depends_on_pods and tried.arrivals != self._arrivals
        )


class _Queue:
    """The queue of pending pods."""

    def __init__(self, views: Iterable[PodView], order: QueueOrder) -> None:
        self._by_priority = order is QueueOrder.PRIORITY
        self._heap: list[tuple[int, int, PodView]] = []
        self._numbers = count()
        self.extend(views)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def extend(self, views: Iterable[PodView], *, again: bool = False) -> None:
        """Let pods wait, each behind those that are before it; those that come ``again`` before later arrivals."""
        for view in views:
            rank = -view.priority if self._by_priority else -again
            heapq.heappush(self._heap, (rank, next(self._numbers), view))

    def pop(self) -> PodView:
        """Return the next pod."""
        return heapq.heappop(self._heap)[2]


class _Try(Struct, frozen=True):
    """A pod that did not fit, and the state at that time."""

    view: PodView
    arrivals: int
    departures: int


class AffinityWait(Struct, frozen=True, gc=False):
    """A pending pod that must be near to pods of which none has a place."""

    pod: str
    waits_for: tuple[str, ...]
    """Pending pods that match; empty means that no such pod exists."""
    circle: tuple[str, ...] = ()
    """Pods of which each waits for the next and the last for the first; empty if the pod is in no such circle."""


def affinity_waits(placement: Placement) -> tuple[AffinityWait, ...]:
    """Return the pending pods, one of each kind, that wait for pods that have no place either."""
    kinds = {group[0].key: group[0] for group in placement.alike()}
    graph = {
        key: tuple(other for other, candidate in kinds.items() if _would_do(view, candidate, placement.cluster))
        for key, view in kinds.items()
        if view.likeness.affinity and not _has_company(view, placement.cluster)
    }
    return tuple(AffinityWait(key, waits_for, _circle(key, graph)) for key, waits_for in graph.items())


def _would_do(view: PodView, candidate: PodView, cluster: SchedulerCluster) -> bool:
    return candidate is not view and meets_all(view.likeness, candidate.likeness, cluster.namespaces)


def _has_company(view: PodView, cluster: SchedulerCluster) -> bool:
    """Whether a pod that the pod must be near to has a place, or the pod may be the first of its kind."""
    if meets_all(view.likeness, view.likeness, cluster.namespaces):
        return True
    present = {other for state in cluster.states for other in state.likenesses}
    return any(meets_all(view.likeness, other, cluster.namespaces) for other in present)


def _circle(start: str, graph: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the shortest way from a pod over those it waits for back to itself."""
    paths: list[tuple[str, ...]] = [(start,)]
    seen = {start}
    while paths:
        longer: list[tuple[str, ...]] = []
        for path in paths:
            for following in graph.get(path[-1], ()):
                if following == start:
                    return path
                if following not in seen:
                    seen.add(following)
                    longer.append((*path, following))
        paths = longer
    return ()
