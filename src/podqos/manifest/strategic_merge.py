"""Strategic merge patches of pod specs, and of what is built like one.

A mapping is merged key by key, null removes a key, and a list is replaced unless its items have a merge key. Of the
directives, ``$patch`` is known; others order lists or are written by programs only, and are refused.

Source: Kubernetes v1.36 staging/src/k8s.io/apimachinery/pkg/util/strategicpatch/patch.go; the merge keys are the
``patchMergeKey`` of staging/src/k8s.io/api/core/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from podqos.manifest.plain import Plain

_DIRECTIVE = "$patch"
MERGE_KEYS: Mapping[str, str] = {
    "containers": "name", "initContainers": "name", "ephemeralContainers": "name", "volumes": "name", "env": "name",
    "imagePullSecrets": "name", "resourceClaims": "name", "schedulingGates": "name", "hostAliases": "ip",
    "ports": "containerPort", "volumeMounts": "mountPath", "volumeDevices": "devicePath",
    "topologySpreadConstraints": "topologyKey",
}  # fmt: skip
"""The lists of a pod spec whose items are merged, by the field that identifies an item."""


class UnknownDirective(Exception):
    """A directive of a patch that is not applied here."""


def merged(
    original: dict[str, Plain], patch: dict[str, Plain], keys: Mapping[str, str] = MERGE_KEYS
) -> dict[str, Plain]:
    """Return a value with a patch applied; neither is changed."""
    directive = patch.get(_DIRECTIVE)
    if directive == "delete":
        return {}
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    result = dict(original)
    for name, value in patch.items():
        if name == _DIRECTIVE and value == "merge":
            continue
        if name.startswith("$"):
            raise UnknownDirective(name)
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged_value(result.get(name), value, keys.get(name), keys)
    return result


def _merged_value(before: Plain, value: Plain, key: str | None, keys: Mapping[str, str]) -> Plain:
    if isinstance(value, dict):
        return merged(before if isinstance(before, dict) else {}, value, keys)
    if isinstance(value, list) and key is not None:
        return _merged_list(before if isinstance(before, list) else [], value, key, keys)
    return value


def _merged_list(before: list[Plain], patch: list[Plain], key: str, keys: Mapping[str, str]) -> list[Plain]:
    """Return a list with a patch applied: items with the same key are merged, others added."""
    if {_DIRECTIVE: "replace"} in patch:
        return [item for item in patch if item != {_DIRECTIVE: "replace"}]
    result = list(before)
    for item in patch:
        if not isinstance(item, dict):
            result.append(item)
            continue
        same = [index for index, old in enumerate(result) if isinstance(old, dict) and old.get(key) == item.get(key)]
        if item.get(_DIRECTIVE) == "delete":
            result = [old for index, old in enumerate(result) if index not in same]
        elif same:
            result[same[0]] = merged(result[same[0]], item, keys)  # type: ignore[arg-type] # just looked at
        else:
            result.append(merged({}, item, keys))
    return result
