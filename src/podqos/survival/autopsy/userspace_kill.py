"""A kill that the kernel's OOM killer did not decide: who killed, whom, and by which figures."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from podqos.model.pod import QOSClass

SIGKILL = "SIGKILL"


class Killer(StrEnum):
    """A program that kills before the kernel has to."""

    SYSTEMD_OOMD = "systemd-oomd"
    EARLYOOM = "earlyoom"
    TALOS = "talos"


class KillBasis(StrEnum):
    """What a userspace killer went by."""

    MEMORY_PRESSURE = "memoryPressure"
    """Tasks stalled for memory (PSI) longer than allowed."""
    MEMORY_AND_SWAP = "memoryAndSwap"
    """Both memory and swap were used beyond a share."""
    SWAP = "swap"
    LOW_MEMORY = "lowMemory"
    """Too little memory was available."""
    RULE = "rule"
    """A rule of its configuration, which has a name."""
    UNKNOWN = "unknown"
    """The lines at hand do not say."""


class UserspaceKill(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A kill by a program, with the figures it logged."""

    killer: Killer
    basis: KillBasis
    at: str = ""
    host: str = ""
    victim: str = ""
    """The process, or the unit; empty where only a cgroup is named."""
    pid: int | None = None
    cgroup: str = ""
    """The cgroup that was killed as a whole."""
    reason: str = ""
    """As logged."""
    signal: str = SIGKILL
    """The last one that was sent."""
    rule: str = ""
    """The killer's own name for what acted."""
    pressure_percent: float | None = None
    pressure_limit_percent: float | None = None
    pressure_of: str = ""
    """The cgroup whose pressure it was."""
    pressure_duration: str = ""
    """How long the pressure has to last, as logged."""
    memory_used_bytes: int | None = None
    memory_available_bytes: int | None = None
    memory_total_bytes: int | None = None
    memory_limit_percent: float | None = None
    """The share at which the killer acts: used for systemd-oomd, available for earlyoom."""
    swap_used_bytes: int | None = None
    swap_free_bytes: int | None = None
    swap_total_bytes: int | None = None
    swap_limit_percent: float | None = None
    """Likewise."""
    rss_bytes: int | None = None
    """What the victim used."""
    oom_score_adj: int | None = None
    processes: int | None = None
    """How many died with the cgroup, where that is logged."""
    pod_uid: str = ""
    container_id: str = ""
    qos_class: QOSClass | None = None
    pod: str = ""
    """namespace/name, where manifests or a snapshot know the uid."""
    container: str = ""
