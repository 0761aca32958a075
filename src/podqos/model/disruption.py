"""PodDisruptionBudgets (policy/v1): how many pods of a kind may be missing on purpose at one time.

The scheduler reads only ``status.disruptionsAllowed``. A manifest has no status; ``disruptions_allowed`` then says
what the disruption controller would write there.

Source: Kubernetes v1.36 pkg/controller/disruption/disruption.go (getExpectedPodCount, updatePdbStatus).
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


class PodDisruptionBudgetStatus(Struct, frozen=True, gc=False, rename="camel"):
    """What the disruption controller found."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] = {}
    """Pods already on their way out, by name."""


class PodDisruptionBudget(Struct, frozen=True, gc=False):
    """One budget of one namespace."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus | None = None


def disruptions_allowed(budget: PodDisruptionBudget, *, healthy: int, expected: int) -> int:
    """Return how many of ``expected`` pods, of which ``healthy`` run, may be disrupted now."""
    spec = budget.spec
    if expected <= 0:
        return 0
    if spec.max_unavailable is not None:
        desired = expected - _scaled(spec.max_unavailable, expected, budget)
    elif spec.min_available is not None:
        desired = _scaled(spec.min_available, expected, budget)
    else:
        desired = expected
    return max(0, healthy - max(0, desired))


def _scaled(amount: int | str, total: int, budget: PodDisruptionBudget) -> int:
    """Return a number or percentage of ``total``, rounded up."""
    if isinstance(amount, int):
        return amount
    digits = amount.removesuffix("%")
    if digits == amount or not digits.isascii() or not digits.isdigit():
        raise InvalidManifest(
            f"{amount!r} is neither a number nor a percentage",
            where=f"PodDisruptionBudget {budget.metadata.namespace or 'default'}/{budget.metadata.name}",
            fix="write 1 or 50%",
        )
    return -(-int(digits) * total // 100)
