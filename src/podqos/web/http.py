"""The HTTP server of the webhook and the page: HTTP/1.1 with or without TLS, keep-alive, one write per answer.

httptools (the parser of Node.js) parses, uvloop runs the loop if it is installed; docs/explanation/decisions/0010 has
the measurements. ``Limits`` bounds how long the server waits for a client and how much it buffers: each connection has
at most one deadline, and a periodic sweep closes expired ones. An answer can be a stream, which either side can end.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from http import HTTPStatus
from typing import cast

import httptools
from msgspec import Struct

from podqos.errors import HostError
from podqos.naming import hint, naming
from podqos.web.settings import LIMITS, Limits

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
_PIPELINED = 16
"""Maximum number of pipelined requests; real clients stay well below."""


_ABOUT_TO_ASK_SECONDS = 0.5
_PHRASES = {int(status): status.phrase for status in HTTPStatus}


class Request(Struct, frozen=True):
    """A client's request."""

    method: str
    path: str
    query: str
    content_type: str
    body: bytes
    began: float
    """Arrival of its first byte, in event loop time."""
    headers: Mapping[str, str] = {}
    """The headers that the server keeps, by lower-case name; repeated headers are joined with commas."""


class Response(Struct, frozen=True):
    """The answer to a request."""

    body: bytes
    status: int = 200
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


class EventStream(Struct, frozen=True):
    """An answer sent in parts as they become available; clients that are too slow are disconnected."""

    parts: AsyncGenerator[bytes, None]
    content_type: str
    headers: tuple[tuple[str, str], ...] = ()


Answer = Response | EventStream
Handler = Callable[[Request], Answer | Awaitable[Answer]]


def text_response(status: int, text: str, **headers: str) -> Response:
    """Return a one-line answer."""
    extra = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Response(f"{text}\n".encode(), status, TEXT, extra)


class Counts:
    """Counters of connections."""

    def __init__(self) -> None:
        self.refused: dict[int, int] = {}
        """Refused requests by status."""
        self.timed_out = 0
        """Connections closed because they were too slow."""
        self.pushed_out = 0
        """Idle connections closed to make room for new ones."""


class Server:
    """Listens and passes complete requests to a handler."""

    def __init__(
        self,
        handler: Handler,
        limits: Limits = LIMITS,
        *,
        kept_headers: frozenset[bytes] = frozenset(),
        body_bytes: Callable[[bytes], int] | None = None,
    ) -> None:
        self.handler = handler
        self.limits = limits
        self.kept_headers = kept_headers
        """Headers that the handler reads, in lower case."""
        self.body_bytes = body_bytes
        """Maximum body size for a request target; None: the limit in ``Limits``."""
        self.connections: set[_Connection] = set()
        self.counts = Counts()
        self.buffered_bytes = 0
        self.is_draining = False
        """Whether every answer closes its connection."""
        self._server: asyncio.Server | None = None
        self._sweeping: asyncio.TimerHandle | None = None

    async def start(self, host: str, port: int, context: ssl.SSLContext | None) -> tuple[str, int]:
        """Start listening, with TLS if there is a context, and return the address."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: _Connection(self, loop),
                host,
                port,
                ssl=context,
                backlog=1024,
                ssl_handshake_timeout=None if context is None else self.limits.handshake_seconds,
                ssl_shutdown_timeout=None if context is None else self.limits.linger_seconds,
            )
        except OSError as error:
            # asyncio wraps the system's own reason.
            number = 0 if sys.platform == "win32" else error.errno or 0  # Winsock has numbers of its own
            what = os.strerror(number) if number > 0 else str(error)
            fix = (
                " (choose another address with "
                + naming("listen")
                + hint(", or another port with " + naming("port"))
                + ")"
            )
            raise HostError(f"{host}:{port}: {what}" + fix) from error
        self._sweep(loop)
        address = self._server.sockets[0].getsockname()
        return address[0], address[1]

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for connection in [connection for connection in self.connections if now >= connection.deadline]:
            connection.give_up()
        self._sweeping = loop.call_later(self.limits.sweep_seconds, self._sweep, loop)

    def admit(self, connection: _Connection) -> bool:
        """Accept a new connection; if there are too many, close an idle one for it."""
        self.connections.add(connection)
        if len(self.connections) <= self.limits.connections:
            return True
        idle = [each for each in self.connections if each.is_idle and each is not connection]
        if not idle:
            return False
        self.counts.pushed_out += 1
        min(idle, key=lambda connection: connection.deadline).close()
        return True

    def drain(self) -> None:
        """From now on, close each connection after its next answer."""
        self.is_draining = True

    async def stop(self, seconds: float) -> bool:
        """Accept no more connections, wait for requests in flight, and return whether all were answered."""
        loop = asyncio.get_running_loop()
        if self._server is not None:
            self._server.close()
        began = loop.time()
        # A client that has just connected is about to send a request or is still in the TLS handshake.
        while loop.time() < began + min(_ABOUT_TO_ASK_SECONDS, seconds) or (
            self.connections and loop.time() < began + seconds
        ):
            for connection in list(self.connections):
                connection.end_stream()
                connection.end_idle(loop.time() - _ABOUT_TO_ASK_SECONDS)
            await asyncio.sleep(0.02)
        was_clean = not self.connections
        if self._sweeping is not None:
            self._sweeping.cancel()
        return was_clean


class _Connection(asyncio.Protocol):
    """One client. Requests are answered in order of arrival."""

    __slots__ = (
        "_answering", "_began", "_body", "_body_bytes", "_can_write", "_content_type", "_head_bytes", "_headers",
        "_is_closing", "_is_head_complete", "_keeps", "_loop", "_most_bytes", "_parser", "_server", "_streaming",
        "_transport", "_url", "_waiting", "_wants_body", "deadline", "expects", "is_idle",
    )  # fmt: skip

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[tuple[Request, bool]] = deque()
        self._answering = False
        self._streaming: asyncio.Task[None] | None = None
        self._can_write: asyncio.Event | None = None
        """Set while the client reads its stream."""
        self._wants_body = True
        self._is_closing = False
        self.is_idle = True
        self.deadline = loop.time() + server.limits.idle_seconds
        self._begin()

    def _begin(self) -> None:
        """Wait for a request."""
        self._began = 0.0
        self._head_bytes = 0
        self._is_head_complete = False
        self._url = b""
        self._content_type = ""
        self._headers: dict[str, str] = {}
        self._most_bytes = self._server.limits.body_bytes
        self._body: list[bytes] = []
        self._body_bytes = 0
        self.expects = False

    # ---- the transport -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's class is not a subclass
        if not self._server.admit(self):
            self._refuse(429, "too many connections")

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - which error does not matter
        """Unregister the connection."""
        self._end()
        if self._streaming is not None:
            self._streaming.cancel()
        self._server.connections.discard(self)

    def eof_received(self) -> bool:
        """Close after answering complete requests; incomplete requests and streams end at once."""
        if self._streaming is None and (self._answering or self._waiting):
            self._keeps_no_more()
            return True
        return False

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read its answers."""
        if self._can_write is not None:
            self._can_write.clear()
            self.deadline = self._loop.time() + self._server.limits.receive_seconds
        elif self._transport is not None and not self._is_closing:
            self._transport.pause_reading()
            self.deadline = self._loop.time() + self._server.limits.receive_seconds

    def resume_writing(self) -> None:
        """Resume reading."""
        if self._can_write is not None:
            self._can_write.set()
            self.deadline = float("inf")
        elif self._transport is not None and not self._is_closing and not self._answering:
            self._transport.resume_reading()
            self.deadline = self._loop.time() + self._server.limits.idle_seconds

    def data_received(self, data: bytes) -> None:
        """Parse received data."""
        if self._is_closing or self._streaming is not None:
            return
        if not self._began:
            now = self._loop.time()
            self._began = now
            self.is_idle = False
            self.deadline = now + self._server.limits.receive_seconds
        if not self._is_head_complete:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(400, "protocol upgrades are not supported")
        except httptools.HttpParserError:
            self._refuse(400, "not HTTP/1.1")
        if not self._is_head_complete and self._head_bytes > self._server.limits.head_bytes:
            self._refuse(431, "the headers are too long")

    # ---- the parser --------------------------------------------------------------------------------------------------

    def on_url(self, url: bytes) -> None:
        """Append to the request target, which may arrive in parts."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep the few headers that matter."""
        lower = name.lower()
        if lower == b"content-type":
            self._content_type = value.decode("latin-1")
        elif lower == b"content-length":
            if self._server.body_bytes is not None:
                self._most_bytes = self._server.body_bytes(self._url)
            # The parser accepts numbers of up to twenty digits.
            if value.isdigit() and int(value) > self._most_bytes:
                self._too_large()
        elif lower == b"expect":
            self.expects = value.lower() == b"100-continue"
        elif lower in self._server.kept_headers:
            name_text, text = lower.decode("latin-1"), value.decode("latin-1")
            known = self._headers.get(name_text)
            self._headers[name_text] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        """Send 100 Continue if the client waits for it."""
        self._is_head_complete = True
        if self.expects and not self._is_closing and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Append to the body."""
        if self._is_closing:
            return
        self._body.append(body)
        self._body_bytes += len(body)
        self._server.buffered_bytes += len(body)
        if self._body_bytes > self._most_bytes:
            self._too_large()
        elif self._server.buffered_bytes > self._server.limits.buffered_bytes:
            self._refuse(429, "too many request bytes in flight")

    def on_message_complete(self) -> None:
        """Answer the request, or queue it behind earlier ones."""
        if self._is_closing:
            return
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._server.buffered_bytes -= self._body_bytes
        try:
            url = httptools.parse_url(self._url)
        except httptools.HttpParserInvalidURLError:
            self._refuse(400, "not a valid path")
            return
        request = Request(
            self._parser.get_method().decode("latin-1"),
            (url.path or b"/").decode("latin-1"),
            (url.query or b"").decode("latin-1"),
            self._content_type,
            body,
            self._began,
            self._headers,
        )
        self._waiting.append((request, self._parser.should_keep_alive()))
        self._begin()
        if len(self._waiting) > _PIPELINED:
            self._refuse(429, "too many pipelined requests")
        elif not self._answering:
            self._answer_next()

    # ---- answers -----------------------------------------------------------------------------------------------------

    def _answer_next(self) -> None:
        while self._waiting and not self._is_closing:
            request, keeps = self._waiting.popleft()
            self._keeps = keeps
            self._wants_body = request.method != "HEAD"
            self.deadline = float("inf")
            answer = self._server.handler(request)
            if isinstance(answer, Response):
                self._send(answer)
            elif isinstance(answer, EventStream):
                self._stream(answer)
            else:
                self._answering = True
                if self._transport is not None:
                    self._transport.pause_reading()
                task = asyncio.ensure_future(answer)
                task.add_done_callback(self._answered)
                return

    def _answered(self, task: asyncio.Future[Answer]) -> None:
        self._answering = False
        if self._transport is not None and not self._is_closing:
            self._transport.resume_reading()
        answer = task.result()
        if isinstance(answer, EventStream):
            self._stream(answer)
        else:
            self._send(answer)
        self._answer_next()

    def _stream(self, stream: EventStream) -> None:
        """Send a stream, which is the last answer on its connection."""
        if self._is_closing or self._transport is None:
            return
        self._waiting.clear()
        self.is_idle = False
        self.deadline = float("inf")
        self._transport.write(_head(200, stream.content_type, stream.headers, keeps=False))
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._streaming = asyncio.ensure_future(self._pump(stream.parts, self._can_write, self._transport))

    async def _pump(self, parts: AsyncGenerator[bytes, None], can_write: asyncio.Event, to: asyncio.Transport) -> None:
        with suppress(asyncio.CancelledError):
            async with aclosing(parts):
                async for part in parts:
                    to.write(part)
                    await can_write.wait()
        self.close()

    def end_stream(self) -> None:
        """Cancel the stream, if there is one."""
        if self._streaming is not None:
            self._streaming.cancel()

    def _send(self, response: Response) -> None:
        if self._is_closing or self._transport is None:
            return
        keeps = self._keeps and not self._server.is_draining
        self._transport.write(_encoded(response, keeps=keeps, with_body=self._wants_body))
        if not keeps:
            self.close()
        elif not self._waiting:
            self.is_idle = not self._began
            limits = self._server.limits
            self.deadline = self._loop.time() + (limits.idle_seconds if self.is_idle else limits.receive_seconds)

    def _too_large(self) -> None:
        self._refuse(413, f"the body is larger than {self._most_bytes} bytes")

    def _refuse(self, status: int, why: str) -> None:
        """Answer with an error. The rest of the request is read and discarded, so that the client sees the answer."""
        if self._is_closing:
            return
        refused = self._server.counts.refused
        refused[status] = refused.get(status, 0) + 1
        if self._transport is not None:
            self._transport.write(_encoded(text_response(status, why), keeps=False))
        self._end()

    def give_up(self) -> None:
        """Close an expired connection; a client with a partial request gets an answer first."""
        assert self._transport is not None
        if self._is_closing or self._transport.get_write_buffer_size():
            self._transport.abort()
        elif self.is_idle:
            self.close()
        else:
            self._server.counts.timed_out += 1
            self._transport.write(_encoded(text_response(408, "the request took too long"), keeps=False))
            self.close()

    def _keeps_no_more(self) -> None:
        self._keeps = False
        self._waiting = deque((request, False) for request, _ in self._waiting)

    def end_idle(self, since: float) -> None:
        """Close the connection if it has been idle since then."""
        if self.is_idle and not self._is_closing and self.deadline - self._server.limits.idle_seconds <= since:
            self.close()

    def close(self) -> None:
        """Close after everything is written."""
        self._end()
        if self._transport is not None:
            self._transport.close()

    def _end(self) -> None:
        self._is_closing = True
        self._server.buffered_bytes -= self._body_bytes
        self._body_bytes = 0
        self._waiting.clear()
        self.deadline = self._loop.time() + self._server.limits.linger_seconds


def _encoded(response: Response, *, keeps: bool, with_body: bool = True) -> bytes:
    extra = response.headers
    if response.status != HTTPStatus.NOT_MODIFIED:
        extra = (("content-length", str(len(response.body))), *extra)
    head = _head(response.status, response.content_type, extra, keeps=keeps)
    return head + response.body if with_body else head


def _head(status: int, content_type: str, headers: Iterable[tuple[str, str]], *, keeps: bool) -> bytes:
    extra = "".join(f"{name}: {value}\r\n" for name, value in headers)
    closing = "" if keeps else "connection: close\r\n"
    head = (
        f"HTTP/1.1 {status} {_PHRASES[status]}\r\ncontent-type: {content_type}\r\n"
        f"x-content-type-options: nosniff\r\n{extra}{closing}\r\n"
    )
    return head.encode("latin-1")
