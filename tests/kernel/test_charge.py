"""What an allocation leads to: room, reclaim, delay, or an OOM at one level of the tree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.trees import GI, LEAVES, MI, PATHS, SIZES, charges, holding, limited, memories, memory
from podqos.kernel.charge import Charge, MemoryBound, charge, high_delay_usec, machine_room, rooms, with_reclaim
from podqos.kernel.memcg import Kind, MemcgSettings


def test_where_there_is_room_nothing_else_happens():
    state = memory(a=limited(100 * MI))
    assert charge(state, "/a", Kind.ANON, 100 * MI) == Charge(100 * MI)


def test_a_cgroup_at_its_limit_first_gives_up_its_own_cache():
    state = memory(a=limited(100 * MI), b=limited())
    holding(holding(state, "/a", anon=40 * MI, inactive_file=60 * MI), "/b", inactive_file=60 * MI)
    result = charge(state, "/a", Kind.ANON, 50 * MI)
    assert result.out_of_memory is None
    assert [(each.path, each.size_bytes // MI) for each in result.taken] == [("/a", 50)]


def test_a_single_byte_too_much_is_reclaimed_too():
    state = holding(memory(a=limited(100 * MI)), "/a", anon=40 * MI, inactive_file=60 * MI)
    result = charge(state, "/a", Kind.ANON, 1)
    assert (result.charged_bytes, result.out_of_memory) == (1, None)
    assert [each.size_bytes for each in result.taken] == [1]


def test_a_cgroup_full_of_private_memory_runs_out():
    state = holding(memory(a=limited(100 * MI)), "/a", anon=90 * MI, inactive_file=5 * MI)
    result = charge(state, "/a", Kind.ANON, 30 * MI)
    assert result.charged_bytes == 10 * MI
    oom = result.out_of_memory
    assert (oom.path, oom.bound, oom.missing_bytes, oom.kills) == ("/a", MemoryBound.MEMORY, 20 * MI, True)
    assert oom.oom_total_pages == 100 * MI // 4096


@pytest.mark.parametrize(
    ("limits_mib", "path", "charged_mib"),
    [
        pytest.param((100, 150, 300), "/kubepods/pod/c", 100, id="container"),
        pytest.param((None, 150, 300), "/kubepods/pod", 150, id="pod"),
        pytest.param((None, None, 300), "/kubepods", 300, id="kubepods"),
        pytest.param((100, 100, 100), "/kubepods/pod/c", 100, id="of equals the innermost"),
        pytest.param((None, None, None), "/", GI // MI - 16, id="machine"),
    ],
)
def test_an_oom_happens_at_the_level_that_is_exhausted_first(limits_mib, path, charged_mib):
    container, pod, kubepods = (limit and limit * MI for limit in limits_mib)
    state = memory(kubepods=limited(kubepods), kubepods__pod=limited(pod), kubepods__pod__c=limited(container))
    result = charge(state, "/kubepods/pod/c", Kind.ANON, 2 * GI)
    assert (result.out_of_memory.path, result.charged_bytes) == (path, charged_mib * MI)


def test_an_enforced_allocatable_makes_kubepods_run_out_before_the_machine():
    """System daemons beyond their reservation turn it round: the machine itself is exhausted first."""
    state = memory(kubepods=limited(900 * MI), kubepods__a=limited(), system=limited())
    holding(state, "/system", anon=50 * MI)
    assert charge(state, "/kubepods/a", Kind.ANON, GI).out_of_memory.path == "/kubepods"
    state = memory(kubepods=limited(900 * MI), kubepods__a=limited(), system=limited())
    holding(state, "/system", anon=150 * MI)
    assert charge(state, "/kubepods/a", Kind.ANON, GI).out_of_memory.bound is MemoryBound.MACHINE


def test_the_kernel_drops_caches_where_the_kubelet_would_see_pressure():
    """Active file pages count as used for the kubelet, and are free for the taking for the kernel."""
    state = holding(memory(cache=limited(), app=limited()), "/cache", active_file=900 * MI)
    assert state.machine.total_bytes - state.usage().working_set_bytes < 128 * MI
    assert charge(state, "/app", Kind.ANON, 500 * MI).out_of_memory is None


def test_a_machine_keeps_its_min_watermark():
    state = memory(a=limited())
    assert charge(state, "/a", Kind.ANON, 2 * GI).out_of_memory.bound is MemoryBound.MACHINE
    assert state.free_bytes == 16 * MI


def test_low_free_memory_wakes_reclaim_up_to_the_high_watermark():
    state = holding(memory(a=limited()), "/a", anon=GI - 190 * MI, inactive_file=150 * MI)
    assert charge(state, "/a", Kind.ANON, 4 * MI).taken == ()
    charge(state, "/a", Kind.ANON, 8 * MI)
    assert state.free_bytes == 48 * MI


def test_protected_cache_cannot_save_others():
    state = memory(a=limited(min_bytes=GI), b=limited())
    holding(state, "/a", inactive_file=900 * MI)
    assert charge(state, "/b", Kind.ANON, 200 * MI).out_of_memory.path == "/"


def test_reading_more_than_fits_recycles_its_own_pages():
    state = memory(a=limited(100 * MI))
    result = charge(state, "/a", Kind.INACTIVE_FILE, 500 * MI)
    assert (result.charged_bytes, result.recycled_bytes, result.out_of_memory) == (100 * MI, 400 * MI, None)


def test_reading_in_a_cgroup_full_of_private_memory_runs_out():
    state = holding(memory(a=limited(100 * MI)), "/a", anon=100 * MI)
    assert charge(state, "/a", Kind.INACTIVE_FILE, MI).out_of_memory.path == "/a"


def test_swap_postpones_the_oom():
    state = holding(memory(swap_bytes=50 * MI, a=limited(100 * MI)), "/a", anon=100 * MI)
    result = charge(state, "/a", Kind.ANON, 70 * MI)
    assert result.charged_bytes == 50 * MI
    assert state["/a"].swap_usage_bytes == 50 * MI
    assert result.out_of_memory.oom_total_pages == 150 * MI // 4096


def test_with_v1_memory_and_swap_share_a_limit():
    settings = MemcgSettings(max_bytes=100 * MI, memsw_max_bytes=120 * MI)
    state = holding(memory(swap_bytes=GI, version=1, a=settings), "/a", anon=100 * MI)
    result = charge(state, "/a", Kind.ANON, 70 * MI)
    assert (result.charged_bytes, result.out_of_memory.bound) == (20 * MI, MemoryBound.MEMSW)


def test_swapping_makes_no_room_below_a_limit_on_both():
    settings = MemcgSettings(memsw_max_bytes=120 * MI)
    state = holding(memory(swap_bytes=GI, version=1, a=settings), "/a", anon=100 * MI, inactive_file=5 * MI)
    (_, both) = (with_reclaim(state, room) for room in rooms(state, "/a"))
    assert (both.bound, both.free_bytes, both.reclaimable_bytes) == (MemoryBound.MEMSW, 15 * MI, 5 * MI)


@pytest.mark.parametrize(("version", "kills"), [(1, False), (2, True)])
def test_only_v1_can_be_told_not_to_kill(version, kills):
    state = memory(version=version, a=limited(MI, oom_kill_disable=True))
    assert charge(state, "/a", Kind.ANON, 2 * MI).out_of_memory.kills is kills


def test_a_lowered_limit_is_enforced_by_charging_nothing():
    state = holding(memory(a=limited(50 * MI)), "/a", anon=60 * MI, inactive_file=20 * MI)
    result = charge(state, "/a", Kind.ANON, 0)
    assert state["/a"].usage_bytes == 60 * MI
    assert result.out_of_memory.missing_bytes == 10 * MI


def test_room_says_what_can_still_be_had_with_reclaim():
    state = holding(memory(a=limited(100 * MI)), "/a", anon=50 * MI, inactive_file=30 * MI)
    _, own = (with_reclaim(state, room) for room in rooms(state, "/a"))
    assert (own.free_bytes, own.reclaimable_bytes, own.until_oom_bytes) == (20 * MI, 30 * MI, 50 * MI)
    assert machine_room(state).free_bytes == GI - 96 * MI


class TestHigh:
    """memory.high slows; it never kills."""

    def test_what_is_above_is_reclaimed(self):
        state = holding(memory(a=limited(high_bytes=50 * MI)), "/a", anon=30 * MI, inactive_file=20 * MI)
        result = charge(state, "/a", Kind.ANON, 20 * MI)
        assert (state["/a"].usage_bytes, result.throttle) == (50 * MI, None)

    def test_where_nothing_can_be_reclaimed_allocations_are_slowed(self):
        state = memory(a=limited(high_bytes=100 * MI), a__x=limited())
        throttle = charge(state, "/a/x", Kind.ANON, 110 * MI).throttle
        assert (throttle.path, throttle.over_bytes, throttle.delay_usec) == ("/a", 10 * MI, 636_000)

    @pytest.mark.parametrize(
        ("over_percent", "delay_usec"),
        [(0, 0), (1, 0), (2, 24_000), (5, 156_000), (10, 636_000), (17, 1_848_000), (18, 2_000_000), (500, 2_000_000)],
    )
    def test_the_delay_grows_with_the_square_of_the_excess(self, over_percent, delay_usec):
        assert high_delay_usec(4096 * (10_000 + 100 * over_percent), 4096 * 10_000, 64) == delay_usec

    def test_a_smaller_batch_sleeps_less(self):
        assert high_delay_usec(110 * MI, 100 * MI, 32) == 316_000


@given(memories(), charges())
def test_memory_is_conserved(state, sequence):
    for path, kind, size in sequence:
        charge(state, path, kind, size)
    for memcg in state:
        below = [each.own for each in memcg.subtree()]
        assert memcg.usage_bytes == sum(own[kind] for own in below for kind in Kind if kind is not Kind.SWAP)
        assert memcg.swap_usage_bytes == sum(own[Kind.SWAP] for own in below)
        assert all(size >= 0 for size in memcg.own.values())
    assert state.free_bytes == state.machine.total_bytes - state.usage().usage_bytes


@given(memories(), charges())
def test_no_limit_is_exceeded_and_every_oom_names_one(state, sequence):
    for path, kind, size in sequence:
        result = charge(state, path, kind, size)
        assert result.charged_bytes + result.recycled_bytes <= size
        assert (result.charged_bytes + result.recycled_bytes < size) == (result.out_of_memory is not None)
    assert state.free_bytes >= state.machine.watermarks.min_bytes
    for path in PATHS:
        assert all(room.free_bytes >= 0 for room in rooms(state, path))


@given(memories(), charges())
def test_protected_memory_is_left_alone(state, sequence):
    """A cgroup below its min under an unprotecting root keeps what it has whatever the others do."""
    state.add("/safe", MemcgSettings(min_bytes=32 * MI))
    holding(state, "/safe", inactive_file=32 * MI)
    for path, kind, size in sequence:
        charge(state, path, kind, size)
    assert state["/safe"].usage_bytes == 32 * MI


@given(memories(), charges(), st.sampled_from(LEAVES), SIZES)
def test_a_higher_limit_never_gives_less(state, sequence, path, size):
    """Of the same state, with everything else equal."""
    for each in sequence:
        charge(state, *each)
    before = [with_reclaim(state, room).until_oom_bytes for room in rooms(state, path)]
    memcg = state[path]
    settings = memcg.settings
    memcg.settings = MemcgSettings(
        max_bytes=None if settings.max_bytes is None else settings.max_bytes + size,
        min_bytes=settings.min_bytes,
        low_bytes=settings.low_bytes,
        swap_max_bytes=settings.swap_max_bytes,
        memsw_max_bytes=None if settings.memsw_max_bytes is None else settings.memsw_max_bytes + size,
        swappiness=settings.swappiness,
    )
    after = [with_reclaim(state, room).until_oom_bytes for room in rooms(state, path)]
    assert all(new >= old for new, old in zip(after, before, strict=True))
