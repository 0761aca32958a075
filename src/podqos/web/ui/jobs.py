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
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Annotated, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.answers.page.job import JobInfo, JobKind, JobState
from podqos.answers.page.source import PageSource
from podqos.errors import HostError, InputError
from podqos.library.engines.fan_out import usable_cores
from podqos.web.ui.source_files import varied

T = TypeVar("T")

HEAD = struct.Struct(">cI")
PROGRESS, RESULT, FAILURE = b"p", b"r", b"f"
_MOST_BYTES = 1 << 28
_READING_SECONDS = 60.0


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
    source: PageSource
    node: str
    edits: tuple[str, ...]
    cores: int = 1


class ReadingJob(Struct, frozen=True):
    """The task of a worker that only reads files."""

    files: Mapping[str, bytes]


class PasteJob(Struct, frozen=True):
    """The task of a worker that examines a pasted text; its result is JSON."""

    text: bytes
    source: PageSource | None


class Job:
    """A queued, running or finished run."""

    def __init__(
        self, request: JobRequest, task: JobTask, generation: int = 1, tell: Callable[[], None] = lambda: None
    ) -> None:
        """``tell`` is called on every progress."""
        self.id = new_id()
        self.request = request
        self._generation = generation
        self._tell = tell
        self.task: JobTask | None = task
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
            self._generation,
            self.request.node,
            self.request.edits,
        )

    def begin(self) -> bool:
        """Mark it as started; False if it was cancelled before."""
        if self.is_over:
            return False
        self.state, self._began = JobState.RUNNING, asyncio.get_running_loop().time()
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
        self.state, self.error, self.task = state, error, None
        self._ended = asyncio.get_running_loop().time()
        if state is JobState.DONE:
            self.progress = 1.0
        self._tell()

    def cancel(self) -> None:
        """Stop it now, with everything it has started."""
        self.end(JobState.CANCELLED)
        self._end_process()

    def _end_process(self) -> None:
        if self.process is not None and self.process.returncode is None:
            kill(self.process)


class Jobs:
    """Runs jobs in order of arrival, as many at a time as leave one core for the server."""

    def __init__(self, at_once: int | None = None) -> None:
        self.at_once = at_once or max(1, usable_cores() - 1)
        self._waiting: deque[Job] = deque()
        self._running: dict[Job, asyncio.Task[None]] = {}

    @property
    def count(self) -> int:
        """The number of unfinished jobs."""
        return len(self._waiting) + len(self._running)

    def add(self, job: Job) -> None:
        """Queue a job."""
        self._waiting.append(job)
        self._go_on()

    def _go_on(self) -> None:
        self._waiting = deque(job for job in self._waiting if not job.is_over)
        while self._waiting and len(self._running) < self.at_once:
            job = self._waiting.popleft()
            task = self._running[job] = asyncio.ensure_future(self._run(job))
            task.add_done_callback(partial(self._over, job))

    def _over(self, job: Job, _: asyncio.Task[None]) -> None:
        del self._running[job]
        self._go_on()

    async def _run(self, job: Job) -> None:
        """Run a job to its end unless it is cancelled before; any exception becomes its error."""
        if not job.begin():
            return
        assert job.task is not None
        task = replace(job.task, cores=max(1, self.at_once + 1 - len(self._running)))  # idle slots
        data = await asyncio.to_thread(pickle.dumps, task, pickle.HIGHEST_PROTOCOL)
        job.task = None
        try:
            async with worker(data) as process:
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
        except (OSError, HostError) as error:
            job.end(JobState.FAILED, str(error))

    async def stop(self) -> None:
        """Stop everything, and wait for it."""
        for job in (*self._waiting, *self._running):
            job.cancel()
        self._waiting.clear()
        while self._running:
            await asyncio.wait(list(self._running.values()))


async def read_apart(files: Mapping[str, bytes]) -> PageSource:
    """Read files in a separate process with a time limit; raise their errors."""
    return await _apart(ReadingJob(files), PageSource, ", ".join(files), "open a smaller part")


async def autopsy_apart(text: bytes, source: PageSource | None) -> bytes:
    """Examine a pasted text in a separate process with a time limit; return JSON, or raise its error."""
    return await _apart(PasteJob(text, source), bytes, "pasted", "paste the lines around one OOM kill")


async def _apart(task: ReadingJob | PasteJob, _: type[T], where: str, fix: str) -> T:
    data = await asyncio.to_thread(pickle.dumps, task, pickle.HIGHEST_PROTOCOL)
    try:
        async with asyncio.timeout(_READING_SECONDS), worker(data) as process:
            async for kind, body in messages(process):
                if kind == FAILURE:
                    raise InputError(body.decode(), where=where)
                found: T | InputError = await asyncio.to_thread(pickle.loads, body)
                if isinstance(found, InputError):
                    raise found
                return found
    except TimeoutError:
        raise InputError("reading it takes too long", where=where, fix=fix) from None
    raise AssertionError("a worker answers, or is ended")


def kill(process: asyncio.subprocess.Process) -> None:
    """End a worker with all that it started; on Windows it starts nothing."""
    with suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.kill()
        else:
            from signal import SIGKILL

            os.killpg(process.pid, SIGKILL)


@asynccontextmanager
async def worker(data: bytes) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a worker with its task; afterwards it is gone, with all its children."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "podqos.web.ui.worker", str(os.getpid()),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdin is not None
        with suppress(ConnectionError):  # reported by its answer, or the lack of one
            process.stdin.write(data)
            await process.stdin.drain()
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


def check_request(request: JobRequest, source: PageSource) -> None:
    """Raise ``InputError`` for what cannot be computed."""
    if request.kind is JobKind.RUN or request.edits:
        varied(source, ())
    if source.scenario is None and source.objects is None and source.cluster is None:
        raise InputError("it contains no pods", where=source.name, fix="open manifests, a snapshot or a scenario")
