"""The contents of files, independent of any answer, shared by all ``Objects`` made from them.

They never change. Objects other than workloads and policies are read once, when their kind is requested, and returned
with their problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InvalidConfiguration
from podqos.manifest.contents import RefusedDocument
from podqos.manifest.kinds import is_kubelet
from podqos.manifest.placeholders import placeholder_hint
from podqos.manifest.problems import Problem
from podqos.manifest.text import Place
from podqos.model.pod import Workload
from podqos.objects.other_objects import (
    FoundObject,
    KubeletObject,
    Model,
    PolicyObject,
    budget_problem,
    converted,
    is_own_policy,
    is_read_as,
)
from podqos.objects.rules import ReadingRules
from podqos.objects.sources import Source

if TYPE_CHECKING:
    from podqos.admission.policies import ClusterPolicies, NamespacePolicies
    from podqos.admission.resource_override import OverrideProfile
    from podqos.model.disruption import PodDisruptionBudget
    from podqos.objects.policies import PolicyCollector
    from podqos.objects.scopes import Scopes

Item = TypeVar("Item")


class TakenFile(Struct, frozen=True):
    """A file and its contents."""

    source: Source
    is_stored: bool = False
    """Whether it tells what the cluster has already: of such a file only what decides about pods counts, and policies
    of the same name that are to be applied replace it."""


class FoundWorkload(Struct, frozen=True):
    """A workload, in a namespace, and where it was found."""

    workload: Workload
    source: str
    place: Place


class Read(Struct, Generic[Item], frozen=True):
    """Objects of one kind and their problems."""

    items: tuple[Item, ...] = ()
    problems: tuple[Problem, ...] = ()


class Contents:
    """The contents of files."""

    def __init__(self, taken: Iterable[TakenFile] = (), rules: ReadingRules | None = None) -> None:
        self.rules = rules = rules or ReadingRules()
        self.taken = tuple(taken)
        applied = [taken_file.source for taken_file in self.taken if not taken_file.is_stored]
        self.sources: tuple[Source, ...] = tuple(applied)
        """The files without those that describe the cluster."""
        self.workloads: tuple[FoundWorkload, ...] = tuple(
            FoundWorkload(in_namespace(workload, rules.namespace), source.path, place)
            for source in applied
            for workload, place in zip(source.reading.workloads, source.reading.places, strict=True)
        )
        """In the order of the files."""
        self.refused: tuple[tuple[Source, RefusedDocument], ...] = tuple(
            (source, refused) for source in applied for refused in source.reading.refused
        )
        """Invalid workloads."""
        self.others: tuple[FoundObject, ...] = tuple(
            FoundObject(other, taken_file.source, taken_file.is_stored)
            for taken_file in self.taken
            for other in taken_file.source.reading.others
        )
        self.by_path: Mapping[str, Source] = {taken_file.source.path: taken_file.source for taken_file in self.taken}
        self.problems: tuple[tuple[bool, Problem], ...]
        """Problems, each with whether it makes the policies uncertain."""
        self.policies, self.problems = self._policies()
        self._found: dict[type[Struct], Read[Any]] = {}
        self._admitting: dict[Scopes, NamespacePolicies] = {}

    def with_texts(self, texts: Mapping[str, bytes]) -> Contents:
        """Return the contents if some of the files had other texts."""
        kinds = self.rules.kinds
        return Contents(
            (
                replace(taken_file, source=taken_file.source.with_text(texts[taken_file.source.path], kinds))
                if taken_file.source.path in texts
                else taken_file
                for taken_file in self.taken
            ),
            self.rules,
        )

    def _policies(self) -> tuple[PolicyCollector | None, tuple[tuple[bool, Problem], ...]]:
        """Return the policies, if there are any, and the problems of policies and files."""
        policies: PolicyCollector | None = None
        problems: list[tuple[bool, Problem]] = []
        for taken_file in self.taken:
            source, reading = taken_file.source, taken_file.source.reading
            if taken_file.is_stored:
                of_workloads = {problem for refused in reading.refused for problem in refused.problems}
                problems += ((True, problem) for problem in reading.problems if problem not in of_workloads)
            else:
                problems += ((False, problem) for problem in reading.problems)
            if source.cluster or reading.has_policies:
                policies = policies or self._no_policies
                problems += ((True, problem) for problem in policies.take(source, are_stored=taken_file.is_stored))
        return policies, tuple(problems)

    @cached_property
    def _no_policies(self) -> PolicyCollector:
        from podqos.objects.policies import PolicyCollector

        return PolicyCollector(self.rules)

    # ---- policies ----------------------------------------------------------------------------------------------------

    def scopes(self, source: str) -> Scopes:
        """Return the directories whose policies apply to a file's objects."""
        return () if self.policies is None else self.policies.scopes(source)

    def cluster(
        self, source: str | None = None, override_profile: OverrideProfile | None = None
    ) -> tuple[ClusterPolicies, tuple[Problem, ...]]:
        """Return the policies that apply to a file's objects, and their problems; None: all policies.

        Without a profile, the generation of an override follows from its shape.
        """
        policies = self._no_policies if self.policies is None else self.policies
        scopes = policies.all_scopes if source is None else policies.scopes(source)
        return policies.cluster(scopes, override_profile)

    def admitting(self, scopes: Scopes, cluster: ClusterPolicies) -> NamespacePolicies:
        """Return the policies of some directories without quotas, namespace by namespace."""
        if scopes not in self._admitting:
            self._admitting[scopes] = without_quotas(cluster)
        return self._admitting[scopes]

    def policies_of(self, model: type[Struct]) -> list[Struct]:
        """Return the policies of one kind."""
        return [] if self.policies is None else [policy for policy in self.policies.policies() if type(policy) is model]

    # ---- other kinds -------------------------------------------------------------------------------------------------

    def found(self, model: type[Model]) -> Read[tuple[FoundObject, Model]]:
        """Return the objects of one kind that is not a policy, each with where it was found."""
        if model not in self._found:
            items: list[tuple[FoundObject, Model]] = []
            problems: list[Problem] = []
            for found in self.others:
                if is_read_as(found.other, model):
                    item, wrong = converted(found.source, found.other, model)
                    problems += wrong
                    if item is not None:
                        items.append((found, item))
            self._found[model] = Read(tuple(items), tuple(problems))
        return self._found[model]

    @cached_property
    def disruption_budgets(self) -> Read[tuple[FoundObject, PodDisruptionBudget]]:
        """The PodDisruptionBudgets; what the API server rejects does not count."""
        from podqos.model.disruption import PodDisruptionBudget

        read = self.found(PodDisruptionBudget)
        refusals = [budget_problem(found.source, found.other, budget) for found, budget in read.items]
        return Read(
            tuple(item for item, refusal in zip(read.items, refusals, strict=True) if refusal is None),
            (*read.problems, *(refusal for refusal in refusals if refusal is not None)),
        )

    @cached_property
    def kubelets(self) -> Read[KubeletObject]:
        """The kubelet settings in the files."""
        problems: list[Problem] = []
        return Read(tuple(self._read_kubelets(problems)), tuple(problems))

    def _read_kubelets(self, problems: list[Problem]) -> Iterator[KubeletObject]:
        for found in self.others:
            other = found.other
            if not is_kubelet(other.kind, other.api_version):
                continue
            from podqos.eviction.thresholds import with_the_rest
            from podqos.manifest.kubelet import kubelet_settings
            from podqos.objects.kubelet_notes import ignored_problems

            settings = None
            with found.source.isolated(other.place, problems):
                value = found.source.lookup.plain(other.place)
                try:
                    settings = kubelet_settings(value)
                except InvalidConfiguration as error:
                    for each in with_the_rest(error).all:
                        fix = placeholder_hint(value.get(each.where) if isinstance(value, dict) else None) or each.fix
                        problems.append(found.source.problem(other.place, each.where, each.what, fix))
            if settings is None:
                continue
            at = found.source.locate(other.place, settings.notation.path)
            problems += ignored_problems(settings, found.source.name, at, version=self.rules.version)
            yield KubeletObject(settings, found)

    @cached_property
    def own_policies(self) -> Read[PolicyObject]:
        """The podqos policies in the files; of two with the same name, the first counts."""
        problems: list[Problem] = []
        return Read(tuple(self._read_own_policies(problems)), tuple(problems))

    def _read_own_policies(self, problems: list[Problem]) -> Iterator[PolicyObject]:
        seen: dict[tuple[str | None, str], str] = {}
        for found in self.others:
            if not is_own_policy(found.other):
                continue
            from podqos.policy.reading import read_policy

            source, place = found.source, found.other.place
            policy = None
            with source.isolated(place, problems):
                reading = read_policy(source.lookup.plain(place))
                problems += [
                    source.problem(place, finding.path, finding.what, finding.fix) for finding in reading.findings
                ]
                policy = reading.policy
            if policy is None:
                continue
            key = source.scope, policy.name
            if key in seen:
                what = f'Policy "{policy.name}" is already defined in {seen[key]}'
                problems.append(source.problem(place, ("metadata", "name"), what, "rename one"))
                continue
            seen[key] = source.name
            yield PolicyObject(policy, found)


def without_quotas(cluster: ClusterPolicies) -> NamespacePolicies:
    """Return policies without quotas, namespace by namespace, in all of which pods may be created."""
    from podqos.admission.policies import ClusterPolicies, NamespacePolicies

    return NamespacePolicies(ClusterPolicies(replace(cluster.policies, resource_quotas=()), cluster.namespaces))


def in_namespace(workload: Workload, namespace: str) -> Workload:
    """Return the workload in its own namespace, or else in this one."""
    if workload.metadata.namespace and workload.pod.metadata.namespace:
        return workload
    own = workload.metadata.namespace or namespace
    pod = workload.pod
    return replace(
        workload,
        metadata=replace(workload.metadata, namespace=own),
        pod=replace(pod, metadata=replace(pod.metadata, namespace=own)),
    )
