"""The journal: what was seen, decided and done, one JSON line each, the same from every world.

A timeline, a picture, a comparison of two runs and an autopsy are all derived from a journal. The same entries give the
same bytes. Entries of one node are in order of occurrence, and journals of several nodes are merged by time, then by
the name of the node.
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
    """It was already running when the agent restarted."""
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
    """The agent is in shadow mode: it would have evicted this pod."""
    OOM_KILLED = "OOMKilled"
    THROTTLED = "Throttled"
    MEMORY_THROTTLED = "MemoryThrottled"
    """A container above memory.high gets memory slower than it wants, or no longer."""
    UNHEALTHY = "Unhealthy"
    """A liveness or startup probe failed too often: the container is killed."""
    READINESS_CHANGED = "ReadinessChanged"
    """A pod's readiness probe failed too often, or succeeds again: it leaves the endpoints, or returns."""
    OVERLOADED = "Overloaded"
    """A service began to fail requests, or ceased to."""
    STOPPED = "Stopped"
    CLEANED_UP = "CleanedUp"
    WAIT_TIMED_OUT = "WaitTimedOut"
    PREEMPTED = "Preempted"
    DELETED = "Deleted"
    CORDONED = "Cordoned"
    UNCORDONED = "Uncordoned"
    DRAINED = "Drained"
    """A pod was evicted by a drain."""
    DRAIN_BLOCKED = "DrainBlocked"
    """A drain may not evict a pod for now."""
    REPLACED = "Replaced"
    """A controller created a new pod for one that is gone."""
    HELD = "Held"
    """An autoscaler did not do what its metrics ask for."""
    PENDING = "Pending"
    JOB_CREATED = "JobCreated"
    """A CronJob created a Job."""
    JOB_SKIPPED = "JobSkipped"
    """A CronJob did not create a Job that was due."""
    JOB_COMPLETE = "JobComplete"
    JOB_FAILED = "JobFailed"
    JOB_DELETED = "JobDeleted"
    """A controller deleted a Job that had ended, or that another takes the place of."""
    REFUSED = "Refused"
    """The kernel ran out of process IDs or disk space."""
    LOST = "Lost"
    TERMINATING = "Terminating"
    """Deleted on a node that is lost: nobody confirms it, so the object stays."""
    ROLLOUT_STARTED = "RolloutStarted"
    """The template of a workload changed."""
    SCALED = "Scaled"
    """The wanted number of pods of a workload or of one of its ReplicaSets changed."""
    ROLLED_OUT = "RolledOut"
    """All pods of a workload are of the newest revision and available."""
    WATCHING = "Watching"
    """The guard started watching, changed its mode, or stopped."""
    REPORTED = "Reported"
    """The outcome of an eviction by the guard."""
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
    """podqos, running next to a kubelet."""


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


def is_kill(entry: Entry) -> bool:
    """Whether a pod was evicted or a container killed."""
    return entry.kind in {Kind.EVICTED, Kind.OOM_KILLED}


_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(Entry)


def encode(entries: Iterable[Entry]) -> bytes:
    """Return entries as JSON lines."""
    # Given anything but a list, msgspec (0.22) keeps the iterator forever.
    return _encoder.encode_lines(list(entries))


def decode(data: bytes | Iterable[bytes], source: str = "journal") -> Iterator[Entry]:
    """Read JSON lines, at once or one by one; ``source`` is the name for error messages."""
    for number, line in enumerate(data.splitlines() if isinstance(data, bytes) else data, start=1):
        if line.strip():
            try:
                yield _decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                fix = "give a journal written by podqos: one JSON entry per line"
                raise InputError(f"not a journal entry: {error}", where=f"{source}:{number}", fix=fix) from error


in_order = attrgetter("time_us", "node")
"""The order of a journal: by time, then by node name; entries of one node stay in the order of writing."""


def merged(journals: Iterable[Iterable[Entry]]) -> Iterator[Entry]:
    """Return the entries of several nodes as one journal; each of them must be sorted."""
    return merge(*journals, key=in_order)
