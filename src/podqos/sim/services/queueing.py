"""One pod that answers requests: how many it can answer, how long requests wait, which are refused. A model.

A request takes CPU time (``cost``) on one core at most, and occupies a worker meanwhile.

- Capacity is the smaller of what the CPU and what the workers can do (asymptotic bounds: Denning and Buzen, "The
  operational analysis of queueing network models", ACM Computing Surveys 10, 1978).
- Requests arrive at random (Poisson). Their mean wait at a utilisation ρ with m servers is S/m × ρ^(√(2(m+1))−1)/(1−ρ)
  (Sakasegawa, "An approximation formula L_q ≈ α·ρ^β/(1−ρ)", Annals of the Institute of Statistical Mathematics 29,
  1977; exact for M/M/1). The wait is exponential for those who wait at all, as in M/M/m. It holds for a steady load, so
  that ρ counts as 95 % at most: nearer to 1 it would take longer to become true than most overloads last.
- Beyond its capacity a pod builds up a backlog at the rate of the excess (a fluid). Requests are answered in order, so
  that each waits for those before it. The queue has a length; what finds it full is refused.

Nothing here is upstream's: Kubernetes knows nothing of requests. Not modelled: bursts within a second, requests of
different cost, connections that stay with a pod, priorities, garbage collection, warm-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt

from msgspec import Struct

from podqos.model.time_units import SECOND_US

_FOREVER = float("inf")
_MOST_US = 1 << 50
_STEADY = 0.95
"""The utilisation above which random waiting is not counted higher: it would take too long to build up."""


class Capacity(Struct, frozen=True, gc=False):
    """How many requests a pod can answer."""

    rate: float
    """Requests per second; 0 if it gets no CPU."""
    seconds: float
    """What a request takes, alone on the machine."""
    is_short_of_workers: bool = False
    """Whether all workers are busy before the CPU is."""


def capacity(cores: float, cost_seconds: float, workers: int) -> Capacity:
    """Return the capacity of a pod that can use so much CPU: a request runs on one core, or on what there is of one."""
    if cores <= 0:
        return Capacity(0.0, 0.0)
    seconds = cost_seconds / min(1.0, cores)
    of_cpu, of_workers = cores / cost_seconds, workers / seconds
    return Capacity(min(of_cpu, of_workers), seconds, of_workers < of_cpu)


class Waiting(Struct, frozen=True, gc=False):
    """How long requests wait for their turn."""

    backlog_seconds: float = 0.0
    """What all wait: for those that are there already."""
    probability: float = 0.0
    """How likely a request waits for longer than that."""
    decay: float = 1.0
    """How fast the likelihood of a longer wait falls, per second."""
    most_seconds: float = 0.0
    """What a full queue takes: no one waits longer."""

    def quantile(self, share: float) -> float:
        """Return how long a share of the requests waits at most."""
        beyond = 1.0 - share
        random = log(self.probability / beyond) / self.decay if self.probability > beyond else 0.0
        return min(self.most_seconds, self.backlog_seconds + random)

    def exceeds(self, seconds: float) -> float:
        """Return how likely a request waits for longer."""
        if seconds >= self.most_seconds:
            return 0.0
        if seconds < self.backlog_seconds:
            return 1.0
        return self.probability * exp(-self.decay * (seconds - self.backlog_seconds))


def waiting(able: Capacity, load: float, backlog: float, queue: int) -> Waiting:
    """Return how long requests wait that arrive at a rate while others are waiting."""
    if able.rate <= 0.0:
        return Waiting(0.0, 1.0, 1e-9, float("inf"))
    utilisation = min(_STEADY, load / able.rate)
    servers = max(1.0, able.rate * able.seconds)
    decay = able.rate * (1.0 - utilisation)
    mean = utilisation ** (sqrt(2.0 * (servers + 1.0)) - 1.0) / decay if utilisation > 0.0 else 0.0
    return Waiting(backlog / able.rate, min(1.0, mean * decay), decay, queue / able.rate)


class Flow(Struct, frozen=True, gc=False):
    """What became of the requests of a span of time."""

    backlog: float
    """How many wait at its end."""
    refused: float
    """How many found the queue full."""
    answered: float
    """How many were answered, in time or not."""


def flow(able: Capacity, load: float, backlog: float, queue: int, seconds: float) -> Flow:
    """Let requests arrive and be answered at constant rates."""
    arrived = load * seconds
    answered = min(backlog + arrived, able.rate * seconds)
    left = backlog + arrived - answered
    refused = max(0.0, left - queue)
    return Flow(left - refused, refused, answered)


def refused_share(able: Capacity, load: float, backlog: float, queue: int) -> float:
    """Return which share of the requests is refused at this moment."""
    if backlog < queue or load <= able.rate or load <= 0.0:
        return 0.0
    return 1.0 - able.rate / load


class Answers(Struct, frozen=True, gc=False):
    """How a pod answers requests."""

    seconds: float
    """What a request takes, without its wait for a worker."""
    waiting: Waiting
    refused: float = 0.0
    """The share that finds the queue full."""

    def fails(self, timeout: float | None) -> float:
        """Return how likely a request fails, or takes longer than that."""
        late = 0.0 if timeout is None else self.late(timeout)
        return 1.0 - (1.0 - self.refused) * (1.0 - late)

    def late(self, timeout: float) -> float:
        """Return how likely an answer takes longer than that."""
        return 1.0 if timeout < self.seconds else self.waiting.exceeds(timeout - self.seconds)


REFUSED = Answers(0.0, Waiting(), refused=1.0)
"""No pod is ready: requests fail at once."""


def latency(pods: Sequence[Answers], share: float) -> float:
    """Return within which time a share of the requests is answered, of those that are not refused.

    Pods get equal shares of the requests.
    """
    quantiles = [pod.seconds + pod.waiting.quantile(share) for pod in pods]
    low, high = min(quantiles), max(quantiles)
    if high in {low, _FOREVER}:
        return high
    for _ in range(40):
        middle = (low + high) / 2
        late = sum(pod.late(middle) for pod in pods) / len(pods)
        low, high = (middle, high) if late > 1.0 - share else (low, middle)
    return high


class PodService:
    """What is known of the requests at one running container."""

    __slots__ = ("able", "answers", "backlog", "load", "since_us")

    def __init__(self, now_us: int) -> None:
        self.since_us = now_us
        """Up to when its backlog is known."""
        self.backlog = 0.0
        """How many requests wait."""
        self.load = 0.0
        """Requests per second since then."""
        self.able = Capacity(0.0, 0.0)
        self.answers = Answers(0.0, Waiting())

    @property
    def waiting(self) -> int:
        """How many requests wait in its queue."""
        return round(self.backlog)

    @property
    def is_refusing(self) -> bool:
        """Whether it refuses most requests."""
        return self.answers.refused > 0.5

    @property
    def probe_wait_us(self) -> int:
        """How long the median request waits for its turn."""
        seconds = self.answers.waiting.quantile(0.5)
        return min(_MOST_US, round(min(seconds, 1e9) * SECOND_US))
