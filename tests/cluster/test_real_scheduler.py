"""Decisions of a real scheduler: pods with pod-level requests, sidecars, overhead and resizes that are not done."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from podqos.manifest.decode import convert
from podqos.model.node import Node
from podqos.model.pod import Pod
from podqos.placement.filters import Namespaces, SchedulerCluster
from podqos.placement.pods import SchedulerNode, Views
from podqos.placement.schedule import Chooser
from real_api_server import ASSETS, ApiServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (ASSETS and Path(ASSETS, "kube-scheduler").exists()),
        reason="no scheduler: set KUBEBUILDER_ASSETS to a directory that has kube-scheduler, too",
    ),
]
DECISIONS = int(os.environ.get("PODQOS_EXAMPLES", "25"))
PODS = "/api/v1/namespaces/default/pods"
PATCH = "application/merge-patch+json"
SIZES = {
    "cpu": ("0", "50m", "250m", "500m", "1", "1500m", "2"),
    "memory": ("0", "64Mi", "512Mi", "1Gi", "2Gi", "300000001"),
}
LARGE = {"cpu": ("3", "4", "6", "8"), "memory": ("4Gi", "6Gi", "8Gi")}


@pytest.fixture
def server(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a key with")
    with ApiServer(tmp_path) as started:
        for name, cpu, memory in (("a", "4", "16Gi"), ("b", "8", "16Gi"), ("c", "16", "8Gi"), ("d", "7910m", "32Gi")):
            started.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
            started.call("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, kind=PATCH)
            offered = {"cpu": cpu, "memory": memory, "pods": "110"}
            status = {"status": {"allocatable": offered, "capacity": offered}}
            started.call("PATCH", f"/api/v1/nodes/{name}/status", status, kind=PATCH)
        runtime = {"kind": "RuntimeClass", "apiVersion": "node.k8s.io/v1", "metadata": {"name": "heavy"}}
        overhead = {"podFixed": {"cpu": "250m", "memory": "128Mi"}}
        started.call("POST", "/apis/node.k8s.io/v1/runtimeclasses", {**runtime, "handler": "h", "overhead": overhead})
        context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        clusters = [{"name": "c", "cluster": {"server": started.url, "insecure-skip-tls-verify": True}}]
        users = [{"name": "u", "user": {"token": "admin"}}]
        kubeconfig = {"clusters": clusters, "users": users, "contexts": [context], "current-context": "c"}
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **kubeconfig}))
        command = [f"{ASSETS}/kube-scheduler", f"--kubeconfig={path}", "--leader-elect=false", "--secure-port=0"]
        with (tmp_path / "scheduler.log").open("wb") as log:
            scheduler = subprocess.Popen(command, stdout=log, stderr=log)
            yield started
            scheduler.terminate()
            scheduler.wait()


def _amounts(draw: random.Random) -> dict:
    return {name: draw.choice(sizes) for name, sizes in SIZES.items() if draw.random() < 0.7}


def _pod(draw: random.Random, name: str) -> dict:
    def container(name: str) -> dict:
        return {"name": name, "image": "i", "resources": {"requests": _amounts(draw)}}

    spec: dict = {"containers": [container(f"c{number}") for number in range(draw.choice((1, 1, 2)))]}
    if draw.random() < 0.4:
        init = container("init")
        spec["initContainers"] = [{**init, "restartPolicy": "Always"} if draw.random() < 0.5 else init]
    if draw.random() < 0.5:
        large = {name: draw.choice(sizes) for name, sizes in LARGE.items()}
        spec["resources"] = {"requests": large}
    if draw.random() < 0.25:
        spec["runtimeClassName"] = "heavy"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _resizing(draw: random.Random, pod: dict) -> dict:
    """Return the status of a pod whose resize is not done."""
    running = {"running": {"startedAt": "2026-11-18T10:00:00Z"}}
    statuses = [
        {
            "name": container["name"],
            "image": "i",
            "imageID": "i",
            "ready": True,
            "restartCount": 0,
            "state": running,
            "resources": {"requests": _amounts(draw)},
            "allocatedResources": _amounts(draw),
        }
        for container in pod["spec"]["containers"]
    ]
    reason = draw.choice(("Infeasible", "Deferred"))
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return {"phase": "Running", "containerStatuses": statuses, "conditions": conditions}


def _decided(server: ApiServer, name: str) -> str:
    """Return the node that a pod gets; empty if it is unschedulable."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        pod = json.loads(server.call("GET", f"{PODS}/{name}"))
        if pod["spec"].get("nodeName"):
            return pod["spec"]["nodeName"]
        conditions = pod["status"].get("conditions", ())
        if any(condition["type"] == "PodScheduled" and condition["status"] == "False" for condition in conditions):
            return ""
        time.sleep(0.05)
    pytest.fail(f"the scheduler does not decide about {name}")


def _best(nodes: list, there: list, arriving: dict) -> list[str]:
    views = Views()
    states = {node.name: SchedulerNode(node) for node in convert(nodes, list[Node])}
    for pod in there:
        states[pod["spec"]["nodeName"]].add(views.of(convert(pod, Pod)))
    cluster = SchedulerCluster(states.values(), Namespaces({"default": {}}))
    return [state.name for state in Chooser(cluster).best(views.of(convert(arriving, Pod)))]


def test_every_pod_goes_to_a_node_with_the_highest_score(server):
    draw = random.Random(int(os.environ.get("PODQOS_TEST_SEED", "7")))  # noqa: S311 - the same pods each time
    wrong = []
    for number in range(DECISIONS):
        for pod in json.loads(server.call("GET", PODS))["items"]:
            path = f"{PODS}/{pod['metadata']['name']}"
            if not pod["spec"].get("nodeName") or draw.random() < 0.15:
                server.call("DELETE", f"{path}?gracePeriodSeconds=0")
            elif pod["status"]["phase"] == "Pending" and draw.random() < 0.3:
                server.call("PATCH", f"{path}/status", {"status": _resizing(draw, pod)}, kind=PATCH)
        time.sleep(0.5)  # the scheduler has no way to say that it has seen all this
        there = json.loads(server.call("GET", PODS))["items"]
        nodes = json.loads(server.call("GET", "/api/v1/nodes"))["items"]
        try:
            made = json.loads(server.call("POST", PODS, _pod(draw, f"p{number}")))
        except OSError:
            continue  # its pod-level requests are below those of its containers
        node, best = _decided(server, f"p{number}"), _best(nodes, there, made)
        if node not in best and (node or best):
            wrong.append((made["spec"], node, best))
    assert wrong == []
