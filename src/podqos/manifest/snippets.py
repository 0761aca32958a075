"""Parts of manifests, as in documentation and chats: the spec of a pod without its kind.

A document is treated as a pod only if it cannot be anything else: it has no fields but those of a pod, and containers
where a pod has them. The reading reports the assumption; its wording is here.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from podqos.manifest.fields import POD_FIELDS, POD_SPEC_FIELDS
from podqos.manifest.kinds import POD_HOLDERS, PodHolder, group_of
from podqos.manifest.plain import FieldPath, Plain
from podqos.manifest.problems import FieldProblem, Severity

_POD = POD_HOLDERS["Pod"]
# By where the pod is; of the kinds that keep it there, the one to assume where no apiVersion tells them apart.
_ASSUMED = (_POD, POD_HOLDERS["Deployment"], POD_HOLDERS["CronJob"])
_NO_LETTERS = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME = 50


class Snippet(Struct, frozen=True):
    """A part of a manifest, completed."""

    holder: PodHolder
    api_version: str
    value: dict[str, Plain]
    """The object, with a kind and a name."""
    omitted: FieldPath
    """The step from the object to what the text has: ``spec`` where that is all there is."""
    notice: FieldProblem


def snippet_in(value: Plain, name: Callable[[], str]) -> Snippet | None:
    """Return the pod in a document without a kind, or None; ``name`` supplies a name if the text has none."""
    if not isinstance(value, dict) or value.get("kind"):
        return None
    if "spec" not in value:
        is_spec = value.keys() <= POD_SPEC_FIELDS and _are_containers(value.get("containers"))
        return _completed(_POD, {"spec": value}, ("spec",), name) if is_spec else None
    api_version = value.get("apiVersion") or ""
    if not value.keys() <= POD_FIELDS or not isinstance(api_version, str):
        return None
    for assumed in _ASSUMED:
        if _are_containers(_at(value, (*assumed.pod_path, "spec", "containers"))):
            holder = _of_version(assumed, api_version) if api_version else assumed
            return None if holder is None else _completed(holder, value, (), name)
    return None


def name_after(source: str) -> str:
    """Return a name for what the file itself does not name."""
    stem = source.rpartition("/")[2].partition(".")[0]
    return _NO_LETTERS.sub("-", stem.lower())[:_LONGEST_NAME].strip("-") or "snippet"


def _at(value: Plain, path: tuple[str, ...]) -> Plain:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _are_containers(value: Plain) -> bool:
    """Whether a value can only be meant as containers, be it in order or not."""
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in items)


def _of_version(assumed: PodHolder, api_version: str) -> PodHolder | None:
    """Return the kind of an API group that keeps its pod in the same place."""
    group = group_of(api_version)
    if group in assumed.groups:
        return assumed
    holders = POD_HOLDERS.values()
    return next((holder for holder in holders if holder.pod_path == assumed.pod_path and group in holder.groups), None)


def _completed(holder: PodHolder, value: dict[str, Plain], omitted: FieldPath, name: Callable[[], str]) -> Snippet:
    api_version = value.get("apiVersion") or holder.api_version
    assert isinstance(api_version, str)
    metadata = value.get("metadata") or {}
    if isinstance(metadata, dict) and not (metadata.get("name") or metadata.get("generateName")):
        metadata = {**metadata, "name": name()}
    named = metadata.get("name") or metadata.get("generateName") if isinstance(metadata, dict) else ""
    lines = [] if value.get("apiVersion") else [f"apiVersion: {api_version}"]
    lines += [f"kind: {holder.kind}", *(f"{step}:" for step in omitted)]
    notice = FieldProblem(
        (), f"no kind: treated as {holder.kind} {named}".rstrip(), f"add {_listed(lines)}", Severity.WARNING
    )
    whole = {**value, "apiVersion": api_version, "kind": holder.kind, "metadata": metadata}
    return Snippet(holder, api_version, whole, omitted, notice)


def _listed(lines: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(lines[:-1]), lines[-1])))
