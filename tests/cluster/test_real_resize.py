"""Resizes that a real API server is asked for, beside the same asked of podqos: bound pods, on nodes of all sorts."""

from __future__ import annotations

import json
import os
import random
import shutil
from urllib.error import HTTPError

import pytest

from podqos.admission.decoding import read_pod
from podqos.admission.policies import Policies
from podqos.admission.refusal import Refusal
from podqos.admission.resize import resize
from podqos.admission.resize_node import KnownNodes
from podqos.manifest.decode import convert
from podqos.model.node import Node
from podqos.model.pod import Pod
from real_api_server import ApiServer, writes

pytestmark = pytest.mark.slow
CASES = int(os.environ.get("PODQOS_EXAMPLES", "60"))
BOTH = ["InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"]
NODES = {
    "all": ({}, {"cpu": "4", "memory": "4Gi"}, BOTH),
    "small": ({"kubernetes.io/os": "linux"}, {"cpu": "2", "memory": "2Gi"}, BOTH),
    "bare": ({}, {"cpu": "8", "memory": "8Gi"}, []),
    "half": ({}, {"cpu": "1999m", "memory": "2000000001"}, BOTH[:1]),
    "windows": ({"kubernetes.io/os": "windows"}, {"cpu": "8", "memory": "8Gi"}, BOTH),
    "nothing": ({}, {}, BOTH),
}
CPU = ("100m", "0.5", "1", "1500m", "1999m", "2", "3", "4", "4001m", "8")
MEMORY = ("64Mi", "512Mi", "1Gi", "2000000001", "2000000002", "2Gi", "3Gi", "4Gi", "4294967297", "8Gi")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a key with")
    with ApiServer(tmp_path_factory.mktemp("server")) as started:
        for name, (labels, allocatable, features) in NODES.items():
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
            started.call("POST", "/api/v1/nodes", node)
            status = {"allocatable": allocatable, "capacity": allocatable, "declaredFeatures": features}
            path = f"/api/v1/nodes/{name}/status"
            started.call("PATCH", path, {"status": status}, kind="application/merge-patch+json")
        runtime = {"kind": "RuntimeClass", "apiVersion": "node.k8s.io/v1", "metadata": {"name": "heavy"}}
        heavy = {**runtime, "handler": "heavy", "overhead": {"podFixed": {"cpu": "250m", "memory": "128Mi"}}}
        started.call("POST", "/apis/node.k8s.io/v1/runtimeclasses", heavy)
        yield started


def _amounts(draw: random.Random, least: float = 0.3) -> dict:
    requests = {
        name: draw.choice(values) for name, values in (("cpu", CPU), ("memory", MEMORY)) if draw.random() > least
    }
    return {"requests": requests} if requests else {}


def _pod(draw: random.Random, name: str) -> dict:
    spec: dict = {"nodeName": draw.choice([*NODES, "all", "small", "missing"]), "containers": []}
    for number in range(draw.choice((1, 1, 2))):
        spec["containers"].append({"name": f"c{number}", "image": "i", "resources": _amounts(draw)})
    if draw.random() < 0.4:
        init = {"name": "init", "image": "i", "resources": _amounts(draw)}
        spec["initContainers"] = [{**init, "restartPolicy": "Always"} if draw.random() < 0.5 else init]
    if draw.random() < 0.3:
        spec["resources"] = {"requests": {"cpu": "8", "memory": "16Gi"}}
    if draw.random() < 0.3:
        spec["runtimeClassName"] = "heavy"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def _resized(draw: random.Random, pod: dict) -> dict:
    """Return the stored pod with other amounts where it states any."""
    spec = pod["spec"]
    levels = [*spec["containers"], *spec.get("initContainers", ())]
    for holder in levels if draw.random() < 0.9 else ():
        for name in holder["resources"].get("requests", {}):
            if draw.random() < 0.6:
                holder["resources"]["requests"][name] = draw.choice(CPU if name == "cpu" else MEMORY)
    if "resources" in spec and draw.random() < 0.5:
        spec["resources"]["requests"]["cpu"] = draw.choice(("9", "7", "17"))
    return pod


def _answer(server: ApiServer, method: str, path: str, body: dict) -> tuple[int, dict]:
    try:
        return 200, json.loads(server.call(method, path, body))
    except HTTPError as error:
        return error.code, json.loads(error.read())


@writes
def test_every_resize_of_a_bound_pod_is_answered_as_by_the_api_server(server):
    draw = random.Random(int(os.environ.get("PODQOS_TEST_SEED", "7")))  # noqa: S311 - the same pods each time
    nodes = convert(json.loads(server.call("GET", "/api/v1/nodes"))["items"], list[Node])
    known = KnownNodes({node.name: node for node in nodes}, are_all=True)
    answers, wrong = {}, []
    for number in range(CASES):
        pods = "/api/v1/namespaces/default/pods"
        code, stored = _answer(server, "POST", pods, _pod(draw, f"p{number}"))
        if code != 200:
            continue
        old = convert(json.loads(json.dumps(stored)), Pod)
        asked = _resized(draw, stored)
        new = read_pod(asked)
        assert not isinstance(new, Refusal)
        code, answer = _answer(server, "PUT", f"{pods}/p{number}/resize", asked)
        refusal = resize(old, new, Policies(), nodes=known).refusal
        theirs = (code, answer["message"] if code != 200 else "")
        ours = (200, "") if refusal is None else (int(refusal.code), refusal.message)
        reason = theirs[1].partition("forbidden: ")[2][:12]
        answers[reason] = answers.get(reason, 0) + 1
        if ours != theirs:
            wrong.append((asked["spec"], theirs, ours))
    assert wrong == []
    assert len(answers) >= 4, answers
