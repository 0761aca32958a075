"""Argo's workflows: patches, defaults and parameters, the same for every command."""

import json
from pathlib import Path

import pytest

from podqos.cli.main import main

EQUAL = "{limits: {cpu: 1, memory: 1Gi}}"
NODES = ("--nodes", "1", "--node-capacity", "cpu=64,memory=64Gi")


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(each) for each in arguments])
        return code, *capsys.readouterr()

    return run


def write(spec, kind="Workflow"):
    indented = "".join(f"  {line}\n" for line in spec.splitlines())
    Path("flow.yaml").write_text(
        f"apiVersion: argoproj.io/v1alpha1\nkind: {kind}\nmetadata: {{name: x}}\nspec:\n{indented}"
    )


def explained(run):
    _, out, err = run("explain", "-f", "flow.yaml", "-o", "json")
    pods = json.loads(out)["items"] if out else []
    return {pod["name"]: pod for pod in pods}, err


def test_the_containers_that_argo_adds_keep_a_pod_from_being_guaranteed(run):
    write(f"templates: [{{name: s, container: {{image: i, resources: {EQUAL}}}}}]")
    pods, _ = explained(run)
    assert pods["x-s"]["qosClass"] == "Burstable"
    assert [each["name"] for each in pods["x-s"]["containers"]] == ["main", "wait", "init"]
    code, out, err = run("check", "flow.yaml", "-o", "json")
    assert code == 1
    assert [(each["check"], each["container"]) for each in json.loads(out)["items"] if each["severity"] != "info"] == [
        ("PQ101", "wait")
    ]
    _, _, err = run("check", "flow.yaml")
    assert "executor, mainContainer and workflowDefaults in Argo's workflow-controller-configmap: not set" in err


def test_a_patch_that_sizes_argos_containers_makes_the_pod_guaranteed(run):
    containers = f"[{{name: main, resources: {EQUAL}}}, {{name: wait, resources: {EQUAL}}}]"
    write(
        f"podSpecPatch: '{{containers: {containers}, initContainers: [{{name: init, resources: {EQUAL}}}]}}'\n"
        "templates: [{name: s, script: {image: i, source: s}}]"
    )
    assert explained(run)[0]["x-s"]["qosClass"] == "Guaranteed"


def test_pod_level_resources_count_for_all_containers(run):
    write(f"podResources: {EQUAL}\ntemplates: [{{name: s, container: {{image: i}}}}]")
    assert explained(run)[0]["x-s"]["qosClass"] == "Guaranteed"


def memory(run, name="x-s"):
    pods, err = explained(run)
    assert name in pods, err
    main_container = next(each for each in pods[name]["containers"] if each["name"] == "main")
    return main_container["limits"].get("memory")


def patch(text):
    return f'\'{{"containers": [{{"name": "main", "resources": {{"limits": {{"memory": "{text}"}}}}}}]}}\''


def test_a_templates_patch_is_applied_after_the_workflows(run):
    step = f"{{name: s, podSpecPatch: {patch('3Gi')}, container: {{image: i}}}}"
    write(f"podSpecPatch: {patch('2Gi')}\ntemplates: [{step}, {{name: t, container: {{image: i}}}}]")
    assert (memory(run), memory(run, "x-t")) == ("3Gi", "2Gi")


def test_a_patch_in_a_cron_workflow_is_applied(run):
    write(
        f"workflowSpec:\n  podSpecPatch: {patch('2Gi')}\n  templates: [{{name: s, container: {{image: i}}}}]",
        "CronWorkflow",
    )
    assert memory(run) == "2Gi"


def test_a_finding_about_a_patched_amount_is_at_the_patch_and_is_not_fixed_in_place(run):
    write(f"podSpecPatch: {patch('2Gi')}\ntemplates: [{{name: s, container: {{image: i}}}}]")
    before = Path("flow.yaml").read_text()
    _, out, _ = run("check", "flow.yaml", "-o", "json", "--only", "PQ106")
    (finding,) = json.loads(out)["items"]
    assert (finding["line"], finding["patch"]["needsChoice"]) == (5, "pod-spec-patch")
    assert finding["patch"]["paths"] == ["spec.podSpecPatch.containers[main].resources.requests.memory"]
    run("check", "flow.yaml", "--fix", "--only", "PQ106")
    assert Path("flow.yaml").read_text() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("'{containers: ['", "is not YAML", id="broken"),
        pytest.param("hello", "is not a pod's spec", id="text"),
        pytest.param("'{$setElementOrder/containers: []}'", "contains $setElementOrder/containers", id="directive"),
        pytest.param(patch("{{inputs.parameters.m}}"), "contains {{inputs.parameters.m}}", id="input"),
        pytest.param(patch("{{=sprig.int(1)}}Gi"), "contains {{=sprig.int(1)}}", id="expression"),
        pytest.param(patch("{{workflow.parameters.m}}"), "contains {{workflow.parameters.m}}", id="no value"),
    ],
)
def test_a_patch_that_cannot_be_applied_is_said_and_the_other_templates_are_judged(run, text, said):
    write(
        f"templates: [{{name: s, podSpecPatch: {text}, container: {{image: i}}}}, {{name: t, container: {{image: i}}}}]"
    )
    pods, err = explained(run)
    assert list(pods) == ["x-t"]
    assert f"Workflow x-s not judged: spec.templates[0].podSpecPatch {said}" in err


PARAMETER = (
    f"arguments: {{parameters: [{{name: m, value: 2Gi}}]}}\npodSpecPatch: {patch('{{workflow.parameters.m}}')}\n"
)
STEP = "templates: [{name: s, container: {image: i}}]"


def test_a_parameter_whose_value_the_workflow_states_is_filled_in(run):
    write(PARAMETER + STEP)
    assert memory(run) == "2Gi"


@pytest.mark.parametrize("kind", ["WorkflowTemplate", "ClusterWorkflowTemplate"])
def test_a_default_that_whoever_submits_it_may_change_is_not_filled_in(run, kind):
    write(PARAMETER + STEP, kind)
    pods, err = explained(run)
    assert pods == {}
    assert "spec.podSpecPatch contains {{workflow.parameters.m}}" in err


def test_defaults_are_those_of_the_templates_type_and_its_own_fields_win(run):
    write(
        "templateDefaults:\n"
        "  container: {image: d, resources: {limits: {memory: 2Gi, cpu: 1}}}\n"
        "  script: {image: d, source: s, resources: {limits: {memory: 4Gi}}}\n"
        "templates:\n"
        "  - {name: s, container: {resources: {limits: {memory: 3Gi}}}}\n"
        "  - {name: t, container: {image: i}}\n"
    )
    assert (memory(run), memory(run, "x-t")) == ("3Gi", "2Gi")


@pytest.mark.parametrize(
    ("template", "names"),
    [
        pytest.param("container: {name: '', image: i}", ["main", "wait", "init"], id="no name"),
        pytest.param("container: {name: other, image: i}", ["main", "wait", "init"], id="main is always main"),
        pytest.param("script: {image: i, source: s}", ["main", "wait", "init"], id="script"),
        pytest.param("resource: {action: get}", ["main", "init"], id="resource"),
        pytest.param("data: {source: {}}", ["main", "init"], id="data"),
        pytest.param(
            "containerSet: {containers: [{name: a, image: i}, {name: b, image: i}]}",
            ["a", "b", "wait", "init"],
            id="set",
        ),
        pytest.param(
            "container: {image: i}\n    sidecars: [{name: s, image: i}]\n    initContainers: [{name: p, image: i}]",
            ["main", "s", "wait", "p", "init"],
            id="beside",
        ),
    ],
)
def test_a_template_has_the_containers_that_argo_gives_it(run, template, names):
    write(f"templates:\n  - name: ''\n    {template}")
    pods, err = explained(run)
    assert [each["name"] for each in pods["x-0"]["containers"]] == names, err


@pytest.mark.parametrize(
    "template", ["http: {url: u}", "suspend: {}", "steps: []", "dag: {tasks: []}", "plugin: {a: b}"]
)
def test_a_template_without_a_pod_of_its_own_is_none(run, template):
    write(f"templates:\n  - name: s\n    {template}")
    assert explained(run)[0] == {}


def test_a_template_that_is_written_inline_is_judged(run):
    write(
        f"templates:\n  - name: s\n    steps: [[{{name: t, inline: {{container: {{image: i, resources: {EQUAL}}}}}}}]]"
    )
    assert explained(run)[0]["x-s-0-t"]["qosClass"] == "Burstable"


COMMANDS = [
    ("explain", "-f", "flow.yaml"),
    ("check", "flow.yaml"),
    ("admit", "-f", "flow.yaml"),
    ("rank", "-f", "flow.yaml"),
    ("forecast", "-f", "flow.yaml", "--growing", "system"),
    ("place", "-f", "flow.yaml", *NODES),
    ("drift", "flow.yaml", "flow.yaml"),
    ("advise", "-f", "flow.yaml"),
    ("policy", "test", "-f", "flow.yaml", "--policies", "policy.yaml"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_every_command_says_the_same_of_a_field_that_depends_on_a_parameter(run, command):
    write(
        "nodeSelector: {arch: '{{workflow.parameters.arch}}'}\n"
        "templates:\n"
        "  - name: s\n"
        "    priorityClassName: '{{inputs.parameters.class}}'\n"
        "    container:\n"
        "      image: 'i:{{inputs.parameters.tag}}'\n"
        "      ports: [{containerPort: '{{inputs.parameters.port}}'}]\n"
        "      resources: {requests: {memory: 1Gi}, limits: {memory: 1Gi}}\n"
        "  - {name: t, podSpecPatch: '{{inputs.parameters.patch}}', container: {image: i}}\n"
    )
    rule = "{name: any, require: {minClass: Burstable}, action: Warn}"
    Path("policy.yaml").write_text(
        f"apiVersion: podqos.dev/v1alpha1\nkind: Policy\nmetadata: {{name: p}}\nspec: {{rules: [{rule}]}}\n"
    )
    _, out, err = run(*command)
    assert "error: spec" not in err
    assert "rejected" not in out
    said = [line.removeprefix("flow.yaml:") for line in err.splitlines() if line.startswith("flow.yaml:")]
    how = "use the running pods: kubectl get pods -o yaml"
    unknown = ("{{inputs.parameters.patch}}", "{{workflow.parameters.arch}}", "{{inputs.parameters.class}}")
    assert said == [
        f"1:1: warning: Workflow x-t not judged: spec.templates[1].podSpecPatch contains {unknown[0]} ({how})",
        f"5:3: warning: spec.nodeSelector: not judged: it depends on {unknown[1]}",
        f"8:7: warning: spec.templates[0].priorityClassName: not judged: it depends on {unknown[2]}",
    ]


def test_what_the_workflow_says_for_all_pods_counts_where_a_template_says_nothing(run):
    write(
        "podPriorityClassName: system-node-critical\n"
        "templates:\n"
        "  - {name: s, container: {image: i}}\n"
        "  - {name: t, priorityClassName: system-cluster-critical, container: {image: i}}\n"
    )
    _, out, _ = run("rank", "-f", "flow.yaml", "-o", "json")
    assert {each["pod"]: each["priority"] for each in json.loads(out)["evictionOrder"]} == {
        "default/x-s-0": 2000001000,
        "default/x-t-0": 2000000000,
    }
