"""Fields that podqos does not validate and that are worth naming: the API server may reject the pod for them.

They have rules about identity, security or volumes, or depend on objects that podqos does not read. What any container
may have and decides nothing here (probes, environment, ports) is not listed for each pod: ``admit`` says so once. Types
and names of fields are checked everywhere (``decoding``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podqos.admission.as_written import Fields, containers_of, fields_of, objects_of
from podqos.manifest.plain import Plain
from podqos.model.policy import Namespace

_METADATA = ("deletionTimestamp", "finalizers", "managedFields", "ownerReferences")
_SPEC = ("evictionResponders", "schedulingGroup", "serviceAccount", "serviceAccountName")
_ANNOTATION_PREFIXES = (
    "seccomp.security.alpha.kubernetes.io/",
    "container.seccomp.security.alpha.kubernetes.io/",
    "container.apparmor.security.beta.kubernetes.io/",
    "scheduler.alpha.kubernetes.io/tolerations",
)
# Volumes of the other sources have ends that podqos does not know.
_KNOWN_SOURCES = {
    "emptyDir", "hostPath", "secret", "nfs", "persistentVolumeClaim", "downwardAPI", "configMap", "projected", "csi",
    "image",
}  # fmt: skip
_GATED_PROJECTIONS = ("clusterTrustBundle", "podCertificate")
_ENFORCED_LEVEL = "pod-security.kubernetes.io/enforce"


def not_judged(value: Plain, pod_path: Sequence[str] = (), namespace: Namespace | None = None) -> tuple[str, ...]:
    """Return the fields of a pod, or of the template at ``pod_path``, that podqos does not validate.

    A level of Pod Security that the namespace enforces is listed as well.
    """
    for step in pod_path:
        value = fields_of(value).get(step)
    prefix = "".join(f"{step}." for step in pod_path)
    return (*_levels(namespace), *(prefix + path for path in _fields(fields_of(value))))


def _levels(namespace: Namespace | None) -> Iterator[str]:
    level = "" if namespace is None else namespace.metadata.labels.get(_ENFORCED_LEVEL, "")
    if level not in {"", "privileged"}:
        yield f"PodSecurity {level}"


def _fields(pod: Fields) -> Iterator[str]:
    metadata, spec = fields_of(pod.get("metadata")), fields_of(pod.get("spec"))
    yield from _present(metadata, _METADATA, "metadata")
    for key in fields_of(metadata.get("annotations")):
        if key.startswith(_ANNOTATION_PREFIXES):
            yield f"metadata.annotations[{key}]"
    yield from _present(spec, _SPEC, "spec")
    for owner, path in ((spec, "spec"), *containers_of(spec)):
        yield from _present(fields_of(owner.get("securityContext")), ("windowsOptions",), f"{path}.securityContext")
    for volume, path in objects_of(spec.get("volumes"), "spec.volumes"):
        yield from _present(volume, [name for name in volume if name not in {"name", *_KNOWN_SOURCES}], path)
        sources = fields_of(volume.get("projected")).get("sources")
        for source, at in objects_of(sources, f"{path}.projected.sources"):
            yield from _present(source, _GATED_PROJECTIONS, at)


def _present(value: Fields, names: Sequence[str], path: str) -> Iterator[str]:
    for name in names:
        # What says nothing is left out; but an empty source is a mistake.
        if value.get(name) not in (None, False, "", []):
            yield f"{path}.{name}"
