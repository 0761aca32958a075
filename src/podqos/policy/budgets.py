"""Budgets: how far the requests and limits of all pods may add up, as a multiple of the nodes' allocatable.

The nodes are taken as one, unless a budget is per node: a sum that is too large is too large however it is laid out.
What a workload adds is worked out by itself (``charges``), so that ten thousand of them can be looked at in parallel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from fractions import Fraction
from typing import Literal

from msgspec import Struct

from podqos.model.effective import pod_limits, pod_requests
from podqos.model.node import Node
from podqos.model.quantity import ZERO, Format, Quantity
from podqos.policy.matching import exempts, matches
from podqos.policy.model import Budget, Per, Policy
from podqos.policy.subject import Subject

Side = Literal["limits", "requests"]


class BudgetCharge(Struct, frozen=True, gc=False):
    """A workload's charge to one budget."""

    policy: str
    budget: Budget
    index: int
    """Index of the budget in the policy."""
    subject: str
    """Kind, namespace and name, for messages."""
    namespace: str
    node: str
    """The node its pod runs on; empty if unknown."""
    requests_nanos: int
    limits_nanos: int


class OverBudget(Struct, frozen=True):
    """A budget that is exceeded."""

    policy: str
    budget: Budget
    index: int
    side: Side
    group: str
    """The namespace or node that exceeds it; empty for the cluster."""
    total: Quantity
    allocatable: Quantity
    ratio: Fraction
    allowed: Fraction
    largest: tuple[str, ...]
    """The largest workloads."""


_SHOWN = 3


def charges(
    policies: Sequence[Policy], subject: Subject, pods: int, nodes: int, today: date | None = None
) -> tuple[BudgetCharge, ...]:
    """Return the charges of a workload's pods to the budgets that match; a DaemonSet has one pod on each node."""
    found: list[BudgetCharge] = []
    for policy in policies if subject.is_counted else ():
        for index, budget in enumerate(policy.spec.budgets):
            if not matches(budget.match, subject) or _is_exempt(policy, budget, subject, today):
                continue
            count = nodes if subject.workload.kind == "DaemonSet" else pods
            requests, limits = (side.get(budget.resource, ZERO).nanos for side in _sides(subject))
            metadata = subject.workload.metadata
            named = f"{subject.workload.kind} {subject.namespace}/{metadata.name or metadata.generate_name}"
            node = subject.stored.spec.node_name
            amounts = count * requests, count * limits
            found.append(BudgetCharge(policy.name, budget, index, named, subject.namespace, node, *amounts))
    return tuple(found)


def _sides(subject: Subject) -> tuple[dict[str, Quantity], dict[str, Quantity]]:
    return pod_requests(subject.stored), pod_limits(subject.stored)


def _is_exempt(policy: Policy, budget: Budget, subject: Subject, today: date | None) -> bool:
    """Whether a workload is exempt. Pods count as a whole, so an exemption of some containers does not apply here."""
    return any(
        not exemption.containers and exempts(exemption, budget.name, subject, today)
        for exemption in policy.spec.exemptions
    )


def over_budget(charged: Iterable[BudgetCharge], nodes: Sequence[Node]) -> Iterator[OverBudget]:
    """Yield the exceeded budgets; without nodes, none can be."""
    by_budget: dict[tuple[str, int], list[BudgetCharge]] = {}
    for charge in charged:
        by_budget.setdefault((charge.policy, charge.index), []).append(charge)
    for _, every in sorted(by_budget.items()):
        for group, own in sorted(_groups(every[0].budget.per, every).items()):
            yield from _exceeded(group, own, nodes)


def _groups(per: Per, charged: Iterable[BudgetCharge]) -> dict[str, list[BudgetCharge]]:
    groups: dict[str, list[BudgetCharge]] = {}
    for charge in charged:
        group = {Per.CLUSTER: "", Per.NAMESPACE: charge.namespace, Per.NODE: charge.node}[per]
        if group or per is Per.CLUSTER:
            groups.setdefault(group, []).append(charge)
    return groups


def _exceeded(group: str, charged: Sequence[BudgetCharge], nodes: Sequence[Node]) -> Iterator[OverBudget]:
    policy, budget, index = charged[0].policy, charged[0].budget, charged[0].index
    amounts = [
        node.status.allocatable.get(budget.resource, ZERO)
        for node in nodes
        if budget.per is not Per.NODE or node.name == group
    ]
    allocatable = sum(amount.nanos for amount in amounts)
    if not allocatable:
        return
    notation: Format = next((amount.format for amount in amounts if amount), "DecimalSI")
    sides: tuple[tuple[Side, float | None], ...] = (("limits", budget.limits), ("requests", budget.requests))
    for side, times in sides:
        if times is None:
            continue
        shares = [(_nanos(charge, side), charge.subject) for charge in charged]
        total, allowed = sum(share for share, _ in shares), Fraction(str(times))
        if total > allowed * allocatable:
            shares.sort(key=lambda share: (-share[0], share[1]))
            largest = tuple(subject for share, subject in shares[:_SHOWN] if share)
            shown = Quantity(total, notation), Quantity(allocatable, notation)
            ratio = Fraction(total, allocatable)
            yield OverBudget(policy, budget, index, side, group, *shown, ratio, allowed, largest)


def _nanos(charge: BudgetCharge, side: Side) -> int:
    return charge.limits_nanos if side == "limits" else charge.requests_nanos
