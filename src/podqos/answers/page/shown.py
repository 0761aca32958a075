"""What the views of a source share, each computed once: its nodes, where pods stand, what a pod is made from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from podqos.answers.explain import ExplainOptions, explain
from podqos.answers.explanation import ExplanationList
from podqos.answers.forecast import CurvePoint
from podqos.answers.node_state import NodeState
from podqos.answers.page.nodes import PageNode, PageNodes
from podqos.answers.page.places import Places
from podqos.answers.page.quotas import Quotas
from podqos.answers.page.source import PageSource
from podqos.errors import InputError
from podqos.model.owners import controllers
from podqos.model.pod import Pod
from podqos.model.resources import MEMORY
from podqos.model.service import Service
from podqos.model.snapshot import NodeUsage, PodUsage, Snapshot
from podqos.objects.held import held_objects
from podqos.objects.objects import FoundWorkload, Objects
from podqos.placement.demand import Amounts, demand_of
from podqos.placement.pod_view import PodView, Views
from podqos.placement.workloads import POD

if TYPE_CHECKING:
    from podqos.answers.page.harm import Riskiest


class ByRate(Struct, frozen=True):
    """Who acts first while a container grows, by its rate."""

    curve: tuple[CurvePoint, ...]
    text: str


class ShownSource:
    """A source that is looked at; ``before`` is an earlier state of it, of which is taken what has not changed."""

    def __init__(self, source: PageSource, before: ShownSource | None = None) -> None:
        self.source = source
        self._before = before
        self._requested: dict[str, Amounts] = {}
        self.curves: dict[tuple[str, str], ByRate] = {}
        """Of growing containers, by node and container, with the settings that the node has."""
        self.riskiest: dict[str, Riskiest | None] = {}
        """The container whose growth is worst, by node; by an empty name, of all nodes."""

    @cached_property
    def nodes(self) -> PageNodes:
        """The nodes with their pods."""
        before, self._before = self._before, None  # which is not kept alive
        return PageNodes(self.source, None if before is None else before.nodes)

    @cached_property
    def declared(self) -> Objects:
        """What pods are made from: the manifests; of a cluster its workloads."""
        cluster = self.source.cluster
        return self.nodes.objects if cluster is None else held_objects(cluster.declared())

    @cached_property
    def makers(self) -> dict[tuple[str, str], FoundWorkload]:
        """What can be patched, by kind and ``namespace/name``."""
        return {
            (workload.workload.kind, workload.workload.pod.key): workload
            for workload in self.declared.latest(warn=False)
        }

    @cached_property
    def quotas(self) -> Quotas:
        """The quotas of its namespaces, with what is used of them."""
        return Quotas(self.nodes.objects, self.nodes.profile)

    def node(self, name: str) -> PageNode:
        """Return the node of a name; where none is asked for, the one with pods that has least headroom."""
        nodes = self.nodes.nodes
        if name in nodes:
            return nodes[name]
        if name:
            raise InputError(f"no such node: {name}", fix="it may be gone: see the Cluster view")
        ranked = self.nodes_by_headroom()
        if not ranked:
            problem = next((node.problem for node in nodes.values() if node.problem), "")
            raise InputError(problem or "no pods to show", fix="" if problem else "give manifests with pods")
        return ranked[0]

    def nodes_by_headroom(self) -> list[PageNode]:
        """Return the nodes with pods, that with the least headroom first."""
        ranked = [(node.watched.headroom_bytes, node) for node in self.nodes.nodes.values() if node.watched is not None]
        return [node for _, node in sorted(ranked, key=itemgetter(0))]

    def state(self, node: PageNode) -> NodeState:
        """Return a node's pods; that of a node without any is empty."""
        if node.state is not None:
            return node.state
        memory = node.node.status.capacity.get(MEMORY) or node.node.status.allocatable.get(MEMORY)
        if node.problem or memory is None:
            raise InputError(node.problem or "it has no pods", where=node.name)
        cluster = self.source.cluster
        kubelet = self.nodes.kubelet if cluster is None else cluster.kubelet(node.name)
        return NodeState(Snapshot(NodeUsage(memory.value, name=node.name), ()), kubelet=kubelet)

    def places(self, node: PageNode) -> Places | None:
        """Return where the pods of a node stand; None where they are in no order."""
        if node.report is None and node.state is None and not node.problem:
            return Places({}, {}, {})
        return node.places

    def found(self, pod: str, node: str = "") -> tuple[PageNode | None, PodUsage, FoundWorkload]:
        """Return a pod with its node, if it has one, and the object that it is made from."""
        for at, entry in self._running.get(pod, ()):
            if not node or at.name == node:
                return at, entry, self.made_from(at, entry)
        nodes = [page_node for page_node in self.nodes.nodes.values() if not node or page_node.name == node]
        unranked = [(at, node_pod) for at in nodes for node_pod in at.unranked]
        for place, node_pod in (*unranked, *((None, each) for each in self.nodes.waiting)):
            if node_pod.pod.key == pod:
                return place, PodUsage(node_pod.pod, None, ()), self.nodes.workloads[node_pod.kind, node_pod.workload]
        where = f" on {node}" if node else ""
        raise InputError(f"no such pod: {pod}{where}", fix="it may be gone: see the Cluster view")

    def alike(self, at: PageNode, entry: PodUsage) -> Sequence[tuple[PageNode, PodUsage]]:
        """Return the pods of the same workload, on all nodes; a pod of its own is alone."""
        assert at.state is not None
        return self._by_workload.get(self.workload_of(at.state, entry.pod), [(at, entry)])

    def workload_of(self, state: NodeState, pod: Pod) -> str:
        """Return what a pod is a replica of, as ``Deployment shop/web``; empty where it is on its own."""
        kind, key = state.owners.get(pod.metadata.uid, (POD, ""))
        return owner(kind, key) or self.maker_of(pod)

    def maker_of(self, pod: Pod) -> str:
        """Return the workload that made a pod that runs: its Deployment or CronJob rather than a ReplicaSet or Job.

        Pods of a scenario are called after its workloads.
        """
        key = pod.key if self._workload_kinds else ""
        while "-" in key:
            key = key.rpartition("-")[0]
            if key in self._workload_kinds:
                return f"{self._workload_kinds[key]} {key}"
        *_, (kind, name) = ("", ""), *controllers(pod.metadata)
        return f"{kind} {pod.metadata.namespace}/{name}" if kind else ""

    @cached_property
    def _workload_kinds(self) -> dict[str, str]:
        """The kinds of a scenario's workloads by ``namespace/name``."""
        scenario = self.source.scenario
        workloads = () if scenario is None else scenario.workloads
        return {f"{workload.namespace or 'default'}/{workload.name}": workload.kind for workload in workloads}

    def made_from(self, at: PageNode, entry: PodUsage) -> FoundWorkload:
        """Return the object that a pod is read from: a pod that runs, or the workload of a manifest."""
        assert at.state is not None
        return self.nodes.workloads[at.state.owners[entry.pod.metadata.uid]]

    @cached_property
    def _running(self) -> dict[str, list[tuple[PageNode, PodUsage]]]:
        """The pods of all nodes by ``namespace/name``, which two nodes may share."""
        found: dict[str, list[tuple[PageNode, PodUsage]]] = {}
        for node in self.nodes.nodes.values():
            for entry in () if node.state is None else node.state.snapshot.pods:
                found.setdefault(entry.pod.key, []).append((node, entry))
        return found

    @cached_property
    def _by_workload(self) -> dict[str, list[tuple[PageNode, PodUsage]]]:
        found: dict[str, list[tuple[PageNode, PodUsage]]] = {}
        for node, entry in (each for of in self._running.values() for each in of):
            workload = "" if node.state is None else self.workload_of(node.state, entry.pod)
            if workload:
                found.setdefault(workload, []).append((node, entry))
        return found

    def requested(self, node: PageNode) -> Amounts:
        """Return what the pods of a node request together, as the scheduler counts."""
        if node.name not in self._requested:
            total: Amounts = {}
            for entry in () if node.state is None else node.state.snapshot.pods:
                for name, amount in demand_of(entry.pod, self.nodes.profile).requested.items():
                    total[name] = total.get(name, 0) + amount
            self._requested[node.name] = total
        return self._requested[node.name]

    @cached_property
    def views(self) -> dict[int, PodView]:
        """The pods of nodes as the scheduler sees them, by the identity of the pod, which the nodes keep."""
        made = Views(self.nodes.profile, self.nodes.objects.of(Service))
        return {
            id(entry.pod): made.of(replace(entry.pod, spec=replace(entry.pod.spec, node_name=name)))
            for name, node in self.nodes.nodes.items()
            for entry in (() if node.state is None else node.state.snapshot.pods)
        }

    def explained(self, found: FoundWorkload, at: PageNode | None) -> ExplanationList:
        """Return what ``podqos explain`` says of one workload on its node."""
        objects = self.nodes.objects.only([found])
        options = ExplainOptions(profile=self.nodes.profile, kubelet=self.nodes.kubelet)
        if at is not None and at.state is not None and at.report is not None:
            memory_bytes = at.state.snapshot.node.memory_bytes
            options = replace(options, node_memory_bytes=memory_bytes, kubelet=at.state.kubelet)
        explained = explain(objects, options)
        if not explained.items:
            first = next(iter(objects.problems), None)
            raise InputError("the API server would reject it" if first is None else str(first))
        return explained


def owner(kind: str, key: str) -> str:
    """Return the name of a workload; empty for a pod of its own."""
    return "" if kind == POD else f"{kind} {key}"
