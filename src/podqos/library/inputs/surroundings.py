"""What surrounds workloads in files, as checks see it: a view of ``Objects``.

That the same policy stands twice is no error here: a repository holds the overlays of several clusters, and whoever
wants one of them checks its directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from podqos.advice.checks.bundle import ClusterObjects, FoundKubelet
from podqos.advice.checks.finding import CheckedObject
from podqos.library.inputs.objects import FoundObject, Objects, decides_about_pods
from podqos.library.inputs.sources import Source
from podqos.manifest.problems import Problem
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.node import Node
from podqos.model.service import Service

_NAMESPACED = ("LimitRange", "ResourceQuota", "Service", "PodDisruptionBudget")

surrounds = decides_about_pods


def surroundings_of(objects: Objects) -> ClusterObjects:
    """Return everything but the workloads."""
    return ClusterObjects(
        cluster=objects.cluster(),
        services=objects.of(Service),
        disruption_budgets=objects.of(PodDisruptionBudget),
        nodes=objects.of(Node),
        kubelets=tuple(
            FoundKubelet(
                each.settings.configuration,
                _subject(each.found, objects.namespace),
                each.settings.notation,
                each.settings.arguments,
            )
            for each in objects.kubelets
        ),
        subjects=tuple(
            _subject(found, objects.namespace) for found in objects.others if decides_about_pods(found.other)
        ),
    )


class SurroundingsCollector:
    """Surroundings in the making; ``namespace`` is that of objects which name none."""

    def __init__(self, namespace: str) -> None:
        self._objects = Objects(namespace)

    def take(self, source: Source, *, are_stored: bool = False) -> None:
        """Take in what a file holds; ``are_stored``: the cluster has it already."""
        self._objects.add(source, are_stored=are_stored)

    def surroundings(self) -> ClusterObjects:
        """Return everything together."""
        return surroundings_of(self._objects)

    def problems(self) -> Iterable[Problem]:
        """Return what is wrong, once everything was put together."""
        return self._objects.problems


def _subject(found: FoundObject, namespace: str) -> CheckedObject:
    other, path = found.other, found.source.path
    metadata = other.metadata
    own = metadata.namespace or (namespace if other.kind in _NAMESPACED else "")
    # A kubelet's configuration is a file and has no other name.
    name = metadata.name or metadata.generate_name or os.path.basename(path)
    return CheckedObject(other.kind, name, own, other.api_version, path, other.place)
