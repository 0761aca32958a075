from __future__ import annotations

import os
import select
import threading

import pytest

from host.virtual_loop import virtual_loop
from podqos.host.linux.background import Background
from podqos.host.linux.loop import Debounce, Loop


@pytest.fixture
def loop_and_clock():
    with virtual_loop() as made:
        yield made


@pytest.fixture
def loop(loop_and_clock):
    return loop_and_clock[0]


@pytest.fixture
def real_loop():
    made = Loop()
    yield made
    made.close()


def test_things_are_done_in_the_order_of_their_times(loop):
    done = []
    loop.call_after(0.02, lambda: done.append("second"))
    loop.call_after(0.01, lambda: done.append("first"))
    loop.call_after(0.02, lambda: done.append("third"))
    loop.call_after(0.015, lambda: done.append("never")).cancel()
    while len(done) < 3:
        loop.step(0.05)
    assert done == ["first", "second", "third"]


def test_a_descriptor_is_heard_until_it_is_no_longer_watched(loop):
    read, write = os.pipe()
    heard = []
    loop.watch(read, lambda: heard.append(os.read(read, 10)))
    os.write(write, b"a")
    loop.step(1)
    loop.unwatch(read)
    loop.unwatch(read)
    os.write(write, b"b")
    loop.step(0)
    assert heard == [b"a"]
    os.close(read)
    os.close(write)


def test_one_that_stops_listening_while_both_are_heard_hears_nothing(loop):
    pipes = [os.pipe() for _ in range(2)]
    heard = []

    def hear(own: int) -> None:
        heard.append(own)
        for read, _ in pipes:
            loop.unwatch(read)

    for number, (read, write) in enumerate(pipes):
        loop.watch(read, lambda number=number: hear(number))
        os.write(write, b"x")
    loop.step(1)
    assert len(heard) == 1
    for pipe in pipes:
        for end in pipe:
            os.close(end)


def test_an_event_can_be_waited_for_that_is_not_reading(loop):
    read, write = os.pipe()
    heard = []
    loop.watch(write, lambda: heard.append(True), select.EPOLLOUT)
    loop.step(1)
    assert heard == [True]
    loop.unwatch(write)
    os.close(read)
    os.close(write)


def test_run_goes_on_until_stopped(loop):
    loop.call_after(0.01, loop.stop)
    loop.run()


def test_a_callback_that_raises_is_told_and_the_others_are_called(loop):
    told, done = [], []
    loop.failed = told.append

    def fails() -> None:
        raise KeyError("x")

    loop.call_after(0, fails)
    loop.call_after(0, lambda: done.append("next"))
    loop.step(0.1)
    assert [str(error) for error in told] == ["'x'"]
    assert done == ["next"]


def test_what_is_called_again_and_again_is_so_also_after_it_failed(loop):
    calls = []
    loop.failed = lambda _error: None

    def fails() -> None:
        calls.append(1)
        raise ValueError

    loop.call_every(0.01, fails)
    loop.run_for(0.1)
    assert len(calls) > 2


def test_a_descriptor_whose_callback_keeps_failing_does_not_keep_the_loop_busy(loop):
    event = os.eventfd(1)
    told, calls = [], []
    loop.failed = told.append

    def fails_at_first() -> None:
        calls.append(1)
        if len(calls) < 3:
            raise OSError
        os.eventfd_read(event)

    loop.watch(event, fails_at_first)
    loop.run_for(0.01)
    assert len(calls) == 1, "it is paused"
    loop.run_for(0.3)
    assert len(calls) == 3
    os.eventfd_write(event, 1)
    loop.run_for(0.01)
    assert len(calls) == 4, "it works again: no pause"
    loop.unwatch(event)
    os.close(event)


def test_a_paused_descriptor_can_be_unwatched(loop):
    event = os.eventfd(1)
    loop.failed = lambda _error: None

    def fails() -> None:
        raise OSError

    loop.watch(event, fails)
    loop.step(0)
    loop.unwatch(event)
    os.close(event)
    loop.run_for(0.1)


def test_many_due_timers_leave_room_for_descriptors_in_between(loop_and_clock):
    loop, clock = loop_and_clock
    event, order = os.eventfd(0), []
    loop.watch(event, lambda: (os.eventfd_read(event), order.append("urgent")))
    for _ in range(20):
        loop.call_after(0, lambda: (clock.sleep(0.005), order.append("timer")))
    os.eventfd_write(event, 1)
    loop.step(0.1)
    os.eventfd_write(event, 1)
    loop.step(0)
    assert order.count("timer") < 20
    assert order.count("urgent") == 2
    assert loop.longest_turn_seconds <= 0.03
    os.close(event)


def test_work_on_another_thread_comes_back_to_the_loop_with_its_result_or_what_it_raised(real_loop):
    background, found = Background(real_loop, "test"), []

    def fails() -> int:
        raise ValueError("no")

    background.run(lambda: (threading.get_ident(), 7), found.append)
    background.run(fails, found.append)
    while len(found) < 2:
        real_loop.step(1)
    assert found[0][0] != threading.get_ident()
    assert found[0][1] == 7
    assert isinstance(found[1], ValueError)
    background.close()


def test_work_that_hangs_holds_up_neither_the_loop_nor_other_work_nor_the_end(real_loop):
    background, found, gate = Background(real_loop, "test", most_threads=2), [], threading.Event()
    background.run(gate.wait, found.append)
    background.run(lambda: "done", found.append)
    while not found:
        real_loop.step(1)
    assert found == ["done"]
    background.close()
    gate.set()
    real_loop.run_for(0.05)
    assert found == ["done"], "what comes after the end is dropped"


def test_events_that_come_in_a_group_are_answered_once_and_a_later_one_again(loop_and_clock):
    loop, _clock = loop_and_clock
    answered = []
    changes = Debounce(loop, 0.05, lambda: answered.append(1))
    for _ in range(3):
        changes.heard()
    loop.run_for(0.2)
    assert answered == [1]
    changes.heard()
    loop.run_for(0.2)
    assert answered == [1, 1]
