"""What the second phase needs to know about a workload: little, because there can be ten thousand of them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.checks.bundle import FoundAutoscaler
from podqos.advice.checks.check_identity import IGNORE_ANNOTATION, CheckIdentity
from podqos.advice.checks.finding import CheckedObject, Consequence, Fact, Finding, Patch, PodStanding
from podqos.advice.checks.view import View
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.pod import SYSTEM_CRITICAL_PRIORITY, Pod, QOSClass, field_at
from podqos.model.quantity import ZERO
from podqos.model.resources import CPU, MEMORY
from podqos.policy.budgets import BudgetCharge, charges

Demand = dict[str, tuple[int, int]]
"""What all pods of a workload request and may use, by resource: thousandths of a core, bytes."""


class Sketch(Struct, frozen=True, gc=False):
    """One workload, in short."""

    subject: CheckedObject
    pod_path: str
    """From the object to its pod."""
    fields: tuple[tuple[str, str], ...]
    """Where the pod's fields stand, if not below it."""
    qos_class: QOSClass
    priority: int
    names_priority: bool
    asks_for_nothing: bool
    """Whether the manifest is BestEffort, whatever policies make of it."""
    standing: PodStanding | None = None
    """Where it may be needed."""
    grace_seconds: int | None = None
    """What it states as terminationGracePeriodSeconds."""
    demand: Demand | None = None
    """Where there are nodes to compare it with."""
    pod: Pod | None = None
    """As stored; where it is to be compared with others."""
    ignores: tuple[dict[str, str], ...] = ()
    """Annotations that suppress findings."""
    stated_replicas: int = 1
    """How many pods the manifest asks for."""
    replicas: int = 1
    """How many pods it may run: the most, where an autoscaler changes that."""
    fewest_replicas: int = 1
    """How many it runs at least: where an autoscaler changes that, and may stop all of them, one."""
    budgets: tuple[CheckedObject, ...] = ()
    """The PodDisruptionBudgets that cover it."""
    charges: tuple[BudgetCharge, ...] = ()
    """What it adds to the budgets of policies, where there are nodes to hold them against."""
    scaled_by: FoundAutoscaler | None = None
    """Its autoscaler, where there are nodes for the pods it adds."""

    @property
    def is_system(self) -> bool:
        """Whether it has a system priority, which is not compared with others."""
        return self.priority >= SYSTEM_CRITICAL_PRIORITY

    def at(self, path: str) -> str:
        """Return the path of a pod's field in the object."""
        return field_at(path, self.pod_path, self.fields)

    def finding(self, check: CheckIdentity, path: str, facts: Fact, patch: Patch) -> Finding:
        """Return a finding about the workload; ``path`` counts from the pod."""
        finding = check.finding(self.subject, self.at(path), facts, patch, self.ignores)
        return replace(finding, consequence=Consequence(check.effect, self.standing))


def latest(sketches: Iterable[Sketch]) -> list[Sketch]:
    """Return each workload once: two manifests of one object are two versions of it, and the later one is applied."""
    return list({(sketch.subject.kind, sketch.subject.key): sketch for sketch in sketches}.values())


def sketch_of(view: View) -> Sketch:
    """Return a workload in short."""
    spec = view.pod.spec
    names_priority = bool(spec.priority_class_name)
    is_best_effort = view.stored_class is QOSClass.BEST_EFFORT
    surroundings = view.context.surroundings
    return Sketch(
        view.subject,
        view.workload.pod_path,
        view.workload.fields,
        view.stored_class,
        view.priority,
        names_priority,
        view.qos_class is QOSClass.BEST_EFFORT,
        None if is_best_effort else view.standing,
        spec.termination_grace_period_seconds,
        demand_of(view) if surroundings.nodes else None,
        view.running() if view.compares and spec.containers else None,
        tuple(
            metadata.annotations
            for metadata in (view.workload.metadata, view.pod.metadata)
            if metadata.annotations and IGNORE_ANNOTATION in metadata.annotations
        ),
        _replicas(view),
        _replicas(view) if view.scaled_by is None else max(_replicas(view), view.scaled_by.most),
        _replicas(view) if view.scaled_by is None else max(1, view.scaled_by.autoscaler.spec.min_replicas),
        tuple(budget.subject for budget in surroundings.disruption_budgets if budget.covers(view.pod)),
        _charges(view) if view.context.demands and surroundings.nodes else (),
        view.scaled_by if surroundings.nodes else None,
    )


def demand_of(view: View) -> Demand:
    """Return what the pods of a workload ask for together. Of a DaemonSet every node has one."""
    pods = len(view.context.surroundings.nodes) if view.workload.kind == "DaemonSet" else _replicas(view)
    sides = pod_requests(view.stored), pod_limits(view.stored)
    (cpu, cpu_limit), (memory, memory_limit) = ([side.get(name, ZERO) for side in sides] for name in (CPU, MEMORY))
    return {
        CPU: (pods * cpu.milli_value, pods * cpu_limit.milli_value),
        MEMORY: (pods * memory.value, pods * memory_limit.value),
    }


def _charges(view: View) -> tuple[BudgetCharge, ...]:
    nodes = len(view.context.surroundings.nodes)
    return charges(view.context.demands, view.judged, _replicas(view), nodes, view.options.today)


def _replicas(view: View) -> int:
    """Return how many pods a manifest asks for. A PodTemplate only keeps a template for others."""
    workload = view.workload
    if workload.kind == "PodTemplate":
        return 0
    return 1 if workload.replicas is None else workload.replicas
