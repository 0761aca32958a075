"""``podqos place``: where pods land on nodes, which stay pending and why, how full nodes get, how much more fits.

The decisions are the scheduler's (``placement``). The classes below are the documented JSON shape: fields are added,
never renamed or removed, and ``docs/schema/place.json`` is made from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.relevance import Question
from podqos.amounts import counted, mebibytes
from podqos.errors import InvalidArgument, InvalidManifest
from podqos.manifest.problems import Problem, Severity
from podqos.model.assumption import Assumption
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.listing import Listing
from podqos.model.node import LABEL_HOSTNAME, PODS, Node, NodeSpec, NodeStatus
from podqos.model.pod import ObjectMeta, Pod, QOSClass, Workload
from podqos.model.policy import Namespace
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceList
from podqos.model.service import Service
from podqos.naming import naming, stated_with
from podqos.objects.admitting import admitted_pod
from podqos.objects.assumptions import FIRST_BY_NAME, KUBELET_SETTINGS, cluster_assumptions, without_policies
from podqos.objects.kubelet_node import Kubelet, check_kubelet, chosen_kubelet, rules_of
from podqos.objects.objects import Objects
from podqos.placement import place as scheduler
from podqos.placement.allocatable import Allocatable, SoftCoverage, node_allocatable
from podqos.placement.node_rules import declared_by_default
from podqos.placement.overcommit import (
    DEFAULT_BUDGETS,
    ClassCeilings,
    Overcommit,
    class_ceilings,
    largest_shares,
    overcommit,
)
from podqos.placement.place import Displacement, Placement, PlacementSurroundings, Status, affinity_waits
from podqos.placement.pods import Amounts, SchedulerNode, demand_of
from podqos.placement.pods import counted as amounts_of
from podqos.placement.reasons import Reason
from podqos.placement.schedule import NodeScore
from podqos.placement.workloads import POD, pods_of
from podqos.text.placement import amount_text, reason_words, refusal_message, rounded_amount
from podqos.text.style import Style, columns, wrapped
from podqos.text.tables import Table

# Reasons are computed, and listed node by node, for so many pairs of a kind of pending pod and a node.
_MESSAGES_UP_TO = 500_000
_REASONS_UP_TO = 100_000
_LARGEST_SHARES = 5
_MOST_ROOM = 1000
"""How many more pods are tried."""
_WITHOUT_ROOM = ("DaemonSet/", "Job/", "CronJob/")
"""Workloads that nobody scales."""
_ROOM_UP_TO = 200_000
"""Pods that are tried × nodes."""

# ---- the answer ------------------------------------------------------------------------------------------------------


class OvercommitReport(Struct, frozen=True, rename="camel"):
    """One resource of one node: the three ratios, and the pods behind them."""

    limits: str
    limits_to_allocatable: float | None
    limits_to_requests: float | None
    others_limits_to_what_guaranteed_leave: float | None
    budget: float | None
    """For limits to allocatable."""
    exceeds_budget: bool
    pods_without_limit: int
    largest_beyond_request: dict[str, str] = {}
    """Where the budget is exceeded: the pods whose limits exceed their requests most, and by how much."""
    guaranteed_leave: str = ""
    """Allocatable less what Guaranteed pods request."""


class NodeReport(Struct, frozen=True, rename="camel"):
    """One node with all its pods."""

    name: str
    pods: int
    allowed_pods: int
    allocatable: dict[str, str]
    requested: dict[str, str]
    fullness: dict[str, float]
    """Requested against allocatable."""
    overcommit: dict[str, OvercommitReport]
    memory_ceilings: dict[str, str] = {}
    """With ``qosReserved``: what the pods of a class may use together, by class."""
    remaining: dict[str, str] = {}
    """Allocatable less requested: what is left to place. Negative where pods were bound to a node that is full."""


class PodReport(Struct, frozen=True, gc=False, rename="camel"):
    """Where one pod is placed."""

    namespace: str
    name: str
    workload: str
    """``Deployment/web``; for a bare pod ``Pod/web``."""
    status: Status
    node: str | None
    scores: tuple[NodeScore, ...] = ()
    """Of every node that would have done when the pod was placed, by name; empty for bound pods and large clusters."""
    equally_good: tuple[str, ...] = ()
    """The nodes with the highest score, if several: podqos takes the first, the real scheduler picks at random."""


class NodeReasons(Struct, frozen=True):
    """Why one node refuses a pod."""

    node: str
    reasons: tuple[Reason, ...]


class PendingReport(Struct, frozen=True, rename="camel"):
    """Pods that are pending for the same reason."""

    pods: tuple[str, ...]
    workloads: tuple[str, ...]
    message: str | None
    """What the scheduler would say; null if not computed because there are too many."""
    nodes: tuple[NodeReasons, ...]
    """Empty if there are too many."""
    waits_for: tuple[str, ...] = ()
    """Pending pods that their affinity requires."""
    circle: tuple[str, ...] = ()
    """Pods of which each waits for the next, and the last for the first."""
    nobody_matches: bool = False
    """Their affinity matches no pod."""


class Room(Struct, frozen=True, rename="camel"):
    """How many more pods of the largest workload find a node beside all others, without preempting any."""

    workload: str
    """``Deployment production/web``."""
    more: int
    is_at_least: bool
    """Whether more than that were not tried."""


class PlacementReport(Listing[PodReport], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos place -o json``."""

    nodes: tuple[NodeReport, ...]
    pods: tuple[PodReport, ...]
    pending: tuple[PendingReport, ...]
    displaced: tuple[Displacement, ...]
    soft_thresholds: tuple[SoftCoverage, ...]
    """Those that pods within their allocatable can meet."""
    kubernetes_version: str
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Placement"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""
    room: Room | None = None
    """Null without workloads that could have more pods, and in large clusters."""

    def _listed(self) -> tuple[PodReport, ...]:
        return self.pods


# ---- the rule --------------------------------------------------------------------------------------------------------


def place(
    objects: Objects,
    *,
    node_count: int | None = None,
    node_capacity: ResourceList | None = None,
    kubelet: Kubelet | None = None,
    unbind: bool = False,
    budgets: Mapping[str, Fraction] = DEFAULT_BUDGETS,
    profile: Profile = LATEST,
) -> PlacementReport:
    """Return where the pods of all workloads land; new ones go through admission first, without quotas.

    ``node_count`` nodes with ``node_capacity`` (cpu, memory, perhaps pods) are added to those of the objects.
    ``kubelet`` is that of all nodes, by default the one among the objects, or one with the kubelet's defaults.
    ``unbind``: pods that have a node are placed again. ``budgets`` are how much the limits of a node may add up to, in
    times its allocatable, by resource.

    Workloads that the API server would not store are left out, and are among the problems of the objects. Raises
    InputError where there are no nodes.
    """
    return PlacementInput(
        objects,
        node_count=node_count,
        node_capacity=node_capacity,
        kubelet=kubelet,
        unbind=unbind,
        budgets=budgets,
        profile=profile,
    ).place()


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

    def __init__(
        self,
        objects: Objects,
        *,
        node_count: int | None = None,
        node_capacity: ResourceList | None = None,
        kubelet: Kubelet | None = None,
        unbind: bool = False,
        budgets: Mapping[str, Fraction] = DEFAULT_BUDGETS,
        profile: Profile = LATEST,
    ) -> None:
        """Take pods through admission, and count nodes; see ``place``."""
        self._objects = objects
        self._node_count, self._node_capacity = node_count, node_capacity or {}
        self._budgets, self._profile, self._unbind = budgets, profile, unbind
        # A directory may hold what belongs to several clusters.
        self._is_walked = any(source.scope is not None for source in objects.sources)
        self._kubelet = chosen_kubelet(objects, kubelet)
        self._config = None if self._kubelet is None else self._kubelet.config
        self._assumptions: list[Assumption] = [*rules_of(self._kubelet, profile)]
        self.nodes = tuple(self._nodes())
        self.pods: list[Pod] = []
        # By the keys of pods: their workloads, those that no controller would replace, and those not asked about.
        self._workloads: dict[str, str] = {}
        self._bare: set[str] = set()
        self._neighbours: set[str] = set()
        self._surroundings = surroundings_of(objects, self.nodes, profile)
        self._admit()

    @property
    def config(self) -> KubeletConfiguration | None:
        """The settings of all kubelets; None where they are not known."""
        return self._config

    def place(self, progress: Callable[[int], None] | None = None) -> PlacementReport:
        """Place the pods; ``progress`` gets the number of pods placed now and then."""
        placement = scheduler.place(self.pods, self._surroundings, bare=self._bare, progress=progress)
        whole = _report(
            placement,
            self._workloads,
            self._budgets,
            _coverage(self.nodes, self._config),
            config=self._config,
            assumptions=(*self._assumptions, *without_policies(self._objects), *cluster_assumptions(self._objects)),
        )
        whole = replace(whole, room=self._room(placement))
        # Which of several equally good nodes a pod gets is not looked at in large clusters.
        ties = [pod for pod in whole.pods if pod.scores] or [pod for pod in whole.pods if pod.status is Status.PLACED]
        if any(pod.equally_good or (not pod.scores and len(whole.nodes) > 1) for pod in ties):
            whole = replace(whole, assumptions=(*whole.assumptions, FIRST_BY_NAME))
        return self._about(whole) if self._neighbours else whole

    def _room(self, placement: Placement) -> Room | None:
        """Return how many more pods of the largest workload fit beside those that have a node."""
        own = (pod for pod in self.pods if pod.key not in self._neighbours)
        several = (pod for pod in own if not self._workloads[pod.key].startswith(_WITHOUT_ROOM))
        pod = max(several, key=self._share, default=None)
        if pod is None or not self._share(pod):
            return None
        requests = [(name, of) for name, of in demand_of(pod, self._profile).requested.items() if of]
        tried = 0
        for state in placement.cluster.states:
            left = ((state.allocatable.get(name, 0) - state.requested.get(name, 0)) // of for name, of in requests)
            tried += max(0, min(state.allowed_pods - len(state.pods), *left))
        tried = min(tried, _MOST_ROOM)
        if tried * len(self.nodes) > _ROOM_UP_TO:
            return None
        homes = {outcome.pod: outcome.node for outcome in placement.outcomes if outcome.node is not None}
        placed = [replace(each, spec=replace(each.spec, node_name=homes.get(each.key, ""))) for each in self.pods]
        spec = replace(pod.spec, node_name="", preemption_policy="Never")
        more = [
            replace(pod, metadata=replace(pod.metadata, name=f"{pod.metadata.name}-more-{number}", uid=""), spec=spec)
            for number in range(tried)
        ]
        keys = {each.key for each in more}
        found = scheduler.place([*(each for each in placed if each.spec.node_name), *more], self._surroundings)
        count = sum(each.pod in keys and each.status is Status.PLACED for each in found.outcomes)
        kind, _, name = self._workloads[pod.key].partition("/")
        return Room(f"{kind} {pod.metadata.namespace_or_default}/{name}", count, is_at_least=count == _MOST_ROOM)

    def _share(self, pod: Pod) -> Fraction:
        """Return the largest share that a pod requests of what all nodes have."""
        requested = demand_of(pod, self._profile).requested
        every = [amounts_of(node.status.allocatable) for node in self.nodes]
        return max(
            Fraction(requested.get(name, 0), max(1, sum(of.get(name, 0) for of in every))) for name in (CPU, MEMORY)
        )

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
            if self._node_count is not None and not node.status.capacity and not node.status.allocatable:
                what = f"Node {node.name} has neither capacity nor allocatable, so it is left out"
                self._objects.note(Problem(f"Node {node.name}", 0, 0, Severity.WARNING, "status", what))
            else:
                yield self._with_allocatable(node)
        if self._node_count is not None:
            yield from self._counted_nodes(self._node_count)
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
        capacity = self._node_capacity
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
                    declared_features=declared_by_default(self._profile),
                ),
            )

    def _divided(self, capacity: ResourceList, config: KubeletConfiguration) -> Allocatable:
        """Divide a node as its kubelet does, which must be one that starts there."""
        kubelet = Kubelet(config, None if self._kubelet is None else self._kubelet.path)
        check_kubelet(kubelet, capacity, profile=self._profile)
        return node_allocatable(capacity, config)

    def _defaults(self, max_pods: int | None = None) -> KubeletConfiguration:
        """Return the kubelet's defaults, on which the answer then rests."""
        if KUBELET_SETTINGS not in self._assumptions:
            self._assumptions.append(KUBELET_SETTINGS)
        return KubeletConfiguration() if max_pods is None else KubeletConfiguration(max_pods=max_pods)

    # ---- pods --------------------------------------------------------------------------------------------------------

    def _admit(self) -> None:
        """Take all pods through admission."""
        objects, profile = self._objects, self._profile
        # A list of everything in a cluster holds controllers and the pods they have made already.
        pods_are_live = any(f.workload.is_live and f.workload.kind == POD for f in objects.workloads)
        for found in objects.latest():
            workload = found.workload
            if workload.is_live and workload.kind != POD and pods_are_live:
                continue
            pod = workload.pod if workload.is_live else admitted_pod(found, objects, profile, Question.PLACEMENT)
            if pod is None:
                continue
            if self._unbind and pod.spec.node_name:
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


def _report(
    placement: Placement,
    workloads: Mapping[str, str],
    budgets: Mapping[str, Fraction],
    coverage: tuple[SoftCoverage, ...] = (),
    *,
    config: KubeletConfiguration | None = None,
    assumptions: tuple[Assumption, ...] = (),
) -> PlacementReport:
    """Collect the results. ``workloads`` names the workload of every pod by the pod's key."""
    profile = placement.cluster.profile
    return PlacementReport(
        nodes=tuple(
            _node(state, budgets, None if config is None else class_ceilings(state, config, profile))
            for state in placement.cluster.states
        ),
        pods=tuple(_pod(outcome, workloads, placement.scores.get(outcome.pod, ())) for outcome in placement.outcomes),
        pending=tuple(_pending(placement, workloads)),
        displaced=placement.displacements,
        soft_thresholds=tuple(soft_coverage for soft_coverage in coverage if not soft_coverage.is_covered),
        kubernetes_version=profile.version_text,
        assumptions=assumptions,
    )


def _node(state: SchedulerNode, budgets: Mapping[str, Fraction], ceilings: ClassCeilings | None) -> NodeReport:
    ratios = overcommit(state, budgets)
    return NodeReport(
        name=state.name,
        pods=len(state.pods),
        allowed_pods=state.allowed_pods,
        allocatable=_texts(state.allocatable),
        requested=_texts(state.requested),
        fullness={ratio.resource: _float(ratio.fullness) or 0.0 for ratio in ratios},
        overcommit={ratio.resource: _overcommit(ratio, state) for ratio in ratios},
        memory_ceilings={}
        if ceilings is None
        else {
            QOSClass.BURSTABLE: amount_text(MEMORY, ceilings.burstable_bytes),
            QOSClass.BEST_EFFORT: amount_text(MEMORY, ceilings.best_effort_bytes),
        },
        remaining=_texts({name: of - state.requested.get(name, 0) for name, of in state.allocatable.items()}),
    )


def _overcommit(ratio: Overcommit, state: SchedulerNode) -> OvercommitReport:
    shares = largest_shares(state, ratio.resource)[:_LARGEST_SHARES] if ratio.exceeds_budget else []
    return OvercommitReport(
        limits=amount_text(ratio.resource, ratio.limits),
        limits_to_allocatable=_float(ratio.limits_to_allocatable),
        limits_to_requests=_float(ratio.limits_to_requests),
        others_limits_to_what_guaranteed_leave=_float(ratio.others_to_rest),
        budget=_float(ratio.budget),
        exceeds_budget=ratio.exceeds_budget,
        pods_without_limit=len(ratio.unlimited),
        largest_beyond_request={share.pod: amount_text(ratio.resource, share.beyond_request) for share in shares},
        guaranteed_leave=amount_text(ratio.resource, ratio.remaining),
    )


def _pod(outcome: scheduler.Outcome, workloads: Mapping[str, str], scores: tuple[NodeScore, ...]) -> PodReport:
    namespace, _, name = outcome.pod.partition("/")
    workload = workloads.get(outcome.pod, f"Pod/{name}")
    highest = max((score.total for score in scores), default=0)
    best = tuple(score.node for score in scores if score.total == highest)
    equally_good = best if len(best) > 1 else ()
    return PodReport(namespace, name, workload, outcome.status, outcome.node, scores, equally_good)


def _pending(placement: Placement, workloads: Mapping[str, str]) -> Iterator[PendingReport]:
    waits = {wait.pod: wait for wait in affinity_waits(placement)}
    nodes = max(1, len(placement.cluster.states))
    for number, group in enumerate(placement.alike()):
        refusal = placement.refusal(group[0]) if number * nodes < _MESSAGES_UP_TO else None
        told = refusal.nodes if refusal is not None and number * nodes < _REASONS_UP_TO else ()
        wait = waits.get(group[0].key)
        yield PendingReport(
            pods=tuple(view.key for view in group),
            workloads=tuple(
                dict.fromkeys(f"{view.likeness.namespace}/{workloads.get(view.key, '')}" for view in group)
            ),
            message=None if refusal is None else refusal_message(refusal),
            nodes=tuple(NodeReasons(node.node, node.reasons) for node in told),
            waits_for=() if wait is None else wait.waits_for,
            circle=() if wait is None else wait.circle,
            nobody_matches=wait is not None and not wait.waits_for,
        )


def _texts(amounts: Amounts) -> dict[str, str]:
    return {name: amount_text(name, count) for name, count in sorted(amounts.items())}


def _float(ratio: Fraction | None) -> float | None:
    return None if ratio is None else round(float(ratio), 4)


# ---- as text ---------------------------------------------------------------------------------------------------------

# People read a screenful; programs get everything.
_NODES_SHOWN = 40
_OVERCOMMIT_SHOWN = 20
_WORKLOADS_SHOWN = 60
_PLACES_SHOWN = 6
_OVER_BUDGET_SHOWN = 5
_PENDING_SHOWN = 12
_REASONS_SHOWN = 8
_SCORES_SHOWN = 5


def text(whole: PlacementReport, style: Style, *, verbose: bool = False) -> list[str]:
    """Return the whole report as lines; ``verbose`` also with ratios by node, and with the scores that decided."""
    lines = [*_headlines(whole, style), "", *_node_table(whole.nodes, style), *_over_budget(whole.nodes, style)]
    if verbose or style.is_wide:
        lines += ["", *_overcommit_table(whole.nodes, style)]
    lines += ["", *_workload_table(whole, style)]
    for title, part in (
        ("Pending", _pending_lines(whole.pending, style)),
        ("Displaced", [f"  {d.pod} was preempted on {d.node} by {d.by}" for d in whole.displaced]),
        ("Scores", _score_lines(whole, style) if verbose else []),
        ("Soft thresholds", _soft_lines(whole, style)),
        ("Memory ceilings by class (qosReserved)", _ceiling_lines(whole.nodes, style)),
    ):
        if part:
            lines += ["", style.strong(title), *part]
    return lines


def _headlines(whole: PlacementReport, style: Style) -> list[str]:
    """Return how many pods have a node, and how much more there is room for."""
    counts = Counter(pod.status for pod in whole.pods)
    on_nodes = counts[Status.PLACED] + counts[Status.BOUND]
    words = [f"{on_nodes:,} of {len(whole.pods):,} pods are placed on {counted(len(whole.nodes), 'node')}"]
    others = (Status.PENDING, Status.GATED, Status.DISPLACED, Status.FINISHED, Status.ELSEWHERE)
    words += [f"{counts[status]:,} {status.lower()}" for status in others if counts[status]]
    lines = ["; ".join(words)]
    if whole.room is not None:
        more = (
            f"at least {whole.room.more:,}"
            if whole.room.is_at_least
            else f"{whole.room.more:,}"
            if whole.room.more
            else "no"
        )
        lines += wrapped(
            f"{more} more of {whole.room.workload} {'fits' if more == '1' else 'fit'}; {_fullness(whole)}", style, ""
        )
    return lines


def _fullness(whole: PlacementReport) -> str:
    """Return what all nodes together are asked for: ``cpu: requests 78 %, limits 3.4 × allocatable (budget 2 ×)``."""
    told = []
    for resource in (CPU, MEMORY):
        of = _sum(node.allocatable.get(resource) for node in whole.nodes)
        if of:
            requested = _sum(node.requested.get(resource) for node in whole.nodes)
            ratios = [node.overcommit[resource] for node in whole.nodes if resource in node.overcommit]
            limits = _sum(ratio.limits for ratio in ratios)
            budget = next((f" (budget {ratio.budget:g} ×)" for ratio in ratios if ratio.budget is not None), "")
            limited = f"limits {float(limits / of):.2g} × allocatable{budget}"
            told.append(f"{resource}: requests {float(100 * requested / of):.0f} %, {limited}")
    return "; ".join(told)


def _sum(amounts: Iterable[str | None]) -> Fraction:
    return sum((Fraction(Quantity.parse(amount).nanos) for amount in amounts if amount), Fraction(0))


def _node_table(nodes: Sequence[NodeReport], style: Style) -> list[str]:
    rows = [
        (
            node.name,
            f"{node.pods}/{node.allowed_pods}",
            *(cell for resource in ("cpu", "memory") for cell in (_used(node, resource), _left(node, resource))),
        )
        for node in style.shown(nodes, _NODES_SHOWN)
    ]
    headers = ("NODE", "PODS", "CPU", "LEFT", "MEMORY", "LEFT")
    return columns(headers, rows, style) + _more(len(nodes) - len(rows), "node")


def _used(node: NodeReport, resource: str) -> str:
    used, of = node.requested.get(resource, "0"), node.allocatable.get(resource, "0")
    return f"{used} of {of} ({node.fullness.get(resource, 0.0):.0%})"


def _left(node: NodeReport, resource: str) -> str:
    left = node.remaining.get(resource, "0")
    return f"−{_told(resource, left[1:])}" if left.startswith("-") else _told(resource, left)


def _told(resource: str, text: str) -> str:
    """Return an amount of the report as people read it."""
    return rounded_amount(MEMORY, Quantity.parse(text).value) if resource == MEMORY else text


def _overcommit_table(nodes: Sequence[NodeReport], style: Style) -> list[str]:
    """Return the three ratios of each node, a line per resource; the name only once."""
    shown = style.shown(nodes, _OVERCOMMIT_SHOWN)
    rows = [
        (
            "" if number else node.name,
            resource,
            _told(resource, report.limits),
            _against_budget(report, style),
            _times(report.limits_to_requests),
            f"{_times(report.others_limits_to_what_guaranteed_leave)} of {_told(resource, report.guaranteed_leave)}",
            str(report.pods_without_limit or "–"),
        )
        for node in shown
        for number, (resource, report) in enumerate(node.overcommit.items())
    ]
    header = ("NODE", "LIMITS", "SUM", "÷ ALLOCATABLE", "÷ REQUESTS", "OTHERS ÷ REST", "NO LIMIT")
    lines = columns(header, rows, style) + _more(len(nodes) - len(shown), "node")
    others = "others ÷ rest: limits of all but Guaranteed pods ÷ what Guaranteed pods leave"
    return lines + [style.faint(line) for line in wrapped(others, style, "  ")]


def _against_budget(report: OvercommitReport, style: Style) -> str:
    words = _times(report.limits_to_allocatable)
    return style.strong(f"{words} > {report.budget:g}×") if report.exceeds_budget else words


def _times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}×"


def _over_budget(nodes: Sequence[NodeReport], style: Style) -> list[str]:
    """List the nodes over budget, with the pods that contribute most."""
    told = []
    for node in nodes:
        for resource, ratios in node.overcommit.items():
            if ratios.exceeds_budget:
                who = ", ".join(f"{pod} by {beyond}" for pod, beyond in ratios.largest_beyond_request.items())
                told.append(f"{node.name}: {resource} limits over budget; furthest above their requests: {who}")
    shown = style.shown(told, _OVER_BUDGET_SHOWN)
    lines = [line for words in shown for line in wrapped(words, style, "  ")]
    return ["", *lines, *_more(len(told) - len(shown), "more", " over budget")] if told else []


def _workload_table(whole: PlacementReport, style: Style) -> list[str]:
    homes: dict[tuple[str, str], Counter[str]] = {}
    for pod in whole.pods:
        homes.setdefault((pod.namespace, pod.workload), Counter())[pod.node or f"({pod.status.lower()})"] += 1
    rows = [
        (namespace, workload, str(sum(places.values())), _where(places, style))
        for (namespace, workload), places in style.shown(list(homes.items()), _WORKLOADS_SHOWN)
    ]
    lines = columns(("NAMESPACE", "WORKLOAD", "PODS", "WHERE"), rows, style)
    return lines + _more(len(homes) - len(rows), "workload")


def _score_lines(whole: PlacementReport, style: Style) -> list[str]:
    """Return, for the first placed pod of each workload, what every plugin gave the best nodes."""
    firsts = {(pod.namespace, pod.workload): pod for pod in reversed(whole.pods) if pod.scores}
    if not firsts:
        return ["  too many pods and nodes to compare, or no choice"]
    lines = []
    shown = style.shown(list(firsts.values())[::-1], _WORKLOADS_SHOWN)
    for pod in shown:
        lines.append(f"  {pod.namespace}/{pod.name}")
        best = sorted(pod.scores, key=lambda score: -score.total)
        shown_scores = style.shown(best, _SCORES_SHOWN)
        for score in shown_scores:
            points = ", ".join(f"{plugin} {number}" for plugin, number in score.points.items())
            lines += wrapped(f"{score.node}: {score.total} ({points})", style, "    ")
        lines += [f"  {line}" for line in _more(len(best) - len(shown_scores), "node")]
        if pod.equally_good:
            told = f"{counted(len(pod.equally_good), 'node')} equally good; the real scheduler picks one at random"
            lines += wrapped(told, style, "    ")
    return lines + _more(len(firsts) - len(shown), "workload")


def _pending_lines(pending: Sequence[PendingReport], style: Style) -> list[str]:
    lines = []
    shown = style.shown(pending, _PENDING_SHOWN)
    for group in shown:
        lines.append(f"  {', '.join(group.workloads)}: {counted(len(group.pods), 'pod')}")
        said = [group.message or "reasons not computed: too many"]
        if group.nobody_matches:
            said.append("its required pod affinity matches no pod")
        elif group.circle:
            said.append(f"circular affinity: {' → '.join((*group.circle, group.circle[0]))}")
        elif group.waits_for:
            said.append(f"it waits for {', '.join(group.waits_for)}, which is also pending")
        lines += [line for words in said for line in wrapped(words, style, "    ")]
        lines += [f"      {words}" for words in _by_words(group, style)]
    return lines + _more(len(pending) - len(shown), "kind", " of pending pods")


def _by_words(group: PendingReport, style: Style) -> list[str]:
    """Return the reasons, grouped by nodes with the same ones."""
    nodes: dict[str, list[str]] = {}
    for refusal in group.nodes:
        nodes.setdefault("; ".join(map(reason_words, refusal.reasons)), []).append(refusal.node)
    shown = style.shown(list(nodes.items()), _REASONS_SHOWN)
    more = _more(len(nodes) - len(shown), "more reason", " with other numbers")
    return [*(f"{_few(names)}: {words}" for words, names in shown), *(line.strip() for line in more)]


def _soft_lines(whole: PlacementReport, style: Style) -> list[str]:
    told = (
        f"pods may request {mebibytes(soft.allocatable.value)} of {soft.resource}, but the soft threshold of "
        f"{mebibytes(soft.soft.value)} is crossed once they use {mebibytes(soft.usable_before_soft.value)}: "
        "systemReserved should cover the threshold too"
        for soft in whole.soft_thresholds
    )
    return [line for words in told for line in wrapped(words, style, "  ")]


def _ceiling_lines(nodes: Sequence[NodeReport], style: Style) -> list[str]:
    """Return the memory left to the lower classes, grouped by equal ceilings."""
    names: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for node in nodes:
        if node.memory_ceilings:
            names.setdefault(tuple(node.memory_ceilings.items()), []).append(node.name)
    told = [
        f"{_few(own)}: {', '.join(f'{name} {mebibytes(Quantity.parse(text).value)}' for name, text in ceilings)}"
        for ceilings, own in names.items()
    ]
    shown = style.shown(told, _NODES_SHOWN)
    lines = [line for words in shown for line in wrapped(words, style, "  ")]
    return lines + _more(len(told) - len(shown), "more", " with other ceilings")


def _where(places: Counter[str], style: Style) -> str:
    told = [place if number == 1 else f"{place} ×{number}" for place, number in places.items()]
    shown = style.shown(told, _PLACES_SHOWN)
    more = len(told) - len(shown)
    return ", ".join(shown) + (f" and {counted(more, 'more node')}" if more > 0 else "")


def _few(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} … {names[-1]} ({counted(len(names), 'node')})"


def _more(count: int, what: str, rest: str = "") -> list[str]:
    return [f"  … and {counted(count, what)}{rest}; {stated_with('output', 'wide')} has them all"] if count > 0 else []


def csv_rows(whole: PlacementReport) -> Table:
    """Return headings, and a row per pod: its fields and why it waits."""
    messages = {key: group.message or "" for group in whole.pending for key in group.pods}
    return ("namespace", "pod", "workload", "status", "node", "message"), (
        (
            *(pod.namespace, pod.name, pod.workload, pod.status, pod.node or ""),
            messages.get(f"{pod.namespace}/{pod.name}", ""),
        )
        for pod in whole.pods
    )
