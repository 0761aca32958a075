"""The oom_score_adj of processes that a real kubelet runs on this machine, after a resize in place.

``PODQOS_TEST_KUBELET`` names the kubeconfig, ``PODQOS_TEST_IMAGE`` an image with ``sleep`` that its node has.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from pathlib import Path

import pytest

from podqos.cli.main import main
from podqos.cluster.access import find_access
from podqos.cluster.asking import Client
from podqos.cluster.patience import PATIENT
from podqos.cluster.transport import SentRequest

KUBECONFIG = os.environ.get("PODQOS_TEST_KUBELET")
IMAGE = os.environ.get("PODQOS_TEST_IMAGE", "localhost/busybox:1")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not KUBECONFIG, reason="no kubelet on this machine: set PODQOS_TEST_KUBELET"),
]


class _Cluster:
    """The pods of a namespace of the test's own."""

    def __init__(self) -> None:
        self._client = Client(find_access(kubeconfig=KUBECONFIG, environment={}), environment={})
        self.namespace = f"podqos-scores-{uuid.uuid4().hex[:8]}"
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    def close(self) -> None:
        self.send("DELETE", f"/api/v1/namespaces/{self.namespace}", {})
        self._client.close()

    def send(self, method: str, path: str, body: dict) -> None:
        answer = self._client.send(
            SentRequest(method, json.dumps(body).encode()), path, (), "application/json", PATIENT
        )
        assert answer.is_success, answer

    def pod(self, name: str) -> dict:
        return json.loads(self._client.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}").data)

    def run(self, name: str, seconds: int, policy: str) -> None:
        container = {
            "name": "app",
            "image": IMAGE,
            "imagePullPolicy": "Never",
            "command": ["sleep", str(seconds)],
            "resources": {"requests": {"cpu": "5m", "memory": "8Mi"}},
            "resizePolicy": [{"resourceName": "memory", "restartPolicy": policy}],
        }
        anywhere = [{"operator": "Exists"}]
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0, "tolerations": anywhere}
        self.send("POST", f"/api/v1/namespaces/{self.namespace}/pods", {"metadata": {"name": name}, "spec": spec})

    def resize(self, name: str, memory: str) -> None:
        pod = self.pod(name)
        pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = memory
        self.send("PUT", f"/api/v1/namespaces/{self.namespace}/pods/{name}/resize", pod)

    def has(self, name: str, memory: str) -> bool:
        """Whether a container runs with a request."""
        statuses = self.pod(name)["status"].get("containerStatuses", [{}])
        is_running = "running" in statuses[0].get("state", {})
        return is_running and statuses[0].get("resources", {}).get("requests", {}).get("memory") == memory


@pytest.fixture
def cluster():
    made = _Cluster()
    yield made
    made.close()


def _wait(condition, what: str) -> None:
    until = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.2)


def _score(seconds: int) -> int | None:
    """Return the score of the process that sleeps for so long; None if there is none."""
    wanted = f"sleep\0{seconds}\0".encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == wanted:
                return int((path.parent / "oom_score_adj").read_text())
        except OSError:
            continue
    return None


def test_a_resize_in_place_leaves_the_score_and_a_restart_changes_it(cluster, capsys):
    sleeps = {"stays": 700_001, "restarts": 700_002}
    for (name, seconds), policy in zip(sleeps.items(), ("NotRequired", "RestartContainer"), strict=True):
        cluster.run(name, seconds, policy)
    for name in sleeps:
        _wait(lambda name=name: cluster.has(name, "8Mi"), f"{name} runs")
        cluster.resize(name, "120Mi")
    for name in sleeps:
        _wait(lambda name=name: cluster.has(name, "120Mi"), f"{name} is resized")
    _wait(lambda: None not in map(_score, sleeps.values()), "both run")
    assert main(["explain", "--kubeconfig", KUBECONFIG, "-n", cluster.namespace, "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    ours = {item["name"]: item["containers"][0]["oomScoreAdj"] for item in answer["items"]}
    assert ours == {name: _score(seconds) for name, seconds in sleeps.items()}
    assert ours["stays"] > ours["restarts"]
    assert not any("oom_score_adj" in each["what"] for each in answer["assumptions"])
