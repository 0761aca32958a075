"""A small shop as manifests: two replicas that may be edited, a pod that states nothing, a Guaranteed one."""

from __future__ import annotations

_SHOP = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: web:1
        resources:
          requests: {cpu: 100m, memory: WEB_REQUEST}
          limits: {cpu: 100m, memory: WEB_LIMIT}
---
apiVersion: v1
kind: Pod
metadata: {name: shell, namespace: shop}
spec:
  containers:
  - {name: shell, image: "shell:1"}
---
apiVersion: v1
kind: Pod
metadata: {name: db, namespace: shop}
spec:
  containers:
  - name: db
    image: db:1
    resources: {limits: {cpu: 1, memory: 2Gi}}
"""


def shop(request: str = "256Mi", limit: str = "1Gi") -> bytes:
    """Return the manifests, with what the replicas request of memory, and their limit."""
    return _SHOP.replace("WEB_REQUEST", request).replace("WEB_LIMIT", limit).encode()
