"""Lists: typed values, pages, and what happens when a list expires."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from msgspec.structs import replace

from cluster.recorded import api_server, recorded, recorded_answer
from cluster.serving import Server, status
from podqos.cluster import resources
from podqos.cluster.cluster import Cluster
from podqos.cluster.kubeconfig import Access
from podqos.cluster.pages import ListPage
from podqos.cluster.resources import DEPLOYMENTS, NODES, PODS, Resource
from podqos.errors import BadAnswer, NotFound, Refused
from podqos.manifest.reading import read
from podqos.model.pod import Workload

NOT_RECORDED = (resources.POD_METRICS, resources.NODE_METRICS)
EVERY = [value for value in vars(resources).values() if isinstance(value, Resource) and value not in NOT_RECORDED]


@pytest.fixture
def cluster():
    with Server(api_server) as server, Cluster(Access(server.url)) as cluster:
        cluster.server = server
        yield cluster


def test_pods_from_pages_are_the_pods_of_a_file(cluster):
    pods = cluster.read(PODS)
    assert pods == [workload.pod for workload in read("pods", recorded("lists/pods.json")).workloads]
    # kubectl leaves out who set which field.
    printed = [replace(pod, metadata=replace(pod.metadata, managed_fields=())) for pod in pods]
    assert printed == [workload.pod for workload in read("pods", recorded("kubectl/pods-all.json")).workloads]


def test_a_list_is_read_in_pages_of_one_moment(cluster):
    pages = list(cluster.pages(PODS, limit=10))
    assert [len(page.items) for page in pages] == [10, 10, 10, 10, 10, 3]
    assert [page.is_first for page in pages] == [True, False, False, False, False, False]
    assert len({page.metadata.resource_version for page in pages}) == 1
    assert [page.data for page in pages] == [recorded(f"pages/pods-{number}.json") for number in range(1, 7)]
    assert {request.query["limit"] for request in cluster.server.requests} == {"10"}


def test_a_page_that_is_only_passed_on_is_not_decoded(cluster, monkeypatch):
    monkeypatch.setattr(ListPage, "items", property(lambda _: pytest.fail("decoded")))
    assert sum(len(json.loads(page.data)["items"]) for page in cluster.pages(PODS)) == 53


@pytest.mark.parametrize("resource", EVERY, ids=lambda resource: resource.plural)
def test_every_resource_has_its_address_and_its_values(cluster, resource):
    try:
        items = cluster.read(resource)
    except NotFound:
        # Not in the recording, or no part of Kubernetes.
        assert resource.plural in {
            "events",
            "poddisruptionbudgets",
            "horizontalpodautoscalers",
            "ingresses",
            "services",
            "verticalpodautoscalers",
        }
        return
    assert items
    assert {type(item) for item in items} == {resource.model}
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else "/api/v1"
    assert cluster.server.requests[0].path == f"{root}/{resource.plural}"
    assert resource.is_namespaced == any(item.metadata.namespace for item in items)


def test_workloads_are_those_of_a_file(cluster):
    found = cluster.read(DEPLOYMENTS)
    assert found == list(read("x", recorded("lists/deployments.json")).workloads)
    assert isinstance(found[0], Workload)


def test_namespace_and_selectors_are_the_servers_work():
    with Server(lambda _: recorded("lists/pods.json")) as server, Cluster(Access(server.url)) as cluster:
        cluster.read(PODS, "a/b", selector="app in (x, y)", field_selector="spec.nodeName=n&1")
    (request,) = server.requests
    assert request.path == "/api/v1/namespaces/a%2Fb/pods"
    assert request.query["labelSelector"] == "app in (x, y)"
    assert request.query["fieldSelector"] == "spec.nodeName=n&1"


def test_a_list_without_items_is_empty():
    body = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":null}'
    with Server(lambda _: body) as server, Cluster(Access(server.url)) as cluster:
        assert cluster.read(PODS) == []


def test_a_node_with_an_image_that_lost_its_tags_is_read():
    node = {"metadata": {"name": "a"}, "status": {"images": [{"names": None, "sizeBytes": 7}, {"names": ["x"]}]}}
    answer = json.dumps({"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": [node]}).encode()
    with Server(lambda _: answer) as server, Cluster(Access(server.url)) as cluster:
        (read_node,) = cluster.read(NODES)
    assert [image.names for image in read_node.status.images] == [None, ("x",)]


def test_the_version(cluster):
    assert cluster.version().git_version == "v1.36.4"


def test_one_object():
    node = json.dumps({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a b"}}).encode()
    with Server(lambda _: node) as server, Cluster(Access(server.url)) as cluster:
        assert cluster.one(NODES, "a b").name == "a b"
    assert server.requests[0].path == "/api/v1/nodes/a%20b"


class Expiring:
    """A server whose continue tokens expire some times."""

    def __init__(self, times):
        self.times = times
        self.limits = []

    def __call__(self, request):
        self.limits.append(int(request.query["limit"]))
        if request.query.get("continue") and self.times:
            self.times -= 1
            return recorded_answer("errors.json", "expired-continue-token-410")
        return api_server(request)


def test_a_list_that_expires_begins_again_with_larger_pages_and_drops_what_came():
    expiring = Expiring(2)
    with Server(expiring) as server, Cluster(Access(server.url)) as cluster:
        pods = cluster.read(PODS)
        assert len(pods) == len({pod.metadata.uid for pod in pods}) == 53
    assert expiring.limits == [500, 500, 1000, 1000, 2000, 2000, 2000, 2000, 2000, 2000]


def test_a_list_that_always_expires_is_given_up():
    with (
        Server(Expiring(99)) as server,
        Cluster(Access(server.url)) as cluster,
        pytest.raises(Refused, match="cannot list pods: 410 The provided continue parameter is too old"),
    ):
        cluster.read(PODS)
    assert len(server.requests) == 12


def test_a_pod_that_makes_no_sense_is_named_with_its_field():
    body = json.loads(recorded("pages/pods-6.json"))
    body["items"][1]["spec"]["containers"][0]["resources"]["request"] = {"cpu": "1"}
    with (
        Server(lambda _: json.dumps(body).encode()) as server,
        Cluster(Access(server.url)) as cluster,
        pytest.raises(BadAnswer) as caught,
    ):
        cluster.read(PODS)
    assert f"{server.url}: items[1]: Pod spec.containers[0].resources" in str(caught.value)


def test_a_list_of_a_namespace_that_does_not_exist_is_empty():
    answer = recorded_answer("errors.json", "namespace-unknown-list-is-empty-200")
    with Server(lambda _: answer) as server, Cluster(Access(server.url)) as cluster:
        assert cluster.read(PODS, "nope") == []


def test_an_api_that_the_cluster_does_not_have():
    with (
        Server(lambda _: status(404, "NotFound", "the server could not find the requested resource")) as server,
        Cluster(Access(server.url)) as cluster,
        pytest.raises(
            NotFound, match=r"cannot list verticalpodautoscalers\.autoscaling\.k8s\.io: the server could not"
        ),
    ):
        cluster.read(resources.VERTICAL_POD_AUTOSCALERS)


def test_a_command_that_reads_files_does_not_load_what_reads_clusters(tmp_path):
    (tmp_path / "pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c}]}\n"
    )
    script = (
        "import sys; from podqos.cli.main import main; main(sys.argv[1:]);"
        "print([name for name in sys.modules if name.startswith(('podqos.cluster', 'http', 'ssl'))])"
    )
    command = [sys.executable, "-c", script, "explain", "-f", str(tmp_path / "pod.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
