"""``podqos exporter``: a cluster's metrics for Prometheus, computed from a mirror of the cluster, and where they are.

No scrape waits for the API server. Before anything was read, ``/metrics`` and ``/readyz`` answer 503. Afterwards they
answer from what is known, and ``podqos_exporter_up`` and ``podqos_exporter_data_age_seconds`` say what that is worth:
an exporter that is restarted, or removed from its Service, while the API server is down would lose it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from podqos.errors import PodqosError
from podqos.exposition import CONTENT_TYPE
from podqos.parallel import over_cores
from podqos.questions.metrics import Sample, gauge, overview_metrics
from podqos.questions.overview import Overview, overview
from podqos.reading.mirror import Mirror
from podqos.request_origin import is_loopback, is_own_name
from podqos.serve.server import BackgroundServer, Bodies, text
from podqos.serve.settings import HEALTH_PATH, METRICS_PATH, READY_PATH

_WINDOW_SECONDS = 900.0
"""Growth is measured over this time."""
_LEAST_SECONDS = 60.0


class Exporter:
    """Recomputes the metrics at most once per interval, and only when they are scraped.

    A scrape is answered from what is known, whether or not the API server answers: the mirror measures in the
    background.
    """

    def __init__(self, mirror: Mirror, *, every_seconds: float = 30.0) -> None:
        self.mirror = mirror
        self._every_seconds = every_seconds
        self._lock = threading.Lock()
        self._text = ""
        self._made_at: float | None = None
        self._growth = HeadroomGrowth()

    @property
    def is_ready(self) -> bool:
        """Whether the cluster and its usage were read at least once."""
        return self.mirror.is_complete and self.mirror.is_measured

    def unready(self) -> str:
        """Return what has not been read yet, and why if that is known."""
        age, error = self.mirror.age(), self.mirror.usage_error
        missing = "usage" if self.mirror.is_complete else "the cluster"
        trouble = age.trouble or ("" if error is None else str(error))
        return f"{missing} has not been read yet{f': {trouble}' if trouble else ''}\n"

    def metrics(self) -> str:
        """Return the metrics, recomputed if they are older than the interval, and how old their data is."""
        with self._lock:
            now = time.monotonic()
            if self._made_at is None or now - self._made_at >= self._every_seconds:
                began = time.perf_counter()
                ages = self.mirror.usage_ages()
                whole = overview(self.mirror.known(), spread=over_cores())
                pressure = self._growth.pressure_seconds(whole, {node: now - age for node, age in ages.items()})
                self._text = overview_metrics(whole, pressure)
                self._text += _lines(
                    "exporter_computation_seconds", "Time taken to compute the metrics.", [({}, _since(began))]
                )
                self._made_at = now
            return self._text + "".join(self._freshness())

    def _freshness(self) -> Iterator[str]:
        """Yield the metrics about the exporter's own sources, as of this scrape."""
        mirror, age = self.mirror, self.mirror.age()
        about = "1 if the API server answers and all watches run; 0 if the metrics are computed from older data."
        yield _lines("exporter_up", about, [({}, int(mirror.is_current))])
        ages = (("objects", age.objects_seconds), ("usage", age.usage_seconds))
        about = "Time since the data was last confirmed by the API server, or usage was last read."
        yield _lines("exporter_data_age_seconds", about, [({"source": source}, seconds) for source, seconds in ages])
        about = "Time since the kubelet last reported the node's usage; absent where it never has."
        yield _lines(
            "node_usage_age_seconds", about, [({"node": node}, old) for node, old in mirror.usage_ages().items()]
        )
        about = "Number of interrupted watches; data of those resources may be stale."
        yield _lines("exporter_watches_interrupted", about, [({}, mirror.interrupted)])


def _since(began: float) -> float:
    return time.perf_counter() - began


def _lines(name: str, about: str, samples: Iterable[Sample]) -> str:
    return "".join(f"{line}\n" for line in gauge(f"podqos_{name}", about, samples))


class HeadroomGrowth:
    """Estimates when nodes run out of memory from the history of their headroom."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[float, int]]] = {}

    def pressure_seconds(self, whole: Overview, measured_at: Mapping[str, float]) -> dict[str, float]:
        """Return the seconds until each node evicts if memory keeps growing; nodes where it does not are left out.

        ``measured_at`` is when each node was measured: figures that have not been renewed say nothing about growth.
        """
        found: dict[str, float] = {}
        kept: dict[str, deque[tuple[float, int]]] = {}
        for node in whole.nodes:
            at = measured_at.get(node.name)
            if node.headroom_bytes is None or not node.is_measured or at is None:
                continue
            seen = kept[node.name] = self._seen.get(node.name, deque())
            if not seen or seen[-1][0] < at:
                seen.append((at, node.headroom_bytes))
            while seen[0][0] < at - _WINDOW_SECONDS:
                seen.popleft()
            first_at, first = seen[0]
            if node.headroom_bytes <= 0:
                found[node.name] = 0.0
            elif at - first_at >= _LEAST_SECONDS and first > node.headroom_bytes:
                found[node.name] = node.headroom_bytes * (at - first_at) / (first - node.headroom_bytes)
        self._seen = kept
        return found


def serve(exporter: Exporter, host: str, port: int, *, say: Callable[[str], object] = print) -> BackgroundServer:
    """Return a server of ``/metrics``, ``/healthz`` and ``/readyz``, which is already listening."""
    endpoint = Endpoint(exporter, say, is_local=is_loopback(host))
    return BackgroundServer(Bodies(GZipMiddleware(endpoint), lambda _: 4 << 10, in_all=1 << 20), host, port)


class Endpoint:
    """Answers scrapes and probes. Metrics are computed in a thread, once for all scrapes that arrive meanwhile."""

    def __init__(self, exporter: Exporter, say: Callable[[str], object], *, is_local: bool) -> None:
        self._exporter = exporter
        self._say = say
        self._is_local = is_local
        """Whether only this machine can reach it: requests then have to name it, unlike a page's after rebinding."""
        self._pool = ThreadPoolExecutor(1, "metrics")
        self._computing: asyncio.Future[bytes] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await (await self._answer(Request(scope, receive)))(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        host, exporter = request.headers.get("host", ""), self._exporter
        if self._is_local and host and not is_own_name(host, frozenset({"localhost"})):
            return text(421, "the Host header must name this machine")
        if request.method not in {"GET", "HEAD"}:
            return text(405, "only GET and HEAD are supported here", allow="GET, HEAD")
        match request.url.path:
            case path if path == METRICS_PATH and exporter.is_ready:
                return await self._metrics()
            case path if path in {METRICS_PATH, READY_PATH} and not exporter.is_ready:
                return text(503, exporter.unready().removesuffix("\n"))
            case path if path == HEALTH_PATH and exporter.mirror.fatal is not None:
                return text(500, str(exporter.mirror.fatal))
            case path if path in {HEALTH_PATH, READY_PATH}:
                return text(200, "ok")
            case "/":
                return HTMLResponse('<a href="/metrics">/metrics</a>\n')
        return text(404, f"no such path: only {METRICS_PATH}, {HEALTH_PATH} and {READY_PATH} exist")

    async def _metrics(self) -> Response:
        if self._computing is None:
            loop = asyncio.get_running_loop()
            self._computing = loop.run_in_executor(self._pool, lambda: self._exporter.metrics().encode())
            self._computing.add_done_callback(self._computed)
        try:
            return Response(await asyncio.shield(self._computing), headers={"content-type": CONTENT_TYPE})
        except PodqosError as error:
            return text(500, str(error))
        except Exception as error:  # noqa: BLE001 - a bug of ours must not take the exporter down
            self._say(f"{METRICS_PATH}: {type(error).__name__}: {str(error)[:500]}")
            return text(500, f"podqos failed: {type(error).__name__}")

    def _computed(self, done: asyncio.Future[bytes]) -> None:
        self._computing = None
        if not done.cancelled():
            done.exception()  # it is told to those who asked
