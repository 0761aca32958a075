"""The status of a running guard."""

from __future__ import annotations

from msgspec import Struct

from podqos.eviction.signals import Signal
from podqos.model.time_units import SECOND_US

FILE = "status.json"
"""In a guard's run directory: its status, replaced every few seconds."""
_STALE_US = 20 * SECOND_US


class SignalStatus(Struct, frozen=True, rename="camel"):
    """A threshold, and the available amount."""

    signal: Signal
    threshold: int
    available: int
    capacity: int
    hard: bool


class ExcludedPod(Struct, frozen=True, rename="camel"):
    """A pod that is never evicted, and why."""

    pod: str
    why: str


class ApiStatus(Struct, frozen=True, rename="camel"):
    """The connection to the API server."""

    trouble: str = ""
    synced_us: int | None = None
    """When the known pods were last complete and current."""
    from_disk: bool = False
    """Whether that was in an earlier guard's lifetime."""


class RateLimit(Struct, frozen=True, rename="camel"):
    """The allowed number of evictions, and how many there were."""

    most: int
    within_us: int
    recent: int
    """Within this time."""
    cool_down_until_us: int | None = None
    """No further eviction before then."""


class GuardStatus(Struct, frozen=True, rename="camel", kw_only=True):
    """A guard."""

    node: str
    pid: int
    version: str
    started_us: int
    updated_us: int
    enforce: bool
    held_back: str
    """Why it evicts nothing at the moment; empty if it would."""
    kubepods: str
    cgroup: str
    kubelet_settings: str = ""
    """Where the kubelet's settings come from; empty if the kubelet reported them."""
    signals: tuple[SignalStatus, ...] = ()
    known: int = 0
    """Pods of this node that the API server knows."""
    candidates: int = 0
    """Those of them that may be evicted."""
    excluded: tuple[ExcludedPod, ...] = ()
    unknown_cgroups: int = 0
    """Pod cgroups without a pod in the API server; never touched."""
    api: ApiStatus = ApiStatus()
    evictions: int = 0
    """Since it started."""
    limit: RateLimit | None = None
    stop_file: bool = False
    """Whether the file that switches it off exists."""
    node_annotation: bool = False
    """Whether the node's annotation switches it off."""
    unprotected: tuple[str, ...] = ()
    """Which of its own protections the machine does not allow."""
    reactions_us: tuple[int, ...] = ()
    """Reaction times of the latest evictions: from the kernel's notification to the kill."""
    notes: tuple[str, ...] = ()
    cpu_seconds: float = 0.0
    rss_bytes: int = 0

    def is_stale(self, now_us: int) -> bool:
        """Whether the status is so old that the guard has stopped or is stuck."""
        return now_us - self.updated_us > _STALE_US
