"""The control plane of a simulated cluster: its pods and nodes as the API server has them, and when pods are placed.

Controllers, autoscalers and services act through it; ``SimCluster`` puts all of them together. The scheduler is created
when the first pod has to be placed: pods with a fixed node need none.

A lost machine is noticed after 50 s, and its pods are deleted after their toleration time; the objects stay where a
controller waits for them. The garbage collector looks every 20 s (a model: at multiples of 20 s of the scenario). Pods
of a node that does not exist are deleted after a quarantine of 40 s; pods that are terminating on a node that is not
ready and is marked out of service, when it next looks.

Source: Kubernetes v1.36.4 pkg/controller/podgc/gc_controller.go (gcOrphaned, gcTerminating, quarantineTime),
cmd/kube-controller-manager/app/core.go (20 s), pkg/controller/nodelifecycle (node-monitor-grace-period since 1.32).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.port import PodBound, PodDeleted
from podqos.agent.reasons import Because, NodeUnreachable, NoPlace, PlacedOn, PreemptedFor
from podqos.agent.state import PodRecord
from podqos.eviction.signals import NodeCondition
from podqos.model.node import LABEL_HOSTNAME, Node, NodeSpec, NodeStatus
from podqos.model.pod import ObjectMeta, Pod
from podqos.model.time_units import SECOND_US
from podqos.placement.node_rules import declared_by_default
from podqos.placement.place import PlacementSurroundings
from podqos.sim.cluster.fleet import Fleet
from podqos.sim.cluster.scheduling import Covered, Scheduler
from podqos.sim.engine.event_queue import CLUSTER, Action, EventPriority, EventQueue
from podqos.sim.node.node import MakeRest, SimNode
from podqos.sim.node.pods import DemandOf
from podqos.sim.scenario.replicas import Replica, tolerates_out_of_service, unreachable_seconds
from podqos.sim.scenario.scenario import Scenario, ScenarioWorkload

NOTICED_AFTER_US = 50 * SECOND_US
"""How long the node controller waits for a silent node (node-monitor-grace-period since 1.32)."""
_COLLECTED_EVERY_US = 20 * SECOND_US
_QUARANTINE_US = 40 * SECOND_US
# What controllers are told of while a pod is there.
_STATUS_CHANGES = frozenset({Kind.STARTED, Kind.EXITED, Kind.RESTARTED, Kind.OOM_KILLED, Kind.READINESS_CHANGED})

DELETED = "Deleted"
"""Why a pod ended that was removed because its workload, or its controller, no longer wants it."""
NODE_LOST = "NodeLost"
PREEMPTED = "Preempted"
DRAINED = "Drained"
"""Why a pod ended that was evicted through the API."""


class PodEnd(Struct, frozen=True, gc=False):
    """A pod that no longer runs, and that the cluster has forgotten."""

    pod: Pod
    replica: Replica
    node: str | None
    """Where it ran; None if it was pending."""
    why: str
    """Deleted, NodeLost, Preempted, Drained, Evicted, Rejected, Preempting, Succeeded, Failed."""
    record: PodRecord | None = None
    """What its kubelet last knew of it: exit codes and restarts of its containers."""


class Controller:
    """What keeps the pods of one workload; by itself it does nothing.

    It is called when its workload arrives, when the status of one of its pods changes, when a pod has ended and when a
    node joins. It acts through the control plane: it creates and removes pods, and plans what it does later.
    """

    watches_status = False
    """Whether it is called when the status of a pod changes."""
    waits_for_objects = False
    """Whether a deleted pod counts until its object is gone, which on a lost node nobody confirms."""

    def __init__(self, cluster: ControlPlane, index: int, workload: ScenarioWorkload) -> None:
        """``index`` is the place of the workload in the scenario."""
        self._cluster = cluster
        self._index = index
        self.workload = workload

    @property
    def name(self) -> str:
        """Its namespace and name."""
        return f"{self.workload.namespace}/{self.workload.name}"

    def begin(self, now_us: int) -> None:
        """Let the workload arrive: create its first pods."""

    def first_pods(self) -> Iterator[Pod]:
        """Yield the first pods if the scheduler places them."""
        return iter(())

    def changed(self, pod: Pod, now_us: int) -> None:
        """Take note that containers of a pod have started, exited or restarted, or that it is ready."""

    def deleted(self, end: PodEnd, now_us: int) -> None:
        """Take note that someone else has deleted a pod, which still stops."""

    def ended(self, end: PodEnd, now_us: int) -> None:
        """Take note that a pod no longer runs."""

    def node_joined(self, name: str, now_us: int) -> None:
        """Take note that a node has joined, for the first time or again."""

    def node_removed(self, name: str, now_us: int) -> None:
        """Take note that a node was removed for good; another may get its name."""


class ControlPlane:
    """The pods and nodes of a cluster, and what is decided above the nodes."""

    def __init__(
        self,
        scenario: Scenario,
        queue: EventQueue,
        is_watched: Callable[[str], bool],
        rest: MakeRest | None,
    ) -> None:
        self.scenario = scenario
        self.queue = queue
        self.entries: list[Entry] = []
        self.pods: dict[str, tuple[Pod, str | None]] = {}
        """By uid: the pods that are there, and their nodes."""
        self.controllers: dict[int, Controller] = {}
        """By workload (``id``): what keeps its pods."""
        self._watching: frozenset[int] = frozenset()
        """The workloads whose controllers are called when the status of a pod changes."""
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
        self._later = 0
        """How many pods were created after the start."""
        self._scheduler: Scheduler | None = None
        self._conditions: dict[str, set[str]] = {}
        self._reported: dict[str, tuple[str, ...]] = {}
        self._cordoned: set[str] = set()
        self._pending: set[str] = set()
        self._is_placing = False
        self.unreachable_us: dict[str, int] = {}
        """By name of a lost node: when the control plane notices it."""
        self._given_up_us: dict[str, int] = {}
        """By uid: when a pod on a lost node is given up, unless the node joins again before."""
        self.fleet = Fleet(scenario, self, is_watched, rest)

    def plan(self, time_us: int, action: Action) -> None:
        """Plan an event that concerns no particular node."""
        self.queue.plan(time_us, CLUSTER, EventPriority.LIFE, action)

    def write(self, entry: Entry) -> None:
        """Write an entry into the journal."""
        self.entries.append(entry)
        self.heard(entry)
        if self._watching and entry.kind in _STATUS_CHANGES and entry.pod is not None:
            self._tell(self.uid_of(entry.pod))

    def heard(self, entry: Entry) -> None:
        """Take note of an entry about a pod or a node."""

    def uid_of(self, key: str) -> str:
        """Return the uid of a pod by its namespace and name; of several one after the other, that of the last."""
        return self._uids.get(key) or key.replace("/", "_", 1)

    def _tell(self, uid: str) -> None:
        """Let the controller of a pod know that its status has changed, if it wants to."""
        replica = self._replicas.get(uid)
        if replica is not None and id(replica.workload) in self._watching:
            self.plan(self.queue.now_us, partial(self.tell, uid))

    def tell(self, uid: str, now_us: int) -> None:
        """Tell the controller of a pod that its status has changed, if it wants to know."""
        replica = self._replicas.get(uid)
        if replica is not None and id(replica.workload) in self._watching:
            self.keeper_of(uid).changed(self.pods[uid][0], now_us)

    def keeper_of(self, uid: str) -> Controller:
        """Return the controller of a pod."""
        return self.controllers[id(self._replicas[uid].workload)]

    def note(self, kind: Kind, pod: Pod, node: str | None, by: By, because: Because | None = None) -> None:
        """Write a journal entry about a pod."""
        entry = Entry(self.queue.now_us, node or "", kind, pod.key, None, by, because)
        self.entries.append(entry)
        self.heard(entry)

    def announce(self, kind: Kind, by: By, because: Because) -> None:
        """Write a journal entry about a whole workload."""
        self.entries.append(Entry(self.queue.now_us, "", kind, None, None, by, because))

    def watch(self, workload: ScenarioWorkload) -> None:
        """Call the controller of a workload from now on when the status of a pod changes."""
        self._watching |= {id(workload)}

    # ---- pods come and go ----------------------------------------------------------------------------------------

    def next_order(self) -> tuple[int, int]:
        """Return the place of the next pod in the order of creation."""
        self._later += 1
        return len(self.scenario.workloads), self._later

    def create(self, pod: Pod, replica: Replica, place: str | None = None) -> None:
        """Create a pod: the scheduler places it, unless it is bound to a node."""
        if place is None:
            self.know(pod, None, replica)
            self._the_scheduler().wait(pod)
            self._place_soon()
        else:
            self.know(pod, place, replica)
            if self._scheduler is not None:
                self._scheduler.bound(pod, place)
                if any(view.likeness.depends_on_pods for view in self._scheduler.waiting.values()):
                    self._place_soon()
            self._let_know(self.fleet.get(place), pod)

    def know(self, pod: Pod, name: str | None, replica: Replica) -> None:
        """Remember a pod that is there."""
        self._replicas[pod.metadata.uid] = replica
        self.pods[pod.metadata.uid] = pod, name
        if pod.metadata.uid != self.uid_of(pod.key):
            self._uids[pod.key] = pod.metadata.uid

    def in_order(self) -> list[tuple[str, Replica]]:
        """Return the pods in the order of creation, by uid."""
        return sorted(self._replicas.items(), key=lambda item: item[1].order)

    def expected_pods(self) -> Iterable[Pod]:
        """Return the pods that should run."""
        there = (pod for uid, (pod, _) in self.pods.items() if uid not in self._replaced and uid not in self._awaited)
        return [*there, *self._awaited.values()]

    def healthy_pods(self) -> Iterator[Pod]:
        """Yield the pods whose containers all run and that are not being removed."""
        for uid, (pod, name) in self.pods.items():
            node = None if name is None or uid in self._why else self.fleet.present.get(name)
            record = None if node is None else node.state.pods.get(uid)
            if record is not None and record.is_ready:
                yield pod

    def is_deleted(self, pod: Pod) -> bool:
        """Whether a pod that is still there has been deleted."""
        return pod.metadata.uid in self._why

    def _let_know(self, node: SimNode | None, pod: Pod) -> None:
        """Tell a node of a pod bound to it; on a lost node the pod never starts."""
        if node is not None:
            node.report(PodBound(pod))
        else:
            _, name = self.pods[pod.metadata.uid]
            self.note(Kind.PENDING, pod, name, By.CONTROLLER, NoPlace(bound_to=name or ""))
            self._plan_loss(pod.metadata.uid, pod, self.queue.now_us + NOTICED_AFTER_US)

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
        self._given_up_us.pop(uid, None)
        self._replaced.discard(uid)
        self._pending.discard(uid)
        if self._scheduler is not None:
            self._scheduler.left(pod)
            self._place_soon()
        return self._replicas.pop(uid)

    def ended(self, pod: Pod, why: str) -> None:
        """Forget a pod that no longer runs, and tell its controller."""
        uid = pod.metadata.uid
        _, node = self.pods[uid]
        record = self.record_of(uid)
        replica = self._forget(pod)
        end = PodEnd(pod, replica, node, why, record)
        self.controllers[id(replica.workload)].ended(end, self.queue.now_us)

    def pods_of(self, workload: ScenarioWorkload) -> Iterator[tuple[Pod, str | None]]:
        """Yield the pods of a workload and their nodes, in the order of creation."""
        return (self.pods[uid] for uid, replica in self.in_order() if replica.workload is workload)

    def answers(self, pod: str) -> bool:
        """Whether a pod, by its key, answers requests."""
        replica = self._replicas.get(self.uid_of(pod))
        return replica is not None and replica.workload.service is not None

    def record_of(self, uid: str) -> PodRecord | None:
        """Return what the kubelet knows of a pod; None before it has heard of it."""
        _, name = self.pods[uid]
        node = None if name is None else self.fleet.present.get(name)
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
        if self._watching:
            self._tell(uid)

    def images_ready_us(self, name: str) -> dict[str, int]:
        """Return when a node has images, or will have them, also after it was lost."""
        return self._images_ready_us.setdefault(name, {})

    # ---- nodes come and go ---------------------------------------------------------------------------------------

    def api_node(self, name: str) -> Node:
        """Return a node as the API server has it."""
        settings = self.fleet.settings(name)
        spec = settings.spec
        return Node(
            ObjectMeta(name=name, labels={LABEL_HOSTNAME: name, **spec.labels}),
            NodeSpec((*spec.taints, *spec.config.register_with_taints), unschedulable=name in self._cordoned),
            NodeStatus(
                settings.allocatable.capacity,
                settings.allocatable.allocatable,
                declared_features=declared_by_default(self.scenario.profile),
            ),
        )

    def condition(self, node: SimNode, condition: NodeCondition, *, holds: bool) -> None:
        """Take a condition of a node, with its next status."""
        held = self._conditions.setdefault(node.name, set())
        (held.add if holds else held.discard)(condition.value)
        period_us = self.scenario.options.status_update_us
        if period_us is None:
            period_us = node.settings.status_update_us
        now_us = self.queue.now_us
        due_us = -(-now_us // period_us) * period_us if period_us else now_us
        self.queue.plan(due_us, CLUSTER, EventPriority.LIFE, partial(self._report, node.name))

    def _report(self, name: str, _: int) -> None:
        self._reported[name] = tuple(sorted(self._conditions.get(name, ())))
        if self._scheduler is not None:
            self._scheduler.report(name, self._reported[name])
            self._place_soon()

    def cordon(self, name: str, *, takes_pods: bool) -> None:
        """Keep the scheduler from placing pods on a node, or let it do so again."""
        if (name not in self._cordoned) == takes_pods:
            return
        kind = Kind.UNCORDONED if takes_pods else Kind.CORDONED
        self.write(Entry(self.queue.now_us, name, kind, None, None, By.USER))
        (self._cordoned.discard if takes_pods else self._cordoned.add)(name)
        if self._scheduler is not None:
            self._scheduler.cordon(name, takes_pods=takes_pods)
            self._place_soon()

    def join(self, name: str, now_us: int) -> None:
        """Let a node join; pods that are still bound to it start again, those to be removed are gone."""
        if name in self.fleet.present:
            return
        self.fleet.add(name)
        self.unreachable_us.pop(name, None)
        for uid, _ in self.bound_to(name):
            self._given_up_us.pop(uid, None)
        self._reported.pop(name, None)
        self._conditions.pop(name, None)
        if self._scheduler is not None:
            self._scheduler.add_node(name)
            self._place_soon()
        for uid, pod in self.bound_to(name):
            if uid in self._why:
                self.ended(pod, self._why[uid])
            else:
                self._let_know(self.fleet.get(name), pod)
        for controller in self.controllers.values():
            controller.node_joined(name, now_us)

    def bound_to(self, name: str) -> list[tuple[str, Pod]]:
        """Return the pods on a node that is present or lost, by uid, in the order of creation."""
        return [(uid, self.pods[uid][0]) for uid, _ in self.in_order() if self.pods[uid][1] == name]

    def lost(self, node: SimNode) -> None:
        """Drop a node that is lost; the control plane notices later, and deletes its pods after their toleration."""
        name = node.name
        self.fleet.drop(name)
        noticed_us = self.unreachable_us[name] = self.queue.now_us + NOTICED_AFTER_US
        self.plan(noticed_us, partial(self._notice, name))
        if self._watching:
            self.plan(noticed_us, partial(self._tell_all, name))
        for uid, pod in self.bound_to(name):
            self._plan_loss(uid, pod, noticed_us)

    def node_deleted(self, name: str, now_us: int) -> None:
        """Let the garbage collector delete the pods of a node whose object is deleted."""
        self.plan(_next_look_us(now_us) + _QUARANTINE_US, partial(self._collect, name))

    def out_of_service(self, name: str, now_us: int) -> None:
        """Delete the pods of a lost node that do not tolerate that; they are gone when they are collected."""
        noticed_us = self.unreachable_us.get(name)
        if noticed_us is None:
            return
        for uid, pod in self.bound_to(name):
            if not tolerates_out_of_service(pod.spec.tolerations):
                self._give_up(uid, pod, 0)
        self.plan(_next_look_us(max(now_us, noticed_us)), partial(self._collect, name))

    def _notice(self, name: str, _: int) -> None:
        if self._scheduler is not None and name not in self.fleet.present:
            self._scheduler.remove_node(name)

    def _tell_all(self, name: str, now_us: int) -> None:
        """Tell controllers that the pods of a lost node are no longer ready."""
        for uid, _ in self.bound_to(name):
            self.tell(uid, now_us)

    def _plan_loss(self, uid: str, pod: Pod, noticed_us: int) -> None:
        seconds = unreachable_seconds(pod.spec.tolerations)
        if seconds is not None:
            self._given_up_us[uid] = noticed_us + seconds * SECOND_US
            self.plan(self._given_up_us[uid], partial(self._not_tolerated, uid, pod))

    def _not_tolerated(self, uid: str, pod: Pod, now_us: int) -> None:
        if self._given_up_us.get(uid) == now_us:
            del self._given_up_us[uid]
            self._give_up(uid, pod, unreachable_seconds(pod.spec.tolerations) or 0)

    def _give_up(self, uid: str, pod: Pod, seconds: int) -> None:
        """Delete a pod on a lost node: its object stays, for which some controllers wait."""
        keeper = self.keeper_of(uid)
        if not keeper.waits_for_objects:
            self.ended(pod, NODE_LOST)
        elif uid not in self._why:
            name = self.pods[uid][1] or ""
            self._why[uid] = NODE_LOST
            self.note(Kind.TERMINATING, pod, name, By.CONTROLLER, NodeUnreachable(name, seconds))
            keeper.changed(pod, self.queue.now_us)

    def _collect(self, name: str, now_us: int) -> None:
        """Let nothing be left of the pods of a lost node, as the garbage collector does."""
        if self.unreachable_us.pop(name, None) is None:
            return  # it has joined again
        for _, pod in self.bound_to(name):
            self.ended(pod, NODE_LOST)
        for controller in self.controllers.values():
            controller.node_removed(name, now_us)

    # ---- the scheduler -------------------------------------------------------------------------------------------

    def _the_scheduler(self) -> Scheduler:
        if self._scheduler is None:
            fleet, scenario = self.fleet, self.scenario
            surroundings = PlacementSurroundings(
                tuple(map(self.api_node, fleet.names)),
                scenario.namespaces,
                tuple(replace(budget, status=None) for budget in scenario.budgets),
                scenario.profile,
                scenario.services,
            )
            self._scheduler = Scheduler(surroundings, self._covered, self.is_deleted)
            for name in fleet.names:
                if name not in fleet.present:
                    self._scheduler.remove_node(name)
                elif name in self._reported:
                    self._scheduler.report(name, self._reported[name])
            for _, pod, where in sorted(self._bound(), key=lambda each: each[0]):
                self._scheduler.bound(pod, where)
        return self._scheduler

    def _covered(self) -> Covered:
        """Return what disruption budgets are about."""
        return Covered([*self.expected_pods()], [*self.healthy_pods()])

    def _bound(self) -> Iterator[tuple[tuple[int, int], Pod, str]]:
        """Yield all pods that have a node, with their place in the order of creation."""
        for uid, replica in self.in_order():
            pod, name = self.pods[uid]
            if name is not None:
                yield replica.order, pod, name

    def _place_soon(self) -> None:
        if not self._is_placing:
            self._is_placing = True
            self.queue.plan(self.queue.now_us, CLUSTER, EventPriority.KUBELET, self._place)

    def _place(self, _: int) -> None:
        self._is_placing = False
        scheduler = self._the_scheduler()
        for pod, name, displaced in scheduler.place():
            if name is not None:
                self._pending.discard(pod.metadata.uid)
                self.note(Kind.PLACED, pod, name, By.SCHEDULER, PlacedOn())
                self.pods[pod.metadata.uid] = pod, name
                self._let_know(self.fleet.get(name), pod)
            for each in displaced:
                victim = each.pod
                priorities = victim.spec.priority or 0, pod.spec.priority or 0
                because = PreemptedFor(pod.key, *priorities, breaks_budget=each.breaks_budget)
                self.note(Kind.PREEMPTED, victim, scheduler.node_of(victim), By.SCHEDULER, because)
                self.remove(victim.metadata.uid, "Preempted")
        why: dict[tuple[int, bool], NoPlace] = {}
        for view in scheduler.waiting.values():
            uid = view.pod.metadata.uid
            if uid not in self._pending:
                self._pending.add(uid)
                # Pods of one shape wait for the same reasons.
                likeness = id(view.shape), bool(view.pod.spec.scheduling_gates)
                if likeness not in why:
                    why[likeness] = scheduler.no_place(view)
                self.note(Kind.PENDING, view.pod, None, By.SCHEDULER, why[likeness])


def is_over(workload: ScenarioWorkload, now_us: int) -> bool:
    """Whether a workload has been deleted."""
    return workload.deleted_us is not None and now_us >= workload.deleted_us


def _next_look_us(now_us: int) -> int:
    """Return when the garbage collector looks next, perhaps now."""
    return -(-now_us // _COLLECTED_EVERY_US) * _COLLECTED_EVERY_US
