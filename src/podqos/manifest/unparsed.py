"""Which documents need not be parsed: objects of Kubernetes' own kinds that hold neither pods nor policies.

Most bytes of a repository are such objects: CustomResourceDefinitions, ConfigMaps with dashboards, RBAC. Their
``apiVersion`` and ``kind``, each on a line of its own at column 0, are enough to know. An error inside such a document
is not found. The list is closed: a kind that is not on it may hold pods and is parsed.
"""

from __future__ import annotations

import re

from podqos.manifest.kinds import group_of
from podqos.manifest.text import Chunk

_KINDS: dict[str, tuple[str, ...]] = {
    "": (
        *("ConfigMap", "Endpoints", "Event", "PersistentVolume", "PersistentVolumeClaim", "Secret", "Service"),
        "ServiceAccount",
    ),
    "admissionregistration.k8s.io": (
        *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration"),
    ),
    "apiextensions.k8s.io": ("CustomResourceDefinition",),
    "apiregistration.k8s.io": ("APIService",),
    "certificates.k8s.io": ("CertificateSigningRequest", "ClusterTrustBundle"),
    "coordination.k8s.io": ("Lease",),
    "discovery.k8s.io": ("EndpointSlice",),
    "extensions": ("Ingress", "NetworkPolicy"),
    "flowcontrol.apiserver.k8s.io": ("FlowSchema", "PriorityLevelConfiguration"),
    "networking.k8s.io": ("IPAddress", "Ingress", "IngressClass", "NetworkPolicy", "ServiceCIDR"),
    "rbac.authorization.k8s.io": ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    "storage.k8s.io": (
        *("CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"),
    ),
}
_BY_KIND = {
    kind.encode(): frozenset(group for group, kinds in _KINDS.items() if kind in kinds)
    for kind in sorted({kind for kinds in _KINDS.values() for kind in kinds})
}

_VALUE = re.compile(rb"""[ ]++(["']?+)([A-Za-z0-9./-]++)\1[ ]*+(?:(?<=[ ])#[^\n]*+|)(?=\n|\Z)""")


def unparsed_type(text: bytes, chunk: Chunk, *, skips_services: bool) -> tuple[str, str] | None:
    """Return kind and apiVersion of the document in a chunk if it need not be parsed."""
    if len(chunk.kinds) != 1 or not chunk.versions or chunk.may_hold_more:
        return None
    kind = _VALUE.match(text, chunk.kinds[0] + len("kind:"), chunk.end)
    if kind is None or kind[2] not in _BY_KIND or (kind[2] == b"Service" and not skips_services):
        return None
    api_version = _VALUE.match(text, chunk.versions[0] + len("apiVersion:"), chunk.end)
    if api_version is None or group_of(api_version[2].decode()) not in _BY_KIND[kind[2]]:
        return None
    return kind[2].decode(), api_version[2].decode()
