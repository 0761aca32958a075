"""The names of fields, and suggestions for misspelt ones.

The API server rejects unknown fields in new objects; so do we, because a misspelt ``resource:`` or
``initContainer:`` would otherwise change the answer silently. Objects that come from an API server may be newer
than these tables, so there only ``resources`` is held to its fields.

Source: Kubernetes v1.37 staging/src/k8s.io/api/core/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Iterable

POD_FIELDS = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})

POD_SPEC_FIELDS = frozenset({
    "activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "containers", "dnsConfig", "dnsPolicy",
    "enableServiceLinks", "ephemeralContainers", "evictionResponders", "hostAliases",
    "hostIPC", "hostNetwork", "hostPID", "hostUsers",
    "hostname", "hostnameOverride", "imagePullSecrets", "initContainers", "nodeName", "nodeSelector", "os",
    "overhead", "preemptionPolicy", "priority", "priorityClassName", "readinessGates", "resourceClaims",
    "resources", "restartPolicy", "runtimeClassName", "schedulerName", "schedulingGates", "schedulingGroup",
    "securityContext", "serviceAccount", "serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace",
    "subdomain", "terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints", "volumes",
})  # fmt: skip

CONTAINER_FIELDS = frozenset({
    "args", "command", "env", "envFrom", "image", "imagePullPolicy", "lifecycle", "livenessProbe", "name", "ports",
    "readinessProbe", "resizePolicy", "resources", "restartPolicy", "restartPolicyRules", "securityContext",
    "startupProbe", "stdin", "stdinOnce", "terminationMessagePath", "terminationMessagePolicy", "tty",
    "volumeDevices", "volumeMounts", "workingDir",
})  # fmt: skip

EPHEMERAL_CONTAINER_FIELDS = CONTAINER_FIELDS | {"targetContainerName"}

CONTAINER_LISTS = {
    "containers": CONTAINER_FIELDS,
    "initContainers": CONTAINER_FIELDS,
    "ephemeralContainers": EPHEMERAL_CONTAINER_FIELDS,
}
"""The lists of a pod spec that hold containers, and the fields of those."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return how to fix an unknown field name."""
    from podqos.amounts import nearest

    names = sorted(known)
    near = nearest(name, names)
    if near:
        return f'did you mean "{near}"?'
    return f"one of {', '.join(names)}" if len(names) < 10 else "remove it"
