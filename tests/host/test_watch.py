"""The level the kernel is asked to watch is where the eviction manager would find its threshold met."""

from __future__ import annotations

import os
import select

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.agent.commands import MemoryLevel
from podqos.agent.memory import is_memory_short
from podqos.eviction.observation import SignalObservation
from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import parse_thresholds
from podqos.host.linux.cgroupfs import CgroupMemory, KernelSignal
from podqos.host.linux.loop import Loop
from podqos.host.linux.watch import MemoryWatch
from podqos.model.kubelet_config import KubeletConfiguration

MI = 1 << 20
HARD = parse_thresholds(KubeletConfiguration(eviction_hard={"memory.available": "100Mi"}, enforce_node_allocatable=()))
LEVEL = MemoryLevel(Signal.MEMORY, 100 * MI, tell_if_below=True)


class Kernel:
    """A cgroup with figures of our choice, and a record of what was asked."""

    def __init__(self, usage: int, inactive: int) -> None:
        self.held = CgroupMemory(usage, inactive, 0)
        self.levels: list[int] = []
        self.last = -1

    def memory(self, _path: str) -> CgroupMemory:
        return self.held

    def watch_memory(self, _path: str, level: int) -> KernelSignal:
        self.levels.append(level)
        self.last = os.eventfd(0, os.EFD_NONBLOCK)
        return KernelSignal(self.last, select.EPOLLIN)


def _seen(kernel: Kernel, capacity: int) -> dict[Signal, SignalObservation]:
    return {Signal.MEMORY: SignalObservation(capacity - kernel.held.working_set_bytes, capacity)}


@pytest.fixture
def loop():
    made = Loop()
    yield made
    made.close()


@given(usage=st.integers(0, 900 * MI), inactive=st.integers(0, 200 * MI))
def test_growth_to_the_level_meets_the_threshold_and_less_does_not(usage, inactive):
    inactive = min(inactive, usage)
    kernel, loop = Kernel(usage, inactive), Loop()
    watch = MemoryWatch(kernel, loop, {Signal.MEMORY: "/n"}, lambda: None)
    watch.watch([LEVEL], _seen(kernel, 1000 * MI))
    (level,) = kernel.levels
    kernel.held = CgroupMemory(level + MI, inactive, 0)
    assert is_memory_short(HARD, _seen(kernel, 1000 * MI))
    kernel.held = CgroupMemory(max(inactive, level - MI), inactive, 0)
    assert not is_memory_short(HARD, _seen(kernel, 1000 * MI)) or level < inactive + MI
    watch.close()
    loop.close()


def test_the_kernel_is_asked_again_only_for_another_level(loop):
    kernel = Kernel(500 * MI, 10 * MI)
    watch = MemoryWatch(kernel, loop, {Signal.MEMORY: "/n"}, lambda: None)
    for usage, inactive in ((500, 10), (600, 10), (600, 50)):
        kernel.held = CgroupMemory(usage * MI, inactive * MI, 0)
        watch.watch([LEVEL], _seen(kernel, 1000 * MI))
    assert [level // MI for level in kernel.levels] == [910, 950]
    watch.close()


def test_a_level_that_is_not_asked_for_again_is_watched_no_more(loop):
    kernel, told = Kernel(500 * MI, 0), []
    watch = MemoryWatch(kernel, loop, {Signal.MEMORY: "/n"}, lambda: told.append(True))
    other = MemoryLevel(Signal.MEMORY, 200 * MI)
    watch.watch([LEVEL, other], _seen(kernel, 1000 * MI))
    assert [level // MI for level in kernel.levels] == [900, 801]
    assert watch.levels == {"/n": kernel.levels[1]}
    watch.watch([LEVEL], _seen(kernel, 1000 * MI))
    assert watch.levels == {"/n": kernel.levels[0]}
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.eventfd_write(kernel.last, 1)
    watch.close()
    assert watch.levels == {}


def test_a_kernel_without_the_signal_is_said_and_figures_that_lack_are_left_out(loop):
    kernel = Kernel(500 * MI, 0)
    kernel.watch_memory = lambda _path, _level: None
    watch = MemoryWatch(kernel, loop, {Signal.MEMORY: "/n"}, lambda: None)
    assert not watch.watch([LEVEL], _seen(kernel, 1000 * MI))
    assert watch.watch([LEVEL], {})


def test_a_crossing_is_told_once(loop):
    kernel, told = Kernel(500 * MI, 0), []
    watch = MemoryWatch(kernel, loop, {Signal.MEMORY: "/n"}, lambda: told.append(True))
    watch.watch([LEVEL], _seen(kernel, 1000 * MI))
    os.eventfd_write(kernel.last, 1)
    loop.step(1)
    loop.step(0)
    assert told == [True]
    watch.close()


class _Rising(Kernel):
    """Memory that grows while the level is being set."""

    def watch_memory(self, path: str, level: int) -> KernelSignal:
        signal = super().watch_memory(path, level)
        self.held = CgroupMemory(950 * MI, 0, 0)
        return signal


def test_a_level_that_is_passed_while_it_is_set_is_looked_at_again(loop):
    kernel, told = _Rising(880 * MI, 0), []
    watch = MemoryWatch(kernel, loop, {Signal.MEMORY: "/n"}, lambda: told.append(True))
    watch.watch([LEVEL], _seen(kernel, 1000 * MI))
    loop.step(0)
    assert told == [True]
    watch.close()


@pytest.mark.parametrize("wanted", [True, False], ids=["wanted", "not wanted"])
def test_memory_that_is_below_the_level_already_is_told_only_if_that_is_wanted(loop, wanted):
    kernel, told = Kernel(950 * MI, 0), []
    watch = MemoryWatch(kernel, loop, {Signal.MEMORY: "/n"}, lambda: told.append(True))
    watch.watch([MemoryLevel(Signal.MEMORY, 100 * MI, wanted)], _seen(kernel, 1000 * MI))
    loop.step(0)
    assert told == [True] * wanted
    watch.close()


def test_a_level_that_was_told_of_is_set_again(loop):
    kernel = Kernel(500 * MI, 0)
    watch = MemoryWatch(kernel, loop, {Signal.MEMORY: "/n"}, lambda: None)
    watch.watch([LEVEL], _seen(kernel, 1000 * MI))
    os.eventfd_write(kernel.last, 1)
    loop.step(1)
    watch.watch([LEVEL], _seen(kernel, 1000 * MI))
    assert len(kernel.levels) == 2
    watch.close()
