"""``podqos thresholds``: what a kubelet's eviction thresholds mean on a node, as a documented value and as text.

The value is stable: fields are added, never renamed or removed; ``docs/schema/thresholds.json`` is made from these
classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct

from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS
from podqos.eviction.signals import SIGNALS, NodeCondition, Signal
from podqos.eviction.threshold_warnings import ThresholdWarning, WarningKind
from podqos.eviction.thresholds import Threshold, ThresholdValue
from podqos.model.resources import MEMORY
from podqos.placement.allocatable import SoftCoverage
from podqos.report.ranking import amount as amount_of
from podqos.report.style import Style, columns, wrapped
from podqos.survival.exhaustion import Actor, Exhaustion, Step, ThresholdFacts

_NS_PER_SECOND = 10**9

CSV_COLUMNS = (
    "signal",
    "type",
    "value",
    "amount",
    "lets_go_at",
    "grace_seconds",
    "condition",
    "sure_growth_bytes_per_second",
)


class ThresholdReport(Struct, frozen=True, rename="camel"):
    """One threshold."""

    signal: Signal
    type: str
    """``hard`` or ``soft``."""
    value: str
    """As configured: ``100Mi`` or ``10%``."""
    amount: int | None
    """In bytes, inodes or process ids on this node; null where its capacity is not known."""
    lets_go_at: int | None
    grace_seconds: float
    condition: NodeCondition
    is_derived: bool
    """Whether it follows from another signal's: containerfs, allocatableMemory."""
    sure_growth_bytes_per_second: int | None
    """Of memory: up to this growth the kubelet is sure to act before the kernel; null where it is not, or does not
    apply."""


class StepReport(Struct, frozen=True, rename="camel"):
    """What happens when so much is left."""

    signal: Signal
    left: int
    actor: Actor
    text: str


class WarningReport(Struct, frozen=True, rename="camel"):
    """Something that looks wrong."""

    kind: str
    signal: Signal
    text: str


class QOSReservedReport(Struct, frozen=True, rename="camel"):
    """``qosReserved``: the memory that is kept from lower classes."""

    memory_percent: int
    """Of what higher classes request."""
    pods_memory: int
    """In bytes: what all pods may use together, from which that is taken off."""


class ThresholdsReport(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos thresholds -o json``."""

    kubernetes_version: str
    thresholds: tuple[ThresholdReport, ...]
    """In the order in which the kubelet acts when several are met."""
    steps: tuple[StepReport, ...]
    """What happens as a signal falls, most left first."""
    warnings: tuple[WarningReport, ...]
    qos_reserved: QOSReservedReport | None = None
    """Null where the lower classes have no ceiling."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "EvictionThresholds"


def thresholds_report(exhaustion: Exhaustion, kubernetes_version: str) -> ThresholdsReport:
    """Render thresholds into the documented shape."""
    return ThresholdsReport(
        kubernetes_version=kubernetes_version,
        thresholds=tuple(map(_threshold, exhaustion.thresholds)),
        steps=tuple(StepReport(step.signal, step.left, step.actor, _step_text(step)) for step in exhaustion.steps),
        warnings=(
            *(WarningReport(each.kind, each.signal, _warning_text(each)) for each in exhaustion.warnings),
            *(_too_late(threshold, exhaustion) for threshold in exhaustion.too_late),
            *(_uncovered(coverage) for coverage in exhaustion.uncovered),
        ),
        qos_reserved=None
        if exhaustion.qos_reserved is None
        else QOSReservedReport(exhaustion.qos_reserved.percent, exhaustion.qos_reserved.pods_bytes),
    )


def table(report: ThresholdsReport, style: Style) -> list[str]:
    """Return the thresholds, what happens in which order, and what is wrong."""
    lines = columns(
        ("SIGNAL", "TYPE", "VALUE", "ACTS BELOW", "LETS GO AT", "AFTER", "REPORTS"),
        [
            (
                each.signal,
                each.type,
                each.value + (" (derived)" if each.is_derived else ""),
                _shown(each.signal, each.amount),
                _shown(each.signal, each.lets_go_at),
                duration(each.grace_seconds) if each.grace_seconds else "at once",
                each.condition,
            )
            for each in report.thresholds
        ],
        style,
    )
    for signal in dict.fromkeys(step.signal for step in report.steps):
        lines += ["", style.strong(f"As {signal} falls")]
        for step in report.steps:
            if step.signal is signal:
                lines.append(f"  {_shown(signal, step.left):>10}  {step.text}")
    lines += ["", style.strong("The race with the kernel")] if any(_races(report)) else []
    for text in _races(report):
        lines += wrapped(text, style, "  ")
    lines += _ceilings(report, style)
    lines += ["", style.strong("What is wrong")] if report.warnings else ["", "Nothing looks wrong."]
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
        style.strong("Memory ceilings of the classes (qosReserved)"),
        f"  Burstable   {all_pods} less {kept} Guaranteed pods request",
        f"  BestEffort  that less {kept} Burstable pods request",
    ]


def csv_rows(report: ThresholdsReport) -> Iterator[tuple[str | int | float | None, ...]]:
    """Yield a row per threshold."""
    for each in report.thresholds:
        yield (
            each.signal.value,
            each.type,
            each.value,
            each.amount,
            each.lets_go_at,
            each.grace_seconds,
            each.condition.value,
            each.sure_growth_bytes_per_second,
        )


def _threshold(facts: ThresholdFacts) -> ThresholdReport:
    threshold = facts.threshold
    return ThresholdReport(
        signal=threshold.signal,
        type="hard" if threshold.is_hard else "soft",
        value=threshold_value(threshold.value),
        amount=facts.amount,
        lets_go_at=facts.let_go,
        grace_seconds=threshold.grace_period_ns / _NS_PER_SECOND,
        condition=SIGNALS[threshold.signal].condition,
        is_derived=facts.is_derived or threshold.signal is Signal.ALLOCATABLE_MEMORY,
        sure_growth_bytes_per_second=facts.sure_growth_bytes_per_second,
    )


def threshold_value(value: ThresholdValue) -> str:
    """Return a threshold as it is configured."""
    if value.quantity is not None:
        return str(value.quantity)
    return "NaN%" if math.isnan(value.fraction) else f"{value.fraction * 100:.4g}%"


def _step_text(step: Step) -> str:
    match step.actor:
        case Actor.KSWAPD:
            return "the kernel begins to take page cache back"
        case Actor.OOM_KILLER:
            return "the kernel kills, if nothing is left to take back"
        case Actor.HARD_THRESHOLD:
            return f"hard threshold: the kubelet evicts at its next look, within {MONITORING_INTERVAL_SECONDS} s"
        case Actor.SOFT_THRESHOLD:
            assert step.threshold is not None
            grace = duration(step.threshold.grace_period_ns / _NS_PER_SECOND)
            return f"soft threshold: the node reports pressure, the kubelet evicts after {grace}"


_WARNINGS = {
    WarningKind.SOFT_AFTER_HARD: "the soft threshold ({soft}) is not met before the hard one ({hard}) and never acts",
    WarningKind.SOFT_WITHOUT_GRACE: "a grace period of zero makes the soft threshold a hard one",
    WarningKind.UNUSED_GRACE_PERIOD: "there is a grace period, but no soft threshold",
    WarningKind.CONTAINERFS_IGNORED: "the kubelet ignores this and takes the threshold of nodefs or imagefs",
    WarningKind.NEVER_MET: "nothing is ever less than this share",
    WarningKind.MEMORY_UNWATCHED: "there is no hard threshold for memory, so only the kernel acts (naming any hard "
    "threshold drops all defaults; mergeDefaultEvictionSettings keeps them)",
    WarningKind.SWAP_HIDES_PRESSURE: "with swap on, pods that swap out do not lower memory.available: pressure goes "
    "unseen until swap is full",
}


def _warning_text(warning: ThresholdWarning) -> str:
    return _WARNINGS[warning.kind].format(soft=warning.soft, hard=warning.hard)


def _too_late(threshold: Threshold, exhaustion: Exhaustion) -> WarningReport:
    assert exhaustion.watermarks is not None
    kept = amount_of(exhaustion.watermarks.min_bytes, SIGNALS[threshold.signal].resource)
    value = threshold_value(threshold.value)
    text = f"{value} is too late: the kernel keeps {kept} of this machine free and kills before that"
    return WarningReport("TooLate", threshold.signal, text)


def _uncovered(coverage: SoftCoverage) -> WarningReport:
    signal = Signal.MEMORY if coverage.resource == MEMORY else Signal.NODEFS
    allocatable, usable, soft = (
        amount_of(each.value, coverage.resource)
        for each in (coverage.allocatable, coverage.usable_before_soft, coverage.soft)
    )
    text = f"pods may request {allocatable} together, but meet the soft threshold at {usable}: "
    return WarningReport("SoftNotCovered", signal, f"{text}add {soft} to systemReserved")


def _races(report: ThresholdsReport) -> Iterator[str]:
    for each in report.thresholds:
        growth = each.sure_growth_bytes_per_second
        if growth is not None:
            where = "all pods together" if each.signal is Signal.ALLOCATABLE_MEMORY else "the node"
            rate = f"{amount_of(growth, MEMORY)}/s"
            yield f"{each.signal} {each.type}: sure to act first while memory of {where} grows by less than {rate}"


def _shown(signal: Signal, amount: int | None) -> str:
    return "?" if amount is None else amount_of(amount, SIGNALS[signal].resource)


def duration(seconds: float) -> str:
    """Return a time in seconds, or in minutes from one on."""
    if seconds < 60:
        return f"{seconds:g} s"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:g} min" + (f" {rest:g} s" if rest else "")
