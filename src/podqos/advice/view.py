"""One workload as the checks look at it: as written, as defaulted, as stored, and what surrounds it.

What several checks ask is worked out once, and what few ask only when they do: nearly all workloads pass nearly all
checks, and there can be ten thousand of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.chain import Admission
from podqos.admission.defaulting import defaulted
from podqos.admission.limit_range import ConflictingDefaults
from podqos.admission.policies import Policies
from podqos.admission.priority import SYSTEM_CLASSES, Priority, priority_of
from podqos.admission.workloads import Admissions, WorkloadAdmission
from podqos.advice.bundle import CheckOptions, FoundWorkload, Surroundings
from podqos.advice.catalogue import CHECKS
from podqos.advice.facts import Facts
from podqos.advice.finding import Consequence, Effect, Finding, Patch, Standing
from podqos.advice.suppression import suppression_by
from podqos.eviction.usage import request_of
from podqos.model.pod import Pod, PodStatus, QOSClass, Workload
from podqos.model.policy import LimitRange, ResourceQuota
from podqos.model.resources import EPHEMERAL_STORAGE
from podqos.model.service import Service
from podqos.qos.classes import classify
from podqos.qos.oom import oom_scores, pod_qos_class

Namespaced = TypeVar("Namespaced", LimitRange, ResourceQuota, Workload, Pod)

DEFAULT_NAMESPACE = "default"
LATENCY_ANNOTATION = "podqos.dev/latency-sensitive"
"""Says of a workload that somebody waits for its answers."""
_YES = ("true", "yes")


class Variant(Struct, frozen=True):
    """The pods that one finding is about."""

    finding: int
    """The place of the finding in its list."""
    now: Pod | None
    """What runs, where it is not the workload's stored pod."""
    repaired: Pod | None
    """What would run but for the finding."""


class Context:
    """The surroundings, indexed for many questions."""

    def __init__(self, surroundings: Surroundings, options: CheckOptions) -> None:
        self.surroundings = surroundings
        self.options = options
        self.node_memory_bytes = _node_memory_bytes(surroundings, options)
        policies = surroundings.cluster.policies
        self.knows_priorities = any(each not in SYSTEM_CLASSES for each in policies.priority_classes)
        named = {each.metadata.name for each in policies.priority_classes}
        self.priority_classes = (
            *(each for each in SYSTEM_CLASSES if each.metadata.name not in named),
            *policies.priority_classes,
        )
        self.has_static_cpu_manager = any(
            each.configuration.cpu_manager_policy == "static" for each in surroundings.kubelets
        )
        self._runtime_classes = {each.metadata.name for each in policies.runtime_classes}
        policies = replace(
            policies,
            priority_classes=self.priority_classes,
            limit_ranges=tuple(_in_a_namespace(each) for each in policies.limit_ranges),
            resource_quotas=tuple(_in_a_namespace(each) for each in policies.resource_quotas),
        )
        self._cluster = replace(surroundings.cluster, policies=policies)
        governing: tuple[LimitRange | ResourceQuota, ...] = (*policies.limit_ranges, *policies.resource_quotas)
        self._governed = {each.metadata.namespace for each in governing}
        self._services: dict[str, list[Service]] = {}
        for service in surroundings.services:
            self._services.setdefault(service.metadata.namespace or DEFAULT_NAMESPACE, []).append(service)

    def has_policies(self, namespace: str) -> bool:
        """Whether admission does more in a namespace than fill in what follows from the manifest."""
        return namespace in self._governed or self._cluster.policies.override is not None

    def conflicts(self) -> Iterator[tuple[str, ConflictingDefaults]]:
        """Yield the defaults of LimitRanges that depend on an order nobody defines, with their namespace."""
        by_namespace: dict[str, list[LimitRange]] = {}
        for limit_range in self._cluster.policies.limit_ranges:
            by_namespace.setdefault(limit_range.metadata.namespace, []).append(limit_range)
        for namespace, limit_ranges in sorted(by_namespace.items()):
            for conflict in Policies(limit_ranges=tuple(limit_ranges)).conflicts():
                yield namespace, conflict

    def admit(self, workload: Workload) -> WorkloadAdmission:
        """Take a workload through admission, alone. Classes that nobody gave us are taken to be there."""
        pod = workload.pod
        spec = pod.spec
        if isinstance(priority_of(spec.priority_class_name, self.priority_classes), Priority):
            spec = replace(spec, priority=None)
        else:
            spec = replace(spec, priority_class_name="", priority=None)
        if spec.runtime_class_name not in self._runtime_classes:
            spec = replace(spec, runtime_class_name="")
        pod = replace(_in_a_namespace(pod), spec=replace(spec, preemption_policy=""))
        workload = replace(_in_a_namespace(workload), pod=pod)
        return Admissions(self._cluster, self.options.profile).create(workload)

    def priority(self, pod: Pod) -> int:
        """Return the priority of a pod; that of a class nobody knows is what the pod says, or else zero."""
        found = priority_of(pod.spec.priority_class_name, self.priority_classes)
        return found.value if isinstance(found, Priority) else pod.spec.priority or 0

    def service_for(self, pod: Pod) -> str | None:
        """Return the name of a Service that sends traffic to a pod."""
        namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
        for service in self._services.get(namespace, ()):
            if service.sends_traffic_to(namespace, pod.metadata.labels):
                return service.metadata.name
        return None


class View:
    """One workload."""

    def __init__(self, found: FoundWorkload, context: Context) -> None:
        self.workload = found.workload
        self.subject = found.subject
        self.context = context
        self.options = context.options
        self.pod = found.workload.pod
        self.prefix = f"{found.workload.pod_path}." if found.workload.pod_path else ""
        self.defaulted = defaulted(self.pod)
        self.classification = classify(self.defaulted, context.options.profile)
        self.qos_class = pod_qos_class(self.pod, self.classification.qos_class)
        """As the manifest means it; of a live pod the recorded one."""
        self.variants: list[Variant] = []
        """Pods that findings compare with others, instead of the workload's own."""
        self.findings: list[Finding] = []

    @cached_property
    def admission(self) -> WorkloadAdmission | None:
        """What the namespace's policies make of it; None where there are none, or where they have had their say."""
        if self.workload.is_live or not self.context.has_policies(self.pod.metadata.namespace or DEFAULT_NAMESPACE):
            return None
        return self.context.admit(self.workload)

    @cached_property
    def stored(self) -> Pod:
        """The pod as the API server stores it."""
        first: Admission | None = self.admission.first if self.admission is not None else None
        pod = self.defaulted if first is None or not first.allowed else first.pod
        priority = self.context.priority(pod)
        return pod if pod.spec.priority == priority else replace(pod, spec=replace(pod.spec, priority=priority))

    @cached_property
    def stored_class(self) -> QOSClass:
        """The class with which it runs."""
        return self.qos_class if self.admission is None else classify(self.stored, self.options.profile).qos_class

    @property
    def priority(self) -> int:
        """The priority with which it runs."""
        return self.context.priority(self.pod)

    @cached_property
    def serves(self) -> str | None:
        """What shows that somebody waits for its answers: a Service, or the annotation."""
        service = self.context.service_for(self.pod)
        if service is not None:
            return f"Service {service}"
        for metadata in (self.workload.metadata, self.pod.metadata):
            if metadata.annotations.get(LATENCY_ANNOTATION, "").lower() in _YES:
                return f"annotation {LATENCY_ANNOTATION}"
        return None

    @cached_property
    def standing(self) -> Standing:
        """Where its pods stand when memory runs short."""
        return standing(self.stored, self.context)

    def report(
        self,
        check: str,
        path: str,
        facts: Facts,
        patch: Patch,
        *,
        container: str | None = None,
        now: Pod | None = None,
        repaired: Pod | None = None,
    ) -> None:
        """Note a finding. ``path`` counts from the pod.

        ``now`` is the pod that runs, where it is not the stored one; ``repaired`` what it would be but for the finding.
        """
        before, after = self._variant(now), self._variant(repaired)
        if before is not None or after is not None:
            self.variants.append(Variant(len(self.findings), before, after))
        self.findings.append(
            Finding(
                check,
                CHECKS[check].severity,
                self.subject,
                self.prefix + path,
                facts,
                self._consequence(check, before, after),
                patch,
                container,
                suppression_by(check, self.workload.metadata.annotations, self.pod.metadata.annotations),
            )
        )

    def _variant(self, pod: Pod | None) -> Pod | None:
        if pod is None:
            return None
        pod = defaulted(pod)
        priority = self.context.priority(pod)
        return replace(pod, spec=replace(pod.spec, priority=priority), status=PodStatus())

    def _consequence(self, check: str, now: Pod | None, repaired: Pod | None) -> Consequence:
        effect = CHECKS[check].effect
        if effect is Effect.DISK:
            return Consequence(effect, disk_request=str(request_of(self.stored, EPHEMERAL_STORAGE)))
        if effect is Effect.NOT_CREATED:
            return Consequence(effect)
        return Consequence(
            effect,
            self.standing if now is None else standing(now, self.context),
            None if repaired is None else standing(repaired, self.context),
        )


def standing(pod: Pod, context: Context) -> Standing:
    """Return where a stored pod stands."""
    profile = context.options.profile
    qos_class = pod_qos_class(pod, classify(pod, profile).qos_class)
    scores = oom_scores(pod, qos_class, context.node_memory_bytes, profile)
    running = {container.name for container in pod.running_containers}
    worst = max((score for score in scores if score.container in running), key=lambda score: score.value)
    return Standing(qos_class, pod.spec.priority or 0, worst.value, worst.container, pod.is_critical)


def _in_a_namespace(item: Namespaced) -> Namespaced:
    """Return an object that names no namespace in the one where it would be created."""
    if item.metadata.namespace:
        return item
    return replace(item, metadata=replace(item.metadata, namespace=DEFAULT_NAMESPACE))


def _node_memory_bytes(surroundings: Surroundings, options: CheckOptions) -> int:
    """Return the memory of the smallest node: scores are highest there."""
    amounts = [node.status.capacity.get("memory") for node in surroundings.nodes]
    known = [amount.value for amount in amounts if amount is not None]
    return min(known) if known else options.node_memory_bytes
