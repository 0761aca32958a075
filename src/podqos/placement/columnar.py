"""The choice of ``OneByOne`` for all nodes at once, for clusters of thousands. Needs numpy (``podqos[fleet]``).

Every rule has its readable twin in the module of its name, and a property test holds the two equal. What differs is
the bookkeeping: pods that some rule counts are counted per node as they come and go (``crowd``), instead of being
looked for each time.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from podqos.model.scheduling import PodAffinityTerm, TopologySpreadConstraint
from podqos.model.selector import LabelSelector, selects
from podqos.placement.columns import IMPOSSIBLE, Floats, Mask, NodeMasks, Room
from podqos.placement.filters import Cluster, port_taken
from podqos.placement.node_state import NodeState
from podqos.placement.pod_affinity import meets_all, speaks_of
from podqos.placement.pod_index import Crowd, Group
from podqos.placement.pod_view import PodView
from podqos.placement.topology_spread import HONOR, counts


class Columnar:
    """Chooses as ``OneByOne`` does."""

    def __init__(self, cluster: Cluster) -> None:
        self._states = cluster.states
        self._namespaces = cluster.namespaces
        self._index = {state.name: index for index, state in enumerate(cluster.states)}
        self._room = Room(cluster.states)
        self._nodes = NodeMasks(cluster)
        self._crowd = Crowd(len(cluster.states))
        self._ports: dict[tuple[int, str], dict[int, int]] = {}
        self._topologies: dict[str, _Topology] = {}
        for index, state in enumerate(cluster.states):
            for view in state.pods.values():
                self._count_neighbour(index, view, 1)

    def choose(self, view: PodView) -> NodeState | None:
        """Return the node to take, or nothing if no node will do."""
        if not self._states:
            return None
        points = self._room.points(view.shape, self._nodes.allowing(view.shape))
        for possible in self._left_by_others(view):
            points = np.where(possible, points, IMPOSSIBLE)
        best = int(points.argmax())
        return self._states[best] if points[best] >= 0 else None

    def count(self, state: NodeState, view: PodView, change: int) -> None:
        """Learn that a pod has come to (1) or left (-1) a node."""
        index = self._index[state.name]
        self._room.count(index, view.shape, change)
        self._count_neighbour(index, view, change)

    def _count_neighbour(self, index: int, view: PodView, change: int) -> None:
        self._crowd.count(index, view, change)
        for term in view.anti_affinity:
            self._keeping_away(term, view).per_node[index] += change
        for port in view.shape.ports:
            users = self._ports.setdefault((port.port, port.protocol), {})
            users[index] = users.get(index, 0) + change

    def _left_by_others(self, view: PodView) -> Iterator[Mask]:
        """Yield, rule by rule, where the pods that are there leave this one a place."""
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
        group = self._crowd.meant(
            ("spread", view.namespace, msgspec.json.encode(selector)),
            selector,
            lambda other: counts(selector, view.namespace, other),
        )
        sums, present = topology.sums(group.per_node, self._taking_part(view, constraint))
        enough = np.count_nonzero(present) >= (constraint.min_domains or 1)
        minimum = sums[present].min() if enough else 0.0
        itself = 1 if selects(selector, view.labels) else 0
        return topology.labelled & (sums[topology.domain] + itself - minimum <= constraint.max_skew)

    def _taking_part(self, view: PodView, constraint: TopologySpreadConstraint) -> Mask:
        mask = np.ones(len(self._states), dtype=np.bool_)
        for other in view.shape.spread:
            mask &= self._topology(other.topology_key).labelled
        if constraint.node_affinity_policy == HONOR:
            mask &= self._nodes.matching(view.shape)
        if constraint.node_taints_policy == HONOR:
            mask &= self._nodes.tolerated(view.shape)
        return mask

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

    def _meant(self, term: PodAffinityTerm, owner: PodView) -> Group:
        return self._crowd.meant(
            ("term", owner.namespace, msgspec.json.encode(term)),
            term.label_selector,
            lambda other: speaks_of(term, owner, other, self._namespaces),
        )

    def _keeping_away(self, term: PodAffinityTerm, owner: PodView) -> Group:
        return self._crowd.owners(
            (owner.namespace, msgspec.json.encode(term)),
            term,
            lambda other: speaks_of(term, owner, other, self._namespaces),
        )

    def _topology(self, key: str) -> _Topology:
        if key not in self._topologies:
            self._topologies[key] = _Topology(key, self._states)
        return self._topologies[key]


class _Topology:
    """The nodes by their value of one label."""

    def __init__(self, key: str, states: list[NodeState]) -> None:
        numbers: dict[str | None, int] = {None: 0}
        values = (state.labels.get(key) for state in states)
        self.domain = np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), dtype=np.intp)
        """The number of each node's value; 0 stands for none."""
        self.labelled: Mask = self.domain > 0
        self._size = len(numbers)

    def domains_with(self, per_node: Floats) -> Mask:
        """Return the nodes in whose domain there is any of the pods."""
        sums = np.bincount(self.domain, weights=per_node, minlength=self._size)
        sums[0] = 0.0
        mask: Mask = sums[self.domain] > 0
        return mask

    def sums(self, per_node: Floats, taking_part: Mask) -> tuple[Floats, Mask]:
        """Return the number of pods per domain over some of the nodes, and which domains have any such node."""
        domain = self.domain[taking_part]
        sums: Floats = np.bincount(domain, weights=per_node[taking_part], minlength=self._size).astype(np.float64)
        present: Mask = np.bincount(domain, minlength=self._size) > 0
        return sums, present
