"""``podqos thresholds`` as text: what a kubelet leaves to pods, and when it evicts them."""

from __future__ import annotations

from collections.abc import Callable

from podqos.answers.thresholds import PressureReport, SoftCoverageReport, ThresholdsReport, memory_of
from podqos.eviction.admission import Refused
from podqos.eviction.signals import SIGNALS, Signal
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY
from podqos.placement.taints import Repelled
from podqos.report.survival.capacity_bar import bar_lines, letter_of
from podqos.report.text.style import Style, columns, wrapped
from podqos.report.text.tables import Table, csv_table
from podqos.survival.orders.exhaustion import WatchedThreshold
from podqos.words.durations import short_duration
from podqos.words.ranking import amount as amount_of
from podqos.words.thresholds import amount_text

_NOTHING = "–"
# Those that can be set: the others are derived from them.
_DERIVED = {Signal.ALLOCATABLE_MEMORY, Signal.CONTAINERFS, Signal.CONTAINERFS_INODES}
_OWN_SIGNALS = tuple(signal for signal in Signal if signal not in _DERIVED)
_LABEL = len("Scheduling  ")


def table(report: ThresholdsReport, style: Style) -> list[str]:
    """Return one screen: what is wrong, what pods may request, the thresholds, and what happens in which order."""
    return [
        *_warning_lines(report, style),
        "",
        *_allocatable_lines(report, style),
        "",
        *bar_lines(memory_of(report), report.steps, style),
        "",
        *_threshold_lines(report, style),
        *_memory_lines(report, style),
        *_ceilings(report, style),
    ]


def _allocatable_lines(report: ThresholdsReport, style: Style) -> list[str]:
    """Return the arithmetic of each resource, and of its soft threshold: whether pods stay clear of it."""
    rows = []
    for division in report.allocatable:
        amounts = (
            division.allocatable,
            division.capacity,
            division.kube_reserved,
            division.system_reserved,
            division.hard_eviction,
        )
        left, *terms = _in_one_unit(division.resource, *amounts)
        rows.append((division.resource, f"{style.strong(left)} = {' − '.join(terms)}"))
        rows += [
            ("  until soft", _soft_line(soft, style))
            for soft in report.soft_coverage
            if soft.resource == division.resource
        ]
    return columns(("ALLOCATABLE", "= CAPACITY − KUBE-RESERVED − SYSTEM-RESERVED − HARD EVICTION"), rows, style)


def _soft_line(soft: SoftCoverageReport, style: Style) -> str:
    amounts = (soft.usable_before_soft, soft.capacity, soft.soft_eviction, soft.used_by_daemons, soft.allocatable)
    usable, capacity, threshold, daemons, allocatable = _in_one_unit(soft.resource, *amounts)
    sign = "<" if not soft.covered else "=" if usable == allocatable else ">"
    verdict = "covered" if soft.covered else style.alarm("not covered")
    return f"{usable} = {capacity} − {threshold} − {daemons} {sign} {allocatable}: {verdict}"


def _threshold_lines(report: ThresholdsReport, style: Style) -> list[str]:
    """Return a line per signal, and the settings for all of them."""
    signals = dict.fromkeys(threshold.signal for threshold in report.thresholds)
    rows = []
    for signal in signals:
        own = [threshold for threshold in report.thresholds if threshold.signal is signal]
        soft = next((threshold for threshold in own if not threshold.is_hard), None)
        reclaims = dict.fromkeys(threshold.min_reclaim for threshold in own if threshold.min_reclaim is not None)
        rows.append(
            (
                signal + ("*" if own[0].is_derived else ""),
                ", ".join(_stated(threshold) for threshold in own if threshold.is_hard) or _NOTHING,
                _NOTHING if soft is None else _stated(soft),
                _NOTHING if soft is None else short_duration(soft.grace_seconds),
                ", ".join(f"+{reclaim}" for reclaim in reclaims) or _NOTHING,
                own[0].condition.removesuffix("Pressure"),
            )
        )
    lines = columns(("SIGNAL", "HARD", "SOFT", "AFTER", "RECLAIM", "PRESSURE"), rows, style)
    if any(threshold.is_derived for threshold in report.thresholds):
        lines.append("* derived: allocatableMemory from memory, containerfs from its filesystem")
    if unwatched := [signal for signal in _OWN_SIGNALS if signal not in signals]:
        lines += wrapped(f"no threshold: {', '.join(unwatched)}", style, "")
    transition = short_duration(report.pressure_transition_seconds)
    status = short_duration(report.node_status_update_seconds)
    return [
        *lines,
        "",
        f"{style.strong('Transition')}  pressure stays reported for {transition} after it ends",
        f"{style.strong('Status')}      the scheduler sees pressure within {status} (the node's status update)",
        f"{style.strong('Pod grace')}   {_grace(report)}",
        *_labelled("Scheduling", _by_condition(report, lambda report: _REPELS[report.repels], "repels"), style),
        *_labelled("Admission", _by_condition(report, lambda report: _REFUSES[report.refuses], "rejects"), style),
    ]


def _labelled(label: str, text: str, style: Style) -> list[str]:
    return wrapped(text, style, " " * _LABEL, style.strong(label) + " " * (_LABEL - len(label)))


_REPELS = {
    Repelled.WITHOUT_TOLERATION: "every pod that doesn't tolerate it",
    Repelled.ALL: "every pod",
    Repelled.BEST_EFFORT: "BestEffort pods",
}
_REFUSES = {
    Refused.BEST_EFFORT: "BestEffort pods",
    Refused.BEST_EFFORT_WITHOUT_TOLERATION: "BestEffort pods that don't tolerate it",
    Refused.ALL: "all but critical pods",
}


def _by_condition(report: ThresholdsReport, words: Callable[[PressureReport], str], verb: str) -> str:
    """Return which pods each condition keeps away, those alike together."""
    found: dict[str, list[str]] = {}
    for pressure_report in report.pressure:
        found.setdefault(words(pressure_report), []).append(pressure_report.condition.removesuffix("Pressure"))
    if len(found) == 1:
        return f"pressure of any kind {verb} {next(iter(found))}"
    parts = [f"{'- and '.join(names)}Pressure {verb} {what}" for what, names in found.items()]
    return ", ".join([parts[0], *(part.replace(f" {verb} ", " ", 1) for part in parts[1:])])


def _memory_lines(report: ThresholdsReport, style: Style) -> list[str]:
    """Return what happens as memory runs out, and the growth up to which the kubelet is sure to act first."""
    steps = [step for step in report.steps if step.signal is Signal.MEMORY]
    lines = ["", style.strong(f"As {Signal.MEMORY} falls")] if steps else []
    lines += [f"  {letter_of(step)} {amount_text(step.signal, step.left):>8}  {step.text}" for step in steps]
    return [*lines, *_sure_growth_lines(report, style)]


def _sure_growth_lines(report: ThresholdsReport, style: Style) -> list[str]:
    """Return how fast memory may grow: by each threshold, and if the system uses what is reserved for it."""
    sure = report.sure_growth
    watched = [
        threshold
        for threshold in report.thresholds
        if threshold.amount is not None and SIGNALS[threshold.signal].is_memory
    ]
    if sure is None or not watched:
        return []
    if sure.bytes_per_second is None:
        return ["", style.alarm("The kernel always acts before the kubelet, at any growth rate")]
    lines = ["", style.strong("The kubelet always acts before the kernel if memory grows by less than")]
    for threshold in watched:
        if threshold.sure_growth_bytes_per_second is not None:
            whose = " (of all pods together)" if threshold.signal is Signal.ALLOCATABLE_MEMORY else ""
            lines.append(
                f"  {_rate(threshold.sure_growth_bytes_per_second)}  {threshold.signal}, {threshold.type}{whose}"
            )
    if sure.reserved_in_use_bytes_per_second != sure.bytes_per_second:
        slower, reserved = sure.reserved_in_use_bytes_per_second, amount_of(sure.reserved_bytes, MEMORY)
        while_in_use = f"with the reserved {reserved} in use by the system"
        never = f"  {'–':>10}  {while_in_use}: the kernel always acts first, at any growth rate"
        lines.append(never if slower is None else f"  {_rate(slower)}  {while_in_use}")
    return lines


def _rate(bytes_per_second: int) -> str:
    return f"{amount_of(bytes_per_second, MEMORY)}/s".rjust(10)


def _warning_lines(report: ThresholdsReport, style: Style) -> list[str]:
    lines = [style.strong("Warnings")] if report.warnings else ["No warnings."]
    for warning in report.warnings:
        lines += wrapped(f"{warning.signal}: {warning.text}", style, "  ")
    return lines


def _ceilings(report: ThresholdsReport, style: Style) -> list[str]:
    """Return what the pods of each lower class may use together."""
    reserved = report.qos_reserved
    if reserved is None:
        return []
    kept, all_pods = f"{reserved.memory_percent}% of what", amount_of(reserved.pods_memory, MEMORY)
    return [
        "",
        style.strong("Memory ceilings by class (qosReserved)"),
        f"  Burstable   {all_pods} minus {kept} Guaranteed pods request",
        f"  BestEffort  that minus {kept} Burstable pods request",
    ]


def _stated(threshold: WatchedThreshold) -> str:
    """Return a threshold as configured; for a share also its amount, if known."""
    if threshold.amount is None or not threshold.value.endswith("%"):
        return threshold.value
    return f"{threshold.value}={amount_text(threshold.signal, threshold.amount)}"


def _grace(report: ThresholdsReport) -> str:
    soft, hard = (
        "the pod's own" if seconds is None else short_duration(seconds)
        for seconds in (report.soft_pod_grace_seconds, report.hard_pod_grace_seconds)
    )
    capped = (
        ", or the pod's own if shorter" if report.soft_pod_grace_is_capped and report.soft_pod_grace_seconds else ""
    )
    return f"soft: {soft}{capped}; hard: {hard}"


def _in_one_unit(resource: str, *amounts: Quantity) -> list[str]:
    """Return amounts in the largest unit in which they are whole, so that readers can add them up."""
    if resource == CPU:
        return [str(amount) for amount in amounts]
    counts = [amount.value for amount in amounts]
    if max(counts) < 1 << 20:
        return [str(count) for count in counts]
    units = {"Gi": 1 << 30, "Mi": 1 << 20}
    whole = next((suffix for suffix, unit in units.items() if not any(count % unit for count in counts)), None)
    suffix = whole or ("Gi" if max(counts) >= units["Gi"] else "Mi")
    return [f"{count / units[suffix]:.{0 if whole else 1}f}{suffix}" if count else "0" for count in counts]


def csv_rows(report: ThresholdsReport) -> Table:
    """Return headings, and a row per threshold: its fields without ``is_derived`` and ``min_reclaim``."""
    *names, _, growth, _ = WatchedThreshold.__struct_fields__
    return csv_table(report.thresholds, *names, growth)
