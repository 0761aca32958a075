"""What the terminal shows of a run comes from its journal and from notes, and is what a full recording says."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from podqos.answers.run_view import Kill, RunView
from podqos.library.simulation import simulate
from podqos.reading.scenario_files import load_scenario
from podqos.report.simulation.timeline import timeline
from podqos.report.text.style import Style
from podqos.sim import run as run_module
from podqos.sim import second_run
from podqos.sim.node.notes import UNTOLD
from podqos.sim.scenario.scenario import Scenario

SCENARIOS = (
    "oom-by-class",
    "system-overrun",
    "slow-leak",
    "soft-eviction",
    "oom-loop",
    pytest.param("page-cache", marks=pytest.mark.slow),
    "disk-pressure",
    "pid-exhaustion",
    "cpu-burst",
    pytest.param("graceful-degradation", marks=pytest.mark.slow),
)


def briefly(kills: tuple[Kill, ...], view: RunView) -> list[Kill]:
    """Return kills as the terminal shows them: what would have saved a workload's later ones is not repeated."""
    workloads = {pod.key: pod.workload for pod in view.pods}
    seen = set[tuple[str, str]]()
    shown = []
    for kill in kills:
        who = kill.node, workloads[kill.pod]
        shown.append(replace(kill, savings=()) if who in seen else kill)
        seen.add(who)
    return shown


@pytest.mark.parametrize("name", SCENARIOS)
def test_words_say_of_kills_and_nodes_what_a_recording_does(name):
    scenario = load_scenario(name)
    report, words = simulate(scenario).report, simulate(scenario, record="words").words
    assert briefly(words.kills, words) == briefly(report.kills, report)
    assert [node.panels for node in words.nodes] == [node.panels for node in report.nodes]
    assert [node.thresholds for node in words.nodes] == [node.thresholds for node in report.nodes]
    assert words.events == tuple(event for event in report.events if event.kind not in UNTOLD)
    assert (words.headline, words.summary, words.closest) == (report.headline, report.summary, report.closest)


DAY = """
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: day}
spec:
  duration: 6h
  manifests: [manifests.yaml]
  nodes:
    - name: node
      count: 3
      capacity: {cpu: 8, memory: 4Gi}
      filesystems: {nodefs: {capacity: 100Gi}}
      system: {memory: 256Mi}
  workloads:
    - {workload: web, spread: true, demand: {
        memory: {random: {low: 40Mi, high: 140Mi, every: 5m}}, cpu: {random: {low: 20m, high: 90m, every: 5m}}}}
    - {workload: leak, spread: true, demand: {memory: 64Mi + 4Mi per minute}}
    - {workload: late, spread: true, arrives: 2h, deleted: 4h, demand: {memory: 100Mi, cpu: 80m}}
    - {workload: spill, replicas: 1, nodes: [node-0], recreate: false, demand: {memory: 8Mi per minute}}
"""


def deployment(name: str, replicas: int, limit: str | None) -> str:
    limits = "" if limit is None else f", limits: {{memory: {limit}}}"
    return f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
        - {{name: app, image: x, resources: {{requests: {{cpu: 50m, memory: 64Mi}}{limits}}}}}
"""


@pytest.fixture
def day(tmp_path: Path) -> Scenario:
    made = [deployment("web", 45, None), deployment("leak", 3, "512Mi"), deployment("late", 3, None)]
    (tmp_path / "manifests.yaml").write_text("---".join([*made, deployment("spill", 1, None)]))
    (tmp_path / "scenario.yaml").write_text(DAY)
    return load_scenario(tmp_path / "scenario.yaml")


def test_words_are_the_same_whether_or_not_every_bend_is_followed(day, monkeypatch):
    """Where nothing happens, parts of sums sleep: what they held is added to what is told, to the mebibyte."""
    monkeypatch.setattr(second_run, "MOST_EVENTS", 0)
    followed = simulate(day, record="words").words
    monkeypatch.setattr(run_module, "_MANY_BENDS", 0)
    asleep = simulate(day, record="words").words
    assert {kill.node for kill in followed.kills} == {"node-0", "node-1", "node-2"}
    assert timeline(asleep, Style()) == timeline(followed, Style())


@pytest.mark.slow
def test_words_of_a_day_say_of_kills_what_a_recording_does(day, monkeypatch):
    monkeypatch.setattr(second_run, "MOST_EVENTS", 0)
    report, words = simulate(day).report, simulate(day, record="words").words
    assert briefly(words.kills, words) == briefly(report.kills, report)
    assert any(kill.savings for kill in words.kills)


def quiet(tmp_path: Path, workloads: int) -> Scenario:
    """Return an hour in which nothing happens: node-2 has the least memory, and its pods want most at half past."""
    names = [f"web-{index}" for index in range(workloads)]
    (tmp_path / "manifests.yaml").write_text("---".join(deployment(name, 3, None) for name in names))
    wave = "{points: {0s: 100Mi, 30m: 500Mi, 1h: 100Mi}}"
    demands = "".join(f"    - {{workload: {name}, spread: true, demand: {{memory: {wave}}}}}\n" for name in names)
    (tmp_path / "scenario.yaml").write_text(f"""
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {{name: quiet}}
spec:
  duration: 1h
  manifests: [manifests.yaml]
  nodes:
    - {{name: node-0, capacity: {{cpu: 4, memory: 8Gi}}, filesystems: {{nodefs: {{capacity: 100Gi}}}}}}
    - {{name: node-1, capacity: {{cpu: 4, memory: 8Gi}}, filesystems: {{nodefs: {{capacity: 100Gi}}}}}}
    - name: node-2
      capacity: {{cpu: 4, memory: 4Gi}}
      filesystems: {{nodefs: {{capacity: 100Gi}}}}
      system: {{memory: 34Mi}}
  workloads:
{demands}""")
    return load_scenario(tmp_path / "scenario.yaml")


@pytest.mark.parametrize("is_followed", [False, True], ids=["idle", "followed"])
def test_where_nothing_happens_the_closest_node_is_told_with_what_it_had_left_and_when(tmp_path, is_followed):
    """4096Mi less 34Mi of the system and 7 × 500Mi at half past; a node that is not simulated says the same."""
    run = simulate(quiet(tmp_path, 7), record="words", check=is_followed)
    assert "Closest: node-2, 562Mi left at 30 min (evictions or OOM kills below 100Mi)." in timeline(run.words, Style())
    assert run.report.closest == run.words.closest


def test_a_node_that_is_not_simulated_is_told_as_if_it_were(tmp_path):
    scenario = quiet(tmp_path, 7)
    idle, simulated = (simulate(scenario, record="words", check=check) for check in (False, True))
    assert timeline(idle.words, Style()) == timeline(simulated.words, Style())


def test_there_is_no_closest_node_where_one_ran_out_of_memory():
    assert simulate(load_scenario("oom-by-class"), record="words").words.closest is None


def test_workloads_that_fared_the_same_are_one_row_unless_all_is_asked_for(tmp_path):
    words = simulate(quiet(tmp_path, 7), record="words").words
    assert [line for line in timeline(words, Style()) if line.startswith("default/")] == [
        "default/web-0 … web-6 × 7  Burstable  0         3/3         –          –        –         –     –"
    ]
    assert len([line for line in timeline(words, Style(is_wide=True)) if line.startswith("default/")]) == 7


@pytest.mark.parametrize("name", ["hpa-at-cpu-limit", "noisy-neighbour"])
def test_words_say_how_much_cpu_a_service_wants_when_they_say_it(name):
    """Its demand changes with its requests, by events that are not of its node."""
    scenario = load_scenario(name)
    report, words = simulate(scenario).report, simulate(scenario, record="words").words
    recorded, noted = (
        {
            time_us: sum(pod.cpu_wanted_milli[index] or 0 for pod in node.pods)
            for index, time_us in enumerate(node.times_us)
        }
        for node in (report.nodes[0], words.nodes[0])
    )
    shared = noted.keys() & recorded.keys()
    assert len(shared) > 3
    assert {time_us: noted[time_us] for time_us in shared} == {time_us: recorded[time_us] for time_us in shared}
