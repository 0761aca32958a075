"""What the VerticalPodAutoscaler's recommender recommends: percentiles of usage in decaying histograms, with margins.

CPU usage is a sample a minute; of memory the peak of each day counts, and an OOM kill counts as more than was used.

Source: kubernetes/autoscaler vertical-pod-autoscaler-1.7.1 pkg/recommender/util (histogram.go, histogram_options.go,
decaying_histogram.go), pkg/recommender/model (aggregate_container_state.go, container.go, aggregations_config.go,
types.go) and pkg/recommender/logic (estimator.go, recommender.go). Weights are floating-point numbers like upstream's.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log

from msgspec import Struct

from podqos.model.autoscaling import ContainerRecommendation
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceList
from podqos.model.time_units import DAY_US, MINUTE_US

INTERVAL_US = MINUTE_US
"""``--recommender-interval``."""
_HALF_LIFE_US = DAY_US
_PEAK_INTERVAL_US = DAY_US
"""``--memory-aggregation-interval``."""
_GROWTH = 1.05
"""Each bucket is 5 % larger than the one before."""
_SAMPLE_WEIGHT = 0.1
_EPSILON = 0.001 * _SAMPLE_WEIGHT
_MARGIN = 0.15
"""``--recommendation-margin-fraction``."""
_TARGET, _LOWER, _UPPER = 0.9, 0.5, 0.95
_LEAST_CPU_MILLI = 25
_LEAST_MEMORY_BYTES = 250 * 2**20
_MOST = 10**14
_OOM_RATIO = 1.2
_OOM_BYTES = 100 * 2**20


class Buckets(Struct, frozen=True, gc=False):
    """How values are divided into buckets that grow exponentially."""

    first: float
    """The size of the first bucket."""
    count: int

    @staticmethod
    def up_to(most: float, first: float) -> Buckets:
        """Return the buckets for values up to some amount."""
        return Buckets(first, ceil(_log(most * (_GROWTH - 1) / first + 1)) + 1)

    def of(self, value: float) -> int:
        """Return the bucket of a value (``FindBucket``)."""
        if value < self.first:
            return 0
        return min(int(_log(value * (_GROWTH - 1) / self.first + 1)), self.count - 1)

    def start(self, bucket: int) -> float:
        """Return where a bucket begins (``GetBucketStart``)."""
        return 0.0 if bucket == 0 else self.first * (_GROWTH**bucket - 1) / (_GROWTH - 1)


def _log(value: float) -> float:
    return log(value) / log(_GROWTH)


_CPU_BUCKETS = Buckets.up_to(1000.0, 0.01)
_MEMORY_BUCKETS = Buckets.up_to(1e12, 1e7)


class Histogram:
    """Samples of which the newer weigh more: a sample loses half of its weight in a day."""

    def __init__(self, buckets: Buckets) -> None:
        self._buckets = buckets
        self._weights: dict[int, float] = {}

    def add(self, value: float, weight: float, time_us: int) -> None:
        """Add a sample."""
        bucket = self._buckets.of(value)
        self._weights[bucket] = self._weights.get(bucket, 0.0) + weight * 2.0 ** (time_us / _HALF_LIFE_US)

    def subtract(self, value: float, weight: float, time_us: int) -> None:
        """Remove a sample."""
        bucket = self._buckets.of(value)
        left = self._weights.get(bucket, 0.0) - weight * 2.0 ** (time_us / _HALF_LIFE_US)
        if left < _EPSILON:
            self._weights.pop(bucket, None)
        else:
            self._weights[bucket] = left

    def percentile(self, share: float) -> float:
        """Return the end of the bucket up to which that share of the weight lies (``Percentile``)."""
        kept = sorted((bucket, weight) for bucket, weight in self._weights.items() if weight >= _EPSILON)
        if not kept:
            return 0.0
        threshold = share * sum(weight for _, weight in kept)
        partial = 0.0
        reached = kept[-1][0]
        for bucket, weight in kept:
            partial += weight
            if partial >= threshold:
                reached = bucket
                break
        return self._buckets.start(min(reached + 1, self._buckets.count - 1))


class ContainerPeak(Struct):
    """The memory peak of one container within a day, as it was last counted."""

    window_end_us: int | None = None
    memory_bytes: int = 0
    oom_bytes: int = 0


class Usage:
    """What is known of the usage of all containers of one name (``AggregateContainerState``)."""

    def __init__(self) -> None:
        self._cpu = Histogram(_CPU_BUCKETS)
        self._memory = Histogram(_MEMORY_BUCKETS)
        self._first_us: int | None = None
        self._last_us = 0
        self.samples = 0

    def add_cpu(self, milli: int, time_us: int) -> None:
        """Add a sample of CPU usage (``addCPUSample``)."""
        self._cpu.add(milli / 1000.0, _SAMPLE_WEIGHT, time_us)
        self._last_us = max(self._last_us, time_us)
        self._first_us = time_us if self._first_us is None else min(self._first_us, time_us)
        self.samples += 1

    def add_memory(self, peak: ContainerPeak, used_bytes: int, time_us: int, *, is_oom: bool = False) -> None:
        """Add a sample of a container's memory: it replaces a smaller peak of its day (``addMemorySample``)."""
        if peak.window_end_us is None:
            peak.window_end_us = time_us
        most = max(peak.memory_bytes, peak.oom_bytes)
        if time_us < peak.window_end_us:
            if not most or used_bytes <= most:
                return
            self._memory.subtract(most, 1.0, peak.window_end_us)
        else:
            behind_us = time_us - peak.window_end_us
            peak.window_end_us += behind_us // _PEAK_INTERVAL_US * _PEAK_INTERVAL_US + _PEAK_INTERVAL_US
            peak.memory_bytes = peak.oom_bytes = 0
        self._memory.add(used_bytes, 1.0, peak.window_end_us)
        if is_oom:
            peak.oom_bytes = used_bytes
        else:
            peak.memory_bytes = used_bytes

    def add_oom(self, peak: ContainerPeak, request_bytes: int, time_us: int) -> None:
        """Count an OOM kill as a use of 20 %, and at least 100Mi, more (``RecordOOM``)."""
        used = max(request_bytes, peak.memory_bytes)
        self.add_memory(peak, max(used + _OOM_BYTES, int(used * _OOM_RATIO)), time_us, is_oom=True)

    @property
    def _confidence(self) -> float:
        """How many days of samples there are (``getConfidence``)."""
        if self._first_us is None:
            return 0.0
        return min((self._last_us - self._first_us) / DAY_US, self.samples * MINUTE_US / DAY_US)

    def estimate(self, containers: int) -> dict[str, dict[str, int]]:
        """Return target, lower and upper bound, in millicores and bytes; ``containers`` share the least of a pod."""
        least = {CPU: int(_LEAST_CPU_MILLI / containers), MEMORY: int(_LEAST_MEMORY_BYTES / containers)}
        estimates: dict[str, dict[str, int]] = {}
        for name, share in (("target", _TARGET), ("lower", _LOWER), ("upper", _UPPER)):
            base = {CPU: int(self._cpu.percentile(share) * 1000.0), MEMORY: int(self._memory.percentile(share))}
            estimates[name] = {
                resource: max(_scaled(amount + int(amount * _MARGIN), self._factor(name)), least[resource])
                for resource, amount in base.items()
            }
        return estimates

    def _factor(self, name: str) -> float | None:
        """Return what a bound is multiplied with while there is little history; None is without end."""
        confidence = self._confidence
        match name:
            case "lower":
                return (1.0 + 0.001 / confidence) ** -2.0 if confidence else 0.0
            case "upper":
                return 1.0 + 1.0 / confidence if confidence else None
            case _:
                return 1.0


def _scaled(amount: int, factor: float | None) -> int:
    return _MOST if factor is None else min(int(amount * factor), _MOST)


def recommendations(usages: Mapping[str, Usage]) -> tuple[ContainerRecommendation, ...]:
    """Return the recommendation for each container with samples (``GetRecommendedPodResources``)."""
    known = {name: usage for name, usage in usages.items() if usage.samples}
    made = []
    for name, usage in sorted(known.items()):
        estimates = usage.estimate(len(known))
        target = _quantities(estimates["target"])
        made.append(
            ContainerRecommendation(
                name, target, target, _quantities(estimates["lower"]), _quantities(estimates["upper"])
            )
        )
    return tuple(made)


def _quantities(amounts: Mapping[str, int]) -> ResourceList:
    return {CPU: Quantity.of_milli(amounts[CPU]), MEMORY: Quantity.of_units(amounts[MEMORY], "BinarySI")}
