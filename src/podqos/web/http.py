"""The HTTP server of the webhook, the page and the exporter: HTTP/1.1 with or without TLS, keep-alive.

httptools (the parser of Node.js) parses, uvloop runs the loop if it is installed; docs/explanation/decisions/0010 has
the measurements. ``Limits`` bounds how long the server waits for a client and how much all clients together make it
hold: each connection has at most one deadline, and a periodic sweep closes expired ones. If there is no room, the least
useful connection makes room (``crowd``). An answer can be a stream, which either side can end.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from typing import cast

from msgspec.structs import replace

from podqos.errors import HostError
from podqos.naming import hint, naming
from podqos.web import event_loop
from podqos.web.connection import Connection
from podqos.web.messages import JSON, TEXT, Answer, EventStream, Handler, Request, Response, text_response
from podqos.web.room import Room

__all__ = ["JSON", "TEXT", "Answer", "EventStream", "Handler", "Request", "Response", "Server", "text_response"]

_ABOUT_TO_ASK_SECONDS = 0.5


class Server(Room):
    """Listens and passes complete requests to a handler."""

    _server: asyncio.Server | None = None
    _sweeping: asyncio.TimerHandle | None = None

    @property
    def connections(self) -> set[Connection]:
        """The open connections."""
        return cast("set[Connection]", self.crowd.all)

    async def start(self, host: str, port: int, context: ssl.SSLContext | None) -> tuple[str, int]:
        """Start listening, with TLS if there is a context, and return the address."""
        loop = asyncio.get_running_loop()
        self.context = context
        # Without descriptors, a connection could not even be accepted to make room for it.
        most = min(self.limits.connections, event_loop.most_connections())
        self.limits = replace(self.limits, connections=most)
        try:
            self._server = await loop.create_server(lambda: Connection(self, loop), host, port, backlog=1024)
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
        self.memory.sweep(len(self.crowd), self.buffered_bytes + self.held.total_bytes)
        self._sweeping = loop.call_later(self.limits.sweep_seconds, self._sweep, loop)

    # ---- the end -----------------------------------------------------------------------------------------------------

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
