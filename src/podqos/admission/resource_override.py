"""ClusterResourceOverride: an administrator sets requests as a percentage of limits, whatever the pods ask for.

It acts on containers and init containers that have limits; LimitRange defaults come before it. Two generations differ
in who takes part and in what happens at the bounds of a LimitRange; each is a frozen profile.

Sources: OKD 3.9 openshift/origin pkg/quota/admission/clusterresourceoverride (``okd-3.9``); OpenShift's webhook
openshift/cluster-resource-override-admission pkg/clusterresourceoverride (``current``). Not modelled: the webhook's
``cpuRequestToRequestPercent``, namespaced ResourceOverride objects and the SELinux switch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.changes import Change, Record, Why
from podqos.admission.field_errors import FieldError, forbidden, invalid
from podqos.admission.limit_range import CONTAINER
from podqos.model.pod import Container, Pod
from podqos.model.policy import ClusterResourceOverride, LimitRange, Namespace
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceRequirements

GIB = 1024**3
_MIB, _MB = 1024**2, 1000**2
_CPU_FLOOR = Quantity.parse("1m")
_MEMORY_FLOOR = Quantity.parse("1Mi")
_INT64_MAX = 2**63 - 1
_EXEMPT = ("openshift", "kubernetes", "kube")


class OverrideProfile(Struct, frozen=True):
    """The behaviour of one generation of the override."""

    name: str
    opt_in_label: str = ""
    """A namespace takes part only with this label set to ``true``."""
    opt_out_annotation: str = ""
    """A namespace takes part unless this annotation is set to anything but ``true``."""
    exempts_system_namespaces: bool = False
    within_limit_range: bool = False
    """Amounts are raised to the smallest minimum and lowered to the largest maximum of the namespace's LimitRanges;
    otherwise a LimitRange rejects the pod afterwards."""
    cpu_arithmetic: Literal["float", "exact"] = "exact"
    """29 % of 100m are 29m; the older plug-in multiplied by 0.29 and cut off at 28m."""


PROFILES = {
    "okd-3.9": OverrideProfile(
        "okd-3.9",
        opt_out_annotation="quota.openshift.io/cluster-resource-override-enabled",
        cpu_arithmetic="float",
    ),
    "current": OverrideProfile(
        "current",
        opt_in_label="clusterresourceoverrides.admission.autoscaling.openshift.io/enabled",
        exempts_system_namespaces=True,
        within_limit_range=True,
    ),
}
CURRENT = PROFILES["current"]


def validate_override(override: ClusterResourceOverride) -> tuple[FieldError, ...]:
    """Return the errors of the percentages."""
    return tuple(_override_errors(override))


def _override_errors(override: ClusterResourceOverride) -> Iterator[FieldError]:
    memory, cpu = override.memory_request_to_limit_percent, override.cpu_request_to_limit_percent
    cpu_limit = override.limit_cpu_to_memory_percent
    if not (memory or cpu or cpu_limit):
        yield forbidden("ClusterResourceOverride", "plugin enabled but no percentages were specified")
    if cpu_limit < 0:
        yield invalid("limitCPUToMemoryPercent", cpu_limit, "must be positive")
    for field, percent in (("cpuRequestToLimitPercent", cpu), ("memoryRequestToLimitPercent", memory)):
        if not 0 <= percent <= 100:
            yield invalid(field, percent, "must be between 0 and 100")


class Exempt(StrEnum):
    """Why an override leaves a namespace alone."""

    SYSTEM_NAMESPACE = "SystemNamespace"
    NOT_OPTED_IN = "NotOptedIn"
    """It lacks the label."""
    OPTED_OUT = "OptedOut"
    """By its annotation."""


class OverrideUse(Struct, frozen=True, gc=False):
    """What an override means for the pods of a namespace."""

    namespace: str
    profile: OverrideProfile
    exempt: Exempt | None
    """None: they are overridden."""


def override_use(namespace: Namespace, profile: OverrideProfile) -> OverrideUse:
    """Return whether the pods of a namespace are overridden, and why not."""
    metadata = namespace.metadata
    exempt = None
    if profile.exempts_system_namespaces and _is_system(metadata.name):
        exempt = Exempt.SYSTEM_NAMESPACE
    elif profile.opt_in_label and metadata.labels.get(profile.opt_in_label) != "true":
        exempt = Exempt.NOT_OPTED_IN
    elif profile.opt_out_annotation and metadata.annotations.get(profile.opt_out_annotation, "true") != "true":
        exempt = Exempt.OPTED_OUT
    return OverrideUse(metadata.name, profile, exempt)


def is_overridden(namespace: Namespace, profile: OverrideProfile) -> bool:
    """Whether the pods of a namespace are overridden."""
    return override_use(namespace, profile).exempt is None


def _is_system(name: str) -> bool:
    return name in _EXEMPT or name.startswith(tuple(f"{prefix}-" for prefix in _EXEMPT))


class _Range(Struct, frozen=True):
    """The bounds of an amount."""

    least: Quantity
    most: Quantity | None = None

    def keep(self, amount: Quantity) -> Quantity:
        amount = max(amount, self.least)
        return amount if self.most is None else min(amount, self.most)


def apply_override(
    pod: Pod,
    override: ClusterResourceOverride,
    limit_ranges: Sequence[LimitRange] = (),
    *,
    profile: OverrideProfile = CURRENT,
    record: Record = None,
) -> Pod:
    """Return the pod with the override's requests (and cpu limits) in every container that has limits."""
    bounding = limit_ranges if profile.within_limit_range else ()
    rules = _Rules(override, profile, _range(CPU, _CPU_FLOOR, bounding), _range(MEMORY, _MEMORY_FLOOR, bounding))
    spec = replace(
        pod.spec,
        containers=tuple(
            _overridden(container, rules, f"spec.containers[{index}].resources", record)
            for index, container in enumerate(pod.spec.containers)
        ),
        init_containers=tuple(
            _overridden(container, rules, f"spec.initContainers[{index}].resources", record)
            for index, container in enumerate(pod.spec.init_containers)
        ),
    )
    return replace(pod, spec=spec)


def _range(resource: str, floor: Quantity, limit_ranges: Sequence[LimitRange]) -> _Range:
    items = [item for limit_range in limit_ranges for item in limit_range.spec.limits if item.type == CONTAINER]
    least = min((item.min[resource] for item in items if resource in item.min), default=floor)
    most = max((item.max[resource] for item in items if resource in item.max), default=None)
    return _Range(least, most)


class _Rules(Struct, frozen=True):
    """What the override does to any container."""

    override: ClusterResourceOverride
    profile: OverrideProfile
    cpu: _Range
    memory: _Range


# In this order: the cpu request follows the cpu limit that was just set.
_REASONS = (
    ("requests", MEMORY, Why.MEMORY_REQUEST_FROM_LIMIT),
    ("limits", CPU, Why.CPU_LIMIT_FROM_MEMORY),
    ("requests", CPU, Why.CPU_REQUEST_FROM_LIMIT),
)


def _overridden(container: Container, rules: _Rules, path: str, record: Record) -> Container:
    before = container.resources
    after = _apply_rules(before, rules)
    if after == before:
        return container
    if record is not None:
        for side, name, why in _REASONS:
            was: Quantity | None = getattr(before, side).get(name)
            became: Quantity | None = getattr(after, side).get(name)
            if became is not None and became != was:
                record.append(Change(f"{path}.{side}", name, was, became, why, "ClusterResourceOverride"))
    return replace(container, resources=after)


def _apply_rules(resources: ResourceRequirements, rules: _Rules) -> ResourceRequirements:
    override, profile = rules.override, rules.profile
    requests, limits = dict(resources.requests), dict(resources.limits)
    memory_limit = limits.get(MEMORY)
    if memory_limit is not None:
        if override.memory_request_to_limit_percent:
            requests[MEMORY] = rules.memory.keep(
                _memory_request(memory_limit, override.memory_request_to_limit_percent)
            )
        if override.limit_cpu_to_memory_percent:
            limits[CPU] = rules.cpu.keep(_cpu_limit(memory_limit, override.limit_cpu_to_memory_percent, profile))
    if CPU in limits and override.cpu_request_to_limit_percent:
        requests[CPU] = rules.cpu.keep(_cpu_request(limits[CPU], override.cpu_request_to_limit_percent, profile))
    return replace(resources, requests=requests, limits=limits)


def _memory_request(limit: Quantity, percent: int) -> Quantity:
    """Cut to whole MiB, or MB where the limit is written in powers of ten.

    The way through a fraction is both generations' own: 29 % become 0.29 × 100, cut to 28.
    """
    amount = limit.value * int(percent / 100 * 100) // 100
    return Quantity.of_units(amount - amount % (_MIB if limit.format == "BinarySI" else _MB), limit.format)


def _cpu_limit(memory_limit: Quantity, percent: int, profile: OverrideProfile) -> Quantity:
    if profile.cpu_arithmetic == "float":
        return Quantity.of_milli(int(min(memory_limit.value, _INT64_MAX) * (percent / 100) * (1000 / GIB)))
    return Quantity.of_milli(memory_limit.value * percent * 1000 // (100 * GIB))


def _cpu_request(limit: Quantity, percent: int, profile: OverrideProfile) -> Quantity:
    if profile.cpu_arithmetic == "float":
        return Quantity.of_milli(int(min(limit.milli_value, _INT64_MAX) * (percent / 100)), limit.format)
    return Quantity.of_milli(limit.milli_value * percent // 100, limit.format)
