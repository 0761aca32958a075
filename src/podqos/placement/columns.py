"""Nodes as columns: one array per property, to evaluate all nodes at once. Needs numpy (``podqos[fleet]``).

The rules are those of ``fit``, ``score``, ``taints``, ``node_affinity`` and ``image_locality``; ``columnar`` puts them
together. Whole numbers are kept as 64-bit floats, which is exact up to 2^53: dividing floats is several times faster
than dividing integers, and a rounded quotient never crosses a whole number while no amount exceeds ``LARGEST_AMOUNT``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podqos.model.resources import CPU, MEMORY
from podqos.placement.demand import Demand
from podqos.placement.filters import SchedulerCluster
from podqos.placement.fit import insufficient
from podqos.placement.image_locality import image_points
from podqos.placement.node_affinity import matches, preference
from podqos.placement.node_state import SchedulerNode
from podqos.placement.pod_view import Shape
from podqos.placement.score import MAX_NODE_SCORE, balance, improvement, is_balanced, least_allocated
from podqos.placement.taints import (
    PREFER_NO_SCHEDULE,
    UNSCHEDULABLE,
    disliked,
    first_untolerated,
    is_tolerated,
    refusing_condition,
)

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]

# 64 TiB of memory; a hundred times that is still exact, and so is what many pods without requests add up to.
LARGEST_AMOUNT = 2**46

IMPOSSIBLE = -1.0
# The three halves of the highest score between which the points for a changed balance lie.
_HALVES = 3 * MAX_NODE_SCORE // 2

# A ranking with more changes than this to catch up with is made anew, which costs about as much.
_CATCH_UP = 32
_RANKINGS_KEPT = 512


def is_exact(cluster: SchedulerCluster) -> bool:
    """Whether every amount is small enough to be kept as a float."""
    return all(
        amount <= LARGEST_AMOUNT
        for state in cluster.states
        for amounts in (state.allocatable, state.requested)
        for amount in amounts.values()
    )


class NodeColumns:
    """The free resources of every node, and its score for a pod: -1 if the pod cannot run there."""

    def __init__(self, cluster: SchedulerCluster) -> None:
        states = cluster.states
        self._states = states
        self._profile = cluster.profile
        self._free_pods = _column(state.allowed_pods - len(state.pods) for state in states)
        names = sorted({CPU, MEMORY}.union(*(state.allocatable for state in states)))
        self._free = {
            name: _column(state.allocatable.get(name, 0) - state.requested.get(name, 0) for state in states)
            for name in names
        }
        # Two rows each, cpu and memory, so that both are reckoned in one go.
        self._capacity = _rows(states, lambda state: (state.cpu_milli or 1, state.memory_bytes or 1))
        self._used = _rows(states, lambda state: (state.requested.get(CPU, 0), state.requested.get(MEMORY, 0)))
        self._free_percent = MAX_NODE_SCORE * _rows(
            states,
            lambda state: (state.cpu_milli - state.scored_cpu_milli, state.memory_bytes - state.scored_memory_bytes),
        )
        """What is left for comparing nodes, times a hundred."""
        self._twice_the_capacity = 2 * self._capacity
        self._imbalance = _column(_HALVES - balance(state) for state in states)
        self._odd = [index for index, state in enumerate(states) if _is_odd(state)]
        self._rows = np.empty_like(self._capacity)
        self._taken = np.empty((2, 1))
        self._row = np.empty(len(states))
        self._changed: list[int] = []
        self._rankings: dict[object, _Ranking] = {}

    def count(self, index: int, demand: Demand, change: int) -> None:
        """Count a pod that was added to (1) or removed from (-1) a node, which knows it already."""
        for name, amount in demand.requested.items():
            if name in self._free:
                self._free[name][index] -= change * amount
        self._free_pods[index] -= change
        self._used[0, index] += change * demand.requested.get(CPU, 0)
        self._used[1, index] += change * demand.requested.get(MEMORY, 0)
        self._free_percent[0, index] -= change * MAX_NODE_SCORE * demand.scored_cpu_milli
        self._free_percent[1, index] -= change * MAX_NODE_SCORE * demand.scored_memory_bytes
        self._imbalance[index] = _HALVES - balance(self._states[index])
        self._changed.append(index)

    def points(self, shape: Shape, allowed: Mask) -> Floats:
        """Return the score of every node, -1 where it is not ``allowed`` or too full. Not to be written to."""
        # A ranking holds on to its mask, so that the mask's identity stands for its content.
        key = (shape.demand_key, id(allowed))
        ranking = self._rankings.get(key)
        now = len(self._changed)
        if ranking is None or now - ranking.changes > _CATCH_UP:
            points = self._all_points(shape, allowed)
        else:
            points = ranking.points
            for index in self._changed[ranking.changes :]:
                points[index] = self._points_of(shape, index) if allowed[index] else IMPOSSIBLE
        if len(self._rankings) >= _RANKINGS_KEPT:
            self._rankings.clear()
        self._rankings[key] = _Ranking(points, allowed, now)
        return points

    def _points_of(self, shape: Shape, index: int) -> float:
        state = self._states[index]
        demand, profile = shape.demand, self._profile
        if insufficient(demand, state):
            return IMPOSSIBLE
        points = least_allocated(demand, state)
        if is_balanced(demand, profile):
            balance_with = balance(state, demand.requested)
            without = _HALVES - int(self._imbalance[index])
            points += improvement(balance_with, without) if profile.balance_compares else balance_with
        return points

    def _all_points(self, shape: Shape, allowed: Mask) -> Floats:
        impossible = ~allowed
        impossible |= self._free_pods < 1
        for name, amount in shape.demand.requested.items():
            if amount > 0:
                impossible |= self._free[name] < amount if name in self._free else True
        points = self._least_allocated(shape)
        if is_balanced(shape.demand, self._profile):
            points += self._balanced_allocation(shape)
        np.copyto(points, IMPOSSIBLE, where=impossible)
        for index in self._odd:
            points[index] = self._points_of(shape, index) if allowed[index] else IMPOSSIBLE
        return points

    def _least_allocated(self, shape: Shape) -> Floats:
        rows = self._rows
        self._taken[0, 0] = MAX_NODE_SCORE * shape.demand.asking_cpu_milli
        self._taken[1, 0] = MAX_NODE_SCORE * shape.demand.asking_memory_bytes
        np.subtract(self._free_percent, self._taken, out=rows)
        rows /= self._capacity
        np.floor(rows, out=rows)
        np.maximum(rows, 0.0, out=rows)
        points: Floats = rows[0] + rows[1]
        points *= 0.5
        return np.floor(points, out=points)

    def _balanced_allocation(self, shape: Shape) -> Floats:
        rows, row = self._rows, self._row
        requested = shape.demand.requested
        self._taken[0, 0] = requested.get(CPU, 0)
        self._taken[1, 0] = requested.get(MEMORY, 0)
        np.add(self._used, self._taken, out=rows)
        rows /= self._twice_the_capacity
        np.subtract(rows[0], rows[1], out=row)
        np.abs(row, out=row)
        np.subtract(1.0, row, out=row)
        row *= MAX_NODE_SCORE
        np.floor(row, out=row)
        if self._profile.balance_compares:
            # As ``improvement``: half of this, rounded down.
            row += self._imbalance
            row *= 0.5
            np.floor(row, out=row)
        return row


def _is_odd(state: SchedulerNode) -> bool:
    """Whether the node's score follows its own rule: without cpu or memory, or overfull of one of them.

    Such nodes are worked out one by one. Placing never overfills a node; only pods that were there before may.
    """
    capacities = ((CPU, state.cpu_milli), (MEMORY, state.memory_bytes))
    return any(not capacity or state.requested.get(name, 0) > capacity for name, capacity in capacities)


def _rows(states: list[SchedulerNode], pair: Callable[[SchedulerNode], tuple[int, int]]) -> Floats:
    return np.array([pair(state) for state in states], dtype=np.float64).reshape(-1, 2).T.copy()


class _Ranking(NamedTuple):
    """The score of every node for one demand, as of so many changes."""

    points: Floats
    allowed: Mask
    changes: int


class NodeMasks:
    """Which nodes would take a pod if they were empty, and for which of their own properties."""

    def __init__(self, cluster: SchedulerCluster) -> None:
        self._cluster = cluster
        self._columns: dict[object, Floats] = {}
        self._states = cluster.states
        self._index = {state.name: index for index, state in enumerate(cluster.states)}
        self._profile = cluster.profile
        self._masks: dict[object, Mask] = {}

    def allowing(self, shape: Shape) -> Mask:
        """Return where taints, conditions, labels, names and declared features let the pod run."""
        if shape.named_nodes is not None:
            return self._open(shape) & self.matching(shape) & self._declaring(shape)
        key = ("allowing", self._open_key(shape), self._matching_key(shape), shape.features)
        if key not in self._masks:
            self._masks[key] = self._open(shape) & self.matching(shape) & self._declaring(shape)
        return self._masks[key]

    def _declaring(self, shape: Shape) -> Mask:
        """Return the nodes that declare every feature the pod needs."""
        key = ("declaring", shape.features)
        if key not in self._masks:
            self._masks[key] = _mask(shape.features <= {*state.node.status.declared_features} for state in self._states)
        return self._masks[key]

    def matching(self, shape: Shape) -> Mask:
        """Return where labels and names suit the pod."""
        if shape.named_nodes is not None:
            mask = np.zeros(len(self._states), dtype=np.bool_)
            for index in (self._index[name] for name in shape.named_nodes if name in self._index):
                mask[index] = matches(shape.spec, self._states[index].node)
            return mask
        key = ("matching", self._matching_key(shape))
        if key not in self._masks:
            self._masks[key] = _mask(matches(shape.spec, state.node) for state in self._states)
        return self._masks[key]

    def tolerated(self, shape: Shape) -> Mask:
        """Return where the pod tolerates every taint."""
        tolerations = shape.spec.tolerations
        key = ("tolerated", tolerations)
        if key not in self._masks:
            self._masks[key] = _mask(first_untolerated(state.taints, tolerations) is None for state in self._states)
        return self._masks[key]

    @cached_property
    def some_are_disliked(self) -> bool:
        """Whether any node has a PreferNoSchedule taint."""
        return any(taint.effect == PREFER_NO_SCHEDULE for state in self._states for taint in state.taints)

    @cached_property
    def some_have_images(self) -> bool:
        """Whether any node says which images it has."""
        return any(state.images for state in self._states)

    def disliked(self, shape: Shape) -> Floats:
        """Return the number of PreferNoSchedule taints that the pod does not tolerate."""
        tolerations = shape.spec.tolerations
        return self._kept(
            ("disliked", tolerations), lambda: _column(disliked(state.taints, tolerations) for state in self._states)
        )

    def preferred(self, shape: Shape) -> Floats:
        """Return the weight of the node affinity that the pod prefers."""
        terms = shape.preferred_nodes
        return self._kept(
            ("preferred", terms), lambda: _column(preference(terms, state.node) for state in self._states)
        )

    def with_images(self, shape: Shape) -> Floats:
        """Return the scores for images that are present."""
        count = shape.image_count
        known, nodes = self._cluster.image_states, len(self._states)
        return self._kept(
            ("images", shape.images, count),
            lambda: _column(image_points(shape.images, count, state.images, known, nodes) for state in self._states),
        )

    def _kept(self, key: object, made: Callable[[], Floats]) -> Floats:
        if key not in self._columns:
            self._columns[key] = made()
        return self._columns[key]

    def _open(self, shape: Shape) -> Mask:
        """Return the nodes that are open to the pod: not cordoned, tainted or, before 1.12, under pressure."""
        key = ("open", self._open_key(shape))
        if key not in self._masks:
            mask = self.tolerated(shape) & _mask(
                not state.node.spec.unschedulable or is_tolerated(UNSCHEDULABLE, shape.spec.tolerations)
                for state in self._states
            )
            if not self._profile.conditions_become_taints:
                mask &= _mask(
                    refusing_condition(state.node, shape.qos_class, self._profile) is None for state in self._states
                )
            self._masks[key] = mask
        return self._masks[key]

    def _open_key(self, shape: Shape) -> object:
        return shape.spec.tolerations, shape.qos_class if not self._profile.conditions_become_taints else None

    @staticmethod
    def _matching_key(shape: Shape) -> object:
        affinity = shape.spec.affinity
        return frozenset(shape.spec.node_selector.items()), affinity.node_affinity if affinity is not None else None


def _column(numbers: Iterable[int]) -> Floats:
    return np.fromiter(numbers, dtype=np.float64)


def _mask(answers: Iterable[bool]) -> Mask:
    return np.fromiter(answers, dtype=np.bool_)
