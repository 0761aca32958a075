"""Stopping pods, as the kubelet does it: worked out by hand from upstream's code.

Node ``n`` has 1000Mi, an eviction threshold of 100Mi and nothing else on it; the kubelet checks at 0, 10, 20 s …
"""

from __future__ import annotations

import json

import pytest

from podqos.model.time_units import SECOND_US
from podqos.reading.scenario_files import ScenarioReading, read_given_scenario
from podqos.sim.run import FinishedRun, simulate
from sim.worlds import lines

MI = 1 << 20
KUBELET = {"evictionHard": {"memory.available": "100Mi"}, "enforceNodeAllocatable": []}
NODE = {
    "name": "n",
    "capacity": {"cpu": 4, "memory": "1000Mi"},
    "watermarks": {"min": "1Mi"},
    "kubelet": KUBELET,
}


def pod_of(name: str, *containers: dict, **spec: object) -> dict:
    """Return the manifest of a pod; without containers it has one called main."""
    own = [{"image": "x", **container} for container in containers or ({"name": "main"},)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": own, **spec}}


def reading_of(manifests: list[dict], workloads: list[dict], **spec: object) -> ScenarioReading:
    """Read a scenario as a user would write it."""
    usual = {"duration": "100s", "nodes": [NODE], "manifests": ["pods.json"], "workloads": workloads}
    document = {
        "apiVersion": "podqos.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "test"},
        "spec": {**usual, **spec},
    }
    listed = {"apiVersion": "v1", "kind": "List", "items": manifests}
    given = {"scenario.yaml": json.dumps(document).encode(), "pods.json": json.dumps(listed).encode()}
    return read_given_scenario("scenario.yaml", given)


def run_of(manifests: list[dict], workloads: list[dict], **spec: object) -> FinishedRun:
    """Run a scenario with all checkers."""
    reading = reading_of(manifests, workloads, **spec)
    return simulate(reading.loaded(), check=True)


def sized(name: str, request: str, limit: str, **fields: object) -> dict:
    """Return a pod whose container requests memory and has a limit."""
    resources = {"requests": {"memory": request}, "limits": {"memory": limit}}
    return pod_of(name, {"name": "main", "resources": resources, **fields})


def sleeping(seconds: int) -> dict:
    """Return a lifecycle with a hook that sleeps."""
    return {"lifecycle": {"preStop": {"sleep": {"seconds": seconds}}}}


# ---- no container has less than 2 s ----------------------------------------------------------------------------------


def hungry(name: str, at: str = "15s") -> dict:
    """Return the demand of a workload that uses 950Mi from 15 s on."""
    return {"workload": name, "nodes": ["n"], "demand": {"memory": {"steps": {"0s": "1Mi", at: "950Mi"}}}}


def test_a_pod_evicted_by_a_hard_threshold_has_two_seconds_though_its_grace_period_is_one():
    """950Mi at 15 s leave 50Mi < 100Mi, which the check at 20 s sees.

    It evicts with an override of 1 s (immediateEvictionGracePeriodSeconds), which killContainer raises to 2 s. The
    container would take 10 s: it is killed at 22 s.
    """
    done = run_of([pod_of("web")], [hungry("web")], timing={"containerStop": "10s"})
    assert lines(done, "Evicted", "Stopped") == [(20, "Evicted", "default/web"), (22, "Stopped", "default/web")]


def test_a_container_that_ends_sooner_than_its_two_seconds_is_gone_then():
    """The same, but the container takes 1.5 s after SIGTERM: gone at 21.5 s."""
    done = run_of([pod_of("web")], [hungry("web")], timing={"containerStop": "1500ms"})
    assert lines(done, "Stopped") == [(21.5, "Stopped", "default/web")]


@pytest.mark.parametrize(("most", "own", "stopped"), [(0, 30, 32), (1, 30, 32), (5, 30, 35), (5, 1, 32), (5, 3, 33)])
def test_a_soft_eviction_has_the_smaller_of_both_grace_periods_and_at_least_two_seconds(most, own, stopped):
    """Soft threshold of 100Mi, met at 20 s and for 10 s at 30 s: evicted with min(evictionMaxPodGracePeriod, own).

    0 → 1 (calculateEffectiveGracePeriod) → 2 s; 1 → 2; 5 → 5; min(5, 1) = 1 → 2; min(5, 3) = 3.
    """
    soft = {
        "evictionHard": {"memory.available": "0%"},
        "evictionSoft": {"memory.available": "100Mi"},
        "evictionSoftGracePeriod": {"memory.available": "10s"},
        "evictionMaxPodGracePeriod": most,
        "enforceNodeAllocatable": [],
    }
    made = pod_of("web", terminationGracePeriodSeconds=own)
    done = run_of([made], [hungry("web")], nodes=[{**NODE, "kubelet": soft}], timing={"containerStop": "60s"})
    assert lines(done, "Evicted", "Stopped") == [(30, "Evicted", "default/web"), (stopped, "Stopped", "default/web")]


@pytest.mark.parametrize(("grace", "stopped"), [(0, 12), (1, 12), (2, 12), (3, 13), (30, 40)])
def test_a_deleted_pod_with_a_grace_period_of_less_than_two_seconds_has_two(grace, stopped):
    """Deleted at 10 s; its container would take 60 s. killContainer: max(2, grace)."""
    made = pod_of("web", terminationGracePeriodSeconds=grace)
    gone = {"workload": "web", "nodes": ["n"], "deleted": "10s"}
    done = run_of([made], [gone], timing={"containerStop": "60s"})
    assert lines(done, "Stopped") == [(stopped, "Stopped", "default/web")]


# ---- preStop is part of the grace period -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sleep", "grace", "takes", "stopped"),
    [(5, 30, "3s", 18), (5, 30, "60s", 40), (29, 30, "60s", 41), (40, 30, "60s", 42), (5, 30, "0s", 15)],
)
def test_a_pre_stop_hook_takes_its_time_off_the_grace_period(sleep, grace, takes, stopped):
    """Deleted at 10 s. executePreStopHook runs for at most the grace period, then killContainer leaves what is left.

    5 s of 30: SIGTERM at 15 s, 25 s left: gone after 3 s at 18 s, or killed at 40 s. 29 s of 30: SIGTERM at 39 s, one
    second left is raised to two: killed at 41 s. A hook of 40 s is given up after 30 s: SIGTERM at 40 s, killed at 42.
    """
    made = pod_of("web", {"name": "main", **sleeping(sleep)}, terminationGracePeriodSeconds=max(grace, sleep))
    made["spec"]["terminationGracePeriodSeconds"] = grace
    given = {"workload": "web", "nodes": ["n"], "deleted": "10s"}
    if sleep > grace:  # the API server refuses such a sleep; a command may take as long
        made["spec"]["containers"][0]["lifecycle"] = {"preStop": {"exec": {"command": ["drain"]}}}
        given["demand"] = {"preStop": f"{sleep}s"}
    done = run_of([made], [given], timing={"containerStop": takes})
    assert lines(done, "Stopped") == [(stopped, "Stopped", "default/web")]


def test_a_hard_eviction_cuts_a_pre_stop_hook_off_after_a_second():
    """Evicted at 20 s with 1 s: the hook of 10 s runs until 21 s, then max(2, 1 - 1) = 2 s: killed at 23 s."""
    made = pod_of("web", {"name": "main", **sleeping(10)})
    done = run_of([made], [hungry("web")], timing={"containerStop": "10s"})
    assert lines(done, "Evicted", "Stopped") == [(20, "Evicted", "default/web"), (23, "Stopped", "default/web")]


def test_only_whole_seconds_of_a_hook_count():
    """A hook of 4.9 s under a grace period of 6 s: 6 - 4 = 2 s are left at 14.9 s: killed at 16.9 s, not at 16."""
    made = pod_of("web", {"name": "main", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}})
    made["spec"]["terminationGracePeriodSeconds"] = 6
    gone = {"workload": "web", "nodes": ["n"], "deleted": "10s", "demand": {"preStop": "4900ms"}}
    done = run_of([made], [gone], timing={"containerStop": "60s"})
    assert lines(done, "Stopped") == [(16.9, "Stopped", "default/web")]


def test_memory_is_free_as_soon_as_its_container_has_ended_though_another_still_runs_its_hook():
    """``quick`` holds 500Mi, ``slow`` 300Mi and a hook of 20 s. Deleted at 10 s: 500Mi are free at once, 300Mi at 30 s.

    So ``late``, which wants 650Mi at 12 s, fits (650 + 300 = 950 of 1000Mi) and is not killed.
    """
    made = pod_of("web", {"name": "quick"}, {"name": "slow", **sleeping(20)})
    demands = {"quick": {"memory": "500Mi"}, "slow": {"memory": "300Mi"}}
    gone = {"workload": "web", "nodes": ["n"], "deleted": "10s", "containers": demands}
    late = {"workload": "late", "nodes": ["n"], "demand": {"memory": {"steps": {"0s": "1Mi", "12s": "650Mi"}}}}
    none = {**NODE, "kubelet": {"evictionHard": {"memory.available": "0%"}, "enforceNodeAllocatable": []}}
    done = run_of([made, pod_of("late")], [gone, late], nodes=[none])
    assert lines(done, "OOMKilled", "Stopped") == [(30, "Stopped", "default/web")]


def test_a_hook_whose_duration_nobody_states_is_reported():
    made = pod_of("web", {"name": "main", "lifecycle": {"preStop": {"exec": {"command": ["drain"]}}}})
    (problem,) = reading_of([made], [{"workload": "web", "nodes": ["n"]}]).problems
    assert problem.what == "the preStop hook of default/web (main) is simulated as taking no time"
    made["spec"]["containers"][0]["lifecycle"] = {"postStart": {"exec": {"command": ["warm"]}}}
    (problem,) = reading_of([made], [{"workload": "web", "nodes": ["n"]}]).problems
    assert problem.what == "ignored: the hook takes no time and does not fail"
    (problem,) = reading_of([pod_of("web")], [{"workload": "web", "demand": {"preStop": "5s"}}]).problems
    assert (problem.what, problem.severity) == ("default/web (main) has no preStop hook", "error")


# ---- sidecars end after the others, within the same grace period -----------------------------------------------------


def with_sidecars(grace: int) -> dict:
    """Return a pod with the sidecars ``a`` and ``b``, in this order."""
    sidecars = [{"name": name, "image": "x", "restartPolicy": "Always"} for name in ("a", "b")]
    return pod_of("web", initContainers=sidecars, terminationGracePeriodSeconds=grace)


@pytest.mark.parametrize(("grace", "takes", "stopped"), [(30, 5, 25), (12, 5, 22), (8, 10, 20), (30, 12, 40)])
def test_sidecars_wait_for_the_others_and_end_in_reverse_order(grace, takes, stopped):
    """Deleted at 10 s; each container takes as long to end (waitForTurn, newTerminationOrdering).

    30 s, 5 s each: main ends at 15, b at 20, a at 25. 12 s: main at 15, b at 20, a has 2 s left and is killed at 22.
    8 s, 10 s each: main is killed at 18, when the grace period of a and b is over, too: both have 2 s, until 20. 30 s,
    12 s each: main ends at 22, b at 34, when a has waited for 24 s: the 6 s that are left end at 40.
    """
    gone = {"workload": "web", "nodes": ["n"], "deleted": "10s"}
    done = run_of([with_sidecars(grace)], [gone], timing={"containerStop": f"{takes}s"})
    assert lines(done, "Stopped") == [(stopped, "Stopped", "default/web")]


def test_a_deleted_pod_that_is_evicted_meanwhile_has_the_shorter_grace_period():
    """Deleted at 12 s with 30 s of grace: SIGTERM, and SIGKILL at 42 s.

    At 15 s it uses 950Mi, so the check at 20 s evicts it with 1 s, which is shorter: killed at 20 + 2 = 22 s
    (calculateEffectiveGracePeriod).
    """
    gone = {**hungry("web"), "deleted": "12s"}
    done = run_of([pod_of("web")], [gone], timing={"containerStop": "60s"})
    assert lines(done, "Evicted", "Stopped") == [(20, "Evicted", "default/web"), (22, "Stopped", "default/web")]


# ---- cordon and drain ------------------------------------------------------------------------------------------------


def deployment(name: str, replicas: int, kind: str = "Deployment", **spec: object) -> dict:
    """Return the manifest of a workload whose pods request 100Mi and carry the label app."""
    labels = {"app": name}
    requests = {"resources": {"requests": {"memory": "100Mi"}}}
    template = {"metadata": {"labels": labels}, "spec": pod_of(name, {"name": "main", **requests}, **spec)["spec"]}
    number = {} if kind == "DaemonSet" else {"replicas": replicas}
    made = {"selector": {"matchLabels": labels}, "template": template, **number}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": made}


def budget(name: str, **amount: object) -> dict:
    """Return the manifest of a budget for the pods of a workload."""
    spec = {"selector": {"matchLabels": {"app": name}}, **amount}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


def drained(manifests: list[dict], bound: dict[str, list[str]], **spec: object) -> FinishedRun:
    """Drain node a of two at 10 s; pods are bound to nodes first."""
    workloads = [{"workload": name, "nodes": nodes} for name, nodes in bound.items()]
    events = [{"at": "10s", "drain": {"node": "a"}}]
    nodes = [{**NODE, "name": name} for name in ("a", "b")]
    return run_of(manifests, workloads, **{"events": events, "nodes": nodes, **spec})


def happened(done: FinishedRun, *kinds: str) -> list[tuple[float, str, str]]:
    """Return time, kind and pod (or node) of entries."""
    return [
        (entry.time_us / SECOND_US, entry.kind.value, (entry.pod or entry.node).partition("/")[2] or entry.node)
        for entry in done.entries
        if entry.kind in kinds
    ]


DRAIN = ("Cordoned", "Drained", "DrainBlocked")


def test_a_cordoned_node_takes_no_pods_until_it_is_uncordoned():
    """Two pods of 600Mi arrive at 10 s; a node of 1000Mi has room for one.

    a is cordoned from 5 s to 20 s (NodeUnschedulable filter): one pod runs on b at 10 s, the other on a at 20 s.
    """
    big = deployment("web", 2)
    big["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["memory"] = "600Mi"
    events = [{"at": "5s", "cordon": "a"}, {"at": "20s", "uncordon": "a"}]
    nodes = [{**NODE, "name": name} for name in ("a", "b")]
    done = run_of([big], [{"workload": "web", "arrives": "10s"}], events=events, nodes=nodes)
    placed = [(entry.time_us / SECOND_US, entry.node) for entry in done.entries if entry.kind == "Placed"]
    assert placed == [(10, "b"), (20, "a")]
    assert happened(done, "Cordoned", "Uncordoned") == [(5, "Cordoned", "a"), (20, "Uncordoned", "a")]


def test_a_drain_evicts_what_a_budget_allows_and_tries_the_rest_again_every_five_seconds():
    """Four pods, two on a; minAvailable 3 allows one disruption.

    10 s: web-0 is evicted, 3 are healthy; web-2 (also on a) is refused: needs 3, has 3. The replacement is made at 11 s
    and runs on b. 15 s: 4 are healthy, web-2 is evicted.
    """
    done = drained([deployment("web", 4), budget("web", minAvailable=3)], {"web": ["a", "b"]})
    assert happened(done, *DRAIN) == [
        (10, "Cordoned", "a"), (10, "Drained", "web-0"), (10, "DrainBlocked", "web-2"), (15, "Drained", "web-2"),
    ]  # fmt: skip
    (refusal,) = [entry.because for entry in done.entries if entry.kind == "DrainBlocked"]
    assert refusal.message == (
        "Cannot evict pod as it would violate the pod's disruption budget. "
        "The disruption budget web needs 3 healthy pods and has 3 currently"
    )
    replaced = [(entry.time_us / SECOND_US, entry.node) for entry in done.entries if entry.kind == "Placed"]
    assert replaced == [(11, "b"), (16, "b")]


def test_a_budget_that_never_allows_a_disruption_keeps_the_pod_and_is_named_once():
    """One replica, maxUnavailable 0: 0 allowed at 10, 15, 20 … s."""
    done = drained([deployment("web", 1), budget("web", maxUnavailable=0)], {"web": ["a"]})
    assert happened(done, *DRAIN) == [(10, "Cordoned", "a"), (10, "DrainBlocked", "web-0")]


def test_a_drain_leaves_pods_of_daemon_sets_and_evicts_all_others():
    volumes = [{"name": "v", "emptyDir": {}}]
    made = [deployment("agent", 1, kind="DaemonSet"), deployment("web", 1, volumes=volumes), pod_of("bare")]
    done = drained(made, {"web": ["a"], "bare": ["a"]})
    assert [name for _, _, name in happened(done, "Drained")] == ["web-0", "bare"]


def test_an_unready_pod_is_evicted_if_its_budget_is_satisfied_without_it():
    """Two pods, minAvailable 1. web-0 on a ends at 2 s and 5 s and is in back-off until 14 s: not ready at 10 s.

    web-1 is healthy: 1 >= 1 > 0, so the eviction of web-0 needs no disruption (IfHealthyBudget), although none is
    allowed. With minAvailable 2 it is refused, unless the policy is AlwaysAllow.
    """
    exits = {"demand": {"exits": {"after": "2s", "code": 1}}}
    work = [{"workload": "web", "nodes": ["a", "b"], "perReplica": [exits, {"demand": {"memory": "1Mi"}}]}]
    nodes = [{**NODE, "name": name} for name in ("a", "b")]
    events = [{"at": "10s", "drain": {"node": "a"}}]

    def first(**amount: object) -> str:
        done = run_of([deployment("web", 2), budget("web", **amount)], work, events=events, nodes=nodes)
        return happened(done, "Drained", "DrainBlocked")[0][1]

    assert first(minAvailable=1) == "Drained"
    assert first(minAvailable=2) == "DrainBlocked"
    assert first(minAvailable=2, unhealthyPodEvictionPolicy="AlwaysAllow") == "Drained"


def test_two_budgets_for_one_pod_keep_it():
    """The eviction subresource answers 500, whatever they allow."""
    budgets = [budget("web", minAvailable=0), {**budget("web", minAvailable=0), "metadata": {"name": "again"}}]
    done = drained([deployment("web", 1), *budgets], {"web": ["a"]})
    (refusal,) = [entry.because for entry in done.entries if entry.kind == "DrainBlocked"]
    assert refusal.budget == "web and again"
    assert "more than one PodDisruptionBudget" in refusal.message


def test_a_replica_set_replaces_an_evicted_pod_while_it_still_stops():
    """Both pods are on a and sleep for 10 s in preStop; minAvailable 1.

    10 s: web-0 is evicted, web-1 refused (needs 1, has 1). A pod with a deletion timestamp does not count for its
    ReplicaSet (FilterActivePods): the replacement is made at 11 s and runs on b. 15 s: web-1 is evicted. web-0 is gone
    at 20 s, web-1 at 25 s.
    """
    made = [deployment("web", 2), budget("web", minAvailable=1)]
    made[0]["spec"]["template"]["spec"]["containers"][0] |= sleeping(10)
    done = drained(made, {"web": ["a"]})
    rows = [row[:2] for row in happened(done, "Drained", "Replaced", "Stopped")]
    assert rows == [
        (10, "Drained"), (11, "Replaced"), (15, "Drained"), (16, "Replaced"), (20, "Stopped"), (25, "Stopped"),
    ]  # fmt: skip


# ---- images ----------------------------------------------------------------------------------------------------------


def test_a_pod_that_arrives_starts_when_its_images_are_there_and_the_next_does_not_wait_for_them_again():
    """Pods of 0 s have their images. Another pulls from 10 s to 15 s; who needs the same image waits until then."""
    images = {"first": "x:1", "second": "x:1", "third": "y:1", "fourth": "y:1", "fifth": "y:1"}
    times = {"first": "0s", "second": "10s", "third": "10s", "fourth": "12s", "fifth": "16s"}
    made = [pod_of(name, {"name": "main", "image": image}) for name, image in images.items()]
    work = [{"workload": name, "nodes": ["n"], "arrives": at} for name, at in times.items()]
    done = run_of(made, work, timing={"imagePull": "5s"})
    assert {name: at for at, _, name in happened(done, "Started")} == {
        "first": 0, "second": 10, "third": 15, "fourth": 15, "fifth": 16,
    }  # fmt: skip


# ---- a node is lost, and comes back ----------------------------------------------------------------------------------


def lost_and_back(back: str, **spec: object) -> FinishedRun:
    """Lose node a, with one of two pods on it, at 100 s."""
    events = [{"at": "100s", "nodeLost": "a"}, {"at": back, "nodeJoins": "a"}]
    nodes = [{**NODE, "name": name} for name in ("a", "b")]
    work = [{"workload": "web", "nodes": ["a", "b"]}]
    return run_of([deployment("web", 2, **spec)], work, nodes=nodes, events=events, duration="600s")


def test_pods_of_a_node_that_is_back_in_time_start_anew_and_are_not_replaced():
    """Noticed at 150 s (node-monitor-grace-period 50 s), given up at 450 s (tolerationSeconds 300); back at 440 s."""
    done = lost_and_back("440s")
    assert [row for row in happened(done, "Lost", "Replaced", "Started") if row[0]] == [
        (100, "Lost", "a"), (440, "Started", "web-0"),
    ]  # fmt: skip


def test_pods_of_a_node_that_is_back_too_late_have_been_replaced_elsewhere():
    """Given up at 100 + 50 + 300 = 450 s and replaced a second later, on b; nothing of it starts on a at 460 s."""
    done = lost_and_back("460s")
    rows = [(at, kind) for at, kind, _ in happened(done, "Lost", "Replaced", "Started") if at]
    assert rows == [(100, "Lost"), (451, "Replaced"), (451, "Started")]
    (started,) = [entry.node for entry in done.entries if entry.kind == "Started" and entry.time_us]
    assert started == "b"


def test_a_shorter_toleration_gives_up_sooner():
    """TolerationSeconds 30: given up at 100 + 50 + 30 = 180 s, replaced at 181 s."""
    own = [
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
    ]
    done = lost_and_back("170s", tolerations=own)
    assert [at for at, _, _ in happened(done, "Replaced")] == []
    done = lost_and_back("190s", tolerations=own)
    assert [at for at, _, _ in happened(done, "Replaced")] == [181]


# ---- MemoryQoS: a container above memory.high is slowed --------------------------------------------------------------

QOS_KUBELET = {
    "evictionHard": {"memory.available": "0%"},
    "enforceNodeAllocatable": [],
    "featureGates": {"MemoryQoS": True},
    "memoryThrottlingFactor": 0.5,
}


def slowed(demand: dict, **spec: object) -> FinishedRun:
    """Run a container with memory.high = 100Mi + 0.5 × (400Mi - 100Mi) = 250Mi."""
    work = [{"workload": "web", "nodes": ["n"], "demand": demand}]
    nodes = [{**NODE, "kubelet": QOS_KUBELET}]
    return run_of([sized("web", "100Mi", "400Mi")], work, nodes=nodes, **spec)


def test_a_container_that_asks_for_more_than_its_limit_is_slowed_at_memory_high_and_killed_much_later():
    """It wants 600Mi at 10 s. Up to 1/80 above 250Mi it is not slowed: x = 3.125Mi.

    Then x³ grows by 12288 B/s × high² until x = high / √32 = 44.2Mi, where it sleeps the longest: after 117.8 s. From
    there 128Ki/s: (150 - 44.2)Mi / 128Ki/s = 846.5 s. So the limit is reached after 964.3 s, at 974.3 s (steps of 1 s
    and 10 s).
    """
    done = slowed({"memory": {"steps": {"0s": "50Mi", "10s": "600Mi"}}}, duration="1100s")
    (began, _, _), *_ = happened(done, "MemoryThrottled")
    (killed, _, _), *_ = happened(done, "OOMKilled")
    assert (began, killed) == (10, pytest.approx(974.3, abs=10))
    high = 250 * MI
    seconds = ((high**2 / 32) ** 1.5 - (high / 80) ** 3) / (12288 * high**2)
    assert seconds == pytest.approx(117.8, abs=0.1)
    (first,) = [entry.because for entry in done.entries if entry.kind == "MemoryThrottled"][:1]
    assert (first.high_bytes, first.denied_bytes >> 20) == (high, 346)


def test_a_slow_leak_is_slowed_where_the_kernel_sleeps_longer_than_it_takes():
    """1Mi/s: 256Ki every 0.25 s. The sleep 64 s × f² is as long at f = 1/16: at 250Mi + 15.6Mi, after 265.6 s.

    Looked at every second: a step that would grow less than 1Mi begins within two seconds of that.
    """
    done = slowed({"memory": "0 + 1Mi per 1s"}, duration="300s")
    (began, _, _), *_ = happened(done, "MemoryThrottled")
    assert began == pytest.approx(265.6, abs=2)


def test_page_cache_is_reclaimed_at_memory_high_before_anyone_is_slowed():
    """100Mi private, and page cache that rises to 300Mi: all above 250Mi is reclaimed, nobody sleeps or is killed."""
    done = slowed({"memory": "100Mi", "inactiveFile": "300Mi over 60s"})
    assert happened(done, "MemoryThrottled", "OOMKilled") == []


def test_a_container_that_wants_less_again_is_no_longer_slowed():
    done = slowed({"memory": {"steps": {"0s": "50Mi", "10s": "600Mi", "30500ms": "50Mi"}}})
    entries = [entry for entry in done.entries if entry.kind == "MemoryThrottled"]
    assert [(entry.time_us / SECOND_US, entry.because.is_over) for entry in entries] == [(10, False), (30.5, True)]
    assert happened(done, "OOMKilled") == []


# ---- huge pages ------------------------------------------------------------------------------------------------------


def huge(name: str, pages: str, memory: str = "50Mi") -> dict:
    """Return a pod that requests huge pages of 2Mi."""
    resources = {amount: {"memory": memory, "hugepages-2Mi": pages} for amount in ("requests", "limits")}
    return pod_of(name, {"name": "main", "resources": resources})


HUGE_NODE = {**NODE, "capacity": {"cpu": 4, "memory": "1000Mi", "hugepages-2Mi": "400Mi"}}


def test_huge_pages_are_scheduled_like_any_resource_and_are_no_memory_for_other_pods():
    """400Mi of 1000Mi are set aside; allocatable memory is 1000 - 400 - 100 (evictionHard) = 500Mi.

    a (300Mi of huge pages) fits, b (200Mi) does not: 400 - 300 = 100Mi. c requests 480Mi of memory: 50 + 480 > 500.
    Source: pkg/kubelet/nodestatus/setters.go (MachineInfo), pkg/scheduler/framework/plugins/noderesources/fit.go.
    """
    made = [huge("a", "300Mi"), huge("b", "200Mi"), sized("c", "480Mi", "480Mi"), sized("d", "450Mi", "450Mi")]
    work = [{"workload": name, "arrives": at} for name, at in (("a", "1s"), ("b", "2s"), ("c", "3s"), ("d", "4s"))]
    done = run_of(made, work, nodes=[HUGE_NODE])
    assert happened(done, "Placed") == [(1, "Placed", "a"), (4, "Placed", "d")]
    waiting = {entry.pod: entry.because.refusing[0].what for entry in done.entries if entry.kind == "Pending"}
    assert waiting == {"default/b": "hugepages-2Mi", "default/c": "memory"}


def test_the_kernel_runs_out_of_memory_where_huge_pages_begin_and_the_kubelet_of_1_36_does_not_see_it():
    """600Mi are left for everyone. A leak of 10Mi/s has them, less the watermark of 1Mi, after 59.9 s: OOM-killed.

    The kubelet counts 1000Mi - 590Mi at 59 s: far from its threshold of 100Mi.
    """
    leak = {"workload": "web", "nodes": ["n"], "demand": {"memory": "0 + 10Mi per 1s"}}
    done = run_of([pod_of("web")], [leak], nodes=[HUGE_NODE], duration="62s")
    (row,) = happened(done, "Evicted", "OOMKilled")
    assert (round(row[0], 1), row[1]) == (59.9, "OOMKilled")


def test_huge_pages_that_are_not_whole_pages_are_reported():
    nodes = [{**NODE, "capacity": {"cpu": 4, "memory": "1000Mi", "hugepages-2Mi": "3Mi"}}]
    (problem,) = reading_of([pod_of("web")], [], nodes=nodes).problems
    assert problem.what == "must be whole huge pages"
