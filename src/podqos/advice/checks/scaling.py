"""PQ601–PQ605: autoscalers that cannot scale, and disruption budgets that let no pod go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from msgspec.structs import replace

from podqos.admission.quota import QuotaDenied
from podqos.advice.checks import examples
from podqos.advice.checks.bundle import FoundAutoscaler
from podqos.advice.checks.check import ERROR, WARNING, bundle_check, check
from podqos.advice.checks.check_identity import CheckIdentity, Example
from podqos.advice.checks.classes import NOT_SCALED, user_facing_best_effort
from podqos.advice.checks.finding import Choice, Effect, Fact, Finding, Patch
from podqos.advice.checks.sketch import Sketch
from podqos.advice.checks.view import CheckContext, View
from podqos.amounts import counted, listed, verb
from podqos.model.autoscaling import ResourceMetric
from podqos.model.disruption import disruptions_allowed
from podqos.model.effective import pod_level_is_set, pod_requests
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import PODS, Node
from podqos.model.pod import Container, Pod, Workload
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, ResourceRequirements

_POD = "the pod"
_TOLERANCE = Fraction(11, 10)
"""An autoscaler acts only when its metric is more than a tenth above its target."""
_NEAR = Fraction(9, 10)
"""A container that uses this share of its limit may be killed before another pod is ready."""
# Controllers that do not scale, or do not replace what is evicted.
_UNSCALED = ("Pod", "PodTemplate", "DaemonSet", "Job", "CronJob")

_MOST_PODS = Quantity.of_units(KubeletConfiguration().max_pods)
_ENOUGH = Quantity.parse("1Ei")
_ONE = Quantity.of_units(1)

_REPLICAS = "Kubernetes: pkg/controller/podautoscaler/replica_calculator.go"
_DISRUPTION = "Kubernetes: pkg/controller/disruption/disruption.go (getExpectedPodCount, updatePdbStatus)"


def _about(scaler: FoundAutoscaler, check: CheckIdentity, path: str, facts: Fact, choice: Choice) -> Finding:
    annotations = (scaler.autoscaler.metadata.annotations,)
    return check.finding(scaler.subject, path, facts, Patch.choose(choice, (path,)), annotations)


# ---- PQ601, PQ602 ------------------------------------------------------------------------------------------------


class NotScaled(Fact, frozen=True, gc=False):
    """Containers without the request of which an autoscaler wants to know the used share."""

    autoscaler: str
    resource: str
    containers: tuple[str, ...]
    are_missing: bool = False
    """Whether the pod has no such container at all."""

    def sentence(self, _: str) -> str:
        """Return what the autoscaler lacks."""
        autoscaler, names = f"HorizontalPodAutoscaler {self.autoscaler}", listed(self.containers)
        if self.are_missing:
            return f"{autoscaler} scales on the {self.resource} of {names}, but the pod has no such container"
        request = verb(self.containers, "requests", "request")
        return f"{names} {request} no {self.resource}, and {autoscaler} scales on the share of the request in use"

    def harm(self) -> str:
        """Return what the autoscaler does then."""
        return "the autoscaler cannot compute that share, and adds no pods for it"


def find_not_scaled(view: View) -> None:
    """Find metrics that cannot be computed. A BestEffort pod that users reach has PQ104, which says so, too."""
    if view.scaled_by is None or view.is_refused or view.has_found(user_facing_best_effort):
        return
    for metric in view.utilization_metrics:
        lacking = _lacking(view, metric)
        if lacking is None:
            facts = NotScaled(view.scaled_by.name, metric.name, (metric.container,), are_missing=True)
            view.add(_about(view.scaled_by, not_scaled, "spec.metrics", facts, Choice.AUTOSCALER))
        elif lacking:
            names = tuple(lacking.values())
            paths = [f"{path}.requests.{metric.name}" for path in lacking]
            container = names[0] if len(names) == 1 and names[0] != _POD else None
            facts = NotScaled(view.scaled_by.name, metric.name, names)
            patch = view.choose(Choice.RESOURCES, *paths)
            view.report(not_scaled, next(iter(lacking)), facts, patch, container=container)


def _lacking(view: View, metric: ResourceMetric) -> dict[str, str] | None:
    """Return the containers without the request, by where their resources stand; None where there is no such container.

    The request of the pod as a whole is enough for a metric of the whole pod.
    """
    stored = view.stored.spec
    if not metric.container and _has_pod_level_requests(view):
        assert stored.resources is not None
        return {} if metric.name in stored.resources.requests else {"spec.resources": _POD}
    running = dict(_running(view))
    named = {path: container for path, container in running.items() if metric.container in {"", container.name}}
    if metric.container and not named:
        return None
    return {
        path: container.name for path, container in named.items() if metric.name not in container.resources.requests
    }


def _has_pod_level_requests(view: View) -> bool:
    resources = view.stored.spec.resources
    is_set = view.options.profile.pod_level_resources and resources is not None and pod_level_is_set(view.stored)
    return is_set and bool(resources and resources.requests)


def _running(view: View) -> Iterator[tuple[str, Container]]:
    """Yield the containers that keep running, as stored, by where their resources stand."""
    spec = view.stored.spec
    for index, container in enumerate(spec.containers):
        yield f"spec.containers[{index}].resources", container
    for index, container in enumerate(spec.init_containers):
        if container.is_sidecar:
            yield f"spec.initContainers[{index}].resources", container


_CPU_TARGET = "name: cpu, target: {type: Utilization, averageUtilization: 70}"


@check(NOT_SCALED, "autoscaler-without-request", ERROR, _REPLICAS, effect=Effect.NONE, rule=find_not_scaled)
def not_scaled() -> Example:
    """PQ601: An autoscaler needs a request that is missing.

    A utilization target is a percentage of what the containers request. If one of them has no request, the metric fails
    for the whole pod ("missing request for cpu"): the workload is never scaled, and only an event says so. LimitRange
    defaults are taken into account.

    Fix: Give every container the request, or measure one container (ContainerResource), or an amount (AverageValue).
    """
    return Example(
        examples.documents(
            examples.deployment(2, "memory: 512Mi", "memory: 1Gi, ephemeral-storage: 1Gi"),
            examples.autoscaler(6, _CPU_TARGET),
        ),
        chosen={"spec.template.spec.containers[0].resources.requests.cpu": "500m"},
    )


class ScalesTooLate(Fact, frozen=True, gc=False):
    """An autoscaler on memory whose target is so near the limit that pods are killed before it acts."""

    target: str
    at: str
    limit: str
    container: str
    """Empty for the pod as a whole."""

    def sentence(self, _: str) -> str:
        """Return when it acts, beside the limit."""
        whose = f"the limit of {self.container}" if self.container else "the pod's limit"
        return f"the target of {self.target} adds pods only above {self.at} of memory, and {whose} is {self.limit}"


def find_scales_too_late(view: View) -> None:
    """Find targets on memory that are reached where the kernel kills, or only just before."""
    if view.scaled_by is None:
        return
    for metric in view.scaled_by.autoscaler.resource_metrics:
        if metric.name != MEMORY:
            continue
        amounts = _memory(view, metric)
        if amounts is None:
            continue
        request, limit = amounts
        if metric.utilization is not None:
            target, text = Fraction(metric.utilization, 100) * request, f"{metric.utilization}%"
        elif metric.value is not None:
            target, text = Fraction(metric.value.value), str(metric.value)
        else:
            continue
        acts_at = target * _TOLERANCE
        if acts_at > _NEAR * limit:
            facts = ScalesTooLate(text, _bytes(int(acts_at)), _bytes(limit), metric.container)
            view.add(_about(view.scaled_by, scales_too_late, "spec.metrics", facts, Choice.AUTOSCALER))


def _memory(view: View, metric: ResourceMetric) -> tuple[int, int] | None:
    """Return the request and the limit that a metric on memory is held against; None where one is missing."""
    sides: list[ResourceRequirements]
    spec = view.stored.spec
    if not metric.container and _has_pod_level_requests(view) and spec.resources is not None:
        sides = [spec.resources]
    else:
        sides = [container.resources for _, container in _running(view) if metric.container in {"", container.name}]
    if not sides or any(not side.requests.get(MEMORY) or not side.limits.get(MEMORY) for side in sides):
        return None
    return sum(side.requests[MEMORY].value for side in sides), sum(
        requirements.limits[MEMORY].value for requirements in sides
    )


def _bytes(amount: int) -> str:
    """Return an amount of memory as it is read: in whole mebibytes where it has some."""
    mebibyte = 1 << 20
    return str(Quantity.of_units(amount // mebibyte * mebibyte if amount >= mebibyte else amount, "BinarySI"))


@check(
    "PQ602",
    "autoscaler-near-memory-limit",
    WARNING,
    f"{_REPLICAS} (tolerance)",
    effect=Effect.NONE,
    rule=find_scales_too_late,
)
def scales_too_late() -> Example:
    """PQ602: An autoscaler on memory acts only near the limit.

    An autoscaler adds pods when the average is 10 % above its target (its tolerance). If that is above 90 % of the
    memory limit, containers are OOM-killed before, or just as, another pod starts. And a killed container uses little,
    so the average falls and no pod is added.

    Fix: Lower the target, or raise the limit above the request.
    """
    equal = 'cpu: "1", memory: 1Gi'
    bad = examples.autoscaler(6, "name: memory, target: {type: Utilization, averageUtilization: 90}")
    workload = examples.deployment(2, equal, f"{equal}, ephemeral-storage: 1Gi")
    return Example(
        examples.documents(workload, bad),
        good=examples.documents(workload, bad.replace("averageUtilization: 90", "averageUtilization: 75")),
    )


# ---- PQ603, PQ604 ------------------------------------------------------------------------------------------------


class NoRoomForReplicas(Fact, frozen=True, gc=False):
    """An autoscaler that may ask for more pods than there is room for."""

    workload: str
    most: int
    fit: int
    where: str

    def sentence(self, _: str) -> str:
        """Return how many it may ask for, and how many there is room for."""
        return f"maxReplicas is {self.most:,}, but {self.where} for only {self.fit:,} pods of {self.workload}"


def find_unplaceable_replicas(context: CheckContext, sketches: Sequence[Sketch]) -> Iterator[Finding]:
    """Yield autoscalers that may ask for more pods than fit on the nodes beside all other workloads."""
    nodes = context.surroundings.nodes
    scaled = [sketch for sketch in sketches if sketch.scaled_by is not None]
    if not scaled or any(not {CPU, MEMORY} <= node.status.allocatable.keys() for node in nodes):
        return
    if len({node.name for node in nodes}) < len(nodes):
        return  # of several clusters
    room = _Room(context, sketches)
    for sketch in scaled:
        assert sketch.scaled_by is not None
        most = sketch.scaled_by.most
        fit = room.fitting(sketch, most)
        if fit < most:
            where = "the nodes have room" if len(nodes) > 1 else "the node has room"
            facts = NoRoomForReplicas(f"{sketch.subject.kind} {sketch.subject.name}", most, fit, where)
            yield _about(sketch.scaled_by, unplaceable_replicas, "spec.maxReplicas", facts, Choice.MOST_REPLICAS)


class _Room:
    """What nodes have left for more pods of one workload, beside all others."""

    def __init__(self, context: CheckContext, sketches: Sequence[Sketch]) -> None:
        self._profile = context.options.profile
        self._nodes = tuple(map(_complete, context.surroundings.nodes))
        # What a cluster lists has the controllers and the pods they have made already.
        self._are_running = any(sketch.subject.kind == "Pod" and _is_bound(sketch) for sketch in sketches)
        # Two manifests of one object are two versions of it: applying one replaces the other.
        latest = {(sketch.subject.kind, sketch.subject.key): sketch for sketch in sketches if sketch.pod is not None}
        self._others = [sketch for sketch in latest.values() if sketch.subject.kind == "Pod" or not self._are_running]

    def fitting(self, sketch: Sketch, most: int) -> int:
        """Return how many of so many pods get a place; others have as many as their manifests ask for."""
        from podqos.placement.place import PlacementSurroundings, QueueOrder, Status, place

        if sketch.pod is None or not _upper_bound(sketch.pod, self._nodes):
            return most  # not one of them fits: PQ504
        own = (sketch.subject.kind, sketch.subject.key)
        pods = [
            one for other in self._others if (other.subject.kind, other.subject.key) != own for one in self._pods(other)
        ]
        running = sum(_is_of(sketch.pod, one) for one in pods) if self._are_running else 0
        wanted = min(most, _upper_bound(sketch.pod, self._nodes) + 1)
        others = len(pods)
        pods += self._pods(sketch, max(0, wanted - running))
        named = [replace(one, metadata=replace(one.metadata, name=f"pod-{index}")) for index, one in enumerate(pods)]
        mine = {one.key for one in named[others:]}
        placement = place(named, PlacementSurroundings(self._nodes, profile=self._profile), order=QueueOrder.ARRIVAL)
        pending = sum(outcome.status is Status.PENDING for outcome in placement.outcomes if outcome.pod in mine)
        return wanted - pending if pending else most

    def _pods(self, sketch: Sketch, replicas: int | None = None) -> Iterator[Pod]:
        from podqos.placement.workloads import pods_of

        assert sketch.pod is not None
        # More than fill empty nodes change nothing.
        stated = min(sketch.stated_replicas, _upper_bound(sketch.pod, self._nodes) + 1)
        count = stated if replicas is None else replicas
        workload = Workload(sketch.subject.kind, sketch.pod.metadata, sketch.pod, replicas=count)
        return pods_of(workload, self._nodes, profile=self._profile)


def _is_bound(sketch: Sketch) -> bool:
    return sketch.pod is not None and bool(sketch.pod.spec.node_name)


def _is_of(template: Pod, pod: Pod) -> bool:
    """Whether a pod was made from a template, as far as its labels tell."""
    mine, its = template.metadata, pod.metadata
    return mine.namespace == its.namespace and mine.labels.items() <= its.labels.items()


def _complete(node: Node) -> Node:
    """Return a node with what every kubelet reports: where it is left out, the default of pods and enough disk."""
    allocatable = {PODS: _MOST_PODS, EPHEMERAL_STORAGE: _ENOUGH, **node.status.allocatable}
    return replace(node, status=replace(node.status, allocatable=allocatable))


def _upper_bound(pod: Pod, nodes: Sequence[Node]) -> int:
    """Return how many such pods empty nodes could hold at most, so that no absurd number of them is placed."""
    requests = {**pod_requests(pod), PODS: _ONE}
    bounded = [(name, amount) for name in (CPU, MEMORY, PODS) if (amount := requests.get(name))]
    return min(sum(node.status.allocatable[name].nanos // amount.nanos for node in nodes) for name, amount in bounded)


@bundle_check(
    "PQ603",
    "autoscaler-beyond-nodes",
    WARNING,
    "Kubernetes: pkg/scheduler/framework/plugins/noderesources/fit.go",
    effect=Effect.NONE,
    rule=find_unplaceable_replicas,
)
def unplaceable_replicas() -> Example:
    """PQ603: The nodes have no room for maxReplicas.

    Under load the autoscaler adds pods, and beyond some number they stay pending: the workload can't handle the load
    that maxReplicas was chosen for. Reported if the input contains Nodes; podqos does not know about a cluster
    autoscaler that adds nodes (suppress the check in that case).

    Fix: Lower maxReplicas or the requests, or add nodes.
    """
    workload = examples.deployment(2, *examples.USUAL)
    return Example(
        examples.documents(examples.node(), workload, examples.autoscaler(20, _CPU_TARGET)),
        good=examples.documents(examples.node(), workload, examples.autoscaler(6, _CPU_TARGET)),
    )


def find_replicas_over_quota(view: View) -> None:
    """Find autoscalers that may ask for more pods than a quota admits. What it refuses already has PQ206 or PQ207."""
    scaler, admission = view.scaled_by, view.admission
    if scaler is None or admission is None or admission.refusal is not None:
        return
    most = scaler.most
    scaled = view.context.admit(replace(view.workload, replicas=most))
    if scaled.refusal is not None and isinstance(scaled.refusal.denied, QuotaDenied):
        where = f"ResourceQuota {scaled.refusal.denied.quota} has room"
        facts = NoRoomForReplicas(f"{view.subject.kind} {view.subject.name}", most, scaled.admitted, where)
        view.add(_about(scaler, over_quota, "spec.maxReplicas", facts, Choice.MOST_REPLICAS))


@check(
    "PQ604",
    "autoscaler-over-quota",
    WARNING,
    "Kubernetes: staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go",
    effect=Effect.NONE,
    rule=find_replicas_over_quota,
)
def over_quota() -> Example:
    """PQ604: The quota has no room for maxReplicas.

    Under load the autoscaler adds pods, and the API server rejects those beyond the quota: the workload can't handle
    the load that maxReplicas was chosen for, and only the ReplicaSet's events show it.

    Fix: Raise the quota, or lower maxReplicas or the requests.
    """
    workload, quota = examples.deployment(2, *examples.USUAL), examples.quota("requests.memory: 2Gi")
    return Example(
        examples.documents(workload, quota, examples.autoscaler(6, _CPU_TARGET)),
        good=examples.documents(workload, quota, examples.autoscaler(4, _CPU_TARGET)),
    )


# ---- PQ605 -------------------------------------------------------------------------------------------------------


class LetsNoPodGo(Fact, frozen=True, gc=False):
    """A PodDisruptionBudget that allows no disruption even while every pod is healthy."""

    field: str
    amount: str
    pods: int
    workloads: tuple[str, ...]
    at_fewest: bool = False
    """Whether it blocks only while an autoscaler keeps no more than minReplicas."""

    def sentence(self, _: str) -> str:
        """Return the budget beside the pods it covers."""
        start = f"{self.field} is {self.amount}, and {listed(self.workloads)} {verb(self.workloads, 'has', 'have')}"
        pods = counted(self.pods, "pod")
        if self.at_fewest:
            return f"{start} {pods} at minReplicas: none of them may be evicted until the autoscaler adds pods"
        if self.field == "minAvailable" and self.amount.isdigit() and int(self.amount) > self.pods:
            return f"{start} {pods}: it can never be met"
        return f"{start} {pods}: none of them may be evicted"


def find_blocking_budgets(context: CheckContext, sketches: Sequence[Sketch]) -> Iterator[Finding]:
    """Yield budgets that let no pod go while all are healthy: at the most pods that there may be, or at the fewest."""
    found = context.surroundings.disruption_budgets
    if not found:
        return
    # Two manifests of one object are two versions of it: applying one replaces the other.
    latest = {(sketch.subject.kind, sketch.subject.key): sketch for sketch in sketches if sketch.budgets}
    covered: dict[object, list[Sketch]] = {}
    for sketch in latest.values():
        for subject in sketch.budgets:
            covered.setdefault(subject, []).append(sketch)
    for budget in found:
        spec, own = budget.budget.spec, covered.get(budget.subject, [])
        scaled = [sketch for sketch in own if sketch.subject.kind not in _UNSCALED]
        counted_pods = [*scaled, *(sketch for sketch in own if sketch.subject.kind == "Pod")]
        most, fewest = (sum(getattr(one, name) for one in counted_pods) for name in ("replicas", "fewest_replicas"))
        field = "minAvailable" if spec.max_unavailable is None else "maxUnavailable"
        amount = spec.min_available if spec.max_unavailable is None else spec.max_unavailable
        if not scaled or most <= 0 or amount is None:
            continue
        # More pods never leave less room.
        blocked = [
            pods for pods in (most, fewest) if disruptions_allowed(budget.budget, healthy=pods, expected=pods) <= 0
        ]
        if blocked:
            names = tuple(f"{sketch.subject.kind} {sketch.subject.name}" for sketch in scaled)
            facts = LetsNoPodGo(field, str(amount), blocked[0], names, at_fewest=blocked[0] < most)
            patch = Patch.choose(Choice.DISRUPTIONS, (f"spec.{field}",))
            annotations = (budget.budget.metadata.annotations,)
            yield blocking_budget.finding(budget.subject, f"spec.{field}", facts, patch, annotations)


_BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 100%
  selector: {matchLabels: {app: web}}
"""


@bundle_check(
    "PQ605",
    "budget-blocks-drains",
    WARNING,
    _DISRUPTION,
    effect=Effect.NONE,
    rule=find_blocking_budgets,
)
def blocking_budget() -> Example:
    """PQ605: A PodDisruptionBudget never allows an eviction.

    Even with all pods healthy, none may be evicted: kubectl drain, node upgrades and the cluster autoscaler wait until
    someone deletes the budget or the pods. This happens with maxUnavailable 0, with minAvailable 100% or equal to the
    number of replicas, and with percentages that round up to all of them (90% of 3 is 3). With an autoscaler,
    minReplicas counts as well: a budget that needs more pods than that blocks drains whenever load is low.

    Fix: Use maxUnavailable: 1, or run more replicas than minAvailable.
    """
    workload = examples.deployment(3, *examples.EQUAL)
    return Example(examples.documents(workload, _BUDGET), chosen={"spec.minAvailable": None, "spec.maxUnavailable": 1})
