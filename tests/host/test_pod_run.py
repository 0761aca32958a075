from __future__ import annotations

import pytest

from podqos.host.storage.pod_run import environment, expand, pod_run, unsupported
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
