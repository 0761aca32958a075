"""Nodes by headroom, who dies next on each, and what is wrong by namespace."""

from __future__ import annotations

from msgspec import Struct

from podqos.model.assumption import Assumption
from podqos.model.pod import QOSClass
from podqos.survival.headroom import Headroom


class Share(Struct, frozen=True, rename="camel"):
    """One resource of a node: memory in bytes, cpu in thousandths of a core."""

    allocatable: int
    requests: int
    limits: int
    used: int | None = None
    """By pods and system together, where it was measured."""
    used_by_pods: int | None = None
    """By pods alone, which is what allocatable bounds."""


class NextVictim(Struct, frozen=True, rename="camel"):
    """The pod that dies next."""

    pod: str
    qos_class: QOSClass
    reason: str
    """Why it and not the next."""


class NodeOverview(Struct, frozen=True, rename="camel"):
    """A node: how near it is to running out, and which pods die first."""

    name: str
    pods: int
    most_pods: int | None
    memory: Share
    cpu: Share
    conditions: tuple[str, ...] = ()
    """What is not as it should be: NotReady, MemoryPressure, Unschedulable …"""
    headroom_bytes: int | None = None
    """Memory until the kubelet evicts, by memory.available or allocatableMemory.available, whichever has less; negative
    where it does already; null without figures."""
    is_measured: bool = False
    """Whether usage was measured, or pods are taken to use what they request."""
    next_evicted: NextVictim | None = None
    next_killed: NextVictim | None = None
    headroom: Headroom | None = None
    """The threshold that ``headroomBytes`` is about; null without figures, and where the kubelet has none."""
    problem: str = ""
    """What keeps its pods from being ranked, or contradicts itself; empty where nothing does."""
    kernel_left_bytes: int | None = None
    """What the kernel can still allocate before it kills; null where pods were not ranked. Not more than
    ``headroomBytes``: the kernel kills before the kubelet evicts."""


class NamespaceOverview(Struct, frozen=True, rename="camel"):
    """A namespace: its pods, and what ``check`` finds there."""

    namespace: str
    """Empty for what belongs to none."""
    classes: dict[str, int]
    """Pods that have not ended, by class."""
    score: int
    """From 0 to 100, as ``check --all`` has it."""
    errors: int
    warnings: int
    objects: int
    """How many objects have errors or warnings."""


class Overview(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos overview -o json``."""

    taken_at: str
    server_version: str
    nodes: tuple[NodeOverview, ...]
    """Least headroom first."""
    classes: dict[str, int]
    """Pods that have not ended, by class."""
    pending: tuple[str, ...]
    """Pods without a node."""
    stored_otherwise: tuple[str, ...]
    """Pods whose stored class is not the one their resources make."""
    namespaces: tuple[NamespaceOverview, ...]
    """Worst first."""
    checks: dict[str, int]
    """Errors and warnings by check."""
    verdict: str
    """The worst finding in a sentence; empty where there is none."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "ClusterOverview"
    assumptions: tuple[Assumption, ...] = ()
