"""Every object that files hold, as values: workloads, and the kinds that decide about them.

Problems are collected with their places in the files; what can be read is read all the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec
from msgspec import Struct

from podqos.admission.field_errors import FieldError
from podqos.admission.resource_override import validate_override
from podqos.errors import InputError
from podqos.library.inputs.files import read_bytes, with_progress
from podqos.manifest.contents import Other
from podqos.manifest.decode import convert
from podqos.manifest.examine import Examination
from podqos.manifest.kinds import POLICY_GROUPS, is_kubelet, is_policy, meant_policy
from podqos.manifest.lookup import Lookup
from podqos.manifest.plain import Plain, format_path, parse_path
from podqos.manifest.policies import read_policy
from podqos.manifest.problems import Problem, Severity
from podqos.manifest.reading import read
from podqos.manifest.text import Place
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import Node
from podqos.model.pod import Workload
from podqos.model.policy import ClusterResourceOverride

Model = TypeVar("Model", bound=Struct)

# (API group, kind) → what it is read as
_MODELS: dict[tuple[str, str], type[Struct]] = {
    ("", "Node"): Node,
    ("policy", "PodDisruptionBudget"): PodDisruptionBudget,
}
# Quotas decide nothing about where a pod runs.
_POLICIES = frozenset(POLICY_GROUPS) - {"ResourceQuota"}


class FoundWorkload(Struct, frozen=True):
    """A workload and where it was found."""

    workload: Workload
    source: str
    place: Place


class Objects:
    """What files hold."""

    def __init__(self) -> None:
        self.workloads: list[FoundWorkload] = []
        self.kubelets: list[KubeletConfiguration] = []
        self.override_generation = ""
        """Of the ClusterResourceOverride among them: the profile whose shape it has."""
        self.problems: list[Problem] = []
        self.left_out = 0
        """Objects of other kinds, and documents that are no Kubernetes objects."""
        self._typed: dict[type[Struct], list[Struct]] = {}
        self._texts: dict[str, bytes] = {}
        self._lookups: dict[str, Lookup] = {}

    def of(self, model: type[Model]) -> tuple[Model, ...]:
        """Return all objects of one kind, in the order in which they were found."""
        return tuple(item for item in self._typed.get(model, ()) if isinstance(item, model))

    def add_file(self, path: str) -> None:
        """Read one file."""
        try:
            data = read_bytes(path)
        except InputError as error:
            self.problems.append(Problem(path, 0, 0, Severity.ERROR, "", error.what, error.fix))
            return
        self.add_text(path, data)

    def add_text(self, path: str, data: bytes) -> None:
        """Take in a text that was read already; ``path`` is the name to report it under."""
        self._texts[path] = data
        reading = read(path, data)
        self.problems.extend(reading.problems)
        self.left_out += reading.skipped
        self.workloads.extend(
            FoundWorkload(workload, path, place)
            for workload, place in zip(reading.workloads, reading.places, strict=True)
        )
        for other in reading.others:
            self._add_other(path, other)

    def plain(self, found: FoundWorkload) -> Plain:
        """Return everything that an object says."""
        return self._lookup(found.source).plain(found.place)

    def report(self, found: FoundWorkload, errors: Iterable[FieldError]) -> None:
        """Note what is wrong with a workload, at the places where it stands."""
        prefix = f"{found.workload.pod_path}." if found.workload.pod_path else ""
        for error in errors:
            self._report(found.source, found.place, prefix + error.path, error.words)

    def refuse(self, found: FoundWorkload, what: str, fix: str = "") -> None:
        """Note why a workload as a whole cannot be used."""
        self._report(found.source, found.place, "", what, fix)

    def warn(self, found: FoundWorkload, what: str) -> None:
        """Note something to know about a workload; of what is true of several, only once."""
        if not any(problem.what == what for problem in self.problems):
            self._report(found.source, found.place, "", what, severity=Severity.WARNING)

    def _add_other(self, path: str, other: Other) -> None:
        group = other.api_version.rpartition("/")[0]
        if is_kubelet(other.kind, other.api_version):
            self._add_kubelet(path, other)
            return
        if meant_policy(other.kind) in _POLICIES and is_policy(other.kind, other.api_version):
            self._add_policy(path, other)
            return
        model = _MODELS.get((group, other.kind))
        if model is None:
            self.left_out += 1
            return
        value = self._lookup(path).plain(other.place)
        try:
            item = convert(value, model)
        except msgspec.ValidationError:
            examination = Examination(is_live=True)
            cleaned = examination.clean(value, model, ())
            for finding in examination.findings:
                self._report(path, other.place, format_path(finding.path), finding.what, finding.fix)
            if examination.findings:
                return
            item = convert(cleaned, model)
        self._typed.setdefault(model, []).append(item)

    def _add_policy(self, path: str, other: Other) -> None:
        read_as = read_policy(other.kind, other.api_version, self._lookup(path).plain(other.place))
        for finding in read_as.findings:
            self._report(path, other.place, format_path(finding.path), finding.what, finding.fix)
        if read_as.policy is None:
            return
        if isinstance(read_as.policy, ClusterResourceOverride):
            self.override_generation = self.override_generation or read_as.generation
            for error in validate_override(read_as.policy):
                self._report(path, other.place, format_path((*read_as.path, *parse_path(error.path))), error.words)
        self._typed.setdefault(type(read_as.policy), []).append(read_as.policy)

    def _add_kubelet(self, path: str, other: Other) -> None:
        from podqos.eviction.kubelet_file import check_thresholds
        from podqos.library.inputs.kubelet_notes import ignored_problems
        from podqos.manifest.kubelet import kubelet_settings

        try:
            settings = kubelet_settings(self._lookup(path).plain(other.place))
            assert settings is not None
            check_thresholds(settings)
        except InputError as error:
            self._report(path, other.place, error.where, error.what, error.fix)
            return
        self.kubelets.append(settings.configuration)
        at = self._lookup(path).locate(other.place, settings.notation.value)
        self.problems += ignored_problems(settings, path, at)

    def _report(
        self, path: str, place: Place, field: str, what: str, fix: str = "", *, severity: Severity = Severity.ERROR
    ) -> None:
        line, column = self._lookup(path).locate(place, field)
        self.problems.append(Problem(path, line, column, severity, field, what, fix))

    def _lookup(self, path: str) -> Lookup:
        if path not in self._lookups:
            self._lookups[path] = Lookup(self._texts[path])
        return self._lookups[path]


def read_objects(paths: list[str]) -> Objects:
    """Read all files; tell a person who waits how far it is."""
    objects = Objects()
    for path in with_progress(paths, "reading file"):
        objects.add_file(path)
    return objects
