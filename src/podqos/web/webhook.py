"""The paths of the webhook: from an HTTP request to a decision and its answer.

Nothing here decides. A review without a decision gets an HTTP error, and the API server then applies the webhook's
failurePolicy: it admits or rejects the object, as its owner has chosen.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Awaitable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from urllib.parse import parse_qs

from podqos.admission.review import InvalidReview, encode_answer, read_review
from podqos.advice.reviewing import Door, ReviewDecision, Reviewer
from podqos.exposition import CONTENT_TYPE, Counter, Histogram, family, single
from podqos.manifest.kinds import POD_HOLDERS
from podqos.report.admission.reviewed import audit_line, response
from podqos.web import settings
from podqos.web.audit import AuditLog
from podqos.web.http import Request, Response, Server, text_response
from podqos.web.settings import LIMITS, Limits
from podqos.web.sources import RuleSource
from podqos.web.tls import Certificate

_DOORS = {settings.VALIDATE_PATH: Door.VALIDATE, settings.MUTATE_PATH: Door.MUTATE}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}
_OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
_MOST_PARAMETERS = 16
_SHARE = 0.9
"""The share of the API server's timeout that may be used: the answer needs time to travel."""
DRAINING = "draining"
"""The reason it is not ready while it shuts down."""


class WebhookMetrics:
    """The webhook's metrics. Label values are only names chosen by a policy or podqos.

    Large reviews are counted in the thread that decides them, all else on the loop: hence the lock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reviews = Counter("podqos_webhook_reviews_total", "Admission reviews answered.")
        self.seconds = Histogram("podqos_webhook_review_seconds", "Time taken to decide a review.")
        self.violations = Counter("podqos_webhook_violations_total", "Policy violations, by policy, rule and action.")
        self.findings = Counter("podqos_webhook_findings_total", "Findings of podqos check, by check.")
        self.mutated = Counter("podqos_webhook_mutations_total", "Pods changed by a fix.")
        self.errors = Counter("podqos_webhook_errors_total", "Reviews left undecided, by reason.")
        self.reloads = Counter(
            "podqos_webhook_reloads_total", "Reloads of changed files, by what was reloaded and whether it was valid."
        )

    def count(self, decision: ReviewDecision, seconds: float) -> None:
        """Count a decision."""
        request = decision.request
        kind = request.kind.kind if request.kind.kind in POD_HOLDERS else "other"
        operation = request.operation if request.operation in _OPERATIONS else "other"
        labels = (("webhook", decision.door.value), ("operation", operation), ("kind", kind))
        with self._lock:
            self.reviews.add((*labels, ("allowed", "true" if decision.allowed else "false")))
            self.seconds.add(seconds, labels[:1])
            for violation in decision.judgement.violations:
                rule = (("policy", violation.policy), ("rule", violation.rule), ("action", violation.action.value))
                self.violations.add(rule)
            for finding in decision.findings:
                self.findings.add((("check", finding.check),))
            if decision.patch:
                self.mutated.add()

    def failed(self, reason: str) -> None:
        """Count a review without a decision."""
        with self._lock:
            self.errors.add((("reason", reason),))

    def lines(self) -> list[str]:
        """Return all metrics as text, as they are at one moment."""
        with self._lock:
            return [
                line
                for each in (
                    self.reviews, self.seconds, self.violations, self.findings, self.mutated, self.errors, self.reloads,
                )
                for line in each.lines()
            ]  # fmt: skip


class Webhook:
    """Answers requests with the currently loaded rules."""

    def __init__(self, reviewer: Reviewer, audit: AuditLog, limits: Limits = LIMITS) -> None:
        self.reviewer = reviewer
        """Replaced as a whole: each request is decided by one version of the policy."""
        self.audit = audit
        self.metrics = WebhookMetrics()
        self.limits = limits
        self.server = Server(self.handle, limits)
        self.sources: list[RuleSource] = []
        self.certificate: Certificate | None = None
        self.why_not_ready = ""
        self._large = ThreadPoolExecutor(1, "large")
        self._large_waiting = 0

    def is_ready(self) -> None:
        """Become ready, unless it is shutting down."""
        if self.why_not_ready != DRAINING:
            self.why_not_ready = ""

    def drain(self) -> None:
        """Become not ready, and close each connection after its next answer."""
        self.why_not_ready = DRAINING
        self.server.drain()

    def handle(self, request: Request) -> Response | Awaitable[Response]:
        """Answer a request."""
        door = _DOORS.get(request.path)
        if door is not None:
            if request.method != "POST":
                return text_response(405, "send an AdmissionReview with POST", allow="POST")
            if len(request.body) > self.limits.large_body_bytes:
                return self._review_large(door, request)
            return self.review(door, request.body)
        if request.method not in {"GET", "HEAD"}:
            return text_response(405, "only GET and HEAD are supported here", allow="GET, HEAD")
        match request.path:
            case settings.HEALTH_PATH:
                return text_response(200, "ok")
            case settings.READY_PATH:
                why = self.why_not_ready
                return text_response(503, why) if why else text_response(200, "ok")
            case settings.METRICS_PATH:
                return Response("".join(f"{line}\n" for line in self._lines()).encode(), 200, CONTENT_TYPE)
        known = ", ".join((*_DOORS, settings.HEALTH_PATH, settings.READY_PATH, settings.METRICS_PATH))
        return text_response(404, f"no such path: the paths are {known}")

    def review(self, door: Door, body: bytes) -> Response:
        """Decide a review and answer it."""
        began = time.perf_counter()
        try:
            decision = self.reviewer.decide(door, read_review(body), datetime.now(UTC).date())
            answer = encode_answer(response(decision))
        except InvalidReview as error:
            self.metrics.failed("bad-review")
            return text_response(400, str(error))
        except Exception as error:  # noqa: BLE001 - a bug of ours must not take the server down
            self.metrics.failed("internal")
            self.audit.write(_error_line(error))
            return text_response(500, f"podqos failed: {type(error).__name__}")
        self._note(decision, time.perf_counter() - began)
        return Response(answer)

    def _note(self, decision: ReviewDecision, seconds: float) -> None:
        self.metrics.count(decision, seconds)
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.audit.write(audit_line(decision, now, seconds))

    async def _review_large(self, door: Door, request: Request) -> Response:
        """Decide in a thread, concurrently with other requests, and within the API server's timeout."""
        if self._large_waiting >= self.limits.large_at_once:
            self.metrics.failed("busy")
            return text_response(429, "too many large reviews at once", retry_after="1")
        loop = asyncio.get_running_loop()
        until = request.began + _SHARE * (waits(request.query) or self.limits.answer_seconds)
        self._large_waiting += 1
        task = loop.run_in_executor(self._large, self.review, door, request.body)
        task.add_done_callback(lambda _: self._large_done())
        try:
            return await asyncio.wait_for(asyncio.shield(task), max(0.0, until - loop.time()))
        except TimeoutError:
            self.metrics.failed("deadline")
            return text_response(504, "no decision before the deadline")

    def _large_done(self) -> None:
        self._large_waiting -= 1

    def _lines(self) -> Iterator[str]:
        yield from self.metrics.lines()
        counts = self.server.counts
        yield from single("podqos_webhook_connections", "gauge", "Open connections.", len(self.server.connections))
        refused = (({"status": str(status)}, count) for status, count in sorted(counts.refused.items()))
        about = "HTTP requests refused before review, by status code."
        yield from family("podqos_webhook_http_errors_total", "counter", about, refused)
        about = "Connections closed because the client was too slow."
        yield from single("podqos_webhook_connection_timeouts_total", "counter", about, counts.timed_out)
        about = "Connections closed to make room for others."
        yield from single("podqos_webhook_connections_displaced_total", "counter", about, counts.pushed_out)
        about = "Connections that did not speak TLS, or none that is accepted."
        yield from single("podqos_webhook_tls_handshake_errors_total", "counter", about, counts.failed_handshakes)
        about = "Audit lines dropped because they could not be written fast enough."
        yield from single("podqos_webhook_audit_lines_dropped_total", "counter", about, self.audit.dropped)
        current = (({"what": source.what}, 0 if source.error else 1) for source in self.sources)
        about = "1 if the latest version of a file is in use, 0 if it is not valid and the previous one still is."
        yield from family("podqos_webhook_last_reload_successful", "gauge", about, current)
        if self.certificate is not None and self.certificate.expires is not None:
            name = "podqos_webhook_certificate_expiry_timestamp_seconds"
            yield from single(
                name, "gauge", "Expiry time of the serving certificate, since the Unix epoch.", self.certificate.expires
            )


def waits(query: str) -> float | None:
    """Return an API server's timeout: ``?timeout=10s``, in Go's notation."""
    try:
        texts = parse_qs(query, max_num_fields=_MOST_PARAMETERS).get("timeout", ()) if query else ()
    except ValueError:
        return None
    parts = _DURATION.findall(texts[0]) if texts and _DURATION.match(texts[0]) else ()
    return sum(float(number) * _UNITS[unit] for number, unit in parts) or None


def _error_line(error: Exception) -> bytes:
    import msgspec

    return msgspec.json.encode({"error": type(error).__name__, "what": str(error)[:500]})
