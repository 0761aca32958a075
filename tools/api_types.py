"""Write ``src/podqos/manifest/api_types.py``: every field of pods and workloads, at every depth, with its type.

    python tools/api_types.py OPENAPI.json … TYPES.go … > src/podqos/manifest/api_types.py

OPENAPI.json is what an API server serves under ``/openapi/v3/api/v1``, ``/openapi/v3/apis/apps/v1`` and
``/openapi/v3/apis/batch/v1``: which fields there are. The Go sources (``k8s.io/api/{core,apps,batch}/v1/types.go``,
``apimachinery/pkg/apis/meta/v1/types.go``) say what the types are called, because the API server names them when it
cannot read a value. Both must agree.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from pathlib import Path

ROOTS = (
    "Pod", "PodTemplate", "ReplicationController", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job",
    "CronJob",
)  # fmt: skip
VERSION = "1.36"
WIDTH = 118
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'^\t(?:(\w+)[ \t]+)?([\w.\[\]*]+)[ \t]+`[^`\n]*json:"([\w-]*)[^`\n]*`', re.MULTILINE)
_BUILT_IN = frozenset({"string", "bool", "int32", "int64", "byte"})

Fields = dict[str, str]


def go_structs(sources: list[str]) -> dict[str, Fields]:
    """Return the structs of Go sources: JSON names and Go types; ``A>T`` where a field comes with a struct A."""
    found = {name: _FIELD.findall(body) for source in sources for name, body in _STRUCT.findall(source)}

    def fields(name: str) -> Fields:
        own: Fields = {}
        for field, go_type, json_name in found[name]:
            if json_name:
                own[json_name] = qualified(go_type)
            elif not field or go_type.rpartition(".")[2] in found:
                embedded = go_type.rpartition(".")[2]
                own |= {inner: f"{embedded}>{path}" for inner, path in fields(embedded).items()}
        return own

    return {name: fields(name) for name in found}


def qualified(go_type: str) -> str:
    """Return a Go type as an error of the decoder names it: with its package, without the pointer."""
    go_type = go_type.replace("*", "").replace("metav1.", "v1.").replace("corev1.", "v1.")
    head, _, name = go_type.replace("[ResourceName]", "[v1.ResourceName]").rpartition("]")
    prefix = f"{head}]" if head else ""
    return f"{prefix}{name}" if name in _BUILT_IN or "." in name else f"{prefix}v1.{name}"


def kind(schema: dict[str, object]) -> str:
    """Return what an OpenAPI schema says about a value, as far as it can be compared."""
    inner = schema.get("$ref") or next(iter(schema.get("allOf", ())), {}).get("$ref")  # type: ignore[call-overload]
    if inner:
        return str(inner).rpartition(".")[2]
    return {"array": "[]", "object": "map[", "boolean": "bool", "integer": str(schema.get("format"))}.get(
        str(schema["type"]), str(schema["type"])
    )


def table(schemas: dict[str, dict[str, object]], structs: dict[str, Fields]) -> dict[str, Fields]:
    """Return the structs below the roots; raise where the two sources disagree."""
    by_name = {path.rpartition(".")[2]: schema for path, schema in schemas.items()}
    wanted, done = list(ROOTS), {}
    while wanted:
        name = wanted.pop()
        if name in done:
            continue
        properties: dict[str, dict[str, object]] = by_name[name]["properties"]  # type: ignore[assignment]
        done[name] = {field: structs[name].get(field, "string") for field in sorted(properties)}
        for field, schema in properties.items():
            go_type, said = done[name][field].rpartition(">")[2], kind(schema)
            if said in _BUILT_IN and "." not in go_type and go_type not in {said, "[]byte"}:
                raise SystemExit(f"{name}.{field}: {go_type} here, {said} there")
            inner = go_type.rpartition("]")[2].rpartition(".")[2]
            if inner in by_name and "properties" in by_name[inner]:
                wanted.append(inner)
    return done


def main(*paths: str) -> None:
    """Print the module."""
    documents = [json.loads(Path(path).read_text(encoding="utf-8")) for path in paths if path.endswith(".json")]
    structs = go_structs([Path(path).read_text(encoding="utf-8") for path in paths if path.endswith(".go")])
    schemas = {name: schema for document in documents for name, schema in document["components"]["schemas"].items()}
    lines = []
    for name, fields in sorted(table(schemas, structs).items()):
        line = " ".join([f"{name}:", *(f"{field}={go_type}" for field, go_type in fields.items())])
        lines += textwrap.wrap(line, WIDTH, subsequent_indent=" ", break_long_words=False, break_on_hyphens=False)
    print(_MODULE.format(version=VERSION, table="\n".join(lines)))


_MODULE = '''"""Every field of pods and workloads, at every depth. Written by ``tools/api_types.py``; do not edit.

Source: the OpenAPI documents of a Kubernetes {version} API server, k8s.io/api/{{core,apps,batch}}/v1/types.go,
apimachinery's meta/v1.
"""

from __future__ import annotations

from functools import cache

_TABLE = """\\
{table}
"""


@cache
def api_types() -> dict[str, dict[str, str]]:
    """Return the fields of each struct with their types, as Go writes them: ``Container`` → ``args`` → ``[]string``.

    ``VolumeSource>v1.EmptyDirVolumeSource`` is the type of a field that comes with an embedded struct.
    """
    lines = _TABLE.replace("\\n ", " ").splitlines()
    return {{
        name: dict(field.split("=", 1) for field in fields.split())
        for name, _, fields in (line.partition(":") for line in lines)
    }}'''


if __name__ == "__main__":
    main(*sys.argv[1:])
