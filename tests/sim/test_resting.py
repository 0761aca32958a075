"""Bends that cannot matter are not followed: the journal is the same as if each had been."""

from __future__ import annotations

import json
import sys
from array import array
from fractions import Fraction
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission.pods import container, resources
from eviction.nodes import pod, pod_of
from podqos.agent.journal import Kind, encode
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.memory import Watermarks
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import EmptyDir, Volume
from podqos.model.quantity import Quantity
from podqos.model.time_units import SECOND_US
from podqos.reading.scenario_files import read_given_scenario
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.curve import Clock, Curve, Knots, constant, kept
from podqos.sim.engine.gauge import FRACTION_BITS
from podqos.sim.run import Simulation, simulate
from podqos.sim.scenario.scenario import (
    ContainerDemand,
    Filesystem,
    MachineSpec,
    NodeAdded,
    NodeGroup,
    NodeLost,
    Options,
    Scenario,
    ScenarioWorkload,
    SystemDemand,
    VolumeDemand,
)
from podqos.sim.summary import run_summary
from sim.test_properties import curves, scenarios
from sim.worlds import node, scenario, using, workload

np = pytest.importorskip("numpy")

MI = 1 << 20
MINUTE_US = 60 * SECOND_US


def check_equal(scenario: Scenario) -> None:
    """Run a scenario with and without rest, and hold journal and summary equal."""
    resting, without = (Simulation(scenario, rest=each).finish() for each in (True, False))
    assert encode(resting.entries) == encode(without.entries)
    assert resting.tallies.kinds == without.tallies.kinds
    assert run_summary(resting) == run_summary(without)


@settings(max_examples=30)
@given(scenarios())
def test_resting_changes_nothing(scenario):
    check_equal(scenario)


@pytest.mark.slow
@settings(max_examples=60)
@given(scenarios())
def test_resting_changes_nothing_in_many_scenarios(scenario):
    check_equal(scenario)


def noise(random: Random, low: int, high: int, minutes: int) -> Curve:
    """Return a curve with a new value every few minutes: steps or lines, on one grid or another."""
    every_us = random.choice([MINUTE_US, MINUTE_US, 5 * MINUTE_US, 7 * MINUTE_US + 13])
    points = [(at_us, random.randint(low, high)) for at_us in range(0, minutes * MINUTE_US, every_us)]
    if random.random() < 0.3:
        steps = [(at_us, value) for (at_us, _), (_, value) in zip(points[1:], points, strict=False)]
        return Curve(kept(sorted([*steps, *points], key=lambda knot: knot[0])))
    if random.random() < 0.2:
        return Curve(kept(points[: len(points) // 3]), period_us=minutes * MINUTE_US // 3)
    return Curve(kept(points), clock=random.choice([Clock.SCENARIO, Clock.SCENARIO, Clock.SCENARIO, Clock.CONTAINER]))


class Drawn:
    """A small fleet with everything that happens in a large one; most of the time nothing does."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)  # noqa: S311 - repeatable on purpose
        self.minutes = random.choice([40, 60, 120])
        self.count = random.randint(1, 4)
        self.tightness = random.choice([0.5, 0.6, 0.7, 0.8, 1.0])
        self.has_cache = random.random() < 0.4

    def noise(self, low: int, high: int, *, often: float = 1) -> Curve:
        """Return noise, or nothing."""
        return noise(self.random, low, high, self.minutes) if self.random.random() < often else constant(0)

    def demand(self) -> ContainerDemand:
        """Return what a container wants."""
        random = self.random
        most = int(120 * MI * self.tightness)
        cached = 0.3 if self.has_cache else 0
        return ContainerDemand(
            anon_bytes=self.noise(most // 3, most),
            cpu_milli=self.noise(10, random.choice([150, 190, 260]), often=0.5),
            active_file_bytes=self.noise(0, 30 * MI, often=cached),
            inactive_file_bytes=self.noise(0, 60 * MI, often=cached),
            logs_bytes=self.noise(0, 50 * MI, often=0.3),
            pids=self.noise(1, 40) if random.random() < 0.2 else None,
            volumes={"v": VolumeDemand(self.noise(0, 20 * MI, often=0.2))},
        )

    def workload(
        self, name: str, *demands: ContainerDemand, restart: str = "Always", **fields: object
    ) -> ScenarioWorkload:
        """Return a workload whose pods take turns with demands."""
        random = self.random
        limits = random.choice(["", "memory=120Mi", "memory=120Mi,cpu=200m"])
        names = ["one", "two"][: random.choice([1, 1, 1, 2])]
        made = pod_of(
            name,
            *(container(each, requests="memory=60Mi", limits=limits) for each in names),
            restart_policy=restart,
            volumes=(Volume("v", empty_dir=EmptyDir(random.choice(["", "Memory"]), Quantity.parse("30Mi"))),),
            resources=resources("", "cpu=300m") if random.random() < 0.2 else None,
        )
        usual = {"kind": "Deployment", "replicas": self.count * random.randint(1, 3), "spread": True}
        by_container = tuple(dict.fromkeys(names, demand) for demand in demands)
        return ScenarioWorkload(namespace="default", name=name, pod=made, demands=by_container, **{**usual, **fields})

    def workloads(self) -> list[ScenarioWorkload]:
        """Return noise, a leak, a rollout and cron jobs."""
        random, minutes, count = self.random, self.minutes, self.count
        made = [
            self.workload(f"noisy-{index}", *(self.demand() for _ in range(random.randint(1, 6))))
            for index in range(random.randint(2, 4))
        ]
        leak = Curve(((0, 10 * MI), (minutes * MINUTE_US, random.choice([200, 1000]) * MI)), clock=Clock.CONTAINER)
        made.append(self.workload("leak", ContainerDemand(anon_bytes=leak), replicas=count))
        rollout_us = minutes // 2 * MINUTE_US + random.choice([0, 17])
        made.append(self.workload("old", self.demand(), deleted_us=rollout_us))
        made.append(self.workload("new", self.demand(), arrives_us=rollout_us, recreate=random.random() < 0.5))
        for turn in range(1, 4):
            size = constant(random.randint(10, 150) * MI)
            job = ContainerDemand(anon_bytes=size, exits_after_us=90 * SECOND_US, exit_code=turn % 2)
            at_us = turn * minutes // 4 * MINUTE_US + random.choice([0, 500])
            policy = random.choice(["Never", "OnFailure"])
            once = {"kind": "Job", "replicas": count, "arrives_us": at_us, "recreate": False}
            made.append(self.workload(f"cron-{turn}", job, restart=policy, **once))
        return made

    def machine(self) -> MachineSpec:
        """Return a node that is large enough, or not."""
        random = self.random
        return MachineSpec(
            name="n",
            memory_bytes=random.choice([1000, 2000, 4000]) * MI,
            cpu_milli=random.choice([1000, 4000, 8000]),
            swap_bytes=random.choice([0, 0, 0, 200 * MI]),
            max_pids=500,
            cgroup_version=random.choice([1, 2]),
            watermarks=random.choice([None, Watermarks(20 * MI, 30 * MI, 40 * MI)]),
            nodefs=Filesystem(random.choice([1000, 4000]) * MI, 10_000),
            system=SystemDemand(anon_bytes=self.noise(50 * MI, 100 * MI)),
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

    def scenario(self) -> Scenario:
        """Return all of it."""
        random, third = self.random, self.minutes // 3
        happenings = NodeLost(third * MINUTE_US, "n-1"), NodeAdded((third + 12) * MINUTE_US, "n-1")
        return Scenario(
            name="fleet",
            duration_us=self.minutes * MINUTE_US,
            nodes=(NodeGroup(self.machine(), self.count, phase_step_us=SECOND_US),),
            workloads=tuple(self.workloads()),
            happenings=happenings if self.count > 1 and random.random() < 0.3 else (),
            options=Options(
                container_start_us=random.choice([0, SECOND_US]), container_stop_us=random.choice([0, 3 * SECOND_US])
            ),
        )


@pytest.mark.parametrize("seed", range(12))
def test_resting_changes_nothing_in_a_small_fleet(seed):
    check_equal(Drawn(seed).scenario())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 26))
def test_resting_changes_nothing_in_many_small_fleets(seed):
    check_equal(Drawn(seed).scenario())


# ---- what the bounds rest on ---------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(
    curves(400 * MI), st.integers(0, 20 * SECOND_US), st.lists(st.integers(0, 90 * SECOND_US), min_size=2, max_size=9)
)
def test_a_part_never_holds_more_than_between_the_ends_of_its_column(curve, started_us, times):
    from podqos.sim.node.resting import _most, _points

    grid = sorted({0, *times, 91 * SECOND_US})
    offset_us = started_us if curve.clock is Clock.CONTAINER else 0
    part = Allocation(curve, (), lambda *_: None, 0)
    part._offset_us = offset_us
    starts, ends = _most(*_points(curve, offset_us, grid[-1]), np.array(grid))
    for column, (begin_us, end_us) in enumerate(pairwise(grid)):
        start, end = int(starts[column]), int(ends[column])
        inside = [at_us for at_us, _ in curve.knots if begin_us <= at_us + offset_us < end_us]
        for at_us in {begin_us, (begin_us + end_us) // 2, end_us - 1, *(each + offset_us for each in inside)}:
            most = start + Fraction((end - start) * (at_us - begin_us), end_us - begin_us)
            part.go_on(at_us, at_us)
            assert part.fine(at_us) <= most * (1 << FRACTION_BITS)


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=1, max_size=60), st.integers(-5, 105))
def test_many_knots_are_kept_as_columns_and_mean_the_same(points, at_us):
    knots = tuple(sorted(points, key=lambda knot: knot[0]))
    assert kept(knots) == knots
    columns = Knots(array("q", [time_us for time_us, _ in knots]), array("q", [value for _, value in knots]))
    assert Curve(columns).piece(at_us) == Curve(knots).piece(at_us)
    assert columns == knots
    assert hash(columns) == hash(knots)
    assert columns[1:] == knots[1:]
    assert Curve(columns) == Curve(knots)


def test_amounts_beyond_all_columns_are_followed_bend_by_bend():
    huge = Curve(kept([(second * SECOND_US, (1 << 70) + second) for second in range(100)]))
    small = Curve(kept([(second * SECOND_US, second * MI) for second in range(100)]))
    check_equal(
        beside(
            *(workload(f"p{each}", using(MI, logs_bytes=each_curve)) for each, each_curve in enumerate((huge, small)))
        )
    )


def test_evenly_spaced_knots_keep_no_times():
    knots = kept([(at_us, at_us % 7) for at_us in range(10, 1010, 10)])
    assert isinstance(knots, Knots)
    assert knots.times_us == range(10, 1010, 10)


# ---- moments at which bends and other things coincide --------------------------------------------------------------


def steps(*values: int) -> Curve:
    """Return a curve with a new value every ten seconds, the last for ever."""
    points = [(turn * 10 * SECOND_US, value * MI) for turn, value in enumerate(values)]
    held = [(at_us, value) for (at_us, _), (_, value) in zip(points[1:], points, strict=False)]
    return Curve(tuple(sorted([*held, *points], key=lambda knot: knot[0])))


def beside(*others: ScenarioWorkload, **fields: object) -> Scenario:
    """Return pods beside five that step up and down every ten seconds for five minutes."""
    noisy = [workload(f"noisy-{each}", using(steps(*[10, 20, 15] * 10))) for each in range(5)]
    return scenario(*noisy, *others, seconds=300, **fields)


def test_what_steps_the_moment_a_container_starts_has_stepped_before():
    """The kernel takes back parts of all steps of the moment in which memory runs out."""
    grown = [workload(f"grown-{each}", using(steps(*[100] * 10, *[200] * 20))) for each in range(2)]
    late = workload("late", using(500 * MI), arrives_us=99 * SECOND_US)
    options = Options(container_start_us=SECOND_US)
    made = beside(*grown, late, spec=node(memory=900 * MI), options=options)
    check_equal(made)
    (kill, *_) = (entry for entry in simulate(made).entries if entry.kind is Kind.OOM_KILLED)
    assert kill.time_us == 100 * SECOND_US
    assert kill.pod == "default/late"
    # 100Mi are lacking, of steps of 500Mi, two of 100Mi and five of 10Mi.
    assert kill.because.used_pages * PAGE_BYTES == pytest.approx(500 * MI - 100 * MI * 500 / 750, abs=PAGE_BYTES)


def test_who_is_deleted_the_moment_its_disk_would_grow_leaves_what_it_had():
    log = workload("log", using(MI, logs_bytes=steps(*[10] * 10, 150, *[10] * 19)), deleted_us=100 * SECOND_US)
    full = workload("full", using(MI, rootfs_bytes=steps(*[500] * 15, *[620] * 15)))
    config = KubeletConfiguration(eviction_hard={"nodefs.available": "300Mi"}, enforce_node_allocatable=())
    spec = node(nodefs=Filesystem(1000 * MI, 10_000), config=config)
    made = beside(log, full, spec=spec, options=Options(clean_up_us=100 * SECOND_US))
    check_equal(made)
    assert not any(entry.kind is Kind.EVICTED for entry in simulate(made).entries)


def test_what_is_due_later_wakes_although_what_was_due_first_has_ended():
    def leak(name: str, full_seconds: int, **fields: object) -> ScenarioWorkload:
        grows = Curve(((0, 0), (full_seconds * SECOND_US, 90 * MI), (10 * full_seconds * SECOND_US, 900 * MI)))
        return workload(pod_of(name, container(limits="memory=90Mi")), using(grows), **fields)

    made = beside(leak("first", 200, deleted_us=100 * SECOND_US), leak("second", 250))
    check_equal(made)
    assert [entry.pod for entry in simulate(made).entries if entry.kind is Kind.OOM_KILLED][:1] == ["default/second"]


# ---- what it saves -------------------------------------------------------------------------------------------------


def wavy() -> Scenario:
    """Return a node with twenty pods that bend every second, and one that is killed again and again."""
    bends = Curve(kept([(second * SECOND_US, (second * 37 % 11) * MI) for second in range(1000)]))
    pods = [workload(pod_of(f"p{each}", container()), using(bends)) for each in range(20)]
    grows = Curve(((0, 0), (300 * SECOND_US, 100 * MI)), clock=Clock.CONTAINER)
    leak = workload(pod_of("leak", container(limits="memory=90Mi")), using(grows))
    return scenario(*pods, leak, seconds=1000, spec=node())


def test_a_node_on_which_little_happens_follows_few_bends():
    made = wavy()
    check_equal(made)
    resting, without = (Simulation(made, rest=each).finish().tallies.events for each in (True, False))
    assert resting * 40 < without


def test_small_scenarios_and_those_without_numpy_follow_every_bend(monkeypatch):
    made = wavy()
    events = Simulation(made, rest=False).finish().tallies.events
    assert Simulation(made).finish().tallies.events == events
    monkeypatch.setitem(sys.modules, "podqos.sim.node.resting", None)
    assert Simulation(made, rest=True).finish().tallies.events == events


def test_what_sleeps_on_wakes_in_time_though_what_was_to_wake_before_it_is_gone():
    """The first would reach its limit of 100Mi at 40 s and is deleted at 25 s; the second reaches it at 80 s."""
    first, second = (
        Curve(tuple((at * SECOND_US, size * MI) for at, size in ((0, 10), (10, 20), (20, 10), (full, 10), (full, 110))))
        for full in (40, 80)
    )
    works = [
        workload(pod(name, limits="memory=100Mi"), using(curve), deleted_us=deleted_us)
        for name, curve, deleted_us in (("a", first, 25 * SECOND_US), ("b", second, None))
    ]
    made = beside(*works)
    check_equal(made)
    assert [entry.pod for entry in simulate(made).entries if entry.kind is Kind.OOM_KILLED][:1] == ["default/b"]


def test_a_limit_is_seen_though_its_container_was_woken_by_another_sum():
    """A part that is roused alone leaves its own sums at rest: they are looked at when they could reach a mark."""

    def own(limit: str) -> dict[str, object]:
        return {"requests": {"memory": "100Mi"}, "limits": {"memory": limit}}

    sizes = {"w0": ("150Mi", "260Mi", "30s"), "w1": ("400Mi", "260Mi", "47s"), "w3": ("150Mi", "260Mi", "30s"),
             "w4": ("300Mi", "350Mi", "30s"), "w5": ("400Mi", "350Mi", "30s")}  # fmt: skip
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": [{"name": "main", "image": "x", "resources": own(limit)}]},
        }
        for name, (limit, _, _) in sizes.items()
    ]
    kubelet = {"evictionHard": {"memory.available": "100Mi"}, "enforceNodeAllocatable": []}
    capacity = {"cpu": 4, "memory": "1000Mi"}
    node = {"name": "n", "capacity": capacity, "watermarks": {"min": "1Mi"}, "kubelet": kubelet}
    workloads = [
        {
            "workload": name,
            "nodes": ["n"],
            "demand": {"memory": {"wave": {"low": "20Mi", "high": high, "period": period}}},
        }
        for name, (_, high, period) in sizes.items()
    ]
    spec = {"duration": "80s", "nodes": [node], "manifests": ["pods.json"], "workloads": workloads}
    document = {"apiVersion": "podqos.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "x"}, "spec": spec}
    listed = {"apiVersion": "v1", "kind": "List", "items": pods}
    files = {"x.yaml": json.dumps(document).encode(), "pods.json": json.dumps(listed).encode()}
    made = read_given_scenario("x.yaml", files).loaded()
    asleep, awake = (encode(Simulation(made, rest=rest).finish().entries) for rest in (True, False))
    assert asleep == awake
