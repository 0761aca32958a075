"""The policies among the files of a command: read, checked, and put together into a cluster.

Everything wrong becomes a problem with its place. Whether to go on in spite of one is for the command to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.policies import OVERRIDE_NAME, Cluster, Policies, PolicyError, validate_policies
from podqos.admission.priority import SYSTEM_CLASSES
from podqos.admission.resource_override import CURRENT, PROFILES, OverrideProfile
from podqos.library.inputs.sources import Source
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
from podqos.model.quantity import ZERO

if TYPE_CHECKING:
    from podqos.manifest.policies import Policy

_Key = tuple[str, str, str]
"""Kind, namespace and name."""
_NAMESPACED = ("LimitRange", "ResourceQuota")


class _Found(Struct, frozen=True):
    """A policy and where it stands."""

    policy: Policy
    source: Source
    place: Place
    path: FieldPath
    is_stored: bool
    """Whether the cluster has it already."""
    generation: str
    """Of an override: the profile whose shape it has."""


class PolicyCollector:
    """Policies in the making; ``namespace`` is that of objects which name none.

    ``doubles`` is how bad it is that a policy is given twice; the first counts.
    """

    def __init__(self, namespace: str, *, doubles: Severity = Severity.ERROR) -> None:
        self.problems: list[Problem] = []
        self._namespace = namespace
        self._doubles = doubles
        self._found: dict[_Key, _Found] = {}
        self._knows_all_namespaces = False

    def take(self, source: Source, *, are_stored: bool = False) -> int:
        """Take in the policies of a file, and return how many there are.

        Policies that are to be applied replace what the cluster has stored under the same name. And if it has stored
        namespaces, it has no others.
        """
        policies = [other for other in source.reading.others if is_policy(other.kind, other.api_version)]
        for other in policies:
            self._take(source, other, is_stored=are_stored)
        return len(policies)

    def policies(self) -> list[Policy]:
        """Return all of them, in the order in which they were found."""
        return [each.policy for each in self._found.values()]

    def cluster(self, override_profile: OverrideProfile | None = None) -> Cluster:
        """Return the policies together, and note what is wrong with them.

        Without a profile, the shape of an override tells of which generation it is.
        """
        cluster = Cluster(
            policies=self._policies(override_profile),
            namespaces=tuple(each.policy for each in self._found.values() if isinstance(each.policy, Namespace)),
            knows_all_namespaces=self._knows_all_namespaces,
        )
        self.problems += [self._located(error) for error in validate_policies(cluster.policies) if not error.is_echo]
        return cluster

    def _take(self, source: Source, other: Other, *, is_stored: bool) -> None:
        from podqos.manifest.policies import read_policy

        read = read_policy(other.kind, other.api_version, source.lookup.plain(other.place))
        self.problems += [
            source.problem(other.place, finding.path, finding.what, finding.fix) for finding in read.findings
        ]
        if read.policy is None:
            return
        policy = _in_namespace(read.policy, self._namespace)
        key = _key(type(policy).__name__, _metadata(policy))
        found = _Found(policy, source, other.place, read.path, is_stored, read.generation)
        first = self._found.get(key)
        self._knows_all_namespaces |= is_stored and isinstance(policy, Namespace)
        if first is None:
            self._found[key] = found
        elif is_stored is not first.is_stored:
            stored, applied = (found, first) if is_stored else (first, found)
            self._found[key] = replace(applied, policy=_replacing(stored.policy, applied.policy))
        else:
            line, column = first.source.lookup.locate(first.place, ())
            fix = f"remove one; the other is {first.source.path}:{line}:{column}"
            what = f"{key[0]} {key[2]} is given twice"
            self.problems.append(source.problem(other.place, (), what, fix, severity=self._doubles))

    def _policies(self, override_profile: OverrideProfile | None) -> Policies:
        policies = self.policies()
        generation = next((each.generation for each in self._found.values() if each.generation), CURRENT.name)
        given = tuple(each for each in policies if isinstance(each, PriorityClass))
        names = {each.metadata.name for each in given}
        return Policies(
            limit_ranges=tuple(each for each in policies if isinstance(each, LimitRange)),
            resource_quotas=tuple(each for each in policies if isinstance(each, ResourceQuota)),
            priority_classes=(*(each for each in SYSTEM_CLASSES if each.metadata.name not in names), *given),
            runtime_classes=tuple(each for each in policies if isinstance(each, RuntimeClass)),
            override=next((each for each in policies if isinstance(each, ClusterResourceOverride)), None),
            override_profile=override_profile or PROFILES[generation],
        )

    def _located(self, error: PolicyError) -> Problem:
        """Give a complaint about a policy its place in the file."""
        found = self._found[_key(error.kind, error.metadata)]
        if isinstance(error.error, str):
            # The one complaint that is not about a field by itself: a second global default.
            return found.source.problem(found.place, ("globalDefault",), error.error)
        field = (*found.path, *parse_path(error.error.path))
        return found.source.problem(found.place, field, error.error.words)


def _in_namespace(policy: Policy, namespace: str) -> Policy:
    if isinstance(policy, LimitRange | ResourceQuota) and not policy.metadata.namespace:
        return replace(policy, metadata=replace(policy.metadata, namespace=namespace))
    return policy


def _replacing(stored: Policy, applied: Policy) -> Policy:
    """Return a policy that takes the place of one of the same name; what a quota has counted stays counted."""
    if not isinstance(stored, ResourceQuota) or not isinstance(applied, ResourceQuota):
        return applied
    hard = applied.spec.hard
    used = {name: stored.status.used.get(name, ZERO) for name in hard}
    return replace(applied, status=ResourceQuotaStatus(hard, used))


def _metadata(policy: Policy) -> ObjectMeta:
    return ObjectMeta(OVERRIDE_NAME) if isinstance(policy, ClusterResourceOverride) else policy.metadata


def _key(kind: str, metadata: ObjectMeta) -> _Key:
    namespace = metadata.namespace if kind in _NAMESPACED else ""
    return kind, namespace, metadata.name or metadata.generate_name
