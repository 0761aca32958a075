"""A simulated cluster: pods arrive and are deleted, controllers replace lost pods, nodes come and go.

Controllers only keep a number of pods running: a pod that was evicted, failed, was rejected, preempted or lost with its
node is replaced after a delay by one with another name and the same demand. A DaemonSet waits longer each time a pod
fails on the same node (``daemon_backoff``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from podqos.agent.events import PodBound, PodDeleted
from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import Because, NoPlace, ReplacementFor
from podqos.agent.state import Phase
from podqos.eviction.signals import NodeCondition
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US
from podqos.placement.workloads import DAEMON_SET
from podqos.sim.cluster.control_plane import ControlPlane
from podqos.sim.cluster.daemon_backoff import DaemonBackoff
from podqos.sim.cluster.fleet import Fleet
from podqos.sim.cluster.known_nodes import KnownNodes
from podqos.sim.engine.event_queue import CLUSTER, Action, EventPriority, EventQueue
from podqos.sim.node.node import MakeColumns, SimNode
from podqos.sim.node.pods import DemandOf
from podqos.sim.scenario.replicas import (
    Replica,
    daemons,
    is_bound,
    is_there_first,
    pod_of,
    replacement,
    unreachable_seconds,
)
from podqos.sim.scenario.scenario import NodeLost, Scenario, ScenarioWorkload

NOTICED_AFTER_US = 50 * SECOND_US
"""How long the node controller waits for a silent node (node-monitor-grace-period since 1.32)."""
# Reasons for which the pod object is gone; otherwise a failed pod stays until its controller removes it.
_DELETED = ("NodeLost", "Preempted")


class LeavesShard(Exception):
    """A pod of a shard asks the scheduler, which could place it on any node of the fleet."""

    def __init__(self, pod: str, time_us: int) -> None:
        super().__init__(pod, time_us)
        self.pod = pod
        self.time_us = time_us


class SimCluster:
    """All nodes of a scenario, and everything above them."""

    def __init__(
        self,
        scenario: Scenario,
        queue: EventQueue,
        *,
        is_watched: Callable[[str], bool] = lambda _: True,
        columns: MakeColumns | None = None,
        known: KnownNodes | None = None,
    ) -> None:
        """Set up the cluster. Unwatched nodes are left out, or sleep, while provably nothing happens there."""
        self.scenario = scenario
        self.queue = queue
        self.entries: list[Entry] = []
        known = known or KnownNodes(scenario)
        self.requests = known.requests
        self.pods: dict[str, tuple[Pod, str | None]] = {}
        """By uid: the pods that are there, and their nodes. Those on idle nodes are not among them."""
        self._replicas: dict[str, Replica] = {}
        self._why: dict[str, str] = {}
        """By uid: why a pod is being removed."""
        self._given_up_us: dict[str, int] = {}
        """By uid: when a pod on a lost node is given up, unless the node joins again before."""
        self._awaited: dict[str, Pod] = {}
        """By uid: pods that are gone and whose controllers are about to replace them."""
        self._later = 0
        """How many pods were created after the start."""
        self._daemon_backoff = DaemonBackoff()
        self._first_daemons: set[str] = set()
        """The uids of the first pods of all DaemonSets on all nodes."""
        self.fleet = Fleet(self, known, is_watched, columns)
        self.control_plane = ControlPlane(scenario, queue, self.fleet, self)
        self._plan_all()

    def _plan_all(self) -> None:
        """Plan what the scenario says. At one moment machines join, pods are deleted, arrive, and machines are lost.

        So a pod that arrives finds room that another leaves at that moment, wherever the two stand in the files.
        """
        scenario = self.scenario
        lost = {happening for happening in scenario.happenings if isinstance(happening, NodeLost)}
        later = [happening for happening in scenario.happenings if NodeLost(happening.at_us, happening.node) in lost]
        for happening in scenario.happenings:
            if happening not in later:
                self.plan(happening.at_us, partial(self._join, happening.node))
        for workload in scenario.workloads:
            if workload.deleted_us is not None:
                self.plan(workload.deleted_us, partial(self._delete, workload))
        for index, workload in enumerate(scenario.workloads):
            self.plan(workload.arrives_us, partial(self._arrive, index, workload))
        for each in later:
            self.plan(each.at_us, partial(self._lose if each in lost else self._join, each.node))

    def plan(self, time_us: int, action: Action) -> None:
        """Plan an event that concerns no particular node."""
        self.queue.plan(time_us, CLUSTER, EventPriority.LIFE, action)

    def write(self, entry: Entry) -> None:
        """Write an entry into the journal."""
        self.entries.append(entry)

    def note(self, kind: Kind, pod: Pod, node: str | None, by: By, because: Because | None = None) -> None:
        """Write a journal entry about a pod, after the earlier ones of its node."""
        if node is not None:
            self.fleet.get(node)
        self.entries.append(Entry(self.queue.now_us, node or "", kind, pod.key, None, by, because))

    # ---- pods come and go ----------------------------------------------------------------------------------------

    def _arrive(self, index: int, workload: ScenarioWorkload, now_us: int) -> None:
        def replica(number: int) -> Replica:
            return Replica(workload, number, self._next_order() if now_us else (index, number))

        if workload.deleted_us == workload.arrives_us:
            return
        if is_there_first(workload):
            for number, name in self.fleet.first_pods(workload):
                self._bind(pod_of(workload, number), name, replica(number))
        elif is_bound(workload):
            for number, name in self.fleet.places(workload):
                self._bind(pod_of(workload, number), name, replica(number))
        else:
            for number, pod in enumerate(self._pods_of(workload)):
                self._let_wait(pod, replica(number))

    def _pods_of(self, workload: ScenarioWorkload) -> Iterator[Pod]:
        """Yield the pods of a workload that arrives."""
        if workload.kind != DAEMON_SET:
            return (pod_of(workload, number) for number in range(workload.replicas))
        return self._new_daemons(workload, (name for name in self.fleet.names if self.fleet.is_present(name)))

    def _new_daemons(self, workload: ScenarioWorkload, nodes: Iterable[str]) -> Iterator[Pod]:
        """Yield the pods of a DaemonSet for nodes on which it had none; what becomes of those is another matter."""
        for pod in daemons(workload, map(self.control_plane.api_node, nodes), self.scenario.profile):
            if pod.metadata.uid not in self._first_daemons:
                self._first_daemons.add(pod.metadata.uid)
                yield pod

    def _next_order(self) -> tuple[int, int]:
        self._later += 1
        return len(self.scenario.workloads), self._later

    def _bind(self, pod: Pod, name: str, replica: Replica) -> None:
        """Bind a pod to a node without the scheduler."""
        node = self.fleet.get(name)
        self.know(pod, name, replica)
        self.control_plane.bound(pod, name)
        self._let_know(node, pod)

    def know(self, pod: Pod, name: str | None, replica: Replica) -> None:
        """Remember a pod that is there."""
        self._replicas[pod.metadata.uid] = replica
        self.pods[pod.metadata.uid] = pod, name

    def in_order(self) -> list[tuple[str, Replica]]:
        """Return the pods in the order of creation, by uid; without those on idle nodes."""
        return sorted(self._replicas.items(), key=lambda item: item[1].order)

    def expected_pods(self) -> Iterable[Pod]:
        """Return the pods that should run, without those on idle nodes."""
        return [pod for pod, _ in self.pods.values()] + list(self._awaited.values())

    def healthy_pods(self) -> Iterator[Pod]:
        """Yield the pods whose containers all run and that are not being removed, without those on idle nodes."""
        for uid, (pod, name) in self.pods.items():
            node = None if name is None or uid in self._why else self.fleet.awake.get(name)
            record = None if node is None else node.state.pods.get(uid)
            if record is not None and record.is_ready:
                yield pod

    def is_deleted(self, pod: Pod) -> bool:
        """Whether a pod that is still there has been deleted."""
        return pod.metadata.uid in self._why

    def _let_wait(self, pod: Pod, replica: Replica) -> None:
        if self.scenario.only is not None:
            raise LeavesShard(pod.key, self.queue.now_us)
        self.know(pod, None, replica)
        self.control_plane.wait(pod)

    def placed(self, pod: Pod, name: str) -> None:
        """Take the scheduler's decision where a pod runs."""
        node = self.fleet.get(name)
        self.pods[pod.metadata.uid] = pod, name
        self._let_know(node, pod)

    def _let_know(self, node: SimNode | None, pod: Pod) -> None:
        """Tell a node of a pod bound to it; on a lost node the pod never starts."""
        if node is not None:
            node.report(PodBound(pod))
        else:
            _, name = self.pods[pod.metadata.uid]
            self.note(Kind.PENDING, pod, name, By.CONTROLLER, NoPlace(bound_to=name or ""))
            self._plan_loss(pod.metadata.uid, pod, self.queue.now_us + NOTICED_AFTER_US)

    def _delete(self, workload: ScenarioWorkload, now_us: int) -> None:
        if workload.arrives_us == now_us:
            self._delete_unseen(workload)
            return
        self.fleet.wake_all_with(workload)
        for uid, replica in self.in_order():
            if replica.workload is workload:
                pod, name = self.pods[uid]
                self.note(Kind.DELETED, pod, name, By.USER)
                self.remove(uid, "Deleted")

    def _delete_unseen(self, workload: ScenarioWorkload) -> None:
        """Write that pods are deleted the moment they arrive, before any of them runs: no node hears of them."""
        if is_bound(workload):
            unseen = [(pod_of(workload, number), name) for number, name in self.fleet.places(workload)]
        else:
            unseen = [(pod, "") for pod in self._pods_of(workload)]
        for pod, name in unseen:
            self.write(Entry(self.queue.now_us, name, Kind.DELETED, pod.key, None, By.USER))

    def remove(self, uid: str, why: str) -> None:
        """Remove a pod; a pending one is gone at once."""
        self._why[uid] = why
        pod, name = self.pods[uid]
        if name is None:
            self._forget(pod)
            return
        node = self.fleet.get(name)
        if node is not None:
            node.report(PodDeleted(uid))

    def _forget(self, pod: Pod) -> Replica:
        uid = pod.metadata.uid
        del self.pods[uid]
        self._why.pop(uid, None)
        self._given_up_us.pop(uid, None)
        self.control_plane.left(pod)
        return self._replicas.pop(uid)

    def _replace(self, pod: Pod, why: str) -> None:
        """Let the pod's controller, if any, create a replacement."""
        _, node = self.pods[pod.metadata.uid]
        replica = self._forget(pod)
        workload = replica.workload
        is_over = workload.deleted_us is not None and self.queue.now_us >= workload.deleted_us
        if not workload.recreate or is_over or why in {"Deleted", Phase.SUCCEEDED}:
            return
        wait_us = self._wait_us(workload, node, why)

        self._awaited[pod.metadata.uid] = pod

        def make(now_us: int) -> None:
            del self._awaited[pod.metadata.uid]
            if workload.deleted_us is not None and now_us >= workload.deleted_us:
                return
            again = Replica(workload, replica.number, self._next_order(), replica.generation + 1)
            made = replacement(pod, again)
            because = ReplacementFor(pod.key, why, wait_us // SECOND_US)
            # A template that names its node needs no scheduler: the replacement is bound where the pod was.
            place = node if pod.spec.node_name else None
            self.note(Kind.REPLACED, made, place, By.CONTROLLER, because)
            if place is None:
                self._let_wait(made, again)
            else:
                self._bind(made, place, again)

        self.plan(self.queue.now_us + wait_us + self.scenario.options.recreate_us, make)

    def _wait_us(self, workload: ScenarioWorkload, node: str | None, why: str) -> int:
        """Return how long a controller waits before it replaces a failed pod."""
        backs_off = workload.kind == DAEMON_SET and self.scenario.profile.daemon_set_backoff
        if not backs_off or node is None or why in _DELETED:
            return 0
        return self._daemon_backoff.wait_us(f"{workload.namespace}/{workload.name}", node, self.queue.now_us)

    # ---- what nodes say ------------------------------------------------------------------------------------------

    def demand_of(self, pod: Pod) -> DemandOf:
        """Return what a pod wants."""
        replica = self._replicas[pod.metadata.uid]
        return partial(replica.workload.demand_of, replica.number)

    def left(self, node: SimNode, pod: Pod, *, rejected: bool) -> None:
        """Tell the controller that a pod no longer runs."""
        uid = pod.metadata.uid
        record = node.state.pods.get(uid)
        why = "Rejected" if rejected else "Evicted"
        if record is not None:
            why = "Preempting" if record.is_preempted else record.phase or why
        self._replace(pod, self._why.get(uid) or why)

    def condition(self, node: SimNode, condition: NodeCondition, *, holds: bool) -> None:
        """Report a condition to the control plane with the node's next status."""
        self.control_plane.condition(node, condition.value, holds=holds)

    # ---- nodes come and go ---------------------------------------------------------------------------------------

    def _lose(self, name: str, now_us: int) -> None:
        node = self.fleet.get(name)
        if node is not None:
            node.lost(now_us)

    def _join(self, name: str, now_us: int) -> None:
        if self.fleet.is_present(name):
            return
        self.fleet.add(name)
        self.control_plane.joined(name)
        self._start_again(name)
        for workload in self.scenario.workloads:
            is_over = workload.deleted_us is not None and workload.deleted_us <= now_us
            if workload.kind == DAEMON_SET and workload.arrives_us < now_us and not is_over:
                for pod in self._new_daemons(workload, (name,)):
                    number = self.fleet.names.index(name)
                    self._let_wait(pod, Replica(workload, number, self._next_order()))

    def _start_again(self, name: str) -> None:
        """Let a node that joins again start the pods still bound to it; those to be removed are gone."""
        for uid, _ in self.in_order():
            pod, place = self.pods[uid]
            if place != name:
                continue
            self._given_up_us.pop(uid, None)
            if uid in self._why:
                self._replace(pod, self._why[uid])
            else:
                self._let_know(self.fleet.get(name), pod)

    def lost(self, node: SimNode) -> None:
        """Let the control plane notice that a node is lost, and evict its pods after their toleration time."""
        self.fleet.drop(node.name)
        noticed_us = self.queue.now_us + NOTICED_AFTER_US
        self.plan(noticed_us, partial(self.control_plane.lost, node.name))
        for uid, _ in self.in_order():
            pod, name = self.pods[uid]
            if name == node.name:
                self._plan_loss(uid, pod, noticed_us)

    def _plan_loss(self, uid: str, pod: Pod, noticed_us: int) -> None:
        seconds = unreachable_seconds(pod.spec.tolerations)
        if seconds is not None:
            self._given_up_us[uid] = noticed_us + seconds * SECOND_US
            self.plan(self._given_up_us[uid], partial(self._lost_pod, uid))

    def _lost_pod(self, uid: str, now_us: int) -> None:
        if self._given_up_us.get(uid) == now_us:
            del self._given_up_us[uid]
            self._replace(self.pods[uid][0], "NodeLost")
