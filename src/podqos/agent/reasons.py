"""Why things happened, as a journal keeps it: one value per kind of reason, told apart by ``type``.

Amounts are plain numbers (bytes, inodes, processes; cpu in thousandths), so that a journal can be read without podqos.
A world that decides something of its own, such as whom the kernel kills, adds its reason here and to ``Because``.
"""

from __future__ import annotations

from msgspec import Struct

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
    """The thresholds of which less is left than they ask for; none when the last has let go."""

    met: tuple[ThresholdFigures, ...] = ()


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
    """How many pods were ranked."""
    spared: tuple[str, ...] = ()
    """Who stood before it and must not be evicted."""
    next_pod: str | None = None
    """Who would have been next."""
    before_next_by: RankKey | None = None
    grace_period_seconds: int = 0
    message: str = ""


class LocalStorageExceeded(Reason, frozen=True):
    """A limit of local storage, of the pod's own, that it exceeded."""

    limit_kind: LocalStorageLimit
    name: str
    used_bytes: int
    limit_bytes: int
    grace_period_seconds: int = 0
    message: str = ""


class NotAdmitted(Reason, frozen=True):
    """Why a pod was turned away under pressure."""

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


class WaitedTooLong(Reason, frozen=True):
    """For how long the agent waited before it went on."""

    seconds: int


Because = (
    ThresholdsMet
    | ConditionStatus
    | CleanUpGain
    | UnderPressure
    | LocalStorageExceeded
    | NotAdmitted
    | TooLittleLeft
    | Promised
    | WaitedTooLong
)
