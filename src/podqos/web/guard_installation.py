"""The Kubernetes objects of the guard: a DaemonSet, its permissions, and policies that restrict them to its own node.

RBAC cannot express "pods of my node": a token that may patch one pod's status may patch all. A pod's token names the
node of the pod, so a ValidatingAdmissionPolicy compares that node with the node of the pod to be changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from podqos.eviction.messages import GUARD_ANNOTATION
from podqos.web.installation import InstalledPart, Object, Settings, rule
from podqos.web.settings import GUARD_NAMESPACE, HEALTH_PATH

PORT = 9754
STATE_DIRECTORY, RUN_DIRECTORY = "/var/lib/podqos/guard", "/run/podqos/guard"
KUBELET_FILE = "/etc/podqos/kubelet.yaml"
"""Where the guard finds the kubelet's configuration file, if one is mounted."""
EVICTED_ANNOTATION = GUARD_ANNOTATION
"""The annotation written with the status of an eviction. Without a metadata change, kubelets revert the status."""
_CGROUPS = "/sys/fs/cgroup"
_CAPABILITIES = ("IPC_LOCK", "KILL", "SYS_NICE", "SYS_RESOURCE")
"""For mlock; for killing other users' processes; for real-time priority; for pressure triggers and oom_score_adj."""
_ADMISSION = "admissionregistration.k8s.io"
_NODE_NAME = "authentication.kubernetes.io/node-name"


class GuardInstallation(Settings, frozen=True, kw_only=True):
    """The settings of a guard installation."""

    namespace: str = GUARD_NAMESPACE
    pod_security: str = "privileged"
    mode: str = "shadow"
    """``shadow`` only reports what it would evict, ``enforce`` evicts."""
    host_pid: bool | str = False
    """Whether it shares the host's PID namespace. Required with cgroup v1, where cgroups list no processes of other
    namespaces. cgroup v2 kills by cgroup and only needs it to free the memory of killed processes.
    """
    kubelet_config: str = ""
    """The kubelet's configuration file on the nodes. If empty, the guard asks the kubelet, which then needs a serving
    certificate signed by the cluster's CA.
    """
    may_use_eviction_api: bool = False
    """Whether it may also evict through the API, as soft thresholds need. No policy can limit that to its node."""


def guard_objects(settings: GuardInstallation) -> Iterator[Object]:
    """Yield the objects of the guard."""
    part = InstalledPart("guard", settings)
    yield from part.account()
    yield from part.cluster_role(
        [
            rule("", ["pods"], ["get", "list", "watch"]),
            rule("", ["pods/status"], ["patch"]),
            *([rule("", ["pods/eviction"], ["create"])] if settings.may_use_eviction_api else []),
            rule("", ["events"], ["create"]),
            rule("", ["nodes"], ["get", "list", "watch"]),
            rule("", ["nodes/configz"], ["get"]),
        ]
    )
    yield from _policy(part, "pods", _POD_RULE, _pod_validations(), _ANNOTATIONS)
    yield from _policy(part, "events", _EVENT_RULE, _EVENT_VALIDATIONS)
    yield _daemon_set(part, settings)


# ---- the policies ----------------------------------------------------------------------------------------------------

_POD_RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE", "DELETE", "CONNECT"],
    "resources": ["pods", "pods/*"],
}
_EVENT_RULE = {
    "apiGroups": ["", "events.k8s.io"],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE", "DELETE"],
    "resources": ["events"],
}
_ANNOTATIONS = {
    "before": "oldObject.metadata.?annotations.orValue({})",
    "after": "object.metadata.?annotations.orValue({})",
}
_JUDGED = f"!(request.?subResource.orValue('') == 'eviction' && '{_NODE_NAME}' in request.userInfo.extra)"
"""An Eviction does not name the node of its pod, so RBAC alone decides about evictions with a node-bound token."""
_UNCHANGED = {
    "labels": ("metadata", "{}"),
    "finalizers": ("metadata", "[]"),
    "podIPs": ("status", "[]"),
    "containerStatuses": ("status", "[]"),
}


def _pod_validations() -> Iterator[tuple[str, str]]:
    """Yield the conditions for requests about a pod, each with its error message."""
    patches = "request.operation == 'UPDATE' && request.?subResource.orValue('') == 'status'"
    yield patches, "the guard may only patch pods/status"
    own = "variables.node != '' && oldObject != null && oldObject.spec.?nodeName.orValue('') == variables.node"
    yield own, "the guard may only evict pods of its own node"
    evicted = "object.status.?phase.orValue('') == 'Failed' && object.status.?reason.orValue('') == 'Evicted'"
    yield evicted, "the guard may only set phase Failed with reason Evicted"
    yield "oldObject.status.?phase.orValue('') != 'Succeeded'", "the guard may not change pods that have succeeded"
    for field, (parent, empty) in _UNCHANGED.items():
        before, after = (f"{each}.{parent}.?{field}.orValue({empty})" for each in ("oldObject", "object"))
        yield f"{after} == {before}", f"the guard may not change {field}"
    yield _OTHER_ANNOTATIONS, f"the guard may only change the annotation {EVICTED_ANNOTATION}"
    yield "!('kubernetes.io/config.mirror' in variables.before)", "the guard may not evict static pods"
    yield "oldObject.spec.?priority.orValue(0) < 2000000000", "the guard may not evict critical pods"


_OTHER_ANNOTATIONS = (
    "variables.before.all(key, key == 'KEY' || variables.after[?key].orValue('') == variables.before[key])"
    " && variables.after.all(key, key == 'KEY' || key in variables.before)"
).replace("KEY", EVICTED_ANNOTATION)
_EVENT_VALIDATIONS = (
    ("request.operation == 'CREATE'", "the guard may only create events"),
    (
        "variables.node != '' && object.source.?host.orValue('') == variables.node",
        "the guard may only create events for its own node",
    ),
    (
        "object.?reason.orValue('') == 'Evicted' && object.involvedObject.?kind.orValue('') == 'Pod'",
        "the guard may only create events for evicted pods",
    ),
)


def _policy(
    part: InstalledPart,
    about: str,
    matched: Object,
    validations: Iterable[tuple[str, str]],
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Object]:
    name = f"{part.name}-{about}"
    named = {"node": f"request.userInfo.extra[?'{_NODE_NAME}'].orValue([''])[0]", **variables}
    user = f"system:serviceaccount:{part.settings.namespace}:{part.name}"
    yield part.object(
        f"{_ADMISSION}/v1",
        "ValidatingAdmissionPolicy",
        name=name,
        is_namespaced=False,
        spec={
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [matched]},
            "matchConditions": [
                {"name": "guard", "expression": f"request.userInfo.username == '{user}'"},
                *([{"name": "judged", "expression": _JUDGED}] if matched is _POD_RULE else []),
            ],
            "variables": [{"name": name, "expression": expression} for name, expression in named.items()],
            # Without this reason, a rejection would be a 422, like that of a pod with a different uid.
            "validations": [
                {"expression": expression, "message": message, "reason": "Forbidden"}
                for expression, message in validations
            ],
        },
    )
    yield part.object(
        f"{_ADMISSION}/v1",
        "ValidatingAdmissionPolicyBinding",
        name=name,
        is_namespaced=False,
        spec={"policyName": name, "validationActions": ["Deny"]},
    )


# ---- the pods --------------------------------------------------------------------------------------------------------


def _daemon_set(part: InstalledPart, settings: GuardInstallation) -> Object:
    """Return the DaemonSet. No CPU limit: a throttled guard is late. Its QoS class does not affect its score."""
    memory = {"memory": "128Mi", "ephemeral-storage": "64Mi"}
    volumes = [
        _host("cgroups", _CGROUPS, "Directory"),
        _host("state", STATE_DIRECTORY, "DirectoryOrCreate"),
        _host("run", RUN_DIRECTORY, "DirectoryOrCreate"),
    ]
    mounts: list[Object] = [{"name": volume["name"], "mountPath": volume["hostPath"]["path"]} for volume in volumes]
    arguments = [
        "guard",
        "run",
        f"--{settings.mode}",
        f"--listen=0.0.0.0:{PORT}",
        "--listen-anywhere",
    ]
    if settings.kubelet_config:
        arguments.append(f"--kubelet-config={KUBELET_FILE}")
        volumes.append(_host("kubelet", settings.kubelet_config, "File"))
        mounts.append({"name": "kubelet", "mountPath": KUBELET_FILE, "readOnly": True})
    container = {
        "name": part.component,
        "image": settings.image,
        "args": arguments,
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "ports": [{"name": "metrics", "containerPort": PORT}],
        "resources": {"requests": {"cpu": "50m"} | memory, "limits": memory},
        # Generous: a node short of memory is slow, and that is when the guard is needed.
        "livenessProbe": {
            "httpGet": {"path": HEALTH_PATH, "port": "metrics"},
            "initialDelaySeconds": 30,
            "periodSeconds": 30,
            "timeoutSeconds": 20,
            "failureThreshold": 5,
        },
        "securityContext": {
            "runAsUser": 0,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": list(_CAPABILITIES)},
            "seccompProfile": {"type": "RuntimeDefault"},
            # A confined process may not signal processes with another profile or write to other pods' cgroups.
            "appArmorProfile": {"type": "Unconfined"},
            "seLinuxOptions": {"type": "spc_t"},
        },
        "volumeMounts": mounts,
    }
    spec: Object = {
        "serviceAccountName": part.name,
        "priorityClassName": "system-node-critical",
        "hostPID": settings.host_pid,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "volumes": volumes,
    }
    scraped = {"prometheus.io/scrape": "true", "prometheus.io/port": str(PORT)}
    return part.object(
        "apps/v1",
        "DaemonSet",
        spec={
            "selector": {"matchLabels": part.labels},
            "template": {"metadata": {"labels": part.labels, "annotations": scraped}, "spec": spec},
        },
    )


def _host(name: str, path: str, kind: str) -> Object:
    return {"name": name, "hostPath": {"path": path, "type": kind}}
