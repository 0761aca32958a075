"""PQ6xx and PQ119 at their edges."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advice.bundles import check_text
from podqos.advice.checks.bundle import CheckOptions
from podqos.model.profile import parse_version

EQUAL = "{requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi, ephemeral-storage: 1Gi}}"
USUAL = "{requests: {cpu: 500m, memory: 512Mi}, limits: {memory: 1Gi, ephemeral-storage: 1Gi}}"
NO_CPU = "{requests: {memory: 512Mi}, limits: {memory: 1Gi, ephemeral-storage: 1Gi}}"
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: NAME}
status:
  capacity: {cpu: "4", memory: 8Gi}
  allocatable: {cpu: "4", memory: 8Gi}
"""


def deployment(*resources: str, replicas: int = 2, init: str = "", extra: str = "") -> str:
    containers = "\n".join(
        f"        - {{name: c{number}, image: i, resources: {each}}}" for number, each in enumerate(resources)
    )
    before = f"      initContainers:\n{init}\n" if init else ""
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: d}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: d}}}}
  template:
    metadata: {{labels: {{app: d}}}}
    spec:
{extra}{before}      containers:
{containers}
"""


def scaler(*metrics: str, most: int = 4, version: str = "v2", extra: str = "") -> str:
    stated = "".join(f"    - {metric}\n" for metric in metrics)
    return f"""\
---
apiVersion: autoscaling/{version}
kind: HorizontalPodAutoscaler
metadata: {{name: h}}
spec:
  scaleTargetRef: {{kind: Deployment, name: d}}
  maxReplicas: {most}
{extra}{"  metrics:" if metrics else ""}
{stated}"""


def on(resource: str, percent: int = 80) -> str:
    target = f"target: {{type: Utilization, averageUtilization: {percent}}}"
    return f"{{type: Resource, resource: {{name: {resource}, {target}}}}}"


def of(container: str, resource: str, percent: int = 80) -> str:
    target = f"target: {{type: Utilization, averageUtilization: {percent}}}"
    return f"{{type: ContainerResource, containerResource: {{name: {resource}, container: {container}, {target}}}}}"


def found(text: str, options: CheckOptions | None = None):
    """Return the warnings and errors."""
    return [
        (each.check, each.subject.kind, each.container) for each in check_text(text, options) if each.severity != "info"
    ]


MISSING = [("PQ601", "Deployment", "c1")]
SIDECAR = f"        - {{name: s, image: i, restartPolicy: Always, resources: {NO_CPU}}}"
INIT = f"        - {{name: s, image: i, resources: {NO_CPU}}}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(deployment(USUAL, USUAL) + scaler(on("cpu")), [], id="all have it"),
        pytest.param(deployment(USUAL, NO_CPU) + scaler(on("cpu")), MISSING, id="one has none"),
        pytest.param(
            deployment(USUAL, NO_CPU) + scaler(of("c0", "cpu")), [("PQ119", "Deployment", "c1")], id="not its"
        ),
        pytest.param(
            deployment(USUAL, NO_CPU) + scaler(of("c1", "cpu")), [("PQ119", "Deployment", "c1"), *MISSING], id="its"
        ),
        pytest.param(
            deployment(USUAL) + scaler(of("x", "cpu")), [("PQ601", "HorizontalPodAutoscaler", None)], id="no such"
        ),
        pytest.param(deployment(USUAL, NO_CPU) + scaler(), MISSING, id="80 % of cpu is the default"),
        pytest.param(
            deployment(USUAL, NO_CPU) + scaler(version="v1", extra="  targetCPUUtilizationPercentage: 50\n"),
            MISSING,
            id="version 1",
        ),
        pytest.param(
            deployment(USUAL, NO_CPU)
            + scaler("{type: Resource, resource: {name: cpu, targetAverageUtilization: 50}}", version="v2beta1"),
            MISSING,
            id="version 2beta1",
        ),
        pytest.param(
            deployment(USUAL, NO_CPU)
            + scaler("{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 1}}}"),
            [("PQ119", "Deployment", "c1")],
            id="an amount needs no request",
        ),
        pytest.param(
            deployment(USUAL, NO_CPU) + scaler("{type: Pods, pods: {metric: {name: x}}}"),
            [("PQ119", "Deployment", "c1")],
            id="another metric",
        ),
        pytest.param(
            deployment(USUAL, init=SIDECAR) + scaler(on("cpu")), [("PQ601", "Deployment", "s")], id="a sidecar"
        ),
        pytest.param(deployment(USUAL, init=INIT) + scaler(on("cpu")), [], id="an init container is gone by then"),
        pytest.param(deployment("{}") + scaler(on("cpu")), [("PQ601", "Deployment", "c0")], id="instead of PQ102"),
        pytest.param(
            deployment(USUAL, NO_CPU, extra="      resources: {requests: {cpu: 1, memory: 2Gi}}\n") + scaler(on("cpu")),
            [],
            id="the request of the pod is enough",
        ),
        pytest.param(deployment(USUAL) + scaler(on("cpu")).replace("name: d}", "name: e}"), [], id="another target"),
    ],
)
def test_an_autoscaler_needs_the_request_it_measures_against(text, expected):
    assert found(text) == expected


@pytest.mark.parametrize(
    ("metric", "disabled", "named"),
    [
        pytest.param(on("cpu"), {"PQ601"}, "h", id="it cannot scale a workload without requests"),
        pytest.param("{type: Pods, pods: {metric: {name: x}}}", set(), None, id="it needs no requests"),
    ],
)
def test_an_autoscaler_is_named_where_best_effort_keeps_it_from_scaling(metric, disabled, named):
    options = replace(CheckOptions(), disabled=frozenset(disabled))
    (finding,) = [each for each in check_text(deployment("{}") + scaler(metric), options) if each.check == "PQ102"]
    assert finding.facts.autoscaler == named


def test_without_pod_level_resources_every_container_counts():
    text = deployment(USUAL, NO_CPU, extra="      resources: {requests: {cpu: 1, memory: 2Gi}}\n") + scaler(on("cpu"))

    assert ("PQ601", "Deployment", "c1") in found(text, CheckOptions(profile=parse_version("1.31")))


def test_a_limit_range_that_fills_the_request_in_is_enough():
    defaults = """\
---
apiVersion: v1
kind: LimitRange
metadata: {name: l, namespace: default}
spec: {limits: [{type: Container, defaultRequest: {cpu: 100m}}]}
"""
    assert found(deployment(USUAL, NO_CPU) + scaler(on("cpu")) + defaults) == []


@pytest.mark.parametrize(
    ("resources", "metric", "expected"),
    [
        pytest.param(EQUAL, on("memory", 80), False, id="80 % of a limit equal to the request"),
        pytest.param(EQUAL, on("memory", 90), True, id="90 %"),
        pytest.param(USUAL, on("memory", 90), False, id="the limit is twice the request"),
        pytest.param(USUAL, on("memory", 180), True, id="near it all the same"),
        pytest.param(EQUAL, on("cpu", 100), False, id="cpu kills no container"),
        pytest.param(EQUAL, of("c0", "memory", 95), True, id="one container"),
        pytest.param(
            EQUAL,
            "{type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 1000Mi}}}",
            True,
            id="an amount",
        ),
        pytest.param("{requests: {cpu: 1, memory: 1Gi}}", on("memory", 95), False, id="no limit to be near"),
    ],
)
def test_an_autoscaler_on_memory_has_to_act_before_the_limit(resources, metric, expected):
    checks = [check for check, _, _ in found(deployment(resources) + scaler(metric))]

    assert ("PQ602" in checks) is expected


def nodes(count: int) -> str:
    return "".join(f"---\n{NODE.replace('NAME', f'n{number}')}" for number in range(count))


OTHER = deployment(EQUAL, replicas=3).replace("name: d}", "name: other}").replace("app: d", "app: other")


POD = (
    "---\napiVersion: v1\nkind: Pod\nmetadata: {name: alone}\n"
    "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 10m}}}]}\n"
)


@pytest.mark.parametrize(
    ("text", "fit"),
    [
        pytest.param(deployment(EQUAL) + scaler(on("cpu"), most=4) + nodes(1), None, id="as many as fit"),
        pytest.param(deployment(EQUAL) + scaler(on("cpu"), most=5) + nodes(1), 4, id="one more"),
        pytest.param(deployment(EQUAL) + scaler(on("cpu"), most=5) + nodes(2), None, id="another node"),
        pytest.param(deployment(EQUAL) + scaler(on("cpu"), most=2_000_000_000) + nodes(1), 4, id="absurdly many"),
        pytest.param(deployment(EQUAL) + "---\n" + OTHER + scaler(on("cpu")) + nodes(1), 1, id="beside others"),
        pytest.param(
            deployment(EQUAL)
            + "---\n"
            + OTHER.replace("replicas: 3", "replicas: 99999999")
            + scaler(on("cpu"))
            + nodes(1),
            0,
            id="beside absurdly many",
        ),
        pytest.param(
            deployment(EQUAL) + "---\n" + OTHER + POD + scaler(on("cpu")) + nodes(1),
            0,
            id="a pod of no node does not stand for what controllers make",
        ),
        pytest.param(
            deployment(EQUAL)
            + "---\n"
            + OTHER
            + POD.replace("spec: {", "spec: {nodeName: n0, ")
            + scaler(on("cpu"))
            + nodes(1),
            3,
            id="a pod of a node does",
        ),
        pytest.param(deployment(EQUAL) + scaler(on("cpu"), most=500), None, id="no nodes are known"),
        pytest.param(
            deployment(EQUAL.replace("1Gi,", "9Gi,").replace("1Gi}", "9Gi}")) + scaler(on("cpu")) + nodes(1),
            None,
            id="not even one: PQ504",
        ),
    ],
)
def test_replicas_that_an_autoscaler_may_ask_for_have_to_fit_the_nodes(text, fit):
    facts = [each.facts for each in check_text(text) if each.check == "PQ603"]

    assert [each.fit for each in facts] == ([] if fit is None else [fit])


@pytest.mark.parametrize(
    ("hard", "most", "expected"),
    [
        ("requests.memory: 4Gi", 4, []),
        ("requests.memory: 4Gi", 5, [("PQ604", "HorizontalPodAutoscaler", None)]),
        ('pods: "3"', 4, [("PQ604", "HorizontalPodAutoscaler", None)]),
        ("requests.memory: 1Gi", 5, [("PQ207", "Deployment", None)]),
    ],
    ids=["fits", "one more", "pods", "not even now: PQ207"],
)
def test_replicas_that_an_autoscaler_may_ask_for_have_to_fit_the_quota(hard, most, expected):
    head = "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: default}\n"
    quota = f"{head}spec: {{hard: {{{hard}}}}}\n"

    assert found(deployment(EQUAL) + scaler(on("cpu"), most=most) + quota) == expected


def budget(spec: str, name: str = "b") -> str:
    head = f"---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: {name}}}\n"
    return f"{head}spec: {{{spec}, selector: {{matchLabels: {{app: d}}}}}}\n"


@pytest.mark.parametrize(
    ("spec", "replicas", "blocks"),
    [
        ("maxUnavailable: 0", 3, True),
        ("maxUnavailable: 0%", 3, True),
        ("maxUnavailable: 1", 3, False),
        ("maxUnavailable: 1%", 3, False),
        ("minAvailable: 2", 3, False),
        ("minAvailable: 3", 3, True),
        ("minAvailable: 4", 3, True),
        ("minAvailable: 1", 1, True),
        ("minAvailable: 100%", 3, True),
        ("minAvailable: 67%", 3, True),
        ("minAvailable: 66%", 3, False),
        ("minAvailable: 90%", 10, False),
        ("minAvailable: 1", 0, False),
    ],
)
def test_a_budget_that_lets_no_pod_go_blocks_drains(spec, replicas, blocks):
    """Shares are rounded up, whichever side they are of."""
    findings = [
        each for each in check_text(deployment(EQUAL, replicas=replicas) + budget(spec)) if each.check == "PQ605"
    ]

    assert bool(findings) is blocks
    assert all(each.path == f"spec.{spec.partition(':')[0]}" for each in findings)


def test_a_budget_that_can_never_be_met_says_so():
    (finding,) = [each for each in check_text(deployment(EQUAL) + budget("minAvailable: 3")) if each.check == "PQ605"]

    assert finding.facts.sentence("") == "minAvailable is 3, and Deployment d has 2 pods: it can never be met"


def test_a_budget_counts_all_workloads_that_it_covers():
    other = deployment(EQUAL).replace("name: d}", "name: e}")
    text = deployment(EQUAL) + "---\n" + other

    assert not any(each.check == "PQ605" for each in check_text(text + budget("minAvailable: 3")))
    assert any(each.check == "PQ605" for each in check_text(text + budget("minAvailable: 4")))


@pytest.mark.parametrize(
    ("fewest", "available", "said"),
    [
        ("  minReplicas: 3\n", "2", None),
        (
            "  minReplicas: 2\n",
            "2",
            "has 2 pods at minReplicas: none of them may be evicted until the autoscaler adds pods",
        ),
        ("", "1", "has 1 pod at minReplicas: none of them may be evicted until the autoscaler adds pods"),
        ("  minReplicas: 0\n", "0", None),
        ("  minReplicas: 2\n", "4", "has 4 pods: none of them may be evicted"),
        ("  minReplicas: 2\n", "5", "has 4 pods: it can never be met"),
    ],
    ids=["fits", "at-the-fewest", "one-is-the-default", "none-needed", "at-the-most", "never"],
)
def test_a_budget_of_a_scaled_workload_is_held_against_the_fewest_and_the_most_replicas(fewest, available, said):
    scaled = scaler(on("cpu"), most=4, extra=fewest)
    text = deployment(EQUAL, replicas=1) + scaled + budget(f"minAvailable: {available}")
    reasons = [each.facts.sentence("") for each in check_text(text) if each.check == "PQ605"]

    assert reasons == ([f"minAvailable is {available}, and Deployment d {said}"] if said else [])


@pytest.mark.parametrize("kind", ["DaemonSet", "Job"])
def test_a_budget_over_pods_that_no_drain_moves_blocks_nothing(kind):
    text = (
        deployment(EQUAL)
        .replace("kind: Deployment", f"kind: {kind}")
        .replace("apps/v1", "batch/v1" if kind == "Job" else "apps/v1")
    )

    assert not any(each.check == "PQ605" for each in check_text(text + budget("maxUnavailable: 0")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(deployment(USUAL, NO_CPU), ["c1"], id="one of two"),
        pytest.param(deployment(USUAL, "{}"), [], id="states nothing: PQ121"),
        pytest.param(deployment(NO_CPU, NO_CPU), [], id="none has one"),
        pytest.param(deployment(NO_CPU), [], id="alone"),
        pytest.param(deployment(USUAL, "{limits: {cpu: 1, memory: 1Gi}}"), [], id="the limit is the request"),
        pytest.param(deployment(USUAL, "{requests: {cpu: 0, memory: 1Gi}, limits: {cpu: 1}}"), [], id="zero is stated"),
        pytest.param(deployment(USUAL, init=SIDECAR), ["s"], id="a sidecar"),
        pytest.param(deployment(USUAL, init=INIT), [], id="an init container runs alone"),
    ],
)
def test_containers_without_a_share_of_the_cpu_beside_others(text, expected):
    assert [each.container for each in check_text(text) if each.check == "PQ119"] == expected
