"""A small cluster as an API server sends it, with everything that must not be kept, and its snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from podqos.manifest.anonymous import Anonymizer
from podqos.manifest.pruning import pruned_kubelet, pruned_list, pruned_summary
from podqos.objects.cluster_snapshot import ClusterSnapshot, End, Header, NodeKubelet, NodeSummary

SECRET = "correct-horse-battery-staple"
NODES = ("atlas-1", "atlas-2")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def metadata(name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    """Return what an API server writes about every object."""
    return {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-of-{namespace}-{name}",
        "resourceVersion": "1000",
        "creationTimestamp": "2026-11-15T00:00:00Z",
        "annotations": {_LAST_APPLIED: json.dumps({"password": SECRET}), "podqos.dev/latency-sensitive": "true"},
        "managedFields": [{"manager": SECRET}],
        **more,
    }


def container(name: str, requests: dict[str, str], limits: dict[str, str]) -> dict[str, Any]:
    """Return a container with what containers have besides resources."""
    return {
        "name": name,
        "image": "registry.acme.example/shop/web:1.2",
        "command": ["serve", f"--token={SECRET}"],
        "args": [SECRET],
        "env": [{"name": "PASSWORD", "value": SECRET}],
        "livenessProbe": {"httpGet": {"path": f"/{SECRET}", "port": 80}},
        "resources": {"requests": requests, "limits": limits},
    }


def owner(kind: str, name: str) -> list[dict[str, Any]]:
    """Return the reference of what a controller made to it."""
    return [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": True}]


WEB = {
    "containers": [container("web", {"cpu": "500m", "memory": "1Gi"}, {"cpu": "1", "memory": "2Gi"})],
    "priorityClassName": "acme-critical",
}
DB = {"containers": [container("db", {"cpu": "1", "memory": "2Gi"}, {"cpu": "1", "memory": "2Gi"})]}
SHELL = {"containers": [container("shell", {}, {})]}


def pod(name: str, spec: dict[str, Any], node: str, qos_class: str, **more: Any) -> dict[str, Any]:
    """Return a pod that runs."""
    return {
        "metadata": metadata(name, "shop", labels={"app": name.partition("-")[0]}, **more),
        "spec": {**spec, "priority": 1000 if "priorityClassName" in spec else 0, "nodeName": node},
        "status": {"phase": "Running", "qosClass": qos_class, "startTime": "2026-11-15T00:00:00Z", "message": SECRET},
    }


PODS = [
    pod("web-7d4b9c-aaaaa", WEB, "atlas-1", "Burstable", ownerReferences=owner("ReplicaSet", "web-7d4b9c")),
    pod("web-7d4b9c-bbbbb", WEB, "atlas-2", "Burstable", ownerReferences=owner("ReplicaSet", "web-7d4b9c")),
    pod("db-0", DB, "atlas-1", "Guaranteed", ownerReferences=owner("StatefulSet", "db")),
    pod("shell", SHELL, "atlas-1", "BestEffort"),
]
LISTS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "NodeList": (
        "v1",
        [
            {
                "metadata": metadata(name, labels={"kubernetes.io/hostname": name, "acme.example/pool": "blue"}),
                "status": {
                    "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
                    "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
                    "conditions": [{"type": "Ready", "status": ready, "message": SECRET}],
                },
            }
            for name, ready in zip(NODES, ("Unknown", "True"), strict=True)
        ],
    ),
    "PriorityClassList": ("scheduling.k8s.io/v1", [{"metadata": metadata("acme-critical"), "value": 1000}]),
    "DeploymentList": (
        "apps/v1",
        [
            {
                "metadata": metadata("web", "shop"),
                "spec": {
                    "replicas": 2,
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {"metadata": {"labels": {"app": "web"}}, "spec": WEB},
                },
            }
        ],
    ),
    "StatefulSetList": (
        "apps/v1",
        [{"metadata": metadata("db", "shop"), "spec": {"replicas": 1, "template": {"spec": DB}}}],
    ),
    "PodList": ("v1", PODS),
}


def page(kind: str, items: Iterable[dict[str, Any]] | None = None) -> bytes:
    """Return a list as the server sends it."""
    version, every = LISTS[kind]
    body = {"kind": kind, "apiVersion": version, "metadata": {"resourceVersion": "1"}, "items": items or every}
    return json.dumps(body, indent=1).encode()


def kept(kind: str, items: Iterable[dict[str, Any]] | None = None) -> bytes:
    """Return a line of a snapshot."""
    line = pruned_list(page(kind, items))
    assert line is not None
    return line


MEMORY = {"time": "2026-11-15T00:00:00Z", "availableBytes": 4 << 30, "workingSetBytes": 4 << 30, "rssBytes": 3 << 30}


def summary() -> bytes:
    """Return what the kubelet of the first node measured: the database uses most."""
    used = {"web-7d4b9c-aaaaa": ("web", 1536 << 20), "db-0": ("db", 1800 << 20), "shell": ("shell", 100 << 20)}
    pods = [
        {
            "podRef": {"name": name, "namespace": "shop", "uid": f"uid-of-shop-{name}"},
            "startTime": "2026-11-15T00:00:00Z",
            "containers": [{"name": own, "memory": {"workingSetBytes": size, "rssBytes": size, "usageBytes": size}}],
            "memory": {"workingSetBytes": size, "usageBytes": size},
        }
        for name, (own, size) in used.items()
    ]
    return json.dumps({"node": {"nodeName": "atlas-1", "memory": MEMORY}, "pods": pods}).encode()


CONFIGZ = json.dumps(
    {
        "kubeletconfig": {
            "evictionHard": {"memory.available": "500Mi"},
            "staticPodURLHeader": {"Authorization": [SECRET]},
            "clusterDNS": ["10.1.2.3"],
        }
    }
).encode()


def lines(*, anonymous: bool = False) -> list[bytes]:
    """Return the snapshot of the cluster, line by line."""
    made = [kept(kind) for kind in LISTS]
    made.append(msgspec.json.encode(NodeSummary("atlas-1", msgspec.Raw(pruned_summary(summary())))))
    made.append(msgspec.json.encode(NodeKubelet("atlas-1", msgspec.Raw(pruned_kubelet(CONFIGZ)))))
    if anonymous:
        anonymizer = Anonymizer()
        made = [anonymizer.line(line) for line in made]
    header = Header(taken_at="2026-11-15T00:00:00Z", server_version="v1.34.2", is_anonymous=anonymous)
    made.insert(0, msgspec.json.encode(header))
    return [*made, msgspec.json.encode(End(len(made)))]


def snapshot(*, anonymous: bool = False) -> ClusterSnapshot:
    """Return the snapshot of the cluster."""
    return ClusterSnapshot(lines(anonymous=anonymous), "cluster.json")
