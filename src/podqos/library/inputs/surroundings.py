"""What surrounds workloads in files: policies, Services, Nodes, budgets and kubelet configurations, put together.

Everything wrong becomes a problem with its place. That the same policy stands twice is no error here: a repository
holds the overlays of several clusters, and whoever wants one of them checks its directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

import msgspec
from msgspec import Struct

from podqos.advice.checks.bundle import FoundKubelet, Surroundings
from podqos.advice.checks.finding import Subject
from podqos.errors import InputError
from podqos.library.inputs.policies import PolicyCollector
from podqos.library.inputs.sources import Source
from podqos.manifest.contents import Other
from podqos.manifest.decode import convert
from podqos.manifest.examine import Examination
from podqos.manifest.kinds import group_of, is_kubelet, is_policy
from podqos.manifest.plain import parse_path
from podqos.manifest.problems import Problem, Severity
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.node import Node
from podqos.model.service import Service

Model = TypeVar("Model", bound=Struct)

# (API group, kind) → what it is read as
_MODELS: dict[tuple[str, str], type[Struct]] = {
    ("", "Node"): Node,
    ("", "Service"): Service,
    ("policy", "PodDisruptionBudget"): PodDisruptionBudget,
}
_NAMESPACED = ("LimitRange", "ResourceQuota", "Service", "PodDisruptionBudget")


def surrounds(other: Other) -> bool:
    """Whether an object is one of those that are put together here."""
    return (
        is_policy(other.kind, other.api_version)
        or (group_of(other.api_version), other.kind) in _MODELS
        or is_kubelet(other.kind, other.api_version)
    )


class SurroundingsCollector:
    """Surroundings in the making; ``namespace`` is that of objects which name none."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._policies = PolicyCollector(namespace, doubles=Severity.WARNING)
        self._typed: dict[type[Struct], list[Struct]] = {}
        self._kubelets: list[FoundKubelet] = []
        self._subjects: list[Subject] = []
        self._problems: list[Problem] = []

    def take(self, source: Source, *, are_stored: bool = False) -> None:
        """Take in what a file holds; ``are_stored``: the cluster has it already."""
        self._policies.take(source, are_stored=are_stored)
        for other in source.reading.others:
            if not surrounds(other):
                continue
            subject = self._subject(source.path, other)
            self._subjects.append(subject)
            if is_kubelet(other.kind, other.api_version):
                self._take_kubelet(source, other, subject)
            elif (model := _MODELS.get((group_of(other.api_version), other.kind))) is not None:
                self._take_typed(source, other, model)

    def surroundings(self) -> Surroundings:
        """Return everything together."""
        cluster = self._policies.cluster()
        return Surroundings(
            cluster=cluster,
            services=self._of(Service),
            disruption_budgets=self._of(PodDisruptionBudget),
            nodes=self._of(Node),
            kubelets=tuple(self._kubelets),
            subjects=tuple(self._subjects),
        )

    def problems(self) -> Iterable[Problem]:
        """Return what is wrong, once everything was put together."""
        return (*self._problems, *self._policies.problems)

    def _of(self, model: type[Model]) -> tuple[Model, ...]:
        return tuple(item for item in self._typed.get(model, ()) if isinstance(item, model))

    def _subject(self, path: str, other: Other) -> Subject:
        metadata = other.metadata
        namespace = metadata.namespace or (self._namespace if other.kind in _NAMESPACED else "")
        # A kubelet's configuration is a file and has no other name.
        name = metadata.name or metadata.generate_name or os.path.basename(path)
        return Subject(other.kind, name, namespace, other.api_version, path, other.place)

    def _take_typed(self, source: Source, other: Other, model: type[Struct]) -> None:
        value = source.lookup.plain(other.place)
        try:
            item = convert(value, model)
        except msgspec.ValidationError:
            examination = Examination(is_live=True)
            cleaned = examination.clean(value, model, ())
            for finding in examination.findings:
                self._problems.append(source.problem(other.place, finding.path, finding.what, finding.fix))
            if examination.findings:
                return
            item = convert(cleaned, model)
        self._typed.setdefault(model, []).append(item)

    def _take_kubelet(self, source: Source, other: Other, subject: Subject) -> None:
        from podqos.library.inputs.kubelet_notes import ignored_problems
        from podqos.manifest.kubelet import kubelet_settings

        try:
            settings = kubelet_settings(source.lookup.plain(other.place))
        except InputError as error:
            self._problems.append(source.problem(other.place, parse_path(error.where), error.what, error.fix))
            return
        assert settings is not None
        self._kubelets.append(FoundKubelet(settings.configuration, subject, settings.notation, settings.arguments))
        at = source.lookup.locate(other.place, settings.notation.value)
        self._problems += ignored_problems(settings, source.path, at)
