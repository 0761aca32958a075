"""A node while one of its containers grows: what kernel and kubelet do about it, for every phase of the kubelet's loop.

The container grows at a steady rate; all others want what they have. The kernel reclaims as in the simulator
(``kernel.growth``): page cache first, then what may be swapped. It kills when a limit on the way, or the machine, has
nothing left to give. The kubelet acts at its first pass at which a threshold is met, and has been for its grace period.
Reclaim of active page cache relieves the kubelet as well, so a threshold can be met, cleared and met again.

Instead of a container the daemons of the machine can grow. What they use counts for the machine but not for all pods
together, and nothing that is done to pods ends it.

Passes come at regular intervals, and where in its interval the loop is when something begins is its *phase*. Given when
a pass would act, as spans of time, the phases are divided into pieces: those of a piece have their first acting pass in
the same turn of the loop, by the same threshold. The length of a piece is its probability: exact, for every phase at
once. Spans are whole numbers, half open, sorted, and do not overlap.

What is reclaimed at which size does not depend on the rate, so it is computed once. Times are in *ticks*: bytes of
growth × 1,000,000, which are whole numbers for whole microseconds at any rate.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.state import MemoryNotification
from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS
from podqos.eviction.ranking import Policy, RankedPod, Ranking, rank
from podqos.eviction.signals import SIGNALS, Signal
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.cgroup import ROOT
from podqos.kernel.growth import Course, grow
from podqos.kernel.memcg import Kind
from podqos.model.profile import LATEST, Profile
from podqos.model.snapshot import ContainerUsage, PodUsage, Snapshot
from podqos.model.stats import MemoryStats
from podqos.model.time_units import SECOND_US
from podqos.orders.exhaustion import HARD, SOFT, Exhaustion
from podqos.orders.memory import OOMDomain, container_paths, container_processes, memory_signals, memory_tree
from podqos.orders.orders import KilledContainer, kernel_order
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.classes import qos_class_of

Span = tuple[int, int]
_NEVER = 1 << 200


class Alarm(Struct, frozen=True, gc=False):
    """A look between two passes: the passes from ``begin`` until ``end``, unless they act, lead to one at ``at``."""

    begin: int
    end: int
    at: int
    """Before the next pass."""
    place: int
    """Of the threshold that acts then."""


class ActingPiece(Struct, frozen=True, gc=False):
    """Phases with the same outcome."""

    place: int
    """Of the threshold among those given."""
    begin: int
    end: int
    first: int
    """When the first of these phases acts."""
    is_at_once: bool = False
    """Whether all of them act then, by an alarm; otherwise each as much later as the phase is."""


def first_acts(
    thresholds: Sequence[Sequence[Span]], interval: int, alarms: Iterable[Alarm] = ()
) -> Iterator[ActingPiece]:
    """Yield the pieces, by turn of the loop; phases that are in none have no pass that acts.

    ``thresholds`` are the spans of each. Where several act in one pass the first counts.
    """
    waiting: Sequence[Span] = [(0, interval)]
    ahead = [[*reversed(spans)] for spans in thresholds]
    looks: dict[int, list[Alarm]] = {}
    for alarm in sorted(alarms, key=lambda alarm: alarm.at):
        for turn in range(alarm.begin // interval, -(-alarm.end // interval)):
            looks.setdefault(turn, []).append(alarm)
    while waiting and (looks or any(ahead)):
        turn = min(*looks, *(spans[-1][0] // interval for spans in ahead if spans), _NEVER)
        begin, end = turn * interval, (turn + 1) * interval
        for place, spans in enumerate(ahead):
            found = _found(_cut(spans, end), begin, end, waiting)
            waiting = without(waiting, found)
            yield from (ActingPiece(place, *piece, begin + piece[0]) for piece in found)
        for alarm in looks.pop(turn, ()):
            found = _found([(alarm.begin, alarm.end)], begin, end, waiting)
            waiting = without(waiting, found)
            yield from (ActingPiece(alarm.place, *piece, alarm.at, is_at_once=True) for piece in found)


def _found(spans: Iterable[Span], begin: int, end: int, waiting: Sequence[Span]) -> list[Span]:
    """Return the waiting phases whose pass in the turn from ``begin`` until ``end`` is in a span."""
    return overlap([(max(one, begin) - begin, min(other, end) - begin) for one, other in spans], waiting)


def lasting(spans: Sequence[Span], interval: int, passes: int) -> Sequence[Span]:
    """Return when a pass is in a span, and so many passes before it were, too."""
    done = 0
    while spans and done < passes:
        more = min(done + 1, passes - done)
        spans = overlap(spans, [(begin + more * interval, end + more * interval) for begin, end in spans])
        done += more
    return spans


def overlap(one: Sequence[Span], other: Sequence[Span]) -> list[Span]:
    """Return what is in both."""
    found: list[Span] = []
    i = j = 0
    while i < len(one) and j < len(other):
        begin, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if begin < end:
            found.append((begin, end))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return found


def union(one: Sequence[Span], other: Sequence[Span]) -> list[Span]:
    """Return what is in either."""
    found: list[Span] = []
    for begin, end in sorted((*one, *other)):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


def without(spans: Sequence[Span], taken: Sequence[Span]) -> Sequence[Span]:
    """Return what is in the first and not in the second."""
    if not spans or not taken:
        return spans
    ends = (min(spans[0][0], taken[0][0]), *(end for _, end in taken))
    begins = (*(begin for begin, _ in taken), max(spans[-1][1], taken[-1][1]))
    return overlap(spans, [*zip(ends, begins, strict=True)])


def _cut(spans: list[Span], end: int) -> Iterator[Span]:
    """Take what is before ``end`` off a list whose first span is its last."""
    while spans and spans[-1][0] < end:
        begin, until = spans.pop()
        yield begin, until
        if until > end:
            spans.append((end, until))
            return


_PLACES = {signal: place for place, signal in enumerate(SIGNALS)}
_FOR_EVER = 1 << 80
"""More bytes than any machine has."""
_LATER = [(0, 1 << 120)]
"""The time of the growth, in ticks."""


class Growth(Struct, frozen=True, gc=False):
    """Which container grows. It is private memory, which only swap or a kill takes from it."""

    uid: str
    container: str

    @property
    def is_of_system(self) -> bool:
        """Whether it is no container, but what runs besides pods."""
        return not self.uid


SYSTEM = "system"
"""What grows where it is no pod: the daemons of the machine."""
OF_SYSTEM = Growth("", "")
"""The daemons of the machine grow."""


class KubeletWatch(Struct, frozen=True, gc=False):
    """How the kubelet watches."""

    exhaustion: Exhaustion
    """Its thresholds on this node."""
    allocatable_bytes: int | None = None
    """What all pods may use together, where that is enforced: the capacity of allocatableMemory.available."""
    requestable_bytes: int | None = None
    """What pods may request with the hard threshold as it is, as the Node states; None where settings decide it."""
    interval_us: int = MONITORING_INTERVAL_SECONDS * SECOND_US
    statistics_age_us: int = 0
    """How old the figures of a pass are."""
    reaction_us: int = 0
    """From the decision until memory is freed."""
    notification: MemoryNotification = MemoryNotification.OFF
    """Who is told between two passes that a threshold is met. The fast path also stops the growth of its victim."""
    policy: Policy | None = None


class GrowthLevel(Struct, frozen=True, gc=False):
    """A threshold of memory."""

    signal: Signal
    amount: int
    type: str = HARD
    grace_us: int = 0
    value: str = ""
    """As configured."""

    @property
    def is_hard(self) -> bool:
        """Whether it acts at once."""
        return self.type == HARD


class Act(Struct, frozen=True, gc=False):
    """What the kubelet does first for phases from ``begin`` until ``end``, in ticks."""

    begin: int
    end: int
    first: int
    """When it acts at the first of these phases, and at the last."""
    last: int
    level: GrowthLevel
    victim: RankedPod


class _Stage(Struct, frozen=True, gc=False):
    """From this size of the growth on, until the next: by how much reclaim has made working sets smaller."""

    from_bytes: int
    of_pods: Mapping[str, int]
    """By uid."""
    relief: Mapping[Signal, int]
    """Of the machine, and of all pods."""
    cache: Mapping[Signal, int]
    """Inactive page cache that was taken, which is in no working set."""


class GrowingNode:
    """A node, one container of which grows."""

    def __init__(
        self,
        snapshot: Snapshot,
        settings: CgroupSettings,
        growth: Growth,
        watch: KubeletWatch,
        profile: Profile = LATEST,
    ) -> None:
        self.snapshot = snapshot
        self.settings = settings
        self.growth = growth
        self.watch = watch
        self.profile = profile
        self.grower = next((entry for entry in snapshot.pods if entry.pod.metadata.uid == growth.uid), None)
        """The pod that grows; None where the daemons of the machine do."""
        owners = {
            path: (entry.pod.metadata.uid, name)
            for entry in snapshot.pods
            for name, path in container_paths(entry, qos_class_of(entry.pod, profile), settings).items()
        }
        grows = (path for path, owner in owners.items() if owner == (growth.uid, growth.container))
        self.path = ROOT if growth.is_of_system else next(grows)
        memory = memory_tree(snapshot, settings, profile)
        self.course: Course = grow(memory, self.path)
        self.until_oom_bytes = self.course.until_oom_bytes
        room = self.course.room
        self._domain = OOMDomain(memory.oom_total_pages(room.path) * PAGE_BYTES, room.path)
        uids = {path: uid for path, (uid, _) in owners.items()}
        with_cache = watch.notification is MemoryNotification.KUBELET
        self._stages = tuple(_stages(self.course, uids, with_cache=with_cache))
        self.available = memory_signals(snapshot, watch.allocatable_bytes, profile)
        """When the growth begins."""
        self.levels = tuple(
            GrowthLevel(threshold.signal, threshold.amount, threshold.type, threshold.grace_period_us, threshold.value)
            for threshold in watch.exhaustion.thresholds
            if threshold.signal in self.available and threshold.amount is not None
        )
        self.levels = tuple(level for level in self.levels if self._met(level))
        self.evicts = {
            level.is_hard: any(ranked_pod.spared is None for ranked_pod in self._ranked(level, 0))
            for level in (GrowthLevel(Signal.MEMORY, 0, HARD), GrowthLevel(Signal.MEMORY, 0, SOFT))
        }
        """Whether there is a pod that a threshold, hard or not, may evict."""

    # ---- what is met, by size ------------------------------------------------------------------------------------

    def hard_levels(self, amount: int) -> tuple[GrowthLevel, ...]:
        """Return the thresholds that one setting makes: evictionHard memory.available of so much."""
        return tuple(GrowthLevel(signal, amount) for signal in self.available)

    def crossed_bytes(self, level: GrowthLevel) -> int:
        """Return the size of the growth at which a threshold is first met, also where that is after the OOM."""
        return max(0, self._met(level)[0][0])

    def _met(self, level: GrowthLevel) -> Sequence[Span]:
        """Return the sizes at which a threshold is met; one that is met from the beginning begins before it.

        Nothing where it never is.
        """
        found: list[Span] = []
        ends = (*(stage.from_bytes for stage in self._stages[1:]), _FOR_EVER)
        for stage, end in zip(self._stages, ends, strict=True):
            crossed = self.available[level.signal] + stage.relief[level.signal] - level.amount
            if crossed >= 0 and self.growth.is_of_system and level.signal is Signal.ALLOCATABLE_MEMORY:
                continue  # pods do not grow
            begin = max(stage.from_bytes, crossed)
            if begin <= 0 and crossed < 0:
                begin = -_FOR_EVER
            if begin >= end:
                continue
            if found and found[-1][1] == begin:
                begin = found.pop()[0]
            found.append((begin, end))
        return found

    # ---- who is first, by phase ----------------------------------------------------------------------------------

    def kubelet_first(self, rate: int, levels: Sequence[GrowthLevel] | None = None) -> Fraction:
        """Return the share of phases in which the kubelet acts first; other thresholds may be tried."""
        return sum(self.first_by(rate, levels).values(), start=Fraction(0))

    def first_by(self, rate: int, levels: Sequence[GrowthLevel] | None = None) -> dict[GrowthLevel, Fraction]:
        """Return the share of phases in which the kubelet acts first by each threshold that does."""
        ordered = _in_acting_order(self.levels if levels is None else levels)
        found: dict[GrowthLevel, int] = {}
        for piece in self._pieces(rate, ordered):
            level = ordered[piece.place]
            found[level] = found.get(level, 0) + piece.end - piece.begin
        return {level: Fraction(ticks, self.watch.interval_us * rate) for level, ticks in found.items()}

    def acts(self, rate: int) -> Iterator[Act]:
        """Yield what the kubelet does where it is first, by time; in all other phases the kernel kills."""
        levels = _in_acting_order(self.levels)
        for piece in self._pieces(rate, levels):
            level, first = levels[piece.place], piece.first
            if piece.is_at_once:
                yield Act(piece.begin, piece.end, first, first, level, self._evicted(level, first // SECOND_US))
                continue
            for one, other, victim in self._victims(level, rate, first, first + piece.end - piece.begin):
                yield Act(piece.begin + one - first, piece.begin + other - first, one, other, level, victim)

    def killed(self) -> KilledContainer:
        """Return the container that the kernel kills."""
        snapshot = grown(self.snapshot, self.growth, self.until_oom_bytes)
        return kernel_order(container_processes(snapshot, self.settings, self.profile), self._domain)[0]

    def _pieces(self, rate: int, levels: Sequence[GrowthLevel]) -> Iterator[ActingPiece]:
        """Yield the phases in which the kubelet is first, with the places of the levels."""
        watch = self.watch
        interval, oom = watch.interval_us * rate, self.until_oom_bytes * SECOND_US
        acting: list[Sequence[Span]] = []
        alarms: list[Alarm] = []
        in_vain: Sequence[Span] = ()
        for place, level in enumerate(levels):
            told = [*self._told(level, rate, place)]
            spans = without(overlap(self._acting(level, rate, told), [(0, oom - watch.reaction_us * rate)]), in_vain)
            if not self.evicts[level.is_hard]:
                # A pass that acts by a threshold for which all pods are spared does nothing else either.
                in_vain, spans = sorted((*in_vain, *spans)), ()
            elif level.is_hard:
                alarms += (alarm for alarm in told if alarm.at + self._reaction(level, alarm.at, rate) < oom)
            acting.append(spans)
        return first_acts(acting, interval, alarms)

    def _acting(self, level: GrowthLevel, rate: int, told: Sequence[Alarm]) -> Sequence[Span]:
        """Return when a pass acts by a threshold; ``told`` is what it is told of between passes."""
        watch = self.watch
        age, interval, grace = (us * rate for us in (watch.statistics_age_us, watch.interval_us, level.grace_us))
        met = overlap([(one * SECOND_US + age, other * SECOND_US + age) for one, other in self._met(level)], _LATER)
        spans = lasting(met, interval, -(-level.grace_us // watch.interval_us))
        if level.is_hard or not told:
            return spans
        # What it is told of begins the grace period, if the next pass sees it, too.
        for alarm in told:
            since, until = next(span for span in met if alarm.at + age < span[1])
            begin = max(alarm.begin, since - interval)
            turn = max(1, -(-(alarm.at + grace - alarm.end) // interval))
            early = [
                (max(begin + passed * interval, alarm.at + grace), min(alarm.end + passed * interval, until))
                for passed in (turn, turn + 1)
            ]
            spans = union(spans, [span for span in early if span[0] < span[1]])
        return spans

    def _told(self, level: GrowthLevel, rate: int, place: int) -> Iterator[Alarm]:
        """Yield which passes are followed by a look before the next, because memory has crossed a threshold."""
        notification, interval = self.watch.notification, self.watch.interval_us * rate
        is_heard = level.is_hard or notification is MemoryNotification.KUBELET
        if notification is MemoryNotification.OFF or not is_heard:
            return
        for crossed, _ in self._met(level):
            # What is met before anything grows has been seen.
            if crossed < 0:
                continue
            for begin, end, at in self._crossings(level, crossed, -(-interval // SECOND_US)):
                if begin < end:
                    yield Alarm(
                        max(begin * SECOND_US, at * SECOND_US - interval), end * SECOND_US, at * SECOND_US, place
                    )

    def _crossings(self, level: GrowthLevel, crossed: int, reach: int) -> Iterator[tuple[int, int, int]]:
        """Yield sizes from which until which a pass leads to a look at a third.

        The fast path sees what is available. The kernel tells a kubelet of usage, and the level is set at a pass, with
        the inactive page cache of that moment: what is reclaimed of it after that makes the notification late. Whole
        pages count.
        """
        if self.watch.notification is MemoryNotification.FAST_PATH:
            yield crossed + PAGE_BYTES - reach, crossed + PAGE_BYTES, crossed + PAGE_BYTES
            return
        begins = [-reach, *(stage.from_bytes for stage in self._stages[1:])]
        ends = (*begins[1:], _FOR_EVER)
        last = bisect_right(begins, crossed) - 1
        left = self.available[level.signal] - level.amount + PAGE_BYTES
        for stage, begin, end in zip(self._stages, begins[: last + 1], ends, strict=False):
            if end <= crossed - reach:
                continue
            for later, from_bytes, until in zip(self._stages[last:], begins[last:], ends[last:], strict=True):
                late = later.cache[level.signal] - stage.cache[level.signal]
                at = max(from_bytes, left + later.relief[level.signal] + late)
                if at < until:
                    yield max(begin, at - reach), min(end, at), at
                    break

    def _reaction(self, level: GrowthLevel, at: int, rate: int) -> int:
        """Return how long it takes after a look that memory is freed."""
        is_held = (
            self.watch.notification is MemoryNotification.FAST_PATH
            and self._evicted(level, at // SECOND_US).pod.metadata.uid == self.growth.uid
        )
        return 0 if is_held else self.watch.reaction_us * rate

    # ---- which pod, at which moment ------------------------------------------------------------------------------

    def _evicted(self, level: GrowthLevel, grown_bytes: int) -> RankedPod:
        """Return the pod that a threshold evicts when the container has grown by so much."""
        return next(ranked_pod for ranked_pod in self._ranked(level, grown_bytes) if ranked_pod.spared is None)

    def _ranked(self, level: GrowthLevel, grown_bytes: int) -> Sequence[RankedPod]:
        relief = self._stages[bisect_right(self._stages, grown_bytes, key=_from_bytes) - 1].of_pods
        stats = self.snapshot.stats
        for uid in {*relief, self.growth.uid} & stats.keys():
            more = (grown_bytes if uid == self.growth.uid else 0) - relief.get(uid, 0)
            stats[uid] = replace(stats[uid], memory=_more(stats[uid].memory, more))
        ranking = Ranking(level.signal, policy=self.watch.policy, hard=level.is_hard, profile=self.profile)
        return rank([entry.pod for entry in self.snapshot.pods], stats, ranking)

    def _victims(self, level: GrowthLevel, rate: int, first: int, last: int) -> Iterator[tuple[int, int, RankedPod]]:
        """Yield which pod is evicted from which moment until which.

        Between two reclaims only the growing pod moves in the ranking, and only forwards: there is at most one change,
        found by halving, to the microsecond.
        """
        age = self.watch.statistics_age_us * rate

        def evicted(time: int) -> RankedPod:
            return self._evicted(level, max(0, time - age) // SECOND_US)

        turns = (stage.from_bytes * SECOND_US + age for stage in self._stages)
        for begin, end in pairwise((first, *(turn for turn in turns if first < turn < last), last)):
            one, other = evicted(begin), evicted(end - 1)
            if one.pod.metadata.uid == other.pod.metadata.uid:
                yield begin, end, one
                continue
            low, high = begin, end
            while high - low > rate:
                middle = (low + high) // 2
                is_same = evicted(middle).pod.metadata.uid == one.pod.metadata.uid
                low, high = (middle, high) if is_same else (low, middle)
            yield begin, high, one
            yield high, end, other


def grown(snapshot: Snapshot, growth: Growth, by_bytes: int) -> Snapshot:
    """Return the snapshot with that much more private memory in the growing container, or outside of pods."""
    if growth.is_of_system:
        return replace(snapshot, node=replace(snapshot.node, system_bytes=snapshot.node.system_bytes + by_bytes))

    def container(usage: ContainerUsage) -> ContainerUsage:
        more = usage.anon_bytes + by_bytes
        if usage.name != growth.container:
            return usage
        return replace(usage, anon_bytes=more, is_measured=True, processes=max(1, usage.processes))

    def pod(entry: PodUsage) -> PodUsage:
        if entry.pod.metadata.uid != growth.uid:
            return entry
        stats = entry.stats
        if stats is not None and stats.memory is not None and stats.memory.working_set_bytes is not None:
            measured = (
                replace(container, memory=_more(container.memory, by_bytes))
                if container.name == growth.container
                else container
                for container in stats.containers or ()
            )
            stats = replace(stats, memory=_more(stats.memory, by_bytes), containers=tuple(measured))
        return PodUsage(entry.pod, stats, tuple(map(container, entry.containers)))

    return replace(snapshot, pods=tuple(map(pod, snapshot.pods)))


def _more(memory: MemoryStats | None, by_bytes: int) -> MemoryStats | None:
    if memory is None or memory.working_set_bytes is None:
        return memory
    return replace(memory, working_set_bytes=memory.working_set_bytes + by_bytes)


def _stages(course: Course, owners: Mapping[str, str], *, with_cache: bool) -> Iterator[_Stage]:
    """Yield the stages; ``owners`` are the uids of pods by the cgroups of their containers.

    ``with_cache`` makes one also where only inactive page cache is taken.
    """
    nothing = {Signal.MEMORY: 0, Signal.ALLOCATABLE_MEMORY: 0}
    stage = _Stage(0, {}, nothing, nothing)
    for step in course.steps:
        if not with_cache and all(taken.kind is Kind.INACTIVE_FILE for taken in step.taken):
            continue
        if step.at_bytes > stage.from_bytes:
            yield stage
        of_pods, relief, cache = dict(stage.of_pods), dict(stage.relief), dict(stage.cache)
        for taken in step.taken:
            gained = cache if taken.kind is Kind.INACTIVE_FILE else relief
            gained[Signal.MEMORY] += taken.size_bytes
            uid = owners.get(taken.path)
            if uid is not None:
                gained[Signal.ALLOCATABLE_MEMORY] += taken.size_bytes
                if gained is relief:
                    of_pods[uid] = of_pods.get(uid, 0) + taken.size_bytes
        stage = _Stage(step.at_bytes, of_pods, relief, cache)
    yield stage


def _in_acting_order(levels: Iterable[GrowthLevel]) -> Sequence[GrowthLevel]:
    """Sort as the kubelet chooses where several act in one pass."""
    return sorted(levels, key=lambda level: (_PLACES[level.signal], level.grace_us))


def _from_bytes(stage: _Stage) -> int:
    return stage.from_bytes
