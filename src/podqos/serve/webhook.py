"""The webhook: from an HTTP request to a decision and its answer, until it is told to stop.

Nothing here decides. A review without a decision gets an HTTP error, and the API server then applies the webhook's
failurePolicy: it admits or rejects the object, as its owner has chosen.

On SIGTERM ``/readyz`` fails at once, but requests are still accepted: the API server learns about a terminating pod a
moment later. Every answer now closes its connection. Then the server stops accepting connections, answers the requests
in flight, and ends.
"""

from __future__ import annotations

import asyncio
import gc
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from urllib.parse import parse_qs

import msgspec
import prometheus_client
from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from podqos.admission.review import InvalidReview, encode_answer, read_review
from podqos.advice.reviewing import Door, ReviewDecision, Reviewer
from podqos.manifest.kinds import POD_HOLDERS
from podqos.questions.review import audit_line, response
from podqos.serve import settings
from podqos.serve.audit import AuditLog
from podqos.serve.reloading import LiveSource, Reloaded
from podqos.serve.server import Bodies, Server, on_request_to_stop, run, text
from podqos.serve.tls import Certificate

_DOORS = {settings.VALIDATE_PATH: Door.VALIDATE, settings.MUTATE_PATH: Door.MUTATE}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}
_OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
_BODY_BYTES = 3 << 20
"""The same limit as an API server's own."""
_BODIES_BYTES = 48 << 20
"""Of all requests at a time: with the rest it fits into the 256Mi that the webhook is installed with."""
_LARGE_BYTES = 64 << 10
"""Larger reviews are decided in a thread, concurrently with others."""
_LARGE_AT_ONCE = 8
"""Beyond this, the API server has to retry."""
_ANSWER_SECONDS = 10.0
"""For an answer if the request has no timeout; an API server waits 10 seconds by default."""
_SHARE = 0.9
"""The share of the API server's timeout that may be used: the answer needs time to travel."""
_LOOK_SECONDS = 1.0
_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
DRAINING = "draining"
"""The reason it is not ready while it shuts down."""

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


class ShutdownPeriods(Struct, frozen=True):
    """The phases of a shutdown."""

    delay_seconds: float = 5.0
    """Between SIGTERM and closing the listener."""
    most_seconds: float = 20.0
    """For requests in flight."""


class WebhookMetrics:
    """The webhook's metrics. Label values are only names chosen by a policy or podqos."""

    def __init__(self, webhook: Webhook) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"podqos_webhook_{name}", about, labels, registry=registry)

        labels = ("webhook", "operation", "kind", "allowed")
        self.reviews = counter("reviews", "Admission reviews answered.", *labels)
        self.seconds = Histogram(
            "podqos_webhook_review_seconds",
            "Time taken to decide a review.",
            ("webhook",),
            registry=registry,
            buckets=_BOUNDS,
        )
        about = "Policy violations, by policy, rule and action."
        self.violations = counter("violations", about, "policy", "rule", "action")
        self.findings = counter("findings", "Findings of podqos check, by check.", "check")
        self.mutated = counter("mutations", "Pods changed by a fix.")
        self.errors = counter("errors", "Reviews left undecided, by reason.", "reason")
        about = "Reloads of changed files, by what was reloaded and whether it was valid."
        self.reloads = counter("reloads", about, "what", "in_order")
        dropped = Gauge(
            "podqos_webhook_audit_lines_dropped_total",
            "Audit lines dropped because they could not be written fast enough.",
            registry=registry,
        )
        dropped.set_function(lambda: webhook.audit.dropped)
        about = "1 if the latest version of a file is in use, 0 if it is not valid and the previous one still is."
        self.in_order = Gauge("podqos_webhook_last_reload_successful", about, ("what",), registry=registry)
        about = "Expiry time of the serving certificate, since the Unix epoch."
        self.expires = Gauge("podqos_webhook_certificate_expiry_timestamp_seconds", about, registry=registry)

    def count(self, decision: ReviewDecision, seconds: float) -> None:
        """Count a decision."""
        request = decision.request
        kind = request.kind.kind if request.kind.kind in POD_HOLDERS else "other"
        operation = request.operation if request.operation in _OPERATIONS else "other"
        door = decision.door.value
        self.reviews.labels(door, operation, kind, "true" if decision.allowed else "false").inc()
        self.seconds.labels(door).observe(seconds)
        for violation in decision.judgement.violations:
            self.violations.labels(violation.policy, violation.rule, violation.action.value).inc()
        for finding in decision.findings:
            self.findings.labels(finding.check).inc()
        if decision.patch:
            self.mutated.inc()


class Webhook:
    """Answers requests with the currently loaded rules."""

    def __init__(self, reviewer: Reviewer, audit: AuditLog, certificate: Certificate | None = None) -> None:
        self.reviewer = reviewer
        """Replaced as a whole: each request is decided by one version of the policy."""
        self.audit = audit
        self.certificate = certificate
        self.metrics = WebhookMetrics(self)
        self.sources: list[Reloaded | LiveSource] = []
        self.why_not_ready = ""
        self.app: ASGIApp = Bodies(self._answer, lambda _: _BODY_BYTES, in_all=_BODIES_BYTES)
        self._large = ThreadPoolExecutor(1, "large")
        self._large_waiting = 0

    def is_ready(self) -> None:
        """Become ready, unless it is shutting down."""
        if self.why_not_ready != DRAINING:
            self.why_not_ready = ""

    def drain(self) -> None:
        """Become not ready, and close each connection after its next answer."""
        self.why_not_ready = DRAINING

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        answer = await self.handle(request.method, request.url.path, request.url.query, await request.body())
        if self.why_not_ready == DRAINING:
            answer.headers["connection"] = "close"
        await answer(scope, receive, send)

    async def handle(self, method: str, path: str, query: str, body: bytes) -> Response:
        """Answer a request."""
        door = _DOORS.get(path)
        if door is not None:
            if method != "POST":
                return text(405, "send an AdmissionReview with POST", allow="POST")
            return await self._review_large(door, query, body) if len(body) > _LARGE_BYTES else self.review(door, body)
        if method not in {"GET", "HEAD"}:
            return text(405, "only GET and HEAD are supported here", allow="GET, HEAD")
        match path:
            case settings.HEALTH_PATH:
                return text(200, "ok")
            case settings.READY_PATH:
                return text(503, self.why_not_ready) if self.why_not_ready else text(200, "ok")
            case settings.METRICS_PATH:
                return self._metrics()
        known = ", ".join((*_DOORS, settings.HEALTH_PATH, settings.READY_PATH, settings.METRICS_PATH))
        return text(404, f"no such path: the paths are {known}")

    def review(self, door: Door, body: bytes) -> Response:
        """Decide a review and answer it."""
        began = time.perf_counter()
        try:
            decision = self.reviewer.decide(door, read_review(body), datetime.now(UTC).date())
            answer = encode_answer(response(decision))
        except InvalidReview as error:
            self.metrics.errors.labels("bad-review").inc()
            return text(400, str(error))
        except Exception as error:  # noqa: BLE001 - a bug of ours must not take the server down
            self.metrics.errors.labels("internal").inc()
            self.audit.write(msgspec.json.encode({"error": type(error).__name__, "what": str(error)[:500]}))
            return text(500, f"podqos failed: {type(error).__name__}")
        seconds = time.perf_counter() - began
        self.metrics.count(decision, seconds)
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.audit.write(audit_line(decision, now, seconds))
        return Response(answer, media_type="application/json")

    async def _review_large(self, door: Door, query: str, body: bytes) -> Response:
        """Decide in a thread, concurrently with other requests, and within the API server's timeout."""
        if self._large_waiting >= _LARGE_AT_ONCE:
            self.metrics.errors.labels("busy").inc()
            return text(429, "too many large reviews at once", retry_after="1")
        self._large_waiting += 1
        task = asyncio.get_running_loop().run_in_executor(self._large, self.review, door, body)
        task.add_done_callback(lambda _: self._large_done())
        try:
            return await asyncio.wait_for(asyncio.shield(task), _SHARE * (waits(query) or _ANSWER_SECONDS))
        except TimeoutError:
            self.metrics.errors.labels("deadline").inc()
            return text(504, "no decision before the deadline")

    def _large_done(self) -> None:
        self._large_waiting -= 1

    def _metrics(self) -> Response:
        for source in self.sources:
            self.metrics.in_order.labels(source.what).set(0 if source.error else 1)
        if self.certificate is not None and self.certificate.expires is not None:
            self.metrics.expires.set(self.certificate.expires)
        found = prometheus_client.generate_latest(self.metrics.registry)
        return Response(found, headers={"content-type": prometheus_client.CONTENT_TYPE_LATEST})


def waits(query: str) -> float | None:
    """Return an API server's timeout: ``?timeout=10s``, in Go's notation."""
    try:
        texts = parse_qs(query, max_num_fields=16).get("timeout", ()) if query else ()
    except ValueError:
        return None
    parts = _DURATION.findall(texts[0]) if texts and _DURATION.match(texts[0]) else ()
    return sum(float(number) * _UNITS[unit] for number, unit in parts) or None


def serve(
    webhook: Webhook, host: str, port: int, *, say: Callable[[str], None], stopping: ShutdownPeriods | None = None
) -> None:
    """Serve until SIGTERM or SIGINT, and lose no request."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)  # requests create no reference cycles
    run(_run(webhook, host, port, say, stopping or ShutdownPeriods()))


async def _run(webhook: Webhook, host: str, port: int, say: Callable[[str], None], stopping: ShutdownPeriods) -> None:
    is_told = asyncio.Event()
    on_request_to_stop(is_told.set)
    assert webhook.certificate is not None
    server = Server(webhook.app, host, port, webhook.certificate.context, last_seconds=stopping.most_seconds)
    serving = asyncio.create_task(server.serve())
    say(f"listening on https://{server.address[0]}:{server.address[1]}")
    looking = asyncio.create_task(_look(webhook, say))
    await is_told.wait()
    webhook.drain()
    say("shutting down: no longer ready")
    is_told.clear()
    with suppress(TimeoutError):
        await asyncio.wait_for(is_told.wait(), stopping.delay_seconds)  # a second signal: stop immediately
    server.stop()
    await serving
    looking.cancel()
    webhook.audit.close()
    say("stopped")


async def _look(webhook: Webhook, say: Callable[[str], None]) -> None:
    """Reload what has changed, concurrently with requests."""
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        for source in webhook.sources:
            was_in_order = await asyncio.to_thread(source.look)
            if was_in_order is None:
                continue
            webhook.metrics.reloads.labels(source.what, "true" if was_in_order else "false").inc()
            say(
                f"{source.what}: reloaded"
                if was_in_order
                else f"{source.what}: not valid, still using the previous version: {source.error}"
            )
