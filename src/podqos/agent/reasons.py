"""Why things happened, as kept in a journal: one value per kind of reason, distinguished by ``type``.

Amounts are plain numbers (bytes, inodes, processes, millicores), so that a journal can be read without podqos. A world
with decisions of its own, such as kernel kills, adds its reasons here and to ``Because``.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct, field

from podqos.eviction.manager import AdmissionRule
from podqos.eviction.pods import LocalStorageLimit
from podqos.eviction.ranking import Policy
from podqos.eviction.signals import CleanUp, NodeCondition, RankKey, Signal
from podqos.model.pod import QOSClass


class Reason(Struct, frozen=True, gc=False, tag=True, rename="camel", omit_defaults=True):
    """Base of all reasons: the tag is the name of the class."""


class ThresholdFigures(Struct, frozen=True, gc=False, rename="camel"):
    """The state of a threshold."""

    signal: Signal
    threshold: int
    available: int
    capacity: int
    grace_period_ns: int = 0


class ThresholdsMet(Reason, frozen=True):
    """The crossed thresholds; none after the last has cleared."""

    met: tuple[ThresholdFigures, ...] = ()


class NothingToDo(Reason, frozen=True):
    """What an eviction check saw that found no threshold crossed and nothing to clear."""

    available: int
    """``memory.available``, in bytes."""
    thresholds: tuple[ThresholdFigures, ...] = ()
    """The memory thresholds, none of which was crossed."""


class ConditionStatus(Reason, frozen=True):
    """A condition that the node started or stopped reporting."""

    condition: NodeCondition
    holds: bool


class CleanUpGain(Reason, frozen=True):
    """The purpose of a node clean-up, and how much it freed."""

    what: tuple[CleanUp, ...]
    signal: Signal
    threshold: int
    available_before: int
    available_after: int | None


class UnderPressure(Reason, frozen=True):
    """The ranking that led to the eviction of a pod."""

    signal: Signal
    threshold: int
    available: int
    hard: bool
    policy: Policy
    usage: int
    request: int
    over_request: bool
    priority: int
    has_statistics: bool
    candidates: int
    """The number of pods that could have been evicted."""
    spared: tuple[str, ...] = ()
    """Pods that rank before it but must not be evicted."""
    next_pod: str | None = None
    """The next pod in the ranking."""
    before_next_by: RankKey | None = None
    grace_period_seconds: int = 0
    message: str = ""
    held_back: str = ""
    """Why the decision was not carried out; empty if it was."""


class LocalStorageExceeded(Reason, frozen=True):
    """One of the pod's own limits for local storage, which it exceeded."""

    limit_kind: LocalStorageLimit
    name: str
    used_bytes: int
    limit_bytes: int
    grace_period_seconds: int = 0
    message: str = ""
    held_back: str = ""
    """Why the decision was not carried out; empty if it was."""


class NotAdmitted(Reason, frozen=True):
    """Why a pod was rejected under pressure."""

    rule: AdmissionRule
    message: str


class TooLittleLeft(Reason, frozen=True):
    """The resource that is too short on the node for a pod."""

    resource: str
    requested: int
    used: int
    capacity: int


class Promised(Reason, frozen=True):
    """What a pod starts with: its class, and its effect on the kernel."""

    qos_class: QOSClass
    oom_score_adj: dict[str, int]


class ExitedWith(Reason, frozen=True):
    """How a container ended."""

    exit_code: int
    oom_killed: bool = False
    finished_us: int | None = None
    """When it ended, if the kubelet noticed later."""
    restarts: bool = False
    """Whether the kubelet restarts it, now or after a back-off."""


class RestartedAfter(Reason, frozen=True):
    """Why a container was restarted, and after which delay."""

    exit_code: int
    restarts: int
    back_off_seconds: int
    oom_killed: bool = False
    with_all: bool = False
    """Whether a restart rule restarted all containers of the pod."""


class ThrottledBy(StrEnum):
    """What keeps a container from the CPU time it demands."""

    QUOTA = "quota"
    CONTENTION = "contention"
    NOTHING = "nothing"
    """It gets all it demands again."""


class ProbeKind(StrEnum):
    """What a probe decides about."""

    LIVENESS = "liveness"
    READINESS = "readiness"
    STARTUP = "startup"


class ProbeFailure(Reason, frozen=True):
    """Why a probe failed, and how often in a row."""

    probe: ProbeKind
    failures: int
    timeout_seconds: int
    response_us: int | None = None
    """How long the answer would have taken; None if the request was refused or nothing answers."""
    slowdown: int = 100
    """The container's CPU demand in percent of what it gets; 100 if it gets all it wants."""
    throttled_by: ThrottledBy | None = field(name="by", default=None)
    """What keeps it from more CPU."""
    waiting: int = 0
    """Requests in the queue of its service."""
    grace_period_seconds: int = 0
    """How long the container has to stop, if it is killed for that."""


class Readiness(Reason, frozen=True):
    """Whether a container, and so its pod, receives requests from now on."""

    ready: bool
    because: ProbeFailure | None = None


class OverloadCause(StrEnum):
    """What a service has too little of for the requests it gets."""

    CPU_LIMIT = "cpuLimit"
    CONTENTION = "contention"
    CPU = "cpu"
    """It uses all the CPU that its workers can."""
    WORKERS = "workers"
    NOT_READY = "notReady"
    """It has no ready pod."""
    NODE_LOST = "nodeLost"
    """Requests go to pods on a lost node, until the loss is noticed."""


class ServiceOverload(Reason, frozen=True):
    """A service fails requests, or no longer does. The figures are those of a model."""

    workload: str
    """``namespace/name``."""
    begins: bool
    errors_permille: int = 0
    p99_us: int = 0
    utilisation_permille: int = 0
    waiting: int = 0
    """Requests in the queues of its pods."""
    cause: OverloadCause | None = None


class OOMLevel(StrEnum):
    """The level of the cgroup tree that ran out of memory."""

    CONTAINER = "container"
    POD = "pod"
    CLASS = "class"
    KUBEPODS = "kubepods"
    NODE = "node"
    """The whole machine: a global OOM."""


class WouldEvict(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The pod that the kubelet would have evicted for memory at the moment of a kill, had it checked, and why."""

    pod: str
    usage: int
    request: int
    over_request: bool
    priority: int
    next_pod: str | None = None
    before_next_by: RankKey | None = None
    threshold_met: bool = False
    """Whether it would have evicted at all: a memory threshold was crossed at that moment."""


class OOMKill(Reason, frozen=True):
    """Why the kernel selected a process, and what died with it."""

    level: OOMLevel
    domain: str
    """The cgroup that ran out of memory; ``/`` for the machine."""
    limit_bytes: int
    total_pages: int
    """The base of the thousandths in ``oom_score_adj``."""
    oom_score_adj: int
    used_pages: int
    points: int
    killed_processes: int
    as_group: bool
    """The container died as a whole (``memory.oom.group``)."""
    freed_bytes: int = 0
    kept_bytes: int = 0
    """What the container wrote into memory-backed volumes, which stays with its pod."""
    runner_up_pod: str | None = None
    runner_up_container: str | None = None
    runner_up_points: int | None = None
    margin_bytes: int | None = None
    """How much more memory the runner-up would have needed to die instead."""
    would_evict: WouldEvict | None = None
    denied_bytes: int = 0
    """The container's unmet demand at that moment."""
    container_lives: bool = False
    """Whether the container keeps running: a process other than its first was killed."""


class ActiveDeadlineExceeded(Reason, frozen=True):
    """Why a pod failed: it was active on its node for as long as it may be."""

    active_deadline_seconds: int


class CPUThrottled(Reason, frozen=True):
    """A container's CPU demand, and what it gets."""

    wanted_milli: int
    granted_milli: int
    throttled_by: ThrottledBy = field(name="by")
    pod_limit: bool = False
    """Whether the pod's limit, shared by all its containers, is used up."""


class LimitReached(Reason, frozen=True):
    """Something other than memory that a container was denied because it ran out."""

    resource: str
    wanted: int
    limit: int


class PlacedOn(Reason, frozen=True):
    """How a pod was placed on its node."""

    displaced: tuple[str, ...] = ()


class PreemptedFor(Reason, frozen=True):
    """The pod that another one was preempted for."""

    preemptor: str
    priority: int
    preemptor_priority: int
    breaks_budget: bool = False
    """Whether this violates a PodDisruptionBudget: the scheduler only respects it if it has a choice."""


class RoomForCritical(Reason, frozen=True):
    """The critical pod for whose admission the kubelet preempted another one."""

    preemptor: str
    lacking: dict[str, int]
    """By resource: how much more the pod requests than was left. CPU in millicores."""
    qos_class: QOSClass
    """The class of the preempted pod: as few of the higher classes as possible."""


class MemoryThrottled(Reason, frozen=True):
    """A container above its ``memory.high``, whose allocations the kernel slows."""

    high_bytes: int
    usage_bytes: int
    denied_bytes: int = 0
    """How much more it wants at that moment."""
    delay_us: int = 0
    """How long it sleeps after every 256 KiB, at that moment."""
    is_over: bool = False
    """Whether it gets what it wants again."""


class BudgetRefuses(Reason, frozen=True):
    """The PodDisruptionBudget that does not allow an eviction for now."""

    budget: str
    healthy: int
    """How many of its pods are ready."""
    desired: int
    """How many it needs."""
    message: str
    """In the API server's words."""


class ReplacementFor(Reason, frozen=True):
    """The pod that a controller replaced with a new one."""

    pod: str
    why: str
    back_off_seconds: int = 0
    """How long the DaemonSet or Job controller waited after the failure before replacing the pod."""


class JobEnded(Reason, frozen=True):
    """Why a Job is Complete or Failed, and what it counted."""

    job: str
    """``namespace/name``."""
    reason: str
    """CompletionsReached, BackoffLimitExceeded, … as in the condition of the Job."""
    succeeded: int = 0
    failed: int = 0
    """Pods that failed and count, those included that were stopped because the Job failed."""
    completions: int | None = None
    backoff_limit: int | None = None
    restarts: int = 0
    """The container restarts that reached the back-off limit, with ``restartPolicy: OnFailure``."""
    active_deadline_seconds: int | None = None


class DeletedWithJob(Reason, frozen=True):
    """Why a controller deleted a Job, or pods of it."""

    job: str
    """``namespace/name``."""
    reason: str
    """The reason for which the Job ended; or Surplus, Replaced."""


class CronJobDue(Reason, frozen=True):
    """The Job that a CronJob created, and for when."""

    cron_job: str
    job: str
    scheduled: str
    """Such as 2026-11-15T04:00:00Z."""
    late_seconds: int = 0
    many_missed: bool = False
    """Whether it has missed more than a hundred runs."""


class CronJobSkipped(Reason, frozen=True):
    """Why a CronJob did not create a Job."""

    cron_job: str
    reason: str
    """JobAlreadyActive, as in the event of the CronJob."""
    scheduled: str
    active: tuple[str, ...] = ()


class NodeUnreachable(Reason, frozen=True):
    """Why a pod was deleted by the taint of its node, and is still there."""

    node: str
    seconds: int
    """How long it tolerated the taint."""


class SupersededIn(Reason, frozen=True):
    """Why a controller deleted a pod of its own."""

    workload: str
    """``namespace/name``."""
    why: str
    """``Updated`` or ``ScaledDown``."""
    revision: int = 0
    """The revision it is updated to."""


class RolloutOf(Reason, frozen=True):
    """The rollout of a workload."""

    workload: str
    """``namespace/name``."""
    revision: int
    rolled_back: bool = False
    """Whether its template is that of an earlier revision."""
    is_complete: bool = False
    """Whether all pods have it and are available."""


class ScaledFromTo(Reason, frozen=True):
    """How many pods are wanted."""

    workload: str
    """``namespace/name``."""
    before: int
    after: int
    replica_set: str = ""
    """The ReplicaSet that a Deployment scales; empty if the workload itself is scaled."""
    is_new: bool = False
    """Whether its template is the Deployment's."""


class AutoscalerDecision(Reason, frozen=True, kw_only=True):
    """What a HorizontalPodAutoscaler saw and decided."""

    autoscaler: str
    """``namespace/name``."""
    workload: str
    """``namespace/name``."""
    current: int
    """The replicas that the workload was set to."""
    desired: int
    """Those that it is set to now."""
    metric: str = ""
    """The metric that decided: ``cpu``, or ``cpu of web`` for one container."""
    usage: int | None = None
    """The average of the pods that count: percent of requests, millicores or bytes."""
    target: int | None = None
    percent: bool = False
    """Whether usage and target are percentages of requests."""
    proposed: int | None = None
    """The replicas that the metric asks for."""
    recommended: int | None = None
    """The same after recent recommendations were taken into account."""
    stabilized: str = ""
    """``ScaleDownStabilized`` or ``ScaleUpStabilized``: a recent recommendation was applied instead."""
    limited_by: str = ""
    """The reason of the condition ScalingLimited: ``TooManyReplicas``, ``ScaleUpLimit``, …"""
    failed: str = ""
    """Why the metric gives no number: ``NoRequest``, ``NoMetrics``, …"""
    missing: int = 0
    """How many pods had no metric."""
    unready: int = 0
    """How many pods did not count because they are pending or not ready."""


class NodesRefusing(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """How many nodes reject a pod for the same reason."""

    reason: str
    """The name of the reason in ``placement.reasons``."""
    nodes: int
    what: str = ""
    """The resource, taint or label in question."""


class NoPlace(Reason, frozen=True):
    """A pod that does not fit on any node for now."""

    message: str = ""
    """In the scheduler's words, if there is a message."""
    nodes: int = 0
    refusing: tuple[NodesRefusing, ...] = ()
    """The reasons of the first filter that rejects each node, the most common first."""
    bound_to: str = ""
    """The node that it is bound to but that does not exist."""


class WaitedTooLong(Reason, frozen=True):
    """How long the agent waited before it continued."""

    seconds: int


class GuardMode(Reason, frozen=True):
    """The guard's mode from now on."""

    enforce: bool
    """Whether it evicts."""
    held_back: str = ""
    """Why it evicts nothing at the moment."""
    ended: bool = False


class EvictionReport(Reason, frozen=True):
    """The outcome of a guard's eviction, with times in the journal's clock."""

    outcome: str
    """``guard.eviction.Outcome``."""
    why: str = ""
    noticed_us: int | None = None
    """When the shortage was noticed: the kernel's notification, or the check that found it."""
    decided_us: int | None = None
    held_us: int | None = None
    killed_us: int | None = None
    gone_us: int | None = None
    answered_us: int | None = None
    """When the API server first answered the request, with any status; None if it never did."""
    major_faults: int | None = None
    """Major page faults of the guard between the decision and the kill."""


class PodSaving(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A change with which a pod would not have been evicted at that moment."""

    change: str
    """``orders.pod_changes.PodChange``."""
    resource: str
    amount: int | None = None
    container: str | None = None
    instead: str | None = None
    """The pod that would have been evicted instead; None: none."""


class WouldHaveSaved(Reason, frozen=True):
    """What would have saved a pod; empty if no change to the pod would."""

    savings: tuple[PodSaving, ...] = ()


class SeenEvicted(Reason, frozen=True):
    """What the API server says about a pod that a kubelet evicted."""

    reason: str
    message: str = ""


Because = (
    ThresholdsMet
    | NothingToDo
    | ConditionStatus
    | CleanUpGain
    | UnderPressure
    | LocalStorageExceeded
    | NotAdmitted
    | TooLittleLeft
    | Promised
    | WaitedTooLong
    | ExitedWith
    | RestartedAfter
    | ActiveDeadlineExceeded
    | OOMKill
    | CPUThrottled
    | ProbeFailure
    | Readiness
    | ServiceOverload
    | LimitReached
    | PlacedOn
    | PreemptedFor
    | RoomForCritical
    | MemoryThrottled
    | BudgetRefuses
    | ReplacementFor
    | AutoscalerDecision
    | JobEnded
    | DeletedWithJob
    | CronJobDue
    | CronJobSkipped
    | NodeUnreachable
    | SupersededIn
    | RolloutOf
    | ScaledFromTo
    | NoPlace
    | GuardMode
    | EvictionReport
    | WouldHaveSaved
    | SeenEvicted
)


def cause_of(because: Because | None) -> str | None:
    """Return why a pod was killed or evicted: the level out of memory, the signal, or the pod's own limit."""
    match because:
        case OOMKill(level=cause) | UnderPressure(signal=cause) | LocalStorageExceeded(limit_kind=cause):
            return cause.value
        case _:
            return None
