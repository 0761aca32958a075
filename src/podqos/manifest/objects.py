"""The Kubernetes objects of a document, and the pods in them.

A document is one object or a list of them; ``objects_in`` takes lists apart. ``interpret`` turns an object into a
workload if its kind holds a pod: by a quick conversion in the usual case, and where that fails by an examination that
finds everything wrong. Documents here are plain values, without their notation.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import suppress

import msgspec
from msgspec import Struct

from podqos.manifest.decode import convert
from podqos.manifest.fields import CONTAINER_LISTS, POD_SPEC_FIELDS
from podqos.manifest.kinds import (
    BATCH,
    CRON_JOB,
    POD_HOLDERS,
    POLICY_GROUPS,
    SELECTING,
    PodHolder,
    Scale,
    group_of,
    is_custom_group,
    item_type,
    meant_holder,
    type_by_field,
)
from podqos.manifest.plain import FieldPath, Plain
from podqos.manifest.problems import FieldProblem, Severity
from podqos.manifest.snippets import Snippet, snippet_in
from podqos.manifest.text import Chunk, Place
from podqos.model.jobs import CronJobSpec, JobSpec
from podqos.model.pod import ObjectMeta, Pod, PodSpec, PodStatus, Workload

_MASTER_SECTIONS = frozenset({"admissionConfig", "kubernetesMasterConfig"})
_OVERRIDE_PLUGIN = ("admissionConfig", "pluginConfig", "ClusterResourceOverride")


class KubernetesObject(Struct, frozen=True):
    """An object of a document, not yet interpreted."""

    path: FieldPath
    """From the document to the object: empty, or ``items[3]``."""
    kind: str
    api_version: str
    value: dict[str, Plain]
    snippet: Snippet | None = None
    """What was assumed, if the document has no kind."""

    def place(self, chunk: Chunk, document: int = 0) -> Place:
        """Return where the object is in a text."""
        snippet = self.snippet
        if snippet is None:
            return Place(chunk, document, self.path)
        return Place(chunk, document, self.path, snippet.holder.kind, snippet.omitted)


class Interpretation(Struct, frozen=True):
    """The interpretation of an object: a workload, or None, with its problems."""

    workload: Workload | None = None
    findings: tuple[FieldProblem, ...] = ()


def objects_in(
    value: Plain,
    path: FieldPath = (),
    kind: str = "",
    api_version: str = "",
    *,
    name: Callable[[], str] | None = None,
) -> Iterator[KubernetesObject]:
    """Yield the objects of a document; what is no Kubernetes object is yielded without a kind.

    ``kind`` and ``api_version`` are those a typed list (``PodList``) gives to its items. ``name`` gives one to a part
    of a manifest (see ``snippets``).
    """
    if isinstance(value, dict):
        own_kind, own_version = value.get("kind"), value.get("apiVersion")
        kind = own_kind if isinstance(own_kind, str) and own_kind else kind
        api_version = own_version if isinstance(own_version, str) and own_version else api_version
        if not kind:
            kind, api_version = type_by_field(value)
        if kind in {"", "MasterConfig"} and not _MASTER_SECTIONS.isdisjoint(value):
            yield from _master_config(value, path)
            return
        if not kind and _are_named_objects(value):
            for key, item in value.items():
                yield from objects_in(item, (*path, key))
            return
    is_ours = kind in POD_HOLDERS or kind in POLICY_GROUPS
    if not isinstance(value, dict) or not kind or not (api_version or is_ours):
        snippet = None if kind or path or name is None else snippet_in(value, name)
        if snippet is None:
            yield KubernetesObject(path, "", "", {})
        else:
            yield KubernetesObject(path, snippet.holder.kind, snippet.api_version, snippet.value, snippet)
    elif is_list(kind, value):
        items = value["items"]
        for index, item in enumerate(items if isinstance(items, list) else ()):
            yield from objects_in(item, (*path, "items", index), *item_type(kind, api_version))
    else:
        yield KubernetesObject(path, kind, api_version, value)


def _are_named_objects(value: dict[str, Plain]) -> bool:
    """Whether a mapping has nothing but objects, by names of their author's: so Jsonnet writes them."""
    return bool(value) and all(
        isinstance(item, dict)
        and (all(isinstance(item.get(key), str) for key in ("apiVersion", "kind")) or _are_named_objects(item))
        for item in value.values()
    )


def _master_config(value: dict[str, Plain], path: FieldPath) -> Iterator[KubernetesObject]:
    """Yield the override in an OpenShift 3 master's configuration, or the file itself if it has none."""
    found = False
    for outer in ((), ("kubernetesMasterConfig",)):
        way: FieldPath = (*outer, *_OVERRIDE_PLUGIN)
        plugin = _nested(value, way)
        if isinstance(plugin, dict):
            # Without it, the plug-in names another file; reading the policy reports that.
            way = (*way, "configuration") if "configuration" in plugin else way
            yield from objects_in(_nested(value, way), (*path, *way), "ClusterResourceOverrideConfig", "v1")
            found = True
    if not found:
        yield KubernetesObject(path, "MasterConfig", "v1", value)


def _nested(value: Plain, path: FieldPath) -> Plain:
    for step in path:
        value = value.get(str(step)) if isinstance(value, dict) else None
    return value


def is_list(kind: str, value: Container[str]) -> bool:
    """Whether an object is a list of others."""
    return kind.endswith("List") and "items" in value


def interpret(found: KubernetesObject, *, full_status: bool = False) -> Interpretation:
    """Return the workload in an object, or what is wrong with it; ``full_status``: a pod may be a ``FatedPod``."""
    holder = holder_of(found)
    if holder is None:
        return Interpretation(findings=_kind_findings(found))
    what = workload_in(holder, found.value, full_status=full_status)
    return what if found.snippet is None else Interpretation(what.workload, (found.snippet.notice, *what.findings))


def workload_in(holder: PodHolder, value: dict[str, Plain], *, full_status: bool = False) -> Interpretation:
    """Return the workload in an object of a kind that holds a pod, or what is wrong with it."""
    workload = _quick(holder, value, full_status=full_status)
    return Interpretation(workload) if workload is not None else _thorough(holder, value)


def holder_of(found: KubernetesObject) -> PodHolder | None:
    """Return how the object holds a pod, if Kubernetes knows it by that kind and version."""
    holder = POD_HOLDERS.get(found.kind)
    if holder is None or not found.api_version or group_of(found.api_version) not in holder.groups:
        return None
    return holder


def _kind_findings(found: KubernetesObject) -> tuple[FieldProblem, ...]:
    """Return the problems of kind and apiVersion if a pod was probably meant."""
    meant = meant_holder(found.kind)
    if meant is None or is_custom_group(group_of(found.api_version)):
        return ()
    if not found.api_version:
        return (FieldProblem((), "apiVersion not set", f"add apiVersion: {meant.api_version}"),)
    if meant.kind != found.kind:
        what, field, fix = f'unknown kind "{found.kind}"', "kind", f"did you mean {meant.kind}?"
    else:
        what = f'no kind "{found.kind}" in version "{found.api_version}"'
        field, fix = "apiVersion", f"use {meant.api_version}"
    return (FieldProblem((field,), what, fix),)


def _quick(holder: PodHolder, value: dict[str, Plain], *, full_status: bool) -> Workload | None:
    """Return the workload if it is regular."""
    try:
        workload = _build(holder, value, full_status=full_status)
        spec = _mapping(_at(value, holder.pod_path), "spec")
        if not workload.is_live and (value.get("status") or _has_unknown_fields(spec)):
            return None
    except (msgspec.ValidationError, KeyError, TypeError, AttributeError):
        return None
    names = _container_names(workload.pod.spec)
    is_complete = workload.pod.spec.containers and len(set(names)) == len(names) and _is_named(workload.metadata)
    return workload if is_complete else None


def _thorough(holder: PodHolder, value: dict[str, Plain]) -> Interpretation:
    """Find all problems, and build the workload if none is an error."""
    from podqos.manifest.examine import examine

    cleaned, findings = examine(holder, value)
    if any(finding.severity is Severity.ERROR for finding in findings):
        return Interpretation(findings=findings)
    workload = _build(holder, {**cleaned, "apiVersion": value.get("apiVersion")})
    return Interpretation(workload, findings)


def _has_unknown_fields(spec: dict[str, Plain]) -> bool:
    if not spec.keys() <= POD_SPEC_FIELDS:
        return True
    for name, known in CONTAINER_LISTS.items():
        for container in spec.get(name, ()):  # type: ignore[union-attr] # it did convert
            if not container.keys() <= known:  # type: ignore[union-attr] # likewise
                return True
    return False


class _Template(Struct, frozen=True, gc=False):
    spec: PodSpec
    metadata: ObjectMeta = ObjectMeta()


class _ControllerSpec(Scale, frozen=True, gc=False, kw_only=True):
    template: _Template


class _Controller(Struct, frozen=True, gc=False):
    """Most objects that hold a template: it is in their spec, next to the number of pods."""

    spec: _ControllerSpec
    metadata: ObjectMeta = ObjectMeta()


def _build(holder: PodHolder, value: dict[str, Plain], *, full_status: bool = False) -> Workload:
    """Convert an object; whatever does not fit raises one of several exceptions."""
    if not holder.pod_path:
        metadata = convert(value.get("metadata", {}), ObjectMeta)
        spec = convert(value["spec"], PodSpec)
        status = value.get("status", {}) if metadata.is_live else {}
        return Workload(holder.kind, metadata, _pod(metadata, spec, status, full_status=full_status))
    scale: Scale
    if holder.pod_path == _IN_SPEC:
        controller = convert(value, _Controller)
        metadata, template, scale = controller.metadata, controller.spec.template, controller.spec
    else:
        metadata = convert(value.get("metadata", {}), ObjectMeta)
        template = convert(_at(value, holder.pod_path), _Template)
        scale = convert(_at(value, holder.pod_path[:-1]), Scale)
    pod_metadata = ObjectMeta(
        name=metadata.name,
        namespace=metadata.namespace,
        generate_name=metadata.generate_name,
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
    )
    job, cron = None, None
    if holder.kind in BATCH:
        job = convert(_at(value, holder.pod_path[:-1]), JobSpec)
        cron = convert(_mapping(value, "spec"), CronJobSpec) if holder.kind == CRON_JOB else None
    selects = holder.kind in SELECTING and value.get("apiVersion") == holder.api_version
    return Workload(
        holder.kind,
        metadata,
        Pod(pod_metadata, template.spec),
        ".".join(holder.pod_path),
        scale.pods,
        selector=scale.selector if selects else None,
        job=job,
        cron=cron,
    )


def _pod(metadata: ObjectMeta, spec: PodSpec, status: Plain, *, full_status: bool) -> Pod:
    if full_status:
        from podqos.model.pod_fate import FatedPod, FullPodStatus

        with suppress(msgspec.ValidationError):
            return FatedPod(metadata, spec, convert(status, FullPodStatus))
    return Pod(metadata, spec, convert(status, PodStatus))


_IN_SPEC = ("spec", "template")


def _at(value: dict[str, Plain], path: tuple[str, ...]) -> dict[str, Plain]:
    for step in path:
        value = _mapping(value, step)
    return value


def _mapping(value: dict[str, Plain], name: str) -> dict[str, Plain]:
    item = value[name]
    if not isinstance(item, dict):
        raise TypeError(name)
    return item


def _container_names(spec: PodSpec) -> list[str]:
    return [
        container.name
        for containers in (spec.containers, spec.init_containers, spec.ephemeral_containers)
        for container in containers
    ]


def _is_named(metadata: ObjectMeta) -> bool:
    return bool(metadata.name or metadata.generate_name)
