"""Size a container's requests and limits from what it used, by the class it is to have.

Memory is what it will need (``memory_need``). CPU follows percentiles by nearest rank: a value that was measured, no
interpolation. The policy of each class (``POLICIES``)::

    Guaranteed   memory  request = limit = the need              cpu  request = limit = most + 15 %
    Burstable    memory  request p95 + 10 %, limit the need      cpu  request p95 (bursty: p50), no limit
    BestEffort   nothing

No CPU limit is added but where the class demands one, because it throttles; one that is there stays, and is raised to
p99 + 20 % where usage comes that close. With too little data nothing gets smaller than it is today: amounts are taken
from the most that was used, and a missing limit stays missing.

A container that was OOM-killed was stopped at its limit: what it would have used is not in the samples, and its need
stays unknown. The remaining risk is counted from the same samples, so it only holds if the future is like the past.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from fractions import Fraction

from msgspec import Struct

from podqos.advice.sizing.coverage import LEAST_SAMPLES, NO_COVERAGE, Coverage, Shortfall
from podqos.advice.sizing.matrix import BurstPattern
from podqos.advice.sizing.memory_need import (
    USUAL,
    Caution,
    MemoryNeed,
    MemorySeen,
    Replica,
    expected_need,
    memory_need,
)
from podqos.model.pod import QOSClass
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, NO_RESOURCES, ResourceRequirements

MIB = 1 << 20
_CPU_STEP_MILLI = 10
MOST = 100
"""The percentile that is the largest value."""
_ENOUGH_RUNS = 10
"""Of a Job, however short they are."""


class SizingRule(Struct, frozen=True):
    """An amount: a percentile, and a margin on top."""

    percentile: int
    margin_percent: int = 0


class SizingPolicy(Struct, frozen=True):
    """How the amounts of a container follow from its samples, but for a limit of memory, which is its need."""

    memory_request: SizingRule | None
    """None: as much as its limit."""
    cpu_request: SizingRule
    cpu_limit: SizingRule
    """Of a limit that has to be, or that is there."""


_GUARANTEED = SizingPolicy(None, SizingRule(MOST, 15), SizingRule(MOST, 15))
_BURSTABLE = SizingPolicy(SizingRule(95, 10), SizingRule(95), SizingRule(99, 20))

POLICIES: Mapping[tuple[QOSClass, BurstPattern], SizingPolicy] = {
    (QOSClass.GUARANTEED, BurstPattern.STEADY): _GUARANTEED,
    (QOSClass.GUARANTEED, BurstPattern.SPIKY): _GUARANTEED,
    (QOSClass.GUARANTEED, BurstPattern.BURSTY): _GUARANTEED,
    (QOSClass.BURSTABLE, BurstPattern.STEADY): _BURSTABLE,
    (QOSClass.BURSTABLE, BurstPattern.SPIKY): _BURSTABLE,
    (QOSClass.BURSTABLE, BurstPattern.BURSTY): SizingPolicy(SizingRule(95, 10), SizingRule(50), SizingRule(99, 20)),
}


class Doubt(StrEnum):
    """What makes a size uncertain."""

    FEW_SAMPLES = "FewSamples"
    """Too few for the percentiles: rare values have hardly been seen."""
    NEED_UNKNOWN = "NeedUnknown"
    """It was OOM-killed: it needs more than was ever measured, and how much is unknown."""
    EXPECTED_ONLY = "ExpectedOnly"
    """Nothing was measured: the amounts are an expectation."""
    NO_CPU_SAMPLES = "NoCPUSamples"
    NO_MEMORY_SAMPLES = "NoMemorySamples"
    SHORT_HISTORY = "ShortHistory"
    """Less than a day: the busy hour may be missing."""
    GAPS = "Gaps"
    """Too much of the history is missing: peaks may be among it."""
    GROWS = "Grows"
    """It uses more from day to day for as long as it runs: a limit only delays the OOM kill."""
    CPU_LIMIT_THROTTLES = "CPULimitThrottles"
    """A CPU limit that Guaranteed demands and that was not there before: beyond it the container is throttled."""


_SHORTFALLS = {Shortfall.SHORT_HISTORY: Doubt.SHORT_HISTORY, Shortfall.GAPS: Doubt.GAPS}


class Percentiles(Struct, frozen=True, rename="camel"):
    """What was used: thousandths of a core, or bytes."""

    count: int
    p50: int
    p95: int
    p99: int
    most: int


class Share(Struct, frozen=True, rename="camel"):
    """So many of so many samples."""

    count: int
    of: int

    @property
    def percent(self) -> float:
        """The same in hundredths."""
        return 100 * self.count / self.of if self.of else 0.0


class Risk(Struct, frozen=True, rename="camel"):
    """The remaining risk, in shares of the samples; None where nothing was measured."""

    memory_over_request: Share | None = None
    """Above it the pod is among the first that the kubelet evicts."""
    memory_over_limit: Share | None = None
    """Above it the kernel kills."""
    cpu_over_request: Share | None = None
    """Above it the container gets only what others leave."""
    cpu_over_limit: Share | None = None
    """Above it the container is throttled."""


class UsageHistory(Struct, frozen=True):
    """What is known about one container."""

    memory_bytes: tuple[int, ...] = ()
    cpu_milli: tuple[int, ...] = ()
    oom_kills: int = 0
    is_expected: bool = False
    """Whether this is the expected maximum and not a measurement."""
    coverage: Coverage = NO_COVERAGE
    """How long and how densely it was measured; ``coverage.is_provisional`` where that is too little."""
    replica_peaks_bytes: tuple[int, ...] = ()
    """The most memory of each replica that was measured."""
    startup_peak_bytes: int | None = None
    """The most memory of any replica soon after a start; None where no start was measured."""
    restarts: int = 0
    replicas: tuple[Replica, ...] = ()
    """The memory of each pod, with times; empty where nobody told the pods apart."""
    oom_limit_bytes: int | None = None
    """The highest limit under which it was OOM-killed; None means the limit of today."""
    is_runs: bool = False
    """Whether each pod is a run of a Job, which ends."""


class Sizing(Struct, frozen=True):
    """What a container should ask for, where that comes from and what it leaves open."""

    resources: ResourceRequirements
    memory: Percentiles | None
    cpu: Percentiles | None
    risk: Risk
    doubts: tuple[Doubt, ...]
    policy: SizingPolicy | None
    need: MemoryNeed | None = None
    """How much memory it will need; None where nothing was measured."""
    is_provisional: bool = False
    """Whether there is too little data to make anything smaller."""


def percentile(values: Sequence[int], percent: int) -> int:
    """Return the percentile by nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]


def size(
    usage: UsageHistory,
    qos_class: QOSClass,
    burst: BurstPattern,
    current: ResourceRequirements = NO_RESOURCES,
    caution: Caution = USUAL,
) -> Sizing:
    """Return sizes for a container of such a pod; amounts of which nothing is known stay as they are."""
    memory, cpu = _percentiles(usage.memory_bytes), _percentiles(usage.cpu_milli)
    policy = POLICIES.get((qos_class, burst))
    need = need_of(usage, current, caution)
    resources = _without_qos_resources(current)
    if policy is not None:
        amounts = _Amounts(usage, policy, current, need)
        limits = amounts.limits(is_cpu_limited=qos_class is QOSClass.GUARANTEED)
        resources = ResourceRequirements(
            requests={**resources.requests, **amounts.requests(limits)},
            limits={**resources.limits, **limits},
            claims=current.claims,
        )
        if qos_class is QOSClass.GUARANTEED:
            resources = _equal(resources, current)
    doubts = (*_doubts(usage, need), *_throttling(current, resources))
    return Sizing(resources, memory, cpu, risk_of(usage, resources), doubts, policy, need, is_provisional(usage))


def is_provisional(usage: UsageHistory) -> bool:
    """Return whether there is too little data to make anything smaller; runs of a Job are short by nature."""
    few = 0 < len(usage.memory_bytes or usage.cpu_milli) < LEAST_SAMPLES
    if usage.is_expected:
        return True
    if usage.is_runs and len(usage.replicas) >= _ENOUGH_RUNS:
        return False
    return few or usage.coverage.is_provisional


def need_of(usage: UsageHistory, current: ResourceRequirements, caution: Caution = USUAL) -> MemoryNeed | None:
    """Return how much memory a container will need, or None where nothing was measured."""
    if usage.is_expected:
        return expected_need(max(usage.memory_bytes)) if usage.memory_bytes else None
    return memory_need(memory_seen(usage, current), caution)


def memory_seen(usage: UsageHistory, current: ResourceRequirements) -> MemorySeen:
    """Return what was measured of a container's memory."""
    most_bytes = max((*usage.memory_bytes, *usage.replica_peaks_bytes, usage.startup_peak_bytes or 0), default=0)
    limit_bytes = usage.oom_limit_bytes or _value(current.limits.get(MEMORY)) or 0
    return MemorySeen(
        replicas=usage.replicas or (Replica(usage.memory_bytes),),
        is_runs=usage.is_runs,
        is_provisional=is_provisional(usage),
        oom_kills=usage.oom_kills,
        # Killed for the node's lack of memory, without a limit of its own: it got as far as what it used.
        oom_limit_bytes=max(limit_bytes, most_bytes),
        highest_bytes=most_bytes,
    )


def risk_of(usage: UsageHistory, resources: ResourceRequirements) -> Risk:
    """Count how often samples exceed amounts; any usage exceeds a missing request, none a missing limit."""
    limits = resources.limits
    # As the API server fills them in.
    requests = {**limits, **resources.requests}
    return Risk(
        memory_over_request=_above(usage.memory_bytes, _value(requests.get(MEMORY)) or 0),
        memory_over_limit=_above(usage.memory_bytes, _value(limits.get(MEMORY))),
        cpu_over_request=_above(usage.cpu_milli, _milli(requests.get(CPU)) or 0),
        cpu_over_limit=_above(usage.cpu_milli, _milli(limits.get(CPU))),
    )


class _Amounts:
    """The four amounts of a container."""

    def __init__(
        self, usage: UsageHistory, policy: SizingPolicy, current: ResourceRequirements, need: MemoryNeed | None
    ) -> None:
        self._usage, self._policy, self._current, self._need = usage, policy, current, need
        self._is_provisional = is_provisional(usage)

    def limits(self, *, is_cpu_limited: bool) -> dict[str, Quantity]:
        """Return the limits; too little data makes none smaller, and adds none that the class does not demand."""
        current = self._current.limits
        limits = {name: current[name] for name in (CPU, MEMORY) if name in current}
        is_new = MEMORY not in current and not is_cpu_limited
        if self._need is not None and not (self._is_provisional and is_new and not self._usage.is_expected):
            limits[MEMORY] = self._held(MEMORY, _memory(Fraction(self._need.need_bytes)), current)
        if self._usage.cpu_milli and (is_cpu_limited or CPU in current):
            wanted = _cpu(_amount(self._usage.cpu_milli, self._policy.cpu_limit))
            # Lowering a limit that is there saves nothing, and may throttle.
            limits[CPU] = self._held(CPU, wanted, current) if is_cpu_limited else max(wanted, current[CPU])
        return limits

    def requests(self, limits: Mapping[str, Quantity]) -> dict[str, Quantity]:
        """Return the requests; a request is never above its limit."""
        current = self._current.requests
        requests = {name: current[name] for name in (CPU, MEMORY) if name in current}
        # Between limits and requests the API server makes no difference where only limits are written.
        today = {**self._current.limits, **current}
        if self._usage.cpu_milli:
            rule = SizingRule(MOST) if self._is_provisional else self._policy.cpu_request
            requests[CPU] = self._held(CPU, _cpu(_amount(self._usage.cpu_milli, rule)), today)
        if self._usage.memory_bytes:
            requests[MEMORY] = self._held(MEMORY, self._memory_request(), today)
        return {name: min(amount, limits.get(name, amount)) for name, amount in requests.items()}

    def _memory_request(self) -> Quantity:
        rule = self._policy.memory_request
        if rule is None or (self._is_provisional and not self._usage.is_expected):
            assert self._need is not None
            return _memory(Fraction(self._need.need_bytes))
        return _memory(_amount(self._usage.memory_bytes, rule))

    def _held(self, name: str, wanted: Quantity, today: Mapping[str, Quantity]) -> Quantity:
        """Return what is wanted, or what is there today if that is more and there is too little data to lower it."""
        return max(wanted, today[name]) if self._is_provisional and name in today else wanted


def _amount(values: Sequence[int], rule: SizingRule) -> Fraction:
    return Fraction(percentile(values, rule.percentile) * (100 + rule.margin_percent), 100)


def _memory(amount: Fraction) -> Quantity:
    """Round up to whole MiB, and never to nothing."""
    return Quantity.of_units(max(1, -(-amount // MIB)) * MIB, "BinarySI")


def _cpu(milli: Fraction) -> Quantity:
    """Round up to whole hundredths of a core, and never to nothing."""
    return Quantity.of_milli(max(1, -(-milli // _CPU_STEP_MILLI)) * _CPU_STEP_MILLI)


def _without_qos_resources(resources: ResourceRequirements) -> ResourceRequirements:
    return ResourceRequirements(
        requests={name: amount for name, amount in resources.requests.items() if name not in {CPU, MEMORY}},
        limits={name: amount for name, amount in resources.limits.items() if name not in {CPU, MEMORY}},
        claims=resources.claims,
    )


def _equal(resources: ResourceRequirements, current: ResourceRequirements) -> ResourceRequirements:
    """Make requests and limits equal: the larger one counts, or the only one that is known.

    A container that states limits only is left to do so: the API server copies them to its requests.
    """
    requests, limits = dict(resources.requests), dict(resources.limits)
    for name in (CPU, MEMORY):
        known = [amounts[name] for amounts in (requests, limits) if name in amounts]
        if known:
            requests[name] = limits[name] = max(known)
        if name in current.limits and name not in current.requests:
            del requests[name]
    return ResourceRequirements(requests=requests, limits=limits, claims=resources.claims)


def _percentiles(values: Sequence[int]) -> Percentiles | None:
    if not values:
        return None
    return Percentiles(len(values), *(percentile(values, percent) for percent in (50, 95, 99, MOST)))


def _doubts(usage: UsageHistory, need: MemoryNeed | None) -> list[Doubt]:
    doubts = []
    if usage.is_expected:
        doubts.append(Doubt.EXPECTED_ONLY)
    elif is_provisional(usage):
        if 0 < len(usage.memory_bytes or usage.cpu_milli) < LEAST_SAMPLES:
            doubts.append(Doubt.FEW_SAMPLES)
        doubts += [_SHORTFALLS[shortfall] for shortfall in usage.coverage.shortfalls if shortfall in _SHORTFALLS]
    if usage.oom_kills:
        doubts.append(Doubt.NEED_UNKNOWN)
    if need is not None and need.is_leak:
        doubts.append(Doubt.GROWS)
    if not usage.cpu_milli:
        doubts.append(Doubt.NO_CPU_SAMPLES)
    if not usage.memory_bytes:
        doubts.append(Doubt.NO_MEMORY_SAMPLES)
    return doubts


def _throttling(current: ResourceRequirements, advised: ResourceRequirements) -> list[Doubt]:
    before, after = current.limits.get(CPU), advised.limits.get(CPU)
    return [Doubt.CPU_LIMIT_THROTTLES] if after is not None and (before is None or after < before) else []


def _above(values: Sequence[int], bound: int | None) -> Share | None:
    if not values:
        return None
    return Share(0 if bound is None else sum(value > bound for value in values), len(values))


def _value(amount: Quantity | None) -> int | None:
    return None if amount is None else amount.value


def _milli(amount: Quantity | None) -> int | None:
    return None if amount is None else amount.milli_value
