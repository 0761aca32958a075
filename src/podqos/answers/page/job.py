"""Long runs, and how old what is live is, as the page is told of them."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class JobKind(StrEnum):
    """What is computed."""

    RUN = "run"
    BLAST = "blast"


class JobState(StrEnum):
    """How far a run is."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobInfo(Struct, frozen=True, rename="camel"):
    """A long run."""

    id: str
    kind: JobKind
    source: str
    state: JobState
    progress: float
    """From 0 to 1."""
    seconds: float
    """How long it has run."""
    error: str
    """Why it failed; empty where it did not."""
    generation: int
    """Which state of the source it is of."""
    node: str
    """Of a blast in a cluster."""
    edits: tuple[str, ...]
    """What was changed for it."""
    place: int
    """In the queue: 1 is next; 0 if it does not wait."""


class Hello(Struct, frozen=True, rename="camel"):
    """Who tells: another instance knows nothing of what was left with the one before."""

    instance: str
    version: str


class Age(Struct, frozen=True, rename="camel"):
    """How old what is shown is."""

    taken_at: str
    """When it became what it is, in RFC 3339."""
    age_seconds: float
    """Since it was last known to be so."""
    trouble: str
    """Why it is not kept up to date; empty where it is."""
    now: str = ""
    """The time on the server, in RFC 3339: that of the page may be another."""
