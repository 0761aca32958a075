"""A new pod's whole path through the API server, step by step.

Order: defaulting → mutating admission (LimitRange defaults, Priority, default tolerations, where it is enabled
PodTolerationRestriction, RuntimeClass overhead, the override with LimitRange run again) → since 1.37 pod-level amounts
→ validation (422) → validating admission (LimitRange bounds, RuntimeClass, quota: 403). Reading the object (400) comes
before and is in ``decoding``. What is stored is defaulted once more whenever it is read, which up to 1.36 fills in
pod-level amounts from what admission gave the containers; the class is settled by then. Each step records what it
changed and the class before and after; nothing else is decided here.

Source: Kubernetes v1.36 pkg/kubeapiserver/options/plugins.go (order of the plug-ins; those enabled by default that
touch resources, priority or tolerations), staging/src/k8s.io/apiserver/pkg/endpoints/handlers/create.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.changes import Change, FieldChange, Record, Why
from podqos.admission.defaulting import on_decoding, with_pod_level_last
from podqos.admission.field_errors import FieldError
from podqos.admission.limit_range import ConflictingDefaults, apply_limit_ranges
from podqos.admission.limit_range_bounds import first_denial
from podqos.admission.pod_validation import validate_new_pod
from podqos.admission.policies import AdmissionPlugin, Policies
from podqos.admission.priority import apply_priority
from podqos.admission.quota import check_quotas
from podqos.admission.refusal import Code, Denied, Failed, Refusal, forbidden_pod, invalid_pod
from podqos.admission.relevance import Question, judge
from podqos.admission.resource_override import OverrideUse, apply_override, is_overridden, override_use
from podqos.admission.runtime_class import apply_runtime_class, overhead_mismatch
from podqos.admission.tolerations import with_default_tolerations, with_memory_pressure_toleration
from podqos.model.pod import Pod, PodStatus, QOSClass
from podqos.model.policy import LimitRange, Namespace, ResourceQuota
from podqos.model.profile import LATEST, Profile
from podqos.qos.classes import classify


class Step(StrEnum):
    """The steps of a pod, by the names of the plug-ins if there is one."""

    DECODING = "Decoding"
    DAEMON_SET_CONTROLLER = "DaemonSet controller"
    DEFAULTING = "Defaulting"
    NAMESPACE_LIFECYCLE = "NamespaceLifecycle"
    LIMIT_RANGER = "LimitRanger"
    PRIORITY = "Priority"
    DEFAULT_TOLERATION_SECONDS = "DefaultTolerationSeconds"
    POD_TOLERATION_RESTRICTION = "PodTolerationRestriction"
    RUNTIME_CLASS = "RuntimeClass"
    CLUSTER_RESOURCE_OVERRIDE = "ClusterResourceOverride"
    LIMIT_RANGER_AGAIN = "LimitRanger (again)"
    POD_LEVEL_DEFAULTING = "Defaulting (pod level)"
    RESIZE = "Resize"
    VALIDATION = "Validation"
    LIMIT_RANGE_BOUNDS = "LimitRanger (validating)"
    RUNTIME_CLASS_OVERHEAD = "RuntimeClass (validating)"
    NODE_DECLARED_FEATURES = "NodeDeclaredFeatureValidator"
    POD_RESIZE_VALIDATOR = "PodResizeValidator"
    RESOURCE_QUOTA = "ResourceQuota"
    DEFAULTING_ON_READ = "Defaulting (on read)"


class StepResult(Struct, frozen=True, gc=False):
    """What one step did."""

    step: Step
    changes: tuple[Change | FieldChange, ...]
    class_before: QOSClass
    class_after: QOSClass


class Admission(Struct, frozen=True, gc=False):
    """The outcome for a pod."""

    pod: Pod
    """As stored, or as far as it got."""
    steps: tuple[StepResult, ...]
    """The steps that let it pass."""
    refused_by: Step | None = None
    refusal: Refusal | None = None
    quotas: tuple[ResourceQuota, ...] = ()
    """The quotas with the pod counted, if it was allowed."""
    conflicts: tuple[ConflictingDefaults, ...] = ()
    """Defaults that depend on an order that is not defined: another API server may answer differently."""
    override: OverrideUse | None = None
    """Whether an override applies to the pod, if there is one."""
    tolerated: tuple[FieldError, ...] = ()
    """Errors that the question does not depend on (see ``relevance``)."""

    @property
    def allowed(self) -> bool:
        """Whether the pod was stored."""
        return self.refusal is None

    @property
    def drift(self) -> tuple[StepResult, ...]:
        """The steps that changed the class."""
        return tuple(result for result in self.steps if result.class_before is not result.class_after)


StepFunction = Callable[[Pod, Record], Pod | Refusal]


def admit(
    pod: Pod,
    policies: Policies,
    profile: Profile = LATEST,
    question: Question = Question.ADMISSION,
) -> Admission:
    """Take a new pod through every step until one rejects it. A status that came with it is dropped.

    What is wrong with a pod and does not matter for ``question`` does not stop it.
    """
    tolerated: list[FieldError] = []

    def valid(pod: Pod) -> Pod | Refusal:
        errors = judge(validate_new_pod(pod), question)
        tolerated.extend(errors.tolerated)
        return invalid_pod(pod, errors.decisive) if errors.decisive else pod

    steps = _steps(policies, profile, valid)
    admission = run_steps(replace(pod, status=PodStatus()), policies, steps, profile=profile)
    admission = replace(admission, tolerated=tuple(tolerated)) if tolerated else admission
    if policies.override is None or policies.namespace is None:
        return admission
    return replace(admission, override=override_use(policies.namespace, policies.override_profile))


def run_steps(
    pod: Pod,
    policies: Policies,
    steps: Iterator[tuple[Step, StepFunction]],
    *,
    old: Pod | None = None,
    profile: Profile = LATEST,
) -> Admission:
    """Take a pod through the steps, then through the quotas; ``old`` is what a resize starts from."""
    results: list[StepResult] = []
    conflicts = policies.conflicts()
    class_before = classify(pod, profile).qos_class
    for step, run in steps:
        record: list[Change | FieldChange] = []
        outcome = run(pod, record)
        if isinstance(outcome, Refusal):
            return Admission(pod, tuple(results), step, outcome, conflicts=conflicts)
        class_after = class_before if outcome is pod else classify(outcome, profile).qos_class
        results.append(StepResult(step, tuple(record), class_before, class_after))
        pod, class_before = outcome, class_after
    if old is None:
        pod = replace(pod, status=PodStatus(phase="Pending", qos_class=class_before))
    decision = check_quotas(pod, policies.resource_quotas, old)
    if decision.denied is not None:
        refusal = forbidden_pod(pod, decision.denied)
        return Admission(pod, tuple(results), Step.RESOURCE_QUOTA, refusal, conflicts=conflicts)
    results.append(StepResult(Step.RESOURCE_QUOTA, (), class_before, class_before))
    record = []
    pod = on_decoding(pod, profile, record)
    if record:
        results.append(StepResult(Step.DEFAULTING_ON_READ, tuple(record), class_before, class_before))
    return Admission(pod, tuple(results), quotas=decision.quotas, conflicts=conflicts)


def _steps(
    policies: Policies, profile: Profile, valid: Callable[[Pod], Pod | Refusal]
) -> Iterator[tuple[Step, StepFunction]]:
    limit_ranges = policies.stored_limit_ranges()
    yield Step.DEFAULTING, lambda pod, record: on_decoding(_known_fields(pod, profile, record), profile, record)
    yield Step.NAMESPACE_LIFECYCLE, lambda pod, _: _in_namespace(pod, policies)
    yield Step.LIMIT_RANGER, lambda pod, record: apply_limit_ranges(pod, limit_ranges, record)
    yield Step.PRIORITY, lambda pod, record: _judged(pod, apply_priority(pod, policies.priority_classes, record))
    yield Step.DEFAULT_TOLERATION_SECONDS, with_default_tolerations
    if AdmissionPlugin.POD_TOLERATION_RESTRICTION in policies.enabled_plugins:
        yield (
            Step.POD_TOLERATION_RESTRICTION,
            lambda pod, record: with_memory_pressure_toleration(pod, classify(pod, profile).qos_class, record),
        )
    yield (
        Step.RUNTIME_CLASS,
        lambda pod, record: _judged(pod, apply_runtime_class(pod, policies.runtime_classes, record)),
    )
    if _takes_part_in_override(policies):
        yield (
            Step.CLUSTER_RESOURCE_OVERRIDE,
            lambda pod, record: _overridden(pod, policies, limit_ranges, profile, record),
        )
        yield Step.LIMIT_RANGER_AGAIN, lambda pod, record: apply_limit_ranges(pod, limit_ranges, record)
    if profile.pod_level_defaults_last:
        yield Step.POD_LEVEL_DEFAULTING, lambda pod, record: with_pod_level_last(pod, profile, record)
    yield Step.VALIDATION, lambda pod, _: valid(pod)
    yield Step.LIMIT_RANGE_BOUNDS, lambda pod, _: within_bounds(pod, limit_ranges)
    yield (
        Step.RUNTIME_CLASS_OVERHEAD,
        lambda pod, _: _judged(pod, overhead_mismatch(pod, policies.runtime_classes) or pod, is_named=True),
    )


def _known_fields(pod: Pod, profile: Profile, record: Record) -> Pod:
    """Drop fields that this version does not know."""
    if profile.pod_level_resources or pod.spec.resources is None:
        return pod
    if record is not None:
        record.append(FieldChange("spec.resources", "set", None, Why.POD_LEVEL_RESOURCES_UNKNOWN))
    return replace(pod, spec=replace(pod.spec, resources=None))


def in_namespace(namespace: Namespace | None, name: str) -> Denied | Refusal | None:
    """Return why nothing can be created in a namespace."""
    if namespace is None:
        return Refusal(Code.NOT_FOUND, f'namespaces "{name}" not found')
    if namespace.status.phase == "Terminating":
        name = namespace.metadata.name
        return Denied(f"unable to create new content in namespace {name} because it is being terminated")
    return None


def _in_namespace(pod: Pod, policies: Policies) -> Pod | Refusal:
    refused = in_namespace(policies.namespace, pod.metadata.namespace)
    if refused is not None:
        return forbidden_pod(pod, refused, is_named=False) if isinstance(refused, Denied) else refused
    assert policies.namespace is not None
    return replace(pod, metadata=replace(pod.metadata, namespace=policies.namespace.metadata.name))


def _takes_part_in_override(policies: Policies) -> bool:
    if policies.override is None or policies.namespace is None:
        return False
    return is_overridden(policies.namespace, policies.override_profile)


def _overridden(
    pod: Pod, policies: Policies, limit_ranges: tuple[LimitRange, ...], profile: Profile, record: Record
) -> Pod:
    """Run the override; what a webhook returns is defaulted once more."""
    assert policies.override is not None
    after = apply_override(pod, policies.override, limit_ranges, profile=policies.override_profile, record=record)
    return on_decoding(after, profile, record)


def _judged(pod: Pod, outcome: Pod | Denied, *, is_named: bool = False) -> Pod | Refusal:
    if isinstance(outcome, Failed):
        return Refusal(Code.INTERNAL_ERROR, outcome.message, denied=outcome)
    return forbidden_pod(pod, outcome, is_named=is_named) if isinstance(outcome, Denied) else outcome


def within_bounds(pod: Pod, limit_ranges: tuple[LimitRange, ...]) -> Pod | Refusal:
    """Check the pod against each LimitRange; the first violated one rejects it."""
    denied = first_denial(pod, limit_ranges)
    return pod if denied is None else forbidden_pod(pod, denied)
