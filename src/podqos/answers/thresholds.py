"""What a kubelet leaves to pods, and when it evicts them.

The value is stable: fields are added, never renamed or removed; ``docs/schema/thresholds.json`` is made from these
classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypedDict, Unpack

from msgspec import Struct
from msgspec.structs import asdict

from podqos.answers.node_options import NodeOptions
from podqos.errors import InvalidArgument, InvalidConfiguration
from podqos.eviction.admission import Refused, refused
from podqos.eviction.signals import Layout, NodeCondition, Signal, containerfs_follows
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.time_units import SECOND_NS
from podqos.naming import naming
from podqos.objects.assumptions import node_memory
from podqos.objects.kubelet_node import DEFAULT_KUBELET, Kubelet, rules_of
from podqos.objects.kubelet_settings import memory_allocatable
from podqos.placement.allocatable import Division
from podqos.placement.taints import Repelled, repelled
from podqos.survival.forecast.plain_node import PlainNode, SureGrowth, kubelet_sure_growth, with_sure_growth
from podqos.survival.orders.exhaustion import ActorLevel, Exhaustion, QOSReserved, WatchedThreshold, exhaustion
from podqos.words.thresholds import step_text, too_late_text, uncovered_text, warning_text


class ThresholdsRequest(NodeOptions, frozen=True, kw_only=True):
    """A kubelet, and what its node has."""

    system_memory_bytes: int = 0
    """Used outside all pods."""
    cpu: Quantity | None = None
    capacities: Mapping[Signal, int] | None = None
    """Those of other signals."""
    layout: Layout = Layout.SINGLE
    swap_bytes: int | None = None
    """None where that is not known."""
    assumed: tuple[Assumption, ...] = ()
    """What these rest on already."""


class ThresholdsKeywords(TypedDict, total=False):
    """``ThresholdsRequest`` as keyword arguments, but for the kubelet."""

    node_memory_bytes: int | None
    system_memory_bytes: int
    cpu: Quantity | None
    capacities: Mapping[Signal, int] | None
    layout: Layout
    swap_bytes: int | None
    assumed: tuple[Assumption, ...]
    profile: Profile


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


def thresholds(kubelet: Kubelet | None = None, **options: Unpack[ThresholdsKeywords]) -> ThresholdsReport:
    """Explain a kubelet's reservations and thresholds on a node: amounts, the order in which they act, warnings.

    ``capacities`` are those of other signals, such as ``Signal.NODEFS``; shares of an unknown capacity stay shares.
    ``swap_bytes`` is the node's swap, where that is known: without any, no pod can swap. ``assumed`` is what these rest
    on already. ``system_memory_bytes`` is used outside all pods: how fast memory may grow for the kubelet to act before
    the kernel is what ``forecast`` says of such a node, for a pod without a limit.
    """
    request = ThresholdsRequest(kubelet=kubelet, **options)
    kubelet, layout, profile = kubelet or DEFAULT_KUBELET, request.layout, request.profile
    memory_bytes, assumptions = node_memory(request.node_memory_bytes, ())
    if request.system_memory_bytes >= memory_bytes:
        raise InvalidArgument(
            "it must be less than the node's memory", where=naming("system_memory"), fix="for example 1Gi"
        )
    known = {Signal.MEMORY: memory_bytes, **(request.capacities or {})}
    if layout in {Layout.SINGLE, Layout.CONTAINERS_APART}:
        _follow(known, Signal.IMAGEFS, Signal.NODEFS)
        _follow(known, Signal.IMAGEFS_INODES, Signal.NODEFS_INODES)
    for signal, source in zip(
        (Signal.CONTAINERFS, Signal.CONTAINERFS_INODES), containerfs_follows(layout) or (), strict=False
    ):
        _follow(known, signal, source)
    try:
        allocatable = memory_allocatable(kubelet.config, known, request.cpu)
        found = exhaustion(
            kubelet.config,
            known,
            layout=layout,
            allocatable=allocatable,
            profile=profile,
            swap_bytes=request.swap_bytes,
        )
        node = PlainNode(memory_bytes, kubelet.config, request.system_memory_bytes, profile=profile)
        found, sure_growth = with_sure_growth(found, node), kubelet_sure_growth(node)
    except InvalidConfiguration as error:
        raise error.placed(lambda where: where or kubelet.path or "") from error
    rests_on = (*rules_of(kubelet, profile), *assumptions, *request.assumed)
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
