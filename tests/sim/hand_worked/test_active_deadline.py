"""``activeDeadlineSeconds`` of pods, worked by hand from Kubernetes v1.36.4 pkg/kubelet/active_deadline.go.

The working stands in each test.
"""

from __future__ import annotations

import textwrap

import pytest

from podqos.cli.main import main
from podqos.model.time_units import SECOND_US
from podqos.reading.scenario_files import load_scenario
from podqos.sim.run import simulate

CONTAINER = "{name: main, image: main, resources: {requests: {memory: 100Mi}}}"


def written(tmp_path, manifest: str, workload: str, timing: str = "{}") -> str:
    """Write a scenario with one node; return its path."""
    (tmp_path / "pods.yaml").write_text(textwrap.dedent(manifest))
    (tmp_path / "scenario.yaml").write_text(f"""\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {{name: test}}
spec:
  duration: 10m
  manifests: [pods.yaml]
  timing: {timing}
  nodes: [{{name: node-a, capacity: {{cpu: 8, memory: 8Gi}}, filesystems: {{nodefs: {{capacity: 100Gi}}}}}}]
  workloads: [{workload}]
""")
    return str(tmp_path / "scenario.yaml")


def job(*pod: str) -> str:
    """Return the manifest of a Job that may fail once, with these lines in the spec of its pods."""
    lines = "\n".join(f"      {field}" for field in pod)
    return f"""\
apiVersion: batch/v1
kind: Job
metadata: {{name: work}}
spec:
  backoffLimit: 1
  template:
    spec:
      restartPolicy: Never
{lines}
      containers: [{CONTAINER}]
"""


def pod(*spec: str) -> str:
    """Return the manifest of a pod with these lines in its spec."""
    lines = "\n".join(f"  {field}" for field in spec)
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: work}}\nspec:\n{lines}\n  containers: [{CONTAINER}]\n"


def at(path: str, *kinds: str) -> list[tuple[float, str, str]]:
    """Return time, kind and pod of the entries of a run."""
    done = simulate(load_scenario(path), check=True)
    return [
        (entry.time_us / SECOND_US, entry.kind.value, (entry.pod or "").partition("/")[2])
        for entry in done.entries
        if entry.kind in kinds
    ]


def test_a_pod_of_a_job_that_is_active_for_its_deadline_counts_as_failed(tmp_path, capsys):
    # startTime 0, so 0 + 30 s: Failed at 30, stopped at once. The controller looks a second later and backs off for
    # 10 s from the end of the pod: the next one starts at 40 and fails at 70; backoffLimit 1 is exceeded at 71.
    path = written(tmp_path, job("activeDeadlineSeconds: 30"), "{workload: work, demand: {memory: 50Mi}}")
    assert at(path, "Started", "Failed", "JobFailed") == [
        (0, "Started", "work-0"),
        (30, "Failed", "work-0"),
        (40, "Started", "work-0-r1"),
        (70, "Failed", "work-0-r1"),
        (71, "JobFailed", ""),
    ]
    assert main(["simulate", path]) == 0
    out = capsys.readouterr().out
    assert "work-0 failed: active for 30 s, its activeDeadlineSeconds (DeadlineExceeded)" in out
    # Down from 30 to 40, and from 70 until the Job has failed at 71: after that, nobody wants the pod.
    assert " 11.0 s " in out.splitlines()[-1]


def test_containers_keep_their_grace_period_and_the_pod_has_failed_when_they_have_stopped(tmp_path):
    # SIGTERM at 30, SIGKILL at 30 + 5: mergePodStatus holds Failed back until then, so the back-off of 10 s counts from
    # 35 and the next pod starts at 45; its deadline is at 75, it is gone at 80, and the Job has failed at 81.
    manifest = job("activeDeadlineSeconds: 30", "terminationGracePeriodSeconds: 5")
    path = written(tmp_path, manifest, "{workload: work, demand: {memory: 50Mi}}", "{containerStop: 1m}")
    assert at(path, "Failed", "Stopped", "Started", "JobFailed") == [
        (0, "Started", "work-0"),
        (30, "Failed", "work-0"),
        (35, "Stopped", "work-0"),
        (45, "Started", "work-0-r1"),
        (75, "Failed", "work-0-r1"),
        (80, "Stopped", "work-0-r1"),
        (81, "JobFailed", ""),
    ]


def test_restarts_do_not_extend_the_deadline_and_there_are_none_after_it(tmp_path):
    # Each run lasts 10 s; an end is noticed at the next full second. The first restart is immediate, the second after
    # 10 s of back-off, counted from the end: runs 0-10, 11-21, 31-41. The 35 s of the deadline count
    # from the start of the pod: they are over during the third run, and there is no fourth, although restartPolicy is
    # Always.
    manifest = pod("activeDeadlineSeconds: 35", "restartPolicy: Always")
    path = written(tmp_path, manifest, "{workload: work, demand: {memory: 50Mi, exits: {after: 10s, code: 1}}}")
    assert at(path, "Restarted", "Failed", "Stopped") == [
        (11, "Restarted", "work"),
        (31, "Restarted", "work"),
        (35, "Failed", "work"),
        (35, "Stopped", "work"),
    ]


def test_init_containers_and_back_off_are_part_of_it(tmp_path):
    # The init container fails at 5, is restarted at 6, fails at 11 and is in back-off until 21: the pod fails at 15,
    # without any container to stop.
    init = "initContainers: [{name: prepare, image: prepare}]"
    manifest = pod("activeDeadlineSeconds: 15", "restartPolicy: Always", init)
    demand = "{workload: work, containers: {prepare: {memory: 5Mi, exits: {after: 5s, code: 1}}, main: {memory: 9Mi}}}"
    path = written(tmp_path, manifest, demand)
    assert at(path, "Restarted", "Failed", "Stopped") == [
        (6, "Restarted", "work"),
        (15, "Failed", "work"),
        (15, "Stopped", "work"),
    ]


def test_the_start_time_is_in_whole_seconds(tmp_path):
    # Bound at 2.5 s: normalizeStatus makes that 2 s, so ten seconds are over at 12, not at 12.5.
    path = written(
        tmp_path, pod("activeDeadlineSeconds: 10"), "{workload: work, arrives: 2.5s, demand: {memory: 50Mi}}"
    )
    assert [time for time, _, _ in at(path, "Failed")] == [12]


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (1, "Failed")])
def test_a_pod_that_ends_before_it_ends_as_it_would_without(tmp_path, code, phase):
    # It exits at 28 s, which the kubelet notices at 29; at 30 nothing is left to stop.
    manifest = pod("activeDeadlineSeconds: 30", "restartPolicy: Never")
    path = written(
        tmp_path, manifest, f"{{workload: work, demand: {{memory: 50Mi, exits: {{after: 28s, code: {code}}}}}}}"
    )
    assert at(path, "Succeeded", "Failed") == [(29, phase, "work")]
