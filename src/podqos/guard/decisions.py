"""The agent's decisions as the guard records them, and their consequences apart from the eviction itself.

Nothing is written while the agent decides: a kill never waits for a disk, which is busy when memory is short.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.state import AgentState
from podqos.guard.brakes import Brakes
from podqos.guard.explaining import Decided, DecisionExplainer
from podqos.guard.world import GuardWorld
from podqos.host.linux.loop import Timer
from podqos.host.shell.agent_thread import AgentThread

# The agent's entries about pods that come and go are the kubelet's doing.
_NOT_OURS = frozenset({Kind.ADOPTED, Kind.STOPPED, Kind.CLEANED_UP})


class Decisions:
    """Receives the agent's journal entries."""

    def __init__(
        self,
        world: GuardWorld,
        brakes: Brakes,
        explaining: DecisionExplainer,
        thread: AgentThread,
        look_again: Callable[[], None],
    ) -> None:
        """``look_again`` is called when a blocked decision can be carried out."""
        self._world, self._brakes, self._explaining = world, brakes, explaining
        self._thread, self._look_again = thread, look_again
        self.evictions = 0
        """The number of decisions of this guard."""
        self._entries: deque[Entry] = deque()
        """Entries that are not written yet."""
        self._decided: list[Decided] = []
        self._before, self._now_us = AgentState(), 0
        self._again: Timer | None = None

    def begin(self, before: AgentState, now_us: int) -> None:
        """Start handling an event: the agent's state before it, and the time."""
        self._before, self._now_us = before, now_us

    def take(self, entry: Entry) -> None:
        """Receive the agent's entries, marked as the guard's and without those about the kubelet's own work."""
        if entry.kind in _NOT_OURS and not self._is_of_victim(entry):
            return
        own = replace(entry, by=By.GUARD) if entry.by is By.KUBELET else entry
        if own.kind is Kind.EVICTED:
            self._brakes.evicted(own.time_us)
            self.evictions += 1
        if own.kind in {Kind.EVICTED, Kind.WOULD_EVICT}:
            self._world.because = own.because
            self._decided.append(Decided(own, self._before, self._now_us))
        self._entries.append(own)

    def settle(self, write: Callable[[Entry], object]) -> None:
        """Write the entries; schedule another look for blocked decisions, and explain each decision."""
        while self._entries:
            write(self._entries.popleft())
        decided, self._decided = self._decided, []
        if any(each.entry.kind is Kind.WOULD_EVICT for each in decided):
            self._look_again_when_free()
        for each in decided:
            self._explaining.explain(each, self._world.observed)

    def _look_again_when_free(self) -> None:
        now_us = self._thread.now_us()
        free_us = self._brakes.free_again_us(now_us)
        if free_us is not None:
            if self._again is not None:
                self._again.cancel()
            self._again = self._thread.loop.call_after(max(0.0, (free_us - now_us) / 1e6), self._look_again)

    def _is_of_victim(self, entry: Entry) -> bool:
        is_evicted = any(reaction.pod == entry.pod for reaction in self._world.reactions.values())
        return entry.kind is Kind.STOPPED and is_evicted
