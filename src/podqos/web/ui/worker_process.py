"""View workers as the server sees them: started, asked, killed.

They are forked from one process that has imported everything and has no threads, so that a new one is ready in
milliseconds: killing one costs little. Elsewhere than on Linux each is started from scratch.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

from podqos.web.ui.memory import cpu_seconds, is_stopped, resident_bytes
from podqos.web.ui.tasks import HEAD, Reply, Task, task_parts

_MOST_ANSWER_BYTES = 1 << 28
_PIPE_BYTES = 1 << 20
_NICENESS_OF_SLOW = 15
_START_SECONDS = 60.0


class WorkerGone(Exception):
    """The worker ended before it answered."""


class NeedsMemory(Exception):
    """The answer needs more memory than the worker may use, or is too large to pass on."""


class WorkerFailed(Exception):
    """A bug of ours, in words."""


class WorkerProcess:
    """A process that answers one question at a time, and keeps the sources that it was asked about."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._pid = 0
        self._handle: int | None = None
        """Names the process even if another one has got its number since."""
        self._is_killed = False
        self.held: dict[str, None] = {}
        """The sources that it has read, the most recently used last."""
        self.dropped: tuple[str, ...] = ()
        """Those that it may forget with the next question."""
        self.is_slow = False
        """Whether its priority was lowered, which cannot be undone."""
        self.used_at = 0.0
        self.took_seconds = 0.0
        """The CPU time of the last answer."""

    async def ready(self) -> None:
        """Wait until it answers; raise ``WorkerGone`` if it ends before."""
        try:
            async with asyncio.timeout(_START_SECONDS):
                _, pid = await self._message()
        except TimeoutError:
            raise WorkerGone from None
        self._pid = int(pid)
        if hasattr(os, "pidfd_open"):
            with suppress(OSError):
                self._handle = os.pidfd_open(self._pid)

    @property
    def resident_bytes(self) -> int:
        """The memory that it uses."""
        return resident_bytes(self._pid)

    @property
    def is_stopped(self) -> bool:
        """Whether somebody has stopped it."""
        return is_stopped(self._pid)

    @property
    def cpu_seconds(self) -> float:
        """The CPU time that it has used since its start; infinite if the system does not tell."""
        return cpu_seconds(self._pid)

    async def ask(self, task: Task, on_read: Callable[[], None]) -> bytes:
        """Return the answer to a question, or raise its error; ``on_read`` is called when the source has been read."""
        self.took_seconds = 0.0
        with suppress(ConnectionError):  # reported by its answer, or the lack of one
            for part in task_parts(task):
                self._writer.write(part)
                await self._writer.drain()
        while True:
            kind, body = await self._message()
            match kind:
                case Reply.TOOK:
                    self.took_seconds = float(body)
                case Reply.READ:
                    on_read()
                case Reply.RESULT:
                    return body
                case Reply.ERROR:
                    raise pickle.loads(body)  # noqa: S301 - written by our own worker
                case Reply.NO_MEMORY:
                    raise NeedsMemory
                case _:
                    raise WorkerFailed(body.decode(errors="replace"))

    async def _message(self) -> tuple[bytes, bytes]:
        try:
            kind, length = HEAD.unpack(await self._reader.readexactly(HEAD.size))
            if length > _MOST_ANSWER_BYTES:
                raise NeedsMemory
            return kind, await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            raise WorkerGone from None

    def slow_down(self) -> None:
        """Let everybody else's questions go first from now on."""
        self.is_slow = True
        if sys.platform != "win32":
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self._pid, _NICENESS_OF_SLOW)

    def kill(self) -> None:
        """End it now, with whatever it computes."""
        if self._is_killed:
            return
        self._is_killed = True
        if self._pid:
            with suppress(OSError):
                self._send_kill()
        if self._handle is not None:
            os.close(self._handle)
        self._writer.close()  # by which it ends, too, if it is still starting

    def _send_kill(self) -> None:
        import signal

        if sys.platform == "win32":
            os.kill(self._pid, signal.SIGTERM)
        elif self._handle is not None and sys.platform == "linux":
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        else:
            os.kill(self._pid, signal.SIGKILL)

    async def gone(self) -> None:
        """Wait for its end: only then it has closed its side."""
        with suppress(OSError, asyncio.IncompleteReadError):
            while await self._reader.read(_PIPE_BYTES):
                pass
        with suppress(OSError):
            await self._writer.wait_closed()


class Nursery:
    """Starts workers."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._parent: asyncio.subprocess.Process | None = None
        self._control: socket.socket | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it has no process of its own."""
        return self._parent is None

    @property
    def is_stopped(self) -> bool:
        """Whether somebody has stopped the process that workers are forked from."""
        return self._parent is not None and is_stopped(self._parent.pid)

    async def start(self) -> WorkerProcess:
        """Return a worker that is ready; raise ``WorkerGone`` or ``OSError`` if it cannot start."""
        worker = await (self._forked() if sys.platform == "linux" else self._spawned())
        try:
            await worker.ready()
        except BaseException:
            worker.kill()
            raise
        return worker

    async def _forked(self) -> WorkerProcess:
        if self._parent is None or self._parent.returncode is not None:
            await self._begin()
        assert self._control is not None
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control, [b"w"], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        ours.setblocking(False)
        return WorkerProcess(*await asyncio.open_connection(sock=ours, limit=_PIPE_BYTES))

    async def _begin(self) -> None:
        await self.rest()
        self._control, theirs = socket.socketpair()
        with theirs:
            self._parent = await asyncio.create_subprocess_exec(
                *_command(self._most_bytes), str(theirs.fileno()), pass_fds=(theirs.fileno(),),
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, start_new_session=True,
                # One arena: what a thread reserves for itself counts as the process's memory.
                env={**os.environ, "MALLOC_ARENA_MAX": "1"},
            )  # fmt: skip

    async def _spawned(self) -> WorkerProcess:
        """Return a worker that is connected over the loopback interface."""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.setblocking(False)
            await asyncio.create_subprocess_exec(*_command(self._most_bytes), f"port:{listening.getsockname()[1]}")
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(_START_SECONDS):
                ours, _ = await loop.sock_accept(listening)
        return WorkerProcess(*await asyncio.open_connection(sock=ours, limit=_PIPE_BYTES))

    async def rest(self) -> None:
        """End the process that workers are forked from; the next one takes longer to start."""
        parent, self._parent = self._parent, None
        if self._control is not None:
            self._control.close()
            self._control = None
        if parent is not None:
            kill(parent)
            await parent.wait()


def _command(most_bytes: int) -> tuple[str, ...]:
    return sys.executable, "-P", "-m", "podqos.web.ui.view_worker", str(os.getpid()), str(most_bytes)


def kill(process: asyncio.subprocess.Process) -> None:
    """End a worker with all that it started; on Windows it starts nothing."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.kill()
        else:
            from signal import SIGKILL

            os.killpg(process.pid, SIGKILL)
