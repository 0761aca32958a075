"""Jobs, worked by hand from Kubernetes v1.36.4 pkg/controller/job; the working stands in each test.

A container that exits at t is noticed by the kubelet at the next full second (``plegPeriod``), and the controller looks
at the Job a second after a pod has changed (SyncJobBatchPeriod).
"""

from __future__ import annotations

import textwrap

import pytest

from podqos.cli.main import main
from podqos.model.time_units import SECOND_US
from podqos.reading.scenario_files import load_scenario, read_scenario
from podqos.sim.run import simulate
from podqos.text.journal import line

NODE = "{name: node-a, capacity: {cpu: 8, memory: 8Gi}, filesystems: {nodefs: {capacity: 100Gi}}}"


def written(tmp_path, manifest: str, workload: str, *, duration: str = "1h", nodes: str = NODE, rest: str = "") -> str:
    """Write a scenario and its manifest; return its path."""
    (tmp_path / "pods.yaml").write_text(textwrap.dedent(manifest))
    spec = f"""\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {{name: test}}
spec:
  duration: {duration}
  manifests: [pods.yaml]
  nodes: [{nodes}]
{textwrap.indent(textwrap.dedent(rest), "  ")}
  workloads:
{textwrap.indent(textwrap.dedent(workload), "    ")}
"""
    (tmp_path / "scenario.yaml").write_text(spec)
    return str(tmp_path / "scenario.yaml")


def job(*spec: str, restart: str = "Never", name: str = "work", pod: str = "") -> str:
    """Return the manifest of a Job with these lines in its spec."""
    lines = "\n".join(f"  {field}" for field in spec)
    return f"""\
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
{lines}
  template:
    spec:
      restartPolicy: {restart}
{pod}
      containers: [{{name: main, image: main, resources: {{requests: {{memory: 100Mi}}}}}}]
"""


def exiting(after: str, code: int = 0, memory: str = "50Mi") -> str:
    """Return a workload whose container exits."""
    return f"- workload: work\n  demand: {{memory: {memory}, exits: {{after: {after}, code: {code}}}}}"


def ran(path: str):
    """Return the run of a scenario, with all checkers."""
    return simulate(load_scenario(path), check=True)


def at(done, *kinds: str) -> list[tuple[float, str, str]]:
    """Return time, kind and pod of entries; of entries about Jobs the reason instead of the pod."""
    return [
        (
            entry.time_us / SECOND_US,
            entry.kind.value,
            entry.pod.partition("/")[2] if entry.pod else entry.because.reason,
        )
        for entry in done.entries
        if entry.kind in kinds
    ]


def ending(done):
    """Return how the Job ended."""
    (entry,) = (entry for entry in done.entries if entry.kind in {"JobFailed", "JobComplete"})
    return entry.because


# ---- backoffLimit and the back-off ---------------------------------------------------------------------------------


def test_failed_pods_are_replaced_after_10_20_40_seconds_and_the_limit_ends_the_job(tmp_path):
    """With backoffLimit 3, every pod exits with 1 after 5 s (backoff_utils.go: getRemainingTimeForFailuresCount).

    0: ends at 5, back-off 10 s from then: 15. r1: 15-20, 20 s: 40. r2: 40-45, 40 s: 85. r3: 85-90, noticed at 91,
    looked at 92: 4 failures > 3.
    """
    done = ran(written(tmp_path, job("backoffLimit: 3"), exiting("5s", 1)))
    assert at(done, "Replaced", "JobFailed") == [
        (15, "Replaced", "work-0-r1"),
        (40, "Replaced", "work-0-r2"),
        (85, "Replaced", "work-0-r3"),
        (92, "JobFailed", "BackoffLimitExceeded"),
    ]
    assert (ending(done).failed, ending(done).succeeded, ending(done).backoff_limit) == (4, 0, 3)
    waited = [entry.because.back_off_seconds for entry in done.entries if entry.kind == "Replaced"]
    assert waited == [10, 20, 40]


def test_the_back_off_is_ten_minutes_at_most_as_in_the_code(tmp_path):
    """After 1 … 8 failures: 10, 20, 40, 80, 160, 320, 600, 600 s (MaxJobPodFailureBackOff), each from the exit on."""
    done = ran(written(tmp_path, job("backoffLimit: 8"), exiting("1s", 1)))
    waited = [entry.because.back_off_seconds for entry in done.entries if entry.kind == "Replaced"]
    assert waited == [10, 20, 40, 80, 160, 320, 600, 600]


def test_with_restart_policy_never_and_a_limit_of_0_the_first_failure_ends_the_job(tmp_path):
    """Exit at 5 s, noticed at 6 s, looked at 7 s: 1 > 0."""
    done = ran(written(tmp_path, job("backoffLimit: 0"), exiting("5s", 1)))
    assert at(done, "Replaced", "JobFailed") == [(7, "JobFailed", "BackoffLimitExceeded")]


def test_with_on_failure_restarts_of_containers_count_and_the_running_pod_is_deleted(tmp_path):
    """With backoffLimit 2, exit with 1 after 5 s (pastBackoffLimitOnFailure: restarts >= limit while the pod runs).

    Exit at 5, noticed and restarted at 6 (restart 1). Exit at 11, noticed at 12, back-off 10 s from the exit: 21
    (restart 2). Looked at 22: 2 >= 2, and the third run ends by deletion. Nothing terminates at 23: Failed.
    """
    done = ran(written(tmp_path, job("backoffLimit: 2", restart="OnFailure"), exiting("5s", 1)))
    assert [time for time, _, _ in at(done, "Restarted")] == [6, 21]
    assert at(done, "Deleted", "JobFailed") == [
        (22, "Deleted", "work-0"),
        (23, "JobFailed", "BackoffLimitExceeded"),
    ]
    assert (ending(done).restarts, ending(done).failed) == (2, 1)


def test_with_on_failure_and_a_limit_of_0_one_restart_is_too_many(tmp_path):
    """Restarted at 6 s; 7 s: 1 > 0, where 0 >= 0 would have ended it at once."""
    done = ran(written(tmp_path, job("backoffLimit: 0", restart="OnFailure"), exiting("5s", 1)))
    assert at(done, "Restarted", "Deleted") == [(6, "Restarted", "work-0"), (7, "Deleted", "work-0")]


def test_the_default_limit_is_six(tmp_path):
    """SetDefaults_Job: the seventh failure ends it."""
    done = ran(written(tmp_path, job("parallelism: 1", "completions: 1"), exiting("1s", 1)))
    assert (ending(done).failed, ending(done).backoff_limit) == (7, 6)


# ---- completions and parallelism -----------------------------------------------------------------------------------


def test_a_job_runs_parallelism_pods_at_a_time_until_its_completions_are_reached(tmp_path):
    """5 completions, 2 at a time, 10 s each.

    0 and 1 end at 10, noticed at 11 (the next relist), looked at 12: 2 and 3 start. End at 22, 23, 24: 5 - 4 = 1
    left, 4 starts. Ends at 34, noticed 35, looked at 36: complete.
    """
    done = ran(written(tmp_path, job("parallelism: 2", "completions: 5"), exiting("10s")))
    assert at(done, "Started", "JobComplete") == [
        (0, "Started", "work-0"),
        (0, "Started", "work-1"),
        (12, "Started", "work-2"),
        (12, "Started", "work-3"),
        (24, "Started", "work-4"),
        (36, "JobComplete", "CompletionsReached"),
    ]
    assert ending(done).succeeded == 5
    assert not at(done, "Replaced", "Deleted")


def test_without_completions_one_success_is_enough_and_no_pod_follows_it(tmp_path):
    """A work queue: parallelism 2, no completions. Pod 0 succeeds at 10, pod 1 fails at 30.

    12: succeeded 1, pod 1 goes on. It fails at 30, noticed 31: wanted = active = 0 (manageJob), so nothing is created,
    and 32: complete.
    """
    several = """\
    - workload: work
      perReplica:
        - demand: {memory: 50Mi, exits: {after: 10s}}
        - demand: {memory: 50Mi, exits: {after: 30s, code: 1}}
    """
    done = ran(written(tmp_path, job("parallelism: 2"), several))
    assert at(done, "Replaced", "JobComplete") == [(32, "JobComplete", "CompletionsReached")]
    assert (ending(done).succeeded, ending(done).failed) == (1, 1)


def test_a_success_forgets_the_failures_before_it(tmp_path):
    """Two at a time of three; 0 fails at 5 s, 1 succeeds at 8 s (newBackoffRecord).

    0: noticed 6, looked at 7: back-off until 15. 1: noticed 9, looked at 10: the success at 8 is after the failure at
    5, so there is no back-off left, and 3 - 1 = 2 are wanted: what replaces 0, and pod 2, start at 10.
    """
    several = """\
    - workload: work
      perReplica:
        - demand: {memory: 50Mi, exits: {after: 5s, code: 1}}
        - demand: {memory: 50Mi, exits: {after: 8s}}
        - demand: {memory: 50Mi, exits: {after: 8s}}
    """
    done = ran(written(tmp_path, job("parallelism: 2", "completions: 3"), several, duration="12s"))
    assert [entry for entry in at(done, "Started") if entry[0]] == [
        (10, "Started", "work-0-r1"),
        (10, "Started", "work-2"),
    ]
    assert [entry.because.back_off_seconds for entry in done.entries if entry.kind == "Replaced"] == [0]


def test_a_pod_that_has_succeeded_frees_its_requests(tmp_path):
    """Two pods of 5Gi on 8Gi: the second waits until the first has succeeded (10 s, noticed at 11)."""
    manifest = job("parallelism: 2", "completions: 2").replace("100Mi", "5Gi")
    done = ran(written(tmp_path, manifest, exiting("10s")))
    assert [(time, pod) for time, _, pod in at(done, "Started")] == [(0, "work-0"), (11, "work-1")]


# ---- deadlines, suspension, clean-up -------------------------------------------------------------------------------


def test_the_active_deadline_ends_a_job_to_the_second_and_deletes_its_pods(tmp_path):
    """With activeDeadlineSeconds 60, at 60 s both pods are deleted; they stop at once, and 61 s: Failed.

    Pods that are stopped because the Job fails count as failed (trackJobStatusAndRemoveFinalizers): 2.
    """
    spec = ("activeDeadlineSeconds: 60", "parallelism: 2", "completions: 2")
    done = ran(written(tmp_path, job(*spec), "- workload: work\n  demand: {memory: 50Mi}"))
    assert at(done, "Deleted", "JobFailed") == [
        (60, "Deleted", "work-0"),
        (60, "Deleted", "work-1"),
        (61, "JobFailed", "DeadlineExceeded"),
    ]
    assert ending(done).failed == 2
    words = [line(entry) for entry in done.entries if entry.kind in {"Deleted", "JobFailed"}]
    assert words[0] == "work-0 deleted: Job work has failed (DeadlineExceeded)"
    assert words[2] == "Job work failed: DeadlineExceeded, active for 60 s, 0 of 2 completions"


def test_a_job_is_failed_only_when_its_pods_have_stopped(tmp_path):
    """The same with containers that take 20 s to stop: deleted at 60, gone at 80, Failed at 81 (enactJobFinished)."""
    path = written(
        tmp_path,
        job("activeDeadlineSeconds: 60"),
        "- workload: work\n  demand: {memory: 50Mi}",
        rest="timing: {containerStop: 20s}",
    )
    done = ran(path)
    assert at(done, "Deleted", "Stopped", "JobFailed") == [
        (60, "Deleted", "work-0"),
        (80, "Stopped", "work-0"),
        (81, "JobFailed", "DeadlineExceeded"),
    ]


def test_the_deadline_applies_while_a_job_backs_off(tmp_path):
    """Failure at 5, the replacement would come at 15. The deadline of 12 s comes first; nothing has to stop."""
    done = ran(written(tmp_path, job("activeDeadlineSeconds: 12"), exiting("5s", 1)))
    assert at(done, "Replaced", "Deleted", "JobFailed") == [(12, "JobFailed", "DeadlineExceeded")]


def test_a_suspended_job_has_no_pods(tmp_path):
    done = ran(written(tmp_path, job("suspend: true"), exiting("5s")))
    assert not done.entries


SMALL = (
    "{name: node-a, capacity: {cpu: 8, memory: 4Gi}, filesystems: {nodefs: {capacity: 100Gi}},"
    " kubelet: {evictionHard: {memory.available: 2Gi}}}"
)


def test_an_evicted_pod_counts_as_failed(tmp_path):
    """From 5 s on 2.5Gi of 4Gi leave less than 2Gi: evicted at the check at 10 s; 1 > 0 failures end the Job at 11."""
    demand = "- workload: work\n  demand: {memory: {steps: {0s: 50Mi, 5s: 2560Mi}}}"
    done = ran(written(tmp_path, job("backoffLimit: 0"), demand, nodes=SMALL, duration="22s"))
    assert at(done, "Evicted") == [(10, "Evicted", "work-0")]
    assert at(done, "Replaced", "JobFailed") == [(11, "JobFailed", "BackoffLimitExceeded")]


def test_policies_of_failure_and_success_are_ignored_and_that_is_said(tmp_path, capsys):
    spec = ("podFailurePolicy: {rules: [{action: Count}]}", "completions: 2", "completionMode: Indexed")
    path = written(tmp_path, job(*spec), exiting("5s"))
    assert main(["simulate", path]) == 0
    said = capsys.readouterr()
    assert "spec.podFailurePolicy" in said.out + said.err
    assert "every failed pod counts" in said.out + said.err


PER_INDEX = ("completionMode: Indexed", "parallelism: 3", "completions: 3", "backoffLimitPerIndex: 1")
ONE_FAILS = """\
- workload: work
  perReplica:
    - demand: {memory: 50Mi, exits: {after: 5s}}
    - demand: {memory: 50Mi, exits: {after: 5s, code: 1}}
    - demand: {memory: 50Mi, exits: {after: 5s}}
"""


# ---- pods that others delete ---------------------------------------------------------------------------------------

PREEMPTOR = """\
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: v1
kind: Pod
metadata: {name: urgent}
spec:
  priorityClassName: high
  containers: [{name: main, image: main, resources: {requests: {memory: 6Gi}}}]
"""


def test_a_preempted_pod_is_replaced_when_it_is_deleted(tmp_path):
    """Deleted at 50 s for a pod that arrives then; its container takes 20 s to stop, until 70 s.

    It counts as failed at 50 (isPodFailed), and no container has finished, so the back-off counts from the deletion on
    (getFinishedTime): back at 60.
    """
    manifest = job().replace("100Mi", "3Gi") + PREEMPTOR
    workloads = "- workload: work\n  demand: {memory: 50Mi}\n- {workload: urgent, arrives: 50s}"
    rest = "timing: {containerStop: 20s}"
    done = ran(written(tmp_path, manifest, workloads, rest=rest, duration="90s"))
    assert at(done, "Preempted") == [(50, "Preempted", "work-0")]
    assert at(done, "Replaced") == [(60, "Replaced", "work-0-r1")]


def test_a_pod_on_a_lost_node_counts_as_failed_when_the_control_plane_gives_it_up(tmp_path):
    """Lost at 10 s, noticed 50 s later, tolerated for 300 s: deleted at 360, back 10 s later on the other node."""
    second = f"{NODE}, {NODE.replace('node-a', 'node-b')}"
    rest = "events: [{at: 10s, nodeLost: node-a}]"
    one = "- workload: work\n  nodes: [node-a]\n  demand: {memory: 50Mi}"
    done = ran(written(tmp_path, job(), one, nodes=second, rest=rest))
    assert at(done, "Replaced") == [(370, "Replaced", "work-0-r1")]


# ---- around it -----------------------------------------------------------------------------------------------------


def test_recreate_false_still_means_that_no_pod_is_replaced(tmp_path):
    done = ran(written(tmp_path, job(), exiting("5s", 1) + "\n  recreate: false"))
    assert at(done, "Failed", "Replaced", "JobFailed") == [(6, "Failed", "work-0")]


def test_replicas_of_the_scenario_are_the_parallelism_of_a_job(tmp_path):
    done = ran(written(tmp_path, job(), exiting("5s") + "\n  replicas: 3"))
    assert len(at(done, "Succeeded")) == 3
    assert (ending(done).completions, ending(done).succeeded) == (3, 3)


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        (("backoffLimit: -1",), "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"),
        (
            ("completionMode: Indexed", "parallelism: 2"),
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (("completionMode: indexed",), "spec.completionMode: must be one of NonIndexed, Indexed"),
    ],
)
def test_what_the_api_server_rejects_is_an_error_with_its_place(tmp_path, capsys, spec, what):
    path = written(tmp_path, job(*spec), exiting("5s"))
    assert main(["simulate", path]) == 2
    assert what in capsys.readouterr().err


def test_a_job_that_never_restarts_containers_and_has_no_restart_policy_is_warned_about(tmp_path):
    problems = read_scenario(written(tmp_path, job(restart="Always"), exiting("5s"))).problems
    assert [problem.what for problem in problems] == ['Required value: valid values: "OnFailure", "Never"']


# ---- init containers -----------------------------------------------------------------------------------------------

WITH_INIT = "      initContainers: [{name: setup, image: setup, resources: {limits: {memory: 300Mi}}}]"


@pytest.mark.parametrize(
    ("demand", "started"),
    [("{memory: 200Mi}", 0), ("{memory: 200Mi over 30s}", 31), ("{memory: 200Mi, exits: {after: 12s}}", 13)],
)
def test_an_init_container_runs_until_its_demand_no_longer_changes_unless_it_says_when_it_ends(
    tmp_path, demand, started
):
    """A model: a constant demand is reached at once, a ramp at its end; the kubelet notices a second later.

    At the start of the run what ends at once has run before.
    """
    containers = f"- workload: work\n  containers: {{setup: {demand}, main: {{memory: 50Mi}}}}"
    path = written(tmp_path, job(pod=WITH_INIT), containers, duration="60s")
    done = ran(path)
    starts = [
        (entry.time_us / SECOND_US) for entry in done.entries if entry.container == "main" and entry.kind == "Started"
    ]
    assert starts == [started]


def test_an_init_container_that_needs_more_than_its_limit_is_killed_and_its_pod_never_starts(tmp_path):
    """It grows by 20 MiB/s to 600Mi, its limit of 300Mi is reached at 15 s. The pod fails, and so does the next."""
    containers = "- workload: work\n  containers: {setup: {memory: 600Mi over 30s}, main: {memory: 50Mi}}"
    done = ran(written(tmp_path, job("backoffLimit: 1", pod=WITH_INIT), containers, duration="2m"))
    assert [pod for _, _, pod in at(done, "OOMKilled")] == ["work-0", "work-0-r1"]
    assert [reason for _, kind, reason in at(done, "JobFailed")] == ["BackoffLimitExceeded"]
    assert not [entry for entry in done.entries if entry.container == "main" and entry.kind == "Started"]


def test_an_init_container_without_an_end_is_named_among_the_assumptions(tmp_path, capsys):
    containers = "- workload: work\n  containers: {setup: {memory: 200Mi over 30s}, main: {memory: 50Mi}}"
    assert main(["simulate", written(tmp_path, job(pod=WITH_INIT), containers, duration="60s")]) == 0
    printed = capsys.readouterr()
    assert "end of init container setup of default/work: when its demand no longer changes" in " ".join(
        (printed.out + printed.err).split()
    )


# ---- events ----------------------------------------------------------------------------------------------------------


def test_a_job_that_is_scaled_down_deletes_the_newest_pods_and_scaled_up_runs_more(tmp_path):
    """3 of 6 at a time, 100 s each: down to 1 at 10 s, up to 2 at 50 s. manageJob deletes 2, and creates 1 later."""
    rest = "events: [{at: 10s, scale: {workload: work, replicas: 1}}, {at: 50s, scale: {workload: work, replicas: 2}}]"
    done = ran(written(tmp_path, job("parallelism: 3", "completions: 6"), exiting("100s"), rest=rest, duration="60s"))
    assert at(done, "Deleted") == [(10, "Deleted", "work-2"), (10, "Deleted", "work-1")]
    assert [time for time, _, _ in at(done, "Replaced")] == [50]


# ---- sidecars and work -----------------------------------------------------------------------------------------------


def test_the_back_off_counts_from_the_end_of_a_sidecar(tmp_path):
    """The container fails at 5 s. At 6 s the kubelet stops the sidecar (getFinishTimeFromContainers): back at 16 s."""
    sidecar = "      initContainers: [{name: proxy, image: proxy, restartPolicy: Always}]"
    containers = "- workload: work\n  containers: {main: {memory: 50Mi, exits: {after: 5s, code: 1}}}"
    done = ran(written(tmp_path, job(pod=sidecar), containers, duration="20s"))
    assert at(done, "Replaced") == [(16, "Replaced", "work-0-r1")]


def test_a_job_is_as_fast_as_the_cpu_lets_its_pods_work(tmp_path):
    """2 pods of 60 cpu-s each share 1 core: both end at 120 s, noticed at 121, complete at 122."""
    slow = NODE.replace("cpu: 8", "cpu: 1")
    working = "- workload: work\n  demand: {memory: 50Mi, work: 60 cpu-s}"
    done = ran(written(tmp_path, job("parallelism: 2", "completions: 2"), working, nodes=slow))
    assert at(done, "JobComplete") == [(122, "JobComplete", "CompletionsReached")]
