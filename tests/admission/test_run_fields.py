"""What the API server refuses about the fields that only a node reads, in its words and in its order."""

from __future__ import annotations

import pytest

from podqos.admission.pod_validation import validate_new_pod
from podqos.manifest.decode import convert_pod

_NOT_READY = "must not be set for readinessProbes"
_LETTERS = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
_NOT_RUNNING = "may not be set for init containers without restartPolicy=Always"
_PORT = "must be between 1 and 65535, inclusive"


def _errors(container: dict, spec: dict | None = None) -> list[str]:
    main = {"name": "main", "image": "x", **container}
    value = {"metadata": {"name": "p"}, "spec": {"restartPolicy": "Always", "containers": [main], **(spec or {})}}
    return [str(error) for error in validate_new_pod(convert_pod(value), value["spec"])]


def _volumes(*volumes: dict) -> dict:
    return {"volumes": list(volumes)}


_DATA = _volumes({"name": "data", "emptyDir": {}})
_AT = "spec.containers[0]"


@pytest.mark.parametrize(
    "container",
    [
        {},
        {"ports": [{"containerPort": 80, "name": "http", "protocol": "UDP", "hostPort": 80}]},
        {"env": [{"name": "any printable: ~ ", "value": "\0"}]},
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a/b']"}}}]},
        {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.hugepages-2Mi"}}}]},
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
        {"volumeMounts": [{"name": "data", "mountPath": "/d", "subPath": "a/b..c"}]},
        {"livenessProbe": {"exec": {"command": [""]}, "successThreshold": 0}},
        {"readinessProbe": {"httpGet": {"port": "http", "host": "\0"}, "successThreshold": 3}},
        {"startupProbe": {"tcpSocket": {"port": 65535}, "terminationGracePeriodSeconds": 1}},
        {"startupProbe": {"grpc": {"port": 1}}},
    ],
)
def test_what_is_in_order_is_accepted(container):
    assert _errors(container, _DATA) == []


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({"ports": [{}]}, [f"{_AT}.ports[0].containerPort: Required value"]),
        (
            {"ports": [{"containerPort": 65536, "hostPort": -1}]},
            [
                f"{_AT}.ports[0].containerPort: Invalid value: 65536: {_PORT}",
                f"{_AT}.ports[0].hostPort: Invalid value: -1: {_PORT}",
            ],
        ),
        (
            {"ports": [{"containerPort": 1, "name": "-A--"}]},
            [
                f'{_AT}.ports[0].name: Invalid value: "-A--": {words}'
                for words in (
                    _LETTERS,
                    "must contain at least one letter (a-z)",
                    "must not contain consecutive hyphens",
                    "must not begin or end with a hyphen",
                )
            ],
        ),
        (
            {"ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a", "protocol": "ICMP"}]},
            [
                f'{_AT}.ports[1].name: Duplicate value: "a"',
                f'{_AT}.ports[1].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
            ],
        ),
        ({"env": [{"value": "x"}]}, [f"{_AT}.env[0].name: Required value"]),
        (
            {"env": [{"name": "A", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            [f'{_AT}.env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
        ),
        (
            {"volumeMounts": [{"name": "other", "mountPath": ""}]},
            [
                f'{_AT}.volumeMounts[0].name: Not found: "other"',
                f"{_AT}.volumeMounts[0].mountPath: Required value",
            ],
        ),
        (
            {"volumeMounts": [{"name": "data", "mountPath": "/d"}] * 2},
            [f'{_AT}.volumeMounts[1].mountPath: Invalid value: "/d": must be unique'],
        ),
        (
            {"volumeMounts": [{"name": "data", "mountPath": "/d", "subPath": "/../x"}]},
            [
                f'{_AT}.volumeMounts.subPath: Invalid value: "/../x": must be a relative path',
                f"{_AT}.volumeMounts.subPath: Invalid value: \"/../x\": must not contain '..'",
            ],
        ),
        (
            {"livenessProbe": {"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}},
            [f"{_AT}.livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"],
        ),
        (
            {"livenessProbe": {"exec": {"command": ["x"]}, "periodSeconds": -1, "successThreshold": 2}},
            [
                f"{_AT}.livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
                f"{_AT}.livenessProbe.successThreshold: Invalid value: 2: must be 1",
            ],
        ),
        (
            {"readinessProbe": {"exec": {"command": ["x"]}, "terminationGracePeriodSeconds": 1}},
            [
                f"{_AT}.readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: {_NOT_READY}",
            ],
        ),
        (
            {"startupProbe": {"httpGet": {"port": "", "scheme": "FTP"}}},
            [
                f'{_AT}.startupProbe.httpGet.port: Invalid value: "": {_LETTERS}',
                f'{_AT}.startupProbe.httpGet.port: Invalid value: "": must contain at least one letter (a-z)',
                f'{_AT}.startupProbe.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"',
            ],
        ),
        ({"startupProbe": {"grpc": {}}}, [f"{_AT}.startupProbe.grpc.port: Invalid value: 0: {_PORT}"]),
    ],
)
def test_what_is_not_is_refused_in_upstreams_words(container, expected):
    assert _errors(container, _DATA) == expected


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        (
            {"name": "a", "hostPath": {"path": "/x"}, "emptyDir": {}},
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
        ),
        ({"name": "a", "hostPath": {}}, "spec.volumes[0].hostPath.path: Required value"),
        (
            {"name": "a", "hostPath": {"path": "/x/../y"}},
            "spec.volumes[0].hostPath.path: Invalid value: \"/x/../y\": must not contain '..'",
        ),
    ],
)
def test_a_volume_has_one_source_which_stays_where_it_is(volume, expected):
    assert _errors({}, _volumes(volume)) == [expected]


def test_a_volume_that_is_not_in_order_is_not_found_by_a_mount():
    errors = _errors({"volumeMounts": [{"name": "a", "mountPath": "/a"}]}, _volumes({"name": "a", "hostPath": {}}))
    assert errors[-1] == f'{_AT}.volumeMounts[0].name: Not found: "a"'


def test_a_volume_without_a_source_is_an_empty_directory():
    assert _errors({}, _volumes({"name": "a"})) == []


def test_errors_come_in_upstreams_order():
    wrong = {"image": "", "ports": [{}], "resources": {"limits": {"cpu": "-1"}}, "livenessProbe": {}}
    fields = [error.partition(": ")[0].removeprefix(f"{_AT}.") for error in _errors(wrong)]
    assert fields == ["image", "ports[0].containerPort", "resources.limits[cpu]", "livenessProbe"]


def test_probes_of_sidecars_are_judged_and_those_of_init_containers_forbidden():
    probe = {"livenessProbe": {"exec": {}}}
    init = [{"name": "i", "image": "x", **probe}, {"name": "s", "image": "x", "restartPolicy": "Always", **probe}]
    assert _errors({}, {"initContainers": init}) == [
        f"spec.initContainers[0].livenessProbe: Forbidden: {_NOT_RUNNING}",
        "spec.initContainers[1].livenessProbe.exec.command: Required value",
    ]


def test_without_the_written_fields_only_the_model_is_judged():
    value = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "x", "livenessProbe": {}}]}}
    assert validate_new_pod(convert_pod(value)) == ()


@pytest.mark.parametrize("namespace", ["..", "a/b", "a.b", "A", "x" * 64])
def test_a_namespace_is_a_dns_label(namespace):
    value = {"metadata": {"name": "p", "namespace": namespace}, "spec": {"containers": [{"name": "a", "image": "x"}]}}
    (error,) = validate_new_pod(convert_pod(value))
    assert error.path == "metadata.namespace"
