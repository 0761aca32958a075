"""Priority: the number behind a pod's priority class, and which classes may exist.

Source: Kubernetes v1.36 plugin/pkg/admission/priority/admission.go, pkg/apis/scheduling/validation/validation.go,
pkg/apis/scheduling/v1/helpers.go. The two system classes exist only where they are listed, as every API server does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.changes import FieldChange, Record, Why
from podqos.admission.field_errors import FieldError, forbidden, invalid, not_supported, required
from podqos.admission.names import subdomain_complaints
from podqos.admission.refusal import Denied, MissingObject
from podqos.model.pod import SYSTEM_CRITICAL_PRIORITY, SYSTEM_NODE_CRITICAL, ObjectMeta, Pod
from podqos.model.policy import PriorityClass

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
_PREEMPTION_POLICIES = (PREEMPT_LOWER_PRIORITY, "Never")

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PREFIX = "system-"
SYSTEM_PRIORITIES = {
    "system-cluster-critical": SYSTEM_CRITICAL_PRIORITY,
    SYSTEM_NODE_CRITICAL: SYSTEM_CRITICAL_PRIORITY + 1000,
}


SYSTEM_CLASSES = tuple(PriorityClass(ObjectMeta(name), value) for name, value in SYSTEM_PRIORITIES.items())
"""What every API server creates when it starts."""


class Priority(Struct, frozen=True, gc=False):
    """What a priority class means for a pod."""

    class_name: str
    value: int
    preemption_policy: str
    why: Why


def priority_of(class_name: str, classes: Sequence[PriorityClass]) -> Priority | Denied:
    """Resolve the name of a class; no name means the global default, or else zero."""
    if not class_name:
        default = global_default(classes)
        if default is None:
            return Priority("", 0, PREEMPT_LOWER_PRIORITY, Why.PRIORITY_WITHOUT_CLASS)
        return _priority(default, Why.PRIORITY_FROM_GLOBAL_DEFAULT)
    for priority_class in classes:
        if priority_class.metadata.name == class_name:
            return _priority(priority_class, Why.PRIORITY_FROM_CLASS)
    return MissingObject(f"no PriorityClass with name {class_name} was found", "PriorityClass", class_name)


def _priority(priority_class: PriorityClass, why: Why) -> Priority:
    policy = priority_class.preemption_policy or PREEMPT_LOWER_PRIORITY
    return Priority(priority_class.metadata.name, priority_class.value, policy, why)


def global_default(classes: Sequence[PriorityClass]) -> PriorityClass | None:
    """Return the global default class; if there are several, the lowest counts."""
    defaults = [priority_class for priority_class in classes if priority_class.global_default]
    return min(defaults, key=lambda priority_class: priority_class.value, default=None)


def apply_priority(pod: Pod, classes: Sequence[PriorityClass], record: Record = None) -> Pod | Denied:
    """Write priority and preemption policy into the pod, or reject it: it may state only what would be computed."""
    spec = pod.spec
    priority = priority_of(spec.priority_class_name, classes)
    if isinstance(priority, Denied):
        return priority
    if spec.priority is not None and spec.priority != priority.value:
        return _contradicts(f"integer value of priority ({spec.priority})", priority.value)
    if spec.preemption_policy is not None and spec.preemption_policy != priority.preemption_policy:
        return _contradicts(f"string value of PreemptionPolicy ({spec.preemption_policy})", priority.preemption_policy)
    after = replace(
        spec,
        priority_class_name=priority.class_name,
        priority=priority.value,
        preemption_policy=priority.preemption_policy,
    )
    if record is not None:
        for path, was, became in (
            ("spec.priorityClassName", spec.priority_class_name, after.priority_class_name),
            ("spec.priority", spec.priority, priority.value),
            ("spec.preemptionPolicy", spec.preemption_policy, after.preemption_policy),
        ):
            if was != became:
                record.append(FieldChange(path, was or None, became, priority.why, priority.class_name))
    return replace(pod, spec=after)


def _contradicts(what: str, computed: str | int) -> Denied:
    return Denied(
        f"the {what} must not be provided in pod spec; "
        f"priority admission controller computed {computed} from the given PriorityClass name"
    )


def validate_priority_class(priority_class: PriorityClass) -> tuple[FieldError, ...]:
    """Return the errors of a single priority class."""
    return tuple(_class_errors(priority_class))


def _class_errors(priority_class: PriorityClass) -> Iterator[FieldError]:
    name = priority_class.metadata.name
    for complaint in subdomain_complaints(name):
        yield invalid("metadata.name", name, complaint)
    if name.startswith(SYSTEM_PREFIX):
        complaint = _not_a_system_class(priority_class)
        if complaint:
            reserved = f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only"
            yield forbidden("metadata.name", f"{reserved}. error: {complaint}")
    elif priority_class.value > HIGHEST_USER_PRIORITY:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}")
    policy = priority_class.preemption_policy
    if policy == "":
        yield required("preemptionPolicy")
    elif policy is not None and policy not in _PREEMPTION_POLICIES:
        yield not_supported("preemptionPolicy", policy, _PREEMPTION_POLICIES)


def _not_a_system_class(priority_class: PriorityClass) -> str:
    name = priority_class.metadata.name
    value = SYSTEM_PRIORITIES.get(name)
    if value is None:
        return f"{name} is not a known system priority class"
    if priority_class.value != value:
        return f"value of {name} PriorityClass must be {value}"
    return f"globalDefault of {name} PriorityClass must be false" if priority_class.global_default else ""


def admit_priority_class(new: PriorityClass, existing: Sequence[PriorityClass]) -> Denied | None:
    """Reject a second global default."""
    default = global_default(existing) if new.global_default else None
    if default is None:
        return None
    return Denied(f"PriorityClass {default.metadata.name} is already marked as default. Only one default can exist")
