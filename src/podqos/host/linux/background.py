"""Work that may block, off the node's thread: reading files, resolving names. Results come back on the loop.

Threads are started as needed, up to a limit; what is beyond waits. A thread that hangs (a dead network filesystem) is
left alone and never waited for.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

from podqos.host.linux.loop import Loop

T = TypeVar("T")
_STACK_BYTES = 2 << 20  # all of it is locked in memory with --realtime
Job = Callable[[], Callable[[], None]]


class Background:
    """Runs work on threads of its own."""

    def __init__(self, loop: Loop, name: str, most_threads: int = 1) -> None:
        self._loop, self._name, self._most = loop, name, most_threads
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._done: deque[Callable[[], None]] = deque()
        self._threads = 0
        self._unfinished = 0
        self._lock = threading.Lock()
        self._event: int | None = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        loop.watch(self._event, self._hear)

    def run(self, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
        """Do the work on a thread; ``done`` is called on the loop with its result, or with what it raised."""

        def job() -> Callable[[], None]:
            try:
                result: T | Exception = work()
            except Exception as error:  # noqa: BLE001 - the caller decides what a failure means
                result = error
            return lambda: done(result)

        self._unfinished += 1
        self._jobs.put(job)
        if self._threads < min(self._unfinished, self._most):
            self._threads += 1
            before = threading.stack_size(_STACK_BYTES)
            threading.Thread(target=self._serve, name=self._name, daemon=True).start()
            threading.stack_size(before)

    def close(self) -> None:
        """Let the threads end; results that are still to come are dropped."""
        with self._lock:
            event, self._event = self._event, None
        if event is not None:
            self._loop.unwatch(event)
            os.close(event)
        for _ in range(self._threads):
            self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            done = job()
            with self._lock:
                if self._event is None:
                    return
                self._done.append(done)
                os.eventfd_write(self._event, 1)

    def _hear(self) -> None:
        assert self._event is not None
        os.eventfd_read(self._event)
        while self._done:
            done = self._done.popleft()
            self._unfinished -= 1
            self._loop.call_after(0, done)
