"""``podqos exporter``: a cluster's metrics for Prometheus, computed from a mirror of the cluster."""

from __future__ import annotations

import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from podqos.answers.overview import Overview
from podqos.errors import ClusterError, HostError, InputError
from podqos.exposition import CONTENT_TYPE
from podqos.library.overview import overview
from podqos.reading.mirror import Mirror
from podqos.report.cluster.metrics import gauge, overview_metrics

_WINDOW_SECONDS = 900.0
"""Growth is measured over this time."""
_LEAST_SECONDS = 60.0
_REQUEST_SECONDS = 10.0


class Exporter:
    """Recomputes the metrics at most once per interval, and only when they are scraped."""

    def __init__(self, mirror: Mirror, *, every_seconds: float = 30.0) -> None:
        self.mirror = mirror
        self._every_seconds = every_seconds
        self._lock = threading.Lock()
        self._text = ""
        self._made_at: float | None = None
        self._growth = HeadroomGrowth()

    def metrics(self) -> str:
        """Return the metrics, recomputed if they are older than the interval."""
        with self._lock:
            now = time.monotonic()
            if self._made_at is None or now - self._made_at >= self._every_seconds:
                began = time.perf_counter()
                whole = overview(self.mirror.snapshot())
                pressure = self._growth.pressure_seconds(whole, now)
                self._text = overview_metrics(whole, pressure)
                self._text += _lines(
                    "computation_seconds", "Time taken to compute the metrics.", time.perf_counter() - began
                )
                self._made_at = now
            about = "Number of interrupted watches; data of those resources may be stale."
            return self._text + _lines("watches_interrupted", about, self.mirror.interrupted)


def _lines(name: str, about: str, value: float) -> str:
    return "".join(f"{line}\n" for line in gauge(f"podqos_exporter_{name}", about, [({}, value)]))


class HeadroomGrowth:
    """Estimates when nodes run out of memory from the history of their headroom."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[float, int]]] = {}

    def pressure_seconds(self, whole: Overview, now: float) -> dict[str, float]:
        """Return the seconds until each node evicts if memory keeps growing; nodes where it does not are left out."""
        found: dict[str, float] = {}
        kept: dict[str, deque[tuple[float, int]]] = {}
        for node in whole.nodes:
            if node.headroom_bytes is None or not node.is_measured:
                continue
            seen = kept[node.name] = self._seen.get(node.name, deque())
            seen.append((now, node.headroom_bytes))
            while seen[0][0] < now - _WINDOW_SECONDS:
                seen.popleft()
            first_at, first = seen[0]
            if node.headroom_bytes <= 0:
                found[node.name] = 0.0
            elif now - first_at >= _LEAST_SECONDS and first > node.headroom_bytes:
                found[node.name] = node.headroom_bytes * (now - first_at) / (first - node.headroom_bytes)
        self._seen = kept
        return found


def serve(exporter: Exporter, host: str, port: int) -> ThreadingHTTPServer:
    """Return a listening server of ``/metrics``, ``/healthz`` and ``/readyz``; ``serve_forever`` runs it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = _REQUEST_SECONDS
        server_version = "podqos"
        sys_version = ""

        def do_GET(self) -> None:
            match self.path.partition("?")[0]:
                case "/metrics" if exporter.mirror.is_complete:
                    try:
                        self._answer(200, exporter.metrics(), CONTENT_TYPE)
                    except (ClusterError, InputError) as error:
                        self._answer(500, f"{error}\n")
                case "/metrics" | "/readyz" if not exporter.mirror.is_complete:
                    self._answer(503, "the cluster is still being read\n")
                case "/healthz" if exporter.mirror.fatal is not None:
                    self._answer(500, f"{exporter.mirror.fatal}\n")
                case "/healthz" | "/readyz":
                    self._answer(200, "ok\n")
                case "/":
                    self._answer(200, '<a href="/metrics">/metrics</a>\n', "text/html; charset=utf-8")
                case _:
                    self._answer(404, "no such path: only /metrics, /healthz and /readyz exist\n")

        def _answer(self, status: int, text: str, content_type: str = "text/plain; charset=utf-8") -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Do not log every scrape."""

    try:
        return _Server((host, port), Handler)
    except OSError as error:
        raise HostError(f"{host}:{port}: {error.strerror or error}") from error


class _Server(ThreadingHTTPServer):
    daemon_threads = True
