"""The one thread of an agent, as the parts that run on it see it. What it is made of belongs to ``agent_shell``."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from podqos.host.linux.loop import Loop
from podqos.host.linux.notes import OnceNotes


class AgentThread(Struct, frozen=True):
    """The thread that an agent and all its parts share."""

    loop: Loop
    notes: OnceNotes
    """Problems; each is printed once."""
    now_us: Callable[[], int]
    """The journal's time."""

    def note(self, text: str) -> None:
        """Print a problem once, on one line, and count how often it occurs."""
        self.notes.add(text)
