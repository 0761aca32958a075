"""A guard's metrics in Prometheus' text format, served on its own loop.

Everything is counted from its journal (``heard``), so the metrics always agree with the journal. Counting is postponed
until a scrape or an idle moment: the journal entry of an eviction is written before the pod is killed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from http import HTTPStatus

from podqos.agent.guard_status import GuardStatus
from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import EvictionReport, LocalStorageExceeded, UnderPressure
from podqos.exposition import CONTENT_TYPE, Counter, Histogram, family, single
from podqos.host.api.http_request import HttpRefusal, HttpResponse, KubeletRequest
from podqos.questions.guard import GuardedDeath, NodeHindsight

_MOST_WAITING = 500
_STAGES = ("held", "killed", "gone", "answered")


class GuardMetrics:
    """Counts the entries of a guard's journal."""

    def __init__(self, status: Callable[[], GuardStatus]) -> None:
        self._status = status
        self._waiting: deque[Entry] = deque()
        self._hindsight = NodeHindsight()
        self._reactions = Histogram(
            "podqos_guard_reaction_seconds",
            "Time from the detection of a crossed threshold until the victim was held, killed, gone and answered.",
        )
        self._decisions = Counter(
            "podqos_guard_decisions_total",
            "Pods selected for eviction, by signal; held_back is the reason a pod was not evicted, empty if it was.",
        )
        self._outcomes = Counter("podqos_guard_evictions_total", "Evictions carried out, by outcome.")
        self._deaths = Counter(
            "podqos_guard_pod_terminations_total",
            "Pods ended by the kernel or the kubelet, by the guard's verdict: Same if it had selected that pod.",
        )
        self._unneeded = Counter(
            "podqos_guard_unneeded_decisions_total",
            "Episodes of pressure in which the guard selected a pod and that ended without any pod being killed.",
        )
        self._major_faults = Counter(
            "podqos_guard_major_faults_total",
            "Page faults of the guard that waited for a disk between the crossed threshold and the kill.",
        )

    def heard(self, entry: Entry) -> None:
        """Queue an entry; it is counted later."""
        self._waiting.append(entry)
        if len(self._waiting) > _MOST_WAITING:
            self.count()

    def count(self) -> None:
        """Count the queued entries."""
        while self._waiting:
            self._count(self._waiting.popleft())

    def _count(self, entry: Entry) -> None:
        for found in self._hindsight.heard(entry):
            if isinstance(found, GuardedDeath):
                self._deaths.add((("by", found.by.value), ("verdict", found.verdict.value)))
            else:
                self._unneeded.add()
        match entry.kind, entry.because:
            case Kind.EVICTED | Kind.WOULD_EVICT, UnderPressure(signal=signal, held_back=why) if entry.by is By.GUARD:
                self._decisions.add((("eviction_signal", signal.value), ("held_back", why)))
            case Kind.EVICTED | Kind.WOULD_EVICT, LocalStorageExceeded(limit_kind=limit, held_back=why):
                self._decisions.add((("eviction_signal", limit.value), ("held_back", why)))
            case Kind.REPORTED, EvictionReport() as report:
                self._outcomes.add((("outcome", report.outcome),))
                self._react(report)
            case _:
                pass

    def _react(self, report: EvictionReport) -> None:
        if report.major_faults is not None:
            self._major_faults.add(count=report.major_faults)
        for stage in _STAGES:
            at_us: int | None = getattr(report, f"{stage}_us")
            if report.noticed_us is not None and at_us is not None:
                self._reactions.add((at_us - report.noticed_us) / 1e6, (("stage", stage),))

    def lines(self) -> Iterator[str]:
        """Yield all metrics as text."""
        self.count()
        for each in (
            self._reactions, self._decisions, self._outcomes, self._deaths, self._unneeded, self._major_faults
        ):  # fmt: skip
            yield from each.lines()
        status = self._status()
        yield from single(
            "podqos_guard_enforcing", "gauge", "1 if the guard evicts, 0 in shadow mode.", int(status.enforce)
        )
        held_back = [({"reason": status.held_back}, 1)] if status.held_back else []
        yield from family(
            "podqos_guard_evictions_blocked",
            "gauge",
            "The reason the guard evicts nothing at the moment; absent while it would evict.",
            held_back,
        )
        signals = [
            ({"eviction_signal": signal.signal.value, "kind": "hard" if signal.hard else "soft"}, signal)
            for signal in status.signals
        ]
        about = "Eviction threshold by signal, in the unit of the signal: bytes or process IDs."
        thresholds = ((labels, status.threshold) for labels, status in signals)
        yield from family("podqos_guard_threshold", "gauge", about, thresholds)
        available = ((labels, status.available) for labels, status in signals)
        yield from family(
            "podqos_guard_available", "gauge", "Available amount by signal, in the unit of the signal.", available
        )
        yield from single("podqos_guard_candidates", "gauge", "Pods that the guard could evict.", status.candidates)
        yield from single(
            "podqos_guard_unknown_cgroups",
            "gauge",
            "Pod cgroups without a pod in the API server; the guard never touches them.",
            status.unknown_cgroups,
        )
        if status.api.synced_us is not None:
            age = max(0.0, (status.updated_us - status.api.synced_us) / 1e6) if status.api.trouble else 0.0
            about = "Age of the cached pods while the API server is unreachable; 0 while the watch works."
            yield from single("podqos_guard_pod_cache_age_seconds", "gauge", about, age)
        yield from single("process_cpu_seconds_total", "counter", "CPU time used by the guard.", time.process_time())
        yield from single("process_resident_memory_bytes", "gauge", "Resident memory of the guard.", status.rss_bytes)
        yield from single(
            "process_start_time_seconds",
            "gauge",
            "Start time of the guard, since the Unix epoch.",
            status.started_us / 1e6,
        )

    def answer(self, request: KubeletRequest) -> HttpResponse:
        """Answer a request."""
        if request.method == "POST":
            raise HttpRefusal(HTTPStatus.METHOD_NOT_ALLOWED, "read-only: only GET is supported")
        match request.segments:
            case ("healthz",):
                return HttpResponse(b"ok\n")
            case ("metrics",):
                return HttpResponse("".join(f"{line}\n" for line in self.lines()).encode(), CONTENT_TYPE)
            case _:
                raise HttpRefusal(HTTPStatus.NOT_FOUND, "no such path: only /metrics and /healthz exist")
