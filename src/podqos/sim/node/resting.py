"""A node at rest: the bends of its curves are not followed until the next that could matter. Needs numpy.

Following every bend of every curve is most of a long run, and almost never does a bend matter. So while nothing else
happens on a node, no bend is. For every sum that is watched there is a bound instead, from column to column of a grid
of times: the most that its parts hold there, in whole units, rounded up. The node wakes before the first column in
which a bound reaches a mark, or as soon as anything happens to it; then its parts are what they would be had every bend
been followed. Nothing is decided on a bound: it only says where nothing is to be decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podqos.model.time_units import SECOND_US
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.curve import Curve, Knots
from podqos.sim.engine.event_queue import LAST_TURN, NEVER_US, Action, EventPriority, EventQueue
from podqos.sim.engine.gauge import FRACTION_BITS, Gauge
from podqos.sim.node.resources import NodeResources

_Column: TypeAlias = NDArray[np.int64]

_MOST_COLUMNS = 4096
_MOST_UNITS = 1 << 48
"""A node on which something holds more (256 TiB) does not rest: numbers of columns are to be exact, and their sums."""
_RETRY_US = 60 * SECOND_US
_WORTH_COLUMNS = 2
"""To rest and to wake costs about as much as following the bends of so many columns."""


class _Row(NamedTuple):
    """The most that one part holds at the start and at the end of every column."""

    curve: Curve
    offset_us: int
    starts: _Column
    ends: _Column

    def is_of(self, part: Allocation) -> bool:
        """Whether the part still follows the curve that this is about."""
        return self.curve is part.curve and self.offset_us == part.offset_us


class _Bound:
    """The most that the parts of a sum hold at the start and at the end of every column."""

    __slots__ = ("ends", "parts", "peak", "starts")

    def __init__(self, columns: int) -> None:
        self.parts: frozenset[Allocation] = frozenset()
        self.starts, self.ends = np.zeros(columns, np.int64), np.zeros(columns, np.int64)
        self.peak = 0

    def hold(self, parts: frozenset[Allocation], rows: dict[Allocation, _Row]) -> None:
        """Cover these parts from now on, of whose rows those that it covers already are known, too."""
        if parts == self.parts:
            return
        for part in parts - self.parts:
            self.starts += rows[part].starts
            self.ends += rows[part].ends
        for part in self.parts - parts:
            self.starts -= rows[part].starts
            self.ends -= rows[part].ends
        self.parts = parts
        self.peak = int(max(self.starts.max(), self.ends.max()))


class RestingNode(Protocol):
    """What is known here of a node."""

    index: int
    queue: EventQueue

    @property
    def world(self) -> NodeResources:
        """What runs on it."""

    @property
    def may_rest(self) -> bool:
        """Whether neither the agent nor the kernel has anything to do."""

    def plan(self, time_us: int, priority: EventPriority, action: Action, turn: int = LAST_TURN) -> None:
        """Plan an action."""


class Rest:
    """Lets one node rest."""

    def __init__(self, node: RestingNode, least: int) -> None:
        """``least`` is how many parts must bend before it pays."""
        self._node = node
        self._least = least
        self._resting: list[Allocation] = []
        self._held: dict[Gauge, tuple[int, int]] = {}
        """What they held when the rest began, and how fast that grew."""
        self._began_us = 0
        self._unplanned: list[Allocation] = []
        """Parts that have just woken, whose next bends are planned if the node does not go on resting."""
        self._until_us = 0
        self._tries_us = NEVER_US
        self._rows: dict[Allocation, _Row] = {}
        self._bounds: dict[Gauge, _Bound] = {}
        self._covered: list[Allocation] = []
        """The parts that the bounds are about."""
        self._grid: _Column | None = None

    @property
    def is_resting(self) -> bool:
        """Whether bends are not followed now."""
        return bool(self._resting)

    # ---- to rest -------------------------------------------------------------------------------------------------

    def plan(self, time_us: int) -> None:
        """Try to rest after all other events of a moment."""
        if time_us < self._tries_us and not self._resting:
            self._tries_us = time_us
            self._node.plan(time_us, EventPriority.REST, self._try)

    def _try(self, now_us: int) -> None:
        if now_us != self._tries_us:
            return
        self._tries_us = NEVER_US
        rows = self._rows
        parts = [part for part in self._parts() if part in rows or _bends(part.curve)]
        is_resting = len(parts) >= self._least and self._node.may_rest and self._begin(parts, now_us)
        if is_resting:
            self._unplanned = []
        else:
            self._plan_bends(now_us)
            if len(parts) >= self._least:
                self.plan(self._next_us(now_us))

    def _begin(self, parts: list[Allocation], now_us: int) -> bool:
        """Rest until a bound reaches a mark, if that is worth it; return whether it is."""
        if not all(part.is_plain for part in parts) or not self._cover(parts):
            return False
        column = self._column(now_us)
        self._held, self._began_us = _held(parts, now_us), now_us
        first = self._first_reached(now_us, column)
        assert self._grid is not None
        if first - column < min(_WORTH_COLUMNS, len(self._grid) - 1 - column):
            return False
        self._resting = parts
        for part in parts:
            part.stop_following()
        self._node.queue.resting[self._node.index] = self._due
        self._until_us = int(self._grid[first]) - 1 if first < len(self._grid) - 1 else NEVER_US
        self._node.plan(max(now_us, self._until_us), EventPriority.DEMAND, lambda _: None)
        return True

    def _parts(self) -> Iterator[Allocation]:
        """Yield everything on the node that may bend, each once."""
        world = self._node.world
        yield from world.memory.system.values()
        if world.cpu.system is not None:
            yield world.cpu.system
        for container in world.memory.running.values():
            yield from container.memory
            if container.cpu is not None:
                yield container.cpu
        filesystems = {id(filesystem): filesystem for filesystem in world.disks.filesystems.values()}
        for supply in chain(*(filesystem.values() for filesystem in filesystems.values()), (world.pids,)):
            yield from supply.takers

    def _cover(self, parts: list[Allocation]) -> bool:
        """Let the bounds cover these parts; return whether they can."""
        stale = [part for part in parts if part in self._rows and not self._rows[part].is_of(part)]
        if stale:
            self._bounds, self._rows, self._covered = {}, {}, []
        if parts == self._covered:
            return True
        new = [part for part in parts if part not in self._rows]
        points = [_points(part.curve, part.offset_us, self._node.queue.until_us) for part in new]
        if self._grid is None:
            self._grid = _grid((times for times, _ in points), self._node.queue.until_us)
        for part, (times, values) in zip(new, points, strict=True):
            if values.max() > _MOST_UNITS:
                return False
            self._rows[part] = _Row(part.curve, part.offset_us, *_most(times, values.astype(np.int64), self._grid))
        by_gauge: dict[Gauge, list[Allocation]] = {}
        for part in parts:
            for gauge in part.gauges:
                by_gauge.setdefault(gauge, []).append(part)
        bounds = {}
        for gauge, own in by_gauge.items():
            if gauge.marks:
                bounds[gauge] = self._bounds.get(gauge) or _Bound(len(self._grid) - 1)
                bounds[gauge].hold(frozenset(own), self._rows)
        self._bounds, self._covered = bounds, parts
        if len(self._rows) > 2 * len(parts):
            kept = {part for bound in bounds.values() for part in bound.parts}
            kept.update(parts)
            self._rows = {part: row for part, row in self._rows.items() if part in kept}
        return True

    def _first_reached(self, now_us: int, column: int) -> int:
        """Return the first column from ``column`` on in which a sum could reach a mark; the end if there is none."""
        assert self._grid is not None
        first = len(self._grid) - 1
        for gauge, bound in self._bounds.items():
            armed = [mark for mark in gauge.marks if mark.is_armed]
            if not armed:
                continue
            amount, slope = self._held[gauge]
            if gauge.slope != slope or not all(mark.is_rising for mark in armed):
                return column
            room = min(mark.level for mark in armed) - (gauge.fine(now_us) - amount)
            if bound.peak << FRACTION_BITS < room:
                continue
            most = np.maximum(bound.starts[column:first], bound.ends[column:first])
            reached = most >= -(-room >> FRACTION_BITS) - 1
            if reached.any():
                first = column + int(reached.argmax())
        return first

    def _column(self, now_us: int) -> int:
        """Return the column of what comes after a time."""
        assert self._grid is not None
        return min(int(np.searchsorted(self._grid, now_us + 1, "right")) - 1, len(self._grid) - 2)

    def _next_us(self, now_us: int) -> int:
        """Return the last moment of the column that begins or goes on after a time: when to try again."""
        if self._grid is None:
            return now_us + _RETRY_US
        return max(now_us + 1, int(self._grid[self._column(now_us) + 1]) - 1)

    # ---- to wake -------------------------------------------------------------------------------------------------

    def _due(self, time_us: int, priority: int, turn: int) -> bool:
        """Wake before an event of the node; return whether it is to happen: bends and looks at marks are not."""
        is_bend = priority == EventPriority.DEMAND and time_us < self._until_us
        if is_bend or turn != LAST_TURN or priority == EventPriority.REST:
            return False
        self.wake(time_us, time_us)
        return True

    def wake(self, now_us: int, bent_us: int) -> None:
        """Let all parts be what they would be if all bends up to ``bent_us`` had been followed, and follow them."""
        parts, self._resting = self._resting, []
        if not parts:
            return
        del self._node.queue.resting[self._node.index]
        for part in parts:
            part.go_on(now_us, bent_us)
        passed_us = now_us - self._began_us
        for gauge, (amount, slope) in _held(parts, now_us).items():
            was, was_slope = self._held[gauge]
            for mark in gauge.marks:
                mark.forget()
            # None of its marks is reached by now: they are looked at if the node does not go on resting.
            gauge.base = gauge.fine(now_us) + amount - was - was_slope * passed_us
            gauge.slope, gauge.since_us = gauge.slope + slope - was_slope, now_us
        self._unplanned = parts
        if bent_us < now_us:
            for part in parts:
                part.plan_on(now_us)
        self.plan(now_us)

    def _plan_bends(self, now_us: int) -> None:
        """Follow the bends and watch the marks of parts that have woken."""
        parts, self._unplanned = self._unplanned, []
        for part in parts:
            part.plan_on()
        for gauge in dict.fromkeys(gauge for part in parts for gauge in part.gauges):
            gauge.change(now_us, 0, 0)


def _held(parts: Iterable[Allocation], now_us: int) -> dict[Gauge, tuple[int, int]]:
    """Return what parts add to their sums, and how fast that grows."""
    sums: dict[Gauge, tuple[int, int]] = {}
    for part in parts:
        own, slope = part.fine(now_us), part.slope
        for gauge in part.gauges:
            known = sums.get(gauge)
            sums[gauge] = (own, slope) if known is None else (known[0] + own, known[1] + slope)
    return sums


# ---- columns ---------------------------------------------------------------------------------------------------------


def _grid(bends: Iterable[_Column], until_us: int) -> _Column:
    """Return the times between which columns lie: where most curves bend."""
    distinct = {times.tobytes(): times for times in bends}
    times = np.unique(np.concatenate([*distinct.values(), np.array([0, until_us])]))
    times = times[(times >= 0) & (times <= until_us)]
    return np.append(times[:: -(-len(times) // _MOST_COLUMNS)], until_us + 1)


def _points(curve: Curve, offset_us: int, until_us: int) -> tuple[_Column, NDArray[np.int64] | NDArray[np.object_]]:
    """Return times and values of the knots up to the end of a run, repeated where the curve repeats."""
    knots = curve.knots
    if isinstance(knots, Knots):
        times, values = np.array(knots.times_us, dtype=np.int64), np.array(knots.values)
    else:
        times = np.array([time_us for time_us, _ in knots], dtype=np.int64)
        values = np.array([value for _, value in knots])
    times = times + offset_us
    period_us = curve.period_us
    if period_us is None:
        return times, values
    turns = np.arange(-1, (until_us - offset_us) // period_us + 1, dtype=np.int64) * period_us
    # Before the first knot the first value holds, after the last one the last.
    once = np.concatenate([[offset_us], times, [offset_us + period_us]])
    return (turns[:, None] + once[None, :]).ravel(), np.tile(
        np.concatenate([values[:1], values, values[-1:]]), len(turns)
    )


def _bends(curve: Curve) -> bool:
    return not curve.is_constant and curve.knots[-1][0] < NEVER_US


def _most(times: _Column, values: _Column, grid: _Column) -> tuple[_Column, _Column]:
    """Return the most that a part holds at the start and at the end of every column, rounded up.

    Within a column it is linear between the two, unless it bends there: then both are its peak.
    """
    starts = _values(times, values, grid[:-1], np.searchsorted(times, grid[:-1], "right"))
    # A step at the end of a column is none of its.
    ends = _values(times, values, grid[1:], np.searchsorted(times, grid[1:], "left"))
    # A slope is rounded towards zero: what falls ends a trifle higher.
    ends += ends < starts
    places = np.searchsorted(grid, times, "right") - 1
    inside = (places >= 0) & (places < len(grid) - 1)
    inside[inside] = grid[places[inside]] != times[inside]
    if inside.any():
        columns = places[inside]
        peaks = np.maximum(starts, ends)
        np.maximum.at(peaks, columns, values[inside] + 1)
        starts[columns] = ends[columns] = peaks[columns]
    return starts, ends


def _values(times: _Column, values: _Column, at: _Column, after: _Column) -> _Column:
    """Return the values at times, rounded up; ``after`` is the knot that the piece in question ends with."""
    last = len(times) - 1
    before, ahead = np.clip(after - 1, 0, last), np.clip(after, 0, last)
    begin, end = values[before], values[ahead]
    span = np.maximum(times[ahead] - times[before], 1)
    part = np.clip((at - times[before]) / span, 0.0, 1.0)
    between = np.minimum(np.ceil(begin + (end - begin) * part).astype(np.int64) + 1, np.maximum(begin, end))
    return np.where(part == 0.0, begin, np.where(part == 1.0, end, between))
