"""Why things happened, as kept in a journal: one value per kind of reason, distinguished by ``type``.

Amounts are plain numbers (bytes, inodes, processes; cpu in thousandths), so that a journal can be read without podqos.
A world with decisions of its own, such as kernel kills, adds its reasons here and to ``Because``.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct, field

from podqos.eviction.admission import AdmissionRule
from podqos.eviction.local_storage import LocalStorageLimit
from podqos.eviction.ranking import Policy
from podqos.eviction.signals import CleanUp, NodeCondition, RankKey, Signal
from podqos.model.pod import QOSClass


class Reason(Struct, frozen=True, gc=False, tag=True, rename="camel", omit_defaults=True):
    """Base of all reasons: the tag is the name of the class."""


class ThresholdFigures(Struct, frozen=True, gc=False, rename="camel"):
    """A threshold at a moment."""

    signal: Signal
    threshold: int
    available: int
    capacity: int
    grace_period_ns: int = 0


class ThresholdsMet(Reason, frozen=True):
    """The thresholds that are met; none when the last has cleared."""

    met: tuple[ThresholdFigures, ...] = ()


class NothingToDo(Reason, frozen=True):
    """What a pass of the eviction loop saw that found no threshold met and had nothing to take back."""

    available: int
    """``memory.available``, in bytes."""
    thresholds: tuple[ThresholdFigures, ...] = ()
    """The thresholds of memory, none of which was met."""


class ConditionStatus(Reason, frozen=True):
    """A condition the node began or ceased to report."""

    condition: NodeCondition
    holds: bool


class CleanUpGain(Reason, frozen=True):
    """What a clean-up of the node was for, and what it gained."""

    what: tuple[CleanUp, ...]
    signal: Signal
    threshold: int
    available_before: int
    available_after: int | None


class UnderPressure(Reason, frozen=True):
    """The place in the ranking for which a pod was evicted."""

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
    """How many pods could have been evicted."""
    spared: tuple[str, ...] = ()
    """Pods that rank before it and must not be evicted."""
    next_pod: str | None = None
    """The next pod in the ranking."""
    before_next_by: RankKey | None = None
    grace_period_seconds: int = 0
    message: str = ""
    held_back: str = ""
    """Why it was decided and not done; empty where it was done."""


class LocalStorageExceeded(Reason, frozen=True):
    """A limit of local storage, of the pod's own, that it exceeded."""

    limit_kind: LocalStorageLimit
    name: str
    used_bytes: int
    limit_bytes: int
    grace_period_seconds: int = 0
    message: str = ""
    held_back: str = ""
    """Likewise."""


class NotAdmitted(Reason, frozen=True):
    """Why a pod was rejected under pressure."""

    rule: AdmissionRule
    message: str


class TooLittleLeft(Reason, frozen=True):
    """The resource of which the node has too little left for a pod."""

    resource: str
    requested: int
    used: int
    capacity: int


class Promised(Reason, frozen=True):
    """What a pod starts with: its class, and how that reaches the kernel."""

    qos_class: QOSClass
    oom_score_adj: dict[str, int]


class ExitedWith(Reason, frozen=True):
    """How a container ended."""

    exit_code: int
    oom_killed: bool = False
    finished_us: int | None = None
    """When it ended, where the kubelet noticed later."""
    restarts: bool = False
    """Whether the kubelet starts it again, now or after a back-off."""


class RestartedAfter(Reason, frozen=True):
    """What a container was restarted after, and how long that was put off."""

    exit_code: int
    restarts: int
    back_off_seconds: int
    oom_killed: bool = False
    with_all: bool = False
    """Whether a restart rule started all containers of the pod again."""


class OOMLevel(StrEnum):
    """Which level of the cgroup tree ran out of memory."""

    CONTAINER = "container"
    POD = "pod"
    CLASS = "class"
    KUBEPODS = "kubepods"
    NODE = "node"
    """The whole machine: a global OOM."""


class WouldEvict(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The pod that the kubelet would have evicted for memory at the moment of a kill, had it looked, and why."""

    pod: str
    usage: int
    request: int
    over_request: bool
    priority: int
    next_pod: str | None = None
    before_next_by: RankKey | None = None
    threshold_met: bool = False
    """Whether it would have evicted at all: a memory threshold was met at that moment."""


class OOMKill(Reason, frozen=True):
    """Why the kernel chose a process, and who died with it."""

    level: OOMLevel
    domain: str
    """The cgroup that ran out; ``/`` for the machine."""
    limit_bytes: int
    total_pages: int
    """What thousandths of ``oom_score_adj`` are of."""
    oom_score_adj: int
    used_pages: int
    points: int
    killed_processes: int
    as_group: bool
    """The container died as a whole (``memory.oom.group``)."""
    freed_bytes: int = 0
    kept_bytes: int = 0
    """What the container wrote into volumes in memory, which stays with its pod."""
    runner_up_pod: str | None = None
    runner_up_container: str | None = None
    runner_up_points: int | None = None
    margin_bytes: int | None = None
    """By how much more memory the runner-up would have died instead."""
    would_evict: WouldEvict | None = None
    denied_bytes: int = 0
    """What the container asked for at that moment and did not get."""
    container_lives: bool = False
    """Whether the container keeps running: one of its processes was killed, and not the first."""


class ThrottledBy(StrEnum):
    """What keeps a container from the CPU time it wants."""

    QUOTA = "quota"
    CONTENTION = "contention"
    NOTHING = "nothing"
    """It gets again all it wants."""


class CPUThrottled(Reason, frozen=True):
    """What a container wants of the CPU and what it gets."""

    wanted_milli: int
    granted_milli: int
    throttled_by: ThrottledBy = field(name="by")
    pod_limit: bool = False
    """Whether it is the limit of its pod that all containers together have used up."""


class LimitReached(Reason, frozen=True):
    """Something other than memory that a container was refused because there is no more of it."""

    resource: str
    wanted: int
    limit: int


class PlacedOn(Reason, frozen=True):
    """How a pod came to its node."""

    displaced: tuple[str, ...] = ()


class PreemptedFor(Reason, frozen=True):
    """The pod that another was preempted for."""

    preemptor: str
    priority: int
    preemptor_priority: int
    breaks_budget: bool = False
    """Whether a PodDisruptionBudget allowed no more pods to go: the scheduler heeds it only where it has a choice."""


class RoomForCritical(Reason, frozen=True):
    """The critical pod that the kubelet preempted another for when it admitted it."""

    preemptor: str
    lacking: dict[str, int]
    """By resource: how much more of it the pod requests than was left. Thousandths of cpu."""
    qos_class: QOSClass
    """Of the pod that goes: as few of the higher classes as possible."""


class ReplacementFor(Reason, frozen=True):
    """Which pod a controller made a new one for."""

    pod: str
    why: str
    back_off_seconds: int = 0
    """How long the DaemonSet controller left the failed pod alone first."""


class NodesRefusing(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """How many nodes refuse a pod for the same reason."""

    reason: str
    """The name of the reason in ``placement.reasons``."""
    nodes: int
    what: str = ""
    """The resource, taint or label that it is about."""


class NoPlace(Reason, frozen=True):
    """A pod that fits nowhere for now."""

    message: str = ""
    """In the words of a scheduler, where one has spoken."""
    nodes: int = 0
    refusing: tuple[NodesRefusing, ...] = ()
    """All that the first filter that refuses a node says, the most common reason first."""
    bound_to: str = ""
    """The node that it is bound to, and that is not there."""


class WaitedTooLong(Reason, frozen=True):
    """For how long the agent waited before it went on."""

    seconds: int


class GuardMode(Reason, frozen=True):
    """How a guard watches from now on."""

    enforce: bool
    """Whether it was told to evict."""
    held_back: str = ""
    """Why it evicts no pod for now."""
    ended: bool = False


class EvictionReport(Reason, frozen=True):
    """What came of a guard's eviction, and when what was done: times are those of the journal."""

    outcome: str
    """``guard.eviction.Outcome``."""
    why: str = ""
    noticed_us: int | None = None
    """When the shortage was noticed: the kernel's signal, or the look that found it."""
    decided_us: int | None = None
    held_us: int | None = None
    killed_us: int | None = None
    gone_us: int | None = None
    answered_us: int | None = None
    major_faults: int | None = None
    """Of the guard, between the decision and the kill."""


class PodSaving(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A change with which a pod would not have been evicted at that moment."""

    change: str
    """``survival.counterfactual.PodChange``."""
    resource: str
    amount: int | None = None
    container: str | None = None
    instead: str | None = None
    """The pod that would have been evicted; None: none."""


class WouldHaveSaved(Reason, frozen=True):
    """What would have saved a pod; nothing where no change of the pod would."""

    savings: tuple[PodSaving, ...] = ()


class SeenEvicted(Reason, frozen=True):
    """What the API server says of a pod that a kubelet evicted."""

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
    | OOMKill
    | CPUThrottled
    | LimitReached
    | PlacedOn
    | PreemptedFor
    | RoomForCritical
    | ReplacementFor
    | NoPlace
    | GuardMode
    | EvictionReport
    | WouldHaveSaved
    | SeenEvicted
)


def cause_of(because: Because | None) -> str | None:
    """Return what a pod was killed or evicted for: the level out of memory, the signal, or the pod's own limit."""
    match because:
        case OOMKill(level=cause) | UnderPressure(signal=cause) | LocalStorageExceeded(limit_kind=cause):
            return cause.value
        case _:
            return None
