"""How much memory a container will need in as long again as it was watched: by its peaks, growth and OOM kills.

One rule, ``floor + spread × ln(worth × often / spread)``: reserve more while another byte costs less than the kills it
prevents. ``worth`` is the memory that one OOM kill is worth; ``spread`` is by how much peaks exceed the floor on
average, and ``often`` how many of them a replica has. Exceedances are taken to fall off exponentially; the chance that
remains is ``often × e^(-margin/spread)``. So the tail's shape decides: peaks that hardly differ get a small margin,
scattered ones a large one. The rule is applied to

- peaks: the highest sample of each pod and day (of a Job: of each run). The floor is what a third of them exceed. Rare
  peaks far above the rest, as after a start, are judged by themselves;
- growth: a pod that uses more than at the same time a day ago, hour by hour, leaks. It goes on for as long as pods of
  this workload live on average, and never for longer than it was watched;
- OOM kills: what it wanted above the limit is unknown, so a spread of 15 % of the limit is assumed.

The largest of these counts, and at least 5 % above the highest sample. The spread of few peaks is drawn towards 5 % of
the highest (15 % where the history is too short, too sparse or has gaps), as if two peaks had shown it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import ceil, exp, inf, log
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.sizing.coverage import usual_step_us
from podqos.model.time_units import DAY_US, MINUTE_US, SECOND_US

_GIB = 1 << 30
_HOUR_US = 60 * MINUTE_US

_PART_ABOVE_FLOOR = 3
"""The floor of the tail is what one in so many peaks exceeds."""
_FAR_ABOVE = 1.25
"""Peaks that exceed all others by such a factor are judged by themselves."""
_USUAL_SPREAD = 0.05
_PROVISIONAL_SPREAD = 0.15
_OOM_SPREAD = 0.15
_PRIOR_PEAKS = 2
_LEAST_MARGIN = 0.05
_EXPECTED_MARGIN = 0.2
"""On top of what somebody expects it to use at most."""
_LEAST_AHEAD_US = 7 * DAY_US
_MOST_AHEAD = 7.0
"""A minute says nothing of a week."""
_UNTIMED_BLOCKS = 7
"""Samples without times are cut into so many stretches."""

# Memory that falls by so much within an hour, and stays there, was given back by a restart.
_RESTART = 0.85
_LEAST_LIFE_HOURS = 36
_DAY_HOURS = 24
_HALF_A_DAY = 12
_GROWING_PERCENT = 90
_STEADY = 1.5


class Caution(Struct, frozen=True):
    """How much memory is reserved to prevent an OOM kill."""

    worth_bytes: int = 2 * _GIB
    """One OOM kill of one replica, within the time ahead, is as bad as that much memory reserved for nothing."""
    gives_up_rare_peaks: bool = False
    """Whether less than was used may be advised, where that is cheaper; only for comparisons."""


CHEAPEST = Caution(_GIB // 2)
USUAL = Caution()
SAFEST = Caution(16 * _GIB)


class DecidedBy(StrEnum):
    """What decides how much memory is needed."""

    PEAKS = "Peaks"
    """The daily peaks, and how much they differ."""
    RARE_PEAKS = "RarePeaks"
    """Few peaks far above all others, such as those of starts."""
    GROWTH = "Growth"
    """It grows for as long as it runs."""
    OOM_KILLS = "OOMKills"
    """It was OOM-killed, so that it needs more than its limit was."""
    EXPECTATION = "Expectation"
    """Nothing was measured; somebody expects it."""


class Replica(Struct, frozen=True):
    """What the container used in one pod, in order of time."""

    memory_bytes: tuple[int, ...] = ()
    memory_times_us: tuple[int, ...] = ()
    """When each was measured; empty where that is unknown."""


class MemorySeen(Struct, frozen=True):
    """What was measured of a container, and under which limit it was OOM-killed."""

    replicas: Sequence[Replica]
    is_runs: bool = False
    """Whether each pod is a run that ends."""
    is_provisional: bool = False
    """Whether that is too little to go by."""
    oom_kills: int = 0
    oom_limit_bytes: int = 0
    highest_bytes: int = 0
    """The most of any replica at any time, where more is known than the samples."""


class MemoryNeed(Struct, frozen=True, rename="camel"):
    """How much memory a container will need, and why."""

    need_bytes: int
    most_bytes: int
    """The highest sample of any replica, or the limit that it was OOM-killed under."""
    decided_by: DecidedBy
    peaks: int = 0
    """How many there are: of pods' days, or of runs."""
    spread_bytes: int = 0
    """By how much peaks exceed their floor on average; of growth, what a pod still grows on average."""
    kill_chance_percent: float | None = None
    """Chance that one replica is OOM-killed with this limit, in as long again as watched; null where unknown."""
    growth_bytes_a_day: int = 0
    """Of the pod that grows most; 0 where none does."""
    life_seconds: int = 0
    """How long pods of it live on average."""
    is_leak: bool = False
    """Whether growth decides, and goes on day by day: a limit only delays the OOM kill."""

    @property
    def margin_percent(self) -> float:
        """How much is added to the highest sample."""
        return 100 * (self.need_bytes - self.most_bytes) / self.most_bytes if self.most_bytes else 0.0


def expected_need(most_bytes: int) -> MemoryNeed:
    """Return the need of a container that is expected to use so much at most."""
    return MemoryNeed(ceil(most_bytes * (1 + _EXPECTED_MARGIN)), most_bytes, DecidedBy.EXPECTATION)


class Growth(Struct, frozen=True):
    """What the pod that grows most uses now, how fast it grows, and how long pods live on average."""

    level_bytes: int
    bytes_a_day: int
    days_left: float = inf
    """For how many days it goes on at this pace; growth that slows down ends, as that of a cache or a heap."""
    is_steady: bool = False
    """Whether it grew by about as much on the day before: a leak, and not a heap that takes another step."""
    life_us: int = 0


class MemoryEvidence(Struct, frozen=True):
    """What of the samples decides."""

    peaks: tuple[int, ...]
    """Of pods' days or of runs, the highest first; at least one."""
    pods: float
    """How many ran at a time; of runs, how many there were."""
    ahead: float = 1.0
    """How much longer the time ahead is than the time that was watched."""
    days_ahead: float = 7.0
    growth: Growth | None = None
    is_provisional: bool = False
    oom_kills: int = 0
    oom_limit_bytes: int = 0
    highest_bytes: int = 0

    @property
    def most_bytes(self) -> int:
        """The highest sample, or the limit that it was killed under."""
        return max(self.peaks[0], self.highest_bytes, self.oom_limit_bytes if self.oom_kills else 0)


def memory_need(seen: MemorySeen, caution: Caution = USUAL) -> MemoryNeed | None:
    """Return how much memory a container needs, or None where none was measured."""
    evidence = evidence_of(seen)
    return None if evidence is None else need_by(evidence, caution)


def evidence_of(seen: MemorySeen) -> MemoryEvidence | None:
    """Return what of the samples decides, or None where there are none."""
    replicas = [replica for replica in seen.replicas if replica.memory_bytes]
    if not replicas:
        return None
    watch = _Watch(replicas, is_runs=seen.is_runs)
    return MemoryEvidence(
        peaks=tuple(sorted((peak for replica in replicas for peak in watch.peaks(replica)), reverse=True)),
        pods=watch.pods,
        # Too little data has a wide spread instead.
        ahead=1.0 if seen.is_provisional else watch.ahead,
        days_ahead=max(watch.length_us, _LEAST_AHEAD_US) / DAY_US,
        growth=None if seen.is_runs or not watch.is_timed else _growth(replicas, watch),
        is_provisional=seen.is_provisional,
        oom_kills=seen.oom_kills,
        oom_limit_bytes=seen.oom_limit_bytes,
        highest_bytes=seen.highest_bytes,
    )


def need_by(evidence: MemoryEvidence, caution: Caution = USUAL) -> MemoryNeed:
    """Return how much memory a container needs that has shown this."""
    candidates = [_of_peaks(evidence, caution)]
    if evidence.growth is not None:
        candidates.append(_of_growth(evidence.growth, evidence.days_ahead, caution))
    if evidence.oom_kills and evidence.oom_limit_bytes:
        candidates.append(_of_oom_kills(evidence, caution))
    largest = max(candidates, key=lambda candidate: candidate.need_bytes)
    most_bytes = evidence.most_bytes
    least_bytes = 0 if caution.gives_up_rare_peaks else ceil((1 + _LEAST_MARGIN) * most_bytes)
    return MemoryNeed(
        need_bytes=max(largest.need_bytes, least_bytes),
        most_bytes=most_bytes,
        decided_by=largest.decided_by,
        peaks=len(evidence.peaks),
        spread_bytes=int(largest.tail.spread),
        # After an OOM kill, and with too little data, the spread is assumed.
        kill_chance_percent=(
            None
            if evidence.is_provisional or largest.decided_by is DecidedBy.OOM_KILLS
            else largest.tail.chance(max(largest.need_bytes, least_bytes))
        ),
        growth_bytes_a_day=0 if evidence.growth is None else evidence.growth.bytes_a_day,
        life_seconds=0 if evidence.growth is None else evidence.growth.life_us // SECOND_US,
        is_leak=largest.decided_by is DecidedBy.GROWTH and evidence.growth is not None and evidence.growth.is_steady,
    )


class _Tail(Struct, frozen=True):
    """What exceeds a floor: by so much on average, and so often for one replica in the time ahead."""

    floor: float
    spread: float
    often: float

    def worthwhile(self, caution: Caution) -> float:
        """Return up to where another byte costs less than the kills that it prevents."""
        if self.spread <= 0:
            return self.floor
        return self.floor + self.spread * max(0.0, log(max(1.0, caution.worth_bytes * self.often / self.spread)))

    def chance(self, need_bytes: float) -> float:
        """Return how likely one replica exceeds so much, in percent."""
        if self.spread <= 0:
            return 0.0
        exceedances = self.often * exp(-max(0.0, need_bytes - self.floor) / self.spread)
        return round(100 * (1 - exp(-exceedances)), 2)


class _Watch:
    """For how long how many pods were watched."""

    def __init__(self, replicas: Sequence[Replica], *, is_runs: bool) -> None:
        self.is_runs = is_runs
        self.is_timed = all(replica.memory_times_us for replica in replicas)
        self.begin_us = self.end_us = self.pods_us = 0
        if self.is_timed:
            self.begin_us = min(replica.memory_times_us[0] for replica in replicas)
            self.end_us = max(replica.memory_times_us[-1] for replica in replicas)
            steps_us = [usual_step_us(replica.memory_times_us) for replica in replicas]
            self.pods_us = sum(
                replica.memory_times_us[-1] - replica.memory_times_us[0] + step_us
                for replica, step_us in zip(replicas, steps_us, strict=True)
            )
            self.end_us += max(steps_us)
        self._replicas = len(replicas)

    @property
    def length_us(self) -> int:
        return self.end_us - self.begin_us

    @property
    def pods(self) -> float:
        """How many pods ran at a time; of runs, how many there were."""
        if self.is_runs or not self.is_timed or not self.length_us:
            return self._replicas
        return max(1.0, self.pods_us / self.length_us)

    @property
    def ahead(self) -> float:
        """How much longer the time ahead is than the time that was watched."""
        if self.is_runs or not self.is_timed or not self.length_us:
            return 1.0
        return min(_MOST_AHEAD, max(1.0, _LEAST_AHEAD_US / self.length_us))

    def peaks(self, replica: Replica) -> list[int]:
        """Return the highest sample of each day of a pod; of a run, its highest."""
        values = replica.memory_bytes
        if self.is_runs:
            return [max(values)]
        if not self.is_timed:
            length = max(1, ceil(len(values) / _UNTIMED_BLOCKS))
            return [max(values[begin : begin + length]) for begin in range(0, len(values), length)]
        highest: dict[int, int] = {}
        for time_us, value in zip(replica.memory_times_us, values, strict=True):
            day = (time_us - self.begin_us) // DAY_US
            if value > highest.get(day, -1):
                highest[day] = value
        return list(highest.values())


class _Candidate(Struct, frozen=True):
    """A need, and the tail that it follows from."""

    need_bytes: int
    decided_by: DecidedBy
    tail: _Tail


def _of_peaks(evidence: MemoryEvidence, caution: Caution) -> _Candidate:
    """Return the need by peaks; if some may be given up, the need that costs least."""
    cheapest: tuple[float, _Candidate] | None = None
    given_up = 0
    while True:
        tail, rare = _tail(evidence.peaks[given_up:], evidence)
        need = tail.worthwhile(caution)
        candidate = _Candidate(ceil(need), DecidedBy.RARE_PEAKS if rare else DecidedBy.PEAKS, tail)
        killed = 1 - exp(-given_up / evidence.pods) + tail.chance(need) / 100
        cost = need + caution.worth_bytes * killed
        if cheapest is None or cost < cheapest[0]:
            cheapest = cost, candidate
        if not rare or not caution.gives_up_rare_peaks:
            return cheapest[1]
        given_up += rare


def _tail(peaks: Sequence[int], evidence: MemoryEvidence) -> tuple[_Tail, int]:
    """Fit the tail, and return how many rare peaks it consists of; 0 if they are peaks like all others."""
    above = ceil(len(peaks) / _PART_ABOVE_FLOOR)
    ratio, rare = max(
        ((peaks[index - 1] / max(1, peaks[index]), index) for index in range(1, min(above + 1, len(peaks)))),
        default=(0.0, 0),
    )
    if ratio < _FAR_ABOVE:
        rare = 0
    often = rare or above
    floor = peaks[rare - 1] if rare else peaks[min(above, len(peaks) - 1)]
    excesses = [peak - floor for peak in peaks[:often]]
    # A peak that is the floor itself says nothing of the spread.
    count = len(excesses) - 1 if rare or above == len(peaks) else len(excesses)
    prior = _PROVISIONAL_SPREAD if evidence.is_provisional else _USUAL_SPREAD
    spread = (_PRIOR_PEAKS * prior * peaks[0] + sum(excesses)) / (_PRIOR_PEAKS + count)
    return _Tail(floor, spread, often / evidence.pods * evidence.ahead), rare


def _of_oom_kills(evidence: MemoryEvidence, caution: Caution) -> _Candidate:
    limit = evidence.oom_limit_bytes
    tail = _Tail(limit, _OOM_SPREAD * limit, evidence.oom_kills / evidence.pods * evidence.ahead)
    return _Candidate(ceil(tail.worthwhile(caution)), DecidedBy.OOM_KILLS, tail)


# ---- growth ------------------------------------------------------------------------------------------------------


def _growth(replicas: Sequence[Replica], watch: _Watch) -> Growth | None:
    """Return how the pods grow that still run, or None."""
    growing = []
    lives = 0
    for replica in replicas:
        hours = _hourly(replica)
        restarts = [index for index in range(1, len(hours)) if hours[index][1] < _RESTART * hours[index - 1][1]]
        lives += 1 + len(restarts)
        is_running = watch.end_us - replica.memory_times_us[-1] < _HALF_A_DAY * _HOUR_US
        life = hours[restarts[-1] if restarts else 0 :]
        growth = _growth_of(life) if is_running else None
        if growth is not None:
            growing.append(growth)
    if not growing:
        return None
    largest = max(growing, key=lambda growth: growth.level_bytes + growth.bytes_a_day)
    return replace(largest, life_us=watch.pods_us // lives)


def _hourly(replica: Replica) -> list[tuple[int, float]]:
    """Return hours and their medians: bursts are no growth."""
    hours: dict[int, list[int]] = {}
    for time_us, value in zip(replica.memory_times_us, replica.memory_bytes, strict=True):
        hours.setdefault(time_us // _HOUR_US, []).append(value)
    return [(hour, median(values)) for hour, values in sorted(hours.items())]


def _growth_of(life: Sequence[tuple[int, float]]) -> Growth | None:
    """Return how a pod grows that uses more than a day earlier in nearly every hour of the last day."""
    last = life[-1][0]
    if last - life[0][0] + 1 < _LEAST_LIFE_HOURS:
        return None
    rises = _rises(life, last)
    is_growing = len(rises) >= _HALF_A_DAY and sum(rise > 0 for rise in rises) * 100 >= _GROWING_PERCENT * len(rises)
    a_day = median(rises) if is_growing else 0.0
    if a_day < 1:
        return None
    before = _rises(life, last - _DAY_HOURS)
    a_day_before = median(before) if len(before) >= _HALF_A_DAY else 0.0
    # A geometric series: each day the same part of the day before.
    days_left = a_day / (a_day_before - a_day) if a_day_before > a_day else inf
    is_steady = a_day / _STEADY <= a_day_before <= a_day * _STEADY
    return Growth(int(max(value for _, value in life[-6:])), int(a_day), days_left, is_steady)


def _rises(life: Sequence[tuple[int, float]], until: int) -> list[float]:
    """Return how much more it used in each hour of a day than a day earlier."""
    by_hour = dict(life)
    return [
        value - by_hour[hour - _DAY_HOURS]
        for hour, value in life
        if until - _DAY_HOURS < hour <= until and hour - _DAY_HOURS in by_hour
    ]


def _of_growth(growth: Growth, days_ahead: float, caution: Caution) -> _Candidate:
    tail = _Tail(growth.level_bytes, growth.bytes_a_day * growth.life_us / DAY_US, 1)
    need = min(tail.worthwhile(caution), growth.level_bytes + growth.bytes_a_day * min(days_ahead, growth.days_left))
    return _Candidate(ceil(need), DecidedBy.GROWTH, tail)
