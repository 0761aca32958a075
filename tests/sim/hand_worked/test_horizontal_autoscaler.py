"""HorizontalPodAutoscalers whose decisions are worked out by hand from upstream's code.

Sources: Kubernetes v1.36.4 pkg/controller/podautoscaler/horizontal.go and replica_calculator.go, metrics-server
pkg/storage/pod.go. Measurements are at 0, 15, 30 s …, syncs at 15, 30 s …, each just after the measurement.
"""

from __future__ import annotations

import pytest

from podqos.agent.reasons import AutoscalerDecision
from podqos.cli.main import main
from podqos.model.time_units import SECOND_US
from podqos.reading.scenario_files import read_given_scenario
from podqos.sim.run import FinishedRun, simulate
from podqos.text.journal import line

DEPLOYMENT = """
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
"""
AUTOSCALER = """
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: web}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
  minReplicas: {least}
  maxReplicas: {most}
  metrics: [{metric}]
"""
SCENARIO = """
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {{name: scaled}}
spec:
  duration: {duration}
  manifests: [web.yaml]
  nodes: [{{name: worker, count: {nodes}, capacity: {{cpu: {cores}, memory: 64Gi}}}}]
  workloads: [{{workload: web, demand: {{{demand}}}}}]
"""
CPU_80 = "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}"


def files(
    demand: str,
    *,
    replicas: int = 2,
    requests: str = "cpu: 500m, memory: 64Mi",
    limits: str = "",
    metric: str = CPU_80,
    bounds: tuple[int, int] = (1, 10),
    behavior: str = "",
    duration: str = "5m",
    timing: str = "",
    nodes: int = 1,
    cores: str = "64",
) -> dict[str, bytes]:
    """Return a scenario of one autoscaled workload, and its manifest."""
    manifest = DEPLOYMENT.format(replicas=replicas, requests=requests, limits=limits)
    manifest += AUTOSCALER.format(least=bounds[0], most=bounds[1], metric=metric)
    manifest += f"  behavior: {behavior}\n" if behavior else ""
    scenario = SCENARIO.format(duration=duration, nodes=nodes, cores=cores, demand=demand)
    scenario += f"  timing: {timing}\n" if timing else ""
    return {"scenario.yaml": scenario.encode(), "web.yaml": manifest.encode()}


def ran(demand: str, **settings: object) -> FinishedRun:
    """Run such a scenario."""
    reading = read_given_scenario("scenario.yaml", files(demand, **settings))
    assert reading.scenario is not None, reading.problems
    return simulate(reading.scenario, check=True)


def scaled(done: FinishedRun) -> list[tuple[float, int, int]]:
    """Return when replicas were changed, from how many, and to how many."""
    return [
        (entry.time_us / SECOND_US, entry.because.current, entry.because.desired)
        for entry in done.entries
        if entry.kind == "Scaled" and isinstance(entry.because, AutoscalerDecision)
    ]


def held(done: FinishedRun) -> list[tuple[float, str, str, str]]:
    """Return when an autoscaler did nothing, with what stabilized, limited or failed it."""
    return [
        (entry.time_us / SECOND_US, because.stabilized, because.limited_by, because.failed)
        for entry in done.entries
        if entry.kind == "Held" and isinstance(because := entry.because, AutoscalerDecision)
    ]


def test_replicas_are_the_ceiling_of_pods_times_usage_over_target():
    """Usage 600m of 500m is 120 %; 120 / 80 = 1.5; ceil(1.5 x 2) = 3, at the first sync, 15 s after the start.

    At 30 s web-2 (started at 15 s) has run for 15 s, which is neither less than the resolution nor since before the
    last measurement: it has no metric. 1.5 > 1: it counts as 0. 1200m of 1500m is 80 %, ratio 1: nothing changes.
    At 45 s all three have one: ceil(1.5 x 3) = 5. At 60 s two have none: 1800m of 2500m is 72 %, 0.9 is within 0.1.
    At 75 s ceil(1.5 x 5) = 8. At 90 s three have none: 3000 of 4000 is 75 %: 0.9375. At 105 s ceil(1.5 x 8) = 12,
    but maxReplicas is 10.
    """
    done = ran("cpu: 600m", duration="2m")
    assert scaled(done) == [(15.0, 2, 3), (45.0, 3, 5), (75.0, 5, 8), (105.0, 8, 10)]


def test_usage_within_the_tolerance_changes_nothing():
    """440m of 500m is 88 %; 88 / 80 = 1.1, and 1.1 <= 1.0 + 0.1 (isWithin). 445m is 89 %: 1.1125, ceil(2.225) = 3."""
    assert scaled(ran("cpu: 440m", duration="1m")) == []
    assert scaled(ran("cpu: 445m", duration="20s")) == [(15.0, 2, 3)]


def test_a_tolerance_of_its_own_counts_for_its_direction_only():
    """With tolerance 0.2 for scaling up, 475m (95 %, 1.1875) is within it; 360m (72 %, 0.9) is within 0.1 downwards."""
    behavior = "{scaleUp: {tolerance: 200m}}"
    assert scaled(ran("cpu: 475m", behavior=behavior, duration="1m")) == []
    assert scaled(ran("cpu: 475m", behavior="{scaleDown: {tolerance: 200m}}", duration="20s")) == [(15.0, 2, 3)]


def test_an_autoscaler_sees_no_more_cpu_than_the_limit_grants():
    """The pods want 2 cores and get 500m, their limit and request: 100 % of requests. A target of 100 % is met exactly.

    So nothing is scaled, although every pod gets a quarter of what it wants.
    """
    metric = CPU_80.replace("80", "100")
    done = ran("cpu: 2", limits="cpu: 500m", metric=metric, duration="2m")
    assert scaled(done) == []
    assert any(entry.kind == "Throttled" for entry in done.entries)


def test_an_average_value_needs_no_requests():
    """Memory 300Mi per pod, target 200Mi: 1.5; ceil(1.5 x 2) = 3. Memory counts at once: pods need not be ready.

    At 30 s web-2 has no metric and counts as 0: 600Mi / 3 = 200Mi, ratio 1. At 45 s ceil(1.5 x 3) = 5.
    """
    metric = "{type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 200Mi}}}"
    done = ran("memory: 300Mi", requests="", metric=metric, duration="50s")
    assert scaled(done) == [(15.0, 2, 3), (45.0, 3, 5)]


def test_a_utilization_without_requests_fails_and_changes_nothing():
    """A container has no request (calculateRequests fails): the condition ScalingActive is false."""
    done = ran("cpu: 600m", requests="memory: 64Mi", duration="1m")
    assert scaled(done) == []
    assert held(done) == [(15.0, "", "", "NoRequest")]


def test_of_several_metrics_the_one_that_asks_for_most_decides():
    """cpu: 20 % of requests asks for ceil(0.25 x 2) = 1; memory: 96Mi of 64Mi is 150 %, target 50: ceil(3 x 2) = 6.

    Without behavior replicas at most double, or reach 4: max(2 x 2, 4) = 4.
    """
    memory = "{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 50}}}"
    done = ran("cpu: 100m, memory: 96Mi", metric=f"{CPU_80}, {memory}", duration="20s")
    assert scaled(done) == [(15.0, 2, 4)]
    (because,) = (entry.because for entry in done.entries if entry.kind == "Scaled")
    assert (because.metric, because.usage, because.target, because.proposed) == ("memory", 150, 50, 6)
    assert because.limited_by == "ScaleUpLimit"


def test_fewer_replicas_wait_until_no_recommendation_of_the_last_300_s_was_higher():
    """8 pods at 100m of 500m, 20 %: 0.25, ceil(0.25 x 8) = 2 from 15 s on.

    The first sync also records the current 8, at 15 s (recordInitialRecommendation). It counts while it is not before
    now - 300 s: at 315 s it is exactly at the cutoff, and at 330 s no more. Then 8 goes to 2 at once.
    At 345 s 2 pods ask for ceil(0.25 x 2) = 1, held at the 2 of the syncs before.
    """
    done = ran("cpu: 100m", replicas=8, duration="6m")
    assert scaled(done) == [(330.0, 8, 2)]
    assert held(done) == [(15.0, "ScaleDownStabilized", "", ""), (345.0, "ScaleDownStabilized", "", "")]


def test_with_a_behavior_the_window_ends_a_sync_earlier():
    """The same with an explicit window of 300 s: recommendations count that are after now - 300 s, so 315 s."""
    done = ran("cpu: 100m", replicas=8, duration="6m", behavior="{scaleDown: {stabilizationWindowSeconds: 300}}")
    assert scaled(done)[0] == (315.0, 8, 2)


def test_a_disabled_direction_is_left_alone_and_policies_of_how_fast_are_ignored(tmp_path, capsys):
    """2 pods ask for ceil(400 / 80 x 2) = 10. By default 2 + 4 or 2 x 2 a sync, whatever the policies; Disabled: 2."""
    slow = "{scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 60}]}}"
    assert scaled(ran("cpu: 2", behavior=slow, duration="20s")) == [(15.0, 2, 6)]
    assert scaled(ran("cpu: 2", behavior="{scaleUp: {selectPolicy: Disabled}}", duration="1m")) == []
    for name, data in files("cpu: 600m", behavior=slow, duration="1m").items():
        (tmp_path / name).write_bytes(data)
    assert main(["simulate", str(tmp_path / "scenario.yaml"), "-o", "csv"]) == 0
    assert "ignored: replicas change as fast as by default" in capsys.readouterr().err


def test_a_window_upwards_applies_the_lowest_recent_recommendation():
    """From 60 s on 1 core of 500m, 200 %: 2.5 x 2 = 5. With scaleUp window 60 s the least of the last 60 s counts.

    Up to 60 s usage is 400m: 80 %, recommendation 2. Measured at 75 s: 5. The last 2 is recorded at 60 s (the
    measurement at 60 s is from before); it is after now - 60 s up to 105 s, and at 120 s no more: 60 = 120 - 60.
    """
    done = ran(
        "cpu: {steps: {0s: 400m, 60s: 1}, clock: scenario}",
        behavior="{scaleUp: {stabilizationWindowSeconds: 60}}",
        duration="125s",
    )
    assert scaled(done) == [(120.0, 2, 5)]
    assert held(done) == [(75.0, "ScaleUpStabilized", "", "")]


def test_replicas_outside_of_the_bounds_are_set_to_them_without_a_metric():
    """12 > maxReplicas 10 and 2 < minReplicas 3 are corrected at the first sync, whatever the usage."""
    assert scaled(ran("cpu: 400m", replicas=12, duration="20s")) == [(15.0, 12, 10)]
    assert scaled(ran("cpu: 400m", bounds=(3, 10), duration="20s")) == [(15.0, 2, 3)]


def test_pending_pods_count_as_using_nothing_when_more_are_wanted():
    """One node of 1000m: web-0 and web-1 (500m each) fill it. At 15 s 1.5 x 2 = 3; web-2 is pending.

    At 30 s it is unready, and 1.5 > 1: it counts as 0: 1000m / 1500m is 66 %, for usage is shared: 500m each, 100 %.
    100 / 80 = 1.25; ceil(2.5) = 3 at 15 s. With the pending one 66 / 80 = 0.825: the direction would change: 3 stays.
    """
    done = ran("cpu: 600m", duration="1m", cores="1")
    assert scaled(done) == [(15.0, 2, 3)]


def test_metrics_are_seen_after_their_delay():
    """With a delay of 20 s the measurement of 15 s is seen at 35 s: by the sync at 45 s. That of 0 s gives no usage."""
    assert scaled(ran("cpu: 600m", duration="50s", timing="{metricsDelay: 20s}")) == [(45.0, 2, 3)]


def test_requests_of_a_service_are_a_metric_of_pods():
    """100 requests per second on 2 pods are 50 each, target 20: 2.5; ceil(2.5 x 2) = 5, limited to max(2 x 2, 4) = 4.

    At 30 s each of 4 has 25: 1.25; ceil(1.25 x 4) = 5, and the recommendation of 15 s was 5, too. At 45 s 5 pods have
    20: ratio 1. Metrics of pods do not depend on readiness.
    """
    target = "{type: AverageValue, averageValue: 20}"
    metric = f"{{type: Pods, pods: {{metric: {{name: http_requests_per_second}}, target: {target}}}}}"
    done = ran("service: {requestsPerSecond: 100, cost: 1 cpu-ms}", metric=metric, duration="1m")
    assert scaled(done) == [(15.0, 2, 4), (30.0, 4, 5)]
    first = next(entry for entry in done.entries if isinstance(entry.because, AutoscalerDecision))
    assert line(first) == (
        "web scaled from 2 to 4 replicas: http_requests_per_second 50 per pod, target 20, asks for 5, "
        "at most 4 at this sync"
    )


def test_the_load_of_a_service_falls_as_pods_are_added():
    """100 requests per second of 10 ms are 1 core: 500m on each of 2 pods, 100 %: 1.25; ceil(2.5) = 3.

    On 3 pods each has 333m of 500m, 66 %: 0.83; at 45 s ceil(0.825 x 3) = 3. It stays.
    """
    done = ran("service: {requestsPerSecond: 100, cost: 10 cpu-ms}", duration="3m")
    assert scaled(done) == [(15.0, 2, 3)]


def test_the_words_of_a_decision_have_its_figures():
    done = ran("cpu: 600m", duration="20s")
    (entry,) = (entry for entry in done.entries if entry.kind == "Scaled")
    assert line(entry) == "web scaled from 2 to 3 replicas: cpu 120 % of requests, target 80 %"


@pytest.mark.parametrize(
    ("metric", "what"),
    [
        (
            "{type: External, external: {metric: {name: queue_length}, target: {type: Value, value: 10}}}",
            "ignored: nothing in a simulation provides the metric queue_length",
        ),
    ],
)
def test_what_a_simulation_ignores_of_an_autoscaler_is_said(tmp_path, capsys, metric, what):
    for name, data in files("cpu: 600m", metric=metric, duration="1m").items():
        (tmp_path / name).write_bytes(data)
    assert main(["simulate", str(tmp_path / "scenario.yaml"), "-o", "csv"]) == 0
    assert what in capsys.readouterr().err
