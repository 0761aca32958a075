"""Makes the inputs of the benchmarks: what a big cluster prints, and what a big repository of manifests holds.

Everything is drawn from a seeded generator, so that every run measures the same bytes.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

CPU = [f"{n}m" for n in range(50, 2050, 50)] + ["2", "3", "4", "8"]
MEMORY = [f"{n}Mi" for n in range(64, 4160, 64)] + ["6Gi", "8Gi", "16Gi"]


def pod_list(path: Path, pods: int = 20_000, seed: int = 1) -> None:
    """Write a file like `kubectl get pods -A -o json --show-managed-fields` prints: a List, indented by four."""
    chance = random.Random(seed)
    with path.open("w") as file:
        file.write('{\n    "apiVersion": "v1",\n    "items": [\n')
        for index in range(pods):
            text = json.dumps(live_pod(index, chance), indent=4).replace("\n", "\n        ")
            file.write(f"        {text}{',' if index < pods - 1 else ''}\n")
        file.write('    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n')


def manifests(folder: Path, megabytes: float = 10.5, seed: int = 2) -> int:
    """Write many YAML files of the kinds a platform repository holds; returns how many."""
    chance = random.Random(seed)
    written = files = 0
    while written < megabytes * 1e6:
        text = "---\n".join(workload_yaml(files * 3 + part, chance) for part in range(chance.randint(1, 4)))
        target = folder / f"team-{files % 40:02}" / f"service-{files:05}.yaml"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        written += len(text)
        files += 1
    return files


def resources(chance: random.Random) -> dict[str, dict[str, str]]:
    """Draw what a container asks for: equal, burstable, half set or nothing."""
    cpu, memory = chance.choice(CPU), chance.choice(MEMORY)
    requests = {"cpu": cpu, "memory": memory}
    match chance.randrange(6):
        case 0 | 1:
            return {"limits": requests, "requests": requests}
        case 2 | 3:
            return {"limits": {"cpu": "8", "memory": "16Gi"}, "requests": requests}
        case 4:
            return {"requests": requests}
        case _:
            return {}


def container(name: str, index: int, chance: random.Random) -> dict[str, object]:
    """Return a container as the API server stores it."""
    return {
        "env": [{"name": "LOG_LEVEL", "value": "info"}],
        "image": f"registry.example.com/team/{name}:{index % 97}.{index % 13}",
        "imagePullPolicy": "IfNotPresent",
        "name": name,
        "resources": resources(chance),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "kube-api-access", "readOnly": True}
        ],
    }


def live_pod(index: int, chance: random.Random) -> dict[str, object]:
    """Return a pod as `kubectl get` shows it, with managedFields and status."""
    app = f"app-{index % 700}"
    uid = f"{chance.getrandbits(32):08x}-{index % 65536:04x}-4000-8000-{chance.getrandbits(48):012x}"
    containers = [container("main", index, chance)]
    if index % 3 == 0:
        containers.append(container("exporter", index, chance))
    spec: dict[str, object] = {
        "containers": containers,
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "nodeName": f"node-{index % 250:03}",
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {"effect": "NoExecute", "key": f"node.kubernetes.io/{key}", "operator": "Exists", "tolerationSeconds": 300}
            for key in ("not-ready",)
        ],
        "volumes": [{"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": []}}],
    }
    if index % 5 == 0:
        spec["initContainers"] = [container("migrate", index, chance)]
        if index % 10 == 0:
            spec["initContainers"].append({**container("proxy", index, chance), "restartPolicy": "Always"})  # type: ignore[attr-defined]
    times = "2026-11-15T00:42:04Z"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "annotations": {"checksum/config": f"{chance.getrandbits(256):064x}"},
            "creationTimestamp": times,
            "generateName": f"{app}-6887fc7947-",
            "labels": {"app": app, "pod-template-hash": "6887fc7947", "team": f"team-{index % 40}"},
            "managedFields": [
                {
                    "apiVersion": "v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {
                        "f:metadata": {
                            "f:annotations": {".": {}},
                            "f:generateName": {},
                            "f:labels": {".": {}, "f:app": {}},
                        },
                        "f:spec": {
                            "f:containers": {
                                'k:{"name":"main"}': {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}
                            },
                            "f:dnsPolicy": {},
                            "f:restartPolicy": {},
                        },
                    },
                    "manager": "kube-controller-manager",
                    "operation": "Update",
                    "time": times,
                }
            ],
            "name": f"{app}-6887fc7947-{index:05}",
            "namespace": f"namespace-{index % 60}",
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "controller": True,
                    "kind": "ReplicaSet",
                    "name": f"{app}-6887fc7947",
                    "uid": uid,
                }
            ],
            "resourceVersion": str(100_000 + index),
            "uid": uid,
        },
        "spec": spec,
        "status": {
            "conditions": [
                {"lastProbeTime": None, "lastTransitionTime": times, "status": "True", "type": kind}
                for kind in ("Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [
                {
                    "containerID": f"containerd://{chance.getrandbits(256):064x}",
                    "image": one["image"],
                    "imageID": f"registry.example.com/team/{one['name']}@sha256:{chance.getrandbits(256):064x}",
                    "lastState": {},
                    "name": one["name"],
                    "ready": True,
                    "restartCount": index % 4,
                    "started": True,
                    "state": {"running": {"startedAt": times}},
                }
                for one in containers
            ],
            "hostIP": "198.51.100.11",
            "phase": "Running",
            "podIP": "203.0.113.4",
            "startTime": times,
        },
    }


def workload_yaml(index: int, chance: random.Random) -> str:
    """Return one manifest as a person would write it, with comments, probes and mixed quoting."""
    kind = ("Deployment", "StatefulSet", "DaemonSet")[index % 3]
    name = f"service-{index:05}"
    lines = [
        f"# {name}: owned by team {index % 40}",
        "apiVersion: apps/v1",
        f"kind: {kind}",
        "metadata:",
        f"  name: {name}",
        f"  namespace: team-{index % 40:02}",
        "  labels:",
        f'    app.kubernetes.io/name: "{name}"',
        "    app.kubernetes.io/part-of: platform",
        "  annotations:",
        f"    description: 'Handles requests of kind {index % 17}; see the runbook, section {index % 9}.'",
        "spec:",
    ]
    if kind != "DaemonSet":
        lines.append(f"  replicas: {1 + index % 5}")
    if kind == "StatefulSet":
        lines.append(f"  serviceName: {name}")
    lines += [
        "  selector:",
        "    matchLabels:",
        f"      app.kubernetes.io/name: {name}",
        "  template:",
        "    metadata:",
        "      labels:",
        f"        app.kubernetes.io/name: {name}",
        "    spec:",
        "      serviceAccountName: default",
        "      terminationGracePeriodSeconds: 30",
        "      containers:",
    ]
    for part in ("main", "proxy", "exporter")[: 1 + index % 3]:
        lines += container_yaml(part, index, chance)
    return "\n".join(lines) + "\n"


def container_yaml(part: str, index: int, chance: random.Random) -> list[str]:
    """Return the lines of one container."""
    lines = [
        f"        - name: {part}",
        f'          image: "registry.example.com/team/{part}:{index % 97}.{index % 13}"',
        '          args: ["--listen=:8080", "--log-level=info"]',
        "          ports:",
        "            - name: http",
        "              containerPort: 8080",
        "          env:",
        "            - name: GOMEMLIMIT",
        '              value: "400MiB"',
        "            - name: POD_NAME",
        "              valueFrom:",
        "                fieldRef:",
        "                  fieldPath: metadata.name",
        "          readinessProbe:",
        "            httpGet:",
        "              path: /healthz",
        "              port: http",
        "            periodSeconds: 10",
    ]
    asked = resources(chance)
    if asked:
        lines.append("          resources:")
        for side in ("requests", "limits"):
            if side in asked:
                lines.append(f"            {side}:")
                lines += [f'              {resource}: "{amount}"' for resource, amount in asked[side].items()]
    return lines
