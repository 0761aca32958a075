"""The agent is told when the eviction manager would find its threshold met, whatever the page cache does."""

from __future__ import annotations

import os
import select

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.virtual_loop import virtual_loop
from podqos.agent.agent import LEAST_LOOK_SECONDS, look_again_seconds
from podqos.agent.port import MemoryLevel, WatchMemory
from podqos.eviction.signals import Signal
from podqos.host.linux.cgroupfs import CgroupMemory, KernelSignal
from podqos.host.linux.loop import Loop
from podqos.host.linux.watch import KernelMemoryWatch, MemoryFigures, MemorySeen

MI = 1 << 20
LIMIT = 1000 * MI
LEVEL = MemoryLevel(Signal.MEMORY, 100 * MI, tell_if_below=True)
FAST = WatchMemory((LEVEL,), through_cache=True)
KUBELET = WatchMemory((LEVEL,))
BOTH = pytest.mark.parametrize("asked", [FAST, KUBELET], ids=["fast path", "kubelet"])


class Kernel:
    """A cgroup with a limit and figures of our choice, and a record of what was asked."""

    def __init__(self, usage_mib: int, inactive_mib: int = 0) -> None:
        self.use(usage_mib, inactive_mib)
        self.levels: list[int] = []
        self.last = -1
        self.high: int | None = 0
        self.looks = 0
        self.outside_mib: int | None = None
        """What is used outside of the cgroup, of a machine of which it has no share."""
        self.below: list[CgroupMemory] = []

    def use(self, usage_mib: float, inactive_mib: float = 0) -> None:
        self.usage, self.inactive = int(usage_mib * MI), int(inactive_mib * MI)

    @property
    def available(self) -> int:
        return LIMIT - self.usage + self.inactive - (self.outside_mib or 0) * MI

    def look(self) -> MemoryFigures:
        self.looks += 1
        full = self.available + self.usage - self.inactive
        seen = MemorySeen(self.available, self.usage, self.inactive, full, self.outside_mib is None)
        return MemoryFigures({Signal.MEMORY: seen}, list(self.below))

    def watch_memory(self, path: str, level: int) -> KernelSignal | None:
        """Keep one level, as version 2 does."""
        self.levels.append(level)
        self.high = level
        self.last = os.eventfd(0, os.EFD_NONBLOCK)
        return KernelSignal(self.last, select.EPOLLIN, lambda: self.unwatch_memory(path))

    def unwatch_memory(self, _path: str) -> None:
        self.high = None


def _watching(kernel: Kernel, loop: Loop, asked: WatchMemory = FAST) -> tuple[KernelMemoryWatch, list[bool]]:
    told: list[bool] = []
    watch = KernelMemoryWatch(kernel, loop, {Signal.MEMORY: "/n"}, kernel.look, lambda: told.append(True))
    watch.watch(asked)
    return watch, told


@pytest.fixture
def loop():
    with virtual_loop() as (made, _):
        yield made


@given(usage=st.integers(0, 1000), inactive=st.integers(0, 1000))
def test_usage_below_the_level_is_enough_memory_however_much_of_it_is_cache(usage, inactive):
    kernel, loop = Kernel(usage, min(usage, inactive)), Loop()
    watch, _ = _watching(kernel, loop)
    (level,) = kernel.levels
    kernel.use(level / MI - 2)
    assert kernel.available >= LEVEL.below_bytes
    kernel.use(level / MI + 1)
    assert kernel.available < LEVEL.below_bytes
    watch.close()
    loop.close()


def test_growth_that_page_cache_hides_is_told(loop):
    """Usage stays at the limit: what grows takes the place of inactive cache."""
    kernel = Kernel(1000, 500)
    watch, told = _watching(kernel, loop)
    for inactive, expected in ((300, []), (101, []), (99, [True])):
        kernel.use(1000, inactive)
        loop.run_for(0.07)
        assert told == expected
    watch.close()


def test_cache_that_fills_the_node_after_the_level_was_set_is_seen_through_as_well(loop):
    kernel = Kernel(500)
    watch, told = _watching(kernel, loop)
    kernel.use(950, 450)
    os.eventfd_write(kernel.last, 1)
    loop.step(1)
    assert told == [True], "there was no cache: the agent looks itself"
    watch.watch(FAST)
    loop.run_for(0.07)
    assert told == [True]
    kernel.use(1000, 50)
    loop.run_for(0.07)
    assert told == [True, True]
    watch.close()


def test_nothing_is_looked_at_while_usage_is_below_the_level(loop):
    kernel = Kernel(850, 100)
    watch, _ = _watching(kernel, loop)
    before = kernel.looks
    loop.run_for(0.05)
    assert kernel.looks == before
    watch.close()


def test_cache_that_goes_ends_the_looking(loop):
    kernel = Kernel(1000, 200)
    watch, told = _watching(kernel, loop)
    kernel.use(600, 0)
    loop.run_for(0.03)
    before = kernel.looks
    loop.run_for(0.05)
    assert (kernel.looks, told) == (before, [])
    watch.close()


def test_memory_that_something_outside_of_the_cgroup_takes_is_told(loop):
    kernel = Kernel(100)
    kernel.outside_mib = 0
    watch, told = _watching(kernel, loop)
    loop.run_for(0.01)
    assert told == []
    kernel.outside_mib = 850
    loop.run_for(0.3)
    assert told == [True]
    watch.close()


def test_figures_that_do_not_show_a_change_further_down_are_looked_at_again_at_once(loop):
    kernel = Kernel(1000, 900)
    watch, told = _watching(kernel, loop)
    loop.run_for(0.12)
    before = kernel.looks
    kernel.below = [CgroupMemory(MI, 0, MI)]
    watch.watch(FAST)
    kernel.use(1000, 0)
    loop.run_for(0.02)
    assert told == [True]
    assert kernel.looks > before
    watch.close()


def test_what_does_not_change_is_looked_at_less_often(loop):
    kernel = Kernel(1000, 101)
    watch, told = _watching(kernel, loop)
    loop.run_for(0.1)
    assert 2 <= kernel.looks <= 15
    assert told == []
    watch.close()


@given(beyond=st.integers(-(1 << 40), 1 << 50), rate=st.floats(1, 8 << 30))
def test_the_next_look_comes_before_any_growth_can_use_up_what_is_left(beyond, rate):
    seconds = look_again_seconds(beyond)
    assert LEAST_LOOK_SECONDS <= seconds <= 10
    assert seconds <= max(0.01, beyond / rate)


def test_a_known_shortage_is_told_again_once_it_has_ended_and_begun_anew(loop):
    kernel = Kernel(1000, 50)
    watch, told = _watching(kernel, loop, WatchMemory((MemoryLevel(Signal.MEMORY, 100 * MI),), through_cache=True))
    loop.run_for(0.05)
    assert told == []
    kernel.use(1000, 120)
    loop.run_for(0.05)
    kernel.use(1000, 50)
    loop.run_for(0.05)
    assert told == [True]
    watch.close()


def test_a_level_that_does_not_change_is_set_once_for_the_fast_path(loop):
    kernel = Kernel(500, 10)
    watch, _ = _watching(kernel, loop)
    for usage, inactive in ((600, 10), (1000, 600), (700, 50)):
        kernel.use(usage, inactive)
        os.eventfd_write(kernel.last, 1)
        loop.step(0)
        watch.watch(FAST)
    assert [level // MI for level in kernel.levels] == [900]
    watch.close()


def test_another_threshold_replaces_the_level_of_the_last_and_nothing_is_left_of_any(loop):
    kernel = Kernel(500)
    watch, _ = _watching(kernel, loop)
    watch.watch(WatchMemory((MemoryLevel(Signal.MEMORY, 200 * MI),), through_cache=True))
    assert kernel.high == pytest.approx(800 * MI, abs=MI)
    watch.watch(WatchMemory())
    assert kernel.high is None
    watch.close()


def test_a_level_that_a_killed_agent_left_is_removed(loop):
    kernel = Kernel(500)
    kernel.high = 100 * MI
    KernelMemoryWatch(kernel, loop, {Signal.MEMORY: "/n"}, kernel.look, lambda: None).close()
    assert kernel.high is None


def test_a_kubelets_level_follows_the_page_cache(loop):
    kernel = Kernel(500, 10)
    watch, _ = _watching(kernel, loop, KUBELET)
    for usage, inactive in ((600, 10), (600, 50)):
        kernel.use(usage, inactive)
        watch.watch(KUBELET)
    assert [level // MI for level in kernel.levels] == [910, 950]
    kernel.use(1000, 150)
    watch.watch(KUBELET)
    before = kernel.looks
    loop.run_for(0.03)
    assert kernel.looks == before, "a kubelet does not look in between"
    watch.close()


@BOTH
def test_a_level_that_is_not_asked_for_again_is_watched_no_more(loop, asked):
    kernel = Kernel(500)
    other = MemoryLevel(Signal.MEMORY, 200 * MI)
    watch, _ = _watching(kernel, loop, WatchMemory((LEVEL, other), asked.through_cache))
    assert [level // MI for level in kernel.levels] == [900, 800]
    assert watch.levels == {"/n": kernel.levels[1]}
    watch.watch(asked)
    assert watch.levels == {"/n": kernel.levels[0]}
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.eventfd_write(kernel.last, 1)
    watch.close()
    assert watch.levels == {}


@BOTH
def test_a_kernel_without_the_signal_is_said_and_figures_that_lack_are_left_out(loop, asked):
    kernel = Kernel(500)
    kernel.watch_memory = lambda _path, _level: None
    watch = KernelMemoryWatch(kernel, loop, {Signal.MEMORY: "/n"}, kernel.look, lambda: None)
    assert not watch.watch(asked)
    kernel.look = lambda: MemoryFigures({}, ())
    watch = KernelMemoryWatch(kernel, loop, {Signal.MEMORY: "/n"}, kernel.look, lambda: None)
    assert watch.watch(asked)


def test_the_fast_path_looks_where_the_kernel_has_no_signal(loop):
    kernel = Kernel(500)
    kernel.watch_memory = lambda _path, _level: None
    watch, told = _watching(kernel, loop)
    kernel.use(950)
    loop.run_for(0.1)
    assert told == [True]
    watch.close()


@BOTH
def test_a_crossing_is_told_once(loop, asked):
    kernel = Kernel(500)
    watch, told = _watching(kernel, loop, asked)
    kernel.use(950)
    os.eventfd_write(kernel.last, 1)
    loop.step(1)
    loop.run_for(0.03)
    assert told == [True]
    watch.close()


class _Rising(Kernel):
    """Memory that grows while the level is being set."""

    def watch_memory(self, path: str, level: int) -> KernelSignal | None:
        signal = super().watch_memory(path, level)
        self.use(950)
        return signal


class Unsignalled(Kernel):
    """A kernel that signals nothing, and counts how often all figures are read."""

    glances = 0

    def watch_memory(self, _path: str, _level: int) -> None:
        return None

    def glance(self) -> dict[Signal, int]:
        self.glances += 1
        return {Signal.MEMORY: LIMIT - self.usage}


def _glancing(kernel: Unsignalled, loop: Loop) -> tuple[KernelMemoryWatch, list[bool]]:
    told: list[bool] = []
    watch = KernelMemoryWatch(
        kernel, loop, {Signal.MEMORY: "/n"}, kernel.look, lambda: told.append(True), glance=kernel.glance
    )
    watch.watch(FAST)
    return watch, told


def test_where_a_glance_says_that_there_is_time_nothing_else_is_read(loop):
    kernel = Unsignalled(500, 100)
    _, told = _glancing(kernel, loop)
    looks = kernel.looks
    loop.run_for(10)
    assert kernel.glances > 50
    assert kernel.looks == looks
    assert not told


def test_page_cache_that_makes_glances_useless_is_looked_through(loop):
    kernel = Unsignalled(999, 800)
    _, told = _glancing(kernel, loop)
    looks = kernel.looks
    loop.run_for(10)
    assert kernel.looks - looks < 150, "as often as what is available needs, not as what is unused"
    assert not told
    kernel.use(999, 50)
    loop.run_for(0.2)
    assert told


@given(
    usage=st.integers(0, 890),
    inactive=st.integers(0, 890),
    reclaimed=st.floats(0, 1),
    seconds=st.floats(0.12, 3),
)
def test_growth_that_is_only_glanced_at_is_told_before_memory_is_gone(usage, inactive, reclaimed, seconds):
    """However much of it is page cache, and whenever that is given back."""
    inactive = min(usage, inactive)
    with virtual_loop() as (loop, clock):
        kernel = Unsignalled(usage, inactive)
        watch, told = _glancing(kernel, loop)
        look, glance = kernel.look, kernel.glance

        def now() -> None:
            """Let memory be used up by the end, evenly; page cache goes as it has to, or before."""
            share = min(1.0, clock.now / seconds)
            used = usage - inactive + (1000 - usage + inactive) * share
            cache = min(inactive * (1 - reclaimed * share), 1000 - used)
            kernel.use(used + cache, cache)

        watch._take_look = lambda: (now(), look())[1]
        watch._glance = lambda: (now(), glance())[1]
        while not told and clock.now < seconds:
            loop.step()
        assert told
        assert clock.now < seconds, "100 MiB before the end"
        watch.close()


def test_a_kernels_signal_counts_although_memory_is_looked_at_because_of_another_level():
    """The machine's memory has no signal and is looked at now and then; that of all pods has one."""
    kernel = Kernel(100)
    machine = MemorySeen(5000 * MI, 0, 0, 5000 * MI, is_all=False)

    def look() -> MemoryFigures:
        of_pods = kernel.look().signals[Signal.MEMORY]
        return MemoryFigures({Signal.MEMORY: machine, Signal.ALLOCATABLE_MEMORY: of_pods}, ())

    class Signals:
        def watch_memory(self, path: str, level: int) -> KernelSignal | None:
            return kernel.watch_memory(path, level) if path == "/pods" else None

        def unwatch_memory(self, _path: str) -> None: ...

    paths = {Signal.MEMORY: "/", Signal.ALLOCATABLE_MEMORY: "/pods"}
    with virtual_loop() as (loop, clock):
        told: list[float] = []
        watch = KernelMemoryWatch(Signals(), loop, paths, look, lambda: told.append(clock.now))
        watch.watch(WatchMemory((LEVEL, MemoryLevel(Signal.ALLOCATABLE_MEMORY, 100 * MI)), through_cache=True))
        kernel.use(950)
        os.eventfd_write(kernel.last, 1)
        loop.step()
        assert told == [0.0]
        watch.close()


@BOTH
def test_a_level_that_is_passed_while_it_is_set_is_looked_at_again(loop, asked):
    watch, told = _watching(_Rising(880), loop, asked)
    loop.step(0)
    assert told == [True]
    watch.close()


@BOTH
def test_the_figures_of_the_pass_that_asks_are_not_read_again(loop, asked):
    kernel = Kernel(700, 20)
    watch, told = _watching(kernel, loop, asked)
    seen, before = kernel.look(), kernel.looks
    watch.watch(asked, seen)
    assert (kernel.looks, told) == (before, [])
    watch.close()


@BOTH
def test_a_level_that_is_passed_between_a_pass_and_its_setting_is_told(loop, asked):
    kernel = Kernel(880)
    seen, told = kernel.look(), []
    watch = KernelMemoryWatch(kernel, loop, {Signal.MEMORY: "/n"}, kernel.look, lambda: told.append(True))
    kernel.use(950)
    watch.watch(asked, seen)
    assert kernel.looks == 2
    assert told == [], "the agent is in the middle of a pass"
    loop.step(0)
    assert told == [True]
    watch.close()


def test_the_next_look_counts_from_when_the_figures_of_a_pass_were_read():
    """A pass over many pods takes longer than memory may be left alone."""
    with virtual_loop() as (loop, clock):
        kernel = Unsignalled(500)
        told: list[float] = []
        watch = KernelMemoryWatch(kernel, loop, {Signal.MEMORY: "/n"}, kernel.look, lambda: told.append(clock.now))
        wait = look_again_seconds(kernel.available - LEVEL.below_bytes)
        watch.watch(FAST, kernel.look()._replace(age_seconds=wait / 2))
        kernel.use(950)
        loop.run_for(1)
        assert told == [pytest.approx(wait / 2)]
        watch.watch(FAST, MemoryFigures({Signal.MEMORY: MemorySeen(500 * MI, 500 * MI, 0, LIMIT)}, (), age_seconds=5))
        loop.step(0)
        assert len(told) == 2, "too old: at once"
        watch.close()


def test_figures_that_cannot_be_read_do_not_end_the_looking(loop):
    kernel = Kernel(1000, 500)
    watch, told = _watching(kernel, loop)
    watch._take_look = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        watch.watch(FAST)
    watch._take_look = kernel.look
    kernel.use(1000, 50)
    loop.run_for(0.1)
    assert told == [True]
    watch.close()


def test_a_look_that_finds_memory_short_tells_at_once_rather_than_in_the_next_turn(loop):
    kernel = Kernel(1000, 500)
    watch, told = _watching(kernel, loop)
    kernel.use(1000, 50)
    watch.look()
    assert told == [True]
    watch.close()


@BOTH
@pytest.mark.parametrize("wanted", [True, False], ids=["wanted", "not wanted"])
def test_memory_that_is_below_the_level_already_is_told_only_if_that_is_wanted(loop, wanted, asked):
    level = MemoryLevel(Signal.MEMORY, 100 * MI, wanted)
    watch, told = _watching(Kernel(950), loop, WatchMemory((level,), asked.through_cache))
    loop.step(0)
    assert told == [True] * wanted
    watch.close()


def test_a_level_that_a_kubelet_was_told_of_is_set_again(loop):
    kernel = Kernel(500)
    watch, _ = _watching(kernel, loop, KUBELET)
    os.eventfd_write(kernel.last, 1)
    loop.step(1)
    watch.watch(KUBELET)
    assert len(kernel.levels) == 2
    watch.close()
