"""The cluster view: nodes as panels, pods as blocks in the order in which they go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from enum import StrEnum
from functools import cached_property
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.policies import NamespacePolicies
from podqos.admission.quota import check_quotas
from podqos.admission.refusal import forbidden_pod
from podqos.admission.relevance import Question
from podqos.admission.workloads import Admissions, WorkloadAdmission
from podqos.agent.journal import By
from podqos.amounts import counted, mebibytes
from podqos.errors import InputError
from podqos.eviction.signals import Signal
from podqos.manifest.encoding import json_line
from podqos.manifest.problems import Problem, Severity
from podqos.model.assumption import Assumption
from podqos.model.node import LABEL_HOSTNAME, Node, NodeSpec, NodeStatus
from podqos.model.owners import controllers
from podqos.model.pod import TERMINAL_PHASES, ObjectMeta, Pod, QOSClass
from podqos.model.policy import ResourceQuota
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY
from podqos.model.service import Service
from podqos.model.snapshot import ContainerUsage, NodeUsage, PodUsage, Snapshot
from podqos.model.stats import ContainerStats, MemoryStats, PodReference, PodStats
from podqos.naming import published
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.held import held_objects
from podqos.objects.kubelet_node import DEFAULT_KUBELET, Kubelet, kubelets_among
from podqos.objects.kubelet_settings import memory_allocatable
from podqos.objects.node_pods import node_pods
from podqos.objects.objects import FoundWorkload, Objects
from podqos.orders.pods import NodePod
from podqos.orders.usage import UsageRow
from podqos.page.pod import Places
from podqos.page.session import GuardPanel, PageSource
from podqos.placement.allocatable import node_allocatable
from podqos.placement.node_rules import declared_by_default
from podqos.placement.pods import Amounts, PodView, Views, demand_of
from podqos.placement.workloads import POD
from podqos.questions.admit import policies_for
from podqos.questions.explain import ExplanationList, explain
from podqos.questions.forecast import CurvePoint
from podqos.questions.node import (
    NodeState,
    NoPods,
    WatchedMemory,
    cluster_state,
    node_state,
    usage_by_node,
    watched_memory,
)
from podqos.questions.overview import NodeOverview
from podqos.questions.rank import RankReport, rank
from podqos.sim.blast import BlastPods, nodes_now
from podqos.sim.scenario.scenario import Scenario


class NodePanel(NodeOverview, frozen=True, rename="camel"):
    """A node: what it has, what pods take of it, how near it is to running out, and which pod is next."""

    memory_bytes: int = 0
    """All of its memory."""
    used_bytes: int | None = None
    """By pods and system together: measured, or taken to be what pods request; null where there are no pods."""
    threshold_bytes: int = 0
    """The kubelet evicts once no more than this is available."""
    is_assumed: bool = False
    """Whether no such node is known: all pods are taken to run on one."""
    reversed_pairs: int = 0
    """How many pairs of pods kubelet and kernel take in opposite orders."""


class PodBlock(Struct, frozen=True, gc=False, rename="camel"):
    """A pod, with what decides when it goes."""

    namespace: str
    name: str
    node: str
    """Empty where it has none, or where all pods are taken to run on one that is not named."""
    workload: str
    """``Deployment shop/web`` for a replica; empty for a pod of its own."""
    qos_class: QOSClass
    priority: int
    requested_bytes: int
    limit_bytes: int | None
    """Null where a container has no limit of memory."""
    used_bytes: int | None
    """Null where nothing is known."""
    oom_score_adj: int | None
    """Of the container that the kernel kills first; null on Windows, and where the pod is in no order."""
    eviction_place: int | None
    """On its node, 1 goes first; null where the pod is in no order."""
    kill_place: int | None
    """Among the pods of its node, by its first container."""
    spared: str | None
    """Why the kubelet does not evict it."""
    active_cache_bytes: int = 0
    """Page cache that counts as used, although the kernel can reclaim it."""
    inactive_cache_bytes: int = 0
    """Page cache that does not count as used."""


class TileKind(StrEnum):
    """How a figure is to be taken."""

    CALM = ""
    WARNED = "warned"
    ALARM = "alarm"


class ClusterTile(Struct, frozen=True):
    """A figure on top of the view."""

    value: str
    name: str
    """What it counts."""
    note: str
    """What it leaves out or means."""
    kind: TileKind


class NextDeath(Struct, frozen=True, gc=False, rename="camel"):
    """The next pod to die on a node, as far as slow growth decides who acts first."""

    node: str
    pod: str
    by: By
    headroom_bytes: int
    """Until the kubelet evicts, or the kernel kills; negative where that is due."""
    explanation: str
    """Why it: a clause that follows "is evicted first:" or "is OOM-killed first:"."""
    is_assumed: bool = False
    """Whether what it uses is assumed."""
    qos_class: QOSClass | None = None


class ClusterView(Struct, frozen=True, rename="camel"):
    """Everything that the cluster view shows."""

    name: str
    """Of the source."""
    kubernetes_version: str
    taken_at: str
    """When, in RFC 3339; empty where that is not known."""
    nodes: tuple[NodePanel, ...]
    """Least headroom first."""
    pods: tuple[PodBlock, ...]
    """Node by node, in the kubelet's order; those without a node last."""
    classes: dict[str, int]
    """Pods by class."""
    tiles: tuple[ClusterTile, ...] = ()
    """The figures of the whole cluster."""
    notes: tuple[str, ...] = ()
    """What is wrong with the source."""
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""
    guard: GuardPanel | None = None
    """The guard that this is seen through."""
    next_deaths: tuple[NextDeath, ...] = ()
    """The next to die, on the ten nodes with the least headroom; the first is on the node that the answer is about."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "ClusterView"


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
        return None if self.state is None else watched_memory(self.state)

    @cached_property
    def report(self) -> RankReport | None:
        """Both orders; None where there are none, and then ``problem`` says why."""
        if self.state is None:
            return None
        try:
            return rank(self.state, remedies=False)
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
            state = NodeState(
                Snapshot(machine, pods),
                kubelet=Kubelet(spec.config, scenario.name),
                owners=owners,
                profile=scenario.profile,
            )
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
        state = node_state(objects, usage, node=name, node_memory_bytes=stated_bytes, profile=self.profile)
        if not is_assumed:
            return state
        if stated_bytes is None and state.used_bytes >= state.snapshot.node.memory_bytes:
            memory_bytes = 1 << (state.used_bytes * 5 // 4).bit_length()
            large = Assumption("node memory", mebibytes(memory_bytes), "a Node with its capacity")
            state = node_state(objects, usage, node=name, node_memory_bytes=memory_bytes, profile=self.profile)
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
    allocatable = memory_allocatable(
        state.kubelet.config, {Signal.MEMORY: state.snapshot.node.memory_bytes}
    ).allocatable
    return replace(status, allocatable={**status.capacity, **allocatable})


# The figures on top of the view: one that leaves something out says so, and none looks calm that is not. A sum of
# limits says nothing about pods without a limit, and what is assumed was not measured.


def cluster_tiles(nodes: Sequence[NodePanel], pods: Sequence[PodBlock]) -> tuple[ClusterTile, ...]:
    """Return the figures of a cluster."""
    allocatable = sum(node.memory.allocatable for node in nodes)
    tiles = [_node_tile(nodes), _pod_tile(nodes, pods)]
    if any(node.pods for node in nodes):
        tiles.append(_evicting_tile(nodes))
    if allocatable > 0:
        tiles.append(_requested_tile(nodes, pods, allocatable))
    if any(pod.limit_bytes is None for pod in pods) or (allocatable > 0 and pods):
        tiles.append(_limits_tile(nodes, pods, allocatable))
    ranked = [node for node in nodes if node.next_evicted is not None or node.next_killed is not None]
    return (*tiles, *((_victims_tile(ranked),) if ranked else ()))


def _tile(value: str, name: str, notes: Sequence[str], *, warned: bool = False, alarm: bool = False) -> ClusterTile:
    kind = TileKind.ALARM if alarm else TileKind.WARNED if warned else TileKind.CALM
    return ClusterTile(value, name, ", ".join(filter(None, notes)), kind)


def _node_tile(nodes: Sequence[NodePanel]) -> ClusterTile:
    troubled = sum(bool(node.conditions) for node in nodes)
    unranked = sum(node.pods > 0 and node.next_evicted is None and node.next_killed is None for node in nodes)
    notes = [
        f"{troubled:,} with conditions" if troubled else "",
        f"{unranked:,} without a kill order" if unranked else "",
    ]
    name = f"node{'' if len(nodes) == 1 else 's'}{' (assumed)' if any(node.is_assumed for node in nodes) else ''}"
    return _tile(f"{len(nodes):,}", name, notes, warned=bool(troubled or unranked))


def _pod_tile(nodes: Sequence[NodePanel], pods: Sequence[PodBlock]) -> ClusterTile:
    crowded = [node for node in nodes if node.most_pods is not None and node.pods > node.most_pods]
    waiting = 0 if any(node.is_assumed for node in nodes) else sum(not pod.node for pod in pods)
    best_effort = sum(pod.qos_class == "BestEffort" for pod in pods)
    over = f"{len(crowded):,} nodes have more than they can run"
    if len(crowded) == 1:
        [node] = crowded
        over = f"{node.name or 'the node'} has {node.pods:,}, but can run only {node.most_pods:,}"
    notes = [
        over if crowded else "",
        f"{waiting:,} not scheduled" if waiting else "",
        f"{best_effort:,} BestEffort" if best_effort or not (crowded or waiting) else "",
    ]
    name = "pod" if len(pods) == 1 else "pods"
    return _tile(f"{len(pods):,}", name, notes, warned=bool(waiting), alarm=bool(crowded))


def _evicting_tile(nodes: Sequence[NodePanel]) -> ClusterTile:
    known = [node for node in nodes if node.headroom_bytes is not None]
    if not known:
        return _tile("–", "nodes evicting", ["usage is not known"], warned=True)
    past = [node for node in known if (node.headroom_bytes or 0) < 0]
    about = past or known
    assumed = sum(not node.is_measured for node in about)
    unknown = sum(node.pods > 0 for node in nodes if node.headroom_bytes is None)
    is_all = "usage is assumed" if assumed == len(about) else f"usage of {assumed:,} is assumed"
    notes = [
        "past the eviction threshold" if past else "",
        is_all if assumed else "",
        f"{unknown:,} not known" if unknown else "",
    ]
    what = "evicting" if assumed < len(past) or not past else "over the threshold"
    name = f"node{'' if len(past) == 1 else 's'} {what}"
    return _tile(f"{len(past):,}", name, notes, warned=bool(unknown), alarm=bool(past))


def _requested_tile(nodes: Sequence[NodePanel], pods: Sequence[PodBlock], allocatable: int) -> ClusterTile:
    share = sum(node.memory.requests for node in nodes) / allocatable
    without = sum(pod.requested_bytes == 0 for pod in pods)
    beyond = [node for node in nodes if node.memory.allocatable and node.memory.requests > node.memory.allocatable]
    where = "" if len(nodes) == 1 else f" on {counted(len(beyond), 'node')}"
    none = f"{without:,} of {counted(len(pods), 'pod')} {'requests' if without == 1 else 'request'} none"
    notes = [f"of {_about(allocatable)} allocatable", f"does not fit{where}" if beyond else "", none if without else ""]
    return _tile(f"{round(share * 100)} %", "memory requested", notes, alarm=bool(beyond))


def _limits_tile(nodes: Sequence[NodePanel], pods: Sequence[PodBlock], allocatable: int) -> ClusterTile:
    without = sum(pod.limit_bytes is None for pod in pods)
    ratio = sum(node.memory.limits for node in nodes) / allocatable if allocatable > 0 else 0.0
    # One decimal must not hide that there is more than one, nor read as none at all.
    times = "<0.1×" if 0 < ratio < 0.05 else f"{ratio:.2f}×" if 1 < ratio < 1.05 else f"{ratio:.1f}×"
    if not without:
        is_over = ratio > 1
        return _tile(times, "memory limits", ["overcommitted" if is_over else "not overcommitted"], warned=is_over)
    note = f"of {len(pods):,}{f'; limits of the others: {times} allocatable' if allocatable > 0 else ''}"
    if without == len(pods):
        note = "nothing but the node's memory stops them"
    return _tile(f"{without:,}", f"pod{'' if without == 1 else 's'} without a memory limit", [note], warned=True)


def _victims_tile(ranked: Sequence[NodePanel]) -> ClusterTile:
    firsts = [[victim and victim.pod for victim in (node.next_evicted, node.next_killed)] for node in ranked]
    differ = sum(evicted != killed for evicted, killed in firsts)
    different, same = "kubelet and kernel choose different pods", "kubelet and kernel choose the same pod"
    if len(ranked) > 1:
        name = f"of {counted(len(ranked), 'node')}: evicted and OOM-killed first differ"
        return _tile(f"{differ:,}", name, [different if differ else same])
    if differ:
        return _tile("2", "first victims", [different])
    is_reversed = ranked[0].reversed_pairs
    return _tile("1", "first victim", ["the orders differ further down" if is_reversed else "kubelet and kernel agree"])


def _about(count: int) -> str:
    """Return about how much: 19.5Gi."""
    for power, name in ((40, "Ti"), (30, "Gi")):
        if count >= 1 << power:
            return f"{round(count / (1 << power), 1):g}{name}"
    return f"{round(count / (1 << 20)):g}Mi"


Key = tuple[str, str]


class Charged(Struct, frozen=True):
    """A workload with its edits."""

    found: FoundWorkload
    """As it is then."""
    pods: Sequence[tuple[Pod, Pod]]
    """Its pods that run, before and after."""


class Quotas:
    """The quotas of a source."""

    def __init__(self, objects: Objects, profile: Profile) -> None:
        self._objects = objects
        self._profile = profile
        self._known: dict[tuple[str, ...], NamespacePolicies] = {}
        self._before: dict[str, Mapping[Key, WorkloadAdmission]] = {}

    def check(self, edits: Sequence[Charged]) -> tuple[str, ...]:
        """Return which other workloads a quota refuses because of the edits; raise ``InputError`` for an edited one."""
        if not self._objects.of(ResourceQuota):
            return ()
        for edit in edits:
            if edit.found.workload.is_stored:
                self._check_running(edit)
        written = {_key(edit.found): edit.found for edit in edits if not edit.found.workload.is_live}
        namespaces = dict.fromkeys(workload.workload.metadata.namespace for workload in written.values())
        return tuple(words for namespace in namespaces for words in self._check_written(namespace, written))

    def _check_running(self, edit: Charged) -> None:
        found, pods = edit.found, edit.pods
        policies = self._policies(found).of(found.workload.metadata.namespace)
        if not policies.resource_quotas or not pods:
            return
        quotas: tuple[ResourceQuota, ...] = policies.resource_quotas
        for done, (old, new) in enumerate(pods):
            decision = check_quotas(new, quotas, old)
            if decision.denied is not None:
                raise _refused(forbidden_pod(new, decision.denied).message, done, len(pods))
            quotas = decision.quotas

    def _check_written(self, namespace: str, written: Mapping[Key, FoundWorkload]) -> list[str]:
        if not any(quota.metadata.namespace == namespace for quota in self._objects.of(ResourceQuota)):
            return []
        if namespace not in self._before:
            self._before[namespace] = self._admitted(namespace, {})
        before, notes = self._before[namespace], []
        for key, after in self._admitted(namespace, written).items():
            if after.refusal is None or after.admitted >= before[key].admitted:
                continue
            if key in written:
                raise _refused(after.refusal.message, after.admitted, after.pods)
            notes.append(f"{' '.join(key)} is then rejected: {after.refusal.message}")
        return notes

    def _admitted(self, namespace: str, written: Mapping[Key, FoundWorkload]) -> dict[Key, WorkloadAdmission]:
        """Create all workloads of a namespace, some of them edited."""
        admissions = Admissions(self._objects.cluster(), self._profile, Question.SURVIVAL)
        made = {}
        for found in self._objects.latest(warn=False):
            if found.workload.metadata.namespace == namespace and not found.workload.is_live:
                now = written.get(_key(found), found)
                made[_key(found)] = admissions.create(now.workload, self._policies(found))
        return made

    def _policies(self, found: FoundWorkload) -> NamespacePolicies:
        scopes = self._objects.scopes(found.source)
        if scopes not in self._known:
            self._known[scopes] = policies_for(self._objects, found.source)
        return self._known[scopes]


def _key(found: FoundWorkload) -> Key:
    return found.workload.kind, found.workload.pod.key


def _refused(message: str, admitted: int, pods: int) -> InputError:
    room = f"room for {admitted} of {counted(pods, 'pod')}" if pods > 1 else ""
    return InputError(message, fix=room)


class Riskiest(Struct, frozen=True):
    """The container whose growth is worst."""

    node: str
    growing: str
    """``namespace/name:container``."""
    text: str
    """Why it was chosen."""


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
        machine = NodeUsage(memory.value, name=node.name)
        return NodeState(Snapshot(machine, ()), kubelet=kubelet or DEFAULT_KUBELET, profile=self.nodes.profile)

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
        memory_bytes, kubelet = None, self.nodes.kubelet
        if at is not None and at.state is not None and at.report is not None:
            memory_bytes, kubelet = at.state.snapshot.node.memory_bytes, at.state.known_kubelet
        explained = explain(objects, node_memory_bytes=memory_bytes, kubelet=kubelet, profile=self.nodes.profile)
        if not explained.items:
            first = next(iter(objects.problems), None)
            raise InputError("the API server would reject it" if first is None else str(first))
        return explained


def owner(kind: str, key: str) -> str:
    """Return the name of a workload; empty for a pod of its own."""
    return "" if kind == POD else f"{kind} {key}"
