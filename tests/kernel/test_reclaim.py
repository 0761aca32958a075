"""Who gives memory back, in which order."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernel.trees import MI, holding, limited, memories, memory
from podqos.kernel.memcg import Kind
from podqos.kernel.reclaim import LEAST_BATCH_BYTES, Taken, divided, plan_reclaim, reclaim, reclaimable_bytes, relieve


def taken_mib(state, path, wanted_mib, **options):
    return [
        (each.path, each.kind.value, each.size_bytes // MI)
        for each in plan_reclaim(state, path, wanted_mib * MI, **options)
    ]


def test_inactive_file_pages_go_before_active_ones():
    state = holding(memory(a=limited()), "/a", anon=50 * MI, active_file=20 * MI, inactive_file=30 * MI)
    assert taken_mib(state, "/", 40) == [("/a", "inactive_file", 30), ("/a", "active_file", 10)]


def test_reclaim_goes_on_until_all_that_is_wanted_is_there():
    state = holding(memory(a=limited()), "/a", active_file=20 * MI, inactive_file=30 * MI)
    assert sum(each.size_bytes for each in plan_reclaim(state, "/", 30 * MI + 1)) == 30 * MI + 1


@pytest.mark.parametrize(
    ("cache", "batch"),
    [
        pytest.param(320 * MI, 20 * MI, id="a sixteenth of what can be reclaimed"),
        pytest.param(2 * MI, LEAST_BATCH_BYTES, id="a batch at least"),
    ],
)
def test_who_is_over_its_limit_reclaims_a_batch_more_than_is_lacking(cache, batch):
    state = holding(memory(a=limited()), "/a", inactive_file=cache)
    assert sum(each.size_bytes for each in relieve(state, "/a", MI)) == MI + batch


def test_without_swap_private_memory_stays():
    state = holding(memory(a=limited()), "/a", anon=50 * MI, inactive_file=10 * MI, kernel=5 * MI)
    assert reclaimable_bytes(state, "/") == 10 * MI


def test_private_memory_is_swapped_out_when_file_pages_are_gone():
    state = holding(memory(swap_bytes=30 * MI, a=limited()), "/a", anon=50 * MI, inactive_file=10 * MI)
    reclaim(state, "/", 25 * MI)
    assert (state["/a"].own[Kind.ANON], state["/a"].own[Kind.SWAP]) == (35 * MI, 15 * MI)
    assert reclaimable_bytes(state, "/") == 15 * MI, "swap is nearly full"


@pytest.mark.parametrize("settings", [{"swap_max_bytes": 0}, {"swappiness": 0}])
def test_a_cgroup_may_be_kept_from_swapping(settings):
    state = holding(memory(swap_bytes=30 * MI, a=limited(**settings)), "/a", anon=50 * MI)
    assert reclaimable_bytes(state, "/") == 0


def test_a_swap_limit_holds_for_everything_below():
    state = memory(swap_bytes=100 * MI, a=limited(swap_max_bytes=10 * MI), a__x=limited(), a__y=limited())
    holding(holding(state, "/a/x", anon=50 * MI), "/a/y", anon=50 * MI)
    assert reclaimable_bytes(state, "/") == 10 * MI


def test_others_swap_more_where_one_may_not():
    state = memory(swap_bytes=100 * MI, a=limited(swap_max_bytes=4 * MI), a__x=limited(), a__y=limited(), b=limited())
    for path in ("/a/x", "/a/y", "/b"):
        holding(state, path, anon=50 * MI)
    assert sum(each.size_bytes for each in reclaim(state, "/", 40 * MI)) == 40 * MI
    assert state["/a"].swap_usage_bytes <= 4 * MI


def test_cgroups_give_in_proportion_to_what_they_have():
    state = memory(a=limited(), b=limited())
    holding(holding(state, "/a", inactive_file=60 * MI), "/b", inactive_file=20 * MI)
    assert taken_mib(state, "/", 40) == [("/a", "inactive_file", 30), ("/b", "inactive_file", 10)]


def test_only_the_subtree_under_pressure_gives():
    state = memory(a=limited(), b=limited())
    holding(holding(state, "/a", inactive_file=60 * MI), "/b", inactive_file=20 * MI)
    assert taken_mib(state, "/b", 40) == [("/b", "inactive_file", 20)]


def test_min_is_never_touched():
    state = holding(memory(a=limited(min_bytes=70 * MI)), "/a", anon=50 * MI, inactive_file=40 * MI)
    assert reclaimable_bytes(state, "/") == 20 * MI


def test_low_is_touched_only_when_nothing_else_is_left():
    state = memory(a=limited(low_bytes=40 * MI), b=limited())
    holding(holding(state, "/a", inactive_file=40 * MI), "/b", inactive_file=10 * MI, active_file=10 * MI)
    assert plan_reclaim(state, "/", 25 * MI) == (
        Taken("/b", Kind.INACTIVE_FILE, 10 * MI, below_low=False),
        Taken("/b", Kind.ACTIVE_FILE, 10 * MI, below_low=False),
        Taken("/a", Kind.INACTIVE_FILE, 5 * MI, below_low=True),
    )


@given(memories(), st.data())
def test_a_plan_takes_what_is_there_and_no_more_than_wanted(state, data):
    for path in ("/a/x", "/b/x", "/b/y"):
        for kind in (Kind.ANON, Kind.ACTIVE_FILE, Kind.INACTIVE_FILE):
            state.put(path, kind, data.draw(st.integers(0, 20 * MI)))
    wanted = data.draw(st.integers(0, 100 * MI))
    before = state.usage()
    taken = reclaim(state, "/", wanted)
    assert sum(each.size_bytes for each in taken) <= wanted
    assert before.usage_bytes - state.usage().usage_bytes == sum(each.size_bytes for each in taken)
    assert state.usage().swap_bytes - before.swap_bytes == sum(
        each.size_bytes for each in taken if each.kind is Kind.ANON
    )
    assert state.swap_free_bytes >= 0


@example(wanted=1, spares=[1, 1])
@example(wanted=3, spares=[1, 1, 1, 1])
@given(wanted=st.integers(0, 1000), spares=st.lists(st.integers(1, 100)))
def test_dividing_loses_nothing_and_overcharges_nobody(wanted, spares):
    parts = divided(wanted, spares)
    assert sum(parts) == min(wanted, sum(spares))
    assert all(0 <= part <= spare for part, spare in zip(parts, spares, strict=True))


def test_odd_bytes_go_to_the_first_that_can_spare_them():
    assert divided(3, [1, 1, 1, 1]) == [1, 1, 1, 0]
    assert divided(5, [2, 2, 4]) == [2, 1, 2]
