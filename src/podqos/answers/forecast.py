"""The race between kernel and kubelet while a container grows: which acts first, how likely, and which pod dies.

The value is stable: fields are added, never renamed or removed; ``docs/schema/forecast.json`` is made from these
classes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import asdict, replace

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.memory import memory_notification
from podqos.agent.reasons import OOMKill, UnderPressure
from podqos.agent.state import MemoryNotification
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
from podqos.objects.selection import object_named
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.survival.forecast.forecast import SYSTEM, GrowthCourse, GrowthForecast, Impractical, Instead
from podqos.survival.forecast.forecast import forecast as forecast_growth
from podqos.survival.forecast.growing import OF_SYSTEM, GrowingNode, Growth, KubeletWatch
from podqos.survival.forecast.turning import TurningRates, turning_rates
from podqos.survival.orders.exhaustion import HARD, SOFT
from podqos.words.forecast import growth_text, needed_text, outcome_text

DEFAULT_RATES = (16 << 20, 128 << 20, 1 << 30)
"""Bytes per second."""
_SHOWN_PODS = 3
_PHASES = 10
"""At how many moments between two checks several begin to grow: the order of deaths depends on that."""
_GENERATED = re.compile(r"(?:[b-z2-9]{1,10}-)?[b-z2-9]{5}|\d+")
"""What a controller adds to the name of a workload for that of a pod."""
_CURVE_RATES = tuple(1 << exponent for exponent in range(20, 34))


class GrowthRequest(NodePodsOptions, frozen=True, kw_only=True):
    """What grows, how fast, and how the kubelet watches it."""

    growing: str | Mapping[str, int | None]
    """A pod, or ``pod:container``; ``system`` is what runs besides pods. Or several that grow at once, each with a rate
    of its own or None for ``rates``: then the name of a workload stands for all its pods."""
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


_USUAL = GrowthRequest(growing="")
_OF_ONE = {"wanted": "win", "interval_us": "interval", "reaction_us": "reaction", "fast_path": "fast_path"}
"""What cannot be given where several grow, by the name of its option."""


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


class Growing(Struct, frozen=True, gc=False, rename="camel"):
    """One of several that grow at once."""

    pod: str
    """``namespace/name``; ``system`` where the daemons of the machine grow."""
    container: str
    """Empty where the daemons do."""
    rate_bytes_per_second: int


class OrderedDeath(ForecastOutcome, frozen=True, gc=False):
    """The first death of a container or pod."""

    times: int = 1
    """How often it has been killed when each that grows has died once: one that is started again grows again."""


class DeathOrder(Struct, frozen=True, gc=False, rename="camel"):
    """Who dies in which order, at some phases of the kubelet's loop."""

    probability: Fraction
    """The share of the phases that were tried."""
    deaths: tuple[OrderedDeath, ...]
    """Until each that grows has died once."""


class GrowingTogether(Struct, frozen=True, gc=False, rename="camel"):
    """What several that grow at once do to their node."""

    growing: tuple[Growing, ...]
    orders: tuple[DeathOrder, ...]
    """The likeliest first."""


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
    """Up to which growth the kubelet always acts first, and from which the kernel always does. Null where several grow:
    then the fields above are empty, too."""
    together: tuple[GrowingTogether, ...] = ()
    """Where several grow at once: one for each rate. They are simulated, a container that is killed starts again."""

    def _listed(self) -> tuple[Forecast, ...]:
        return self.growths


def forecast(objects: Objects | NodeState, request: GrowthRequest) -> ForecastReport:
    """Forecast what becomes of a container that grows, or of several."""
    state = node_state(objects, request)
    growths = _growths(state, request)
    if len(growths) > 1:
        check_fits(state, request.profile)
        return ForecastReport(
            kubernetes_version=request.profile.version_text,
            node_memory_bytes=state.snapshot.node.memory_bytes,
            interval_seconds=MONITORING_INTERVAL_SECONDS,
            growths=(),
            curve=(),
            assumptions=state.growing_on(request.kubelet or state.kubelet or DEFAULT_KUBELET, request.profile),
            together=tuple(_together(state, request, growths)),
        )
    ((_, own),) = growths
    if own is not None:
        request = replace(request, rates=(own,))
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
    ((growth, _),) = _growths(state, request)
    return GrowingNode(snapshot, watched.settings, growth, watch, profile)


def _published(growth: GrowthForecast) -> Forecast:
    needed = growth.needed
    outcomes = tuple(ForecastOutcome(**asdict(outcome), text=outcome_text(outcome)) for outcome in growth.outcomes)
    settings = None if needed is None else Needed(**asdict(needed), text=needed_text(needed))
    return Forecast(**{**asdict(growth), "outcomes": outcomes, "needed": settings, "text": growth_text(growth)})


def _together(
    state: NodeState, request: GrowthRequest, growths: Sequence[tuple[Growth, int | None]]
) -> Iterator[GrowingTogether]:
    """Yield what becomes of several that grow, for each rate: simulated at phases that divide the kubelet's loop."""
    # One leak needs no simulator, and loading it takes a fifth of the time that the answer does.
    from podqos.answers.blast_radius import pods_of_node
    from podqos.sim.blast import Leak, leak_together

    for name, option in _OF_ONE.items():
        if getattr(request, name) != getattr(_USUAL, name):
            what = "this is computed for one growing container only"
            raise InvalidArgument(what, where=naming(option), fix="leave it out")
    kubelet, profile = request.kubelet or state.kubelet or DEFAULT_KUBELET, request.profile
    state.cgroups(kubelet, request.cgroup_version, profile)  # a kubelet that does not start there is an error
    pods = pods_of_node(state.snapshot, kubelet.config)
    keys = {entry.pod.metadata.uid: entry.pod.key for entry in state.snapshot.pods}
    is_told = memory_notification(kubelet.config, request.cgroup_version, fast_path=False) is not MemoryNotification.OFF
    # The kernel notifies a kubelet that has looked once.
    step_us, begins_us = request.interval_us // _PHASES, request.interval_us * is_told
    version = 1 if request.cgroup_version is CgroupVersion.V1 else 2
    rates = request.rates if any(own is None for _, own in growths) else (0,)
    for rate in rates:
        leaks = [Leak(keys.get(growth.uid, SYSTEM), growth.container, own or rate) for growth, own in growths]
        runs = []
        for phase in range(_PHASES):
            spec = replace(
                pods.node,
                loop_phase_us=phase * step_us,
                statistics_age_us=request.statistics_age_us,
                cgroup_version=version,
            )
            run = leak_together(
                replace(pods, node=spec), leaks, begins_us=begins_us, profile=profile, policy=request.policy
            )
            runs.append([*run])
        growing = tuple(Growing(leak.pod, leak.container, leak.bytes_per_second) for leak in leaks)
        yield GrowingTogether(growing, tuple(_orders(runs, growing, begins_us)))


def _orders(runs: Iterable[list[Entry]], growing: Sequence[Growing], begins_us: int) -> Iterator[DeathOrder]:
    """Yield the orders of the runs, each once, the likeliest first."""
    same: dict[tuple[object, ...], list[list[list[Entry]]]] = {}
    for run in runs:
        found: dict[tuple[str | None, str | None], list[Entry]] = {}
        for entry in run:
            # A pod that is evicted after one of its containers was killed is not new on the list.
            is_known = entry.kind is Kind.EVICTED and any(pod == entry.pod for pod, _ in found)
            if not is_known:
                found.setdefault((entry.pod, entry.container), []).append(entry)
        first = ((each[0].kind, each[0].pod, each[0].container) for each in found.values())
        same.setdefault((*first,), []).append([*found.values()])
    of_growing = {(each.pod, each.container) for each in growing}
    for alike in sorted(same.values(), key=len, reverse=True):
        share = Fraction(len(alike), _PHASES)
        yield DeathOrder(share, tuple(_death(each, share, of_growing, begins_us) for each in zip(*alike, strict=True)))


def _death(
    repeated: Sequence[Sequence[Entry]], probability: Fraction, growing: set[tuple[str, str]], begins_us: int
) -> OrderedDeath:
    """Return one death as it is at several phases, in the words of the first; it may be repeated at each."""
    from podqos.words.journal import fate

    entries = [entries[0] for entries in repeated]
    first, because = entries[0], entries[0].because
    assert first.pod is not None
    seconds = [Fraction(max(0, entry.time_us - begins_us), SECOND_US) for entry in entries]
    is_kill, pressure = isinstance(because, OOMKill), because if isinstance(because, UnderPressure) else None
    who = f"{first.pod} ({first.container})" if is_kill else first.pod
    return OrderedDeath(
        by=By.KERNEL if first.kind is Kind.OOM_KILLED else By.KUBELET,
        pod=first.pod,
        container=first.container if is_kill else None,
        probability=probability,
        earliest_seconds=min(seconds),
        latest_seconds=max(seconds),
        ends_growth=any(pod == first.pod and first.container in {None, container} for pod, container in growing),
        text=f"{who} {fate(first)}",
        signal=None if pressure is None else pressure.signal,
        threshold_type=None if pressure is None else HARD if pressure.hard else SOFT,
        oom_score_adj=because.oom_score_adj if isinstance(because, OOMKill) else None,
        times=max(map(len, repeated)),
    )


def _growths(state: NodeState, request: GrowthRequest) -> list[tuple[Growth, int | None]]:
    """Return what grows, each with its own rate or None."""
    pods = [entry for entry in state.snapshot.pods if entry.pod.key not in state.neighbours]
    asked = {request.growing: None} if isinstance(request.growing, str) else request.growing
    found = {text: _called(text.partition(":")[0], state, pods) for text in asked}
    names = sorted(entry.pod.key for entry in pods)
    more = f" and {len(names) - _SHOWN_PODS} more" if len(names) > _SHOWN_PODS else ""
    some = f"one of {', '.join(names[:_SHOWN_PODS])}{more}"
    if not asked or any(text.startswith(":") or not text for text in asked):
        fix = f"{some}, or {SYSTEM} for everything outside pods"
        raise InvalidArgument("no growing pod given", where=naming("growing"), fix=fix)
    unknown = [text.partition(":")[0] for text in asked if not found[text] and text != SYSTEM]
    if unknown:
        close = [get_close_matches(name, [*names, *(key.partition("/")[2] for key in names)], 1) for name in unknown]
        meant = ", ".join(match[0] for match in close if match)
        what = f"no such pod{'s' if len(unknown) > 1 else ''}: {', '.join(unknown)}"
        raise InvalidArgument(what, where=naming("growing"), fix=f"did you mean {meant}?" if meant else some)
    growths: dict[Growth, int | None] = {}
    for text, rate in asked.items():
        name, _, container = text.partition(":")
        workloads = {state.owners.get(entry.pod.metadata.uid, ("", ""))[1] for entry in found[text]}
        if len(found[text]) > 1 and (isinstance(request.growing, str) or len(workloads) > 1):
            raise InvalidArgument(f"{name} matches several pods", where=naming("growing"), fix=some)
        for growth in [_container(entry, name, container) for entry in found[text]] or [OF_SYSTEM]:
            if growth in growths:
                raise InvalidArgument(f"{text} is given twice", where=naming("growing"), fix="give each pod once")
            growths[growth] = rate
    return [*growths.items()]


def _called(name: str, state: NodeState, pods: Sequence[PodUsage]) -> list[PodUsage]:
    """Return the pod that is called so, or those of the workload: ``web``, ``shop/web`` or ``deploy/web``."""
    found = [entry for entry in pods if name in {entry.pod.key, entry.pod.metadata.name}]
    if found or not name:
        return found
    kind, bare = object_named(name) or ("", name)
    for entry in pods:
        of, owner = state.owners.get(entry.pod.metadata.uid, ("", ""))
        if bare in {owner, owner.partition("/")[2]} and kind in {"", of.lower()}:
            found.append(entry)
    # Of a pod that only its own name is known of, the name of the workload is what it begins with.
    starts = [entry for entry in pods if f"/{entry.pod.key}-".find(f"/{bare}-") >= 0]
    made = [entry for entry in starts if _GENERATED.fullmatch(entry.pod.key.partition(f"{bare}-")[2])]
    return found or made or starts


def _container(entry: PodUsage, name: str, container: str) -> Growth:
    """Return the container that is meant: the only one if none is named."""
    containers = [usage.name for usage in entry.containers]
    if not container and len(containers) == 1:
        container = containers[0]
    if container not in containers:
        what = f"{name} has no container {container}" if container else f"{name} has several containers"
        raise InvalidArgument(what, where=naming("growing"), fix=f"add one of them: {name}:{containers[0]}")
    return Growth(entry.pod.metadata.uid, container)
