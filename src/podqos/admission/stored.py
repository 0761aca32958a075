"""The pod as an API server stores it, for commands that see manifests and perhaps only a part of the cluster.

The pod goes through ``chain`` with the policies of its namespace. Two things are not held against it. A priority or
runtime class that it names and that was not given is taken to exist, with priority 0 and without overhead. And quotas
are not charged: what they have room for depends on all other pods of the namespace. Both are named in the result.

Nearly all manifests come without policies, so ``chain`` is imported and run only if there is something for it to do.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.changes import Change, FieldChange, Why
from podqos.admission.created import as_created, as_in_template
from podqos.admission.priority import SYSTEM_CLASSES, Priority, apply_priority, global_default, priority_of
from podqos.admission.refusal import Denied, MissingObject, Refusal, forbidden_pod
from podqos.admission.relevance import Question, judge
from podqos.model.pod import ObjectMeta, Pod, Workload
from podqos.model.policy import Overhead, PriorityClass, RuntimeClass
from podqos.model.profile import LATEST, Profile

if TYPE_CHECKING:
    from podqos.admission.chain import Admission, StepResult
    from podqos.admission.policies import ClusterPolicies, NamespacePolicies, Policies

_PRIORITY_CLASS, _RUNTIME_CLASS = "PriorityClass", "RuntimeClass"


class WhyNot(StrEnum):
    """Why a policy for a pod was not applied."""

    NOT_CHARGED = "NotCharged"
    """A quota is for all pods of a namespace together, in the order in which they are created."""
    TAKES_NO_PART = "TakesNoPart"
    """The namespace does not take part in the override: it lacks the label or annotation, or is a system namespace."""


class Unapplied(Struct, frozen=True, gc=False):
    """A policy for a pod that was not applied."""

    kind: str
    name: str
    why: WhyNot
    switch: str = ""
    """The label or annotation by which a namespace takes part."""


class Stored(Struct, frozen=True, gc=False):
    """A pod as stored, and what policies did to it."""

    pod: Pod
    """As stored, or as far as it got. Defaults that follow from the manifest alone may still be missing."""
    changes: tuple[Change | FieldChange, ...] = ()
    """The changes that policies made."""
    drift: tuple[StepResult, ...] = ()
    """The steps that changed its class, defaulting included."""
    unknown: tuple[MissingObject, ...] = ()
    """The classes it names that were not given."""
    unapplied: tuple[Unapplied, ...] = ()
    refusal: Refusal | None = None
    """The rejection of a pod that is valid as written, by policies."""


class PodStore:
    """Stores pods, each by itself; without a cluster there are only the classes that every API server has."""

    def __init__(self, cluster: ClusterPolicies | None = None, profile: Profile = LATEST) -> None:
        self._profile = profile
        self._policies: NamespacePolicies | None = None
        self._priority_classes = SYSTEM_CLASSES
        if cluster is not None:
            from podqos.admission.policies import NamespacePolicies

            self._policies = NamespacePolicies(cluster)
            self._priority_classes = cluster.policies.priority_classes
        self._has_default = global_default(self._priority_classes) is not None

    def store(self, workload: Workload) -> Stored:
        """Return the pod of a workload as it is stored."""
        pod = workload.pod
        spec = pod.spec
        names_class = spec.priority_class_name or spec.runtime_class_name
        if workload.is_stored or (self._policies is None and not names_class):
            return Stored(pod)
        policies = None if self._policies is None else self._policies.of(pod.metadata.namespace)
        if policies is not None and _concerns(pod, policies):
            return self._through_chain(workload, policies)
        return self._with_priority(workload, () if policies is None else policies.runtime_classes)

    def _with_priority(self, workload: Workload, runtime_classes: tuple[RuntimeClass, ...]) -> Stored:
        """Store a pod for which policies decide only the priority."""
        pod = workload.pod
        assumed, unknown = _assumed_classes(pod, self._priority_classes, runtime_classes)
        if not pod.spec.priority_class_name and not self._has_default:
            return Stored(pod, unknown=unknown)
        classes = [each for each in assumed if isinstance(each, PriorityClass)]
        record: list[Change | FieldChange] = []
        after = apply_priority(pod, (*self._priority_classes, *classes), record)
        if isinstance(after, Denied):
            refusal = forbidden_pod(as_created(workload), after, is_named=False)
            return Stored(pod, unknown=unknown, refusal=refusal)
        return Stored(after, _of_policies(record, unknown), unknown=unknown)

    def _through_chain(self, workload: Workload, given: Policies) -> Stored:
        from podqos.admission.chain import admit

        pod = as_created(workload)
        policies, unknown = with_assumed_classes(given, pod)
        admission = admit(pod, replace(policies, resource_quotas=()), self._profile, question=Question.CLASS)
        quotas = (
            Unapplied("ResourceQuota", quota.metadata.name, WhyNot.NOT_CHARGED) for quota in given.resource_quotas
        )
        return Stored(
            as_in_template(admission.pod, workload),
            _of_policies([change for result in admission.steps for change in result.changes], unknown),
            admission.drift,
            unknown,
            (*quotas, *_override_left_out(given)),
            None if _is_wrong_as_written(pod, admission, self._profile) else admission.refusal,
        )


def with_assumed_classes(policies: Policies, pod: Pod) -> tuple[Policies, tuple[MissingObject, ...]]:
    """Return the policies with the classes that a pod names and that were not given, and which those are."""
    assumed, unknown = _assumed_classes(pod, policies.priority_classes, policies.runtime_classes)
    if not assumed:
        return policies, ()
    priority_classes = (each for each in assumed if isinstance(each, PriorityClass))
    runtime_classes = (each for each in assumed if isinstance(each, RuntimeClass))
    policies = replace(
        policies,
        priority_classes=(*policies.priority_classes, *priority_classes),
        runtime_classes=(*policies.runtime_classes, *runtime_classes),
    )
    return policies, unknown


def _assumed_classes(
    pod: Pod, priority_classes: tuple[PriorityClass, ...], runtime_classes: tuple[RuntimeClass, ...]
) -> tuple[tuple[PriorityClass | RuntimeClass, ...], tuple[MissingObject, ...]]:
    """Return assumed classes that agree with what the pod itself states."""
    spec = pod.spec
    assumed: list[PriorityClass | RuntimeClass] = []
    unknown: list[MissingObject] = []
    if spec.priority_class_name:
        found = priority_of(spec.priority_class_name, priority_classes)
        if not isinstance(found, Priority):
            metadata = ObjectMeta(spec.priority_class_name)
            assumed.append(PriorityClass(metadata, spec.priority or 0, preemption_policy=spec.preemption_policy))
            unknown.append(MissingObject(found.message, _PRIORITY_CLASS, metadata.name))
    name = spec.runtime_class_name
    if name and all(runtime_class.metadata.name != name for runtime_class in runtime_classes):
        overhead = Overhead(spec.overhead) if spec.overhead else None
        assumed.append(RuntimeClass(ObjectMeta(name), overhead=overhead))
        unknown.append(MissingObject(f'RuntimeClass "{name}" not found', _RUNTIME_CLASS, name))
    return tuple(assumed), tuple(unknown)


def _concerns(pod: Pod, policies: Policies) -> bool:
    """Whether policies decide more about a pod than its priority."""
    if policies.limit_ranges or policies.resource_quotas or policies.override is not None or policies.enabled_plugins:
        return True
    namespace, name = policies.namespace, pod.spec.runtime_class_name
    if namespace is None or namespace.status.phase == "Terminating":
        return True
    return bool(name) and any(runtime_class.metadata.name == name for runtime_class in policies.runtime_classes)


# What only says that there was nothing to say, or follows from the manifest alone.
_OF_THE_MANIFEST = frozenset({
    Why.REQUEST_FROM_LIMIT, Why.POD_REQUEST_FROM_CONTAINERS, Why.POD_REQUEST_FROM_LIMIT,
    Why.POD_HUGEPAGES_LIMIT_FROM_CONTAINERS, Why.POD_LIMIT_FROM_CONTAINERS, Why.POD_LEVEL_RESOURCES_UNKNOWN,
    Why.ROUNDED_UP_TO_MILLI,
    Why.PRIORITY_WITHOUT_CLASS, Why.TOLERATION_OF_LOST_NODES,
})  # fmt: skip


def _of_policies(
    changes: list[Change | FieldChange], unknown: tuple[MissingObject, ...]
) -> tuple[Change | FieldChange, ...]:
    """Return the changes that a policy of the input made; a class that was only assumed makes none."""
    left_out = _OF_THE_MANIFEST
    if any(missing.kind == _PRIORITY_CLASS for missing in unknown):
        left_out |= {Why.PRIORITY_FROM_CLASS}
    return tuple(change for change in changes if change.why not in left_out)


def _override_left_out(policies: Policies) -> tuple[Unapplied, ...]:
    from podqos.admission.policies import OVERRIDE_NAME
    from podqos.admission.resource_override import is_overridden

    namespace, profile = policies.namespace, policies.override_profile
    if policies.override is None or namespace is None or is_overridden(namespace, profile):
        return ()
    switch = profile.opt_in_label or profile.opt_out_annotation
    return (Unapplied("ClusterResourceOverride", OVERRIDE_NAME, WhyNot.TAKES_NO_PART, switch),)


def _is_wrong_as_written(pod: Pod, admission: Admission, profile: Profile) -> bool:
    """Whether the API server rejects what the manifest says, whatever the policies are; that is reported elsewhere."""
    from podqos.admission.chain import Step
    from podqos.admission.defaulting import defaulted
    from podqos.admission.pod_validation import validate_new_pod

    if admission.refused_by is not Step.VALIDATION:
        return False
    return bool(judge(validate_new_pod(defaulted(pod, profile)), Question.CLASS).decisive)
