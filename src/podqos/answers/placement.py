"""The output of ``podqos place`` as a value: the documented JSON shape, from which all other outputs follow.

The decisions come from ``placement``; this module only collects them. The shape is stable: fields are added, never
renamed or removed, and ``docs/schema/place.json`` is made from these classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from msgspec import Struct

from podqos.model.assumption import Assumption
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.listing import Listing
from podqos.model.pod import QOSClass
from podqos.model.resources import MEMORY
from podqos.placement.allocatable import SoftCoverage
from podqos.placement.class_ceilings import ClassCeilings, class_ceilings
from podqos.placement.demand import Amounts
from podqos.placement.node_state import SchedulerNode
from podqos.placement.outcome import Displacement, Outcome, Placement, Status
from podqos.placement.overcommit import Overcommit, largest_shares, overcommit
from podqos.placement.reasons import Reason
from podqos.placement.score import NodeScore
from podqos.placement.waiting import affinity_waits
from podqos.words.placement import refusal_message
from podqos.words.placement_reasons import amount_text

# A large cluster has too many reasons to read: messages are computed for so many pairs of a kind of pending pod and a
# node, and listed node by node for so many.
_MESSAGES_UP_TO = 500_000
_REASONS_UP_TO = 100_000
_LARGEST_SHARES = 5


class OvercommitReport(Struct, frozen=True, rename="camel"):
    """One resource of one node: the three ratios, and the pods behind them."""

    limits: str
    limits_to_allocatable: float | None
    limits_to_requests: float | None
    others_limits_to_what_guaranteed_leave: float | None
    budget: float | None
    """For limits to allocatable."""
    exceeds_budget: bool
    pods_without_limit: int
    largest_beyond_request: dict[str, str] = {}
    """Where the budget is exceeded: the pods whose limits exceed their requests most, and by how much."""
    guaranteed_leave: str = ""
    """Allocatable less what Guaranteed pods request."""


class NodeReport(Struct, frozen=True, rename="camel"):
    """One node with all its pods."""

    name: str
    pods: int
    allowed_pods: int
    allocatable: dict[str, str]
    requested: dict[str, str]
    fullness: dict[str, float]
    """Requested against allocatable."""
    overcommit: dict[str, OvercommitReport]
    memory_ceilings: dict[str, str] = {}
    """With ``qosReserved``: what the pods of a class may use together, by class."""
    remaining: dict[str, str] = {}
    """Allocatable less requested: what is left to place. Negative where pods were bound to a node that is full."""


class PodReport(Struct, frozen=True, gc=False, rename="camel"):
    """Where one pod is placed."""

    namespace: str
    name: str
    workload: str
    """``Deployment/web``; for a bare pod ``Pod/web``."""
    status: Status
    node: str | None
    scores: tuple[NodeScore, ...] = ()
    """Of every node that would have done when the pod was placed, by name; empty for bound pods and large clusters."""
    equally_good: tuple[str, ...] = ()
    """The nodes with the highest score, if several: podqos takes the first, the real scheduler picks at random."""


class NodeReasons(Struct, frozen=True):
    """Why one node refuses a pod."""

    node: str
    reasons: tuple[Reason, ...]


class PendingReport(Struct, frozen=True, rename="camel"):
    """Pods that are pending for the same reason."""

    pods: tuple[str, ...]
    workloads: tuple[str, ...]
    message: str | None
    """What the scheduler would say; null if not computed because there are too many."""
    nodes: tuple[NodeReasons, ...]
    """Empty if there are too many."""
    waits_for: tuple[str, ...] = ()
    """Pending pods that their affinity requires."""
    circle: tuple[str, ...] = ()
    """Pods of which each waits for the next, and the last for the first."""
    nobody_matches: bool = False
    """Their affinity matches no pod."""


class PlacementReport(Listing[PodReport], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos place -o json``."""

    nodes: tuple[NodeReport, ...]
    pods: tuple[PodReport, ...]
    pending: tuple[PendingReport, ...]
    displaced: tuple[Displacement, ...]
    soft_thresholds: tuple[SoftCoverage, ...]
    """Those that pods within their allocatable can meet."""
    kubernetes_version: str
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Placement"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""

    def _listed(self) -> tuple[PodReport, ...]:
        return self.pods


def report(
    placement: Placement,
    workloads: Mapping[str, str],
    budgets: Mapping[str, Fraction],
    coverage: tuple[SoftCoverage, ...] = (),
    *,
    config: KubeletConfiguration | None = None,
    assumptions: tuple[Assumption, ...] = (),
) -> PlacementReport:
    """Collect the results. ``workloads`` names the workload of every pod by the pod's key."""
    profile = placement.cluster.profile
    return PlacementReport(
        nodes=tuple(
            _node(state, budgets, None if config is None else class_ceilings(state, config, profile))
            for state in placement.cluster.states
        ),
        pods=tuple(_pod(outcome, workloads, placement.scores.get(outcome.pod, ())) for outcome in placement.outcomes),
        pending=tuple(_pending(placement, workloads)),
        displaced=placement.displacements,
        soft_thresholds=tuple(soft_coverage for soft_coverage in coverage if not soft_coverage.is_covered),
        kubernetes_version=profile.version_text,
        assumptions=assumptions,
    )


def _node(state: SchedulerNode, budgets: Mapping[str, Fraction], ceilings: ClassCeilings | None) -> NodeReport:
    ratios = overcommit(state, budgets)
    return NodeReport(
        name=state.name,
        pods=len(state.pods),
        allowed_pods=state.allowed_pods,
        allocatable=_texts(state.allocatable),
        requested=_texts(state.requested),
        fullness={ratio.resource: _float(ratio.fullness) or 0.0 for ratio in ratios},
        overcommit={ratio.resource: _overcommit(ratio, state) for ratio in ratios},
        memory_ceilings={}
        if ceilings is None
        else {
            QOSClass.BURSTABLE: amount_text(MEMORY, ceilings.burstable_bytes),
            QOSClass.BEST_EFFORT: amount_text(MEMORY, ceilings.best_effort_bytes),
        },
        remaining=_texts({name: of - state.requested.get(name, 0) for name, of in state.allocatable.items()}),
    )


def _overcommit(ratio: Overcommit, state: SchedulerNode) -> OvercommitReport:
    shares = largest_shares(state, ratio.resource)[:_LARGEST_SHARES] if ratio.exceeds_budget else []
    return OvercommitReport(
        limits=amount_text(ratio.resource, ratio.limits),
        limits_to_allocatable=_float(ratio.limits_to_allocatable),
        limits_to_requests=_float(ratio.limits_to_requests),
        others_limits_to_what_guaranteed_leave=_float(ratio.others_to_rest),
        budget=_float(ratio.budget),
        exceeds_budget=ratio.exceeds_budget,
        pods_without_limit=len(ratio.unlimited),
        largest_beyond_request={share.pod: amount_text(ratio.resource, share.beyond_request) for share in shares},
        guaranteed_leave=amount_text(ratio.resource, ratio.remaining),
    )


def _pod(outcome: Outcome, workloads: Mapping[str, str], scores: tuple[NodeScore, ...]) -> PodReport:
    namespace, _, name = outcome.pod.partition("/")
    workload = workloads.get(outcome.pod, f"Pod/{name}")
    highest = max((score.total for score in scores), default=0)
    best = tuple(score.node for score in scores if score.total == highest)
    equally_good = best if len(best) > 1 else ()
    return PodReport(namespace, name, workload, outcome.status, outcome.node, scores, equally_good)


def _pending(placement: Placement, workloads: Mapping[str, str]) -> Iterator[PendingReport]:
    waits = {wait.pod: wait for wait in affinity_waits(placement)}
    nodes = max(1, len(placement.cluster.states))
    for number, group in enumerate(placement.alike()):
        refusal = placement.refusal(group[0]) if number * nodes < _MESSAGES_UP_TO else None
        told = refusal.nodes if refusal is not None and number * nodes < _REASONS_UP_TO else ()
        wait = waits.get(group[0].key)
        yield PendingReport(
            pods=tuple(view.key for view in group),
            workloads=tuple(dict.fromkeys(f"{view.namespace}/{workloads.get(view.key, '')}" for view in group)),
            message=None if refusal is None else refusal_message(refusal),
            nodes=tuple(NodeReasons(node.node, node.reasons) for node in told),
            waits_for=() if wait is None else wait.waits_for,
            circle=() if wait is None else wait.circle,
            nobody_matches=wait is not None and not wait.waits_for,
        )


def _texts(amounts: Amounts) -> dict[str, str]:
    return {name: amount_text(name, count) for name, count in sorted(amounts.items())}


def _float(ratio: Fraction | None) -> float | None:
    return None if ratio is None else round(float(ratio), 4)
