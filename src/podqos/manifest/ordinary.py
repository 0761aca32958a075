"""Which objects around a pod template are ordinary: nothing in them can be wrong that their model does not show.

Nearly all are. The others are held against every rule of the API server, for which the whole object is read again, so
that a field missing here costs time and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from podqos.manifest.plain import Plain

_OBJECT = frozenset({"apiVersion", "kind", "metadata", "spec"})
_METADATA = frozenset({"name", "namespace", "labels", "annotations"})
_TEMPLATE = frozenset({"metadata", "spec"})
_JOB_LABELS = (
    "controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name",
)  # fmt: skip
_LARGEST_INT32 = 2**31 - 1
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_STORAGE = re.compile(r"[1-9][0-9]{0,9}[MGT]i?")
_PERCENT = re.compile(r"[1-9][0-9]?%")
_ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany")

_IsFine = Callable[[Plain], bool]


def is_ordinary(kind: str, value: Mapping[str, Plain]) -> bool:
    """Whether an object has only fields that the model has, or of which it is clear at once that they are fine."""
    known = _FIELDS.get(kind)
    spec = value.get("spec")
    if known is None or not isinstance(spec, dict) or not value.keys() <= _OBJECT:
        return False
    template = spec.get("template")
    if not isinstance(template, dict) or not template.keys() <= _TEMPLATE:
        return False
    metadata = template.get("metadata", {})
    if not (_is_named(value.get("metadata")) and _is_named(metadata)):
        return False
    if kind == "Job" and not _is_unlabelled(metadata):
        return False
    for field, item in spec.items():
        is_fine = known.get(field)
        if is_fine is None or not is_fine(item):
            return False
    return True


def _is_named(metadata: Plain) -> bool:
    return isinstance(metadata, dict) and metadata.keys() <= _METADATA


def _is_unlabelled(metadata: Plain) -> bool:
    """Whether a template leaves the labels alone that the API server sets for a Job."""
    labels = metadata.get("labels") or {} if isinstance(metadata, dict) else {}
    return isinstance(labels, dict) and not any(name in labels for name in _JOB_LABELS)


def _is_modelled(_: Plain) -> bool:
    return True


def _is_flag(value: Plain) -> bool:
    return isinstance(value, bool)


def _is_count(value: Plain) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST_INT32


def _is_label(value: Plain) -> bool:
    return isinstance(value, str) and _LABEL.fullmatch(value) is not None


def _is_one_of(*names: str) -> _IsFine:
    return lambda value: value in names


def _is_strategy(*types: str, fields: tuple[str, ...] = ()) -> _IsFine:
    """Accept a type, or a rolling update in positive amounts."""

    def is_fine(value: Plain) -> bool:
        if not isinstance(value, dict) or not value.keys() <= {"type", "rollingUpdate"}:
            return False
        if "rollingUpdate" not in value:
            return value.get("type") in types
        update = value["rollingUpdate"]
        return (
            value.get("type") == "RollingUpdate"
            and isinstance(update, dict)
            and all(field in fields and _is_amount(item) for field, item in update.items())
        )

    return is_fine


def _is_amount(value: Plain) -> bool:
    if isinstance(value, str):
        return _PERCENT.fullmatch(value) is not None
    return _is_count(value) and value != 0


def _are_claims(value: Plain) -> bool:
    return isinstance(value, list) and all(map(_is_claim, value))


def _is_claim(claim: Plain) -> bool:
    if not isinstance(claim, dict) or not claim.keys() <= {"metadata", "spec"}:
        return False
    metadata, spec = claim.get("metadata"), claim.get("spec")
    if not isinstance(metadata, dict) or metadata.keys() != {"name"} or not _is_label(metadata["name"]):
        return False
    if not isinstance(spec, dict) or not spec.keys() <= {"accessModes", "resources", "storageClassName"}:
        return False
    modes, resources = spec.get("accessModes"), spec.get("resources")
    if not isinstance(modes, list) or not modes or not all(mode in _ACCESS_MODES for mode in modes):
        return False
    requests = resources.get("requests") if isinstance(resources, dict) and len(resources) == 1 else None
    if not isinstance(requests, dict) or requests.keys() != {"storage"}:
        return False
    storage = requests["storage"]
    return (
        isinstance(storage, str)
        and _STORAGE.fullmatch(storage) is not None
        and ("storageClassName" not in spec or _is_label(spec["storageClassName"]))
    )


_SELECTED: dict[str, _IsFine] = {"template": _is_modelled, "selector": _is_modelled}
_FIELDS: dict[str, dict[str, _IsFine]] = {
    "Deployment": _SELECTED
    | {
        "replicas": _is_count,
        "revisionHistoryLimit": _is_count,
        "paused": _is_flag,
        "strategy": _is_strategy("RollingUpdate", "Recreate", fields=("maxSurge", "maxUnavailable")),
    },
    "ReplicaSet": _SELECTED | {"replicas": _is_count, "minReadySeconds": _is_count},
    "StatefulSet": _SELECTED
    | {
        "replicas": _is_count,
        "minReadySeconds": _is_count,
        "revisionHistoryLimit": _is_count,
        "serviceName": _is_label,
        "podManagementPolicy": _is_one_of("OrderedReady", "Parallel"),
        "updateStrategy": _is_strategy("RollingUpdate", "OnDelete"),
        "volumeClaimTemplates": _are_claims,
    },
    "DaemonSet": _SELECTED
    | {
        "minReadySeconds": _is_count,
        "revisionHistoryLimit": _is_count,
        "updateStrategy": _is_strategy("RollingUpdate", "OnDelete", fields=("maxUnavailable",)),
    },
    "Job": {
        "template": _is_modelled,
        "backoffLimit": _is_count,
        "parallelism": _is_count,
        "completions": _is_count,
        "activeDeadlineSeconds": _is_count,
        "ttlSecondsAfterFinished": _is_count,
        "suspend": _is_flag,
    },
}
