"""The JSON Schema of scenario files, for editors, generated from the declarations in ``document``.

Descriptions are the docstrings of classes and fields there, so that the format is described in one place.
"""

from __future__ import annotations

import ast
import sys
from inspect import getsource
from itertools import pairwise

from msgspec import inspect
from msgspec.inspect import Type

from podqos.model.quantity import Quantity
from podqos.sim.scenario_format.document import (
    API_VERSION,
    KIND,
    KubeletPart,
    ScenarioDocument,
    ScenarioSpec,
    VolumePart,
)
from podqos.sim.scenario_format.shape_document import CpuTime, Duration, Part, Shape, ShapeDocument

Schema = dict[str, object]

_SCALARS: dict[type, Schema] = {
    Quantity: {"description": "An amount as Kubernetes writes it: 500m, 2Gi.", "type": ["string", "number"]},
    Duration: {"description": "A duration: 1.5s, 10m, 24h, 7d.", "type": "string"},
    CpuTime: {"description": "An amount of CPU time: 60 cpu-s, 500 cpu-ms, 2 cpu-h.", "type": "string"},
    KubeletPart: {
        "description": "A file with a KubeletConfiguration, or its fields in place.",
        "type": ["string", "object"],
    },
}
_REQUIRED: dict[type, tuple[str, ...]] = {
    ScenarioDocument: ("apiVersion", "kind", "metadata", "spec"),
    ScenarioSpec: ("duration", "nodes"),
}


def json_schema() -> Schema:
    """Return the schema of a whole file."""
    definitions: dict[str, Schema] = {}
    whole = _struct(ScenarioDocument, definitions)
    properties = whole["properties"]
    assert isinstance(properties, dict)
    properties["apiVersion"] = {"const": API_VERSION}
    properties["kind"] = {"const": KIND}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "podqos scenario",
        **whole,
        "$defs": dict(sorted(definitions.items())),
    }


def _struct(model: type, definitions: dict[str, Schema]) -> Schema:
    described = inspect.type_info(model)
    assert isinstance(described, inspect.StructType)
    texts = _descriptions(model)
    properties: Schema = {}
    for field in described.fields:
        schema = _schema(field.type, definitions)
        if field.name in texts:
            schema = {**schema, "description": texts[field.name]}
        properties[field.encode_name] = schema
    required = {"required": list(_REQUIRED[model])} if model in _REQUIRED else {}
    return {
        "description": texts[""],
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        **required,
    }


def _schema(kind: Type, definitions: dict[str, Schema]) -> Schema:
    match kind:
        case inspect.UnionType():
            return _schema(next(each for each in kind.types if not isinstance(each, inspect.NoneType)), definitions)
        case inspect.CustomType() | inspect.StructType() if kind.cls in _SCALARS:
            return dict(_SCALARS[kind.cls])
        case inspect.StructType():
            return _reference(kind.cls, definitions)
        case inspect.DictType():
            return {"type": "object", "additionalProperties": _schema(kind.value_type, definitions)}
        case inspect.VarTupleType():
            return {"type": "array", "items": _schema(kind.item_type, definitions)}
        case inspect.EnumType():
            return {"enum": [member.value for member in kind.cls]}
        case inspect.StrType():
            return {"type": "string"}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType():
            return {"type": "integer"}
    raise AssertionError(f"the format has a type without a schema: {kind}")


def _reference(model: type, definitions: dict[str, Schema]) -> Schema:
    name = model.__name__.removesuffix("Part").removesuffix("Document")
    if name not in definitions:
        definitions[name] = {}  # it may refer to itself
        if model is Shape:
            definitions[name] = {
                "description": "A demand over time: 2Gi, 8Gi over 2s, 512Mi + 64Mi per minute, or a mapping.",
                "anyOf": [{"type": ["string", "number"]}, _struct(ShapeDocument, definitions)],
            }
        elif model is VolumePart:
            definitions[name] = {"anyOf": [_reference(Shape, definitions), _struct(VolumePart, definitions)]}
        else:
            definitions[name] = _struct(model, definitions)
    return {"$ref": f"#/$defs/{name}"}


def _descriptions(model: type) -> dict[str, str]:
    """Return the docstrings of a class: by field, and of itself under the empty name."""
    texts = _descriptions(model.__bases__[0]) if issubclass(model.__bases__[0], Part) else {}
    tree = ast.parse(getsource(sys.modules[model.__module__]))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == model.__name__)
    texts[""] = " ".join((model.__doc__ or "").split())
    for before, node in pairwise(body):
        if isinstance(before, ast.AnnAssign) and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            assert isinstance(before.target, ast.Name)
            texts[before.target.id] = " ".join(str(node.value.value).split())
    return texts
