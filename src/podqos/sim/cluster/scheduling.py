"""The scheduler of a simulated cluster: which pods are pending, placed and preempted.

``placement`` decides; this module adds time. A pod that preempts others is tried again when they are gone, and until
then its room is kept from pods that are no more important: it is nominated to that node. Meanwhile other pods preempt
on other nodes, or on the same beside it. The scheduler knows a node's conditions as of its last status, and what
disruption budgets allow as of now.

Source: Kubernetes v1.36.4 pkg/scheduler/schedule_one.go (evaluateNominatedNode),
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (PodEligibleToPreemptOthers),
pkg/scheduler/framework/preemption/preemption.go (Preempt) and executor.go (prepareCandidateAsync). Deleting the victims
takes no time here, so a preemption is the same whether it is asynchronous (the default since 1.33) or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.reasons import NodesRefusing, NoPlace
from podqos.model.node import Node, NodeCondition
from podqos.model.pod import Pod
from podqos.placement.filters import Filters, Nominations
from podqos.placement.place import PlacementSurroundings
from podqos.placement.pods import PodView, SchedulerNode
from podqos.placement.reasons import (
    GATED_MESSAGE,
    Insufficient,
    Reason,
    SelectorMismatch,
    UnderPressure,
    UntoleratedTaint,
)
from podqos.placement.schedule import Budgets, Candidate, Chooser, Preemption


class Covered(Struct, frozen=True):
    """The pods that disruption budgets may be about."""

    expected: Iterable[Pod]
    """All that should run."""
    healthy: Iterable[Pod]
    """Those that do, and are not being removed."""


class Displaced(Struct, frozen=True, gc=False):
    """A pod that makes room for another."""

    pod: Pod
    breaks_budget: bool


class Scheduler:
    """The nodes as the scheduler knows them, and the pods that wait."""

    def __init__(
        self,
        surroundings: PlacementSurroundings,
        covered: Callable[[], Covered],
        is_deleted: Callable[[Pod], bool] = lambda _: False,
    ) -> None:
        """Set up the nodes.

        ``covered`` says what disruption budgets are about now. ``is_deleted`` says whether a pod that is still there
        has been deleted.
        """
        self._surroundings = surroundings
        self._profile = profile = surroundings.profile
        self._covered = covered
        self._is_deleted = is_deleted
        self._states = {node.name: SchedulerNode(node, profile) for node in surroundings.nodes}
        self._away: dict[str, SchedulerNode] = {}
        self._views = surroundings.views
        self._where: dict[str, tuple[PodView, SchedulerNode]] = {}
        self._preempted: set[str] = set()
        """By key: victims that still stop."""
        self.waiting: dict[str, PodView] = {}
        """By key, in the order of arrival."""
        self._rebuild(Nominations())

    def _rebuild(self, nominations: Nominations) -> None:
        self._cluster = self._surroundings.cluster(self._states.values(), nominations)
        self._chooser = Chooser(self._cluster)
        self._preemption = Preemption(self._cluster, Budgets())

    def _budgets(self) -> Budgets:
        """Return what disruption budgets allow now."""
        if not self._surroundings.budgets:
            return Budgets()
        covered = self._covered()
        budgets = self._surroundings.counted_budgets(map(self._views.of, covered.expected))
        for pod in covered.healthy:
            if pod.key not in self._preempted:
                budgets.count(self._views.of(pod), 1)
        return budgets

    def bound(self, pod: Pod, node: str) -> None:
        """Add a pod that is bound to a node."""
        if pod.key in self._where:
            return  # it was there before its node was set up
        view = self._views.of(pod)
        state = self._states.get(node) or self._away[node]
        state.add(view)
        self._where[view.key] = view, state

    def node_of(self, pod: Pod) -> str:
        """Return where a pod is."""
        return self._where[pod.key][1].name

    def left(self, pod: Pod) -> None:
        """Remove a pod that is gone or no longer pending."""
        self._preempted.discard(pod.key)
        self._end_nomination(pod.key)
        self.waiting.pop(pod.key, None)
        found = self._where.pop(pod.key, None)
        if found is not None:
            view, state = found
            state.remove(view)

    def wait(self, pod: Pod) -> None:
        """Add a pending pod."""
        self.waiting[pod.key] = self._views.of(pod)

    def report(self, node: str, conditions: Iterable[str]) -> None:
        """Learn which conditions a node reports."""
        state = self._states.get(node) or self._away[node]
        reported = tuple(NodeCondition(condition, "True") for condition in conditions)
        self._offer(state, replace(state.node, status=replace(state.node.status, conditions=reported)))

    def cordon(self, node: str, *, takes_pods: bool) -> None:
        """Learn whether a node takes pods."""
        state = self._states.get(node) or self._away[node]
        self._offer(state, replace(state.node, spec=replace(state.node.spec, unschedulable=not takes_pods)))

    def _offer(self, state: SchedulerNode, node: Node) -> None:
        if node != state.node:
            state.offer(node, self._profile)
            self._rebuild(self._cluster.nominations)

    def no_place(self, view: PodView) -> NoPlace:
        """Return why a pod is pending."""
        if view.pod.spec.scheduling_gates:
            return NoPlace(GATED_MESSAGE)
        filters = Filters(view, self._cluster)
        reasons = (reason for state in self._cluster.states for reason in filters.first_reasons(state))
        counted = Counter((type(reason).__name__, _about(reason)) for reason in reasons)
        ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
        refusing = tuple(NodesRefusing(name, nodes, what) for (name, what), nodes in ranked)
        return NoPlace(nodes=len(self._cluster.states), refusing=refusing)

    def remove_node(self, name: str) -> None:
        """Place no more pods on a node."""
        if name in self._states:
            self._away[name] = self._states.pop(name)
            self._cluster.nominations.remove_node(name)
            self._rebuild(self._cluster.nominations)

    def add_node(self, name: str) -> None:
        """Let a node that was away take pods again, beside those still bound to it; it reports nothing yet."""
        if name in self._away:
            self._states[name] = self._away.pop(name)
            self._rebuild(self._cluster.nominations)
        self.report(name, ())

    def place(self) -> list[tuple[Pod, str | None, tuple[Displaced, ...]]]:
        """Try to place all pending pods, the higher priority first.

        Returns pod, node and preempted pods where there was a result. A pod that preempts others has no node yet. Those
        that may fit once another pod has a place are tried again then.
        """
        placed: list[tuple[Pod, str | None, tuple[Displaced, ...]]] = []
        open_views = (view for view in self.waiting.values() if not view.pod.spec.scheduling_gates)
        queue = [(-view.priority, number, view) for number, view in enumerate(open_views)]
        heapify(queue)
        numbers = count(len(queue))
        dependent: list[PodView] = []
        while queue:
            *_, view = heappop(queue)
            state = self._choose(view)
            if state is not None:
                del self.waiting[view.key]
                self._end_nomination(view.key)
                state.add(view)
                self._where[view.key] = view, state
                placed.append((view.pod, state.name, ()))
                for other in dependent:
                    heappush(queue, (-other.priority, next(numbers), other))
                dependent = []
                continue
            if view.likeness.depends_on_pods:
                dependent.append(view)
            if not self._awaits_victims(view):
                displaced = self._preempt(view)
                if displaced:
                    placed.append((view.pod, None, displaced))
        return placed

    def _choose(self, view: PodView) -> SchedulerNode | None:
        """Return the node to take: that to which the pod is nominated, if it fits there (``evaluateNominatedNode``)."""
        own = self._nominated_to(view)
        if own is not None and not Filters(view, self._cluster).first_reasons(own):
            return own
        choice = self._chooser.choose(view)
        return None if choice is None else choice.state

    def _awaits_victims(self, view: PodView) -> bool:
        """Whether a pod preempts nobody else as long as its victims stop (``PodEligibleToPreemptOthers``)."""
        own = self._nominated_to(view)
        if own is None or any(reason.unresolvable for reason in Filters(view, self._cluster).first_reasons(own)):
            return False
        is_awaited = self._was_preempted if self._profile.only_preempted_delay_preemption else self._ends
        return any(other.priority < view.priority and is_awaited(other) for other in own.pods.values())

    def _preempt(self, view: PodView) -> tuple[Displaced, ...]:
        """Nominate a pod to the node where it does the least harm; return the victims that are to be deleted."""
        budgets = self._budgets()
        preemption = Preemption(self._cluster, budgets) if budgets else self._preemption
        candidate = preemption.candidate(view)
        if not isinstance(candidate, Candidate):
            if candidate.is_eligible:
                self._end_nomination(view.key)
            return ()
        breaking = zip(candidate.victims, budgets.violating(candidate.victims), strict=True)
        displaced = tuple(Displaced(victim.pod, breaks) for victim, breaks in breaking if not self._ends(victim))
        if displaced or not self._profile.ending_victims_keep_nominations:
            for other in self._cluster.nominations.lower(view.priority, candidate.state.name):
                self._end_nomination(other.key)
        self._end_nomination(view.key)
        self._cluster.nominations.add(view, candidate.state.name)
        candidate.state.version += 1
        self._preempted |= {each.pod.key for each in displaced}
        return displaced

    def _was_preempted(self, view: PodView) -> bool:
        return view.key in self._preempted

    def _ends(self, view: PodView) -> bool:
        """Whether a pod has been deleted, by the scheduler or by others, and still stops."""
        return view.key in self._preempted or self._is_deleted(view.pod)

    def _nominated_to(self, view: PodView) -> SchedulerNode | None:
        node = self._cluster.nominations.node_of(view)
        return None if node is None else self._states[node]

    def _end_nomination(self, key: str) -> None:
        node = self._cluster.nominations.remove(key)
        if node is not None:
            self._states[node].version += 1


def _about(reason: Reason) -> str:
    """Return what a reason is about: it is the same on many nodes, while the numbers are not."""
    match reason:
        case Insufficient(resource=resource):
            return resource
        case UntoleratedTaint(taint=taint):
            return taint.key
        case UnderPressure(condition=condition):
            return condition
        case SelectorMismatch(key=key):
            return key
        case _:
            return ""
