"""PodDisruptionBudgets while pods come and go: what each still allows.

Preemption honours budgets where it can: a node where it need not break one is preferred, and pods whose budget would be
broken are the first to be spared. It does not stop at them.
"""

from __future__ import annotations

from collections.abc import Iterable

from podqos.model.disruption import PodDisruptionBudget, disruptions_allowed
from podqos.model.profile import LATEST, Profile
from podqos.placement.pod_view import PodView


class Budgets:
    """The budgets of a cluster and the pods they cover."""

    def __init__(
        self,
        budgets: Iterable[PodDisruptionBudget] = (),
        pods: Iterable[PodView] = (),
        profile: Profile = LATEST,
    ) -> None:
        """``pods`` are all that should run: a percentage is relative to their number."""
        self._profile = profile
        self._budgets = [_Counted(budget) for budget in budgets]
        if self._budgets:
            for view in pods:
                for counted in self._budgets:
                    counted.expected += counted.covers(view)

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def count(self, view: PodView, change: int) -> None:
        """Count a pod that was added to (1) or removed from (-1) a node."""
        for counted in self._budgets:
            if counted.covers(view):
                counted.healthy += change
                counted.disrupted -= min(0, change)

    def violating(self, victims: Iterable[PodView]) -> list[bool]:
        """Return for each victim, in order, whether losing it as well violates a budget."""
        left = [counted.allowed for counted in self._budgets]
        verdicts = []
        for view in victims:
            violated = False
            for index, counted in enumerate(self._budgets):
                if counted.covers(view) and not counted.is_disrupted(view):
                    left[index] -= 1
                    violated = violated or left[index] < 0
                    if violated and self._profile.broken_budget_ends_count:
                        break
            verdicts.append(violated)
        return verdicts


class _Counted:
    """One budget with the numbers of its pods."""

    def __init__(self, budget: PodDisruptionBudget) -> None:
        self._budget = budget
        self._namespace = budget.metadata.namespace_or_default
        self.expected = 0
        self.healthy = 0
        self.disrupted = 0

    @property
    def allowed(self) -> int:
        """How many more pods may be disrupted: the controller's figure, or else what it would be."""
        if self._budget.status is not None:
            return self._budget.status.disruptions_allowed - self.disrupted
        return disruptions_allowed(self._budget, healthy=self.healthy, expected=self.expected)

    def covers(self, view: PodView) -> bool:
        """Whether the budget covers the pod; to the scheduler, an empty selector covers none."""
        selector = self._budget.spec.selector
        return (
            selector is not None
            and not selector.is_empty
            and view.namespace == self._namespace
            and bool(view.labels)
            and selector.matches(view.labels)
        )

    def is_disrupted(self, view: PodView) -> bool:
        """Whether the API server has already allowed the pod's disruption."""
        status = self._budget.status
        return status is not None and view.pod.metadata.name in status.disrupted_pods
