"""PQ101–PQ104 at their edges."""

from __future__ import annotations

import pytest

from advice.bundles import check_text
from podqos.advice.checks.classes import NearlyGuaranteed
from podqos.advice.checks.finding import Choice


def pod(*containers: str, kind="Pod", extra="", init=()) -> str:
    """Return a manifest with containers whose resources are given in flow style."""
    lines = [f"- {{name: c{index}, image: x, resources: {text}}}" for index, text in enumerate(containers)]
    inits = [f"- {{name: i{index}, image: x, resources: {text}}}" for index, text in enumerate(init)]
    spec = "\n".join([
        *([extra] if extra else []),
        "containers:", *(f"  {line}" for line in lines),
        *(["initContainers:", *(f"  {line}" for line in inits)] if inits else []),
    ])  # fmt: skip
    if kind == "Pod":
        indented = spec.replace("\n", "\n  ")
        return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p, labels: {{app: p}}}}\nspec:\n  {indented}\n"
    version, selector = ("batch/v1", "") if kind == "Job" else ("apps/v1", "  selector: {matchLabels: {app: p}}\n")
    indented = spec.replace("\n", "\n      ")
    return (
        f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: p}}\nspec:\n{selector}  template:\n"
        f"    metadata: {{labels: {{app: p}}}}\n    spec:\n      {indented}\n"
    )


FULL = "{requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi, ephemeral-storage: 1Gi}}"
LIMITS = "{limits: {cpu: 1, memory: 1Gi, ephemeral-storage: 1Gi}}"
BURST = "{requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 2, memory: 2Gi, ephemeral-storage: 1Gi}}"
NO_CPU_LIMIT = "{requests: {cpu: 1, memory: 1Gi}, limits: {memory: 1Gi, ephemeral-storage: 1Gi}}"


def ids(text, options=None, above=("PQ106", "PQ108")):
    """Return the checks that found something, without those that most short manifests trip over."""
    return [finding.check for finding in check_text(text, options) if finding.check not in above]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(pod(FULL, FULL), [], id="all complete"),
        pytest.param(pod(LIMITS), [], id="limits alone are Guaranteed"),
        pytest.param(pod(FULL, NO_CPU_LIMIT), ["PQ101"], id="one resource of a sidecar"),
        pytest.param(pod(FULL, "{}"), ["PQ101"], id="an empty sidecar"),
        pytest.param(pod(FULL, init=["{}"]), ["PQ101"], id="an init container counts as well"),
        pytest.param(pod(NO_CPU_LIMIT), [], id="no cpu limit at all is a choice"),
        pytest.param(pod(BURST), [], id="meant to burst"),
        pytest.param(
            pod(BURST, "{limits: {cpu: 100m, memory: 64Mi, ephemeral-storage: 1Gi}}"),
            [],
            id="a complete sidecar is no sign",
        ),
        pytest.param(pod(BURST, BURST), [], id="all meant to burst"),
        pytest.param(
            pod("{requests: {cpu: 1, memory: 4G}, limits: {cpu: 1, memory: 4Gi, ephemeral-storage: 1Gi}}"),
            ["PQ101"],
            id="4G is not 4Gi",
        ),
        pytest.param(
            pod("{}", extra="resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}"),
            [],
            id="the pod's own resources decide",
        ),
    ],
)
def test_accidentally_burstable(text, expected):
    assert ids(text) == expected


def test_an_accidentally_burstable_pod_needs_a_choice_only_where_nothing_is_stated():
    (complete,) = (each for each in check_text(pod(FULL, NO_CPU_LIMIT)) if each.check == "PQ101")
    (open_,) = (each for each in check_text(pod(FULL, "{}")) if each.check == "PQ101")

    assert [(edit.path, edit.value) for edit in complete.patch.edits] == [
        ("spec.containers[1].resources.limits.cpu", "1")
    ]
    assert open_.patch.needs_choice is Choice.RESOURCES
    assert open_.patch.paths == (
        "spec.containers[1].resources.limits.cpu",
        "spec.containers[1].resources.limits.memory",
    )


def test_the_facts_name_who_is_in_order_and_who_is_not():
    (finding,) = (each for each in check_text(pod(FULL, NO_CPU_LIMIT)) if each.check == "PQ101")

    assert isinstance(finding.facts, NearlyGuaranteed)
    assert finding.facts.in_order == ("c0",)
    assert [(each.container, each.resource, each.limit) for each in finding.facts.spoilers] == [("c1", "cpu", None)]
    assert finding.container == "c1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(pod("{}", kind="Deployment"), ["PQ102"], id="Deployment"),
        pytest.param(pod("{}", kind="StatefulSet"), ["PQ102"], id="StatefulSet"),
        pytest.param(pod("{}", kind="DaemonSet"), ["PQ103"], id="DaemonSet"),
        pytest.param(pod("{}", kind="Job", extra="restartPolicy: Never"), [], id="a Job ends by itself"),
        pytest.param(pod("{}", extra="restartPolicy: Never"), [], id="so does a Pod that is not restarted"),
        pytest.param(pod("{limits: {ephemeral-storage: 1Gi}}"), ["PQ102"], id="disk does not count"),
        pytest.param(pod("{requests: {memory: 16Mi}, limits: {memory: 16Mi}}"), [], id="one request is enough"),
    ],
)
def test_best_effort(text, expected):
    assert ids(text) == expected


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        pytest.param("{type: LoadBalancer, selector: {app: p}}", ["PQ104"], id="a load balancer"),
        pytest.param("{type: NodePort, selector: {app: p}}", ["PQ104"], id="a port of every node"),
        pytest.param("{type: LoadBalancer, selector: {app: other}}", ["PQ102"], id="selects others"),
        pytest.param("{selector: {app: p}}", ["PQ102"], id="only other pods reach it"),
        pytest.param("{selector: {app: p}, clusterIP: None}", ["PQ102"], id="only gives names"),
        pytest.param("{type: LoadBalancer}", ["PQ102"], id="selects nothing"),
        pytest.param(
            "{type: NodePort, selector: {app: p}, ports: [{name: http-metrics, port: 9090}]}",
            ["PQ102"],
            id="only metrics",
        ),
        pytest.param(
            "{type: NodePort, selector: {app: p}, ports: [{name: http, port: 80}, {name: metrics, port: 9090}]}",
            ["PQ104"],
            id="more than metrics",
        ),
    ],
)
def test_a_service_makes_a_workload_user_facing(service, expected):
    text = f"{pod('{}')}---\napiVersion: v1\nkind: Service\nmetadata: {{name: s}}\nspec: {service}\n"

    assert ids(text) == expected


def test_a_service_of_another_namespace_sends_no_traffic():
    service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: elsewhere}\n"
    text = f"{pod('{}')}{service}spec: {{selector: {{app: p}}}}\n"

    assert ids(text) == ["PQ102"]


def test_an_annotation_makes_a_workload_user_facing():
    text = pod("{}").replace("{name: p,", '{name: p, annotations: {podqos.dev/latency-sensitive: "true"},')

    assert ids(text) == ["PQ104"]


@pytest.mark.parametrize(("cost", "expected"), [("none", []), ("low", ["PQ102"])])
def test_whoever_is_not_missed_may_ask_for_nothing(cost, expected):
    text = pod("{}").replace("{name: p,", f"{{name: p, annotations: {{podqos.dev/restart-cost: {cost}}},")

    assert ids(text) == expected


def test_a_live_pod_has_the_class_that_was_recorded():
    text = pod(BURST).replace("{name: p,", "{name: p, uid: u,") + "status: {qosClass: BestEffort}\n"

    assert ids(text) == ["PQ102"]
