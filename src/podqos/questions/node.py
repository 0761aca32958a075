"""A node's pods at one moment and what they use: from manifests and rows of usage, or as a kubelet measured it.

``rank``, ``forecast``, ``blast`` and the page ask about the same value. Usage that was not measured is assumed, and
reported as such; so is everything else about the node that nobody stated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from msgspec import Struct
from msgspec.structs import replace

from podqos.amounts import counted, mebibytes
from podqos.errors import InputError, InvalidArgument
from podqos.eviction.signals import Signal, observe
from podqos.manifest.problems import Problem, Severity
from podqos.model.assumption import Assumption
from podqos.model.node import LEAST_NODE_BYTES, Node
from podqos.model.pod import Pod
from podqos.model.policy import LimitRange
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY
from podqos.model.snapshot import NodeUsage, PodUsage, Snapshot
from podqos.model.stats import Summary
from podqos.naming import hint, naming, stated_with
from podqos.objects.assumptions import (
    IMPLIED_SETTINGS,
    KUBELET_SETTINGS,
    UNSLOWED_GROWTH,
    cluster_assumptions,
    kept_scores,
    node_hugepages,
    node_memory,
    nodes_called,
    stated_allocatable,
)
from podqos.objects.cluster_node import ClusterNode
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.implied_kubelet import KnownMemory, implied_kubelet
from podqos.objects.kubelet_node import DEFAULT_KUBELET, Kubelet, chosen_kubelet, judged_cgroups, rules_of
from podqos.objects.kubelet_settings import memory_allocatable
from podqos.objects.node_pods import chosen_node, node_pods, runs_any
from podqos.objects.objects import FoundWorkload, Objects
from podqos.objects.selection import Selection
from podqos.orders.exhaustion import SOFT, Exhaustion, exhaustion
from podqos.orders.memory import Headroom, headroom, memory_signals, pods_limit_bytes
from podqos.orders.pods import NodePod, names_by_workload, without_process
from podqos.orders.usage import (
    BeyondLimit,
    UsageRow,
    assumed_amounts,
    assumed_usage,
    from_summary,
    from_usage,
    is_unmeasured,
    node_of,
    strangers,
    swap_of,
    with_assumed,
)
from podqos.placement.workloads import POD
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion

USAGE = Assumption("usage", "the pods' requests", stated_with("usage"))
_SHOWN_PODS = 3
_SHOWN_NODES = 5
_BEYOND_LIMIT_FIX = "check the unit, and that the manifest is the one that runs"


class NoPods(InputError):
    """What was given holds no pods that run: they have ended, are refused, or there are none."""


class NodeState(Struct, frozen=True):
    """A node's pods at one moment, and what of that was assumed."""

    snapshot: Snapshot
    assumptions: tuple[Assumption, ...] = ()
    is_kubelets: bool = False
    """Whether a kubelet measured it: its memory figures are taken as they are."""
    neighbours: frozenset[str] = frozenset()
    """Pods that count but that an answer is not about, as ``namespace/name``."""
    kubelet: Kubelet = DEFAULT_KUBELET
    """The node's own where that is known."""
    is_of_cluster: bool = False
    """Whether it is a node of a cluster, whose memory is known: what is assumed may not fit, and is then said."""
    owners: Mapping[str, tuple[str, str]] = {}
    """By uid of a pod the workload it is of: its kind and ``namespace/name``. Empty where only pods are known."""
    allocatable_bytes: int | None = None
    """How much memory its Node object states as allocatable; None where there is no such object."""
    unmeasured: frozenset[str] = frozenset()
    """Pods whose usage is assumed, wholly or of some containers, as ``namespace/name``."""
    limit_ranges: Mapping[str, tuple[LimitRange, ...]] = {}
    """By namespace those that bound its pods."""
    profile: Profile = LATEST
    """The rules of a Kubernetes version."""

    def cgroups(self, version: CgroupVersion = CgroupVersion.V2) -> CgroupSettings:
        """Return the settings that the node's cgroups are planned by; raises where its kubelet does not start there."""
        node = self.snapshot.node
        return judged_cgroups(
            self.kubelet,
            memory_bytes=node.memory_bytes,
            swap_bytes=node.swap_bytes,
            cgroup_version=version,
            profile=self.profile,
        )

    @property
    def known_kubelet(self) -> Kubelet | None:
        """Its kubelet; None where nothing is known of that."""
        return None if self.kubelet is DEFAULT_KUBELET else self.kubelet

    @property
    def used_bytes(self) -> int:
        """What pods and system use."""
        return self.snapshot.node.system_bytes + self.snapshot.pods_working_set_bytes

    @property
    def available_bytes(self) -> int:
        """``memory.available`` as the kubelet counts it."""
        return self.snapshot.node.available_bytes(self.snapshot.pods_working_set_bytes, self.profile)

    @property
    def requestable_bytes(self) -> int:
        """How much memory pods may request: as the Node states it, else what the kubelet's settings leave."""
        if self.allocatable_bytes is not None:
            return self.allocatable_bytes
        capacities = {Signal.MEMORY: self.snapshot.node.memory_bytes}
        return memory_allocatable(self.kubelet.config, capacities).allocatable[MEMORY].value

    @property
    def resting_on(self) -> tuple[Assumption, ...]:
        """What an answer assumes if it also depends on the kubelet and the version."""
        kubelet = self.kubelet
        unstated = (IMPLIED_SETTINGS,) if kubelet.is_implied else () if kubelet.is_stated else (KUBELET_SETTINGS,)
        return (*rules_of(kubelet, self.profile), *self.assumptions, *unstated)

    @property
    def growing_on(self) -> tuple[Assumption, ...]:
        """The same of an answer about pods that grow."""
        unslowed = (UNSLOWED_GROWTH,) if self.kubelet.config.feature_gates.get("MemoryQoS") else ()
        return (*self.resting_on, *unslowed)

    @property
    def problem(self) -> str:
        """In words that pods use more than there is, which unless it was measured is assumed wrongly; else empty."""
        there, left = self.snapshot.node.memory_bytes, self.available_bytes
        if left >= 0 or self.is_kubelets:
            return ""
        return f"the pods use {mebibytes(there - left)}, but the node has {mebibytes(there)}"

    def check_fits(self) -> None:
        """Raise ``InputError`` where pods use more than there is."""
        if self.problem:
            raise InputError(self.problem, fix=hint("give the node's memory with " + naming("node_memory")))


def node_state(
    objects: Objects | NodeState,
    usage: Sequence[UsageRow] | None = None,
    *,
    node: str | None = None,
    node_memory_bytes: int | None = None,
    system_memory_bytes: int | None = None,
    kubelet: Kubelet | None = None,
    profile: Profile = LATEST,
    refuse_impossible: bool = False,
) -> NodeState:
    """Return the pods of manifests with what they use: the rows of usage, or what they request.

    ``node`` chooses where the pods of several nodes are among the objects; rows about pods of the others do not count.
    Memory is that of the Node of its name, else of the smallest, else 64Gi. ``system_memory_bytes`` is used outside all
    pods. The kubelet is the one whose settings stand among the objects, unless one is given. ``refuse_impossible``:
    usage above a limit is an error; otherwise it counts as the limit. A state is returned as it is.
    """
    if isinstance(objects, NodeState):
        return objects
    found = objects.latest(warn=False)
    name = chosen_node(objects, node)
    rows = usage
    if rows is not None and node is not None and runs_any(found, node):
        by_node = usage_by_node(found, rows)
        rows = [*by_node.get(node, ()), *by_node.get(None, ())]
    pods = node_pods(objects, named=[row.pod for row in rows or ()], node=node, profile=profile)
    nodes = nodes_called(name, objects.of(Node))
    memory_bytes, assumed = node_memory(node_memory_bytes, nodes)
    assumed += cluster_assumptions(objects)
    hugepages_bytes = 0 if node_memory_bytes is not None else node_hugepages(nodes, memory_bytes)
    machine = NodeUsage(memory_bytes, name=name, system_bytes=system_memory_bytes or 0, hugepages_bytes=hugepages_bytes)
    allocatable_bytes = None if node_memory_bytes is not None else stated_allocatable(nodes, memory_bytes)
    if rows is None:
        entries = tuple(_started(assumed_usage(pod.pod, idle=without_process(pod.pod))) for pod in pods)
        unknown = [pod.pod for pod in pods]
        assumed += (replace(USAGE, value=assumed_amounts(unknown)),)
    else:
        beyond: list[BeyondLimit] = []
        measured = from_usage(pods, rows, machine, beyond)
        for limit in beyond:
            what = f"{limit.row.pod} {limit.container} uses {limit.used}, above its limit of {limit.limit}"
            if refuse_impossible:
                raise InputError(what, where=limit.row.where, fix=_BEYOND_LIMIT_FIX)
            what = f"{what}; using the limit instead"
            objects.note(Problem(limit.row.where, 0, 0, Severity.WARNING, "memory", what, _BEYOND_LIMIT_FIX))
        unknown = [pod.pod for pod in measured.pods if is_unmeasured(pod, without_process(pod.pod))]
        entries = tuple(_started(with_assumed(pod, idle=without_process(pod.pod))) for pod in measured.pods)
        assumed += (*_assumed_usage_of(unknown), *_left_out(strangers(pods, rows)))
    known = KnownMemory(memory_bytes, hugepages_bytes, allocatable_bytes)
    state = NodeState(
        Snapshot(machine, entries),
        assumed,
        kubelet=chosen_kubelet(objects, kubelet) or implied_kubelet(known) or DEFAULT_KUBELET,
        allocatable_bytes=allocatable_bytes,
        unmeasured=frozenset(pod.key for pod in unknown),
        profile=profile,
    )
    return _of_pods(objects, pods, state)


def kubelet_state(
    objects: Objects,
    summary: Summary,
    *,
    node: str | None = None,
    node_memory_bytes: int | None = None,
    system_memory_bytes: int | None = None,
    kubelet: Kubelet | None = None,
    profile: Profile = LATEST,
    where: str = "",
) -> NodeState:
    """Return the pods of the objects with what a kubelet's /stats/summary says of them; ``where`` it was read."""
    machine = node_of(summary)
    if machine is None:
        if node_memory_bytes is None:
            where = where or f"statistics of {summary.node.node_name}"
            fix = hint("give it with " + naming("node_memory"))
            raise InputError("it lacks the node's memory", where=where, fix=fix)
        machine = NodeUsage(0, name=summary.node.node_name)
    if node_memory_bytes is not None:
        machine = replace(machine, memory_bytes=node_memory_bytes, pods_limit_bytes=None)
    if system_memory_bytes is not None:
        machine = replace(machine, system_bytes=system_memory_bytes)
    pods = node_pods(objects, node=node, profile=profile)
    measured = from_summary([entry.pod for entry in pods], summary, machine)
    nodes = [] if node_memory_bytes is not None else [each for each in objects.of(Node) if each.name == machine.name]
    allocatable_bytes = stated_allocatable(nodes, machine.memory_bytes)
    hugepages_bytes = node_hugepages(nodes, machine.memory_bytes)
    known = KnownMemory(machine.memory_bytes, hugepages_bytes, allocatable_bytes, machine.pods_limit_bytes)
    state = NodeState(
        replace(measured, pods=tuple(map(_started, measured.pods))),
        is_kubelets=True,
        kubelet=kubelet or implied_kubelet(known) or DEFAULT_KUBELET,
        allocatable_bytes=allocatable_bytes,
        profile=profile,
    )
    return _of_pods(objects, pods, state)


def cluster_state(
    cluster: ClusterSnapshot,
    node: str | None = None,
    *,
    node_memory_bytes: int | None = None,
    system_memory_bytes: int | None = None,
    kubelet: Kubelet | None = None,
    profile: Profile | None = None,
    selection: Selection | None = None,
) -> NodeState:
    """Return a node of a cluster with its pods; ``node`` may be left out where there is only one.

    Usage is what its kubelet measured, else what metrics.k8s.io says, else what pods request. An answer is about the
    pods of ``selection``.
    """
    return cluster_node_state(
        cluster.at(node_named(cluster, node), selection),
        node_memory_bytes=node_memory_bytes,
        system_memory_bytes=system_memory_bytes,
        kubelet=kubelet,
        profile=profile or cluster.profile,
    )


def cluster_node_state(
    found: ClusterNode,
    *,
    node_memory_bytes: int | None = None,
    system_memory_bytes: int | None = None,
    kubelet: Kubelet | None = None,
    profile: Profile = LATEST,
) -> NodeState:
    """Return what is known of one node of a cluster as its state."""
    status, summary, objects = found.node.status, found.summary, found.objects
    memory_bytes = node_memory_bytes
    if memory_bytes is None and MEMORY in status.capacity:
        memory_bytes = status.capacity[MEMORY].value
    if summary is not None:
        state = kubelet_state(
            objects,
            summary,
            node=found.node.name,
            node_memory_bytes=memory_bytes if node_of(summary) is None else node_memory_bytes,
            system_memory_bytes=system_memory_bytes,
            profile=profile,
        )
    else:
        metrics = found.pod_metrics
        pods = dict.fromkeys(workload.workload.pod.key for workload in objects.workloads)
        containers = [(key, each) for key in pods if key in metrics for each in metrics[key].containers]
        if system_memory_bytes is None and found.node_metrics is not None and MEMORY in found.node_metrics.usage:
            used = sum(each.usage[MEMORY].value for _, each in containers if MEMORY in each.usage)
            system_memory_bytes = max(0, found.node_metrics.usage[MEMORY].value - used)
        rows = [UsageRow(key, each.name, each.usage.get(MEMORY), is_listed=True) for key, each in containers]
        state = node_state(
            objects,
            rows if metrics else None,
            node=found.node.name,
            node_memory_bytes=memory_bytes,
            system_memory_bytes=system_memory_bytes,
            profile=profile,
        )
    machine = state.snapshot.node
    known = KnownMemory(machine.memory_bytes, pods_limit_bytes=machine.pods_limit_bytes)
    if node_memory_bytes is None and MEMORY in status.allocatable:
        hugepages_bytes = node_hugepages([found.node], machine.memory_bytes)
        known = replace(known, hugepages_bytes=hugepages_bytes, allocatable_bytes=status.allocatable[MEMORY].value)
    return replace(
        state,
        assumptions=tuple(dict.fromkeys((*state.assumptions, *found.assumptions))),
        kubelet=kubelet or found.kubelet or implied_kubelet(known) or DEFAULT_KUBELET,
        is_of_cluster=True,
        allocatable_bytes=known.allocatable_bytes,
    )


def usage_by_node(workloads: Iterable[FoundWorkload], rows: Iterable[UsageRow]) -> dict[str | None, list[UsageRow]]:
    """Return the rows about the pods of each node; those about none of the workloads under None.

    A row that names a workload, or may name a pod of several namespaces, can be about several nodes.
    """
    called: dict[str, list[str]] = {}
    makers = set()
    for found in workloads:
        pod = found.workload.pod
        for name in (pod.key, pod.key.partition("/")[2]):
            called.setdefault(name, []).append(pod.spec.node_name)
        if found.workload.kind != POD:
            makers.add(pod.key)
    rows = list(rows)
    for workload, instances in names_by_workload(makers, {row.pod for row in rows} - {*called}).items():
        for name in instances:
            for each in (name, name.partition("/")[2]):
                called.setdefault(each, []).extend(called[workload])
    found_rows: dict[str | None, list[UsageRow]] = {}
    for row in rows:
        for node in dict.fromkeys(called.get(row.pod, (None,))):
            found_rows.setdefault(node, []).append(row)
    return found_rows


def _started(usage: PodUsage) -> PodUsage:
    """Return a pod whose containers that were not measured have no process where its node says so."""
    idle = without_process(usage.pod)
    if not idle:
        return usage
    containers = (
        replace(container, processes=0) if container.name in idle and not container.is_measured else container
        for container in usage.containers
    )
    return replace(usage, containers=tuple(containers))


def _of_pods(objects: Objects, pods: Sequence[NodePod], state: NodeState) -> NodeState:
    """Return a state that knows whose pods it has, which of them an answer is not about, and what bounds them."""
    if not pods and objects.errors:
        raise NoPods("no pods left to rank", fix="fix the errors above")
    if not pods:
        raise NoPods("no pods to rank", fix="give manifests with pods, or the kubelet's /pods")
    memory_bytes = state.snapshot.node.memory_bytes
    if memory_bytes < LEAST_NODE_BYTES:
        fix = hint("for example " + naming("node_memory", "64Gi"))
        raise InputError(f"{memory_bytes} bytes is too little memory for a node", fix=fix)
    keys = {pod.pod.key for pod in pods}
    # What comes from an API server has the resources of its spec, whatever a resize has done to it.
    stored = (found.workload.pod for found in objects.latest(warn=False) if found.workload.is_stored)
    return replace(
        state,
        neighbours=frozenset(pod.pod.key for pod in pods if not pod.is_chosen),
        owners={pod.pod.metadata.uid: (pod.kind, pod.workload) for pod in pods},
        limit_ranges=dict(_limit_ranges(objects)),
        assumptions=(*state.assumptions, *kept_scores(pod for pod in stored if pod.key in keys)),
    )


def _limit_ranges(objects: Objects) -> Iterator[tuple[str, tuple[LimitRange, ...]]]:
    """Yield the LimitRanges that the workloads' namespaces have, as stored."""
    for found in objects.latest(warn=False) if objects.of(LimitRange) else ():
        namespace = found.workload.metadata.namespace
        yield namespace, objects.namespace_policies(found.source).of(namespace).stored_limit_ranges()


def _assumed_usage_of(pods: Sequence[Pod]) -> Iterator[Assumption]:
    """Yield what is assumed of pods that no row is about."""
    if pods:
        more = f" and {len(pods) - _SHOWN_PODS} more" if len(pods) > _SHOWN_PODS else ""
        names = ", ".join(pod.key for pod in pods[:_SHOWN_PODS])
        yield Assumption(f"usage of {names}{more}", assumed_amounts(pods, "their requests"), stated_with("usage"))


def _left_out(rows: int) -> Iterator[Assumption]:
    """Yield what is assumed of rows that are about no pod of the manifests."""
    if rows:
        what = f"{counted(rows, 'row')} of {stated_with('usage')} about other pods"
        how = f"{stated_with('files', 'their manifests')}, or {stated_with('system_memory')}"
        yield Assumption(what, "left out", how)


# ---- what its kubelet watches ----------------------------------------------------------------------------------------


class WatchedMemory(Struct, frozen=True):
    """The memory of a node as its kubelet watches it, the same for every command."""

    settings: CgroupSettings
    exhaustion: Exhaustion
    available: Mapping[Signal, int]
    """By each signal of memory."""

    @property
    def limit_bytes(self) -> int | None:
        """What all pods may use together; None where that is not enforced."""
        return pods_limit_bytes(self.settings)

    @property
    def headroom(self) -> Headroom | None:
        """What is left until the kubelet evicts; None where it has no threshold of memory."""
        return headroom(self.available, self.exhaustion.thresholds)

    @property
    def headroom_bytes(self) -> int:
        """The same as an amount: without a threshold all that is available."""
        found = self.headroom
        return self.available[Signal.MEMORY] if found is None else found.headroom_bytes

    @property
    def threshold_bytes(self) -> int:
        """The highest hard threshold of ``memory.available``; 0 where there is none."""
        watched = self.exhaustion.thresholds
        return max(
            (threshold.amount or 0 for threshold in watched if threshold.is_hard and threshold.signal is Signal.MEMORY),
            default=0,
        )


def watched_memory(state: NodeState, cgroup_version: CgroupVersion = CgroupVersion.V2) -> WatchedMemory:
    """Return what the kubelet of a node watches; what it leaves to pods counts only where its settings are known."""
    settings = state.cgroups(cgroup_version)
    capacities = {Signal.MEMORY: state.snapshot.node.memory_bytes}
    divided = memory_allocatable(state.kubelet.config, capacities) if state.kubelet.is_stated else None
    return WatchedMemory(
        settings,
        exhaustion(state.kubelet.config, capacities, allocatable=divided, profile=state.profile),
        memory_signals(state.snapshot, pods_limit_bytes(settings), state.profile),
    )


def headroom_sentence(headroom: Headroom | None) -> str:
    """Return what is left until the kubelet evicts, as a sentence."""
    if headroom is None:
        return "No memory threshold is set: the kubelet never evicts for memory."
    left, by = headroom.headroom_bytes, bound_by(headroom)
    if left >= 0:
        return f"{mebibytes(left)} headroom before eviction ({by})."
    return f"{mebibytes(-left)} past the eviction threshold ({by})."


def bound_by(headroom: Headroom) -> str:
    """Return the threshold that decides."""
    grace = f" for {headroom.grace_seconds:g} s" if headroom.type == SOFT else ""
    return f"{headroom.signal} < {mebibytes(headroom.threshold_bytes)}{grace}"


def briefly(headroom: Headroom | None) -> str:
    """Return what is unusual about the threshold that decides; empty where it is the hard one of memory.available."""
    if headroom is None:
        return ""
    if headroom.type == SOFT:
        return "soft"
    return "allocatable" if headroom.signal is Signal.ALLOCATABLE_MEMORY else ""


# ---- a node of a cluster ---------------------------------------------------------------------------------------------


class NodeCapacities(Struct, frozen=True):
    """What a node of a cluster has, and its kubelet."""

    kubelet: Kubelet | None
    memory_bytes: int | None
    cpu: Quantity | None
    capacities: dict[Signal, int]
    swap_bytes: int | None
    """None where its kubelet does not tell."""
    assumptions: tuple[Assumption, ...] = ()
    """What is not known of them."""


def node_capacities(cluster: ClusterSnapshot, node: str) -> NodeCapacities:
    """Return what a node of a cluster has, as far as node and kubelet tell."""
    name = node_named(cluster, node)
    capacity, summary = cluster.nodes[name].status.capacity, cluster.summary(name)
    observed = {} if summary is None else observe(summary).signals
    return NodeCapacities(
        cluster.kubelet(name),
        capacity[MEMORY].value if MEMORY in capacity else None,
        capacity.get(CPU),
        {signal: observation.capacity for signal, observation in observed.items()},
        None if summary is None else swap_of(summary),
        (*cluster.assumptions, *((KUBELET_SETTINGS,) if cluster.kubelet(name) is None else ())),
    )


def node_named(cluster: ClusterSnapshot, node: str | None) -> str:
    """Return the name of a node of a cluster, which may be left out where there is only one."""
    names = sorted(cluster.nodes)
    if node is None and len(names) == 1:
        return names[0]
    if node is None:
        fix = f"name one: {', '.join(names[:_SHOWN_NODES])}{', …' if len(names) > _SHOWN_NODES else ''}"
        raise InvalidArgument(f"the cluster has {counted(len(names), 'node')}", fix=fix)
    if node not in cluster.nodes:
        close = get_close_matches(node, names, 1)
        fix = f"did you mean {close[0]}?" if close else f"one of: {', '.join(names[:_SHOWN_NODES])}"
        raise InvalidArgument(f"no such node: {node}", fix=fix)
    return node
