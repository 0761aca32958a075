"""What the kernel does to a simulated node: every level of the tree, page cache first, groups and single processes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from admission.pods import container
from eviction.nodes import guaranteed, pod, pod_of
from podqos.agent.reasons import OOMKill, OOMLevel
from podqos.kernel.memory import Watermarks
from podqos.model.kubelet_config import KubeletConfiguration, MemorySwapConfiguration
from podqos.model.pod import EmptyDir, Volume
from podqos.model.time_units import SECOND_US
from podqos.sim.engine.curve import Clock, Curve
from podqos.sim.record import Recorder
from podqos.sim.run import simulate
from podqos.sim.scenario.scenario import Filesystem, SystemDemand, VolumeDemand
from sim.worlds import GI, MI, lines, node, ramp, run, scenario, using, workload


def kills(done) -> list[tuple[float, str, OOMKill]]:
    """Return time in seconds, pod and reasons of the kernel's kills."""
    return [
        (entry.time_us / SECOND_US, entry.pod.removeprefix("default/"), entry.because)
        for entry in done.entries
        if isinstance(entry.because, OOMKill)
    ]


def first_kill(done) -> tuple[float, str, OOMKill]:
    return kills(done)[0]


def once(start: int, end: int, seconds: float) -> Curve:
    """Return a ramp of the scenario's time that falls to nothing when it is over."""
    at_us = int(seconds * SECOND_US)
    return Curve(((0, start), (at_us, end), (at_us + 1, 0)))


def test_a_container_dies_at_the_microsecond_in_which_it_passes_its_own_limit():
    done = run(workload(pod("a", limits="memory=100Mi"), using(once(0, 200 * MI, 10))))
    seconds, name, because = first_kill(done)
    assert (seconds, name, because.level) == (5.000001, "a", OOMLevel.CONTAINER)
    assert because.limit_bytes == 100 * MI
    assert because.total_pages == 25600
    assert because.used_pages == 25600


def test_a_pod_dies_when_its_containers_together_pass_its_limit():
    two = pod_of(
        "a",
        container("one", requests="memory=60Mi", limits="memory=60Mi"),
        container("two", requests="memory=60Mi", limits="memory=60Mi"),
        overhead={},
    )
    limited = replace(two, spec=replace(two.spec, resources=container("", limits="memory=100Mi").resources))
    done = run(workload(limited, {"one": using(once(0, 60 * MI, 10)), "two": using(once(0, 60 * MI, 10))}))
    ((seconds, _, because), *_) = kills(done)
    assert because.level is OOMLevel.POD
    assert seconds == pytest.approx(100 / 12, abs=1e-4)


def test_pods_that_together_pass_what_the_node_leaves_them_die_before_the_machine_runs_out():
    config = KubeletConfiguration(eviction_hard={}, system_reserved={"memory": "400Mi"})
    spec = node(config=config)
    done = run(workload("a", using(300 * MI)), workload("b", using(once(100 * MI, 500 * MI, 4))), spec=spec)
    seconds, name, because = first_kill(done)
    assert (name, because.level, because.limit_bytes) == ("b", OOMLevel.KUBEPODS, 600 * MI)
    assert seconds == pytest.approx(2.0, abs=1e-4)


RESERVED = KubeletConfiguration(eviction_hard={}, qos_reserved={"memory": "100%"}, feature_gates={"QOSReserved": True})


def test_on_cgroup_v1_page_cache_is_taken_back_before_a_ceiling_is_refused():
    """The cgroup of a class uses 500Mi when 600Mi are reserved; 300Mi of it are page cache, and 400Mi are left."""
    done = run(
        workload(pod("scratch"), using(ramp(200 * MI, 450 * MI, 10, after=20), inactive_file_bytes=300 * MI)),
        workload(guaranteed("db", "600Mi"), using(MI), arrives_us=10 * SECOND_US),
        spec=node(config=RESERVED, cgroup_version=1),
    )
    _, name, because = first_kill(done)
    assert (name, because.level, because.limit_bytes) == ("scratch", OOMLevel.CLASS, 400 * MI)


@pytest.mark.parametrize("version", [1, 2])
def test_a_ceiling_of_nothing_is_not_written_and_the_last_one_stays(version):
    """With all 1000Mi requested nothing would be left to BestEffort; runc's library takes 0 as not set."""
    done = run(
        workload(pod("scratch"), using(ramp(MI, 500 * MI, 10, after=10))),
        workload(guaranteed("db", "600Mi"), using(MI)),
        workload(guaranteed("late", "400Mi"), using(MI), arrives_us=5 * SECOND_US),
        spec=node(config=RESERVED, cgroup_version=version),
    )
    _, name, because = first_kill(done)
    assert (name, because.level, because.limit_bytes) == ("scratch", OOMLevel.CLASS, 400 * MI)
    assert because.total_pages == 400 * MI // 4096, "scores are measured by it, too"


def test_without_qos_cgroups_every_container_has_its_own_limit_and_every_pod_leaves():
    done = run(
        workload(pod("a", limits="memory=100Mi"), using(50 * MI), deleted_us=20 * SECOND_US),
        workload(pod("b", limits="memory=200Mi"), using(ramp(50 * MI, 300 * MI, 10)), deleted_us=20 * SECOND_US),
        spec=node(config=KubeletConfiguration(eviction_hard={}, enforce_node_allocatable=(), cgroups_per_qos=False)),
    )
    _, name, because = first_kill(done)
    assert (name, because.limit_bytes) == ("b", 200 * MI)
    assert {name for _, _, name in lines(done, "CleanedUp")} == {"default/a", "default/b"}


def test_the_machine_runs_out_at_its_minimum_and_takes_the_worst():
    spec = node(watermarks=Watermarks(50 * MI, 60 * MI, 70 * MI))
    done = run(
        workload(guaranteed("calm", "600Mi"), using(600 * MI)),
        workload("small", using(100 * MI)),
        workload(pod("grows", "memory=300Mi"), using(once(100 * MI, 300 * MI, 2))),
        spec=spec,
    )
    seconds, name, because = first_kill(done)
    assert (name, because.level, because.runner_up_pod) == ("small", OOMLevel.NODE, "default/grows")
    assert seconds == pytest.approx(1.5, abs=1e-4)


def test_page_cache_is_taken_back_before_anybody_dies():
    done = run(
        workload("cache", using(0, inactive_file_bytes=400 * MI, active_file_bytes=100 * MI)),
        workload("grows", using(once(100 * MI, 1100 * MI, 10))),
    )
    seconds, name, because = first_kill(done)
    assert name == "grows"
    assert seconds == pytest.approx(9.0, abs=1e-4)
    assert because.used_pages == pytest.approx(1000 * MI // 4096, abs=2)


def test_a_container_at_its_limit_loses_its_own_page_cache_first():
    cached = using(once(0, 200 * MI, 10), inactive_file_bytes=30 * MI)
    seconds, _, because = first_kill(run(workload(pod("a", limits="memory=100Mi"), cached)))
    assert seconds == pytest.approx(5.0, abs=1e-4)
    assert because.used_pages == 25600


def test_memory_that_may_be_swapped_out_is_before_anybody_dies():
    config = KubeletConfiguration(
        eviction_hard={},
        enforce_node_allocatable=(),
        fail_swap_on=False,
        memory_swap=MemorySwapConfiguration("LimitedSwap"),
    )
    spec = node(swap_bytes=1000 * MI, config=config)
    done = run(workload(pod("a", "memory=500Mi"), using(once(0, 2000 * MI, 20))), spec=spec)
    seconds, *_ = first_kill(done)
    assert seconds == pytest.approx(15.0, abs=0.1)


def test_on_cgroup_v1_one_process_dies_and_the_container_lives_on_without_its_memory():
    done = run(
        workload(pod("a", limits="memory=100Mi"), using(once(0, 150 * MI, 15), processes=3)),
        spec=node(cgroup_version=1),
    )
    first = kills(done)[0][2]
    assert (first.killed_processes, first.as_group) == (1, False)
    assert first.freed_bytes == pytest.approx(100 * MI / 3, abs=8192)
    assert not [line for line in lines(done, "Exited") if line[0] < 14]


def test_on_cgroup_v1_the_end_of_the_main_process_is_that_of_the_container():
    done = run(workload(pod("a", limits="memory=100Mi"), using(once(0, 150 * MI, 15))), spec=node(cgroup_version=1))
    assert [kind for _, kind, _ in lines(done, "OOMKilled", "Exited", "Restarted")][:2] == ["OOMKilled", "Exited"]


def test_a_step_beyond_the_limit_kills_at_once_and_counts_only_what_fitted():
    steps = Curve(((0, 10 * MI), (3 * SECOND_US, 10 * MI), (3 * SECOND_US, 10 * GI), (4 * SECOND_US, 0)))
    seconds, _, because = first_kill(run(workload(pod("a", limits="memory=100Mi"), using(steps))))
    assert (seconds, because.used_pages) == (3.0, 25600)


def test_a_container_that_keeps_dying_is_restarted_later_and_later():
    done = run(workload(pod("a", limits="memory=100Mi"), using(ramp(0, 200 * MI, 2))), seconds=120)
    waits = [entry.because.back_off_seconds for entry in done.entries if entry.kind == "Restarted"]
    assert waits == [0, 10, 20, 40]


def test_a_machine_on_which_nobody_can_be_killed_is_lost():
    growing = SystemDemand(anon_bytes=ramp(0, 2000 * MI, 20, clock=Clock.SCENARIO))
    done = run(workload("a", using(10 * MI)), spec=node(system=growing))
    assert [kind for _, kind, _ in lines(done)][-1] == "Lost"
    assert kills(done)


# ---- disk, process ids, cpu ----------------------------------------------------------------------------------------


def test_a_full_disk_refuses_and_kills_nobody():
    writes = using(1, rootfs_bytes=ramp(0, 200 * MI, 20))
    done = run(workload("a", writes), spec=node(nodefs=Filesystem(100 * MI, 1000)))
    assert lines(done, "Refused") == [(10.000001, "Refused", "default/a")]
    assert not kills(done)


def test_a_pod_cannot_have_more_process_ids_than_its_limit():
    config = KubeletConfiguration(eviction_hard={}, enforce_node_allocatable=(), pod_pids_limit=100)
    done = run(workload("a", using(1, pids=ramp(1, 1001, 10))), spec=node(config=config))
    (entry,) = (entry for entry in done.entries if entry.kind == "Refused")
    assert entry.because.limit == 100
    assert entry.time_us == pytest.approx(SECOND_US, abs=20000)


def test_cpu_beyond_a_quota_is_throttled_and_the_journal_says_when_that_ends():
    busy = using(
        1,
        cpu_milli=Curve(
            ((0, 500), (5 * SECOND_US, 500), (5 * SECOND_US, 2000), (9 * SECOND_US, 2000), (9 * SECOND_US, 100))
        ),
    )
    done = run(workload(pod("a", limits="cpu=1"), busy))
    entries = [entry for entry in done.entries if entry.kind == "Throttled"]
    assert [
        (entry.time_us / SECOND_US, entry.because.granted_milli, entry.because.throttled_by) for entry in entries
    ] == [
        (5.0, 1000, "quota"),
        (9.0, 100, "nothing"),
    ]


def test_cpu_under_contention_is_divided_by_request():
    done = run(
        workload(pod("a", "cpu=2"), using(1, cpu_milli=4000)),
        workload(pod("b", "cpu=1"), using(1, cpu_milli=4000)),
    )
    entries = [entry for entry in done.entries if entry.kind == "Throttled"]
    granted = {entry.pod: entry.because.granted_milli for entry in entries}
    assert granted["default/a"] == pytest.approx(2 * granted["default/b"], rel=0.05)
    assert {entry.because.throttled_by for entry in entries} == {"contention"}


def test_a_volume_in_memory_counts_against_the_limit():
    base = pod("a", limits="memory=100Mi")
    made = replace(base, spec=replace(base.spec, volumes=(Volume(name="cache", empty_dir=EmptyDir(medium="Memory")),)))
    demand = using(10 * MI, volumes={"cache": VolumeDemand(once(0, 180 * MI, 10))})
    seconds, *_ = first_kill(run(workload(made, demand)))
    assert seconds == pytest.approx(5.0, abs=1e-4)


ALMOST_FULL = 150 * MI - 10


def test_page_cache_without_room_costs_an_event_now_and_then_and_not_one_for_every_byte():
    """Ten bytes are left below the limit, and seven more are read every microsecond."""
    done = run(workload(pod("a", limits="memory=150Mi"), using(ALMOST_FULL, inactive_file_bytes=ramp(0, 400 * MI, 60))))
    assert done.tallies.events < 1000
    assert kills(done) == []


def test_page_cache_above_the_low_watermark_costs_an_event_now_and_then_when_kswapd_takes_it():
    """Ten bytes are left above the watermark; the machine is not full."""
    done = run(workload(pod("a"), using(1000 * MI - 10, inactive_file_bytes=ramp(0, 400 * MI, 60))))
    assert done.tallies.events < 1000
    assert kills(done) == []


def test_page_cache_without_room_does_not_change_when_somebody_dies():
    anon = Curve(((0, ALMOST_FULL), (30 * SECOND_US, ALMOST_FULL), (40 * SECOND_US, 200 * MI)))
    alone, cached = (
        first_kill(run(workload(pod("a", limits="memory=150Mi"), using(anon, **cache))))[:2]
        for cache in ({}, {"inactive_file_bytes": ramp(0, 400 * MI, 60)})
    )
    assert cached == alone


def test_page_cache_grows_again_once_there_is_room():
    anon = Curve(((0, ALMOST_FULL), (30 * SECOND_US, ALMOST_FULL), (30 * SECOND_US, 0)))
    recorder = Recorder()
    cached = using(anon, active_file_bytes=ramp(0, 60 * MI, 60))
    simulate(scenario(workload(pod("a", limits="memory=150Mi"), cached)), recorder=recorder)
    (last,) = recorder.nodes["n"].moments[-1].pods.values()
    assert 29 * MI <= last.containers[0].active_file_bytes <= 30 * MI
