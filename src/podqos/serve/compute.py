"""Work that may hang or grow, each piece in a process of its own: it is killed at a deadline, or if nobody waits.

The processes are forked from one that has imported what they need (spawned where there is no such server), a few at a
time, each with its own limit on memory. They end with this process, whatever ends that.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, TypeVar

from podqos.errors import HostError, PodqosError

Result = TypeVar("Result")

Told = Callable[[float], None]
"""Called with the progress, from 0 to 1."""

# Elsewhere there is no fork, or (on a Mac) libraries do not survive it.
_START = "forkserver" if sys.platform == "linux" else "spawn"
_NICENESS = 5
_PROGRESS, _RESULT, _ERROR, _NO_MEMORY, _FAILURE = range(5)


class Failed(Exception):
    """A bug of ours in a process, in words."""


class Compute:
    """Runs functions in processes, ``at_once`` at a time, each with so much memory."""

    def __init__(self, at_once: int, most_bytes: int, preload: str) -> None:
        self.at_once = at_once
        self._context: Any = multiprocessing.get_context(_START)
        if _START == "forkserver":
            self._context.set_forkserver_preload([preload])
        self._most_bytes = most_bytes
        self._slots = asyncio.Semaphore(at_once)
        # A process that is being started or that is listened to takes a thread.
        self._threads = ThreadPoolExecutor(2 * at_once, "compute")

    async def run(
        self,
        function: Callable[..., Result],
        *arguments: object,
        seconds: float,
        began: Callable[[], None] = lambda: None,
        told: Told | None = None,
    ) -> Result:
        """Return what a function of a module returns; with ``told``, the function is given a way to tell its progress.

        Raise what it raises that is a visitor's fault, ``TimeoutError`` if it takes longer than ``seconds``, and
        ``HostError`` if its process ends or wants more memory.
        """
        async with self._slots:
            began()
            loop = asyncio.get_running_loop()
            own, other = self._context.Pipe()
            given = (other, self._most_bytes, told is not None, function, arguments)
            process = self._context.Process(target=_work, args=given)
            starting = loop.run_in_executor(self._threads, process.start)
            try:
                await asyncio.shield(starting)
                other.close()
                async with asyncio.timeout(seconds):
                    found: Result = await self._result(own, told)  # type: ignore[assignment]
                    return found
            finally:
                with suppress(OSError):
                    await starting
                    process.kill()
                    process.join()  # it takes a moment: nobody can refuse
                own.close()

    async def _result(self, own: Connection, told: Told | None) -> object:
        loop = asyncio.get_running_loop()
        while True:
            try:
                kind, value = await loop.run_in_executor(self._threads, own.recv)
            except (EOFError, OSError):
                raise HostError("the process was killed before it finished (out of memory?)") from None
            match kind:
                case _ if kind == _PROGRESS:
                    assert told is not None
                    told(value)
                case _ if kind == _RESULT:
                    return value
                case _ if kind == _ERROR:
                    raise value
                case _ if kind == _NO_MEMORY:
                    raise HostError("it needs more memory than it may use; open a smaller part")
                case _:
                    raise Failed(value)

    def close(self) -> None:
        """Start nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _work(
    server: Connection, most_bytes: int, tells: bool, function: Callable[..., object], arguments: tuple[object, ...]
) -> None:
    """Run in the process: compute, and send what comes of it."""
    Thread(target=_end_with, args=(server,), daemon=True).start()
    with suppress(ImportError, OSError, AttributeError):  # where there are no such limits
        import resource

        os.nice(_NICENESS)
        resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    more = (lambda fraction: server.send((_PROGRESS, fraction)),) if tells else ()
    try:
        server.send((_RESULT, function(*arguments, *more)))
    except PodqosError as error:
        server.send((_ERROR, error))
    except MemoryError:
        server.send((_NO_MEMORY, None))
    except Exception as error:  # noqa: BLE001 - a bug of ours is an answer, too
        print(f"podqos: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
        server.send((_FAILURE, f"{type(error).__name__}: {str(error)[:500]}"))


def _end_with(server: Connection) -> None:
    """Exit when the server, and with it the other end of the pipe, is gone: it never sends anything."""
    with suppress(OSError):
        server.poll(None)
    os._exit(1)
