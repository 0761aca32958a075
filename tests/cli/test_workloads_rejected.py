"""Workloads that the API server rejects before any of their pods exists, command by command."""

from __future__ import annotations

import io
import json
import sys

import pytest

from podqos.cli.main import main

TEMPLATE = """\
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web
        resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 100m, memory: 64Mi}}
"""
SELECTOR = "  selector: {matchLabels: {app: web}}\n"
JOB = TEMPLATE.replace("    spec:\n", "    spec:\n      restartPolicy: Never\n")


def manifest(kind: str, spec: str = "", template: str = TEMPLATE, name: str = "web") -> str:
    version = "batch/v1" if kind in {"Job", "CronJob"} else "apps/v1"
    selector = "" if version == "batch/v1" else SELECTOR
    head = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n"
    if kind == "CronJob":
        indented = "".join(f"    {line}\n" for line in template.splitlines())
        return f"{head}{spec}  jobTemplate:\n    spec:\n{indented}"
    return head + spec + selector + template


# What is written, the answer of the API server after the name, and where the field at fault is.
REJECTED = {
    "unknown field": (
        manifest("Deployment", "  replica: 3\n"),
        (
            '400 Bad Request: Deployment in version "v1" cannot be handled as a Deployment: '
            'strict decoding error: unknown field "spec.replica"'
        ),
        "5:3: spec.replica",
    ),
    "type of serviceName": (
        manifest("StatefulSet", "  serviceName: 5\n"),
        (
            '400 Bad Request: StatefulSet in version "v1" cannot be handled as a StatefulSet: '
            "json: cannot unmarshal number into Go struct field StatefulSetSpec.spec.serviceName of type string"
        ),
        "5:3: spec.serviceName",
    ),
    "negative replicas": (
        manifest("Deployment", "  replicas: -1\n"),
        '422 Invalid: Deployment.apps "web" is invalid: spec.replicas: Invalid value: -1: must be greater than',
        "5:3: spec.replicas",
    ),
    "restartPolicy of a Job": (
        manifest("Job"),
        (
            '422 Invalid: Job.batch "web" is invalid: spec.template.spec.restartPolicy: '
            'Required value: valid values: "OnFailure", "Never"'
        ),
        "spec.template.spec.restartPolicy",
    ),
    "restartPolicy of a DaemonSet": (
        manifest("DaemonSet", template=JOB),
        (
            '422 Invalid: DaemonSet.apps "web" is invalid: spec.template.spec.restartPolicy: '
            'Unsupported value: "Never": supported values: "Always"'
        ),
        "9:7: spec.template.spec.restartPolicy",
    ),
    "activeDeadlineSeconds": (
        manifest("ReplicaSet", template=JOB.replace("restartPolicy: Never", "activeDeadlineSeconds: 60")),
        (
            '422 Invalid: ReplicaSet.apps "web" is invalid: spec.template.spec.activeDeadlineSeconds: '
            "Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported"
        ),
        "9:7: spec.template.spec.activeDeadlineSeconds",
    ),
    "schedule": (
        manifest("CronJob", "  schedule: every day\n", JOB),
        (
            '422 Invalid: CronJob.batch "web" is invalid: spec.schedule: Invalid value: "every day": '
            "expected exactly 5 fields, found 2: [every day]"
        ),
        "5:3: spec.schedule",
    ),
    "time zone": (
        manifest("CronJob", "  schedule: '@daily'\n  timeZone: Europe/Atlantis\n", JOB),
        (
            '422 Invalid: CronJob.batch "web" is invalid: spec.timeZone: Invalid value: "Europe/Atlantis": '
            "unknown time zone Europe/Atlantis"
        ),
        "6:3: spec.timeZone",
    ),
    "name of a CronJob": (
        manifest("CronJob", "  schedule: '@daily'\n", JOB, name="n" * 53),
        "must be no more than 52 characters",
        "3:12: metadata.name",
    ),
}


@pytest.fixture(params=REJECTED)
def rejected(request, tmp_path):
    text, message, place = REJECTED[request.param]
    path = tmp_path / "web.yaml"
    path.write_text(text)
    return path, message, place


def test_admit_prints_the_servers_answer_and_no_step_of_a_pod(rejected, capsys):
    path, message, place = rejected
    assert main(["admit", "-f", str(path)]) == 1
    out = capsys.readouterr().out
    assert message in out
    assert place in out
    assert not [step for step in ("Priority", "LimitRanger", "RuntimeClass") if step in out]
    assert "FailedCreate" not in out  # which is said of pods that are refused to a controller


def test_check_reports_an_error_at_its_place(rejected, capsys):
    path, _, place = rejected
    assert main(["check", "-f", str(path), "-o", "json"]) == 1
    (finding,) = [item for item in json.loads(capsys.readouterr().out)["items"] if item["check"] == "PQ127"]
    line, _, rest = place.partition(":")
    if line.isdecimal():
        assert (finding["line"], finding["column"]) == (int(line), int(rest.partition(":")[0]))
    assert finding["severity"] == "error"
    assert finding["path"] == place.rpartition(" ")[2]


@pytest.mark.parametrize("command", ["explain", "rank"])
def test_other_commands_warn_and_answer(command, tmp_path, capsys):
    path = tmp_path / "web.yaml"
    path.write_text(REJECTED["time zone"][0])
    assert main([command, "-f", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "web" in out
    assert ":6:3: warning: spec.timeZone: Invalid value: " in err


@pytest.mark.parametrize(
    "text",
    [
        manifest("Deployment", "  strategy: {rollingUpdate: {maxUnavailable: 0}}\n  minReadySeconds: 5\n"),
        manifest("StatefulSet", "  serviceName: web\n  podManagementPolicy: Parallel\n"),
        manifest("Job", "  completions: 3\n  completionMode: Indexed\n", JOB),
        manifest("CronJob", "  schedule: 0 9-17 * * MON-FRI\n  timeZone: Europe/Berlin\n", JOB),
        "apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: web}\nspec:\n" + TEMPLATE,
    ],
    ids=["Deployment", "StatefulSet", "Job", "CronJob", "a version of another time"],
)
def test_what_the_server_takes_is_taken(text, tmp_path, capsys):
    path = tmp_path / "web.yaml"
    path.write_text(text)
    assert main(["admit", "-f", str(path)]) == 0
    assert main(["check", "-f", str(path), "--only", "PQ127"]) == 0
    assert "rejects" not in capsys.readouterr().err


def test_a_workload_in_a_namespace_that_is_going_away_is_rejected_itself(tmp_path, capsys):
    path = tmp_path / "web.yaml"
    namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: default}\nstatus: {phase: Terminating}\n"
    path.write_text(manifest("Deployment") + namespace)
    assert main(["admit", "-f", str(path)]) == 1
    message = 'deployments.apps "web" is forbidden: unable to create new content in namespace default because it is'
    assert message in capsys.readouterr().out


def test_eval_answers_with_code_and_message(monkeypatch, capsysbinary):
    value = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {"spec": {}}}}
    lines = [{"id": 1, "input": value}, {"id": 2, "input": {"kind": "Service"}}]
    text = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert main(["eval", "workload_admission"]) == 0
    first, second = map(json.loads, capsysbinary.readouterr().out.splitlines())
    assert first["result"]["code"] == 422
    assert first["result"]["message"].startswith('Job.batch "j" is invalid: [spec.template.spec.containers: Required')
    assert "'Service' is not a kind of workload" in second["error"]


# ---- names -----------------------------------------------------------------------------------------------------------

QUOTA = "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {pods: '0'}}\n"


def pod(metadata: str, spec: str = "") -> str:
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{{metadata}}}\nspec: {{{spec}containers: [{{name: a, image: a}}]}}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (pod("generateName: web-", "priority: 5, "), 'pods "web-" is forbidden: the integer value of priority (5)'),
        (pod("", "priority: 5, "), 'pods "Unknown" is forbidden: the integer value of priority (5)'),
        (pod("generateName: web-") + QUOTA, 'pods "web-xxxxx" is forbidden: exceeded quota'),
        (pod("generateName: web-", "restartPolicy: Seldom, "), 'Pod "web-xxxxx" is invalid: spec.restartPolicy'),
        (manifest("Deployment") + QUOTA, 'pods "web-xxxxxxxxxx-xxxxx" is forbidden: exceeded quota'),
        (manifest("StatefulSet") + QUOTA, 'pods "web-0" is forbidden: exceeded quota'),
        (manifest("DaemonSet") + QUOTA, 'pods "web-xxxxx" is forbidden: exceeded quota'),
        (manifest("Job", template=JOB) + QUOTA, 'pods "web-xxxxx" is forbidden: exceeded quota'),
        (
            manifest("CronJob", "  schedule: '@daily'\n", JOB) + QUOTA,
            'pods "web-xxxxxxxx-xxxxx" is forbidden: exceeded quota',
        ),
    ],
    ids=[
        "before",
        "before, without a name",
        "after",
        "validation",
        "Deployment",
        "StatefulSet",
        "DaemonSet",
        "Job",
        "CronJob",
    ],
)
def test_a_pod_is_called_what_the_server_calls_it(text, message, tmp_path, capsys):
    """Plug-ins that change a pod speak of it before its name is generated."""
    path = tmp_path / "pod.yaml"
    path.write_text(text)
    assert main(["admit", "-f", str(path)]) in {1, 2}  # one without a name is an error of the file as well
    assert message in capsys.readouterr().out


def test_the_second_pod_of_a_stateful_set_has_its_number(tmp_path, capsys):
    path = tmp_path / "web.yaml"
    path.write_text(manifest("StatefulSet", "  replicas: 3\n") + QUOTA.replace("'0'", "'1'"))
    assert main(["admit", "-f", str(path)]) == 1
    assert 'pods "web-1" is forbidden: exceeded quota' in capsys.readouterr().out


# ---- policies --------------------------------------------------------------------------------------------------------

LIMITS = "---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: l}\nspec: {limits: [{type: Pod, max: {cpu: 1m}}]}\n"
POLICY = """\
apiVersion: podqos.dev/v1alpha1
kind: Policy
metadata: {name: any}
spec: {rules: [{name: any, require: {requests: [memory]}, action: Audit}]}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            manifest("Deployment", template=JOB.replace("restartPolicy: Never", "priority: 5")),
            'its pods can never be admitted: pods "web-xxxxxxxxxx-" is forbidden: the integer value of priority (5)',
        ),
        (
            manifest("Deployment", template=TEMPLATE.replace("image: web", "image: ' web'")),
            'its pods can never be admitted: Pod "web-xxxxxxxxxx-xxxxx" is invalid: spec.containers[0].image',
        ),
        (
            manifest("Deployment") + LIMITS,
            'its pods can never be admitted: pods "web-xxxxxxxxxx-xxxxx" is forbidden: maximum cpu usage per Pod',
        ),
        (manifest("Deployment") + QUOTA, ""),
        (manifest("Deployment", template=JOB.replace("restartPolicy: Never", "priorityClassName: of-the-cluster")), ""),
        (manifest("Deployment"), ""),
    ],
    ids=["priority", "image", "LimitRange", "a quota may change", "a class may exist", "fine"],
)
def test_policy_test_says_of_a_template_that_its_pods_can_never_be_admitted(text, message, tmp_path, capsys):
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "web.yaml").write_text(text)
    assert main(["policy", "test", "-f", str(tmp_path / "policy.yaml"), "-f", str(tmp_path / "web.yaml")]) == 0
    err = capsys.readouterr().err
    assert message in err
    assert ("never be admitted" in err) == bool(message)


def test_fields_that_the_server_names_in_one_answer_are_one_finding(tmp_path, capsys):
    path = tmp_path / "web.yaml"
    path.write_text(manifest("Deployment", "  replica: 2\n  strategi: {}\n"))
    main(["check", "-f", str(path), "-o", "json"])
    (item,) = [item for item in json.loads(capsys.readouterr().out)["items"] if item["check"] == "PQ127"]

    assert item["reason"] == 'strict decoding error: unknown field "spec.replica", unknown field "spec.strategi"'
    assert item["patch"]["paths"] == ["spec.replica", "spec.strategi"]


def test_a_value_that_the_server_both_lists_and_rejects_is_said_to_need_a_feature_gate(tmp_path, capsys):
    path = tmp_path / "pod.yaml"
    path.write_text(pod("name: web", "tolerations: [{key: level, operator: Gt, value: '9'}], "))
    main(["check", "-f", str(path), "-o", "json"])
    (item,) = [item for item in json.loads(capsys.readouterr().out)["items"] if item["check"] == "PQ127"]

    assert item["reason"].endswith(
        'supported values: "Equal", "Exists", "Lt", "Gt" (its feature gate is off by default)'
    )


NAMED = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers: [{name: a, image: a, resizePolicy: [{resourceName: disk, restartPolicy: NotRequired}]}]
      tolerations: [{key: gpu, operator: Exists, effect: NoRun}]
"""


@pytest.mark.parametrize(
    ("where", "beside"),
    [
        ("metadata: {name: web}", "metadata: {name: web}"),
        ("      containers", "      nodeSelector: {disk: ssd}\n      containers"),
        ("  selector", "  minReadySeconds: 5\n  selector"),
        ("metadata: {name: web}", "metadata: {finalizers: [a.com/b], name: web}"),
    ],
    ids=["nothing", "nodeSelector", "minReadySeconds", "finalizers"],
)
def test_what_is_rejected_does_not_depend_on_what_is_beside_it(tmp_path, capsys, where, beside):
    (tmp_path / "web.yaml").write_text(NAMED.replace(where, beside))
    assert main(["check", "-f", str(tmp_path / "web.yaml"), "-o", "json"]) == 1
    items = json.loads(capsys.readouterr().out)["items"]
    assert {item["path"] for item in items if item["check"] == "PQ127"} == {
        "spec.template.spec.containers[0].resizePolicy",
        "spec.template.spec.tolerations[0].effect",
    }


def test_a_pod_is_rejected_for_what_its_template_would_be(tmp_path, capsys):
    spec = NAMED.partition("    spec:\n")[2]
    (tmp_path / "pod.yaml").write_text(f"apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n{spec}")
    assert main(["check", "-f", str(tmp_path / "pod.yaml")]) == 1
    out = capsys.readouterr().out
    assert "spec.containers[0].resizePolicy: Unsupported value" in out
    assert "spec.tolerations[0].effect: Unsupported value" in out


JUDGED_ELSEWHERE = (
    NAMED.partition("resizePolicy")[0]
    + """env: [{name: A=B}], ports: [{containerPort: 0}],
        livenessProbe: {httpGet: {path: /}}, securityContext: {runAsUser: -1}}]
      volumes: [{name: a, nfs: {}}]
  strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}
"""
)


def test_fields_that_have_nothing_to_do_with_resources_are_left_to_the_server_and_admit_says_so(tmp_path, capsys):
    (tmp_path / "web.yaml").write_text(JUDGED_ELSEWHERE)
    assert main(["check", "-f", str(tmp_path / "web.yaml"), "--only", "PQ127"]) == 0
    capsys.readouterr()
    assert main(["admit", "-f", str(tmp_path / "web.yaml")]) == 0
    assert capsys.readouterr().out.count("`kubectl apply --dry-run=server`") == 1


NEW_IN_1_37 = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  evictionResponders: [{name: acme.io/drain, priority: 10000}]
  containers:
  - name: a
    image: a
    volumeMounts: [{name: c, mountPath: /c, bindMountOptions: [noexec]}]
    livenessProbe: {httpGet: {port: 80, protocol: HTTP2}}
    readinessProbe: {grpc: {port: 90, mode: TLS}}
  volumes:
  - {name: c, emptyDir: {mode: 0700}}
  - {name: s, secret: {secretName: s, defaultUser: 1000, items: [{key: a, path: b, user: 5}]}}
  - {name: p, projected: {defaultUser: 1, sources: [{serviceAccountToken: {path: a, user: 4}}]}}
"""


@pytest.mark.parametrize("command", ["check", "explain", "admit"])
def test_fields_that_are_new_in_1_37_are_known_and_ignored(tmp_path, capsys, command):
    (tmp_path / "pod.yaml").write_text(NEW_IN_1_37)
    assert main([command, "-f", str(tmp_path / "pod.yaml"), "--kubernetes-version", "1.37"]) < 2
    said = "".join(capsys.readouterr())
    assert "unknown field" not in said
    assert "rejected" not in said
