"""``podqos thresholds``: what a kubelet leaves to pods, and when it evicts them, as a documented value and as text.

The value is stable: fields are added, never renamed or removed; ``docs/schema/thresholds.json`` is made from these
classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.admission import Refused, refused
from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS
from podqos.eviction.signals import SIGNALS, NodeCondition, Signal
from podqos.eviction.threshold_warnings import ThresholdWarning, WarningKind
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY
from podqos.model.time_units import SECOND_NS
from podqos.placement.allocatable import Division, SoftCoverage
from podqos.placement.taints import Repelled, repelled
from podqos.report.survival.capacity_bar import bar_lines, letter_of
from podqos.report.text.style import Style, columns, wrapped
from podqos.report.text.tables import Table, csv_table
from podqos.survival.exhaustion import SOFT, Actor, Exhaustion, ExhaustionStep, QOSReserved, WatchedThreshold
from podqos.survival.plain_node import SureGrowth
from podqos.words.durations import duration, short_duration
from podqos.words.ranking import amount as amount_of

_NOTHING = "–"
# Those that can be set: the others are derived from them.
_DERIVED = {Signal.ALLOCATABLE_MEMORY, Signal.CONTAINERFS, Signal.CONTAINERFS_INODES}
_OWN_SIGNALS = tuple(signal for signal in Signal if signal not in _DERIVED)
_LABEL = len("Scheduling  ")


class SoftCoverageReport(Struct, frozen=True, rename="camel"):
    """Whether pods within their allocatable stay clear of a soft threshold: capacity less soft less daemons."""

    resource: str
    capacity: Quantity
    soft_eviction: Quantity
    used_by_daemons: Quantity
    """The reservations, without the soft threshold where system-reserved covers it."""
    usable_before_soft: Quantity
    allocatable: Quantity
    covered: bool
    """Whether pods can use at least their allocatable before the soft threshold is met."""


class WarningReport(Struct, frozen=True):
    """A setting that looks wrong."""

    kind: str
    signal: Signal
    text: str


class PressureReport(Struct, frozen=True, rename="camel"):
    """Which pods a condition of the node keeps away."""

    condition: NodeCondition
    repels: Repelled
    """At scheduling."""
    refuses: Refused
    """By the kubelet, of pods that are bound to it; critical ones never."""


class ThresholdsReport(Listing[WatchedThreshold], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos thresholds -o json``."""

    kubernetes_version: str
    thresholds: tuple[WatchedThreshold, ...]
    """In the order in which the kubelet acts when several are met."""
    steps: tuple[ExhaustionStep, ...]
    """What happens as a signal falls, most left first."""
    warnings: tuple[WarningReport, ...]
    allocatable: tuple[Division, ...] = ()
    """Of memory; of cpu and ephemeral-storage where their capacities are known."""
    soft_coverage: tuple[SoftCoverageReport, ...] = ()
    """Of every soft threshold of memory and nodefs."""
    pressure_transition_seconds: float = 0
    """How long the node reports pressure after it ends."""
    node_status_update_seconds: float = 0
    """How often the node updates its status: the scheduler sees pressure after that much at most."""
    soft_pod_grace_seconds: int | None = None
    """What a pod evicted by a soft threshold is given at most; null: its own grace period."""
    soft_pod_grace_is_capped: bool = False
    """Whether a shorter grace period of the pod's own counts."""
    hard_pod_grace_seconds: int | None = None
    """What a pod evicted by a hard threshold is given; null: its own grace period."""
    pressure: tuple[PressureReport, ...] = ()
    """Which pods each condition keeps away."""
    qos_reserved: QOSReserved | None = None
    """Null where the lower classes have no ceiling."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "EvictionThresholds"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""
    sure_growth: SureGrowth | None = None
    """Up to which growth the kubelet acts before the kernel: the forecast for a pod without a limit."""

    def _listed(self) -> tuple[WatchedThreshold, ...]:
        return self.thresholds


def thresholds_report(
    exhaustion: Exhaustion,
    profile: Profile,
    assumptions: tuple[Assumption, ...] = (),
    sure_growth: SureGrowth | None = None,
) -> ThresholdsReport:
    """Render thresholds into the documented shape."""
    return ThresholdsReport(
        kubernetes_version=profile.version_text,
        pressure=tuple(PressureReport(each, repelled(each, profile), refused(each, profile)) for each in NodeCondition),
        thresholds=exhaustion.thresholds,
        steps=tuple(replace(step, text=_step_text(step, exhaustion.thresholds)) for step in exhaustion.steps),
        warnings=(
            *(WarningReport(each.kind, each.signal, _warning_text(each, exhaustion)) for each in exhaustion.warnings),
            *(_too_late(threshold, exhaustion) for threshold in exhaustion.too_late),
            *(_uncovered(coverage) for coverage in exhaustion.uncovered),
        ),
        allocatable=exhaustion.divisions,
        soft_coverage=tuple(
            SoftCoverageReport(
                *(each.resource, each.capacity, each.soft, each.used_by_daemons, each.usable_before_soft),
                each.allocatable,
                each.is_covered,
            )
            for each in exhaustion.coverage
        ),
        pressure_transition_seconds=exhaustion.pressure_transition_period_ns / SECOND_NS,
        node_status_update_seconds=exhaustion.node_status_update_ns / SECOND_NS,
        soft_pod_grace_seconds=exhaustion.soft_grace.most_seconds,
        soft_pod_grace_is_capped=exhaustion.soft_grace.is_capped_by_pod,
        hard_pod_grace_seconds=exhaustion.hard_grace.most_seconds,
        qos_reserved=exhaustion.qos_reserved,
        assumptions=assumptions,
        sure_growth=sure_growth,
    )


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


def memory_of(report: ThresholdsReport) -> Division | None:
    """Return how memory is divided; None where the node's is not known."""
    return next((each for each in report.allocatable if each.resource == MEMORY), None)


def _allocatable_lines(report: ThresholdsReport, style: Style) -> list[str]:
    """Return the arithmetic of each resource, and of its soft threshold: whether pods stay clear of it."""
    rows = []
    for each in report.allocatable:
        amounts = (each.allocatable, each.capacity, each.kube_reserved, each.system_reserved, each.hard_eviction)
        left, *terms = _in_one_unit(each.resource, *amounts)
        rows.append((each.resource, f"{style.strong(left)} = {' − '.join(terms)}"))
        rows += [
            ("  until soft", _soft_line(soft, style)) for soft in report.soft_coverage if soft.resource == each.resource
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
    signals = dict.fromkeys(each.signal for each in report.thresholds)
    rows = []
    for signal in signals:
        own = [each for each in report.thresholds if each.signal is signal]
        soft = next((each for each in own if not each.is_hard), None)
        reclaims = dict.fromkeys(each.min_reclaim for each in own if each.min_reclaim is not None)
        rows.append(
            (
                signal + ("*" if own[0].is_derived else ""),
                ", ".join(_stated(each) for each in own if each.is_hard) or _NOTHING,
                _NOTHING if soft is None else _stated(soft),
                _NOTHING if soft is None else short_duration(soft.grace_seconds),
                ", ".join(f"+{reclaim}" for reclaim in reclaims) or _NOTHING,
                own[0].condition.removesuffix("Pressure"),
            )
        )
    lines = columns(("SIGNAL", "HARD", "SOFT", "AFTER", "RECLAIM", "PRESSURE"), rows, style)
    if any(each.is_derived for each in report.thresholds):
        lines.append("* derived: allocatableMemory from memory, containerfs from its filesystem")
    if unwatched := [signal for signal in _OWN_SIGNALS if signal not in signals]:
        lines += wrapped(f"no threshold: {', '.join(unwatched)}", style, "")
    transition = short_duration(report.pressure_transition_seconds)
    status = short_duration(report.node_status_update_seconds)
    return [
        *lines,
        "",
        f"{style.strong('Transition')}  pressure is reported for {transition} after it ends",
        f"{style.strong('Status')}      the scheduler sees pressure within {status} (the node's status update)",
        f"{style.strong('Pod grace')}   {_grace(report)}",
        *_labelled("Scheduling", _by_condition(report, lambda each: _REPELS[each.repels], "repels"), style),
        *_labelled("Admission", _by_condition(report, lambda each: _REFUSES[each.refuses], "rejects"), style),
    ]


def _labelled(label: str, text: str, style: Style) -> list[str]:
    return wrapped(text, style, " " * _LABEL, style.strong(label) + " " * (_LABEL - len(label)))


_REPELS = {
    Repelled.WITHOUT_TOLERATION: "every pod without its toleration",
    Repelled.ALL: "every pod",
    Repelled.BEST_EFFORT: "BestEffort pods",
}
_REFUSES = {
    Refused.BEST_EFFORT: "BestEffort pods",
    Refused.BEST_EFFORT_WITHOUT_TOLERATION: "BestEffort pods without its toleration",
    Refused.ALL: "all but critical pods",
}


def _by_condition(report: ThresholdsReport, words: Callable[[PressureReport], str], verb: str) -> str:
    """Return which pods each condition keeps away, those alike together."""
    found: dict[str, list[str]] = {}
    for each in report.pressure:
        found.setdefault(words(each), []).append(each.condition.removesuffix("Pressure"))
    if len(found) == 1:
        return f"pressure of any kind {verb} {next(iter(found))}"
    parts = [f"{'- and '.join(names)}Pressure {verb} {what}" for what, names in found.items()]
    return ", ".join([parts[0], *(each.replace(f" {verb} ", " ", 1) for each in parts[1:])])


def _memory_lines(report: ThresholdsReport, style: Style) -> list[str]:
    """Return what happens as memory runs out, and the growth up to which the kubelet is sure to act first."""
    steps = [step for step in report.steps if step.signal is Signal.MEMORY]
    lines = ["", style.strong(f"As {Signal.MEMORY} falls")] if steps else []
    lines += [f"  {letter_of(step)} {_shown(step.signal, step.left):>8}  {step.text}" for step in steps]
    return [*lines, *_sure_growth_lines(report, style)]


def _sure_growth_lines(report: ThresholdsReport, style: Style) -> list[str]:
    """Return how fast memory may grow: by each threshold, and if the system uses what is reserved for it."""
    sure = report.sure_growth
    watched = [each for each in report.thresholds if each.amount is not None and SIGNALS[each.signal].is_memory]
    if sure is None or not watched:
        return []
    if sure.bytes_per_second is None:
        return ["", style.alarm("The kernel acts before the kubelet, however slowly memory grows")]
    lines = ["", style.strong("The kubelet is sure to act before the kernel while memory grows by less than")]
    for each in watched:
        if each.sure_growth_bytes_per_second is not None:
            whose = " (of all pods together)" if each.signal is Signal.ALLOCATABLE_MEMORY else ""
            lines.append(f"  {_rate(each.sure_growth_bytes_per_second)}  {each.signal}, {each.type}{whose}")
    if sure.reserved_in_use_bytes_per_second != sure.bytes_per_second:
        slower, reserved = sure.reserved_in_use_bytes_per_second, amount_of(sure.reserved_bytes, MEMORY)
        while_in_use = f"while the system uses the {reserved} that are reserved"
        never = f"  {'–':>10}  {while_in_use}: the kernel acts first, however slowly memory grows"
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
        style.strong("Memory ceilings of the classes (qosReserved)"),
        f"  Burstable   {all_pods} less {kept} Guaranteed pods request",
        f"  BestEffort  that less {kept} Burstable pods request",
    ]


def _stated(threshold: WatchedThreshold) -> str:
    """Return a threshold as configured; for a share also its amount, if known."""
    if threshold.amount is None or not threshold.value.endswith("%"):
        return threshold.value
    return f"{threshold.value}={_shown(threshold.signal, threshold.amount)}"


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


_STEPS = {
    Actor.KSWAPD: "the kernel starts to reclaim page cache",
    Actor.OOM_KILLER: "the kernel kills if nothing is left to reclaim",
    Actor.HARD_THRESHOLD: "hard threshold: the kubelet evicts at its next look, within {interval} s",
    Actor.SOFT_THRESHOLD: "soft threshold: reports pressure, evicts after {}",
}


def _step_text(step: ExhaustionStep, thresholds: Iterable[WatchedThreshold]) -> str:
    met = (each.grace_seconds for each in thresholds if (each.signal, each.amount) == (step.signal, step.left))
    return _STEPS[step.actor].format(duration(max(met, default=0)), interval=MONITORING_INTERVAL_SECONDS)


_WARNINGS = {
    WarningKind.SOFT_AFTER_HARD: "the hard threshold ({hard}) is met before the soft one ({soft}), which never acts",
    WarningKind.SOFT_WITHOUT_GRACE: "a grace period of zero makes the soft threshold a hard one",
    WarningKind.UNUSED_GRACE_PERIOD: "there is a grace period, but no soft threshold",
    WarningKind.CONTAINERFS_IGNORED: "the kubelet ignores this and uses the threshold of nodefs or imagefs",
    WarningKind.NEVER_MET: "this threshold can never be met",
    WarningKind.MEMORY_UNWATCHED: "there is no hard threshold for memory, so only {actor} (naming any hard "
    "threshold drops all defaults; mergeDefaultEvictionSettings keeps them)",
    WarningKind.SWAP_HIDES_PRESSURE: "with swap on, pods that swap out do not lower memory.available: the kubelet sees "
    "no pressure until swap is full",
}


def _warning_text(warning: ThresholdWarning, exhaustion: Exhaustion) -> str:
    has_soft = any(each.signal is Signal.MEMORY and each.type == SOFT for each in exhaustion.thresholds)
    actor = "the soft one acts before the kernel" if has_soft else "the kernel acts"
    amounts = {"soft": warning.soft, "hard": warning.hard}
    shown = {name: "" if amount is None else _shown(warning.signal, amount.value) for name, amount in amounts.items()}
    text = _WARNINGS[warning.kind].format(actor=actor, **shown)
    return f"{text}, if the filesystem has {warning.assumed_capacity}" if warning.assumed_capacity else text


def _too_late(threshold: WatchedThreshold, exhaustion: Exhaustion) -> WarningReport:
    assert exhaustion.watermarks is not None
    kept = amount_of(exhaustion.watermarks.min_bytes, SIGNALS[threshold.signal].resource)
    text = f"{threshold.value} is too low: the kernel keeps {kept} of this machine free and kills before that"
    return WarningReport("TooLate", threshold.signal, text)


def _uncovered(coverage: SoftCoverage) -> WarningReport:
    signal = Signal.MEMORY if coverage.resource == MEMORY else Signal.NODEFS
    amounts = (coverage.allocatable, coverage.usable_before_soft, coverage.soft)
    allocatable, usable, soft = (amount_of(each.value, coverage.resource) for each in amounts)
    text = f"pods may request {allocatable} together, but meet the soft threshold at {usable}: "
    return WarningReport("SoftNotCovered", signal, f"{text}add {soft} to systemReserved")


def _shown(signal: Signal, amount: int | None) -> str:
    return "?" if amount is None else amount_of(amount, SIGNALS[signal].resource)
