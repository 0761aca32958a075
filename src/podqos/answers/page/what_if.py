"""What-if: edits of pods and of their kubelet, and what becomes of class, score, both orders and the forecast.

The shape is stable: fields are added, never renamed or removed; ``docs/schema/page.json`` follows these classes.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from podqos.agent.journal import By
from podqos.answers.drift import ResizeVerdict
from podqos.answers.forecast import CurvePoint
from podqos.answers.page.edits import PodEdit
from podqos.answers.page.pod import PatchText, PodStanding
from podqos.eviction.signals import Signal
from podqos.model.assumption import Assumption
from podqos.model.pod import QOSClass


class KubeletEdit(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Settings of the node's kubelet; what is empty stays as it is."""

    eviction_hard: str = ""
    """Of memory.available: ``500Mi`` or ``5%``."""
    eviction_soft: str = ""
    eviction_soft_grace_period: str = ""
    """Such as ``1m30s``."""
    system_reserved: str = ""
    """Memory."""
    kube_reserved: str = ""


class WhatIf(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is asked."""

    node: str = ""
    """The node to look at; empty: that of the first edit, or the only one."""
    edits: tuple[PodEdit, ...] = ()
    kubelet: KubeletEdit = KubeletEdit()
    everywhere: bool = False
    """Whether all kubelets have these settings; otherwise that of the node alone."""
    is_whole: bool = False
    """Whether to count the pods of all nodes that are touched, which takes longer; otherwise of one."""
    growing: str = ""
    """``namespace/name:container`` that grows, or the first container of a pod, for the forecast; empty: none."""


class ScoreChange(Struct, frozen=True, rename="camel"):
    """The oom_score_adj of a container."""

    container: str
    before: int | None
    after: int | None
    reason: str
    """Of the score after."""


class EditedPod(Struct, frozen=True, rename="camel"):
    """An edited workload: its class, and why."""

    workload: str
    """``Deployment shop/web``, or ``Pod shop/web``."""
    pods: int
    """How many of them run."""
    nodes: int
    """On how many nodes."""
    class_before: QOSClass
    class_after: QOSClass
    reason_before: str
    reason_after: str
    scores: tuple[ScoreChange, ...]
    patch: PatchText | None
    """The edit, to be copied; null where nothing but the priority changes, where a container was injected, and where
    the object is not known here."""
    resize: ResizeVerdict | None
    """Whether running pods can have it in place; null where no amount changes."""
    lines: str = ""
    """The edit as YAML of the object that a user edits, also where that object is not known here."""
    costs: tuple[str, ...] = ()
    """What it costs: what is reserved, how many such pods a node holds, new limits, class and priority."""


class ComparedPod(Struct, frozen=True, rename="camel"):
    """A pod of the node, before and after."""

    pod: str
    is_edited: bool
    before: PodStanding | None
    """Null where it comes from another node."""
    after: PodStanding | None
    """Null where it goes to another node, or to none."""


class ChangedNode(Struct, frozen=True, rename="camel"):
    """A node that edits touch: its pods change, come or go, or its kubelet has other settings."""

    node: str
    edited: int
    """How many of its pods are edited."""
    safer: int | None
    """How many pods go later in one of the orders, and sooner in none; null where that is not counted yet."""
    at_risk: int | None
    """How many go sooner in one, and later in none."""
    mixed: int | None
    """How many go sooner in one, and later in the other."""
    headroom_before_bytes: int | None
    headroom_after_bytes: int | None
    problem: str = ""
    """Why its pods are in no order then; empty where they are."""
    headroom_signal: Signal | None = None
    """The signal that ``headroomAfterBytes`` is about; null where there is none."""


class ResizeWait(StrEnum):
    """What a kubelet says to a resize that its node has no room for."""

    DEFERRED = "Deferred"
    """Not now: other pods request it."""
    INFEASIBLE = "Infeasible"
    """Never: the node has less."""


class MovedPod(Struct, frozen=True, rename="camel"):
    """An edited pod that its node has no room for any more; where it waits it runs on as it is."""

    pod: str
    node: str
    """Where it is now."""
    lacks: str
    """Which resources, with the amounts."""
    resize: ResizeWait | None
    """What becomes of a resize in place; null where the API server refuses one."""
    to: str | None
    """Where the scheduler puts a new pod; null where no node has room, and it waits."""
    message: str
    """The scheduler's, where it waits."""


class PreemptedPod(Struct, frozen=True, rename="camel"):
    """A pod that the scheduler removes so that an edited one has room."""

    pod: str
    node: str
    by: str


class ForecastChange(Struct, frozen=True, rename="camel"):
    """How likely the kubelet is to act first, by how fast the container grows."""

    growing: str
    before: tuple[CurvePoint, ...]
    after: tuple[CurvePoint, ...]
    text_before: str = ""
    """Who acts first at which growth rates."""
    text_after: str = ""


class WhatIfView(Struct, frozen=True, rename="camel"):
    """What is answered."""

    node: str
    edited: tuple[EditedPod, ...]
    pods: tuple[ComparedPod, ...]
    """Of that node, in the kubelet's order after the edits; those that leave it last."""
    nodes: tuple[ChangedNode, ...]
    """All that the edits touch, this one first."""
    is_whole: bool
    """Whether the pods of all these nodes are counted."""
    safer: int
    """Pods of all counted nodes together."""
    at_risk: int
    mixed: int
    moved: tuple[MovedPod, ...]
    """Edited pods that do not fit where they are."""
    preempted: tuple[PreemptedPod, ...]
    threshold_before_bytes: int
    threshold_after_bytes: int
    headroom_before_bytes: int
    headroom_after_bytes: int
    forecast: ForecastChange | None
    """Null where none is asked for, or the pod is not on the node then."""
    notes: tuple[str, ...]
    """What to know about the edits: a limit below what is used, a quota that then refuses another workload."""
    assumptions: tuple[Assumption, ...] = ()
    headroom_signal: Signal | None = None
    """The signal that ``headroomAfterBytes`` is about; null where the kubelet has no threshold of memory."""
    first_by: By = By.KUBELET
    """Who acts first after the edits while memory grows slowly."""
    kernel_left_before_bytes: int = 0
    """What the kernel could still allocate before it kills."""
    kernel_left_after_bytes: int = 0
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "WhatIfView"
