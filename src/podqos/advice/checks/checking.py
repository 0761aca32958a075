"""Run all checks over a bundle, in two phases.

``check_workload`` looks at one workload and at what surrounds it, by the ``rule`` of every check. It runs in parallel,
and its result can be pickled. ``check_bundle`` looks at what needs several objects, by every ``bundle_rule``, and works
out the effect of each finding on the kill orders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.checks.amounts import find_wrong_defaults, implausible_amount, refused_amounts
from podqos.advice.checks.bundle import CheckOptions, LocatedWorkload
from podqos.advice.checks.capacity import sums
from podqos.advice.checks.catalogue import CHECKS
from podqos.advice.checks.check import BundleRule, WorkloadRule
from podqos.advice.checks.databases import TOLD_BY, burstable_among_guaranteed, find_burstable_among_guaranteed
from podqos.advice.checks.demands import find_over_budget
from podqos.advice.checks.finding import Finding, in_order
from podqos.advice.checks.kubelet import kubelets
from podqos.advice.checks.policies import find_conflicting_defaults
from podqos.advice.checks.priority import compare_priorities
from podqos.advice.checks.rejected import rejections
from podqos.advice.checks.scaling import find_unplaceable_replicas
from podqos.advice.checks.sketch import Sketch, sketch_of
from podqos.advice.checks.trying import tries_of_each, with_tried_fixes
from podqos.advice.checks.view import CheckContext, Variant, View
from podqos.manifest.runtime_memory import Written


@cache
def _rules(disabled: frozenset[str], only: frozenset[str]) -> tuple[tuple[WorkloadRule, ...], tuple[BundleRule, ...]]:
    """Return the rules that can find something, each once. In the order of ids: PQ107 asks whether there is a PQ101."""
    enabled = [check for check in CHECKS.values() if check.id not in disabled and (not only or check.id in only)]
    of_workloads = dict.fromkeys(check.rule for check in enabled if check.rule is not None)
    of_bundles = dict.fromkeys(check.bundle_rule for check in enabled if check.bundle_rule is not None)
    if implausible_amount in enabled:
        of_bundles[kubelets] = None  # which look at units, too
    return tuple(of_workloads), tuple(of_bundles)


# Rules that hold workloads, or the policies they are under, against each other.
_WITHIN_UNITS = (
    compare_priorities,
    find_burstable_among_guaranteed,
    find_conflicting_defaults,
    find_wrong_defaults,
)
# Rules that hold workloads against the nodes they may run on.
_WITHIN_CLUSTERS = (sums, find_unplaceable_replicas, find_over_budget)


class CheckedWorkload(Struct, frozen=True, gc=False):
    """What became of one workload in the first phase."""

    sketch: Sketch
    findings: tuple[Finding, ...] = ()
    variants: tuple[Variant, ...] = ()
    """Pods that findings compare with others; only where pods are compared."""


def check_workload(
    found: LocatedWorkload,
    context: CheckContext,
    *,
    keep_pod: bool,
    written: Written | None = None,
    tries: int | None = None,
) -> CheckedWorkload:
    """Return what can be said about one workload; ``keep_pod`` where it is to be compared with others.

    ``written`` is the whole object, where its commands and environments may say something; ``tries`` says how many of
    its fixes are tried: see ``trying``.
    """
    view = View(found, context, compares=keep_pod, written=written)
    findings = with_tried_fixes(
        view, findings_about(view), findings_about, tries_of_each(1) if tries is None else tries
    )
    return CheckedWorkload(sketch_of(view), findings, tuple(view.variants))


def findings_about(view: View) -> tuple[Finding, ...]:
    """Return what is found by looking at one workload alone."""
    if refused_amounts(view):
        rejections(view)
    else:
        for rule in _rules(view.options.disabled, view.options.only)[0]:
            rule(view)
    return tuple(view.findings)


def check_bundle(
    results: Sequence[CheckedWorkload], context: CheckContext, context_of: Callable[[str], CheckContext] | None = None
) -> tuple[Finding, ...]:
    """Return all findings, those of the first phase included. Without kept pods no workloads are compared.

    ``context_of`` gives the context of a file's objects, where policies do not apply to all files.
    """
    sketches = [result.sketch for result in results]
    findings: list[Finding] = []
    variants: list[Variant] = []
    for result in results:
        variants += [replace(variant, finding=len(findings) + variant.finding) for variant in result.variants]
        findings += result.findings
    options = context.options
    units = _units(sketches, context, context_of)
    clusters = _clusters(sketches, context, context_of)
    for rule in _rules(options.disabled, options.only)[1]:
        if rule in _WITHIN_UNITS or rule in _WITHIN_CLUSTERS:
            groups = units if rule in _WITHIN_UNITS else clusters
            found = (finding for own, within in groups for finding in rule(own, within))
            # Two directories may be under the same policies.
            findings += {
                (finding.check, finding.subject, finding.path, finding.facts): finding for finding in found
            }.values()
        else:
            findings += rule(context, sketches)
    findings = _without_repetition(findings, variants)
    if any(sketch.pod is not None for sketch in sketches):
        from podqos.advice.checks.comparison import compare

        findings = compare(findings, variants, sketches, context)
    return in_order(_as_applied(finding, options) for finding in findings if options.runs(finding.check))


def _without_repetition(findings: list[Finding], variants: Sequence[Variant]) -> list[Finding]:
    """Return the findings without what another check says of the same workload; variants count only what was before."""
    told = {finding.subject for finding in findings if finding.check in TOLD_BY and finding.suppression is None}
    kept = [
        finding for finding in findings if finding.check != burstable_among_guaranteed.id or finding.subject not in told
    ]
    assert all(kept[variant.finding] is findings[variant.finding] for variant in variants)
    return kept


def _as_applied(finding: Finding, options: CheckOptions) -> Finding:
    """Return a finding whose patch says whether it is left alone until its check is named."""
    patch = finding.patch
    on_request = finding.check not in options.only and (patch.on_request or CHECKS[finding.check].fix_on_request)
    if not patch.is_complete or patch.on_request == on_request:
        return finding
    return replace(finding, patch=replace(patch, on_request=on_request))


def _units(
    sketches: Sequence[Sketch], context: CheckContext, context_of: Callable[[str], CheckContext] | None
) -> list[tuple[CheckContext, list[Sketch]]]:
    """Return what belongs together, each with its context: a directory, or all files that were named."""
    if context_of is None:
        return [(context, list(sketches))]
    units: dict[str, tuple[CheckContext, list[Sketch]]] = {}
    for source, unit in context.units.items():
        units.setdefault(unit, (context_of(source), []))
    for sketch in sketches:
        units[context.units[sketch.subject.source]][1].append(sketch)
    return list(units.values())


def _clusters(
    sketches: Sequence[Sketch], context: CheckContext, context_of: Callable[[str], CheckContext] | None
) -> list[tuple[CheckContext, list[Sketch]]]:
    """Return the workloads that may run on the same nodes, each group with its context."""
    if context_of is None:
        return [(context, list(sketches))]
    by_context: dict[int, tuple[CheckContext, list[Sketch]]] = {}
    for sketch in sketches:
        own = context_of(sketch.subject.source)
        by_context.setdefault(id(own), (own, []))[1].append(sketch)
    clusters: dict[tuple[int, ...], tuple[CheckContext, list[Sketch]]] = {}
    for own, group in by_context.values():
        clusters.setdefault(tuple(map(id, own.surroundings.nodes)), (own, []))[1].extend(group)
    return list(clusters.values())
