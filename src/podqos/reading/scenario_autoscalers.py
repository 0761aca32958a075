"""The autoscalers among the manifests of a scenario: which workload each changes, and what of it is ignored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from podqos.manifest.contents import Other
from podqos.manifest.kinds import group_of
from podqos.manifest.plain import FieldPath
from podqos.manifest.problems import Problem, Severity
from podqos.model.autoscaling import HorizontalPodAutoscaler, HPAScalingRules, Metric
from podqos.objects.other_objects import converted
from podqos.objects.sources import Source
from podqos.sim.scenario.scenario import ScenarioWorkload

SCALABLE = frozenset({"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"})
"""The kinds with a scale subresource."""
_MOST_WINDOW_SECONDS = 3600


def found_autoscalers(
    sources: Sequence[Source], workloads: Sequence[ScenarioWorkload], namespace: str
) -> tuple[tuple[HorizontalPodAutoscaler, ...], tuple[Problem, ...]]:
    """Return the autoscalers whose workloads are among those of a scenario, and what is wrong with others."""
    reader = _Reader(workloads, namespace)
    for source in sources:
        for other in source.reading.others:
            if (group_of(other.api_version), other.kind) == ("autoscaling", "HorizontalPodAutoscaler"):
                reader.read(source, other)
    return tuple(reader.horizontal.values()), tuple(reader.problems)


class _Reader:
    def __init__(self, workloads: Sequence[ScenarioWorkload], namespace: str) -> None:
        self._workloads = {(workload.namespace, workload.kind, workload.name): workload for workload in workloads}
        self._namespace = namespace
        self.horizontal: dict[tuple[str, str, str], HorizontalPodAutoscaler] = {}
        """By target."""
        self.problems: list[Problem] = []

    def read(self, source: Source, other: Other) -> None:
        """Read one object."""
        read, problems = converted(source, other, HorizontalPodAutoscaler)
        self.problems += problems
        if read is None:
            return
        namespace = read.metadata.namespace or self._namespace
        autoscaler = replace(read, metadata=replace(read.metadata, namespace=namespace))
        refused = [source.problem(other.place, *finding) for finding in _refusals(autoscaler)]
        self.problems += refused
        ignored = tuple(_ignored(autoscaler))
        self.problems += [
            source.problem(other.place, path, what, fix, severity=Severity.WARNING) for path, what, fix in ignored
        ]
        if (
            refused
            or not self._has_target(source, other, autoscaler)
            or not (autoscaler.resource_metrics or autoscaler.request_metrics)
        ):
            return
        target = autoscaler.workload
        if target in self.horizontal:
            first = self.horizontal[target].metadata.name
            what = f"{target[1]} {target[2]} already has the HorizontalPodAutoscaler {first}: neither scales it"
            self.problems.append(source.problem(other.place, ("spec", "scaleTargetRef"), what, "remove one of the two"))
        self.horizontal[target] = autoscaler

    def _has_target(self, source: Source, other: Other, autoscaler: HorizontalPodAutoscaler) -> bool:
        target = autoscaler.target
        workload = self._workloads.get(autoscaler.workload)
        if workload is not None and workload.kind in SCALABLE:
            return True
        what, fix = f"no workload {target.kind} {target.name} in this namespace", "name one of the manifests"
        if workload is not None:
            what, fix = f"a {target.kind} cannot be scaled", f"scalable are {', '.join(sorted(SCALABLE))}"
        what = f"ignored: {what}"
        place = ("spec", "scaleTargetRef")
        self.problems.append(source.problem(other.place, place, what, fix, severity=Severity.WARNING))
        return False


_Finding = tuple[FieldPath, str, str]


def _refusals(autoscaler: HorizontalPodAutoscaler) -> Iterator[_Finding]:
    """Yield why the API server rejects an autoscaler.

    Source: Kubernetes v1.36.4 pkg/apis/autoscaling/validation/validation.go (validateHorizontalPodAutoscalerSpec,
    validateScalingRules).
    """
    spec = autoscaler.spec
    if spec.min_replicas < 1:
        yield (
            ("spec", "minReplicas"),
            "must be at least 1",
            "0 needs the feature HPAScaleToZero, which is off by default",
        )
    if spec.max_replicas < 1:
        yield ("spec", "maxReplicas"), "must be at least 1", "state the most replicas that are wanted"
    elif spec.max_replicas < spec.min_replicas:
        yield ("spec", "maxReplicas"), "must not be less than minReplicas", "swap the two"
    if spec.behavior is not None:
        for field, rules in (("scaleUp", spec.behavior.scale_up), ("scaleDown", spec.behavior.scale_down)):
            if rules is not None:
                yield from _rule_refusals(rules, ("spec", "behavior", field))


def _rule_refusals(rules: HPAScalingRules, path: FieldPath) -> Iterator[_Finding]:
    window = rules.stabilization_window_seconds
    if window is not None and not 0 <= window <= _MOST_WINDOW_SECONDS:
        fix = f"0 to {_MOST_WINDOW_SECONDS} seconds"
        yield (*path, "stabilizationWindowSeconds"), f"{window} is out of range", fix
    if rules.select_policy not in {None, "Max", "Min", "Disabled"}:
        yield (*path, "selectPolicy"), f'unknown policy "{rules.select_policy}"', "Max, Min or Disabled"


def _ignored(autoscaler: HorizontalPodAutoscaler) -> Iterator[_Finding]:
    """Yield what of an autoscaler a simulation does not have."""
    behavior = autoscaler.spec.behavior
    if behavior is not None:
        for field, rules in (("scaleUp", behavior.scale_up), ("scaleDown", behavior.scale_down)):
            if rules is not None and rules.policies:
                what = "ignored: replicas change as fast as by default"
                yield ("spec", "behavior", field, "policies"), what, ""
    for index, metric in enumerate(autoscaler.spec.metrics):
        named = _unknown(metric)
        if named is not None:
            field, name = named
            what = f"ignored: nothing in a simulation provides the metric {name}"
            yield (
                ("spec", "metrics", index, field),
                what,
                "simulated are cpu, memory and requests (Pods)",
            )


def _unknown(metric: Metric) -> tuple[str, str] | None:
    for field, other in (("pods", metric.pods), ("object", metric.of_object), ("external", metric.external)):
        if other is not None and not (field == "pods" and other.counts_requests):
            return field, other.metric.name
    for field, resource in (("resource", metric.resource), ("containerResource", metric.container_resource)):
        if resource is not None and resource.name not in {"cpu", "memory"}:
            return field, resource.name
    return None
