"""The contents of ``.podqos.yaml``; reading the file is up to ``library.checking``.

The names and shapes here are those of the file, and its published schema is made from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.catalogue import CHECKS
from podqos.advice.checks.finding import FailOn, Finding, FindingSeverity, SuppressedBy, Suppression
from podqos.model.quantity import Quantity
from podqos.policy.model import Globs, Policy, PolicySpec, policy_of, says


class Ignore(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Findings to ignore: those that match every field given."""

    reason: Annotated[str, Meta(min_length=1, description="the reason, for whoever reads this file in a year")]
    checks: Annotated[Globs, says("ids or names: PQ101, PQ4*, accidental-burstable")] = ()
    objects: Annotated[Globs, says("Kind/name: Deployment/web-*, */log-collector")] = ()
    namespaces: Annotated[Globs, says("namespaces: sandbox-*")] = ()
    containers: Annotated[Globs, says("names of containers: istio-proxy")] = ()
    paths: Annotated[Globs, says("files, relative to the configuration file: vendor/*")] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing says what to ignore."""
        return not (self.checks or self.objects or self.namespaces or self.containers or self.paths)


class StatedOptions(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Settings of the checks; everything has a default."""

    memory_ratio: Annotated[
        Annotated[float, Meta(ge=1)] | None, says("the largest allowed ratio of memory limit to request")
    ] = None
    growth_per_second: Annotated[str | None, says("how fast memory grows per second when a node runs out: 50Mi")] = None
    node_memory: Annotated[str | None, says("node memory, if the manifests contain no Node: 64Gi")] = None
    important_priority: Annotated[int | None, says("pods with this priority or higher are important")] = None


class Configuration(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The whole file."""

    min_severity: Annotated[FindingSeverity | None, says("findings below this severity are hidden")] = None
    fail_on: Annotated[FailOn | None, says("findings of this severity or above give exit code 1")] = None
    inject: Annotated[tuple[str, ...], says("injectors that add containers to every pod: istio, linkerd, vault")] = ()
    kubernetes_version: Annotated[str | None, says('the Kubernetes version whose rules apply, in quotes: "1.33"')] = (
        None
    )
    baseline: Annotated[str | None, says("the baseline file of known findings, relative to this file")] = None
    policies: Annotated[
        tuple[str, ...],
        says("files and directories with Kubernetes and podqos policies and Nodes, relative to this file"),
    ] = ()
    policy: Annotated[
        PolicySpec | None,
        says("requirements for pods, written like a Policy's spec (docs/reference/commands/policy.md)"),
    ] = None
    disable: Annotated[tuple[str, ...], says("ids or names of checks to skip")] = ()
    options: Annotated[StatedOptions, says("settings for the checks")] = StatedOptions()
    ignore: Annotated[tuple[Ignore, ...], says("findings to suppress")] = ()
    kinds: Annotated[
        dict[str, str],
        says("custom resources that hold pods, each with the path to its pod template: {Widget: spec.podTemplate}"),
    ] = {}


def options_of(settings: StatedOptions, options: CheckOptions) -> CheckOptions:
    """Return the options with what the file states; its amounts must have been read before."""
    stated: dict[str, object] = {}
    if settings.memory_ratio is not None:
        stated["memory_ratio"] = Fraction(str(settings.memory_ratio))
    if settings.growth_per_second is not None:
        stated["growth_bytes_per_second"] = Quantity.parse(settings.growth_per_second).value
    if settings.node_memory is not None:
        stated["node_memory_bytes"] = Quantity.parse(settings.node_memory).value
    if settings.important_priority is not None:
        stated["important_priority"] = settings.important_priority
    return replace(options, **stated)


def demands_of(configuration: Configuration, file: str) -> tuple[Policy, ...]:
    """Return the policy that the file itself holds, by the file's name."""
    return () if configuration.policy is None else (policy_of(file, configuration.policy),)


def ignored(finding: Finding, rules: Iterable[Ignore], file: str) -> Suppression | None:
    """Return why the file ignores a finding; ``file`` is where it stands, as ``paths`` write it."""
    for rule in rules:
        if _fits(rule, finding, file):
            return Suppression(SuppressedBy.CONFIGURATION, rule.reason)
    return None


def _fits(rule: Ignore, finding: Finding, file: str) -> bool:
    subject = finding.subject
    check = CHECKS.get(finding.check)
    stated = (
        (rule.checks, (finding.check, check.name if check else "")),
        (rule.objects, (f"{subject.kind}/{subject.name}",)),
        (rule.namespaces, (subject.namespace,)),
        (rule.containers, (finding.container or "",)),
        (rule.paths, (file,)),
    )
    return not rule.is_empty and all(
        any(fnmatchcase(text, glob) for glob in globs for text in texts) for globs, texts in stated if globs
    )
