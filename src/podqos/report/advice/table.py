"""The table of ``podqos advise``: a row per workload, what it has now and what is advised, and what that comes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podqos.advice.sizing.applying import ContainerAdvice
from podqos.advice.sizing.severity import Severity
from podqos.answers.advice import AdviceReport, WorkloadAdvice
from podqos.answers.advice_effects import Amounts, PodAmounts
from podqos.model.resources import CPU, MEMORY
from podqos.report.survival.drift_lines import change
from podqos.report.text.style import Style, columns, wrapped
from podqos.report.text.tables import Table
from podqos.wording import counted, mebibytes
from podqos.words.advice import goal_words
from podqos.words.advice_trials import pending_words

_HEADERS = (
    "WORKLOAD",
    "PODS",
    "CPU REQUEST / LIMIT",
    "MEMORY REQUEST / LIMIT",
    "CLASS",
    "EVICTED #",
    "KILLED #",
    "PER POD",
    "TOTAL",
    "SEVERITY",
)
_COLOURED = {Severity.CRITICAL: "error", Severity.WARNING: "warning"}
_WITHHELD = "not recommended"

_CSV = (
    "workload",
    "container",
    "replicas",
    "severity",
    "withheld",
    "classNow",
    "class",
    "evictedNow",
    "evicted",
    "killedNow",
    "killed",
    "cpuRequestNow",
    "cpuRequest",
    "cpuLimitNow",
    "cpuLimit",
    "memoryRequestNow",
    "memoryRequest",
    "memoryLimitNow",
    "memoryLimit",
    "addedCpuMilli",
    "addedMemoryBytes",
    "tried",
)


def table(report: AdviceReport, style: Style) -> list[str]:
    """Return the table, and below it what all of it comes to."""
    if not report.workloads:
        return []
    lines = [*wrapped(headline(report), style, "  ", ""), "", *columns(*rows_of(report, style), style)]
    for said in summary(report):
        lines += wrapped(said, style, "  ", "")
    return lines


def headline(report: AdviceReport) -> str:
    """Return how many workloads should change, of those that something is known about."""
    changing = [workload for workload in report.workloads if workload.tried is not None and not workload.is_withheld]
    every = counted(len(report.workloads), "workload")
    if not changing:
        return f"No change advised for {every}."
    total = f" Total change in requests: {amounts(report.total)}." if report.total is not None else ""
    return f"{len(changing)} of {every} should change.{total}"


def rows_of(report: AdviceReport, style: Style) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return headings and rows."""
    return _HEADERS, [tuple(_row(workload, style)) for workload in report.workloads]


def summary(report: AdviceReport) -> Iterator[str]:
    """Yield what the goal makes of all workloads, and how the advice was tried."""
    yield from goal_words(report.goal, _without_amounts(report), is_measured=_is_measured(report))
    if report.tried is not None:
        yield from (f"{pending_words(name, count)}." for name, count in report.tried.pending.items())
        yield f"{report.tried.text}."


def _without_amounts(report: AdviceReport) -> list[str]:
    return [workload.workload for workload in report.workloads if any(map(_is_unknown, workload.containers))]


def _is_unknown(container: ContainerAdvice) -> bool:
    is_measured = container.memory_bytes is not None or container.cpu_milli is not None
    return container.needs_choice and not (is_measured or container.requests or container.limits)


def _is_measured(report: AdviceReport) -> bool:
    return any(one.memory_bytes or one.cpu_milli for workload in report.workloads for one in workload.containers)


def csv_rows(report: AdviceReport) -> Table:
    """Return a row per container; what is about the workload stands in each of them."""
    return _CSV, (row for workload in report.workloads for row in _csv(workload))


def amounts(added: Amounts) -> str:
    """Return amounts as more or less."""
    parts = [_signed(added.cpu_milli, f"{abs(added.cpu_milli)}m")] if added.cpu_milli else []
    if added.memory_bytes:
        parts.append(_signed(added.memory_bytes, mebibytes(abs(added.memory_bytes))))
    return ", ".join(parts) or "none"


def _signed(amount: int, text: str) -> str:
    return f"{'+' if amount > 0 else '−'}{text}"


def _row(workload: WorkloadAdvice, style: Style) -> Iterator[str]:
    before, after, effect = workload.before, workload.after, workload.effect
    assert effect is not None
    yield workload.workload
    yield "?" if workload.replicas is None else str(workload.replicas)
    for resource in (CPU, MEMORY):
        yield change(_pair(effect.now, resource), _pair(effect.advised, resource))
    yield change(before and style.qos_class(before.qos_class), after and style.qos_class(after.qos_class))
    yield change(before and before.eviction_place, after and after.eviction_place)
    yield change(before and before.kernel_place, after and after.kernel_place)
    yield _added(effect.per_replica)
    yield "?" if effect.total is None else _added(effect.total)
    yield severity(workload, style)


def severity(workload: WorkloadAdvice, style: Style) -> str:
    """Return how urgent the advice about a workload is."""
    if workload.is_withheld:
        return style.alarm(_WITHHELD)
    if any(container.needs_choice for container in workload.containers):
        return "unknown"
    found = Severity.GOOD if workload.distance is None else workload.distance.severity
    return style.severity(_COLOURED[found]).replace(_COLOURED[found], found) if found in _COLOURED else str(found)


def _added(added: Amounts) -> str:
    return amounts(added) if added != Amounts() else "–"


def _pair(found: PodAmounts | None, resource: str) -> str | None:
    if found is None:
        return None
    return f"{found.requests.get(resource, '–')} / {found.limits.get(resource, '–')}"


def _csv(workload: WorkloadAdvice) -> Iterator[tuple[object, ...]]:
    before, after, effect = workload.before, workload.after, workload.effect
    assert effect is not None
    total = effect.total
    for container in workload.containers:
        pairs = [
            (old.get(resource), new.get(resource))
            for resource in (CPU, MEMORY)
            for old, new in (
                (container.requests_before, container.requests),
                (container.limits_before, container.limits),
            )
        ]
        yield (
            workload.workload,
            container.container,
            workload.replicas,
            severity(workload, Style()) if not workload.is_withheld else "withheld",
            workload.is_withheld,
            before and before.qos_class,
            after and after.qos_class,
            before and before.eviction_place,
            after and after.eviction_place,
            before and before.kernel_place,
            after and after.kernel_place,
            *(amount for pair in pairs for amount in pair),
            None if total is None else total.cpu_milli,
            None if total is None else total.memory_bytes,
            "" if workload.tried is None else workload.tried.text,
        )
