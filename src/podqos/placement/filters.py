"""Filters nodes for one pod: every filter in the scheduler's order.

The scheduler stops at the first filter that rejects a node; its messages and its choice of nodes for preemption go by
that one. ``answers`` continues and returns all obstacles.

A node is asked twice where pods no less important are nominated to it: as if they ran there, and without them, because
an affinity to them is not met yet. What is nominated to other nodes does not count, not even for rules about zones.
Source: Kubernetes v1.36.4 pkg/scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property

from podqos.model.profile import LATEST, Profile
from podqos.placement.fit import insufficient
from podqos.placement.host_ports import first_taken
from podqos.placement.image_locality import ImageStates, image_states
from podqos.placement.node_affinity import mismatch
from podqos.placement.node_state import SchedulerNode
from podqos.placement.nominations import Nominations
from podqos.placement.pod_affinity import Namespaces, Neighbours
from podqos.placement.pod_view import PodView
from podqos.placement.reasons import (
    FeaturesNotDeclared,
    NamesConflict,
    NotNamed,
    PortTaken,
    Reason,
    Reasons,
    UnderPressure,
    Unschedulable,
    UntoleratedTaint,
)
from podqos.placement.taints import UNSCHEDULABLE, first_untolerated, is_tolerated, refusing_condition
from podqos.placement.topology_spread import TopologySpread


class SchedulerCluster:
    """The nodes with their pods, by name, and what else the filters need."""

    def __init__(
        self,
        states: Iterable[SchedulerNode],
        namespaces: Namespaces | None = None,
        profile: Profile = LATEST,
        nominations: Nominations | None = None,
    ) -> None:
        self.states = sorted(states, key=lambda state: state.name)
        self.namespaces = namespaces or Namespaces()
        self.profile = profile
        self.nominations = Nominations() if nominations is None else nominations

    @cached_property
    def _by_name(self) -> dict[str, SchedulerNode]:
        return {state.name: state for state in self.states}

    def candidates(self, view: PodView) -> list[SchedulerNode]:
        """Return the nodes that the filters are asked about: only those that the pod names, if it names any.

        So does the scheduler (``PreFilterResult.NodeNames``): the pods of a DaemonSet cost as much as their number.
        """
        named = view.shape.named_nodes
        if named is None:
            return self.states
        return [self._by_name[name] for name in sorted(named) if name in self._by_name]

    @cached_property
    def image_states(self) -> ImageStates:
        """What is known of the images that any node has."""
        return image_states(state.node for state in self.states)


class Filters:
    """The filters for one pod. What depends on pods elsewhere is counted once, at the beginning."""

    def __init__(self, view: PodView, cluster: SchedulerCluster) -> None:
        self._view = view
        self._profile = cluster.profile
        self._nominations = cluster.nominations
        self._spread = TopologySpread(view, cluster.states) if view.shape.spread else None
        self._neighbours = Neighbours(view, cluster.states, cluster.namespaces)

    @property
    def is_local(self) -> bool:
        """Whether a node is filtered independently of pods on other nodes."""
        return self._spread is None and self._neighbours.is_empty

    def first_reasons(self, state: SchedulerNode) -> Reasons:
        """Return what the first filter that rejects the node says; nothing if the pod may go there."""
        others = self._nominations.beside(self._view, state.name)
        if others:
            with self._as_if_running(state, others):
                refused = self._first(state)
            if refused:
                return refused
        return self._first(state)

    def answers(self, state: SchedulerNode) -> Iterator[Reasons]:
        """Yield why filters reject the node, in the scheduler's order."""
        for reason in static_reasons(self._view, state, self._profile):
            yield (reason,)
            if isinstance(reason, NotNamed | NamesConflict):
                return  # The scheduler does not look at such a node any further.
        yield from self._answers_by_pods(state)
        yield not_declared(self._view, state)

    def is_crowded_out(self, state: SchedulerNode) -> bool:
        """Whether a node that would take the pod if it were empty has no room because of its pods."""
        others = self._nominations.beside(self._view, state.name)
        if others:
            with self._as_if_running(state, others):
                is_crowded = any(self._answers_by_pods(state))
            if is_crowded:
                return True
        return any(self._answers_by_pods(state))

    def count(self, state: SchedulerNode, other: PodView, change: int) -> None:
        """Count a pod that is added to (1) or removed from (-1) a node, incrementally."""
        if self._spread is not None:
            self._spread.count(state, other, change)
        self._neighbours.count(state, other, change)

    def _first(self, state: SchedulerNode) -> Reasons:
        return next(filter(None, self.answers(state)), ())

    @contextmanager
    def _as_if_running(self, state: SchedulerNode, others: list[PodView]) -> Iterator[None]:
        """Count pods temporarily as if they ran on a node."""
        version = state.version
        for other in others:
            state.add(other)
            self.count(state, other, 1)
        try:
            yield
        finally:
            for other in others:
                state.remove(other)
                self.count(state, other, -1)
            state.version = version

    def _answers_by_pods(self, state: SchedulerNode) -> Iterator[Reasons]:
        view = self._view
        if view.shape.ports:
            yield port_taken(view, state)
        yield insufficient(view.shape.demand, state)
        if self._spread is not None:
            yield self._spread.against(state)
        yield self._neighbours.against(state)


def static_reasons(view: PodView, state: SchedulerNode, profile: Profile) -> Iterator[Reason]:
    """Yield why the node itself rejects the pod, whatever runs there; at most one reason per filter."""
    shape = view.shape
    tolerations = shape.spec.tolerations
    if shape.named_nodes is not None and state.name not in shape.named_nodes:
        yield NotNamed() if shape.named_nodes else NamesConflict()
    if state.node.spec.unschedulable and not is_tolerated(UNSCHEDULABLE, tolerations):
        yield Unschedulable()
    taint = first_untolerated(state.taints, tolerations)
    if taint is not None:
        yield UntoleratedTaint(taint)
    elif not profile.conditions_become_taints:
        condition = refusing_condition(state.node, shape.qos_class, profile)
        if condition is not None:
            yield UnderPressure(condition)
    yield from mismatch(shape.spec, state.node)


def not_declared(view: PodView, state: SchedulerNode) -> Reasons:
    """Return the features that the pod needs and the node does not declare; the scheduler asks this last."""
    missing = view.shape.features - {*state.node.status.declared_features} if view.shape.features else ()
    return (FeaturesNotDeclared(tuple(sorted(missing))),) if missing else ()


def port_taken(view: PodView, state: SchedulerNode) -> Reasons:
    """Return the first port of the pod that another one holds on the node."""
    used = (port for other in state.pods.values() for port in other.shape.ports)
    port = first_taken(view.shape.ports, used)
    return (PortTaken(port.port, port.protocol, port.host_ip),) if port is not None else ()
