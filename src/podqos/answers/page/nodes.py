"""The nodes of a source with their pods in both orders, each ranked once.

A snapshot has nodes. Manifests have those that pods name; where they name none, all pods are taken to run on one node,
as ``podqos rank`` does, and that is an assumption; so is that this node is large enough for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from podqos.answers.cluster_state import cluster_state
from podqos.answers.node_options import NodePodsOptions
from podqos.answers.node_state import NodeState, NoPods, node_state, usage_by_node, used_bytes
from podqos.answers.page.cluster import NodePanel, PodBlock
from podqos.answers.page.places import Places
from podqos.answers.page.source import PageSource
from podqos.answers.places import RankReport
from podqos.answers.rank import RankRequest, rank
from podqos.answers.watched_memory import WatchedMemory, watched_memory
from podqos.errors import InputError
from podqos.eviction.signals import Signal
from podqos.manifest.encoding import json_line
from podqos.manifest.problems import Problem, Severity
from podqos.model.assumption import Assumption
from podqos.model.node import LABEL_HOSTNAME, Node, NodeSpec, NodeStatus
from podqos.model.pod import TERMINAL_PHASES, ObjectMeta, Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY
from podqos.model.snapshot import ContainerUsage, NodeUsage, PodUsage, Snapshot
from podqos.model.stats import ContainerStats, MemoryStats, PodReference, PodStats
from podqos.naming import published
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.kubelet_node import DEFAULT_KUBELET, Kubelet, kubelets_among
from podqos.objects.kubelet_settings import memory_allocatable
from podqos.objects.node_pods import node_pods
from podqos.objects.objects import FoundWorkload, Objects
from podqos.placement.allocatable import node_allocatable
from podqos.placement.declared_features import declared_by_default
from podqos.placement.workloads import POD
from podqos.sim.blast import BlastPods, nodes_now
from podqos.sim.scenario.scenario import Scenario
from podqos.survival.node.pods import NodePod
from podqos.survival.node.usage_file import UsageRow
from podqos.wording import mebibytes

ONE_NODE = Assumption("where pods run", "all on one node", "spec.nodeName, or a snapshot of the cluster")


class _PodList(Struct, frozen=True, rename="camel"):
    """The pods of a scenario as an API server would list them."""

    items: tuple[Pod, ...]
    api_version: str = "v1"
    kind: str = "PodList"


class ShownNode(Struct, frozen=True):
    """What the cluster view shows of a node."""

    panel: NodePanel
    blocks: tuple[PodBlock, ...]
    assumptions: tuple[Assumption, ...]


class PageNode:
    """A node with its pods."""

    shown: ShownNode | None = None
    """What the cluster view shows of it, once that was made."""
    basis: tuple[object, ...] = ()
    """All that this was made from; where it is the same, so is this."""
    noted: tuple[Problem, ...] = ()
    """What was found to be wrong while it was made."""

    def __init__(
        self, node: Node, objects: Objects, state: NodeState | None, profile: Profile, problem: str, *, is_assumed: bool
    ) -> None:
        self.node = node
        self.objects = objects
        """Its workloads, and what decides about them."""
        self.state = state
        """None where it has no pods, or cannot be told what they use."""
        self.is_assumed = is_assumed
        self.problem = problem
        self._profile = profile

    @property
    def name(self) -> str:
        """The node's; empty for one that is assumed."""
        return self.node.name

    @cached_property
    def watched(self) -> WatchedMemory | None:
        """Its memory as the kubelet watches it; None without a state."""
        return None if self.state is None else watched_memory(self.state, self._profile)

    @cached_property
    def report(self) -> RankReport | None:
        """Both orders; None where there are none, and then ``problem`` says why."""
        if self.state is None:
            return None
        try:
            return rank(self.state, RankRequest(profile=self._profile))
        except InputError as error:
            self.problem = error.worded(published)
            return None

    @cached_property
    def unranked(self) -> list[NodePod]:
        """Its pods where they are in no order, because nothing is known of what they run on."""
        if self.state is not None:
            return []
        running = [
            workload for workload in self.objects.workloads if workload.workload.pod.status.phase not in TERMINAL_PHASES
        ]
        return node_pods(self.objects.only(running), profile=self._profile, node=self.name or None) if running else []

    @cached_property
    def places(self) -> Places | None:
        """Where its pods stand; None where they are in no order."""
        return None if self.report is None else Places.of(self.report)


class PageNodes:
    """The nodes of a source; ``before`` are those of an earlier state of it: what is the same is not ranked again."""

    def __init__(self, source: PageSource, before: PageNodes | None = None) -> None:
        cluster, objects = source.cluster, source.objects
        self._source = source
        self.objects = cluster.objects if cluster is not None else objects if objects is not None else Objects()
        self.profile = cluster.profile if cluster is not None else LATEST
        if cluster is not None:
            nodes = self._of_cluster(cluster, {} if before is None else before.nodes)
        elif source.scenario is not None:
            self.profile = source.scenario.profile
            nodes = self._of_scenario(source.scenario)
        else:
            nodes = self._of_manifests()
        self.nodes: dict[str, PageNode] = {node.name: node for node in nodes}

    @cached_property
    def waiting(self) -> list[NodePod]:
        """The pods without a node, where others have one."""
        if any(node.is_assumed for node in self.nodes.values()):
            return []
        pods_are_live = any(workload.workload.is_stored for workload in self.objects.workloads)
        unbound = [
            workload
            for workload in self._by_node.get("", ())
            # Workloads of a cluster are what its pods are made from; on the only node runs all that is not live.
            if workload.workload.is_stored or not (self._is_one_node or (workload.workload.is_live and pods_are_live))
        ]
        return node_pods(self.objects.only(unbound), profile=self.profile) if unbound else []

    @cached_property
    def workloads(self) -> dict[tuple[str, str], FoundWorkload]:
        """What has pods, by kind and ``namespace/name``."""
        return {
            (workload.workload.kind, workload.workload.pod.key): workload
            for workload in self.objects.latest(warn=False)
        }

    @cached_property
    def _by_node(self) -> dict[str, list[FoundWorkload]]:
        if self._source.cluster is not None:
            return self._source.cluster.by_node
        found: dict[str, list[FoundWorkload]] = {}
        for workload in self.objects.latest(warn=False):
            found.setdefault(workload.workload.pod.spec.node_name, []).append(workload)
        return found

    @cached_property
    def _is_one_node(self) -> bool:
        """Whether the pods of manifests name one node: then what is not bound runs there as well."""
        return self._source.cluster is None and len([name for name in self._by_node if name]) == 1

    def _of_cluster(self, cluster: ClusterSnapshot, before: Mapping[str, PageNode]) -> Iterator[PageNode]:
        for name in dict.fromkeys((*cluster.nodes, *filter(None, self._by_node))):
            objects = cluster.on_node(name)
            node = cluster.nodes.get(name) or Node(ObjectMeta(name=name))
            # The memory of a node that does not tell it is taken to be that of others.
            others = () if MEMORY in node.status.capacity else tuple(cluster.nodes.values())
            basis = (node, others, objects.workloads, *cluster.decisive_for(name))
            known = before.get(name)
            if known is not None and known.basis == basis:
                made = copy(known)
                made.objects, made.basis = objects, basis
                objects.note(*made.noted)
                yield made
                continue
            noted = len(objects.problems)
            state, problem = None, ""
            if any(workload.workload.pod.status.phase not in TERMINAL_PHASES for workload in objects.workloads):
                try:
                    state = cluster_state(cluster, name, profile=self.profile)
                except InputError as error:
                    problem = error.worded(published)
            made = PageNode(node, objects, state, self.profile, problem, is_assumed=False)
            made.basis, made.noted = basis, tuple(objects.problems[noted:])
            yield made

    def _of_scenario(self, scenario: Scenario) -> Iterator[PageNode]:
        """Yield the nodes of a scenario at its beginning; its pods have been admitted."""
        found = [replace(each, pods=tuple(_bound(each))) for each in nodes_now(scenario)]
        listed = _PodList(tuple(pod for each in found for pod, _ in each.pods))
        self.objects = self.objects.with_text(scenario.name, json_line(listed))
        for each in found:
            objects = self.objects.only(self._by_node.get(each.node.name, ()))
            pods = tuple(PodUsage(pod, _stats(pod, containers), containers) for pod, containers in each.pods)
            system_bytes = each.node.system.anon_bytes.at(0)
            spec = each.node
            machine = NodeUsage(spec.memory_bytes, spec.swap_bytes, spec.name, system_bytes)
            owners = {pod.metadata.uid: (POD, pod.key) for pod, _ in each.pods}
            state = NodeState(Snapshot(machine, pods), kubelet=Kubelet(spec.config, scenario.name), owners=owners)
            capacity = {
                CPU: Quantity.of_milli(spec.cpu_milli),
                MEMORY: Quantity.of_units(spec.memory_bytes, "BinarySI"),
            }
            divided = node_allocatable(capacity, spec.config)
            node = Node(
                ObjectMeta(name=spec.name, labels={LABEL_HOSTNAME: spec.name, **spec.labels}),
                NodeSpec((*spec.taints, *spec.config.register_with_taints)),
                NodeStatus(
                    divided.capacity,
                    divided.allocatable,
                    declared_features=declared_by_default(scenario.profile),
                ),
            )
            yield PageNode(node, objects, state if pods else None, self.profile, "", is_assumed=False)

    def _of_manifests(self) -> Iterator[PageNode]:
        known = {node.name: node for node in self.objects.of(Node)}
        names = [name for name in self._by_node if name]
        if not names and self.objects.workloads:
            assumed = self._of_files(Node(), self.objects, is_assumed=True)
            if assumed.state is not None or assumed.problem:
                yield assumed
            return
        for name in dict.fromkeys((*names, *known)):
            objects = self.objects
            if not self._is_one_node or name not in names:
                objects = self.objects.only(self._by_node.get(name, ()))
            yield self._of_files(known.get(name) or Node(ObjectMeta(name=name)), objects, is_assumed=False)

    def _of_files(self, node: Node, objects: Objects, *, is_assumed: bool) -> PageNode:
        state, problem, noted = None, "", len(objects.problems)
        try:
            state = self._file_state(objects, node, is_assumed=is_assumed)
            if MEMORY not in node.status.allocatable:
                node = replace(node, status=_divided(node.status, state))
        except NoPods:
            if any(problem.severity is Severity.ERROR for problem in objects.problems[noted:]):
                problem = "the API server would reject all of its pods"
        except InputError as error:
            state, problem = None, error.worded(published)
        return PageNode(node, objects, state, self.profile, problem, is_assumed=is_assumed)

    def _file_state(self, objects: Objects, node: Node, *, is_assumed: bool) -> NodeState:
        name = None if objects is self.objects else node.name
        usage: Sequence[UsageRow] | None = self._source.usage
        if usage is not None and name is not None:
            strangers = (row for row in self._usage_by_node.get(None, ()) if row.is_listed)
            usage = (*self._usage_by_node.get(name, ()), *strangers)
        if not objects.workloads:
            raise NoPods("it has no pods")
        stated_bytes = self._source.node_memory_bytes
        options = NodePodsOptions(usage=usage, node=name, node_memory_bytes=stated_bytes, profile=self.profile)
        state = node_state(objects, options)
        if not is_assumed:
            return state
        if stated_bytes is None and used_bytes(state) >= state.snapshot.node.memory_bytes:
            memory_bytes = 1 << (used_bytes(state) * 5 // 4).bit_length()
            large = Assumption("node memory", mebibytes(memory_bytes), "a Node with its capacity")
            state = node_state(objects, replace(options, node_memory_bytes=memory_bytes))
            state = replace(state, assumptions=(large, *state.assumptions))
        return replace(state, assumptions=(ONE_NODE, *state.assumptions))

    @cached_property
    def _usage_by_node(self) -> dict[str | None, list[UsageRow]]:
        """The rows about the pods of each node, where there are several; a row about none is a problem of its own."""
        rows = usage_by_node(self.objects.latest(warn=False), self._source.usage or ())
        for row in rows.get(None, ()):
            if not row.is_listed:
                what = f"no such pod: {row.pod}"
                self.objects.note(Problem(row.where, 0, 0, Severity.WARNING, "", what, "check its name"))
        return rows

    @cached_property
    def kubelet(self) -> Kubelet | None:
        """The one whose settings stand among the manifests; None where there are several."""
        kubelets = kubelets_among(self.objects)
        return kubelets[0] if len(kubelets) == 1 else None


def _bound(node: BlastPods) -> Iterator[tuple[Pod, tuple[ContainerUsage, ...]]]:
    """Yield the pods of a simulated node as they are bound to it."""
    for pod, containers in node.pods:
        yield replace(pod, spec=replace(pod.spec, node_name=node.node.name)), containers


def _stats(pod: Pod, containers: Sequence[ContainerUsage]) -> PodStats:
    """Return what the kubelet measures of a pod."""
    reference = PodReference(pod.metadata.name, pod.metadata.namespace, pod.metadata.uid)
    working_set_bytes = sum(container.working_set_bytes for container in containers)
    each = tuple(
        ContainerStats(container.name, memory=MemoryStats(working_set_bytes=container.working_set_bytes))
        for container in containers
    )
    return PodStats(reference, memory=MemoryStats(working_set_bytes=working_set_bytes), containers=each)


def _divided(status: NodeStatus, state: NodeState) -> NodeStatus:
    """Return what a node has, with what its kubelet leaves to pods."""
    kubelet = state.kubelet or DEFAULT_KUBELET
    allocatable = memory_allocatable(kubelet.config, {Signal.MEMORY: state.snapshot.node.memory_bytes}).allocatable
    return replace(status, allocatable={**status.capacity, **allocatable})
