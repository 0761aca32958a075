"""The same against a real API server, where there is one.

``PODQOS_TEST_KUBECONFIG`` names the kubeconfig of a cluster, which is only read. ``KUBEBUILDER_ASSETS`` is a directory
with ``etcd`` and ``kube-apiserver``: these are started, and then objects are made as well.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import time
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
import yaml

from podqos.cluster.cluster import Cluster, connect
from podqos.cluster.events import EventType
from podqos.cluster.kubeconfig import Access, User
from podqos.cluster.kubelets import Kubelets
from podqos.cluster.metrics import node_metrics, pod_metrics
from podqos.cluster.resources import NAMESPACES, NODES, PODS, PRIORITY_CLASSES
from podqos.errors import Forbidden, Unauthorized
from podqos.manifest.reading import read

KUBECONFIG = os.environ.get("PODQOS_TEST_KUBECONFIG")
ASSETS = os.environ.get("KUBEBUILDER_ASSETS")
pytestmark = pytest.mark.slow
reads = pytest.mark.skipif(
    not (KUBECONFIG or ASSETS), reason="no real API server: set PODQOS_TEST_KUBECONFIG or KUBEBUILDER_ASSETS"
)
writes = pytest.mark.skipif(not ASSETS, reason="no API server to make objects in: set KUBEBUILDER_ASSETS")


class ApiServer:
    """An API server with its etcd, of this test's own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.url = f"https://127.0.0.1:{_free_port()}"

    def __enter__(self) -> ApiServer:  # noqa: PYI034 - once
        self._stack, self._processes = ExitStack(), []
        directory, etcd, peers = self._directory, f"http://127.0.0.1:{_free_port()}", f"http://127.0.0.1:{_free_port()}"
        key = directory / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        (directory / "tokens").write_text('admin,admin,1,"system:masters"\nlimited,limited,2\n')
        self._start(
            "etcd", f"--data-dir={directory / 'etcd'}", f"--listen-client-urls={etcd}",
            f"--advertise-client-urls={etcd}", f"--listen-peer-urls={peers}", "--unsafe-no-fsync",
        )  # fmt: skip
        self._start(
            "kube-apiserver", f"--etcd-servers={etcd}", f"--cert-dir={directory / 'pki'}", "--bind-address=127.0.0.1",
            f"--secure-port={self.url.rpartition(':')[2]}", "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}", f"--token-auth-file={directory / 'tokens'}",
            "--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount",
        )  # fmt: skip
        deadline = time.monotonic() + 120
        while True:
            try:
                self.call("GET", "/readyz")
                break
            except OSError:
                ended = [each.args[0] for each in self._processes if each.poll() is not None]
                if ended or time.monotonic() > deadline:
                    self._stack.close()
                    logs = {path.name: path.read_text()[-2000:] for path in directory.glob("*.log")}
                    pytest.fail(f"the API server is not ready; ended: {ended}; logs: {logs}")
                time.sleep(0.5)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self, program: str, *arguments: str) -> None:
        log = self._stack.enter_context((self._directory / f"{program}.log").open("wb"))
        process = subprocess.Popen([f"{ASSETS}/{program}", *arguments], stdout=log, stderr=log)
        self._processes.append(process)
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)

    def access(self, token: str = "admin") -> Access:
        return Access(self.url, ca_file=str(self._directory / "pki" / "apiserver.crt"), user=User(token=token))

    def call(self, method: str, path: str, body: object = None) -> bytes:
        """Do what the reader cannot."""
        headers = {"Authorization": "Bearer admin", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        request = Request(self.url + path, data, headers, method=method)  # noqa: S310 - our own server
        with urlopen(request, timeout=30, context=trust) as answer:  # noqa: S310 - likewise
            return answer.read()

    def create_pod(self, name: str) -> None:
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m"}}}
        pod = {"metadata": {"name": name}, "spec": {"containers": [container]}}
        self.call("POST", "/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", **pod})


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        return listening.getsockname()[1]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a key with")
    with ApiServer(tmp_path_factory.mktemp("server")) as started:
        for number in range(23):
            started.create_pod(f"pod-{number:02}")
        yield started


@pytest.fixture
def cluster(request):
    own = connect(kubeconfig=KUBECONFIG) if KUBECONFIG else Cluster(request.getfixturevalue("server").access())
    with own as cluster:
        yield cluster


@reads
def test_version_nodes_namespaces_and_classes_are_read(cluster):
    assert cluster.version().git_version.startswith("v1.")
    cluster.read(NODES)
    assert "default" in [namespace.metadata.name for namespace in cluster.read(NAMESPACES)]
    assert "system-node-critical" in [each.metadata.name for each in cluster.read(PRIORITY_CLASSES)]


@reads
def test_pods_in_pages_are_those_of_one_list_read_as_a_file(cluster):
    pages = list(cluster.pages(PODS, limit=7))
    whole = [workload.pod for workload in read("list", cluster.get(PODS.path())).workloads]
    assert all(len(page.items) <= 7 for page in pages)
    paged = {pod.metadata.uid: pod for page in pages for pod in page.items}
    pairs = [(pod, paged[pod.metadata.uid]) for pod in whole if pod.metadata.uid in paged]
    unchanged = [pair for pair in pairs if len({pod.metadata.resource_version for pod in pair}) == 1]
    assert len(unchanged) > len(whole) // 2 or not whole
    assert all(one == other for one, other in unchanged)


@reads
def test_a_watch_begins_with_what_exists(cluster):
    known = {}
    for event in cluster.watch(NAMESPACES):
        if event.type is EventType.SYNCED:
            break
        if event.object is not None:
            known[event.object.metadata.name] = event
    assert {"default", "kube-system"} <= known.keys()


@reads
def test_usage_is_found_or_assumed(cluster):
    for found in (pod_metrics(cluster), node_metrics(cluster)):
        assert (found.value is None) == bool(found.assumptions)
    for name, found in Kubelets(cluster).summaries([node.name for node in cluster.read(NODES)[:3]]):
        assert found.value is not None or found.assumptions, name


@writes
def test_changes_are_seen_as_they_happen(server):
    with Cluster(server.access()) as cluster:
        events = cluster.watch(PODS, "default")
        for event in events:
            if event.type is EventType.SYNCED:
                break
        server.create_pod("late")
        event = next(events)
        assert event.type is EventType.ADDED
        assert event.object.metadata.name == "late"
        server.call("DELETE", "/api/v1/namespaces/default/pods/late?gracePeriodSeconds=0")
        while event.type is not EventType.DELETED:
            event = next(events)
        assert event.object.metadata.name == "late"


@writes
def test_a_list_of_all_pods_in_pages(server):
    with Cluster(server.access()) as cluster:
        pages = list(cluster.pages(PODS, "default", limit=10))
    assert sum(len(page.items) for page in pages) >= 23
    assert len({page.metadata.resource_version for page in pages}) == 1


@writes
def test_the_rbac_in_the_error_grants_what_was_refused(server):
    with Cluster(server.access("limited")) as cluster:
        with pytest.raises(Forbidden, match="cannot list nodes as limited") as caught:
            cluster.read(NODES)
        for document in yaml.safe_load_all(caught.value.role):
            plural = f"{document['kind'].lower()}s"
            server.call("POST", f"/apis/{document['apiVersion']}/{plural}", document)
        deadline = time.monotonic() + 30
        while True:  # until the authorizer has seen it
            try:
                cluster.read(NODES)
                break
            except Forbidden:
                assert time.monotonic() < deadline
                time.sleep(0.2)


@writes
def test_a_wrong_token_is_unauthorized(server):
    with Cluster(server.access("wrong")) as cluster, pytest.raises(Unauthorized, match="cannot list nodes: 401"):
        cluster.read(NODES)
