"""A run for the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from podqos.agent.journal import Entry, Kind
from podqos.agent.reasons import ReplacementFor
from podqos.controls import own
from podqos.model.time_units import SECOND_US
from podqos.reading.scenario_files import load_scenario
from podqos.runs.run import simulate
from podqos.runs.timeline import Again, condensed, csv_table, seconds, timeline
from podqos.sim import run as run_module
from podqos.sim import second_run
from podqos.sim.record import UNTOLD
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.summary import first_pods
from podqos.text.style import Style, visible_length
from runs.small import NODE, RUN


def happening(seconds, kind, pod=None):
    return Entry(seconds * SECOND_US, "n", kind, pod)


def rounds(times, start=0, pod="ns/logs"):
    """Return a pod that is evicted, made anew 1 s later, started after another, and evicted again after eight more."""
    events = []
    for number in range(times):
        at = start + 10 * number
        name, after = (f"{pod}-r{number}" if number else pod), f"{pod}-r{number + 1}"
        events += [
            happening(at, Kind.OBSERVED),
            happening(at, Kind.EVICTED, name),
            Entry((at + 1) * SECOND_US, "", Kind.REPLACED, after, because=ReplacementFor(name, "Evicted")),
            happening(at + 2, Kind.STARTED, after),
        ]
    return events


def told(events):
    """Return the stretches as they come: how many events, or how often again."""
    firsts = first_pods(events)
    parts = list(condensed(events, lambda each: firsts.get(each.pod, each.pod)))
    return [f"again {part.times}" if isinstance(part, Again) else len(part) for part in parts], parts


def test_all_who_came_after_a_pod_lead_back_to_it():
    assert first_pods(rounds(3)) == {f"ns/logs-r{number}": "ns/logs" for number in (1, 2, 3)}


def test_the_first_is_told_then_how_often_again_then_what_comes_after_the_last():
    shape, parts = told(rounds(5))
    assert shape == [2, "again 4", 2]
    assert parts[1] == Again("ns/logs", 4, 0, 40 * SECOND_US, 2 * SECOND_US, 2 * SECOND_US)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([], [0], id="nothing"),
        pytest.param(rounds(1), [4], id="once"),
        pytest.param(rounds(2), [8], id="twice is told twice"),
        pytest.param(rounds(3), [2, "again 2", 2], id="three times"),
        pytest.param(
            [*rounds(3), happening(29, Kind.EVICTED, "ns/web"), *rounds(1, 30)], [2, "again 2", 7], id="then web"
        ),
        pytest.param(
            [*rounds(2), happening(15, Kind.EVICTED, "ns/web"), *rounds(2, 20, "ns/logs-r2")],
            [17],
            id="another between",
        ),
        pytest.param([happening(at, Kind.EVICTED) for at in range(4)], [4], id="of no pod"),
        pytest.param([happening(at, Kind.EVICTED, f"ns/web-{at}") for at in range(4)], [4], id="of several pods"),
        pytest.param(
            [each for pod in ("a", "b") for each in rounds(3, pod=f"ns/{pod}")],
            [2, "again 2", 4, "again 2", 2],
            id="one pod after the other",
        ),
    ],
)
def test_what_is_told_at_once(events, expected):
    assert told(events)[0] == expected


def test_conditions_that_come_and_go_meanwhile_do_not_break_it():
    events = rounds(4)
    events[6:6] = [happening(10, Kind.CONDITION_CHANGED)]
    assert told(events)[0] == [2, "again 3", 2]


PLAIN = Style()


def _lines(run=RUN, style=PLAIN):
    return timeline(run, style)


def _line(text, lines):
    (found,) = [line for line in lines if text in line]
    return found


def test_of_many_nodes_it_is_said_how_many_are_left_out():
    many = replace(RUN, summary=replace(RUN.summary, nodes=1000))
    assert "1 of 1,000 nodes are shown above; --node NAME shows another" in _lines(many)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_what_can_be_wrapped_stays_within_the_width(width):
    long = replace(RUN, kills=tuple(replace(kill, reasons=("word " * 60,)) for kill in RUN.kills))
    lines = _lines(long, Style(width=width))
    assert max(visible_length(line) for line in lines if "word" in line) <= width


def test_colour_changes_nothing_but_colour():
    coloured = _lines(style=Style(colour=True))
    assert any(own("\x1b[") in line for line in coloured)
    assert [visible_length(line) for line in coloured] == [len(line) for line in _lines()]


def test_a_node_without_a_recording_still_tells_what_happened():
    bare = replace(NODE, times_us=(), available_bytes=(), free_bytes=(), system_bytes=(), pods=())
    assert "OOM-killed" in "\n".join(_lines(replace(RUN, nodes=(bare,))))


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (1_000_000, "1.000 s"),
        (119_999_000, "119.999 s"),
        (120_000_000, "2 min"),
        (125_500_000, "2 min 5.5 s"),
        (12_000_000_000, "3 h 20 min"),
    ],
)
def test_times_are_for_people(time_us, text):
    assert seconds(time_us) == text


def test_csv_has_a_row_per_workload():
    rows = list(csv_table(RUN.summary)[1])
    assert [row[0] for row in rows] == ["ns/web", "ns/logs", "ns/batch"]
    assert rows[1][5:10] == (1, 0, 0, 0, 19.0)


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


@pytest.mark.parametrize("name", SCENARIOS)
def test_words_say_of_kills_and_nodes_what_pictures_do(name):
    run = simulate(load_scenario(name))
    report, words = run.report, run.words
    assert words.events == tuple(event for event in report.events if event.kind not in UNTOLD)
    assert replace(words, events=report.events, nodes=report.nodes) == report
    assert [replace(node, orders=()) for node in report.nodes] == list(words.nodes)


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
    followed = simulate(day).words
    monkeypatch.setattr(run_module, "_MANY_BENDS", 0)
    asleep = simulate(day).words
    assert {kill.node for kill in followed.kills} == {"node-0", "node-1", "node-2"}
    assert timeline(asleep, Style()) == timeline(followed, Style())


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


def test_where_nothing_happens_the_closest_node_is_told_with_what_it_had_left_and_when(tmp_path):
    """4096Mi less 34Mi of the system and 7 × 500Mi at half past."""
    run = simulate(quiet(tmp_path, 7))
    assert "Closest: node-2, 562Mi left at 30 min (evictions or OOM kills below 100Mi)." in timeline(run.words, Style())


def test_of_many_nodes_those_worth_showing_are_listed(day):
    many = replace(day, nodes=tuple(replace(group, count=13) for group in day.nodes))
    run = simulate(many, nodes=None)
    assert run.words.nodes == ()
    assert [victims.node for victims in run.words.worth_showing or ()] == [node.name for node in run.report.nodes]
    assert timeline(run.words, Style())[-1] == "13 nodes; --node NAME shows one"


def test_there_is_no_closest_node_where_one_ran_out_of_memory():
    assert simulate(load_scenario("oom-by-class")).words.closest is None


def test_workloads_that_fared_the_same_are_one_row_unless_all_is_asked_for(tmp_path):
    words = simulate(quiet(tmp_path, 7)).words
    assert [line for line in timeline(words, Style()) if line.startswith("default/")] == [
        "default/web-0 … web-6 × 7  Burstable  0         3/3         –          –        –         –     –"
    ]
    assert len([line for line in timeline(words, Style(is_wide=True)) if line.startswith("default/")]) == 7
