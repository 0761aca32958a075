"""What the API server rejects about a claim for storage, in a template of one.

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (ValidatePersistentVolumeClaimSpec, validateDataSource,
validateDataSourceRef).
"""

from __future__ import annotations

from podqos.admission.as_written import Errors, Fields, fields_of, items_of, text_of
from podqos.admission.constraints import selector_errors
from podqos.admission.field_errors import forbidden, invalid, not_supported, required
from podqos.admission.holders import selector_in
from podqos.admission.names import label_complaints, subdomain_complaints
from podqos.manifest.amounts import decode_hook
from podqos.model.quantity import Quantity

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_ALONE = "ReadWriteOncePod"
_VOLUME_MODES = ("Block", "Filesystem")
_CLAIM = "PersistentVolumeClaim"


def claim_spec_errors(spec: Fields, path: str) -> Errors:
    """Check the specification of a claim."""
    modes = [str(mode) for mode in items_of(spec.get("accessModes"))]
    if not modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from selector_errors(selector_in(spec), f"{path}.selector")
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield not_supported(f"{path}.accessModes", mode, _ACCESS_MODES)
    if _ALONE in modes and any(mode in _ACCESS_MODES and mode != _ALONE for mode in modes):
        yield forbidden(f"{path}.accessModes", "may not use ReadWriteOncePod with other access modes")
    yield from _storage_errors(spec, f"{path}.resources[storage]")
    yield from _class_errors(spec, "storageClassName", path)
    volume_mode = spec.get("volumeMode")
    if isinstance(volume_mode, str) and volume_mode not in _VOLUME_MODES:
        yield not_supported(f"{path}.volumeMode", volume_mode, _VOLUME_MODES)
    yield from _source_errors(spec, path)
    yield from _class_errors(spec, "volumeAttributesClassName", path)


def _storage_errors(spec: Fields, path: str) -> Errors:
    asked = fields_of(fields_of(spec.get("resources")).get("requests"))
    if "storage" not in asked:
        yield required(path)
        return
    written = asked["storage"]
    amount = Quantity.parse("0") if written is None else decode_hook(Quantity, written)
    assert isinstance(amount, Quantity)
    if amount.nanos <= 0:
        yield invalid(path, str(amount.rounded_up_to_milli()), "must be greater than zero")


def _class_errors(spec: Fields, field: str, path: str) -> Errors:
    name = text_of(spec, field)
    for complaint in subdomain_complaints(name) if name else ():
        yield invalid(f"{path}.{field}", name, complaint)


def _source_errors(spec: Fields, path: str) -> Errors:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for field, given in (("dataSource", source), ("dataSourceRef", reference)):
        if given is not None:
            yield from _reference_errors(fields_of(given), f"{path}.{field}")
    if source is None or reference is None:
        return
    # Upstream prints a path that has no fields of its own to print.
    if text_of(fields_of(reference), "namespace"):
        yield invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
    elif any(fields_of(source).get(field) != fields_of(reference).get(field) for field in ("apiGroup", "kind", "name")):
        yield invalid(path, {}, "must match dataSourceRef")


def _reference_errors(reference: Fields, path: str) -> Errors:
    kind, group = text_of(reference, "kind"), text_of(reference, "apiGroup")
    for field in ("name", "kind"):
        if not text_of(reference, field):
            yield required(f"{path}.{field}")
    if not group and kind != _CLAIM:
        yield invalid(path, kind, f"must be '{_CLAIM}' when referencing the default apiGroup")
    for complaint in subdomain_complaints(group) if group else ():
        yield invalid(f"{path}.apiGroup", group, complaint)
    namespace = text_of(reference, "namespace")
    for complaint in label_complaints(namespace) if namespace else ():
        yield invalid(f"{path}.namespace", namespace, complaint)
