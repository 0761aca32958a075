"""CPU as an outcome: when work is done, and what it costs others. The working is in each test.

Sources: Linux kernel/sched/fair.c (shares by weight down the tree of cgroups), Documentation/scheduler/sched-bwc.rst
(a quota of 100 ms periods); Kubernetes pkg/kubelet/cm/helpers_linux.go (MilliCPUToShares, MilliCPUToQuota), and for the
weight of a pod's cgroup runc's conversion of shares: ``1 + (shares − 2) × 9999 ÷ 262142``, rounded down.

So a pod that requests 500m (512 shares) has weight 20, one that requests 1 (1024 shares) 39.
"""

from __future__ import annotations

import csv
import io
import json

import pytest

from podqos.cli.main import main
from podqos.model.time_units import SECOND_US
from podqos.reading.scenario_files import load_scenario
from podqos.sim.node.cpu import CPU_US
from podqos.sim.run import FinishedRun, Simulation, simulate
from podqos.sim.summary import run_summary


def container(name: str = "main", requests: str = "", limits: str = "") -> str:
    resources = f"requests: {{{requests}}}, limits: {{{limits}}}"
    return f"{{name: {name}, image: x, resources: {{{resources}}}}}"


def pod(name: str, *containers: str, more: str = "restartPolicy: Never") -> str:
    kind = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}"
    return f"{kind}\nspec: {{{more}, containers: [{', '.join(containers or [container()])}]}}\n"


@pytest.fixture
def scenario(tmp_path):
    """Write a scenario of one node, with pods and their demands by name; return its path."""

    def write(pods: list[str], demands: dict[str, str], *, seconds: int = 120, node: str = "cpu: 4", spec: str = ""):
        (tmp_path / "pods.yaml").write_text("---\n".join(pods))
        lines = [f"    - {{workload: {name}, nodes: [node], {demand}}}" for name, demand in demands.items()]
        text = f"""\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {{name: test}}
spec:
  duration: {seconds}s
  manifests: [pods.yaml]
  nodes:
    - name: node
      capacity: {{{node}, memory: 8Gi}}
      filesystems: {{nodefs: {{capacity: 100Gi}}}}
{spec}
  workloads:
{chr(10).join(lines)}
"""
        path = tmp_path / "scenario.yaml"
        path.write_text(text)
        return str(path)

    return write


def ran(path: str) -> FinishedRun:
    return simulate(load_scenario(path), check=True)


def ends(done: FinishedRun) -> dict[str, list[float]]:
    """Return when containers ended, in seconds, by pod; with several containers by ``pod/container``."""
    found: dict[str, list[float]] = {}
    for entry in done.entries:
        finished_us = getattr(entry.because, "finished_us", None)
        if finished_us is not None and entry.container is not None:
            name = entry.pod.removeprefix("default/")
            found.setdefault(name if entry.container == "main" else f"{name}/{entry.container}", []).append(finished_us)
    return {name: [time_us / SECOND_US for time_us in times] for name, times in found.items()}


# ---- work is conserved -----------------------------------------------------------------------------------------------


def test_sixty_cpu_seconds_under_a_limit_of_one_take_sixty_seconds(scenario):
    # It wants 2 cores; its quota of 100 ms in periods of 100 ms grants 1: 60 ÷ 1 = 60 s.
    path = scenario([pod("a", container(limits="cpu: 1"))], {"a": "demand: {cpu: 2, work: 60 cpu-s}"})
    assert ends(ran(path)) == {"a": [60.0]}


def test_sixty_cpu_seconds_alone_take_as_long_as_the_cores_it_can_use_say(scenario):
    # 60 ÷ 2 = 30 s; without `cpu` it uses one core: 20 ÷ 1 = 20 s.
    demands = {"a": "demand: {cpu: 2, work: 60 cpu-s}", "b": "demand: {work: 20 cpu-s}"}
    assert ends(ran(scenario([pod("a"), pod("b")], demands))) == {"b": [20.0], "a": [30.0]}


def test_work_is_done_at_the_first_microsecond_at_which_there_was_enough_cpu(scenario):
    # 1 cpu-s at 3 cores: 333 333.3 µs, so the 333 334th.
    assert ends(ran(scenario([pod("a")], {"a": "demand: {cpu: 3, work: 1 cpu-s}"}))) == {"a": [0.333334]}


def test_what_one_leaves_when_it_is_done_the_other_gets(scenario):
    # Both want 4 of 4 cores and weigh the same: 2 each. A has its 40 cpu-s at 20 s. B has 40 of 80 by then, and from
    # there on 4 cores: 40 ÷ 4 = 10 s more.
    demands = {"a": "demand: {cpu: 4, work: 40 cpu-s}", "b": "demand: {cpu: 4, work: 80 cpu-s}"}
    assert ends(ran(scenario([pod("a"), pod("b")], demands))) == {"a": [20.0], "b": [30.0]}


def test_work_under_contention_goes_by_weight(scenario):
    # Weights 20 and 39 (500m and 1). Of 4 cores B gets 4 × 39 ÷ 59: its 39 cpu-s take 39 × 59 ÷ 156 = 14.75 s. A has
    # had 4 × 20 ÷ 59 × 14.75 = 20 of its 40 by then, and gets 4 cores: 5 s more.
    pods = [pod("a", container(requests="cpu: 500m")), pod("b", container(requests="cpu: 1"))]
    demands = {"a": "demand: {cpu: 4, work: 40 cpu-s}", "b": "demand: {cpu: 4, work: 39 cpu-s}"}
    assert ends(ran(scenario(pods, demands))) == {"b": [14.75], "a": [19.75]}


def test_work_of_which_the_cores_rise_beyond_the_machines(scenario):
    # It wants 0.4 t cores of 2. At 5 s that is all there are, and it has had 0.4 × 5² ÷ 2 = 5 cpu-s. The other 20 take
    # 10 s: 15 s.
    path = scenario([pod("a")], {"a": "demand: {cpu: 4 over 10s, work: 25 cpu-s}"}, node="cpu: 2")
    assert ends(ran(path)) == {"a": [15.0]}


def test_work_of_which_the_cores_fall_below_its_limit(scenario):
    # It wants 3 cores, falling to 1 at 10 s, under a limit of 2: 2 × 5 = 10 cpu-s by 5 s, from there 2 falling to 1:
    # 7.5 by 10 s. The last 2.5 of 20 take 2.5 s at one core: 12.5 s.
    demand = "demand: {cpu: {points: {0s: 3, 10s: 1}}, work: 20 cpu-s}"
    path = scenario([pod("a", container(limits="cpu: 2"))], {"a": demand})
    assert ends(ran(path)) == {"a": [12.5]}


def test_work_next_to_one_whose_demand_rises_linearly(scenario):
    # 2 cores, equal weights. A wants 2. B wants 0.1 t: it gets that until it reaches its half, 1 core, at 10 s; A gets
    # 2 − 0.1 t: 20 − 5 = 15 cpu-s by 10 s. From there on A gets 1: the last 5 of 20 take 5 s.
    demands = {"a": "demand: {cpu: 2, work: 20 cpu-s}", "b": "demand: {cpu: 2 over 20s}"}
    done = ran(scenario([pod("a"), pod("b")], demands, node="cpu: 2", seconds=60))
    assert ends(done) == {"a": [15.0]}
    # B is short of CPU from when it lacks a thousandth of a core: it wants 1001m at 10.01 s. At 15 s it gets all.
    told = [entry for entry in done.entries if entry.kind == "Throttled" and entry.pod == "default/b"]
    assert [round(entry.time_us / SECOND_US, 5) for entry in told] == [10.01, 15.0]


def test_two_containers_share_the_limit_of_their_pod(scenario):
    # The pod's limit is the sum of its containers' (1 + 1 = 2) and each has its own of 1. A wants 1, its limit: 10 s.
    # B wants 2 and gets 1: 20 s, since what A leaves is beyond B's own limit.
    pods = [pod("p", container("a", limits="cpu: 1"), container("b", limits="cpu: 1"))]
    demands = {"p": "containers: {a: {work: 10 cpu-s}, b: {cpu: 2, work: 20 cpu-s}}"}
    assert ends(ran(scenario(pods, demands))) == {"p/a": [10.0], "p/b": [20.0]}


def test_a_container_that_is_killed_and_restarted_begins_its_work_anew(scenario):
    # At 10 s it wants more memory than its limit and is killed, after 10 of 15 cpu-s. The kubelet sees that at its
    # relist at 11 s and restarts it at once (the first time without back-off): 15 s more, until 26 s.
    memory = "{steps: {0s: 10Mi, 10s: 500Mi, 10500ms: 10Mi}}"
    pods = [pod("a", container(limits="memory: 100Mi"), more="restartPolicy: OnFailure")]
    path = scenario(pods, {"a": f"demand: {{work: 15 cpu-s, memory: {memory}}}"})
    assert ends(ran(path))["a"][-1] == 26.0


def test_an_init_container_with_work_runs_until_that_is_done(scenario):
    # Migrate takes 6 cpu-s at 2 cores: 3 s. It is seen at the relist at 4 s; then main has 5 cpu-s: 9 s.
    more = f"restartPolicy: Never, initContainers: [{container('migrate')}]"
    demands = {"a": "containers: {migrate: {cpu: 2, work: 6 cpu-s}, main: {work: 5 cpu-s}}"}
    assert ends(ran(scenario([pod("a", more=more)], demands))) == {"a/migrate": [3.0], "a": [9.0]}


def test_what_runs_outside_of_pods_takes_cpu_from_work(scenario):
    # Daemons want 1 of 4 cores from 10 s on. Their weight is 100, that of all pods 157 (4 cores, 4096 shares): their
    # share of 4 × 100 ÷ 257 = 1.56 is more than they want. So 40 cpu-s by 10 s, then 3 cores: 60 ÷ 3 = 20 s more.
    system = "      system: {cpu: {steps: {0s: 0, 10s: 1}}}"
    path = scenario([pod("a")], {"a": "demand: {cpu: 4, work: 100 cpu-s}"}, spec=system)
    assert ends(ran(path)) == {"a": [30.0]}


def test_work_with_a_periodic_demand_of_cores_waits_through_the_breaks(scenario):
    # A square wave of 1 core for 2 s of every 4, from 1 s on, else 0: 2 cpu-s by 3 s, 4 by 7 s, the fifth by 10 s.
    wave = "{wave: {low: 0, high: 1, period: 4s, form: square, peak: 1s}}"
    path = scenario([pod("a")], {"a": f"demand: {{cpu: {wave}, work: 5 cpu-s}}"})
    assert ends(ran(path)) == {"a": [10.0]}


def test_the_exit_code_of_work_is_the_stated_one(scenario):
    path = scenario([pod("a")], {"a": "demand: {work: 5 cpu-s, exits: {code: 3}}"})
    (because,) = [entry.because for entry in ran(path).entries if getattr(entry.because, "finished_us", None)]
    assert because.exit_code == 3


@pytest.mark.parametrize(
    ("demand", "told"),
    [
        ("{work: 60}", '"60" is not an amount of CPU time (write the unit: 60 cpu-s)'),
        ("{work: 60s}", '"60s" is not an amount of CPU time (write the unit: 60 cpu-s)'),
        ("{work: a lot}", '"a lot" is not an amount of CPU time (such as 60 cpu-s, 500 cpu-ms or 2 cpu-h)'),
        ("{work: 0 cpu-s}", "0 cpu-s is less than a microsecond"),
        ("{work: -5 cpu-s}", '"-5 cpu-s" is not an amount of CPU time'),
        ("{work: 5 cpu-s, cpu: 0}", "is 0: the work is never done"),
        ("{work: 5 cpu-s, exits: {after: 3s}}", "work and exits.after exclude each other"),
    ],
)
def test_work_that_makes_no_sense_is_rejected_with_its_line(scenario, capsys, demand, told):
    path = scenario([pod("a")], {"a": f"demand: {demand}"})
    assert main(["simulate", path]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert f"{path}:13:" in error


def test_a_run_with_work_is_the_same_every_time(scenario, capsys):
    demands = {"a": "demand: {cpu: 4, work: 40 cpu-s}", "b": "demand: {cpu: 3 over 20s, work: 50 cpu-s}"}
    path = scenario([pod("a", container(requests="cpu: 700m")), pod("b")], demands, node="cpu: 3")
    outputs = []
    for _ in range(2):
        assert main(["simulate", path, "-o", "json"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert json.loads(outputs[0])["kind"] == "SimulationReport"


# ---- what workloads got ----------------------------------------------------------------------------------------------


def outcome(path: str, workload: str):
    """Return what a workload got of the CPU."""
    rows = {row.workload: row.cpu for row in run_summary(ran(path)).workloads}
    return rows[f"default/{workload}"]


def test_half_of_what_a_limited_container_wants_is_denied_and_counted(scenario):
    # It wants 2 cores under a limit of 1 for 20 s: 40 cpu-s wanted, 20 granted, 20 denied, half at any time. Its quota
    # stops it in each of 20 ÷ 0.1 = 200 periods.
    path = scenario([pod("a", container(limits="cpu: 1"))], {"a": "demand: {cpu: 2}"}, seconds=20)
    cpu = outcome(path, "a")
    assert (cpu.slowed, cpu.wanted_us, cpu.granted_us, cpu.denied_us) == (1, 40_000_000, 20_000_000, 20_000_000)
    assert (cpu.least_share, cpu.mean_share, cpu.slowdown, cpu.throttled_periods) == (0.5, 0.5, 2.0, 200)


def test_a_period_counts_if_the_limit_binds_at_any_time_in_it(scenario):
    # It wants 2 cores from 1.05 s to 1.31 s, else 0.5: the periods from 1.0, 1.1, 1.2 and 1.3 s.
    demand = "demand: {cpu: {steps: {0s: 500m, 1050ms: 2, 1310ms: 500m}}}"
    path = scenario([pod("a", container(limits="cpu: 1"))], {"a": demand}, seconds=20)
    cpu = outcome(path, "a")
    # 0.26 s at 2 cores and 19.74 s at 0.5: 10.39 cpu-s wanted, 0.26 denied.
    assert (cpu.throttled_periods, cpu.wanted_us, cpu.denied_us) == (4, 10_390_000, 260_000)


def test_time_without_contention_counts_for_the_mean_and_not_for_the_least_share(scenario):
    # 4 cores. A wants 1 core for 10 s, then 4, next to B, which wants 4 from 10 s on: 2 each, for 10 s.
    # A: 10 + 40 = 50 wanted, 10 + 20 = 30 granted: 60 % on average, 50 % at worst, 50 ÷ 30 times as slow.
    demands = {"a": "demand: {cpu: {steps: {0s: 1, 10s: 4}}}", "b": "demand: {cpu: {steps: {0s: 0, 10s: 4}}}"}
    cpu = outcome(scenario([pod("a"), pod("b")], demands, seconds=20), "a")
    assert (cpu.wanted_us, cpu.granted_us) == (50_000_000, 30_000_000)
    assert (cpu.least_share, cpu.mean_share, cpu.slowdown) == (0.5, 0.6, pytest.approx(5 / 3, abs=1e-6))
    assert cpu.throttled_periods == 0


def test_a_ramp_beyond_the_limit_is_integrated(scenario):
    # It wants 0.2 t cores for 20 s, under a limit of 2, reached at 10 s. Wanted: 0.2 × 20² ÷ 2 = 40; granted: 10 in the
    # first half, 20 in the second; denied 10. At 20 s it gets 2 of 4.
    # (In the first 5 ms over the limit it is denied less than 1m, which does not count.)
    path = scenario([pod("a", container(limits="cpu: 2"))], {"a": "demand: {cpu: 4 over 20s}"}, seconds=20)
    cpu = outcome(path, "a")
    assert cpu.wanted_us == pytest.approx(40_000_000, abs=5)
    assert cpu.denied_us == pytest.approx(10_000_000, abs=5)
    assert cpu.least_share == pytest.approx(0.5, abs=1e-6)


def test_work_that_is_done_is_compared_with_the_time_it_takes_alone(scenario):
    # 60 cpu-s at 2 cores alone: 30 s; under a limit of 1: 60 s, twice as long.
    path = scenario([pod("a", container(limits="cpu: 1"))], {"a": "demand: {cpu: 2, work: 60 cpu-s}"})
    cpu = outcome(path, "a")
    assert (cpu.work_done, cpu.work_unfinished, cpu.work_taken_us, cpu.work_alone_us) == (1, 0, 60_000_000, 30_000_000)
    assert cpu.slowdown == 2.0


def test_work_that_the_end_cuts_short_is_unfinished(scenario):
    path = scenario([pod("a")], {"a": "demand: {work: 60 cpu-s}"}, seconds=20)
    cpu = outcome(path, "a")
    assert (cpu.work_done, cpu.work_unfinished, cpu.granted_us, cpu.slowed) == (0, 1, 20_000_000, 0)


def test_a_workload_that_gets_all_it_wants_has_no_figures(scenario):
    path = scenario([pod("a")], {"a": "demand: {cpu: 4}"}, seconds=20)
    assert outcome(path, "a") is None


def test_a_container_that_ends_while_it_is_short_of_cpu_is_so_until_then(scenario):
    # Under a limit of 1 it wants 2 until it exits at 5.25 s; the kubelet notices at 6 s.
    path = scenario(
        [pod("a", container(limits="cpu: 1"))], {"a": "demand: {cpu: 2, exits: {after: 5250ms}}"}, seconds=20
    )
    (row,) = run_summary(ran(path)).workloads
    assert row.throttled_us == 5_250_000
    assert (row.cpu.wanted_us, row.cpu.throttled_periods) == (10_500_000, 53)


def test_the_headline_says_how_many_pods_were_short_of_cpu_and_how_much(scenario, capsys):
    # 4 cores, two pods that want 4 each: half.
    demands = {"a": "demand: {cpu: 4}", "b": "demand: {cpu: 4}"}
    path = scenario([pod("a"), pod("b"), pod("c")], demands, seconds=20)
    assert main(["simulate", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == (
        "1 of 3 pods unaffected; 2 short of CPU (worst: default/a, down to 50 % of the CPU it wanted). "
        "No OOM kills, no evictions."
    )
    assert "default/a  1/1           80 cpu-s    40 cpu-s  40 cpu-s  50 %         50 %        2×" in lines


def test_csv_has_a_cell_for_each_figure_of_the_cpu(scenario, capsys):
    path = scenario([pod("a"), pod("b")], {"a": "demand: {cpu: 8}"}, seconds=20)
    assert main(["simulate", path, "-o", "csv"]) == 0
    first, second = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (first["cpu_wanted_seconds"], first["cpu_granted_seconds"], first["least_share"]) == ("160.0", "80.0", "0.5")
    assert (second["slowed"], second["cpu_wanted_seconds"]) == ("0", "")


def test_a_lost_node_keeps_its_accounts(tmp_path, scenario):
    # It wants 8 of 4 cores until its machine is lost at 10 s: 80 cpu-s wanted, 40 granted.
    path = scenario([pod("a")], {"a": "demand: {cpu: 8}"}, seconds=20)
    file = tmp_path / "scenario.yaml"
    file.write_text(file.read_text() + "  events: [{at: 10s, nodeLost: node}]\n")
    cpu = outcome(path, "a")
    assert (cpu.wanted_us, cpu.granted_us) == (80_000_000, 40_000_000)


def test_demands_that_rise_next_to_many_others_are_added_up_approximately_where_no_work_depends_on_it(scenario):
    # On 2 cores nine pods A want 0.2 each: 1.8 in all. One pod B of the same weight wants 0.1 t up to 2 at 20 s: all
    # fits until 2 s. From there on B, of which 0.2 is the share, gets 0.2: 0.2 by 2 s, and 3.6 from there to 20 s.
    names = [f"a{index}" for index in range(9)]
    demands = dict.fromkeys(names, "demand: {cpu: 200m}") | {"b": "demand: {cpu: 2 over 20s}"}
    cpu = outcome(scenario([pod(name) for name in (*names, "b")], demands, node="cpu: 2", seconds=20), "b")
    assert cpu.granted_us == pytest.approx(3_800_000, rel=0.001)
    assert cpu.wanted_us == pytest.approx(20_000_000, rel=0.001)


NOISE = "{random: {low: 100m, high: 900m, every: 7s}}"


def noisy(scenario):
    pods = [pod(f"p{index}", container(requests=f"cpu: {60 * (index + 1)}m")) for index in range(10)]
    demands = {f"p{index}": f"demand: {{cpu: {NOISE}}}" for index in range(7)}
    demands |= {f"p{index}": f"demand: {{cpu: {NOISE}, work: {10 * index} cpu-s}}" for index in range(7, 10)}
    return scenario(pods, demands, seconds=600)


def test_work_ends_at_the_same_moment_whether_or_not_bends_are_left_out_that_cannot_matter(scenario):
    made = load_scenario(noisy(scenario))
    runs = [Simulation(made, rest=rest).finish() for rest in (True, False)]
    assert ends(runs[0]) == ends(runs[1])
    assert len(ends(runs[0])) == 3
    assert runs[0].cpu == runs[1].cpu
    assert list(runs[0].entries) == list(runs[1].entries)


def test_work_is_done_when_all_shares_add_up_to_it_also_under_random_contention(scenario):
    # Not worked by hand: what was granted up to the end is what there was to do, to a nanosecond of CPU. All noise
    # together wants 5 of 4 cores on average.
    done = ran(noisy(scenario))
    works = [account for account in done.cpu if account.work is not None]
    assert [account.is_done for account in works] == [True] * 3
    for account in works:
        assert 0 <= account.granted - account.work + CPU_US // 1000 < 4 * CPU_US
        assert account.granted <= account.wanted
    assert works[0].granted < works[0].wanted


def test_throttling_begins_when_a_rising_demand_reaches_its_share_and_not_when_it_bends_next(scenario):
    # As above, without work: on 2 cores A wants 2 and B 0.1 t. B has its half, 1 core, at 10 s, and lacks 1m soon.
    demands = {"a": "demand: {cpu: 2}", "b": "demand: {cpu: 2 over 20s}"}
    done = ran(scenario([pod("a"), pod("b")], demands, node="cpu: 2", seconds=20))
    told = [entry.time_us for entry in done.entries if entry.kind == "Throttled" and entry.pod == "default/b"]
    assert [round(time_us / SECOND_US, 4) for time_us in told] == [10.01]
    (row,) = [row for row in run_summary(done).workloads if row.workload == "default/b"]
    # Wanted 0.1 × 20² ÷ 2 = 20, granted 5 + 10.
    assert (row.cpu.wanted_us, row.cpu.granted_us) == (
        pytest.approx(20_000_000, abs=5),
        pytest.approx(15_000_000, abs=5),
    )


def test_a_sweep_compares_the_shares_that_limits_leave(scenario, capsys):
    # It wants 2 cores: half under a limit of 1, all under one of 2.
    path = scenario([pod("a", container(requests="cpu: 500m", limits="cpu: 1"))], {"a": "demand: {cpu: 2}"}, seconds=20)
    assert main(["simulate", path, "--vary", "limits.cpu@a=1,2", "-o", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["mean_share_mean"], row["least_share_least"]) for row in rows] == [("0.5", "0.5"), ("1.0", "1.0")]


def test_json_has_the_cpu_of_slowed_workloads_over_time(scenario, capsys):
    # 4 cores. From 10 s on A and B want 4 each and get 2; C wants nothing.
    demand = "demand: {cpu: {steps: {0s: 1, 10s: 4}}}"
    path = scenario([pod("a"), pod("b"), pod("c")], {"a": demand, "b": demand}, seconds=20)
    assert main(["simulate", path, "-o", "json"]) == 0
    (node,) = json.loads(capsys.readouterr().out)["nodes"]
    times = [time_us // SECOND_US for time_us in node["timesUs"]]
    assert [series["workload"] for series in node["workloadCpu"]] == ["default/a", "default/b"]
    for series in node["workloadCpu"]:
        points = set(zip(times, series["wantedMilli"], series["grantedMilli"], strict=True))
        assert points == {(0, 1000, 1000), (10, 1000, 1000), (10, 4000, 2000), (20, 4000, 2000)}
