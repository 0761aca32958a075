"""Kinds that are probably misspelt.

An object of an unknown kind is skipped, as it may be a custom resource; so ``kind: Deploymnt`` would leave a
workload out without a word. Groups that only Kubernetes can own are held to the kinds that Kubernetes has.

Source: Kubernetes v1.36 staging/src/k8s.io/api/*/*/register.go (kinds of the API), and the configuration kinds of its
components.
"""

from __future__ import annotations

from podqos.manifest.kinds import POD_HOLDERS, POLICY_GROUPS, group_of, is_custom_group

_KINDS = (
    *("APIService", "Binding", "CSIDriver", "CSINode", "CSIStorageCapacity", "CertificateSigningRequest"),
    *("ClusterRole", "ClusterRoleBinding", "ClusterTrustBundle", "ComponentStatus", "Config", "ConfigMap"),
    *("ControllerRevision", "CustomResourceDefinition", "DeviceClass", "Endpoints", "EndpointSlice", "Event"),
    *("Eviction", "FlowSchema", "HorizontalPodAutoscaler", "IPAddress", "Ingress", "IngressClass"),
    *("KubeletConfiguration", "Kustomization", "Lease", "List", "LocalSubjectAccessReview"),
    *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "NetworkPolicy"),
    *("Node", "PersistentVolume", "PersistentVolumeClaim", "PodDisruptionBudget", "PodSecurityPolicy"),
    *("PriorityLevelConfiguration", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "Role", "RoleBinding"),
    *("Scale", "Secret", "SelfSubjectAccessReview", "Service", "ServiceAccount", "ServiceCIDR", "StorageClass"),
    *("StorageVersion", "StorageVersionMigration", "SubjectAccessReview", "Template", "TokenReview"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration"),
    *("VolumeAttachment", "VolumeAttributesClass", "Workload"),
)  # fmt: skip
KNOWN_KINDS = frozenset((*POD_HOLDERS, *POLICY_GROUPS, *_KINDS))
"""Kinds that are not misspelt."""

# Groups of Kubernetes' own API whose names are domains; others below k8s.io are custom resources (kops.k8s.io).
_GROUPS = frozenset(
    f"{name}.k8s.io"
    for name in (
        *("admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization"),
        *("certificates", "coordination", "discovery", "events", "flowcontrol.apiserver", "internal.apiserver"),
        *("networking", "node", "rbac.authorization", "resource", "scheduling", "storage", "storagemigration"),
    )
)
_CLOSE_ENOUGH = 0.8


def is_kubernetes_own(kind: str, api_version: str) -> bool:
    """Whether a kind is one of Kubernetes and not a custom resource that shares its name."""
    group = group_of(api_version)
    return kind in KNOWN_KINDS and (not is_custom_group(group) or group.endswith(".config.k8s.io") or group in _GROUPS)


def meant_kind(kind: str, api_version: str) -> str | None:
    """Return the kind of Kubernetes that was probably meant by one it does not have."""
    group = group_of(api_version)
    if kind in KNOWN_KINDS or (is_custom_group(group) and group not in _GROUPS):
        return None
    import difflib

    by_lower_case = {known.lower(): known for known in sorted(KNOWN_KINDS)}
    near = difflib.get_close_matches(kind.lower(), by_lower_case, n=1, cutoff=_CLOSE_ENOUGH)
    return by_lower_case[near[0]] if near else None
