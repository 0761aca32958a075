"""The result of ``place``, with the reasons of pending pods computed on demand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import chain

from msgspec import Struct

from podqos.placement.budgets import Budgets
from podqos.placement.filters import Filters, SchedulerCluster
from podqos.placement.pod_view import Likeness, PodView
from podqos.placement.preemption import Preemption, PreemptionFailure
from podqos.placement.reasons import Reasons
from podqos.placement.score import NodeScore


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
