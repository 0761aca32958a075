"""A check without its rule: id, severity, texts, an example; and how its findings are suppressed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from podqos.advice.checks.finding import (
    CheckedObject,
    Consequence,
    EditValue,
    Effect,
    Fact,
    Finding,
    FindingSeverity,
    Patch,
    SuppressedBy,
    Suppression,
)

IGNORE_ANNOTATION = "podqos.dev/ignore"
"""On an object or its pod template: the checks whose findings are suppressed, by id or name, separated by commas. They
are still found, and marked; the report decides what to do with marked ones."""
REASON_ANNOTATION = "podqos.dev/ignore-reason"


class Example(Struct, frozen=True):
    """Manifests with exactly this finding, and what fixes it: the finding's patch, unless one is stated."""

    text: str
    chosen: Mapping[str, EditValue] = {}
    """What is written into the object of the finding, where its patch leaves a choice."""
    good: str = ""
    """The manifests without the finding, where no edit of that object does it."""
    inject: tuple[str, ...] = ()
    """Injectors that are simulated."""
    replaces: str = ""
    """What runs already and is resized to the first workload of ``text``."""


class CheckIdentity(Struct, frozen=True):
    """A check without its rule."""

    id: str
    name: str
    severity: FindingSeverity
    title: str
    """What is wrong, in a few words."""
    why: str
    """What it does to survival."""
    fix: str
    """How to fix it."""
    example: Example
    effect: Effect = Effect.ORDER
    references: tuple[str, ...] = ()
    """Where upstream the rule can be read."""
    fix_on_request: bool = False
    """Whether what the patch writes is a rule of thumb, or follows from another object's policy: ``--fix`` leaves it
    alone unless the check is named."""

    def finding(
        self,
        subject: CheckedObject,
        path: str,
        facts: Fact,
        patch: Patch,
        annotations: Sequence[Mapping[str, str]] = (),
    ) -> Finding:
        """Return a finding about an object that is not compared with others; ``annotations`` may suppress it."""
        consequence, suppression = Consequence(self.effect), self.suppression(annotations)
        return Finding(self.id, self.severity, subject, path, facts, consequence, patch, suppression=suppression)

    def suppression(self, annotations: Sequence[Mapping[str, str]]) -> Suppression | None:
        """Return the suppression of findings by the annotations of an object, if there is one."""
        for annotation in annotations:
            if IGNORE_ANNOTATION in annotation and {self.id, self.name}.intersection(ignored_names(annotation)):
                return Suppression(SuppressedBy.ANNOTATION, annotation.get(REASON_ANNOTATION, ""))
        return None


def ignored_names(annotations: Mapping[str, str]) -> list[str]:
    """Return what the annotation lists, whether there is such a check or not."""
    return [name.strip() for name in annotations.get(IGNORE_ANNOTATION, "").split(",") if name.strip()]
