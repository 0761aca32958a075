"""A death in words: what text, Markdown and the page of ``podqos autopsy`` show of it."""

from __future__ import annotations

from msgspec import Struct


class Fact(Struct, frozen=True, gc=False):
    """Something about a death, after its label."""

    label: str
    words: str


class RankedRow(Struct, frozen=True, gc=False):
    """A candidate, the first to go first."""

    name: str
    cells: tuple[str, ...]
    """What else the columns say."""
    mark: str = ""
    """killed, chosen, evicted, or nothing."""
    used: int | None = None
    """What decides, to be drawn: what is used, and what is added to it or taken off."""
    added: int = 0


class MemoryPart(Struct, frozen=True, gc=False):
    """A part of the memory that ran out."""

    name: str
    bytes: int
    kind: str = ""
    """anon, file, shmem, rss, kernel, other or swap: what it is drawn as."""


class TreeRow(Struct, frozen=True, rename="camel", gc=False):
    """A bar of the picture: what ran out, a pod, a container, a process; parents first."""

    depth: int
    kind: str
    """machine, cgroup, pod, container, process or others."""
    name: str
    parts: tuple[MemoryPart, ...] = ()
    """What it holds, swap last; empty where the report does not say."""
    used_bytes: int | None = None
    limit_bytes: int | None = None
    """Its limit; of the machine its memory."""
    peak_bytes: int | None = None
    mark: str = ""
    """killed, or nothing."""


class AutopsyDeath(Struct, frozen=True, rename="camel"):
    """What happened, why to this one, and what would have saved it."""

    by: str
    """kernel, kubelet, podqos guard, or who else ended it."""
    at: str
    host: str
    who: str
    """The pod, or the process where that is not known."""
    what: str
    """What happened, as a sentence."""
    verdict: str
    """Why to this one, and whether the rule says so."""
    follows_rule: bool | None = None
    cause: str = ""
    """The main cause in two or three words."""
    causes: tuple[str, ...] = ()
    next: str = ""
    """Who was next."""
    saved_by: tuple[str, ...] = ()
    """What would have saved it, the smallest change first."""
    facts: tuple[Fact, ...] = ()
    """What else is known."""
    rule: str = ""
    """How candidates are compared."""
    columns: tuple[str, ...] = ()
    """Of the ranking: the name's, and those of the cells."""
    ranking: tuple[RankedRow, ...] = ()
    candidates: int = 0
    """How many there were."""
    unit: str = "task"
    memory: tuple[MemoryPart, ...] = ()
    """What the memory that ran out held."""
    memory_bytes: int = 0
    """How much that is in all; 0: not known."""
    tree: tuple[TreeRow, ...] = ()
    """Who held the memory at that moment."""
