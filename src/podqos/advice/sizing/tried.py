"""What became of advice when it was tried, as published: admitted, placed on nodes, run with known usage."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from podqos.model.quantity import Quantity


class Untried(StrEnum):
    """What could not be tried."""

    NO_NODES = "NoNodes"
    """No nodes were given: pods ran one by one, where nothing but their own limits can stop them."""
    NO_SAMPLES = "NoSamples"
    """The memory of a container was not measured: taken to be what it requests, which tests nothing."""
    NO_TIMES = "NoTimes"
    """Samples without times: they count as a minute apart, those of all pods at once."""
    NEED_UNKNOWN = "NeedUnknown"
    """It was OOM-killed: what it needs beyond its limit was never measured."""
    TOO_MANY = "TooMany"
    """More pods or nodes than are tried together."""


class Reason(StrEnum):
    """Why a size did not pass."""

    REFUSED = "Refused"
    """The API server would not store it."""
    OOM_KILLED = "OOMKilled"
    EVICTED = "Evicted"
    THROTTLED = "Throttled"
    """For longer than before."""
    FOUND = "Found"
    """The checks find a warning or an error that they do not find now."""


class Fate(Struct, frozen=True, rename="camel"):
    """What became of the pods of a workload; null what was not tried."""

    pending: int | None = None
    """Pods that find no node."""
    oom_kills: int | None = None
    evictions: int | None = None
    throttled_seconds: float | None = None
    """How long pods got less CPU than they wanted, summed over the pods."""


class Raised(Struct, frozen=True, rename="camel"):
    """An amount that was raised until it passed."""

    container: str
    field: str
    """``requests.memory``, ``limits.cpu`` and the like."""
    sized: Quantity | None
    """What the samples alone gave."""
    raised: Quantity
    because: Reason


class WorkloadTrial(Struct, frozen=True, rename="camel"):
    """How the advice about one workload fared, beside what it has now."""

    passed: bool
    """No OOM kill, no eviction, throttled no longer than before."""
    before: Fate
    after: Fate
    failed: tuple[Reason, ...] = ()
    """Why the sizes that the samples gave are not advised."""
    raised: tuple[Raised, ...] = ()
    untried: tuple[Untried, ...] = ()
    text: str = ""
    """The same in words."""


class AdviceTrial(Struct, frozen=True, rename="camel"):
    """How all of the advice together fared."""

    nodes: int
    """Nodes at hand."""
    pods: int
    before: Fate
    after: Fate
    replayed_seconds: float | None
    """How long the recording is; null where nothing was measured."""
    pending: dict[str, int] = {}
    """Workloads of which more pods than now find no node, and how many do not."""
    untried: tuple[Untried, ...] = ()
    text: str = ""
    """The same in words."""
