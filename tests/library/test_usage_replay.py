"""Recorded usage as a scenario: what is read, what is made of it, and that it runs as recorded."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.agent.journal import Kind
from podqos.cli.main import main
from podqos.errors import InputError
from podqos.model.time_units import SECOND_US
from podqos.reading.scenario_files import load_scenario
from podqos.runs.run import simulate
from podqos.sim.scenario_format.recorded_usage import Irregular, Measure, RecordedUsage, thinned

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: web, resources: {requests: {memory: 100Mi}, limits: {memory: 200Mi}}}
"""
REPORT = """
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: "@hourly"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: report}]
"""
CAPACITY = ["--node-capacity", "cpu=4,memory=8Gi"]
FIRST = "web-7d9f8b6c5d-x2k4q"
TUESDAY = 1_794_873_600


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "web.yaml").write_text(WEB + REPORT)
    return tmp_path


def make(capsys, usage: str, *options: str, name: str = "usage.csv") -> tuple[int, str, str]:
    Path(name).write_text(usage)
    code = main(["scenario", "from-usage", "tuesday", "-f", "web.yaml", "--usage", name, *CAPACITY, *options])
    out, err = capsys.readouterr()
    return code, out, err


def curve(pod: str, measure: str = "anon_bytes"):
    scenario = load_scenario("tuesday.yaml")
    (found,) = [each for each in scenario.workloads if each.name == pod]
    return getattr(found.demand_of(0, "main"), measure)


def matrix(*series: tuple[dict[str, str], list[tuple[float, str]]]) -> str:
    result = [{"metric": labels, "values": values} for labels, values in series]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def labels(name: str, pod: str = FIRST, **more: str) -> dict[str, str]:
    return {"__name__": name, "namespace": "default", "pod": pod, "container": "main", **more}


MEMORY, CPU = "container_memory_working_set_bytes", "container_cpu_usage_seconds_total"


# ---- it runs -----------------------------------------------------------------------------------------------


def test_a_table_runs_again_as_recorded(capsys):
    rows = f"time,pod,memory,cpu\n0,{FIRST},50Mi,100m\n60,{FIRST},150Mi,0.2\n120,{FIRST},250Mi,0.3\n"
    code, out, err = make(capsys, rows)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "next: podqos simulate tuesday.yaml"
    assert [curve(FIRST).at(second * SECOND_US) >> 20 for second in (0, 30, 60, 120)] == [50, 100, 150, 250]
    assert curve(FIRST, "cpu_milli").at(90 * SECOND_US) == 250
    run = simulate(load_scenario("tuesday.yaml"))
    killed = next(entry for entry in run.journal if entry.kind is Kind.OOM_KILLED)
    assert (killed.pod, killed.time_us // SECOND_US) == (f"default/{FIRST}", 90), "the limit is 200Mi"


def test_pods_come_and_go_as_recorded_on_the_nodes_they_were_on(capsys):
    """The old pod's samples end half an hour before the new one's, which begin at ten minutes."""
    old = [(TUESDAY + second, "1000000") for second in range(0, 1800, 60)]
    new = [(TUESDAY + second, "2000000") for second in range(600, 3600, 60)]
    text = matrix((labels(MEMORY, node="a"), old), (labels(MEMORY, "web-7d9f8b6c5d-zzzzz", node="b"), new))
    assert make(capsys, text, name="usage.json")[0] == 0
    first, second = load_scenario("tuesday.yaml").workloads
    assert (first.arrives_us, first.deleted_us, first.nodes) == (0, 1800 * SECOND_US, ("a",))
    assert (second.arrives_us, second.deleted_us, second.nodes) == (600 * SECOND_US, None, ("b",))


def test_a_job_ends_by_itself(capsys):
    job = "report-29000000-abcde"
    rows = ["time,pod,memory"] + [f"{second},{job},1Mi" for second in range(0, 180, 60)]
    rows += [f"{second},{FIRST},1Mi" for second in range(0, 3600, 60)]
    assert make(capsys, "\n".join(rows))[0] == 0
    run = simulate(load_scenario("tuesday.yaml"))
    ended = [(entry.kind, entry.time_us // SECOND_US) for entry in run.journal if entry.pod == f"default/{job}"]
    assert (Kind.SUCCEEDED, 181) in ended, "as the kubelet sees it, within a second"
    assert Kind.DELETED not in dict(ended)


def test_a_file_without_the_column_pod_is_about_the_pod_it_is_called_after(capsys):
    assert make(capsys, "time,memory\n0,1Mi\n60,2Mi\n", name=f"{FIRST}.csv")[0] == 0
    assert curve(FIRST).at(60 * SECOND_US) == 2 << 20


def test_an_answer_without_a_name_is_one_clear_message(capsys):
    bare = {"namespace": "default", "pod": FIRST, "container": "main"}
    text = matrix((bare, [(TUESDAY, "1048576"), (TUESDAY + 60, "1048576")]))
    code, _, err = make(capsys, text, name="unnamed.json")
    assert (code, "unnamed.json: result[0]: the series has no name" in err) == (2, True)


# ---- what monitoring gets wrong ----------------------------------------------------------------------------

TIMES = {
    "seconds": ("0", "60"),
    "durations": ("0s", "1m"),
    "seconds since 1970": (str(TUESDAY), f"{TUESDAY + 60}.0"),
    "milliseconds since 1970": (f"{TUESDAY}000", f"{TUESDAY + 60}000"),
    "times of a day": ("02:00:00", "02:01:00.0"),
    "RFC 3339": ("2026-11-17T00:00:00Z", "2026-11-17T00:01:00Z"),
    "two time zones": ("2026-11-17T00:00:00Z", "2026-11-17T02:01:00+02:00"),
    "no time zone": ("2026-11-17 00:00:00", "2026-11-17T00:01:00Z"),
}


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_times_in_any_notation_count_from_the_first_sample(capsys, times):
    first, second = times
    assert make(capsys, f"time,pod,memory\n{first},{FIRST},1Mi\n{second},{FIRST},2Mi\n")[0] == 0
    assert curve(FIRST).at(60 * SECOND_US) == 2 << 20
    assert curve(FIRST).at(30 * SECOND_US) == 3 << 19


def test_samples_in_any_order_twice_and_without_a_number_are_put_right_and_told(capsys):
    values = [(TUESDAY + 120, "3"), (TUESDAY, "1"), (TUESDAY + 60, "NaN"), (TUESDAY + 120, "5"), (TUESDAY + 180, "7")]
    _, out, _ = make(capsys, matrix((labels(MEMORY), values)), name="usage.json")
    assert [curve(FIRST).at(second * SECOND_US) for second in (0, 60, 120, 180)] == [1, 3, 5, 7]
    assert "1 sample: not a number, left out\n" in out
    assert "1 sample: duplicate times, of which the larger value counts\n" in out
    assert "1 sample: out of order, sorted\n" in out


def test_a_counter_becomes_a_rate_and_goes_on_after_a_reset(capsys):
    values = [(TUESDAY, "100"), (TUESDAY + 60, "130"), (TUESDAY + 120, "6"), (TUESDAY + 180, "66")]
    _, out, _ = make(capsys, matrix((labels(CPU), values)), name="usage.json")
    assert [curve(FIRST, "cpu_milli").at(second * SECOND_US) for second in (0, 59, 60, 120)] == [500, 500, 100, 1000]
    assert "1 sample: counter resets\n" in out


def test_a_gap_is_bridged_and_told(capsys):
    rows = [f"{minute}m,{FIRST},{minute}Mi" for minute in (0, 1, 2, 3, 13, 14)]
    _, out, _ = make(capsys, "\n".join(["time,pod,memory", *rows]))
    assert "1 sample: after a gap, interpolated\n" in out
    assert curve(FIRST).at(8 * 60 * SECOND_US) == 8 << 20


def test_sums_over_pods_and_the_network_s_container_do_not_count(capsys):
    values = [(TUESDAY, "1"), (TUESDAY + 60, "1")]
    many = [(TUESDAY, "99"), (TUESDAY + 60, "99")]
    others = [({**labels(MEMORY), "container": name}, many) for name in ("", "POD")]
    assert make(capsys, matrix(*others, (labels(MEMORY), values)), name="usage.json")[0] == 0
    assert curve(FIRST).at(0) == 1


@pytest.mark.parametrize("recorded", [("usage_bytes", "rss", "working_set_bytes"), ("usage_bytes", "rss"), ("rss",)])
def test_of_several_metrics_of_memory_the_working_set_counts_then_rss(capsys, recorded):
    values = {"working_set_bytes": "1", "rss": "2", "usage_bytes": "3"}
    series = [
        (labels(f"container_memory_{name}"), [(TUESDAY, values[name]), (TUESDAY + 60, values[name])])
        for name in recorded
    ]
    assert make(capsys, matrix(*series), name="usage.json")[0] == 0
    assert curve(FIRST).at(0) == int(values[recorded[-1]])


def test_a_pod_that_is_recorded_with_and_without_names_runs_once(capsys):
    rows = ["0,web-0,,1Mi", "0,default/web-0,main,2Mi", "0,default/web-0,,3Mi", "60,web-0,,1Mi"]
    code, out, _ = make(capsys, "\n".join(["time,pod,container,memory", *rows]))
    assert (code, "left out: default/web-0: default/web-0 was also recorded under another name\n" in out) == (0, True)
    assert curve("web-0").at(0) == 1 << 20


def test_a_container_that_is_named_goes_before_the_sum_over_its_pod(capsys):
    rows = ["0,web-0,main,2Mi", "0,web-0,,3Mi", "60,web-0,main,2Mi"]
    assert make(capsys, "\n".join(["time,pod,container,memory", *rows]))[0] == 0
    assert curve("web-0").at(0) == 2 << 20


def test_pods_of_other_workloads_are_named_and_left_out(capsys):
    others = [f"0,{pod},1Mi" for pod in ("dns-1", "web-admin-7d9f8b6c5d-x2k4q", "kube-system/web-1", "../../web-0")]
    code, out, _ = make(capsys, "\n".join(["time,pod,memory", f"0,{FIRST},1Mi", *others]))
    left = [line for line in out.splitlines() if line.startswith("left out: ")]
    assert (code, len(left)) == (0, 4)
    assert left[0] == "left out: dns-1: no workload in the manifests has such pods"
    assert "no samples, so they do not run: CronJob default/report" in out
    assert [each.name for each in load_scenario("tuesday.yaml").workloads] == [FIRST]


BAD = {
    "no time": (f"pod,memory\n{FIRST},1Mi\n", "usage.csv:1: no time column"),
    "kubectl top": (f"NAME CPU(cores) MEMORY(bytes)\n{FIRST} 1m 1Mi\n", "no time column"),
    "a column": ("time,pod,memry\n0,a,1Mi\n", "usage.csv:1: unknown column 'memry'"),
    "an amount": (f"time,pod,memory\n0,{FIRST},lots\n", "usage.csv:2: 'lots' is not a valid quantity"),
    "a time": (f"time,pod,memory\nnoon,{FIRST},1Mi\n", 'usage.csv:2: "noon" is not a duration'),
    "mixed times": (f"time,pod,memory\n0,{FIRST},1\n{TUESDAY},{FIRST},1\n", "usage.csv:3: absolute and relative times"),
    "no pods": ("time,pod,memory\n", "usage.csv: no samples"),
    "nothing that matches": ("time,pod,memory\n0,dns-1,1Mi\n", "none of the recorded pods"),
    "wrong unit": (f"time,pod,memory\n{TUESDAY},{FIRST},1\n{TUESDAY * 40},{FIRST},1\n", "span 2,2"),
    "a metric": (matrix((labels("up"), [(TUESDAY, "1")])), "usage.csv: result[0]: unknown metric up"),
    "no pod": (matrix(({"__name__": MEMORY}, [(TUESDAY, "1")])), "the series has no pod label"),
    "a vector": ('{"status": "success", "data": {"resultType": "vector", "result": []}}', "the result is a vector"),
    "an error": ('{"status": "error", "error": "too many"}', "Prometheus returned error: too many"),
}


@pytest.mark.parametrize(("usage", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_that_says_where_and_nothing_is_written(capsys, folder, usage, message):
    code, out, err = make(capsys, usage)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert not list(folder.glob("tuesday*"))


def test_nodes_of_unknown_size_are_asked_for_and_nothing_is_overwritten(capsys):
    command = ["scenario", "from-usage", "tuesday", "-f", "web.yaml", "--usage", "usage.csv"]
    Path("usage.csv").write_text(f"time,pod,memory\n0,{FIRST},1Mi\n")
    assert main(command) == 2
    assert "the capacity of node node-0 is unknown (add its Node manifest" in capsys.readouterr().err
    node = '\n---\n{apiVersion: v1, kind: Node, metadata: {name: w}, status: {capacity: {cpu: "2", memory: 4Gi}}}\n'
    Path("web.yaml").write_text(WEB + node)
    assert main(command) == 0
    (group,) = load_scenario("tuesday.yaml").nodes
    assert (group.spec.name, group.spec.memory_bytes) == ("w", 4 << 30)
    assert main(command) == 2
    assert "tuesday.yaml: already exists" in capsys.readouterr().err


# ---- thinning ----------------------------------------------------------------------------------------------

POINTS = st.lists(st.integers(0, 1000), min_size=1, max_size=60).map(
    lambda values: [(index * 7, value) for index, value in enumerate(values)]
)


def at(points, time, *, hold):
    """Return the value of a curve through points."""
    before = max(point for point in points if point[0] <= time)
    after = next((point for point in points if point[0] > time), None)
    if hold or after is None:
        return before[1]
    return before[1] + Fraction((after[1] - before[1]) * (time - before[0]), after[0] - before[0])


@given(POINTS, st.integers(0, 200), st.booleans())
def test_what_is_left_of_samples_is_never_further_off_than_allowed(points, most_off, hold):
    kept = thinned(points, most_off, hold=hold)
    assert set(kept) <= set(points)
    assert max(abs(at(kept, time, hold=hold) - value) for time, value in points) <= most_off


def test_a_straight_line_needs_two_samples():
    assert thinned([(0, 0), (1, 5), (2, 10), (3, 15)], 0, hold=False) == [(0, 0), (3, 15)]


# ---- whatever a file holds ---------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["time", "pod", "memory", "cpu", "0", "1e99", "-1", "NaN", "1Mi", FIRST, "2026-11-17T00:00:00Z", "\0", '"', ",", ""]
)
TABLES = st.lists(st.lists(WORDS, max_size=5).map(",".join), max_size=6).map("\n".join)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=8,
)
ANSWERS = st.builds(
    lambda metric, values: json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": metric, "values": values}]}}
    ),
    st.one_of(st.just(labels(MEMORY)), st.just(labels(CPU)), st.dictionaries(WORDS, WORDS, max_size=3), VALUES),
    st.one_of(VALUES, st.lists(st.tuples(st.floats(), WORDS), max_size=4)),
)


@given(
    st.one_of(
        st.binary(max_size=60), TABLES.map(str.encode), ANSWERS.map(str.encode), VALUES.map(json.dumps).map(str.encode)
    )
)
def test_any_bytes_are_samples_or_bad_input(data):
    usage = RecordedUsage()
    try:
        usage.take("usage", data, pod="web-0")
    except InputError:
        return
    for pod in usage.pods.values():
        for _, measure, points, _ in usage.measured(pod):
            assert measure in Measure
            assert points == sorted(points)
            assert all(value >= 0 for _, value in points)
    assert set(usage.irregular) <= set(Irregular)
