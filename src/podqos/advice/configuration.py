"""What ``.podqos.yaml`` says, as values; reading the file is the business of ``cli``.

The names and shapes here are those of the file, and its published schema is made from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from podqos.advice.bundle import CheckOptions
from podqos.advice.catalogue import CHECKS
from podqos.advice.finding import Finding, Severity, SuppressedBy, Suppression
from podqos.model.quantity import Quantity

Globs = tuple[str, ...]
"""Patterns with ``*``, ``?`` and ``[…]``; a ``*`` also crosses slashes."""


class FailOn(StrEnum):
    """From which severity on findings make a gate fail."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NEVER = "never"

    def fails(self, severity: Severity) -> bool:
        """Whether a finding of this severity makes it fail."""
        return self is not FailOn.NEVER and severity.rank <= Severity(self.value).rank


class Ignore(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Findings that do not matter here: those that every stated line of it fits."""

    reason: Annotated[str, Meta(min_length=1)]
    """Why. Whoever reads the file in a year wants to know."""
    checks: Globs = ()
    """Ids or names: ``PQ101``, ``PQ4*``, ``accidental-burstable``."""
    objects: Globs = ()
    """``Kind/name``: ``Deployment/web-*``, ``*/log-collector``."""
    namespaces: Globs = ()
    containers: Globs = ()
    paths: Globs = ()
    """Files, from the directory of the configuration file: ``vendor/*``."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing says what to ignore."""
        return not (self.checks or self.objects or self.namespaces or self.containers or self.paths)


class Settings(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What checks go by; everything has a default."""

    memory_ratio: Annotated[float, Meta(ge=1)] | None = None
    """How many times its request a memory limit may be."""
    cpu_budget: Annotated[float, Meta(gt=0)] | None = None
    """What the cpu limits of a node may add up to, in times its allocatable."""
    memory_budget: Annotated[float, Meta(gt=0)] | None = None
    growth_per_second: str | None = None
    """How fast memory is taken when a node runs out of it: ``50Mi``."""
    node_memory: str | None = None
    """Of a node, where the manifests have none: ``64Gi``."""
    important_priority: int | None = None
    """From here on a pod counts as one that must not die."""


class Configuration(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The whole file."""

    min_severity: Severity | None = None
    """Findings below are not reported."""
    fail_on: FailOn | None = None
    """Findings from here on give exit code 1."""
    inject: tuple[str, ...] = ()
    """Injectors that add containers to every pod: istio, linkerd, vault."""
    kubernetes_version: str | None = None
    """Whose rules to use, such as ``1.33``; put it in quotes."""
    baseline: str | None = None
    """The file of known findings, from the directory of this file."""
    policies: tuple[str, ...] = ()
    """Files and directories with policies and nodes, from the directory of this file."""
    disable: tuple[str, ...] = ()
    """Ids or names of checks that are not run."""
    options: Settings = Settings()
    ignore: tuple[Ignore, ...] = ()


def options_of(settings: Settings, options: CheckOptions) -> CheckOptions:
    """Return the options with what the file states; its amounts must have been read before."""
    stated: dict[str, object] = {}
    for name in ("memory_ratio", "cpu_budget", "memory_budget"):
        ratio = getattr(settings, name)
        if ratio is not None:
            stated[name] = Fraction(str(ratio))
    if settings.growth_per_second is not None:
        stated["growth_bytes_per_second"] = Quantity.parse(settings.growth_per_second).value
    if settings.node_memory is not None:
        stated["node_memory_bytes"] = Quantity.parse(settings.node_memory).value
    if settings.important_priority is not None:
        stated["important_priority"] = settings.important_priority
    return replace(options, **stated)


def ignored(finding: Finding, rules: Iterable[Ignore], file: str) -> Suppression | None:
    """Return why the file says that a finding does not matter; ``file`` is where it stands, as ``paths`` write it."""
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
