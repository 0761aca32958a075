"""A workload as the checks see it: as written, as defaulted, as stored, and its surroundings.

What several checks need is computed once, and what few need only on demand: nearly all workloads pass nearly all
checks, and there can be ten thousand of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.defaulting import defaulted
from podqos.admission.priority import SYSTEM_CLASSES, Priority, priority_of
from podqos.admission.relevance import Question
from podqos.admission.stored import with_assumed_classes
from podqos.advice.checks.bundle import CheckOptions, ClusterObjects, LocatedWorkload, Resize
from podqos.advice.checks.check_identity import CheckIdentity
from podqos.advice.checks.finding import (
    Choice,
    Consequence,
    Effect,
    Fact,
    FieldEdit,
    Finding,
    Patch,
    PodStanding,
)
from podqos.advice.checks.look_up import peak_usage
from podqos.advice.checks.units import Machines, Stated, is_implausible
from podqos.errors import InvalidConfiguration, InvalidManifest
from podqos.eviction.pods import request_of
from podqos.manifest.plain import Plain, parse_path
from podqos.manifest.runtime_memory import Written
from podqos.manifest.workflows import is_in_patch
from podqos.model.autoscaling import ResourceMetric
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import Node, NodeStatus
from podqos.model.pod import SYSTEM_CRITICAL_PRIORITY, Container, ObjectMeta, Pod, PodStatus, QOSClass, Workload
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList
from podqos.model.service import Service
from podqos.policy.matching import matches
from podqos.policy.subject import Subject
from podqos.qos.classes import classify
from podqos.qos.oom import oom_scores, pod_qos_class

if TYPE_CHECKING:
    from podqos.admission.refusal import MissingObject
    from podqos.admission.workloads import WorkloadAdmission

LATENCY_ANNOTATION = "podqos.dev/latency-sensitive"
"""Says that users wait for the workload's responses."""
RESTART_COST_ANNOTATION = "podqos.dev/restart-cost"
"""Says what it costs to start it again; ``none`` is what BestEffort is for."""
_NO_METADATA = ObjectMeta()
_YES = ("true", "yes")
_OF_USAGE = (Choice.RESOURCES, Choice.MEMORY_LIMIT)
# Of what a controller adds, only this can be changed with the workload.
_LOWERS_CLASS = "PQ101"
"""Choices that depend on what containers use, which no manifest says."""
_NO_DISK_REQUEST = Consequence(Effect.DISK, disk_request="0")


class Repair(Struct, frozen=True, gc=False):
    """What a pod becomes without a finding."""

    repaired: Callable[[], Pod | None]
    """Makes that pod. Called only where workloads are compared."""
    now: Pod | None = None
    """The pod that runs, where it is not the stored one."""
    is_assumed: bool = False
    """Whether amounts of the repaired pod are made up: it is compared with others, and not reported."""


_NO_REPAIR = Repair(lambda: None)


class Variant(Struct, frozen=True, gc=False):
    """The pods that one finding is about."""

    finding: int
    """The place of the finding in its list."""
    now: Pod | None
    """What runs, where it is not the workload's stored pod."""
    repaired: Pod | None
    """What would run without the finding."""


class CheckContext:
    """The surroundings, indexed for many questions."""

    def __init__(
        self,
        surroundings: ClusterObjects,
        options: CheckOptions,
        resizes: Sequence[Resize] = (),
        units: Mapping[str, str] | None = None,
    ) -> None:
        self.surroundings = surroundings
        self.units = units or {}
        """What each file belongs to: only objects of one directory, or of files that were named, are compared."""
        self.resizes = resizes
        self.node_memory_bytes = surroundings.node_memory_bytes
        self.options = options
        self.demands = (*options.demands, *surroundings.demands)
        """The policies of podqos."""
        policies = surroundings.cluster.policies
        given = policies.priority_classes
        self.knows_priorities = any(priority_class not in SYSTEM_CLASSES for priority_class in given)
        named = {priority_class.metadata.name for priority_class in given}
        self.priority_classes = (
            *(priority_class for priority_class in SYSTEM_CLASSES if priority_class.metadata.name not in named),
            *given,
        )
        self.policies = replace(policies, priority_classes=self.priority_classes)
        """With the classes that every API server has."""
        self.has_static_cpu_manager = any(
            kubelet.configuration.cpu_manager_policy == "static" for kubelet in surroundings.kubelets
        )
        self._runtime_classes = {runtime_class.metadata.name for runtime_class in policies.runtime_classes}
        self._governed = {limit_range.metadata.namespace for limit_range in policies.limit_ranges}
        self._governed |= {quota.metadata.namespace for quota in policies.resource_quotas}
        self._namespaces = {
            namespace.metadata.name: namespace.metadata for namespace in surroundings.cluster.namespaces
        }
        self._priorities: dict[str, int] = {}
        self._services: dict[str, list[Service]] = {}
        for service in surroundings.services:
            self._services.setdefault(service.metadata.namespace, []).append(service)

    @cached_property
    def stated_nodes(self) -> tuple[Node, ...]:
        """Nodes of which only the memory was stated, as each kubelet divides it; without any as one does by default."""
        if self.options.node_memory_bytes is None:
            return ()
        from podqos.placement.allocatable import node_allocatable

        capacity: ResourceList = {MEMORY: Quantity.of_units(self.options.node_memory_bytes, "BinarySI")}
        divided = []
        for kubelet in (kubelet.configuration for kubelet in self.surroundings.kubelets):
            with suppress(InvalidConfiguration):  # which has a finding of its own
                divided.append(node_allocatable(capacity, kubelet).allocatable)
        divided = divided or [node_allocatable(capacity, KubeletConfiguration()).allocatable]
        return tuple(Node(status=NodeStatus(capacity, allocatable)) for allocatable in divided)

    def has_policies(self, pod: Pod) -> bool:
        """Whether admission does more with a pod than give it its priority and what follows from the manifest."""
        if pod.metadata.namespace in self._governed or self.policies.override is not None:
            return True
        return pod.spec.runtime_class_name in self._runtime_classes

    def admit(self, workload: Workload) -> WorkloadAdmission:
        """Take a workload through admission, alone. Classes that were not given are taken to exist."""
        from podqos.admission.workloads import Admissions

        pod = workload.pod
        policies, _ = with_assumed_classes(self.policies, pod)
        # What it states wrongly itself would end admission before the policies are asked.
        spec = replace(pod.spec, priority=None, preemption_policy=None)
        cluster = replace(self.surroundings.cluster, policies=policies)
        admissions = Admissions(cluster, self.options.profile, Question.CLASS)
        return admissions.create(replace(workload, pod=replace(pod, spec=spec)))

    def missing_classes(self, pod: Pod) -> tuple[MissingObject, ...]:
        """Return the classes that a pod names and that were not given."""
        return with_assumed_classes(self.policies, pod)[1]

    def priority(self, pod: Pod) -> int:
        """Return the priority of a pod: what it says, as it may say only what is right, or else that of its class.

        An unknown class counts as zero.
        """
        if pod.spec.priority is not None:
            return pod.spec.priority
        name = pod.spec.priority_class_name
        if name not in self._priorities:
            found = priority_of(name, self.priority_classes)
            self._priorities[name] = found.value if isinstance(found, Priority) else 0
        return self._priorities[name]

    def namespace(self, name: str) -> ObjectMeta:
        """Return labels and annotations of a namespace; none where it is not among the objects."""
        return self._namespaces.get(name, _NO_METADATA)

    def has_budget(self, resource: str) -> bool:
        """Whether a policy of podqos says what the limits of all pods may add up to."""
        return any(
            budget.resource == resource and budget.limits is not None and budget.is_for_all
            for policy in self.demands
            for budget in policy.spec.budgets
        )

    def is_served(self, pod: Pod) -> bool:
        """Whether a Service sends traffic to a pod, of users or of other pods; some only give names."""
        metadata = pod.metadata
        return any(
            service.spec.cluster_ip != "None" and service.selects(metadata.namespace, metadata.labels)
            for service in self._services.get(metadata.namespace, ())
        )

    def users_come_by(self, pod: Pod) -> str | None:
        """Return what brings a pod the traffic of users: a route to its Service, or the Service itself."""
        namespace = pod.metadata.namespace
        for service in self._services.get(namespace, ()):
            name = service.metadata.name
            route = self.surroundings.routes.get((namespace, name))
            if (route or service.is_public) and service.selects(namespace, pod.metadata.labels):
                return f"{route} (Service {name})" if route else f"Service {name} ({service.spec.type})"
        return None


class View:
    """One workload.

    ``compares`` says whether its findings are to be compared with other workloads, ``weighs`` whether they say what
    they mean for survival. ``written`` is the object with its commands and environments; None where they are not known,
    or say nothing that counts.
    """

    def __init__(
        self,
        found: LocatedWorkload,
        context: CheckContext,
        *,
        compares: bool = True,
        weighs: bool = True,
        written: Written | None = None,
    ) -> None:
        self.workload = found.workload
        self.scaled_by = found.scaled_by
        self.subject = found.subject
        self.rejections = found.rejections
        """What the API server rejects about the object as written; paths are those of the object."""
        self.context = context
        self.options = context.options
        self.compares = compares
        self.weighs = weighs
        self.written = written
        self.pod = found.workload.pod
        self.at = found.workload.at
        """From the path of a pod's field to that in the object."""
        self.defaulted = defaulted(self.pod, context.options.profile)
        self.qos_class = pod_qos_class(self.pod, classify(self.defaulted, context.options.profile).qos_class)
        """As the manifest means it; of a live pod the recorded one."""
        self.priority = context.priority(self.pod)
        """The priority with which it runs."""
        self.admission: WorkloadAdmission | None = None
        """What the namespace's policies make of it; None where there are none, or they are applied already."""
        self.stored = with_priority(self.defaulted, self.priority) if self.priority else self.defaulted
        """The pod as the API server stores it."""
        self.stored_class = self.qos_class
        """The class with which it runs."""
        if not found.workload.is_stored and context.has_policies(self.pod):
            self._admit()
        self._fields: dict[str, str] = {}
        """The fields of the pod that edits write, by their paths in the object."""
        self.findings: list[Finding] = []
        self.variants: list[Variant] = []
        """Pods that findings compare with others, instead of the workload's own."""

    def _admit(self) -> None:
        self.admission = self.context.admit(self.workload)
        if self.admission.first.allowed:
            self.stored = with_priority(self.admission.first.pod, self.priority)
            self.stored_class = classify(self.stored, self.options.profile).qos_class

    def tried(self, pod: Pod, context: CheckContext) -> View:
        """Return the same workload with another pod, to see what would be found then."""
        located = LocatedWorkload(replace(self.workload, pod=pod), self.subject, self.scaled_by, self.rejections)
        return View(located, context, compares=False, weighs=False, written=self.written)

    @cached_property
    def serves(self) -> str | None:
        """What shows that users wait for its responses: what brings it their traffic, or the annotation."""
        route = self.context.users_come_by(self.pod)
        if route is not None:
            return route
        for metadata in (self.workload.metadata, self.pod.metadata):
            if metadata.annotations.get(LATENCY_ANNOTATION, "").lower() in _YES:
                return f"annotation {LATENCY_ANNOTATION}"
        return None

    @property
    def is_refused(self) -> bool:
        """Whether the namespace's policies let none of its pods in."""
        return self.admission is not None and not self.admission.first.allowed

    @cached_property
    def utilization_metrics(self) -> tuple[ResourceMetric, ...]:
        """The metrics of its autoscaler that are a share of what containers request."""
        metrics = () if self.scaled_by is None else self.scaled_by.autoscaler.resource_metrics
        return tuple(metric for metric in metrics if metric.utilization is not None)

    def is_suppressed(self, check: CheckIdentity) -> bool:
        """Whether an annotation suppresses what a check finds about it."""
        return check.suppression((self.workload.metadata.annotations, self.pod.metadata.annotations)) is not None

    def has_found(self, *checks: CheckIdentity) -> bool:
        """Whether one of these checks has found something, of which another would only be a consequence."""
        ids = [check.id for check in checks]
        return any(finding.check in ids for finding in self.findings)

    @cached_property
    def judged(self) -> Subject:
        """What policies of podqos judge: the pod as stored, with what injectors add."""
        workload, context = self.workload, self.context
        is_unknown = not workload.is_stored and any(
            missing_class.kind == "PriorityClass" for missing_class in context.missing_classes(self.pod)
        )
        priority = None if is_unknown else self.priority
        stored = self.stored if workload.is_live or not self.options.inject else self._with_injected()
        return Subject(workload, stored, priority, context.namespace(workload.metadata.namespace))

    def _with_injected(self) -> Pod:
        """Return the pod as stored with what injectors add; one that refuses it adds nothing, and PQ112 tells."""
        from podqos.admission.injectors import inject

        pod = self.pod
        for name in self.options.inject:
            with suppress(InvalidManifest):
                pod = inject(pod, name, self.options.profile).pod
        return self.stored if pod is self.pod else self.context.admit(replace(self.workload, pod=pod)).first.pod

    def has_ratio(self, resource: str) -> bool:
        """Whether a policy of podqos says how many times its request a limit may be."""
        return any(
            resource in rule.require.max_limit_request_ratio and matches(rule.match, self.judged)
            for policy in self.context.demands
            for rule in policy.spec.rules
        )

    @property
    def is_expendable(self) -> bool:
        """Whether its annotations say that it is expendable."""
        described = (self.workload.metadata.annotations, self.pod.metadata.annotations)
        return any(annotations.get(RESTART_COST_ANNOTATION) == "none" for annotations in described)

    @cached_property
    def standing(self) -> PodStanding:
        """Where its pods stand when memory runs short."""
        return standing(self.stored, self.stored_class, self.priority, self.context)

    @property
    def is_protected(self) -> bool:
        """Whether neither the kubelet nor the kernel picks its pods before others: they are critical for the node."""
        return self.standing.is_spared and self.standing.oom_score_adj < 0

    def running(self) -> Pod:
        """Return the stored pod with its priority, for comparing."""
        return with_priority(self.stored, self.priority)

    def report(
        self,
        check: CheckIdentity,
        path: str,
        facts: Fact,
        patch: Patch,
        *,
        container: str | None = None,
        repair: Repair = _NO_REPAIR,
    ) -> None:
        """Note a finding. ``path`` counts from the pod."""
        self._report(check, self.at(path), facts, patch, container=container, repair=repair)

    def report_of_object(self, check: CheckIdentity, path: str, facts: Fact, patch: Patch) -> None:
        """Note a finding about the object around the pod. ``path`` counts from the object."""
        self._report(check, path, facts, patch)

    def _report(
        self,
        check: CheckIdentity,
        path: str,
        facts: Fact,
        patch: Patch,
        *,
        container: str | None = None,
        repair: Repair = _NO_REPAIR,
    ) -> None:
        if not self.options.runs(check.id) or (container in self.workload.added and check.id != _LOWERS_CLASS):
            return
        if patch.is_complete and self._implausible and any(map(self._is_implausible, patch.edits)):
            # Nothing is derived from an amount that was meant in another unit.
            patch = Patch.choose(Choice.UNIT, [edit.path for edit in patch.edits])
        if patch.is_complete and any(is_in_patch(edit.path) for edit in patch.edits):
            texts = tuple(dict.fromkeys(str(edit.value) for edit in patch.edits))
            patch = Patch.choose(Choice.POD_SPEC_PATCH, [edit.path for edit in patch.edits], texts)
        if patch.is_complete and check.fix_on_request and check.id not in self.options.only:
            patch = replace(patch, on_request=True)
        if patch.needs_choice in _OF_USAGE:
            patch = replace(patch, look_up=self.peak_usage(patch, container))
        after = self._variant(repair.repaired()) if self.compares else None
        before = self._variant(repair.now)
        if before is not None or after is not None:
            self.variants.append(Variant(len(self.findings), before, after))
        annotations, of_pod = self.workload.metadata.annotations, self.pod.metadata.annotations
        self.findings.append(
            Finding(
                check.id,
                check.severity,
                self.subject,
                path,
                facts,
                self._consequence(check.effect, before, None if repair.is_assumed else after),
                patch,
                container,
                check.suppression((annotations, of_pod)) if annotations or of_pod else None,
            )
        )

    def peak_usage(self, patch: Patch, container: str | None) -> str:
        """Return what to look up before requests or limits are chosen: what kubectl shows, so nothing for a disk."""
        resources = {str(parse_path(path)[-1]) for path in patch.paths}
        if resources == {EPHEMERAL_STORAGE}:
            return ""
        resource = next(iter(resources)) if resources in ({CPU}, {MEMORY}) else ""
        names = [container] if container else [container.name for container in self.pod.spec.containers]
        return peak_usage(self.subject.namespace, names, resource or "cpu and memory")

    @property
    def machines(self) -> Machines:
        """What the nodes have that it may run on."""
        return Machines(self.context.surroundings.nodes, self.options.node_memory_bytes)

    @cached_property
    def _implausible(self) -> frozenset[tuple[str, str]]:
        """The amounts that were probably meant in another unit, each with its resource."""
        machines = self.machines
        stated = [container.resources for container, _ in self.resources()]
        if self.pod.spec.resources is not None:
            stated.append(self.pod.spec.resources)
        return frozenset(
            (name, str(amount))
            for resources in stated
            for side, amounts in (("limits", resources.limits), ("requests", resources.requests))
            for name, amount in amounts.items()
            if is_implausible(Stated(name, side, amount), resources, machines)
        )

    def is_in_wrong_unit(self, resource: str, amount: str) -> bool:
        """Whether an amount was probably meant in another unit: PQ117 says so, and nothing follows from it."""
        return (resource, amount) in self._implausible

    def _is_implausible(self, edit: FieldEdit) -> bool:
        return isinstance(edit.value, str) and self.is_in_wrong_unit(edit.path.rpartition(".")[2], edit.value)

    def add(self, finding: Finding) -> None:
        """Note a finding about another object, which the workload showed."""
        if self.options.runs(finding.check):
            self.findings.append(finding)

    def edit(self, path: str, value: Quantity | str | None, was: Quantity | str | None = None) -> FieldEdit:
        """Return the edit of a field; ``path`` counts from the pod."""
        at = self.at(path)
        self._fields[at] = path
        return FieldEdit(at, None if value is None else str(value), None if was is None else str(was))

    def field(self, path: str) -> str:
        """Return the pod's field that an edit of the object writes."""
        return self._fields.get(path, path)

    def choose(self, choice: Choice, *paths: str, candidates: tuple[str, ...] = ()) -> Patch:
        """Return the patch that lacks a choice; ``paths``, where it is to be written, count from the pod."""
        return Patch.choose(choice, [self.at(path) for path in paths], candidates)

    def resources(self, *, only_running: bool = False) -> Iterator[tuple[Container, str]]:
        """Yield each container as written, and where its resources stand, counted from the pod."""
        spec = self.pod.spec
        for index, container in enumerate(spec.containers):
            yield container, f"spec.containers[{index}].resources"
        for index, container in enumerate(spec.init_containers):
            if container.is_sidecar or not only_running:
                yield container, f"spec.initContainers[{index}].resources"

    def written_containers(self) -> list[tuple[str, Plain]]:
        """Return each container with everything it says, and its path from the pod; none where that is not known."""
        if self.written is None:
            return []
        spec, written = self.pod.spec, self.written.read()
        paths = [f"spec.containers[{index}]" for index in range(len(spec.containers))]
        paths += [f"spec.initContainers[{index}]" for index in range(len(spec.init_containers))]
        return [(path, at_path(written, self.at(path))) for path in paths]

    def _variant(self, pod: Pod | None) -> Pod | None:
        if pod is None:
            return None
        return with_priority(
            replace(defaulted(pod, self.options.profile), status=PodStatus()), self.context.priority(pod)
        )

    def _consequence(self, effect: Effect, now: Pod | None, repaired: Pod | None) -> Consequence:
        if not self.weighs:
            return Consequence(effect)
        if effect is Effect.DISK:
            return self._disk_consequence()
        if effect in {Effect.NOT_CREATED, Effect.FEWER, Effect.LIMIT}:
            return Consequence(effect)
        if now is None and repaired is None:
            return Consequence(effect, self.standing)
        return Consequence(
            effect,
            self.standing if now is None else self._standing_of(now),
            None if repaired is None else self._standing_of(repaired),
        )

    def _disk_consequence(self) -> Consequence:
        spec = self.stored.spec
        if self.standing.is_spared:
            return Consequence(Effect.DISK, self.standing)
        for container in (*spec.containers, *spec.init_containers):
            if EPHEMERAL_STORAGE in container.resources.requests:
                return Consequence(Effect.DISK, disk_request=str(request_of(self.stored, EPHEMERAL_STORAGE)))
        return _NO_DISK_REQUEST

    def _standing_of(self, pod: Pod) -> PodStanding:
        qos_class = classify(pod, self.options.profile).qos_class
        return standing(pod, qos_class, pod.spec.priority or 0, self.context)


def at_path(value: Plain, path: str) -> Plain:
    """Return what stands at a path of an object; None where nothing does."""
    for step in parse_path(path):
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def standing(pod: Pod, qos_class: QOSClass, priority: int, context: CheckContext) -> PodStanding:
    """Return where a stored pod stands."""
    scores = oom_scores(pod, qos_class, context.node_memory_bytes, context.options.profile)
    worst = scores[0]
    for score in scores[1:]:
        if score.value > worst.value and score.container in _running(pod):
            worst = score
    is_spared = priority >= SYSTEM_CRITICAL_PRIORITY or pod.is_critical
    return PodStanding(qos_class, priority, worst.value, worst.container, is_spared)


def _running(pod: Pod) -> list[str]:
    return [container.name for container in pod.running_containers]


def with_priority(pod: Pod, priority: int) -> Pod:
    """Return the pod as the priority plug-in leaves it."""
    return pod if pod.spec.priority == priority else replace(pod, spec=replace(pod.spec, priority=priority))
