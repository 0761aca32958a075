"""One client of the server: reads its request, sends the answer, waits until the client has it.

Nothing here waits. A piece of the answer is made when the server gives the connection its turn, and only while the
client keeps reading.
"""

from __future__ import annotations

import select
import socket
import time
from enum import Enum, auto
from http import HTTPStatus
from typing import TYPE_CHECKING

from podqos.host.api.http_request import Answer, Pieces, Refusal, chunk, head, parse_request, refused

if TYPE_CHECKING:
    from podqos.host.api.http_server import Listener

MOST_FOLLOWERS = 12
_READ_BYTES = 16384
# Beyond this the answer waits until the client has read some of it.
_OUTBOX_BYTES = 256 << 10
_DISCARDED_BYTES = 1 << 20
_PATIENCE_SECONDS = 10.0
_LINGER_SECONDS = 2.0
_PAUSE_SECONDS = 0.1
# epoll tells of these without being asked.
_ONLY_HANGING_UP = 0


class _Stage(Enum):
    READING = auto()
    ANSWERING = auto()
    LINGERING = auto()
    """Everything is sent; the client may still be reading."""


class Connection:
    """One client: reads a request, sends the answer, waits until the client has it."""

    def __init__(self, listener: Listener, accepted: socket.socket) -> None:
        self.follows = False
        self._listener, self._server, self._socket = listener, listener.server, accepted
        self._inbox = bytearray()
        self._outbox = bytearray()
        self._head = b""
        """Of an answer of which no piece is ready: it may still become that of a failure."""
        self._body: Pieces | None = None
        self._stage = _Stage.READING
        self._has_turn = False
        self._has_ended = False
        """Whether the client sends no more."""
        self._discarded = 0
        self._deadline = time.monotonic() + _PATIENCE_SECONDS
        self._events = select.EPOLLIN
        self._server.loop.watch(accepted.fileno(), self._on_ready, self._events)

    # ---- what the socket says ------------------------------------------------------------------------------------

    def _on_ready(self) -> None:
        if self._outbox:
            self._send()
        elif self._stage is _Stage.READING:
            self._receive()
        else:
            self._discard()

    def _receive(self) -> None:
        data = self._read()
        if data is None:
            return
        if not data:
            self.close()
            return
        self._inbox += data
        try:
            parsed = parse_request(bytes(self._inbox), is_local=self._listener.is_local)
        except Refusal as refusal:
            self._begin(refused(refusal))
            return
        if parsed is not None and len(self._inbox) >= parsed[1] + parsed[0].body_bytes:
            self._begin(self._listener.answer(parsed[0]), with_body=parsed[0].method != "HEAD")

    def _discard(self) -> None:
        """Take what comes after the request, and note when there is no more."""
        data = self._read()
        if data is None:
            return
        self._discarded += len(data)
        is_gone = not data and (self._has_ended or self.follows or self._stage is _Stage.LINGERING)
        if is_gone or self._discarded > _DISCARDED_BYTES:
            self.close()
        elif not data:
            self._has_ended = True
            self._await(_ONLY_HANGING_UP)

    def _read(self) -> bytes | None:
        try:
            return self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            self.close()
            return None

    # ---- the answer ----------------------------------------------------------------------------------------------

    def _begin(self, answer: Answer, *, with_body: bool = True) -> None:
        if answer.follows and self._server.followers() >= MOST_FOLLOWERS:
            answer = refused(Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many clients follow something already"))
        self._stage = _Stage.ANSWERING
        self._deadline = time.monotonic() + _PATIENCE_SECONDS
        self.follows = answer.follows
        if with_body and not isinstance(answer.body, bytes):
            self._head, self._body = head(answer, self._server.name), answer.body
        else:
            self._outbox += head(answer, self._server.name)
            if with_body and isinstance(answer.body, bytes):
                self._outbox += answer.body
        self._send()

    def produce(self) -> None:
        """Make the next piece of the answer and send what can be sent."""
        self._has_turn = False
        if self._body is None:
            return
        try:
            piece = next(self._body)
        except StopIteration:
            self._body = None
            self._outbox += self._head + chunk(b"")
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(error)
            return
        else:
            if piece is None:
                self._has_turn = True
                self._server.loop.call_after(_PAUSE_SECONDS, lambda: self._server.produce_later(self))
            if piece is None or piece:
                self._outbox += self._head + (chunk(piece) if piece else b"")
                self._head = b""
        self._send()

    def _fail(self, error: Exception) -> None:
        """Answer with the failure; if something has been said already, break off instead."""
        answer = self._listener.broken(error)
        self._body = None
        if self._head:
            self._begin(answer)
        else:
            self.close()

    def _send(self) -> None:
        if self._outbox:
            try:
                sent = self._socket.send(self._outbox, socket.MSG_NOSIGNAL)
            except BlockingIOError:
                sent = 0
            except OSError:
                self.close()
                return
            if sent:
                del self._outbox[:sent]
                self._deadline = time.monotonic() + _PATIENCE_SECONDS
        if self._body is None and not self._outbox:
            self._linger()
            return
        if self._body is not None and not self._has_turn and len(self._outbox) < _OUTBOX_BYTES:
            self._has_turn = True
            self._server.produce_later(self)
        if self._outbox:
            self._await(select.EPOLLOUT)
        else:
            self._await(_ONLY_HANGING_UP if self._has_ended else select.EPOLLIN)

    def _await(self, events: int) -> None:
        if events != self._events:
            self._events = events
            self._server.loop.unwatch(self._socket.fileno())
            self._server.loop.watch(self._socket.fileno(), self._on_ready, events)

    # ---- the end -------------------------------------------------------------------------------------------------

    def _linger(self) -> None:
        """Say that this was all, and wait for the client to hang up: closing at once could cost it the answer."""
        self._stage = _Stage.LINGERING
        self._deadline = time.monotonic() + _LINGER_SECONDS
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._has_ended = True
        if self._has_ended:
            self.close()
        else:
            self._await(select.EPOLLIN)

    def sweep(self, now: float) -> None:
        """Drop a client that keeps others waiting."""
        if now < self._deadline or (self._stage is _Stage.ANSWERING and not self._outbox):
            return
        if self._stage is _Stage.READING:
            self._begin(refused(Refusal(HTTPStatus.REQUEST_TIMEOUT, "the request took too long")))
        else:
            self.close()

    def close(self) -> None:
        """Hang up."""
        if self._socket.fileno() < 0:
            return
        self._listener.connections.discard(self)
        self._server.loop.unwatch(self._socket.fileno())
        self._socket.close()
        if self._body is not None:
            self._body.close()
            self._body = None
