"""Memory that crosses a level between two passes: who is told of it on a simulated node, and what comes of that."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eviction.nodes import pod
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.sim.engine.curve import constant
from podqos.sim.scenario.scenario import Options, SystemDemand
from sim.worlds import GI, MI, SECOND_US, lines, node, ramp, run, using, workload

HARD = {"eviction_hard": {"memory.available": "100Mi"}, "enforce_node_allocatable": ()}
TEN_MI_A_SECOND = ramp(0, 2000 * MI, 200)
# Of 1000Mi, 900Mi are used after 90 s and the machine is full after 100 s; the loop looks at 87 s and 97 s.


def kubelet(version: int = 1, *, notified: bool = True, **fields: object):
    """Make a node whose kubelet is notified, or not."""
    config = KubeletConfiguration(**{**HARD, **fields}, kernel_memcg_notification=notified)
    return node(config=config, cgroup_version=version, loop_phase_us=7 * SECOND_US)


def fast(version: int = 2, **fields: object):
    """Make a node with the fast path."""
    return replace(kubelet(version, notified=False, **fields), fast_path=True)


NODES = {
    "kubelet that is not": (kubelet(notified=False), 97),
    "kubelet on cgroup v1": (kubelet(), 90),
    "kubelet on cgroup v2, which never is": (kubelet(2), 97),
    "fast path on cgroup v1": (fast(1), 90),
    "fast path on cgroup v2": (fast(2), 90),
}


@pytest.mark.parametrize(("spec", "seconds"), NODES.values(), ids=NODES)
def test_who_is_notified_evicts_when_the_threshold_is_met_and_not_at_the_next_pass(spec, seconds):
    done = run(workload("leak", using(TEN_MI_A_SECOND)), spec=spec, seconds=120)
    ((at, _, name),) = lines(done, "Evicted", "OOMKilled")
    assert name == "default/leak"
    assert at == pytest.approx(seconds, abs=0.001)


def test_nothing_notifies_before_the_first_look_which_sets_the_levels():
    """At 7 s: what fills the node before that is the kernel's, what does so after it is not."""
    for spec in (kubelet(), fast(1), fast(2)):
        for after, kind, seconds in ((0, "OOMKilled", 5), (10, "Evicted", 14.5)):
            done = run(workload("leak", using(ramp(0, 2000 * MI, 10, after=after))), spec=spec, seconds=20)
            first, *_ = lines(done, "Evicted", "OOMKilled")
            assert first == (pytest.approx(seconds, abs=0.001), kind, "default/leak")


def test_a_notification_shifts_the_passes_of_the_fast_path_but_not_those_of_a_kubelet():
    """Memory is short at 85 s, the disk from 91 s on, which is seen with the next regular pass."""
    hard = {"eviction_hard": {"memory.available": "100Mi", "nodefs.available": "10%"}}
    leak = workload("leak", using(ramp(0, 1000 * MI, 100)))
    system = SystemDemand(anon_bytes=constant(51 * MI), nodefs_bytes=ramp(0, 95 * GI, 1, after=90))
    for spec, seconds in ((kubelet(**hard), 97), (fast(**hard), 94.9)):
        done = run(leak, spec=replace(spec, system=system), seconds=99)
        evicted, full = lines(done, "Evicted")[0][0], lines(done, "ConditionChanged")[-1][0]
        assert (evicted, full) == (pytest.approx(84.9, abs=0.01), pytest.approx(seconds, abs=0.01))


def test_a_soft_threshold_counts_from_the_notification():
    soft = {
        "eviction_hard": {},
        "eviction_soft": {"memory.available": "100Mi"},
        "eviction_soft_grace_period": {"memory.available": "6s"},
    }
    demand = using(ramp(0, 950 * MI, 95))
    for spec, seconds in ((kubelet(**soft), 97), (kubelet(notified=False, **soft), 107), (fast(**soft), 107)):
        done = run(workload("leak", demand), spec=spec, seconds=120)
        assert lines(done, "Evicted") == [(seconds, "Evicted", "default/leak")], spec


def test_page_cache_that_goes_makes_a_kubelet_set_its_level_lower_with_the_next_pass():
    """The level is one of usage: what is used less, and is no page cache, comes out of what may still be used."""
    cache = using(0, inactive_file_bytes=ramp(300 * MI, 0, 1, after=75))
    leak = workload("leak", using(TEN_MI_A_SECOND))
    done = run(leak, workload("cache", cache), spec=kubelet(), seconds=120)
    # At 87 s it is set again, without the cache: otherwise usage would be there at 120 s only.
    assert lines(done, "Evicted") == [(pytest.approx(90, abs=0.01), "Evicted", "default/leak")]


def test_page_cache_does_not_blind_the_fast_path():
    """The cache fills the node: what grows takes its place, and usage stays where it is."""
    cache = workload("cache", using(0, inactive_file_bytes=ramp(0, 2000 * MI, 2)))
    leak = workload(pod("leak"), using(TEN_MI_A_SECOND))
    for version in (1, 2):
        done = run(leak, cache, spec=fast(version), seconds=120)
        assert lines(done, "Evicted", "OOMKilled") == [(pytest.approx(90, abs=0.01), "Evicted", "default/leak")]


def test_page_cache_that_goes_makes_the_fast_path_neither_early_nor_late():
    cache = using(0, inactive_file_bytes=ramp(300 * MI, 0, 1, after=88))
    leak = workload("leak", using(TEN_MI_A_SECOND))
    done = run(leak, workload("cache", cache), spec=fast(), seconds=120)
    assert lines(done, "Evicted") == [(pytest.approx(90, abs=0.01), "Evicted", "default/leak")]


def test_page_cache_that_comes_wakes_the_node_for_nothing():
    cache = workload("cache", using(0, inactive_file_bytes=ramp(0, 700 * MI, 5, after=40)))
    steady = workload("steady", using(250 * MI))
    for spec in (kubelet(), fast()):
        done = run(cache, steady, spec=spec, seconds=60)
        assert lines(done, "Observed", "Evicted", "OOMKilled") == []


def test_a_notified_agent_goes_by_new_figures_where_those_of_its_passes_are_old():
    """The pass at 87 s sees the node as it was at 83 s; the kernel tells at once that memory is short."""
    leak = workload("leak", using(ramp(0, 950 * MI, 0, after=87)))
    cache = workload("cache", using(1, inactive_file_bytes=MI))
    done = run(leak, cache, spec=replace(fast(), statistics_age_us=4 * SECOND_US), seconds=88)
    assert lines(done, "Evicted") == [(87, "Evicted", "default/leak")]


def test_the_growth_of_a_victim_is_stopped_on_the_fast_path_only():
    """It needs two seconds to end: time enough to use up what is left."""
    victim = workload(pod("victim"), using(ramp(0, 3000 * MI, 30)))
    bystander = workload(pod("bystander", "memory=800Mi"), using(300 * MI))
    slow = Options(container_stop_us=2 * SECOND_US)
    config = {"eviction_hard": {"memory.available": "50Mi"}}
    told = run(victim, bystander, spec=kubelet(**config), options=slow, seconds=30)
    held = run(victim, bystander, spec=fast(**config), options=slow, seconds=30)
    assert [kind for _, kind, _ in lines(told, "Evicted", "OOMKilled")] == ["Evicted", "OOMKilled"]
    ((evicted, _, _), (stopped, _, _)) = lines(held, "Evicted", "OOMKilled", "Stopped")
    assert stopped - evicted < 0.001


def test_a_victim_that_does_not_grow_has_its_time_on_the_fast_path():
    victim = workload(pod("victim"), using(500 * MI))
    guarded = workload(pod("guarded", "memory=900Mi"), using(ramp(0, 450 * MI, 45)))
    options = Options(container_stop_us=SECOND_US // 2)
    done = run(victim, guarded, spec=fast(), options=options, seconds=60)
    ((evicted, _, name), (stopped, _, _)) = lines(done, "Evicted", "Stopped")
    assert name == "default/victim"
    assert stopped - evicted == pytest.approx(0.5)


def test_a_victim_that_begins_to_grow_while_it_winds_up_is_killed_then():
    curve = ramp(500 * MI, 900 * MI, 10, after=40.3)
    victim = workload(pod("victim"), using(curve))
    guarded = workload(pod("guarded", "memory=900Mi"), using(ramp(0, 450 * MI, 45)))
    done = run(victim, guarded, spec=fast(), options=Options(container_stop_us=SECOND_US), seconds=60)
    ((evicted, _, _), (stopped, _, _)) = lines(done, "Evicted", "Stopped")
    assert (evicted, stopped) == (pytest.approx(40, abs=0.01), pytest.approx(40.3, abs=0.01))


def test_on_the_fast_path_one_victim_follows_another_without_waiting():
    pods = [workload(pod(name), using(size * MI)) for name, size in (("a", 20), ("b", 15), ("c", 5))]
    spec = replace(fast(), system=SystemDemand(anon_bytes=ramp(0, 890 * MI, 1, after=10)))
    done = run(*pods, spec=spec, seconds=30)
    assert [name for _, _, name in lines(done, "Evicted")] == ["default/a", "default/b"]
    first, second = (at for at, _, _ in lines(done, "Evicted"))
    assert second - first < 0.1


def test_a_step_over_everything_is_the_kernels_even_on_the_fast_path():
    done = run(workload("jump", using(ramp(100 * MI, 1100 * MI, 0.000001, after=12))), spec=fast(), seconds=20)
    assert [kind for _, kind, _ in lines(done, "Evicted", "OOMKilled")] == ["OOMKilled"]


def test_memory_that_stays_short_wakes_nobody_again_and_again():
    made = pod("critical")
    critical = replace(made, spec=replace(made.spec, priority=2_000_001_000))
    for spec in (fast(1), fast(2), kubelet()):
        done = run(workload(critical, using(950 * MI)), spec=spec, seconds=200)
        assert done.tallies.events < 100


@settings(max_examples=25)
@given(
    pods=st.lists(st.tuples(st.integers(1, 100), st.integers(100, 900), st.integers(10, 60)), min_size=1, max_size=6),
    spec=st.sampled_from([fast(1), fast(2), kubelet(1)]),
)
def test_memory_is_seen_to_be_short_in_the_moment_in_which_it_is(pods, spec):
    curves = [ramp(start * MI, end * MI, seconds) for start, end, seconds in pods]
    used = [sum(curve.at(second * SECOND_US) for curve in curves) for second in range(71)]
    short = next((second for second, size in enumerate(used) if size > 901 * MI), None)
    done = run(*(workload(f"p{index}", using(curve)) for index, curve in enumerate(curves)), spec=spec, seconds=70)
    seen = [at for at, _, _ in lines(done, "Observed")]
    if short is None:
        assert not seen or seen[0] > 69
    elif short > 7:
        met = next(second for second, size in enumerate(used) if size > 900 * MI)
        assert met - 1 <= seen[0] <= short


def test_a_notifier_that_never_fires_changes_nothing():
    leak = workload("leak", using(TEN_MI_A_SECOND))
    stub, none = (run(leak, spec=kubelet(2, notified=notified), seconds=120).entries for notified in (True, False))
    assert stub == none
