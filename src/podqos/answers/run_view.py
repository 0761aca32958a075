"""The output of ``podqos simulate`` as a value: the documented JSON shape, which the page reads too.

Everything else that shows a run (terminal, SVG, HTML) is a rendering of this value and decides nothing. ``reading``
makes it. The shape is stable: fields are added, never renamed or removed; ``docs/schema/simulate.json`` follows these
classes, and the viewer's types follow that.

Series are columns: the numbers of a series belong to the times of its node, one each. Between two times everything is
linear; a step has its time twice. A pod has ``None`` where it does not run.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.agent.journal import By, Kind
from podqos.agent.reasons import Because
from podqos.answers.run_picture import NodePicture
from podqos.model.assumption import Assumption
from podqos.model.pod import QOSClass
from podqos.sim.node.recording import LookSpan, ThresholdLine
from podqos.sim.series import Column, ConditionSpan, OrdersView, PodSeries, SignalSeries, WorkloadCpuSeries
from podqos.sim.summary import RunSummary
from podqos.words.counterfactual import Saving


class ContainerView(Struct, frozen=True, rename="camel"):
    """A container of a pod: its score, requests and limits."""

    name: str
    oom_score_adj: int
    oom_reason: str
    memory_request_bytes: int | None
    memory_limit_bytes: int | None
    cpu_request_milli: int | None
    cpu_limit_milli: int | None


class PodView(Struct, frozen=True, rename="camel"):
    """A pod of the run."""

    key: str
    """``namespace/name``."""
    node: str
    workload: str
    qos_class: QOSClass
    priority: int
    colour: str
    """Its colour in pictures: a shade of its class."""
    containers: tuple[ContainerView, ...]
    memory_request_bytes: int | None
    memory_limit_bytes: int | None
    cpu_request_milli: int | None
    cpu_limit_milli: int | None


class NodeView(Struct, frozen=True, rename="camel"):
    """A node and its series."""

    name: str
    memory_bytes: int
    swap_bytes: int
    cpu_milli: int
    kernel_min_bytes: int
    """The kernel's min watermark: at this mark it kills."""
    pods_limit_bytes: int | None
    """What all pods together may use; null if nothing enforces it."""
    thresholds: tuple[ThresholdLine, ...]
    times_us: Column
    available_bytes: Column
    """As the kubelet counts."""
    free_bytes: Column
    """As the kernel counts."""
    system_bytes: Column
    """Working set outside all pods."""
    pods: tuple[PodSeries, ...]
    signals: tuple[SignalSeries, ...]
    """Only those that change."""
    conditions: tuple[ConditionSpan, ...]
    orders: tuple[OrdersView, ...]
    panels: tuple[str, ...] = ("memory",)
    """What is worth drawing, most important first: ``memory`` by pod, ``cpu``, or a signal by its name."""
    looks: tuple[LookSpan, ...] = ()
    """When the kubelet's eviction loop looked at the node, whether or not it found anything to do."""
    drawn_until_us: int | None = None
    """Until when pictures are drawn: to the end of the run, or less where everything happens early. By then victims run
    again and conditions have ended. None is the end."""
    workload_cpu: tuple[WorkloadCpuSeries, ...] = ()
    """The CPU over time of workloads whose pods on this node did not get all they wanted."""


class Kill(Struct, frozen=True, rename="camel"):
    """A container killed by the kernel, or a pod evicted by the kubelet."""

    time_us: int
    node: str
    by: By
    pod: str
    qos_class: QOSClass | None
    container: str | None
    title: str
    reasons: tuple[str, ...]
    because: Because | None
    kernel_place: int | None
    """Its place in the kernel's order just before."""
    kubelet_place: int | None
    """Its place among those the kubelet may evict: for an eviction in the order of the signal that ran short, for a
    kill by the kernel in that of memory. None if there was no order, as for the pod's own limit."""
    would_evict: str | None
    """For a kill by the kernel: the pod the kubelet would have evicted at that moment."""
    savings: tuple[Saving, ...]
    cause: str = ""
    """Why, in a few words."""


class EventView(Struct, frozen=True, rename="camel"):
    """A line of the journal in words."""

    time_us: int
    node: str
    kind: Kind
    by: By | None
    pod: str | None
    container: str | None
    text: str
    first_pod: str | None = None
    """The first of the pods that this one replaces, directly or through others."""
    is_over: bool = False
    """It ends a shortage of CPU."""


class ClosestCall(Struct, frozen=True, rename="camel"):
    """How close a run came to an eviction, or to an OOM kill for the whole node, where there was none."""

    node: str
    time_us: int
    available_bytes: int
    """The least memory that was available, as the kubelet counts."""
    threshold_bytes: int
    """Below this, the kubelet evicts or the kernel kills."""
    memory_bytes: int
    """Of the node."""


class RunView(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos simulate -o json``."""

    name: str
    description: str
    seed: int
    end_us: int
    kubernetes_version: str
    policy: str
    summary: RunSummary
    pods: tuple[PodView, ...]
    """Of the nodes shown."""
    nodes: tuple[NodeView, ...]
    """Those shown: all if they are few, otherwise those with most victims."""
    kills: tuple[Kill, ...]
    """Of the nodes shown, in the order of time."""
    events: tuple[EventView, ...]
    assumptions: tuple[Assumption, ...] = ()
    headline: str = ""
    """The outcome in one sentence."""
    changes: tuple[str, ...] = ()
    """What was set to another value than the scenario has. Its description may no longer hold then, and ``description``
    says what was changed instead."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "SimulationReport"
    closest: ClosestCall | None = None
    """The near miss, where no node ran out of memory."""
    affected: str = ""
    """How pods were affected, where kills and evictions do not tell: a part of the headline; empty if none was."""
    pictures: tuple[NodePicture, ...] = ()
    """How the nodes are drawn, in their order: in pages only."""
