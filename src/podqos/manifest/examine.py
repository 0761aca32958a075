"""Finds all problems of an object, field by field.

Run only where the quick conversion in ``decode`` failed or something looked odd: it walks a plain value along the
model's own types and collects every misfit with its field path, instead of stopping at the first. On the way it
applies Go's rules for null (a null field is absent, a null item is an empty one, a null amount is zero), so that what
it returns converts.

It judges shape: types, names of fields, amounts that cannot be read. Whether values make sense together
(requests above limits, say) is admission's business.

Source: Kubernetes decodes with sigs.k8s.io/json (encoding/json's rules, case-sensitive, strict about unknown fields).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import cast

from msgspec import Struct, inspect

from podqos.errors import InvalidQuantity
from podqos.manifest.amounts import decode_hook
from podqos.manifest.fields import CONTAINER_LISTS, POD_SPEC_FIELDS, suggestion
from podqos.manifest.kinds import BATCH, CRON_JOB, PodHolder, Scale
from podqos.manifest.placeholders import placeholder_hint
from podqos.manifest.plain import FieldPath, Plain
from podqos.manifest.problems import FieldProblem, Severity
from podqos.model.jobs import CronJobSpec, JobSpec
from podqos.model.pod import ObjectMeta, PodSpec, PodStatus
from podqos.model.quantity import Quantity, meant_cores


def examine(holder: PodHolder, value: dict[str, Plain]) -> tuple[dict[str, Plain], tuple[FieldProblem, ...]]:
    """Return an object that holds a pod, without nulls, and all its problems."""
    metadata = value.get("metadata")
    is_live = isinstance(metadata, dict) and any(
        metadata.get(name) for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields")
    )
    examination = Examination(is_live=is_live)
    cleaned: dict[str, Plain] = {"metadata": examination.clean(metadata, ObjectMeta, ("metadata",))}
    if metadata is None or (isinstance(metadata, dict) and not (metadata.get("name") or metadata.get("generateName"))):
        examination.report(("metadata", "name"), "Required value: name or generateName is required")
    if holder.pod_path:
        _examine_template(examination, holder, value, cleaned)
    else:
        _examine_spec(examination, value, cleaned, ())
    status = value.get("status")
    if is_live and not holder.pod_path:
        cleaned["status"] = examination.clean(status, PodStatus, ("status",))
    elif status and not is_live:
        what = "does not belong in a manifest and is ignored"
        examination.report(("status",), what, "remove it", Severity.WARNING)
    return cleaned, tuple(examination.findings)


def _examine_template(
    examination: Examination, holder: PodHolder, value: dict[str, Plain], cleaned: dict[str, Plain]
) -> None:
    """Follow the path to the template, as far as there is one."""
    pod_path: FieldPath = holder.pod_path
    model = JobSpec if holder.kind in BATCH else Scale
    template: dict[str, Plain] = value
    for depth, step in enumerate(pod_path, start=1):
        item = template.get(str(step))
        if item is not None and not isinstance(item, dict):
            examination.clean(item, _Anything, pod_path[:depth])
            return
        template = item or {}
        inner: dict[str, Plain] = {}
        cleaned[str(step)] = inner
        if depth == 1 and holder.kind == CRON_JOB:
            schedule = examination.clean(template, CronJobSpec, pod_path[:depth])
            assert isinstance(schedule, dict)
            inner.update(schedule)
        if depth == len(pod_path) - 1:
            scale = examination.clean(template, model, pod_path[:depth])
            assert isinstance(scale, dict)
            inner.update(scale)
        cleaned = inner
    cleaned["metadata"] = examination.clean(template.get("metadata"), ObjectMeta, (*pod_path, "metadata"))
    _examine_spec(examination, template, cleaned, pod_path)


def _examine_spec(
    examination: Examination, template: dict[str, Plain], cleaned: dict[str, Plain], path: FieldPath
) -> None:
    path = (*path, "spec")
    spec = cleaned["spec"] = examination.clean(template.get("spec"), PodSpec, path)
    if not isinstance(spec, dict):
        return
    if spec.get("containers") in (None, []):
        examination.report((*path, "containers"), "Required value")
    seen: set[Plain] = set()
    for list_name in CONTAINER_LISTS:
        containers = spec.get(list_name)
        for index, container in enumerate(containers if isinstance(containers, list) else ()):
            name = container.get("name") if isinstance(container, dict) else None
            if isinstance(name, str) and name in seen:
                examination.report((*path, list_name, index, "name"), f'Duplicate value: "{name}"', "rename one")
            seen.add(name if isinstance(name, str) else None)


class _Anything(Struct):
    """A mapping whose contents do not matter."""


_FIELDS: dict[type, frozenset[str]] = {PodSpec: POD_SPEC_FIELDS}
_TYPE_NAMES = {
    dict: "a mapping",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
}


# Beyond it, a float could not hold a whole number, or nothing at all.
_LARGEST_NUMBER = 1e9
_AMOUNTS = "write a quantity such as 250m, 1.5 or 512Mi"
_CONSTANTS = {None: "null", True: "true", False: "false"}


class Examination:
    """Findings about one object. ``is_live``: it comes from an API server, which has checked it already.

    ``fields`` names the only fields that a struct of the model may have in a manifest; ``readers`` are for types that
    are written in a way of their own. A reader reports what it cannot read and returns what goes into the model.
    ``refused`` says of names that are no fields why not, and how to do without.
    """

    def __init__(
        self,
        *,
        is_live: bool,
        fields: Mapping[type, frozenset[str]] = _FIELDS,
        readers: Mapping[type, Reader] | None = None,
        refused: Mapping[str, tuple[str, str]] = {},
    ) -> None:
        self._is_live = is_live
        self._fields = fields
        self._readers = readers or {}
        self._refused = refused
        self.findings: list[FieldProblem] = []

    def report(self, path: FieldPath, what: str, fix: str = "", severity: Severity = Severity.ERROR) -> None:
        """Add a finding."""
        self.findings.append(FieldProblem(path, what, fix, severity))

    def _report_value(self, path: FieldPath, value: Plain, what: str, fix: str = "") -> None:
        """Add a finding about a value that does not fit, unless somebody still has to fill it in."""
        self.report(path, what, placeholder_hint(value) or fix)

    def clean(self, value: Plain, model: type, path: FieldPath) -> Plain:
        """Return ``value`` without nulls as ``model`` needs it, reporting whatever does not fit."""
        return self._clean(value, _schema(model), path)

    def _clean(self, value: Plain, schema: inspect.Type, path: FieldPath) -> Plain:
        if isinstance(schema, inspect.CustomType | inspect.StructType) and schema.cls in self._readers:
            # A value of the model among plain ones: the conversion takes it as it is.
            return cast("Plain", self._readers[schema.cls](self, value, path))
        match schema:
            case inspect.Metadata():
                return self._clean(value, schema.type, path)
            case inspect.UnionType():
                return self._clean(value, next(t for t in schema.types if not isinstance(t, inspect.NoneType)), path)
            case inspect.StructType():
                return self._struct({} if value is None else value, schema, path)
            case inspect.DictType():
                return self._map({} if value is None else value, schema.value_type, path)
            case inspect.VarTupleType():
                return self._list([] if value is None else value, schema.item_type, path)
            case inspect.CustomType() if schema.cls is Quantity:
                return self._amount(value, path)
            case inspect.EnumType():
                return self._member(value, [member.value for member in schema.cls], path)
            case inspect.LiteralType():
                return self._member(value, [str(value) for value in schema.values], path)
            case inspect.StrType():
                if schema.min_length and value == "":
                    self.report(path, "must not be empty")
                return self._typed("" if value is None else value, str, path)
            case inspect.BoolType():
                return self._typed(value, bool, path)
            case inspect.IntType():
                return self._typed(value, int, path)
            case inspect.FloatType():
                return self._number(value, schema, path)
        raise AssertionError(f"the model has a type that is not examined: {schema}")

    def _struct(self, value: Plain, schema: inspect.StructType, path: FieldPath) -> Plain:
        if not isinstance(value, dict):
            return self._misfit(value, dict, path)
        fields = {field.encode_name: field.type for field in schema.fields}
        known = self._known_fields(schema, frozenset(fields), path)
        cleaned: dict[str, Plain] = {}
        found = len(self.findings)
        for name, item in value.items():
            if known is not None and name not in known:
                unknown = f'unknown field "{name}"', suggestion(name, known)
                self._report_value((*path, name), name, *self._refused.get(name, unknown))
            elif name in fields and item is not None:
                cleaned[name] = self._clean(item, fields[name], (*path, name))
        if schema.forbid_unknown_fields and len(self.findings) == found:
            for field in schema.fields:
                if field.required and field.encode_name not in cleaned:
                    self.report(path, f'object missing required field "{field.encode_name}"', "add it")
        return cleaned

    def _known_fields(
        self, schema: inspect.StructType, modelled: frozenset[str], path: FieldPath
    ) -> frozenset[str] | None:
        """Return the only names a struct may hold, or None where others are none of our business."""
        if schema.forbid_unknown_fields:
            return modelled
        if self._is_live:
            return None
        if schema.cls in self._fields:
            return self._fields[schema.cls]
        return CONTAINER_LISTS.get(str(path[-2])) if len(path) >= 2 else None

    def _map(self, value: Plain, item_type: inspect.Type, path: FieldPath) -> Plain:
        if not isinstance(value, dict):
            return self._misfit(value, dict, path)
        return {name: self._clean(item, item_type, (*path, name)) for name, item in value.items()}

    def _list(self, value: Plain, item_type: inspect.Type, path: FieldPath) -> Plain:
        if not isinstance(value, list):
            return self._misfit(value, list, path)
        return [self._clean(item, item_type, (*path, index)) for index, item in enumerate(value)]

    def _typed(self, value: Plain, wanted: type, path: FieldPath) -> Plain:
        return value if type(value) is wanted else self._misfit(value, wanted, path)

    def _number(self, value: Plain, schema: inspect.FloatType, path: FieldPath) -> Plain:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return self._misfit(value, float, path)
        bounds = [(f">= {schema.ge:g}", value >= schema.ge)] if schema.ge is not None else []
        bounds += [(f"> {schema.gt:g}", value > schema.gt)] if schema.gt is not None else []
        for bound, is_kept in (*bounds, ("below 1e9", value < _LARGEST_NUMBER)):
            if not is_kept:
                self.report(path, f"expected a number {bound}, not {_shown(value)}")
                return value
        return float(value)

    def _member(self, value: Plain, members: list[str], path: FieldPath) -> Plain:
        if value not in members:
            same = [member for member in members if str(value).lower() == member.lower()]
            fix = f"write {same[0]}" if same else ""
            self._report_value(path, value, f"must be one of {', '.join(members)}, not {_shown(value)}", fix)
        return value

    def _amount(self, value: Plain, path: FieldPath) -> Plain:
        try:
            decode_hook(Quantity, value)
        except InvalidQuantity as error:
            is_cpu = isinstance(value, str) and str(path[-1]).rpartition(".")[2] == "cpu"
            fix = meant_cores(str(value)) if is_cpu else error.fix
            what = f"{_shown(value)} is not a valid quantity: {error.what}"
            self._report_value(path, value, what, fix or _AMOUNTS)
        return value

    def _misfit(self, value: Plain, wanted: type, path: FieldPath) -> Plain:
        fix = ""
        if wanted is str and isinstance(value, (bool, int, float)):
            fix = "put it in quotes"
        elif wanted is list and isinstance(value, dict):
            fix = 'begin each item with "- "'
        self._report_value(path, value, f"must be {_TYPE_NAMES[wanted]}, not {_shown(value)}", fix)
        return value


Reader = Callable[[Examination, Plain, FieldPath], object]


@cache
def _schema(model: type) -> inspect.Type:
    return inspect.type_info(model)


def _shown(value: Plain) -> str:
    """Return a value for a message: scalars themselves, collections by name."""
    if isinstance(value, (dict, list)):
        return _TYPE_NAMES[type(value)]
    if isinstance(value, str):
        return f'"{value[:40]}…"' if len(value) > 40 else f'"{value}"'
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else _CONSTANTS[value]
