"""Every check by its id.

Ids are permanent: PQ1xx classes and sizes of workloads, PQ2xx policies, PQ3xx priority and order, PQ4xx the kubelet,
PQ5xx what nodes can hold, PQ6xx autoscalers and disruption budgets, PQ7xx policies of podqos. A removed check
keeps its number.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, TypeAlias

from podqos.advice.checks import (
    amounts,
    capacity,
    classes,
    databases,
    demands,
    kubelet,
    policies,
    priority,
    rejected,
    resize,
    runtimes,
    scaling,
    sizes,
    tiny_limits,
    toleration,
    unsized,
)
from podqos.advice.checks.check import Check
from podqos.advice.checks.finding import Fact
from podqos.amounts import nearest
from podqos.errors import InvalidArgument
from podqos.naming import naming, stated_with

_MODULES = (
    *(amounts, capacity, classes, demands, kubelet, policies, priority, resize, scaling, sizes, toleration),
    *(databases, rejected, runtimes, tiny_limits, unsized),
)

CHECKS: dict[str, Check] = {
    check.id: check
    for check in sorted(
        (variable for module in _MODULES for variable in vars(module).values() if isinstance(variable, Check)),
        key=lambda check: check.id,
    )
}
"""All checks by id, in the order of their ids."""

if TYPE_CHECKING:
    Facts: TypeAlias = Fact
else:
    Facts = reduce(or_, sorted(Fact.__subclasses__(), key=lambda fact: fact.__name__))
"""What a finding can be about."""


def check_names() -> set[str]:
    """Return every name of a check: ids and names."""
    return {*CHECKS, *(check.name for check in CHECKS.values())}


def check_named(name: str, field: str) -> Check:
    """Return a check by its id or name, given in a field."""
    for check in CHECKS.values():
        if name.strip().upper() == check.id or name.strip() == check.name:
            return check
    near = nearest(name, check_names())
    fix = f'did you mean "{near}"?' if near else f"`podqos check {stated_with('list')}` lists them"
    raise InvalidArgument(f"no check {name!r}", where=naming(field), fix=fix)
