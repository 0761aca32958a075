"""Pure: evicts one pod next to a kubelet, step by step, in a way that Kubernetes understands.

A kubelet tears a pod down when its status is patched to ``Failed`` *and* an annotation changes in the same request. A
status alone is reverted within seconds, and a container killed before the patch is restarted. So: stop the growth, send
one patch, kill the containers at the same moment (or once the server has answered), and for a while kill whatever still
starts. The server's answer decides the rest. Once killing has begun, an eviction is never abandoned: it retries until
the server has the status, because a kill without a reason is what the guard exists to prevent.

A soft threshold leaves time: the server is asked to evict by its own rules, and nothing is frozen or killed.

``(eviction, event) → (eviction, actions)``: nothing here has side effects, and a restarted guard can continue at any
step (``taken_up``).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

ANSWER_SECONDS = 0.05
"""How long a pod is only frozen while the server does not answer."""
HELD_SECONDS = 10.0
"""How long it is frozen at most: a frozen pod fails its probes, and the kubelet cannot stop it, either."""
WATCHED_SECONDS = 2.0
"""How long restarted containers are killed after the server's answer: the kubelet may not know yet, and its first
restart comes after 0.2 to 1.3 seconds.
"""
MOST_REPAIRS = 3
"""A kubelet that tears a pod down first reports it without a reason, and restores the reason later from its own copy of
the pod. If it has to start over, its copy has no reason: sending the status again in time fixes that.
"""
MOST_EVENT_FAILURES = 12
"""Number of retries, over some minutes, for an Event that is forbidden: someone may grant the permission."""
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 30.0
_OK, _MULTIPLE = 200, 300
_BAD, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _CONFLICT, _UNPROCESSABLE = 400, 401, 403, 404, 409, 422


class KillWhen(StrEnum):
    """When the containers are killed."""

    PATCH = "patch"
    """When the patch is sent."""
    ANSWER = "answer"
    """When the server has accepted it, or, without an answer, when memory keeps falling."""


class EvictionOutcome(StrEnum):
    """The outcome of an eviction."""

    EVICTED = "Evicted"
    """The server has the status, or evicts the pod itself."""
    GONE = "Gone"
    """The server no longer had the pod, or it had no processes."""
    REPLACED = "Replaced"
    """The server had another pod of that name, which was left alone."""
    REFUSED = "Refused"
    """The server did not allow it; nothing was killed."""
    DROPPED = "Dropped"
    """The guard was down for too long after the decision; nothing was killed."""


class GuardVictim(Struct, frozen=True):
    """The pod, and what is reported to the server."""

    namespace: str
    name: str
    uid: str
    message: str
    """In the kubelet's words."""
    decided_at: str
    """RFC 3339."""
    generation: int = 0
    """The last known generation of its spec; 0 if unknown."""
    threshold: str = ""
    node: str = ""
    annotations: dict[str, str] = {}
    """Annotations of the Event: the kubelet's, and the reason."""


class Eviction(Struct, frozen=True, omit_defaults=True):
    """The state of an eviction, saved at every step."""

    victim: GuardVictim
    kill_when: KillWhen = KillWhen.PATCH
    grace_seconds: int | None = None
    """The grace period of its containers, if the server evicts it."""
    has_killed: bool = False
    """Whether killing has begun, or is about to."""
    is_gone: bool = False
    """Whether its containers have no process left."""
    is_dropping: bool = False
    """Whether it only remains to find out if the server was informed."""
    has_event: bool = False
    """Whether the server has the Event, or never will."""
    event_refusal: str = ""
    """Why it never will."""
    refusal: str = ""
    """The server's last reason for rejecting the patch."""
    repairs: int = 0
    """How often the status was sent again because the kubelet had overwritten the reason."""
    failures: int = 0
    outcome: EvictionOutcome | None = None

    @property
    def is_soft(self) -> bool:
        """Whether the server evicts it by its own rules."""
        return self.grace_seconds is not None

    @property
    def needs_event(self) -> bool:
        """Whether an Event must still be posted: for everything that was killed."""
        return not self.has_event and (self.has_killed or self.outcome is EvictionOutcome.EVICTED)

    @property
    def is_over(self) -> bool:
        """Whether the eviction is over."""
        return self.outcome is not None and not self.needs_event and (self.is_gone or not self.has_killed)


# ---- what happens ---------------------------------------------------------------------------------------------------


class EvictionSent(Struct, frozen=True):
    """The request was sent."""


class EvictionAnswered(Struct, frozen=True):
    """The server answered the request."""

    status: int
    message: str = ""


class Unanswered(Struct, frozen=True):
    """A request got no answer, or no connection; it is retried later."""

    why: str = ""


class Looked(Struct, frozen=True):
    """What the server has under the pod's name."""

    uid: str | None
    """None: no pod."""
    is_told: bool = False
    """Whether it already has the guard's status."""


class EventAnswered(Struct, frozen=True):
    """The server answered the Event."""

    status: int
    message: str = ""


class StillFalling(Struct, frozen=True):
    """Memory keeps falling although this pod is frozen, or the pod was selected again."""


class ProcessesGone(Struct, frozen=True):
    """No container of the pod has a process left."""


class PauseOver(Struct, frozen=True):
    """It is time to retry."""


class ReasonLost(Struct, frozen=True):
    """The server shows the pod as failed without a reason."""


class TimeOver(Struct, frozen=True):
    """The server's time to evict the pod by its own rules is over."""


Event = (
    EvictionSent
    | EvictionAnswered
    | Unanswered
    | Looked
    | EventAnswered
    | StillFalling
    | ProcessesGone
    | PauseOver
    | ReasonLost
    | TimeOver
)


# ---- what is to be done ---------------------------------------------------------------------------------------------


class StopGrowth(Struct, frozen=True):
    """Stop the pod from using more memory."""


class SendPatch(Struct, frozen=True):
    """Report to the server: status and annotation in one request, with the uid."""


class SendAgain(Struct, frozen=True):
    """Report again what the server already knew, with a new annotation, regardless of the answer."""


class SendEviction(Struct, frozen=True):
    """Ask the server to evict it, with the uid."""


class LookAgain(Struct, frozen=True):
    """Read what the server has under that name."""


class KillContainers(Struct, frozen=True):
    """Kill the processes of its containers, not the sandbox, and restarted ones until some time after the answer."""

    then_for_seconds: float = WATCHED_SECONDS


class LetGo(Struct, frozen=True):
    """Thaw the pod, so that its processes can die or continue."""


class PostEvent(Struct, frozen=True):
    """Record the eviction as the kubelet does, under a fixed name, so that posting it twice is harmless."""


class Pause(Struct, frozen=True):
    """Schedule ``PauseOver``."""

    seconds: float


Action = StopGrowth | SendPatch | SendAgain | SendEviction | LookAgain | KillContainers | LetGo | PostEvent | Pause
Step = tuple[Eviction, Sequence[Action]]


def begin(victim: GuardVictim, kill_when: KillWhen) -> Step:
    """Start: stop the growth first, because it continues while the server is asked."""
    return Eviction(victim, kill_when), (StopGrowth(), SendPatch())


def begin_softly(victim: GuardVictim, grace_seconds: int) -> Step:
    """Start an eviction through the API."""
    return Eviction(victim, grace_seconds=grace_seconds), (SendEviction(),)


def taken_up(eviction: Eviction, *, is_late: bool = False) -> Step:
    """Continue an earlier guard's eviction; the server is asked again, which is harmless if it knows.

    ``is_late``: too old to start killing for it. The server may still know about it.
    """
    if eviction.is_over:
        return eviction, (LetGo(),)
    if eviction.has_killed:
        is_done = eviction.is_gone and eviction.outcome is not None
        return eviction, (*_due(eviction), *(() if is_done else (KillContainers(),)))
    if eviction.outcome is None and (is_late or eviction.is_dropping):
        return replace(eviction, is_dropping=True), (LetGo(), LookAgain())
    first = () if eviction.is_soft or eviction.outcome is not None else (StopGrowth(),)
    return eviction, (*first, *_due(eviction))


def follow(eviction: Eviction, event: Event) -> Step:
    """Handle one event."""
    match event:
        case EvictionSent():
            return _killing(eviction) if eviction.kill_when is KillWhen.PATCH else (eviction, ())
        case EvictionAnswered(status, message):
            return _answered(eviction, status, message)
        case Unanswered():
            is_refused = eviction.refusal and not eviction.has_killed
            return _over(eviction, EvictionOutcome.REFUSED) if is_refused else _again(eviction)
        case Looked(uid, is_told):
            return _looked(eviction, uid, is_told=is_told)
        case EventAnswered(status, message):
            return _event_answered(eviction, status, message)
        case StillFalling():
            return _killing(replace(eviction, has_killed=eviction.has_killed and not eviction.is_gone))
        case ProcessesGone():
            return replace(eviction, is_gone=True), (LetGo(),)
        case PauseOver():
            return eviction, _due(eviction)
        case ReasonLost():
            if eviction.is_soft or eviction.outcome is not EvictionOutcome.EVICTED or eviction.repairs >= MOST_REPAIRS:
                return eviction, ()
            return replace(eviction, repairs=eviction.repairs + 1), (SendAgain(),)
        case TimeOver():
            return (eviction, ()) if eviction.outcome else _over(eviction, EvictionOutcome.REFUSED)


def _due(eviction: Eviction) -> tuple[Action, ...]:
    """Return the requests that are still due."""
    if eviction.outcome is not None:
        return (PostEvent(),) if eviction.needs_event else ()
    if eviction.is_dropping:
        return (LookAgain(),)
    return (SendEviction(),) if eviction.is_soft else (SendPatch(),)


def _answered(eviction: Eviction, status: int, message: str) -> Step:
    if eviction.outcome is not None:
        return eviction, ()
    if _OK <= status < _MULTIPLE:
        return _over(replace(eviction, refusal=""), EvictionOutcome.EVICTED)
    if status in {_NOT_FOUND, _CONFLICT, _UNPROCESSABLE}:
        # Another pod of that name, a policy that forbids it, or someone else was faster.
        return replace(eviction, refusal=message if status == _UNPROCESSABLE else ""), (LookAgain(),)
    if status in {_UNAUTHORIZED, _FORBIDDEN} and not eviction.has_killed:
        return _over(replace(eviction, refusal=message), EvictionOutcome.REFUSED)
    return _again(eviction)


def _looked(eviction: Eviction, uid: str | None, *, is_told: bool) -> Step:
    if eviction.outcome is not None:
        return eviction, ()
    if uid != eviction.victim.uid or is_told:
        # Processes are killed by the uid in their cgroup, never by name.
        outcome = (
            EvictionOutcome.GONE
            if uid is None
            else EvictionOutcome.REPLACED
            if uid != eviction.victim.uid
            else EvictionOutcome.EVICTED
        )
        return _over(replace(eviction, refusal=""), outcome)
    if eviction.is_dropping:
        return _over(eviction, EvictionOutcome.DROPPED)
    if eviction.refusal and not eviction.has_killed:
        return _over(eviction, EvictionOutcome.REFUSED)
    return _again(eviction, at_once=not eviction.refusal)


def _over(eviction: Eviction, outcome: EvictionOutcome) -> Step:
    """Follow the server's last answer, except for the Event. A pod that it no longer has is still killed."""
    known = replace(eviction, outcome=outcome, failures=0)
    if outcome in {EvictionOutcome.REFUSED, EvictionOutcome.DROPPED}:
        return known, (LetGo(),)
    killing, first = _killing(known)
    return killing, (*first, *_due(killing))


def _again(eviction: Eviction, *, at_once: bool = False) -> Step:
    """Retry with increasing intervals; a pod that was not killed yet stays frozen."""
    pause = 0.0 if at_once and not eviction.failures else FIRST_PAUSE_SECONDS * 2 ** min(eviction.failures, 20)
    return replace(eviction, failures=eviction.failures + 1), (Pause(min(pause, LONGEST_PAUSE_SECONDS)),)


def _killing(eviction: Eviction) -> Step:
    """Kill, unless that is done or not allowed."""
    is_spared = eviction.is_soft or eviction.is_dropping or bool(eviction.refusal)
    if eviction.has_killed or is_spared:
        return eviction, ()
    return replace(eviction, has_killed=True, is_gone=False), (KillContainers(),)


def _event_answered(eviction: Eviction, status: int, message: str) -> Step:
    """Retry the Event, unless it exists or never will: its namespace is terminating, or it is forbidden."""
    if _OK <= status < _MULTIPLE or status == _CONFLICT:
        return replace(eviction, has_event=True), ()
    is_forbidden = status == _FORBIDDEN and (
        eviction.outcome is not EvictionOutcome.EVICTED or eviction.failures >= MOST_EVENT_FAILURES
    )
    if is_forbidden or status in {_BAD, _NOT_FOUND, _UNPROCESSABLE}:
        return replace(eviction, has_event=True, event_refusal=f"{status} {message}".rstrip()), ()
    return _again(eviction)
