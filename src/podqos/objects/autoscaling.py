"""The autoscalers among the files, and the workloads whose resources or replicas they change."""

from __future__ import annotations

from podqos.model.autoscaling import Autoscaler, HorizontalPodAutoscaler, VerticalPodAutoscaler
from podqos.objects.objects import FoundWorkload, Objects
from podqos.objects.other_objects import FoundObject
from podqos.objects.scopes import is_within

Target = tuple[str, str, str]
"""Namespace, kind and name."""


class Autoscalers:
    """Autoscalers by target. One that was found in a directory applies there and below, like a policy."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._vertical = _by_target(objects, VerticalPodAutoscaler)
        self._horizontal = _by_target(objects, HorizontalPodAutoscaler)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._vertical or self._horizontal)

    def vertical(self, found: FoundWorkload) -> VerticalPodAutoscaler | None:
        """Return the autoscaler that changes a workload's resources."""
        chosen = _autoscaler(self._chosen(found, self._vertical))
        containers = found.workload.pod.spec.containers
        return (
            chosen if chosen is not None and any(chosen.changes(container.name) for container in containers) else None
        )

    def recommending(self, found: FoundWorkload) -> VerticalPodAutoscaler | None:
        """Return the autoscaler for a workload's resources, whether it changes or only recommends them."""
        return _autoscaler(self._chosen(found, self._vertical))

    def horizontal(self, found: FoundWorkload) -> HorizontalPodAutoscaler | None:
        """Return the autoscaler that changes the number of a workload's pods."""
        return _autoscaler(self.found_horizontal(found))

    def found_horizontal(self, found: FoundWorkload) -> tuple[FoundObject, HorizontalPodAutoscaler] | None:
        """Return the same with where it was found."""
        return self._chosen(found, self._horizontal)

    def _chosen(
        self, found: FoundWorkload, targets: dict[Target, list[tuple[FoundObject, Autoscaler]]]
    ) -> tuple[FoundObject, Autoscaler] | None:
        metadata = found.workload.metadata
        scaling = targets.get((metadata.namespace, found.workload.kind, metadata.name), ())
        for where, autoscaler in scaling:
            scope = where.source.scope
            if scope is None or is_within(self._objects.folder(found.source), scope):
                return where, autoscaler
        return None


def _autoscaler(found: tuple[FoundObject, Autoscaler] | None) -> Autoscaler | None:
    return None if found is None else found[1]


def _by_target(objects: Objects, model: type[Autoscaler]) -> dict[Target, list[tuple[FoundObject, Autoscaler]]]:
    targets: dict[Target, list[tuple[FoundObject, Autoscaler]]] = {}
    for found, autoscaler in objects.found(model):
        namespace = autoscaler.metadata.namespace or objects.namespace
        target = autoscaler.target
        targets.setdefault((namespace, target.kind, target.name), []).append((found, autoscaler))
    return targets
