"""Run all checks over a bundle, in two phases.

``check_workload`` looks at one workload and what surrounds it; it can run in parallel, and its result can be pickled.
``check_bundle`` looks at what needs all of them: priorities beside each other, sums against nodes, and who dies before
whom. ``check`` is both, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from podqos.advice.bundle import Bundle, CheckOptions, FoundWorkload, Surroundings
from podqos.advice.finding import Finding


class WorkloadResult(Struct, frozen=True):
    """What became of one workload in the first phase."""

    findings: tuple[Finding, ...] = ()


def check(bundle: Bundle, options: CheckOptions | None = None) -> tuple[Finding, ...]:
    """Return everything that is found, in the order of ``Finding.order``."""
    options = options or CheckOptions()
    results = [check_workload(found, bundle.surroundings, options) for found in bundle.workloads]
    return check_bundle(results, bundle, options)


def check_workload(found: FoundWorkload, surroundings: Surroundings, options: CheckOptions) -> WorkloadResult:
    """Return what can be said about one workload alone."""
    del found, surroundings, options
    return WorkloadResult()


def check_bundle(results: Sequence[WorkloadResult], bundle: Bundle, options: CheckOptions) -> tuple[Finding, ...]:
    """Return all findings, those of the first phase included."""
    del bundle, options
    return tuple(finding for result in results for finding in result.findings)
