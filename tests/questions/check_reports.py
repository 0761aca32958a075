"""A report of ``podqos check`` with everything that makes outputs trip, for the tests of the outputs."""

from __future__ import annotations

from msgspec.structs import replace

from podqos.advice.checks.configuration import FailOn
from podqos.advice.checks.finding import (
    CheckedObject,
    Consequence,
    Effect,
    FieldEdit,
    FindingSeverity,
    Patch,
    SuppressedBy,
    Suppression,
)
from podqos.advice.checks.sizes import NoDiskLimit
from podqos.questions.findings import CheckReport, CheckSummary, FindingReport, verdict

NASTY = "<b>&\"quoted\" 'too' 100% a:b,c\r\nnext %0A ::error:: \x00\x1b[31m ]]> {{x}} é 日本"
"""Markup, escapes, separators, control characters and more than ASCII."""

PLAIN = FindingReport(
    check="PQ101",
    check_name="accidental-burstable",
    severity=FindingSeverity.WARNING,
    title="One container keeps the pod from being Guaranteed",
    kind="Deployment",
    namespace="shop",
    name="web",
    container="proxy",
    source="apps/web.yaml",
    line=12,
    column=9,
    path="spec.template.spec.containers[1].resources",
    reason="proxy has no cpu limit",
    consequence="it is evicted before shop/api",
    facts=NoDiskLimit(containers=("proxy",)),
    effects=Consequence(Effect.ORDER),
    patch=replace(
        Patch.write(FieldEdit("spec.template.spec.containers[1].resources.limits.cpu", "100m")), is_tried=True
    ),
    fingerprint="0123456789abcdef",
    suppression=None,
)
WORSE = replace(
    PLAIN,
    check="PQ111",
    check_name="request-above-limit",
    severity=FindingSeverity.ERROR,
    name=NASTY,
    container=NASTY,
    source=f"apps/sub dir/{NASTY}.yaml",
    path=NASTY,
    reason=NASTY,
    consequence=NASTY,
    patch=replace(PLAIN.patch, text=NASTY),
)
NOTE = replace(
    PLAIN, check="PQ108", check_name="no-ephemeral-storage-limit", severity=FindingSeverity.INFO, container=None
)
SUPPRESSED = replace(PLAIN, container="other", suppression=Suppression(SuppressedBy.ANNOTATION, f"because {NASTY}"))
KNOWN = replace(PLAIN, name="known", suppression=Suppression(SuppressedBy.BASELINE))

REPORT = CheckReport(
    items=(PLAIN, NOTE, SUPPRESSED, KNOWN, WORSE),
    summary=CheckSummary(
        files=2, objects=3, errors=1, warnings=1, infos=1, suppressed=1, in_baseline=1, below_min_severity=2
    ),
    kubernetes_version="1.36",
    fail_on=FailOn.WARNING,
    verdict=verdict((PLAIN, NOTE, WORSE)),
)
CHECKED = (
    CheckedObject("Deployment", "web", "shop", "apps/web.yaml"),
    CheckedObject("Deployment", "known", "shop", "apps/web.yaml"),
    CheckedObject("Node", "node-1", "", "apps/web.yaml"),
    CheckedObject("Deployment", NASTY, "shop", f"apps/sub dir/{NASTY}.yaml"),
)
_NOTHING = CheckSummary(
    files=1, objects=1, errors=0, warnings=0, infos=0, suppressed=0, in_baseline=0, below_min_severity=0
)
EMPTY = CheckReport((), _NOTHING, "1.36", FailOn.WARNING)


def report_of(*items: FindingReport, basis: CheckReport = REPORT) -> CheckReport:
    """Return a report of these findings, with their verdict."""
    return replace(basis, items=items, verdict=verdict(items))
