"""What-if: edits of pods and of their kubelet, and what becomes of class, score, both orders and the forecast.

The shape is stable: fields are added, never renamed or removed; ``docs/schema/page.json`` follows these classes.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.model.assumption import Assumption
from podqos.model.pod import QOSClass
from podqos.report.page.pod import PatchText, PodStanding
from podqos.survival.forecast import CurvePoint


class PodEdit(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is written into the manifest of a pod; all pods of its workload change with it."""

    pod: str
    """``namespace/name``."""
    container: str = ""
    """Whose amounts; empty: the pod's own."""
    requests: dict[str, str | None] = {}
    """By resource; null removes it."""
    limits: dict[str, str | None] = {}
    priority: int | None = None
    """That of the class to give it."""


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
    growing: str = ""
    """``namespace/name:container`` that grows, for the forecast; empty: none."""


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
    """How many of them are on the node."""
    class_before: QOSClass
    class_after: QOSClass
    reason_before: str
    reason_after: str
    scores: tuple[ScoreChange, ...]
    patch: PatchText | None
    """The edit, to be copied; null where nothing but the priority changes."""


class ComparedPod(Struct, frozen=True, rename="camel"):
    """A pod of the node, before and after."""

    pod: str
    is_edited: bool
    before: PodStanding
    after: PodStanding


class ForecastChange(Struct, frozen=True, rename="camel"):
    """How likely the kubelet is to act first, by how fast the container grows."""

    growing: str
    before: tuple[CurvePoint, ...]
    after: tuple[CurvePoint, ...]


class WhatIfView(Struct, frozen=True, rename="camel"):
    """What is answered."""

    node: str
    edited: tuple[EditedPod, ...]
    pods: tuple[ComparedPod, ...]
    """In the kubelet's order after the edits."""
    threshold_before_bytes: int
    threshold_after_bytes: int
    headroom_before_bytes: int
    headroom_after_bytes: int
    forecast: ForecastChange | None
    notes: tuple[str, ...]
    """What to know about the edits: a limit below what is used."""
    assumptions: tuple[Assumption, ...] = ()
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "WhatIfView"
