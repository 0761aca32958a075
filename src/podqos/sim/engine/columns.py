"""What curves add up to, by columns: until when a node's sums provably cross nothing. Needs numpy (``podqos[fleet]``).

Following every bend of every curve is most of a long run, and almost never does a bend matter. While nothing happens
the parts of a node's sums are *asleep*: their bends are not followed. For every sum there is a bound instead, from
column to column of a grid of times: the most that its parts hold there, in whole units, rounded up. The first column in
which a bound reaches a mark is when the parts of that sum wake, just before it, and are what they would be had every
bend been followed; from there on it is simulated event by event, until they can sleep again. Nothing is decided on a
bound: it only says where nothing is to be decided.

Whatever changes in between (a container starts or ends) is held against the room that is left. A part that ends leaves,
one that starts falls asleep with the others; if the room is used up, all wake.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podqos.model.time_units import SECOND_US
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.curve import Curve, Knots
from podqos.sim.engine.event_queue import NEVER_US
from podqos.sim.engine.gauge import FRACTION_BITS, Flow, Gauge

Column: TypeAlias = NDArray[np.int64]

_MOST_COLUMNS = 4096
_MOST_UNITS = 1 << 48
"""What holds more (256 TiB) is followed bend by bend: numbers of columns are to be exact, and their sums."""
_UNLIMITED = NEVER_US << FRACTION_BITS
_FIRST_RETRY_US = 60 * SECOND_US
_WORTH_COLUMNS = 3
"""For all to sleep and to wake costs about as much as following the bends of so many columns."""
_FEW_PARTS = 8
"""So many wake on their own; if a sum of more could reach a mark, all do."""


_Points: TypeAlias = tuple[Column, "Column | array[int]"]
"""The times and values of the knots of one curve."""


class _Row(NamedTuple):
    """The most that one part, or some together, hold at the start and at the end of every column, and ever."""

    starts: Column
    ends: Column
    peak: int


class _Bound:
    """The most that the parts of a sum hold at the start and at the end of every column."""

    __slots__ = ("ends", "is_own", "parts", "peak", "starts")

    def __init__(self, parts: Iterable[Allocation], row: _Row) -> None:
        self.starts, self.ends = row.starts, row.ends
        self.is_own = False
        """Whether no other has the same columns, so that they can be changed."""
        self.parts = dict.fromkeys(parts)
        self.peak: int | None = row.peak

    def add(self, parts: Iterable[Allocation], row: _Row) -> None:
        if self.is_own:
            self.starts += row.starts
            self.ends += row.ends
        else:
            self.starts, self.ends, self.is_own = self.starts + row.starts, self.ends + row.ends, True
        self.parts.update(dict.fromkeys(parts))
        self.peak = None

    def remove(self, part: Allocation, row: _Row) -> None:
        if self.is_own:
            self.starts -= row.starts
            self.ends -= row.ends
        else:
            self.starts, self.ends, self.is_own = self.starts - row.starts, self.ends - row.ends, True
        del self.parts[part]
        self.peak = None

    @property
    def is_shared(self) -> bool:
        """Whether so many have a part in it that all wake together."""
        return len(self.parts) > _FEW_PARTS

    def highest(self) -> int:
        """Return the most that they ever hold."""
        if self.peak is None:
            self.peak = int(max(self.starts.max(), self.ends.max()))
        return self.peak


class Columns:
    """The parts of one node's sums that bend, and until when they sleep."""

    def __init__(self, until_us: int, least: int, bent_us: Callable[[int], int], woke: Callable[[int], None]) -> None:
        """``least`` is how many there must be before any sleeps.

        ``bent_us`` says up to when bends count as followed at this point of the run, ``woke`` is called when some wake.
        """
        self.until_us = until_us
        self._least = least
        self.bent_us = bent_us
        self._woke = woke
        self._awake: dict[Allocation, None] = {}
        self._asleep: dict[Allocation, None] = {}
        self._rows: dict[Allocation, _Row] = {}
        self._bounds: dict[Gauge, _Bound] = {}
        self._is_stale: set[Gauge] = set()
        """The sums whose bound has changed since their headroom was computed."""
        self._reached: dict[Gauge, int] = {}
        """The first column in which a sum could reach a mark, if there is one."""
        self._grid: Column | None = None
        self._is_resting = False
        self._known_asleep: tuple[Allocation, ...] | None = None
        """Those asleep, until that changes."""

    # ---- who is there --------------------------------------------------------------------------------------------

    @property
    def wake_us(self) -> int | None:
        """When some wake next, or the marks of sums are looked at again whose parts have been woken one by one."""
        if not self._reached:
            return None
        assert self._grid is not None
        return int(self._grid[min(self._reached.values())]) - 1

    @property
    def are_tired(self) -> bool:
        """Whether there are some that could sleep and do not."""
        return any(allocation.is_plain for allocation in self._awake)

    @property
    def asleep(self) -> tuple[Allocation, ...]:
        """Those whose amounts are missing from their sums."""
        if self._known_asleep is None:
            self._known_asleep = tuple(self._asleep)
        return self._known_asleep

    def extent(self, gauge: Gauge, from_us: int, until_us: int) -> tuple[int, int, int, int] | None:
        """Return when the parts of a sum that have a row are at their most and least, and how much that is about.

        It is that at the beginnings of columns within two times; None where there is none.
        """
        bound = self._bounds.get(gauge)
        if bound is None or self._grid is None:
            return None
        first, last = np.searchsorted(self._grid, (from_us, until_us + 1)).tolist()
        held = bound.starts[first:last]
        if not len(held):
            return None
        most, least = int(held.argmax()), int(held.argmin())
        grid = self._grid[first:last]
        return int(grid[most]), int(held[most]), int(grid[least]), int(held[least])

    def register(self, part: Flow) -> None:
        """Take note of a part that bends."""
        assert isinstance(part, Allocation)
        if part.curve.knots[-1][0] < NEVER_US:
            self._awake[part] = None

    def drop(self, part: Flow, now_us: int) -> None:
        """Forget a part that ends or bends no more; what it holds is no longer covered by its row."""
        assert isinstance(part, Allocation)
        if part.is_asleep:
            del self._asleep[part]
            self._known_asleep = None
            part.stop_sleeping()
        else:
            self._awake.pop(part, None)
        if part in self._rows:
            self._remove_row(part)
            for gauge in part.gauges:
                gauge.change(now_us, 0, 0)
                gauge.uncover(now_us, part.fine(now_us))

    # ---- to sleep ------------------------------------------------------------------------------------------------

    def sleep(self, now_us: int) -> bool:
        """Put all to sleep that can be, if that pays; return whether any sleep."""
        tired = [allocation for allocation in self._awake if allocation.is_plain]
        if not tired or len(tired) + len(self._asleep) < self._least:
            return False
        for allocation in self._awake:
            if not allocation.is_plain and allocation in self._rows:
                self._remove_row(allocation)
        fresh = [allocation for allocation in tired if allocation not in self._rows]
        if fresh:
            for large in self._add_rows(fresh):
                del self._awake[large]
                tired.remove(large)
        assert self._grid is not None
        held = _held(tired, now_us)
        column = self._column(now_us)
        last = len(self._grid) - 1
        unknown = [gauge for gauge in self._bounds if gauge.headroom is None or gauge in self._is_stale]
        watched = [gauge for gauge in unknown if any(mark.is_armed for mark in gauge.marks)]
        reached = {gauge: self._first_reached(gauge, held.get(gauge, (0, 0)), now_us, column) for gauge in watched}
        near = {gauge for gauge, first in reached.items() if self._is_near(gauge, first - column, last - first)}
        if any(self._bounds[gauge].is_shared for gauge in near):
            self.wake(now_us)
            return False
        staying = {part for gauge in near for part in self._bounds[gauge].parts}
        sleepy = [allocation for allocation in tired if allocation not in staying]
        moved = held if len(sleepy) == len(tired) else _held(sleepy, now_us)
        self._known_asleep = None
        for allocation in sleepy:
            del self._awake[allocation]
            self._asleep[allocation] = None
            allocation.fall_asleep()
        rests = {gauge: gauge.fine(now_us) - held.get(gauge, (0, 0))[0] for gauge in watched}
        for gauge, (amount, slope) in moved.items():
            gauge.base, gauge.slope, gauge.since_us = gauge.fine(now_us) - amount, gauge.slope - slope, now_us
        for gauge in unknown:
            gauge.sleepers = self
            gauge.headroom = _UNLIMITED
            self._reached.pop(gauge, None)
        for gauge in watched:
            if gauge not in near:
                if reached[gauge] < last:
                    self._reached[gauge] = reached[gauge]
                rising = max(0, gauge.slope) * (self.until_us - now_us)
                gauge.headroom = self._room(gauge, rests[gauge] + rising, column, reached[gauge])
        self._is_stale.clear()
        self._is_resting = True
        self._rouse_gauges(near, now_us)
        return bool(self._asleep)

    def next_us(self, now_us: int) -> int:
        """Return the last moment of the column that begins or goes on after a time: when to try again."""
        if self._grid is None:
            return now_us + _FIRST_RETRY_US
        return max(now_us + 1, int(self._grid[self._column(now_us) + 1]) - 1)

    def _column(self, now_us: int) -> int:
        """Return the column of what comes after a time."""
        assert self._grid is not None
        return min(int(np.searchsorted(self._grid, now_us + 1, "right")) - 1, len(self._grid) - 2)

    def _is_near(self, gauge: Gauge, distance: int, left: int) -> bool:
        """Whether the parts of a sum had better be awake, because it could reach a mark so many columns from now."""
        if any(mark.is_armed and not mark.is_rising for mark in gauge.marks):
            return True
        return left > 0 and distance < (_WORTH_COLUMNS if self._bounds[gauge].is_shared else 1)

    def _first_reached(self, gauge: Gauge, held: tuple[int, int], now_us: int, column: int) -> int:
        """Return the first column from ``column`` on in which a sum could reach a mark; the end if there is none.

        ``held`` is what its parts with a row hold, and how fast that grows.
        """
        assert self._grid is not None
        bound, level, last = self._bounds[gauge], _level(gauge), len(self._grid) - 1
        rest, rising = gauge.fine(now_us) - held[0], max(0, gauge.slope - held[1])
        if rest + rising * (self.until_us - now_us) + (bound.highest() << FRACTION_BITS) < level:
            return last
        most = np.maximum(bound.starts[column:], bound.ends[column:])
        if rising:
            grown = rising * (self._grid[column + 1 :] - now_us).astype(np.float64) / (1 << FRACTION_BITS)
            most = most + np.ceil(grown * (1 + 1e-9)).astype(np.int64) + 1
        reached = most >= -((rest - level) >> FRACTION_BITS) - 1
        return column + int(reached.argmax()) if reached.any() else last

    def _room(self, gauge: Gauge, rest: int, column: int, first: int) -> int:
        """Return how much room is left up to a column: for all time, if there is."""
        bound = self._bounds[gauge]
        room = _level(gauge) - rest - (bound.highest() << FRACTION_BITS)
        if room <= 0 and column < first:
            highest = int(max(bound.starts[column:first].max(), bound.ends[column:first].max()))
            room = _level(gauge) - rest - (highest << FRACTION_BITS)
        return room

    def _add_rows(self, parts: Sequence[Allocation]) -> list[Allocation]:
        """Let the bounds cover more parts, and return those that hold too much for that.

        Those of sums with the same parts are added up once.
        """
        points = [_points(part.curve, part.offset_us, self.until_us) for part in parts]
        if self._grid is None:
            self._grid = _grid((times for times, _ in points), self.until_us)
        rows = _rows(points, self._grid)
        large = [part for part, row in zip(parts, rows, strict=True) if row.peak > _MOST_UNITS]
        if large:
            rows = [row for row in rows if row.peak <= _MOST_UNITS]
            parts = [part for part in parts if part not in large]
        self._rows.update(zip(parts, rows, strict=True))
        found: dict[Gauge, list[int]] = {}
        for index, part in enumerate(parts):
            part.is_covered = True
            for gauge in part.gauges:
                found.setdefault(gauge, []).append(index)
        totals: dict[tuple[int, ...], _Row] = {}
        for gauge, indexes in found.items():
            key = tuple(indexes)
            total = totals.get(key)
            if total is None:
                total = totals[key] = _total([rows[index] for index in indexes])
            some = [parts[index] for index in indexes]
            bound = self._bounds.get(gauge)
            if bound is None:
                self._bounds[gauge] = _Bound(some, total)
            else:
                bound.add(some, total)
        self._is_stale.update(found)
        return large

    def _remove_row(self, part: Allocation) -> None:
        row = self._rows.pop(part)
        part.is_covered = False
        for gauge in part.gauges:
            bound = self._bounds[gauge]
            if len(bound.parts) > 1:
                bound.remove(part, row)
                self._is_stale.add(gauge)
            else:
                del self._bounds[gauge]
                self._reached.pop(gauge, None)
                self._is_stale.discard(gauge)
                gauge.headroom = None

    # ---- to wake -------------------------------------------------------------------------------------------------

    def rouse(self, part: Flow, now_us: int) -> None:
        """Wake one part."""
        assert isinstance(part, Allocation)
        self._get_up([part], now_us)

    def wake_due(self, now_us: int) -> None:
        """Wake the parts of the sums that could reach a mark in the next column."""
        column = self._column(now_us)
        due = [gauge for gauge, first in self._reached.items() if first <= column]
        if any(self._bounds[gauge].is_shared for gauge in due):
            self.wake(now_us)
        elif due:
            self._rouse_gauges(due, now_us)
            self._woke(now_us)

    def wake(self, now_us: int) -> None:
        """Wake all."""
        if not self._is_resting:
            return
        self._is_resting = False
        self._reached.clear()
        for gauge in self._bounds:
            gauge.headroom = None
        self._get_up(list(self._asleep), now_us)
        for gauge in self._bounds:
            gauge.change(now_us, 0, 0)
        self._woke(now_us)

    def _rouse_gauges(self, gauges: Collection[Gauge], now_us: int) -> None:
        """Wake all that some sums consist of: those are watched event by event."""
        found = {part: None for gauge in gauges for part in self._bounds[gauge].parts if part.is_asleep}
        for gauge in gauges:
            gauge.headroom = None
            self._reached.pop(gauge, None)
        self._get_up(list(found), now_us)
        for gauge in gauges:
            gauge.change(now_us, 0, 0)

    def _get_up(self, parts: list[Allocation], now_us: int) -> None:
        """Let parts follow their curves again. In which order they bend in one moment makes no difference."""
        bent_us = self.bent_us(now_us)
        self._known_asleep = None
        for part in parts:
            del self._asleep[part]
            self._awake[part] = None
            part.get_up(now_us, bent_us)
        for gauge, (amount, slope) in _held(parts, now_us).items():
            gauge.change(now_us, amount, slope, is_covered=True)

    @contextmanager
    def in_view(self, whole: Gauge, now_us: int) -> Iterator[None]:
        """Let a sum and all with the same parts be complete for a look, now only, without waking anything."""
        bent_us = self.bent_us(now_us)
        sums: dict[Gauge, int] = {}
        for part in self._asleep:
            if whole in part.gauges:
                own = part.unseen(now_us, bent_us)
                for gauge in part.gauges:
                    sums[gauge] = sums.get(gauge, 0) + own
        for gauge, amount in sums.items():
            gauge.base += amount
        yield
        for gauge, amount in sums.items():
            gauge.base -= amount


def _held(parts: Iterable[Allocation], now_us: int) -> dict[Gauge, tuple[int, int]]:
    """Return what parts add to their sums, and how fast that grows."""
    sums: dict[Gauge, tuple[int, int]] = {}
    for part in parts:
        own = part.fine(now_us)
        for gauge in part.gauges:
            amount, slope = sums.get(gauge, (0, 0))
            sums[gauge] = amount + own, slope + part.slope
    return sums


def _level(gauge: Gauge) -> int:
    """Return the least amount at which something happens."""
    return min([mark.level for mark in gauge.marks if mark.is_armed])


def _grid(bends: Iterable[Column], until_us: int) -> Column:
    """Return the times between which columns lie: where most curves bend."""
    distinct = {id(times): times for times in bends}
    times = np.unique(np.concatenate([*distinct.values(), np.array([0, until_us])]))
    times = times[(times >= 0) & (times <= until_us)]
    return np.append(times[:: -(-len(times) // _MOST_COLUMNS)], until_us + 1)


@lru_cache(maxsize=64)
def _times(times_us: range) -> Column:
    return np.arange(times_us.start, times_us.stop, times_us.step, dtype=np.int64)


def _points(curve: Curve, offset_us: int, until_us: int) -> _Points:
    """Return times and values of the knots up to the end of a run, repeated where the curve repeats."""
    knots = curve.knots
    values: Column | array[int]
    if isinstance(knots, Knots):
        times = _times(knots.times_us) if isinstance(knots.times_us, range) else np.array(knots.times_us)
        values = knots.values
    else:
        times, values = np.array(knots, dtype=np.int64).T.copy()
    if offset_us:
        times = times + offset_us
    period_us = curve.period_us
    if period_us is None:
        return times, values
    turns = np.arange(-1, (until_us - offset_us) // period_us + 1, dtype=np.int64) * period_us
    values = np.asarray(values)
    repeated = (turns[:, None] + np.concatenate([[offset_us], times, [offset_us + period_us]])[None, :]).ravel()
    # Before the first knot the first value holds, after the last one the last.
    return repeated, np.tile(np.concatenate([values[:1], values, values[-1:]]), len(turns))


def _total(rows: Sequence[_Row]) -> _Row:
    """Return the most that parts hold together."""
    if len(rows) == 1:
        return rows[0]
    starts, ends = np.sum([row.starts for row in rows], axis=0), np.sum([row.ends for row in rows], axis=0)
    return _Row(starts, ends, int(max(starts.max(), ends.max())))


def _rows(points: Sequence[_Points], grid: Column) -> list[_Row]:
    """Return the most that each part holds at the start and at the end of every column, rounded up.

    Within a column it is linear between the two, unless it bends there: then both are its peak.
    """
    distinct = {id(times): times for times, _ in points}
    # Those that bend where columns begin.
    even = {key for key, times in distinct.items() if np.array_equal(times, grid[:-1][: len(times)])}
    plain = iter(_even_rows([values for times, values in points if id(times) in even], len(grid) - 1))
    return [next(plain) if id(times) in even else _row(times, np.asarray(values), grid) for times, values in points]


def _even_rows(values: Sequence[Column | array[int]], width: int) -> Iterator[_Row]:
    padded = (own if len(own) == width else np.pad(own, (0, width - len(own)), "edge") for own in values)
    starts = np.frombuffer(b"".join(own.tobytes() for own in padded), dtype=np.int64).reshape(len(values), width)
    ends = np.concatenate([starts[:, 1:], starts[:, -1:]], axis=1)
    # A slope is rounded towards zero: what falls ends a trifle higher.
    ends += ends < starts
    return map(_Row, starts, ends, starts.max(axis=1).tolist())


def _row(times: Column, values: Column, grid: Column) -> _Row:
    if len(times) == 2 and times[0] < times[1]:
        return _line(times.tolist(), values.tolist(), grid)
    at = _values(times, values, grid, np.searchsorted(times, grid, "right"))
    starts, ends = at[:-1], at[1:].copy()
    if len(times) != len(np.unique(times)):
        # A step at the end of a column is none of its.
        ends = _values(times, values, grid[1:], np.searchsorted(times, grid[1:], "left"))
    ends += ends < starts
    places = np.searchsorted(grid, times, "right") - 1
    inside = (places >= 0) & (places < len(grid) - 1)
    inside[inside] = grid[places[inside]] != times[inside]
    if inside.any():
        columns = places[inside]
        peaks = np.maximum(starts, ends)
        np.maximum.at(peaks, columns, values[inside] + 1)
        starts, ends = starts.copy(), ends.copy()
        starts[columns] = ends[columns] = peaks[columns]
    return _Row(starts, ends, int(max(starts.max(), ends.max(), values.max())))


def _line(times: Sequence[int], values: Sequence[int], grid: Column) -> _Row:
    """Return the same for a curve that is one straight line, as that of a leak is: with less to do."""
    (begin_us, end_us), (begin, end) = times, values
    part = np.clip((grid - begin_us) / (end_us - begin_us), 0.0, 1.0)
    at = np.minimum(np.ceil(begin + (end - begin) * part).astype(np.int64) + 1, max(begin, end))
    at[part == 0.0] = begin
    at[part == 1.0] = end
    starts, ends = at[:-1].copy(), at[1:].copy()
    ends += ends < starts
    for time_us, value in zip(times, values, strict=True):
        place = int(np.searchsorted(grid, time_us, "right")) - 1
        if 0 <= place < len(grid) - 1 and grid[place] != time_us:
            starts[place] = ends[place] = max(int(starts[place]), int(ends[place]), value + 1)
    return _Row(starts, ends, int(max(starts.max(), ends.max(), begin, end)))


def _values(times: Column, values: Column, at: Column, after: Column) -> Column:
    """Return the values at times, rounded up; ``after`` is the knot that the piece in question ends with."""
    last = len(times) - 1
    before, ahead = np.clip(after - 1, 0, last), np.clip(after, 0, last)
    begin, end = values[before], values[ahead]
    span = np.maximum(times[ahead] - times[before], 1)
    part = np.clip((at - times[before]) / span, 0.0, 1.0)
    between = np.ceil(begin + (end - begin) * part).astype(np.int64) + 1
    between = np.minimum(between, np.maximum(begin, end))
    return np.where(part == 0.0, begin, np.where(part == 1.0, end, between))
