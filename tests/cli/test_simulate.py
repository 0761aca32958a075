"""``podqos simulate`` as a user meets it."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from podqos.agent.journal import decode, encode
from podqos.cli.main import main
from podqos.manifest.encoding import SLOT
from podqos.reading.scenario_files import load_scenario
from podqos.runs.view import RunView
from podqos.sim.run import simulate

ROOT = Path(__file__).parents[2]

POD = """
apiVersion: v1
kind: Pod
metadata: {name: leak}
spec: {containers: [{name: main, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: calm}
spec: {containers: [{name: main, image: i, resources: {limits: {cpu: 1, memory: 256Mi}}}]}
"""
SCENARIO = """
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: leaking}
spec:
  duration: 60s
  manifests: [pods.yaml]
  nodes: [{name: worker, count: COUNT, capacity: {cpu: 2, memory: 1Gi}}]
  workloads:
    - workload: leak
      nodes: [worker-NODE]
      demand: {memory: {points: {0s: 1Mi, 30s: 2Gi}}}
    - workload: calm
      nodes: [worker-NODE]
      demand: {memory: 100Mi}
"""


def run(capsys, *arguments: object) -> tuple[int, str, str]:
    """Run the command and return exit code, standard output and standard error."""
    code = main(["simulate", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def many(tmp_path):
    """Write a scenario of twenty nodes, on the last but two of which a pod leaks; return its path."""
    (tmp_path / "pods.yaml").write_text(POD)
    path = tmp_path / "many.yaml"
    path.write_text(SCENARIO.replace("COUNT", "20").replace("NODE", "17"))
    return path


# ---- what is printed -------------------------------------------------------------------------------------------------


def test_the_race_in_the_terminal_names_who_was_killed_by_whom_and_who_came_through(capsys):
    code, out, err = run(capsys, "race")
    assert code == 0
    assert not err
    assert "◆ log-collector-worker-1 (collector) OOM-killed (BestEffort)  OOM kill order #1" in out
    assert "◆ analytics-pipeline-0 OOM-killed (Burstable)" in out
    assert "2 OOM kills, no evictions; 7 of 9 pods unaffected." in out


def test_jsonl_is_the_journal_byte_for_byte(capsysbinary):
    assert main(["simulate", "race", "-o", "jsonl"]) == 0
    printed = capsysbinary.readouterr().out
    assert printed == encode(simulate(load_scenario("race")).entries)
    assert list(decode(printed))


def test_json_is_the_documented_value(capsys):
    code, out, _ = run(capsys, "race", "-o", "json")
    view = msgspec.json.decode(out, type=RunView)
    assert code == 0
    assert [kill.pod for kill in view.kills] == ["monitoring/log-collector-worker-1", "batch/analytics-pipeline-0"]
    assert view.kind == "SimulationReport"


def test_csv_has_a_line_per_workload(capsys):
    _, out, _ = run(capsys, "race", "-o", "csv")
    rows = {row["workload"]: row for row in csv.DictReader(io.StringIO(out))}
    assert rows["monitoring/log-collector"]["oom_kills"] == "1"
    assert rows["production/article-service"]["downtime_seconds"] == "0.0"


def test_a_run_can_be_cut_short_and_its_seed_changed(capsys):
    _, out, _ = run(capsys, "race", "--until", "1500ms", "--seed", "7")
    assert "race  1.500 s · seed 7" in out
    assert "1 OOM kill," in out


# ---- many nodes ------------------------------------------------------------------------------------------------------


def test_of_many_nodes_those_are_listed_on_which_anybody_was_killed_and_one_is_shown_on_request(capsys, many):
    _, out, _ = run(capsys, many)
    assert out.endswith("\nworker-17: 4 OOM kills\n20 nodes; --node NAME shows one\n")
    _, out, _ = run(capsys, many, "--node", "worker-17")
    assert "\nworker-17 " in out
    assert "1 of 20 nodes are shown above; --node NAME shows another" in out


def test_another_node_is_shown_on_request(capsys, many):
    _, out, _ = run(capsys, many, "--node", "worker-3", "-o", "json")
    assert [node.name for node in msgspec.json.decode(out, type=RunView).nodes] == ["worker-3"]


# ---- files -----------------------------------------------------------------------------------------------------------


def test_a_picture_is_written_as_svg(capsys, tmp_path):
    svg = tmp_path / "race.svg"
    code, _, err = run(capsys, "race", "--svg", svg)
    assert code == 0
    assert ET.fromstring(svg.read_bytes()).tag.endswith("svg")  # noqa: S314 - our own
    assert f"wrote {svg}" in err


def test_a_page_is_written_with_the_run_in_it(capsys, tmp_path, monkeypatch):
    (tmp_path / "viewer.html").write_text(f"<html>{SLOT}</html>")
    monkeypatch.setattr("podqos.reading.built_page.files", lambda _: tmp_path)
    page = tmp_path / "race.html"
    assert run(capsys, "race", "--html", page)[0] == 0
    assert '"name":"race"' in page.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["race.html", "viewer.html"]


def test_without_a_built_page_one_line_says_how_to_build_it(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("podqos.reading.built_page.files", lambda _: tmp_path)
    code, out, err = run(capsys, "race", "--html", tmp_path / "race.html")
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert "install Node.js 20 or newer" in err


def test_a_file_that_cannot_be_written_is_the_machines_fault(capsys, tmp_path):
    code, _, err = run(capsys, "race", "--svg", tmp_path / "nowhere" / "race.svg")
    assert (code, err.count("\n")) == (3, 1)
    assert "No such file or directory" in err


# ---- what is wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "nothing to simulate"),
        (["no-such-scenario"], "no-such-scenario"),
        (["race", "--node", "nowhere"], "no such node: 'nowhere' (such as worker-1)"),
        (["race", "--until", "soon"], "--until"),
        (["race", "--until", "0s"], "--until"),
    ],
    ids=["nothing", "scenario", "node", "until", "zero"],
)
def test_bad_input_is_one_message_and_exit_code_2(capsys, arguments, text):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert text in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_long_run_tells_its_progress_and_interrupted_leaves_no_files_and_ends_with_130(tmp_path, many):
    many.write_text(many.read_text().replace("duration: 60s", "duration: 500000h").replace("count: 20", "count: 900"))
    arguments = [sys.executable, "-m", "podqos", "simulate", str(many), "--svg", str(tmp_path / "out" / "run.svg")]
    (tmp_path / "out").mkdir()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=os.environ)
    assert "simulating: " in process.stderr.readline(), "a log hears of a long run every few seconds"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.slow
def test_everything_that_is_shown_is_the_same_under_another_hash_seed():
    arguments = [sys.executable, "-m", "podqos", "simulate", "slow-leak", "-o", "json"]
    shown = {
        subprocess.run(arguments, capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "4242")
    }
    assert len(shown) == 1


# ---- what would have saved a pod -------------------------------------------------------------------------------------


def test_what_spares_the_pod_of_disk_pressure_for_a_moment_only_is_not_said_to_save_it(capsys):
    """It requests 8Gi and uses 51Gi; web is 1Gi below its request. With more, web goes, and 11 s later it goes."""
    _, out, _ = run(capsys, "disk-pressure", "--color", "never")
    (first,) = [line for line in out.splitlines() if "report-tidy-0 evicted by the kubelet" in line]
    assert first.endswith("(Burstable)  eviction order #1")
    assert "the first of 2 in the eviction order" in out
    (saved,) = [line.strip() for line in out.splitlines() if "saved by" in line]
    assert saved == (
        "saved by: use 45057Mi less disk → 2nd of 2 in the eviction order; default/web-tidy-0 would have been first"
    )
    _, out, _ = run(capsys, "disk-pressure", "-o", "json")
    (kill,) = msgspec.json.decode(out, type=RunView).kills
    assert not kill.savings[0].saves
    assert kill.savings[0].change == "Request 53249Mi of ephemeral-storage"
    assert kill.savings[0].effect.endswith("but it still dies, 2 min 11 s into the run")


def test_disk_pressure_again_with_what_spares_the_pod_evicts_the_other_and_then_the_pod(capsys, tmp_path):
    shipped = ROOT / "scenarios"
    scenario = (shipped / "disk-pressure.yaml").read_text()
    (tmp_path / "disk-pressure").mkdir()
    for path in (shipped / "disk-pressure").iterdir():
        text = path.read_text().replace("ephemeral-storage: 8Gi", "ephemeral-storage: 53249Mi")
        (tmp_path / "disk-pressure" / path.name).write_text(text)
    (tmp_path / "disk-pressure.yaml").write_text(scenario)
    _, out, _ = run(capsys, tmp_path / "disk-pressure.yaml", "-o", "json")
    view = msgspec.json.decode(out, type=RunView)
    assert [(kill.pod, kill.time_us) for kill in view.kills[:2]] == [
        ("default/web-tidy-0", 120_000_000),
        ("default/report-tidy-0", 131_000_000),
    ]


def test_the_remedies_of_the_accident_hold_under_the_same_demand(capsys):
    """Each line of YAML is written into the manifest, and the same afternoon run again."""
    _, out, _ = run(capsys, "accidental-burstable", "-o", "json")
    (kill,) = msgspec.json.decode(out, type=RunView).kills
    saving = [each for each in kill.savings if each.saves and each.edits]
    assert [each.change for each in saving] == ["Request 769Mi of memory for envoy-sidecar"]
    value = saving[0].edits[0].split()[1]
    changed = f"requests.memory@production/article-service:envoy-sidecar={value}"
    _, out, _ = run(capsys, "accidental-burstable", "--what-if", changed, "-o", "json")
    (instead,) = msgspec.json.decode(out, type=RunView).kills
    assert (instead.pod,) == saving[0].instead == ("batch/analytics-job-2",)


@pytest.mark.parametrize("name", ["oom-loop", "slow-leak", "soft-eviction"])
def test_what_does_not_save_a_pod_is_never_printed_as_if_it_did(capsys, name):
    """A request without room, or a limit that the pod was over already."""
    _, out, _ = run(capsys, name, "--color", "never")
    assert not [
        line for line in out.splitlines() if " saved by: " in line and " but " in line and "not saved" not in line
    ]
    _, out, _ = run(capsys, name, "-o", "json")
    kills = msgspec.json.decode(out, type=RunView).kills
    assert [saving.effect for kill in kills for saving in kill.savings if not saving.saves and " but " in saving.effect]


def test_no_pod_is_said_to_be_saved_where_only_cpu_is_short(capsys):
    _, out, _ = run(capsys, "cpu-burst", "--color", "never")
    assert "saved by" not in out
