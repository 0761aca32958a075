"""The pods of a node and their usage: from manifests and a table, from a kubelet's API, or from one file.

Unmeasured usage is assumed, and reported as such.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError, InvalidOption
from podqos.eviction.observation import decode_summary, observe
from podqos.eviction.signals import Signal
from podqos.manifest.documents import plain_documents
from podqos.manifest.problems import Problem, Severity
from podqos.model.assumption import Assumption
from podqos.model.node import Node
from podqos.model.pod import Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY
from podqos.model.snapshot import NodeUsage, PodUsage, Snapshot
from podqos.model.stats import Summary
from podqos.objects.assumptions import (
    KUBELET_SETTINGS,
    LEAST_NODE_BYTES,
    cluster_assumptions,
    node_hugepages,
    node_memory,
    nodes_called,
    stated_allocatable,
)
from podqos.objects.kubelet_node import Kubelet, judged_cgroups, kubelet_among, rules_of
from podqos.objects.node_pods import chosen_node, node_pods
from podqos.objects.objects import FoundWorkload, Objects
from podqos.objects.selection import Selection
from podqos.placement.workloads import POD
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
from podqos.reading.cluster_snapshot import ClusterSnapshot
from podqos.reading.files import read_bytes
from podqos.survival.assumed_usage import assumed_usage
from podqos.survival.pods import NodePod, names_by_workload, without_process
from podqos.survival.snapshots import decode_snapshot, from_summary, node_of, swap_of
from podqos.survival.usage import BeyondLimit, from_usage, strangers
from podqos.survival.usage_file import UsageRow, read_usage
from podqos.wording import counted, listed, mebibytes

USAGE = Assumption("usage", "what pods request", "--usage")
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
        unstated = () if kubelet.is_stated else (KUBELET_SETTINGS,)
        return (*rules_of(kubelet, profile), *self.assumptions, *unstated)


def node_state(
    objects: Objects | NodeState,
    usage: str | os.PathLike[str] | Iterable[UsageRow] | None = None,
    *,
    node: str | None = None,
    node_memory_bytes: int | None = None,
    system_memory_bytes: int | None = None,
    profile: Profile = LATEST,
    refuse_impossible: bool = False,
) -> NodeState:
    """Return the pods of manifests with what they use: the rows of a usage file, or what they request.

    ``node`` chooses where the pods of several nodes are among the objects; rows about pods of the others do not count.
    Memory is that of the Node of its name, else of the smallest. ``system_memory_bytes`` is used outside all pods.
    ``refuse_impossible``: usage above a limit is an error; otherwise it counts as the limit. The kubelet is the one
    whose settings stand among the objects. A state is returned as it is, and nothing that it says already can be given
    beside it.
    """
    if isinstance(objects, NodeState):
        _refuse_beside(
            usage=usage,
            node=node,
            node_memory_bytes=node_memory_bytes,
            system_memory_bytes=system_memory_bytes,
            refuse_impossible=refuse_impossible or None,
        )
        return objects
    found = objects.latest(warn=False)
    name = chosen_node(found, node)
    rows = None if usage is None else usage_rows(usage)
    if rows is not None and node is not None:
        by_node = usage_by_node(found, rows)
        rows = [*by_node.get(node, ()), *by_node.get(None, ())]
    pods = node_pods(objects, named=[row.pod for row in rows or ()], node=node, profile=profile)
    nodes = nodes_called(name, objects.of(Node))
    memory_bytes, assumed = node_memory(node_memory_bytes, nodes)
    assumed += cluster_assumptions(objects)
    hugepages_bytes = 0 if node_memory_bytes is not None else node_hugepages(nodes, memory_bytes)
    machine = NodeUsage(memory_bytes, name=name, system_bytes=system_memory_bytes or 0, hugepages_bytes=hugepages_bytes)
    allocatable_bytes = None if node_memory_bytes is not None else stated_allocatable(nodes, memory_bytes)
    kubelet = kubelet_among(objects)
    if rows is None:
        snapshot = Snapshot(machine, tuple(_assumed(each.pod) for each in pods))
        state = NodeState(snapshot, (*assumed, USAGE), kubelet=kubelet, allocatable_bytes=allocatable_bytes)
        return _of_pods(pods, state)
    beyond: list[BeyondLimit] = []
    measured = from_usage(pods, rows, machine, beyond)
    if refuse_impossible:
        _refuse(beyond)
    objects.note(*map(_beyond_limit, beyond))
    # Replicas beside one that was measured run as well; all of a workload's pods without a row is what the user says.
    workloads = {entry.workload for entry, found in zip(pods, measured.pods, strict=True) if found.stats is not None}
    replicas = {entry.pod.key for entry in pods if entry.workload in workloads}
    unknown = [entry.pod.key for entry in measured.pods if entry.stats is None and _runs(entry.pod)]
    beside = [key for key in unknown if key in replicas]
    snapshot = Snapshot(
        machine,
        tuple(_assumed(each.pod) if each.pod.key in beside else _started(each) for each in measured.pods),
    )
    assumptions = (
        *assumed,
        *_about_pods("usage", beside, "what they request"),
        *_about_pods("statistics", [key for key in unknown if key not in replicas], "none"),
        *_left_out(strangers(pods, rows)),
    )
    return _of_pods(pods, NodeState(snapshot, assumptions, kubelet=kubelet, allocatable_bytes=allocatable_bytes))


def _refuse_beside(**given: object) -> None:
    """Raise ``InputError`` where something is given that a state has its own of."""
    names = [name for name, value in given.items() if value is not None]
    if names:
        what = f"{listed(names)} cannot be given together with a node's state, which has its own"
        raise InputError(what, fix="give them to node_state with the objects that the state is made from")


def kubelet_state(
    objects: Objects,
    stats: str | Summary,
    *,
    node: str | None = None,
    node_memory_bytes: int | None = None,
    system_memory_bytes: int | None = None,
    profile: Profile = LATEST,
) -> NodeState:
    """Return the pods of the objects with what a kubelet's /stats/summary, or a file with it, says of them."""
    summary = _summary_in(stats) if isinstance(stats, str) else stats
    machine = node_of(summary)
    if machine is None:
        if node_memory_bytes is None:
            where = stats if isinstance(stats, str) else f"statistics of {summary.node.node_name}"
            raise InputError("the node's memory is not in it", where=where, fix="give it with --node-memory")
        machine = NodeUsage(0, name=summary.node.node_name)
    if node_memory_bytes is not None:
        machine = replace(machine, memory_bytes=node_memory_bytes)
    if system_memory_bytes is not None:
        machine = replace(machine, system_bytes=system_memory_bytes)
    pods = node_pods(objects, node=node, profile=profile)
    measured = from_summary([entry.pod for entry in pods], summary, machine)
    snapshot = replace(measured, pods=tuple(map(_started, measured.pods)))
    nodes = [] if node_memory_bytes is not None else [each for each in objects.of(Node) if each.name == machine.name]
    allocatable_bytes = stated_allocatable(nodes, machine.memory_bytes)
    return _of_pods(pods, NodeState(snapshot, is_kubelets=True, allocatable_bytes=allocatable_bytes))


def _summary_in(path: str) -> Summary:
    try:
        return decode_summary(read_bytes(path))
    except InputError as error:
        raise InputError(error.what, where=path, fix=error.fix) from error


def cluster_state(
    cluster: ClusterSnapshot,
    node: str | None = None,
    *,
    node_memory_bytes: int | None = None,
    system_memory_bytes: int | None = None,
    profile: Profile | None = None,
    selection: Selection | None = None,
) -> NodeState:
    """Return a node of a cluster with its pods; ``node`` may be left out where there is only one.

    Usage is what its kubelet measured, else what metrics.k8s.io says, else what pods request. An answer is about the
    pods of ``selection``.
    """
    name = node_named(cluster, node)
    profile = profile or cluster.profile
    objects = cluster.on_node(name).with_selection(selection)
    summary = cluster.summary(name)
    memory_bytes = node_memory_bytes
    if memory_bytes is None and name in cluster.nodes and MEMORY in (capacity := cluster.nodes[name].status.capacity):
        memory_bytes = capacity[MEMORY].value
    if summary is not None:
        state = kubelet_state(
            objects,
            summary,
            node=name,
            node_memory_bytes=node_memory_bytes if node_of(summary) else memory_bytes,
            system_memory_bytes=system_memory_bytes,
            profile=profile,
        )
        return _of_cluster(state, cluster, name, node_memory_bytes)
    rows = [
        UsageRow(key, container.name, container.usage.get(MEMORY), is_listed=True)
        for key in dict.fromkeys(each.workload.pod.key for each in objects.workloads)
        if key in cluster.pod_metrics
        for container in cluster.pod_metrics[key].containers
    ]
    state = node_state(
        objects,
        rows if cluster.pod_metrics else None,
        node=name,
        node_memory_bytes=memory_bytes,
        system_memory_bytes=system_memory_bytes if system_memory_bytes is not None else _system_bytes(cluster, name),
        profile=profile,
    )
    return _of_cluster(state, cluster, name, node_memory_bytes)


def _of_cluster(state: NodeState, cluster: ClusterSnapshot, node: str, node_memory_bytes: int | None) -> NodeState:
    is_stated = node_memory_bytes is None and node in cluster.nodes
    stated = cluster.nodes[node].status.allocatable.get(MEMORY) if is_stated else None
    return replace(
        state,
        assumptions=tuple(dict.fromkeys((*state.assumptions, *cluster.assumptions))),
        kubelet=cluster.kubelet(node),
        is_of_cluster=True,
        allocatable_bytes=None if stated is None else stated.value,
    )


def used_bytes(state: NodeState) -> int:
    """Return what pods and system use."""
    return state.snapshot.node.system_bytes + used_by_pods(state)


def available_bytes(state: NodeState, profile: Profile) -> int:
    """Return ``memory.available`` as the kubelet counts it."""
    return state.snapshot.node.available_bytes(used_by_pods(state), profile)


def beyond_memory(state: NodeState, profile: Profile) -> str:
    """Return in words that pods use more than there is, which unless it was measured is assumed wrongly; else empty."""
    there, left = state.snapshot.node.memory_bytes, available_bytes(state, profile)
    if left >= 0 or state.is_kubelets:
        return ""
    return f"the pods use {mebibytes(there - left)}, the node has {mebibytes(there)}"


def check_fits(state: NodeState, profile: Profile) -> None:
    """Raise ``InputError`` where pods use more than there is: unless that was measured, it is assumed wrongly."""
    what = beyond_memory(state, profile)
    if what:
        raise InputError(what, fix="give the node's memory with --node-memory")


def used_by_pods(state: NodeState) -> int:
    """Return the working sets of all pods."""
    return sum(usage.working_set_bytes for entry in state.snapshot.pods for usage in entry.containers)


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
    return NodeCapacities(
        cluster.kubelet(name),
        capacity[MEMORY].value if MEMORY in capacity else None,
        capacity.get(CPU),
        {} if summary is None else {signal: each.capacity for signal, each in observe(summary).signals.items()},
        None if summary is None else swap_of(summary),
        (*cluster.assumptions, *((KUBELET_SETTINGS,) if cluster.kubelet(name) is None else ())),
    )


def node_named(cluster: ClusterSnapshot, node: str | None) -> str:
    """Return the name of a node of a cluster, which may be left out where there is only one."""
    names = sorted(cluster.nodes)
    if node is None and len(names) == 1:
        return names[0]
    if node is None:
        fix = f"name one: {', '.join(names[:5])}{', …' if len(names) > 5 else ''}"
        raise InvalidOption(f"the cluster has {counted(len(names), 'node')}", fix=fix)
    if node not in cluster.nodes:
        close = get_close_matches(node, names, 1)
        fix = f"did you mean {close[0]}?" if close else f"one of: {', '.join(names[:5])}"
        raise InvalidOption(f"there is no node {node}", fix=fix)
    return node


def _system_bytes(cluster: ClusterSnapshot, node: str) -> int | None:
    """Return what a node uses outside of its pods, as far as metrics.k8s.io tells."""
    metrics = cluster.node_metrics.get(node)
    if metrics is None or MEMORY not in metrics.usage:
        return None
    pods = [each.workload.pod.key for each in cluster.on_node(node).workloads]
    measured = (cluster.pod_metrics[key] for key in pods if key in cluster.pod_metrics)
    used = sum(each.usage[MEMORY].value for pod in measured for each in pod.containers if MEMORY in each.usage)
    return max(0, metrics.usage[MEMORY].value - used)


def read_state(path: str, *, refuse_impossible: bool = False) -> NodeState:
    """Return the node that a snapshot file describes; ``refuse_impossible`` as for ``node_state``."""
    documents = plain_documents(path, read_bytes(path))
    if len(documents) != 1:
        raise InputError(f"{len(documents)} documents", where=path, fix="a snapshot is one document")
    beyond: list[BeyondLimit] = []
    state = _checked(NodeState(decode_snapshot(path, documents[0].value, beyond)))
    if refuse_impossible:
        _refuse(beyond)
    return state


def usage_rows(usage: str | os.PathLike[str] | Iterable[UsageRow]) -> Sequence[UsageRow]:
    """Return the rows of a usage file, or those given."""
    if isinstance(usage, (str, os.PathLike)):
        path = os.fspath(usage)
        return read_usage(path, read_bytes(path))
    return tuple(usage)


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


def _runs(pod: Pod) -> bool:
    """Whether a container of a node's pod has a process."""
    idle = without_process(pod)
    return any(each.name not in idle for each in pod.running_containers)


def _assumed(pod: Pod) -> PodUsage:
    """Return a pod whose containers use what they request, where they have a process."""
    return _started(assumed_usage(pod, idle=without_process(pod)))


def _started(usage: PodUsage) -> PodUsage:
    """Return a pod whose containers that were not measured have no process where its node says so."""
    idle = without_process(usage.pod)
    if not idle:
        return usage
    containers = (
        replace(each, processes=0) if each.name in idle and not each.is_measured else each for each in usage.containers
    )
    return replace(usage, containers=tuple(containers))


def _of_pods(pods: Sequence[NodePod], state: NodeState) -> NodeState:
    """Return a state that knows whose pods it has, and which of them an answer is not about."""
    neighbours = frozenset(each.pod.key for each in pods if not each.is_chosen)
    owners = {each.pod.metadata.uid: (each.kind, each.workload) for each in pods}
    return _checked(replace(state, neighbours=neighbours, owners=owners))


def _checked(state: NodeState) -> NodeState:
    if not state.snapshot.pods:
        raise NoPods("there are no pods", fix="give manifests or the kubelet's /pods")
    memory_bytes = state.snapshot.node.memory_bytes
    if memory_bytes < LEAST_NODE_BYTES:
        raise InputError(f"{memory_bytes} bytes are not the memory of a node", fix="for example --node-memory 64Gi")
    return state


def _about_pods(what: str, pods: Sequence[str], value: str) -> tuple[Assumption, ...]:
    """Return what is assumed of pods that no row is about."""
    if not pods:
        return ()
    more = f" and {len(pods) - _SHOWN_PODS} more" if len(pods) > _SHOWN_PODS else ""
    return (Assumption(f"{what} of {', '.join(pods[:_SHOWN_PODS])}{more}", value, "--usage"),)


def _left_out(rows: int) -> tuple[Assumption, ...]:
    """Return what is assumed of rows that are about no pod of the manifests."""
    what = f"{counted(rows, 'row')} of --usage about other pods"
    return (Assumption(what, "left out", "-f their manifests, or --system-memory"),) if rows else ()


_BEYOND_LIMIT_FIX = "check the unit, or whether the manifest is the one that runs"


def _refuse(beyond: Sequence[BeyondLimit]) -> None:
    for each in beyond:
        raise InputError(_uses(each), where=each.row.where, fix=_BEYOND_LIMIT_FIX)


def _beyond_limit(beyond: BeyondLimit) -> Problem:
    what = f"{_uses(beyond)}; counted as its limit"
    return Problem(beyond.row.where, 0, 0, Severity.WARNING, "memory", what, _BEYOND_LIMIT_FIX)


def _uses(beyond: BeyondLimit) -> str:
    return f"{beyond.row.pod} {beyond.container} uses {beyond.used}, above its limit of {beyond.limit}"
