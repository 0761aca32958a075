"""Objects around pod templates, as the checks of ``workload_validation`` see them.

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (ValidatePodTemplateSpec) and
staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.as_written import Errors, Fields, fields_of, items_of, objects_of, text_of
from podqos.admission.field_errors import forbidden, invalid, not_supported
from podqos.admission.names import qualified_name_complaints
from podqos.admission.pod_validation import validate_template
from podqos.manifest.decode import convert
from podqos.manifest.plain import Plain
from podqos.model.pod import ObjectMeta, Pod
from podqos.model.selector import LabelSelector

NEGATIVE = "must be greater than or equal to 0"
_TEXT_MAPS = frozenset({"labels", "annotations", "matchLabels"})
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_FINALIZERS = ("kubernetes", _ORPHAN, _FOREGROUND)
_OWNER = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")


class Holder(Struct, frozen=True):
    """An object around a pod template, as decoded."""

    kind: str
    value: Fields
    pod: Pod
    """Of its template."""
    pod_path: tuple[str, ...]

    @property
    def metadata(self) -> ObjectMeta:
        """Of the object."""
        return metadata_in(self.value)

    @property
    def spec(self) -> Fields:
        """Of the object."""
        return fields_of(self.value.get("spec"))

    @property
    def template(self) -> Fields:
        """The template as written."""
        value: Plain = self.value
        for step in self.pod_path:
            value = fields_of(value).get(step)
        return fields_of(value)

    @property
    def labels(self) -> dict[str, str] | None:
        """The labels of the template; None if there are none at all."""
        written = fields_of(self.template.get("metadata")).get("labels")
        return self.pod.metadata.labels if isinstance(written, dict) else None

    @property
    def path(self) -> str:
        """The path of the template."""
        return ".".join(self.pod_path)


def metadata_in(value: Fields) -> ObjectMeta:
    """Return the metadata of an object as written."""
    return convert(_zeroed(value.get("metadata") or {}), ObjectMeta)


def selector_in(spec: Fields) -> LabelSelector | None:
    """Return a selector as written."""
    written = spec.get("selector")
    return None if written is None else convert(_zeroed(written), LabelSelector)


def _zeroed(value: Plain, field: str = "") -> Plain:
    """Return a value in which null is what Go makes of it: nothing, or an empty text as the item of a map or list."""
    if isinstance(value, dict):
        if field in _TEXT_MAPS:
            return {key: item or "" for key, item in value.items()}
        return {key: _zeroed(item, key) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        empty: Plain = {} if field == "matchExpressions" else ""
        return [empty if item is None else _zeroed(item) for item in value]
    return value


def template_errors(holder: Holder, spec: Fields | None = None) -> Errors:
    """Check the template; ``spec`` is that of its pods as they will be, if they will differ."""
    written = fields_of(holder.template.get("spec")) if spec is None else spec
    for error in validate_template(holder.pod, written):
        yield replace(error, path=f"{holder.path}.{error.path}")


def running_errors(holder: Holder, named: str) -> Errors:
    """Check that the pods of a controller are to run for ever."""
    spec, path = holder.pod.spec, f"{holder.path}.spec"
    if spec.restart_policy not in {"", "Always"}:
        yield not_supported(f"{path}.restartPolicy", spec.restart_policy, ("Always",))
    if spec.active_deadline_seconds is not None:
        yield forbidden(f"{path}.activeDeadlineSeconds", f"activeDeadlineSeconds in {named} is not Supported")


def negative_errors(spec: Fields, names: Iterable[str], path: str) -> Errors:
    """Check numbers that must not be negative."""
    for name in names:
        number = spec.get(name)
        if isinstance(number, int) and number < 0:
            yield invalid(f"{path}.{name}", number, NEGATIVE)


def owner_errors(metadata: Fields) -> Errors:
    """Check owners and finalizers."""
    yield from _owner_errors(metadata, "metadata.ownerReferences")
    path = "metadata.finalizers"
    finalizers = [str(finalizer) for finalizer in items_of(metadata.get("finalizers"))]
    for finalizer in finalizers:
        for complaint in qualified_name_complaints(finalizer):
            yield invalid(path, finalizer, complaint)
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        listed: list[Plain] = [*finalizers]
        yield invalid(path, listed, f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set")
    for index, finalizer in enumerate(finalizers):
        if "/" not in finalizer and finalizer not in _FINALIZERS:
            words = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"{path}[{index}]", finalizer, words)


def _owner_errors(metadata: Fields, path: str) -> Errors:
    owners = [owner for owner, _ in objects_of(metadata.get("ownerReferences"), path)]
    controller = ""
    for owner in owners:
        version, kind = text_of(owner, "apiVersion"), text_of(owner, "kind")
        if not version.rpartition("/")[2] or version.count("/") > 1:
            yield invalid(f"{path}.apiVersion", version, "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not text_of(owner, field):
                yield invalid(f"{path}.{field}", text_of(owner, field), "must not be empty")
        if (version, kind) == ("v1", "Event"):
            words = "/v1, Kind=Event is disallowed from being an owner"
            yield invalid(path, _printed(owner), words)
        if owner.get("controller") is True:
            own = f"{kind}/{text_of(owner, 'name')}"
            if controller:
                words = 'Only one reference can have Controller set to true. Found "true" in references for'
                every: list[Plain] = [_printed(reference) for reference in owners]
                yield invalid(path, every, f"{words} {controller} and {own}")
            else:
                controller = own


def _printed(owner: Fields) -> Fields:
    texts = {name: text_of(owner, name) for name in _OWNER[:4]}
    return texts | {name: owner[name] for name in _OWNER[4:] if owner.get(name) is not None}
