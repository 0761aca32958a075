"""The scheduler of a simulated cluster: which pods are pending, placed and preempted.

``placement`` decides; this module adds time. A pod that preempts others is tried again when they are gone, and until
then its room is kept from pods that are no more important: it is nominated to that node. The scheduler knows a node's
conditions as of its last status, and what disruption budgets allow as of now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.reasons import NodesRefusing, NoPlace
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.node import Node, NodeCondition
from podqos.model.pod import Pod
from podqos.model.profile import Profile
from podqos.placement.budgets import Budgets
from podqos.placement.choosing import OneByOne
from podqos.placement.filters import Cluster, Filters
from podqos.placement.node_state import NodeState
from podqos.placement.pod_affinity import Namespaces
from podqos.placement.pod_view import PodView, Views
from podqos.placement.preemption import Candidate, Preemption
from podqos.placement.reasons import Insufficient, Reason, SelectorMismatch, UnderPressure, UntoleratedTaint
from podqos.placement.taints import taints_of


class Covered(Struct, frozen=True):
    """Disruption budgets, and the pods that they may be about."""

    budgets: tuple[PodDisruptionBudget, ...]
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

    def __init__(self, nodes: Iterable[Node], profile: Profile, covered: Callable[[], Covered] | None = None) -> None:
        """``covered`` says what disruption budgets are about now; None where there are none."""
        self._profile = profile
        self._covered = covered
        self._states = {node.name: NodeState(node, profile) for node in nodes}
        self._away: dict[str, NodeState] = {}
        self._views = Views(profile)
        self._where: dict[str, tuple[PodView, NodeState]] = {}
        self._leaving: set[str] = set()
        self._nominated: dict[str, tuple[PodView, NodeState]] = {}
        """By key the pods that have preempted others, and where."""
        self.waiting: dict[str, PodView] = {}
        """By key, in the order of arrival."""
        self._rebuild()

    def _rebuild(self) -> None:
        leak = self._profile.namespace_selectors_leak
        self._cluster = Cluster(self._states.values(), Namespaces(selectors_leak=leak), self._profile)
        self._chooser = OneByOne(self._cluster)
        self._preemption = Preemption(self._cluster, Budgets())

    def _budgets(self) -> Budgets:
        """Return what disruption budgets allow now."""
        if self._covered is None:
            return Budgets()
        covered = self._covered()
        budgets = Budgets(covered.budgets, map(self._views.of, covered.expected))
        for pod in covered.healthy:
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
        self._leaving.discard(pod.key)
        self._nominated.pop(pod.key, None)
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
        state.node = replace(state.node, status=replace(state.node.status, conditions=reported))
        state.taints = taints_of(state.node, self._profile)
        state.version += 1

    def no_place(self, view: PodView) -> NoPlace:
        """Return why a pod is pending."""
        with self._beside_nominated(view):
            filters = Filters(view, self._cluster)
            reasons = (reason for state in self._cluster.states for reason in filters.first_reasons(state))
            counted = Counter((type(reason).__name__, _about(reason)) for reason in reasons)
        ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
        refusing = tuple(NodesRefusing(name, nodes, what) for (name, what), nodes in ranked)
        return NoPlace(nodes=len(self._cluster.states), refusing=refusing)

    def remove_node(self, name: str) -> None:
        """Place no more pods on a node."""
        if name in self._states:
            away = self._away[name] = self._states.pop(name)
            self._nominated = {key: each for key, each in self._nominated.items() if each[1] is not away}
            self._rebuild()

    def add_node(self, name: str) -> None:
        """Let a node that was away take pods again, beside those still bound to it; it reports nothing yet."""
        if name in self._away:
            self._states[name] = self._away.pop(name)
            self._rebuild()
        self.report(name, ())

    def place(self) -> list[tuple[Pod, str | None, tuple[Displaced, ...]]]:
        """Try to place all pending pods, the higher priority first.

        Returns pod, node and preempted pods where there was a result. A pod that preempts others has no node yet.
        """
        placed: list[tuple[Pod, str | None, tuple[Displaced, ...]]] = []
        for view in sorted(self.waiting.values(), key=lambda view: -view.priority):
            state = self._choose(view)
            if state is not None:
                del self.waiting[view.key]
                self._nominated.pop(view.key, None)
                state.add(view)
                self._where[view.key] = view, state
                placed.append((view.pod, state.name, ()))
                continue
            if self._leaving:
                continue  # another preemption is under way
            budgets = self._budgets()
            preemption = Preemption(self._cluster, budgets) if budgets else self._preemption
            candidate = preemption.candidate(view)
            self._nominated.pop(view.key, None)
            if isinstance(candidate, Candidate):
                self._nominate(view, candidate.state)
                self._leaving |= {victim.key for victim in candidate.victims}
                breaking = zip(candidate.victims, budgets.violating(candidate.victims), strict=True)
                placed.append((view.pod, None, tuple(Displaced(victim.pod, breaks) for victim, breaks in breaking)))
        return placed

    def _choose(self, view: PodView) -> NodeState | None:
        """Return the node to take: that to which the pod is nominated, if it fits there (``evaluateNominatedNode``)."""
        with self._beside_nominated(view):
            own = self._nominated.get(view.key)
            if own is not None and not Filters(view, self._cluster).first_reasons(own[1]):
                return own[1]
            choice = self._chooser.choose(view)
        return None if choice is None else choice.state

    @contextmanager
    def _beside_nominated(self, view: PodView) -> Iterator[None]:
        """Count the pods that are nominated and at least as important as if they had their nodes already.

        Source: ``RunFilterPluginsWithNominatedPods`` of kube-scheduler.
        """
        others = [
            (other, state)
            for other, state in self._nominated.values()
            if other.key != view.key and other.priority >= view.priority
        ]
        for other, state in others:
            state.add(other)
        try:
            yield
        finally:
            for other, state in others:
                state.remove(other)

    def _nominate(self, view: PodView, state: NodeState) -> None:
        """Keep room on a node; less important pods that were nominated there look for another."""
        self._nominated = {
            key: each
            for key, each in self._nominated.items()
            if each[1] is not state or each[0].priority >= view.priority
        }
        self._nominated[view.key] = view, state


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
