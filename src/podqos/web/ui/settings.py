"""The address of the page and the limits of its server."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from podqos.web.settings import Limits

HOST, PORT = "127.0.0.1", 8677
LISTEN = f"{HOST}:{PORT}"
UPLOAD_PATH = "/api/sources"
PASTE_PATH = "/api/autopsy"

HTTP_LIMITS = Limits(
    body_bytes=256 << 10,
    head_bytes=16 << 10,
    buffered_bytes=128 << 20,
    unsent_bytes=64 << 20,
    connections=1024,
    receive_seconds=30.0,
    idle_seconds=120.0,
)


_SHARE_OF_ONE = 0.6
_SHARE_OF_PROCESSES = 0.45


class WorkerLimits(Struct, frozen=True):
    """Limits on the processes that compute what visitors ask about their uploads."""

    memory_bytes: int = 1 << 30
    """Of all these processes together."""
    with_runs_bytes: int = 8 << 30
    """The same with long runs."""
    processes: int = 5
    untried: int = 4
    """At most this many compute something whose duration is not known to be short, so that one is always free."""
    slow: int = 2
    """At most this many compute something slow."""
    of_one_visitor: int = 2
    """At a time, so that nobody occupies all of them."""
    quick_seconds: float = 0.5
    """What takes longer is slow."""
    view_seconds: float = 20.0
    """The deadline of a view."""
    read_seconds: float = 60.0
    """The deadline of reading what was uploaded or pasted."""
    queue_seconds: float = 120.0
    """Nobody waits longer for a free process."""
    waiting: int = 128
    """About uploads, and as many about the start source; beyond this, the last one of who has most gives way."""
    waiting_of_one_visitor: int = 24
    sources: int = 12
    """That one process keeps in memory, the most recently used."""
    idle_seconds: float = 60.0
    """A process that nobody needs ends after this time."""

    @property
    def process_bytes(self) -> int:
        """Of one process."""
        return int(self.memory_bytes * _SHARE_OF_ONE)

    @property
    def run_bytes(self) -> int:
        """Of one long run."""
        return int(self.with_runs_bytes * _SHARE_OF_ONE)


class UiLimits(Struct, frozen=True):
    """Limits on what visitors store, and for how long."""

    upload_bytes: int = 32 << 20
    """Of one request."""
    paste_bytes: int = 8 << 20
    """Of a text whose autopsy is asked for; it is not kept."""
    files: int = 500
    """Of one source."""
    sources: int = 12
    """Of one visitor; a new one replaces the least recently used."""
    visitor_bytes: int = 64 << 20
    """Everything that one visitor uploaded, unpacked."""
    total_bytes: int = 256 << 20
    """Of all visitors."""
    visitors: int = 2000
    """Beyond this, one without an open page is forgotten."""
    expires_seconds: float = 1800.0
    """Uploads are deleted this long after the visitor's last request."""
    jobs: int = 4
    """Of one visitor, queued or running; finished ones count as sources."""
    kept_jobs: int = 8
    all_jobs: int = 32
    job_seconds: float = 900.0
    """The deadline of a run."""
    abandoned_seconds: float = 30.0
    """A run is cancelled if its visitor has no page open and asks nothing for this long; a reload takes less."""
    uploading_bytes: int = 64 << 20
    """Of all uploads and pasted texts that are being read; beyond this, the largest gives way."""
    result_bytes: int = 256 << 20
    """Of all finished runs; the oldest are dropped."""
    streams: int = 8
    """Of one visitor at a time."""
    all_streams: int = 200
    """Beyond this, the oldest one of the visitor who has most of them ends."""
    workers: WorkerLimits = WorkerLimits()


UI_LIMITS = UiLimits()


def limits_within(memory_bytes: int) -> UiLimits:
    """Return limits with which the server, what visitors store and all processes together stay below a memory limit.

    What the command is started with comes on top. In 1 GiB: 460 MiB for processes, 128 MiB each for stored files
    and for results of runs, 64 MiB for uploads that are being read, the rest for the server itself.
    """
    part, limits = memory_bytes // 8, UI_LIMITS
    processes, workers = int(memory_bytes * _SHARE_OF_PROCESSES), limits.workers
    return replace(
        limits,
        visitor_bytes=min(limits.visitor_bytes, part // 2),
        total_bytes=min(limits.total_bytes, part),
        uploading_bytes=min(limits.uploading_bytes, part // 2),
        result_bytes=min(limits.result_bytes, part),
        workers=replace(
            workers,
            memory_bytes=min(workers.memory_bytes, processes),
            with_runs_bytes=min(workers.with_runs_bytes, processes),
        ),
    )


def http_limits_within(memory_bytes: int) -> Limits:
    """Return limits with which requests that arrive and answers that wait to be read take little of the memory."""
    limits = HTTP_LIMITS
    return replace(
        limits,
        buffered_bytes=min(limits.buffered_bytes, memory_bytes // 8),
        unsent_bytes=min(limits.unsent_bytes, memory_bytes // 16),
    )
