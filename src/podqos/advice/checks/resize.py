"""PQ113: a resize that would change the class, which the API server refuses."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from podqos.admission.defaulting import defaulted
from podqos.advice.checks.bundle import Resize
from podqos.advice.checks.facts import ClassChange
from podqos.advice.checks.finding import Choice, Finding, Patch
from podqos.advice.checks.view import Context, View
from podqos.model.pod import PodStatus
from podqos.qos.classes import classify
from podqos.qos.oom import pod_qos_class


def class_changing_resize(resize: Resize, context: Context) -> Iterator[Finding]:
    """Yield the finding about a resize, if there is one. What else a resize must not do is for ``admission`` to say."""
    profile = context.options.profile
    old = defaulted(resize.old)
    before = pod_qos_class(old, classify(old, profile).qos_class)
    view = View(resize.new, context)
    after = classify(replace(view.defaulted, status=PodStatus()), profile).qos_class
    if before is after:
        return
    paths = tuple(f"{view.prefix}spec.containers[{index}].resources" for index in range(len(view.pod.spec.containers)))
    view.report(
        "PQ113",
        "spec.containers[0].resources",
        ClassChange(before, after),
        Patch(needs_choice=Choice.RESOURCES, paths=paths),
    )
    yield from view.findings
