"""Resizes in place of a scenario file as values; what the API server rejects (``admission.resize``) is reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podqos.admission.resize import validate_resize
from podqos.manifest.fields import suggestion
from podqos.manifest.plain import FieldPath
from podqos.model.profile import Profile
from podqos.model.resources import ResourceRequirements
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
        if not changed.requests and not changed.limits:
            self._report(place, "Required value", "such as limits: {memory: 2Gi}")
        for error in validate_resize(workload.pod, with_resources(workload.pod, name, changed), self._profile):
            self._report(place, f"the API server rejects this resize: {error}", "change requests and limits otherwise")
