"""A small HTTP server inside the node's loop, which nobody outside can hold up.

Sockets never block. Requests, connections and what waits to be sent are bounded, and a client that does neither read
nor write is dropped. Answers are made in pieces, one piece in a turn of the loop, so that the kernel's signals are
looked at in between; and after each piece the server rests for as long as it took, so that it never has more than half
of a core. A unix socket and a port count their connections apart: who floods the port does not lock out the socket.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path

from podqos.errors import HostError
from podqos.host.api.http_connection import Connection
from podqos.host.api.http_request import Answer, Refusal, Request, head, refused
from podqos.host.linux.loop import Loop

Handler = Callable[[Request], Answer]

_BACKLOG = 16
_MOST_CONNECTIONS = 32
_SWEEP_SECONDS = 1.0


class HttpServer:
    """Answers requests on one or several sockets."""

    def __init__(self, loop: Loop, handler: Handler, note: Callable[[str], None], name: str) -> None:
        self.loop = loop
        self.name = name
        self.handler = handler
        self.note = note
        self._listeners: list[Listener] = []
        self._ready: deque[Connection] = deque()
        self._is_scheduled = False
        self._is_sweeping = False

    def listen_unix(self, path: Path) -> None:
        """Be reachable by a socket in the filesystem, for its owner alone."""
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        before = os.umask(0o177)
        try:
            listener.bind(str(path))
        except OSError:
            listener.close()
            raise
        finally:
            os.umask(before)
        self._listeners.append(Listener(self, listener, is_local=True))

    def listen_tcp(self, host: str, port: int) -> int:
        """Be reachable by a port of this machine; return which, where 0 was asked for."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            listener.close()
            raise HostError(f"--listen {host}:{port}: {error.strerror}") from error
        self._listeners.append(Listener(self, listener, is_local=False, any_host=not ip_address(host).is_loopback))
        bound: int = listener.getsockname()[1]
        return bound

    def close(self) -> None:
        """Hang up."""
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        self._ready.clear()

    def followers(self) -> int:
        """Return how many answers go on for as long as somebody listens."""
        return sum(each.follows for listener in self._listeners for each in listener.connections)

    def produce_later(self, connection: Connection) -> None:
        """Let a connection have its turn."""
        self._ready.append(connection)
        self._schedule(0.0)

    def sweep_later(self) -> None:
        """Look after clients that do nothing, while there are any."""
        if not self._is_sweeping:
            self._is_sweeping = True
            self.loop.call_after(_SWEEP_SECONDS, self._sweep)

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

    def _sweep(self) -> None:
        self._is_sweeping = False
        now = time.monotonic()
        for listener in self._listeners:
            for connection in list(listener.connections):
                connection.sweep(now)
            if listener.connections:
                self.sweep_later()


class Listener:
    """One socket that takes connections."""

    def __init__(self, server: HttpServer, listener: socket.socket, *, is_local: bool, any_host: bool = False) -> None:
        self.server = server
        self.is_local = is_local
        self.any_host = any_host
        self.connections: set[Connection] = set()
        self._socket = listener
        listener.listen(_BACKLOG)
        self._listen()

    def _listen(self) -> None:
        if self._socket.fileno() >= 0:
            self.server.loop.watch(self._socket.fileno(), self._accept)

    def _accept(self) -> None:
        try:
            accepted, _ = self._socket.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:  # no descriptors left: the waiting client would wake the loop again and again
            self.server.note(f"API: {error.strerror}")
            self.server.loop.unwatch(self._socket.fileno())
            self.server.loop.call_after(_SWEEP_SECONDS, self._listen)
            return
        accepted.setblocking(False)
        if len(self.connections) >= _MOST_CONNECTIONS:
            busy = refused(Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections; try again in a moment"))
            assert isinstance(busy.body, bytes)
            with contextlib.suppress(OSError):
                accepted.send(head(busy, self.server.name) + busy.body)
            accepted.close()
            return
        self.connections.add(Connection(self, accepted))
        self.server.sweep_later()

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request, whatever happens on the way."""
        if not self.is_local and not self.any_host and not _names_this_machine(request.host):
            return refused(Refusal(HTTPStatus.FORBIDDEN, "ask for this machine by its own name"))
        try:
            return self.server.handler(request)
        except Refusal as refusal:
            return refused(refusal)
        except Exception as error:  # noqa: BLE001 - the node outlives whatever is wrong with an answer
            return self.broken(error)

    def broken(self, error: Exception) -> Answer:
        """Return the answer where making one failed."""
        self.server.note(f"API: {type(error).__name__}: {error}")
        return refused(Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(error).__name__}: {error}"))

    def close(self) -> None:
        """Hang up on everybody."""
        self.server.loop.unwatch(self._socket.fileno())
        self._socket.close()
        for connection in list(self.connections):
            connection.close()


def _names_this_machine(host: str) -> bool:
    """Whether a request means this machine: a page in a browser whose name was pointed here does not."""
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name in {"", "localhost"}:
        return True
    try:
        return ip_address(name.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False
