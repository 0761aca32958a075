"""The pods of a node at one moment, and what they use: from manifests and rows of usage, or as a kubelet measured it.

Unmeasured usage is assumed, and reported as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.answers.node_options import NodePodsOptions
from podqos.errors import InputError
from podqos.manifest.problems import Problem, Severity
from podqos.model.assumption import Assumption
from podqos.model.node import LEAST_NODE_BYTES, Node
from podqos.model.pod import Pod
from podqos.model.policy import LimitRange
from podqos.model.profile import Profile
from podqos.model.resources import MEMORY
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
from podqos.objects.implied_kubelet import KnownMemory, implied_kubelet
from podqos.objects.kubelet_node import Kubelet, chosen_kubelet, judged_cgroups, rules_of
from podqos.objects.node_pods import chosen_node, node_pods, runs_any
from podqos.objects.objects import FoundWorkload, Objects
from podqos.placement.workloads import POD
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
from podqos.survival.node.assumed_usage import assumed_amounts, assumed_usage, is_unmeasured, with_assumed
from podqos.survival.node.pods import NodePod, names_by_workload, without_process
from podqos.survival.node.snapshots import from_summary, node_of
from podqos.survival.node.usage import BeyondLimit, from_usage, strangers
from podqos.survival.node.usage_file import UsageRow
from podqos.wording import counted, listed, mebibytes

USAGE = Assumption("usage", "the pods' requests", stated_with("usage"))
_SHOWN_PODS = 3


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
    kubelet: Kubelet | None = None
    """The node's own, where that is known."""
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

    def cgroups(self, kubelet: Kubelet, version: CgroupVersion, profile: Profile) -> CgroupSettings:
        """Return the settings that the node's cgroups are planned by, for kill orders."""
        node = self.snapshot.node
        return judged_cgroups(
            kubelet,
            memory_bytes=node.memory_bytes,
            swap_bytes=node.swap_bytes,
            cgroup_version=version,
            profile=profile,
        )

    def resting_on(self, kubelet: Kubelet, profile: Profile) -> tuple[Assumption, ...]:
        """Return what an answer assumes if it also depends on the kubelet and the version."""
        unstated = (IMPLIED_SETTINGS,) if kubelet.is_implied else () if kubelet.is_stated else (KUBELET_SETTINGS,)
        return (*rules_of(kubelet, profile), *self.assumptions, *unstated)

    def growing_on(self, kubelet: Kubelet, profile: Profile) -> tuple[Assumption, ...]:
        """Return the same of an answer about pods that grow."""
        unslowed = (UNSLOWED_GROWTH,) if kubelet.config.feature_gates.get("MemoryQoS") else ()
        return (*self.resting_on(kubelet, profile), *unslowed)


def node_state(objects: Objects | NodeState, options: NodePodsOptions) -> NodeState:
    """Return the pods of manifests with what they use: the rows of usage, or what they request.

    Where the pods of several nodes are among the objects, rows about pods of the other nodes do not count. The kubelet
    is the one whose settings stand among the objects, unless one is given. A state is returned as it is, with another
    kubelet if one is given; nothing else that it has already can be given beside it.
    """
    if isinstance(objects, NodeState):
        _refuse_beside_state(options)
        return objects if options.kubelet is None else replace(objects, kubelet=options.kubelet)
    found = objects.latest(warn=False)
    node, node_memory_bytes, profile = options.node, options.node_memory_bytes, options.profile
    name = chosen_node(objects, node)
    rows = options.usage
    if rows is not None and node is not None and runs_any(found, node):
        by_node = usage_by_node(found, rows)
        rows = [*by_node.get(node, ()), *by_node.get(None, ())]
    pods = node_pods(objects, named=[row.pod for row in rows or ()], node=node, profile=profile)
    nodes = nodes_called(name, objects.of(Node))
    memory_bytes, assumed = node_memory(node_memory_bytes, nodes)
    assumed += cluster_assumptions(objects)
    hugepages_bytes = 0 if node_memory_bytes is not None else node_hugepages(nodes, memory_bytes)
    machine = NodeUsage(
        memory_bytes, name=name, system_bytes=options.system_memory_bytes or 0, hugepages_bytes=hugepages_bytes
    )
    allocatable_bytes = None if node_memory_bytes is not None else stated_allocatable(nodes, memory_bytes)
    known = KnownMemory(memory_bytes, hugepages_bytes, allocatable_bytes)
    kubelet = chosen_kubelet(objects, options.kubelet) or implied_kubelet(known)
    if rows is None:
        snapshot = Snapshot(machine, tuple(_assumed(pod.pod) for pod in pods))
        usage = replace(USAGE, value=assumed_amounts(pod.pod for pod in pods))
        state = NodeState(snapshot, (*assumed, usage), kubelet=kubelet, allocatable_bytes=allocatable_bytes)
        return _of_pods(objects, pods, replace(state, unmeasured=frozenset(pod.pod.key for pod in pods)))
    beyond: list[BeyondLimit] = []
    measured = from_usage(pods, rows, machine, beyond)
    if options.refuse_impossible:
        refuse_beyond(beyond)
    objects.note(*map(_beyond_limit, beyond))
    unknown = [pod.pod for pod in measured.pods if is_unmeasured(pod, without_process(pod.pod))]
    snapshot = Snapshot(machine, tuple(_completed(pod) for pod in measured.pods))
    assumptions = (
        *assumed,
        *_about_pods("usage", [pod.key for pod in unknown], assumed_amounts(unknown, "their requests")),
        *_left_out(strangers(pods, rows)),
    )
    state = NodeState(snapshot, assumptions, kubelet=kubelet, allocatable_bytes=allocatable_bytes)
    return _of_pods(objects, pods, replace(state, unmeasured=frozenset(pod.key for pod in unknown)))


_OF_STATE = ("usage", "node", "node_memory_bytes", "system_memory_bytes", "refuse_impossible")


def _refuse_beside_state(options: NodePodsOptions) -> None:
    """Raise ``InputError`` where something is given that a state has its own of."""
    given = {name: getattr(options, name) for name in _OF_STATE}
    names = [name for name, value in given.items() if value is not None and value is not False]
    if names:
        what = f"{listed(names)} cannot be given together with a node's state, which has its own"
        raise InputError(what, fix="give them to node_state with the objects that the state is made from")


def kubelet_state(objects: Objects, summary: Summary, options: NodePodsOptions, where: str = "") -> NodeState:
    """Return the pods of the objects with what a kubelet's /stats/summary says of them; ``where`` it was read."""
    node_memory_bytes = options.node_memory_bytes
    machine = node_of(summary)
    if machine is None:
        if node_memory_bytes is None:
            where = where or f"statistics of {summary.node.node_name}"
            raise InputError(
                "it lacks the node's memory", where=where, fix=hint("give it with " + naming("node_memory"))
            )
        machine = NodeUsage(0, name=summary.node.node_name)
    if node_memory_bytes is not None:
        machine = replace(machine, memory_bytes=node_memory_bytes, pods_limit_bytes=None)
    if options.system_memory_bytes is not None:
        machine = replace(machine, system_bytes=options.system_memory_bytes)
    pods = node_pods(objects, node=options.node, profile=options.profile)
    measured = from_summary([entry.pod for entry in pods], summary, machine)
    snapshot = replace(measured, pods=tuple(map(_started, measured.pods)))
    nodes = [] if node_memory_bytes is not None else [node for node in objects.of(Node) if node.name == machine.name]
    allocatable_bytes = stated_allocatable(nodes, machine.memory_bytes)
    hugepages_bytes = node_hugepages(nodes, machine.memory_bytes)
    known = KnownMemory(machine.memory_bytes, hugepages_bytes, allocatable_bytes, machine.pods_limit_bytes)
    kubelet = options.kubelet or implied_kubelet(known)
    state = NodeState(snapshot, is_kubelets=True, kubelet=kubelet, allocatable_bytes=allocatable_bytes)
    return _of_pods(objects, pods, state)


def cluster_node_state(found: ClusterNode, options: NodePodsOptions) -> NodeState:
    """Return a node of a cluster with its pods.

    Usage is what its kubelet measured, else what metrics.k8s.io says, else what pods request.
    """
    status, summary, objects = found.node.status, found.summary, found.objects
    memory_bytes = options.node_memory_bytes
    if memory_bytes is None and MEMORY in status.capacity:
        memory_bytes = status.capacity[MEMORY].value
    about = replace(options, node=found.node.name, node_memory_bytes=memory_bytes)
    if summary is not None:
        if node_of(summary) is not None:
            about = replace(about, node_memory_bytes=options.node_memory_bytes)
        state = kubelet_state(objects, summary, about)
    else:
        rows = [
            UsageRow(key, container.name, container.usage.get(MEMORY), is_listed=True)
            for key in dict.fromkeys(workload.workload.pod.key for workload in objects.workloads)
            if key in found.pod_metrics
            for container in found.pod_metrics[key].containers
        ]
        if options.system_memory_bytes is None:
            about = replace(about, system_memory_bytes=_system_bytes(found))
        state = node_state(objects, replace(about, usage=rows if found.pod_metrics else None))
    machine = state.snapshot.node
    known = KnownMemory(machine.memory_bytes, pods_limit_bytes=machine.pods_limit_bytes)
    if options.node_memory_bytes is None and MEMORY in status.allocatable:
        hugepages_bytes = node_hugepages([found.node], machine.memory_bytes)
        known = replace(known, hugepages_bytes=hugepages_bytes, allocatable_bytes=status.allocatable[MEMORY].value)
    return replace(
        state,
        assumptions=tuple(dict.fromkeys((*state.assumptions, *found.assumptions))),
        kubelet=options.kubelet or found.kubelet or implied_kubelet(known),
        is_of_cluster=True,
        allocatable_bytes=known.allocatable_bytes,
    )


def _system_bytes(found: ClusterNode) -> int | None:
    """Return what a node uses outside of its pods, as far as metrics.k8s.io tells."""
    metrics = found.node_metrics
    if metrics is None or MEMORY not in metrics.usage:
        return None
    pods = [workload.workload.pod.key for workload in found.objects.workloads]
    measured = (found.pod_metrics[key] for key in pods if key in found.pod_metrics)
    used = sum(
        container.usage[MEMORY].value for pod in measured for container in pod.containers if MEMORY in container.usage
    )
    return max(0, metrics.usage[MEMORY].value - used)


def snapshot_state(snapshot: Snapshot) -> NodeState:
    """Return the node of a snapshot, of which nothing else is known."""
    return _checked(NodeState(snapshot))


def used_bytes(state: NodeState) -> int:
    """Return what pods and system use."""
    return state.snapshot.node.system_bytes + state.snapshot.pods_working_set_bytes


def available_bytes(state: NodeState, profile: Profile) -> int:
    """Return ``memory.available`` as the kubelet counts it."""
    snapshot = state.snapshot
    return snapshot.node.available_bytes(snapshot.pods_working_set_bytes, profile)


def beyond_memory(state: NodeState, profile: Profile) -> str:
    """Return in words that pods use more than there is, which unless it was measured is assumed wrongly; else empty."""
    there, left = state.snapshot.node.memory_bytes, available_bytes(state, profile)
    if left >= 0 or state.is_kubelets:
        return ""
    return f"the pods use {mebibytes(there - left)}, but the node has {mebibytes(there)}"


def check_fits(state: NodeState, profile: Profile) -> None:
    """Raise ``InputError`` where pods use more than there is: unless that was measured, it is assumed wrongly."""
    what = beyond_memory(state, profile)
    if what:
        raise InputError(what, fix=hint("give the node's memory with " + naming("node_memory")))


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


def _assumed(pod: Pod) -> PodUsage:
    """Return a pod whose containers use what they request, where they have a process."""
    return _started(assumed_usage(pod, idle=without_process(pod)))


def _completed(entry: PodUsage) -> PodUsage:
    """Return a pod of which containers without a figure use what they request, where they have a process."""
    return _started(with_assumed(entry, idle=without_process(entry.pod)))


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
    neighbours = frozenset(pod.pod.key for pod in pods if not pod.is_chosen)
    owners = {pod.pod.metadata.uid: (pod.kind, pod.workload) for pod in pods}
    if not pods and objects.errors:
        raise NoPods("no pods left to rank", fix="fix the errors above")
    assumptions = (*state.assumptions, *kept_scores(_as_stored(objects, pods)))
    bounds = _limit_ranges(objects)
    return _checked(replace(state, neighbours=neighbours, owners=owners, limit_ranges=bounds, assumptions=assumptions))


def _as_stored(objects: Objects, pods: Sequence[NodePod]) -> Iterator[Pod]:
    """Yield the pods of a node that come from an API server, with the resources of their specs."""
    keys = {pod.pod.key for pod in pods}
    for found in objects.latest(warn=False):
        if found.workload.is_stored and found.workload.pod.key in keys:
            yield found.workload.pod


def _limit_ranges(objects: Objects) -> dict[str, tuple[LimitRange, ...]]:
    """Return the LimitRanges that the workloads' namespaces have, as stored."""
    if not objects.of(LimitRange):
        return {}
    bounds = {}
    for found in objects.latest(warn=False):
        namespace = found.workload.metadata.namespace
        bounds[namespace] = objects.namespace_policies(found.source).of(namespace).stored_limit_ranges()
    return bounds


def _checked(state: NodeState) -> NodeState:
    if not state.snapshot.pods:
        raise NoPods("no pods to rank", fix="give manifests with pods, or the kubelet's /pods")
    memory_bytes = state.snapshot.node.memory_bytes
    if memory_bytes < LEAST_NODE_BYTES:
        fix = hint("for example " + naming("node_memory", "64Gi"))
        raise InputError(f"{memory_bytes} bytes is too little memory for a node", fix=fix)
    return state


def _about_pods(what: str, pods: Sequence[str], value: str) -> tuple[Assumption, ...]:
    """Return what is assumed of pods that no row is about."""
    if not pods:
        return ()
    more = f" and {len(pods) - _SHOWN_PODS} more" if len(pods) > _SHOWN_PODS else ""
    return (Assumption(f"{what} of {', '.join(pods[:_SHOWN_PODS])}{more}", value, stated_with("usage")),)


def _left_out(rows: int) -> tuple[Assumption, ...]:
    """Return what is assumed of rows that are about no pod of the manifests."""
    what = f"{counted(rows, 'row')} of {stated_with('usage')} about other pods"
    how = f"{stated_with('files', 'their manifests')}, or {stated_with('system_memory')}"
    return (Assumption(what, "left out", how),) if rows else ()


_BEYOND_LIMIT_FIX = "check the unit, and that the manifest is the one that runs"


def refuse_beyond(beyond: Sequence[BeyondLimit]) -> None:
    """Raise ``InputError`` about usage above a limit."""
    for limit in beyond:
        raise InputError(_uses(limit), where=limit.row.where, fix=_BEYOND_LIMIT_FIX)


def _beyond_limit(beyond: BeyondLimit) -> Problem:
    what = f"{_uses(beyond)}; using the limit instead"
    return Problem(beyond.row.where, 0, 0, Severity.WARNING, "memory", what, _BEYOND_LIMIT_FIX)


def _uses(beyond: BeyondLimit) -> str:
    return f"{beyond.row.pod} {beyond.container} uses {beyond.used}, above its limit of {beyond.limit}"
