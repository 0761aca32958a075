"""What is used: metrics.k8s.io, kubelets, Prometheus; a source that is missing is an assumption."""

from __future__ import annotations

import gzip
import json
import socket
from contextlib import closing
from pathlib import Path

import pytest

from cluster.recorded import recorded, recorded_answer
from cluster.serving import Server
from podqos.cluster.cluster import Cluster
from podqos.cluster.kubeconfig import Access, ExecConfig, User
from podqos.cluster.kubelets import Kubelets
from podqos.cluster.resources import NODE_METRICS, POD_METRICS
from podqos.errors import Unauthorized
from podqos.eviction.signals import decode_summary
from podqos.manifest.kubelet import kubelet_settings_in

KUBELET = Path(__file__).parents[1] / "recordings" / "kubelet"
POD_USAGE = {
    "kind": "PodMetricsList",
    "apiVersion": "metrics.k8s.io/v1beta1",
    "metadata": {},
    "items": [
        {
            "metadata": {"name": "web", "namespace": "shop", "creationTimestamp": "2026-11-15T09:00:00Z"},
            "timestamp": "2026-11-15T08:59:50Z",
            "window": "15.2s",
            "containers": [{"name": "main", "usage": {"cpu": "1282625009n", "memory": "20972Ki"}}],
        }
    ],
}
NODE_USAGE = {
    "kind": "NodeMetricsList",
    "metadata": {},
    "items": [{"metadata": {"name": "n"}, "window": "20s", "usage": {"cpu": "250m", "memory": "1Gi"}}],
}


def answering(**by_plural):
    return lambda request: json.dumps(by_plural[request.path.rpartition("/")[2]]).encode()


# ---- metrics.k8s.io ------------------------------------------------------------------------------------------------


def test_metrics_of_pods_and_nodes():
    with Server(answering(pods=POD_USAGE, nodes=NODE_USAGE)) as server, Cluster(Access(server.url)) as cluster:
        (pod,) = cluster.read(POD_METRICS, "shop")
        (node,) = cluster.read(NODE_METRICS)
    assert pod.containers[0].usage["memory"].value == 20972 << 10
    assert pod.containers[0].usage["cpu"].nanos == 1282625009
    assert node.usage["cpu"].milli_value == 250
    assert server.requests[0].path == "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"


# ---- kubelets ------------------------------------------------------------------------------------------------------


def settings_of(data):
    return kubelet_settings_in("configz", data)


def proxied(**answers):
    """Answer the node proxy by the last part of the path."""

    def answer(request):
        assert request.path.startswith("/api/v1/nodes/node-real/proxy/")
        name = request.path.rpartition("/")[2]
        return answers[f"{name}_cpu_memory" if request.query else name]

    return answer


def test_a_kubelet_is_asked_through_the_node_proxy():
    summary = gzip.decompress((KUBELET / "stats_summary.json.gz").read_bytes())
    answer = proxied(summary=summary, configz=recorded_answer("node_proxy.json", "node-proxy-configz"))
    with Server(answer) as server, Cluster(Access(server.url)) as cluster:
        kubelets = Kubelets(cluster)
        usage = kubelets.summary("node-real", decode_summary)
        settings = kubelets.settings("node-real", settings_of)
    assert usage.value.node.memory.working_set_bytes > 0
    assert len(usage.value.pods) == 12
    assert settings.value.configuration.cgroup_driver == "cgroupfs"
    assert usage.assumptions == settings.assumptions == ()


def test_a_kubelet_that_cannot_find_a_filesystem_still_says_memory():
    answer = proxied(
        summary=recorded_answer("node_proxy.json", "node-proxy-stats-summary"),
        summary_cpu_memory=recorded_answer("node_proxy.json", "node-proxy-stats-summary-cpu-memory"),
    )
    with Server(answer) as server, Cluster(Access(server.url)) as cluster:
        found = Kubelets(cluster).summary("node-real", decode_summary)
    assert found.value.node.node_name == "node-real"
    (assumption,) = found.assumptions
    assert assumption.what == "disk usage of node node-real"
    assert "failed to get rootFs stats" in assumption.value


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("node-proxy-kubelet-down", "connection refused"),
        ("node-proxy-name-not-resolved", "no such host"),
        ("node-proxy-unknown-path", "404 page not found"),
        ("node-proxy-healthz", "contains no kubelet configuration"),
    ],
)
def test_a_kubelet_that_says_nothing_of_use_is_an_assumption(answer, reason):
    with (
        Server(lambda _: recorded_answer("node_proxy.json", answer)) as server,
        Cluster(Access(server.url)) as cluster,
    ):
        found = Kubelets(cluster).settings("node-real", settings_of)
    assert found.value is None
    (assumption,) = found.assumptions
    assert assumption.what == "kubelet settings of node node-real"
    assert reason in assumption.value
    assert assumption.state_with == "--kubelet-config FILE"
    assert len(server.requests) == 1


def test_credentials_that_are_not_taken_are_no_assumption():
    answer = recorded_answer("errors_rbac_metrics.json", "token-unknown-401")
    with Server(lambda _: answer) as server, Cluster(Access(server.url)) as cluster, pytest.raises(Unauthorized):
        Kubelets(cluster).settings("node-real", settings_of)


def kubelet_at(port, *, address="127.0.0.1"):
    """Answer as an API server whose node proxy is forbidden, with kubelets at a port."""
    node = {
        "kind": "Node",
        "metadata": {"name": "node-real"},
        "status": {
            "addresses": [{"type": "Hostname", "address": "x.invalid"}, {"type": "InternalIP", "address": address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        },
    }

    def answer(request):
        if "/proxy/" in request.path:
            return recorded_answer("node_proxy.json", "node-proxy-fine-grained-role")
        return json.dumps(node).encode()

    return answer


def kubelet(request):
    if request.header("Authorization") != "Bearer t":
        return recorded_answer("node_proxy.json", "kubelet-direct-anonymous")
    name = {
        "/configz": "kubelet-direct-fine-grained-configz",
        "/stats/summary": "kubelet-direct-stats",
        "/stats/summary?only_cpu_and_memory=true": "node-proxy-stats-summary-cpu-memory",
    }[request.target]
    return recorded_answer("node_proxy.json", name)


def test_where_the_proxy_is_forbidden_kubelets_are_asked_directly(authority):
    trust = {"ca_file": str(authority.certificate), "user": User(token="t")}
    with (
        Server(kubelet, tls=authority.serving()) as node,
        Server(kubelet_at(node.port), tls=authority.serving()) as server,
        Cluster(Access(server.url, **trust)) as cluster,
    ):
        kubelets = Kubelets(cluster)
        assert kubelets.settings("node-real", settings_of).value.configuration.cgroup_driver == "cgroupfs"
        assert kubelets.summary("node-real", decode_summary).value.node.node_name == "node-real"
    # That it is forbidden is found out once.
    assert sum("/proxy/" in request.path for request in server.requests) == 1


def test_a_proxy_that_is_forbidden_for_one_node_is_used_for_the_others():
    def answer(request):
        if "/nodes/first/proxy/" in request.path:
            return recorded_answer("node_proxy.json", "node-proxy-fine-grained-role")
        return recorded_answer("node_proxy.json", "node-proxy-configz") if "/proxy/" in request.path else b"{}"

    with Server(answer) as server, Cluster(Access(server.url)) as cluster:
        kubelets = Kubelets(cluster)
        kubelets.settings("first", settings_of)
        assert kubelets.settings("second", settings_of).value.configuration.cgroup_driver == "cgroupfs"


def test_a_token_is_not_shown_to_a_kubelet_that_the_clusters_authority_does_not_know(authority, tmp_path):
    from cluster.certificates import Authority

    other = Authority(tmp_path / "other", "self-signed")
    with (
        Server(kubelet, tls=other.serving()) as node,
        Server(kubelet_at(node.port), tls=authority.serving()) as server,
        Cluster(Access(server.url, ca_file=str(authority.certificate), user=User(token="t"))) as cluster,
    ):
        found = Kubelets(cluster).settings("node-real", settings_of)
    assert found.value is None
    assert "its certificate is not trusted" in found.assumptions[0].value
    assert not node.requests


def test_a_kubelet_that_does_not_take_the_credentials_is_an_assumption(authority):
    with (
        Server(kubelet, tls=authority.serving()) as node,
        Server(kubelet_at(node.port), tls=authority.serving()) as server,
        Cluster(Access(server.url, ca_file=str(authority.certificate))) as cluster,
    ):
        found = Kubelets(cluster).settings("node-real", settings_of)
    assert "cannot get nodes/configz: 401 Unauthorized at the kubelet" in found.assumptions[0].value


def test_an_exec_plugin_does_not_run_again_for_every_kubelet_that_does_not_take_its_token(authority, tmp_path):
    version = "client.authentication.k8s.io/v1"
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": "unknown"}}
    (tmp_path / "answer").write_text(json.dumps(answer))
    script = f"echo run >> {tmp_path}/runs; cat {tmp_path}/answer"
    user = User(exec=ExecConfig("sh", ("-c", script), api_version=version))
    with (
        Server(kubelet, tls=authority.serving()) as node,
        Server(kubelet_at(node.port), tls=authority.serving()) as server,
        Cluster(Access(server.url, ca_file=str(authority.certificate), user=user)) as cluster,
    ):
        kubelets = Kubelets(cluster)
        found = [kubelets.summary("node-real", decode_summary) for _ in range(3)]
    assert all("401 Unauthorized at the kubelet" in each.assumptions[0].value for each in found)
    assert (tmp_path / "runs").read_text() == "run\n"


def test_whoever_impersonates_is_not_taken_to_a_kubelet_which_would_answer_to_someone_else(authority):
    user = User(token="t", impersonate="bob")
    with (
        Server(kubelet, tls=authority.serving()) as node,
        Server(kubelet_at(node.port), tls=authority.serving()) as server,
        Cluster(Access(server.url, ca_file=str(authority.certificate), user=user)) as cluster,
    ):
        found = Kubelets(cluster).summary("node-real", decode_summary)
    (assumption,) = found.assumptions
    assert "cannot get nodes/proxy as limited" in assumption.value
    assert "get nodes/proxy, or nodes/stats on the kubelet itself" in assumption.state_with
    assert not node.requests


def test_where_no_kubelet_can_be_reached_not_all_of_them_are_tried(authority):
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
    with (
        Server(kubelet_at(port), tls=authority.serving()) as server,
        Cluster(Access(server.url, ca_file=str(authority.certificate))) as cluster,
    ):
        kubelets = Kubelets(cluster)
        found = [kubelets.summary(f"n{number}", decode_summary) for number in range(200)]
    assert "connection refused" in found[0].assumptions[0].value
    assert found[-1].assumptions[0].value == "not known: connection refused, as with other kubelets"
    assert sum("/proxy/" not in request.path for request in server.requests) < 50


def test_the_recorded_nodes_without_an_address_are_an_assumption():
    def answer(request):
        if "/proxy/" in request.path:
            return recorded_answer("node_proxy.json", "node-proxy-limited-403")
        return json.dumps(json.loads(recorded("lists/nodes.json"))["items"][0] | {"status": {}}).encode()

    with Server(answer) as server, Cluster(Access(server.url)) as cluster:
        found = Kubelets(cluster).summary("node-a", decode_summary)
    assert "the node has no address" in found.assumptions[0].value
