"""Which pods a pod that fits nowhere may preempt.

On every node where removing pods could help, all pods of lower priority are removed tentatively; if the pod then fits,
as many as possible are put back, the most important first and those whose disruption budget would be violated before
the others. The rest are the victims. Of all such nodes the one with the least harm is chosen.

Source: Kubernetes v1.36 pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode,
filterPodsWithPDBViolation) and pkg/scheduler/framework/preemption/preemption.go (pickOneNodeForPreemption). Upstream
tries a random tenth of the nodes; podqos tries all and takes the first by name among equals.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from podqos.placement.budgets import Budgets
from podqos.placement.filters import Filters, SchedulerCluster
from podqos.placement.node_state import SchedulerNode
from podqos.placement.pod_view import Likeness, PodView
from podqos.placement.reasons import Reasons

# Added to every priority so that the sum grows with the number of victims, whatever their sign.
_PRIORITY_OFFSET = 2**31


class NoCandidate(StrEnum):
    """Why preemption does not help on a node, when it is not one of the filters' reasons."""

    NOT_HELPFUL = "NotHelpful"
    """The node rejects the pod for a reason that has nothing to do with its pods."""
    NO_VICTIMS = "NoVictims"
    """No pod there has a lower priority."""


class Candidate(Struct, frozen=True):
    """A node on which preempting some pods makes room."""

    state: SchedulerNode
    victims: tuple[PodView, ...]
    """The most important first; never empty."""
    harm: tuple[int, int, int, int]
    """Compared first: violated budgets, highest priority, sum of priorities, number of victims."""
    earliest_start: str
    """When the longest running of the most important victims started."""


class PreemptionFailure(Struct, frozen=True):
    """Why preemption does not help."""

    is_eligible: bool
    """False for a pod with ``preemptionPolicy: Never``."""
    nodes: dict[str, NoCandidate | Reasons] = {}
    """By node: what still prevents it."""


class Preemption:
    """Finds room for pods that fit nowhere.

    What was found for a node is kept for the next pod of the same workload, as long as the node stays as it is.
    """

    def __init__(self, cluster: SchedulerCluster, budgets: Budgets) -> None:
        self._cluster = cluster
        self._budgets = budgets
        self._likeness: Likeness | None = None
        self._found: dict[str, tuple[int, Candidate | NoCandidate | Reasons]] = {}

    def candidate(self, view: PodView) -> Candidate | PreemptionFailure:
        """Return the node where ``view``, which fits nowhere, does the least harm, and its victims there."""
        if not view.may_preempt:
            return PreemptionFailure(is_eligible=False)
        filters = Filters(view, self._cluster)
        # A nominated pod does not count itself among the nominated ones, as the others of its workload do.
        is_shared = filters.is_local and not self._budgets and self._cluster.nominations.node_of(view) is None
        if view.likeness != self._likeness or not is_shared:
            self._likeness, self._found = view.likeness if is_shared else None, {}
        candidates: list[Candidate] = []
        failures: dict[str, NoCandidate | Reasons] = {}
        for state in self._cluster.states:
            version, found = self._found.get(state.name, (-1, NoCandidate.NOT_HELPFUL))
            if version != state.version:
                found = _on_node(view, state, filters, self._budgets)
                self._found[state.name] = state.version, found
            if isinstance(found, Candidate):
                candidates.append(found)
            else:
                failures[state.name] = found
        return least_harmful(candidates) if candidates else PreemptionFailure(is_eligible=True, nodes=failures)


def least_harmful(candidates: list[Candidate]) -> Candidate:
    """Return the candidate to take: the least harm, then the latest start, then the first by name."""
    harm = min(candidate.harm for candidate in candidates)
    equal = [candidate for candidate in candidates if candidate.harm == harm]
    latest = max(candidate.earliest_start for candidate in equal)
    return min((c for c in equal if c.earliest_start == latest), key=lambda candidate: candidate.state.name)


def _on_node(
    view: PodView, state: SchedulerNode, filters: Filters, budgets: Budgets
) -> Candidate | NoCandidate | Reasons:
    if any(reason.unresolvable for reason in filters.first_reasons(state)):
        return NoCandidate.NOT_HELPFUL
    lower = sorted(
        (other for other in state.pods.values() if other.priority < view.priority), key=lambda other: other.importance
    )
    if not lower:
        return NoCandidate.NO_VICTIMS
    trial = _Trial(state, filters)
    try:
        for other in lower:
            trial.take_away(other)
        refused = filters.first_reasons(state)
        return refused or _spare(lower, trial, budgets)
    finally:
        trial.restore()


def _spare(lower: list[PodView], trial: _Trial, budgets: Budgets) -> Candidate:
    """Put back the pods that still fit; the rest are the victims."""
    breaks = dict(zip((other.key for other in lower), budgets.violating(lower), strict=True))
    by_budget = sorted(lower, key=lambda other: not breaks[other.key])
    victims = [other for other in by_budget if not trial.fits_with(other)]
    victims.sort(key=lambda victim: victim.importance)
    highest = victims[0].priority
    return Candidate(
        state=trial.state,
        victims=tuple(victims),
        harm=(
            sum(breaks[victim.key] for victim in victims),
            highest,
            sum(victim.priority + _PRIORITY_OFFSET for victim in victims),
            len(victims),
        ),
        earliest_start=min(victim.started for victim in victims if victim.priority == highest),
    )


class _Trial:
    """A node on which pods are removed and put back tentatively."""

    def __init__(self, state: SchedulerNode, filters: Filters) -> None:
        self.state = state
        self._filters = filters
        self._is_local = filters.is_local
        self._version = state.version
        self._away: dict[str, PodView] = {}

    def take_away(self, other: PodView) -> None:
        self.state.remove(other)
        self._count(other, -1)
        self._away[other.key] = other

    def put_back(self, other: PodView) -> None:
        self.state.add(other)
        self._count(other, 1)
        del self._away[other.key]

    def fits_with(self, other: PodView) -> bool:
        """Put ``other`` back if there is room for it in addition to the pod."""
        self.put_back(other)
        if self._filters.is_crowded_out(self.state):
            self.take_away(other)
            return False
        return True

    def restore(self) -> None:
        """Put all pods back: the node is as before."""
        for other in tuple(self._away.values()):
            self.put_back(other)
        self.state.version = self._version

    def _count(self, other: PodView, change: int) -> None:
        if not self._is_local:
            self._filters.count(self.state, other, change)
