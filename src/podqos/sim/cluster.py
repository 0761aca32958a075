"""A simulated cluster around its nodes: pods arrive and are deleted, controllers replace what is lost, nodes come and go.

Controllers here keep a number of pods running and know nothing else: a pod that was evicted, failed, was turned away,
displaced or lost with its node is replaced after a delay, by a pod with a name of its own and the same demand.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.events import PodBound, PodDeleted
from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import NoPlace, PlacedOn, PreemptedFor, ReplacementFor
from podqos.agent.state import Phase
from podqos.eviction.signals import NodeCondition
from podqos.model.node import Node, NodeSpec, NodeStatus
from podqos.model.pod import ObjectMeta, Pod, Toleration, Workload
from podqos.placement.taints import NO_EXECUTE
from podqos.placement.workloads import DAEMON_SET, POD, pods_of
from podqos.sim.agenda import CLUSTER, Agenda, Turn
from podqos.sim.node import SimNode
from podqos.sim.node_settings import NodeSettings, node_settings
from podqos.sim.pods import DemandOf
from podqos.sim.scenario import SECOND_US, NodeAdded, NodeLost, Scenario, ScenarioWorkload
from podqos.sim.scheduling import Scheduler
from podqos.sim.would_evict import MemoryRequests

NOTICED_AFTER_US = 50 * SECOND_US
"""How long the node controller waits for a silent node (node-monitor-grace-period since 1.32)."""

_UNREACHABLE = "node.kubernetes.io/unreachable"
_DEFAULT_TOLERATION_SECONDS = 300


class Replica(Struct, frozen=True, gc=False):
    """A pod and where it comes from."""

    workload: ScenarioWorkload
    number: int
    generation: int = 0


class SimCluster:
    """All nodes of a scenario, and everything that is not a node's own business."""

    def __init__(self, scenario: Scenario, agenda: Agenda) -> None:
        self.scenario = scenario
        self.entries: list[Entry] = []
        self.requests = MemoryRequests(scenario.profile)
        self.nodes: dict[str, SimNode] = {}
        """Those that are there, in the order of the scenario."""
        self._agenda = agenda
        self._settings: dict[str, NodeSettings] = {}
        self._places: dict[str, tuple[int, int]] = {}
        """Per name of a node: its number, and when its eviction loop runs first."""
        self._names: list[str] = []
        self._replicas: dict[str, Replica] = {}
        """By uid: the pods that are there."""
        self._pods: dict[str, tuple[Pod, str | None]] = {}
        """By uid: the pod and its node."""
        self._why: dict[str, str] = {}
        """By uid: why a pod that is told to go has to."""
        self._scheduler: Scheduler | None = None
        self._conditions: dict[str, set[str]] = {}
        self._is_placing = False
        self._pending: set[str] = set()
        self._set_up()

    # ---- the beginning -------------------------------------------------------------------------------------------

    def _set_up(self) -> None:
        scenario = self.scenario
        kept_back = {each.node for each in scenario.happenings if isinstance(each, NodeAdded)}
        kept_back -= {each.node for each in scenario.happenings if isinstance(each, NodeLost)}
        for group in scenario.nodes:
            settings = node_settings(group.spec, scenario.profile, scenario.policy)
            for number in range(group.count):
                name = group.name_of(number)
                self._settings[name] = settings
                self._places[name] = len(self._places), group.loop_phase_us(number)
                self._names.append(name)
                if name not in kept_back:
                    self._add_node(name)
        for workload in scenario.workloads:
            self._plan(workload.arrives_us, lambda _, workload=workload: self._arrive(workload))
            if workload.deleted_us is not None:
                self._plan(workload.deleted_us, lambda _, workload=workload: self._delete(workload))
        for happening in scenario.happenings:
            if isinstance(happening, NodeLost):
                self._plan(happening.at_us, lambda now_us, name=happening.node: self.nodes[name].lost(now_us))
            else:
                self._plan(happening.at_us, lambda _, name=happening.node: self._join(name))

    def _plan(self, time_us: int, action: object) -> None:
        self._agenda.plan(time_us, CLUSTER, Turn.LIFE, action)

    def _add_node(self, name: str) -> None:
        index, phase_us = self._places[name]
        options = self.scenario.options
        settings = self._settings[name]
        self.nodes[name] = SimNode(index, name, settings, options, self._agenda, self, self.entries.append, phase_us)

    def _join(self, name: str) -> None:
        self._add_node(name)
        if self._scheduler is not None:
            self._scheduler.add_node(name)
            self._place_soon()

    def nodes_numbered(self, index: int) -> tuple[SimNode, ...]:
        """Return the node with a number if it is there; all of them for what concerns the cluster."""
        if index == CLUSTER:
            return tuple(self.nodes.values())
        node = self.nodes.get(self._names[index])
        return () if node is None else (node,)

    # ---- pods ----------------------------------------------------------------------------------------------------

    def _arrive(self, workload: ScenarioWorkload) -> None:
        names = tuple(self._places)
        for number, pod in enumerate(self._pods_of(workload)):
            replica = Replica(workload, number)
            if workload.nodes:
                self._bind(pod, workload.nodes[number % len(workload.nodes)], replica)
            elif workload.spread:
                self._bind(pod, names[number % len(names)], replica)
            else:
                self._queue(pod, replica)

    def _pods_of(self, workload: ScenarioWorkload) -> Iterable[Pod]:
        pod = workload.pod
        if workload.kind == DAEMON_SET:
            nodes = [self._api_node(name) for name in self.nodes]
            made = pods_of(Workload(DAEMON_SET, pod.metadata, pod), nodes, profile=self.scenario.profile)
            return (_named(each, each.metadata.name) for each in made)
        if workload.kind == POD and workload.replicas == 1:
            return (_named(pod, workload.name),)
        return (_named(pod, f"{workload.name}-{number}") for number in range(workload.replicas))

    def _bind(self, pod: Pod, node: str, replica: Replica) -> None:
        uid = pod.metadata.uid
        self._replicas[uid] = replica
        self._pods[uid] = pod, node
        if self._scheduler is not None:
            self._scheduler.bound(pod, node)
        self.nodes[node].report(PodBound(pod))

    def _queue(self, pod: Pod, replica: Replica) -> None:
        uid = pod.metadata.uid
        self._replicas[uid] = replica
        self._pods[uid] = pod, None
        self._the_scheduler().wait(pod)
        self._place_soon()

    def _delete(self, workload: ScenarioWorkload) -> None:
        for uid, replica in tuple(self._replicas.items()):
            if replica.workload is workload:
                pod, node = self._pods[uid]
                self._why[uid] = "Deleted"
                self._note(Kind.DELETED, pod, node, By.USER)
                self._remove(uid)

    def _remove(self, uid: str) -> None:
        """Tell a pod to go; one that waits is gone at once."""
        pod, node = self._pods[uid]
        if node is None:
            self._forget(pod)
        elif node in self.nodes:
            self.nodes[node].report(PodDeleted(uid))

    def _forget(self, pod: Pod) -> Replica:
        uid = pod.metadata.uid
        if self._scheduler is not None:
            self._scheduler.left(pod)
            self._place_soon()
        del self._pods[uid]
        self._why.pop(uid, None)
        self._pending.discard(uid)
        return self._replicas.pop(uid)

    # ---- what nodes say ------------------------------------------------------------------------------------------

    def demand_of(self, pod: Pod) -> DemandOf:
        """Return what a pod wants."""
        replica = self._replicas[pod.metadata.uid]
        return lambda container: replica.workload.demand_of(replica.number, container)

    def left(self, node: SimNode, pod: Pod, *, rejected: bool) -> None:
        """Let a controller know that a pod does not run any more."""
        uid = pod.metadata.uid
        record = node.state.pods.get(uid)
        phase = None if record is None else record.phase
        why = self._why.get(uid) or ("Rejected" if rejected else phase or "Evicted")
        self._replace(self._forget(pod), pod, why)

    def condition(self, node: SimNode, condition: NodeCondition, *, holds: bool) -> None:
        """Let the control plane know of a condition with the node's next status."""
        reported = self._conditions.setdefault(node.name, set())
        (reported.add if holds else reported.discard)(condition.value)
        period_us = self.scenario.options.status_update_us
        if period_us is None:
            period_us = node.settings.status_update_us
        due_us = -(-self._agenda.now_us // period_us) * period_us if period_us else self._agenda.now_us
        self._plan(due_us, lambda _: self._report(node))

    def _report(self, node: SimNode) -> None:
        if self._scheduler is not None:
            self._scheduler.report(node.name, sorted(self._conditions[node.name]))
            self._place_soon()

    def lost(self, node: SimNode) -> None:
        """Let the control plane find out that a node is gone, and evict its pods when they have waited long enough."""
        del self.nodes[node.name]
        self._conditions.pop(node.name, None)
        now_us = self._agenda.now_us
        self._plan(now_us + NOTICED_AFTER_US, lambda _: self._notice(node.name))
        for uid, (pod, name) in self._pods.items():
            if name == node.name:
                seconds = _unreachable_seconds(pod.spec.tolerations)
                if seconds is not None:
                    due_us = now_us + NOTICED_AFTER_US + seconds * SECOND_US
                    self._plan(due_us, lambda _, uid=uid: self._lost_pod(uid))

    def _notice(self, name: str) -> None:
        if self._scheduler is not None and name not in self.nodes:
            self._scheduler.remove_node(name)

    def _lost_pod(self, uid: str) -> None:
        if uid in self._pods:
            pod, _ = self._pods[uid]
            self._replace(self._forget(pod), pod, "NodeLost")

    def _replace(self, replica: Replica, pod: Pod, why: str) -> None:
        workload = replica.workload
        if not workload.recreate or why in {"Deleted", Phase.SUCCEEDED}:
            return
        if workload.deleted_us is not None and self._agenda.now_us >= workload.deleted_us:
            return
        again = replace(replica, generation=replica.generation + 1)

        def make(_: int) -> None:
            base = pod.metadata.name.rpartition("-r")[0] if replica.generation else pod.metadata.name
            made = _named(pod, f"{base}-r{again.generation}")
            self._note(Kind.REPLACED, made, None, By.CONTROLLER, ReplacementFor(pod.key, why))
            self._queue(made, again)

        self._plan(self._agenda.now_us + self.scenario.options.recreate_us, make)

    # ---- the scheduler -------------------------------------------------------------------------------------------

    def _the_scheduler(self) -> Scheduler:
        if self._scheduler is None:
            self._scheduler = Scheduler((self._api_node(name) for name in self._places), self.scenario.profile)
            for name in self._places:
                if name not in self.nodes:
                    self._scheduler.remove_node(name)
                elif name in self._conditions:
                    self._scheduler.report(name, sorted(self._conditions[name]))
            for pod, node in self._pods.values():
                if node is not None:
                    self._scheduler.bound(pod, node)
        return self._scheduler

    def _api_node(self, name: str) -> Node:
        settings = self._settings[name]
        spec = settings.spec
        labels = {"kubernetes.io/hostname": name, **spec.labels}
        return Node(
            ObjectMeta(name=name, labels=labels),
            NodeSpec((*spec.taints, *spec.config.register_with_taints)),
            NodeStatus(settings.allocatable.capacity, settings.allocatable.allocatable),
        )

    def _place_soon(self) -> None:
        if not self._is_placing:
            self._is_placing = True
            self._agenda.plan(self._agenda.now_us, CLUSTER, Turn.KUBELET, self._place)

    def _place(self, _: int) -> None:
        self._is_placing = False
        scheduler = self._the_scheduler()
        for pod, node, displaced in scheduler.place():
            uid = pod.metadata.uid
            if node is not None:
                self._pending.discard(uid)
                self._pods[uid] = pod, node
                self._note(Kind.PLACED, pod, node, By.SCHEDULER, PlacedOn())
                if node in self.nodes:
                    self.nodes[node].report(PodBound(pod))
            for victim in displaced:
                because = PreemptedFor(pod.key, victim.spec.priority or 0, pod.spec.priority or 0)
                self._why[victim.metadata.uid] = "Preempted"
                self._note(Kind.PREEMPTED, victim, self._pods[victim.metadata.uid][1], By.SCHEDULER, because)
                self._remove(victim.metadata.uid)
        for view in scheduler.waiting.values():
            if view.pod.metadata.uid not in self._pending:
                self._pending.add(view.pod.metadata.uid)
                self._note(Kind.PENDING, view.pod, None, By.SCHEDULER, NoPlace("no node has room for it"))

    def _note(self, kind: Kind, pod: Pod, node: str | None, by: By, because: object = None) -> None:
        self.entries.append(Entry(self._agenda.now_us, node or "", kind, pod.key, None, by, because))


def _named(pod: Pod, name: str) -> Pod:
    namespace = pod.metadata.namespace or "default"
    return replace(pod, metadata=replace(pod.metadata, name=name, namespace=namespace, uid=f"{namespace}_{name}"))


def _unreachable_seconds(tolerations: tuple[Toleration, ...]) -> int | None:
    """Return how long a pod stays bound to a node that cannot be reached; None is for ever.

    The API server gives every pod tolerations for 300 s unless it has its own (DefaultTolerationSeconds).
    """
    matching = [each for each in tolerations if each.tolerates(_UNREACHABLE, "", NO_EXECUTE)]
    if not matching:
        return _DEFAULT_TOLERATION_SECONDS
    limited = [each.toleration_seconds for each in matching if each.toleration_seconds is not None]
    return min(limited) if limited else None
