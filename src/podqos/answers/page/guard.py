"""A running guard beside the pods it guards: whether it evicts, what holds it back, and what it decided last.

The shape is stable: fields are added, never renamed or removed; ``docs/schema/page.json`` follows these classes.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from podqos.agent.guard_status import GuardStatus
from podqos.agent.journal import Entry, Kind
from podqos.model.time_units import SECOND_US
from podqos.words.guard_status import mode, status_facts
from podqos.words.journal import line, reasons

_TOLD = frozenset(
    {Kind.WATCHING, Kind.WOULD_EVICT, Kind.EVICTED, Kind.REPORTED, Kind.EXPLAINED, Kind.OOM_KILLED, Kind.LOST}
)
_MOST = 20


class GuardFact(Struct, frozen=True):
    """Something about a guard, in words."""

    name: str
    text: str


class GuardEntry(Struct, frozen=True, rename="camel"):
    """Something that the guard decided, did or saw."""

    time: float
    """In seconds since 1970."""
    kind: str
    pod: str
    text: str
    reasons: tuple[str, ...]


class GuardPanel(Struct, frozen=True, rename="camel"):
    """A guard."""

    node: str
    enforce: bool
    """Whether it was started to evict."""
    held_back: str
    """Why it evicts nothing for now: shadow, the kill switch, a brake; empty where it would."""
    mode: str
    """The same in words."""
    facts: tuple[GuardFact, ...]
    entries: tuple[GuardEntry, ...]
    """Newest first."""


def guard_panel(status: GuardStatus, entries: Iterable[Entry]) -> GuardPanel:
    """Return a guard as the page shows it; ``entries`` are the last of its journal, oldest first."""
    told = [entry for entry in entries if entry.kind in _TOLD][-_MOST:]
    return GuardPanel(
        status.node,
        status.enforce,
        status.held_back,
        mode(status),
        tuple(GuardFact(name, text) for name, text in status_facts(status, status.updated_us)),
        tuple(
            GuardEntry(entry.time_us / SECOND_US, str(entry.kind), entry.pod or "", line(entry), reasons(entry))
            for entry in reversed(told)
        ),
    )
