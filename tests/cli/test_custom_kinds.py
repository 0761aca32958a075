"""Custom resources that hold pods: known kinds are judged, kinds of ``.podqos.yaml`` too, and others are named."""

import json
from pathlib import Path

import pytest

from podqos.cli.main import main

WEAK = "{name: c, image: i, resources: {requests: {memory: 1Gi}, limits: {memory: 8Gi}}}"
SPEC = f"{{containers: [{WEAK}]}}"
POD_TEMPLATE = f"{{metadata: {{labels: {{app: x}}}}, spec: {SPEC}}}"


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(each) for each in arguments])
        return code, *capsys.readouterr()

    return run


def write(api_version, kind, spec, path="object.yaml", metadata="{name: x}"):
    text = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {metadata}\nspec:\n"
    Path(path).write_text(text + "".join(f"  {line}\n" for line in spec.splitlines()))


def one(api_version, kind, spec, *, name="x", pods=1, path="spec.template.spec.containers[0]"):
    return pytest.param(api_version, kind, spec, [(name, pods, path)], id=f"{kind}.{api_version}")


KINDS = [
    one("argoproj.io/v1alpha1", "Rollout", f"replicas: 3\ntemplate: {POD_TEMPLATE}", pods=3),
    one("apps.openshift.io/v1", "DeploymentConfig", f"replicas: 2\ntemplate: {POD_TEMPLATE}", pods=2),
    one("serving.knative.dev/v1", "Service", f"template: {POD_TEMPLATE}"),
    one("serving.knative.dev/v1", "Configuration", f"template: {POD_TEMPLATE}"),
    one("apps.kruise.io/v1alpha1", "CloneSet", f"replicas: 4\ntemplate: {POD_TEMPLATE}", pods=4),
    one("apps.kruise.io/v1beta1", "StatefulSet", f"replicas: 2\ntemplate: {POD_TEMPLATE}", pods=2),
    one("apps.kruise.io/v1alpha1", "BroadcastJob", f"template: {POD_TEMPLATE}"),
    one(
        "keda.sh/v1alpha1",
        "ScaledJob",
        f"jobTargetRef:\n  parallelism: 2\n  template: {POD_TEMPLATE}",
        pods=2,
        path="spec.jobTargetRef.template.spec.containers[0]",
    ),
    one(
        "kubeflow.org/v1",
        "PyTorchJob",
        f"pytorchReplicaSpecs:\n  Worker:\n    replicas: 3\n    template: {POD_TEMPLATE}",
        name="x-worker",
        pods=3,
        path="spec.pytorchReplicaSpecs.Worker.template.spec.containers[0]",
    ),
    one(
        "batch.volcano.sh/v1alpha1",
        "Job",
        f"tasks:\n  - name: task\n    replicas: 5\n    template: {POD_TEMPLATE}",
        name="x-task",
        pods=5,
        path="spec.tasks[0].template.spec.containers[0]",
    ),
    one(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        "replicatedJobs:\n  - name: w\n    replicas: 2\n"
        f"    template: {{spec: {{parallelism: 3, template: {POD_TEMPLATE}}}}}",
        name="x-w",
        pods=6,
        path="spec.replicatedJobs[0].template.spec.template.spec.containers[0]",
    ),
    one(
        "elasticsearch.k8s.elastic.co/v1",
        "Elasticsearch",
        f"nodeSets:\n  - name: hot\n    count: 3\n    podTemplate: {POD_TEMPLATE}",
        name="x-hot",
        pods=3,
        path="spec.nodeSets[0].podTemplate.spec.containers[0]",
    ),
    one(
        "serving.kserve.io/v1beta1",
        "InferenceService",
        f"predictor: {SPEC}",
        name="x-predictor",
        path="spec.predictor.containers[0]",
    ),
    one("serving.kserve.io/v1alpha1", "ServingRuntime", SPEC.strip("{}"), pods=0, path="spec.containers[0]"),
    one(
        "argoproj.io/v1alpha1",
        "Workflow",
        f"templates:\n  - name: graph\n    dag: {{tasks: []}}\n  - name: step\n    container: {WEAK}",
        name="x-step",
        path="spec.templates[1].container",
    ),
    one(
        "argoproj.io/v1alpha1",
        "CronWorkflow",
        f"workflowSpec:\n  templates:\n    - name: step\n      script: {WEAK}",
        name="x-step",
        path="spec.workflowSpec.templates[0].script",
    ),
    pytest.param(
        "ray.io/v1",
        "RayCluster",
        f"headGroupSpec: {{template: {POD_TEMPLATE}}}\n"
        f"workerGroupSpecs:\n  - groupName: gpu\n    replicas: 2\n    template: {POD_TEMPLATE}",
        [
            ("x-head", 1, "spec.headGroupSpec.template.spec.containers[0]"),
            ("x-gpu", 2, "spec.workerGroupSpecs[0].template.spec.containers[0]"),
        ],
        id="RayCluster",
    ),
    pytest.param(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        f"replicas: 2\nleaderWorkerTemplate:\n  size: 4\n  leaderTemplate: {POD_TEMPLATE}\n"
        f"  workerTemplate: {POD_TEMPLATE}",
        [
            ("x-leader", 2, "spec.leaderWorkerTemplate.leaderTemplate.spec.containers[0]"),
            ("x-worker", 6, "spec.leaderWorkerTemplate.workerTemplate.spec.containers[0]"),
        ],
        id="LeaderWorkerSet",
    ),
]


@pytest.mark.parametrize(("api_version", "kind", "spec", "expected"), KINDS)
def test_pods_of_known_kinds_are_judged_where_they_stand(run, api_version, kind, spec, expected):
    write(api_version, kind, spec)
    code, out, err = run("check", "object.yaml", "-o", "json")
    assert " not judged: " not in err
    found = [
        (each["kind"], each["name"], each["patch"]["edits"][0]["path"])
        for each in json.loads(out)["items"]
        if each["check"] == "PQ105"
    ]
    assert code == 1
    paths = [(kind, name, f"{path}.resources.requests.memory") for name, _, path in expected]
    assert sorted(found) == sorted(paths)
    _, out, _ = run("place", "-f", "object.yaml", "--nodes", "9", "--node-capacity", "cpu=9,memory=90Gi", "-o", "csv")
    placed = [line for line in out.splitlines()[1:] if line]
    assert len(placed) == sum(pods for _, pods, _ in expected)


@pytest.mark.parametrize(("api_version", "kind", "spec", "expected"), KINDS)
def test_fix_writes_into_the_template_of_a_known_kind(run, api_version, kind, spec, expected):
    write(api_version, kind, spec)
    run("check", "object.yaml", "--fix", "--only", "PQ105")
    assert Path("object.yaml").read_text().count("requests: {memory: 2Gi}") == len(expected)


@pytest.mark.parametrize(
    "command", [["explain", "-o", "csv"], ["admit", "-o", "csv"], ["rank"], ["cpu", "--cores", "2"]]
)
def test_every_command_knows_the_kinds(run, command):
    write("argoproj.io/v1alpha1", "Rollout", f"template: {POD_TEMPLATE}")
    code, out, _ = run(*command, "-f", "object.yaml")
    assert (code, "x" in out) == (0, True)


def test_a_kind_of_another_group_is_not_taken_for_a_known_one(run):
    write("example.com/v1", "Rollout", f"template: {POD_TEMPLATE}")
    code, _, err = run("explain", "-f", "object.yaml")
    assert code == 2
    assert "Rollout x not judged: it has a pod at spec.template, but its kind is unknown" in err


def test_a_pod_in_an_unknown_kind_is_named_with_the_line_that_makes_it_known(run):
    write("example.com/v1", "Widget", f"pools:\n  - podTemplate: {POD_TEMPLATE}")
    code, _, err = run("explain", "-f", "object.yaml")
    assert code == 2
    hint = "kinds: {Widget: spec.pools.*.podTemplate}"
    assert f"({hint} in .podqos.yaml)" in err
    assert "without pods" not in err
    Path(".podqos.yaml").write_text(hint)
    for command in (["explain", "-o", "table"], ["check"], ["cpu", "--cores", "2"], ["admit", "-o", "table"]):
        code, out, err = run(*command, "-f", "object.yaml")
        assert (code in {0, 1}, "x" in out) == (True, True), command
        assert " not judged: " not in err


def test_many_objects_of_an_unknown_kind_are_one_line(run):
    Path("d").mkdir()
    for number in range(4):
        write("example.com/v1", "Widget", f"pod: {SPEC}", f"d/{number}.yaml", f"{{name: w{number}}}")
    _, _, err = run("check", "-f", "d")
    assert err.count(" not judged: it") == 1
    assert "Widget w0 and 3 more not judged" in err


def test_a_configured_path_without_a_pod_is_said(run):
    write("example.com/v1", "Widget", f"pod: {SPEC}")
    Path(".podqos.yaml").write_text("kinds: {Widget: spec.elsewhere}")
    _, _, err = run("check", "-f", "object.yaml")
    assert "Widget x not judged: it has no pod at spec.elsewhere" in err


@pytest.mark.parametrize("text", ["kinds: [Widget]", "kinds: {Widget: {a: b}}", "kinds: Widget"])
@pytest.mark.parametrize("command", ["check", "explain"])
def test_kinds_that_are_no_mapping_of_paths_are_an_error(run, command, text):
    write("example.com/v1", "Widget", f"pod: {SPEC}")
    Path(".podqos.yaml").write_text(text)
    code, _, err = run(command, "-f", "object.yaml")
    assert code == 2
    assert ".podqos.yaml" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("api_version", "kind", "spec"),
    [
        ("tekton.dev/v1", "Task", "steps: [{name: s, image: i}]"),
        ("sparkoperator.k8s.io/v1beta2", "SparkApplication", "driver: {cores: 1}"),
        ("helm.toolkit.fluxcd.io/v2", "HelmRelease", "chart: {}"),
        ("serving.kserve.io/v1beta1", "InferenceService", "predictor: {model: {resources: {}}}"),
    ],
)
def test_a_kind_whose_pods_are_built_elsewhere_is_named_as_not_judged(run, api_version, kind, spec):
    write(api_version, kind, spec)
    code, _, err = run("explain", "-f", "object.yaml")
    assert code == 2
    assert f"{kind} x not judged: its pods are built from" in err
    assert "no pods explained" in err


def test_a_policy_engines_pattern_is_no_pod(run):
    write("kyverno.io/v1", "ClusterPolicy", f"rules: [{{validate: {{pattern: {{spec: {SPEC}}}}}}}]")
    _, _, err = run("explain", "-f", "object.yaml")
    assert " not judged: " not in err


def test_amounts_that_are_parameters_are_not_judged(run):
    template = POD_TEMPLATE.replace("memory: 8Gi", "memory: $(MEMORY)")
    write("argoproj.io/v1alpha1", "Rollout", f"template: {template}")
    code, _, err = run("explain", "-f", "object.yaml")
    assert code == 2
    assert "the resources at spec.template are template parameters" in err


def test_what_a_controller_adds_is_an_assumption(run):
    write("serving.knative.dev/v1", "Service", f"template: {POD_TEMPLATE}")
    _, _, err = run("explain", "-f", "object.yaml", "-o", "table")
    assert "containers added to the pods of Service" in err
    assert "(queue-proxy): none" in err


def test_a_mistake_in_a_template_is_told_at_its_place(run):
    write("argoproj.io/v1alpha1", "Workflow", f"templates:\n  - name: s\n    container: {WEAK.replace('8Gi', '8GG')}")
    code, _, err = run("check", "-f", "object.yaml")
    assert code == 2
    assert "object.yaml:7:" in err
    assert 'spec.templates[0].container.resources.limits.memory: "8GG" is not a valid quantity' in err


def test_workflows_of_one_generated_name_are_two(run):
    flow = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {generateName: f-}\n"
    flow += f"spec: {{templates: [{{name: s, container: {WEAK}}}]}}\n"
    Path("flows.yaml").write_text(f"{flow}---\n{flow}")
    code, out, _ = run("rank", "-f", "flows.yaml", "-o", "csv")
    assert (code, len(out.splitlines())) == (0, 3)
    code, out, _ = run("place", "-f", "flows.yaml", "--nodes", "1", "--node-capacity", "cpu=4,memory=8Gi", "-o", "csv")
    assert (code in {0, 1}, len(out.splitlines())) == (True, 3)


@pytest.mark.parametrize("value", ["null", "5", "text", "[]", "{containers: 5}", "{containers: [5]}", "{spec: []}"])
def test_odd_templates_are_no_pods_and_no_crash(run, value):
    write("argoproj.io/v1alpha1", "Rollout", f"template: {value}")
    code, _, err = run("explain", "-f", "object.yaml")
    assert code == 2
    assert "Traceback" not in err


@pytest.mark.parametrize("metadata", ["null", "[]", "{name: [a]}", "{name: 5}", "{}"])
def test_odd_metadata_is_told_and_no_crash(run, metadata):
    write("argoproj.io/v1alpha1", "Workflow", f"templates: [{{name: s, container: {WEAK}}}]", metadata=metadata)
    code, _, err = run("explain", "-f", "object.yaml")
    assert code == 2
    assert "error: metadata" in err
    assert "Traceback" not in err


def test_check_with_nothing_to_check_says_so_and_exits_as_explain_does(run):
    Path("map.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {}\n")
    code, _, err = run("check", "map.yaml")
    assert (code, run("explain", "-f", "map.yaml")[0]) == (2, 2)
    assert "nothing to check: no workloads, policies or kubelet configurations (skipped 1 other object)" in err
