"""What a workload serves: how many requests, what one costs, and which other workloads it calls."""

from __future__ import annotations

from msgspec import Struct

from podqos.sim.engine.curve import ZERO, Curve


class ServiceCall(Struct, frozen=True, gc=False, kw_only=True):
    """Calls to another workload for each request."""

    workload: str
    """``namespace/name``."""
    per_request_milli: int = 1000
    """Thousandths: some requests may make no call."""
    timeout_us: int | None = None
    """None: it waits for as long as it takes."""
    retries: int = 0
    retry_budget_percent: int | None = None
    """The most retries per hundred first attempts; None: no budget."""


class ServiceDemand(Struct, frozen=True, gc=False, kw_only=True):
    """What the pods of a workload serve together. The CPU they want follows from it."""

    requests_milli: Curve = ZERO
    """From outside: requests per second, in thousandths, for the whole workload."""
    cost_us: int
    """The CPU time of one request."""
    workers: int
    """How many requests a pod answers at a time."""
    queue: int
    """How many more wait in a pod; further ones are refused."""
    timeout_us: int | None = None
    """After which an answer is too late for its client; None: never."""
    calls: tuple[ServiceCall, ...] = ()
