"""Everything that files hold, as one value: workloads, and the objects that decide about their pods.

Nothing is printed: what is wrong is kept as problems, each with its place in its file, and what can be read is read all
the same. Objects other than workloads and policies are read when somebody asks for their kind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError
from podqos.library.inputs.sources import Source
from podqos.manifest.contents import Other, Refused
from podqos.manifest.kinds import group_of, is_kubelet, is_policy
from podqos.manifest.plain import Plain
from podqos.manifest.problems import Problem, Severity
from podqos.manifest.text import Place
from podqos.model.pod import Workload

if TYPE_CHECKING:
    from podqos.admission.field_errors import FieldError
    from podqos.admission.policies import Cluster, NamespacePolicies
    from podqos.admission.resource_override import OverrideProfile
    from podqos.library.inputs.policies import PolicyCollector
    from podqos.library.inputs.selection import Selection
    from podqos.manifest.kubelet import KubeletSettings

Model = TypeVar("Model", bound=Struct)

Progress = Callable[[int, int], None]
"""Told how many are done, of how many."""

# (API group, kind) → module and name of what it is read as
_MODELS = {
    ("", "Node"): ("podqos.model.node", "Node"),
    ("", "Service"): ("podqos.model.service", "Service"),
    ("policy", "PodDisruptionBudget"): ("podqos.model.disruption", "PodDisruptionBudget"),
}


class FoundWorkload(Struct, frozen=True):
    """A workload, in a namespace, and where it was found."""

    workload: Workload
    source: str
    place: Place


class FoundObject(Struct, frozen=True):
    """An object that holds no pod, and where it was found."""

    other: Other
    source: Source
    is_stored: bool
    """Whether the cluster has it already."""

    @property
    def is_policy(self) -> bool:
        """Whether it is one of the kinds that admission goes by."""
        return is_policy(self.other.kind, self.other.api_version)


class KubeletObject(Struct, frozen=True):
    """The settings of a kubelet that stand among the files."""

    settings: KubeletSettings
    found: FoundObject


def decides_about_pods(other: Other) -> bool:
    """Whether an object is of a kind that is read: a policy, a Node, a Service, a budget, a kubelet's settings."""
    return (
        is_policy(other.kind, other.api_version)
        or (group_of(other.api_version), other.kind) in _MODELS
        or is_kubelet(other.kind, other.api_version)
    )


class Objects:
    """What files hold.

    ``namespace`` is that of objects which name none. ``doubles`` is how bad it is that a policy is given twice; the
    first counts.
    """

    def __init__(self, namespace: str = "default", *, doubles: Severity = Severity.WARNING) -> None:
        self.namespace = namespace
        self.selection: Selection | None = None
        """Which workloads an answer is about; None: all of them."""
        self.sources: list[Source] = []
        self.workloads: list[FoundWorkload] = []
        """In the order of the files."""
        self.refused: list[tuple[Source, Refused]] = []
        """What should be a workload and is not in order."""
        self.others: list[FoundObject] = []
        self.problems: list[Problem] = []
        """What is wrong: known from reading, and found since by those that looked at the objects. Each once."""
        self.policy_problems: list[Problem] = []
        """Those of the problems that leave it open what the policies are."""
        self._doubles = doubles
        self._by_path: dict[str, Source] = {}
        self._taken: list[tuple[Source, bool]] = []
        self._noted: set[Problem] = set()
        self._policies: PolicyCollector | None = None
        self._read: dict[str, list[Struct]] = {}
        self._kubelets: list[KubeletObject] | None = None

    # ---- taking in ---------------------------------------------------------------------------------------------------

    def add_file(self, path: str, *, are_stored: bool = False) -> None:
        """Read one file."""
        self.add(Source(path), are_stored=are_stored)

    def add_text(self, path: str, data: bytes, *, are_stored: bool = False) -> None:
        """Take in a text that was read already; ``path`` is the name to report it under."""
        self.add(Source(path, data), are_stored=are_stored)

    def add(self, source: Source, *, are_stored: bool = False) -> None:
        """Take in a file.

        ``are_stored``: it tells what the cluster has already. Of such a file only what decides about pods counts, and
        policies of the same name that are to be applied replace it.
        """
        reading = source.reading
        self._by_path[source.path] = source
        self._taken.append((source, are_stored))
        self._read.clear()
        self._kubelets = None
        if are_stored:
            of_workloads = {problem for refused in reading.refused for problem in refused.problems}
            self._note_policies([problem for problem in reading.problems if problem not in of_workloads])
        else:
            self.sources.append(source)
            self.note(*reading.problems)
            self.refused += ((source, refused) for refused in reading.refused)
            self.workloads += (
                FoundWorkload(in_namespace(workload, self.namespace), source.path, place)
                for workload, place in zip(reading.workloads, reading.places, strict=True)
            )
        self.others += (FoundObject(other, source, are_stored) for other in reading.others)
        if any(is_policy(other.kind, other.api_version) for other in reading.others):
            self._collector().take(source, are_stored=are_stored)
            self._note_policies(self._collector().problems)

    def with_texts(self, texts: Mapping[str, bytes]) -> Objects:
        """Return what there would be if some of the files held other texts."""
        objects = Objects(self.namespace, doubles=self._doubles)
        objects.selection = self.selection
        for source, are_stored in self._taken:
            text = texts.get(source.path)
            objects.add(source if text is None else Source(source.path, text), are_stored=are_stored)
        return objects

    # ---- what there is -----------------------------------------------------------------------------------------------

    def takes(self, found: FoundWorkload) -> bool:
        """Whether an answer is about a workload."""
        return self.selection is None or self.selection.takes(found.workload)

    @property
    def left_out(self) -> int:
        """How many objects are of kinds that decide nothing about pods, and documents are no Kubernetes objects."""
        return self.skipped + sum(not found.is_stored and not decides_about_pods(found.other) for found in self.others)

    @property
    def skipped(self) -> int:
        """How many documents, or items of lists, are no Kubernetes objects."""
        return sum(source.reading.skipped for source in self.sources)

    @property
    def errors(self) -> int:
        """How many of the problems keep something out."""
        return sum(problem.severity is Severity.ERROR for problem in self.problems)

    def of(self, model: type[Model]) -> tuple[Model, ...]:
        """Return all objects of one kind, in the order in which they were found."""
        found = self._read.get(model.__name__)
        if found is None:
            known = _MODELS.values()
            found = (
                list(self._typed(model)) if (model.__module__, model.__name__) in known else self._policies_of(model)
            )
            self._read[model.__name__] = found
        return tuple(item for item in found if isinstance(item, model))

    @property
    def kubelets(self) -> tuple[KubeletObject, ...]:
        """The settings of kubelets that stand among the files."""
        if self._kubelets is None:
            self._kubelets = list(self._read_kubelets())
        return tuple(self._kubelets)

    def cluster(self, override_profile: OverrideProfile | None = None) -> Cluster:
        """Return the policies of all namespaces; without a profile, the shape of an override tells its generation."""
        cluster = self._collector().cluster(override_profile)
        self._note_policies(self._collector().problems)
        return cluster

    def namespace_policies(self) -> NamespacePolicies:
        """Return what admission looks at, namespace by namespace, in all of which pods may be created.

        Quotas are left out: what they have room for depends on all pods of a namespace, and ``admit`` charges them.
        """
        from podqos.admission.policies import Cluster, NamespacePolicies
        from podqos.model.policy import Namespace

        policies = replace(self.cluster().policies, resource_quotas=())
        return NamespacePolicies(Cluster(policies, self.of(Namespace)))

    def latest(self, *, warn: bool = True) -> list[FoundWorkload]:
        """Return each workload once: as with ``kubectl apply``, what comes later replaces what came before.

        ``warn``: whether that is a problem to tell, because it may be an oversight.
        """
        latest: dict[str, FoundWorkload] = {}
        for number, found in enumerate(self.workloads):
            metadata = found.workload.metadata
            named = f"{found.workload.kind} {metadata.namespace}/{metadata.name}"
            key = metadata.uid or (named if metadata.name else f"{named} {number}")
            if key in latest and warn:
                self._report(found, "", f"{named} replaces the one of {latest[key].source}", severity=Severity.WARNING)
            latest[key] = found
        return list(latest.values())

    def plain(self, found: FoundWorkload) -> Plain:
        """Return everything that an object says."""
        return self._by_path[found.source].lookup.plain(found.place)

    # ---- what is wrong -----------------------------------------------------------------------------------------------

    def note(self, *problems: Problem) -> None:
        """Keep problems; one that is known already stays one."""
        for problem in problems:
            if problem not in self._noted:
                self._noted.add(problem)
                self.problems.append(problem)

    def _note_policies(self, problems: Iterable[Problem]) -> None:
        new = [problem for problem in problems if problem not in self._noted]
        self.note(*new)
        self.policy_problems += new

    def report(self, found: FoundWorkload, errors: Iterable[FieldError]) -> None:
        """Note what is wrong with a workload, at the places where it stands."""
        prefix = f"{found.workload.pod_path}." if found.workload.pod_path else ""
        for error in errors:
            self._report(found, prefix + error.path, error.words)

    def refuse(self, found: FoundWorkload, what: str, fix: str = "") -> None:
        """Note why a workload as a whole cannot be used."""
        self._report(found, "", what, fix)

    def warn(self, found: FoundWorkload, what: str) -> None:
        """Note something to know about a workload; of what is true of several, only once."""
        if not any(problem.what == what for problem in self.problems):
            self._report(found, "", what, severity=Severity.WARNING)

    def _report(
        self, found: FoundWorkload, field: str, what: str, fix: str = "", *, severity: Severity = Severity.ERROR
    ) -> None:
        self.note(self._by_path[found.source].problem(found.place, field, what, fix, severity=severity))

    # ---- reading by kind ---------------------------------------------------------------------------------------------

    def _collector(self) -> PolicyCollector:
        if self._policies is None:
            from podqos.library.inputs.policies import PolicyCollector

            self._policies = PolicyCollector(self.namespace, doubles=self._doubles)
        return self._policies

    def _policies_of(self, model: type[Struct]) -> list[Struct]:
        return [] if self._policies is None else [each for each in self._policies.policies() if type(each) is model]

    def _typed(self, model: type[Struct]) -> Iterator[Struct]:
        for found in self.others:
            other = found.other
            known = _MODELS.get((group_of(other.api_version), other.kind))
            if known is not None and known[1] == model.__name__:
                item = self._converted(found, model)
                if item is not None:
                    yield item

    def _converted(self, found: FoundObject, model: type[Struct]) -> Struct | None:
        from podqos.manifest.decode import convert
        from podqos.manifest.examine import Examination

        place = found.other.place
        value = found.source.lookup.plain(place)
        try:
            return convert(value, model)
        except msgspec.ValidationError:
            examination = Examination(is_live=True)
            cleaned = examination.clean(value, model, ())
            if not examination.findings:
                return convert(cleaned, model)
        self.note(*(found.source.problem(place, each.path, each.what, each.fix) for each in examination.findings))
        return None

    def _read_kubelets(self) -> Iterator[KubeletObject]:
        for found in self.others:
            other = found.other
            if not is_kubelet(other.kind, other.api_version):
                continue
            from podqos.library.inputs.kubelet_notes import ignored_problems
            from podqos.manifest.kubelet import kubelet_settings

            try:
                settings = kubelet_settings(found.source.lookup.plain(other.place))
            except InputError as error:
                self.note(found.source.problem(other.place, error.where, error.what, error.fix))
                continue
            assert settings is not None
            at = found.source.lookup.locate(other.place, settings.notation.path)
            self.note(*ignored_problems(settings, found.source.path, at))
            yield KubeletObject(settings, found)


def load(
    *paths: str | os.PathLike[str],
    policies: Iterable[str | os.PathLike[str]] = (),
    namespace: str = "default",
    doubles: Severity = Severity.WARNING,
    progress: Progress | None = None,
) -> Objects:
    """Return everything that files hold. A directory stands for all YAML and JSON files below it, ``-`` for stdin.

    What cannot be read is among ``problems``; nothing is raised or printed. ``policies`` are files that tell what the
    cluster has: of them, only what decides about pods counts. ``namespace`` is that of objects which name none,
    ``doubles`` how bad it is that a policy is given twice. ``progress`` is told how many files have been read, of how
    many.
    """
    from podqos.library.inputs.files import find_files

    objects = Objects(namespace, doubles=doubles)
    # A file that is named twice is one file.
    files: dict[str, tuple[str, bool]] = {}
    for given, are_stored in (*((path, False) for path in paths), *((path, True) for path in policies)):
        path = os.fspath(given)
        found = sorted(find_files([path]))
        if not found:
            fix = "name a directory of manifests"
            objects.note(Problem(path, 0, 0, Severity.ERROR, "", "no YAML or JSON files there", fix))
        for file in found:
            files.setdefault(os.path.realpath(file), (file, are_stored))
    for number, (file, are_stored) in enumerate(files.values(), 1):
        objects.add_file(file, are_stored=are_stored)
        if progress is not None:
            progress(number, len(files))
    return objects


def in_namespace(workload: Workload, namespace: str) -> Workload:
    """Return the workload in the namespace it names, or else in this one."""
    if workload.metadata.namespace and workload.pod.metadata.namespace:
        return workload
    own = workload.metadata.namespace or namespace
    pod = workload.pod
    return replace(
        workload,
        metadata=replace(workload.metadata, namespace=own),
        pod=replace(pod, metadata=replace(pod.metadata, namespace=own)),
    )
