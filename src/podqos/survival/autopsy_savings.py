"""What would have saved the victim of an OOM: the kernel's decision, or the check that led to it, made again with one change.

All holds for that moment: memory that keeps growing reaches every limit in the end.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from podqos.model.pod import QOSClass


class SavedBy(StrEnum):
    """What is changed."""

    USAGE = "usage"
    """The victim uses less."""
    REQUEST = "request"
    """Its container requests more memory, which lowers its oom_score_adj."""
    LIMIT = "limit"
    """The limit that was reached is higher."""
    CLASS = "class"
    """Its pod is Guaranteed: limits equal to requests, in memory and CPU."""
    PRIORITY = "priority"
    """Its pod is system-node-critical, which lowers its oom_score_adj like Guaranteed. Other priorities change nothing."""
    THRESHOLD = "threshold"
    """The kubelet's eviction threshold is higher: it acts before the kernel has to."""
    NODE_SIZE = "nodeSize"
    """The node has more memory."""


class Instead(Struct, frozen=True, rename="camel", gc=False):
    """The process that would have been killed in the victim's place."""

    pid: int
    name: str
    badness: int


class Saving(Struct, frozen=True, rename="camel", gc=False):
    """A change that saves the victim; with one page less of it the victim dies."""

    change: SavedBy
    more_bytes: int | None = None
    """How much more (of ``usage``: less). None for a class or priority, or where the node's size is not known."""
    amount_bytes: int | None = None
    """The amount as changed: the request, limit, threshold or machine, what the victim uses."""
    oom_score_adj: int | None = None
    """What the victim would have had, where that saves it."""
    qos_class: QOSClass | None = None
    """What its pod would have been, where that changes."""
    priority: int | None = None
    instead: Instead | None = None
    """Who would have died. None: no process, because memory would not have run out."""
