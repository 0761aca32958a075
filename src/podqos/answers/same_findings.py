"""Findings that say the same, reported once: of copies of a workload, and of several workloads at one place.

A copy is a workload of the same kind, namespace and name whose pods are the same but for their images, in another file:
a base and what was rendered from it, an installation in one file and in many, releases side by side. Versions that
differ in anything else are different workloads, each judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.checks.bundle import LocatedWorkload
from podqos.advice.checks.finding import CheckedObject, Finding
from podqos.model.pod import PodSpec


class Gathered(Struct, frozen=True, gc=False):
    """A finding, and those that say the same."""

    finding: Finding
    also: list[Finding]


def copies(workloads: Iterable[LocatedWorkload]) -> dict[CheckedObject, CheckedObject]:
    """Return the workloads that are copies, each with the one it is a copy of, which comes first."""
    named: dict[tuple[str, str], list[LocatedWorkload]] = {}
    for workload in workloads:
        if not workload.workload.is_live:
            named.setdefault((workload.subject.kind, workload.subject.key), []).append(workload)
    found: dict[CheckedObject, CheckedObject] = {}
    for versions in named.values():
        different: list[LocatedWorkload] = []
        for version in versions if len(versions) > 1 else ():
            first = next((other for other in different if _is_copy(version, other)), None)
            if first is None:
                different.append(version)
            else:
                found[version.subject] = first.subject
    return found


def _is_copy(one: LocatedWorkload, other: LocatedWorkload) -> bool:
    own, others = one.workload, other.workload
    is_elsewhere = one.subject.source != other.subject.source
    return is_elsewhere and own.replicas == others.replicas and _same(own.pod.spec, others.pod.spec)


def _same(one: PodSpec, other: PodSpec) -> bool:
    return one == other or _without_images(one) == _without_images(other)


def _without_images(spec: PodSpec) -> PodSpec:
    containers, init_containers = (
        tuple(replace(container, image="", image_pull_policy=None) for container in group)
        for group in (spec.containers, spec.init_containers)
    )
    return replace(spec, containers=containers, init_containers=init_containers)


def gathered(
    findings: Iterable[Finding],
    copied_from: Mapping[CheckedObject, CheckedObject],
    is_live: Callable[[str], bool],
) -> list[Gathered]:
    """Return the findings in their order, each with later ones that say the same; ``is_live`` of a source."""
    kept: list[Gathered] = []
    by_place: dict[tuple[object, ...], list[Gathered]] = {}
    for finding in findings:
        first = copied_from.get(finding.subject, finding.subject) if copied_from else finding.subject
        where: tuple[object, ...] = (first.kind, first.key)
        if first.place is not None and not is_live(first.source):
            where = first.position
        place = (finding.check, finding.severity, finding.suppression, first.source, where, finding.path)
        alike = by_place.setdefault(place, [])
        same = next((other for other in alike if other.finding.facts == finding.facts), None)
        if same is None:
            same = Gathered(finding, [])
            alike.append(same)
            kept.append(same)
        else:
            same.also.append(finding)
    return kept
