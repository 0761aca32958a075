"""The journal: what was seen, decided and done, one JSON line each, the same from every world.

A timeline, a picture, a comparison of two runs and an autopsy are all readings of a journal. The same entries give
the same bytes; entries of one node stand in the order in which things happened, and journals of several nodes are
merged by time, then by name of the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from heapq import merge
from operator import attrgetter

import msgspec
from msgspec import Struct

from podqos.agent.reasons import Because
from podqos.errors import InputError


class Kind(StrEnum):
    """What happened, in the past tense."""

    PLACED = "Placed"
    ADMITTED = "Admitted"
    REJECTED = "Rejected"
    ADOPTED = "Adopted"
    """It ran already when the agent was started again."""
    STARTED = "Started"
    EXITED = "Exited"
    RESTARTED = "Restarted"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    OBSERVED = "Observed"
    CONDITION_CHANGED = "ConditionChanged"
    RECLAIMED = "Reclaimed"
    EVICTED = "Evicted"
    WOULD_EVICT = "WouldEvict"
    """The agent only shadows the node: it would have evicted this pod."""
    OOM_KILLED = "OOMKilled"
    THROTTLED = "Throttled"
    STOPPED = "Stopped"
    CLEANED_UP = "CleanedUp"
    WAIT_TIMED_OUT = "WaitTimedOut"
    PREEMPTED = "Preempted"
    DELETED = "Deleted"
    REPLACED = "Replaced"
    """A controller made a new pod for one that is gone."""
    PENDING = "Pending"
    REFUSED = "Refused"
    """The kernel had no more process ids, or no more disk."""
    LOST = "Lost"
    WATCHING = "Watching"
    """The guard began to watch, does so in another mode, or ended."""
    REPORTED = "Reported"
    """What came of an eviction that the guard had decided on."""
    EXPLAINED = "Explained"
    """What would have saved the pod that was, or would have been, evicted a moment before."""


class By(StrEnum):
    """Who did it."""

    KUBELET = "kubelet"
    KERNEL = "kernel"
    SCHEDULER = "scheduler"
    CONTROLLER = "controller"
    USER = "user"
    GUARD = "guard"
    """podqos beside a kubelet."""


class Entry(Struct, frozen=True, gc=False, omit_defaults=True):
    """One line of a journal."""

    time_us: int
    node: str
    kind: Kind
    pod: str | None = None
    """``namespace/name``."""
    container: str | None = None
    by: By | None = None
    because: Because | None = None


_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(Entry)


def encode(entries: Iterable[Entry]) -> bytes:
    """Return entries as JSON lines."""
    # Given anything but a list, msgspec (0.22) keeps the iterator for ever.
    return _encoder.encode_lines(list(entries))


def decode(data: bytes | Iterable[bytes], source: str = "journal") -> Iterator[Entry]:
    """Read JSON lines, at once or one by one; ``source`` is the name to report bad ones under."""
    for number, line in enumerate(data.splitlines() if isinstance(data, bytes) else data, start=1):
        if line.strip():
            try:
                yield _decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                fix = "give a journal written by podqos: one JSON entry per line"
                raise InputError(f"not a journal entry: {error}", where=f"{source}:{number}", fix=fix) from error


in_order = attrgetter("time_us", "node")
"""The order of a journal: by time, then by name of the node; entries of one node stay in the order of writing."""


def merged(journals: Iterable[Iterable[Entry]]) -> Iterator[Entry]:
    """Return the entries of several nodes as one journal; each of them must be in order."""
    return merge(*journals, key=in_order)
