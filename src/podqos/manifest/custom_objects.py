"""Pods in custom resources: of well-known kinds, of kinds that a user configures, and of unknown kinds.

A reading leaves custom resources among the other objects. Here they are looked at again: known ones become workloads,
one for each of their templates; of the rest, what is shaped like a pod is named, because no workload may be left out
without a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from podqos.manifest.built_pods import Part, added_to, built_pod, is_decided, lacks, unstated
from podqos.manifest.contents import Other, Reading, Unjudged
from podqos.manifest.custom_kind import FROM_CLUSTER, Added, Built, CustomKind, Template
from podqos.manifest.fields import CONTAINER_LISTS, POD_SPEC_FIELDS
from podqos.manifest.kinds import PodHolder, group_of, is_kubelet, is_policy
from podqos.manifest.known_kinds import is_kubernetes_own, meant_kind
from podqos.manifest.objects import workload_in
from podqos.manifest.plain import FieldPath, Plain, format_path, parse_path
from podqos.manifest.pod_kinds import custom_kind
from podqos.manifest.problems import FieldProblem, Isolated, Position, Problem, Severity
from podqos.manifest.text import Place
from podqos.manifest.workflows import NotBuilt, TemplatePod, Workflow, runs_pod
from podqos.model.pod import Workload, field_at
from podqos.model.resources import QOS_RESOURCES

_TEMPLATE = "template"
_MARKS = re.compile(rb"containers|requests|limits")
# Of engines whose rules show pods that are none.
_POLICY_ENGINES = ("kyverno.io", "gatekeeper.sh")
# Kinds that keep templates for others, and make no pods themselves.
_ONLY_TEMPLATES = frozenset({
    "AnalysisTemplate", "ClusterAnalysisTemplate", "WorkflowTemplate", "ClusterWorkflowTemplate", "ServingRuntime",
    "ClusterServingRuntime", "TrainingRuntime", "ClusterTrainingRuntime", "LLMInferenceServiceConfig",
    "ClickHouseInstallation", "ClickHouseKeeperInstallation",
})  # fmt: skip
_DEEPEST = 12
_UNSTATED = "it states no resources, and its operator may have defaults"
# Their limits are those of nodes.
_WITHOUT_PODS = frozenset(
    {("NodePool", "karpenter.sh"), ("Provisioner", "karpenter.sh"), ("NodeClaim", "karpenter.sh")}
)


class CustomResources:
    """The custom resources of a text: ``plain`` and ``locate`` go back to it, ``text`` is all of it, normalised."""

    def __init__(
        self,
        reading: Reading,
        text: bytes,
        plain: Callable[[Place], Plain],
        locate: Callable[[Place, FieldPath], Position],
        kinds: Mapping[str, CustomKind],
    ) -> None:
        self._reading = reading
        self._text = text
        self._plain = plain
        self._locate = locate
        self._kinds = kinds
        self._found: list[tuple[Workload, Place]] = []
        self._unjudged: list[Unjudged] = []
        self._problems: list[Problem] = []

    def read(self) -> Reading:
        """Return the reading with the pods of custom resources in it."""
        others = [other for other in self._reading.others if not self._takes_alone(other)]
        if len(others) == len(self._reading.others) and not self._problems:
            return self._reading
        found = [*zip(self._reading.workloads, self._reading.places, strict=True), *self._found]
        found.sort(key=lambda each: (each[1].chunk.start, each[1].document, *map(str, each[1].path)))
        return replace(
            self._reading,
            workloads=tuple(workload for workload, _ in found),
            places=[place for _, place in found],
            others=tuple(others),
            problems=tuple(sorted([*self._reading.problems, *self._problems])),
            unjudged=tuple(self._unjudged),
        )

    def _takes_alone(self, other: Other) -> bool:
        with Isolated(self._problems, self._reading.source, other.place.chunk.origin):
            return self._takes(other)
        return False

    def _takes(self, other: Other) -> bool:
        """Whether an object holds pods, reported or skipped."""
        known = self._kinds.get(other.kind) or custom_kind(other.kind, other.api_version)
        if known is None:
            return self._is_pod_shaped(other)
        if not known.templates:
            return self._leave(other, f"its pods are built from {known.built}", known.hint)
        value = self._plain(other.place)
        if not isinstance(value, dict):
            return False
        templates = [each for template in known.templates for each in _templates(value, template)]
        has_pods = [self._read_template(other, value, each, is_whole=_is_whole(known)) for each in templates]
        if not templates and not known.group and known.kind in self._kinds:
            paths = ", ".join(template.path for template in known.templates)
            return self._leave(other, f"it has no pod at {paths}", "correct its path under kinds: in .podqos.yaml")
        if not any(has_pods) and known.built:
            return self._leave(other, f"its pods are built from {known.built}", known.hint)
        if not any(has_pods) and known.is_of_operator:
            return self._leave(other, "it makes no pods of its own" if templates else _UNSTATED, known.hint)
        return bool(templates)

    def _is_pod_shaped(self, other: Other) -> bool:
        """Whether an object of an unknown kind has a pod, or resources, in it."""
        chunk = other.place.chunk
        if not _may_be_anything(other) or _MARKS.search(self._text, chunk.start, chunk.end) is None:
            return False
        value = self._plain(other.place)
        path = _pod_path(value, ())
        if path is None:
            path = _resources_path(value)
            what = f"it has resources at {format_path(path or ())}, but its kind is unknown"
            return path is not None and self._leave(other, what, FROM_CLUSTER)
        meant = meant_kind(other.kind, other.api_version)
        if meant is not None:
            what, fix = f'unknown kind "{other.kind}", so it is not checked', f"did you mean {meant}?"
            finding = FieldProblem(("kind",), what, fix, Severity.WARNING)
            self._report(finding, self._locate(other.place, finding.path))
            return False
        steps = format_path(path).replace("[", ".").replace("]", "")
        hint = ".".join("*" if step.isdecimal() else step for step in steps.split("."))
        what = f"it has a pod at {format_path(path)}, but its kind is unknown"
        return self._leave(other, what, f"kinds: {{{other.kind}: {hint}}} in .podqos.yaml")

    def _leave(self, other: Other, why: str, hint: str, metadata: Plain = None) -> bool:
        """Note what is not judged; ``metadata``: that of one of its pods."""
        names = [metadata.get(key) for key in ("name", "generateName")] if isinstance(metadata, dict) else []
        name = str(next(filter(None, names), other.metadata.name or other.metadata.generate_name))
        self._unjudged.append(Unjudged(other.kind, name, other.place, why, hint))
        return True

    def _read_template(
        self,
        other: Other,
        value: dict[str, Plain],
        found: _FoundTemplate,
        *,
        is_whole: bool,
    ) -> bool:
        """Read the pod of a template, or leave it; return False if there is none."""
        path = found.path
        part = value.get("metadata") if is_whole else _named(value.get("metadata"), found.parts)
        try:
            pod = self._pod(other, value, found)
        except NotBuilt as reason:
            return self._leave(other, reason.why, reason.hint, part if found.template.workflow else None)
        if pod is None:
            return False
        holder = PodHolder(other.kind, (group_of(other.api_version),), (_TEMPLATE,))
        what = workload_in(
            holder,
            {
                "metadata": part,
                _TEMPLATE: {"metadata": pod.metadata, "spec": _cleaned(pod.spec)},
            },
        )
        replicas = 0 if other.kind in _ONLY_TEMPLATES else _replicas(value, found.template, path)
        if what.workload is not None:
            if not is_decided(what.workload.pod.spec, pod.doubts):
                names = ", ".join(dict.fromkeys(added.name for added in pod.doubts))
                return self._leave(
                    other, f"the operator adds {names}, which can change the class of its pods", FROM_CLUSTER
                )
            whole = replace(what.workload.pod, is_partial=not all(added.keeps_guaranteed for added in pod.doubts))
            workload = replace(
                what.workload,
                pod=whole,
                pod_path=format_path(path),
                replicas=replicas,
                fields=pod.fields,
                added=pod.added,
            )
            self._found.append((workload, other.place))
        for finding in what.findings:
            own_path = format_path(finding.path[1:])
            is_pods = finding.path[:1] == (_TEMPLATE,)
            field = parse_path(field_at(own_path, format_path(path), pod.fields)) if is_pods else finding.path
            self._report(replace(finding, path=field), self._locate(other.place, field))
        return True

    def _pod(self, other: Other, value: dict[str, Plain], found: _FoundTemplate) -> TemplatePod | None:
        """Return the pod of a template, None if there is none, or raise ``NotBuilt``."""
        at = found.template.workflow
        if at:
            spec = next((spec for _, _, spec in _at(value, at.split("."), ())), None)
            pod = Workflow(spec, at, is_submitted=other.kind not in _ONLY_TEMPLATES).pod(found.raw, found.path)
            for path, parameter in pod.left_out:
                finding = FieldProblem(path, f"not judged: it depends on {parameter}", severity=Severity.WARNING)
                self._report(finding, self._locate(other.place, path))
            return pod
        stated = _pod_of(found, value)
        if stated is not None and _has_parameters(stated.spec):
            raise NotBuilt(f"the resources at {format_path(found.path)} are template parameters", "render it first")
        return stated

    def _report(self, finding: FieldProblem, position: Position) -> None:
        field = format_path(finding.path)
        self._problems.append(
            Problem(self._reading.source, *position, finding.severity, field, finding.what, finding.fix)
        )


def _may_be_anything(other: Other) -> bool:
    """Whether a kind is unknown: neither Kubernetes' own nor a policy engine's."""
    kind, api_version = other.kind, other.api_version
    if is_kubernetes_own(kind, api_version) or is_policy(kind, api_version) or is_kubelet(kind, api_version):
        return False
    group = group_of(api_version)
    return not group.endswith(_POLICY_ENGINES) and (kind, group) not in _WITHOUT_PODS


def _is_whole(known: CustomKind) -> bool:
    """Whether an object of a kind has one template, whose pods need no name in addition to its own."""
    return len(known.templates) == 1 and "*" not in known.templates[0].path and not known.templates[0].part


class _FoundTemplate(Struct, frozen=True):
    """A pod template of an object."""

    template: Template
    path: FieldPath
    parts: tuple[str, ...]
    """What distinguishes it from the object's other templates."""
    raw: dict[str, Plain]


def _templates(value: dict[str, Plain], template: Template) -> Iterator[_FoundTemplate]:
    """Yield the pod templates of an object."""
    parts = (template.part,) if template.part else ()
    holds_pod = runs_pod if template.workflow else _holds_pod
    for path, names, raw in _at(value, template.path.split("."), ()):
        if isinstance(raw, dict) and (isinstance(template, Built) or holds_pod(raw)):
            yield _FoundTemplate(template, path, (*parts, *names), raw)


def _at(value: Plain, steps: Collection[str], path: FieldPath) -> Iterator[tuple[FieldPath, tuple[str, ...], Plain]]:
    """Yield what is at a path, with the names of what ``*`` stands for."""
    if not steps:
        yield path, (), value
        return
    step, *rest = steps
    items: list[tuple[str | int, str, Plain]] = []
    if step != "*":
        items = [(step, "", value[step])] if isinstance(value, dict) and step in value else []
    elif isinstance(value, dict):
        items = [(name, name, each) for name, each in value.items()]
    elif isinstance(value, list):
        items = [(index, _name_of(each, index), each) for index, each in enumerate(value)]
    for key, name, each in items:
        for found, names, inner in _at(each, rest, (*path, key)):
            yield found, ((name, *names) if name else names), inner


def _name_of(item: Plain, index: int) -> str:
    names = [item.get(key) for key in ("name", "groupName")] if isinstance(item, dict) else []
    return next((name for name in names if isinstance(name, str) and name), str(index))


def _holds_pod(raw: dict[str, Plain]) -> bool:
    spec = raw.get("spec")
    inner = spec if isinstance(spec, dict) else raw
    return _are_containers(inner.get("containers"))


def _are_containers(value: Plain) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(each, dict) and any(isinstance(each.get(name), str) for name in ("name", "image"))
            for each in value
        )
    )


def _pod_of(found: _FoundTemplate, value: dict[str, Plain]) -> TemplatePod | None:
    """Return the pod of a template, or None if there is none; raise ``NotBuilt`` if it is not known."""
    template, part = found.template, Part(value, found.path, found.raw)
    if isinstance(template, Built):
        built = built_pod(template, part)
        if isinstance(built, str):
            raise NotBuilt(built, FROM_CLUSTER)
        return None if built is None else TemplatePod({}, built.spec, built.fields, doubts=built.doubts)
    pod = _plain_pod(found.raw, found.path)
    containers = {str(item.get("name")): item for item in _items(pod.spec) if isinstance(item, dict)}
    for stated in template.containers:
        if stated.name in containers and lacks(containers[stated.name].get("resources"), stated.needs):
            raise NotBuilt(unstated(stated), FROM_CLUSTER)
    missing = (Added(stated.name) for stated in template.containers if stated.name not in containers)
    return replace(pod, doubts=(*missing, *added_to(template, part)))


def _items(spec: dict[str, Plain]) -> list[Plain]:
    items = spec.get("containers")
    return items if isinstance(items, list) else []


def _plain_pod(raw: dict[str, Plain], path: FieldPath) -> TemplatePod:
    """Return the pod of a template, or of a spec that stands in its place."""
    spec, metadata = raw.get("spec"), raw.get("metadata")
    if isinstance(spec, dict) and "containers" in spec:
        return TemplatePod(metadata if isinstance(metadata, dict) else {}, spec)
    return TemplatePod({}, raw, (("spec", format_path(path)),))


def _cleaned(spec: dict[str, Plain]) -> dict[str, Plain]:
    """Return a spec with the fields of a pod; what else a kind has next to them is its own business."""
    cleaned = {name: each for name, each in spec.items() if name in POD_SPEC_FIELDS}
    for name, known in CONTAINER_LISTS.items():
        items = cleaned.get(name)
        if isinstance(items, list):
            cleaned[name] = [_container(item, known, index, name) for index, item in enumerate(items)]
    return cleaned


def _container(item: Plain, known: Collection[str], index: int, list_name: str) -> Plain:
    """Return a container; the controller may set name and image."""
    if not isinstance(item, dict):
        return item
    name = f"user-container-{index}" if list_name == "containers" and index else "user-container"
    own = {key: each for key, each in item.items() if key in known}
    own["name"] = own.get("name") or (name if list_name == "containers" else f"init-{index}")
    own["image"] = own.get("image") or "set-by-controller"
    resources = own.get("resources")
    if isinstance(resources, dict) and "claims" in resources:
        # The claims they name may be elsewhere in the object.
        own["resources"] = {key: resource for key, resource in resources.items() if key != "claims"}
    return own


def _has_parameters(spec: dict[str, Plain]) -> bool:
    """Whether amounts are template parameters: ``{{inputs.parameters.memory}}``, ``${MEMORY}``."""
    for name in CONTAINER_LISTS:
        items = spec.get(name)
        for item in items if isinstance(items, list) else ():
            resources = item.get("resources") if isinstance(item, dict) else None
            if isinstance(resources, (dict, str)) and any(mark in str(resources) for mark in ("{{", "${", "$(")):
                return True
    return False


def _named(metadata: Plain, parts: Collection[str]) -> Plain:
    """Return the metadata of one of several parts, which gives its pods their names."""
    if not isinstance(metadata, dict) or not parts:
        return metadata
    around = next((part for part in parts if "{}" in part), "{}")
    suffix = "-".join(part for part in parts if part != around).lower()
    name, generated = metadata.get("name"), metadata.get("generateName")
    if name and isinstance(name, str):
        return {**metadata, "name": around.format(f"{name}-{suffix}" if suffix else name)}
    if not name and generated and isinstance(generated, str):
        return {**metadata, "generateName": f"{generated}{suffix}-" if suffix else generated}
    return metadata


def _replicas(value: dict[str, Plain], template: Template, path: FieldPath) -> int | None:
    """Return how many pods a template creates, if stated."""
    stated = []
    for text in template.replicas:
        matched = (step for step, pattern in zip(path, template.path.split("."), strict=True) if pattern == "*")
        number: Plain = value
        for step in text.split("."):
            key = next(matched) if step == "*" else step
            if isinstance(number, dict):
                number = number.get(str(key))
            else:
                number = number[key] if isinstance(number, list) and isinstance(key, int) else None
        if isinstance(number, int) and not isinstance(number, bool):
            stated.append(number)
    if template.part == "worker" and len(stated) == 2 and _leads(value):
        stated[1] -= 1
    return max(prod(stated), 0) if stated else template.default_replicas


def _leads(value: dict[str, Plain]) -> bool:
    """Whether one of each group of a LeaderWorkerSet is made from a template of its own."""
    return any(True for _ in _at(value, ("spec", "leaderWorkerTemplate", "leaderTemplate"), ()))


def _pod_path(value: Plain, path: FieldPath) -> FieldPath | None:
    """Return the way to the first pod template, or pod's spec, inside a value; None if there is none."""
    if len(path) > _DEEPEST:
        return None
    if isinstance(value, dict):
        if _are_containers(value.get("containers")):
            return path[:-1] if path[-1:] == ("spec",) and len(path) > 1 else path
        children: list[tuple[str | int, Plain]] = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    else:
        return None
    return next((found for key, each in children if (found := _pod_path(each, (*path, key))) is not None), None)


def _resources_path(value: Plain) -> FieldPath | None:
    """Return the way to the first cpu or memory under requests or limits; None if there is none."""
    waiting: list[tuple[FieldPath, Plain]] = [((), value)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, dict):
            for side in ("requests", "limits"):
                amounts = item.get(side)
                if isinstance(amounts, dict) and not amounts.keys().isdisjoint(QOS_RESOURCES):
                    return path
            children: list[tuple[str | int, Plain]] = list(item.items())
        else:
            children = list(enumerate(item)) if isinstance(item, list) else []
        waiting += reversed([((*path, key), child) for key, child in children])
    return None
