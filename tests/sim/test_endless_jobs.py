"""A Job whose pods do not say when they end runs for ever, which is said."""

from __future__ import annotations

import pytest

from podqos.cli.main import main

SCENARIO = """\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {{name: test}}
spec:
  duration: 1h
  start: 2026-11-18T10:00:00Z
  manifests: [pods.yaml]
  nodes: [{{name: node-a, capacity: {{cpu: 8, memory: 8Gi}}, filesystems: {{nodefs: {{capacity: 100Gi}}}}}}]
  workloads: [{{workload: work, {workload}}}]
"""
TEMPLATE = (
    "{spec: {restartPolicy: Never, containers: "
    "[{name: main, image: main, resources: {requests: {memory: 1Mi}}}, {name: log, image: log}]}}"
)
JOB = f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: work}}\nspec: {{template: {TEMPLATE}}}\n"
CRON_JOB = f"""\
apiVersion: batch/v1
kind: CronJob
metadata: {{name: work}}
spec: {{schedule: "30 * * * *", timeZone: Etc/UTC, jobTemplate: {{spec: {{template: {TEMPLATE}}}}}}}
"""
SAID = "assumed: end of the Job work: never (exits or work of the demand)"
BOTH = "containers: {main: {memory: 9Mi, exits: {after: 5s}}, log: {work: 1 cpu-s, cpu: 1}}"
ONE = "containers: {main: {memory: 9Mi, exits: {after: 5s}}, log: {memory: 9Mi}}"
NONE = "containers: {main: {memory: 9Mi}}"


@pytest.mark.parametrize(
    ("manifest", "workload", "is_said"),
    [
        (JOB, NONE, True),
        (JOB, ONE, True),
        (JOB, BOTH, False),
        (JOB, f"recreate: false, {NONE}", False),
        (CRON_JOB, NONE, True),
        (CRON_JOB.replace("30 *", "30 22"), NONE, False),
    ],
    ids=["no end", "one of two ends", "both end", "no controller", "CronJob", "CronJob that is not due"],
)
def test_a_job_that_never_ends_is_assumed_to_run_for_ever(tmp_path, capsys, manifest, workload, is_said):
    (tmp_path / "pods.yaml").write_text(manifest)
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO.format(workload=workload))
    assert main(["simulate", str(path)]) == 0
    output = capsys.readouterr()
    assert (SAID in output.out + output.err) is is_said, output
