"""The paths of the exporter: ``/metrics``, ``/healthz`` and ``/readyz``.

Metrics are computed in a thread, once for all scrapes that arrive meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from podqos.errors import PodqosError
from podqos.exposition import CONTENT_TYPE
from podqos.request_origin import is_loopback, is_own_name
from podqos.web.background import BackgroundServer
from podqos.web.exporter import Exporter
from podqos.web.http import Request, Response, Server, text_response
from podqos.web.settings import HEALTH_PATH, METRICS_PATH, READY_PATH, Limits

EXPORTER_LIMITS = Limits(
    body_bytes=4 << 10,
    head_bytes=16 << 10,
    buffered_bytes=1 << 20,
    unsent_bytes=32 << 20,
    connections=256,
)
_LOCAL_NAMES = frozenset({"localhost"})


def serve(
    exporter: Exporter, host: str, port: int, *, limits: Limits = EXPORTER_LIMITS, say: Callable[[str], object] = print
) -> BackgroundServer:
    """Return a server of ``/metrics``, ``/healthz`` and ``/readyz``, which is already listening."""
    endpoint = ExporterEndpoint(exporter, say, is_local=is_loopback(host))
    return BackgroundServer(
        Server(endpoint.handle, limits, kept_headers=frozenset({b"host"}), compresses=True), host, port
    )


class ExporterEndpoint:
    """Answers scrapes and probes."""

    def __init__(self, exporter: Exporter, say: Callable[[str], object], *, is_local: bool) -> None:
        self._exporter = exporter
        self._say = say
        self._is_local = is_local
        """Whether only this machine can reach it: requests then have to name it, unlike a page's after rebinding."""
        self._pool = ThreadPoolExecutor(1, "metrics")
        self._computing: asyncio.Future[bytes] | None = None

    def handle(self, request: Request) -> Response | Awaitable[Response]:
        """Answer a request."""
        host = request.headers.get("host", "")
        if self._is_local and host and not is_own_name(host, _LOCAL_NAMES):
            return text_response(421, "the Host header must name this machine")
        if request.method not in {"GET", "HEAD"}:
            return text_response(405, "only GET and HEAD are supported here", allow="GET, HEAD")
        exporter = self._exporter
        match request.path:
            case path if path == METRICS_PATH and exporter.is_ready:
                return self._metrics()
            case path if path in {METRICS_PATH, READY_PATH} and not exporter.is_ready:
                return text_response(503, exporter.unready().removesuffix("\n"))
            case path if path == HEALTH_PATH and exporter.mirror.fatal is not None:
                return text_response(500, str(exporter.mirror.fatal))
            case path if path in {HEALTH_PATH, READY_PATH}:
                return text_response(200, "ok")
            case "/":
                return Response(b'<a href="/metrics">/metrics</a>\n', 200, "text/html; charset=utf-8")
        return text_response(404, f"no such path: only {METRICS_PATH}, {HEALTH_PATH} and {READY_PATH} exist")

    async def _metrics(self) -> Response:
        if self._computing is None:
            loop = asyncio.get_running_loop()
            self._computing = loop.run_in_executor(self._pool, lambda: self._exporter.metrics().encode())
            self._computing.add_done_callback(self._computed)
        try:
            return Response(await asyncio.shield(self._computing), 200, CONTENT_TYPE)
        except PodqosError as error:
            return text_response(500, str(error))
        except Exception as error:  # noqa: BLE001 - a bug of ours must not take the exporter down
            self._say(f"{METRICS_PATH}: {type(error).__name__}: {str(error)[:500]}")
            return text_response(500, f"podqos failed: {type(error).__name__}")

    def _computed(self, done: asyncio.Future[bytes]) -> None:
        self._computing = None
        if not done.cancelled():
            done.exception()  # it is told to those who asked
