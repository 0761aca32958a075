"""What many visitors share, and who gives way if it does not suffice: not newcomers who want less than others have."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, TypeVar

from podqos.web.ui.sessions import NoRoom, Visitor

T = TypeVar("T")


class Bodies:
    """The bodies of requests that are read by workers, all together below a limit."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._reading: dict[asyncio.Future[Any], int] = {}

    async def kept(self, size: int, reading: Coroutine[Any, Any, T]) -> T:
        """Return the result of reading a body; the largest one gives way to smaller ones."""
        task = asyncio.ensure_future(reading)
        self._reading[task] = size
        while len(self._reading) > 1 and sum(self._reading.values()) > self._most_bytes:
            largest = max(reversed(self._reading), key=lambda each: self._reading[each])
            del self._reading[largest]
            largest.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            if task in self._reading:  # the visitor has left
                raise
            raise NoRoom("others are uploading large files", fix="try again in a minute") from None
        finally:
            self._reading.pop(task, None)
            task.cancel()


class Streams:
    """The open streams of all visitors, at most a number of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[asyncio.Task[Any], Visitor] = {}

    async def counted(self, visitor: Visitor, parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """Yield a visitor's stream; the visitor stays active meanwhile. The oldest one of who has most gives way."""
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = visitor
        visitor.streams += 1
        if len(self._open) > self._most:
            has = Counter(self._open.values())
            giving = max(self._open, key=lambda each: has[self._open[each]])
            del self._open[giving]
            giving.cancel()
        try:
            async for part in parts:
                yield part
        finally:
            self._open.pop(task, None)
            visitor.streams -= 1
            visitor.seen_at = asyncio.get_running_loop().time()
            await parts.aclose()
