"""Cluster autoscalers whose decisions are worked out by hand from upstream's code.

Source: kubernetes/autoscaler cluster-autoscaler-1.36.1, cluster-autoscaler/core, estimator, expander, simulator. Scans
are at 0, 10, 20 s …, after the scheduler has placed what it can.
"""

from __future__ import annotations

import pytest

from podqos.agent.reasons import NodeGroupScaled, NodeNeeded, NodeUnneeded, NoNodeGroup
from podqos.cli.main import main
from podqos.model.time_units import SECOND_US
from podqos.reading.scenario_files import read_given_scenario
from podqos.sim.run import FinishedRun, simulate
from podqos.words.journal import line

WORKLOAD = """
---
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}, annotations: {{{annotations}}}}}
    spec:
      volumes: [{volumes}]
      containers: [{{name: main, image: {name}, resources: {{requests: {{{requests}}}}}}}]
"""
SCENARIO = """
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {{name: nodes}}
spec:
  duration: {duration}
  manifests: [all.yaml]
  nodes:
  - {{name: worker, count: {count}, capacity: {{cpu: 4, memory: 16Gi}}}}
  - {{name: big, capacity: {{cpu: 16, memory: 64Gi}}}}
  workloads: [{workloads}]
  clusterAutoscaler:
    nodeGroups:
    - {{nodes: worker, {worker}}}
    - {{nodes: big, initial: 0, {big}}}
    {settings}
"""


def pods(
    name: str,
    replicas: int = 1,
    requests: str = "cpu: 1, memory: 1Gi",
    *,
    kind: str = "Deployment",
    annotations: str = "",
    volumes: str = "",
    namespace: str = "default",
) -> str:
    """Return the manifest of a workload."""
    count = f"replicas: {replicas}" if kind != "DaemonSet" else "minReadySeconds: 0"
    return WORKLOAD.format(
        kind=kind,
        name=name,
        replicas=count,
        requests=requests,
        annotations=annotations,
        volumes=volumes,
        namespace=namespace,
    )


def ran(
    manifests: str,
    *,
    worker: str = "min: 1, max: 10",
    big: str = "max: 1",
    count: int = 1,
    duration: str = "2m",
    settings: str = "",
    workloads: str = "",
) -> FinishedRun:
    """Run a scenario of a group of 4 cores and 16Gi, and one of 16 cores and 64Gi that is empty at first."""
    text = SCENARIO.format(
        duration=duration, count=count, worker=worker, big=big, settings=settings, workloads=workloads
    )
    reading = read_given_scenario("scenario.yaml", {"scenario.yaml": text.encode(), "all.yaml": manifests.encode()})
    assert reading.scenario is not None, reading.problems
    return simulate(reading.scenario, check=True)


def enlarged(done: FinishedRun) -> list[tuple[float, str, int, int]]:
    """Return when which group was enlarged, from how many nodes to how many."""
    return [
        (entry.time_us / SECOND_US, because.group, because.before, because.after)
        for entry in done.entries
        if isinstance(because := entry.because, NodeGroupScaled)
    ]


def removed(done: FinishedRun) -> list[tuple[float, str]]:
    """Return which nodes were gone when."""
    return [(entry.time_us / SECOND_US, entry.because.node) for entry in done.entries if entry.kind == "Removed"]


def kept(done: FinishedRun) -> list[tuple[float, str, str]]:
    """Return which nodes were kept since when, and why."""
    return [
        (entry.time_us / SECOND_US, because.node, because.why)
        for entry in done.entries
        if isinstance(because := entry.because, NodeNeeded)
    ]


def at(done: FinishedRun, kind: str) -> list[tuple[float, str | None, str]]:
    return [(entry.time_us / SECOND_US, entry.pod, entry.node) for entry in done.entries if entry.kind == kind]


def test_nodes_are_added_at_the_first_scan_at_which_a_pending_pod_is_2_s_old():
    """10 pods of 1 core; worker-0 takes 4. At 0 s the six others are 0 s old, younger than 2 s: one more scan.

    At 10 s: worker: 4 pods per node, 2 nodes: of 8000m 6000m are used, 25 % wasted; of 32Gi 6Gi, 81.25 %: 1.0625.
    big is at most 1 node: of 16 cores 10 are wasted, 62.5 %; of 64Gi 58, 90.6 %: 1.53. Least waste: worker.
    The nodes join 60 s later, at 70 s, and the pods run.
    """
    done = ran(pods("web", 10))
    assert enlarged(done) == [(10.0, "worker", 1, 3)]
    joined = [(entry.time_us / SECOND_US, entry.because.node) for entry in done.entries if entry.kind == "Joined"]
    assert joined == [(70.0, "worker-1"), (70.0, "worker-2")]
    assert sum(1 for time, _, _ in at(done, "Started") if time == 70.0) == 6


def test_pods_that_arrive_1_s_before_a_scan_wait_for_the_next():
    """Arriving at 19 s they are 1 s old at 20 s, younger than 2 s; at 30 s they are 11 s old."""
    workloads = "{workload: late, arrives: 19s}"
    assert enlarged(ran(pods("late", 5), workloads=workloads, duration="1m")) == [(30.0, "worker", 1, 2)]


def test_a_pod_delay_of_its_own_is_waited_for():
    """With newPodScaleUpDelay 30s pods of 0 s count when they are older than 30 s: at 40 s."""
    done = ran(pods("web", 5), settings="newPodScaleUpDelay: 30s", duration="1m")
    assert enlarged(done) == [(40.0, "worker", 1, 2)]


def test_nodes_that_have_been_asked_for_are_counted_at_the_next_scan():
    """Between 10 s and 70 s the six pods still wait, and fit on the two nodes to come: nothing more is asked for."""
    assert len(enlarged(ran(pods("web", 10), duration="65s"))) == 1


def test_the_estimate_packs_the_largest_pods_first_and_fills_gaps_with_small_ones():
    """worker-0 is full (4 x 1 core). Pending: 2 of 3 cores, 2 of 1 core.

    By size: 3 cores first: node 1 and node 2 have 1 core left each; the small ones go there: 2 nodes, not 3.
    """
    manifests = pods("full", 4) + pods("small", 2) + pods("large", 2, "cpu: 3, memory: 1Gi")
    done = ran(manifests, workloads="{workload: small, arrives: 1s}, {workload: large, arrives: 1s}", duration="1m")
    assert enlarged(done) == [(10.0, "worker", 1, 3)]


def test_daemon_sets_take_their_part_of_new_nodes():
    """An agent requests 1 core on every node: 3 pods of 1 core fit on a new worker. worker-0: 3 pods and the agent.

    The DaemonSet is first in the files, so that it is placed first. 6 more pods need 2 nodes.
    """
    done = ran(pods("agent", kind="DaemonSet") + pods("web", 9), duration="1m")
    assert enlarged(done) == [(10.0, "worker", 1, 3)]


def test_a_pod_that_only_the_large_machine_takes_enlarges_that_group():
    """8 cores fit on no worker of 4: the option of worker does not exist."""
    done = ran(pods("huge", 1, "cpu: 8, memory: 1Gi"), duration="2m")
    assert enlarged(done) == [(10.0, "big", 0, 1)]
    assert ("default/huge-0", "big-0") in {(pod, node) for _, pod, node in at(done, "Started")}


def test_expanders_choose_differently():
    """10 pods of 1 core wait (worker-0 is full): worker needs 3 nodes, big 1.

    worker: of 12 cores 2 are wasted (16.7 %), of 48Gi 38 (79.2 %): 0.958. big: of 16 cores 6 (37.5 %), of 64Gi 54
    (84.4 %): 1.219. least-nodes takes big, and so does priority, where big has the higher one.
    """
    assert enlarged(ran(pods("web", 14), duration="15s")) == [(10.0, "worker", 1, 4)]
    assert enlarged(ran(pods("web", 14), settings="expander: least-nodes", duration="15s")) == [(10.0, "big", 0, 1)]
    done = ran(pods("web", 14), settings="expander: priority", big="max: 1, priority: 10", duration="15s")
    assert enlarged(done) == [(10.0, "big", 0, 1)]


def test_groups_at_their_maximum_are_not_enlarged():
    """5 pods per 4 cores; worker may not grow, and a pod of 32 cores fits nowhere."""
    done = ran(pods("web", 1, "cpu: 32, memory: 1Gi"), worker="min: 1, max: 1")
    (because,) = (entry.because for entry in done.entries if isinstance(entry.because, NoNodeGroup))
    assert because.refused == {"worker": "MaxSizeReached", "big": "DoesNotFit"}
    assert enlarged(done) == []


def test_an_estimate_ends_at_the_maximum_of_the_group():
    """12 of 16 pods wait: three workers are needed, two may be added.

    worker with 2 nodes holds 8 of the pods: of 8 cores none is wasted, of 32Gi 24 (75 %): 0.75; big: of 16 cores 4
    (25 %), of 64Gi 52 (81.25 %): 1.0625. So worker first; the four left get big at the next scan.
    """
    done = ran(pods("web", 16), worker="min: 1, max: 3", duration="1m")
    assert enlarged(done) == [(10.0, "worker", 1, 3), (20.0, "big", 0, 1)]


def test_an_empty_node_is_removed_after_more_than_10_min():
    """3 workers, no pod. Unneeded since the scan at 0 s; removed when 0 s + 600 s is before now: at 610 s, not 600 s.

    min 1: two are tainted at 610 s and deleted 5 s later (node-delete-delay-after-taint).
    """
    done = ran("", count=3, duration="11m")
    assert removed(done) == [(615.0, "worker-0"), (615.0, "worker-1")]
    because = next(entry.because for entry in done.entries if isinstance(entry.because, NodeUnneeded))
    assert (because.before, because.after, because.seconds) == (3, 2, 610.0)


def test_no_node_is_removed_within_10_min_after_one_was_added():
    """Web (1 pod of 4 cores more than worker-0 holds) adds worker-1 at 10 s and is deleted at 30 s.

    worker-1 joins at 70 s, empty: unneeded since 70 s, ready at 680 s. The last addition, at 10 s, ends its delay at
    610 s, which is earlier. With delayAfterAdd 20m the delay ends at 1210 s.
    """
    manifests = pods("base", 1, "cpu: 4, memory: 1Gi") + pods("web", 1, "cpu: 4, memory: 1Gi")
    workloads = "{workload: web, deleted: 30s}"
    assert removed(ran(manifests, workloads=workloads, duration="12m")) == [(685.0, "worker-1")]
    late = ran(manifests, workloads=workloads, duration="21m", settings="scaleDown: {delayAfterAdd: 20m}")
    assert removed(late) == [(1215.0, "worker-1")]


def test_a_node_with_more_than_half_requested_stays():
    """2 workers, 2 pods of 2.1 cores: 52.5 % each is above 0.5. With 2 cores, 50 %, one is moved to the other.

    610 s tainted, 615 s evicted; whether the pod is gone is checked every 5 s: the node is deleted at 620 s.
    """
    assert removed(ran(pods("web", 2, "cpu: 2100m, memory: 1Gi"), count=2, duration="11m")) == []
    done = ran(pods("web", 2, "cpu: 2, memory: 1Gi"), count=2, duration="11m")
    assert removed(done) == [(620.0, "worker-0")]
    assert [node for _, pod, node in at(done, "Started") if pod is not None and "-r1" in pod] == ["worker-1"]


def test_a_node_whose_pods_fit_nowhere_else_stays():
    """Memory: 7Gi of 16Gi is 44 %, a candidate; the other node has 14Gi requested and less than 2Gi left."""
    manifests = pods("wide", 1, "cpu: 1, memory: 14Gi") + pods("web", 1, "cpu: 1, memory: 7Gi")
    done = ran(manifests, count=2, duration="11m")
    assert removed(done) == []
    assert [why for _, _, why in kept(done)] == ["NoPlaceToMovePods"]


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        (
            pods("web", annotations='cluster-autoscaler.kubernetes.io/safe-to-evict: "false"'),
            "NotSafeToEvictAnnotation",
        ),
        (pods("web", volumes="{name: data, emptyDir: {}}"), "LocalStorageRequested"),
    ],
    ids=["annotated", "local storage"],
)
def test_a_pod_that_must_not_be_moved_keeps_its_node(manifest, why):
    """One pod of 1 core (25 %) on one of two workers: the other is empty and goes, min 0; this one is kept."""
    done = ran(manifest, count=2, worker="min: 0, max: 2", duration="11m")
    assert len(removed(done)) == 1
    assert [reason for _, _, reason in kept(done)] == [why]


def test_memory_backed_volumes_and_listed_ones_do_not_keep_a_node():
    """Two pods, one per worker. An emptyDir with medium Memory is not local storage, a listed volume is ignored."""
    for manifest in (
        pods("web", 2, volumes="{name: data, emptyDir: {medium: Memory}}"),
        pods(
            "web",
            2,
            volumes="{name: data, emptyDir: {}}",
            annotations="cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes: data",
        ),
    ):
        assert len(removed(ran(manifest, count=2, duration="11m"))) == 1


def test_a_disruption_budget_that_allows_nothing_keeps_the_node():
    """2 pods, minAvailable 2: no disruption is allowed, both nodes stay."""
    budget = """
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: default}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
"""
    done = ran(pods("web", 2) + budget, count=2, duration="11m")
    assert removed(done) == []
    assert {why for _, _, why in kept(done)} == {"NotEnoughPdb"}


def test_nodes_with_pods_are_removed_one_at_a_time_and_empty_ones_together():
    """4 workers, min 0: two have a pod of 1 core, two are empty. At 610 s both empty ones and one with a pod go."""
    done = ran(pods("web", 2), count=4, worker="min: 0, max: 4", duration="10m11s")
    leaving = [entry.because.node for entry in done.entries if isinstance(entry.because, NodeUnneeded)]
    moved = [entry.because.moved for entry in done.entries if isinstance(entry.because, NodeUnneeded)]
    assert len(leaving) == 3
    assert sum(map(bool, moved)) == 1


def test_a_name_that_is_used_again_is_a_new_node_with_its_daemons():
    """The workload a (2 x 3 cores) adds worker-1 at 10 s and is deleted at 3 min; then worker-0, empty, is removed.

    Unneeded since the scan at 180 s: at 240 s for 60 s, at 250 s for longer; deleted at 255 s. At 10 min b needs a
    second node at the scan of 610 s; the only free name is worker-0: it joins at 670 s, and the agent runs there again.
    """
    manifests = pods("agent", 1, "cpu: 100m, memory: 100Mi", kind="DaemonSet")
    manifests += pods("a", 2, "cpu: 3, memory: 1Gi") + pods("b", 2, "cpu: 3, memory: 1Gi")
    done = ran(
        manifests,
        worker="min: 1, max: 2",
        big="max: 1, priority: -1",
        workloads="{workload: a, deleted: 3m}, {workload: b, arrives: 10m}",
        settings="expander: priority\n    scaleDown: {unneededTime: 1m, delayAfterAdd: 1m}",
        duration="12m",
    )
    assert removed(done) == [(255.0, "worker-0")]
    assert enlarged(done) == [(10.0, "worker", 1, 2), (610.0, "worker", 1, 2)]
    started = [(time, node) for time, pod, node in at(done, "Started") if pod == "default/agent-worker-0"]
    assert started == [(0.0, "worker-0"), (670.0, "worker-0")]


def test_without_scale_down_nodes_stay():
    assert removed(ran("", count=3, duration="11m", settings="scaleDown: {enabled: false}")) == []


def test_the_words_name_group_pods_and_waste():
    done = ran(pods("web", 10), duration="15s")
    (entry,) = (entry for entry in done.entries if isinstance(entry.because, NodeGroupScaled))
    assert line(entry) == (
        "node group worker enlarged from 1 to 3 nodes for web-4 and 5 more pods, which join in 60 s; "
        "least-waste: 53 % unused, big 77 %"
    )


@pytest.mark.parametrize(
    ("worker", "settings", "what"),
    [
        ("min: 5, max: 3", "", "min 5, count 1 and max 3 must not decrease"),
        ("max: 3", "expander: random", "random is not simulated"),
        ("min: 0", "", "nodeGroups[0].max: Required value"),
    ],
)
def test_nonsense_is_refused_with_its_place(tmp_path, capsys, worker, settings, what):
    text = SCENARIO.format(duration="1m", count=1, worker=worker, big="max: 1", settings=settings, workloads="")
    (tmp_path / "scenario.yaml").write_text(text)
    (tmp_path / "all.yaml").write_text(pods("web"))
    assert main(["simulate", str(tmp_path / "scenario.yaml")]) != 0
    error = capsys.readouterr().err
    assert what in error
    assert "scenario.yaml:" in error
