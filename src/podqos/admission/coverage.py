"""The fields of a pod that podqos does not judge: the API server may refuse it for them, and podqos would not know.

Types and names of fields are checked everywhere (``decoding``). What is listed here has rules of its own that have
nothing to do with QoS, or depends on objects that podqos does not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podqos.manifest.plain import Plain
from podqos.model.policy import Namespace

# The others are judged, or any value of the right type is fine.
_METADATA = ("deletionTimestamp", "finalizers", "managedFields", "ownerReferences")
_SPEC = (
    "dnsConfig", "dnsPolicy", "hostAliases", "hostIPC", "hostNetwork", "hostPID", "hostUsers", "hostname",
    "hostnameOverride", "imagePullSecrets", "readinessGates", "resourceClaims", "schedulingGroup", "securityContext",
    "serviceAccount", "serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain",
)  # fmt: skip
_CONTAINER = (
    "env", "envFrom", "imagePullPolicy", "lifecycle", "livenessProbe", "ports", "readinessProbe", "securityContext",
    "startupProbe", "terminationMessagePolicy", "volumeDevices", "volumeMounts",
)  # fmt: skip
_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_VOLUME = ("name", "emptyDir")
_ANNOTATION_PREFIXES = (
    "seccomp.security.alpha.kubernetes.io/",
    "container.seccomp.security.alpha.kubernetes.io/",
    "container.apparmor.security.beta.kubernetes.io/",
    "scheduler.alpha.kubernetes.io/tolerations",
)
_ENFORCED_LEVEL = "pod-security.kubernetes.io/enforce"


def not_judged(value: Plain, pod_path: Sequence[str] = (), namespace: Namespace | None = None) -> tuple[str, ...]:
    """Return the fields present in a pod, or in the template at ``pod_path``, that podqos does not judge.

    A level of Pod Security that the namespace enforces is listed as well.
    """
    for step in pod_path:
        value = _mapping(value).get(step)
    prefix = "".join(f"{step}." for step in pod_path)
    return (*_levels(namespace), *(prefix + path for path in _fields(_mapping(value))))


def _levels(namespace: Namespace | None) -> Iterator[str]:
    level = "" if namespace is None else namespace.metadata.labels.get(_ENFORCED_LEVEL, "")
    if level not in {"", "privileged"}:
        yield f"PodSecurity {level}"


def _fields(pod: dict[str, Plain]) -> Iterator[str]:
    metadata, spec = _mapping(pod.get("metadata")), _mapping(pod.get("spec"))
    yield from _present(metadata, _METADATA, "metadata")
    for key in _mapping(metadata.get("annotations")):
        if key.startswith(_ANNOTATION_PREFIXES):
            yield f"metadata.annotations[{key}]"
    yield from _present(spec, _SPEC, "spec")
    for field in _CONTAINER_LISTS:
        for index, container in enumerate(_list(spec.get(field))):
            yield from _present(_mapping(container), _CONTAINER, f"spec.{field}[{index}]")
    for index, volume in enumerate(_list(spec.get("volumes"))):
        others = [name for name in _mapping(volume) if name not in _VOLUME]
        yield from _present(_mapping(volume), others, f"spec.volumes[{index}]")


def _present(value: dict[str, Plain], names: Sequence[str], path: str) -> Iterator[str]:
    for name in names:
        # What says nothing is left out; but an empty probe or source is a mistake.
        if value.get(name) not in (None, False, "", []) and (name, value.get(name)) != ("securityContext", {}):
            yield f"{path}.{name}"


def _mapping(value: Plain) -> dict[str, Plain]:
    return value if isinstance(value, dict) else {}


def _list(value: Plain) -> list[Plain]:
    return value if isinstance(value, list) else []
