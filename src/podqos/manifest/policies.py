"""Policy objects: from plain values to the model, with all problems.

These are the objects an administrator lays down: namespaces, limit ranges, quotas, priority and runtime classes, the
override. They are few and small, so each is examined field by field. Whether one makes sense (a minimum above its
maximum, two defaults) is for ``admission`` to say.

The override comes in three shapes, and the shape tells its generation: OpenShift 4's operator has an object, its
webhook a configuration with ``spec`` (openshift/cluster-resource-override-admission,
pkg/clusterresourceoverride/config.go), and OKD 3.9's plug-in the same configuration without
(openshift/origin, pkg/quota/admission/clusterresourceoverride), by itself or in the master's ``pluginConfig``.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from podqos.manifest.decode import convert
from podqos.manifest.examine import Examination
from podqos.manifest.kinds import POLICY_GROUPS, group_of, meant_policy
from podqos.manifest.plain import FieldPath, Plain
from podqos.manifest.problems import FieldProblem
from podqos.model.pod import Toleration
from podqos.model.policy import (
    ClusterResourceOverride,
    LimitRange,
    LimitRangeItem,
    LimitRangeSpec,
    Namespace,
    NamespaceStatus,
    Overhead,
    PriorityClass,
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceQuotaStatus,
    RuntimeClass,
    RuntimeScheduling,
    ScopeRequirement,
    ScopeSelector,
)

Policy: TypeAlias = Namespace | LimitRange | ResourceQuota | PriorityClass | RuntimeClass | ClusterResourceOverride

_MODELS: dict[str, type[Policy]] = {
    "Namespace": Namespace,
    "LimitRange": LimitRange,
    "ResourceQuota": ResourceQuota,
    "PriorityClass": PriorityClass,
    "RuntimeClass": RuntimeClass,
}
# The structs of the model, and the fields they have in addition to those that are modelled.
_OTHER_FIELDS: dict[type[Struct], str] = {
    Namespace: "apiVersion kind spec",
    NamespaceStatus: "conditions",
    LimitRange: "apiVersion kind",
    LimitRangeSpec: "",
    LimitRangeItem: "",
    ResourceQuota: "apiVersion kind",
    ResourceQuotaSpec: "",
    ResourceQuotaStatus: "",
    ScopeSelector: "",
    ScopeRequirement: "",
    PriorityClass: "apiVersion kind description",
    RuntimeClass: "apiVersion kind",
    Overhead: "",
    RuntimeScheduling: "",
    Toleration: "",
}
_FIELDS: dict[type, frozenset[str]] = {
    model: frozenset(model.__struct_encode_fields__).union(more.split()) for model, more in _OTHER_FIELDS.items()
}
# Of the override's configuration, what has nothing to do with resources.
_BESIDE_OVERRIDE = frozenset({"apiVersion", "kind", "metadata", "status", "forceSelinuxRelabel"})
_NOT_MODELLED = "cpuRequestToRequestPercent"


class PolicyReading(Struct, frozen=True):
    """The reading of a policy object: a policy, or None, with its problems."""

    policy: Policy | None
    findings: tuple[FieldProblem, ...] = ()
    path: FieldPath = ()
    """From the object to what the policy was made of; findings of ``admission`` count from there."""
    generation: str = ""
    """Of an override: the name of the profile whose shape it has, ``okd-3.9`` or ``current``."""


def read_policy(kind: str, api_version: str, value: Plain) -> PolicyReading:
    """Return the policy of an object, or its problems; ``kinds.is_policy`` says which objects are policies."""
    meant = meant_policy(kind)
    assert meant is not None
    misnamed = _kind_finding(kind, meant, api_version)
    if misnamed is not None:
        return PolicyReading(None, (misnamed,))
    if meant not in _MODELS:
        return _read_override(meant, value)
    metadata = value.get("metadata") if isinstance(value, dict) else None
    examination = Examination(is_live=_is_live(metadata), fields=_FIELDS)
    cleaned = examination.clean(value, _MODELS[meant], ())
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        examination.report(("metadata", "name"), "Required value: name or generateName is required")
    if examination.findings:
        return PolicyReading(None, tuple(examination.findings))
    return PolicyReading(convert(cleaned, _MODELS[meant]))


def _kind_finding(kind: str, meant: str, api_version: str) -> FieldProblem | None:
    group = POLICY_GROUPS[meant]
    right = f"{group}/v1" if group else "v1"
    if not api_version:
        return FieldProblem((), "apiVersion not set", f"add apiVersion: {right}")
    if kind != meant:
        return FieldProblem(("kind",), f'unknown kind "{kind}"', f"did you mean {meant}?")
    if group_of(api_version) != group:
        return FieldProblem(("apiVersion",), f'no kind "{kind}" in version "{api_version}"', f"use {right}")
    return None


def _is_live(metadata: Plain) -> bool:
    if not isinstance(metadata, dict):
        return False
    return any(metadata.get(name) for name in ("uid", "resourceVersion", "creationTimestamp"))


def _read_override(kind: str, value: Plain) -> PolicyReading:
    examination = Examination(is_live=False)
    path: tuple[str, ...] = ()
    if kind == "ClusterResourceOverride":
        path = ("spec", "podResourceOverride", "spec")
    elif isinstance(value, dict) and "spec" in value:
        path = ("spec",)
    for depth, step in enumerate(path, start=1):
        if not isinstance(value, dict) or not isinstance(value.get(step), dict):
            examination.report(path[:depth], "must be a mapping, with the percentages of the override below it")
            return PolicyReading(None, tuple(examination.findings))
        value = value[step]
    if isinstance(value, dict):
        if "location" in value:
            # A plug-in of the master may name a file instead of its configuration.
            what, fix = "the override is in another file", f"give {value['location']} instead of this"
            examination.report((*path, "location"), what, fix)
            return PolicyReading(None, tuple(examination.findings))
        if value.get(_NOT_MODELLED):
            examination.report((*path, _NOT_MODELLED), "podqos does not model this percentage", "remove it")
        value = {name: inner for name, inner in value.items() if name not in {*_BESIDE_OVERRIDE, _NOT_MODELLED}}
    cleaned = examination.clean(value, ClusterResourceOverride, path)
    if examination.findings:
        return PolicyReading(None, tuple(examination.findings))
    generation = "current" if path else "okd-3.9"
    return PolicyReading(convert(cleaned, ClusterResourceOverride), path=path, generation=generation)
