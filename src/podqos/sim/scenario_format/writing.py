"""Generated scenarios: their common parts, and the files they are kept in.

Pods are written as stored by the API server, so that they are not admitted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

import msgspec
from msgspec.structs import replace

from podqos.errors import InputError
from podqos.manifest.encoding import yaml_text
from podqos.model.node import Node
from podqos.model.pod import ObjectMeta, Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceList
from podqos.model.time_units import SECOND_US
from podqos.naming import hint, naming
from podqos.sim.scenario_format.document import API_VERSION, KIND

Part = dict[str, object]
"""A part of a document."""


def scenario_text(name: str, spec: Part) -> str:
    """Return the text of a scenario file."""
    return yaml_text({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec})


def manifests_text(manifests: Iterable[Part]) -> str:
    """Return the text of a file with manifests."""
    return "---\n".join(map(yaml_text, manifests))


def pod_manifest(pod: Pod, metadata: ObjectMeta, *, keeps_node: bool = False) -> Part:
    """Return a pod as the API server shows it; with ``keeps_node`` it is only ever replaced on the same node."""
    spec = pod.spec if keeps_node else replace(pod.spec, node_name="")
    return manifest("v1", "Pod", {"metadata": metadata, "spec": spec})


def manifest(api_version: str, kind: str, value: object) -> Part:
    """Return an object without the fields that are as they are if nothing is written."""
    stated = _stated(value)
    assert isinstance(stated, dict)
    return {"apiVersion": api_version, "kind": kind, **stated}


def node_part(name: str, node: Node | None, capacity: ResourceList) -> Part:
    """Return a node of a scenario with its cpu and memory, labels and taints."""
    if CPU not in capacity or MEMORY not in capacity:
        capacity_given = naming("node_capacity", "cpu=16,memory=64Gi")
        fix = hint("add its Node manifest with " + naming("files") + ", or " + capacity_given)
        raise InputError(f"the capacity of node {name} is unknown", fix=fix)
    made: Part = {"name": name, "capacity": {CPU: str(capacity[CPU]), MEMORY: str(capacity[MEMORY])}}
    if node is not None and node.metadata.labels:
        made["labels"] = dict(node.metadata.labels)
    if node is not None and node.spec.taints:
        made["taints"] = plain(node.spec.taints)
    return made


def seconds_text(time_us: int) -> str:
    """Return a time as written in a scenario."""
    whole, rest = divmod(time_us, SECOND_US)
    return f"{whole}.{rest:06}".rstrip("0") + "s" if rest else f"{whole}s"


def plain(value: object) -> object:
    """Return a value as dictionaries, lists and strings."""
    return msgspec.to_builtins(value, enc_hook=_amount)


def _amount(value: object) -> object:
    assert isinstance(value, Quantity), type(value)
    return str(value)


def _stated(value: object) -> object:
    """Return a value without the fields that have their defaults.

    What is empty but not a default is kept: ``emptyDir: {}``, a selector that selects everything, a label without a
    value.
    """
    if isinstance(value, msgspec.Struct):
        held = ((name, getattr(value, field), default) for field, name, default in _fields(type(value)))
        return {name: _stated(own) for name, own, default in held if own != default}
    if isinstance(value, Mapping):
        return {name: _stated(own) for name, own in value.items()}
    return [_stated(own) for own in value] if isinstance(value, (list, tuple)) else plain(value)


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str, object], ...]:
    """Return the fields of a struct: name, name in a manifest, default."""
    return tuple(
        (
            field.name,
            field.encode_name,
            field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory(),
        )
        for field in msgspec.structs.fields(kind)
    )
