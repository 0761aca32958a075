"""Sends the guard's requests from its own threads, over open connections; answers arrive on the loop.

A request takes milliseconds, or seconds if the server is slow. There are several threads, so that one pod's answer does
not delay another's. Timeouts grow with each failure: a dead connection is abandoned soon, a slow server still gets
heard.
"""

from __future__ import annotations

from collections.abc import Callable

from podqos.cluster.writing import WriteAnswer as Written
from podqos.cluster.writing import Writer
from podqos.errors import PodqosError, Refused
from podqos.guard.eviction import EventAnswered, Eviction, EvictionAnswered, GuardVictim, Looked, Unanswered
from podqos.guard.requests import event_of, eviction_of, looked, patch_of
from podqos.host.linux.background import Background
from podqos.host.linux.loop import Loop

WARM_SECONDS = 15.0
"""How often a connection is used, so that neither side closes it."""
_AWAY_SECONDS = 2.0
_FIRST_WAIT_SECONDS, _MOST_DOUBLINGS = 5.0, 3
_THREADS = 4
Reply = EvictionAnswered | EventAnswered | Looked | Unanswered
Done = Callable[[Reply], None]


class Sender:
    """Sends requests to one server."""

    def __init__(self, loop: Loop, writer: Writer) -> None:
        self._loop = loop
        self._writer = writer
        self._background = Background(loop, "sender", _THREADS)
        self._is_closed = False
        self.is_reachable = False
        """Whether the last request was answered, with any status."""
        self._warm()

    def patch(self, eviction: Eviction, done: Done) -> None:
        """Report to the server that a pod is evicted."""
        victim, writer = eviction.victim, self._patient(eviction)
        body = patch_of(victim, eviction.repairs)
        self._run(lambda: _answered(writer.patch_status(victim.namespace, victim.name, body)), done)

    def rehearse(self, victim: GuardVictim, done: Done) -> None:
        """Ask with a dry run whether the server would accept that."""
        body, writer = patch_of(victim), self._writer
        self._run(lambda: _answered(writer.patch_status(victim.namespace, victim.name, body, is_rehearsal=True)), done)

    def evict(self, eviction: Eviction, done: Done) -> None:
        """Ask the server to evict a pod by its own rules."""
        victim, writer = eviction.victim, self._patient(eviction)
        body = eviction_of(victim, eviction.grace_seconds or 0)
        self._run(lambda: _answered(writer.evict(victim.namespace, victim.name, body)), done)

    def look(self, eviction: Eviction, done: Done) -> None:
        """Read what the server has under a pod's name."""
        victim, writer = eviction.victim, self._patient(eviction)
        self._run(lambda: looked(writer.look(victim.namespace, victim.name), victim, is_soft=eviction.is_soft), done)

    def post_event(self, eviction: Eviction, done: Done) -> None:
        """Post the Event of an eviction."""
        victim, writer = eviction.victim, self._patient(eviction)

        def post() -> Reply:
            answer = writer.post_event(victim.namespace, event_of(victim))
            return EventAnswered(answer.status, answer.message)

        self._run(post, done)

    def close(self) -> None:
        """Send nothing more, and drop outstanding answers."""
        self._is_closed = True
        self._background.close()

    def _patient(self, eviction: Eviction) -> Writer:
        return self._writer.waiting(_FIRST_WAIT_SECONDS * 2 ** min(eviction.failures, _MOST_DOUBLINGS))

    def _run(self, ask: Callable[[], Reply], done: Done) -> None:
        def hear(result: Reply | Exception) -> None:
            self._has_answered(result)
            done(Unanswered(_why(result)) if isinstance(result, Exception) else result)

        self._background.run(ask, hear)

    def _warm(self) -> None:
        """Keep a connection open, and check that the server is reachable."""
        if self._is_closed:
            return

        def hear(result: Exception | None) -> None:
            self._has_answered(result)
            self._loop.call_after(WARM_SECONDS if self.is_reachable else _AWAY_SECONDS, self._warm)

        self._background.run(self._writer.warm, hear)

    def _has_answered(self, result: object) -> None:
        self.is_reachable = not isinstance(result, Exception) or isinstance(result, Refused)


def _answered(written: Written) -> Reply:
    return EvictionAnswered(written.status, written.message)


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, PodqosError) else f"{type(error).__name__}: {error}"
