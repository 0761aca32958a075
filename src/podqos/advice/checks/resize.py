"""PQ113: a resize that the API server rejects, because it changes the class, or the kubelet, because of usage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from podqos.admission.defaulting import defaulted
from podqos.admission.resize import BelowUsage
from podqos.advice.checks import examples
from podqos.advice.checks.check import ERROR, bundle_check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.finding import Choice, Effect, Fact, Finding
from podqos.advice.checks.references import VALIDATION
from podqos.advice.checks.sketch import Sketch
from podqos.advice.checks.view import CheckContext, View
from podqos.amounts import listed, verb
from podqos.model.pod import Pod, PodStatus, QOSClass
from podqos.model.resources import MEMORY
from podqos.orders.versions import lowered_below_usage
from podqos.qos.classes import classify, qos_class_of


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

    def without(self) -> str:
        """Return what would have to be away: to write down what a LimitRange adds leaves the class as it is."""
        return f"without {listed(self.sources)}" if self.sources else super().without()


class LimitBelowUsage(Fact, frozen=True, gc=False):
    """A memory limit that the kubelet does not set, because as much is in use."""

    limit: BelowUsage

    def sentence(self, _: str) -> str:
        """Return both amounts, and what comes of them."""
        return self.limit.sentence


def refused_resizes(context: CheckContext, _: Sequence[Sketch]) -> Iterator[Finding]:
    """Yield the resizes that change the class or lower a limit below usage. The rest is for ``admission`` to say."""
    profile = context.options.profile
    for resize in context.resizes:
        old = defaulted(resize.old, profile)
        before = qos_class_of(old, profile)
        view = View(resize.new, context)
        after = classify(replace(view.defaulted, status=PodStatus()), profile).qos_class
        if before is not after:
            paths = [f"spec.containers[{index}].resources" for index in range(len(view.pod.spec.containers))]
            patch = view.choose(Choice.RESOURCES, *paths)
            view.report(refused_resize, "spec.containers[0].resources", ClassChange(before, after), patch)
        for limit in lowered_below_usage(old, view.defaulted, resize.measured, profile):
            path = f"{_level(view.pod, limit.container)}.limits.memory"
            view.report(refused_resize, path, LimitBelowUsage(limit), view.choose(Choice.MEMORY_LIMIT, path))
        yield from view.findings


def _level(pod: Pod, name: str) -> str:
    """Return the path of the resources that limit a container, which may be those of the pod."""
    for field, containers in (("containers", pod.spec.containers), ("initContainers", pod.spec.init_containers)):
        for index, container in enumerate(containers):
            if container.name == name and (MEMORY in container.resources.limits or pod.spec.resources is None):
                return f"spec.{field}[{index}].resources"
    return "spec.resources"


@bundle_check(
    "PQ113",
    "refused-resize",
    ERROR,
    f"{VALIDATION} (ValidatePodResize)",
    "Kubernetes: pkg/kubelet/kuberuntime/kuberuntime_manager.go (validateMemoryResizeAction)",
    effect=Effect.STANDING,
    rule=refused_resizes,
)
def refused_resize() -> Example:
    """PQ113: A resize is refused.

    The class of a running pod is fixed: the API server rejects a resize that would change it. The kubelet sets no
    memory limit below what is in use (given with --usage). The pod keeps its old resources; a container that restarts
    with a limit below what it needs is OOM-killed.

    Fix: Resize requests and limits together, keep limits above usage, or recreate the pod.
    """
    return Example(
        examples.web('cpu: "1", memory: 1Gi', 'cpu: "1", memory: 2Gi, ephemeral-storage: 1Gi'),
        chosen={"spec.containers[0].resources.requests.memory": "2Gi"},
        replaces=examples.web(*examples.EQUAL),
    )
