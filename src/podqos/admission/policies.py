"""Everything that affects pods, as one value per namespace and per cluster, and its validation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.field_errors import FieldError
from podqos.admission.limit_range import ConflictingDefaults, conflicting_defaults, defaulted_limit_range
from podqos.admission.policy_validation import validate_limit_range, validate_quota, validate_runtime_class
from podqos.admission.priority import admit_priority_class, validate_priority_class
from podqos.admission.resource_override import CURRENT, OverrideProfile, validate_override
from podqos.model.pod import DEFAULT_NAMESPACE, ObjectMeta
from podqos.model.policy import (
    ClusterResourceOverride,
    LimitRange,
    Namespace,
    PriorityClass,
    ResourceQuota,
    RuntimeClass,
)

T = TypeVar("T", LimitRange, ResourceQuota)

# Namespaces that an API server creates itself.
_ALWAYS_THERE = (DEFAULT_NAMESPACE, "kube-system", "kube-public", "kube-node-lease")


class AdmissionPlugin(StrEnum):
    """Plug-ins of the API server that are off by default, by the names that ``--enable-admission-plugins`` takes."""

    POD_TOLERATION_RESTRICTION = "PodTolerationRestriction"


class Policies(Struct, frozen=True):
    """What admission depends on in addition to the pod."""

    namespace: Namespace | None = Namespace(ObjectMeta(DEFAULT_NAMESPACE))
    """None: the namespace does not exist."""
    limit_ranges: tuple[LimitRange, ...] = ()
    resource_quotas: tuple[ResourceQuota, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    runtime_classes: tuple[RuntimeClass, ...] = ()
    override: ClusterResourceOverride | None = None
    override_profile: OverrideProfile = CURRENT
    enabled_plugins: tuple[AdmissionPlugin, ...] = ()
    """Plug-ins that are on in addition to the default ones."""

    def stored_limit_ranges(self) -> tuple[LimitRange, ...]:
        """Return the limit ranges with their own defaults filled in."""
        return tuple(defaulted_limit_range(limit_range) for limit_range in self.limit_ranges)

    def conflicts(self) -> tuple[ConflictingDefaults, ...]:
        """Return defaults of a pod that depend on an undefined order."""
        return conflicting_defaults(self.stored_limit_ranges())


OVERRIDE_NAME = "cluster"
"""There is one override, and its object has this name."""


class ClusterPolicies(Struct, frozen=True):
    """The policies of all namespaces."""

    policies: Policies
    """The policies of all namespaces together; ``namespace`` has no meaning here."""
    namespaces: tuple[Namespace, ...] = ()
    knows_all_namespaces: bool = False
    """Whether unlisted namespaces do not exist; otherwise they do, without labels and annotations."""
    known_classes: tuple[str, ...] = ()
    """Those of PriorityClass and RuntimeClass of which all classes of the cluster are listed."""
    listed_kinds: tuple[str, ...] = ()
    """The kinds that a live cluster, or a snapshot, listed."""
    stated_classes: tuple[str, ...] = ()
    """Names of classes that are in no file."""
    alternatives: tuple[LimitRange, ...] = ()
    """LimitRanges that contradict each other and are not applied."""


class NamespacePolicies:
    """The policies of a cluster by namespace. Objects without a namespace are in ``default``."""

    def __init__(self, cluster: ClusterPolicies) -> None:
        self._cluster = cluster
        self._namespaces = {namespace.metadata.name: namespace for namespace in cluster.namespaces}
        self._limit_ranges = _by_namespace(cluster.policies.limit_ranges)
        self._resource_quotas = _by_namespace(cluster.policies.resource_quotas)
        self._made: dict[str, Policies] = {}

    def of(self, name: str) -> Policies:
        """Return the policies for pods of a namespace."""
        name = name or DEFAULT_NAMESPACE
        if name not in self._made:
            self._made[name] = replace(
                self._cluster.policies,
                namespace=self._namespace(name),
                limit_ranges=tuple(self._limit_ranges.get(name, ())),
                resource_quotas=tuple(self._resource_quotas.get(name, ())),
            )
        return self._made[name]

    def _namespace(self, name: str) -> Namespace | None:
        is_missing = self._cluster.knows_all_namespaces and name not in _ALWAYS_THERE
        return self._namespaces.get(name, None if is_missing else Namespace(ObjectMeta(name)))


def _by_namespace(objects: Iterable[T]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = {}
    for limit_range in objects:
        found.setdefault(limit_range.metadata.namespace_or_default, []).append(limit_range)
    return found


class PolicyError(Struct, frozen=True):
    """An error in a policy for which an API server would have rejected it."""

    kind: str
    metadata: ObjectMeta
    error: FieldError | str
    is_echo: bool = False
    """Whether it is about a field that is not written, while another error is about one that is."""

    def __str__(self) -> str:
        """Return one line: which object, what."""
        return f'{self.kind} "{self.metadata.name}" is invalid: {self.error}'


def validate_policies(policies: Policies) -> tuple[PolicyError, ...]:
    """Return all errors in the policies themselves."""
    return tuple(_errors(policies))


def _errors(policies: Policies) -> Iterator[PolicyError]:
    for limit_range in policies.limit_ranges:
        yield from _limit_range_errors(limit_range)
    for quota in policies.resource_quotas:
        for error in validate_quota(quota):
            yield PolicyError("ResourceQuota", quota.metadata, error)
    for index, priority_class in enumerate(policies.priority_classes):
        metadata = priority_class.metadata
        for error in validate_priority_class(priority_class):
            yield PolicyError("PriorityClass", metadata, error)
        denied = admit_priority_class(priority_class, policies.priority_classes[:index])
        if denied is not None:
            yield PolicyError("PriorityClass", metadata, denied.message)
    for runtime_class in policies.runtime_classes:
        for error in validate_runtime_class(runtime_class):
            yield PolicyError("RuntimeClass", runtime_class.metadata, error)
    if policies.override is not None:
        for error in validate_override(policies.override):
            yield PolicyError("ClusterResourceOverride", ObjectMeta(OVERRIDE_NAME), error)


def _limit_range_errors(limit_range: LimitRange) -> Iterator[PolicyError]:
    errors = validate_limit_range(defaulted_limit_range(limit_range))
    filled_in = [_is_filled_in(error.path, limit_range) for error in errors]
    for error, is_filled_in in zip(errors, filled_in, strict=True):
        yield PolicyError("LimitRange", limit_range.metadata, error, is_filled_in and not all(filled_in))


def _is_filled_in(path: str, limit_range: LimitRange) -> bool:
    """Whether a field is not written: a LimitRange fills in some defaults of its own."""
    matched = re.fullmatch(r"spec\.limits\[(\d+)\]\.(default|defaultRequest)\[(.+)\]", path)
    if matched is None:
        return False
    item = limit_range.spec.limits[int(matched[1])]
    return matched[3] not in (item.default if matched[2] == "default" else item.default_request)
