"""PQ113: a resize that would change the class, which the API server rejects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from podqos.admission.defaulting import defaulted
from podqos.advice.checks import examples
from podqos.advice.checks.check import ERROR, bundle_check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.finding import Choice, Effect, Fact, Finding
from podqos.advice.checks.references import VALIDATION
from podqos.advice.checks.sketch import Sketch
from podqos.advice.checks.view import CheckContext, View
from podqos.model.pod import PodStatus, QOSClass
from podqos.qos.classes import classify, qos_class_of
from podqos.wording import listed, verb


class ClassChange(Fact, frozen=True, gc=False):
    """A class that is not the one its manifest shows."""

    before: QOSClass
    after: QOSClass
    sources: tuple[str, ...] = ()
    """LimitRanges or the injector that did it."""
    containers: tuple[str, ...] = ()
    """Those that were filled in or added."""

    def sentence(self, _: str) -> str:
        """Return both classes, and what did it."""
        classes = f"{self.before} becomes {self.after}"
        if not self.sources:
            return classes
        who = listed(self.sources)
        return f"{classes} by {who}, through {listed(self.containers)}" if self.containers else f"{classes} by {who}"

    def cause(self) -> str:
        """Return who did it."""
        return f"{listed(self.sources)} {verb(self.sources, 'changes', 'change')} its class" if self.sources else ""


def class_changing_resizes(context: CheckContext, _: Sequence[Sketch]) -> Iterator[Finding]:
    """Yield the resizes that change the class. What else a resize must not do is for ``admission`` to say."""
    profile = context.options.profile
    for resize in context.resizes:
        old = defaulted(resize.old, profile)
        before = qos_class_of(old, profile)
        view = View(resize.new, context)
        after = classify(replace(view.defaulted, status=PodStatus()), profile).qos_class
        if before is not after:
            paths = [f"spec.containers[{index}].resources" for index in range(len(view.pod.spec.containers))]
            patch = view.choose(Choice.RESOURCES, *paths)
            view.report(class_changing_resize, "spec.containers[0].resources", ClassChange(before, after), patch)
            yield from view.findings


@bundle_check(
    "PQ113",
    "class-changing-resize",
    ERROR,
    f"{VALIDATION} (ValidatePodResize)",
    effect=Effect.STANDING,
    rule=class_changing_resizes,
)
def class_changing_resize() -> Example:
    """PQ113: A resize would change the class.

    The class of a running pod is fixed: the API server rejects a resize that would change it. The pod keeps its old
    resources and is killed at its old limit.

    Fix: Resize requests and limits together, or recreate the pod.
    """
    return Example(
        examples.web('cpu: "1", memory: 1Gi', 'cpu: "1", memory: 2Gi, ephemeral-storage: 1Gi'),
        chosen={"spec.containers[0].resources.requests.memory": "2Gi"},
        replaces=examples.web(*examples.EQUAL),
    )
