"""The control plane of a simulated cluster: what it knows of the nodes, and when the scheduler runs.

The scheduler is created when the first pod has to be placed: pods with a fixed node need none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from msgspec.structs import replace

from podqos.agent.journal import By, Kind
from podqos.agent.reasons import Because, NoPlace, PlacedOn, PreemptedFor
from podqos.model.node import LABEL_HOSTNAME, Node, NodeSpec, NodeStatus
from podqos.model.pod import ObjectMeta, Pod
from podqos.placement.declared_features import declared_by_default
from podqos.placement.place import PlacementSurroundings
from podqos.sim.cluster.fleet import Fleet
from podqos.sim.cluster.scheduling import Covered, Scheduler
from podqos.sim.engine.event_queue import CLUSTER, EventPriority, EventQueue
from podqos.sim.node.node import SimNode
from podqos.sim.scenario.replicas import Replica
from podqos.sim.scenario.scenario import Scenario


class ClusterPods(Protocol):
    """The pods of a cluster, and the actions on them."""

    @property
    def pods(self) -> Mapping[str, tuple[Pod, str | None]]:
        """By uid: the pods that are there, and their nodes."""

    def in_order(self) -> Sequence[tuple[str, Replica]]:
        """Return the pods in the order of creation, by uid."""

    def expected_pods(self) -> Iterable[Pod]:
        """Return the pods that should run."""

    def healthy_pods(self) -> Iterable[Pod]:
        """Return the pods that run and are not being removed."""

    def is_deleted(self, pod: Pod) -> bool:
        """Whether a pod that is still there has been deleted."""

    def note(self, kind: Kind, pod: Pod, node: str | None, by: By, because: Because | None = None) -> None:
        """Write a journal entry about a pod."""

    def placed(self, pod: Pod, name: str) -> None:
        """Take the scheduler's decision where a pod runs."""

    def remove(self, uid: str, why: str) -> None:
        """Remove a pod."""


class ControlPlane:
    """Decisions above the nodes."""

    def __init__(self, scenario: Scenario, queue: EventQueue, fleet: Fleet, cluster: ClusterPods) -> None:
        self._scenario = scenario
        self._queue = queue
        self._fleet = fleet
        self._cluster = cluster
        self._scheduler: Scheduler | None = None
        self._conditions: dict[str, set[str]] = {}
        self._reported: dict[str, tuple[str, ...]] = {}
        self._cordoned: set[str] = set()
        self._pending: set[str] = set()
        self._is_placing = False

    def api_node(self, name: str) -> Node:
        """Return a node as the API server has it."""
        settings = self._fleet.settings(name)
        spec = settings.spec
        return Node(
            ObjectMeta(name=name, labels={LABEL_HOSTNAME: name, **spec.labels}),
            NodeSpec((*spec.taints, *spec.config.register_with_taints), unschedulable=name in self._cordoned),
            NodeStatus(
                settings.allocatable.capacity,
                settings.allocatable.allocatable,
                declared_features=declared_by_default(self._scenario.profile),
            ),
        )

    # ---- pods ----------------------------------------------------------------------------------------------------

    def wait(self, pod: Pod) -> None:
        """Add a pending pod."""
        self._the_scheduler().wait(pod)
        self._place_soon()

    def bound(self, pod: Pod, name: str) -> None:
        """Add a pod that was bound without the scheduler."""
        if self._scheduler is not None:
            self._scheduler.bound(pod, name)
            if any(view.depends_on_pods for view in self._scheduler.waiting.values()):
                self._place_soon()

    def left(self, pod: Pod) -> None:
        """Remove a pod that is gone."""
        self._pending.discard(pod.metadata.uid)
        if self._scheduler is not None:
            self._scheduler.left(pod)
            self._place_soon()

    # ---- nodes ---------------------------------------------------------------------------------------------------

    def condition(self, node: SimNode, condition: str, *, holds: bool) -> None:
        """Take a condition of a node, with its next status."""
        held = self._conditions.setdefault(node.name, set())
        (held.add if holds else held.discard)(condition)
        period_us = self._scenario.options.status_update_us
        if period_us is None:
            period_us = node.settings.status_update_us
        now_us = self._queue.now_us
        due_us = -(-now_us // period_us) * period_us if period_us else now_us
        self._queue.plan(due_us, CLUSTER, EventPriority.LIFE, partial(self._report, node.name))

    def _report(self, name: str, _: int) -> None:
        self._reported[name] = tuple(sorted(self._conditions.get(name, ())))
        if self._scheduler is not None:
            self._scheduler.report(name, self._reported[name])
            self._place_soon()

    def takes_pods(self, name: str) -> bool:
        """Whether a node is not cordoned."""
        return name not in self._cordoned

    def cordon(self, name: str, *, takes_pods: bool) -> None:
        """Keep the scheduler from placing pods on a node, or let it do so again."""
        (self._cordoned.discard if takes_pods else self._cordoned.add)(name)
        if self._scheduler is not None:
            self._scheduler.cordon(name, takes_pods=takes_pods)
            self._place_soon()

    def joined(self, name: str) -> None:
        """Add a node that takes pods from now on."""
        self._reported.pop(name, None)
        self._conditions.pop(name, None)
        if self._scheduler is not None:
            self._scheduler.add_node(name)
            self._place_soon()

    def lost(self, name: str, _: int) -> None:
        """Notice that a node is lost."""
        if self._scheduler is not None and not self._fleet.is_present(name):
            self._scheduler.remove_node(name)

    # ---- the scheduler -------------------------------------------------------------------------------------------

    def _the_scheduler(self) -> Scheduler:
        if self._scheduler is None:
            fleet, scenario = self._fleet, self._scenario
            surroundings = PlacementSurroundings(
                tuple(map(self.api_node, fleet.names)),
                scenario.namespaces,
                tuple(replace(budget, status=None) for budget in scenario.budgets),
                scenario.profile,
                scenario.services,
            )
            self._scheduler = Scheduler(surroundings, self._covered, self._cluster.is_deleted)
            for name in fleet.names:
                if not fleet.is_present(name):
                    self._scheduler.remove_node(name)
                elif name in self._reported:
                    self._scheduler.report(name, self._reported[name])
            for _, pod, where in sorted(self._bound(), key=lambda each: each[0]):
                self._scheduler.bound(pod, where)
        return self._scheduler

    def _covered(self) -> Covered:
        """Return what disruption budgets are about; pods on idle nodes all run."""
        idle = [pod for pod, _, _ in self._fleet.idle_pods()]
        cluster = self._cluster
        return Covered([*cluster.expected_pods(), *idle], [*cluster.healthy_pods(), *idle])

    def _bound(self) -> Iterator[tuple[tuple[int, int], Pod, str]]:
        """Yield all pods that have a node, with their place in the order of creation."""
        for uid, replica in self._cluster.in_order():
            pod, name = self._cluster.pods[uid]
            if name is not None:
                yield replica.order, pod, name
        for pod, name, replica in self._fleet.idle_pods():
            yield replica.order, pod, name

    def _place_soon(self) -> None:
        if not self._is_placing:
            self._is_placing = True
            self._queue.plan(self._queue.now_us, CLUSTER, EventPriority.KUBELET, self._place)

    def _place(self, _: int) -> None:
        self._is_placing = False
        cluster, scheduler = self._cluster, self._the_scheduler()
        for pod, name, displaced in scheduler.place():
            if name is not None:
                self._pending.discard(pod.metadata.uid)
                cluster.note(Kind.PLACED, pod, name, By.SCHEDULER, PlacedOn())
                cluster.placed(pod, name)
            for each in displaced:
                victim = each.pod
                priorities = victim.spec.priority or 0, pod.spec.priority or 0
                because = PreemptedFor(pod.key, *priorities, breaks_budget=each.breaks_budget)
                cluster.note(Kind.PREEMPTED, victim, scheduler.node_of(victim), By.SCHEDULER, because)
                cluster.remove(victim.metadata.uid, "Preempted")
        why: dict[tuple[int, bool], NoPlace] = {}
        for view in scheduler.waiting.values():
            uid = view.pod.metadata.uid
            if uid not in self._pending:
                self._pending.add(uid)
                # Pods of one shape wait for the same reasons.
                likeness = id(view.shape), bool(view.pod.spec.scheduling_gates)
                if likeness not in why:
                    why[likeness] = scheduler.no_place(view)
                cluster.note(Kind.PENDING, view.pod, None, By.SCHEDULER, why[likeness])
