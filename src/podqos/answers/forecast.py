"""The race between kernel and kubelet while a container grows: which acts first, how likely, and which pod dies.

The value is stable: fields are added, never renamed or removed; ``docs/schema/forecast.json`` is made from these
classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import asdict

from podqos.agent.journal import By
from podqos.agent.memory import memory_notification
from podqos.answers.node_options import NodePodsKeywords, NodePodsOptions
from podqos.answers.node_state import NodeState, check_fits, node_state
from podqos.answers.watched_memory import watched_memory
from podqos.errors import InvalidArgument
from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS
from podqos.eviction.ranking import Policy
from podqos.eviction.signals import Signal
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.model.snapshot import PodUsage
from podqos.model.time_units import SECOND_US
from podqos.naming import naming
from podqos.objects.kubelet_node import DEFAULT_KUBELET
from podqos.objects.objects import Objects
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.survival.forecast.forecast import SYSTEM, GrowthCourse, GrowthForecast, Impractical, Instead
from podqos.survival.forecast.forecast import forecast as forecast_growth
from podqos.survival.forecast.growing import OF_SYSTEM, GrowingNode, Growth, KubeletWatch
from podqos.survival.forecast.turning import TurningRates, turning_rates
from podqos.words.forecast import growth_text, needed_text, outcome_text

DEFAULT_RATES = (16 << 20, 128 << 20, 1 << 30)
"""Bytes per second."""
_SHOWN_PODS = 3
_CURVE_RATES = tuple(1 << exponent for exponent in range(20, 34))


class GrowthRequest(NodePodsOptions, frozen=True, kw_only=True):
    """What grows, how fast, and how the kubelet watches it."""

    growing: str
    """A pod, or ``pod:container``; ``system`` is what runs besides pods."""
    rates: Sequence[int] = DEFAULT_RATES
    """Bytes per second."""
    wanted: Fraction = Fraction(99, 100)
    """How often the kubelet is to act first, for which the settings are computed."""
    interval_us: int = MONITORING_INTERVAL_SECONDS * SECOND_US
    """Between two checks."""
    statistics_age_us: int = 0
    """Of the statistics that a check uses."""
    reaction_us: int = 0
    """From the decision until memory is freed."""
    fast_path: bool = False
    """Whether it checks as soon as a hard threshold is met, as ``podqos node`` does."""
    policy: Policy | None = None
    """None: that of the Kubernetes version."""
    cgroup_version: CgroupVersion = CgroupVersion.V2


class GrowthKeywords(NodePodsKeywords, total=False):
    """``GrowthRequest`` as keyword arguments."""

    rates: Sequence[int]
    wanted: Fraction
    interval_us: int
    statistics_age_us: int
    reaction_us: int
    fast_path: bool
    policy: Policy | None
    cgroup_version: CgroupVersion


class ForecastOutcome(Struct, frozen=True, gc=False, rename="camel"):
    """One possible outcome."""

    by: By
    pod: str
    container: str | None
    """The container that the kernel kills; an eviction ends the whole pod."""
    probability: Fraction
    earliest_seconds: Fraction
    """Since the growth began."""
    latest_seconds: Fraction
    ends_growth: bool
    """Whether the growing container is the victim."""
    text: str
    """The same in words."""
    signal: Signal | None = None
    """Of an eviction: the threshold that acts."""
    threshold_type: str | None = None
    oom_score_adj: int | None = None
    """Of a kill."""


class Needed(Struct, frozen=True, gc=False, rename="camel"):
    """Settings with which the kubelet acts first with the wanted probability."""

    probability: Fraction
    eviction_hard_bytes: int | None
    """In whole MiB. The setting also makes the threshold of allocatableMemory.available, where that is enforced. Null
    where none is enough."""
    attainable: bool
    """False where there is none, or the node would be under pressure before anything grows."""
    soft_threshold_bytes: int | None
    """The configured soft threshold, if any."""
    soft_grace_seconds: float | None
    """The longest grace period of that threshold; null where even zero is too long."""
    system_reserved_for_soft_bytes: int | None
    """So that pods within their requests never meet it."""
    text: str
    """The same in words."""
    impractical: Impractical | None = None
    """Why the hard threshold would not be set; null where it is a usual one."""
    instead: Instead | None = None
    """What to do where it is impractical."""
    allocatable_bytes: int | None = None
    """What pods may request with that hard threshold; null where there is none."""
    takes_bytes: int = 0
    """By how much that is less than now."""
    displaced: tuple[str, ...] = ()
    """Pods that would no longer fit, as ``namespace/name``: a kubelet that is restarted admits them again, oldest
    first; where their age is not known, by priority, as they are scheduled. Everything else here is with all pods where
    they are."""


class Forecast(GrowthCourse, frozen=True, gc=False):
    """The forecast for one container at one growth rate."""

    outcomes: tuple[ForecastOutcome, ...]
    """By time; the probabilities add up to one."""
    needed: Needed | None
    """Null where a limit of its own ends the growth."""
    text: str = ""
    """How it ends, as one sentence."""


class CurvePoint(Struct, frozen=True, gc=False, rename="camel"):
    """Chance that the kubelet acts first at a rate."""

    rate_bytes_per_second: int
    kubelet_first: Fraction


class ForecastReport(Listing[Forecast], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos forecast -o json``."""

    kubernetes_version: str
    node_memory_bytes: int
    interval_seconds: float
    growths: tuple[Forecast, ...]
    curve: tuple[CurvePoint, ...]
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Forecast"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""
    turning: TurningRates | None = None
    """Up to which growth the kubelet always acts first, and from which the kernel always does."""

    def _listed(self) -> tuple[Forecast, ...]:
        return self.growths


def forecast(objects: Objects | NodeState, request: GrowthRequest) -> ForecastReport:
    """Forecast what becomes of a container that grows."""
    state = node_state(objects, request)
    node = growing_node(state, request)
    return ForecastReport(
        kubernetes_version=request.profile.version_text,
        node_memory_bytes=state.snapshot.node.memory_bytes,
        interval_seconds=request.interval_us / SECOND_US,
        growths=tuple(_published(forecast_growth(node, rate, wanted=request.wanted)) for rate in request.rates),
        curve=tuple(CurvePoint(rate, node.kubelet_first(rate)) for rate in _CURVE_RATES),
        assumptions=state.growing_on(request.kubelet or state.kubelet or DEFAULT_KUBELET, request.profile),
        turning=turning_rates(node),
    )


def growing_node(state: NodeState, request: GrowthRequest) -> GrowingNode:
    """Return a node while what is asked about grows."""
    profile = request.profile
    kubelet = request.kubelet or state.kubelet or DEFAULT_KUBELET
    check_fits(state, profile)
    snapshot = state.snapshot
    watched = watched_memory(state, profile, kubelet=kubelet, cgroup_version=request.cgroup_version)
    watch = KubeletWatch(
        watched.exhaustion,
        watched.limit_bytes,
        # As for ``place``: what the Node states counts where the kubelet's settings are not given.
        requestable_bytes=None if kubelet.is_stated else state.allocatable_bytes,
        interval_us=request.interval_us,
        statistics_age_us=request.statistics_age_us,
        reaction_us=request.reaction_us,
        notification=memory_notification(kubelet.config, request.cgroup_version, fast_path=request.fast_path),
        policy=request.policy,
    )
    chosen = [entry for entry in snapshot.pods if entry.pod.key not in state.neighbours]
    return GrowingNode(snapshot, watched.settings, _growing(request.growing, chosen), watch, profile)


def _published(growth: GrowthForecast) -> Forecast:
    needed = growth.needed
    outcomes = tuple(ForecastOutcome(**asdict(outcome), text=outcome_text(outcome)) for outcome in growth.outcomes)
    settings = None if needed is None else Needed(**asdict(needed), text=needed_text(needed))
    return Forecast(**{**asdict(growth), "outcomes": outcomes, "needed": settings, "text": growth_text(growth)})


def _growing(text: str, pods: Sequence[PodUsage]) -> Growth:
    """Return the pod and the container that are meant, or the daemons, unless a pod is called that."""
    names = sorted(entry.pod.key for entry in pods)
    more = f" and {len(names) - _SHOWN_PODS} more" if len(names) > _SHOWN_PODS else ""
    some = f"one of {', '.join(names[:_SHOWN_PODS])}{more}"
    name, _, container = text.partition(":")
    if not name:
        fix = f"{some}, or {SYSTEM} for everything outside pods"
        raise InvalidArgument("no growing pod given", where=naming("growing"), fix=fix)
    found = [entry for entry in pods if name in {entry.pod.key, entry.pod.metadata.name}]
    if not found:
        # The name of a workload will do where it has one pod.
        found = [entry for entry in pods if f"/{entry.pod.key}-".find(f"/{name}-") >= 0]
    if not found and text == SYSTEM:
        return OF_SYSTEM
    if len(found) != 1:
        close = get_close_matches(name, [*names, *(key.partition("/")[2] for key in names)], 1)
        what = f"{name} matches several pods" if found else f"no such pod: {name}"
        raise InvalidArgument(
            what, where=naming("growing"), fix=f"did you mean {close[0]}?" if close and not found else some
        )
    containers = [usage.name for usage in found[0].containers]
    if not container and len(containers) == 1:
        container = containers[0]
    if container not in containers:
        what = f"{name} has no container {container}" if container else f"{name} has several containers"
        raise InvalidArgument(what, where=naming("growing"), fix=f"add one of them: {name}:{containers[0]}")
    return Growth(found[0].pod.metadata.uid, container)
