"""The status of a running node as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from podqos.eviction.ranking import RankedPod
from podqos.eviction.signals import SIGNALS
from podqos.host.api.status_document import FastPath, NodeStatus, ThresholdRow
from podqos.model.quantity import NANOS
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from podqos.report.text.style import Style, columns, wrapped
from podqos.survival.orders.orders import KilledContainer
from podqos.wording import mebibytes
from podqos.words.durations import two_units
from podqos.words.ranking import amount

_BYTES = (MEMORY, EPHEMERAL_STORAGE)


class NextVictims(Struct, frozen=True):
    """The next victims for memory."""

    evicted: RankedPod | None = None
    """By the kubelet, if memory ran short now; None if no pod may be evicted."""
    killed: KilledContainer | None = None
    """By the kernel."""


def status_lines(status: NodeStatus, victims: NextVictims, style: Style) -> list[str]:
    """Return the status of a node."""
    up = two_units(status.now_us - status.start_us)
    mode = ", shadow mode: no pod is evicted" if status.shadow else ""
    facts = [
        ("node", f"{status.node}, podqos {status.version}, up {up}{mode}"),
        ("runs", f"{status.runtime} runtime in cgroup {status.cgroup} ({status.cgroup_version}), pid {status.pid}"),
        ("manifests", status.manifests),
        ("memory", _memory(status)),
        ("conditions", _conditions(status, style)),
        ("pressure", _pressure(status)),
        ("fast path", _fast_path(status.fast_path)),
        ("pods", _pod_counts(status)),
        ("next evicted", _next_evicted(victims, style)),
        ("next killed", _next_killed(victims, style)),
    ]
    return [
        *(f"{style.strong(name.ljust(14))}{text}" for name, text in facts),
        "",
        *_resources(status, style),
        "",
        *_thresholds(status, style),
        *_remarks(status, style),
    ]


def _memory(status: NodeStatus) -> str:
    """Return how much memory the node has left."""
    used, left = status.memory.working_set_bytes, status.memory.available_bytes
    if used is None or left is None:
        return "unknown"
    share = ", a share of this machine" if status.is_confined else ""
    return f"{mebibytes(used)} of {mebibytes(used + left)} in use, {mebibytes(left)} available{share}"


def _conditions(status: NodeStatus, style: Style) -> str:
    """Return the node's conditions."""
    holding = [
        f"{condition.type} since {condition.last_transition_time}"
        for condition in status.conditions
        if condition.status and condition.type != "Ready"
    ]
    ready = "ending" if status.is_ending else "Ready"
    return f"{ready}, {style.alarm('; '.join(holding)) if holding else 'no pressure'}"


def _pressure(status: NodeStatus) -> str:
    """Return the share of the last ten seconds that tasks spent waiting."""
    if not status.pressure:
        return "unknown: the kernel has no pressure stall information"
    parts = []
    for name, file in status.pressure.items():
        full = "" if file.full is None else f" (all: {file.full.avg10:.1f} %)"
        parts.append(f"{name} {file.some.avg10:.1f} %{full}")
    return f"{', '.join(parts)} of the last 10 s stalled, machine-wide"


def _fast_path(state: FastPath) -> str:
    """Return the state of the fast path."""
    if not state.enabled:
        return "off: pressure is detected within 10 s"
    if not state.levels_bytes:
        return "on, but no level set: no hard memory threshold, or an eviction is in progress"
    levels = ", ".join(f"{path} at {mebibytes(level)}" for path, level in state.levels_bytes.items())
    last = (
        "" if state.last_seconds is None else f"; the last victim was frozen after {state.last_seconds * 1000:.1f} ms"
    )
    return f"on: the kernel watches {levels}{last}"


def _pod_counts(status: NodeStatus) -> str:
    """Return the number of pods by phase."""
    counts = Counter(pod.phase for pod in status.pods)
    parts = [f"{count} {phase}" for phase, count in sorted(counts.items())]
    if status.refused:
        parts.append(f"{len(status.refused)} rejected")
    return ", ".join(parts) or "none"


def _next_evicted(victims: NextVictims, style: Style) -> str:
    """Return the pod the kubelet would evict for memory."""
    ranked = victims.evicted
    if ranked is None:
        return "no pod"
    excess = ranked.excess_nanos // NANOS
    where = f"{mebibytes(excess)} above" if ranked.over_request else f"{mebibytes(-excess)} below"
    request = f"{where} its request" if ranked.request.value else "without a request"
    return f"{style.strong(ranked.pod.key)}: uses {mebibytes(ranked.usage)}, {request}, priority {ranked.priority}"


def _next_killed(victims: NextVictims, style: Style) -> str:
    """Return the container the kernel would kill."""
    killed = victims.killed
    if killed is None:
        return "no pod"
    process = killed.worst.process
    margin = "" if killed.margin_bytes is None else f", {mebibytes(killed.margin_bytes)} ahead of the next"
    score = str(process.oom_score_adj).replace("-", "−")
    who = f"{style.strong(killed.pod.key)} ({killed.usage.name})"
    return f"{who}: {mebibytes(killed.usage.anon_bytes)} at oom_score_adj {score}{margin}"


# ---- the rest of the status ------------------------------------------------------------------------------------------


def _resources(status: NodeStatus, style: Style) -> list[str]:
    rows = []
    for row in status.resources:
        share = f" ({row.requested * 100 // row.allocatable} %)" if row.allocatable else ""
        capacity = "–" if row.capacity is None else _units(row.capacity, row.name)
        rows.append((row.name, capacity, _units(row.allocatable, row.name), _units(row.requested, row.name) + share))
    return columns(("RESOURCE", "CAPACITY", "ALLOCATABLE", "REQUESTED"), rows, style)


def _units(value: int, name: str) -> str:
    if name == CPU:
        return f"{value}m" if value % 1000 else str(value // 1000)
    return mebibytes(value) if value and name in _BYTES else str(value)


def _thresholds(status: NodeStatus, style: Style) -> list[str]:
    rows = [
        (
            row.signal.value,
            "hard" if row.hard else f"soft, {row.grace_period_seconds} s",
            *(
                "–" if each is None else amount(each, SIGNALS[row.signal].resource)
                for each in (row.threshold, row.available)
            ),
            _to_go(row, style),
        )
        for row in status.thresholds
    ]
    return columns(("EVICTS BELOW", "KIND", "THRESHOLD", "AVAILABLE", "HEADROOM"), rows, style)


def _to_go(row: ThresholdRow, style: Style) -> str:
    if row.distance is None:
        return "not observed"
    if row.is_met or row.distance < 0:
        return style.alarm("met")
    return amount(row.distance, SIGNALS[row.signal].resource)


def _remarks(status: NodeStatus, style: Style) -> Iterator[str]:
    refused = [f"{refused_row.source}: {refused_row.pod}: {refused_row.why}" for refused_row in status.refused]
    counted = [
        f"{note.text} ({note.count} times)" if note.count > 1 else note.text
        for note in status.notes
        if note.text not in {*status.degraded, *refused}
    ]
    for title, texts in (
        ("Limitations on this machine:", status.degraded),
        ("Rejected:", refused),
        ("Notes:", counted),
    ):
        if texts:
            yield ""
            yield style.strong(title)
            for text in texts:
                yield from wrapped(text, style, "  ")
