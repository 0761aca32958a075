"""VerticalPodAutoscalers whose decisions are worked out by hand from upstream's code.

Source: kubernetes/autoscaler vertical-pod-autoscaler-1.7.1 pkg/recommender, pkg/updater, pkg/utils/vpa. Recommender and
updater run at 60 s, 120 s, … after the measurement of that moment.
"""

from __future__ import annotations

import pytest

from podqos.agent.reasons import VerticalUpdate
from podqos.cli.main import main
from podqos.controllers.vertical_recommender import ContainerPeak, Usage
from podqos.model.time_units import DAY_US, MINUTE_US, SECOND_US
from podqos.reading.scenario_files import read_given_scenario
from podqos.sim.run import FinishedRun, simulate
from podqos.words.journal import line

MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers:
      - {{name: web, image: web, resources: {{requests: {{{requests}}}, limits: {{{limits}}}}}}}
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {{name: web}}
spec:
  targetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
  updatePolicy: {{updateMode: {mode}{update}}}
  resourcePolicy: {{containerPolicies: [{policy}]}}
{status}
"""
SCENARIO = """
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {{name: vertical}}
spec:
  duration: {duration}
  manifests: [web.yaml]
  nodes: [{{name: worker, capacity: {{cpu: 64, memory: 64Gi}}}}]
  workloads: [{{workload: web, demand: {{{demand}}}}}]
"""
MI = 2**20


def files(
    demand: str,
    *,
    replicas: int = 4,
    requests: str = "cpu: 100m, memory: 300Mi",
    limits: str = "",
    mode: str = "Recreate",
    update: str = "",
    policy: str = "",
    status: str = "",
    duration: str = "5m",
) -> dict[str, bytes]:
    """Return a scenario of one autoscaled workload, and its manifest."""
    manifest = MANIFEST.format(
        replicas=replicas, requests=requests, limits=limits, mode=mode, update=update, policy=policy, status=status
    )
    return {
        "scenario.yaml": SCENARIO.format(duration=duration, demand=demand).encode(),
        "web.yaml": manifest.encode(),
    }


def ran(demand: str, **settings: object) -> FinishedRun:
    """Run such a scenario."""
    reading = read_given_scenario("scenario.yaml", files(demand, **settings))
    assert reading.scenario is not None, reading.problems
    return simulate(reading.scenario, check=True)


def evicted(done: FinishedRun) -> list[tuple[float, str, str]]:
    """Return when pods were evicted, and why."""
    return [
        (entry.time_us / SECOND_US, entry.pod or "", entry.because.why)
        for entry in done.entries
        if entry.kind == "Drained" and isinstance(entry.because, VerticalUpdate)
    ]


def changes(done: FinishedRun) -> dict[str, tuple[int | None, int | None]]:
    """Return what the first pod to be changed gets, by resource: request and limit."""
    because = next(entry.because for entry in done.entries if isinstance(entry.because, VerticalUpdate))
    return {change.resource: (change.request_after, change.limit_after) for change in because.changes}


def test_the_target_is_the_end_of_the_bucket_of_the_90th_percentile_plus_15_percent():
    """800m: log(0.8 x 0.05 / 0.01 + 1) / log(1.05) = 32.99, bucket 32; it ends at 0.2 x (1.05^33 - 1) = 0.80064: 800m.

    800 + int(800 x 0.15) = 920m. 400Mi: log(419430400 x 0.05 / 1e7 + 1) / log(1.05) = 23.2, bucket 23; it ends at
    2e8 x (1.05^24 - 1) = 445019988 bytes; with 15 % (66752998) 511772986. The limit of 600Mi is twice the request.
    """
    done = ran("memory: 400Mi, cpu: 800m", limits="memory: 600Mi")
    assert changes(done) == {"cpu": (920, None), "memory": (511772986, 2 * 511772986)}


def test_pods_are_evicted_once_their_request_is_below_the_lower_bound_half_of_them_at_a_time():
    """At 60 s there is one sample, no time between samples: confidence 0, the lower bound is 0 and nothing happens.

    At 120 s the time between samples is 60 s: 60 / 86400 = 0.000694 days (8 samples of a minute would be 0.0056).
    Lower bound of cpu: 920m x (1 + 0.001 / 0.000694)^-2 = 920 x 0.168 = 154m > 100m: outside of the range.
    4 replicas, tolerance int(4 x 0.5) = 2: while more than 2 are alive, one may go: two at 120 s, two at 180 s.
    """
    done = ran("memory: 250Mi, cpu: 800m")
    assert [(time, why) for time, _, why in evicted(done)] == [
        (120.0, "OutsideRecommendedRange"),
        (120.0, "OutsideRecommendedRange"),
        (180.0, "OutsideRecommendedRange"),
        (180.0, "OutsideRecommendedRange"),
    ]


def test_new_pods_get_the_recommendation_and_stay():
    """What replaces the evicted pods requests 920m and is within the range from then on."""
    done = ran("memory: 250Mi, cpu: 800m", duration="15m")
    assert len(evicted(done)) == 4
    stored = [entry for entry in done.entries if entry.kind == "Scaled" and isinstance(entry.because, VerticalUpdate)]
    assert len(stored) == 4
    assert line(stored[0]).startswith("web-0-r1: VerticalPodAutoscaler recommends cpu 100m → 920m, memory 300Mi → ")


def test_a_workload_of_one_pod_is_left_alone_unless_the_object_allows_it():
    """--min-replicas is 2; with updatePolicy.minReplicas 1 the only pod goes: 1 == 1 and int(1 x 0.5) == 0."""
    assert evicted(ran("memory: 250Mi, cpu: 800m", replicas=1)) == []
    assert len(evicted(ran("memory: 250Mi, cpu: 800m", replicas=1, update=", minReplicas: 1"))) == 1


def test_requests_stay_within_min_allowed_and_max_allowed():
    """Recommended are 920m and at least 250Mi; the policy allows 500m and asks for 1Gi."""
    done = ran(
        "memory: 100Mi, cpu: 800m",
        policy='{containerName: "*", maxAllowed: {cpu: 500m}, minAllowed: {memory: 1Gi}}',
        requests="cpu: 50m, memory: 300Mi",
    )
    assert changes(done) == {"cpu": (500, None), "memory": (1024 * MI, None)}


def test_with_requests_only_the_limit_stays_and_bounds_the_request():
    """920m would be more than the limit of 850m: the request is 850m, the limit stays."""
    policy = '{containerName: "*", controlledValues: RequestsOnly, controlledResources: [cpu]}'
    done = ran("memory: 250Mi, cpu: 800m", limits="cpu: 850m", policy=policy)
    assert changes(done) == {"cpu": (850, 850)}


def test_mode_initial_changes_new_pods_only_and_off_none():
    """Nothing is evicted; without new pods nothing changes."""
    assert evicted(ran("memory: 250Mi, cpu: 800m", mode="Initial")) == []
    reading = read_given_scenario("scenario.yaml", files("cpu: 800m", mode='"Off"'))
    assert reading.loaded().vertical_autoscalers == ()


def test_a_stated_recommendation_is_used_as_it_is():
    """LowerBound 200m > 100m: outside of the range at the first run of the updater, 60 s."""
    status = """status:
  recommendation:
    containerRecommendations:
    - {containerName: web, target: {cpu: 300m}, lowerBound: {cpu: 200m}, upperBound: {cpu: 1}}"""
    done = ran("memory: 250Mi, cpu: 50m", status=status, duration="70s")
    assert [time for time, _, _ in evicted(done)] == [60.0, 60.0]
    assert changes(done) == {"cpu": (300, None)}


def test_an_oom_kill_within_ten_minutes_evicts_with_20_percent_or_100mi_more():
    """A limit of 300Mi, as requested, is reached at 90 s: OOM kill. Needed: max(300Mi + 100Mi, 360Mi) = 400Mi.

    419430400 bytes is bucket 23, which ends at 445019988; with 15 % 511772986. The request is within the range of a
    short history, but the container was killed within ten minutes of its start: quick OOM.
    """
    done = ran("memory: 250Mi + 100Mi at 90s, cpu: 50m", limits="memory: 300Mi", duration="130s")
    assert {why for _, _, why in evicted(done)} == {"QuickOOM"}
    assert changes(done)["memory"] == (511772986, 511772986)


def test_a_pod_within_the_range_is_changed_when_it_is_twelve_hours_old():
    """150m: log(1.75) / log(1.05) = 11.5, bucket 11, which ends at 0.2 x (1.05^12 - 1) = 0.1592: 159 + 23 = 182m.

    250m are requested: 27 % more. The upper bound, 182m x (1 + 1 / 0.5 days), is 546m at 12 h and more before: within
    the range. So nothing is changed for 12 h; then 0.27 >= 0.1, and two of the four go.
    """
    done = ran("memory: 100Mi, cpu: 150m", requests="cpu: 250m, memory: 250Mi", duration="12h")
    assert [(time, why) for time, _, why in evicted(done)] == [(12 * 3600.0, "LongLived")] * 2


def test_newer_samples_weigh_more():
    """A day of 100m, then a day of 1000m: by half-life the second day has two thirds of the weight.

    The lower third is 100m, so the median is 1000m, and the 30th percentile is 100m.
    """
    usage = Usage()
    for minute in range(2 * 24 * 60):
        usage.add_cpu(100 if minute < 24 * 60 else 1000, minute * MINUTE_US)
    assert usage.estimate(1)["lower"]["cpu"] > 900


def test_of_memory_the_peak_of_each_day_counts_once():
    """In a day 100Mi, 500Mi, 200Mi: the peak is 500Mi. log(524288000 x 5e-9 + 1) / log(1.05) = 26.4: bucket 26."""
    usage, peak = Usage(), ContainerPeak()
    usage.add_cpu(10, 0)
    for minute, amount in enumerate((100, 500, 200)):
        usage.add_memory(peak, amount * MI, minute * MINUTE_US)
    ends = 1e7 * (1.05 ** (26 + 1) - 1) / 0.05
    assert usage.estimate(1)["target"]["memory"] == int(ends) + int(int(ends) * 0.15)
    usage.add_memory(peak, 10 * MI, DAY_US + MINUTE_US)
    assert peak.memory_bytes == 10 * MI


def resized(done: FinishedRun) -> list[tuple[float, str]]:
    """Return when pods were resized in place."""
    return [(entry.time_us / SECOND_US, entry.pod or "") for entry in done.entries if entry.kind == "Resized"]


def test_in_place_pods_are_resized_without_a_restart_half_of_them_at_a_time():
    """As above, but with InPlaceOrRecreate: at 120 s two pods, at 180 s the others. None is evicted or restarted."""
    done = ran("memory: 250Mi, cpu: 800m", mode="InPlaceOrRecreate")
    assert [time for time, _ in resized(done)] == [120.0, 120.0, 180.0, 180.0]
    assert evicted(done) == []
    assert not any(entry.kind == "Restarted" for entry in done.entries)


def test_a_resize_that_the_api_server_rejects_becomes_an_eviction():
    """A BestEffort pod would become Burstable, which no resize may do. Without a request it is outside of any range.

    So at 60 s, with the first sample, two of four pods are evicted.
    """
    done = ran("memory: 250Mi, cpu: 800m", requests="", mode="InPlaceOrRecreate", duration="70s")
    assert [time for time, _, _ in evicted(done)] == [60.0, 60.0]
    assert resized(done) == []


def test_a_resize_that_is_deferred_for_more_than_five_minutes_becomes_an_eviction():
    """A stated target of 40 cores: two pods of it do not fit on a node of 64.

    At 60 s web-0 is resized; web-1 waits (Deferred). At 120 s web-2 and web-3 are asked for, and wait. At 360 s web-1
    has waited for 300 s, which is not more than 5 min; at 420 s, after 360 s, it is evicted.
    """
    status = """status:
  recommendation:
    containerRecommendations:
    - {containerName: web, target: {cpu: 40}, lowerBound: {cpu: 20}, upperBound: {cpu: 60}}"""
    done = ran("memory: 250Mi, cpu: 50m", status=status, mode="InPlaceOrRecreate", duration="425s")
    assert [pod for _, pod in resized(done)] == ["default/web-0"]
    assert [(time, pod) for time, pod, _ in evicted(done)] == [(420.0, "default/web-1")]


def test_budgets_are_asked_before_a_pod_is_evicted():
    """MinAvailable 4 of 4: the eviction API refuses every eviction."""
    budget = """
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 4, selector: {matchLabels: {app: web}}}
"""
    given = files("memory: 250Mi, cpu: 800m")
    given["web.yaml"] += budget.encode()
    assert evicted(simulate(read_given_scenario("scenario.yaml", given).loaded())) == []


@pytest.mark.parametrize(("mode", "what"), [("InPlace", "ignored: the feature gate"), ("Maybe", "unknown mode")])
def test_modes_that_do_nothing_or_do_not_exist_are_said(tmp_path, capsys, mode, what):
    for name, data in files("cpu: 800m", mode=mode, duration="1m").items():
        (tmp_path / name).write_bytes(data)
    main(["simulate", str(tmp_path / "scenario.yaml"), "-o", "csv"])
    assert what in capsys.readouterr().err
