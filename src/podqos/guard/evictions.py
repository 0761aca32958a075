"""The evictions of a guard: carried out by ``acting``, with their outcomes recorded.

A server-side dry run checks in advance, and periodically, whether the server would accept an eviction: a guard without
the permission reports that before memory is short.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from podqos.agent.journal import By, Kind
from podqos.agent.port import Event, PodStopped
from podqos.agent.reasons import EvictionReport
from podqos.guard.acting import Did, Evictor, Noted
from podqos.guard.brakes import Brakes
from podqos.guard.eviction import EvictionAnswered, EvictionOutcome, GuardVictim
from podqos.guard.known_pods import GuardedPod
from podqos.guard.node_pods import GuardedPods, Journal
from podqos.guard.sender import Reply, Sender
from podqos.guard.world import GuardReaction, GuardWorld
from podqos.host.linux.loop import Loop
from podqos.host.shell.agent_thread import AgentThread

_REFUSED_US = 60_000_000
_UNFINISHED_US = 10_000_000
_REHEARSAL_SECONDS, _NO_POD_SECONDS = 300.0, 1.0
_OK, _REFUSALS = 200, frozenset({401, 403})
_REACTIONS_KEPT = 1000


class Evictions:
    """Receives the progress of evictions."""

    def __init__(
        self,
        world: GuardWorld,
        pods: GuardedPods,
        brakes: Brakes,
        thread: AgentThread,
        *,
        deliver: Callable[[Event], None],
        journal: Journal,
    ) -> None:
        self._world, self._pods, self._brakes = world, pods, brakes
        self._note, self._now_us = thread.note, thread.now_us
        self._deliver, self._journal = deliver, journal
        self.acting: Evictor | None = None
        self._unfinished: set[str] = set()
        """The uids of an earlier guard's victims that are not gone yet."""
        self._unfinished_until_us = 0
        self._look_again: Callable[[], None] = lambda: None
        self.reactions_us: deque[int] = deque(maxlen=_REACTIONS_KEPT)
        """Reaction times of the latest evictions: from the kernel's notification to the kill."""

    def carry_out_with(self, acting: Evictor, look_again: Callable[[], None]) -> None:
        """Continue an earlier guard's evictions, and carry out new ones once its victims are gone.

        The agent does not know these victims: it would evict the next pod for the memory that they still hold.
        """
        self._world.acting = self.acting = acting
        acting.take_up()
        self._world.evicted |= acting.busy.keys()
        self._unfinished = set(acting.dying)
        self._unfinished_until_us = self._now_us() + _UNFINISHED_US
        self._brakes.is_unfinished = lambda: bool(self._unfinished) and self._now_us() < self._unfinished_until_us
        self._look_again = look_again

    def seen(self, known: Mapping[str, GuardedPod]) -> None:
        """Check victims as the server shows them: a kubelet may have overwritten the reason."""
        acting = self.acting
        for uid in () if acting is None else acting.busy:
            if acting is not None and uid in known:
                acting.seen(uid, known[uid].status.phase, known[uid].status.reason)

    def told(self, victim: GuardVictim, noted: Noted) -> None:
        """Receive the progress of an eviction."""
        since_us = round(noted.seconds * 1e6)
        begun = GuardReaction(f"{victim.namespace}/{victim.name}", self._now_us() - since_us)  # by another guard
        reaction = self._world.reactions.setdefault(victim.uid, begun)
        at_us = reaction.decided_us + since_us
        match noted.what:
            case Did.HELD:
                reaction.held_us = at_us
            case Did.KILLED if reaction.killed_us is None:
                reaction.killed_us = at_us
                if reaction.noticed_us is not None:
                    self.reactions_us.append(at_us - reaction.noticed_us)
            case Did.ANSWERED if reaction.answered_us is None:
                reaction.answered_us = at_us
            case Did.GONE:
                reaction.gone_us = at_us
                self._deliver(PodStopped(victim.uid))
                self._finished(victim.uid)
            case Did.FAILED:
                self._note(f"{reaction.pod}: {noted.text}")
            case Did.OVER:
                self._over(victim, reaction, noted)
            case _:
                pass

    def _over(self, victim: GuardVictim, reaction: GuardReaction, noted: Noted) -> None:
        """Record the outcome of an eviction; a pod that still exists is a candidate again."""
        self._deliver(PodStopped(victim.uid))
        del self._world.reactions[victim.uid]
        because = EvictionReport(
            noted.outcome.value if noted.outcome is not None else "",
            noted.text,
            reaction.noticed_us,
            reaction.decided_us,
            reaction.held_us,
            reaction.killed_us,
            reaction.gone_us,
            reaction.answered_us,
            reaction.major_faults,
        )
        self._journal(Kind.REPORTED, reaction.pod, By.GUARD, because)
        if noted.outcome is not EvictionOutcome.EVICTED:
            self._note(f"{reaction.pod} was not evicted: {because.outcome} {noted.text}".rstrip())
            self._world.evicted.discard(victim.uid)
            self._world.pods.pop(victim.uid, None)
            if noted.outcome is EvictionOutcome.REFUSED:
                self._brakes.refused_until_us = self._now_us() + _REFUSED_US
        self._pods.refresh(anew=True)
        self._finished(victim.uid)

    def _finished(self, uid: str) -> None:
        """Look again when the last victim of an earlier guard is gone."""
        if uid in self._unfinished:
            self._unfinished.discard(uid)
            if not self._unfinished:
                self._look_again()

    # ---- beforehand ----------------------------------------------------------------------------------------------

    def rehearse(self, loop: Loop, sender: Sender) -> None:
        """Check now and periodically whether the server would accept an eviction."""
        pod = next((pod.pod for pod in self._world.pods.values() if not pod.pod.is_critical), None)
        if pod is not None:
            sender.rehearse(self._world.victim(pod, "dry run: podqos guard may evict this pod"), self._rehearsed)
        seconds = _NO_POD_SECONDS if pod is None else _REHEARSAL_SECONDS
        loop.call_after(seconds, lambda: self.rehearse(loop, sender))

    def _rehearsed(self, reply: Reply) -> None:
        if not isinstance(reply, EvictionAnswered):
            return
        if reply.status in _REFUSALS:
            self._note(f"the API server would reject evictions: {reply.message}")
            self._brakes.refused_until_us = self._now_us() + round(2 * _REHEARSAL_SECONDS * 1e6)
        elif reply.status == _OK:
            self._brakes.refused_until_us = 0
