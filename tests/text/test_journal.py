"""The journal in words: every kind of reason has some, with the numbers that it carries."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import (
    ActiveDeadlineExceeded,
    AutoscalerDecision,
    Because,
    BudgetRefuses,
    CleanUpGain,
    ConditionStatus,
    CPUThrottled,
    CronJobDue,
    CronJobSkipped,
    DeletedWithJob,
    EvictionReport,
    ExitedWith,
    GuardMode,
    JobEnded,
    LimitReached,
    LocalStorageExceeded,
    MemoryThrottled,
    NodesRefusing,
    NodeUnreachable,
    NoPlace,
    NotAdmitted,
    NothingToDo,
    OOMKill,
    OOMLevel,
    OverloadCause,
    PlacedOn,
    PodSaving,
    PreemptedFor,
    ProbeFailure,
    Promised,
    Readiness,
    ReplacementFor,
    RestartedAfter,
    RolloutOf,
    RoomForCritical,
    ScaledFromTo,
    SeenEvicted,
    ServiceOverload,
    SupersededIn,
    ThresholdFigures,
    ThresholdsMet,
    ThrottledBy,
    TooLittleLeft,
    UnderPressure,
    WaitedTooLong,
    WouldEvict,
    WouldHaveSaved,
)
from podqos.eviction.manager import AdmissionRule
from podqos.eviction.pods import LocalStorageLimit
from podqos.eviction.ranking import Policy
from podqos.eviction.signals import CleanUp, NodeCondition, RankKey, Signal
from podqos.model.pod import QOSClass
from podqos.text.journal import cause, line, reasons

MI, GI = 1 << 20, 1 << 30
PAGES_OF_64GI = 64 * GI // 4096

WOULD_EVICT = WouldEvict(
    "batch/analytics", 9 * GI, 4130 * MI, True, 100_000, "monitoring/debug", RankKey.PRIORITY, True
)
KILL = OOMKill(
    level=OOMLevel.NODE,
    domain="/",
    limit_bytes=64 * GI,
    total_pages=PAGES_OF_64GI,
    oom_score_adj=1000,
    used_pages=250 * MI // 4096,
    points=PAGES_OF_64GI + 250 * MI // 4096,
    killed_processes=2,
    as_group=True,
    freed_bytes=250 * MI,
    runner_up_pod="batch/analytics",
    runner_up_container="main",
    runner_up_points=PAGES_OF_64GI,
    margin_bytes=250 * MI,
    would_evict=WOULD_EVICT,
)
PRESSURE = UnderPressure(
    signal=Signal.MEMORY,
    threshold=100 * MI,
    available=90 * MI,
    hard=True,
    policy=Policy.KUBELET,
    usage=2 * GI,
    request=GI,
    over_request=True,
    priority=5,
    has_statistics=True,
    candidates=9,
    spared=("kube-system/proxy",),
    next_pod="ns/next",
    before_next_by=RankKey.PRIORITY,
    grace_period_seconds=1,
)

WHY_EVICTED = "uses 9Gi, requests 4130Mi, priority 100000; ahead of monitoring/debug: lower priority"

CASES = {
    "a pod beyond its deadline": (
        Kind.FAILED,
        ActiveDeadlineExceeded(30),
        "web failed: active for 30 s, its activeDeadlineSeconds (DeadlineExceeded)",
    ),
    "an overloaded service": (
        Kind.OVERLOADED,
        ServiceOverload("ns/web", True, 310, 4_200_000, 1130, 12, OverloadCause.CPU_LIMIT),
        "web is overloaded, 31 % errors, p99 4.2 s, 12 requests waiting: throttled at its CPU limit",
    ),
    "a failed Job": (
        Kind.JOB_FAILED,
        JobEnded("ns/import", "BackoffLimitExceeded", failed=3, completions=1, backoff_limit=2),
        "Job import failed: BackoffLimitExceeded, 3 failed pods (backoffLimit 2), 0 of 1 completions",
    ),
    "a deleted Job": (
        Kind.JOB_DELETED,
        DeletedWithJob("ns/import", "Replaced"),
        "Job import deleted: Job import makes way for the next one (concurrencyPolicy: Replace)",
    ),
    "a Job by the clock": (
        Kind.JOB_CREATED,
        CronJobDue("ns/import", "ns/import-29913120", "2026-11-16T00:00:00Z", 3),
        "CronJob import creates Job import-29913120 for 2026-11-16T00:00:00Z, 3 s late",
    ),
    "a run that is skipped": (
        Kind.JOB_SKIPPED,
        CronJobSkipped("ns/import", "JobAlreadyActive", "2026-11-16T00:00:00Z", ("ns/import-29913060",)),
        (
            "CronJob import skips the run of 2026-11-16T00:00:00Z: import-29913060 still active "
            "(concurrencyPolicy: Forbid)"
        ),
    ),
    "a failed probe": (
        Kind.UNHEALTHY,
        ProbeFailure("liveness", 3, 1, 2_000_000, 313, ThrottledBy.QUOTA, 100, 30),
        (
            "web is killed by the kubelet: liveness probe failed 3 times in a row, no answer within 1 s "
            "(its limit grants 31.9 % of the CPU it wants, 100 requests waiting)"
        ),
    ),
    "a pod out of the endpoints": (
        Kind.READINESS_CHANGED,
        Readiness(False, ProbeFailure("readiness", 3, 1, 2_000_000, 200, ThrottledBy.CONTENTION, 0, 30)),
        (
            "web is not ready, out of the endpoints: readiness probe failed 3 times in a row, no answer within 1 s "
            "(its share grants 50 % of the CPU it wants)"
        ),
    ),
    "a pod of a failed Job": (
        Kind.DELETED,
        DeletedWithJob("ns/import", "DeadlineExceeded"),
        "web deleted: Job import has failed (DeadlineExceeded)",
    ),
    "thresholds met": (
        Kind.OBSERVED,
        ThresholdsMet((ThresholdFigures(Signal.MEMORY, 500 * MI, 400 * MI, 64 * GI, 30_000_000_000),)),
        "memory.available 400Mi < 500Mi for 30 s",
    ),
    "thresholds let go": (Kind.OBSERVED, ThresholdsMet(), "all thresholds cleared"),
    "nothing to do": (
        Kind.OBSERVED,
        NothingToDo(6 * GI, (ThresholdFigures(Signal.MEMORY, 500 * MI, 6 * GI, 64 * GI),)),
        "kubelet checked memory: 6Gi available, nothing to do",
    ),
    "no threshold": (
        Kind.OBSERVED,
        NothingToDo(6 * GI),
        "kubelet checked memory: 6Gi available, no memory threshold set",
    ),
    "condition": (
        Kind.CONDITION_CHANGED,
        ConditionStatus(NodeCondition.DISK_PRESSURE, holds=True),
        "DiskPressure begins",
    ),
    "clean-up": (
        Kind.RECLAIMED,
        CleanUpGain((CleanUp.IMAGES,), Signal.NODEFS, 10 * GI, 9 * GI, 12 * GI),
        "removes unused images: nodefs.available 9Gi → 12Gi, enough",
    ),
    "pressure": (
        Kind.EVICTED,
        PRESSURE,
        "web evicted by the kubelet: memory.available 90Mi < 100Mi (hard); uses 2Gi, requests 1Gi, priority 5",
    ),
    "local storage": (
        Kind.EVICTED,
        LocalStorageExceeded(LocalStorageLimit.EMPTY_DIR, "cache", 2 * GI, GI),
        "web evicted by the kubelet: emptydirfs.limit cache: 2Gi of 1Gi",
    ),
    "not admitted": (
        Kind.REJECTED,
        NotAdmitted(AdmissionRule.OTHER_PRESSURE, "DiskPressure"),
        "web rejected: DiskPressure",
    ),
    "too little left": (
        Kind.REJECTED,
        TooLittleLeft("cpu", 500, 3800, 4000),
        "web rejected: requests 500m cpu; 3800m of 4000m already requested",
    ),
    "promised": (
        Kind.STARTED,
        Promised(QOSClass.GUARANTEED, {"main": -997, "side": -997}),
        "web started: Guaranteed, oom_score_adj −997",
    ),
    "waited": (Kind.WAIT_TIMED_OUT, WaitedTooLong(30), "web not cleaned up yet: after 30 s"),
    "exited": (Kind.EXITED, ExitedWith(137, oom_killed=True), "web exited: OOMKilled"),
    "restarted": (Kind.RESTARTED, RestartedAfter(137, 2, 10, True), "web restarted: restart 2 after 10 s of back-off"),
    "oom": (
        Kind.OOM_KILLED,
        KILL,
        "web OOM-killed: the machine out of memory; badness 64.2Gi = 250Mi + 1000 ‰",
    ),
    "throttled": (
        Kind.THROTTLED,
        CPUThrottled(3000, 2000, ThrottledBy.QUOTA),
        "web wants 3000m CPU, its limit grants 2000m",
    ),
    "pod's limit": (
        Kind.THROTTLED,
        CPUThrottled(700, 500, ThrottledBy.QUOTA, pod_limit=True),
        "web wants 700m CPU, its pod's limit grants 500m",
    ),
    "full volume": (
        Kind.REFUSED,
        LimitReached("emptyDir.cache.bytes", 60 << 20, 50 << 20),
        "web wants 60Mi emptyDir.cache.bytes, limit 50Mi",
    ),
    "limit": (Kind.REFUSED, LimitReached("pids", 500, 400), "web wants 500 pids, limit 400"),
    "placed": (Kind.PLACED, PlacedOn(("ns/low",)), "web placed: displaces ns/low"),
    "preempted": (
        Kind.PREEMPTED,
        PreemptedFor("ns/high", 1, 9),
        "web preempted: makes room for ns/high (priority 9 vs 1)",
    ),
    "preempted against its budget": (
        Kind.PREEMPTED,
        PreemptedFor("ns/high", 1, 9, breaks_budget=True),
        (
            "web preempted: makes room for ns/high (priority 9 vs 1); this violates its "
            "PodDisruptionBudget, but no other pod would make enough room"
        ),
    ),
    "room for a critical pod": (
        Kind.PREEMPTED,
        RoomForCritical("ns/high", {"cpu": 500, "memory": 200 << 20}, QOSClass.BURSTABLE),
        "web preempted: makes room for critical pod ns/high, which needs 500m more cpu and 200Mi more memory",
    ),
    "an autoscaler that wants more than it may": (
        Kind.SCALED,
        AutoscalerDecision(
            autoscaler="ns/web",
            workload="ns/web",
            current=8,
            desired=10,
            metric="cpu",
            usage=120,
            target=80,
            percent=True,
            proposed=12,
            recommended=12,
            limited_by="TooManyReplicas",
            unready=1,
        ),
        (
            "web scaled from 8 to 10 replicas: cpu 120 % of requests, target 80 %, asks for 12, maxReplicas is 10, "
            "1 pod not ready yet"
        ),
    ),
    "an autoscaler without metrics": (
        Kind.HELD,
        AutoscalerDecision(
            autoscaler="ns/web", workload="ns/web", current=1, desired=1, metric="memory", failed="NoRequest"
        ),
        "web stays at 1 replica: no usable metric memory (a container has no request for it)",
    ),
    "replaced": (
        Kind.REPLACED,
        ReplacementFor("ns/old", "Evicted"),
        "web created by its controller: replaces ns/old (Evicted)",
    ),
    "replaced after a back-off": (
        Kind.REPLACED,
        ReplacementFor("ns/old", "Evicted", 16),
        "web created by its controller: replaces ns/old (Evicted), after 16 s of back-off",
    ),
    "a pod of a StatefulSet on a lost node": (
        Kind.TERMINATING,
        NodeUnreachable("worker-1", 300),
        "web stays Terminating: worker-1 is unreachable (tolerated for 300 s), and no kubelet confirms the end",
    ),
    "a pod that is updated": (
        Kind.DELETED,
        SupersededIn("ns/web", "Updated", 2),
        "web deleted: updated to revision 2",
    ),
    "a pod that is one too many": (
        Kind.DELETED,
        SupersededIn("ns/web", "ScaledDown"),
        "web deleted: web is scaled down",
    ),
    "a rollout": (Kind.ROLLOUT_STARTED, RolloutOf("ns/web", 2), "rollout of web starts: revision 2"),
    "a complete rollback": (
        Kind.ROLLED_OUT,
        RolloutOf("ns/web", 3, rolled_back=True, is_complete=True),
        "rollback of web is complete: revision 3",
    ),
    "a workload that is scaled": (Kind.SCALED, ScaledFromTo("ns/web", 3, 5), "web is scaled up from 3 to 5"),
    "a ReplicaSet that is scaled": (
        Kind.SCALED,
        ScaledFromTo("ns/web", 3, 2, "web-rev2"),
        "web scales ReplicaSet web-rev2 down from 3 to 2",
    ),
    "no place and why": (
        Kind.PENDING,
        NoPlace(
            nodes=3,
            refusing=(
                NodesRefusing("UntoleratedTaint", 2, "node.kubernetes.io/memory-pressure"),
                NodesRefusing("Insufficient", 1, "memory"),
            ),
        ),
        "web waits for a node: no node fits (2 × taint memory-pressure, 1 × not enough memory)",
    ),
    "a guard that shadows": (
        Kind.WATCHING,
        GuardMode(enforce=False, held_back="shadow"),
        "the node is guarded: evicts nothing: shadow",
    ),
    "a guard that evicts": (Kind.WATCHING, GuardMode(enforce=True), "the node is guarded: evicts"),
    "a guard's eviction": (
        Kind.REPORTED,
        EvictionReport("Evicted", noticed_us=1_000_000, killed_us=1_007_300),
        "web reported to the API server: Evicted, killed 7.3 ms after the threshold was crossed",
    ),
    "an eviction that was refused": (
        Kind.REPORTED,
        EvictionReport("Refused", "not your node"),
        "web reported to the API server: Refused (not your node)",
    ),
    "what would have saved it": (
        Kind.EXPLAINED,
        WouldHaveSaved((PodSaving("request more", "memory", 300 * MI, "main"),)),
        "web would have been saved by: request 300Mi of memory for main",
    ),
    "nothing would have saved it": (
        Kind.EXPLAINED,
        WouldHaveSaved(),
        "web would have been saved by: nothing in the pod alone",
    ),
    "seen evicted": (
        Kind.EVICTED,
        SeenEvicted("Evicted", "The node was low on resource: memory."),
        "web evicted by the kubelet: The node was low on resource: memory.",
    ),
    "budget refuses": (
        Kind.DRAIN_BLOCKED,
        BudgetRefuses("a", 3, 3, "Cannot evict pod"),
        (
            "web cannot be evicted by the drain: PodDisruptionBudget a needs 3 healthy pods and has 3, "
            "tried again every 5 s"
        ),
    ),
    "memory.high": (
        Kind.MEMORY_THROTTLED,
        MemoryThrottled(250 * MI, 260 * MI, 40 * MI, 116_000),
        "web is slowed at memory.high 250Mi, wants 40Mi more, sleeps 116 ms per 256Ki",
    ),
    "below memory.high": (
        Kind.MEMORY_THROTTLED,
        MemoryThrottled(250 * MI, 200 * MI, is_over=True),
        "web gets all the memory it wants again",
    ),
    "no node": (
        Kind.PENDING,
        NoPlace(bound_to="worker-1"),
        "web waits for a node: it is bound to worker-1, which doesn't exist",
    ),
    "no place": (Kind.PENDING, NoPlace("0/3 nodes are available"), "web waits for a node: 0/3 nodes are available"),
}


def _entry(kind, because):
    is_node = kind in {Kind.OBSERVED, Kind.CONDITION_CHANGED, Kind.RECLAIMED, Kind.WATCHING, Kind.OVERLOADED}
    is_node |= kind.value.startswith("Job")
    by = By.KERNEL if kind is Kind.OOM_KILLED else By.KUBELET
    return Entry(0, "node", kind, None if is_node else "ns/web", None, by, because)


@pytest.mark.parametrize(("kind", "because", "text"), CASES.values(), ids=CASES)
def test_an_entry_is_one_line(kind, because, text):
    assert line(_entry(kind, because)) == text


def test_every_kind_of_reason_has_words():
    assert {type(because) for _, because, _ in CASES.values()} == set(get_args(Because))


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_of_entry_has_words_without_a_reason(kind):
    assert line(Entry(0, "node", kind, "ns/web"))


def test_a_container_is_named_where_its_pod_does_not_say_it():
    assert line(Entry(0, "node", Kind.STARTED, "ns/web-0", "web")) == "web-0 started"
    assert line(Entry(0, "node", Kind.STARTED, "ns/web-0", "proxy")) == "web-0 (proxy) started"


def test_a_kill_by_the_kernel_tells_badness_runner_up_and_whom_the_kubelet_would_have_evicted():
    assert reasons(_entry(Kind.OOM_KILLED, KILL)) == (
        "The machine used up its 64Gi.",
        "The kernel chose a process of ns/web using 250Mi with oom_score_adj 1000: badness 64.2Gi, the highest.",
        "2 processes died as a group, freeing 250Mi.",
        "The runner-up was batch/analytics with 64Gi: a margin of 250Mi.",
        f"At that moment the kubelet would have evicted batch/analytics ({WHY_EVICTED}).",
    )


def test_an_eviction_tells_the_threshold_the_place_the_spared_and_the_next():
    assert reasons(_entry(Kind.EVICTED, PRESSURE)) == (
        "The kubelet saw memory.available 90Mi < 100Mi (hard).",
        "It uses 2Gi, requests 1Gi and has priority 5: the first of 9 that may be evicted.",
        "Ranked before it but never evicted: kube-system/proxy.",
        "Ranked ahead of ns/next: this pod has a lower priority.",
        "Its grace period was 1 s, its containers had 2 s to stop.",
    )


def test_of_two_pods_within_their_requests_the_first_is_closer_to_its_own_and_exceeds_nothing():
    within = replace(PRESSURE, usage=900 * MI, over_request=False, before_next_by=RankKey.EXCESS)
    assert "Ranked ahead of ns/next: this pod is closer to its request." in reasons(_entry(Kind.EVICTED, within))
    over = replace(PRESSURE, before_next_by=RankKey.EXCESS)
    assert "Ranked ahead of ns/next: this pod exceeds its request by more." in reasons(_entry(Kind.EVICTED, over))


@pytest.mark.parametrize(
    ("because", "expected"),
    [
        (KILL, "all 64Gi of the machine used"),
        (replace(KILL, level=OOMLevel.CONTAINER, limit_bytes=512 * MI), "limit of 512Mi reached"),
        (replace(KILL, level=OOMLevel.KUBEPODS, limit_bytes=60 * GI), "limit of all pods, 60Gi, reached"),
        (PRESSURE, "memory.available 90Mi < 100Mi"),
        (LocalStorageExceeded(LocalStorageLimit.EMPTY_DIR, "cache", 2 * GI, GI), "emptydirfs.limit cache: 2Gi of 1Gi"),
    ],
)
def test_a_picture_has_room_for_a_reason_of_a_few_words(because, expected):
    assert cause(_entry(Kind.EVICTED, because)) == expected
