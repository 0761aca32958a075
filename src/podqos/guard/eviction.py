"""Pure: how one pod is evicted beside a kubelet, step by step, so that Kubernetes understands what happened.

A kubelet tears a pod down when its status is patched to ``Failed`` *and* an annotation changes in the same request; a
status alone is put back within seconds, and a container that is killed before the patch is restarted. So: stop the
growth, send one patch, kill the containers at the same moment (or once the server has answered), and end for a while
whatever still starts. What the server says decides the rest. An eviction that has begun to kill is never given up: it
asks again until the server has the status, because a kill without its reason is what the guard is there to prevent.

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
WATCHED_SECONDS = 2.0
"""For how long whatever starts in the pod is ended: the first restart comes after 0.2 to 1.3 seconds."""
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 30.0
_OK, _CREATED, _MULTIPLE = 200, 201, 300
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _CONFLICT, _UNPROCESSABLE = 401, 403, 404, 409, 422


class KillWhen(StrEnum):
    """When the containers are killed."""

    PATCH = "patch"
    """At the moment the patch is sent."""
    ANSWER = "answer"
    """When the server has taken it; where it says nothing and memory goes on falling, then."""


class Outcome(StrEnum):
    """What came of an eviction."""

    EVICTED = "Evicted"
    """The server has the status: Failed, Evicted."""
    GONE = "Gone"
    """The server no longer had the pod."""
    REPLACED = "Replaced"
    """The server had another pod of that name; it was left alone."""
    REFUSED = "Refused"
    """The server does not allow the guard to do it; nothing was killed."""


class Victim(Struct, frozen=True):
    """The pod, and what the server is told."""

    namespace: str
    name: str
    uid: str
    message: str
    """The kubelet's words."""
    decided_at: str
    """RFC 3339."""
    generation: int = 0
    threshold: str = ""


class Eviction(Struct, frozen=True):
    """How far an eviction is; written down at every step."""

    victim: Victim
    kill_when: KillWhen = KillWhen.PATCH
    has_killed: bool = False
    is_gone: bool = False
    """Whether no container's process is left."""
    is_known: bool = False
    """Whether the server has the status, or no longer the pod."""
    has_event: bool = False
    """Whether the server has the Event."""
    failures: int = 0
    outcome: Outcome | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        is_told = self.outcome is not None and (self.has_event or self.outcome is not Outcome.EVICTED)
        return is_told and (self.is_gone or not self.has_killed)


# ---- what happens ---------------------------------------------------------------------------------------------------


class Answered(Struct, frozen=True):
    """The server answered the patch."""

    status: int
    message: str = ""


class Unanswered(Struct, frozen=True):
    """No answer came, or no connection: asked again later."""


class EventTaken(Struct, frozen=True):
    """The server answered to the Event: it has it now, or had it already; or not."""

    is_there: bool


class StillFalling(Struct, frozen=True):
    """Memory goes on falling although this pod's growth is stopped."""


class ProcessesGone(Struct, frozen=True):
    """No container of the pod has a process left."""


class PauseOver(Struct, frozen=True):
    """It is time to ask again."""


Event = Answered | Unanswered | EventTaken | StillFalling | ProcessesGone | PauseOver


# ---- what is to be done ---------------------------------------------------------------------------------------------


class StopGrowth(Struct, frozen=True):
    """Keep the pod from taking more memory."""


class SendPatch(Struct, frozen=True):
    """Tell the server: status and annotation in one request, with the uid."""


class KillContainers(Struct, frozen=True):
    """Kill the processes of its containers, not the sandbox; and whatever starts for some seconds."""

    then_for_seconds: float = WATCHED_SECONDS


class LetGo(Struct, frozen=True):
    """Undo what stopped the growth, so that processes can die or go on."""


class PostEvent(Struct, frozen=True):
    """Record the eviction as the kubelet does, under a name of its own: twice is once."""


class Pause(Struct, frozen=True):
    """Come back with ``PauseOver``."""

    seconds: float


class Report(Struct, frozen=True):
    """Say what came of it."""

    outcome: Outcome
    why: str = ""


Action = StopGrowth | SendPatch | KillContainers | LetGo | PostEvent | Pause | Report
Step = tuple[Eviction, Sequence[Action]]


def begin(victim: Victim, kill_when: KillWhen) -> Step:
    """Begin: the growth is stopped first, because it goes on while the server is asked."""
    eviction = Eviction(victim, kill_when)
    if kill_when is KillWhen.PATCH:
        return replace(eviction, has_killed=True), (StopGrowth(), SendPatch(), KillContainers())
    return eviction, (StopGrowth(), SendPatch())


def taken_up(eviction: Eviction) -> Step:
    """Go on with what an earlier guard had begun; the server is asked again, which changes nothing if it knows."""
    if eviction.is_over:
        return eviction, (LetGo(),)
    is_killing = eviction.has_killed and not eviction.is_gone
    return eviction, (*_due(eviction), *((KillContainers(),) if is_killing else ()))


def follow(eviction: Eviction, event: Event) -> Step:
    """Answer one event."""
    match event:
        case Answered(status, message):
            return _answered(eviction, status, message)
        case Unanswered():
            return _again(eviction)
        case EventTaken(is_there):
            return (replace(eviction, has_event=True), ()) if is_there else _again(eviction)
        case StillFalling():
            return (eviction, ()) if eviction.has_killed or eviction.outcome else _killing(eviction)
        case ProcessesGone():
            return replace(eviction, is_gone=True), (LetGo(),)
        case PauseOver():
            return eviction, _due(eviction)


def _due(eviction: Eviction) -> tuple[Action, ...]:
    """Return what the server has yet to be told."""
    if not eviction.is_known:
        return (SendPatch(),)
    return (PostEvent(),) if eviction.outcome is Outcome.EVICTED and not eviction.has_event else ()


def _answered(eviction: Eviction, status: int, message: str) -> Step:
    if eviction.is_known:
        return eviction, ()
    if _OK <= status < _MULTIPLE:
        known = replace(eviction, is_known=True, failures=0, outcome=Outcome.EVICTED)
        return _also_killing(known, (PostEvent(), Report(Outcome.EVICTED)))
    if status == _NOT_FOUND:
        return _also_killing(replace(eviction, is_known=True, outcome=Outcome.GONE), (Report(Outcome.GONE),))
    if status == _UNPROCESSABLE:
        # Its uid is another one. What is killed is chosen by the uid in its cgroup, never by its name.
        return _also_killing(replace(eviction, is_known=True, outcome=Outcome.REPLACED), (Report(Outcome.REPLACED),))
    if status in {_UNAUTHORIZED, _FORBIDDEN} and not eviction.has_killed:
        refused = replace(eviction, is_known=True, outcome=Outcome.REFUSED)
        return refused, (LetGo(), Report(Outcome.REFUSED, message))
    return _again(eviction, at_once=status == _CONFLICT)


def _again(eviction: Eviction, *, at_once: bool = False) -> Step:
    """Ask again, less and less often; what was not killed yet stays held."""
    pause = 0.0 if at_once and not eviction.failures else FIRST_PAUSE_SECONDS * 2 ** min(eviction.failures, 20)
    return replace(eviction, failures=eviction.failures + 1), (Pause(min(pause, LONGEST_PAUSE_SECONDS)),)


def _killing(eviction: Eviction) -> Step:
    return replace(eviction, has_killed=True), (KillContainers(),)


def _also_killing(eviction: Eviction, actions: tuple[Action, ...]) -> Step:
    if eviction.has_killed:
        return eviction, actions
    killing, first = _killing(eviction)
    return killing, (*first, *actions)
