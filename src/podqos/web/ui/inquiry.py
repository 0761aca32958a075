"""A question to a view worker: what is asked, how long that usually takes, and whether somebody still waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from enum import IntEnum

from msgspec import Struct

from podqos.errors import InputError
from podqos.web.ui.tasks import Given, Paste, Reading, What
from podqos.web.ui.views import Question
from podqos.web.ui.worker_process import WorkerProcess

_KNOWN_TIMES = 4096
_READ = ""

Like = tuple[str, str]
"""A source and a view of it; the empty view stands for reading the source."""


class Busy(InputError):
    """Too many questions at once."""

    status = 429


class Inquiry(Struct, frozen=True):
    """A visitor's question for a worker."""

    what: What
    given: Given | None = None
    """The source that it is about."""
    where: str = ""
    """What messages call it."""
    fix: str = "open a smaller part"

    @property
    def key(self) -> str:
        """The source; empty if it is about none."""
        return "" if self.given is None else self.given.key

    @property
    def new_bytes(self) -> int:
        """What has to be read for the first time."""
        if isinstance(self.what, Paste):
            return len(self.what.text)
        return sum(map(len, self.given.files.values())) if isinstance(self.what, Reading) and self.given else 0

    @property
    def like(self) -> Like | None:
        """What it has in common with questions that take as long; None: with no other."""
        if isinstance(self.what, Question):
            return self.key, self.what.view
        return (self.key, _READ) if isinstance(self.what, Reading) else None


class Pace(IntEnum):
    """How long a question takes; the quick ones are first."""

    QUICK = 0
    UNTRIED = 1
    SLOW = 2


class Asked:
    """A question that waits or is being answered."""

    def __init__(self, inquiry: Inquiry, visitor: Hashable, pace: Pace) -> None:
        loop = asyncio.get_running_loop()
        self.inquiry = inquiry
        self.visitor = visitor
        self.pace = pace
        self.future: asyncio.Future[bytes] = loop.create_future()
        self.worker: WorkerProcess | None = None
        self.is_reading = False
        self.is_repeated = False
        """Whether a process has ended over it before."""
        self.began = 0.0
        self.cpu_began = 0.0
        self.timers: list[asyncio.TimerHandle] = []

    def end(self, outcome: bytes | BaseException) -> None:
        """Answer it, once."""
        self.stop_timers()
        if not self.future.done():
            if isinstance(outcome, bytes):
                self.future.set_result(outcome)
            else:
                self.future.set_exception(outcome)

    def later(self, seconds: float, call: Callable[[Asked], None]) -> None:
        """Call a function with this question later, unless its timers are stopped before."""
        self.timers.append(asyncio.get_running_loop().call_later(seconds, call, self))

    def stop_timers(self) -> None:
        """Cancel all timers."""
        for timer in self.timers:
            timer.cancel()
        self.timers.clear()


class Times:
    """How long questions took last time."""

    def __init__(self, quick_seconds: float) -> None:
        self._quick_seconds = quick_seconds
        self._seconds: dict[Like, float] = {}

    def note(self, like: Like | None, seconds: float) -> None:
        """Remember how long a question took."""
        if like is None:
            return
        self._seconds.pop(like, None)
        self._seconds[like] = seconds
        if len(self._seconds) > _KNOWN_TIMES:
            del self._seconds[next(iter(self._seconds))]

    def note_reading(self, key: str, seconds: float) -> None:
        """Remember how long it took to read a source."""
        self.note((key, _READ), seconds)

    def pace(self, inquiry: Inquiry) -> Pace:
        """Return how long a question is expected to take."""
        seconds = None if inquiry.like is None else self._seconds.get(inquiry.like)
        if seconds is None:
            return Pace.UNTRIED
        if seconds >= self._quick_seconds:
            return Pace.SLOW
        return Pace.QUICK if seconds < self._quick_seconds / 2 else Pace.UNTRIED

    def reading(self, key: str) -> float:
        """Return how long it took to read a source; 0 if that is not known."""
        return self._seconds.get((key, _READ), 0.0)

    def is_long_to_read(self, key: str) -> bool:
        """Whether it is better to wait for a process that has read a source than to read it again."""
        return self.reading(key) >= self._quick_seconds / 4
