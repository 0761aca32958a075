"""Pure: how one pod is evicted beside a kubelet, step by step, so that Kubernetes understands what happened.

A kubelet tears a pod down when its status is patched to ``Failed`` *and* an annotation changes in the same request; a
status alone is put back within seconds, and a container that is killed before the patch is restarted. So: stop the
growth, send one patch, kill the containers at the same moment (or once the server has answered), and end for a while
whatever still starts. What the server says decides the rest. An eviction that has begun to kill is never given up: it
asks again until the server has the status, because a kill without its reason is what the guard is there to prevent.

For a soft threshold there is time: the server is asked to evict by its own rules, and nothing is held or killed.

``(eviction, event) → (eviction, actions)``: nothing here does anything, and every step can be taken up by a guard that
was killed and started again (``taken_up``).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

ANSWER_SECONDS = 0.05
"""How long the growth alone is stopped while the server says nothing."""
HELD_SECONDS = 10.0
"""How long it is stopped at most: what is frozen answers no probe, and the kubelet cannot end it either."""
WATCHED_SECONDS = 2.0
"""For how long whatever starts in the pod is ended, once the server has answered: the kubelet may not have heard yet,
and its first restart comes after 0.2 to 1.3 seconds."""
MOST_REPAIRS = 3
"""A kubelet that begins to tear a pod down shows it without a reason at first, and restores that in the end from the
pod as it knew it. If it has to begin again, it knows the pod without one: told again in time, it has it."""
MOST_EVENT_FAILURES = 12
"""So often, over some minutes, an Event is posted that is not allowed: someone may see to that."""
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 30.0
_OK, _MULTIPLE = 200, 300
_BAD, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _CONFLICT, _UNPROCESSABLE = 400, 401, 403, 404, 409, 422


class KillWhen(StrEnum):
    """When the containers are killed."""

    PATCH = "patch"
    """At the moment the patch is sent."""
    ANSWER = "answer"
    """When the server has taken it; where it says nothing and memory goes on falling, then."""


class EvictionOutcome(StrEnum):
    """What came of an eviction."""

    EVICTED = "Evicted"
    """The server has the status, or evicts the pod itself."""
    GONE = "Gone"
    """The server no longer had the pod, or nothing of it ran."""
    REPLACED = "Replaced"
    """The server had another pod of that name; it was left alone."""
    REFUSED = "Refused"
    """The server did not allow it; nothing was killed."""
    DROPPED = "Dropped"
    """The guard was away for too long after deciding; nothing was killed."""


class GuardVictim(Struct, frozen=True):
    """The pod, and what the server is told."""

    namespace: str
    name: str
    uid: str
    message: str
    """The kubelet's words."""
    decided_at: str
    """RFC 3339."""
    generation: int = 0
    """Of its spec, as last seen; 0 is not known."""
    threshold: str = ""
    node: str = ""
    annotations: dict[str, str] = {}
    """Of the Event: the kubelet's, and why."""


class Eviction(Struct, frozen=True, omit_defaults=True):
    """How far an eviction is; written down at every step."""

    victim: GuardVictim
    kill_when: KillWhen = KillWhen.PATCH
    grace_seconds: int | None = None
    """Where the server is asked to evict it: how long its containers get."""
    has_killed: bool = False
    """Whether killing has begun, or is about to."""
    is_gone: bool = False
    """Whether no container's process is left."""
    is_dropping: bool = False
    """Whether it only has to be found out if the server had been told."""
    has_event: bool = False
    """Whether the server has the Event, or never will."""
    event_refusal: str = ""
    """Why it never will."""
    refusal: str = ""
    """Why the server did not want the patch, as it last said."""
    repairs: int = 0
    """How often the status was sent again because the kubelet had lost the reason."""
    failures: int = 0
    outcome: EvictionOutcome | None = None

    @property
    def is_soft(self) -> bool:
        """Whether the server is asked to evict it, by its own rules."""
        return self.grace_seconds is not None

    @property
    def needs_event(self) -> bool:
        """Whether an Event is still to be posted: for everything that was killed."""
        return not self.has_event and (self.has_killed or self.outcome is EvictionOutcome.EVICTED)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return self.outcome is not None and not self.needs_event and (self.is_gone or not self.has_killed)


# ---- what happens ---------------------------------------------------------------------------------------------------


class EvictionSent(Struct, frozen=True):
    """The request is on its way."""


class EvictionAnswered(Struct, frozen=True):
    """The server answered it."""

    status: int
    message: str = ""


class Unanswered(Struct, frozen=True):
    """No answer came to whatever was asked, or no connection: asked again later."""

    why: str = ""


class Looked(Struct, frozen=True):
    """What the server has under the pod's name."""

    uid: str | None
    """None: no pod."""
    is_told: bool = False
    """Whether it has what the guard wanted to tell it."""


class EventAnswered(Struct, frozen=True):
    """The server answered to the Event."""

    status: int
    message: str = ""


class StillFalling(Struct, frozen=True):
    """Memory goes on falling although this pod's growth is stopped; or it was chosen once more."""


class ProcessesGone(Struct, frozen=True):
    """No container of the pod has a process left."""


class PauseOver(Struct, frozen=True):
    """It is time to ask again."""


class ReasonLost(Struct, frozen=True):
    """The server shows the pod as failed without a reason."""


class TimeOver(Struct, frozen=True):
    """The server has had its time to evict the pod by its own rules."""


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
    """Keep the pod from taking more memory."""


class SendPatch(Struct, frozen=True):
    """Tell the server: status and annotation in one request, with the uid."""


class SendAgain(Struct, frozen=True):
    """Tell the server once more what it knew already, with another annotation; whatever it says to that."""


class SendEviction(Struct, frozen=True):
    """Ask the server to evict it, with the uid."""


class LookAgain(Struct, frozen=True):
    """See what the server has under that name."""


class KillContainers(Struct, frozen=True):
    """Kill the processes of its containers, not the sandbox; and whatever starts until some time after the answer."""

    then_for_seconds: float = WATCHED_SECONDS


class LetGo(Struct, frozen=True):
    """Undo what stopped the growth, so that processes can die or go on."""


class PostEvent(Struct, frozen=True):
    """Record the eviction as the kubelet does, under a name of its own: twice is once."""


class Pause(Struct, frozen=True):
    """Come back with ``PauseOver``."""

    seconds: float


Action = StopGrowth | SendPatch | SendAgain | SendEviction | LookAgain | KillContainers | LetGo | PostEvent | Pause
Step = tuple[Eviction, Sequence[Action]]


def begin(victim: GuardVictim, kill_when: KillWhen) -> Step:
    """Begin: the growth is stopped first, because it goes on while the server is asked."""
    return Eviction(victim, kill_when), (StopGrowth(), SendPatch())


def begin_softly(victim: GuardVictim, grace_seconds: int) -> Step:
    """Begin where there is time."""
    return Eviction(victim, grace_seconds=grace_seconds), (SendEviction(),)


def taken_up(eviction: Eviction, *, is_late: bool = False) -> Step:
    """Go on with what an earlier guard had begun; the server is asked again, which changes nothing if it knows.

    ``is_late``: too long ago to begin to kill for it. The server may know all the same.
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
    """Answer one event."""
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
    """Return what the server has yet to be asked or told."""
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
        # Another pod of that name, a policy that does not allow it, or someone else was faster.
        return replace(eviction, refusal=message if status == _UNPROCESSABLE else ""), (LookAgain(),)
    if status in {_UNAUTHORIZED, _FORBIDDEN} and not eviction.has_killed:
        return _over(replace(eviction, refusal=message), EvictionOutcome.REFUSED)
    return _again(eviction)


def _looked(eviction: Eviction, uid: str | None, *, is_told: bool) -> Step:
    if eviction.outcome is not None:
        return eviction, ()
    if uid != eviction.victim.uid or is_told:
        # What is killed is chosen by the uid in its cgroup, never by its name.
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
    """Go by the server's last word, but for the Event. What it no longer has is killed all the same."""
    known = replace(eviction, outcome=outcome, failures=0)
    if outcome in {EvictionOutcome.REFUSED, EvictionOutcome.DROPPED}:
        return known, (LetGo(),)
    killing, first = _killing(known)
    return killing, (*first, *_due(killing))


def _again(eviction: Eviction, *, at_once: bool = False) -> Step:
    """Ask again, less and less often; what was not killed yet stays held."""
    pause = 0.0 if at_once and not eviction.failures else FIRST_PAUSE_SECONDS * 2 ** min(eviction.failures, 20)
    return replace(eviction, failures=eviction.failures + 1), (Pause(min(pause, LONGEST_PAUSE_SECONDS)),)


def _killing(eviction: Eviction) -> Step:
    """Kill, unless that is done or must not be."""
    is_spared = eviction.is_soft or eviction.is_dropping or bool(eviction.refusal)
    if eviction.has_killed or is_spared:
        return eviction, ()
    return replace(eviction, has_killed=True, is_gone=False), (KillContainers(),)


def _event_answered(eviction: Eviction, status: int, message: str) -> Step:
    """Ask again for an Event, unless it is there, or never will be: its namespace goes, or it is not allowed."""
    if _OK <= status < _MULTIPLE or status == _CONFLICT:
        return replace(eviction, has_event=True), ()
    is_forbidden = status == _FORBIDDEN and (
        eviction.outcome is not EvictionOutcome.EVICTED or eviction.failures >= MOST_EVENT_FAILURES
    )
    if is_forbidden or status in {_BAD, _NOT_FOUND, _UNPROCESSABLE}:
        return replace(eviction, has_event=True, event_refusal=f"{status} {message}".rstrip()), ()
    return _again(eviction)
