"""The pods that an operator builds from what an object states: see ``custom_kind`` for how a kind describes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from podqos.amounts import listed
from podqos.manifest.custom_kind import ANY, Added, Stated, Template
from podqos.manifest.plain import FieldPath, Plain, format_path
from podqos.model.pod import Container, PodSpec
from podqos.model.resources import QOS_RESOURCES

_SIDES = ("requests", "limits")
# Fields of pods that stand, with their names and values, in the part of an object that describes a pod.
_PASSED: dict[str, type] = {
    "nodeSelector": dict,
    "runtimeClassName": str,
    "schedulerName": str,
    "tolerations": list,
}


class Part(Struct, frozen=True):
    """A part of an object that describes pods."""

    whole: dict[str, Plain]
    """The object."""
    path: FieldPath
    own: dict[str, Plain]
    """What is at the path."""

    def at(self, text: str) -> tuple[FieldPath, Plain]:
        """Return where a path of a table leads, and what is there; None if nothing is."""
        is_absolute = text.startswith("/")
        value: Plain = self.whole if is_absolute else self.own
        steps = [step for step in text.removeprefix("/").split(".") if step]
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        return (tuple(steps) if is_absolute else (*self.path, *steps)), value

    def holds(self, condition: str) -> bool:
        """Whether a condition of a table holds: ``path``, ``path=value``, ``path!=value``; none always does.

        Of several values, separated by ``|``, one is enough; what is not stated is ``none``.
        """
        for sign in ("!=", "="):
            text, found, wanted = condition.partition(sign)
            if found:
                value = self.at(text)[1]
                return (str(value).lower() in wanted.split("|")) == (sign == "=")
        if not condition:
            return True
        value = self.at(condition)[1]
        return isinstance(value, dict) or bool(value)


class BuiltPod(Struct, frozen=True):
    """A pod as far as an object states it."""

    spec: dict[str, Plain]
    fields: tuple[tuple[str, str], ...]
    """Where its fields are: see ``Workload.fields``."""
    doubts: tuple[Added, ...]
    """Containers whose resources are not stated."""


class _Container(Struct):
    stated: Stated
    path: FieldPath
    resources: dict[str, Plain] | None
    """None if they are not stated, and the operator has defaults."""


def built_pod(template: Template, part: Part) -> BuiltPod | str | None:
    """Return the pod that an operator builds, None if it builds none, or why that is not known."""
    if not part.holds(template.when):
        return None
    changed = next((path for path in template.patches if part.at(path)[1]), None)
    if changed is not None:
        return f"{format_path(part.at(changed)[0])} changes its pods"
    containers: list[_Container] = []
    for stated in template.containers:
        if part.holds(stated.when):
            container = _container(stated, part)
            if isinstance(container, str):
                return container
            containers.append(container)
    pod = _Pod(part, containers)
    for name, path in template.lists:
        pod.add_list(name, *part.at(path))
    if not containers or pod.why_not:
        return pod.why_not or None
    return unstated(containers[0].stated) if containers[0].resources is None else pod.built(template)


def _container(stated: Stated, part: Part) -> _Container | str:
    paths = [part.at(path) for path in stated.path.split("|")]
    given = [(path, value) for path, value in paths if _amounts(value)]
    if len(given) > 1:
        places = " and ".join(format_path(path) for path, _ in given)
        return f"its resources are stated at {places}, and the operator merges them"
    path, value = given[0] if given else paths[0]
    resources = {side: value[side] for side in _SIDES if side in value} if isinstance(value, dict) else {}
    return _Container(stated, path, None if lacks(value, stated.needs) else resources)


def unstated(container: Stated) -> str:
    """Return why a container is not known that does not state what it needs."""
    if container.needs == ANY:
        return f"it states no resources for {container.name}, and its operator may have defaults"
    needs = listed(container.needs)
    return f"it does not state {needs} for {container.name}, and its operator fills in what is missing"


class _Pod:
    """A pod while it is put together."""

    def __init__(self, part: Part, containers: list[_Container]) -> None:
        self._part = part
        self._containers = containers
        self._lists: dict[str, list[tuple[str, Plain]]] = {"containers": [], "initContainers": []}
        self.why_not = ""

    def add_list(self, name: str, path: FieldPath, items: Plain) -> None:
        """Add whole containers; those with the name of one that the operator makes are merged into it."""
        own = {container.stated.name: container for container in self._containers}
        for index, item in enumerate(items if isinstance(items, list) else ()):
            at = (*path, index)
            container = own.get(str(item.get("name"))) if isinstance(item, dict) else None
            if container is None:
                self._lists[name].append((format_path(at), item))
            elif isinstance(item, dict) and _amounts(item.get("resources")):
                if container.resources:
                    self.why_not = f"{format_path(at)} is merged into a container of the operator"
                    return
                resources = item["resources"]
                assert isinstance(resources, dict)
                container.resources, container.path = resources, (*at, "resources")

    def built(self, template: Template) -> BuiltPod:
        """Return the pod."""
        fields: list[tuple[str, str]] = []
        spec: dict[str, Plain] = {}
        for name, is_init in (("containers", False), ("initContainers", True)):
            known = [
                container
                for container in self._containers
                if container.resources is not None and container.stated.is_init is is_init
            ]
            own: list[Plain] = [
                {"name": container.stated.name, "resources": container.resources} for container in known
            ]
            fields += (
                (f"spec.{name}[{index}].resources", format_path(container.path))
                for index, container in enumerate(known)
            )
            whole = self._lists[name]
            fields += ((f"spec.{name}[{len(own) + index}]", at) for index, (at, _) in enumerate(whole))
            if own or whole:
                spec[name] = [*own, *(item for _, item in whole)]
        for name, wanted in _PASSED.items():
            if isinstance(self._part.own.get(name), wanted):
                spec[name] = self._part.own[name]
        path, priority = self._part.at(template.priority)
        if isinstance(priority, str) and priority:
            spec["priorityClassName"] = priority
        fields.append(("spec.priorityClassName", format_path(path)))
        fields.append(("spec", format_path(self._part.path)))
        unknown = (Added(each.stated.name) for each in self._containers if each.resources is None)
        return BuiltPod(spec, tuple(fields), (*unknown, *added_to(template, self._part)))


def added_to(template: Template, part: Part) -> Iterator[Added]:
    """Yield the containers that a controller adds to the pods of an object."""
    return (added for added in template.added if part.holds(added.when))


def lacks(resources: Plain, needs: Sequence[str]) -> bool:
    """Whether amounts are missing for which a controller has defaults."""
    stated = _amounts(resources)
    known = {
        *stated,
        *(amount.partition(".")[0] for amount in stated),
        *(amount.partition(".")[2] for amount in stated),
    }
    return any(need not in known and not (need == "*" and stated) for need in needs)


def _amounts(resources: Plain) -> set[str]:
    """Return which amounts are stated: ``limits.memory``."""
    found = set()
    for side in _SIDES:
        amounts = resources.get(side) if isinstance(resources, dict) else None
        if isinstance(amounts, dict):
            found |= {f"{side}.{name}" for name in QOS_RESOURCES if amounts.get(name) not in (None, "")}
    return found


def is_decided(spec: PodSpec, doubts: Iterable[Added]) -> bool:
    """Whether a pod is of the same class whatever the containers are that are not known."""
    doubts = list(doubts)
    containers = (*spec.containers, *spec.init_containers)
    if not doubts or (any(map(_has_amounts, containers)) and not all(map(_is_guaranteed, containers))):
        return True
    return all(added.keeps_guaranteed for added in doubts) and all(map(_is_guaranteed, containers))


def _has_amounts(container: Container) -> bool:
    resources = container.resources
    return any(side.get(name) for side in (resources.requests, resources.limits) for name in QOS_RESOURCES)


def _is_guaranteed(container: Container) -> bool:
    requests, limits = container.resources.requests, container.resources.limits
    return all(limits.get(name) and requests.get(name, limits[name]) == limits[name] for name in QOS_RESOURCES)
