"""Run all checks over a bundle, in two phases.

``check_workload`` looks at one workload and at what surrounds it. It runs in parallel, and its result can be pickled.
It makes the findings PQ101–PQ112, PQ114–PQ118 (classes and sizes), PQ201–PQ203, PQ205–PQ207 (policies and injectors),
PQ302, PQ304–PQ306 (priority) and PQ504 (larger than any node).

``check_bundle`` looks at what needs several objects: PQ113 (resizes), PQ204 (LimitRanges beside each other), PQ301 and
PQ303 (priorities beside each other), PQ401–PQ413 (kubelets), PQ501–PQ503 (sums against nodes), and for every finding
who dies before whom. ``check`` is both, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.checks.bundle import Bundle, CheckOptions, FoundWorkload, Resize
from podqos.advice.checks.checks_amounts import refused_amounts, suspicious_amounts
from podqos.advice.checks.checks_class import accidental_burstable, best_effort
from podqos.advice.checks.checks_priority import (
    best_effort_with_priority,
    budget,
    compare_priorities,
    system_priority,
    unknown_class,
)
from podqos.advice.checks.checks_sizes import disk_limits, fractional_cpu, memory_amounts, small_sidecar, volumes
from podqos.advice.checks.checks_toleration import comes_back
from podqos.advice.checks.finding import Finding, in_order
from podqos.advice.checks.sketch import Sketch, sketch_of
from podqos.advice.checks.view import Context, Variant, View

# Those that need a pod which the API server takes, with the ids they report. PQ107 asks whether there is a PQ101.
_CHECKS: tuple[tuple[str, Callable[[View], None]], ...] = (
    ("PQ101", accidental_burstable),
    ("PQ102 PQ103 PQ104", best_effort),
    ("PQ105 PQ106 PQ107", memory_amounts),
    ("PQ108", disk_limits),
    ("PQ109 PQ110", volumes),
    ("PQ114", small_sidecar),
    ("PQ115", fractional_cpu),
    ("PQ116 PQ117", suspicious_amounts),
    ("PQ118", comes_back),
    ("PQ302", best_effort_with_priority),
    ("PQ304", system_priority),
    ("PQ305", unknown_class),
    ("PQ306", budget),
)


@cache
def _active(disabled: frozenset[str], *, policies: bool, nodes: bool) -> tuple[Callable[[View], None], ...]:
    """Return the checks of single workloads that can find something; what they need is imported only for them."""
    checks = list(_CHECKS)
    if policies:
        from podqos.advice.checks import checks_policies

        checks.append(("PQ201 PQ202 PQ203 PQ206 PQ207", checks_policies.policies))
        checks.append(("PQ205", checks_policies.injected))
    if nodes:
        from podqos.advice.checks.checks_capacity import larger_than_any_node

        checks.append(("PQ504", larger_than_any_node))
    return tuple(run for ids, run in checks if not disabled.issuperset(ids.split()))


class WorkloadResult(Struct, frozen=True, gc=False):
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
    view = View(found, context, compares=keep_pod)
    if not refused_amounts(view):
        options = context.options
        policies = view.admission is not None or bool(options.inject)
        for run in _active(options.disabled, policies=policies, nodes=bool(context.surroundings.nodes)):
            run(view)
    return WorkloadResult(sketch_of(view), tuple(view.findings), tuple(view.variants))


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
    if any(sketch.pod is not None for sketch in sketches):
        from podqos.advice.checks.comparison import compare

        findings = compare(findings, variants, sketches, context)
    findings = [finding for finding in findings if finding.check not in disabled]
    return in_order(findings)


def _of_several(context: Context, sketches: Sequence[Sketch], resizes: Iterable[Resize]) -> Iterator[Finding]:
    yield from compare_priorities(sketches, context)
    if context.surroundings.cluster is not None:
        from podqos.advice.checks.checks_policies import conflicting_defaults

        yield from conflicting_defaults(context)
    if context.surroundings.kubelets:
        from podqos.advice.checks.checks_kubelet import check_kubelets

        yield from check_kubelets(context, sketches)
    if context.surroundings.nodes:
        from podqos.advice.checks.checks_capacity import check_capacity

        yield from check_capacity(context, sketches)
    for resize in resizes:
        from podqos.advice.checks.checks_resize import class_changing_resize

        yield from class_changing_resize(resize, context)
