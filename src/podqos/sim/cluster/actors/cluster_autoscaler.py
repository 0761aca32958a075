"""The cluster autoscaler of a simulated cluster: scans every 10 s, adds nodes that join later, and removes others.

``controllers.node_groups`` and ``controllers.unneeded_nodes`` decide; this module provides the cluster and carries it
out. The model: a node that was asked for joins after its group's provision time, ready at once; a node is gone as soon
as its pods are. The autoscaler starts with the scenario; pods that are there from the start are old.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import (
    Because,
    NodeGroupScaled,
    NodeNeeded,
    NodeOfGroup,
    NodeRemovedFrom,
    NodeUnneeded,
    NoNodeGroup,
)
from podqos.agent.shutdown import grace_seconds_of
from podqos.controllers.eviction_api import EvictionOutcome
from podqos.controllers.node_groups import EXPENDABLE_BELOW, VERY_NEW_US, GroupState, ScaleUp, scale_up, to_help
from podqos.controllers.unneeded_nodes import (
    CHECK_GONE_US,
    DELAY_AFTER_FAILURE_US,
    DELAY_AFTER_TAINT_US,
    EVICTION_RETRY_US,
    MOST_EVICTION_US,
    RECHECK_US,
    NodePod,
    Removable,
    ScaleDownQuestion,
    Stays,
    Unremovable,
    Verdicts,
    cropped,
    due,
    verdicts,
)
from podqos.controllers.what_if_placed import Trial
from podqos.model.node import LABEL_HOSTNAME
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US
from podqos.placement.node_state import SchedulerNode
from podqos.placement.pod_view import PodView
from podqos.placement.workloads import DAEMON_SET
from podqos.sim.cluster.actors.port import ActedCluster
from podqos.sim.cluster.controllers.controller import DRAINED, is_over
from podqos.sim.cluster.evictions import answer, budgets_of
from podqos.sim.engine.event_queue import CLUSTER, EventPriority
from podqos.sim.scenario.node_groups import AutoscaledGroup, ClusterAutoscaler, ScaleDownSettings
from podqos.sim.scenario.replicas import daemons

_LONG_AGO_US = -(1 << 50)
_OTHER = "upcoming"
"""The name of nodes that are tried out."""


class ClusterAutoscalerActor:
    """The cluster autoscaler."""

    def __init__(self, cluster: ActedCluster, autoscaler: ClusterAutoscaler) -> None:
        self._cluster = cluster
        self._settings = autoscaler
        self._groups = {group.name: _Group(cluster, group) for group in autoscaler.groups}
        self._group_of = {name: group for group in self._groups.values() for name in group.names}
        self._added_us = self._failed_us = self._deleted_us = _LONG_AGO_US
        self._unneeded: dict[str, int] = {}
        """By name of a node: since when it is unneeded."""
        self._rechecked_us: dict[str, int] = {}
        """By name of a node that could not be removed: when it is looked at again."""
        self._removing: dict[str, bool] = {}
        """By name of a node that is being removed: whether it has pods to be moved."""
        self._idle_kinds: dict[str, str] = {}
        """By uid of a pod on an idle node: the kind of its workload."""
        self._said: tuple[object, ...] = ()
        self._stays: dict[str, tuple[object, ...]] = {}
        """By name of a node: what was written last of why it stays."""
        cluster.queue.plan(0, CLUSTER, EventPriority.REST, self._scan)

    def _scan(self, now_us: int) -> None:
        """Look at the cluster (``RunOnce``)."""
        trial = self._trial()
        upcoming = [node for group in self._groups.values() for node in group.upcoming()]
        for node in upcoming:
            trial.add_node(node)
        waits = self._scale_up(trial, now_us)
        if self._settings.scale_down is not None:
            names = [name for name in self._candidates(trial) if self._rechecked_us.get(name, 0) <= now_us]
            asked = ScaleDownQuestion(
                tuple(names),
                tuple(node.name for node in upcoming),
                partial(self._pods_on, now_us),
                self._settings.scale_down.threshold,
                self._settings.scale_down.drain,
            )
            self._scale_down(self._settings.scale_down, verdicts(asked, trial), now_us, is_blocked=waits)
        self._cluster.queue.plan(now_us + self._settings.scan_us, CLUSTER, EventPriority.REST, self._scan)

    def _trial(self) -> Trial:
        """Return the cluster as it is, without pods that do not count."""
        cluster = self._cluster
        scheduler = cluster.control_plane.scheduler
        trial = Trial(scheduler.states.values(), cluster.scenario.profile).copy()
        for state in trial.nodes.values():
            for view in [view for view in state.pods.values() if view.priority < EXPENDABLE_BELOW]:
                state.remove(view)
        for view in scheduler.waiting.values():
            nominated = scheduler.nominated_node(view)
            if nominated is not None and nominated in trial.nodes:
                trial.nodes[nominated].add(view)
        return trial

    # ---- more nodes ----------------------------------------------------------------------------------------------

    def _scale_up(self, trial: Trial, now_us: int) -> bool:
        """Add nodes for pods that no node takes; return whether it waits for more such pods."""
        pods = to_help(self._unschedulable(), trial)
        pods = [view for view in pods if now_us - self._created_us(view) > self._settings.new_pod_delay_us]
        if not pods:
            self._said = ()
            return False
        if max(now_us - self._created_us(view) for view in pods) < VERY_NEW_US:
            return True
        states = [group.state() for group in self._groups.values()]
        found = scale_up(pods, states, trial, self._settings.expander)
        if found.option is None:
            self._say_no_help(pods, found)
            return False
        self._said = ()
        self._added_us = now_us
        group = self._groups[found.option.group]
        before = group.size
        names = group.ask_for(found.option.nodes)
        because = NodeGroupScaled(
            group=group.name,
            before=before,
            after=group.size,
            maximum=group.spec.maximum,
            pods=tuple(view.key for view in found.option.pods),
            expander=self._settings.expander.value,
            wasted_cpu_percent=round(found.option.wasted_cpu * 100),
            wasted_memory_percent=round(found.option.wasted_memory * 100),
            compared={option.group: round(option.waste * 50) for option in found.options},
            provision_seconds=group.spec.provision_us / SECOND_US,
        )
        self._write(Kind.SCALED, because)
        for name in names:
            self._cluster.plan(now_us + group.spec.provision_us, partial(self._join, name))
        return False

    def _unschedulable(self) -> Iterator[PodView]:
        """Yield the pods that the scheduler could not place; DaemonSets' pods are bound to nodes that exist."""
        scheduler = self._cluster.control_plane.scheduler
        for view in scheduler.waiting.values():
            if self._kind(view.pod.metadata.uid) != DAEMON_SET and scheduler.nominated_node(view) is None:
                yield view

    def _created_us(self, view: PodView) -> int:
        return self._cluster.control_plane.created_us.get(view.pod.metadata.uid, _LONG_AGO_US)

    def _say_no_help(self, pods: list[PodView], found: ScaleUp) -> None:
        """Write once why no group helps."""
        said = tuple(view.key for view in pods), found.refused
        if said != self._said:
            self._said = said
            refused = {name: why.value for name, why in found.refused}
            self._write(Kind.HELD, NoNodeGroup(tuple(view.key for view in pods), refused))

    def _join(self, name: str, _: int) -> None:
        group = self._group_of[name]
        group.joined(name)
        self._write(Kind.JOINED, NodeOfGroup(name, group.name))
        self._cluster.join(name)

    # ---- fewer nodes ---------------------------------------------------------------------------------------------

    def _scale_down(self, settings: ScaleDownSettings, found: Verdicts, now_us: int, *, is_blocked: bool) -> None:
        """Remember since when nodes are not needed, and remove those that have not been for long."""
        self._unneeded = {node.node: self._unneeded.get(node.node, now_us) for node in found.removable}
        for stays in found.stays:
            if stays.why is not Unremovable.NOT_UNDERUTILIZED:
                self._rechecked_us[stays.node] = now_us + RECHECK_US
            self._say_stays(stays)
        is_cooling_down = (
            is_blocked
            or self._added_us + settings.delay_after_add_us > now_us
            or self._failed_us + DELAY_AFTER_FAILURE_US > now_us
            or self._deleted_us + settings.delay_after_delete_us > now_us
        )
        if not is_cooling_down:
            self._remove(due(self._unneeded, found.removable, settings.unneeded_us, now_us), now_us)

    def _candidates(self, trial: Trial) -> list[str]:
        """Return the nodes whose group may shrink: empty ones first, then those that were unneeded before.

        Source: cluster-autoscaler processors/nodes (pre_filtering_processor.go) and processors/scaledowncandidates
        (emptycandidates, previouscandidates).
        """
        names = [
            name
            for name in trial.nodes
            if (group := self._group_of.get(name)) is not None and group.size > group.spec.minimum
        ]
        return sorted(names, key=lambda name: (self._is_used(trial.nodes[name]), name not in self._unneeded))

    def _is_used(self, state: SchedulerNode) -> bool:
        return any(self._kind(view.pod.metadata.uid) != DAEMON_SET for view in state.pods.values())

    def _pods_on(self, now_us: int, state: SchedulerNode) -> Iterator[NodePod]:
        for view in state.pods.values():
            uid = view.pod.metadata.uid
            allowed = [status.allowed for status in budgets_of(self._cluster, view.pod)]
            created_us = self._cluster.control_plane.created_us.get(uid) or _LONG_AGO_US
            yield NodePod(view, self._kind(uid), now_us - created_us, min(allowed, default=None))

    def _say_stays(self, stays: Stays) -> None:
        """Write once that a pod, or too little room elsewhere, keeps a little used node."""
        said = stays.why, stays.pod, stays.blocking
        if stays.why is Unremovable.NOT_UNDERUTILIZED or self._stays.get(stays.node) == said:
            return
        self._stays[stays.node] = said
        why = stays.why.value if stays.blocking is None else stays.blocking.value
        percent = round(stays.used.share * 100)
        self._write(Kind.HELD, NodeNeeded(stays.node, stays.used.resource, percent, why, stays.pod))

    def _remove(self, nodes: Iterable[Removable], now_us: int) -> None:
        drained_now = sum(self._removing.values())
        sizes = {group.name: group.size for group in self._groups.values()}
        allowed = []
        for node in nodes:
            group = self._group_of[node.node]
            if sizes[group.name] > group.spec.minimum:
                sizes[group.name] -= 1
                allowed.append(node)
        for node in cropped(allowed, len(self._removing) - drained_now, drained_now):
            self._deleted_us = now_us
            self._removing[node.node] = bool(node.moved)
            group = self._group_of[node.node]
            group.leaving(node.node)
            because = NodeUnneeded(
                node=node.node,
                group=group.name,
                before=group.size + 1,
                after=group.size,
                resource=node.used.resource,
                used_percent=round(node.used.share * 100),
                seconds=(now_us - self._unneeded.pop(node.node)) / SECOND_US,
                moved=tuple(view.key for view in node.moved),
            )
            self._write(Kind.SCALED, because)
            self._cluster.control_plane.removed(node.node)
            self._cluster.plan(now_us + DELAY_AFTER_TAINT_US, partial(self._drain, node, now_us))

    def _drain(self, node: Removable, began_us: int, now_us: int) -> None:
        """Evict the pods of a node, as their budgets allow; then remove the node (``drainNode``)."""
        cluster = self._cluster
        left = [(uid, pod) for uid, pod in cluster.pods_on(node.node) if self._kind(uid) != DAEMON_SET]
        blocked = False
        for uid, pod in left:
            if cluster.is_deleted(pod):
                continue
            if answer(cluster, uid, pod).outcome is EvictionOutcome.DELETED:
                cluster.note(Kind.DRAINED, pod, node.node, By.CONTROLLER, NodeRemovedFrom(node.node))
                cluster.remove(uid, DRAINED, self._grace_seconds(pod))
            else:
                blocked = True
        if not left:
            self._gone(node.node)
        elif blocked and now_us - began_us - DELAY_AFTER_TAINT_US >= MOST_EVICTION_US:
            self._give_up(node.node, now_us)
        else:
            # Refused evictions are tried again every 10 s; whether pods are gone is checked every 5 s.
            after_us = EVICTION_RETRY_US if blocked else CHECK_GONE_US
            cluster.plan(now_us + after_us, partial(self._drain, node, began_us))

    def _grace_seconds(self, pod: Pod) -> int:
        """Return how long an evicted pod has to stop (``evictPod``)."""
        down = self._settings.scale_down
        most = 0 if down is None else down.max_grace_us // SECOND_US
        return min(grace_seconds_of(pod), most) if most else grace_seconds_of(pod)

    def _gone(self, name: str) -> None:
        del self._removing[name]
        self._stays.pop(name, None)
        group = self._group_of[name]
        group.gone(name)
        self._write(Kind.REMOVED, NodeOfGroup(name, group.name))
        self._cluster.remove_node(name)

    def _give_up(self, name: str, now_us: int) -> None:
        """Keep a node whose pods could not be evicted in time."""
        del self._removing[name]
        self._failed_us = now_us
        self._group_of[name].kept(name)
        self._cluster.control_plane.kept(name)
        self._write(Kind.HELD, NodeNeeded(name, why="EvictionTimedOut"))

    def _kind(self, uid: str) -> str:
        """Return the kind of a pod's workload; idle nodes' pods are known to the fleet only."""
        if uid in self._cluster.pods:
            return self._cluster.replica_of(uid).workload.kind
        if uid not in self._idle_kinds:
            for pod, _, replica in self._cluster.fleet.idle_pods():
                self._idle_kinds[pod.metadata.uid] = replica.workload.kind
        return self._idle_kinds[uid]

    def _write(self, kind: Kind, because: Because) -> None:
        self._cluster.write(Entry(self._cluster.queue.now_us, "", kind, None, None, By.CONTROLLER, because))


class _Group:
    """The nodes of a group: those that are there, and those that may come."""

    def __init__(self, cluster: ActedCluster, spec: AutoscaledGroup) -> None:
        self._cluster = cluster
        self.spec = spec
        self.name = spec.name
        machines = next(machines for machines in cluster.scenario.nodes if machines.spec.name == spec.name)
        self.names = tuple(map(machines.name_of, range(machines.count)))
        present = machines.count if machines.present is None else machines.present
        self._present = list(self.names[:present])
        self._free = list(self.names[present:])
        self._asked: list[str] = []

    @property
    def size(self) -> int:
        """How many nodes there are, with those that have been asked for."""
        return len(self._present) + len(self._asked)

    def ask_for(self, count: int) -> list[str]:
        """Ask for more nodes; return their names."""
        names, self._free = self._free[:count], self._free[count:]
        self._asked += names
        return names

    def joined(self, name: str) -> None:
        """Take note that a node is there."""
        self._asked.remove(name)
        self._present.append(name)

    def leaving(self, name: str) -> None:
        """Take note that a node is being removed."""
        self._present.remove(name)

    def kept(self, name: str) -> None:
        """Take note that it is not."""
        self._present.append(name)

    def gone(self, name: str) -> None:
        """Take note that it is gone; another may have its name once all names have been used."""
        self._free.append(name)

    def upcoming(self) -> Iterator[SchedulerNode]:
        """Yield the nodes that have been asked for, as they will be."""
        return (self._node(f"{_OTHER}-{name}") for name in self._asked)

    def state(self) -> GroupState:
        """Return the group as it is."""
        maximum = min(self.spec.maximum, self.size + len(self._free))
        return GroupState(self.name, self.size, maximum, self._new, self.spec.priority)

    def _new(self, number: int) -> SchedulerNode:
        return self._node(f"{self.name}-new-{number}")

    def _node(self, name: str) -> SchedulerNode:
        """Return an empty node of the group with the pods of DaemonSets."""
        cluster = self._cluster
        template = cluster.control_plane.api_node(self.names[0])
        metadata = replace(template.metadata, name=name, labels={**template.labels, LABEL_HOSTNAME: name})
        node = replace(template, metadata=metadata)
        made = SchedulerNode(node, cluster.scenario.profile)
        now_us = cluster.queue.now_us
        for workload in cluster.scenario.workloads:
            if workload.kind == DAEMON_SET and workload.arrives_us <= now_us and not is_over(workload, now_us):
                for pod in daemons(workload, (node,), cluster.scenario.profile):
                    made.add(cluster.control_plane.scheduler.view_of(pod))
        return made
