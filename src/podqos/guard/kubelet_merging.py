"""The settings of a kubelet that runs: its file, the drop-ins above it, and the flags of its command line above those.

As in the kubelet's own start (Kubernetes v1.36 cmd/kubelet/app/server.go): drop-ins are JSON merge patches of the file,
with the default thresholds already in it, so that one threshold in a drop-in leaves the others; flags replace whole
fields, but for feature gates, which add up. Without a file there are no default thresholds at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from podqos.errors import InvalidConfiguration
from podqos.eviction.thresholds import check_alone, effective_eviction_hard
from podqos.manifest.documents import plain_documents
from podqos.manifest.kubelet import KubeletSettings
from podqos.model.kubelet_config import API_VERSION, KIND, KNOWN_FIELDS, kubelet_configuration, stated_fields
from podqos.model.kubelet_flags import FLAGS, fields_from_arguments
from podqos.model.profile import LATEST, Profile

_GATES, _HARD, _MERGED = "featureGates", "evictionHard", "mergeDefaultEvictionSettings"


class KubeletText(Struct, frozen=True):
    """A file of a kubelet's configuration."""

    name: str
    data: bytes


def merged_settings(
    file: KubeletText | None,
    drop_ins: Iterable[KubeletText],
    arguments: Mapping[str, list[str]],
    profile: Profile = LATEST,
) -> KubeletSettings:
    """Return the settings that a kubelet runs with; flags that decide nothing about pods are ignored."""
    identity = {"apiVersion": API_VERSION, "kind": KIND}
    fields: dict[str, object] = {_HARD: {}}
    if file is not None:
        fields = _fields(file)
        hard = effective_eviction_hard(kubelet_configuration(identity | fields, file.name), profile)
        fields = stated_fields(fields) | {_HARD: hard}
    for kubelet_text in drop_ins:
        fields = _patched(fields, _fields(kubelet_text))
    # Defaults are merged into the file alone: what comes later is taken as it is.
    fields = stated_fields(fields) | {_HARD: fields.get(_HARD) or {}, _MERGED: False}
    flags = fields_from_arguments({name: values for name, values in arguments.items() if name in FLAGS}).fields
    gates = (fields.get(_GATES), flags.get(_GATES))
    fields |= flags | {_GATES: {name: on for gate in gates if isinstance(gate, Mapping) for name, on in gate.items()}}
    where = "the kubelet's settings" if file is None else file.name
    settings = KubeletSettings(kubelet_configuration(identity | fields, where, is_defaulted=False), fields=fields)
    try:
        check_alone(settings)
    except InvalidConfiguration as error:
        raise error.placed(lambda field: f"{where}: {field}") from None
    return settings


def _fields(text: KubeletText) -> dict[str, object]:
    """Return the fields of a file; those that are not known are ignored, as the kubelet does."""
    documents = [document.value for document in plain_documents(text.name, text.data) if document.value is not None]
    value = documents[0] if len(documents) == 1 else None
    if not isinstance(value, dict) or (value.get("kind"), value.get("apiVersion")) != (KIND, API_VERSION):
        what = "not a kubelet configuration file"
        raise InvalidConfiguration(what, where=text.name, fix=f"apiVersion: {API_VERSION}, kind: {KIND}")
    return {name: each for name, each in value.items() if name in KNOWN_FIELDS and name not in {"apiVersion", "kind"}}


def _patched(target: object, patch: Mapping[str, object]) -> dict[str, object]:
    """Return a JSON merge patch applied (RFC 7396)."""
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _patched(result.get(name), value) if isinstance(value, Mapping) else value
    return result
