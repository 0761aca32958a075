"""``podqos thresholds``: what a kubelet leaves to pods, and when it evicts them.

The classes below are the documented JSON shape: fields are added, never renamed or removed, and
``docs/schema/thresholds.json`` is made from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import asdict

from podqos.amounts import amount as amount_of
from podqos.amounts import duration, short_duration
from podqos.errors import InvalidArgument, InvalidConfiguration
from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS, Refused, refused
from podqos.eviction.signals import SIGNALS, Layout, NodeCondition, Signal, containerfs_follows
from podqos.eviction.thresholds import Most, ThresholdWarning, WarningKind
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY
from podqos.model.time_units import SECOND_NS
from podqos.naming import naming
from podqos.objects.assumptions import node_memory
from podqos.objects.kubelet_node import DEFAULT_KUBELET, Kubelet, rules_of
from podqos.objects.kubelet_settings import memory_allocatable
from podqos.orders.exhaustion import SOFT, Actor, ActorLevel, Exhaustion, QOSReserved, WatchedThreshold, exhaustion
from podqos.orders.plain_node import PlainNode, SureGrowth, kubelet_sure_growth, with_sure_growth
from podqos.placement.allocatable import Division, SoftCoverage
from podqos.placement.node_rules import Repelled, repelled
from podqos.text.capacity_bar import bar_lines, letter_of
from podqos.text.style import Style, columns, wrapped
from podqos.text.tables import Table, csv_table

# ---- the answer ------------------------------------------------------------------------------------------------------


class ExhaustionStep(ActorLevel, frozen=True, gc=False):
    """What happens when this much is left."""

    text: str
    """The same in words."""


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


# ---- the rule --------------------------------------------------------------------------------------------------------


def thresholds(
    kubelet: Kubelet | None = None,
    *,
    node_memory_bytes: int | None = None,
    system_memory_bytes: int = 0,
    cpu: Quantity | None = None,
    capacities: Mapping[Signal, int] | None = None,
    layout: Layout = Layout.SINGLE,
    swap_bytes: int | None = None,
    assumed: tuple[Assumption, ...] = (),
    profile: Profile = LATEST,
) -> ThresholdsReport:
    """Explain a kubelet's reservations and thresholds on a node: amounts, the order in which they act, warnings.

    ``capacities`` are those of other signals, such as ``Signal.NODEFS``; shares of an unknown capacity stay shares.
    ``swap_bytes`` is the node's swap, where that is known: without any, no pod can swap. ``assumed`` is what these rest
    on already. ``system_memory_bytes`` is used outside all pods: how fast memory may grow for the kubelet to act before
    the kernel is what ``forecast`` says of such a node, for a pod without a limit.
    """
    kubelet = kubelet or DEFAULT_KUBELET
    memory_bytes, assumptions = node_memory(node_memory_bytes, ())
    if system_memory_bytes >= memory_bytes:
        raise InvalidArgument(
            "it must be less than the node's memory", where=naming("system_memory"), fix="for example 1Gi"
        )
    known = {Signal.MEMORY: memory_bytes, **(capacities or {})}
    if layout in {Layout.SINGLE, Layout.CONTAINERS_APART}:
        _follow(known, Signal.IMAGEFS, Signal.NODEFS)
        _follow(known, Signal.IMAGEFS_INODES, Signal.NODEFS_INODES)
    for signal, source in zip(
        (Signal.CONTAINERFS, Signal.CONTAINERFS_INODES), containerfs_follows(layout) or (), strict=False
    ):
        _follow(known, signal, source)
    try:
        allocatable = memory_allocatable(kubelet.config, known, cpu)
        found = exhaustion(
            kubelet.config,
            known,
            layout=layout,
            allocatable=allocatable,
            profile=profile,
            swap_bytes=swap_bytes,
        )
        node = PlainNode(memory_bytes, kubelet.config, system_memory_bytes, profile=profile)
        found, sure_growth = with_sure_growth(found, node), kubelet_sure_growth(node)
    except InvalidConfiguration as error:
        raise error.placed(lambda where: where or kubelet.path or "") from error
    rests_on = (*rules_of(kubelet, profile), *assumptions, *assumed)
    return _report(found, profile, rests_on, sure_growth)


def _follow(capacities: dict[Signal, int], signal: Signal, source: Signal) -> None:
    """Take a filesystem that is not apart to be as large as the one it is on."""
    if source in capacities:
        capacities.setdefault(signal, capacities[source])


def _report(
    found: Exhaustion,
    profile: Profile,
    assumptions: tuple[Assumption, ...] = (),
    sure_growth: SureGrowth | None = None,
) -> ThresholdsReport:
    """Return thresholds in the documented shape."""
    return ThresholdsReport(
        kubernetes_version=profile.version_text,
        pressure=tuple(
            PressureReport(condition, repelled(condition, profile), refused(condition, profile))
            for condition in NodeCondition
        ),
        thresholds=found.thresholds,
        steps=tuple(ExhaustionStep(**asdict(step), text=step_text(step, found.thresholds)) for step in found.steps),
        warnings=tuple(_warnings(found)),
        allocatable=found.divisions,
        soft_coverage=tuple(
            SoftCoverageReport(
                *(
                    coverage.resource,
                    coverage.capacity,
                    coverage.soft,
                    coverage.used_by_daemons,
                    coverage.usable_before_soft,
                ),
                coverage.allocatable,
                coverage.is_covered,
            )
            for coverage in found.coverage
        ),
        pressure_transition_seconds=found.pressure_transition_period_ns / SECOND_NS,
        node_status_update_seconds=found.node_status_update_ns / SECOND_NS,
        soft_pod_grace_seconds=found.soft_grace.most_seconds,
        soft_pod_grace_is_capped=found.soft_grace.is_capped_by_pod,
        hard_pod_grace_seconds=found.hard_grace.most_seconds,
        qos_reserved=found.qos_reserved,
        assumptions=assumptions,
        sure_growth=sure_growth,
    )


def _warnings(found: Exhaustion) -> Iterator[WarningReport]:
    for warning in found.warnings:
        yield WarningReport(warning.kind, warning.signal, warning_text(warning, found))
    for threshold in found.too_late:
        yield WarningReport("TooLate", threshold.signal, too_late_text(threshold, found))
    for coverage in found.uncovered:
        signal = Signal.MEMORY if coverage.resource == MEMORY else Signal.NODEFS
        yield WarningReport("SoftNotCovered", signal, uncovered_text(coverage))


def memory_of(report: ThresholdsReport) -> Division | None:
    """Return how memory is divided; None where the node's is not known."""
    return next((division for division in report.allocatable if division.resource == MEMORY), None)


# ---- words -----------------------------------------------------------------------------------------------------------

_STEPS = {
    Actor.KSWAPD: "the kernel starts to reclaim page cache",
    Actor.OOM_KILLER: "the kernel kills if nothing is left to reclaim",
    Actor.HARD_THRESHOLD: "hard threshold: the kubelet evicts at its next check, within {interval} s",
    Actor.SOFT_THRESHOLD: "soft threshold: reports pressure, evicts after {}",
}


def step_text(step: ActorLevel, thresholds: Iterable[WatchedThreshold]) -> str:
    """Return what happens when this much is left."""
    met = (
        threshold.grace_seconds
        for threshold in thresholds
        if (threshold.signal, threshold.amount) == (step.signal, step.left)
    )
    return _STEPS[step.actor].format(duration(max(met, default=0)), interval=MONITORING_INTERVAL_SECONDS)


_WARNINGS = {
    WarningKind.SOFT_AFTER_HARD: "the hard threshold ({hard}) is crossed before the soft one ({soft}), which never "
    "acts",
    WarningKind.SOFT_WITHOUT_GRACE: "a grace period of zero makes the soft threshold act like a hard one",
    WarningKind.UNUSED_GRACE_PERIOD: "grace period without a soft threshold",
    WarningKind.CONTAINERFS_IGNORED: "the kubelet ignores it and uses the threshold of nodefs or imagefs",
    WarningKind.NEVER_MET: "this threshold can never be crossed",
    WarningKind.MEMORY_UNWATCHED: "no hard threshold for memory, so only {actor} (setting any hard "
    "threshold drops all defaults; mergeDefaultEvictionSettings keeps them)",
    WarningKind.DISK_UNWATCHED: "no threshold for disk space, so nothing is evicted before a disk is full (setting any "
    "hard threshold drops all defaults; mergeDefaultEvictionSettings keeps them)",
    WarningKind.ABOVE_CAPACITY: "the {type} threshold is {count} {what}, and {there} has at most {most}: the node is "
    "always under pressure and keeps evicting",
    WarningKind.SWAP_HIDES_PRESSURE: "with swap on, pods that swap out do not lower memory.available: the kubelet sees "
    "no pressure until swap is full",
}


def warning_text(warning: ThresholdWarning, exhaustion: Exhaustion) -> str:
    """Return what is wrong with a setting."""
    has_soft = any(threshold.signal is Signal.MEMORY and threshold.type == SOFT for threshold in exhaustion.thresholds)
    actor = "the soft threshold acts before the kernel" if has_soft else "the kernel acts"
    amounts = {"soft": warning.soft, "hard": warning.hard}
    shown = {
        name: "" if amount is None else amount_text(warning.signal, amount.value) for name, amount in amounts.items()
    }
    if warning.most is not None:
        shown |= {
            "type": "hard" if warning.soft is None else "soft",
            "count": f"{warning.demanded:,}",
            "most": f"{warning.most.count:,}",
            **_counted(warning.signal, warning.most),
        }
    text = _WARNINGS[warning.kind].format(actor=actor, **shown)
    return f"{text}, if the filesystem has {warning.assumed_capacity}" if warning.assumed_capacity else text


def _counted(signal: Signal, most: Most) -> dict[str, str]:
    """Return what is counted, and what has it."""
    if signal is Signal.PID:
        return {"what": "process ids", "there": "this kernel"}
    return {"what": "inodes", "there": "ext4" if most.is_ext4 else "the filesystem"}


def too_late_text(threshold: WatchedThreshold, exhaustion: Exhaustion) -> str:
    """Return that the kernel kills before a threshold is met."""
    assert exhaustion.watermarks is not None
    kept = amount_of(exhaustion.watermarks.min_bytes, SIGNALS[threshold.signal].resource)
    return f"{threshold.value} is too low: the kernel keeps {kept} free and kills before it is crossed"


def uncovered_text(coverage: SoftCoverage) -> str:
    """Return that pods within their allocatable meet a soft threshold."""
    amounts = (coverage.allocatable, coverage.usable_before_soft, coverage.soft)
    allocatable, usable, soft = (amount_of(amount.value, coverage.resource) for amount in amounts)
    text = f"pods may request {allocatable}, but cross the soft threshold at {usable}: "
    return f"{text}add {soft} to systemReserved"


def amount_text(signal: Signal, amount: int | None) -> str:
    """Return an amount of what a signal watches."""
    return "?" if amount is None else amount_of(amount, SIGNALS[signal].resource)


# ---- as text ---------------------------------------------------------------------------------------------------------

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
