"""PQ120–PQ121: containers that state no memory, in pods that are otherwise sized.

Pods that request nothing at all are BestEffort, which ``classes`` is about.
"""

from __future__ import annotations

from collections.abc import Iterator

from podqos.advice.checks import examples
from podqos.advice.checks.check import WARNING, check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.classes import accidental_burstable
from podqos.advice.checks.finding import Choice, Fact
from podqos.advice.checks.kinds_of_pods import is_completed_by_operator, runs_until_done
from podqos.advice.checks.references import OOM, RANKING
from podqos.advice.checks.repair import with_edits
from podqos.advice.checks.toleration import is_told_with_return
from podqos.advice.checks.view import Repair, View
from podqos.amounts import of_resource
from podqos.model.effective import pod_level_is_set
from podqos.model.pod import Container, QOSClass
from podqos.model.quantity import ZERO
from podqos.model.resources import CPU, MEMORY, QOS_RESOURCES
from podqos.orders.usage import NOMINAL
from podqos.qos.edits import Edit


def find_unsized(view: View) -> None:
    """Find containers that keep running and state no memory, each once: that it states nothing at all matters more."""
    if view.stored_class is not QOSClass.BURSTABLE or view.is_refused or view.has_found(accidental_burstable):
        return  # PQ102–PQ104, PQ203 and PQ206, PQ101 tell of them
    if view.is_protected or is_completed_by_operator(view.workload):
        return
    for container, path in _without_memory(view):
        if is_told_with_return(view, container.name):
            continue
        beside = _sized_beside(view, container)
        if beside is not None:
            facts = UnsizedSidecar(beside.name, str(beside.resources.requests[MEMORY]))
            patch = view.choose(Choice.USAGE, f"{path}.requests", f"{path}.limits")
            view.report(unsized_sidecar, path, facts, patch, container=container.name, repair=_sized(view, path))
        elif not runs_until_done(view.workload) and not view.is_expendable and not view.standing.is_spared:
            cpu = container.resources.requests.get(CPU)
            facts_of_memory = NoMemory(None if not cpu else str(cpu))
            patch = view.choose(Choice.USAGE, f"{path}.requests.memory", f"{path}.limits.memory")
            view.report(no_memory, path, facts_of_memory, patch, container=container.name, repair=_sized(view, path))


def _sized(view: View, path: str) -> Repair:
    """Return what the pod would be if the container requested the memory that it is taken to use, and no more."""
    edits = [Edit(f"{path}.{side}.memory", NOMINAL) for side in ("requests", "limits")]
    return Repair(lambda: with_edits(view.pod, edits), is_assumed=True)


def is_told_as_unsized(view: View, container: Container) -> bool:
    """Whether PQ121 says that a container states nothing: then no other check has to."""
    if not view.options.runs(unsized_sidecar.id) or view.is_suppressed(unsized_sidecar):
        return False
    return not is_told_with_return(view, container.name) and _sized_beside(view, container) is not None


def _without_memory(view: View) -> Iterator[tuple[Container, str]]:
    """Yield the containers, as stored, that keep running with neither a memory request nor a memory limit."""
    spec = view.stored.spec
    if spec.resources is not None and pod_level_is_set(view.stored):
        return
    for number, container in enumerate((*spec.containers, *spec.init_containers)):
        index = number - len(spec.containers)
        if index >= 0 and not container.is_sidecar:
            continue
        resources = container.resources
        if not resources.requests.get(MEMORY) and not resources.limits.get(MEMORY):
            yield (
                container,
                f"spec.containers[{number}].resources" if index < 0 else (f"spec.initContainers[{index}].resources"),
            )


def _sized_beside(view: View, container: Container) -> Container | None:
    """Return the largest container that runs beside one that states neither cpu nor memory; None without memory."""
    resources = container.resources
    if any(resources.requests.get(name) or resources.limits.get(name) for name in QOS_RESOURCES):
        return None
    spec = view.stored.spec
    if spec.resources is not None and pod_level_is_set(view.stored):
        return None
    largest = max(
        (beside for beside in view.stored.running_containers if beside.name != container.name),
        key=lambda beside: beside.resources.requests.get(MEMORY, ZERO),
        default=None,
    )
    return largest if largest is not None and largest.resources.requests.get(MEMORY) else None


# ---- PQ120 -------------------------------------------------------------------------------------------------------


class NoMemory(Fact, frozen=True, gc=False):
    """A container without a memory request and without a memory limit."""

    cpu_request: str | None
    """What it requests of cpu; None where that is nothing, too."""

    def sentence(self, container: str) -> str:
        """Return what it states, and what it does not."""
        stated = "" if self.cpu_request is None else f"requests {of_resource(self.cpu_request, CPU)}, but "
        return f"{container} {stated}has no memory request and no memory limit"

    def cause(self) -> str:
        """Return what it lacks."""
        return "one of its containers requests no memory"


@check("PQ120", "no-memory-request", WARNING, RANKING, OOM, rule=find_unsized)
def no_memory() -> Example:
    """PQ120: A container has neither a memory request nor a memory limit.

    The scheduler reserves nothing for it, so it lands on nodes that are full. Any usage exceeds its request: its
    oom_score_adj is close to that of a BestEffort pod, and its usage gets the pod evicted. Nothing stops a leak before
    the node runs out. When it is fine: Jobs and other pods that run until done and can be repeated, pods with the
    annotation podqos.dev/restart-cost: none, and agents with a system priority, which the kubelet never evicts, are not
    reported. For other DaemonSets see PQ118, because their pods return immediately.

    Fix: Look up the peak (kubectl top pod --containers, or max_over_time of container_memory_working_set_bytes over a
    week in Prometheus), request that much, and set a limit with headroom above it.
    """
    return Example(
        examples.web("cpu: 500m", 'cpu: "1", ephemeral-storage: 1Gi'),
        chosen={
            "spec.containers[0].resources.requests.memory": "512Mi",
            "spec.containers[0].resources.limits.memory": "1Gi",
        },
    )


# ---- PQ121 -------------------------------------------------------------------------------------------------------


class UnsizedSidecar(Fact, frozen=True, gc=False):
    """A container that states nothing beside one that does."""

    other: str
    request: str
    """What the other requests of memory."""

    def sentence(self, container: str) -> str:
        """Return which states nothing, beside one that does."""
        beside = f"while {self.other} requests {self.request} of memory"
        return f"{container} has no CPU and memory requests or limits, {beside}"

    def cause(self) -> str:
        """Return what it lacks."""
        return "one of its containers requests nothing"


@check("PQ121", "sidecar-without-resources", WARNING, OOM, RANKING, rule=find_unsized)
def unsized_sidecar() -> Example:
    """PQ121: A container has no requests or limits, while another in the pod does.

    Its usage counts against the request of the whole pod: a sidecar that grows gets the sized container evicted with
    it. When the node runs out of memory, it is among the first to be OOM-killed, with an oom_score_adj close to 1000.
    On a busy node it gets almost no CPU, and without its proxy or agent the pod serves nothing. When it is fine: hardly
    ever. Jobs are reported as well, because a sidecar that dies can fail the run.

    Fix: Look up what it uses (kubectl top pod --containers) and give it requests, and a memory limit with headroom.
    """
    sized = examples.container("web", *examples.USUAL)
    return Example(
        examples.pod(sized, examples.container("proxy", "", "ephemeral-storage: 1Gi")),
        chosen={
            "spec.containers[1].resources.requests": {"cpu": "50m", "memory": "128Mi"},
            "spec.containers[1].resources.limits": {"memory": "256Mi", "ephemeral-storage": "1Gi"},
        },
    )
