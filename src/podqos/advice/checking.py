"""Run all checks over a bundle, in two phases.

``check_workload`` looks at one workload and at what surrounds it. It runs in parallel, and its result can be pickled.
It makes the findings PQ101–PQ112, PQ114–PQ117 (classes and sizes), PQ201–PQ203, PQ205–PQ207 (policies and injectors),
PQ302, PQ304–PQ306 (priority) and PQ504 (larger than any node).

``check_bundle`` looks at what needs several objects: PQ113 (resizes), PQ204 (LimitRanges beside each other), PQ301 and
PQ303 (priorities beside each other), PQ401–PQ413 (kubelets), PQ501–PQ503 (sums against nodes), and for every finding
who dies before whom. ``check`` is both, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.bundle import Bundle, CheckOptions, FoundWorkload, Resize
from podqos.advice.checks_amounts import refused_amounts, suspicious_amounts
from podqos.advice.checks_capacity import check_capacity, larger_than_any_node
from podqos.advice.checks_class import accidental_burstable, best_effort
from podqos.advice.checks_kubelet import check_kubelets
from podqos.advice.checks_policies import conflicting_defaults, injected, policies
from podqos.advice.checks_priority import (
    best_effort_with_priority,
    budget,
    compare_priorities,
    system_priority,
    unknown_class,
)
from podqos.advice.checks_resize import class_changing_resize
from podqos.advice.checks_sizes import disk_limits, fractional_cpu, memory_amounts, small_sidecar, volumes
from podqos.advice.comparison import compare
from podqos.advice.finding import Finding
from podqos.advice.sketch import Sketch, sketch_of
from podqos.advice.view import Context, Variant, View

# Those that need a pod which the API server takes, in the order of their ids but for PQ101, which others ask about.
_CHECKS: tuple[Callable[[View], None], ...] = (
    accidental_burstable,
    best_effort,
    memory_amounts,
    disk_limits,
    volumes,
    small_sidecar,
    fractional_cpu,
    suspicious_amounts,
    policies,
    injected,
    best_effort_with_priority,
    system_priority,
    unknown_class,
    budget,
    larger_than_any_node,
)


class WorkloadResult(Struct, frozen=True):
    """What became of one workload in the first phase."""

    sketch: Sketch
    findings: tuple[Finding, ...] = ()
    variants: tuple[Variant, ...] = ()
    """Pods that findings compare with others; only where pods are compared."""


def check(bundle: Bundle, options: CheckOptions | None = None) -> tuple[Finding, ...]:
    """Return everything that is found, in the order of ``Finding.order``."""
    options = options or CheckOptions()
    context = Context(bundle.surroundings, options)
    keep_pods = len(bundle.workloads) <= options.compare_up_to
    results = [check_workload(found, context, keep_pod=keep_pods) for found in bundle.workloads]
    return check_bundle(results, context, bundle.resizes)


def check_workload(found: FoundWorkload, context: Context, *, keep_pod: bool) -> WorkloadResult:
    """Return what can be said about one workload; ``keep_pod`` where it is to be compared with others."""
    view = View(found, context)
    if not refused_amounts(view):
        for run in _CHECKS:
            run(view)
    variants = tuple(view.variants) if keep_pod else ()
    return WorkloadResult(sketch_of(view, keep_pod=keep_pod), tuple(view.findings), variants)


def check_bundle(
    results: Sequence[WorkloadResult], context: Context, resizes: Iterable[Resize] = ()
) -> tuple[Finding, ...]:
    """Return all findings, those of the first phase included. Without kept pods nobody is compared with anybody."""
    sketches = [result.sketch for result in results]
    findings: list[Finding] = []
    variants: list[Variant] = []
    for result in results:
        variants += [replace(each, finding=len(findings) + each.finding) for each in result.variants]
        findings += result.findings
    findings += _of_several(context, sketches, resizes)
    disabled = context.options.disabled
    if sketches and all(sketch.pod is not None for sketch in sketches):
        findings = compare(findings, variants, sketches, context)
    findings = [finding for finding in findings if finding.check not in disabled]
    return tuple(sorted(findings, key=lambda finding: finding.order))


def _of_several(context: Context, sketches: Sequence[Sketch], resizes: Iterable[Resize]) -> Iterator[Finding]:
    yield from conflicting_defaults(context)
    yield from compare_priorities(sketches, context)
    yield from check_kubelets(context, sketches)
    yield from check_capacity(context, sketches)
    for resize in resizes:
        yield from class_changing_resize(resize, context)
