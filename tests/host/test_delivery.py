"""How events reach an agent: one after the other, and when it wants to be woken."""

from __future__ import annotations

import pytest

from podqos.agent.port import MemoryNotified, Woken
from podqos.host.shell.delivery import Delivery


class Timers:
    """A loop that only remembers what is to be called."""

    def __init__(self):
        self.set = []

    def call_after(self, seconds, callback):
        self.set.append((seconds, callback))
        return self

    def cancel(self):
        self.set.pop()


def delivery(handle, settled=lambda: None, wake_us=lambda: None):
    timers = Timers()
    made = Delivery(timers, lambda: 1_000_000, handle=handle, settled=settled, wake_us=wake_us, wake=lambda: None)
    return made, timers


def test_what_follows_from_an_event_is_handled_after_it():
    done = []

    def handle(event):
        done.append(("begun", type(event)))
        if isinstance(event, MemoryNotified):
            made.deliver(Woken())
        done.append(("over", type(event)))

    made, _ = delivery(handle, lambda: done.append("settled"))
    made.deliver(MemoryNotified())

    assert done == [("begun", MemoryNotified), ("over", MemoryNotified), ("begun", Woken), ("over", Woken), "settled"]


def test_the_agent_is_woken_when_it_last_asked_for_it():
    times = iter([4_000_000, 1_500_000, 500_000])
    made, timers = delivery(lambda _event: None, wake_us=lambda: next(times))
    for seconds in (3.0, 0.5, 0.0):
        made.deliver(Woken())
        assert [after for after, _ in timers.set] == [seconds]


def test_a_step_that_fails_leaves_neither_the_timer_nor_the_next_event_behind():
    handled = []

    def settled():
        if len(handled) == 1:
            raise OSError("the disk is full")

    made, timers = delivery(handled.append, settled, lambda: 2_000_000)
    with pytest.raises(OSError, match="full"):
        made.deliver(Woken())
    assert len(timers.set) == 1
    made.deliver(MemoryNotified())
    assert len(handled) == 2
