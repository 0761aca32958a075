"""PQ501–PQ504: what workloads promise against what the nodes of the bundle have.

All nodes are taken as one: where a pod would land is the scheduler's to say (``placement``), and a sum that is too
large is too large however it is laid out. With a single node it is exactly that node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from podqos.advice.checks import examples
from podqos.advice.checks.check import ERROR, WARNING, Check, bundle_check, check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.finding import Choice, Effect, Fact, Finding, Patch
from podqos.advice.checks.sketch import Sketch, latest
from podqos.advice.checks.view import CheckContext, View
from podqos.amounts import listed, of_resource, shown_ratio
from podqos.model.effective import pod_requests
from podqos.model.node import Node
from podqos.model.pod import QOSClass
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import CPU, MEMORY

if TYPE_CHECKING:
    from podqos.placement.overcommit import Overcommit

_SHOWN = 3
_FIT = "Kubernetes: pkg/scheduler/framework/plugins/noderesources/fit.go"


def _nodes(count: int) -> str:
    return "the node" if count == 1 else f"{count} nodes"


# ---- PQ501–PQ503 -------------------------------------------------------------------------------------------------


class Overcommitted(Fact, frozen=True, gc=False):
    """More promised than the budget allows."""

    resource: str
    limits: str
    allocatable: str
    ratio: float
    budget: float
    nodes: int
    largest: tuple[str, ...]
    """The workloads that may exceed their requests most."""

    def sentence(self, _: str) -> str:
        """Return the sum of limits beside the budget, and who has most of it."""
        largest = f"; largest: {listed(self.largest)}" if self.largest else ""
        return (
            f"limits add up to {of_resource(self.limits, self.resource)}, {self.ratio:.2f}× the {self.allocatable} "
            f"allocatable on {_nodes(self.nodes)} (budget {self.budget:g}×){largest}"
        )


class Overfull(Fact, frozen=True, gc=False):
    """More requested than all nodes have."""

    resource: str
    requests: str
    allocatable: str
    nodes: int

    def sentence(self, _: str) -> str:
        """Return the sum of requests beside what there is."""
        where = f"allocatable on {_nodes(self.nodes)}"
        return f"{of_resource(self.requests, self.resource)} is requested, {self.allocatable} {where}"


def sums(context: CheckContext, sketches: Sequence[Sketch]) -> Iterator[Finding]:
    """Yield where the sums over all workloads are too large."""
    nodes = context.surroundings.nodes
    if not nodes:
        return
    from podqos.placement.overcommit import DEFAULT_BUDGETS

    sketches = latest(sketches)
    for overcommit, resource in ((cpu_overcommit, CPU), (memory_overcommit, MEMORY)):
        budget = DEFAULT_BUDGETS[resource]
        total = _overcommit(nodes, sketches, resource, budget)
        if not total.allocatable:
            continue
        fullness, ratio = total.fullness, total.limits_to_allocatable
        assert fullness is not None
        assert ratio is not None
        allocatable = _amount(resource, total.allocatable)
        if fullness > 1:
            full = Overfull(resource, _amount(resource, total.requests), allocatable, len(nodes))
            yield _finding(overfull, full, context, sketches)
        if total.exceeds_budget and not context.has_budget(resource):
            limits, largest = _amount(resource, total.limits), _largest(sketches, resource)
            over = Overcommitted(resource, limits, allocatable, shown_ratio(ratio), float(budget), len(nodes), largest)
            yield _finding(overcommit, over, context, sketches)


def _overcommit(nodes: Sequence[Node], sketches: Sequence[Sketch], resource: str, budget: Fraction) -> Overcommit:
    from podqos.placement.overcommit import Overcommit

    requests = limits = guaranteed = other_limits = 0
    for sketch in sketches:
        requested, limit = _of(sketch, resource)
        requests += requested
        limits += limit
        if sketch.qos_class is QOSClass.GUARANTEED:
            guaranteed += requested
        else:
            other_limits += limit
    amounts = [node.status.allocatable.get(resource, ZERO) for node in nodes]
    return Overcommit(
        node=nodes[0].name,
        resource=resource,
        allocatable=sum(amount.milli_value if resource == CPU else amount.value for amount in amounts),
        requests=requests,
        limits=limits,
        guaranteed=guaranteed,
        other_limits=other_limits,
        unlimited=(),
        budget=budget,
    )


def _of(sketch: Sketch, resource: str) -> tuple[int, int]:
    return (0, 0) if sketch.demand is None else sketch.demand[resource]


def _largest(sketches: Sequence[Sketch], resource: str) -> tuple[str, ...]:
    """Return the workloads that may go furthest beyond what they reserve."""
    beyond = [
        (requests - limits, sketch.subject.key) for sketch in sketches for requests, limits in [_of(sketch, resource)]
    ]
    return tuple(key for _, key in sorted(each for each in beyond if each[0] < 0)[:_SHOWN])


def _amount(resource: str, count: int) -> str:
    return str(Quantity.of_milli(count) if resource == CPU else Quantity.of_units(count, "BinarySI"))


def _finding(
    check: Check, facts: Overfull | Overcommitted, context: CheckContext, sketches: Sequence[Sketch]
) -> Finding:
    is_full = isinstance(facts, Overfull)
    patch = Patch.choose(Choice.SMALLER_REQUESTS if is_full else Choice.SMALLER_LIMITS)
    node = context.surroundings.nodes[0]
    subject = context.surroundings.subject("Node", node.name)
    if context.units and subject.source not in context.units:  # the nodes are not among what is checked
        largest = max(sketches, key=lambda sketch: _of(sketch, facts.resource)[0 if is_full else 1])
        return largest.finding(check, "spec.containers[0].resources", facts, patch)
    return check.finding(subject, f"status.allocatable.{facts.resource}", facts, patch, (node.metadata.annotations,))


def _example(requests: str, limits: str, replicas: int = 2) -> str:
    return examples.documents(
        examples.node(), examples.deployment(replicas, requests, f"{limits}, ephemeral-storage: 1Gi")
    )


@bundle_check(
    "PQ501",
    "cpu-over-budget",
    WARNING,
    "Kubernetes: pkg/kubelet/cm/helpers_linux.go",
    "docs/reference/commands/place.md",
    effect=Effect.NONE,
    rule=sums,
)
def cpu_overcommit() -> Example:
    """PQ501: CPU limits exceed the overcommit budget.

    Under full contention each pod gets a fraction of its limit. A CPU shortage does not kill, but it slows down probes
    and the very pods that should be freeing memory. How much a Burstable pod gets then depends on its request alone.

    Fix: Lower the limits that exceed their requests most, or add nodes.
    """
    return Example(
        _example("cpu: 500m, memory: 1Gi", 'cpu: "5", memory: 2Gi'),
        good=_example("cpu: 500m, memory: 1Gi", 'cpu: "2", memory: 2Gi'),
    )


@bundle_check(
    "PQ502",
    "memory-over-budget",
    WARNING,
    "Kubernetes: pkg/kubelet/eviction/helpers.go",
    "docs/reference/commands/place.md",
    effect=Effect.NODE,
    rule=sums,
)
def memory_overcommit() -> Example:
    """PQ502: Memory limits exceed the overcommit budget.

    Memory cannot be time-shared: if pods grow to their limits, some have to die. The further limits exceed what the
    nodes have, the fewer pods it takes to get there.

    Fix: Lower the limits that exceed their requests most, or add nodes.
    """
    return Example(
        _example("cpu: 500m, memory: 2Gi", 'cpu: "1", memory: 6Gi'),
        good=_example("cpu: 500m, memory: 2Gi", 'cpu: "1", memory: 4Gi'),
    )


@bundle_check("PQ503", "requests-exceed-nodes", ERROR, _FIT, effect=Effect.NONE, rule=sums)
def overfull() -> Example:
    """PQ503: More is requested than the nodes have.

    Some pods stay pending, or the scheduler preempts pods of lower priority to make room. If a node is lost, there is
    no room for its pods.

    Fix: Lower requests or replicas, or add nodes.
    """
    return Example(
        _example("cpu: 1500m, memory: 1Gi", "cpu: 1500m, memory: 1Gi", 3),
        good=_example("cpu: 1500m, memory: 1Gi", "cpu: 1500m, memory: 1Gi"),
    )


# ---- PQ504 -------------------------------------------------------------------------------------------------------


class LargerThanAnyNode(Fact, frozen=True, gc=False):
    """A pod that fits no node, however empty."""

    resource: str
    request: str
    largest: str
    node: str
    """Its name; empty where only its memory was stated."""

    def sentence(self, _: str) -> str:
        """Return its request beside the largest node."""
        largest = f"the largest node, {self.node}, has {self.largest}" if self.node else f"nodes have {self.largest}"
        return f"the pod requests {of_resource(self.request, self.resource)}; {largest}"


def find_larger_than_any_node(view: View) -> None:
    """Find a pod that no node could hold, however empty."""
    nodes = view.context.surroundings.nodes or view.context.stated_nodes
    if not nodes:
        return
    requests = pod_requests(view.stored)
    for resource in (CPU, MEMORY):
        request = requests.get(resource)
        if not request:
            continue
        largest = max(nodes, key=lambda node: (node.status.allocatable.get(resource, ZERO).nanos, node.name))
        room = largest.status.allocatable.get(resource)
        if room is not None and request > room:
            view.report(
                larger_than_any_node,
                f"spec.containers[0].resources.requests.{resource}",
                LargerThanAnyNode(resource, str(request), str(room), largest.name),
                Patch.choose(Choice.SMALLER_REQUESTS),
            )


@check("PQ504", "larger-than-any-node", ERROR, _FIT, effect=Effect.NOT_CREATED, rule=find_larger_than_any_node)
def larger_than_any_node() -> Example:
    """PQ504: A pod does not fit on any node, not even an empty one.

    It stays pending forever: no preemption can make room for it. Without Nodes in the input, the given node memory
    counts (--node-memory), minus what the given kubelet configuration reserves.

    Fix: Lower its requests, or add a larger node.
    """
    return Example(
        examples.documents(
            examples.node("worker-1"),
            examples.node("worker-2"),
            examples.pod(
                examples.container("model", 'cpu: "1", memory: 10Gi', 'cpu: "1", memory: 10Gi, ephemeral-storage: 1Gi'),
                name="model",
            ),
        ),
        chosen={
            "spec.containers[0].resources.requests.memory": "8Gi",
            "spec.containers[0].resources.limits.memory": "8Gi",
        },
    )
