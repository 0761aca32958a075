"""Long runs, each in its own process: with progress, cancellable at any time, and never delaying short requests.

A worker is spawned, not forked, because the server has threads. It reads its task from standard input and writes
messages to standard output. It runs with low priority, is the OOM killer's first choice, has its own memory limit, and
ends with the server, whatever ends that.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import secrets
import struct
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Hashable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.answers.page.job import JobInfo, JobKind, JobState
from podqos.answers.page.source import PageSource, SourceKind
from podqos.errors import HostError, InputError, bug_in_words
from podqos.library.parallel import usable_cores
from podqos.web.ui.memory import resident_bytes
from podqos.web.ui.refusal import RequestRefusal
from podqos.web.ui.settings import UI_LIMITS
from podqos.web.ui.worker_process import kill

HEAD = struct.Struct(">cI")
PROGRESS, RESULT, FAILURE = b"p", b"r", b"f"
_MOST_BYTES = 1 << 28

_MOST_EDITS = 64
_Edit = Annotated[str, msgspec.Meta(max_length=500)]
_OVER = {JobState.DONE, JobState.FAILED, JobState.CANCELLED}


class JobRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A visitor's request for a run."""

    kind: JobKind
    source: str
    node: str = ""
    """For a blast in a cluster: the node; otherwise empty."""
    edits: Annotated[tuple[_Edit, ...], msgspec.Meta(max_length=_MOST_EDITS)] = ()
    """For a scenario: changes in the syntax of ``podqos simulate --what-if``, such as ``limits.memory@web=1Gi``."""


class JobTask(Struct, frozen=True):
    """The task of a worker."""

    kind: JobKind
    source: PageSource | None
    """None: the files are read first."""
    node: str
    edits: tuple[str, ...]
    files: Mapping[str, bytes] = {}
    cores: int = 1


class Job:
    """A queued, running or finished run."""

    def __init__(
        self,
        request: JobRequest,
        task: Callable[[], JobTask],
        generation: int = 1,
        tell: Callable[[], None] = lambda: None,
        visitor: Hashable = None,
    ) -> None:
        """``task`` is called when it begins, so that nothing is kept for it before; ``tell`` on every progress."""
        self.id = new_id()
        self.request = request
        self.visitor = visitor
        self.place = 0
        """In the queue: 1 is next; 0 if it does not wait."""
        self.generation = generation
        self._tell = tell
        self.task = task
        self.state = JobState.QUEUED
        self.progress = 0.0
        self.error = ""
        self.result: bytes | None = None
        """JSON."""
        self.process: asyncio.subprocess.Process | None = None
        self._began: float | None = None
        self._ended: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether it is over."""
        return self.state in _OVER

    def info(self) -> JobInfo:
        """Return its description for the page."""
        now = asyncio.get_running_loop().time()
        seconds = 0.0 if self._began is None else (self._ended or now) - self._began
        return JobInfo(
            self.id,
            self.request.kind,
            self.request.source,
            self.state,
            round(self.progress, 4),
            round(seconds, 3),
            self.error,
            self.generation,
            self.request.node,
            self.request.edits,
            self.place,
        )

    def wait(self, place: int) -> None:
        """Set its place in the queue."""
        if self.place != place:
            self.place = place
            self._tell()

    def begin(self) -> bool:
        """Mark it as started; False if it was cancelled before."""
        if self.is_over:
            return False
        self.place, self.state, self._began = 0, JobState.RUNNING, asyncio.get_running_loop().time()
        self._tell()
        return True

    def runs_in(self, process: asyncio.subprocess.Process) -> None:
        """Set its worker, which is stopped if the job was cancelled meanwhile."""
        self.process = process
        if self.is_over:
            self._end_process()

    def advance(self, progress: float) -> None:
        """Set its progress."""
        self.progress = min(max(progress, self.progress), 1.0)
        self._tell()

    def end(self, state: JobState, error: str = "") -> None:
        """Set its outcome, once."""
        if self.is_over:
            return
        self.place, self.state, self.error = 0, state, error
        self._ended = asyncio.get_running_loop().time()
        if state is JobState.DONE:
            self.progress = 1.0
        self._tell()

    def cancel(self) -> None:
        """Stop it now, with everything it has started."""
        self.end(JobState.CANCELLED)
        self._end_process()

    def fail(self, error: str) -> None:
        """Stop it now because it exceeds a limit."""
        self.end(JobState.FAILED, error)
        self._end_process()

    @property
    def resident_bytes(self) -> int:
        """The memory of its process, and of those that this has started."""
        if self.process is None or self.process.returncode is not None:
            return 0
        pid = self.process.pid
        try:
            started = Path(f"/proc/{pid}/task/{pid}/children").read_bytes().split()
        except OSError:
            started = []
        return sum(map(resident_bytes, (pid, *map(int, started))))

    def _end_process(self) -> None:
        if self.process is not None:
            kill(self.process)


class Jobs:
    """Runs as many jobs at a time as leave one core for the server; visitors take turns."""

    def __init__(
        self, at_once: int | None = None, process_bytes: int = 8 << 30, seconds: float = UI_LIMITS.job_seconds
    ) -> None:
        self.at_once = at_once or max(1, usable_cores() - 1)
        self._process_bytes = process_bytes
        self._seconds = seconds
        self._waiting: list[Job] = []
        self._running: dict[Job, asyncio.Task[None]] = {}

    @property
    def count(self) -> int:
        """The number of unfinished jobs."""
        return len(self._waiting) + len(self._running)

    def add(self, job: Job) -> None:
        """Queue a job."""
        self._waiting.append(job)
        self.go_on()

    def has_room(self, visitor: Hashable, most: int) -> bool:
        """Whether a visitor may add a job; if there are too many, one who has more of them gives way."""
        if self.count < most:
            return True
        has = Counter(job.visitor for job in (*self._running, *self._waiting) if not job.is_over)
        last = max(reversed(self._in_turn()), key=lambda job: has[job.visitor], default=None)
        if last is None or has[last.visitor] <= has[visitor] + 1:
            return False
        last.fail("others want to run something, too: run it again later")
        self.go_on()
        return True

    def go_on(self) -> None:
        """Begin what can begin; the others move up."""
        self._waiting = [job for job in self._waiting if not job.is_over]
        while self._waiting and len(self._running) < self.at_once:
            job = self._in_turn()[0]
            self._waiting.remove(job)
            task = self._running[job] = asyncio.ensure_future(self._run(job))
            task.add_done_callback(partial(self._over, job))
        for place, job in enumerate(self._in_turn(), 1):
            job.wait(place)

    def _in_turn(self) -> list[Job]:
        """Return the queue: first the first job of each visitor who has none running, in order of arrival."""
        before = Counter(job.visitor for job in self._running)
        turns: dict[Job, int] = {}
        for job in self._waiting:
            turns[job] = before[job.visitor]
            before[job.visitor] += 1
        return sorted(self._waiting, key=lambda job: turns[job])

    def _over(self, job: Job, task: asyncio.Task[None]) -> None:
        del self._running[job]
        error = None if task.cancelled() else task.exception()
        if error is not None and not job.is_over:  # a bug of ours, but whoever waits is told
            job.end(JobState.FAILED, bug_in_words(error))
        self.go_on()

    async def _run(self, job: Job) -> None:
        """Run a job to its end unless it is cancelled before; any exception becomes its error."""
        if not job.begin():
            return
        try:
            task = replace(job.task(), cores=max(1, self.at_once + 1 - len(self._running)))  # idle slots
            most_bytes = self._process_bytes // task.cores
            data = asyncio.to_thread(pickled, task)
            del task  # the worker has a copy
            async with asyncio.timeout(self._seconds), worker(await data, most_bytes) as process:
                job.runs_in(process)
                async for kind, body in messages(process):
                    if job.is_over:  # cancelled meanwhile
                        return
                    if kind == PROGRESS:
                        job.advance(float(body))
                    elif kind == RESULT:
                        job.result = body
                        job.end(JobState.DONE)
                    else:
                        job.end(JobState.FAILED, body.decode())
        except TimeoutError:
            what = f"it takes more than {self._seconds / 60:g} minutes: shorten the scenario"
            job.end(JobState.FAILED, f"{what}, or run it in a terminal with `podqos simulate` or `podqos blast`")
        except (OSError, HostError, RequestRefusal) as error:
            job.end(JobState.FAILED, str(error))

    def largest(self) -> int:
        """Return the memory of the largest running job."""
        return max((job.resident_bytes for job in self._running), default=0)

    def total(self) -> int:
        """Return the memory of all running jobs."""
        return sum(job.resident_bytes for job in self._running)

    def end_largest(self) -> None:
        """End the running job that uses most memory."""
        job = max(self._running, key=lambda job: job.resident_bytes, default=None)
        if job is not None:
            job.fail("the run needs more memory than is available here; use a smaller scenario")

    async def stop(self) -> None:
        """Stop everything, and wait for it."""
        for job in (*self._waiting, *self._running):
            job.cancel()
        self._waiting.clear()
        while self._running:
            await asyncio.wait(list(self._running.values()))


@asynccontextmanager
async def worker(data: bytes, most_bytes: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a worker with its task; afterwards it is gone, with all its children."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "podqos.web.ui.worker", str(os.getpid()), str(most_bytes),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdin is not None
        # Reported by its answer, or the lack of one; uvloop has an error of its own for a pipe that is closed already.
        with suppress(ConnectionError, RuntimeError):
            process.stdin.write(data)
            await process.stdin.drain()
        del data
        yield process  # its input stays open: by its end the worker notices that of the server
    finally:
        kill(process)
        await process.wait()


async def messages(process: asyncio.subprocess.Process) -> AsyncGenerator[tuple[bytes, bytes], None]:
    """Yield a worker's messages up to its result; raise ``HostError`` if it ends before."""
    assert process.stdout is not None
    kind = PROGRESS
    while kind == PROGRESS:
        try:
            kind, length = HEAD.unpack(await process.stdout.readexactly(HEAD.size))
            if length > _MOST_BYTES:
                raise HostError("the result is too large to show; open a smaller part")
            body = await process.stdout.readexactly(length)
        except asyncio.IncompleteReadError:
            raise HostError("the worker was killed before it finished (out of memory?)") from None
        yield kind, body


def new_id() -> str:
    """Return an id for a visitor's object."""
    return secrets.token_hex(8)


def encoded(job: Job) -> bytes:
    """Return a job as JSON."""
    return msgspec.json.encode(job.info())


def check_request(request: JobRequest, kind: str, name: str) -> None:
    """Raise ``InputError`` for what cannot be computed for a source of this kind."""
    if (request.kind is JobKind.RUN or request.edits) and kind != SourceKind.SCENARIO:
        raise InputError("only a scenario can be run", where=name, fix="open a scenario and its manifests")
    if kind in {SourceKind.LOG, SourceKind.RUN}:
        raise InputError("it contains no pods", where=name, fix="open manifests, a snapshot or a scenario")


class _Sink:
    """Collects what is written in parts, so that pickling a large value lets other threads run in between."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, part: bytes) -> int:
        self._parts.append(bytes(part))
        return len(part)

    def data(self) -> bytes:
        return b"".join(self._parts)


def pickled(value: object) -> bytes:
    """Return a value pickled, without holding up other threads for long."""
    sink = _Sink()
    pickle.Pickler(sink, pickle.HIGHEST_PROTOCOL).dump(value)
    return sink.data()
