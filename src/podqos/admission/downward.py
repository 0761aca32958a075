"""The downward API: references to a pod's fields and resources, in the environment and in volumes.

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (validateObjectFieldSelector,
validateContainerResourceFieldSelector, validateContainerResourceDivisor), pkg/apis/core/pods/helpers.go and
pkg/fieldpath/fieldpath.go.
"""

from __future__ import annotations

from contextlib import suppress

from podqos.admission.as_written import Errors, Fields, text_of
from podqos.admission.field_errors import invalid, not_supported, required
from podqos.admission.names import qualified_name_complaints
from podqos.errors import InvalidQuantity
from podqos.manifest.amounts import decode_hook
from podqos.model.quantity import Quantity

_FIELDS = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
    "spec.restartPolicy", "spec.serviceAccountName", "spec.schedulerName", "status.phase", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_RENAMED = {"spec.host": "spec.nodeName"}
_RESOURCES = tuple(
    f"{side}.{name}" for side in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_CPU_DIVISORS = ("1m", "1")
_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def field_errors(reference: Fields, supported: tuple[str, ...], path: str) -> Errors:
    """Check a reference to a field of the pod; ``supported`` are the fields available here."""
    where, version, at = text_of(reference, "fieldPath"), text_of(reference, "apiVersion") or "v1", f"{path}.fieldPath"
    name, has_key, key = where.removesuffix("']").partition("['") if where.endswith("']") else (where, "", "")
    if not where:
        yield required(at)
    elif version != "v1":
        yield invalid(at, where, f"error converting fieldPath: unsupported pod version: {version}")
    elif has_key and name:
        if name not in {"metadata.annotations", "metadata.labels"}:
            yield invalid(at, where, f"error converting fieldPath: field label does not support subscript: {where}")
            return
        key = key.lower() if name == "metadata.annotations" else key
        for complaint in qualified_name_complaints(key):
            yield invalid(path, key, complaint)
    elif _RENAMED.get(where, where) not in _FIELDS:
        yield invalid(at, where, f"error converting fieldPath: field label not supported: {where}")
    elif _RENAMED.get(where, where) not in supported:
        yield not_supported(at, _RENAMED.get(where, where), supported)


def resource_errors(reference: Fields, path: str, *, of_any_container: bool = False) -> Errors:
    """Check a reference to a resource of this container or, in a volume, of one that is named."""
    resource = text_of(reference, "resource")
    if of_any_container and not text_of(reference, "containerName"):
        yield required(f"{path}.containerName")
    elif not resource:
        yield required(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        yield not_supported(f"{path}.resource", resource, _RESOURCES)
    with suppress(InvalidQuantity):
        divisor = decode_hook(Quantity, reference.get("divisor") or 0)
        yield from _divisor_errors(resource, str(divisor), f"{path}.divisor")


def _divisor_errors(resource: str, divisor: str, path: str) -> Errors:
    name = resource.partition(".")[2]
    if divisor == "0" or (resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES)):
        return
    if name == "cpu":
        if divisor not in _CPU_DIVISORS:
            yield invalid(path, resource, "only divisor's values 1m and 1 are supported with the cpu resource")
    elif divisor not in _DIVISORS:
        kind = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(name, "hugepages")
        words = f"only divisor's values {', '.join(_DIVISORS)} are supported with the {kind} resource"
        yield invalid(path, resource, words)
