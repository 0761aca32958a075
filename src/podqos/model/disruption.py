"""PodDisruptionBudgets (policy/v1): how many pods may be disrupted at one time.

The scheduler reads only ``status.disruptionsAllowed``. A manifest has no status; ``disruptions_allowed`` then says
what the disruption controller would write there.

Source: Kubernetes v1.36 pkg/controller/disruption/disruption.go (getExpectedPodCount, updatePdbStatus),
pkg/apis/policy/validation/validation.go (ValidatePodDisruptionBudgetSpec).
"""

from __future__ import annotations

from msgspec import Struct

from podqos.errors import InvalidManifest
from podqos.model.pod import ObjectMeta
from podqos.model.selector import LabelSelector


class PodDisruptionBudgetSpec(Struct, frozen=True, gc=False, rename="camel"):
    """The budget; exactly one of the two amounts is set."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None
    """AlwaysAllow or IfHealthyBudget, the default."""

    @property
    def refusal(self) -> tuple[str, str, str] | None:
        """Why the API server rejects the amounts: the field, what is wrong, and what to write; None if it does not."""
        if self.min_available is not None and self.max_unavailable is not None:
            return "maxUnavailable", "minAvailable and maxUnavailable cannot both be set", "remove one of them"
        for field, amount in (("minAvailable", self.min_available), ("maxUnavailable", self.max_unavailable)):
            if amount is not None and (what := _wrong_amount(amount)):
                return field, what, "write 1 or 50%"
        return None


class PodDisruptionBudgetStatus(Struct, frozen=True, gc=False, rename="camel"):
    """The status from the disruption controller."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] = {}
    """Pods already being disrupted, by name."""


class PodDisruptionBudget(Struct, frozen=True, gc=False):
    """One budget of one namespace."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus | None = None


def disruptions_allowed(budget: PodDisruptionBudget, *, healthy: int, expected: int) -> int:
    """Return how many of ``expected`` pods, of which ``healthy`` run, may be disrupted now."""
    return 0 if expected <= 0 else max(0, healthy - desired_healthy(budget, expected))


def desired_healthy(budget: PodDisruptionBudget, expected: int) -> int:
    """Return how many of ``expected`` pods should run at any time."""
    spec = budget.spec
    if spec.max_unavailable is not None:
        return max(0, expected - _scaled(spec.max_unavailable, expected, budget))
    return expected if spec.min_available is None else max(0, _scaled(spec.min_available, expected, budget))


def _wrong_amount(amount: int | str) -> str:
    if isinstance(amount, int):
        return f"{amount} is negative" if amount < 0 else ""
    if not _is_percentage(amount):
        return f"{amount!r} is neither a number nor a percentage"
    return f"{amount} is more than 100%" if int(amount[:-1]) > 100 else ""


def _is_percentage(amount: str) -> bool:
    return amount.endswith("%") and amount.isascii() and amount[:-1].isdigit()


def _scaled(amount: int | str, total: int, budget: PodDisruptionBudget) -> int:
    """Return a number or percentage of ``total``, rounded up."""
    if isinstance(amount, int):
        return amount
    if not _is_percentage(amount):
        raise InvalidManifest(
            f"{amount!r} is neither a number nor a percentage",
            where=f"PodDisruptionBudget {budget.metadata.namespace_or_default}/{budget.metadata.name}",
            fix="write 1 or 50%",
        )
    return -(-int(amount[:-1]) * total // 100)
