"""CPU by weight and quota, down the tree."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.kernel.cpu import CORE_NANO, CpuBound, CpuGroup, CpuTree, cpu_shares


def group(path: str, weight: int = 100, *, wants: float = 0, quota: float | None = None, **more: int) -> CpuGroup:
    """Return a group that wants, and may use, so many cores."""
    quota_usec = None if quota is None else round(quota * 100_000)
    return CpuGroup(path, weight, quota_usec, demand_nano=round(wants * CORE_NANO), **more)


def cores(groups: list[CpuGroup], machine: int) -> dict[str, float]:
    return {path: share.granted_nano / CORE_NANO for path, share in cpu_shares(groups, machine).items() if path != "/"}


def test_spare_cpu_is_shared_two_to_one_by_500m_and_250m():
    """004's example: requests as cpu.shares."""
    found = cpu_shares([group("/a", 512, wants=4), group("/b", 256, wants=4)], 3)
    assert (found["/a"].granted_nano, found["/b"].granted_nano) == (2 * CORE_NANO, CORE_NANO)
    assert found["/b"].bound is CpuBound.CONTENTION


def test_what_one_does_not_use_the_others_divide():
    found = cores([group("/a", 100, wants=0.5), group("/b", 100, wants=9), group("/c", 300, wants=9)], 4)
    assert found == {"/a": 0.5, "/b": 0.875, "/c": 2.625}


def test_nobody_is_slowed_while_there_are_cores():
    found = cpu_shares([group("/a", 2, wants=1), group("/b", 10000, wants=2)], 4)
    assert all(share.denied_nano == 0 and share.bound is None for share in found.values())


def test_weights_count_among_siblings_only():
    """A class with few shares is poor whatever its members' weights say."""
    groups = [group("/low", 2), group("/low/a", 1000, wants=4), group("/high", 98), group("/high/b", 1, wants=4)]
    assert cores(groups, 2) == {"/low": 0.04, "/low/a": 0.04, "/high": 1.96, "/high/b": 1.96}


def test_a_quota_slows_on_an_idle_machine():
    share = cpu_shares([group("/a", wants=1, quota=0.5)], 8)["/a"]
    assert (share.granted_nano, share.bound, share.bound_at) == (CORE_NANO // 2, CpuBound.QUOTA, "/a")
    assert share.throttled_usec_per_period == 50_000


def test_a_quota_above_binds_those_below():
    found = cpu_shares([group("/pod", quota=1), group("/pod/a", wants=2), group("/pod/b", wants=2)], 8)
    assert [found[path].granted_nano for path in ("/pod/a", "/pod/b")] == [CORE_NANO // 2] * 2
    assert (found["/pod/a"].bound, found["/pod/a"].bound_at) == (CpuBound.QUOTA, "/pod")


def test_a_thread_fills_one_core_at_most():
    assert cores([group("/a", wants=4, threads=1), group("/b", wants=4, threads=8)], 4) == {"/a": 1, "/b": 3}


@pytest.mark.parametrize(
    ("wants", "quota", "machine", "throttled_msec"),
    [
        pytest.param(4, 2, 8, 50, id="four threads, two cores of quota: half of each period"),
        pytest.param(1, 2, 8, 0, id="below the quota"),
        pytest.param(4, 2, 2, 0, id="the machine has no more anyway"),
        pytest.param(16, 2, 8, 75, id="no faster than the machine"),
    ],
)
def test_a_group_stands_still_when_its_quota_is_used_up(wants, quota, machine, throttled_msec):
    found = cpu_shares([group("/a", wants=wants, quota=quota)], machine)
    assert found["/a"].throttled_usec_per_period == throttled_msec * 1000


def test_a_container_stands_still_however_deep_it_is():
    """Two cores of quota for four threads, inside a pod without a quota, on a machine that is otherwise idle."""
    found = cpu_shares([group("/pod"), group("/pod/c", wants=4, quota=2)], 8)
    assert found["/pod/c"].throttled_usec_per_period == 50_000


def test_groups_stop_one_after_another():
    """On one core, weights equal: b stops at 30 ms, c at 50 ms, a alone then uses the core until 75 ms."""
    groups = [group("/a", wants=1, quota=0.45), group("/b", wants=1, quota=0.1), group("/c", wants=1, quota=0.2)]
    found = cpu_shares(groups, 1)
    assert [found[path].throttled_usec_per_period for path in ("/a", "/b", "/c")] == [25_000, 70_000, 50_000]


def test_a_group_stands_still_later_beside_one_that_gets_all_it_wants():
    """A quarter of a core of quota, at the half core that the other leaves: 50 ms."""
    found = cpu_shares([group("/a", wants=0.5), group("/b", wants=1, quota=0.25)], 1)
    assert [found[path].throttled_usec_per_period for path in ("/a", "/b")] == [0, 50_000]


def bursting(pods: list[tuple[str, int, int]]) -> list[CpuGroup]:
    """Return 002's node: three Guaranteed pods of two cores beside Burstable pods of (name, request in milli, limit).

    Everybody uses its limit. Weights are the kubelet's cpu.shares; a class weighs what its pods request.
    """
    groups = [
        group("/system", 2048, wants=2, quota=2),
        group("/kubepods", 14 * 1024),
        group("/kubepods/burstable", sum(request for _, request, _ in pods) * 1024 // 1000),
    ]
    guaranteed = ("article-service", "search-api", "cdn-origin")
    groups += [group(f"/kubepods/{name}", 2048, wants=2, quota=2) for name in guaranteed]
    groups += [
        group(f"/kubepods/burstable/{name}", request * 1024 // 1000, wants=limit, quota=limit)
        for name, request, limit in pods
    ]
    return groups


def test_the_32_core_example_degrades_everybody_to_a_quarter():
    """002: limits of 32 cores, eight of them there. Indexers, with twice the request, get twice as much."""
    pods = [(f"analytics-{n}", 500, 4) for n in range(1, 5)] + [(f"indexer-{n}", 1000, 4) for n in range(1, 5)]
    found = cpu_shares(bursting(pods), 16)
    granted = {path.rpartition("/")[2]: share.granted_nano for path, share in found.items()}
    assert found["/kubepods/burstable"].granted_nano == 8 * CORE_NANO
    assert (
        sum(share.demand_nano for path, share in found.items() if "-" in path and "burstable" in path) == 32 * CORE_NANO
    )
    assert granted["indexer-1"] == pytest.approx(2 * granted["analytics-1"], rel=0.001)
    assert granted["analytics-1"] == pytest.approx(2 / 3 * CORE_NANO, rel=0.001)
    assert granted["article-service"] == 2 * CORE_NANO, "who reserves what it uses is not slowed"


def test_the_16_core_example_costs_everybody_half():
    """002: limits of 16 cores, eight of them there: a 50 % reduction."""
    pods = [(f"{name}-{n}", 1000, 2) for name in ("analytics", "indexer") for n in range(1, 5)]
    found = cpu_shares(bursting(pods), 16)
    shares = [share for path, share in found.items() if path.startswith("/kubepods/burstable/")]
    assert [share.granted_nano for share in shares] == [CORE_NANO] * 8
    assert {(share.denied_nano, share.bound) for share in shares} == {(CORE_NANO, CpuBound.CONTENTION)}


@st.composite
def trees(draw: st.DrawFn) -> list[CpuGroup]:
    """Two levels of groups; leaves want up to eight cores."""
    weights = st.integers(2, 262_144)
    quotas = st.none() | st.integers(1_000, 800_000)
    groups: list[CpuGroup] = []
    for parent in ("/a", "/b", "/c")[: draw(st.integers(1, 3))]:
        groups.append(CpuGroup(parent, draw(weights), draw(quotas)))
        groups += [
            CpuGroup(
                f"{parent}/{child}",
                draw(weights),
                draw(quotas),
                demand_nano=draw(st.integers(0, 8 * CORE_NANO)),
                threads=draw(st.none() | st.integers(0, 8)),
            )
            for child in range(draw(st.integers(1, 4)))
        ]
    return groups


@given(trees(), st.integers(1, 16))
def test_nobody_gets_more_than_there_is_than_it_wants_or_than_its_quota(groups, machine):
    found = cpu_shares(groups, machine)
    by_path = {each.path: each for each in groups}
    for path, share in found.items():
        below = [other.granted_nano for other_path, other in found.items() if is_child(other_path, path)]
        assert 0 <= share.granted_nano <= share.demand_nano
        assert not below or 0 <= share.granted_nano - sum(below) <= len(below)
        quota = by_path[path].quota_nano if path in by_path else None
        assert quota is None or share.granted_nano <= quota
        assert 0 <= share.throttled_usec_per_period <= 100_000
    assert found["/"].granted_nano <= machine * CORE_NANO


@given(trees(), st.integers(1, 16))
def test_no_core_is_idle_while_somebody_may_run(groups, machine):
    found = cpu_shares(groups, machine)
    hungry = [share for share in found.values() if share.bound is CpuBound.CONTENTION]
    assert not hungry or found["/"].granted_nano == machine * CORE_NANO


@given(trees(), st.integers(1, 16), st.data())
def test_a_greater_weight_never_gives_less(groups, machine, data):
    index = data.draw(st.integers(0, len(groups) - 1))
    heavier = list(groups)
    each = groups[index]
    heavier[index] = CpuGroup(
        each.path, each.weight * 2, each.quota_usec, demand_nano=each.demand_nano, threads=each.threads
    )
    before, after = (cpu_shares(tree, machine)[each.path].granted_nano for tree in (groups, heavier))
    assert after >= before - len(groups)


@given(trees(), st.integers(1, 16), st.randoms(use_true_random=False))
def test_the_order_of_groups_does_not_matter(groups, machine, chance: random.Random):
    shuffled = list(groups)
    chance.shuffle(shuffled)
    assert list(cpu_shares(shuffled, machine).items()) == list(cpu_shares(groups, machine).items())


def is_child(path: str, parent: str) -> bool:
    return path != "/" and (path.rpartition("/")[0] or "/") == parent


# ---- demands that change ---------------------------------------------------------------------------------------------


@st.composite
def moving_groups(draw):
    """Return pods of one to two containers in two tiers, whose demands rise and fall."""
    groups = []
    for tier in ("/a", "/b"):
        groups.append(CpuGroup(tier, draw(st.integers(1, 200))))
        for pod in range(draw(st.integers(1, 3))):
            path, quota = f"{tier}/{pod}", draw(st.none() | st.integers(10_000, 200_000))
            groups.append(CpuGroup(path, draw(st.integers(1, 200)), quota))
            for name in range(draw(st.integers(1, 2))):
                demand, slope = draw(st.integers(0, 3 * CORE_NANO)), draw(st.integers(-1000, 1000))
                quota = draw(st.none() | st.integers(10_000, 200_000))
                groups.append(CpuGroup(f"{path}/{name}", 50, quota, demand_nano=demand, demand_slope=slope))
    return groups


@given(moving_groups(), st.integers(1, 4), st.integers(1, 10**6))
def test_what_each_group_gets_is_linear_for_as_long_as_is_said(groups, cores, later_us):
    course = CpuTree(groups).course(cores)
    now = cpu_shares(groups, cores)
    assert course.shares.keys() == {path for path in now if not any(other.startswith(f"{path}/") for other in now)} - {
        "/"
    }
    assert all(share.granted_nano == now[path].granted_nano for path, share in course.shares.items())
    falling = [group.demand_nano // -group.demand_slope for group in groups if group.demand_slope < 0]
    after_us = min([later_us, *falling, *([] if course.steady_us is None else [course.steady_us - 1])])
    moved = [
        CpuGroup(
            group.path,
            group.weight,
            group.quota_usec,
            demand_nano=group.demand_nano + group.demand_slope * after_us,
        )
        for group in groups
    ]
    later = cpu_shares(moved, cores)
    for path, share in course.shares.items():
        granted = share.granted_nano + share.granted_slope * after_us
        assert granted == pytest.approx(later[path].granted_nano, abs=3 * (after_us + 10))
        assert share.demand_nano + share.demand_slope * after_us == later[path].demand_nano
