"""StatefulSets, Deployments and DaemonSets, worked out by hand from upstream's controllers (Kubernetes v1.36.4).

Unless a test says otherwise, a container runs 5 s after it is created (``containerStart``), takes 2 s to stop, and a
pod that has ended is created again after 1 s. Controllers react at once.
"""

from __future__ import annotations

import json

import pytest

from podqos.model.time_units import SECOND_US
from podqos.reading.scenario_files import ScenarioReading, read_given_scenario
from podqos.sim.run import FinishedRun, simulate
from podqos.sim.summary import run_summary
from podqos.sim.variation import Variation, parse_assignment
from podqos.text.journal import line

FOREVER = {"cpu": "100"}
"""Requests that no node has: a pod that is Pending for ever, and so never ready."""


def workload(kind: str, name: str, /, replicas: int | None = 3, **spec: object) -> dict:
    """Return a manifest with one container, called main."""
    labels = {"app": name}
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    stated = {} if replicas is None else {"replicas": replicas}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**stated, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def reading_of(*manifests: dict, others: dict | None = None, **spec: object) -> ScenarioReading:
    """Read a scenario as a user would write it, of three nodes."""
    usual = {
        "duration": "200s",
        "nodes": [{"name": "node", "count": 3, "capacity": {"cpu": 4, "memory": "4Gi"}}],
        "manifests": ["all.json"],
        "timing": {"containerStart": "5s", "containerStop": "2s"},
    }
    document = {
        "apiVersion": "podqos.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "test"},
        "spec": {**usual, **spec},
    }
    listed = {"apiVersion": "v1", "kind": "List", "items": manifests}
    files = {"scenario.yaml": document, "all.json": listed, **(others or {})}
    return read_given_scenario("scenario.yaml", {name: json.dumps(value).encode() for name, value in files.items()})


def run_of(*manifests: dict, **spec: object) -> FinishedRun:
    """Run a scenario with all checkers."""
    reading = reading_of(*manifests, **spec)
    assert reading.scenario is not None, reading.problems
    return simulate(reading.scenario, check=True)


def story(done: FinishedRun, *kinds: str, since: float = 0) -> list[tuple[float, str]]:
    """Return time and pod, or for a whole workload the words, of the entries of some kinds."""
    return [
        (entry.time_us / SECOND_US, line(entry) if entry.pod is None else f"{entry.kind} {entry.pod.split('/')[1]}")
        for entry in done.entries
        if entry.kind in kinds and entry.container is None and entry.time_us >= since * SECOND_US
    ]


def scaled(done: FinishedRun) -> list[tuple[float, str, int, int]]:
    """Return time, ReplicaSet, and the numbers from and to which a Deployment scales it."""
    return [
        (entry.time_us / SECOND_US, entry.because.replica_set, entry.because.before, entry.because.after)
        for entry in done.entries
        if entry.kind == "Scaled" and entry.because.replica_set
    ]


def lost(node: str, at: str) -> dict:
    return {"at": at, "nodeLost": node}


def rolled_out(name: str, at: str, **change: object) -> dict:
    return {"at": at, "rollout": {"workload": name, **(change or {"image": "y"})}}


NEVER_READY = {"resources": {"requests": FOREVER}}
LIFE = ("Started", "Deleted", "Replaced", "Terminating")


# ---- StatefulSets: names -------------------------------------------------------------------------------------------


def test_an_evicted_pod_of_a_statefulset_is_created_again_under_its_own_name():
    """Node of 4096Mi, threshold 100Mi: crossed above 3996Mi.

    The ramp 0 → 4000Mi over 40 s passes 3996Mi at 39.96 s; the kubelet checks at 40 s and evicts. As soon as it has
    stopped, the controller deletes the failed pod, and creates w-1 1 s later (stateful_set_control.go, processReplica:
    isFailed).
    """
    greedy = {"demand": {"memory": "4000Mi over 40s"}}
    parts = [{"workload": "w", "perReplica": [{"demand": {"memory": "10Mi"}}, greedy, {"demand": {"memory": "10Mi"}}]}]
    done = run_of(workload("StatefulSet", "w"), workloads=parts, duration="49s")
    assert story(done, "Evicted") == [(40.0, "Evicted w-1")]
    [(stopped, _)] = story(done, "Stopped")
    assert story(done, "Replaced") == [(stopped + 1, "Replaced w-1")]
    assert [name for _, name in story(done, "Started", since=1)] == ["Started w-1"]
    assert run_summary(done).workloads[0].pods == 3


def test_a_pod_of_a_statefulset_on_a_lost_node_stays_terminating_and_is_not_replaced():
    """Lost at 100 s, noticed at 150 s, tolerated for 300 s: deleted at 450 s.

    No kubelet confirms that, so the object stays and no other w-0 can be created (podgc deletes it only when the node
    object is gone or the node is marked out of service).
    """
    done = run_of(workload("StatefulSet", "w"), duration="2000s", events=[lost("node-0", "100s")])
    [pod] = [entry.pod for entry in done.entries if entry.kind == "Started" and entry.node == "node-0"]
    name = pod.split("/")[1]
    assert story(done, *LIFE, since=1) == [(450.0, f"Terminating {name}")]
    assert run_summary(done).downtime_us == 1900 * SECOND_US


def test_a_pod_on_a_lost_node_is_created_again_when_the_node_is_back_and_its_kubelet_confirms_the_end():
    """Deleted at 450 s. The node joins at 600 s and finds that pod deleted: gone; created 1 s later, runs after 5 s."""
    events = [lost("node-0", "100s"), {"at": "600s", "nodeJoins": "node-0"}]
    done = run_of(workload("StatefulSet", "w", 1), duration="700s", events=events)
    assert story(done, *LIFE, since=1) == [(450.0, "Terminating w-0"), (601.0, "Replaced w-0"), (606.0, "Started w-0")]


def test_a_node_that_is_back_in_time_starts_the_same_pod_again():
    """Back at 449 s, before the pod is deleted at 450 s: it is started on its node, and nothing is replaced."""
    events = [lost("node-0", "100s"), {"at": "449s", "nodeJoins": "node-0"}]
    done = run_of(workload("StatefulSet", "w", 1), duration="700s", events=events)
    assert story(done, *LIFE, since=1) == [(454.0, "Started w-0")]


def test_when_the_node_object_is_deleted_its_pods_are_collected_within_a_minute():
    """Lost at 100 s, Terminating at 450 s. The Node is deleted at 510 s.

    The collector looks every 20 s, at 520 s for the first time; after 40 s of quarantine, at 560 s, it deletes the pod
    (podgc, gcOrphaned). w-0 is created 1 s later on another node.
    """
    events = [lost("node-0", "100s"), {"at": "510s", "nodeDeleted": "node-0"}]
    sts, daemons = workload("StatefulSet", "w", 1), workload("DaemonSet", "agent", None)
    done = run_of(sts, daemons, duration="700s", events=events)
    assert story(done, *LIFE, since=1) == [(450.0, "Terminating w-0"), (561.0, "Replaced w-0"), (566.0, "Started w-0")]


def test_on_a_node_that_is_out_of_service_pods_are_deleted_at_once_and_collected_at_the_next_look():
    """Lost at 100 s, noticed at 150 s. Marked at 205 s: the taint evicts both pods at once (no toleration).

    The Deployment replaces its pod 1 s later. The StatefulSet waits for the collector, which deletes terminating pods
    of such nodes at its next look, at 220 s (podgc, gcTerminating); created at 221 s.
    """
    parts = [{"workload": name, "nodes": ["node-0"]} for name in ("w", "web")]
    events = [lost("node-0", "100s"), {"at": "205s", "outOfService": "node-0"}]
    done = run_of(
        workload("StatefulSet", "w", 1),
        workload("Deployment", "web", 1),
        workloads=parts,
        duration="300s",
        events=events,
    )
    assert story(done, *LIFE, since=1) == [
        (205.0, "Terminating w-0"),
        (206.0, "Replaced web-0-r1"),
        (211.0, "Started web-0-r1"),
        (221.0, "Replaced w-0"),
        (226.0, "Started w-0"),
    ]


def test_a_node_that_was_deleted_and_joins_again_gets_its_daemon_again():
    """Its pod is collected at 160 s (deleted at 110 s, seen at 120 s, 40 s of quarantine) and not replaced."""
    events = [lost("node-0", "100s"), {"at": "110s", "nodeDeleted": "node-0"}, {"at": "300s", "nodeJoins": "node-0"}]
    done = run_of(workload("DaemonSet", "agent", None), duration="400s", events=events)
    assert story(done, *LIFE, "Pending", since=1) == [(305.0, "Started agent-node-0")]


# ---- StatefulSets: order -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "times"),
    [
        ({}, [15, 20, 25]),  # each after the one before is ready, 5 s later
        ({"minReadySeconds": 10}, [15, 30, 45]),  # and has been ready for 10 s
        ({"podManagementPolicy": "Parallel"}, [15, 15, 15]),
        ({"podManagementPolicy": "Parallel", "minReadySeconds": 10}, [15, 15, 15]),
    ],
)
def test_pods_of_a_statefulset_are_created_one_after_the_other_unless_in_parallel(spec, times):
    """It arrives at 10 s (processReplica, runForAll)."""
    done = run_of(workload("StatefulSet", "w", **spec), workloads=[{"workload": "w", "arrives": "10s"}])
    assert story(done, "Started") == [(float(time), f"Started w-{place}") for place, time in enumerate(times)]


def test_a_statefulset_waits_for_the_readiness_probe_of_each_pod():
    """Runs at 15 s, the first probe 10 s later succeeds: ready at 25 s. So 25, 40 and 55 s; started 5 s after that."""
    sts = workload("StatefulSet", "w")
    probe = {"httpGet": {"port": 80}, "initialDelaySeconds": 10, "periodSeconds": 5}
    sts["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = probe
    done = run_of(sts, workloads=[{"workload": "w", "arrives": "10s"}])
    assert [time for time, _ in story(done, "Started")] == [15, 30, 45]


@pytest.mark.parametrize(
    ("policy", "deleted"),
    [("OrderedReady", [(50, 3), (52, 2), (54, 1)]), ("Parallel", [(50, 3), (50, 2), (50, 1)])],
)
def test_a_statefulset_is_scaled_down_from_the_highest_ordinal(policy, deleted):
    """4 → 1 at 50 s. In order, the next is deleted when the one before is gone, 2 s later (processCondemned)."""
    sts = workload("StatefulSet", "w", 4, podManagementPolicy=policy)
    done = run_of(sts, events=[{"at": "50s", "scale": {"workload": "w", "replicas": 1}}])
    assert sorted(story(done, "Deleted")) == sorted((float(time), f"Deleted w-{place}") for time, place in deleted)
    assert line(next(entry for entry in done.entries if entry.kind == "Scaled")) == "w is scaled down from 4 to 1"


def test_an_ordered_statefulset_does_not_recreate_an_evicted_pod_while_an_earlier_one_is_unavailable():
    """w-0's node is lost at 10 s; at 60 s the pod counts as not ready.

    w-1 grows to 3900Mi in 90 s; above 3596Mi, from 83 s on, less than 500Mi are left: evicted at the check of 90 s.
    Every sync ends at w-0 (processReplica: not ready, monotonic), so the failed w-1 is not even deleted. At 200 s the
    node is back, w-0 runs at 205 s, and the failed w-1 is deleted and created at once.
    """
    greedy = {"demand": {"memory": "3900Mi over 90s"}}
    idle = {"demand": {"memory": "1Mi"}}
    parts = [{"workload": "w", "nodes": ["node-0", "node-1", "node-2"], "perReplica": [idle, greedy, idle]}]
    events = [lost("node-0", "10s"), {"at": "200s", "nodeJoins": "node-0"}]
    kubelet = {"evictionHard": {"memory.available": "500Mi"}}
    nodes = [{"name": "node", "count": 3, "capacity": {"cpu": 4, "memory": "4Gi"}, "kubelet": kubelet}]
    done = run_of(workload("StatefulSet", "w"), workloads=parts, nodes=nodes, duration="209s", events=events)
    assert story(done, "Evicted") == [(90.0, "Evicted w-1")]
    assert story(done, "Started", "Replaced", since=1) == [
        (205.0, "Replaced w-1"),
        (205.0, "Started w-0"),
    ]


def test_before_a_lost_node_is_noticed_its_pod_counts_as_ready():
    """The same, but w-1 is evicted before 60 s: nobody knows yet that w-0 is gone, and w-1 is created again."""
    greedy = {"demand": {"memory": "3900Mi over 20s"}}
    idle = {"demand": {"memory": "1Mi"}}
    parts = [{"workload": "w", "nodes": ["node-0", "node-1", "node-2"], "perReplica": [idle, greedy, idle]}]
    kubelet = {"evictionHard": {"memory.available": "500Mi"}}
    nodes = [{"name": "node", "count": 3, "capacity": {"cpu": 4, "memory": "4Gi"}, "kubelet": kubelet}]
    sts = workload("StatefulSet", "w")
    done = run_of(sts, workloads=parts, nodes=nodes, duration="25s", events=[lost("node-0", "10s")])
    assert story(done, "Evicted") == [(20.0, "Evicted w-1")]
    [(stopped, _)] = story(done, "Stopped")
    assert story(done, "Replaced") == [(stopped + 1, "Replaced w-1")]


# ---- StatefulSets: updates -----------------------------------------------------------------------------------------

UPDATES = [
    (50.0, "Deleted w-2"),
    (53.0, "Replaced w-2"),
    (58.0, "Started w-2"),
    (58.0, "Deleted w-1"),
    (61.0, "Replaced w-1"),
    (66.0, "Started w-1"),
    (66.0, "Deleted w-0"),
    (69.0, "Replaced w-0"),
    (74.0, "Started w-0"),
]


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_a_statefulset_is_updated_from_the_highest_ordinal_down_one_at_a_time(policy):
    """At 50 s: each takes 2 s to stop, 1 s to be created and 5 s to start; then the next. Complete at 74 s."""
    done = run_of(workload("StatefulSet", "w", podManagementPolicy=policy), events=[rolled_out("w", "50s")])
    assert sorted(story(done, *LIFE, since=1)) == sorted(UPDATES)
    assert story(done, "RolloutStarted", "RolledOut") == [
        (50.0, "rollout of w starts: revision 2"),
        (74.0, "rollout of w is complete: revision 2"),
    ]


def test_with_ondelete_a_pod_is_updated_when_it_is_created_again_for_another_reason():
    """Nothing is deleted at 50 s.

    w-0, lost at 100 s and back at 500 s, is created from the new template, which is Pending for ever
    (newVersionedStatefulSetPod).
    """
    sts = workload("StatefulSet", "w", 1, updateStrategy={"type": "OnDelete"})
    events = [
        rolled_out("w", "50s", **NEVER_READY),
        lost("node-0", "100s"),
        {"at": "500s", "nodeJoins": "node-0"},
    ]
    done = run_of(sts, events=events, duration="600s")
    assert story(done, *LIFE, "Pending", since=1) == [
        (450.0, "Terminating w-0"),
        (501.0, "Replaced w-0"),
        (501.0, "Pending w-0"),
    ]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        # Every sync waits for w-2 to be ready before it looks at updates (processReplica).
        ("OrderedReady", []),
        # Nothing waits: w-2 is pending, so it is gone at once, and created 1 s later with the first template.
        ("Parallel", [(80.0, "Deleted w-2"), (81.0, "Replaced w-2"), (86.0, "Started w-2")]),
    ],
)
def test_a_broken_rollout_of_an_ordered_statefulset_stays_stuck_even_when_it_is_rolled_back(policy, expected):
    """The new template is never ready: w-2 is Pending at 53 s. It is rolled back at 80 s."""
    sts = workload("StatefulSet", "w", podManagementPolicy=policy)
    events = [rolled_out("w", "50s", **NEVER_READY), {"at": "80s", "rollback": {"workload": "w"}}]
    done = run_of(sts, events=events)
    assert story(done, *LIFE, since=54) == expected
    completed = [(86.0, "rollback of w is complete: revision 3")] if expected else []
    assert story(done, "RolledOut") == completed


def test_max_unavailable_of_a_statefulset_is_ignored_and_said_to_be():
    """Its feature gate is beta, but off by default in v1.36 (kube_features.go)."""
    sts = workload("StatefulSet", "w", updateStrategy={"rollingUpdate": {"maxUnavailable": 2}})
    reading = reading_of(sts, events=[rolled_out("w", "50s")])
    [problem] = reading.problems
    assert problem.what == "ignored: pods are updated one after the other"
    assert problem.field == "spec.updateStrategy.rollingUpdate.maxUnavailable"
    assert sorted(story(simulate(reading.loaded()), *LIFE, since=1)) == sorted(UPDATES)


# ---- Deployments: rolling updates ------------------------------------------------------------------------------------


def test_a_deployment_surges_rounded_up_and_is_unavailable_rounded_down():
    """10 replicas, 25 % each: surge ⌈2.5⌉ = 3, unavailable ⌊2.5⌋ = 2; at least 8 available, at most 13 in all.

    50 s: new 0 → 3 (13 in all). Old: 13 − 8 − 3 not available = 2 down: 10 → 8. New: 13 − 11 = 2 more: 3 → 5.
    55 s: the five are ready one after the other. With each: available 8 + k − 8 = 1 spare: old −1, then new +1.
    So old 8 → 3 and new 5 → 10 at 55 s; at 60 s the other five are ready: old 3 → 0 with the first three of them.
    """
    done = run_of(workload("Deployment", "web", 10), events=[rolled_out("web", "50s")])
    assert scaled(done)[:3] == [(50.0, "web-rev2", 0, 3), (50.0, "web", 10, 8), (50.0, "web-rev2", 3, 5)]
    at_55 = [(name, before, after) for time, name, before, after in scaled(done) if time == 55]
    assert [after for name, _, after in at_55 if name == "web"] == [7, 6, 5, 4, 3]
    assert [after for name, _, after in at_55 if name == "web-rev2"] == [6, 7, 8, 9, 10]
    assert [after for time, name, _, after in scaled(done) if time == 60] == [2, 1, 0]
    assert story(done, "RolledOut") == [(60.0, "rollout of web is complete: revision 2")]


def test_without_surge_an_old_pod_is_deleted_before_a_new_one_is_created_and_nobody_waits_for_its_end():
    """2 replicas, surge 0, unavailable 1. Old 2 → 1, then at once new 0 → 1: a terminating pod does not count.

    The old pod takes 2 s to stop, the new one 5 s to start: next step at 55 s, complete at 60 s.
    """
    strategy = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    done = run_of(workload("Deployment", "web", 2, strategy=strategy), events=[rolled_out("web", "50s")])
    assert scaled(done) == [
        (50.0, "web", 2, 1),
        (50.0, "web-rev2", 0, 1),
        (55.0, "web", 1, 0),
        (55.0, "web-rev2", 1, 2),
    ]
    assert story(done, "RolledOut") == [(60.0, "rollout of web is complete: revision 2")]


def test_if_surge_and_unavailability_both_round_to_0_one_pod_may_be_unavailable():
    """3 replicas, surge 0, unavailable ⌊0.3⌋ = 0 → 1 (ResolveFenceposts)."""
    strategy = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "10%"}}
    done = run_of(workload("Deployment", "web", 3, strategy=strategy), events=[rolled_out("web", "50s")])
    assert scaled(done)[:2] == [(50.0, "web", 3, 2), (50.0, "web-rev2", 0, 1)]


def test_a_new_pod_counts_as_available_after_min_ready_seconds():
    """1 replica: surge ⌈0.25⌉ = 1, unavailable 0. The new one runs at 55 s and is available at 65 s: old 1 → 0."""
    done = run_of(workload("Deployment", "web", 1, minReadySeconds=10), events=[rolled_out("web", "50s")])
    assert scaled(done) == [(50.0, "web-rev2", 0, 1), (65.0, "web", 1, 0)]
    assert story(done, "RolledOut") == [(65.0, "rollout of web is complete: revision 2")]


def test_recreate_waits_until_every_old_pod_is_gone():
    """50 s: old 2 → 0; the pods stop at 52 s, and only then new 0 → 2 (oldPodsRunning); complete at 57 s."""
    done = run_of(workload("Deployment", "web", 2, strategy={"type": "Recreate"}), events=[rolled_out("web", "50s")])
    assert scaled(done) == [(50.0, "web", 2, 0), (52.0, "web-rev2", 0, 2)]
    assert story(done, "RolledOut") == [(57.0, "rollout of web is complete: revision 2")]


def test_recreate_waits_for_a_pod_on_a_lost_node_that_nobody_confirms_to_be_gone():
    """The node of one of two pods is lost at 40 s. The other stops at 52 s; the first is Terminating until 600 s."""
    web = workload("Deployment", "web", 2, strategy={"type": "Recreate"})
    events = [lost("node-0", "40s"), rolled_out("web", "50s"), {"at": "600s", "nodeJoins": "node-0"}]
    done = run_of(web, events=events, duration="700s")
    assert scaled(done) == [(50.0, "web", 2, 0), (600.0, "web-rev2", 0, 2)]


def test_a_deployment_replaces_a_pod_on_a_lost_node_when_it_is_deleted():
    """Lost at 100 s, noticed at 150 s, deleted at 450 s: inactive for its ReplicaSet, so replaced 1 s later."""
    done = run_of(workload("Deployment", "web", 1), duration="600s", events=[lost("node-0", "100s")])
    assert story(done, *LIFE, since=1) == [(451.0, "Replaced web-0-r1"), (456.0, "Started web-0-r1")]


def test_a_drained_pod_of_a_deployment_is_replaced_while_it_stops_and_one_of_a_statefulset_afterwards():
    """Drained at 50 s; both take 2 s to stop, and 3 s to be cleaned up.

    The ReplicaSet does not count a pod that is being deleted: replaced at 51 s. w-0 is there until its kubelet has
    removed it at 55 s, and created 1 s later.
    """
    parts = [{"workload": name, "nodes": ["node-0"]} for name in ("w", "web")]
    timing = {"containerStart": "5s", "containerStop": "2s", "cleanUp": "3s"}
    sets = workload("StatefulSet", "w", 1), workload("Deployment", "web", 1)
    done = run_of(*sets, workloads=parts, timing=timing, events=[{"at": "50s", "drain": {"node": "node-0"}}])
    assert story(done, "Replaced", "Stopped") == [
        (51.0, "Replaced web-0-r1"),
        (52.0, "Stopped w-0"),
        (52.0, "Stopped web-0"),
        (56.0, "Replaced w-0"),
    ]


# ---- Deployments: progress, rollback, scaling ------------------------------------------------------------------------


def stuck(**spec: object) -> dict:
    """Return 10 replicas with maxSurge 3 and maxUnavailable 2."""
    return workload("Deployment", "web", 10, strategy={"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}, **spec)


def test_a_rollback_removes_the_pods_that_never_became_available_and_brings_back_the_old_ones():
    """At 100 s 8 old ones are available and 5 new ones pending; the old ReplicaSet is the new one now.

    Room: 13 − 13 = 0. Down: 13 − 8 − (8 − 8) = 5, and the five are not available: web-rev2 5 → 0. Then web 8 → 10.
    Pending pods are gone at once. node-0 had four pods (0, 3, 6, 9), so web-9 and web-6 were deleted at 50 s: their
    names are used, and the new ones have -r1.
    """
    events = [rolled_out("web", "50s", **NEVER_READY), {"at": "100s", "rollback": {"workload": "web"}}]
    done = run_of(stuck(), events=events)
    assert scaled(done)[3:] == [(100.0, "web-rev2", 5, 0), (100.0, "web", 8, 10)]
    assert story(done, "Started", since=100) == [(105.0, "Started web-6-r1"), (105.0, "Started web-9-r1")]
    assert story(done, "RolloutStarted", "RolledOut", since=100) == [
        (100.0, "rollback of web starts: revision 3"),
        (105.0, "rollback of web is complete: revision 3"),
    ]


def test_a_deployment_that_is_scaled_to_0_during_a_rollout_scales_all_replicasets_to_0():
    """The new ReplicaSet has more than is wanted, and then no old pod is needed."""
    events = [rolled_out("web", "50s", **NEVER_READY), {"at": "100s", "scale": {"workload": "web", "replicas": 0}}]
    assert scaled(run_of(stuck(), events=events))[3:] == [(100.0, "web-rev2", 5, 0), (100.0, "web", 8, 0)]


def test_a_pod_that_waits_for_a_node_is_deleted_before_one_that_runs():
    """Three nodes of 1 CPU hold three pods of 600m; the fourth is pending. 4 → 3 deletes it (ActivePodsWithRanks)."""
    web = workload("Deployment", "web", 4)
    web["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "600m"}}
    nodes = [{"name": "node", "count": 3, "capacity": {"cpu": 1, "memory": "4Gi"}}]
    done = run_of(web, nodes=nodes, events=[{"at": "50s", "scale": {"workload": "web", "replicas": 3}}])
    [(_, pending)] = story(done, "Pending")
    assert story(done, "Deleted") == [(50.0, pending.replace("Pending", "Deleted"))]


def test_of_ready_pods_those_on_the_fullest_node_are_deleted_first_and_then_the_youngest():
    """4 pods on 3 nodes: one node has two. 4 → 3 deletes one of those: the one with the higher number.

    Then 3 → 5 at 60 s gives two new ones; 5 → 4 at 90 s: two nodes have two pods each. Rank 2 of those: ages by powers
    of two: the new ones have been ready for 25 s, the old ones since the start.
    """
    events = [
        {"at": f"{at}s", "scale": {"workload": "web", "replicas": replicas}}
        for at, replicas in ((50, 3), (60, 5), (90, 4))
    ]
    done = run_of(workload("Deployment", "web", 4), events=events)
    on_node: dict[str, list[str]] = {}
    for entry in done.entries:
        if entry.kind == "Placed" and entry.time_us == 0:
            on_node.setdefault(entry.node, []).append(entry.pod.split("/")[1])
    [doubled] = [pods for pods in on_node.values() if len(pods) == 2]
    first, second = story(done, "Deleted")
    assert first == (50.0, f"Deleted {max(doubled)}")
    new = {name.split()[1] for _, name in story(done, "Started", since=1)}
    assert second[0] == 90
    assert second[1].split()[1] in new


# ---- DaemonSets ------------------------------------------------------------------------------------------------------


def test_a_daemonset_is_updated_node_by_node():
    """One at a time: each node takes 2 s to stop, 1 s to create, 5 s to start: 50, 58, 66, complete at 74 s."""
    done = run_of(workload("DaemonSet", "agent", None), events=[rolled_out("agent", "50s")])
    assert story(done, "Deleted", "Started", since=1) == [
        (50.0, "Deleted agent-node-0"),
        (58.0, "Started agent-rev2-node-0"),
        (58.0, "Deleted agent-node-1"),
        (66.0, "Started agent-rev2-node-1"),
        (66.0, "Deleted agent-node-2"),
        (74.0, "Started agent-rev2-node-2"),
    ]
    assert story(done, "RolledOut") == [(74.0, "rollout of agent is complete: revision 2")]


def test_a_daemonsets_percentages_are_rounded_up():
    """34 % of 3 nodes = 1.02 → 2 at a time (UnavailableCount rounds up)."""
    agent = workload("DaemonSet", "agent", None, updateStrategy={"rollingUpdate": {"maxUnavailable": "34%"}})
    done = run_of(agent, events=[rolled_out("agent", "50s")])
    assert [time for time, _ in story(done, "Deleted")] == [50, 50, 58]


def test_a_lost_node_holds_up_a_daemonset_that_may_miss_only_one():
    """It is node-1, lost at 10 s, noticed at 60 s.

    The rollout at 100 s: its old pod is not available, so it is deleted. It stays Terminating, and the node counts as
    unavailable: no other is updated. Back at 200 s: the deleted pod is gone, the new one is created at 201 s and runs
    at 206 s; only then node-0 is updated.
    """
    events = [lost("node-1", "10s"), rolled_out("agent", "100s"), {"at": "200s", "nodeJoins": "node-1"}]
    done = run_of(workload("DaemonSet", "agent", None), events=events, duration="210s")
    assert story(done, "Deleted", "Started", since=1) == [
        (100.0, "Deleted agent-node-1"),
        (206.0, "Deleted agent-node-0"),
        (206.0, "Started agent-rev2-node-1"),
    ]


# ---- what a file may say ---------------------------------------------------------------------------------------------


def test_a_rollout_by_manifest_takes_template_strategy_and_replicas_from_it():
    """v2 states 4 replicas instead of 2, and Recreate.

    The other number is seen first, before there is a new ReplicaSet: the old one is scaled up (isScalingEvent comes
    before the strategy in syncDeployment), and down to 0 in the next sync.
    """
    changed = workload("Deployment", "web", 4, strategy={"type": "Recreate"})
    event = {"at": "50s", "rollout": {"workload": "web", "manifest": "v2.json", "demand": {"memory": "20Mi"}}}
    done = run_of(workload("Deployment", "web", 2), others={"v2.json": changed}, events=[event])
    assert scaled(done) == [(50.0, "web", 2, 4), (50.0, "web", 4, 0), (52.0, "web-rev2", 0, 4)]


@pytest.mark.parametrize(
    ("event", "field", "what"),
    [
        ({"scale": {"workload": "agent", "replicas": 2}}, "scale.workload", "a DaemonSet cannot be scaled"),
        ({"scale": {"workload": "web"}}, "scale.replicas", "Required value"),
        ({"scale": {"workload": "nope", "replicas": 1}}, "scale.workload", 'no manifest has a workload "nope"'),
        ({"rollback": {"workload": "web"}}, "rollback", "there is no earlier revision"),
        ({"rollback": {"workload": "web", "toRevision": 7}}, "rollback.toRevision", "there is no revision 7"),
        ({"rollout": {"workload": "web", "manifest": "v9.json"}}, "rollout.manifest", "v9.json: not among"),
        ({"rollout": {"workload": "web", "demand": {"memory": "1Mi"}}, "nodeLost": "node-0"}, "", "exactly one event"),
        ({"rollout": {"workload": "late"}}, "at", "late arrives later"),
        ({"nodeDeleted": "node-0"}, "nodeDeleted", '"node-0" is there at this time'),
    ],
)
def test_an_event_that_cannot_happen_is_reported_with_its_place(event, field, what):
    manifests = (
        workload("Deployment", "web"),
        workload("Deployment", "late"),
        workload("DaemonSet", "agent", None),
    )
    reading = reading_of(
        *manifests, workloads=[{"workload": "late", "arrives": "60s"}], events=[{"at": "50s", **event}]
    )
    assert reading.scenario is None
    [problem] = reading.problems
    assert problem.field == f"spec.events[0]{'.' if field else ''}{field}"
    assert problem.what.startswith(what)
    assert problem.fix


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        ("Deployment", {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}}, "maxUnavailable"),
        ("Deployment", {"strategy": {"rollingUpdate": {"maxSurge": "many"}}}, "maxSurge"),
        ("Deployment", {"strategy": {"type": "Blue"}}, "type"),
        ("StatefulSet", {"podManagementPolicy": "Random"}, "podManagementPolicy"),
    ],
)
def test_a_strategy_that_the_api_server_rejects_is_an_error(kind, spec, field):
    reading = reading_of(workload(kind, "w", None, **spec))
    assert [problem.field.rpartition(".")[2] for problem in reading.problems] == [field]
    assert reading.scenario is None


def test_a_what_if_holds_for_later_revisions_too():
    """``memory@web=300Mi`` adds to the demand of both revisions: 300Mi, not only until 50 s."""
    files = {
        "scenario.yaml": {
            "apiVersion": "podqos.dev/v1alpha1",
            "kind": "Scenario",
            "metadata": {"name": "test"},
            "spec": {
                "duration": "100s",
                "nodes": [{"name": "node", "capacity": {"cpu": 4, "memory": "4Gi"}}],
                "manifests": ["all.json"],
                "events": [rolled_out("web", "50s")],
            },
        },
        "all.json": workload("Deployment", "web", 1),
    }
    given = {name: json.dumps(value).encode() for name, value in files.items()}
    read = read_given_scenario("scenario.yaml", given, Variation([parse_assignment("memory@web=300Mi")])).loaded()
    [change] = read.workload_changes
    assert change.template.demand_of(0, "main").anon_bytes == read.workloads[0].demand_of(0, "main").anon_bytes
    assert change.template.demand_of(0, "main").anon_bytes.at(0) == 300 * 2**20
