"""Where pods land on nodes, which stay pending and why, which are preempted, and how full nodes get."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction

from msgspec import Struct, field
from msgspec.structs import replace

from podqos.admission.policies import AdmissionPlugin
from podqos.admission.relevance import Question
from podqos.answers.placement import PlacementReport, report
from podqos.errors import InvalidArgument, InvalidManifest
from podqos.manifest.problems import Problem, Severity
from podqos.model.assumption import Assumption
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import LABEL_HOSTNAME, PODS, Node, NodeSpec, NodeStatus
from podqos.model.pod import ObjectMeta, Pod, Workload
from podqos.model.policy import Namespace
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import ResourceList
from podqos.model.service import Service
from podqos.naming import naming
from podqos.objects.admitting import admitted_pod
from podqos.objects.assumptions import (
    FIRST_BY_NAME,
    KUBELET_SETTINGS,
    cluster_assumptions,
    without_policies,
)
from podqos.objects.kubelet_node import Kubelet, check_kubelet, chosen_kubelet, rules_of
from podqos.objects.objects import Objects
from podqos.placement import place as scheduler
from podqos.placement.allocatable import Allocatable, SoftCoverage, node_allocatable
from podqos.placement.declared_features import declared_by_default
from podqos.placement.outcome import Status
from podqos.placement.overcommit import DEFAULT_BUDGETS
from podqos.placement.place import PlacementSurroundings
from podqos.placement.workloads import POD, pods_of


class PlaceOptions(Struct, frozen=True, kw_only=True):
    """Settings of a placement."""

    node_count: int | None = None
    """How many nodes to add to those of the objects."""
    node_capacity: ResourceList = {}
    """What each of them has: cpu, memory, perhaps pods."""
    kubelet: Kubelet | None = None
    """Of all nodes; None: the one among the objects, or one with the kubelet's defaults."""
    unbind: bool = False
    """Whether pods that have a node are placed again."""
    budgets: Mapping[str, Fraction] = field(default_factory=lambda: DEFAULT_BUDGETS)
    """How much the limits of a node may add up to, in times its allocatable, by resource."""
    profile: Profile = LATEST
    admission_plugins: tuple[AdmissionPlugin, ...] = ()
    """Of the API server, enabled besides the default ones."""


def surroundings_of(objects: Objects, nodes: Iterable[Node], profile: Profile) -> PlacementSurroundings:
    """Return what the scheduler goes by besides the pods."""
    return PlacementSurroundings(
        tuple(nodes),
        {namespace.metadata.name: namespace.metadata.labels for namespace in objects.of(Namespace)},
        tuple(budget for _, budget in objects.disruption_budgets()),
        profile,
        objects.of(Service),
    )


class PlacementInput:
    """Pods and nodes to be placed."""

    def __init__(self, objects: Objects, options: PlaceOptions) -> None:
        self._objects = objects
        self._options = options
        # A directory may hold what belongs to several clusters.
        self._is_walked = any(source.scope is not None for source in objects.sources)
        self._kubelet = chosen_kubelet(objects, options.kubelet)
        self._config = None if self._kubelet is None else self._kubelet.config
        self._assumptions: list[Assumption] = [*rules_of(self._kubelet, options.profile)]
        self.nodes = tuple(self._nodes())
        self.pods: list[Pod] = []
        self._workloads: dict[str, str] = {}
        """The workload of each pod by the pod's key."""
        self._bare: set[str] = set()
        """The keys of pods that no controller would replace."""
        self._neighbours: set[str] = set()
        """The keys of pods that take their place and that the answer is not about."""
        self._surroundings = surroundings_of(objects, self.nodes, options.profile)
        self._admit()

    @property
    def config(self) -> KubeletConfiguration | None:
        """The settings of all kubelets; None where they are not known."""
        return self._config

    def place(self, progress: Callable[[int], None] | None = None) -> PlacementReport:
        """Place the pods; ``progress`` gets the number of pods placed now and then."""
        options = self._options
        placement = scheduler.place(self.pods, self._surroundings, bare=self._bare, progress=progress)
        whole = report(
            placement,
            self._workloads,
            options.budgets,
            _coverage(self.nodes, self._config),
            config=self._config,
            assumptions=(*self._assumptions, *without_policies(self._objects), *cluster_assumptions(self._objects)),
        )
        if _may_tie(whole):
            whole = replace(whole, assumptions=(*whole.assumptions, FIRST_BY_NAME))
        return self._about(whole) if self._neighbours else whole

    def _about(self, whole: PlacementReport) -> PlacementReport:
        """Return what is said about the pods that the answer is about; nodes are as full as with all."""
        pending = []
        for pending_report in whole.pending:
            pods = tuple(pod for pod in pending_report.pods if pod not in self._neighbours)
            if pods:
                workloads = tuple(dict.fromkeys(self._workloads[pod] for pod in pods))
                pending.append(replace(pending_report, pods=pods, workloads=workloads))
        return replace(
            whole,
            pods=tuple(pod for pod in whole.pods if f"{pod.namespace}/{pod.name}" not in self._neighbours),
            pending=tuple(pending),
            displaced=tuple(
                displacement for displacement in whole.displaced if displacement.pod not in self._neighbours
            ),
        )

    # ---- nodes -------------------------------------------------------------------------------------------------------

    def _nodes(self) -> Iterator[Node]:
        """Yield the nodes of the objects and those that were only counted."""
        given = self._objects.of(Node)
        if self._is_walked and len({node.name for node in given}) < len(given):
            what = "several Nodes have the same name; the last one counts"
            self._objects.note(Problem("Nodes", 0, 0, Severity.WARNING, "", what, "name one directory at a time"))
            given = tuple({node.name: node for node in given}.values())
        for node in given:
            if self._options.node_count is not None and not node.status.capacity and not node.status.allocatable:
                what = f"Node {node.name} has neither capacity nor allocatable, so it is left out"
                self._objects.note(Problem(f"Node {node.name}", 0, 0, Severity.WARNING, "status", what))
            else:
                yield self._with_allocatable(node)
        if self._options.node_count is not None:
            yield from self._counted_nodes(self._options.node_count)
        elif not given:
            raise InvalidArgument(
                "no nodes to place pods on",
                fix="add Node manifests with "
                + naming("files")
                + ", or "
                + naming("nodes", "10")
                + " "
                + naming("node_capacity", "cpu=16,memory=64Gi"),
            )

    def _with_allocatable(self, node: Node) -> Node:
        """Compute allocatable from capacity where the kubelet's settings are given or it is missing."""
        status, config = node.status, self._config
        if status.allocatable and (config is None or not status.capacity):
            return node
        if not status.capacity:
            raise InvalidManifest(
                f"Node {node.name} has neither capacity nor allocatable", where="status", fix="add status.capacity"
            )
        if config is None:
            pods = status.capacity.get(PODS)
            config = self._defaults(max_pods=pods.value if pods is not None else None)
        divided = self._divided(status.capacity, config)
        return replace(node, status=replace(status, allocatable={**status.allocatable, **divided.allocatable}))

    def _counted_nodes(self, count: int) -> Iterator[Node]:
        capacity = self._options.node_capacity
        config = self._defaults() if self._config is None else self._config
        if PODS in capacity:
            config = replace(config, max_pods=capacity[PODS].value)
        divided = self._divided(capacity, config)
        width = len(str(count))
        for number in range(1, count + 1):
            name = f"node-{number:0{width}}"
            yield Node(
                ObjectMeta(name, labels={LABEL_HOSTNAME: name}),
                NodeSpec(config.register_with_taints),
                NodeStatus(
                    divided.capacity,
                    divided.allocatable,
                    declared_features=declared_by_default(self._options.profile),
                ),
            )

    def _divided(self, capacity: ResourceList, config: KubeletConfiguration) -> Allocatable:
        """Divide a node as its kubelet does, which must be one that starts there."""
        kubelet = Kubelet(config, None if self._kubelet is None else self._kubelet.path)
        check_kubelet(kubelet, capacity, profile=self._options.profile)
        return node_allocatable(capacity, config)

    def _defaults(self, max_pods: int | None = None) -> KubeletConfiguration:
        """Return the kubelet's defaults, on which the answer then rests."""
        if KUBELET_SETTINGS not in self._assumptions:
            self._assumptions.append(KUBELET_SETTINGS)
        return KubeletConfiguration() if max_pods is None else KubeletConfiguration(max_pods=max_pods)

    # ---- pods --------------------------------------------------------------------------------------------------------

    def _admit(self) -> None:
        """Take all pods through admission."""
        objects, profile = self._objects, self._options.profile
        # A list of everything in a cluster holds controllers and the pods they have made already.
        pods_are_live = any(f.workload.is_live and f.workload.kind == POD for f in objects.workloads)
        for found in objects.latest():
            workload = found.workload
            if workload.is_live and workload.kind != POD and pods_are_live:
                continue
            plugins = self._options.admission_plugins
            pod = (
                workload.pod if workload.is_live else admitted_pod(found, objects, profile, Question.PLACEMENT, plugins)
            )
            if pod is None:
                continue
            if self._options.unbind and pod.spec.node_name:
                pod = replace(pod, spec=replace(pod.spec, node_name=""))
            for one in pods_of(replace(workload, pod=pod), self.nodes, profile=profile):
                made = self._named(one, workload)
                self.pods.append(made)
                self._workloads[made.key] = _owner(workload)
                if not objects.takes(found):
                    self._neighbours.add(made.key)
                if workload.kind == POD and not workload.metadata.generate_name:
                    self._bare.add(made.key)

    def _named(self, pod: Pod, workload: Workload) -> Pod:
        """Return a pod with a name of its own: made-up names may coincide, and so may those of several clusters."""
        made, number = pod, 1
        is_made_up = workload.kind != POD or not workload.metadata.name
        while made.key in self._workloads and (is_made_up or self._is_walked):
            number += 1
            made = replace(pod, metadata=replace(pod.metadata, name=f"{pod.metadata.name}-{number}"))
        return made


def _may_tie(whole: PlacementReport) -> bool:
    """Whether a pod had several equally good nodes, which is not looked at in large clusters."""
    if any(pod.scores for pod in whole.pods):
        return any(pod.equally_good for pod in whole.pods)
    return len(whole.nodes) > 1 and any(pod.status is Status.PLACED for pod in whole.pods)


def _coverage(nodes: Iterable[Node], config: KubeletConfiguration | None) -> tuple[SoftCoverage, ...]:
    """Return, once per kind of node, whether pods stay clear of the soft thresholds."""
    if config is None or not config.eviction_soft:
        return ()
    kinds = {tuple(sorted(node.status.capacity.items())): node.status.capacity for node in nodes}
    found = (coverage for capacity in kinds.values() for coverage in node_allocatable(capacity, config).soft_coverage)
    return tuple(dict.fromkeys(found))


def _owner(workload: Workload) -> str:
    """Name what a pod belongs to. Controllers generate the names of their pods from a prefix."""
    made_up = workload.metadata.generate_name
    return f"{workload.kind}/{made_up}*" if made_up else f"{workload.kind}/{workload.metadata.name}"
