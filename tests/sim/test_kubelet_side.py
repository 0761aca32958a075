"""What the kubelet of a simulated node does: when it looks, at figures how old, whom it evicts, what it cleans up."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from admission.pods import container
from eviction.nodes import pod, pod_of
from podqos.agent.reasons import CleanUpGain
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Container, EmptyDir, Volume
from podqos.model.quantity import Quantity
from podqos.model.time_units import SECOND_US
from podqos.sim.engine.curve import Curve
from podqos.sim.scenario.scenario import Filesystem, Options, VolumeDemand
from sim.worlds import MI, lines, node, ramp, run, using, workload

PRESSURE = {"eviction_hard": {"memory.available": "100Mi"}, "enforce_node_allocatable": ()}


def kubelet(**settings: object) -> KubeletConfiguration:
    return KubeletConfiguration(**{**PRESSURE, **settings})


GROWS = using(ramp(0, 950 * MI, 95))  # 10 MiB a second: 900 MiB at 90 s


@pytest.mark.parametrize(("phase", "evicted_at"), [(0, 100.0), (3, 93.0), (9, 99.0)])
def test_the_kubelet_evicts_at_the_next_of_its_own_times(phase, evicted_at):
    spec = node(config=kubelet(), loop_phase_us=phase * SECOND_US)
    done = run(workload("a", GROWS), spec=spec, seconds=150)
    assert lines(done, "Evicted") == [(evicted_at, "Evicted", "default/a")]


def test_figures_may_be_old():
    spec = node(config=kubelet(), statistics_age_us=8 * SECOND_US, loop_phase_us=3 * SECOND_US)
    done = run(workload("a", GROWS), spec=spec, seconds=150)
    assert lines(done, "Evicted") == [(103.0, "Evicted", "default/a")]


@pytest.mark.parametrize(("phase", "evicted_at"), [(3, 3.0), (7, 7.0), (9, 19.0)])
def test_figures_are_new_before_the_node_has_run_for_as_long_as_they_are_old(phase, evicted_at):
    """Memory runs short at 2 s. From 9 s on, a look sees what was there eight seconds before."""
    spec = node(config=kubelet(), statistics_age_us=8 * SECOND_US, loop_phase_us=phase * SECOND_US)
    short = Curve(((0, 0), (2 * SECOND_US, 0), (2 * SECOND_US, 950 * MI)))
    done = run(workload("a", using(short)), spec=spec, seconds=30)
    assert lines(done, "Evicted") == [(evicted_at, "Evicted", "default/a")]


def test_with_old_figures_a_second_threshold_does_not_delay_the_pass_that_sees_the_first():
    """The soft one is met at 80 s, the hard one at 90 s; at 93 s the kubelet sees 85 s."""
    soft = {"eviction_soft": {"memory.available": "200Mi"}, "eviction_soft_grace_period": {"memory.available": "1m"}}
    spec = node(config=kubelet(**soft), statistics_age_us=8 * SECOND_US, loop_phase_us=3 * SECOND_US)
    done = run(workload("a", GROWS), spec=spec, seconds=101)
    assert [time for time, *_ in lines(done, "Observed")] == [93.0]


def test_passes_that_could_see_nothing_are_not_run():
    done = run(workload("a", using(10 * MI)), spec=node(config=kubelet()), seconds=86400)
    assert done.tallies.events < 10


def test_pressure_that_nobody_saw_leaves_no_trace():
    bump = Curve(((0, 0), (92 * SECOND_US, 920 * MI), (95 * SECOND_US, 920 * MI), (96 * SECOND_US, 10 * MI)))
    done = run(workload("a", using(bump)), spec=node(config=kubelet()), seconds=300)
    assert not lines(done, "Observed", "Evicted", "ConditionChanged")


def test_a_condition_holds_for_five_minutes_after_pressure_has_gone():
    done = run(workload("a", GROWS), spec=node(config=kubelet()), seconds=1000)
    (began, ended) = lines(done, "ConditionChanged")
    assert began[0] == 100.0
    assert ended[0] >= 401.0


def test_a_soft_threshold_evicts_after_its_grace_period():
    soft = kubelet(
        eviction_hard={},
        eviction_soft={"memory.available": "100Mi"},
        eviction_soft_grace_period={"memory.available": "30s"},
        eviction_max_pod_grace_period=5,
    )
    options = Options(container_stop_us=60 * SECOND_US)
    done = run(workload("a", GROWS), spec=node(config=soft), seconds=200, options=options)
    assert lines(done, "Evicted", "Stopped") == [
        (130.0, "Evicted", "default/a"),
        (135.0, "Stopped", "default/a"),
    ]


DISK = {"eviction_hard": {"nodefs.available": "100Mi"}, "enforce_node_allocatable": ()}


@pytest.mark.parametrize(("unused_mi", "logs_mi", "evicted"), [(200, 705, False), (10, 905, True)])
def test_disk_pressure_is_solved_by_removing_images_where_that_is_enough(unused_mi, logs_mi, evicted):
    spec = node(
        config=KubeletConfiguration(**DISK),
        nodefs=Filesystem(1000 * MI, 100_000),
        unused_image_bytes=unused_mi * MI,
    )
    writes = using(1, logs_bytes=ramp(0, logs_mi * MI, 30))
    done = run(workload("a", writes), spec=spec, seconds=60)
    (gain,) = (entry.because for entry in done.entries if isinstance(entry.because, CleanUpGain))
    assert gain.available_after - gain.available_before == unused_mi * MI
    assert bool(lines(done, "Evicted")) == evicted


def test_an_empty_dir_above_its_size_limit_makes_its_pod_go():
    base = pod("a")
    volume = Volume(name="cache", empty_dir=EmptyDir(size_limit=Quantity.parse("10Mi")))
    made = replace(base, spec=replace(base.spec, volumes=(volume,)))
    demand = using(1, volumes={"cache": VolumeDemand(ramp(0, 100 * MI, 100))})
    done = run(workload(made, demand), seconds=60)
    assert lines(done, "Evicted") == [(20.0, "Evicted", "default/a")]


def test_too_many_processes_are_a_pressure_of_their_own():
    spec = node(config=kubelet(eviction_hard={"pid.available": "100"}), max_pids=1000)
    done = run(workload("a", using(1, pids=ramp(1, 1000, 20))), workload("b", using(1)), spec=spec, seconds=60)
    assert lines(done, "Evicted") == [(20.0, "Evicted", "default/a")]


def test_init_containers_run_first_and_end_as_their_demand_says():
    made = pod_of("a", container("main"), init_containers=(Container(name="setup"), Container(name="more")))
    demand = {"setup": using(1, exits_after_us=3 * SECOND_US), "main": using(5 * MI)}
    done = run(workload(made, demand), seconds=20)
    started = [(entry.time_us / SECOND_US, entry.container) for entry in done.entries if entry.kind == "Started"]
    assert started == [(0.0, None), (4.0, "more"), (5.0, "main")]


def test_a_job_that_ends_well_is_over():
    done = run(workload(pod("a", restart_policy="Never"), using(5 * MI, exits_after_us=2 * SECOND_US)), seconds=20)
    assert [kind for _, kind, _ in lines(done)] == [
        "Admitted",
        "Started",
        "Exited",
        "Succeeded",
        "Stopped",
        "CleanedUp",
    ]


def test_a_pod_under_pressure_is_turned_away_by_the_node():
    late = workload("late", using(1), arrives_us=105 * SECOND_US)
    done = run(workload("a", GROWS), late, spec=node(config=kubelet()), seconds=150)
    assert lines(done, "Rejected") == [(105.0, "Rejected", "default/late")]
