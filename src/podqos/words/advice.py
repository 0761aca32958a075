"""The reasons and doubts of ``podqos advise`` in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podqos.advice.sizing.autoscaled import ReplicaChange
from podqos.advice.sizing.bounds import Bound, BoundedAmount, QuotaShortfall
from podqos.advice.sizing.goals import Goal
from podqos.advice.sizing.matrix import Because
from podqos.advice.sizing.memory_need import DecidedBy, MemoryNeed
from podqos.advice.sizing.node_settings import NodeNeeds, NodeThresholds
from podqos.advice.sizing.runtime_settings import Follows, RuntimeChange
from podqos.advice.sizing.sizing import Doubt
from podqos.model.pod import QOSClass
from podqos.model.quantity import Quantity
from podqos.wording import listed, mebibytes

REASONS = {
    Because.SOMEBODY_WAITS: "users wait for it: Guaranteed, so that it does not depend on what others leave",
    Because.NOBODY_WAITS: "no user waits for it: Burstable, it may use spare capacity and return it",
    Because.NOBODY_MISSES_IT: "no user waits for it and a restart costs nothing: BestEffort, it is killed first",
    Because.KEEPS_STATE: "it keeps state that cannot be rebuilt, which BestEffort would lose first",
    Because.SLOW_START: "it is slow to start, which is a cost of every restart",
    Because.COSTLY_RESTART: "a restart is costly: it outlives others of its kind",
    Because.CHEAP_RESTART: "a restart is cheap: it makes room for pods that are costlier to restart",
    Because.LIMITS_BOUND_BURSTS: "it bursts: limits keep its bursts away from its neighbours",
    Because.NEAREST_ROW: "the matrix has no such row; this is the nearest safe one",
    Because.USES_MEMORY: "it uses memory that BestEffort would not reserve: Burstable, so that the scheduler counts it",
    Because.DAEMON_SET: "as a DaemonSet it is evicted first on every node, and comes back to the same full node: keep "
    "BestEffort only if all nodes can do without it; OKD advises Guaranteed for DaemonSets",
}

DOUBTS = {
    Doubt.FEW_SAMPLES: "fewer than 100 samples: rare peaks may be missing",
    Doubt.NEED_UNKNOWN: "it was OOM-killed: it needs more than was measured, how much is unknown; measure again later",
    Doubt.EXPECTED_ONLY: "nothing was measured: the amounts are expectations",
    Doubt.NO_CPU_SAMPLES: "no samples of cpu: its amounts stay as they are",
    Doubt.NO_MEMORY_SAMPLES: "no samples of memory: its amounts stay as they are",
    Doubt.SHORT_HISTORY: "less than a day of history: the busiest hour may be missing",
    Doubt.GAPS: "the history has large gaps: peaks may be missing",
    Doubt.GROWS: "it uses more memory every day for as long as it runs: a limit only delays the OOM kill",
    Doubt.CPU_LIMIT_THROTTLES: "Guaranteed needs a CPU limit: beyond it the container is throttled",
}


def goal_words(goal: Goal | None, without_amounts: Sequence[str], *, is_measured: bool) -> Iterator[str]:
    """Yield what a goal cannot reach, and what to look up for it."""
    if goal is Goal.CHEAPEST and not is_measured:
        yield "No usage data, so nothing is lowered."
    if goal is not None and without_amounts:
        who = listed(without_amounts)
        yield f"No amounts are known for {who}: look up the usage (kubectl top pod)."


def need_words(need: MemoryNeed) -> str:
    """Return why a container needs so much memory, in one line."""
    # As it is advised: whole mebibytes, rounded up.
    wanted = f"{-(-need.need_bytes // (1 << 20))}Mi"
    if need.decided_by is DecidedBy.EXPECTATION:
        return f"needs {wanted}: a fifth above what it is expected to use"
    chance = need.kill_chance_percent
    left = "" if chance is None else f"; {chance:.2g} % chance of an OOM kill per pod over another such period"
    if need.decided_by is DecidedBy.OOM_KILLS:
        return f"needs {wanted}: it was OOM-killed at {mebibytes(need.most_bytes)}, so it needs more than that{left}"
    if need.decided_by is DecidedBy.GROWTH:
        lives = f"pods live {days_text(need.life_seconds)} on average"
        return f"needs {wanted}: it grows by {mebibytes(need.growth_bytes_a_day)} a day, and {lives}{left}"
    kind = "rare peaks" if need.decided_by is DecidedBy.RARE_PEAKS else "peaks"
    spread = "that spread by" if chance is not None else "and, with so little data, an assumed spread of"
    seen = f"{kind} up to {mebibytes(need.most_bytes)} {spread} {mebibytes(need.spread_bytes)}"
    return f"needs {wanted}: {seen}{left}"


def days_text(seconds: int) -> str:
    """Return how long, in days or hours."""
    return f"{seconds / 86_400:.1f} days" if seconds >= 2 * 86_400 else f"{max(1, seconds // 3600)} h"


def bounded_words(change: BoundedAmount) -> str:
    """Return which bound an amount was held to."""
    if change.bound is Bound.DEFAULT:
        filled = f"without it {change.by} would fill in {change.wanted}, less than the request"
        return f"{change.field} is {change.amount}: {filled}"
    what = f"{change.field} is {change.amount} and not {change.wanted}"
    if change.bound is Bound.RATIO:
        return f"{what}: {change.by} bounds the ratio of limit to request"
    word = "at least" if change.bound is Bound.LEAST else "at most"
    below = "; that covers what was used, but not the margin" if change.is_below_need else ""
    return f"{what}: {change.by} allows {word} that{below}"


def runtime_words(change: RuntimeChange) -> str:
    """Return how a runtime's setting follows the limit."""
    where = f" in {change.variable}" if change.variable and not change.before.startswith(change.variable) else ""
    if change.because is Follows.UNKNOWN:
        return f"{change.before} comes from {change.held_by}: change it there together with the limit"
    return f"{change.before} → {change.after}{where}: {change.runtime} has to leave room for the rest of its process"


def autoscaled_words(change: ReplicaChange) -> str:
    """Return what an autoscaler makes of new requests."""
    who = (
        f"HorizontalPodAutoscaler {change.autoscaler} aims at {change.target_percent} % of requested {change.resource}"
    )
    if change.replicas == change.replicas_before:
        return f"{who}: {change.replicas} replicas stay"
    most = ", its maximum" if change.is_at_most else ""
    keep = f"a target of {change.same_target_percent} % keeps the load per pod as it is"
    return f"{who}: replicas {change.replicas_before} → {change.replicas}{most}; {keep}"


def quota_words(shortfall: QuotaShortfall) -> str:
    """Return which quota is too small."""
    needs = f"{shortfall.added} of {shortfall.resource} are added, and {shortfall.left} are left"
    return f"ResourceQuota {shortfall.quota} is too small: {needs}; raise it first"


def new_cpu_limit(limit: Quantity, qos_class: QOSClass) -> str:
    """Return what a CPU limit costs that there was not before."""
    price = ", required for Guaranteed" if qos_class is QOSClass.GUARANTEED else ""
    return f"new CPU limit{price}: throttled above {limit}"


def node_reasons(advice: NodeThresholds, needs: NodeNeeds) -> Iterator[str]:
    """Yield why a node should have these settings."""
    kept, hard = mebibytes(advice.kernel_keeps_bytes), mebibytes(advice.hard_bytes)
    chance = f"the kubelet acts first with a probability of {float(advice.hard_wins):.0%}"
    yield f"evictionHard: the kernel kills at {kept}; with {hard} {chance} while memory grows by {_rate(needs.growth)}"
    leak = _rate(advice.soft_growth_bytes_per_second)
    grace = f"after {needs.soft_grace_seconds} s of grace"
    yield f"evictionSoft: acts, {grace}, before the hard threshold does, while memory grows by no more than {leak}"
    yield "kubeReserved: by the size of the node; larger nodes reserve a smaller share"
    system = "what was measured" if needs.system_memory_bytes is not None else "a usual amount for the system"
    yield f"systemReserved: {system}, and the soft thresholds, so that pods within their allocatable never meet them"
    yield "evictionHard names every signal, because naming one drops the defaults of the others"
    yield from _checked_otherwise(needs.growth)


def _checked_otherwise(growth: int) -> Iterator[str]:
    """Yield that ``check`` asks for more, where it does, and how the two agree."""
    from podqos.advice.checks.bundle import CheckOptions

    assumed = CheckOptions().growth_bytes_per_second
    if growth < assumed:
        most = f"{growth >> 20}Mi" if growth >> 20 else str(growth)
        option = f"`options: {{growthPerSecond: {most}}}` in .podqos.yaml"
        yield f"podqos check (PQ404) assumes that memory grows by {_rate(assumed)}; {option} makes it agree"


def _rate(bytes_per_second: int) -> str:
    return f"{mebibytes(bytes_per_second)}/s"
