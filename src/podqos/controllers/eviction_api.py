"""Whether the API server evicts a pod: the eviction subresource and the PodDisruptionBudgets that it asks.

A pod without a budget is deleted. One that is covered by a single budget is deleted if the budget allows another
disruption now; otherwise the answer is 429 and the client may try again. Two budgets are an error. Pods that are
pending, finished or already being deleted need no budget; those that are not ready need none if their budget is
satisfied without them, or says ``AlwaysAllow``.

Source: Kubernetes v1.36 pkg/registry/core/pod/storage/eviction.go (Create, canIgnorePDB, checkAndDecrement,
getPodDisruptionBudgets), pkg/controller/disruption/disruption.go (getExpectedPodCount, getExpectedScale,
countHealthyPods, updatePdbStatus). The disruption controller is taken to be up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from podqos.model.disruption import PodDisruptionBudget, desired_healthy
from podqos.model.pod import Pod

VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_ALWAYS_ALLOW = "AlwaysAllow"


class BudgetedPod(Struct, frozen=True, gc=False):
    """A pod that a budget covers."""

    is_healthy: bool
    """Whether it is ready, and not being deleted."""
    controller: str | None = None
    """Its controller, by kind and name; None if it has none."""
    scale: int | None = None
    """How many pods that controller should keep; None if it cannot be scaled: a Job, a DaemonSet."""


class BudgetStatus(Struct, frozen=True, gc=False):
    """A budget as the disruption controller last saw it."""

    budget: PodDisruptionBudget
    healthy: int
    desired: int
    allowed: int
    failed: str = ""
    """Why the controller cannot say what is allowed, which allows nothing."""


def covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether a budget covers a pod for the eviction API: an empty selector covers every pod of its namespace."""
    selector = budget.spec.selector
    return (
        selector is not None
        and budget.metadata.namespace_or_default == pod.metadata.namespace_or_default
        and selector.matches(pod.metadata.labels)
    )


def budget_status(budget: PodDisruptionBudget, pods: Iterable[BudgetedPod]) -> BudgetStatus:
    """Return what a budget allows with the pods that it covers."""
    every = list(pods)
    healthy, expected = sum(pod.is_healthy for pod in every), len(every)
    spec = budget.spec
    if spec.max_unavailable is not None or isinstance(spec.min_available, str):
        scales: dict[str, int] = {}
        for pod in every:
            if pod.controller is None:
                continue
            if pod.scale is None:
                return BudgetStatus(budget, healthy, 0, 0, failed=f"found no controllers for pod of {pod.controller}")
            scales[pod.controller] = pod.scale
        expected = sum(scales.values())
    desired = desired_healthy(budget, expected)
    return BudgetStatus(budget, healthy, desired, max(0, healthy - desired) if expected > 0 else 0)


class EvictionRefusal(Struct, frozen=True, gc=False):
    """Why the API server does not evict a pod."""

    budget: str
    """The one that refuses; of several that cover the pod, all."""
    healthy: int
    desired: int
    message: str
    """In the API server's words."""


def eviction_refusal(*, is_ready: bool, budgets: Sequence[BudgetStatus]) -> EvictionRefusal | None:
    """Return why the API server does not evict a pod; ``budgets`` are those that cover it."""
    if not budgets:
        return None
    if len(budgets) > 1:
        names = " and ".join(status.budget.metadata.name for status in budgets)
        return EvictionRefusal(names, budgets[0].healthy, budgets[0].desired, SEVERAL)
    (status,) = budgets
    if not is_ready:
        always = status.budget.spec.unhealthy_pod_eviction_policy == _ALWAYS_ALLOW
        if always or (status.healthy >= status.desired > 0):
            return None
    if status.allowed > 0:
        return None
    message = f"{VIOLATES} {_cause(status)}"
    return EvictionRefusal(status.budget.metadata.name, status.healthy, status.desired, message)


def _cause(status: BudgetStatus) -> str:
    name = status.budget.metadata.name
    if status.failed:
        return (
            f"The disruption budget {name} does not allow evicting pods currently because it failed sync: "
            f"{status.failed}"
        )
    if status.healthy <= status.desired:
        return f"The disruption budget {name} needs {status.desired} healthy pods and has {status.healthy} currently"
    return f"The disruption budget {name} does not allow evicting pods currently"


def statuses(
    budgets: Iterable[PodDisruptionBudget], pod: Pod, pods: Mapping[str, tuple[Pod, BudgetedPod]]
) -> list[BudgetStatus]:
    """Return the budgets that cover a pod; ``pods`` are all of the cluster."""
    return [
        budget_status(budget, (counted for other, counted in pods.values() if covers(budget, other)))
        for budget in budgets
        if covers(budget, pod)
    ]
