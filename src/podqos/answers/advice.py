"""The output of ``podqos advise`` as values: the documented JSON shape, from which all other outputs follow.

The shape is stable: fields are added, never renamed or removed.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.advice.sizing.applying import ContainerAdvice
from podqos.advice.sizing.bounds import QuotaShortfall
from podqos.advice.sizing.goals import Goal
from podqos.advice.sizing.matrix import Because, Description, PriorityTier
from podqos.advice.sizing.node_settings import NodeThresholds, Setting
from podqos.advice.sizing.severity import Distance
from podqos.advice.sizing.tried import AdviceTrial, WorkloadTrial
from podqos.answers.advice_effects import Amounts, Effect
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.model.pod import QOSClass
from podqos.survival.drift.drift import Overtaking, Standing
from podqos.survival.drift.resizing import ResizeCost


class NodeAdvice(NodeThresholds, frozen=True, rename="camel"):
    """The advised settings of a node's kubelet."""

    reasons: tuple[str, ...]
    configuration: dict[str, Setting]
    """The KubeletConfiguration."""


class WorkloadAdvice(Struct, frozen=True, rename="camel"):
    """What one workload should have."""

    workload: str
    source: str
    description: Description | None
    """Null without a description: then only sizes are advised."""
    like: str
    """The service of the matrix in the same case."""
    because: tuple[Because, ...]
    reasons: tuple[str, ...]
    """The same in words."""
    wanted_class: QOSClass
    before: Standing | None
    after: Standing | None
    priority_class: str | None
    """Null where the priority stays."""
    containers: tuple[ContainerAdvice, ...]
    moved_ahead: tuple[Overtaking, ...]
    """Workloads it would now be killed or evicted before."""
    moved_back: tuple[Overtaking, ...]
    refusal: str
    """Why the API server would not store the advised pod; empty where it would."""
    replicas: int | None = None
    """How many pods it has; null for a DaemonSet on nodes that are not known."""
    is_withheld: bool = False
    """Whether its sizes did not pass their trial: then it is advised to stay as it is."""
    distance: Distance | None = None
    """How far it is from what is advised, at its worst."""
    effect: Effect | None = None
    """What it frees or adds."""
    tried: WorkloadTrial | None = None
    """What became of the advice when it was tried; null where nothing changes."""
    resize: ResizeCost | None = None
    """What resizing its running pods in place takes; null where nothing changes."""
    autoscaler: str = ""
    """The HorizontalPodAutoscaler that will make other replicas of the advised requests, at the same load."""


class AdviceReport(Listing[WorkloadAdvice], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos advise -o json``."""

    kubernetes_version: str
    node_memory_bytes: int
    workloads: tuple[WorkloadAdvice, ...] = ()
    priority_classes: tuple[PriorityTier, ...] = ()
    node: NodeAdvice | None = None
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Advice"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""
    goal: Goal | None = None
    tried: AdviceTrial | None = None
    """What became of all of it together; null where nothing changes."""
    total: Amounts | None = None
    """What all of it frees or adds in requests."""
    short_quotas: tuple[QuotaShortfall, ...] = ()
    """Quotas that have less left than is added."""

    def _listed(self) -> tuple[WorkloadAdvice, ...]:
        return self.workloads
