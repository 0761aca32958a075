"""The same against a real API server, where there is one.

``PODQOS_TEST_KUBECONFIG`` names the kubeconfig of a cluster, which is only read. ``KUBEBUILDER_ASSETS`` is a directory
with ``etcd`` and ``kube-apiserver``: these are started, and then objects are made as well.
"""

from __future__ import annotations

import json
import os
import shutil
import time

import pytest
import yaml

from podqos.cli.main import main
from podqos.cluster.cluster import Cluster, connect
from podqos.cluster.events import EventType
from podqos.cluster.kubelets import Kubelets
from podqos.cluster.node_logs import kernel_log, kubelet_log
from podqos.cluster.resources import NAMESPACES, NODES, PODS, PRIORITY_CLASSES
from podqos.errors import Forbidden, Unauthorized
from podqos.eviction.signals import decode_summary
from podqos.manifest.edits.writing import BlockStyle, block_lines
from podqos.manifest.encoding import manifest_yaml, yaml_text
from podqos.manifest.reading import read
from podqos.questions.node import cluster_node_state, watched_memory
from podqos.reading.live_cluster import take
from real_api_server import ASSETS, ApiServer, writes
from report.test_yaml_texts import TRICKY

KUBECONFIG = os.environ.get("PODQOS_TEST_KUBECONFIG")
pytestmark = pytest.mark.slow
reads = pytest.mark.skipif(
    not (KUBECONFIG or ASSETS), reason="no real API server: set PODQOS_TEST_KUBECONFIG or KUBEBUILDER_ASSETS"
)


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
    kubelets = Kubelets(cluster)
    for node in cluster.read(NODES)[:3]:
        found = kubelets.summary(node.name, decode_summary)
        assert found.value is not None or found.assumptions, node.name


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
        deadline = time.monotonic() + 300
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


@pytest.mark.parametrize("write", [yaml_text, manifest_yaml, None], ids=["answers", "objects to apply", "patches"])
@writes
def test_the_server_reads_the_texts_that_were_written(server, write):
    """Its strict decoder refuses a number or a boolean where a text belongs."""
    texts = {f"text-{number}": text for number, text in enumerate(TRICKY)}
    labels = {"y": "on", "1e3": "12e5", "0x1": "", "2026-01-01": "1_0", "null": "n"}
    value = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"generateName": "t-", "labels": labels},
        "data": texts,
    }
    text = write(value) if write else "".join(f"{line}\n" for line in block_lines(value, 0, BlockStyle()))
    path = "/api/v1/namespaces/default/configmaps?fieldValidation=Strict"
    stored = json.loads(server.call("POST", path, text.encode(), kind="application/yaml"))
    assert (stored["metadata"]["labels"], stored["data"]) == (labels, texts)


@reads
def test_logs_of_nodes_are_not_refused_for_their_media_type(cluster):
    nodes = [node.name for node in cluster.read(NODES)]
    for node in nodes[:1]:
        said = " ".join(
            str(assumption)
            for read_log in (kernel_log, kubelet_log)
            for assumption in read_log(cluster, node).assumptions
        )
        assert "406" not in said


@pytest.mark.skipif(not KUBECONFIG, reason="no cluster with kubelets: set PODQOS_TEST_KUBECONFIG")
def test_what_a_node_implies_is_what_its_kubelet_reports():
    from msgspec.structs import replace

    with connect(kubeconfig=KUBECONFIG) as live:
        snapshot = take(live)
    seen = 0
    for name, node in snapshot.nodes.items():
        found = snapshot.at(name, None)
        if (
            found.kubelet is None
            or found.summary is None
            or "pods" not in found.kubelet.config.enforce_node_allocatable
        ):
            continue
        own, implied = (
            cluster_node_state(each, profile=snapshot.profile) for each in (found, replace(found, kubelet=None))
        )
        stated, derived = (watched_memory(state) for state in (own, implied))
        assert node.status.allocatable
        assert abs(stated.limit_bytes - own.snapshot.node.pods_limit_bytes) < 4096
        if any(threshold.amount and not threshold.is_hard for threshold in stated.exhaustion.thresholds):
            continue  # soft thresholds are not implied
        assert derived.headroom.signal is stated.headroom.signal
        assert abs(derived.headroom_bytes - stated.headroom_bytes) < 4096
        seen += 1
    assert seen


@pytest.mark.skipif(not KUBECONFIG, reason="no cluster with kubelets: set PODQOS_TEST_KUBECONFIG")
def test_explained_cgroups_are_those_of_the_nodes_driver(capsys):
    assert main(["explain", "--kubeconfig", KUBECONFIG, "-A", "-o", "json"]) in {0, 2}  # 2: there are no pods
    report = json.loads(capsys.readouterr().out or '{"items": []}')
    with connect(kubeconfig=KUBECONFIG) as live:
        drivers = {
            take(live).kubelet(node.name).config.cgroup_driver or "systemd" for node in take(live).nodes.values()
        }
    paths = [cgroup["path"] for item in report["items"] for cgroup in item["cgroups"] if cgroup["level"] == "pod"]
    if len(drivers) == 1:
        assert all(path.endswith(".slice") is (drivers == {"systemd"}) for path in paths)
