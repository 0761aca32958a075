"""Everything that files hold, as one value: workloads, and the objects that decide about their pods.

Nothing is printed: what is wrong is kept as problems, each with its place in its file, and what can be read is read all
the same. Objects other than workloads and policies are read when their kind is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError
from podqos.manifest.contents import Refused
from podqos.manifest.kinds import is_kubelet
from podqos.manifest.plain import Plain
from podqos.manifest.problems import Position, Problem, Severity
from podqos.manifest.text import Place
from podqos.model.pod import Workload
from podqos.objects.files import STDIN
from podqos.objects.other_objects import (
    FoundObject,
    KubeletObject,
    Model,
    NotJudged,
    PolicyObject,
    budget_problem,
    converted,
    decides_about_pods,
    is_known,
    is_own_policy,
    is_read_as,
    not_judged,
)
from podqos.objects.sources import Source

if TYPE_CHECKING:
    from podqos.admission.field_errors import FieldError
    from podqos.admission.policies import Cluster, NamespacePolicies, Policies
    from podqos.admission.resource_override import OverrideProfile
    from podqos.manifest.pod_kinds import CustomKind
    from podqos.model.assumption import Assumption
    from podqos.model.disruption import PodDisruptionBudget
    from podqos.model.policy import PriorityClass, RuntimeClass
    from podqos.objects.policies import PolicyCollector, Scopes
    from podqos.objects.selection import Selection

Progress = Callable[[int, int], None]
"""Told how many are done, of how many."""

# So many workloads that replace another are named one by one.
_SHOWN = 5


class FoundWorkload(Struct, frozen=True):
    """A workload, in a namespace, and where it was found."""

    workload: Workload
    source: str
    place: Place


class Objects:
    """What files hold.

    ``namespace`` is that of objects which name none. ``doubles`` is how bad it is that a policy is given twice; the
    first counts. ``stated`` are classes that the cluster has. ``kinds`` are custom resources that hold pods, by kind.
    """

    def __init__(
        self,
        namespace: str = "default",
        *,
        doubles: Severity = Severity.WARNING,
        stated: Iterable[PriorityClass | RuntimeClass] = (),
        kinds: Mapping[str, CustomKind] | None = None,
        directory: str = "",
    ) -> None:
        self.namespace = namespace
        self.directory = directory
        """Where the names of files begin that are not absolute."""
        self.kinds = kinds or {}
        """Custom resources that hold pods, besides the well-known ones."""
        self.stated = tuple(stated)
        """Classes of the cluster that are in no file; they count before those that are."""
        self.missing: set[tuple[str, str]] = set()
        """Kinds and names of the classes that had to be assumed so far."""
        self.assumptions: tuple[Assumption, ...] = ()
        """What is taken not to be there because a cluster does not let it be read."""
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
        self._own_policies: list[PolicyObject] | None = None
        self._admitting: dict[Scopes, NamespacePolicies] = {}

    # ---- taking in ---------------------------------------------------------------------------------------------------

    def add_text(self, path: str, data: bytes, *, are_stored: bool = False) -> None:
        """Take in a text that was read already; ``path`` is the name to report it under."""
        self.add(Source(path, data, kinds=self.kinds), are_stored=are_stored)

    def add(self, source: Source, *, are_stored: bool = False) -> None:
        """Take in a file.

        ``are_stored``: it tells what the cluster has already. Of such a file only what decides about pods counts, and
        policies of the same name that are to be applied replace it.
        """
        reading = source.reading
        self._by_path[source.path] = source
        self._taken.append((source, are_stored))
        self._read.clear()
        self._admitting.clear()
        self._kubelets = self._own_policies = None
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
        if source.cluster:
            self._collector().list_kind(source.listed_kind)
        if reading.has_policies:
            self._collector().take(source, are_stored=are_stored)
            self._note_policies(self._collector().problems)

    def with_texts(self, texts: Mapping[str, bytes]) -> Objects:
        """Return what there would be if some of the files held other texts."""
        objects = Objects(
            self.namespace,
            doubles=self._doubles,
            stated=self.stated,
            kinds=self.kinds,
            directory=self.directory,
        )
        objects.selection, objects.assumptions = self.selection, self.assumptions
        for source, are_stored in self._taken:
            text = texts.get(source.path)
            after = source if text is None else Source(source.path, text, scope=source.scope, kinds=self.kinds)
            objects.add(after, are_stored=are_stored)
        objects.note_unjudged()
        return objects

    def only(self, workloads: Iterable[FoundWorkload]) -> Objects:
        """Return the same with other workloads alone: what decides about them is shared, problems are their own."""
        objects = copy(self)
        objects.workloads, objects.problems = list(workloads), []
        objects._noted = set()  # noqa: SLF001 - its own
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
    def unparsed(self) -> int:
        """How many documents were not parsed, because objects of their kind hold neither pods nor policies."""
        return sum(not found.other.is_parsed for found in self.others)

    @property
    def skipped(self) -> int:
        """How many documents, or items of lists, are no Kubernetes objects."""
        return sum(source.reading.skipped for source in self.sources)

    @property
    def errors(self) -> int:
        """How many of the problems keep something out."""
        return sum(problem.severity is Severity.ERROR for problem in self.problems)

    @property
    def unjudged(self) -> list[NotJudged]:
        """Objects that have pods which cannot be read from them."""
        return [
            NotJudged(each.kind, each.name, each.why, each.hint, source.name, *source.locate(each.place, ()))
            for source in self.sources
            for each in source.reading.unjudged
        ]

    def note_unjudged(self) -> None:
        """Note which objects are not judged though they have pods."""
        self.note(*not_judged(self.unjudged))

    def of(self, model: type[Model]) -> tuple[Model, ...]:
        """Return all objects of one kind, in the order in which they were found."""
        found = self._read.get(model.__name__)
        if found is None:
            found = [item for _, item in self.found(model)] if is_known(model) else self._policies_of(model)
            self._read[model.__name__] = found
        return tuple(item for item in found if isinstance(item, model))

    @property
    def kubelets(self) -> tuple[KubeletObject, ...]:
        """The settings of kubelets that stand among the files."""
        if self._kubelets is None:
            self._kubelets = list(self._read_kubelets())
        return tuple(self._kubelets)

    @property
    def own_policies(self) -> tuple[PolicyObject, ...]:
        """The policies of podqos that stand among the files; of two of the same name the first counts."""
        if self._own_policies is None:
            self._own_policies = list(self._read_own_policies())
        return tuple(self._own_policies)

    def folder(self, source: str) -> str:
        """Return the directory that a file is in."""
        from podqos.objects.policies import scope_of

        return scope_of(source, self.directory)

    def is_about(self, own: PolicyObject, source: str) -> bool:
        """Whether a policy is about what a file holds: found in a directory, it is about that one and those below."""
        from podqos.objects.policies import is_within

        scope = own.found.source.scope
        return scope is None or (source != STDIN and is_within(self.folder(source), scope))

    def scopes(self, source: str) -> Scopes:
        """Return the directories whose policies apply to what a file holds."""
        return () if self._policies is None else self._policies.scopes(source)

    def cluster(self, source: str | None = None, override_profile: OverrideProfile | None = None) -> Cluster:
        """Return the policies of all namespaces that apply to what a file holds; None: all that there are.

        Without a profile, the shape of an override tells its generation.
        """
        collector = self._collector()
        scopes = collector.all_scopes if source is None else collector.scopes(source)
        cluster = collector.cluster(scopes, override_profile)
        self._note_policies(collector.problems)
        return cluster

    def check_policies(self) -> None:
        """Note everything wrong with the policies, wherever they apply."""
        if self._policies is not None:
            for _ in self._policies.clusters():
                self._note_policies(self._policies.problems)

    @property
    def policy_errors(self) -> list[Problem]:
        """What is wrong with policies that apply to all objects."""
        named = {source.name for source, _ in self._taken if source.scope is None}
        return [each for each in self.policy_problems if each.severity is Severity.ERROR and each.source in named]

    @property
    def has_policies(self) -> bool:
        """Whether anything in the files, or stated besides, decides about pods."""
        return bool(self.stated) or any(found.is_decisive for found in self.others)

    def policy_sources(self, scopes: Scopes | None = None) -> list[Source]:
        """Return the files whose policies apply in some directories and not in all; None: in any."""
        return [] if self._policies is None else self._policies.sources(scopes)

    @property
    def alternatives(self) -> list[str]:
        """The files whose LimitRanges and quotas contradict others of their directory and are not applied."""
        return [] if self._policies is None else list(self._policies.alternatives)

    def policy_places(self, source: str) -> list[tuple[Source, Place]]:
        """Return where the policies stand that apply to what a file holds."""
        return self._collector().locations(self.scopes(source))

    def defined_in(self, kind: str, name: str) -> str:
        """Return a file that has a class of this name, which may not apply; nothing where there is none."""
        return "" if self._policies is None else self._policies.defined_in(kind, name)

    def namespace_policies(self, source: str) -> NamespacePolicies:
        """Return what admission of a file's pods looks at, namespace by namespace, in all of which pods may be created.

        Quotas are left out: what they have room for depends on all pods of a namespace, and ``admit`` charges them.
        Classes that pods name and that are not given are taken to exist, and are ``missing``.
        """
        from podqos.admission.policies import Cluster, NamespacePolicies

        scopes = self.scopes(source)
        if scopes not in self._admitting:
            cluster = self.cluster(source)
            policies = self.with_assumed_classes(replace(cluster.policies, resource_quotas=()), scopes)
            self._admitting[scopes] = NamespacePolicies(Cluster(policies, cluster.namespaces))
        return self._admitting[scopes]

    def with_assumed_classes(self, policies: Policies, scopes: Scopes, known: Collection[str] = ()) -> Policies:
        """Return policies with the classes that pods in these scopes name and that are not given.

        ``known`` are kinds of which it is known that the cluster has no others.
        """
        from podqos.admission.stored import with_assumed_classes

        given = policies
        for found in self.workloads:
            spec = found.workload.pod.spec
            names_class = spec.priority_class_name or spec.runtime_class_name
            if names_class and not found.workload.is_stored and self.scopes(found.source) == scopes:
                policies, missing = with_assumed_classes(policies, found.workload.pod)
                self.missing |= {(each.kind, each.name) for each in missing if each.kind not in known}
        return replace(
            policies,
            priority_classes=(given if "PriorityClass" in known else policies).priority_classes,
            runtime_classes=(given if "RuntimeClass" in known else policies).runtime_classes,
        )

    def latest(self, *, warn: bool = True) -> list[FoundWorkload]:
        """Return each workload once: as with ``kubectl apply``, what comes later replaces what came before.

        ``warn``: whether that is a problem to tell, because it may be an oversight.
        """
        latest: dict[str, FoundWorkload] = {}
        replaced: list[tuple[FoundWorkload, str]] = []
        for number, found in enumerate(self.workloads):
            metadata = found.workload.metadata
            named = f"{found.workload.kind} {metadata.namespace}/{metadata.name}"
            # Of a kubelet's pods two can have the same name, one of them on its way out.
            uid = metadata.uid if found.workload.kind == "Pod" else ""
            key = uid or (named if metadata.name else f"{named} {number}")
            if key in latest and warn:
                replaced.append((found, f"{named} replaces the one of {self.source_name(latest[key])}"))
            latest[key] = found
        for found, what in replaced[:_SHOWN]:
            self._report(found, "", what, severity=Severity.WARNING)
        if len(replaced) > _SHOWN:
            what = f"{len(replaced) - _SHOWN} more workloads from here on replace one of the same name"
            fix = "name one directory at a time"
            self._report(replaced[_SHOWN][0], "", what, fix, severity=Severity.WARNING)
        return list(latest.values())

    def source_name(self, found: FoundWorkload) -> str:
        """Return the file that a workload was found in, or the name of its cluster."""
        return self._by_path[found.source].name

    def position(self, found: FoundWorkload) -> Position:
        """Return line and column of a workload; zeros where it comes from a cluster."""
        return self._by_path[found.source].locate(found.place, ())

    def unit(self, found: FoundWorkload) -> str:
        """Return the directory whose workloads one is compared with; empty where its file was named."""
        return self._by_path[found.source].scope or ""

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
        for error in errors:
            self._report(found, found.workload.at(error.path), error.words)

    def tolerate(self, found: FoundWorkload, errors: Sequence[FieldError]) -> None:
        """Warn of what the API server rejects about a workload and an answer does not depend on."""
        self.note(*self._by_path[found.source].tolerated(found.place, errors))

    def refuse(self, found: FoundWorkload, what: str, fix: str = "", field: str = "") -> None:
        """Note why a workload cannot be used: as a whole, or because of a field."""
        self._report(found, field, what, fix)

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
            from podqos.objects.policies import PolicyCollector

            self._policies = PolicyCollector(self.namespace, self.directory, doubles=self._doubles, stated=self.stated)
        return self._policies

    def _policies_of(self, model: type[Struct]) -> list[Struct]:
        return [] if self._policies is None else [each for each in self._policies.policies() if type(each) is model]

    def found(self, model: type[Model]) -> Iterator[tuple[FoundObject, Model]]:
        """Yield the objects of one kind that is not a policy, each with where it was found."""
        for found in self.others:
            if is_read_as(found.other, model):
                item = self._converted(found, model)
                if item is not None:
                    yield found, item

    def disruption_budgets(self) -> Iterator[tuple[FoundObject, PodDisruptionBudget]]:
        """Yield the PodDisruptionBudgets; what the API server rejects is noted and does not count."""
        from podqos.model.disruption import PodDisruptionBudget

        for found, budget in self.found(PodDisruptionBudget):
            refused = budget_problem(found.source, found.other, budget)
            if refused is None:
                yield found, budget
            else:
                self.note(refused)

    def _converted(self, found: FoundObject, model: type[Model]) -> Model | None:
        item, problems = converted(found.source, found.other, model)
        self.note(*problems)
        return item

    def _read_kubelets(self) -> Iterator[KubeletObject]:
        for found in self.others:
            other = found.other
            if not is_kubelet(other.kind, other.api_version):
                continue
            from podqos.manifest.kubelet import kubelet_settings
            from podqos.objects.kubelet_notes import ignored_problems

            try:
                settings = kubelet_settings(found.source.lookup.plain(other.place))
            except InputError as error:
                self.note(found.source.problem(other.place, error.where, error.what, error.fix))
                continue
            assert settings is not None
            at = found.source.locate(other.place, settings.notation.path)
            self.note(*ignored_problems(settings, found.source.name, at))
            yield KubeletObject(settings, found)

    def _read_own_policies(self) -> Iterator[PolicyObject]:
        seen: dict[tuple[str | None, str], str] = {}
        for found in self.others:
            if not is_own_policy(found.other):
                continue
            from podqos.policy.reading import read_policy

            source, place = found.source, found.other.place
            reading = read_policy(source.lookup.plain(place))
            self._note_policies(source.problem(place, each.path, each.what, each.fix) for each in reading.findings)
            if reading.policy is None:
                continue
            key = source.scope, reading.policy.name
            if key in seen:
                what = f'Policy "{reading.policy.name}" is in {seen[key]} already'
                self._note_policies([source.problem(place, ("metadata", "name"), what, "rename one")])
                continue
            seen[key] = source.name
            yield PolicyObject(reading.policy, found)


def custom_kinds(kinds: Mapping[str, str] | None) -> dict[str, CustomKind]:
    """Return custom resources that hold pods, from the paths to their templates."""
    if not kinds:
        return {}
    from podqos.manifest.pod_kinds import configured_kind

    return {kind: configured_kind(kind, path) for kind, path in kinds.items()}


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
