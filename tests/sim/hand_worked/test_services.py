"""Services and probes under starvation, worked out by hand; the working stands in each test.

Services are a model (``sim/services``). Probes follow Kubernetes v1.36 pkg/kubelet/prober/worker.go and
pkg/kubelet/kuberuntime; how long an answer takes is a model.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from podqos.cli.main import main
from podqos.reading.scenario_files import load_scenario, read_scenario
from podqos.sim.run import FinishedRun, simulate
from podqos.sim.services.outcome import ServiceOutcome, ServiceSample

SECOND_US = 1_000_000

NODES = "[{name: node-1, capacity: {cpu: 8, memory: 8Gi}, filesystems: {nodefs: {capacity: 100Gi}}}]"


def pod(name: str, resources: str = "{}", *, container: str = "", spec: str = "") -> str:
    """Return the manifest of a pod with one container of its name."""
    more = f", {container}" if container else ""
    rest = f", {spec}" if spec else ""
    containers = f"[{{name: {name}, image: i, resources: {resources}{more}}}]"
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: {containers}{rest}}}\n"


def deployment(name: str, resources: str, replicas: int, *, container: str = "") -> str:
    """Return the manifest of a Deployment with one container of its name."""
    more = f", {container}" if container else ""
    containers = f"[{{name: {name}, image: i, resources: {resources}{more}}}]"
    template = f"{{metadata: {{labels: {{app: {name}}}}}, spec: {{containers: {containers}}}}}"
    selector = f"{{matchLabels: {{app: {name}}}}}"
    spec = f"{{replicas: {replicas}, selector: {selector}, template: {template}}}"
    return f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec: {spec}\n"


@pytest.fixture
def written(tmp_path: Path):
    """Write a scenario with its manifests; return its path."""

    def write(manifests: list[str], workloads: list[str], *, seconds: int = 60, nodes: str = NODES, more: str = ""):
        (tmp_path / "pods.yaml").write_text("---\n".join(manifests))
        (tmp_path / "scenario.yaml").write_text(
            "apiVersion: podqos.dev/v1alpha1\nkind: Scenario\nmetadata: {name: test}\nspec:\n"
            f"  duration: {seconds}s\n  manifests: [pods.yaml]\n  nodes: {nodes}\n{more}  workloads:\n"
            + "".join(f"  - {{{workload}}}\n" for workload in workloads)
        )
        return tmp_path / "scenario.yaml"

    return write


@pytest.fixture
def ran(written):
    """Write a scenario and run it with all checkers."""

    def run(manifests: list[str], workloads: list[str], **settings: object) -> FinishedRun:
        return simulate(load_scenario(str(written(manifests, workloads, **settings))), check=True)

    return run


def serves(name: str, service: str, more: str = "") -> str:
    return f"workload: {name}, demand: {{memory: 1Mi, service: {{{service}}}}}{more}"


def at(outcome: ServiceOutcome, seconds: float) -> ServiceSample:
    """Return a service at a time: the last sample up to then."""
    return [sample for sample in outcome.samples if sample.time_us <= seconds * SECOND_US][-1]


def entries(done: FinishedRun, *kinds: str) -> list[tuple[float, str, str]]:
    return [
        (entry.time_us / SECOND_US, entry.kind.value, (entry.pod or "").removeprefix("default/"))
        for entry in done.entries
        if entry.kind in kinds
    ]


ONE_CPU = "{requests: {cpu: 1, memory: 64Mi}, limits: {cpu: 1, memory: 64Mi}}"

# ---- one service ---------------------------------------------------------------------------------------------------


def test_below_saturation_a_pod_of_one_cpu_is_an_m_m_1_queue(ran):
    """30 requests/s of 20 ms on 1 CPU.

    Capacity 1 / 0.02 = 50/s, ρ = 30/50 = 0.6, and the pod wants 30 × 20 ms = 600m. One server: P(wait) = ρ = 0.6, and
    the wait falls off at μ − λ = 20/s. p50 = 20 ms + ln(0.6/0.5)/20 s = 29.116 ms; p99 = 20 ms + ln(0.6/0.01)/20 s =
    224.717 ms. Nothing is throttled: 600m is below the limit.
    """
    done = ran([pod("web", ONE_CPU)], [serves("web", "requestsPerSecond: 30, cost: 20 cpu-ms")], seconds=10)
    (web,) = done.services
    sample = at(web, 10)
    assert (sample.utilisation_permille, sample.waiting, sample.errors_permille) == (600, 0, 0)
    assert (sample.p50_us, sample.p99_us) == (29_116, 224_717)
    assert (web.requests, web.errors) == (300, 0)
    assert entries(done, "Throttled", "Overloaded") == []


def test_a_limit_below_one_core_slows_each_request_and_halves_the_capacity(ran):
    """500m: a request of 20 ms takes 40 ms, capacity 25/s. 10/s: ρ = 0.4.

    P(wait) = 0.4 < 0.5, so that the median does not wait: p50 = 40 ms. p99 = 40 ms + ln(0.4/0.01)/15 s = 285.925 ms.
    """
    half = "{limits: {cpu: 500m, memory: 64Mi}}"
    done = ran([pod("web", half)], [serves("web", "requestsPerSecond: 10, cost: 20 cpu-ms")], seconds=5)
    sample = at(done.services[0], 5)
    assert (sample.utilisation_permille, sample.p50_us, sample.p99_us) == (400, 40_000, 285_925)


def test_beyond_saturation_the_queue_fills_at_the_rate_of_the_excess_and_then_half_the_requests_are_refused(ran):
    """100/s against a capacity of 50/s: the queue of 100 grows by 50 a second, and is full after 2 s.

    From then on 1 − 50/100 = 50 % are refused. The wait for a full queue is 100/50 = 2 s: p50 = p99 = 2.02 s. In 10 s
    1000 arrive, 500 are answered, 100 wait at the end: 400 were refused. With all 8 workers busy it wants 8 cores.
    """
    done = ran([pod("web", ONE_CPU)], [serves("web", "requestsPerSecond: 100, cost: 20 cpu-ms")], seconds=10)
    (web,) = done.services
    assert [at(web, second).waiting for second in (0, 1, 2, 3)] == [0, 50, 100, 100]
    assert [at(web, second).errors_permille for second in (0, 1, 2, 9)] == [0, 0, 500, 500]
    assert (at(web, 5).p50_us, at(web, 5).p99_us) == (2_020_000, 2_020_000)
    assert (web.requests, web.refused, web.errors, web.cause) == (1000, 400, 400, "cpuLimit")
    assert entries(done, "Overloaded") == [(2.0, "Overloaded", "")]


def test_a_backlog_drains_at_the_rate_that_the_capacity_leaves(ran):
    """75/s for 4 s: the backlog grows by 25 a second to 100. Then 25/s: it falls by 25 a second, and is gone at 8 s."""
    service = "requestsPerSecond: {steps: {0s: 75, 4s: 25}}, cost: 20 cpu-ms, queue: 1000"
    (web,) = ran([pod("web", ONE_CPU)], [serves("web", service)], seconds=12).services
    assert [at(web, second).waiting for second in (2, 4, 6, 7, 8, 9)] == [50, 100, 50, 25, 0, 0]
    assert (web.requests, web.errors) == (500, 0)


def test_a_pod_goes_on_with_requests_whose_clients_have_given_up(ran):
    """The queue of the test before, and clients that wait 1 s.

    A request takes 20 ms, so it may wait 0.98 s: with 50 in the queue (1 s) it is too late. At 1 s and 2 s all answers
    are late, and at 2 s half are refused besides: all requests fail, though the pod answers 50 a second.
    """
    service = "requestsPerSecond: 100, cost: 20 cpu-ms, timeout: 1s"
    (web,) = ran([pod("web", ONE_CPU)], [serves("web", service)], seconds=10).services
    assert [at(web, second).errors_permille for second in (1, 2, 9)] == [1000, 1000, 1000]
    # Answered in seconds 1 to 10: 9 × 50, all late; in the first second some already were.
    assert web.refused == 400
    assert 450 <= web.late <= 500


def test_workers_that_are_all_busy_limit_a_service_before_its_cpu_does(ran):
    """One worker, no limit, 8 cores: a request of 20 ms runs on one core, so that one worker answers 50/s.

    The load of 60/s is 120 % of that, though the pod never wants more than its one worker can use: 1 core.
    """
    done = ran(
        [pod("web")], [serves("web", "requestsPerSecond: 60, cost: 20 cpu-ms, workers: 1, queue: 10")], seconds=5
    )
    (web,) = done.services
    assert (at(web, 4).utilisation_permille, at(web, 4).waiting) == (1200, 10)
    assert entries(done, "Throttled") == []


def test_a_busy_neighbour_takes_the_cpu_of_a_service_by_weight(ran):
    """Two cores, two pods with equal requests, 60/s × 20 ms = 1.2 cores.

    Alone it could use both: capacity 2/0.02 = 100/s, 60 %. From 10 s on the neighbour wants 4 cores: by equal weights
    each gets 1 core, capacity 50/s, 120 %; the queue of 100 is full after 100/10 = 10 s.
    """
    nodes = NODES.replace("cpu: 8", "cpu: 2")
    requests = "{requests: {cpu: 500m, memory: 64Mi}}"
    done = ran(
        [pod("web", requests), pod("noisy", requests)],
        [
            serves("web", "requestsPerSecond: 60, cost: 20 cpu-ms"),
            "workload: noisy, demand: {cpu: {steps: {0s: 0, 10s: 4}}}",
        ],
        nodes=nodes,
        seconds=25,
    )
    (web,) = done.services
    assert [at(web, second).utilisation_permille for second in (9, 12, 24)] == [600, 1200, 1200]
    assert [at(web, second).waiting for second in (15, 22)] == [50, 100]
    assert web.cause == "contention"


# ---- several pods ----------------------------------------------------------------------------------------------------


def test_load_is_divided_among_ready_pods_and_a_lost_node_loads_the_others_once_that_is_noticed(ran):
    """80/s on two pods of 50/s: 80 % each.

    At 10 s node-2 is lost. For 50 s (node-monitor-grace-period) half of the requests still go there and fail, 50 %
    errors, while node-1 goes on with 40/s. From 60 s on all 80/s go to node-1: 160 %, the queue of 100 grows by 30 a
    second and is full at 63.3 s, then 1 − 50/80 = 37.5 % are refused.
    """
    two = "[{name: node, count: 2, capacity: {cpu: 4, memory: 8Gi}, filesystems: {nodefs: {capacity: 100Gi}}}]"
    done = ran(
        [deployment("web", ONE_CPU, 2)],
        [serves("web", "requestsPerSecond: 80, cost: 20 cpu-ms", ", spread: true, recreate: false")],
        nodes=two,
        seconds=80,
        more="  events: [{at: 10s, nodeLost: node-1}]\n",
    )
    (web,) = done.services
    assert [at(web, second).ready_pods for second in (0, 12, 62)] == [2, 1, 1]
    assert [at(web, second).utilisation_permille for second in (9, 30, 59, 61)] == [800, 800, 800, 1600]
    assert [at(web, second).errors_permille for second in (9, 30, 59, 61, 64)] == [0, 500, 500, 0, 375]
    assert [at(web, second).waiting for second in (60, 61, 62, 64)] == [0, 30, 60, 100]


def test_a_pod_gets_requests_once_its_readiness_probe_has_succeeded(ran):
    """The second workload arrives at 5 s, with initialDelaySeconds 5 and periodSeconds 10.

    The kubelet triggers the probe as the container starts, at 5 s, within the delay; the next tick is at 15 s. From the
    arrival until then no pod is ready, and all 10 requests a second fail: 100. worker.go: doProbe returns before
    initialDelaySeconds.
    """
    probe = "readinessProbe: {httpGet: {path: /, port: 80}, initialDelaySeconds: 5, periodSeconds: 10}"
    done = ran(
        [pod("web", ONE_CPU, container=probe)],
        [serves("web", "requestsPerSecond: 10, cost: 20 cpu-ms", ", arrives: 5s")],
        seconds=30,
    )
    (web,) = done.services
    assert [(at(web, second).ready_pods, at(web, second).errors_permille) for second in (6, 14, 16)] == [
        (0, 1000),
        (0, 1000),
        (1, 0),
    ]
    assert (web.requests, web.refused) == (250, 100)


def test_a_pod_that_is_being_deleted_gets_no_more_requests(ran):
    """Two pods at 40/s each, 80 %. One is deleted at 10 s and takes 20 s to stop.

    From 10 s on the other gets 80/s, 160 %: its queue grows by 30 a second. The deleted pod finishes what it has and
    answers nothing new: its endpoint is terminating.
    """
    done = ran(
        [deployment("web", ONE_CPU, 2)],
        [serves("web", "requestsPerSecond: 80, cost: 20 cpu-ms")],
        seconds=25,
        more="  timing: {containerStop: 20s}\n  events: [{at: 10s, scale: {workload: web, replicas: 1}}]\n",
    )
    (web,) = done.services
    samples = [at(web, second) for second in (9, 11, 12)]
    assert [(sample.ready_pods, sample.utilisation_permille) for sample in samples] == [(2, 800), (1, 1600), (1, 1600)]
    assert [sample.waiting for sample in samples] == [0, 30, 60]


def test_a_rollout_to_a_slower_version_overloads_the_pods_that_have_it(ran):
    """Two pods of 1 CPU, 60/s: 30/s × 20 ms each, 60 %.

    At 10 s a version of 40 ms is rolled out. Without probes its pods are ready at once. In the end capacity is 1/0.04 =
    25/s for 30/s each: 120 %.
    """
    more = "  events: [{at: 10s, rollout: {workload: web, demand: {memory: 1Mi, service: {cost: 40 cpu-ms}}}}]\n"
    done = ran(
        [deployment("web", ONE_CPU, 2)],
        [serves("web", "requestsPerSecond: 60, cost: 20 cpu-ms")],
        seconds=40,
        more=more,
    )
    (web,) = done.services
    assert (at(web, 9).utilisation_permille, at(web, 39).utilisation_permille) == (600, 1200)
    assert at(web, 39).ready_pods == 2


# ---- services that call others ---------------------------------------------------------------------------------------


def test_the_same_scenario_gives_the_same_figures(written):
    path = written(
        [deployment("shop", "{}", 3), pod("db", ONE_CPU)],
        [
            serves(
                "shop",
                "requestsPerSecond: {wave: {low: 20, high: 200, period: 30s}}, cost: 3 cpu-ms, timeout: 200ms",
            ),
            serves("db", "requestsPerSecond: 90, cost: 10 cpu-ms"),
        ],
    )
    first, second = (simulate(load_scenario(str(path))) for _ in range(2))
    assert first.services == second.services
    assert list(first.entries) == list(second.entries)


def test_the_headline_names_the_worst_service_and_its_cause(written, capsys):
    path = written(
        [pod("shop"), pod("db", ONE_CPU)],
        [
            serves("shop", "requestsPerSecond: 120, cost: 1 cpu-ms, workers: 16, queue: 50"),
            serves("db", "requestsPerSecond: 120, cost: 10 cpu-ms"),
        ],
        seconds=60,
    )
    assert main(["simulate", str(path), "--svg", str(path.with_name("picture.svg"))]) == 0
    out, err = capsys.readouterr()
    picture = path.with_name("picture.svg").read_text()
    assert "Latency of services" in picture
    assert "Errors of services" in picture
    assert "throttled at its CPU limit." in out.splitlines()[1]
    assert "db is overloaded" in out
    assert "SERVICE" in out
    assert "assumed: load, queues and latency of services: a queueing model" in err


# ---- probes ----------------------------------------------------------------------------------------------------------

STARVED = "{requests: {cpu: 10m}, limits: {cpu: 10m}}"
FROM_12 = "workload: web, demand: {cpu: {steps: {0s: 5m, 12s: 2}}}"
"""From 12 s on the container gets 10m of 2 cores, 0.5 %: an answer of 10 cpu-ms takes 2 s."""


def test_a_starved_container_fails_its_liveness_probe_and_is_restarted(ran):
    """Ticks every 10 s from admission, at 0: those at 20, 30 and 40 s time out after 1 s.

    The third failure is known at 41 s: the container is killed and starts at once (worker.go: failureThreshold 3).
    """
    done = ran([pod("web", STARVED, container="livenessProbe: {tcpSocket: {port: 80}}")], [FROM_12], seconds=45)
    assert entries(done, "Unhealthy", "Exited", "Restarted") == [
        (41.0, "Unhealthy", "web"),
        (41.0, "Exited", "web"),
        (41.0, "Restarted", "web"),
    ]
    (because,) = [entry.because for entry in done.entries if entry.kind == "Unhealthy"]
    assert (because.failures, because.response_us, because.slowdown, because.grace_period_seconds) == (
        3,
        2_000_000,
        20_000,
        30,
    )


def test_the_back_off_after_a_failed_probe_counts_from_the_end_of_the_run_before(ran):
    """Killed every 30 s while it runs.

    kuberuntime_manager.go: doBackOff sees the last *exited* container, the one before the one that is being killed.
    41 s: none has exited before: restart at once, no back-off begins. 71: the first exit, at 41, begins a back-off of
    10 s and restarts. 101: 30 s since 71 ≥ 10: restart, 20 s. 131: 30 ≥ 20: restart, 40 s. 161: 30 < 40: now it waits,
    40 s from its own end: 201 s. Ticks from there: 210, 220, 230, failure at 231 s.
    """
    done = ran([pod("web", STARVED, container="livenessProbe: {tcpSocket: {port: 80}}")], [FROM_12], seconds=240)
    assert [time for time, _, _ in entries(done, "Unhealthy")] == [41, 71, 101, 131, 161, 231]
    assert [time for time, _, _ in entries(done, "Restarted")] == [41, 71, 101, 131, 201]


def test_a_starved_container_leaves_the_endpoints_and_returns_with_its_cpu(ran):
    """PeriodSeconds 5, failureThreshold 3: ticks at 15, 20, 25 s fail, known at 26 s: not ready.

    The change triggers another probe at 26 s, which fails at 27, and from there every 5 s: 31, 36, 41. At 40 s the
    demand falls to 5m: the probe at 41 s succeeds (successThreshold 1).
    """
    probe = "readinessProbe: {exec: {command: [x]}, periodSeconds: 5}"
    workload = "workload: web, demand: {cpu: {steps: {0s: 5m, 12s: 2, 40s: 5m}}}"
    done = ran([pod("web", STARVED, container=probe)], [workload], seconds=60)
    changes = [
        (entry.time_us / SECOND_US, entry.because.ready) for entry in done.entries if entry.kind == "ReadinessChanged"
    ]
    assert changes == [(26.0, False), (41.0, True)]
    assert entries(done, "Exited") == []


def test_a_success_threshold_keeps_a_pod_out_for_longer(ran):
    """The same with successThreshold 2: successes at 41 and 46 s."""
    probe = "readinessProbe: {exec: {command: [x]}, periodSeconds: 5, successThreshold: 2}"
    workload = "workload: web, demand: {cpu: {steps: {0s: 5m, 12s: 2, 40s: 5m}}}"
    done = ran([pod("web", STARVED, container=probe)], [workload], seconds=60)
    assert [time for time, _, _ in entries(done, "ReadinessChanged")] == [26.0, 46.0]


def test_a_startup_probe_comes_first_and_kills_a_container_that_does_not_start_in_time(ran):
    """The pod arrives at 5 s and wants 2 cores at once.

    Startup: ticks at 10 and 15 s fail, failureThreshold 2: killed at 16 s. Then at 20 and 25 s: 26 s, the earlier exit
    at 16 begins the back-off. The liveness probe, with a threshold of 1, never runs: it would have failed first.
    """
    probes = (
        "startupProbe: {httpGet: {path: /, port: 80}, periodSeconds: 5, failureThreshold: 2}, "
        "livenessProbe: {httpGet: {path: /, port: 80}, periodSeconds: 2, failureThreshold: 1}"
    )
    done = ran([pod("web", STARVED, container=probes)], ["workload: web, arrives: 5s, demand: {cpu: 2}"], seconds=27)
    unhealthy = [
        (entry.time_us / SECOND_US, entry.because.probe.value) for entry in done.entries if entry.kind == "Unhealthy"
    ]
    assert unhealthy == [(16.0, "startup"), (26.0, "startup")]


def test_a_longer_timeout_or_a_cheaper_probe_survives_the_same_starvation(ran):
    """The answer takes 2 s: a timeout of 3 s is enough. A probe of 4 cpu-ms takes 4 ms × 200 = 0.8 s: 1 s is enough."""
    patient = pod("web", STARVED, container="livenessProbe: {tcpSocket: {port: 80}, timeoutSeconds: 3}")
    assert entries(ran([patient], [FROM_12], seconds=120), "Unhealthy") == []
    usual = pod("web", STARVED, container="livenessProbe: {tcpSocket: {port: 80}}")
    cheap = FROM_12.replace("demand: {", "demand: {probeCost: 4 cpu-ms, ")
    assert entries(ran([usual], [cheap], seconds=120), "Unhealthy") == []


@pytest.mark.parametrize(
    ("own", "ended_s", "exit_code"),
    [("", 61, 143), (", terminationGracePeriodSeconds: 5", 46, 137), (", terminationGracePeriodSeconds: 1", 43, 137)],
)
def test_the_probes_own_grace_period_counts_for_the_kill(ran, own, ended_s, exit_code):
    """The container takes 20 s to stop (timing.containerStop), and is told to at 41 s.

    With the pod's 30 s it stops by itself at 61 s (SIGTERM, 143). With the probe's 5 s it is killed at 46 s (SIGKILL,
    137). 1 s is raised to the kubelet's least of 2 s: 43 s. kuberuntime_container.go: setTerminationGracePeriod,
    killContainer (minimumGracePeriodInSeconds).
    """
    probe = f"livenessProbe: {{tcpSocket: {{port: 80}}{own}}}"
    more = "  timing: {containerStop: 20s}\n"
    done = ran([pod("web", STARVED, container=probe)], [FROM_12], seconds=65, more=more)
    (exit_,) = [entry for entry in done.entries if entry.kind == "Exited"]
    assert (exit_.time_us / SECOND_US, exit_.because.exit_code) == (ended_s, exit_code)


def test_a_container_that_is_never_restarted_fails_its_pod(ran):
    """RestartPolicy Never: computePodActions kills and does not start again."""
    manifest = pod("web", STARVED, container="livenessProbe: {tcpSocket: {port: 80}}", spec="restartPolicy: Never")
    done = ran([manifest], [FROM_12], seconds=60)
    assert [kind for _, kind, _ in entries(done, "Unhealthy", "Exited", "Restarted", "Failed")] == [
        "Unhealthy",
        "Exited",
        "Failed",
    ]


def test_an_overloaded_service_is_restarted_by_its_liveness_probe_and_loses_its_queue(ran):
    """100/s against 50/s from 10 s on; the queue of 100 is full at 12 s: 2 s of waiting, and half are refused.

    Liveness every 5 s: the probe at 10 s passes; at 15, 20 and 25 s it waits 2 s like everyone: failures at 16, 21 and
    26 s. The container restarts at 26 s with an empty queue: 100 requests are lost, and it fills again.
    """
    probe = "livenessProbe: {httpGet: {path: /, port: 80}, periodSeconds: 5}"
    done = ran(
        [pod("web", ONE_CPU, container=probe)],
        [serves("web", "requestsPerSecond: {steps: {0s: 10, 10s: 100}}, cost: 20 cpu-ms")],
        seconds=27,
    )
    (web,) = done.services
    assert entries(done, "Unhealthy", "Restarted") == [(26.0, "Unhealthy", "web"), (26.0, "Restarted", "web")]
    assert web.lost == 100
    assert [at(web, second).waiting for second in (25, 26, 27)] == [100, 0, 50]


def test_probes_change_nothing_where_no_container_is_starved(ran):
    """Half the CPU it wants is no starvation: an answer takes 20 ms instead of 10."""
    half = "{limits: {cpu: 1}}"
    probes = "livenessProbe: {tcpSocket: {port: 80}}, readinessProbe: {tcpSocket: {port: 80}, initialDelaySeconds: 3}"
    workload = "workload: web, arrives: 1s, demand: {cpu: 2}"
    with_probes = ran([pod("web", half, container=probes)], [workload])
    without = ran([pod("web", half)], [workload])
    assert list(with_probes.entries) == list(without.entries)


# ---- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (serves("web", "requestsPerSecond: 1"), "service.cost: Required value (the CPU time of a request"),
        (
            "workload: web, demand: {cpu: 1, service: {cost: 1 cpu-ms}}",
            "demand.cpu: cpu and service exclude each other: the CPU demand of a service follows from its requests",
        ),
        (serves("web", "cost: 20ms"), 'service.cost: "20ms" is not an amount of CPU time (write the unit: 20 cpu-s'),
        (serves("web", "cost: 1 cpu-ms, workers: 0"), "service.workers: must be between 1 and 1,000,000"),
        (
            "workload: web, perReplica: [{demand: {service: {cost: 1 cpu-ms}}}]",
            "a service is that of the whole workload, not of a replica",
        ),
    ],
)
def test_what_makes_no_sense_in_a_service_is_refused_with_its_place(written, workload, message):
    problems = [str(problem) for problem in read_scenario(str(written([pod("web"), pod("db")], [workload]))).problems]
    assert any(message in problem for problem in problems), problems
    assert all("scenario.yaml:9:" in problem for problem in problems)


@pytest.mark.parametrize(
    ("demand", "message"),
    [
        ("{memory: 1Mi}", "web answers requests, but the demand of its new revision has no service"),
        ("{service: {cost: 1 cpu-ms, requestsPerSecond: 9}}", "requests and timeout stay those of the workload"),
    ],
)
def test_a_rollout_changes_what_a_request_costs_and_not_how_many_there_are(written, demand, message):
    more = f"  events: [{{at: 1s, rollout: {{workload: web, demand: {demand}}}}}]\n"
    path = written([deployment("web", ONE_CPU, 1)], [serves("web", "cost: 1 cpu-ms")], more=more)
    (problem,) = read_scenario(str(path)).problems
    assert message in str(problem)
