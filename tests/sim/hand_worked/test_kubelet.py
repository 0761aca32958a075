"""Stopping pods, as the kubelet does it: worked out by hand from upstream's code.

Node ``n`` has 1000Mi, an eviction threshold of 100Mi and nothing else on it; the kubelet checks at 0, 10, 20 s …
"""

from __future__ import annotations

import json

import pytest

from podqos.reading.scenario_files import ScenarioReading, read_given_scenario
from podqos.sim.run import FinishedRun, simulate
from sim.worlds import lines

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
