"""A check: one rule, with everything that belongs to it in one value.

A module of checks (``classes``, ``sizes``, ``kubelet``, …) holds, check by check: the facts of its findings with their
sentence, the rule, and the ``Check`` that names the rule and adds severity, reasons and an example. ``catalogue`` has
all of them by id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

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

if TYPE_CHECKING:
    from podqos.advice.checks.sketch import Sketch
    from podqos.advice.checks.view import Context, View

IGNORE_ANNOTATION = "podqos.dev/ignore"
"""On an object or its pod template: the checks whose findings are to be left alone, by id or name, with commas between
them. They are still found, and marked; what to do with marked ones is for whoever reports them to say."""
REASON_ANNOTATION = "podqos.dev/ignore-reason"

WorkloadRule: TypeAlias = "Callable[[View], None]"
"""Looks at one workload that the API server takes, and notes findings about it."""
BundleRule: TypeAlias = "Callable[[Context, Sequence[Sketch]], Iterator[Finding]]"
"""Looks at everything together."""


class Example(Struct, frozen=True):
    """Manifests that have exactly this finding, and what takes it away: the finding's patch, unless one is stated."""

    text: str
    chosen: Mapping[str, EditValue] = {}
    """What is written into the object of the finding, where its patch leaves a choice."""
    good: str = ""
    """The manifests without the finding, where no edit of that object does it."""
    inject: tuple[str, ...] = ()
    """Injectors that are simulated."""
    replaces: str = ""
    """What runs already and is resized to the first workload of ``text``."""


class Check(Struct, frozen=True):
    """A rule by which findings are made."""

    id: str
    name: str
    severity: FindingSeverity
    title: str
    """What is wrong, in a few words."""
    why: str
    """What it does to survival."""
    fix: str
    """How to mend it."""
    example: Example
    effect: Effect = Effect.ORDER
    references: tuple[str, ...] = ()
    """Where upstream the rule can be read."""
    rule: WorkloadRule | None = None
    """Several checks may share one rule."""
    bundle_rule: BundleRule | None = None

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
        for each in annotations:
            if IGNORE_ANNOTATION in each and {self.id, self.name}.intersection(ignored_names(each)):
                return Suppression(SuppressedBy.ANNOTATION, each.get(REASON_ANNOTATION, ""))
        return None


def ignored_names(annotations: Mapping[str, str]) -> list[str]:
    """Return what the annotation lists, whether there is such a check or not."""
    return [name.strip() for name in annotations.get(IGNORE_ANNOTATION, "").split(",") if name.strip()]
