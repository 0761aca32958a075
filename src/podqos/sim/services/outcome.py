"""What became of the requests to a service, over time and in total. Published: fields are added, never removed."""

from __future__ import annotations

from msgspec import Struct

from podqos.agent.reasons import OverloadCause


class ServiceSample(Struct, frozen=True, gc=False, rename="camel"):
    """A service at a moment."""

    time_us: int
    ready_pods: int
    requests_milli: int
    """Requests per second, in thousandths."""
    utilisation_permille: int
    """Requests in relation to what its ready pods can answer; above 1000 their queues grow."""
    waiting: int
    """Requests in the queues of its pods."""
    p50_us: int | None
    """How long half of the answers take at most; None if no pod is ready."""
    p99_us: int | None
    errors_permille: int
    """Requests that are refused, or are answered too late."""


class ServiceOutcome(Struct, frozen=True, rename="camel"):
    """What became of the requests to a service. All figures are those of a model."""

    workload: str
    requests: int
    errors: int
    """Those that were refused, late or lost."""
    refused: int
    """Those that found a full queue, or no ready pod."""
    late: int
    """Those that were answered after the timeout of their client."""
    lost: int
    """Those that waited in a pod when it ended."""
    highest_utilisation_permille: int
    worst_p99_us: int | None
    worst_p99_at_us: int
    worst_errors_permille: int
    worst_errors_at_us: int
    overloaded_us: int
    """How long at least every hundredth request failed."""
    first_overloaded_us: int | None = None
    cause: OverloadCause | None = None
    """What it had too little of when that began."""
    samples: tuple[ServiceSample, ...] = ()
    """The worst of each of up to 200 spans of time, by errors, then by p99."""
