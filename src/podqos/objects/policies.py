"""The policies in the files of a command: read, validated, and combined into a cluster.

One directory is not one cluster: a policy found while walking a directory applies to the objects of its own directory
and below (``scopes``), one from a file that was named applies to all. Everything wrong becomes a problem with its
place; whether to go on in spite of one is for the command to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.policies import OVERRIDE_NAME, ClusterPolicies, Policies, PolicyError, validate_policies
from podqos.admission.priority import SYSTEM_CLASSES
from podqos.admission.resource_override import CURRENT, PROFILES, OverrideProfile
from podqos.manifest.contents import Other
from podqos.manifest.kinds import is_policy
from podqos.manifest.plain import FieldPath, parse_path
from podqos.manifest.problems import Problem, Severity
from podqos.manifest.text import Place
from podqos.model.pod import ObjectMeta
from podqos.model.policy import (
    ClusterResourceOverride,
    LimitRange,
    Namespace,
    PriorityClass,
    ResourceQuota,
    ResourceQuotaStatus,
    RuntimeClass,
)
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import ResourceList
from podqos.objects.files import STDIN
from podqos.objects.scopes import Scopes, enclosing, scope_of
from podqos.objects.sources import Source

if TYPE_CHECKING:
    from podqos.manifest.policies import Policy, PolicyReading
    from podqos.objects.rules import ReadingRules

_Key = tuple[str, str, str]
"""Kind, namespace and name."""
_NAMESPACED = ("LimitRange", "ResourceQuota")


class _Found(Struct, frozen=True):
    """A policy and where it is."""

    policy: Policy
    source: Source
    place: Place
    path: FieldPath
    is_stored: bool
    """Whether the cluster has it already."""
    generation: str
    """Of an override: the profile whose shape it has."""


class PolicyCollector:
    """The policies of files, added one file after another."""

    def __init__(self, rules: ReadingRules) -> None:
        self._namespace = rules.namespace
        self._directory = rules.directory
        self._doubles = rules.doubles
        self._stated = {_key(type(each).__name__, each.metadata): each for each in rules.stated}
        self._found: dict[str | None, dict[_Key, _Found]] = {}
        """By scope, None for policies that apply to all objects."""
        self._known_kinds: set[str] = set()
        """Of which all is known: what is not named is not there."""
        self._listed_kinds: set[str] = set()
        """Known from a cluster itself, so that no file could add to it what the cluster has."""
        self._scopes: dict[str, Scopes] = {}
        self._clusters: dict[tuple[Scopes, str], tuple[ClusterPolicies, tuple[Problem, ...]]] = {}
        self._alternatives: dict[str, None] | None = None

    def take(self, source: Source, *, are_stored: bool = False) -> list[Problem]:
        """Add the policies of a file, and return their problems.

        Policies that are to be applied replace what the cluster has stored under the same name. And if it has stored
        namespaces or classes, it has no others; nor has a cluster that listed a kind, if only that there is none.
        """
        if source.cluster:
            self._known_kinds.add(source.listed_kind)
            self._listed_kinds.add(source.listed_kind)
        problems: list[Problem] = []
        for other in source.reading.others:
            if is_policy(other.kind, other.api_version):
                problems += self._take(source, other, is_stored=are_stored)
        self._scopes.clear()
        self._clusters.clear()
        self._alternatives = None
        return problems

    def policies(self) -> list[Policy]:
        """Return all of them, in the order in which they were found."""
        return [each.policy for found in self._found.values() for each in found.values()]

    def scopes(self, path: str) -> Scopes:
        """Return the directories with policies that apply to a file's objects."""
        if path == STDIN:
            return ()
        return self._within(scope_of(path, self._directory))

    def _within(self, folder: str) -> Scopes:
        if folder not in self._scopes:
            self._scopes[folder] = enclosing(folder, self._found.keys())
        return self._scopes[folder]

    @property
    def all_scopes(self) -> Scopes:
        """All directories with policies."""
        return tuple(sorted(each for each in self._found if each is not None))

    def sources(self, scopes: Scopes | None = None) -> list[Source]:
        """Return the files whose policies apply in scopes in addition to those that apply to all; None: in any."""
        chosen = self.all_scopes if scopes is None else scopes
        found = (each.source for scope in chosen for each in self._found[scope].values() if _decides(each.policy))
        return list({source.path: source for source in found}.values())

    @property
    def alternatives(self) -> dict[str, None]:
        """The files whose LimitRanges and quotas are alternatives: files of one directory contradict each other.

        Examples and environments stand side by side like that, and no cluster has all of them. A file that was named
        counts in any case.
        """
        if self._alternatives is None:
            self._alternatives = {}
            for scope in self.all_scopes:
                by_namespace: dict[str, list[_Found]] = {}
                for each in filter(_is_namespaced, self._found[scope].values()):
                    by_namespace.setdefault(_metadata(each.policy).namespace, []).append(each)
                for own in by_namespace.values():
                    if _contradict(own):
                        self._alternatives |= dict.fromkeys(each.source.path for each in own)
        return self._alternatives

    def locations(self, scopes: Scopes) -> list[tuple[Source, Place]]:
        """Return where the policies are that apply in scopes."""
        return [(each.source, each.place) for each in self._applying(scopes).values()]

    def defined_in(self, kind: str, name: str) -> str:
        """Return a file that has a class of this name, whatever it applies to; empty if there is none."""
        key = _key(kind, ObjectMeta(name))
        return next((found[key].source.path for found in self._found.values() if key in found), "")

    def problems(self) -> Iterator[Problem]:
        """Yield the problems of the policies together, for each directory that has some."""
        yield from self.cluster(())[1]
        for scope in self.all_scopes:
            yield from self.cluster(self._within(scope))[1]

    def cluster(
        self, scopes: Scopes = (), override_profile: OverrideProfile | None = None
    ) -> tuple[ClusterPolicies, tuple[Problem, ...]]:
        """Return the policies that apply together, and their problems.

        Without a profile, the generation of an override follows from its shape.
        """
        key = scopes, "" if override_profile is None else override_profile.name
        if key in self._clusters:
            return self._clusters[key]
        found = self._applying(scopes)
        alternatives = self.alternatives
        applied = [each for each in found.values() if each.source.path not in alternatives or not _is_namespaced(each)]
        cluster = ClusterPolicies(
            policies=self._policies(applied, override_profile),
            namespaces=tuple(each.policy for each in found.values() if isinstance(each.policy, Namespace)),
            knows_all_namespaces="Namespace" in self._known_kinds,
            known_classes=tuple(sorted(self._known_kinds & {"PriorityClass", "RuntimeClass"})),
            listed_kinds=tuple(sorted(self._listed_kinds)),
            stated_classes=tuple(name for _, _, name in self._stated),
            alternatives=tuple(
                each.policy
                for each in found.values()
                if each.source.path in alternatives and isinstance(each.policy, LimitRange)
            ),
        )
        policies = replace(cluster.policies, limit_ranges=(*cluster.policies.limit_ranges, *cluster.alternatives))
        errors = [error for error in validate_policies(policies) if not error.is_echo]
        located = (self._located(error, found) for error in errors if _key(error.kind, error.metadata) in found)
        self._clusters[key] = cluster, tuple(located)
        return self._clusters[key]

    def _applying(self, scopes: Scopes) -> dict[_Key, _Found]:
        """Return the policies that apply; of several with the same name, the nearest directory's counts."""
        applying: dict[_Key, _Found] = {}
        for scope in (None, *scopes):
            for key, found in self._found.get(scope, {}).items():
                known = applying.get(key)
                applying[key] = (
                    replace(found, policy=_replacing(known.policy, found.policy)) if known is not None else found
                )
        return applying

    def _take(self, source: Source, other: Other, *, is_stored: bool) -> list[Problem]:
        from podqos.manifest.policies import read_policy

        problems: list[Problem] = []
        with source.isolated(other.place, problems):
            read = read_policy(other.kind, other.api_version, source.lookup.plain(other.place))
            problems += [
                source.problem(other.place, finding.path, finding.what, finding.fix) for finding in read.findings
            ]
            if read.policy is not None:
                self._add(source, other, read, problems, is_stored=is_stored)
        return problems

    def _add(
        self, source: Source, other: Other, read: PolicyReading, problems: list[Problem], *, is_stored: bool
    ) -> None:
        assert read.policy is not None
        policy = _in_namespace(read.policy, self._namespace)
        kind = type(policy).__name__
        key = _key_of(policy)
        found = _Found(policy, source, other.place, read.path, is_stored, read.generation)
        if is_stored:
            self._known_kinds.add(kind)
        if key in self._stated and self._stated[key] != policy:
            what = f"{kind} {key[2]} is set on the command line, which takes precedence"
            problems.append(source.problem(other.place, (), what, severity=Severity.WARNING))
        same_scope = self._found.setdefault(source.scope, {})
        first = same_scope.get(key)
        if first is None:
            same_scope[key] = found
        elif is_stored is not first.is_stored:
            stored, applied = (found, first) if is_stored else (first, found)
            same_scope[key] = replace(applied, policy=_replacing(stored.policy, applied.policy))
        elif source.scope is None or policy != first.policy:
            fix = f"remove one; the other is at {first.source.where(first.place)}"
            what = f"{key[0]} {key[2]} is defined twice"
            # Files of one directory may show the same object in two notations.
            severity = self._doubles if source.scope is None else Severity.WARNING
            problems.append(source.problem(other.place, (), what, fix, severity=severity))

    def _policies(self, found: list[_Found], override_profile: OverrideProfile | None) -> Policies:
        stated = [each for each in self._stated.values() if isinstance(each, PriorityClass)]
        runtimes = [each for each in self._stated.values() if isinstance(each, RuntimeClass)]
        keys = self._stated.keys()
        policies = [each.policy for each in found if _key_of(each.policy) not in keys]
        generation = next((each.generation for each in found if each.generation), CURRENT.name)
        given = (*(policy for policy in policies if isinstance(policy, PriorityClass)), *stated)
        names = {priority_class.metadata.name for priority_class in given}
        return Policies(
            limit_ranges=tuple(policy for policy in policies if isinstance(policy, LimitRange)),
            resource_quotas=tuple(policy for policy in policies if isinstance(policy, ResourceQuota)),
            priority_classes=(
                *(priority_class for priority_class in SYSTEM_CLASSES if priority_class.metadata.name not in names),
                *given,
            ),
            runtime_classes=(*(policy for policy in policies if isinstance(policy, RuntimeClass)), *runtimes),
            override=next((policy for policy in policies if isinstance(policy, ClusterResourceOverride)), None),
            override_profile=override_profile or PROFILES[generation],
        )

    @staticmethod
    def _located(error: PolicyError, applying: dict[_Key, _Found]) -> Problem:
        """Give a problem of a policy its place in the file."""
        found = applying[_key(error.kind, error.metadata)]
        if isinstance(error.error, str):
            # The one complaint that is not about a field by itself: a second global default.
            return found.source.problem(found.place, ("globalDefault",), error.error)
        field = (*found.path, *parse_path(error.error.path))
        return found.source.problem(found.place, field, error.error.words)


def _is_namespaced(found: _Found) -> bool:
    return isinstance(found.policy, LimitRange | ResourceQuota)


def _contradict(found: Iterable[_Found]) -> bool:
    """Whether two files contradict each other: different values of a bound, or defaults beyond it."""
    seen: dict[tuple[str, str, str], list[tuple[str, Quantity]]] = {}
    for each in found:
        for kind, side, resource, amount in _stated(each.policy):
            seen.setdefault((kind, side, resource), []).append((each.source.path, amount))
    for (kind, side, resource), own in seen.items():
        for lower, upper in _ORDERED:
            others = seen.get((kind, upper, resource), ()) if side == lower else ()
            if any(path != other and amount > bound for path, amount in own for other, bound in others):
                return True
        if any(path != own[0][0] and amount != own[0][1] for path, amount in own):
            return True
    return False


# What a LimitRange states is in order if none of it is above what follows it.
_ORDERED = (("min", "default_request"), ("min", "default"), ("default", "max"), ("default_request", "max"))


def _stated(policy: Policy) -> Iterator[tuple[str, str, str, Quantity]]:
    """Yield what a policy of a namespace states: of what, which bound or default, of which resource, how much."""
    if isinstance(policy, LimitRange):
        for item in policy.spec.limits:
            for side in ("max", "min", "default", "default_request", "max_limit_request_ratio"):
                amounts: ResourceList = getattr(item, side)
                yield from ((item.type, side, resource, amount) for resource, amount in amounts.items())
    elif isinstance(policy, ResourceQuota) and not policy.spec.scopes and policy.spec.scope_selector is None:
        yield from (("quota", "hard", resource, amount) for resource, amount in policy.spec.hard.items())


def _decides(policy: Policy) -> bool:
    """Whether a policy is more than a namespace, which alone has no effect."""
    return not isinstance(policy, Namespace)


def _in_namespace(policy: Policy, namespace: str) -> Policy:
    if isinstance(policy, LimitRange | ResourceQuota) and not policy.metadata.namespace:
        return replace(policy, metadata=replace(policy.metadata, namespace=namespace))
    return policy


def _replacing(stored: Policy, applied: Policy) -> Policy:
    """Return a policy that replaces one of the same name; a quota keeps its usage."""
    if not isinstance(stored, ResourceQuota) or not isinstance(applied, ResourceQuota):
        return applied
    hard = applied.spec.hard
    used = {name: stored.status.used.get(name, ZERO) for name in hard}
    return replace(applied, status=ResourceQuotaStatus(hard, used))


def _metadata(policy: Policy) -> ObjectMeta:
    return ObjectMeta(OVERRIDE_NAME) if isinstance(policy, ClusterResourceOverride) else policy.metadata


def _key_of(policy: Policy) -> _Key:
    return _key(type(policy).__name__, _metadata(policy))


def _key(kind: str, metadata: ObjectMeta) -> _Key:
    namespace = metadata.namespace if kind in _NAMESPACED else ""
    return kind, namespace, metadata.name or metadata.generate_name
