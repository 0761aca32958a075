from __future__ import annotations

import pytest

from podqos.errors import HostError
from podqos.host.storage.pod_run import VolumeMount, environment, expand, pod_run, sub_path, unsupported
from podqos.manifest.decode import convert
from podqos.model.pod import Pod

_SPEC = {
    "containers": [
        {
            "name": "main",
            "command": ["run", "$(GREETING)"],
            "env": [
                {"name": "WHO", "value": "world"},
                {"name": "GREETING", "value": "hello $(WHO) $(LATER)"},
                {"name": "LATER", "value": "x"},
                {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
                {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                {
                    "name": "MIB",
                    "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}},
                },
                {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}},
            ],
            "resources": {"limits": {"memory": "1500Ki"}, "requests": {"cpu": "250m"}},
        }
    ]
}


def test_variables_refer_to_those_before_them_and_to_the_pod():
    pod = convert({"metadata": {"name": "web", "labels": {"app": "shop"}}, "spec": _SPEC}, Pod)
    run = pod_run(_SPEC)
    assert environment(pod, run.container("main"), "node-1") == {
        "WHO": "world",
        "GREETING": "hello world $(LATER)",
        "LATER": "x",
        "NAME": "web",
        "LABEL": "shop",
        "NODE": "node-1",
        "MIB": "2",
        "CPU": "1",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [("$(A)", "1"), ("$$(A)", "$(A)"), ("$(B)", "$(B)"), ("$A ${A} 5$", "$A ${A} 5$"), ("$(A)$(A)", "11")],
)
def test_references_are_expanded_as_the_kubelet_does(text, expected):
    assert expand(text, {"A": "1"}) == expected


def test_probes_have_the_apis_defaults():
    run = pod_run({"containers": [{"name": "main", "livenessProbe": {"tcpSocket": {"port": "http"}}}]})
    probe = run.container("main").liveness_probe
    assert (probe.period_seconds, probe.timeout_seconds, probe.success_threshold, probe.failure_threshold) == (
        10, 1, 1, 3,
    )  # fmt: skip


def test_what_needs_an_api_server_is_named():
    run = pod_run(
        {
            "volumes": [{"name": "a", "secret": {}}, {"name": "b", "emptyDir": {}}],
            "containers": [{"name": "main", "env": [{"name": "X", "valueFrom": {"secretKeyRef": {}}}]}],
        }
    )
    assert [line.partition(":")[0] for line in unsupported(run)] == ["volume a", "container main"]


def test_what_is_not_carried_out_is_named():
    main = {
        "name": "main",
        "envFrom": [{"configMapRef": {"name": "settings"}}],
        "volumeDevices": [{"name": "disk", "devicePath": "/dev/xvda"}],
        "volumeMounts": [{"name": "b", "mountPath": "/b", "mountPropagation": "Bidirectional"}],
        "livenessProbe": {"grpc": {"port": 9000}},
        "readinessProbe": {"periodSeconds": 5},
        "startupProbe": {"httpGet": {"port": 80}},
    }
    assert unsupported(pod_run({"containers": [main], "initContainers": [{"name": "first", "envFrom": []}]})) == [
        "container main: envFrom is ignored",
        "container main: volumeDevices is ignored",
        "container main: mountPropagation of b is ignored",
        "container main: livenessProbe without exec, httpGet or tcpSocket is ignored",
        "container main: readinessProbe without exec, httpGet or tcpSocket is ignored",
    ]


def test_a_part_of_a_volume_is_named_by_variables_that_exist():
    known = {"POD": "web-0"}
    assert sub_path(VolumeMount(sub_path_expr="logs/$(POD)/$$(POD)"), known) == "logs/web-0/$(POD)"
    assert sub_path(VolumeMount(sub_path="$(POD)"), known) == "$(POD)"
    with pytest.raises(HostError, match=r"subPathExpr \$\(NODE\): there is no variable NODE"):
        sub_path(VolumeMount(sub_path_expr="$(NODE)"), known)
