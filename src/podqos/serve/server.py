"""What page, webhook and exporter have in common: uvicorn with our TLS and our end, bounded bodies, and who may ask.

A person starts these servers on a laptop, a team behind a token, a cluster behind a Service. What can still happen is
stopped here: a body that is too large or never ends, a browser that another page makes ask (rebinding, cross-site
requests). Before the internet, put a proxy in front.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

import uvicorn
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podqos.errors import HostError
from podqos.naming import hint, naming

Result = TypeVar("Result")

KEEP_ALIVE_SECONDS = 150
"""Between two requests of a connection; an API server closes its own connections after 90 seconds."""
BODY_SECONDS = 30.0
"""For a body to arrive."""
_LINGER_SECONDS = 2.0
_SWITCH_SECONDS = 0.0002
"""A thread that computes gives way after this time, so that the event loop answers others; Python's default is 5 ms."""


class Server:
    """A server that listens from its creation. Raises HostError if it cannot."""

    def __init__(
        self, app: ASGIApp, host: str, port: int, context: ssl.SSLContext | None = None, *, last_seconds: float = 1.0
    ) -> None:
        """``last_seconds`` is how long requests in flight may take once it stops."""
        self._socket = _listening(host, port)
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                log_config=None,
                log_level="critical",  # what a visitor has to know is in the answer
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="none",
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=max(1, round(last_seconds)),
                ssl_context_factory=None if context is None else lambda _config, _default: context,
            )
        )
        self._server.config.load()

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        address = self._socket.getsockname()
        return address[0], address[1]

    async def serve(self) -> None:
        """Serve until it is told to stop."""
        await self._server.serve([self._socket])

    def stop(self) -> None:
        """Accept nothing more, answer what is in flight, and end."""
        self._server.should_exit = True


class _Uvicorn(uvicorn.Server):
    """Signals are for whoever started it: a webhook answers for a while after the first one."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        # The system's own reason; Winsock has numbers of its own, and names that cannot be resolved negative ones.
        number = 0 if sys.platform == "win32" else getattr(error, "errno", 0) or 0
        what = os.strerror(number) if number > 0 else str(error)
        fix = "choose another address with " + naming("listen") + hint(", or another port with " + naming("port"))
        raise HostError(f"{host}:{port}: {what} (" + fix + ")") from error


class BackgroundServer:
    """Serves from a thread of its own until it is closed, for a command whose main thread does something else."""

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        self._server = Server(app, host, port)
        self.address = self._server.address
        self._thread = threading.Thread(target=lambda: run(self._server.serve()), name="server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.stop()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run until it is done, on uvloop if it is installed, and return what it returns."""
    with suppress(ImportError):  # Windows has no such limit
        from podqos.host.linux.descriptors import raise_limit

        raise_limit()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    result: Result = uvloop.run(main)
    return result


def on_request_to_stop(stop: Callable[[], object]) -> None:
    """Call a function in the running loop on Ctrl-C and SIGTERM."""
    loop = asyncio.get_running_loop()

    def received(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)

    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # on Windows
            signal.signal(number, received)


def text(status: int, what: str, **headers: str) -> Response:
    """Return a one-line answer."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return PlainTextResponse(f"{what}\n", status, {"x-content-type-options": "nosniff", **named})


# ---- middleware ------------------------------------------------------------------------------------------------------


class Bodies:
    """Takes the whole body of a request before the application sees it, bounded in size and time."""

    def __init__(
        self,
        app: ASGIApp,
        most: Callable[[str], int],
        *,
        in_all: int,
        refuse: Callable[[int, str], Response] = text,
        seconds: float = BODY_SECONDS,
    ) -> None:
        """``most`` bytes by path; ``in_all`` of those that are being read or answered at a time."""
        self._app, self._most, self._in_all, self._refuse, self._seconds = app, most, in_all, refuse, seconds
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        body, most = bytearray(), self._most(scope["path"])
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        status, what = (413, "") if not length.isdigit() or int(length) > most else (0, "")
        try:
            async with asyncio.timeout(self._seconds):
                more = not status
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    part = message.get("body", b"")
                    self._held += len(part)
                    body += part
                    if len(body) > most:
                        status = 413
                    elif self._held > self._in_all:
                        status, what = 503, "too much is being sent at once: try again later"
                    more = not status and message.get("more_body", False)
            if status:
                await _discarded(receive)
                return await self._closing(status, what or f"more than {_size(most)} at once", scope, receive, send)
            await self._app(scope, _once(bytes(body), receive), send)
        except TimeoutError:
            await self._closing(408, f"the request did not arrive within {self._seconds:g} s", scope, receive, send)
        finally:
            self._held -= len(body)

    async def _closing(self, status: int, what: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, and end the connection: its client may go on sending what nobody reads."""
        answer = self._refuse(status, what)
        answer.headers["connection"] = "close"
        await answer(scope, receive, send)


def _size(most: int) -> str:
    return f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"


async def _discarded(receive: Receive) -> None:
    """Read what a client is still sending for a moment: it would not read its answer before."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_SECONDS):
            while (await receive()).get("more_body", False):
                pass


def _once(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read, and then waits for the end of the connection."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def given() -> Message:
        return left.pop() if left else await receive()

    return given
