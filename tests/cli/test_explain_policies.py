"""``podqos explain`` shows the pod as stored: with the policies of all files, wherever they stand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podqos.cli.main import main
from said import without_assumptions

EMPTY_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec: {containers: [{name: app, image: app}]}
"""
LIMIT_RANGE = """\
apiVersion: v1
kind: LimitRange
metadata: {name: defaults}
spec: {limits: [{type: Container, default: {cpu: 1, memory: 1Gi}, defaultRequest: {cpu: 100m, memory: 512Mi}}]}
"""
PRIORITY_CLASS = """\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: important}
value: 1000
"""
OVERRIDE = """\
apiVersion: operator.autoscaling.openshift.io/v1
kind: ClusterResourceOverride
metadata: {name: cluster}
spec: {podResourceOverride: {spec: {memoryRequestToLimitPercent: 50}}}
"""
QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: compute}
spec: {hard: {pods: 1}}
"""
LABEL = "clusterresourceoverrides.admission.autoscaling.openshift.io/enabled"


@pytest.fixture
def explain(capsys, tmp_path: Path):
    """Write files, explain the directory, and return exit code, output and what is said besides assumptions."""

    def of(files: dict[str, str], *options: str) -> tuple[int, str, str]:
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        code = main(["explain", "-f", str(tmp_path), "--node-memory", "16Gi", *options])
        said = capsys.readouterr()
        return code, said.out, without_assumptions(said.err).replace(f"{tmp_path}/", "")

    return of


def pod(name: str = "web", spec: str = "") -> str:
    return EMPTY_POD.replace("NAME", name).replace("spec: {", f"spec: {{{spec}")


def only(answer: tuple[int, str, str]):
    """Return the one item of a JSON answer."""
    code, out, _ = answer
    assert code == 0
    (item,) = json.loads(out)["items"]
    return item


def test_the_limit_range_trap_shows_both_classes_and_names_the_policy(explain):
    code, out, err = explain({"pod.yaml": pod(), "policy.yaml": LIMIT_RANGE})
    assert (code, err) == (0, "")
    assert "Pod default/web  Burstable" in out
    assert "app limits: cpu 1, memory 1Gi (default of LimitRange defaults)" in out
    assert "as written it would be BestEffort; LimitRange defaults set default requests and limits" in out
    assert "512Mi / 1Gi" in out


def test_json_has_both_classes_and_what_the_policy_wrote(explain):
    item = only(explain({"pod.yaml": pod(), "policy.yaml": LIMIT_RANGE}, "-o", "json"))
    assert (item["qosClassAsWritten"], item["qosClass"], item["qosClassComputed"]) == (
        "BestEffort",
        "Burstable",
        "Burstable",
    )
    assert [(each["resource"], each["after"], each["source"]) for each in item["policyChanges"]] == [
        ("cpu", "100m", "defaults"),
        ("memory", "512Mi", "defaults"),
        ("cpu", "1", "defaults"),
        ("memory", "1Gi", "defaults"),
    ]


def test_a_limit_range_counts_in_its_own_namespace_only(explain):
    elsewhere = LIMIT_RANGE.replace("name: defaults", "name: defaults, namespace: other")
    item = only(explain({"pod.yaml": pod(), "policy.yaml": elsewhere}, "-o", "json"))
    assert (item["qosClass"], item["policyChanges"]) == ("BestEffort", [])


@pytest.mark.parametrize("threshold", [pytest.param(1, id="over processes"), pytest.param(1 << 40, id="in one")])
def test_policies_of_one_file_count_for_pods_of_others(explain, monkeypatch, threshold):
    monkeypatch.setattr("podqos.parallel.WORTH_FORKING_BYTES", threshold)
    monkeypatch.setattr("podqos.parallel.usable_cores", lambda: 3)
    files = {f"pod-{number}.yaml": pod(f"web-{number}") for number in range(7)}
    code, out, err = explain({**files, "z-policy.yaml": LIMIT_RANGE}, "-o", "csv")
    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == [f"default,web-{number},app,Burstable,969" for number in range(7)]


def test_many_files_in_pieces_give_the_same_as_all_at_once(explain, monkeypatch):
    files = {f"pod-{number:02}.yaml": pod(f"web-{number}") for number in range(70)}
    files |= {"pod-20-limits.yaml": LIMIT_RANGE, "pod-20-other.yaml": LIMIT_RANGE.replace("512Mi", "256Mi")}
    files |= {"pod-30-quota.yaml": QUOTA, "pod-31-class.yaml": PRIORITY_CLASS, "pod-31-twice.yaml": PRIORITY_CLASS}
    files |= {
        "pod-40-map.yaml": "apiVersion: v1\nkind: ConfigMap\n",
        "pod-40_broken.yaml": "kind: [\n",
        "pod-4.yaml": "a: b: c\n",
    }
    files |= {"pod-50-space.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: [a]}\n"}
    monkeypatch.setattr("podqos.parallel.usable_cores", lambda: 2)
    answers = []
    for threshold in (1, 1 << 40):
        monkeypatch.setattr("podqos.parallel.WORTH_FORKING_BYTES", threshold)
        answers += [[explain(files, "-o", output) for output in ("csv", "table", "json")]]
    assert answers[0] == answers[1]
    code, out, said = answers[0][0]
    assert (code, len(out.splitlines())) == (2, 71)
    assert "pod-40_broken.yaml:" in said


@pytest.mark.parametrize("identity", ["uid: u", "resourceVersion: '1'", "creationTimestamp: '2024-01-01T00:00:00Z'"])
def test_a_pod_of_a_cluster_is_stored_already(explain, identity):
    live = pod().replace("name: web", f"name: web, {identity}")
    item = only(explain({"pod.yaml": live, "policy.yaml": LIMIT_RANGE}, "-o", "json"))
    assert (item["qosClass"], item["policyChanges"], item["notes"]) == ("BestEffort", [], [])


def test_the_pods_of_a_deployment_in_a_cluster_are_yet_to_be_stored(explain):
    deployment = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, uid: u}\n"
        "spec: {template: {spec: {containers: [{name: app, image: app}]}}}\n"
    )
    assert only(explain({"web.yaml": deployment, "policy.yaml": LIMIT_RANGE}, "-o", "json"))["qosClass"] == "Burstable"


def test_a_priority_class_of_the_input_gives_its_priority(explain):
    files = {"pod.yaml": pod(spec="priorityClassName: important, "), "class.yaml": PRIORITY_CLASS}
    item = only(explain(files, "-o", "json"))
    assert (item["priority"], item["priorityClassName"], item["notes"]) == (1000, "important", [])
    assert "priority 1000 (PriorityClass important)" in explain(files)[1]


def test_the_global_default_counts_for_pods_that_name_no_class(explain):
    files = {"pod.yaml": pod(), "class.yaml": f"{PRIORITY_CLASS}globalDefault: true\n"}
    item = only(explain(files, "-o", "json"))
    assert (item["priority"], item["priorityClassName"]) == (1000, "important")


def test_a_class_that_is_not_in_the_input_is_said_and_counts_nothing_even_beside_a_global_default(explain):
    files = {"pod.yaml": pod(spec="priorityClassName: gold, "), "class.yaml": f"{PRIORITY_CLASS}globalDefault: true\n"}
    item = only(explain(files, "-o", "json"))
    assert (item["priority"], item["notes"]) == (0, ["PriorityClass gold is not in the input: priority 0 is assumed"])


@pytest.mark.parametrize("output", ["csv", "table", "wide"])
def test_outputs_say_once_what_is_taken_of_classes_that_are_not_in_the_input(explain, capsys, tmp_path, output):
    files = {f"{name}.yaml": pod(name, "priorityClassName: gold, runtimeClassName: kata, ") for name in "ab"}
    explain(files, "-o", "csv")
    code = main(["explain", "-f", str(tmp_path), "-o", output])
    (line,) = capsys.readouterr().err.splitlines()
    assert code == 0
    assert line.startswith("assumed: node memory: 64Gi (--node-memory); ")
    assert line.endswith(
        "; priority of class gold: 0 (--priority gold=VALUE); "
        "overhead of runtime kata: none (--runtime-class kata=cpu=CORES,memory=BYTES)"
    )


def test_a_quota_is_named_and_not_charged(explain):
    files = {"a.yaml": pod("a"), "b.yaml": pod("b"), "quota.yaml": QUOTA}
    code, out, _ = explain(files, "-o", "json")
    note = "ResourceQuota compute is not charged here; podqos admit charges all pods in order"
    assert (code, [item["notes"] for item in json.loads(out)["items"]]) == (0, [[note], [note]])


def test_the_override_acts_where_the_namespace_takes_part_and_is_named_where_not(explain):
    guaranteed = pod().replace("image: app", "image: app, resources: {limits: {cpu: 1, memory: 1Gi}}")
    item = only(explain({"pod.yaml": guaranteed, "override.yaml": OVERRIDE}, "-o", "json"))
    assert item["qosClass"] == "Guaranteed"
    assert item["notes"][-1].startswith("ClusterResourceOverride cluster does not apply: namespace default has not")
    namespace = f'apiVersion: v1\nkind: Namespace\nmetadata: {{name: default, labels: {{{LABEL}: "true"}}}}\n'
    item = only(explain({"namespace.yaml": namespace}, "-o", "json"))
    assert (item["qosClass"], item["containers"][0]["requests"]["memory"]) == ("Burstable", "512Mi")
    (note,) = item["notes"]
    assert note == (
        "as written it would be Burstable, too; limits were copied to missing requests: Guaranteed; "
        "the ClusterResourceOverride set its requests: Burstable"
    )


def test_a_pod_that_policies_refuse_is_explained_as_far_as_it_got(explain):
    large = pod().replace("image: app", "image: app, resources: {requests: {memory: 2Gi}}")
    item = only(explain({"pod.yaml": large, "policy.yaml": LIMIT_RANGE}, "-o", "json"))
    assert "must be less than or equal to memory limit of 1Gi" in item["refusal"]
    assert explain({}, "-o", "csv")[2] == "1 pod is rejected by policies in the input; `podqos admit` shows why\n"


def test_a_priority_that_contradicts_its_class_is_refused(explain):
    item = only(explain({"pod.yaml": pod(spec="priorityClassName: system-node-critical, priority: 5, ")}, "-o", "json"))
    assert "computed 2000001000 from the given PriorityClass name" in item["refusal"]
    assert item["containers"][0]["oomScoreAdj"] == 1000


def test_a_policy_that_cannot_be_read_is_an_error_at_its_place_and_the_rest_is_explained(explain):
    code, out, err = explain({"pod.yaml": pod(), "policy.yaml": LIMIT_RANGE.replace("limits", "limit")}, "-o", "csv")
    assert (code, len(out.splitlines())) == (2, 2)
    assert err.startswith('policy.yaml:4:8: error: spec.limit: unknown field "limit"')


def test_a_policy_that_is_given_twice_is_a_warning_and_the_first_counts(explain):
    files = {"a.yaml": LIMIT_RANGE, "b.yaml": LIMIT_RANGE.replace("512Mi", "1Gi"), "pod.yaml": pod()}
    code, out, err = explain(files, "-o", "csv")
    assert (code, out.splitlines()[1]) == (0, "default,web,app,Burstable,969")
    assert err.startswith("b.yaml:1:1: warning: LimitRange defaults is defined twice (remove one")


def test_a_file_that_is_named_twice_gives_its_policies_once(explain, tmp_path):
    code, _, err = explain({"policy.yaml": LIMIT_RANGE, "pod.yaml": pod()}, "-f", str(tmp_path / "policy.yaml"))
    assert (code, err) == (0, "")


def test_policies_count_for_the_gate(explain):
    files = {"pod.yaml": pod()}
    assert explain(files, "--fail-on", "BestEffort", "-o", "csv")[0] == 1
    assert explain({"policy.yaml": LIMIT_RANGE}, "--fail-on", "BestEffort", "-o", "csv")[0] == 0


def test_check_says_which_classes_are_not_in_the_input(capsys, tmp_path):
    file = tmp_path / "pod.yaml"
    file.write_text(pod(spec="priorityClassName: gold, "))
    main(["check", str(file), "-o", "json"])
    said = capsys.readouterr()
    assumed = [each["what"] for each in json.loads(said.out)["assumptions"]]
    assert "priority of class gold" in assumed
