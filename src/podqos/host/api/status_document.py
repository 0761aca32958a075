"""The node about itself: what it has, what is asked of it, how far it is from evicting, what it cannot do here.

This is podqos' own document (``/status``); the kubelet has no such answer, its parts are spread over the Node object,
``/configz`` and logs. The shape is stable: fields are added, never renamed or removed.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.eviction.signals import Signal
from podqos.host.linux.psi import PressureFile
from podqos.model.pod import Pod, QOSClass
from podqos.model.stats import MemoryStats


class PodList(Struct, frozen=True):
    """The answer to ``/pods``, as far as it is read here."""

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
    """A threshold and how far it is: bytes, inodes or process ids."""

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
        """How much can still be taken before it is met."""
        return None if self.available is None or self.threshold is None else self.available - self.threshold


class FastPath(Struct, frozen=True, rename="camel"):
    """The kernel's signal that memory has crossed its level."""

    enabled: bool
    levels_bytes: dict[str, int]
    """Usage at which it comes, by cgroup; empty while none is set."""
    reactions: int
    """How many evictions for memory there were since the start."""
    last_seconds: float | None
    """From the signal until the victim could not grow any more, the last time."""


class NoteRow(Struct, frozen=True):
    """Something that is not as wanted, and how often it happened."""

    text: str
    count: int


class RefusedRow(Struct, frozen=True):
    """A pod of a manifest that was not let in."""

    pod: str
    source: str
    why: str


class ContainerRow(Struct, frozen=True, rename="camel"):
    """A container that runs."""

    name: str
    oom_score_adj: int
    """As planned."""
    kept_oom_score_adj: int | None
    """As the kernel has it; None if nothing runs."""


class PodRow(Struct, frozen=True, rename="camel"):
    """A pod in short."""

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
    """Everything."""

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
    """Whether the memory is a share of the machine's."""
    memory: MemoryStats
    pods_memory_limit_bytes: int | None
    """Of the cgroup of all pods."""
    conditions: tuple[ConditionRow, ...]
    resources: tuple[ResourceRow, ...]
    thresholds: tuple[ThresholdRow, ...]
    pressure: dict[str, PressureFile]
    """Stall information by resource; empty where the kernel has none."""
    fast_path: FastPath
    degraded: tuple[str, ...]
    """What this machine does not allow, and what follows."""
    notes: tuple[NoteRow, ...]
    refused: tuple[RefusedRow, ...]
    pods: tuple[PodRow, ...]
