"""One client of a server: its requests as they arrive, and their answers in the same order.

Whatever the client makes the server hold is counted: connections from the moment they are accepted, bodies until their
request is answered, and answers until the client has read them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Coroutine
from contextlib import aclosing, suppress
from functools import partial
from typing import cast

import httptools

from podqos.web.channel import Channel, HandshakeFailed
from podqos.web.compression import without_coding
from podqos.web.crowd import Standing, origin_of
from podqos.web.messages import (
    CONTINUE,
    Answer,
    EventStream,
    Request,
    Response,
    encoded_head,
    stream_head,
    text_response,
)
from podqos.web.room import SMALL_BYTES, Room

_PIPELINED = 16
"""Maximum number of requests that wait behind another one; real clients stay well below."""
_FREE_CHUNKS = 1024
_CHUNK_BYTES = 256
"""Bodies in more chunks than the free ones are refused if their chunks are smaller on average: each costs time."""
_RATE_SECONDS = 2.0
_NEVER = float("inf")


class Connection(asyncio.Protocol):
    """One client. Requests are answered in order of arrival."""

    __slots__ = (
        "_answering", "_body", "_can_write", "_chunks", "_content_type", "_expects", "_has_body", "_head_bytes",
        "_headers", "_heard", "_is_closing", "_is_head_complete", "_keeps", "_loop", "_most_bytes", "_parser",
        "_rate", "_raw_bytes", "_server", "_streaming", "_url", "_waiting", "_wants_body", "_window", "began",
        "body_bytes", "channel", "deadline", "origin", "since", "standing",
    )  # fmt: skip

    channel: Channel

    def __init__(self, server: Room, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._parser: httptools.HttpRequestParser | None = None
        self._waiting: list[tuple[Request, bool]] = []
        self._answering: asyncio.Future[Answer] | None = None
        """The handler's task; it is cancelled when the client disconnects."""
        self._streaming: asyncio.Task[None] | None = None
        self._can_write: asyncio.Event | None = None
        """Set while the client reads its stream."""
        self._keeps = self._wants_body = True
        self._is_closing = False
        self.standing: Standing | None = None
        self.origin = ""
        self.since = loop.time()
        """When it connected, or its last answer was sent."""
        self.deadline = _NEVER
        self.body_bytes = 0
        self._begin()

    def _begin(self) -> None:
        """Wait for a request."""
        self.began = 0.0
        self._head_bytes = self._raw_bytes = 0
        self._is_head_complete = False
        self._url = b""
        self._content_type = ""
        self._headers: dict[str, str] | None = None
        self._most_bytes = 0
        self._has_body = self._expects = False
        self._chunks = 0
        self._body: bytes | bytearray = b""
        self.body_bytes = 0
        """Of the incomplete request."""
        self._window = (0.0, 0)
        self._heard = 0.0
        self._rate = _NEVER

    # ---- the transport -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Join the other connections, before anything is spent on this one."""
        to = cast("asyncio.Transport", transport)  # uvloop's class is not a subclass
        server = self._server
        self.channel = Channel(to, server.context, server.held)
        peer = to.get_extra_info("peername")
        self.origin = origin_of(peer[0]) if peer else ""
        limits = server.limits
        self.deadline = self.since + (limits.idle_seconds if self.channel.is_open else limits.handshake_seconds)
        if not server.admit(self):
            self.refuse(429, "too many connections")

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - which error does not matter
        """Leave, and end what is done for this client."""
        self._end()
        self.channel.forget()
        self.end_stream()
        if self._answering is not None:
            self._answering.cancel()
        self._parser = None
        self._server.crowd.remove(self)

    def eof_received(self) -> bool:
        """Close: a closed browser tab looks like this, and nobody waits for its answers."""
        return False

    def pause_writing(self) -> None:
        """Send no more to a client that does not read its answers, and receive nothing from it."""
        self.channel.pause()
        self.deadline = self._loop.time() + self._server.limits.receive_seconds
        if self._can_write is not None:
            self._can_write.clear()
        elif not self._is_closing:
            self.channel.pause_reading()
        if self.standing is not None:
            self._server.crowd.move(self, Standing.STALLED)
            self._server.drop_slow_readers(self)

    def resume_writing(self) -> None:
        """Send more and, if everything is sent, receive again."""
        self.channel.resume()
        if self.channel.is_stalled or self.standing is None:
            return
        if self._can_write is not None:
            self._can_write.set()
            self.deadline = _NEVER
            self._server.crowd.move(self, Standing.BUSY)
        elif self._is_closing:
            self._server.crowd.move(self, Standing.CLOSING)
            self.deadline = self._loop.time() + self._server.limits.linger_seconds
        else:
            self.channel.resume_reading()
            self._rest()
            self._answer_next()

    def data_received(self, data: bytes) -> None:
        """Parse what the client sends."""
        if self._is_closing or self._streaming is not None:
            return
        channel = self.channel
        was_open = channel.is_open
        try:
            parts = channel.received(data)
        except HandshakeFailed:
            self._server.counts.failed_handshakes += 1
            self.close()
            return
        if not was_open:
            self._shake_hands()
        for part in parts:
            self._parse(part)
        if channel.is_over:
            self.close()
        elif self._waiting:
            self._answer_next()
        elif self.began and self.standing is Standing.IDLE:
            self._server.crowd.move(self, Standing.INCOMPLETE)

    def _shake_hands(self) -> None:
        if self.channel.is_open:
            self._server.handshakes.pop(self, None)
            self.deadline = self._loop.time() + self._server.limits.idle_seconds
        elif self.channel.is_shaking_hands:
            self._server.begin_handshake(self)

    def _parse(self, data: bytes) -> None:
        """Parse at most a head's size at a time, so that no more of a head is ever kept."""
        most = self._server.limits.head_bytes
        if len(data) <= most:
            self._feed(data, most)
            return
        for start in range(0, len(data), most):
            self._feed(data[start : start + most], most)

    def _feed(self, data: bytes, most: int) -> None:
        if self._is_closing:
            return
        if self._parser is None:
            self._parser = httptools.HttpRequestParser(self)
        if not self.began:
            self._arrives()
        if not self._is_head_complete:
            self._raw_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.refuse(400, "protocol upgrades are not supported")
        except httptools.HttpParserError:
            self.refuse(400, "not HTTP/1.1")
        if not self._is_head_complete and self._raw_bytes > most:
            self.refuse(431, "the headers are too long")

    def _arrives(self) -> None:
        now = self._loop.time()
        self.began = now
        if self._answering is None:
            self.deadline = now + self._server.limits.receive_seconds

    # ---- the parser --------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Note when a request begins that is not the first in what was received."""
        if not self.began:
            self._arrives()

    def on_url(self, url: bytes) -> None:
        """Append to the request target, which may arrive in parts."""
        self._url += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep the few headers that matter; those after a chunked body only count."""
        self._count_head(len(name) + len(value) + 4)
        if self._is_head_complete or self._is_closing:
            return
        lower = name.lower()
        if lower == b"content-type":
            self._content_type = value.decode("latin-1")
        elif lower == b"content-length":
            # The parser accepts numbers of up to twenty digits.
            self._has_body = value != b"0"
            self._most_bytes = self._server.most_body_bytes(self._url)
            if value.isdigit() and int(value) > self._most_bytes:
                self._too_large()
        elif lower == b"transfer-encoding":
            self._has_body = True
        elif lower == b"expect":
            self._expects = value.lower() == b"100-continue"
        elif lower in self._server.kept_headers:
            headers = self._headers = self._headers or {}
            name_text, text = lower.decode("latin-1"), value.decode("latin-1")
            known = headers.get(name_text)
            headers[name_text] = text if known is None else f"{known}, {text}"

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._server.limits.head_bytes:
            self.refuse(431, "the headers are too long")

    def on_headers_complete(self) -> None:
        """Send 100 Continue if the client waits for it."""
        self._is_head_complete = True
        if self._has_body:
            self._most_bytes = self._server.most_body_bytes(self._url)
            if self._expects and not self._is_closing and self._answering is None and not self._waiting:
                self.channel.write(CONTINUE)

    def on_chunk_header(self) -> None:
        """Refuse a body in tiny chunks."""
        self._chunks += 1
        if self._chunks > _FREE_CHUNKS and self._chunks * _CHUNK_BYTES > self.body_bytes + _FREE_CHUNKS * _CHUNK_BYTES:
            self.refuse(400, "the chunks of the body are too small")

    def on_body(self, body: bytes) -> None:
        """Append to the body."""
        if self._is_closing:
            return
        if not self._body:
            self._body = body
        elif isinstance(self._body, bytearray):
            self._body += body
        else:
            self._body = bytearray(self._body)
            self._body += body
        self._note_rate()
        self.body_bytes += len(body)
        self._server.buffered_bytes += len(body)
        if self.body_bytes > self._most_bytes:
            self._too_large()
        elif self.body_bytes > SMALL_BYTES and (self._waiting or self._answering is not None):
            self.refuse(429, "wait for the answer before you send a large body")
        elif not self._server.has_room(self):
            self.refuse(429, "too many request bytes in flight")

    def _note_rate(self) -> None:
        """Measure how fast the body arrives, over the last seconds: not how fast it began."""
        now = self._heard = self._loop.time()
        began, before = self._window
        if not began:
            self._window = now, 0
        elif now - began >= _RATE_SECONDS:
            self._rate = (self.body_bytes - before) / (now - began)
            self._window = now, self.body_bytes

    def body_rate(self, now: float) -> float:
        """Return the bytes per second at which the body arrives; infinite while that is not known."""
        return 0.0 if now - self._heard >= _RATE_SECONDS else self._rate

    def on_message_complete(self) -> None:
        """Queue the request; it is answered after those before it."""
        if self._is_closing:
            return
        try:
            url = httptools.parse_url(self._url)
        except httptools.HttpParserInvalidURLError:
            self.refuse(400, "not a valid path")
            return
        assert self._parser is not None
        if self._headers and self._server.compression is not None:
            without_coding(self._headers)
        request = Request(
            self._parser.get_method().decode("latin-1"),
            (url.path or b"/").decode("latin-1"),
            (url.query or b"").decode("latin-1"),
            self._content_type,
            bytes(self._body),
            self.began,
            self._headers or {},
        )
        self._waiting.append((request, self._parser.should_keep_alive()))
        self._begin()
        if len(self._waiting) > _PIPELINED:
            self.refuse(429, "too many pipelined requests")

    # ---- answers -----------------------------------------------------------------------------------------------------

    def _answer_next(self) -> None:
        """Answer one request; others of the same client have to wait for a turn of the loop."""
        is_free = self._answering is None and self._streaming is None and not self._is_closing
        if not is_free or not self._waiting or self.channel.is_stalled:
            return
        request, keeps = self._waiting.pop(0)
        self._keeps = keeps
        self._wants_body = request.method != "HEAD"
        self.deadline = _NEVER
        size = len(request.body)
        try:
            given = self._server.handler(request)
            if not isinstance(given, Response | EventStream) and self._server.is_overworked(self):
                _drop(given)
                answer: Answer | Awaitable[Answer] = text_response(503, "too many requests at once", retry_after="1")
            else:
                answer = self._server.compressed(request, given)
        except Exception as error:  # noqa: BLE001 - a bug of ours must not take the server down
            self._server.buffered_bytes -= size
            self._fail(error)
            return
        if isinstance(answer, Response | EventStream):
            self._server.buffered_bytes -= size
            self._deliver(answer)
        else:
            # Reading goes on: only so is it noticed that the client disconnects.
            self._server.crowd.move(self, Standing.BUSY)
            self._answering = asyncio.ensure_future(answer)
            self._answering.add_done_callback(partial(self._answered, size, given))

    def _answered(self, size: int, given: object, task: asyncio.Future[Answer]) -> None:
        self._answering = None
        self._server.buffered_bytes -= size
        if task.cancelled():
            _drop(given)  # it may not have begun
            self.close()
            return
        error = task.exception()
        if error is not None:
            self._fail(error)
        else:
            self._deliver(task.result())

    def _fail(self, error: BaseException) -> None:
        self._loop.call_exception_handler({"message": "a request was not answered", "exception": error})
        self.refuse(500, "podqos failed")

    def _deliver(self, answer: Answer) -> None:
        if self._is_closing:
            return
        if isinstance(answer, EventStream):
            self._stream(answer)
            return
        keeps = self._keeps and not self._server.is_draining
        self.channel.write(encoded_head(answer, keeps=keeps), answer.body if self._wants_body else b"")
        if not keeps:
            self.close()
            return
        if not self.channel.is_stalled:
            self._rest()
        if self._waiting:
            self._loop.call_soon(self._answer_next)

    def _rest(self) -> None:
        """Wait for the next request, or for the rest of it."""
        limits = self._server.limits
        self.since = self._loop.time()
        if self.began:
            self.deadline = self.since + limits.receive_seconds
            self._server.crowd.move(self, Standing.INCOMPLETE)
        else:
            self.deadline = self.since + limits.idle_seconds
            self._server.crowd.move(self, Standing.IDLE)

    def _stream(self, stream: EventStream) -> None:
        """Send a stream, which is the last answer on its connection."""
        self._drop_waiting()
        self.deadline = _NEVER
        self._server.crowd.move(self, Standing.BUSY)
        self._can_write = asyncio.Event()
        self._can_write.set()
        self.channel.write(stream_head(stream))
        self._streaming = asyncio.ensure_future(self._pump(stream.parts, self._can_write))

    async def _pump(self, parts: AsyncGenerator[bytes, None], can_write: asyncio.Event) -> None:
        with suppress(asyncio.CancelledError):
            async with aclosing(parts):
                async for part in parts:
                    self.channel.write(part)
                    await can_write.wait()
        self.close()

    def end_stream(self) -> None:
        """Cancel the stream, if there is one."""
        if self._streaming is not None:
            self._streaming.cancel()

    # ---- the end -----------------------------------------------------------------------------------------------------

    def _too_large(self) -> None:
        self.refuse(413, f"the body is larger than {self._most_bytes} bytes")

    def refuse(self, status: int, why: str) -> None:
        """Answer with an error. The rest of the request is read and discarded, so that the client sees the answer."""
        if self._is_closing:
            return
        refused = self._server.counts.refused
        refused[status] = refused.get(status, 0) + 1
        if not self.channel.is_open:
            self.push_out()
            return
        response = text_response(status, why)
        self.channel.write(encoded_head(response, keeps=False), response.body)
        self._end()

    def give_up(self) -> None:
        """Close an expired connection; a client with a partial request gets an answer first."""
        if self._is_closing or self.channel.is_stalled or not self.channel.is_open:
            self._server.counts.timed_out += not self._is_closing
            self.channel.abort()
        elif not self.began:
            self.close()
        else:
            self._server.counts.timed_out += 1
            response = text_response(408, "the request took too long")
            self.channel.write(encoded_head(response, keeps=False), response.body)
            self.close()

    def end_idle(self, since: float) -> None:
        """Close the connection if it has not begun a request and has been idle since then."""
        if not self.began and self.standing in {Standing.IDLE, Standing.INCOMPLETE} and self.since <= since:
            self.close()

    def holds_alone(self) -> bool:
        """Whether bytes of answers are freed if it is closed."""
        return self.channel.holds_alone()

    def push_out(self) -> None:
        """Close at once to make room; the room is free at once, too."""
        self._end()
        self._server.crowd.remove(self)
        self.channel.abort()

    def close(self) -> None:
        """Close after everything is written."""
        self._end()
        self.channel.close()

    def _end(self) -> None:
        if not self.channel.is_open:
            self._server.handshakes.pop(self, None)
        if not self._is_closing and self.standing is not None:
            is_stalled = self.channel.is_stalled
            limits = self._server.limits
            self._server.crowd.move(self, Standing.STALLED if is_stalled else Standing.CLOSING)
            self.deadline = self._loop.time() + (limits.receive_seconds if is_stalled else limits.linger_seconds)
        self._is_closing = True
        self._server.buffered_bytes -= self.body_bytes
        self.body_bytes = 0
        self._body = b""
        self._drop_waiting()

    def _drop_waiting(self) -> None:
        self._server.buffered_bytes -= sum(len(request.body) for request, _ in self._waiting)
        self._waiting.clear()


def _drop(answer: object) -> None:
    """End what nobody waits for; what has not begun does not begin."""
    if isinstance(answer, Coroutine):
        answer.close()
    elif isinstance(answer, asyncio.Future):
        answer.cancel()
