"""``podqos simulate``: which pods count as unaffected, how long they were down, and how a kill is accounted for."""

from __future__ import annotations

import csv
import io
import json

import pytest

from podqos.cli.main import main

LIMITED = "default/runner-limited"
PODS = """
{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {spec}}}
"""
SCENARIO = """
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {{name: trial}}
spec:
  description: Nothing at all happens.
  duration: 60s
  manifests: [pods.yaml]
  nodes:
    - name: node
      capacity: {{cpu: 4, memory: 16Gi}}
      system: {{memory: 2Gi}}
      kubelet: {{enforceNodeAllocatable: [none]}}
  workloads:
    - {{workload: steady, demand: {{memory: 10Mi}}}}
    - {{workload: tried, {demand}}}
"""
APP = "{name: app, image: x, resources: {requests: {memory: 64Mi}}}"
TWO = "{name: one, image: x, resources: {limits: {cpu: 100m}}}, {name: two, image: x, resources: {limits: {cpu: 100m}}}"


def simulate(tmp_path, capsys, spec, demand, *options):
    """Run a pod beside one that nothing happens to."""
    pods = [PODS.format(name="steady", spec=f"{{containers: [{APP}]}}"), PODS.format(name="tried", spec=spec)]
    (tmp_path / "pods.yaml").write_text("---".join(pods))
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO.format(demand=demand))
    assert main(["simulate", str(path), "--color", "never", *options]) == 0
    return capsys.readouterr().out


def tried(name, *case):
    """Return a case, by what happens to the pod."""
    return pytest.param(case, id=name)


CASES = [
    tried(
        "exits 1 at once, again after each restart",
        f"{{containers: [{APP}]}}",
        "demand: {memory: 10Mi, exits: {after: 0s, code: 1}}",
        ("interrupted", 60.0, 0.0),
        "1 of 2 pods unaffected, 1 interrupted.",
    ),
    tried(
        "fails for good",
        f"{{restartPolicy: Never, containers: [{APP}]}}",
        "demand: {memory: 10Mi, exits: {after: 10s, code: 1}}",
        ("interrupted", 50.0, 0.0),
        "1 of 2 pods unaffected, 1 interrupted.",
    ),
    tried(
        "ends well",
        f"{{restartPolicy: OnFailure, containers: [{APP}]}}",
        "demand: {memory: 10Mi, exits: {after: 10s, code: 0}}",
        ("untouched", 0.0, 0.0),
        "2 of 2 pods unaffected.",
    ),
    tried(
        "pending to the end",
        "{containers: [{name: app, image: x, resources: {requests: {memory: 64Gi}}}]}",
        "demand: {memory: 10Mi}",
        ("never_ran", 60.0, 0.0),
        "1 of 2 pods unaffected, 1 never ran.",
    ),
    tried(
        "does not get past its init container",
        f"{{initContainers: [{{name: setup, image: x}}], containers: [{APP}]}}",
        "containers: {setup: {exits: {after: 1s, code: 3}}}",
        ("never_ran", 59.0, 0.0),
        "1 of 2 pods unaffected, 1 never ran.",
    ),
    tried(
        "two containers short of CPU for the same 5 s",
        f"{{containers: [{TWO}]}}",
        "containers: {one: {cpu: 90m + 100m at 5s - 100m at 10s}, two: {cpu: 90m + 100m at 5s - 100m at 10s}}",
        ("throttled", 0.0, 5.0),
        "1 of 2 pods unaffected; 1 short of CPU (worst: default/tried, down to 53 % of the CPU it wanted).",
    ),
]


@pytest.mark.parametrize("case", CASES)
def test_a_pod_is_unaffected_only_if_it_ran_all_the_time_as_it_wanted(tmp_path, capsys, case):
    spec, demand, outcome, end = case
    text = simulate(tmp_path, capsys, spec, demand)
    fatal = "No OOM kills, no evictions."
    assert text.splitlines()[1] in {f"{end} {fatal}", f"{fatal[:-1]}; {end}"}
    rows = csv.DictReader(io.StringIO(simulate(tmp_path, capsys, spec, demand, "-o", "csv")))
    row = next(row for row in rows if row["workload"] == "default/tried")
    name, down, short = outcome
    outcomes = ("untouched", "interrupted", "never_ran", "waited", "throttled", "refused")
    assert [each for each in outcomes if row[each] != "0"] == [name]
    assert (float(row["downtime_seconds"]), float(row["cpu_short_seconds"])) == (down, pytest.approx(short))
    summary = json.loads(simulate(tmp_path, capsys, spec, demand, "-o", "json"))["summary"]
    assert summary["pods"] == 2


def test_a_container_that_asks_for_more_than_its_limit_frees_only_what_it_had(tmp_path, capsys):
    limited = "{containers: [{name: app, image: x, resources: {limits: {memory: 128Mi}}}]}"
    text = simulate(tmp_path, capsys, limited, "demand: {memory: 100Mi + 1436Mi at 5s}")
    used = "The kernel chose a process of app using 128Mi"
    at = next(index for index, line in enumerate(text.splitlines()) if used in line)
    following = [line.strip() for line in text.splitlines()[at + 1 : at + 3]]
    assert following == ["This freed 128Mi.", "It wanted 1408Mi more and never got it."]


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        (["--what-if", "phase=2s"], ["phase=2s"]),
        (["--seed", "7"], ["spec.seed=7"]),
        (["--until", "20s"], ["spec.duration=20s"]),
        (["--seed", "0", "--until", "30s"], []),
    ],
    ids=["what-if", "seed", "until", "nothing that differs"],
)
def test_a_description_is_printed_only_of_the_scenario_as_it_was_written(capsys, options, changes):
    assert main(["simulate", "race", *options, "-o", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["changes"] == changes
    written = "Memory runs out between two checks of the kubelet"
    assert (written in report["description"]) == (not changes)
    assert main(["simulate", "race", *options, "--color", "never"]) == 0
    text = capsys.readouterr().out
    assert (written in text) == (not changes)
    assert all(f"With {each}. " in text for each in changes)


def test_a_description_given_with_the_changes_is_printed(capsys):
    own = ["--what-if", "spec.description=Later.", "--what-if", "phase=2s"]
    assert main(["simulate", "race", *own, "--color", "never"]) == 0
    assert capsys.readouterr().out.splitlines()[2] == "Later."


def test_a_pod_that_is_refused_processes_is_not_unaffected(capsys):
    assert main(["simulate", "pid-exhaustion"]) == 0
    out = capsys.readouterr().out
    assert "2 of 4 pods unaffected, 1 interrupted, 1 denied processes or disk space." in out.splitlines()[1]
    heading, row = (
        next(line for line in out.splitlines() if line.startswith(start)) for start in ("WORKLOAD", LIMITED)
    )
    assert heading.split()[-1] == "DENIED"
    assert (row.split()[3], row.split()[-1]) == ("0/1", "1")


def test_a_pod_that_is_refused_processes_survives_a_sweep(capsys):
    assert main(["simulate", "pid-exhaustion", "--vary", "phase=0s", "-o", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["combinations"]
    limited = next(each for each in found["workloads"] if each["workload"] == LIMITED)
    assert limited["survived"] == 1
