"""What findings say is true of the pods they are about: critical ones, batch work, parts of the cluster."""

from __future__ import annotations

import pytest

from advice.bundles import check_text
from advice.test_checks_class import BURST, FULL, pod
from podqos.advice.checks.finding import FindingSeverity
from podqos.advice.checks.kinds_of_pods import is_completed_by_operator, runs_until_done
from podqos.model.pod import ObjectMeta, Pod, Workload
from podqos.questions.findings import consequence

CLUSTER_CRITICAL = "priorityClassName: system-cluster-critical"
NODE_CRITICAL = "priorityClassName: system-node-critical"
NO_LIMIT = "{requests: {cpu: 1, memory: 1Gi}, limits: {ephemeral-storage: 1Gi}}"
BUDGET = (
    "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: NAME, namespace: default}\n"
    "spec: {minAvailable: 1, selector: {matchLabels: {app: p}}}\n"
)


def found(text, check):
    """Return the findings of one check."""
    return [finding for finding in check_text(text) if finding.check == check]


def the(text, check):
    """Return its only finding."""
    (finding,) = found(text, check)
    return finding


def said(text, check):
    """Return reason and consequence of its only finding."""
    finding = the(text, check)
    return f"{finding.facts.sentence(finding.container or '')}; {consequence(finding.consequence, finding.facts)}"


def test_a_critical_daemon_set_is_not_said_to_be_evicted_again():
    words = said(pod("{}", kind="DaemonSet", extra=CLUSTER_CRITICAL), "PQ103")

    assert "evicted again" not in words
    assert "oom_score_adj 1000" in words
    assert "never evicted, but the kernel kills by score" in words


def test_a_daemon_set_that_is_evicted_comes_back():
    assert "is evicted again" in said(pod("{}", kind="DaemonSet"), "PQ103")


@pytest.mark.parametrize("kind", ["DaemonSet", "Deployment"])
def test_node_critical_pods_that_request_nothing_are_neither_evicted_nor_killed_early(kind):
    assert [
        finding.check
        for finding in check_text(pod("{}", kind=kind, extra=NODE_CRITICAL))
        if finding.severity is not FindingSeverity.INFO and finding.check != "PQ304"
    ] == []


@pytest.mark.parametrize("extra", [CLUSTER_CRITICAL, NODE_CRITICAL])
def test_a_budget_over_pods_that_are_never_evicted_is_not_reported(extra):
    assert found(pod(BURST, extra=extra) + BUDGET, "PQ306") == []


def test_several_budgets_over_one_workload_are_one_finding_that_names_each_once():
    budgets = BUDGET.replace("NAME", "one") + BUDGET.replace("NAME", "two") + BUDGET.replace("NAME", "one")
    words = said(pod(BURST) + budgets, "PQ306")

    assert "PodDisruptionBudgets one and two do not apply" in words


@pytest.mark.parametrize(
    ("text", "check", "harm"),
    [
        pytest.param(pod(NO_LIMIT, extra=CLUSTER_CRITICAL), "PQ107", "other pods are evicted in its place", id="limit"),
        pytest.param(
            pod(FULL, extra="volumes: [{name: v, emptyDir: {medium: Memory}}]"),
            "PQ109",
            "the container is OOM-killed at its limit",
            id="volume",
        ),
        pytest.param(pod(FULL, extra=CLUSTER_CRITICAL), "PQ304", "every other pod on its node", id="system priority"),
        pytest.param(
            pod(FULL, "{requests: {memory: 1Gi}, limits: {memory: 2Gi, ephemeral-storage: 1Gi}}"),
            "PQ119",
            "smallest share of the CPU",
            id="cpu",
        ),
    ],
)
def test_a_warning_about_pods_that_are_evicted_last_says_what_is_bad(text, check, harm):
    finding = the(text, check)
    words = consequence(finding.consequence, finding.facts)

    assert harm in words
    assert "evicted last" not in words


@pytest.mark.parametrize(
    "kind", ["Workflow", "CronWorkflow", "JobSet", "MPIJob", "PyTorchJob", "SparkApplication", "TaskRun", "RayJob"]
)
def test_batch_work_is_not_called_long_running(kind):
    assert runs_until_done(Workload(kind, ObjectMeta(name="p"), Pod()))


def test_a_deployment_is_long_running():
    assert found(pod("{}", kind="Deployment"), "PQ102")


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_bare_pod_that_is_not_restarted_when_done_is_not_long_running(policy):
    assert found(pod("{}", extra=f"restartPolicy: {policy}"), "PQ102") == []


def in_namespace(text, namespace):
    """Return the pod in a namespace."""
    return text.replace("{name: p,", f"{{name: p, namespace: {namespace},", 1)


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        pytest.param(pod(BURST, extra=CLUSTER_CRITICAL), "warning", id="an application in default"),
        pytest.param(
            in_namespace(pod(BURST, extra=CLUSTER_CRITICAL), "longhorn-system"), "info", id="its own namespace"
        ),
        pytest.param(
            in_namespace(
                pod(BURST, extra=CLUSTER_CRITICAL), "shop, annotations: {podqos.dev/latency-sensitive: 'true'}"
            ),
            "warning",
            id="users wait for it",
        ),
        pytest.param(pod(BURST, extra=f"{CLUSTER_CRITICAL}\nhostNetwork: true"), "info", id="on the node's network"),
        pytest.param(
            pod(BURST, extra=f"{CLUSTER_CRITICAL}\nvolumes: [{{name: v, hostPath: {{path: /run}}}}]"),
            "info",
            id="with the node's files",
        ),
        pytest.param(
            pod(BURST, extra=f"{CLUSTER_CRITICAL}\ntolerations: [{{key: CriticalAddonsOnly, operator: Exists}}]"),
            "info",
            id="where add-ons run",
        ),
    ],
)
def test_a_system_priority_is_a_warning_for_applications_alone(text, severity):
    assert the(text, "PQ304").severity == severity


def test_a_sized_init_container_that_ends_is_not_beside_the_others():
    init = "{requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 64Mi}}"

    assert found(pod("{}", init=[init]), "PQ121") == []
    assert "no memory request" in said(pod("{}", init=[init]), "PQ120")


def test_a_little_above_a_small_request_is_an_info():
    little = "{requests: {cpu: 1, memory: 20Mi}, limits: {memory: 100Mi, ephemeral-storage: 1Gi}}"
    much = "{requests: {cpu: 1, memory: 20Mi}, limits: {memory: 500Mi, ephemeral-storage: 1Gi}}"

    assert the(pod(little), "PQ105").severity == "info"
    assert the(pod(much), "PQ105").severity == "warning"
    assert the(pod(much, extra=CLUSTER_CRITICAL), "PQ105").severity == "info"


def test_a_fraction_of_a_gibibyte_is_a_usual_amount():
    assert found(pod("{requests: {cpu: 1, memory: 1Gi}, limits: {memory: 1.2Gi}}"), "PQ117") == []


@pytest.mark.parametrize(
    ("limit", "checks"),
    [
        pytest.param("1Mi", ["PQ128"], id="no error: it may be meant"),
        pytest.param("4Mi", ["PQ128"], id="4Gi need not be meant"),
        pytest.param("5M", ["PQ128"], id="the same in megabytes"),
        pytest.param("128m", ["PQ117"], id="milli-bytes"),
        pytest.param("8Mi", ["PQ128"], id="a runtime refuses it"),
        pytest.param("15Mi", ["PQ128"], id="hardly enough to start"),
        pytest.param("16Mi", [], id="enough"),
    ],
)
def test_a_limit_below_what_a_runtime_needs_is_reported_once(limit, checks):
    text = pod(f"{{requests: {{cpu: 100m, memory: {limit}}}, limits: {{cpu: 100m, memory: {limit}}}}}")

    assert [finding.check for finding in check_text(text) if finding.check in {"PQ117", "PQ128"}] == checks


def test_a_tiny_limit_says_who_refuses_it():
    amounts = "{{requests: {{cpu: 100m, memory: {0}}}, limits: {{cpu: 100m, memory: {0}}}}}"

    assert "12Mi that CRI-O demands" in said(pod(amounts.format("8Mi")), "PQ128")
    assert "CRI-O" not in said(pod(amounts.format("14Mi")), "PQ128")
    assert found(pod(amounts.format("14Mi"), extra="os: {name: windows}"), "PQ128") == []


def test_a_placeholder_is_not_an_error_of_the_object():
    text = pod(BURST, kind="Deployment").replace("{name: p}", "{name: p, namespace: '${NAMESPACE}'}")

    assert {finding.severity for finding in found(text, "PQ127")} == {FindingSeverity.INFO}


def test_a_container_without_a_name_is_rejected_at_its_place():
    finding = the(pod(BURST).replace("name: c0, ", ""), "PQ127")

    assert finding.path == "spec.containers[0].name"
    assert "Required value" in finding.facts.sentence("")


def test_what_an_operator_fills_in_is_not_missing():
    assert is_completed_by_operator(Workload("Kibana", ObjectMeta(name="k"), Pod()))
    assert not is_completed_by_operator(Workload("Rollout", ObjectMeta(name="k"), Pod()))


def test_a_critical_pod_that_fills_the_disk_is_not_evicted_itself():
    critical, other = (
        said(pod("{requests: {cpu: 1, memory: 1Gi}, limits: {memory: 1Gi}}", extra=extra), "PQ108")
        for extra in (NODE_CRITICAL, "")
    )

    assert "other pods are evicted in its place" in critical
    assert "among the first to be evicted" in other


REFUSED = """\
apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec:
  containers:
  - {{name: a, image: i, resources: {{requests: {{cpu: 2, memory: {memory}}}, limits: {{cpu: 1, memory: 1Gi}}}}}}
  - {{name: b, image: i, resources: {{requests: {{cpu: {cpu}}}}}}}
"""


def test_units_are_looked_at_in_a_pod_that_is_refused_for_something_else():
    text = REFUSED.format(memory="512m", cpu="500M")
    assert sorted((each.check, each.container) for each in check_text(text) if each.severity == "error") == [
        ("PQ111", "a"),
        ("PQ117", "a"),
        ("PQ117", "b"),
    ]


@pytest.mark.parametrize(
    ("resources", "so"),
    [
        ("{requests: {cpu: 500M, memory: 1Gi}, limits: {memory: 1Gi}}", "no pods are created or scheduled"),
        ("{requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 500M, memory: 1Gi}}", "the limit is never reached"),
        ("{limits: {cpu: 1, memory: 512m}}", "the container is OOM-killed as it starts"),
        ("{requests: {cpu: 1, memory: 512m}, limits: {memory: 1Gi}}", "evicted once it uses more than it requests"),
    ],
)
def test_a_wrong_unit_has_the_consequence_of_its_own_amount(resources, so):
    (finding,) = found(pod(resources), "PQ117")
    said_of_it = consequence(finding.consequence, finding.facts)
    assert so in said_of_it
    assert ("evicted" in said_of_it) == ("evicted" in so)


def test_a_memory_volume_below_a_limit_ends_its_container_and_not_the_pod():
    volume = "volumes: [{name: cache, emptyDir: {medium: Memory}}]"
    limited = pod("{requests: {cpu: 1, memory: 1Gi}, limits: {memory: 1Gi}}", extra=volume)
    (finding,) = found(limited, "PQ109")
    assert consequence(finding.consequence, finding.facts).startswith("files there count as memory")
    (finding,) = found(pod("{requests: {cpu: 1, memory: 1Gi}}", extra=volume), "PQ109")
    assert "evicted once it uses more than it requests" in consequence(finding.consequence, finding.facts)
