"""What a guard did, in Prometheus' text format, served on its own loop.

Everything is counted from its journal (``heard``), so that metrics say what the journal says. Counting is put off until
someone asks, or nothing happens: an entry of an eviction is written before the pod is killed.
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
from podqos.survival.shadow import GuardedDeath, NodeHindsight

_MOST_WAITING = 500
_STAGES = ("held", "killed", "gone", "answered")


class GuardMetrics:
    """Counts what a guard writes into its journal."""

    def __init__(self, status: Callable[[], GuardStatus]) -> None:
        self._status = status
        self._waiting: deque[Entry] = deque()
        self._hindsight = NodeHindsight()
        self._reactions = Histogram(
            "podqos_guard_reaction_seconds",
            "From the moment a threshold was noticed to be crossed until the victim was held, killed, gone, and known.",
        )
        self._decisions = Counter(
            "podqos_guard_decisions_total", "Pods chosen, by signal; held_back says why one was not evicted."
        )
        self._outcomes = Counter(
            "podqos_guard_evictions_total", "Evictions that were carried out, by what came of them."
        )
        self._deaths = Counter(
            "podqos_guard_deaths_total",
            "Pods that kernel or kubelet ended, by what the guard had decided by then: Same confirms it.",
        )
        self._unneeded = Counter(
            "podqos_guard_unneeded_decisions_total",
            "Pressure under which it chose a pod, and that passed without a death.",
        )
        self._major_faults = Counter(
            "podqos_guard_major_faults_total",
            "Page faults of the guard that waited for a disk, between crossing and kill.",
        )

    def heard(self, entry: Entry) -> None:
        """Take an entry; it is counted later."""
        self._waiting.append(entry)
        if len(self._waiting) > _MOST_WAITING:
            self.count()

    def count(self) -> None:
        """Count what was heard."""
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
        """Yield all of it as text."""
        self.count()
        for each in (
            self._reactions, self._decisions, self._outcomes, self._deaths, self._unneeded, self._major_faults
        ):  # fmt: skip
            yield from each.lines()
        status = self._status()
        yield from single("podqos_guard_enforces", "gauge", "Whether it was told to evict.", int(status.enforce))
        held_back = [({"why": status.held_back}, 1)] if status.held_back else []
        yield from family(
            "podqos_guard_held_back", "gauge", "Why it evicts nothing now; absent where it would.", held_back
        )
        signals = [
            ({"eviction_signal": signal.signal.value, "kind": "hard" if signal.hard else "soft"}, signal)
            for signal in status.signals
        ]
        about = "Eviction threshold by signal: bytes, process ids"
        thresholds = ((labels, status.threshold) for labels, status in signals)
        yield from family("podqos_guard_threshold", "gauge", about, thresholds)
        available = ((labels, status.available) for labels, status in signals)
        yield from family("podqos_guard_available", "gauge", "What is available, by eviction signal", available)
        yield from single("podqos_guard_candidates", "gauge", "Pods that may be evicted.", status.candidates)
        yield from single(
            "podqos_guard_unknown_cgroups",
            "gauge",
            "Cgroups of pods that the API server does not know: never touched.",
            status.unknown_cgroups,
        )
        if status.api.synced_us is not None:
            age = max(0.0, (status.updated_us - status.api.synced_us) / 1e6) if status.api.trouble else 0.0
            about = "How old what is known of pods is; 0 while the watch works."
            yield from single("podqos_guard_knowledge_age_seconds", "gauge", about, age)
        yield from single("process_cpu_seconds_total", "counter", "CPU time of the guard.", time.process_time())
        yield from single("process_resident_memory_bytes", "gauge", "Memory of the guard.", status.rss_bytes)
        yield from single("process_start_time_seconds", "gauge", "Start of the guard.", status.started_us / 1e6)

    def answer(self, request: KubeletRequest) -> HttpResponse:
        """Answer a request."""
        if request.method == "POST":
            raise HttpRefusal(HTTPStatus.METHOD_NOT_ALLOWED, "there is nothing to write")
        match request.segments:
            case ("healthz",):
                return HttpResponse(b"ok\n")
            case ("metrics",):
                return HttpResponse("".join(f"{line}\n" for line in self.lines()).encode(), CONTENT_TYPE)
            case _:
                raise HttpRefusal(HTTPStatus.NOT_FOUND, "there are /metrics and /healthz")
