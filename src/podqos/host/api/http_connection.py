"""One client of the server: reads its request, sends the answer, waits until the client has it.

Nothing here blocks. A piece of the answer is produced when it is the connection's turn, and only while the client keeps
reading.
"""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from http import HTTPStatus

from podqos.host.api.http_request import HttpRefusal, HttpResponse, KubeletRequest, Pieces, chunk, head, parse_request
from podqos.host.linux.loop import Loop
from podqos.request_origin import host_name, is_from_elsewhere, is_loopback, is_own_name

Handler = Callable[[KubeletRequest], HttpResponse]
MOST_FOLLOWERS = 12
_READ_BYTES = 16384
# Beyond this, no more of the answer is produced until the client has read some of it.
_OUTBOX_BYTES = 256 << 10
_DISCARDED_BYTES = 1 << 20
_PATIENCE_SECONDS = 10.0
_LINGER_SECONDS = 2.0
_STALLED_SECONDS = 2.0
_PAUSE_SECONDS = 0.1
# epoll always reports hang-ups.
_ONLY_HANGING_UP = 0


class _Stage(Enum):
    READING = auto()
    ANSWERING = auto()
    LINGERING = auto()
    """Everything is sent; the client may still be reading."""


class SendingTurns:
    """Takes turns: one piece of one answer at a time, followed by a pause of the same length."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.followers = 0
        """How many clients are following."""
        self._ready: deque[ServerConnection] = deque()
        self._is_scheduled = False

    def later(self, connection: ServerConnection) -> None:
        """Queue a connection for its turn."""
        self._ready.append(connection)
        self._schedule(0.0)

    def _schedule(self, seconds: float) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self.loop.call_after(seconds, self._produce)

    def _produce(self) -> None:
        began = time.monotonic()
        if self._ready:
            self._ready.popleft().produce()
        self._is_scheduled = False
        if self._ready:
            self._schedule(time.monotonic() - began)


class Endpoint:
    """One socket of the server: its connections, and how their requests are answered."""

    def __init__(
        self,
        turns: SendingTurns,
        handler: Handler,
        note: Callable[[str], None],
        name: str,
        *,
        is_local: bool,
        any_address: bool = False,
    ) -> None:
        self.turns, self.name, self.is_local = turns, name, is_local
        self.connections: dict[ServerConnection, None] = {}
        """The oldest first."""
        self._handler, self._note, self._any_address = handler, note, any_address
        self._names = frozenset({"localhost", *_own_names()}) if any_address else frozenset({"localhost"})

    def _refused(self, request: KubeletRequest) -> str:
        """Return why a request to the port is refused; empty: it is not."""
        if is_from_elsewhere(request.host, request.origin, request.site, is_read=True):
            return "requests from other sites are not allowed"
        if not request.host or (is_own_name(request.host, self._names) and self._is_reachable(request.host)):
            return ""
        return "the Host header must name this machine, by its name or address"

    def _is_reachable(self, host: str) -> bool:
        """Whether a client can have reached the port by this name: that of a loopback address, by loopback ones."""
        return self._any_address or is_loopback(host_name(host) or "")

    def answer(self, request: KubeletRequest) -> HttpResponse:
        """Return the answer to a request, even if the handler fails."""
        if not self.is_local:
            refusal = self._refused(request)
            if refusal:
                return HttpRefusal(HTTPStatus.FORBIDDEN, refusal).answer
        try:
            return self._handler(request)
        except HttpRefusal as refusal:
            return refusal.answer
        except Exception as error:  # noqa: BLE001 - the node outlives whatever is wrong with an answer
            return self.broken(error)

    def make_room(self, most: int) -> bool:
        """Close the least useful connection if there are too many; whether there is room for a new one."""
        if len(self.connections) < most:
            return True
        least = max(self.connections, key=lambda connection: connection.uselessness)
        if not least.uselessness:
            return False
        least.close()
        return True

    def broken(self, error: Exception) -> HttpResponse:
        """Return the answer for a failed handler."""
        self._note(f"API: {type(error).__name__}: {error}")
        return HttpRefusal(HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(error).__name__}: {error}").answer


class ServerConnection:
    """One client: reads a request, sends the answer, waits until the client has it."""

    def __init__(self, endpoint: Endpoint, accepted: socket.socket) -> None:
        self._endpoint, self._turns, self._socket = endpoint, endpoint.turns, accepted
        self._follows = False
        self._inbox = bytearray()
        self._outbox = bytearray()
        self._head = b""
        """The head of an answer without a piece yet: it may still be replaced by that of an error."""
        self._body: Pieces | None = None
        self._stage = _Stage.READING
        self._has_turn = False
        self._has_ended = False
        """Whether the client has stopped sending."""
        self._discarded = 0
        self._deadline = time.monotonic() + _PATIENCE_SECONDS
        self._events = select.EPOLLIN
        self._turns.loop.watch(accepted.fileno(), self._on_ready, self._events)

    @property
    def uselessness(self) -> int:
        """How little is lost if it is closed for another one; 0: too much."""
        if self._stage is _Stage.LINGERING:
            return 3
        if self._stage is _Stage.READING:
            return 2
        stalled = time.monotonic() - (self._deadline - _PATIENCE_SECONDS)
        return int(bool(self._outbox) and stalled > _STALLED_SECONDS)

    # ---- reading -------------------------------------------------------------------------------------------------

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
            parsed = parse_request(bytes(self._inbox))
        except HttpRefusal as refusal:
            self._begin(refusal.answer)
            return
        if parsed is not None and len(self._inbox) >= parsed[1] + parsed[0].body_bytes:
            self._begin(self._endpoint.answer(parsed[0]), with_body=parsed[0].method != "HEAD")

    def _discard(self) -> None:
        """Discard data after the request, and detect its end."""
        data = self._read()
        if data is None:
            return
        self._discarded += len(data)
        is_gone = not data and (self._has_ended or self._follows or self._stage is _Stage.LINGERING)
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

    def _begin(self, answer: HttpResponse, *, with_body: bool = True) -> None:
        if answer.follows and self._turns.followers >= MOST_FOLLOWERS:
            answer = HttpRefusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many clients are following already").answer
        self._stage = _Stage.ANSWERING
        self._deadline = time.monotonic() + _PATIENCE_SECONDS
        self._turns.followers += answer.follows - self._follows
        self._follows = answer.follows
        if with_body and not isinstance(answer.body, bytes):
            self._head, self._body = head(answer, self._endpoint.name), answer.body
        else:
            self._outbox += head(answer, self._endpoint.name)
            if with_body and isinstance(answer.body, bytes):
                self._outbox += answer.body
        self._send()

    def produce(self) -> None:
        """Produce the next piece of the answer and send what the socket takes."""
        self._has_turn = False
        if self._body is None:
            return
        try:
            piece = next(self._body)
        except StopIteration:
            self._body = None
            self._outbox += self._head + chunk(b"")
        except Exception as error:  # noqa: BLE001 - as in Endpoint.answer
            self._fail(error)
            return
        else:
            if piece is None:
                self._has_turn = True
                self._turns.loop.call_after(_PAUSE_SECONDS, lambda: self._turns.later(self))
            if piece is None or piece:
                self._outbox += self._head + (chunk(piece) if piece else b"")
                self._head = b""
        self._send()

    def _fail(self, error: Exception) -> None:
        """Answer with the error; if part of the answer is sent already, close the connection."""
        answer = self._endpoint.broken(error)
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
            self._turns.later(self)
        if self._outbox:
            self._await(select.EPOLLOUT)
        else:
            self._await(_ONLY_HANGING_UP if self._has_ended else select.EPOLLIN)

    def _await(self, events: int) -> None:
        if events != self._events:
            self._events = events
            self._turns.loop.unwatch(self._socket.fileno())
            self._turns.loop.watch(self._socket.fileno(), self._on_ready, events)

    # ---- the end -------------------------------------------------------------------------------------------------

    def _linger(self) -> None:
        """Shut down sending and wait for the client to close: closing at once could lose the answer."""
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
        """Drop a client that is too slow."""
        if now < self._deadline or (self._stage is _Stage.ANSWERING and not self._outbox):
            return
        if self._stage is _Stage.READING:
            self._begin(HttpRefusal(HTTPStatus.REQUEST_TIMEOUT, "the request took too long").answer)
        else:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._socket.fileno() < 0:
            return
        self._endpoint.connections.pop(self, None)
        self._turns.followers -= self._follows
        self._turns.loop.unwatch(self._socket.fileno())
        self._socket.close()
        if self._body is not None:
            self._body.close()
            self._body = None


def _own_names() -> set[str]:
    """Return what this machine is called, with and without its domain."""
    name = socket.gethostname().lower()
    return {name, name.partition(".")[0]}
