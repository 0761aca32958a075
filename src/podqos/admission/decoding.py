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

from podqos.admission.refusal import Code, Denied, Refusal
from podqos.errors import InvalidManifest, InvalidQuantity
from podqos.manifest.amounts import decode_hook
from podqos.manifest.api_types import api_types
from podqos.manifest.decode import convert_pod
from podqos.manifest.plain import Number, Plain
from podqos.model.pod import Pod
from podqos.model.quantity import WRONG_FORMAT, Quantity

_MOST_UNKNOWN = 100
_INT_BITS = {"int32": 31, "int64": 63}
_QUANTITY = "resource.Quantity"
_MAPS = {
    "v1.ResourceList": _QUANTITY,
    "map[v1.ResourceName]resource.Quantity": _QUANTITY,
    "map[string]string": "string",
}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_META_TYPE = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'


class Undecodable(Denied, frozen=True, gc=False):
    """Why an object cannot be read, and the fields at fault."""

    paths: tuple[str, ...] = ()


def read_pod(value: Plain, kind: str = "Pod", api_version: str = "v1", pod_path: Sequence[str] = ()) -> Pod | Refusal:
    """Read the pod in an object as a client sends it, or say why the API server could not.

    ``pod_path`` leads from an object of another kind to its template.
    """
    try:
        refusal = decoding_refusal(value, kind, api_version, pod_path)
        if refusal is not None:
            return refusal
        for step in pod_path:
            value = _mapping(value).get(step)
        # Whatever the status of a new pod says, it is dropped.
        return convert_pod({name: item for name, item in _mapping(value).items() if name != "status"})
    except RecursionError:
        return _refusal(kind, api_version, Undecodable("exceeded max depth"))
    except InvalidManifest as error:
        what = f"{error.where}: {error.what}" if error.where else error.what
        return _refusal(kind, api_version, Undecodable(what, (error.where,) if error.where else ()))


def _mapping(value: Plain) -> dict[str, Plain]:
    return value if isinstance(value, dict) else {}


def decoding_refusal(value: Plain, kind: str, api_version: str, pod_path: Sequence[str] = ()) -> Refusal | None:
    """Return why the API server cannot read the pod in an object, if it cannot."""
    if not pod_path:
        mistaken = _mistaken_kind(value)
        if mistaken is not None:
            return mistaken
    for step in pod_path:
        value = _mapping(value).get(step)
    path = ".".join(pod_path)
    decoder = _Decoder()
    try:
        # A template is in the spec of its holder; a CronJob's in that of the job it creates.
        struct = "JobSpec" if len(pod_path) > 2 else f"{kind}Spec"
        decoder.decode(value, "v1.PodTemplateSpec" if pod_path else "v1.Pod", path, _Context(struct, path))
    except _Abort as abort:
        return _refusal(kind, api_version, abort.why)
    found = decoder.misfit
    if found is None and decoder.unknown:
        listed = ", ".join(f'unknown field "{place}"' for place in decoder.unknown)
        found = Undecodable(f"strict decoding error: {listed}", tuple(decoder.unknown))
    return None if found is None else _refusal(kind, api_version, found)


def _refusal(kind: str, api_version: str, why: Undecodable) -> Refusal:
    version = api_version.rpartition("/")[2]
    message = f'{kind} in version "{version}" cannot be handled as a {kind}: {why.message}'
    return Refusal(Code.BAD_REQUEST, message, denied=why)


def _mistaken_kind(value: Plain) -> Refusal | None:
    """Reject an object that is not a pod by its own kind."""
    prefix = 'Pod in version "v1" cannot be handled as a Pod: couldn\'t get version/kind; json parse error: json: '
    if not isinstance(value, dict):
        why = f"cannot unmarshal {_named(value)} into Go value of type {_META_TYPE}"
        return Refusal(Code.BAD_REQUEST, prefix + why, denied=Undecodable(why))
    for field in ("apiVersion", "kind"):
        given = value.get(field)
        if given is not None and not isinstance(given, str):
            why = f"cannot unmarshal {_named(given)} into Go struct field .{field} of type string"
            return Refusal(Code.BAD_REQUEST, prefix + why, denied=Undecodable(why, (field,)))
    kind, version = value.get("kind") or "Pod", value.get("apiVersion") or "v1"
    if (kind, version) == ("Pod", "v1"):
        return None
    scheme = 'in scheme "pkg/api/legacyscheme/scheme.go:30"'
    why = f'no kind "{kind}" is registered for version "{version}" {scheme}'
    message = f'{kind} in version "{str(version).rpartition("/")[2]}" cannot be handled as a Pod: {why}'
    return Refusal(Code.BAD_REQUEST, message, denied=Undecodable(why, ("kind" if kind != "Pod" else "apiVersion",)))


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

    def __init__(self) -> None:
        self.misfit: Undecodable | None = None
        self.unknown: list[str] = []
        self._structs = api_types()

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
        elif go_type in _MAPS:
            if not isinstance(value, dict):
                self._reject(value, go_type, path, context)
                return
            for key, item in value.items():
                self.decode(item, _MAPS[go_type], f"{path}[{key}]", context)
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
