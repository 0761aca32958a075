"""Which objects around a pod template are ordinary: nothing in them can be wrong that their model does not show.

Nearly all are. The others are held against every rule of the API server, for which the whole object is read again.
"""

from __future__ import annotations

from collections.abc import Mapping

from podqos.manifest.plain import Plain

_OBJECT = frozenset({"apiVersion", "kind", "metadata", "spec"})
_METADATA = frozenset({"name", "namespace", "labels", "annotations"})
_TEMPLATE = frozenset({"metadata", "spec"})
_MODELLED = frozenset({"template", "selector"})
_COUNTS: dict[str, frozenset[str]] = {
    "Deployment": frozenset({"replicas", "revisionHistoryLimit"}),
    "ReplicaSet": frozenset({"replicas", "minReadySeconds"}),
    "StatefulSet": frozenset({"replicas", "minReadySeconds", "revisionHistoryLimit"}),
    "DaemonSet": frozenset({"minReadySeconds", "revisionHistoryLimit"}),
}
_LARGEST_INT32 = 2**31 - 1


def is_ordinary(kind: str, value: Mapping[str, Plain]) -> bool:
    """Whether an object has only fields that the model has, and numbers of which any that is not negative is fine."""
    counts = _COUNTS.get(kind)
    spec = value.get("spec")
    if counts is None or not isinstance(spec, dict) or not value.keys() <= _OBJECT:
        return False
    template = spec.get("template")
    if not isinstance(template, dict) or not template.keys() <= _TEMPLATE:
        return False
    if not (_is_named(value.get("metadata")) and _is_named(template.get("metadata", {}))):
        return False
    for field, item in spec.items():
        if field not in _MODELLED and not (field in counts and type(item) is int and 0 <= item <= _LARGEST_INT32):
            return False
    return True


def _is_named(metadata: Plain) -> bool:
    return isinstance(metadata, dict) and metadata.keys() <= _METADATA
