"""What a server does for its clients, what it holds for them, and who gives way when there is no room."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable

from podqos.web.compression import HEADERS, Compression
from podqos.web.crowd import Crowd, Member, Standing
from podqos.web.freed_memory import FreedMemory
from podqos.web.holding import Held
from podqos.web.messages import Answer, EventStream, Handler, Request, Response
from podqos.web.settings import LIMITS, Limits

SMALL_BYTES = 64 << 10
"""A body up to this size may wait behind another request, and arrive while others fill the buffers."""
_SLOW_BYTES_PER_SECOND = 256 << 10
"""A body that arrives more slowly gives way to others if the buffers are full."""


class Counts:
    """Counters of connections."""

    def __init__(self) -> None:
        self.refused: dict[int, int] = {}
        """Refused requests by status."""
        self.timed_out = 0
        """Connections closed because they were too slow."""
        self.pushed_out = 0
        """Connections closed to make room for new ones."""
        self.failed_handshakes = 0


class Room:
    """The handler of a server, and everything that its clients share."""

    def __init__(
        self,
        handler: Handler,
        limits: Limits = LIMITS,
        *,
        kept_headers: frozenset[bytes] = frozenset(),
        body_bytes: Callable[[bytes], int] | None = None,
        compresses: bool = False,
    ) -> None:
        self.handler = handler
        self.limits = limits
        self.compression = Compression() if compresses else None
        self.kept_headers = kept_headers | HEADERS if compresses else kept_headers
        """Headers that the handler reads, in lower case."""
        self.body_bytes = body_bytes
        """Maximum body size for a request target; None: the limit in ``Limits``."""
        self.crowd = Crowd()
        self.handshakes: dict[Member, None] = {}
        """Connections in their TLS handshake, which needs most memory; the oldest first."""
        self.counts = Counts()
        self.context: ssl.SSLContext | None = None
        self.buffered_bytes = 0
        """Bodies that are arriving, waiting or being processed."""
        self.held = Held()
        """Answers that are being sent."""
        self.memory = FreedMemory()
        self.is_draining = False
        """Whether every answer closes its connection."""

    def compressed(self, request: Request, answer: Answer | Awaitable[Answer]) -> Answer | Awaitable[Answer]:
        """Return the handler's answer, compressed if the server does and the client accepts it."""
        if self.compression is None or isinstance(answer, EventStream):
            return answer
        if isinstance(answer, Response):
            return self.compression.applied(request, answer)
        return self._compressed_later(self.compression, request, answer)

    @staticmethod
    async def _compressed_later(compression: Compression, request: Request, answering: Awaitable[Answer]) -> Answer:
        answer = await answering
        if isinstance(answer, EventStream):
            return answer
        applied = compression.applied(request, answer)
        return applied if isinstance(applied, Response) else await applied

    def admit(self, connection: Member) -> bool:
        """Accept a new connection; if there are too many, close the least useful one for it."""
        self.crowd.move(connection, Standing.INCOMPLETE)
        if len(self.crowd) <= self.limits.connections:
            return True
        victim = self.crowd.least_useful(connection, self.limits.connections)
        if victim is None:
            return False
        self.counts.pushed_out += 1
        victim.push_out()
        return True

    def begin_handshake(self, connection: Member) -> None:
        """Note that a TLS handshake has begun; if there are too many, close the oldest one."""
        self.handshakes[connection] = None
        if len(self.handshakes) > self.limits.handshakes:
            self.counts.pushed_out += 1
            next(iter(self.handshakes)).push_out()

    def is_overworked(self, connection: Member) -> bool:
        """Whether too many requests are being answered to begin another one of this client."""
        return self.crowd.is_overworked(connection, self.limits.connections)

    def most_body_bytes(self, target: bytes) -> int:
        """Return the maximum size of a request's body."""
        return self.limits.body_bytes if self.body_bytes is None else self.body_bytes(target)

    def has_room(self, connection: Member) -> bool:
        """Whether a body may go on arriving. Slow ones make room; small ones have room of their own."""
        most = self.limits.buffered_bytes
        if connection.body_bytes > SMALL_BYTES:
            most -= most // 8
        while self.buffered_bytes > most:
            slowest = self._slowest_body(connection)
            if slowest is None:
                return False
            slowest.refuse(408, "the request arrived too slowly while the server was busy")
        return True

    def _slowest_body(self, asking: Member) -> Member | None:
        now = asyncio.get_running_loop().time()
        slow: list[tuple[float, int, Member]] = []
        for connection in self.crowd.those(Standing.INCOMPLETE):
            if connection is not asking and connection.body_bytes:
                rate = connection.body_rate(now)
                if rate < _SLOW_BYTES_PER_SECOND:
                    slow.append((rate, id(connection), connection))
        return min(slow)[2] if slow else None

    def drop_slow_readers(self, reader: Member) -> None:
        """Close those that read slowest, other than this one, while too many bytes of answers wait."""
        if self.held.total_bytes <= self.limits.unsent_bytes:
            return
        for connection in list(self.crowd.those(Standing.STALLED)):
            if connection is not reader and connection.holds_alone():
                self.counts.pushed_out += 1
                connection.push_out()
                if self.held.total_bytes <= self.limits.unsent_bytes:
                    return
