"""A simulated cluster: pods arrive and are deleted, controllers replace what is lost, nodes come and go.

Controllers here keep a number of pods running and know nothing else: a pod that was evicted, failed, was turned away,
displaced or lost with its node is replaced after a delay, by a pod with a name of its own and the same demand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from podqos.agent.events import PodBound, PodDeleted
from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import Because, NoPlace, PlacedOn, PreemptedFor, ReplacementFor
from podqos.agent.state import Phase
from podqos.eviction.signals import NodeCondition
from podqos.model.node import Node, NodeSpec, NodeStatus
from podqos.model.pod import ObjectMeta, Pod, Toleration, Workload
from podqos.placement.taints import NO_EXECUTE
from podqos.placement.workloads import DAEMON_SET, pods_of
from podqos.sim.agenda import CLUSTER, Action, Agenda, Turn
from podqos.sim.cold import ColdNode, Part, cold_nodes, first_pods, is_there_first
from podqos.sim.node import Place, SimNode
from podqos.sim.node_settings import NodeSettings, node_settings
from podqos.sim.pods import DemandOf
from podqos.sim.replicas import Replica, named, pod_name
from podqos.sim.scenario import SECOND_US, NodeAdded, NodeLost, Scenario, ScenarioWorkload
from podqos.sim.scheduling import Scheduler
from podqos.sim.would_evict import MemoryRequests

NOTICED_AFTER_US = 50 * SECOND_US
"""How long the node controller waits for a silent node (node-monitor-grace-period since 1.32)."""

_UNREACHABLE = "node.kubernetes.io/unreachable"
_DEFAULT_TOLERATION_SECONDS = 300


def _always(_: str) -> bool:
    return True


class SimCluster:
    """All nodes of a scenario, and everything that is not a node's own business."""

    def __init__(
        self, scenario: Scenario, agenda: Agenda, *, is_watched: Callable[[str], bool] = _always
    ) -> None:
        """Set the cluster up; nodes that are not watched, by name, are simulated only if something can happen there."""
        self.scenario = scenario
        self.entries: list[Entry] = []
        self.requests = MemoryRequests(scenario.profile)
        self.nodes: dict[str, SimNode] = {}
        """Those that are there and simulated, in the order of the scenario."""
        self.cold: dict[str, ColdNode] = {}
        """Those that are there and on which nothing has happened."""
        self._is_watched = is_watched
        self._present: dict[str, None] = {}
        """The names of all that are there."""
        self._agenda = agenda
        self._settings: dict[str, NodeSettings] = {}
        self._places: dict[str, Place] = {}
        """By name, whether the node is there or not."""
        self._names: list[str] = []
        self._first: dict[int, list[tuple[str, Part]]] = {}
        """By place of the workload: its pods at the beginning, on nodes that are simulated."""
        self._later = 0
        """How many pods came to be after the beginning."""
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
                self._places[name] = Place(len(self._places), name, group.loop_phase_us(number))
                self._names.append(name)
                if name not in kept_back:
                    self._present[name] = None
        parts = first_pods(scenario, self._names)
        there = {name: self._settings[name] for name in self._present}
        self.cold = cold_nodes(scenario, parts, there, self.requests, self._is_watched)
        for name in self._present:
            if name not in self.cold:
                self._add_node(name)
        for name, own in parts.items():
            if name not in self.cold:
                for part in own:
                    self._first.setdefault(part.workload, []).append((name, part))
        for index, workload in enumerate(scenario.workloads):
            self._plan(workload.arrives_us, lambda _, index=index, workload=workload: self._arrive(index, workload))
            if workload.deleted_us is not None:
                self._plan(workload.deleted_us, lambda _, workload=workload: self._delete(workload))
        for happening in scenario.happenings:
            if isinstance(happening, NodeLost):
                self._plan(happening.at_us, lambda now_us, name=happening.node: self._node(name).lost(now_us))
            else:
                self._plan(happening.at_us, lambda _, name=happening.node: self._join(name))

    def _plan(self, time_us: int, action: Action) -> None:
        self._agenda.plan(time_us, CLUSTER, Turn.LIFE, action)

    def _add_node(self, name: str) -> None:
        place, options = self._places[name], self.scenario.options
        self.nodes[name] = SimNode(place, self._settings[name], options, self._agenda, self)

    def _node(self, name: str) -> SimNode:
        """Return a node to which something is done; if it is cold, nothing has happened there up to now."""
        cold = self.cold.pop(name, None)
        if cold is not None:
            own = Agenda(self.scenario.duration_us)
            node = self.nodes[name] = SimNode(
                self._places[name], self._settings[name], self.scenario.options, own, self
            )
            for pod, replica in self._made(cold.parts):
                self._replicas[pod.metadata.uid] = replica
                self._pods[pod.metadata.uid] = pod, name
                node.report(PodBound(pod))
            self._agenda.take_over(own)
            node.go_on(self._agenda)
        return self.nodes[name]

    def _made(self, parts: Iterable[Part]) -> Iterator[tuple[Pod, Replica]]:
        """Yield pods that are there from the beginning."""
        for part in parts:
            workload = self.scenario.workloads[part.workload]
            for number in part.numbers:
                yield named(workload.pod, pod_name(workload, number)), Replica(workload, number, (part.workload, number))

    def _join(self, name: str) -> None:
        self._present[name] = None
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

    def _arrive(self, index: int, workload: ScenarioWorkload) -> None:
        if is_there_first(workload):
            self._bind_first(index)
            return
        names = workload.nodes or (self._names if workload.spread else ())
        for number, pod in enumerate(self._pods_of(workload)):
            order = self._next_order() if self._agenda.now_us else (index, number)
            replica = Replica(workload, number, order)
            if names:
                self._bind(pod, names[number % len(names)], replica)
            else:
                self._queue(pod, replica)

    def _bind_first(self, index: int) -> None:
        """Bind the pods that a workload has at the beginning, on nodes that are simulated."""
        mine = [(made, name) for name, part in self._first.pop(index, ()) for made in self._made((part,))]
        for (pod, replica), name in sorted(mine, key=lambda each: each[0][1].order):
            self._bind(pod, name, replica)

    def _next_order(self) -> tuple[int, int]:
        self._later += 1
        return len(self.scenario.workloads), self._later

    def _pods_of(self, workload: ScenarioWorkload) -> Iterable[Pod]:
        pod = workload.pod
        if workload.kind == DAEMON_SET:
            nodes = [self._api_node(name) for name in self._present]
            made = pods_of(Workload(DAEMON_SET, pod.metadata, pod), nodes, profile=self.scenario.profile)
            return (named(each, each.metadata.name) for each in made)
        return (named(pod, pod_name(workload, number)) for number in range(workload.replicas))

    def _bind(self, pod: Pod, node: str, replica: Replica) -> None:
        uid = pod.metadata.uid
        bound_to = self._node(node)
        self._replicas[uid] = replica
        self._pods[uid] = pod, node
        if self._scheduler is not None:
            self._scheduler.bound(pod, node)
        bound_to.report(PodBound(pod))

    def _queue(self, pod: Pod, replica: Replica) -> None:
        uid = pod.metadata.uid
        self._replicas[uid] = replica
        self._pods[uid] = pod, None
        self._the_scheduler().wait(pod)
        self._place_soon()

    def _delete(self, workload: ScenarioWorkload) -> None:
        for name in [name for name, cold in self.cold.items() if self._runs(workload, cold)]:
            self._node(name)
        for uid, replica in self._in_order():
            if replica.workload is workload:
                pod, node = self._pods[uid]
                self._why[uid] = "Deleted"
                self._note(Kind.DELETED, pod, node, By.USER)
                self._remove(uid)

    def _runs(self, workload: ScenarioWorkload, cold: ColdNode) -> bool:
        return any(self.scenario.workloads[part.workload] is workload for part in cold.parts)

    def _in_order(self) -> list[tuple[str, Replica]]:
        """Return the pods in the order in which they came to be; those of cold nodes are not among them."""
        return sorted(self._replicas.items(), key=lambda each: each[1].order)

    def _remove(self, uid: str) -> None:
        """Tell a pod to go; one that waits is gone at once."""
        pod, node = self._pods[uid]
        if node is None:
            self._forget(pod)
        elif node in self._present:
            self._node(node).report(PodDeleted(uid))

    def _forget(self, pod: Pod) -> Replica:
        uid = pod.metadata.uid
        if self._scheduler is not None:
            self._scheduler.left(pod)
            self._place_soon()
        del self._pods[uid]
        self._why.pop(uid, None)
        self._pending.discard(uid)
        return self._replicas.pop(uid)

    def write(self, entry: Entry) -> None:
        """Write an entry into the journal."""
        self.entries.append(entry)

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
        del self._present[node.name]
        self._conditions.pop(node.name, None)
        now_us = self._agenda.now_us
        self._plan(now_us + NOTICED_AFTER_US, lambda _: self._notice(node.name))
        for uid, _ in self._in_order():
            pod, name = self._pods[uid]
            if name == node.name:
                seconds = _unreachable_seconds(pod.spec.tolerations)
                if seconds is not None:
                    due_us = now_us + NOTICED_AFTER_US + seconds * SECOND_US
                    self._plan(due_us, lambda _, uid=uid: self._lost_pod(uid))

    def _notice(self, name: str) -> None:
        if self._scheduler is not None and name not in self._present:
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
        generation = replica.generation + 1

        def make(_: int) -> None:
            again = Replica(workload, replica.number, self._next_order(), generation)
            base = pod.metadata.name.rpartition("-r")[0] if replica.generation else pod.metadata.name
            made = named(pod, f"{base}-r{generation}")
            self._note(Kind.REPLACED, made, None, By.CONTROLLER, ReplacementFor(pod.key, why))
            self._queue(made, again)

        self._plan(self._agenda.now_us + self.scenario.options.recreate_us, make)

    # ---- the scheduler -------------------------------------------------------------------------------------------

    def _the_scheduler(self) -> Scheduler:
        if self._scheduler is None:
            self._scheduler = Scheduler((self._api_node(name) for name in self._places), self.scenario.profile)
            for name in self._places:
                if name not in self._present:
                    self._scheduler.remove_node(name)
                elif name in self._conditions:
                    self._scheduler.report(name, sorted(self._conditions[name]))
            for _, pod, node in sorted(self._bound(), key=lambda each: each[0]):
                self._scheduler.bound(pod, node)
        return self._scheduler

    def _bound(self) -> Iterator[tuple[tuple[int, int], Pod, str]]:
        """Yield all pods that have a node, with their place in the order in which they came to be."""
        for uid, (pod, node) in self._pods.items():
            if node is not None:
                yield self._replicas[uid].order, pod, node
        for name, cold in self.cold.items():
            for pod, replica in self._made(cold.parts):
                yield replica.order, pod, name

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
                if node in self._present:
                    self._node(node).report(PodBound(pod))
            for victim in displaced:
                because = PreemptedFor(pod.key, victim.spec.priority or 0, pod.spec.priority or 0)
                self._why[victim.metadata.uid] = "Preempted"
                self._note(Kind.PREEMPTED, victim, self._pods[victim.metadata.uid][1], By.SCHEDULER, because)
                self._remove(victim.metadata.uid)
        for view in scheduler.waiting.values():
            if view.pod.metadata.uid not in self._pending:
                self._pending.add(view.pod.metadata.uid)
                self._note(Kind.PENDING, view.pod, None, By.SCHEDULER, NoPlace("no node has room for it"))

    def _note(self, kind: Kind, pod: Pod, node: str | None, by: By, because: Because | None = None) -> None:
        self.entries.append(Entry(self._agenda.now_us, node or "", kind, pod.key, None, by, because))


def _unreachable_seconds(tolerations: tuple[Toleration, ...]) -> int | None:
    """Return how long a pod stays bound to a node that cannot be reached; None is for ever.

    The API server gives every pod tolerations for 300 s unless it has its own (DefaultTolerationSeconds).
    """
    matching = [each for each in tolerations if each.tolerates(_UNREACHABLE, "", NO_EXECUTE)]
    if not matching:
        return _DEFAULT_TOLERATION_SECONDS
    limited = [each.toleration_seconds for each in matching if each.toleration_seconds is not None]
    return min(limited) if limited else None
