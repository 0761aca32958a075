"""The nodes of a source with their pods in both orders, each ranked once.

A snapshot has nodes. Manifests have those that pods name; where they name none, all pods are taken to run on one node,
as ``podqos rank`` does, and that is an assumption.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from msgspec.structs import replace

from podqos.errors import InputError
from podqos.eviction.signals import Signal
from podqos.library.cluster_snapshot import ClusterSnapshot
from podqos.library.inputs.kubelet_node import DEFAULT_KUBELET, Kubelet
from podqos.library.inputs.kubelet_settings import memory_allocatable
from podqos.library.inputs.node_pods import node_pods
from podqos.library.inputs.objects import FoundWorkload, Objects
from podqos.library.node_state import NodeState, cluster_state, node_state
from podqos.library.page.source import PageSource
from podqos.library.rank import rank
from podqos.model.assumption import Assumption
from podqos.model.node import Node, NodeStatus
from podqos.model.pod import ObjectMeta
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import MEMORY
from podqos.survival.places import RankReport
from podqos.survival.pods import ENDED, NodePod

ONE_NODE = Assumption("where pods run", "all on one node", "spec.nodeName, or a snapshot of the cluster")


class PageNode:
    """A node with its pods."""

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
    def report(self) -> RankReport | None:
        """Both orders; None where there are none, and then ``problem`` says why."""
        if self.state is None:
            return None
        try:
            return rank(self.state, profile=self._profile)
        except InputError as error:
            self.problem = str(error)
            return None


class PageNodes:
    """The nodes of a source."""

    def __init__(self, source: PageSource) -> None:
        cluster, objects = source.cluster, source.objects
        self._source = source
        self.objects = cluster.objects if cluster is not None else objects if objects is not None else Objects()
        self.profile = cluster.profile if cluster is not None else LATEST
        self.nodes: dict[str, PageNode] = {
            each.name: each for each in (self._of_manifests() if cluster is None else self._of_cluster(cluster))
        }

    @cached_property
    def waiting(self) -> list[NodePod]:
        """The pods without a node, where others have one."""
        if any(each.is_assumed for each in self.nodes.values()):
            return []
        pods_are_live = any(each.workload.is_stored for each in self.objects.workloads)
        unbound = [
            each
            for each in self._by_node.get("", ())
            # Workloads of a cluster are what its pods are made from; on the only node runs all that is not live.
            if each.workload.is_stored or not (self._is_one_node or (each.workload.is_live and pods_are_live))
        ]
        return node_pods(self.objects.only(unbound), profile=self.profile) if unbound else []

    @cached_property
    def workloads(self) -> dict[tuple[str, str], FoundWorkload]:
        """What has pods, by kind and ``namespace/name``."""
        return {(each.workload.kind, each.workload.pod.key): each for each in self.objects.latest(warn=False)}

    @cached_property
    def _by_node(self) -> dict[str, list[FoundWorkload]]:
        found: dict[str, list[FoundWorkload]] = {}
        for each in self.objects.latest(warn=False):
            found.setdefault(each.workload.pod.spec.node_name, []).append(each)
        return found

    @cached_property
    def _is_one_node(self) -> bool:
        """Whether the pods of manifests name one node: then what is not bound runs there as well."""
        return self._source.cluster is None and len([name for name in self._by_node if name]) == 1

    def _of_cluster(self, cluster: ClusterSnapshot) -> Iterator[PageNode]:
        for name in dict.fromkeys((*cluster.nodes, *filter(None, self._by_node))):
            objects = cluster.on_node(name)
            state, problem = None, ""
            if any(each.workload.pod.status.phase not in ENDED for each in objects.workloads):
                try:
                    state = cluster_state(cluster, name, profile=self.profile)
                except InputError as error:
                    problem = str(error)
            node = cluster.nodes.get(name) or Node(ObjectMeta(name=name))
            yield PageNode(node, objects, state, self.profile, problem, is_assumed=False)

    def _of_manifests(self) -> Iterator[PageNode]:
        known = {node.name: node for node in self.objects.of(Node)}
        names = [name for name in self._by_node if name]
        if not names and self.objects.workloads:
            yield self._of_files(Node(), self.objects, is_assumed=True)
            return
        for name in dict.fromkeys((*names, *known)):
            objects = self.objects
            if not self._is_one_node or name not in names:
                objects = self.objects.only(self._by_node.get(name, ()))
            yield self._of_files(known.get(name) or Node(ObjectMeta(name=name)), objects, is_assumed=False)

    def _of_files(self, node: Node, objects: Objects, *, is_assumed: bool) -> PageNode:
        capacity = node.status.capacity
        state, problem = None, ""
        if objects.workloads:
            try:
                state = node_state(
                    objects,
                    self._source.usage,
                    node=None if objects is self.objects else node.name,
                    node_memory_bytes=capacity[MEMORY].value if MEMORY in capacity else None,
                    profile=self.profile,
                )
                state = replace(state, kubelet=self.kubelet)
            except InputError as error:
                problem = str(error)
        if state is not None and MEMORY not in node.status.allocatable:
            node = replace(node, status=_divided(node.status, state))
        if state is not None and is_assumed:
            state = replace(state, assumptions=(ONE_NODE, *state.assumptions))
        return PageNode(node, objects, state, self.profile, problem, is_assumed=is_assumed)

    @cached_property
    def kubelet(self) -> Kubelet | None:
        """The one whose settings stand among the manifests; None where there are several."""
        found = self.objects.kubelets
        if len(found) != 1:
            return None
        return Kubelet(found[0].settings.configuration, found[0].found.source.path)


def _divided(status: NodeStatus, state: NodeState) -> NodeStatus:
    """Return what a node has, with what its kubelet leaves to pods."""
    kubelet = state.kubelet or DEFAULT_KUBELET
    allocatable = memory_allocatable(kubelet.config, {Signal.MEMORY: state.snapshot.node.memory_bytes}).allocatable
    return replace(status, allocatable={**status.capacity, **allocatable})
