"""Findings that an object itself asks to leave alone: the annotation ``podqos.dev/ignore``.

It may stand on the object or on its pod template and names checks by id or by name, with commas between them. They are
still found, and marked; what to do with marked ones is for whoever reports them to say.
"""

from __future__ import annotations

from collections.abc import Mapping

from podqos.advice.checks.catalogue import CHECKS
from podqos.advice.checks.finding import SuppressedBy, Suppression

IGNORE_ANNOTATION = "podqos.dev/ignore"
REASON_ANNOTATION = "podqos.dev/ignore-reason"


def suppression_by(check: str, *annotations: Mapping[str, str]) -> Suppression | None:
    """Return the suppression of a check's findings by the annotations of an object, if there is one."""
    for each in annotations:
        listed = each.get(IGNORE_ANNOTATION)
        if listed is None:
            continue
        names = ignored_names(listed)
        if check in names or CHECKS[check].name in names:
            return Suppression(SuppressedBy.ANNOTATION, each.get(REASON_ANNOTATION, ""))
    return None


def ignored_names(listed: str) -> list[str]:
    """Return what an annotation lists, whether there is such a check or not."""
    return [name.strip() for name in listed.split(",") if name.strip()]
