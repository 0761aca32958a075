"""The Kubernetes objects that podqos needs in a cluster: the single source of every installation method.

``podqos webhook manifests`` and ``podqos exporter manifests`` print these objects, ``podqos guard manifests`` those of
``guard_installation``; ``tools/deploy.py`` generates the Helm chart and the kustomize bases under ``deploy/`` from
them. Each part has the permissions that it uses and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec import Struct

from podqos.cluster.resources import LIMIT_RANGES, NAMESPACES, NODES, PODS, PRIORITY_CLASSES, RUNTIME_CLASSES, Resource
from podqos.reading.live_cluster import ABOUT_PODS, WORKLOADS
from podqos.web.settings import (
    AUTHORITY_FILE,
    CERTIFICATE_FILE,
    GUARD_NAMESPACE,
    HEALTH_PATH,
    IMAGE,
    KEY_FILE,
    MUTATE_PATH,
    NAMESPACE,
    PORT,
    READY_PATH,
    VALIDATE_PATH,
)

Object = dict[str, Any]

WEBHOOK = "podqos-webhook"
EXPORTER_PORT = 9753
USER_ID = 65532
"""The user of the containers; the image has no such user and needs none."""
_TIMEOUT_SECONDS = 5
"""How long an API server waits for an answer. What takes longer to answer a probe is not ready."""
_DISK_REQUEST = {"ephemeral-storage": "64Mi"}
_DISK_LIMIT = {"ephemeral-storage": "1Gi"}
"""Logs count, and the webhook logs every request: up to five files, of the size at which the kubelet rotates them (10Mi
by default, 50Mi on some platforms). Beyond its limit a pod is evicted."""
STARTER_POLICY = str(Path(__file__).with_name("starter-policy.yaml"))
"""The starter policy: it only warns."""
POLICY_DIRECTORY, CERTIFICATE_DIRECTORY = "/etc/podqos/policy", "/etc/podqos/tls"
SYSTEM_NAMESPACES = ("kube-system", "kube-node-lease", "kube-public")
"""Excluded from the webhook: a cluster must be able to start without it."""


class ServingCertificate(Struct, frozen=True):
    """A certificate with its key and CA: base64-encoded PEM, as in Secrets."""

    certificate: str
    key: str
    authority: str


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of an installation."""

    namespace: str = NAMESPACE
    image: str = IMAGE
    replicas: int | str = 2
    """Replicas of the webhook; the exporter has always one."""
    failure_policy: str = "Ignore"
    """What the API server does if the webhook does not answer: Ignore admits pods, Fail rejects them."""
    mutate: bool = False
    given: ServingCertificate | None = None
    """The webhook's certificate; without one, cert-manager issues and renews it and injects the CA."""
    pod_security: str = "restricted"
    """The Pod Security Standard of the namespace."""


def exporter_objects(settings: Settings) -> Iterator[Object]:
    """Yield the objects of the exporter, which watches the cluster and asks kubelets for usage."""
    part = InstalledPart("exporter", settings)
    yield from part.account()
    yield from part.cluster_role(
        [
            *_watching((NODES, PODS, *ABOUT_PODS, *WORKLOADS)),
            rule("", ["nodes/proxy"], ["get"]),
            rule("metrics.k8s.io", ["nodes", "pods"], ["get", "list"]),
        ]
    )
    yield part.deployment(
        replicas=1,
        arguments=["exporter", f"--listen=0.0.0.0:{EXPORTER_PORT}"],
        port=EXPORTER_PORT,
        resources={"cpu": "200m", "memory": "256Mi"},
    )
    yield part.service(EXPORTER_PORT, EXPORTER_PORT, "metrics")


def webhook_objects(settings: Settings, policy: str) -> Iterator[Object]:
    """Yield the objects of the webhook; ``policy`` is the text of its policy file."""
    part = InstalledPart("webhook", settings)
    yield from part.account()
    yield from part.cluster_role(_watching((NAMESPACES, LIMIT_RANGES, PRIORITY_CLASSES, RUNTIME_CLASSES)))
    yield part.object("v1", "ConfigMap", name="podqos-policy", data={"policy.yaml": policy})
    yield from part.certificates()
    yield part.deployment(
        replicas=settings.replicas,
        arguments=[
            "webhook",
            "--watch",
            f"--listen=0.0.0.0:{PORT}",
            f"--policy={POLICY_DIRECTORY}",
            f"--certificate={CERTIFICATE_DIRECTORY}",
        ],
        port=PORT,
        resources={"cpu": "500m", "memory": "256Mi"},
        volumes={
            POLICY_DIRECTORY: {"name": "policy", "configMap": {"name": "podqos-policy"}},
            CERTIFICATE_DIRECTORY: {"name": "certificate", "secret": {"secretName": part.secret}},
        },
        scheme="HTTPS",
    )
    yield part.service(443, PORT, "https")
    yield part.object(
        "policy/v1",
        "PodDisruptionBudget",
        spec={"maxUnavailable": 1, "selector": {"matchLabels": part.labels}},
    )
    yield part.registration("ValidatingWebhookConfiguration", VALIDATE_PATH, _JUDGED)
    if settings.mutate:
        yield part.registration("MutatingWebhookConfiguration", MUTATE_PATH, _MUTATED)


def namespace_object(settings: Settings) -> Object:
    """Return the namespace; it enforces the Pod Security Standard that these pods meet."""
    labels = {"app.kubernetes.io/name": "podqos", "pod-security.kubernetes.io/enforce": settings.pod_security}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": settings.namespace, "labels": labels}}


_WORKLOAD_RULES = (
    ("apps", ["deployments", "statefulsets", "daemonsets", "replicasets"]),
    ("batch", ["jobs", "cronjobs"]),
    ("", ["replicationcontrollers", "podtemplates"]),
)
_JUDGED = (
    *(("", [resource], operations) for resource, operations in (("pods", ["CREATE"]), ("pods/resize", ["UPDATE"]))),
    ("", ["pods/ephemeralcontainers"], ["UPDATE"]),
    *((group, resources, ["CREATE", "UPDATE"]) for group, resources in _WORKLOAD_RULES),
)
_MUTATED = (("", ["pods"], ["CREATE"]),)


class InstalledPart(Struct, frozen=True):
    """A part that can be installed, and what its objects have in common."""

    component: str
    settings: Settings

    @property
    def name(self) -> str:
        """Return the name of its objects."""
        return f"podqos-{self.component}"

    @property
    def secret(self) -> str:
        """Return the name of the Secret with its certificate."""
        return f"{self.name}-certificate"

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of its objects."""
        return {"app.kubernetes.io/name": "podqos", "app.kubernetes.io/component": self.component}

    def object(
        self,
        version: str,
        kind: str,
        *,
        name: str = "",
        is_namespaced: bool = True,
        annotations: dict[str, str] | None = None,
        **fields: object,
    ) -> Object:
        """Return one of its objects."""
        metadata: Object = {"name": name or self.name}
        if is_namespaced:
            metadata["namespace"] = self.settings.namespace
        metadata["labels"] = self.labels
        if annotations:
            metadata["annotations"] = annotations
        return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}

    def account(self) -> Iterator[Object]:
        """Yield its service account."""
        yield self.object("v1", "ServiceAccount")

    def cluster_role(self, rules: list[Object]) -> Iterator[Object]:
        """Yield its permissions in all namespaces."""
        group = "rbac.authorization.k8s.io"
        yield self.object(f"{group}/v1", "ClusterRole", is_namespaced=False, rules=rules)
        yield self.object(
            f"{group}/v1",
            "ClusterRoleBinding",
            is_namespaced=False,
            roleRef={"apiGroup": group, "kind": "ClusterRole", "name": self.name},
            subjects=[{"kind": "ServiceAccount", "name": self.name, "namespace": self.settings.namespace}],
        )

    def certificates(self) -> Iterator[Object]:
        """Yield the objects that provide its certificate."""
        if given := self.settings.given:
            data = {CERTIFICATE_FILE: given.certificate, KEY_FILE: given.key, AUTHORITY_FILE: given.authority}
            yield self.object("v1", "Secret", name=self.secret, type="kubernetes.io/tls", data=data)
            return
        group = "cert-manager.io/v1"
        yield self.object(group, "Issuer", spec={"selfSigned": {}})
        host = f"{self.name}.{self.settings.namespace}.svc"
        yield self.object(
            group,
            "Certificate",
            spec={
                "secretName": self.secret,
                "dnsNames": [host, f"{host}.cluster.local"],
                "privateKey": {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"},
                "issuerRef": {"kind": "Issuer", "name": self.name},
            },
        )

    def deployment(
        self,
        *,
        replicas: int | str,
        arguments: list[str],
        port: int,
        resources: dict[str, str],
        volumes: dict[str, Object] | None = None,
        scheme: str = "HTTP",
    ) -> Object:
        """Return its Deployment, Guaranteed: requests equal limits."""
        volumes = volumes or {}
        container = {
            "name": self.component,
            "image": self.settings.image,
            "args": arguments,
            "ports": [{"name": "serving", "containerPort": port}],
            "resources": {"requests": resources | _DISK_REQUEST, "limits": resources | _DISK_LIMIT},
            # Generous: a node that is short of memory is slow, and a restart makes it no faster.
            "readinessProbe": {
                "httpGet": {"path": READY_PATH, "port": "serving", "scheme": scheme},
                "periodSeconds": 2,
                "timeoutSeconds": _TIMEOUT_SECONDS,
            },
            "livenessProbe": {
                "httpGet": {"path": HEALTH_PATH, "port": "serving", "scheme": scheme},
                "initialDelaySeconds": 10,
                "timeoutSeconds": 10,
                "failureThreshold": 6,
            },
            "securityContext": {
                "readOnlyRootFilesystem": True,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
        }
        spec: Object = {
            "serviceAccountName": self.name,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER_ID,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
        }
        if volumes:
            container["volumeMounts"] = [
                {"name": volume["name"], "mountPath": path, "readOnly": True} for path, volume in volumes.items()
            ]
            spec["volumes"] = list(volumes.values())
        if replicas != 1:
            spec["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [self._apart()]}}
        return self.object(
            "apps/v1",
            "Deployment",
            spec={
                "replicas": replicas,
                "selector": {"matchLabels": self.labels},
                "template": {"metadata": {"labels": self.labels}, "spec": spec},
            },
        )

    def _apart(self) -> Object:
        term = {"labelSelector": {"matchLabels": self.labels}, "topologyKey": "kubernetes.io/hostname"}
        return {"weight": 100, "podAffinityTerm": term}

    def service(self, port: int, target: int, name: str) -> Object:
        """Return its Service."""
        scraped = {"prometheus.io/scrape": "true", "prometheus.io/port": str(target)}
        if name == "https":
            scraped["prometheus.io/scheme"] = "https"
        ports = [{"name": name, "port": port, "targetPort": "serving"}]
        return self.object("v1", "Service", annotations=scraped, spec={"selector": self.labels, "ports": ports})

    def registration(self, kind: str, path: str, rules: Iterable[tuple[str, list[str], list[str]]]) -> Object:
        """Return its webhook configuration."""
        settings = self.settings
        client: Object = {"service": {"name": self.name, "namespace": settings.namespace, "path": path}}
        annotations = {}
        if settings.given:
            client["caBundle"] = settings.given.authority
        else:
            annotations = {"cert-manager.io/inject-ca-from": f"{settings.namespace}/{self.name}"}
        excluded = {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": [settings.namespace, GUARD_NAMESPACE, *SYSTEM_NAMESPACES],
        }
        webhook: Object = {
            "name": f"{path[1:]}.podqos.dev",
            "admissionReviewVersions": ["v1"],
            "clientConfig": client,
            "rules": [
                {"apiGroups": [group], "apiVersions": ["v1"], "operations": operations, "resources": resources}
                for group, resources, operations in rules
            ],
            "namespaceSelector": {"matchExpressions": [excluded]},
            "failurePolicy": settings.failure_policy,
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": _TIMEOUT_SECONDS,
        }
        if path == MUTATE_PATH:
            webhook["reinvocationPolicy"] = "IfNeeded"
        return self.object(
            "admissionregistration.k8s.io/v1", kind, is_namespaced=False, annotations=annotations, webhooks=[webhook]
        )


def _watching(resources: Iterable[Resource[Any]]) -> list[Object]:
    by_group = sorted(resources, key=lambda resource: resource.group)
    return [
        rule(group, sorted({resource.plural for resource in same}), ["list", "watch"])
        for group, same in groupby(by_group, key=lambda resource: resource.group)
    ]


def rule(group: str, resources: list[str], verbs: list[str]) -> Object:
    """Return a rule of a Role."""
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}
