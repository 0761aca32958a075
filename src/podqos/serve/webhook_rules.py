"""The rules of a webhook: policies and objects from files and, with a live cluster, what it watches."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.policies import ClusterPolicies, Policies
from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.finding import FailOn
from podqos.advice.reviewing import Reviewer
from podqos.cluster import resources
from podqos.cluster.cluster import Cluster as LiveCluster
from podqos.cluster.following import FollowedKind, Follower, Say
from podqos.errors import InputError, InvalidArgument, PodqosError
from podqos.manifest.problems import Severity
from podqos.model.assumption import Assumption
from podqos.model.profile import LATEST, Profile, parse_version
from podqos.naming import naming, stated_with
from podqos.policy.model import Policy
from podqos.reading.loading import load


class Rules(Struct, frozen=True):
    """The rules in files: podqos policies, and the cluster objects that affect pods."""

    policies: tuple[Policy, ...]
    cluster: ClusterPolicies


def read_rules(paths: Sequence[str]) -> Rules:
    """Read files and directories; raises InputError with the first error."""
    objects = load(policies=paths)
    objects.check_policies()
    policies = tuple(policy.policy for policy in objects.own_policies)
    errors = [problem for problem in objects.problems if problem.severity is Severity.ERROR]
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise InputError(f"{str(errors[0]).replace(f': {Severity.ERROR}: ', ': ', 1)}{more}")
    if paths and not policies and not objects.has_policies:
        fix = "add a Policy, or leave out " + naming("policy") + " to report findings only"
        raise InputError("no policy in these files", where=", ".join(paths), fix=fix)
    return Rules(policies, objects.cluster())


def reviewer_of(rules: Rules, live: ClusterPolicies | None, options: CheckOptions, warn_on: FailOn) -> Reviewer:
    """Return the reviewer. Cluster objects in the files are added to the watched ones."""
    return Reviewer(
        rules.policies, rules.cluster if live is None else _together(rules.cluster, live), options, warn_on=warn_on
    )


def _together(files: ClusterPolicies, live: ClusterPolicies) -> ClusterPolicies:
    """Return the live cluster, with the override of the files: overrides are not watched."""
    policies = replace(
        live.policies, override=files.policies.override, override_profile=files.policies.override_profile
    )
    return replace(live, policies=policies)


def assumptions(rules: Rules, live: ClusterPolicies | None) -> tuple[Assumption, ...]:
    """Return the assumptions behind decisions."""
    if live is not None:
        return ()
    found = []
    if any(_asks_for_namespaces(policy) for policy in rules.policies):
        known = {namespace.metadata.name for namespace in rules.cluster.namespaces}
        what = f"labels of namespaces{' not in the files' if known else ''}"
        found.append(
            Assumption(
                what,
                "none but kubernetes.io/metadata.name",
                f"{stated_with('watch')}, or Namespaces in {stated_with('policy')}",
            )
        )
    if not rules.cluster.policies.limit_ranges:
        found.append(
            Assumption(
                "LimitRanges, for the pods of templates",
                "none",
                f"{stated_with('watch')}, or LimitRanges in {stated_with('policy')}",
            )
        )
    return tuple(found)


def _asks_for_namespaces(policy: Policy) -> bool:
    spec = policy.spec
    return any(rule.match.namespace_selector is not None or rule.require.class_label for rule in spec.rules) or any(
        exemption.namespace_selector is not None for exemption in spec.exemptions
    )


class Watched:
    """The objects of a live cluster that affect pods, kept up to date by a watch."""

    def __init__(self, cluster: LiveCluster, say: Say) -> None:
        self._cluster = cluster
        self._say = say
        self._namespaces = FollowedKind(resources.NAMESPACES)
        self._limit_ranges = FollowedKind(resources.LIMIT_RANGES)
        self._priority_classes = FollowedKind(resources.PRIORITY_CLASSES)
        self._runtime_classes = FollowedKind(resources.RUNTIME_CLASSES)
        self._kinds = (self._namespaces, self._limit_ranges, self._priority_classes, self._runtime_classes)
        self._follower = Follower(self._kinds, say=say, on_end=self._ended)

    def start(self) -> None:
        """Start watching; ``is_complete`` once everything has been received."""
        self._follower.start(self._cluster)

    def profile(self) -> Profile:
        """Return the rules of the server's version; the latest recorded ones if it is unknown."""
        try:
            return parse_version(self._cluster.version().git_version)
        except InvalidArgument:
            return LATEST

    @property
    def is_complete(self) -> bool:
        """Whether all existing objects have been received."""
        return self._follower.is_complete

    @property
    def changes(self) -> int:
        """The number of changes received so far."""
        return self._follower.changes

    def cluster(self) -> ClusterPolicies:
        """Return the current state. A namespace that is not known yet is assumed to exist."""
        with self._follower.lock:
            policies = Policies(
                limit_ranges=tuple(self._limit_ranges.objects.values()),
                priority_classes=tuple(self._priority_classes.objects.values()),
                runtime_classes=tuple(self._runtime_classes.objects.values()),
            )
            return ClusterPolicies(policies, tuple(self._namespaces.objects.values()))

    def _ended(self, kind: FollowedKind, why: PodqosError) -> None:
        self._say(f"continuing without {kind.resource.plural}: {why}")
        kind.is_complete = True
