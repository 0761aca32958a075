"""Recommend class and priority from the description of a workload: a table of cases, with reasons.

Three questions decide: do users wait for it, what does a restart cost, how does it burst. The rows are those of a
content platform's practice (``MATRIX``, with the services they were made for); cases between the rows take the
nearest one and say so. BestEffort is for expendable workloads: not for user traffic, not for state that cannot be
rebuilt, not for what is slow to start, not for what was measured to use more than a little memory.

Priorities are far apart so that others fit between them. How much of what a workload asks for is in ``sizing``.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from podqos.model.pod import QOSClass


class RestartCost(StrEnum):
    """What it costs to lose an instance."""

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class BurstPattern(StrEnum):
    """How its use of the node varies."""

    STEADY = "steady"
    SPIKY = "spiky"
    """Short peaks that users wait for."""
    BURSTY = "bursty"
    """Long stretches of high usage, then of low."""


class Description(Struct, frozen=True, rename="camel"):
    """A workload as its owners describe it."""

    latency_sensitive: bool
    restart_cost: RestartCost = RestartCost.LOW
    burst_pattern: BurstPattern = BurstPattern.STEADY
    keeps_state: bool = False
    """Whether it holds state that cannot be rebuilt."""
    slow_start: bool = False
    """Whether it takes a while to become useful after a start."""


class Because(StrEnum):
    """Why something is recommended."""

    SOMEBODY_WAITS = "SomebodyWaits"
    """Latency-sensitive: it must not depend on what its neighbours leave over, so it is Guaranteed."""
    NOBODY_WAITS = "NobodyWaits"
    """Not latency-sensitive: it may use what is left over, and free it again: Burstable."""
    NOBODY_MISSES_IT = "NobodyMissesIt"
    """No user waits and a restart costs nothing: it needs no guarantees, so it is BestEffort."""
    KEEPS_STATE = "KeepsState"
    """State that cannot be rebuilt rules BestEffort out."""
    SLOW_START = "SlowStart"
    """A cold start is a cost of restarting, which rules BestEffort out."""
    COSTLY_RESTART = "CostlyRestart"
    """The costlier a restart, the higher the priority."""
    CHEAP_RESTART = "CheapRestart"
    """It is soon back, so a lower priority will do."""
    LIMITS_BOUND_BURSTS = "LimitsBoundBursts"
    """It bursts: an explicit limit keeps the bursts from its neighbours."""
    NEAREST_ROW = "NearestRow"
    """The table has no such row: this is the nearest one on the safe side."""
    USES_MEMORY = "UsesMemory"
    """It was measured to use memory that BestEffort would not reserve: Burstable."""
    DAEMON_SET = "DaemonSet"
    """BestEffort on every node, and replaced on the same node that has just evicted it."""


class PriorityTier(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A priority with a name, as a PriorityClass."""

    name: str
    value: int
    description: str
    is_default: bool = False


LATENCY_CRITICAL = PriorityTier("latency-critical", 1_000_000, "Users notice immediately when these stop.")
USER_FACING = PriorityTier("user-facing", 500_000, "Serves users, but restarts quickly.")
INDEXING = PriorityTier("indexing", 200_000, "Background work that is expensive to restart.")
BATCH = PriorityTier("batch-processing", 100_000, "Work that can be stopped and repeated at any time.")
DEFAULT = PriorityTier("default", 0, "Everything else.", is_default=True)


class MatrixRow(Struct, frozen=True):
    """A row of the matrix: a service, its description, and what it gets."""

    service: str
    description: Description
    qos_class: QOSClass
    tier: PriorityTier


def _row(
    service: str, sensitive: bool, cost: RestartCost, burst: BurstPattern, gets: tuple[QOSClass, PriorityTier]
) -> MatrixRow:
    return MatrixRow(service, Description(sensitive, cost, burst), *gets)


_COST, _BURST, _CLASS = RestartCost, BurstPattern, QOSClass

MATRIX = (
    _row("article-service", True, _COST.HIGH, _BURST.STEADY, (_CLASS.GUARANTEED, LATENCY_CRITICAL)),
    _row("search-api", True, _COST.MEDIUM, _BURST.SPIKY, (_CLASS.GUARANTEED, LATENCY_CRITICAL)),
    _row("cdn-origin", True, _COST.LOW, _BURST.STEADY, (_CLASS.GUARANTEED, USER_FACING)),
    _row("analytics-pipeline", False, _COST.LOW, _BURST.BURSTY, (_CLASS.BURSTABLE, BATCH)),
    _row("content-generator", False, _COST.LOW, _BURST.BURSTY, (_CLASS.BURSTABLE, BATCH)),
    _row("search-indexer", False, _COST.MEDIUM, _BURST.BURSTY, (_CLASS.BURSTABLE, INDEXING)),
    _row("log-collector", False, _COST.NONE, _BURST.STEADY, (_CLASS.BEST_EFFORT, DEFAULT)),
    _row("debug-tools", False, _COST.NONE, _BURST.STEADY, (_CLASS.BEST_EFFORT, DEFAULT)),
)


class Recommendation(Struct, frozen=True):
    """What a workload should have, and why."""

    qos_class: QOSClass
    tier: PriorityTier
    because: tuple[Because, ...]
    like: str = ""
    """The service of the matrix in the same case; empty where there is none."""


# What a container is taken to use where nothing is known: as much may go unreserved.
_LITTLE_BYTES = 64 << 20


def recommend(description: Description, *, used_bytes: int = 0, is_daemon_set: bool = False) -> Recommendation:
    """Return the class and priority for a workload; ``used_bytes`` is the most memory that it was measured to use."""
    found = _by_table(description)
    if found.qos_class is not QOSClass.BEST_EFFORT:
        return found
    if used_bytes > _LITTLE_BYTES:
        return Recommendation(QOSClass.BURSTABLE, found.tier, (Because.USES_MEMORY,))
    if is_daemon_set:
        return Recommendation(found.qos_class, found.tier, (*found.because, Because.DAEMON_SET), found.like)
    return found


def _by_table(description: Description) -> Recommendation:
    cost = _cost(description)
    because: list[Because] = []
    if description.latency_sensitive:
        because.append(Because.SOMEBODY_WAITS)
        is_costly = cost in {RestartCost.HIGH, RestartCost.MEDIUM}
        qos_class, tier = QOSClass.GUARANTEED, LATENCY_CRITICAL if is_costly else USER_FACING
    elif cost is RestartCost.NONE:
        because.append(Because.NOBODY_MISSES_IT)
        qos_class, tier = QOSClass.BEST_EFFORT, DEFAULT
    else:
        because.append(Because.NOBODY_WAITS)
        is_costly = cost in {RestartCost.HIGH, RestartCost.MEDIUM}
        qos_class, tier = QOSClass.BURSTABLE, INDEXING if is_costly else BATCH
    because += _more_reasons(description, cost, qos_class)
    like = next((row.service for row in MATRIX if row.description == description), "")
    # How something bursts changes sizes, not class or priority.
    case = (qos_class, tier, cost)
    if not like and all((row.qos_class, row.tier, row.description.restart_cost) != case for row in MATRIX):
        because.append(Because.NEAREST_ROW)
    return Recommendation(qos_class, tier, tuple(because), like)


def _cost(description: Description) -> RestartCost:
    """Return the cost of a restart; state or a cold start always costs something."""
    if description.keeps_state and description.restart_cost in {RestartCost.NONE, RestartCost.LOW}:
        return RestartCost.MEDIUM
    if description.slow_start and description.restart_cost is RestartCost.NONE:
        return RestartCost.LOW
    return description.restart_cost


def _more_reasons(description: Description, cost: RestartCost, qos_class: QOSClass) -> list[Because]:
    reasons = []
    if description.keeps_state:
        reasons.append(Because.KEEPS_STATE)
    if description.slow_start:
        reasons.append(Because.SLOW_START)
    if qos_class is not QOSClass.BEST_EFFORT:
        is_costly = cost in {RestartCost.HIGH, RestartCost.MEDIUM}
        reasons.append(Because.COSTLY_RESTART if is_costly else Because.CHEAP_RESTART)
        if description.burst_pattern is not BurstPattern.STEADY:
            reasons.append(Because.LIMITS_BOUND_BURSTS)
    return reasons
