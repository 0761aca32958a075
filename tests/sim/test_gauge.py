"""Gauges pass their marks at the very microsecond, and sums are exact whatever the order."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podqos.sim.engine import event_queue
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.curve import Clock, Curve
from podqos.sim.engine.event_queue import CLUSTER, EventPriority, EventQueue
from podqos.sim.engine.gauge import Gauge, GaugeMark

END_US = 10**9


class Clockwork:
    """A queue with one node."""

    def __init__(self) -> None:
        self.queue = EventQueue(END_US)
        self.passed: list[int] = []

    def plan(self, time_us, priority, action, *turn) -> None:
        self.queue.plan(time_us, 0, priority, action, *turn)

    def run(self, until_us: int = END_US) -> None:
        while self.queue.next is not None and self.queue.next[0] <= until_us:
            self.queue.step()


knots = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**9)), min_size=1, max_size=5).map(
    lambda made: tuple(sorted(made, key=lambda knot: knot[0]))
)
curves = st.builds(Curve, knots)


@given(st.lists(curves, min_size=1, max_size=4), st.integers(0, 3 * 10**9))
@example([Curve(((0, 0), (2, 1))), Curve(((0, 0), (11, 21))), Curve(((0, 27), (3, 26)))], 28)
def test_a_mark_is_passed_when_the_sum_first_exceeds_it_and_not_before(wanted, limit):
    works, gauge = Clockwork(), Gauge()
    mark = GaugeMark(gauge, works.plan, works.passed.append)
    mark.above(limit, 0)
    for curve in wanted:
        Allocation(curve, (gauge,), works.plan, 0)
    works.run()
    times = sorted({time_us for curve in wanted for time_us, _ in curve.knots} | {0})
    most = max(sum(curve.at(time_us) for curve in wanted) for time_us in times)
    # Rounding takes away less than a unit per curve.
    if most > limit + len(wanted):
        (at_us,) = works.passed
        assert sum(curve.at(at_us) for curve in wanted) >= limit + 2 - len(wanted)
        assert at_us == 0 or sum(curve.at(at_us - 1) for curve in wanted) <= limit + len(wanted)
    elif most <= limit:
        assert not works.passed or _falls_from_a_step(wanted, limit)


def _falls_from_a_step(wanted: list[Curve], limit: int) -> bool:
    """Whether the sum was above the limit just before a step down."""
    ends = {time_us - 1 for curve in wanted for time_us, _ in curve.knots if time_us}
    return any(sum(curve.at(time_us) for curve in wanted) >= limit for time_us in ends)


@given(curves, st.integers(0, 2 * 10**6))
def test_a_want_holds_what_its_curve_says(curve, time_us):
    works, gauge = Clockwork(), Gauge()
    allocation = Allocation(curve, (gauge,), works.plan, 0)
    works.run(time_us)
    assert 0 <= abs(allocation.at(time_us) - curve.at(time_us)) <= 1
    assert gauge.fine(time_us) == allocation.fine(time_us)


def test_a_curve_by_the_container_s_clock_begins_when_the_container_does():
    works, gauge = Clockwork(), Gauge()
    works.queue.now_us = gauge.since_us = 500
    allocation = Allocation(Curve(((0, 10), (100, 110)), clock=Clock.CONTAINER), (gauge,), works.plan, 500)
    assert (allocation.at(500), allocation.at(550)) == (10, 60)


def test_what_is_taken_is_owed_until_the_curve_has_fallen_below_it():
    works, gauge = Clockwork(), Gauge()
    allocation = Allocation(Curve(((0, 100), (100, 100), (200, 0), (300, 50))), (gauge,), works.plan, 0)
    allocation.take(0, 60)
    assert gauge.at(0) == 40
    works.run(150)
    assert gauge.at(150) == 0
    works.run(250)
    assert gauge.at(250) in {24, 25}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_marks_of_one_moment_are_passed_in_the_order_in_which_they_were_made_whenever_they_were_planned(order):
    works, gauges, passed = Clockwork(), (Gauge(), Gauge()), []
    for index, gauge in enumerate(gauges):
        GaugeMark(gauge, works.plan, lambda time_us, index=index: passed.append((index, time_us))).above(10, 0)
    for index in order:
        Allocation(Curve(((0, 0), (100, 100))), (gauges[index],), works.plan, 0)
    works.run()
    assert passed == [(0, 11), (1, 11)]


@pytest.mark.parametrize(
    "priorities", [[EventPriority.KUBELET, EventPriority.DEMAND], [EventPriority.DEMAND, EventPriority.KUBELET]]
)
def test_things_of_one_moment_are_done_in_turn(priorities):
    queue, done = EventQueue(10), []
    for priority in priorities:
        queue.plan(5, 1, priority, lambda _, priority=priority: done.append(priority))
    queue.plan(5, CLUSTER, EventPriority.KUBELET, lambda _: done.append("cluster"))
    while queue.next is not None:
        queue.step()
    assert done == ["cluster", EventPriority.DEMAND, EventPriority.KUBELET]


def test_nothing_happens_after_the_end_or_in_the_past():
    queue = EventQueue(10)
    queue.plan(11, 0, EventPriority.LIFE, lambda _: None)
    assert queue.next is None
    queue.now_us = 5
    with pytest.raises(AssertionError, match="past"):
        queue.plan(4, 0, EventPriority.LIFE, lambda _: None)


def _run_out(queue):
    while queue.next is not None and queue.done < 10_000:
        queue.step()


def test_a_node_on_which_time_stands_still_is_found_out_soon(monkeypatch):
    monkeypatch.setattr(event_queue, "MOST_ON_A_NODE", 1000)
    queue = EventQueue(10)

    def again(now_us: int) -> None:
        queue.plan(now_us, CLUSTER, EventPriority.LIFE, lambda _: None)
        queue.plan(now_us, 0, EventPriority.LIFE, again)

    queue.plan(5, 0, EventPriority.LIFE, again)
    with pytest.raises(AssertionError, match="time stands still at 5 µs"):
        _run_out(queue)


def test_many_nodes_may_have_much_to_do_at_one_time(monkeypatch):
    monkeypatch.setattr(event_queue, "MOST_ON_A_NODE", 1000)
    queue = EventQueue(10)
    for node in range(3):
        for _ in range(999):
            queue.plan(5, node, EventPriority.LIFE, lambda _: None)
    _run_out(queue)
    assert queue.done == 3 * 999
