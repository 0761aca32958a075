"""Clusters of any size as manifests: nodes, and pods that run on them."""

from __future__ import annotations

import json

CLASSES = (
    {},
    {"requests": {"memory": "256Mi", "cpu": "100m"}, "limits": {"memory": "1Gi"}},
    {"requests": {"memory": "512Mi", "cpu": "200m"}},
    {"requests": {"memory": "768Mi", "cpu": "250m"}, "limits": {"memory": "768Mi", "cpu": "250m"}},
)
NAMESPACES = ("shop", "batch", "monitoring")


def fleet(pods: int, nodes: int) -> str:
    """Return nodes with conditions and all classes of pods in turn; every seventh pod has a priority."""
    items = [_node(number) for number in range(nodes)]
    items += [_pod(number, f"node-{number % nodes}") for number in range(pods)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def _node(number: int) -> dict:
    pressed = {"type": "MemoryPressure", "status": "True" if number % 10 == 0 else "False"}
    amounts = {"memory": "64Gi", "cpu": "16", "pods": "5000"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}, pressed]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number}"}, "status": status}


def _pod(number: int, node: str) -> dict:
    resources = CLASSES[number % len(CLASSES)]
    name = f"web-{number}" if number % 5 else f"a-pod-with-a-name-that-goes-on-and-on-and-on-for-ever-{number}"
    spec = {
        "nodeName": node,
        "priority": 1000 if number % 7 == 0 else 0,
        "containers": [{"name": "main", "image": "web", "resources": resources}],
    }
    metadata = {"name": name, "namespace": NAMESPACES[number % len(NAMESPACES)], "uid": f"uid-{number}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}
