"""What a running guard says about itself."""

from __future__ import annotations

from msgspec import Struct

from podqos.eviction.signals import Signal
from podqos.model.time_units import SECOND_US

FILE = "status.json"
"""In a guard's run directory: its status, replaced every few seconds."""
_STALE_US = 20 * SECOND_US


class SignalStatus(Struct, frozen=True, rename="camel"):
    """A threshold, and how far it is."""

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
    """How well the API server is known."""

    trouble: str = ""
    synced_us: int | None = None
    """When what is known of pods was last as the server has it."""
    from_disk: bool = False
    """Whether that was an earlier guard's knowledge."""


class RateLimit(Struct, frozen=True, rename="camel"):
    """How many evictions there may be, and how many there were."""

    most: int
    within_us: int
    recent: int
    """Within that time."""
    cool_down_until_us: int | None = None
    """Before then there is no other."""


class GuardStatus(Struct, frozen=True, rename="camel", kw_only=True):
    """A guard."""

    node: str
    pid: int
    version: str
    started_us: int
    updated_us: int
    enforce: bool
    held_back: str
    """Why it evicts nothing for now; empty where it would."""
    kubepods: str
    cgroup: str
    signals: tuple[SignalStatus, ...] = ()
    known: int = 0
    """Pods of this node that the API server knows."""
    candidates: int = 0
    """Those of them that may be evicted."""
    excluded: tuple[ExcludedPod, ...] = ()
    unknown_cgroups: int = 0
    """Cgroups of pods that the API server does not know: never touched."""
    api: ApiStatus = ApiStatus()
    evictions: int = 0
    """Since it started."""
    limit: RateLimit | None = None
    stop_file: bool = False
    """Whether the file that switches it off is there."""
    node_annotation: bool = False
    """Whether the node's annotation switches it off."""
    unprotected: tuple[str, ...] = ()
    """What of its own protection the machine does not allow."""
    reactions_us: tuple[int, ...] = ()
    """Of the last evictions: from the kernel's signal to the kill."""
    notes: tuple[str, ...] = ()
    cpu_seconds: float = 0.0
    rss_bytes: int = 0

    def is_stale(self, now_us: int) -> bool:
        """Whether the guard has said nothing for so long that it has ended, or is stuck."""
        return now_us - self.updated_us > _STALE_US
