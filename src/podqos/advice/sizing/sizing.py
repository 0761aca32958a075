"""Size a container's requests and limits from what it used, by the class it is to have.

Percentiles are by nearest rank: a value that was measured, no interpolation. The policy of each class (``POLICIES``)::

    Guaranteed   memory  request = limit = most used + 20 %      cpu  request = limit = p99 + 15 % (spiky: most + 15 %)
    Burstable    memory  request p95 + 10 %, limit most + 25 %   cpu  request p95 (bursty: p50), limit p99 + 20 %
    BestEffort   nothing

A container that was OOM-killed was stopped at its limit: what it would have used is not in the samples. Its limit is
raised by half, and its need stays unknown. The remaining risk is counted from the same samples, so it only holds if
the future is like the past.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from fractions import Fraction

from msgspec import Struct

from podqos.advice.sizing.coverage import NO_COVERAGE, Coverage
from podqos.advice.sizing.matrix import BurstPattern
from podqos.model.pod import QOSClass
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, NO_RESOURCES, ResourceRequirements

MIB = 1 << 20
_CPU_STEP_MILLI = 10
MOST = 100
"""The percentile that is the largest value."""

# An OOM-killed container gets half as much again.
_AFTER_OOM = Fraction(3, 2)
# With fewer, the 99th percentile is the largest value.
_FEW_SAMPLES = 100


class SizingRule(Struct, frozen=True):
    """An amount: a percentile, and a margin on top."""

    percentile: int
    margin_percent: int = 0


class SizingPolicy(Struct, frozen=True):
    """How the four amounts of a container follow from its samples."""

    memory_request: SizingRule
    memory_limit: SizingRule
    cpu_request: SizingRule
    cpu_limit: SizingRule


_GUARANTEED_MEMORY = SizingRule(MOST, 20)
_BURSTABLE_MEMORY = SizingRule(95, 10), SizingRule(MOST, 25)


def _guaranteed(cpu: SizingRule) -> SizingPolicy:
    return SizingPolicy(_GUARANTEED_MEMORY, _GUARANTEED_MEMORY, cpu, cpu)


def _burstable(cpu_request: SizingRule) -> SizingPolicy:
    return SizingPolicy(*_BURSTABLE_MEMORY, cpu_request, SizingRule(99, 20))


POLICIES: Mapping[tuple[QOSClass, BurstPattern], SizingPolicy] = {
    (QOSClass.GUARANTEED, BurstPattern.STEADY): _guaranteed(SizingRule(99, 15)),
    (QOSClass.GUARANTEED, BurstPattern.SPIKY): _guaranteed(SizingRule(MOST, 15)),
    (QOSClass.GUARANTEED, BurstPattern.BURSTY): _guaranteed(SizingRule(99, 15)),
    (QOSClass.BURSTABLE, BurstPattern.STEADY): _burstable(SizingRule(95)),
    (QOSClass.BURSTABLE, BurstPattern.SPIKY): _burstable(SizingRule(95)),
    (QOSClass.BURSTABLE, BurstPattern.BURSTY): _burstable(SizingRule(50)),
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


class Replica(Struct, frozen=True):
    """What the container used in one pod, in order of time."""

    memory_bytes: tuple[int, ...] = ()
    memory_times_us: tuple[int, ...] = ()
    """When each was measured; empty where that is unknown."""


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


def percentile(values: Sequence[int], percent: int) -> int:
    """Return the percentile by nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]


def size(
    usage: UsageHistory, qos_class: QOSClass, burst: BurstPattern, current: ResourceRequirements = NO_RESOURCES
) -> Sizing:
    """Return sizes for a container of such a pod; amounts of which nothing is known stay as they are."""
    memory, cpu = _percentiles(usage.memory_bytes), _percentiles(usage.cpu_milli)
    policy = POLICIES.get((qos_class, burst))
    resources = _without_qos_resources(current)
    if policy is not None:
        amounts = _Amounts(usage, policy, current)
        resources = ResourceRequirements(
            requests={**resources.requests, **amounts.requests()},
            limits={**resources.limits, **amounts.limits()},
            claims=current.claims,
        )
        if qos_class is QOSClass.GUARANTEED:
            resources = _equal(resources, current)
    return Sizing(resources, memory, cpu, risk_of(usage, resources), tuple(_doubts(usage)), policy)


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

    def __init__(self, usage: UsageHistory, policy: SizingPolicy, current: ResourceRequirements) -> None:
        self._usage, self._policy, self._current = usage, policy, current

    def requests(self) -> dict[str, Quantity]:
        """Return the requests; a request is never above its limit."""
        limits = self.limits()
        found = self._both(self._policy.cpu_request, self._policy.memory_request, self._current.requests)
        return {name: min(amount, limits.get(name, amount)) for name, amount in found.items()}

    def limits(self) -> dict[str, Quantity]:
        """Return the limits; after an OOM kill memory's is raised."""
        found = self._both(self._policy.cpu_limit, self._policy.memory_limit, self._current.limits)
        if self._usage.oom_kills and MEMORY in found:
            held = max(_value(self._current.limits.get(MEMORY)) or 0, max(self._usage.memory_bytes, default=0))
            found[MEMORY] = max(found[MEMORY], _memory(held * _AFTER_OOM))
        return found

    def _both(self, cpu: SizingRule, memory: SizingRule, current: Mapping[str, Quantity]) -> dict[str, Quantity]:
        found = {}
        if self._usage.cpu_milli:
            found[CPU] = _cpu(_amount(self._usage.cpu_milli, cpu))
        elif CPU in current:
            found[CPU] = current[CPU]
        if self._usage.memory_bytes:
            found[MEMORY] = _memory(_amount(self._usage.memory_bytes, memory))
        elif MEMORY in current:
            found[MEMORY] = current[MEMORY]
        return found


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


def _doubts(usage: UsageHistory) -> list[Doubt]:
    doubts = []
    if usage.is_expected:
        doubts.append(Doubt.EXPECTED_ONLY)
    elif 0 < max(len(usage.memory_bytes), len(usage.cpu_milli)) < _FEW_SAMPLES:
        doubts.append(Doubt.FEW_SAMPLES)
    if usage.oom_kills:
        doubts.append(Doubt.NEED_UNKNOWN)
    if not usage.cpu_milli:
        doubts.append(Doubt.NO_CPU_SAMPLES)
    if not usage.memory_bytes:
        doubts.append(Doubt.NO_MEMORY_SAMPLES)
    return doubts


def _above(values: Sequence[int], bound: int | None) -> Share | None:
    if not values:
        return None
    return Share(0 if bound is None else sum(value > bound for value in values), len(values))


def _value(amount: Quantity | None) -> int | None:
    return None if amount is None else amount.value


def _milli(amount: Quantity | None) -> int | None:
    return None if amount is None else amount.milli_value
