"""One service calls another: how long it waits, how often it tries again, and how often in vain. A model.

An attempt fails if it is refused, or takes longer than its timeout. Of those that fail some are repeated: each call at
most ``retries`` times, and all retries together are at most ``retryBudget`` of the first attempts. Attempts fail
independently of each other. The callee goes on with what its caller no longer waits for.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import astuple

from podqos.sim.services.queueing import Waiting

_FOREVER = float("inf")


class Answers(Struct, frozen=True, gc=False):
    """How a pod answers requests."""

    seconds: float
    """What a request takes, without its wait for a worker."""
    waiting: Waiting
    refused: float = 0.0
    """The share that finds the queue full."""
    failed: float = 0.0
    """The share that fails because of a call to another service."""

    def fails(self, timeout: float | None) -> float:
        """Return how likely a request fails, or takes longer than that."""
        late = 0.0 if timeout is None else self.late(timeout)
        return 1.0 - (1.0 - self.refused) * (1.0 - late) * (1.0 - self.failed)

    def late(self, timeout: float) -> float:
        """Return how likely an answer takes longer than that."""
        return 1.0 if timeout < self.seconds else self.waiting.exceeds(timeout - self.seconds)

    def mean(self, timeout: float | None) -> float:
        """Return how long a caller waits that gives up after a time."""
        most = _FOREVER if timeout is None else timeout
        if most <= self.seconds:
            return (1.0 - self.refused) * most
        return (1.0 - self.refused) * (self.seconds + self.waiting.mean(most - self.seconds))


REFUSED = Answers(0.0, Waiting(), refused=1.0)
"""No pod is ready: requests fail at once."""


class Call(Struct, frozen=True, gc=False):
    """How one service calls another."""

    per_request: float = 1.0
    timeout: float | None = None
    """In seconds."""
    retries: int = 0
    budget: float | None = None
    """How many retries there are at most, as a share of first attempts; None: no budget."""


class CallOutcome(Struct, frozen=True, gc=False):
    """What becomes of the calls for one request."""

    attempts: float = 0.0
    """How many requests that makes at the callee."""
    retries: float = 0.0
    """How many of them are repeated ones."""
    failed: float = 0.0
    """How likely the request fails because of them."""
    seconds: float = 0.0
    """How long it waits for them, one after the other."""
    p50_seconds: float = 0.0
    p99_seconds: float = 0.0
    late: float = 0.0
    """How many of the attempts the callee answers after the caller has given up."""

    def towards(self, other: CallOutcome, share: float) -> CallOutcome:
        """Return what lies between this and another outcome."""
        if share >= 1.0 or self == other:
            return other
        return CallOutcome(*(a + (b - a) * share for a, b in zip(astuple(self), astuple(other), strict=True)))


def call_outcome(call: Call, pods: Sequence[Answers]) -> CallOutcome:
    """Return what becomes of the calls for one request, if the pods take turns to answer."""
    answering = pods or (REFUSED,)
    fails = sum(pod.fails(call.timeout) for pod in answering) / len(answering)
    seconds = sum(pod.mean(call.timeout) for pod in answering) / len(answering)
    retries = sum(fails**number for number in range(1, call.retries + 1))
    if call.budget is not None:
        retries = min(retries, call.budget)
    failed = max(0.0, 1.0 - (1.0 - fails) * (1.0 + retries))
    count = call.per_request
    whole, part = divmod(count, 1.0)
    return CallOutcome(
        count * (1.0 + retries),
        count * retries,
        1.0 - (1.0 - failed) ** whole * (1.0 - part * failed),
        count * (1.0 + retries) * seconds,
        _of_request(call, answering, 0.5),
        _of_request(call, answering, 0.99),
        0.0 if call.timeout is None else count * (1.0 + retries) * _late_share(call.timeout, answering),
    )


def _late_share(timeout: float, pods: Sequence[Answers]) -> float:
    return sum((1.0 - pod.refused) * pod.late(timeout) for pod in pods) / len(pods)


def _of_request(call: Call, pods: Sequence[Answers], share: float) -> float:
    """Return how long the calls of a share of the requests take at most, where some requests make none."""
    count = call.per_request
    if count >= 1.0:
        return count * _quantile(call, pods, share)
    return _quantile(call, pods, 1.0 - (1.0 - share) / count) if count > 1.0 - share else 0.0


def _quantile(call: Call, pods: Sequence[Answers], share: float) -> float:
    """Return how long a share of the calls takes at most: attempts that time out, and the one that counts."""
    late = 0.0 if call.timeout is None else sum(pod.late(call.timeout) for pod in pods) / len(pods)
    seconds, left = 0.0, 1.0
    for attempt in range(call.retries + 1):
        is_last = attempt == call.retries
        if call.timeout is None or left * late <= 1.0 - share or is_last:
            last = latency(pods, max(0.0, 1.0 - (1.0 - share) / left))
            return seconds + (last if call.timeout is None else min(last, call.timeout))
        seconds += call.timeout
        left *= late
    return seconds


def latency(pods: Sequence[Answers], share: float, extra: Sequence[float] = ()) -> float:
    """Return within which time a share of the requests is answered, of those that are not refused.

    ``extra`` is what to add for each pod. Pods get equal shares of the requests.
    """
    added = extra or (0.0,) * len(pods)
    quantiles = [pod.seconds + more + pod.waiting.quantile(share) for pod, more in zip(pods, added, strict=True)]
    low, high = min(quantiles), max(quantiles)
    if high in {low, _FOREVER}:
        return high
    for _ in range(40):
        middle = (low + high) / 2
        late = sum(_late(pod, more, middle) for pod, more in zip(pods, added, strict=True)) / len(pods)
        low, high = (middle, high) if late > 1.0 - share else (low, middle)
    return high


def _late(pod: Answers, more: float, seconds: float) -> float:
    return pod.late(seconds - more) if seconds >= more else 1.0
