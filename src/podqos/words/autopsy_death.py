"""A death in words: what text, Markdown and the page of ``podqos autopsy`` show of it."""

from __future__ import annotations

from msgspec import Struct

NEXT = "next in line"
FIRST = "ranked higher"
NOT_RANKED = "not decided by ranking"
"""The verdict on what no ranking decides, such as a drain."""


class Fact(Struct, frozen=True, gc=False):
    """Something about a death, after its label."""

    label: str
    words: str


class RankedRow(Struct, frozen=True, gc=False, rename="camel"):
    """A candidate, the first victim first."""

    name: str
    cells: tuple[str, ...]
    """What else the columns say."""
    mark: str = ""
    """killed, chosen, evicted, or nothing."""
    used: int | None = None
    """What decides, to be drawn: what is used, and what is added to it or taken off."""
    added: int = 0
    standing: str = ""
    """``next in line`` for who would have been the next victim, ``ranked higher`` for who ranks before the victim."""
    behind: str = ""
    """How far its score is behind that of the victim, as an amount of memory; empty where that is not known."""


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
    pod: str = ""
    """``namespace/name`` of the victim, where it is known."""
    qos_class: str = ""
    """Its class, where it is known."""
