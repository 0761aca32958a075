"""The handling of one event: collects its commands and journal entries. The only place where state changes."""

from __future__ import annotations

from msgspec.structs import replace

from podqos.agent.commands import Command
from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import Because
from podqos.agent.state import AgentConfig, AgentState, AgentStep, PodRecord


class Turn:
    """What the agent knows and has decided so far while handling one event."""

    __slots__ = ("_commands", "_entries", "config", "now_us", "state")

    def __init__(self, config: AgentConfig, state: AgentState, now_us: int) -> None:
        self.config = config
        self.state = state
        self.now_us = now_us
        self._commands: list[Command] = []
        self._entries: list[Entry] = []

    def change(self, **fields: object) -> None:
        """Change the agent's state."""
        self.state = replace(self.state, **fields)

    def put(self, record: PodRecord) -> None:
        """Store a pod's new state."""
        self.change(pods={**self.state.pods, record.pod.metadata.uid: record})

    def ask(self, *commands: Command) -> None:
        """Issue a command to the world."""
        self._commands += commands

    def note(
        self,
        kind: Kind,
        *,
        pod: str | None = None,
        container: str | None = None,
        because: Because | None = None,
        by: By | None = By.KUBELET,
    ) -> None:
        """Write a journal entry; ``by`` is None for what happened by itself."""
        self._entries.append(Entry(self.now_us, self.config.node, kind, pod, container, by, because))

    def step(self) -> AgentStep:
        """Return the result of the event."""
        return AgentStep(self.state, tuple(self._commands), tuple(self._entries))
