"""Everything that decides about the pods of a namespace, as one value, and whether it makes sense."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from podqos.admission.field_errors import FieldError
from podqos.admission.limit_range import ConflictingDefaults, conflicting_defaults, defaulted_limit_range
from podqos.admission.policy_validation import validate_limit_range, validate_quota
from podqos.admission.priority import admit_priority_class, validate_priority_class
from podqos.admission.resource_override import CURRENT, OverrideProfile, validate_override
from podqos.model.pod import ObjectMeta
from podqos.model.policy import (
    ClusterResourceOverride,
    LimitRange,
    Namespace,
    PriorityClass,
    ResourceQuota,
    RuntimeClass,
)


class Policies(Struct, frozen=True):
    """What admission looks at besides the pod."""

    namespace: Namespace | None = Namespace(ObjectMeta("default"))
    """None: the namespace does not exist."""
    limit_ranges: tuple[LimitRange, ...] = ()
    resource_quotas: tuple[ResourceQuota, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    runtime_classes: tuple[RuntimeClass, ...] = ()
    override: ClusterResourceOverride | None = None
    override_profile: OverrideProfile = CURRENT

    def stored_limit_ranges(self) -> tuple[LimitRange, ...]:
        """Return the limit ranges with their own defaults filled in."""
        return tuple(defaulted_limit_range(limit_range) for limit_range in self.limit_ranges)

    def conflicts(self) -> tuple[ConflictingDefaults, ...]:
        """Return where what a pod gets depends on an order that is not defined."""
        return conflicting_defaults(self.stored_limit_ranges())


class PolicyError(Struct, frozen=True):
    """Something about a policy that an API server would not have stored."""

    kind: str
    name: str
    error: FieldError | str

    def __str__(self) -> str:
        """Return one line: which object, what."""
        return f'{self.kind} "{self.name}" is invalid: {self.error}'


def validate_policies(policies: Policies) -> tuple[PolicyError, ...]:
    """Return everything that is wrong with the policies themselves."""
    return tuple(_errors(policies))


def _errors(policies: Policies) -> Iterator[PolicyError]:
    for limit_range in policies.stored_limit_ranges():
        for error in validate_limit_range(limit_range):
            yield PolicyError("LimitRange", limit_range.metadata.name, error)
    for quota in policies.resource_quotas:
        for error in validate_quota(quota):
            yield PolicyError("ResourceQuota", quota.metadata.name, error)
    for index, priority_class in enumerate(policies.priority_classes):
        name = priority_class.metadata.name
        for error in validate_priority_class(priority_class):
            yield PolicyError("PriorityClass", name, error)
        denied = admit_priority_class(priority_class, policies.priority_classes[:index])
        if denied is not None:
            yield PolicyError("PriorityClass", name, denied.message)
    if policies.override is not None:
        for error in validate_override(policies.override):
            yield PolicyError("ClusterResourceOverride", "cluster", error)
