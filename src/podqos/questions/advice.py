"""What ``podqos advise`` reports: the advice as published, why in words, the text for people, and a table.

The shape is stable: fields are added, never renamed or removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.sizing.applying import ContainerAdvice
from podqos.advice.sizing.bounds import Bound, BoundedAmount, QuotaShortfall
from podqos.advice.sizing.coverage import RECOMMENDED, Coverage, Shortfall
from podqos.advice.sizing.goals import Goal
from podqos.advice.sizing.matrix import Because, Description, PriorityTier
from podqos.advice.sizing.memory_need import DecidedBy, MemoryNeed
from podqos.advice.sizing.node_settings import NodeNeeds, NodeThresholds, Setting
from podqos.advice.sizing.runtime_settings import ProgramSetting
from podqos.advice.sizing.severity import Distance, Severity
from podqos.advice.sizing.sizing import Doubt, Percentiles, Share, UsageHistory
from podqos.advice.sizing.tried import AdviceTrial, Fate, Reason, Untried, WorkloadTrial
from podqos.amounts import counted, listed, mebibytes, two_units
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.model.pod import QOSClass
from podqos.model.resources import CPU, MEMORY, ResourceList
from podqos.model.time_units import SECOND_US
from podqos.naming import stated_with
from podqos.orders.drift import ReversedPair, Standing
from podqos.orders.versions import ResizeCost
from podqos.questions.drift import change, worst_score
from podqos.text.style import Style, columns, wrapped
from podqos.text.tables import Table

# ---- the answer ------------------------------------------------------------------------------------------------------


class Amounts(Struct, frozen=True, rename="camel"):
    """Amounts of both resources; below zero, they are freed."""

    cpu_milli: int = 0
    memory_bytes: int = 0

    def __add__(self, other: Amounts) -> Amounts:
        """Return both together."""
        return Amounts(self.cpu_milli + other.cpu_milli, self.memory_bytes + other.memory_bytes)

    def __sub__(self, other: Amounts) -> Amounts:
        """Return by how much these are more."""
        return Amounts(self.cpu_milli - other.cpu_milli, self.memory_bytes - other.memory_bytes)

    def times(self, count: int) -> Amounts:
        """Return so many of them."""
        return Amounts(self.cpu_milli * count, self.memory_bytes * count)


class PodAmounts(Struct, frozen=True, rename="camel"):
    """What one pod requests and is limited to; a limit is missing where a container has none."""

    requests: ResourceList
    limits: ResourceList


class Effect(Struct, frozen=True, rename="camel"):
    """What the advice about a workload frees or adds in requests."""

    now: PodAmounts | None
    """Of one pod; null for a workload that does not exist yet."""
    advised: PodAmounts
    per_replica: Amounts
    total: Amounts | None
    """Null where the number of pods is not known."""


class NodeAdvice(NodeThresholds, frozen=True, rename="camel"):
    """The advised settings of a node's kubelet."""

    reasons: tuple[str, ...]
    configuration: dict[str, Setting]
    """The KubeletConfiguration."""


class WorkloadAdvice(Struct, frozen=True, rename="camel"):
    """What one workload should have."""

    workload: str
    source: str
    description: Description | None
    """Null without a description: then only sizes are advised."""
    like: str
    """The service of the matrix in the same case."""
    because: tuple[Because, ...]
    reasons: tuple[str, ...]
    """The same in words."""
    wanted_class: QOSClass
    before: Standing | None
    after: Standing | None
    priority_class: str | None
    """Null where the priority stays."""
    containers: tuple[ContainerAdvice, ...]
    moved_ahead: tuple[ReversedPair, ...]
    """Workloads it would now be killed or evicted before."""
    moved_back: tuple[ReversedPair, ...]
    refusal: str
    """Why the API server would not store the advised pod; empty where it would."""
    replicas: int | None = None
    """How many pods it has; null for a DaemonSet on nodes that are not known."""
    is_withheld: bool = False
    """Whether its sizes did not pass their trial: then it is advised to stay as it is."""
    distance: Distance | None = None
    """How far it is from what is advised, at its worst."""
    effect: Effect | None = None
    """What it frees or adds."""
    tried: WorkloadTrial | None = None
    """What became of the advice when it was tried; null where nothing changes."""
    resize: ResizeCost | None = None
    """What resizing its running pods in place takes; null where nothing changes."""
    autoscaler: str = ""
    """The HorizontalPodAutoscaler that will make other replicas of the advised requests, at the same load."""


class AdviceReport(Listing[WorkloadAdvice], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos advise -o json``."""

    kubernetes_version: str
    node_memory_bytes: int
    workloads: tuple[WorkloadAdvice, ...] = ()
    priority_classes: tuple[PriorityTier, ...] = ()
    node: NodeAdvice | None = None
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Advice"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""
    goal: Goal | None = None
    tried: AdviceTrial | None = None
    """What became of all of it together; null where nothing changes."""
    total: Amounts | None = None
    """What all of it frees or adds in requests."""
    short_quotas: tuple[QuotaShortfall, ...] = ()
    """Quotas that have less left than is added."""

    def _listed(self) -> tuple[WorkloadAdvice, ...]:
        return self.workloads


# ---- why -------------------------------------------------------------------------------------------------------------

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
    "node: keep BestEffort only if every node can do without it. OKD recommends Guaranteed for DaemonSets",
}
_DOUBTS = {
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
_UNTRIED = {
    Untried.NO_NODES: "no nodes given, so only each pod's own limits were tested",
    Untried.NO_SAMPLES: "no usage given for some of its containers",
    Untried.NO_TIMES: "samples have no timestamps: treated as one per minute",
    Untried.NEED_UNKNOWN: "it was OOM-killed, so it needs more than was measured",
    Untried.TOO_MANY: "too many pods and nodes to test them together",
}
_UNTRIED_AMONG_ALL = {
    **_UNTRIED,
    Untried.NO_SAMPLES: "workloads without usage were not tested",
    Untried.NEED_UNKNOWN: "containers that were OOM-killed need more than was measured",
}
_FAILED = {
    Reason.OOM_KILLED: "OOM-killed",
    Reason.EVICTED: "evicted",
    Reason.THROTTLED: "throttled more than now",
    Reason.REFUSED: "rejected by the API server",
    Reason.FOUND: "warned about",
}


def node_reasons(advice: NodeThresholds, needs: NodeNeeds) -> Iterator[str]:
    """Yield why a node should have these settings."""
    kept, hard = mebibytes(advice.kernel_keeps_bytes), mebibytes(advice.hard_bytes)
    growth = f"{mebibytes(needs.growth)}/s"
    chance = f"the kubelet acts first in {float(advice.hard_wins):.0%} of cases"
    yield f"evictionHard: the kernel kills at {kept}; with {hard}, {chance} if memory grows by {growth}"
    leak = f"{mebibytes(advice.soft_growth_bytes_per_second)}/s"
    grace = f"after its grace period of {needs.soft_grace_seconds} s"
    yield f"evictionSoft: evicts {grace}, before the hard threshold is crossed, if memory grows by at most {leak}"
    yield "kubeReserved: by node size; larger nodes reserve a smaller share"
    system = "measured usage" if needs.system_memory_bytes is not None else "a typical amount"
    yield f"systemReserved: {system} plus the soft threshold, so pods within allocatable never cross it"
    yield "evictionHard lists every signal, because listing one drops the defaults of the others"
    assumed = CheckOptions().growth_bytes_per_second
    if needs.growth < assumed:
        most = f"{needs.growth >> 20}Mi" if needs.growth >> 20 else str(needs.growth)
        option = f"`options: {{growthPerSecond: {most}}}` in .podqos.yaml"
        yield f"podqos check (PQ404) assumes growth of {mebibytes(assumed)}/s; set {option} to match"


def trial_words(trial: WorkloadTrial, usages: Iterable[UsageHistory], *, is_withheld: bool, refusal: str) -> str:
    """Return how the advice about one workload fared; what it requests, assumed to be its usage, tests nothing."""
    known, after = list(usages), trial.after
    if is_withheld:
        return f"not advised: {_why_not(trial, refusal)}"
    if any(usage.memory_bytes for usage in known):
        raised = (
            f"{field.partition('.')[2]} {field.partition('.')[0].removesuffix('s')} of {each.container} raised to "
            f"{each.raised} ({'without one' if each.sized is None else f'at {each.sized}'} it would be "
            f"{_FAILED[each.because]})"
            for each in trial.raised
            for field in (each.field,)
        )
        fate = f"tested: {_fate(after, trial.before)}"
        return "; ".join([fate, *raised, *(_UNTRIED[untried] for untried in trial.untried)])
    said = ["no memory usage given: OOM kills and evictions not tested" if known else "no usage given: not tested"]
    if after.pending:
        said.append(f"{counted(after.pending, 'pod')} pending{_now(after.pending, trial.before.pending)}")
    return "; ".join(said)


def _why_not(trial: WorkloadTrial, refusal: str) -> str:
    if Reason.FOUND in trial.failed:
        return f"podqos check would find: {refusal}"
    if Reason.REFUSED in trial.failed:
        return f"the API server would reject it: {refusal}"
    after, counts = trial.after, []
    if after.oom_kills:
        counts.append(counted(after.oom_kills, "OOM kill"))
    if after.evictions:
        counts.append(counted(after.evictions, "eviction"))
    if Reason.THROTTLED in trial.failed:
        now = _duration(trial.before.throttled_seconds or 0)
        counts.append(f"throttled for {_duration(after.throttled_seconds or 0)} ({now} now)")
    fates = listed([_FAILED[reason] for reason in trial.failed])
    return f"at the computed sizes it would be {fates}{f' ({listed(counts)})' if counts else ''}"


def whole_words(trial: AdviceTrial) -> str:
    """Return how all advice together fared."""
    nodes, after = counted(trial.nodes, "node"), trial.after
    if trial.replayed_seconds is None:
        if not trial.nodes:
            return "No usage given: not tested"
        pending = counted(after.pending, "pod") if after.pending else "no pods"
        now = _now(after.pending or 0, trial.before.pending)
        return f"No usage given: only placement was tested, on {nodes}: {pending} pending{now}"
    where = f"placed on {nodes}" if trial.nodes else "each pod on its own"
    said = f"Tested: {where}, {_duration(trial.replayed_seconds)} of usage replayed: {_fate(after, trial.before)}"
    return "; ".join([said, *(_UNTRIED_AMONG_ALL[untried] for untried in trial.untried)])


def _fate(after: Fate, before: Fate) -> str:
    """Return what happened, beside what happens now where that differs."""
    parts = []
    for count, now, noun in (
        (after.oom_kills, before.oom_kills, "OOM kill"),
        (after.evictions, before.evictions, "eviction"),
    ):
        parts.append(f"{counted(count, noun) if count else f'no {noun}s'}{_now(count or 0, now)}")
    throttled, before_now = after.throttled_seconds or 0, before.throttled_seconds
    is_same = before_now is None or throttled == before_now
    beside = "" if is_same else f" ({_duration(before_now or 0)} now)"
    parts.append(f"{'throttled for ' + _duration(throttled) if throttled else 'never throttled'}{beside}")
    if after.pending:
        parts.append(f"{counted(after.pending, 'pod')} pending{_now(after.pending, before.pending)}")
    return ", ".join(parts)


def _now(after: int, before: int | None) -> str:
    return "" if before is None or before == after else f" ({before} now)"


def _duration(seconds: float) -> str:
    """Return a time in the unit that is easiest to read."""
    if seconds >= 86_400:
        return f"{seconds / 86_400:.3g} days"
    if seconds >= 3600:
        return f"{seconds / 3600:.3g} h"
    return f"{seconds / 60:.3g} min" if seconds >= 60 else f"{seconds:.3g} s"


def _need(need: MemoryNeed) -> str:
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
        seconds = need.life_seconds
        life = f"{seconds / 86_400:.1f} days" if seconds >= 2 * 86_400 else f"{max(1, seconds // 3600)} h"
        growth = mebibytes(need.growth_bytes_a_day)
        return f"needs {wanted}: it grows by {growth} a day, and pods live {life} on average{left}"
    kind = "rare peaks" if need.decided_by is DecidedBy.RARE_PEAKS else "peaks"
    spread = "that spread by" if chance is not None else "and, with so little data, an assumed spread of"
    seen = f"{kind} up to {mebibytes(need.most_bytes)} {spread} {mebibytes(need.spread_bytes)}"
    return f"needs {wanted}: {seen}{left}"


def _bounded(held: BoundedAmount) -> str:
    """Return which bound an amount was held to."""
    if held.bound is Bound.DEFAULT:
        filled = f"without one, {held.by} would default it to {held.wanted}, below the request"
        return f"{held.field} is {held.amount}: {filled}"
    what = f"{held.field} is {held.amount} instead of {held.wanted}"
    if held.bound is Bound.RATIO:
        return f"{what}: {held.by} caps the limit-to-request ratio"
    word = "at least" if held.bound is Bound.LEAST else "at most"
    below = "; it covers the measured usage, without the safety margin" if held.is_below_need else ""
    return f"{what}: {held.by} allows {word} this{below}"


def _setting(setting: ProgramSetting, need: MemoryNeed | None) -> str:
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


def coverage_line(coverage: Coverage) -> str:
    """Return ``7 d 0 h of history, 6,051 samples of 3 replicas, no gaps``: it continues "based on"."""
    if Shortfall.RECOMMENDATION in coverage.shortfalls:
        return "a VerticalPodAutoscaler's recommendation, not measurements"
    if coverage.samples <= 1:
        return "one sample" if coverage.samples else "no samples"
    of = f"{counted(coverage.samples, 'sample')} of {counted(coverage.replicas, 'replica')}"
    if coverage.seconds is None:
        return f"{of}, without times"
    gaps = "no gaps"
    if coverage.gaps:
        longest = two_units(coverage.longest_gap_seconds * SECOND_US)
        gaps = f"{counted(coverage.gaps, 'gap')}, the longest {longest}"
    return f"{two_units(coverage.seconds * SECOND_US)} of history, {of}, {gaps}"


# ---- as text ---------------------------------------------------------------------------------------------------------

_HEADERS = (
    *("WORKLOAD", "PODS", "CPU REQUEST / LIMIT", "MEMORY REQUEST / LIMIT", "CLASS", "EVICTED #", "KILLED #"),
    *("PER POD", "TOTAL", "SEVERITY"),
)
_COLOURED = {Severity.CRITICAL: "error", Severity.WARNING: "warning"}
_MOVES_TOLD = 3


def text(report: AdviceReport, style: Style) -> list[str]:
    """Return the advice about all workloads: a table first, then the reasons."""
    lines = table(report, style)
    for workload in report.workloads:
        lines += ["", style.strong(workload.workload), *_workload_lines(workload, style)]
    for short in report.short_quotas:
        needs = f"the change adds {short.added} of {short.resource}, and only {short.left} is left"
        said = f"ResourceQuota {short.quota} is too small: {needs}; raise it first"
        lines += ["", *wrapped(style.alarm(said), style, "  ", "! ")]
    if report.priority_classes:
        names = ", ".join(f"{tier.name} ({tier.value})" for tier in report.priority_classes)
        prints = f"{stated_with('patch', 'kubectl')} prints how"
        lines += ["", *wrapped(f"Priority classes to create: {names}. {prints}.", style, "")]
    return lines


def table(report: AdviceReport, style: Style) -> list[str]:
    """Return how many workloads should change, a row per workload, and what all of it comes to."""
    if not report.workloads:
        return []
    changing = [workload for workload in report.workloads if workload.tried is not None and not workload.is_withheld]
    every = counted(len(report.workloads), "workload")
    headline = f"No change advised for {every}."
    if changing:
        total = "" if report.total is None else f" Total change in requests: {_amounts(report.total) or 'none'}."
        headline = f"{len(changing)} of {every} should change.{total}"
    rows = [tuple(_row(workload, style)) for workload in report.workloads]
    lines = [*wrapped(headline, style, "  ", ""), "", *columns(_HEADERS, rows, style)]
    for said in _summary(report):
        lines += wrapped(said, style, "  ", "")
    return lines


def _summary(report: AdviceReport) -> Iterator[str]:
    """Yield what the goal makes of all workloads, and how the advice was tried."""
    containers = [container for workload in report.workloads for container in workload.containers]
    if report.goal is Goal.CHEAPEST and not any(each.memory_bytes or each.cpu_milli for each in containers):
        yield "No usage data, so nothing is lowered."
    unknown = [workload.workload for workload in report.workloads if any(map(_is_unknown, workload.containers))]
    if report.goal is not None and unknown:
        yield f"No requests or usage known for {listed(unknown)}: look up the usage (kubectl top pod)."
    if report.tried is not None:
        for name, count in report.tried.pending.items():
            yield f"{counted(count, 'pod')} of {name} would be pending."
        yield f"{report.tried.text}."


def _is_unknown(container: ContainerAdvice) -> bool:
    is_measured = container.memory_bytes is not None or container.cpu_milli is not None
    return container.needs_choice and not (is_measured or container.requests or container.limits)


def _row(workload: WorkloadAdvice, style: Style) -> Iterator[str]:
    before, after, effect = workload.before, workload.after, workload.effect
    assert effect is not None
    yield workload.workload
    yield "?" if workload.replicas is None else str(workload.replicas)
    for resource in (CPU, MEMORY):
        yield change(_pair(effect.now, resource), _pair(effect.advised, resource))
    yield change(before and style.qos_class(before.qos_class), after and style.qos_class(after.qos_class))
    yield change(before and before.eviction_place, after and after.eviction_place)
    yield change(before and before.kernel_place, after and after.kernel_place)
    yield _amounts(effect.per_replica) or "–"
    yield "?" if effect.total is None else _amounts(effect.total) or "–"
    if workload.is_withheld:
        yield style.alarm("not recommended")
    else:
        found = _severity(workload)
        colour = next((colour for severity, colour in _COLOURED.items() if severity == found), "")
        yield style.severity(colour).replace(colour, found) if colour else found


def _severity(workload: WorkloadAdvice) -> str:
    """Return how urgent the advice about a workload is."""
    if any(container.needs_choice for container in workload.containers):
        return "unknown"
    return str(Severity.GOOD if workload.distance is None else workload.distance.severity)


def _amounts(added: Amounts) -> str:
    """Return amounts as more or less; empty where nothing changes."""
    parts = ((added.cpu_milli, f"{abs(added.cpu_milli)}m"), (added.memory_bytes, mebibytes(abs(added.memory_bytes))))
    return ", ".join(f"{'+' if amount > 0 else '−'}{said}" for amount, said in parts if amount)


def _pair(found: PodAmounts | None, resource: str) -> str | None:
    return None if found is None else f"{found.requests.get(resource, '–')} / {found.limits.get(resource, '–')}"


def _workload_lines(workload: WorkloadAdvice, style: Style) -> Iterator[str]:
    """Yield what one workload should have, why, what stays open, and what follows."""
    before, after, tried = workload.before, workload.after, workload.tried
    classes = change(before and style.qos_class(before.qos_class), after and style.qos_class(after.qos_class))
    priorities = change(before and before.priority, after and after.priority)
    scores = change(worst_score(before), worst_score(after))
    named = f" ({workload.priority_class})" if workload.priority_class else ""
    like = f", like {workload.like} in the matrix" if workload.like else ""
    yield f"  {classes}, priority {priorities}{named}, oom_score_adj {scores}{like}"
    for reason in workload.reasons:
        yield from wrapped(reason, style, "    ", "  - ")
    alarms = []
    if workload.is_withheld and tried is not None:
        alarms.append(tried.text)
    elif after is not None and after.qos_class is not workload.wanted_class:
        alarms.append(f"{workload.wanted_class} is not achieved")
    if workload.refusal and not workload.is_withheld:
        alarms.append(f"the API server would reject it: {workload.refusal}")
    for alarm in alarms:
        yield from wrapped(style.alarm(alarm), style, "    ", "  ! ")
    for container in workload.containers:
        yield from _container_lines(container, style, workload.wanted_class)
    if tried is not None and not workload.is_withheld:
        yield from wrapped(tried.text, style, "    ", "  ")
    if workload.autoscaler:
        targets = f"HorizontalPodAutoscaler {workload.autoscaler} targets a share of the request"
        yield from wrapped(f"{targets}: with another request come other replicas", style, "    ", "  ")
    for moves in (workload.moved_back, workload.moved_ahead):
        shown = style.shown(moves, _MOVES_TOLD)
        for move in shown:
            yield from wrapped(move.text, style, "    ", "  → ")
        if len(moves) > len(shown):
            yield f"  → … and {len(moves) - len(shown)} more"


def _container_lines(container: ContainerAdvice, style: Style, qos_class: QOSClass) -> Iterator[str]:
    old_requests, old_limits = container.requests_before, container.limits_before
    requests, limits = container.requests, container.limits
    amounts = []
    for resource in (CPU, MEMORY):
        if any(resource in side for side in (old_requests, old_limits, requests, limits)):
            old = f"{old_requests.get(resource, '–')} / {old_limits.get(resource, '–')}"
            new = f"{requests.get(resource, '–')} / {limits.get(resource, '–')}"
            amounts.append(f"{resource} {change(old, new)}")
    provisional = " (provisional: too little data to lower anything)" if container.is_provisional else ""
    yield f"  {container.container}: {'; '.join(amounts) or 'no requests and no limits'}{provisional}"
    if container.needs_choice:
        known = {CPU: container.cpu_milli, MEMORY: container.memory_bytes}
        lacking = [resource for resource, used in known.items() if used is None and resource not in requests]
        what = f"{' and '.join(lacking or known)} request{'s' if len(lacking) != 1 else ''}"
        yield from wrapped(style.alarm(f"choose its {what}: no measurements"), style, "      ", "    ! ")
    implied: set[Doubt] = set()
    """The doubts that other lines state: nothing was measured at all, or a CPU limit is new."""
    if CPU not in old_limits:
        implied.add(Doubt.CPU_LIMIT_THROTTLES)
        if CPU in limits:
            price = ", required for Guaranteed" if qos_class is QOSClass.GUARANTEED else ""
            said = f"new CPU limit{price}: throttled above {limits[CPU]}"
            yield from wrapped(said, style, "      ", "    ! ")
    if container.memory_bytes is None and container.cpu_milli is None:
        implied |= {Doubt.NO_CPU_SAMPLES, Doubt.NO_MEMORY_SAMPLES}
    if container.coverage == RECOMMENDED:
        implied.add(Doubt.FEW_SAMPLES)
    for line in _seen(container):
        yield from wrapped(line, style, "    ")
    for held in container.bounded:
        yield from wrapped(_bounded(held), style, "      ", "    ")
    if container.setting is not None and container.setting.decides:
        yield from wrapped(_setting(container.setting, container.memory_need), style, "      ", "    ! ")
    for doubt in container.doubts:
        if doubt not in implied:
            yield from wrapped(_DOUBTS[doubt], style, "      ", "    ? ")


def _seen(container: ContainerAdvice) -> Iterator[str]:
    risk, coverage = container.risk, container.coverage
    if Doubt.EXPECTED_ONLY in container.doubts:
        return
    if coverage.samples or coverage.shortfalls:
        yield f"based on {coverage_line(coverage)}"
    if coverage == RECOMMENDED:
        return
    if container.memory_bytes is not None:
        over = f"{_share(risk.memory_over_request)} above the recommended request"
        over = f"{over}, {_share(risk.memory_over_limit)} above the recommended limit"
        yield f"memory used: {_percentiles(container.memory_bytes, is_memory=True)}; {over}"
    if container.memory_need is not None:
        yield f"memory {_need(container.memory_need)}"
    if container.cpu_milli is not None:
        over = f"{_share(risk.cpu_over_request)} above the recommended request"
        over = f"{over}, {_share(risk.cpu_over_limit)} throttled by the recommended limit"
        yield f"cpu used: {_percentiles(container.cpu_milli, is_memory=False)}; {over}"


def _percentiles(found: Percentiles, *, is_memory: bool) -> str:
    values = (("p50", found.p50), ("p95", found.p95), ("p99", found.p99), ("max", found.most))
    return " ".join(f"{name} {mebibytes(value) if is_memory else f'{value}m'}" for name, value in values)


def _share(share: Share | None) -> str:
    if share is None:
        return "?"
    return f"{share.percent:.3g} % ({share.count} of {share.of})" if share.count else "none"


def node_comments(report: NodeAdvice, style: Style) -> list[str]:
    """Return the reasons as comments above a configuration."""
    return [line for reason in report.reasons for line in wrapped(reason, Style(width=style.width or 118), "# ")]


def csv_rows(report: AdviceReport) -> Table:
    """Return a row per container; what is about the workload stands in each of them."""
    amounts = tuple(
        f"{resource}{side}{when}"
        for resource in ("cpu", "memory")
        for side in ("Request", "Limit")
        for when in ("Now", "")
    )
    standing = ("classNow", "class", "evictedNow", "evicted", "killedNow", "killed")
    headings = ("workload", "container", "replicas", "severity", "withheld", *standing, *amounts)
    return (*headings, "addedCpuMilli", "addedMemoryBytes", "tried"), _csv(report.workloads)


def _csv(workloads: Sequence[WorkloadAdvice]) -> Iterator[tuple[object, ...]]:
    for workload in workloads:
        before, after, total = workload.before, workload.after, workload.effect and workload.effect.total
        for each in workload.containers:
            sides = ((each.requests_before, each.requests), (each.limits_before, each.limits))
            yield (
                workload.workload,
                each.container,
                workload.replicas,
                "withheld" if workload.is_withheld else _severity(workload),
                workload.is_withheld,
                before and before.qos_class,
                after and after.qos_class,
                before and before.eviction_place,
                after and after.eviction_place,
                before and before.kernel_place,
                after and after.kernel_place,
                *(amounts.get(resource) for resource in (CPU, MEMORY) for side in sides for amounts in side),
                total and total.cpu_milli,
                total and total.memory_bytes,
                "" if workload.tried is None else workload.tried.text,
            )
