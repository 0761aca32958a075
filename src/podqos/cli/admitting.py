"""Workloads of files through admission: the pod that the API server would store, with the policies found beside it.

What it would not store is noted as a problem, at its place in the file.
"""

from __future__ import annotations

from podqos.admission.chain import admit
from podqos.admission.policies import Policies
from podqos.admission.priority import SYSTEM_CLASSES
from podqos.admission.resource_override import CURRENT, PROFILES
from podqos.cli.objects import FoundWorkload, Objects
from podqos.model.pod import ObjectMeta, Pod
from podqos.model.policy import ClusterResourceOverride, LimitRange, Namespace, PriorityClass, RuntimeClass
from podqos.model.profile import Profile
from podqos.placement.constraints import validate_constraints
from podqos.report.admission_words import exempt


def admitted_pod(found: FoundWorkload, objects: Objects, policies: NamespacePolicies, profile: Profile) -> Pod | None:
    """Return the pod as the API server would store it; None where it would not, which is reported."""
    errors = validate_constraints(found.workload.pod)
    admission = admit(found.workload.pod, policies.of(found.workload.pod.metadata.namespace or "default"), profile)
    if admission.override is not None and admission.override.exempt is not None:
        objects.warn(found, f"ClusterResourceOverride {exempt(admission.override, admission.override.exempt)}")
    if admission.refusal is not None and admission.refusal.field_errors:
        errors += admission.refusal.field_errors
    elif admission.refusal is not None:
        objects.refuse(found, admission.refusal.message)
    objects.report(found, errors)
    return admission.pod if admission.allowed and not errors else None


class NamespacePolicies:
    """What admission looks at, namespace by namespace. Quotas are left out: ``podqos admit`` charges them."""

    def __init__(self, objects: Objects) -> None:
        self._namespaces = {namespace.metadata.name: namespace for namespace in objects.of(Namespace)}
        self._limit_ranges: dict[str, list[LimitRange]] = {}
        for limit_range in objects.of(LimitRange):
            self._limit_ranges.setdefault(limit_range.metadata.namespace or "default", []).append(limit_range)
        given = {priority_class.metadata.name: priority_class for priority_class in objects.of(PriorityClass)}
        system = {priority_class.metadata.name: priority_class for priority_class in SYSTEM_CLASSES}
        self._priority_classes = tuple({**system, **given}.values())
        self._runtime_classes = objects.of(RuntimeClass)
        self._override = next(iter(objects.of(ClusterResourceOverride)), None)
        self._override_profile = PROFILES.get(objects.override_generation, CURRENT)
        self._made: dict[str, Policies] = {}

    def of(self, namespace: str) -> Policies:
        """Return the policies for pods of a namespace."""
        if namespace not in self._made:
            self._made[namespace] = Policies(
                namespace=self._namespaces.get(namespace, Namespace(ObjectMeta(namespace))),
                limit_ranges=tuple(self._limit_ranges.get(namespace, ())),
                priority_classes=self._priority_classes,
                runtime_classes=self._runtime_classes,
                override=self._override,
                override_profile=self._override_profile,
            )
        return self._made[namespace]
