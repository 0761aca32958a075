"""Chooses nodes for pods: the score plugins of the default profile, budgets, and whom a pod may preempt.

*Scores*: every plugin gives each node 0 to 100 points; the weighted sum decides. The scheduler picks at random among
the best; podqos takes the first by name, so that the same input gives the same answer. Upstream looks at a sample of
the nodes once there are more than a hundred, podqos at all of them. All round as upstream does. LeastAllocated counts
something for containers that request nothing, BalancedAllocation does not.

*Preemption*: on every node where removing pods could help, all pods of lower priority are removed tentatively; if the
pod then fits, as many as possible are put back, the most important first and those whose disruption budget would be
violated before the others. The rest are the victims. Of all such nodes the one with the least harm is chosen. Upstream
tries a random tenth of the nodes; podqos tries all and takes the first by name among equals. Budgets are honoured where
possible; preemption does not stop at them.

Source: Kubernetes v1.36 pkg/scheduler/apis/config/v1/default_plugins.go (weights), pkg/scheduler/framework/plugins/
noderesources/{least_allocated,balanced_allocation,resource_allocation}.go, plugins/helper/normalize_score.go and the
NormalizeScore of each plugin; plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode,
filterPodsWithPDBViolation) and pkg/scheduler/framework/preemption/preemption.go (pickOneNodeForPreemption).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from podqos.model.disruption import PodDisruptionBudget, disruptions_allowed
from podqos.model.node import LABEL_HOSTNAME
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import CPU, MEMORY
from podqos.placement.filters import (
    Books,
    Filters,
    SchedulerCluster,
    Spread,
    insufficient,
    not_declared,
    port_taken,
    static_reasons,
)
from podqos.placement.node_rules import disliked, image_points, preference
from podqos.placement.pods import Demand, Likeness, PodView, SchedulerNode
from podqos.placement.reasons import Plugin, Reasons

MAX_NODE_SCORE = 100
_NOTHING: Mapping[str, int] = {}

WEIGHTS: Mapping[Plugin, int] = {
    Plugin.TAINT_TOLERATION: 3,
    Plugin.NODE_AFFINITY: 2,
    Plugin.NODE_RESOURCES_FIT: 1,
    Plugin.POD_TOPOLOGY_SPREAD: 2,
    Plugin.INTER_POD_AFFINITY: 2,
    Plugin.NODE_RESOURCES_BALANCED_ALLOCATION: 1,
    Plugin.IMAGE_LOCALITY: 1,
}


class NodeScore(Struct, frozen=True, gc=False):
    """How good one node is for a pod."""

    node: str
    total: int
    points: dict[Plugin, int]
    """Weighted, by plugin; plugins that do not apply to the pod are left out."""


class Choice(Struct, frozen=True, gc=False):
    """The node that a pod gets."""

    state: SchedulerNode
    scores: tuple[NodeScore, ...] = ()
    """Scores of every feasible node; empty unless requested."""


def least_allocated(demand: Demand, state: SchedulerNode) -> int:
    """Return the mean of what would be left of cpu and memory, in percent."""
    cpu, memory = state.cpu_milli, state.memory_bytes
    free_cpu = _free_percent(cpu, state.scored_cpu_milli + demand.asking_cpu_milli) if cpu else 0
    free_memory = _free_percent(memory, state.scored_memory_bytes + demand.asking_memory_bytes) if memory else 0
    return (free_cpu + free_memory) // 2 if cpu and memory else free_cpu + free_memory


def is_balanced(demand: Demand, profile: Profile) -> bool:
    """Whether BalancedAllocation applies to the pod."""
    requested = demand.requested
    return bool(requested.get(CPU) or requested.get(MEMORY)) or not profile.balance_ignores_best_effort


def balanced_allocation(
    demand: Demand, state: SchedulerNode, profile: Profile = LATEST, without: int | None = None
) -> int:
    """Return how well the pod balances the used parts of cpu and memory; ``without`` is the balance as it is.

    Since 1.36 50 to 100 points by how the balance changes, 75 if it does not; before, the balance itself.
    """
    balance_with = balance(state, demand.requested)
    if not profile.balance_compares:
        return balance_with
    half = MAX_NODE_SCORE // 2
    return half + (half + balance_with - (balance(state) if without is None else without)) // 2


def balance(state: SchedulerNode, more: Mapping[str, int] = _NOTHING) -> int:
    """Return 100 less half the difference between the used parts of cpu and memory in percent, with ``more`` used."""
    cpu, memory = state.cpu_milli, state.memory_bytes
    if not cpu or not memory:
        return MAX_NODE_SCORE
    requested = state.requested
    used_cpu = min(1.0, (requested.get(CPU, 0) + more.get(CPU, 0)) / cpu)
    used_memory = min(1.0, (requested.get(MEMORY, 0) + more.get(MEMORY, 0)) / memory)
    return int((1 - abs((used_cpu - used_memory) / 2)) * MAX_NODE_SCORE)


def normalised(scores: Sequence[int]) -> list[int]:
    """Return the scores in percent of the highest."""
    highest = max(scores, default=0)
    return [MAX_NODE_SCORE * score // highest for score in scores] if highest else list(scores)


def _roomier(crowded: Sequence[int | None]) -> list[int]:
    """Return the more points the less crowded a node is; none for those that do not take part."""
    counted = [each for each in crowded if each is not None]
    lowest, highest = min(counted, default=0), max(counted, default=0)
    return [
        0 if each is None else MAX_NODE_SCORE * (highest + lowest - each) // highest if highest else MAX_NODE_SCORE
        for each in crowded
    ]


def _stretched(weights: Sequence[int]) -> list[int]:
    """Return the weights from the lowest, 0, to the highest, 100."""
    lowest = min(weights)
    span = max(weights) - lowest
    return [int(MAX_NODE_SCORE * ((weight - lowest) / span)) if span else 0 for weight in weights]


def _free_percent(capacity: int, used: int) -> int:
    return (capacity - used) * MAX_NODE_SCORE // capacity if used <= capacity else 0


class Chooser:
    """Asks every filter about every node and takes the best score, first by name among equals.

    What a node alone decides is judged once for the pods of one workload, and again when the node has changed.
    """

    def __init__(self, cluster: SchedulerCluster, *, explains: bool = False) -> None:
        """With ``explains``, every choice includes the scores."""
        self._cluster = cluster
        self._explains = explains
        self._balance: dict[str, tuple[int, int]] = {}
        """Of nodes as they are, by name, and of which version."""

    def choose(self, view: PodView) -> Choice | None:
        """Return the best node, or None if no node is feasible."""
        books, feasible = self._feasible(view)
        if not feasible:
            return None
        states = self._cluster.states
        if not self._explains:
            return Choice(states[self._best(view, books, feasible)[0]])
        columns = self._columns(view, books, feasible)
        scores = []
        for number, index in enumerate(feasible):
            points = {plugin: WEIGHTS[plugin] * column[number] for plugin, column in columns.items()}
            scores.append(NodeScore(states[index].name, sum(points.values()), points))
        highest = max(range(len(scores)), key=lambda number: scores[number].total)
        return Choice(states[feasible[highest]], tuple(scores))

    def best(self, view: PodView) -> list[SchedulerNode]:
        """Return the nodes with the highest score, by name; the real scheduler picks one of them at random."""
        return [self._cluster.states[index] for index in self._best(view, *self._feasible(view))]

    def _feasible(self, view: PodView) -> tuple[Books, list[int]]:
        """Return what is counted for the pod, and the numbers of the nodes that would do."""
        cluster = self._cluster
        filters, states, nominations = Filters(view, cluster), cluster.states, cluster.nominations
        candidates = cluster.candidates(view)
        self._judge(view, filters.books, candidates)
        fit = filters.books.fit
        feasible = [index for index in candidates if fit[index] >= 0]
        if not filters.is_local:
            feasible = [index for index in feasible if not any(filters.by_pods_elsewhere(states[index]))]
        if nominations:
            feasible = [index for index in feasible if not filters.first_reasons(states[index])]
        return filters.books, feasible

    def _judge(self, view: PodView, books: Books, candidates: Sequence[int]) -> None:
        """Give points to the nodes that have changed since a pod like this one was placed."""
        cluster, shape = self._cluster, view.shape
        profile, demand, has_ports = cluster.profile, shape.demand, bool(shape.ports)

        def is_open(state: SchedulerNode) -> bool:
            return not any(static_reasons(shape, state, profile)) and not not_declared(shape, state)

        opens: Sequence[bool] | dict[int, bool]
        if shape.named_nodes is None:
            opens = cluster.of_each_node(("open", shape.node_key), is_open)
        else:
            opens = {index: is_open(cluster.states[index]) for index in candidates}
        compares = is_balanced(demand, profile)
        judged, fit, balanced, states = books.judged, books.fit, books.balance, cluster.states
        for index in candidates:
            state = states[index]
            if judged[index] == state.version:
                continue
            judged[index] = state.version
            if opens[index] and not insufficient(demand, state) and not (has_ports and port_taken(shape, state)):
                fit[index] = least_allocated(demand, state)
                if compares:
                    version, without = self._balance.get(state.name, (-1, 0))
                    if version != state.version:
                        without = balance(state)
                        self._balance[state.name] = state.version, without
                    balanced[index] = balanced_allocation(demand, state, profile, without)
            else:
                fit[index] = -1

    def _best(self, view: PodView, books: Books, feasible: list[int]) -> list[int]:
        if len(feasible) <= 1:
            return feasible
        columns = self._columns(view, books, feasible)
        weighted = (
            column if WEIGHTS[plugin] == 1 else [WEIGHTS[plugin] * each for each in column]
            for plugin, column in columns.items()
        )
        points = list(map(sum, zip(*weighted, strict=True)))
        highest = max(points)
        return [index for index, point in zip(feasible, points, strict=True) if point == highest]

    def _columns(self, view: PodView, books: Books, feasible: list[int]) -> dict[Plugin, list[int]]:
        """Return the scores of every node by plugin; without those that do not apply to the pod."""
        cluster, states, shape = self._cluster, self._cluster.states, view.shape
        columns = {Plugin.NODE_RESOURCES_FIT: [books.fit[index] for index in feasible]}
        if is_balanced(shape.demand, cluster.profile):
            columns[Plugin.NODE_RESOURCES_BALANCED_ALLOCATION] = [books.balance[index] for index in feasible]
        tolerations = shape.spec.tolerations
        tainted = cluster.of_each_node(("disliked", tolerations), lambda state: disliked(state.taints, tolerations))
        if any(tainted) and any(tainted[index] for index in feasible):
            points = normalised([tainted[index] for index in feasible])
            columns[Plugin.TAINT_TOLERATION] = [MAX_NODE_SCORE - each for each in points]
        terms = shape.preferred_nodes
        if terms:
            preferred = cluster.of_each_node(("preferred", terms), lambda state: preference(terms, state.node))
            columns[Plugin.NODE_AFFINITY] = normalised([preferred[index] for index in feasible])
        if books.soft:
            columns[Plugin.POD_TOPOLOGY_SPREAD] = _roomier(self._crowdedness(view, books.soft, feasible))
        drawn = books.neighbours.attraction(states[index] for index in feasible)
        if drawn is not None:
            columns[Plugin.INTER_POD_AFFINITY] = _stretched(drawn)
        if cluster.image_states and any(states[index].images for index in feasible):
            images = cluster.of_each_node(
                ("images", shape.images, shape.image_count),
                lambda state: image_points(
                    shape.images, shape.image_count, state.images, cluster.image_states, len(states)
                ),
            )
            columns[Plugin.IMAGE_LOCALITY] = [images[index] for index in feasible]
        return columns

    def _crowdedness(self, view: PodView, spreads: list[Spread], feasible: list[int]) -> list[int | None]:
        """Return how many of the pod's like are near each of the nodes, weighted over all constraints.

        None for a node that lacks a label, unless the constraints are the scheduler's own.
        """
        states = self._cluster.states
        included = feasible
        if not view.likeness.is_spread_by_default:
            keys = [spread.constraint.topology_key for spread in spreads]
            included = [index for index in feasible if all(key in states[index].labels for key in keys)]
        totals = dict.fromkeys(included, 0.0)
        for spread in spreads:
            key, further = spread.constraint.topology_key, spread.constraint.max_skew - 1
            own, sums = key == LABEL_HOSTNAME, spread.sums
            domains = len(included) if own else len({states[index].labels.get(key, "") for index in included})
            # One pod counts for more where a label has more values.
            weight = math.log(domains + 2)
            for index in included:
                labels = states[index].labels
                if key in labels:
                    near = spread.per_node[index] if own else sums[labels[key]]
                    totals[index] += near * weight + further
        return [math.floor(totals[index] + 0.5) if index in totals else None for index in feasible]


class Budgets:
    """The budgets of a cluster and the pods they cover."""

    def __init__(
        self,
        budgets: Iterable[PodDisruptionBudget] = (),
        pods: Iterable[PodView] = (),
        profile: Profile = LATEST,
    ) -> None:
        """``pods`` are all that should run: a percentage is relative to their number."""
        self._profile = profile
        self._budgets = [_Counted(budget) for budget in budgets]
        if self._budgets:
            for view in pods:
                for counted in self._budgets:
                    counted.expected += counted.covers(view)

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def count(self, view: PodView, change: int) -> None:
        """Count a pod that was added to (1) or removed from (-1) a node."""
        for counted in self._budgets:
            if counted.covers(view):
                counted.healthy += change
                counted.disrupted -= min(0, change)

    def violating(self, victims: Iterable[PodView]) -> list[bool]:
        """Return for each victim, in order, whether losing it as well violates a budget."""
        left = [counted.allowed for counted in self._budgets]
        verdicts = []
        for view in victims:
            violated = False
            for index, counted in enumerate(self._budgets):
                if counted.covers(view) and not counted.is_disrupted(view):
                    left[index] -= 1
                    violated = violated or left[index] < 0
                    if violated and self._profile.broken_budget_ends_count:
                        break
            verdicts.append(violated)
        return verdicts


class _Counted:
    """One budget with the numbers of its pods."""

    def __init__(self, budget: PodDisruptionBudget) -> None:
        self._budget = budget
        self._namespace = budget.metadata.namespace_or_default
        self.expected = 0
        self.healthy = 0
        self.disrupted = 0

    @property
    def allowed(self) -> int:
        """How many more pods may be disrupted: the controller's figure, or else what it would be."""
        if self._budget.status is not None:
            return self._budget.status.disruptions_allowed - self.disrupted
        return disruptions_allowed(self._budget, healthy=self.healthy, expected=self.expected)

    def covers(self, view: PodView) -> bool:
        """Whether the budget covers the pod; to the scheduler, an empty selector covers none."""
        selector = self._budget.spec.selector
        likeness = view.likeness
        return (
            selector is not None
            and not selector.is_empty
            and likeness.namespace == self._namespace
            and bool(likeness.labels)
            and selector.matches(likeness.labels)
        )

    def is_disrupted(self, view: PodView) -> bool:
        """Whether the API server has already allowed the pod's disruption."""
        status = self._budget.status
        return status is not None and view.pod.metadata.name in status.disrupted_pods


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
            self._filters.reckon(self.state, other, change)
