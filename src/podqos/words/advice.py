"""The reasons and doubts of ``podqos advise`` in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podqos.advice.sizing.bounds import Bound, BoundedAmount, QuotaShortfall
from podqos.advice.sizing.goals import Goal
from podqos.advice.sizing.matrix import Because
from podqos.advice.sizing.memory_need import DecidedBy, MemoryNeed
from podqos.advice.sizing.node_settings import NodeNeeds, NodeThresholds
from podqos.advice.sizing.runtime_settings import ProgramSetting
from podqos.advice.sizing.sizing import Doubt
from podqos.model.pod import QOSClass
from podqos.model.quantity import Quantity
from podqos.wording import listed, mebibytes

REASONS = {
    Because.SOMEBODY_WAITS: "users wait for it: Guaranteed, so it never depends on spare capacity",
    Because.NOBODY_WAITS: "no user waits for it: Burstable, so it can borrow spare capacity and give it back",
    Because.NOBODY_MISSES_IT: "no user waits for it and a restart costs nothing: BestEffort, the first to be evicted "
    "or killed",
    Because.KEEPS_STATE: "it holds state that can't be rebuilt, and BestEffort pods are evicted or killed first",
    Because.SLOW_START: "it starts slowly, so every restart is expensive",
    Because.COSTLY_RESTART: "a restart is expensive: it is evicted after others of its class",
    Because.CHEAP_RESTART: "a restart is cheap: it is evicted before pods that are expensive to restart",
    Because.LIMITS_BOUND_BURSTS: "it bursts: limits protect its neighbours",
    Because.NEAREST_ROW: "no row of the matrix matches; this is the nearest safe one",
    Because.USES_MEMORY: "it uses memory that BestEffort would not reserve: Burstable, so the scheduler accounts for "
    "it",
    Because.DAEMON_SET: "as a BestEffort DaemonSet it is evicted first on every node and returns to the same full "
    "node: keep "
    "BestEffort only if every node can do without it. OKD recommends Guaranteed for DaemonSets",
}

DOUBTS = {
    Doubt.FEW_SAMPLES: "fewer than 100 samples: rare peaks may be missing",
    Doubt.NEED_UNKNOWN: "it was OOM-killed, so it needs more than was measured; measure again after the change",
    Doubt.EXPECTED_ONLY: "no measurements: the sizes come from the description",
    Doubt.NO_CPU_SAMPLES: "no CPU samples: CPU request and limit are unchanged",
    Doubt.NO_MEMORY_SAMPLES: "no memory samples: memory request and limit are unchanged",
    Doubt.SHORT_HISTORY: "less than a day of history: the busiest hour may be missing",
    Doubt.GAPS: "the history has large gaps: peaks may be missing",
    Doubt.GROWS: "its memory grows every day (a leak?): a limit only delays the OOM kill",
    Doubt.CPU_LIMIT_THROTTLES: "Guaranteed needs a CPU limit, and the container is throttled above it",
}


def goal_words(goal: Goal | None, without_amounts: Sequence[str], *, is_measured: bool) -> Iterator[str]:
    """Yield what a goal cannot reach, and what to look up for it."""
    if goal is Goal.CHEAPEST and not is_measured:
        yield "No usage data, so nothing is lowered."
    if goal is not None and without_amounts:
        who = listed(without_amounts)
        yield f"No requests or usage known for {who}: look up the usage (kubectl top pod)."


def need_words(need: MemoryNeed) -> str:
    """Return why a container needs so much memory, in one line."""
    # As it is advised: whole mebibytes, rounded up.
    wanted = f"{-(-need.need_bytes // (1 << 20))}Mi"
    if need.decided_by is DecidedBy.EXPECTATION:
        return f"needs {wanted}: expected usage plus 20 %"
    chance = need.kill_chance_percent
    left = "" if chance is None else f"; {chance:.2g} % chance of an OOM kill per pod over the same period"
    if need.decided_by is DecidedBy.OOM_KILLS:
        return f"needs {wanted}: it was OOM-killed at {mebibytes(need.most_bytes)}, so it needs more{left}"
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
        filled = f"without one, {change.by} would default it to {change.wanted}, below the request"
        return f"{change.field} is {change.amount}: {filled}"
    what = f"{change.field} is {change.amount} instead of {change.wanted}"
    if change.bound is Bound.RATIO:
        return f"{what}: {change.by} caps the limit-to-request ratio"
    word = "at least" if change.bound is Bound.LEAST else "at most"
    below = "; it covers the measured usage, without the safety margin" if change.is_below_need else ""
    return f"{what}: {change.by} allows {word} this{below}"


def setting_words(setting: ProgramSetting, need: MemoryNeed | None) -> str:
    """Return why the memory limit is not what usage asks for, and who decides about that."""
    limit = "the memory limit is not lowered" if setting.least_limit_bytes else "no memory limit is added"
    if setting.runtime is None:
        return f"{limit}: what its heap or cache is set to is not read from a cluster; give its manifest"
    name = setting.variable
    said = f"{setting.setting} in {name}" if name and not setting.setting.startswith(name) else setting.setting
    if setting.held_by:
        return f"{limit}: {said} comes from {setting.held_by}, and what it allows is not known here"
    measured = "nothing was measured" if need is None else f"at most {mebibytes(need.most_bytes)} was measured"
    least = mebibytes(setting.least_limit_bytes or 0)
    if setting.share_percent is not None:
        lets = f"{said}: {setting.runtime} may use {setting.share_percent}% of its limit, and {measured}"
        return f"{lets}: a limit below {least} could make that too small; the program's owner decides"
    lets = f"{said} lets {setting.runtime} use {mebibytes(setting.amount_bytes or 0)}, and {measured}"
    return f"{lets}: the memory limit has to be at least {least} until the program's owner lowers the setting"


def autoscaler_words(name: str) -> str:
    """Return that replicas do not stay what they are."""
    return f"HorizontalPodAutoscaler {name} targets a share of the request: with another request come other replicas"


def quota_words(shortfall: QuotaShortfall) -> str:
    """Return which quota is too small."""
    needs = f"the change adds {shortfall.added} of {shortfall.resource}, and only {shortfall.left} is left"
    return f"ResourceQuota {shortfall.quota} is too small: {needs}; raise it first"


def new_cpu_limit(limit: Quantity, qos_class: QOSClass) -> str:
    """Return what a CPU limit costs that there was not before."""
    price = ", required for Guaranteed" if qos_class is QOSClass.GUARANTEED else ""
    return f"new CPU limit{price}: throttled above {limit}"


def node_reasons(advice: NodeThresholds, needs: NodeNeeds) -> Iterator[str]:
    """Yield why a node should have these settings."""
    kept, hard = mebibytes(advice.kernel_keeps_bytes), mebibytes(advice.hard_bytes)
    chance = f"the kubelet acts first in {float(advice.hard_wins):.0%} of cases"
    yield f"evictionHard: the kernel kills at {kept}; with {hard}, {chance} if memory grows by {_rate(needs.growth)}"
    leak = _rate(advice.soft_growth_bytes_per_second)
    grace = f"after its grace period of {needs.soft_grace_seconds} s"
    yield f"evictionSoft: evicts {grace}, before the hard threshold is crossed, if memory grows by at most {leak}"
    yield "kubeReserved: by node size; larger nodes reserve a smaller share"
    system = "measured usage" if needs.system_memory_bytes is not None else "a typical amount"
    yield f"systemReserved: {system} plus the soft threshold, so pods within allocatable never cross it"
    yield "evictionHard lists every signal, because listing one drops the defaults of the others"
    yield from _checked_otherwise(needs.growth)


def _checked_otherwise(growth: int) -> Iterator[str]:
    """Yield that ``check`` asks for more, where it does, and how the two agree."""
    from podqos.advice.checks.bundle import CheckOptions

    assumed = CheckOptions().growth_bytes_per_second
    if growth < assumed:
        most = f"{growth >> 20}Mi" if growth >> 20 else str(growth)
        option = f"`options: {{growthPerSecond: {most}}}` in .podqos.yaml"
        yield f"podqos check (PQ404) assumes growth of {_rate(assumed)}; set {option} to match"


def _rate(bytes_per_second: int) -> str:
    return f"{mebibytes(bytes_per_second)}/s"
