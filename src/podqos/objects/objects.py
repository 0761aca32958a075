"""Everything in the files as one value: workloads, and the objects that affect their pods.

Nothing is printed: what is wrong is kept as problems, each with its place in its file, and what can be read is read all
the same. Objects other than workloads and policies are read when their kind is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podqos.errors import InvalidConfiguration
from podqos.manifest.contents import RefusedDocument
from podqos.manifest.plain import Plain
from podqos.manifest.problems import Position, Problem, Severity
from podqos.manifest.text import Place
from podqos.objects.contents import Contents, FoundWorkload, Item, Read, TakenFile, in_namespace, without_quotas
from podqos.objects.files import STDIN
from podqos.objects.notes import Notes
from podqos.objects.other_objects import (
    FoundObject,
    KubeletObject,
    Model,
    NotJudged,
    PolicyObject,
    broken_fixtures,
    decides_about_pods,
    is_known,
    not_judged,
)
from podqos.objects.scopes import Scopes, is_within, scope_of
from podqos.objects.sources import Source
from podqos.objects.spreading import Progress

if TYPE_CHECKING:
    from podqos.admission.field_errors import FieldError
    from podqos.admission.policies import ClusterPolicies, NamespacePolicies, Policies
    from podqos.admission.resource_override import OverrideProfile
    from podqos.manifest.custom_kind import CustomKind
    from podqos.model.assumption import Assumption
    from podqos.model.disruption import PodDisruptionBudget
    from podqos.objects.selection import Selection

__all__ = ["FoundWorkload", "Objects", "Progress", "custom_kinds", "in_namespace"]


# So many workloads that replace another are named one by one.
_SHOWN = 5


class Objects:
    """The contents of files, and which of the workloads an answer covers.

    A value: what was read and chosen is fixed, and ``with_selection`` and the like return another. ``notes`` alone
    grows: there answers note what they find out (``problems``, ``missing``).
    """

    workloads: tuple[FoundWorkload, ...]
    """In the order of the files."""
    assumptions: tuple[Assumption, ...]
    """What is assumed not to exist because reading it is forbidden."""
    notes: Notes
    """Notes about the objects so far."""
    _contents: Contents
    _selection: Selection | None
    _admitting: dict[Scopes, NamespacePolicies]

    def __init__(
        self,
        contents: Contents | None = None,
        *,
        selection: Selection | None = None,
        assumptions: tuple[Assumption, ...] = (),
        problems: Iterable[Problem] = (),
    ) -> None:
        contents = Contents() if contents is None else contents
        notes = Notes()
        notes.note(problems)
        for is_of_policies, problem in contents.problems:
            (notes.note_policies if is_of_policies else notes.note)((problem,))
        self._fill(contents, contents.workloads, selection, assumptions, notes)

    def _fill(
        self,
        contents: Contents,
        workloads: Iterable[FoundWorkload],
        selection: Selection | None,
        assumptions: tuple[Assumption, ...],
        notes: Notes,
    ) -> Objects:
        fill = partial(object.__setattr__, self)
        fill("_contents", contents)
        fill("_selection", selection)
        fill("_admitting", {})
        fill("workloads", tuple(workloads))
        fill("assumptions", assumptions)
        fill("notes", notes)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        """Raise, except for the selection, which used to be settable."""
        if name != "selection":
            raise AttributeError(f"objects do not change: {name} cannot be set")
        from warnings import warn

        warn("objects.selection is no longer set: objects.with_selection(…)", DeprecationWarning, stacklevel=2)
        object.__setattr__(self, "_selection", value)

    # ---- others like it ----------------------------------------------------------------------------------------------

    def with_selection(self, selection: Selection | None) -> Objects:
        """Return the same for an answer that covers some of the workloads; None: all of them."""
        return self._view(self.workloads, selection, self.notes)

    def with_workloads(self, workloads: Iterable[FoundWorkload]) -> Objects:
        """Return the same with only other workloads; both share their notes."""
        return self._view(workloads, self.selection, self.notes)

    def only(self, workloads: Iterable[FoundWorkload]) -> Objects:
        """Return the same with only other workloads: policies are shared, problems are not."""
        return self._view(workloads, self.selection, Notes(self.policy_problems))

    def with_text(self, path: str, data: bytes, *, are_stored: bool = False) -> Objects:
        """Return the same with a further file; ``path`` is the name to report it under."""
        contents = self._contents
        taken = TakenFile(Source(path, data, kinds=contents.rules.kinds), are_stored)
        further = Contents((*contents.taken, taken), contents.rules)
        objects = Objects(further, selection=self.selection, assumptions=self.assumptions)
        objects.note(*self.problems)
        return objects.with_workloads((*self.workloads, *further.workloads[len(contents.workloads) :]))

    def with_texts(self, texts: Mapping[str, bytes]) -> Objects:
        """Return the objects if some of the files had other texts."""
        contents = self._contents.with_texts(texts)
        objects = Objects(contents, selection=self.selection, assumptions=self.assumptions)
        objects.note_unjudged()
        return objects

    def _view(self, workloads: Iterable[FoundWorkload], selection: Selection | None, notes: Notes) -> Objects:
        view = Objects.__new__(Objects)
        return view._fill(self._contents, workloads, selection, self.assumptions, notes)  # noqa: SLF001 - its own

    # ---- what was given ----------------------------------------------------------------------------------------------

    @property
    def selection(self) -> Selection | None:
        """The workloads an answer covers; None: all of them."""
        return self._selection

    @property
    def namespace(self) -> str:
        """The namespace of objects without one."""
        return self._contents.rules.namespace

    @property
    def directory(self) -> str:
        """The directory that relative file names start from."""
        return self._contents.rules.directory

    @property
    def kinds(self) -> Mapping[str, CustomKind]:
        """Custom resources with pods, in addition to the well-known ones."""
        return self._contents.rules.kinds

    @property
    def sources(self) -> tuple[Source, ...]:
        """The files without those that describe the cluster."""
        return self._contents.sources

    @property
    def others(self) -> tuple[FoundObject, ...]:
        """The objects other than workloads."""
        return self._contents.others

    @property
    def refused(self) -> tuple[tuple[Source, RefusedDocument], ...]:
        """Invalid workloads."""
        return self._contents.refused

    @property
    def problems(self) -> list[Problem]:
        """Problems from reading the files and from answers so far, each once."""
        return self.notes.problems

    @property
    def policy_problems(self) -> list[Problem]:
        """The problems that make the policies uncertain."""
        return self.notes.policy_problems

    @property
    def missing(self) -> set[tuple[str, str]]:
        """Kinds and names of the classes that had to be assumed so far."""
        return self.notes.missing

    # ---- what there is -----------------------------------------------------------------------------------------------

    def takes(self, found: FoundWorkload) -> bool:
        """Whether an answer covers a workload."""
        return self.selection is None or self.selection.takes(found.workload)

    @property
    def left_out(self) -> int:
        """How many objects are of kinds that do not affect pods, or documents that are not Kubernetes objects."""
        return self.skipped + sum(not found.is_stored and not decides_about_pods(found.other) for found in self.others)

    @property
    def skipped(self) -> int:
        """How many documents, or items of lists, are not Kubernetes objects."""
        return sum(source.reading.skipped for source in self.sources)

    @property
    def errors(self) -> int:
        """How many of the problems are errors."""
        return sum(problem.severity is Severity.ERROR for problem in self.problems)

    @property
    def unjudged(self) -> list[NotJudged]:
        """Objects whose pods cannot be read from them."""
        return [
            NotJudged(
                unjudged.kind,
                unjudged.name,
                unjudged.why,
                unjudged.hint,
                source.name,
                *source.locate(unjudged.place, ()),
            )
            for source in self.sources
            for unjudged in source.reading.unjudged
        ]

    def note_unjudged(self) -> None:
        """Note which objects are skipped although they have pods, or may have some."""
        self.note(*not_judged(self.unjudged), *broken_fixtures(self.sources))

    def of(self, model: type[Model]) -> tuple[Model, ...]:
        """Return all objects of one kind, in the order in which they were found."""
        if is_known(model):
            return tuple(item for _, item in self.found(model))
        return tuple(item for item in self._contents.policies_of(model) if isinstance(item, model))

    def found(self, model: type[Model]) -> tuple[tuple[FoundObject, Model], ...]:
        """Return the objects of one kind that is not a policy, each with where it was found."""
        return self._noted(self._contents.found(model))

    def disruption_budgets(self) -> tuple[tuple[FoundObject, PodDisruptionBudget], ...]:
        """Return the PodDisruptionBudgets; those the API server rejects are noted and ignored."""
        return self._noted(self._contents.disruption_budgets)

    @property
    def kubelets(self) -> tuple[KubeletObject, ...]:
        """The kubelet settings in the files."""
        return self._noted(self._contents.kubelets)

    @property
    def own_policies(self) -> tuple[PolicyObject, ...]:
        """The podqos policies in the files; of two with the same name, the first counts."""
        read = self._contents.own_policies
        self.notes.note_policies(read.problems)
        return read.items

    def _noted(self, read: Read[Item]) -> tuple[Item, ...]:
        self.notes.note(read.problems)
        return read.items

    def folder(self, source: str) -> str:
        """Return the directory that a file is in."""
        return scope_of(source, self.directory)

    def is_about(self, own: PolicyObject, source: str) -> bool:
        """Whether a policy applies to a file: one found in a directory applies there and below."""
        scope = own.found.source.scope
        return scope is None or (source != STDIN and is_within(self.folder(source), scope))

    def scopes(self, source: str) -> Scopes:
        """Return the directories whose policies apply to a file's objects."""
        return self._contents.scopes(source)

    def cluster(self, source: str | None = None, override_profile: OverrideProfile | None = None) -> ClusterPolicies:
        """Return the policies of all namespaces that apply to a file's objects; None: all policies.

        Without a profile, the generation of an override follows from its shape.
        """
        cluster, problems = self._contents.cluster(source, override_profile)
        self.notes.note_policies(problems)
        return cluster

    def check_policies(self) -> None:
        """Note all problems of the policies, wherever they apply."""
        if self._contents.policies is not None:
            self.notes.note_policies(self._contents.policies.problems())

    def check_kubelets(self) -> None:
        """Note kubelets in the files that do not start with their settings, for answers that need none of them."""
        for kubelet in self.kubelets:
            from podqos.eviction.thresholds import check_alone

            source, place = kubelet.found.source, kubelet.found.other.place
            try:
                check_alone(kubelet.settings)
            except InvalidConfiguration as error:
                for each in error.all:
                    self.note(source.problem(place, each.where.replace('"', ""), each.what, each.fix))

    @property
    def policy_errors(self) -> list[Problem]:
        """Problems of policies that apply to all objects."""
        named = {taken_file.source.name for taken_file in self._contents.taken if taken_file.source.scope is None}
        return [
            problem
            for problem in self.policy_problems
            if problem.severity is Severity.ERROR and problem.source in named
        ]

    @property
    def has_policies(self) -> bool:
        """Whether anything in the files or options affects pods."""
        return bool(self._contents.rules.stated) or any(found.is_decisive for found in self.others)

    def policy_sources(self, scopes: Scopes | None = None) -> list[Source]:
        """Return the files whose policies apply to some directories only; None: to any."""
        policies = self._contents.policies
        return [] if policies is None else policies.sources(scopes)

    @property
    def alternatives(self) -> list[str]:
        """The files whose LimitRanges and quotas contradict others of their directory and are not applied."""
        policies = self._contents.policies
        return [] if policies is None else list(policies.alternatives)

    def policy_places(self, source: str) -> list[tuple[Source, Place]]:
        """Return where the policies are that apply to a file's objects."""
        policies = self._contents.policies
        return [] if policies is None else policies.locations(self.scopes(source))

    def defined_in(self, kind: str, name: str) -> str:
        """Return a file that has a class of this name, which may not apply; empty if there is none."""
        policies = self._contents.policies
        return "" if policies is None else policies.defined_in(kind, name)

    def namespace_policies(self, source: str) -> NamespacePolicies:
        """Return the policies for admitting a file's pods, by namespace; pods may be created in all of them.

        Quotas are left out: what they have room for depends on all pods of a namespace, and ``admit`` charges them.
        Classes that pods name and that are not given are taken to exist, and are ``missing``.
        """
        scopes = self.scopes(source)
        if scopes not in self._admitting:
            cluster = self.cluster(source)
            assumed = self.with_assumed_classes(cluster.policies, scopes)
            if assumed == cluster.policies:
                # What has been made for other workloads serves as well.
                self._admitting[scopes] = self._contents.admitting(scopes, cluster)
            else:
                self._admitting[scopes] = without_quotas(replace(cluster, policies=assumed))
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
                self.missing.update((each.kind, each.name) for each in missing if each.kind not in known)
        return replace(
            policies,
            priority_classes=(given if "PriorityClass" in known else policies).priority_classes,
            runtime_classes=(given if "RuntimeClass" in known else policies).runtime_classes,
        )

    def latest(self, *, warn: bool = True) -> list[FoundWorkload]:
        """Return each workload once: as with ``kubectl apply``, a later one replaces an earlier one.

        ``warn``: whether to report that, because it may be an oversight.
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
            fix = "give one directory at a time"
            self._report(replaced[_SHOWN][0], "", what, fix, severity=Severity.WARNING)
        return list(latest.values())

    def source_name(self, found: FoundWorkload) -> str:
        """Return the file that a workload was found in, or the name of its cluster."""
        return self._contents.by_path[found.source].name

    def position(self, found: FoundWorkload) -> Position:
        """Return line and column of a workload; zeros if it comes from a cluster."""
        return self._contents.by_path[found.source].locate(found.place, ())

    def unit(self, found: FoundWorkload) -> str:
        """Return the directory whose workloads one is compared with; empty if its file was named."""
        return self._contents.by_path[found.source].scope or ""

    def plain(self, found: FoundWorkload) -> Plain:
        """Return the full contents of an object."""
        return self._contents.by_path[found.source].lookup.plain(found.place)

    # ---- what is wrong -----------------------------------------------------------------------------------------------

    def note(self, *problems: Problem) -> None:
        """Add problems, each once."""
        self.notes.note(problems)

    def report(self, found: FoundWorkload, errors: Iterable[FieldError]) -> None:
        """Note the problems of a workload, at their places."""
        for error in errors:
            self._report(found, found.workload.at(error.path), error.words)

    def tolerate(self, found: FoundWorkload, errors: Sequence[FieldError]) -> None:
        """Warn about fields of a workload that the API server rejects but the answer does not depend on."""
        self.note(*self._contents.by_path[found.source].tolerated(found.place, errors))

    def written(self, found: FoundWorkload) -> Callable[[], Plain]:
        """Return what reads the whole object of a workload."""
        return partial(self._contents.by_path[found.source].plain, found.place)

    def refuse(self, found: FoundWorkload, what: str, fix: str = "", field: str = "") -> None:
        """Note why a workload cannot be used: as a whole, or because of a field."""
        self._report(found, field, what, fix)

    def warn(self, found: FoundWorkload, what: str) -> None:
        """Add a note about a workload; a note that is true of several is added once."""
        if not any(problem.what == what for problem in self.problems):
            self._report(found, "", what, severity=Severity.WARNING)

    def _report(
        self, found: FoundWorkload, field: str, what: str, fix: str = "", *, severity: Severity = Severity.ERROR
    ) -> None:
        self.note(self._contents.by_path[found.source].problem(found.place, field, what, fix, severity=severity))


def custom_kinds(kinds: Mapping[str, str] | None) -> dict[str, CustomKind]:
    """Return custom resources with pods, from the paths to their templates."""
    if not kinds:
        return {}
    from podqos.manifest.pod_kinds import configured_kind

    return {kind: configured_kind(kind, path) for kind, path in kinds.items()}
