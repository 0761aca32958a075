"""Strict decoding: the API server rejects what it cannot read before anything else (400).

``fieldValidation=Strict``, kubectl's default, rejects fields that do not exist, at every depth: ``resource:`` for
``resources:`` would otherwise make a pod BestEffort without a word. A value that does not fit its field is rejected in
any case. Where a field is in a file is the business of ``manifest``.

Source: Kubernetes v1.36 staging/src/k8s.io/apimachinery/pkg/runtime/serializer/json/json.go, vendor/sigs.k8s.io/json
(Go's encoding/json, case-sensitive). The decoder goes on after a value of the wrong type and reports the first; a type
with a decoder of its own (quantities, times) ends it at once; unknown fields are reported where all else is in order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from msgspec import Struct

from podqos.admission.refusal import Code, Refusal, Undecodable
from podqos.errors import InvalidManifest, InvalidQuantity
from podqos.manifest.amounts import decode_hook
from podqos.manifest.api_types import api_types
from podqos.manifest.decode import convert_pod
from podqos.manifest.kinds import POD_HOLDERS
from podqos.manifest.plain import Number, Plain
from podqos.model.pod import Pod
from podqos.model.quantity import WRONG_FORMAT, Quantity

_MOST_UNKNOWN = 100
_INT_BITS = {"int32": 31, "int64": 63}
_MAPS = {"v1.ResourceList": "map[v1.ResourceName]resource.Quantity"}
# Versions of workloads that the API server still knows and no longer serves.
_RETIRED = {
    "apps/v1beta1": ("Deployment", "StatefulSet"),
    "apps/v1beta2": ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"),
    "extensions/v1beta1": ("Deployment", "DaemonSet", "ReplicaSet"),
    "batch/v1beta1": ("CronJob",),
}
_OF_RETIRED = {
    "DeploymentSpec": {"rollbackTo": "v1beta1.RollbackConfig"},
    "DaemonSetSpec": {"templateGeneration": "int64"},
}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_META_TYPE = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'


def read_pod(value: Plain, kind: str = "Pod", api_version: str = "", pod_path: Sequence[str] = ()) -> Pod | Refusal:
    """Read the pod in an object as a client sends it, or say why the API server could not.

    ``pod_path`` leads from an object of another kind to its template. Without ``api_version`` it is today's.
    """
    try:
        refusal = decoding_refusal(value, kind, api_version, pod_path)
        if refusal is not None:
            return refusal
        for step in pod_path:
            value = _mapping(value).get(step)
        # Whatever the status of a new pod says, it is dropped.
        return convert_pod({"spec": {}} | {name: item for name, item in _mapping(value).items() if name != "status"})
    except RecursionError:
        return _refusal(kind, kind, api_version, Undecodable("exceeded max depth"))
    except InvalidManifest as error:
        what = f"{error.where}: {error.what}" if error.where else error.what
        return _refusal(kind, kind, api_version, Undecodable(what, (error.where,) if error.where else ()))


def _mapping(value: Plain) -> dict[str, Plain]:
    return value if isinstance(value, dict) else {}


def decoding_refusal(
    value: Plain, kind: str = "Pod", api_version: str = "", pod_path: Sequence[str] = ()
) -> Refusal | None:
    """Return why the API server cannot read an object of a kind, if it cannot.

    It takes no version but today's; ``api_version`` is another one that a cluster serves. Then only the template at
    ``pod_path`` is read.
    """
    served = POD_HOLDERS[kind].api_version
    if api_version in {"", served}:
        mistaken = _mistaken_kind(value, kind, served)
        if mistaken is not None:
            return mistaken
        return _unread(value, kind, served, f"v1.{kind}", _Context("", ""))
    for step in pod_path:
        value = _mapping(value).get(step)
    # A template is in the spec of its holder; a CronJob's in that of the job it creates.
    struct = "JobSpec" if len(pod_path) > 2 else f"{kind}Spec"
    context = _Context(struct, ".".join(pod_path))
    return _unread(value, kind, api_version, "v1.PodTemplateSpec" if pod_path else f"v1.{kind}", context)


def _unread(value: Plain, kind: str, api_version: str, go_type: str, context: _Context) -> Refusal | None:
    decoder = _Decoder(api_version)
    try:
        decoder.decode(value, go_type, context.fields, context)
    except _Abort as abort:
        return _refusal(kind, kind, api_version, abort.why)
    why = decoder.misfit
    if why is None and decoder.unknown:
        listed = ", ".join(f'unknown field "{place}"' for place in decoder.unknown)
        why = Undecodable(f"strict decoding error: {listed}", tuple(decoder.unknown))
    return None if why is None else _refusal(kind, kind, api_version, why)


def _refusal(given: str, kind: str, api_version: str, why: Undecodable) -> Refusal:
    """Reject an object that says it is of the kind ``given`` and is sent as a ``kind``."""
    version = api_version.rpartition("/")[2] or "v1"
    message = f'{given} in version "{version}" cannot be handled as a {kind}: {why.message}'
    return Refusal(Code.BAD_REQUEST, message, denied=why)


def _mistaken_kind(value: Plain, kind: str, served: str) -> Refusal | None:
    """Reject an object that is not what it is sent as by its own kind and version."""
    prefix = "couldn't get version/kind; json parse error: json: "
    if not isinstance(value, dict):
        return _refusal(kind, kind, served, _untyped(prefix, f"{_named(value)} into Go value of type {_META_TYPE}"))
    for field in ("apiVersion", "kind"):
        named = value.get(field)
        if named is not None and not isinstance(named, str):
            what = f"{_named(named)} into Go struct field .{field} of type string"
            return _refusal(kind, kind, served, _untyped(prefix, what, field))
    given, version = str(value.get("kind") or kind), str(value.get("apiVersion") or served)
    if (given, version) == (kind, served):
        return None
    if given == kind and kind in _RETIRED.get(version, ()):
        unread = _unread(value, kind, version, f"v1.{kind}", _Context("", ""))
        message = f"the API version in the data ({version}) does not match the expected API version ({served})"
        return unread or Refusal(Code.BAD_REQUEST, message, denied=Undecodable(message, ("apiVersion",)))
    scheme = 'in scheme "pkg/api/legacyscheme/scheme.go:30"'
    why = f'no kind "{given}" is registered for version "{version}" {scheme}'
    return _refusal(given, kind, version, Undecodable(why, ("kind" if given != kind else "apiVersion",)))


def _untyped(prefix: str, what: str, *paths: str) -> Undecodable:
    return Undecodable(f"{prefix}cannot unmarshal {what}", paths)


class _Abort(Exception):
    """A type with its own decoder cannot read its value: nothing after it is decoded."""

    def __init__(self, why: Undecodable) -> None:
        super().__init__(why.message)
        self.why = why


class _Context(Struct, frozen=True, gc=False):
    """The field being decoded, as Go names it: its struct, and its path without indexes."""

    struct: str
    fields: str

    @property
    def text(self) -> str:
        return f"Go struct field {self.struct}.{self.fields}" if self.fields else "Go value"


class _Decoder:
    """Walks a value along the types of the API; it keeps the first misfit and all unknown fields."""

    def __init__(self, api_version: str) -> None:
        self.misfit: Undecodable | None = None
        self.unknown: list[str] = []
        self._structs = api_types()
        if api_version in _RETIRED:
            own = {name: self._structs[name] | fields for name, fields in _OF_RETIRED.items()}
            self._structs = self._structs | own

    def decode(self, value: Plain, go_type: str, path: str, context: _Context) -> None:
        """Check one value. ``null`` fits everywhere."""
        if value is None or go_type == "v1.FieldsV1":
            return
        fields = self._structs.get(go_type.removeprefix("v1."))
        if fields is not None:
            if isinstance(value, dict):
                self._struct(value, fields, go_type.removeprefix("v1."), path, context)
            else:
                self._reject(value, go_type, path, context)
        elif go_type.startswith("[]"):
            if not isinstance(value, list):
                self._reject(value, go_type, path, context)
                return
            for index, item in enumerate(value):
                self.decode(item, go_type[2:], f"{path}[{index}]", context)
        elif go_type in _MAPS or go_type.startswith("map["):
            if not isinstance(value, dict):
                self._reject(value, go_type, path, context)
                return
            of_items = _MAPS.get(go_type, go_type).partition("]")[2]
            for key, item in value.items():
                self.decode(item, of_items, f"{path}[{key}]", context)
        else:
            self._scalar(value, go_type, path, context)

    def _struct(self, value: dict[str, Plain], fields: dict[str, str], name: str, path: str, context: _Context) -> None:
        for field, item in value.items():
            go_type = fields.get(field)
            if go_type == "string" and type(item) is str:
                continue  # most fields
            place = f"{path}.{field}" if path else field
            if go_type is None:
                if len(self.unknown) < _MOST_UNKNOWN:
                    self.unknown.append(place)
                continue
            embedded, _, go_type = go_type.rpartition(">")
            within = ".".join(filter(None, (context.fields, embedded.replace(">", "."), field)))
            self.decode(item, go_type, place, _Context(name, within))

    def _scalar(self, value: Plain, go_type: str, path: str, context: _Context) -> None:
        match go_type:
            case "resource.Quantity":
                try:
                    decode_hook(Quantity, value)
                except InvalidQuantity as error:
                    is_text = isinstance(value, str | float) or type(value) is int
                    raise _Abort(Undecodable(error.what if is_text else WRONG_FORMAT, (path,))) from None
            case "intstr.IntOrString":
                if not isinstance(value, str) and not _is_int(value, 31):
                    what = f"json: cannot unmarshal {_named_for_int(value)} into {context.text} of type int32"
                    raise _Abort(Undecodable(what, (path,)))
            case "v1.Time":
                _check_time(value, path, context)
            case "bool":
                if not isinstance(value, bool):
                    self._reject(value, go_type, path, context)
            case "int32" | "int64":
                if not _is_int(value, _INT_BITS[go_type]):
                    self._reject(value, go_type, path, context, _named_for_int(value))
            case _:
                # Texts, and named kinds of texts.
                if not isinstance(value, str):
                    self._reject(value, go_type, path, context)

    def _reject(self, value: Plain, go_type: str, path: str, context: _Context, named: str = "") -> None:
        if self.misfit is None:
            what = f"json: cannot unmarshal {named or _named(value)} into {context.text} of type {go_type}"
            self.misfit = Undecodable(what, (path,) if path else ())


def _check_time(value: Plain, path: str, context: _Context) -> None:
    if not isinstance(value, str):
        what = f"json: cannot unmarshal {_named(value)} into {context.text} of type string"
        raise _Abort(Undecodable(what, (path,)))
    if _TIME.fullmatch(value):
        with suppress(ValueError):
            datetime.fromisoformat(value[:19])
            return
    what = f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse "{value}" as "2006"'
    raise _Abort(Undecodable(what, (path,)))


def _is_int(value: Plain, bits: int) -> bool:
    return type(value) is int and -(1 << bits) <= value < 1 << bits


def _named(value: Plain) -> str:
    """Return Go's name for a JSON value."""
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _named_for_int(value: Plain) -> str:
    """Return the same if a number was expected: one that does not fit is quoted."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return _named(value)
    return f"number {value.text if isinstance(value, Number) else repr(value)}"
