from __future__ import annotations

import os
import select

import pytest

from podqos.host.linux.loop import Loop


@pytest.fixture
def loop():
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
