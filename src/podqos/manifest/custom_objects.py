"""Pods in custom resources: of well-known kinds, of kinds that a user configures, and of unknown kinds.

A reading leaves custom resources among the other objects. Here they are looked at again: known ones become workloads,
one for each of their templates; of the rest, what is shaped like a pod is named, because no workload may be left out
without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from podqos.manifest.contents import Other, Reading, Unjudged
from podqos.manifest.fields import CONTAINER_LISTS, POD_SPEC_FIELDS
from podqos.manifest.kinds import PodHolder, group_of, is_kubelet, is_policy
from podqos.manifest.known_kinds import is_kubernetes_own, meant_kind
from podqos.manifest.objects import workload_in
from podqos.manifest.plain import FieldPath, Plain, format_path, parse_path
from podqos.manifest.pod_kinds import CustomKind, Template, custom_kind
from podqos.manifest.problems import FieldProblem, Position, Problem, Severity, SyntaxProblem
from podqos.manifest.text import Place
from podqos.manifest.workflows import NotBuilt, TemplatePod, Workflow, runs_pod
from podqos.model.pod import Workload, field_at

_TEMPLATE = "template"
# Of engines whose rules show pods that are none.
_POLICY_ENGINES = ("kyverno.io", "gatekeeper.sh")
# Kinds that keep templates for others, and make no pods themselves.
_ONLY_TEMPLATES = frozenset({
    "AnalysisTemplate", "ClusterAnalysisTemplate", "WorkflowTemplate", "ClusterWorkflowTemplate", "ServingRuntime",
    "ClusterServingRuntime", "TrainingRuntime", "ClusterTrainingRuntime", "LLMInferenceServiceConfig",
})  # fmt: skip
_DEEPEST = 12


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
        others = [other for other in self._reading.others if not self._takes(other)]
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

    def _takes(self, other: Other) -> bool:
        """Whether an object holds pods, reported or skipped."""
        known = self._kinds.get(other.kind) or custom_kind(other.kind, other.api_version)
        if known is None:
            return self._is_pod_shaped(other)
        if not known.templates:
            return self._leave(other, f"its pods are built from {known.built}", known.hint)
        try:
            value = self._plain(other.place)
        except SyntaxProblem as problem:
            # Only a kind that is not parsed otherwise and that a user says holds pods.
            self._report(FieldProblem((), problem.what, problem.fix), problem.position)
            return False
        if not isinstance(value, dict):
            return False
        templates = [each for template in known.templates for each in _templates(value, template)]
        for each in templates:
            self._read_template(other, value, each, is_whole=_is_whole(known))
        if not templates and not known.group and known.kind in self._kinds:
            paths = ", ".join(template.path for template in known.templates)
            return self._leave(other, f"it has no pod at {paths}", "correct its path under kinds: in .podqos.yaml")
        if not templates and known.built:
            return self._leave(other, f"its pods are built from {known.built}", known.hint)
        return bool(templates)

    def _is_pod_shaped(self, other: Other) -> bool:
        chunk = other.place.chunk
        if not _may_be_anything(other) or self._text.find(b"containers", chunk.start, chunk.end) < 0:
            return False
        path = _pod_path(self._plain(other.place), ())
        if path is None:
            return False
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
    ) -> None:
        path = found.path
        part = value.get("metadata") if is_whole else _named(value.get("metadata"), "-".join(found.parts).lower())
        try:
            pod = self._pod(other, value, found)
        except NotBuilt as reason:
            self._leave(other, reason.why, reason.hint, part)
            return
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
            workload = replace(
                what.workload, pod_path=format_path(path), replicas=replicas, fields=pod.fields, added=pod.added
            )
            self._found.append((workload, other.place))
        for finding in what.findings:
            own_path = format_path(finding.path[1:])
            is_pods = finding.path[:1] == (_TEMPLATE,)
            field = parse_path(field_at(own_path, format_path(path), pod.fields)) if is_pods else finding.path
            self._report(replace(finding, path=field), self._locate(other.place, field))

    def _pod(self, other: Other, value: dict[str, Plain], found: _FoundTemplate) -> TemplatePod:
        """Return the pod of a template, or raise ``NotBuilt``."""
        at = found.template.workflow
        if at:
            spec = next((spec for _, _, spec in _at(value, at.split("."), ())), None)
            pod = Workflow(spec, at, is_submitted=other.kind not in _ONLY_TEMPLATES).pod(found.raw, found.path)
            for path, parameter in pod.left_out:
                finding = FieldProblem(path, f"not judged: it depends on {parameter}", severity=Severity.WARNING)
                self._report(finding, self._locate(other.place, path))
            return pod
        pod = _plain_pod(found.raw, found.path)
        if _has_parameters(pod.spec):
            raise NotBuilt(f"the resources at {format_path(found.path)} are template parameters", "render it first")
        return pod

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
    return not group_of(api_version).endswith(_POLICY_ENGINES)


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
        if isinstance(raw, dict) and holds_pod(raw):
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


def _named(metadata: Plain, suffix: str) -> Plain:
    """Return the metadata of one of several parts, which gives its pods their names."""
    if not isinstance(metadata, dict) or not suffix:
        return metadata
    name, generated = metadata.get("name"), metadata.get("generateName")
    if name and isinstance(name, str):
        return {**metadata, "name": f"{name}-{suffix}"}
    if not name and generated and isinstance(generated, str):
        return {**metadata, "generateName": f"{generated}{suffix}-"}
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
    return max(prod(stated), 0) if stated else None


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
