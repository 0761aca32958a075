"""The image, run as pods of a real kubelet from what ``podqos … manifests`` prints.

``PODQOS_TEST_KUBELET`` names an administrator's kubeconfig, ``PODQOS_TEST_PODQOS_IMAGE`` an image that the node has
(``make image-archive``). Where podqos is installed already, nothing is touched.
"""

from __future__ import annotations

import json
import os

import pytest

from deploy.test_real_installation import path_of, printed
from guard.kubelets import REAL, wait_until
from podqos.cli.main import main
from podqos.cluster.access import find_access
from podqos.cluster.asking import Client
from podqos.cluster.patience import PATIENT
from podqos.cluster.transport import SentRequest
from podqos.errors import NotFound

IMAGE = os.environ.get("PODQOS_TEST_PODQOS_IMAGE")
NAMESPACE = f"podqos-test-{os.getpid()}"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (REAL and IMAGE), reason="no kubelet to run the image: set PODQOS_TEST_KUBELET, PODQOS_TEST_PODQOS_IMAGE"
    ),
]


class Cluster:
    """A cluster, asked as an administrator."""

    def __init__(self) -> None:
        self.client = Client(find_access(kubeconfig=REAL, environment={}), environment={})

    def get(self, path: str) -> dict:
        return json.loads(self.client.get(path).data)

    def text(self, path: str) -> str:
        return self.client.get(path).data.decode()

    def send(self, method: str, path: str, body: object = None, query: tuple = ()) -> int:
        sent = SentRequest(method, json.dumps(body or {}).encode())
        return self.client.send(sent, path, query, "application/json", PATIENT).status

    def ask_about_a_pod(self) -> int:
        container = {"name": "c", "image": "x"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asked"}, "spec": {"containers": [container]}}
        return self.send("POST", "/api/v1/namespaces/default/pods", pod, (("dryRun", "All"),))

    def is_gone(self, path: str) -> bool:
        try:
            return not self.client.get(path)
        except NotFound:
            return True


@pytest.fixture
def installed(capsys, tmp_path):
    """Install webhook and exporter, and uninstall them as documented."""
    cluster, where = Cluster(), ["-n", NAMESPACE]
    assert main(["webhook", "certificate", str(tmp_path / "certs"), *where]) == 0
    made = printed(capsys, "webhook", "manifests", "--certificate", str(tmp_path / "certs"), *where)
    made += printed(capsys, "exporter", "manifests", *where)[1:]
    created = []
    try:
        for each in made:
            text = json.dumps(each).replace("registry.example.com/podqos:1", str(IMAGE))
            status = cluster.send("POST", path_of(each), json.loads(text))
            if status == 409:
                pytest.skip(f"{each['metadata']['name']} is there already")
            assert status == 201, each
            created.append(each)
        yield cluster
    finally:
        for each in reversed(created):
            if "namespace" not in each["metadata"]:
                cluster.send("DELETE", f"{path_of(each)}/{each['metadata']['name']}")
        wait_until(lambda: cluster.is_gone(f"/api/v1/namespaces/{NAMESPACE}"), "the namespace is gone")
        cluster.client.close()


def are_ready(cluster: Cluster) -> bool:
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
    parts = cluster.get(path)["items"]
    return all(each["status"].get("readyReplicas") == each["spec"]["replicas"] for each in parts)


def test_webhook_and_exporter_serve_as_pods_and_come_back_when_they_are_deleted(installed):
    services = f"/api/v1/namespaces/{NAMESPACE}/services"
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    wait_until(lambda: are_ready(installed), "all are ready")
    metrics = installed.text(f"{services}/podqos-exporter:9753/proxy/metrics")
    assert "podqos_node_memory_headroom_bytes{" in metrics

    def is_asked() -> bool:
        assert installed.ask_about_a_pod() == 201
        said = installed.text(f"{services}/https:podqos-webhook:443/proxy/metrics")
        return 'kind="Pod",allowed="true"' in said

    wait_until(is_asked, "the API server asks the webhook")

    before = {each["metadata"]["uid"] for each in installed.get(pods)["items"]}
    assert installed.send("DELETE", pods) == 200
    wait_until(
        lambda: (
            are_ready(installed) and not before & {each["metadata"]["uid"] for each in installed.get(pods)["items"]}
        ),
        "others are ready",
    )
    restarts = [
        container["restartCount"]
        for each in installed.get(pods)["items"]
        for container in each["status"]["containerStatuses"]
    ]
    assert set(restarts) == {0}
