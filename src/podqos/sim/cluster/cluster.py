"""A simulated cluster: pods arrive and are deleted, controllers replace lost pods, nodes come and go.

What creates and replaces the pods of a workload is its controller (``controllers``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from podqos.agent.events import PodBound, PodDeleted
from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import (
    Because,
    NoPlace,
    ScaledFromTo,
    SuspendedWorkload,
)
from podqos.agent.state import PodRecord
from podqos.eviction.signals import NodeCondition
from podqos.model.pod import Pod
from podqos.sim.cluster.control_plane import ControlPlane
from podqos.sim.cluster.controllers.controller import DELETED, Controller, PodEnd
from podqos.sim.cluster.controllers.cron_job import CronJobController
from podqos.sim.cluster.controllers.job import JobController
from podqos.sim.cluster.controllers.kinds import controller_of
from podqos.sim.cluster.controllers.sets import SetController
from podqos.sim.cluster.draining import Drain
from podqos.sim.cluster.fleet import Fleet
from podqos.sim.cluster.known_nodes import KnownNodes
from podqos.sim.cluster.lost_nodes import NOTICED_AFTER_US, LostNodes
from podqos.sim.cluster.services import Services, services_of
from podqos.sim.engine.event_queue import CLUSTER, Action, EventPriority, EventQueue
from podqos.sim.node.node import MakeColumns, SimNode
from podqos.sim.node.pods import DemandOf
from podqos.sim.scenario.happenings import (
    Cordoned,
    Drained,
    Happening,
    NodeAdded,
    NodeDeleted,
    NodeLost,
    OutOfService,
)
from podqos.sim.scenario.replicas import Replica, is_bound, pod_of
from podqos.sim.scenario.scenario import Scenario, ScenarioWorkload, WorkloadChange, WorkloadScale, WorkloadSuspend

if TYPE_CHECKING:
    from podqos.sim.cluster.actors.actors import Actors

# What controllers are told of while a pod is there.
_STATUS_CHANGES = frozenset({Kind.STARTED, Kind.EXITED, Kind.RESTARTED, Kind.OOM_KILLED, Kind.READINESS_CHANGED})


class LeavesShard(Exception):
    """A pod of a shard asks the scheduler, which could place it on any node of the fleet; or its Job is to count it."""

    def __init__(self, pod: str, time_us: int, *, is_counted: bool = False) -> None:
        super().__init__(pod, time_us)
        self.pod = pod
        self.time_us = time_us
        self.is_counted = is_counted


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
        self._uids: dict[str, str] = {}
        """By key: the uids of pods that have the name of an earlier one."""
        self._why: dict[str, str] = {}
        """By uid: why a pod is being removed."""
        self._images_ready_us: dict[str, dict[str, int]] = {}
        """By node and image: when it has it, or will have it."""
        self._awaited: dict[str, Pod] = {}
        """By uid: pods that are gone, or deleted, and whose controllers are about to replace them."""
        self._replaced: set[str] = set()
        """The uids of pods that still stop, and are replaced already."""
        self.services: Services | None = None
        """What answers requests; None if nothing does."""
        self._later = 0
        """How many pods were created after the start."""
        self._actors: Actors | None = None
        """Autoscalers, if there are any."""
        self._watching: frozenset[int] = frozenset()
        """The workloads whose controllers are called when the status of a pod changes."""
        self.fleet = Fleet(self, known, is_watched, columns)
        self.control_plane = ControlPlane(scenario, queue, self.fleet, self)
        self.lost_nodes = LostNodes(self)
        self._controllers = {
            id(workload): controller_of(self, index, workload) for index, workload in enumerate(scenario.workloads)
        }
        """By workload: what keeps its pods."""
        self._watching = frozenset(
            which for which, controller in self._controllers.items() if controller.watches_status
        )
        self._plan_all()
        if scenario.has_actors:
            from podqos.sim.cluster.actors.actors import Actors

            self._actors = Actors(self, self._controllers.values())
        self.services = services_of(self, NOTICED_AFTER_US) if known.has_services else None

    def _plan_all(self) -> None:
        """Plan what the scenario says. At one moment machines join, pods are deleted, arrive, and machines are lost.

        So a pod that arrives finds room that another leaves at that moment, wherever the two stand in the files.
        """
        scenario = self.scenario
        machines = [happening for happening in scenario.happenings if isinstance(happening, NodeLost | NodeAdded)]
        lost = {happening for happening in machines if isinstance(happening, NodeLost)}
        later = [happening for happening in machines if NodeLost(happening.at_us, happening.node) in lost]
        for machine in machines:
            if machine not in later:
                self.plan(machine.at_us, partial(self._join, machine.node))
        for workload in scenario.workloads:
            if workload.deleted_us is not None:
                self.plan(workload.deleted_us, partial(self._delete, workload))
        for workload in scenario.workloads:
            self.plan(workload.arrives_us, partial(self._arrive, workload))
        controllers = {workload.identity: self._controllers[id(workload)] for workload in scenario.workloads}
        for change in scenario.workload_changes:
            self.plan(change.at_us, partial(self._change, change, controllers[change.workload]))
        for happening in scenario.happenings:
            if not isinstance(happening, NodeLost | NodeAdded):
                self.plan(happening.at_us, partial(self._happen, happening))
        for each in later:
            self.plan(each.at_us, partial(self._lose if each in lost else self._join, each.node))

    def _happen(self, happening: Happening, now_us: int) -> None:
        """Let an event happen that is neither the loss nor the arrival of a machine."""
        match happening:
            case Cordoned(node=name, takes_pods=takes_pods):
                self._cordon(name, takes_pods=takes_pods)
            case Drained(node=name):
                self._cordon(name, takes_pods=False)
                Drain(self, name).evict(now_us)
            case NodeDeleted(node=name):
                self.lost_nodes.node_deleted(name, now_us)
            case OutOfService(node=name):
                self.lost_nodes.out_of_service(name, now_us)

    def plan(self, time_us: int, action: Action) -> None:
        """Plan an event that concerns no particular node."""
        self.queue.plan(time_us, CLUSTER, EventPriority.LIFE, action)

    def write(self, entry: Entry) -> None:
        """Write an entry into the journal."""
        self.entries.append(entry)
        if self.services is not None:
            self.services.heard(entry)
        if self._watching and entry.kind in _STATUS_CHANGES and entry.pod is not None:
            self._tell(self.uid_of(entry.pod))
        if self._actors is not None:
            self._actors.saw(entry)

    def uid_of(self, key: str) -> str:
        """Return the uid of a pod by its namespace and name; of several one after the other, that of the last."""
        return self._uids.get(key) or key.replace("/", "_", 1)

    def _tell(self, uid: str) -> None:
        """Let the controller of a pod know that its status has changed, if it wants to."""
        replica = self._replicas.get(uid)
        if replica is not None and id(replica.workload) in self._watching:
            self.plan(self.queue.now_us, partial(self.tell, uid))

    @property
    def has_watchers(self) -> bool:
        """Whether any controller is called when the status of a pod changes."""
        return bool(self._watching)

    def tell(self, uid: str, now_us: int) -> None:
        """Tell the controller of a pod that its status has changed, if it wants to know."""
        replica = self._replicas.get(uid)
        if replica is not None and id(replica.workload) in self._watching:
            self.keeper_of(uid).changed(self.pods[uid][0], now_us)

    def keeper_of(self, uid: str) -> Controller:
        """Return the controller of a pod."""
        return self._controllers[id(self._replicas[uid].workload)]

    def note(self, kind: Kind, pod: Pod, node: str | None, by: By, because: Because | None = None) -> None:
        """Write a journal entry about a pod, after the earlier ones of its node."""
        if node is not None:
            self.fleet.get(node)
        entry = Entry(self.queue.now_us, node or "", kind, pod.key, None, by, because)
        self.entries.append(entry)
        if self.services is not None:
            self.services.heard(entry)

    def announce(self, kind: Kind, by: By, because: Because) -> None:
        """Write a journal entry about a whole workload."""
        self.entries.append(Entry(self.queue.now_us, "", kind, None, None, by, because))

    def watch(self, workload: ScenarioWorkload) -> None:
        """Call the controller of a workload from now on when the status of a pod changes."""
        self._watching |= {id(workload)}

    def _change(self, change: WorkloadChange, controller: Controller, now_us: int) -> None:
        """Let a user roll out, roll back, scale, suspend or resume a workload."""
        workload = controller.workload
        name = f"{workload.namespace}/{workload.name}"
        if isinstance(change, WorkloadSuspend):
            assert isinstance(controller, JobController | CronJobController), f"{name} is not suspended"
            kind = Kind.SUSPENDED if change.suspended else Kind.RESUMED
            self.announce(kind, By.USER, SuspendedWorkload(name, workload.kind))
            controller.suspend(now_us, suspended=change.suspended)
            return
        if isinstance(change, WorkloadScale):
            assert isinstance(controller, SetController | JobController), f"{name} is not scaled"
            self.announce(Kind.SCALED, By.USER, ScaledFromTo(name, controller.replicas, change.replicas))
            controller.scale(change.replicas, now_us)
        else:
            assert isinstance(controller, SetController), f"{name} is not rolled out"
            controller.roll_out(change, now_us)

    # ---- pods come and go ----------------------------------------------------------------------------------------

    def _arrive(self, workload: ScenarioWorkload, now_us: int) -> None:
        if workload.deleted_us != workload.arrives_us:
            self._controllers[id(workload)].begin(now_us)

    def next_order(self) -> tuple[int, int]:
        """Return the place of the next pod in the order of creation."""
        self._later += 1
        return len(self.scenario.workloads), self._later

    def create(self, pod: Pod, replica: Replica, place: str | None = None) -> None:
        """Create a pod: the scheduler places it, unless it is bound to a node."""
        if place is None:
            self._let_wait(pod, replica)
        else:
            self._bind(pod, place, replica)

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
        if pod.metadata.uid != self.uid_of(pod.key):
            self._uids[pod.key] = pod.metadata.uid

    def in_order(self) -> list[tuple[str, Replica]]:
        """Return the pods in the order of creation, by uid; without those on idle nodes."""
        return sorted(self._replicas.items(), key=lambda item: item[1].order)

    def expected_pods(self) -> Iterable[Pod]:
        """Return the pods that should run, without those on idle nodes."""
        there = (pod for uid, (pod, _) in self.pods.items() if uid not in self._replaced and uid not in self._awaited)
        return [*there, *self._awaited.values()]

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

    def need_all_nodes(self, pod: Pod) -> None:
        """Leave a shard: what follows from the end of a pod depends on pods of other nodes."""
        if self.scenario.only is not None:
            raise LeavesShard(pod.key, self.queue.now_us, is_counted=True)

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
            self.lost_nodes.bound(pod.metadata.uid, pod)

    def _delete(self, workload: ScenarioWorkload, now_us: int) -> None:
        if workload.arrives_us == now_us:
            self._delete_unseen(workload)
            return
        self.fleet.wake_all_with(workload)
        for uid, replica in self.in_order():
            if replica.workload is workload:
                pod, name = self.pods[uid]
                self.note(Kind.DELETED, pod, name, By.USER)
                self.remove(uid, DELETED)

    def _delete_unseen(self, workload: ScenarioWorkload) -> None:
        """Write that pods are deleted the moment they arrive, before any of them runs: no node hears of them."""
        if is_bound(workload):
            unseen = [(pod_of(workload, number), name) for number, name in self.fleet.places(workload)]
        else:
            unseen = [(pod, "") for pod in self._controllers[id(workload)].first_pods()]
        for pod, name in unseen:
            self.write(Entry(self.queue.now_us, name, Kind.DELETED, pod.key, None, By.USER))

    def remove(self, uid: str, why: str) -> None:
        """Remove a pod with its grace period; a pending one is gone at once."""
        self._why[uid] = why
        pod, name = self.pods[uid]
        self._tell(uid)
        if why != DELETED and name is not None:
            end = PodEnd(pod, self._replicas[uid], name, why)
            self.keeper_of(uid).deleted(end, self.queue.now_us)
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
        self.lost_nodes.forget(uid)
        self._replaced.discard(uid)
        self.control_plane.left(pod)
        return self._replicas.pop(uid)

    def ended(self, pod: Pod, why: str) -> None:
        """Forget a pod that no longer runs, and tell its controller."""
        uid = pod.metadata.uid
        _, node = self.pods[uid]
        record = self.record_of(uid)
        replica = self._forget(pod)
        end = PodEnd(pod, replica, node, why, record)
        self._controllers[id(replica.workload)].ended(end, self.queue.now_us)

    def pods_of(self, workload: ScenarioWorkload) -> Iterator[tuple[Pod, str | None]]:
        """Yield the pods of a workload and their nodes, in the order of creation, without those on idle nodes."""
        return (self.pods[uid] for uid, replica in self.in_order() if replica.workload is workload)

    def answers(self, pod: str) -> bool:
        """Whether a pod, by its key, answers requests."""
        replica = self._replicas.get(self.uid_of(pod))
        return replica is not None and replica.workload.service is not None

    def record_of(self, uid: str) -> PodRecord | None:
        """Return what the kubelet knows of a pod; None before it has heard of it."""
        _, name = self.pods[uid]
        node = None if name is None else self.fleet.awake.get(name)
        return None if node is None else node.state.pods.get(uid)

    def replica_of(self, uid: str) -> Replica:
        """Return where a pod comes from."""
        return self._replicas[uid]

    def why_removed(self, uid: str) -> str:
        """Return why a pod is being removed; empty if it is not."""
        return self._why.get(uid, "")

    def await_pod(self, pod: Pod) -> None:
        """Count a pod that is gone as expected until it is replaced: disruption budgets do."""
        self._awaited[pod.metadata.uid] = pod

    def replaced(self, pod: Pod) -> None:
        """No longer count it."""
        del self._awaited[pod.metadata.uid]
        if pod.metadata.uid in self.pods:
            self._replaced.add(pod.metadata.uid)

    # ---- what nodes say ------------------------------------------------------------------------------------------

    def demand_of(self, pod: Pod) -> DemandOf:
        """Return what a pod wants."""
        replica = self._replicas[pod.metadata.uid]
        return partial(replica.template.demand_of, replica.number)

    def left(self, node: SimNode, pod: Pod, *, rejected: bool) -> None:
        """Tell the controller that a pod no longer runs."""
        uid = pod.metadata.uid
        record = node.state.pods.get(uid)
        why = "Rejected" if rejected else "Evicted"
        if record is not None:
            why = "Preempting" if record.is_preempted else record.phase or why
        self.ended(pod, self._why.get(uid) or why)

    def readiness_changed(self, uid: str) -> None:
        """Tell the controller of a pod that it has become ready, or no longer is."""
        if self.services is not None:
            self.services.disturbed()
        if self._watching:
            self._tell(uid)

    def condition(self, node: SimNode, condition: NodeCondition, *, holds: bool) -> None:
        """Report a condition to the control plane with the node's next status."""
        self.control_plane.condition(node, condition.value, holds=holds)

    def images_ready_us(self, name: str) -> dict[str, int]:
        """Return when a node has images, or will have them, also after it was lost."""
        return self._images_ready_us.setdefault(name, {})

    def scale_of(self, workload: ScenarioWorkload) -> int:
        """Return how many pods a workload should have now."""
        replicas: int = getattr(self._controllers[id(workload)], "replicas", workload.replicas)
        return replicas

    # ---- nodes come and go ---------------------------------------------------------------------------------------

    def _lose(self, name: str, now_us: int) -> None:
        node = self.fleet.get(name)
        if node is not None:
            node.lost(now_us)

    def _cordon(self, name: str, *, takes_pods: bool) -> None:
        """Let a node take no more pods, or take them again."""
        if self.control_plane.takes_pods(name) == takes_pods:
            return
        self.fleet.get(name)
        kind = Kind.UNCORDONED if takes_pods else Kind.CORDONED
        self.write(Entry(self.queue.now_us, name, kind, None, None, By.USER))
        self.control_plane.cordon(name, takes_pods=takes_pods)

    def _join(self, name: str, now_us: int) -> None:
        if self.fleet.is_present(name):
            return
        self.fleet.add(name)
        self.lost_nodes.joined(name)
        self.control_plane.joined(name)
        self._start_again(name)
        for controller in self._controllers.values():
            controller.node_joined(name, now_us)

    def bound_to(self, name: str) -> list[tuple[str, Pod]]:
        """Return the pods on a node that is awake or lost, by uid, in the order of creation."""
        return [(uid, self.pods[uid][0]) for uid, _ in self.in_order() if self.pods[uid][1] == name]

    def node_of(self, uid: str) -> str:
        """Return the node of a pod; empty if it has none."""
        return self.pods[uid][1] or ""

    @property
    def unreachable_us(self) -> Mapping[str, int]:
        """By name of a lost node: when the control plane notices it."""
        return self.lost_nodes.noticed_us

    def mark_deleted(self, uid: str, why: str) -> None:
        """Delete a pod whose object stays."""
        self._why[uid] = why

    def collected(self, name: str) -> None:
        """Tell controllers that nothing is left of the pods of a node."""
        for controller in self._controllers.values():
            controller.node_removed(name, self.queue.now_us)

    def _start_again(self, name: str) -> None:
        """Let a node that joins again start the pods still bound to it; those to be removed are gone."""
        for uid, pod in self.bound_to(name):
            if uid in self._why:
                self.ended(pod, self._why[uid])
            else:
                self._let_know(self.fleet.get(name), pod)

    def lost(self, node: SimNode) -> None:
        """Drop a node that is lost; the control plane notices later."""
        self.fleet.drop(node.name)
        self.lost_nodes.lost(node.name)
