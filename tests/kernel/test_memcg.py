"""The state of memory: sums over the tree, and what the rest of the kernel reads off them."""

from __future__ import annotations

import pytest

from kernel.trees import GI, MI, holding, limited, memory
from podqos.kernel.memcg import Kind, MemcgSettings, Usage


def test_usage_counts_in_every_cgroup_above():
    state = memory(a=limited(), a__x=limited(), b=limited())
    holding(state, "/a/x", anon=3 * MI, inactive_file=2 * MI, kernel=MI, swap=5 * MI)
    holding(state, "/", anon=10 * MI)
    assert [state[path].usage_bytes for path in ("/a/x", "/a", "/b", "/")] == [6 * MI, 6 * MI, 0, 16 * MI]
    assert state["/a"].swap_usage_bytes == 5 * MI
    assert state.free_bytes == GI - 16 * MI
    assert state.usage("/a") == Usage(3 * MI, 0, 2 * MI, MI, 5 * MI)


def test_the_working_set_leaves_out_inactive_file_pages_only():
    state = holding(memory(a=limited()), "/a", anon=MI, active_file=2 * MI, inactive_file=4 * MI, kernel=8 * MI)
    assert state.usage("/a").working_set_bytes == 11 * MI


def test_what_a_removed_cgroup_cached_falls_to_its_parent():
    state = holding(memory(a=limited(), a__x=limited()), "/a/x", active_file=MI, inactive_file=MI)
    state.remove("/a/x")
    assert "/a/x" not in state
    assert state["/a"].own[Kind.INACTIVE_FILE] == MI
    assert state["/a"].usage_bytes == 2 * MI


def test_a_cgroup_with_processes_cannot_be_removed():
    state = holding(memory(a=limited()), "/a", anon=MI)
    with pytest.raises(AssertionError, match="has processes"):
        state.remove("/a")


def test_nobody_gives_back_more_than_it_has():
    state = holding(memory(a=limited()), "/a", anon=MI)
    with pytest.raises(AssertionError, match="has no"):
        state.put("/a", Kind.ANON, -2 * MI)


def test_the_tree_is_walked_parents_first_and_siblings_by_path():
    state = memory(b=limited(), a=limited(), a__y=limited(), a__x=limited())
    assert [memcg.path for memcg in state] == ["/", "/a", "/a/x", "/a/y", "/b"]


@pytest.mark.parametrize(
    ("version", "settings", "expected_bytes"),
    [
        pytest.param(2, {}, 6 * GI, id="no limit: the machine"),
        pytest.param(2, {"max_bytes": GI}, 3 * GI, id="v2, swap unlimited: the limit and all swap"),
        pytest.param(2, {"max_bytes": GI, "swap_max_bytes": 0}, GI, id="v2, no swap: the limit"),
        pytest.param(2, {"max_bytes": GI, "swap_max_bytes": GI}, 2 * GI, id="v2, some swap"),
        pytest.param(2, {"max_bytes": GI, "swappiness": 0}, GI, id="not swappable"),
        pytest.param(1, {"max_bytes": GI, "memsw_max_bytes": GI}, GI, id="v1, memsw equal to memory"),
        pytest.param(1, {"max_bytes": GI, "memsw_max_bytes": 8 * GI}, 3 * GI, id="v1, memsw beyond all swap"),
        pytest.param(1, {"max_bytes": GI, "swap_max_bytes": 0}, 3 * GI, id="v1 knows no swap.max"),
        pytest.param(2, {"max_bytes": 0, "swap_max_bytes": 0}, 4096, id="never zero"),
    ],
)
def test_what_adjustments_are_thousandths_of_when_a_cgroup_runs_out(version, settings, expected_bytes):
    state = memory(4 * GI, swap_bytes=2 * GI, version=version, a=MemcgSettings(**settings))
    assert state.oom_total_pages("/a") == expected_bytes // 4096


def test_available_memory_counts_what_caches_can_give():
    state = holding(memory(a=limited()), "/a", anon=512 * MI, active_file=200 * MI)
    assert state.available_bytes == (GI - 712 * MI - 48 * MI) + (200 * MI - 32 * MI)
