"""The outcome of a run as the value that is printed and drawn, and in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import UNSET, Struct, UnsetType

from podqos.agent.journal import By, Kind
from podqos.agent.reasons import Because, LocalStorageExceeded, OOMKill, UnderPressure
from podqos.amounts import counted
from podqos.eviction.signals import SIGNALS, Signal
from podqos.model.assumption import Assumption
from podqos.model.pod import QOSClass
from podqos.model.resources import CPU, MEMORY
from podqos.runs.picture import NodePicture
from podqos.sim.record import LookSpan, ThresholdLine
from podqos.sim.series import Column, ConditionSpan, OrdersView, PodSeries, SignalSeries, WorkloadCpuSeries
from podqos.sim.summary import RunSummary, WorkloadSummary
from podqos.text.journal import jobs_headline, services_headline
from podqos.text.saving import Saving


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


class NodeVictims(Struct, frozen=True, rename="camel"):
    """How many OOM kills and evictions there were on a node."""

    node: str
    oom_kills: int
    evictions: int


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
    worth_showing: tuple[NodeVictims, ...] | UnsetType = UNSET
    """Where nodes are many and none was asked for, in text only: those with most victims."""


LEFT = Signal.MEMORY.value


class RunSpan(Struct, frozen=True):
    """How long a run is, and when pods of a node were killed or evicted in it."""

    end_us: int
    kills_us: tuple[int, ...]


def drawn_until_us(run: RunSpan, story_ends_us: int) -> int:
    """Return until when a node is drawn: all of the run, or less if its story ends early, so that kills lie apart."""
    if not run.kills_us:
        return run.end_us
    first, last = run.kills_us[0], run.kills_us[-1]
    margin_us = max((last - first) * 3 // 5, first * 3 // 5, run.end_us // 20)
    close_us = max(last + margin_us, story_ends_us + run.end_us // 20)
    return close_us if close_us < run.end_us // 2 else run.end_us


class _Reach(Struct, frozen=True):
    """How far a node got."""

    available_bytes: tuple[int, int]
    """The least and the most memory that was available."""
    least_left: Mapping[Signal, int]
    """The least that was left of what else ran short or changed noticeably."""
    is_cpu_short: bool
    """Whether a pod got less CPU than it wanted."""


def story(node: NodeView, kills: Sequence[Kill]) -> tuple[str, ...]:
    """Return the panels worth drawing of a node, of which ``kills`` are the victims."""
    reach = _reach(node)
    there = {MEMORY, LEFT, *(signal.value for signal in reach.least_left)}
    needed = [panel for kill in kills for panel in _fatal(kill)] + [*_short(node, reach)]
    panels = [panel for panel in dict.fromkeys(needed) if panel in there or panel == CPU]
    return tuple(panels or _moving(node, reach))


def _reach(node: NodeView) -> _Reach:
    left = node.available_bytes
    return _Reach(
        (min(left, default=node.memory_bytes), max(left, default=node.memory_bytes)),
        {series.signal: min(series.left) for series in node.signals},
        any(
            (wanted or 0) > (granted or 0)
            for pod in node.pods
            for wanted, granted in zip(pod.cpu_wanted_milli, pod.cpu_granted_milli, strict=True)
        ),
    )


def _fatal(kill: Kill) -> tuple[str, ...]:
    """Return where to see what a pod was killed or evicted for."""
    match kill.because:
        case OOMKill():
            return (MEMORY,)
        case UnderPressure(signal=signal):
            return (MEMORY, LEFT) if SIGNALS[signal].is_memory else (signal.value,)
        case LocalStorageExceeded():
            return (Signal.NODEFS.value,)
        case _:
            return ()


def _short(node: NodeView, reach: _Reach) -> Iterator[str]:
    """Yield what ran short, or came within twice a threshold of it."""
    marks = [threshold.amount for threshold in node.thresholds if threshold.signal is Signal.MEMORY]
    if reach.available_bytes[0] < 2 * max(node.kernel_min_bytes, *marks, 0):
        yield from (MEMORY, LEFT)
    for signal, least in reach.least_left.items():
        if any(least < 2 * threshold.amount for threshold in node.thresholds if threshold.signal is signal):
            yield signal.value
    if reach.is_cpu_short:
        yield CPU


def _moving(node: NodeView, reach: _Reach) -> Iterator[str]:
    least, most = reach.available_bytes
    if not reach.least_left or 10 * (most - least) > node.memory_bytes:
        yield MEMORY
    yield from (signal.value for signal in reach.least_left)


def headline(summary: RunSummary) -> str:
    """Return the outcome, the worst first: kills and evictions, or else what became of requests, Jobs and pods.

    Pods that were neither killed nor evicted, and yet affected, are counted, too: CPU shortage is an outcome.
    """
    fatal = fatal_words(summary)
    further = [*filter(None, (services_headline(summary.services), jobs_headline(summary.jobs)))]
    if summary.oom_kills or summary.evictions or (summary.untouched == summary.pods and not further):
        return " ".join([_sentence(f"{fatal}; {_pods(summary)}"), *further])
    return " ".join([*further, _sentence(_pods(summary)), _sentence(fatal)])


def fatal_words(summary: RunSummary, joint: str = ", ") -> str:
    """Return how many OOM kills and evictions there were: ``2 OOM kills, no evictions``."""
    return f"{many(summary.oom_kills, 'OOM kill')}{joint}{many(summary.evictions, 'eviction')}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def share_words(share: float) -> str:
    """Return a share of what was wanted: ``50 %``, ``0.4 %``; less than all is never 100 %."""
    percent = 100 * share
    if 0 < percent < 0.1:
        return "<0.1 %"
    if 0 < percent < 1:
        return f"{percent:.1f} %"
    return f"{round(percent) if share >= 1 else min(99, round(percent))} %"


def _pods(summary: RunSummary) -> str:
    """Return how pods were affected: each is counted once, and again if it was short of CPU as well."""
    parts = (f"{summary.untouched:,} of {counted(summary.pods, 'pod')} unaffected", *_affected(summary))
    return "; ".join(filter(None, (", ".join(parts), short_of_cpu_words(summary))))


def affected_words(summary: RunSummary) -> str:
    """Return how pods were affected, without those that were not; empty if none was."""
    return "; ".join(filter(None, (", ".join(_affected(summary)), short_of_cpu_words(summary))))


def short_of_cpu(summary: RunSummary) -> int:
    """Return how many pods were short of CPU at some time, whatever else happened to them.

    A pod is short of CPU while one of its containers gets less CPU than it wants, by a thousandth of a core or more,
    because of a CPU limit (it is throttled) or of contention.
    """
    return summary.throttled if summary.cpu is None else max(summary.throttled, summary.cpu.slowed)


def short_of_cpu_words(summary: RunSummary) -> str:
    """Return how many pods were short of CPU, and the worst of them; empty if none was."""
    pods = short_of_cpu(summary)
    if not pods:
        return ""
    worst = min(
        (workload for workload in summary.workloads if workload.cpu is not None and workload.cpu.slowed),
        key=lambda workload: (_least_share(workload), workload.workload),
        default=None,
    )
    words = f"{pods:,} short of CPU{' at some time' if pods > summary.throttled else ''}"
    if worst is None:
        return words
    return f"{words} (worst: {worst.workload}, down to {share_words(_least_share(worst))} of the CPU it wanted)"


def _least_share(workload: WorkloadSummary) -> float:
    return 1.0 if workload.cpu is None else workload.cpu.least_share


def many(count: int, what: str) -> str:
    """Return a number of things: ``no pods``, ``1 pod``, ``1,000 pods``."""
    return f"no {what}s" if count == 0 else f"{count:,} {what}{'' if count == 1 else 's'}"


def _affected(summary: RunSummary) -> Iterator[str]:
    """Yield how pods were affected, other than by CPU, where kills and evictions do not tell."""
    others = summary.never_ran + summary.waited + summary.throttled + summary.refused
    if summary.interrupted and (others or not summary.oom_kills + summary.evictions):
        yield f"{summary.interrupted:,} interrupted"
    if summary.never_ran:
        yield f"{summary.never_ran:,} never ran"
    if summary.waited:
        yield f"{summary.waited:,} waited for a node"
    if summary.refused:
        yield f"{summary.refused:,} denied processes or disk space"
