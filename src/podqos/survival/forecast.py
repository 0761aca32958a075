"""The race between kernel and kubelet for one growing container: how likely each acts first, and which pod dies.

One container grows at a steady rate; all others stay constant. The kernel acts when the first limit on its way, or the
machine, is exhausted. The kubelet acts at its first pass at which a threshold is met (and has been for its grace
period); the phase of its loop when the growth begins is random. The interval of the loop is cut where the result
changes with that phase: which acts first, by which threshold, which pod ranks first. Each piece is an outcome, and its
share of the interval is its exact probability.

An eviction does not necessarily end the growth: the first pod in the ranking need not be the growing one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import By
from podqos.agent.reasons import OOMLevel
from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS
from podqos.eviction.ranking import Policy, RankedPod, Ranking, rank
from podqos.eviction.signals import Signal
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.cgroup import ROOT, parent_path
from podqos.kernel.charge import Room
from podqos.model.assumption import Assumption
from podqos.model.profile import LATEST, Profile
from podqos.model.snapshot import ContainerUsage, PodUsage, Snapshot
from podqos.model.stats import MemoryStats
from podqos.model.time_units import SECOND_US
from podqos.qos.cgroup_paths import node_path
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.classes import qos_class_of
from podqos.survival.exhaustion import Exhaustion, WatchedThreshold
from podqos.survival.memory_tree import first_oom, memory_tree
from podqos.survival.orders import KilledContainer, OOMDomain, kernel_order
from podqos.survival.processes import container_paths, container_processes
from podqos.survival.race import Race, winning_grace_period_us, winning_threshold_bytes


class Growth(Struct, frozen=True, gc=False):
    """Which container grows, and how fast. It is private memory, which only a kill frees."""

    uid: str
    container: str
    bytes_per_second: int


class Watch(Struct, frozen=True, gc=False):
    """How the kubelet watches."""

    exhaustion: Exhaustion
    """Its thresholds on this node."""
    allocatable_bytes: int | None = None
    """What all pods may use together, where that is enforced: the capacity of allocatableMemory.available."""
    interval_us: int = MONITORING_INTERVAL_SECONDS * SECOND_US
    statistics_age_us: int = 0
    """How old the figures of a pass are."""
    reaction_us: int = 0
    """From the decision until memory is freed."""
    policy: Policy | None = None


class Crossing(Struct, frozen=True, gc=False, rename="camel"):
    """A threshold, and when the growth crosses it."""

    signal: Signal
    type: str
    value: str
    """As configured."""
    amount: int
    crossed_after_seconds: Fraction
    window_seconds: Fraction
    """From there to the kernel's kill, minus all delays but the wait for a pass; zero or less is too late."""


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
    """The same in words, which ``report`` adds."""
    signal: Signal | None = None
    """Of an eviction: the threshold that acts."""
    threshold_type: str | None = None
    oom_score_adj: int | None = None
    """Of a kill."""


class Needed(Struct, frozen=True, gc=False, rename="camel"):
    """Settings with which the kubelet acts first with the wanted probability."""

    probability: Fraction
    eviction_hard_bytes: int
    attainable: bool
    """False where the node would be under pressure before anything grows."""
    soft_threshold_bytes: int | None
    """The configured soft threshold, if any."""
    soft_grace_seconds: float | None
    """The longest grace period of that threshold; null where even zero is too long."""
    system_reserved_for_soft_bytes: int | None
    """So that pods within their requests never meet it."""
    text: str
    """The same in words, which ``report`` adds."""


class Forecast(Struct, frozen=True, gc=False, rename="camel"):
    """The forecast for one container at one growth rate."""

    pod: str
    container: str
    rate_bytes_per_second: int
    out_of_memory: OOMLevel
    """Where the kernel runs out of memory for it."""
    out_of_memory_path: str
    out_of_memory_after_seconds: Fraction
    thresholds: tuple[Crossing, ...]
    kubelet_first: Fraction
    outcomes: tuple[ForecastOutcome, ...]
    """By time; the probabilities add up to one."""
    needed: Needed | None
    """Null where a limit of its own ends the growth."""


class ForecastReport(Struct, frozen=True, rename="camel"):
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


class CurvePoint(Struct, frozen=True, gc=False, rename="camel"):
    """How likely the kubelet is first at a rate."""

    rate_bytes_per_second: int
    kubelet_first: Fraction


def forecast(
    snapshot: Snapshot,
    settings: CgroupSettings,
    growth: Growth,
    watch: Watch,
    *,
    wanted: Fraction = Fraction(99, 100),
    profile: Profile = LATEST,
) -> Forecast:
    """Return how a growth ends."""
    assert growth.bytes_per_second > 0
    grower = next(entry for entry in snapshot.pods if entry.pod.metadata.uid == growth.uid)
    qos_class = qos_class_of(grower.pod, profile)
    path = container_paths(grower, qos_class, settings, profile)[growth.container]
    memory = memory_tree(snapshot, settings, profile)
    room = first_oom(memory, path)
    oom_us = max(Fraction(0), _microseconds(growth, room.until_oom_bytes))
    total_bytes = memory.oom_total_pages(room.path) * PAGE_BYTES
    field = _Field(snapshot, settings, growth, watch, profile, oom_us, OOMDomain(total_bytes, room.path))
    crossings = tuple(_crossings(field))
    outcomes = tuple(_outcomes(field, crossings))
    level = _level(room.path, path, settings)
    return Forecast(
        pod=grower.pod.key,
        container=growth.container,
        rate_bytes_per_second=growth.bytes_per_second,
        out_of_memory=level,
        out_of_memory_path=room.path,
        out_of_memory_after_seconds=oom_us / SECOND_US,
        thresholds=tuple(_documented(each, field) for each in crossings),
        kubelet_first=sum((each.probability for each in outcomes if each.by is By.KUBELET), start=Fraction(0)),
        outcomes=outcomes,
        needed=None if level in {OOMLevel.CONTAINER, OOMLevel.POD} else _needed(crossings, room, field, wanted),
    )


def grown(snapshot: Snapshot, growth: Growth, by_bytes: int) -> Snapshot:
    """Return the snapshot with that much more private memory in the growing container."""

    def container(usage: ContainerUsage) -> ContainerUsage:
        more = usage.anon_bytes + by_bytes
        return replace(usage, anon_bytes=more, is_measured=True) if usage.name == growth.container else usage

    def pod(entry: PodUsage) -> PodUsage:
        if entry.pod.metadata.uid != growth.uid:
            return entry
        stats = entry.stats
        if stats is not None and stats.memory is not None and stats.memory.working_set_bytes is not None:
            measured = (
                replace(each, memory=_more(each.memory, by_bytes)) if each.name == growth.container else each
                for each in stats.containers or ()
            )
            stats = replace(stats, memory=_more(stats.memory, by_bytes), containers=tuple(measured))
        return PodUsage(entry.pod, stats, tuple(map(container, entry.containers)))

    return replace(snapshot, pods=tuple(map(pod, snapshot.pods)))


def _more(memory: MemoryStats | None, by_bytes: int) -> MemoryStats | None:
    if memory is None or memory.working_set_bytes is None:
        return memory
    return replace(memory, working_set_bytes=memory.working_set_bytes + by_bytes)


# ---- when thresholds are crossed ----------------------------------------------------------------------------------


class _Crossing(Struct, frozen=True, gc=False):
    threshold: WatchedThreshold
    amount: int
    available_bytes: int
    """Of its signal, when the growth begins."""
    crossed_us: Fraction
    grace_us: int
    """How long after the first pass that sees it met it acts: whole intervals."""


def _crossings(field: _Field) -> Iterator[_Crossing]:
    snapshot, watch = field.snapshot, field.watch
    used_by_pods = sum(usage.working_set_bytes for entry in snapshot.pods for usage in entry.containers)
    available = {Signal.MEMORY: snapshot.node.available_bytes(used_by_pods, field.profile)}
    if watch.allocatable_bytes is not None:
        available[Signal.ALLOCATABLE_MEMORY] = watch.allocatable_bytes - used_by_pods
    for threshold in watch.exhaustion.thresholds:
        left, amount = available.get(threshold.signal), threshold.amount
        if left is not None and amount is not None:
            crossed_us = max(Fraction(0), _microseconds(field.growth, left - amount))
            grace_us = -(-threshold.grace_period_us // watch.interval_us) * watch.interval_us
            yield _Crossing(threshold, amount, left, crossed_us, grace_us)


def _documented(crossing: _Crossing, field: _Field) -> Crossing:
    delay_us = field.watch.statistics_age_us + crossing.grace_us + field.watch.reaction_us
    return Crossing(
        signal=crossing.threshold.signal,
        type=crossing.threshold.type,
        value=crossing.threshold.value,
        amount=crossing.amount,
        crossed_after_seconds=crossing.crossed_us / SECOND_US,
        window_seconds=(field.oom_us - crossing.crossed_us - delay_us) / SECOND_US,
    )


# ---- what happens, by the phase of the loop -----------------------------------------------------------------------


class _Field(Struct, frozen=True, gc=False):
    """Everything that does not depend on the phase."""

    snapshot: Snapshot
    settings: CgroupSettings
    growth: Growth
    watch: Watch
    profile: Profile
    oom_us: Fraction
    domain: OOMDomain

    def grown_bytes(self, time_us: Fraction) -> int:
        """Return by how much the container has grown."""
        return int(max(Fraction(0), time_us) * self.growth.bytes_per_second / SECOND_US)

    def evicted(self, threshold: WatchedThreshold, time_us: Fraction) -> RankedPod | None:
        """Return the pod that a pass at this moment would evict; None where all are spared."""
        seen_us = time_us - self.watch.statistics_age_us
        snapshot = grown(self.snapshot, self.growth, self.grown_bytes(seen_us))
        ranking = Ranking(threshold.signal, policy=self.watch.policy, hard=threshold.is_hard, profile=self.profile)
        ranked = rank([entry.pod for entry in snapshot.pods], snapshot.stats, ranking)
        return next((each for each in ranked if each.spared is None), None)

    def killed(self) -> KilledContainer:
        """Return the container that the kernel kills."""
        snapshot = grown(self.snapshot, self.growth, self.grown_bytes(self.oom_us))
        return kernel_order(container_processes(snapshot, self.settings, self.profile), self.domain)[0]


class _Piece(Struct, frozen=True, gc=False):
    """Phases in which one threshold acts first: a pass at phase p acts at p + ``offset_us``."""

    from_us: Fraction
    until_us: Fraction
    threshold: WatchedThreshold
    offset_us: Fraction


def _outcomes(field: _Field, crossings: Sequence[_Crossing]) -> Iterator[ForecastOutcome]:
    """Cut the interval where the result changes, and merge equal pieces into one outcome each."""
    interval = Fraction(field.watch.interval_us)
    found: dict[tuple[str, str, str], ForecastOutcome] = {}
    lost = interval
    for piece in _pieces(crossings, field.watch):
        latest = field.oom_us - field.watch.reaction_us - piece.offset_us
        for begin, finish, victim in _victims(field, piece, min(piece.until_us, latest)):
            lost -= finish - begin
            outcome = ForecastOutcome(
                by=By.KUBELET,
                pod=victim.pod.key,
                container=None,
                probability=(finish - begin) / interval,
                earliest_seconds=(begin + piece.offset_us) / SECOND_US,
                latest_seconds=(finish + piece.offset_us) / SECOND_US,
                ends_growth=victim.pod.metadata.uid == field.growth.uid,
                text="",
                signal=piece.threshold.signal,
                threshold_type=piece.threshold.type,
            )
            key = (piece.threshold.signal, piece.threshold.type, victim.pod.metadata.uid)
            found[key] = _together(found[key], outcome) if key in found else outcome
    yield from sorted(found.values(), key=lambda outcome: (outcome.earliest_seconds, outcome.latest_seconds))
    if lost:
        killed = field.killed()
        yield ForecastOutcome(
            by=By.KERNEL,
            pod=killed.pod.key,
            container=killed.usage.name,
            probability=lost / interval,
            earliest_seconds=field.oom_us / SECOND_US,
            latest_seconds=field.oom_us / SECOND_US,
            ends_growth=(killed.pod.metadata.uid, killed.usage.name) == (field.growth.uid, field.growth.container),
            text="",
            oom_score_adj=killed.score.value,
        )


def _pieces(crossings: Sequence[_Crossing], watch: Watch) -> Iterator[_Piece]:
    """Yield pieces of [0, interval) with the threshold that acts first in each."""
    if not crossings:
        return
    interval = Fraction(watch.interval_us)
    visible = [crossing.crossed_us + watch.statistics_age_us for crossing in crossings]
    cuts = sorted({Fraction(0), interval, *(moment % interval for moment in visible)})
    for begin, finish in pairwise(cuts):
        acting = []
        for place, (crossing, moment) in enumerate(zip(crossings, visible, strict=True)):
            whole = moment // interval * interval
            offset = (whole if begin >= moment - whole else whole + interval) + crossing.grace_us
            acting.append((offset, place))
        offset, place = min(acting)
        yield _Piece(begin, finish, crossings[place].threshold, Fraction(offset))


def _victims(field: _Field, piece: _Piece, end: Fraction) -> Iterator[tuple[Fraction, Fraction, RankedPod]]:
    """Yield which pod is evicted from which phase to which.

    Only the growing pod moves in the ranking, and only forwards: there is at most one change, found by halving.
    """
    begin = piece.from_us
    if begin >= end:
        return
    first = field.evicted(piece.threshold, begin + piece.offset_us)
    last = field.evicted(piece.threshold, end + piece.offset_us)
    if first is None or last is None:
        return
    if first.pod.metadata.uid == last.pod.metadata.uid:
        yield begin, end, first
        return
    low, high = begin, end
    while high - low > 1:
        middle = (low + high) / 2
        seen = field.evicted(piece.threshold, middle + piece.offset_us)
        assert seen is not None
        low, high = (middle, high) if seen.pod.metadata.uid == first.pod.metadata.uid else (low, middle)
    turn = Fraction(round(high))
    yield begin, turn, first
    yield turn, end, last


def _together(one: ForecastOutcome, other: ForecastOutcome) -> ForecastOutcome:
    return replace(
        one,
        probability=one.probability + other.probability,
        earliest_seconds=min(one.earliest_seconds, other.earliest_seconds),
        latest_seconds=max(one.latest_seconds, other.latest_seconds),
    )


# ---- what would be needed -----------------------------------------------------------------------------------------


def _needed(crossings: Sequence[_Crossing], room: Room, field: _Field, wanted: Fraction) -> Needed | None:
    watch = field.watch
    memory = [crossing for crossing in crossings if crossing.threshold.signal is Signal.MEMORY]
    if not memory:
        return None
    race = Race(
        available_bytes=memory[0].available_bytes,
        until_oom_bytes=room.until_oom_bytes,
        threshold_bytes=0,
        growth_bytes_per_second=field.growth.bytes_per_second,
        interval_us=watch.interval_us,
        statistics_age_us=watch.statistics_age_us,
        reaction_us=watch.reaction_us,
    )
    hard = winning_threshold_bytes(race, wanted)
    soft = next((each.amount for each in memory if not each.threshold.is_hard), None)
    grace_us = None if soft is None else winning_grace_period_us(replace(race, threshold_bytes=soft), wanted)
    return Needed(
        probability=wanted,
        eviction_hard_bytes=hard,
        attainable=hard < race.available_bytes,
        soft_threshold_bytes=soft,
        soft_grace_seconds=None if grace_us is None else grace_us / SECOND_US,
        system_reserved_for_soft_bytes=soft,
        text="",
    )


def _level(path: str, container_path: str, settings: CgroupSettings) -> OOMLevel:
    if path == ROOT:
        return OOMLevel.NODE
    if path == container_path:
        return OOMLevel.CONTAINER
    if path == parent_path(container_path):
        return OOMLevel.POD
    return OOMLevel.KUBEPODS if path == node_path(settings) else OOMLevel.CLASS


def _microseconds(growth: Growth, amount_bytes: int) -> Fraction:
    return Fraction(amount_bytes * SECOND_US, growth.bytes_per_second)
