"""Bends that cannot matter are not followed: the journal is the same as if each had been."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings

from admission.pods import container
from eviction.nodes import pod_of
from podqos.agent.journal import encode
from podqos.kernel.memory import Watermarks
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.time_units import SECOND_US
from podqos.sim.engine.curve import Clock, Curve, constant
from podqos.sim.run import Simulation
from podqos.sim.scenario.demand import ContainerDemand, SystemDemand
from podqos.sim.scenario.scenario import (
    Filesystem,
    MachineSpec,
    NodeAdded,
    NodeGroup,
    NodeLost,
    Options,
    Scenario,
    ScenarioWorkload,
)
from podqos.sim.summary import run_summary
from sim.test_properties import scenarios

MI = 1 << 20
MINUTE_US = 60 * SECOND_US

pytest.importorskip("numpy")


def check_equal(scenario: Scenario) -> None:
    """Run a scenario with and without columns, and hold journal and summary equal."""
    with_columns, without = (Simulation(scenario, columns=each).finish() for each in (True, False))
    assert encode(with_columns.entries) == encode(without.entries)
    assert with_columns.tallies.kinds == without.tallies.kinds
    assert run_summary(with_columns) == run_summary(without)


@settings(max_examples=60)
@given(scenarios())
def test_columns_change_nothing(scenario):
    check_equal(scenario)


@pytest.mark.slow
@settings(max_examples=500)
@given(scenarios())
def test_columns_change_nothing_in_hundreds_of_scenarios(scenario):
    check_equal(scenario)


def noise(random: Random, low: int, high: int, minutes: int) -> Curve:
    """Return a curve with a new value every few minutes: steps or lines, on one grid or another."""
    every_us = random.choice([MINUTE_US, MINUTE_US, 5 * MINUTE_US, 7 * MINUTE_US + 13])
    times = range(0, minutes * MINUTE_US, every_us)
    values = [random.randint(low, high) for _ in times]
    if random.random() < 0.3:
        steps = (
            (at_us, value)
            for at_us, before, value in zip(times, [low, *values], values, strict=False)
            for value in (before, value)
        )
        return Curve(tuple(steps))
    knots = tuple(zip(times, values, strict=True))
    if random.random() < 0.2:
        return Curve(knots[: len(knots) // 3], period_us=minutes * MINUTE_US // 3)
    return Curve(knots, clock=random.choice([Clock.SCENARIO, Clock.SCENARIO, Clock.SCENARIO, Clock.CONTAINER]))


def fleet(seed: int) -> Scenario:
    """Return a small fleet with everything that happens in a large one: most of the time nothing."""
    random = Random(seed)
    minutes = random.choice([40, 60, 120])
    count = random.randint(1, 4)
    has_cache = random.random() < 0.4
    tightness = random.choice([0.5, 0.6, 0.7, 0.8, 1.0])

    def demand(limit: int) -> ContainerDemand:
        most = int(limit * tightness)
        cache = has_cache and random.random() < 0.3
        return ContainerDemand(
            anon_bytes=noise(random, most // 3, most, minutes),
            cpu_milli=random.choice([constant(0), noise(random, 10, random.choice([150, 190, 260]), minutes)]),
            active_file_bytes=noise(random, 0, 30 * MI, minutes) if cache else constant(0),
            inactive_file_bytes=noise(random, 0, 60 * MI, minutes) if cache else constant(0),
            logs_bytes=noise(random, 0, 50 * MI, minutes) if random.random() < 0.3 else constant(0),
            pids=noise(random, 1, 40, minutes) if random.random() < 0.2 else None,
        )

    def workload(
        name: str, demands: tuple[ContainerDemand, ...], limits: str = "", **fields: object
    ) -> ScenarioWorkload:
        made = pod_of(
            name,
            container("main", requests="memory=60Mi", limits=limits),
            restart_policy=fields.pop("restart", "Always"),
        )
        usual = {"kind": "Deployment", "replicas": count * random.randint(1, 3), "spread": True}
        return ScenarioWorkload(
            namespace="default",
            name=name,
            pod=made,
            demands=tuple({"main": each} for each in demands),
            **{**usual, **fields},
        )

    workloads = [
        workload(
            f"noisy-{index}",
            tuple(demand(120 * MI) for _ in range(random.randint(1, 6))),
            random.choice(["", "memory=120Mi", "memory=120Mi,cpu=200m"]),
        )
        for index in range(random.randint(2, 5))
    ]
    leak = Curve(((0, 10 * MI), (minutes * MINUTE_US, random.choice([200, 1000]) * MI)), clock=Clock.CONTAINER)
    workloads.append(
        workload("leak", (ContainerDemand(anon_bytes=leak),), random.choice(["", "memory=150Mi"]), replicas=count)
    )
    rollout_us = minutes // 2 * MINUTE_US + random.choice([0, 17])
    workloads.append(workload("old", (demand(120 * MI),), deleted_us=rollout_us))
    workloads.append(workload("new", (demand(120 * MI),), arrives_us=rollout_us, recreate=random.random() < 0.5))
    for turn in range(1, 4):
        job = ContainerDemand(
            anon_bytes=constant(random.randint(10, 150) * MI), exits_after_us=90 * SECOND_US, exit_code=turn % 2
        )
        at_us = turn * minutes // 4 * MINUTE_US + random.choice([0, 500])
        workloads.append(
            workload(
                f"cron-{turn}",
                (job,),
                kind="Job",
                replicas=count,
                arrives_us=at_us,
                restart=random.choice(["Never", "OnFailure"]),
                recreate=False,
            )
        )
    spec = MachineSpec(
        name="n",
        memory_bytes=random.choice([1000, 2000, 4000]) * MI,
        cpu_milli=random.choice([1000, 4000, 8000]),
        swap_bytes=random.choice([0, 0, 0, 200 * MI]),
        max_pids=500,
        cgroup_version=random.choice([1, 2]),
        watermarks=random.choice([None, Watermarks(20 * MI, 30 * MI, 40 * MI)]),
        nodefs=Filesystem(random.choice([1000, 4000]) * MI, 10_000),
        system=SystemDemand(anon_bytes=noise(random, 50 * MI, 100 * MI, minutes)),
        config=KubeletConfiguration(
            eviction_hard=random.choice([{}, {"memory.available": "100Mi", "nodefs.available": "10%"}]),
            eviction_soft=random.choice([{}, {"memory.available": "200Mi"}]),
            eviction_soft_grace_period={"memory.available": "90s"},
            kernel_memcg_notification=random.random() < 0.3,
            enforce_node_allocatable=random.choice([(), ("pods",)]),
            system_reserved=random.choice([{}, {"memory": "100Mi"}]),
            fail_swap_on=False,
        ),
        statistics_age_us=random.choice([0, 0, 4 * SECOND_US]),
        fast_path=random.random() < 0.2,
    )
    happenings = (
        NodeLost(minutes // 3 * MINUTE_US, "n-1"),
        NodeAdded((minutes // 3 + 12) * MINUTE_US, "n-1"),
    )
    return Scenario(
        name="fleet",
        duration_us=minutes * MINUTE_US,
        nodes=(NodeGroup(spec, count, phase_step_us=SECOND_US),),
        workloads=tuple(workloads),
        happenings=happenings if count > 1 and random.random() < 0.3 else (),
        options=Options(
            container_start_us=random.choice([0, SECOND_US]), container_stop_us=random.choice([0, 3 * SECOND_US])
        ),
    )


@pytest.mark.parametrize("seed", range(20))
def test_columns_change_nothing_in_a_small_fleet(seed):
    check_equal(fleet(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 400))
def test_columns_change_nothing_in_hundreds_of_small_fleets(seed):
    check_equal(fleet(seed))
