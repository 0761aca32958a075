"""PQ501–PQ504: what workloads promise against what the nodes of the bundle have.

All nodes are taken as one: where a pod would land is the scheduler's to say (``placement``), and a sum that is too
large is too large however it is laid out. With a single node it is exactly that node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from podqos.advice.checks.catalogue import CHECKS
from podqos.advice.checks.facts import Facts, LargerThanAnyNode, Overcommitted, Overfull
from podqos.advice.checks.finding import Choice, Consequence, Finding, Patch
from podqos.advice.checks.sketch import Sketch
from podqos.advice.checks.suppression import suppression_by
from podqos.advice.checks.view import Context, View
from podqos.model.effective import pod_requests
from podqos.model.node import Node
from podqos.model.pod import QOSClass
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import CPU, MEMORY
from podqos.placement.overcommit import DEFAULT_BUDGETS, Overcommit

_SHOWN = 3


def check_capacity(context: Context, sketches: Sequence[Sketch]) -> Iterator[Finding]:
    """PQ501–PQ503: sums over all workloads."""
    nodes = context.surroundings.nodes
    if not nodes:
        return
    # Two manifests of one object are two versions of it: applying one replaces the other.
    sketches = list({(sketch.subject.kind, sketch.subject.key): sketch for sketch in sketches}.values())
    for check, resource, budget in (
        ("PQ501", CPU, context.options.cpu_budget or DEFAULT_BUDGETS[CPU]),
        ("PQ502", MEMORY, context.options.memory_budget or DEFAULT_BUDGETS[MEMORY]),
    ):
        total = _overcommit(nodes, sketches, resource, budget)
        if not total.allocatable:
            continue
        fullness, ratio = total.fullness, total.limits_to_allocatable
        assert fullness is not None
        assert ratio is not None
        if fullness > 1:
            requests, allocatable = _amount(resource, total.requests), _amount(resource, total.allocatable)
            full = Overfull(resource, requests, allocatable, len(nodes))
            yield _finding(
                "PQ503", full, nodes=nodes, resource=resource, choice=Choice.SMALLER_REQUESTS, context=context
            )
        if total.exceeds_budget:
            over = Overcommitted(
                resource,
                _amount(resource, total.limits),
                _amount(resource, total.allocatable),
                float(ratio),
                float(budget),
                len(nodes),
                _largest(sketches, resource),
            )
            yield _finding(check, over, nodes=nodes, resource=resource, choice=Choice.SMALLER_LIMITS, context=context)


def larger_than_any_node(view: View) -> None:
    """PQ504: a pod that no node could hold, however empty."""
    nodes = view.context.surroundings.nodes
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
                "PQ504",
                f"spec.containers[0].resources.requests.{resource}",
                LargerThanAnyNode(resource, str(request), str(room), largest.name),
                Patch(needs_choice=Choice.SMALLER_REQUESTS),
            )


def _overcommit(nodes: Sequence[Node], sketches: Sequence[Sketch], resource: str, budget: Fraction) -> Overcommit:
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
    allocatable = sum(amount.milli_value if resource == CPU else amount.value for amount in amounts)
    return Overcommit(
        node=nodes[0].name,
        resource=resource,
        allocatable=allocatable,
        requests=requests,
        limits=limits,
        guaranteed=guaranteed,
        other_limits=other_limits,
        unlimited=(),
        budget=budget,
    )


def _of(sketch: Sketch, resource: str) -> tuple[int, int]:
    demand = sketch.demand
    if demand is None:
        return 0, 0
    if resource == CPU:
        return demand.cpu_milli, demand.cpu_limit_milli
    return demand.memory_bytes, demand.memory_limit_bytes


def _largest(sketches: Sequence[Sketch], resource: str) -> tuple[str, ...]:
    """Return the workloads that may go furthest beyond what they reserve."""
    beyond = [
        (requests - limits, sketch.subject.key) for sketch in sketches for requests, limits in [_of(sketch, resource)]
    ]
    return tuple(key for _, key in sorted(each for each in beyond if each[0] < 0)[:_SHOWN])


def _amount(resource: str, count: int) -> str:
    return str(Quantity.of_milli(count) if resource == CPU else Quantity.of_units(count, "BinarySI"))


def _finding(
    check: str, facts: Facts, *, nodes: Sequence[Node], resource: str, choice: Choice, context: Context
) -> Finding:
    node = nodes[0]
    return Finding(
        check,
        CHECKS[check].severity,
        context.surroundings.subject("Node", node.name),
        f"status.allocatable.{resource}",
        facts,
        Consequence(CHECKS[check].effect),
        Patch(needs_choice=choice),
        suppression=suppression_by(check, node.metadata.annotations),
    )
