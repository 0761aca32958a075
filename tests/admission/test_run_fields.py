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


_CONTEXT = (
    '{"Capabilities":null,"Privileged":true,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,'
    '"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,'
    '"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}'
)
_SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of"


def _one(field: str, value: object) -> dict:
    """Return a variable with one source."""
    return {"env": [{"name": "A", "valueFrom": {field: value}}]}


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        (
            _one("configMapKeyRef", {"name": "c", "key": ".."}),
            ".env[0].valueFrom.configMapKeyRef.key: must not be '..'",
        ),
        (_one("secretKeyRef", {"name": "s"}), ".env[0].valueFrom.secretKeyRef.key: Required value"),
        (_one("secretKeyRef", {"name": "S", "key": "k"}), f".env[0].valueFrom.secretKeyRef.name: {_SUBDOMAIN}"),
        (
            _one("fieldRef", {"fieldPath": "metadata.labels['a b']"}),
            ".env[0].valueFrom.fieldRef: name part must consist",
        ),
        (
            _one("fieldRef", {"fieldPath": "metadata.name", "apiVersion": "v2"}),
            ".env[0].valueFrom.fieldRef.fieldPath: error converting fieldPath: unsupported pod version: v2",
        ),
        (
            _one("resourceFieldRef", {"resource": "limits.cpu", "divisor": "1Ki"}),
            ".env[0].valueFrom.resourceFieldRef.divisor: only divisor's values 1m and 1 are supported with the cpu",
        ),
        (
            _one("resourceFieldRef", {"resource": "limits.memory", "divisor": "2Mi"}),
            ".env[0].valueFrom.resourceFieldRef.divisor: only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki",
        ),
        (
            _one("fileKeyRef", {"key": "K", "volumeName": "host", "path": "a"}),
            ".env[0].valueFrom.fileKeyRef.volumeName: referenced volume must be of type emptyDir",
        ),
        ({"envFrom": [{}]}, ".envFrom: must specify one of: `configMapRef` or `secretRef`"),
        ({"envFrom": [{"secretRef": {}}]}, ".envFrom[0].secretRef.name: Required value"),
        (
            {"envFrom": [{"secretRef": {"name": "s"}, "configMapRef": {"name": "c"}}]},
            ".envFrom: may not have more than one field specified at a time",
        ),
        (
            {"envFrom": [{"secretRef": {"name": "s"}, "prefix": "="}]},
            ".envFrom[0].prefix: a valid environment variable",
        ),
        (
            {"volumeDevices": [{"name": "data", "devicePath": "/d"}]},
            ".volumeDevices[0].name: can only use volume source",
        ),
        (
            {"volumeDevices": [{"name": "claim", "devicePath": "/../d"}]},
            ".volumeDevices[0].devicePath: can not contain",
        ),
        (
            {"volumeMounts": [{"name": "data", "mountPath": "/d", "mountPropagation": "Bidirectional"}]},
            ".volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to",
        ),
        (
            {"volumeMounts": [{"name": "data", "mountPath": "/d", "recursiveReadOnly": "Enabled"}]},
            ".volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true",
        ),
        ({"imagePullPolicy": "Often"}, '.imagePullPolicy: Unsupported value: "Often"'),
        ({"lifecycle": {"postStart": {"tcpSocket": {"port": 0}}}}, f".lifecycle.postStart.tcpSocket.port: {_PORT}"),
        ({"lifecycle": {"preStop": {"sleep": {"seconds": 31}}}}, ".lifecycle.preStop.sleep: must be non-negative and"),
        ({"securityContext": {"runAsUser": -1}}, ".securityContext.runAsUser: must be between 0 and 2147483647"),
        (
            {"securityContext": {"procMount": "Unmasked"}},
            ".securityContext.procMount: `hostUsers` must be false to use",
        ),
        (
            {"securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": " a"}}},
            "must not be padded",
        ),
        (
            {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "../a"}}},
            ".securityContext.seccompProfile.localhostProfile: must not contain '..'",
        ),
        (
            {"securityContext": {"seccompProfile": {"type": "Unconfined", "localhostProfile": "a"}}},
            '.localhostProfile: Invalid value: {"Type":"Unconfined","LocalhostProfile":"a"}: can only be set',
        ),
        (
            {"securityContext": {"privileged": True, "allowPrivilegeEscalation": False}},
            f".securityContext: Invalid value: {_CONTEXT}: cannot set `allowPrivilegeEscalation` to false",
        ),
    ],
)
def test_the_rest_of_a_container_is_judged(container, expected):
    """The words are compared without the value where it says nothing new."""
    claim = {"name": "claim", "persistentVolumeClaim": {"claimName": "c"}}
    host = {"name": "host", "hostPath": {"path": "/x"}}
    (error,) = _errors(container, _volumes({"name": "data"}, claim, host))
    assert _matches(error, expected)


@pytest.mark.parametrize(
    ("claim", "is_made"), [("p-data", True), ("p-scratch", False), ("data", False)], ids=["made", "no claim", "other"]
)
def test_the_claim_made_for_an_ephemeral_volume_is_not_used_by_another(claim, is_made):
    """It is called after the pod and the volume."""
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": wanted}}}
    other = {"name": "other", "persistentVolumeClaim": {"claimName": claim}}
    words = f'"{claim}": must not reference a PVC that gets created for an ephemeral volume'
    expected = [f"spec.volumes[2].persistentVolumeClaim.claimName: Invalid value: {words}"] * is_made
    assert _errors({}, _volumes({"name": "scratch", "emptyDir": {}}, made, other)) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"configMap": {}}, ".configMap.name: Required value"),
        (
            {"secret": {"secretName": "s", "defaultMode": 512}},
            ".secret.defaultMode: must be a number between 0 and 0777",
        ),
        ({"secret": {"secretName": "s", "items": [{"path": "a"}]}}, ".secret.items[0].key: Required value"),
        ({"secret": {"secretName": "s", "items": [{"key": "k", "path": "..a"}]}}, "must not start with '..'"),
        (
            {"downwardAPI": {"items": [{"path": "a"}]}},
            ".downwardAPI: Required value: one of fieldRef and resourceFieldRef",
        ),
        (
            {"downwardAPI": {"items": [{"path": "a", "resourceFieldRef": {"resource": "limits.cpu"}}]}},
            ".downwardAPI.resourceFieldRef.containerName: Required value",
        ),
        ({"persistentVolumeClaim": {}}, ".persistentVolumeClaim.claimName: Required value"),
        ({"nfs": {"server": "s", "path": "a"}}, ".nfs.path: must be an absolute path"),
        ({"csi": {}}, ".csi.driver: Required value"),
        ({"csi": {"driver": "a_b"}}, f".csi.driver: {_SUBDOMAIN}"),
        ({"image": {"reference": "i", "pullPolicy": "x"}}, '.image.pullPolicy: Unsupported value: "x"'),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "a", "expirationSeconds": 1}}]}},
            ".projected.sources[0].serviceAccountToken.expirationSeconds: may not specify a duration less",
        ),
        (
            {"projected": {"sources": [{"secret": {"name": "s", "items": [{"key": "k", "path": "p"}] * 2}}]}},
            ".projected: conflicting duplicate paths",
        ),
    ],
)
def test_each_source_of_a_volume_has_what_it_needs(source, expected):
    (error,) = _errors({}, _volumes({"name": "a", **source}))
    assert _matches(error, expected)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"dnsPolicy": "None", "dnsConfig": {}},
            "spec.dnsConfig.nameservers: Required value: must provide at least one",
        ),
        ({"dnsConfig": {"nameservers": ["010.0.0.1"]}}, "spec.dnsConfig.nameservers[0]: must not have leading 0s"),
        ({"dnsConfig": {"nameservers": ["::ffff:1.2.3.4"]}}, "must not be an IPv4-mapped IPv6 address"),
        (
            {"dnsConfig": {"nameservers": ["fe80::1%eth0"]}},
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ),
        (
            {"dnsConfig": {"nameservers": ["1.1.1.1"] * 4}},
            'Invalid value: ["1.1.1.1","1.1.1.1","1.1.1.1","1.1.1.1"]: must not have more than 3 nameservers',
        ),
        ({"dnsConfig": {"searches": [".", "_a.b.", "A"]}}, f"spec.dnsConfig.searches[2]: {_SUBDOMAIN}"),
        ({"dnsConfig": {"options": [{}]}}, "spec.dnsConfig.options[0]: Required value: must not be empty"),
        ({"hostAliases": [{"ip": "1.1.1.1", "hostnames": ["A"]}]}, f"spec.hostAliases[0].hostnames[0]: {_SUBDOMAIN}"),
        ({"readinessGates": [{"conditionType": "a/b/c"}]}, "spec.readinessGates[0].conditionType: a valid label key"),
        (
            {"hostnameOverride": "a", "hostNetwork": True},
            "spec.hostnameOverride: Forbidden: may not be specified when host",
        ),
        ({"hostUsers": False, "hostPID": True}, "spec.HostPID: Forbidden: when `hostUsers` is false"),
        (
            {"securityContext": {"supplementalGroups": [0, 2**31]}},
            "spec.securityContext.supplementalGroups[1]: must be",
        ),
        (
            {"securityContext": {"seLinuxChangePolicy": "MountOption"}},
            'Unsupported value: "MountOption": supported values',
        ),
        (
            {"hostNetwork": True, "securityContext": {"sysctls": [{"name": "net/ipv4/x", "value": "1"}]}},
            "spec.securityContext.sysctls[0].name: may not be specified when 'hostNetwork' is true",
        ),
        ({"os": {"name": "windows"}, "hostPID": True}, "spec.hostPID: Forbidden: cannot be set for a windows pod"),
        (
            {"os": {"name": "linux"}, "securityContext": {"windowsOptions": {}}},
            "spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod",
        ),
        (
            {"resourceClaims": [{"name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": "y"}]},
            '{"Name":"a","ResourceClaimName":"x","ResourceClaimTemplateName":"y"}: at most one of `resource',
        ),
    ],
)
def test_the_rest_of_a_pod_is_judged(spec, expected):
    (error,) = _errors({}, spec)
    assert _matches(error, expected)


def _matches(error: str, expected: str) -> bool:
    """Whether an error has the words, whatever value is between its field and its detail."""
    field, _, detail = expected.partition(": ") if expected.startswith((".", "spec.")) else ("", "", expected)
    return expected in error or (field in error and f": {detail}" in error)


def test_in_the_machines_network_the_ports_of_two_containers_collide():
    ports = {"ports": [{"containerPort": 80}]}
    both = {"containers": [{"name": name, "image": "x", **ports} for name in "ab"]}
    assert _errors({}, both) == []
    assert _errors({}, {**both, "hostNetwork": True}) == [
        'spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"'
    ]
    (error,) = _errors({"ports": [{"containerPort": 80, "hostPort": 81}]}, {"hostNetwork": True})
    assert error.endswith("Invalid value: 81: must match `containerPort` when `hostNetwork` is true")


def test_init_containers_share_ports_of_the_machine_with_each_other_but_not_with_themselves():
    port = {"containerPort": 80, "hostPort": 80}
    init = [{"name": name, "image": "x", "ports": [port]} for name in "ab"]
    assert _errors({"ports": [port]}, {"initContainers": init}) == []
    twice = {"initContainers": [{"name": "i", "image": "x", "ports": [port, port]}]}
    assert _errors({}, twice) == ['spec.initContainers[0].ports[1].hostPort: Duplicate value: "TCP//80"']


def test_a_sleep_is_held_against_the_time_that_the_pod_has_to_end():
    sleep = {"lifecycle": {"preStop": {"sleep": {"seconds": 31}}}}
    assert _errors(sleep, {"terminationGracePeriodSeconds": 31}) == []
    assert "(1)" in _errors(sleep, {"terminationGracePeriodSeconds": -5})[0]


def test_a_stop_signal_is_dropped_so_it_is_not_judged():
    assert _errors({"lifecycle": {"stopSignal": "SIGNOTHING"}}) == []
