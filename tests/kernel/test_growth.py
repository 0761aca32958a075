"""What is reclaimed while a cgroup grows, and where it ends."""

from __future__ import annotations

import pytest

from podqos.kernel.cgroup import ROOT
from podqos.kernel.charge import charge, rooms, with_reclaim
from podqos.kernel.growth import Course, grow
from podqos.kernel.memcg import Kind, MemcgSettings, Memory
from podqos.kernel.memory import machine

MI, GI = 1 << 20, 1 << 30


def node(*, swap: int = 0, limit: int | None = None, **held: int) -> Memory:
    """Make a machine of 8 GiB with a growing cgroup, and another that holds so many MiB of each kind."""
    memory = Memory(machine(8 * GI, swap_bytes=swap))
    memory.add("/growing", MemcgSettings(max_bytes=limit))
    memory.add("/other")
    memory.put("/growing", Kind.ANON, 100 * MI)
    for kind, size in held.items():
        memory.put("/other", Kind(kind), size * MI)
    return memory


def taken(course: Course) -> dict[Kind, int]:
    """Return what was taken of each kind."""
    found: dict[Kind, int] = {}
    for step in course.steps:
        for each in step.taken:
            found[each.kind] = found.get(each.kind, 0) + each.size_bytes
    return found


NODES = {
    "nothing to reclaim": {},
    "page cache": {"active_file": 1024, "inactive_file": 512, "anon": 2048},
    "swap": {"swap": GI, "anon": 3000, "active_file": 100},
    "a limit of its own": {"limit": GI, "active_file": 1024},
}


@pytest.mark.parametrize("given", NODES.values(), ids=NODES)
def test_it_grows_by_what_is_free_and_all_that_can_be_reclaimed(given):
    memory = node(**given)
    rest = min(with_reclaim(memory, room).until_oom_bytes for room in rooms(memory, "/growing"))
    course = grow(node(**given), "/growing")
    assert course.until_oom_bytes == pytest.approx(rest, abs=1)
    assert charge(memory, "/growing", Kind.ANON, 16 * GI).charged_bytes == pytest.approx(rest, abs=1)


def test_inactive_page_cache_goes_first_then_active_then_what_can_be_swapped():
    course = grow(node(swap=GI, active_file=300, inactive_file=200, anon=500), "/growing")
    kinds = [each.kind for step in course.steps for each in step.taken]
    assert kinds == sorted(kinds, key=[Kind.INACTIVE_FILE, Kind.ACTIVE_FILE, Kind.ANON].index)
    assert taken(course) == {Kind.INACTIVE_FILE: 200 * MI, Kind.ACTIVE_FILE: 300 * MI, Kind.ANON: GI}


def test_kswapd_starts_below_low_and_works_up_to_high():
    memory = node(active_file=4096)
    free, marks = memory.free_bytes, memory.machine.watermarks
    first, second = grow(memory, "/growing").steps[:2]
    assert first.at_bytes == free - marks.low_bytes + 1
    assert sum(each.size_bytes for each in first.taken) == marks.high_bytes - marks.low_bytes + 1
    assert second.at_bytes - first.at_bytes == marks.high_bytes - marks.low_bytes + 1


def test_the_machine_or_a_limit_runs_out():
    assert grow(node(), "/growing").room.path == ROOT
    limited = grow(node(limit=GI), "/growing")
    assert (limited.room.path, limited.until_oom_bytes) == ("/growing", GI - 100 * MI)


def test_a_limit_takes_the_cgroups_own_page_cache_and_no_other():
    memory = node(limit=GI, active_file=1024)
    memory.put("/growing", Kind.ACTIVE_FILE, 200 * MI)
    course = grow(memory, "/growing")
    assert {each.path for step in course.steps for each in step.taken} == {"/growing"}
    assert course.until_oom_bytes == GI - 100 * MI
