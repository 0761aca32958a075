"""The node's status: resources, pods, distance to eviction, restrictions of the machine.

This is podqos' own document (``/status``); the kubelet spreads this over the Node object, ``/configz`` and logs. The
format is stable: fields are added, never renamed or removed.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.eviction.signals import Signal
from podqos.host.linux.psi import PressureFile
from podqos.model.pod import Pod, QOSClass
from podqos.model.stats import MemoryStats


class PodListDocument(Struct, frozen=True):
    """The response of ``/pods``."""

    items: tuple[Pod, ...] = ()


class ConditionRow(Struct, frozen=True, rename="camel"):
    """A condition of the node."""

    type: str
    status: bool
    last_transition_time: str


class ResourceRow(Struct, frozen=True, rename="camel"):
    """A resource: thousandths of cpu, whole units of everything else."""

    name: str
    capacity: int | None
    allocatable: int
    requested: int


class ThresholdRow(Struct, frozen=True, rename="camel"):
    """A threshold and the distance to it: bytes, inodes or process ids."""

    signal: Signal
    hard: bool
    grace_period_seconds: int
    threshold: int | None
    available: int | None
    """None where it is not observed."""
    capacity: int | None
    is_met: bool

    @property
    def distance(self) -> int | None:
        """How much is left until it is met."""
        return None if self.available is None or self.threshold is None else self.available - self.threshold


class FastPath(Struct, frozen=True, rename="camel"):
    """The state of the fast path: the kernel signals when memory crosses a level."""

    enabled: bool
    levels_bytes: dict[str, int]
    """Usage at which it signals, by cgroup; empty while none is set."""
    reactions: int
    """Evictions for memory since the start."""
    last_seconds: float | None
    """From the last signal until its victim could no longer grow."""


class NoteRow(Struct, frozen=True):
    """A problem, and how often it occurred."""

    text: str
    count: int


class RefusedRow(Struct, frozen=True):
    """A pod of a manifest that was rejected."""

    pod: str
    source: str
    why: str


class ContainerRow(Struct, frozen=True, rename="camel"):
    """A running container."""

    name: str
    oom_score_adj: int
    """As planned."""
    kept_oom_score_adj: int | None
    """The kernel's value; None if nothing runs."""


class PodRow(Struct, frozen=True, rename="camel"):
    """A summary of a pod."""

    namespace: str
    name: str
    uid: str
    qos_class: QOSClass
    priority: int
    phase: str
    reason: str
    is_stopping: bool
    restarts: int
    started_us: int
    memory_bytes: int | None
    """The working set; None if nothing runs."""
    memory_request_bytes: int
    memory_limit_bytes: int | None
    cpu_usage_ns: int | None
    """CPU time used since the start of the pod."""
    containers: tuple[ContainerRow, ...]
    source: str
    """The manifest."""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class NodeStatus(Struct, frozen=True, rename="camel", kw_only=True):
    """The status of a node."""

    version: str
    node: str
    pid: int
    start_time: str
    now_us: int
    start_us: int
    state_dir: str
    manifests: str
    runtime: str
    shadow: bool
    is_ending: bool
    cgroup: str
    cgroup_version: str
    is_confined: bool
    """Whether the node is limited to a share of the machine's memory."""
    memory: MemoryStats
    pods_memory_limit_bytes: int | None
    """Of the cgroup of all pods."""
    conditions: tuple[ConditionRow, ...]
    resources: tuple[ResourceRow, ...]
    thresholds: tuple[ThresholdRow, ...]
    pressure: dict[str, PressureFile]
    """Pressure stall information by resource; empty where the kernel has none."""
    fast_path: FastPath
    degraded: tuple[str, ...]
    """Restrictions of this machine, and their effects."""
    notes: tuple[NoteRow, ...]
    refused: tuple[RefusedRow, ...]
    pods: tuple[PodRow, ...]
