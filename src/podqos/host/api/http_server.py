"""A small HTTP server inside the node's loop that no client can block.

Sockets never block. Requests, connections and send buffers are bounded, and an idle client is dropped. Answers are
produced in pieces, one per turn of the loop, so that the kernel's signals are checked in between; after each piece the
server pauses for as long as it took, so that it never uses more than half a core. A unix socket and a port count their
connections separately: flooding the port does not lock out the socket.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path

from podqos.errors import HostError
from podqos.host.api.http_connection import Endpoint, Handler, SendingTurns, ServerConnection
from podqos.host.api.http_request import HttpRefusal, head
from podqos.host.linux.loop import Loop
from podqos.naming import naming

_BACKLOG = 16
_MOST_CONNECTIONS = 32
_SWEEP_SECONDS = 1.0


class HttpServer:
    """Answers requests on one or more sockets."""

    def __init__(self, loop: Loop, handler: Handler, note: Callable[[str], None], name: str) -> None:
        self._loop, self._handler, self._note, self._name = loop, handler, note, name
        self._turns = SendingTurns(loop)
        self._listeners: list[tuple[socket.socket, Endpoint]] = []
        self._is_sweeping = False

    def listen_unix(self, path: Path) -> None:
        """Listen on a unix socket that only its owner can open."""
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
        self._listen(listener, is_local=True)

    def listen_tcp(self, host: str, port: int) -> int:
        """Listen on a port of this machine; return the port, for when 0 was requested."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            listener.close()
            raise HostError(naming("listen", f"{host}:{port}") + f": {error.strerror}") from error
        self._listen(listener, is_local=False, any_address=not ip_address(host).is_loopback)
        bound: int = listener.getsockname()[1]
        return bound

    def close(self) -> None:
        """Close every connection."""
        for listener, endpoint in self._listeners:
            self._loop.unwatch(listener.fileno())
            listener.close()
            for connection in list(endpoint.connections):
                connection.close()
        self._listeners.clear()

    def _listen(self, listener: socket.socket, *, is_local: bool, any_address: bool = False) -> None:
        endpoint = Endpoint(
            self._turns, self._handler, self._note, self._name, is_local=is_local, any_address=any_address
        )
        self._listeners.append((listener, endpoint))
        listener.listen(_BACKLOG)
        self._watch(listener, endpoint)

    def _watch(self, listener: socket.socket, endpoint: Endpoint) -> None:
        if listener.fileno() >= 0:
            self._loop.watch(listener.fileno(), lambda: self._accept(listener, endpoint))

    def _accept(self, listener: socket.socket, endpoint: Endpoint) -> None:
        try:
            accepted, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:  # no descriptors left: the waiting client would keep waking the loop
            self._note(f"API: {error.strerror}")
            self._loop.unwatch(listener.fileno())
            self._loop.call_after(_SWEEP_SECONDS, lambda: self._watch(listener, endpoint))
            return
        accepted.setblocking(False)
        if not endpoint.make_room(_MOST_CONNECTIONS):
            busy = HttpRefusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections; try again in a moment").answer
            assert isinstance(busy.body, bytes)
            with contextlib.suppress(OSError):
                accepted.send(head(busy, self._name) + busy.body)
            accepted.close()
            return
        endpoint.connections[ServerConnection(endpoint, accepted)] = None
        self._sweep_later()

    def _sweep_later(self) -> None:
        """Check for idle clients while there are connections."""
        if not self._is_sweeping:
            self._is_sweeping = True
            self._loop.call_after(_SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        self._is_sweeping = False
        now = time.monotonic()
        for _, endpoint in self._listeners:
            for connection in list(endpoint.connections):
                connection.sweep(now)
            if endpoint.connections:
                self._sweep_later()
