"""Whose question about the start source is next, and who has lately had how much time.

Answers about it are computed in threads of the server, one after the other: a question that has begun cannot be killed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from typing import TypeVar
from weakref import WeakKeyDictionary

from podqos.web.ui.inquiry import Busy

T = TypeVar("T")

_HALF_LIFE_SECONDS = 10.0
"""After this time, half as much counts of what a visitor has used."""


class Usage:
    """The time that visitors have used lately."""

    def __init__(self) -> None:
        self._seconds: WeakKeyDictionary[Hashable, tuple[float, float]] = WeakKeyDictionary()
        """And as of when."""

    def lately(self, visitor: Hashable) -> float:
        """Return the seconds that a visitor has used; old ones count less."""
        seconds, at = self._seconds.get(visitor, (0.0, 0.0))
        age_seconds = asyncio.get_running_loop().time() - at
        return float(seconds * 0.5 ** (age_seconds / _HALF_LIFE_SECONDS))

    def note(self, visitor: Hashable, seconds: float) -> None:
        """Add to them."""
        self._seconds[visitor] = self.lately(visitor) + seconds, asyncio.get_running_loop().time()


class Turns:
    """Computes one answer at a time; the visitor who has lately used least time is next."""

    def __init__(self, pool: Executor, most_of_one: int, most: int) -> None:
        self._pool = pool
        self._most_of_one = most_of_one
        self._most = most
        self._usage = Usage()
        self._waiting: dict[asyncio.Future[None], Hashable] = {}
        self._is_taken = False

    async def computed(self, visitor: Hashable, lock: asyncio.Lock, work: Callable[[], T]) -> T:
        """Return the result of a computation that holds a lock; raise ``Busy`` if too many wait."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        if sum(each is visitor for each in self._waiting.values()) >= self._most_of_one:
            raise _busy()
        self._waiting[turn] = visitor
        self._go_on()
        if len(self._waiting) > self._most:
            has = Counter(self._waiting.values())
            last = max(self._waiting, key=lambda each: (has[self._waiting[each]], self._used(each)))
            del self._waiting[last]
            if not last.done():
                last.set_exception(_busy())
        try:
            await turn
            await lock.acquire()
        except BaseException:
            if self._waiting.pop(turn, None) is None and not turn.cancelled() and turn.exception() is None:
                self._is_taken = False
                self._go_on()
            raise
        began = loop.time()

        def done(_: object) -> None:
            lock.release()
            self._usage.note(visitor, loop.time() - began)
            self._is_taken = False
            self._go_on()

        running = loop.run_in_executor(self._pool, work)
        running.add_done_callback(done)
        return await asyncio.shield(running)  # it ends on its own if the visitor leaves

    def _used(self, turn: asyncio.Future[None]) -> float:
        return self._usage.lately(self._waiting[turn])

    def _go_on(self) -> None:
        while self._waiting and not self._is_taken:
            turn = min(self._waiting, key=self._used)
            del self._waiting[turn]
            if not turn.done():  # its visitor has not left
                self._is_taken = True
                turn.set_result(None)


def _busy() -> Busy:
    return Busy("too many questions at once", fix="wait for the answers, and ask again")
