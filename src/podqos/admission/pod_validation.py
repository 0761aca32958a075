"""What the API server rejects about a pod, field by field: its name and labels, its containers, where it wants to run.

The rules of resources are in ``validation``, those of affinity and spreading in ``constraints``. Fields that have
nothing to do with resources, priority, placement or eviction (probes, ports, environment, security, sources of volumes)
are not checked: that is what ``kubectl apply --dry-run=server`` is for.

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (ValidatePodCreate, ValidatePodSpec, validateContainers,
validateInitContainers, validateEphemeralContainers, ValidateTolerations) and
staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from podqos.admission.as_written import Errors
from podqos.admission.constraints import affinity_errors, gate_errors, key_errors, label_errors, spread_errors
from podqos.admission.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_long,
    too_many,
)
from podqos.admission.names import (
    given_name,
    label_complaints,
    label_value_complaints,
    prefix_complaints,
    qualified_name_complaints,
    subdomain_complaints,
)
from podqos.admission.validation import (
    claim_names,
    container_resource_errors,
    overhead_errors,
    pod_level_errors,
)
from podqos.model.go_text import GO_SPACES
from podqos.model.pod import (
    MIRROR_ANNOTATION,
    RESTART_ALL_CONTAINERS,
    Container,
    ExitCodes,
    ObjectMeta,
    Pod,
    PodSpec,
    ResizePolicy,
    RestartRule,
    Toleration,
    Volume,
)
from podqos.model.resources import CPU, MEMORY, ResourceRequirements

_OPERATORS = ("Equal", "Exists")
_COMPARISONS = ("Lt", "Gt")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_CONTAINER_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS = ("Restart", RESTART_ALL_CONTAINERS)
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_RESIZE_RESOURCES = (CPU, MEMORY)
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
_SYSTEMS = ("linux", "windows")

_MOST_RULES = 20
_MOST_EXIT_CODES = 255
_LARGEST_INT32 = 2**31 - 1
_LARGEST_ANNOTATIONS = 256 * 1024
Complaints = Callable[[str], list[str]]
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def validate_new_pod(pod: Pod) -> tuple[FieldError, ...]:
    """Return every error about a pod that is being created."""
    return (*metadata_errors(pod.metadata), *validate_pod(pod), *_creation_errors(pod))


def validate_pod(pod: Pod, *, is_stored: bool = False) -> tuple[FieldError, ...]:
    """Return every error about a pod's spec and metadata. A stored pod passed this when it was created."""
    merged = {} if is_stored or pod.metadata.is_live else pod.metadata.labels
    context = _Context(pod, claim_names(pod), merged)
    return (*_annotation_errors(pod, "metadata.annotations"), *_spec_errors(context), *_image_errors(pod.spec))


def validate_template(pod: Pod) -> tuple[FieldError, ...]:
    """Return every error about a pod template, by its own paths; as a pod, it has more, or fewer.

    Its labels are not merged into selectors, and its pods have names to come.
    """
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    of_metadata = (*label_errors(labels, "labels"), *_annotations_errors(annotations, "annotations"))
    context = _Context(pod, claim_names(pod), {})
    errors = (*of_metadata, *_annotation_errors(pod, "annotations"), *_spec_errors(context))
    if pod.spec.ephemeral_containers:
        words = "ephemeral containers not allowed in pod template"
        return (*errors, forbidden("spec.ephemeralContainers", words))
    return errors


def metadata_errors(
    metadata: ObjectMeta,
    complaints: Complaints = subdomain_complaints,
    complaints_of_prefix: Complaints | None = prefix_complaints,
) -> Errors:
    """Check the metadata of a new object; how it may be named depends on its kind."""
    if metadata.generate_name and complaints_of_prefix is not None:
        # What follows the dash is still to come.
        for complaint in complaints_of_prefix(metadata.generate_name):
            yield invalid("metadata.generateName", metadata.generate_name, complaint)
    name = given_name(metadata)
    if not name:
        yield required("metadata.name", "name or generateName is required")
    for complaint in complaints(name) if name else ():
        yield invalid("metadata.name", name, complaint)
    for complaint in label_complaints(metadata.namespace) if metadata.namespace else ():
        yield invalid("metadata.namespace", metadata.namespace, complaint)
    yield from label_errors(metadata.labels, "metadata.labels")
    yield from _annotations_errors(metadata.annotations, "metadata.annotations")


def _annotations_errors(annotations: dict[str, str], path: str) -> Errors:
    """Check keys and size of annotations."""
    for key in annotations:
        # Upper case is allowed here, and nowhere else.
        for complaint in qualified_name_complaints(key.lower()):
            yield invalid(path, key, complaint)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _LARGEST_ANNOTATIONS:
        yield too_long(path, _LARGEST_ANNOTATIONS)


def _annotation_errors(pod: Pod, path: str) -> Errors:
    """Check annotations that mean something."""
    annotations = pod.metadata.annotations
    mirror = annotations.get(MIRROR_ANNOTATION)
    if mirror is not None and not pod.spec.node_name:
        yield invalid(f"{path}[{MIRROR_ANNOTATION}]", mirror, "must set spec.nodeName if mirror pod annotation is set")
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not _is_int32(cost):
        yield invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer")


def _is_int32(text: str) -> bool:
    """Whether a text is a number as upstream reads the cost of deletion: no sign but minus, no leading zeros."""
    if not re.fullmatch("0|[1-9][0-9]*|-[0-9]+", text, re.ASCII):
        return False
    digits = text.removeprefix("-").lstrip("0") or "0"
    return len(digits) <= 10 and int(digits) <= _LARGEST_INT32 + text.startswith("-")


def _creation_errors(pod: Pod) -> Errors:
    if pod.spec.ephemeral_containers:
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if pod.spec.node_name and pod.spec.scheduling_gates:
        yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


class _Context(Struct, frozen=True):
    """What the checks of a pod or template look up."""

    pod: Pod
    claims: frozenset[str]
    merged_labels: dict[str, str]
    """The pod's labels whose values are still to be merged into its selectors."""

    @property
    def spec(self) -> PodSpec:
        return self.pod.spec


def _spec_errors(context: _Context) -> Errors:
    """Check the specification, in upstream's order."""
    pod, spec = context.pod, context.spec
    yield from _volume_errors(spec)
    yield from _regular_container_errors(context)
    yield from _init_container_errors(context)
    yield from _ephemeral_container_errors(context)
    yield from pod_level_errors(pod)
    if spec.restart_policy and spec.restart_policy not in _RESTART_POLICIES:
        yield not_supported("spec.restartPolicy", spec.restart_policy, _RESTART_POLICIES)
    yield from label_errors(spec.node_selector, "spec.nodeSelector")
    yield from affinity_errors(spec.affinity, context.merged_labels)
    yield from gate_errors(spec.scheduling_gates)
    yield from spread_errors(spec.topology_spread_constraints, context.merged_labels)
    yield from _subdomain_errors(spec.node_name, "spec.nodeName")
    deadline = spec.active_deadline_seconds
    if deadline is not None and not 1 <= deadline <= _LARGEST_INT32:
        words = f"must be between 1 and {_LARGEST_INT32}, inclusive"
        yield invalid("spec.activeDeadlineSeconds", deadline, words)
    for index, toleration in enumerate(spec.tolerations):
        yield from toleration_errors(toleration, f"spec.tolerations[{index}]")
    yield from _subdomain_errors(spec.priority_class_name, "spec.priorityClassName")
    if spec.runtime_class_name is not None:
        for complaint in subdomain_complaints(spec.runtime_class_name):
            yield invalid("spec.runtimeClassName", spec.runtime_class_name, complaint)
    yield from _choice_errors(spec.preemption_policy, _PREEMPTION_POLICIES, "spec.preemptionPolicy")
    yield from overhead_errors(pod)
    if spec.os is not None and not spec.os.name:
        yield required("spec.os.name")
    elif spec.os is not None and spec.os.name not in _SYSTEMS:
        yield not_supported("spec.os", spec.os.name, _SYSTEMS)


def _subdomain_errors(name: str, path: str) -> Errors:
    for complaint in subdomain_complaints(name) if name else ():
        yield invalid(path, name, complaint)


def _choice_errors(value: str | None, choices: tuple[str, ...], path: str) -> Errors:
    if value == "":
        yield required(path)
    elif value is not None and value not in choices:
        yield not_supported(path, value, choices)


# ---- volumes -------------------------------------------------------------------------------------------------------


def _volume_errors(spec: PodSpec) -> Errors:
    """Check names, and sizes of empty directories."""
    names: set[str] = set()
    for index, volume in enumerate(spec.volumes):
        errors = tuple(_one_volume_errors(volume, names, f"spec.volumes[{index}]"))
        yield from errors
        if not errors:
            names.add(volume.name)


def _one_volume_errors(volume: Volume, others: set[str], path: str) -> Errors:
    directory = volume.empty_dir
    if directory is not None and directory.size_limit is not None and directory.size_limit.nanos < 0:
        yield forbidden(f"{path}.emptyDir.sizeLimit", "SizeLimit field must be a valid resource quantity")
    if not volume.name:
        yield required(f"{path}.name")
    for complaint in label_complaints(volume.name) if volume.name else ():
        yield invalid(f"{path}.name", volume.name, complaint)
    if volume.name in others:
        yield duplicate(f"{path}.name", volume.name)


# ---- containers ----------------------------------------------------------------------------------------------------


def _regular_container_errors(context: _Context) -> Errors:
    spec = context.spec
    if not spec.containers:
        yield required("spec.containers")
    names: set[str] = set()
    for index, container in enumerate(spec.containers):
        path = f"spec.containers[{index}]"
        yield from _common_errors(container, path, context)
        if container.name in names:
            yield duplicate(f"{path}.name", container.name)
        names.add(container.name)
        yield from _restart_errors(container, path)


def _init_container_errors(context: _Context) -> Errors:
    spec = context.spec
    names = {container.name for container in spec.containers}
    for index, container in enumerate(spec.init_containers):
        path = f"spec.initContainers[{index}]"
        yield from _common_errors(container, path, context)
        yield from _restart_errors(container, path)
        if container.name in names:
            yield duplicate(f"{path}.name", container.name)
        elif container.name:
            names.add(container.name)
        if container.is_sidecar:
            continue
        for number, policy in enumerate(container.resize_policy):
            if policy.restart_policy == "RestartContainer":
                words = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                yield invalid(f"{path}.resizePolicy[{number}].restartPolicy", policy.restart_policy, words)


def _ephemeral_container_errors(context: _Context) -> Errors:
    spec = context.spec
    others = {container.name for container in (*spec.containers, *spec.init_containers)}
    names = set(others)
    for index, container in enumerate(spec.ephemeral_containers):
        path = f"spec.ephemeralContainers[{index}]"
        yield from _common_errors(container, path, context)
        yield from _blank_errors(container, path)
        if container.name in names:
            yield duplicate(f"{path}.name", container.name)
        names.add(container.name)
        if container.target_container_name and container.target_container_name not in others:
            yield not_found(f"{path}.targetContainerName", container.target_container_name)
        for name, value in (
            ("resources", container.resources if container.resources != ResourceRequirements() else None),
            ("resizePolicy", container.resize_policy or None),
            ("restartPolicy", container.restart_policy),
            ("restartPolicyRules", container.restart_policy_rules or None),
        ):
            if value is not None:
                yield forbidden(f"{path}.{name}", "cannot be set for an Ephemeral Container")


def _common_errors(container: Container, path: str, context: _Context) -> Errors:
    """Check what holds for containers of any kind."""
    if not container.name:
        yield required(f"{path}.name")
    for complaint in label_complaints(container.name) if container.name else ():
        yield invalid(f"{path}.name", container.name, complaint)
    if not container.image:
        yield required(f"{path}.image")
    yield from container_resource_errors(container.resources, f"{path}.resources", context.claims)
    yield from _resize_policy_errors(container.resize_policy, context.spec.restart_policy, f"{path}.resizePolicy")


def _resize_policy_errors(policies: tuple[ResizePolicy, ...], restart_policy: str, path: str) -> Errors:
    resources: set[str] = set()
    for index, policy in enumerate(policies):
        if policy.resource_name in resources:
            yield duplicate(f"{path}[{index}]", policy.resource_name)
        resources.add(policy.resource_name)
        yield from _choice_errors(policy.resource_name, _RESIZE_RESOURCES, path)
        yield from _choice_errors(policy.restart_policy, _RESIZE_POLICIES, path)
        if restart_policy == "Never" and policy.restart_policy != "NotRequired":
            words = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield invalid(path, policy.restart_policy, words)


def _restart_errors(container: Container, path: str) -> Errors:
    policy, rules = container.restart_policy, container.restart_policy_rules
    if policy is None and rules:
        yield required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    elif policy is not None and policy not in _CONTAINER_RESTART_POLICIES:
        yield not_supported(f"{path}.restartPolicy", policy, _CONTAINER_RESTART_POLICIES)
    if policy is None and path.startswith("spec.initContainers"):
        return
    if len(rules) > _MOST_RULES:
        yield too_many(f"{path}.restartPolicyRules", len(rules), _MOST_RULES)
    for index, rule in enumerate(rules):
        yield from _rule_errors(rule, f"{path}.restartPolicyRules[{index}]")


def _rule_errors(rule: RestartRule, path: str) -> Errors:
    if rule.action not in _RESTART_ACTIONS:
        yield not_supported(f"{path}.action", rule.action, _RESTART_ACTIONS)
    codes: ExitCodes | None = rule.exit_codes
    if codes is None:
        yield required(f"{path}.exitCodes", "must be specified")
        return
    if codes.operator not in {"In", "NotIn"}:
        yield not_supported(f"{path}.exitCodes.operator", codes.operator, ("In", "NotIn"))
    if len(codes.values) > _MOST_EXIT_CODES:
        yield too_many(f"{path}.exitCodes.values", len(codes.values), _MOST_EXIT_CODES)


def _image_errors(spec: PodSpec) -> Errors:
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            yield from _blank_errors(container, f"spec.{field}[{index}]")


def _blank_errors(container: Container, path: str) -> Errors:
    if container.image != container.image.strip(GO_SPACES):
        yield invalid(f"{path}.image", container.image, "must not have leading or trailing whitespace")


# ---- tolerations ---------------------------------------------------------------------------------------------------


def toleration_errors(toleration: Toleration, path: str) -> Errors:
    """Check one toleration."""
    if toleration.key:
        yield from key_errors(toleration.key, f"{path}.key")
    operator, value = toleration.operator, toleration.value
    if not toleration.key and operator != "Exists":
        words = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, words)
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        yield invalid(f"{path}.effect", toleration.effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in {"", "Equal"}:
        complaints = label_value_complaints(value)
        if complaints:
            yield invalid(f"{path}.operator", value, ";".join(complaints))
    elif operator == "Exists":
        if value:
            yield invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        # Comparisons exist but are off, and named all the same.
        supported = _OPERATORS + _COMPARISONS if operator in _COMPARISONS else _OPERATORS
        yield not_supported(f"{path}.operator", operator, supported)
    if toleration.effect and toleration.effect not in _EFFECTS:
        yield not_supported(f"{path}.effect", toleration.effect, _EFFECTS)
