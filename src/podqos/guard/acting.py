"""Carries out evictions (``eviction``): freeze, report, kill, kill restarts, thaw. Runs on the loop and never blocks.

- **Hold**: the freezer stops the whole pod, so that nothing in it allocates, forks or escapes. A lower memory limit
  would work, too, but it would have to be restored, and the kubelet may change the limit at any time. In cgroup v1,
  frozen processes do not die, so the call that kills also thaws. What cannot be frozen is killed.
- **Kill**: the processes whose memory is charged to a container's cgroup. Each is verified to be there between opening
  its pidfd and the signal. Never the sandbox: without it, the pod would lose its reason. v2 has ``cgroup.kill``.
- A pod is identified by the uid in its cgroup's name, and in requests by its uid: never by its name alone.
- Nothing is written to disk or reported between the decision and the kill: intents are on a tmpfs, and notes wait for
  the next turn of the loop.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import HostError
from podqos.eviction.messages import PHASE
from podqos.guard.eviction import (
    ANSWER_SECONDS,
    HELD_SECONDS,
    Action,
    Event,
    EventAnswered,
    Eviction,
    EvictionAnswered,
    EvictionOutcome,
    EvictionSent,
    GuardVictim,
    KillContainers,
    KillWhen,
    LetGo,
    LookAgain,
    Looked,
    Pause,
    PauseOver,
    PostEvent,
    ProcessesGone,
    ReasonLost,
    SendAgain,
    SendEviction,
    SendPatch,
    StillFalling,
    StopGrowth,
    TimeOver,
    Unanswered,
    begin,
    begin_softly,
    follow,
    taken_up,
)
from podqos.guard.intents import Intent, Intents
from podqos.guard.lifeline import Lifeline
from podqos.guard.sender import Reply, Sender
from podqos.guard.tree import ContainerCgroup, PodCgroup, containers_to_kill, pod_at, pod_paths
from podqos.host.linux.background import Background
from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.linux.loop import Loop
from podqos.host.linux.memory_release import release_memory
from podqos.qos.cgroup_paths import CgroupLevel, place_of

LATE_SECONDS = 30.0
"""A guard that restarts later than this does not start killing for an old decision."""
_REFUSALS = frozenset({401, 403, 422})
_FALLING_POLL_SECONDS = 0.02
_FIRST_POLL_SECONDS, _POLL_SECONDS, _LONG_POLL_SECONDS, _STUCK_POLL_SECONDS = 0.001, 0.01, 0.1, 1.0


class Did(StrEnum):
    """A step of an eviction, for the journal."""

    TAKEN_UP = "TakenUp"
    """An earlier guard started it."""
    HELD = "Held"
    SENT = "Sent"
    KILLED = "Killed"
    GONE = "Gone"
    """None of its containers has a process left."""
    ENDED = "Ended"
    """Processes that started since then were killed."""
    ANSWERED = "Answered"
    """The server answered; the text has the answer."""
    UNANSWERED = "Unanswered"
    """A request got no answer; the text says why."""
    FAILED = "Failed"
    """A step failed; the text says which."""
    OVER = "Over"
    """The eviction is over."""


class Noted(Struct, frozen=True):
    """A step that was carried out."""

    what: Did
    seconds: float
    """Since the decision."""
    count: int = 0
    """Number of processes."""
    text: str = ""
    outcome: EvictionOutcome | None = None


class _OpenEviction:
    """An eviction in progress."""

    def __init__(self, intent: Intent) -> None:
        self.intent = intent
        self.watched_until = 0.0
        """Until when restarted processes are killed; 0 if nothing is watched."""
        self.watched_seconds = 0.0
        """For how long: since the kill, and again since the server's answer."""
        self.is_refused = False
        """Whether the server's last answer was a rejection: it may be permanent, and must not keep a pod down."""
        self.poll_seconds = _FIRST_POLL_SECONDS

    @property
    def eviction(self) -> Eviction:
        return self.intent.eviction

    @property
    def victim(self) -> GuardVictim:
        return self.intent.eviction.victim


class Instruments(Struct, frozen=True):
    """What evictions need besides the pods' cgroups."""

    sender: Sender
    """Sends requests to the API server."""
    intents: Intents
    """Saves each step before it is carried out."""
    lifeline: Lifeline | None = None
    """Thaws frozen pods if the guard is killed."""


class Evictor:
    """Evicts the pods of one node."""

    def __init__(
        self,
        loop: Loop,
        cgroups: Cgroups,
        instruments: Instruments,
        *,
        kill_when: KillWhen,
        tell: Callable[[GuardVictim, Noted], None],
        is_falling: Callable[[], bool],
    ) -> None:
        """``tell`` receives every step, in a later turn of the loop; ``is_falling``: whether memory still falls."""
        self._loop, self._cgroups = loop, cgroups
        self._sender, self._intents, self._lifeline = instruments.sender, instruments.intents, instruments.lifeline
        self._kill_when, self._tell, self._is_falling = kill_when, tell, is_falling
        self._freeing = Background(loop, "freeing")
        self._own_pod = next((uid for uid, path in pod_paths(cgroups) if os.getpid() in cgroups.charged(path)), "")
        self._running: dict[str, _OpenEviction] = {}
        self._notes: list[tuple[GuardVictim, Noted]] = []

    @property
    def busy(self) -> Mapping[str, GuardVictim]:
        """The pods that are being evicted, by uid."""
        return {uid: running.victim for uid, running in self._running.items()}

    @property
    def dying(self) -> frozenset[str]:
        """Those that are frozen or killed and may still hold memory."""
        evictions = ((uid, running.eviction) for uid, running in self._running.items())
        return frozenset(
            uid
            for uid, eviction in evictions
            if not (eviction.is_soft or eviction.is_dropping or eviction.is_gone) and self._running[uid].intent.cgroup
        )

    def evict(self, victim: GuardVictim, pod: PodCgroup, known_ids: Iterable[str]) -> None:
        """Evict a pod now; a pod that is already being evicted is killed again if it came back."""
        running = self._running.get(victim.uid)
        if running is not None and not running.eviction.is_soft:
            self._follow(running, StillFalling())
            return
        if why_not := self._why_not(victim.uid, pod.path):
            raise HostError(f"{why_not}: refusing to touch it")
        # If the server cannot be reached, kill only if freezing is not enough: the kubelet would restart the pod.
        kill_when = self._kill_when if self._sender.is_reachable else KillWhen.ANSWER
        eviction, actions = begin(victim, kill_when)
        running = _OpenEviction(Intent(eviction, time.monotonic(), pod.path, tuple(known_ids)))
        self._running[victim.uid] = running
        if not any(self._cgroups.has_processes(cgroup.path) for cgroup in self._look(running)):
            self._go(running, self._nothing_runs(eviction, pod.path), ())
            return
        self._go(running, eviction, actions)

    def evict_through_api(self, victim: GuardVictim, grace_seconds: int, for_seconds: float = 60.0) -> None:
        """Ask the server to evict a pod, with retries; it honours disruption budgets."""
        if victim.uid in self._running:
            return
        eviction, actions = begin_softly(victim, grace_seconds)
        running = self._running[victim.uid] = _OpenEviction(Intent(eviction, time.monotonic()))
        self._stop_asking_after(running, for_seconds)
        self._go(running, eviction, actions)

    def seen(self, uid: str, phase: str, reason: str) -> None:
        """Check a pod as the server shows it: if a kubelet has overwritten the reason, send it again."""
        running = self._running.get(uid)
        if running is not None and phase == PHASE and not reason:
            self._follow(running, ReasonLost())

    def take_up(self) -> None:
        """Continue the evictions of a guard that was killed."""
        for intent in self._intents.left():
            victim = intent.eviction.victim
            is_ours = not self._why_not(victim.uid, intent.cgroup)  # otherwise, the server is still informed
            running = _OpenEviction(replace(intent, spared_ids=None, cgroup=intent.cgroup if is_ours else ""))
            self._running[victim.uid] = running
            self._note(running, Did.TAKEN_UP)
            if intent.eviction.is_soft:
                self._stop_asking_after(running, LATE_SECONDS)
            is_late = time.monotonic() - intent.begun_at > LATE_SECONDS
            self._go(running, *taken_up(intent.eviction, is_late=is_late))

    def close(self) -> None:
        """Stop and thaw everything; the next guard continues unfinished evictions."""
        self._hand_over()
        for running in self._running.values():
            self._let_go(running)
        self._running.clear()
        self._sender.close()
        self._freeing.close()

    # ---- steps -----------------------------------------------------------------------------------------------------

    def _go(self, running: _OpenEviction, eviction: Eviction, actions: Iterable[Action]) -> None:
        """Save the state of an eviction, then carry out its next actions."""
        self._keep(running, replace(running.intent, eviction=eviction))
        for action in actions:
            self._do(running, action)
        if running.eviction.is_over and not running.watched_until:
            self._end(running)

    def _follow(self, running: _OpenEviction, event: Event) -> None:
        eviction, actions = follow(running.eviction, event)
        if running.watched_until and eviction.outcome is not running.eviction.outcome:
            running.watched_until = time.monotonic() + running.watched_seconds
        if actions or eviction != running.eviction:
            self._go(running, eviction, actions)

    def _if_still(self, running: _OpenEviction, event: Event) -> None:
        """Handle a later event, if this is still the pod's eviction."""
        if self._running.get(running.victim.uid) is running:
            self._follow(running, event)

    def _stop_asking_after(self, running: _OpenEviction, seconds: float) -> None:
        self._loop.call_after(seconds, lambda: self._if_still(running, TimeOver()))

    def _do(self, running: _OpenEviction, action: Action) -> None:
        match action:
            case StopGrowth():
                self._stop_growth(running)
            case SendPatch():
                try:
                    # The kill goes out a millisecond earlier: otherwise, the sender's thread would compete with it.
                    self._follow(running, EvictionSent())
                finally:
                    self._sender.patch(running.eviction, lambda reply: self._hear(running, reply))
                    self._note(running, Did.SENT)
            case SendAgain():
                self._sender.patch(running.eviction, lambda reply: self._note_reply(running, reply))
                self._note(running, Did.SENT, text="again: the kubelet had overwritten the reason")
            case SendEviction():
                self._sender.evict(running.eviction, lambda reply: self._hear(running, reply))
                self._note(running, Did.SENT)
            case LookAgain():
                self._sender.look(running.eviction, lambda reply: self._hear(running, reply))
            case PostEvent():
                self._sender.post_event(running.eviction, lambda reply: self._hear(running, reply))
            case KillContainers(seconds):
                self._kill(running, seconds)
            case LetGo():
                self._let_go(running)
            case Pause(seconds):
                self._loop.call_after(seconds, lambda: self._if_still(running, PauseOver()))

    def _hear(self, running: _OpenEviction, reply: Reply) -> None:
        if self._running.get(running.victim.uid) is running:
            self._note_reply(running, reply)
            if isinstance(reply, EvictionAnswered):
                running.is_refused = reply.status in _REFUSALS
            self._follow(running, reply)

    def _note_reply(self, running: _OpenEviction, reply: Reply) -> None:
        match reply:
            case EvictionAnswered(status, message):
                self._note(running, Did.ANSWERED, text=f"{status} {message}".rstrip())
            case EventAnswered(status, message):
                self._note(running, Did.ANSWERED, text=f"for the Event: {status} {message}".rstrip())
            case Looked(uid):
                self._note(running, Did.ANSWERED, text=f"the pod of that name has uid {uid}" if uid else "no such pod")
            case Unanswered(why):
                self._note(running, Did.UNANSWERED, text=why)

    def _end(self, running: _OpenEviction) -> None:
        eviction = running.eviction
        if self._running.pop(eviction.victim.uid, None) is None:
            return
        self._let_go(running)
        self._intents.forget(eviction.victim.uid)
        no_event = f"the API server rejected the Event: {eviction.event_refusal}" if eviction.event_refusal else ""
        self._note(running, Did.OVER, text=eviction.refusal or no_event, outcome=eviction.outcome)

    # ---- the pod ---------------------------------------------------------------------------------------------------

    def _stop_growth(self, running: _OpenEviction) -> None:
        path = running.intent.cgroup
        if path and self._lifeline is not None:
            self._lifeline.hold(path, self._cgroups.thawing(path))
        if path and not self._cgroups.freeze(path):
            self._note(running, Did.FAILED, text="the pod could not be frozen")
            self._loop.call_after(0, lambda: self._if_still(running, StillFalling()))
            return
        self._note(running, Did.HELD)
        self._loop.call_after(ANSWER_SECONDS, lambda: self._look_at_held(running))

    def _look_at_held(self, running: _OpenEviction) -> None:
        """Kill a frozen pod without waiting for an answer, if freezing is not enough or takes too long."""
        eviction = running.eviction
        is_held = self._running.get(eviction.victim.uid) is running and eviction.outcome is None
        if not is_held or eviction.has_killed or eviction.is_dropping:
            return
        # First, so that a failure below does not leave it frozen.
        self._loop.call_after(_FALLING_POLL_SECONDS, lambda: self._look_at_held(running))
        if time.monotonic() - running.intent.begun_at > HELD_SECONDS or self._is_falling():
            self._follow(running, StillFalling())

    def _kill(self, running: _OpenEviction, then_for_seconds: float) -> None:
        is_watched = running.watched_until > 0
        running.watched_seconds = then_for_seconds
        running.watched_until = time.monotonic() + then_for_seconds
        running.poll_seconds = _FIRST_POLL_SECONDS
        if not is_watched:
            self._loop.call_after(_FIRST_POLL_SECONDS, lambda: self._watch(running))
        try:
            there = self._look(running)
            count = sum(self._cgroups.kill_charged(cgroup.path) for cgroup in there)
        finally:
            self._let_go(running)
        self._note(running, Did.KILLED, count=count)
        self._loop.call_after(0, lambda: self._free([cgroup.path for cgroup in there]))

    def _free(self, paths: Iterable[str]) -> None:
        """Free the memory of killed processes: they do so themselves, but only as fast as their pod gets CPU time."""
        pids = {pid for path in paths for pid in self._cgroups.charged(path)}
        self._freeing.run(lambda: release_memory(pids), lambda _: None)

    def _watch(self, running: _OpenEviction) -> None:
        """Watch until its processes end, and kill restarted ones for as long as needed.

        A kubelet restarts containers until it learns of the eviction, so there is no end while the server does not
        answer.
        """
        if self._running.get(running.victim.uid) is not running:
            return
        is_over = time.monotonic() >= running.watched_until
        longest = _STUCK_POLL_SECONDS if is_over else _POLL_SECONDS
        if is_over and running.eviction.outcome is None and not running.is_refused:
            is_over, longest = False, _LONG_POLL_SECONDS
        running.poll_seconds = min(2 * running.poll_seconds, longest)
        again = self._loop.call_after(running.poll_seconds, lambda: self._watch(running))
        there = [cgroup for cgroup in self._look(running) if self._cgroups.has_processes(cgroup.path)]
        count = sum(self._cgroups.kill_charged(cgroup.path) for cgroup in there)
        if count and running.eviction.is_gone:
            self._note(running, Did.ENDED, count=count)
        if not there and not running.eviction.is_gone:
            self._note(running, Did.GONE)
            self._follow(running, ProcessesGone())
        if is_over and running.eviction.is_gone:
            again.cancel()
            running.watched_until = 0.0
            if running.eviction.is_over:
                self._end(running)

    def _look(self, running: _OpenEviction) -> list[ContainerCgroup]:
        """Return the pod's current containers without its sandbox; once the sandbox is known, everything else.

        Processes that start later are never the sandbox, even if the server does not know them yet.
        """
        intent = running.intent
        if not intent.cgroup:
            return []
        pod = pod_at(self._cgroups, running.victim.uid, intent.cgroup)
        if intent.spared_ids is None:
            found = list(containers_to_kill(self._cgroups, pod, intent.known_ids))
            spared = tuple(container.id for container in pod.containers if container not in found)
            running.intent = replace(intent, spared_ids=spared)
            return found
        return [container for container in pod.containers if container.id not in intent.spared_ids]

    def _nothing_runs(self, eviction: Eviction, path: str) -> Eviction:
        """Return the outcome of evicting a pod without processes; in cgroup v1, they may be invisible."""
        if self._cgroups.pids(path) and not self._cgroups.charged(path):
            why = "its processes are not visible: the guard needs the host's PID namespace"
            return replace(eviction, outcome=EvictionOutcome.REFUSED, refusal=why)
        return replace(eviction, outcome=EvictionOutcome.GONE)

    def _let_go(self, running: _OpenEviction) -> None:
        path = running.intent.cgroup
        if path:
            self._cgroups.thaw(path)
            if self._lifeline is not None:
                self._lifeline.let_go(path)

    def _why_not(self, uid: str, path: str) -> str:
        """Return why a cgroup must not be touched for a pod; empty if it is the pod's own."""
        place = place_of(path)
        if place.level is not CgroupLevel.POD or place.pod_uid != uid or not path.startswith(f"{self._cgroups.own}/"):
            return f"cgroup {path} is not the cgroup of pod {uid} below {self._cgroups.own}"
        return f"pod {uid} is the guard's own" if uid == self._own_pod else ""

    # ---- notes -----------------------------------------------------------------------------------------------------

    def _keep(self, running: _OpenEviction, intent: Intent) -> None:
        running.intent = intent
        try:
            self._intents.keep(intent)
        except OSError as error:
            self._note(
                running,
                Did.FAILED,
                text=f"the eviction could not be saved and would be lost if the guard restarts: {error.strerror}",
            )

    def _note(
        self,
        running: _OpenEviction,
        what: Did,
        *,
        count: int = 0,
        text: str = "",
        outcome: EvictionOutcome | None = None,
    ) -> None:
        if not self._notes:
            self._loop.call_after(0, self._hand_over)
        seconds = time.monotonic() - running.intent.begun_at
        self._notes.append((running.victim, Noted(what, seconds, count, text, outcome)))

    def _hand_over(self) -> None:
        notes, self._notes = self._notes, []
        for victim, noted in notes:
            with contextlib.suppress(OSError):
                self._tell(victim, noted)
