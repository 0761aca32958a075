"""Resizes in place of a scenario file as values; what the API server would reject is reported.

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (ValidatePodResize): only CPU and memory change, nothing
is removed, and the QoS class stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podqos.manifest.fields import suggestion
from podqos.manifest.plain import FieldPath
from podqos.model.profile import Profile
from podqos.model.resources import CPU, MEMORY, ResourceRequirements
from podqos.qos.classes import classify
from podqos.sim.scenario.happenings import Happening, Resized, with_resources
from podqos.sim.scenario.scenario import ScenarioWorkload
from podqos.sim.scenario_format.events import EventOfKind, EventPart, ResizePart
from podqos.sim.scenario_format.shape_document import Report


class ResizeEventReader:
    """Makes resizes from events."""

    def __init__(self, workloads: Sequence[ScenarioWorkload], profile: Profile, report: Report) -> None:
        self._workloads = workloads
        self._profile = profile
        self._report = report

    @property
    def readers(self) -> Mapping[str, EventOfKind]:
        """What reads which field of an event."""
        return {"resize": self._resize}

    def _resize(self, event: EventPart, path: FieldPath) -> Happening | None:
        part = event.resize
        assert part is not None
        workload = self._workload(part, path)
        if workload is None:
            return None
        spec = workload.pod.spec
        names = [container.name for container in (*spec.containers, *spec.init_containers)]
        name = part.container or (names[0] if len(names) == 1 else "")
        if name not in names:
            what = (
                f'the pod has no container "{name}"' if name else f"the pod has several containers: {', '.join(names)}"
            )
            self._report((*path, "container"), what, suggestion(name, names) if name else "name one of them")
            return None
        changed = ResourceRequirements(part.resources.requests, part.resources.limits)
        self._check(workload, name, changed, path)
        identity = f"{workload.kind}/{workload.namespace}/{workload.name}"
        return Resized(int(event.at), identity, name, changed, part.pod)

    def _workload(self, part: ResizePart, path: FieldPath) -> ScenarioWorkload | None:
        found = [
            workload
            for workload in self._workloads
            if part.workload
            in {
                workload.name,
                f"{workload.namespace}/{workload.name}",
                f"{workload.kind}/{workload.namespace}/{workload.name}",
            }
        ]
        if len(found) == 1:
            return found[0]
        if found:
            self._report((*path, "workload"), f'"{part.workload}" is ambiguous', "use Kind/namespace/name")
        else:
            fix = suggestion(part.workload, [workload.name for workload in self._workloads])
            self._report((*path, "workload"), f'no manifest has a workload "{part.workload}"', fix)
        return None

    def _check(self, workload: ScenarioWorkload, name: str, changed: ResourceRequirements, path: FieldPath) -> None:
        place = (*path, "resources")
        for resource in {**changed.requests, **changed.limits}:
            if resource not in {CPU, MEMORY}:
                self._report(place, f"{resource} cannot be resized in place", "only cpu and memory can")
        if not changed.requests and not changed.limits:
            self._report(place, "Required value", "such as limits: {memory: 2Gi}")
        after = with_resources(workload.pod, name, changed)
        before_class, after_class = (classify(pod, self._profile).qos_class for pod in (workload.pod, after))
        if before_class is not after_class:
            what = f"the QoS class would change from {before_class} to {after_class}, which the API server rejects"
            self._report(place, what, "resize requests and limits so that the class stays")
        for container in (*after.spec.containers, *after.spec.init_containers):
            limits = container.resources.limits
            for resource, request in container.resources.requests.items():
                if container.name == name and resource in limits and request > limits[resource]:
                    self._report(place, f"the request of {resource} is above its limit", "change both")
