"""A small run, made by hand, for those who show runs."""

from __future__ import annotations

from podqos.agent.journal import By, Kind
from podqos.eviction.signals import NodeCondition, Signal
from podqos.model.pod import QOSClass
from podqos.runs.view import (
    ContainerView,
    EventView,
    Kill,
    NodeView,
    PodView,
    RunView,
    Saving,
    headline,
)
from podqos.sim.record import ThresholdLine
from podqos.sim.series import ConditionSpan, EvictionRank, KernelRank, OrdersView, PodSeries
from podqos.sim.summary import RunSummary, WorkloadSummary

MI, GI = 1 << 20, 1 << 30


def pod(name: str, qos_class: QOSClass, colour: str) -> PodView:
    """Make a pod of one container."""
    container = ContainerView("main", 1000, "", None, None, None, None)
    return PodView(f"ns/{name}", "node", f"ns/{name}", qos_class, 0, colour, (container,), None, None, None, None)


def series(index: int, *anon_bytes: int | None) -> PodSeries:
    """Make a pod's series: no page cache, a core that is wanted and half granted."""
    file = tuple(None if each is None else 0 for each in anon_bytes)
    return PodSeries(
        index,
        anon_bytes,
        file,
        file,
        tuple(None if each is None else 1000 for each in anon_bytes),
        tuple(None if each is None else 500 for each in anon_bytes),
    )


def row(pod: PodView, **counts: int) -> WorkloadSummary:
    """Make a workload's row."""
    usual = dict.fromkeys(("oom_kills", "evictions", "restarts", "rejections", "downtime_us", "throttled_us"), 0)
    return WorkloadSummary(
        workload=pod.workload,
        qos_class=pod.qos_class,
        priority=0,
        pods=1,
        untouched=0 if counts else 1,
        interrupted=1 if counts else 0,
        **(usual | counts),
    )


WEB, LOGS, BATCH = (
    pod("web", QOSClass.GUARANTEED, "#0b4f8a"),
    pod("logs", QOSClass.BEST_EFFORT, "#8e2a6b"),
    pod("batch", QOSClass.BURSTABLE, "#f9cf8d"),
)

NODE = NodeView(
    name="node",
    memory_bytes=8 * GI,
    swap_bytes=0,
    cpu_milli=4000,
    kernel_min_bytes=64 * MI,
    pods_limit_bytes=None,
    thresholds=(
        ThresholdLine(Signal.MEMORY, True, 100 * MI, 0, "memory.available < 100Mi"),
        ThresholdLine(Signal.MEMORY, False, 500 * MI, 30, "memory.available < 500Mi for 30 s"),
    ),
    times_us=(0, 1_000_000, 1_000_000, 10_000_000, 10_000_000, 20_000_000),
    available_bytes=(4 * GI, 0, 1 * GI, 90 * MI, 3 * GI, 3 * GI),
    free_bytes=(4 * GI, 0, 1 * GI, 90 * MI, 3 * GI, 3 * GI),
    system_bytes=(GI,) * 6,
    pods=(
        series(0, *(2 * GI,) * 6),
        series(2, GI, 4 * GI, 4 * GI, 5 * GI, None, None),
        series(1, GI, GI, None, None, None, None),
    ),
    signals=(),
    conditions=(ConditionSpan(NodeCondition.MEMORY_PRESSURE, 10_000_000, None),),
    orders=(
        OrdersView(
            0,
            4 * GI,
            4 * GI,
            (EvictionRank(1, GI, 0, 0, True, None, ""), EvictionRank(2, GI, 2 * GI, 5, False, None, "")),
            (KernelRank(2, "main", GI, 937, 9 * GI, ""), KernelRank(1, "main", GI, 1000, 8 * GI, "")),
            1,
        ),
    ),
    panels=("memory", "memory.available"),
)

KILLED = Kill(
    time_us=1_000_000,
    node="node",
    by=By.KERNEL,
    pod=LOGS.key,
    qos_class=LOGS.qos_class,
    container="main",
    title="logs (main) OOM-killed",
    reasons=("The machine had no memory left of 8Gi.",),
    because=None,
    kernel_place=1,
    kubelet_place=2,
    would_evict=BATCH.key,
    savings=(Saving("Use 300Mi less", "ns/batch would have been killed instead", True),),
    cause="all 8Gi of the machine used",
)
EVICTED = Kill(
    time_us=10_000_000,
    node="node",
    by=By.KUBELET,
    pod=BATCH.key,
    qos_class=BATCH.qos_class,
    container=None,
    title="batch evicted by the kubelet",
    reasons=("The kubelet saw memory.available 90Mi < 100Mi (hard).",),
    because=None,
    kernel_place=None,
    kubelet_place=1,
    would_evict=None,
    savings=(),
    cause="memory.available 90Mi < 100Mi",
)


def event(time_us: int, kind: Kind, text: str, pod: PodView | None = None, by: By | None = None) -> EventView:
    """Make a line of the journal in words."""
    return EventView(time_us, "node", kind, by, None if pod is None else pod.key, None, text)


SUMMARY = RunSummary(
    nodes=1,
    pods=3,
    untouched=1,
    oom_kills=1,
    evictions=1,
    restarts=0,
    rejections=0,
    downtime_us=29_000_000,
    oom_kills_by_level={"node": 1},
    evictions_by_signal={"memory.available": 1},
    workloads=(row(WEB), row(LOGS, oom_kills=1, downtime_us=19_000_000), row(BATCH, evictions=1)),
    interrupted=2,
)

RUN = RunView(
    name="small",
    description="Two of three are gone in the end.",
    seed=1,
    end_us=20_000_000,
    kubernetes_version="1.36",
    policy="kubelet",
    summary=SUMMARY,
    headline=headline(SUMMARY),
    pods=(WEB, LOGS, BATCH),
    nodes=(NODE,),
    kills=(KILLED, EVICTED),
    events=(
        event(0, Kind.ADMITTED, "web admitted", WEB),
        event(0, Kind.STARTED, "web started", WEB),
        event(0, Kind.STARTED, "logs started", LOGS),
        event(0, Kind.STARTED, "batch started", BATCH),
        event(1_000_000, Kind.OOM_KILLED, KILLED.title, LOGS, By.KERNEL),
        event(10_000_000, Kind.CONDITION_CHANGED, "MemoryPressure begins"),
        event(10_000_000, Kind.EVICTED, EVICTED.title, BATCH, By.KUBELET),
    ),
)
