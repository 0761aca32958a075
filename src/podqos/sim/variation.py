"""One scenario with other values: parameters by name, and what each changes.

A parameter is changed where a user would change it: a line of the scenario file before it is parsed, an amount in a
manifest before admission, a kubelet setting, the shape of a demand. So limits go through admission as usual, and an
invalid value is reported where it always is.

====================================  ==============================================================================
``growth@WORKLOAD=0.5,1,2``           how much its memory grows, as a multiple of what the scenario says
``memory@WORKLOAD=1Gi per hour``      private memory beside what the scenario says; also WORKLOAD:CONTAINER
``nodeLost@NODE=0s,10m``              when a node is lost, with everything on it
``limits.memory@WORKLOAD=1Gi,2Gi``    also requests, cpu, and WORKLOAD:CONTAINER
``replicas@WORKLOAD=1,2``             also priority
``kubelet.evictionHard.memory.available=100Mi,1Gi``   any field of the KubeletConfiguration, on all nodes
``phase=0s,5s``                       when the eviction loop looks first
``policy=kubelet,qos-tiers``          how pods are ranked for eviction
``spec.nodes[0].capacity.memory=…``   any other line of the scenario file; lists by number or by name
====================================  ==============================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError, InvalidArgument, InvalidQuantity
from podqos.eviction.ranking import Policy
from podqos.manifest.plain import Plain, parse_path
from podqos.manifest.scalars import resolve
from podqos.manifest.times import parse_duration_us
from podqos.model.kubelet_config import API_VERSION, KIND, kubelet_configuration
from podqos.model.pod import Container, Pod, Workload
from podqos.model.quantity import Quantity
from podqos.naming import naming
from podqos.orders.counterfactual import with_priority
from podqos.sim.engine.curve import Curve
from podqos.sim.scenario.scenario import (
    IDLE,
    ContainerDemand,
    MachineSpec,
    NodeLost,
    Scenario,
    ScenarioWorkload,
    WorkloadRollout,
)
from podqos.sim.scenario_format.shape_text import Unit, parse_shape, shape_curve
from podqos.sim.scenario_format.shapes import total

_PARAMETER = re.compile(r"(?P<name>[^=@]+)(?:@(?P<target>[^=:]+)(?::(?P<container>[^=]+))?)?=(?P<values>.+)", re.DOTALL)
_MAPS = (
    "evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim", "kubeReserved",
    "systemReserved", "qosReserved",
)  # fmt: skip
_WITHHOLDING = ("kubelet.evictionHard", "kubelet.kubeReserved", "kubelet.systemReserved")
_NODE_LOST = "nodeLost"
_EXAMPLE = "for example limits.memory@analytics=1Gi,2Gi or kubelet.evictionHard.memory.available=100Mi,1Gi"


class Parameter(Struct, frozen=True):
    """A parameter of a sweep."""

    name: str
    target: str = ""
    """A workload; empty where it applies to the whole scenario."""
    container: str = ""

    @property
    def text(self) -> str:
        """As written."""
        where = f"@{self.target}" if self.target else ""
        return f"{self.name}{where}{f':{self.container}' if self.container else ''}"


class Varied(Struct, frozen=True):
    """A parameter and the values it takes."""

    parameter: Parameter
    values: tuple[str, ...]


Assignment = tuple[Parameter, str]
_PLUGINS = "enableAdmissionPlugins"
KUBERNETES_VERSION = "spec.kubernetesVersion"
"""The line of a scenario file that says by which version's rules it runs."""


def parse_assignment(text: str) -> Assignment:
    """Read ``NAME[@WORKLOAD[:CONTAINER]]=VALUE``."""
    varied = parse_varied(text)
    if len(varied.values) > 1:
        fix = naming("vary") + " runs a scenario with each of several"
        raise InvalidArgument(f"{len(varied.values)} values", where=text, fix=fix)
    return varied.parameter, varied.values[0]


def parse_varied(text: str) -> Varied:
    """Read ``NAME[@WORKLOAD[:CONTAINER]]=VALUE,VALUE``."""
    match = _PARAMETER.fullmatch(text)
    values = tuple(value.strip() for value in match["values"].split(",")) if match else ()
    if match is None or not all(values):
        raise InvalidArgument(f"{text!r} has no values: PARAMETER=VALUES is required", fix=_EXAMPLE)
    parameter = Parameter(match["name"].strip(), match["target"] or "", match["container"] or "")
    _kind(parameter)
    return Varied(parameter, values)


_DESCRIPTION = "spec.description"


def takes_from_allocatable(assignments: Iterable[Assignment]) -> list[str]:
    """Return those that change what pods may request: thresholds and reservations of kubelets."""
    return [f"{parameter.text}={text}" for parameter, text in assignments if parameter.name.startswith(_WITHHOLDING)]


class Variation:
    """Values for some parameters, to be applied while a scenario is read."""

    def __init__(
        self,
        assignments: Sequence[Assignment] = (),
        seed: int | None = None,
        plugins: Sequence[str] = (),
        *,
        holds_placement: bool = False,
    ) -> None:
        """``plugins`` of the API server are enabled besides those of the scenario.

        ``holds_placement``: what pods may request stays as it is, whatever settings of kubelets are changed.
        """
        self._assignments = assignments
        self._seed = seed
        self._plugins = plugins
        self._holds_placement = holds_placement
        self._applied: set[str] = set()
        self._is_seed_changed = False

    def document(self, value: dict[str, Plain]) -> None:
        """Change lines of the scenario file."""
        spec = value.get("spec")
        if self._seed is not None and isinstance(spec, dict):
            self._is_seed_changed = spec.get("seed", 0) != self._seed
            spec["seed"] = self._seed
        if self._plugins and isinstance(spec, dict):
            own = spec.get(_PLUGINS)
            spec[_PLUGINS] = [*(own if isinstance(own, list) else ()), *self._plugins]
        for parameter, text in self._assignments:
            if parameter.name.startswith("spec."):
                # 1.30 is a version, and would be the number 1.3.
                _set_line(value, parameter.name, text if parameter.name == KUBERNETES_VERSION else resolve(text))
                self._applied.add(parameter.text)

    def workload(self, workload: Workload) -> Workload:
        """Change a manifest."""
        for parameter, text in self._assignments:
            change = _OF_MANIFESTS.get(parameter.name.partition(".")[0])
            if change is not None and parameter.target in _names(workload.kind, workload.metadata):
                workload = replace(workload, pod=change(workload.pod, parameter, text))
                self._applied.add(parameter.text)
        return workload

    def scenario(self, scenario: Scenario) -> Scenario:
        """Change the scenario, and check that every parameter was found."""
        if self._holds_placement:
            scenario = _each_node(scenario, lambda spec: replace(spec, placement_config=spec.config))
        for parameter, text in self._assignments:
            change = _OF_SCENARIOS.get(parameter.name.partition(".")[0])
            if change is not None:
                scenario = change(scenario, parameter, text)
                if not parameter.target or parameter.name == _NODE_LOST or _targets(scenario, parameter):
                    self._applied.add(parameter.text)
        for parameter, _ in self._assignments:
            if parameter.text not in self._applied:
                known = ", ".join(workload.name for workload in scenario.workloads[:6])
                raise InvalidArgument(
                    f"the scenario has no workload {parameter.target}", where=parameter.text, fix=f"it has {known}"
                )
        return replace(scenario, changes=tuple(self._changes()))

    def _changes(self) -> Iterator[str]:
        """Yield what differs from the file; a description that is given is about the scenario as changed."""
        if any(parameter.name == _DESCRIPTION for parameter, _ in self._assignments):
            return
        yield from (f"{parameter.text}={value}" for parameter, value in self._assignments)
        if self._is_seed_changed:
            yield f"spec.seed={self._seed}"
        if self._plugins:
            yield f"spec.{_PLUGINS}={','.join(self._plugins)}"


# ---- lines of the scenario file -----------------------------------------------------------------------------------


def _set_line(document: dict[str, Plain], path: str, new: Plain) -> None:
    steps = [str(step) for step in parse_path(path)]
    here: Plain = document
    for place, step in enumerate(steps[:-1]):
        following = _inner(here, step)
        if following is None and isinstance(here, dict):
            following = here[step] = {}
        if not isinstance(following, dict | list):
            raise InvalidArgument(f"no such field: {'.'.join(steps[: place + 1])}", where=path, fix=_EXAMPLE)
        here = following
    if isinstance(here, dict):
        here[steps[-1]] = new
    elif isinstance(here, list) and steps[-1].isdecimal() and int(steps[-1]) < len(here):
        here[int(steps[-1])] = new
    else:
        raise InvalidArgument(f"no such field: {path}", where=path, fix=_EXAMPLE)


def _inner(value: Plain, step: str) -> Plain:
    """Return a field of a mapping, or the item of a list with that index or name."""
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list):
        if step.isdecimal():
            return value[int(step)] if int(step) < len(value) else None
        named = (item for item in value if isinstance(item, dict) and step in {item.get("name"), item.get("workload")})
        return next(named, None)
    return None


# ---- manifests ----------------------------------------------------------------------------------------------------


def _names(kind: str, metadata: object) -> set[str]:
    name, namespace = getattr(metadata, "name", ""), getattr(metadata, "namespace", "")
    return {name, f"{namespace}/{name}", f"{kind}/{namespace}/{name}"}


def _with_amount(pod: Pod, parameter: Parameter, text: str) -> Pod:
    """Set requests or limits of one container, or of all."""
    what, _, resource = parameter.name.partition(".")
    try:
        amount = Quantity.parse(text)
    except InvalidQuantity as error:
        fix = error.fix or "such as 512Mi or 250m"
        raise InvalidArgument(f"{text!r} is not a quantity", where=parameter.text, fix=fix) from error

    def changed(container: Container) -> Container:
        if parameter.container not in {"", container.name}:
            return container
        amounts = {**getattr(container.resources, what), resource: amount}
        return replace(container, resources=replace(container.resources, **{what: amounts}))

    if parameter.container and parameter.container not in {container.name for container in pod.spec.containers}:
        known = ", ".join(container.name for container in pod.spec.containers)
        raise InvalidArgument(f"no such container: {parameter.container}", where=parameter.text, fix=f"it has {known}")
    return replace(pod, spec=replace(pod.spec, containers=tuple(map(changed, pod.spec.containers))))


_OF_MANIFESTS: dict[str, Callable[[Pod, Parameter, str], Pod]] = {"limits": _with_amount, "requests": _with_amount}


# ---- what is run --------------------------------------------------------------------------------------------------


def _targets(scenario: Scenario, parameter: Parameter) -> list[ScenarioWorkload]:
    return [workload for workload in scenario.workloads if parameter.target in _names(workload.kind, workload)]


def _each_target(
    scenario: Scenario, parameter: Parameter, change: Callable[[ScenarioWorkload], ScenarioWorkload]
) -> Scenario:
    chosen = {id(target) for target in (_targets(scenario, parameter) if parameter.target else scenario.workloads)}
    workloads = tuple(change(workload) if id(workload) in chosen else workload for workload in scenario.workloads)
    names = {workload.identity for workload in scenario.workloads if id(workload) in chosen}
    later = tuple(
        replace(rollout, template=change(rollout.template))
        if isinstance(rollout, WorkloadRollout) and rollout.template is not None and rollout.workload in names
        else rollout
        for rollout in scenario.workload_changes
    )
    return replace(scenario, workloads=workloads, workload_changes=later)


def _with_growth(scenario: Scenario, parameter: Parameter, text: str) -> Scenario:
    """Scale memory growth beyond its starting amount."""
    factor = Fraction(_number(parameter, text, Fraction))

    def stretched(curve: Curve) -> Curve:
        first = curve.knots[0][1]
        knots = tuple((time_us, first + int((value - first) * factor)) for time_us, value in curve.knots)
        return replace(curve, knots=knots)

    def demand(container: str, wanted: ContainerDemand) -> ContainerDemand:
        if parameter.container not in {"", container}:
            return wanted
        return replace(wanted, anon_bytes=stretched(wanted.anon_bytes))

    def workload(each: ScenarioWorkload) -> ScenarioWorkload:
        demands = tuple({name: demand(name, wanted) for name, wanted in by.items()} for by in each.demands)
        return replace(each, demands=demands)

    return _each_target(scenario, parameter, workload)


def _with_memory(scenario: Scenario, parameter: Parameter, text: str) -> Scenario:
    """Add private memory to a container."""
    try:
        more = shape_curve(parse_shape(text), Unit.WHOLE, scenario.duration_us)
    except InputError as error:
        raise InvalidArgument(error.what, where=parameter.text, fix=error.fix) from error

    def workload(each: ScenarioWorkload) -> ScenarioWorkload:
        names = [container.name for container in each.pod.running_containers]
        name = parameter.container or names[0]
        if name not in names or (not parameter.container and len(names) > 1):
            known = " or ".join(f"{parameter.target}:{container}" for container in names)
            raise InvalidArgument("the container is ambiguous", where=parameter.text, fix=f"write {known}")
        demands = []
        for by in each.demands:
            wanted = by.get(name, IDLE)
            if wanted.anon_bytes.period_us is not None:
                what = "its memory demand is periodic"
                raise InvalidArgument(what, where=parameter.text, fix="change the scenario's line with spec.PATH")
            demands.append({**by, name: replace(wanted, anon_bytes=total((wanted.anon_bytes, more)))})
        return replace(each, demands=tuple(demands))

    return _each_target(scenario, parameter, workload)


def _with_loss(scenario: Scenario, parameter: Parameter, text: str) -> Scenario:
    known = [group.name_of(number) for group in scenario.nodes for number in range(group.count)]
    if parameter.target not in known:
        raise InvalidArgument(f"no such node: {parameter.target}", where=parameter.text, fix=f"such as {known[0]}")
    lost = NodeLost(_duration_us(parameter, text), parameter.target)
    if lost.at_us > scenario.duration_us:
        raise InvalidArgument(f"{text} is after the end of the scenario", where=parameter.text, fix="lose it earlier")
    return replace(scenario, happenings=(*scenario.happenings, lost))


def _with_replicas(scenario: Scenario, parameter: Parameter, text: str) -> Scenario:
    count = int(_number(parameter, text, int))
    return _each_target(scenario, parameter, lambda workload: replace(workload, replicas=count))


def _with_priority(scenario: Scenario, parameter: Parameter, text: str) -> Scenario:
    priority = int(_number(parameter, text, int))
    return _each_target(
        scenario, parameter, lambda workload: replace(workload, pod=with_priority(workload.pod, priority))
    )


def _each_node(scenario: Scenario, change: Callable[[MachineSpec], MachineSpec]) -> Scenario:
    return replace(scenario, nodes=tuple(replace(group, spec=change(group.spec)) for group in scenario.nodes))


def _with_phase(scenario: Scenario, parameter: Parameter, text: str) -> Scenario:
    phase_us = _duration_us(parameter, text)
    return _each_node(scenario, lambda spec: replace(spec, loop_phase_us=phase_us))


def _with_policy(scenario: Scenario, parameter: Parameter, text: str) -> Scenario:
    if text not in {policy.value for policy in Policy}:
        raise InvalidArgument(f"unknown policy {text}", where=parameter.text, fix=f"one of {', '.join(Policy)}")
    return replace(scenario, policy=Policy(text))


def _with_kubelet(scenario: Scenario, parameter: Parameter, text: str) -> Scenario:
    """Set a field of the configuration of all nodes; of maps such as evictionHard, one of its keys."""
    field = parameter.name.removeprefix("kubelet.")
    outer, _, key = field.partition(".")

    def changed(spec: MachineSpec) -> MachineSpec:
        settings = cast("dict[str, object]", msgspec.to_builtins(spec.config))
        if outer in _MAPS and key:
            old = settings.get(outer)
            settings[outer] = {**(old if isinstance(old, dict) else {}), key: text}
        else:
            settings[field] = resolve(text)
        config = kubelet_configuration({"apiVersion": API_VERSION, "kind": KIND, **settings}, parameter.text)
        return replace(spec, config=config)

    return _each_node(scenario, changed)


def _duration_us(parameter: Parameter, text: str) -> int:
    try:
        return parse_duration_us(text)
    except InputError as error:
        raise InvalidArgument(error.what, where=parameter.text, fix=error.fix) from error


def _number(parameter: Parameter, text: str, kind: type[int | Fraction]) -> int | Fraction:
    try:
        number = kind(text)
    except (ValueError, ZeroDivisionError):
        number = kind(-1)
    if number < 0:
        raise InvalidArgument(f"{text!r} is not a number of at least 0", where=parameter.text, fix="such as 2")
    return number


_OF_SCENARIOS: dict[str, Callable[[Scenario, Parameter, str], Scenario]] = {
    "growth": _with_growth,
    "memory": _with_memory,
    _NODE_LOST: _with_loss,
    "replicas": _with_replicas,
    "priority": _with_priority,
    "phase": _with_phase,
    "policy": _with_policy,
    "kubelet": _with_kubelet,
}
_NEEDS_TARGET = ("limits", "memory", _NODE_LOST, "priority", "replicas", "requests")


def _kind(parameter: Parameter) -> None:
    """Reject an unknown parameter."""
    first = parameter.name.partition(".")[0]
    if first not in {*_OF_MANIFESTS, *_OF_SCENARIOS, "spec"}:
        known = ", ".join([*_OF_MANIFESTS, *_OF_SCENARIOS, "spec"])
        raise InvalidArgument(f"unknown parameter {parameter.name}", fix=f"parameters are {known}")
    if first in _NEEDS_TARGET and not parameter.target:
        what = "no node given" if first == _NODE_LOST else "no workload given"
        raise InvalidArgument(what, where=parameter.text, fix=_EXAMPLE)
