"""What a kubelet leaves to pods, and when it evicts them.

The value is stable: fields are added, never renamed or removed; ``docs/schema/thresholds.json`` is made from these
classes.
"""

from __future__ import annotations

from collections.abc import Iterable

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
from podqos.model.resources import MEMORY
from podqos.model.time_units import SECOND_NS
from podqos.placement.allocatable import Division, SoftCoverage
from podqos.placement.taints import Repelled, repelled
from podqos.survival.exhaustion import SOFT, Actor, Exhaustion, ExhaustionStep, QOSReserved, WatchedThreshold
from podqos.survival.plain_node import SureGrowth
from podqos.words.durations import duration
from podqos.words.ranking import amount as amount_of


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


def memory_of(report: ThresholdsReport) -> Division | None:
    """Return how memory is divided; None where the node's is not known."""
    return next((each for each in report.allocatable if each.resource == MEMORY), None)


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
