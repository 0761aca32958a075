"""The choice of ``OneByOne`` for all nodes at once, for clusters of thousands. Needs numpy (``podqos[fleet]``).

Every rule has its readable twin in the module of its name, and a property test holds the two equal. What differs is
the bookkeeping: pods that some rule counts are counted per node as they come and go (``crowd``), instead of being
looked for each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from podqos.model.node import LABEL_HOSTNAME
from podqos.model.scheduling import PodAffinityTerm, TopologySpreadConstraint
from podqos.model.selector import LabelSelector, selects
from podqos.placement.columns import IMPOSSIBLE, Floats, Mask, NodeColumns, NodeMasks
from podqos.placement.filters import SchedulerCluster, port_taken
from podqos.placement.node_state import SchedulerNode
from podqos.placement.pod_affinity import asks_for, meets_all, speaks_of
from podqos.placement.pod_index import Crowd, PodGroup
from podqos.placement.pod_view import PodView
from podqos.placement.reasons import Plugin
from podqos.placement.score import MAX_NODE_SCORE, WEIGHTS, Choice
from podqos.placement.topology_spread import HONOR, counts, domain_weight

Indices: TypeAlias = NDArray[np.intp]
Chosen: TypeAlias = Indices | slice


class Columnar:
    """Chooses as ``OneByOne`` does."""

    def __init__(self, cluster: SchedulerCluster) -> None:
        self._states = cluster.states
        self._namespaces = cluster.namespaces
        self._index = {state.name: index for index, state in enumerate(cluster.states)}
        self._room = NodeColumns(cluster)
        self._nodes = NodeMasks(cluster)
        self._crowd = Crowd(len(cluster.states))
        self._ports: dict[tuple[int, str], dict[int, int]] = {}
        self._topologies: dict[str, _Topology] = {}
        for index, state in enumerate(cluster.states):
            for view in state.pods.values():
                self._count_neighbour(index, view, 1)

    def choose(self, view: PodView) -> Choice | None:
        """Return the best node, or None if no node is feasible."""
        if not self._states:
            return None
        points = self._room.points(view.shape, self._nodes.allowing(view.shape))
        for possible in self._left_by_others(view):
            points = np.where(possible, points, IMPOSSIBLE)
        if self._has_preferences(view):
            return self._best_preferred(view, points)
        best = int(points.argmax())
        return Choice(self._states[best]) if points[best] >= 0 else None

    def count(self, state: SchedulerNode, view: PodView, change: int) -> None:
        """Note that a pod was added to (1) or removed from (-1) a node."""
        index = self._index[state.name]
        self._room.count(index, view.held, change)
        self._count_neighbour(index, view, change)

    def _count_neighbour(self, index: int, view: PodView, change: int) -> None:
        self._crowd.count(index, view, change)
        for term in view.anti_affinity:
            self._owners(term, view).per_node[index] += change
        for weight, term in view.attraction:
            self._owners(term, view, weight).per_node[index] += change
        for port in view.shape.ports:
            users = self._ports.setdefault((port.port, port.protocol), {})
            users[index] = users.get(index, 0) + change

    # ---- preferences -------------------------------------------------------------------------------------------------

    def _has_preferences(self, view: PodView) -> bool:
        """Whether anything other than free resources distinguishes the nodes."""
        return bool(
            view.soft_spread
            or view.preferred
            or view.shape.preferred_nodes
            or self._nodes.some_are_disliked
            or self._nodes.some_have_images
            or self._crowd.drawing(view)
        )

    def _best_preferred(self, view: PodView, points: Floats) -> Choice | None:
        """Return the first of the best nodes, scored among the feasible nodes, as ``score`` does."""
        indices = np.flatnonzero(points >= 0)
        if not indices.size:
            return None
        # Mostly every node would do: then nothing must be picked out of the columns.
        feasible = indices if indices.size < points.size else slice(None)
        total = points[indices]
        for plugin, column in self._columns(view, feasible):
            total += WEIGHTS[plugin] * column
        return Choice(self._states[int(indices[total.argmax()])])

    def _columns(self, view: PodView, feasible: Chosen) -> Iterator[tuple[Plugin, Floats]]:
        """Yield the scores of the feasible nodes, plugin by plugin."""
        shape, nodes = view.shape, self._nodes
        if nodes.some_are_disliked:
            yield Plugin.TAINT_TOLERATION, -_normalised(nodes.disliked(shape)[feasible])
        if shape.preferred_nodes:
            yield Plugin.NODE_AFFINITY, _normalised(nodes.preferred(shape)[feasible])
        if view.soft_spread:
            yield Plugin.POD_TOPOLOGY_SPREAD, self._roomier(view, feasible)
        if view.preferred or self._crowd.drawing(view):
            yield Plugin.INTER_POD_AFFINITY, self._drawn(view, feasible)
        if nodes.some_have_images:
            yield Plugin.IMAGE_LOCALITY, nodes.with_images(shape)[feasible]

    def _roomier(self, view: PodView, feasible: Chosen) -> Floats:
        crowded = np.zeros(len(self._states))[feasible]
        included = self._included(view, feasible)
        if included is not None and not included.any():
            return crowded
        for constraint in view.soft_spread:
            topology = self._topology(constraint.topology_key)
            per_node = self._alike(view, constraint.label_selector).per_node
            if constraint.topology_key == LABEL_HOSTNAME:
                near = per_node[feasible]
                domains = len(near) if included is None else int(np.count_nonzero(included))
            else:
                sums = topology.sums(per_node, self._taking_part(view, constraint, view.soft_spread))[0]
                near = topology.near(sums, feasible)
                domains = topology.number(topology.domain[feasible], included)
            near = near * domain_weight(domains)
            near += constraint.max_skew - 1
            if not topology.is_complete:
                near *= topology.labelled[feasible]
            crowded += near
        crowded += 0.5
        np.floor(crowded, out=crowded)
        counted = crowded if included is None else crowded[included]
        lowest, highest = counted.min(), counted.max()
        if highest:
            np.subtract(highest + lowest, crowded, out=crowded)
            crowded *= MAX_NODE_SCORE
            crowded /= highest
            np.floor(crowded, out=crowded)
        else:
            crowded += MAX_NODE_SCORE
        return crowded if included is None else crowded * included

    def _included(self, view: PodView, feasible: Chosen) -> Mask | None:
        """Return which of the nodes have every label that pods are spread over; None if all have, or need not."""
        topologies = [self._topology(constraint.topology_key) for constraint in view.soft_spread]
        if view.is_spread_by_default or all(topology.is_complete for topology in topologies):
            return None
        included: Mask = np.logical_and.reduce([topology.labelled[feasible] for topology in topologies])
        return included

    def _drawn(self, view: PodView, feasible: Chosen) -> Floats:
        weights = np.zeros(len(self._states))[feasible]
        own = ((weight, term.topology_key, self._meant(term, view)) for weight, term in view.preferred)
        others = ((group.weight, group.topology_key, group) for group in self._crowd.drawing(view))
        for weight, key, group in chain(own, others):
            weights += weight * self._topology(key).pods_near(group.per_node)[feasible]
        lowest, highest = weights.min(), weights.max()
        if lowest == highest:
            return np.zeros(len(weights))
        stretched: Floats = np.floor(MAX_NODE_SCORE * ((weights - lowest) / (highest - lowest)))
        return stretched

    # ---- filters -----------------------------------------------------------------------------------------------------

    def _left_by_others(self, view: PodView) -> Iterator[Mask]:
        """Yield, rule by rule, the nodes whose pods do not rule out this one."""
        if view.shape.ports:
            yield self._with_free_ports(view)
        for constraint, selector in zip(view.shape.spread, view.spread, strict=True):
            yield self._evenly_spread(view, constraint, selector)
        if view.affinity:
            yield self._near_others(view)
        for term in view.anti_affinity:
            yield ~self._topology(term.topology_key).domains_with(self._meant(term, view).per_node)
        for group in self._crowd.keeping_away(view):
            yield ~self._topology(group.topology_key).domains_with(group.per_node)

    def _with_free_ports(self, view: PodView) -> Mask:
        mask = np.ones(len(self._states), dtype=np.bool_)
        for port in view.shape.ports:
            for index in self._ports.get((port.port, port.protocol), ()):
                mask[index] &= not port_taken(view, self._states[index])
        return mask

    def _evenly_spread(
        self, view: PodView, constraint: TopologySpreadConstraint, selector: LabelSelector | None
    ) -> Mask:
        topology = self._topology(constraint.topology_key)
        per_node = self._alike(view, selector).per_node
        sums, present = topology.sums(per_node, self._taking_part(view, constraint, view.shape.spread))
        enough = np.count_nonzero(present) >= (constraint.min_domains or 1)
        minimum = sums[present].min() if enough else 0.0
        itself = 1 if selects(selector, view.labels) else 0
        return topology.labelled & (sums[topology.domain] + itself - minimum <= constraint.max_skew)

    def _alike(self, view: PodView, selector: LabelSelector | None) -> PodGroup:
        """Return the pods that a spread constraint counts."""
        return self._crowd.meant(
            ("spread", view.namespace, msgspec.json.encode(selector)),
            selector,
            lambda other: counts(selector, view.namespace, other),
        )

    def _taking_part(
        self,
        view: PodView,
        constraint: TopologySpreadConstraint,
        constraints: tuple[TopologySpreadConstraint, ...],
    ) -> Mask | None:
        """Return the nodes that take part; None if all do."""
        masks = []
        if not view.is_spread_by_default:
            topologies = (self._topology(other.topology_key) for other in constraints)
            masks += [topology.labelled for topology in topologies if not topology.is_complete]
        if constraint.node_affinity_policy == HONOR and not view.shape.goes_by_labels_anywhere:
            masks.append(self._nodes.matching(view.shape))
        if constraint.node_taints_policy == HONOR:
            masks.append(self._nodes.tolerated(view.shape))
        return np.logical_and.reduce(masks) if masks else None

    def _near_others(self, view: PodView) -> Mask:
        per_node = self._crowd.meant(
            ("near", view.namespace, msgspec.json.encode(view.affinity)),
            view.affinity[0].label_selector,
            lambda other: meets_all(view, other, self._namespaces),
        ).per_node
        topologies = [self._topology(term.topology_key) for term in view.affinity]
        others = any(per_node[topology.labelled].any() for topology in topologies)
        alone = not others and meets_all(view, view, self._namespaces)
        mask = np.ones(len(self._states), dtype=np.bool_)
        for topology in topologies:
            mask &= topology.labelled if alone else topology.domains_with(per_node)
        return mask

    def _meant(self, term: PodAffinityTerm, owner: PodView) -> PodGroup:
        return self._crowd.meant(
            ("term", owner.namespace, msgspec.json.encode(term)),
            term.label_selector,
            lambda other: asks_for(term, owner, other, self._namespaces),
        )

    def _owners(self, term: PodAffinityTerm, owner: PodView, weight: int = 0) -> PodGroup:
        """Return the pods that have a term: an anti-affinity, or one of a weight."""
        return self._crowd.owners(
            (owner.namespace, weight, msgspec.json.encode(term)),
            term,
            lambda other: speaks_of(term, owner, other, self._namespaces),
            weight,
        )

    def _topology(self, key: str) -> _Topology:
        if key not in self._topologies:
            self._topologies[key] = _Topology(key, self._states)
        return self._topologies[key]


class _Topology:
    """The nodes by their value of one label."""

    def __init__(self, key: str, states: list[SchedulerNode]) -> None:
        numbers: dict[str | None, int] = {None: 0}
        values = (state.labels.get(key) for state in states)
        self.domain = np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), dtype=np.intp)
        """The number of each node's value; 0 stands for none."""
        self.labelled: Mask = self.domain > 0
        self.is_complete = bool(self.labelled.all())
        self._size = len(numbers)
        self._unnamed = numbers.get("", 0)
        """The number of the empty value."""

    def domains_with(self, per_node: Floats) -> Mask:
        """Return the nodes in whose domain there is any of the pods."""
        return self.pods_near(per_node) > 0

    def pods_near(self, per_node: Floats) -> Floats:
        """Return how many of the pods are in the domain of each node; none if the node has no value."""
        sums: Floats = np.bincount(self.domain, weights=per_node, minlength=self._size).astype(np.float64)
        sums[0] = 0.0
        near: Floats = sums[self.domain]
        return near

    def near(self, sums: Floats, nodes: Chosen) -> Floats:
        """Return the sums of the domains of some nodes; the empty value is that of nodes without one, too."""
        if self._unnamed:
            sums[self._unnamed] += sums[0]
        near: Floats = sums[self.domain[nodes]]
        return near

    def number(self, domain: Indices, included: Mask | None) -> int:
        """Return how many domains some nodes are of."""
        present = np.bincount(domain if included is None else domain[included], minlength=self._size) > 0
        return int(np.count_nonzero(present)) - int(self._unnamed and present[0] and present[self._unnamed])

    def sums(self, per_node: Floats, taking_part: Mask | None) -> tuple[Floats, Mask]:
        """Return the number of pods per domain over some of the nodes, and which domains have any such node."""
        domain = self.domain
        if taking_part is not None:
            domain, per_node = domain[taking_part], per_node[taking_part]
        sums: Floats = np.bincount(domain, weights=per_node, minlength=self._size).astype(np.float64)
        present: Mask = np.bincount(domain, minlength=self._size) > 0
        return sums, present


def _normalised(scores: Floats) -> Floats:
    """Return the scores in percent of the highest."""
    highest = scores.max()
    return np.floor(MAX_NODE_SCORE * scores / highest) if highest else scores
