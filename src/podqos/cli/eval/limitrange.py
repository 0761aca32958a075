"""``podqos eval limitrange``: what LimitRanges fill into a pod, and what they object to."""

from __future__ import annotations

from podqos.admission.defaulting import defaulted
from podqos.admission.limit_range import ANNOTATION, apply_limit_ranges, defaulted_limit_range
from podqos.admission.limit_range_bounds import violations
from podqos.cli.eval.resources import list_of, plain, pod_of, resources_by_name
from podqos.model.policy import LimitRange
from podqos.qos.classes import classify


def evaluate(input: dict[str, object]) -> dict[str, object]:  # noqa: A002 - the word of the interface
    """Answer one line of the family ``limitrange``."""
    limit_ranges = [defaulted_limit_range(limit_range) for limit_range in list_of(LimitRange, input["limitRanges"])]
    before = defaulted(pod_of(input["pod"]))
    pod = apply_limit_ranges(before, limit_ranges)
    validation = [
        {
            "limitRange": limit_range.metadata.name,
            "errors": sorted(str(violation) for violation in violations(pod, limit_range)),
        }
        for limit_range in limit_ranges
    ]
    return {
        "limitRangesAfterDefaulting": [
            {"name": limit_range.metadata.name, "limits": [plain(item) for item in limit_range.spec.limits]}
            for limit_range in limit_ranges
        ],
        "resources": resources_by_name(pod),
        "annotation": pod.metadata.annotations.get(ANNOTATION, ""),
        "validation": validation,
        "allowed": not any(entry["errors"] for entry in validation),
        "qosClassBeforeLimitRange": classify(before).qos_class,
        "qosClass": classify(pod).qos_class,
    }
