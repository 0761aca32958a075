"""The pods of Argo's workflows, as its controller builds them from a template.

A template takes over ``templateDefaults`` and what the workflow says for all its pods. Argo adds containers of its own,
``init`` and ``wait``, which have no resources unless ``executor`` in the controller's ConfigMap sets them: then the pod
is not Guaranteed, whatever its other containers request. Last come the ``podSpecPatch`` of the workflow and that of the
template.

A parameter is filled in only if the object itself decides its value: ``{{workflow.parameters.…}}`` with a value in the
arguments of a Workflow or CronWorkflow. Whoever submits a WorkflowTemplate chooses, and inputs come from the caller.
Where an unknown parameter decides about amounts, the template is not judged; any other field with one is left out.

Source: argoproj/argo-workflows v4.1 workflow/controller/workflowpod.go, operator.go (mergedTemplateDefaultsInto),
workflow/util/util.go (ApplyPodSpecPatch), config/config.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from podqos.errors import InputError
from podqos.manifest.custom_kind import Added
from podqos.manifest.documents import plain_documents
from podqos.manifest.fields import CONTAINER_FIELDS, POD_SPEC_FIELDS
from podqos.manifest.plain import FieldPath, Plain, format_path, parse_path
from podqos.manifest.strategic_merge import MERGE_KEYS, UnknownDirective, merged

_PATCH = "podSpecPatch"
_MAIN, _WAIT, _INIT = "main", "wait", "init"
_OWN_CONTAINERS = ("resource", "data")
# A template is of one of these types, or has no pod of its own.
_TYPES = ("container", "script", "containerSet", *_OWN_CONTAINERS)
_LISTS = ("containers", "initContainers")
_RESOURCES = "resources"
# Of the workflow, for templates that do not say it themselves: its name there, and in a pod.
_FOR_ALL = {
    **{name: name for name in ("affinity", "hostNetwork", "nodeSelector", "schedulerName", "securityContext")},
    **{name: name for name in ("resourceClaims", "serviceAccountName", "tolerations")},
    "podPriorityClassName": "priorityClassName",
    "podResources": _RESOURCES,
}
_DEFAULTS_KEYS = {**MERGE_KEYS, "sidecars": "name", "tolerations": "key"}
_UNKNOWN = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_PARAMETER = re.compile(r"\{\{\s*workflow\.parameters\.([\w-]+)\s*\}\}")
# Any text will do in these.
_FREE = frozenset({"args", "command", "env", "envFrom", "image", "workingDir"})


class TemplatePod(Struct, frozen=True):
    """The pod of a template."""

    metadata: dict[str, Plain]
    spec: dict[str, Plain]
    fields: tuple[tuple[str, str], ...] = ()
    """Where its fields are in the object, if not in a template."""
    added: tuple[str, ...] = ()
    """The names of containers that the template does not have."""
    left_out: tuple[tuple[FieldPath, str], ...] = ()
    """The fields that depend on a parameter, each with the parameter."""
    doubts: tuple[Added, ...] = ()
    """Containers whose resources are not stated."""


class NotBuilt(Exception):
    """Why a pod cannot be read from a template, and what to do about it."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(why)
        self.why = why
        self.hint = hint


def is_in_patch(path: str) -> bool:
    """Whether a field of an object is written in the text of a patch, where it is not edited in place."""
    return f".{_PATCH}." in path


def runs_pod(template: dict[str, Plain]) -> bool:
    """Whether a template has a pod of its own: steps and graphs have none, and requests share their agent."""
    return next(_types(template), None) is not None


def _types(template: dict[str, Plain]) -> Iterator[str]:
    return (name for name in _TYPES if isinstance(template.get(name), dict))


class Workflow:
    """What a workflow says about all its templates; ``prefix`` is where its spec is in the object."""

    def __init__(self, value: Plain, prefix: str, *, is_submitted: bool) -> None:
        self._spec = value if isinstance(value, dict) else {}
        self._prefix = prefix
        self._parameters = dict(_parameters(self._spec)) if is_submitted else {}

    def pod(self, template: dict[str, Plain], path: FieldPath) -> TemplatePod:
        """Return the pod of the template at ``path``, or raise ``NotBuilt``."""
        kind = next(_types(template))
        template = self._with_defaults(template, kind)
        at = format_path(path)
        containers, fields = _containers(template, kind, at)
        _refuse_parameters(template, containers, at)
        spec = self._pod_fields(template)
        inits = spec.get("initContainers")
        spec["containers"], spec["initContainers"] = containers, list(inits) if isinstance(inits, list) else []
        added = _add_executor(spec, kind, f"{at}.{_PATCH}", fields)
        for patch, source in ((self._spec.get(_PATCH), self._prefix), (template.get(_PATCH), at)):
            spec = self._patched(spec, patch, f"{source}.{_PATCH}", fields)
        left_out = []
        for name in spec:
            value = self._filled(spec[name])
            if name in _LISTS:
                spec[name] = [_with_known_fields(item) for item in value] if isinstance(value, list) else []
                continue
            unknown = _UNKNOWN.search(str(value))
            if unknown is not None:
                left_out.append((self._place(name, template, path), unknown[0]))
            spec[name] = None if unknown is not None else value
        # The longest path comes first: resources may be elsewhere than the rest of their container.
        fields.sort(key=lambda field: -len(field[0]))
        return TemplatePod(self._metadata(template), spec, (*fields, ("spec", at)), added, tuple(left_out))

    def _with_defaults(self, template: dict[str, Plain], kind: str) -> dict[str, Plain]:
        defaults = self._spec.get("templateDefaults")
        if not isinstance(defaults, dict):
            return template
        applicable = {name: value for name, value in defaults.items() if name == kind or name not in _TYPES}
        try:
            return merged(applicable, template, _DEFAULTS_KEYS)
        except UnknownDirective as directive:
            raise NotBuilt(f"its template contains {directive}", "use the running pods") from directive

    def _pod_fields(self, template: dict[str, Plain]) -> dict[str, Plain]:
        own = {name: value for name, value in template.items() if name in POD_SPEC_FIELDS}
        for name in (_RESOURCES, "priority"):  # fields of pods that a template does not have, or calls otherwise
            own.pop(name, None)
        seconds = own.get("activeDeadlineSeconds")
        if isinstance(seconds, str) and seconds.isdecimal():
            own["activeDeadlineSeconds"] = int(seconds)
        if template.get("podResources"):
            own[_RESOURCES] = template["podResources"]
        for name, pods in _FOR_ALL.items():
            if self._spec.get(name) and not own.get(pods):
                own[pods] = self._spec[name]
        return {**own, "restartPolicy": "Never"}

    def _place(self, name: str, template: dict[str, Plain], path: FieldPath) -> FieldPath:
        """Return where a field of a pod is written."""
        above = next((own for own, pods in _FOR_ALL.items() if pods == name), name)
        names = [name, "podResources"] if name == _RESOURCES else [name]
        own = next((key for key in names if template.get(key)), None)
        return (*path, own) if own is not None else (*parse_path(self._prefix), above)

    def _patched(self, spec: dict[str, Plain], text: Plain, at: str, fields: list[tuple[str, str]]) -> dict[str, Plain]:
        if not isinstance(text, str) or not text.strip():
            return spec
        text = str(self._filled(text))
        unknown = _UNKNOWN.search(text)
        if unknown is not None:
            raise NotBuilt(f"{at} contains {unknown[0]}", "use the running pods: kubectl get pods -o yaml")
        try:
            values = [document.value for document in plain_documents(at, text.encode())]
        except InputError as error:
            raise NotBuilt(f"{at} is not YAML: {error.what}", "correct it") from error
        patch = values[0] if len(values) == 1 else None
        if not isinstance(patch, dict):
            raise NotBuilt(f"{at} is not a pod's spec", "begin it with containers:")
        try:
            spec = merged(spec, patch)
        except UnknownDirective as directive:
            raise NotBuilt(f"{at} contains {directive}", "use the running pods") from directive
        fields[:] = _moved(spec, patch, at, fields)
        return spec

    def _filled(self, value: Plain) -> Plain:
        """Return a value with the parameters whose values are known."""
        if isinstance(value, str):
            return value if "{{" not in value else _PARAMETER.sub(self._value_of, value)
        if isinstance(value, dict):
            return {name: self._filled(item) for name, item in value.items()}
        return [self._filled(item) for item in value] if isinstance(value, list) else value

    def _value_of(self, found: re.Match[str]) -> str:
        return self._parameters.get(found[1], found[0])

    def _metadata(self, template: dict[str, Plain]) -> dict[str, Plain]:
        """Return labels and annotations of a template's pods."""
        result: dict[str, Plain] = {}
        for metadata in (self._spec.get("podMetadata"), template.get("metadata")):
            for name in ("labels", "annotations"):
                texts = metadata.get(name) if isinstance(metadata, dict) else None
                if isinstance(texts, dict):
                    before = result.get(name)
                    known = {key: text for key, text in texts.items() if "{{" not in str(self._filled(text))}
                    result[name] = {**(before if isinstance(before, dict) else {}), **known}
        return result


def _parameters(spec: dict[str, Plain]) -> Iterator[tuple[str, str]]:
    """Yield the parameters whose values a workflow states."""
    arguments = spec.get("arguments")
    parameters = arguments.get("parameters") if isinstance(arguments, dict) else None
    for parameter in parameters if isinstance(parameters, list) else ():
        if isinstance(parameter, dict) and isinstance(parameter.get("value"), str | int):
            value = parameter["value"]
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if "{{" not in text:
                yield str(parameter.get("name")), text


def _containers(template: dict[str, Plain], kind: str, at: str) -> tuple[list[Plain], list[tuple[str, str]]]:
    """Return a template's containers without init containers, and where they are."""
    own = template[kind]
    found: list[tuple[Plain, str]] = []
    if kind == "containerSet":
        items = own.get("containers") if isinstance(own, dict) else None
        found += [
            (
                {**item, "name": item.get("name") or _MAIN} if isinstance(item, dict) else item,
                f"{at}.{kind}.containers[{index}]",
            )
            for index, item in enumerate(items if isinstance(items, list) else ())
        ]
    elif kind in _OWN_CONTAINERS:
        found.append(({"name": _MAIN}, f"{at}.{_PATCH}.containers[{_MAIN}]"))
    elif isinstance(own, dict):
        found.append(({**own, "name": _MAIN}, f"{at}.{kind}"))
    sidecars = template.get("sidecars")
    found += [
        (item, f"{at}.sidecars[{index}]") for index, item in enumerate(sidecars if isinstance(sidecars, list) else ())
    ]
    fields = [(f"spec.containers[{index}]", place) for index, (_, place) in enumerate(found)]
    return [item for item, _ in found], fields


def _refuse_parameters(template: dict[str, Plain], containers: list[Plain], at: str) -> None:
    """Refuse parameters in amounts, which Argo does too: they are read before parameters are filled in."""
    inits = template.get("initContainers")
    for item in (*containers, *(inits if isinstance(inits, list) else ()), {_RESOURCES: template.get("podResources")}):
        unknown = _UNKNOWN.search(str(item.get(_RESOURCES))) if isinstance(item, dict) else None
        if unknown is not None:
            why = f"the resources at {at} contain {unknown[0]}, and Argo takes no parameters there"
            raise NotBuilt(why, f"set them in {_PATCH}")


def _moved(
    spec: dict[str, Plain], patch: dict[str, Plain], at: str, fields: list[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Yield where fields are, once a patch was applied: the amounts that it sets are in it."""
    kept = dict(fields)
    for name in _LISTS:
        items, patches = spec.get(name), patch.get(name)
        set_names = {
            item.get("name"): _RESOURCES in item for item in patches if isinstance(item, dict)
        } if isinstance(patches, list) else {}  # fmt: skip
        for index, item in enumerate(items if isinstance(items, list) else ()):
            path, own = f"spec.{name}[{index}]", item.get("name") if isinstance(item, dict) else None
            if own in set_names and (set_names[own] or path not in kept):
                step = f".{_RESOURCES}" if path in kept else ""
                kept[path + step] = f"{at}.{name}[{own}]{step}"
    if isinstance(patch.get(_RESOURCES), dict):
        kept[f"spec.{_RESOURCES}"] = f"{at}.{_RESOURCES}"
    yield from kept.items()


def _add_executor(spec: dict[str, Plain], kind: str, at: str, fields: list[tuple[str, str]]) -> tuple[str, ...]:
    """Add the containers of Argo, last to keep the others' places, and return the names of all that are its own."""
    # For some types, the main container is Argo's, and nobody has to wait for it.
    names = {"initContainers": _INIT} if kind in _OWN_CONTAINERS else {"containers": _WAIT, "initContainers": _INIT}
    for name, own in names.items():
        items = spec[name]
        assert isinstance(items, list)
        fields.append((f"spec.{name}[{len(items)}]", f"{at}.{name}[{own}]"))
        items.append({"name": own})
    return (_MAIN, _INIT) if kind in _OWN_CONTAINERS else (_WAIT, _INIT)


def _with_known_fields(container: Plain) -> Plain:
    """Return a container without the fields that depend on a parameter, except those that decide nothing."""
    if not isinstance(container, dict):
        return container
    known: Mapping[str, Plain] = {
        name: value
        for name, value in container.items()
        if name in CONTAINER_FIELDS and (name in _FREE or not _UNKNOWN.search(str(value)))
    }
    return dict(known)
