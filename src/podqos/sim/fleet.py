"""The nodes of a simulated cluster: those that are set up, and those that rest because nothing happens on them.

A node rests as long as it is proven quiet (``quiet``). It wakes when the proof ends or when somebody wants something of
it: then its own events are run from the beginning up to now, by themselves, and from there on with everybody else's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.pods import promised
from podqos.model.pod import Pod
from podqos.sim.agenda import CLUSTER, Agenda, Turn
from podqos.sim.node import Place, SimNode
from podqos.sim.node_settings import NodeSettings, node_settings
from podqos.sim.quiet import Composition, Proofs
from podqos.sim.replicas import Replica, is_bound, numbers_on, pod_of
from podqos.sim.scenario import NodeAdded, NodeLost, ScenarioWorkload

if TYPE_CHECKING:
    from podqos.sim.cluster import SimCluster


class Fleet:
    """All nodes, by name, in the order of the scenario."""

    def __init__(self, cluster: SimCluster, *, may_rest: bool) -> None:
        self._cluster = cluster
        self._places: dict[str, Place] = {}
        self._settings: dict[str, NodeSettings] = {}
        self._nodes: dict[str, SimNode] = {}
        self._resting: dict[str, None] = {}
        self.arrived: list[ScenarioWorkload] = []
        """Those whose pods have been bound, on resting nodes as well."""
        self.set_up()
        self.names: tuple[str, ...] = tuple(self._places)
        self._lay_to_rest(may_rest=may_rest)

    def set_up(self) -> None:
        """Learn which nodes there are."""
        scenario = self._cluster.scenario
        for group in scenario.nodes:
            settings = node_settings(group.spec, scenario.profile, scenario.policy)
            for number in range(group.count):
                name = group.name_of(number)
                self._settings[name] = settings
                self._places[name] = Place(len(self._places), name, group.loop_phase_us(number))

    def _lay_to_rest(self, *, may_rest: bool) -> None:
        """Let those rest that are quiet; set up the others."""
        scenario = self._cluster.scenario
        kept_back = {each.node for each in scenario.happenings if isinstance(each, NodeAdded)}
        kept_back -= {each.node for each in scenario.happenings if isinstance(each, NodeLost)}
        proofs = Proofs(scenario.workloads, scenario.options, scenario.duration_us)
        for name, place in self._places.items():
            if name in kept_back:
                continue
            quiet_us = proofs.quiet_until_us(self._settings[name], self._composition(place)) if may_rest else 0
            if quiet_us > 0:
                self._resting[name] = None
                self._cluster.plan(quiet_us, partial(self._end_rest, name))
            else:
                self.add(name)

    def _composition(self, place: Place) -> Composition:
        """Return which pods will be bound to a node."""
        found: Counter[tuple[int, int]] = Counter()
        for index, workload in enumerate(self._cluster.scenario.workloads):
            if is_bound(workload):
                numbers = numbers_on(workload, place.name, place.index, len(self._places))
                kinds = len(workload.demands)
                if kinds == 1:
                    found[index, 0] += len(numbers)
                else:
                    for number in numbers:
                        found[index, number % kinds] += 1
        return tuple((workload, demand, count) for (workload, demand), count in sorted(found.items()) if count)

    # ---- who is there --------------------------------------------------------------------------------------------

    def settings(self, name: str) -> NodeSettings:
        """Return how a node is set up."""
        return self._settings[name]

    def is_present(self, name: str) -> bool:
        """Whether a node is there, awake or not."""
        return name in self._nodes or name in self._resting

    def is_resting(self, name: str) -> bool:
        """Whether a node is quiet and not set up."""
        return name in self._resting

    def awake(self) -> Collection[SimNode]:
        """Return the nodes that are set up."""
        return self._nodes.values()

    def numbered(self, index: int) -> tuple[SimNode, ...]:
        """Return the node with a number if it is awake; all of them for what concerns the cluster."""
        if index == CLUSTER:
            return tuple(self._nodes.values())
        node = self._nodes.get(self.names[index])
        return () if node is None else (node,)

    def get(self, name: str) -> SimNode | None:
        """Return a node, woken if need be; None if it is away."""
        if name in self._resting:
            self._wake(name)
        return self._nodes.get(name)

    def add(self, name: str) -> None:
        """Set a node up that is empty."""
        self._nodes[name] = self._new(name, self._cluster.agenda)

    def drop(self, name: str) -> None:
        """Forget a node that is gone."""
        self._nodes.pop(name, None)

    def _new(self, name: str, agenda: Agenda) -> SimNode:
        cluster = self._cluster
        return SimNode(self._places[name], self._settings[name], cluster.scenario.options, agenda, cluster)

    # ---- waking --------------------------------------------------------------------------------------------------

    def wake_all_with(self, workload: ScenarioWorkload) -> None:
        """Wake the nodes on which pods of a workload run."""
        for name in tuple(self._resting):
            if any(other is workload for other, _ in self._bound_to(name)):
                self._wake(name)

    def resting_pods(self) -> Iterator[tuple[Pod, str]]:
        """Yield the pods on resting nodes, and where they are."""
        for name in self._resting:
            for workload, number in self._bound_to(name):
                yield pod_of(workload, number), name

    def _end_rest(self, name: str, _: int) -> None:
        if name in self._resting:
            self._wake(name)

    def _wake(self, name: str) -> None:
        """Run a node's own events up to now, by themselves, and let the rest happen with everybody else's."""
        del self._resting[name]
        agenda = self._cluster.agenda
        own = Agenda(agenda.until_us)
        self._nodes[name] = node = self._new(name, own)
        for workload, number in self._bound_to(name):
            act = partial(self._bind, name, workload, number)
            own.plan(workload.arrives_us, CLUSTER, Turn.LIFE, act)
        reached = agenda.now_us, max(CLUSTER, min(agenda.reached, node.index))
        while own.next is not None and own.next <= reached:
            own.step()
        agenda.take_over(own)
        node.agenda = agenda

    def _bind(self, name: str, workload: ScenarioWorkload, number: int, _: int) -> None:
        self._cluster.bind(pod_of(workload, number), name, Replica(workload, number))

    def _bound_to(self, name: str) -> Iterator[tuple[ScenarioWorkload, int]]:
        """Yield the pods that have been bound to a node beforehand, in that order."""
        place = self._places[name]
        for workload in self.arrived:
            if is_bound(workload):
                for number in numbers_on(workload, name, place.index, len(self._places)):
                    yield workload, number

    # ---- the journal of those that never woke --------------------------------------------------------------------

    def entries_of_resting(self) -> Iterator[Entry]:
        """Yield what the nodes that rest have to say: their pods were admitted and started, and that is all."""
        options, until_us = self._cluster.scenario.options, self._cluster.agenda.until_us
        for name in self._resting:
            config = self._settings[name].agent
            reasons = {id(workload): promised(config, workload.pod) for workload in self.arrived}
            for workload, number in self._bound_to(name):
                key = f"{workload.pod.metadata.namespace or 'default'}/{pod_of(workload, number).metadata.name}"
                arrived_us = workload.arrives_us
                yield Entry(arrived_us, name, Kind.ADMITTED, key, None, By.KUBELET)
                started_us = arrived_us + options.start_delay_us(arrived_us)
                if started_us <= until_us:
                    because = reasons[id(workload)]
                    yield Entry(started_us, name, Kind.STARTED, key, None, By.KUBELET, because)
